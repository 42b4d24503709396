/* certify.c: certificates of a recall, and what they cost.
 *
 * Free, from eta <= eta_min(A) (see gate.h) and p:
 *     |diag p - pp'| <= 2 max p_i (1 - p_i)          (row sums)
 *     contraction    =  beta lambda^2 / (2 eta)       unique if < 1
 *     fold margin   >=  eta - 2 lambda^2 beta max p (1 - p)
 *     |p - p*|      <=  by contraction, or by the basin lemma of newton.c, from the gradient of the
 *                       energy at the s returned
 * With certify: eta as an eigenvalue, the fold margin and the local contraction too, and a search
 * for a second fixed point where uniqueness is open. Every bound is widened by the rounding of its
 * own evaluation (doubt.c, docs/theorems/rounding.md). The fold margin is that of p; where |p - p*| is proved, it is
 * lowered by the change that this allows, so that it is a bound at the fixed point too.
 *
 * With entmax (docs/theorems/margin.md) diag p - pp' becomes J of activation.c, |J| <= 1:
 *     contraction    =  beta lambda^2 / eta
 *     fold margin   >=  eta - lambda^2 beta
 *     |p - p*|      <=  by contraction, or 0 where the scores have their margin all the way to
 *                       s* = A^-1 (u + lambda p), p one-hot: the map is constant there
 * The basin lemma needs softmax. */
#include "memory/certify.h"

#include "memory/engines.h"
#include "memory/results.h"

#include "num/vec.h"

#include <cgam/theory.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { STARTS_MAX = 5 };
static const double SETTLED = 1e-6; /* the map may still move a converged p by this much */

/* 1 / (1 + e^x), x = log(n-1) - beta gap, from below, where the gap may be `off` smaller: x is raised by beta off and
 * by its own rounding, so that for a clear winner neither costs more than 1 - p. */
static double bound_below(int64_t n, double beta, double gap, double off)
{
    double x = log((double)(n - 1)) - beta * gap;
    x += (beta * off + 16 * CGAM_U * (1 + fabs(x) + fabs(beta * gap))) * CGAM_SLACK;
    double value = x > 0 ? exp(-x - log1p(exp(-x))) : exp(-log1p(exp(x)));
    return fmax(cgam_below(value * (1 - (16 + 2 * fmax(x, 0)) * CGAM_U) - 4 * CGAM_TINY), 0);
}

/* A score that is off by `scores` moves the gap by twice that; p is off by p_off. */
static void lower_bound(const cgam_recall *plan, double scores, double p_off, cgam_result *out)
{
    int64_t n = cgam_recall_rivals(plan);
    double off = 2 * scores * CGAM_SLACK;
    out->p_lower_bound_proved = n == 1 || isfinite(scores);
    if (isnan(out->p_lower_bound) && !isfinite(scores)) cgam_result_estimate_bound(plan, out);
    if (n > 1 && isfinite(scores))
        out->p_lower_bound = cgam_recall_sparse(plan)
                                 ? cgam_margin_bound_below(n, plan->opts.entmax, plan->opts.beta,
                                                           cgam_below(out->gap - off))
                                 : bound_below(n, plan->opts.beta, out->gap, off);
    out->exact = cgam_recall_sparse(plan) && out->p_lower_bound_proved && out->p_lower_bound == 1;
    if (isnan(out->p_lower_bound)) out->p_lower_bound_proved = false;
    cgam_bound_readout(plan, scores, p_off, out);
}

/* An upper bound of |diag p - pp'|, and the numbers it is made of. p has a relative error of at most doubt->weights,
 * 1 - p one of doubt->sum too; p leaves out negligible entries. */
static double covariance(int64_t n, double spread, double largest, const cgam_doubt *doubt,
                         double *rows)
{
    *rows = 0.5;
    if (!(doubt->weights <= 1)) return 0.5; /* nothing is known about p */
    double factor = expm1(doubt->weights) * (1 + 8 * CGAM_U),
           little = 16 * CGAM_U + (double)n * 0x1p-1000;
    *rows = fmin(cgam_widened(2 * (spread + doubt->sum), factor) + little, 0.5);
    return fmin(*rows, cgam_widened(largest, factor) + little);
}

void cgam_bound_freely(const cgam_recall *plan, double spread, double largest,
                       const cgam_doubt *doubt, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, l2b = cgam_square_times(o->lambda, o->beta), rows;
    /* diag p - pp' <= diag p as well, which is better when p is flat */
    double least = covariance(cgam_recall_rivals(plan), spread, largest, doubt, &rows);
    if (cgam_recall_sparse(plan)) least = rows = 1;
    double p_off = doubt->weights <= 1 ? out->p * expm1(doubt->weights) + doubt->sum : 1;
    lower_bound(plan, doubt->scores, p_off * CGAM_SLACK, out);
    out->contraction = cgam_contraction(2 * cgam_recall_lipschitz(plan) * o->beta, o->lambda, eta);
    /* divide by eta first: the product may underflow */
    out->local_contraction =
        eta > 0 ? cgam_widened(l2b * cgam_above(least / eta), 8 * CGAM_U) : NAN;
    if (o->lambda == 0 && eta > 0) out->local_contraction = 0;
    if (isinf(out->contraction)) out->contraction = NAN;
    if (isinf(out->local_contraction)) out->local_contraction = NAN;
    out->contraction_proved = !isnan(out->contraction);
    out->local_contraction_proved = !isnan(out->local_contraction);
    out->unique = out->contraction < 1 ? 1 : -1;
    out->unique_proved = out->unique == 1;
    double take = cgam_widened(l2b * rows, 4 * CGAM_U);
    out->fold_margin = o->lambda == 0 ? eta : cgam_below(eta - take);
    out->fold_margin_proved = isfinite(out->fold_margin);
    if (!out->fold_margin_proved) out->fold_margin = NAN;
    cgam_bound_stability(plan, out);
}

void cgam_result_bare(const cgam_recall *plan, cgam_result *out)
{
    cgam_result_estimate_bound(plan, out);
    cgam_result none = {.contraction = NAN,
                        .unique = -1,
                        .fold_margin = NAN,
                        .local_contraction = NAN,
                        .p_error = NAN,
                        .stable = -1,
                        .readout_error_bound = NAN,
                        .p_lower_bound = out->p_lower_bound};
    cgam_result_take_proofs(&none, out);
}

void cgam_result_take_proofs(const cgam_result *from, cgam_result *out)
{
    out->exact = from->exact;
    out->p_lower_bound = from->p_lower_bound;
    out->p_lower_bound_proved = from->p_lower_bound_proved;
    out->contraction = from->contraction;
    out->contraction_proved = from->contraction_proved;
    out->unique = from->unique;
    out->unique_proved = from->unique_proved;
    out->fold_margin = from->fold_margin;
    out->fold_margin_proved = from->fold_margin_proved;
    out->fold_margin_exact = from->fold_margin_exact;
    out->local_contraction = from->local_contraction;
    out->local_contraction_proved = from->local_contraction_proved;
    out->p_error = from->p_error;
    out->p_error_proved = from->p_error_proved;
    out->stable = from->stable;
    out->stable_proved = from->stable_proved;
    out->readout_error_bound = from->readout_error_bound;
    out->readout_error_bound_proved = from->readout_error_bound_proved;
}

/* r_i = <zeta_i, q> + lambda <zeta_i, c> without rounding. Mode first at alpha = 0, or without context. */
static bool score_exactly(const cgam_recall *plan, const cgam_settled *m, int64_t i, double *row,
                          double *r)
{
    int64_t d = plan->bank->Z.d;
    double u, gate;
    cgam_rows_get(&plan->bank->Z, i, 1, row);
    if (!cgam_dot_exactly(d, row, m->in.q, r)) return false;
    if (!m->in.c || plan->opts.lambda == 0) return true;
    return cgam_dot_exactly(d, row, m->in.c, &u) &&
           cgam_product_exactly(plan->opts.lambda, u, &gate) && cgam_sum_exactly(*r, gate, r);
}

/* Decides the margin where the error bound of the scores leaves it open: scores of small whole numbers, for example,
 * are exact, and so is the answer. Rows that clear the margin by more than the error are skipped. */
static cgam_status check_exact_margin(const cgam_recall *plan, const cgam_settled *m, double scores,
                                      cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    const cgam_bank *bank = plan->bank;
    int64_t f = out->focus;
    double scale, mine, other, gap, off = 2 * scores * CGAM_SLACK;
    if (out->exact || o->mode != CGAM_FIRST || o->P || o->W || bank->scale) return CGAM_OK;
    if (o->alpha > 0 && cgam_doubt_solved(plan, m->in.c)) return CGAM_OK;
    if (!cgam_margin_exact(o->entmax, o->beta, out->gap)) return CGAM_OK;
    if (!cgam_product_exactly(o->entmax - 1, o->beta, &scale)) return CGAM_OK;
    double *row = cgam_alloc(bank->env, (size_t)bank->Z.d, sizeof *row), r;
    if (!row) return cgam_fail_nomem(bank->env, "a margin");
    cgam_status status = cgam_vec_pick(&bank->Z, m->r, 1, &f, &r);
    if (status == CGAM_OK) status = cgam_rows_bring(bank->env, &bank->Z, 1, &f);
    bool exact = status == CGAM_OK && score_exactly(plan, m, f, row, &mine);
    double close = 1; /* rows that do not clear it, among those examined */
    if (exact) {
        CGAM_REDUCE(&bank->Z, i, CGAM_SUM(close)) {
            double away = cgam_below(r - m->r[i] - off);
            if (close > 0 || i == f || scale * away * (1 - 8 * CGAM_U) >= 1) continue;
            close +=
                !(score_exactly(plan, m, i, row, &other) && cgam_sum_exactly(mine, -other, &gap) &&
                  cgam_margin_exact(o->entmax, o->beta, gap));
        }
        status = cgam_rows_status(&bank->Z);
    }
    cgam_free(bank->env, row);
    if (status != CGAM_OK || !exact || close > 0) return status;
    out->exact = out->p_lower_bound_proved = true;
    out->p_lower_bound = 1;
    cgam_bound_readout(plan, 0, 0, out);
    return CGAM_OK;
}

static void bound_freely(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt,
                         cgam_result *out)
{
    double slope = 1, most = 1;
    bool sparse = cgam_recall_sparse(plan);
    if (!sparse) {
        CGAM_REDUCE(&plan->bank->Z, i, CGAM_MAX(slope), CGAM_MAX(most)) {
            double p = m->p[i], spread = p * (1 - p);
            slope = spread > slope ? spread : slope;
            most = p > most ? p : most;
        }
    }
    bool told = sparse || cgam_rows_status(&plan->bank->Z) == CGAM_OK;
    cgam_bound_freely(plan, told ? fmax(slope, 0) : 1, told ? fmax(most, 0) : 1, doubt, out);
}

/* Bound of |s - s*|_2 for the fixed point that this s converges to; INFINITY if no bound applies. */
static double gates_error(const cgam_recall *plan, const cgam_doubt *doubt, const cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, L = out->contraction, local = out->local_contraction;
    double bound = INFINITY, few = 1 + 0x1p-18, step = doubt->gradient / sqrt(eta) * few;
    if (!(eta > 0) || !isfinite(doubt->gradient)) return bound;
    if (out->unique == 1) /* E is strongly convex, with modulus 1 - L against A */
        bound = doubt->gradient / (eta * (1 - L)) * few;
    if (cgam_recall_sparse(plan)) return bound;
    /* Basin lemma with theta = the proved local bound: |s - s*|_A <= step / ((1 - theta) / 2). */
    if (o->lambda > 0 && out->local_contraction_proved && local > 0 && local < 1 &&
        cgam_basin_radius(o->beta, o->lambda, eta, local) > 4 * step / (1 - local) * few)
        bound = fmin(bound, 2 * step / ((1 - local) * sqrt(eta)) * few);
    return bound;
}

/* With entmax: is p one-hot for all scores between those of s and of A^-1 (u + lambda p)? Then the latter is the
 * fixed point, at distance `gates`. */
static bool stays_one_hot(const cgam_recall *plan, const cgam_doubt *doubt, const cgam_result *out,
                          double *gates)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, away = doubt->gradient / eta * (1 + 0x1p-18);
    double off = 2 * (doubt->scores + o->lambda * away) * CGAM_SLACK;
    int64_t n = plan->bank->Z.n;
    if (!cgam_recall_sparse(plan) || !(eta > 0) || !isfinite(off)) return false;
    if (n > 1 && cgam_margin_bound_below(n, o->entmax, o->beta, cgam_below(out->gap - off)) < 1)
        return false;
    *gates = away;
    return true;
}

/* Bound of |p - p*|_2: softmax is (beta / 2)-Lipschitz in the scores, which are lambda s and b, and entmax
 * beta-Lipschitz. */
static void bound_error(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt,
                        cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    out->p_error = NAN;
    out->p_error_proved = false;
    if (m->trace.end == CGAM_END_DIVERGED) return;
    double gates = gates_error(plan, doubt, out);
    double bound = cgam_recall_lipschitz(plan) * o->beta * o->lambda * gates + doubt->p;
    out->exact = false; /* it was exact at s only */
    if (o->lambda == 0 || stays_one_hot(plan, doubt, out, &gates)) bound = doubt->p;
    if (o->lambda == 0) gates = 0;
    out->p_error_proved = isfinite(bound);
    if (out->p_error_proved) { /* no two p are further apart than sqrt 2 */
        out->p_error = fmin(cgam_widened(bound, 16 * CGAM_U), cgam_above(sqrt(2)));
        lower_bound(plan, doubt->scores + o->lambda * gates * CGAM_SLACK, out->p_error, out);
    } else if (m->trace.rate > 0 && m->trace.rate < 1) {
        out->p_error = m->trace.rate / (1 - m->trace.rate) * (m->trace.change_norm + doubt->p);
    }
}

/* Carries the margin from the returned p to the fixed point: between p and p* = p - d, C = diag p - pp' changes by
 * |diag d - p d' - d p*'| <= 3 |d|_2, and by 1/2 at most, as both are between 0 and 1/2. Entmax has no such bound:
 * its support may change. */
static void carry_margin(const cgam_recall *plan, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    if (!out->p_error_proved || !out->fold_margin_proved || o->lambda == 0) return;
    if (cgam_recall_sparse(plan)) return;
    double l2b = cgam_square_times(o->lambda, o->beta);
    double moves = cgam_widened(l2b * fmin(3 * out->p_error, 0.5), 8 * CGAM_U);
    double anywhere = cgam_below(plan->gate->info.eta_min - cgam_widened(0.5 * l2b, 4 * CGAM_U));
    double margin = cgam_below(out->fold_margin - moves);
    out->fold_margin_exact &= moves <= 5e-10 * fmax(1, fabs(margin));
    out->fold_margin = fmax(margin, anywhere);
}

/* Bound of the apparent rise of the energy between two steps whose scores are off by at most rho. By the theorem of
 * docs/theorems/rounding.md:  3 rho + lambda^2 epsilon^2 / (2 eta) + 2 w,
 *     epsilon = |p - softmax(exact scores)|,   w the rounding of the energy's own terms,
 *     u ((m + 12 log n + 16) / beta + 8 |lse| / beta + 4 |u's0| / 2) + gamma_{n+16} (lambda^2 / eta + rho) .
 * rho is measured at the end, and where refined steps took over from streamed ones. A Newton step may
 * rise by 8 u of the same terms, a step in f32 has epsilon <= 2^-20. The bound is capped at a millionth of E's terms,
 * or of 1 / beta. */
static double energy_doubt(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt)
{
    const cgam_recall_opts *o = &plan->opts;
    double n = (double)plan->bank->Z.n, eta = plan->gate->info.eta_min;
    double rho = doubt->step + m->trace.streamed;
    double feedback = o->lambda * o->lambda / eta,
           lse = fabs(m->act.lse) / o->beta + 1.5 * feedback;
    double epsilon = doubt->p + expm1(fmin(2 * o->beta * rho, 1)), half = fabs(m->in.half_us0);
    if (!(eta > 0) || !(2 * o->beta * rho <= 1)) epsilon = sqrt(2);
    double terms = doubt->sum / o->beta + (12 * log(n) + 16) * CGAM_U / o->beta +
                   CGAM_U * (8 * lse + 4 * half) + cgam_gamma(n + 16) * (feedback + rho);
    double newton = 8 * CGAM_U * (double)m->trace.newton_steps * (half + feedback + 2 * lse);
    double f32 = m->together ? (double)m->trace.iterations * 0x1p-40 : 0;
    double bound = 3 * rho + (0.5 * epsilon * epsilon + f32) * feedback + 2 * terms + newton;
    return fmin(bound * CGAM_SLACK, SETTLED * (half + (fabs(m->act.lse) + 1) / o->beta));
}

bool cgam_bound_coupled(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt,
                        cgam_result *out)
{
    bound_error(plan, m, doubt, out);
    carry_margin(plan, out);
    if (!isfinite(doubt->scores)) out->end = CGAM_END_DIVERGED;
    /* the last change of p was within tol, and the next may be larger by the contraction */
    double still = fmax(SETTLED, 2 * plan->opts.tol * fmax(1, out->contraction));
    /* an energy beyond the range of double cannot be judged */
    bool rose =
        !(m->trace.energy_rise <= energy_doubt(plan, m, doubt)) || !isfinite(m->trace.energy_end);
    bool settled = out->end == CGAM_END_CONVERGED, moves = !(doubt->moves <= still);
    if (settled && (rose || (isfinite(doubt->gradient) && moves))) out->end = CGAM_END_STALLED;
    cgam_bound_stability(plan, out);
    return !isfinite(doubt->gradient) || (settled && (rose || moves));
}

/* A first-order estimate of the distance of p from its fixed point: the last step over 1 - rate. Two recalls that
 * stopped early, at a loose tolerance or a slow rate, can differ by this much and still reach the same
 * point. */
static cgam_status estimate_distance(const cgam_recall *plan, const cgam_settled *m, double *left)
{
    double rate;
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = plan->bank->env;
    double *pi = cgam_vec_new(env, &plan->bank->Z, 1);
    if (!pi) return cgam_fail_nomem(env, "a rate");
    double beta = o->beta * cgam_recall_slopes(plan, m->p, pi);
    cgam_status status = cgam_contraction_local(plan->gate, beta, o->lambda, pi, &rate, NULL);
    cgam_vec_free(env, &plan->bank->Z, pi);
    *left = m->trace.change_norm / fabs(1 - rate);
    return status;
}

/* Tries other starts: all weight on each of the leading memories, and no weight at all. A fixed point apart from ours
 * is a second one; this is a proof if the error bounds of both keep them apart. */
static cgam_status look_for_second(const cgam_recall *plan, const cgam_settled *m, cgam_result *out)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t n = Z->n, leaders = n < STARTS_MAX ? n : STARTS_MAX, index[STARTS_MAX];
    double *work = cgam_vec_new(env, Z, 4);
    if (!work) return cgam_fail_nomem(env, "a second fixed point");
    double mine_left, theirs_left;
    cgam_status status = cgam_vec_top(plan->bank->env, &plan->bank->Z, m->r, leaders, index);
    if (status == CGAM_OK) status = estimate_distance(plan, m, &mine_left);
    for (int64_t k = 0; k <= leaders && !out->unique_proved && status == CGAM_OK; k++) {
        double *start = work + 3 * cgam_vec_size(Z), apart = 0;
        cgam_settled other = {
            .in = m->in, .s = work, .r = work + cgam_vec_size(Z), .p = work + 2 * cgam_vec_size(Z)};
        CGAM_EACH_ROW(Z, i) start[i] = k < leaders ? i == index[k] : 1.0 / (double)n;
        status = cgam_coupled_solve(plan, 1, &other, start);
        if (status != CGAM_OK || other.trace.end != CGAM_END_CONVERGED) continue;
        CGAM_EACH_ROW(Z, i) start[i] = other.p[i] - m->p[i];
        apart = cgam_vec_norm(Z, start);
        if (!(apart > 1e-6)) continue;
        status = estimate_distance(plan, &other, &theirs_left);
        if (status != CGAM_OK || !(apart > 10 * (mine_left + theirs_left))) continue;
        cgam_result theirs = {0};
        cgam_doubt doubt;
        status = cgam_doubt_measure(plan, &other, true, false, &doubt);
        if (status != CGAM_OK) continue;
        bound_freely(plan, &other, &doubt, &theirs);
        bound_error(plan, &other, &doubt, &theirs);
        out->unique = 0;
        out->unique_proved =
            out->p_error_proved && theirs.p_error_proved &&
            apart > (out->p_error + theirs.p_error) * CGAM_SLACK; /* the distance is rounded too */
    }
    cgam_vec_free(env, Z, work);
    return status;
}

/* The eigenvalues at p, whose slope is beta C(pi), and so at every p within doubt->weights of it: for those C is
 * larger by at most that factor, and by the deviation of the sum of pi from 1. */
static cgam_status certify_at(const cgam_recall *plan, double beta, const double *pi,
                              const cgam_doubt *doubt, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    double margin, local, more = expm1(doubt->weights);
    double l2b = cgam_square_times(o->lambda, beta);
    double most = cgam_recall_lipschitz(plan) * cgam_square_times(o->lambda, o->beta);
    bool proved;
    cgam_status status = cgam_fold_margin(plan->gate, beta, o->lambda, pi, &margin, &proved);
    if (status != CGAM_OK) return status;
    double sum =
        (double)plan->bank->Z.n * 0x1p-51; /* bounds the deviation of the sum of pi from 1 */
    double off = cgam_widened(more * fmin(most, out->local_contraction) + sum * l2b, 16 * CGAM_U);
    if (o->lambda == 0) off = 0;
    margin = o->lambda == 0 ? margin : cgam_below(margin - off);
    proved &= off <= 1e-10 * fmax(1, fabs(margin));
    if (proved || !(margin <= out->fold_margin)) out->fold_margin = margin;
    out->fold_margin_exact = proved;
    if (!out->contraction_proved || o->lambda == 0) return CGAM_OK;
    status = cgam_contraction_local(plan->gate, beta, o->lambda, pi, &local, &proved);
    local = cgam_widened(local + sum / plan->gate->info.eta_min * l2b, more * (1 + 0x1p-20));
    if (proved && !(local >= out->local_contraction)) out->local_contraction = local;
    return status;
}

static cgam_status certify_coupled(const cgam_recall *plan, const cgam_settled *m,
                                   const cgam_doubt *doubt, cgam_result *out)
{
    cgam_env *env = plan->bank->env;
    if (!(doubt->weights <= 1)) return CGAM_OK; /* the error of p is too large for a statement */
    double *pi = cgam_vec_new(env, &plan->bank->Z, 1);
    if (!pi) return cgam_fail_nomem(env, "a certificate");
    double beta = plan->opts.beta * cgam_recall_slopes(plan, m->p, pi);
    if (beta < DBL_MIN) beta = cgam_above(beta); /* a subnormal beta has few digits */
    cgam_status status = certify_at(plan, beta, pi, doubt, out);
    cgam_vec_free(env, &plan->bank->Z, pi);
    return status;
}

cgam_status cgam_settled_bounds(const cgam_recall *plan, const cgam_settled *m, cgam_result *out)
{
    const cgam_recall_opts *o = &plan->opts;
    bool coupled = cgam_recall_couples(plan), gates = o->mode == CGAM_FIRST;
    bool solved = gates && cgam_doubt_solved(plan, m->in.c);
    cgam_doubt doubt;
    out->p_error = NAN;
    if (m->trace.end == CGAM_END_DIVERGED) {
        out->p_lower_bound = out->contraction = out->fold_margin = out->local_contraction = NAN;
        out->readout_error_bound = NAN;
        out->unique = out->stable = -1;
        return CGAM_OK;
    }
    bool measure = (coupled && (cgam_recall_full(plan) || !(m->together || m->followed))) ||
                   (solved && (cgam_recall_full(plan) || !plan->can.matrices));
    /* on large banks the bound from the pass is used, without reading the rows again */
    bool freely =
        cgam_recall_sparse(plan) && gates && plan->can.matrices && !cgam_recall_full(plan);
    if (freely) doubt = (cgam_doubt){.scores = cgam_doubt_scores(plan, m->in.q, m->in.c)};
    cgam_status status = freely ? CGAM_OK : cgam_doubt_measure(plan, m, measure, gates, &doubt);
    if (status != CGAM_OK) return status;
    if (solved) { /* mode first certifies the gates as given, not as solved for */
        double off = measure ? doubt.gradient * plan->gate->gain * (1 + 0x1p-18) : INFINITY;
        if (plan->can.matrices) off = fmin(off, m->in.s0_off.most);
        doubt.scores += o->lambda * off * CGAM_SLACK;
        if (!(doubt.scores >= 0)) doubt.scores = INFINITY;
        doubt.weights += 2 * o->beta * o->lambda * off * CGAM_SLACK;
        if (!(doubt.weights >= 0)) doubt.weights = INFINITY;
    }
    if (cgam_recall_sparse(plan) && cgam_recall_full(plan))
        doubt.weights = cgam_doubt_slopes(plan, m, &doubt);
    bound_freely(plan, m, &doubt, out);
    if (cgam_recall_sparse(plan)) status = check_exact_margin(plan, m, doubt.scores, out);
    if (status != CGAM_OK) return status;
    out->score_error = o->fast ? doubt.scores : NAN;
    if (cgam_recall_full(plan) && plan->gate->A) /* conjugate gradients have no factors for it */
        status = certify_coupled(plan, m, &doubt, out);
    cgam_bound_stability(plan, out);
    if (status != CGAM_OK || !coupled) return status;
    cgam_end end = out->end;
    bool open = cgam_bound_coupled(plan, m, &doubt, out);
    if (m->followed && !measure && open) {
        cgam_settled apart = *m;
        apart.followed = false;
        out->end = end;
        return cgam_settled_bounds(plan, &apart, out);
    }
    return status;
}

cgam_status cgam_settled_certify(const cgam_recall *plan, const cgam_settled *m, cgam_result *out)
{
    cgam_status status = cgam_settled_bounds(plan, m, out);
    if (cgam_recall_couples(plan) && cgam_recall_full(plan) && plan->gate->A && out->unique < 0 &&
        out->end == CGAM_END_CONVERGED && status == CGAM_OK)
        status = look_for_second(plan, m, out);
    return status;
}
