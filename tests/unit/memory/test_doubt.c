/* What rounding may have done to a query (memory/doubt.c), number by number: the formulas of docs/theorems/rounding.md written down
 * once more. Queries are made by hand of numbers whose products and sums are exact, so that residuals are 0 and what is left is the
 * bound itself. */
#include "memory/certify.h"
#include "support/one_env.h"

#include "support/owned.h"

#define U 0x1p-53
enum { N = 4, D = 5, CONTEXT = 3 };
static const double NEAR = 2e-5; /* the slack that bounds have for their own evaluation */

static double gamma_of(double k) { return k * U / (1 - k * U); }
static double nu_of(double d) { return (3 * d + 64) * U; }

/* zeta_i = k_i e_i + e_5, so that <zeta_i, zeta_j> = 1 and u = Z c for c = (u_i / k_i, 0). */
static const double diagonal[N] = {1, 2, 4, 1};

typedef struct world {
    cgam_bank *bank;
    cgam_recall *plan;
    double Z[N * D], P[D * CONTEXT], W[N * CONTEXT];
    double q[D], c[D], u[N];
    double b[N], s[N], r[N], p[N], a[N], length[N];
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
        x->length[i] = kind == NORMALISED ? 1 : sqrt(diagonal[i] * diagonal[i] + 1);
    }
    x->m = (cgam_settled){.in = {.q = x->q, .b = x->b, .a = x->a}, .s = x->s, .r = x->r, .p = x->p};
    if (kind != WITHOUT_CONTEXT) x->m.in.c = x->c;
    x->m.act.top = -INFINITY;
    for (int i = 0; i < N; i++) x->m.act.top = fmax(x->m.act.top, x->r[i]);
}

static void world_close(world *x)
{
    cgam_recall_free(x->plan);
    cgam_bank_free(x->bank);
}

static double norm(int64_t n, const double *x)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++) square += x[i] * x[i];
    return sqrt(square);
}

/* gamma of a product with a row, |v| of the context, and what b + lambda s is off by at a row. */
static double product_of(int kind)
{
    double terms = kind == PROJECTED || kind == WEIGHED ? D + CONTEXT : D;
    return gamma_of(2 * terms + 16) + (kind == NORMALISED ? nu_of(terms) : 0);
}

static double context_of(const world *x, int kind)
{
    if (kind == WITHOUT_CONTEXT) return 0;
    double size = norm(kind == PROJECTED || kind == WEIGHED ? CONTEXT : D, x->c);
    return kind == PROJECTED ? size * norm(D * CONTEXT, x->P) : kind == WEIGHED ? size * N : size;
}

static double row_of(const world *x, int kind, int i)
{
    double lambda = x->plan->opts.lambda, score = x->b[i] + lambda * x->s[i];
    return fabs(x->r[i] - score) + 3 * U * (fabs(x->b[i]) + lambda * fabs(x->s[i])) +
           product_of(kind) * norm(D, x->q) * x->length[i];
}

/* What the equation of the gates is off by at a row where it holds exactly. */
static double residual_of(const world *x, int kind, int i, const double *y, const double *error)
{
    double wide = product_of(kind) * context_of(x, kind), lambda = x->plan->opts.lambda;
    return (error ? error[i] : 0) + wide * (kind == WEIGHED ? 1 : x->length[i]) +
           4 * U * (fabs(y[i]) + fabs(x->u[i]) + lambda * x->p[i]);
}

typedef struct wanted {
    double scores, sum, weights, p, row[N];
} wanted;

static wanted softmax_formula(const world *x, int kind)
{
    double beta = x->plan->opts.beta, squares = 0, span = 0, tilt = 0, most = 0;
    wanted w = {.sum = (N + 32) * U};
    for (int i = 0; i < N; i++) {
        double far = beta * fabs(x->m.act.top - x->r[i]), off = w.row[i] = row_of(x, kind, i);
        if (beta * (x->m.act.top - x->r[i] - 4 * off) > 746) continue; /* counts for nothing */
        w.scores = fmax(w.scores, off);
        span = fmax(span, far);
        squares += beta * off * beta * off;
        tilt += x->p[i] * far;
        most += x->p[i] * x->p[i];
    }
    double moved = 2 * beta * w.scores;
    w.weights = moved + 2 * (4 * span + N + 32) * U;
    w.p = fmin(0.5 * sqrt(squares), sqrt(most) * expm1(fmin(moved, 1))) + U * (N + 32 + 4 * tilt);
    if (moved > 1) w.p = sqrt(2);
    return w;
}

TEST(scores_and_weights_are_off_by_their_formulas)
{
    static const double betas[] = {1.5, 64};
    for (int k = 0; k < WORLDS * 2 * 4; k++) {
        world x;
        int kind = k % WORLDS, tilted = k / WORLDS / 2;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, betas[k / WORLDS % 2], 0.5);
        world_open(&x, kind, &o);
        x.m.act.top = x.r[0] = x.b[0] + 0.5 * x.s[0] + 11; /* memory 0 wins, by more than 11 */
        if (tilted == 1) x.r[1] += 0x1p-30;
        if (tilted == 2) x.r[2] += 0x1p-6;
        x.b[0] += 11;
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        wanted want = softmax_formula(&x, kind);
        CHECK_BOUND(got.scores, want.scores, NEAR);
        CHECK_BOUND(got.sum, want.sum, NEAR);
        CHECK_BOUND(got.weights, want.weights, NEAR);
        CHECK_BOUND(got.p, want.p, NEAR);
        assert_true(isinf(got.gradient) && isinf(got.moves) && isinf(got.step));
        CHECK_BOUND(cgam_doubt_scores(x.plan, x.q, x.m.in.c),
                    product_of(kind) *
                        (norm(D, x.q) * x.length[kind == NORMALISED ? 0 : 2] +
                         0.5 * context_of(&x, kind) *
                             (kind == WEIGHED || kind == NORMALISED ? 1 : x.length[2])),
                    NEAR);
        world_close(&x);
    }
}

/* A row counts for nothing from e^-746 on, its doubt taken four times. */
TEST(what_is_far_below_counts_for_nothing)
{
    for (int k = 0; k < 4; k++) {
        world x;
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
        world_close(&x);
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

/* The norm of those that count: at alpha = 0 gates of rows that weigh nothing change nothing. */
static double counting(const world *x, const wanted *w, const double *rows)
{
    const cgam_recall_opts *o = &x->plan->opts;
    double left[N];
    for (int i = 0; i < N; i++) {
        double off = w->row[i] + o->lambda * rows[i];
        bool nothing = o->alpha == 0 && o->beta * (x->m.act.top - x->r[i] - 4 * off) > 746;
        left[i] = nothing ? 0 : rows[i];
    }
    return norm(N, left);
}

/* From the doubt of the gates to what the map may still move p by. */
static double moves_formula(const world *x, const wanted *w, const double *rows, double *step)
{
    const cgam_recall_opts *o = &x->plan->opts;
    double all = counting(x, w, rows) / x->plan->gate->info.eta_min, far = 0, off[N], change = 0,
           rest = 0;
    int winner = 0;
    for (int i = 0; i < N; i++) {
        far += x->length[i] * x->length[i];
        if (x->r[i] > x->r[winner]) winner = i;
    }
    far = o->alpha * sqrt(far) * all;
    *step = 0;
    for (int i = 0; i < N; i++) off[i] = o->lambda * fmin(rows[i] + far * x->length[i], all);
    for (int i = 0; i < N; i++) {
        double gap = x->r[winner] - x->r[i] - w->row[i] - off[i] - off[winner] - w->row[winner];
        if (o->beta * gap < 706) {
            change += o->beta * off[i] * o->beta * off[i];
            *step = fmax(*step, off[i] + w->row[i]);
        }
        if (i != winner) rest += fmin(exp(-o->beta * gap), 1);
    }
    change = fmin(sqrt(change), o->beta * o->lambda * all);
    return fmin(0.5 * change + w->p, 3 * rest + N * 0x1p-50);
}

/* Gates that are off by `away` in one entry, and by rounding alone. */
TEST(gates_are_off_by_their_formulas)
{
    for (int k = 0; k < WORLDS * 4; k++) {
        world x;
        int kind = k % WORLDS, clear = k / WORLDS % 2, away = k / WORLDS / 2;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, clear ? 64 : 1.5, 0.5);
        world_open(&x, kind, &o);
        if (away) x.s[1] += 0x1p-20, x.r[1] += 0x1p-21;
        x.r[2] += clear ? 11.5 : 0; /* the winner of such */
        x.b[2] += clear ? 11.5 : 0;
        x.m.act.top = fmax(x.m.act.top, x.r[2]);
        cgam_doubt got;
        double rows[N], step;
        wanted want = softmax_formula(&x, kind);
        for (int i = 0; i < N; i++)
            rows[i] = residual_of(&x, kind, i, x.s, NULL) + (away && i == 1 ? 0x1p-20 : 0);
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, false, &got));
        if (kind == NORMALISED) { /* whose numbers are rounded: no row is exact */
            CHECK_LE(0.5 * norm(N, rows), got.gradient);
            world_close(&x);
            continue;
        }
        CHECK_BOUND(got.gradient, counting(&x, &want, rows) + 0.5 * want.p, NEAR);
        CHECK_BOUND(got.moves, moves_formula(&x, &want, rows, &step), NEAR);
        CHECK_BOUND(got.step, step, NEAR);
        /* of the gates alone: lambda p is no part of the equation */
        for (int i = 0; i < N; i++) {
            x.s[i] -= 0.5 * x.p[i];
            x.r[i] -= 0.25 * x.p[i];
            rows[i] -= 4 * U * (fabs(x.s[i] + 0.5 * x.p[i]) - fabs(x.s[i]) + 0.5 * x.p[i]);
        }
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, true, &got));
        if (norm(N, rows) > 0) CHECK_BOUND(got.gradient, counting(&x, &want, rows), NEAR);
        else CHECK_LE(got.gradient, 0x1p-1000); /* s = u = 0: underflow is all there is */
        assert_true(isinf(got.moves) && got.step == 0);
        world_close(&x);
    }
}

/* At alpha > 0: A s - u - lambda p with the rounding of A s, and rows that hear of each other. */
TEST(coupled_gates_are_off_by_their_formulas)
{
    for (int k = 0; k < 2; k++) {
        world x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0x1p-4, k ? 64 : 1.5, 0.5);
        world_open(&x, PLAIN, &o);
        double y[N], e[N], rows[N], step, total = 0;
        for (int i = 0; i < N; i++) total += x.s[i];
        for (int i = 0; i < N; i++) {
            x.u[i] = x.s[i] + 0x1p-4 * (total - x.s[i]) - 0.5 * x.p[i];
            x.c[i] = x.u[i] / diagonal[i];
            if (k && i == 0) x.b[i] += 20, x.r[i] += 20;
            x.m.act.top = fmax(x.m.act.top, x.r[i]);
        }
        cgam_dplr_spec A = cgam_gate_hessian(x.plan->gate, 1, 0, NULL);
        CHECK_STATUS(env, cgam_dplr_apply_bounded(env, &A, x.plan->gate->A, x.s, y, e));
        wanted want = softmax_formula(&x, PLAIN);
        for (int i = 0; i < N; i++) {
            assert_true(y[i] == x.u[i] + 0.5 * x.p[i]);
            rows[i] = residual_of(&x, PLAIN, i, y, e);
        }
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, true, false, &got));
        CHECK_BOUND(got.gradient, norm(N, rows) + 0.5 * want.p, NEAR);
        CHECK_BOUND(got.moves, moves_formula(&x, &want, rows, &step), NEAR);
        CHECK_BOUND(got.step, step, NEAR);
        world_close(&x);
    }
}

/* Queries that went together: what is added to the scores by s0, the feedback and their sum. */
TEST(queries_together_are_off_by_their_formulas)
{
    for (int k = 0; k < 4; k++) {
        world x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 1.5, 0.5);
        world_open(&x, PLAIN, &o);
        double size = k == 3 ? 1 : k == 1 ? 0x1p-10 : 0, squares = 0, most = 0, p = 0;
        x.m.together = true;
        x.m.trace.change_norm = k == 2 ? 0x1p-20 : 0;
        x.m.in.s0_off = (cgam_gates_off){size, 2 * size};
        x.m.feedback = (cgam_gates_off){3 * size, 5 * size};
        wanted want = softmax_formula(&x, PLAIN);
        for (int i = 0; i < N; i++) {
            double added =
                U * (2 * fabs(x.r[i]) + 8 * fabs(x.r[i] - x.a[i])) / 0.5 + 2 * U * fabs(x.s[i]);
            most = fmax(most, added);
            squares += added * added;
            p += x.p[i] * x.p[i];
        }
        most += size + 0.5 * 3 * size;
        squares = sqrt(squares) + 2 * size + 0.5 * 5 * size;
        double factor = 2 * 0.75 * most;
        double near = factor <= 1 ? sqrt(p) * expm1(factor) : INFINITY;
        double p_want = want.p + fmin(0.5 * 0.75 * squares, near);
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        CHECK_BOUND(got.p, p_want, NEAR);
        CHECK_BOUND(got.scores, want.scores + 0.5 * most, NEAR);
        CHECK_BOUND(got.weights, want.weights + factor, NEAR);
        assert_true(got.step == got.scores);
        CHECK_BOUND(got.gradient, 0.5 * (x.m.trace.change_norm + p_want), NEAR);
        CHECK_BOUND(got.moves, 0.5 * 0.75 * 0.5 * x.m.trace.change_norm + p_want, NEAR);
        x.m.feedback.norm = INFINITY; /* of which nothing is known */
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        assert_true(isinf(got.gradient) && isinf(got.step));
        CHECK_BOUND(got.p, want.p, NEAR);
        world_close(&x);
    }
}

/* ---- Entmax ----------------------------------------------------------------------------------- */

TEST(entmax_is_off_by_its_formulas)
{
    for (int k = 0; k < 5; k++) {
        world x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 0.5, 0.5);
        o.entmax = 2;
        world_open(&x, WITHOUT_CONTEXT, &o);
        double shift = k == 1 ? -1 : -0x1p-6, squares = 0, deltas = 0, most = 0, scores = 0;
        x.m.act.shift = shift;
        if (k == 2) x.p[3] += 0x1p-30;
        if (k == 3) x.p[3] += 0x1p-10; /* no weights at all */
        if (k == 4) x.p[0] = 1 - x.p[1] - x.p[2] - x.p[3] - 0x1p-40;
        for (int i = 0; i < N; i++) {
            double off = row_of(&x, WITHOUT_CONTEXT, i), away = 0.5 * fabs(x.r[i] - x.m.act.top);
            scores = fmax(scores, off);
            squares += 0.5 * off * 0.5 * off;
            if (1 - away + shift < 0) continue;
            double delta = 4 * U * (away + fabs(shift));
            most = fmax(most, delta);
            deltas += delta * delta;
        }
        double excess = k == 2 ? 0x1p-30 : k == 3 ? 0x1p-10 : k == 4 ? 0x1p-40 : 0;
        double off = excess + (12 * log(N) + 32) * U;
        cgam_doubt got;
        CHECK_STATUS(env, cgam_doubt_measure(x.plan, &x.m, false, false, &got));
        assert_true(isinf(got.weights));
        CHECK_BOUND(got.sum, 4 * (N + 64) * U, NEAR);
        CHECK_BOUND(got.scores, scores, NEAR);
        if (k == 3) {
            assert_true(isinf(got.own) && got.p == sqrt(2));
        } else {
            CHECK_BOUND(got.own, 2 * most + 2 * off, NEAR);
            CHECK_BOUND(got.p, sqrt(squares) + sqrt(deltas) + off, NEAR);
        }
        world_close(&x);
    }
}

/* Weights of slopes p^(2 - A): known where all bases are clear of 0, by the least of them. */
TEST(slopes_of_entmax_are_off_by_their_formula)
{
    for (int k = 0; k < 7; k++) {
        world x;
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0, 0.5, 0.5);
        o.entmax = k == 5 ? 2 : 1.25;
        double A = o.entmax, K = A - 1;
        world_open(&x, WITHOUT_CONTEXT, &o);
        cgam_doubt doubt = {.scores = k == 1 ? 0x1p-20 : 0x1p-30, .own = k == 1 ? 0 : 0x1p-29};
        if (k == 6) doubt.scores = doubt.own = 0; /* the base itself is rounded */
        double D_ = K * (2 * 0.5 * doubt.scores + doubt.own) + 8 * U;
        for (int i = 0; i < N; i++) /* bases 1, 1/2, 1/4 and one below 0 */
            x.r[i] = x.m.act.top - (i < 3 ? 1 - ldexp(1, -i) : 2) / (K * 0.5);
        if (k == 2) doubt.scores = 0x1p-18; /* too much to say anything */
        double edge = k == 3 ? 2 * D_ * 0.99 : 2 * D_ * 1.01;
        if (k >= 3 && k < 5) x.r[3] = x.m.act.top - (1 + (k == 4 ? edge : -edge)) / (K * 0.5);
        double base = 0.25, least = x.p[2];
        if (k == 3) base = edge;
        double want = (2 - A) / K * -log1p(-D_ / base) + (64 - 12 * log(least)) * U;
        double got = cgam_doubt_slopes(x.plan, &x.m, &doubt);
        if (k == 2 || k == 3) assert_true(isinf(got));
        else CHECK_BOUND(got, want, NEAR);
        world_close(&x);
    }
}

/* ---- Directions ------------------------------------------------------------------------------- */

/* Gates and feedback by a direction and the border: what cgam_dplr_*_off says of those, times the rows. */
TEST(directions_are_off_by_their_formulas)
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
        double scale = k < 3 ? 1 : 0, off, border, pivot = cgam_dplr_pivot_off(A);
        double nu = k % 3 == 1 ? nu_of(WIDE) : 0, context = sqrt(2) * norm(6, P);
        for (int j = 0; j < WIDE; j++) e[j] *= scale, v[j] *= scale;
        cgam_gates_off got;
        CHECK_STATUS(env, cgam_doubt_range(plan, c, v, e, none, &got));
        double projected = k % 3 == 2 ? context * gamma_of(2 * 2 + 16) : 0;
        CHECK_STATUS(env, cgam_dplr_range_off(A, v, projected, e, none, &off, &border));
        double each = off * (1 + pivot) + (gamma_of(WIDE + 16) + nu + pivot) * norm(WIDE, e);
        CHECK_BOUND(got.most, plan->can.row_max * each + border, NEAR);
        CHECK_BOUND(got.norm, plan->can.row_norm * each + border, NEAR);
        CHECK_STATUS(env, cgam_doubt_feedback(plan, v, none, e, none, &got));
        double sums = (gamma_of(ROWS + 16) + nu + pivot) * plan->can.row_max;
        double own = plan->can.pivot_max * (pivot + 4 * U);
        CHECK_STATUS(env, cgam_dplr_reduce_off(A, v, sums, none, e, none, &off, &border));
        each = off * (1 + pivot) + (gamma_of(WIDE + 16) + nu + pivot) * norm(WIDE, e);
        CHECK_BOUND(got.most, plan->can.row_max * each + border + own, NEAR);
        CHECK_BOUND(got.norm, plan->can.row_norm * each + border + own, NEAR);
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
