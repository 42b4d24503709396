/* lanes_avx512.c: the loops for x86-64 with AVX-512 F, VL and DQ. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

static bool usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma");
}

#define NAME avx512
#define LANES 8
#define USABLE usable
#define TILE_STEP 10
#define VMAX(a, b) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#include "study/lanes_body.h"
#endif
