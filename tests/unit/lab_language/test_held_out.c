/* Held-out accuracy against the rules written out: context, pair and coupling from one half of the
 * queries, counted on the other. Scores, intervals and choices are made again here, in double and by
 * trying every coupling at which something changes. */
#define ENV_THREADS 2
#include "lm/lens.h"
#include "support/one_env.h"

#include "lab/language/sweep.h"

#include "support/owned.h"

enum {
    N = 40,
    D = 24,
    QUERIES = 26,
    LAYERS = 3,
    LABELS = 3,
    CONTEXTS = 4,
    PAIRS = CONTEXTS * LAYERS
};

static float Z[N * D], zero[QUERIES * LAYERS * D], halves[CONTEXTS][2][D];
static int32_t tokens[LABELS] = {5, 17, 31}, target[QUERIES];

/* common: a coordinate that all rows share, so that it cancels in every difference of scores. */
static void make(uint64_t seed, int labels, float common)
{
    cgam_rng rng = cgam_rng_stream(seed, 0);
    for (int i = 0; i < N * D; i++)
        Z[i] = common > 0 && i % D == 0 ? common : (float)cgam_rng_normal(&rng);
    for (int i = 0; i < QUERIES; i++) {
        target[i] = i == 3 ? -1 : (int32_t)cgam_rng_below(&rng, labels);
        for (int j = 0; j < LAYERS * D; j++) {
            double pull = target[i] < 0 ? 0 : (double)Z[tokens[target[i]] * D + j % D];
            zero[i * LAYERS * D + j] = (float)(0.5 * pull + cgam_rng_normal(&rng));
        }
    }
    for (int c = 0; c < CONTEXTS; c++)
        for (int h = 0; h < 2; h++) {
            for (int j = 0; j < D; j++)
                halves[c][h][j] = (float)(0.5 * (double)Z[tokens[0] * D + j] +
                                          (double)(h + 1) * cgam_rng_normal(&rng));
        }
}

/* ---- The rules, written out ----------------------------------------------------------------- */
static double dot(const float *x, const float *y)
{
    double sum = 0;
    for (int j = 0; j < D; j++) sum += (double)x[j] * (double)y[j];
    return sum;
}

/* What the context of a half is multiplied by at a query layer. */
static double scale(int c, int half, int l)
{
    double mean = 0;
    int n = 0;
    for (int i = half; i < QUERIES; i += 2, n++) {
        const float *q = zero + (i * LAYERS + l) * D;
        mean += sqrt(dot(q, q));
    }
    return mean / n / sqrt(dot(halves[c][half], halves[c][half]));
}

/* Where query i is right at a pair under the context of a half. */
static cgam_interval interval(int i, int c, int half, int l, bool labels_only, int labels)
{
    cgam_interval x = {0, INFINITY};
    const float *q = zero + (i * LAYERS + l) * D, *v = halves[c][half];
    double s = scale(c, half, l);
    if (target[i] < 0) return (cgam_interval){1, 0};
    const float *own = Z + tokens[target[i]] * D;
    for (int m = 0; m < (labels_only ? labels : N); m++) {
        const float *row = Z + (labels_only ? tokens[m] : m) * D;
        double ahead = dot(own, q) - dot(row, q), rise = s * (dot(own, v) - dot(row, v));
        if (row == own) continue;
        if (rise > 0) x.from = fmax(x.from, -ahead / rise);
        else if (rise < 0) x.to = fmin(x.to, -ahead / rise);
        else if (ahead < 0) x.to = 0;
    }
    return x;
}

static double breadth(cgam_interval x)
{
    return isinf(x.to) ? 1 : (x.to - x.from) / (x.to + x.from);
}

/* The best range of a pair on one half: every end of an interval is tried as a beginning. */
static int best_range(int c, int half, int l, bool labels_only, int labels, cgam_interval *out)
{
    cgam_interval of[QUERIES];
    double ends[2 * QUERIES], widest = 0;
    int n = 0, used = 0, most = 0;
    for (int i = half; i < QUERIES; i += 2) {
        cgam_interval x = interval(i, c, half, l, labels_only, labels);
        if (!(x.from < x.to)) continue;
        of[n++] = x;
        ends[used++] = x.from;
        if (isfinite(x.to)) ends[used++] = x.to;
    }
    *out = (cgam_interval){0, INFINITY};
    for (int pass = 0; pass < 3; pass++) { /* how many; how wide; the one that begins first */
        cgam_interval best = {INFINITY, INFINITY};
        for (int e = 0; e < used; e++) {
            cgam_interval here = {ends[e], INFINITY};
            int held = 0;
            for (int k = 0; k < used; k++)
                if (ends[k] > here.from) here.to = fmin(here.to, ends[k]);
            for (int k = 0; k < n; k++) held += of[k].from <= here.from && here.from < of[k].to;
            if (pass == 0 && held > most) most = held;
            if (pass == 1 && held == most) widest = fmax(widest, breadth(here));
            if (pass == 2 && held == most && breadth(here) >= 0.99 * widest &&
                here.from < best.from)
                best = here;
        }
        if (pass == 2 && most > 0) *out = best;
    }
    return most;
}

/* The pair and coupling chosen on a half, and how the other half fares with its context. */
static void judge(int half, bool labels_only, int labels, bool *right)
{
    cgam_interval range[PAIRS];
    int hits[PAIRS], most = 0, chosen = -1;
    double widest = 0;
    for (int p = 0; p < PAIRS; p++) {
        hits[p] = best_range(p / LAYERS, half, p % LAYERS, labels_only, labels, &range[p]);
        if (hits[p] > most) most = hits[p];
    }
    for (int p = 0; p < PAIRS; p++)
        if (hits[p] == most) widest = fmax(widest, breadth(range[p]));
    for (int l = 0; l < LAYERS; l++) /* the latest query layer, then the latest context, stays */
        for (int c = 0; c < CONTEXTS; c++)
            if (hits[c * LAYERS + l] == most && breadth(range[c * LAYERS + l]) >= 0.99 * widest)
                chosen = c * LAYERS + l;
    cgam_interval r = range[chosen];
    double lambda = isinf(r.to)  ? (r.from > 0 ? 2 * r.from : 1)
                    : r.from > 0 ? sqrt(r.from * r.to)
                                 : r.to / 2;
    for (int i = 1 - half; i < QUERIES; i += 2) {
        cgam_interval x = interval(i, chosen / LAYERS, half, chosen % LAYERS, labels_only, labels);
        right[i] = x.from <= lambda && lambda < x.to;
    }
}

/* ---- Tests ---------------------------------------------------------------------------------- */
static cgam_sweep *sweep_of(int labels)
{
    OWNED(cgam_lens) lens = NULL;
    cgam_sweep *sweep;
    float gain[D];
    const cgam_lens_parts parts = {
        .vocab = N, .width = D, .Z = Z, .gain = gain, .norm = {.epsilon = 1e-5}};
    for (int j = 0; j < D; j++) gain[j] = 1;
    const cgam_sweep_input in = {.queries = QUERIES,
                                 .layers = LAYERS,
                                 .zero = zero,
                                 .labels = labels,
                                 .tokens = tokens,
                                 .target = target,
                                 .lens = CGAM_LENS_RAW,
                                 .relative = true};
    CHECK_STATUS(env, cgam_lens_make(env, &parts, &lens));
    CHECK_STATUS(env, cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &sweep));
    return sweep;
}

/* The halves' contexts differ in length and direction, so a coupling chosen under the context of one
 * is wrong for the other. */
TEST(everything_that_is_chosen_comes_from_one_half)
{
    for (uint64_t seed = 0; seed < 12; seed++)
        for (int labels = 2; labels <= LABELS; labels++) {
            make(seed, labels, 0);
            OWNED(cgam_sweep) sweep = sweep_of(labels);
            for (int over = 0; over < 2; over++) {
                bool got[QUERIES], want[QUERIES];
                cgam_sweep_best best;
                int hits = 0;
                CHECK_STATUS(
                    env, cgam_sweep_choose(sweep, (cgam_sweep_over)over, 0, CONTEXTS, got, &best));
                for (int half = 0; half < 2; half++) judge(half, over == 0, labels, want);
                for (int i = 0; i < QUERIES; i++) {
                    assert_int_equal(got[i], want[i]);
                    hits += want[i];
                }
                CHECK_CLOSE(best.held_out, hits / (QUERIES - 1.0), 1e-15);
            }
        }
}

/* Over two labels a context adds one number to the difference of the scores: the contexts of all
 * layers have the same steps but for the scale, to the last bits. Noise in those changes nothing. */
TEST(no_tie_is_decided_by_rounding)
{
    for (uint64_t seed = 20; seed < 40; seed++) {
        cgam_sweep_best first[2], again[2];
        bool right[2][QUERIES], noisy[2][QUERIES];
        make(seed, 2, 0);
        for (int c = 1; c < CONTEXTS; c++) /* all push the same way, in both halves */
            for (int j = 0; j < D; j++) {
                float way = Z[tokens[0] * D + j] - Z[tokens[1] * D + j];
                for (int h = 0; h < 2; h++) halves[c][h][j] = halves[c][h][j] / 10 + way;
            }
        cgam_sweep *sweep = sweep_of(2);
        for (int half = 0; half < 2; half++)
            CHECK_STATUS(env, cgam_sweep_choose(sweep, CGAM_OVER_LABELS, 1, CONTEXTS - 1,
                                                right[half], &first[half]));
        cgam_sweep_free(sweep);
        for (int turn = 0; turn < 4; turn++) {
            for (int i = 0; i < QUERIES * LAYERS * D; i++)
                zero[i] *= 1 + (float)((i + turn) % 3 - 1) * 0x1p-22F;
            sweep = sweep_of(2);
            for (int half = 0; half < 2; half++) {
                CHECK_STATUS(env, cgam_sweep_choose(sweep, CGAM_OVER_LABELS, 1, CONTEXTS - 1,
                                                    noisy[half], &again[half]));
                assert_int_equal(again[half].context, first[half].context);
                assert_int_equal(again[half].query_layer, first[half].query_layer);
                assert_memory_equal(noisy[half], right[half], sizeof right[half]);
            }
            cgam_sweep_free(sweep);
        }
        assert_int_equal(first[0].context, CONTEXTS - 1); /* the latest of those that tie */
    }
}

/* Scores of 45,000 that differ by some units: in f32 a difference keeps three digits. */
TEST(ends_of_ranges_are_those_of_double)
{
    double worst = 0;
    int64_t ends = 0;
    for (uint64_t seed = 50; seed < 54; seed++) {
        make(seed, LABELS, 300);
        OWNED(cgam_sweep) sweep = sweep_of(LABELS);
        for (int p = 0; p < PAIRS; p++)
            for (int over = 0; over < 2; over++) {
                const cgam_interval *of =
                    cgam_sweep_intervals(sweep, (cgam_sweep_over)over, p / LAYERS, p % LAYERS);
                for (int i = 0; i < QUERIES; i++) {
                    cgam_interval want =
                        interval(i, p / LAYERS, 1 - i % 2, p % LAYERS, over == 0, LABELS);
                    assert_int_equal(of[i].from < of[i].to, want.from < want.to);
                    if (!(want.from < want.to)) continue;
                    assert_int_equal(isinf(of[i].to), isinf(want.to));
                    if (want.from > 0) worst = fmax(worst, fabs(of[i].from / want.from - 1));
                    if (isfinite(want.to)) worst = fmax(worst, fabs(of[i].to / want.to - 1));
                    ends += (want.from > 0) + isfinite(want.to);
                }
            }
    }
    assert_true(ends > 100);
    CHECK_LE(worst, 1e-9); /* f32 leaves 1e-3 */
}

TEST(a_range_is_met_in_its_geometric_middle)
{
    CHECK_CLOSE(cgam_sweep_inside((cgam_interval){1, 100}), 10, 1e-14);
    CHECK_CLOSE(cgam_sweep_inside((cgam_interval){1e-200, 1e-180}), 1e-190, 1e-204);
    CHECK_CLOSE(cgam_sweep_inside((cgam_interval){0, 8}), 4, 0);
    CHECK_CLOSE(cgam_sweep_inside((cgam_interval){3, INFINITY}), 6, 0);
    CHECK_CLOSE(cgam_sweep_inside((cgam_interval){0, INFINITY}), 1, 0);
    CHECK_CLOSE(cgam_sweep_inside((cgam_interval){5, 5}), 5, 0); /* of a grid */
}

TEST_GROUP(set_up, tear_down)
