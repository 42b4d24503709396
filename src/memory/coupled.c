/* coupled.c: the self-consistent recall  p = act(beta (a + lambda^2 A^-1 p)), act softmax or entmax,
 * a = b + lambda A^-1 u, by plain iteration from p0 = act(beta a).
 *
 * The iteration is the concave-convex procedure on
 *     E(s) = s'As/2 - u's - lse(beta (b + lambda s)) / beta ,     s = A^-1 (u + lambda p),
 * so E never rises, for any lambda, as long as A is positive definite. With the s above
 *     E = sum_i p_i (r_i - a_i) / 2 - u'A^-1u / 2 - lse(beta r) / beta ,   r = b + lambda s,
 * which is computed in the step that computes r, so a rise beyond rounding is detected. A step is a pass over Z
 * (coupled_pass.c), or a separate solve where that does not stream. */
#include "memory/certify.h"
#include "memory/engines.h"

#include "num/pass.h"
#include "num/readout.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

/* Computes r_new, its activation and the energy without streaming: A^-1 p_old by a separate solve, refined if
 * `exact`. */
static cgam_status step_apart(const cgam_recall *plan, cgam_iterating *x, bool exact, double *work,
                              double *energy)
{
    const cgam_rows *Z = &plan->bank->Z;
    double l2 = plan->opts.lambda * plan->opts.lambda, beta = plan->opts.beta;
    cgam_status status = CGAM_OK;
    if (plan->opts.alpha == 0 || l2 == 0) {
        cgam_vec_copy(Z, work, x->p_old);
    } else if (!exact && plan->gate->A && cgam_dplr_dense(plan->gate->A)) {
        cgam_vec_copy(Z, work, x->p_old);
        status = cgam_dplr_dense_solve(plan->gate->A, work);
    } else {
        status = cgam_gate_solve(plan->gate, x->p_old, work, NULL);
    }
    if (status != CGAM_OK) return status;
    double feedback;
    CGAM_REDUCE(Z, i, CGAM_SUM(feedback)) {
        x->r_new[i] = x->in.a[i] + l2 * work[i];
        feedback += x->p_old[i] * (l2 * work[i]);
    }
    x->act = cgam_activated_of(plan, x->r_new);
    *energy = 0.5 * feedback - x->in.half_us0 - x->act.lse / beta;
    return cgam_rows_status(Z);
}

typedef struct weighing {
    const cgam_recall *plan;
    const cgam_iterating *x;
} weighing;

/* Computes p_new of some rows and notes the largest change. */
static cgam_status weigh_rows(void *arg, const cgam_pass_group *group)
{
    const weighing *job = arg;
    const cgam_iterating *x = job->x;
    double largest = 0;
    for (int64_t i = group->from; i < group->to; i += CGAM_SETTLE_ROWS) {
        int64_t rows = group->to - i < CGAM_SETTLE_ROWS ? group->to - i : CGAM_SETTLE_ROWS;
        cgam_activated_weights(job->plan, &x->act, x->r_new, i, rows, x->p_new + i);
        for (int64_t k = i; k < i + rows; k++) {
            double step = fabs(x->p_new[k] - x->p_old[k]);
            largest = step > largest ? step : largest;
        }
    }
    group->notes[0] = largest;
    return CGAM_OK;
}

/* Computes p_new from r_new, its distance from p_old, and the energy of levelled scores. With softmax p_new is
 * exp(beta (r - top)) / sum: exp(beta r - lse) would lose digits to the size of r. *finite = the result is finite. */
static cgam_status weigh_step(const cgam_recall *plan, cgam_iterating *x, double *energy,
                              double *change, bool *finite)
{
    const cgam_rows *Z = &plan->bank->Z;
    *finite = isfinite(x->act.lse);
    if (!*finite) { /* p no longer changes */
        cgam_vec_copy(Z, x->p_new, x->p_old);
        return CGAM_OK;
    }
    if (x->in.level && plan->twins) {
        double before = x->act.lse;
        cgam_status status = cgam_twins_level(plan->bank, plan->twins, x->r_new);
        if (status != CGAM_OK) return status;
        x->act =
            cgam_activated_of(plan, x->r_new); /* with the earlier sums p would not add up to 1 */
        *energy += (before - x->act.lse) / plan->opts.beta;
    }
    weighing job = {plan, x};
    cgam_pass pass;
    cgam_status status = cgam_pass_new(plan->bank->env, Z, 0, 1, &pass);
    if (status == CGAM_OK) status = cgam_pass_run(&pass, weigh_rows, &job);
    if (status == CGAM_OK) status = cgam_pass_max(&pass, change);
    cgam_pass_free(&pass);
    *finite = status == CGAM_OK && isfinite(*change);
    return status;
}

/* Is Newton likely to be faster? Costs are in units of one multiplication per row: an iteration reads the bank, a
 * Newton step factors an operator (matrix products run about eight times as fast per multiplication as the
 * memory-bound pass), and about five factorisations are needed. */
static bool newton_pays(const cgam_recall *plan, const cgam_iterating *x)
{
    double n = (double)plan->bank->Z.n, d = (double)plan->bank->Z.d;
    const cgam_trace *t = &x->trace;
    if (plan->opts.plain || plan->opts.lambda == 0 || !plan->gate->A) return false;
    if (cgam_recall_sparse(plan)) return false; /* the lemma of newton.c needs softmax */
    if (t->iterations < 12 || t->iterations < x->newton_after) return false;
    if (!(t->rate > 0.2 && t->rate < 1)) return false;
    double left = log(plan->opts.tol / t->change) / log(t->rate);
    double once = plan->opts.alpha == 0 ? 10 : fmin(n, d) + 10;
    double factor = plan->opts.alpha == 0 ? 10 : d * fmin(n, d) / 8 + 10;
    return left * once > 5 * factor + 10 * once;
}

/* Counts one more plain step; returns true if it was the last. Energies computed partly in f32 are marked rough. */
static bool count_step(const cgam_recall *plan, cgam_streaming *w, double energy, double change)
{
    bool exact = !w->f32 && !w->after_f32;
    cgam_iterating_energy(&w->x, energy, exact);
    cgam_iterating_count(&w->x, change);
    return cgam_iterating_ends(plan, &w->x, exact);
}

/* Makes the new p and r the old ones of the next step. */
static void turn_over(cgam_iterating *x)
{
    double *p = x->p_old;
    x->p_old = x->p_new;
    x->p_new = p;
}

/* Finishes one query: if the streamed solve is not exact enough, iterates on with refined solves. work: [2, n]. */
static cgam_status refine_end(const cgam_recall *plan, cgam_streaming *w, double *work)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_iterating *x = &w->x;
    cgam_trace *trace = &x->trace;
    cgam_status status = CGAM_OK;
    double *r_old = work + cgam_vec_size(Z);
    bool more = plan->can.refines && trace->end == CGAM_END_CONVERGED;
    x->best = INFINITY;
    x->since = trace->iterations;
    while (more && status == CGAM_OK) {
        double energy, change;
        turn_over(x);
        cgam_vec_copy(Z, r_old, x->r_new);
        status = step_apart(plan, x, true, work, &energy);
        if (status != CGAM_OK) break;
        if (x->best == INFINITY) {
            double most;
            CGAM_REDUCE(Z, i, CGAM_MAX(most))
                if (x->p_old[i] > 0) most = fmax(most, fabs(x->r_new[i] - r_old[i]));
            status = cgam_rows_status(Z);
            trace->streamed = fmax(trace->streamed, most);
        }
        bool finite = false;
        if (status == CGAM_OK) status = weigh_step(plan, x, &energy, &change, &finite);
        if (status != CGAM_OK) break;
        if (!finite) {
            trace->end = CGAM_END_DIVERGED;
            break;
        }
        /* the first refined energy differs from the streamed one by the error of that, not by a rise; a rise of the
         * streamed ones counts if it exceeds their possible errors */
        if (x->best == INFINITY) {
            trace->energy_end = fmax(energy, trace->energy_end);
            if (trace->energy_rise <= 3 * trace->streamed) trace->energy_rise = 0;
        }
        more = !count_step(plan, w, energy, change);
    }
    if (status != CGAM_OK) return status;
    double squares;
    CGAM_REDUCE(Z, i, CGAM_SUM(squares))
        squares += (x->p_new[i] - x->p_old[i]) * (x->p_new[i] - x->p_old[i]);
    trace->change_norm = sqrt(squares);
    return cgam_rows_status(Z);
}

/* The error of the last step, from the small system: the weights in its g are those of p except for their
 * rounding. */
static cgam_status doubt_last_step(const cgam_recall *plan, cgam_streaming *w)
{
    cgam_iterating *x = &w->x;
    bool proves = plan->opts.certify == CGAM_CERTIFY_USUAL && x->trace.end != CGAM_END_DIVERGED;
    if (!proves || cgam_recall_sparse(plan)) return CGAM_OK;
    if (plan->gate->a == 0 && plan->opts.lambda > 0) { /* A = I: no solve */
        x->followed = true;
        x->in.s0_off = cgam_doubt_context(plan, x->in.c);
        return CGAM_OK;
    }
    bool streams = plan->can.streams && !plan->can.refines && plan->can.matrices;
    if (!streams || plan->twins || w->f32 || w->after_f32) return CGAM_OK;
    double n = (double)plan->bank->Z.n, tile = (double)cgam_readout_tile(&plan->bank->Z);
    double rows = n / (double)cgam_rows_chunks(&plan->bank->Z) + 1,
           tiles = rows / fmin(tile, rows) + 1;
    double weights = (8 * log(n) + 16 + 8 * tiles) * CGAM_U;
    x->followed = true;
    return cgam_doubt_feedback(plan, rows + tiles, weights, w->g_old, w->edges, w->t,
                               w->edges + cgam_dplr_border(plan->gate->A, NULL), &x->feedback);
}

/* Completes a step of w, which has r_new and its energy; *done = it was the last. */
static cgam_status complete_step(const cgam_recall *plan, cgam_streaming *w, double *work,
                                 bool *done)
{
    double change, energy = w->energy;
    bool finite, moved = false;
    cgam_iterating *x = &w->x;
    cgam_rows_iterates(&plan->bank->Z);
    cgam_status status = weigh_step(plan, x, &energy, &change, &finite);
    cgam_rows_iterated(&plan->bank->Z, 0);
    if (status != CGAM_OK) return status;
    if (!finite) x->trace.end = CGAM_END_DIVERGED;
    if (x->trace.energy_start == INFINITY) x->trace.energy_start = x->trace.energy_end = energy;
    *done = !finite || count_step(plan, w, energy, change);
    if (*done) {
        status = refine_end(plan, w, work);
        return status == CGAM_OK ? doubt_last_step(plan, w) : status;
    }
    if (cgam_recall_sparse(plan) && plan->can.streams) return cgam_coupled_gather(plan, w);
    if (!newton_pays(plan, x)) return status;
    status = cgam_coupled_newton(plan, x, &moved);
    if (moved && plan->can.streams && status == CGAM_OK) status = cgam_coupled_gather(plan, w);
    return status;
}

/* Solves at most CGAM_ROUTE_SHARE queries. */
static cgam_status solve_group(const cgam_recall *plan, int64_t count, cgam_settled *const *m,
                               const double *start)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t apart = cgam_vec_size(Z), d = Z->d, active = 0;
    cgam_streaming all[CGAM_ROUTE_SHARE], *on[CGAM_ROUTE_SHARE];
    bool streams = plan->can.streams;
    cgam_status status = CGAM_OK;
    double *work = cgam_vec_new(env, Z, 2);
    int64_t edge = streams ? cgam_dplr_border(plan->gate->A, NULL) : 0, room = 3 * d + 2 * edge;
    double *g = cgam_alloc(env, (size_t)(count * room), sizeof *g);
    if (!work || !g) status = cgam_fail_nomem(env, "a coupled recall");
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        cgam_streaming *w = &all[k];
        double *own = g + k * room;
        *w = (cgam_streaming){.g = own, .g_old = own + d, .t = own + 2 * d, .edges = own + 3 * d};
        status = cgam_iterating_begin(plan, m[k], start ? start + k * apart : NULL, NULL, &w->x);
        if (w->x.trace.end == CGAM_END_DIVERGED) {
            *m[k] = cgam_iterating_settle(plan, &w->x);
            cgam_vec_copy(Z, m[k]->s, m[k]->in.s0);
            continue;
        }
        if (streams && status == CGAM_OK) status = cgam_coupled_gather(plan, w);
        on[active++] = w;
    }
    while (active > 0 && status == CGAM_OK) {
        int64_t kept = 0;
        for (int64_t v = 0; v < active; v++) turn_over(&on[v]->x);
        cgam_rows_iterates(Z);
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
        else if (streams) status = cgam_coupled_pass(plan, active, on);
        cgam_rows_iterated(Z, active);
        for (int64_t v = 0; v < active && status == CGAM_OK; v++) {
            cgam_streaming *w = on[v];
            bool done = false;
            if (!streams) status = step_apart(plan, &w->x, false, work, &w->energy);
            if (status == CGAM_OK) status = complete_step(plan, w, work, &done);
            if (done) *m[w - all] = cgam_iterating_settle(plan, &w->x);
            else on[kept++] = w;
        }
        active = kept;
    }
    cgam_vec_free(env, Z, work);
    cgam_free(env, g);
    return status;
}

cgam_status cgam_coupled_solve(const cgam_recall *plan, int64_t count, cgam_settled *m,
                               const double *start)
{
    cgam_settled *list[CGAM_ROUTE_SHARE];
    for (int64_t k = 0; k < count; k++) list[k] = &m[k];
    return solve_group(plan, count, list, start);
}

cgam_status cgam_coupled_solve_listed(const cgam_recall *plan, int64_t count,
                                      cgam_settled *const *m)
{
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += CGAM_ROUTE_SHARE)
        status = solve_group(plan, count - k < CGAM_ROUTE_SHARE ? count - k : CGAM_ROUTE_SHARE,
                             m + k, NULL);
    return status;
}
