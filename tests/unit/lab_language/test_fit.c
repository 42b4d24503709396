/* Projections from pairs: the ridge by its normal equations, leaving out by leaving out, low rank by
 * differences, rotations by what they keep. */
#include "io/array.h"
#include "lm/lens.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/objects.h"

#include "lab/language/fit.h"

#include "support/owned.h"

enum { N = 9, D = 14, VOCAB = 23, RANK = 3 };

static void draw(uint64_t stream, int64_t count, double *out)
{
    cgam_rng rng = cgam_rng_stream(7, stream);
    for (int64_t i = 0; i < count; i++) out[i] = cgam_rng_normal(&rng);
}

/* y = x A + noise, so that there is something to find. */
static void draw_pairs(int64_t n, double *x, double *y)
{
    double A[D * D];
    draw(1, n * D, x);
    draw(2, n * D, y);
    draw(3, (int64_t)D * D, A);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < D; j++) {
            y[i * D + j] = 0.3 * y[i * D + j] + x[i * D + j];
            for (int64_t k = 0; k < D; k++)
                y[i * D + j] += 0.3 * x[i * D + k] * (k % 4 ? 0 : A[k * D + j]);
        }
}

/* P (X'X + rho I) = Y'X + rho T, and products with it are those of the dual form. */
TEST(ridge_solves_its_equations)
{
    OWNED(cgam_env) env = object_env(2);
    double x[2 * N * D], y[2 * N * D], P[D * D], out[2 * N * D];
    for (int many = 0; many < 2; many++) /* fewer pairs than columns, and more */
        for (int to_zero = 0; to_zero < 2; to_zero++) {
            int64_t n = many ? 2 * N : N;
            draw_pairs(n, x, y);
            cgam_ridge_opts opts = cgam_ridge_opts_default();
            opts.to_zero = to_zero;
            opts.rho = 0.7;
            OWNED(cgam_ridge) r = NULL;
            CHECK_STATUS(env, cgam_ridge_new(env, n, D, x, y, &opts, &r));
            CHECK_STATUS(env, cgam_ridge_matrix(r, P));
            for (int64_t a = 0; a < D; a++)
                for (int64_t b = 0; b < D; b++) {
                    double left = opts.rho * P[a * D + b], right = 0;
                    for (int64_t i = 0; i < n; i++) {
                        right += y[i * D + a] * x[i * D + b];
                        for (int64_t k = 0; k < D; k++)
                            left += P[a * D + k] * x[i * D + k] * x[i * D + b];
                    }
                    CHECK_CLOSE(left, right + (a == b && !to_zero ? opts.rho : 0), 1e-10);
                }
            CHECK_STATUS(env, cgam_ridge_apply(r, n, x, out));
            for (int64_t i = 0; i < n; i++)
                for (int64_t a = 0; a < D; a++) {
                    double want = 0;
                    for (int64_t k = 0; k < D; k++) want += P[a * D + k] * x[i * D + k];
                    CHECK_CLOSE(out[i * D + a], want, 1e-11);
                }
        }
}

/* The formula against n fits without one pair each, at rho of all sizes. */
TEST_ENV(leaving_out_is_leaving_out)
{
    double x[N * D], y[N * D], some_x[N * D], some_y[N * D], out[D];
    draw_pairs(N, x, y);
    for (int to_zero = 0; to_zero < 2; to_zero++)
        for (double rho = 1e-3; rho < 2e3; rho *= 10) {
            cgam_ridge_opts opts = {.to_zero = to_zero, .rho = rho};
            cgam_ridge *all, *r;
            double formula, sum = 0;
            CHECK_STATUS(env, cgam_ridge_new(env, N, D, x, y, &opts, &all));
            CHECK_STATUS(env, cgam_ridge_left_out(all, rho, &formula));
            for (int64_t i = 0; i < N; i++) {
                int64_t used = 0;
                for (int64_t k = 0; k < N; k++) {
                    if (k == i) continue;
                    memcpy(some_x + used * D, x + k * D, D * sizeof *x);
                    memcpy(some_y + used++ * D, y + k * D, D * sizeof *x);
                }
                CHECK_STATUS(env, cgam_ridge_new(env, used, D, some_x, some_y, &opts, &r));
                CHECK_STATUS(env, cgam_ridge_apply(r, 1, x + i * D, out));
                for (int64_t j = 0; j < D; j++)
                    sum += (out[j] - y[i * D + j]) * (out[j] - y[i * D + j]) / N;
                cgam_ridge_free(r);
            }
            CHECK_REL(formula, sum, 1e-10);
            cgam_ridge_free(all);
        }
}

/* Nothing near the chosen rho does better, nor anything on a wide grid. */
TEST_ENV(the_least_error_is_chosen)
{
    double x[N * D], y[N * D], least, error;
    draw_pairs(N, x, y);
    cgam_ridge *r;
    CHECK_STATUS(env, cgam_ridge_new(env, N, D, x, y, NULL, &r));
    CHECK_STATUS(env, cgam_ridge_left_out(r, cgam_ridge_rho(r), &least));
    for (double f = 1e-6; f < 2e6; f *= 1.5) {
        CHECK_STATUS(env, cgam_ridge_left_out(r, f * cgam_ridge_rho(r), &error));
        CHECK_LE(least, error * (1 + 1e-9));
    }
    cgam_ridge_free(r);
    /* no x at all: whatever rho is, P = I */
    double P[D * D];
    memset(x, 0, sizeof x);
    CHECK_STATUS(env, cgam_ridge_new(env, N, D, x, y, NULL, &r));
    CHECK_STATUS(env, cgam_ridge_matrix(r, P));
    for (int64_t i = 0; i < (int64_t)D * D; i++) CHECK_CLOSE(P[i], i % (D + 1) == 0, 0);
    cgam_ridge_free(r);
}

/* What I + U'V of a rank leaves of P's results is the least possible: the squares of the singular
 * values past the rank, which add up to all of it; with all of them nothing is left. */
TEST_ENV(truncation_keeps_the_largest)
{
    double x[N * D], y[N * D], px[N * D], U[D * D], V[D * D], left[N + 1];
    draw_pairs(N, x, y);
    for (int to_zero = 0; to_zero < 2; to_zero++) {
        cgam_ridge_opts opts = {.to_zero = to_zero, .rho = 0.5};
        OWNED(cgam_ridge) r = NULL;
        CHECK_STATUS(env, cgam_ridge_new(env, N, D, x, y, &opts, &r));
        CHECK_STATUS(env, cgam_ridge_apply(r, N, x, px));
        for (int64_t rank = 1; rank <= N; rank++) {
            CHECK_STATUS(env, cgam_ridge_truncate(r, rank, U, V));
            left[rank] = 0;
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < D; j++) {
                    double sum = x[i * D + j];
                    for (int64_t k = 0; k < rank; k++) {
                        double a = 0;
                        for (int64_t m = 0; m < D; m++) a += V[k * D + m] * x[i * D + m];
                        sum += a * U[k * D + j];
                    }
                    left[rank] += (px[i * D + j] - sum) * (px[i * D + j] - sum);
                }
            for (int64_t a = 0; a < rank; a++)
                for (int64_t b = 0; b < a; b++) {
                    double dot = 0;
                    for (int64_t m = 0; m < D; m++) dot += U[a * D + m] * U[b * D + m];
                    CHECK_CLOSE(dot, 0, 1e-9);
                }
            if (rank > 1) CHECK_LE(left[rank], left[rank - 1]);
            /* each step takes off less than the one before */
            if (rank > 2)
                CHECK_LE(left[rank - 1] - left[rank], left[rank - 2] - left[rank - 1] + 1e-9);
        }
        CHECK_CLOSE(left[N], 0, 1e-18 + 1e-10 * left[1]);
        assert_true(left[1] > 1e-3);
        CHECK_FAILS(env, CGAM_E_ARG, cgam_ridge_truncate(r, D + 1, U, V));
    }
}

/* ---- Low rank ----------------------------------------------------------------------------- */
typedef struct sheet {
    float base[N * D], aim[N * D];
    double x[N * D], U[RANK * D], V[RANK * D];
} sheet;

static cgam_lens *draw_lens(cgam_env *env, bool centred, sheet *s)
{
    double Z[VOCAB * D], gain[D], bias[D], room[N * D];
    float fz[VOCAB * D], fg[D], fb[D];
    draw(11, (int64_t)VOCAB * D, Z);
    draw(12, D, gain);
    draw(13, D, bias);
    for (int i = 0; i < VOCAB * D; i++) fz[i] = (float)Z[i];
    for (int i = 0; i < D; i++) fg[i] = (float)(1 + 0.2 * gain[i]), fb[i] = (float)bias[i];
    draw(14, (int64_t)N * D, room);
    for (int i = 0; i < N * D; i++) s->base[i] = (float)room[i];
    draw(15, (int64_t)N * D, room);
    for (int i = 0; i < N * D; i++) s->aim[i] = (float)room[i];
    draw(16, (int64_t)N * D, s->x);
    draw(17, (int64_t)RANK * D, s->U);
    draw(18, (int64_t)RANK * D, s->V);
    for (int i = 0; i < RANK * D; i++) s->U[i] *= 0.3, s->V[i] *= 0.3;
    cgam_lens *lens;
    cgam_lens_parts parts = {.vocab = VOCAB,
                             .width = D,
                             .Z = fz,
                             .gain = fg,
                             .bias = centred ? fb : NULL,
                             .norm = {.epsilon = 1e-5, .centred = centred, .biased = centred}};
    CHECK_STATUS(env, cgam_lens_make(env, &parts, &lens));
    return lens;
}

TEST(derivatives_are_those_of_differences)
{
    OWNED(cgam_env) env = object_env(2);
    sheet s;
    for (int centred = 0; centred < 2; centred++) {
        OWNED(cgam_lens) lens = draw_lens(env, centred, &s);
        cgam_fit_aim aim = {N, s.base, s.aim, s.x};
        double kl, dU[RANK * D], dV[RANK * D];
        CHECK_STATUS(env, cgam_fit_divergence(lens, &aim, RANK, s.U, s.V, &kl, dU, dV));
        assert_true(kl > 0.1);
        /* f32 scores leave 1e-6 of noise in kl, differences over 2h = 0.02 then 5e-5, their cubic term
         * about as much */
        static const double h = 1e-2;
        for (int64_t i = 0; i < 2 * RANK * D; i++) {
            double *at = i < RANK * D ? &s.U[i] : &s.V[i - RANK * D], kept = *at, up, down;
            *at = kept + h;
            CHECK_STATUS(env, cgam_fit_divergence(lens, &aim, RANK, s.U, s.V, &up, NULL, NULL));
            *at = kept - h;
            CHECK_STATUS(env, cgam_fit_divergence(lens, &aim, RANK, s.U, s.V, &down, NULL, NULL));
            *at = kept;
            CHECK_CLOSE(i < RANK * D ? dU[i] : dV[i - RANK * D], (up - down) / (2 * h), 3e-4);
        }
    }
}

/* By hand, in double, from the lens's own dot products. */
TEST_ENV(the_divergence_is_kullback_and_leiblers)
{
    sheet s;
    OWNED(cgam_lens) lens = draw_lens(env, true, &s);
    cgam_fit_aim aim = {N, s.base, s.aim, s.x};
    double kl, want = 0;
    CHECK_STATUS(env, cgam_fit_divergence(lens, &aim, RANK, s.U, s.V, &kl, NULL, NULL));
    for (int64_t i = 0; i < N; i++) {
        float h[D];
        double t[VOCAB], p[VOCAB], st = 0, sp = 0;
        for (int64_t j = 0; j < D; j++) {
            double sum = (double)s.base[i * D + j] + s.x[i * D + j];
            for (int64_t k = 0; k < RANK; k++)
                for (int64_t m = 0; m < D; m++)
                    sum += s.U[k * D + j] * s.V[k * D + m] * s.x[i * D + m];
            h[j] = (float)sum;
        }
        for (int64_t m = 0; m < VOCAB; m++) {
            t[m] = exp(cgam_lens_dot(lens, CGAM_LENS_NORM, m, s.aim + i * D));
            p[m] = exp(cgam_lens_dot(lens, CGAM_LENS_NORM, m, h));
            st += t[m], sp += p[m];
        }
        for (int64_t m = 0; m < VOCAB; m++) want += t[m] / st * log(t[m] / st / (p[m] / sp)) / N;
    }
    CHECK_REL(kl, want, 1e-5);
    /* what is its own aim is 0 away from it */
    double none[RANK * D] = {0}, zero[N * D] = {0};
    aim.x = zero;
    aim.aim = s.base;
    CHECK_STATUS(env, cgam_fit_divergence(lens, &aim, RANK, none, none, &kl, NULL, NULL));
    CHECK_CLOSE(kl, 0, 1e-6);
}

TEST_ENV(the_optimiser_lowers_it)
{
    sheet s;
    OWNED(cgam_lens) lens = draw_lens(env, false, &s);
    cgam_fit_aim aim = {N, s.base, s.aim, s.x};
    cgam_fit_refined r;
    double kl, U[RANK * D], V[RANK * D], last = INFINITY;
    for (int64_t iterations = 0; iterations <= 40; iterations += 10) {
        memcpy(U, s.U, sizeof U);
        memcpy(V, s.V, sizeof V);
        CHECK_STATUS(env, cgam_fit_refine(lens, &aim, RANK, iterations, U, V, &r));
        CHECK_STATUS(env, cgam_fit_divergence(lens, &aim, RANK, U, V, &kl, NULL, NULL));
        CHECK_CLOSE(r.after, kl, 1e-6);
        CHECK_LE(r.after, last);
        assert_true(r.iterations <= iterations);
        last = r.after;
    }
    assert_true(last < 0.5 * r.before); /* 3 x 28 numbers for 9 queries: it can fit */
}

/* ---- Rotations and files ------------------------------------------------------------------ */
/* Lengths and angles stay, back undoes it, another seed is another rotation, and it mixes: a unit
 * vector spreads over all coordinates. */
TEST_ENV(a_turn_is_orthogonal)
{
    enum { WIDE = 37 }; /* odd: one coordinate has no neighbour */
    double x[WIDE * WIDE] = {0}, y[WIDE * WIDE];
    for (int i = 0; i < WIDE; i++) x[i * WIDE + i] = 1;
    CHECK_STATUS(env, cgam_fit_turn(env, 5, false, WIDE, WIDE, x));
    int small = 0;
    for (int a = 0; a < WIDE; a++)
        for (int b = 0; b < WIDE; b++) {
            double dot = 0;
            for (int j = 0; j < WIDE; j++) dot += x[a * WIDE + j] * x[b * WIDE + j];
            CHECK_CLOSE(dot, a == b, 1e-13);
            small += fabs(x[a * WIDE + b]) < 1e-4;
        }
    assert_true(small < WIDE);
    memcpy(y, x, sizeof y);
    CHECK_STATUS(env, cgam_fit_turn(env, 5, true, WIDE, WIDE, y));
    for (int i = 0; i < WIDE * WIDE; i++) CHECK_CLOSE(y[i], i % (WIDE + 1) == 0, 1e-13);
    memcpy(y, x, sizeof y);
    CHECK_STATUS(env, cgam_fit_turn(env, 6, true, WIDE, WIDE, y));
    assert_true(fabs(y[0] - 1) > 1e-3);
}

TEST_ENV(projections_are_read_or_refused)
{
    char path[] = "/tmp/cgam-fit-XXXXXX.safetensors";
    int file = mkstemps(path, 12);
    assert_true(file >= 0);
    close(file);
    double P[9] = {2, 0, 0, 1, 0, 0, 0, 0, 3}, *got;
    float x[6] = {1, 2, 3, 4, 5, 6};
    cgam_named_array one = {"P", CGAM_F64, 2, (int64_t[]){3, 3}, P};
    CHECK_STATUS(env, cgam_arrays_write(env, path, 1, &one));
    CHECK_STATUS(env, cgam_projection_read(env, path, 3, &got));
    CHECK_STATUS(env, cgam_projection_apply(env, got, 3, 2, x));
    static const float want[] = {2, 1, 9, 8, 4, 18};
    for (int i = 0; i < 6; i++) CHECK_CLOSE((double)x[i], (double)want[i], 0);
    cgam_free(env, got);
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_projection_read(env, path, 4, &got));
    CHECK_MESSAGE(env, "is 3 x 3, the model's width is 4");
    assert_null(got);
    one.ndim = 1;
    one.shape = (int64_t[]){9};
    CHECK_STATUS(env, cgam_arrays_write(env, path, 1, &one));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_projection_read(env, path, 3, &got));
    CHECK_MESSAGE(env, "has 1 dimensions, expected 2");
    unlink(path);
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_projection_read(env, path, 3, &got));
}

TEST_ENV(what_cannot_be_fitted_is_said)
{
    double x[N * D], y[N * D];
    draw_pairs(N, x, y);
    cgam_ridge *r;
    CHECK_FAILS(env, CGAM_E_ARG, cgam_ridge_new(env, 1, D, x, y, NULL, &r));
    CHECK_MESSAGE(env, "too few");
    CHECK_FAILS(env, CGAM_E_ARG, cgam_ridge_new(env, 0, D, x, y, NULL, &r));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_ridge_new(env, N, 0, x, y, NULL, &r));
    const cgam_ridge_opts firm = {.rho = 1};
    CHECK_STATUS(env,
                 cgam_ridge_new(env, 1, D, x, y, &firm, &r)); /* a pair, and something to hold it */
    CHECK_FAILS(env, CGAM_E_ARG, cgam_ridge_truncate(r, 0, x, y));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_ridge_truncate(r, D + 1, x, y));
    cgam_ridge_free(r);
    CHECK_FAILS(env, CGAM_E_ARG,
                cgam_ridge_new(env, N, D, x, y, &(cgam_ridge_opts){.rho = -1}, &r));
    y[D + 2] = (double)NAN;
    CHECK_FAILS(env, CGAM_E_VALUE, cgam_ridge_new(env, N, D, x, y, NULL, &r));
    CHECK_MESSAGE(env, "pair 1, column 2");
    x[D + 1] = (double)INFINITY;
    CHECK_FAILS(env, CGAM_E_VALUE, cgam_ridge_new(env, N, D, x, y, NULL, &r));
    CHECK_MESSAGE(env, "pair 1, column 1");
    assert_null(r);
}

static int fit_all(cgam_env *env, void *arg)
{
    (void)arg;
    double x[N * D], y[N * D], out[N * D], U[2 * D], V[2 * D];
    OWNED(cgam_ridge) r = NULL;
    draw_pairs(N, x, y);
    TRY(cgam_ridge_new(env, N, D, x, y, &(cgam_ridge_opts){true, 0.3}, &r));
    TRY(cgam_ridge_apply(r, N, x, out));
    TRY(cgam_ridge_truncate(r, 2, U, V));
    TRY(cgam_fit_turn(env, 1, false, N, D, out));
    return CGAM_OK;
}

TEST(every_allocation_may_fail) { check_every_allocation(fit_all, NULL); }
