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

enum { NOTHING = 746 }; /* e^-NOTHING is 0 as a double */

/* Roundings of exp, of the sum of n weights and of a share. Long sums are made of blocks of at most 512
 * rows, or of tiles of 8 and more in 64 chunks, each of which may change what they are relative to. */
static double sum_roundings(int64_t n) { return n < 608 ? (double)n + 32 : 640 + (double)n / 64; }

static double norm(int64_t n, const double *x)
{
    return cgam_above(cgam_vec_norm(n, x) * (1 + (4 * (double)n + 16) * CGAM_U));
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
    return cgam_length_above(plan->bank->Z.d, plan->bank->norm2[i]);
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

/* What products that underflow may add to b_i or u_i, whose row may be normalised afterwards. */
static double underflow(const cgam_recall *plan, int64_t i)
{
    double lost = (double)(plan->bank->Z.d + plan->d_c + 64) * CGAM_TINY;
    return plan->bank->scale ? lost * (1 + plan->bank->scale[i]) : lost;
}

double cgam_doubt_scores(const cgam_recall *plan, const double *q, const double *c)
{
    double gates = plan->opts.lambda * context_size(plan, c) * (plan->opts.W ? 1 : longest(plan));
    double size = longest(plan) * norm(plan->bank->Z.d, q) + gates;
    double lost = underflow(plan, 0);
    for (int64_t i = 1; plan->bank->scale && i < plan->bank->Z.n; i++)
        lost = fmax(lost, underflow(plan, i));
    return product_error(plan) * size * CGAM_SLACK + lost;
}

bool cgam_doubt_solved(const cgam_recall *plan, const double *c)
{
    return c && plan->opts.alpha > 0 && plan->opts.lambda > 0;
}

/* dinv_i <zeta_i, x>, where x of this size is off by x_off, dinv by its own rounding, and the product by
 * that of a sum; entries of the border are off by `border`. */
static cgam_gates_off by_rows(const cgam_recall *plan, double size, double x_off, double border)
{
    double d = (double)plan->bank->Z.d, pivot = cgam_dplr_pivot_off(plan->gate->A);
    double nu = plan->bank->scale ? cgam_norm_error(plan->bank->Z.d) : 0;
    double each = x_off * (1 + pivot) + (cgam_gamma(d + 16) + nu + pivot) * size;
    each *= (1 + cgam_norm_error(plan->bank->Z.d)) * CGAM_SLACK;
    cgam_gates_off off = {plan->can.row_max * each + border, plan->can.row_norm * each + border};
    if (!(off.norm >= 0)) off = (cgam_gates_off){INFINITY, INFINITY};
    return off;
}

cgam_status cgam_doubt_range(const cgam_recall *plan, const double *c, const double *v,
                             const double *e, const double *edges, cgam_gates_off *out)
{
    double off, border, projected = plan->opts.P ? context_size(plan, c) : 0;
    projected *= cgam_gamma(2 * (double)plan->d_c + 16);
    cgam_status status = cgam_dplr_range_off(plan->gate->A, v, projected, e, edges, &off, &border);
    *out = by_rows(plan, norm(plan->bank->Z.d, e), off, border);
    return status;
}

cgam_status cgam_doubt_feedback(const cgam_recall *plan, const double *g, const double *p_border,
                                const double *t, const double *edges, cgam_gates_off *out)
{
    double n = (double)plan->bank->Z.n, off, border, pivot = cgam_dplr_pivot_off(plan->gate->A);
    double nu = plan->bank->scale ? cgam_norm_error(plan->bank->Z.d) : 0;
    /* g is a sum over all rows, sum p = 1 */
    double g_off = (cgam_gamma(n + 16) + nu + pivot) * plan->can.row_max * CGAM_SLACK;
    cgam_status status =
        cgam_dplr_reduce_off(plan->gate->A, g, g_off, p_border, t, edges, &off, &border);
    *out = by_rows(plan, norm(plan->bank->Z.d, t), off, border);
    double own = plan->can.pivot_max * (pivot + 4 * CGAM_U) * CGAM_SLACK; /* dinv p itself */
    out->most += own;
    out->norm += own;
    return status;
}

/* What b_i may be off by over |zeta_i|, for this query. */
static double query_error(const cgam_recall *plan, const cgam_query *m)
{
    return m->q ? cgam_above(product_error(plan) * norm(plan->bank->Z.d, m->q)) : 0;
}

/* What b + lambda s may be off by at row i, and r from it; 0 in a flow, which has its own r. */
static double row_doubt(const cgam_recall *plan, const cgam_query *m, int64_t i, double product)
{
    double lambda = plan->opts.lambda;
    if (!m->q) return 0;
    return fabs(m->r[i] - (m->b[i] + lambda * m->s[i])) +
           3 * CGAM_U * (fabs(m->b[i]) + lambda * fabs(m->s[i])) + product * length(plan, i) +
           underflow(plan, i);
}

/* Does row i weigh anything, its score being off by `off`? */
static bool counts(const cgam_recall *plan, const cgam_query *m, int64_t i, double off)
{
    return !(plan->opts.beta * (m->top - m->r[i] - 4 * off) * (1 - 0x1p-20) > NOTHING);
}

/* |(A s - u - lambda p)_i| in rows[n], and *out its norm; with `gates` A s - u. At alpha = 0 rows are on
 * their own, and some count for nothing. */
static cgam_status residual(const cgam_recall *plan, const cgam_query *m, bool gates, double *rows,
                            double *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d;
    double lambda = gates ? 0 : plan->opts.lambda;
    double *y = cgam_zalloc(env, (size_t)(2 * n + d), sizeof *y), *u = y + n, *v = u + n;
    if (!y) return cgam_fail_nomem(env, "a residual");
    bool apart = plan->gate->a == 0;
    cgam_status status = CGAM_OK;
    memset(rows, 0, (size_t)n * sizeof *rows);
    if (apart) {
        memcpy(y, m->s, (size_t)n * sizeof *y);
    } else {
        cgam_dplr_spec A = cgam_gate_hessian(plan->gate, 1, 0, NULL);
        status = cgam_dplr_apply_bounded(env, &A, plan->gate->A, m->s, y, rows);
    }
    if (m->c && plan->opts.W) {
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)plan->d_c, 1, plan->opts.W,
                    (int)plan->d_c, m->c, 1, 0, u, 1);
    } else if (m->c && status == CGAM_OK) {
        cgam_recall_project(plan, m->c, v);
        status = cgam_bank_score(plan->bank, v, u);
    }
    double wide = m->c ? cgam_above(product_error(plan) * context_size(plan, m->c)) : 0;
    double product = query_error(plan, m);
    wide += plan->opts.P ? (double)(plan->d_c * d) * CGAM_TINY : 0;
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        double p = lambda > 0 ? lambda * m->p[i] : 0;
        rows[i] += fabs(y[i] - u[i] - p) + wide * (plan->opts.W ? 1 : length(plan, i)) +
                   4 * CGAM_U * (fabs(y[i]) + fabs(u[i]) + p) + underflow(plan, i);
        double doubt = row_doubt(plan, m, i, product) + plan->opts.lambda * rows[i];
        y[i] = !apart || !m->q || counts(plan, m, i, doubt) ? rows[i] : 0;
    }
    *out = cgam_vec_norm(n, y) * (1 + 0x1p-18);
    cgam_free(env, y);
    return status;
}

cgam_status cgam_doubt_gates(const cgam_recall *plan, const double *c, double *s,
                             cgam_gates_off *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d;
    int64_t edge = plan->can.direct ? cgam_dplr_border(plan->gate->A, NULL) : 0;
    double *room = cgam_alloc(env, (size_t)(plan->can.direct ? 2 * d + edge : n), sizeof *room);
    cgam_status status = room ? CGAM_OK : cgam_fail_nomem(env, "a residual");
    *out = (cgam_gates_off){INFINITY, INFINITY};
    if (status == CGAM_OK && plan->can.direct) { /* by the direction that s was made with */
        cgam_recall_project(plan, c, room);
        status = cgam_dplr_range(plan->gate->A, room, room + d, room + 2 * d);
        if (status == CGAM_OK)
            status = cgam_doubt_range(plan, c, room, room + d, room + 2 * d, out);
    } else if (status == CGAM_OK) {
        cgam_query m = {.c = c, .s = s};
        status = residual(plan, &m, true, room, &out->norm);
        out->most = out->norm *= plan->gate->gain * (1 + 0x1p-18);
        if (!(out->norm >= 0)) out->most = out->norm = INFINITY;
    }
    cgam_free(env, room);
    return status;
}

/* Queries that went together: what they returned differs from s~ = A^-1 (u + lambda p') by the errors of
 * s0, of the feedback and of adding them up. The gradient at s~ is lambda (p' - softmax at s~). */
static void together(const cgam_recall *plan, const cgam_query *m, cgam_doubt *out)
{
    double lambda = plan->opts.lambda, most = 0, squares = 0, p = 0;
    if (!isfinite(m->s0_off.norm) || !isfinite(m->feedback.norm)) return;
    for (int64_t i = 0; i < plan->bank->Z.n; i++) {
        double added = CGAM_U * (2 * fabs(m->r[i]) + 8 * fabs(m->r[i] - m->a[i])) / lambda +
                       2 * CGAM_U * fabs(m->s[i]);
        most = fmax(most, added);
        squares += added * added;
        p += m->p[i] * m->p[i];
    }
    double scale = plan->opts.beta * lambda * (1 + 0x1p-18), last = m->change_norm * (1 + 0x1p-18);
    most += m->s0_off.most + lambda * m->feedback.most;
    squares = sqrt(squares) + m->s0_off.norm + lambda * m->feedback.norm;
    double factor = 2 * scale * most, near = factor <= 1 ? sqrt(p) * expm1(factor) : INFINITY;
    out->p += fmin(0.5 * scale * squares, near) * (1 + 0x1p-18);
    out->scores += lambda * most * (1 + 0x1p-18);
    out->weights += factor;
    out->step = out->scores;
    out->gradient = lambda * (last + out->p) * CGAM_SLACK;
    out->moves = 0.5 * scale * lambda * last / plan->gate->info.eta_min + out->p;
}

/* How far the map may move p, from what it may change the scores by. With y = A^-1 g
 *     |y_i| <= |g_i| + alpha |zeta_i| |Z|_F |y|,   |y| <= |g| / eta,
 * so that a row knows little of the doubt about longer ones. Softmax is (beta / 2)-Lipschitz; and memories
 * alike the winner keep the same share, whatever their score, so that p moves by no more than thrice
 * what the others have. */
static cgam_status moves(const cgam_recall *plan, const cgam_query *m, const double *rows,
                         cgam_doubt *doubt)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, winner = 0;
    double beta = plan->opts.beta, lambda = plan->opts.lambda, size = 0, rest = 0, squares = 0;
    double *off = cgam_alloc(env, (size_t)(n + 2 * d), sizeof *off);
    if (!off) return cgam_fail_nomem(env, "a bound");
    for (int64_t i = 0; i < n; i++) size += plan->bank->norm2[i];
    double all = doubt->gradient / plan->gate->info.eta_min, product = query_error(plan, m);
    double far = plan->gate->a * sqrt(size) * (1 + cgam_norm_error(d)) * all;
    for (int64_t i = 0; i < n; i++) {
        off[i] = lambda > 0 ? lambda * fmin(rows[i] + far * length(plan, i), all) : 0;
        if (m->r[i] > m->r[winner]) winner = i;
    }
    double most = off[winner] + row_doubt(plan, m, winner, product);
    bool alike = !m->c || !plan->opts.W;
    for (int64_t i = 0; i < n; i++) {
        double gap = m->r[winner] - m->r[i] - row_doubt(plan, m, i, product) - off[i] - most;
        double x = -beta * gap;
        if (!(x <= -NOTHING + 40)) {
            squares += beta * off[i] * (beta * off[i]);
            doubt->step = fmax(doubt->step, off[i] + row_doubt(plan, m, i, product));
        }
        if (i == winner || (alike && m->r[i] == m->r[winner] && m->p[i] == m->p[winner] &&
                            cgam_twins_alike(plan->bank, i, winner, off + n)))
            continue;
        rest += x < 0 ? exp(x) : 1;
    }
    double change = lambda > 0 ? fmin(sqrt(squares), beta * (lambda * all)) : 0;
    doubt->moves = fmin(0.5 * change + doubt->p, 3 * rest + (double)n * 0x1p-50);
    if (!(doubt->moves >= 0)) doubt->moves = INFINITY;
    cgam_free(env, off);
    return CGAM_OK;
}

cgam_status cgam_doubt_measure(const cgam_recall *plan, const cgam_query *m, bool measure,
                               bool gates, cgam_doubt *out)
{
    int64_t n = plan->bank->Z.n;
    double beta = plan->opts.beta, lambda = plan->opts.lambda, apart = 0, squares = 0, span = 0;
    double tilt = 0, most = 0;
    *out = (cgam_doubt){.gradient = INFINITY, .moves = INFINITY};
    double product = query_error(plan, m);
    for (int64_t i = 0; i < n; i++) {
        double x = beta * (m->top - m->r[i]), off = row_doubt(plan, m, i, product);
        if (!counts(plan, m, i, off)) continue;
        apart = fmax(apart, off);
        squares += beta * off * (beta * off); /* off^2 alone might underflow */
        tilt += m->p[i] * fabs(x);
        most += m->p[i] * m->p[i];
        span = fmax(span, fabs(x));
    }
    double sums = sum_roundings(n);
    out->scores = apart * CGAM_SLACK + 4 * CGAM_TINY;
    out->sum = sums * CGAM_U * CGAM_SLACK;
    double moved = 2 * beta * out->scores;
    out->weights = (moved + 2 * (4 * span + sums) * CGAM_U) * (1 + 0x1p-18);
    out->p = fmin(0.5 * sqrt(squares), sqrt(most) * expm1(fmin(moved, 1))) * CGAM_SLACK +
             CGAM_U * (sums + 4 * tilt) * CGAM_SLACK;
    if (!(moved <= 1)) out->p = sqrt(2);
    out->step = INFINITY;
    if (m->together && !measure && m->q) together(plan, m, out);
    if (!measure || !m->q) return CGAM_OK;
    out->step = 0;
    double *rows = cgam_alloc(plan->bank->env, (size_t)n, sizeof *rows);
    if (!rows) return cgam_fail_nomem(plan->bank->env, "a residual");
    cgam_status status = residual(plan, m, gates, rows, &out->gradient);
    if (status == CGAM_OK && !gates) status = moves(plan, m, rows, out);
    if (!gates) out->gradient += lambda * out->p * CGAM_SLACK;
    if (!(out->gradient >= 0)) out->gradient = INFINITY;
    cgam_free(plan->bank->env, rows);
    return status;
}
