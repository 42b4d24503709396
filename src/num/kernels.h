/* kernels.h: the two inner loops everything large is made of, in every storage type and for
 * every CPU we know, chosen when the program starts.
 *
 *   dot   out[i] = <row i, x>            scores
 *   sum   y     += sum_i w[i] row i      readouts
 *
 * Rows are widened as they are read and all arithmetic is in double: a single query is bound by
 * memory, so the wider arithmetic costs nothing. One body, kernels_body.h, is compiled once per
 * CPU. `cgam_kernels_all[0]` is the plain reference, written without vectors, and the judge of
 * the others. */
#ifndef CGAM_SRC_NUM_KERNELS_H
#define CGAM_SRC_NUM_KERNELS_H

#include <cgam/base.h>

enum { CGAM_KERNEL_DTYPES = 4 }; /* f64, f32, f16, bf16: the order of cgam_dtype */

typedef struct cgam_kernels {
    const char *name;
    bool (*usable)(void); /* does this CPU run it */
    /* rows: [n, d] with `stride` elements from row to row */
    void (*dot[CGAM_KERNEL_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                    const double *x, double *out);
    void (*sum[CGAM_KERNEL_DTYPES])(const void *rows, int64_t stride, int64_t n, int64_t d,
                                    const double *w, double *y);
} cgam_kernels;

/* Plain reference first, then by rising speed; NULL ends. Entries may be unusable here. */
extern const cgam_kernels *const cgam_kernels_all[];

/* The fastest usable one. */
const cgam_kernels *cgam_kernels_best(void);

#endif
