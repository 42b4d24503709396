/* ctest: timeout=300
 * Mode first on banks large enough for f32 and matrices: a query among others and alone against the definition in long
 * double. Random beta up to 1e18, memories that nearly repeat each other, contexts of little weight, every type of
 * storage. Weights are shares - none above 1, none not a number - and gaps are those of double on every way. */
#include "support/check.h"
#include "support/dense.h"
#include "support/objects.h"

#include "num/cpu/widen.h"
#include <cgam/cgam.h>

enum { QUERIES_MAX = 65, TOP = 5, ALONE = 3 };

typedef struct scene {
    int64_t n, d, queries;
    cgam_dtype dtype;
    cgam_bank *bank;
    double *Z, *q, *c; /* Z as stored, widened */
    bool own;          /* c is one for each query, else NULL or one */
    int64_t *target;
    double slack; /* what a sum of d products is off by, of the size of its terms */
    cgam_recall_opts opts;
    cgam_recall *plan;
} scene;

static double pick_power(cgam_rng *rng, int low, int high)
{
    return pow(10, (double)(low + cgam_rng_below(rng, high - low + 1)));
}

/* Rows in families of 1 to 14 that are 1e-4 to 1e-16 of themselves apart. */
static void fill_rows(cgam_rng *rng, const scene *x)
{
    int64_t family = cgam_rng_below(rng, 4) ? 2 + cgam_rng_below(rng, 13) : 1;
    double apart = pick_power(rng, -16, -4), size = 1 / sqrt((double)x->d);
    for (int64_t i = 0; i < x->n; i++) {
        const double *first = x->Z + i / family * family * x->d;
        for (int64_t j = 0; j < x->d; j++)
            x->Z[i * x->d + j] = i % family ? first[j] + apart * size * cgam_rng_normal(rng)
                                            : size * cgam_rng_normal(rng);
    }
}

static scene make(cgam_env *env, uint64_t number)
{
    cgam_rng rng = cgam_rng_stream(91, number);
    scene x = {.d = number % 2 ? 300 : 64, .dtype = (cgam_dtype)(number % 4)};
    x.n = (1 << 18) / x.d + 1 + cgam_rng_below(&rng, 200);
    x.queries = 8 + cgam_rng_below(&rng, QUERIES_MAX - 7);
    x.Z = dense_room(x.n * x.d);
    fill_rows(&rng, &x);
    void *stored = dense_room(x.n * x.d);
    cgam_narrow(x.dtype, x.Z, x.n * x.d, stored);
    cgam_widen(x.dtype, stored, x.n * x.d, x.Z);
    int64_t contexts = cgam_rng_below(&rng, 3);
    x.own = contexts == 2;
    x.q = dense_normals(&rng, x.queries * x.d, 0.03);
    x.c = contexts ? dense_normals(&rng, x.queries * x.d, 0.03) : NULL;
    for (int64_t k = 0; k < x.queries; k++) {
        const double *near = x.Z + cgam_rng_below(&rng, x.n) * x.d,
                     *also = x.Z + cgam_rng_below(&rng, x.n) * x.d;
        for (int64_t j = 0; j < x.d; j++) {
            x.q[k * x.d + j] += near[j];
            if (x.c) x.c[k * x.d + j] += also[j];
        }
    }
    if (cgam_rng_below(&rng, 2)) {
        x.target = (int64_t *)(void *)dense_room(x.queries);
        for (int64_t k = 0; k < x.queries; k++) x.target[k] = cgam_rng_below(&rng, x.n);
    }
    x.slack = (double)(x.d + 16) * 0x1p-53;
    x.opts = cgam_recall_opts_default();
    x.opts.beta =
        pick_power(&rng, cgam_rng_below(&rng, 2) ? 0 : 8, cgam_rng_below(&rng, 2) ? 18 : 4);
    x.opts.lambda = pick_power(&rng, -8, 0);
    cgam_bank_opts opts = cgam_bank_opts_default();
    CHECK_STATUS(env, cgam_bank_new(env, stored, x.dtype, x.n, x.d, &opts, &x.bank));
    CHECK_STATUS(env, cgam_recall_new(x.bank, &x.opts, &x.plan));
    return x;
}

/* y[n] = Z v. */
static void score(const scene *x, const double *v, double *y)
{
    for (int64_t i = 0; i < x->n; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < x->d; j++) sum += (long double)x->Z[i * x->d + j] * v[j];
        y[i] = (double)sum;
    }
}

static double length_of(const scene *x, const double *v)
{
    double sum = 0, most = 0;
    for (int64_t j = 0; j < x->d; j++) sum += v[j] * v[j];
    for (int64_t i = 0; i < x->n; i++) {
        double length = 0;
        for (int64_t j = 0; j < x->d; j++) length += x->Z[i * x->d + j] * x->Z[i * x->d + j];
        most = fmax(most, length);
    }
    return sqrt(sum * most);
}

static double gap_of(const scene *x, const double *y, int64_t focus)
{
    double best = -INFINITY;
    for (int64_t i = 0; i < x->n; i++)
        if (i != focus) best = fmax(best, y[i]);
    return y[focus] - best;
}

static cgam_result run(const scene *x, int64_t from, int64_t count, cgam_result *results,
                       double *top_p)
{
    cgam_recall_in in = {.queries = count,
                         .q = x->q + from * x->d,
                         .c = x->c ? x->c + (x->own ? from * x->d : 0) : NULL,
                         .c_per_query = x->own,
                         .target = x->target ? x->target + from : NULL};
    cgam_recall_out out = {.results = results, .top = TOP, .top_p = top_p};
    CHECK_STATUS(NULL, cgam_recall_run(x->plan, &in, &out));
    return results[0];
}

/* What does not depend on how scores were computed. */
static void check_shares(const cgam_result *r, const double *top_p)
{
    double sum = 0;
    assert_int_equal(r->end, CGAM_END_DIRECT);
    CHECK_LE(0, r->p);
    CHECK_LE(r->p, 1);
    CHECK_LE(r->log_p, 0);
    CHECK_LE(1, r->neff_ipr);
    CHECK_LE(1, r->neff_entropy);
    for (int k = 0; k < TOP; k++) {
        CHECK_LE(0, top_p[k]);
        sum += top_p[k];
    }
    CHECK_LE(sum, 1 + 1e-15 * TOP);
}

static void check_query(const scene *x, int64_t k, const cgam_result *r)
{
    double *b = dense_room(x->n), *s = dense_room(x->n), *total = dense_room(x->n);
    const double *q = x->q + k * x->d, *c = x->c ? x->c + (x->own ? k * x->d : 0) : NULL;
    double off_b = 4 * x->slack * length_of(x, q), off_s = c ? 4 * x->slack * length_of(x, c) : 0;
    double off = off_b + x->opts.lambda * off_s, most = -INFINITY;
    score(x, q, b);
    if (c) score(x, c, s);
    for (int64_t i = 0; i < x->n; i++) {
        total[i] = b[i] + x->opts.lambda * s[i];
        most = fmax(most, total[i]);
    }
    CHECK_CLOSE(total[r->winner], most, off);
    CHECK_CLOSE(r->gap, gap_of(x, total, r->focus), off);
    CHECK_CLOSE(r->gap_raw, gap_of(x, b, r->focus), off_b);
    CHECK_CLOSE(r->gap_gate, gap_of(x, s, r->focus), off_s);
    long double sum = 0;
    for (int64_t i = 0; i < x->n; i++)
        sum += expl((long double)x->opts.beta * (total[i] - total[r->focus]));
    double rel = 2 * x->opts.beta * off + 6e-3; /* weights of f32 */
    if (rel < 0.1) CHECK_CLOSE(r->p, (double)(1 / sum), rel);
}

TEST(a_query_among_others_is_the_query_alone)
{
    enum { SCENES = 40 };
    static cgam_result results[QUERIES_MAX];
    static double top_p[QUERIES_MAX * TOP];
    cgam_env *env = object_env(2);
    int64_t ways[CGAM_PATH_LANES + 1] = {0}, in_f32 = 0;
    for (uint64_t number = 0; number < SCENES; number++) {
        scene x = make(env, number);
        cgam_recall_in in = {
            .queries = x.queries, .q = x.q, .c = x.c, .c_per_query = x.own, .target = x.target};
        cgam_recall_out out = {.results = results};
        cgam_route route = cgam_recall_route(x.plan, &in, &out);
        ways[route.path]++;
        in_f32 += route.precision == CGAM_F32;
        run(&x, 0, x.queries, results, top_p);
        for (int64_t k = 0; k < x.queries; k++) check_shares(&results[k], top_p + k * TOP);
        for (int64_t k = 0; k < x.queries; k++) {
            if (k % (x.queries / ALONE)) continue;
            cgam_result one;
            double few[TOP];
            check_query(&x, k, &results[k]);
            run(&x, k, 1, &one, few);
            check_shares(&one, few);
            check_query(&x, k, &one);
        }
        cgam_recall_free(x.plan);
        cgam_bank_free(x.bank);
        dense_reset();
    }
    assert_true(ways[CGAM_PATH_MATRICES] > SCENES / 2 && in_f32 > SCENES / 4);
    cgam_env_free(env);
}
