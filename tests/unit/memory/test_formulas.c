/* Certificates: each is what it was (tests/pinned), at doubts so large that every term of the formulas of
 * docs/theorems/rounding.md shows. A query is made by hand: gates that are a little off, scores that are not b + lambda s. That
 * certificates are true is decided by tests/rigour. */
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"
#include "support/one_env.h"
#include "support/pinned.h"

#include <cgam/theory.h>

#define U 0x1p-53
enum { N = 4, D = 5 };
static const double NEAR = 1e-4; /* the slack of bounds, and what rounding does to these queries */

static cgam_bank *bank;
static cgam_gate *gate; /* that knows eta_min, whatever a plan would ask for */
static cgam_recall *plan;
static const double *Z;

static void plan_of(const cgam_recall_opts *opts)
{
    static double rows[N * D];
    cgam_rng rng = cgam_rng_stream(41, 0);
    double *drawn = dense_bank(&rng, DENSE_NORMS, N, D);
    memcpy(rows, drawn, sizeof rows);
    Z = rows;
    bank = object_bank(env, N, D, rows);
    cgam_recall_opts o = *opts;
    const cgam_gate_opts full = {.effort = CGAM_EFFORT_FULL, .coupled = true};
    CHECK_STATUS(env, cgam_gate_new(bank, o.alpha, &full, &gate));
    o.gate = gate;
    plan = object_recall(env, bank, &o);
}

static void plan_done(void)
{
    cgam_recall_free(plan);
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    dense_reset();
}

/* ---- What comes free -------------------------------------------------------------------------- */

#define PIN_BOUNDS(x)                                                                              \
    do {                                                                                           \
        PIN((x).p_lower_bound, NEAR);                                                              \
        PIN((x).contraction, 1e-9);                                                                \
        PIN((x).local_contraction, 1e-9);                                                          \
        PIN((x).fold_margin, 1e-9);                                                                \
    } while (0)

TEST(free_bounds_are_what_they_were)
{
    for (int k = 0; k < 6; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 2, k == 5 ? 3 : 0.5);
        if (k == 4) o.none = true, o.mode = CGAM_FIRST;
        plan_of(&o);
        double spread = k == 1 ? 0.24 : 0.07, largest = k == 2 ? 0.1 : 0.9;
        cgam_doubt doubt = {.scores = 0.01, .weights = k == 3 ? 1.5 : 0.02, .sum = 0.003};
        cgam_result out = {.gap = k == 1 ? -0.4 : 0.8};
        cgam_bound_freely(plan, spread, largest, &doubt, &out);
        PIN_BOUNDS(out);
        assert_true(out.p_lower_bound_proved && out.contraction_proved);
        assert_true(out.local_contraction_proved && out.fold_margin_proved && !out.exact);
        assert_int_equal(out.unique, k == 5 ? -1 : 1);
        assert_int_equal(out.unique_proved, k != 5);
        doubt.scores = INFINITY; /* of scores neither: an estimate is left as it was */
        out.p_lower_bound = 0.125;
        cgam_bound_freely(plan, spread, largest, &doubt, &out);
        assert_true(out.p_lower_bound == 0.125 && !out.p_lower_bound_proved);
        plan_done();
    }
}

/* Next to a clear winner, and far from one, rounding costs 16 u of what is there. */
TEST(a_share_is_lowered_by_its_rounding)
{
    cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 1, 0);
    plan_of(&o);
    for (int k = 0; k < 4; k++) {
        double gap = k == 0 ? 30 : k == 1 ? -30 : k == 2 ? log(3) : -600;
        cgam_doubt doubt = {.weights = 0};
        cgam_result out = {.gap = gap};
        cgam_bound_freely(plan, 0, 1, &doubt, &out);
        long double x = logl(3) - gap, p = 1 / (1 + expl(x));
        double slope = (double)(p * (1 - p)); /* of p by x */
        double off = 16 * U * (1 + (double)fabsl(x) + fabs(gap)) * slope +
                     (16 + 2 * fmax((double)x, 0)) * U * (double)p;
        double got = (double)(p - (long double)out.p_lower_bound);
        CHECK_LE(got, 1.1 * off + 3 * U * (double)p);
        CHECK_LE(0.9 * off - 3 * U * (double)p, got);
    }
    plan_done();
}

TEST(entmax_has_its_own)
{
    cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 2, 0.5);
    o.entmax = 1.5;
    plan_of(&o);
    cgam_doubt doubt = {.scores = 0.01, .weights = 0.02, .sum = 0.003};
    cgam_result out = {.gap = 0.4};
    cgam_bound_freely(plan, 0.1, 0.9, &doubt, &out);
    PIN_BOUNDS(out);
    assert_false(out.exact);
    out.gap = 1.03; /* 1 from a gap of 1 / ((A - 1) beta) = 1 on, doubts of both scores on top */
    cgam_bound_freely(plan, 0.1, 0.9, &doubt, &out);
    assert_true(out.exact && out.p_lower_bound == 1);
    out.gap = 1.01;
    cgam_bound_freely(plan, 0.1, 0.9, &doubt, &out);
    assert_true(!out.exact && out.p_lower_bound < 1 && out.p_lower_bound > 0.9);
    plan_done();
}

/* Shares of weights that are known in part: of a memory and of the ghost, from both sides. */
TEST(shares_are_what_they_were)
{
    for (int k = 0; k < 16; k++) {
        bool none = k & 1, ghost = k & 2, wide = k & 4, ahead = k & 8;
        cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 2, 0);
        o.none = none;
        o.none_score = ahead ? 1.5 : 0.5;
        if (ghost && !none) continue;
        plan_of(&o);
        cgam_weight_bounds x = {.top = 1, .known = 2.5, .scored = 3};
        if (wide) x.low = 0.3, x.high = 0.4, x.off = 0.01;
        double r = ghost ? o.none_score : 0.75, share[2];
        cgam_weight_bounds_share(plan, &x, r, ghost, share);
        if (wide) {
            PIN(share[0], 1e-7);
            PIN(share[1], 1e-7);
        } else { /* rounding alone, of which 16 u or so are its own */
            double w = exp(2 * (r - 1)), rest = none ? exp(2 * (o.none_score - 1)) : 0;
            double exact = w / (w + (ghost ? 2.5 : 2.5 - w + rest));
            PIN(exact - share[0], 5e-3);
            PIN(share[1] - exact, 5e-3);
        }
        plan_done();
    }
    cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 2, 0);
    plan_of(&o);
    double share[2];
    cgam_weight_bounds alone = {.top = 1, .known = 1, .scored = 1}, lost = alone;
    cgam_weight_bounds_share(plan, &alone, 1, false, share);
    assert_true(share[1] == 1 && share[0] > 1 - 1e-11 && share[0] < 1);
    lost.off = INFINITY; /* of which nothing is known */
    cgam_weight_bounds_share(plan, &lost, 1, false, share);
    assert_true(share[0] == 0 && share[1] == 1);
    cgam_weight_bounds_share(plan, &alone, -400, false, share); /* e^-802, and nothing */
    assert_true(share[0] == 0 && share[1] > 0 && share[1] < 1e-290);
    plan_done();
}

/* Entropy, participation, rank and gaps with a ghost among the rivals: numbers of three weights. */
TEST(the_ghost_counts_as_a_rival)
{
    static const double rows[] = {1, 0, 0, 1}, q[] = {1, 0.5}, ghosts[] = {0.75, 2, -1, -1e9};
    bank = object_bank(env, 2, 2, rows);
    for (int k = 0; k < 16; k++) {
        cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 2, 0);
        o.none = true;
        o.none_score = ghosts[k / 2 % 4];
        double x[] = {1, 0.5, o.none_score}, sum = 0, entropy = 0, squares = 0, p[3];
        for (int i = 0; i < 3; i++) sum += exp(2 * x[i]);
        for (int i = 0; i < 3; i++) {
            p[i] = exp(2 * x[i]) / sum;
            entropy -= p[i] > 0 ? p[i] * log(p[i]) : 0;
            squares += p[i] * p[i];
        }
        cgam_result got;
        double weights[2]; /* with which all vectors are made */
        int64_t target = 1, focus = k % 2 ? 1 : x[2] > 1 ? 2 : 0;
        cgam_recall *of = object_recall(env, bank, &o);
        cgam_recall_in in = {.queries = 1, .q = q, .target = k % 2 ? &target : NULL};
        cgam_recall_out out = {.results = &got, .p = k / 8 ? weights : NULL};
        CHECK_STATUS(env, cgam_recall_run(of, &in, &out));
        CHECK_REL(got.neff_entropy, exp(entropy), 1e-13);
        CHECK_REL(got.neff_ipr, 1 / squares, 1e-13);
        CHECK_REL(got.p_none, p[2], 1e-13);
        CHECK_REL(got.p, p[focus], 1e-13);
        CHECK_REL(got.log_p, log(p[focus]), 1e-13);
        double best = focus == 2 ? 1 : fmax(focus ? x[0] : x[1], x[2]);
        CHECK_CLOSE(got.gap, x[focus] - best, 1e-15);
        if (focus < 2) assert_int_equal(got.focus_rank, focus + (x[2] > x[focus]));
        assert_int_equal(got.winner, x[2] > 1 ? -1 : 0);
        cgam_recall_free(of);
    }
    cgam_bank_free(bank);
}

/* ---- A query by hand -------------------------------------------------------------------------- */

typedef struct made {
    cgam_settled m;
    cgam_doubt doubt;
    cgam_result out;
    double *u, *A;
} made;

/* Gates `away` from those of the fixed point, scores `tilt` away from b + lambda s. */
static made query(double away, double tilt)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_rng rng = cgam_rng_stream(42, 0);
    double *q = dense_normals(&rng, D, 1), *c = dense_normals(&rng, D, 1), *b = dense_room(N);
    made x = {.m = {.in = {.q = q, .c = c, .b = b}, .trace = {.change_norm = 1e-9, .rate = 0.5}},
              .u = dense_room(N)};
    cgam_settled *m = &x.m;
    double *start = dense_room(N), *push = dense_room(N), *s0 = dense_room(N), *a = dense_room(N);
    m->in.s0 = s0;
    m->in.a = a;
    m->s = dense_room(N);
    m->r = dense_room(N);
    m->p = dense_room(N);
    x.A = dense_gate(N, D, Z, o->alpha);
    dense_score(N, D, Z, q, b);
    dense_score(N, D, Z, c, x.u);
    const long double *inverse = dense_inverse(N, x.A);
    if (o->entmax > 0)
        dense_coupled_entmax(N, o->entmax, inverse, o->beta, o->lambda, b, x.u, NULL, 1e-18, 100000,
                             start);
    else dense_coupled(N, inverse, o->beta, o->lambda, b, x.u, NULL, 1e-18, 100000, start);
    dense_solve(N, x.A, x.u, s0);
    for (int i = 0; i < N; i++) push[i] = x.u[i] + o->lambda * start[i];
    dense_solve(N, x.A, push, m->s);
    for (int i = 0; i < N; i++) {
        m->s[i] += away * (i % 2 ? 1 : -0.5);
        a[i] = b[i] + o->lambda * s0[i];
        m->r[i] = b[i] + o->lambda * m->s[i] + tilt * (i == 1);
    }
    cgam_activate(plan, m->r, m->p, &m->act);
    m->trace.end = x.out.end = CGAM_END_CONVERGED;
    m->in.s0_off = m->feedback = (cgam_gates_off){0, 0};
    x.out.focus = 0;
    for (int i = 1; i < N; i++)
        if (m->r[i] > m->r[x.out.focus]) x.out.focus = i;
    x.out.gap = INFINITY;
    for (int i = 0; i < N; i++)
        if (i != x.out.focus) x.out.gap = fmin(x.out.gap, m->r[x.out.focus] - m->r[i]);
    CHECK_STATUS(env, cgam_doubt_measure(plan, m, true, false, &x.doubt));
    return x;
}

TEST(errors_are_what_they_were)
{
    static const double lambdas[] = {0.3, 0.8, 1.6, 0, 0.8, 0.8};
    static const double betas[] = {1.5, 1.5, 1.5, 1.5, 8, 8};
    int basins = 0, none = 0; /* proved by the basin lemma, and not at all */
    for (int k = 0; k < 6; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, betas[k], lambdas[k]);
        plan_of(&o);
        made x = query(k == 5 ? 0.1 : 1e-4, 1e-5); /* too far from anything */
        CHECK_LE(0.9e-4, x.doubt.gradient);
        cgam_result out = x.out;
        CHECK_STATUS(env, cgam_settled_bounds(plan, &x.m, &out));
        basins += out.p_error_proved && out.unique != 1;
        none += !out.p_error_proved;
        PIN(out.p_error_proved, 0);
        PIN(out.p_error, NEAR);
        PIN(out.p_lower_bound, NEAR);
        out = x.out; /* not after so far a way */
        x.m.trace.end = CGAM_END_DIVERGED;
        CHECK_STATUS(env, cgam_settled_bounds(plan, &x.m, &out));
        assert_true(isnan(out.p_error) && isnan(out.p_lower_bound) && isnan(out.contraction));
        assert_true(out.unique == -1 && !out.p_error_proved);
        plan_done();
    }
    assert_true(basins > 0 && none > 0);
}

static bool stays(made *x)
{
    cgam_result out = x->out;
    CHECK_STATUS(env, cgam_settled_bounds(plan, &x->m, &out));
    return out.end == CGAM_END_CONVERGED;
}

TEST(what_still_moves_has_not_converged)
{
    for (int k = 0; k < 3; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 1.5, k == 1 ? 1.6 : 0.5);
        double away = k == 2 ? 1e-7 : 1e-4;
        for (int moved = 0; moved < 2; moved++) {
            plan_of(&o);
            made x = query(away, 0);
            double L = fmax(1, o.lambda * o.lambda * o.beta / (2 * plan->gate->info.eta_min));
            if (k == 1) assert_true(L > 1.5);
            o.tol = x.doubt.moves / (2 * L) * (moved ? 1 - 1e-3 : 1 + 1e-3);
            if (k == 2) o.tol = 1e-12; /* a millionth will do */
            if (k == 2) CHECK_LE(1e-9, x.doubt.moves);
            plan->opts.tol = o.tol;
            assert_int_equal(stays(&x), k == 2 || !moved);
            plan_done();
        }
    }
}

/* By how much the energy may seem to rise: the largest that leaves it converged, found by halving. */
static double allowed_rise(made *x)
{
    double low = 0, high = 1e300;
    while (high > low * (1 + 1e-9) && high > 1e-300) {
        const double middle = low > 0 ? sqrt(low) * sqrt(high) : 1e-6 * high;
        x->m.trace.energy_rise = middle;
        *(stays(x) ? &low : &high) = middle;
    }
    return low;
}

TEST(energies_rise_by_what_they_did)
{
    for (int k = 0; k < 8; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, k < 6 ? 1.5 : 40, k < 6 ? 0.7 : 0.1);
        plan_of(&o);
        made x = query(0, 0);
        x.m.in.half_us0 = k % 2 ? -1e9 : -0.7;
        x.m.trace.streamed = k / 2 == 1 ? 1e-9 : k / 2 == 3 ? 3e-3 : 0;
        if (k / 2 == 2) x.m.trace.newton_steps = 1000;
        if (k == 0) x.m.act.lse *= -1e5;
        if (k == 6) x.m.trace.streamed = 0.1; /* 2 beta rho > 1 */
        PIN(allowed_rise(&x), 1e-3);
        x.m.trace.energy_rise = 0;
        x.m.trace.energy_end = INFINITY;
        assert_false(stays(&x));
        plan_done();
    }
}

/* Those that went together in f32 may rise by 2^-40 of the feedback a step more. */
TEST(energies_of_queries_together_may_rise_more)
{
    cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 1.5, 0.7);
    plan_of(&o);
    made x = query(0, 0);
    x.m.together = true;
    x.m.trace.change_norm = 0;
    x.m.in.half_us0 = 100;
    double rises[2];
    for (int many = 0; many < 2; many++) {
        x.m.trace.iterations = many ? 1000000 : 0;
        rises[many] = allowed_rise(&x);
    }
    double eta = plan->gate->info.eta_min;
    CHECK_REL(rises[1] - rises[0], 1e6 * 0x1p-40 * 0.49 / eta, 1e-4);
    plan_done();
}

/* Eigenvalues with certify hold for every p that the scores leave open. */
TEST(certified_values_leave_room_for_doubt)
{
    for (int k = 0; k < 3; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 1.5, k ? 1.6 : 0.7);
        o.certify = true;
        plan_of(&o);
        made x = query(0, k == 2 ? 0 : 1e-3);
        cgam_result out = x.out;
        double margin, local;
        bool proved;
        CHECK_STATUS(env, cgam_fold_margin(plan->gate, o.beta, o.lambda, x.m.p, &margin, &proved));
        CHECK_STATUS(env,
                     cgam_contraction_local(plan->gate, o.beta, o.lambda, x.m.p, &local, &proved));
        CHECK_STATUS(env, cgam_settled_bounds(plan, &x.m, &out));
        double eta = plan->gate->info.eta_min, l2b = o.lambda * o.lambda * o.beta;
        double more = expm1(x.doubt.weights);
        assert_int_equal(out.fold_margin_exact, k == 2);
        if (k < 2) {
            CHECK_LE(1e-3, more);
            PIN(out.local_contraction, 2e-8);
            PIN(out.fold_margin, 2e-8);
        } else { /* what pi may be away from 1 in all, n 2^-51, where little else is but the way to p* */
            CHECK_CLOSE(margin - out.fold_margin, (N * 0x1p-51 + 3 * out.p_error) * l2b, 2.5e-15);
            CHECK_CLOSE(out.local_contraction - local, N * 0x1p-51 * l2b / eta, 2.5e-15);
        }
        plan_done();
    }
}

/* Entmax lands on one memory where its margin covers the way to the fixed point. */
TEST(entmax_lands_within_its_margin)
{
    for (int k = 0; k < 2; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 40, 0.1);
        o.entmax = 2;
        plan_of(&o);
        made x = query(1e-4, 0);
        assert_true(x.m.p[x.out.focus] == 1);
        double away = x.doubt.gradient / plan->gate->info.eta_min;
        double least = 1 / 40.0 + 2 * (x.doubt.scores + 0.1 * away);
        x.out.gap = least * (k ? 1 + 1e-5 : 1 - 1e-5);
        cgam_result out = x.out;
        CHECK_STATUS(env, cgam_settled_bounds(plan, &x.m, &out));
        assert_int_equal(out.exact, k);
        if (k) CHECK_REL(out.p_error, x.doubt.p, NEAR);
        else CHECK_LE(1e-4, out.p_error);
        plan_done();
    }
}

/* Scores of whole numbers have their margin exactly: beta (A - 1) gap = 1, where rounding would hide it. */
TEST(a_margin_may_be_touched_exactly)
{
    static const double rows[] = {3, 1, 2, 1, 1, 1, 0, 0}, q[] = {1, 0}, c[] = {0, 1};
    static const double P[] = {2, 0, 0, 2};
    for (int k = 0; k < 10; k++) {
        cgam_recall_opts o = object_opts(CGAM_FIRST, 0, k == 1 ? 1 - 0x1p-50 : 1,
                                         k == 2 ? 0.1 : 2); /* 3 + 0.1 rounds */
        o.entmax = 2;
        double other[8];
        memcpy(other, rows, sizeof other);
        if (k == 3) other[2] = 0.1; /* no whole number, but far away */
        if (k == 4) other[2] = 2 + 0x1p-51;
        if (k == 5) other[3] = 1 + 0x1p-40;
        if (k == 6) o.alpha = 0.001;                  /* gates that are solved for */
        if (k == 8) o.P = P, o.d_c = 2, o.lambda = 1; /* the same scores, by products that are */
        if (k == 9) o.W = other, o.d_c = 2;           /* not looked at */
        bank = object_bank(env, 4, 2, other);
        cgam_result got;
        CHECK_STATUS(env, cgam_recall_once(bank, q, k == 7 ? NULL : c, &o, &got));
        assert_int_equal(got.winner, 0);
        assert_int_equal(got.exact, k == 0 || k == 3 || k == 7);
        assert_int_equal(got.p_lower_bound == 1, got.exact);
        cgam_bank_free(bank);
    }
}

TEST_GROUP(set_up, tear_down)
