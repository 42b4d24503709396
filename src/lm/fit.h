/* fit.h (inside): products that the fits of projections share. */
#ifndef CGAM_SRC_LM_FIT_H
#define CGAM_SRC_LM_FIT_H

#include <cgam/fit.h>

/* C [m, n] = A B (+ C if add), rows shared among the env's threads. turned_a: A is [k, m] and taken
 * transposed, else [m, k]; turned_b: B is [n, k], else [k, n]. */
typedef struct cgam_product {
    int64_t m, n, k;
    const double *A, *B;
    bool turned_a, turned_b, add;
    double *C;
} cgam_product;
CGAM_NODISCARD cgam_status cgam_product_run(cgam_env *env, const cgam_product *p);

#endif
