/* Theorems about criticality on random instances, without exception: who wins above alpha_crit and
 * when, where coupling breaks the uniform state of a balanced bank, where the branch of fixed points
 * folds. The judges are simulations and brute force. See test_theorems.c for the others.
 * ctest: timeout=240 */
#include "support/one_env.h"

#include <cgam/theory.h>
#include <float.h>

#include "support/owned.h"

static int64_t largest(int64_t n, const double *x)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* ds/dx = u - A s by the classical Runge-Kutta method over `span`; (s, 1) is scaled down whenever it
 * grows, which leaves its direction, and so the winner, as it is. */
static void simulate(int64_t n, const double *A, double norm, const double *u, double span,
                     double *s)
{
    double one = 1, k[4][32], at[32], h = 0.25 / norm;
    int64_t steps = (int64_t)ceil(span / h);
    h = span / (double)steps;
    for (int64_t step = 0; step < steps; step++) {
        for (int stage = 0; stage < 4; stage++) {
            double reach = stage == 0 ? 0 : stage == 3 ? h : 0.5 * h;
            for (int64_t i = 0; i < n; i++) at[i] = s[i] + (stage ? reach * k[stage - 1][i] : 0);
            for (int64_t i = 0; i < n; i++) {
                k[stage][i] = one * u[i];
                for (int64_t j = 0; j < n; j++) k[stage][i] -= A[i * n + j] * at[j];
            }
        }
        double most = 0;
        for (int64_t i = 0; i < n; i++) {
            s[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
            most = fmax(most, fabs(s[i]));
        }
        if (most > 1e100) {
            for (int64_t i = 0; i < n; i++) s[i] /= most;
            one /= most;
        }
    }
}

TEST(the_predicted_winner_wins)
{
    cgam_rng rng = cgam_rng_stream(31, 0);
    int simulated = 0, closed = 0;
    for (int k = 0; k < check_trials(50000); k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 9), d = 1 + cgam_rng_below(&rng, 9);
        double *Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_DUPLICATES), n, d);
        const double *omega = dense_eigen(n, dense_overlaps(n, d, Z), NULL);
        if (omega[0] > -0.01) {
            dense_reset();
            continue;
        }
        double alpha = -dense_between(&rng, 1.2, 4) / omega[0], next = INFINITY;
        for (int64_t i = n - 1; i > 0 && omega[i] > omega[0] + 1e-9; i--) next = omega[i];
        double *u = dense_normals(&rng, n, 1), *s0 = k % 2 ? dense_normals(&rng, n, 1) : NULL;
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        cgam_winner got;
        CHECK_STATUS(env, cgam_supercritical_winner(sp, alpha, u, s0, &got));
        CHECK_CLOSE(got.gamma, -1 - alpha * omega[0], 1e-12 * alpha);
        if (got.index >= 0) {
            /* all other modes are behind by exp(-lead), lead = alpha (next - omega_0) x */
            double size = (s0 ? dense_distance(n, s0, dense_room(n)) : 0) +
                          dense_distance(n, u, dense_room(n));
            double lead = 3 + log(size * (1 + 1 / got.gamma) / got.gap) + log((double)n);
            double slower = isinf(next) ? got.gamma : fmin(alpha * (next - omega[0]), got.gamma);
            double span = lead / slower, *s = dense_room(n);
            if (span > 0 && slower > 0.02) {
                CHECK_STATUS(env, cgam_spectrum_transient(sp, alpha, 2, 2 * span, u, s0, s));
                if (fabs(s[got.index]) < DBL_MAX) {
                    assert_int_equal(largest(n, s), got.index);
                    closed++;
                }
                double *A = dense_gate(n, d, Z, alpha), norm = dense_norm(n, A);
                if (k % 4 == 0 && span * norm < 3000) {
                    memset(s, 0, (size_t)n * sizeof *s);
                    if (s0) memcpy(s, s0, (size_t)n * sizeof *s);
                    simulate(n, A, norm, u, span, s);
                    assert_int_equal(largest(n, s), got.index);
                    simulated++;
                }
            }
        }
        dense_reset();
    }
    assert_true(closed > check_trials(2500));
    assert_true(simulated > check_trials(500));
}

/* From t* on, p(winner) >= 1 - delta, other modes included, from s(0) = 0 and from other starts. */
TEST(the_horizon_is_kept)
{
    cgam_rng rng = cgam_rng_stream(31, 1);
    int closed = 0, numeric = 0;
    for (int k = 0; k < check_trials(50000); k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 10), d = 1 + cgam_rng_below(&rng, 10);
        double *Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_DUPLICATES), n, d);
        double least = dense_eigen(n, dense_overlaps(n, d, Z), NULL)[0];
        if (least > -0.01) {
            dense_reset();
            continue;
        }
        double above =
            k % 3 == 0 ? dense_between_log(&rng, 1e-9, 1) : dense_between_log(&rng, 0.1, 300);
        double alpha = -(1 + above) / least, tau = dense_between_log(&rng, 0.1, 10);
        double beta = dense_between_log(&rng, 0.3, 10), delta = dense_between_log(&rng, 1e-4, 0.6);
        double *u = dense_normals(&rng, n, dense_between_log(&rng, 0.01, 1));
        double *s = dense_room(n), *p = dense_room(n);
        double *s0 = k % 2 ? dense_normals(&rng, n, dense_between_log(&rng, 0.01, 100)) : NULL;
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        cgam_horizon got;
        CHECK_STATUS(env,
                     cgam_supercritical_horizon(sp, alpha, tau, beta, delta, u, s0, true, &got));
        if (got.winner >= 0) {
            if (isinf(got.time) || !(got.time >= 0))
                fail_msg("instance %d, %lld x %lld, alpha = %g of critical: no horizon (%g)", k,
                         (long long)n, (long long)d, 1 + above, got.time);
            for (int j = 0; j < 24; j++) {
                double later = pow(1.13, j), t = got.time * later; /* up to 16 t* */
                CHECK_STATUS(env, cgam_spectrum_transient(sp, alpha, tau, t, u, s0, s));
                double most = 0;
                for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(s[i]));
                if (most > 1e300) break; /* saturated entries can no longer be compared */
                dense_softmax(n, beta, s, p);
                double noise = 1e-9 + 1e-12 * beta * most;
                if (!(p[got.winner] >= 1 - delta - noise))
                    fail_msg(
                        "instance %d, %lld x %lld, alpha = %g of critical, %s: p = %.12g at %g "
                        "t*, 1 - delta = %.12g",
                        k, (long long)n, (long long)d, 1 + above,
                        got.closed_form ? "closed form" : "numeric", p[got.winner], later,
                        1 - delta);
            }
            if (got.closed_form) closed++;
            else numeric++;
        }
        dense_reset();
    }
    assert_true(closed > check_trials(700));
    assert_true(numeric > check_trials(300));
}

/* A unit bank with G1 = mu 1: z_i holds waves cos, sin (2 pi f i / n) for chosen f. */
static double *balanced_bank(cgam_rng *rng, int64_t n, int64_t waves, int64_t *d)
{
    *d = 2 * waves + 1;
    double *Z = dense_room(n * *d);
    for (int64_t w = 0; w <= waves; w++) {
        double size = dense_between(rng, 0.1, 1);
        int64_t f = w == 0 ? 0 : 1 + cgam_rng_below(rng, n / 2);
        for (int64_t i = 0; i < n; i++) {
            double angle = 2 * 3.14159265358979323846 * (double)(f * i % n) / (double)n;
            if (w == 0) Z[i * *d] = size;
            else if (2 * f == n) Z[i * *d + 2 * w] = size * (i % 2 ? -1 : 1);
            else {
                Z[i * *d + 2 * w - 1] = size * cos(angle);
                Z[i * *d + 2 * w] = size * sin(angle);
            }
        }
    }
    dense_normalize(n, *d, Z);
    return Z;
}

/* alpha_crit^lambda: just below it the uniform state of a balanced bank draws in what was pushed off
 * it, just above it pushes it further. */
TEST(coupling_breaks_the_uniform_state_at_its_formula)
{
    cgam_rng rng = cgam_rng_stream(31, 2);
    int valid = 0;
    for (int k = 0; k < check_trials(2000); k++) {
        int64_t n = 3 + cgam_rng_below(&rng, 8), d;
        double *Z = balanced_bank(&rng, n, 1 + cgam_rng_below(&rng, 5), &d);
        double beta = dense_between_log(&rng, 0.5, 8);
        double lambda = sqrt((double)n / beta * dense_between(&rng, 0.02, 1.2));
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_coupled_critical got;
        CHECK_STATUS(env, cgam_coupled_critical_find(bank, lambda, beta, &got));
        assert_true(got.unit && got.balanced);
        assert_int_equal(got.weak, lambda * lambda * beta < (double)n);
        /* mu_perp_min by brute force: (I - J) G (I - J) + large J */
        double *G = dense_matrix(n, d, Z, NULL, 1, NULL, 0), mu = 0;
        for (int64_t j = 0; j < n; j++) mu += G[j];
        for (int64_t i = 0; i < n * n; i++) G[i] += (10.0 * (double)n - mu) / (double)n;
        CHECK_CLOSE(got.mu_perp_min, dense_eigen(n, G, NULL)[0], 1e-12 * (double)n);
        if (!isnan(got.alpha)) {
            assert_true(got.weak && got.below_one && got.positive);
            valid++;
            double *p = dense_room(n), *off = dense_room(n), *b = dense_room(n);
            double common = cgam_rng_normal(&rng), *u = dense_room(n), *V = dense_room(n * n);
            for (int64_t i = 0; i < n; i++) {
                p[i] = 1 / (double)n;
                b[i] = common;
                u[i] = 0.3 * common;
            }
            for (int side = 0; side < 2; side++) {
                double alpha = got.alpha * (side ? 1 + 1e-4 : 1 - 1e-4);
                double *A = dense_gate(n, d, Z, alpha), *next = dense_room(n);
                double margin = dense_eigen(n, dense_hessian(n, A, lambda, beta, p), V)[0];
                if (side == 0) assert_true(margin > 0);
                else assert_true(margin < 0);
                for (int64_t i = 0; i < n; i++) off[i] = p[i] + 1e-9 * V[i]; /* the weakest mode */
                dense_coupled(n, dense_inverse(n, A), beta, lambda, b, u, off, 0, 50, next);
                double start = dense_distance(n, off, p), end = dense_distance(n, next, p);
                if (side == 0) CHECK_LE(end, start);
                else CHECK_LE(start, end);
            }
        }
        dense_reset();
    }
    assert_true(valid > check_trials(500));
}

/* The curve of fixed points  A(alpha) s = u + lambda p(s)  in (s, alpha), followed by arc length with
 * Newton corrections; where alpha turns back is the fold. Returns it, or NAN when alpha_max comes
 * first. */
typedef struct curve {
    int64_t n;
    const double *O, *b, *u; /* O = G - diag G */
    double beta, lambda;
} curve;

/* Residual F [n] and Jacobian J [n+1, n+1] at x = (s, alpha); the last row of J is `row`. */
static void evaluate(const curve *c, const double *x, const double *row, double *F, double *J)
{
    int64_t n = c->n, m = n + 1;
    double r[16] = {0}, p[16], factor = c->lambda * c->lambda * c->beta;
    for (int64_t i = 0; i < n; i++) r[i] = c->b[i] + c->lambda * x[i];
    dense_softmax(n, c->beta, r, p);
    for (int64_t i = 0; i < n; i++) {
        double Os = 0;
        for (int64_t j = 0; j < n; j++) {
            Os += c->O[i * n + j] * x[j];
            J[i * m + j] =
                (i == j) + x[n] * c->O[i * n + j] - factor * ((i == j ? p[i] : 0) - p[i] * p[j]);
        }
        J[i * m + n] = Os;
        F[i] = x[i] + x[n] * Os - c->u[i] - c->lambda * p[i];
    }
    for (int64_t j = 0; j < m; j++) J[n * m + j] = row[j];
}

static double follow(const curve *c, double *x, double alpha_max)
{
    int64_t n = c->n, m = n + 1;
    double tangent[16] = {0}, F[16], step[16], J[256], unit[16] = {0}, highest = 0;
    tangent[n] = unit[n] = 1;         /* alpha rises at first */
    for (int k = 0; k < 50000; k++) { /* steps along one curve, not trials */
        double size = 0, at[16], length = 1e-3;
        for (int64_t j = 0; j < n; j++) length = fmax(length, 1e-3 * fabs(x[j]));
        evaluate(c, x, tangent, F, J);
        dense_solve(m, J, unit, step);
        for (int64_t j = 0; j < m; j++) size += step[j] * step[j];
        for (int64_t j = 0; j < m; j++) tangent[j] = step[j] / sqrt(size);
        for (int64_t j = 0; j < m; j++) at[j] = x[j] + length * tangent[j];
        for (int newton = 0; newton < 4; newton++) { /* back to the curve, across the tangent */
            evaluate(c, at, tangent, F, J);
            F[n] = 0;
            dense_solve(m, J, F, step);
            for (int64_t j = 0; j < m; j++) at[j] -= step[j];
        }
        memcpy(x, at, (size_t)m * sizeof *x);
        if (x[n] > alpha_max) return NAN;
        if (x[n] < highest - 1e-9) return highest;
        highest = fmax(highest, x[n]);
    }
    return -1;
}

TEST(the_fold_is_found)
{
    int folds = 0, none = 0;
    for (int k = 0; k < 24; k++) {
        cgam_rng rng = cgam_rng_stream(31, (uint64_t)(1000 + k));
        int64_t n = 3 + cgam_rng_below(&rng, 5), d = 2 + cgam_rng_below(&rng, 6);
        double *Z = dense_bank(&rng, k % 2 ? DENSE_UNIT : DENSE_CLUSTER, n, d);
        double *O = dense_overlaps(n, d, Z), least = dense_eigen(n, O, NULL)[0];
        double critical = least < -1e-3 ? -1 / least : 1, beta = dense_between(&rng, 1, 5);
        double lambda = sqrt((double)n / beta * dense_between(&rng, 0.1, 0.6));
        double *b = dense_normals(&rng, n, 0.02), *u = dense_normals(&rng, n, 0.02);
        double alpha_max = 0.95 * critical, *x = dense_room(n + 1), *p = dense_room(n);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        cgam_fold got;
        CHECK_STATUS(env, cgam_fold_find(bank, lambda, beta, b, u, alpha_max, 1e-7, &got));
        const long double *one = dense_inverse(n, dense_gate(n, d, Z, 0));
        dense_coupled(n, one, beta, lambda, b, u, NULL, 1e-16, 100000, p);
        for (int64_t i = 0; i < n; i++) x[i] = u[i] + lambda * p[i];
        curve c = {n, O, b, u, beta, lambda};
        double fold = follow(&c, x, alpha_max);
        if (isnan(fold) != isnan(got.alpha) || fabs(fold - got.alpha) > 1e-4)
            fail_msg("instance %d, %lld x %lld: fold at %.9g, by arc length %.9g (alpha_max %g)", k,
                     (long long)n, (long long)d, got.alpha, fold, alpha_max);
        if (isnan(fold)) none++;
        else folds++;
        dense_reset();
    }
    assert_true(folds > 5);
    assert_true(none > 5);
}

TEST_GROUP(set_up, tear_down)
