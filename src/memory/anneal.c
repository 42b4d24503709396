/* anneal.c: mode anneal - the branch of fixed points from small beta, where the fixed point is unique, to the
 * requested beta (docs/theorems/variational.md, statement 6).
 *
 * beta goes up by a factor. The scores r at the next one are predicted by the secant in log beta, the
 * fixed point is found from there by the coupled iteration, and the step is kept if it ends near the prediction and
 * the fold margin has neither collapsed nor jumped; else it is halved. A step that still fails at the shortest length
 * that rounding allows is a transition:
 *   fold       the branch ends; the iteration has fallen to another, which is followed
 *   pitchfork  the point still exists but is not a minimum: a symmetry holds the iteration. The branch on
 *              which the lowest of the memories that separate gains is followed
 *   winner     the leader changes, by crossing scores or at one of the others
 * On large banks, where a margin costs more than a recall, steps are judged by the prediction alone. With
 * entmax the margin jumps wherever a memory joins or leaves the support, and only its sign counts. */
#include "memory/engines.h"
#include "memory/results.h"

#include "num/entmax.h"
#include "num/vec.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

const char *const cgam_transition_words[] = {"fold", "pitchfork", "winner", NULL};

enum {
    STEPS_MAX = 20000,
    HASTE = 30,      /* iterations before Newton is tried */
    PATIENCE = 1000, /* iterations of a step; a slower one may have passed the end of a branch */
    LOOSE_ITER = 100000, /* for solves that must converge */
    SHORT_MIN = 4
};
static const double LOG_STEP = 0.25, LOG_STEP_LARGE = 0.7, /* the longest step, in log beta */
    LOG_SHORT = 1e-7,                                      /* at which a transition is reported, */
    LOG_CROSSING = 1e-3,                                   /* and at which two scores cross */
    NEAR = 0.05, NEAR_LARGE = 0.25,                        /* max |p - predicted| of a kept step */
    LOOSE = 1e-10, PART = 0.02, FALL = 1e-3; /* past a fold, where the iteration no longer crawls */

typedef struct walk {
    const cgam_recall *plan;
    cgam_settled *m;
    cgam_anneal *out;
    int64_t n, capacity, marks; /* memories; capacities for points and transitions */
    bool large;
    double *r[2];   /* [n] scores at the last point and at the previous one, */
    double at[2];   /* and log beta there; at[1] NAN: no previous point */
    double *start;  /* [n] */
    double *near;   /* [7, n] on small banks, else NULL: a start, and scratch for Newton */
    double *pi;     /* [n] slopes of p, see cgam_recall_slopes */
    double margin;  /* at the last point; NAN: unknown */
    double ends[2]; /* first beta of the branch, and the requested one */
    int64_t winner;
} walk;

void cgam_anneal_free(cgam_env *env, cgam_anneal *path)
{
    cgam_free(env, path->path);
    cgam_free(env, path->transition);
    *path = (cgam_anneal){0};
}

/* Grows *list to hold one more entry after the first `count`. */
static cgam_status grow_list(cgam_env *env, void **list, size_t size, int64_t count,
                             int64_t *capacity)
{
    if (count < *capacity) return CGAM_OK;
    int64_t more = *capacity ? 2 * *capacity : 32;
    void *bigger = cgam_zalloc(env, (size_t)more, size);
    if (!bigger) return cgam_fail_nomem(env, "a path of annealing");
    if (count > 0) memcpy(bigger, *list, (size_t)count * size);
    cgam_free(env, *list);
    *list = bigger;
    *capacity = more;
    return CGAM_OK;
}

static cgam_status add_transition(walk *w, double log_beta, cgam_transition_kind kind)
{
    void *list = w->out->transition;
    cgam_status status = grow_list(w->plan->bank->env, &list, sizeof *w->out->transition,
                                   w->out->transitions, &w->marks);
    w->out->transition = list;
    if (status == CGAM_OK)
        w->out->transition[w->out->transitions++] = (cgam_transition){exp(log_beta), kind};
    return status;
}

/* Finds the leader: the previous one, or the lowest index, as long as rounding could have put another first. */
static cgam_status find_leader(const walk *w, int64_t *out)
{
    const double *r = w->m->r;
    const cgam_rows *Z = &w->plan->bank->Z;
    double own = -INFINITY, top = cgam_vec_max(Z, r), tie = top - 1e-11 * (1 + fabs(top)), first;
    *out = w->winner;
    cgam_status status = cgam_rows_status(Z);
    if (w->out->points > 0 && status == CGAM_OK) status = cgam_vec_pick(Z, r, 1, &w->winner, &own);
    if (status != CGAM_OK || own >= tie) return status;
    CGAM_REDUCE(Z, i, CGAM_MIN(first)) {
        if (r[i] >= tie) first = fmin(first, (double)i);
    }
    *out = isfinite(first) ? (int64_t)first : 0;
    return cgam_rows_status(Z);
}

static double moved_by(const walk *w)
{
    return cgam_vec_max_diff(&w->plan->bank->Z, w->m->p, w->start);
}

/* Solves for the fixed point at beta from `start` (NULL: the usual start of a recall), in at most `most` iterations.
 * most 0: uses the plan's tolerance and limit. */
static cgam_status solve_at(walk *w, double beta, const double *start, int64_t most)
{
    cgam_recall at = *w->plan; /* no other part of a plan depends on beta */
    at.opts.beta = beta;
    if (most > 0) at.opts.tol = fmax(at.opts.tol, LOOSE);
    if (most > 0) at.opts.max_iter = most;
    return cgam_coupled_solve(&at, 1, w->m, start);
}

/* The fold margin at m: an eigenvalue on small banks, else the free lower bound. */
static cgam_status margin_at(const walk *w, double beta, double *margin)
{
    const cgam_recall_opts *o = &w->plan->opts;
    beta *= cgam_recall_slopes(w->plan, w->m->p, w->pi);
    if (!w->large) return cgam_fold_margin(w->plan->gate, beta, o->lambda, w->pi, margin, NULL);
    const cgam_rows *Z = &w->plan->bank->Z;
    double most; /* as cgam_softmax_norm_bound has it */
    CGAM_REDUCE(Z, i, CGAM_MAX(most)) most = fmax(most, w->pi[i] * (1 - w->pi[i]));
    *margin = w->plan->gate->eta_least - o->lambda * o->lambda * beta * (2 * fmax(most, 0));
    return cgam_rows_status(Z);
}

/* Returns beta; exact at both ends. */
static double beta_at(const walk *w, double log_beta)
{
    for (int k = 0; k < 2; k++)
        if (log_beta == log(w->ends[k])) return w->ends[k];
    return exp(log_beta);
}

/* Appends m to the path as its last point. */
static cgam_status add_point(walk *w, double log_beta, double margin)
{
    void *list = w->out->path;
    cgam_status status =
        grow_list(w->plan->bank->env, &list, sizeof *w->out->path, w->out->points, &w->capacity);
    w->out->path = list;
    if (status != CGAM_OK) return status;
    double *swap = w->r[1];
    w->r[1] = w->r[0];
    w->at[1] = w->at[0];
    w->r[0] = swap;
    w->at[0] = log_beta;
    cgam_vec_copy(&w->plan->bank->Z, w->r[0], w->m->r);
    double p;
    status = find_leader(w, &w->winner);
    if (status == CGAM_OK) status = cgam_vec_pick(&w->plan->bank->Z, w->m->p, 1, &w->winner, &p);
    if (status != CGAM_OK) return status;
    w->margin = margin;
    w->out->path[w->out->points++] = (cgam_anneal_point){.beta = beta_at(w, log_beta),
                                                         .energy = w->m->trace.energy_end,
                                                         .winner = w->winner,
                                                         .p = p,
                                                         .fold_margin = margin};
    return CGAM_OK;
}

/* w->start = act(beta r) of the scores that the secant predicts. */
static cgam_status predict_start(walk *w, double log_beta)
{
    double ahead = isnan(w->at[1]) ? 0 : (log_beta - w->at[0]) / (w->at[0] - w->at[1]);
    const cgam_rows *Z = &w->plan->bank->Z;
    double beta = exp(log_beta), *x = w->start, top, sum;
    CGAM_REDUCE(Z, i, CGAM_MAX(top)) {
        x[i] = w->r[0][i] + (ahead > 0 ? ahead * (w->r[0][i] - w->r[1][i]) : 0);
        top = fmax(top, x[i]);
    }
    if (cgam_rows_status(Z) != CGAM_OK) return cgam_rows_status(Z);
    if (cgam_recall_sparse(w->plan)) {
        cgam_entmax e = cgam_entmax_rows(w->plan->bank->env, Z, w->plan->opts.entmax, beta, x);
        CGAM_EACH_ROW(Z, i) x[i] = cgam_entmax_weight(&e, x[i]);
        return CGAM_OK;
    }
    CGAM_REDUCE(Z, i, CGAM_SUM(sum)) sum += x[i] = exp(beta * (x[i] - top));
    CGAM_EACH_ROW(Z, i) x[i] /= sum;
    return cgam_rows_status(Z);
}

/* The corrector. The plain iteration comes first, since Newton does not preserve symmetries to the bit. If it is slow
 * - it crawls where a branch is steep or about to end - Newton starts from the prediction, and its point is accepted
 * if it is a minimum near the prediction. Otherwise the iteration continues to the end. */
static cgam_status correct_point(walk *w, double beta)
{
    cgam_status status = solve_at(w, beta, w->start, w->near ? HASTE : PATIENCE);
    if (status != CGAM_OK || !w->near || w->m->trace.end != CGAM_END_MAX_ITER) return status;
    cgam_recall at = *w->plan;
    double residual, length, margin = 0;
    at.opts.beta = beta;
    status = cgam_coupled_polish(&at, w->m, w->start, cgam_vec_next(&w->plan->bank->Z, w->near),
                                 &residual, &length);
    if (status != CGAM_OK) return status;
    double moved = moved_by(w);
    cgam_vec_copy(&w->plan->bank->Z, w->near, w->m->p);
    bool beside = residual <= LOOSE && moved <= NEAR;
    if (beside) status = margin_at(w, beta, &margin);
    if (status != CGAM_OK) return status;
    beside = beside && margin > 0;
    return solve_at(w, beta, beside ? w->near : w->start, PATIENCE);
}

/* Where two leaders cross between the last point and m, with r linear in log beta. */
static double find_crossing(const walk *w, double log_beta, int64_t now)
{
    const cgam_rows *Z = &w->plan->bank->Z;
    int64_t two[2] = {w->winner, now};
    double then[2], here[2];
    if (cgam_vec_pick(Z, w->r[0], 2, two, then) != CGAM_OK ||
        cgam_vec_pick(Z, w->m->r, 2, two, here) != CGAM_OK)
        return NAN;
    double before = then[0] - then[1], after = here[0] - here[1];
    double share = before - after > 0 ? before / (before - after) : 0.5;
    return w->at[0] + fmin(fmax(share, 0), 1) * (log_beta - w->at[0]);
}

/* Continues past a pitchfork: from the symmetric point, tilted towards the lowest memory that the unstable direction
 * moves, at a beta large enough for the branches to have separated. */
static cgam_status leave_pitchfork(walk *w, double log_end, double *log_beta, double *margin)
{
    const cgam_recall_opts *o = &w->plan->opts;
    cgam_env *env = w->plan->bank->env;
    const cgam_rows *Z = &w->plan->bank->Z;
    double beta = exp(*log_beta) * cgam_recall_slopes(w->plan, w->m->p, w->pi);
    cgam_lowest low = {0};
    cgam_dplr_spec spec = cgam_gate_hessian(w->plan->gate, 1, o->lambda * o->lambda * beta, w->pi);
    cgam_status status = cgam_dplr_lowest(env, &spec, 1e-10, true, &low);
    int64_t lowest = 0;
    if (status == CGAM_OK) {
        double mean = cgam_vec_dot(Z, w->pi, low.vector), most, first;
        CGAM_REDUCE(Z, i, CGAM_MAX(most)) {
            most = fmax(most, fabs(w->pi[i] * (low.vector[i] - mean)));
        }
        CGAM_REDUCE(Z, i, CGAM_MIN(first)) {
            if (fabs(w->pi[i] * (low.vector[i] - mean)) > 1e-6 * fmax(most, 0))
                first = fmin(first, (double)i);
        }
        status = cgam_rows_status(Z);
        lowest = isfinite(first) ? (int64_t)first : w->n - 1;
    }
    cgam_vec_free(env, Z, low.vector);
    if (status != CGAM_OK) return status;
    double before = *log_beta;
    *log_beta = fmin(log_end, before + PART);
    double tilt = fmin(fmax(sqrt(*log_beta - before), 1e-4), 0.3);
    CGAM_EACH_ROW(Z, i) w->start[i] = (1 - tilt) * w->m->p[i] + (i == lowest ? tilt : 0);
    status = solve_at(w, exp(*log_beta), w->start, LOOSE_ITER);
    return status == CGAM_OK ? margin_at(w, exp(*log_beta), margin) : status;
}

/* Continues past a fold that the iteration still crawls through, from its current point. */
static cgam_status leave_fold(walk *w, double log_end, double *log_beta, double *margin)
{
    *log_beta = fmin(log_end, *log_beta + FALL);
    cgam_vec_copy(&w->plan->bank->Z, w->start, w->m->p);
    cgam_status status = solve_at(w, exp(*log_beta), w->start, LOOSE_ITER);
    return status == CGAM_OK ? margin_at(w, exp(*log_beta), margin) : status;
}

/* Handles a step that failed at the shortest length: finds out what happened to the branch. */
static cgam_status pass_transition(walk *w, double log_end, double log_beta, double moved,
                                   double margin)
{
    bool ended = w->m->trace.end == CGAM_END_CONVERGED;
    bool symmetric = ended && !w->large && margin <= 0 && moved <= NEAR;
    int64_t before = w->winner;
    cgam_status status =
        add_transition(w, log_beta, symmetric ? CGAM_TRANSITION_PITCHFORK : CGAM_TRANSITION_FOLD);
    double from = log_beta;
    if (status == CGAM_OK && symmetric) status = leave_pitchfork(w, log_end, &log_beta, &margin);
    if (status == CGAM_OK && !ended) status = leave_fold(w, log_end, &log_beta, &margin);
    if (status == CGAM_OK) status = add_point(w, log_beta, margin);
    w->at[1] = NAN; /* no secant across a transition */
    if (status == CGAM_OK && w->winner != before)
        status = add_transition(w, from, CGAM_TRANSITION_WINNER);
    return status;
}

static cgam_status follow_branch(walk *w, double log_end)
{
    double longest = w->large ? LOG_STEP_LARGE : LOG_STEP, step = longest, next;
    double shortest = w->large ? longest / (1 << SHORT_MIN) : LOG_SHORT;
    cgam_status status = CGAM_OK;
    for (int k = 0; w->at[0] < log_end && k < STEPS_MAX && status == CGAM_OK; k++) {
        double to = w->at[0] + step >= log_end ? log_end : w->at[0] + step;
        double beta = beta_at(w, to);
        int64_t now, before = w->winner;
        status = predict_start(w, to);
        if (status == CGAM_OK) status = correct_point(w, beta);
        if (status == CGAM_OK) status = margin_at(w, beta, &next);
        if (status == CGAM_OK) status = find_leader(w, &now);
        if (status != CGAM_OK) break;
        double moved = moved_by(w);
        bool near =
            moved <= (w->large ? NEAR_LARGE : NEAR) && w->m->trace.end == CGAM_END_CONVERGED;
        bool brief = !(to - w->at[0] > shortest);
        bool steady =
            w->large ||
            (next > 0 && (next > 0.3 * w->margin || brief || cgam_recall_sparse(w->plan)));
        bool crosses = now != before && !w->large && to - w->at[0] > LOG_CROSSING;
        if (near && steady && !crosses) {
            double where = now != before ? find_crossing(w, to, now) : 0;
            status = add_point(w, to, next);
            if (status == CGAM_OK && now != before)
                status = add_transition(w, where, CGAM_TRANSITION_WINNER);
            step = fmin(1.5 * step, longest);
        } else if (!brief) {
            step = 0.5 * (to - w->at[0]);
        } else {
            status = pass_transition(w, log_end, to, moved, next);
            step = longest / 16;
        }
    }
    return status;
}

/* The first beta of the branch: opts.beta_start if set, else half the bound of uniqueness, at most the requested
 * beta. */
static double first_beta(const cgam_recall *plan)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->eta_least;
    double safe = 0.5 * eta / (cgam_recall_lipschitz(plan) * o->lambda * o->lambda);
    if (!isnan(o->beta_start)) return o->beta_start;
    return safe > 0 && safe < o->beta ? safe : o->beta;
}

cgam_status cgam_anneal_solve(const cgam_recall *plan, cgam_settled *m, cgam_anneal *out)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_anneal path = {0};
    walk w = {.plan = plan,
              .m = m,
              .out = &path,
              .n = Z->n,
              .large = plan->can.matrices || !plan->gate->A,
              .at = {NAN, NAN},
              .margin = NAN};
    int64_t vectors = w.large ? 4 : 11, n = cgam_vec_size(Z);
    double *work = cgam_vec_new(env, Z, vectors), margin = NAN;
    double first = first_beta(plan);
    cgam_status status = work ? CGAM_OK : cgam_fail_nomem(env, "annealing");
    w.ends[0] = first;
    w.ends[1] = plan->opts.beta;
    w.r[0] = work;
    w.r[1] = work + n;
    w.start = work + 2 * n;
    w.pi = work + 3 * n;
    if (!w.large) w.near = work + 4 * n;
    if (status == CGAM_OK) status = solve_at(&w, first, NULL, LOOSE_ITER);
    if (status == CGAM_OK) status = margin_at(&w, first, &margin);
    if (status == CGAM_OK) status = add_point(&w, log(first), margin);
    if (status == CGAM_OK) status = follow_branch(&w, log(plan->opts.beta));
    if (status == CGAM_OK) { /* the end, with the books of a recall */
        cgam_vec_copy(Z, w.start, m->p);
        status = solve_at(&w, plan->opts.beta, w.start, 0);
    }
    if (status == CGAM_OK && path.points > 0) {
        cgam_anneal_point *last = path.path + path.points - 1;
        last->energy = m->trace.energy_end;
        status = cgam_vec_pick(Z, m->p, 1, &last->winner, &last->p);
    }
    cgam_vec_free(env, Z, work);
    if (status == CGAM_OK && out) *out = path;
    else cgam_anneal_free(env, &path);
    return status;
}
