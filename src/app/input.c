/* input.c: banks, matrices and indices from the command line's words. */
#include "app/input.h"
#include "base/env.h"
#include "num/cpu/widen.h"

#include <math.h>

cgam_status cgam_input_bank(cgam_call *call, cgam_bank **out)
{
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = cgam_args_flag(call->args, "normalize");
    return cgam_bank_load(call->env, cgam_args_text(call->args, "bank"), &opts, out);
}

cgam_status cgam_input_matrix(cgam_env *env, const char *path, cgam_matrix *out)
{
    *out = (cgam_matrix){0};
    cgam_array array = {0};
    cgam_status status = cgam_array_open(env, path, &array);
    if (status != CGAM_OK) return status;
    if (array.ndim != 1 && array.ndim != 2)
        status =
            cgam_fail(env, CGAM_E_SHAPE, "%s: 1 or 2 dimensions are expected, this array has %d",
                      path, array.ndim);
    else if (array.size == 0) status = cgam_fail(env, CGAM_E_SHAPE, "%s: the array is empty", path);
    if (status == CGAM_OK) {
        out->vector = array.ndim == 1;
        out->rows = out->vector ? 1 : array.shape[0];
        out->columns = array.shape[array.ndim - 1];
        out->data = cgam_alloc(env, (size_t)array.size, sizeof *out->data);
        status = out->data ? cgam_array_read_f64(env, &array, path, out->data)
                           : cgam_fail_nomem(env, path);
    }
    if (status != CGAM_OK) {
        cgam_free(env, out->data);
        *out = (cgam_matrix){0};
    }
    cgam_array_close(env, &array);
    return status;
}

cgam_status cgam_input_indices(cgam_env *env, const char *what, const char *text, int64_t count,
                               int64_t below, int64_t **out)
{
    int64_t one = 0;
    bool number = cgam_text_is_int(text, &one);
    cgam_array array = {0};
    cgam_status status = number ? CGAM_OK : cgam_array_open(env, text, &array);
    if (status != CGAM_OK) return status;
    if (!number && (array.ndim > 1 || array.size != count))
        status = cgam_fail(env, CGAM_E_SHAPE,
                           "%s: %lld indices in %d dimensions, %lld in one are "
                           "expected",
                           text, (long long)array.size, array.ndim, (long long)count);
    *out = status == CGAM_OK ? cgam_alloc(env, (size_t)count, sizeof **out) : NULL;
    if (status == CGAM_OK && !*out) status = cgam_fail_nomem(env, what);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        double v = (double)one; /* exact below 2^53, and no bank has more memories */
        const char *at = (const char *)array.data + (size_t)i * cgam_dtype_size(array.dtype);
        if (!number) cgam_widen(array.dtype, at, 1, &v);
        if (!(v == floor(v)))
            status = cgam_fail(env, CGAM_E_VALUE, "%s: %s %g of query %lld is not an integer", text,
                               what, v, (long long)i);
        else if (v < 0 || v >= (double)below)
            status = cgam_fail(env, CGAM_E_ARG, "%s %.15g of query %lld: memories are 0 to %lld",
                               what, v, (long long)i, (long long)below - 1);
        else (*out)[i] = (int64_t)v;
    }
    if (status != CGAM_OK) {
        cgam_free(env, *out);
        *out = NULL;
    }
    cgam_array_close(env, &array);
    return status;
}
