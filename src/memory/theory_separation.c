/* theory_separation.c: a gap in the scores bounds the probability from below.
 *
 * P(mu) = 1 / (1 + sum_{nu != mu} exp(-beta (r_mu - r_nu))) >= 1 / (1 + (n-1) exp(-beta Delta)),
 * Delta = min over nu of r_mu - r_nu (theorem 3.1; its proof's M is n). */
#include <cgam/theory.h>

#include <math.h>

double cgam_separation_bound_log(int64_t n, double beta, double gap)
{
    if (n < 2) return 0;
    /* -log(1 + e^x), x = log(n-1) - beta gap, without overflow on either side */
    double x = log((double)(n - 1)) - beta * gap;
    return x > 0 ? -(x + log1p(exp(-x))) : -log1p(exp(x));
}

double cgam_separation_bound(int64_t n, double beta, double gap)
{
    return exp(cgam_separation_bound_log(n, beta, gap));
}

double cgam_separation_threshold(int64_t n, double beta, double epsilon)
{
    return (log1p(-epsilon) + log((double)(n - 1)) - log(epsilon)) / beta;
}

cgam_gaps cgam_separation_gaps(int64_t n, const double *b, const double *s, double lambda,
                               int64_t mu)
{
    cgam_gaps g = {NAN, NAN, NAN, NAN};
    double best_b = -INFINITY, best_s = -INFINITY, best_r = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (i == mu) continue;
        best_b = fmax(best_b, b[i]);
        best_s = fmax(best_s, s[i]);
        best_r = fmax(best_r, b[i] + lambda * s[i]);
    }
    if (n < 2) return g;
    g.raw = b[mu] - best_b;
    g.gate = s[mu] - best_s;
    g.gap = b[mu] + lambda * s[mu] - best_r;
    g.sum = g.raw + lambda * g.gate;
    return g;
}
