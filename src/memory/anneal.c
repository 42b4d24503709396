/* anneal.c: mode anneal - the branch of fixed points from small beta, where there is one, to the beta asked
 * for (docs/theorems/variational.md, statement 6).
 *
 * beta goes up by a factor. The scores r at the next one are predicted by the secant in log beta, the
 * fixed point is found from there by the coupled iteration, and the step is kept where it ends near the
 * prediction and the fold margin has neither collapsed nor jumped; else it is halved. What is left when
 * steps are as short as can be told is a transition:
 *   fold       the branch ends; the iteration has fallen to another, which is followed
 *   pitchfork  the point is still there but no minimum: a symmetry holds it. The branch on which the lowest
 *              of the memories that part gains is followed
 *   winner     the leader changes, by crossing scores or at one of the others
 * On large banks, where a margin costs more than a recall, steps are judged by the prediction alone. */
#include "memory/recall.h"

#include "base/names.h"

#include <cgam/theory.h>
#include <math.h>
#include <string.h>

CGAM_NAMES(cgam_transition_kind, cgam_transition_kind, "fold", "pitchfork", "winner")

enum { STEPS_MAX = 20000, LOOSE_ITER = 100000, SHORT_MIN = 4 };
static const double LOG_STEP = 0.25, LOG_STEP_LARGE = 0.7, /* the longest step, in log beta */
    LOG_SHORT = 1e-7,                                      /* where a transition is told, */
    LOG_CROSSING = 1e-3,                                   /* and where two scores cross */
    NEAR = 0.05, NEAR_LARGE = 0.25,                        /* max |p - predicted| of a kept step */
    LOOSE = 1e-10, PART = 0.02;

typedef struct walk {
    const cgam_recall *plan;
    cgam_query *m;
    cgam_anneal *out;
    int64_t n, room, marks; /* points and transitions that there is room for */
    bool large;
    double *r[2];  /* [n] scores at the last point and at the one before, */
    double at[2];  /* and log beta there; at[1] NAN: none */
    double *start; /* [n] */
    double margin; /* at the last point; NAN: not known */
    int64_t winner;
} walk;

void cgam_anneal_free(cgam_env *env, cgam_anneal *path)
{
    cgam_free(env, path->path);
    cgam_free(env, path->transition);
    *path = (cgam_anneal){0};
}

/* Room for one more entry of *list, which has `count`. */
static cgam_status one_more(cgam_env *env, void **list, size_t size, int64_t count, int64_t *room)
{
    if (count < *room) return CGAM_OK;
    int64_t more = *room ? 2 * *room : 32;
    void *bigger = cgam_zalloc(env, (size_t)more, size);
    if (!bigger) return cgam_fail_nomem(env, "a path of annealing");
    if (count > 0) memcpy(bigger, *list, (size_t)count * size);
    cgam_free(env, *list);
    *list = bigger;
    *room = more;
    return CGAM_OK;
}

static cgam_status mark(walk *w, double log_beta, cgam_transition_kind kind)
{
    void *list = w->out->transition;
    cgam_status status = one_more(w->plan->bank->env, &list, sizeof *w->out->transition,
                                  w->out->transitions, &w->marks);
    w->out->transition = list;
    if (status == CGAM_OK)
        w->out->transition[w->out->transitions++] = (cgam_transition){exp(log_beta), kind};
    return status;
}

/* Who leads: the one that did, or the lowest index, as long as rounding could have put another ahead. */
static int64_t leader(const walk *w)
{
    const double *r = w->m->r;
    double top = -INFINITY;
    for (int64_t i = 0; i < w->n; i++) top = fmax(top, r[i]);
    double tie = top - 1e-11 * (1 + fabs(top));
    if (w->out->points > 0 && r[w->winner] >= tie) return w->winner;
    for (int64_t i = 0; i < w->n; i++)
        if (r[i] >= tie) return i;
    return 0;
}

/* The fixed point at beta from w->start, NULL = where a recall starts. last: to the plan's tolerance. */
static cgam_status solve(walk *w, double beta, const double *start, bool last)
{
    cgam_recall at = *w->plan; /* nothing in a plan but its options knows beta */
    at.opts.beta = beta;
    if (!last) at.opts.tol = fmax(at.opts.tol, LOOSE);
    if (!last) at.opts.max_iter = LOOSE_ITER;
    return cgam_coupled_solve(&at, 1, w->m, start);
}

/* The fold margin where m is: an eigenvalue on small banks, else its free lower bound. */
static cgam_status margin_at(const walk *w, double beta, double *margin)
{
    const cgam_recall_opts *o = &w->plan->opts;
    if (!w->large) return cgam_fold_margin(w->plan->gate, beta, o->lambda, w->m->p, margin, NULL);
    *margin = w->plan->gate->info.eta_min -
              o->lambda * o->lambda * beta * cgam_softmax_norm_bound(w->n, w->m->p);
    return CGAM_OK;
}

/* Keeps m as the last point of the path. */
static cgam_status keep(walk *w, double log_beta, double margin)
{
    void *list = w->out->path;
    cgam_status status =
        one_more(w->plan->bank->env, &list, sizeof *w->out->path, w->out->points, &w->room);
    w->out->path = list;
    if (status != CGAM_OK) return status;
    double *swap = w->r[1];
    w->r[1] = w->r[0];
    w->at[1] = w->at[0];
    w->r[0] = swap;
    w->at[0] = log_beta;
    memcpy(w->r[0], w->m->r, (size_t)w->n * sizeof *swap);
    w->winner = leader(w);
    w->margin = margin;
    w->out->path[w->out->points++] = (cgam_anneal_point){.beta = exp(log_beta),
                                                         .energy = w->m->energy_end,
                                                         .winner = w->winner,
                                                         .p = w->m->p[w->winner],
                                                         .fold_margin = margin};
    return CGAM_OK;
}

/* w->start = softmax(beta r) of the scores that the secant predicts. */
static void predict(walk *w, double log_beta)
{
    double ahead = isnan(w->at[1]) ? 0 : (log_beta - w->at[0]) / (w->at[0] - w->at[1]);
    double top = -INFINITY, sum = 0, beta = exp(log_beta);
    for (int64_t i = 0; i < w->n; i++) {
        w->start[i] = w->r[0][i] + (ahead > 0 ? ahead * (w->r[0][i] - w->r[1][i]) : 0);
        top = fmax(top, w->start[i]);
    }
    for (int64_t i = 0; i < w->n; i++) sum += w->start[i] = exp(beta * (w->start[i] - top));
    for (int64_t i = 0; i < w->n; i++) w->start[i] /= sum;
}

/* Where two leaders cross between the last point and m: r is taken as linear in log beta. */
static double crossing(const walk *w, double log_beta, int64_t now)
{
    double before = w->r[0][w->winner] - w->r[0][now], after = w->m->r[w->winner] - w->m->r[now];
    double share = before - after > 0 ? before / (before - after) : 0.5;
    return w->at[0] + fmin(fmax(share, 0), 1) * (log_beta - w->at[0]);
}

/* Past a pitchfork: from the symmetric point, tilted towards the lowest memory that the unstable
 * direction moves, at a beta far enough above for the branches to have parted. */
static cgam_status part(walk *w, double log_end, double *log_beta, double *margin)
{
    const cgam_recall_opts *o = &w->plan->opts;
    cgam_env *env = w->plan->bank->env;
    double beta = exp(*log_beta), most = 0, mean = 0;
    cgam_lowest low = {0};
    cgam_dplr_spec spec =
        cgam_gate_hessian(w->plan->gate, 1, o->lambda * o->lambda * beta, w->m->p);
    cgam_status status = cgam_dplr_lowest(env, &spec, 1e-10, true, &low);
    int64_t lowest = 0;
    if (status == CGAM_OK) {
        mean = cgam_vec_dot(w->n, w->m->p, low.vector);
        for (int64_t i = 0; i < w->n; i++)
            most = fmax(most, fabs(w->m->p[i] * (low.vector[i] - mean)));
        while (!(fabs(w->m->p[lowest] * (low.vector[lowest] - mean)) > 1e-6 * most) &&
               lowest + 1 < w->n)
            lowest++;
    }
    cgam_free(env, low.vector);
    if (status != CGAM_OK) return status;
    double before = *log_beta;
    *log_beta = fmin(log_end, before + PART);
    double tilt = fmin(fmax(sqrt(*log_beta - before), 1e-4), 0.3);
    for (int64_t i = 0; i < w->n; i++)
        w->start[i] = (1 - tilt) * w->m->p[i] + (i == lowest ? tilt : 0);
    status = solve(w, exp(*log_beta), w->start, false);
    return status == CGAM_OK ? margin_at(w, exp(*log_beta), margin) : status;
}

/* A step that could not be kept however short: what became of the branch. */
static cgam_status turn(walk *w, double log_end, double log_beta, double moved, double margin)
{
    bool symmetric = !w->large && margin <= 0 && moved <= NEAR;
    int64_t before = w->winner;
    cgam_status status =
        mark(w, log_beta, symmetric ? CGAM_TRANSITION_PITCHFORK : CGAM_TRANSITION_FOLD);
    double from = log_beta;
    if (status == CGAM_OK && symmetric) status = part(w, log_end, &log_beta, &margin);
    if (status == CGAM_OK) status = keep(w, log_beta, margin);
    w->at[1] = NAN; /* no secant across a transition */
    if (status == CGAM_OK && w->winner != before) status = mark(w, from, CGAM_TRANSITION_WINNER);
    return status;
}

static cgam_status follow(walk *w, double log_end)
{
    double longest = w->large ? LOG_STEP_LARGE : LOG_STEP, step = longest, next;
    double shortest = w->large ? longest / (1 << SHORT_MIN) : LOG_SHORT;
    cgam_status status = CGAM_OK;
    for (int k = 0; w->at[0] < log_end && k < STEPS_MAX && status == CGAM_OK; k++) {
        double to = w->at[0] + step >= log_end ? log_end : w->at[0] + step, moved = 0;
        predict(w, to);
        status = solve(w, exp(to), w->start, false);
        if (status == CGAM_OK) status = margin_at(w, exp(to), &next);
        if (status != CGAM_OK) break;
        for (int64_t i = 0; i < w->n; i++) moved = fmax(moved, fabs(w->m->p[i] - w->start[i]));
        bool near = moved <= (w->large ? NEAR_LARGE : NEAR) && w->m->end != CGAM_END_DIVERGED;
        bool brief = !(to - w->at[0] > shortest);
        bool steady = w->large || (next > 0 && (next > 0.3 * w->margin || brief));
        int64_t now = leader(w), before = w->winner;
        bool crosses = now != before && !w->large && to - w->at[0] > LOG_CROSSING;
        if (near && steady && !crosses) {
            double where = now != before ? crossing(w, to, now) : 0;
            status = keep(w, to, next);
            if (status == CGAM_OK && now != before) status = mark(w, where, CGAM_TRANSITION_WINNER);
            step = fmin(1.5 * step, longest);
        } else if (!brief) {
            step = 0.5 * (to - w->at[0]);
        } else {
            status = turn(w, log_end, to, moved, next);
            step = longest / 16;
        }
    }
    return status;
}

/* Where the branch begins: within half the bound of uniqueness, as far as beta allows. */
static double first_beta(const cgam_recall *plan)
{
    const cgam_recall_opts *o = &plan->opts;
    double eta = plan->gate->info.eta_min, safe = eta / (o->lambda * o->lambda);
    if (!isnan(o->beta_start)) return o->beta_start;
    return safe > 0 && safe < o->beta ? safe : o->beta;
}

cgam_status cgam_anneal_solve(const cgam_recall *plan, cgam_query *m, cgam_anneal *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n;
    cgam_anneal path = {0};
    walk w = {.plan = plan,
              .m = m,
              .out = &path,
              .n = n,
              .large = plan->can.matrices || !plan->gate->A,
              .at = {NAN, NAN},
              .margin = NAN};
    double *room = cgam_alloc(env, (size_t)(3 * n), sizeof *room), margin = NAN;
    double first = first_beta(plan);
    cgam_status status = room ? CGAM_OK : cgam_fail_nomem(env, "annealing");
    w.r[0] = room;
    w.r[1] = room + n;
    w.start = room + 2 * n;
    if (status == CGAM_OK) status = solve(&w, first, NULL, false);
    if (status == CGAM_OK) status = margin_at(&w, first, &margin);
    if (status == CGAM_OK) status = keep(&w, log(first), margin);
    if (status == CGAM_OK) status = follow(&w, log(plan->opts.beta));
    if (status == CGAM_OK) { /* the end, with the books of a recall */
        memcpy(w.start, m->p, (size_t)n * sizeof *w.start);
        status = solve(&w, plan->opts.beta, w.start, true);
    }
    if (status == CGAM_OK && path.points > 0) path.path[path.points - 1].energy = m->energy_end;
    cgam_free(env, room);
    if (status == CGAM_OK && out) *out = path;
    else cgam_anneal_free(env, &path);
    return status;
}
