/* bench_lm_fit.c: a projection by ridge from 400 pairs of width 2048, the penalty by leave-one-out, with
 * P as a matrix and 400 contexts through it: under 10 s on two cores. Beside it what no way of doing it
 * can be without: the Gram matrices of x and of the residuals, the eigenvalues of one of them by LAPACK,
 * and the product that makes P, each called alone. Exit status 1: it took longer. */
#include "base/blas.h"
#include "base/env.h"
#include "lab/language/fit.h"

#include <cgam/base.h>
#include <stdio.h>

enum { N = 400, D = 2048, ROUNDS = 3 };

static double x[N * D], y[N * D], P[D * D], out[N * D], G[N * N], values[N];

static void fill(void)
{
    cgam_rng rng = cgam_rng_stream(1, 0);
    for (int i = 0; i < N * D; i++) {
        x[i] = cgam_rng_normal(&rng);
        y[i] = 0.7 * x[i] + 0.3 * cgam_rng_normal(&rng);
    }
}

/* All of a fit. */
static cgam_status fit(cgam_env *env, double *rho)
{
    cgam_ridge *ridge = NULL;
    cgam_status status = cgam_ridge_new(env, N, D, x, y, NULL, &ridge);
    if (status == CGAM_OK) *rho = cgam_ridge_rho(ridge);
    if (status == CGAM_OK) status = cgam_ridge_apply(ridge, N, x, out);
    if (status == CGAM_OK) status = cgam_ridge_matrix(ridge, P);
    cgam_ridge_free(ridge);
    return status;
}

/* Products and eigenvalues alone. */
static cgam_status least(cgam_env *env)
{
    const cgam_product products[] = {
        {.m = N, .n = N, .k = D, .A = y, .B = y, .turned_b = true, .C = G},
        {.m = N, .n = D, .k = N, .A = G, .B = y, .C = out},
        {.m = D, .n = D, .k = N, .A = y, .turned_a = true, .B = x, .C = P},
        {.m = N, .n = N, .k = D, .A = x, .B = x, .turned_b = true, .C = G}};
    cgam_status status = CGAM_OK;
    for (int i = 0; i < 4 && status == CGAM_OK; i++) status = cgam_product_run(env, &products[i]);
    if (status == CGAM_OK && LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'L', N, G, N, values) != 0)
        status = cgam_fail(env, CGAM_E_INTERNAL, "no eigenvalues");
    return status;
}

int main(void)
{
    cgam_env *env = NULL;
    double rho = 0;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    fill();
    double whole = 1e9, alone = 1e9;
    cgam_status status = CGAM_OK;
    for (int round = 0; round < ROUNDS && status == CGAM_OK;
         round++) { /* by turns, the best of each */
        double start = cgam_clock();
        status = fit(env, &rho);
        double middle = cgam_clock();
        if (status == CGAM_OK) status = least(env);
        double end = cgam_clock();
        if (middle - start < whole) whole = middle - start;
        if (end - middle < alone) alone = end - middle;
    }
    if (status == CGAM_OK)
        printf(
            "ridge: %d pairs of width %d, rho %.3g by leave-one-out, P as a matrix: %.2f s on %d "
            "threads (at most 10), %.2f of its products and eigenvalues alone (%.2f s)\n",
            N, D, rho, whole, cgam_env_threads(env), whole / alone, alone);
    else fprintf(stderr, "bench_lm_fit: %s\n", cgam_env_message(env));
    cgam_env_free(env);
    return status != CGAM_OK ? 3 : whole < 10 ? 0 : 1;
}
