/* projection.c: projections from files, and what they make of contexts. */
#include "lm/fit.h"

#include "base/env.h"

#include <cgam/io.h>

void cgam_projection_free(cgam_env *env, double *P) { cgam_free(env, P); }

cgam_status cgam_projection_read(cgam_env *env, const char *path, int64_t width, double **out)
{
    cgam_array array = {0};
    *out = NULL;
    cgam_status status = cgam_array_open(env, path, &array);
    if (status != CGAM_OK) return status;
    if (array.ndim != 2)
        status = cgam_fail(env, CGAM_E_SHAPE, "projection: %s has %d dimensions, 2 are expected",
                           path, array.ndim);
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
    cgam_status status = cgam_product_run(
        env, &(cgam_product){.m = m, .n = d, .k = d, .A = in, .B = P, .turned_b = true, .C = out});
    for (int64_t i = 0; i < m * d && status == CGAM_OK; i++) x[i] = (float)out[i];
    cgam_free(env, in);
    return status;
}
