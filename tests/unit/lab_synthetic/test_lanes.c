/* The vector loops against plain C and against each other, for every CPU this one can be. */
#include "unit/lab_synthetic/banks.h"

#include <cgam/gate.h>
#include <cgam/recall.h>

#include "support/owned.h"

enum { N = 23, D = 7, LAMBDAS = 3 };

/* Runs a check with each set of loops that this CPU has. */
static void each(void (*check)(const cgam_lanes *lanes))
{
    int count = 0;
    for (const cgam_cpu *cpu = cgam_cpu_all + 1; cpu->name; cpu++) {
        if (!cpu->usable()) continue;
        /* instructions for products or bytes alone: the loops are those of the row before */
        if (cgam_lanes_of(cpu) == cgam_lanes_of(cpu - 1)) continue;
        assert_string_equal(cgam_lanes_of(cpu)->name, cpu->name);
        check(cgam_lanes_of(cpu));
        count++;
    }
    assert_true(count > 0);
}

/* s = A^-1 u by weights against the gate operator, and its peak. */
static void response_check(const cgam_lanes *lanes)
{
    OWNED(cgam_env) env = env_new(1);
    const int width = lanes->width;
    static const int64_t sizes[][2] = {{N, D}, {9, 12}, {30, 13}};
    for (int c = 0; c < 3; c++) {
        int64_t n = sizes[c][0], d = sizes[c][1];
        cgam_banks *b = clusters(env, width, n, d, 0);
        size_t room = (size_t)((n + b->g.m + 1) * width + 2 * CGAM_LANES_MAX);
        double *s = cgam_alloc(env, room, sizeof *s), *f = s + n * width, *f0 = f + b->g.m * width;
        double *scale = f0 + CGAM_LANES_MAX, t[CGAM_LANES_MAX] = {0};
        double peak[CGAM_LANES_MAX] __attribute__((aligned(64)));
        const double alpha = 0.8;
        cgam_banks_weights(b, alpha, t, f, f0, scale);
        lanes->compose(&b->g, f, f0, s);
        lanes->peak(n, 3.5, s, NULL, peak, NULL);
        for (int l = 0; l < width; l++) {
            double *Z = malloc((size_t)(n * d) * sizeof *Z), got[64], want[64], u[64], p[64],
                   top = 0;
            lane_of(b->g.Z, n * d, width, l, Z);
            cgam_bank *bank;
            cgam_gate *gate;
            CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
            CHECK_STATUS(env, cgam_gate_new(bank, alpha, NULL, &gate));
            for (int64_t i = 0; i < n; i++) u[i] = 1 / (double)n;
            CHECK_STATUS(env, cgam_gate_solve(gate, u, want, NULL));
            lane_of(s, n, width, l, got);
            CHECK_CLOSE_ALL(got, want, n, 1e-13);
            softmax_of(n, 3.5, want, p);
            for (int64_t i = 0; i < n; i++) top = fmax(top, p[i]);
            CHECK_CLOSE(peak[l], top, 1e-13);
            cgam_gate_free(gate);
            cgam_bank_free(bank);
            free(Z);
        }
        cgam_free(env, s);
        cgam_banks_free(b);
    }
}

TEST(responses_agree_with_the_gate_operator) { each(response_check); }

/* Plain iteration in plain C. */
static int iterate(const double *G, int64_t n, double alpha, double beta, double lambda,
                   cgam_gate *gate, cgam_env *env, double *r)
{
    double p[64], in[64], s[64];
    (void)G;
    (void)alpha;
    for (int k = 1; k <= 500; k++) {
        double change = 0;
        softmax_of(n, beta, r, p);
        for (int64_t i = 0; i < n; i++) in[i] = 1 / (double)n + lambda * p[i];
        CHECK_STATUS(env, cgam_gate_solve(gate, in, s, NULL));
        for (int64_t i = 0; i < n; i++) {
            change = fmax(change, fabs(lambda * s[i] - r[i]));
            r[i] = lambda * s[i];
        }
        if (change < 1e-8) return k;
    }
    return 501;
}

static void coupled_check(const cgam_lanes *lanes)
{
    OWNED(cgam_env) env = env_new(1);
    const int width = lanes->width;
    const int64_t n = 50, d = 10;
    /* on the low branch, at the fold, and beyond it */
    static const double cases[][2] = {{0.3, 1}, {0.84, 1}, {0.38, 2}, {0.9, 2}, {0.0017, 3}};
    cgam_banks *b = clusters(env, width, n, d, 8);
    const int64_t m = b->g.m;
    double *room = cgam_zalloc(env, (size_t)((4 * n + 3 * m + 2) * width), sizeof *room);
    double *base = room, *r = base + n * width, *e = r + n * width, *s = e + (n + m) * width;
    double *f = s + n * width, *gain = f + (m + 1) * width, scale[CGAM_LANES_MAX],
           t[CGAM_LANES_MAX] = {0};
    int active[CGAM_LANES_MAX], iterations[CGAM_LANES_MAX];
    for (int c = 0; c < 5; c++) {
        double alpha = cases[c][0], lambda = cases[c][1];
        cgam_banks_weights(b, alpha, t, f, f + m * width, scale);
        lanes->compose(&b->g, f, f + m * width, s);
        for (int64_t i = 0; i < n * width; i++) {
            base[i] = lambda * s[i];
            r[i] = b->g.start[i];
        }
        for (int64_t k = 0; k < m * width; k++) gain[k] = f[k] - 1 / (1 - alpha);
        for (int l = 0; l < width; l++) gain[m * width + l] = 1 / (1 - alpha);
        for (int l = 0; l < width; l++) active[l] = l != 1; /* lane 1 is to be left alone */
        cgam_lanes_coupled w = {.beta = 5,
                                .lambda = lambda,
                                .tol = 1e-8,
                                .max_iter = 500,
                                .gain = gain,
                                .gain0 = gain + m * width,
                                .base = base,
                                .r = r,
                                .e = e,
                                .iterations = iterations,
                                .active = active};
        lanes->coupled(&b->g, &w);
        for (int l = 0; l < width; l++) {
            double Z[50 * 10], got[50], want[50];
            lane_of(b->g.start, n, width, l, want);
            lane_of(r, n, width, l, got);
            if (l == 1) {
                CHECK_CLOSE_ALL(got, want, n, 0);
                continue;
            }
            lane_of(b->g.Z, n * d, width, l, Z);
            OWNED(cgam_bank) bank = NULL;
            OWNED(cgam_gate) gate = NULL;
            CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
            CHECK_STATUS(env, cgam_gate_new(bank, alpha, NULL, &gate));
            int count = iterate(NULL, n, alpha, 5, lambda, gate, env, want);
            assert_in_range(abs(count - iterations[l]), 0,
                            1); /* a change of 1e-8 within rounding */
            CHECK_CLOSE_ALL(got, want, n, count == iterations[l] ? 1e-10 : 1e-7);
        }
    }
    cgam_free(env, room);
    cgam_banks_free(b);
}

TEST(the_iteration_is_the_plain_one) { each(coupled_check); }

/* Scores against a plain loop, ties included. */
static void judge_check(const cgam_lanes *lanes)
{
    OWNED(cgam_env) env = env_new(1);
    const int width = lanes->width;
    const double lambda[LAMBDAS] = {0, 0.5, 4}, beta = 3.5;
    double *room = cgam_zalloc(env, (size_t)((2 * D + 2 * N + 2 * LAMBDAS) * width), sizeof *room);
    double *q = room, *c = q + D * width, *b = c + D * width, *s = b + N * width;
    double *gap = s + N * width, *log_p = gap + LAMBDAS * width, M[N * D];
    int right[LAMBDAS * CGAM_LANES_MAX];
    int64_t target[CGAM_LANES_MAX];
    cgam_rng rng = cgam_rng_stream(3, 4);
    for (int i = 0; i < N * D; i++) M[i] = cgam_rng_normal(&rng);
    memcpy(M + D, M, D * sizeof *M); /* memories 0 and 1 are equal: the first wins the tie */
    for (int i = 0; i < 2 * D * width; i++) room[i] = cgam_rng_normal(&rng);
    for (int l = 0; l < width; l++) target[l] = l < 2 ? l : cgam_rng_below(&rng, N);
    lanes->product(N, D, M, q, b);
    lanes->product(N, D, M, c, s);
    cgam_lanes_judge w = {.n = N,
                          .lambdas = LAMBDAS,
                          .beta = beta,
                          .b = b,
                          .s = s,
                          .lambda = lambda,
                          .target = target,
                          .gap = gap,
                          .log_p = log_p,
                          .right = right};
    lanes->judge(&w);
    for (int k = 0; k < LAMBDAS; k++)
        for (int l = 0; l < width; l++) {
            double r[N], p[N], other = -INFINITY;
            int best = 0;
            for (int i = 0; i < N; i++) {
                double x = 0, y = 0;
                for (int j = 0; j < D; j++) {
                    x += M[i * D + j] * q[j * width + l];
                    y += M[i * D + j] * c[j * width + l];
                }
                r[i] = x + lambda[k] * y;
                if (i != target[l]) other = fmax(other, r[i]);
                if (r[i] > r[best]) best = i;
            }
            if (target[l] == 1) assert_int_equal(right[k * width + l], 0);
            else assert_int_equal(right[k * width + l], best == target[l]);
            CHECK_CLOSE(gap[k * width + l], r[target[l]] - other, 1e-12);
            softmax_of(N, beta, r, p);
            CHECK_CLOSE(log_p[k * width + l], log(p[target[l]]), 1e-11);
        }
    cgam_free(env, room);
}

TEST(judgements_are_those_of_a_plain_loop) { each(judge_check); }
