/* int8_amx.c: int8.h for many vectors on the tile unit of x86-64 (AMX).
 *
 * TDPBSSD multiplies 16 rows of 64 numbers, in their order in memory, by 16 vectors of 64 numbers in groups of four side
 * by side: row p of that tile holds numbers 4p .. 4p + 3 of all 16. So rows are read in place, and vectors are packed.
 * Up to 64 vectors form a group of four or two tiles. A group starts with the steps of its blocks, [blocks, tiles, 16];
 * the tiles of all groups, [64 columns, tiles], follow the steps of all groups.
 *
 * Four tiles hold the exact sums of a block: 16 rows by 64 vectors, so that a row is loaded once, or 32 by 32. Then the
 * sums are scaled and added in f32. The unit works in parallel with other instructions, so sums are stored, and scaled
 * between the products that come next. Scaling after the products took half as long again; at a hundred columns, twice
 * as long.
 *
 * The limit is the first-level cache, which a block of 64 vectors (32 KB), sums and scores share: from the second level a
 * product of 4096 columns takes 0.77 of its time with two sets of sums and every row loaded twice; two thirds of this
 * are the products alone, with random numbers. Rows arrive from memory fastest by the CPU's own prefetcher, which follows
 * about 32 pages. So 32 pages of rows are processed from end to end, though a block of vectors could serve more. For rows
 * that fill pages only the beginnings are fetched explicitly: 1.3-1.6 of reading them, against 1.6-1.7 with 128 rows at
 * once and all lines fetched explicitly (Sapphire Rapids, one thread). Shorter rows leave their pages too soon for
 * the prefetcher. */
#include "num/cpu/int8.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"
#include "num/cpu/tiles_amx.h"

enum {
    TILE = 1024,
    SIDE = 16,
    WIDE = 64,
    STEPS = CGAM_INT8_BLOCK / WIDE,
    PARTY = 4, /* tiles of vectors that go side by side, or half as many */
    BAND = CGAM_INT8_TILE,
    PAGE = 4096,
    NEAR = 32 * PAGE, /* bytes of rows processed together */
    BEGINNING = 4     /* lines of a row of a page or more that are fetched by hand */
};

/* Tiles of the vectors that go side by side from the one at `from` on. */
static int64_t party(int64_t m, int64_t from)
{
    return m - from > PARTY / 2 * SIDE ? PARTY : PARTY / 2;
}
static int64_t tiles_of(int64_t m) /* all of them */
{
    int64_t whole = m / (PARTY * SIDE) * PARTY;
    return whole + (m > whole * SIDE ? party(m, whole * SIDE) : 0);
}
static int64_t wides(int64_t d) { return (d + WIDE - 1) / WIDE; }
static size_t scales(int64_t d) { return (size_t)cgam_int8_blocks(d) * SIDE * sizeof(float); }

static size_t room(int64_t m, int64_t d)
{
    return (size_t)tiles_of(m) * (scales(d) + (size_t)wides(d) * TILE);
}

static void lay(int64_t m, int64_t d, const int8_t *x, const float *step, void *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    memset(out, 0, room(m, d));
    for (int64_t v = 0; v < m; v++) {
        int64_t first = v / (PARTY * SIDE) * PARTY, tile = v / SIDE - first, place = v % SIDE;
        int64_t side = party(m, first * SIDE);
        float *steps = (float *)out + first * blocks * SIDE;
        char *tiles = (char *)out + (size_t)tiles_of(m) * scales(d) + first * wides(d) * TILE;
        for (int64_t b = 0; b < blocks; b++)
            steps[(b * side + tile) * SIDE + place] = step[v * blocks + b];
        for (int64_t j = 0; j < d; j += 4)
            memcpy(tiles + (j / WIDE * side + tile) * TILE + j % WIDE * SIDE + place * 4,
                   x + v * d + j, (size_t)(d - j < 4 ? d - j : 4));
    }
}

/* Vectors side by side and the rows they meet. */
typedef struct walk {
    int64_t d, m, blocks, wides;
    const float *steps; /* [blocks, side, 16] */
    const char *tiles;  /* [wides, side] */
    __mmask16 last;     /* of their last tile: is there a vector at all */
} walk;

/* The sums of a block, [rows / 16, side] of 16 x 16, and where they go to. */
typedef struct sums {
    _Alignas(64) int32_t I[PARTY * SIDE * SIDE];
    const float
        *scale; /* of the first row, `blocks` from row to row; NULL = there are no sums yet */
    const float *step; /* of the vectors */
    float *out;        /* of the first row, m from row to row */
    bool more;         /* is there something to add to */
} sums;

/* out += scale step I for rows [from, end). */
INLINE void gather(int side, const walk *w, const sums *x, int64_t from, int64_t end)
{
    const __mmask16 all = 0xffff, last = w->last, old = x->more ? all : 0, old_last = old & last;
    int64_t blocks = w->blocks, m = w->m;
    const float *scale = x->scale + from * blocks;
    float *out = x->out + from * m;
    __m512 step[PARTY];
    UNROLL
    for (int k = 0; k < side; k++) step[k] = _mm512_load_ps(x->step + k * SIDE);
    for (int64_t r = from; r < end; r++, scale += blocks, out += m) {
        const int32_t *I = x->I + (r / SIDE * side * SIDE + r % SIDE) * SIDE;
        __m512 by = _mm512_set1_ps(*scale);
        UNROLL
        for (int k = 0; k < side; k++) {
            __m512 a = _mm512_maskz_loadu_ps(k + 1 < side ? old : old_last, out + k * SIDE);
            __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(I + k * SIDE * SIDE));
            a = _mm512_fmadd_ps(sum, _mm512_mul_ps(step[k], by), a);
            _mm512_mask_storeu_ps(out + k * SIDE, k + 1 < side ? all : last, a);
        }
    }
}

/* What is done between products: rows [from, end) of the sums before are gathered, and lines of as many rows fetched. */
INLINE void between(int side, const walk *w, const sums *x, const int8_t *ahead, int64_t lines,
                    int64_t from, int64_t end)
{
    for (int64_t r = from; r < end; r++)
        for (int64_t k = 0; k < lines; k++) __builtin_prefetch(ahead + r * w->d + k * WIDE, 0, 2);
    if (x->scale) gather(side, w, x, from, end);
}

/* Sums of products of one block, 64 columns `deep` times, take the place of those in x, which are gathered meanwhile. */
INLINE void block(int side, int64_t deep, const walk *w, const int8_t *rows, const char *tiles,
                  const int8_t *ahead, int64_t lines, sums *x)
{
    int64_t height = PARTY / side * SIDE, share = (height + 2 * deep - 1) / (2 * deep), done = 0;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t s = 0; s < deep; s++, rows += WIDE, tiles += side * TILE) {
        int64_t some = done + share < height ? done + share : height;
        int64_t end = some + share < height ? some + share : height;
        _tile_loadd(4, rows, w->d);
        _tile_loadd(6, tiles, 64);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(7, tiles + TILE, 64);
        _tile_dpbssd(1, 4, 7);
        between(side, w, x, ahead, lines, done, some);
        if (side == PARTY) {
            _tile_loadd(5, tiles + 2 * TILE, 64);
            _tile_dpbssd(2, 4, 5);
            _tile_loadd(6, tiles + 3 * TILE, 64);
            _tile_dpbssd(3, 4, 6);
        } else {
            _tile_loadd(5, rows + SIDE * w->d, w->d);
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        }
        between(side, w, x, ahead, lines, some, end);
        done = end;
    }
    _tile_stored(0, x->I, 64);
    _tile_stored(1, x->I + 256, 64);
    _tile_stored(2, x->I + 512, 64);
    _tile_stored(3, x->I + 768, 64);
}

/* n rows, a multiple of 32; what is left to be gathered stays in x. */
INLINE void slab(int side, const walk *w, const int8_t *rows, const float *scale, int64_t n,
                 float *out, sums *x)
{
    int64_t d = w->d, height = PARTY / side * SIDE;
    for (int64_t b = 0; b < w->blocks; b++)
        for (int64_t i = 0; i < n; i += height) {
            int64_t from = b * STEPS, deep = w->wides - from < STEPS ? w->wides - from : STEPS;
            const int8_t *here = rows + i * d + from * WIDE, *ahead = here + n * d;
            const char *tiles = w->tiles + from * side * TILE;
            int64_t lines = deep;
            if (d >= PAGE) {
                ahead = rows + (n + i) * d;
                lines = b + 1 == w->blocks ? BEGINNING : 0;
            }
            if (deep == STEPS) block(side, STEPS, w, here, tiles, ahead, lines, x);
            else if (deep == 2) block(side, 2, w, here, tiles, ahead, lines, x);
            else block(side, deep, w, here, tiles, ahead, lines, x);
            x->scale = scale + i * w->blocks + b;
            x->step = w->steps + b * side * SIDE;
            x->out = out + i * w->m;
            x->more = b > 0;
        }
}

/* All rows by vectors of which out has the first. The last rows are taken with some of those before them, which gives
 * the same again. */
INLINE void all_rows(int side, const walk *w, const int8_t *rows, const float *scale, int64_t n,
                     float *out)
{
    sums x = {.scale = NULL};
    int64_t tall = NEAR / w->d / BAND * BAND, count;
    if (tall < BAND) tall = BAND;
    for (int64_t i = 0; i < n; i += count) {
        int64_t left = (n - i) / BAND * BAND, at = left > 0 ? i : n - BAND;
        count = left == 0 ? BAND : left < tall ? left : tall;
        slab(side, w, rows + at * w->d, scale + at * w->blocks, count, out + at * w->m, &x);
    }
    if (x.scale) gather(side, w, &x, 0, PARTY / side * SIDE);
}

static void dot(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                const void *X, float *out)
{
    walk w = {.d = d, .m = m, .blocks = cgam_int8_blocks(d), .wides = wides(d)};
    const cgam_tiles theirs = cgam_tiles_take();
    w.steps = X;
    w.tiles = (const char *)X + (size_t)tiles_of(m) * scales(d);
    for (int64_t v = 0; v < m; v += PARTY * SIDE) {
        int64_t side = party(m, v);
        w.last = v + side * SIDE <= m ? 0xffff : 0;
        if (side == PARTY) all_rows(PARTY, &w, rows, scale, n, out + v);
        else all_rows(PARTY / 2, &w, rows, scale, n, out + v);
        w.steps += side * w.blocks * SIDE;
        w.tiles += side * w.wides * TILE;
    }
    cgam_tiles_return(&theirs);
}

extern const cgam_int8 cgam_int8_many_amx;
const cgam_int8 cgam_int8_many_amx = {room, lay, dot, CGAM_INT8_MOST, NULL};
#endif
