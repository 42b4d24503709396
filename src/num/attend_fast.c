/* attend_fast.c: see attend_fast.h.
 *
 * 1. The sketch is scanned: a float for every row and vector.
 * 2. The best by those are scored in double. The last of them is the floor: no row whose upper bound is
 *    below it can be a leader. A few queries find their best while they scan.
 * 3. Rows above the floor are listed, the weights of the others are bounded and summed; without gates in f32
 * (sieve.h). 4. If the sum's interval is wider than the tolerance, a histogram of the upper bounds of weights
 * determines how far down rows must be scored to meet it; then step 3 is repeated in double. 5. If the scan used one
 * term of the query, the second is added for the rows listed; rows still open are scored in double. */
#include "num/attend_fast.h"

#include "num/attend_search.h"
#include "num/rounding.h"
#include "num/sieve.h"

#include <float.h>
#include <string.h>

enum {
    TILE = 256,            /* rows whose bounds are made at once */
    BINS = CGAM_SEEK_BINS, /* a quarter of an e-fold each */
    MANY = 8, /* from this many queries on, one term of each is scanned instead of wide numbers */
    WORK = 8, /* at least this many rows are scored by one thread at a time, */
    WORK_NUMBERS = 1 << 16 /* or rows of this many numbers in all: waking a thread takes longer */
};
static const double TINY = 0x1p-100; /* cpu/int8.h */
static const double BIN = 0.25;
static const double NOTHING = -80; /* beta (r - top) below which weights are bounded by a count */
static const double ROOM = 0x1p26; /* scores of a group of queries */

/* The scores of rows [begin, begin + count) and their error bounds. */
typedef struct tile {
    int64_t begin, count;
    double b[TILE], b_off[TILE], s[TILE], s_off[TILE], r[TILE], r_off[TILE], high[TILE];
} tile;

/* Scores of rows by one vector, as scanned or with second terms if there are more. */
static void scores_of(const cgam_probe *p, int64_t i, int64_t count, const float *more,
                      double *score)
{
    for (int64_t k = 0; k < count; k++)
        score[k] = p->unit * ((double)p->scan[i + k] + (more ? (double)more[k] : 0));
}

/* The same with their bounds. */
static void bound_scores(const cgam_search *x, const cgam_probe *p, int64_t i, int64_t count,
                         const float *more, double *score, double *off)
{
    const cgam_sketch *s = x->sketch;
    double hat = p->off[more ? 1 : 0].hat, rest = p->off[more ? 1 : 0].rest;
    scores_of(p, i, count, more, score);
    for (int64_t k = 0; k < count; k++)
        off[k] = p->unit * (hat * (double)s->hat[i + k] + rest * (double)s->rest[i + k] + TINY) *
                 CGAM_SLACK;
}

static void bound_gates(const cgam_search *x, const cgam_seeker *k, tile *t, const float *more)
{
    const cgam_attend_in *in = x->in;
    int64_t v = k - x->seek;
    if (in->s) {
        memcpy(t->s, in->s + t->begin, (size_t)t->count * sizeof *t->s);
        memset(t->s_off, 0, (size_t)t->count * sizeof *t->s_off);
        return;
    }
    bound_scores(x, &k->e, t->begin, t->count, more, t->s, t->s_off);
    for (int64_t j = 0; j < t->count; j++) {
        double pivot = in->pivot[t->begin + j];
        t->s[j] *= pivot;
        t->s_off[j] *= fabs(pivot) * CGAM_SLACK;
    }
    for (int64_t j = 0; j < in->edge; j++) {
        int64_t at = in->border[j] - t->begin;
        if (at < 0 || at >= t->count) continue;
        t->s[at] = in->edges[v * in->edge + j];
        t->s_off[at] = 0;
    }
}

/* more: second terms of q and then of e, for one row each; NULL = as scanned. */
static void bound_tile(const cgam_search *x, const cgam_seeker *k, tile *t, const float *more)
{
    bound_scores(x, &k->q, t->begin, t->count, more, t->b, t->b_off);
    if (!x->gated) {
        for (int64_t j = 0; j < t->count; j++) {
            t->r[j] = t->b[j];
            t->r_off[j] = t->b_off[j] * CGAM_SLACK + 8 * CGAM_U * fabs(t->b[j]);
            t->high[j] = t->r[j] + t->r_off[j];
        }
        return;
    }
    bound_gates(x, k, t, more ? more + 1 : NULL);
    double lambda = x->in->lambda;
    for (int64_t j = 0; j < t->count; j++) {
        double gate = lambda * t->s[j], off = lambda * t->s_off[j];
        t->r[j] = t->b[j] + gate;
        /* that sum is rounded here, and in double for the row itself */
        t->r_off[j] = (t->b_off[j] + off + 8 * CGAM_U * (fabs(t->b[j]) + fabs(gate))) * CGAM_SLACK;
        t->high[j] = t->r[j] + t->r_off[j];
    }
}

/* Could row j of the tile matter? Counts it among those above the focus if that is certain. */
static bool is_open(const cgam_search *x, const cgam_seeker *k, const tile *t, int64_t j,
                    int64_t *above)
{
    const cgam_leader *f = &k->focus;
    if (!(t->high[j] < k->floor_r)) return true;
    if (x->gated && !(t->b[j] + t->b_off[j] < k->floor_b)) return true;
    if (x->gated && !(t->s[j] + t->s_off[j] < k->floor_s)) return true;
    if (f->row < 0 || t->high[j] < f->r) return false;
    if (!(t->r[j] - t->r_off[j] > f->r)) return true;
    ++*above;
    return false;
}

/* ---- Passes over the scanned rows ------------------------------------------------------------ */
typedef void visitor(cgam_search *x, cgam_seeker *k, cgam_seek_part *p, tile *t);
typedef struct walk {
    cgam_search *x;
    visitor *visit;
} walk;
static visitor take_open_rows;

/* Are the open rows of a query found in f32? */
static bool finds_in_f32(const cgam_search *x, const cgam_seeker *k, visitor *visit)
{
    return visit == take_open_rows && !x->gated && k->focus.row < 0 && !k->lowered && x->wide &&
           cgam_sieve_serves(k->q.unit, x->in->beta);
}

static void sift(cgam_search *x, const cgam_seeker *k, cgam_seek_part *p, int64_t begin,
                 int64_t end)
{
    const cgam_rows *Z = x->in->Z;
    cgam_sift_one by =
        cgam_sieve_of(&k->q.is, k->q.off[0], k->q.unit, x->in->beta, k->floor_r, k->top);
    p->listed = cgam_sieve_rows(&by, x->sketch, Z->cpu, begin, end - begin, k->q.scan + begin,
                                x->list + (k - x->seek) * Z->n + begin, &p->low, &p->high);
}

static cgam_status walk_chunk(void *arg, int64_t item)
{
    const walk *w = arg;
    cgam_search *x = w->x;
    int64_t chunk = item % x->chunks, end = cgam_rows_chunk_begin(x->in->Z, chunk + 1);
    cgam_seeker *k = &x->seek[item / x->chunks];
    if (cgam_interrupted(x->env)) return CGAM_E_INTERRUPTED;
    if (k->limit < 0 || (x->again && !k->lowered)) return CGAM_OK; /* falls back, or is done */
    if (finds_in_f32(x, k, w->visit)) {
        sift(x, k, &x->parts[item], cgam_rows_chunk_begin(x->in->Z, chunk), end);
        return CGAM_OK;
    }
    for (int64_t i = cgam_rows_chunk_begin(x->in->Z, chunk); i < end; i += TILE) {
        tile t;
        t.begin = i;
        t.count = end - i < TILE ? end - i : TILE;
        w->visit(x, k, &x->parts[item], &t);
    }
    return CGAM_OK;
}

static cgam_status walk_chunks(cgam_search *x, visitor *each)
{
    walk w = {x, each};
    return cgam_parallel(x->env, x->in->count * x->chunks, walk_chunk, &w);
}

/* The largest of the scores of a tile. */
static double largest_score(const cgam_search *x, const float *score, int64_t count)
{
    const cgam_gemm *gemm = x->in->Z->cpu->gemm;
    double lane[TILE], top = -INFINITY;
    int64_t lanes = gemm->lanes32, even = count / lanes * lanes;
    gemm->tops32(count / lanes, lanes, score, lane);
    for (int64_t k = 0; k < lanes; k++) top = lane[k] > top ? lane[k] : top;
    for (int64_t k = even; k < count; k++) top = (double)score[k] > top ? (double)score[k] : top;
    return top;
}

/* Scans rows with wide numbers here: a separate round of threads took as long as a twentieth of GloVe. Needs only
 * scores; without gates they need no bounds. */
static void take_best_scores(cgam_search *x, cgam_seeker *k, cgam_seek_part *p, tile *t)
{
    const cgam_f64 *f64 = x->in->Z->cpu->f64;
    cgam_attend_part *best = &p->best;
    const cgam_leader *last = &best->leader[x->leaders - 1];
    if (x->wide) cgam_search_scan_wide(x, k - x->seek, t->begin, t->count);
    double seen = atomic_load_explicit(&k->seen, memory_order_relaxed), top;
    if (x->gated) bound_tile(x, k, t, NULL);
    top = x->gated ? f64->largest(t->r, t->count)
                   : k->q.unit * largest_score(x, k->q.scan + t->begin, t->count);
    if (!(top < seen) && (best->leaders < x->leaders || !(top <= last->r))) {
        if (!x->gated) scores_of(&k->q, t->begin, t->count, NULL, t->r);
        for (int64_t j = 0; j < t->count; j++)
            if (!(t->r[j] < seen) && (best->leaders < x->leaders || !(t->r[j] <= last->r)))
                cgam_lead(best->leader, &best->leaders, x->leaders,
                          (cgam_leader){.r = t->r[j], .row = t->begin + j});
        if (best->leaders == x->leaders) cgam_raise(&k->seen, last->r);
    }
    if (!x->gated) return;
    if (cgam_best_wants(&best->b, 2, f64->largest(t->b, t->count)))
        for (int64_t j = 0; j < t->count; j++) cgam_best_take(&best->b, 2, t->b[j], t->begin + j);
    if (cgam_best_wants(&best->s, 2, f64->largest(t->s, t->count)))
        for (int64_t j = 0; j < t->count; j++) cgam_best_take(&best->s, 2, t->s[j], t->begin + j);
}

/* Adds to the histogram how much each row leaves open of the sum, in units of the largest weight of its bin, given by
 * how far the row's upper bound is below the top. */
static void take_bins(cgam_search *x, cgam_seeker *k, cgam_seek_part *p, tile *t)
{
    double beta = x->in->beta;
    bound_tile(x, k, t, NULL);
    for (int64_t j = 0; j < t->count; j++) {
        double below = beta * (k->top - t->high[j]) * (1 / BIN), off = 2 * beta * t->r_off[j];
        int64_t bin = below < BINS ? below > 0 ? (int64_t)below : 0 : BINS - 1;
        p->bins[bin] += off < 1 ? off : 1; /* 1 - exp(-off) or more */
    }
}

static void take_open_rows(cgam_search *x, cgam_seeker *k, cgam_seek_part *p, tile *t)
{
    const cgam_attend_in *in = x->in;
    int64_t begin = cgam_rows_chunk_begin(in->Z, (p - x->parts) % x->chunks);
    int32_t *list = x->list + (k - x->seek) * in->Z->n + begin;
    bound_tile(x, k, t, NULL);
    double e[TILE], sums[3], most = 0, largest = in->Z->cpu->f64->largest(t->high, t->count);
    bool closed = !x->gated && k->focus.row < 0 && largest < k->floor_r; /* all are finite */
    for (int64_t j = 0; j < t->count && !closed; j++) {
        if (is_open(x, k, t, j, &p->best.above) || t->begin + j == k->focus.row) {
            list[p->listed++] = (int32_t)(t->begin + j - begin);
            t->high[j] = -INFINITY;
        } else if (t->r_off[j] > most) {
            most = t->r_off[j];
        }
    }
    if (closed) most = in->Z->cpu->f64->largest(t->r_off, t->count);
    else largest = in->Z->cpu->f64->largest(t->high, t->count);
    if (largest == -INFINITY) return;
    if (in->beta * (largest - k->top) < NOTHING) {
        p->high += (double)t->count * exp(in->beta * (largest - k->top));
        return;
    }
    in->Z->cpu->f64->softmax(t->high, t->count, in->beta, k->top, e, sums);
    p->high += sums[0] + (double)t->count * DBL_MIN;
    p->low += sums[0] * exp(-2 * in->beta * most * CGAM_SLACK);
}

/* Scores the best of the scan in double, and sets floors and top. */
static cgam_status set_floors(void *arg, int64_t v)
{
    const cgam_search *x = arg;
    const cgam_attend_in *in = x->in;
    cgam_seeker *k = &x->seek[v];
    if (k->limit < 0) return CGAM_OK;
    cgam_attend_part total =
        cgam_attend_part_new(x->leader + (in->count * x->chunks + v) * x->leaders);
    for (int64_t c = 0; c < x->chunks; c++)
        cgam_attend_join_lists(&total, x->leaders, 2, &x->parts[v * x->chunks + c].best);
    k->floor_r = INFINITY;
    k->floor_b = k->floor_s = -INFINITY;
    k->top = -INFINITY;
    for (int64_t j = 0; j < total.leaders; j++) {
        double r = cgam_attend_look(in, v, total.leader[j].row).r;
        if (!(r >= k->floor_r)) k->floor_r = r;
        if (r > k->top) k->top = r;
    }
    if (x->gated && in->Z->n > 1) { /* a single row has no second */
        k->floor_b = fmin(cgam_attend_look(in, v, total.b.row[0]).b,
                          cgam_attend_look(in, v, total.b.row[1]).b);
        k->floor_s = fmin(cgam_attend_look(in, v, total.s.row[0]).s,
                          cgam_attend_look(in, v, total.s.row[1]).s);
    }
    k->focus = (cgam_leader){.row = in->focus ? in->focus[v] : -1};
    if (k->focus.row >= 0) k->focus = cgam_attend_look(in, v, k->focus.row);
    if (!isfinite(k->floor_r) || !isfinite(k->top)) k->limit = -1;
    return CGAM_OK;
}

/* Is the sum, which is at least 1, known within tol? If not, its parts will be recomputed. */
static bool is_narrow(cgam_search *x, int64_t v)
{
    double width = 0;
    for (int64_t c = 0; c < x->chunks; c++)
        width += x->parts[v * x->chunks + c].high - x->parts[v * x->chunks + c].low;
    if (width <= 0.9 * x->tol) return true;
    for (int64_t c = 0; c < x->chunks; c++) {
        cgam_seek_part *p = &x->parts[v * x->chunks + c];
        p->low = p->high = 0;
        p->listed = p->best.above = 0;
    }
    return false;
}

/* Lowers the floor until the rows below it leave at most tol of the sum open. */
static void lower_floor(cgam_search *x, int64_t v)
{
    cgam_seeker *k = &x->seek[v];
    double left = 0;
    int64_t bin = BINS;
    while (bin > 0) {
        double more = 0;
        for (int64_t c = 0; c < x->chunks; c++) more += x->parts[v * x->chunks + c].bins[bin - 1];
        more *= exp(-BIN * (double)(bin - 1));
        if (!(left + more <= 0.9 * x->tol)) break;
        left += more;
        bin--;
    }
    if (bin > 0) k->floor_r = fmin(k->floor_r, k->top - BIN * (double)bin / x->in->beta);
}

/* Counts the open rows of each query; too many make it fall back. Returns the total. */
static int64_t count_open(cgam_search *x, double patience)
{
    int64_t total = 0;
    for (int64_t v = 0; v < x->in->count; v++) {
        cgam_seeker *k = &x->seek[v];
        k->listed = 0;
        for (int64_t c = 0; c < x->chunks; c++) k->listed += x->parts[v * x->chunks + c].listed;
        if (k->limit >= 0 && (double)k->listed > patience * (double)k->limit) k->limit = -1;
        if (k->limit >= 0) total += k->listed;
    }
    return total;
}

static void list_open(cgam_search *x)
{
    cgam_open_row *to = x->open;
    for (int64_t item = 0; item < x->in->count * x->chunks; item++) {
        int64_t v = item / x->chunks, begin = cgam_rows_chunk_begin(x->in->Z, item % x->chunks);
        const int32_t *list = x->list + v * x->in->Z->n + begin;
        for (int64_t j = 0; x->seek[v].limit >= 0 && j < x->parts[item].listed; j++)
            *to++ = (cgam_open_row){.query = v, .row = begin + list[j]};
    }
    *to = (cgam_open_row){.query = -1};
}

typedef struct rescoring {
    cgam_search *x;
    int64_t total, work; /* rows in all, and per task */
    bool refine;         /* with the second term, else in double */
} rescoring;

static void refine_row(cgam_search *x, cgam_open_row *o)
{
    const cgam_attend_in *in = x->in;
    const cgam_sketch *s = x->sketch;
    int64_t per = in->e ? 2 : 1, unused = 0;
    cgam_seeker *k = &x->seek[o->query];
    float more[2];
    tile t;
    t.begin = o->row;
    t.count = 1;
    in->Z->cpu->int8->dot(s->rows + o->row * s->d, s->scale + o->row * cgam_int8_blocks(s->d), 1,
                          s->d, per, x->second + (size_t)o->query * x->second_room, more);
    bound_tile(x, k, &t, more);
    o->closed = o->row != k->focus.row && !is_open(x, k, &t, 0, &unused) && unused == 0;
    o->high = exp(in->beta * (t.high[0] - k->top));
    o->low = exp(in->beta * (t.r[0] - t.r_off[0] - k->top));
}

static cgam_status rescore_rows(void *arg, int64_t item)
{
    const rescoring *job = arg;
    int64_t end = (item + 1) * job->work < job->total ? (item + 1) * job->work : job->total;
    if (cgam_interrupted(job->x->env)) return CGAM_E_INTERRUPTED;
    for (int64_t i = item * job->work; i < end; i++) {
        cgam_open_row *o = &job->x->open[i];
        if (o->closed || job->x->seek[o->query].limit < 0) continue;
        if (job->refine) refine_row(job->x, o);
        else o->is = cgam_attend_look(job->x->in, o->query, o->row);
    }
    return CGAM_OK;
}

static cgam_status settle_open(cgam_search *x)
{
    int64_t total = count_open(x, x->wide ? 1 : 4), d = x->in->Z->d;
    int64_t work = d < WORK_NUMBERS / WORK ? WORK_NUMBERS / d : WORK;
    int64_t items = (total + work - 1) / work;
    cgam_status status = CGAM_OK;
    x->open = cgam_alloc(x->env, (size_t)(total + 1), sizeof *x->open);
    if (!x->open) return cgam_fail_nomem(x->env, "rows left open");
    list_open(x);
    rescoring job = {x, total, work, true};
    if (!x->wide) status = cgam_parallel(x->env, items, rescore_rows, &job);
    for (int64_t i = 0; i < total && status == CGAM_OK; i++)
        x->seek[x->open[i].query].listed -= x->open[i].closed;
    for (int64_t v = 0; v < x->in->count; v++)
        if (x->seek[v].listed > x->seek[v].limit) x->seek[v].limit = -1;
    job.refine = false;
    if (status == CGAM_OK) status = cgam_parallel(x->env, items, rescore_rows, &job);
    return status;
}

/* Fills the answer to query v, whose open rows are [from, from + count) of the list. */
static void fill_answer(cgam_search *x, int64_t v, const cgam_open_row *open, int64_t count,
                        cgam_attend_out *out, cgam_fast *fast)
{
    const cgam_attend_in *in = x->in;
    const cgam_seeker *k = &x->seek[v];
    cgam_attend_part total =
        cgam_attend_part_new(x->leader + (in->count * x->chunks + v) * x->leaders);
    *fast = (cgam_fast){0};
    for (int64_t c = 0; c < x->chunks; c++) {
        const cgam_seek_part *p = &x->parts[v * x->chunks + c];
        total.above += p->best.above;
        fast->low += p->low;
        fast->high += p->high;
    }
    for (int64_t i = 0; i < count; i++) {
        const cgam_open_row *o = &open[i];
        if (o->closed) {
            fast->low += o->low;
            fast->high += o->high;
            continue;
        }
        fast->rescored++;
        cgam_lead(total.leader, &total.leaders, x->leaders, o->is);
        cgam_best_take(&total.b, 2, o->is.b, o->row);
        cgam_best_take(&total.s, 2, o->is.s, o->row);
        total.above += k->focus.row >= 0 && cgam_leads(o->is.r, o->row, &k->focus);
    }
    double top = total.leader[0].r, shrink = exp(in->beta * (k->top - top));
    fast->low *= shrink;
    fast->high *= shrink;
    for (int64_t i = 0; i < count; i++)
        if (!open[i].closed)
            fast->known += in->wary && isinf(open[i].is.r) ? (double)NAN
                                                           : exp(in->beta * (open[i].is.r - top));
    total.soft = (cgam_softmax){top, fast->known + fast->high, NAN, NAN};
    out->focus = k->focus;
    out->skipped = 0;
    out->unsure = false;
    cgam_attend_tell(in, &total, out);
    fast->fallback = !isfinite(fast->known) || !isfinite(fast->high) ||
                     total.leaders < (in->leaders < in->Z->n ? in->leaders : in->Z->n) ||
                     (x->tol > 0 && !(fast->high - fast->low <= x->tol * fast->known));
}

static cgam_status run_search(cgam_search *x, cgam_attend_out *out, cgam_fast *fast)
{
    const cgam_attend_in *in = x->in;
    cgam_status status = cgam_search_scan(x);
    if (status == CGAM_OK) status = walk_chunks(x, take_best_scores);
    if (status == CGAM_OK) status = cgam_parallel(x->env, in->count, set_floors, x);
    if (status == CGAM_OK) status = walk_chunks(x, take_open_rows);
    for (int64_t v = 0; v < in->count && status == CGAM_OK && x->tol > 0; v++)
        if (x->seek[v].limit >= 0) x->again |= x->seek[v].lowered = !is_narrow(x, v);
    if (x->again) status = walk_chunks(x, take_bins);
    for (int64_t v = 0; v < in->count && x->again && status == CGAM_OK; v++)
        if (x->seek[v].limit >= 0 && x->seek[v].lowered) lower_floor(x, v);
    if (x->again && status == CGAM_OK) status = walk_chunks(x, take_open_rows);
    if (status == CGAM_OK) status = settle_open(x);
    int64_t at = 0;
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        int64_t from = at;
        while (x->open[at].query == v) at++; /* an invalid query ends the list */
        fast[v].fallback = true;
        if (x->seek[v].limit >= 0) fill_answer(x, v, x->open + from, at - from, &out[v], &fast[v]);
    }
    return status;
}

static cgam_status search_group(cgam_env *env, const cgam_attend_in *in, const cgam_sketch *sketch,
                                bool wide, double tol, cgam_attend_out *out, cgam_fast *fast)
{
    cgam_search x = {.env = env,
                     .in = in,
                     .sketch = sketch,
                     .gated = in->s || in->e,
                     .wide = wide,
                     .vectors = in->count * (in->e ? 2 : 1),
                     .chunks = cgam_rows_chunks(in->Z),
                     .leaders = in->leaders < in->Z->n ? in->leaders : in->Z->n,
                     .tol = tol};
    for (int64_t v = 0; v < in->count; v++) fast[v] = (cgam_fast){.fallback = true};
    if (cgam_search_worth(&x) < x.leaders || in->Z->n > INT32_MAX || in->Z->d > CGAM_INT8_COLUMNS)
        return CGAM_OK;
    cgam_status status = cgam_search_new(&x);
    if (status == CGAM_OK) status = run_search(&x, out, fast);
    cgam_search_free(&x);
    return status;
}

cgam_status cgam_attend_fast(cgam_env *env, const cgam_attend_in *in, const cgam_sketch *sketch,
                             double tol, cgam_attend_out *out, cgam_fast *fast)
{
    if (in->count >= MANY && !in->s && !in->e)
        return cgam_attend_fast_many(env, in, sketch, tol, out, fast);
    int64_t group = (int64_t)fmax(1, floor(ROOM / ((double)in->Z->n * (in->e ? 2 : 1))));
    cgam_status status = CGAM_OK;
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v += group) {
        int64_t some = in->count - v < group ? in->count - v : group;
        cgam_attend_in sub = cgam_attend_some(in, v, some);
        status = search_group(env, &sub, sketch, in->count < MANY, tol, out + v, fast + v);
    }
    return status;
}
