/* The smallest eigenvalue of diag(D) + a Z Z' + sigma w w': value, bracket and vector against LAPACK
 * on the n x n matrix. */
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include "num/dplr.h"

typedef struct problem {
    int64_t n, d;
    double *Z, *D, *norm2, *w;
    double a, sigma;
    cgam_rows rows;
} problem;

static problem with_rows(int64_t n, int64_t d, double *Z, double a)
{
    problem t = {.n = n, .d = d, .Z = Z, .a = a, .D = dense_room(n), .norm2 = dense_room(n)};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) t.norm2[i] += Z[i * d + j] * Z[i * d + j];
    t.rows = (cgam_rows){Z, CGAM_F64, n, d, d, NULL, cgam_cpu_best(), NULL};
    return t;
}

static cgam_dplr_spec spec_of(const problem *t)
{
    return (cgam_dplr_spec){&t->rows, t->norm2, t->D, t->a, t->w, t->sigma, 0, NULL};
}

/* From above the smallest eigenvalue a floor comes down until it is below that, and no further. */
static void check_floor(const cgam_dplr_spec *spec, double want, double scale, const char *what)
{
    double gap = 1e-3 * scale, under = 1e-3 * gap;
    bool nothing;
    CHECK_STATUS(env, cgam_dplr_above_near(env, spec, want + gap, scale, &under, &nothing));
    if (!(under >= 0.99 * gap && under <= 30 * gap) || nothing)
        fail_msg("%s: proved %.3g below, %.3g is true", what, under, gap);
    under = 1e-3 * gap;
    CHECK_STATUS(env, cgam_dplr_above_near(env, spec, want - gap, scale, &under, &nothing));
    if (under != 1e-3 * gap || !nothing)
        fail_msg("%s: %.3g below is too far, %.3g was asked for", what, under, 1e-3 * gap);
}

static void check(const problem *t, const char *what)
{
    int64_t n = t->n;
    double *T = dense_matrix(n, t->d, t->Z, t->D, t->a, t->w, t->sigma);
    const double *values = dense_eigen(n, T, NULL);
    double want = values[0], scale = 0, lo, hi;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(t->D[i]) + t->a * t->norm2[i] +
                                (t->w ? t->sigma * t->w[i] * t->w[i] : 0));
    /* what LAPACK and the forming of T may be off by */
    double noise = (double)n * 0x1p-52 * fmax(scale, fmax(fabs(want), fabs(values[n - 1])));
    cgam_dplr_spec spec = spec_of(t);
    cgam_lowest low;
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    if (!(lo <= want + noise && want - noise <= hi))
        fail_msg("%s: free bracket [%.17g, %.17g] misses %.17g", what, lo, hi, want);
    CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-12, true, &low));
    if (!(fabs(low.value - want) <= 1e-12 * scale + noise))
        fail_msg(
            "%s, %lld x %lld\n  got     %.17g\n  want    %.17g\n  off by  %.3g\n  allowed %.3g",
            what, (long long)n, (long long)t->d, low.value, want, fabs(low.value - want),
            1e-12 * scale + noise);
    if (!(low.lo <= want + noise && want - noise <= low.hi && low.lo <= low.value))
        fail_msg("%s: bracket [%.17g, %.17g] misses %.17g", what, low.lo, low.hi, want);
    /* Cholesky's method proves to gamma_{2n+8} of the trace, taken twice: 2 (n + 4) of the noise */
    if (!(low.hi - low.lo <= 1e-12 * scale + 3 * (double)(n + 4) * noise + 0x1p-1074))
        fail_msg("%s: bracket %.3g wide, scale %.3g", what, low.hi - low.lo, scale);
    /* a unit vector whose Rayleigh quotient is the value */
    double square = 0, quotient = 0, *Tv = dense_room(n);
    dense_score(n, n, T, low.vector, Tv);
    for (int64_t i = 0; i < n; i++) {
        square += low.vector[i] * low.vector[i];
        quotient += low.vector[i] * Tv[i];
    }
    CHECK_CLOSE(square, 1, 1e-13);
    CHECK_CLOSE(quotient, want, 2e-12 * scale + 2 * noise);
    cgam_free(env, low.vector);
    CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-12, false, &low));
    assert_null(low.vector);
    CHECK_CLOSE(low.value, want, 1e-12 * scale + noise);
    bool below;
    CHECK_STATUS(env, cgam_dplr_below(env, &spec, want + 1e-6 * scale + 8 * noise, &below));
    if (!below && scale > 0) fail_msg("%s: no vector below %.17g was found", what, want);
    CHECK_STATUS(env, cgam_dplr_below(env, &spec, want - noise, &below));
    if (below) fail_msg("%s: a vector below the smallest eigenvalue %.17g", what, want);
    if (n > CGAM_DPLR_SMALL && n > t->d && t->a > 0) check_floor(&spec, want, scale, what);
    dense_reset();
}

static const int64_t shapes[][2] = {{1, 1},  {2, 1},    {10, 3},  {30, 29}, {60, 40},  {60, 8},
                                    {70, 3}, {150, 10}, {20, 20}, {7, 30},  {300, 12}, {400, 5}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST(of_the_overlaps_of_memories)
{
    cgam_rng rng = cgam_rng_stream(5, 0);
    for (int kind = 0; kind < DENSE_KINDS; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            int64_t n = shapes[s][0], d = shapes[s][1];
            problem t = with_rows(n, d, dense_bank(&rng, (dense_kind)kind, n, d), 1);
            for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
            check(&t, "overlaps");
        }
    }
}

/* Norms equal to some digits: the bottom of the spectrum is a cluster about as wide. */
TEST(of_memories_with_almost_equal_norms)
{
    cgam_rng rng = cgam_rng_stream(5, 1);
    for (int k = 0; k < 120; k++) {
        int64_t n = shapes[k % SHAPES][0], d = shapes[k % SHAPES][1];
        double *Z = dense_bank(&rng, k % 2 ? DENSE_CLUSTER : DENSE_UNIT, n, d);
        double spread = dense_between_log(&rng, 1e-15, 1e-2);
        for (int64_t i = 0; i < n; i++) {
            double factor = 1 + spread * cgam_rng_normal(&rng);
            for (int64_t j = 0; j < d; j++)
                Z[i * d + j] = k % 3 ? factor * Z[i * d + j] : (double)(float)Z[i * d + j];
        }
        problem t = with_rows(n, d, Z, 1);
        for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
        check(&t, "almost equal norms");
    }
}

TEST(of_the_hessian_of_the_energy)
{
    cgam_rng rng = cgam_rng_stream(5, 2);
    for (int k = 0; k < 200; k++) {
        int64_t n = shapes[k % SHAPES][0], d = shapes[k % SHAPES][1];
        double alpha = k % 5 ? dense_between(&rng, 0, 0.6) : 0;
        double factor = dense_between_log(&rng, 0.1, 100);
        problem t = with_rows(n, d, dense_bank(&rng, (dense_kind)(k % DENSE_KINDS), n, d), alpha);
        t.w = dense_normals(&rng, n, dense_between(&rng, 0.1, 8));
        dense_softmax(n, 1, t.w, t.w);
        t.sigma = factor;
        for (int64_t i = 0; i < n; i++) t.D[i] = 1 - alpha * t.norm2[i] - factor * t.w[i];
        check(&t, "Hessian");
    }
}

TEST(of_a_diagonal)
{
    cgam_rng rng = cgam_rng_stream(5, 3);
    for (int64_t n = 1; n < 30; n++) {
        problem t = with_rows(n, 4, dense_bank(&rng, DENSE_GAUSS, n, 4), 0);
        for (int64_t i = 0; i < n; i++) t.D[i] = cgam_rng_normal(&rng);
        check(&t, "diagonal");
    }
}

/* ---- What proves a bracket, written down once more ---------------------------------------------- */

#define U 0x1p-53
static double gamma_of(double k) { return k * U / (1 - k * U); }

/* A bracket by the n x n matrix, T / 2^power: from above the quotient of the vector, from below what Cholesky's method proves at
 * its first try; each with its rounding. */
static void check_dense(const problem *t, double near)
{
    int64_t n = t->n;
    int power = 0;
    double *T = dense_room(n * n), error, size = 0, tall = 0, trace = 0, rounding = 0;
    cgam_dplr_spec spec = spec_of(t);
    cgam_lowest low;
    CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-15, true, &low));
    CHECK_STATUS(env, cgam_dplr_matrix(env, &spec, true, T, &error));
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) size = fmax(size, fabs(T[i * n + j]));
    frexp(size, &power);
    for (int64_t i = 0; i < n * n; i++) T[i] = ldexp(T[i], -power);
    error = ldexp(error, -power);
    const double *x = low.vector, value = ldexp(low.value, -power);
    long double total = 0, abs = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            double entry = j <= i ? T[i * n + j] : T[j * n + i];
            total += (long double)x[i] * entry * x[j];
            abs += fabsl((long double)x[i] * entry * x[j]);
        }
        square += (long double)x[i] * x[i];
        tall = fmax(tall, fabs(T[i * n + i] - value));
    }
    double quotient = (double)(total / square), n_ = (double)n;
    double above = gamma_of(2 * n_ + 8) * (double)(abs / square) + 2 * n_ * U * fabs(quotient);
    double noise = 8 * U * (double)(abs / square); /* of the quotient, which was made in double */
    CHECK_CLOSE(ldexp(low.hi, -power) - quotient, above + error, near * (above + error) + noise);
    double gamma = gamma_of(2 * n_ + 8), cholesky = gamma / (1 - gamma);
    double step = error + cholesky * n_ * tall + 8 * U * (tall + fabs(value));
    for (int64_t i = 0; i < n; i++) {
        double entry = T[i * n + i] - (value - step);
        trace += fmax(entry, 0);
        rounding = fmax(rounding, U * fabs(entry));
    }
    double below = step + error + rounding + cholesky * trace;
    CHECK_CLOSE(value - ldexp(low.lo, -power), below, near * below + 2 * U * fabs(value));
    cgam_free(env, low.vector);
}

TEST(by_a_matrix_the_bracket_is_its_rounding)
{
    /* [[1, 1], [1, 1]] / 2: the smallest eigenvalue is 0, next to which every rounding shows */
    static double rows[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.5};
    problem t = with_rows(2, 4, rows, 1);
    t.D[0] = t.D[1] = -0.5;
    check_dense(&t, 1e-5);
    t.D[1] = 3.5; /* and one entry is the largest by far */
    check_dense(&t, 1e-3);
    cgam_rng rng = cgam_rng_stream(5, 5);
    for (int k = 0; k < 4; k++) {
        int64_t n = k ? 12 * k : 3, d = 40;
        t = with_rows(n, d, dense_bank(&rng, DENSE_NORMS, n, d), 1);
        for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
        check_dense(&t, 1e-3);
    }
    dense_reset();
}

/* And of Lanczos' vector, without a matrix. */
TEST(by_a_vector_the_bound_is_its_rounding)
{
    cgam_rng rng = cgam_rng_stream(5, 6);
    int64_t n = 300, d = 3;
    double *scale = dense_room(n);
    for (int k = 0; k < 4; k++) {
        problem t = with_rows(n, d, dense_bank(&rng, DENSE_UNIT, n, d), 0.25);
        for (int64_t i = 0; i < n; i++) {
            t.D[i] = i == 7 ? -3 : dense_between(&rng, 1, 3);
            scale[i] = 1;
        }
        t.w = k & 1 ? dense_normals(&rng, n, 1) : NULL;
        t.sigma = 0.01;
        if (k & 2) t.rows.scale = scale;
        cgam_dplr_spec spec = spec_of(&t);
        cgam_lowest low;
        CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-13, true, &low));
        const double *x = low.vector;
        double gamma = gamma_of((double)n + 8), off = 0, lengths = 0, wx = 0, w2 = 0;
        double *sum = dense_room(d), nu = k & 2 ? (3 * (double)d + 64) * U : 0;
        long double total = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            off += x[i] * x[i] * fabs(t.D[i]) * gamma;
            lengths += fabs(x[i]) * sqrt(t.norm2[i]);
            total += (long double)t.D[i] * x[i] * x[i];
            square += (long double)x[i] * x[i];
            if (t.w) wx += t.w[i] * x[i], w2 += t.w[i] * t.w[i];
        }
        dense_combine(n, d, t.Z, x, sum);
        double norm = dense_distance(d, sum, dense_room(d)), dt = (gamma + nu) * lengths;
        off += 0.25 * (2 * norm * dt + dt * dt + norm * norm * gamma_of((double)d + 4));
        if (t.w) off += 0.01 * gamma * 3 * w2;
        total += 0.25L * norm * norm + (t.w ? 0.01L * wx * wx : 0);
        off = (off + gamma * fabs((double)total)) / (double)square + 8 * U * fabs((double)total);
        CHECK_CLOSE((double)(low.hi - total / square), off, 0.02 * off);
        CHECK_LE(low.lo, low.value);
        CHECK_LE(low.hi - low.lo, 1e-10);
        cgam_free(env, low.vector);
    }
    dense_reset();
}

/* The free bracket: [-1, 1] on the diagonal, d rows of length, n - d without: the smallest D from below, and from above the least
 * entry of the diagonal or the d-th of the pivots. */
TEST(the_free_bracket_is_made_of_pivots)
{
    static double rows[6] = {4, 4, 4, 0.5, 0, 0}; /* d = 1 */
    static const double D[6] = {-1, 3, 2, 0.5, 1, 0.75};
    problem t = with_rows(6, 1, rows, 1);
    double lo, hi;
    for (int i = 0; i < 6; i++) t.D[i] = D[i];
    cgam_dplr_spec spec = spec_of(&t);
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    CHECK_CLOSE(lo, -1, 4 * U);
    CHECK_CLOSE(hi, 0.5, 4 * U); /* one pivot is below it, and the rank is one */
    assert_true(lo < -1 && hi > 0.5);
    t.w = t.norm2;
    t.sigma = 1e-9;
    spec = spec_of(&t);
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    CHECK_CLOSE(hi, 0.75, 4 * U); /* rank two; the diagonal has 0.75 too */
    t.D[5] = 0.6;
    t.D[4] = 0.55;
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    CHECK_CLOSE(hi, 0.55, 4 * U); /* which the diagonal has */
    t.a = 0;
    t.w = NULL;
    spec = spec_of(&t);
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    assert_true(lo == -1 && hi == -1); /* diagonal */
    t.w = t.norm2;
    t.sigma = 1;
    spec = spec_of(&t);
    CHECK_STATUS(env, cgam_dplr_bracket(env, &spec, &lo, &hi));
    CHECK_CLOSE(hi, 0.5, 4 * U); /* w alone has rank one; the diagonal has 0.55 */
    dense_reset();
}

/* The largest entries are in the last rows, so much larger than those of the first that scaled by these they are infinite. */
TEST(by_a_matrix_of_entries_far_apart)
{
    static double rows[] = {1e-200, 0, 0, 0, 1e100, 0, 0, 1e100, 0};
    problem t = with_rows(3, 3, rows, 1);
    cgam_lowest low;
    t.D[0] = 1e-200;
    t.D[1] = t.D[2] = -1e200;
    cgam_dplr_spec spec = spec_of(&t); /* 1e-200 and [[0, 1], [1, 0]] 1e200 */
    CHECK_STATUS(env, cgam_dplr_lowest(env, &spec, 1e-15, false, &low));
    CHECK_REL(low.value, -1e200, 1e-14);
    assert_true(low.lo <= -1e200 && -1e200 <= low.hi && low.hi - low.lo < 1e187);
    dense_reset();
}

static int lowest(cgam_env *other, void *arg)
{
    cgam_dplr_spec spec = spec_of(arg);
    cgam_lowest low = {0};
    cgam_status status = cgam_dplr_lowest(other, &spec, 1e-12, true, &low);
    cgam_free(other, low.vector);
    bool below;
    if (status == CGAM_OK) status = cgam_dplr_below(other, &spec, low.hi - 1, &below);
    return status;
}

TEST(it_copes_with_every_failed_allocation)
{
    cgam_rng rng = cgam_rng_stream(5, 4);
    for (int k = 0; k < 2; k++) {
        int64_t n = k ? 4 : 12, d = k ? 9 : 3;
        problem t = with_rows(n, d, dense_bank(&rng, DENSE_NORMS, n, d), 1);
        for (int64_t i = 0; i < n; i++) t.D[i] = -t.norm2[i];
        assert_true(check_every_allocation(lowest, &t) > 4);
        dense_reset();
    }
}

TEST_GROUP(set_up, tear_down)
