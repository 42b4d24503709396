/* gradient_solve.c: t and w of  H t = h,  w = A t,  for the queries of a group.
 *
 * Mode first: H = A. Mode coupled: H = A - kappa C with kappa = beta lambda^2 omega and C = diag pi - pi pi'. First H
 * is proved positive definite: by the margin of the recall's certificates, else by one factorisation. On small banks
 * H is factored, as in a step of Newton (newton.c). On large ones, conjugate gradients preconditioned by A solve it
 * with what the recall has factored already: A^-1 H = I - kappa A^-1 C has all but a few eigenvalues close to 1, as
 * many as memories have weight. With the product A d carried along beside each direction d, an iteration needs one
 * A^-1 and no A, and all queries of a group share its two readings of the bank. */
#include "memory/gradient.h"

#include "memory/certify.h"
#include "num/rounding.h"

#include <cgam/theory.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS_MAX = 100 };
/* Of the residual, relative, in the norm of A^-1: a tenth of the tolerance of the recall, between these. */
static const double SOLVED_LEAST = 1e-15, SOLVED_MOST = 1e-12;

static double kappa(const cgam_slope *g, int64_t k)
{
    const cgam_recall_opts *o = &g->plan->opts;
    return o->lambda * o->lambda * o->beta * g->scale[k];
}

cgam_status cgam_slope_none(cgam_slope *g, int64_t k, cgam_status status, const char *why)
{
    g->none[k] = true;
    if (g->opts->leave_out) return CGAM_OK;
    return cgam_fail(g->plan->bank->env, status, "query %lld %s", (long long)(g->from + k), why);
}

/* ---- Is H positive definite? ------------------------------------------------------------------ */
static cgam_status prove(cgam_slope *g, int64_t k)
{
    const cgam_recall *plan = g->plan;
    const cgam_recall_opts *o = &plan->opts;
    cgam_env *env = plan->bank->env;
    cgam_result *result = &g->results[k];
    const double *pi = g->pi + k * plan->bank->Z.n;
    char why[200];
    double *least = g->out->positive ? &g->out->positive[g->from + k] : NULL, margin = NAN;
    if (least) *least = NAN;
    if (result->end != CGAM_END_CONVERGED && result->end != CGAM_END_STALLED) {
        snprintf(why, sizeof why, "did not settle (%s): there is no gradient",
                 cgam_word(cgam_end_words, result->end));
        return cgam_slope_none(g, k, CGAM_E_NOT_POSITIVE, why);
    }
    bool proved = result->fold_margin_proved && result->fold_margin > 0;
    if (least && proved) *least = result->fold_margin;
    if (proved) return CGAM_OK;
    /* the margin of p, and where |p - p*| is proved, that of p* */
    double l2b = cgam_square_times(o->lambda, o->beta) * g->scale[k] * (1 + 0x1p-40), floor = 0;
    if (result->p_error_proved && !cgam_recall_sparse(plan))
        floor = cgam_widened(l2b * fmin(3 * result->p_error, 0.5), 8 * CGAM_U);
    cgam_dplr_spec spec = cgam_gate_hessian(plan->gate, 1, l2b, pi);
    cgam_status status = cgam_dplr_above(env, &spec, floor, &proved);
    if (status != CGAM_OK) return status;
    if (least && proved) *least = 0x1p-1074;
    if (proved) return CGAM_OK;
    bool known;
    status = cgam_fold_margin(plan->gate, o->beta * g->scale[k], o->lambda, pi, &margin, &known);
    if (status != CGAM_OK) return status;
    snprintf(
        why, sizeof why,
        "is at a fold, or too close to one to tell: lambda_min(A - beta lambda^2 C) is %.3g, not "
        "proved positive (p is off by up to %.1g)",
        margin, result->p_error);
    return cgam_slope_none(g, k, CGAM_E_NOT_POSITIVE, why);
}

/* ---- A^-1 of several vectors. ----------------------------------------------------------------- */
typedef struct inverse {
    const cgam_recall *plan;
    const bool *skip; /* [count], or NULL */
    int64_t count;
    bool shares;   /* passes are shared */
    double *g;     /* [count, d] */
    double *edges; /* [count, border rows] */
    const double *X;
    double *Y;
} inverse;

static cgam_status inverse_new(const cgam_recall *plan, int64_t count, inverse *out)
{
    const cgam_gate *gate = plan->gate;
    cgam_env *env = plan->bank->env;
    *out = (inverse){.plan = plan, .count = count};
    out->shares = gate->a > 0 && gate->A && !cgam_dplr_dense(gate->A) && !plan->can.refines &&
                  plan->can.matrices && !cgam_dplr_singular(gate->A);
    if (!out->shares) return CGAM_OK;
    size_t edge = (size_t)cgam_dplr_border(gate->A, NULL);
    out->g = cgam_alloc(env, (size_t)(count * plan->bank->Z.d), sizeof *out->g);
    out->edges = cgam_alloc(env, (size_t)count * edge + 1, sizeof *out->edges);
    return out->g && out->edges ? CGAM_OK : cgam_fail_nomem(env, "a solve of many gates");
}

static void inverse_free(inverse *v)
{
    cgam_free(v->plan->bank->env, v->g);
    cgam_free(v->plan->bank->env, v->edges);
}

static cgam_status solve_alone(void *arg, int64_t k)
{
    const inverse *v = arg;
    int64_t n = v->plan->bank->Z.n;
    if (v->skip && v->skip[k]) {
        memset(v->Y + k * n, 0, (size_t)n * sizeof *v->Y);
        return CGAM_OK;
    }
    return cgam_gate_solve(v->plan->gate, v->X + k * n, v->Y + k * n, NULL);
}

static void pick(const inverse *v, const int64_t *border, int64_t edge)
{
    for (int64_t k = 0; k < v->count; k++)
        for (int64_t j = 0; j < edge; j++)
            v->edges[k * edge + j] = v->X[k * v->plan->bank->Z.n + border[j]];
}

/* y_i = dinv_i (x_i - <zeta_i, t>), t from g = sum dinv_i x_i zeta_i. */
static cgam_status solve_shared(inverse *v)
{
    const cgam_recall *plan = v->plan;
    const cgam_dplr *A = plan->gate->A;
    const double *dinv = cgam_dplr_dinv(A);
    const int64_t *border;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, edge = cgam_dplr_border(A, &border);
    for (int64_t k = 0; k < v->count; k++)
        for (int64_t i = 0; i < n; i++) v->Y[k * n + i] = dinv[i] * v->X[k * n + i];
    cgam_status status = cgam_slope_sums(plan, v->count, v->Y, v->g);
    pick(v, border, edge);
    for (int64_t k = 0; k < v->count && status == CGAM_OK && !plan->small; k++)
        status = cgam_dplr_reduce(A, v->g + k * d, v->edges + k * edge, v->g + k * d,
                                  v->edges + k * edge);
    if (status == CGAM_OK && plan->small)
        status =
            cgam_dplr_inverse_reduce(plan->small, v->count, false, v->g, v->edges, v->g, v->edges);
    if (status == CGAM_OK) status = cgam_slope_scores(plan, v->count, v->g, v->Y);
    for (int64_t k = 0; k < v->count && status == CGAM_OK; k++) {
        double *y = v->Y + k * n;
        for (int64_t i = 0; i < n; i++) y[i] = dinv[i] * (v->X[k * n + i] - y[i]);
        for (int64_t j = 0; j < edge; j++) y[border[j]] = v->edges[k * edge + j];
    }
    return status;
}

static cgam_status solve_gates(inverse *v, const bool *skip, const double *X, double *Y)
{
    const cgam_bank *bank = v->plan->bank;
    v->skip = skip;
    v->X = X;
    v->Y = Y;
    if (v->plan->gate->a == 0 && Y != X) memcpy(Y, X, (size_t)(v->count * bank->Z.n) * sizeof *Y);
    if (v->plan->gate->a == 0) return CGAM_OK;
    return v->shares ? solve_shared(v) : cgam_parallel(bank->env, v->count, solve_alone, v);
}

/* ---- H. --------------------------------------------------------------------------------------- */
/* By factors of H. */
static cgam_status solve_factored(void *arg, int64_t k)
{
    cgam_slope *g = arg;
    int64_t n = g->plan->bank->Z.n;
    double *h = g->h + k * n, *t = g->t + k * n, *w = g->w + k * n, shift = kappa(g, k);
    cgam_dplr *H = NULL;
    if (g->none[k]) return CGAM_OK;
    cgam_dplr_spec spec = cgam_gate_hessian(g->plan->gate, 1, shift, g->pi + k * n);
    cgam_status status = cgam_dplr_new(g->plan->bank->env, &spec, &H);
    if (status == CGAM_OK) status = cgam_dplr_solve(H, h, t, NULL);
    cgam_dplr_free(H);
    if (status != CGAM_OK) return status;
    cgam_slope_jacobian(g, k, t, w);
    for (int64_t i = 0; i < n; i++) w[i] = h[i] + shift / g->scale[k] * w[i];
    return CGAM_OK;
}

typedef struct descent {
    cgam_slope *g;
    inverse A;
    double *R, *Y;          /* [count, n] residuals and A^-1 of them */
    double *D, *AD;         /* [count, n] directions and A times them */
    double *first, *square; /* [count] r'A^-1 r at the start and now */
    bool *done;             /* [count] */
} descent;

static double dot(const cgam_slope *g, const double *x, const double *y)
{
    return cgam_vec_dot(&g->plan->bank->Z, x, y);
}

/* A step of query k along d; w: scratch for H d. */
static void step(descent *x, int64_t k)
{
    cgam_slope *g = x->g;
    int64_t n = g->plan->bank->Z.n;
    double *d = x->D + k * n, *Ad = x->AD + k * n, *Hd = g->w + k * n, *t = g->t + k * n;
    double *r = x->R + k * n, shift = kappa(g, k) / g->scale[k];
    cgam_slope_jacobian(g, k, d, Hd);
    for (int64_t i = 0; i < n; i++) Hd[i] = Ad[i] - shift * Hd[i];
    double bend = dot(g, d, Hd);
    x->done[k] = !(bend > 0);
    if (x->done[k]) return;
    double length = x->square[k] / bend;
    for (int64_t i = 0; i < n; i++) {
        t[i] += length * d[i];
        r[i] -= length * Hd[i];
    }
}

/* The next direction of query k, from y = A^-1 r. */
static void turn(descent *x, int64_t k, bool begins)
{
    const cgam_slope *g = x->g;
    int64_t n = g->plan->bank->Z.n;
    double *d = x->D + k * n, *Ad = x->AD + k * n, *y = x->Y + k * n, *r = x->R + k * n;
    double solved = fmin(fmax(0.1 * g->plan->opts.tol, SOLVED_LEAST), SOLVED_MOST);
    double square = fmax(dot(g, r, y), 0), keep = begins ? 0 : square / x->square[k];
    if (begins) x->first[k] = square;
    x->done[k] = !(square > solved * solved * x->first[k]);
    x->square[k] = square;
    for (int64_t i = 0; i < n; i++) {
        d[i] = y[i] + keep * d[i];
        Ad[i] = r[i] + keep * Ad[i];
    }
}

/* By conjugate gradients. *left: a query did not end. */
static cgam_status solve_together(descent *x, bool *left)
{
    cgam_slope *g = x->g;
    int64_t n = g->plan->bank->Z.n, open = 1;
    size_t all = (size_t)(g->count * n);
    memset(g->t, 0, all * sizeof *g->t);
    memset(x->D, 0, all * sizeof *x->D);
    memset(x->AD, 0, all * sizeof *x->AD);
    memcpy(x->R, g->h, all * sizeof *x->R);
    memcpy(x->done, g->none, (size_t)g->count * sizeof *x->done);
    cgam_status status = solve_gates(&x->A, x->done, x->R, x->Y);
    for (int steps = 0; steps < STEPS_MAX && open > 0 && status == CGAM_OK; steps++) {
        open = 0;
        for (int64_t k = 0; k < g->count; k++) {
            if (x->done[k]) continue;
            turn(x, k, steps == 0);
            if (!x->done[k]) step(x, k);
            open += !x->done[k];
        }
        if (cgam_interrupted(g->plan->bank->env)) return CGAM_E_INTERRUPTED;
        if (open > 0) status = solve_gates(&x->A, x->done, x->R, x->Y);
    }
    *left = open > 0;
    /* w from t, and then t from w: both are then consistent to the rounding of one solve */
    for (int64_t k = 0; k < g->count && status == CGAM_OK; k++) {
        double *w = g->w + k * n;
        if (g->none[k]) continue;
        cgam_slope_jacobian(g, k, g->t + k * n, w);
        for (int64_t i = 0; i < n; i++) w[i] = g->h[k * n + i] + kappa(g, k) / g->scale[k] * w[i];
    }
    return status == CGAM_OK ? solve_gates(&x->A, g->none, g->w, g->t) : status;
}

static cgam_status solve_many(cgam_slope *g, bool *left)
{
    cgam_env *env = g->plan->bank->env;
    size_t count = (size_t)g->count, all = count * (size_t)g->plan->bank->Z.n;
    descent x = {.g = g};
    cgam_status status = inverse_new(g->plan, g->count, &x.A);
    x.R = cgam_alloc(env, 4 * all, sizeof *x.R);
    x.first = cgam_alloc(env, 2 * count, sizeof *x.first);
    x.done = cgam_alloc(env, count, sizeof *x.done);
    if (status == CGAM_OK && (!x.R || !x.first || !x.done))
        status = cgam_fail_nomem(env, "a linear system");
    if (status == CGAM_OK) {
        x.Y = x.R + all, x.D = x.Y + all, x.AD = x.D + all;
        x.square = x.first + count;
        status = solve_together(&x, left);
    }
    cgam_free_all(env, x.R, x.first, x.done);
    inverse_free(&x.A);
    return status;
}

static cgam_status solve_first(cgam_slope *g)
{
    inverse A;
    cgam_status status = inverse_new(g->plan, g->count, &A);
    memcpy(g->w, g->h, (size_t)(g->count * g->plan->bank->Z.n) * sizeof *g->w);
    if (status == CGAM_OK) status = solve_gates(&A, g->none, g->w, g->t);
    inverse_free(&A);
    return status;
}

cgam_status cgam_slope_solve(cgam_slope *g)
{
    const cgam_bank *bank = g->plan->bank;
    cgam_status status = CGAM_OK;
    int64_t n = bank->Z.n;
    if (g->plan->opts.mode == CGAM_FIRST) {
        if (g->out->positive)
            for (int64_t k = 0; k < g->count; k++) g->out->positive[g->from + k] = NAN;
        status = solve_first(g);
    } else {
        bool left = cgam_bank_small(bank);
        for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
            if (!g->none[k]) status = prove(g, k);
        if (status == CGAM_OK && !left) status = solve_many(g, &left);
        if (status == CGAM_OK && left)
            status = cgam_parallel(bank->env, g->count, solve_factored, g);
    }
    for (int64_t k = 0; k < g->count && status == CGAM_OK; k++) {
        if (!g->none[k]) continue;
        memset(g->t + k * n, 0, (size_t)n * sizeof *g->t);
        memset(g->w + k * n, 0, (size_t)n * sizeof *g->w);
    }
    return status;
}
