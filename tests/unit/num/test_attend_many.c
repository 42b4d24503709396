/* ctest: labels=threads
 * Many queries as products of matrices against the one-pass form in double (test_attend.c judges
 * that): every CPU's kernels, every storage type, sizes 1 to 70, strides, scales, masks, extremes,
 * any number of threads. */
#include "support/check.h"
#include "support/dense.h"
#include "support/objects.h"

#include "num/attend.h"
#include "num/cpu/widen.h"
#include "num/gemm_pass.h"

#include "support/owned.h"

enum { LEADERS = 5, QUERIES_MAX = 80 };
typedef enum context { NONE, SHARED, OWN, CONTEXTS } context;

typedef struct scene {
    cgam_rows Z;
    cgam_attend_in in;
    double most;  /* largest |zeta_j| */
    double reach; /* bound of sum |zeta_j q_j| + lambda |s| over rows and queries */
} scene;

static scene make(cgam_rng *rng, const cgam_cpu *cpu, cgam_dtype dtype, int64_t n, int64_t d,
                  int64_t count, context c)
{
    scene x = {0};
    int64_t stride = d + n % 3;
    double *stored = dense_normals(rng, n * stride + 1, 1 / sqrt((double)d));
    double *scale = n % 2 ? dense_room(n) : NULL;
    char *data = (char *)(void *)dense_room(n * stride + 1);
    data += n % 5 == 0 ? cgam_dtype_size(dtype) : 0; /* rows that begin anywhere */
    cgam_narrow(dtype, stored, n * stride, data);
    cgam_widen(dtype, data, n * stride, stored);
    for (int64_t i = 0; scale && i < n; i++) scale[i] = dense_between(rng, 0.5, 2);
    x.Z = (cgam_rows){data, dtype, n, d, stride, scale, cpu, NULL};
    x.in =
        (cgam_attend_in){.beta = 3, .lambda = 0.5, .count = count, .leaders = LEADERS, .f32 = true};
    x.in.q = dense_normals(rng, count * d, 1);
    int64_t *focus = (int64_t *)(void *)dense_room(count);
    for (int64_t v = 0; v < count; v++) focus[v] = v % 3 == 2 ? -1 : (7 * v + 3) % n;
    x.in.focus = focus;
    double bias = 0;
    if (c == SHARED) x.in.s = dense_normals(rng, n, 1);
    if (c == OWN) {
        int64_t *border = (int64_t *)(void *)dense_room(3);
        x.in.e = dense_normals(rng, count * d, 1);
        x.in.pivot = dense_normals(rng, n, 1);
        x.in.edge = n > 5 ? 3 : 0;
        for (int64_t j = 0; j < x.in.edge; j++) border[j] = j * (n - 1) / 2;
        x.in.border = border;
        x.in.edges = dense_normals(rng, count * x.in.edge + 1, 1);
    }
    for (int64_t i = 0; i < n; i++) {
        double f = scale ? scale[i] : 1, square = 0;
        for (int64_t j = 0; j < d; j++) square += pow(f * stored[i * stride + j], 2);
        x.in.size = fmax(x.in.size, sqrt(square));
        if (c == OWN) x.in.pivot_max = fmax(x.in.pivot_max, fabs(x.in.pivot[i]));
        for (int64_t j = 0; j < d; j++) x.most = fmax(x.most, fabs(f * stored[i * stride + j]));
        for (int64_t v = 0; v < count; v++) {
            double sum = 0, own = 0;
            for (int64_t j = 0; j < d; j++) {
                sum += fabs(f * stored[i * stride + j] * x.in.q[v * d + j]);
                if (c == OWN) own += fabs(f * stored[i * stride + j] * x.in.e[v * d + j]);
            }
            bias = c == OWN ? x.in.lambda * fabs(x.in.pivot[i]) * own : c == SHARED ? 4 : 0;
            x.reach = fmax(x.reach, sum + bias);
        }
    }
    return x;
}

static void room_for(const scene *x, bool reads, cgam_attend_out *out)
{
    for (int64_t v = 0; v < x->in.count; v++) {
        out[v] = (cgam_attend_out){.leader = (cgam_leader *)(void *)dense_room(6 * LEADERS)};
        if (reads) out[v].readout = dense_room(x->Z.d);
    }
}

/* off: what a score may be off by. */
static void same(const scene *x, double off, const cgam_attend_out *got,
                 const cgam_attend_out *want)
{
    double rel = 2.1 * x->in.beta * off + (off > 1e-9 ? 0x1p-21 : 1e-13);
    CHECK_CLOSE(got->soft.top, want->soft.top, fmax(1e-13, 1e-13 * fabs(want->soft.top)));
    CHECK_REL(got->soft.sum, want->soft.sum, rel);
    CHECK_REL(got->soft.squares, want->soft.squares, 2 * rel);
    CHECK_CLOSE(got->soft.tilt, want->soft.tilt,
                4 * rel * (want->soft.sum + fabs(want->soft.tilt)));
    assert_int_equal(got->leaders, want->leaders);
    for (int64_t k = 0; k < got->leaders; k++) {
        if (want->leader[k].r == -INFINITY) continue;
        CHECK_CLOSE(got->leader[k].r, want->leader[k].r, 1e-13 * (1 + fabs(want->leader[k].r)));
        if (got->focus.row == got->leader[k].row) assert_int_equal(got->above, k);
        if (k) assert_true(got->leader[k - 1].r >= got->leader[k].r);
    }
    for (int k = 0; k < 2 && k < x->Z.n; k++) {
        if (want->b.value[k] > -INFINITY) CHECK_CLOSE(got->b.value[k], want->b.value[k], 2 * off);
        if (want->s.value[k] > -INFINITY) CHECK_CLOSE(got->s.value[k], want->s.value[k], 2 * off);
    }
    assert_int_equal(got->focus.row, want->focus.row);
    if (got->focus.row >= 0) CHECK_CLOSE(got->focus.r, want->focus.r, 1e-13);
    if (got->readout)
        CHECK_CLOSE_ALL(got->readout, want->readout, x->Z.d, (2 * rel + 0x1p-20) * x->most);
}

static int in_f32; /* how many scenes were */

static void check(cgam_env *env, scene *x, bool reads)
{
    cgam_attend_out got[QUERIES_MAX], want[QUERIES_MAX];
    x->in.Z = &x->Z;
    room_for(x, reads, got);
    room_for(x, reads, want);
    CHECK_STATUS(env, cgam_attend_many(env, &x->in, got));
    cgam_attend_in exact = x->in;
    exact.f32 = false;
    CHECK_STATUS(env, cgam_attend(env, &exact, want));
    bool f32 = true;
    for (int64_t v = 0; v < x->in.count; v++) f32 &= cgam_attend_f32(&x->in, v);
    in_f32 += f32;
    double terms = CGAM_GEMM_PASS_DEPTH + (double)x->Z.d / CGAM_GEMM_PASS_DEPTH + 4;
    terms = fmin(terms, (double)x->Z.d + 6);
    double off = (f32 ? 0x1p-24 : 0x1p-52) * terms * x->reach + 1e-14;
    for (int64_t v = 0; v < x->in.count; v++) same(x, off, &got[v], &want[v]);
    dense_reset();
}

TEST(every_shape_and_type_agrees)
{
    OWNED(cgam_env) env = object_env(2);
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_cpu *cpu = &cgam_cpu_all[i];
        if (!cpu->usable()) continue;
        for (int t = 0; t < CGAM_CPU_DTYPES; t++) {
            cgam_rng rng = cgam_rng_stream(81, (uint64_t)(10 * i + t));
            for (int64_t size = 1; size <= 70; size++) {
                scene x = make(&rng, cpu, (cgam_dtype)t, size, 1 + size * 11 % 70,
                               1 + size * 7 % 70, (context)(size % CONTEXTS));
                if (size % 5 == 0) x.in.size = 0; /* in double, whatever the type */
                check(env, &x, size % 4 != 0);
            }
            for (int c = 0; c < CONTEXTS; c++) { /* several tiles, chunks and depths */
                scene x = make(&rng, cpu, (cgam_dtype)t, 1201 + c, 100, 9 + 30 * c, (context)c);
                check(env, &x, true);
                scene y = make(&rng, cpu, (cgam_dtype)t, 150, 700 + c, 17, (context)c);
                check(env, &y, true);
                /* rows long enough for a unit for tiles, and not whole tiles of them */
                scene u =
                    make(&rng, cpu, (cgam_dtype)t, 301 + c, 515 + 50 * c, 34 + 15 * c, (context)c);
                check(env, &u, true);
                if (t == CGAM_F32 || t == CGAM_BF16) { /* longer than what it scores at a time */
                    scene w = make(&rng, cpu, (cgam_dtype)t, 35 + c, 2081, 34, (context)c);
                    check(env, &w, true);
                }
                /* several tiles a chunk: what weights are relative to stays behind */
                scene z = make(&rng, cpu, (cgam_dtype)t, 6000 + c, 8, 9, (context)c);
                check(env, &z, true);
            }
        }
    }
    assert_true(in_f32 > 300);
}

/* Far peaks, late ones, masks, and rows of denormals. */
TEST_ENV(extremes_are_no_trouble)
{
    for (int t = 0; t < CGAM_CPU_DTYPES; t++) {
        cgam_rng rng = cgam_rng_stream(82, (uint64_t)t);
        for (int k = 0; k < 10; k++) {
            int which = k % 5;
            int64_t d = k < 5 ? 30 : 300; /* the second half on a unit for tiles, if there is one */
            scene x = make(&rng, cgam_cpu_best(), (cgam_dtype)t, 600, d, 20, SHARED);
            double *s = dense_room(600);
            memcpy(s, x.in.s, 600 * sizeof *s);
            x.in.s = s;
            if (which == 0) s[599] += 1e6; /* beta r to 3e6, at the end */
            if (which == 1)
                for (int i = 0; i < 600; i++) s[i] += 20 * i; /* rises all the time */
            if (which == 2)
                for (int i = 0; i < 590; i++) s[i] = -INFINITY;
            if (which == 3) x.in.beta = 1e6, s[7] += 50;
            if (which == 4) {
                double *tiny = dense_room(600 * d);
                double *q = dense_normals(&rng, 20 * d, 1);
                for (int64_t i = 0; i < 600 * d; i++)
                    tiny[i] = (double)(i % 7 - 3) * (t == CGAM_F64 ? 1e-310 : 1e-41);
                cgam_narrow((cgam_dtype)t, tiny, 600 * d, tiny);
                x.Z.data = tiny;
                x.in.q = q;
            }
            check(env, &x, true);
        }
    }
}

/* Rows that differ in the last bits only, so that f32 cannot rank them: leaders and rank are those of
 * double. */
TEST(close_races_are_decided_in_double)
{
    enum { ROWS = 2000, WIDE = 200, COUNT = 9 };
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(85, 0);
    scene x = make(&rng, cgam_cpu_best(), CGAM_F32, ROWS, WIDE, COUNT, NONE);
    float *rows = (float *)(void *)dense_room(ROWS * x.Z.stride);
    double *q = dense_normals(&rng, COUNT * WIDE, 1);
    for (int64_t i = 0; i < ROWS * x.Z.stride; i++)
        rows[i] =
            (float)((1 + (double)(i % x.Z.stride % 7)) * (1 + 2e-7 * cgam_rng_uniform(&rng)) / 60);
    x.Z.data = rows;
    x.Z.scale = NULL;
    x.in.q = q;
    x.in.size = 1.1;
    x.in.Z = &x.Z;
    for (int64_t count = 1; count <= 3; count++) { /* without matrices */
        cgam_attend_out got[QUERIES_MAX], want[QUERIES_MAX];
        cgam_attend_in in = cgam_attend_some(&x.in, 0, count), exact = in;
        exact.f32 = false;
        room_for(&x, false, got);
        room_for(&x, false, want);
        CHECK_STATUS(env, cgam_attend(env, &in, got));
        CHECK_STATUS(env, cgam_attend(env, &exact, want));
        for (int64_t v = 0; v < count; v++)
            for (int k = 0; k < LEADERS; k++)
                assert_int_equal(got[v].leader[k].row, want[v].leader[k].row);
    }
    check(env, &x, true);
}

TEST_ENV(what_overflows_f32_is_answered_in_double)
{
    cgam_rng rng = cgam_rng_stream(83, 0);
    scene x = make(&rng, cgam_cpu_best(), CGAM_F32, 300, 40, 12, NONE);
    cgam_attend_out got[QUERIES_MAX], want[QUERIES_MAX];
    double *q = dense_normals(&rng, 12 * 40, 1e39);
    x.in.Z = &x.Z;
    x.in.q = q;
    x.in.beta = 1e-39;
    room_for(&x, true, got);
    room_for(&x, true, want);
    CHECK_STATUS(env, cgam_attend_many(env, &x.in, got));
    CHECK_STATUS(env, cgam_attend(env, &x.in, want));
    for (int64_t v = 0; v < 12; v++) {
        CHECK_REL(got[v].soft.sum, want[v].soft.sum, 1e-12);
        CHECK_REL(got[v].soft.top, want[v].soft.top, 1e-12);
        CHECK_CLOSE_ALL(got[v].readout, want[v].readout, 40, 1e-12 * x.most);
    }
    dense_reset();
}

TEST(threads_change_no_bit)
{
    cgam_rng rng = cgam_rng_stream(84, 0);
    const cgam_dtype types[CONTEXTS] = {CGAM_F64, CGAM_BF16, CGAM_F32};
    for (int k = 0; k < 2 * CONTEXTS;
         k++) { /* the second half on a unit for tiles, if there is one */
        int c = k % CONTEXTS;
        int64_t n = k < CONTEXTS ? 3000 : 600, d = k < CONTEXTS ? 50 : 530;
        scene x = make(&rng, cgam_cpu_best(), types[c], n, d, 33, (context)c);
        cgam_attend_out first[QUERIES_MAX], got[QUERIES_MAX];
        x.in.Z = &x.Z;
        for (int threads = 1; threads <= 4; threads++) {
            OWNED(cgam_env) env = object_env(threads);
            cgam_attend_out *out = threads == 1 ? first : got;
            room_for(&x, true, out);
            CHECK_STATUS(env, cgam_attend_many(env, &x.in, out));
            for (int64_t v = 0; v < x.in.count; v++) {
                assert_true(out[v].soft.sum == first[v].soft.sum &&
                            out[v].soft.tilt == first[v].soft.tilt);
                assert_int_equal(out[v].above, first[v].above);
                assert_memory_equal(out[v].readout, first[v].readout, (size_t)d * sizeof(double));
            }
        }
        dense_reset();
    }
}

static void weigh_by_rows(void *arg, cgam_gemm_pass_tile *t)
{
    const cgam_gemm_pass *s = arg;
    for (int64_t i = 0; i < t->count * s->width; i++)
        ((float *)t->S)[i] = (float)((t->begin * s->width + i) % 97) - 40;
}

/* As a coupled recall asks for them, whose weights are there before its scores. */
TEST_ENV(sums_need_no_scores)
{
    enum { ROWS = 300, WIDE = 321, VECTORS = 20, TYPES = 3 };
    const cgam_dtype types[TYPES] = {CGAM_F32, CGAM_F16, CGAM_BF16};
    cgam_rng rng = cgam_rng_stream(85, 0);
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++)
        for (int t = 0; t < TYPES && cpu->usable(); t++) {
            double *stored = dense_normals(&rng, ROWS * WIDE, 1), *data = dense_room(ROWS * WIDE);
            cgam_narrow(types[t], stored, ROWS * WIDE, data);
            cgam_widen(types[t], data, ROWS * WIDE, stored);
            cgam_rows Z = {data, types[t], ROWS, WIDE, WIDE, NULL, cpu, NULL};
            cgam_gemm_pass pass = {
                .env = env, .Z = &Z, .vectors = VECTORS, .reads = true, .weigh = weigh_by_rows};
            pass.arg = &pass;
            CHECK_STATUS(env, cgam_gemm_pass_new(&pass));
            CHECK_STATUS(env, cgam_gemm_pass_run(&pass));
            double *ones = dense_room(pass.chunks * VECTORS), *Y[VECTORS];
            for (int64_t k = 0; k < pass.chunks * VECTORS; k++) ones[k] = 1;
            for (int v = 0; v < VECTORS; v++) Y[v] = dense_room(WIDE);
            CHECK_STATUS(env, cgam_gemm_pass_join(&pass, ones, Y));
            for (int v = 0; v < VECTORS; v++)
                for (int j = 0; j < WIDE; j++) {
                    double want = 0;
                    for (int i = 0; i < ROWS; i++)
                        want += (double)((i * pass.width + v) % 97 - 40) * stored[i * WIDE + j];
                    /* weights add up to 7500, a row's largest is 5 at most: what digits.h and f32 allow */
                    CHECK_CLOSE(Y[v][j], want, 7500 * 5 * CGAM_DIGITS_READ * 0x1p-24);
                    assert_true(fabs(want) < 7500 * 5);
                }
            cgam_gemm_pass_free(&pass);
            dense_reset();
        }
}
