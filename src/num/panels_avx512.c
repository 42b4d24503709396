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
#define NARROW(u, v)                                                                               \
    ((vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)(u))),                 \
                            _mm512_cvtpd_ps((__m512d)(v)), 1))
#include "num/panels_body.h"
#endif
