/* stored.h: random rows in any storage type, as kernels meet them. */
#ifndef CGAM_TESTS_STORED_H
#define CGAM_TESTS_STORED_H

#include "support/dense.h"

#include "num/cpu/widen.h"

#include <math.h>

typedef struct stored {
    cgam_dtype dtype;
    int64_t n, d, stride;
    unsigned char *data;
    double *wide; /* [n, d] */
} stored;

static inline unsigned char *stored_row(const stored *Z, int64_t i)
{
    return Z->data + (size_t)(i * Z->stride) * cgam_dtype_size(Z->dtype);
}

/* Rows that begin `shift` elements after a 64-byte boundary, NaN between them. */
static inline stored stored_rows(cgam_rng *rng, cgam_dtype dtype, int64_t n, int64_t d, int64_t gap,
                                 int64_t shift)
{
    stored Z = {dtype, n, d, d + gap, NULL, dense_room(n * d)};
    unsigned char *block = (unsigned char *)dense_room(n * Z.stride + shift + 16);
    block += (64 - (uintptr_t)block % 64) % 64;
    Z.data = block + (size_t)shift * cgam_dtype_size(dtype);
    double *row = dense_room(Z.stride);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < Z.stride; j++)
            row[j] = j < d ? cgam_rng_normal(rng) * (j % 5 == 4 ? 1e-3 : 1) : NAN;
        int64_t count = i + 1 < n ? Z.stride : d; /* nothing may be read behind the last row */
        cgam_narrow(dtype, row, count, stored_row(&Z, i));
        cgam_widen(dtype, stored_row(&Z, i), d, Z.wide + i * d);
    }
    return Z;
}

#endif
