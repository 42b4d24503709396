/* activation.c: softmax, or alpha-entmax of order A (num/entmax.h), as one recall uses it.
 *
 *   p = act(beta r)         value  L(beta r) = log sum exp, or max over the simplex of <z, p> + H_A(p)
 *   dp / dr = beta J(p),    J = sum w (diag pi - pi pi'),   pi = w / sum w,   w = p^(2 - A)
 *
 * so results about beta (diag p - pp') also hold for J, with pi for p and beta sum w for beta. */
#include "memory/results.h"
#include "memory/stages.h"

#include "num/entmax.h"
#include "num/vec.h"

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

/* top, shift and the value of r. */
static cgam_activated entmax_sums(const cgam_recall *plan, const double *r)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    cgam_entmax e = cgam_entmax_rows(env, Z, plan->opts.entmax, plan->opts.beta, r);
    return (cgam_activated){.top = e.top,
                            .shift = e.shift,
                            .sum = 1,
                            .lse = e.beta * e.top + cgam_entmax_value_rows(Z, &e, r)};
}

static cgam_entmax entmax_at(const cgam_recall *plan, const cgam_activated *act)
{
    return (cgam_entmax){plan->opts.entmax, plan->opts.beta, act->top, act->shift};
}

cgam_activated cgam_activated_softmax(double beta, double top, double sum)
{
    return (cgam_activated){.top = top, .sum = sum, .lse = beta * top + log(sum)};
}

/* Computes weights block by block, into p [n] or into one block that is reused, and sums them with the rounding error
 * of each addition kept. */
static cgam_activated softmax_sums(const cgam_recall *plan, const double *r, double *block,
                                   double *p)
{
    const cgam_rows *Z = &plan->bank->Z;
    const cgam_f64 *f64 = Z->cpu->f64;
    double beta = plan->opts.beta, ghost = plan->opts.none_score, top = cgam_vec_max(Z, r);
    cgam_sum2 sum;
    if (plan->opts.none && !isnan(top)) top = fmax(top, ghost);
    CGAM_REDUCE_GROUPS(Z, from, to, CGAM_SUM2(sum)) {
        if (from == 0 && plan->opts.none) sum.high = exp(beta * (ghost - top));
        for (int64_t i = from; i < to; i += CGAM_SETTLE_ROWS) {
            int64_t rows = to - i < CGAM_SETTLE_ROWS ? to - i : CGAM_SETTLE_ROWS;
            double sums[3];
            f64->softmax(r + i, rows, beta, top, p ? p + i : block, sums);
            cgam_sum2_add(&sum, sums[0]);
        }
    }
    return cgam_activated_softmax(beta, top, sum.high + sum.low);
}

cgam_activated cgam_activated_of(const cgam_recall *plan, const double *r)
{
    double e[CGAM_SETTLE_ROWS];
    return cgam_recall_sparse(plan) ? entmax_sums(plan, r) : softmax_sums(plan, r, e, NULL);
}

void cgam_activated_weights(const cgam_recall *plan, const cgam_activated *act, const double *r,
                            int64_t i, int64_t rows, double *p)
{
    double sums[3];
    if (!cgam_recall_sparse(plan)) {
        plan->bank->Z.cpu->f64->softmax(r + i, rows, plan->opts.beta, act->top, p, sums);
        for (int64_t k = 0; k < rows; k++) p[k] /= act->sum;
        return;
    }
    cgam_entmax e = entmax_at(plan, act);
    double low = -cgam_entmax_reach(e.order, e.beta);
    for (int64_t k = 0; k < rows; k++)
        p[k] = r[i + k] - e.top <= low ? 0 : cgam_entmax_weight(&e, r[i + k]);
}

bool cgam_activate(const cgam_recall *plan, const double *r, double *p, cgam_activated *out)
{
    const cgam_rows *Z = &plan->bank->Z;
    if (cgam_recall_sparse(plan)) {
        *out = entmax_sums(plan, r);
        int64_t from = cgam_vec_begin(Z), rows = cgam_vec_size(Z);
        if (rows > 0) cgam_activated_weights(plan, out, r, from, rows, p + from);
    } else {
        *out = softmax_sums(plan, r, NULL, p);
        cgam_vec_scale(Z, p, 1 / out->sum);
    }
    return isfinite(out->lse);
}

double cgam_activated_log_p(const cgam_recall *plan, const cgam_activated *act, double r)
{
    cgam_entmax e = entmax_at(plan, act);
    return cgam_recall_sparse(plan) ? log(cgam_entmax_weight(&e, r))
                                    : plan->opts.beta * (r - act->top) - log(act->sum);
}

double cgam_recall_slopes(const cgam_recall *plan, const double *p, double *pi)
{
    const cgam_rows *Z = &plan->bank->Z;
    double total;
    if (!cgam_recall_sparse(plan)) {
        cgam_vec_copy(Z, pi, p);
        return 1;
    }
    CGAM_REDUCE(Z, i, CGAM_SUM(total)) total += pi[i] = cgam_entmax_slope(plan->opts.entmax, p[i]);
    CGAM_EACH_ROW(Z, i) pi[i] /= total;
    return total;
}
