/* Products with a tall stored matrix: right, and the same bits on any number of threads.
 * ctest: labels=threads */
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"

#include "num/cpu/widen.h"
#include "num/rows.h"

#include "support/owned.h"

static cgam_env *env_of(int threads)
{
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    cgam_env *env;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    return env;
}

typedef struct sample {
    cgam_rows Z;
    double *wide; /* [n, d] with the scale */
} sample;

static sample make(cgam_rng *rng, cgam_dtype dtype, int64_t n, int64_t d, int64_t gap, bool scaled)
{
    sample s;
    int64_t stride = d + gap;
    double *values = dense_normals(rng, n * stride, 1), *data = dense_room(n * stride),
           *scale = NULL;
    cgam_narrow(dtype, values, n * stride, data);
    s.wide = dense_room(n * d);
    if (scaled) {
        scale = dense_room(n);
        for (int64_t i = 0; i < n; i++) scale[i] = dense_between(rng, 0.5, 2);
    }
    for (int64_t i = 0; i < n; i++) {
        const char *row = (const char *)data + (size_t)(i * stride) * cgam_dtype_size(dtype);
        cgam_widen(dtype, row, d, s.wide + i * d);
        for (int64_t j = 0; j < d && scaled; j++) s.wide[i * d + j] *= scale[i];
    }
    s.Z = (cgam_rows){data, dtype, n, d, stride, scale, cgam_cpu_best(), NULL};
    return s;
}

/* Sizes that fill one chunk, several, more than CHUNKS_MAX times the smallest, and odd ones. */
static const struct {
    int64_t n, d, gap;
} sizes[] = {{1, 1, 0},   {1, 70, 0},    {7, 3, 2},     {255, 5, 0},   {256, 5, 0},
             {257, 9, 1}, {1000, 17, 0}, {3000, 40, 3}, {20011, 6, 0}, {300, 700, 0}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

TEST(chunks_cover_all_rows_once)
{
    for (int64_t n = 1; n < 100000; n += 1 + n / 7) {
        cgam_rows Z = {.n = n, .d = 1, .stride = 1, .dtype = CGAM_F64};
        int64_t chunks = cgam_rows_chunks(&Z);
        assert_int_equal(cgam_rows_chunk_begin(&Z, 0), 0);
        assert_int_equal(cgam_rows_chunk_begin(&Z, chunks), n);
        for (int64_t k = 0; k < chunks; k++)
            assert_true(cgam_rows_chunk_begin(&Z, k) < cgam_rows_chunk_begin(&Z, k + 1));
    }
}

TEST(products_are_the_sums_they_say)
{
    OWNED(cgam_env) env = env_of(2);
    cgam_rng rng = cgam_rng_stream(3, 0);
    for (int k = 0; k < SIZES; k++) {
        for (int t = 0; t < CGAM_CPU_DTYPES; t++) {
            int64_t n = sizes[k].n, d = sizes[k].d;
            sample s = make(&rng, (cgam_dtype)t, n, d, sizes[k].gap, t % 2);
            double *x = dense_normals(&rng, d, 1), *w = dense_normals(&rng, n, 1);
            double *got = dense_room(n), *want = dense_room(n);
            dense_score(n, d, s.wide, x, want);
            CHECK_STATUS(env, cgam_rows_score(env, &s.Z, x, got));
            /* (d + 3) roundings of sums of about d products of normals */
            CHECK_CLOSE_ALL(got, want, n, (double)(d + 3) * 0x1p-53 * 8 * (double)d);
            double *sum = dense_normals(&rng, d, 1), *sums = dense_room(d);
            dense_combine(n, d, s.wide, w, sums);
            CHECK_STATUS(env, cgam_rows_combine(env, &s.Z, w, sum));
            CHECK_CLOSE_ALL(sum, sums, d, (double)(n + 3) * 0x1p-53 * 8 * (double)n);
            int64_t last = n - 1;
            double *row = dense_room(d);
            cgam_rows_get(&s.Z, last, 1, row);
            CHECK_CLOSE_ALL(row, s.wide + last * d, d, 0);
            dense_reset();
        }
    }
}

TEST(several_vectors_give_the_bits_of_each_alone)
{
    enum { COUNT = 5 };
    OWNED(cgam_env) env = env_of(2);
    cgam_rng rng = cgam_rng_stream(3, 1);
    for (int k = 0; k < SIZES; k++) {
        int64_t n = sizes[k].n, d = sizes[k].d;
        sample s = make(&rng, (cgam_dtype)(k % CGAM_CPU_DTYPES), n, d, sizes[k].gap, k % 3 == 0);
        double *X = dense_normals(&rng, COUNT * d, 1), *W = dense_normals(&rng, COUNT * n, 1);
        double *scores = dense_room(COUNT * n), *sums = dense_room(COUNT * d);
        double *alone = dense_room(n), *sum = dense_room(d);
        CHECK_STATUS(env, cgam_rows_score_many(env, &s.Z, COUNT, X, scores));
        CHECK_STATUS(env, cgam_rows_combine_many(env, &s.Z, COUNT, W, sums));
        for (int v = 0; v < COUNT; v++) {
            CHECK_STATUS(env, cgam_rows_score(env, &s.Z, X + v * d, alone));
            assert_memory_equal(alone, scores + v * n, (size_t)n * sizeof *alone);
            CHECK_STATUS(env, cgam_rows_combine(env, &s.Z, W + v * n, sum));
            assert_memory_equal(sum, sums + v * d, (size_t)d * sizeof *sum);
        }
        dense_reset();
    }
}

TEST(bits_do_not_depend_on_threads)
{
    static const int threads[] = {1, 2, 5};
    cgam_rng rng = cgam_rng_stream(3, 2);
    for (int k = 0; k < SIZES; k++) {
        int64_t n = sizes[k].n, d = sizes[k].d;
        sample s = make(&rng, (cgam_dtype)(k % CGAM_CPU_DTYPES), n, d, sizes[k].gap, k % 2);
        double *x = dense_normals(&rng, d, 1), *w = dense_normals(&rng, n, 1);
        double *scores[3], *sums[3], *grams[3], *outers[3];
        for (int t = 0; t < 3; t++) {
            OWNED(cgam_env) env = env_of(threads[t]);
            scores[t] = dense_room(n);
            sums[t] = dense_room(d);
            grams[t] = dense_room(d * d);
            CHECK_STATUS(env, cgam_rows_score(env, &s.Z, x, scores[t]));
            CHECK_STATUS(env, cgam_rows_combine(env, &s.Z, w, sums[t]));
            CHECK_STATUS(env, cgam_rows_gram(env, &s.Z, w, grams[t], d));
            assert_memory_equal(scores[t], scores[0], (size_t)n * sizeof *x);
            assert_memory_equal(sums[t], sums[0], (size_t)d * sizeof *x);
            assert_memory_equal(grams[t], grams[0], (size_t)(d * d) * sizeof *x);
            if (n <= 1000) {
                outers[t] = dense_room(n * n);
                CHECK_STATUS(env, cgam_rows_gram_outer(env, &s.Z, outers[t]));
                assert_memory_equal(outers[t], outers[0], (size_t)(n * n) * sizeof *x);
            }
        }
        dense_reset();
    }
}

TEST(gram_matrices_are_their_sums)
{
    OWNED(cgam_env) env = env_of(2);
    cgam_rng rng = cgam_rng_stream(3, 3);
    static const struct {
        int64_t n, d, pad;
    } cases[] = {{1, 1, 0},    {5, 3, 0},    {3, 5, 2},   {300, 20, 1},
                 {40, 270, 0}, {270, 30, 0}, {520, 8, 0}, {60, 700, 3}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int64_t n = cases[k].n, d = cases[k].d, ldc = d + cases[k].pad;
        sample s = make(&rng, (cgam_dtype)(k % CGAM_CPU_DTYPES), n, d, 0, k % 2);
        double *w = dense_normals(&rng, n, 1), *C = dense_room(d * ldc), *O = dense_room(n * n);
        for (int64_t i = 0; i < d * ldc; i++) C[i] = (double)i; /* C is added to */
        const double *weights = k % 3 ? w : NULL;
        CHECK_STATUS(env, cgam_rows_gram(env, &s.Z, weights, C, ldc));
        CHECK_STATUS(env, cgam_rows_gram_outer(env, &s.Z, O));
        for (int64_t i = 0; i < d; i++) {
            for (int64_t j = 0; j <= i; j++) {
                long double total = (double)(i * ldc + j), size = fabsl(total);
                for (int64_t r = 0; r < n; r++) {
                    long double term =
                        (long double)s.wide[r * d + i] * s.wide[r * d + j] * (weights ? w[r] : 1);
                    total += term;
                    size += fabsl(term);
                }
                CHECK_CLOSE(C[i * ldc + j], (double)total,
                            (double)(n + 4) * 0x1p-53 * (double)size);
            }
        }
        const double *G = dense_matrix(n, d, s.wide, NULL, 1, NULL, 0);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                CHECK_CLOSE(O[i * n + j], G[i * n + j],
                            (double)(d + 4) * 0x1p-53 * sqrt(G[i * n + i] * G[j * n + j]));
        dense_reset();
    }
}

TEST(dot_and_norm_keep_their_digits)
{
    cgam_rng rng = cgam_rng_stream(3, 4);
    for (int64_t n = 1; n < 5000; n = 2 * n + 3) {
        double *x = dense_normals(&rng, n, 1), *y = dense_normals(&rng, n, 1);
        long double dot = 0, size = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            dot += (long double)x[i] * y[i];
            size += fabsl((long double)x[i] * y[i]);
            square += (long double)x[i] * x[i];
        }
        CHECK_CLOSE(cgam_array_dot(n, x, y), (double)dot, 8 * 0x1p-53 * (double)size);
        CHECK_REL(cgam_array_norm(n, x), (double)sqrtl(square), 1e-14);
    }
    const double large[] = {3e200, -4e200}, tiny[] = {3e-200, 4e-200}, zero[] = {0, 0},
                 bad[] = {NAN, NAN}, mixed[] = {0, NAN, 0}, endless[] = {1, -INFINITY};
    CHECK_REL(cgam_array_norm(2, large), 5e200, 1e-15);
    CHECK_REL(cgam_array_norm(2, tiny), 5e-200, 1e-15);
    CHECK_CLOSE(cgam_array_norm(2, zero), 0, 0);
    CHECK_CLOSE(cgam_array_norm(0, zero), 0, 0);
    CHECK_CLOSE(cgam_array_norm(2, endless), INFINITY, 0);
    assert_true(isnan(cgam_array_norm(2, bad)));
    assert_true(isnan(cgam_array_norm(3, mixed)));
    dense_reset();
}

static bool at_once(void *user)
{
    (void)user;
    return true;
}

TEST(products_stop_on_request)
{
    cgam_env_opts opts = {.threads = 2, .interrupted = at_once};
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    cgam_rng rng = cgam_rng_stream(3, 5);
    sample s = make(&rng, CGAM_F64, 600, 4, 0, false);
    double *x = dense_room(600), *y = dense_room(600);
    CHECK_FAILS(env, CGAM_E_INTERRUPTED, cgam_rows_score(env, &s.Z, x, y));
    CHECK_FAILS(env, CGAM_E_INTERRUPTED, cgam_rows_combine(env, &s.Z, x, y));
    CHECK_FAILS(env, CGAM_E_INTERRUPTED, cgam_rows_gram(env, &s.Z, NULL, y, 4));
    dense_reset();
}

static int products(cgam_env *env, void *arg)
{
    const sample *s = arg;
    double x[8] = {1}, y[600] = {0}, C[16] = {0};
    double *O = cgam_alloc(env, 600 * 600, sizeof *O);
    cgam_status status = O ? cgam_rows_score(env, &s->Z, x, y) : cgam_fail_nomem(env, "a test");
    if (status == CGAM_OK) status = cgam_rows_combine(env, &s->Z, y, x);
    if (status == CGAM_OK) status = cgam_rows_gram(env, &s->Z, NULL, C, 4);
    if (status == CGAM_OK) status = cgam_rows_gram_outer(env, &s->Z, O);
    cgam_free(env, O);
    return status;
}

TEST(products_cope_with_every_failed_allocation)
{
    cgam_rng rng = cgam_rng_stream(3, 6);
    sample s = make(&rng, CGAM_F32, 600, 4, 0, true);
    assert_true(check_every_allocation(products, &s) > 5);
    assert_true(check_every_allocation_threads(products, &s, 3) > 5);
    dense_reset();
}
