/* sums_report.c: results and certificates of queries solved by sums.c, without vectors of n numbers.
 *
 * r = a + lambda^2 p of the step before and p rise with a, so leaders in a are leaders in r. Rounding
 * (docs/theorems/rounding.md): with B = |zeta| |q| and U = |zeta| |P c| at most, a, r and s = s0 + lambda p are
 * off by 16 u (B + lambda U + lambda^2) together. */
#include "memory/certify.h"
#include "memory/sums.h"
#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>

enum {
    TILE = CGAM_SUMS_TILE,
    SPAN = 750 /* exp of less than minus this is 0 */,
    SHORT = 64 /* leaders */
};

/* A row: its place in the list or -1, its scores and weights. */
typedef struct entry {
    int64_t at;
    double a, b, s0, p, p_old, r, s;
} entry;

static int64_t find_listed(const cgam_sums *x, int64_t row)
{
    int64_t low = 0, high = x->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (x->list[middle].row < row) low = middle + 1;
        else high = middle;
    }
    return low < x->count && x->list[low].row == row ? low : -1;
}

/* Completes a row from its a and s0. */
static entry entry_of(const cgam_recall *plan, const cgam_sums *x, int64_t at, double a, double s0)
{
    double lambda = plan->opts.lambda, w = at < 0 ? exp(plan->opts.beta * (a - x->top)) : 0;
    entry e = {.at = at, .a = a, .s0 = s0};
    e.p = at < 0 ? cgam_series_p(&x->now, w) : x->p[at];
    e.p_old = at < 0 ? cgam_series_p(&x->before, w) : x->p_old[at];
    e.r = a + lambda * lambda * e.p_old;
    e.s = s0 + lambda * e.p_old;
    return e;
}

static double log_p(const cgam_recall *plan, const cgam_sums *x, const entry *e)
{
    double beta = plan->opts.beta, lambda = plan->opts.lambda;
    return beta * (e->a - x->top) + beta * lambda * lambda * e->p_old - log(x->now.whole);
}

/* sum p (y + k p_old) and sum p y, y = beta (a - top). */
static void tilts(const cgam_recall *plan, const cgam_sums *x, double *all, double *own)
{
    double beta = plan->opts.beta, k = beta * plan->opts.lambda * plan->opts.lambda;
    const double *c = x->now.c, *o = x->before.c, *m = x->rest.w, *l = x->rest.wy;
    double h = k / x->before.whole, fed = 0;
    *own = l[0] + (c[0] * l[1] + (c[1] * l[2] + c[2] * l[3]));
    *own /= x->now.whole;
    fed = m[1] + ((c[0] + o[0]) * m[2] + (c[1] + c[0] * o[0] + o[1]) * m[3]);
    fed *= h / x->now.whole;
    for (int64_t i = 0; i < x->count; i += TILE) {
        double part = 0, back = 0;
        for (int64_t j = i; j < x->count && j < i + TILE; j++) {
            part += x->p[j] * (beta * (x->list[j].a - x->top));
            back += x->p[j] * x->p_old[j];
        }
        *own += part;
        fed += k * back;
    }
    *all = *own + fed;
}

double cgam_sums_squares(const cgam_sums *x, const cgam_series *now, const double *p)
{
    const double *m = x->rest.w, *c = now->c;
    double total = (m[1] + 2 * c[0] * m[2] + (c[0] * c[0] + 2 * c[1]) * m[3]);
    total /= now->whole * now->whole;
    for (int64_t i = 0; i < x->count; i += TILE) {
        double part = 0;
        for (int64_t k = i; k < x->count && k < i + TILE; k++) part += p[k] * p[k];
        total += part;
    }
    return total;
}

/* The largest b and s of rows other than f, where there is a context. Only rows of the rest whose s0 is within what
 * feedback may add need an exponential. */
static cgam_status best_others(const cgam_recall *plan, const cgam_sums *x, int64_t f, double *raw,
                               double *gate)
{
    const cgam_scored *in = &x->x.in;
    double best_b, best_s;
    double room = plan->opts.lambda * cgam_series_p(&x->before, x->rest_most) * (1 + 0x1p-20);
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_MAX(best_b), CGAM_MAX(best_s)) {
        if (i == f) continue;
        best_b = in->b[i] > best_b ? in->b[i] : best_b;
        if (!(in->s0[i] + room > best_s) || in->a[i] > x->rest.top) continue;
        entry e = entry_of(plan, x, -1, in->a[i], in->s0[i]);
        best_s = e.s > best_s ? e.s : best_s;
    }
    for (int64_t k = 0; k < x->count; k++) {
        if (x->list[k].row == f) continue;
        entry e = entry_of(plan, x, k, x->list[k].a, x->list[k].s0);
        best_s = e.s > best_s ? e.s : best_s;
    }
    *raw = best_b;
    *gate = best_s;
    return cgam_rows_status(&plan->bank->Z);
}

/* The row with the largest a other than f: on the list, or the first of the rest. */
static entry runner_up(const cgam_recall *plan, const cgam_sums *x, const entry *f)
{
    int64_t best = -1;
    for (int64_t k = 0; k < x->count; k++)
        if (k != f->at && (best < 0 || x->list[k].a > x->list[best].a)) best = k;
    return best >= 0 ? entry_of(plan, x, best, x->list[best].a, x->list[best].s0)
                     : entry_of(plan, x, -1, x->rest.top, 0);
}

cgam_status cgam_sums_summary(const cgam_recall *plan, const cgam_sums *x, int64_t target,
                              cgam_summary *out)
{
    const cgam_rows *Z = &plan->bank->Z;
    const cgam_scored *in = &x->x.in;
    int64_t winner = x->list[x->winner].row, f = target >= 0 ? target : winner;
    double own[3], tilt, ignored; /* a, b, s0 */
    cgam_status status = cgam_vec_pick_row(Z, f, 3, (const double *[]){in->a, in->b, in->s0}, own);
    if (status != CGAM_OK) return status;
    entry e = entry_of(plan, x, find_listed(x, f), own[0], own[2]);
    tilts(plan, x, &tilt, &ignored);
    *out = (cgam_summary){.winner = winner,
                          .focus = f,
                          .p = e.p,
                          .log_p = log_p(plan, x, &e),
                          .entropy = log(x->now.whole) - tilt,
                          .ipr = 1 / cgam_sums_squares(x, &x->now, x->p),
                          .support = Z->n};
    if (f != winner) {
        double rank, a = own[0];
        CGAM_REDUCE(Z, i, CGAM_SUM(rank)) rank += in->a[i] > a || (in->a[i] == a && i < f);
        status = cgam_rows_status(Z);
        out->rank = (int64_t)rank;
    }
    if (Z->n < 2 || status != CGAM_OK) return status;
    entry other = runner_up(plan, x, &e);
    double raw = other.a, gate = other.s;
    if (in->s0) status = best_others(plan, x, f, &raw, &gate);
    out->gap = e.r - other.r;
    out->gap_raw = own[1] - raw;
    out->gap_gate = e.s - gate;
    return status;
}

/* Roundings of a sum of weights: within tiles and within lanes of the rest, over the tiles of a group, over groups. */
static double sum_roundings(const cgam_recall *plan, const cgam_sums *x)
{
    const cgam_rows *Z = &plan->bank->Z;
    double rows = (double)Z->n / (double)cgam_rows_chunks(Z), listed = (double)x->count;
    return TILE + listed / TILE + TILE / 8.0 + 8 + rows / TILE + 64;
}

bool cgam_sums_certify(const cgam_recall *plan, const cgam_sums *x, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    const cgam_scored *in = &x->x.in;
    double few = 1 + 0x1p-18, eta = plan->gate->info.eta_min;
    double k = o->beta * o->lambda * o->lambda, sums = sum_roundings(plan, x);
    double tilt, ignored, largest = x->p[x->winner];
    tilts(plan, x, &ignored, &tilt);
    cgam_doubt doubt = {.scores = cgam_doubt_scores(plan, in->q, in->c)};
    /* cgam_doubt_scores is gamma_16 or more of B + lambda U: 16 u of it at most is counted twice */
    doubt.scores += (doubt.scores + 32 * CGAM_U * o->lambda * o->lambda) * CGAM_SLACK;
    double moved = 2 * o->beta * doubt.scores * few;
    double last = x->x.trace.change_norm * few;
    doubt.step = doubt.scores;
    doubt.sum = (sums * CGAM_U + x->truncated) * CGAM_SLACK;
    doubt.weights = moved + 2 * ((4 * (SPAN + k) + sums) * CGAM_U + x->truncated) * few;
    doubt.p = moved <= 1 ? sqrt(cgam_sums_squares(x, &x->now, x->p)) * expm1(moved) * few +
                               (CGAM_U * (sums + 4 * (fabs(tilt) + k)) + 2 * x->truncated) * few
                         : sqrt(2);
    doubt.gradient = o->lambda * (last + doubt.p) * CGAM_SLACK;
    doubt.moves = 0.5 * o->beta * o->lambda * few * o->lambda * last / eta + doubt.p;
    if (!(doubt.scores >= 0)) doubt.scores = doubt.step = doubt.weights = INFINITY;
    if (!(doubt.gradient >= 0)) doubt.gradient = INFINITY;
    if (!(doubt.moves >= 0)) doubt.moves = INFINITY;
    cgam_bound_freely(plan, largest * (1 - largest), largest, &doubt, out);
    out->score_error = NAN;
    cgam_settled m = {.in = *in, .act = x->x.act, .trace = x->x.trace};
    return cgam_bound_coupled(plan, &m, &doubt, out);
}

/* The k <= SHORT leaders of the list, by falling a, ties to the lower row. */
static void lead_list(const cgam_sums *x, int64_t k, int64_t *index, double *a)
{
    int64_t have = 0;
    for (int64_t i = 0; i < x->count; i++) {
        double own = x->list[i].a;
        if (have == k && !(own > a[k - 1])) continue;
        int64_t at = have < k ? have++ : k - 1;
        for (; at > 0 && own > a[at - 1]; at--) {
            a[at] = a[at - 1];
            index[at] = index[at - 1];
        }
        a[at] = own;
        index[at] = x->list[i].row;
    }
}

cgam_status cgam_sums_top(const cgam_recall *plan, const cgam_sums *x, int64_t k, int64_t *index,
                          double *p, double *log_share)
{
    const cgam_rows *Z = &plan->bank->Z;
    bool listed = k <= SHORT && k <= x->count;
    double *a = cgam_alloc(plan->bank->env, (size_t)k + 1, sizeof *a);
    cgam_status status = a ? CGAM_OK : cgam_fail_nomem(plan->bank->env, "leaders");
    if (a && listed) lead_list(x, k, index, a);
    else if (a) status = cgam_vec_top(plan->bank->env, Z, x->x.in.a, k, index);
    if (a && !listed && status == CGAM_OK) status = cgam_vec_pick(Z, x->x.in.a, k, index, a);
    for (int64_t j = 0; j < k && status == CGAM_OK; j++) {
        entry e = entry_of(plan, x, find_listed(x, index[j]), a[j], 0);
        if (p) p[j] = e.p;
        if (log_share) log_share[j] = log_p(plan, x, &e);
    }
    cgam_free(plan->bank->env, a);
    return status;
}
