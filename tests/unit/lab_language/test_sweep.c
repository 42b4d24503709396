/* Exact couplings against brute force, and the lens against sums written out. */
#include "lm/lens.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "lab/language/sweep.h"

#include "support/owned.h"

enum { N = 70, D = 12, QUERIES = 30, LAYERS = 4, LABELS = 3, CONTEXTS = 5 };

static cgam_env *env;
static float Z[N * D], gain[D], zero[QUERIES * LAYERS * D], halves[CONTEXTS][2][D];
static const int32_t tokens[LABELS] = {4, 33, 60};
static int32_t target[QUERIES];

static int set_up(void **state)
{
    (void)state;
    env = object_env(2);
    cgam_rng rng = cgam_rng_stream(11, 0);
    for (int i = 0; i < N * D; i++) Z[i] = (float)cgam_rng_normal(&rng);
    for (int j = 0; j < D; j++) gain[j] = (float)(1 + 0.3 * cgam_rng_normal(&rng));
    for (int i = 0; i < QUERIES; i++) {
        target[i] = i == 7 ? -1 : (int32_t)cgam_rng_below(&rng, LABELS);
        for (int j = 0; j < LAYERS * D; j++) {
            double pull = target[i] < 0 ? 0 : (double)Z[tokens[target[i]] * D + j % D];
            zero[i * LAYERS * D + j] = (float)(0.7 * pull + 1.5 * cgam_rng_normal(&rng));
        }
    }
    for (int c = 0; c < CONTEXTS; c++)
        for (int h = 0; h < 2; h++) {
            for (int j = 0; j < D; j++)
                halves[c][h][j] =
                    c == 0 ? 0
                           : (float)((double)Z[tokens[0] * D + j] + 0.8 * cgam_rng_normal(&rng));
        }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

static const cgam_lens_parts parts = {
    .vocab = N, .width = D, .Z = Z, .gain = gain, .norm = {.epsilon = 1e-5}};

static cgam_lens *lens_new(cgam_env *on)
{
    cgam_lens *lens = NULL;
    CHECK_STATUS(on, cgam_lens_make(on, &parts, &lens));
    return lens;
}

static bool wins(int64_t n, const float *a, const float *b, int64_t y, double lambda)
{
    for (int64_t m = 0; m < n; m++) {
        double mine = (double)a[y] + lambda * (double)b[y];
        double other = (double)a[m] + lambda * (double)b[m];
        if (m != y && other > mine) return false;
    }
    return true;
}

/* How many of the intervals hold a coupling. */
static int64_t count_holding(int64_t n, const cgam_interval *of, double lambda)
{
    int64_t held = 0;
    for (int64_t i = 0; i < n; i++) held += of[i].from <= lambda && lambda < of[i].to;
    return held;
}

TEST(an_interval_holds_exactly_the_couplings_that_win)
{
    cgam_rng rng = cgam_rng_stream(2, 0);
    int64_t inside = 0;
    for (int trial = 0; trial < 400; trial++) {
        enum { SIZE = 1100 }; /* more than a piece of the pass */
        float a[SIZE], b[SIZE];
        int64_t n = trial % 2 ? SIZE : 5, y = cgam_rng_below(&rng, n);
        for (int64_t m = 0; m < n; m++) {
            a[m] = (float)cgam_rng_normal(&rng);
            b[m] = (float)cgam_rng_normal(&rng);
        }
        b[y] += 3;
        a[y] += (float)(trial % 5) - 2;
        cgam_interval x = cgam_sweep_interval(n, a, b, y);
        for (int k = 0; k < 50; k++) {
            double lambda = k == 0 ? 0 : exp(2 * cgam_rng_normal(&rng));
            bool held = x.from <= lambda && lambda < x.to;
            assert_int_equal(held, wins(n, a, b, y, lambda));
            inside += held;
        }
        /* and its ends are where another token takes over */
        if (!(x.to > x.from * (1 + 1e-6))) continue;
        assert_true(wins(n, a, b, y, x.from * (1 + 1e-9)));
        if (x.from > 0) assert_false(wins(n, a, b, y, x.from * (1 - 1e-9)));
        if (isfinite(x.to)) {
            assert_true(wins(n, a, b, y, x.to * (1 - 1e-9)));
            assert_false(wins(n, a, b, y, x.to * (1 + 1e-9)));
        }
    }
    assert_true(inside > 1000); /* the test has seen both answers */
    const float equal[] = {1, 1}, flat[] = {0, 0};
    assert_true(cgam_sweep_interval(2, equal, flat, 0).to > 0); /* ties go to the lowest */
    assert_true(cgam_sweep_interval(2, equal, flat, 1).to < 0);
}

TEST(a_step_function_has_its_top_where_a_grid_finds_it)
{
    cgam_rng rng = cgam_rng_stream(3, 0);
    for (int trial = 0; trial < 100; trial++) {
        cgam_interval of[25];
        for (int i = 0; i < 25; i++) {
            double from = cgam_rng_uniform(&rng) * 10, width = cgam_rng_uniform(&rng) * 5 - 1;
            of[i] = (cgam_interval){from, i % 6 == 0 ? INFINITY : from + width};
        }
        cgam_step step;
        CHECK_STATUS(env, cgam_sweep_step(env, 25, of, &step));
        int64_t top = 0;
        for (int k = 0; k <= 20000; k++) {
            int64_t here = count_holding(25, of, 0.001 * k);
            top = here > top ? here : top;
        }
        assert_true(step.count >= top); /* a grid can miss a narrow step */
        assert_int_equal(count_holding(25, of, cgam_sweep_inside(step.lambda)), step.count);
        assert_int_equal(count_holding(25, of, step.lambda.from), step.count);
    }
    cgam_step step;
    CHECK_STATUS(env, cgam_sweep_step(env, 1, &(cgam_interval){1, 1}, &step));
    assert_int_equal(step.count, 0);
}

/* The score of every token for one pair and coupling, by the definition. */
static int64_t answer(cgam_lens_kind kind, bool relative, int64_t i, int64_t c, int64_t l,
                      double lambda, bool labels_only)
{
    const float *q = zero + (i * LAYERS + l) * D, *v = halves[c][1 - i % 2];
    double size = 0, mean = 0;
    int64_t n = 0;
    for (int j = 0; j < D; j++) size += (double)v[j] * (double)v[j];
    for (int64_t k = 1 - i % 2; k < QUERIES; k += 2, n++) {
        double square = 0;
        for (int j = 0; j < D; j++) square += pow((double)zero[(k * LAYERS + l) * D + j], 2);
        mean += sqrt(square);
    }
    double factor = relative && size > 0 ? mean / (double)n / sqrt(size) : 1, top = -INFINITY;
    int64_t best = -1;
    for (int64_t m = 0; m < (labels_only ? LABELS : N); m++) {
        const float *row = Z + (labels_only ? tokens[m] : m) * D;
        double score = 0;
        for (int j = 0; j < D; j++)
            score += (double)row[j] * (kind == CGAM_LENS_RAW ? 1 : (double)gain[j]) *
                     ((double)q[j] + lambda * factor * (double)v[j]);
        if (score > top) top = score, best = m;
    }
    return labels_only ? tokens[best] : best;
}

TEST(every_pair_agrees_with_brute_force)
{
    OWNED(cgam_lens) lens = lens_new(env);
    cgam_rng rng = cgam_rng_stream(4, 0);
    int64_t right = 0;
    for (int kind = CGAM_LENS_RAW; kind <= CGAM_LENS_GAIN; kind++)
        for (int relative = 0; relative < 2; relative++) {
            cgam_sweep_input in = {.queries = QUERIES,
                                   .layers = LAYERS,
                                   .zero = zero,
                                   .labels = LABELS,
                                   .tokens = tokens,
                                   .target = target,
                                   .lens = (cgam_lens_kind)kind,
                                   .relative = relative};
            OWNED(cgam_sweep) sweep = NULL;
            CHECK_STATUS(env, cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &sweep));
            for (int64_t c = 0; c < CONTEXTS; c++)
                for (int64_t l = 0; l < LAYERS; l++)
                    for (int over = 0; over < 2; over++) {
                        const cgam_interval *of =
                            cgam_sweep_intervals(sweep, (cgam_sweep_over)over, c, l);
                        double lambda = exp(cgam_rng_normal(&rng));
                        for (int64_t i = 0; i < QUERIES; i++) {
                            bool held = of[i].from <= lambda && lambda < of[i].to;
                            bool want =
                                target[i] >= 0 && answer((cgam_lens_kind)kind, relative, i, c, l,
                                                         lambda, over == 0) == tokens[target[i]];
                            assert_int_equal(held, want);
                            right += held;
                        }
                    }
        }
    assert_true(right > 200);
}

static const double couplings[] = {0, 0.3, 1, 2.5, 40};
enum { GRID = sizeof couplings / sizeof *couplings };

/* The token a state says through the norm, by the definition. */
static int64_t said(const cgam_lens_parts *p, const float *h, bool labels_only)
{
    double m = 0, square = 0, top = -INFINITY;
    int64_t best = -1;
    for (int j = 0; j < D; j++) m += (double)h[j] / D;
    if (!p->norm.centred) m = 0;
    for (int j = 0; j < D; j++) square += pow((double)h[j] - m, 2);
    double factor = 1 / sqrt(square / D + p->norm.epsilon);
    for (int64_t k = 0; k < (labels_only ? LABELS : N); k++) {
        const float *row = Z + (labels_only ? tokens[k] : k) * D;
        double score = 0;
        for (int j = 0; j < D; j++)
            score += (double)row[j] * (((double)h[j] - m) * factor * (double)gain[j] +
                                       (p->bias ? (double)p->bias[j] : 0));
        if (score > top) top = score, best = k;
    }
    return labels_only ? tokens[best] : best;
}

TEST(a_grid_through_the_norm_agrees_with_brute_force)
{
    float bias[D], sums[QUERIES * D];
    for (int j = 0; j < D; j++) bias[j] = (float)(0.8 * sin(j + 1.0));
    int64_t right = 0, apart = 0;
    for (int centred = 0; centred < 2; centred++)
        for (int biased = 0; biased < 2; biased++) {
            cgam_lens_parts p = parts;
            p.norm.centred = centred;
            p.bias = biased ? bias : NULL;
            OWNED(cgam_lens) lens = NULL;
            CHECK_STATUS(env, cgam_lens_make(env, &p, &lens));
            assert_int_equal(!lens->shifted, !biased);
            cgam_sweep_input in = {.queries = QUERIES,
                                   .layers = LAYERS,
                                   .zero = zero,
                                   .labels = LABELS,
                                   .tokens = tokens,
                                   .target = target,
                                   .lens = CGAM_LENS_NORM,
                                   .grid = GRID,
                                   .lambda = couplings,
                                   .relative = true};
            OWNED(cgam_sweep) sweep = NULL;
            OWNED(cgam_sweep) exact = NULL;
            CHECK_STATUS(env, cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &sweep));
            in.lens = CGAM_LENS_GAIN;
            CHECK_STATUS(env, cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &exact));
            assert_null(cgam_sweep_intervals(sweep, CGAM_OVER_LABELS, 0, 0));
            for (int64_t c = 0; c < CONTEXTS; c++)
                for (int64_t l = 0; l < LAYERS; l++)
                    for (int g = 0; g < GRID; g++) {
                        CHECK_STATUS(
                            env, cgam_sweep_sums(lens, &in, halves[c][0], l, couplings[g], sums));
                        for (int over = 0; over < 2; over++) {
                            int64_t want = 0, got = cgam_sweep_hits(sweep, (cgam_sweep_over)over, c,
                                                                    l, couplings[g]);
                            for (int64_t i = 0; i < QUERIES; i++)
                                want += target[i] >= 0 &&
                                        said(&p, sums + i * D, over == 0) == tokens[target[i]];
                            assert_int_equal(got, want);
                            right += got;
                            int64_t linear =
                                cgam_sweep_hits(exact, (cgam_sweep_over)over, c, l, couplings[g]);
                            if (!biased) assert_int_equal(got, linear);
                            apart += got != linear;
                        }
                    }
            cgam_sweep_best best;
            CHECK_STATUS(env, cgam_sweep_choose(sweep, CGAM_OVER_LABELS, 0, CONTEXTS, NULL, &best));
            assert_true(best.lambda.from == best.lambda.to);
        }
    assert_true(right > 200 && apart > 20); /* a bias does make a difference */
}

TEST(the_best_pair_is_the_best_and_is_judged_on_the_other_half)
{
    OWNED(cgam_lens) lens = lens_new(env);
    cgam_sweep_input in = {.queries = QUERIES,
                           .layers = LAYERS,
                           .zero = zero,
                           .labels = LABELS,
                           .tokens = tokens,
                           .target = target,
                           .lens = CGAM_LENS_GAIN,
                           .relative = true};
    cgam_sweep *sweep;
    CHECK_STATUS(env, cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &sweep));
    for (int over = 0; over < 2; over++) {
        cgam_sweep_best best;
        bool right[QUERIES];
        CHECK_STATUS(env,
                     cgam_sweep_choose(sweep, (cgam_sweep_over)over, 0, CONTEXTS, right, &best));
        int64_t top = 0, hits = 0;
        for (int64_t c = 0; c < CONTEXTS; c++)
            for (int64_t l = 0; l < LAYERS; l++) {
                cgam_step step;
                CHECK_STATUS(
                    env, cgam_sweep_step(env, QUERIES,
                                         cgam_sweep_intervals(sweep, (cgam_sweep_over)over, c, l),
                                         &step));
                top = step.count > top ? step.count : top;
            }
        CHECK_CLOSE(best.accuracy, (double)top / (QUERIES - 1), 1e-15); /* one is left out */
        CHECK_LE(best.held_out, best.accuracy);
        for (int i = 0; i < QUERIES; i++) hits += right[i];
        CHECK_CLOSE(best.held_out, (double)hits / (QUERIES - 1), 1e-15);
        assert_false(right[7]);
        assert_true(best.tied >= 1 && best.tied <= CONTEXTS * LAYERS);
        CHECK_LE(best.held_out_ties, best.accuracy);
    }
    cgam_sweep_free(sweep);
    /* All contexts the same nothing: every context ties, and ties agree with the choice. */
    float nothing[2][2][D];
    for (int c = 0; c < 2; c++) memcpy(nothing[c], halves[0], sizeof nothing[c]);
    CHECK_STATUS(env, cgam_sweep_new(lens, &in, 2, nothing[0][0], NULL, &sweep));
    cgam_sweep_best one, both;
    CHECK_STATUS(env, cgam_sweep_choose(sweep, CGAM_OVER_LABELS, 0, 1, NULL, &one));
    CHECK_STATUS(env, cgam_sweep_choose(sweep, CGAM_OVER_LABELS, 0, 2, NULL, &both));
    CHECK_CLOSE(both.tied, 2 * one.tied, 1e-15);
    CHECK_CLOSE(both.held_out_ties, one.held_out_ties, 1e-15);
    cgam_sweep_free(sweep);
    in.lens = CGAM_LENS_NORM;
    CHECK_REFUSED(env, CGAM_E_ARG, "not linear",
                  cgam_sweep_new(lens, &in, CONTEXTS, halves[0][0], NULL, &sweep));
}

TEST(spread_is_what_the_definition_says)
{
    OWNED(cgam_lens) lens = lens_new(env);
    const int32_t asked[] = {3, -1, 50};
    for (int kind = CGAM_LENS_RAW; kind <= CGAM_LENS_NORM; kind++) {
        cgam_spread got[QUERIES];
        CHECK_STATUS(env, cgam_lens_spread(lens, (cgam_lens_kind)kind, QUERIES, zero, LAYERS * D, 3,
                                           asked, got));
        cgam_answer judged[QUERIES];
        int32_t words[QUERIES];
        for (int i = 0; i < QUERIES; i++) words[i] = 2 * i;
        CHECK_STATUS(env, cgam_lens_judge(lens, (cgam_lens_kind)kind, QUERIES, zero, LAYERS * D,
                                          words, 3, asked, judged));
        for (int i = 0; i < QUERIES; i++) {
            double s[N], sum = 0, square = 0, entropy = 0, top = -INFINITY, size = 0;
            const float *h = zero + i * LAYERS * D;
            int64_t best = 0;
            for (int j = 0; j < D; j++) size += (double)h[j] * (double)h[j];
            double factor = kind == CGAM_LENS_NORM ? 1 / sqrt(size / D + 1e-5) : 1;
            for (int m = 0; m < N; m++) {
                s[m] = 0;
                for (int j = 0; j < D; j++)
                    s[m] += (double)Z[m * D + j] * (double)h[j] * factor *
                            (kind == CGAM_LENS_RAW ? 1 : (double)gain[j]);
                if (s[m] > top) top = s[m], best = m;
            }
            for (int m = 0; m < N; m++) sum += exp(s[m] - top);
            for (int m = 0; m < N; m++) {
                double p = exp(s[m] - top) / sum;
                square += p * p;
                entropy -= p > 0 ? p * log(p) : 0;
            }
            double mass = (exp(s[3] - top) + exp(s[50] - top)) / sum;
            CHECK_CLOSE(got[i].log_entropy, entropy, 1e-4); /* scores of size 20 in f32 */
            CHECK_CLOSE(got[i].log_ipr, -log(square), 1e-4);
            CHECK_CLOSE(got[i].mass, mass, 1e-4);
            assert_int_equal(got[i].top, best);
            int64_t rank = 0;
            for (int m = 0; m < N; m++) rank += s[m] > s[words[i]];
            CHECK_CLOSE(judged[i].log_p, s[words[i]] - top - log(sum), 1e-4);
            CHECK_CLOSE(judged[i].mass, mass, 1e-4);
            assert_int_equal(judged[i].rank, rank);
        }
    }
}

static int make_sweep(cgam_env *failing, void *arg)
{
    (void)arg;
    OWNED(cgam_lens) lens = NULL;
    OWNED(cgam_sweep) sweep = NULL;
    cgam_sweep_best best;
    cgam_sweep_input in = {.queries = 4,
                           .layers = 2,
                           .zero = zero,
                           .labels = LABELS,
                           .tokens = tokens,
                           .target = target,
                           .lens = CGAM_LENS_RAW};
    TRY(cgam_lens_make(failing, &parts, &lens));
    TRY(cgam_sweep_new(lens, &in, 2, halves[0][0], NULL, &sweep));
    TRY(cgam_sweep_choose(sweep, CGAM_OVER_LABELS, 0, 2, NULL, &best));
    return CGAM_OK;
}

/* More states than are scored at once. */
TEST(many_states_are_read_as_each_alone)
{
    enum { MANY = 300 };
    static float H[MANY * D];
    static cgam_spread spread[MANY];
    static cgam_answer answer[MANY];
    int32_t targets[MANY];
    OWNED(cgam_lens) lens = lens_new(env);
    for (int i = 0; i < MANY * D; i++) H[i] = (float)sin(0.37 * i + 1e-3 * i * i);
    for (int i = 0; i < MANY; i++) targets[i] = tokens[i % LABELS];
    CHECK_STATUS(env, cgam_lens_spread(lens, CGAM_LENS_NORM, MANY, H, D, LABELS, tokens, spread));
    CHECK_STATUS(
        env, cgam_lens_judge(lens, CGAM_LENS_NORM, MANY, H, D, targets, LABELS, tokens, answer));
    for (int i = 0; i < MANY; i++) {
        cgam_spread s;
        cgam_answer a;
        CHECK_STATUS(env,
                     cgam_lens_spread(lens, CGAM_LENS_NORM, 1, H + i * D, D, LABELS, tokens, &s));
        CHECK_STATUS(env, cgam_lens_judge(lens, CGAM_LENS_NORM, 1, H + i * D, D, &targets[i],
                                          LABELS, tokens, &a));
        CHECK_CLOSE(spread[i].log_entropy, s.log_entropy, 1e-4);
        CHECK_CLOSE(answer[i].log_p, a.log_p, 1e-4);
        CHECK_CLOSE(answer[i].mass, a.mass, 1e-5);
    }
    for (int j = 0; j < D; j++) H[280 * D + j] = NAN; /* named by its own number in both */
    CHECK_REFUSED(env, CGAM_E_VALUE, "state 280 ",
                  cgam_lens_spread(lens, CGAM_LENS_NORM, MANY, H, D, LABELS, tokens, spread));
    CHECK_REFUSED(
        env, CGAM_E_VALUE, "state 280 ",
        cgam_lens_judge(lens, CGAM_LENS_NORM, MANY, H, D, targets, LABELS, tokens, answer));
}

TEST(every_allocation_may_fail) { check_every_allocation(make_sweep, NULL); }

TEST_GROUP(set_up, tear_down)
