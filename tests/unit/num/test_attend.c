/* ctest: labels=threads
 * The one-pass softmax against the definition, written with vectors of n numbers in long double:
 * every CPU's kernels, every storage type, any number of threads. */
#include "support/check.h"
#include "support/dense.h"

#include "num/attend.h"
#include "num/cpu/f32.h"
#include "num/cpu/widen.h"

#include "support/owned.h"

enum { LEADERS_MAX = 40 };

typedef struct scene {
    cgam_rows Z;
    double *wide; /* [n, d] zeta */
    int64_t count, leaders;
    double beta, lambda, size;         /* size: as in cgam_attend_in, 0 = double throughout */
    double *q, *s, *e, *pivot, *edges; /* as in cgam_attend_in */
    int64_t *border, edge, *focus;
} scene;

typedef enum context { NONE, SHARED, OWN, CONTEXTS } context;

static scene make(cgam_rng *rng, const cgam_cpu *cpu, cgam_dtype dtype, int64_t n, int64_t d,
                  int64_t count, context c, bool scaled)
{
    scene x = {.count = count, .beta = 3, .lambda = 0.5, .leaders = 2 + n % 7};
    int64_t stride = d + (n + d) % 3;
    double *stored = dense_normals(rng, n * stride, 1 / sqrt((double)d));
    double *scale = scaled ? dense_room(n) : NULL;
    void *data = dense_room(n * stride);
    cgam_narrow(dtype, stored, n * stride, data);
    cgam_widen(dtype, data, n * stride, stored);
    x.wide = dense_room(n * d);
    for (int64_t i = 0; i < n; i++) {
        if (scaled) scale[i] = dense_between(rng, 0.5, 2);
        for (int64_t j = 0; j < d; j++)
            x.wide[i * d + j] = stored[i * stride + j] * (scaled ? scale[i] : 1);
    }
    x.Z = (cgam_rows){data, dtype, n, d, stride, scale, cpu, NULL};
    x.q = dense_normals(rng, count * d, 1);
    x.focus = (int64_t *)(void *)dense_room(count);
    for (int64_t v = 0; v < count; v++) x.focus[v] = v % 3 == 2 ? -1 : (7 * v + 3) % n;
    if (c == SHARED) x.s = dense_normals(rng, n, 1);
    if (c == OWN) {
        x.e = dense_normals(rng, count * d, 1);
        x.pivot = dense_normals(rng, n, 1);
        x.edge = n > 5 ? 3 : 0;
        x.border = (int64_t *)(void *)dense_room(3);
        for (int64_t j = 0; j < x.edge; j++) x.border[j] = j * (n - 1) / 2;
        x.edges = dense_normals(rng, count * x.edge + 1, 1);
    }
    return x;
}

static void attend(cgam_env *env, const scene *x, bool reads, cgam_attend_out *out)
{
    cgam_attend_in in = {.Z = &x->Z,
                         .beta = x->beta,
                         .lambda = x->lambda,
                         .count = x->count,
                         .q = x->q,
                         .s = x->s,
                         .e = x->e,
                         .pivot = x->pivot,
                         .border = x->border,
                         .edge = x->edge,
                         .edges = x->edges,
                         .focus = x->focus,
                         .leaders = x->leaders,
                         .size = x->size,
                         .f32 = x->size > 0};
    for (int64_t i = 0; x->pivot && i < x->Z.n; i++)
        in.pivot_max = fmax(in.pivot_max, fabs(x->pivot[i]));
    for (int64_t v = 0; v < x->count; v++) {
        out[v] = (cgam_attend_out){.leader = (cgam_leader *)(void *)dense_room(6 * LEADERS_MAX)};
        if (reads) out[v].readout = dense_room(x->Z.d);
    }
    CHECK_STATUS(env, cgam_attend(env, &in, out));
}

static void judge(const scene *x, int64_t v, const cgam_attend_out *got)
{
    int64_t n = x->Z.n, d = x->Z.d;
    double *b = dense_room(n), *s = dense_room(n), *r = dense_room(n), *p = dense_room(n);
    double *readout = dense_room(d), size = 0;
    dense_score(n, d, x->wide, x->q + v * d, b);
    if (x->s) memcpy(s, x->s, (size_t)n * sizeof *s);
    if (x->e) dense_score(n, d, x->wide, x->e + v * d, s);
    for (int64_t i = 0; x->e && i < n; i++) s[i] *= x->pivot[i];
    for (int64_t j = 0; j < x->edge; j++) s[x->border[j]] = x->edges[v * x->edge + j];
    for (int64_t i = 0; i < n; i++) {
        r[i] = b[i] + x->lambda * s[i];
        size = fmax(size, fabs(b[i]) + fabs(x->lambda * s[i]));
    }
    dense_softmax(n, x->beta, r, p);
    dense_combine(n, d, x->wide, p, readout);
    /* scores are good to about d eps of the terms, which here are of order one */
    double off = 1e-14 * (1 + size), rel = 4 * x->beta * off + 1e-14;
    long double sum = 0, squares = 0, tilt = 0;
    double top = r[0];
    for (int64_t i = 0; i < n; i++) top = fmax(top, r[i]);
    for (int64_t i = 0; i < n; i++) {
        long double arg = (long double)x->beta * (r[i] - top), w = expl(arg);
        sum += w;
        squares += w * w;
        tilt += w * arg;
    }
    CHECK_CLOSE(got->soft.top, top, off);
    CHECK_REL(got->soft.sum, (double)sum, rel);
    CHECK_REL(got->soft.squares, (double)squares, 2 * rel);
    CHECK_CLOSE(got->soft.tilt, (double)tilt, rel * (double)(sum + fabsl(tilt)));
    assert_int_equal(got->leaders, x->leaders < n ? x->leaders : n);
    for (int64_t k = 0; k < got->leaders; k++) {
        const cgam_leader *l = &got->leader[k];
        int64_t better = 0; /* by their own r, exactly; by ours, up to rounding */
        for (int64_t i = 0; i < n; i++) better += r[i] > l->r + off;
        assert_true(better <= k);
        CHECK_CLOSE(l->r, r[l->row], off);
        CHECK_CLOSE(l->b, b[l->row], off);
        CHECK_CLOSE(l->s, s[l->row], off);
        if (k) assert_true(l[-1].r > l->r || (l[-1].r == l->r && l[-1].row < l->row));
    }
    const double *vectors[2] = {b, s};
    const cgam_two *twos[2] = {&got->b, &got->s};
    for (int which = 0; which < 2; which++)
        for (int k = 0; k < 2 && k < n; k++) {
            const double *y = vectors[which];
            double best = -INFINITY;
            for (int64_t i = 0; i < n; i++)
                if (!(k == 1 && i == twos[which]->row[0])) best = fmax(best, y[i]);
            CHECK_CLOSE(twos[which]->value[k], best, off);
            CHECK_CLOSE(twos[which]->value[k], y[twos[which]->row[k]], off);
        }
    int64_t f = x->focus[v], above = 0, ties = 0;
    if (f >= 0) {
        for (int64_t i = 0; i < n; i++) {
            above += r[i] > r[f] + off;
            ties += i != f && fabs(r[i] - r[f]) <= off;
        }
        assert_true(got->above >= above && got->above <= above + ties);
        CHECK_CLOSE(got->focus.r, r[f], off);
        CHECK_CLOSE(got->focus.b, b[f], off);
        CHECK_CLOSE(got->focus.s, s[f], off);
    }
    CHECK_LE(got->skipped, 0x1p-54 * got->soft.sum);
    double largest = 0;
    for (int64_t i = 0; i < n * d; i++) largest = fmax(largest, fabs(x->wide[i]));
    if (got->readout) CHECK_CLOSE_ALL(got->readout, readout, d, 2 * rel * largest);
}

static void check_scene(cgam_env *env, const scene *x, bool reads)
{
    cgam_attend_out out[8];
    attend(env, x, reads, out);
    for (int64_t v = 0; v < x->count; v++) judge(x, v, &out[v]);
}

TEST(one_pass_is_the_definition)
{
    cgam_env *env = *state;
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_cpu *cpu = &cgam_cpu_all[i];
        if (!cpu->usable()) continue;
        for (int t = 0; t < CGAM_CPU_DTYPES; t++) {
            cgam_rng rng = cgam_rng_stream(5, (uint64_t)(10 * i + t));
            for (int64_t n = 1; n <= 70; n += 1 + n / 4)
                for (int64_t d = 1; d <= 70; d += 1 + d / 3) {
                    context c = (context)((n + d) % CONTEXTS);
                    scene x = make(&rng, cpu, (cgam_dtype)t, n, d, 1 + (n * d) % 5, c, n % 2);
                    check_scene(env, &x, d % 4 != 0);
                    dense_reset();
                }
            for (int c = NONE; c < CONTEXTS; c++) { /* several chunks and tiles, long rows */
                scene x = make(&rng, cpu, (cgam_dtype)t, 800, 70, 1, (context)c, c == SHARED);
                check_scene(env, &x, true);
                scene y = make(&rng, cpu, (cgam_dtype)t, 270, 1100, 1 + c, (context)c, false);
                check_scene(env, &y, true);
                dense_reset();
            }
        }
    }
}

static double longest(const scene *x)
{
    double most = 0;
    for (int64_t i = 0; i < x->Z.n; i++)
        most = fmax(most, cgam_array_norm(x->Z.d, x->wide + i * x->Z.d));
    return most;
}

/* Scores in f32 against scores in double, within the bound of attend.h; what is scored again in the
 * end - leaders, best of b and s, the row asked for - has all its digits. */
static void check_f32(cgam_env *env, scene *x)
{
    cgam_attend_out want[4], got[4];
    int64_t n = x->Z.n, d = x->Z.d;
    x->size = 0;
    attend(env, x, true, want);
    x->size = longest(x);
    attend(env, x, true, got);
    double most = 0, off, rel;
    for (int64_t i = 0; i < n * d; i++) most = fmax(most, fabs(x->wide[i]));
    for (int64_t v = 0; v < x->count; v++) {
        double reach = cgam_array_norm(d, x->q + v * d), pivot = 0;
        for (int64_t i = 0; x->e && i < n; i++) pivot = fmax(pivot, fabs(x->pivot[i]));
        if (x->e) reach += x->lambda * pivot * cgam_array_norm(d, x->e + v * d);
        off = CGAM_F32_ERROR * x->size * reach;
        rel = 2.1 * x->beta * off;
        assert_true(x->beta * off <= CGAM_ATTEND_F32);
        CHECK_CLOSE(got[v].soft.top, want[v].soft.top, 1e-12);
        assert_true(got[v].soft.sum != want[v].soft.sum ||
                    got[v].soft.tilt != want[v].soft.tilt); /* f32 was at work */
        CHECK_REL(got[v].soft.sum, want[v].soft.sum, rel);
        CHECK_REL(got[v].soft.squares, want[v].soft.squares, 2 * rel);
        CHECK_CLOSE(got[v].soft.tilt, want[v].soft.tilt,
                    4 * rel * (want[v].soft.sum + fabs(want[v].soft.tilt)));
        assert_int_equal(got[v].leaders, want[v].leaders);
        for (int64_t k = 0; k < got[v].leaders; k++) {
            assert_int_equal(got[v].leader[k].row, want[v].leader[k].row);
            CHECK_CLOSE(got[v].leader[k].r, want[v].leader[k].r, 1e-12);
        }
        for (int k = 0; k < 2; k++) {
            CHECK_CLOSE(got[v].b.value[k], want[v].b.value[k], 1e-12);
            CHECK_CLOSE(got[v].s.value[k], want[v].s.value[k], 1e-12);
        }
        if (x->focus[v] >= 0) {
            CHECK_CLOSE(got[v].focus.r, want[v].focus.r, 1e-12);
            CHECK_CLOSE((double)got[v].above, (double)want[v].above, 1);
        }
        CHECK_CLOSE_ALL(got[v].readout, want[v].readout, d, (2 * rel + CGAM_F32_READOUT) * most);
    }
}

TEST(scores_in_f32_keep_their_bound)
{
    cgam_env *env = *state;
    for (int i = 0; cgam_cpu_all[i].name; i++) {
        const cgam_cpu *cpu = &cgam_cpu_all[i];
        if (!cpu->usable()) continue;
        for (int t = CGAM_F32; t < CGAM_CPU_DTYPES; t++) {
            cgam_rng rng = cgam_rng_stream(25, (uint64_t)(10 * i + t));
            for (int c = NONE; c < CONTEXTS; c++) {
                scene x =
                    make(&rng, cpu, (cgam_dtype)t, 2700, 100, 1 + c % 2, (context)c, c == OWN);
                x.beta = 1;
                check_f32(env, &x);
                scene y = make(&rng, cpu, (cgam_dtype)t, 260, 1100, 1, (context)c, c == NONE);
                y.beta = 2;
                check_f32(env, &y);
                dense_reset();
            }
        }
    }
}

/* Where the bound would not hold, or f32 would overflow, the pass is in double: same bits. */
TEST(what_f32_cannot_do_is_done_in_double)
{
    cgam_env *env = *state;
    cgam_rng rng = cgam_rng_stream(26, 0);
    scene x = make(&rng, cgam_cpu_best(), CGAM_F32, 2700, 100, 1, NONE, false);
    for (int which = 0; which < 4; which++) {
        cgam_attend_out want, got;
        double factor = which == 1 ? 1e30 : which == 2 ? 1e-30 : 1;
        x.beta = which == 0 ? 1e6 : which == 1 ? 1e-30 : which == 2 ? 1e30 : 1;
        for (int64_t j = 0; j < 100; j++) x.q[j] *= factor;
        x.size = 0;
        attend(env, &x, true, &want);
        x.size = which == 3 ? 1e-9 : longest(&x);
        attend(env, &x, true, &got);
        for (int64_t j = 0; j < 100; j++) x.q[j] /= factor;
        assert_true(got.soft.sum == want.soft.sum && got.soft.tilt == want.soft.tilt);
        assert_memory_equal(got.readout, want.readout, 100 * sizeof(double));
    }
    dense_reset();
}

/* One row far above all others, early, late or in the middle: chunks without it are dropped, and
 * whether they were given up half-way does not show - nor where a second peak comes late in a chunk
 * that had been given up. */
TEST(far_peaks_change_no_bit_whatever_the_threads)
{
    enum { N = 9000, D = 40 };
    cgam_rng rng = cgam_rng_stream(27, 0);
    for (int which = 0; which < 6; which++) {
        scene x = make(&rng, cgam_cpu_best(), CGAM_F32, N, D, 1, SHARED, false);
        x.focus[0] = -1;
        x.beta = 20;
        x.size = which % 2 ? longest(&x) : 0;
        x.s[which < 2 ? 3 : which < 4 ? N / 2 : N - 2] += 40;
        x.s[N - 1] += 40; /* the last of its chunk, and near the first */
        cgam_attend_out want, got;
        for (int threads = 1; threads <= 4; threads++) {
            cgam_env_opts opts = cgam_env_opts_default();
            opts.threads = threads;
            OWNED(cgam_env) env = NULL;
            CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
            attend(env, &x, true, threads == 1 ? &want : &got);
            if (threads == 1 && !x.size) judge(&x, 0, &want);
            if (threads == 1) assert_true(want.skipped > 0);
            CHECK_LE(want.skipped, 0x1p-54 * want.soft.sum);
            if (threads > 1) {
                assert_true(got.soft.sum == want.soft.sum && got.soft.tilt == want.soft.tilt);
                assert_true(got.skipped == want.skipped && got.soft.squares == want.soft.squares);
                assert_memory_equal(got.readout, want.readout, D * sizeof(double));
            }
        }
        dense_reset();
    }
}

/* Peaked: rows are left out, and it does not show. Flat: none is. */
TEST(rows_of_no_weight_are_left_out)
{
    cgam_env *env = *state;
    cgam_rng rng = cgam_rng_stream(6, 0);
    for (int peaked = 0; peaked < 2; peaked++) {
        scene x = make(&rng, cgam_cpu_best(), CGAM_F32, 3000, 300, 1, NONE, false);
        x.beta = peaked ? 200 : 0.01;
        cgam_attend_out out;
        attend(env, &x, true, &out);
        judge(&x, 0, &out);
        assert_true((out.skipped > 0) == peaked);
    }
    dense_reset();
}

TEST(extreme_scores_and_tiny_rows_are_no_trouble)
{
    cgam_env *env = *state;
    cgam_rng rng = cgam_rng_stream(7, 0);
    scene x = make(&rng, cgam_cpu_best(), CGAM_F64, 900, 40, 3, OWN, false);
    x.beta = 1e6; /* one row has all the weight */
    cgam_attend_out out[3];
    attend(env, &x, true, out);
    for (int v = 0; v < 3; v++) {
        CHECK_CLOSE(out[v].soft.sum, 1, 1e-9);
        CHECK_CLOSE_ALL(out[v].readout, x.wide + out[v].leader[0].row * 40, 40, 1e-9);
    }
    for (int64_t i = 0; i < 900 * 40; i++) x.wide[i] *= 1e-310;
    x.Z = (cgam_rows){x.wide, CGAM_F64, 900, 40, 40, NULL, cgam_cpu_best(), NULL};
    x.beta = 1;
    x.e = x.pivot = x.edges = NULL;
    x.edge = 0;
    check_scene(env, &x, true);
    dense_reset();
}

/* -inf in s masks a row; a mask on every row, or a NaN, is noticed in the sum. */
TEST(masks_and_nan_are_noticed)
{
    cgam_env *env = *state;
    cgam_rng rng = cgam_rng_stream(8, 0);
    scene x = make(&rng, cgam_cpu_best(), CGAM_F32, 600, 20, 1, SHARED, false);
    x.focus[0] = -1;
    for (int64_t i = 0; i < 600; i++) x.s[i] = i % 300 == 299 ? 0 : -INFINITY;
    cgam_attend_out out;
    attend(env, &x, true, &out);
    assert_int_equal(out.leader[0].row + out.leader[1].row, 299 + 599);
    CHECK_CLOSE(out.soft.sum, 1 + exp(x.beta * (out.leader[1].r - out.soft.top)), 1e-14);
    for (int64_t i = 0; i < 600; i++) x.s[i] = -INFINITY;
    attend(env, &x, false, &out);
    assert_true(out.soft.sum == 0 && out.soft.top == -INFINITY);
    x.s[0] = NAN;
    attend(env, &x, false, &out);
    assert_true(isnan(out.soft.sum));
    x.s[1] = 0;
    attend(env, &x, true, &out);
    assert_true(isnan(out.soft.sum));
    dense_reset();
    /* in a chunk that a far higher one makes negligible, before it or behind it */
    for (int k = 0; k < 2; k++) {
        x = make(&rng, cgam_cpu_best(), CGAM_F32, 3000, 100, 1, SHARED, false);
        x.focus[0] = -1;
        x.beta = 100;
        x.s[k ? 2900 : 100] = 50;
        x.s[k ? 100 : 2900] = NAN;
        attend(env, &x, k == 0, &out);
        assert_true(isnan(out.soft.sum));
        assert_int_equal(out.leader[0].row, k ? 2900 : 100);
        dense_reset();
    }
}

TEST(threads_and_company_change_no_bit)
{
    cgam_rng rng = cgam_rng_stream(9, 0);
    scene x = make(&rng, cgam_cpu_best(), CGAM_BF16, 5000, 150, 4, OWN, true);
    cgam_attend_out want[4], got[4];
    for (int threads = 1; threads <= 5; threads += 2) {
        cgam_env_opts opts = cgam_env_opts_default();
        opts.threads = threads;
        OWNED(cgam_env) env = NULL;
        CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
        attend(env, &x, true, threads == 1 ? want : got);
        for (int v = 0; v < 4 && threads > 1; v++) {
            assert_true(got[v].soft.sum == want[v].soft.sum &&
                        got[v].soft.tilt == want[v].soft.tilt);
            assert_true(got[v].leader[0].r == want[v].leader[0].r);
            assert_memory_equal(got[v].readout, want[v].readout, 150 * sizeof(double));
        }
        for (int v = 0; v < 4 && threads == 3; v++) { /* each alone: scores and sums are the same */
            scene y = x;
            y.count = 1;
            y.q = x.q + v * 150;
            y.e = x.e + v * 150;
            y.edges = x.edges + v * x.edge;
            y.focus = x.focus + v;
            attend(env, &y, true, got);
            assert_true(got[0].soft.sum == want[v].soft.sum && got[0].soft.top == want[v].soft.top);
        }
    }
    dense_reset();
}

static int start(void **state)
{
    cgam_env *env;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return -1;
    *state = env;
    return 0;
}

static int stop(void **state)
{
    cgam_env_free(*state);
    return 0;
}

TEST_GROUP(start, stop)
