/* gemm_avx2.c: matrix products for x86-64 with AVX2 and FMA. */
#if defined(__x86_64__)
#define NAME avx2
#define BYTES 32
#define VECTORS 2
#include "num/cpu/gemm_body.h"
#endif
