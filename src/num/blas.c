/* blas.c: see blas.h. Measured on a Xeon newer than OpenBLAS 0.3.21: dgemm 15 GF/s as loaded,
 * 59 GF/s with OPENBLAS_CORETYPE=SkylakeX. */
#include "num/blas.h"

#include "num/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

extern char *openblas_get_corename(void) __attribute__((weak));

const char *cgam_blas_core_wanted(void)
{
    if (!openblas_get_corename || getenv("OPENBLAS_CORETYPE")) return NULL;
    if (strcmp(openblas_get_corename(), "Prescott") != 0) return NULL; /* what "unknown" gives */
    const char *cpu = cgam_cpu_best()->name;
    if (strcmp(cpu, "avx512") == 0) return "SkylakeX";
    return strcmp(cpu, "avx2") == 0 ? "Haswell" : NULL;
}
