/* Theorems on random instances, without exception: separation, the lemma on the softmax Jacobian,
 * contraction and uniqueness, energy descent, the fold margin, Ramsauer et al.'s theorems 4 and 5.
 * With test_theorems_critical.c these are more than 10^5 instances.
 * ctest: timeout=240 */
#include "support/one_env.h"

#include <cgam/theory.h>

#include "support/owned.h"

static void random_simplex(cgam_rng *rng, int64_t n, double *p)
{
    double heat = dense_between_log(rng, 0.1, 30), r[64];
    for (int64_t i = 0; i < n; i++) r[i] = heat * cgam_rng_normal(rng);
    dense_softmax(n, 1, r, p);
}

/* P(mu) >= 1 / (1 + (n-1) exp(-beta Delta)) and Delta_raw + lambda Delta_gate <= Delta, for every mu;
 * both with equality when all rivals are alike. */
TEST(separation)
{
    cgam_rng rng = cgam_rng_stream(30, 0);
    double b[64], s[64];
    for (int k = 0; k < check_trials(40000); k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 40), mu = cgam_rng_below(&rng, n);
        double beta = dense_between_log(&rng, 0.01, 100),
               lambda = dense_between_log(&rng, 0.01, 20);
        bool alike = k % 10 == 0;
        for (int64_t i = 0; i < n; i++) {
            b[i] = alike && i != mu ? 0.25 : cgam_rng_normal(&rng);
            s[i] = alike && i != mu ? -0.5 : cgam_rng_normal(&rng);
        }
        cgam_gaps g = cgam_separation_gaps(n, b, s, lambda, mu);
        double size = fabs(g.raw) + lambda * fabs(g.gate) + lambda * 4 + 4;
        CHECK_LE(g.sum, g.gap + 1e-15 * size);
        long double rivals = 0; /* log P = -log(1 + sum exp(-beta (r_mu - r_i))) */
        for (int64_t i = 0; i < n; i++)
            if (i != mu)
                rivals += expl(-beta * ((b[mu] - b[i]) + lambda * (long double)(s[mu] - s[i])));
        double log_p = (double)-log1pl(rivals), bound = cgam_separation_bound_log(n, beta, g.gap);
        double noise = 1e-14 * beta * size + 1e-14 * fabs(bound);
        CHECK_LE(bound, log_p + noise);
        CHECK_LE(cgam_separation_bound(n, beta, g.gap), exp(log_p) * (1 + 1e-13) + noise);
        if (alike) {
            CHECK_CLOSE(log_p, bound, noise);
            CHECK_CLOSE(g.sum, g.gap, 1e-14 * size);
        }
    }
}

/* |diag p - pp'| <= 2 max p (1 - p) and <= 1/2, and cgam_softmax_norm is that norm. */
TEST(softmax_jacobian)
{
    cgam_rng rng = cgam_rng_stream(30, 1);
    for (int k = 0; k < check_trials(20000); k++) {
        int64_t n = 1 + cgam_rng_below(&rng, 12);
        double *p = dense_room(n), *zero = dense_room(n * n);
        random_simplex(&rng, n, p);
        if (k % 7 == 0 && n > 1) p[0] = p[1] = 0.5 * (p[0] + p[1]); /* equal largest, sometimes */
        const double *values = dense_eigen(n, dense_hessian(n, zero, 1, 1, p), NULL); /* of -C */
        double norm = cgam_softmax_norm(n, p);
        CHECK_CLOSE(norm, -values[0], 1e-14);
        CHECK_LE(norm, 0.5 + 1e-15);
        CHECK_LE(norm, cgam_softmax_norm_bound(n, p) + 1e-15);
        if (k % 64 == 63) dense_reset();
    }
    dense_reset();
}

/* A small bank below criticality, with its n x n operator. */
typedef struct instance {
    int64_t n, d;
    double *Z, *A, eta, beta, lambda;
    cgam_bank *bank;
    cgam_gate *gate;
} instance;

static instance draw(cgam_rng *rng, int64_t n_max, double low, double high)
{
    instance x = {.n = 2 + cgam_rng_below(rng, n_max - 1), .d = 1 + cgam_rng_below(rng, n_max)};
    x.Z = dense_bank(rng, (dense_kind)cgam_rng_below(rng, DENSE_KINDS), x.n, x.d);
    double *G = dense_gate(x.n, x.d, x.Z, 1);
    for (int64_t i = 0; i < x.n; i++) G[i * x.n + i] = 0;
    double least = dense_eigen(x.n, G, NULL)[0];
    double alpha = (least < -1e-6 ? -1 / least : 1) * dense_between(rng, 0, 0.95);
    x.A = dense_gate(x.n, x.d, x.Z, alpha);
    x.beta = dense_between_log(rng, 0.1, 20);
    x.bank = object_bank(env, x.n, x.d, x.Z);
    x.gate = object_gate(env, x.bank, alpha);
    x.eta = cgam_gate_describe(x.gate).eta_min;
    x.lambda = sqrt(2 * x.eta * dense_between_log(rng, low, high) / x.beta);
    return x;
}

static void drop(instance *x)
{
    cgam_gate_free(x->gate);
    cgam_bank_free(x->bank);
    dense_reset();
}

/* |F(p) - F(q)| <= L |p - q| for the map F of coupled recall, L = beta lambda^2 / (2 eta_min). */
TEST(contraction_constant)
{
    cgam_rng rng = cgam_rng_stream(30, 2);
    double closest = 0;
    for (int k = 0; k < check_trials(10000); k++) {
        instance x = draw(&rng, 7, 0.01, 5);
        int64_t n = x.n;
        double L = cgam_contraction(x.beta, x.lambda, x.eta), l2 = x.lambda * x.lambda;
        double *p = dense_room(n), *q = dense_room(n), *Fp = dense_room(n), *Fq = dense_room(n);
        double *a = dense_normals(&rng, n, dense_between_log(&rng, 1e-3, 1)), *y = dense_room(n);
        random_simplex(&rng, n, p);
        random_simplex(&rng, n, q);
        double mix = k % 2 ? 1e-3 : 1; /* near and far pairs */
        for (int64_t i = 0; i < n; i++) q[i] = p[i] + mix * (q[i] - p[i]);
        CHECK_STATUS(env, cgam_gate_solve(x.gate, p, y, NULL));
        for (int64_t i = 0; i < n; i++) y[i] = a[i] + l2 * y[i];
        dense_softmax(n, x.beta, y, Fp);
        CHECK_STATUS(env, cgam_gate_solve(x.gate, q, y, NULL));
        for (int64_t i = 0; i < n; i++) y[i] = a[i] + l2 * y[i];
        dense_softmax(n, x.beta, y, Fq);
        double moved = dense_distance(n, Fp, Fq), apart = dense_distance(n, p, q);
        CHECK_LE(moved, L * apart * (1 + 1e-9) + 1e-13);
        if (apart > 1e-6) closest = fmax(closest, moved / (L * apart));
        drop(&x);
    }
    assert_true(closest > 0.8); /* the constant is not much larger than need be */
}

/* Below 1 every start ends in the same point. */
TEST(uniqueness)
{
    cgam_rng rng = cgam_rng_stream(30, 3);
    for (int k = 0; k < check_trials(5000); k++) {
        instance x = draw(&rng, 6, 0.05, 0.97);
        int64_t n = x.n;
        const long double *inverse = dense_inverse(n, x.A);
        double *b = dense_normals(&rng, n, dense_between_log(&rng, 1e-4, 1));
        double *start = dense_room(n), *p = dense_room(n), *q = dense_room(n);
        random_simplex(&rng, n, start);
        double moved = dense_coupled(n, inverse, x.beta, x.lambda, b, NULL, start, 1e-15, 3000, p);
        memset(start, 0, (size_t)n * sizeof *start);
        start[cgam_rng_below(&rng, n)] = 1;
        moved = fmax(moved,
                     dense_coupled(n, inverse, x.beta, x.lambda, b, NULL, start, 1e-15, 3000, q));
        CHECK_LE(moved, 1e-15);
        CHECK_CLOSE_ALL(p, q, n, 1e-12);
        drop(&x);
    }
}

/* s -> A^-1 (u + lambda p(s)) never raises E, from any s and for any lambda. */
TEST(energy_descent)
{
    cgam_rng rng = cgam_rng_stream(30, 4);
    for (int k = 0; k < check_trials(10000); k++) {
        instance x = draw(&rng, 7, 0.01, 100);
        int64_t n = x.n;
        double *s = dense_normals(&rng, n, dense_between_log(&rng, 0.1, 10)), before, after;
        double *b = dense_normals(&rng, n, 1), *u = dense_normals(&rng, n, 1), *g = dense_room(n);
        double *step = dense_room(n), size = 1;
        CHECK_STATUS(env, cgam_coupled_energy(x.gate, x.beta, x.lambda, b, u, s, &before, g));
        CHECK_STATUS(env, cgam_gate_solve(x.gate, g, step, NULL)); /* the map is s - A^-1 dE/ds */
        double fall = 0;
        for (int64_t i = 0; i < n; i++) {
            s[i] -= step[i];
            fall += 0.5 * g[i] * step[i];
            size = fmax(size, s[i] * s[i]);
        }
        CHECK_STATUS(env, cgam_coupled_energy(x.gate, x.beta, x.lambda, b, u, s, &after, NULL));
        /* at least by half the squared step in the A-norm */
        CHECK_LE(after, before - fall + 1e-13 * (fabs(before) + (double)n * size / x.eta));
        drop(&x);
    }
}

/* A - lambda^2 beta C(p) > 0 exactly where the local contraction is below 1; the free bound of the
 * margin is one. */
TEST(fold_margin)
{
    cgam_rng rng = cgam_rng_stream(30, 5);
    int above = 0, proved = 0;
    for (int k = 0; k < check_trials(8000); k++) {
        instance x = draw(&rng, 7, 0.1, 20);
        int64_t n = x.n;
        double *p = dense_room(n), margin, local, l2b = x.lambda * x.lambda * x.beta;
        bool proved_margin, proved_local;
        random_simplex(&rng, n, p);
        CHECK_STATUS(env, cgam_fold_margin(x.gate, x.beta, x.lambda, p, &margin, &proved_margin));
        CHECK_STATUS(env,
                     cgam_contraction_local(x.gate, x.beta, x.lambda, p, &local, &proved_local));
        double want = dense_eigen(n, dense_hessian(n, x.A, x.lambda, x.beta, p), NULL)[0];
        CHECK_CLOSE(margin, want, 1e-11 * (1 + l2b + dense_norm(n, x.A)));
        if (fabs(margin) > 1e-9) assert_int_equal(margin > 0, local < 1);
        CHECK_LE(x.eta - l2b * cgam_softmax_norm_bound(n, p), margin + 1e-11 * (1 + l2b));
        CHECK_LE(local, cgam_contraction(x.beta, x.lambda, x.eta) * (1 + 1e-9));
        CHECK_LE(local, l2b * cgam_softmax_norm(n, p) / x.eta * (1 + 1e-9) + 1e-13);
        above += local >= 1;
        proved += proved_margin && proved_local;
        drop(&x);
    }
    assert_true(above > check_trials(500));
    assert_true(
        proved >
        check_trials(7900)); /* all but those with huge alpha n_i, where 1e-9 is out of reach */
}

/* Theorems 4 and 5 of Ramsauer et al. The paper states them for queries in a sphere around the
 * pattern; what the proofs use is only that the softmax weight of the pattern is 1 - epsilon along
 * the segment from xi to x*, epsilon = (n-1) exp(-beta (Delta - 2 max(|xi - x|, |x* - x|) M)), which
 * the separation theorem gives everywhere (with epsilon above 1 the bounds are trivial, and true). So
 * the hypothesis enforced here is just that x* is a fixed point. The bound on |x - x*| does need both
 * distances within 1 / (2 beta M), and the function gives NAN otherwise. */
TEST(hopfield_bounds)
{
    cgam_rng rng = cgam_rng_stream(30, 6);
    int telling = 0, fixed = 0;
    for (int k = 0; k < check_trials(10000); k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 8), d = 2 + cgam_rng_below(&rng, 14);
        int64_t i = cgam_rng_below(&rng, n);
        double *Z = dense_bank(&rng, (dense_kind)cgam_rng_below(&rng, DENSE_CLUSTER), n, d);
        double size = dense_between_log(&rng, 0.3, 6), beta = dense_between_log(&rng, 0.3, 30);
        for (int64_t j = 0; j < n * d; j++) Z[j] *= size;
        double *xi = dense_normals(&rng, d, size * dense_between_log(&rng, 1e-4, 0.3));
        for (int64_t j = 0; j < d; j++) xi[j] += Z[i * d + j];
        double *star = dense_room(d), *once = dense_room(d), change;
        OWNED(cgam_bank) bank = object_bank(env, n, d, Z);
        CHECK_STATUS(env,
                     cgam_hopfield_settle(bank, beta, xi, 1e-14 * size, 5000, star, NULL, &change));
        if (change <= 1e-14 * size) {
            cgam_hopfield_bounds got;
            CHECK_STATUS(env, cgam_hopfield_update(bank, beta, xi, once));
            CHECK_STATUS(env, cgam_hopfield_bound(bank, beta, i, xi, star, &got));
            double one_step = dense_distance(d, once, star);
            double retrieval = dense_distance(d, once, Z + i * d);
            double rest = dense_distance(d, star, Z + i * d), noise = 1e-12 * size;
            CHECK_LE(one_step, got.one_step + noise);
            CHECK_LE(retrieval, got.retrieval + noise);
            if (!isnan(got.fixed_point)) {
                CHECK_LE(rest, got.fixed_point + noise);
                double M = cgam_bank_describe(bank).norm_max;
                CHECK_LE(rest, 0.5 / (beta * M) * (1 + 1e-12));
                fixed++;
            }
            telling += got.retrieval < 0.1 * size;
            double separation = INFINITY;
            for (int64_t j = 0; j < n; j++) {
                double dot = 0;
                for (int64_t l = 0; l < d; l++) dot += Z[i * d + l] * (Z[i * d + l] - Z[j * d + l]);
                if (j != i) separation = fmin(separation, dot);
            }
            CHECK_CLOSE(got.separation, separation, 1e-12 * size * size * 9);
        }
        dense_reset();
    }
    assert_true(telling > check_trials(1000));
    assert_true(fixed > check_trials(500));
}

TEST_GROUP(set_up, tear_down)
