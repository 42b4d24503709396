/* readout.c: see readout.h. */
#include "num/readout.h"

#include <math.h>
#include <string.h>

enum { FEW = 8 }; /* one row in so many counts: then they are read by list */

static const void *row_at(const cgam_rows *Z, int64_t i)
{
    return (const char *)Z->data + (size_t)(i * Z->stride) * cgam_dtype_size(Z->dtype);
}

/* All rows of the tile. */
static void set_whole(const cgam_rows *Z, const double *weight, cgam_readout *out)
{
    const double *scale = Z->scale ? Z->scale + out->begin : NULL;
    out->count = out->rows;
    if (out->brief)
        for (int64_t i = 0; i < out->rows; i++)
            out->w32[i] = (float)(scale ? weight[i] * scale[i] : weight[i]);
    else
        for (int64_t i = 0; i < out->rows; i++)
            out->w[i] = scale ? weight[i] * scale[i] : weight[i];
}

double cgam_readout_set(const cgam_rows *Z, int64_t begin, int64_t rows, const double *weight,
                        double cut, cgam_readout *out)
{
    double left_out = 0;
    out->begin = begin;
    out->rows = rows;
    out->count = 0;
    if (Z->kernels->above(weight, rows, cut) * FEW > rows) { /* NaN counts */
        set_whole(Z, weight, out);
        return 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        bool matters = !(fabs(weight[i]) <= cut);
        out->at[out->count] = (int32_t)i;
        out->w[out->count] = Z->scale ? weight[i] * Z->scale[begin + i] : weight[i];
        left_out += matters ? 0 : fabs(weight[i]);
        out->count += matters;
    }
    return left_out;
}

void cgam_readout_add(const cgam_rows *Z, cgam_readout *stale, double *y)
{
    const void *rows = row_at(Z, stale->begin);
    int64_t count = stale->count;
    if (count && count == stale->rows && stale->brief)
        stale->brief->sum[Z->dtype](rows, Z->stride, count, Z->d, stale->w32, y);
    else if (count && count == stale->rows)
        Z->kernels->sum[Z->dtype](rows, Z->stride, count, Z->d, stale->w, y);
    else if (count)
        Z->kernels->sum_at[Z->dtype](rows, Z->stride, stale->at, count, Z->d, stale->w, y);
    stale->count = 0;
}

static void scale_scores(const cgam_rows *Z, int64_t begin, int64_t count, double *out)
{
    if (Z->scale)
        for (int64_t i = 0; i < count; i++) out[i] *= Z->scale[begin + i];
}

void cgam_readout_score(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                        const cgam_brief *brief, const float *x32, double *out)
{
    if (!x32) {
        cgam_rows_dot(Z, begin, count, x, out);
        return;
    }
    brief->dot[Z->dtype](row_at(Z, begin), Z->stride, count, Z->d, x32, out);
    scale_scores(Z, begin, count, out);
}

void cgam_readout_dot(const cgam_rows *Z, int64_t begin, int64_t count, const double *x,
                      const cgam_brief *brief, const float *x32, double *out, cgam_readout *stale,
                      double *y)
{
    if (stale->count != count || stale->rows != count) {
        cgam_readout_score(Z, begin, count, x, brief, x32, out);
        if (stale->count) cgam_readout_add(Z, stale, y);
        return;
    }
    const void *fresh = row_at(Z, begin), *waits = row_at(Z, stale->begin);
    if (x32) brief->both[Z->dtype](fresh, waits, Z->stride, count, Z->d, x32, out, stale->w32, y);
    else Z->kernels->both[Z->dtype](fresh, waits, Z->stride, count, Z->d, x, out, stale->w, y);
    stale->count = 0;
    scale_scores(Z, begin, count, out);
}
