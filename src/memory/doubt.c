/* doubt.c: bounds of the rounding errors of one query, measured on its final vectors.
 *
 * The bounds do not depend on how the vectors were computed (streamed, refined, in f32 at first): the returned s is
 * put back into the equations, in double, and the residual is bounded together with its own rounding. zeta, |q| and
 * |v| are norms, v = P c.
 *
 *   b_i = <zeta_i, q>         off by gamma |zeta| |q|               sums of d products
 *   u_i = <zeta_i, v>, W_i c  off by gamma |zeta| (|v| + |P| |c|)
 *   r_i against b_i + lambda s_i: the difference as it is, and 3 u of its terms
 *   p_i = e_i / sum           off by (4 |x_i| + sum_roundings) u of itself,  x_i = beta (r_i - max r)
 *   A s - u - lambda p        num/dplr_proof.c for A s
 *
 * Scores off by at most e move each log p_i by 2 beta e, and p by at most beta |e|_2 / 2. A row whose score, error
 * included, stays below e^-NOTHING of the best is ignored, however long it is and however large its error: the total
 * weight of N such rows is below the resolution of a double. With entmax such rows weigh 0, all others count here,
 * and p moves by at most beta |e|_2. */
#include "base/blas.h"
#include "memory/certify.h"
#include "num/entmax.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { NOTHING = 746 }; /* e^-NOTHING is 0 as a double */

/* Roundings of exp, of the sum of n weights and of a share. Long sums are made of blocks of at most 512 rows, or of
 * tiles of at least 8 rows in 64 chunks; each of these may rescale the sum. */
static double sum_roundings(int64_t n) { return n < 608 ? (double)n + 32 : 640 + (double)n / 64; }

static double norm(int64_t n, const double *x)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += x[i] * x[i];
    bool plain =
        squares > 0x1p-900 && squares < 0x1p1000; /* none of them matters that underflowed */
    double size = plain ? sqrt(squares) : cgam_array_norm(n, x);
    return cgam_above(size * (1 + (4 * (double)n + 16) * CGAM_U));
}

/* Returns |v| and its rounding error, or the same of W's largest row times c. */
static double context_size(const cgam_recall *plan, const double *c)
{
    double size = c ? norm(plan->d_c, c) : 0;
    return plan->opts.P || plan->opts.W ? size * plan->weights_size : size;
}

/* Upper bounds of |zeta_i|, and of the largest of them. */
static double row_length(const cgam_recall *plan, int64_t i)
{
    return cgam_length_above(plan->bank->Z.d, plan->bank->norm2[i]);
}

static double longest_row(const cgam_recall *plan)
{
    return plan->bank->info.norm_max * (1 + cgam_norm_error(plan->bank->Z.d));
}

/* gamma: the error of b_i over |zeta_i| |q|, and of u_i over |zeta_i| |v|. */
static double product_error(const cgam_recall *plan)
{
    double terms = (double)plan->bank->Z.d + (plan->opts.P || plan->opts.W ? (double)plan->d_c : 0);
    return cgam_gamma(2 * terms + 16) + (plan->bank->scale ? cgam_norm_error((int64_t)terms) : 0);
}

/* Bound of what underflowing products may add to b_i or u_i, whose row may be normalised afterwards. */
static double underflow_at(const cgam_recall *plan, int64_t i)
{
    return CGAM_TINY * (1 + (plan->bank->scale ? plan->bank->scale[i] : 0));
}

double cgam_doubt_scores(const cgam_recall *plan, const double *q, const double *c)
{
    double row = longest_row(plan), lambda = plan->opts.lambda;
    double size =
        row * norm(plan->bank->Z.d, q) + lambda * context_size(plan, c) * (plan->opts.W ? 1 : row);
    double lost = CGAM_TINY * (1 + (plan->bank->scale ? plan->bank->scale_max : 0));
    if (c && plan->opts.P) lost += lambda * row * CGAM_TINY; /* of P c */
    return product_error(plan) * size * CGAM_SLACK + lost;
}

bool cgam_doubt_solved(const cgam_recall *plan, const double *c)
{
    return c && plan->opts.alpha > 0 && plan->opts.lambda > 0;
}

cgam_gates_off cgam_doubt_over_rows(const cgam_recall *plan, double size, double x_off,
                                    double border)
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
    *out = cgam_doubt_over_rows(plan, norm(plan->bank->Z.d, e), off, border);
    return status;
}

cgam_status cgam_doubt_feedback(const cgam_recall *plan, double terms, double weights,
                                const double *g, const double *p_border, const double *t,
                                const double *edges, cgam_gates_off *out)
{
    double off, border, pivot = cgam_dplr_pivot_off(plan->gate->A);
    double nu = plan->bank->scale ? cgam_norm_error(plan->bank->Z.d) : 0;
    /* g is a sum over all rows, sum p = 1 */
    double g_off = cgam_gamma(terms + 16) + nu + pivot + weights;
    g_off = (g_off * plan->can.row_max + 0x1p-54 * plan->can.size) * CGAM_SLACK;
    cgam_status status =
        cgam_dplr_reduce_off(plan->gate->A, g, g_off, p_border, t, edges, &off, &border);
    *out = cgam_doubt_over_rows(plan, norm(plan->bank->Z.d, t), off, border);
    double own = plan->can.pivot_max * (pivot + 4 * CGAM_U) * CGAM_SLACK; /* dinv p itself */
    out->most += own;
    out->norm += own;
    return status;
}

/* Error of b_i over |zeta_i|, for this query. */
static double query_error(const cgam_recall *plan, const cgam_settled *m)
{
    return m->in.q ? cgam_above(product_error(plan) * norm(plan->bank->Z.d, m->in.q)) : 0;
}

/* Error of u_i over |zeta_i|, or over 1 with W, for this context. */
static double context_error(const cgam_recall *plan, const double *c)
{
    if (!c) return 0;
    double products = plan->opts.P ? CGAM_TINY : 0;
    return cgam_above(product_error(plan) * context_size(plan, c)) + products;
}

cgam_gates_off cgam_doubt_context(const cgam_recall *plan, const double *c)
{
    double row = plan->opts.W ? 1 : longest_row(plan),
           scale = plan->bank->scale ? plan->bank->scale_max : 0;
    double most = c ? (context_error(plan, c) * row + CGAM_TINY * (1 + scale)) * CGAM_SLACK : 0;
    return (cgam_gates_off){most, most * sqrt((double)plan->bank->Z.n) * CGAM_SLACK};
}

/* Error of b + lambda s at row i, and of r against it; 0 in a flow, whose r is defined otherwise. */
static double row_doubt(const cgam_recall *plan, const cgam_settled *m, int64_t i, double product)
{
    double lambda = plan->opts.lambda;
    if (!m->in.q) return 0;
    double off = fabs(m->r[i] - (m->in.b[i] + lambda * m->s[i])) +
                 3 * CGAM_U * (fabs(m->in.b[i]) + lambda * fabs(m->s[i])) +
                 product * row_length(plan, i) + underflow_at(plan, i);
    return off >= 0 ? off : INFINITY; /* a score beyond the range of double has no bound */
}

/* Does row i have weight, given that its score is off by at most `off`? */
static bool row_counts(const cgam_recall *plan, const cgam_settled *m, int64_t i, double off)
{
    return cgam_recall_sparse(plan) ||
           !(plan->opts.beta * (m->act.top - m->r[i] - 4 * off) * (1 - 0x1p-20) > NOTHING);
}

/* Computes |(A s - u - lambda p)_i| in rows[n], and its norm in *out; with `gates` A s - u. At alpha = 0 rows are
 * independent, and rows of negligible weight are left out. */
static cgam_status measure_residual(const cgam_recall *plan, const cgam_settled *m, bool gates,
                                    double *rows, double *out)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t d = Z->d;
    double *y = cgam_vec_new(env, Z, 2), *u = y ? cgam_vec_next(Z, y) : NULL;
    double *v = cgam_alloc(env, (size_t)d, sizeof *v);
    if (!y || !v) {
        cgam_vec_free(env, Z, y);
        cgam_free(env, v);
        return cgam_fail_nomem(env, "a residual");
    }
    bool apart = plan->gate->a == 0;
    cgam_status status = CGAM_OK;
    cgam_vec_fill(Z, rows, 0);
    cgam_vec_fill(Z, u, 0);
    if (apart) {
        cgam_vec_copy(Z, y, m->s);
    } else {
        cgam_dplr_spec A = cgam_gate_hessian(plan->gate, 1, 0, NULL);
        status = cgam_dplr_apply_bounded(env, &A, plan->gate->A, m->s, y, rows);
    }
    if (m->in.c && m->in.s0 && apart && !plan->opts.W) {
        cgam_vec_copy(Z, u, m->in.s0); /* A = I, and u was scored with the query */
    } else if (m->in.c && plan->opts.W) {
        cgam_recall_weigh(plan, m->in.c, u);
    } else if (m->in.c && status == CGAM_OK) {
        cgam_recall_project(plan, m->in.c, v);
        status = cgam_bank_score(plan->bank, v, u);
    }
    double wide = context_error(plan, m->in.c), product = query_error(plan, m);
    if (status != CGAM_OK) goto done;
    CGAM_EACH_ROW(Z, i) {
        double p = gates || !m->p ? 0 : plan->opts.lambda * m->p[i];
        rows[i] += fabs(y[i] - u[i] - p) + wide * (plan->opts.W ? 1 : row_length(plan, i)) +
                   4 * CGAM_U * (fabs(y[i]) + fabs(u[i]) + p) + underflow_at(plan, i);
        double doubt = row_doubt(plan, m, i, product) + plan->opts.lambda * rows[i];
        y[i] = !apart || !m->in.q || row_counts(plan, m, i, doubt) ? rows[i] : 0;
    }
    *out = cgam_vec_norm(Z, y) * (1 + 0x1p-18);
done:
    cgam_vec_free(env, Z, y);
    cgam_free(env, v);
    return status;
}

cgam_status cgam_doubt_gates(const cgam_recall *plan, const double *c, double *s,
                             cgam_gates_off *out)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    int64_t d = Z->d, edge = plan->can.direct ? cgam_dplr_border(plan->gate->A, NULL) : 0;
    double *work = plan->can.direct ? cgam_alloc(env, (size_t)(2 * d + edge), sizeof *work)
                                    : cgam_vec_new(env, Z, 1);
    cgam_status status = work ? CGAM_OK : cgam_fail_nomem(env, "a residual");
    *out = (cgam_gates_off){INFINITY, INFINITY};
    if (status == CGAM_OK && plan->can.direct) { /* with the direction that s was made from */
        cgam_recall_project(plan, c, work);
        status = cgam_dplr_range(plan->gate->A, work, work + d, work + 2 * d);
        if (status == CGAM_OK)
            status = cgam_doubt_range(plan, c, work, work + d, work + 2 * d, out);
    } else if (status == CGAM_OK) {
        cgam_settled m = {.in.c = c, .s = s};
        status = measure_residual(plan, &m, true, work, &out->norm);
        out->most = out->norm *= plan->gate->gain * (1 + 0x1p-18);
        if (!(out->norm >= 0)) out->most = out->norm = INFINITY;
    }
    if (plan->can.direct) cgam_free(env, work);
    else cgam_vec_free(env, Z, work);
    return status;
}

/* Queries solved together: the returned s differs from s~ = A^-1 (u + lambda p') by the errors of s0, of the feedback
 * and of their sum. The gradient at s~ is lambda (p' - softmax at s~). */
static void doubt_of_batch(const cgam_recall *plan, const cgam_settled *m, cgam_doubt *out)
{
    double lambda = plan->opts.lambda;
    double most, squares, p;
    if (!isfinite(m->in.s0_off.norm) || !isfinite(m->feedback.norm)) return;
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_MAX(most), CGAM_SUM(squares), CGAM_SUM(p)) {
        double added = CGAM_U * (2 * fabs(m->r[i]) + 8 * fabs(m->r[i] - m->in.a[i])) / lambda +
                       2 * CGAM_U * fabs(m->s[i]);
        most = added > most ? added : most;
        squares += added * added;
        p += m->p[i] * m->p[i];
    }
    if (cgam_rows_status(&plan->bank->Z) != CGAM_OK) return;
    most = fmax(most, 0);
    double scale = plan->opts.beta * lambda * (1 + 0x1p-18),
           last = m->trace.change_norm * (1 + 0x1p-18);
    most += m->in.s0_off.most + lambda * m->feedback.most;
    squares = sqrt(squares) + m->in.s0_off.norm + lambda * m->feedback.norm;
    double factor = 2 * scale * most, near = factor <= 1 ? sqrt(p) * expm1(factor) : INFINITY;
    out->p += fmin(0.5 * scale * squares, near) * (1 + 0x1p-18);
    out->scores += lambda * most * (1 + 0x1p-18);
    out->weights += factor;
    out->step = out->scores;
    out->gradient = lambda * (last + out->p) * CGAM_SLACK;
    double eta = plan->gate->info.eta_min;
    out->moves = eta > 0 ? 0.5 * scale * lambda * last / eta + out->p : INFINITY;
}

/* Is row i the winner, or equal to it in everything that matters? The winner's row is already here; rows: [2, d]
 * scratch. */
static bool is_alike(const cgam_recall *plan, const cgam_settled *m, int64_t i, int64_t winner,
                     double r, double p, double *rows)
{
    if (i == winner) return true;
    if (m->in.c && plan->opts.W) return false;
    return m->r[i] == r && m->p[i] == p && cgam_twins_alike(plan->bank, i, winner, rows);
}

/* Bounds how far the map may move p, from how far it may move the scores. With y = A^-1 g
 *     |y_i| <= |g_i| + alpha |zeta_i| |Z|_F |y|,   |y| <= |g| / eta,
 * so the error bound of a row depends little on that of longer rows. Softmax is (beta / 2)-Lipschitz, entmax
 * beta-Lipschitz. Memories equal to the winner keep the same share whatever their score, so p moves by at most three
 * times the total share of the others. */
static cgam_status bound_moves(const cgam_recall *plan, const cgam_settled *m, const double *rows,
                               cgam_doubt *doubt)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    double beta = plan->opts.beta, lambda = plan->opts.lambda, product = query_error(plan, m);
    double *off = cgam_vec_new(env, Z, 2), *mine = off ? cgam_vec_next(Z, off) : NULL;
    double *two = cgam_alloc(env, (size_t)(2 * Z->d), sizeof *two);
    double all = doubt->gradient / plan->gate->info.eta_min, norms, squares, step, others;
    cgam_peak top;
    cgam_status status = off && two ? CGAM_OK : cgam_fail_nomem(env, "a bound");
    if (status != CGAM_OK) goto done;
    CGAM_REDUCE(Z, i, CGAM_SUM(norms), CGAM_PEAK(top)) {
        norms += plan->bank->norm2[i];
        cgam_peak_take(&top, m->r[i], i);
    }
    status = cgam_rows_status(Z);
    if (status != CGAM_OK) goto done;
    double far = plan->gate->a * sqrt(norms) * (1 + cgam_norm_error(Z->d)) * all;
    int64_t winner = (int64_t)top.row;
    CGAM_EACH_ROW(Z, i) {
        off[i] = lambda > 0 ? lambda * fmin(rows[i] + far * row_length(plan, i), all) : 0;
        mine[i] = row_doubt(plan, m, i, product);
    }
    double of_winner[4]; /* its r, p and both error bounds */
    const double *vectors[] = {m->r, m->p, off, mine};
    status = cgam_vec_pick_row(Z, winner, 4, vectors, of_winner);
    if (status == CGAM_OK) status = cgam_rows_bring(env, Z, 1, &winner);
    if (status != CGAM_OK) goto done;
    bool sparse = cgam_recall_sparse(plan);
    double doubt_of_winner = of_winner[2] + of_winner[3];
    double nothing = sparse ? CGAM_SLACK / (plan->opts.entmax - 1) : NOTHING - 40;
    CGAM_REDUCE(Z, i, CGAM_SUM(squares), CGAM_MAX(step), CGAM_SUM(others)) {
        double gap = of_winner[0] - m->r[i] - mine[i] - off[i] - doubt_of_winner;
        double x = -beta * gap;
        if (!(x <= -nothing)) {
            squares += beta * off[i] * (beta * off[i]);
            step = fmax(step, off[i] + mine[i]);
        }
        if (is_alike(plan, m, i, winner, of_winner[0], of_winner[1], two)) continue;
        if (sparse) others += !(x <= -nothing);
        else others += x < 0 ? exp(x) : 1;
    }
    status = cgam_rows_status(Z);
    doubt->step = fmax(doubt->step, step);
    double change = lambda > 0 ? fmin(sqrt(squares), beta * (lambda * all)) : 0;
    doubt->moves =
        fmin(cgam_recall_lipschitz(plan) * change + doubt->p, 3 * others + (double)Z->n * 0x1p-50);
    if (!(doubt->moves >= 0)) doubt->moves = INFINITY;
done:
    cgam_vec_free(env, Z, off);
    cgam_free(env, two);
    return status;
}

/* Arguments v_i of exp_A are off by delta_i = 4 u (|beta (r_i - top)| + |shift|), which moves p as scores
 * would, and the shift by max delta and by the deviation of sum p from 1; weights by (12 |log p| + 8) u of
 * themselves, sum p |log p| <= log n. */
static void entmax_doubt(const cgam_recall *plan, const cgam_settled *m, double scores,
                         cgam_doubt *out)
{
    double A = plan->opts.entmax, beta = plan->opts.beta;
    cgam_entmax e = {A, beta, m->act.top, m->act.shift};
    int64_t n = plan->bank->Z.n;
    double most, squares;
    cgam_sum2 away; /* sum p - 1 */
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_SUM2(away), CGAM_MAX(most), CGAM_SUM(squares)) {
        if (i == 0) away.high = -1;
        cgam_sum2_add(&away, m->p[i]);
        if (!(1 + (A - 1) * cgam_entmax_argument(&e, m->r[i]) > -0x1p-20)) continue;
        double delta = 4 * CGAM_U * (beta * fabs(m->r[i] - m->act.top) + fabs(m->act.shift));
        most = fmax(most, delta);
        squares += delta * delta;
    }
    double sum = away.high + away.low;
    most = fmax(most, 0);
    double off = fabs(sum) + (12 * log((double)n) + 32) * CGAM_U;
    out->sum = 4 * ((double)n + 64) * CGAM_U;
    out->weights = INFINITY;
    out->own = (2 * most + 2 * off) * CGAM_SLACK;
    out->p = fmin((scores + sqrt(squares) + off) * CGAM_SLACK, sqrt(2));
    if (!(out->p >= 0) || !(off <= 0x1p-20)) out->p = sqrt(2);
    if (!(off <= 0x1p-20)) out->own = INFINITY;
}

/* Bases 1 + (A - 1) v are off by at most D = (A - 1)(2 beta scores + own): entries farther than D from 0 are
 * certainly on or off the support, and w = base^((2 - A) / (A - 1)) there by the factor that follows. */
double cgam_doubt_slopes(const cgam_recall *plan, const cgam_settled *m, const cgam_doubt *doubt)
{
    double A = plan->opts.entmax, k = A - 1;
    double D = (k * (2 * plan->opts.beta * doubt->scores + doubt->own) + 8 * CGAM_U) * CGAM_SLACK;
    cgam_entmax e = {A, plan->opts.beta, m->act.top, m->act.shift};
    if (!(D < 0x1p-21)) return INFINITY;
    double open, most, least;
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_SUM(open), CGAM_MAX(most), CGAM_MIN(least)) {
        double base = 1 + k * cgam_entmax_argument(&e, m->r[i]);
        open += !(fabs(base) > 2 * D);
        if (!(base > 2 * D)) continue;
        most = fmax(most, -log1p(-D / base));
        least = fmin(least, m->p[i]);
    }
    if (!(open == 0)) return INFINITY;
    most = fmax(most, 0);
    least = fmin(least, 1);
    return (2 - A) / k * most * CGAM_SLACK + (64 - 12 * log(least)) * CGAM_U;
}

cgam_status cgam_doubt_measure(const cgam_recall *plan, const cgam_settled *m, bool measure,
                               bool gates, cgam_doubt *out)
{
    const cgam_rows *Z = &plan->bank->Z;
    double beta = plan->opts.beta, lambda = plan->opts.lambda;
    *out = (cgam_doubt){.gradient = INFINITY, .moves = INFINITY};
    double product = query_error(plan, m);
    /* gates that were not solved for equal u, and need no equation to check them */
    bool direct = gates && m->in.c && !cgam_doubt_solved(plan, m->in.c);
    double wide = direct ? context_error(plan, m->in.c) : 0;
    double apart, span, squares, tilt, most, sums = sum_roundings(Z->n);
    CGAM_REDUCE(Z, i, CGAM_MAX(apart), CGAM_MAX(span), CGAM_SUM(squares), CGAM_SUM(tilt),
                CGAM_SUM(most)) {
        double x = beta * (m->act.top - m->r[i]), off = row_doubt(plan, m, i, product);
        if (direct)
            off +=
                lambda * (wide * (plan->opts.W ? 1 : row_length(plan, i)) + underflow_at(plan, i));
        if (!row_counts(plan, m, i, off)) continue;
        apart = off > apart ? off : apart;
        squares += beta * off * (beta * off); /* off^2 alone might underflow */
        tilt += m->p[i] * fabs(x);
        most += m->p[i] * m->p[i];
        span = fabs(x) > span ? fabs(x) : span;
    }
    cgam_status status = cgam_rows_status(Z);
    if (status != CGAM_OK) return status;
    apart = fmax(apart, 0);
    span = fmax(span, 0);
    out->scores = apart * CGAM_SLACK + CGAM_TINY;
    out->sum = sums * CGAM_U * CGAM_SLACK;
    double moved = 2 * beta * out->scores;
    out->weights = (moved + 2 * (4 * span + sums) * CGAM_U) * (1 + 0x1p-18);
    out->p = fmin(0.5 * sqrt(squares), sqrt(most) * expm1(fmin(moved, 1))) * CGAM_SLACK +
             CGAM_U * (sums + 4 * tilt) * CGAM_SLACK;
    if (!(moved <= 1)) out->p = sqrt(2);
    if (cgam_recall_sparse(plan)) entmax_doubt(plan, m, sqrt(squares), out);
    out->step = INFINITY;
    if ((m->together || m->followed) && !measure && m->in.q) doubt_of_batch(plan, m, out);
    if (!measure || !m->in.q) return CGAM_OK;
    out->step = 0;
    double *rows = cgam_vec_new(plan->bank->env, Z, 1);
    if (!rows) return cgam_fail_nomem(plan->bank->env, "a residual");
    status = measure_residual(plan, m, gates, rows, &out->gradient);
    if (status == CGAM_OK && !gates) status = bound_moves(plan, m, rows, out);
    if (!gates) out->gradient += lambda * out->p * CGAM_SLACK;
    if (!(out->gradient >= 0)) out->gradient = INFINITY;
    cgam_vec_free(plan->bank->env, Z, rows);
    return status;
}
