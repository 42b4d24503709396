/* stability.c: the leading eigenvalues of the Jacobian J of the rates.
 *
 * J = -T^-1 (I + K H) with T = diag(tau) by layer, H = hess L by layer, K = the second derivative
 * of the synapses. T and H commute, so T H J = -(H + H K H) is symmetric: J is self-adjoint in the
 * inner product of T H, and its eigenvalues are real.
 *
 * Small networks are decomposed by LAPACK. Large ones go by the Krylov-Schur method (Stewart
 * 2001): a basis V of m vectors with J V = V S + a rest in one direction, S brought to Schur form
 * with the wanted end first, all but that end dropped, and the basis filled up again. */
#include "base/blas.h"
#include "net/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DENSE = 200, RESTARTS = 200, TANGENTS = 8 };

typedef struct jacobian {
    const cgam_net *net;
    cgam_work *work;
    int64_t n;      /* count of numbers that move */
    double *v, *Jv; /* [TANGENTS, size] */
    int64_t products;
} jacobian;

/* out [count, n] = J in: vectors of the numbers that move. */
static cgam_status apply_jacobian(jacobian *s, int64_t count, const double *in, double *out)
{
    int64_t size = s->net->size;
    for (int64_t k = 0; k < count; k++) cgam_work_unpack(s->work, in + k * s->n, s->v + k * size);
    cgam_status status = cgam_work_jacobian(s->work, count, s->v, s->Jv);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++)
        cgam_work_pack(s->work, s->Jv + k * size, out + k * s->n);
    s->products += count;
    return status;
}

static int compare_falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static cgam_status decompose(jacobian *s, int64_t count, double *values, cgam_eigen *out)
{
    cgam_env *env = s->net->env;
    int64_t n = s->n;
    double *J = cgam_zalloc(env, (size_t)(n * n), sizeof *J);
    double *unit = cgam_zalloc(env, (size_t)(TANGENTS * n), sizeof *unit);
    double *re = cgam_alloc(env, (size_t)n, sizeof *re),
           *im = cgam_alloc(env, (size_t)n, sizeof *im);
    cgam_status status = CGAM_OK;
    if (!J || !unit || !re || !im) status = cgam_fail_nomem(env, "a Jacobian");
    for (int64_t j = 0; j < n && status == CGAM_OK; j += TANGENTS) {
        int64_t now = n - j < TANGENTS ? n - j : TANGENTS;
        memset(unit, 0, (size_t)(TANGENTS * n) * sizeof *unit);
        for (int64_t k = 0; k < now; k++) unit[k * n + j + k] = 1;
        status = apply_jacobian(s, now, unit, J + j * n); /* columns one after the other */
    }
    if (status == CGAM_OK &&
        LAPACKE_dgeev(LAPACK_COL_MAJOR, 'N', 'N', (int)n, J, (int)n, re, im, NULL, 1, NULL, 1) != 0)
        status = cgam_fail(env, CGAM_E_INTERNAL, "eigenvalues of a Jacobian did not converge");
    if (status == CGAM_OK) {
        for (int64_t i = 0; i < n; i++) out->imaginary = fmax(out->imaginary, fabs(im[i]));
        qsort(re, (size_t)n, sizeof *re, compare_falling);
        memcpy(values, re, (size_t)count * sizeof *values);
        out->all = out->converged = true;
    }
    cgam_free(env, J);
    cgam_free(env, unit);
    cgam_free(env, re);
    cgam_free(env, im);
    return status;
}

/* ---- Krylov-Schur --------------------------------------------------------------------------- */

typedef struct krylov {
    int64_t n, most, have, keep; /* basis size: maximum, current; vectors kept by a restart */
    double *V;                   /* [most + 1, n] orthonormal rows */
    double *S;                   /* [most + 1, most] J V_j = sum over i of S[i, j] V_i */
    double *T, *Q, *re, *im;     /* Schur form of S, its vectors, space for eigenvalues */
    double *W;                   /* [keep + 1, n] the basis after a restart */
} krylov;

static void krylov_free(cgam_env *env, krylov *k)
{
    void *const blocks[] = {k->V, k->S, k->T, k->Q, k->re, k->im, k->W};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
}

/* n is above DENSE and count at most n / 8, so that the basis is at most half of the space, and the kept part half of
 * the basis. */
static cgam_status krylov_new(cgam_env *env, int64_t n, int64_t count, krylov *k)
{
    *k = (krylov){.n = n, .most = 3 * count + 24, .keep = 2 * count + 4};
    if (k->keep > k->most / 2) k->keep = k->most / 2;
    size_t m = (size_t)k->most, rows = (size_t)n;
    k->V = cgam_zalloc(env, (m + 1) * rows, sizeof *k->V);
    k->W = cgam_alloc(env, (size_t)(k->keep + 1) * rows, sizeof *k->W);
    k->S = cgam_zalloc(env, (m + 1) * m, sizeof *k->S);
    k->T = cgam_alloc(env, m * m, sizeof *k->T);
    k->Q = cgam_alloc(env, m * m, sizeof *k->Q);
    k->re = cgam_alloc(env, m, sizeof *k->re);
    k->im = cgam_alloc(env, m, sizeof *k->im);
    bool complete = k->V && k->W && k->S && k->T && k->Q && k->re && k->im;
    return complete ? CGAM_OK : cgam_fail_nomem(env, "an Arnoldi basis");
}

/* Subtracts V_0 .. V_j from w; the coefficients are added to column j of S unless S is NULL. */
static void orthogonalise(const krylov *k, int64_t j, double *w, double *S)
{
    for (int twice = 0; twice < 2; twice++) /* once loses orthogonality, twice is enough */
        for (int64_t i = 0; i <= j; i++) {
            const double *v = k->V + i * k->n;
            double c = cblas_ddot((int)k->n, v, 1, w, 1);
            cblas_daxpy((int)k->n, -c, v, 1, w, 1);
            if (S) S[i * k->most + j] += c;
        }
}

/* A unit vector for the start, or to continue after the basis turned out to be invariant. */
static void fresh_vector(const krylov *k, int64_t j, double *w)
{
    for (int64_t i = 0; i < k->n; i++) w[i] = cos(((double)j + 1.7) * (1.3 + (double)i));
    orthogonalise(k, j - 1, w, NULL);
    cblas_dscal((int)k->n, 1 / cblas_dnrm2((int)k->n, w, 1), w, 1);
}

/* Fills the basis up. */
static cgam_status extend_basis(jacobian *s, krylov *k)
{
    for (int64_t j = k->have; j < k->most; j++) {
        double *w = k->V + (j + 1) * k->n;
        cgam_status status = apply_jacobian(s, 1, k->V + j * k->n, w);
        if (status != CGAM_OK) return status;
        double before = cblas_dnrm2((int)k->n, w, 1);
        orthogonalise(k, j, w, k->S);
        double norm = cblas_dnrm2((int)k->n, w, 1);
        if (norm > 1e-14 * before) {
            k->S[(j + 1) * k->most + j] = norm;
            cblas_dscal((int)k->n, 1 / norm, w, 1);
        } else {
            fresh_vector(k, j + 1, w);
        }
    }
    k->have = k->most;
    return CGAM_OK;
}

/* Schur form of S, the kept ones with the largest real parts first. *kept is `keep`, or one more so that no conjugate
 * pair is split. */
static cgam_status sort_schur(cgam_env *env, krylov *k, int64_t *kept)
{
    int m = (int)k->most, at = 0;
    lapack_int none = 0;
    memcpy(k->T, k->S, (size_t)(k->most * k->most) * sizeof *k->T);
    if (LAPACKE_dgees(LAPACK_ROW_MAJOR, 'V', 'N', NULL, m, k->T, m, &none, k->re, k->im, k->Q, m) !=
        0)
        return cgam_fail(env, CGAM_E_INTERNAL, "a Schur form did not converge");
    while (at < k->keep) {
        int best = at;
        for (int i = at + 1; i < m; i++)
            if (k->T[i * m + i] > k->T[best * m + best] && k->T[i * m + i - 1] == 0) best = i;
        lapack_int from = best + 1, to = at + 1;
        if (from != to &&
            LAPACKE_dtrexc(LAPACK_ROW_MAJOR, 'V', m, k->T, m, k->Q, m, &from, &to) < 0)
            return cgam_fail(env, CGAM_E_INTERNAL, "a Schur form could not be sorted");
        at += k->T[(at + 1) * m + at] != 0 ? 2 : 1;
    }
    *kept = at;
    return CGAM_OK;
}

/* |J V_c - V_c T_c| of the leading c Schur vectors: their coupling to the rest of space. */
static double residual_norm(const krylov *k, int64_t c)
{
    int64_t m = k->most;
    return fabs(k->S[m * m + m - 1]) * cblas_dnrm2((int)c, k->Q + (m - 1) * m, 1);
}

/* Drops all but the first `kept` Schur vectors. */
static void restart_basis(krylov *k, int64_t kept)
{
    int64_t m = k->most;
    double last = k->S[m * m + m - 1];
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)kept, (int)k->n, (int)m, 1, k->Q,
                (int)m, k->V, (int)k->n, 0, k->W, (int)k->n);
    memcpy(k->V, k->W, (size_t)(kept * k->n) * sizeof *k->V);
    memcpy(k->V + kept * k->n, k->V + m * k->n, (size_t)k->n * sizeof *k->V);
    memset(k->S, 0, (size_t)((m + 1) * m) * sizeof *k->S);
    for (int64_t j = 0; j < kept; j++) {
        for (int64_t i = 0; i < kept; i++) k->S[i * m + j] = k->T[i * m + j];
        k->S[kept * m + j] = last * k->Q[(m - 1) * m + j];
    }
    k->have = kept;
}

static cgam_status iterate_krylov(jacobian *s, int64_t count, double tol, double *values,
                                  cgam_eigen *out)
{
    cgam_env *env = s->net->env;
    krylov k;
    cgam_status status = krylov_new(env, s->n, count, &k);
    if (status == CGAM_OK) fresh_vector(&k, 0, k.V);
    for (int cycle = 0; cycle < RESTARTS && status == CGAM_OK && !out->converged; cycle++) {
        int64_t kept = 0;
        status = cgam_interrupted(env) ? CGAM_E_INTERRUPTED : extend_basis(s, &k);
        if (status == CGAM_OK) status = sort_schur(env, &k, &kept);
        if (status != CGAM_OK) break;
        double largest = 0;
        for (int64_t i = 0; i < k.most; i++) largest = fmax(largest, hypot(k.re[i], k.im[i]));
        out->residual = residual_norm(&k, count);
        out->imaginary = 0;
        for (int64_t i = 0; i < count; i++) {
            values[i] = k.T[i * k.most + i];
            double pair = k.T[(i + 1) * k.most + i] * k.T[i * k.most + i + 1];
            out->imaginary = fmax(out->imaginary, pair < 0 ? sqrt(-pair) : 0);
        }
        out->converged = out->residual <= tol * largest;
        if (!out->converged) restart_basis(&k, kept);
    }
    if (status == CGAM_OK) qsort(values, (size_t)count, sizeof *values, compare_falling);
    krylov_free(env, &k);
    return status;
}

/* ---- the public call ------------------------------------------------------------------------ */

cgam_status cgam_net_eigen(const cgam_net *net, const double *x, const bool *clamped, int64_t count,
                           double tol, double *values, cgam_eigen *out)
{
    cgam_env *env = net->env;
    *out = (cgam_eigen){0};
    jacobian s = {.net = net};
    for (int i = 0; i < net->layers; i++) s.n += clamped && clamped[i] ? 0 : net->layer[i].size;
    if (count < 1 || !(tol >= 0))
        return cgam_fail(
            env, CGAM_E_ARG,
            "the number of eigenvalues must be at least 1 and tol 0 or more, not %lld and %g",
            (long long)count, tol);
    if (tol == 0) tol = 1e-9;
    if (count > s.n) count = s.n;
    bool dense = s.n <= DENSE || 8 * count > s.n;
    if (s.n > INT32_MAX || (dense && s.n > 1 << 14))
        return cgam_fail(env, CGAM_E_NOMEM, "%lld eigenvalues of %lld: too many to decompose",
                         (long long)count, (long long)s.n);
    int64_t tangents = dense ? TANGENTS : 1;
    s.v = cgam_alloc(env, (size_t)(tangents * net->size), sizeof *s.v);
    s.Jv = cgam_alloc(env, (size_t)(tangents * net->size), sizeof *s.Jv);
    cgam_status status = s.v && s.Jv ? CGAM_OK : cgam_fail_nomem(env, "a Jacobian");
    if (status == CGAM_OK)
        status = cgam_work_new(net, &(cgam_work_opts){1, clamped, false, tangents}, &s.work);
    if (status == CGAM_OK) status = cgam_work_eval(s.work, 1, x);
    if (status == CGAM_OK && count > 0)
        status =
            dense ? decompose(&s, count, values, out) : iterate_krylov(&s, count, tol, values, out);
    out->found = count;
    out->products = s.products;
    cgam_work_free(s.work);
    cgam_free(env, s.v);
    cgam_free(env, s.Jv);
    return status;
}
