/* split_amx.c: split.h on the tile unit of x86-64 (AMX), with AVX-512 around it.
 *
 * A tile is 16 rows of 64 bytes. TDPBF16PS takes 16 rows of A, 32 numbers each as they lie, and 16
 * rows of B with 32 numbers each, but as pairs side by side: row p of that tile holds numbers 2p and
 * 2p + 1 of all 16. So A is packed by copying and B is transposed; A is the one that has more rows.
 *
 * A panel is, for each step of 32 numbers and each term, two tiles. Four tiles hold the sums of two by
 * two, two a term of A, two a term of B; the order of the six products reloads as few as possible. */
#include "num/cpu/split.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"
#include "num/cpu/tiles_amx.h"

enum { TERMS = 3, STEP = 32, TILE = 1024, SIDE = 16 };

static int64_t steps_of(int64_t depth) { return (depth + STEP - 1) / STEP; }

static size_t room(int64_t depth) { return (size_t)steps_of(depth) * TERMS * 2 * TILE; }

/* The terms of 32 numbers, k < 32 of them given. */
INLINE void terms_of(const float *x, int64_t k, __m512i out[TERMS])
{
    __mmask32 given = (__mmask32)((UINT64_C(1) << k) - 1);
    __m512 low = _mm512_maskz_loadu_ps((__mmask16)given, x);
    __m512 high = _mm512_maskz_loadu_ps((__mmask16)(given >> 16), x + 16);
    for (int t = 0; t < TERMS; t++) {
        __m256i a = (__m256i)_mm512_cvtneps_pbh(low), b = (__m256i)_mm512_cvtneps_pbh(high);
        __m512i wide_a = _mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16);
        __m512i wide_b = _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16);
        low = _mm512_sub_ps(low, _mm512_castsi512_ps(wide_a));
        high = _mm512_sub_ps(high, _mm512_castsi512_ps(wide_b));
        out[t] = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
    }
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static void left(int64_t row, int64_t depth, const float *a, void *panel)
{
    char *out = (char *)panel + row / SIDE * TILE + row % SIDE * 64;
    for (int64_t k = 0; k < depth; k += STEP) {
        __m512i term[TERMS];
        if (a) terms_of(a + k, at_most(depth - k, STEP), term);
        else memset(term, 0, sizeof term);
        for (int t = 0; t < TERMS; t++, out += 2 * TILE) _mm512_store_si512(out, term[t]);
    }
}

static void left_coded(int64_t row, int64_t depth, const uint8_t *codes, const float (*values)[8],
                       void *panel)
{
    char *out = (char *)panel + row / SIDE * TILE + row % SIDE * 64;
    for (int64_t k = 0; k < depth; k += STEP, codes += STEP, values++) {
        __m512i code = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)codes));
        __m256 rest = _mm256_loadu_ps(*values);
        UNROLL
        for (int t = 0; t < TERMS; t++, out += 2 * TILE) {
            __m128i term = (__m128i)_mm256_cvtneps_pbh(rest);
            __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(term), 16);
            rest = _mm256_sub_ps(rest, _mm256_castsi256_ps(wide));
            _mm512_store_si512(out, _mm512_permutexvar_epi16(code, _mm512_castsi128_si512(term)));
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
                terms_of(B + (i * SIDE + j) * ldb + k, at_most(depth - k, STEP), term);
                for (int t = 0; t < TERMS; t++) pairs[t][j] = term[t];
            }
            for (int t = 0; t < TERMS; t++) {
                transpose(pairs[t]);
                memcpy(out + (2 * t + i) * TILE, pairs[t], TILE);
            }
        }
}

/* 16 x 16 sums [r, c] to C[c, r], of which so many are there. */
static void put(const float *sums, int64_t rows, int64_t columns, float *C, int64_t ldc, bool add)
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

/* Statements, since gcc has these as assembly; they want the tile as a literal. */
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

/* A panel of A by a panel of B, from zero: sums [2, 2] of 16 x 16. */
static void block(int64_t steps, const char *a, const char *b, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < steps; s++, a += TERMS * 2 * TILE, b += TERMS * 2 * TILE) {
        LOAD_A(2); /* terms are counted from 0 here */
        LOAD_B(0);
        MULTIPLY();
        LOAD_A(1);
        MULTIPLY();
        LOAD_B(1);
        MULTIPLY();
        LOAD_A(0);
        MULTIPLY();
        LOAD_B(0);
        MULTIPLY();
        LOAD_B(2);
        MULTIPLY();
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
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
                int64_t at = r + i / 2 * SIDE, from = c + i % 2 * SIDE;
                put(sums + i * SIDE * SIDE, rows - at, columns - from, C + from * ldc + at, ldc,
                    add);
            }
        }
    cgam_tiles_return(&theirs);
}

extern const cgam_split cgam_split_amx;
const cgam_split cgam_split_amx = {room, left, left_coded, right, mul};
#endif
