/* Diagonal plus low rank: solves, counts, products and range solves against n x n matrices.
 *
 * Wherever T is not singular (smallest |eigenvalue| above 1e-13 of the largest), a solve has to be
 * exact for a matrix within 1e-14 of T: |Ty - x| <= 1e-14 (|T||y| + |x|), whatever the pivots. (Where
 * D and the rest cancel to a small T, |D| takes the place of |T|: T is only given that well.) */
#include "base/env.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "num/dplr.h"

#include "support/owned.h"

typedef struct problem {
    int64_t n, d;
    double *Z, *D, *norm2, *w;
    double a, sigma;
    cgam_rows rows;
} problem;

static char what[128]; /* the case at hand, for messages */

static problem make(cgam_rng *rng, dense_kind kind, int64_t n, int64_t d, double a)
{
    problem t = {.n = n, .d = d, .a = a, .D = dense_room(n), .norm2 = dense_room(n)};
    t.Z = dense_bank(rng, kind, n, d);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) t.norm2[i] += t.Z[i * d + j] * t.Z[i * d + j];
    t.rows = (cgam_rows){t.Z, CGAM_F64, n, d, d, NULL, cgam_cpu_best(), NULL};
    return t;
}

/* D of the gate operator at t->a. */
static void as_gate(problem *t)
{
    for (int64_t i = 0; i < t->n; i++) t->D[i] = 1 - t->a * t->norm2[i];
}

static double critical_alpha(const problem *t)
{
    double low = dense_eigen(t->n, dense_overlaps(t->n, t->d, t->Z), NULL)[0];
    return low < -1e-12 ? -1 / low : INFINITY;
}

static cgam_dplr_spec spec_of(const problem *t)
{
    return (cgam_dplr_spec){&t->rows, t->norm2, t->D, t->a, t->w, t->sigma, 0, NULL};
}

static void expect(bool fine, const char *claim, double got, double allowed)
{
    if (!fine) fail_msg("%s: %s\n  got     %.3g\n  allowed %.3g", what, claim, got, allowed);
}

/* Everything the header says, for one problem. Returns 1 if it was not singular. */
static int check(cgam_rng *rng, const problem *t)
{
    int64_t n = t->n, d = t->d;
    double *T = dense_matrix(n, d, t->Z, t->D, t->a, t->w, t->sigma), *V = dense_room(n * n);
    const double *values = dense_eigen(n, T, V);
    double norm = fmax(fabs(values[0]), fabs(values[n - 1]));
    int64_t negative = 0, closest = 0;
    for (int64_t i = 0; i < n; i++) {
        negative += values[i] < 0;
        if (fabs(values[i]) < fabs(values[closest])) closest = i;
    }
    cgam_dplr_spec spec = spec_of(t);
    OWNED(cgam_dplr) S = NULL;
    CHECK_STATUS(env, cgam_dplr_new(env, &spec, &S));

    double *x = dense_normals(rng, n, 1), *y = dense_room(n), *product = dense_room(n), reported;
    dense_score(n, n, T, x, product);
    CHECK_STATUS(env, cgam_dplr_apply(S, x, y));
    double off = dense_distance(n, y, product);
    double scale = norm;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs(t->D[i]));
    double allowed = (double)(n + d + 4) * 0x1p-53 * scale * dense_distance(n, x, dense_room(n));
    expect(off <= allowed, "a product", off, allowed);

    bool regular = fabs(values[closest]) > 1e-13 * norm;
    if (regular) {
        expect(cgam_dplr_negative(S) == negative, "negative eigenvalues",
               (double)cgam_dplr_negative(S), (double)negative);
        expect(!cgam_dplr_singular(S), "called singular", fabs(values[closest]) / norm, 1e-13);
        for (int k = 0; k < 3; k++) { /* anything, a vector in the range of Z, the weakest mode */
            if (k == 1) dense_score(n, d, t->Z, dense_normals(rng, d, 1), x);
            if (k == 2) memcpy(x, V + closest * n, (size_t)n * sizeof *x);
            CHECK_STATUS(env, cgam_dplr_solve(S, x, y, &reported));
            double error = dense_backward(n, T, scale, x, y);
            expect(error <= 1e-14, "backward error", error, 1e-14);
            expect(error <= reported + 4e-16, "backward error above what is reported", error,
                   reported + 4e-16);
        }
    }
    dense_reset();
    return regular;
}

static const int64_t shapes[][2] = {{1, 1},   {1, 9},   {2, 1},   {5, 20}, {19, 20},
                                    {20, 20}, {21, 20}, {60, 40}, {60, 8}, {70, 3}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST(gates_are_solved_on_both_sides_of_criticality)
{
    static const double factors[] = {1e-6, 0.3, 0.9, 1, 1.001, 1.4, 3, 100};
    cgam_rng rng = cgam_rng_stream(4, 0);
    int regular = 0;
    for (int kind = 0; kind < DENSE_KINDS; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            for (int f = 0; f < 8; f++) {
                problem t = make(&rng, (dense_kind)kind, shapes[s][0], shapes[s][1], 1);
                double largest = 1e-300;
                for (int64_t i = 0; i < t.n; i++) largest = fmax(largest, t.norm2[i]);
                t.a = factors[f] / largest; /* from 1 / max n on, D is not positive */
                as_gate(&t);
                snprintf(what, sizeof what, "gate, kind %d, %lld x %lld, alpha max n = %g", kind,
                         (long long)t.n, (long long)t.d, factors[f]);
                regular += check(&rng, &t);
            }
        }
    }
    assert_true(regular > 400);
}

TEST(gates_are_solved_next_to_criticality)
{
    static const double distances[] = {1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, -1e-10, -1e-6};
    cgam_rng rng = cgam_rng_stream(4, 1);
    int regular = 0;
    for (int kind = 0; kind < DENSE_KINDS; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            for (int f = 0; f < 8; f++) {
                problem t = make(&rng, (dense_kind)kind, shapes[s][0], shapes[s][1], 1);
                double critical = critical_alpha(&t);
                if (isinf(critical)) continue;
                t.a = critical * (1 - distances[f]);
                as_gate(&t);
                snprintf(what, sizeof what, "kind %d, %lld x %lld, alpha = alpha_crit (1 - %g)",
                         kind, (long long)t.n, (long long)t.d, distances[f]);
                regular += check(&rng, &t);
            }
        }
    }
    assert_true(regular > 300);
}

/* Pivots of all sizes and signs: spread over scales, two levels, levels with exact zeros. */
TEST(any_pivots_will_do)
{
    cgam_rng rng = cgam_rng_stream(4, 2);
    int regular = 0;
    for (int k = 0; k < 1500; k++) {
        const int64_t *shape = shapes[k % SHAPES];
        problem t = make(&rng, (dense_kind)(k % DENSE_KINDS), shape[0], shape[1],
                         dense_between_log(&rng, 1e-3, 10));
        double low = dense_between_log(&rng, 1e-17, 1), high = dense_between_log(&rng, 1e-17, 1);
        double part = cgam_rng_uniform(&rng);
        int mode = (int)cgam_rng_below(&rng, 4);
        bool signs = cgam_rng_bits(&rng) % 2;
        for (int64_t i = 0; i < t.n; i++) {
            bool lower = cgam_rng_uniform(&rng) < part;
            t.D[i] = mode == 0   ? dense_between_log(&rng, low, 1)
                     : mode == 1 ? (lower ? low * dense_between(&rng, 0.9, 1) : high)
                     : mode == 2 ? (lower ? low : high * dense_between(&rng, 1, 2))
                                 : (lower ? 0 : low);
            if (signs && cgam_rng_bits(&rng) % 2) t.D[i] = -t.D[i];
        }
        if (k % 3 == 0) {
            t.w = dense_normals(&rng, t.n, 1);
            t.sigma = dense_between_log(&rng, 1e-3, 10);
        }
        snprintf(what, sizeof what, "%lld x %lld, mode %d, pivots %.2g and %.2g, w %d",
                 (long long)t.n, (long long)t.d, mode, low, high, t.w != NULL);
        regular += check(&rng, &t);
    }
    assert_true(regular > 700);
}

/* More zero pivots than a quarter of d, up to d: T is regular, and each must join the border. */
TEST(as_many_zero_pivots_as_columns)
{
    cgam_rng rng = cgam_rng_stream(4, 3);
    for (int64_t zeros = 0; zeros <= 20; zeros++) {
        for (int extra = 0; extra < 2; extra++) {
            problem t = make(&rng, DENSE_NORMS, 60, 20, 0.7);
            for (int64_t i = 0; i < 60; i++)
                t.D[i] = i * 7 % 60 < zeros ? 0 : dense_between(&rng, 0.3, 1);
            if (extra) {
                t.w = dense_normals(&rng, 60, 1);
                t.sigma = 0.4;
            }
            snprintf(what, sizeof what, "60 x 20 with %lld zero pivots", (long long)zeros);
            assert_int_equal(check(&rng, &t), 1);
        }
    }
}

TEST(without_columns_a_diagonal_is_left)
{
    cgam_rng rng = cgam_rng_stream(4, 4);
    for (int64_t n = 1; n < 40; n++) {
        problem t = make(&rng, DENSE_GAUSS, n, 5, 0);
        for (int64_t i = 0; i < n; i++) t.D[i] = cgam_rng_normal(&rng);
        snprintf(what, sizeof what, "a = 0, n = %lld", (long long)n);
        assert_int_equal(check(&rng, &t), 1);
        t = make(&rng, DENSE_GAUSS, n, 5, 0);
        for (int64_t i = 0; i < n; i++) t.D[i] = i == n / 2 ? 0 : cgam_rng_normal(&rng);
        t.w = dense_normals(&rng, n, 1);
        t.sigma = 2;
        check(&rng, &t);
    }
}

TEST(without_a_diagonal_the_rows_are_left)
{
    cgam_rng rng = cgam_rng_stream(4, 5);
    for (int64_t n = 1; n < 30; n++) {
        problem t = make(&rng, DENSE_GAUSS, n, n + 10, 1);
        snprintf(what, sizeof what, "D = 0, n = %lld", (long long)n);
        assert_int_equal(check(&rng, &t), 1);
        t = make(&rng, DENSE_GAUSS, n + 1, n, 1); /* rank n and one more from w */
        t.w = dense_normals(&rng, n + 1, 1);
        t.sigma = 1;
        assert_int_equal(check(&rng, &t), 1);
    }
}

/* D = 0 on more rows than there are columns: a kernel, to be noticed. */
TEST(a_kernel_is_noticed)
{
    cgam_rng rng = cgam_rng_stream(4, 6);
    for (int64_t n = 4; n < 40; n++) {
        problem t = make(&rng, DENSE_UNIT, n, 3, 1);
        as_gate(&t);
        for (int64_t i = 0; i < n; i++) t.D[i] = 0;
        cgam_dplr_spec spec = spec_of(&t);
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, &spec, &S));
        assert_true(cgam_dplr_singular(S));
        assert_int_equal(cgam_dplr_negative(S), 0);
        dense_reset();
    }
}

/* T^-1 Z v by cgam_dplr_range, and T^-1 x by cgam_dplr_reduce as a streaming caller does it. */
/* What is said of e or t covers what is done to them: x and the border of f move by a thousandth. */
static void check_off(cgam_dplr *S, const double *f, const double *f_border, double *x,
                      const double *border)
{
    double off, edge, size = 0, had = x[0];
    CHECK_STATUS(env, cgam_dplr_prove_gain(S));
    for (int moved = 0; moved < 2; moved++) {
        if (f_border)
            CHECK_STATUS(env, cgam_dplr_reduce_off(S, f, 0, f_border, x, border, &off, &edge));
        else CHECK_STATUS(env, cgam_dplr_range_off(S, f, 0, x, border, &off, &edge));
        if (moved) expect(off >= 0.999 * size, "what an error is bounded by", off, size);
        size = 1e-3 * (1 + fabs(x[0]));
        x[0] = moved ? had : x[0] + size;
    }
}

TEST(the_pieces_make_a_solve)
{
    cgam_rng rng = cgam_rng_stream(4, 7);
    int bordered = 0;
    for (int k = 0; k < 600; k++) {
        int64_t n = 2 + cgam_rng_below(&rng, 60), d = 1 + cgam_rng_below(&rng, n - 1);
        problem t = make(&rng, (dense_kind)(k % DENSE_KINDS), n, d, 1);
        double critical = critical_alpha(&t);
        t.a = (isinf(critical) ? 1 : critical) * dense_between(&rng, 0.1, 0.99);
        for (int64_t i = 0; i < n && k % 3 == 0; i++) /* a row with 1 - alpha n_i = 0 */
            if (t.norm2[i] * critical > 1.02) t.a = 1 / t.norm2[i];
        if (k % 7 == 0) t.a = 0;
        as_gate(&t);
        double *T = dense_matrix(n, d, t.Z, t.D, t.a, NULL, 0);
        double norm = dense_norm(n, T);
        cgam_dplr_spec spec = spec_of(&t);
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, &spec, &S));
        assert_false(cgam_dplr_dense(S));
        const int64_t *border;
        int64_t m = cgam_dplr_border(S, &border);
        const double *dinv = cgam_dplr_dinv(S);
        bordered += m > 0;
        snprintf(what, sizeof what, "%lld x %lld, alpha = %g of critical, border %lld",
                 (long long)n, (long long)d, t.a / critical, (long long)m);

        double *v = dense_normals(&rng, d, 1), *x = dense_room(n), *y = dense_room(n);
        double *e = dense_room(d), *edge = dense_room(m), *edge_x = dense_room(m);
        dense_score(n, d, t.Z, v, x);
        CHECK_STATUS(env, cgam_dplr_range(S, v, e, edge));
        dense_score(n, d, t.Z, e, y);
        for (int64_t i = 0; i < n; i++) y[i] *= dinv[i];
        for (int64_t s = 0; s < m; s++) y[border[s]] = edge[s];
        double error = dense_backward(n, T, norm, x, y);
        expect(error <= 1e-13, "range solve", error, 1e-13);
        check_off(S, v, NULL, e, edge);

        double *g = dense_room(d), *weights = dense_room(n), *dot = dense_room(n);
        x = dense_normals(&rng, n, 1);
        for (int64_t i = 0; i < n; i++) weights[i] = dinv[i] * x[i];
        dense_combine(n, d, t.Z, weights, g);
        for (int64_t s = 0; s < m; s++) {
            assert_true(dinv[border[s]] == 0);
            edge_x[s] = x[border[s]];
        }
        CHECK_STATUS(env, cgam_dplr_reduce(S, g, edge_x, e, edge));
        dense_score(n, d, t.Z, e, dot);
        for (int64_t i = 0; i < n; i++) y[i] = dinv[i] * (x[i] - dot[i]);
        for (int64_t s = 0; s < m; s++) y[border[s]] = edge[s];
        double smallest = 1;
        for (int64_t i = 0; i < n; i++)
            if (dinv[i] != 0) smallest = fmin(smallest, 1 / fabs(dinv[i]));
        check_off(S, g, edge_x, e, edge);
        error = dense_backward(n, T, norm, x, y); /* unrefined: loses eps / min |D| */
        expect(error <= 1e-14 / smallest, "streamed solve", error, 1e-14 / smallest);
        dense_reset();
    }
    assert_true(bordered > 50);
}

/* By the inverse: the solution of cgam_dplr_reduce, for several right sides, with border rows (K is
 * then indefinite and has blocks of two) and over more than one block of the inverse. */
TEST(the_inverse_reduces_alike)
{
    cgam_rng rng = cgam_rng_stream(4, 9);
    int64_t sizes[][2] = {{3, 1}, {40, 17}, {300, 256}, {330, 257}, {700, 600}};
    enum { RIGHT = 5 };
    for (int k = 0; k < 2 * 5; k++) {
        int64_t n = sizes[k / 2][0], d = sizes[k / 2][1], m = 0;
        problem t = make(&rng, DENSE_UNIT, n, d, 1);
        t.a = 0.1;
        as_gate(&t);
        for (int64_t i = 0; k % 2 && i < d / 8 && i < 20; i++) t.D[3 * i] = i % 2 ? 0 : 1e-9;
        cgam_dplr_spec spec = spec_of(&t);
        OWNED(cgam_dplr) S = NULL;
        OWNED(cgam_dplr_inverse) M = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, &spec, &S));
        CHECK_STATUS(env, cgam_dplr_inverse_new(S, &M));
        m = cgam_dplr_border(S, NULL);
        assert_non_null(M);
        assert_true((m > 0) == (k % 2 && d >= 8));
        double *g = dense_normals(&rng, RIGHT * d, 1), *x = dense_normals(&rng, RIGHT * m + 1, 1);
        double *t0 = dense_room(RIGHT * d), *y0 = dense_room(RIGHT * m + 1);
        double *t1 = dense_room(RIGHT * d), *y1 = dense_room(RIGHT * m + 1), size = 0;
        for (int64_t v = 0; v < RIGHT; v++)
            CHECK_STATUS(env, cgam_dplr_reduce(S, g + v * d, x + v * m, t0 + v * d, y0 + v * m));
        for (int64_t i = 0; i < RIGHT * d; i++) size = fmax(size, fabs(t0[i]));
        for (int64_t i = 0; i < RIGHT * m; i++) size = fmax(size, fabs(y0[i]));
        for (int f32 = 0; f32 < 2; f32++) {
            double off = (f32 ? 1e-5 : 1e-12) * size;
            CHECK_STATUS(env, cgam_dplr_inverse_reduce(M, RIGHT, f32, g, x, t1, y1));
            CHECK_CLOSE_ALL(t1, t0, RIGHT * d, off);
            CHECK_CLOSE_ALL(y1, y0, RIGHT * m, off);
            CHECK_STATUS(env, cgam_dplr_inverse_reduce(M, 1, f32, g, x, t1, y1));
            CHECK_CLOSE_ALL(t1, t0, d, off);
            CHECK_CLOSE_ALL(y1, y0, m, off);
        }
        dense_reset();
    }
}

TEST(an_estimate_of_cost_is_an_upper_bound)
{
    cgam_rng rng = cgam_rng_stream(4, 8);
    for (int s = 0; s < SHAPES; s++) {
        problem t = make(&rng, DENSE_NORMS, shapes[s][0], shapes[s][1], 0.5);
        as_gate(&t);
        for (int64_t i = 0; i < t.n && i < t.d; i++) t.D[i] = 0;
        cgam_dplr_spec spec = spec_of(&t);
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, &spec, &S));
        double side = cgam_dplr_dense(S) ? (double)t.n : (double)(t.d + cgam_dplr_border(S, NULL));
        CHECK_LE(side * side, cgam_dplr_cost(&spec));
        dense_reset();
    }
}

static int factor_and_solve(cgam_env *other, void *arg)
{
    const problem *t = arg;
    cgam_dplr_spec spec = spec_of(t);
    OWNED(cgam_dplr) S = NULL;
    double y[16];
    TRY(cgam_dplr_new(other, &spec, &S));
    TRY(cgam_dplr_solve(S, t->D, y, NULL));
    TRY(cgam_dplr_apply(S, t->D, y));
    return CGAM_OK;
}

TEST(solves_cope_with_every_failed_allocation)
{
    static const int64_t sizes[][2] = {{4, 9}, {12, 3}};
    cgam_rng rng = cgam_rng_stream(4, 9);
    for (int k = 0; k < 4; k++) {
        problem t = make(&rng, DENSE_NORMS, sizes[k / 2][0], sizes[k / 2][1], 0.4);
        as_gate(&t);
        t.D[1] = 0;
        if (k % 2) {
            t.w = dense_normals(&rng, t.n, 1);
            t.sigma = 1;
        }
        assert_true(check_every_allocation(factor_and_solve, &t) > 8);
        dense_reset();
    }
}

TEST_GROUP(set_up, tear_down)
