/* study_steer.c: a query at the last layer, pushed by contexts of right and wrong facts.
 *
 * For query i the context after layer l is the mean effect of demonstrations on the *other*
 * queries, c_{-i} = (sum_j delta_j - delta_i)/(n - 1). Probabilities are those of the final norm of
 * q_i + lambda s c_{-i}; s scales the context to the mean norm of the queries, or is 1. The null is a random
 * direction in place of c_{-i}, with its norm.
 *
 * For an answer of several tokens, q_i is taken at each of its places, after the tokens before it, and
 * log-probabilities are added up. */
#include "base/rng.h"
#include "lab/language/study_sweep.h"
#include "lab/stats.h"
#include "lab/table.h"
#include "lm/lens.h"

#include <float.h>
#include <math.h>

cgam_lm_steer_opts cgam_lm_steer_opts_default(void)
{
    static const double lambda[] = {0.25, 0.5, 1};
    return (cgam_lm_steer_opts){.lambda = lambda, .lambdas = 3};
}

static const struct {
    const char *name;
    cgam_demos demos;
} kinds[] = {{"positive", CGAM_DEMOS_TRUE},
             {"wrong_object", CGAM_DEMOS_FLIPPED},
             {"other_relation", CGAM_DEMOS_FOREIGN},
             {"random", CGAM_DEMOS_TRUE}};
enum { POSITIVE, RANDOM = 3, KINDS = sizeof kinds / sizeof *kinds };
/* In this order they are run: the others are compared with right facts and with random vectors. */
static const int order[KINDS] = {POSITIVE, RANDOM, 1, 2};

typedef struct steer_run {
    cgam_lm_study *study;
    const cgam_lm_task *task;
    cgam_lm_steer_opts opts;
    cgam_lm_result *result;
    int64_t places;      /* tokens of the longest answer, or 1 */
    int32_t *token;      /* [n, places] of each query's answer; -1: left out, or behind its last */
    float *zero, *q, *x; /* [n, L + 1, d]; [n, places, d] at the last layer, and pushed */
    double *total, *c;   /* [d] */
    cgam_answer *answer; /* [n, places] */
    double *before;      /* [n, 2] log p and log odds without a context */
    double *right;       /* [lambdas, L + 1, n] log p with right facts */
    double *random;      /* the same with random vectors */
    float *direction;    /* [d] */
} steer_run;

/* gain: of log p over no context, query by query; odds: log p/(mass - p), the answer against the
 * other objects, and what it gains; behind: how far log p is below that with right facts, or with random
 * vectors. own_fall: how far half of the fall is below the rival, i.e. above 0 if the rival lacks more than half of it;
 * random_own_fall: the same of the random vectors' fall and this context. */
enum {
    P,
    LOG_P,
    LOG_P_SE,
    LOG_P_LOW,
    LOG_P_HIGH,
    RANK,
    TOP1,
    MASS,
    GAIN,
    GAIN_SE,
    ODDS,
    ODDS_GAIN,
    ODDS_GAIN_SE,
    BEHIND,
    BEHIND_SE,
    BEHIND_RANDOM,
    BEHIND_RANDOM_SE,
    FALL_RIGHT,
    FALL_RIGHT_SE,
    FALL_RANDOM,
    FALL_RANDOM_SE,
    RANDOM_FALL,
    RANDOM_FALL_SE,
    COUNT
};
#define MEASURES                                                                                   \
    "p,log_p,log_p_se,log_p_low,log_p_high,rank_median,top1,mass,log_p_gain,log_p_gain_se,"        \
    "log_odds,log_odds_gain,log_odds_gain_se,behind_right,behind_right_se,behind_random,"          \
    "behind_random_se,own_fall_right,own_fall_right_se,own_fall_random,own_fall_random_se,"        \
    "random_own_fall,random_own_fall_se"

/* log p/(mass - p) from log p and the mass of all objects; a mass that is all the answer's own is
 * left a rounding of it. */
static double log_odds(double log_p, double mass)
{
    double p = exp(log_p);
    return log_p - log(fmax(mass - p, 1e-16 * p + DBL_MIN));
}

/* The middle 95% of the means of DRAWS samples of n values with replacement. The same draws for
 * every layer, kind and coupling, so that curves can be compared. */
enum { DRAWS = 1000 };
static void bootstrap_band(uint64_t seed, int64_t n, const double *x, double *means, double out[2])
{
    for (int b = 0; b < DRAWS; b++) {
        cgam_rng rng = cgam_rng_stream(seed, (uint64_t)b);
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += x[cgam_rng_below(&rng, n)];
        means[b] = sum / (double)n;
    }
    cgam_sort(means, DRAWS);
    out[0] = means[DRAWS / 40 - 1];
    out[1] = means[DRAWS - DRAWS / 40];
}

/* All tokens of query i's answer: the sum of log p, the worst rank, the mass where the answer begins. */
static cgam_answer judge_whole(const steer_run *s, int64_t i)
{
    cgam_answer all = s->answer[i * s->places];
    for (int64_t t = 1; t < s->places && s->token[i * s->places + t] >= 0; t++) {
        const cgam_answer *one = &s->answer[i * s->places + t];
        all.log_p += one->log_p;
        if (one->rank > all.rank) all.rank = one->rank;
    }
    return all;
}

static void put_mean(const cgam_moments *m, double *out)
{
    out[0] = m->mean, out[1] = cgam_moments_se(m);
}

/* `at`: place of this layer and coupling in right and random, where those kinds leave log p; -1: no context. */
static cgam_status measure_states(steer_run *s, int kind, int64_t at, double out[COUNT])
{
    double *right = at < 0 ? NULL : s->right + at, *random = at < 0 ? NULL : s->random + at;
    const cgam_lm_study *study = s->study;
    const cgam_lm_task *task = s->task;
    int64_t queries = task->queries;
    cgam_status status = cgam_lens_judge(
        study->lens, CGAM_LENS_NORM, queries * s->places, s->x, study->info.width, s->token,
        task->labels, task->answers ? task->answers->heads : task->tokens, s->answer);
    double *rank = cgam_alloc(study->env, 2 * (size_t)queries + DRAWS, sizeof *rank);
    if (status == CGAM_OK && !rank) status = cgam_fail_nomem(study->env, "ranks");
    double n = 0;
    cgam_moments log_p = {0}, gains = {0}, odds = {0}, behinds = {0};
    cgam_moments beside = {0}, falls = {0}, own_falls = {0}, random_falls = {0};
    for (int m = 0; m < COUNT; m++) out[m] = 0;
    for (int64_t i = 0; i < queries && status == CGAM_OK; i++) {
        const cgam_answer all = judge_whole(s, i), *v = &all;
        if (s->token[i * s->places] < 0) continue;
        rank[queries + (int64_t)n] = v->log_p;
        rank[(int64_t)n++] = (double)v->rank;
        out[P] += exp(v->log_p);
        cgam_moments_add(&log_p, v->log_p);
        double *before = s->before + 2 * i, now = log_odds(v->log_p, v->mass);
        if (at < 0) before[0] = v->log_p, before[1] = now;
        if (right && kind == POSITIVE) right[i] = random[i] = v->log_p;
        if (random && kind == RANDOM) random[i] = v->log_p;
        double half = (v->log_p + before[0]) / 2, none = random ? random[i] : v->log_p;
        cgam_moments_add(&gains, v->log_p - before[0]);
        cgam_moments_add(&behinds, (right ? right[i] : v->log_p) - v->log_p);
        cgam_moments_add(&odds, now - before[1]);
        cgam_moments_add(&beside, none - v->log_p);
        cgam_moments_add(&falls, (right ? right[i] : v->log_p) - half);
        cgam_moments_add(&own_falls, none - half);
        cgam_moments_add(&random_falls, v->log_p - (none + before[0]) / 2);
        out[ODDS] += now;
        out[TOP1] += v->rank == 0;
        out[MASS] += v->mass;
    }
    for (int m = 0; m < COUNT && n == 0; m++) out[m] = NAN; /* no distinguishable answer */
    if (status == CGAM_OK && n > 0) {
        out[P] /= n, out[TOP1] /= n, out[MASS] /= n, out[ODDS] /= n;
        out[LOG_P] = log_p.mean, out[LOG_P_SE] = cgam_moments_se(&log_p);
        out[GAIN] = gains.mean, out[GAIN_SE] = cgam_moments_se(&gains);
        out[ODDS_GAIN] = odds.mean, out[ODDS_GAIN_SE] = cgam_moments_se(&odds);
        put_mean(&behinds, out + BEHIND);
        put_mean(&beside, out + BEHIND_RANDOM);
        put_mean(&falls, out + FALL_RIGHT);
        put_mean(&own_falls, out + FALL_RANDOM);
        put_mean(&random_falls, out + RANDOM_FALL);
        bootstrap_band(study->seed, (int64_t)n, rank + queries, rank + 2 * queries,
                       out + LOG_P_LOW);
        cgam_sort(rank, (int64_t)n);
        out[RANK] = (rank[((int64_t)n - 1) / 2] + rank[(int64_t)n / 2]) / 2;
    }
    cgam_free(study->env, rank);
    return status;
}

/* A direction for a layer, of length 1. */
static void draw_direction(steer_run *s, int64_t l)
{
    int64_t d = s->study->info.width;
    cgam_rng rng = cgam_rng_stream(s->study->seed, (UINT64_C(1) << 57) + (uint64_t)l);
    double square = 0;
    for (int64_t j = 0; j < d; j++) {
        s->direction[j] = (float)cgam_rng_normal(&rng);
        square += (double)s->direction[j] * (double)s->direction[j];
    }
    for (int64_t j = 0; j < d; j++) s->direction[j] /= (float)sqrt(square);
}

/* x = q + lambda s c_{-i} with the context after layer l, or a random one of its norm. */
static void add_context(steer_run *s, const float *with, bool random, int64_t l, double lambda)
{
    const cgam_lm_info *info = &s->study->info;
    int64_t n = s->task->queries, d = info->width, L = info->layers + 1;
    double mean = 0;
    if (random) draw_direction(s, l);
    for (int64_t j = 0; j < d; j++) s->total[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *q = s->zero + (i * L + L - 1) * d;
        double size = 0;
        for (int64_t j = 0; j < d; j++) {
            int64_t at = (i * L + l) * d + j;
            size += (double)q[j] * (double)q[j];
            if (with) s->total[j] += (double)with[at] - (double)s->zero[at];
        }
        mean += sqrt(size) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double size = 0, factor = 1;
        for (int64_t j = 0; j < d && with; j++) {
            int64_t at = (i * L + l) * d + j;
            double c = (s->total[j] - ((double)with[at] - (double)s->zero[at])) / (double)(n - 1);
            s->c[j] = (double)(float)c;
            size += c * c;
        }
        for (int64_t j = 0; j < d && random; j++) s->c[j] = sqrt(size) * (double)s->direction[j];
        if (!s->opts.absolute) factor = size > 0 ? mean / sqrt(size) : 0;
        for (int64_t r = i * s->places; r < (i + 1) * s->places; r++)
            for (int64_t j = 0; j < d; j++)
                s->x[r * d + j] =
                    (float)((double)s->q[r * d + j] + (with ? lambda * factor * s->c[j] : 0));
    }
}

/* with: states of this kind of demonstrations; of the random one, of right facts. */
static cgam_status add_kind(steer_run *s, int64_t k, int kind, const float *with, json_t *curves)
{
    int64_t L = s->study->info.layers + 1, lambdas = s->opts.lambdas;
    const double *lambda = s->opts.lambda;
    cgam_status status = CGAM_OK;
    cgam_lm_work_readings(s->study, (double)(lambdas * L * s->task->queries));
    for (int64_t a = 0; a < lambdas && status == CGAM_OK; a++) {
        for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
            double row[4 + COUNT] = {(double)k, kind, lambda[a], (double)l};
            add_context(s, with, kind == RANDOM, l, lambda[a]);
            status = measure_states(s, kind, (a * L + l) * s->task->queries, row + 4);
            if (status == CGAM_OK) cgam_lm_result_row(s->result, 0, row);
            cgam_lm_work_tell(s->study, "reading", a * L + l + 1, lambdas * L);
        }
        if (status != CGAM_OK) break;
        json_t *curve = cgam_json_object("context=%s lambda=%g", kinds[kind].name, lambda[a]);
        cgam_lm_result_put(s->result, 0, L, MEASURES, curve);
        json_array_append_new(curves, curve);
    }
    return status;
}

static cgam_status add_shots(steer_run *s, int64_t k, json_t *shots)
{
    json_t *entry = json_object(), *curves = json_array(), *baseline = json_object();
    double m[COUNT];
    const cgam_table one = {.heads = MEASURES, .rows = 1, .columns = COUNT, .cells = m};
    add_context(s, NULL, false, 0, 0);
    cgam_status status = measure_states(s, POSITIVE, -1, m);
    cgam_table_put(baseline, &one, 0, 0, MEASURES);
    json_t *nulls = json_array();
    float *with = NULL;
    for (int i = 0; i < KINDS && status == CGAM_OK; i++) {
        bool random = order[i] == RANDOM; /* with the states of right facts, which came before it */
        if (!random) {
            cgam_free(s->study->env, with);
            status = cgam_lm_states(s->study, s->task, k, kinds[order[i]].demos, &with);
        }
        if (status == CGAM_OK) status = add_kind(s, k, order[i], with, random ? nulls : curves);
    }
    cgam_free(s->study->env, with);
    json_array_extend(curves, nulls); /* the null comes last */
    json_decref(nulls);
    cgam_json_add(entry, "k=%jd baseline=%p curves=%p", k, baseline, curves);
    json_array_append_new(shots, entry);
    return status;
}

/* Tokens of the answers, and the states before each of them without demonstrations. */
static cgam_status read_places(steer_run *s)
{
    const cgam_lm_task *task = s->task;
    const cgam_answers *a = task->answers;
    int64_t n = task->queries, L = s->study->info.layers + 1, d = s->study->info.width, used = 0;
    cgam_lm_ending *ending = cgam_alloc(s->study->env, (size_t)(n * s->places), sizeof *ending);
    if (!ending) return cgam_fail_nomem(s->study->env, "steering");
    for (int64_t r = 0; r < n * s->places; r++) {
        int64_t i = r / s->places, t = r % s->places, label = a ? a->target[i] : task->target[i];
        s->token[r] = label < 0 ? -1 : a ? a->tokens[label * a->longest + t] : task->tokens[label];
        if (a && t > 0 && s->token[r] >= 0) /* only answers have places after the first */
            ending[used++] = (cgam_lm_ending){i, a->word[label].tokens, t};
    }
    cgam_status status =
        cgam_lm_states_after(s->study, task, 0, CGAM_DEMOS_TRUE, used, ending, &s->zero);
    used = n;
    for (int64_t r = 0; r < n * s->places && status == CGAM_OK; r++) {
        bool first = r % s->places == 0;
        int64_t from = first ? r / s->places : s->token[r] >= 0 ? used++ : -1;
        for (int64_t j = 0; j < d; j++)
            s->q[r * d + j] = from < 0 ? 0 : s->zero[(from * L + L - 1) * d + j];
    }
    cgam_free(s->study->env, ending);
    return status;
}

static cgam_status begin_steering(steer_run *s)
{
    cgam_lm_study *study = s->study;
    const cgam_lm_task *task = s->task;
    cgam_env *env = study->env;
    s->places = task->answers ? task->answers->longest : 1;
    size_t n = (size_t)task->queries, d = (size_t)study->info.width, rows = n * (size_t)s->places;
    cgam_status status = cgam_alloc_all(
        env, "steering", CGAM_ARRAY(s->token, rows), CGAM_ZEROS(s->answer, rows),
        CGAM_ARRAY(s->q, rows * d), CGAM_ARRAY(s->x, rows * d), CGAM_ARRAY(s->total, d),
        CGAM_ARRAY(s->c, d), CGAM_ZEROS(s->before, 2 * n),
        CGAM_ZEROS(s->right, (size_t)s->opts.lambdas * (size_t)(study->info.layers + 1) * n),
        CGAM_ZEROS(s->random, (size_t)s->opts.lambdas * (size_t)(study->info.layers + 1) * n),
        CGAM_ARRAY(s->direction, d));
    if (status != CGAM_OK) return status;
    return read_places(s);
}

cgam_status cgam_lm_steer(cgam_lm_study *study, cgam_lm_task *task, const cgam_lm_steer_opts *opts,
                          cgam_lm_result **out)
{
    if (!task) task = &study->task;
    steer_run s = {.study = study, .task = task, .opts = cgam_lm_steer_opts_default()};
    if (opts) s.opts = *opts;
    if (s.opts.lambdas < 1) {
        s.opts.lambda = cgam_lm_steer_opts_default().lambda;
        s.opts.lambdas = cgam_lm_steer_opts_default().lambdas;
    }
    const cgam_lens *lens;
    cgam_env *env = study->env;
    *out = NULL;
    if (study->shots[study->n_shots - 1] == 0 || task->queries < 2)
        return cgam_fail(env, CGAM_E_ARG, "steering needs at least 1 demonstration and 2 queries");
    cgam_status status = cgam_lm_task_several(study, task);
    if (status == CGAM_OK) status = cgam_lm_task_label(study, task);
    if (status == CGAM_OK) status = cgam_lm_study_lens(study, &lens);
    if (status == CGAM_OK) status = cgam_lm_result_new(study, &s.result);
    if (status != CGAM_OK) return status;
    json_t *shots = json_array();
    cgam_lm_result_add(s.result, "steer", "what contexts do to the answer, by layer",
                       "shots,context,lambda,layer," MEASURES);
    status = begin_steering(&s);
    for (int64_t i = 1; i < study->n_shots && status == CGAM_OK; i++)
        status = add_shots(&s, study->shots[i], shots);
    cgam_lm_result_describe(s.result, study, task);
    cgam_json_add(s.result->doc, "counted=%jd answer=%s lambda_scale=%s shots=%p",
                  task->answers ? task->queries : task->counted,
                  cgam_lm_answer_name(cgam_lm_task_answer(task)),
                  s.opts.absolute ? "absolute" : "relative", shots);
    cgam_free_all(env, s.token, s.answer, s.zero, s.q, s.x, s.total, s.c, s.before, s.right,
                  s.random, s.direction);
    return cgam_lm_result_end(s.result, status, out);
}
