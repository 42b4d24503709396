/* int8_plain.c: the plain reference of int8.h. */
#include "num/cpu/int8.h"

#include <string.h>

static size_t room(int64_t m, int64_t d)
{
    size_t bytes = (size_t)m * ((size_t)d + (size_t)cgam_int8_blocks(d) * sizeof(float));
    return (bytes + 63) / 64 * 64;
}

/* Steps first, then the vectors as they are. */
static void lay(int64_t m, int64_t d, const int8_t *x, const float *step, void *out)
{
    size_t steps = (size_t)(m * cgam_int8_blocks(d)) * sizeof *step;
    memcpy(out, step, steps);
    memcpy((char *)out + steps, x, (size_t)(m * d));
}

static void dot(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                const void *X, float *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    const float *step = X;
    const int8_t *x = (const int8_t *)(step + m * blocks);
    for (int64_t i = 0; i < n; i++)
        for (int64_t v = 0; v < m; v++) {
            double total = 0;
            for (int64_t b = 0; b < blocks; b++) {
                int64_t end = (b + 1) * CGAM_INT8_BLOCK < d ? (b + 1) * CGAM_INT8_BLOCK : d;
                int32_t sum = 0;
                for (int64_t j = b * CGAM_INT8_BLOCK; j < end; j++)
                    sum += rows[i * d + j] * x[v * d + j];
                total += (double)scale[i * blocks + b] * (double)step[v * blocks + b] * sum;
            }
            out[i * m + v] = (float)total;
        }
}

static void dot_wide(const int8_t *rows, const float *scale, int64_t n, int64_t d, const int16_t *x,
                     const float *step, float *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    for (int64_t i = 0; i < n; i++) {
        double total = 0;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t end = (b + 1) * CGAM_INT8_BLOCK < d ? (b + 1) * CGAM_INT8_BLOCK : d, sum = 0;
            for (int64_t j = b * CGAM_INT8_BLOCK; j < end; j++) sum += rows[i * d + j] * x[j];
            total += (double)scale[i * blocks + b] * (double)step[b] * (double)sum;
        }
        out[i] = (float)total;
    }
}

extern const cgam_int8 cgam_int8_plain, cgam_int8_many_plain;
const cgam_int8 cgam_int8_plain = {room, lay, dot, CGAM_INT8_MOST, dot_wide},
                cgam_int8_many_plain = {room, lay, dot, CGAM_INT8_MOST, dot_wide};
