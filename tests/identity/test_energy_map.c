/* Identities between the energy, the map and the operator:
 *   dE/ds = A s - u - lambda p,  fixed points are its zeros,  Woodbury's formula is A^-1,
 *   first order is the map without feedback,  lambda = 0 is the modern Hopfield update,
 *   alpha = 0 has a closed form,  b + bias + feedback = r,
 *   the map is a mirror step of the free energy, whose fall is known to the last term. */
#include "memory/certify.h"
#include "support/one_env.h"

#include <cgam/theory.h>

#include "support/owned.h"

typedef struct instance {
    int64_t n, d;
    double *Z, *A, *q, *c, *b, *u;
    double alpha, beta, lambda, eta;
    cgam_bank *bank;
    cgam_gate *gate;
} instance;

static instance draw(cgam_rng *rng, double below)
{
    instance x = {.n = 1 + cgam_rng_below(rng, 16), .d = 1 + cgam_rng_below(rng, 16)};
    int64_t n = x.n, d = x.d;
    x.Z = dense_bank(rng, (dense_kind)cgam_rng_below(rng, DENSE_KINDS), n, d);
    x.alpha = dense_critical(n, d, x.Z) * dense_between(rng, 0, below);
    x.A = dense_gate(n, d, x.Z, x.alpha);
    x.eta = dense_eigen(n, x.A, NULL)[0];
    x.beta = dense_between_log(rng, 0.2, 10);
    x.lambda = dense_between_log(rng, 0.1, 3);
    x.q = dense_normals(rng, d, 1);
    x.c = dense_normals(rng, d, 1);
    x.b = dense_room(n);
    x.u = dense_room(n);
    dense_score(n, d, x.Z, x.q, x.b);
    dense_score(n, d, x.Z, x.c, x.u);
    x.bank = object_bank(env, n, d, x.Z);
    x.gate = object_gate(env, x.bank, x.alpha);
    return x;
}

static void drop(instance *x)
{
    cgam_gate_free(x->gate);
    cgam_bank_free(x->bank);
    dense_reset();
}

static cgam_recall_opts opts_of(const instance *x, cgam_mode mode)
{
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = mode;
    opts.alpha = x->alpha;
    opts.beta = x->beta;
    opts.lambda = x->lambda;
    return opts;
}

static cgam_result recall(const instance *x, const cgam_recall_opts *opts, double *p, double *s,
                          double *r, double *readout)
{
    OWNED(cgam_recall) plan = object_recall(env, x->bank, opts);
    cgam_result result;
    cgam_recall_in in = {.queries = 1, .q = x->q, .c = x->c};
    cgam_recall_out out = {.results = &result, .p = p, .s = s, .r = r, .readout = readout};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    return result;
}

/* E in long double, by its definition on the n x n matrix. */
static long double energy(const instance *x, const long double *s)
{
    int64_t n = x->n;
    long double quadratic = 0, linear = 0, top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) quadratic += s[i] * x->A[i * n + j] * s[j];
        linear += x->u[i] * s[i];
        top = fmaxl(top, x->b[i] + x->lambda * s[i]);
    }
    for (int64_t i = 0; i < n; i++) sum += expl(x->beta * (x->b[i] + x->lambda * s[i] - top));
    return quadratic / 2 - linear - (top + logl(sum) / x->beta);
}

TEST(the_gradient_is_the_map)
{
    cgam_rng rng = cgam_rng_stream(20, 0);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, k % 2 ? 0.95 : 3); /* E needs no positive operator */
        int64_t n = x.n;
        double *s = dense_normals(&rng, n, 1), *gradient = dense_room(n), *p = dense_room(n);
        double *r = dense_room(n), *As = dense_room(n), value;
        CHECK_STATUS(env,
                     cgam_coupled_energy(x.gate, x.beta, x.lambda, x.b, x.u, s, &value, gradient));
        for (int64_t i = 0; i < n; i++) r[i] = x.b[i] + x.lambda * s[i];
        dense_softmax(n, x.beta, r, p);
        dense_score(n, n, x.A, s, As);
        double size = 1;
        for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(As[i]) + fabs(x.u[i]));
        long double *wide = dense_room_long(n);
        for (int64_t i = 0; i < n; i++) wide[i] = s[i];
        CHECK_CLOSE(value, (double)energy(&x, wide), 1e-13 * (double)n * size * size);
        for (int64_t i = 0; i < n; i++) {
            CHECK_CLOSE(gradient[i], As[i] - x.u[i] - x.lambda * p[i], 1e-13 * size);
            long double h = 1e-6L; /* central differences in long double: h^2 E''' and eps E / h */
            wide[i] = s[i] + h;
            long double up = energy(&x, wide);
            wide[i] = s[i] - h;
            long double down = energy(&x, wide);
            wide[i] = s[i];
            double third = x.beta * x.beta * x.lambda * x.lambda * x.lambda;
            CHECK_CLOSE(gradient[i], (double)((up - down) / (2 * h)),
                        1e-12 * (1 + third) + 1e-12 * (double)n * size * size);
        }
        CHECK_STATUS(env, cgam_coupled_energy(x.gate, x.beta, x.lambda, x.b, x.u, s, &value, NULL));
        drop(&x);
    }
}

TEST(fixed_points_are_zeros_of_the_gradient)
{
    cgam_rng rng = cgam_rng_stream(20, 1);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, 0.9);
        int64_t n = x.n;
        cgam_recall_opts opts = opts_of(&x, CGAM_COUPLED);
        double *p = dense_room(n), *s = dense_room(n), *r = dense_room(n), *g = dense_room(n);
        double value, size = 1;
        cgam_result result = recall(&x, &opts, p, s, r, NULL);
        assert_int_equal(result.end, CGAM_END_CONVERGED);
        CHECK_STATUS(env, cgam_coupled_energy(x.gate, x.beta, x.lambda, x.b, x.u, s, &value, g));
        for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(s[i]));
        /* s belongs to the p before the last: the gradient is lambda times the last step */
        double allowed = x.lambda * result.change + 1e-13 * size * dense_norm(n, x.A);
        CHECK_CLOSE_ALL(g, dense_room(n), n, allowed);
        CHECK_CLOSE(result.energy_end, value, 1e-12 * (1 + fabs(value) + (double)n * size * size));

        double *bias = dense_room(n), *feedback = dense_room(n);
        CHECK_STATUS(env, cgam_retrieval_parts(x.gate, x.lambda, x.u, p, bias, feedback));
        double off = 1e-11 * (1 + x.lambda) * (1 + x.lambda) * (1 + size) / x.eta;
        for (int64_t i = 0; i < n; i++) CHECK_CLOSE(x.b[i] + bias[i] + feedback[i], r[i], off);
        CHECK_STATUS(env, cgam_retrieval_parts(x.gate, x.lambda, x.u, p, NULL, NULL));
        drop(&x);
    }
}

/* F in long double by its definition; Y[n, n] = A^-1. */
static long double free_energy(const instance *x, const double *Y, const long double *p)
{
    int64_t n = x->n;
    long double total = 0;
    for (int64_t i = 0; i < n; i++) {
        long double bias = 0, feedback = 0;
        for (int64_t j = 0; j < n; j++) {
            bias += Y[i * n + j] * (long double)x->u[j];
            feedback += Y[i * n + j] * p[j];
        }
        total -= p[i] * (x->b[i] + x->lambda * bias + x->lambda * x->lambda * feedback / 2);
        if (p[i] > 0) total += p[i] * logl(p[i]) / x->beta;
    }
    return total;
}

static double *inverse(const instance *x)
{
    int64_t n = x->n;
    double *Y = dense_room(n * n), *e = dense_room(n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) e[j] = i == j;
        dense_solve(n, x->A, e, Y + i * n);
    }
    return Y;
}

TEST(the_free_energy_has_its_gradient_and_meets_the_energy)
{
    cgam_rng rng = cgam_rng_stream(20, 6);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, 0.9);
        int64_t n = x.n;
        double *Y = inverse(&x), *r = dense_normals(&rng, n, 1), *p = dense_room(n);
        double *gradient = dense_room(n), *s = dense_room(n), *su = dense_room(n);
        double *next = dense_room(n), value, E, kl = 0, half = 0;
        long double *wide = dense_room_long(n);
        dense_softmax(n, 1, r, p);
        for (int64_t i = 0; i < n; i++) wide[i] = p[i];
        CHECK_STATUS(
            env, cgam_coupled_free_energy(x.gate, x.beta, x.lambda, x.b, x.u, p, &value, gradient));
        double off =
            1e-12 * (double)n * (1 + x.lambda) * (1 + x.lambda) * (10 / x.eta + 10 / x.beta);
        CHECK_CLOSE(value, (double)free_energy(&x, Y, wide), off);
        for (int64_t i = 0; i < n; i++) {
            long double h = 1e-6L * p[i], up, down;
            wide[i] = p[i] + h;
            up = free_energy(&x, Y, wide);
            wide[i] = p[i] - h;
            down = free_energy(&x, Y, wide);
            wide[i] = p[i];
            /* h^2 times a third of the third derivative is 1e-12 / (6 beta); F / h has 64 bits */
            CHECK_CLOSE(gradient[i], (double)((up - down) / (2 * h)),
                        off + 1e-11 / x.beta + 1e-12 * off / (double)h);
        }
        /* F(p) = E(s(p)) + <u, A^-1 u> / 2 + KL(p | next) / beta, s(p) = A^-1 (u + lambda p) */
        dense_score(n, n, Y, x.u, su);
        dense_score(n, n, Y, p, s);
        for (int64_t i = 0; i < n; i++) {
            s[i] = su[i] + x.lambda * s[i];
            r[i] = x.b[i] + x.lambda * s[i];
            half += 0.5 * x.u[i] * su[i];
        }
        CHECK_STATUS(env, cgam_coupled_energy(x.gate, x.beta, x.lambda, x.b, x.u, s, &E, NULL));
        dense_softmax(n, x.beta, r, next);
        for (int64_t i = 0; i < n; i++) kl += p[i] * log(p[i] / next[i]);
        if (isfinite(kl)) CHECK_CLOSE(value, E + half + kl / x.beta, 10 * off * (1 + fabs(half)));
        drop(&x);
    }
}

/* Up to 10^5 mirror steps, ten from each start: the step is the map to rounding, and the fall is
 * half of lambda^2 |next - p|^2 in A^-1, and KL(p | next) / beta. */
TEST(the_map_is_a_mirror_step_and_its_fall_is_known)
{
    cgam_rng rng = cgam_rng_stream(20, 7);
    for (int k = 0; k < check_trials(10000); k++) {
        instance x = draw(&rng, 0.9);
        int64_t n = x.n;
        double *Y = inverse(&x), *r = dense_normals(&rng, n, 2), *p = dense_room(n);
        double *mirror = dense_room(n), *map = dense_room(n), *gradient = dense_room(n), before;
        double *Yu = dense_room(n), *Yp = dense_room(n), *Yd = dense_room(n), *step = dense_room(n);
        double size = (1 + x.lambda) * (1 + x.lambda) * (10 / x.eta + 10 / x.beta);
        dense_score(n, n, Y, x.u, Yu);
        dense_softmax(n, 1, r, p);
        for (int t = 0; t < 10; t++) {
            double after, fall = 0, least = 1;
            CHECK_STATUS(env, cgam_coupled_free_energy(x.gate, x.beta, x.lambda, x.b, x.u, p,
                                                       &before, gradient));
            for (int64_t i = 0; i < n; i++) {
                least = fmin(least, p[i]);
                mirror[i] = log(p[i]) - x.beta * gradient[i];
            }
            if (!(least > 1e-300)) break; /* a mirror step multiplies what is there */
            dense_softmax(n, 1, mirror, mirror);
            dense_score(n, n, Y, p, Yp);
            for (int64_t i = 0; i < n; i++)
                r[i] = x.b[i] + x.lambda * Yu[i] + x.lambda * x.lambda * Yp[i];
            dense_softmax(n, x.beta, r, map);
            CHECK_CLOSE_ALL(mirror, map, n, 1e-12 * (1 + x.beta * size));
            for (int64_t i = 0; i < n; i++) step[i] = map[i] - p[i];
            dense_score(n, n, Y, step, Yd);
            for (int64_t i = 0; i < n; i++) {
                fall += 0.5 * x.lambda * x.lambda * step[i] * Yd[i];
                if (map[i] > 0) fall += p[i] * log(p[i] / map[i]) / x.beta;
            }
            CHECK_STATUS(env, cgam_coupled_free_energy(x.gate, x.beta, x.lambda, x.b, x.u, map,
                                                       &after, NULL));
            CHECK_CLOSE(before - after, fall, 1e-12 * (double)n * size * (1 + fall));
            CHECK_LE(-1e-13 * (double)n * size, before - after);
            memcpy(p, map, (size_t)n * sizeof *p);
        }
        drop(&x);
    }
}

/* A^-1 x = D^-1 x - alpha D^-1 Z M^-1 Z' D^-1 x, M = I + alpha Z' D^-1 Z, written out. */
TEST(woodbury_is_the_inverse)
{
    cgam_rng rng = cgam_rng_stream(20, 2);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, 0.9);
        int64_t n = x.n, d = x.d;
        double *v = dense_normals(&rng, n, 1), *want = dense_room(n), *got = dense_room(n);
        double *D = dense_room(n), *M = dense_room(d * d), *t = dense_room(d), *y = dense_room(n);
        double *w = dense_room(n), smallest = INFINITY;
        for (int64_t i = 0; i < n; i++) {
            D[i] = 1;
            for (int64_t j = 0; j < d; j++) D[i] -= x.alpha * x.Z[i * d + j] * x.Z[i * d + j];
            smallest = fmin(smallest, fabs(D[i]));
            w[i] = v[i] / D[i];
        }
        for (int64_t a = 0; a < d; a++)
            for (int64_t b = 0; b < d; b++) {
                M[a * d + b] = a == b;
                for (int64_t i = 0; i < n; i++)
                    M[a * d + b] += x.alpha * x.Z[i * d + a] * x.Z[i * d + b] / D[i];
            }
        dense_solve(n, x.A, v, want);
        CHECK_STATUS(env, cgam_gate_solve(x.gate, v, got, NULL));
        double size = dense_distance(n, want, dense_room(n)), norm = dense_norm(n, x.A);
        CHECK_LE(dense_distance(n, got, want), 1e-13 * norm / x.eta * size);
        if (smallest > 1e-3) {
            dense_combine(n, d, x.Z, w, t);
            dense_solve(d, M, t, t);
            dense_score(n, d, x.Z, t, y);
            for (int64_t i = 0; i < n; i++) y[i] = w[i] - x.alpha * y[i] / D[i];
            CHECK_LE(dense_distance(n, y, got), 1e-11 / smallest / x.eta * size);
            /* A^-1 Z c = D^-1 Z M^-1 c */
            dense_solve(d, M, x.c, t);
            dense_score(n, d, x.Z, t, y);
            for (int64_t i = 0; i < n; i++) y[i] /= D[i];
            CHECK_STATUS(env, cgam_gate_solve_range(x.gate, x.c, got));
            CHECK_LE(dense_distance(n, y, got),
                     1e-11 / smallest / x.eta * (1 + dense_distance(n, got, dense_room(n))));
        }
        drop(&x);
    }
}

TEST(first_order_is_the_map_without_feedback)
{
    cgam_rng rng = cgam_rng_stream(20, 3);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, 0.9);
        int64_t n = x.n;
        cgam_recall_opts first = opts_of(&x, CGAM_FIRST), coupled = opts_of(&x, CGAM_COUPLED);
        double *p = dense_room(n), *s = dense_room(n), *r = dense_room(n), value;
        double *p1 = dense_room(n), *s1 = dense_room(n), *r1 = dense_room(n), *y = dense_room(n);
        recall(&x, &first, p, s, r, NULL);
        coupled.max_iter = 1; /* p of first order, one application of the map */
        cgam_result one = recall(&x, &coupled, p1, s1, r1, NULL);
        dense_solve(n, x.A, p, y);
        double size = 1;
        for (int64_t i = 0; i < n; i++) size = fmax(size, fabs(r[i]) + fabs(y[i]));
        for (int64_t i = 0; i < n; i++) {
            double want = r[i] + x.lambda * x.lambda * y[i];
            CHECK_CLOSE(r1[i], want, 1e-12 * size * (1 + x.lambda * x.lambda) / x.eta);
            CHECK_CLOSE(s1[i], s[i] + x.lambda * y[i], 1e-12 * size * (1 + x.lambda) / x.eta);
        }
        dense_softmax(n, x.beta, r1, y);
        CHECK_CLOSE_ALL(p1, y, n, 1e-13 * (1 + x.beta * size));
        CHECK_STATUS(env, cgam_coupled_energy(x.gate, x.beta, x.lambda, x.b, x.u, s, &value, NULL));
        CHECK_CLOSE(one.energy_start, value, 1e-12 * (double)n * size * size / x.eta);
        drop(&x);
    }
}

TEST(without_coupling_it_is_the_hopfield_update)
{
    cgam_rng rng = cgam_rng_stream(20, 4);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, 0.9);
        x.lambda = 0;
        cgam_recall_opts opts = opts_of(&x, k % 2 ? CGAM_COUPLED : CGAM_FIRST);
        double *readout = dense_room(x.d), *update = dense_room(x.d), before, after;
        recall(&x, &opts, NULL, NULL, NULL, readout);
        CHECK_STATUS(env, cgam_hopfield_update(x.bank, x.beta, x.q, update));
        CHECK_CLOSE_ALL(readout, update, x.d, 1e-13);
        /* whose energy falls and is not negative */
        CHECK_STATUS(env, cgam_hopfield_energy(x.bank, x.beta, x.q, &before));
        CHECK_STATUS(env, cgam_hopfield_energy(x.bank, x.beta, update, &after));
        CHECK_LE(after, before + 1e-13 * (1 + fabs(before)));
        CHECK_LE(-1e-13, after);
        drop(&x);
    }
}

TEST(without_penalty_there_is_a_closed_form)
{
    cgam_rng rng = cgam_rng_stream(20, 5);
    for (int k = 0; k < check_trials(300); k++) {
        instance x = draw(&rng, 0.9);
        int64_t n = x.n, d = x.d, d_c = 1 + cgam_rng_below(&rng, 8);
        x.alpha = 0;
        x.c = dense_normals(&rng, d_c, 1);
        cgam_recall_opts opts = opts_of(&x, CGAM_FIRST);
        double *P = dense_normals(&rng, d * d_c, 0.5), *v = dense_room(d), *r = dense_room(n);
        double *s = dense_room(n), *want = dense_room(n);
        opts.P = P;
        opts.d_c = d_c;
        recall(&x, &opts, NULL, s, r, NULL);
        dense_score(d, d_c, P, x.c, v);
        for (int64_t j = 0; j < d; j++)
            v[j] = x.q[j] + x.lambda * v[j]; /* r = Z (q + lambda P c) */
        dense_score(n, d, x.Z, v, want);
        double size = dense_distance(d, v, dense_room(d));
        CHECK_CLOSE_ALL(r, want, n, 1e-14 * (double)d * 9 * (1 + size));
        drop(&x);
    }
}

TEST_GROUP(set_up, tear_down)
