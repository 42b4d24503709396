/* nvector.h: SUNDIALS' vectors in memory of the env, so that the large blocks of an integration
 * are counted, limited and made to fail like all others.
 *
 * SUNDIALS (6.4) does not check whether a clone is NULL. So a clone is never NULL: without memory it shares one spare
 * block with other failed clones, which is safe but not a usable vector, and `failed` is set. The caller checks it
 * after set-up and after each step. */
#ifndef CGAM_SRC_NET_NVECTOR_H
#define CGAM_SRC_NET_NVECTOR_H

#include "base/env.h"

#include <nvector/nvector_serial.h>

typedef struct cgam_nvectors {
    cgam_env *env;
    double *spare; /* private */
    bool failed;
} cgam_nvectors;

/* Makes a vector of n numbers, the model of all its clones; NULL if out of memory. Free it with N_VDestroy. The
 * family must outlive the vectors and is freed after them. */
N_Vector cgam_nvector_new(cgam_nvectors *family, int64_t n, SUNContext context);
void cgam_nvectors_free(cgam_nvectors *family); /* {0} is allowed */

#endif
