/* stored.h: random rows in any storage type, as kernels meet them, and the kernels of every CPU that can run here. */
#ifndef CGAM_TESTS_STORED_H
#define CGAM_TESTS_STORED_H

#include "support/check.h"
#include "support/dense.h"

#include "num/cpu/cpu.h"
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

static const cgam_cpu *stored_cpu; /* whose kernels are tested, for messages */

static inline void stored_compare(double got, double want, double allowed, const stored *Z,
                                  const char *what, int64_t at)
{
    if (fabs(got - want) <= allowed) return;
    fail_msg("%s %s of %s, n = %lld, d = %lld, stride = %lld, entry %lld\n  got     %.17g\n"
             "  want    %.17g\n  off by  %.3g\n  allowed %.3g",
             stored_cpu->name, what, cgam_word(cgam_dtype_words, Z->dtype), (long long)Z->n,
             (long long)Z->d, (long long)Z->stride, (long long)at, got, want, fabs(got - want),
             allowed);
}

typedef void (*stored_visit)(cgam_rng *rng, cgam_dtype dtype);

/* Calls `each` for every CPU that can run here and every type from `first` on. */
static inline void stored_for_each(stored_visit each, cgam_dtype first, uint64_t seed)
{
    int seen = 0;
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        if (!cgam_cpu_all[i].usable()) continue;
        stored_cpu = &cgam_cpu_all[i];
        seen++;
        for (int t = (int)first; t < CGAM_CPU_DTYPES; t++) {
            cgam_rng rng = cgam_rng_stream(seed, (uint64_t)(10 * i + t));
            each(&rng, (cgam_dtype)t);
        }
    }
    assert_true(seen >= 2); /* the plain and the portable one run anywhere */
}

#endif
