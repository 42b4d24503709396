/* int8_amx.c: int8.h for many vectors on the tile unit of x86-64 (AMX).
 *
 * TDPBSSD takes 16 rows, 64 numbers each as they lie, and 16 vectors with 64 numbers each, as fours side by
 * side: row p of that tile holds numbers 4p .. 4p + 3 of all 16. So rows are read where they are, and vectors
 * are laid out: for each 16 of them the steps of their blocks, [blocks, 16], and behind all of those their
 * tiles. Two by two tiles hold the sums of a block, which are exact; then they are scaled and added in f32. */
#include "num/cpu/int8.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"
#include "num/cpu/tiles_amx.h"

enum { TILE = 1024, SIDE = 16, WIDE = 64, STEPS = CGAM_INT8_BLOCK / WIDE };

static int64_t groups(int64_t m) /* of 16, two at a time */
{
    return (m + CGAM_INT8_TILE - 1) / CGAM_INT8_TILE * 2;
}
static int64_t wides(int64_t d) { return (d + WIDE - 1) / WIDE; }
static size_t scales(int64_t d) { return (size_t)cgam_int8_blocks(d) * SIDE * sizeof(float); }

static size_t room(int64_t m, int64_t d)
{
    return (size_t)groups(m) * (scales(d) + (size_t)wides(d) * TILE);
}

static void lay(int64_t m, int64_t d, const int8_t *x, const float *step, void *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    float *steps = out;
    char *tiles = (char *)out + (size_t)groups(m) * scales(d);
    memset(out, 0, room(m, d));
    for (int64_t v = 0; v < m; v++) {
        int64_t group = v / SIDE, place = v % SIDE;
        for (int64_t b = 0; b < blocks; b++)
            steps[(group * blocks + b) * SIDE + place] = step[v * blocks + b];
        char *to = tiles + group * wides(d) * TILE;
        for (int64_t j = 0; j < d; j++)
            to[j / WIDE * TILE + j % WIDE / 4 * 64 + place * 4 + j % 4] = x[v * d + j];
    }
}

/* out[r, c] += scale[r] step[c] sums[r, c] for 16 rows and the first `columns` of 16 vectors. */
INLINE void gather(const int32_t *sums, const float *scale, int64_t blocks, const float *step,
                   int64_t columns, bool first, float *out, int64_t ldo)
{
    if (columns <= 0) return;
    __mmask16 there = columns >= SIDE ? 0xffff : (__mmask16)((1u << columns) - 1);
    __m512 steps = _mm512_loadu_ps(step);
    for (int r = 0; r < SIDE; r++, out += ldo) {
        __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * SIDE));
        __m512 old = first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(there, out);
        __m512 by = _mm512_mul_ps(steps, _mm512_set1_ps(scale[r * blocks]));
        _mm512_mask_storeu_ps(out, there, _mm512_fmadd_ps(sum, by, old));
    }
}

/* The sums of one block, `steps` times 64 columns of it: 32 rows by 32 vectors as [2, 2] of 16 x 16. */
INLINE void block(const int8_t *rows, int64_t d, int64_t steps, const char *left, const char *right,
                  const int8_t *ahead, int32_t *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < steps; s++) {
        _tile_loadd(4, rows + s * WIDE, d);
        _tile_loadd(5, rows + s * WIDE + SIDE * d, d);
        _tile_loadd(6, left + s * TILE, 64);
        _tile_loadd(7, right + s * TILE, 64);
        for (int r = 0; ahead && r < 2 * SIDE; r++)
            __builtin_prefetch(ahead + s * WIDE + r * d, 0, 2);
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(1, sums + 256, 64);
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
}

/* 32 rows. */
static void band(const int8_t *rows, const float *scale, int64_t d, int64_t m, const void *X,
                 const int8_t *next, float *out)
{
    _Alignas(64) int32_t sums[4 * SIDE * SIDE];
    int64_t blocks = cgam_int8_blocks(d), tiles = wides(d);
    const float *steps = X;
    const char *T = (const char *)X + (size_t)groups(m) * scales(d);
    for (int64_t g = 0; g < groups(m); g += 2)
        for (int64_t b = 0; b < blocks; b++) {
            int64_t from = b * STEPS, deep = tiles - from < STEPS ? tiles - from : STEPS;
            const int8_t *ahead = next && g == 0 ? next + from * WIDE : NULL;
            block(rows + from * WIDE, d, deep, T + (g * tiles + from) * TILE,
                  T + ((g + 1) * tiles + from) * TILE, ahead, sums);
            for (int64_t k = 0; k < 4; k++) {
                int64_t at = k / 2 * SIDE, v = (g + k % 2) * SIDE;
                gather(sums + k * SIDE * SIDE, scale + at * blocks + b, blocks,
                       steps + ((g + k % 2) * blocks + b) * SIDE, m - v, b == 0, out + at * m + v,
                       m);
            }
        }
}

/* The last rows are taken with some of those before them, which gives the same again. */
static void dot(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                const void *X, float *out)
{
    enum { ROWS = CGAM_INT8_TILE };
    int64_t blocks = cgam_int8_blocks(d);
    const cgam_tiles theirs = cgam_tiles_take();
    for (int64_t i = 0; i < n; i += ROWS) {
        int64_t at = i + ROWS <= n ? i : n - ROWS;
        const int8_t *next = at + 2 * ROWS <= n ? rows + (at + ROWS) * d : NULL;
        band(rows + at * d, scale + at * blocks, d, m, X, next, out + at * m);
    }
    cgam_tiles_return(&theirs);
}

extern const cgam_int8 cgam_int8_many_amx;
const cgam_int8 cgam_int8_many_amx = {room, lay, dot, CGAM_INT8_MOST, NULL};
#endif
