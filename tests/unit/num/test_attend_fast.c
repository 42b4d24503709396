/* ctest: labels=threads
 * The search by a sketch against the pass over all rows in double: the same leaders, scores, gaps and
 * ranks, bit for bit; and the sum of weights, in long double, inside its interval. */
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "num/attend_fast.h"
#include "num/cpu/widen.h"

#include <stdatomic.h>

#include "support/owned.h"

typedef enum context { NONE, SHARED, OWN, CONTEXTS } context;

typedef struct scene {
    cgam_rows Z;
    cgam_attend_in in;
    double norm;
    cgam_leader room[2][64 * 20];
    cgam_attend_out fast[64], slow[64];
    cgam_fast told[64];
} scene;

static scene x;

static void make(cgam_rng *rng, const cgam_cpu *cpu, int64_t n, int64_t d, int64_t count, context c)
{
    double *wide = dense_bank(rng, (dense_kind)cgam_rng_below(rng, DENSE_KINDS), n, d), *row;
    cgam_dtype dtype = (cgam_dtype)cgam_rng_below(rng, 4);
    void *data = dense_room(n * d);
    int64_t *focus = (int64_t *)(void *)dense_room(count);
    double *q = dense_normals(rng, count * d, 1 / sqrt((double)d));
    if (cgam_rng_below(rng, 4) == 0) /* many rows within the bound of each other */
        for (int64_t i = 0; i < n / 3; i++)
            for (int64_t j = 0; j < d; j++)
                wide[i * d + j] = wide[j] + 1e-4 * cgam_rng_normal(rng) / sqrt((double)d);
    for (int64_t v = 0; v < count; v++)
        for (int64_t j = 0; j < d; j++) q[v * d + j] += wide[cgam_rng_below(rng, n) * d + j];
    cgam_narrow(dtype, wide, n * d, data);
    memset(&x, 0, sizeof x);
    x.Z = (cgam_rows){data, dtype, n, d, d, NULL, cpu, NULL};
    row = dense_room(d);
    for (int64_t i = 0; i < n; i++) {
        cgam_rows_get(&x.Z, i, 1, row);
        x.norm = fmax(x.norm, cgam_array_norm(d, row));
    }
    for (int64_t v = 0; v < count; v++) focus[v] = v % 2 ? -1 : cgam_rng_below(rng, n);
    x.in = (cgam_attend_in){.Z = &x.Z,
                            .beta = dense_between_log(rng, 0.1, 100),
                            .lambda = dense_between(rng, 0, 2),
                            .count = count,
                            .q = q,
                            .focus = focus,
                            .leaders = 2 + cgam_rng_below(rng, 12)};
    if (c == SHARED) x.in.s = dense_normals(rng, n, 0.3);
    if (c == OWN) {
        int64_t *border = (int64_t *)(void *)dense_room(3);
        x.in.e = dense_normals(rng, count * d, 1 / sqrt((double)d));
        x.in.pivot = dense_normals(rng, n, 1);
        x.in.edge = n > 5 ? 3 : 0;
        for (int64_t j = 0; j < x.in.edge; j++) border[j] = j * (n - 1) / 2;
        x.in.border = border;
        x.in.edges = dense_normals(rng, count * x.in.edge + 1, 1);
    }
    for (int64_t v = 0; v < count; v++) {
        x.fast[v].leader = x.room[0] + 20 * v;
        x.slow[v].leader = x.room[1] + 20 * v;
    }
}

static void judge(int64_t v, double tol)
{
    const cgam_attend_out *got = &x.fast[v], *want = &x.slow[v];
    const cgam_fast *f = &x.told[v];
    assert_int_equal(got->leaders, want->leaders);
    for (int64_t k = 0; k < want->leaders; k++) {
        assert_int_equal(got->leader[k].row, want->leader[k].row);
        assert_true(got->leader[k].r == want->leader[k].r);
        assert_true(got->leader[k].b == want->leader[k].b);
        assert_true(got->leader[k].s == want->leader[k].s);
    }
    for (int k = 0; k < 2; k++) {
        assert_true(got->b.value[k] == want->b.value[k]);
        assert_true(got->s.value[k] == want->s.value[k]);
    }
    if (x.in.focus[v] >= 0) {
        assert_int_equal(got->above, want->above);
        assert_true(got->focus.r == want->focus.r);
    }
    double low = f->known + f->low, high = f->known + f->high, slack = 1e-12 * high;
    CHECK_LE(low - slack, want->soft.sum);
    CHECK_LE(want->soft.sum, high + slack);
    if (tol > 0) CHECK_LE(high - low, tol * high);
}

TEST(the_sketch_changes_nothing)
{
    cgam_rng rng = cgam_rng_stream(43, 0);
    OWNED(cgam_env) env = object_env(3);
    int64_t done = 0, fell = 0, all = 0, scored = 0;
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        if (!cgam_cpu_all[i].usable()) continue;
        for (int t = 0; t < 120; t++) {
            int64_t n = 1 + cgam_rng_below(&rng, t % 2 ? 60 : 1500);
            int64_t d = t % 20 == 0 ? 600 : 1 + cgam_rng_below(&rng, 40);
            int64_t count = t % 4 == 0 ? 8 + cgam_rng_below(&rng, 57) : 1 + t % 3;
            if (t % 12 == 0) n += 2000;
            double tol = t % 3 == 0 ? pow(10, -dense_between(&rng, 1, 6)) : 0;
            cgam_sketch *sketch;
            make(&rng, &cgam_cpu_all[i], n, d, count, (context)(t % CONTEXTS));
            CHECK_STATUS(env, cgam_sketch_new(env, &x.Z, x.norm, &sketch));
            CHECK_STATUS(env, cgam_attend(env, &x.in, x.slow));
            CHECK_STATUS(env, cgam_attend_fast(env, &x.in, sketch, tol, x.fast, x.told));
            for (int64_t v = 0; v < count; v++, done++) {
                fell += x.told[v].fallback;
                if (x.told[v].fallback) continue;
                judge(v, tol);
                all += n;
                scored += x.told[v].rescored;
            }
            cgam_sketch_free(env, sketch);
            dense_reset();
        }
    }
    print_message("%lld queries, %lld fell back, %.3f of the others' rows were scored\n",
                  (long long)done, (long long)fell, (double)scored / (double)all);
    CHECK_LE((double)fell, 0.8 * (double)done); /* small banks are read whole */
    CHECK_LE((double)scored, 0.3 * (double)all);
}

/* A batch whose lists fill up: rows of rising scores, so that each is a leader when it is met. */
TEST(rising_rows_fill_no_list)
{
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(48, 0);
    int64_t fell = 0;
    for (int t = 0; t < 6; t++) {
        int64_t n = 9000, d = 12, count = 40;
        make(&rng, cgam_cpu_best(), n, d, count, NONE);
        float *Z = (float *)(void *)dense_room(n * d);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < d; j++)
                Z[i * d + j] = (float)((t < 3 ? (double)i / (double)n : 1) * (j == 0) +
                                       0.1 * cgam_rng_normal(&rng));
        for (int64_t v = 0; v < count; v++)
            memcpy((double *)(uintptr_t)x.in.q + v * d, (double[12]){1 + 0.01 * (double)v},
                   (size_t)d * sizeof(double));
        x.Z = (cgam_rows){Z, CGAM_F32, n, d, d, NULL, cgam_cpu_best(), NULL};
        x.in.leaders = 5;
        x.in.beta = t % 3 == 0 ? 1 : t % 3 == 1 ? 30 : 1000;
        cgam_sketch *sketch;
        CHECK_STATUS(env, cgam_sketch_new(env, &x.Z, 2, &sketch));
        CHECK_STATUS(env, cgam_attend(env, &x.in, x.slow));
        CHECK_STATUS(env, cgam_attend_fast(env, &x.in, sketch, 0, x.fast, x.told));
        for (int64_t v = 0; v < count; v++) {
            fell += x.told[v].fallback;
            if (!x.told[v].fallback) judge(v, 0);
        }
        cgam_sketch_free(env, sketch);
        dense_reset();
    }
    print_message("%lld of 240 fell back\n", (long long)fell);
    CHECK_LE((double)fell, 120); /* those whose focus is in the crowd */
}

/* Scores in double that were asked for. */
static atomic_llong looks;

static void counting_dot(const void *rows, int64_t stride, int64_t n, int64_t d, const double *q,
                         double *out)
{
    looks += n;
    cgam_cpu_best()->f64->dot[CGAM_F32](rows, stride, n, d, q, out);
}

/* A batch scores the best of a sample for its first floor, the best of what is listed for its last one, and what
 * is open then, among which those are not scored again. */
TEST(a_batch_scores_no_row_twice)
{
    enum { N = 6000, D = 24, COUNT = 20 };
    cgam_rng rng = cgam_rng_stream(51, 0);
    OWNED(cgam_env) env = object_env(2);
    cgam_f64 f64 = *cgam_cpu_best()->f64;
    cgam_cpu cpu = *cgam_cpu_best();
    f64.dot[CGAM_F32] = counting_dot;
    cpu.f64 = &f64;
    make(&rng, &cpu, N, D, COUNT, NONE);
    float *Z = (float *)(void *)dense_room(N * D);
    for (int64_t i = 0; i < N * D; i++) Z[i] = (float)cgam_rng_normal(&rng);
    x.Z = (cgam_rows){Z, CGAM_F32, N, D, D, NULL, &cpu, NULL};
    x.in.focus = NULL;
    x.in.leaders = 7;
    x.in.beta = 1;
    for (int64_t v = 0; v < COUNT; v++) /* some row and noise */
        for (int64_t j = 0; j < D; j++)
            ((double *)(uintptr_t)x.in.q)[v * D + j] =
                (double)Z[v * D * 100 + j] + 0.3 * cgam_rng_normal(&rng);
    cgam_sketch *sketch;
    CHECK_STATUS(env, cgam_sketch_new(env, &x.Z, 12, &sketch));
    looks = 0;
    CHECK_STATUS(env, cgam_attend_fast(env, &x.in, sketch, 0, x.fast, x.told));
    int64_t want = 0;
    for (int64_t v = 0; v < COUNT; v++) {
        assert_false(x.told[v].fallback);
        assert_true(x.told[v].rescored >= 7);
        want += 7 + x.told[v].rescored;
    }
    assert_int_equal(looks, want);
    cgam_sketch_free(env, sketch);
    dense_reset();
}

TEST(threads_do_not_change_a_bit)
{
    cgam_rng rng = cgam_rng_stream(44, 0);
    for (int t = 0; t < 12; t++) {
        cgam_fast first[64];
        int64_t many = t % 4 ? 20 : 64;
        make(&rng, cgam_cpu_best(), t % 3 ? 3000 : 9000, 20, t % 2 ? 2 : many,
             (context)(t % CONTEXTS));
        for (int threads = 1; threads <= 4; threads += 3) {
            OWNED(cgam_env) env = object_env(threads);
            cgam_sketch *sketch;
            CHECK_STATUS(env, cgam_sketch_new(env, &x.Z, x.norm, &sketch));
            memset(x.told, 0, sizeof x.told);
            CHECK_STATUS(env, cgam_attend_fast(env, &x.in, sketch, 0, x.fast, x.told));
            if (threads == 1) memcpy(first, x.told, sizeof first);
            for (int64_t v = 0; v < x.in.count; v++) {
                assert_int_equal(first[v].rescored, x.told[v].rescored);
                assert_true(first[v].low == x.told[v].low && first[v].high == x.told[v].high);
                assert_true(first[v].known == x.told[v].known);
            }
            cgam_sketch_free(env, sketch);
        }
        dense_reset();
    }
}

static int search(cgam_env *env, void *arg)
{
    const cgam_attend_in *in = arg;
    cgam_sketch *sketch;
    cgam_status status = cgam_sketch_new(env, in->Z, x.norm, &sketch);
    if (status == CGAM_OK) status = cgam_attend_fast(env, in, sketch, 1e-3, x.fast, x.told);
    cgam_sketch_free(env, sketch);
    return status;
}

TEST(every_allocation_may_fail)
{
    cgam_rng rng = cgam_rng_stream(45, 0);
    for (int t = 0; t < 3; t++) {
        make(&rng, cgam_cpu_best(), 900, 5, t ? 9 : 1, t == 2 ? NONE : t ? OWN : SHARED);
        check_every_allocation(search, &x.in);
        dense_reset();
    }
}
