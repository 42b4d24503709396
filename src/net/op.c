/* op.c: dense weights as operators. Rows stay as they are stored (f64, f32, f16 or bf16, mapped
 * files included) and are converted while they are read, by the same kernels as a bank. */
#include "net/net.h"

#include "base/blas.h"
#include "num/cpu/widen.h"
#include "num/rows.h"

#include <limits.h>
#include <math.h>
#include <string.h>

typedef struct dense {
    cgam_op op;
    cgam_env *env;
    cgam_rows rows;
    void *owned;      /* a copy, or NULL */
    cgam_array array; /* an open file, or {0} */
} dense;

static cgam_status dense_apply(void *user, int64_t count, const double *in, double *out)
{
    dense *W = user;
    return cgam_rows_score_many(W->env, &W->rows, count, in, out);
}

static cgam_status dense_apply_t(void *user, int64_t count, const double *in, double *out)
{
    dense *W = user;
    return cgam_rows_combine_many(W->env, &W->rows, count, in, out);
}

static void dense_free(cgam_env *env, void *thing)
{
    dense *W = thing;
    cgam_array_close(env, &W->array);
    cgam_free(env, W->owned);
    cgam_free(env, W);
}

static cgam_status check_finite(const dense *W, const char *name)
{
    double *row = cgam_alloc(W->env, (size_t)W->rows.d, sizeof *row);
    if (!row) return cgam_fail_nomem(W->env, "weights");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < W->rows.n && status == CGAM_OK; i++) {
        cgam_rows_get(&W->rows, i, 1, row);
        for (int64_t j = 0; j < W->rows.d && status == CGAM_OK; j++)
            if (!isfinite(row[j]))
                status = cgam_fail(W->env, CGAM_E_VALUE, "%s: row %lld, column %lld is %s", name,
                                   (long long)i, (long long)j, isnan(row[j]) ? "NaN" : "infinite");
    }
    cgam_free(W->env, row);
    return status;
}

static double element_at(const cgam_rows *rows, int64_t i, int64_t j)
{
    double value;
    const char *base = rows->data;
    cgam_widen(rows->dtype, base + (size_t)(i * rows->stride + j) * cgam_dtype_size(rows->dtype), 1,
               &value);
    return value;
}

static bool is_symmetric(const cgam_rows *rows)
{
    if (rows->n != rows->d) return false;
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t j = 0; j < i; j++)
            if (element_at(rows, i, j) != element_at(rows, j, i)) return false;
    return true;
}

/* Adds the operator to W, which is otherwise complete; the network takes it over. */
static cgam_status adopt_dense(cgam_net *net, dense *W, const char *name, const cgam_op **out)
{
    cgam_status status = check_finite(W, name);
    if (status != CGAM_OK) {
        dense_free(net->env, W);
        return status;
    }
    W->op = (cgam_op){.rows = W->rows.n,
                      .cols = W->rows.d,
                      .apply = dense_apply,
                      .apply_t = dense_apply_t,
                      .user = W,
                      .symmetric = is_symmetric(&W->rows)};
    const cgam_op *op = &W->op;
    status = cgam_net_keep(net, dense_free, W);
    if (status == CGAM_OK) *out = op;
    return status;
}

cgam_status cgam_net_dense_own(cgam_net *net, const cgam_op *op, double **data)
{
    if (op->apply != dense_apply)
        return cgam_fail(net->env, CGAM_E_UNSUPPORTED,
                         "weights given by functions cannot be learned");
    dense *W = op->user;
    if (!W->owned || W->rows.dtype != CGAM_F64) {
        double *copy = cgam_alloc(net->env, (size_t)(W->rows.n * W->rows.d), sizeof *copy);
        if (!copy) return cgam_fail_nomem(net->env, "a copy of weights");
        cgam_rows_get(&W->rows, 0, W->rows.n, copy);
        cgam_array_close(net->env, &W->array);
        cgam_free(net->env, W->owned);
        W->owned = copy;
        W->rows = (cgam_rows){copy,      CGAM_F64, W->rows.n,       W->rows.d,
                              W->rows.d, NULL,     cgam_cpu_best(), NULL};
    }
    W->op.symmetric = false; /* it need not stay so */
    *data = W->owned;
    return CGAM_OK;
}

bool cgam_op_multiply(const cgam_op *op, bool transposed, int64_t count, const double *in,
                      double *out)
{
    if (op->apply != dense_apply) return false;
    const dense *W = op->user;
    int n = (int)W->rows.n, d = (int)W->rows.d;
    if (W->rows.dtype != CGAM_F64 || count > INT_MAX || W->rows.n > INT_MAX) return false;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, transposed ? CblasNoTrans : CblasTrans, (int)count,
                transposed ? d : n, transposed ? n : d, 1, in, transposed ? n : d, W->rows.data, d,
                0, out, transposed ? d : n);
    return true;
}

static cgam_status check_dense(cgam_net *net, const char *name, cgam_dtype dtype, int64_t rows,
                               int64_t cols)
{
    if (dtype > CGAM_BF16)
        return cgam_fail(net->env, CGAM_E_UNSUPPORTED, "%s: weights cannot be %s", name,
                         cgam_word(cgam_dtype_words, dtype));
    if (rows < 1 || cols < 1 || cols > INT32_MAX / 2 || rows > (INT64_C(1) << 40) / cols)
        return cgam_fail(net->env, CGAM_E_SHAPE, "%s: unsupported size of weights: %lld x %lld",
                         name, (long long)rows, (long long)cols);
    return CGAM_OK;
}

cgam_status cgam_net_dense(cgam_net *net, const void *data, cgam_dtype dtype, int64_t rows,
                           int64_t cols, bool copy, const cgam_op **out)
{
    *out = NULL;
    cgam_env *env = net->env;
    cgam_status status = check_dense(net, "weights", dtype, rows, cols);
    if (status != CGAM_OK) return status;
    dense *W = cgam_zalloc(env, 1, sizeof *W);
    if (!W) return cgam_fail_nomem(env, "weights");
    W->env = env;
    if (copy) {
        size_t bytes = (size_t)(rows * cols) * cgam_dtype_size(dtype);
        W->owned = cgam_alloc(env, bytes, 1);
        if (!W->owned) {
            dense_free(env, W);
            return cgam_fail_nomem(env, "a copy of weights");
        }
        memcpy(W->owned, data, bytes);
        data = W->owned;
    }
    W->rows = (cgam_rows){data, dtype, rows, cols, cols, NULL, cgam_cpu_best(), NULL};
    return adopt_dense(net, W, "weights", out);
}

cgam_status cgam_net_dense_array(cgam_net *net, const char *name, cgam_array *array, int64_t rows,
                                 const cgam_op **out)
{
    *out = NULL;
    int64_t cols = rows > 0 ? array->size / rows : 0;
    cgam_status status = check_dense(net, name, array->dtype, rows, cols);
    dense *W = status == CGAM_OK ? cgam_zalloc(net->env, 1, sizeof *W) : NULL;
    if (!W) {
        cgam_array_close(net->env, array);
        return status != CGAM_OK ? status : cgam_fail_nomem(net->env, "weights");
    }
    W->env = net->env;
    W->array = *array;
    *array = (cgam_array){0};
    W->rows =
        (cgam_rows){W->array.data, W->array.dtype, rows, cols, cols, NULL, cgam_cpu_best(), NULL};
    return adopt_dense(net, W, name, out);
}

cgam_status cgam_net_dense_norm2(cgam_net *net, const cgam_op *W, double *diagonal)
{
    if (W->apply != dense_apply)
        return cgam_fail(net->env, CGAM_E_ARG, "row norms need weights that are stored");
    const cgam_rows *rows = &((const dense *)W->user)->rows;
    double *row = cgam_alloc(net->env, (size_t)rows->d, sizeof *row);
    if (!row) return cgam_fail_nomem(net->env, "row norms");
    for (int64_t i = 0; i < rows->n; i++) {
        cgam_rows_get(rows, i, 1, row);
        rows->cpu->f64->dot[CGAM_F64](row, rows->d, 1, rows->d, row, &diagonal[i]);
    }
    cgam_free(net->env, row);
    return CGAM_OK;
}
