/* gemm_pass.c: see gemm_pass.h.
 *
 * Sizes. The vectors of CGAM_GEMM_PASS_DEPTH terms are 32 KiB at most, which stay in the first-level cache while a
 * band of rows is read. They are stored in panels as wide as a register tile: if that is narrower than all vectors, a
 * strip of [d, 64] would be lines at distances of 256 bytes, which share an eighth of the sets of a cache (Zen 3, d =
 * 2048, products alone: 0.80 of sgemm; in panels 0.98). A band is narrow enough for the hardware to follow its rows;
 * rows too short for that are fetched ahead. A tile shares the second-level cache with the vectors and the sums; CPUs
 * with short vectors have 512 KB of it, and pages for 64 rows (readout of tiles of 72 rows of 8 KB there: 0.54 of
 * sgemm, of 48 0.75).
 *
 * A unit for tiles of bytes (cpu/digits.h) multiplies 16 whole rows at a time by all vectors, and adds
 * CGAM_DIGITS_ROWS rows to sums at a time; these share the second-level cache with the sums and the vectors. */
#include "num/gemm_pass.h"

#include "num/ranks.h"

#include <string.h>

enum {
    CHUNKS_FEW = 16,
    BAND = 24,
    TILE_BYTES = 600 << 10, /* if all vectors are in one panel, and else */
    TILE_BYTES_LESS = 400 << 10,
    TILE_ROWS_MIN = 2 * BAND,
    SHORT_ROW = 2048,          /* bytes */
    BLOCK_ROW = 384,           /* bytes */
    DIGITS_VECTORS = 8,        /* from this many vectors on the unit for tiles is faster, */
    DIGITS_COLUMNS = 256,      /* and from this many columns on */
    DIGITS_BYTES = 1024 << 10, /* of a tile of rows there, in */
    DIGITS_TILE = 256,         /* rows, at most */
};

_Static_assert((int)CGAM_GEMM_PASS_WIDTH <= CGAM_DIGITS_GROUP, "rows meet all vectors");

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

static void lay_vectors(const cgam_gemm_pass *s, const double *X, void *Q)
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

void cgam_gemm_pass_load(cgam_gemm_pass *s)
{
    const double *X[] = {s->X, s->X2};
    void *Q[] = {s->Q, s->Q2};
    for (int k = 0; k < 2; k++) {
        if (X[k] && s->digits) s->digits->lay(s->vectors, s->Z->d, X[k], Q[k]);
        else if (X[k]) lay_vectors(s, X[k], Q[k]);
    }
}

/* Chooses the shapes of a tile of rows and of the sums. */
static void choose_shapes(cgam_gemm_pass *s)
{
    int64_t lanes = s->digits ? CGAM_DIGITS_LINE : s->gemm->lanes32, d = s->Z->d;
    s->width = (s->vectors + lanes - 1) / lanes * lanes;
    s->ld = d + 16; /* rows at power-of-two distances collide in the cache */
    s->block = s->digits ? CGAM_DIGITS_LINE : 1;
    s->panel = (d + s->block - 1) / s->block * s->block * s->width;
    int64_t bytes = s->digits                                ? DIGITS_BYTES
                    : s->gemm->best32 < CGAM_GEMM_PASS_WIDTH ? TILE_BYTES_LESS
                                                             : TILE_BYTES;
    int64_t by = s->digits ? CGAM_DIGITS_ROWS : BAND, least = s->digits ? by : TILE_ROWS_MIN;
    int64_t rows = bytes / ((int64_t)size_of(s) * d) / by * by;
    rows = at_most(rows, s->digits ? DIGITS_TILE : CGAM_GEMM_PASS_ROWS);
    s->tile = rows < least ? least : rows;
    s->chunks = cgam_gemm_pass_chunks(s->Z->n, s->tile);
}

/* Returns the unit for tiles if it exists and is faster, else NULL. */
static const cgam_digits *digits_unit(const cgam_gemm_pass *s)
{
    bool pays = !s->wide && s->vectors >= DIGITS_VECTORS && s->Z->d >= DIGITS_COLUMNS;
    return pays ? s->Z->cpu->digits : NULL;
}

cgam_status cgam_gemm_pass_new(cgam_gemm_pass *s)
{
    const cgam_rows *Z = s->Z;
    s->gemm = Z->cpu->gemm;
    s->digits = digits_unit(s);
    choose_shapes(s);
    size_t bytes =
        s->digits ? s->digits->room(s->vectors, Z->d) : (size_t)(Z->d * s->width) * size_of(s);
    s->Q = s->X ? cgam_zalloc(s->env, bytes, 1) : NULL;
    s->Q2 = s->X2 ? cgam_zalloc(s->env, bytes, 1) : NULL;
    s->Y = s->reads ? cgam_parts_new(s->env, Z, s->chunks, s->panel) : NULL;
    s->noted = s->notes ? cgam_alloc(s->env, (size_t)s->chunks, s->notes) : NULL;
    if ((s->X && !s->Q) || (s->X2 && !s->Q2) || (s->reads && !s->Y) || (s->notes && !s->noted))
        return cgam_fail_nomem(s->env, "a batch of queries");
    cgam_gemm_pass_load(s);
    return CGAM_OK;
}

void cgam_gemm_pass_free(cgam_gemm_pass *s)
{
    cgam_free(s->env, s->Q);
    cgam_free(s->env, s->Q2);
    if (s->Y) cgam_parts_free(s->env, s->Z, s->chunks, s->panel, s->Y);
    cgam_free(s->env, s->noted);
    s->Q = s->Q2 = NULL;
    s->Y = NULL;
    s->noted = NULL;
}

static bool reads_in_place(const cgam_gemm_pass *s)
{
    if (s->digits && s->Z->dtype == CGAM_BF16) return true;
    return s->Z->dtype == (s->wide ? CGAM_F64 : CGAM_F32);
}

/* Rows [i, i + count) without their scale: a pointer to them, or converted into buffer. */
static const void *fetch_rows(const cgam_gemm_pass *s, int64_t i, int64_t count, void *buffer,
                              int64_t *ld)
{
    const cgam_rows *Z = s->Z;
    *ld = Z->stride;
    if (reads_in_place(s)) return cgam_rows_at(Z, i);
    *ld = s->ld;
    for (int64_t r = 0; r < count; r++) {
        void *to = offset(s, buffer, r * s->ld);
        if (s->wide) Z->cpu->f64->scaled[Z->dtype](cgam_rows_at(Z, i + r), Z->d, 1, to);
        else Z->cpu->f64->to_f32[Z->dtype](cgam_rows_at(Z, i + r), Z->d, to);
    }
    return buffer;
}

static void multiply_block(const cgam_gemm_pass *s, int64_t rows, int64_t columns, int64_t depth,
                           const void *A, int64_t ra, int64_t ka, const void *B, int64_t ldb,
                           void *C, int64_t ldc, const void *next, const void *stop)
{
    if (s->wide) s->gemm->mul64(rows, columns, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
    else s->gemm->mul32(rows, columns, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
}

/* S [count, width] = scores of a band against Q. */
static void score_band(const cgam_gemm_pass *s, const void *rows, int64_t ld, int64_t count,
                       const void *Q, void *S, const char *next, const char *stop)
{
    int64_t width = s->width, d = s->Z->d;
    memset(S, 0, (size_t)(count * width) * size_of(s));
    for (int64_t k = 0; k < d; k += CGAM_GEMM_PASS_DEPTH) {
        int64_t depth = d - k < CGAM_GEMM_PASS_DEPTH ? d - k : CGAM_GEMM_PASS_DEPTH;
        for (int64_t c = 0, some; c < width; c += some) {
            some = panel_width(s, c);
            multiply_block(s, count, some, depth, offset(s, rows, k), ld, 1,
                           offset(s, Q, c * d + k * some), some, offset(s, S, c), width,
                           next && c == 0 ? next + k * BAND * (int64_t)size_of(s) : NULL, stop);
        }
    }
}

/* The type of rows that a unit for tiles multiplies. */
static cgam_dtype type_of_rows(const cgam_gemm_pass *s)
{
    return reads_in_place(s) ? s->Z->dtype : CGAM_F32;
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
    void *rows; /* [tile, ld] if rows must be converted */
    void *S, *S2;
    float *Y;    /* [panel] sums of a few tiles */
    void *block; /* [tile, BLOCK_ROW bytes]; NULL: the readout uses whole rows */
    /* with digits: */
    float *largest; /* [tile, blocks] of the numbers of a row */
    void *weights;
    double *shrink;
} space;

static void shrink_sums(const cgam_gemm_pass *s, cgam_gemm_pass_tile *t, float *few, double *Y)
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

/* Copies a few lines at a time: gcc's "rep movs" takes three times as long for so few bytes. */
static void copy_lines(size_t bytes, const char *from, char *to)
{
    for (; bytes >= 64; bytes -= 64, from += 64, to += 64) memcpy(to, from, 64);
    memcpy(to, from, bytes);
}

/* Y += the rows of a tile times their weights. If vectors are in panels, columns are processed in blocks, which are
 * copied: all panels then find them in the first-level cache, where rows several pages apart would not fit
 * together. */
static void add_readout(const cgam_gemm_pass *s, const cgam_gemm_pass_tile *t, const void *rows,
                        int64_t ld, void *block, void *Y, const char *next, const char *stop)
{
    int64_t d = s->Z->d, width = s->width, wide = BLOCK_ROW / (int64_t)size_of(s);
    if (!block) {
        multiply_block(s, d, width, t->count, rows, 1, ld, t->S, width, Y, width, next, stop);
        return;
    }
    for (int64_t j = 0; j < d; j += wide) {
        int64_t some = d - j < wide ? d - j : wide;
        for (int64_t r = 0; r < t->count; r++)
            copy_lines((size_t)some * size_of(s), offset(s, rows, r * ld + j),
                       offset(s, block, r * wide));
        const char *from = next ? next + (stop - next) * j / d : NULL;
        const char *to = next ? next + (stop - next) * (j + some) / d : NULL;
        multiply_block(s, some, width, t->count, block, 1, wide, t->S, width,
                       offset(s, Y, j * width), width, from, to);
    }
}

/* The same by digits. */
static void add_readout_digits(const cgam_gemm_pass *s, const cgam_gemm_pass_tile *t,
                               const void *rows, int64_t ld, const space *w)
{
    const cgam_digits *digits = s->digits;
    cgam_dtype type = type_of_rows(s);
    int64_t d = s->Z->d;
    if (!s->X && !s->X2) digits->largest(type, t->count, d, rows, ld, w->largest);
    for (int64_t u = 0; u < t->count; u += CGAM_DIGITS_ROWS) {
        int64_t count = at_most(t->count - u, CGAM_DIGITS_ROWS);
        const char *some = (const char *)rows + u * ld * (int64_t)cgam_dtype_size(type);
        const float *largest = w->largest + u * cgam_digits_blocks(d);
        digits->weights(count, s->width, d, (const float *)t->S + u * s->width, largest,
                        w->weights);
        digits->read(type, count, s->width, d, some, ld, largest, w->weights, w->Y);
    }
}

/* S and S2 of rows by digits. */
static void score_digits(const cgam_gemm_pass *s, int64_t count, const void *rows, int64_t ld,
                         void *S, void *S2, float *largest)
{
    const void *Q[] = {s->X ? s->Q : NULL, s->X2 ? s->Q2 : NULL};
    void *to[] = {S, S2};
    for (int k = 0; k < 2; k++)
        if (Q[k])
            s->digits->score(type_of_rows(s), count, s->width, s->Z->d, rows, ld, Q[k], to[k],
                             largest);
}

/* S and S2 of a tile, whose rows are at `rows` then, ld apart. */
static const void *score_tile(const cgam_gemm_pass *s, const cgam_gemm_pass_tile *t, space *w,
                              int64_t *ld)
{
    const cgam_rows *Z = s->Z;
    int64_t width = s->width, end = cgam_gemm_pass_begin(s, t->chunk + 1);
    bool ahead = (int64_t)cgam_dtype_size(Z->dtype) * Z->d < SHORT_ROW;
    if (s->digits) {
        const void *tile = fetch_rows(s, t->begin, t->count, w->rows, ld);
        score_digits(s, t->count, tile, *ld, w->S, w->S2, w->largest);
        return tile;
    }
    for (int64_t u = 0; u < t->count; u += BAND) {
        int64_t count = t->count - u < BAND ? t->count - u : BAND, i = t->begin + u;
        const void *band = fetch_rows(s, i, count, offset(s, w->rows, u * s->ld), ld);
        const char *next = NULL, *stop = NULL;
        if (ahead && i + count < end) {
            next = cgam_rows_at(Z, i + count);
            stop = cgam_rows_at(Z, i + 2 * count < end ? i + 2 * count : end);
        }
        if (s->X) score_band(s, band, *ld, count, s->Q, offset(s, w->S, u * width), next, stop);
        if (s->X2) score_band(s, band, *ld, count, s->Q2, offset(s, w->S2, u * width), NULL, NULL);
    }
    return reads_in_place(s) ? cgam_rows_at(Z, t->begin) : w->rows;
}

static void pass_tile(const cgam_gemm_pass *s, cgam_gemm_pass_tile *t, space *w, double *Y)
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
    if (t->shrinks) shrink_sums(s, t, w->Y, Y);
    scale_rows(s, t->begin, t->count, t->S);
    if (s->digits) {
        add_readout_digits(s, t, rows, ld, w);
        return;
    }
    const char *next = NULL, *stop = NULL;
    if (s->state) {
        int64_t from = t->begin + t->count, to = from + s->tile < end ? from + s->tile : end;
        next = (const char *)s->state + from * s->state_row;
        stop = (const char *)s->state + to * s->state_row;
    }
    add_readout(s, t, rows, ld, w->block, s->wide ? (void *)Y : w->Y, next, stop);
}

static cgam_status pass_chunk(void *arg, int64_t chunk)
{
    const cgam_gemm_pass *s = arg;
    if (cgam_interrupted(s->env)) return CGAM_E_INTERRUPTED;
    size_t area = (size_t)(s->tile * s->width), panel = (size_t)s->panel;
    bool few = s->reads && !s->wide;
    bool blocks = s->reads && !s->digits && panel_width(s, 0) < s->width;
    space w = {0};
    if (!reads_in_place(s)) w.rows = cgam_alloc(s->env, (size_t)(s->tile * s->ld), size_of(s));
    w.S = cgam_alloc(s->env, area, size_of(s));
    if (s->X2) w.S2 = cgam_alloc(s->env, area, size_of(s));
    if (few) w.Y = cgam_zalloc(s->env, panel, sizeof *w.Y);
    if (blocks) w.block = cgam_alloc(s->env, (size_t)s->tile, BLOCK_ROW);
    w.shrink = cgam_alloc(s->env, (size_t)s->width, sizeof *w.shrink);
    if (s->digits) {
        w.largest =
            cgam_alloc(s->env, (size_t)(s->tile * cgam_digits_blocks(s->Z->d)), sizeof *w.largest);
        w.weights = cgam_alloc(s->env, 1, s->digits->weights_room);
    }
    cgam_status status = CGAM_OK;
    if ((!reads_in_place(s) && !w.rows) || !w.S || (s->X2 && !w.S2) || (few && !w.Y) ||
        (blocks && !w.block) || !w.shrink || (s->digits && (!w.largest || !w.weights))) {
        status = cgam_fail_nomem(s->env, "a tile of scores");
        goto done;
    }
    double *Y = s->reads ? s->Y + chunk * s->panel : NULL;
    if (Y) memset(Y, 0, panel * sizeof *Y);
    for (int64_t c = 0; c < s->width; c++) w.shrink[c] = 1;
    int64_t end = cgam_gemm_pass_begin(s, chunk + 1), since = 0;
    for (int64_t i = cgam_gemm_pass_begin(s, chunk); i < end; i += s->tile) {
        cgam_gemm_pass_tile t = {.chunk = chunk, .begin = i};
        if (s->notes) t.note = s->noted + (size_t)chunk * s->notes;
        t.count = end - i < s->tile ? end - i : s->tile;
        pass_tile(s, &t, &w, Y);
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
    cgam_free(s->env, w.largest);
    cgam_free(s->env, w.weights);
    cgam_free(s->env, w.shrink);
    return status;
}

cgam_status cgam_gemm_pass_run(cgam_gemm_pass *s)
{
    if (s->notes) memset(s->noted, 0, (size_t)s->chunks * s->notes);
    return cgam_rows_run(s->env, s->Z, s->chunks, pass_chunk, s);
}

cgam_status cgam_gemm_pass_share(const cgam_gemm_pass *s)
{
    return cgam_rows_share(s->env, s->Z, s->chunks, s->notes, s->noted);
}

const void *cgam_gemm_pass_noted(const cgam_gemm_pass *s, int64_t k)
{
    return k < s->chunks ? s->noted + (size_t)k * s->notes : NULL;
}

typedef struct joining {
    const cgam_gemm_pass *s;
    const double *factor;
} joining;

enum { JOIN_NUMBERS = 256 * CGAM_GEMM_PASS_WIDTH };

/* Sums lie in lines: a block of columns for all vectors. */
static int64_t line_size(const cgam_gemm_pass *s) { return s->block * s->width; }

static int64_t join_lines(const cgam_gemm_pass *s)
{
    int64_t lines = JOIN_NUMBERS / line_size(s);
    return lines > 1 ? lines : 1;
}

static cgam_status join_some(void *arg, int64_t item)
{
    const joining *job = arg;
    const cgam_gemm_pass *s = job->s;
    int64_t line = line_size(s), begin = item * join_lines(s), from, to;
    int64_t end = at_most(begin + join_lines(s), s->panel / line);
    cgam_rows_here(s->Z, s->chunks, &from, &to);
    for (int64_t c = from; c < to && job->factor; c++) {
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
    double *part[CGAM_CHUNKS_MAX] = {NULL}, *buffer = NULL, *total;
    int64_t from, to;
    cgam_rows_here(s->Z, s->chunks, &from, &to);
    for (int64_t c = from; c < to; c++) part[c] = s->Y + c * s->panel;
    if (!part[0]) buffer = cgam_alloc(s->env, (size_t)s->panel, sizeof *buffer);
    if (!part[0] && !buffer) return cgam_fail_nomem(s->env, "a batch of queries");
    int64_t lines = s->panel / line_size(s), some = join_lines(s);
    cgam_status status = cgam_parallel(s->env, (lines + some - 1) / some, join_some, &job);
    if (status == CGAM_OK)
        status = cgam_rows_join_rest(s->env, s->Z, s->chunks, s->panel, part, buffer, &total);
    for (int64_t j = 0; j < d && status == CGAM_OK; j++)
        for (int64_t v = 0; v < s->vectors; v++)
            Y[v][j] = total[j / s->block * line_size(s) + v * s->block + j % s->block];
    cgam_free(s->env, buffer);
    return status;
}

cgam_status cgam_gemm_pass_look(const cgam_gemm_pass *s, int64_t row, void *S, void *S2)
{
    int64_t ld;
    int64_t blocks = cgam_digits_blocks(s->Z->d);
    void *buffer = cgam_alloc(s->env, (size_t)(s->ld + blocks), size_of(s));
    if (!buffer) return cgam_fail_nomem(s->env, "a row");
    const void *one = fetch_rows(s, row, 1, buffer, &ld);
    if (s->digits) score_digits(s, 1, one, ld, S, S2, (float *)buffer + s->ld);
    else score_band(s, one, ld, 1, s->Q, S, NULL, NULL);
    if (!s->digits && s->X2) score_band(s, one, ld, 1, s->Q2, S2, NULL, NULL);
    scale_rows(s, row, 1, S);
    scale_rows(s, row, 1, s->X2 ? S2 : NULL);
    cgam_free(s->env, buffer);
    return CGAM_OK;
}

enum { LINE = 8 };

typedef struct scores {
    int64_t count, apart;
    double *out;
    cgam_gemm_pass pass;
} scores;

static void keep_scores(void *arg, cgam_gemm_pass_tile *t)
{
    const scores *job = arg;
    const double *S = t->S;
    int64_t width = job->pass.width;
    for (int64_t from = 0; from < t->count; from += LINE) { /* whole lines of every query */
        int64_t rows = t->count - from < LINE ? t->count - from : LINE;
        for (int64_t v = 0; v < job->count; v++) {
            double *out = job->out + v * job->apart + t->begin + from;
            for (int64_t r = 0; r < rows; r++) out[r] = S[(from + r) * width + v];
        }
    }
}

cgam_status cgam_gemm_pass_scores(cgam_env *env, const cgam_rows *Z, int64_t count, const double *X,
                                  double *out)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += CGAM_GEMM_PASS_WIDTH) {
        int64_t some = count - k < CGAM_GEMM_PASS_WIDTH ? count - k : CGAM_GEMM_PASS_WIDTH;
        int64_t apart = cgam_vec_size(Z);
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
