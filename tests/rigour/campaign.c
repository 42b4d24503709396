/* campaign.c: random recalls, each claim of each decided. ctest: timeout=300
 *
 *   campaign [seconds=S] [count=N] [seed=K] [from=NUMBER] [size=0|1|2] [break=CLAIM] [until=1] [around=N]
 *
 * Small banks, of which count says how many, with banks of some hundred memories and large ones taking
 * a share of the time beside them (size= leaves one kind alone). Stops at whichever of seconds and count
 * comes first. `size=K from=NUMBER count=1` repeats one instance alone. `break=K` makes claim number K,
 * in the order of the table, stronger by a hundredth before it is judged: the campaign has to go red
 * then; tests/rigour/broken breaks the library itself, for which `until=1` stops at the first claim that
 * is not true. Landscapes are looked at on banks of up to `around` memories (192). Prints, for each certificate, how often it was
 * proved, an estimate, wrong or undecided, and the share proved in ordinary ranges. Exit 1 when a claim
 * is wrong or open, a hundredth or more of what exact arithmetic would prove in ordinary
 * ranges is an estimate, or a kind of
 * claim, ending or way never came up. */
#include "rigour/campaign.h"
#include "memory/bank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In ordinary ranges, of what exact arithmetic would prove, rounding may leave this share unproved. */
static const double SHARE_LOST = 0.01;
/* Of points of landscapes, which come by the dozen where one is hard to prove: up to 0.03 was seen. */
static const double SHARE_LOST_POINTS = 0.1;
/* Of coupled instances there, at most: 0.41 % were seen in 6775, of one to six queries, some of 64. */
static const double SHARE_STALLED = 0.008;
enum {
    STALLS_MEAN = 2000, /* instances for that */
    LOOKED = 20
};                                                     /* every how many have a landscape */
static const int64_t ENOUGH[SIZES] = {10000, 100, 32}; /* for coverage, a quarter for shares */
static const double TIME_SHARE[SIZES] = {0.6, 0.2, 0.2};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double argument(int argc, char **argv, const char *name, double fallback)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return strtod(argv[i] + length + 1, NULL);
    return fallback;
}

/* A lower bound a hundredth too high, an upper one a hundredth too low. */
static double higher(double x) { return x + 0.01 * fabs(x); }
static double lower(double x) { return x - 0.01 * fabs(x); }

static void spoil(int what, cgam_gate_info *g, int64_t queries, answer *answers)
{
    if (what == ALPHA_BOUNDS) g->critical.alpha_lo = higher(g->critical.alpha_lo);
    if (what == ALPHA_CRIT) g->critical.alpha = lower(g->critical.alpha);
    if (what == LAMBDA_MAX || what == ETA_MIN) g->eta_min = higher(g->eta_min);
    if (what == REGIME && fabs(g->eta_min) < 0.01) g->regime = CGAM_SUBCRITICAL;
    for (int64_t k = 0; k < queries; k++) {
        cgam_result *r = &answers[k].result;
        if (what == P_LOWER_BOUND) r->p_lower_bound = higher(r->p_lower_bound);
        if (what == CONTRACTION) r->contraction = lower(r->contraction);
        if (what == UNIQUE && r->unique < 0 && lower(r->contraction) < 1) {
            r->unique = 1;
            r->unique_proved = true;
        }
        if (what == TWO && r->unique == 1) r->unique = 0;
        if (what == FOLD_MARGIN) r->fold_margin = higher(r->fold_margin);
        if (what == LOCAL_CONTRACTION) r->local_contraction = lower(r->local_contraction);
        if (what == P_ERROR) r->p_error = lower(r->p_error);
        if (what == ENERGY) r->energy_end = higher(r->energy_end);
        if (what == EXACT && r->p > 0.99) r->exact = true;
        if (what == INTERVAL) r->p_to = r->p_from;
        if (what == SCORE_ERROR) r->score_error *= 0.01;
        if (what == SHARES) r->gap_raw = higher(r->gap_raw);
        if (what == GRADIENT) answers[k].db_error *= 1e-6, answers[k].du_error *= 1e-6;
        if (what == STABLE && r->fold_margin < 0 && r->fold_margin_exact) {
            r->stable = 1;
            r->stable_proved = true;
        }
        if (what == READOUT_ERROR) r->readout_error_bound *= 0.1;
    }
}

/* The landscape of the first query, for some coupled recalls of small banks, and of middle ones up to `most` memories. */
static bool look_around(const instance *x, const cgam_recall *plan, int broken, int64_t most,
                        cgam_landscape *land)
{
    cgam_landscape_opts o = {.starts = 4, .seed = x->number};
    *land = (cgam_landscape){0};
    bool wanted = x->size == SMALL ? x->number % LOOKED == 0 : x->size == MIDDLE && x->n <= most;
    wanted &= x->opts.mode == CGAM_COUPLED && (x->size == SMALL || !x->edge);
    if (!wanted || x->opts.entmax > 0) return false;
    if (cgam_landscape_find(plan, x->q, x->context ? x->c : NULL, &o, land) != CGAM_OK)
        return false;
    for (int64_t k = 0; k < land->count && broken == POINT;
         k++) /* most bounds have room to spare */
        land->points[k].p_error *= 1e-6;
    for (int64_t k = 0; k < land->count && broken == POINT_MARGIN; k++)
        land->points[k].fold_margin = higher(land->points[k].fold_margin);
    if (broken == SEVERAL && land->unique == 1 && !(land->unique = 0)) land->unique_proved = true;
    return true;
}

/* Gradients of -log p of a memory, or of <dp, p>, of coupled recalls by softmax; room [3, queries, n]. */
static void differentiate(const instance *x, const cgam_recall *plan, const cgam_bank *bank,
                          double *room, answer *answers)
{
    static double b_error[QUERIES_MAX], u_error[QUERIES_MAX];
    static int64_t target[QUERIES_MAX];
    static bool left_out[QUERIES_MAX];
    int64_t all = x->queries * x->n;
    for (int64_t k = 0; k < x->queries; k++)
        target[k] = cgam_bank_number(bank, (int64_t)((x->number + (uint64_t)k) % (uint64_t)x->n));
    cgam_gradient_in in = {.recall = {.queries = x->queries,
                                      .q = x->q,
                                      .c = x->context ? x->c : NULL,
                                      .c_per_query = x->own,
                                      .target = target}};
    cgam_gradient_opts o = cgam_gradient_opts_default();
    cgam_gradient out = {
        .b = room, .u = room + all, .b_error = b_error, .u_error = u_error, .left_out = left_out};
    o.leave_out = true;
    if (x->number % 2) {
        double *dp = room + 2 * all;
        for (int64_t i = 0; i < all; i++) dp[i] = sin((double)(i + 1) * (double)(x->number + 1));
        o.loss = CGAM_LOSS_OWN;
        in.dp = dp;
    }
    if (cgam_recall_gradient(plan, &in, &o, &out) != CGAM_OK) return;
    for (int64_t k = 0; k < x->queries; k++) {
        if (left_out[k]) continue;
        answers[k].db = room + k * x->n;
        answers[k].du = room + all + k * x->n;
        answers[k].dp = in.dp ? in.dp + k * x->n : NULL;
        answers[k].db_error = b_error[k];
        answers[k].du_error = u_error[k];
        answers[k].aim = (int64_t)((x->number + (uint64_t)k) % (uint64_t)x->n);
    }
}

typedef struct run_opts {
    uint64_t seed;
    bool loud;
    int broken;
    int64_t
        around; /* memories of a bank that is not small, up to which its landscape is looked at */
} run_opts;

static void note(const instance *x, const cgam_recall *plan, const cgam_recall_in *in,
                 const cgam_recall_out *out, tally *t)
{
    t->dtypes[x->dtype]++;
    t->edges += x->edge;
    t->normalized += x->normalize;
    t->projected += x->opts.P != NULL;
    t->weighted += x->opts.W != NULL;
    t->sparse += x->opts.entmax > 0;
    t->annealed += x->opts.mode == CGAM_ANNEAL;
    t->aimed += x->target != NULL;
    t->ghosts += x->opts.none;
    t->parts += x->whole != NULL;
    t->cold += x->cold;
    t->paths[cgam_recall_route(plan, in, out).path]++;
}

static void run(cgam_env *env, bank_size size, uint64_t number, const run_opts *o, tally *t)
{
    static cgam_result results[QUERIES_MAX];
    static answer answers[QUERIES_MAX];
    instance x;
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    cgam_gate *gate = NULL;
    double begin = now(), *room = NULL;
    t->instances++;
    if (!instance_make(env, size, o->seed, number, &x, &bank)) {
        t->refused++;
        cgam_bank_free(bank);
        instance_free(&x);
        return;
    }
    if (o->loud) instance_print(&x);
    int64_t all = x.queries * x.n;
    if (x.vectors) room = calloc((size_t)(6 * all), sizeof *room);
    cgam_status status = cgam_recall_new(bank, &x.opts, &plan);
    if (status == CGAM_OK) {
        cgam_recall_in in = {.queries = x.queries,
                             .q = x.q,
                             .c = x.context ? x.c : NULL,
                             .c_per_query = x.own,
                             .target = x.target};
        cgam_recall_out out = {.results = results};
        if (room) {
            out.p = room;
            out.s = room + all;
            out.r = room + 2 * all;
        }
        note(&x, plan, &in, &out, t);
        status = cgam_recall_run(plan, &in, &out);
    } else { /* refused, as coupled recall is beyond alpha_crit: then the gate still makes claims */
        cgam_gate_opts g = cgam_gate_opts_default();
        if (cgam_gate_new(bank, x.opts.alpha, &g, &gate) != CGAM_OK) gate = NULL;
    }
    if (status != CGAM_OK && status != CGAM_E_NOT_POSITIVE && status != CGAM_E_SINGULAR &&
        !(x.edge && (status == CGAM_E_ARG || status == CGAM_E_VALUE))) {
        printf("WRONG: %s\n", cgam_env_message(env));
        instance_print(&x);
        t->wrong[REGIME]++;
    }
    t->refused += status != CGAM_OK;
    for (int64_t k = 0; k < x.queries; k++) {
        for (int64_t i = 0; i < x.n; i++) /* numbers are those of the whole bank */
            if (results[k].focus == cgam_bank_number(bank, i)) {
                results[k].focus = i;
                break;
            }
        answers[k] = (answer){.result = results[k],
                              .p = room ? room + k * x.n : NULL,
                              .s = room ? room + all + k * x.n : NULL,
                              .r = room ? room + 2 * all + k * x.n : NULL};
    }
    if (status == CGAM_OK && room && x.opts.mode == CGAM_COUPLED && x.opts.entmax == 0)
        differentiate(&x, plan, bank, room + 3 * all, answers);
    cgam_landscape land;
    bool around = status == CGAM_OK && look_around(&x, plan, o->broken, o->around, &land);
    const cgam_gate *shown = plan ? cgam_recall_gate(plan) : gate;
    if (shown) {
        cgam_gate_info info = cgam_gate_describe(shown);
        if (o->broken >= 0) spoil(o->broken, &info, x.queries, answers);
        judge(&x, &info, status == CGAM_OK ? answers : NULL, around ? &land : NULL, t);
    }
    if (around) cgam_landscape_free(env, &land);
    cgam_gate_free(gate);
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    free(room);
    instance_free(&x);
    t->seconds += now() - begin;
}

/* ---- What came of it -------------------------------------------------------------------------- */

static int64_t never; /* things that should have come up and did not */

static void counted(const char *name, int64_t count, bool expected)
{
    if (count || expected) printf(" %s %lld", name, (long long)count);
    if (!count && expected) printf(" (NEVER)");
    never += !count && expected;
}

/* Every kind of ending, way and storage that this size can have. */
static void print_coverage(bank_size size, const tally *t)
{
    bool enough = t->instances >= ENOUGH[size], small = size == SMALL;
    printf("  ends (in ordinary ranges):");
    for (int e = 0; e <= CGAM_END_ROSE; e++) {
        bool can = e == CGAM_END_DIRECT || e == CGAM_END_CONVERGED ||
                   (e == CGAM_END_STALLED && small) || (e == CGAM_END_MAX_ITER && small);
        counted(cgam_word(cgam_end_words, (cgam_end)e), t->ends[e], enough && can);
        if (t->ends[e]) printf(" (%lld)", (long long)t->ordinary_ends[e]);
    }
    printf("; ways:");
    for (int w = 0; w <= CGAM_PATH_LANES; w++) {
        bool can = w == CGAM_PATH_VECTORS || w == CGAM_PATH_COUPLED ||
                   (w == CGAM_PATH_LANES ? size != LARGE
                    : w == CGAM_PATH_FLOW || w == CGAM_PATH_SKETCH
                        ? small
                        : size == LARGE || (w == CGAM_PATH_PASS && small));
        counted(cgam_word(cgam_path_words, (cgam_path)w), t->paths[w], enough && can);
    }
    printf("\n  storage:");
    for (int k = 0; k < 4; k++)
        counted(cgam_word(cgam_dtype_words, (cgam_dtype)k), t->dtypes[k], enough);
    printf("; regimes:");
    for (int k = 0; k < 3; k++)
        counted(cgam_word(cgam_regime_words, (cgam_regime)k), t->regimes[k], enough && small);
    printf(";");
    counted("edges", t->edges, enough);
    counted("normalised", t->normalized, enough);
    counted("P", t->projected, enough && size != LARGE);
    counted("W", t->weighted, enough && size != LARGE);
    counted("entmax", t->sparse, enough);
    counted("annealed", t->annealed, enough && small);
    counted("saddles", t->saddles, enough && small);
    counted("landscapes", t->landscapes, enough && size != LARGE);
    counted("with a target", t->aimed, enough && small);
    counted("with a ghost", t->ghosts, enough && small);
    counted("part of a bank", t->parts, enough && small);
    counted("cold", t->cold, enough);
    printf("\n");
}

/* How many claims fell short. */
static int64_t print(bank_size size, const tally *t)
{
    int64_t bad = 0;
    if (!t->instances) return 0;
    printf("%s: %lld instances (%lld refused), %lld queries (%lld judged), %.1f a second\n",
           size_names[size], (long long)t->instances, (long long)t->refused, (long long)t->queries,
           (long long)t->judged, (double)t->instances / t->seconds);
    print_coverage(size, t);
    printf("%-18s %10s %10s %8s %8s  %s\n", "claim", "proved", "estimate", "wrong", "open",
           "proved in ordinary ranges, of what exact arithmetic would prove; by long double");
    for (int k = 0; k < CLAIMS; k++) {
        double all = (double)(t->ordinary[k] + t->lost[k]);
        double most = (k == POINT ? SHARE_LOST_POINTS : SHARE_LOST) * all;
        bool fewer =
            4 * t->instances >= ENOUGH[size] && t->lost[k] > 1 && (double)t->lost[k] >= most;
        printf("%-18s %10lld %10lld %8lld %8lld  %.4f of %.0f%s, %.2f\n", claim_names[k],
               (long long)t->made[k], (long long)t->estimate[k], (long long)t->wrong[k],
               (long long)t->open[k], (double)t->ordinary[k] / fmax(1, all), all,
               fewer ? " FEWER" : "", (double)t->quick[k] / fmax(1, (double)t->made[k]));
        bad += t->wrong[k] + t->open[k] + fewer;
        if (size == SMALL && t->instances >= ENOUGH[size] && !t->made[k]) never++;
    }
    double stalled = (double)t->stalled, done = (double)t->settled + stalled;
    bool often = done >= STALLS_MEAN && stalled > SHARE_STALLED * done;
    printf("%.3f %% of %.0f coupled instances stall in ordinary ranges%s\n",
           100 * stalled / fmax(done, 1), done, often ? ": TOO OFTEN" : "");
    return bad + often;
}

int main(int argc, char **argv)
{
    double seconds = argument(argc, argv, "seconds", 60),
           count = argument(argc, argv, "count", 1e9);
    run_opts o = {.seed = (uint64_t)argument(argc, argv, "seed", 1),
                  .broken = (int)argument(argc, argv, "break", -1),
                  .around = (int64_t)argument(argc, argv, "around", 192),
                  .loud = count == 1};
    uint64_t from = (uint64_t)argument(argc, argv, "from", 0), made[SIZES] = {0};
    bool until = argument(argc, argv, "until", 0) != 0;
    int only = (int)argument(argc, argv, "size", -1), leading = only < 0 ? SMALL : only;
    cgam_env *env;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 1;
    if (cgam_env_new(&opts, &env) != CGAM_OK) return 2;
    static tally t[SIZES];
    double begin = now();
    while (made[leading] < (uint64_t)count && now() - begin < seconds) {
        int next = leading; /* the other sizes while they have had less than their share */
        for (int k = 0; only < 0 && k < SIZES; k++)
            if (k != SMALL && t[k].seconds < TIME_SHARE[k] * (now() - begin)) next = k;
        run(env, (bank_size)next, from + made[next]++, &o, &t[next]);
        for (int k = 0; until && k < CLAIMS; k++)
            if (t[next].wrong[k] + t[next].open[k]) seconds = 0;
    }
    int64_t bad = balls_that_do_not_hold(o.seed);
    for (int k = 0; k < SIZES; k++) bad += print((bank_size)k, &t[k]);
    cgam_env_free(env);
    judge_leaves();
    if (never) printf("%lld things that should have come up did not\n", (long long)never);
    return bad > 0 || never > 0;
}
