/* small_report.c: results of queries on small banks (small.c): leaders, vectors, and certificates.
 *
 * Rounding (docs/theorems/rounding.md): with p as it is stored,
 *     |t - alpha M^-1 g| <= |M^-1| (|alpha g - M t| + ..) ,   |M^-1| <= 1 ,
 * from one product with M, so no pass over the rows; the rest is as for queries solved together (doubt.c). */
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"
#include "memory/small_parts.h"
#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { LISTED_MAX = 64 /* longer lists are sorted */ };
static const double WIDE = 1e-8; /* rounding bounds of p above this are measured instead */

/* The rounding errors of a query. */
static cgam_doubt doubt_of(const cgam_small_call *job, const cgam_small_query *k)
{
    const cgam_recall *plan = job->plan;
    const cgam_recall_opts *o = &plan->opts;
    const cgam_small *x = job->x;
    double few = 1 + 0x1p-18, n = (double)x->Z.n;
    cgam_doubt doubt = {0};
    if (o->mode == CGAM_FIRST) {
        doubt.scores = cgam_doubt_scores(plan, k->q, k->c);
        if (cgam_doubt_solved(plan, k->c))
            doubt.scores += o->lambda * k->gates.off.most * CGAM_SLACK;
        doubt.weights = 2 * o->beta * doubt.scores + 0x1p-38;
        doubt.sum = cgam_gamma(n + 64);
        return doubt;
    }
    double eta = plan->gate->info.eta_min, sums = n / CGAM_SMALL_ROWS + 48;
    cgam_gates_off feedback = {0};
    if (x->dinv) {
        double pivot = cgam_dplr_pivot_off(plan->gate->A), alpha = plan->gate->a;
        double nu = plan->bank->scale ? cgam_norm_error(x->Z.d) : 0;
        double *f = k->brief[E];
        /* for p as stored: sums over all rows of softmaxes, combined with the same factors as p */
        double g_off =
            (cgam_gamma(n + 32) + nu + pivot) * plan->can.row_max * k->stretch * CGAM_SLACK;
        for (int64_t j = 0; j < x->Z.d; j++) f[j] = alpha * k->brief[G][j];
        double t_off = cgam_small_system_off(x, k->brief[T], f, alpha * g_off, k->brief[REST]);
        double size = cgam_array_norm(x->Z.d, k->brief[T]) * CGAM_SLACK;
        feedback = cgam_doubt_over_rows(plan, size, t_off, 0);
        feedback.most += plan->can.pivot_max * (pivot + 4 * CGAM_U) * k->stretch * CGAM_SLACK;
    }
    double most = k->off[1] + k->gates.off.most + o->lambda * feedback.most;
    doubt.scores =
        cgam_doubt_scores(plan, k->q, NULL) + (k->off[0] + o->lambda * most) * CGAM_SLACK;
    double moved = 2 * o->beta * doubt.scores * few, p2 = k->sums[1] / (k->sums[0] * k->sums[0]);
    double last = sqrt(k->step.change_norm2) * few, tilt = fabs(k->sums[2]) / k->sums[0];
    doubt.step = doubt.scores;
    doubt.sum = sums * CGAM_U * CGAM_SLACK;
    doubt.weights = moved + 2 * (4 * 750 + sums) * CGAM_U * few; /* e^-750 is 0 */
    doubt.p =
        moved <= 1 ? sqrt(p2) * expm1(moved) * few + CGAM_U * (sums + 4 * tilt) * few : sqrt(2);
    doubt.gradient = o->lambda * (last + doubt.p) * CGAM_SLACK;
    doubt.moves = 0.5 * o->beta * o->lambda * few * o->lambda * last / eta + doubt.p;
    if (!(doubt.scores >= 0)) doubt.scores = doubt.step = doubt.weights = INFINITY;
    if (!(doubt.gradient >= 0)) doubt.gradient = INFINITY;
    if (!(doubt.moves >= 0)) doubt.moves = INFINITY;
    return doubt;
}

/* The largest entry of x except entry f. */
static double best_other(const cgam_small_call *job, const double *x, int64_t f)
{
    const cgam_f64 *f64 = job->plan->bank->Z.cpu->f64;
    return fmax(f64->largest(x, f), f64->largest(x + f + 1, job->x->Z.n - f - 1));
}

static double log_share(const cgam_small_query *k, double r)
{
    return k->step.beta * (r - k->step.top) - k->log_sum;
}

/* Returns the query as other engines represent it; p: its weights, or a buffer for them. */
static cgam_settled as_settled(const cgam_small_call *job, const cgam_small_query *k, double *p)
{
    bool coupled = job->plan->opts.mode == CGAM_COUPLED;
    double *const *x = k->vector;
    return (cgam_settled){.in = {.q = k->q,
                                 .c = k->c,
                                 .b = x[B],
                                 .s0 = k->gates.s0,
                                 .a = x[coupled ? A : R],
                                 .half_us0 = k->gates.half_us0,
                                 .s0_off = k->gates.off,
                                 .level = true},
                          .s = x[coupled ? S : VALUE],
                          .r = x[R],
                          .p = p,
                          .act = k->x.act,
                          .trace = k->x.trace};
}

/* Fills the result of a query whose leaders (at least two if there are two rows) are in `row`. If the bounds without
 * a pass are too wide to decide convergence, or its accuracy, they are measured on the vectors. */
static cgam_status fill_result(const cgam_small_call *job, cgam_small_query *k, const int64_t *row,
                               const double *value, cgam_result *out)
{
    const cgam_recall *plan = job->plan;
    const double *r = k->vector[R], *b = k->vector[B], *s = k->gates.s0;
    int64_t n = job->x->Z.n, target = job->in->target ? job->in->target[k->at] : -1;
    int64_t f = target >= 0 ? target : row[0];
    double sum = k->sums[0], largest = 1 / sum;
    bool coupled = plan->opts.mode == CGAM_COUPLED;
    if (coupled) s = k->vector[S];
    cgam_summary x = {.winner = row[0],
                      .focus = f,
                      .p = k->vector[F][f] / k->whole,
                      .log_p = log_share(k, r[f]),
                      .entropy = k->log_sum - k->sums[2] / sum,
                      .ipr = sum * sum / k->sums[1],
                      .support = n};
    for (int64_t i = 0; f != row[0] && i < n; i++) x.rank += r[i] > r[f] || (r[i] == r[f] && i < f);
    if (n > 1) {
        x.gap = r[f] - value[f == row[0] ? 1 : 0];
        /* without gates r is b */
        x.gap_raw = s == job->x->zeros ? x.gap : b[f] - best_other(job, b, f);
        x.gap_gate = s == job->x->zeros ? 0 : s[f] - best_other(job, s, f);
    }
    cgam_trace trace = coupled ? k->x.trace : cgam_trace_direct(true);
    trace.change_norm = sqrt(k->step.change_norm2);
    cgam_result_fill(plan, &x, &trace, out);
    if (!job->proves) {
        cgam_result_bare(plan, out);
        return CGAM_OK;
    }
    cgam_doubt doubt = doubt_of(job, k);
    cgam_bound_freely(plan, largest * (1 - largest), largest, &doubt, out);
    k->x.trace = trace;
    cgam_settled m = as_settled(job, k, k->vector[F]);
    bool full = cgam_recall_full(plan);
    if (coupled) {
        out->score_error = NAN;
        full |= cgam_bound_coupled(plan, &m, &doubt, out);
        full |= out->end != trace.end || doubt.p > WIDE || out->p_error > WIDE;
    } else {
        full |= cgam_doubt_solved(plan, k->c) && !(doubt.weights <= WIDE);
    }
    if (!full) return CGAM_OK;
    if (!coupled) {
        memcpy(m.s, m.in.s0, (size_t)n * sizeof *m.s);
        for (int64_t i = 0; i < n; i++) m.p[i] /= k->whole;
        k->whole = 1;
    }
    cgam_result_fill(plan, &x, &trace, out);
    return cgam_settled_certify(plan, &m, out);
}

static void report_top(const cgam_small_call *job, const cgam_small_query *k, const int64_t *row)
{
    const cgam_recall_out *out = job->out;
    int64_t at = k->at * job->top;
    for (int64_t j = 0; j < job->top; j++) {
        double x = k->step.beta * (k->vector[R][row[j]] - k->step.top);
        if (out->top_index) out->top_index[at + j] = row[j];
        if (out->top_p) out->top_p[at + j] = k->vector[F][row[j]] / k->whole;
        if (out->top_log_p) out->top_log_p[at + j] = x - k->log_sum;
    }
}

/* Solves queries that iterate too long with coupled.c, and handles scores that are not finite as vectors.c does. */
static cgam_status settle_apart(const cgam_small_call *job, cgam_small_query *k, cgam_result *out)
{
    const cgam_recall *plan = job->plan;
    double **x = k->vector;
    int64_t n = job->x->Z.n, target = job->in->target ? job->in->target[k->at] : -1;
    bool coupled = plan->opts.mode == CGAM_COUPLED;
    cgam_settled m = as_settled(job, k, x[coupled ? P : F]);
    cgam_status status = CGAM_OK;
    if (coupled) {
        status = cgam_coupled_solve(plan, 1, &m, NULL);
    } else {
        memcpy(m.s, m.in.s0, (size_t)n * sizeof *m.s);
        m.trace = cgam_trace_direct(cgam_activate(plan, m.r, m.p, &m.act));
    }
    if (status == CGAM_OK && out) {
        cgam_summary summary;
        status = cgam_settled_summary(plan, &m, target, &summary);
        if (status == CGAM_OK) cgam_result_fill(plan, &summary, &m.trace, out);
        if (status == CGAM_OK && !job->proves) cgam_result_bare(plan, out);
        else if (status == CGAM_OK) status = cgam_settled_certify(plan, &m, out);
    }
    const cgam_rows *Z = &plan->bank->Z;
    if (status == CGAM_OK) status = cgam_vec_gather(Z, m.r, m.r);
    if (status == CGAM_OK) status = cgam_vec_gather(Z, m.p, m.p);
    if (status == CGAM_OK) status = cgam_vec_gather(Z, m.s, m.s);
    x[R] = m.r;
    x[F] = m.p;
    if (coupled) x[S] = m.s;
    k->step.top = m.act.top;
    k->sums[0] = m.act.sum;
    k->whole = 1;
    return status;
}

/* Finds the row numbers of the leaders, and their scores. */
static cgam_status find_leaders(const cgam_small_call *job, cgam_small_query *k, int64_t most,
                                int64_t *row, double *value)
{
    const cgam_rows *Z = &job->plan->bank->Z;
    if (most <= LISTED_MAX) {
        job->x->loops->leaders(Z->n, k->vector[R], most, value, row);
        return CGAM_OK;
    }
    cgam_status status = cgam_vec_top(job->x->env, Z, k->vector[R], most, row);
    for (int64_t j = 0; j < most && status == CGAM_OK; j++) value[j] = k->vector[R][row[j]];
    return status;
}

/* Writes the vectors that the caller requested besides the result. */
static void report_vectors(const cgam_small_call *job, cgam_small_work *w,
                           const cgam_small_query *k)
{
    const cgam_recall_out *out = job->out;
    int64_t n = job->x->Z.n, d = job->x->Z.d;
    size_t bytes = (size_t)n * sizeof(double);
    const double *s = job->plan->opts.mode == CGAM_FIRST ? k->gates.s0 : k->vector[S];
    for (int64_t i = 0; out->p && i < n; i++) out->p[k->at * n + i] = k->vector[F][i] / k->whole;
    if (out->s) memcpy(out->s + k->at * n, s, bytes);
    if (out->r) memcpy(out->r + k->at * n, k->vector[R], bytes);
    if (!out->readout) return;
    const double *f = k->vector[F];
    double *y = out->readout + k->at * d;
    job->x->loops->combine(&job->x->Z, 1, &f, w->sums, &y);
    for (int64_t j = 0; j < d; j++) y[j] /= k->whole;
}

cgam_status cgam_small_report(const cgam_small_call *job, cgam_small_work *w, cgam_small_query *k)
{
    const cgam_recall_out *out = job->out;
    cgam_result *result = out->results ? &out->results[k->at] : NULL;
    int64_t n = job->x->Z.n, most = job->top > 2 ? job->top : 2;
    int64_t *row = (int64_t *)(void *)k->vector[ROW];
    bool listed = job->top > 0 && (out->top_index || out->top_p || out->top_log_p);
    cgam_status status = CGAM_OK;
    k->whole = job->plan->opts.mode == CGAM_FIRST ? k->sums[0] : 1;
    if (k->left) status = settle_apart(job, k, result);
    else if (job->plan->opts.mode == CGAM_COUPLED)
        job->x->loops->gates(job->x->size, k->vector[R], k->vector[A], k->vector[B], k->gates.s0,
                             job->plan->opts.lambda, k->vector[S], k->off);
    k->log_sum = log(k->sums[0]);
    if (status == CGAM_OK && (listed || result))
        status = find_leaders(job, k, most < n ? most : n, row, k->vector[VALUE]);
    if (status != CGAM_OK) return status;
    if (result && !k->left) status = fill_result(job, k, row, k->vector[VALUE], result);
    if (status != CGAM_OK) return status;
    if (listed) report_top(job, k, row);
    report_vectors(job, w, k);
    return CGAM_OK;
}
