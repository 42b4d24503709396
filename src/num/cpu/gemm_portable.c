/* gemm_portable.c: matrix products for any CPU, by vectors of 16 bytes. */
#define NAME portable
#define BYTES 16
#define VECTORS 2
#include "num/cpu/gemm_body.h"
