/* lowest.c: the smallest eigenvalue of T = diag(D) + a Z Z' + sigma w w', with proof.
 *
 * When n <= d LAPACK answers on the n x n matrix. Otherwise inverse Lanczos: with a shift s below
 * the spectrum, (T - s)^-1 is positive definite and its largest eigenvalue is 1 / (lambda_min - s).
 * The free bracket [lo, hi] (dplr.h) tells where to put s: a tenth of its width below lo, so that
 * the eigenvalues near the bottom are spread over the scale of the shift whatever their cluster.
 * A Rayleigh quotient is an upper bound of lambda_min; one inertia count of T - (value - delta)
 * that finds no negative eigenvalue makes value - delta a lower bound. If it finds one, Lanczos
 * had missed it and goes on from a fresh vector with that knowledge. */
#include "base/blas.h"
#include "num/dplr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BASIS_MAX = 40, RESTARTS_MAX = 20, DENSE_MAX = 2048 };

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/* Entry (i, i) of T. */
static double diagonal(const cgam_dplr_spec *spec, int64_t i)
{
    double w = spec->w ? spec->w[i] : 0;
    return spec->D[i] + spec->a * spec->norm2[i] + spec->sigma * w * w;
}

cgam_status cgam_dplr_bracket(cgam_env *env, const cgam_dplr_spec *spec, double *lo, double *hi)
{
    int64_t n = spec->Z->n, rank = (spec->a > 0 ? spec->Z->d : 0) + (spec->w != NULL);
    double *sorted = cgam_alloc(env, (size_t)n, sizeof *sorted);
    if (!sorted) return cgam_fail_nomem(env, "a bracket");
    *hi = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = spec->D[i];
        *hi = fmin(*hi, diagonal(spec, i));
    }
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    *lo = sorted[0];
    if (rank < n) *hi = fmin(*hi, sorted[rank]);
    if (*hi < *lo) *hi = *lo; /* rounding of the diagonal entries */
    cgam_free(env, sorted);
    return CGAM_OK;
}

/* n <= d: LAPACK's smallest eigenpair of the n x n matrix. */
static cgam_status lowest_dense(cgam_env *env, const cgam_dplr_spec *spec, bool want_vector,
                                cgam_lowest *out)
{
    int64_t n = spec->Z->n;
    cgam_status status = CGAM_OK;
    double *T = cgam_alloc(env, (size_t)(n * n), sizeof *T);
    double *values = cgam_alloc(env, (size_t)n, sizeof *values);
    double *vector = cgam_alloc(env, (size_t)n, sizeof *vector);
    lapack_int support[2], found = 0;
    if (!T || !values || !vector) {
        status = cgam_fail_nomem(env, "a dense spectrum");
        goto done;
    }
    status = cgam_rows_gram_outer(env, spec->Z, T);
    if (status != CGAM_OK) goto done;
    double size = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            T[i * n + j] *= spec->a;
            if (spec->w) T[i * n + j] += spec->sigma * spec->w[i] * spec->w[j];
        }
        T[i * n + i] = diagonal(spec, i); /* without the rounding of large norms that cancel */
    }
    for (int64_t i = 0; i < n; i++) { /* the row-sum norm bounds what rounding can do */
        double total = 0;
        for (int64_t j = 0; j < n; j++) total += fabs(j <= i ? T[i * n + j] : T[j * n + i]);
        size = fmax(size, total);
    }
    lapack_int info = LAPACKE_dsyevr(LAPACK_COL_MAJOR, want_vector ? 'V' : 'N', 'I', 'U',
                                     (lapack_int)n, T, (lapack_int)n, 0, 0, 1, 1, 0, &found, values,
                                     vector, (lapack_int)n, support);
    if (info == LAPACK_WORK_MEMORY_ERROR) status = cgam_fail_nomem(env, "work of dsyevr");
    else if (info != 0 || found != 1)
        status = cgam_fail(env, CGAM_E_INTERNAL, "dsyevr: %d", (int)info);
    out->value = values[0];
    out->lo = values[0] - 4 * (double)n * 0x1p-53 * size;
    out->hi = values[0] + 4 * (double)n * 0x1p-53 * size;
    if (status == CGAM_OK && want_vector) {
        out->vector = vector;
        vector = NULL;
    }
done:
    cgam_free(env, T);
    cgam_free(env, values);
    cgam_free(env, vector);
    return status;
}

typedef struct search {
    cgam_env *env;
    const cgam_dplr_spec *spec;
    cgam_dplr *inverse;  /* T - shift, factored */
    double shift, scale; /* scale: largest |D_i| + a |zeta_i|^2 + sigma w_i^2 */
    int64_t n;
    int width;     /* Lanczos vectors before a restart, at most BASIS_MAX */
    double *basis; /* [width + 1, n], orthonormal */
    double *x, *y; /* [n] the current vector, and a product */
} search;

/* A vector with no special direction: a fixed sequence, so that results repeat. */
static void start_vector(int64_t n, int round, double *x)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(round + 1);
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        x[i] = (double)(state >> 11) * 0x1p-53 - 0.5;
    }
}

/* One cycle of Lanczos on the inverse from s->x, which it replaces by the best Ritz vector (unit).
 * Stops early when the residual of the inverse's Ritz pair is below `small` of its value. */
static cgam_status lanczos(search *s, double small, double *residual)
{
    int64_t n = s->n;
    double diag[BASIS_MAX], off[BASIS_MAX], d[BASIS_MAX], e[BASIS_MAX],
        vectors[BASIS_MAX * BASIS_MAX];
    double norm = cgam_vec_norm(n, s->x);
    int size = 0;
    *residual = INFINITY;
    for (int64_t i = 0; i < n; i++) s->basis[i] = s->x[i] / norm;
    for (int j = 0; j < s->width && j < n; j++) {
        double *v = s->basis + (int64_t)j * n, *next = v + n;
        cgam_status status = cgam_dplr_solve_once(s->inverse, v, next, s->y);
        if (status != CGAM_OK) return status;
        diag[j] = cgam_vec_dot(n, v, next);
        for (int twice = 0; twice < 2; twice++) { /* full reorthogonalisation */
            for (int k = 0; k <= j; k++) {
                double *u = s->basis + (int64_t)k * n, c = cgam_vec_dot(n, u, next);
                for (int64_t i = 0; i < n; i++) next[i] -= c * u[i];
            }
        }
        off[j] = cgam_vec_norm(n, next);
        size = j + 1;
        memcpy(d, diag, sizeof d);
        memcpy(e, off, sizeof e);
        lapack_int info =
            LAPACKE_dsteqr(LAPACK_COL_MAJOR, 'I', size, d, e, vectors, size > 0 ? size : 1);
        if (info != 0) return cgam_fail(s->env, CGAM_E_INTERNAL, "dsteqr: %d", (int)info);
        double *ritz = vectors + (size_t)(size - 1) * (size_t)size;
        *residual = off[j] * fabs(ritz[size - 1]) / d[size - 1];
        if (*residual <= small || off[j] <= 1e-14 * d[size - 1]) break;
        for (int64_t i = 0; i < n; i++) next[i] /= off[j];
    }
    double *ritz = vectors + (size_t)(size - 1) * (size_t)size;
    memset(s->x, 0, (size_t)n * sizeof *s->x);
    for (int k = 0; k < size; k++)
        for (int64_t i = 0; i < n; i++) s->x[i] += ritz[k] * s->basis[(int64_t)k * n + i];
    norm = cgam_vec_norm(n, s->x);
    for (int64_t i = 0; i < n; i++) s->x[i] /= norm;
    return CGAM_OK;
}

/* Vectors to keep: all of them while they are few bytes, otherwise an eighth of the bank's. */
static int basis_width(const cgam_rows *Z)
{
    if ((double)Z->n * BASIS_MAX <= 0x1p23) return BASIS_MAX;
    int64_t width = Z->stride * (int64_t)cgam_dtype_size(Z->dtype) / 64;
    return width < 8 ? 8 : width > BASIS_MAX ? BASIS_MAX : (int)width;
}

static cgam_status factor_shifted(search *s, double shift, cgam_dplr **out)
{
    double *D = cgam_alloc(s->env, (size_t)s->n, sizeof *D);
    if (!D) return cgam_fail_nomem(s->env, "a shifted operator");
    for (int64_t i = 0; i < s->n; i++) D[i] = s->spec->D[i] - shift;
    cgam_dplr_spec shifted = *s->spec;
    shifted.D = D;
    cgam_status status = cgam_dplr_new(s->env, &shifted, out);
    cgam_free(s->env, D);
    return status;
}

/* The Rayleigh quotient x'Tx of the unit vector s->x, added up so that D's large common part
 * cancels nothing: sum D_i x_i^2 + a |Z'x|^2 + sigma (w'x)^2. */
static cgam_status rayleigh(search *s, double *value)
{
    const cgam_dplr_spec *spec = s->spec;
    double total = 0;
    for (int64_t i = 0; i < s->n; i++) s->y[i] = spec->D[i] * s->x[i];
    total = cgam_vec_dot(s->n, s->y, s->x);
    if (spec->a > 0) {
        cgam_status status = cgam_rows_combine(s->env, spec->Z, s->x, s->y);
        if (status != CGAM_OK) return status;
        total += spec->a * cgam_vec_dot(spec->Z->d, s->y, s->y);
    }
    if (spec->w) {
        double wx = cgam_vec_dot(s->n, spec->w, s->x);
        total += spec->sigma * wx * wx;
    }
    *value = total;
    return CGAM_OK;
}

static cgam_status lowest_lanczos(search *s, double tol_abs, cgam_lowest *out)
{
    cgam_status status = factor_shifted(s, s->shift, &s->inverse);
    if (status != CGAM_OK) return status;
    out->value = out->hi;
    start_vector(s->n, 0, s->x);
    double small = 1e-9;
    for (int round = 0; round < RESTARTS_MAX; round++) {
        double residual, value;
        status = lanczos(s, small, &residual);
        if (status == CGAM_OK) status = rayleigh(s, &value);
        if (status != CGAM_OK) return status;
        value = fmax(value, out->lo); /* below it by rounding alone */
        out->value = fmin(out->value, value);
        out->hi = fmin(out->hi, value);
        /* |theta - theta_true| <= residual^2 / gap is what convergence gives; the first-order
         * bound below only decides when to stop, the count decides what is proved. */
        double slack = residual * (value - s->shift);
        if (slack > 1e3 * tol_abs && round + 1 < RESTARTS_MAX) continue;
        cgam_dplr *count;
        /* the count is that of a matrix within rounding of ours, so it is asked that much higher */
        double rounding = fmin(0x1p-46 * s->scale, 0.5 * tol_abs);
        status = factor_shifted(s, out->value - tol_abs + rounding, &count);
        if (status != CGAM_OK) return status;
        int64_t below = cgam_dplr_negative(count);
        bool singular = cgam_dplr_singular(count);
        cgam_dplr_free(count);
        if (below == 0 && !singular) {
            out->lo = fmax(out->lo, out->value - tol_abs);
            return CGAM_OK;
        }
        out->hi = fmin(out->hi, out->value - tol_abs);
        small = fmax(1e-2 * small, 1e-15); /* a cluster narrower than it looks converged at once */
        double keep = 1e-3; /* leave the vector found, but let the missed one grow in */
        start_vector(s->n, round + 1, s->y);
        for (int64_t i = 0; i < s->n; i++) s->x[i] = keep * s->x[i] + s->y[i];
    }
    return CGAM_OK; /* lo and hi still hold */
}

cgam_status cgam_dplr_lowest(cgam_env *env, const cgam_dplr_spec *spec, double tol,
                             bool want_vector, cgam_lowest *out)
{
    *out = (cgam_lowest){0};
    if (spec->a > 0 && spec->Z->n <= spec->Z->d) return lowest_dense(env, spec, want_vector, out);

    search s = {.env = env, .spec = spec, .n = spec->Z->n};
    cgam_status status = cgam_dplr_bracket(env, spec, &out->lo, &out->hi);
    if (status != CGAM_OK) return status;
    double scale = 0, least = INFINITY;
    for (int64_t i = 0; i < s.n; i++) {
        scale = fmax(scale, fabs(spec->D[i]) + fabs(diagonal(spec, i) - spec->D[i]));
        least = fmin(least, fabs(diagonal(spec, i)));
    }
    s.scale = scale;
    out->value = out->hi;
    double width = out->hi - out->lo;
    if (width <= tol * scale && !want_vector) return CGAM_OK;

    s.shift = out->lo - fmax(0.1 * width, 1e-10 * scale);
    s.width = basis_width(spec->Z);
    s.basis = cgam_alloc(env, (size_t)(s.width + 1) * (size_t)s.n, sizeof *s.basis);
    s.x = cgam_alloc(env, (size_t)(s.n > spec->Z->d ? s.n : spec->Z->d), sizeof *s.x);
    s.y = cgam_alloc(env, (size_t)(s.n > spec->Z->d ? s.n : spec->Z->d), sizeof *s.y);
    if (!s.basis || !s.x || !s.y) status = cgam_fail_nomem(env, "a basis of Lanczos vectors");
    else status = lowest_lanczos(&s, tol * scale, out);
    if (status == CGAM_OK && want_vector) {
        out->vector = s.x;
        s.x = NULL;
    }
    /* Norms of very different size leave more rounding than the answer is large. The matrix itself,
     * whose diagonal is exact, does not; where it is small, ask it. */
    if (status == CGAM_OK && s.n <= DENSE_MAX &&
        out->hi - out->lo > 1e-9 * fmax(fabs(out->value), least)) {
        cgam_free(env, out->vector);
        status = lowest_dense(env, spec, want_vector, out);
    }
    cgam_dplr_free(s.inverse);
    cgam_free(env, s.basis);
    cgam_free(env, s.x);
    cgam_free(env, s.y);
    return status;
}
