/* attend.c: see attend.h.
 *
 * With one query the readout of a tile is delayed until the next tile is scored: `both` runs the two together, so
 * that arithmetic overlaps with memory reads (readout.h).
 *
 * The readout may leave rows out: where e_i <= 2^-55 / n times the sum so far, all of them together
 * weigh less than 2^-55 of the whole, which is below the rounding of the sums. The same holds for a chunk whose
 * largest score is that far below the largest of the bank: join drops the chunk with its sums. A chunk does not know
 * the largest score of the bank, but every tile publishes its own (`high`), so a chunk that will certainly be dropped
 * stops its readout and weights. If a later row comes near the highest score after all, the chunk is repeated from
 * its start. The dropped part depends only on scores. The part that was not computed depends on timing, but the
 * results do not. */
#include "num/attend.h"

#include "num/attend_parts.h"
#include "num/ranks.h"
#include "num/readout.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double NEGLIGIBLE = 0x1p-55;
static const double RISE = 16; /* beta (peak - top) at which sums are made relative to the peak */

typedef struct part { /* of one query, for one chunk */
    cgam_attend_part is;
    double peak;         /* the largest score; weights may be relative to an earlier one */
    double skipped;      /* the weights left out */
    bool strange;        /* a score without weight is NaN */
    bool idle;           /* sums and readout were abandoned: the chunk will be dropped */
    cgam_readout_sum to; /* y NULL: not requested */
} part;

typedef struct pass {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_leader *focus; /* [count], NULL = none */
    part *parts;              /* [chunks, count] */
    int64_t leaders, best;    /* kept per chunk, for r and for b and s */
    bool f32;                 /* some query is scored in f32 */
    float *x32, *e32;         /* [count, ld] q and e laid out, NULL = none */
    bool *f32_query;          /* [count] this query is scored in f32 */
    int64_t ld;
    /* With one query: the largest score of any chunk so far, and a score that `leaders` rows of some chunk reach:
     * lower scores can be ignored. */
    _Atomic double high, floor;
    double drop; /* a chunk is dropped if beta (its top - top of all) is at most this */
} pass;

/* A tile in progress: rows [begin, begin + rows). */
typedef struct tile {
    int64_t begin, rows;
    double *b, *s, *r, *e; /* [rows] */
    cgam_readout waits;
} tile;

static void scan_best(const cgam_f64 *k, cgam_best *best, int64_t most, const double *x,
                      const tile *t)
{
    if (!cgam_best_wants(best, most, k->largest(x, t->rows))) return;
    for (int64_t i = 0; i < t->rows; i++) cgam_best_take(best, most, x[i], t->begin + i);
}

static const float *vector_f32(const pass *ps, int64_t v, const float *x32)
{
    return ps->f32 && ps->f32_query[v] ? x32 + v * ps->ld : NULL;
}

/* Computes s of the tile for query v (from dots with e in t->s if there are directions), and r. */
static void gate_tile(const pass *ps, int64_t v, tile *t)
{
    const cgam_attend_in *in = ps->in;
    if (in->s)
        memcpy(t->s, cgam_rows_entries(in->Z, in->s, t->begin), (size_t)t->rows * sizeof *t->s);
    if (in->e) {
        const float *e32 = vector_f32(ps, v, ps->e32);
        cgam_readout_score(in->Z, t->begin, t->rows, in->e + v * in->Z->d, e32, t->s);
        const double *pivot = cgam_rows_entries(in->Z, in->pivot, t->begin);
        for (int64_t i = 0; i < t->rows; i++) t->s[i] *= pivot[i];
        for (int64_t k = 0; k < in->edge; k++) {
            int64_t i = in->border[k] - t->begin;
            if (i >= 0 && i < t->rows) t->s[i] = in->edges[v * in->edge + k];
        }
    }
    if (in->s || in->e)
        for (int64_t i = 0; i < t->rows; i++) t->r[i] = t->b[i] + in->lambda * t->s[i];
    else t->r = t->b;
}

static void raise_top(const pass *ps, part *p, double top)
{
    double shrink = cgam_softmax_raise(&p->is.soft, ps->in->beta, top);
    p->skipped *= shrink;
    if (!p->to.y) return;
    cgam_readout_flush(ps->in->Z, &p->to);
    for (int64_t j = 0; j < ps->in->Z->d; j++) p->to.y[j] *= shrink;
}

/* Updates leaders, best of b and s, and rank, which need only scores. Returns the largest score. */
static double scan_scores(pass *ps, int64_t v, cgam_attend_part *p, const tile *t)
{
    const cgam_attend_in *in = ps->in;
    const cgam_f64 *k = in->Z->cpu->f64;
    bool gated = in->s || in->e;
    double highest = k->largest(t->r, t->rows);
    const cgam_leader *last = &p->leader[ps->leaders - 1];
    double floor = atomic_load_explicit(&ps->floor, memory_order_relaxed);
    if (!(highest < floor) && (p->leaders < ps->leaders || !(highest <= last->r))) {
        for (int64_t i = 0; i < t->rows; i++)
            if (!(t->r[i] < floor) && (p->leaders < ps->leaders || !(t->r[i] <= last->r)))
                cgam_lead(
                    p->leader, &p->leaders, ps->leaders,
                    (cgam_leader){
                        .r = t->r[i], .b = t->b[i], .s = gated ? t->s[i] : 0, .row = t->begin + i});
        if (in->count == 1 && p->leaders == ps->leaders) cgam_raise(&ps->floor, last->r);
    }
    if (gated) {
        scan_best(k, &p->b, ps->best, t->b, t);
        scan_best(k, &p->s, ps->best, t->s, t);
    }
    if (ps->focus && ps->focus[v].row >= 0 && highest >= ps->focus[v].r) {
        const cgam_leader *f = &ps->focus[v];
        for (int64_t i = 0; i < t->rows; i++)
            p->above += t->r[i] > f->r || (t->r[i] == f->r && t->begin + i < f->row);
    }
    return highest;
}

/* NaN scores, and infinite ones where they are invalid. */
static bool has_bad_scores(const cgam_attend_in *in, const tile *t)
{
    return in->Z->cpu->f64->above(t->r, t->rows, in->wary ? DBL_MAX : INFINITY) > 0;
}

/* Weights of a tile against the largest score so far, and their sums. */
static void weigh_tile(const pass *ps, part *p, double highest, tile *t)
{
    const cgam_attend_in *in = ps->in;
    const cgam_softmax *soft = &p->is.soft;
    double sums[3];
    p->peak = fmax(p->peak, highest);
    if (highest > soft->top && !(in->beta * (highest - soft->top) <= RISE))
        raise_top(ps, p, highest);
    if (soft->top == -INFINITY) { /* only masks or NaN so far */
        p->strange |= has_bad_scores(in, t);
        memset(t->e, 0, (size_t)t->rows * sizeof *t->e);
        return;
    }
    if (in->wary) p->strange |= has_bad_scores(in, t);
    in->Z->cpu->f64->softmax(t->r, t->rows, in->beta, soft->top, t->e, sums);
    cgam_softmax_add(&p->is.soft, sums[0], sums[1], sums[2]); /* NaN if a score is NaN */
}

enum { TILE_VECTORS = 6 };

static tile tile_at(double *buffer, int64_t size, int64_t begin, int64_t rows)
{
    return (tile){begin,
                  rows,
                  buffer,
                  buffer + size,
                  buffer + 2 * size,
                  buffer + 3 * size,
                  cgam_readout_in(buffer + 4 * size, size)};
}

static void plan_readout(const pass *ps, int64_t v, part *p, tile *t)
{
    const cgam_rows *Z = ps->in->Z;
    double cut = NEGLIGIBLE / (double)Z->n * p->is.soft.sum;
    t->waits.f32 = ps->f32 && ps->f32_query[v];
    p->skipped += cgam_readout_set(Z, t->begin, t->rows, t->e, cut, &t->waits);
}

static part part_new(cgam_leader *leader, double *y)
{
    return (part){.is = cgam_attend_part_new(leader), .peak = -INFINITY, .to.y = y};
}

/* One query: the readout of a tile runs with the scores of the next. Returns false if it was abandoned too early and
 * must be repeated. */
static bool attend_chunk_of_one(pass *ps, part *p, bool may_idle, int64_t begin, int64_t end,
                                int64_t size, double *buffer)
{
    const cgam_attend_in *in = ps->in;
    const float *x32 = vector_f32(ps, 0, ps->x32);
    cgam_readout waits = {0};
    for (int64_t i = begin, turn = 0; i < end; i += size, turn ^= 1) {
        tile t =
            tile_at(buffer + turn * TILE_VECTORS * size, size, i, end - i < size ? end - i : size);
        cgam_readout_dot(in->Z, i, t.rows, in->q, x32, t.b, &waits, &p->to);
        gate_tile(ps, 0, &t);
        double highest = scan_scores(ps, 0, &p->is, &t), top = fmax(p->peak, highest);
        cgam_raise(&ps->high, highest);
        if (may_idle && in->beta * (top - atomic_load(&ps->high)) <= ps->drop) {
            p->idle = true;
            p->peak = top;
            p->strange |= has_bad_scores(in, &t);
            continue;
        }
        if (p->idle) return false;
        weigh_tile(ps, p, highest, &t);
        if (p->to.y) plan_readout(ps, 0, p, &t);
        waits = t.waits;
    }
    if (waits.count) cgam_readout_add(in->Z, &waits, &p->to);
    return true;
}

static cgam_status attend_chunk(void *arg, int64_t chunk)
{
    pass *ps = arg;
    const cgam_attend_in *in = ps->in;
    const cgam_rows *Z = in->Z;
    part *parts = ps->parts + chunk * in->count;
    int64_t size = cgam_readout_tile(Z);
    int64_t begin = cgam_rows_chunk_begin(Z, chunk);
    int64_t end = cgam_rows_chunk_begin(Z, chunk + 1);
    if (cgam_interrupted(ps->env)) return CGAM_E_INTERRUPTED;
    double *buffer = cgam_alloc(ps->env, (size_t)(2 * TILE_VECTORS * size), sizeof *buffer);
    float *y32 = NULL;
    if (ps->f32) y32 = cgam_zalloc(ps->env, (size_t)(in->count * ps->ld), sizeof *y32);
    if (!buffer || (ps->f32 && !y32)) {
        cgam_free(ps->env, buffer);
        cgam_free(ps->env, y32);
        return cgam_fail_nomem(ps->env, "a tile of scores");
    }
    for (int64_t v = 0; y32 && v < in->count; v++) parts[v].to.y32 = y32 + v * ps->ld;
    if (in->count == 1) {
        if (!attend_chunk_of_one(ps, parts, true, begin, end, size, buffer)) {
            *parts = part_new(parts->is.leader, parts->to.y);
            if (parts->to.y) memset(parts->to.y, 0, (size_t)Z->d * sizeof *parts->to.y);
            parts->to.y32 = y32;
            if (y32) memset(y32, 0, (size_t)ps->ld * sizeof *y32);
            attend_chunk_of_one(ps, parts, false, begin, end, size, buffer);
        }
    } else {
        for (int64_t i = begin; i < end; i += size) {
            for (int64_t v = 0; v < in->count; v++) {
                tile t = tile_at(buffer, size, i, end - i < size ? end - i : size);
                cgam_readout_score(Z, i, t.rows, in->q + v * Z->d, vector_f32(ps, v, ps->x32), t.b);
                gate_tile(ps, v, &t);
                weigh_tile(ps, &parts[v], scan_scores(ps, v, &parts[v].is, &t), &t);
                if (!parts[v].to.y) continue;
                plan_readout(ps, v, &parts[v], &t);
                cgam_readout_add(Z, &t.waits, &parts[v].to);
            }
        }
    }
    for (int64_t v = 0; v < in->count; v++) {
        if (parts[v].to.y) cgam_readout_flush(Z, &parts[v].to);
        parts[v].to.y32 = NULL;
    }
    cgam_free(ps->env, buffer);
    cgam_free(ps->env, y32);
    return CGAM_OK;
}

/* Returns the r that the pass computes for a row. */
static double score_row(const pass *ps, int64_t v, int64_t row)
{
    const cgam_attend_in *in = ps->in;
    double buffer[TILE_VECTORS] = {0};
    tile t = tile_at(buffer, 1, row, 1);
    cgam_readout_score(in->Z, row, 1, in->q + v * in->Z->d, vector_f32(ps, v, ps->x32), t.b);
    gate_tile(ps, v, &t);
    return t.r[0];
}

/* Joins the chunks of query v in order. Their readouts, y [chunks, count, d], are only made relative to the whole. */
static bool join_chunks(const pass *ps, int64_t v, int64_t chunks, double *y,
                        cgam_attend_part *into, cgam_attend_out *out)
{
    const cgam_attend_in *in = ps->in;
    int64_t d = in->Z->d, from, to;
    bool strange = false;
    cgam_attend_part total = *into;
    cgam_rows_here(in->Z, chunks, &from, &to);
    for (int64_t c = 0; c < chunks; c++)
        total.soft.top = fmax(total.soft.top, ps->parts[c * in->count + v].peak);
    out->skipped = 0;
    for (int64_t c = 0; c < chunks; c++) {
        const part *p = &ps->parts[c * in->count + v];
        double *mine = out->readout && c >= from && c < to ? y + (c * in->count + v) * d : NULL;
        double shrink = 0;
        double gap = in->beta * (p->peak - total.soft.top);
        strange |= p->strange || isnan(p->is.soft.sum);
        cgam_attend_join_lists(&total, ps->leaders, ps->best, &p->is);
        if (p->peak == -INFINITY) {
            /* nothing but masks */
        } else if (gap <= ps->drop) {
            int64_t rows = cgam_rows_chunk_begin(in->Z, c + 1) - cgam_rows_chunk_begin(in->Z, c);
            out->skipped += (double)rows * exp(gap);
        } else {
            shrink = cgam_softmax_join(&total.soft, p->is.soft, in->beta);
            out->skipped += shrink * p->skipped;
        }
        if (mine && shrink == 0) memset(mine, 0, (size_t)d * sizeof *mine);
        else if (mine && shrink != 1)
            for (int64_t j = 0; j < d; j++) mine[j] *= shrink;
    }
    *into = total;
    return strange;
}

/* Fills the answer to query v over all chunks; y [d]: the sum of their readouts. */
static void fill_answer(const pass *ps, int64_t v, const double *y, cgam_attend_part total,
                        bool strange, cgam_attend_out *out)
{
    const cgam_attend_in *in = ps->in;
    for (int64_t j = 0; out->readout && y && j < in->Z->d; j++)
        out->readout[j] = y[j] / total.soft.sum;
    out->unsure = false;
    if (ps->f32 && ps->f32_query[v]) {
        cgam_rough rough = {.off = cgam_attend_error(in, v, CGAM_F32_ERROR),
                            .off_b = cgam_attend_error_raw(in, v, CGAM_F32_ERROR),
                            .off_s = cgam_attend_error_gate(in, v, CGAM_F32_ERROR),
                            .best = ps->best};
        for (int64_t k = 0; k < total.leaders; k++)
            total.leader[k].weight = exp(in->beta * (total.leader[k].r - total.soft.top));
        out->focus.weight = exp(in->beta * (out->focus.r - total.soft.top));
        out->unsure =
            !cgam_attend_put_right(in, v, &rough, &total, &out->focus, NULL, &out->skipped).leaders;
    } else if (out->focus.row >= 0) {
        out->focus = cgam_attend_look(in, v, out->focus.row);
    }
    cgam_attend_tell(in, &total, out);
    if (strange) out->soft.sum = NAN;
}

double cgam_attend_error_raw(const cgam_attend_in *in, int64_t v, double error)
{
    return error * in->size * cgam_array_norm(in->Z->d, in->q + v * in->Z->d);
}

double cgam_attend_error_gate(const cgam_attend_in *in, int64_t v, double error)
{
    if (!in->e) return 0;
    return error * in->size * in->pivot_max * cgam_array_norm(in->Z->d, in->e + v * in->Z->d);
}

double cgam_attend_error(const cgam_attend_in *in, int64_t v, double error)
{
    return cgam_attend_error_raw(in, v, error) + in->lambda * cgam_attend_error_gate(in, v, error);
}

/* Does the bound in attend.h allow f32? Sizes far from 1 could overflow. */
bool cgam_attend_f32(const cgam_attend_in *in, int64_t v)
{
    const cgam_rows *Z = in->Z;
    if (!in->f32 || Z->dtype == CGAM_F64 || !cgam_f32_holds(in->size)) return false;
    if (in->e && !(in->pivot_max > 0)) return false;
    double q = cgam_array_norm(Z->d, in->q + v * Z->d);
    double e = in->e ? cgam_array_norm(Z->d, in->e + v * Z->d) : 0;
    if (!cgam_f32_holds(q) || (e != 0 && !cgam_f32_holds(e))) return false;
    return in->beta * cgam_attend_error(in, v, CGAM_F32_ERROR) <= CGAM_ATTEND_F32;
}

cgam_attend_in cgam_attend_some(const cgam_attend_in *in, int64_t from, int64_t count)
{
    cgam_attend_in sub = *in;
    sub.count = count;
    sub.q = in->q + from * in->Z->d;
    if (in->e) sub.e = in->e + from * in->Z->d;
    if (in->e) sub.edges = in->edges + from * in->edge;
    if (in->focus) sub.focus = in->focus + from;
    return sub;
}

static cgam_status lay_out_f32(pass *ps)
{
    const cgam_attend_in *in = ps->in;
    int64_t d = in->Z->d, any = 0;
    size_t count = (size_t)in->count;
    ps->f32_query = cgam_zalloc(ps->env, count, sizeof *ps->f32_query);
    if (!ps->f32_query) return cgam_fail_nomem(ps->env, "a pass over the bank");
    for (int64_t v = 0; v < in->count; v++) any += ps->f32_query[v] = cgam_attend_f32(in, v);
    if (!any) return CGAM_OK;
    ps->ld = cgam_f32_room(d);
    ps->x32 = cgam_alloc(ps->env, count * (size_t)ps->ld, sizeof *ps->x32);
    if (in->e) ps->e32 = cgam_alloc(ps->env, count * (size_t)ps->ld, sizeof *ps->e32);
    if (!ps->x32 || (in->e && !ps->e32)) return cgam_fail_nomem(ps->env, "a pass over the bank");
    ps->f32 = true;
    ps->leaders += CGAM_LEADERS_SPARE;
    ps->best = CGAM_BEST;
    for (int64_t v = 0; v < in->count; v++) {
        if (!ps->f32_query[v]) continue;
        in->Z->cpu->f32->lay[in->Z->dtype](in->q + v * d, d, ps->x32 + v * ps->ld);
        if (in->e) in->Z->cpu->f32->lay[in->Z->dtype](in->e + v * d, d, ps->e32 + v * ps->ld);
    }
    return CGAM_OK;
}

/* Shares the results of other ranks' chunks, and brings the rows that will be read individually. */
static cgam_status share_parts(const pass *ps, int64_t chunks, cgam_leader *leader)
{
    const cgam_attend_in *in = ps->in;
    int64_t each = ps->leaders * in->count, parts = chunks * in->count;
    if (!in->Z->shard) return CGAM_OK;
    cgam_status status =
        cgam_rows_share(ps->env, in->Z, chunks, (size_t)in->count * sizeof *ps->parts, ps->parts);
    if (status == CGAM_OK)
        status = cgam_rows_share(ps->env, in->Z, chunks, (size_t)each * sizeof *leader, leader);
    for (int64_t k = 0; k < parts; k++) ps->parts[k].is.leader = leader + k * ps->leaders;
    return status;
}

/* Joins all queries: lists and softmaxes in the order of chunks, readouts by a tree. */
static cgam_status join_all(const pass *ps, int64_t chunks, double *y, cgam_leader *leader,
                            cgam_attend_out *out)
{
    const cgam_attend_in *in = ps->in;
    cgam_env *env = ps->env;
    cgam_attend_part *total = cgam_alloc(env, (size_t)in->count, sizeof *total);
    bool *strange = cgam_zalloc(env, (size_t)in->count, sizeof *strange);
    double *sums = cgam_alloc(env, (size_t)(y ? in->count * in->Z->d : 1), sizeof *sums);
    cgam_status status =
        total && strange && sums ? CGAM_OK : cgam_fail_nomem(env, "a pass over the bank");
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        total[v] = cgam_attend_part_new(leader + v * ps->leaders);
        strange[v] = join_chunks(ps, v, chunks, y, &total[v], &out[v]);
    }
    if (status == CGAM_OK && y)
        status = cgam_rows_join(env, in->Z, chunks, in->count * in->Z->d, y, sums);
    if (status == CGAM_OK) status = cgam_attend_bring(env, in, total, out);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++)
        fill_answer(ps, v, y ? sums + v * in->Z->d : NULL, total[v], strange[v], &out[v]);
    cgam_free(env, total);
    cgam_free(env, sums);
    cgam_free(env, strange);
    return status;
}

cgam_status cgam_attend(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    int64_t chunks = cgam_rows_chunks(in->Z), parts = chunks * in->count, d = in->Z->d;
    bool reads = false;
    for (int64_t v = 0; v < in->count; v++) reads |= out[v].readout != NULL;
    pass ps = {.env = env, .in = in, .leaders = in->leaders, .best = 2};
    atomic_init(&ps.high, -INFINITY);
    atomic_init(&ps.floor, -INFINITY);
    ps.drop = log(NEGLIGIBLE / (double)in->Z->n);
    cgam_leader *leader = NULL, *focus = NULL;
    double *y = NULL;
    cgam_status status = lay_out_f32(&ps);
    if (status != CGAM_OK) goto done;
    ps.parts = cgam_zalloc(env, (size_t)parts, sizeof *ps.parts);
    leader = cgam_alloc(env, (size_t)((parts + in->count) * ps.leaders), sizeof *leader);
    focus = cgam_alloc(env, (size_t)in->count, sizeof *focus);
    y = reads ? cgam_parts_new(env, in->Z, chunks, in->count * d) : NULL;
    if (!ps.parts || !leader || !focus || (reads && !y)) {
        status = cgam_fail_nomem(env, "a pass over the bank");
        goto done;
    }
    int64_t from, to;
    cgam_rows_here(in->Z, chunks, &from, &to);
    if (reads && to > from)
        memset(y + from * in->count * d, 0, (size_t)((to - from) * in->count * d) * sizeof *y);
    for (int64_t k = 0; k < parts; k++)
        ps.parts[k] = part_new(
            leader + k * ps.leaders,
            out[k % in->count].readout && k / in->count >= from && k / in->count < to ? y + k * d
                                                                                      : NULL);
    if (in->focus) status = cgam_attend_bring_rows(env, in, in->count, in->focus);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        int64_t row = in->focus ? in->focus[v] : -1;
        focus[v] = (cgam_leader){.row = row, .r = row >= 0 ? score_row(&ps, v, row) : 0};
        out[v].focus = focus[v];
    }
    ps.focus = in->focus ? focus : NULL;
    if (status == CGAM_OK) status = cgam_rows_run(env, in->Z, chunks, attend_chunk, &ps);
    if (status == CGAM_OK) status = share_parts(&ps, chunks, leader);
    if (status == CGAM_OK) status = join_all(&ps, chunks, y, leader + parts * ps.leaders, out);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        if (!out[v].unsure) continue;
        cgam_attend_in one = cgam_attend_some(in, v, 1);
        one.f32 = false;
        status = cgam_attend(env, &one, &out[v]);
    }
done:
    cgam_free(env, ps.parts);
    cgam_free(env, ps.x32);
    cgam_free(env, ps.e32);
    cgam_free(env, ps.f32_query);
    cgam_free(env, leader);
    cgam_free(env, focus);
    cgam_parts_free(env, in->Z, chunks, in->count * d, y);
    return status;
}
