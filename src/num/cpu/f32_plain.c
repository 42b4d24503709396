/* f32_plain.c: the plain reference of f32.h. It rounds x and w like the other versions. */
#include "num/cpu/f32.h"

#include "num/cpu/plain_rows.h"

#define PLAIN(name, dtype)                                                                         \
    static void lay_##name(const double *x, int64_t d, float *out)                                 \
    {                                                                                              \
        for (int64_t j = 0; j < d; j++) out[j] = (float)x[j];                                      \
    }                                                                                              \
    static void flush_##name(int64_t d, float *from, double *y)                                    \
    {                                                                                              \
        for (int64_t j = 0; j < d; j++) y[j] += (double)from[j], from[j] = 0;                      \
    }                                                                                              \
    PLAIN_ROWS(name, dtype, float)
PLAIN(f32, CGAM_F32)
PLAIN(f16, CGAM_F16)
PLAIN(bf16, CGAM_BF16)

extern const cgam_f32 cgam_f32_plain;
const cgam_f32 cgam_f32_plain = CGAM_F32_TABLE(CGAM_F32_TILE);
