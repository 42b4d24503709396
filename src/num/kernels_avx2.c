/* kernels_avx2.c: the kernels for x86-64 with AVX2, FMA and F16C (2013 on). */
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

static bool usable(void)
{
    unsigned a, b, c, d; /* clang 14 has no name for F16C, so the CPU is asked itself */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#define NAME avx2
#define LANES 4
#define USABLE usable
#define WIDEN_F32(p) ((vd)_mm256_cvtps_pd(_mm_loadu_ps(p)))
#define WIDEN_F16(p) ((vd)_mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(p)))))
#include "num/kernels_body.h"
#endif
