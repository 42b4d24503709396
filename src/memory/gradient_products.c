/* gradient_products.c: products of the bank with the vectors of a group, in double.
 *
 * Few vectors share a pass and nothing else; eight or more on a large bank are multiplied as matrices. */
#include "memory/gradient.h"

#include "memory/route.h"
#include "num/gemm_pass.h"

static bool multiplies(const cgam_recall *plan, int64_t count)
{
    return plan->can.matrices && count >= CGAM_ROUTE_SHARE;
}

cgam_status cgam_slope_scores(const cgam_recall *plan, int64_t count, const double *X, double *out)
{
    const cgam_bank *bank = plan->bank;
    return (multiplies(plan, count) ? cgam_gemm_pass_scores
                                    : cgam_rows_score_many)(bank->env, &bank->Z, count, X, out);
}

typedef struct summing {
    const double *W;
    int64_t n;
    cgam_gemm_pass pass;
} summing;

static void weigh(void *arg, cgam_gemm_pass_tile *t)
{
    const summing *job = arg;
    double *S = t->S;
    for (int64_t r = 0; r < t->count; r++)
        for (int64_t v = 0; v < job->pass.width; v++)
            S[r * job->pass.width + v] =
                v < job->pass.vectors ? job->W[v * job->n + t->begin + r] : 0;
}

cgam_status cgam_slope_sums(const cgam_recall *plan, int64_t count, const double *W, double *out)
{
    const cgam_bank *bank = plan->bank;
    const cgam_rows *Z = &bank->Z;
    cgam_status status = CGAM_OK;
    if (!multiplies(plan, count)) return cgam_rows_combine_many(bank->env, Z, count, W, out);
    for (int64_t k = 0; k < count && status == CGAM_OK; k += CGAM_GEMM_PASS_WIDTH) {
        double *to[CGAM_GEMM_PASS_WIDTH];
        int64_t some = count - k < CGAM_GEMM_PASS_WIDTH ? count - k : CGAM_GEMM_PASS_WIDTH;
        summing job = {.W = W + k * Z->n, .n = Z->n};
        job.pass = (cgam_gemm_pass){.env = bank->env,
                                    .Z = Z,
                                    .wide = true,
                                    .vectors = some,
                                    .reads = true,
                                    .weigh = weigh,
                                    .arg = &job};
        for (int64_t v = 0; v < some; v++) to[v] = out + (k + v) * Z->d;
        status = cgam_gemm_pass_new(&job.pass);
        if (status == CGAM_OK) status = cgam_gemm_pass_run(&job.pass);
        if (status == CGAM_OK) status = cgam_gemm_pass_join(&job.pass, NULL, to);
        cgam_gemm_pass_free(&job.pass);
    }
    return status;
}
