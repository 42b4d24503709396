/* split_amx.c: split.h on the tile unit of x86-64 (AMX), with AVX-512 around it.
 *
 * A tile is 16 lines of 64 bytes. TDPBF16PS multiplies 16 rows of A, 32 numbers each in their order in memory, by 16 rows
 * of B, 32 numbers each as pairs side by side: line p of that tile holds the p-th pair of all 16. The order in which 32
 * numbers are summed is free: number k stands beside k + 16, so that a shift and a blend make a line of A from two
 * vectors of f32. Only B has to be transposed.
 *
 * A panel has two tiles for each step of 32 numbers and each term. Four tiles hold the sums of two by two, two a term of
 * A, two a term of B; the order of the six products reloads as few as possible. */
#include "num/cpu/split.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"
#include "num/cpu/tiles_amx.h"

enum { TERMS = 3, STEP = 32, TILE = 1024, SIDE = 16 };

static int64_t steps_of(int64_t depth) { return (depth + STEP - 1) / STEP; }

static size_t room(int64_t depth) { return (size_t)steps_of(depth) * TERMS * 2 * TILE; }

/* The terms of 32 numbers, each rounded from the remainder of the previous ones; the last is exact. Uses integers: adds
 * half of the last place and cuts off the bits below it. */
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

/* The same for k <= 32 adjacent numbers. */
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

/* The permutation of 32 numbers of 16 bits. */
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
                cgam_tile_turn(pairs[t]);
                memcpy(out + (2 * t + i) * TILE, pairs[t], TILE);
            }
        }
}

/* ---- Products ------------------------------------------------------------------------------- */

/* Writes 16 x 16 sums [r, c] to C[c, r], or adds them; rows and columns say how many of C exist. */
static void put_across(const float *sums, int64_t rows, int64_t columns, float *C, int64_t ldc,
                       bool add)
{
    __m512i v[SIDE];
    if (rows <= 0) return;
    __mmask16 there = (__mmask16)((1u << at_most(rows, SIDE)) - 1);
    memcpy(v, sums, sizeof v);
    cgam_tile_turn(v);
    for (int64_t c = 0; c < at_most(columns, SIDE); c++) {
        __m512 sum = _mm512_castsi512_ps(v[c]);
        if (add) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(there, C + c * ldc), sum);
        _mm512_mask_storeu_ps(C + c * ldc, there, sum);
    }
}

/* Macros, because gcc implements these as assembly and requires a literal tile number. */
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
    CGAM_TILE_WRITTEN()

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

extern const cgam_split cgam_split_amx;
const cgam_split cgam_split_amx = {room, left, left_coded, right, mul};
#endif
