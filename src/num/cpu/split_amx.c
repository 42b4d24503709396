/* split_amx.c: split.h on the tile unit of x86-64 (AMX), with AVX-512 around it.
 *
 * A tile is 16 lines of 64 bytes. TDPBF16PS takes 16 rows of A, 32 numbers each as they lie, and 16
 * rows of B with 32 numbers each, but as pairs side by side: line p of that tile holds the p-th pair of all 16.
 * In what order 32 numbers are summed is ours to choose: number k stands beside k + 16, so that a line is made of two
 * vectors of f32 by a shift and a blend, be they two halves of a row (A) or two rows that lie 16 apart (B, where its
 * numbers lie below each other). Only what lies the other way has to be transposed.
 *
 * A panel is, for each step of 32 numbers and each term, two tiles. Where both sides are packed, four tiles hold the
 * sums of two by two, two a term of A, two a term of B; the order of the six products reloads as few as possible.
 *
 * Where one side is split on its way, four tiles hold the sums of 16 of its rows or columns by 64 of the other side: what is
 * packed serves all 64, lies in 3 KB, and is packed for the next step between the products of this one. Its
 * three terms have a tile each, those of the other side pass through the last one. The unit begins a product every 16
 * cycles, whatever the sums they go to; with the packing between them it takes 28 (bare products 19, at 2.7 GHz). */
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

/* Compilers do not know that tiles are loaded from memory. */
#define WRITTEN() __asm__ volatile("" : : : "memory")

/* Statements, since gcc has these as assembly; they want the tile as a literal. */
#define ZERO_SUMS()                                                                                \
    _tile_zero(0);                                                                                 \
    _tile_zero(1);                                                                                 \
    _tile_zero(2);                                                                                 \
    _tile_zero(3)
#define STORE_SUMS(sums)                                                                           \
    _tile_stored(0, sums, 64);                                                                     \
    _tile_stored(1, (sums) + 256, 64);                                                             \
    _tile_stored(2, (sums) + 512, 64);                                                             \
    _tile_stored(3, (sums) + 768, 64);                                                             \
    WRITTEN()

/* ---- Both sides packed ---------------------------------------------------------------------- */
#define LOAD_A(term)                                                                               \
    _tile_loadd(4, a + 2 * (term)*TILE, 64);                                                       \
    _tile_loadd(5, a + (2 * (term) + 1) * TILE, 64)
#define LOAD_B(term)                                                                               \
    _tile_loadd(6, b + 2 * (term)*TILE, 64);                                                       \
    _tile_loadd(7, b + (2 * (term) + 1) * TILE, 64)
#define MULTIPLY()                                                                                 \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    _tile_dpbf16ps(1, 4, 7);                                                                       \
    _tile_dpbf16ps(2, 5, 6);                                                                       \
    _tile_dpbf16ps(3, 5, 7)

/* A panel of A by a panel of B, from zero: sums [2, 2] of 16 x 16. Terms are counted from 0 here. */
static void block(int64_t steps, const char *a, const char *b, float *sums)
{
    ZERO_SUMS();
    for (int64_t s = 0; s < steps; s++, a += TERMS * 2 * TILE, b += TERMS * 2 * TILE) {
        LOAD_A(0);
        LOAD_B(2);
        MULTIPLY();
        LOAD_B(1);
        MULTIPLY();
        LOAD_A(1);
        MULTIPLY();
        LOAD_B(0);
        MULTIPLY();
        LOAD_A(2);
        MULTIPLY();
        LOAD_A(0);
        MULTIPLY();
    }
    STORE_SUMS(sums);
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
                  (const char *)B + (size_t)(c / PANEL) * room(depth), sums);
            for (int64_t i = 0; i < 4; i++) {
                int64_t down = r + i / 2 * SIDE, across = c + i % 2 * SIDE;
                put_across(sums + i * SIDE * SIDE, rows - down, columns - across,
                           C + across * ldc + down, ldc, add);
            }
        }
    cgam_tiles_return(&theirs);
}

/* ---- One side split on its way -------------------------------------------------------------- */
/* A tall matrix of f32 or bf16. */
typedef struct tall {
    const char *at;
    int64_t rows, columns, size, ld; /* numbers; bytes of one, and from a row to the next */
} tall;

/* 512 numbers of it, for one tile a term: 16 lines, each of 16 numbers and of 16 more. */
typedef struct step {
    const char *at;
    int64_t line,
        more; /* bytes from a line to the next, and from its first numbers to the others */
} step;

/* `high` rows of `wide` numbers: 16 of 32, a row a line, or 32 of 16, of which those 16 apart share one. Where not all
 * are there, they are copied among zeros. */
INLINE step step_at(const tall *x, int64_t r, int64_t c, int64_t high, int64_t wide, char *spare)
{
    int64_t rows = at_most(x->rows - r, high), columns = at_most(x->columns - c, wide), ld = x->ld;
    const char *at = x->at + r * ld + c * x->size;
    if (rows < high || columns < wide) {
        memset(spare, 0, (size_t)(high * wide * x->size));
        for (int64_t i = 0; i < rows; i++)
            memcpy(spare + i * wide * x->size, at + i * ld, (size_t)(columns * x->size));
        at = spare;
        ld = wide * x->size;
    }
    return (step){at, ld, high == SIDE ? SIDE * x->size : SIDE * ld};
}

/* Packs a line, and fetches those that lie so many bytes ahead of its halves, or none. */
INLINE void pack_line(bool single, step x, int64_t i, int64_t ahead, char *packed)
{
    const char *first = x.at + i * x.line, *second = first + x.more;
    char *out = packed + i * 64;
    if (ahead) {
        _mm_prefetch(first + ahead, _MM_HINT_T1);
        _mm_prefetch(second + ahead, _MM_HINT_T1);
    }
    if (single) {
        __m512i both =
            _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)first)),
                               _mm256_loadu_si256((const __m256i *)second), 1);
        _mm512_store_si512(out, _mm512_permutexvar_epi16(side_by_side(), both));
    } else {
        __m512i term[TERMS];
        terms_of(_mm512_loadu_ps(first), _mm512_loadu_ps(second), term);
        UNROLL
        for (int t = 0; t < TERMS; t++) _mm512_store_si512(out + t * TILE, term[t]);
    }
}

static void pack(bool single, step x, char *packed)
{
    for (int64_t i = 0; i < SIDE; i++) pack_line(single, x, i, 0, packed);
    WRITTEN();
}

/* Tile v of the other side, whose panels lie so far apart; and what is packed between two products. */
#define OTHER(v, term) _tile_loadd(7, other + (v) / 2 * apart + (2 * (term) + (v) % 2) * TILE, 64)
#define NEXT(i) pack_line(single, next, i, ahead, packed)
#define WHOLE(v)                                                                                   \
    OTHER(v, 2);                                                                                   \
    PRODUCT(v, 4);                                                                                 \
    NEXT(4 * (v));                                                                                 \
    OTHER(v, 1);                                                                                   \
    PRODUCT(v, 4);                                                                                 \
    NEXT(4 * (v) + 1);                                                                             \
    PRODUCT(v, 5);                                                                                 \
    OTHER(v, 0);                                                                                   \
    PRODUCT(v, 5);                                                                                 \
    NEXT(4 * (v) + 2);                                                                             \
    PRODUCT(v, 6);                                                                                 \
    NEXT(4 * (v) + 3);                                                                             \
    PRODUCT(v, 4)
/* The same of rows that are a single term. */
#define SINGLE(v)                                                                                  \
    OTHER(v, 2);                                                                                   \
    PRODUCT(v, 4);                                                                                 \
    NEXT(4 * (v));                                                                                 \
    NEXT(4 * (v) + 1);                                                                             \
    OTHER(v, 1);                                                                                   \
    PRODUCT(v, 4);                                                                                 \
    NEXT(4 * (v) + 2);                                                                             \
    NEXT(4 * (v) + 3);                                                                             \
    OTHER(v, 0);                                                                                   \
    PRODUCT(v, 4)
#define EITHER(v)                                                                                  \
    if (tiles > (v) && single) {                                                                   \
        SINGLE(v);                                                                                 \
    } else if (tiles > (v)) {                                                                      \
        WHOLE(v);                                                                                  \
    }

/* The products of a step: what is packed in `mine`, by 1 to 4 tiles of the other side; meanwhile the next one is packed. */
#define MULTIPLY_STEP(name)                                                                        \
    INLINE void name(bool single, int64_t tiles, const char *mine, const char *other,              \
                     size_t apart, step next, int64_t ahead, char *packed)                         \
    {                                                                                              \
        _tile_loadd(4, mine, 64);                                                                  \
        if (!single) {                                                                             \
            _tile_loadd(5, mine + TILE, 64);                                                       \
            _tile_loadd(6, mine + 2 * TILE, 64);                                                   \
        }                                                                                          \
        EITHER(0)                                                                                  \
        EITHER(1)                                                                                  \
        EITHER(2)                                                                                  \
        EITHER(3)                                                                                  \
        for (int64_t i = 4 * tiles; i < SIDE; i++) {                                               \
            NEXT(i);                                                                               \
        }                                                                                          \
        WRITTEN();                                                                                 \
    }
#define PRODUCT(v, term) _tile_dpbf16ps(v, term, 7)
MULTIPLY_STEP(step_left)
#undef PRODUCT
#define PRODUCT(v, term) _tile_dpbf16ps(v, 7, term)
MULTIPLY_STEP(step_right)
#undef PRODUCT

enum { PACKED = TERMS * TILE, SPARE = STEP * SIDE * (int)sizeof(float) };

/* B: the panels of a slice, after them those of the next. */
INLINE void mul_rows_of(bool single, const tall *x, int64_t columns, const char *B, size_t slice,
                        float *C, int64_t ldc, bool add)
{
    _Alignas(64) float sums[4 * SIDE * SIDE];
    _Alignas(64) char packed[2][PACKED], spare[SPARE];
    int64_t tiles = (columns + SIDE - 1) / SIDE, depth = x->columns;
    int now = 0;
    pack(single, step_at(x, 0, 0, SIDE, STEP, spare), packed[now]);
    for (int64_t r = 0; r < x->rows; r += SIDE)
        for (int64_t from = 0; from < depth; from += CGAM_SPLIT_DEPTH) {
            int64_t end = at_most(from + CGAM_SPLIT_DEPTH, depth);
            size_t apart = room(end - from);
            const char *b = B + (size_t)(from / CGAM_SPLIT_DEPTH) * slice;
            ZERO_SUMS();
            for (int64_t k = from; k < end; k += STEP, b += TERMS * 2 * TILE, now ^= 1) {
                bool more = k + STEP < depth, last = r + SIDE >= x->rows;
                step next =
                    step_at(x, more || last ? r : r + SIDE, more ? k + STEP : 0, SIDE, STEP, spare);
                step_left(single, tiles, packed[now], b, apart, next, 0, packed[now ^ 1]);
            }
            STORE_SUMS(sums);
            for (int64_t v = 0; v < tiles; v++)
                put(sums + v * SIDE * SIDE, x->rows - r, columns - v * SIDE, C + r * ldc + v * SIDE,
                    ldc, add || from > 0);
        }
}

static void mul_rows(cgam_dtype type, int64_t rows, int64_t columns, int64_t depth, const void *A,
                     int64_t lda, const void *B, float *C, int64_t ldc, bool add)
{
    int64_t size = (int64_t)cgam_dtype_size(type);
    int64_t panels = (columns + CGAM_SPLIT_PANEL - 1) / CGAM_SPLIT_PANEL;
    size_t slice = (size_t)panels * room(CGAM_SPLIT_DEPTH);
    tall x = {A, rows, depth, size, lda * size};
    const cgam_tiles theirs = cgam_tiles_take();
    if (type == CGAM_F32) mul_rows_of(false, &x, columns, B, slice, C, ldc, add);
    else mul_rows_of(true, &x, columns, B, slice, C, ldc, add);
    cgam_tiles_return(&theirs);
}

INLINE void mul_down_of(bool single, const tall *x, int64_t rows, const char *A, float *C,
                        int64_t ldc)
{
    _Alignas(64) float sums[4 * SIDE * SIDE];
    _Alignas(64) char packed[2][PACKED], spare[SPARE];
    int64_t tiles = (rows + SIDE - 1) / SIDE;
    size_t apart = room(x->rows);
    int now = 0;
    pack(single, step_at(x, 0, 0, STEP, SIDE, spare), packed[now]);
    for (int64_t c = 0; c < x->columns; c += SIDE) {
        const char *a = A;
        ZERO_SUMS();
        for (int64_t k = 0; k < x->rows; k += STEP, a += TERMS * 2 * TILE, now ^= 1) {
            bool more = k + STEP < x->rows;
            step next = step_at(x, more ? k + STEP : 0,
                                more || c + SIDE >= x->columns ? c : c + SIDE, STEP, SIDE, spare);
            step_right(single, tiles, packed[now], a, apart, next, SIDE * x->size, packed[now ^ 1]);
        }
        STORE_SUMS(sums);
        for (int64_t v = 0; v < tiles; v++)
            put(sums + v * SIDE * SIDE, rows - v * SIDE, x->columns - c,
                C + c / SIDE * ldc + v * SIDE * SIDE, SIDE, true);
    }
}

static void mul_down(cgam_dtype type, int64_t rows, int64_t columns, int64_t depth, const void *A,
                     const void *B, int64_t ldb, float *C, int64_t ldc)
{
    int64_t size = (int64_t)cgam_dtype_size(type);
    tall x = {B, depth, columns, size, ldb * size};
    const cgam_tiles theirs = cgam_tiles_take();
    if (type == CGAM_F32) mul_down_of(false, &x, rows, A, C, ldc);
    else mul_down_of(true, &x, rows, A, C, ldc);
    cgam_tiles_return(&theirs);
}

extern const cgam_split cgam_split_amx;
const cgam_split cgam_split_amx = {room,  left, left_coded, left_down,
                                   right, mul,  mul_rows,   mul_down};
#endif
