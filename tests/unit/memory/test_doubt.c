/* What rounding may have done to a query (memory/doubt.c): each bound of docs/theorems/rounding.md is what it was (tests/pinned).
 * Queries are made by hand of numbers whose products and sums are exact, so that residuals are 0 and what is left is the
 * bound itself; that it is true is decided by tests/rigour. */
#include "memory/certify.h"
#include "support/one_env.h"
#include "support/pinned.h"

#include "support/owned.h"

#define U 0x1p-53
enum { N = 4, D = 5, CONTEXT = 3 };
static const double NEAR = 2e-5; /* the slack that bounds have for their own evaluation */

/* zeta_i = k_i e_i + e_5, so that <zeta_i, zeta_j> = 1 and u = Z c for c = (u_i / k_i, 0). */
static const double diagonal[N] = {1, 2, 4, 1};

typedef struct world {
    cgam_bank *bank;
    cgam_recall *plan;
    double Z[N * D], P[D * CONTEXT], W[N * CONTEXT];
    double q[D], c[D], u[N];
    double b[N], s[N], r[N], p[N], a[N];
    cgam_settled m;
} world;

enum { PLAIN, NORMALISED, PROJECTED, WEIGHED, WITHOUT_CONTEXT, WORLDS };

/* s is chosen, u = A s - lambda p follows, and c from it; r = b + lambda s. */
static void world_open(world *x, int kind, const cgam_recall_opts *opts)
{
    cgam_recall_opts o = *opts;
    cgam_bank_opts bank_opts = cgam_bank_opts_default();
    memset(x, 0, sizeof *x);
    bank_opts.normalize = kind == NORMALISED;
    for (int i = 0; i < N; i++) {
        x->Z[i * D + i] = diagonal[i];
        x->Z[i * D + N] = 1;
        x->p[i] = i == 0 ? 0.5 : i == 1 ? 0.25 : 0.125;
        x->W[i * CONTEXT + i % CONTEXT] = 1 + i;
        x->q[i] = i == 0 ? 2 : i == 2 ? 0.25 : 0.5;
    }
    for (int j = 0; j < CONTEXT; j++) x->P[j * CONTEXT + j] = 0.5 * (1 + j);
    if (kind == PROJECTED) o.P = x->P, o.d_c = CONTEXT;
    if (kind == WEIGHED) o.W = x->W, o.d_c = CONTEXT;
    CHECK_STATUS(env, cgam_bank_new(env, x->Z, CGAM_F64, N, D, &bank_opts, &x->bank));
    x->plan = object_recall(env, x->bank, &o);
    static const double context[D] = {1, -2, 0.5};
    memcpy(x->c, context, sizeof context);
    if (kind == WITHOUT_CONTEXT) memset(x->c, 0, sizeof x->c);
    for (int i = 0; i < N; i++) {
        double u = x->Z[i * D + i] * x->c[i];
        if (kind == PROJECTED) u *= i < CONTEXT ? 0.5 * (1 + i) : 0;
        if (kind == WEIGHED) u = (1 + i) * x->c[i % CONTEXT];
        x->u[i] = u;
        x->s[i] = u + o.lambda * x->p[i]; /* at alpha = 0 */
        x->b[i] = x->Z[i * D + i] * x->q[i];
        x->r[i] = x->b[i] + o.lambda * x->s[i];
        x->a[i] = x->b[i] + o.lambda * u;
    }
    x->m = (cgam_settled){.in = {.q = x->q, .b = x->b, .a = x->a}, .s = x->s, .r = x->r, .p = x->p};
    if (kind != WITHOUT_CONTEXT) x->m.in.c = x->c;
    x->m.act.top = -INFINITY;
    for (int i = 0; i < N; i++) x->m.act.top = fmax(x->m.act.top, x->r[i]);
}

static void own_world(world *x)
{
    cgam_recall_free(x->plan);
    cgam_bank_free(x->bank);
}
#define WORLD __attribute__((cleanup(own_world))) world

/* All that is said of a query. */
#define PIN_DOUBT(x)                                                                               \
    do {                                                                                           \
        PIN((x).scores, NEAR);                                                                     \
        PIN((x).sum, NEAR);                                                                        \
        PIN((x).weights, NEAR);                                                                    \
        PIN((x).p, NEAR);                                                                          \
        PIN((x).own, NEAR);                                                                        \
        PIN((x).gradient, NEAR);                                                                   \
        PIN((x).moves, NEAR);                                                                      \
        PIN((x).step, NEAR);                                                                       \
    } while (0)

TEST(scores_and_weights_are_off_by_what_they_were)
{
    static const double betas[] = {1.5, 64};
    for (int k = 0; k < WORLDS * 2 * 4; k++) {
        WORLD x;
        int kind = k % WORLDS, tilted = k / WORLDS / 2;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, betas[k / WORLDS % 2], 0.5);
        world_open(&x, kind, &o);
        x.m.act.top = x.r[0] = x.b[0] + 0.5 * x.s[0] + 11; /* memory 0 wins, by more than 11 */
        if (tilted == 1) x.r[1] += 0x1p-30;
        if (tilted == 2) x.r[2] += 0x1p-6;
        x.b[0] += 11;
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        PIN_DOUBT(got);
        PIN(cgam_doubt_scores(x.plan, x.q, x.m.in.c), NEAR);
    }
}

/* A row counts for nothing from e^-746 on, its doubt taken four times. */
TEST(what_is_far_below_counts_for_nothing)
{
    for (int k = 0; k < 4; k++) {
        WORLD x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 64, 0.5);
        world_open(&x, WITHOUT_CONTEXT, &o);
        bool gates =
            k / 2; /* whose doubt is a half, lambda of which is added to that of the score */
        double far = 746.0 / 64 + 4 * (gates ? 0.5 : 0.25), away = k % 2 ? 1e-4 : -1e-4;
        x.r[3] = x.m.act.top - far - away; /* 1e-4 is more than 2^-20 of it */
        x.b[3] = x.r[3] - 0.5 * x.s[3] - 0.25;
        if (gates) x.s[3] -= 0.5, x.b[3] += 0.25;
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, false, &got));
        if (k == 0) {
            CHECK_REL(got.scores, 0.25, 1e-3);
            assert_true(got.p == sqrt(2));
        } else {
            CHECK_LE(got.scores, 1e-13);
            CHECK_LE(got.p, 1e-11);
        }
        /* the gates of a row that is on its own, and weighs nothing, move nothing */
        if (k == 2) CHECK_REL(got.gradient, 0.5, 1e-3);
        if (k == 3) CHECK_LE(got.gradient, 1e-11);
    }
}

/* Long sums are made in blocks: their roundings no longer grow with each row. */
TEST(long_sums_are_off_by_their_blocks)
{
    static const int64_t sizes[] = {1, 607, 608, 1280};
    static const double roundings[] = {33, 639, 649.5, 660};
    for (int k = 0; k < 4; k++) {
        int64_t n = sizes[k];
        double *Z = dense_room(n), *r = dense_room(n), *s = dense_room(n), *p = dense_room(n);
        for (int64_t i = 0; i < n; i++) Z[i] = r[i] = 1, p[i] = 1 / (double)n;
        OWNED(cgam_bank) bank = object_bank(env, n, 1, Z);
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 1, 0);
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        cgam_settled m = {.in = {.q = Z, .b = r}, .s = s, .r = r, .p = p, .act.top = 1};
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(plan, &m, false, false, &got));
        CHECK_BOUND(got.sum, roundings[k] * U, NEAR);
        dense_reset();
    }
}

/* Gates that are off by `away` in one entry, and by rounding alone. */
TEST(gates_are_off_by_what_they_were)
{
    for (int k = 0; k < WORLDS * 4; k++) {
        WORLD x;
        int kind = k % WORLDS, clear = k / WORLDS % 2, away = k / WORLDS / 2;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, clear ? 64 : 1.5, 0.5);
        world_open(&x, kind, &o);
        if (away) x.s[1] += 0x1p-20, x.r[1] += 0x1p-21;
        x.r[2] += clear ? 11.5 : 0; /* the winner of such */
        x.b[2] += clear ? 11.5 : 0;
        x.m.act.top = fmax(x.m.act.top, x.r[2]);
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, false, &got));
        CHECK_LE(kind == WITHOUT_CONTEXT ? 0 : 1e-17, got.gradient);
        if (kind == NORMALISED) continue; /* whose numbers are rounded: no row is exact */
        PIN_DOUBT(got);
        /* of the gates alone: lambda p is no part of the equation */
        for (int i = 0; i < N; i++) {
            x.s[i] -= 0.5 * x.p[i];
            x.r[i] -= 0.25 * x.p[i];
        }
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, true, &got));
        if (kind == WITHOUT_CONTEXT && !away) CHECK_LE(got.gradient, 0x1p-1000); /* s = u = 0 */
        else PIN(got.gradient, NEAR);
        assert_true(isinf(got.moves) && got.step == 0);
    }
}

/* At alpha > 0: A s - u - lambda p with the rounding of A s, and rows that hear of each other. */
TEST(coupled_gates_are_off_by_what_they_were)
{
    for (int k = 0; k < 2; k++) {
        WORLD x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0x1p-4, k ? 64 : 1.5, 0.5);
        world_open(&x, PLAIN, &o);
        double total = 0;
        for (int i = 0; i < N; i++) total += x.s[i];
        for (int i = 0; i < N; i++) {
            x.u[i] = x.s[i] + 0x1p-4 * (total - x.s[i]) - 0.5 * x.p[i];
            x.c[i] = x.u[i] / diagonal[i];
            if (k && i == 0) x.b[i] += 20, x.r[i] += 20;
            x.m.act.top = fmax(x.m.act.top, x.r[i]);
        }
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, false, &got));
        PIN_DOUBT(got);
    }
}

/* Queries that went together: what is added to the scores by s0, the feedback and their sum. */
TEST(queries_together_are_off_by_what_they_were)
{
    for (int k = 0; k < 4; k++) {
        WORLD x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 1.5, 0.5);
        world_open(&x, PLAIN, &o);
        double size = k == 3 ? 1 : k == 1 ? 0x1p-10 : 0;
        x.m.together = true;
        x.m.trace.change_norm = k == 2 ? 0x1p-20 : 0;
        x.m.in.s0_off = (cgam_gates_off){size, 2 * size};
        x.m.feedback = (cgam_gates_off){3 * size, 5 * size};
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        PIN_DOUBT(got);
        assert_true(got.step == got.scores);
        x.m.feedback.norm = INFINITY; /* of which nothing is known */
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        assert_true(isinf(got.gradient) && isinf(got.step));
        PIN(got.p, NEAR);
    }
}

/* ---- Entmax ----------------------------------------------------------------------------------- */

TEST(entmax_is_off_by_what_it_was)
{
    for (int k = 0; k < 5; k++) {
        WORLD x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 0.5, 0.5);
        o.entmax = 2;
        world_open(&x, WITHOUT_CONTEXT, &o);
        x.m.act.shift = k == 1 ? -1 : -0x1p-6;
        if (k == 2) x.p[3] += 0x1p-30;
        if (k == 3) x.p[3] += 0x1p-10; /* no weights at all */
        if (k == 4) x.p[0] = 1 - x.p[1] - x.p[2] - x.p[3] - 0x1p-40;
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        PIN_DOUBT(got);
        if (k == 3) assert_true(isinf(got.own) && got.p == sqrt(2));
    }
}

/* Weights of slopes p^(2 - A): known where all bases are clear of 0, by the least of them. */
TEST(slopes_of_entmax_are_off_by_what_they_were)
{
    for (int k = 0; k < 7; k++) {
        WORLD x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 0.5, 0.5);
        o.entmax = k == 5 ? 2 : 1.25;
        double K = o.entmax - 1;
        world_open(&x, WITHOUT_CONTEXT, &o);
        cgam_doubt doubt = {.scores = k == 1 ? 0x1p-20 : 0x1p-30, .own = k == 1 ? 0 : 0x1p-29};
        if (k == 6) doubt.scores = doubt.own = 0; /* the base itself is rounded */
        double D_ = K * (2 * 0.5 * doubt.scores + doubt.own) + 8 * U;
        for (int i = 0; i < N; i++) /* bases 1, 1/2, 1/4 and one below 0 */
            x.r[i] = x.m.act.top - (i < 3 ? 1 - ldexp(1, -i) : 2) / (K * 0.5);
        if (k == 2) doubt.scores = 0x1p-18; /* too much to say anything */
        double edge = k == 3 ? 2 * D_ * 0.99 : 2 * D_ * 1.01;
        if (k >= 3 && k < 5) x.r[3] = x.m.act.top - (1 + (k == 4 ? edge : -edge)) / (K * 0.5);
        double got = cgam_doubt_slopes(x.plan, &x.m, &doubt);
        assert_true(isinf(got) == (k == 2 || k == 3));
        PIN(got, NEAR);
    }
}

/* ---- Directions ------------------------------------------------------------------------------- */

/* Gates and feedback by a direction and the border. */
TEST(directions_are_off_by_what_they_were)
{
    enum { ROWS = 80, WIDE = 3 };
    for (int k = 0; k < 6; k++) {
        cgam_rng rng = cgam_rng_stream(51, (uint64_t)k);
        double *Z = dense_bank(&rng, DENSE_NORMS, ROWS, WIDE), P[WIDE * 2] = {1, 0, 0, 2, 1, 1};
        cgam_bank_opts bank_opts = cgam_bank_opts_default();
        bank_opts.normalize = k % 3 == 1;
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, ROWS, WIDE, &bank_opts, &bank));
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 1e-3, 1, 0.5);
        if (k % 3 == 2) o.P = P, o.d_c = 2;
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        const cgam_dplr *A = plan->gate->A;
        assert_true(!cgam_dplr_dense(A) && cgam_dplr_border(A, NULL) == 0);
        double c[] = {1, -1, 2}, v[] = {0.5, -1, 1}, e[] = {0.25, 1, 0.5}, none[1] = {0};
        double scale = k < 3 ? 1 : 0;
        for (int j = 0; j < WIDE; j++) e[j] *= scale, v[j] *= scale;
        cgam_gates_off got;
        CHECK_STATUS(env, cgam_doubt_range(plan, c, v, e, none, &got));
        PIN(got.most, NEAR);
        PIN(got.norm, NEAR);
        CHECK_STATUS(env, cgam_doubt_feedback(plan, ROWS, 0x1p-46, v, none, e, none, &got));
        PIN(got.most, NEAR);
        PIN(got.norm, NEAR);
        dense_reset();
    }
}

/* cgam_doubt_gates asks for the direction and the border itself. */
TEST(gates_by_a_border_are_off_by_their_formulas)
{
    enum { ROWS = 80, WIDE = 3, EDGE = 7 };
    cgam_rng rng = cgam_rng_stream(51, 6);
    double *Z = dense_bank(&rng, DENSE_UNIT, ROWS, WIDE), c[] = {1, -1, 2};
    for (int i = 0; i < ROWS; i++) /* 1 - alpha |zeta|^2 is 0 for one of them */
        for (int j = 0; j < WIDE; j++)
            Z[i * WIDE + j] = i == EDGE ? j == 0 : 0.25 * Z[i * WIDE + j];
    OWNED(cgam_bank) bank = NULL;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, ROWS, WIDE, NULL, &bank));
    cgam_recall_opts o = object_opts(CGAM_COUPLED, 1, 1, 0.5);
    OWNED(cgam_recall) plan = object_recall(env, bank, &o);
    const cgam_dplr *A = plan->gate->A;
    const int64_t *border;
    assert_int_equal(cgam_dplr_border(A, &border), 1);
    assert_int_equal(border[0], EDGE);
    assert_true(plan->can.direct);
    double e[WIDE], edges[1], *s = dense_room(ROWS);
    cgam_gates_off got, want;
    CHECK_STATUS(env, cgam_dplr_range(A, c, e, edges));
    CHECK_STATUS(env, cgam_doubt_range(plan, c, c, e, edges, &want));
    CHECK_STATUS(env, cgam_doubt_gates(plan, c, s, &got));
    assert_true(got.most == want.most && got.norm == want.norm && isfinite(got.norm));
    dense_reset();
}

TEST_GROUP(set_up, tear_down)
