/* readout.c: see readout.h. */
#include "num/readout.h"

#include <math.h>
#include <string.h>

enum { FEW = 8 }; /* one row in so many counts: then they are read by list */

static const void *row_at(const cgam_rows *Z, int64_t i)
{
    return (const char *)Z->data + (size_t)(i * Z->stride) * cgam_dtype_size(Z->dtype);
}

double cgam_readout_set(const cgam_rows *Z, int64_t begin, int64_t rows, const double *weight,
                        double cut, cgam_readout *out)
{
    double left_out = 0;
    int64_t count = 0;
    out->begin = begin;
    out->rows = rows;
    for (int64_t i = 0; i < rows; i++) {
        bool matters = !(fabs(weight[i]) <= cut); /* NaN matters */
        out->at[count] = (int32_t)i;
        out->w[count] = weight[i];
        left_out += matters ? 0 : fabs(weight[i]);
        count += matters;
    }
    if (count * FEW > rows) {
        memcpy(out->w, weight, (size_t)rows * sizeof *out->w);
        for (int64_t i = 0; i < rows; i++) out->at[i] = (int32_t)i;
        count = rows;
        left_out = 0;
    }
    for (int64_t i = 0; Z->scale && i < count; i++) out->w[i] *= Z->scale[begin + out->at[i]];
    out->count = count;
    return left_out;
}

void cgam_readout_add(const cgam_rows *Z, cgam_readout *stale, double *y)
{
    const void *rows = row_at(Z, stale->begin);
    if (stale->count == stale->rows)
        Z->kernels->sum[Z->dtype](rows, Z->stride, stale->count, Z->d, stale->w, y);
    else if (stale->count)
        Z->kernels->sum_at[Z->dtype](rows, Z->stride, stale->at, stale->count, Z->d, stale->w, y);
    stale->count = 0;
}

void cgam_readout_dot(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                      double *out, cgam_readout *stale, double *y)
{
    if (stale->count != count || stale->rows != count) {
        cgam_rows_dot(Z, begin, count, x, out);
        if (stale->count) cgam_readout_add(Z, stale, y);
        return;
    }
    Z->kernels->both[Z->dtype](row_at(Z, begin), row_at(Z, stale->begin), Z->stride, count, Z->d, x,
                               out, stale->w, y);
    stale->count = 0;
    if (Z->scale)
        for (int64_t i = 0; i < count; i++) out[i] *= Z->scale[begin + i];
}
