/* sieve.c: see sieve.h. */
#include "num/sieve.h"

#include "num/rounding.h"

#include <float.h>

static const double LOG2E = 0x1.71547652b82fep0;

bool cgam_sieve_serves(double unit, double beta) { return beta * unit <= 0x1p60; }

cgam_sift_one cgam_sieve_of(const cgam_sketched *x, cgam_sketch_error off, double unit, double beta,
                            double floor, double ref)
{
    /* the sum S + E is rounded; S is at most |x_hat| times |zeta_hat| */
    double rounding = 8 * 0x1p-24 * (x->size + x->left[0]);
    return (cgam_sift_one){.hat = cgam_above_f32((off.hat + rounding) * (1 + 0x1p-20)),
                           .rest = cgam_above_f32(off.rest * (1 + 0x1p-20)),
                           .floor = cgam_below_f32(floor / unit - CGAM_SIEVE_TINY),
                           .rate = (float)(beta * unit * LOG2E),
                           .shift = (float)(beta * ref * LOG2E)};
}

int64_t cgam_sieve_rows(const cgam_sift_one *by, const cgam_sketch *sketch, const cgam_cpu *cpu,
                        int64_t begin, int64_t count, const float *scores, int32_t *list,
                        double *low, double *high)
{
    enum { WIDTH = CGAM_SIFT_WIDTH, GROUPS = 16 };
    const float *from[3] = {scores, sketch->hat + begin, sketch->rest + begin};
    float last[3][WIDTH];
    uint64_t open[GROUPS];
    int64_t listed = 0, some;
    double sums[2], all[2] = {0, 0};
    for (int64_t i = 0; i < count; i += some) {
        int64_t left = count - i, groups = left / WIDTH < GROUPS ? left / WIDTH : GROUPS;
        const float *at[3];
        for (int k = 0; k < 3; k++) {
            at[k] = from[k] + i;
            if (groups > 0) continue;
            for (int64_t j = 0; j < WIDTH; j++) /* absent rows are marked open */
                last[k][j] = j < left ? at[k][j] : k == 0 ? INFINITY : 0;
            at[k] = last[k];
        }
        some = groups > 0 ? groups * WIDTH : left;
        cpu->sift->one(groups > 0 ? groups : 1, at[0], at[1], at[2], by, open, sums);
        for (int k = 0; k < 2; k++) all[k] += sums[k];
        for (int64_t g = 0; g < (some + WIDTH - 1) / WIDTH; g++)
            for (uint64_t is = open[g]; is && g * WIDTH + __builtin_ctzll(is) < some; is &= is - 1)
                list[listed++] = (int32_t)(i + g * WIDTH + __builtin_ctzll(is));
    }
    double slack = CGAM_SIFT_SLACK(by->shift), nothing = (double)count * 0x1p-124;
    *high += all[0] * (1 + slack) + nothing;
    *low += fmax(0, all[1] * (1 - slack) - nothing);
    return listed;
}

void cgam_closed_end(cgam_closed *x)
{
    double e[CGAM_SIFT_ROWS], sums[3];
    if (x->count == 0) return;
    x->cpu->f64->softmax(x->at, x->count, x->beta, x->top, e, sums);
    x->high += sums[0] + (double)x->count * DBL_MIN;
    x->low += sums[0] * exp(-2 * x->beta * x->most * CGAM_SLACK);
    x->count = 0;
    x->most = 0;
}

void cgam_closed_add(cgam_closed *x, double score, double off)
{
    x->at[x->count++] = score + off;
    x->most = fmax(x->most, off);
    if (x->count == CGAM_SIFT_ROWS) cgam_closed_end(x);
}
