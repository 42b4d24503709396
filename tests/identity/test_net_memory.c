/* The memory as a network and the memory by its fast paths are the same thing: equations and
 * energies at any point, fixed points of the flow, first order at lambda -> 0, winners above the
 * critical penalty, a free context, the modern Hopfield network, the dense associative memory. */
#include "memory/gate.h"
#include "unit/net/nets.h"

#include "support/failing_alloc.h"

#include <cgam/cgam.h>

#include "support/owned.h"

static cgam_bank *random_bank(cgam_env *env, uint64_t *seed, int64_t n, int64_t d, bool unit)
{
    cgam_bank *bank;
    double *Z = malloc((size_t)(n * d) * sizeof *Z);
    cgam_bank_opts o = {.normalize = unit, .copy = true};
    normals(seed, unit ? 1 : 0.5, n * d, Z);
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, &o, &bank));
    free(Z);
    return bank;
}

/* ---- the equations of the two-stage memory ---------------------------------------------------- */
TEST_ENV(the_network_has_the_equations_of_the_memory)
{
    uint64_t seed = 1;
    enum { N = 12, D = 5, C = 3 };
    for (int kind = 0; kind < 3; kind++) { /* W = Z, Z P, W */
        cgam_bank *bank = random_bank(env, &seed, N, D, kind == 0);
        double P[D * C], W[N * C], Zm[N * D], x[C + 2 * N + D + 8], rate[64], parts[8], E;
        int64_t dc = kind == 0 ? D : C;
        normals(&seed, 1, D * C, P);
        normals(&seed, 1, N * C, W);
        for (int i = 0; i < N; i++) CHECK_STATUS(env, cgam_bank_row(bank, i, Zm + i * D));
        cgam_memory_net_opts o = cgam_memory_net_opts_default();
        o.alpha = 0.3;
        o.beta = 2;
        o.lambda = 0.7;
        o.tau_c = 0.5, o.tau_s = 0.2, o.tau_r = 1.5, o.tau_q = 3;
        o.P = kind == 1 ? P : NULL;
        o.W = kind == 2 ? W : NULL;
        o.d_c = dc;
        cgam_net *net;
        CHECK_STATUS(env, cgam_memory_net_new(bank, &o, &net));
        assert_int_equal(cgam_net_describe(net).size, dc + 2 * N + D);
        normals(&seed, 1, cgam_net_describe(net).size, x);
        CHECK_STATUS(env,
                     cgam_net_eval(net, 1, x, NULL,
                                   &(cgam_net_values){.rate = rate, .parts = parts, .energy = &E}));
        const double *c = x, *s = x + dc, *r = s + N, *q = r + N;
        double p[N], sum = 0, full[N * D] = {0}, u[N], want[64], h[4] = {0};
        for (int i = 0; i < N; i++) sum += p[i] = exp(2 * r[i]);
        for (int i = 0; i < N; i++) p[i] /= sum;
        /* gate weights as a plain matrix [N, dc] */
        for (int i = 0; i < N; i++)
            for (int64_t j = 0; j < dc; j++) {
                double w = kind == 0 ? Zm[i * D + j] : kind == 2 ? W[i * C + j] : 0;
                for (int k = 0; kind == 1 && k < D; k++) w += Zm[i * D + k] * P[k * C + j];
                full[i * dc + j] = w;
            }
        for (int64_t j = 0; j < dc; j++) {
            want[j] = -c[j];
            for (int i = 0; i < N; i++) want[j] += full[i * dc + j] * s[i];
            want[j] /= o.tau_c;
        }
        for (int i = 0; i < N; i++) {
            double Gs = 0, b = 0;
            u[i] = dot(dc, full + i * dc, c);
            for (int k = 0; k < N; k++)
                if (k != i) Gs += dot(D, Zm + i * D, Zm + k * D) * s[k];
            b = dot(D, Zm + i * D, q);
            want[dc + i] = (u[i] - 0.3 * Gs + 0.7 * p[i] - s[i]) / o.tau_s;
            want[dc + N + i] = (0.7 * s[i] + b - r[i]) / o.tau_r;
            h[0] -= s[i] * u[i];
            h[1] += 0.15 * s[i] * Gs;
            h[2] -= 0.7 * s[i] * p[i];
            h[3] -= p[i] * b;
        }
        for (int j = 0; j < D; j++) {
            want[dc + 2 * N + j] = -q[j];
            for (int i = 0; i < N; i++) want[dc + 2 * N + j] += Zm[i * D + j] * p[i];
            want[dc + 2 * N + j] /= o.tau_q;
        }
        CHECK_CLOSE_ALL(rate, want, cgam_net_describe(net).size, 1e-13);
        CHECK_CLOSE_ALL(parts + 4, h, 4, 1e-13);
        CHECK_CLOSE(parts[CGAM_NET_GATES], 0.5 * dot(N, s, s), 1e-13);
        double entropy = 0;
        for (int i = 0; i < N; i++) entropy += p[i] * log(p[i]);
        CHECK_CLOSE(parts[CGAM_NET_RETRIEVAL], entropy / 2, 1e-13);
        cgam_net_free(net);
        cgam_bank_free(bank);
    }
}

/* With the retrieval layer settled, the network's energy is E(s) of recall up to a constant. */
TEST_ENV(energies_agree_where_retrieval_has_settled)
{
    uint64_t seed = 2;
    enum { N = 20, D = 6 };
    OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, false);
    OWNED(cgam_gate) gate = NULL;
    OWNED(cgam_net) net = NULL;
    cgam_memory_net_opts o = cgam_memory_net_opts_default();
    o.alpha = 0.2;
    o.beta = 3;
    o.lambda = 1.3;
    CHECK_STATUS(env, cgam_gate_new(bank, 0.2, NULL, &gate));
    CHECK_STATUS(env, cgam_memory_net_new(bank, &o, &net));
    double c[D], q[D], u[N], b[N];
    normals(&seed, 1, D, c);
    normals(&seed, 1, D, q);
    CHECK_STATUS(env, cgam_bank_score(bank, c, u));
    CHECK_STATUS(env, cgam_bank_score(bank, q, b));
    for (int round = 0; round < 10; round++) {
        double x[2 * D + 2 * N], E, fast, gradient[N], rate[2 * D + 2 * N];
        memcpy(x, c, sizeof c);
        memcpy(x + D + 2 * N, q, sizeof q);
        normals(&seed, 1, N, x + D);
        for (int i = 0; i < N; i++) x[D + N + i] = b[i] + 1.3 * x[D + i];
        CHECK_STATUS(
            env, cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.energy = &E, .rate = rate}));
        CHECK_STATUS(env, cgam_coupled_energy(gate, 3, 1.3, b, u, x + D, &fast, gradient));
        CHECK_CLOSE(E, fast + 0.5 * dot(D, c, c) + 0.5 * dot(D, q, q), 1e-12 * fabs(fast));
        for (int i = 0; i < N; i++)
            CHECK_CLOSE(rate[D + i], -gradient[i], 1e-12 * (1 + fabs(fast)));
    }
}

/* ---- flow and fixed points --------------------------------------------------------------------- */
static void recall_both(cgam_env *env, cgam_bank *bank, cgam_recall_opts o, const double *q,
                        const double *c, cgam_mode other, cgam_result *flow, cgam_result *fixed,
                        double *p, double *p2)
{
    cgam_recall *plan;
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    o.mode = CGAM_FLOW;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &(cgam_recall_out){.results = flow, .p = p}));
    cgam_recall_free(plan);
    o.mode = other;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &(cgam_recall_out){.results = fixed, .p = p2}));
    cgam_recall_free(plan);
}

TEST_ENV(the_flow_rests_at_the_coupled_fixed_point)
{
    uint64_t seed = 3;
    int compared = 0;
    for (int round = 0; round < 40; round++) {
        int64_t n = 5 + below(&seed, 60), d = 3 + below(&seed, 10);
        OWNED(cgam_bank) bank = random_bank(env, &seed, n, d, true);
        double q[16], c[16], p[80], p2[80];
        cgam_recall_opts o = cgam_recall_opts_default();
        cgam_result flow, fixed;
        o.alpha = 0.7 * uniform(&seed);
        o.beta = 0.5 + 3 * uniform(&seed);
        o.lambda = sqrt(2 * (1 - o.alpha) / o.beta) * 0.95 * uniform(&seed); /* unique: proved */
        o.tau_s = exp(normal(&seed));
        o.tau_r = exp(normal(&seed));
        o.t_max = 1000;
        normals(&seed, 1, d, q);
        normals(&seed, 1, d, c);
        recall_both(env, bank, o, q, c, CGAM_COUPLED, &flow, &fixed, p, p2);
        assert_int_equal(fixed.unique, 1);
        assert_int_equal(flow.end, CGAM_END_CONVERGED);
        CHECK_CLOSE_ALL(p, p2, n, 3e-8); /* steady to 1e-9, over 1 - contraction */
        assert_int_equal(flow.winner, fixed.winner);
        CHECK_LE(flow.energy_end, flow.energy_start);
        CHECK_LE(flow.energy_rise, 1e-9 * (1 + fabs(flow.energy_start)));
        assert_true(flow.time > 0 && flow.time < 1000);
        compared++;
    }
    assert_int_equal(compared, 40);
}

TEST_ENV(the_flow_gives_the_first_order_score_as_lambda_vanishes)
{
    uint64_t seed = 4;
    for (int round = 0; round < 10; round++) {
        OWNED(cgam_bank) bank = random_bank(env, &seed, 30, 8, true);
        double q[8], c[8], p[30], p2[30], before = INFINITY;
        normals(&seed, 1, 8, q);
        normals(&seed, 1, 8, c);
        for (double lambda = 1e-1; lambda > 5e-5; lambda /= 10) {
            cgam_recall_opts o = cgam_recall_opts_default();
            cgam_result flow, first;
            double apart = 0;
            o.alpha = 0.4;
            o.lambda = lambda;
            o.t_max = 1000;
            recall_both(env, bank, o, q, c, CGAM_FIRST, &flow, &first, p, p2);
            for (int i = 0; i < 30; i++) apart = fmax(apart, fabs(p[i] - p2[i]));
            /* feedback is lambda^2 A^-1 p, |A^-1| <= 1/(1 - alpha) */
            CHECK_LE(apart, lambda * lambda + 1e-8);
            CHECK_LE(apart, before);
            before = apart + 1e-8;
        }
    }
}

TEST_ENV(above_the_critical_penalty_the_theory_names_the_winner)
{
    uint64_t seed = 5;
    int named = 0;
    for (int round = 0; round < 30; round++) {
        enum { N = 8, D = 12, C = 3 };
        OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, true);
        OWNED(cgam_spectrum) spectrum = NULL;
        cgam_winner winner;
        CHECK_STATUS(env, cgam_spectrum_new(bank, &spectrum));
        double W[N * C], c[C], u[N] = {0}, q[D] = {0}, s[N];
        normals(&seed, 1, N * C, W);
        normals(&seed, 1, C, c);
        for (int i = 0; i < N; i++) u[i] = dot(C, W + i * C, c);
        double crit = cgam_spectrum_describe(spectrum).alpha_crit;
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_FLOW;
        o.alpha = 1.3 * crit;
        o.lambda = 0;
        o.W = W;
        o.d_c = C;
        o.t_max = 200;
        CHECK_STATUS(env, cgam_supercritical_winner(spectrum, o.alpha, u, NULL, &winner));
        cgam_recall *plan;
        cgam_result r;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        CHECK_STATUS(env, cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q, .c = c},
                                          &(cgam_recall_out){.results = &r, .s = s}));
        /* other modes may grow too, but the lowest outgrows them all */
        assert_true(r.end == CGAM_END_HORIZON || r.end == CGAM_END_DIVERGED);
        int64_t best = 0;
        for (int i = 1; i < N; i++)
            if (s[i] > s[best]) best = i;
        if (winner.index >= 0 && winner.gap > 1e-6) {
            named++;
            assert_int_equal(best, winner.index);
        }
        CHECK_LE(r.energy_end, r.energy_start);
        cgam_recall_free(plan);
        /* with a little coupling the retrieval follows its gates */
        o.lambda = 0.1;
        o.beta = 1;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        CHECK_STATUS(env, cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q, .c = c},
                                          &(cgam_recall_out){.results = &r, .s = s}));
        best = 0;
        for (int i = 1; i < N; i++)
            if (s[i] > s[best]) best = i;
        assert_int_equal(r.winner, best);
        cgam_recall_free(plan);
    }
    assert_true(named > 20);
}

/* lambda = 0: the gates alone have a closed form in time. */
TEST_ENV(gates_follow_their_closed_form)
{
    uint64_t seed = 6;
    enum { N = 15, D = 20 };
    for (int round = 0; round < 6; round++) {
        OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, round % 2);
        OWNED(cgam_spectrum) spectrum = NULL;
        CHECK_STATUS(env, cgam_spectrum_new(bank, &spectrum));
        double c[D], u[N], want[N], s[N], q[D] = {0}, size = 0;
        normals(&seed, 1, D, c);
        CHECK_STATUS(env, cgam_bank_score(bank, c, u));
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_FLOW;
        o.lambda = 0;
        o.alpha = (round < 3 ? 0.5 : 1.5) * cgam_spectrum_describe(spectrum).alpha_crit;
        o.tau_s = 0.7;
        o.t_max = 3;
        o.steady = 0;
        OWNED(cgam_recall) plan = NULL;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        CHECK_STATUS(env, cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q, .c = c},
                                          &(cgam_recall_out){.s = s}));
        CHECK_STATUS(env, cgam_spectrum_transient(spectrum, o.alpha, 0.7, 3, u, NULL, want));
        for (int i = 0; i < N; i++) size = fmax(size, fabs(want[i]));
        CHECK_CLOSE_ALL(s, want, N, 1e-8 * size);
    }
}

/* ---- free layers ------------------------------------------------------------------------------- */

/* The margin's sign is that of minus the leading eigenvalue of the (context, gates) network. */
TEST_ENV(a_free_context_is_stable_when_the_theory_says_so)
{
    uint64_t seed = 7;
    int stable = 0, unstable = 0;
    enum { N = 10, D = 8, C = 4 };
    for (int round = 0; round < 40; round++) {
        OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, true);
        double P[D * C], q[D] = {0}, c[C], x[C + 2 * N + D] = {0}, value;
        normals(&seed, 0.7 * uniform(&seed), D * C, P);
        normals(&seed, 1, C, c);
        cgam_recall_opts o = cgam_recall_opts_default();
        o.mode = CGAM_FLOW;
        o.alpha = 0.5 * uniform(&seed);
        o.lambda = 0;
        o.P = P;
        o.d_c = C;
        o.free_context = true;
        o.t_max = 1000;
        OWNED(cgam_recall) plan = NULL;
        cgam_result r;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        double margin = cgam_recall_context_margin(plan);
        CHECK_STATUS(env, cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q, .c = c},
                                          &(cgam_recall_out){.results = &r}));
        OWNED(cgam_net) net = NULL;
        cgam_memory_net_opts no = cgam_memory_net_opts_default();
        no.alpha = o.alpha;
        no.lambda = 0;
        no.P = P;
        no.d_c = C;
        CHECK_STATUS(env, cgam_memory_net_new(bank, &no, &net));
        cgam_eigen info;
        const bool clamped[] = {false, false, true, true};
        CHECK_STATUS(env, cgam_net_eigen(net, x, clamped, 1, 0, &value, &info));
        assert_true((margin > 0) == (value < 0));
        if (margin > 1e-2) {
            stable++;
            assert_int_equal(r.end, CGAM_END_CONVERGED);
        } else if (margin < -0.2) {
            unstable++;
            assert_int_not_equal(r.end, CGAM_END_CONVERGED);
        }
    }
    assert_true(stable > 5 && unstable > 5);
    /* unit memories and W = Z: never */
    OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, true);
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_recall *plan;
    o.mode = CGAM_FLOW;
    o.free_context = true;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    CHECK_LE(cgam_recall_context_margin(plan), 1e-12);
    cgam_recall_free(plan);
    o.alpha = 2;
    CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
    assert_true(cgam_recall_context_margin(plan) == -INFINITY);
    cgam_recall_free(plan);
}

/* A free query with lambda = 0 is a modern Hopfield network. */
TEST_ENV(a_free_query_settles_where_the_hopfield_network_does)
{
    uint64_t seed = 8;
    enum { N = 25, D = 10 };
    for (int round = 0; round < 10; round++) {
        OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, true);
        double q[D], xi[D], readout[D], change;
        normals(&seed, 1, D, q);
        cgam_recall_opts o = cgam_recall_opts_default();
        OWNED(cgam_recall) plan = NULL;
        cgam_result r;
        o.mode = CGAM_FLOW;
        o.lambda = 0;
        o.beta = 1; /* one fixed point */
        o.free_query = true;
        o.t_max = 1000;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        CHECK_STATUS(env, cgam_recall_run(plan, &(cgam_recall_in){.queries = 1, .q = q},
                                          &(cgam_recall_out){.results = &r, .readout = readout}));
        assert_int_equal(r.end, CGAM_END_CONVERGED);
        CHECK_STATUS(env, cgam_hopfield_settle(bank, 1, q, 1e-14, 100000, xi, NULL, &change));
        CHECK_CLOSE_ALL(readout, xi, D, 1e-8);
    }
}

TEST(queries_of_a_batch_have_the_bits_they_have_alone)
{
    uint64_t seed = 9;
    enum { N = 20, D = 6, B = 11 };
    for (int threads = 1; threads <= 2; threads++) {
        OWNED(cgam_env) env = NULL;
        cgam_env_opts eo = cgam_env_opts_default();
        eo.threads = threads;
        assert_int_equal(cgam_env_new(&eo, &env), CGAM_OK);
        OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, true);
        double q[B * D], c[B * D], p[B * N], one[N];
        normals(&seed, 1, B * D, q);
        normals(&seed, 1, B * D, c);
        cgam_recall_opts o = cgam_recall_opts_default();
        OWNED(cgam_recall) plan = NULL;
        o.mode = CGAM_FLOW;
        o.alpha = 0.4;
        CHECK_STATUS(env, cgam_recall_new(bank, &o, &plan));
        CHECK_STATUS(
            env,
            cgam_recall_run(plan, &(cgam_recall_in){.queries = B, .q = q, .c = c, .c_per_query = 1},
                            &(cgam_recall_out){.p = p}));
        for (int k = 0; k < B; k++) {
            CHECK_STATUS(env,
                         cgam_recall_run(
                             plan, &(cgam_recall_in){.queries = 1, .q = q + k * D, .c = c + k * D},
                             &(cgam_recall_out){.p = one}));
            assert_memory_equal(one, p + k * N, sizeof one);
        }
    }
}

/* ---- memories of one stage ---------------------------------------------------------------------- */
/* Visible units with memories behind them: settled for tau 0, else a layer of their own. */
static cgam_net *one_stage(cgam_env *env, const cgam_op *Z, const char *visible, double beta,
                           const char *hidden, double parameter, double tau)
{
    cgam_net *net;
    const cgam_lagr *behind = cgam_lagr_find(hidden);
    cgam_layer_opts front = cgam_layer_opts_default(), back = front;
    front.lagr = cgam_lagr_find(visible);
    front.param[0] = beta;
    CHECK_STATUS(env, cgam_net_new(env, &net));
    CHECK_STATUS(env, cgam_net_add_layer(net, "visible", 1, &Z->cols, &front, NULL));
    if (tau == 0) {
        CHECK_STATUS(env, cgam_net_add_hidden(net, "memories", 0, Z, behind, &parameter, 1));
        return net;
    }
    back.lagr = behind;
    back.param[0] = parameter;
    back.tau = tau;
    CHECK_STATUS(env, cgam_net_add_layer(net, "hidden", 1, &Z->rows, &back, NULL));
    CHECK_STATUS(env, cgam_net_add_bilinear(net, "memories", 1, 0, Z, 1));
    return net;
}

TEST_ENV(the_modern_hopfield_network_is_an_instance)
{
    uint64_t seed = 10;
    enum { N = 30, D = 7 };
    for (int round = 0; round < 10; round++) {
        OWNED(cgam_bank) bank = random_bank(env, &seed, N, D, round % 2);
        double beta = 0.5 + 4 * uniform(&seed), M = cgam_bank_describe(bank).norm_max;
        const cgam_op Z = cgam_bank_op(bank);
        OWNED(cgam_net) settled = one_stage(env, &Z, "identity", NAN, "softmax", beta, 0);
        OWNED(cgam_net) layered = one_stage(env, &Z, "identity", NAN, "softmax", beta, 1e-4);
        double xi[D], next[D], fast, E, h[D + N];
        normals(&seed, 1, D, xi);
        CHECK_STATUS(env, cgam_hopfield_energy(bank, beta, xi, &fast));
        double constant = log(N) / beta + 0.5 * M * M;
        CHECK_STATUS(env, cgam_net_eval(settled, 1, xi, NULL, &(cgam_net_values){.energy = &E}));
        CHECK_CLOSE(E + constant, fast, 1e-13 * (1 + fabs(fast)));
        /* the layered one agrees where its hidden layer has settled, h = Z xi */
        memcpy(h, xi, sizeof xi);
        CHECK_STATUS(env, cgam_bank_score(bank, xi, h + D));
        CHECK_STATUS(env, cgam_net_eval(layered, 1, h, NULL, &(cgam_net_values){.energy = &E}));
        CHECK_CLOSE(E + constant, fast, 1e-13 * (1 + fabs(fast)));
        /* a step of length 1 is the update */
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = CGAM_FLOW_EULER;
        f.step = f.t_end = 1;
        double x[D];
        memcpy(x, xi, sizeof x);
        CHECK_STATUS(env, cgam_flow_run(settled, 1, x, &f, &r));
        CHECK_STATUS(env, cgam_hopfield_update(bank, beta, xi, next));
        CHECK_CLOSE_ALL(x, next, D, 1e-14);
        /* and the flow ends where the iteration ends, if it starts in the same valley */
        f = cgam_flow_opts_default();
        f.rtol = 1e-10;
        f.atol = 1e-12;
        f.t_end = 1000;
        double change, end[D];
        int64_t nearest = 0;
        CHECK_STATUS(env, cgam_bank_row(bank, nearest, x));
        CHECK_STATUS(env, cgam_hopfield_settle(bank, beta, x, 1e-13, 100000, end, NULL, &change));
        for (int j = 0; j < D; j++) x[j] = h[j] = end[j] + 1e-3 * normal(&seed);
        CHECK_STATUS(env, cgam_bank_score(bank, x, h + D));
        CHECK_STATUS(env, cgam_flow_run(settled, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_STEADY);
        CHECK_CLOSE_ALL(x, end, D, 1e-7);
        CHECK_STATUS(env, cgam_flow_run(layered, 1, h, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_STEADY);
        CHECK_CLOSE_ALL(h, end, D, 1e-7);
    }
}

TEST_ENV(the_dense_associative_memory_is_an_instance)
{
    uint64_t seed = 11;
    enum { N = 12, D = 40 };
    for (int power = 2; power <= 4; power++) {
        double signs[N * D], v[D], next[D], fast, E, h[D + N], a[D];
        OWNED(cgam_bank) bank = NULL;
        for (int i = 0; i < N * D; i++) signs[i] = below(&seed, 2) ? 1 : -1;
        CHECK_STATUS(env, cgam_bank_new(env, signs, CGAM_F64, N, D, NULL, &bank));
        double beta = 0.05;
        const cgam_op Z = cgam_bank_op(bank);
        OWNED(cgam_net) settled = one_stage(env, &Z, "tanh", beta, "power", power, 0);
        OWNED(cgam_net) layered = one_stage(env, &Z, "tanh", beta, "power", power, 1e-3);
        normals(&seed, 10, D, v);
        CHECK_STATUS(env, cgam_dense_energy(bank, beta, power, v, &fast));
        CHECK_STATUS(env, cgam_net_eval(settled, 1, v, NULL, &(cgam_net_values){.energy = &E}));
        CHECK_CLOSE(E, fast, 1e-12 * (1 + fabs(fast)));
        for (int j = 0; j < D; j++) a[j] = tanh(beta * v[j]);
        memcpy(h, v, sizeof v);
        CHECK_STATUS(env, cgam_bank_score(bank, a, h + D));
        CHECK_STATUS(env, cgam_net_eval(layered, 1, h, NULL, &(cgam_net_values){.energy = &E}));
        CHECK_CLOSE(E, fast, 1e-12 * (1 + fabs(fast)));
        cgam_flow_opts f = cgam_flow_opts_default();
        cgam_flow_report r;
        f.method = CGAM_FLOW_EULER;
        f.step = f.t_end = 1;
        double x[D];
        memcpy(x, v, sizeof x);
        CHECK_STATUS(env, cgam_flow_run(settled, 1, x, &f, &r));
        CHECK_STATUS(env, cgam_dense_update(bank, beta, power, v, next));
        CHECK_CLOSE_ALL(x, next, D, 1e-11 * pow(D, power - 1));
        /* a corrupted memory is recalled: the flow's signs are the memory's */
        for (int j = 0; j < D; j++) x[j] = (j < 6 ? -1 : 1) * signs[j] * 20;
        double end[D], before, after;
        memcpy(end, x, sizeof end);
        for (int k = 0; k < 200; k++) {
            CHECK_STATUS(env, cgam_dense_energy(bank, beta, power, end, &before));
            CHECK_STATUS(env, cgam_dense_update(bank, beta, power, end, end));
            CHECK_STATUS(env, cgam_dense_energy(bank, beta, power, end, &after));
            CHECK_LE(after, before + 1e-9 * fabs(before));
        }
        f = cgam_flow_opts_default();
        CHECK_STATUS(env, cgam_flow_run(settled, 1, x, &f, &r));
        assert_int_equal(r.end, CGAM_FLOW_STEADY);
        CHECK_LE(r.energy_end, r.energy_start);
        if (power > 2)
            for (int j = 0; j < D; j++) assert_true(x[j] * signs[j] > 0);
        for (int j = 0; j < D; j++) CHECK_CLOSE(x[j] / end[j], 1, 1e-6);
    }
}

/* ---- allocations -------------------------------------------------------------------------------- */
static int flowing_recall(cgam_env *env, void *arg)
{
    (void)arg;
    static const double Z[6] = {1, 0, 0, 1, 0.6, 0.8}, q[4] = {1, 0.2, 0, 1}, c[2] = {0.1, 1};
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_result r[2];
    cgam_recall_opts o = cgam_recall_opts_default();
    double P[4] = {0.2, 0, 0, 0.3};
    o.mode = CGAM_FLOW;
    o.alpha = 0.3;
    o.t_max = 1;
    o.P = P;
    o.d_c = 2;
    o.free_context = o.free_query = true;
    TRY(cgam_bank_new(env, Z, CGAM_F64, 3, 2, NULL, &bank));
    TRY(cgam_recall_new(bank, &o, &plan));
    TRY(cgam_recall_run(plan, &(cgam_recall_in){.queries = 2, .q = q, .c = c},
                        &(cgam_recall_out){.results = r}));
    return CGAM_OK;
}

TEST(every_failed_allocation_comes_back)
{
    assert_true(check_every_allocation(flowing_recall, NULL) > 60);
}
