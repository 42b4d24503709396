/* sift_plain.c: the plain reference of sift.h. */
#include "num/cpu/sift.h"

#include <math.h>

static void run(int64_t rows, int64_t width, const float *S, const float *hat, const float *rest,
                const cgam_sift_by *by, bool focus, uint64_t *open, float *high, float *low,
                int32_t *above)
{
    for (int64_t v = 0; v < width; v++) {
        double sum = 0, least = 0;
        int32_t count = 0;
        for (int64_t i = 0; i < rows; i++) {
            uint64_t bit = UINT64_C(1) << v;
            double a = (double)S[i * width + v];
            double off =
                (double)by->hat[v] * (double)hat[i] + (double)by->rest[v] * (double)rest[i];
            bool up = focus && a - off > (double)by->focus_high[v];
            bool is = !(a + off < (double)by->floor[v]) ||
                      (focus && !up && !(a + off < (double)by->focus_low[v]));
            open[i] = (v == 0 ? 0 : open[i] & ~bit) | (is ? bit : 0);
            if (is) continue;
            count += up;
            double rate = (double)by->rate[v];
            sum += exp2(rate * (a + off) - (double)by->shift[v]);
            least += exp2(rate * (a - off) - (double)by->shift[v]);
        }
        high[v] = (float)sum;
        low[v] = (float)least;
        above[v] = count;
    }
}

static void one(int64_t groups, const float *S, const float *hat, const float *rest,
                const cgam_sift_one *by, uint64_t *open, double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int64_t i = 0; i < groups * CGAM_SIFT_WIDTH; i++) {
        uint64_t *to = &open[i / CGAM_SIFT_WIDTH];
        double a = (double)S[i], rate = (double)by->rate;
        double off = (double)by->hat * (double)hat[i] + (double)by->rest * (double)rest[i];
        bool is = !(a + off < (double)by->floor);
        if (i % CGAM_SIFT_WIDTH == 0) *to = 0;
        *to |= (uint64_t)is << i % CGAM_SIFT_WIDTH;
        if (is) continue;
        sums[0] += exp2(rate * (a + off) - (double)by->shift);
        sums[1] += exp2(rate * (a - off) - (double)by->shift);
    }
}

extern const cgam_sift cgam_sift_plain;
const cgam_sift cgam_sift_plain = {run, one};
