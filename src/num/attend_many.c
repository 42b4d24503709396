/* attend_many.c: cgam_attend_many. The pass is gemm_pass.h's; this file processes the tiles of scores and joins the
 * chunks. Inside the pass r stands for r - base. */
#include "num/attend_parts.h"
#include "num/gemm_pass.h"
#include "num/ranks.h"

#include <string.h>

/* The reference of the weights is at most this over beta below the largest score: to follow that exactly would
 * rescale the sums of every query in almost every tile. */
static const double BEHIND = 16;

enum { FLOOR_R, FLOOR_B, FLOOR_S, FLOORS };

typedef struct batch {
    const cgam_attend_in *in;
    cgam_gemm_pass pass;
    double base;             /* max lambda s if s is shared, else 0 */
    cgam_best s;             /* the best of a shared s */
    double depth;            /* max lambda s - min lambda s if s is shared, else 0 */
    cgam_leader *focus;      /* [count]: r as the pass computes it */
    cgam_attend_part *part;  /* [chunks, count] */
    cgam_attend_part *total; /* [count] */
    int64_t leaders, best;   /* kept of each query, and of its b and s */
    cgam_leader *leader;     /* [count, leaders] those of all chunks */
    cgam_attend_out *out;
    /* [FLOORS, count]: in some chunk, enough rows score at least this, for leaders and for the best in b and s; lower
     * scores are ignored. Which rows are ignored depends on timing, the rows kept at the end do not. */
    _Atomic double *floor;
} batch;

/* ---- Inside the pass ----------------------------------------------------------------------- */
static double score_at(const batch *job, const void *S, int64_t at)
{
    return job->pass.wide ? ((const double *)S)[at] : (double)((const float *)S)[at];
}

static void find_tops(const batch *job, int64_t count, const void *S, double *top)
{
    const cgam_gemm_pass *w = &job->pass;
    if (w->wide) w->gemm->tops64(count, w->width, S, top);
    else w->gemm->tops32(count, w->width, S, top);
}

/* S = S + lambda s, and S2 = s where queries have their own. */
#define GATE(name, type)                                                                           \
    static void gate_##name(const batch *job, int64_t i, int64_t count, type *S, type *S2)         \
    {                                                                                              \
        const cgam_attend_in *in = job->in;                                                        \
        int64_t width = job->pass.width;                                                           \
        const double *s = in->s ? cgam_rows_entries(in->Z, in->s, i) : NULL;                       \
        const double *pivots = in->e ? cgam_rows_entries(in->Z, in->pivot, i) : NULL;              \
        for (int64_t r = 0; r < count && in->s; r++) {                                             \
            type shift = (type)(in->lambda * s[r] - job->base);                                    \
            for (int64_t c = 0; c < width; c++) S[r * width + c] += shift;                         \
        }                                                                                          \
        for (int64_t r = 0; r < count && in->e; r++) {                                             \
            type pivot = (type)pivots[r], lambda = (type)in->lambda;                               \
            for (int64_t c = 0; c < width; c++) S2[r * width + c] *= pivot;                        \
            for (int64_t k = 0; k < in->edge && in->border[k] <= i + r; k++)                       \
                for (int64_t v = 0; in->border[k] == i + r && v < in->count; v++)                  \
                    S2[r * width + v] = (type)in->edges[v * in->edge + k];                         \
            for (int64_t c = 0; c < width; c++) S[r * width + c] += lambda * S2[r * width + c];    \
        }                                                                                          \
    }
GATE(f32, float)
GATE(f64, double)

static void gate_scores(const batch *job, int64_t i, int64_t count, void *S, void *S2)
{
    if (job->pass.wide) gate_f64(job, i, count, S, S2);
    else gate_f32(job, i, count, S, S2);
}

static _Atomic double *floor_of(const batch *job, int which, int64_t v)
{
    return &job->floor[which * job->in->count + v];
}

static void scan_best(const batch *job, const cgam_gemm_pass_tile *t, const void *S, int64_t v,
                      double highest, _Atomic double *least, cgam_best *best)
{
    double floor = atomic_load_explicit(least, memory_order_relaxed);
    if (highest < floor || !cgam_best_wants(best, job->best, highest)) return;
    for (int64_t r = 0; r < t->count; r++) {
        double x = score_at(job, S, r * job->pass.width + v);
        if (!(x < floor)) cgam_best_take(best, job->best, x, t->begin + r);
    }
    if (best->count == job->best) cgam_raise(least, best->value[job->best - 1]);
}

/* Updates leaders and rank of query v. Returns true if the list of leaders changed. */
static bool scan_scores(const batch *job, const cgam_gemm_pass_tile *t, int64_t v, double highest,
                        cgam_attend_part *p)
{
    int64_t width = job->pass.width, most = job->leaders;
    const cgam_leader *focus = &job->focus[v];
    double floor = atomic_load_explicit(floor_of(job, FLOOR_R, v), memory_order_relaxed);
    bool leads = !(highest < floor) && (p->leaders < most || !(highest <= p->leader[most - 1].r));
    for (int64_t r = 0; leads && r < t->count; r++) {
        double x = score_at(job, t->S, r * width + v);
        if (x < floor) continue;
        if (p->leaders < most || !(x <= p->leader[most - 1].r))
            cgam_lead(p->leader, &p->leaders, most, (cgam_leader){.r = x, .row = t->begin + r});
    }
    if (leads && p->leaders == most) cgam_raise(floor_of(job, FLOOR_R, v), p->leader[most - 1].r);
    for (int64_t r = 0; focus->row >= 0 && highest >= focus->r && r < t->count; r++) {
        double x = score_at(job, t->S, r * width + v);
        p->above += x > focus->r || (x == focus->r && t->begin + r < focus->row);
    }
    return leads;
}

static void weigh_tile(void *arg, cgam_gemm_pass_tile *t)
{
    batch *job = arg;
    const cgam_attend_in *in = job->in;
    const cgam_gemm_pass *w = &job->pass;
    cgam_attend_part *parts = job->part + t->chunk * in->count;
    double highest[CGAM_GEMM_PASS_WIDTH], top[CGAM_GEMM_PASS_WIDTH], sums[3 * CGAM_GEMM_PASS_WIDTH];
    bool leads[CGAM_GEMM_PASS_WIDTH];
    if (in->s || in->e) {
        find_tops(job, t->count, t->S, highest);
        for (int64_t v = 0; v < in->count; v++)
            scan_best(job, t, t->S, v, highest[v], floor_of(job, FLOOR_B, v), &parts[v].b);
        gate_scores(job, t->begin, t->count, t->S, t->S2);
    }
    if (in->e) {
        find_tops(job, t->count, t->S2, highest);
        for (int64_t v = 0; v < in->count; v++)
            scan_best(job, t, t->S2, v, highest[v], floor_of(job, FLOOR_S, v), &parts[v].s);
    }
    find_tops(job, t->count, t->S, highest);
    for (int64_t v = 0; v < w->width; v++) top[v] = isfinite(highest[v]) ? highest[v] : 0;
    for (int64_t v = 0; v < in->count; v++) {
        cgam_softmax *soft = &parts[v].soft;
        for (int64_t r = 0; in->wary && r < t->count; r++)
            if (!isfinite(score_at(job, t->S, r * w->width + v))) soft->sum = NAN;
        leads[v] = scan_scores(job, t, v, highest[v], &parts[v]);
        if (soft->top == -INFINITY) {
            soft->top = highest[v];
        } else if (in->beta * (highest[v] - soft->top) > BEHIND) {
            t->shrink[v] = cgam_softmax_raise(soft, in->beta, highest[v]);
            t->shrinks = true;
        }
        /* only masks so far: weights of exp(-inf) = 0 against any finite top */
        top[v] = soft->top == -INFINITY ? 0 : soft->top;
    }
    if (w->wide) w->gemm->softmax64(t->count, w->width, t->S, in->beta, top, sums);
    else w->gemm->softmax32(t->count, w->width, t->S, in->beta, top, sums);
    for (int64_t v = 0; v < in->count; v++) {
        cgam_attend_part *p = &parts[v];
        cgam_softmax_add(&p->soft, sums[v], sums[w->width + v], sums[2 * w->width + v]);
        for (int64_t k = 0; leads[v] && k < p->leaders; k++)
            if (p->leader[k].row >= t->begin) {
                p->leader[k].weight =
                    score_at(job, t->S, (p->leader[k].row - t->begin) * w->width + v);
                p->leader[k].against = p->soft.top;
            }
    }
}

/* ---- After the pass ------------------------------------------------------------------------ */
/* The readouts, each relative to the largest reference of its query's chunks. */
static cgam_status join_readouts(const batch *job, cgam_attend_out *out)
{
    const cgam_attend_in *in = job->in;
    int64_t chunks = job->pass.chunks, count = in->count;
    double *factor = cgam_alloc(job->pass.env, (size_t)(chunks * count), sizeof *factor);
    double *Y[CGAM_GEMM_PASS_WIDTH];
    if (!factor) return cgam_fail_nomem(job->pass.env, "a batch of queries");
    for (int64_t v = 0; v < count; v++) {
        double top = -INFINITY;
        for (int64_t c = 0; c < chunks; c++) top = fmax(top, job->part[c * count + v].soft.top);
        for (int64_t c = 0; c < chunks; c++) {
            double from = job->part[c * count + v].soft.top;
            factor[c * count + v] = from > -INFINITY ? exp(in->beta * (from - top)) : 0;
        }
        Y[v] = out[v].readout;
    }
    cgam_status status = cgam_gemm_pass_join(&job->pass, factor, Y);
    cgam_free(job->pass.env, factor);
    return status;
}

static cgam_status join_chunks(void *arg, int64_t v)
{
    const batch *job = arg;
    const cgam_attend_in *in = job->in;
    cgam_attend_out *out = &job->out[v];
    cgam_attend_part total = cgam_attend_part_new(job->leader + v * job->leaders);
    total.s = job->s;
    *out =
        (cgam_attend_out){.leader = out->leader, .readout = out->readout, .focus = job->focus[v]};
    for (int64_t c = 0; c < job->pass.chunks; c++)
        total.soft.top = fmax(total.soft.top, job->part[c * in->count + v].soft.top);
    for (int64_t c = 0; c < job->pass.chunks; c++) {
        const cgam_attend_part *p = &job->part[c * in->count + v];
        cgam_softmax_join(&total.soft, p->soft, in->beta);
        cgam_attend_join_lists(&total, job->leaders, job->best, p);
    }
    for (int64_t k = 0; k < total.leaders; k++) {
        cgam_leader *x = &total.leader[k];
        x->weight *= exp(in->beta * (x->against - total.soft.top));
        if (!isfinite(x->weight)) x->weight = 0;
    }
    job->total[v] = total;
    return CGAM_OK;
}

/* Error bounds of the scores of query v; in double, relative to those of cgam_attend_look. */
static cgam_rough rough_of(const batch *job, int64_t v)
{
    const cgam_attend_in *in = job->in;
    double d = (double)in->Z->d, error = CGAM_GEMM_PASS_ERROR(d), step = 0x1p-23;
    if (job->pass.wide) {
        error = error * 0x1p-29 + (d + 16) * 0x1p-53;
        step = 0x1p-51;
    }
    cgam_rough rough = {.base = job->base,
                        .off = cgam_attend_error(in, v, error),
                        .off_b = cgam_attend_error_raw(in, v, error),
                        .off_s = cgam_attend_error_gate(in, v, error),
                        .best = job->best};
    rough.off += step * (rough.off / error + job->depth); /* of adding lambda s */
    if (job->pass.wide) rough.off += step * fabs(job->base);
    if (!(in->size > 0)) rough.off = INFINITY; /* unknown */
    return rough;
}

static cgam_status fill_answer(void *arg, int64_t v)
{
    const batch *job = arg;
    const cgam_attend_in *in = job->in;
    cgam_attend_out *out = &job->out[v];
    cgam_attend_part total = job->total[v];
    out->focus.weight = exp(in->beta * (out->focus.r - total.soft.top));
    cgam_rough rough = rough_of(job, v);
    cgam_righted is =
        cgam_attend_put_right(in, v, &rough, &total, &out->focus, out->readout, &out->skipped);
    out->unsure = !is.leaders;
    if (job->pass.wide) { /* leaders are exact to rounding, except for a focus above the winner */
        bool mixed = !is.alone && !(in->beta * rough.off <= CGAM_ATTEND_F32);
        out->unsure = mixed || (out->focus.row >= 0 && out->focus.r > total.leader[0].r);
    }
    cgam_attend_tell(in, &total, out);
    if (!isfinite(total.leader[0].r)) out->soft.sum = NAN;
    return CGAM_OK;
}

/* Computes the scores of the requested rows with the bits of the pass. */
static cgam_status look_at_focus(batch *job)
{
    const cgam_attend_in *in = job->in;
    double S[CGAM_GEMM_PASS_WIDTH], S2[CGAM_GEMM_PASS_WIDTH]; /* space for either type */
    cgam_status status = CGAM_OK;
    if (in->focus) status = cgam_attend_bring_rows(job->pass.env, in, in->count, in->focus);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        int64_t row = in->focus ? in->focus[v] : -1;
        job->focus[v] = (cgam_leader){.row = row};
        if (row < 0) continue;
        status = cgam_gemm_pass_look(&job->pass, row, S, S2);
        if (status != CGAM_OK) break;
        gate_scores(job, row, 1, S, S2);
        job->focus[v].r = score_at(job, S, v);
    }
    return status;
}

/* Finds the best of gates that all queries share, and how far the others are below. */
static cgam_status look_at_gates(batch *job)
{
    const cgam_attend_in *in = job->in;
    cgam_env *env = job->pass.env;
    cgam_best mine = {0}, *all;
    int64_t count;
    void *list;
    double depth;
    CGAM_EACH_ROW(in->Z, i) cgam_best_take(&mine, 2, in->s[i], i);
    cgam_status status = cgam_rows_collect(env, in->Z, sizeof mine, 1, &mine, &count, &list);
    if (status != CGAM_OK) return status;
    all = list;
    for (int64_t k = 0; k < count; k++)
        for (int64_t j = 0; j < all[k].count; j++)
            cgam_best_take(&job->s, 2, all[k].value[j], all[k].row[j]);
    cgam_free(env, list);
    if (isfinite(in->lambda * job->s.value[0])) job->base = in->lambda * job->s.value[0];
    CGAM_REDUCE(in->Z, i, CGAM_MAX(depth)) depth = fmax(depth, job->base - in->lambda * in->s[i]);
    job->depth = fmax(0, depth);
    return cgam_rows_status(in->Z);
}

/* Shares the results of the chunks of other ranks. */
static cgam_status share_parts(const batch *job, cgam_leader *leader)
{
    const cgam_attend_in *in = job->in;
    int64_t chunks = job->pass.chunks, parts = chunks * in->count;
    size_t each = (size_t)in->count;
    if (!in->Z->shard) return CGAM_OK;
    cgam_status status =
        cgam_rows_share(job->pass.env, in->Z, chunks, each * sizeof *job->part, job->part);
    if (status == CGAM_OK)
        status = cgam_rows_share(job->pass.env, in->Z, chunks,
                                 each * (size_t)job->leaders * sizeof *leader, leader);
    for (int64_t k = 0; k < parts; k++) job->part[k].leader = leader + k * job->leaders;
    return status;
}

static cgam_status attend_group(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    batch job = {.in = in, .out = out, .leaders = in->leaders + CGAM_LEADERS_SPARE};
    bool f32 = true;
    for (int64_t v = 0; v < in->count; v++) f32 &= cgam_attend_f32(in, v);
    job.best = f32 ? CGAM_BEST : 2;
    job.pass = (cgam_gemm_pass){.env = env,
                                .Z = in->Z,
                                .wide = !f32,
                                .vectors = in->count,
                                .X = in->q,
                                .X2 = in->e,
                                .reads = out[0].readout != NULL,
                                .weigh = weigh_tile,
                                .arg = &job};
    cgam_leader *leader = NULL;
    cgam_status status = cgam_gemm_pass_new(&job.pass);
    int64_t parts = job.pass.chunks * in->count;
    if (status == CGAM_OK && in->s) status = look_at_gates(&job);
    job.focus = cgam_alloc(env, (size_t)in->count, sizeof *job.focus);
    job.floor = cgam_alloc(env, (size_t)(FLOORS * in->count), sizeof *job.floor);
    for (int64_t k = 0; job.floor && k < FLOORS * in->count; k++)
        atomic_init(&job.floor[k], -INFINITY);
    job.part = cgam_zalloc(env, (size_t)(parts + in->count), sizeof *job.part);
    job.total = job.part + parts;
    leader = cgam_alloc(env, (size_t)((parts + in->count) * job.leaders), sizeof *leader);
    if (status == CGAM_OK && (!job.focus || !job.floor || !job.part || !leader))
        status = cgam_fail_nomem(env, "a batch of queries");
    for (int64_t k = 0; k < parts && status == CGAM_OK; k++)
        job.part[k] = cgam_attend_part_new(leader + k * job.leaders);
    job.leader = leader + parts * job.leaders;
    if (status == CGAM_OK) status = look_at_focus(&job);
    if (status == CGAM_OK) status = cgam_gemm_pass_run(&job.pass);
    if (status == CGAM_OK) status = share_parts(&job, leader);
    if (status == CGAM_OK && job.pass.reads) status = join_readouts(&job, out);
    if (status == CGAM_OK) status = cgam_parallel(env, in->count, join_chunks, &job);
    if (status == CGAM_OK) status = cgam_attend_bring(env, in, job.total, out);
    if (status == CGAM_OK) status = cgam_parallel(env, in->count, fill_answer, &job);
    cgam_gemm_pass_free(&job.pass);
    cgam_free(env, job.focus);
    cgam_free(env, job.floor);
    cgam_free(env, job.part);
    cgam_free(env, leader);
    return status;
}

cgam_status cgam_attend_many(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < in->count && status == CGAM_OK; k += CGAM_GEMM_PASS_WIDTH) {
        int64_t left = in->count - k;
        cgam_attend_in sub =
            cgam_attend_some(in, k, left < CGAM_GEMM_PASS_WIDTH ? left : CGAM_GEMM_PASS_WIDTH);
        status = attend_group(env, &sub, out + k);
    }
    for (int64_t k = 0; k < in->count && status == CGAM_OK; k++)
        if (!isfinite(out[k].soft.sum) || !isfinite(out[k].soft.tilt) || out[k].unsure) {
            cgam_attend_in one = cgam_attend_some(in, k, 1);
            if (out[k].unsure) one.f32 = false;
            status = cgam_attend(env, &one, &out[k]);
        }
    return status;
}
