/* batch.c: see batch.h. The pass is pass.h's; here is what happens to a tile of scores, and how
 * the chunks are joined. Inside the pass r stands for r - base. */
#include "num/batch.h"

#include "num/cpu/f32.h"
#include "num/leaders.h"
#include "num/pass.h"

#include <math.h>
#include <string.h>

enum { QUERIES_MIN = 8 };
/* The weights' reference stays behind the largest score by at most this over beta: following it
 * all the way would rescale the sums of every query in almost every tile. */
static const double BEHIND = 16;

/* Of one query in one chunk. In a leader of the pass, b holds the weight it was given and s the
 * reference of that weight. */
typedef struct part {
    double top, sum, squares, tilt; /* top: the reference, -INFINITY before the first score */
    cgam_two b, s;
    int64_t above, leaders;
    cgam_leader *leader;
} part;

typedef struct batch {
    const cgam_attend_in *in;
    cgam_pass pass;
    double base;         /* max lambda s where s is shared, else 0 */
    cgam_two s;          /* the best of a shared s */
    double depth;        /* max lambda s - min lambda s where s is shared, else 0 */
    cgam_leader *focus;  /* [count]: r as the pass will see it */
    part *part;          /* [chunks, count] */
    int64_t leaders;     /* kept of each query */
    cgam_leader *leader; /* [count, leaders] those of all chunks */
    cgam_attend_out *out;
    /* [count] so many leaders score at least this, in some chunk: less is not worth a look. What is
     * passed over depends on the turn of events, what is kept in the end does not. */
    _Atomic double *floor;
} batch;

bool cgam_batch_suits(const cgam_attend_in *in)
{
    return in->count >= QUERIES_MIN && cgam_f32_pays(in->Z->n, in->Z->d);
}

/* ---- Inside the pass ----------------------------------------------------------------------- */
static double value(const batch *job, const void *S, int64_t at)
{
    return job->pass.wide ? ((const double *)S)[at] : (double)((const float *)S)[at];
}

static void tops(const batch *job, int64_t count, const void *S, double *top)
{
    const cgam_pass *w = &job->pass;
    if (w->wide) w->gemm->tops64(count, w->width, S, top);
    else w->gemm->tops32(count, w->width, S, top);
}

/* S = S + lambda s, and S2 = s where queries have their own. */
#define GATE(name, type)                                                                           \
    static void gate_##name(const batch *job, int64_t i, int64_t count, type *S, type *S2)         \
    {                                                                                              \
        const cgam_attend_in *in = job->in;                                                        \
        int64_t width = job->pass.width;                                                           \
        for (int64_t r = 0; r < count && in->s; r++) {                                             \
            type shift = (type)(in->lambda * in->s[i + r] - job->base);                            \
            for (int64_t c = 0; c < width; c++) S[r * width + c] += shift;                         \
        }                                                                                          \
        for (int64_t r = 0; r < count && in->e; r++) {                                             \
            type pivot = (type)in->pivot[i + r], lambda = (type)in->lambda;                        \
            for (int64_t c = 0; c < width; c++) S2[r * width + c] *= pivot;                        \
            for (int64_t k = 0; k < in->edge && in->border[k] <= i + r; k++)                       \
                for (int64_t v = 0; in->border[k] == i + r && v < in->count; v++)                  \
                    S2[r * width + v] = (type)in->edges[v * in->edge + k];                         \
            for (int64_t c = 0; c < width; c++) S[r * width + c] += lambda * S2[r * width + c];    \
        }                                                                                          \
    }
GATE(f32, float)
GATE(f64, double)

static void gate(const batch *job, int64_t i, int64_t count, void *S, void *S2)
{
    if (job->pass.wide) gate_f64(job, i, count, S, S2);
    else gate_f32(job, i, count, S, S2);
}

static void scan_two(const batch *job, const cgam_pass_tile *t, const void *S, int64_t v,
                     double highest, cgam_two *best)
{
    if (best->row[1] >= 0 && !(highest > best->value[1])) return;
    for (int64_t r = 0; r < t->count; r++)
        cgam_two_take(best, value(job, S, r * job->pass.width + v), t->begin + r);
}

/* Leaders and rank of query v. Returns whether the list of leaders changed. */
static bool look_over(const batch *job, const cgam_pass_tile *t, int64_t v, double highest, part *p)
{
    int64_t width = job->pass.width, most = job->leaders;
    const cgam_leader *focus = &job->focus[v];
    double floor = atomic_load_explicit(&job->floor[v], memory_order_relaxed);
    bool leads = !(highest < floor) && (p->leaders < most || !(highest <= p->leader[most - 1].r));
    for (int64_t r = 0; leads && r < t->count; r++) {
        double x = value(job, t->S, r * width + v);
        if (x < floor) continue;
        if (p->leaders < most || !(x <= p->leader[most - 1].r))
            cgam_lead(p->leader, &p->leaders, most, (cgam_leader){.r = x, .row = t->begin + r});
    }
    if (leads && p->leaders == most) cgam_raise(&job->floor[v], p->leader[most - 1].r);
    for (int64_t r = 0; focus->row >= 0 && highest >= focus->r && r < t->count; r++) {
        double x = value(job, t->S, r * width + v);
        p->above += x > focus->r || (x == focus->r && t->begin + r < focus->row);
    }
    return leads;
}

static double raise_top(part *p, double beta, double top)
{
    double fall = beta * (p->top - top), shrink = p->sum > 0 ? exp(fall) : 0;
    if (p->sum > 0) p->tilt = shrink > 0 ? shrink * (p->tilt + p->sum * fall) : 0;
    p->sum *= shrink;
    p->squares *= shrink * shrink;
    p->top = top;
    return shrink;
}

static void weigh(void *arg, cgam_pass_tile *t)
{
    batch *job = arg;
    const cgam_attend_in *in = job->in;
    const cgam_pass *w = &job->pass;
    part *parts = job->part + t->chunk * in->count;
    double highest[CGAM_PASS_WIDTH], top[CGAM_PASS_WIDTH], sums[3 * CGAM_PASS_WIDTH];
    bool leads[CGAM_PASS_WIDTH];
    if (in->s || in->e) {
        tops(job, t->count, t->S, highest);
        for (int64_t v = 0; v < in->count; v++) scan_two(job, t, t->S, v, highest[v], &parts[v].b);
        gate(job, t->begin, t->count, t->S, t->S2);
    }
    if (in->e) {
        tops(job, t->count, t->S2, highest);
        for (int64_t v = 0; v < in->count; v++) scan_two(job, t, t->S2, v, highest[v], &parts[v].s);
    }
    tops(job, t->count, t->S, highest);
    for (int64_t v = 0; v < w->width; v++) top[v] = isfinite(highest[v]) ? highest[v] : 0;
    for (int64_t v = 0; v < in->count; v++) {
        part *p = &parts[v];
        leads[v] = look_over(job, t, v, highest[v], p);
        if (p->top == -INFINITY) {
            p->top = highest[v];
        } else if (in->beta * (highest[v] - p->top) > BEHIND) {
            t->shrink[v] = raise_top(p, in->beta, highest[v]);
            t->shrinks = true;
        }
        /* only masks so far: weights of exp(-inf) = 0 against any finite top */
        top[v] = p->top == -INFINITY ? 0 : p->top;
    }
    if (w->wide) w->gemm->softmax64(t->count, w->width, t->S, in->beta, top, sums);
    else w->gemm->softmax32(t->count, w->width, t->S, in->beta, top, sums);
    for (int64_t v = 0; v < in->count; v++) {
        part *p = &parts[v];
        p->sum += sums[v];
        p->squares += sums[w->width + v];
        p->tilt += sums[2 * w->width + v];
        for (int64_t k = 0; leads[v] && k < p->leaders; k++)
            if (p->leader[k].row >= t->begin) {
                p->leader[k].b = value(job, t->S, (p->leader[k].row - t->begin) * w->width + v);
                p->leader[k].s = p->top;
            }
    }
}

/* ---- After it ------------------------------------------------------------------------------ */
/* b, s and r of a row in double; r absolute. */
static cgam_leader exactly(const cgam_attend_in *in, int64_t v, int64_t row)
{
    cgam_leader x = {.row = row};
    cgam_rows_dot(in->Z, row, 1, in->q + v * in->Z->d, &x.b);
    if (in->s) x.s = in->s[row];
    if (in->e) {
        cgam_rows_dot(in->Z, row, 1, in->e + v * in->Z->d, &x.s);
        x.s *= in->pivot[row];
        for (int64_t k = 0; k < in->edge; k++)
            if (in->border[k] == row) x.s = in->edges[v * in->edge + k];
    }
    x.r = x.b + (in->s || in->e ? in->lambda * x.s : 0);
    return x;
}

/* Replaces the weight `old` of a row in the sums by its own. */
static void put_right(const batch *job, const cgam_leader *x, double old, part *total, double *y)
{
    double now = job->in->beta * (x->r - job->base - total->top), e = exp(now), add = e - old;
    double before = old > 0 ? log(old) : 0;
    if (!isfinite(x->r) || !isfinite(e)) return;
    total->sum += add;
    total->squares += e * e - old * old;
    total->tilt += e * now - old * before;
    if (y && add != 0) cgam_rows_add(job->in->Z, x->row, 1, &add, y, &(double){0});
}

/* The readouts, each relative to the largest reference of its query's chunks. */
static cgam_status join_readouts(const batch *job, cgam_attend_out *out)
{
    const cgam_attend_in *in = job->in;
    int64_t chunks = job->pass.chunks, count = in->count;
    double *factor = cgam_alloc(job->pass.env, (size_t)(chunks * count), sizeof *factor);
    double *Y[CGAM_PASS_WIDTH];
    if (!factor) return cgam_fail_nomem(job->pass.env, "a batch of queries");
    for (int64_t v = 0; v < count; v++) {
        double top = -INFINITY;
        for (int64_t c = 0; c < chunks; c++) top = fmax(top, job->part[c * count + v].top);
        for (int64_t c = 0; c < chunks; c++) {
            const part *p = &job->part[c * count + v];
            factor[c * count + v] = p->top > -INFINITY ? exp(in->beta * (p->top - top)) : 0;
        }
        Y[v] = out[v].readout;
    }
    cgam_status status = cgam_pass_join(&job->pass, factor, Y);
    cgam_free(job->pass.env, factor);
    return status;
}

static cgam_status join(void *arg, int64_t v)
{
    const batch *job = arg;
    const cgam_attend_in *in = job->in;
    cgam_attend_out *out = &job->out[v];
    int64_t d = in->Z->d, leaders = 0;
    double *y = out->readout;
    part total = {.top = -INFINITY, .b.row = {-1, -1}, .s = job->s};
    cgam_leader *leader = job->leader + v * job->leaders;
    *out = (cgam_attend_out){.leader = out->leader, .readout = y, .focus = job->focus[v]};
    for (int64_t c = 0; c < job->pass.chunks; c++)
        total.top = fmax(total.top, job->part[c * in->count + v].top);
    for (int64_t c = 0; c < job->pass.chunks; c++) {
        part *p = &job->part[c * in->count + v];
        if (p->top > -INFINITY) raise_top(p, in->beta, total.top);
        total.sum += p->sum;
        total.squares += p->squares;
        total.tilt += p->tilt;
        out->above += p->above;
        for (int64_t k = 0; k < p->leaders; k++)
            cgam_lead(leader, &leaders, job->leaders, p->leader[k]);
        for (int k = 0; k < 2; k++) {
            if (p->b.row[k] >= 0) cgam_two_take(&total.b, p->b.value[k], p->b.row[k]);
            if (p->s.row[k] >= 0) cgam_two_take(&total.s, p->s.value[k], p->s.row[k]);
        }
    }
    /* leaders again in double, which may change their order */
    bool listed = false;
    double last = leader[leaders - 1].r + job->base;
    for (int64_t k = 0; k < leaders; k++) {
        double old = leader[k].b * exp(in->beta * (leader[k].s - total.top));
        listed |= leader[k].row == out->focus.row;
        leader[k] = exactly(in, v, leader[k].row);
        put_right(job, &leader[k], isfinite(old) ? old : 0, &total, y);
    }
    if (out->focus.row >= 0) {
        double old = exp(in->beta * (out->focus.r - total.top));
        out->focus = exactly(in, v, out->focus.row);
        if (!listed) put_right(job, &out->focus, old, &total, y);
    }
    for (int64_t k = 0, count = 0; k < leaders; k++) cgam_lead(leader, &count, leaders, leader[k]);
    out->leaders = in->leaders < leaders ? in->leaders : leaders;
    memcpy(out->leader, leader, (size_t)out->leaders * sizeof *leader);
    if (!job->pass.wide) {
        double off = cgam_attend_error(in, v, CGAM_PASS_ERROR(d));
        off += 0x1p-23 * (off / CGAM_PASS_ERROR(d) + job->depth); /* of adding lambda s */
        out->unsure = !cgam_leaders_sure(leader, leaders, out->leaders, in->Z->n, last, off);
    }
    if (out->focus.row >= 0)
        out->above = cgam_leaders_rank(leader, out->leaders, out->focus.row, out->above);
    for (int64_t j = 0; y && j < d; j++) y[j] /= total.sum;
    if (leaders && isfinite(leader[0].r)) raise_top(&total, in->beta, leader[0].r - job->base);
    out->top = leaders ? leader[0].r : -INFINITY;
    out->sum = total.sum;
    out->squares = total.squares;
    out->tilt = total.tilt;
    out->b = total.b;
    out->s = total.s;
    bool gated = in->s || in->e;
    for (int k = 0; k < 2 && gated; k++) {
        if (out->b.row[k] >= 0) out->b.value[k] = exactly(in, v, out->b.row[k]).b;
        if (out->s.row[k] >= 0) out->s.value[k] = exactly(in, v, out->s.row[k]).s;
    }
    for (int64_t k = 0; !gated && k < 2 && k < leaders; k++) {
        out->b.value[k] = leader[k].b;
        out->b.row[k] = leader[k].row;
        out->s.value[k] = 0;
        out->s.row[k] = k;
    }
    return CGAM_OK;
}

/* The scores of the rows asked for as the pass will see them. */
static cgam_status look_at_focus(batch *job)
{
    const cgam_attend_in *in = job->in;
    double S[CGAM_PASS_WIDTH], S2[CGAM_PASS_WIDTH]; /* room for either type */
    cgam_status status = CGAM_OK;
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        int64_t row = in->focus ? in->focus[v] : -1;
        job->focus[v] = (cgam_leader){.row = row};
        if (row < 0) continue;
        status = cgam_pass_look(&job->pass, row, S, S2);
        gate(job, row, 1, S, S2);
        job->focus[v].r = value(job, S, v);
    }
    return status;
}

static cgam_status attend_some(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    batch job = {
        .in = in, .out = out, .s.row = {-1, -1}, .leaders = in->leaders + CGAM_LEADERS_SPARE};
    bool f32 = true;
    for (int64_t v = 0; v < in->count; v++) f32 &= cgam_attend_f32(in, v);
    job.pass = (cgam_pass){.env = env,
                           .Z = in->Z,
                           .wide = !f32,
                           .vectors = in->count,
                           .X = in->q,
                           .X2 = in->e,
                           .reads = out[0].readout != NULL,
                           .weigh = weigh,
                           .arg = &job};
    cgam_leader *leader = NULL;
    cgam_status status = cgam_pass_new(&job.pass);
    int64_t parts = job.pass.chunks * in->count;
    for (int64_t i = 0; in->s && i < in->Z->n; i++) cgam_two_take(&job.s, in->s[i], i);
    if (in->s && isfinite(in->lambda * job.s.value[0])) job.base = in->lambda * job.s.value[0];
    for (int64_t i = 0; in->s && i < in->Z->n; i++)
        job.depth = fmax(job.depth, job.base - in->lambda * in->s[i]);
    job.focus = cgam_alloc(env, (size_t)in->count, sizeof *job.focus);
    job.floor = cgam_alloc(env, (size_t)in->count, sizeof *job.floor);
    for (int64_t v = 0; job.floor && v < in->count; v++) atomic_init(&job.floor[v], -INFINITY);
    job.part = cgam_zalloc(env, (size_t)parts, sizeof *job.part);
    leader = cgam_alloc(env, (size_t)((parts + in->count) * job.leaders), sizeof *leader);
    if (status == CGAM_OK && (!job.focus || !job.floor || !job.part || !leader))
        status = cgam_fail_nomem(env, "a batch of queries");
    for (int64_t k = 0; k < parts && status == CGAM_OK; k++) {
        job.part[k] = (part){.top = -INFINITY, .b.row = {-1, -1}, .s.row = {-1, -1}};
        job.part[k].leader = leader + k * job.leaders;
    }
    job.leader = leader + parts * job.leaders;
    if (status == CGAM_OK) status = look_at_focus(&job);
    if (status == CGAM_OK) status = cgam_pass_run(&job.pass);
    if (status == CGAM_OK && job.pass.reads) status = join_readouts(&job, out);
    if (status == CGAM_OK) status = cgam_parallel(env, in->count, join, &job);
    cgam_pass_free(&job.pass);
    cgam_free(env, job.focus);
    cgam_free(env, job.floor);
    cgam_free(env, job.part);
    cgam_free(env, leader);
    return status;
}

cgam_status cgam_rows_attend_batch(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < in->count && status == CGAM_OK; k += CGAM_PASS_WIDTH) {
        int64_t left = in->count - k;
        cgam_attend_in sub =
            cgam_attend_some(in, k, left < CGAM_PASS_WIDTH ? left : CGAM_PASS_WIDTH);
        status = attend_some(env, &sub, out + k);
    }
    for (int64_t k = 0; k < in->count && status == CGAM_OK; k++)
        if (!isfinite(out[k].sum) || !isfinite(out[k].tilt) || !isfinite(out[k].top) ||
            out[k].unsure) {
            cgam_attend_in one = cgam_attend_some(in, k, 1);
            if (out[k].unsure) one.size = 0;
            status = cgam_rows_attend(env, &one, &out[k]);
        }
    return status;
}
