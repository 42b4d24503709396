/* lowest.c: the smallest eigenvalue of T = diag(D) + a Z Z' + sigma w w', with proof.
 *
 * Small or n <= d: LAPACK solves the n x n matrix; the Rayleigh quotient of its vector is an upper bound, and x is a
 * lower bound if Cholesky's factorisation of T - x I completes, each with its rounding (num/dplr_proof.c). Otherwise
 * inverse Lanczos: with a shift s below the spectrum, (T - s)^-1 is positive definite and its largest eigenvalue is 1
 * / (lambda_min - s). The free bracket [lo, hi] (dplr.h) determines s: a tenth of its width below lo, so that the
 * eigenvalues near the bottom are spread over the scale of the shift whatever their cluster. If value - delta cannot
 * be proved a lower bound and a count finds an eigenvalue below it, Lanczos missed it, and restarts from a new vector
 * with that information. */
#include "num/dplr.h"
#include "num/eigen.h"
#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { BASIS_MAX = 40, RESTARTS_MAX = 20, DENSE_MAX = 2048, PROOFS_MAX = 24 };

/* The position of x among all doubles in order, and the inverse. */
static uint64_t place_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static double at_place(uint64_t place)
{
    uint64_t bits = place >> 63 ? place & ~((uint64_t)1 << 63) : ~place;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The entry of x with `rank` entries below or equal to it, by bisection of its range: without sorting, and without
 * gathering x. [low, high] contains it. */
static cgam_status select_entry(const cgam_rows *Z, const double *x, int64_t rank, double low,
                                double high, double *out)
{
    uint64_t from = place_of(low + 0.0), to = place_of(high + 0.0);
    cgam_status status = CGAM_OK;
    while (from < to && status == CGAM_OK) {
        uint64_t middle = from + (to - from) / 2;
        double limit = at_place(middle), below;
        CGAM_REDUCE(Z, i, CGAM_SUM(below)) below += x[i] <= limit;
        status = cgam_rows_status(Z);
        if (below > (double)rank) to = middle;
        else from = middle + 1;
    }
    *out = at_place(from);
    return status;
}

cgam_status cgam_dplr_bracket(cgam_env *env, const cgam_dplr_spec *spec, double *lo, double *hi)
{
    const cgam_rows *Z = spec->Z;
    int64_t rank = (spec->a > 0 ? Z->d : 0) + (spec->w != NULL);
    double *above = cgam_vec_new(env, Z, 1), e, entry, least, most;
    if (!above) return cgam_fail_nomem(env, "a bracket");
    CGAM_REDUCE(Z, i, CGAM_MIN(*lo), CGAM_MIN(*hi), CGAM_MIN(least), CGAM_MAX(most)) {
        double D = cgam_dplr_pivot(spec, i, &e);
        *lo = fmin(*lo, spec->a == 0 && !spec->w ? D : cgam_below(D - e));
        above[i] = cgam_above(D + e) + 0.0; /* no -0 */
        least = fmin(least, above[i]);
        most = fmax(most, above[i]);
        *hi = fmin(*hi, cgam_dplr_diagonal(spec, i, &e) + e);
    }
    cgam_status status = cgam_rows_status(Z);
    if (status == CGAM_OK && rank < Z->n) {
        status = select_entry(Z, above, rank, least, most, &entry);
        *hi = fmin(*hi, entry);
    }
    if (spec->a == 0 && !spec->w) *hi = *lo; /* T is diagonal */
    cgam_vec_free(env, Z, above);
    return status;
}

/* Upper bound of x'Tx / x'x: T a matrix with an error of at most `error`, lower triangle by rows. */
static double quotient_above(int64_t n, const double *T, double error, const double *x)
{
    double total = 0, size = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double row = 0, abs = 0;
        for (int64_t j = 0; j < i; j++) {
            row += T[i * n + j] * x[j];
            abs += fabs(T[i * n + j] * x[j]);
        }
        total += x[i] * (2 * row + T[i * n + i] * x[i]);
        size += fabs(x[i]) * (2 * abs + fabs(T[i * n + i] * x[i]));
        square += x[i] * x[i];
    }
    double off = cgam_gamma(2 * (double)n + 8) * size + CGAM_TINY;
    return cgam_above(total / square +
                      (off / square + 2 * (double)n * CGAM_U * fabs(total) / square) * CGAM_SLACK +
                      error * CGAM_SLACK);
}

/* *below = the largest x near `value` for which Cholesky's method proves that no eigenvalue of T, off by
 * `error`, is below; -INFINITY if there is none. B [n, n] scratch. */
static cgam_status prove_below(cgam_env *env, int64_t n, const double *T, double error,
                               double value, double *B, double *below)
{
    cgam_status status = CGAM_OK;
    bool ends;
    *below = -INFINITY;
    double size = 0;
    for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(T[i * n + i] - value));
    double step =
        error + cgam_cholesky_error(n, (double)n * size) + 8 * CGAM_U * (size + fabs(value));
    for (int k = 0; k < PROOFS_MAX && status == CGAM_OK; k++, step *= k < 4 ? 2 : 8) {
        double x = value - step, trace = 0, rounding = 0;
        memcpy(B, T, (size_t)(n * n) * sizeof *B);
        for (int64_t i = 0; i < n; i++) {
            B[i * n + i] -= x;
            trace += fmax(B[i * n + i], 0);
            rounding = fmax(rounding, CGAM_U * fabs(B[i * n + i]));
        }
        if (!isfinite(trace)) break;
        status = cgam_cholesky_ends(env, n, B, &ends);
        if (status != CGAM_OK || !ends) continue;
        *below = cgam_below(x - (error + rounding + cgam_cholesky_error(n, trace)) * CGAM_SLACK);
        break;
    }
    return status;
}

/* LAPACK's smallest eigenpair of the n x n matrix, scaled to size 1, and its proof. */
static cgam_status lowest_dense(cgam_env *env, const cgam_dplr_spec *spec, bool twice,
                                bool want_vector, cgam_lowest *out)
{
    int64_t n = spec->Z->n;
    double *T = cgam_zalloc(env, (size_t)(2 * n * n), sizeof *T), *B = T ? T + n * n : NULL;
    double *values = cgam_alloc(env, (size_t)(2 * n), sizeof *values);
    double *vector = cgam_alloc(env, (size_t)n, sizeof *vector), error, size = 0;
    cgam_status status = CGAM_OK;
    if (!T || !values || !vector) status = cgam_fail_nomem(env, "a dense spectrum");
    if (status == CGAM_OK) status = cgam_dplr_matrix(env, spec, twice, T, &error);
    if (status != CGAM_OK) goto done;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            if (!(fabs(T[i * n + j]) <= size)) size = fabs(T[i * n + j]); /* NaN stays */
    if (!isfinite(size) || !isfinite(error)) {
        status =
            cgam_fail(env, CGAM_E_VALUE, "an operator with entries beyond the range of double");
        goto done;
    }
    int power = 0;
    frexp(size, &power);
    for (int64_t i = 0; i < n * n; i++) B[i] = T[i] = ldexp(T[i], -power);
    error = ldexp(error, -power) + CGAM_TINY;
    status = cgam_eigen_some(env, n, 0, 0, B, values, vector);
    if (status != CGAM_OK) goto done;
    out->value = ldexp(values[0], power);
    out->hi = cgam_above(ldexp(quotient_above(n, T, error, vector), power));
    status = prove_below(env, n, T, error, values[0], B, &out->lo);
    out->lo = cgam_below(ldexp(out->lo, power));
    if (want_vector && status == CGAM_OK) {
        out->vector = vector;
        vector = NULL;
    }
done:
    cgam_free(env, T);
    cgam_free(env, values);
    cgam_free(env, vector);
    return status;
}

/* The same, with products in twice the precision if plain ones leave more than 2^-33 of the value open. */
static cgam_status lowest_matrix(cgam_env *env, const cgam_dplr_spec *spec, bool want_vector,
                                 cgam_lowest *out)
{
    cgam_status status = lowest_dense(env, spec, false, want_vector, out);
    if (status != CGAM_OK || out->hi - out->lo <= 0x1p-33 * fabs(out->value)) return status;
    if (want_vector) cgam_vec_free(env, spec->Z, out->vector);
    out->vector = NULL;
    return lowest_dense(env, spec, true, want_vector, out);
}

typedef struct search {
    cgam_env *env;
    const cgam_dplr_spec *spec;
    cgam_dplr *inverse; /* T - shift, factored */
    double shift;
    int width;     /* Lanczos vectors before a restart, at most BASIS_MAX */
    double *basis; /* [width + 1, n], orthonormal */
    double *x, *y; /* [n] the current vector, and a product */
    double *sum;   /* [d] */
} search;

/* A vector without a special direction: a fixed sequence, so that results are reproducible. */
static void start_vector(const cgam_rows *Z, int round, double *x)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(round + 1);
    for (int64_t i = 0; i < cgam_vec_end(Z); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (i >= cgam_vec_begin(Z)) x[i] = (double)(state >> 11) * 0x1p-53 - 0.5;
    }
}

/* One cycle of Lanczos on the inverse from s->x, which it replaces by the best Ritz vector (unit).
 * Stops early when the residual of the inverse's Ritz pair is below `small` of its value. */
static cgam_status lanczos(search *s, double small, double *residual)
{
    const cgam_rows *Z = s->spec->Z;
    int64_t apart = cgam_vec_size(Z);
    double diag[BASIS_MAX], off[BASIS_MAX], d[BASIS_MAX], e[BASIS_MAX],
        vectors[BASIS_MAX * BASIS_MAX];
    double norm = cgam_vec_norm(Z, s->x);
    int size = 0;
    *residual = INFINITY;
    CGAM_EACH_ROW(Z, i) s->basis[i] = s->x[i] / norm;
    for (int j = 0; j < s->width && j < Z->n; j++) {
        double *v = s->basis + (int64_t)j * apart, *next = v + apart;
        cgam_status status = cgam_dplr_solve_once(s->inverse, v, next, s->y);
        if (status != CGAM_OK) return status;
        diag[j] = cgam_vec_dot(Z, v, next);
        for (int twice = 0; twice < 2; twice++) { /* full reorthogonalisation */
            for (int k = 0; k <= j; k++) {
                double *u = s->basis + (int64_t)k * apart, c = cgam_vec_dot(Z, u, next);
                CGAM_EACH_ROW(Z, i) next[i] -= c * u[i];
            }
        }
        off[j] = cgam_vec_norm(Z, next);
        size = j + 1;
        status = cgam_rows_status(Z);
        if (status != CGAM_OK) return status;
        memcpy(d, diag, sizeof d);
        memcpy(e, off, sizeof e);
        lapack_int info =
            LAPACKE_dsteqr(LAPACK_COL_MAJOR, 'I', size, d, e, vectors, size > 0 ? size : 1);
        if (info != 0)
            return cgam_fail(s->env, CGAM_E_INTERNAL, "LAPACK: dsteqr failed (info = %d)",
                             (int)info);
        double *ritz = vectors + (size_t)(size - 1) * (size_t)size;
        *residual = off[j] * fabs(ritz[size - 1]) / d[size - 1];
        if (*residual <= small || off[j] <= 1e-14 * d[size - 1]) break;
        CGAM_EACH_ROW(Z, i) next[i] /= off[j];
    }
    double *ritz = vectors + (size_t)(size - 1) * (size_t)size;
    cgam_vec_fill(Z, s->x, 0);
    for (int k = 0; k < size; k++)
        CGAM_EACH_ROW(Z, i) s->x[i] += ritz[k] * s->basis[(int64_t)k * apart + i];
    norm = cgam_vec_norm(Z, s->x);
    CGAM_EACH_ROW(Z, i) s->x[i] /= norm;
    return CGAM_OK;
}

/* The number of vectors to keep: all if they are small, otherwise up to an eighth of the bank's bytes. */
static int basis_width(const cgam_rows *Z)
{
    if ((double)Z->n * BASIS_MAX <= 0x1p23) return BASIS_MAX;
    int64_t width = Z->stride * (int64_t)cgam_dtype_size(Z->dtype) / 64;
    return width < 8 ? 8 : width > BASIS_MAX ? BASIS_MAX : (int)width;
}

/* T - shift I, with its own D if T has one. */
static cgam_status shifted(search *s, double shift, double **D, cgam_dplr_spec *out)
{
    *out = *s->spec;
    *D = NULL;
    out->level -= shift;
    if (!s->spec->D) return CGAM_OK;
    *D = cgam_vec_new(s->env, s->spec->Z, 1);
    if (!*D) return cgam_fail_nomem(s->env, "a shifted operator");
    CGAM_EACH_ROW(s->spec->Z, i) (*D)[i] = s->spec->D[i] - shift;
    out->D = *D;
    return CGAM_OK;
}

static cgam_status factor_shifted(search *s, double shift, cgam_dplr **out)
{
    double *D;
    cgam_dplr_spec spec;
    cgam_status status = shifted(s, shift, &D, &spec);
    if (status == CGAM_OK) status = cgam_dplr_new(s->env, &spec, out);
    cgam_vec_free(s->env, s->spec->Z, D);
    return status;
}

/* The Rayleigh quotient x'Tx of the unit vector s->x, added up so that D's large common part
 * cancels nothing: sum D_i x_i^2 + a |Z'x|^2 + sigma (w'x)^2; and a bound from above of x'Tx / x'x. */
static cgam_status rayleigh(search *s, double *value, double *above)
{
    const cgam_dplr_spec *spec = s->spec;
    const cgam_rows *Z = spec->Z;
    double gamma = cgam_gamma((double)Z->n + 8), total, e;
    double square = cgam_vec_dot(Z, s->x, s->x);
    double off, lengths;
    CGAM_REDUCE(Z, i, CGAM_SUM(off), CGAM_SUM(lengths)) {
        double D = cgam_dplr_pivot(spec, i, &e);
        s->y[i] = D * s->x[i];
        off += s->x[i] * s->x[i] * (e + fabs(D) * gamma);
        lengths += fabs(s->x[i]) * sqrt(spec->norm2[i]);
    }
    cgam_status status = cgam_rows_status(Z);
    total = cgam_vec_dot(Z, s->y, s->x);
    if (spec->a > 0 && status == CGAM_OK) {
        status = cgam_rows_combine(s->env, spec->Z, s->x, s->sum);
        if (status != CGAM_OK) return status;
        double scaled = spec->Z->scale ? cgam_norm_error(spec->Z->d) : 0;
        double t = cgam_array_norm(spec->Z->d, s->sum), dt = (gamma + scaled) * lengths;
        total += spec->a * cgam_array_dot(spec->Z->d, s->sum, s->sum);
        off += spec->a * (2 * t * dt + dt * dt + t * t * cgam_gamma((double)spec->Z->d + 4)) +
               cgam_underflow(spec->a * (double)spec->Z->d);
    }
    if (spec->w) {
        double wx = cgam_vec_dot(Z, spec->w, s->x);
        double w = cgam_vec_norm(Z, spec->w);
        total += spec->sigma * wx * wx;
        off += spec->sigma * gamma * 3 * w * w;
    }
    off += gamma * fabs(total);
    *value = total / square;
    *above = cgam_above(*value + (off / square + 8 * CGAM_U * fabs(*value)) * CGAM_SLACK);
    return status;
}

static cgam_status lowest_lanczos(search *s, double tol_abs, cgam_lowest *out)
{
    cgam_status status = factor_shifted(s, s->shift, &s->inverse);
    if (status != CGAM_OK) return status;
    out->value = out->hi;
    start_vector(s->spec->Z, 0, s->x);
    double small = 1e-9;
    for (int round = 0; round < RESTARTS_MAX; round++) {
        double residual, value, above;
        status = lanczos(s, small, &residual);
        if (status == CGAM_OK) status = rayleigh(s, &value, &above);
        if (status != CGAM_OK) return status;
        value = fmax(value, out->lo); /* below lo by rounding only */
        out->value = fmin(out->value, value);
        out->hi = fmin(out->hi, above);
        /* |theta - theta_true| <= residual^2 / gap is what convergence gives; the first-order
         * bound below only decides when to stop, the count decides what is proved. */
        double slack = residual * (value - s->shift);
        if (slack > 1e3 * tol_abs && round + 1 < RESTARTS_MAX) continue;
        double under = tol_abs;
        bool nothing;
        status = cgam_dplr_above_near(s->env, s->spec, out->value, 1e6 * tol_abs, &under, &nothing);
        if (status != CGAM_OK) return status;
        if (under <= 1e6 * tol_abs) out->lo = fmax(out->lo, out->value - under);
        /* if no eigenvalue was missed, rounding prevents a tighter proof */
        if (under <= 1e3 * tol_abs || nothing) return CGAM_OK;
        cgam_dplr *count;
        status = factor_shifted(s, out->value - tol_abs, &count);
        if (status != CGAM_OK) return status;
        int64_t below = cgam_dplr_negative(count);
        cgam_dplr_free(count);
        if (below == 0) return CGAM_OK;
        out->value = fmin(out->value, fmax(out->value - tol_abs, out->lo));
        small = fmax(1e-2 * small, 1e-15); /* a cluster narrower than it looks converged at once */
        double keep = 1e-3; /* keep the vector found, but let the missed one grow in */
        start_vector(s->spec->Z, round + 1, s->y);
        CGAM_EACH_ROW(s->spec->Z, i) s->x[i] = keep * s->x[i] + s->y[i];
    }
    return CGAM_OK; /* lo and hi still hold */
}

static bool by_matrix(const cgam_dplr_spec *spec)
{
    return (spec->a > 0 && spec->Z->n <= spec->Z->d) || spec->Z->n <= CGAM_DPLR_SMALL;
}

/* Allocates a search in the bracket [lo, hi] of an operator of this scale, and sets its shift. */
static cgam_status search_open(search *s, double lo, double hi, double scale)
{
    const cgam_rows *Z = s->spec->Z;
    s->shift = lo - fmax(0.1 * (hi - lo), 1e-10 * scale);
    s->width = basis_width(s->spec->Z);
    s->basis = cgam_vec_new(s->env, Z, s->width + 1);
    s->x = cgam_vec_new(s->env, Z, 1);
    s->y = cgam_vec_new(s->env, Z, 1);
    s->sum = cgam_alloc(s->env, (size_t)Z->d, sizeof *s->sum);
    return s->basis && s->x && s->y && s->sum
               ? CGAM_OK
               : cgam_fail_nomem(s->env, "a basis of Lanczos vectors");
}

static void search_close(search *s)
{
    cgam_dplr_free(s->inverse);
    cgam_vec_free(s->env, s->spec->Z, s->basis);
    cgam_vec_free(s->env, s->spec->Z, s->x);
    cgam_vec_free(s->env, s->spec->Z, s->y);
    cgam_free(s->env, s->sum);
}

/* The largest term of any diagonal entry, and the smallest entry. */
static double scale_of(const cgam_dplr_spec *spec, double *least)
{
    double scale;
    CGAM_REDUCE(spec->Z, i, CGAM_MAX(scale), CGAM_MIN(*least)) {
        double D = cgam_dplr_pivot(spec, i, NULL), entry = cgam_dplr_diagonal(spec, i, NULL);
        scale = fmax(scale, fabs(D) + fabs(entry - D));
        *least = fmin(*least, fabs(entry));
    }
    return fmax(scale, 0);
}

cgam_status cgam_dplr_below(cgam_env *env, const cgam_dplr_spec *spec, double ceiling, bool *proved)
{
    search s = {.env = env, .spec = spec};
    double lo, hi, least, residual, value;
    cgam_status status = cgam_dplr_bracket(env, spec, &lo, &hi);
    *proved = status == CGAM_OK && hi < ceiling;
    if (status != CGAM_OK || *proved) return status;
    if (by_matrix(spec)) {
        cgam_lowest low;
        status = lowest_matrix(env, spec, false, &low);
        *proved = status == CGAM_OK && low.hi < ceiling;
        return status;
    }
    status = search_open(&s, lo, hi, scale_of(spec, &least));
    if (status == CGAM_OK) status = factor_shifted(&s, s.shift, &s.inverse);
    if (status == CGAM_OK) start_vector(spec->Z, 0, s.x);
    for (int round = 0; round < RESTARTS_MAX && status == CGAM_OK && !*proved; round++) {
        status = lanczos(&s, 1e-6, &residual);
        if (status == CGAM_OK) status = rayleigh(&s, &value, &hi);
        *proved = status == CGAM_OK && hi < ceiling;
        if (residual <= 1e-6) break;
    }
    search_close(&s);
    return status;
}

cgam_status cgam_dplr_lowest(cgam_env *env, const cgam_dplr_spec *spec, double tol,
                             bool want_vector, cgam_lowest *out)
{
    *out = (cgam_lowest){0};
    search s = {.env = env, .spec = spec};
    cgam_status status = cgam_dplr_bracket(env, spec, &out->lo, &out->hi);
    if (status != CGAM_OK) return status;
    double least, scale = scale_of(spec, &least), free_lo = out->lo, free_hi = out->hi;
    out->value = out->lo == out->hi ? out->lo : 0.5 * (out->lo + out->hi);
    double width = out->hi - out->lo;
    bool matrix = by_matrix(spec);
    if (width <= tol * (matrix ? fabs(out->value) : scale) && !want_vector) return CGAM_OK;
    if (matrix) {
        status = lowest_matrix(env, spec, want_vector, out);
        goto done;
    }
    out->value = out->hi;
    status = search_open(&s, out->lo, out->hi, scale);
    if (status == CGAM_OK) status = lowest_lanczos(&s, tol * scale, out);
    if (status == CGAM_OK && want_vector) {
        out->vector = s.x;
        s.x = NULL;
    }
    /* Norms of very different size make the rounding error larger than the result. The matrix itself, whose diagonal
     * is exact, does not have this error; use it if it is small. */
    if (status == CGAM_OK && spec->Z->n <= DENSE_MAX &&
        out->hi - out->lo > 1e-9 * fmax(fabs(out->value), least)) {
        cgam_vec_free(env, spec->Z, out->vector);
        out->vector = NULL;
        status = lowest_matrix(env, spec, want_vector, out);
    }
done:
    out->lo = fmax(out->lo, free_lo); /* all of these are proved */
    out->hi = fmin(out->hi, free_hi);
    out->value = fmin(fmax(out->value, out->lo), out->hi);
    search_close(&s);
    return status;
}
