/* nvector.h: SUNDIALS' vectors in memory of the env, so that the large blocks of an integration
 * are counted, limited and made to fail like all others.
 *
 * SUNDIALS (6.4) does not look whether a clone came back. So a clone always does: where there is
 * no memory it shares one spare block with others of its kind, which is safe but no vector, and
 * `failed` is set. The caller looks at it after set-up and after each step. */
#ifndef CGAM_SRC_NET_NVECTOR_H
#define CGAM_SRC_NET_NVECTOR_H

#include "base/env.h"

#include <nvector/nvector_serial.h>

typedef struct cgam_nvectors {
    cgam_env *env;
    double *spare; /* private */
    bool failed;
} cgam_nvectors;

/* A vector of n numbers, which all its clones take after; NULL when out of memory. Free it with
 * N_VDestroy. The family outlives the vectors and is freed after them. */
N_Vector cgam_nvector_new(cgam_nvectors *family, int64_t n, SUNContext context);
void cgam_nvectors_free(cgam_nvectors *family); /* copes with {0} */

#endif
