/* split_amx.c: split.h on the tile unit of x86-64 (AMX), with AVX-512 around it.
 *
 * A tile is 16 lines of 64 bytes. TDPBF16PS takes 16 rows of A, 32 numbers each as they lie, and 16
 * rows of B with 32 numbers each, but as pairs side by side: line p of that tile holds the p-th pair of all 16.
 * In what order 32 numbers are summed is ours to choose: number k stands beside k + 16, so that a line is made of two
 * vectors of f32 by a shift and a blend, be they two halves of a row (A) or two rows that lie 16 apart (B, where its
 * numbers lie below each other). Only what lies the other way has to be transposed.
 *
 * A panel is, for each step of 32 numbers and each term, two tiles. Four tiles hold the sums of two by
 * two, two a term of A, two a term of B; the order of the six products reloads as few as possible. What is split on
 * its way is packed for the next step between the products of this one: the unit is busy for 16 cycles with each. */
#include "num/cpu/split.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"
#include "num/cpu/tiles_amx.h"

enum { TERMS = 3, STEP = 32, TILE = 1024, SIDE = 16 };

static int64_t steps_of(int64_t depth) { return (depth + STEP - 1) / STEP; }

static size_t room(int64_t depth) { return (size_t)steps_of(depth) * TERMS * 2 * TILE; }

/* The terms of 32 numbers, each rounded from what the ones before have left; the last is exact. By integers: half of
 * the last place is added and what is below it cut off. */
INLINE void terms_of(__m512 low, __m512 high, __m512i out[TERMS])
{
    const __m512i nearest = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(-0x10000);
    UNROLL
    for (int t = 0; t < TERMS; t++) {
        __m512i a = _mm512_castps_si512(low), b = _mm512_castps_si512(high);
        if (t + 1 < TERMS) {
            a = _mm512_add_epi32(a, nearest);
            b = _mm512_add_epi32(b, nearest);
            low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_and_si512(a, upper)));
            high = _mm512_sub_ps(high, _mm512_castsi512_ps(_mm512_and_si512(b, upper)));
        }
        out[t] = _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(a, 16), b);
    }
}

/* The same of k <= 32 numbers that lie side by side. */
INLINE void terms_at(const float *x, int64_t k, __m512i out[TERMS])
{
    __mmask32 given = (__mmask32)((UINT64_C(1) << k) - 1);
    terms_of(_mm512_maskz_loadu_ps((__mmask16)given, x),
             _mm512_maskz_loadu_ps((__mmask16)(given >> 16), x + 16), out);
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static void left(int64_t row, int64_t depth, const float *a, void *panel)
{
    char *out = (char *)panel + row / SIDE * TILE + row % SIDE * 64;
    for (int64_t k = 0; k < depth; k += STEP) {
        __m512i term[TERMS];
        if (a) terms_at(a + k, at_most(depth - k, STEP), term);
        else memset(term, 0, sizeof term);
        for (int t = 0; t < TERMS; t++, out += 2 * TILE) _mm512_store_si512(out, term[t]);
    }
}

/* Which of 32 numbers of 16 bits goes where. */
INLINE __m512i side_by_side(void)
{
    const __m512i k = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_or_si512(k, _mm512_slli_epi32(_mm512_add_epi32(k, _mm512_set1_epi32(SIDE)), 16));
}

static void left_coded(int64_t row, int64_t depth, const uint8_t *codes, const float (*values)[8],
                       void *panel)
{
    char *out = (char *)panel + row / SIDE * TILE + row % SIDE * 64;
    const __m512i beside = side_by_side();
    for (int64_t k = 0; k < depth; k += STEP, codes += STEP, values++) {
        __m512i code = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)codes));
        __m256 rest = _mm256_loadu_ps(*values);
        code = _mm512_permutexvar_epi16(beside, code);
        UNROLL
        for (int t = 0; t < TERMS; t++, out += 2 * TILE) {
            __m256i a = _mm256_castps_si256(rest);
            if (t + 1 < TERMS) {
                a = _mm256_add_epi32(a, _mm256_set1_epi32(0x8000));
                __m256i term = _mm256_and_si256(a, _mm256_set1_epi32(-0x10000));
                rest = _mm256_sub_ps(rest, _mm256_castsi256_ps(term));
            }
            __m128i table = _mm256_cvtepi32_epi16(_mm256_srli_epi32(a, 16));
            _mm512_store_si512(out, _mm512_permutexvar_epi16(code, _mm512_castsi128_si512(table)));
        }
    }
}

/* Rows become columns. */
INLINE void transpose(__m512i r[SIDE])
{
    __m512i t[SIDE];
    UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (int j = 0; j < 2; j++) {
            r[4 * i + 2 * j] = _mm512_unpacklo_epi64(t[4 * i + j], t[4 * i + j + 2]);
            r[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(t[4 * i + j], t[4 * i + j + 2]);
        }
    }
    /* r[4 i + j]: in each of four lanes, column 4 lane + j of rows 4 i .. 4 i + 3 */
    UNROLL
    for (int j = 0; j < 4; j++) {
        __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88);
        __m512i b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
        __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
        __m512i d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
        t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    UNROLL
    for (int i = 0; i < SIDE; i++) r[i] = t[i];
}

static void right(int64_t rows, int64_t depth, const float *B, int64_t ldb, void *panel)
{
    char *out = panel;
    for (int64_t k = 0; k < depth; k += STEP, out += TERMS * 2 * TILE)
        for (int64_t i = 0; i < 2; i++) {
            __m512i pairs[TERMS][SIDE] = {0}, term[TERMS];
            int64_t count = at_most(rows - i * SIDE, SIDE);
            for (int64_t j = 0; j < count; j++) {
                terms_at(B + (i * SIDE + j) * ldb + k, at_most(depth - k, STEP), term);
                for (int t = 0; t < TERMS; t++) pairs[t][j] = term[t];
            }
            for (int t = 0; t < TERMS; t++) {
                transpose(pairs[t]);
                memcpy(out + (2 * t + i) * TILE, pairs[t], TILE);
            }
        }
}

static void left_down(int64_t rows, int64_t depth, const float *A, int64_t lda, void *panel)
{
    char *out = panel;
    for (int64_t k = 0; k < depth; k += STEP, out += TERMS * 2 * TILE)
        for (int64_t i = 0; i < 2; i++) {
            __m512i some[2][SIDE], term[TERMS];
            int64_t there = at_most(rows - i * SIDE, SIDE);
            __mmask16 given = (__mmask16)(there > 0 ? (1u << there) - 1 : 0);
            for (int64_t j = 0; j < STEP; j++)
                some[j / SIDE][j % SIDE] =
                    k + j < depth ? _mm512_castps_si512(
                                        _mm512_maskz_loadu_ps(given, A + (k + j) * lda + i * SIDE))
                                  : _mm512_setzero_si512();
            transpose(some[0]);
            transpose(some[1]);
            for (int64_t r = 0; r < SIDE; r++) {
                terms_of(_mm512_castsi512_ps(some[0][r]), _mm512_castsi512_ps(some[1][r]), term);
                for (int t = 0; t < TERMS; t++)
                    _mm512_store_si512(out + (2 * t + i) * TILE + r * 64, term[t]);
            }
        }
}

/* ---- Products ------------------------------------------------------------------------------- */

/* 16 x 16 sums [r, c] to C[c, r], of which so many are there. */
static void put_across(const float *sums, int64_t rows, int64_t columns, float *C, int64_t ldc,
                       bool add)
{
    __m512i v[SIDE];
    if (rows <= 0) return;
    __mmask16 there = (__mmask16)((1u << at_most(rows, SIDE)) - 1);
    memcpy(v, sums, sizeof v);
    transpose(v);
    for (int64_t c = 0; c < at_most(columns, SIDE); c++) {
        __m512 sum = _mm512_castsi512_ps(v[c]);
        if (add) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(there, C + c * ldc), sum);
        _mm512_mask_storeu_ps(C + c * ldc, there, sum);
    }
}

/* The same to C[r, c]. */
static void put(const float *sums, int64_t rows, int64_t columns, float *C, int64_t ldc, bool add)
{
    if (columns <= 0) return;
    __mmask16 there = (__mmask16)((1u << at_most(columns, SIDE)) - 1);
    for (int64_t r = 0; r < at_most(rows, SIDE); r++) {
        __m512 sum = _mm512_load_ps(sums + r * SIDE);
        if (add) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(there, C + r * ldc), sum);
        _mm512_mask_storeu_ps(C + r * ldc, there, sum);
    }
}

/* Where the 32 lines of a step, two tiles, come from: 16 numbers and 16 more each, as distances in bytes, of
 * which so many are given. */
typedef struct lines {
    int64_t at[2][CGAM_SPLIT_PANEL];
    __mmask16 given[2]
                   [2]; /* of the first and of the second 16; in the first and in the second tile */
} lines;

/* Compilers do not know that tiles are loaded from memory. */
#define WRITTEN() __asm__ volatile("" : : : "memory")

/* Statements, since gcc has these as assembly; they want the tile as a literal. */
#define LOAD_A(term)                                                                               \
    _tile_loadd(4, a + 2 * (term)*TILE, 64);                                                       \
    _tile_loadd(5, a + (2 * (term) + 1) * TILE, 64)
#define LOAD_B(term)                                                                               \
    _tile_loadd(6, b + 2 * (term)*TILE, 64);                                                       \
    _tile_loadd(7, b + (2 * (term) + 1) * TILE, 64)
#define MULTIPLY(i)                                                                                \
    BETWEEN(3 * (i));                                                                              \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    BETWEEN(3 * (i) + 1);                                                                          \
    _tile_dpbf16ps(1, 4, 7);                                                                       \
    BETWEEN(3 * (i) + 2);                                                                          \
    _tile_dpbf16ps(2, 5, 6);                                                                       \
    _tile_dpbf16ps(3, 5, 7)
/* The six products of a step; terms are counted from 0 here. */
#define SIX()                                                                                      \
    LOAD_A(2);                                                                                     \
    LOAD_B(0);                                                                                     \
    MULTIPLY(0);                                                                                   \
    LOAD_A(1);                                                                                     \
    MULTIPLY(1);                                                                                   \
    LOAD_B(1);                                                                                     \
    MULTIPLY(2);                                                                                   \
    LOAD_A(0);                                                                                     \
    MULTIPLY(3);                                                                                   \
    LOAD_B(0);                                                                                     \
    MULTIPLY(4);                                                                                   \
    LOAD_B(2);                                                                                     \
    MULTIPLY(5)
/* Those three of them that are left where one side has a single term, in the same order. */
#define THREE_LEFT()                                                                               \
    LOAD_A(0);                                                                                     \
    LOAD_B(1);                                                                                     \
    MULTIPLY(0);                                                                                   \
    LOAD_B(0);                                                                                     \
    MULTIPLY(1);                                                                                   \
    LOAD_B(2);                                                                                     \
    MULTIPLY(2)
#define THREE_RIGHT()                                                                              \
    LOAD_B(0);                                                                                     \
    LOAD_A(2);                                                                                     \
    MULTIPLY(0);                                                                                   \
    LOAD_A(1);                                                                                     \
    MULTIPLY(1);                                                                                   \
    LOAD_A(0);                                                                                     \
    MULTIPLY(2)

#define BETWEEN(i) (void)0
static void six(const char *a, const char *b) { SIX(); }
#undef BETWEEN

/* What is split on its way: f32 on either side, bf16 on the left, bf16 on the right. */
typedef enum kind { WHOLE, HALF_LEFT, HALF_RIGHT } kind;

INLINE void pack_line(kind of, const lines *x, __mmask16 low, __mmask16 high, const char *from,
                      int i, char *out)
{
    const char *first = from + x->at[0][i], *second = from + x->at[1][i];
    __m512i term[TERMS];
    if (of == WHOLE) {
        terms_of(_mm512_maskz_loadu_ps(low, first), _mm512_maskz_loadu_ps(high, second), term);
        UNROLL
        for (int t = 0; t < TERMS; t++) _mm512_store_si512(out + 2 * t * TILE + i * 64, term[t]);
    } else {
        __m256i a = _mm256_maskz_loadu_epi16(low, first),
                b = _mm256_maskz_loadu_epi16(high, second);
        term[0] = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
        _mm512_store_si512(out + i * 64, _mm512_permutexvar_epi16(side_by_side(), term[0]));
    }
}

/* Some of the 32 lines of x are packed, if there is x, and as many fetched of what comes later. */
INLINE void between(kind of, int slot, const lines *x, const __mmask16 low[2],
                    const __mmask16 high[2], const char *from, char *out, const int64_t *at,
                    const char *ahead)
{
    int some = of == WHOLE ? 2 : 4;
    UNROLL
    for (int k = 0; k < some; k++) {
        int i = some * slot + k;
        if (i >= CGAM_SPLIT_PANEL) break;
        if (x) pack_line(of, x, low[i / SIDE], high[i / SIDE], from, i, out);
        _mm_prefetch(ahead + at[i], _MM_HINT_T1);
    }
    WRITTEN();
}

/* The products of a step. at, ahead: lines to be fetched meanwhile; x, from: what is to be packed to `out`, or NULL. */
typedef void products(const char *a, const char *b, const int64_t *at, const char *ahead,
                      const lines *x, const char *from, char *out);

#define BETWEEN(i) between(of, i, x, low, high, from, out, at, ahead)
INLINE void multiply(kind of, const char *a, const char *b, const int64_t *at, const char *ahead,
                     const lines *x, const char *from, char *out)
{
    __mmask16 low[2] = {0}, high[2] = {0}; /* read once */
    for (int k = 0; x && k < 2; k++) low[k] = x->given[0][k], high[k] = x->given[1][k];
    if (of == WHOLE) {
        SIX();
    } else if (of == HALF_LEFT) {
        THREE_LEFT();
    } else {
        THREE_RIGHT();
    }
}
#undef BETWEEN

#define PRODUCTS(name, of)                                                                         \
    static void name##_packing(const char *a, const char *b, const int64_t *at, const char *ahead, \
                               const lines *x, const char *from, char *out)                        \
    {                                                                                              \
        multiply(of, a, b, at, ahead, x, from, out);                                               \
    }                                                                                              \
    static void name##_fetching(const char *a, const char *b, const int64_t *at,                   \
                                const char *ahead, const lines *x, const char *from, char *out)    \
    {                                                                                              \
        (void)x, (void)from, (void)out;                                                            \
        multiply(of, a, b, at, ahead, NULL, NULL, NULL);                                           \
    }
PRODUCTS(whole, WHOLE)
PRODUCTS(half_left, HALF_LEFT)
PRODUCTS(half_right, HALF_RIGHT)
static products *const packing[] = {whole_packing, half_left_packing, half_right_packing};
static products *const fetching[] = {whole_fetching, half_left_fetching, half_right_fetching};

/* A panel that is split on its way. */
typedef struct source {
    kind of;
    const char *from, *ahead; /* its first step; what is to be fetched while that is multiplied */
    int64_t step;             /* bytes from one step to the next */
    const lines *body, *last; /* how steps lie, and how the last one does, which may be cut short */
    const char *then;         /* the first step of the panel that comes after it, or NULL, */
    const lines *begin;       /* and how that lies */
} source;

/* A panel of A by a panel of B, from zero: sums [2, 2] of 16 x 16. One of them may be x, of which the first step is in
 * `packed`: with `first` the others are packed now, with `last` the first of the panel after it. */
static void block(int64_t steps, const char *a, const char *b, float *sums, const source *x,
                  bool first, bool last, char *packed)
{
    enum { ONE = 2 * TILE, ALL = TERMS * ONE };
    int64_t step_a = x && x->of == HALF_LEFT ? ONE : ALL;
    int64_t step_b = x && x->of == HALF_RIGHT ? ONE : ALL;
    int64_t step = x && x->of != WHOLE ? ONE : ALL;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < steps; s++, a += step_a, b += step_b) {
        const char *ahead = x ? x->ahead + s * x->step : NULL;
        const int64_t *at = x ? x->body->at[first ? 0 : 1] : NULL;
        if (!x) six(a, b);
        else if (first && s + 1 < steps)
            packing[x->of](a, b, at, ahead, s + 2 < steps ? x->body : x->last,
                           x->from + (s + 1) * x->step, packed + (s + 1) * step);
        else if (last && !first && steps > 1 && s + 1 == steps && x->then)
            packing[x->of](a, b, at, ahead, x->begin, x->then, packed);
        else fetching[x->of](a, b, at, ahead, NULL, NULL, NULL);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
    WRITTEN();
}

typedef void putting(const float *sums, int64_t rows, int64_t columns, float *C, int64_t ldc,
                     bool add);

/* The sums of a block that begins at row r and column c. */
INLINE void put_block(putting *how, const float *sums, int64_t rows, int64_t columns, float *C,
                      int64_t row, int64_t column, int64_t ldc, bool add)
{
    for (int64_t i = 0; i < 4; i++) {
        int64_t r = i / 2 * SIDE, c = i % 2 * SIDE;
        how(sums + i * SIDE * SIDE, rows - r, columns - c, C + r * row + c * column, ldc, add);
    }
}

static void mul(int64_t rows, int64_t columns, int64_t depth, const void *A, const void *B,
                float *C, int64_t ldc, bool add)
{
    enum { PANEL = CGAM_SPLIT_PANEL };
    _Alignas(64) float sums[4 * SIDE * SIDE];
    const cgam_tiles theirs = cgam_tiles_take();
    for (int64_t c = 0; c < columns; c += PANEL)
        for (int64_t r = 0; r < rows; r += PANEL) {
            block(steps_of(depth), (const char *)A + (size_t)(r / PANEL) * room(depth),
                  (const char *)B + (size_t)(c / PANEL) * room(depth), sums, NULL, false, false,
                  NULL);
            put_block(put_across, sums, rows - r, columns - c, C + c * ldc + r, 1, ldc, ldc, add);
        }
    cgam_tiles_return(&theirs);
}

static __mmask16 some_of(int64_t count)
{
    return (__mmask16)(count >= SIDE ? 0xffff : count > 0 ? (1u << count) - 1 : 0);
}

/* The first step of x, unless it is there already: that goes with the products of the panel before. */
static void pack_first(const source *x, int64_t steps, int64_t panels, bool begins, char *packed)
{
    const lines *first = steps > 1 ? x->body : x->last;
    if (!begins && steps > 1 && panels > 1) return;
    for (int i = 0; i < CGAM_SPLIT_PANEL; i++) {
        __mmask16 low = first->given[0][i / SIDE], high = first->given[1][i / SIDE];
        if (x->of == WHOLE) pack_line(WHOLE, first, low, high, x->from, i, packed);
        else pack_line(HALF_LEFT, first, low, high, x->from, i, packed);
    }
    WRITTEN();
}

/* Lines are rows; those beyond the last are the last again, and what comes of them is not put anywhere. */
static void lines_of_rows(int64_t rows, int64_t depth, int64_t lda, int64_t size, lines *x)
{
    for (int64_t i = 0; i < CGAM_SPLIT_PANEL; i++)
        for (int h = 0; h < 2; h++) x->at[h][i] = (at_most(i, rows - 1) * lda + h * SIDE) * size;
    for (int h = 0; h < 2; h++)
        for (int tile = 0; tile < 2; tile++) x->given[h][tile] = some_of(depth - h * SIDE);
}

static void mul_rows(cgam_dtype type, int64_t rows, int64_t columns, int64_t depth, const void *A,
                     int64_t lda, const void *B, void *packed, float *C, int64_t ldc, bool add)
{
    enum { PANEL = CGAM_SPLIT_PANEL };
    _Alignas(64) float sums[4 * SIDE * SIDE];
    int64_t steps = steps_of(depth), panels = (columns + PANEL - 1) / PANEL;
    int64_t size = (int64_t)cgam_dtype_size(type), end = (rows - 1) % PANEL + 1;
    lines body[2], last[2]; /* of whole panels, and of one that is not */
    for (int k = 0; k < 2; k++) {
        lines_of_rows(k ? end : PANEL, STEP, lda, size, &body[k]);
        lines_of_rows(k ? end : PANEL, depth - (steps - 1) * STEP, lda, size, &last[k]);
    }
    const cgam_tiles theirs = cgam_tiles_take();
    for (int64_t r = 0; r < rows; r += PANEL) {
        const char *from = (const char *)A + r * lda * size, *then = from + PANEL * lda * size;
        int cut = rows - r < PANEL, cut_then = rows - r < 2 * PANEL;
        bool more = r + PANEL < rows;
        source x = {type == CGAM_F32 ? WHOLE : HALF_LEFT,
                    from,
                    more ? then : (const char *)A + depth * size,
                    STEP * size,
                    &body[cut],
                    &last[cut],
                    more ? then : NULL,
                    &body[cut_then]};
        pack_first(&x, steps, panels, r == 0, packed);
        for (int64_t c = 0; c < panels; c++) {
            block(steps, packed, (const char *)B + (size_t)c * room(depth), sums, &x, c == 0,
                  c + 1 == panels, packed);
            put_block(put, sums, rows - r, columns - c * PANEL, C + r * ldc + c * PANEL, ldc, 1,
                      ldc, add);
        }
    }
    cgam_tiles_return(&theirs);
}

/* Lines are two rows of B that lie 16 apart, 16 columns in the first tile and 16 in the second. Rows beyond the last
 * are the last again, and meet zeros of A. */
static void lines_down(int64_t depth, int64_t columns, int64_t ldb, int64_t size, lines *x)
{
    for (int64_t i = 0; i < CGAM_SPLIT_PANEL; i++)
        for (int h = 0; h < 2; h++)
            x->at[h][i] = (at_most(i % SIDE + h * SIDE, depth - 1) * ldb + i / SIDE * SIDE) * size;
    for (int h = 0; h < 2; h++)
        for (int tile = 0; tile < 2; tile++) x->given[h][tile] = some_of(columns - tile * SIDE);
}

static void mul_down(cgam_dtype type, int64_t rows, int64_t columns, int64_t depth, const void *A,
                     const void *B, int64_t ldb, void *packed, float *C, int64_t ldc)
{
    enum { PANEL = CGAM_SPLIT_PANEL };
    _Alignas(64) float sums[4 * SIDE * SIDE];
    int64_t steps = steps_of(depth), panels = (rows + PANEL - 1) / PANEL;
    int64_t size = (int64_t)cgam_dtype_size(type), end = (columns - 1) % PANEL + 1;
    lines body[2], last[2]; /* of whole panels, and of one that is not */
    for (int k = 0; k < 2; k++) {
        lines_down(STEP, k ? end : PANEL, ldb, size, &body[k]);
        lines_down(depth - (steps - 1) * STEP, k ? end : PANEL, ldb, size, &last[k]);
    }
    const cgam_tiles theirs = cgam_tiles_take();
    for (int64_t c = 0; c < columns; c += PANEL) {
        const char *from = (const char *)B + c * size, *then = from + PANEL * size;
        int cut = columns - c < PANEL, cut_then = columns - c < 2 * PANEL;
        source x = {type == CGAM_F32 ? WHOLE : HALF_RIGHT,
                    from,
                    then,
                    STEP * ldb * size,
                    &body[cut],
                    &last[cut],
                    c + PANEL < columns ? then : NULL,
                    &body[cut_then]};
        pack_first(&x, steps, panels, c == 0, packed);
        for (int64_t r = 0; r < panels; r++) {
            block(steps, (const char *)A + (size_t)r * room(depth), packed, sums, &x, r == 0,
                  r + 1 == panels, packed);
            put_block(put, sums, rows - r * PANEL, columns - c, C + r * PANEL * ldc + c, ldc, 1,
                      ldc, true);
        }
    }
    cgam_tiles_return(&theirs);
}

extern const cgam_split cgam_split_amx;
const cgam_split cgam_split_amx = {room,  left, left_coded, left_down,
                                   right, mul,  mul_rows,   mul_down};
#endif
