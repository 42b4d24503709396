/* lanes_avx2.c: the loops for x86-64 with AVX2 and FMA. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

static bool usable(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

#define NAME avx2
#define LANES 4
#define USABLE usable
#define TILE_STEP 10
#define VMAX(a, b) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#include "study/lanes_body.h"
#endif
