/* Gradients of a recall against central differences of a plain recall in long double. */
#include "base/env.h"
#include "memory/bank.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include <cgam/learn.h>

#include "support/owned.h"

enum { N_MAX = 12, D_MAX = 12, BATCH_MAX = 9 };

/* ---- The plain recall. ------------------------------------------------------------------------ */
/* All numbers that a gradient may be taken of, one after another; queries are rows. */
typedef struct scene {
    int64_t n, d, d_c, batch;
    bool coupled, by_W, by_P, with_c, shared, none;
    double entmax, none_score, margin;
    cgam_loss loss;
    int64_t target[BATCH_MAX];
    double weight[BATCH_MAX], x[BATCH_MAX * D_MAX];
    double dp[BATCH_MAX * N_MAX], dr[BATCH_MAX * N_MAX], dy[BATCH_MAX * D_MAX];
    int64_t Z, q, c, P, W, alpha, beta, lambda, count; /* places */
    long double v[2048];
    long double p[BATCH_MAX][N_MAX]; /* starts of the coupled iteration */
} scene;

static void invert(int64_t n, long double *A, long double *B)
{
    for (int64_t i = 0; i < n * n; i++) B[i] = i % (n + 1) == 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabsl(A[i * n + k]) > fabsl(A[best * n + k])) best = i;
        for (int64_t j = 0; j < n; j++) {
            long double a = A[k * n + j], b = B[k * n + j];
            A[k * n + j] = A[best * n + j], A[best * n + j] = a;
            B[k * n + j] = B[best * n + j], B[best * n + j] = b;
        }
        long double pivot = A[k * n + k];
        for (int64_t j = 0; j < n; j++) A[k * n + j] /= pivot, B[k * n + j] /= pivot;
        for (int64_t i = 0; i < n; i++) {
            long double f = A[i * n + k];
            for (int64_t j = 0; j < n && i != k; j++) {
                A[i * n + j] -= f * A[k * n + j];
                B[i * n + j] -= f * B[k * n + j];
            }
        }
    }
}

static void activate(const scene *s, const long double *r, long double *p)
{
    long double beta = s->v[s->beta], top = s->none ? (long double)s->none_score : r[0], sum = 0;
    for (int64_t i = 0; i < s->n; i++) top = fmaxl(top, r[i]);
    if (s->entmax == 0) {
        for (int64_t i = 0; i < s->n; i++) sum += p[i] = expl(beta * (r[i] - top));
        if (s->none) sum += expl(beta * ((long double)s->none_score - top));
        for (int64_t i = 0; i < s->n; i++) p[i] /= sum;
        return;
    }
    long double k = (long double)s->entmax - 1, low = -1 / k - 1, high = 0;
    for (int step = 0; step < 140; step++) { /* the shift, by halving */
        long double mid = (low + high) / 2;
        sum = 0;
        for (int64_t i = 0; i < s->n; i++) {
            long double base = 1 + k * (beta * (r[i] - top) + mid);
            sum += p[i] = base > 0 ? powl(base, 1 / k) : 0;
        }
        if (sum > 1) high = mid;
        else low = mid;
    }
}

/* The loss of query k; sets p. */
static long double loss_of(scene *s, int64_t k)
{
    static long double A[N_MAX * N_MAX], inv[N_MAX * N_MAX];
    int64_t n = s->n, d = s->d;
    long double *Z = s->v + s->Z, *q = s->v + s->q + k * d;
    long double *c = s->v + s->c + (s->shared ? 0 : k) * s->d_c, v[D_MAX] = {0};
    long double b[N_MAX], u[N_MAX] = {0}, base[N_MAX], r[N_MAX], p[N_MAX];
    long double alpha = s->v[s->alpha], lambda = s->v[s->lambda];
    for (int64_t i = 0; i < d && s->with_c && !s->by_W; i++)
        for (int64_t j = 0; j < s->d_c; j++)
            v[i] += (s->by_P ? s->v[s->P + i * s->d_c + j] : i == j) * c[j];
    for (int64_t i = 0; i < n; i++) {
        b[i] = 0;
        for (int64_t j = 0; j < d; j++) b[i] += Z[i * d + j] * q[j], u[i] += Z[i * d + j] * v[j];
        for (int64_t j = 0; j < s->d_c && s->by_W && s->with_c; j++)
            u[i] += s->v[s->W + i * s->d_c + j] * c[j];
        for (int64_t m = 0; m < n; m++) {
            A[i * n + m] = i == m;
            for (int64_t j = 0; j < d && i != m; j++)
                A[i * n + m] += alpha * Z[i * d + j] * Z[m * d + j];
        }
    }
    invert(n, A, inv);
    for (int64_t i = 0; i < n; i++) {
        base[i] = b[i];
        for (int64_t m = 0; m < n; m++) base[i] += lambda * inv[i * n + m] * u[m];
        r[i] = base[i];
    }
    if (!s->coupled) activate(s, r, p);
    for (int step = 0; s->coupled && step < 4000; step++) {
        long double change = 0;
        for (int64_t i = 0; i < n; i++) {
            r[i] = base[i];
            for (int64_t m = 0; m < n; m++) r[i] += lambda * lambda * inv[i * n + m] * s->p[k][m];
        }
        activate(s, r, p);
        for (int64_t i = 0; i < n; i++) {
            change = fmaxl(change, fabsl(p[i] - s->p[k][i]));
            s->p[k][i] = p[i];
        }
        if (change < 1e-18L) break;
    }
    long double y[D_MAX] = {0}, loss = 0, rival = s->none ? (long double)s->none_score : -1e30L;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) y[j] += p[i] * Z[i * d + j];
    int64_t t = s->target[k];
    switch (s->loss) {
    case CGAM_LOSS_NLL: return -logl(p[t]);
    case CGAM_LOSS_READOUT:
        for (int64_t j = 0; j < d; j++) {
            long double off = y[j] - (long double)s->x[k * d + j];
            loss += off * off;
        }
        return loss;
    case CGAM_LOSS_MARGIN:
        for (int64_t i = 0; i < n; i++)
            if (i != t) rival = fmaxl(rival, r[i]);
        return fmaxl(0, (long double)s->margin - (r[t] - rival));
    case CGAM_LOSS_OWN:
        for (int64_t i = 0; i < n; i++)
            loss += (long double)s->dp[k * n + i] * p[i] + (long double)s->dr[k * n + i] * r[i];
        for (int64_t j = 0; j < d; j++) loss += (long double)s->dy[k * d + j] * y[j];
        return loss;
    }
    return 0;
}

static long double whole_loss(scene *s)
{
    long double sum = 0;
    for (int64_t k = 0; k < s->batch; k++) sum += (long double)s->weight[k] * loss_of(s, k);
    return sum;
}

/* ---- Scenes. ---------------------------------------------------------------------------------- */
static void put(scene *s, int64_t *place, int64_t count, const double *from)
{
    *place = s->count;
    for (int64_t i = 0; i < count; i++) s->v[s->count++] = (long double)from[i];
}

static scene *scene_draw(cgam_rng *rng, bool coupled)
{
    static const double orders[] = {0, 0, 0, 2, 1.5, 1.3};
    static const int64_t batches[] = {1, 1, 3, BATCH_MAX};
    static scene s;
    s = (scene){.n = 2 + cgam_rng_below(rng, N_MAX - 1), .d = 2 + cgam_rng_below(rng, D_MAX - 1)};
    if (cgam_rng_below(rng, 5) == 0) s.d = s.n;
    s.batch = batches[cgam_rng_below(rng, 4)];
    s.coupled = coupled;
    s.with_c = cgam_rng_below(rng, 8) > 0;
    s.shared = cgam_rng_below(rng, 3) == 0;
    s.by_W = cgam_rng_below(rng, 3) == 0;
    s.by_P = !s.by_W && cgam_rng_below(rng, 3) > 0;
    s.d_c = s.by_W || s.by_P ? 1 + cgam_rng_below(rng, 5) : s.d;
    s.entmax = orders[cgam_rng_below(rng, 6)];
    s.none = !coupled && s.entmax == 0 && cgam_rng_below(rng, 3) == 0;
    s.none_score = s.none ? cgam_rng_normal(rng) : 0;
    s.loss = (cgam_loss)cgam_rng_below(rng, 4);
    s.margin = 50; /* never met, so without a kink */
    double *Z = dense_bank(rng, (dense_kind)cgam_rng_below(rng, DENSE_KINDS), s.n, s.d);
    double crit = fmin(dense_critical(s.n, s.d, Z), 5);
    static const double shares[] = {0, 0.3, 0.6, 0.97, 1.4};
    double alpha = crit * shares[cgam_rng_below(rng, coupled ? 4 : 5)];
    double beta = dense_between_log(rng, 0.3, 4);
    double lambda = dense_between(rng, 0.1, coupled ? 0.8 : 2);
    if (coupled && s.entmax > 0) lambda *= 0.3;
    if (coupled && alpha > 0.9 * crit) lambda *= 0.2;
    put(&s, &s.Z, s.n * s.d, Z);
    put(&s, &s.q, s.batch * s.d, dense_normals(rng, s.batch * s.d, 1));
    put(&s, &s.c, s.batch * s.d_c, dense_normals(rng, s.batch * s.d_c, 1));
    put(&s, &s.P, s.d * s.d_c, dense_normals(rng, s.d * s.d_c, 0.5));
    put(&s, &s.W, s.n * s.d_c, dense_normals(rng, s.n * s.d_c, 0.5));
    put(&s, &s.alpha, 1, &alpha);
    put(&s, &s.beta, 1, &beta);
    put(&s, &s.lambda, 1, &lambda);
    for (int64_t k = 0; k < s.batch; k++) {
        s.target[k] = cgam_rng_below(rng, s.n);
        s.weight[k] = dense_between(rng, 0.2, 2);
        for (int64_t i = 0; i < s.n; i++) {
            s.dp[k * s.n + i] = cgam_rng_normal(rng);
            s.dr[k * s.n + i] = cgam_rng_normal(rng);
            s.p[k][i] = 1 / (long double)s.n;
        }
        for (int64_t j = 0; j < s.d; j++) {
            s.x[k * s.d + j] = cgam_rng_normal(rng);
            s.dy[k * s.d + j] = cgam_rng_normal(rng);
        }
    }
    return &s;
}

static double *plain(const scene *s, int64_t place, int64_t count)
{
    double *out = dense_room(count + 1);
    for (int64_t i = 0; i < count; i++) out[i] = (double)s->v[place + i];
    return out;
}

typedef struct answer {
    double Z[N_MAX * D_MAX], q[BATCH_MAX * D_MAX], c[BATCH_MAX * D_MAX], P[D_MAX * D_MAX];
    double W[N_MAX * D_MAX], b[BATCH_MAX * N_MAX], u[BATCH_MAX * N_MAX], p[BATCH_MAX * N_MAX];
    double r[BATCH_MAX * N_MAX];
    double alpha, beta, lambda, loss[BATCH_MAX], positive[BATCH_MAX];
} answer;

/* Runs the library on a scene. */
static cgam_status differentiate(cgam_env *env, const scene *s, answer *a)
{
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = s->coupled ? CGAM_COUPLED : CGAM_FIRST;
    o.alpha = (double)s->v[s->alpha];
    o.beta = (double)s->v[s->beta];
    o.lambda = (double)s->v[s->lambda];
    o.entmax = s->entmax;
    o.tol = 1e-15;
    o.max_iter = 100000;
    o.none = s->none;
    o.none_score = s->none_score;
    if (s->by_P) o.P = plain(s, s->P, s->d * s->d_c);
    if (s->by_W) o.W = plain(s, s->W, s->n * s->d_c);
    o.d_c = s->d_c;
    TRY(cgam_bank_new(env, plain(s, s->Z, s->n * s->d), CGAM_F64, s->n, s->d, NULL, &bank));
    TRY(cgam_recall_new(bank, &o, &plan));
    bool own = s->loss == CGAM_LOSS_OWN;
    cgam_gradient_in in = {.recall = {.queries = s->batch,
                                      .q = plain(s, s->q, s->batch * s->d),
                                      .c_per_query = !s->shared,
                                      .target = s->target},
                           .weight = s->weight,
                           .x = s->x,
                           .dp = own ? s->dp : NULL,
                           .dr = own ? s->dr : NULL,
                           .dy = own ? s->dy : NULL};
    if (s->with_c) in.recall.c = plain(s, s->c, s->batch * s->d_c);
    cgam_gradient_opts how = cgam_gradient_opts_default();
    how.loss = s->loss;
    how.margin = s->margin;
    cgam_gradient out = {.loss = a->loss,
                         .p = a->p,
                         .r = a->r,
                         .positive = a->positive,
                         .b = a->b,
                         .u = a->u,
                         .q = a->q,
                         .c = a->c,
                         .P = s->by_W ? NULL : a->P,
                         .W = a->W,
                         .Z = a->Z,
                         .alpha = &a->alpha,
                         .beta = &a->beta,
                         .lambda = &a->lambda};
    return cgam_recall_gradient(plan, &in, &how, &out);
}

static const long double H = 1e-6L; /* central differences: h^2 and 1e-18 / h leave about 1e-12 */

/* Compares a part of the gradient; allowed relative to the largest number of all. */
static void compare(scene *s, const char *name, int64_t place, int64_t count, const double *got,
                    double size)
{
    for (int64_t i = 0; i < count; i++) {
        long double was = s->v[place + i];
        s->v[place + i] = was + H;
        long double up = whole_loss(s);
        s->v[place + i] = was - H;
        long double down = whole_loss(s);
        s->v[place + i] = was;
        double want = (double)((up - down) / (2 * H));
        if (!(fabs(got[i] - want) <= 2e-8 * (1 + size)))
            print_message(
                "%s[%lld] n %lld d %lld batch %lld coupled %d entmax %g loss %d alpha %g\n", name,
                (long long)i, (long long)s->n, (long long)s->d, (long long)s->batch, s->coupled,
                s->entmax, s->loss, (double)s->v[s->alpha]);
        CHECK_CLOSE(got[i], want, 2e-8 * (1 + size));
    }
}

static double largest(int64_t count, const double *x)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* Loss margin has a kink where two rivals are equal, as twins are. */
static bool has_kink(const scene *s, const double *r)
{
    for (int64_t k = 0; k < s->batch && s->loss == CGAM_LOSS_MARGIN; k++) {
        double first = s->none ? s->none_score : -INFINITY, second = -INFINITY;
        for (int64_t i = 0; i < s->n; i++) {
            double x = r[k * s->n + i];
            if (i == s->target[k]) continue;
            second = fmax(second, fmin(first, x));
            first = fmax(first, x);
        }
        if (first - second < 1e-3) return true;
    }
    return false;
}

/* Returns whether the scene had a gradient. */
static bool check_scene(cgam_env *env, scene *s)
{
    static answer a;
    cgam_status status = differentiate(env, s, &a);
    bool smooth = status == CGAM_OK;
    if (status == CGAM_E_VALUE) CHECK_MESSAGE(env, "gives its target weight 0");
    else if (status != CGAM_OK) assert_int_equal(status, CGAM_E_NOT_POSITIVE);
    for (int64_t k = 0; k < s->batch && smooth; k++) {
        for (int64_t i = 0; i < s->n; i++) s->p[k][i] = (long double)a.p[k * s->n + i];
        long double loss = loss_of(s, k);
        for (int64_t i = 0; i < s->n; i++) { /* entmax: the support must not change within h */
            long double p = s->p[k][i];
            smooth = smooth && !(s->entmax > 0 && s->coupled && p > 0 && p < 1e-3L);
            CHECK_LE(a.positive[k] > 0 || !s->coupled ? 0 : 1, 0);
            if (s->coupled) CHECK_CLOSE(a.p[k * s->n + i], (double)p, 1e-9);
        }
        if (s->loss != CGAM_LOSS_OWN)
            CHECK_CLOSE(a.loss[k], (double)loss, 1e-8 * (1 + fabs((double)loss)));
    }
    if (!smooth || has_kink(s, a.r)) return false;
    if (s->entmax > 0) /* and not of a first recall */
        for (int64_t k = 0; k < s->batch * s->n; k++)
            if (a.p[k] > 0 && a.p[k] < 1e-3) return false;
    int64_t contexts = s->with_c ? (s->shared ? 1 : s->batch) * s->d_c : 0;
    double size = fmax(largest(s->n * s->d, a.Z), fabs(a.alpha));
    compare(s, "Z", s->Z, s->n * s->d, a.Z, size);
    compare(s, "q", s->q, s->batch * s->d, a.q, size);
    compare(s, "c", s->c, contexts, a.c, size);
    if (s->by_P) compare(s, "P", s->P, s->d * s->d_c, a.P, size);
    if (s->by_W) compare(s, "W", s->W, s->n * s->d_c, a.W, size);
    if (s->v[s->alpha] > 0) compare(s, "alpha", s->alpha, 1, &a.alpha, size);
    compare(s, "beta", s->beta, 1, &a.beta, size);
    compare(s, "lambda", s->lambda, 1, &a.lambda, size);
    return true;
}

static void check_scenes(cgam_env *env, bool coupled)
{
    int checked = 0, trials = check_trials(16);
    for (int trial = 0; trial < trials; trial++) {
        cgam_rng rng = cgam_rng_stream(17, (uint64_t)trial);
        checked += check_scene(env, scene_draw(&rng, coupled));
        dense_reset();
    }
    CHECK_LE(trials / 2, checked);
}

TEST_ENV(gradients_of_mode_first_are_central_differences) { check_scenes(env, false); }

TEST_ENV(gradients_of_mode_coupled_are_central_differences) { check_scenes(env, true); }

/* ---- What is rejected. ------------------------------------------------------------------------ */
/* Two memories, and a query between them. */
typedef struct pair {
    cgam_bank *bank;
    cgam_recall *plan;
} pair;

static const double two[] = {1, 0, -1, 0}, middle[] = {0, 1};

static pair pair_new(cgam_env *env, cgam_mode mode, double alpha, double beta, double lambda)
{
    pair x;
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = mode, o.alpha = alpha, o.beta = beta, o.lambda = lambda;
    x.bank = object_bank(env, 2, 2, two);
    x.plan = object_recall(env, x.bank, &o);
    return x;
}

static void pair_free(pair *x)
{
    cgam_recall_free(x->plan);
    cgam_bank_free(x->bank);
}

TEST_ENV(at_a_fold_there_is_no_gradient_and_the_margin_is_named)
{
    /* p = (1/2, 1/2) is a fixed point by symmetry; H on (1, -1) is 1 - beta lambda^2 / 2 */
    int64_t target = 0;
    cgam_gradient_in in = {.recall = {.queries = 1, .q = middle, .target = &target}};
    double q[2], positive;
    cgam_gradient out = {.q = q, .positive = &positive};
    pair below = pair_new(env, CGAM_COUPLED, 0, 1.99, 1);
    CHECK_STATUS(env, cgam_recall_gradient(below.plan, &in, NULL, &out));
    CHECK_LE(positive, 0.005);
    assert_true(positive > 0);
    /* dL/db = t here: -beta (1/2) / margin, and q_1 moves b_1 by 1, b_2 by -1 */
    CHECK_REL(q[0], -1.99 / (1 - 1.99 / 2), 1e-9);
    pair_free(&below);
    pair at = pair_new(env, CGAM_COUPLED, 0, 2, 1);
    CHECK_REFUSED(env, CGAM_E_NOT_POSITIVE, "query 0 is at a fold",
                  cgam_recall_gradient(at.plan, &in, NULL, &out));
    cgam_gradient_opts leave = cgam_gradient_opts_default();
    bool left_out = false;
    leave.leave_out = true;
    CHECK_REFUSED(env, CGAM_E_ARG, "left_out", cgam_recall_gradient(at.plan, &in, &leave, &out));
    out.left_out = &left_out;
    CHECK_STATUS(env, cgam_recall_gradient(at.plan, &in, &leave, &out));
    assert_true(left_out && q[0] == 0 && isnan(positive));
    pair_free(&at);
    pair above = pair_new(env, CGAM_COUPLED, 0, 3, 1); /* a saddle between two minima */
    CHECK_REFUSED(env, CGAM_E_NOT_POSITIVE, "-0.5",
                  cgam_recall_gradient(above.plan, &in, NULL, &out));
    pair_free(&above);
}

TEST_ENV(a_recall_that_did_not_settle_has_no_gradient)
{
    int64_t target = 0;
    double q[2] = {0.2, 0};
    cgam_recall_opts o = cgam_recall_opts_default();
    OWNED(cgam_bank) bank = object_bank(env, 2, 2, two);
    o.mode = CGAM_COUPLED;
    o.max_iter = 1;
    OWNED(cgam_recall) plan = object_recall(env, bank, &o);
    cgam_gradient_in in = {.recall = {.queries = 1, .q = q, .target = &target}};
    CHECK_REFUSED(env, CGAM_E_NOT_POSITIVE, "did not settle (max_iter)",
                  cgam_recall_gradient(plan, &in, NULL, &(cgam_gradient){.q = q}));
}

TEST_ENV(what_has_no_gradient_is_rejected)
{
    int64_t target = 0;
    double q[2], P[4];
    cgam_gradient out = {.q = q};
    cgam_gradient_in in = {.recall = {.queries = 1, .q = middle, .target = &target}};
    cgam_gradient_opts o = cgam_gradient_opts_default();
    pair critical = pair_new(env, CGAM_FIRST, 1, 1, 1);
    CHECK_REFUSED(env, CGAM_E_SINGULAR, "critical",
                  cgam_recall_gradient(critical.plan, &in, NULL, &out));
    pair_free(&critical);
    pair flow = pair_new(env, CGAM_FLOW, 0, 1, 1);
    CHECK_REFUSED(env, CGAM_E_UNSUPPORTED, "flow",
                  cgam_recall_gradient(flow.plan, &in, NULL, &out));
    pair_free(&flow);
    pair first = pair_new(env, CGAM_FIRST, 0, 1, 1);
    o.loss = CGAM_LOSS_READOUT;
    CHECK_REFUSED(env, CGAM_E_ARG, "requires x", cgam_recall_gradient(first.plan, &in, &o, &out));
    o.loss = CGAM_LOSS_OWN;
    CHECK_REFUSED(env, CGAM_E_ARG, "dp, dr or dy", cgam_recall_gradient(first.plan, &in, &o, &out));
    double strange[2] = {0, NAN};
    in.dp = strange;
    CHECK_REFUSED(env, CGAM_E_VALUE, "dp of query 0",
                  cgam_recall_gradient(first.plan, &in, &o, &out));
    o.loss = (cgam_loss)9;
    CHECK_REFUSED(env, CGAM_E_ARG, "loss 9", cgam_recall_gradient(first.plan, &in, &o, &out));
    in.recall.target = NULL;
    CHECK_REFUSED(env, CGAM_E_ARG, "target", cgam_recall_gradient(first.plan, &in, NULL, &out));
    in.recall.queries = 0;
    P[0] = 1;
    out = (cgam_gradient){.P = P};
    in.recall.target = &target;
    CHECK_STATUS(env, cgam_recall_gradient(first.plan, &in, NULL, &out));
    assert_true(P[0] == 0);
    pair_free(&first);
}

/* ---- Masks, rows, threads, allocations. ------------------------------------------------------- */
TEST_ENV(a_part_of_a_bank_is_a_bank)
{
    cgam_rng rng = cgam_rng_stream(4, 4);
    double *Z = dense_bank(&rng, DENSE_GAUSS, 8, 5), *q = dense_normals(&rng, 5, 1);
    double part[15], whole_q[5], part_q[5], whole_Z[15], part_Z[15];
    uint64_t mask = 1u << 2 | 1u << 3 | 1u << 7;
    int64_t target = 7, place = 2;
    memcpy(part, Z + 10, 10 * sizeof *Z);
    memcpy(part + 10, Z + 35, 5 * sizeof *Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = 0.2;
    OWNED(cgam_bank) bank = object_bank(env, 8, 5, Z);
    OWNED(cgam_bank) few = NULL;
    OWNED(cgam_bank) alone = object_bank(env, 3, 5, part);
    CHECK_STATUS(env, cgam_bank_only(bank, &mask, &few));
    OWNED(cgam_recall) a = object_recall(env, few, &o);
    OWNED(cgam_recall) b = object_recall(env, alone, &o);
    cgam_gradient_in in = {.recall = {.queries = 1, .q = q, .c = q, .target = &target}};
    CHECK_STATUS(env,
                 cgam_recall_gradient(a, &in, NULL, &(cgam_gradient){.q = part_q, .Z = part_Z}));
    in.recall.target = &place;
    CHECK_STATUS(env,
                 cgam_recall_gradient(b, &in, NULL, &(cgam_gradient){.q = whole_q, .Z = whole_Z}));
    assert_memory_equal(part_q, whole_q, sizeof part_q);
    assert_memory_equal(part_Z, whole_Z, sizeof part_Z);
    in.recall.target = &(int64_t){4};
    CHECK_REFUSED(env, CGAM_E_ARG, "not among the selected",
                  cgam_recall_gradient(a, &in, NULL, &(cgam_gradient){0}));
    dense_reset();
}

enum { TALL_N = 5000, TALL_D = 64, TALL_BATCH = 70 };
typedef struct tall {
    double *sum; /* [n, d] what came row by row */
    int64_t next;
} tall;

static cgam_status take_rows(void *user, int64_t from, int64_t count, const double *dZ)
{
    tall *x = user;
    assert_true(from == x->next || from == 0);
    x->next = from + count;
    for (int64_t i = 0; i < count * TALL_D; i++) x->sum[from * TALL_D + i] += dZ[i];
    return CGAM_OK;
}

/* A large bank, where queries are multiplied as matrices and H is solved by conjugate gradients. */
typedef struct tall_out {
    double Z[TALL_N * TALL_D], b[TALL_BATCH * TALL_N], u[TALL_BATCH * TALL_N];
    double p[TALL_BATCH * TALL_N], q[TALL_BATCH * TALL_D], P[TALL_D * TALL_D];
    double alpha, beta, lambda;
} tall_out;

static void tall_run(int threads, int64_t batch, cgam_mode mode, double alpha, double *rows,
                     tall_out *out)
{
    OWNED(cgam_env) env = object_env(threads);
    cgam_rng rng = cgam_rng_stream(8, 8);
    double *Z = dense_bank(&rng, DENSE_NORMS, TALL_N, TALL_D);
    double *q = dense_normals(&rng, TALL_BATCH * TALL_D, 1);
    double *c = dense_normals(&rng, TALL_BATCH * TALL_D, 1);
    int64_t target[TALL_BATCH];
    for (int64_t k = 0; k < TALL_BATCH; k++) target[k] = cgam_rng_below(&rng, TALL_N);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = mode, o.alpha = alpha, o.beta = 3, o.lambda = 0.5, o.tol = 1e-15;
    OWNED(cgam_bank) bank = object_bank(env, TALL_N, TALL_D, Z);
    OWNED(cgam_recall) plan = object_recall(env, bank, &o);
    cgam_gradient_in in = {
        .recall = {.queries = batch, .q = q, .c = c, .c_per_query = true, .target = target}};
    cgam_gradient_opts how = cgam_gradient_opts_default();
    tall stream = {.sum = rows};
    if (rows) how.rows = take_rows, how.user = &stream;
    cgam_gradient to = {.p = out->p,
                        .b = out->b,
                        .u = out->u,
                        .q = out->q,
                        .P = out->P,
                        .Z = out->Z,
                        .alpha = &out->alpha,
                        .beta = &out->beta,
                        .lambda = &out->lambda};
    CHECK_STATUS(env, cgam_recall_gradient(plan, &in, &how, &to));
    /* A t = w,  w = beta C (g + lambda^2 t), beta C g = -beta (e - p) */
    double *A_t = dense_room(TALL_N), *t = dense_room(TALL_N);
    for (int64_t k = 0; k < batch; k++) {
        const double *w = out->b + k * TALL_N, *p = out->p + k * TALL_N;
        double mean = 0, kappa = mode == CGAM_COUPLED ? o.beta * o.lambda * o.lambda : 0;
        for (int64_t i = 0; i < TALL_N; i++) t[i] = out->u[k * TALL_N + i] / o.lambda;
        for (int64_t i = 0; i < TALL_N; i++) mean += p[i] * t[i];
        CHECK_STATUS(env, cgam_gate_apply(cgam_recall_gate(plan), t, A_t));
        CHECK_CLOSE_ALL(A_t, w, TALL_N, 1e-11);
        for (int64_t i = 0; i < TALL_N; i++)
            A_t[i] = o.beta * (p[i] - (i == target[k])) + kappa * p[i] * (t[i] - mean);
        CHECK_CLOSE_ALL(A_t, w, TALL_N, 1e-11);
    }
}

TEST(large_banks_solve_the_same_equations_on_any_number_of_threads)
{
    static tall_out one, many;
    static double rows[TALL_N * TALL_D];
    static const int64_t batches[] = {1, TALL_BATCH};
    for (int k = 0; k < 8; k++) {
        cgam_mode mode = k & 1 ? CGAM_COUPLED : CGAM_FIRST;
        double alpha = k & 2 ? 0.05 : 0;
        int64_t batch = batches[k >> 2];
        memset(rows, 0, sizeof rows);
        tall_run(1, batch, mode, alpha, rows, &one);
        assert_memory_equal(rows, one.Z, sizeof rows);
        tall_run(3, batch, mode, alpha, NULL, &many);
        assert_memory_equal(one.Z, many.Z, sizeof one.Z);
        assert_memory_equal(one.P, many.P, sizeof one.P);
        assert_memory_equal(one.q, many.q, (size_t)(batch * TALL_D) * sizeof *one.q);
        assert_true(one.alpha == many.alpha && one.beta == many.beta && one.lambda == many.lambda);
        dense_reset();
    }
}

static int whole_gradient(cgam_env *env, void *arg)
{
    static answer a;
    return differentiate(env, arg, &a);
}

TEST(every_allocation_of_a_gradient_may_fail)
{
    for (uint64_t trial = 0; trial < 6; trial++) {
        cgam_rng rng = cgam_rng_stream(23, trial);
        scene *s = scene_draw(&rng, trial & 1);
        OWNED(cgam_env) env = object_env(1);
        static answer a;
        if (differentiate(env, s, &a) == CGAM_OK) check_every_allocation(whole_gradient, s);
        dense_reset();
    }
}

TEST_ENV(errors_of_a_gradient_are_small_where_they_are_proved)
{
    enum { N = 20, D = 8, QUERIES = 4 };
    cgam_rng rng = cgam_rng_stream(77, 0);
    double *Z = dense_bank(&rng, DENSE_UNIT, N, D), *q = dense_normals(&rng, QUERIES * D, 1);
    double b[QUERIES * N], b_error[QUERIES], u_error[QUERIES],
        *dp = dense_normals(&rng, QUERIES * N, 1);
    int64_t target[QUERIES] = {0, 1, 2, 3};
    OWNED(cgam_bank) bank = object_bank(env, N, D, Z);
    cgam_recall_opts o = cgam_recall_opts_default();
    o.alpha = 0.3, o.beta = 2, o.lambda = 0.5;
    cgam_gradient_in in = {.recall = {.queries = QUERIES, .q = q, .target = target}, .dp = dp};
    cgam_gradient out = {.b = b, .b_error = b_error, .u_error = u_error};
    cgam_gradient_opts how = cgam_gradient_opts_default();
    for (int k = 0; k < 4; k++) {
        o.mode = k == 3 ? CGAM_FIRST : CGAM_COUPLED;
        how.loss = k == 1 ? CGAM_LOSS_OWN : k == 2 ? CGAM_LOSS_MARGIN : CGAM_LOSS_NLL;
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        CHECK_STATUS(env, cgam_recall_gradient(plan, &in, &how, &out));
        for (int i = 0; i < QUERIES; i++) {
            if (k < 2) CHECK_LE(b_error[i], 1e-10);
            if (k < 2) CHECK_LE(u_error[i], 1e-10);
            if (k < 2) assert_true(b_error[i] > 0 && u_error[i] > 0);
            else assert_true(isnan(b_error[i]) && isnan(u_error[i]));
        }
    }
    dense_reset();
}
