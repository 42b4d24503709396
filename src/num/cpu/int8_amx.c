/* int8_amx.c: int8.h for many vectors on the tile unit of x86-64 (AMX).
 *
 * TDPBSSD takes 16 rows, 64 numbers each as they lie, and 16 vectors with 64 numbers each, as fours side by
 * side: row p of that tile holds numbers 4p .. 4p + 3 of all 16. So rows are read where they are, and vectors
 * are laid out: for each 16 of them the steps of their blocks, [blocks, 16], and behind all of those their
 * tiles. Two by two tiles hold the sums of a block, which are exact; then they are scaled and added in f32.
 *
 * The unit works by itself as long as there is something else to do: sums are stored, and scaled between the
 * products of the next 32 rows or vectors. After those it took half as long again, at a hundred columns twice. */
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
        for (int64_t j = 0; j < d; j += 4)
            memcpy(to + j / WIDE * TILE + j % WIDE * SIDE + place * 4, x + v * d + j,
                   (size_t)(d - j < 4 ? d - j : 4));
    }
}

/* The sums of 32 rows and 32 vectors in one block, [2, 2] of 16 x 16, and where they go to. */
typedef struct sums {
    _Alignas(64) int32_t I[4 * SIDE * SIDE];
    const float *scale; /* of the first row, `blocks` from row to row */
    const float *step;  /* of 16 vectors, those of the others 16 blocks behind */
    float *out;         /* of the first row, m from row to row */
    __mmask16 old[2];   /* is there something to add to, */
    __mmask16 right;    /* and are there 32 vectors, not 16 */
} sums;

/* out += scale step I for rows [from, end). */
INLINE void gather(const sums *x, int64_t from, int64_t end, int64_t blocks, int64_t m)
{
    __m512 left = _mm512_loadu_ps(x->step), right = _mm512_loadu_ps(x->step + blocks * SIDE);
    const float *scale = x->scale + from * blocks;
    float *out = x->out + from * m;
    for (int64_t r = from; r < end; r++, scale += blocks, out += m) {
        const int32_t *I = x->I + (r / SIDE * 2 * SIDE + r % SIDE) * SIDE;
        __m512 by = _mm512_set1_ps(*scale);
        __m512 a = _mm512_maskz_loadu_ps(x->old[0], out);
        __m512 b = _mm512_maskz_loadu_ps(x->old[1], out + SIDE);
        a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(I)), _mm512_mul_ps(left, by), a);
        b = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(I + SIDE * SIDE)),
                            _mm512_mul_ps(right, by), b);
        _mm512_storeu_ps(out, a);
        _mm512_mask_storeu_ps(out + SIDE, x->right, b);
    }
}

/* Rows [n, d] by vectors, both as they are for one block. */
typedef struct factors {
    const int8_t *rows;
    const char *left, *right; /* tiles of 16 vectors */
    const int8_t *ahead;      /* what is fetched meanwhile, `lines` lines for 64 columns */
} factors;

/* Sums of products of one block, 64 columns `deep` times; those before them are gathered meanwhile. */
INLINE void block(int64_t deep, const factors *f, int64_t d, int64_t lines, const sums *before,
                  int64_t blocks, int64_t m, int32_t *to)
{
    enum { ROWS = 2 * SIDE };
    int64_t share = (ROWS + deep - 1) / deep, done = 0;
    const int8_t *ahead = f->ahead;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < deep; s++) {
        _tile_loadd(6, f->left + s * TILE, 64);
        _tile_loadd(4, f->rows + s * WIDE, d);
        _tile_loadd(7, f->right + s * TILE, 64);
        _tile_loadd(5, f->rows + s * WIDE + SIDE * d, d);
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
        for (int64_t k = 0; k < lines; k++, ahead += 64) __builtin_prefetch(ahead, 0, 2);
        int64_t end = done + share < ROWS ? done + share : ROWS;
        if (before) gather(before, done, end, blocks, m);
        done = end;
    }
    _tile_stored(0, to, 64);
    _tile_stored(1, to + 256, 64);
    _tile_stored(2, to + 512, 64);
    _tile_stored(3, to + 768, 64);
}

/* n rows, a multiple of 32. A block of all vectors, 32 KB of 64, stays near while bands of 32 rows go by, and as many
 * bytes as they have are fetched from behind them, in order. */
static void slab(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                 const void *X, float *out)
{
    enum { BAND = CGAM_INT8_TILE };
    sums both[2];
    const sums *before = NULL;
    int64_t blocks = cgam_int8_blocks(d), tiles = wides(d), all = groups(m), turn = 0;
    int64_t each = tiles * (all / 2), lines = (BAND * d / 64 + each - 1) / each;
    const int8_t *ahead = rows + n * d;
    const char *T = (const char *)X + (size_t)all * scales(d);
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t i = 0; i < n; i += BAND)
            for (int64_t g = 0; g < all; g += 2, turn ^= 1) {
                int64_t from = b * STEPS, deep = tiles - from < STEPS ? tiles - from : STEPS;
                const char *tile = T + (g * tiles + from) * TILE;
                factors f = {rows + i * d + from * WIDE, tile, tile + tiles * TILE, ahead};
                sums *x = &both[turn];
                x->scale = scale + i * blocks + b;
                x->step = (const float *)X + (g * blocks + b) * SIDE;
                x->out = out + i * m + g * SIDE;
                x->right = m - g * SIDE > SIDE ? 0xffff : 0;
                x->old[0] = b > 0 ? 0xffff : 0;
                x->old[1] = b > 0 ? x->right : 0;
                if (deep == STEPS) block(STEPS, &f, d, lines, before, blocks, m, x->I);
                else if (deep == 2) block(2, &f, d, lines, before, blocks, m, x->I);
                else block(deep, &f, d, lines, before, blocks, m, x->I);
                ahead += deep * lines * 64;
                before = x;
            }
    if (before) gather(before, 0, BAND, blocks, m);
}

/* The last rows are taken with some of those before them, which gives the same again. */
static void dot(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                const void *X, float *out)
{
    enum {
        BAND = CGAM_INT8_TILE,
        NEAR = 1 << 19
    }; /* bytes, of which the cache holds twice as many */
    int64_t blocks = cgam_int8_blocks(d), tall = NEAR / d / BAND * BAND, count;
    const cgam_tiles theirs = cgam_tiles_take();
    if (tall < BAND) tall = BAND;
    for (int64_t i = 0; i < n; i += count) {
        int64_t left = (n - i) / BAND * BAND, at = left > 0 ? i : n - BAND;
        count = left == 0 ? BAND : left < tall ? left : tall;
        slab(rows + at * d, scale + at * blocks, count, d, m, X, out + at * m);
    }
    cgam_tiles_return(&theirs);
}

extern const cgam_int8 cgam_int8_many_amx;
const cgam_int8 cgam_int8_many_amx = {room, lay, dot, CGAM_INT8_MOST, NULL};
#endif
