/* activation.c: softmax, or alpha-entmax of order A (num/entmax.h), as one recall uses it.
 *
 *   p = act(beta r)         value  L(beta r) = log sum exp, or max over the simplex of <z, p> + H_A(p)
 *   dp / dr = beta J(p),    J = sum w (diag pi - pi pi'),   pi = w / sum w,   w = p^(2 - A)
 *
 * so that whatever is known of beta (diag p - pp') holds for J with pi for p and beta sum w for beta. */
#include "memory/recall.h"

#include "num/entmax.h"
#include "num/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double order;
} named[] = {{"softmax", 0}, {"sparsemax", 2}, {"entmax15", 1.5}};
static const char general[] = "entmax:";

bool cgam_activation_find(const char *name, double *order)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (strcmp(name, named[i].name) != 0) continue;
        *order = named[i].order;
        return true;
    }
    size_t begins = sizeof general - 1;
    if (strncmp(name, general, begins) != 0 || !name[begins]) return false;
    char *end;
    double value = strtod(name + begins, &end);
    if (*end || !(value >= 1 + CGAM_ENTMAX_LEAST && value <= 2)) return false;
    *order = value;
    return true;
}

const char *cgam_activation_name(double order, char text[CGAM_ACTIVATION_TEXT])
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (order == named[i].order) return named[i].name;
    snprintf(text, CGAM_ACTIVATION_TEXT, "%s%.17g", general, order);
    return text;
}

/* top, shift and the value of m->r; p is left as it is. */
static void entmax_sums(const cgam_recall *plan, cgam_query *m)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_entmax e = cgam_entmax_rows(env, Z, plan->opts.entmax, plan->opts.beta, m->r);
    m->top = e.top;
    m->shift = e.shift;
    m->sum = 1;
    m->lse = e.beta * e.top + cgam_entmax_value_rows(env, Z, &e, m->r);
}

static cgam_entmax entmax_at(const cgam_recall *plan, const cgam_query *m)
{
    return (cgam_entmax){plan->opts.entmax, plan->opts.beta, m->top, m->shift};
}

/* Weights by blocks, into p [n] or over and over into a block, their sums added up with the rounding of each
 * addition kept: top, sum and lse of m->r. */
static void softmax_sums(const cgam_recall *plan, cgam_query *m, double *block, double *p)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_env *env = plan->bank->env;
    const cgam_f64 *f64 = Z->cpu->f64;
    double beta = plan->opts.beta, ghost = plan->opts.none_score;
    cgam_tally t;
    cgam_tally_open(&t, Z, ">");
    while (cgam_tally_next(&t)) t.x[0] = f64->largest(m->r + t.from, t.to - t.from);
    bool told = cgam_tally_close(env, &t) == CGAM_OK;
    double top = told ? t.x[0] : NAN;
    if (plan->opts.none) top = fmax(top, ghost);
    cgam_tally_open(&t, Z, "2.");
    while (told && cgam_tally_next(&t)) {
        if (t.from == 0 && plan->opts.none) t.x[0] = exp(beta * (ghost - top));
        for (int64_t i = t.from; i < t.to; i += CGAM_SETTLE_ROWS) {
            int64_t rows = t.to - i < CGAM_SETTLE_ROWS ? t.to - i : CGAM_SETTLE_ROWS;
            double sums[3], high = t.x[0], total;
            f64->softmax(m->r + i, rows, beta, top, p ? p + i : block, sums);
            total = high + sums[0];
            t.x[1] += high >= sums[0] ? (high - total) + sums[0] : (sums[0] - total) + high;
            t.x[0] = total;
        }
    }
    told = told && cgam_tally_close(env, &t) == CGAM_OK;
    cgam_query_sums(m, beta, top, told ? t.x[0] + t.x[1] : NAN);
}

void cgam_query_measure(const cgam_recall *plan, cgam_query *m)
{
    double e[CGAM_SETTLE_ROWS];
    if (cgam_recall_sparse(plan)) entmax_sums(plan, m);
    else softmax_sums(plan, m, e, NULL);
}

void cgam_query_weights(const cgam_recall *plan, const cgam_query *m, int64_t i, int64_t rows,
                        double *p)
{
    double sums[3];
    if (!cgam_recall_sparse(plan)) {
        plan->bank->Z.cpu->f64->softmax(m->r + i, rows, plan->opts.beta, m->top, p, sums);
        for (int64_t k = 0; k < rows; k++) p[k] /= m->sum;
        return;
    }
    cgam_entmax e = entmax_at(plan, m);
    double low = -cgam_entmax_reach(e.order, e.beta);
    for (int64_t k = 0; k < rows; k++)
        p[k] = m->r[i + k] - e.top <= low ? 0 : cgam_entmax_weight(&e, m->r[i + k]);
}

bool cgam_query_activate(const cgam_recall *plan, cgam_query *m)
{
    if (cgam_recall_sparse(plan)) {
        entmax_sums(plan, m);
        cgam_span here = cgam_rows_span(&plan->bank->Z);
        if (here.size > 0) cgam_query_weights(plan, m, here.from, here.size, m->p + here.from);
    } else {
        softmax_sums(plan, m, NULL, m->p);
        cgam_span here = cgam_rows_span(&plan->bank->Z);
        double share = 1 / m->sum;
        for (int64_t i = here.from; i < here.to; i++) m->p[i] *= share;
    }
    return isfinite(m->lse);
}

double cgam_query_log_p(const cgam_recall *plan, const cgam_query *m, double r)
{
    cgam_entmax e = entmax_at(plan, m);
    return cgam_recall_sparse(plan) ? log(cgam_entmax_weight(&e, r))
                                    : plan->opts.beta * (r - m->top) - log(m->sum);
}

double cgam_recall_slopes(const cgam_recall *plan, const double *p, double *pi)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_span here = cgam_rows_span(Z);
    cgam_tally t;
    if (!cgam_recall_sparse(plan)) {
        cgam_vectors_copy(Z, pi, p);
        return 1;
    }
    cgam_tally_open(&t, Z, "+");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++)
            t.x[0] += pi[i] = cgam_entmax_slope(plan->opts.entmax, p[i]);
    double total = cgam_tally_close(plan->bank->env, &t) == CGAM_OK ? t.x[0] : NAN;
    for (int64_t i = here.from; i < here.to; i++) pi[i] /= total;
    return total;
}
