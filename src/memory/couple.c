/* couple.c: the plain reference of couple.h, in double, and the choice of the loops for a CPU. */
#include "memory/couple.h"

#include <math.h>

static void couple(int64_t rows, int64_t columns, float *S, float *state, const double *dinv,
                   double gain, const float *factor, float *stats)
{
    for (int64_t v = 0; v < columns; v++) {
        double c = (double)factor[v], more = (double)factor[columns + v], sum = 0, spread = 0,
               largest = 0, peak = 0, leap = -INFINITY;
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = r * columns + v;
            float *p2 = state + 3 * r * columns + v, *delta = p2 + 2 * columns;
            double base = (double)*p2, from = (double)p2[columns], score = (double)S[at];
            double p1 = base - from, old = c * (double)*delta + more * p1;
            double y = gain * (dinv ? dinv[r] * (old - score) : score);
            double up = base * expm1(fmin(y, CGAM_COUPLE_MOST)), now = from + up;
            *delta = (float)now;
            S[at] = (float)(dinv ? dinv[r] * now : 0);
            sum += up;
            spread += fabs(now);
            largest = fmax(largest, fabs(c * now + more * p1 - old));
            peak = fmax(peak, base + up);
            leap = fmax(leap, y);
        }
        const double all[CGAM_COUPLE_STATS] = {sum, spread, largest, peak, leap};
        for (int k = 0; k < CGAM_COUPLE_STATS; k++) stats[k * columns + v] = (float)all[k];
    }
}

#define DECLARE(set) extern cgam_couple cgam_couple_##set;
#define ENTRY(set) cgam_couple_##set,
CGAM_CPU_SETS(DECLARE)

cgam_couple *cgam_couple_of(const cgam_cpu *cpu)
{
    static cgam_couple *const all[] = {couple, CGAM_CPU_ROWS(ENTRY)};
    return all[cpu - cgam_cpu_all];
}
