/* attend_fast.c: see attend_fast.h.
 *
 * 1. The sketch is scanned: a float for every row and vector.
 * 2. The best by those are scored in double. The last of them is the floor: no row whose upper bound is
 *    below it can be a leader.
 * 3. With a tolerance, a histogram of what rows may weigh by their upper bounds says how far down rows have
 *    to be scored to know the sum so well.
 * 4. Rows above the floor are listed, the others' weights added up by their bounds.
 * 5. Where the scan took one term of the query, the second is added for the rows listed; what is still
 *    open is scored in double. */
#include "num/attend_fast.h"

#include "num/attend_parts.h"
#include "num/rounding.h"

#include <float.h>
#include <string.h>

enum {
    TILE = 256, /* rows whose bounds are made at once */
    BINS = 512, /* of the histogram, a quarter of e-fold each */
    MANY = 8,   /* queries from which on one term of each is scanned */
    WORK = 8    /* rows that are scored by one thread in one go */
};
static const double TINY = 0x1p-100; /* cpu/int8.h */
static const double BIN = 0.25;
static const double UNITS_MAX = 900; /* of the exponents: no score leaves the range of double */
static const double RANDOM_READ =
    2;                             /* what a byte of a row here and there costs, of one in a row */
static const double NOTHING = -80; /* beta (r - top) of weights that are counted, not computed */
static const double ROOM = 0x1p26; /* scores of a group of queries */

/* One vector of a query, q or e. */
typedef struct probe {
    cgam_sketched is;
    cgam_sketch_error off[CGAM_SKETCH_TERMS];
    double unit;       /* of its scores */
    const float *scan; /* [terms, n] */
} probe;

/* What is known of rows [begin, begin + count): scores and how far they may be off. */
typedef struct tile {
    int64_t begin, count;
    double b[TILE], b_off[TILE], s[TILE], s_off[TILE], r[TILE], r_off[TILE], high[TILE];
} tile;

/* One query. */
typedef struct seeker {
    probe q, e;
    double floor_r, floor_b, floor_s; /* what a row has to reach to stay open */
    double top;                       /* that weights are relative to, a score in double */
    cgam_leader focus;
    int64_t listed, limit; /* rows left open, and how many may be */
} seeker;

/* Of one query in one chunk. */
typedef struct part {
    cgam_attend_part best; /* by the scan; above: rows that are certainly above the focus */
    double low, high;      /* weights of the rows that are not listed */
    double *bins;          /* [BINS] */
    int64_t listed;
} part;

/* A row left open, and what came of it. */
typedef struct open_row {
    int64_t query, row;
    bool closed; /* by the second term: it weighs between low and high */
    double low, high;
    cgam_leader is;
} open_row;

typedef struct search {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_sketch *sketch;
    bool gated;
    int terms; /* scanned */
    int64_t vectors, chunks, leaders;
    double tol;
    seeker *seek;        /* [count] */
    part *parts;         /* [count, chunks] */
    cgam_leader *leader; /* [count, chunks + 1, leaders] */
    double *bins;        /* [count, chunks, BINS], with tol */
    int32_t *list;       /* [count, n]: rows left open, from the begin of their chunk */
    int8_t *terms_of;    /* [vectors, CGAM_SKETCH_TERMS, d] */
    float *steps;        /* [vectors, CGAM_SKETCH_TERMS, blocks] */
    float *scores;       /* [vectors * terms, n] */
    char *second; /* second terms as cpu/int8.h lays them out, `second_room` each; one term only */
    size_t second_room;
    open_row *open;
} search;

static int64_t chunk_of(const search *x, int64_t item) { return item % x->chunks; }

/* ---- Bounds -------------------------------------------------------------------------------- */
/* Scores of rows by one vector in one or two terms, and their bounds. more: the second terms where they are not in
 * the scan, or NULL. */
static void see(const search *x, const probe *p, int64_t i, int64_t count, const float *more,
                double *score, double *off)
{
    const cgam_sketch *s = x->sketch;
    int terms = more ? 2 : x->terms;
    const float *first = p->scan + i, *second = more ? more : p->scan + s->n + i;
    double hat = p->off[terms - 1].hat, rest = p->off[terms - 1].rest;
    for (int64_t k = 0; k < count; k++) score[k] = p->unit * (double)first[k];
    for (int64_t k = 0; terms > 1 && k < count; k++) score[k] += p->unit * (double)second[k];
    for (int64_t k = 0; k < count; k++)
        off[k] = p->unit * (hat * (double)s->hat[i + k] + rest * (double)s->rest[i + k] + TINY) *
                 CGAM_SLACK;
}

static void see_gates(const search *x, const seeker *k, tile *t, const float *more)
{
    const cgam_attend_in *in = x->in;
    int64_t v = k - x->seek;
    if (in->s) {
        memcpy(t->s, in->s + t->begin, (size_t)t->count * sizeof *t->s);
        memset(t->s_off, 0, (size_t)t->count * sizeof *t->s_off);
        return;
    }
    see(x, &k->e, t->begin, t->count, more, t->s, t->s_off);
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

/* more: second terms of q and then of e, one row of each; NULL = as scanned. */
static void look_at(const search *x, const seeker *k, tile *t, const float *more)
{
    see(x, &k->q, t->begin, t->count, more, t->b, t->b_off);
    if (x->gated) see_gates(x, k, t, more ? more + 1 : NULL);
    double lambda = x->in->lambda;
    for (int64_t j = 0; j < t->count; j++) {
        double gate = x->gated ? lambda * t->s[j] : 0, off = x->gated ? lambda * t->s_off[j] : 0;
        t->r[j] = t->b[j] + gate;
        /* that sum is rounded here, and in double for the row itself */
        t->r_off[j] = (t->b_off[j] + off + 8 * CGAM_U * (fabs(t->b[j]) + fabs(gate))) * CGAM_SLACK;
        t->high[j] = t->r[j] + t->r_off[j];
    }
}

/* May row j of the tile matter? Counts it among those above the focus where that is certain. */
static bool is_open(const search *x, const seeker *k, const tile *t, int64_t j, int64_t *above)
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

/* ---- Passes over what the scan left ---------------------------------------------------------- */
typedef void (*visit)(search *x, seeker *k, part *p, tile *t);

typedef struct walk {
    search *x;
    visit visit;
} walk;

static cgam_status walk_chunk(void *arg, int64_t item)
{
    const walk *w = arg;
    search *x = w->x;
    int64_t chunk = chunk_of(x, item), end = cgam_rows_chunk_begin(x->in->Z, chunk + 1);
    seeker *k = &x->seek[item / x->chunks];
    if (cgam_interrupted(x->env)) return CGAM_E_INTERRUPTED;
    if (k->limit < 0) return CGAM_OK; /* it falls back */
    for (int64_t i = cgam_rows_chunk_begin(x->in->Z, chunk); i < end; i += TILE) {
        tile t;
        t.begin = i;
        t.count = end - i < TILE ? end - i : TILE;
        look_at(x, k, &t, NULL);
        w->visit(x, k, &x->parts[item], &t);
    }
    return CGAM_OK;
}

static cgam_status walk_over(search *x, visit each)
{
    walk w = {x, each};
    return cgam_parallel(x->env, x->in->count * x->chunks, walk_chunk, &w);
}

static void take_best(search *x, seeker *k, part *p, tile *t)
{
    (void)k;
    const cgam_f64 *f64 = x->in->Z->cpu->f64;
    cgam_attend_part *best = &p->best;
    const cgam_leader *last = &best->leader[x->leaders - 1];
    if (best->leaders < x->leaders || !(f64->largest(t->r, t->count) <= last->r))
        for (int64_t j = 0; j < t->count; j++)
            if (best->leaders < x->leaders || !(t->r[j] <= last->r))
                cgam_lead(best->leader, &best->leaders, x->leaders,
                          (cgam_leader){.r = t->r[j], .row = t->begin + j});
    if (!x->gated) return;
    if (best->b.row[1] < 0 || f64->largest(t->b, t->count) > best->b.value[1])
        for (int64_t j = 0; j < t->count; j++) cgam_two_take(&best->b, t->b[j], t->begin + j);
    if (best->s.row[1] < 0 || f64->largest(t->s, t->count) > best->s.value[1])
        for (int64_t j = 0; j < t->count; j++) cgam_two_take(&best->s, t->s[j], t->begin + j);
}

/* What each row leaves open of the sum, by how far its upper bound is below the top. */
static void take_bins(search *x, seeker *k, part *p, tile *t)
{
    double beta = x->in->beta;
    for (int64_t j = 0; j < t->count; j++) {
        double below = beta * (k->top - t->high[j]);
        int64_t bin = below < 0 ? 0 : below < BINS * BIN ? (int64_t)(below / BIN) : BINS - 1;
        p->bins[bin] += exp(-fmax(below, 0)) * -expm1(-2 * beta * t->r_off[j]);
    }
}

static void take_open(search *x, seeker *k, part *p, tile *t)
{
    const cgam_attend_in *in = x->in;
    int64_t begin = cgam_rows_chunk_begin(in->Z, chunk_of(x, p - x->parts));
    int32_t *list = x->list + (k - x->seek) * in->Z->n + begin;
    double e[TILE], sums[3], most = 0;
    for (int64_t j = 0; j < t->count; j++) {
        if (is_open(x, k, t, j, &p->best.above) || t->begin + j == k->focus.row) {
            list[p->listed++] = (int32_t)(t->begin + j - begin);
            t->high[j] = -INFINITY;
        } else {
            most = fmax(most, t->r_off[j]);
        }
    }
    double largest = in->Z->cpu->f64->largest(t->high, t->count);
    if (largest == -INFINITY) return;
    if (in->beta * (largest - k->top) < NOTHING) {
        p->high += (double)t->count * exp(in->beta * (largest - k->top));
        return;
    }
    in->Z->cpu->f64->softmax(t->high, t->count, in->beta, k->top, e, sums);
    p->high += sums[0] + (double)t->count * DBL_MIN;
    p->low += sums[0] * exp(-2 * in->beta * most * CGAM_SLACK);
}

/* ---- The steps ----------------------------------------------------------------------------- */
/* The best by the scan in double: floors and top. */
static cgam_status set_floors(void *arg, int64_t v)
{
    const search *x = arg;
    const cgam_attend_in *in = x->in;
    seeker *k = &x->seek[v];
    if (k->limit < 0) return CGAM_OK;
    cgam_attend_part total =
        cgam_attend_part_new(x->leader + (in->count * x->chunks + v) * x->leaders);
    for (int64_t c = 0; c < x->chunks; c++)
        cgam_attend_join_lists(&total, x->leaders, &x->parts[v * x->chunks + c].best);
    k->floor_r = INFINITY;
    k->floor_b = k->floor_s = -INFINITY;
    k->top = -INFINITY;
    for (int64_t j = 0; j < total.leaders; j++) {
        double r = cgam_attend_look(in, v, total.leader[j].row).r;
        if (!(r >= k->floor_r)) k->floor_r = r;
        if (r > k->top) k->top = r;
    }
    if (x->gated && in->Z->n > 1) { /* a row alone has no second */
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

/* Lowers the floor until what stays below leaves no more than tol of the sum open. The sum is at
 * least 1. */
static void lower_floor(search *x, int64_t v)
{
    seeker *k = &x->seek[v];
    double left = 0;
    int64_t bin = BINS;
    while (bin > 0) {
        double more = 0;
        for (int64_t c = 0; c < x->chunks; c++) more += x->parts[v * x->chunks + c].bins[bin - 1];
        if (!(left + more <= 0.9 * x->tol)) break;
        left += more;
        bin--;
    }
    if (bin > 0) k->floor_r = fmin(k->floor_r, k->top - BIN * (double)bin / x->in->beta);
}

/* Counts what is open of each query; too much makes it fall back. Returns how many there are in all. */
static int64_t count_open(search *x, double patience)
{
    int64_t total = 0;
    for (int64_t v = 0; v < x->in->count; v++) {
        seeker *k = &x->seek[v];
        k->listed = 0;
        for (int64_t c = 0; c < x->chunks; c++) k->listed += x->parts[v * x->chunks + c].listed;
        if (k->limit >= 0 && (double)k->listed > patience * (double)k->limit) k->limit = -1;
        if (k->limit >= 0) total += k->listed;
    }
    return total;
}

static void list_open(search *x)
{
    open_row *to = x->open;
    for (int64_t item = 0; item < x->in->count * x->chunks; item++) {
        int64_t v = item / x->chunks;
        int64_t begin = cgam_rows_chunk_begin(x->in->Z, chunk_of(x, item));
        const int32_t *list = x->list + v * x->in->Z->n + begin;
        for (int64_t j = 0; x->seek[v].limit >= 0 && j < x->parts[item].listed; j++)
            *to++ = (open_row){.query = v, .row = begin + list[j]};
    }
    *to = (open_row){.query = -1};
}

typedef struct rescoring {
    search *x;
    int64_t total;
    bool refine; /* by the second term, else in double */
} rescoring;

static void refine(search *x, open_row *o)
{
    const cgam_attend_in *in = x->in;
    const cgam_sketch *s = x->sketch;
    int64_t per = in->e ? 2 : 1, unused = 0;
    seeker *k = &x->seek[o->query];
    float more[2];
    tile t;
    t.begin = o->row;
    t.count = 1;
    in->Z->cpu->int8->dot(s->rows + o->row * s->d, s->scale + o->row * cgam_int8_blocks(s->d), 1,
                          s->d, per, x->second + (size_t)o->query * x->second_room, more);
    look_at(x, k, &t, more);
    o->closed = o->row != k->focus.row && !is_open(x, k, &t, 0, &unused) && unused == 0;
    o->high = exp(in->beta * (t.high[0] - k->top));
    o->low = exp(in->beta * (t.r[0] - t.r_off[0] - k->top));
}

static cgam_status rescore(void *arg, int64_t item)
{
    const rescoring *job = arg;
    int64_t end = (item + 1) * WORK < job->total ? (item + 1) * WORK : job->total;
    if (cgam_interrupted(job->x->env)) return CGAM_E_INTERRUPTED;
    for (int64_t i = item * WORK; i < end; i++) {
        open_row *o = &job->x->open[i];
        if (o->closed || job->x->seek[o->query].limit < 0) continue;
        if (job->refine) refine(job->x, o);
        else o->is = cgam_attend_look(job->x->in, o->query, o->row);
    }
    return CGAM_OK;
}

static cgam_status settle_open(search *x)
{
    int64_t total = count_open(x, x->terms == 1 ? 4 : 1), items = (total + WORK - 1) / WORK;
    cgam_status status = CGAM_OK;
    x->open = cgam_alloc(x->env, (size_t)(total + 1), sizeof *x->open);
    if (!x->open) return cgam_fail_nomem(x->env, "rows left open");
    list_open(x);
    rescoring job = {x, total, true};
    if (x->terms == 1) status = cgam_parallel(x->env, items, rescore, &job);
    for (int64_t i = 0; i < total && status == CGAM_OK; i++)
        x->seek[x->open[i].query].listed -= x->open[i].closed;
    for (int64_t v = 0; v < x->in->count; v++)
        if (x->seek[v].listed > x->seek[v].limit) x->seek[v].limit = -1;
    job.refine = false;
    if (status == CGAM_OK) status = cgam_parallel(x->env, items, rescore, &job);
    return status;
}

/* What came of query v, whose open rows are [from, from + count) of the list. */
static void tell(search *x, int64_t v, const open_row *open, int64_t count, cgam_attend_out *out,
                 cgam_fast *fast)
{
    const cgam_attend_in *in = x->in;
    const seeker *k = &x->seek[v];
    cgam_attend_part total =
        cgam_attend_part_new(x->leader + (in->count * x->chunks + v) * x->leaders);
    *fast = (cgam_fast){0};
    for (int64_t c = 0; c < x->chunks; c++) {
        const part *p = &x->parts[v * x->chunks + c];
        total.above += p->best.above;
        fast->low += p->low;
        fast->high += p->high;
    }
    for (int64_t i = 0; i < count; i++) {
        const open_row *o = &open[i];
        if (o->closed) {
            fast->low += o->low;
            fast->high += o->high;
            continue;
        }
        fast->rescored++;
        cgam_lead(total.leader, &total.leaders, x->leaders, o->is);
        cgam_two_take(&total.b, o->is.b, o->row);
        cgam_two_take(&total.s, o->is.s, o->row);
        total.above += k->focus.row >= 0 && cgam_leads(o->is.r, o->row, &k->focus);
    }
    double top = total.leader[0].r, shrink = exp(in->beta * (k->top - top));
    fast->low *= shrink;
    fast->high *= shrink;
    for (int64_t i = 0; i < count; i++)
        if (!open[i].closed) fast->known += exp(in->beta * (open[i].is.r - top));
    total.soft = (cgam_softmax){top, fast->known + fast->high, NAN, NAN};
    out->focus = k->focus;
    out->skipped = 0;
    out->unsure = false;
    cgam_attend_tell(in, &total, out);
    fast->fallback = !isfinite(fast->known) || !isfinite(fast->high) ||
                     total.leaders < (in->leaders < in->Z->n ? in->leaders : in->Z->n) ||
                     (x->tol > 0 && !(fast->high - fast->low <= x->tol * fast->known));
}

/* ---- Setting up ---------------------------------------------------------------------------- */
/* How many rows may be scored in double before a pass over all of them costs less. Among many queries
 * a row costs a pass less than a reading. */
static int64_t rows_worth(const search *x)
{
    const cgam_rows *Z = x->in->Z;
    double row = (double)Z->d * (double)cgam_dtype_size(Z->dtype), n = (double)Z->n;
    double sketched = (double)Z->d + 4 * (double)cgam_int8_blocks(Z->d) + 8;
    double rows = n * (row - sketched) / (RANDOM_READ * row);
    return (int64_t)floor(x->terms == 1 ? rows / 8 : rows);
}

static void probe_new(search *x, int64_t v, const double *vector, double *rest, probe *p)
{
    int64_t d = x->sketch->d, blocks = cgam_int8_blocks(d);
    p->is.terms = x->terms_of + v * CGAM_SKETCH_TERMS * d;
    p->is.step = x->steps + v * CGAM_SKETCH_TERMS * blocks;
    cgam_sketch_vector(d, vector, rest, &p->is);
    for (int t = 0; t < CGAM_SKETCH_TERMS; t++) p->off[t] = cgam_sketch_bound(d, &p->is, t + 1);
    p->unit = ldexp(1, p->is.exponent + x->sketch->exponent);
    p->scan = x->scores + v * x->terms * x->sketch->n;
}

static bool units_hold(const search *x, const probe *p)
{
    return fabs((double)p->is.exponent + x->sketch->exponent) <= UNITS_MAX;
}

/* Sketches the vectors, and lays their second terms out where the scan goes by the first. */
static cgam_status probe_all(search *x)
{
    const cgam_attend_in *in = x->in;
    int64_t d = in->Z->d, per = in->e ? 2 : 1, blocks = cgam_int8_blocks(d), limit = rows_worth(x);
    double *rest = cgam_alloc(x->env, (size_t)d, sizeof *rest);
    int8_t *numbers = cgam_alloc(x->env, (size_t)(2 * d), 1);
    float *steps = cgam_alloc(x->env, (size_t)(2 * blocks), sizeof *steps);
    cgam_status status = CGAM_OK;
    if (!rest || !numbers || !steps) status = cgam_fail_nomem(x->env, "a sketch of queries");
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        seeker *k = &x->seek[v];
        probe *both[] = {&k->q, &k->e};
        probe_new(x, v * per, in->q + v * d, rest, &k->q);
        if (in->e) probe_new(x, v * per + 1, in->e + v * d, rest, &k->e);
        k->limit = units_hold(x, &k->q) && (!in->e || units_hold(x, &k->e)) ? limit : -1;
        for (int64_t j = 0; x->terms == 1 && j < per; j++) {
            memcpy(numbers + j * d, both[j]->is.terms + d, (size_t)d);
            memcpy(steps + j * blocks, both[j]->is.step + blocks, (size_t)blocks * sizeof *steps);
        }
        if (x->terms == 1)
            in->Z->cpu->int8->lay(per, d, numbers, steps, x->second + (size_t)v * x->second_room);
    }
    cgam_free(x->env, rest);
    cgam_free(x->env, numbers);
    cgam_free(x->env, steps);
    return status;
}

/* The scan of the terms that it takes, which lie apart where it takes the first alone. */
static cgam_status scan(search *x)
{
    int64_t d = x->sketch->d, blocks = cgam_int8_blocks(d);
    for (int64_t v = 1; x->terms == 1 && v < x->vectors; v++) { /* none is needed any more there */
        memcpy(x->terms_of + v * d, x->terms_of + v * CGAM_SKETCH_TERMS * d, (size_t)d);
        memmove(x->steps + v * blocks, x->steps + v * CGAM_SKETCH_TERMS * blocks,
                (size_t)blocks * sizeof *x->steps);
    }
    return cgam_sketch_scan(x->env, x->sketch, x->in->Z->cpu, x->vectors * x->terms, x->terms_of,
                            x->steps, x->scores);
}

static void search_free(search *x)
{
    void *blocks[] = {x->seek,     x->parts, x->leader, x->bins,   x->list,
                      x->terms_of, x->steps, x->scores, x->second, x->open};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) cgam_free(x->env, blocks[k]);
}

static cgam_status search_new(search *x)
{
    const cgam_attend_in *in = x->in;
    size_t d = (size_t)in->Z->d, n = (size_t)in->Z->n, count = (size_t)in->count;
    size_t items = count * (size_t)x->chunks, vectors = (size_t)x->vectors;
    size_t blocks = (size_t)cgam_int8_blocks(in->Z->d);
    x->second_room = in->Z->cpu->int8->room(in->e ? 2 : 1, in->Z->d);
    x->seek = cgam_zalloc(x->env, count, sizeof *x->seek);
    x->parts = cgam_zalloc(x->env, items, sizeof *x->parts);
    x->leader = cgam_alloc(x->env, (items + count) * (size_t)x->leaders, sizeof *x->leader);
    x->bins = cgam_zalloc(x->env, x->tol > 0 ? items * BINS : 1, sizeof *x->bins);
    x->list = cgam_alloc(x->env, count * n, sizeof *x->list);
    x->terms_of = cgam_alloc(x->env, vectors * CGAM_SKETCH_TERMS * d, 1);
    x->steps = cgam_alloc(x->env, vectors * CGAM_SKETCH_TERMS * blocks, sizeof *x->steps);
    x->scores = cgam_alloc(x->env, vectors * (size_t)x->terms * n, sizeof *x->scores);
    x->second = cgam_alloc(x->env, x->terms == 1 ? count * x->second_room : 1, 1);
    if (!x->seek || !x->parts || !x->leader || !x->bins || !x->list || !x->terms_of || !x->steps ||
        !x->scores || !x->second)
        return cgam_fail_nomem(x->env, "a search by a sketch");
    for (size_t k = 0; k < items; k++) {
        x->parts[k].best = cgam_attend_part_new(x->leader + k * (size_t)x->leaders);
        x->parts[k].bins = x->bins + (x->tol > 0 ? k * BINS : 0);
    }
    return CGAM_OK;
}

static cgam_status search_run(search *x, cgam_attend_out *out, cgam_fast *fast)
{
    const cgam_attend_in *in = x->in;
    cgam_status status = probe_all(x);
    if (status == CGAM_OK) status = scan(x);
    if (status == CGAM_OK) status = walk_over(x, take_best);
    if (status == CGAM_OK) status = cgam_parallel(x->env, in->count, set_floors, x);
    if (status == CGAM_OK && x->tol > 0) {
        status = walk_over(x, take_bins);
        for (int64_t v = 0; v < in->count && status == CGAM_OK; v++)
            if (x->seek[v].limit >= 0) lower_floor(x, v);
    }
    if (status == CGAM_OK) status = walk_over(x, take_open);
    if (status == CGAM_OK) status = settle_open(x);
    int64_t at = 0;
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        int64_t from = at;
        while (x->open[at].query == v) at++; /* the list ends with a query that is none */
        fast[v].fallback = true;
        if (x->seek[v].limit >= 0) tell(x, v, x->open + from, at - from, &out[v], &fast[v]);
    }
    return status;
}

static cgam_status search_some(cgam_env *env, const cgam_attend_in *in, const cgam_sketch *sketch,
                               int terms, double tol, cgam_attend_out *out, cgam_fast *fast)
{
    search x = {.env = env,
                .in = in,
                .sketch = sketch,
                .gated = in->s || in->e,
                .terms = terms,
                .vectors = in->count * (in->e ? 2 : 1),
                .chunks = cgam_rows_chunks(in->Z),
                .leaders = in->leaders < in->Z->n ? in->leaders : in->Z->n,
                .tol = tol};
    for (int64_t v = 0; v < in->count; v++) fast[v] = (cgam_fast){.fallback = true};
    if (rows_worth(&x) < x.leaders || in->Z->n > INT32_MAX) return CGAM_OK;
    cgam_status status = search_new(&x);
    if (status == CGAM_OK) status = search_run(&x, out, fast);
    search_free(&x);
    return status;
}

cgam_status cgam_attend_fast(cgam_env *env, const cgam_attend_in *in, const cgam_sketch *sketch,
                             double tol, cgam_attend_out *out, cgam_fast *fast)
{
    int terms = in->count >= MANY ? 1 : CGAM_SKETCH_TERMS;
    int64_t group = (int64_t)fmax(1, floor(ROOM / ((double)in->Z->n * (in->e ? 2 : 1))));
    cgam_status status = CGAM_OK;
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v += group) {
        int64_t some = in->count - v < group ? in->count - v : group;
        cgam_attend_in sub = cgam_attend_some(in, v, some);
        status = search_some(env, &sub, sketch, terms, tol, out + v, fast + v);
    }
    return status;
}
