/* fit.c: ridge regression of vectors on vectors, by the Gram matrix of the pairs.
 *
 * X, Y [n, d] hold a pair in each row, E = Y - X T' what is left to explain, K = X X'. Then
 *
 *   P = T + B'X,   B = (K + rho I)^-1 E,   K = V diag(l) V'
 *
 * and without pair i the error at i is B_i / [(K + rho I)^-1]_ii (Allen 1974), so that with F = V'EE'V
 *
 *   |B_i|^2 = sum_kl V_ik F_kl V_il / ((l_k + rho)(l_l + rho))
 *
 * every rho costs n^3 operations after one decomposition, whatever d is: docs/theorems/projection.md. */
#include "lm/fit.h"

#include "base/blas.h"
#include "base/env.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64 }; /* of a product, done by one thread at a time */

struct cgam_ridge {
    cgam_env *env;
    int64_t n, d;
    bool to_zero;
    double rho;
    double *X, *E, *B; /* [n, d] */
    double *V, *l;     /* [n, n] eigenvectors in columns, [n] */
    double *F;         /* [n, n] */
};

/* ---- Products ----------------------------------------------------------------------------- */
static cgam_status product_rows(void *arg, int64_t i)
{
    const cgam_product *p = arg;
    int64_t from = i * ROWS, rows = p->m - from < ROWS ? p->m - from : ROWS;
    cblas_dgemm(CblasRowMajor, p->turned_a ? CblasTrans : CblasNoTrans,
                p->turned_b ? CblasTrans : CblasNoTrans, (int)rows, (int)p->n, (int)p->k, 1,
                p->A + (p->turned_a ? from : from * p->k), (int)(p->turned_a ? p->m : p->k), p->B,
                (int)(p->turned_b ? p->k : p->n), p->add ? 1 : 0, p->C + from * p->n, (int)p->n);
    return CGAM_OK;
}

cgam_status cgam_product_run(cgam_env *env, const cgam_product *p)
{
    if (cgam_interrupted(env)) return cgam_fail(env, CGAM_E_INTERRUPTED, "stopped on request");
    return cgam_parallel(env, (p->m + ROWS - 1) / ROWS, product_rows, (void *)(uintptr_t)p);
}

/* ---- Leave-one-out ------------------------------------------------------------------------ */
cgam_status cgam_ridge_left_out(const cgam_ridge *r, double rho, double *out)
{
    int64_t n = r->n;
    double *W = cgam_alloc(r->env, (size_t)(2 * n * n), sizeof *W);
    if (!W) return cgam_fail_nomem(r->env, "a penalty");
    double *WF = W + n * n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) W[i * n + k] = r->V[i * n + k] / (r->l[k] + rho);
    cgam_status status = cgam_product_run(
        r->env, &(cgam_product){.m = n, .n = n, .k = n, .A = W, .B = r->F, .C = WF});
    double sum = 0;
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        double own = cblas_ddot((int)n, W + i * n, 1, r->V + i * n, 1);
        double size = cblas_ddot((int)n, WF + i * n, 1, W + i * n, 1);
        sum += fmax(0, size) / (own * own);
    }
    cgam_free(r->env, W);
    *out = sum / (double)n;
    return status;
}

/* The least error: on a grid of quarter decades about the mean eigenvalue, then between neighbours by
 * the golden section. */
static cgam_status choose(cgam_ridge *r)
{
    enum { FROM = -40, TO = 24, STEPS = 24 };
    static const double golden = 0.6180339887498949;
    double mean = 0, least = INFINITY, error;
    for (int64_t k = 0; k < r->n; k++) mean += r->l[k] / (double)r->n;
    r->rho = 1;
    if (!(mean > 0)) return CGAM_OK; /* no x: P = T, whatever rho is */
    cgam_status status = CGAM_OK;
    int best = FROM;
    for (int j = FROM; j <= TO && status == CGAM_OK; j++) {
        status = cgam_ridge_left_out(r, mean * pow(10, j / 4.0), &error);
        if (status == CGAM_OK && error < least) least = error, best = j;
    }
    double a = (best - 1) / 4.0, b = (best + 1) / 4.0, f[2], at[2];
    at[0] = b - golden * (b - a), at[1] = a + golden * (b - a);
    for (int i = 0; i < 2 && status == CGAM_OK; i++)
        status = cgam_ridge_left_out(r, mean * pow(10, at[i]), &f[i]);
    for (int step = 0; step < STEPS && status == CGAM_OK; step++) {
        int keep = f[0] <= f[1] ? 0 : 1; /* the other end moves in, and its point is new */
        if (keep == 0) b = at[1], at[1] = at[0], f[1] = f[0], at[0] = b - golden * (b - a);
        else a = at[0], at[0] = at[1], f[0] = f[1], at[1] = a + golden * (b - a);
        status = cgam_ridge_left_out(r, mean * pow(10, at[keep]), &f[keep]);
    }
    int end = status == CGAM_OK && f[1] < f[0] ? 1 : 0;
    r->rho = mean * pow(10, status == CGAM_OK && f[end] < least ? at[end] : best / 4.0);
    return status;
}

/* ---- Making it ---------------------------------------------------------------------------- */
cgam_ridge_opts cgam_ridge_opts_default(void) { return (cgam_ridge_opts){.to_zero = false}; }

void cgam_ridge_free(cgam_ridge *r)
{
    if (!r) return;
    double *blocks[] = {r->X, r->E, r->B, r->V, r->l, r->F};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(r->env, blocks[i]);
    cgam_free(r->env, r);
}

static cgam_status fill(cgam_ridge *r, const double *x, const double *y)
{
    for (int64_t i = 0; i < r->n; i++)
        for (int64_t j = 0; j < r->d; j++) {
            int64_t at = i * r->d + j;
            if (!isfinite(x[at]) || !isfinite(y[at]))
                return cgam_fail(r->env, CGAM_E_VALUE, "pair %lld, column %lld is not finite",
                                 (long long)i, (long long)j);
            r->X[at] = x[at];
            r->E[at] = r->to_zero ? y[at] : y[at] - x[at];
        }
    return CGAM_OK;
}

/* V and l of K, F = V'EE'V. */
static cgam_status decompose(cgam_ridge *r)
{
    int64_t n = r->n, d = r->d;
    cgam_env *env = r->env;
    double *EE = cgam_alloc(env, (size_t)(2 * n * n), sizeof *EE);
    if (!EE) return cgam_fail_nomem(env, "a ridge");
    cgam_status status = cgam_product_run(
        env,
        &(cgam_product){.m = n, .n = n, .k = d, .A = r->X, .B = r->X, .turned_b = true, .C = r->V});
    if (status == CGAM_OK &&
        LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'L', (int)n, r->V, (int)n, r->l) != 0)
        status = cgam_fail(env, CGAM_E_INTERNAL, "the Gram matrix of %lld pairs has no eigenvalues",
                           (long long)n);
    for (int64_t k = 0; k < n; k++) r->l[k] = fmax(0, r->l[k]); /* rounding alone is below */
    if (status == CGAM_OK)
        status = cgam_product_run(
            env, &(cgam_product){
                     .m = n, .n = n, .k = d, .A = r->E, .B = r->E, .turned_b = true, .C = EE});
    double *half = EE + n * n;
    if (status == CGAM_OK)
        status = cgam_product_run(
            env, &(cgam_product){.m = n, .n = n, .k = n, .A = EE, .B = r->V, .C = half});
    if (status == CGAM_OK)
        status = cgam_product_run(
            env, &(cgam_product){
                     .m = n, .n = n, .k = n, .A = r->V, .B = half, .turned_a = true, .C = r->F});
    cgam_free(env, EE);
    return status;
}

/* out [n, d] = V diag(g) V'A. */
static cgam_status by_modes(const cgam_ridge *r, const double *g, const double *A, double *out)
{
    int64_t n = r->n, d = r->d;
    double *VA = cgam_alloc(r->env, (size_t)(n * d), sizeof *VA);
    if (!VA) return cgam_fail_nomem(r->env, "a ridge");
    cgam_status status = cgam_product_run(
        r->env,
        &(cgam_product){.m = n, .n = d, .k = n, .A = r->V, .B = A, .turned_a = true, .C = VA});
    for (int64_t k = 0; k < n && status == CGAM_OK; k++)
        for (int64_t j = 0; j < d; j++) VA[k * d + j] *= g[k];
    if (status == CGAM_OK)
        status = cgam_product_run(
            r->env, &(cgam_product){.m = n, .n = d, .k = n, .A = r->V, .B = VA, .C = out});
    cgam_free(r->env, VA);
    return status;
}

cgam_status cgam_ridge_new(cgam_env *env, int64_t n, int64_t d, const double *x, const double *y,
                           const cgam_ridge_opts *opts, cgam_ridge **out)
{
    cgam_ridge_opts o = opts ? *opts : cgam_ridge_opts_default();
    *out = NULL;
    if (n < 1 || d < 1 || (n < 2 && !(o.rho > 0)))
        return cgam_fail(env, CGAM_E_ARG, "%lld pairs of width %lld are too few to fit",
                         (long long)n, (long long)d);
    if (!(o.rho >= 0) || isinf(o.rho))
        return cgam_fail(env, CGAM_E_ARG, "rho is %g, a number of 0 or more is expected", o.rho);
    cgam_status status = cgam_blas_room(env);
    if (status != CGAM_OK) return status;
    cgam_ridge *r = cgam_zalloc(env, 1, sizeof *r);
    if (!r) return cgam_fail_nomem(env, "a ridge");
    *r = (cgam_ridge){.env = env, .n = n, .d = d, .to_zero = o.to_zero, .rho = o.rho};
    double **pairs[] = {&r->X, &r->E, &r->B}, **squares[] = {&r->V, &r->F};
    for (int i = 0; i < 3; i++) *pairs[i] = cgam_alloc(env, (size_t)(n * d), sizeof **pairs[i]);
    for (int i = 0; i < 2; i++) *squares[i] = cgam_alloc(env, (size_t)(n * n), sizeof **squares[i]);
    r->l = cgam_alloc(env, (size_t)n, sizeof *r->l);
    double *g = cgam_alloc(env, (size_t)n, sizeof *g);
    if (!r->X || !r->E || !r->B || !r->V || !r->F || !r->l || !g)
        status = cgam_fail_nomem(env, "a ridge");
    if (status == CGAM_OK) status = fill(r, x, y);
    if (status == CGAM_OK) status = decompose(r);
    if (status == CGAM_OK && !(r->rho > 0)) status = choose(r);
    for (int64_t k = 0; k < n && status == CGAM_OK; k++) g[k] = 1 / (r->l[k] + r->rho);
    if (status == CGAM_OK) status = by_modes(r, g, r->E, r->B);
    cgam_free(env, g);
    if (status == CGAM_OK) *out = r;
    else cgam_ridge_free(r);
    return status;
}

double cgam_ridge_rho(const cgam_ridge *r) { return r->rho; }

/* ---- Using it ----------------------------------------------------------------------------- */
/* out [m, d] = T x + B'(X x). */
static cgam_status apply(const cgam_ridge *r, const double *B, bool identity, int64_t m,
                         const double *x, double *out)
{
    double *Kx = cgam_alloc(r->env, (size_t)(m * r->n), sizeof *Kx);
    if (!Kx) return cgam_fail_nomem(r->env, "a projection");
    cgam_status status = cgam_product_run(
        r->env, &(cgam_product){
                    .m = m, .n = r->n, .k = r->d, .A = x, .B = r->X, .turned_b = true, .C = Kx});
    if (identity) memcpy(out, x, (size_t)(m * r->d) * sizeof *out);
    if (status == CGAM_OK)
        status = cgam_product_run(
            r->env, &(cgam_product){
                        .m = m, .n = r->d, .k = r->n, .A = Kx, .B = B, .add = identity, .C = out});
    cgam_free(r->env, Kx);
    return status;
}

cgam_status cgam_ridge_apply(const cgam_ridge *r, int64_t m, const double *x, double *out)
{
    return apply(r, r->B, !r->to_zero, m, x, out);
}

cgam_status cgam_ridge_matrix(const cgam_ridge *r, double *P)
{
    int64_t d = r->d;
    cgam_status status = cgam_product_run(
        r->env,
        &(cgam_product){.m = d, .n = d, .k = r->n, .A = r->B, .B = r->X, .turned_a = true, .C = P});
    for (int64_t j = 0; j < d && !r->to_zero; j++) P[j * d + j] += 1;
    return status;
}

/* P - I = C'X on what the pairs span: C is B, less K^+ X where T = 0. */
static cgam_status beside_identity(const cgam_ridge *r, double *C)
{
    int64_t n = r->n;
    memcpy(C, r->B, (size_t)(n * r->d) * sizeof *C);
    if (!r->to_zero) return CGAM_OK;
    double *own = cgam_alloc(r->env, (size_t)(n * r->d), sizeof *own);
    double *g = cgam_alloc(r->env, (size_t)n, sizeof *g);
    cgam_status status = own && g ? CGAM_OK : cgam_fail_nomem(r->env, "a ridge");
    /* rising eigenvalues; what is within rounding of the largest is none */
    for (int64_t k = 0; k < n && status == CGAM_OK; k++)
        g[k] = r->l[k] > 1e-13 * (double)n * r->l[n - 1] ? 1 / r->l[k] : 0;
    if (status == CGAM_OK) status = by_modes(r, g, r->X, own);
    for (int64_t i = 0; i < n * r->d && status == CGAM_OK; i++) C[i] -= own[i];
    cgam_free(r->env, own);
    cgam_free(r->env, g);
    return status;
}

/* M = K C [n, d], what P - I makes of the pairs; MM' = S diag(s^2) S'. U_k = S_k'M / s_k is the k-th
 * direction of what comes out, and V_k = (U_k C') X takes it from what goes in. */
static cgam_status truncate_modes(const cgam_ridge *r, int64_t rank, const double *C, double *M,
                                  double *S, double *s, double *U, double *V)
{
    int64_t n = r->n, d = r->d;
    cgam_status status = apply(r, C, false, n, r->X, M);
    if (status == CGAM_OK)
        status = cgam_product_run(
            r->env,
            &(cgam_product){.m = n, .n = n, .k = d, .A = M, .B = M, .turned_b = true, .C = S});
    if (status == CGAM_OK && LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'L', (int)n, S, (int)n, s) != 0)
        status = cgam_fail(r->env, CGAM_E_INTERNAL, "%lld pairs have no directions", (long long)n);
    double *UC = M; /* [n] of what is no longer needed */
    for (int64_t k = 0; k < rank && status == CGAM_OK; k++) {
        double *u = U + k * d, *v = V + k * d;
        memset(u, 0, (size_t)d * sizeof *u);
        memset(v, 0, (size_t)d * sizeof *v);
        if (k >= n || !(s[n - 1 - k] > 1e-12 * s[n - 1])) continue;
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)n, (int)d, 1 / sqrt(s[n - 1 - k]), M, (int)d,
                    S + n - 1 - k, (int)n, 0, u, 1);
    }
    for (int64_t k = 0; k < rank && status == CGAM_OK; k++) {
        double *u = U + k * d, *v = V + k * d;
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)d, 1, C, (int)d, u, 1, 0, UC, 1);
        cblas_dgemv(CblasRowMajor, CblasTrans, (int)n, (int)d, 1, r->X, (int)d, UC, 1, 0, v, 1);
        double size = cblas_dnrm2((int)d, v, 1), root = sqrt(size);
        cblas_dscal((int)d, root, u, 1);
        if (size > 0) cblas_dscal((int)d, 1 / root, v, 1);
    }
    return status;
}

cgam_status cgam_ridge_truncate(const cgam_ridge *r, int64_t rank, double *U, double *V)
{
    int64_t n = r->n, d = r->d;
    if (rank < 1 || rank > d)
        return cgam_fail(r->env, CGAM_E_ARG, "rank is %lld, 1 to %lld are possible",
                         (long long)rank, (long long)d);
    double *room = cgam_alloc(r->env, (size_t)(2 * n * d + n * n + n), sizeof *room);
    if (!room) return cgam_fail_nomem(r->env, "a projection of low rank");
    double *C = room, *M = C + n * d, *S = M + n * d, *s = S + n * n;
    cgam_status status = beside_identity(r, C);
    if (status == CGAM_OK) status = truncate_modes(r, rank, C, M, S, s, U, V);
    cgam_free(r->env, room);
    return status;
}
