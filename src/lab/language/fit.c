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
#include "lab/language/fit.h"
#include "base/rng.h"
#include "num/eigen.h"

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
    cgam_status status = cgam_product_run(r->env, &(cgam_product){n, n, n, W, r->F, .C = WF});
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
static cgam_status choose_rho(cgam_ridge *r)
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
    cgam_free_all(r->env, r->X, r->E, r->B, r->V, r->l, r->F, r);
}

static cgam_status fill_pairs(cgam_ridge *r, const double *x, const double *y)
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

/* A = V diag(values) V', values ascending; V takes the place of A. */
static cgam_status decompose_symmetric(cgam_env *env, int64_t n, double *A, double *values)
{
    cgam_status status = cgam_eigen_all(env, n, true, A, values);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) /* vectors are rows there, columns here */
        for (int64_t j = 0; j < i; j++) {
            double entry = A[i * n + j];
            A[i * n + j] = A[j * n + i];
            A[j * n + i] = entry;
        }
    return status;
}

/* V and l of K, F = V'EE'V. */
static cgam_status decompose_pairs(cgam_ridge *r)
{
    int64_t n = r->n, d = r->d;
    cgam_env *env = r->env;
    double *EE = cgam_alloc(env, (size_t)(2 * n * n), sizeof *EE);
    if (!EE) return cgam_fail_nomem(env, "a ridge");
    cgam_status status =
        cgam_product_run(env, &(cgam_product){n, n, d, r->X, r->X, r->V, .turned_b = true});
    if (status == CGAM_OK) status = decompose_symmetric(env, n, r->V, r->l);
    for (int64_t k = 0; k < n; k++) r->l[k] = fmax(0, r->l[k]); /* rounding alone is below */
    if (status == CGAM_OK)
        status = cgam_product_run(env, &(cgam_product){n, n, d, r->E, r->E, EE, .turned_b = true});
    double *half = EE + n * n;
    if (status == CGAM_OK)
        status = cgam_product_run(env, &(cgam_product){n, n, n, EE, r->V, .C = half});
    if (status == CGAM_OK)
        status =
            cgam_product_run(env, &(cgam_product){n, n, n, r->V, half, r->F, .turned_a = true});
    cgam_free(env, EE);
    return status;
}

/* out [n, d] = V diag(g) V'A. */
static cgam_status scale_modes(const cgam_ridge *r, const double *g, const double *A, double *out)
{
    int64_t n = r->n, d = r->d;
    double *VA = cgam_alloc(r->env, (size_t)(n * d), sizeof *VA);
    if (!VA) return cgam_fail_nomem(r->env, "a ridge");
    cgam_status status =
        cgam_product_run(r->env, &(cgam_product){n, d, n, r->V, A, VA, .turned_a = true});
    for (int64_t k = 0; k < n && status == CGAM_OK; k++)
        for (int64_t j = 0; j < d; j++) VA[k * d + j] *= g[k];
    if (status == CGAM_OK)
        status = cgam_product_run(r->env, &(cgam_product){n, d, n, r->V, VA, .C = out});
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
        return cgam_fail(env, CGAM_E_ARG, "rho is %g, it must be 0 or more", o.rho);
    cgam_status status = cgam_blas_check_space(env);
    if (status != CGAM_OK) return status;
    cgam_ridge *r = cgam_zalloc(env, 1, sizeof *r);
    if (!r) return cgam_fail_nomem(env, "a ridge");
    *r = (cgam_ridge){.env = env, .n = n, .d = d, .to_zero = o.to_zero, .rho = o.rho};
    double *g;
    status = cgam_alloc_all(env, "a ridge", CGAM_ARRAY(r->X, n * d), CGAM_ARRAY(r->E, n * d),
                            CGAM_ARRAY(r->B, n * d), CGAM_ARRAY(r->V, n * n),
                            CGAM_ARRAY(r->F, n * n), CGAM_ARRAY(r->l, n), CGAM_ARRAY(g, n));
    if (status == CGAM_OK) status = fill_pairs(r, x, y);
    if (status == CGAM_OK) status = decompose_pairs(r);
    if (status == CGAM_OK && !(r->rho > 0)) status = choose_rho(r);
    for (int64_t k = 0; k < n && status == CGAM_OK; k++) g[k] = 1 / (r->l[k] + r->rho);
    if (status == CGAM_OK) status = scale_modes(r, g, r->E, r->B);
    cgam_free(env, g);
    if (status == CGAM_OK) *out = r;
    else cgam_ridge_free(r);
    return status;
}

double cgam_ridge_rho(const cgam_ridge *r) { return r->rho; }

/* ---- Using it ----------------------------------------------------------------------------- */
/* out [m, d] = T x + B'(X x). */
static cgam_status apply_ridge(const cgam_ridge *r, const double *B, bool identity, int64_t m,
                               const double *x, double *out)
{
    double *Kx = cgam_alloc(r->env, (size_t)(m * r->n), sizeof *Kx);
    if (!Kx) return cgam_fail_nomem(r->env, "a projection");
    cgam_status status =
        cgam_product_run(r->env, &(cgam_product){m, r->n, r->d, x, r->X, Kx, .turned_b = true});
    if (identity) memcpy(out, x, (size_t)(m * r->d) * sizeof *out);
    if (status == CGAM_OK)
        status =
            cgam_product_run(r->env, &(cgam_product){m, r->d, r->n, Kx, B, out, .add = identity});
    cgam_free(r->env, Kx);
    return status;
}

cgam_status cgam_ridge_apply(const cgam_ridge *r, int64_t m, const double *x, double *out)
{
    return apply_ridge(r, r->B, !r->to_zero, m, x, out);
}

cgam_status cgam_ridge_matrix(const cgam_ridge *r, double *P)
{
    int64_t d = r->d;
    cgam_status status =
        cgam_product_run(r->env, &(cgam_product){d, d, r->n, r->B, r->X, P, .turned_a = true});
    for (int64_t j = 0; j < d && !r->to_zero; j++) P[j * d + j] += 1;
    return status;
}

/* P - I = C'X on what the pairs span: C is B, less K^+ X where T = 0. */
static cgam_status product_beside_identity(const cgam_ridge *r, double *C)
{
    int64_t n = r->n;
    memcpy(C, r->B, (size_t)(n * r->d) * sizeof *C);
    if (!r->to_zero) return CGAM_OK;
    double *own, *g;
    cgam_status status =
        cgam_alloc_all(r->env, "a ridge", CGAM_ARRAY(own, n * r->d), CGAM_ARRAY(g, n));
    /* ascending eigenvalues; those within rounding of the largest count as zero */
    for (int64_t k = 0; k < n && status == CGAM_OK; k++)
        g[k] = r->l[k] > 1e-13 * (double)n * r->l[n - 1] ? 1 / r->l[k] : 0;
    if (status == CGAM_OK) status = scale_modes(r, g, r->X, own);
    for (int64_t i = 0; i < n * r->d && status == CGAM_OK; i++) C[i] -= own[i];
    cgam_free_all(r->env, own, g);
    return status;
}

/* M = K C [n, d], P - I applied to the pairs; MM' = S diag(s^2) S'. U_k = S_k'M / s_k is the k-th
 * direction of what comes out, and V_k = (U_k C') X takes it from what goes in. */
static cgam_status truncate_modes(const cgam_ridge *r, int64_t rank, const double *C, double *M,
                                  double *S, double *s, double *U, double *V)
{
    int64_t n = r->n, d = r->d;
    cgam_status status = apply_ridge(r, C, false, n, r->X, M);
    if (status == CGAM_OK)
        status = cgam_product_run(r->env, &(cgam_product){n, n, d, M, M, S, .turned_b = true});
    if (status == CGAM_OK) status = decompose_symmetric(r->env, n, S, s);
    double *UC = M; /* [n], reuses M */
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
        return cgam_fail(r->env, CGAM_E_ARG, "rank is %lld, it must be from 1 to %lld",
                         (long long)rank, (long long)d);
    double *buffer = cgam_alloc(r->env, (size_t)(2 * n * d + n * n + n), sizeof *buffer);
    if (!buffer) return cgam_fail_nomem(r->env, "a projection of low rank");
    double *C = buffer, *M = C + n * d, *S = M + n * d, *s = S + n * n;
    cgam_status status = product_beside_identity(r, C);
    if (status == CGAM_OK) status = truncate_modes(r, rank, C, M, S, s, U, V);
    cgam_free(r->env, buffer);
    return status;
}

/* ---- Projections in files -------------------------------------------------------------------- */
cgam_status cgam_projection_read(cgam_env *env, const char *path, int64_t width, double **out)
{
    cgam_array array = {0};
    *out = NULL;
    cgam_status status = cgam_array_open(env, path, &array);
    if (status != CGAM_OK) return status;
    if (array.ndim != 2)
        status = cgam_fail(env, CGAM_E_SHAPE, "projection: %s has %d dimensions, expected 2", path,
                           array.ndim);
    else if (array.shape[0] != width || array.shape[1] != width)
        status =
            cgam_fail(env, CGAM_E_SHAPE, "projection: %s is %lld x %lld, the model's width is %lld",
                      path, (long long)array.shape[0], (long long)array.shape[1], (long long)width);
    if (status == CGAM_OK) {
        *out = cgam_alloc(env, (size_t)array.size, sizeof **out);
        status = *out ? cgam_array_read_f64(env, &array, path, *out)
                      : cgam_fail_nomem(env, "a projection");
    }
    if (status != CGAM_OK) {
        cgam_free(env, *out);
        *out = NULL;
    }
    cgam_array_close(env, &array);
    return status;
}

cgam_status cgam_projection_apply(cgam_env *env, const double *P, int64_t d, int64_t m, float *x)
{
    double *in = cgam_alloc(env, (size_t)(2 * m * d), sizeof *in);
    if (!in) return cgam_fail_nomem(env, "contexts");
    double *out = in + m * d;
    for (int64_t i = 0; i < m * d; i++) in[i] = (double)x[i];
    cgam_status status =
        cgam_product_run(env, &(cgam_product){m, d, d, in, P, out, .turned_b = true});
    for (int64_t i = 0; i < m * d && status == CGAM_OK; i++) x[i] = (float)out[i];
    cgam_free(env, in);
    return status;
}

/* ---- Random projections ---------------------------------------------------------------------- */
/* Random rotations, for projections with the same spectrum as another.
 *
 * Q = R_m .. R_1. A round R shuffles the coordinates and turns neighbours by random angles; after 2 log2 d
 * of them every coordinate depends on every other one. A vector costs d log d operations, and Q is never
 * formed. Q is orthogonal up to rounding; it need not be close to uniform. */

typedef struct rotation {
    int64_t *place; /* [d] */
    double *angle;  /* [d / 2] */
} rotation;

static void permute(const rotation *t, bool back, int64_t d, const double *from, double *to)
{
    for (int64_t j = 0; j < d; j++) {
        if (back) to[t->place[j]] = from[j];
        else to[j] = from[t->place[j]];
    }
}

static void rotate_pairs(const rotation *t, bool back, int64_t d, double *x)
{
    for (int64_t j = 0; j + 1 < d; j += 2) {
        double c = cos(t->angle[j / 2]), s = back ? -sin(t->angle[j / 2]) : sin(t->angle[j / 2]);
        double a = x[j], b = x[j + 1];
        x[j] = c * a - s * b;
        x[j + 1] = s * a + c * b;
    }
}

static void draw_turn(uint64_t seed, int64_t round, int64_t d, const rotation *t)
{
    static const double full = 6.283185307179586;
    cgam_rng rng = cgam_rng_stream(seed, (UINT64_C(1) << 58) + (uint64_t)round);
    for (int64_t j = 0; j < d; j++) t->place[j] = j;
    for (int64_t j = d - 1; j > 0; j--) {
        int64_t other = cgam_rng_below(&rng, j + 1), one = t->place[j];
        t->place[j] = t->place[other];
        t->place[other] = one;
    }
    for (int64_t j = 0; j < d / 2; j++) t->angle[j] = full * cgam_rng_uniform(&rng);
}

cgam_status cgam_fit_turn(cgam_env *env, uint64_t seed, bool back, int64_t m, int64_t d, double *x)
{
    rotation t;
    double *buffer;
    int64_t rounds = 2;
    for (int64_t size = 1; size < d; size *= 2) rounds += 2;
    cgam_status status = cgam_alloc_all(env, "a rotation", CGAM_ARRAY(t.place, d),
                                        CGAM_ARRAY(t.angle, d), CGAM_ARRAY(buffer, d));
    for (int64_t k = 0; k < rounds && status == CGAM_OK; k++) {
        draw_turn(seed, back ? rounds - 1 - k : k, d, &t);
        for (int64_t i = 0; i < m; i++) {
            double *row = x + i * d;
            if (back) rotate_pairs(&t, true, d, row);
            permute(&t, back, d, row, buffer);
            memcpy(row, buffer, (size_t)d * sizeof *row);
            if (!back) rotate_pairs(&t, false, d, row);
        }
    }
    cgam_free_all(env, t.place, t.angle, buffer);
    return status;
}
