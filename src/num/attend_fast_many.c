/* attend_fast_many.c: cgam_attend_fast for a batch, scored by matrices of bytes.
 *
 * 64 queries share a reading of the sketch, so the cost per row and query dominates: a hundred columns take a
 * nanosecond. So no score is written to memory, and none is examined in double.
 *
 * 1. Some rows from all over the bank are scored by the sketch, the best of each query in double: the k-th of
 *    those is the floor.
 * 2. Tile by tile all rows are scored by one term of the queries (cpu/int8.h) and sifted (cpu/sift.h): rows that may
 * reach the floor are listed, and the sum of the others' weights is bounded. A full list is reduced by the k-th of
 * its own lower bounds, or the query falls back. 3. The best by the scan in double raise the floor; listed rows below
 * it are closed, the rest is scored with the second term, and rows still open are scored in double.
 *
 * Each chunk has its own lists and floors, so the results do not depend on the number of threads. */
#include "num/attend_fast.h"

#include "num/attend_parts.h"
#include "num/rounding.h"
#include "num/sieve.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = CGAM_SIFT_WIDTH,
    ROWS = CGAM_SIFT_ROWS,
    CHUNK_ROWS = 2048, /* at least, except in a bank of one chunk */
    SAMPLE = 16,       /* one row in this many is sampled first, */
    SAMPLE_MAX = 4096, /* at most this many */
    SAMPLE_MIN = 128,
    LIST =
        8, /* one row in so many has a place on the list of a chunk, if chunks are few, and else */
    LIST_LESS = 16,
    WORTH = 48 /* for one row in this many, scoring in double costs less than a product */
};
static const double UNITS_MAX = 900; /* of the exponents: no score leaves the range of double */
static const double TINY = CGAM_SIEVE_TINY;
static const double REF_BEHIND = 16; /* 24 ln 2 of cpu/sift.h */
static const double LOG2E = 0x1.71547652b82fep0;

/* A row on a list, and its score by the scan. */
typedef struct listed {
    int32_t row;
    float score;
} listed;

/* The results of one query in one chunk. */
typedef struct part {
    listed *list; /* [places] while its chunk is sifted, then [count] */
    int64_t count;
    double ref, low, high; /* weights of the rows not listed, relative to a score of ref */
    int64_t above;
    bool full; /* the list could not be reduced */
} part;

/* One query. */
typedef struct seeker {
    cgam_sketched is;
    cgam_sketch_error off[CGAM_SKETCH_TERMS];
    double unit, floor, top; /* floor and top are scores */
    cgam_leader focus;
    bool falls;
} seeker;

typedef struct batch {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_sketch *sketch;
    double tol;
    int64_t count, width, leaders, chunks, places, sample;
    seeker seek[WIDTH];
    cgam_sift_by by; /* as the chunks begin */
    bool focus;
    int8_t *terms;   /* [width, CGAM_SKETCH_TERMS, d], then first terms alone [width, d] */
    float *steps;    /* the same with blocks */
    void *X;         /* first terms as cpu/int8.h lays them out */
    float *first;    /* [sample, width] */
    int64_t *chosen; /* [sample] */
    part *parts;     /* [count, chunks] */
    listed **lists;  /* [chunks] the lists of each chunk's parts */
    cgam_attend_out *out;
    cgam_fast *fast;
} batch;

static int64_t chunk_begin(const batch *x, int64_t k) { return x->sketch->n * k / x->chunks; }

/* Error bound of a row's score by `terms` terms of its query. */
static double error_of_score(const batch *x, const seeker *k, int terms, int64_t row)
{
    const cgam_sketch *s = x->sketch;
    return k->unit *
           (k->off[terms - 1].hat * (double)s->hat[row] +
            k->off[terms - 1].rest * (double)s->rest[row] + TINY) *
           CGAM_SLACK;
}

/* ---- Step 1: a sample ---------------------------------------------------------------------- */
static cgam_status score_sample(void *arg, int64_t item)
{
    const batch *x = arg;
    const cgam_sketch *s = x->sketch;
    int64_t begin = item * ROWS, count = x->sample - begin < ROWS ? x->sample - begin : ROWS;
    int64_t d = s->d, blocks = cgam_int8_blocks(d);
    int8_t *rows = cgam_alloc(x->env, (size_t)(ROWS * d) + CGAM_INT8_PAD, 1);
    float *scale = cgam_alloc(x->env, (size_t)(ROWS * blocks), sizeof *scale);
    float *scores = cgam_alloc(x->env, (size_t)(ROWS * x->width), sizeof *scores);
    cgam_status status = CGAM_OK;
    if (!rows || !scale || !scores) status = cgam_fail_nomem(x->env, "some rows of a sketch");
    for (int64_t k = 0; k < ROWS && status == CGAM_OK; k++) { /* repeats the last row */
        int64_t i = x->chosen[begin + (k < count ? k : count - 1)];
        memcpy(rows + k * d, s->rows + i * d, (size_t)d);
        memcpy(scale + k * blocks, s->scale + i * blocks, (size_t)blocks * sizeof *scale);
    }
    if (status == CGAM_OK) {
        memset(rows + ROWS * d, 0, CGAM_INT8_PAD);
        x->in->Z->cpu->int8_many->dot(rows, scale, ROWS, d, x->width, x->X, scores);
        memcpy(x->first + begin * x->width, scores, (size_t)(count * x->width) * sizeof *scores);
    }
    cgam_free(x->env, rows);
    cgam_free(x->env, scale);
    cgam_free(x->env, scores);
    return status;
}

/* Sets the floor from the best of the scan, scored in double here, and the top. */
static void raise_floor(const batch *x, int64_t v, cgam_leader *best, int64_t count)
{
    seeker *k = (seeker *)(uintptr_t)&x->seek[v];
    double floor = INFINITY;
    for (int64_t j = 0; j < count; j++) {
        best[j] = cgam_attend_look(x->in, v, best[j].row);
        double r = best[j].r;
        if (!(r >= floor)) floor = r;
        if (r > k->top) k->top = r;
    }
    if (count == x->leaders && floor > k->floor) k->floor = floor;
    if (!isfinite(k->top)) k->falls = true;
}

static cgam_status first_floor(void *arg, int64_t v)
{
    batch *x = arg;
    seeker *k = &x->seek[v];
    cgam_leader *best = cgam_alloc(x->env, (size_t)x->leaders, sizeof *best);
    if (!best) return cgam_fail_nomem(x->env, "leaders");
    int64_t count = 0;
    float last = -INFINITY;
    for (int64_t j = 0; j < x->sample && !k->falls; j++) {
        float a = x->first[j * x->width + v];
        if (a <= last) continue;
        cgam_lead(best, &count, x->leaders, (cgam_leader){.r = (double)a, .row = x->chosen[j]});
        if (count == x->leaders) last = (float)best[count - 1].r;
    }
    if (!k->falls) raise_floor(x, v, best, count);
    k->focus = (cgam_leader){.row = x->in->focus ? x->in->focus[v] : -1};
    if (k->focus.row >= 0) k->focus = cgam_attend_look(x->in, v, k->focus.row);
    cgam_free(x->env, best);
    return CGAM_OK;
}

/* ---- Step 2: the sieve --------------------------------------------------------------------- */
static void set_sieve(batch *x)
{
    cgam_sift_by *by = &x->by;
    for (int64_t v = 0; v < x->width; v++) {
        const seeker *k = v < x->count ? &x->seek[v] : NULL;
        by->hat[v] = by->rest[v] = by->rate[v] = by->shift[v] = 0;
        by->floor[v] = by->focus_low[v] = by->focus_high[v] = INFINITY;
        if (!k || k->falls) continue;
        cgam_sift_one is =
            cgam_sieve_of(&k->is, k->off[0], k->unit, x->in->beta, k->floor, k->floor);
        by->hat[v] = is.hat;
        by->rest[v] = is.rest;
        by->floor[v] = is.floor;
        by->rate[v] = is.rate;
        by->shift[v] = is.shift;
        if (k->focus.row < 0) continue;
        x->focus = true;
        by->focus_low[v] = cgam_below_f32(k->focus.r / k->unit - TINY);
        by->focus_high[v] = cgam_above_f32(k->focus.r / k->unit + TINY);
    }
}

/* Decides a listed row by its bounds: 0 = closed, 1 = closed and above the focus, 2 = open. */
static int judge_row(const seeker *k, double score, double off, double floor, int64_t row)
{
    const cgam_leader *f = &k->focus;
    if (!(score + off < floor) || row == f->row) return 2;
    if (f->row < 0 || score + off < f->r) return 0;
    return score - off > f->r ? 1 : 2;
}

/* Closes the listed rows of a part below the floor; weights are relative to w->top. */
static void close_rows(const batch *x, int64_t v, part *p, double floor, cgam_closed *w)
{
    const seeker *k = &x->seek[v];
    int64_t left = 0;
    for (int64_t j = 0; j < p->count; j++) {
        int64_t row = p->list[j].row;
        double score = k->unit * (double)p->list[j].score, off = error_of_score(x, k, 1, row);
        int is = judge_row(k, score, off, floor, row);
        p->above += is == 1;
        if (is == 2) p->list[left++] = p->list[j];
        else cgam_closed_add(w, score, off);
    }
    cgam_closed_end(w);
    p->count = left;
}

/* Makes space in a full list: its k-th lower bound becomes a floor. */
static void make_space(const batch *x, int64_t v, part *p, cgam_leader *buffer, cgam_sift_by *by)
{
    const seeker *k = &x->seek[v];
    int64_t count = 0;
    for (int64_t j = 0; j < p->count; j++) {
        double low = k->unit * (double)p->list[j].score - error_of_score(x, k, 1, p->list[j].row);
        cgam_lead(buffer, &count, x->leaders, (cgam_leader){.r = low, .row = p->list[j].row});
    }
    double floor = k->floor;
    if (count == x->leaders && buffer[count - 1].r > floor) floor = buffer[count - 1].r;
    double behind = x->in->beta * (floor - p->ref);
    if (behind > REF_BEHIND) {
        p->high *= exp(-behind) * (1 + 0x1p-40);
        p->low *= exp(-behind) * (1 - 0x1p-40);
        p->ref = floor;
        by->shift[v] = (float)(x->in->beta * floor * LOG2E);
    }
    cgam_closed w = {.cpu = x->in->Z->cpu, .beta = x->in->beta, .top = p->ref};
    close_rows(x, v, p, floor, &w);
    p->high += w.high;
    p->low += w.low;
    by->floor[v] = cgam_below_f32(floor / k->unit - TINY);
    p->full = p->count > x->places / 2;
    if (p->full) by->floor[v] = INFINITY; /* it falls back: lists no more rows */
}

typedef struct sieve {
    cgam_sift_by by;
    listed *lists; /* [count, places] */
    float scores[ROWS * WIDTH], high[WIDTH], low[WIDTH];
    double highs[WIDTH], lows[WIDTH]; /* of the tiles since the row `since` */
    int64_t since[WIDTH];
    uint64_t open[ROWS];
    int32_t above[WIDTH];
} sieve;

/* Adds the weights of the tiles up to row `end` to the part, as long as they are relative to one score. */
static void settle_tiles(sieve *y, int64_t v, int64_t end, part *p)
{
    double slack = CGAM_SIFT_SLACK(y->by.shift[v]), few = (double)(end - y->since[v]) * 0x1p-124;
    p->high += y->highs[v] * (1 + slack) + few;
    p->low += fmax(0, y->lows[v] * (1 - slack) - few);
    y->highs[v] = y->lows[v] = 0;
    y->since[v] = end;
}

static void list_rows(const batch *x, sieve *y, int64_t chunk, int64_t begin, int64_t count,
                      cgam_leader *buffer)
{
    for (int64_t r = 0; r < count; r++)
        for (uint64_t open = y->open[r]; open; open &= open - 1) {
            int64_t v = __builtin_ctzll(open);
            part *p = &x->parts[v * x->chunks + chunk];
            if (p->full) continue;
            p->list[p->count++] = (listed){(int32_t)(begin + r), y->scores[r * x->width + v]};
            if (p->count < x->places) continue;
            settle_tiles(y, v, begin + count, p);
            make_space(x, v, p, buffer, &y->by);
        }
}

static void sieve_free(const batch *x, sieve *y)
{
    if (y) cgam_free(x->env, y->lists);
    cgam_free(x->env, y);
}

static sieve *sieve_new(const batch *x, int64_t chunk)
{
    sieve *y = cgam_alloc(x->env, 1, sizeof *y);
    if (!y) return NULL;
    y->lists = cgam_alloc(x->env, (size_t)(x->count * x->places), sizeof *y->lists);
    if (!y->lists) {
        sieve_free(x, y);
        return NULL;
    }
    y->by = x->by;
    for (int64_t v = 0; v < WIDTH; v++) {
        y->highs[v] = y->lows[v] = 0;
        y->since[v] = chunk_begin(x, chunk);
    }
    for (int64_t v = 0; v < x->count; v++) {
        part *p = &x->parts[v * x->chunks + chunk];
        p->list = y->lists + v * x->places;
        p->ref = x->seek[v].floor;
    }
    return y;
}

/* Copies the entries of the lists, most of whose space is empty and reused by the next chunk. */
static cgam_status save_lists(const batch *x, int64_t chunk)
{
    size_t all = 0;
    for (int64_t v = 0; v < x->count; v++) all += (size_t)x->parts[v * x->chunks + chunk].count;
    listed *to = x->lists[chunk] = cgam_alloc(x->env, all, sizeof *to);
    if (!to) return cgam_fail_nomem(x->env, "rows that are open");
    for (int64_t v = 0; v < x->count; v++) {
        part *p = &x->parts[v * x->chunks + chunk];
        memcpy(to, p->list, (size_t)p->count * sizeof *to);
        p->list = to;
        to += p->count;
    }
    return CGAM_OK;
}

static cgam_status sift_chunk(void *arg, int64_t chunk)
{
    const batch *x = arg;
    const cgam_sketch *s = x->sketch;
    const cgam_cpu *cpu = x->in->Z->cpu;
    int64_t first = chunk_begin(x, chunk), end = chunk_begin(x, chunk + 1);
    int64_t blocks = cgam_int8_blocks(s->d);
    if (cgam_interrupted(x->env)) return CGAM_E_INTERRUPTED;
    cgam_leader *buffer = cgam_alloc(x->env, (size_t)x->leaders, sizeof *buffer);
    sieve *y = sieve_new(x, chunk);
    cgam_status status = y && buffer ? CGAM_OK : cgam_fail_nomem(x->env, "a tile of scores");
    for (int64_t i = first, n; i < end && status == CGAM_OK; i += n) {
        int64_t left = end - i; /* the remaining rows still fill a unit for tiles */
        n = left <= ROWS ? left : left < ROWS + CGAM_INT8_TILE ? left / 2 : ROWS;
        cpu->int8_many->dot(s->rows + i * s->d, s->scale + i * blocks, n, s->d, x->width, x->X,
                            y->scores);
        cpu->sift->run(n, x->width, y->scores, s->hat + i, s->rest + i, &y->by, x->focus, y->open,
                       y->high, y->low, y->above);
        for (int64_t v = 0; v < x->width; v++) {
            y->highs[v] += (double)y->high[v];
            y->lows[v] += (double)y->low[v];
        }
        for (int64_t v = 0; x->focus && v < x->count; v++)
            x->parts[v * x->chunks + chunk].above += y->above[v];
        list_rows(x, y, chunk, i, n, buffer);
    }
    for (int64_t v = 0; v < x->count && status == CGAM_OK; v++)
        settle_tiles(y, v, end, &x->parts[v * x->chunks + chunk]);
    if (status == CGAM_OK) status = save_lists(x, chunk);
    sieve_free(x, y);
    cgam_free(x->env, buffer);
    return status;
}

/* ---- Step 3: open rows --------------------------------------------------------------------- */
/* Do both terms close row `is`? */
static bool is_closed_by_both(const batch *x, int64_t v, const void *second, const listed *is,
                              double *score, double *off)
{
    const cgam_sketch *s = x->sketch;
    const seeker *k = &x->seek[v];
    float more;
    x->in->Z->cpu->int8->dot(s->rows + is->row * s->d, s->scale + is->row * cgam_int8_blocks(s->d),
                             1, s->d, 1, second, &more);
    *score = k->unit * ((double)is->score + (double)more);
    *off = error_of_score(x, k, 2, is->row);
    return judge_row(k, *score, *off, k->floor, is->row) == 0;
}

static void add_parts(const batch *x, int64_t v, cgam_attend_part *total, cgam_fast *fast)
{
    const seeker *k = &x->seek[v];
    for (int64_t c = 0; c < x->chunks; c++) {
        const part *p = &x->parts[v * x->chunks + c];
        double shrink = exp(x->in->beta * (p->ref - k->top)) * (1 + 0x1p-40);
        fast->high += p->high * shrink;
        fast->low += p->low * shrink * (1 - 0x1p-38);
        total->above += p->above;
    }
}

static void fill_answer(const batch *x, int64_t v, cgam_attend_part *total, double first,
                        cgam_fast *fast)
{
    const cgam_attend_in *in = x->in;
    cgam_attend_out *out = &x->out[v];
    double top = total->leader[0].r, shrink = exp(in->beta * (first - top));
    fast->low *= shrink;
    fast->high *= shrink;
    fast->known *= shrink;
    total->soft = (cgam_softmax){top, fast->known + fast->high, NAN, NAN};
    out->focus = x->seek[v].focus;
    out->skipped = 0;
    out->unsure = false;
    cgam_attend_tell(in, total, out);
    fast->fallback = !isfinite(fast->known) || !isfinite(fast->high) ||
                     total->leaders < x->leaders ||
                     (x->tol > 0 && !(fast->high - fast->low <= x->tol * fast->known));
}

static int by_row(const void *a, const void *b)
{
    int64_t x = ((const cgam_leader *)a)->row, y = ((const cgam_leader *)b)->row;
    return (x > y) - (x < y);
}

/* Scores the open rows of query v except `scored` [count], which are sorted by row, like the lists; `buffer` for
 * leaders. */
static void score_open_rows(const batch *x, int64_t v, const void *second,
                            const cgam_leader *scored, int64_t count, cgam_leader *buffer)
{
    const cgam_attend_in *in = x->in;
    const seeker *k = &x->seek[v];
    cgam_attend_part total = cgam_attend_part_new(buffer);
    cgam_fast fast = {0};
    int64_t worth = in->Z->n / WORTH;
    cgam_closed w = {.cpu = in->Z->cpu, .beta = in->beta, .top = k->top};
    for (int64_t c = 0; c < x->chunks; c++) {
        part *p = &x->parts[v * x->chunks + c];
        close_rows(x, v, p, k->floor, &w);
    }
    for (int64_t c = 0; c < x->chunks; c++) {
        const part *p = &x->parts[v * x->chunks + c];
        for (int64_t j = 0; j < p->count; j++) {
            double score, off;
            int64_t row = p->list[j].row;
            for (; count > 0 && scored->row < row; count--) scored++;
            bool known = count > 0 && scored->row == row;
            if (!known && is_closed_by_both(x, v, second, &p->list[j], &score, &off)) {
                cgam_closed_add(&w, score, off);
                continue;
            }
            if (fast.rescored++ == worth) return;
            cgam_leader is = known ? *scored : cgam_attend_look(in, v, row);
            cgam_lead(total.leader, &total.leaders, x->leaders, is);
            total.above += k->focus.row >= 0 && cgam_leads(is.r, is.row, &k->focus);
            fast.known += exp(in->beta * (is.r - k->top));
        }
    }
    cgam_closed_end(&w);
    fast.high = w.high;
    fast.low = w.low;
    add_parts(x, v, &total, &fast);
    if (total.leaders > 0) {
        fill_answer(x, v, &total, k->top, &fast);
        x->fast[v] = fast;
    }
}

static cgam_status settle_query(void *arg, int64_t v)
{
    const batch *x = arg;
    const cgam_sketch *s = x->sketch;
    const seeker *k = &x->seek[v];
    const cgam_int8 *loops = x->in->Z->cpu->int8;
    bool falls = k->falls;
    for (int64_t c = 0; c < x->chunks; c++) falls |= x->parts[v * x->chunks + c].full;
    if (falls) return CGAM_OK;
    cgam_leader *buffer = cgam_alloc(x->env, 2 * (size_t)x->leaders, sizeof *buffer);
    void *second = cgam_alloc(x->env, loops->room(1, s->d), 1);
    cgam_status status = buffer && second ? CGAM_OK : cgam_fail_nomem(x->env, "leaders");
    if (status == CGAM_OK) {
        int64_t count = 0;
        for (int64_t c = 0; c < x->chunks; c++) {
            const part *p = &x->parts[v * x->chunks + c];
            for (int64_t j = 0; j < p->count; j++)
                cgam_lead(buffer, &count, x->leaders,
                          (cgam_leader){.r = (double)p->list[j].score, .row = p->list[j].row});
        }
        raise_floor(x, v, buffer, count);
        loops->lay(1, s->d, k->is.terms + s->d, k->is.step + cgam_int8_blocks(s->d), second);
        qsort(buffer, (size_t)count, sizeof *buffer, by_row);
        score_open_rows(x, v, second, buffer, count, buffer + x->leaders);
    }
    cgam_free(x->env, buffer);
    cgam_free(x->env, second);
    return status;
}

/* ---- Setting up ---------------------------------------------------------------------------- */
static cgam_status sketch_query(void *arg, int64_t v)
{
    batch *x = arg;
    const cgam_attend_in *in = x->in;
    int64_t d = in->Z->d, blocks = cgam_int8_blocks(d);
    int8_t *first = x->terms + x->width * CGAM_SKETCH_TERMS * d;
    float *step = x->steps + x->width * CGAM_SKETCH_TERMS * blocks;
    double *rest = cgam_alloc(x->env, (size_t)d, sizeof *rest);
    if (!rest) return cgam_fail_nomem(x->env, "a sketch of queries");
    seeker *k = &x->seek[v];
    k->is.terms = x->terms + v * CGAM_SKETCH_TERMS * d;
    k->is.step = x->steps + v * CGAM_SKETCH_TERMS * blocks;
    k->floor = k->top = -INFINITY;
    cgam_sketch_vector(in->Z->cpu, d, in->q + v * d, in->Z->cpu->int8_many->most, rest, &k->is);
    for (int t = 0; t < CGAM_SKETCH_TERMS; t++) k->off[t] = cgam_sketch_bound(d, &k->is, t + 1);
    int exponent = k->is.exponent + x->sketch->exponent;
    k->unit = ldexp(1, exponent);
    k->falls = fabs((double)exponent) > UNITS_MAX || !cgam_sieve_serves(k->unit, in->beta);
    memcpy(first + v * d, k->is.terms, (size_t)d);
    memcpy(step + v * blocks, k->is.step, (size_t)blocks * sizeof *step);
    cgam_free(x->env, rest);
    return CGAM_OK;
}

static cgam_status sketch_queries(batch *x)
{
    int64_t d = x->sketch->d, terms = x->width * CGAM_SKETCH_TERMS;
    cgam_status status = cgam_parallel(x->env, x->count, sketch_query, x);
    if (status == CGAM_OK)
        x->in->Z->cpu->int8_many->lay(x->width, d, x->terms + terms * d,
                                      x->steps + terms * cgam_int8_blocks(d), x->X);
    return status;
}

static void batch_free(batch *x)
{
    for (int64_t c = 0; x->lists && c < x->chunks; c++) cgam_free(x->env, x->lists[c]);
    void *blocks[] = {x->terms, x->steps, x->X, x->first, x->chosen, x->parts, x->lists};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) cgam_free(x->env, blocks[k]);
}

static cgam_status batch_new(batch *x)
{
    size_t d = (size_t)x->sketch->d, width = (size_t)x->width,
           items = (size_t)(x->count * x->chunks);
    size_t blocks = (size_t)cgam_int8_blocks(x->sketch->d), terms = CGAM_SKETCH_TERMS + 1;
    x->terms = cgam_zalloc(x->env, width * terms * d, 1);
    x->steps = cgam_zalloc(x->env, width * terms * blocks, sizeof *x->steps);
    x->X = cgam_alloc(x->env, x->in->Z->cpu->int8_many->room(x->width, x->sketch->d), 1);
    x->first = cgam_alloc(x->env, (size_t)x->sample * width, sizeof *x->first);
    x->chosen = cgam_alloc(x->env, (size_t)x->sample, sizeof *x->chosen);
    x->parts = cgam_zalloc(x->env, items, sizeof *x->parts);
    x->lists = cgam_zalloc(x->env, (size_t)x->chunks, sizeof *x->lists);
    if (!x->terms || !x->steps || !x->X || !x->first || !x->chosen || !x->parts || !x->lists)
        return cgam_fail_nomem(x->env, "a search by a sketch");
    for (int64_t k = 0; k < x->sample; k++) x->chosen[k] = x->sketch->n * k / x->sample;
    return CGAM_OK;
}

static cgam_status search_batch(batch *x)
{
    cgam_status status = batch_new(x);
    if (status == CGAM_OK) status = sketch_queries(x);
    if (status == CGAM_OK)
        status = cgam_parallel(x->env, (x->sample + ROWS - 1) / ROWS, score_sample, x);
    if (status == CGAM_OK) status = cgam_parallel(x->env, x->count, first_floor, x);
    if (status == CGAM_OK) {
        set_sieve(x);
        status = cgam_parallel(x->env, x->chunks, sift_chunk, x);
    }
    if (status == CGAM_OK) status = cgam_parallel(x->env, x->count, settle_query, x);
    batch_free(x);
    return status;
}

static int64_t clamp(int64_t least, int64_t x, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

cgam_status cgam_attend_fast_many(cgam_env *env, const cgam_attend_in *in,
                                  const cgam_sketch *sketch, double tol, cgam_attend_out *out,
                                  cgam_fast *fast)
{
    int64_t n = in->Z->n;
    cgam_status status = CGAM_OK;
    for (int64_t v = 0; v < in->count; v++) fast[v] = (cgam_fast){.fallback = true};
    if (n < SAMPLE_MIN || n > INT32_MAX || n / WORTH < in->leaders || in->Z->d > CGAM_INT8_COLUMNS)
        return CGAM_OK;
    batch *x = cgam_alloc(env, 1, sizeof *x);
    if (!x) return cgam_fail_nomem(env, "a search by a sketch");
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v += WIDTH) {
        int64_t count = in->count - v < WIDTH ? in->count - v : WIDTH;
        const cgam_attend_in some = cgam_attend_some(in, v, count);
        int64_t chunks = clamp(1, n / CHUNK_ROWS, CGAM_CHUNKS_MAX);
        *x = (batch){.env = env,
                     .in = &some,
                     .sketch = sketch,
                     .tol = tol,
                     .count = count,
                     .width = (count + CGAM_INT8_SIDE - 1) / CGAM_INT8_SIDE * CGAM_INT8_SIDE,
                     .leaders = in->leaders,
                     .chunks = chunks,
                     .places = 64 + 4 * in->leaders + n / chunks / (chunks < 16 ? LIST : LIST_LESS),
                     .sample = clamp(SAMPLE_MIN, n / SAMPLE, SAMPLE_MAX),
                     .out = out + v,
                     .fast = fast + v};
        status = search_batch(x);
    }
    cgam_free(env, x);
    return status;
}
