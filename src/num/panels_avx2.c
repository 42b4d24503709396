/* panels_avx2.c: matrix products for x86-64 with AVX2 and FMA. */
#if defined(__x86_64__)
#include <stdbool.h>

static bool usable(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

#define NAME avx2
#define BYTES 32
#define VECTORS 2
#define USABLE usable
#include "num/panels_body.h"
#endif
