/* dplr.c: solving and counting with T = diag(D) + B B',  B = [sqrt(a) Z, sqrt(sigma) w], n x k.
 *
 * T y = x is the first block row of the bordered system
 *
 *     [ D   B ] [y]   [x]
 *     [ B' -I ] [t] = [0] ,     t = B' y .
 *
 * Rows R with a safe pivot D_i are eliminated, the others, S, stay; the remaining system is small:
 *
 *     K = [ -M   B_S' ]   M = I + B_R' D_R^-1 B_R  (k x k),     unknowns (t, y_S),
 *         [ B_S  D_S  ]   right side (-B_R' D_R^-1 x_R, x_S),
 *
 * then y_R = D_R^-1 (x_R - B_R t). Sylvester's law on both eliminations counts eigenvalues:
 *     neg T = neg D_R + neg K - k .
 * S exists because a legal alpha may make 1 - alpha n_i vanish (such rows join the dense
 * block). K is factored by Bunch and Kaufman's method, which allows indefinite K.
 *
 * For x = Z v the substitution t = v / sqrt(a) + t' removes the cancellation: K (t', y_S) =
 * (v / sqrt(a), 0) and y_R = -sqrt(a) D_R^-1 Z_R t'.
 */
#include "num/dplr_parts.h"
#include "num/eigen.h"
#include "num/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REFINE_MAX = 8, DENSE_MAX = 2048, FEW = 32 };
static const double CANCELS = 64;
static const double PIVOT_SAFE = 1e-3; /* |D_i| relative to its diagonal entry's parts */
static const double PIVOT_FEW = 2e-2;  /* and where fewer than k / FEW rows are below this */

/* Use T as a matrix if that is smaller than K, or if a |zeta|^2 is so large that the rounding of D_i = 1 - a
 * |zeta_i|^2 would affect A. */
bool cgam_dplr_is_dense(const cgam_dplr_spec *s)
{
    if (!(s->a > 0) || s->Z->n <= s->Z->d) return s->a > 0;
    bool large = false;
    for (int64_t i = 0; s->Z->n <= DENSE_MAX && i < s->Z->n && !large; i++)
        large = s->a * s->norm2[i] > CANCELS;
    return large;
}

double cgam_dplr_cost(const cgam_dplr_spec *spec)
{
    double side =
        cgam_dplr_is_dense(spec) ? (double)spec->Z->n : 2 * (double)cgam_dplr_columns(spec);
    return side * side;
}

void cgam_dplr_free(cgam_dplr *T)
{
    if (!T) return;
    cgam_env *env = T->env;
    void *arrays[] = {T->border, T->K, T->diagonal, T->pivots};
    for (size_t i = 0; !T->borrowed && i < sizeof arrays / sizeof *arrays; i++)
        cgam_free(env, arrays[i]);
    if (!T->borrowed && T->dinv != T->D) cgam_vec_free(env, T->Z, T->dinv);
    if (!T->borrowed) cgam_vec_free(env, T->Z, T->D);
    cgam_free(env, T);
}

size_t cgam_dplr_bytes(const cgam_dplr *T)
{
    size_t size = (size_t)(T->dense ? T->n : T->k + T->m);
    return (size * size + 2 * (size_t)cgam_vec_size(T->Z) + 2 * size) * sizeof(double);
}

/* Bunch-Kaufman of the size x size matrix in T->K, and the signs of its eigenvalues: those of the
 * 1 x 1 and 2 x 2 blocks of the middle factor. */
static cgam_status factor_small(cgam_dplr *T, int64_t size, int64_t *negative)
{
    *negative = 0;
    if (size == 0) return CGAM_OK;
    T->pivots = cgam_alloc(T->env, (size_t)size, sizeof *T->pivots);
    if (!T->pivots) return cgam_fail_nomem(T->env, "pivots");
    cgam_status status = cgam_factor_symmetric(T->env, size, T->K, T->pivots, &T->singular);
    if (status != CGAM_OK) return status;
    for (int64_t j = 0; j < size; j++) {
        if (T->pivots[j] > 0) {
            *negative += T->K[j * size + j] < 0;
        } else { /* columns j and j + 1 form a 2 x 2 block, which is always indefinite */
            *negative += 1;
            j++;
        }
    }
    return CGAM_OK;
}

static cgam_status build_dense(cgam_dplr *T, const cgam_dplr_spec *spec)
{
    int64_t n = T->n;
    T->K = cgam_alloc(T->env, (size_t)(n * n), sizeof *T->K);
    if (!T->K) return cgam_fail_nomem(T->env, "the gate operator in memory space");
    double error;
    cgam_status status = cgam_dplr_matrix(T->env, spec, false, T->K, &error);
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) T->K[j * n + i] = T->K[i * n + j];
        T->D[i] = T->K[i * n + i];
        T->norm = fmax(T->norm, fabs(T->D[i]));
    }
    return factor_small(T, n, &T->negative);
}

typedef struct candidate {
    double ratio;
    int64_t row;
} candidate;

static int by_ratio(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->ratio != b->ratio) return a->ratio < b->ratio ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int by_row(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* Rows whose pivot is small relative to the number to subtract, at most k of them. If there are more, T itself has
 * eigenvalues as small as the (k+1)-th smallest pivot (interlacing), so only pivots much smaller than that go to the
 * border; refinement corrects the rest. A few pivots that are acceptable, but would require refinement of every
 * solve, are cheaper in the border. */
static cgam_status choose_border(cgam_dplr *T, const double *load)
{
    double below_few, below_safe, small;
    CGAM_REDUCE(T->Z, i, CGAM_SUM(below_few), CGAM_SUM(below_safe), CGAM_SUM(small)) {
        double size = fabs(T->D[i]) + load[i], ratio = fabs(T->D[i]) / size;
        below_few += !(ratio >= PIVOT_FEW);
        below_safe += !(ratio >= PIVOT_SAFE);
        small += !(fabs(T->D[i]) >= PIVOT_FEW * size);
    }
    cgam_status status = cgam_rows_status(T->Z);
    if (status != CGAM_OK) return status;
    bool many = (int64_t)small >= T->k / FEW;
    double safe = many ? PIVOT_SAFE : PIVOT_FEW;
    int64_t mine = 0, count = 0, capacity = (int64_t)(many ? below_safe : below_few) + 1;
    void *all = NULL;
    if (capacity > cgam_vec_size(T->Z) + 1) capacity = cgam_vec_size(T->Z) + 1;
    candidate *list = cgam_alloc(T->env, (size_t)capacity, sizeof *list);
    T->border = cgam_alloc(T->env, (size_t)T->k + 1, sizeof *T->border);
    if (!list || !T->border) status = cgam_fail_nomem(T->env, "border rows");
    CGAM_EACH_ROW(T->Z, i) {
        double ratio = fabs(T->D[i]) / (fabs(T->D[i]) + load[i]);
        if (status != CGAM_OK) break;
        if (!(ratio >= safe)) /* 0 / 0, a zero row with a zero pivot, is the worst case */
            list[mine++] = (candidate){isnan(ratio) ? 0 : ratio, i};
    }
    if (status == CGAM_OK && mine > T->k) { /* at most k rows, and the next, can matter */
        qsort(list, (size_t)mine, sizeof *list, by_ratio);
        mine = T->k + 1;
    }
    if (status == CGAM_OK)
        status = cgam_rows_collect(T->env, T->Z, sizeof *list, mine, list, &count, &all);
    cgam_free(T->env, list);
    if (status != CGAM_OK) return status;
    list = all;
    if (count > T->k) {
        qsort(list, (size_t)count, sizeof *list, by_ratio);
        double outlier = 1e-2 * list[T->k].ratio;
        for (count = 0; count < T->k && list[count].ratio < outlier;) count++;
    }
    T->m = count;
    for (int64_t i = 0; i < T->m; i++) T->border[i] = list[i].row;
    qsort(T->border, (size_t)T->m, sizeof *T->border, by_row);
    cgam_free(T->env, list);
    return CGAM_OK;
}

/* K -= B_R' D_R^-1 B_R of the bank's columns; overwrites load [n]. */
static cgam_status add_gram(cgam_dplr *T, const cgam_dplr_spec *spec, double *load, int64_t size)
{
    int64_t d = T->d;
    CGAM_EACH_ROW(T->Z, i) load[i] = -T->a * T->dinv[i];
    if (!spec->gram || T->m > 0) return cgam_rows_gram(T->env, T->Z, load, T->K, size);
    double factor; /* all are one number */
    cgam_status status = cgam_vec_pick(T->Z, load, 1, &(int64_t){0}, &factor);
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++) T->K[i * size + j] = factor * spec->gram[i * d + j];
    return CGAM_OK;
}

/* Computes dinv and counts the negative pivots. */
static cgam_status invert_pivots(cgam_dplr *T)
{
    /* Vanishing pivots that outnumber k share a kernel: T is singular to working precision. A shift below its
     * backward error keeps x = Z v solvable; the solution is the limit of the solutions. */
    double tiny = 0x1p-52 * T->norm, vanishing, negative;
    CGAM_REDUCE(T->Z, i, CGAM_SUM(vanishing)) vanishing += fabs(T->D[i]) <= tiny;
    T->vanishing = vanishing > (double)T->k;
    CGAM_EACH_ROW(T->Z, i) {
        if (T->vanishing && fabs(T->D[i]) <= tiny) T->D[i] = tiny;
        T->dinv[i] = 1 / T->D[i];
    }
    for (int64_t s = 0; s < T->m; s++)
        if (cgam_vec_has(T->Z, T->border[s])) T->dinv[T->border[s]] = 0;
    CGAM_REDUCE(T->Z, i, CGAM_SUM(negative)) negative += T->dinv[i] < 0;
    cgam_status status = cgam_rows_status(T->Z);
    if (status == CGAM_OK) T->negative = (int64_t)negative;
    return status;
}

static cgam_status build_bordered(cgam_dplr *T, const cgam_dplr_spec *spec)
{
    cgam_env *env = T->env;
    int64_t k = T->k, kz = T->a > 0 ? T->d : 0;
    cgam_status status = CGAM_OK;
    double most;
    double *load = cgam_vec_new(env, T->Z, 1); /* a |zeta|^2 + sigma w^2 */
    T->dinv = cgam_vec_new(env, T->Z, 1);
    if (!load || !T->dinv) {
        status = cgam_fail_nomem(env, "pivots");
        goto done;
    }
    CGAM_REDUCE(T->Z, i, CGAM_MAX(most)) {
        load[i] = T->a * T->norm2[i] + (T->w ? T->sigma * T->w[i] * T->w[i] : 0);
        most = fmax(most, fabs(cgam_dplr_diagonal(spec, i, NULL)));
    }
    status = cgam_rows_status(T->Z);
    T->norm = fmax(most, 0);
    if (status == CGAM_OK) status = choose_border(T, load);
    if (status == CGAM_OK) status = invert_pivots(T);
    if (status != CGAM_OK) goto done;

    int64_t size = k + T->m, row = 0;
    T->K = cgam_zalloc(env, (size_t)(size * size), sizeof *T->K);
    double *column = cgam_alloc(env, (size_t)(T->d > 0 ? T->d : 1), sizeof *column);
    if (!T->K || !column) {
        cgam_free(env, column);
        status = cgam_fail_nomem(env, "the small system of the gate operator");
        goto done;
    }
    if (kz) {
        status = add_gram(T, spec, load, size);
        row = kz;
    }
    if (status == CGAM_OK && T->w) {
        double total;
        CGAM_REDUCE(T->Z, i, CGAM_SUM(total)) {
            load[i] = T->w[i] * T->dinv[i];
            total += load[i] * T->w[i];
        }
        status = cgam_rows_status(T->Z);
        if (kz && status == CGAM_OK) {
            status = cgam_rows_combine(env, T->Z, load, column);
            for (int64_t j = 0; j < kz; j++)
                T->K[row * size + j] = -sqrt(T->a * T->sigma) * column[j];
        }
        T->K[row * size + row] = -T->sigma * total;
    }
    for (int64_t j = 0; j < k; j++) T->K[j * size + j] -= 1;
    if (status == CGAM_OK && T->m > 0)
        status =
            cgam_rows_bring_with(env, T->Z, T->m, T->border, (const double *[]){T->D, T->w}, 2);
    for (int64_t s = 0; s < T->m && status == CGAM_OK; s++) {
        double *r = T->K + (k + s) * size;
        int64_t i = T->border[s];
        if (kz) {
            cgam_rows_get(T->Z, i, 1, column);
            for (int64_t j = 0; j < kz; j++) r[j] = sqrt(T->a) * column[j];
        }
        if (T->w) r[kz] = sqrt(T->sigma) * *cgam_rows_entries(T->Z, T->w, i);
        r[k + s] = *cgam_rows_entries(T->Z, T->D, i);
    }
    cgam_free(env, column);
    if (status == CGAM_OK && kz && !T->w) status = cgam_dplr_keep(T, spec);
    if (status == CGAM_OK) {
        int64_t negative;
        status = factor_small(T, size, &negative);
        T->negative += negative - k;
    }
done:
    cgam_vec_free(env, T->Z, load);
    return status;
}

/* T = level I, level above 0: no border and no small system. */
static cgam_status build_flat(cgam_dplr *T, double level)
{
    T->dinv = level == 1 ? T->D : cgam_vec_new(T->env, T->Z, 1);
    if (!T->dinv) return cgam_fail_nomem(T->env, "pivots");
    T->norm = level;
    cgam_vec_fill(T->Z, T->dinv, 1 / level);
    cgam_vec_fill(T->Z, T->D, level);
    return CGAM_OK;
}

cgam_status cgam_dplr_new(cgam_env *env, const cgam_dplr_spec *spec, cgam_dplr **out)
{
    *out = NULL;
    cgam_dplr *T = cgam_zalloc(env, 1, sizeof *T);
    if (!T) return cgam_fail_nomem(env, "a gate operator");
    T->env = env;
    T->Z = spec->Z;
    T->norm2 = spec->norm2;
    T->n = spec->Z->n;
    T->d = spec->Z->d;
    T->a = spec->a;
    T->w = spec->sigma > 0 ? spec->w : NULL;
    T->sigma = T->w ? spec->sigma : 0;
    T->k = cgam_dplr_columns(spec);
    T->dense = cgam_dplr_is_dense(spec);
    T->D = cgam_vec_new(env, T->Z, 1);
    cgam_status status = CGAM_OK;
    if (!T->D) {
        status = cgam_fail_nomem(env, "the diagonal of a gate operator");
    } else if (T->k == 0 && !spec->D && spec->level > 0) {
        status = build_flat(T, spec->level);
    } else {
        CGAM_EACH_ROW(T->Z, i) T->D[i] = cgam_dplr_pivot(spec, i, NULL);
        status = T->dense ? build_dense(T, spec) : build_bordered(T, spec);
    }
    if (status != CGAM_OK) {
        cgam_dplr_free(T);
        return status;
    }
    *out = T;
    return CGAM_OK;
}

int64_t cgam_dplr_negative(const cgam_dplr *T) { return T->negative; }
bool cgam_dplr_singular(const cgam_dplr *T) { return T->singular || T->vanishing; }
bool cgam_dplr_dense(const cgam_dplr *T) { return T->dense; }
const double *cgam_dplr_dinv(const cgam_dplr *T) { return T->dinv; }

int64_t cgam_dplr_border(const cgam_dplr *T, const int64_t **index)
{
    if (index) *index = T->border;
    return T->m;
}

cgam_status cgam_dplr_outer(cgam_env *env, const cgam_rows *Z, const double *x, double *y,
                            double *size)
{
    double *t = cgam_alloc(env, (size_t)Z->d, sizeof *t);
    if (!t) return cgam_fail_nomem(env, "a product with the gate operator");
    cgam_status status = cgam_rows_combine(env, Z, x, t);
    if (status == CGAM_OK) status = cgam_rows_score(env, Z, t, y);
    if (size) *size = cgam_array_norm(Z->d, t) * (1 + 2 * (double)Z->d * 0x1p-53);
    cgam_free(env, t);
    return status;
}

cgam_status cgam_dplr_apply(const cgam_dplr *T, const double *x, double *y)
{
    cgam_status status = CGAM_OK;
    int64_t n = T->n;
    if (T->dense) { /* uses the upper triangle, which still holds T; BLAS rounding depends on alignment */
        double *z = cgam_alloc(T->env, (size_t)(2 * n), sizeof *z), *sum = z + n;
        if (!z) return cgam_fail_nomem(T->env, "a product with the gate operator");
        memcpy(z, x, (size_t)n * sizeof *z);
        for (int64_t i = 0; i < n; i++) sum[i] = T->D[i] * z[i];
        for (int64_t i = 0; i + 1 < n; i++) {
            const double *row = T->K + i * n + i + 1;
            sum[i] += cblas_ddot((int)(n - i - 1), row, 1, z + i + 1, 1);
            cblas_daxpy((int)(n - i - 1), z[i], row, 1, sum + i + 1, 1);
        }
        memcpy(y, sum, (size_t)n * sizeof *y);
        cgam_free(T->env, z);
        return CGAM_OK;
    }
    if (T->a > 0) status = cgam_dplr_outer(T->env, T->Z, x, y, NULL);
    if (status != CGAM_OK) return status;
    double wx = T->w ? T->sigma * cgam_vec_dot(T->Z, T->w, x) : 0;
    CGAM_EACH_ROW(T->Z, i)
        y[i] = T->D[i] * x[i] + (T->a > 0 ? T->a * y[i] : 0) + (T->w ? T->w[i] * wx : 0);
    return status;
}

/* Overwrites xy[size] with K^-1 xy. */
static cgam_status small_solve(const cgam_dplr *T, int64_t size, double *xy)
{
    if (size == 0) return CGAM_OK;
    if (T->singular) return cgam_fail(T->env, CGAM_E_SINGULAR, "the gate operator is singular");
    return cgam_factor_solve(T->env, size, T->K, T->pivots, 1, xy);
}

cgam_status cgam_dplr_dense_solve(const cgam_dplr *T, double *xy)
{
    return small_solve(T, T->n, xy);
}

cgam_status cgam_dplr_reduce(const cgam_dplr *T, const double *g, const double *x_border, double *t,
                             double *y_border)
{
    int64_t k = T->k, size = k + T->m;
    double root = sqrt(T->a);
    double *z = cgam_alloc(T->env, (size_t)size + 1, sizeof *z);
    if (!z) return cgam_fail_nomem(T->env, "a small system");
    for (int64_t j = 0; j < k; j++) z[j] = -root * g[j];
    for (int64_t s = 0; s < T->m; s++) z[k + s] = x_border[s];
    cgam_status status = small_solve(T, size, z);
    for (int64_t j = 0; j < T->d; j++) t[j] = k ? root * z[j] : 0;
    for (int64_t s = 0; s < T->m; s++) y_border[s] = z[k + s];
    cgam_free(T->env, z);
    return status;
}

cgam_status cgam_dplr_range(const cgam_dplr *T, const double *v, double *e, double *y_border)
{
    int64_t k = T->k, size = k + T->m;
    if (k == 0) { /* a = 0: T is diagonal, and y_i = dinv_i <zeta_i, v> */
        cgam_status found = T->m > 0 ? cgam_rows_bring_with(T->env, T->Z, T->m, T->border,
                                                            (const double *[]){T->D}, 1)
                                     : CGAM_OK;
        memcpy(e, v, (size_t)T->d * sizeof *e);
        for (int64_t s = 0; s < T->m && found == CGAM_OK; s++) {
            double x;
            cgam_rows_dot(T->Z, T->border[s], 1, v, &x);
            y_border[s] = x / *cgam_rows_entries(T->Z, T->D, T->border[s]);
        }
        return found;
    }
    double root = sqrt(T->a);
    double *z = cgam_zalloc(T->env, (size_t)size, sizeof *z);
    if (!z) return cgam_fail_nomem(T->env, "a small system");
    for (int64_t j = 0; j < k; j++) z[j] = v[j] / root;
    cgam_status status = small_solve(T, size, z);
    for (int64_t j = 0; j < k; j++) e[j] = -root * z[j];
    for (int64_t s = 0; s < T->m; s++) y_border[s] = z[k + s];
    cgam_free(T->env, z);
    return status;
}

cgam_status cgam_dplr_solve_once(const cgam_dplr *T, const double *x, double *y, double *scratch)
{
    int64_t n = T->n, k = T->k, kz = T->a > 0 ? T->d : 0, size = k + T->m;
    if (T->dense) { /* in scratch: BLAS rounding depends on the alignment of vectors */
        memcpy(scratch, x, (size_t)n * sizeof *scratch);
        cgam_status dense = small_solve(T, n, scratch);
        memcpy(y, scratch, (size_t)n * sizeof *y);
        return dense;
    }
    cgam_status status = CGAM_OK;
    double *z = cgam_zalloc(T->env, (size_t)size + 1, sizeof *z);
    if (!z) return cgam_fail_nomem(T->env, "a small system");
    CGAM_EACH_ROW(T->Z, i) scratch[i] = T->dinv[i] * x[i];
    if (kz) {
        status = cgam_rows_combine(T->env, T->Z, scratch, z);
        for (int64_t j = 0; j < kz; j++) z[j] *= -sqrt(T->a);
    }
    if (T->w && status == CGAM_OK) z[kz] = -sqrt(T->sigma) * cgam_vec_dot(T->Z, T->w, scratch);
    if (status == CGAM_OK) status = cgam_vec_pick(T->Z, x, T->m, T->border, z + k);
    if (status == CGAM_OK) status = small_solve(T, size, z);
    if (status == CGAM_OK && kz) {
        for (int64_t j = 0; j < kz; j++) z[j] *= sqrt(T->a);
        status = cgam_rows_score(T->env, T->Z, z, scratch);
    }
    double tw = T->w ? sqrt(T->sigma) * z[kz] : 0;
    CGAM_EACH_ROW(T->Z, i)
        y[i] = T->dinv[i] * (x[i] - (kz ? scratch[i] : 0) - (T->w ? T->w[i] * tw : 0));
    for (int64_t s = 0; s < T->m; s++)
        if (cgam_vec_has(T->Z, T->border[s])) y[T->border[s]] = z[k + s];
    cgam_free(T->env, z);
    return status;
}

cgam_status cgam_dplr_solve(const cgam_dplr *T, const double *x, double *y, double *backward)
{
    cgam_env *env = T->env;
    double *r = cgam_vec_new(env, T->Z, 1);
    double *step = cgam_vec_new(env, T->Z, 1);
    double *scratch = cgam_vec_new(env, T->Z, 1);
    cgam_status status = CGAM_OK;
    double size_x = cgam_vec_norm(T->Z, x), error = 0, before = INFINITY;
    if (!r || !step || !scratch) status = cgam_fail_nomem(T->env, "a solve");
    if (status == CGAM_OK) status = cgam_dplr_solve_once(T, x, y, scratch);
    /* One step is enough while eps |B|^2 / min |D| is small; near the critical alpha each further step gains the same
     * factor again, so continue while the error falls. */
    for (int pass = 0; status == CGAM_OK; pass++) {
        status = cgam_dplr_apply(T, y, r);
        if (status != CGAM_OK) break;
        CGAM_EACH_ROW(T->Z, i) r[i] = x[i] - r[i];
        double scale = T->norm * cgam_vec_norm(T->Z, y) + size_x;
        error = scale > 0 ? cgam_vec_norm(T->Z, r) / scale : 0;
        if (pass > 0 && !(error < 0.5 * before)) { /* no gain: keep the better of the two */
            if (!(error <= before)) {
                CGAM_EACH_ROW(T->Z, i) y[i] -= step[i];
                error = before;
            }
            break;
        }
        if (error <= 1e-16 || pass == REFINE_MAX) break;
        before = error;
        status = cgam_dplr_solve_once(T, r, step, scratch);
        CGAM_EACH_ROW(T->Z, i) y[i] += step[i];
    }
    if (backward) *backward = error;
    cgam_vec_free(env, T->Z, r);
    cgam_vec_free(env, T->Z, step);
    cgam_vec_free(env, T->Z, scratch);
    return status;
}
