/* blas.c: see blas.h. Measured on a Xeon newer than OpenBLAS 0.3.21: dgemm 15 GF/s as loaded,
 * 59 GF/s with OPENBLAS_CORETYPE=SkylakeX. */
#include "num/blas.h"

#include "num/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

extern char *openblas_get_corename(void) __attribute__((weak));

const char *cgam_blas_core_wanted(void)
{
#if defined(__x86_64__)
    if (!openblas_get_corename || getenv("OPENBLAS_CORETYPE")) return NULL;
    if (strcmp(openblas_get_corename(), "Prescott") != 0) return NULL; /* what "unknown" gives */
    if (cgam_cpu_avx512()) return "SkylakeX";
    if (cgam_cpu_avx2()) return "Haswell";
#endif
    return NULL;
}
