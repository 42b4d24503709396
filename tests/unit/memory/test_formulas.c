/* Certificates, number by number: the formulas of docs/theorems/rounding.md written down once more, at doubts so large that every
 * term of them shows. A query is made by hand: gates that are a little off, scores that are not b + lambda s. */
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"
#include "support/one_env.h"

#include <cgam/theory.h>

#include "support/owned.h"

#define U 0x1p-53
enum { N = 4, D = 5 };
static const double NEAR = 1e-4; /* the slack of bounds, and what rounding does to these queries */

static cgam_bank *bank;
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
    plan = object_recall(env, bank, opts);
}

static void plan_done(void)
{
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    dense_reset();
}

/* ---- What comes free -------------------------------------------------------------------------- */

static double share_below(double rivals, double beta, double gap)
{
    return 1 / (1 + rivals * exp(-beta * gap));
}

TEST(free_bounds_are_their_formulas)
{
    for (int k = 0; k < 6; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, 2, k == 5 ? 3 : 0.5);
        if (k == 4) o.none = true, o.mode = CGAM_FIRST;
        plan_of(&o);
        double eta = plan->gate->info.eta_min, l2b = o.lambda * o.lambda * o.beta;
        double spread = k == 1 ? 0.24 : 0.07, largest = k == 2 ? 0.1 : 0.9;
        cgam_doubt doubt = {.scores = 0.01, .weights = k == 3 ? 1.5 : 0.02, .sum = 0.003};
        cgam_result out = {.gap = k == 1 ? -0.4 : 0.8};
        cgam_bound_freely(plan, spread, largest, &doubt, &out);
        double rows = fmin(2 * (spread + 0.003) * exp(0.02), 0.5);
        double least = fmin(rows, largest * exp(0.02));
        if (k == 3) rows = least = 0.5; /* of p nothing is known */
        CHECK_REL(out.p_lower_bound, share_below(k == 4 ? N : N - 1, 2, out.gap - 0.02), NEAR);
        CHECK_REL(out.contraction, l2b / (2 * eta), 1e-12);
        CHECK_REL(out.local_contraction, l2b * least / eta, 1e-9);
        CHECK_REL(out.fold_margin, eta - l2b * rows, 1e-9);
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
    double eta = plan->gate->info.eta_min;
    cgam_doubt doubt = {.scores = 0.01, .weights = 0.02, .sum = 0.003};
    cgam_result out = {.gap = 0.4};
    cgam_bound_freely(plan, 0.1, 0.9, &doubt, &out);
    CHECK_REL(out.p_lower_bound, cgam_margin_bound(N, 1.5, 2, 0.4 - 0.02), 1e-6);
    CHECK_REL(out.contraction, 0.5 / eta, 1e-12);
    CHECK_REL(out.local_contraction, 0.5 / eta, 1e-9);
    CHECK_REL(out.fold_margin, eta - 0.5, 1e-9);
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
TEST(shares_are_their_formulas)
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
        /* all weights over e^(beta top), top = 1 */
        double w = exp(2 * (r - 1)), rest = none ? exp(2 * (o.none_score - 1)) : 0;
        double others = ghost ? 2.5 : 2.5 - w + rest, exps = 4096 * U;
        double doubt = ((3 + 64) * U + exps) * 2.5, many = (N + 64) * U;
        double up = exp(2 * x.off) * (1 + 2 * exps);
        double most = (others + doubt + x.high * (1 + many)) * up;
        double least = (others - doubt + x.low * (1 - many)) / up;
        double from = w / up / (w / up + most), to = w * up / (w * up + least);
        double exact = w / (w + others);
        if (wide) {
            CHECK_REL(share[0], from, 1e-7);
            CHECK_REL(share[1], to, 1e-7);
        } else { /* rounding alone, of which 16 u or so are its own */
            CHECK_REL(exact - share[0], exact - from, 5e-3);
            CHECK_REL(share[1] - exact, to - exact, 5e-3);
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
        OWNED(cgam_recall) of = object_recall(env, bank, &o);
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

TEST(errors_are_their_formulas)
{
    static const double lambdas[] = {0.3, 0.8, 1.6, 0, 0.8, 0.8};
    static const double betas[] = {1.5, 1.5, 1.5, 1.5, 8, 8};
    int basins = 0, none = 0;
    for (int k = 0; k < 6; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, betas[k], lambdas[k]);
        plan_of(&o);
        double eta = plan->gate->info.eta_min, l2b = o.lambda * o.lambda * o.beta;
        made x = query(k == 5 ? 0.1 : 1e-4, 1e-5); /* too far from anything */
        double g = x.doubt.gradient, L = l2b / (2 * eta), gates = INFINITY;
        CHECK_LE(0.9e-4, g);
        cgam_result out = x.out;
        CHECK_STATUS(env, cgam_settled_bounds(plan, &x.m, &out));
        double local = out.local_contraction;
        if (L < 1) gates = g / (eta * (1 - L));
        double basin = local < 1 && o.lambda > 0 ? 2 * g / (eta * (1 - local)) : INFINITY;
        if (isfinite(basin) &&
            cgam_basin_radius(o.beta, o.lambda, eta, local) > 4 * g / sqrt(eta) / (1 - local))
            gates = fmin(gates, basin);
        basins += isfinite(gates) && !(L < 1);
        assert_int_equal(out.p_error_proved, isfinite(gates));
        if (isfinite(gates) || o.lambda == 0) {
            double far = o.lambda > 0 ? gates : 0;
            CHECK_REL(out.p_error, 0.5 * o.beta * o.lambda * far + x.doubt.p, NEAR);
            double off = 2 * (x.doubt.scores + o.lambda * far);
            CHECK_REL(out.p_lower_bound, share_below(N - 1, o.beta, out.gap - off), NEAR);
        } else { /* by what the last steps were like */
            CHECK_REL(out.p_error, 1e-9 + x.doubt.p, 1e-12);
            none++;
        }
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

/* By how much the energy may seem to rise. */
TEST(energies_rise_by_their_formula)
{
    for (int k = 0; k < 8; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.05, k < 6 ? 1.5 : 40, k < 6 ? 0.7 : 0.1);
        plan_of(&o);
        double eta = plan->gate->info.eta_min, lambda2 = o.lambda * o.lambda;
        made x = query(0, 0);
        double half = k % 2 ? 1e9 : 0.7, streamed = k / 2 == 1 ? 1e-9 : k / 2 == 3 ? 3e-3 : 0;
        x.m.in.half_us0 = -half;
        x.m.trace.streamed = streamed;
        if (k / 2 == 2) x.m.trace.newton_steps = 1000;
        if (k == 0) x.m.act.lse *= -1e5;
        if (k == 6) x.m.trace.streamed = streamed = 0.1; /* 2 beta rho > 1 */
        double rho = x.doubt.step + streamed, feedback = lambda2 / eta;
        double lse = fabs(x.m.act.lse) / o.beta + 1.5 * feedback;
        double epsilon = 2 * o.beta * rho > 1 ? sqrt(2) : x.doubt.p + expm1(2 * o.beta * rho);
        double terms = x.doubt.sum / o.beta + (12 * log(N) + 16) * U / o.beta +
                       U * (8 * lse + 4 * half) + (N + 16) * U * (feedback + rho);
        double newton = 8 * U * (double)x.m.trace.newton_steps * (half + feedback + 2 * lse);
        double rise = 3 * rho + 0.5 * epsilon * epsilon * feedback + 2 * terms + newton;
        rise = fmin(rise, 1e-6 * (half + (fabs(x.m.act.lse) + 1) / o.beta));
        x.m.trace.energy_rise = rise * (1 - 1e-3);
        assert_true(stays(&x));
        x.m.trace.energy_rise = rise * (1 + 1e-3);
        assert_false(stays(&x));
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
        double low = 0, high = 1;
        x.m.trace.iterations = many ? 1000000 : 0;
        for (int step = 0; step < 80; step++) {
            double middle = 0.5 * (low + high);
            x.m.trace.energy_rise = middle;
            if (stays(&x)) low = middle;
            else high = middle;
        }
        rises[many] = low;
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
        double eta = plan->gate->info.eta_min, l2b = o.lambda * o.lambda * o.beta, margin, local;
        bool proved;
        CHECK_STATUS(env, cgam_fold_margin(plan->gate, o.beta, o.lambda, x.m.p, &margin, &proved));
        CHECK_STATUS(env,
                     cgam_contraction_local(plan->gate, o.beta, o.lambda, x.m.p, &local, &proved));
        CHECK_STATUS(env, cgam_settled_bounds(plan, &x.m, &out));
        double spread = 0, largest = 0, more = expm1(x.doubt.weights);
        for (int i = 0; i < N; i++) {
            spread = fmax(spread, x.m.p[i] * (1 - x.m.p[i]));
            largest = fmax(largest, x.m.p[i]);
        }
        double rows = fmin(2 * (spread + x.doubt.sum) * (1 + more), 0.5);
        double free = l2b * fmin(rows, largest * (1 + more)) / eta;
        CHECK_REL(out.local_contraction, fmin(local * (1 + more), free), 2e-8);
        double off = more * fmin(0.5 * l2b, free);
        CHECK_REL(out.fold_margin, fmax(margin - off, eta - l2b * rows), 2e-8);
        assert_int_equal(out.fold_margin_exact, k == 2);
        if (k < 2) CHECK_LE(1e-3, more);
        /* what pi may be away from 1 in all, n 2^-51, where little else is */
        if (k == 2) CHECK_CLOSE(margin - out.fold_margin, off + N * 0x1p-51 * l2b, 1e-15);
        if (k == 2)
            CHECK_CLOSE(out.local_contraction - local, more * local + N * 0x1p-51 * l2b / eta,
                        1e-15);
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
