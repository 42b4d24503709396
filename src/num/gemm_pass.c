/* gemm_pass.c: see gemm_pass.h.
 *
 * Sizes. The vectors of CGAM_GEMM_PASS_DEPTH terms are 32 KiB at most, which stay in the first-level cache
 * while a band of rows goes by. They lie in panels of what a register tile takes side by side: where that is
 * less than all of them, a strip out of [d, 64] would be lines at distances of 256 bytes, which share an eighth of
 * the sets of a cache (Zen 3, d = 2048, products alone: 0.80 of sgemm; in panels 0.98). A band is narrow enough for
 * the hardware to follow its rows; rows too short for that are fetched ahead. A tile shares the second-level cache
 * with the vectors and the sums; CPUs with short vectors have 512 KB of it, and pages for 64 rows
 * (readout of tiles of 72 rows of 8 KB there: 0.54 of sgemm, of 48 0.75).
 *
 * A unit for tiles takes 16 rows at a time against all vectors, whole rows up to STRETCH columns: the hardware follows 16 rows that
 * are read from end to end, and fetching pieces of them ahead by instructions costs more than it saves (d = 2048, products
 * alone: 232 GF/s, by 512 columns 208, by 64 with the next ones fetched 159). The vectors of a stretch, 6 bytes a number, have
 * to stay in the second-level cache meanwhile. READ_ROWS rows are added to sums at a time: with twice as many their lines, which lie
 * d numbers apart, share too few sets of that cache where d is a power of two. */
#include "num/gemm_pass.h"

#include "num/ranks.h"

#include <string.h>

enum {
    CHUNKS_FEW = 16,
    BAND = 24,
    TILE_BYTES = 600 << 10, /* where all vectors go side by side, and else */
    TILE_BYTES_LESS = 400 << 10,
    TILE_ROWS_MIN = 2 * BAND,
    SHORT_ROW = 2048, /* bytes */
    BLOCK_ROW = 384,  /* bytes */
    /* From so many vectors on the unit for tiles pays, which takes 32 at a time. Rows of f32, which are split, have to be
     * long for it. */
    SPLIT_VECTORS = 17,
    SPLIT_VECTORS_F32 = 33,
    SPLIT_COLUMNS_F32 = 512,
    SPLIT_BYTES = 1024 << 10, /* of a tile, in */
    SPLIT_ROWS_MIN = 128,
    SPLIT_ROWS_MAX = 256,
    READ_ROWS = 64,
    SLICE = CGAM_SPLIT_DEPTH,
    STRETCH = 2048, /* columns that are scored at a time */
};

_Static_assert((int)CGAM_GEMM_PASS_WIDTH <= CGAM_SPLIT_GROUP, "a tile of rows meets all vectors");
_Static_assert(STRETCH % SLICE == 0, "stretches are whole slices");

static size_t size_of(const cgam_gemm_pass *s) { return s->wide ? sizeof(double) : sizeof(float); }

static void *offset(const cgam_gemm_pass *s, const void *base, int64_t elements)
{
    return !base ? NULL : (char *)(uintptr_t)base + elements * (int64_t)size_of(s);
}

int64_t cgam_gemm_pass_begin(const cgam_gemm_pass *s, int64_t chunk)
{
    return s->Z->n * chunk / s->chunks;
}

int64_t cgam_gemm_pass_chunks(int64_t n, int64_t tile)
{
    return cgam_rows_parts(n, tile, CHUNKS_FEW);
}

/* Columns of the panel that begins at column c. */
static int64_t panel_width(const cgam_gemm_pass *s, int64_t c)
{
    int64_t best = s->wide ? s->gemm->best64 : s->gemm->best32;
    return s->width - c < best ? s->width - c : best;
}

static void lay(const cgam_gemm_pass *s, const double *X, void *Q)
{
    int64_t d = s->Z->d;
    for (int64_t c = 0, width; c < s->vectors; c += width) {
        width = panel_width(s, c);
        for (int64_t v = c; v < c + width && v < s->vectors; v++)
            for (int64_t j = 0; j < d; j++) {
                int64_t at = c * d + j * width + v - c;
                if (s->wide) ((double *)Q)[at] = X[v * d + j];
                else ((float *)Q)[at] = (float)X[v * d + j];
            }
    }
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static size_t panels_of(int64_t vectors)
{
    return (size_t)((vectors + CGAM_SPLIT_PANEL - 1) / CGAM_SPLIT_PANEL);
}

/* Where numbers from k on begin in split vectors, or where they end: all before are whole slices. */
static size_t split_offset(const cgam_gemm_pass *s, int64_t k)
{
    size_t slice = panels_of(s->width) * s->split->room(SLICE);
    int64_t rest = k % SLICE;
    return (size_t)(k / SLICE) * slice + (rest ? panels_of(s->width) * s->split->room(rest) : 0);
}

static void lay_split(const cgam_gemm_pass *s, const double *X, char *Q)
{
    int64_t d = s->Z->d;
    for (int64_t k = 0; k < d; k += SLICE) {
        int64_t depth = at_most(d - k, SLICE);
        for (int64_t v = 0; v < s->width; v += CGAM_SPLIT_PANEL) {
            int64_t some = at_most(s->vectors - v, CGAM_SPLIT_PANEL);
            for (int64_t i = 0; i < some; i++)
                for (int64_t j = 0; j < depth; j++)
                    s->flat[i * depth + j] = (float)X[(v + i) * d + k + j];
            s->split->right(some, depth, s->flat, depth,
                            Q + split_offset(s, k) +
                                (size_t)(v / CGAM_SPLIT_PANEL) * s->split->room(depth));
        }
    }
}

void cgam_gemm_pass_load(cgam_gemm_pass *s)
{
    if (s->X && s->split) lay_split(s, s->X, s->Q);
    else if (s->X) lay(s, s->X, s->Q);
    if (s->X2 && s->split) lay_split(s, s->X2, s->Q2);
    else if (s->X2) lay(s, s->X2, s->Q2);
}

/* Shapes: of a tile of rows, and of the sums. */
static void cut(cgam_gemm_pass *s)
{
    int64_t lanes = s->gemm->lanes32, d = s->Z->d;
    s->width = (s->vectors + lanes - 1) / lanes * lanes;
    s->ld = d + 16; /* rows at power-of-two distances collide in the cache */
    s->block = s->split ? CGAM_SPLIT_BLOCK : 1;
    s->panel = (d + s->block - 1) / s->block * s->block * s->width;
    int64_t bytes = s->split                                 ? SPLIT_BYTES
                    : s->gemm->best32 < CGAM_GEMM_PASS_WIDTH ? TILE_BYTES_LESS
                                                             : TILE_BYTES;
    int64_t by = s->split ? READ_ROWS : BAND, least = s->split ? SPLIT_ROWS_MIN : TILE_ROWS_MIN;
    int64_t rows = bytes / ((int64_t)size_of(s) * d) / by * by;
    rows = at_most(rows, s->split ? SPLIT_ROWS_MAX : CGAM_GEMM_PASS_ROWS);
    s->tile = rows < least ? least : rows;
    s->chunks = cgam_gemm_pass_chunks(s->Z->n, s->tile);
}

/* The unit for tiles, where it is there and pays. */
static const cgam_split *split_of(const cgam_gemm_pass *s)
{
    const cgam_rows *Z = s->Z;
    bool half = Z->dtype == CGAM_BF16;
    if (s->wide) return NULL;
    if (s->vectors < (half ? SPLIT_VECTORS : SPLIT_VECTORS_F32)) return NULL;
    if (!half && Z->d < SPLIT_COLUMNS_F32) return NULL;
    return Z->cpu->split;
}

cgam_status cgam_gemm_pass_new(cgam_gemm_pass *s)
{
    const cgam_rows *Z = s->Z;
    s->gemm = Z->cpu->gemm;
    s->split = split_of(s);
    cut(s);
    size_t bytes = s->split ? split_offset(s, Z->d) : (size_t)(Z->d * s->width) * size_of(s);
    s->Q = s->X ? cgam_zalloc(s->env, bytes, 1) : NULL;
    s->Q2 = s->X2 ? cgam_zalloc(s->env, bytes, 1) : NULL;
    s->Y = s->reads ? cgam_parts_new(s->env, Z, s->chunks, s->panel) : NULL;
    if (s->split) s->flat = cgam_alloc(s->env, (size_t)CGAM_SPLIT_PANEL * SLICE, sizeof *s->flat);
    if ((s->X && !s->Q) || (s->X2 && !s->Q2) || (s->reads && !s->Y) || (s->split && !s->flat))
        return cgam_fail_nomem(s->env, "a batch of queries");
    cgam_gemm_pass_load(s);
    return CGAM_OK;
}

void cgam_gemm_pass_free(cgam_gemm_pass *s)
{
    cgam_free(s->env, s->Q);
    cgam_free(s->env, s->Q2);
    cgam_free(s->env, s->flat);
    if (s->Y) cgam_parts_free(s->env, s->Z, s->chunks, s->panel, s->Y);
    s->Q = s->Q2 = NULL;
    s->flat = NULL;
    s->Y = NULL;
}

static bool in_place(const cgam_gemm_pass *s)
{
    if (s->split && s->Z->dtype == CGAM_BF16) return true;
    return s->Z->dtype == (s->wide ? CGAM_F64 : CGAM_F32);
}

/* Rows [i, i + count) without their scale: where they are, or converted into room. */
static const void *fetch(const cgam_gemm_pass *s, int64_t i, int64_t count, void *room, int64_t *ld)
{
    const cgam_rows *Z = s->Z;
    *ld = Z->stride;
    if (in_place(s)) return cgam_rows_at(Z, i);
    *ld = s->ld;
    for (int64_t r = 0; r < count; r++) {
        void *to = offset(s, room, r * s->ld);
        if (s->wide) Z->cpu->f64->scaled[Z->dtype](cgam_rows_at(Z, i + r), Z->d, 1, to);
        else Z->cpu->f64->to_f32[Z->dtype](cgam_rows_at(Z, i + r), Z->d, to);
    }
    return room;
}

static void multiply(const cgam_gemm_pass *s, int64_t rows, int64_t columns, int64_t depth,
                     const void *A, int64_t ra, int64_t ka, const void *B, int64_t ldb, void *C,
                     int64_t ldc, const void *next, const void *stop)
{
    if (s->wide) s->gemm->mul64(rows, columns, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
    else s->gemm->mul32(rows, columns, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
}

/* S [count, width] = scores of a band against Q. */
static void score(const cgam_gemm_pass *s, const void *rows, int64_t ld, int64_t count,
                  const void *Q, void *S, const char *next, const char *stop)
{
    int64_t width = s->width, d = s->Z->d;
    memset(S, 0, (size_t)(count * width) * size_of(s));
    for (int64_t k = 0; k < d; k += CGAM_GEMM_PASS_DEPTH) {
        int64_t depth = d - k < CGAM_GEMM_PASS_DEPTH ? d - k : CGAM_GEMM_PASS_DEPTH;
        for (int64_t c = 0, some; c < width; c += some) {
            some = panel_width(s, c);
            multiply(s, count, some, depth, offset(s, rows, k), ld, 1,
                     offset(s, Q, c * d + k * some), some, offset(s, S, c), width,
                     next && c == 0 ? next + k * BAND * (int64_t)size_of(s) : NULL, stop);
        }
    }
}

/* What rows are when a unit for tiles multiplies them. */
static cgam_dtype type_of(const cgam_gemm_pass *s) { return in_place(s) ? s->Z->dtype : CGAM_F32; }

/* The same by tiles, for as many rows as there are. */
static void score_split(const cgam_gemm_pass *s, const void *rows, int64_t ld, int64_t count,
                        const char *Q, float *S)
{
    int64_t d = s->Z->d;
    int64_t size = (int64_t)cgam_dtype_size(type_of(s));
    for (int64_t k = 0; k < d; k += STRETCH)
        s->split->mul_rows(type_of(s), count, s->width, at_most(d - k, STRETCH),
                           (const char *)rows + k * size, ld, Q + split_offset(s, k), S, s->width,
                           k > 0);
}

static void scale_rows(const cgam_gemm_pass *s, int64_t i, int64_t count, void *S)
{
    const double *scale = s->Z->scale ? cgam_rows_entries(s->Z, s->Z->scale, i) : NULL;
    for (int64_t r = 0; scale && S && r < count; r++)
        for (int64_t c = 0; c < s->width; c++) {
            if (s->wide) ((double *)S)[r * s->width + c] *= scale[r];
            else ((float *)S)[r * s->width + c] *= (float)scale[r];
        }
}

typedef struct space {
    void *rows; /* [tile, ld] where rows have to be converted */
    void *S, *S2;
    float *Y;      /* [panel] sums of a few tiles */
    void *block;   /* [tile, BLOCK_ROW bytes]; NULL: the readout takes whole rows */
    char *weights; /* with split: those of READ_ROWS, packed */
    double *shrink;
} space;

static void shrink(const cgam_gemm_pass *s, cgam_gemm_pass_tile *t, float *few, double *Y)
{
    int64_t width = s->width, block = s->block;
    for (int64_t at = 0; at < s->panel; at += block) {
        double by = t->shrink[at / block % width];
        for (int64_t k = at; k < at + block; k++) {
            Y[k] *= by;
            if (few) few[k] *= (float)by;
        }
    }
    for (int64_t c = 0; c < width; c++) t->shrink[c] = 1;
    t->shrinks = false;
}

/* Some lines at a time: a copy of so few bytes by gcc's "rep movs" takes three times as long. */
static void copy(size_t bytes, const char *from, char *to)
{
    for (; bytes >= 64; bytes -= 64, from += 64, to += 64) memcpy(to, from, 64);
    memcpy(to, from, bytes);
}

/* Y += the rows of a tile by their weights. Where vectors are taken by panels, columns go by blocks, which are
 * copied: all panels find them in the first-level cache, in which rows at a distance of some pages have no room together. */
static void read_out(const cgam_gemm_pass *s, const cgam_gemm_pass_tile *t, const void *rows,
                     int64_t ld, void *block, void *Y, const char *next, const char *stop)
{
    int64_t d = s->Z->d, width = s->width, wide = BLOCK_ROW / (int64_t)size_of(s);
    if (!block) {
        multiply(s, d, width, t->count, rows, 1, ld, t->S, width, Y, width, next, stop);
        return;
    }
    for (int64_t j = 0; j < d; j += wide) {
        int64_t some = d - j < wide ? d - j : wide;
        for (int64_t r = 0; r < t->count; r++)
            copy((size_t)some * size_of(s), offset(s, rows, r * ld + j),
                 offset(s, block, r * wide));
        const char *from = next ? next + (stop - next) * j / d : NULL;
        const char *to = next ? next + (stop - next) * (j + some) / d : NULL;
        multiply(s, some, width, t->count, block, 1, wide, t->S, width, offset(s, Y, j * width),
                 width, from, to);
    }
}

/* The same by tiles. */
static void read_out_split(const cgam_gemm_pass *s, const cgam_gemm_pass_tile *t, const void *rows,
                           int64_t ld, const space *w)
{
    for (int64_t u = 0; u < t->count; u += READ_ROWS) {
        int64_t depth = at_most(t->count - u, READ_ROWS);
        for (int64_t v = 0; v < s->width; v += CGAM_SPLIT_PANEL)
            s->split->left_down(at_most(s->width - v, CGAM_SPLIT_PANEL), depth,
                                (const float *)t->S + u * s->width + v, s->width,
                                w->weights +
                                    (size_t)(v / CGAM_SPLIT_PANEL) * s->split->room(depth));
        s->split->mul_down(type_of(s), s->width, s->Z->d, depth, w->weights,
                           (const char *)rows + u * ld * (int64_t)cgam_dtype_size(type_of(s)), ld,
                           w->Y, s->block * s->width);
    }
}

/* S and S2 of a tile, whose rows are at `rows` then, ld apart. */
static const void *score_tile(const cgam_gemm_pass *s, const cgam_gemm_pass_tile *t, space *w,
                              int64_t *ld)
{
    const cgam_rows *Z = s->Z;
    int64_t width = s->width, end = cgam_gemm_pass_begin(s, t->chunk + 1);
    bool ahead = (int64_t)cgam_dtype_size(Z->dtype) * Z->d < SHORT_ROW;
    if (s->split) {
        const void *tile = fetch(s, t->begin, t->count, w->rows, ld);
        if (s->X) score_split(s, tile, *ld, t->count, s->Q, w->S);
        if (s->X2) score_split(s, tile, *ld, t->count, s->Q2, w->S2);
        return tile;
    }
    for (int64_t u = 0; u < t->count; u += BAND) {
        int64_t count = t->count - u < BAND ? t->count - u : BAND, i = t->begin + u;
        const void *band = fetch(s, i, count, offset(s, w->rows, u * s->ld), ld);
        const char *next = NULL, *stop = NULL;
        if (ahead && i + count < end) {
            next = cgam_rows_at(Z, i + count);
            stop = cgam_rows_at(Z, i + 2 * count < end ? i + 2 * count : end);
        }
        if (s->X) score(s, band, *ld, count, s->Q, offset(s, w->S, u * width), next, stop);
        if (s->X2) score(s, band, *ld, count, s->Q2, offset(s, w->S2, u * width), NULL, NULL);
    }
    return in_place(s) ? cgam_rows_at(Z, t->begin) : w->rows;
}

static void take_tile(const cgam_gemm_pass *s, cgam_gemm_pass_tile *t, space *w, double *Y)
{
    int64_t ld = 0, end = cgam_gemm_pass_begin(s, t->chunk + 1);
    const void *rows = score_tile(s, t, w, &ld);
    t->S = w->S;
    t->S2 = s->X2 ? w->S2 : NULL;
    t->shrink = w->shrink;
    if (s->X) scale_rows(s, t->begin, t->count, t->S);
    scale_rows(s, t->begin, t->count, t->S2);
    s->weigh(s->arg, t);
    if (!Y) return;
    if (t->shrinks) shrink(s, t, w->Y, Y);
    scale_rows(s, t->begin, t->count, t->S);
    if (s->split) {
        read_out_split(s, t, rows, ld, w);
        return;
    }
    const char *next = NULL, *stop = NULL;
    if (s->state) {
        int64_t from = t->begin + t->count, to = from + s->tile < end ? from + s->tile : end;
        next = (const char *)s->state + from * s->state_row;
        stop = (const char *)s->state + to * s->state_row;
    }
    read_out(s, t, rows, ld, w->block, s->wide ? (void *)Y : w->Y, next, stop);
}

static cgam_status run_chunk(void *arg, int64_t chunk)
{
    const cgam_gemm_pass *s = arg;
    if (cgam_interrupted(s->env)) return CGAM_E_INTERRUPTED;
    size_t area = (size_t)(s->tile * s->width), panel = (size_t)s->panel;
    bool few = s->reads && !s->wide;
    bool blocks = s->reads && !s->split && panel_width(s, 0) < s->width;
    space w = {0};
    if (!in_place(s)) w.rows = cgam_alloc(s->env, (size_t)(s->tile * s->ld), size_of(s));
    w.S = cgam_alloc(s->env, area, size_of(s));
    if (s->X2) w.S2 = cgam_alloc(s->env, area, size_of(s));
    if (few) w.Y = cgam_zalloc(s->env, panel, sizeof *w.Y);
    if (blocks) w.block = cgam_alloc(s->env, (size_t)s->tile, BLOCK_ROW);
    w.shrink = cgam_alloc(s->env, (size_t)s->width, sizeof *w.shrink);
    if (s->split) w.weights = cgam_alloc(s->env, panels_of(s->width), s->split->room(READ_ROWS));
    cgam_status status = CGAM_OK;
    if ((!in_place(s) && !w.rows) || !w.S || (s->X2 && !w.S2) || (few && !w.Y) ||
        (blocks && !w.block) || !w.shrink || (s->split && !w.weights)) {
        status = cgam_fail_nomem(s->env, "a tile of scores");
        goto done;
    }
    double *Y = s->reads ? s->Y + chunk * s->panel : NULL;
    if (Y) memset(Y, 0, panel * sizeof *Y);
    for (int64_t c = 0; c < s->width; c++) w.shrink[c] = 1;
    int64_t end = cgam_gemm_pass_begin(s, chunk + 1), since = 0;
    for (int64_t i = cgam_gemm_pass_begin(s, chunk); i < end; i += s->tile) {
        cgam_gemm_pass_tile t = {.chunk = chunk, .begin = i};
        t.count = end - i < s->tile ? end - i : s->tile;
        take_tile(s, &t, &w, Y);
        since += t.count;
        if (few && (since + s->tile > CGAM_GEMM_PASS_FLUSH || i + t.count == end)) {
            s->gemm->gather(s->panel, w.Y, Y);
            memset(w.Y, 0, panel * sizeof *w.Y);
            since = 0;
        }
    }
done:
    cgam_free(s->env, w.rows);
    cgam_free(s->env, w.S);
    cgam_free(s->env, w.S2);
    cgam_free(s->env, w.Y);
    cgam_free(s->env, w.block);
    cgam_free(s->env, w.weights);
    cgam_free(s->env, w.shrink);
    return status;
}

cgam_status cgam_gemm_pass_run(cgam_gemm_pass *s)
{
    return cgam_rows_run(s->env, s->Z, s->chunks, run_chunk, s);
}

typedef struct joining {
    const cgam_gemm_pass *s;
    const double *factor;
} joining;

enum { JOIN_NUMBERS = 256 * CGAM_GEMM_PASS_WIDTH };

/* Sums lie in lines: a block of columns for all vectors. */
static int64_t line_of(const cgam_gemm_pass *s) { return s->block * s->width; }

static int64_t join_lines(const cgam_gemm_pass *s)
{
    int64_t lines = JOIN_NUMBERS / line_of(s);
    return lines > 1 ? lines : 1;
}

static cgam_status join_some(void *arg, int64_t item)
{
    const joining *job = arg;
    const cgam_gemm_pass *s = job->s;
    int64_t line = line_of(s), begin = item * join_lines(s), from, to;
    int64_t end = at_most(begin + join_lines(s), s->panel / line);
    cgam_rows_here(s->Z, s->chunks, &from, &to);
    for (int64_t c = from; c < to; c++) {
        const double *factor = job->factor + c * s->vectors;
        for (int64_t k = begin; k < end; k++) {
            double *Y = s->Y + c * s->panel + k * line;
            for (int64_t v = 0; v < s->vectors; v++)
                for (int64_t i = v * s->block; i < (v + 1) * s->block; i++)
                    Y[i] = factor[v] > 0 ? factor[v] * Y[i] : 0;
        }
    }
    cgam_rows_join_here(s->Z, s->chunks, s->panel, begin * line, end * line, s->Y);
    return CGAM_OK;
}

cgam_status cgam_gemm_pass_join(const cgam_gemm_pass *s, const double *factor, double *const *Y)
{
    int64_t d = s->Z->d;
    joining job = {s, factor};
    double *part[CGAM_CHUNKS_MAX] = {NULL}, *room = NULL, *total;
    int64_t from, to;
    cgam_rows_here(s->Z, s->chunks, &from, &to);
    for (int64_t c = from; c < to; c++) part[c] = s->Y + c * s->panel;
    if (!part[0]) room = cgam_alloc(s->env, (size_t)s->panel, sizeof *room);
    if (!part[0] && !room) return cgam_fail_nomem(s->env, "a batch of queries");
    int64_t lines = s->panel / line_of(s), some = join_lines(s);
    cgam_status status = cgam_parallel(s->env, (lines + some - 1) / some, join_some, &job);
    if (status == CGAM_OK)
        status = cgam_rows_join_rest(s->env, s->Z, s->chunks, s->panel, part, room, &total);
    for (int64_t j = 0; j < d && status == CGAM_OK; j++)
        for (int64_t v = 0; v < s->vectors; v++)
            Y[v][j] = total[j / s->block * line_of(s) + v * s->block + j % s->block];
    cgam_free(s->env, room);
    return status;
}

cgam_status cgam_gemm_pass_look(const cgam_gemm_pass *s, int64_t row, void *S, void *S2)
{
    int64_t ld;
    void *room = cgam_alloc(s->env, (size_t)s->ld, size_of(s));
    if (!room) return cgam_fail_nomem(s->env, "a row");
    const void *one = fetch(s, row, 1, room, &ld);
    const void *Q[] = {s->Q, s->X2 ? s->Q2 : NULL};
    void *to[] = {S, S2};
    for (int k = 0; k < 2 && Q[k]; k++) {
        if (s->split) score_split(s, one, ld, 1, Q[k], to[k]);
        else score(s, one, ld, 1, Q[k], to[k], NULL, NULL);
        scale_rows(s, row, 1, to[k]);
    }
    cgam_free(s->env, room);
    return CGAM_OK;
}

typedef struct scores {
    int64_t count, apart;
    double *out;
    cgam_gemm_pass pass;
} scores;

static void keep_scores(void *arg, cgam_gemm_pass_tile *t)
{
    const scores *job = arg;
    const double *S = t->S;
    for (int64_t v = 0; v < job->count; v++)
        for (int64_t r = 0; r < t->count; r++)
            job->out[v * job->apart + t->begin + r] = S[r * job->pass.width + v];
}

cgam_status cgam_gemm_pass_scores(cgam_env *env, const cgam_rows *Z, int64_t count, const double *X,
                                  double *out)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += CGAM_GEMM_PASS_WIDTH) {
        int64_t some = count - k < CGAM_GEMM_PASS_WIDTH ? count - k : CGAM_GEMM_PASS_WIDTH;
        int64_t apart = cgam_rows_span(Z).size;
        scores job = {.count = some, .apart = apart, .out = out + k * apart};
        job.pass = (cgam_gemm_pass){.env = env,
                                    .Z = Z,
                                    .wide = true,
                                    .vectors = some,
                                    .X = X + k * Z->d,
                                    .weigh = keep_scores,
                                    .arg = &job};
        status = cgam_gemm_pass_new(&job.pass);
        if (status == CGAM_OK) status = cgam_gemm_pass_run(&job.pass);
        cgam_gemm_pass_free(&job.pass);
    }
    return status;
}
