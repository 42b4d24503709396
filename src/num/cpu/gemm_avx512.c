/* gemm_avx512.c: matrix products for x86-64 with AVX-512. */
#if defined(__x86_64__)
#define NAME avx512
#define BYTES 64
#define VECTORS 4
#include "num/cpu/gemm_body.h"
#endif
