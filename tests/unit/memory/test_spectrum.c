/* One decomposition for every alpha: solves, projections, and transients against a matrix
 * exponential by scaling and squaring in long double. */
#include "memory/bank.h"
#include "memory/gate.h"
#include "memory/spectrum.h"
#include "support/one_env.h"

#include <float.h>

#include "support/owned.h"

static const int64_t shapes[][2] = {{1, 3},   {2, 1},   {6, 15}, {15, 15},
                                    {16, 15}, {40, 20}, {40, 3}, {25, 24}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static double norm_of(int64_t n, const double *x) { return dense_distance(n, x, dense_room(n)); }

TEST(eigenvalues_are_those_of_the_overlaps)
{
    cgam_rng rng = cgam_rng_stream(8, 0);
    for (int k = 0; k < 3 * SHAPES * DENSE_KINDS; k++) {
        dense_kind kind = (dense_kind)(k % DENSE_KINDS);
        int64_t n = shapes[k / DENSE_KINDS % SHAPES][0], d = shapes[k / DENSE_KINDS % SHAPES][1];
        double *Z = dense_bank(&rng, kind, n, d), *O = dense_overlaps(n, d, Z);
        const double *omega = dense_eigen(n, O, NULL);
        const double *mu = dense_eigen(n, dense_matrix(n, d, Z, NULL, 1, NULL, 0), NULL);
        double size = 1 + fabs(mu[n - 1]);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        cgam_spectrum_info info = cgam_spectrum_describe(sp);
        assert_int_equal(info.modes + info.kernel, n);
        CHECK_CLOSE(info.omega_min, omega[0], 1e-13 * size);
        CHECK_CLOSE(info.omega_max, omega[n - 1], 1e-13 * size);
        CHECK_CLOSE(info.mu_max, mu[n - 1], 1e-13 * size);
        CHECK_CLOSE(info.mu_min, mu[0], 1e-13 * size);
        int64_t rank = 0;
        for (int64_t i = 0; i < n; i++) rank += mu[i] > 1e-12 * size;
        assert_int_equal(info.rank, rank);
        if (rank < n) CHECK_CLOSE(info.mu_min, 0, 0);
        const double *modes = cgam_spectrum_describe(sp).omega;
        /* the kernel, if any, is the n - modes lowest */
        CHECK_CLOSE_ALL(modes, omega + info.kernel, info.modes, 1e-13 * size);
        if (omega[0] < -1e-6) CHECK_REL(info.alpha_crit, -1 / omega[0], 1e-9);
        cgam_gram_info gram;
        CHECK_STATUS(env, cgam_bank_gram(bank, &gram));
        assert_int_equal(gram.rank, rank);
        CHECK_CLOSE(gram.mu_min, info.mu_min, 1e-13 * size);
        CHECK_CLOSE(gram.mu_max, mu[n - 1], 1e-13 * size);
        dense_reset();
    }
}

TEST(one_spectrum_solves_for_every_alpha)
{
    cgam_rng rng = cgam_rng_stream(8, 1);
    for (int k = 0; k < SHAPES * DENSE_KINDS; k++) {
        int64_t n = shapes[k / DENSE_KINDS][0], d = shapes[k / DENSE_KINDS][1];
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d);
        double critical = dense_critical(n, d, Z);
        const double *mu = dense_eigen(n, dense_matrix(n, d, Z, NULL, 1, NULL, 0), NULL);
        double weakest = mu[n - 1];
        for (int64_t i = n - 1; i >= 0 && mu[i] > 1e-12 * mu[n - 1]; i--) weakest = mu[i];
        /* v_k = Z e_k / sqrt(mu_k) is good to eps sqrt(mu_max / mu_k) */
        double allowed = 2e-16 * (100 + (weakest > 0 ? sqrt(mu[n - 1] / weakest) : 0));
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        for (int a = 0; a < 12; a++) {
            static const double factors[] = {0,   0.1,      0.5,      0.9,      0.99, 1 - 1e-4,
                                             1.1, 1 - 1e-6, 1 - 1e-8, 1 + 1e-6, 2,    10};
            double alpha = factors[a] * critical, *A = dense_gate(n, d, Z, alpha);
            const double *eta = dense_eigen(n, A, NULL);
            double norm = fmax(fabs(eta[0]), fabs(eta[n - 1])), closest = INFINITY;
            for (int64_t i = 0; i < n; i++) closest = fmin(closest, fabs(eta[i]));
            if (closest < 1e-10) continue;
            double *x = dense_normals(&rng, n, 1), *y = dense_room(n), *z = dense_room(n);
            CHECK_STATUS(env, cgam_spectrum_solve(sp, alpha, x, y));
            CHECK_LE(dense_backward(n, A, norm, x, y), allowed);
            OWNED(cgam_gate) gate = object_gate(env, bank, alpha);
            CHECK_STATUS(env, cgam_gate_solve(gate, x, z, NULL));
            CHECK_LE(dense_distance(n, y, z), 10 * allowed * norm / closest * norm_of(n, z));
        }
        dense_reset();
    }
}

TEST(at_criticality_only_what_does_not_excite_it_is_solved)
{
    cgam_rng rng = cgam_rng_stream(8, 2);
    static const struct {
        dense_kind kind;
        int64_t n, d;
    } cases[] = {{DENSE_UNIT, 30, 6},
                 {DENSE_DUPLICATES, 12, 20},
                 {DENSE_DUPLICATES, 40, 60},
                 {DENSE_DUPLICATES, 30, 20},
                 {DENSE_CLUSTER, 40, 7}};
    for (int k = 0; k < 50; k++) {
        int64_t n = cases[k % 5].n, d = cases[k % 5].d;
        double *Z = dense_bank(&rng, cases[k % 5].kind, n, d), *v = dense_normals(&rng, d, 1);
        double *x = dense_normals(&rng, n, 1), *u = dense_room(n), *y = dense_room(n);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        CHECK_CLOSE(cgam_spectrum_describe(sp).alpha_crit, 1, 0);
        CHECK_REFUSED(env, CGAM_E_SINGULAR, "singular", cgam_spectrum_solve(sp, 1, x, y));
        dense_score(n, d, Z, v, u);
        CHECK_STATUS(env, cgam_spectrum_solve(sp, 1, u, y));
        dense_score(n, n, dense_gate(n, d, Z, 1), y, x);
        CHECK_LE(dense_distance(n, x, u), 1e-11 * norm_of(n, u));
        dense_reset();
    }
}

TEST(the_lowest_projection_is_one)
{
    cgam_rng rng = cgam_rng_stream(8, 3);
    for (int k = 0; k < 2 * SHAPES * DENSE_KINDS; k++) {
        int64_t n = shapes[k / DENSE_KINDS % SHAPES][0], d = shapes[k / DENSE_KINDS % SHAPES][1];
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), *V = dense_room(n * n);
        double *O = dense_overlaps(n, d, Z);
        const double *omega = dense_eigen(n, O, V);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        double *x = dense_normals(&rng, n, 1), *y = dense_room(n), *z = dense_room(n);
        CHECK_STATUS(env, cgam_spectrum_project_min(sp, x, y));
        CHECK_STATUS(env, cgam_spectrum_project_min(sp, y, z));
        CHECK_CLOSE_ALL(z, y, n, 1e-13 * norm_of(n, x)); /* idempotent */
        double inside = 0;
        for (int64_t i = 0; i < n; i++) inside += y[i] * (x[i] - y[i]);
        CHECK_CLOSE(inside, 0, 1e-12 * norm_of(n, x) * norm_of(n, x)); /* orthogonal */
        double *want = dense_room(n), gap = INFINITY;
        for (int64_t i = 0; i < n; i++) {
            double c = 0, above = omega[i] - omega[0], size = 1 + fabs(omega[n - 1]);
            if (above > 1e-10 * size) {
                gap = fmin(gap, above / size);
                continue;
            }
            for (int64_t j = 0; j < n; j++) c += V[i * n + j] * x[j];
            for (int64_t j = 0; j < n; j++) want[j] += c * V[i * n + j];
        }
        if (gap > 1e-6) CHECK_CLOSE_ALL(y, want, n, 1e-12 / gap * norm_of(n, x));
        dense_reset();
    }
}

TEST(modes_can_be_read_off)
{
    cgam_rng rng = cgam_rng_stream(8, 4);
    for (int k = 0; k < SHAPES * DENSE_KINDS; k++) {
        int64_t n = shapes[k / DENSE_KINDS][0], d = shapes[k / DENSE_KINDS][1];
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        int64_t m = cgam_spectrum_describe(sp).modes;
        double *V = dense_room(n * m), *x = dense_normals(&rng, n, 1), *c = dense_room(m);
        for (int64_t i = 0; i < n; i += 7) {
            int64_t count = n - i < 7 ? n - i : 7;
            CHECK_STATUS(env, cgam_spectrum_rows(sp, i, count, V + i * m));
        }
        CHECK_STATUS(env, cgam_spectrum_analyse(sp, x, c));
        double least = m > 0 ? cgam_spectrum_describe(sp).omega[0] : 0;
        double worst = 1e-12; /* modes of a tall bank are good to eps mu_max / mu_k */
        if (cgam_spectrum_describe(sp).kernel > 0 && m > 0)
            worst =
                fmax(1e-12, 1e-14 * cgam_spectrum_describe(sp).mu_max / (least + bank->norm2[0]));
        for (int64_t a = 0; a < m; a++) {
            double dot = 0;
            for (int64_t i = 0; i < n; i++) dot += V[i * m + a] * x[i];
            CHECK_CLOSE(c[a], dot, 1e-12 * norm_of(n, x));
            for (int64_t b = 0; b <= a; b++) {
                dot = 0;
                for (int64_t i = 0; i < n; i++) dot += V[i * m + a] * V[i * m + b];
                CHECK_CLOSE(dot, a == b, worst);
            }
        }
        dense_reset();
    }
}

/* s(t) = exp(t M) of the augmented system d/dt (s, 1) = M (s, 1), M = [[-A, u], [0, 0]] / tau. */
static void exponential(int64_t n, const double *A, double tau, double t, const double *u,
                        const double *s0, double *s)
{
    int64_t m = n + 1;
    long double *M = dense_room_long(m * m), *E = dense_room_long(m * m), norm = 0;
    long double *P = dense_room_long(m * m), *Q = dense_room_long(m * m);
    for (int64_t i = 0; i < n; i++) {
        long double row = 0;
        for (int64_t j = 0; j < n; j++) {
            M[i * m + j] = -(long double)A[i * n + j] * t / tau;
            row += fabsl(M[i * m + j]);
        }
        M[i * m + n] = (long double)u[i] * t / tau;
        norm = fmaxl(norm, row + fabsl(M[i * m + n]));
    }
    int halvings = 0;
    while (norm > 0.25L) {
        norm /= 2;
        halvings++;
    }
    for (int64_t i = 0; i < m * m; i++) M[i] = ldexpl(M[i], -halvings);
    for (int64_t i = 0; i < m; i++) E[i * m + i] = P[i * m + i] = 1;
    for (int k = 1; k < 18; k++) { /* Taylor */
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++) {
                long double sum = 0;
                for (int64_t l = 0; l < m; l++) sum += P[i * m + l] * M[l * m + j];
                Q[i * m + j] = sum / k;
            }
        memcpy(P, Q, (size_t)(m * m) * sizeof *P);
        for (int64_t i = 0; i < m * m; i++) E[i] += P[i];
    }
    while (halvings-- > 0) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++) {
                long double sum = 0;
                for (int64_t l = 0; l < m; l++) sum += E[i * m + l] * E[l * m + j];
                Q[i * m + j] = sum;
            }
        memcpy(E, Q, (size_t)(m * m) * sizeof *E);
    }
    for (int64_t i = 0; i < n; i++) {
        long double sum = E[i * m + n];
        for (int64_t j = 0; s0 && j < n; j++) sum += E[i * m + j] * s0[j];
        s[i] = (double)sum;
    }
}

TEST(transients_are_matrix_exponentials)
{
    cgam_rng rng = cgam_rng_stream(8, 5);
    static const double factors[] = {0,   0.5,      1 - 1e-12, 1 + 1e-12, 1,
                                     1.3, 1 - 1e-6, 1 + 1e-8,  4,         0.99};
    for (int k = 0; k < 400; k++) {
        int64_t n = 1 + cgam_rng_below(&rng, 14), d = 1 + cgam_rng_below(&rng, 14);
        double *Z = dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d);
        double critical = dense_critical(n, d, Z), alpha = factors[k % 10] * critical;
        double tau = dense_between_log(&rng, 0.01, 100);
        double t = tau * dense_between_log(&rng, 1e-9, 30) / (1 + alpha);
        double *u = dense_normals(&rng, n, 1), *s0 = dense_normals(&rng, n, 1);
        double *got = dense_room(n), *want = dense_room(n);
        if (k % 3 == 0) s0 = NULL;
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        exponential(n, dense_gate(n, d, Z, alpha), tau, t, u, s0, want);
        CHECK_STATUS(env, cgam_spectrum_transient(sp, alpha, tau, t, u, s0, got));
        double largest = 0; /* a rounding of omega moves exp(alpha omega t) by its exponent */
        for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(want[i]));
        CHECK_CLOSE_ALL(got, want, n, 1e-13 * (1 + (1 + 20 * alpha) * t / tau) * largest);
        dense_reset();
    }
}

/* Far out s is +-DBL_MAX with the signs of P_min (s0 + u / gamma), and never NaN. */
TEST(transients_do_not_overflow)
{
    cgam_rng rng = cgam_rng_stream(8, 6);
    static const double sizes[] = {1e-250, 1, 1e100, 1e300};
    for (int k = 0; k < 300; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 20), d = 1 + cgam_rng_below(&rng, 20);
        double *Z = dense_bank(&rng, (dense_kind)(k % 4), n, d);
        double low = dense_eigen(n, dense_overlaps(n, d, Z), NULL)[0];
        if (low > -1e-3) {
            dense_reset();
            continue;
        }
        double alpha = dense_between(&rng, 1.1, 5) / -low, gamma = -1 - alpha * low;
        double size = sizes[k % 4], exponent = dense_between_log(&rng, 500, 1e9);
        double *u = dense_normals(&rng, n, size), *s0 = dense_normals(&rng, n, size);
        double *s = dense_room(n), *w = dense_room(n), *y = dense_room(n);
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        OWNED(cgam_spectrum) sp = object_spectrum(env, bank);
        CHECK_STATUS(env, cgam_spectrum_transient(sp, alpha, 2, 2 * exponent / gamma, u, s0, s));
        for (int64_t i = 0; i < n; i++) {
            assert_false(isnan(s[i]) || isinf(s[i]));
            w[i] = s0[i] + u[i] / gamma;
        }
        CHECK_STATUS(env, cgam_spectrum_project_min(sp, w, y));
        double whole = norm_of(n, y);
        for (int64_t i = 0; i < n && exponent > 2000; i++) {
            if (fabs(y[i]) < 1e-9 * whole || exponent < 1e4) continue;
            /* |y| exp(1e4) is beyond range for any |y| above 1e-300 */
            CHECK_CLOSE(s[i], copysign(DBL_MAX, y[i]), 0);
        }
        dense_reset();
    }
}

TEST(transient_arguments_are_checked)
{
    const double Z[] = {1, 0, 0, 1}, u[] = {1, 1};
    double s[2];
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, Z);
    cgam_spectrum *sp = object_spectrum(env, bank);
    static const double bad[][3] = {{1, 0, 1},   {1, -1, 1},  {1, 1, -1},        {1, 1, INFINITY},
                                    {1, 1, NAN}, {NAN, 1, 1}, {1, 1e-300, 1e300}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        CHECK_FAILS(env, CGAM_E_ARG,
                    cgam_spectrum_transient(sp, bad[k][0], bad[k][1], bad[k][2], u, NULL, s));
    cgam_spectrum_free(sp);
    cgam_spectrum_free(NULL);
}

TEST_GROUP(set_up, tear_down)
