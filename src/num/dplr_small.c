/* dplr_small.c: rounding errors of solutions of the small system K of dplr.c, without a pass over Z.
 *
 * T^-1 Z v and T^-1 x leave the small system as vectors e and t of d numbers. For K z = f, z as
 * computed,
 *     |z - K^-1 f| <= |K^-1| |K z - f| ,
 * and the residual takes one product with the K that was formed, whose own error is known in advance:
 *     |dK| <= sum_R load_i / |D_i| (e_i / |D_i| + 8 u + gamma_g + nu) + (3 u + nu) |B_S| + max_S e_i ,
 * load = a |zeta|^2, g the roundings of a sum over all rows (rows.h), nu that of normalising. With all
 * pivots positive and no border K = -M, M = I + B' D^-1 B >= I, and |K^-1| <= 1. */
#include "num/dplr_parts.h"
#include "num/eigen.h"
#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { PRODUCT_ROWS = 256 }; /* of a product, between two checks of whether to stop */

cgam_status cgam_dplr_keep(cgam_dplr *T, const cgam_dplr_spec *spec)
{
    int64_t n = T->n, size = T->k + T->m;
    double norms = cgam_norm_error(T->d), nu = T->Z->scale ? norms : 0, e, square = 0;
    double sums = cgam_gamma(cgam_rows_gram_roundings(n)) + 8 * CGAM_U + nu;
    double ratios, total, edge, unsafe, pivots, most_off;
    T->diagonal = cgam_alloc(T->env, (size_t)size, sizeof *T->diagonal);
    if (!T->diagonal) return cgam_fail_nomem(T->env, "the small system of the gate operator");
    T->gain = T->m == 0 ? 1 : INFINITY;
    CGAM_REDUCE_GROUPS(T->Z, from, to, CGAM_SUM(ratios), CGAM_SUM(total), CGAM_SUM(edge),
                       CGAM_SUM(unsafe), CGAM_MAX(pivots), CGAM_MAX(most_off)) {
        int64_t s = 0;
        while (s < T->m && T->border[s] < from) s++;
        for (int64_t i = from; i < to; i++) {
            double D = cgam_dplr_pivot(spec, i, &e), load = T->a * T->norm2[i];
            if (s < T->m && T->border[s] == i) {
                s++;
                edge += load;
                pivots = fmax(pivots, e);
                continue;
            }
            unsafe += !(D > e);
            double off = fabs(D) > e ? e / (fabs(D) - e) : INFINITY;
            most_off = fmax(most_off, (off + 2 * CGAM_U) * CGAM_SLACK);
            ratios += load / fabs(D);
            total += load > 0 ? load / fabs(D) * (off + sums) : 0;
        }
    }
    cgam_status status = cgam_rows_status(T->Z);
    if (status != CGAM_OK) return status;
    pivots = fmax(pivots, 0);
    if (unsafe > 0) T->gain = INFINITY;
    T->pivot_off = fmax(T->pivot_off, most_off);
    T->error = (total + 2 * CGAM_U * (1 + ratios) + (3 * CGAM_U + nu) * sqrt(edge) + pivots) *
               CGAM_SLACK * (1 + norms);
    if (T->vanishing) T->error = INFINITY;
    for (int64_t i = 0; i < size; i++) {
        T->diagonal[i] = T->K[i * size + i];
        square += T->diagonal[i] * T->diagonal[i];
        for (int64_t j = 0; j < i; j++) {
            double entry = T->K[j * size + i] = T->K[i * size + j];
            square += 2 * entry * entry;
        }
    }
    T->size = sqrt(square) * CGAM_SLACK;
    return CGAM_OK;
}

static double norm(int64_t n, const double *x)
{
    return cgam_array_norm(n, x) * (1 + (4 * (double)n + 16) * CGAM_U);
}

/* Upper bound of |z - K^-1 f|, with an error of f_off in f and of 4 u of itself in z; f becomes the residual. */
static double off_by(const cgam_dplr *T, const double *z, double *f, double f_off)
{
    int64_t size = T->k + T->m;
    double length = norm(size, z), first = norm(size, f);
    for (int64_t i = 0; i < size; i++) f[i] -= T->diagonal[i] * z[i];
    for (int64_t i = 0; i + 1 < size; i++) {
        const double *row = T->K + i * size + i + 1;
        f[i] -= cblas_ddot((int)(size - i - 1), row, 1, z + i + 1, 1);
        cblas_daxpy((int)(size - i - 1), -z[i], row, 1, f + i + 1, 1);
    }
    double residual = norm(size, f) + f_off + cgam_gamma((double)size + 16) * first +
                      (cgam_gamma((double)size + 16) * T->size + T->error) * length + CGAM_TINY;
    double off = T->gain * residual * CGAM_SLACK + CGAM_TINY;
    return off >= 0 ? off : INFINITY;
}

bool cgam_dplr_system(const cgam_dplr *T, double *size, double *error)
{
    if (!T->diagonal || T->m > 0 || T->gain != 1 || !isfinite(T->error)) return false;
    *size = T->size;
    *error = T->error;
    return true;
}

double cgam_dplr_pivot_off(const cgam_dplr *T) { return T->diagonal ? T->pivot_off : INFINITY; }

cgam_status cgam_dplr_range_off(const cgam_dplr *T, const double *v, double v_off, const double *e,
                                const double *y_border, double *off_e, double *off_border)
{
    int64_t k = T->k, size = k + T->m;
    double root = sqrt(T->a);
    *off_e = *off_border = INFINITY;
    if (!T->diagonal) return CGAM_OK;
    double *z = cgam_zalloc(T->env, (size_t)(2 * size), sizeof *z), *f = z + size;
    if (!z) return cgam_fail_nomem(T->env, "a residual");
    for (int64_t j = 0; j < k; j++) {
        z[j] = -e[j] / root;
        f[j] = v[j] / root;
    }
    memcpy(z + k, y_border, (size_t)T->m * sizeof *z);
    *off_border = off_by(T, z, f, v_off / root);
    *off_e = *off_border * root * CGAM_SLACK;
    cgam_free(T->env, z);
    return CGAM_OK;
}

cgam_status cgam_dplr_reduce_off(const cgam_dplr *T, const double *g, double g_off,
                                 const double *x_border, const double *t, const double *y_border,
                                 double *off_t, double *off_border)
{
    int64_t k = T->k, size = k + T->m;
    double root = sqrt(T->a);
    *off_t = *off_border = INFINITY;
    if (!T->diagonal) return CGAM_OK;
    double *z = cgam_zalloc(T->env, (size_t)(2 * size), sizeof *z), *f = z + size;
    if (!z) return cgam_fail_nomem(T->env, "a residual");
    for (int64_t j = 0; j < k; j++) {
        z[j] = t[j] / root;
        f[j] = -root * g[j];
    }
    memcpy(z + k, y_border, (size_t)T->m * sizeof *z);
    memcpy(f + k, x_border, (size_t)T->m * sizeof *f);
    *off_border = off_by(T, z, f, g_off * root);
    *off_t = *off_border * root * CGAM_SLACK;
    cgam_free(T->env, z);
    return CGAM_OK;
}

/* With R = K^-1 as computed, |K^-1| <= |R| / (1 - |I - K R|), all in Frobenius norms. */
cgam_status cgam_dplr_prove_gain(cgam_dplr *T)
{
    cgam_env *env = T->env;
    int64_t size = T->k + T->m, all = size * size;
    if (!T->diagonal || isfinite(T->gain) || !isfinite(T->error) || T->singular) return CGAM_OK;
    double *K = cgam_alloc(env, (size_t)(3 * all), sizeof *K), *R = K + all, *E = R + all;
    if (!K) return cgam_fail_nomem(env, "a proof");
    for (int64_t i = 0; i < size; i++) {
        for (int64_t j = 0; j < size; j++) {
            E[i * size + j] = R[i * size + j] = i == j;
            K[i * size + j] = j > i ? T->K[i * size + j] : T->K[j * size + i];
        }
        K[i * size + i] = T->diagonal[i];
    }
    cgam_status status = cgam_factor_solve(env, size, T->K, T->pivots, size, R);
    for (int64_t i = 0; i < size && status == CGAM_OK;
         i += PRODUCT_ROWS) { /* R' K - I, whose norm is the same */
        int many = (int)(size - i < PRODUCT_ROWS ? size - i : PRODUCT_ROWS);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, many, (int)size, (int)size, 1,
                    R + i * size, (int)size, K, (int)size, -1, E + i * size, (int)size);
        if (cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    if (status != CGAM_OK) {
        cgam_free(env, K);
        return status;
    }
    double r = norm(all, R), left = norm(all, E) + cgam_gamma((double)size + 8) * (r * T->size + 1);
    left = (left + T->error * r) * CGAM_SLACK;
    if (left < 0.5) T->gain = r / (1 - left) * CGAM_SLACK;
    cgam_free(env, K);
    return CGAM_OK;
}

/* y_R = D^-1 (x - B t), (t, y_S) = K^-1 (-B' D^-1 x_R, x_S). */
double cgam_dplr_solve_gain(const cgam_dplr *T)
{
    double least = (1 + T->pivot_off) * (1 + cgam_norm_error(T->d));
    if (!T->diagonal || !isfinite(T->error)) return INFINITY;
    double steepest, square;
    CGAM_REDUCE(T->Z, i, CGAM_MAX(steepest), CGAM_SUM(square)) {
        double pivot = fabs(T->dinv[i]) * least;
        steepest = fmax(steepest, pivot);
        square += T->a * T->norm2[i] * least * pivot * pivot;
    }
    if (cgam_rows_status(T->Z) != CGAM_OK) return INFINITY;
    steepest = fmax(steepest, 0);
    double rows = sqrt(square) * least, in = T->gain * (rows + (T->m > 0 ? 1 : 0));
    double gain = (steepest + rows * in + (T->m > 0 ? in : 0)) * CGAM_SLACK;
    return gain >= 0 ? gain : INFINITY;
}
