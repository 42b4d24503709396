/* panels_avx512.c: matrix products for x86-64 with AVX-512. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

static bool usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("fma");
}

#define NAME avx512
#define BYTES 64
#define VECTORS 4
#define USABLE usable
#define WIDEN(p) ((vd)_mm512_cvtps_pd(_mm256_loadu_ps(p)))
#include "num/panels_body.h"
#endif
