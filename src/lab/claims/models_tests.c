/* models_tests.c: tests of differences over queries and draws.
 *
 * Two strings of right and wrong answers are compared by the queries that differ (the sign test, exact); a weighted sum
 * of several, and means of measurements, by Student's t over queries. With shared demonstrations Student's t over the draws'
 * means must agree: a mean of D draws has the error sd/sqrt(D), of queries and demonstrations together. */
#include "lab/claims/models_tests.h"

#include <math.h>
#include <string.h>

/* The probability of `up` or more heads in up + down throws. */
static double sign_test(int64_t up, int64_t down)
{
    double n = (double)(up + down), sum = 0;
    for (int64_t i = up; i <= up + down; i++)
        sum += exp(lgamma(n + 1) - lgamma((double)i + 1) - lgamma(n - (double)i + 1) - n * log(2));
    return fmin(1, sum);
}

/* With a = atan(x/sqrt(v)), P(|T| < x) is a finite sum: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4. */
double cgam_student_tail(double x, int64_t freedom)
{
    if (freedom < 1 || isnan(x)) return 1;
    if (freedom > 100000) return 0.5 * erfc(x / sqrt(2)); /* within 2e-4 of it, relatively, at 1% */
    double a = atan(fabs(x) / sqrt((double)freedom)), square = cos(a) * cos(a), inside;
    if (freedom % 2 == 0) {
        double term = 1, sum = 1;
        for (int64_t k = 2; k < freedom; k += 2) {
            term *= square * (double)(k - 1) / (double)k;
            sum += term;
        }
        inside = sin(a) * sum;
    } else {
        double term = cos(a), sum = freedom > 1 ? term : 0;
        for (int64_t k = 3; k < freedom; k += 2) {
            term *= square * (double)(k - 1) / (double)k;
            sum += term;
        }
        inside = 2 / acos(-1.0) * (a + sin(a) * sum);
    }
    double tail = fmax(0, (1 - inside) / 2);
    return x >= 0 ? tail : 1 - tail;
}

void cgam_evidence_add(evidence *e, double mean, double se, int64_t n)
{
    if (isnan(mean) || !(se >= 0) || n < 1) e->lacking = true;
    else {
        cgam_moments_add(&e->draws, mean);
        e->squares += se * se;
        e->queries += n;
    }
}

void cgam_evidence_answers(evidence *e, int kinds, const char *const *of, const double *weight)
{
    cgam_moments m = {0};
    size_t n = strlen(of[0]);
    for (int k = 0; k < kinds; k++) e->lacking = e->lacking || n == 0 || strlen(of[k]) != n;
    if (e->lacking) return;
    e->pair = kinds == 2 && weight[0] == 1 && weight[1] == -1;
    for (size_t i = 0; i < n; i++) {
        double x = 0;
        for (int k = 0; k < kinds; k++) x += weight[k] * (of[k][i] == '1');
        cgam_moments_add(&m, x);
        e->up += x > 0;
        e->down += x < 0;
    }
    cgam_evidence_add(e, m.mean, n > 1 ? cgam_moments_se(&m) : 0, (int64_t)n);
}

static double tail_of(double mean, double se, int64_t freedom)
{
    return se > 0 ? cgam_student_tail(mean / se, freedom) : mean > 0 ? 0 : 1;
}

/* Is the difference, times sign, above 0? */
static bool is_above(const evidence *e, int sign, double level)
{
    double mean = sign * e->draws.mean, n = e->draws.n;
    double p = e->pair ? sign_test(sign > 0 ? e->up : e->down, sign > 0 ? e->down : e->up)
                       : tail_of(mean, sqrt(e->squares) / n, e->queries - (int64_t)n);
    if (!(mean > 0) || p > level) return false;
    return !e->shared || tail_of(mean, cgam_moments_se(&e->draws), (int64_t)n - 1) <= level;
}

outcome cgam_evidence_judge(const evidence *e, double tests)
{
    double level = CGAM_CLAIM_LEVEL / tests;
    if (e->lacking || e->draws.n < 1) return SILENT;
    if (e->queries < CGAM_QUERIES_MIN || (e->shared && e->draws.n < 2)) return OPEN;
    return is_above(e, 1, level) ? SHOWN : is_above(e, -1, level) ? REFUTED : OPEN;
}
