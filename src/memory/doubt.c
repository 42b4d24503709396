/* doubt.c: what rounding may have done to one query, measured on the vectors it left.
 *
 * Nothing is asked of how they were computed - streamed, refined, in f32 at first: the s that is
 * returned is put back into the equations, in double, and what the equations say of it is bounded
 * with the rounding of saying so. zeta, |q| and |v| are norms, v = P c.
 *
 *   b_i = <zeta_i, q>         off by gamma |zeta| |q|               sums of d products
 *   u_i = <zeta_i, v>, W_i c  off by gamma |zeta| (|v| + |P| |c|)
 *   r_i against b_i + lambda s_i: the difference as it is, and 3 u of its terms
 *   p_i = e_i / sum           off by (4 |x_i| + sum_roundings) u of itself,  x_i = beta (r_i - max r)
 *   A s - u - lambda p        num/dplr_proof.c for A s
 *
 * Scores off by at most e move each log p_i by 2 beta e, and p by at most beta |e|_2 / 2. A row whose
 * score is so far below the best that all its doubt leaves it under e^-NOTHING of that counts for
 * nothing, however long it is and however badly its score is known: N such rows weigh less than
 * anything a double can say of the others. */
#include "base/blas.h"
#include "memory/recall.h"

#include <math.h>
#include <string.h>

enum { NOTHING = 740 };

/* Roundings of exp, of the sum of n weights and of a share. Long sums are made of blocks of at most 512
 * rows, or of tiles of 8 and more in 64 chunks, each of which may change what they are relative to. */
static double sum_roundings(int64_t n) { return n < 608 ? (double)n + 32 : 640 + (double)n / 64; }

static double norm(int64_t n, const double *x)
{
    return cgam_vec_norm(n, x) * (1 + (4 * (double)n + 16) * CGAM_U);
}

/* |v| and what rounding did to it, or the same of W's largest row times c. */
static double context_size(const cgam_recall *plan, const double *c)
{
    double size = c ? norm(plan->d_c, c) : 0;
    return plan->opts.P || plan->opts.W ? size * plan->weights_size : size;
}

/* |zeta_i| from above, and the largest of them. */
static double length(const cgam_recall *plan, int64_t i)
{
    return sqrt(plan->bank->norm2[i]) * (1 + cgam_norm_error(plan->bank->Z.d));
}

static double longest(const cgam_recall *plan)
{
    return plan->bank->info.norm_max * (1 + cgam_norm_error(plan->bank->Z.d));
}

/* gamma: what b_i is off by over |zeta_i| |q|, and u_i over |zeta_i| |v|. */
static double product_error(const cgam_recall *plan)
{
    double terms = (double)plan->bank->Z.d + (plan->opts.P || plan->opts.W ? (double)plan->d_c : 0);
    return cgam_gamma(2 * terms + 16) + (plan->bank->scale ? cgam_norm_error((int64_t)terms) : 0);
}

double cgam_doubt_scores(const cgam_recall *plan, const double *q, const double *c)
{
    double gates = plan->opts.lambda * context_size(plan, c) * (plan->opts.W ? 1 : longest(plan));
    double size = longest(plan) * norm(plan->bank->Z.d, q) + gates;
    return product_error(plan) * size * CGAM_SLACK + 64 * CGAM_TINY;
}

/* What b + lambda s may be off by at row i, and r from it; 0 in a flow, which has its own r. */
static double row_doubt(const cgam_recall *plan, const cgam_query *m, int64_t i, double product)
{
    double lambda = plan->opts.lambda;
    if (!m->q) return 0;
    return fabs(m->r[i] - (m->b[i] + lambda * m->s[i])) +
           3 * CGAM_U * (fabs(m->b[i]) + lambda * fabs(m->s[i])) + product * length(plan, i);
}

/* Does row i weigh anything, its score being off by `off`? */
static bool counts(const cgam_recall *plan, const cgam_query *m, int64_t i, double off)
{
    return !(plan->opts.beta * (m->top - m->r[i] - 4 * off) * (1 - 0x1p-20) > NOTHING);
}

/* A s - u - lambda p, or A s - u. At alpha = 0 rows are on their own, and some count for nothing. */
static cgam_status residual(const cgam_recall *plan, const cgam_query *m, bool gates, double *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d;
    double lambda = gates ? 0 : plan->opts.lambda, off, total = 0, terms = 0;
    double *y = cgam_zalloc(env, (size_t)(2 * n + d), sizeof *y), *u = y + n, *v = u + n;
    if (!y) return cgam_fail_nomem(env, "a residual");
    bool apart = plan->gate->a == 0;
    cgam_status status = CGAM_OK;
    if (apart) {
        memcpy(y, m->s, (size_t)n * sizeof *y);
        off = 0;
    } else {
        cgam_dplr_spec A = cgam_gate_hessian(plan->gate, 1, 0, NULL);
        status = cgam_dplr_apply_bounded(env, &A, plan->gate->A, m->s, y, &off);
    }
    if (m->c && plan->opts.W) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)plan->d_c, 1, plan->opts.W,
                    (int)plan->d_c, m->c, 1, 0, u, 1);
    } else if (m->c && status == CGAM_OK) {
        cgam_recall_project(plan, m->c, v);
        status = cgam_bank_score(plan->bank, v, u);
    }
    double product = product_error(plan), wide = m->c ? product * context_size(plan, m->c) : 0;
    product *= norm(d, m->q);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        double p = lambda > 0 ? lambda * m->p[i] : 0, g = y[i] - u[i] - p;
        double e = wide * (plan->opts.W ? 1 : length(plan, i)) +
                   4 * CGAM_U * (fabs(y[i]) + fabs(u[i]) + p);
        double doubt = row_doubt(plan, m, i, product) + plan->opts.lambda * (fabs(g) + e);
        if (apart && !counts(plan, m, i, doubt)) continue;
        total += g * g;
        terms += e * e;
    }
    *out = (sqrt(total) + sqrt(terms) + off) * (1 + 0x1p-18) + 64 * (double)n * CGAM_TINY;
    cgam_free(env, y);
    return status;
}

cgam_status cgam_doubt_measure(const cgam_recall *plan, const cgam_query *m, bool measure,
                               bool gates, cgam_doubt *out)
{
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, lambda = plan->opts.lambda, apart = 0, squares = 0, span = 0;
    double tilt = 0, most = 0;
    *out = (cgam_doubt){.gradient = INFINITY};
    double product = m->q ? product_error(plan) * norm(plan->bank->Z.d, m->q) : 0;
    for (int64_t i = 0; i < n; i++) {
        double x = beta * (m->top - m->r[i]), off = row_doubt(plan, m, i, product);
        if (!counts(plan, m, i, off)) continue;
        apart = fmax(apart, off);
        squares += off * off;
        tilt += m->p[i] * fabs(x);
        most += m->p[i] * m->p[i];
        span = fmax(span, fabs(x));
    }
    double sums = sum_roundings(n);
    out->scores = apart * CGAM_SLACK + 4 * CGAM_TINY;
    out->sum = sums * CGAM_U * CGAM_SLACK;
    double moved = 2 * beta * out->scores;
    out->weights = (moved + 2 * (4 * span + sums) * CGAM_U) * (1 + 0x1p-18);
    out->p = fmin(0.5 * beta * sqrt(squares), sqrt(most) * expm1(fmin(moved, 1))) * CGAM_SLACK +
             CGAM_U * (sums + 4 * tilt) * CGAM_SLACK;
    if (!(moved <= 1)) out->p = sqrt(2);
    if (!measure || !m->q) return CGAM_OK;
    cgam_status status = residual(plan, m, gates, &out->gradient);
    if (!gates) out->gradient += lambda * out->p * CGAM_SLACK;
    if (!(out->gradient >= 0)) out->gradient = INFINITY;
    return status;
}
