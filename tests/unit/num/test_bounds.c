/* What rounding is said to have done to T = diag(D) + a Z Z' + sigma w w', number by number: the formulas of
 * docs/theorems/rounding.md written down once more. Numbers are such that what is bounded is computed
 * without rounding, and what is left is the bound itself. One that is smaller than its formula proves
 * what is not so; one that is larger is one that nobody has looked at. */
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "num/dplr.h"
#include "num/rounding.h"

#include <float.h>

#include "support/owned.h"

#define U 0x1p-53
static const double NEAR = 1e-5; /* the slack that bounds have for their own evaluation */

static double gamma_of(double k) { return k * U / (1 - k * U); }
static double nu_of(int64_t d) { return (3 * (double)d + 64) * U; }

typedef struct problem {
    cgam_rows rows;
    cgam_dplr_spec spec;
    double *Z, *D, *norm2, *w;
} problem;

static problem room(int64_t n, int64_t d, double a)
{
    problem t = {.Z = dense_room(n * d), .D = dense_room(n), .norm2 = dense_room(n)};
    t.w = dense_room(n);
    t.rows = (cgam_rows){t.Z, CGAM_F64, n, d, d, NULL, cgam_cpu_best(), NULL};
    t.spec = (cgam_dplr_spec){NULL, t.norm2, t.D, a, NULL, 0, 0, NULL};
    return t;
}

/* What points into itself, at its last place; norms from the rows. */
static const cgam_dplr_spec *placed(problem *t)
{
    int64_t n = t->rows.n, d = t->rows.d;
    t->spec.Z = &t->rows;
    for (int64_t i = 0; i < n; i++) {
        t->norm2[i] = 0;
        for (int64_t j = 0; j < d; j++) t->norm2[i] += t->Z[i * d + j] * t->Z[i * d + j];
    }
    return &t->spec;
}

static problem drawn(uint64_t stream, int64_t n, int64_t d, double a)
{
    cgam_rng rng = cgam_rng_stream(31, stream);
    problem t = room(n, d, a);
    double *Z = dense_normals(&rng, n * d, 1);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < d; j++) t.Z[i * d + j] = Z[i * d + j] * (i % 5 ? 1 : 8);
        t.D[i] = dense_between(&rng, -1, 3);
        t.w[i] = dense_between(&rng, 0.1, 0.9);
    }
    return t;
}

/* ---- Entries ---------------------------------------------------------------------------------- */

static double diagonal_formula(const cgam_dplr_spec *s, int64_t i)
{
    double load = s->a * s->norm2[i], w = s->w ? s->w[i] : 0;
    if (s->D) return 4 * U * (fabs(s->D[i]) + load + s->sigma * w * w) + load * nu_of(s->Z->d);
    double spread = s->sigma * w * (1 - w);
    return spread != 0 ? 4 * U * (fabs(spread) + fabs(s->level - spread)) : 0;
}

static double pivot_formula(const cgam_dplr_spec *s, int64_t i)
{
    double load = s->a * s->norm2[i], take = s->w ? s->sigma * s->w[i] : 0;
    return s->D ? 0 : 4 * U * (fabs(s->level) + take + load) + load * nu_of(s->Z->d);
}

TEST(the_diagonal_is_off_by_its_formula)
{
    for (int k = 0; k < 4; k++) {
        problem t = drawn((uint64_t)k, 12, 5, 0.3);
        const cgam_dplr_spec *s = placed(&t);
        if (k % 2) t.spec.D = NULL;
        t.spec.level = 1.5;
        if (k / 2) t.spec.w = t.w, t.spec.sigma = 0.7;
        for (int64_t i = 0; i < 12; i++) {
            double error, load = s->a * t.norm2[i], w = k / 2 ? t.w[i] : 0;
            double D = k % 2 ? 1.5 - load - 0.7 * w : t.D[i];
            CHECK_CLOSE(cgam_dplr_pivot(s, i, &error), D, 1e-13);
            CHECK_BOUND(error, pivot_formula(s, i), NEAR);
            CHECK_CLOSE(cgam_dplr_diagonal(s, i, &error), D + load + 0.7 * w * w, 1e-13);
            CHECK_BOUND(error, diagonal_formula(s, i), NEAR);
        }
        dense_reset();
    }
}

/* Within the slack that bounds have. */
static bool near(double got, double want) { return got >= want && got <= want * (1 + 0x1p-18); }

/* Where nothing is left but underflow: 2^-1022, or more where products are multiplied by much. */
TEST(underflow_is_counted)
{
    const double tiny = 0x1p-1074, lost = CGAM_TINY;
    problem t = room(2, 3, 1);
    double error, x[2] = {0, 0}, y[2], errors[2];
    const cgam_dplr_spec *s = placed(&t);
    t.norm2[0] = 8 * tiny;
    assert_true(cgam_dplr_diagonal(s, 0, &error) == 8 * tiny && near(error, lost));
    assert_true(cgam_dplr_diagonal(s, 1, &error) == 0 && error == 0);
    t.spec.D = NULL;
    t.spec.level = 0;
    assert_true(cgam_dplr_pivot(s, 0, &error) == -8 * tiny && near(error, 2 * lost));
    assert_true(cgam_dplr_pivot(s, 1, &error) == 0 && near(error, lost));
    t.spec.w = t.w;
    t.spec.sigma = 0.5;
    t.w[0] = 3 * tiny; /* the half of it, 1.5 tiny, is no double */
    assert_true(cgam_dplr_diagonal(s, 0, &error) == -2 * tiny && near(error, lost));
    t.spec.w = NULL;
    t.spec.sigma = 0;
    t.spec.D = t.D;
    CHECK_STATUS(env, cgam_dplr_apply_bounded(env, s, NULL, x, y, errors));
    assert_true(near(errors[0], 2 * lost) && near(errors[1], lost));
    const double scale[] = {5, 5};
    t.rows.scale = scale;
    CHECK_STATUS(env, cgam_dplr_apply_bounded(env, s, NULL, x, y, errors));
    assert_true(near(errors[0], 7 * lost) && near(errors[1], lost));
    dense_reset();
}

/* Row sums of what entries may be off by: each product twice as long or not. */
static double matrix_formula(const cgam_dplr_spec *s, const double *Z, bool all)
{
    int64_t n = s->Z->n, d = s->Z->d;
    double most = 0, factor = s->Z->scale ? nu_of(d) : 0, gamma = gamma_of((double)d + 2);
    for (int64_t i = 0; i < n; i++) {
        double sum = diagonal_formula(s, i);
        for (int64_t j = 0; j < n; j++) {
            double dot = 0, size = 0, lengths = sqrt(s->norm2[i] * s->norm2[j]);
            if (j == i) continue;
            for (int64_t c = 0; c < d; c++) {
                dot += Z[i * d + c] * Z[j * d + c];
                size += fabs(Z[i * d + c] * Z[j * d + c]);
            }
            double twice = U * fabs(dot) + pow(gamma_of((double)d + 1), 2) * size;
            bool again = all || s->a * gamma * lengths > 0x1p-46;
            double outer = s->w ? s->sigma * s->w[i] * s->w[j] : 0, value = s->a * dot;
            sum += s->a * ((again ? twice : gamma * lengths) + factor * lengths);
            sum += 2 * U * fabs(value);
            if (outer != 0) sum += U * (3 * outer + fabs(value + outer));
        }
        most = fmax(most, sum);
    }
    return most;
}

TEST(a_matrix_is_off_by_its_formula)
{
    static const int64_t sizes[][2] = {{2, 1}, {7, 3}, {20, 40}, {140, 7}, {150, 7}};
    double scale[150], error;
    for (int i = 0; i < 150; i++) scale[i] = 1;
    for (int k = 0; k < 5 * 4; k++) {
        int64_t n = sizes[k / 4][0], d = sizes[k / 4][1];
        problem t = drawn(100 + (uint64_t)k, n, d, 0.6);
        const cgam_dplr_spec *s = placed(&t);
        if (k % 2) t.spec.w = t.w, t.spec.sigma = 0.9;
        if (k / 2 % 2) t.rows.scale = scale;
        double *T = dense_room(n * n), *W = dense_matrix(n, d, t.Z, t.D, 0.6, t.spec.w, 0.9);
        CHECK_STATUS(env, cgam_dplr_matrix(env, s, true, T, &error));
        CHECK_BOUND(error, matrix_formula(s, t.Z, n * n * d <= 1 << 17),
                    1e-3 * (double)(d > 30) + NEAR);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) CHECK_CLOSE(T[i * n + j], W[i * n + j], error);
        dense_reset();
    }
}

/* A row without length, whose only entry is D = 0, beside others: T >= 0, and T > -x is proved from the
 * x on that all of the rounding adds up to. */
TEST(a_matrix_is_above_by_its_rounding)
{
    for (int k = 0; k < 3; k++) {
        int64_t n = k == 0 ? 2 : 60, d = k == 2 ? 80 : 4;
        problem t = drawn(200 + (uint64_t)k, n, d, k == 0 ? 0 : 0.01);
        memset(t.Z, 0, (size_t)d * sizeof *t.Z);
        for (int64_t i = 0; i < n; i++) t.D[i] = i ? 1 + 0.5 * (double)(i % 3) : 0;
        const cgam_dplr_spec *s = placed(&t);
        double trace = 0, largest = 0, *T = dense_room(n * n), error;
        for (int64_t i = 0; i < n; i++) {
            double entry = t.D[i] + s->a * t.norm2[i];
            trace += entry;
            largest = fmax(largest, entry);
        }
        CHECK_STATUS(env, cgam_dplr_matrix(env, s, true, T, &error));
        double gamma = gamma_of(2 * (double)n + 8);
        double least = error + 2 * U * largest + gamma / (1 - gamma) * trace;
        bool proved;
        CHECK_STATUS(env, cgam_dplr_above(env, s, -least * (1 + NEAR), &proved));
        assert_true(proved);
        CHECK_STATUS(env, cgam_dplr_above(env, s, -least * (1 - NEAR), &proved));
        assert_false(proved);
        CHECK_STATUS(env, cgam_dplr_above(env, s, 0, &proved));
        assert_false(proved);
        dense_reset();
    }
}

/* ---- Above a number, without a matrix --------------------------------------------------------- */

/* Memory KERNEL has a column of its own and D = -a |zeta|^2, so that T has a kernel; memory NEGATIVE a pivot
 * that the others make up for. Returns what T has to be lowered by for a proof. */
enum { KERNEL = 100, NEGATIVE = 57 };
static double tall_formula(const problem *t, int64_t k)
{
    const cgam_dplr_spec *s = &t->spec;
    int64_t n = t->rows.n, d = t->rows.d;
    double *M = dense_room(k * k), *B = dense_room(n * k), sum = 0, pivots = 0;
    double nu = t->rows.scale ? nu_of(d) : 0, products = 8 * U + gamma_of((double)n) + nu;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < d; j++) B[i * k + j] = sqrt(s->a) * t->Z[i * d + j];
        if (k > d) B[i * k + d] = sqrt(s->sigma) * t->w[i];
    }
    for (int64_t j = 0; j < k; j++) M[j * k + j] = 1;
    for (int64_t i = 0; i < n; i++) {
        double D = cgam_dplr_pivot(s, i, NULL), e = pivot_formula(s, i) + U * fabs(D), load = 0;
        if (i == KERNEL || i == NEGATIVE) {
            pivots = fmax(pivots, e);
            continue;
        }
        for (int64_t j = 0; j < k; j++) {
            load += B[i * k + j] * B[i * k + j];
            for (int64_t l = 0; l < k; l++) M[j * k + l] += B[i * k + j] * B[i * k + l] / D;
        }
        sum += load / D * (e / (D - e) + products);
    }
    const long double *inverse = dense_inverse(k, M);
    double b = 0, y = 0, m = 0, Q = cgam_dplr_pivot(s, NEGATIVE, NULL);
    for (int64_t i = NEGATIVE; i <= KERNEL; i += KERNEL - NEGATIVE)
        for (int64_t j = 0; j < k; j++) {
            double Y = 0;
            for (int64_t l = 0; l < k; l++) Y += (double)inverse[j * k + l] * B[i * k + l];
            b += B[i * k + j] * B[i * k + j];
            y += Y * Y;
            if (i == NEGATIVE) Q += B[i * k + j] * Y;
        }
    for (int64_t j = 0; j < k * k; j++) m += M[j] * M[j];
    b = sqrt(b);
    y = sqrt(y);
    m = sqrt(m);
    double gamma = gamma_of(12), off = pivots + (sum * (1 + nu_of(d)) + U) * y * y;
    off +=
        gamma_of(2 * (double)k + 8) * (2 * b * y + 2 * m * y * y) + 2 * nu * b * y + 8 * U * b * y;
    assert_true(Q > 0.01);
    return off + 8 * U * Q + gamma / (1 - gamma) * Q;
}

TEST(a_tall_operator_is_above_by_its_rounding)
{
    double *scale = dense_room(400);
    for (int k = 0; k < 8; k++) {
        int64_t n = k % 2 ? 193 : 400, d = 3;
        problem t = room(n, d, 0.25);
        for (int64_t i = 0; i < n; i++) {
            t.Z[i * d + 1] = (i % 2 ? 0x1p-4 : -0x1p-4) * (double)(1 + i % 3);
            t.Z[i * d + 2] = (i % 4 < 2 ? 0x1p-4 : -0x1p-4);
            t.D[i] = i % 3 ? 1 : 2;
            t.w[i] = i % 7 ? 0 : 0x1p-3;
        }
        t.Z[KERNEL * d] = 0x1p-9; /* a |zeta|^2 = 2^-20 */
        t.Z[KERNEL * d + 1] = t.Z[KERNEL * d + 2] = t.w[KERNEL] = 0;
        t.D[KERNEL] = -0x1p-20;
        t.Z[NEGATIVE * d + 1] = 2;
        t.Z[NEGATIVE * d + 2] = 1;
        t.D[NEGATIVE] = -0.25;
        t.w[0] = t.w[n - 1] = 2 * (t.w[NEGATIVE] = 0.5);
        if (k & 2) t.spec.w = t.w, t.spec.sigma = 0.25;
        for (int64_t i = 0; i < n; i++) scale[i] = 1;
        if (k & 4) t.rows.scale = scale;
        const cgam_dplr_spec *s = placed(&t);
        double least = tall_formula(&t, k & 2 ? 4 : 3), under;
        bool proved, nothing;
        CHECK_STATUS(env, cgam_dplr_above(env, s, -least * (1 + 1e-3), &proved));
        assert_true(proved);
        CHECK_STATUS(env, cgam_dplr_above(env, s, -least * (1 - 1e-3), &proved));
        assert_false(proved);
        /* the same by floors that come down and share what was made at the first */
        for (int low = 0; low < 2; low++) {
            double first = least / 900 * (low ? 1 - 1e-3 : 1 + 1e-3);
            under = first;
            CHECK_STATUS(env, cgam_dplr_above_near(env, s, 0, 1, &under, &nothing));
            CHECK_REL(under, first * (low ? 27000 : 900), 1e-12);
            assert_true(nothing);
        }
        under = least / 31; /* and nothing where that is more than is wanted */
        CHECK_STATUS(env, cgam_dplr_above_near(env, s, 0, least / 2, &under, &nothing));
        assert_true(under > least / 2);
        under = 1e-3;
        CHECK_STATUS(env, cgam_dplr_above_near(env, s, 0.5, 1, &under, &nothing));
        assert_false(nothing);
    }
    dense_reset();
}

/* Pivots by level: the least eigenvalue, found by halving what is proved. */
TEST(pivots_by_level_count_as_well)
{
    int64_t n = 200, d = 2;
    problem t = room(n, d, 0.25);
    double low = -4, high = 1;
    bool proved;
    for (int64_t i = 0; i < n; i++) t.Z[i * d + 1] = i % 2 ? 0x1p-3 : -0x1p-3;
    t.Z[0] = 2;
    t.Z[d + 1] = 2.5;
    t.spec.D = NULL;
    t.spec.level = 1;
    const cgam_dplr_spec *s = placed(&t);
    for (int step = 0; step < 60; step++) {
        double middle = 0.5 * (low + high);
        CHECK_STATUS(env, cgam_dplr_above(env, s, middle, &proved));
        *(proved ? &low : &high) = middle;
    }
    double *T = dense_gate(n, d, t.Z, 0.25), truth = dense_eigen(n, T, NULL)[0];
    CHECK_CLOSE(low, truth, 1e-11);
    CHECK_LE(low, truth + 1e-13);
    dense_reset();
}

/* Pivots that are small beside their loads, but safely above their rounding, will do where all are: T > 0. */
TEST(small_pivots_prove_too)
{
    problem t = room(200, 1, 1);
    for (int64_t i = 0; i < 200; i++) t.Z[i] = 1, t.D[i] = 1e-6;
    const cgam_dplr_spec *s = placed(&t);
    bool proved;
    CHECK_STATUS(env, cgam_dplr_above(env, s, 0.99e-6, &proved));
    assert_true(proved);
    CHECK_STATUS(env, cgam_dplr_above(env, s, 1.01e-6, &proved));
    assert_false(proved);
    dense_reset();
}

/* ---- Products --------------------------------------------------------------------------------- */

TEST(a_product_is_off_by_its_formula)
{
    static const int64_t sizes[][2] = {{6, 9}, {70, 90}, {6, 3}, {900, 3}};
    double *scale = dense_room(900);
    for (int k = 0; k < 4 * 4; k++) {
        int64_t n = sizes[k / 4][0], d = sizes[k / 4][1];
        problem t = drawn(300 + (uint64_t)k, n, d, k % 2 ? 0.02 : 0.1);
        for (int64_t i = 0; i < n; i++) scale[i] = 1;
        if (k / 2 % 2) t.rows.scale = scale;
        const cgam_dplr_spec *s = placed(&t);
        if (k % 2) t.spec.D = NULL, t.spec.level = 1.5;
        cgam_rng rng = cgam_rng_stream(32, (uint64_t)k);
        double *x = dense_normals(&rng, n, 1), *y = dense_room(n), *e = dense_room(n);
        double *sum = dense_room(d), *D = dense_room(n), lengths = 0,
               gamma = gamma_of((double)d + 2);
        for (int64_t i = 0; i < n; i++) {
            lengths += fabs(x[i]) * sqrt(t.norm2[i]);
            D[i] = k % 2 ? 1.5 - s->a * t.norm2[i] : t.D[i];
        }
        dense_combine(n, d, t.Z, x, sum);
        double *T = dense_matrix(n, d, t.Z, D, s->a, NULL, 0), *Tx = dense_room(n);
        double norm = dense_distance(d, sum, dense_room(d)), nu = k / 2 % 2 ? nu_of(d) : 0;
        dense_score(n, n, T, x, Tx);
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, s, &S));
        CHECK_STATUS(env, cgam_dplr_apply_bounded(env, s, S, x, y, e));
        double c = n < 512 ? 1 : (double)cgam_rows_chunks(&t.rows);
        double pair = (n * n * d <= 1 << 17 ? gamma * gamma : gamma) + nu;
        double part = (gamma_of((double)n / c + c + 16) + nu) * lengths;
        double row = s->a * ((gamma_of((double)d + 8) + nu) * norm + part);
        for (int64_t i = 0; i < n; i++) {
            double want = 0, load = s->a * t.norm2[i], length = sqrt(t.norm2[i]);
            for (int64_t j = 0; j < n && cgam_dplr_dense(S); j++)
                want += gamma_of((double)n + 8) * fabs(T[i * n + j] * x[j]);
            if (cgam_dplr_dense(S)) want += s->a * pair * length * lengths;
            else
                want =
                    row * length + (6 * U * (1 + fabs(D[i]) + load) + load * nu_of(d)) * fabs(x[i]);
            CHECK_BOUND(e[i], want, NEAR);
            CHECK_CLOSE(y[i], Tx[i], e[i]);
        }
    }
    dense_reset();
}

/* T = J + delta I, whose inverse is as large as its entries let it be known: |R| / (1 - |I - T R|). */
TEST(an_inverse_is_bounded_by_its_residual)
{
    for (int k = 0; k < 3; k++) {
        problem t = room(2, 2, 1);
        double delta = k == 0 ? 0x1p-10 : k == 1 ? 0x1p-45 : 0x1p-47, error, T[4], bound;
        t.Z[0] = t.Z[2] = 1;
        t.D[0] = t.D[1] = delta;
        const cgam_dplr_spec *s = placed(&t);
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, s, &S));
        CHECK_STATUS(env, cgam_dplr_matrix(env, s, true, T, &error));
        CHECK_STATUS(env, cgam_dplr_inverse_norm(S, s, &bound));
        double R = hypot(1 / delta, 1 / (2 + delta)), rest = error * R;
        if (k == 2) assert_true(isinf(bound) && rest > 0.5);
        else CHECK_LE(R / (1 - rest), bound * (1 + 1e-3));
        /* the products of T R are off by gamma of their terms, which are 1 / delta */
        if (k < 2) CHECK_LE(bound, R / (1 - rest - 8 * gamma_of(6) / delta) * (1 + NEAR));
        if (k == 1) assert_true(rest > 0.1);
        dense_reset();
    }
}

/* ---- The small system ------------------------------------------------------------------------- */

/* Whole numbers over powers of two: K = [-(I + B_R' D^-1 B_R), B_S'; B_S, D_S] without rounding, and z, f = K z. */
TEST(solutions_are_off_by_their_formula)
{
    static const double heart[] = {3, -3, 5, 5}, edge[] = {7, -2};
    double *scale = dense_room(12);
    for (int k = 0; k < 8; k++) {
        bool level = k & 1;
        int64_t n = 12, d = 4, m = k & 2 ? 2 : 0, size = d + m;
        problem t = room(n, d, 0.25);
        for (int64_t i = 0; i < n; i++) {
            scale[i] = 1;
            for (int64_t j = 0; j < d; j++) t.Z[i * d + j] = (i * 5 + j * j) % 3 ? 1 : -1;
            t.D[i] = level ? 1 : i % 3 ? 2 : 0.5;
        }
        for (int64_t b = 0; b < m; b++) { /* at 4 and 9; a |zeta|^2 = 2 = level */
            memset(t.Z + (4 + 5 * b) * d, 0, (size_t)d * sizeof *t.Z);
            t.Z[(4 + 5 * b) * d + 2 * b] = 2;
            t.Z[(4 + 5 * b) * d + 2 * b + 1] = b ? -2 : 2;
            t.D[4 + 5 * b] = 0;
        }
        if (k & 4) t.rows.scale = scale;
        if (level) t.spec.D = NULL, t.spec.level = 2;
        const cgam_dplr_spec *s = placed(&t);
        double *K = dense_room(size * size), *f = dense_room(size), z[6], all = 0, ratios = 0;
        double edges = 0, pivots = 0, nu = k & 4 ? nu_of(d) : 0, steep = 0, rows = 0, pi = 2 * U;
        double sums = gamma_of(cgam_rows_gram_roundings(n)) + 8 * U + nu;
        for (int64_t j = 0; j < d; j++) K[j * size + j] = -1;
        for (int64_t i = 0; i < n; i++) {
            double D = t.D[i], e = pivot_formula(s, i), load = 0.25 * t.norm2[i];
            const double *row = t.Z + i * d;
            if (m && (i == 4 || i == 9)) {
                int64_t b = d + i / 9;
                for (int64_t j = 0; j < d; j++) K[b * size + j] = K[j * size + b] = 0.5 * row[j];
                edges += load;
                pivots = fmax(pivots, e);
                continue;
            }
            for (int64_t j = 0; j < d; j++)
                for (int64_t l = 0; l < d; l++) K[j * size + l] -= 0.25 * row[j] * row[l] / D;
            ratios += load / D;
            all += load / D * (e / (D - e) + sums);
            pi = fmax(pi, e / (D - e) + 2 * U);
            steep = fmax(steep, 1 / D);
            rows += load / D / D;
        }
        double error = all + 2 * U * (1 + ratios) + (3 * U + nu) * sqrt(edges) + pivots, square = 0;
        const long double *inverse = dense_inverse(size, K);
        double gain = 0, off, off_edge, v[4], e[4], length = 0, first = 0;
        for (int64_t j = 0; j < size * size; j++) {
            square += K[j] * K[j];
            gain += (double)(inverse[j] * inverse[j]);
        }
        gain = m ? sqrt(gain) : 1;
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, s, &S));
        assert_int_equal(cgam_dplr_border(S, NULL), m);
        assert_true(isinf(cgam_dplr_solve_gain(S)) == (m > 0));
        CHECK_STATUS(env, cgam_dplr_prove_gain(S));
        CHECK_BOUND(cgam_dplr_pivot_off(S), pi, NEAR);
        rows = sqrt(rows);
        CHECK_BOUND(cgam_dplr_solve_gain(S),
                    steep + rows * gain * (rows + (m > 0)) + (m ? gain * (rows + 1) : 0), NEAR);
        for (int64_t j = 0; j < size; j++) z[j] = j < d ? heart[j] : edge[j - d];
        dense_score(size, size, K, z, f);
        for (int64_t j = 0; j < size; j++) {
            length += z[j] * z[j];
            first += f[j] * f[j];
            if (j >= d) assert_true(f[j] == 0);
        }
        double want = gamma_of((double)size + 16) * sqrt(first) +
                      (gamma_of((double)size + 16) * sqrt(square) + error) * sqrt(length);
        for (int known = 0; known < 2; known++) {
            double doubt = known ? 3 * want : 0;
            for (int64_t j = 0; j < d; j++) {
                v[j] = 0.5 * f[j];
                e[j] = -0.5 * z[j];
            }
            CHECK_STATUS(env, cgam_dplr_range_off(S, v, 0.5 * doubt, e, z + d, &off, &off_edge));
            CHECK_BOUND(off_edge, gain * (want + doubt), NEAR);
            CHECK_BOUND(off, 0.5 * gain * (want + doubt), NEAR);
            for (int64_t j = 0; j < d; j++) {
                v[j] = -2 * f[j];
                e[j] = 0.5 * z[j];
            }
            CHECK_STATUS(env,
                         cgam_dplr_reduce_off(S, v, 2 * doubt, f + d, e, z + d, &off, &off_edge));
            CHECK_BOUND(off_edge, gain * (want + doubt), NEAR);
            CHECK_BOUND(off, 0.5 * gain * (want + doubt), NEAR);
        }
        /* a residual of (1, 0, ..) and of (0, .., 1) is what it is */
        v[0] -= 2;
        CHECK_STATUS(env, cgam_dplr_reduce_off(S, v, 0, f + d, e, z + d, &off, &off_edge));
        CHECK_BOUND(off_edge, gain, NEAR);
        v[0] += 2;
        if (m) f[d] += 1;
        CHECK_STATUS(env, cgam_dplr_reduce_off(S, v, 0, f + d, e, z + d, &off, &off_edge));
        if (m) CHECK_BOUND(off_edge, gain, NEAR);
    }
    dense_reset();
}

/* Two memories far beyond criticality, among so many without length that no matrix is made of them: K is
 * diag(1 / (load - 1)), and known so badly that 1 - |I - K R| counts. */
TEST(a_gain_is_bounded_by_its_residual)
{
    int64_t n = 2100, d = 2;
    for (int k = 0; k < 3; k++) {
        double load = k == 0 ? 0x1p38 : k == 1 ? 0x1p40 : 0x1p42;
        problem t = room(n, d, 1);
        t.Z[0] = t.Z[d + 1] = sqrt(load);
        t.spec.D = NULL;
        t.spec.level = 1;
        const cgam_dplr_spec *s = placed(&t);
        OWNED(cgam_dplr) S = NULL;
        CHECK_STATUS(env, cgam_dplr_new(env, s, &S));
        CHECK_STATUS(env, cgam_dplr_prove_gain(S));
        double off, edge, e[2] = {0, 0}, v[2] = {1, 0}, R = sqrt(2) * (load - 1);
        double each = 4 * U + nu_of(d) + gamma_of(cgam_rows_gram_roundings(n)) + 8 * U;
        double left = (2 * each + 6 * U) * R;
        CHECK_STATUS(env, cgam_dplr_range_off(S, v, 0, e, e, &off, &edge));
        if (k == 2) assert_true(isinf(edge) && left > 0.5);
        else CHECK_REL(edge, R / (1 - left), k ? 2e-2 : 5e-3);
        if (k == 1) assert_true(left > 0.1);
        dense_reset();
    }
}

/* ---- No memory -------------------------------------------------------------------------------- */

static cgam_status every_proof(cgam_env *other, void *arg)
{
    const cgam_dplr_spec *s = arg;
    int64_t n = s->Z->n, d = s->Z->d;
    OWNED(cgam_dplr) S = NULL;
    double under = 1e-3, bound, off, x[400] = {0}, y[400], e[400], first[8] = {0};
    bool proved, nothing;
    cgam_status status = cgam_dplr_new(other, s, &S);
    if (status == CGAM_OK) status = cgam_dplr_above(other, s, -1, &proved);
    if (status == CGAM_OK && n > d)
        status = cgam_dplr_above_near(other, s, -1, 1, &under, &nothing);
    if (status == CGAM_OK) status = cgam_dplr_apply_bounded(other, s, S, x, y, e);
    if (status == CGAM_OK) status = cgam_dplr_inverse_norm(S, s, &bound);
    if (status == CGAM_OK && !cgam_dplr_dense(S)) {
        status = cgam_dplr_prove_gain(S);
        if (status == CGAM_OK) status = cgam_dplr_range_off(S, first, 0, first, first, &off, &off);
        if (status == CGAM_OK)
            status = cgam_dplr_reduce_off(S, first, 0, first, first, first, &off, &off);
    }
    return status;
}

TEST(proofs_cope_with_every_failed_allocation)
{
    static const int64_t sizes[][2] = {{4, 9}, {12, 3}, {200, 3}};
    for (int k = 0; k < 3; k++) {
        problem t = drawn(400 + (uint64_t)k, sizes[k][0], sizes[k][1], 0.01);
        for (int64_t i = 0; i < t.rows.n; i++) t.D[i] = i == 2 ? -0.2 : 1;
        placed(&t);
        assert_true(check_every_allocation(every_proof, &t.spec) > 8);
        dense_reset();
    }
}

TEST_GROUP(set_up, tear_down)

TEST(neighbours_of_a_double_are_those_of_the_c_library)
{
    static const double sizes[] = {0,           0x1p-1074, 0x1p-1073, 0x1p-1022, 1,       1.5,
                                   1 + 0x1p-52, 0x1p-60,   3e300,     DBL_MAX,   INFINITY};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double x = sign * sizes[k];
            assert_true(cgam_above(x) == nextafter(x, INFINITY));
            assert_true(cgam_below(x) == nextafter(x, -INFINITY));
        }
    assert_true(isnan(cgam_above(NAN)) && isnan(cgam_below(NAN)));
}
