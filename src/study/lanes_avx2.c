/* lanes_avx2.c: the loops for x86-64 with AVX2 and FMA. */
#if defined(__x86_64__)
#include "num/cpu/cpu.h"

#include <immintrin.h>

#define NAME avx2
#define LANES 4
#define USABLE cgam_cpu_avx2
#define TILE_STEP 10
#define VMAX(a, b) _mm256_max_pd((__m256d)(a), (__m256d)(b))
#include "study/lanes_body.h"
#endif
