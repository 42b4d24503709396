/* lanes_avx512.c: the loops for x86-64 with AVX-512 F, VL and DQ. */
#if defined(__x86_64__)
#include "num/cpu/cpu.h"

#include <immintrin.h>

#define NAME avx512
#define LANES 8
#define USABLE cgam_cpu_avx512
#define TILE_STEP 10
#define VMAX(a, b) _mm512_max_pd((__m512d)(a), (__m512d)(b))
#include "study/lanes_body.h"
#endif
