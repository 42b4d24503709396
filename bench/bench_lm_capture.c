/* bench_lm_capture.c: what capture costs. On the default model and the shipped sentences:
 *
 *   capture   states of all layers against the same prompts through libllama without them: at most
 *             5 % more, the median ratio of pairs of runs that follow each other
 *   sharing   8 demonstrations that all queries share, computed once, against computing them for
 *             every query: at least 4 times faster
 *   answers   six answers of up to three tokens after 8 shared demonstrations, by the log-probability of
 *             the whole sequence against that of the first token: at most 1.5 times as long, by turns
 *   exact     the plain pass against libllama, by turns: at least twice its rate where the CPU has a tile
 *             unit, with states within 1e-5 of those of f32 at every layer; and its products against what
 *             that unit does in registers, a sixth of which is the most that six products for one allow
 *
 *   bench_lm_capture [QUERIES [exact|answers]]     that claim alone
 *
 * 12 queries by default, which takes about three minutes; 200 is the whole claim. The second ratio rises
 * with the number of queries, because what is shared is paid once. The states of both ways are
 * compared too: they are the same to within the model's rounding. Exit status 1: a claim failed. */
#include "base/env.h"
#include "bench/limits.h"
#include "lm/cache.h"
#include "lm/model.h"

#include "lab/language/dataset.h"
#include <cgam/lm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOTS = 8, PAIRS = 5, MOST = 1000, CAPTURED = 12 };

typedef struct sheet {
    int64_t count, one; /* prompts; numbers of one prompt's states */
    int32_t *tokens[MOST];
    cgam_lm_prompt prompt[MOST];
    float *states; /* [count, one] */
} sheet;

static cgam_status take(void *user, int64_t which, const float *states)
{
    sheet *s = user;
    for (int64_t i = 0; i < s->one; i++) s->states[which * s->one + i] = states[i];
    return CGAM_OK;
}

static cgam_status fill(cgam_lm *lm, const cgam_prompts *prompts, int64_t count, int64_t shots,
                        sheet *s)
{
    cgam_lm_info info = cgam_lm_describe(lm);
    *s = (sheet){.one = (info.layers + 1) * info.width};
    s->states = malloc((size_t)(count * s->one) * sizeof *s->states);
    cgam_status status = s->states ? CGAM_OK : CGAM_E_NOMEM;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        char *text;
        /* the set has fewer than 200: they come round again */
        status = cgam_prompts_text(prompts, i % prompts->queries, shots, CGAM_DEMOS_TRUE, &text);
        if (status != CGAM_OK) break;
        status = cgam_lm_tokenize(lm, text, true, &s->tokens[i], &s->prompt[i].count);
        s->prompt[i].tokens = s->tokens[i];
        s->count++;
        cgam_text_free(cgam_lm_env(lm), text);
    }
    return status;
}

static void empty(cgam_lm *lm, sheet *s)
{
    for (int64_t i = 0; i < s->count; i++) cgam_lm_tokens_free(lm, s->tokens[i]);
    free(s->states);
}

static cgam_status seconds(cgam_lm *lm, sheet *s, cgam_lm_capture_opts opts, double *out)
{
    double start = cgam_clock();
    cgam_status status = cgam_lm_capture(lm, s->count, s->prompt, &opts, take, s);
    *out = cgam_clock() - start;
    return status;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over pairs of runs with and without states; which comes first alternates. */
static cgam_status overhead(cgam_lm *lm, sheet *s, double *ratio, double *rate)
{
    double ratios[PAIRS], with = 0, without = 0, tokens = 0;
    cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
    for (int64_t i = 0; i < s->count; i++) tokens += (double)s->prompt[i].count;
    cgam_status status = seconds(lm, s, opts, &with); /* weights come into memory */
    for (int p = 0; p < PAIRS && status == CGAM_OK; p++) {
        for (int k = 0; k < 2 && status == CGAM_OK; k++) {
            opts.no_states = k != p % 2;
            status = seconds(lm, s, opts, opts.no_states ? &without : &with);
        }
        ratios[p] = with / without;
    }
    if (status != CGAM_OK) return status;
    qsort(ratios, PAIRS, sizeof *ratios, rising);
    *ratio = ratios[PAIRS / 2];
    *rate = tokens / with;
    return CGAM_OK;
}

static cgam_status sharing(cgam_lm *lm, sheet *s, double *shared, double *apart, double *distance)
{
    cgam_lm_capture_opts opts = cgam_lm_capture_opts_default();
    size_t n = (size_t)(s->count * s->one);
    double off = 0, size = 0;
    float *first = malloc(n * sizeof *first);
    if (!first) return CGAM_E_NOMEM;
    cgam_status status = seconds(lm, s, opts, shared);
    for (size_t i = 0; i < n; i++) first[i] = s->states[i];
    opts.no_sharing = true;
    if (status == CGAM_OK) status = seconds(lm, s, opts, apart);
    for (size_t i = 0; i < n; i++) {
        off += pow((double)first[i] - (double)s->states[i], 2);
        size += pow((double)s->states[i], 2);
    }
    *distance = sqrt(off / size);
    free(first);
    return status;
}

typedef struct exactness {
    double ratio, rate;  /* of the plain pass to libllama; tokens a second */
    double flops, limit; /* of its products; of the unit, in bf16 */
    double distance;     /* of states, at the worst layer */
} exactness;

static cgam_status burn(void *arg, int64_t i)
{
    (void)i;
    cgam_limits_tiles(*(const int64_t *)arg);
    return CGAM_OK;
}

/* |a - b| / |b| of the worst state of any layer. */
static double worst(const float *a, const float *b, int64_t states, int64_t width)
{
    double most = 0;
    for (int64_t s = 0; s < states; s++) {
        double off = 0, size = 0;
        for (int64_t j = s * width; j < (s + 1) * width; j++) {
            off += pow((double)a[j] - (double)b[j], 2);
            size += pow((double)b[j], 2);
        }
        most = fmax(most, sqrt(off / size));
    }
    return most;
}

/* The same prompts on tiles and, the CPU being taken for one without, by sgemm. */
static cgam_status compare_with_f32(cgam_lm *lm, sheet *s, double *distance)
{
    const cgam_cpu *plainer = cgam_cpu_best() - 1;
    size_t n = (size_t)(s->count * s->one);
    cgam_lm_capture_opts opts = {.exact = true};
    double time;
    float *tiles = malloc(n * sizeof *tiles);
    if (!tiles) return CGAM_E_NOMEM;
    cgam_status status = seconds(lm, s, opts, &time);
    for (size_t i = 0; i < n; i++) tiles[i] = s->states[i];
    cgam_cpu_pretend(plainer);
    if (status == CGAM_OK) status = seconds(lm, s, opts, &time);
    cgam_cpu_pretend(NULL);
    int64_t width = cgam_lm_describe(lm).width;
    *distance = worst(tiles, s->states, s->count * s->one / width, width);
    free(tiles);
    return status;
}

static cgam_status exact(cgam_env *env, cgam_lm *lm, sheet *s, exactness *out)
{
    const int64_t rounds = 1000000;
    double ratios[PAIRS], time[2] = {0, 0}, tokens = 0, best = INFINITY;
    cgam_lm_info info = cgam_lm_describe(lm);
    cgam_lm_capture_opts opts = {.no_sharing = true};
    cgam_status status = compare_with_f32(lm, s, &out->distance);
    for (int64_t i = 0; i < s->count; i++) tokens += (double)s->prompt[i].count;
    for (int p = 0; p < PAIRS && status == CGAM_OK; p++) {
        for (int k = 0; k < 2 && status == CGAM_OK; k++) {
            opts.exact = k != p % 2;
            status = seconds(lm, s, opts, &time[opts.exact]);
        }
        ratios[p] = time[0] / time[1];
        best = fmin(best, time[1]);
    }
    if (status != CGAM_OK) return status;
    qsort(ratios, PAIRS, sizeof *ratios, rising);
    out->ratio = ratios[PAIRS / 2];
    out->rate = tokens / best;
    double blocks =
        (double)info.parameters - (double)(info.vocab * info.width) * (info.tied ? 1 : 2);
    out->flops = 2 * blocks * out->rate;
    double start = cgam_clock();
    status = cgam_parallel(env, cgam_env_threads(env), burn, &(int64_t){rounds});
    out->limit =
        4.0 * 2 * 16 * 16 * 32 * (double)rounds * cgam_env_threads(env) / (cgam_clock() - start);
    return status;
}

static cgam_status exact_claim(cgam_env *env, cgam_lm *lm, sheet *s, bool *fine)
{
    exactness e = {0};
    if (!cgam_cpu_best()->split || !cgam_lm_describe(lm).exact) {
        printf("the plain pass: this CPU has no tile unit, or the model is of another kind\n");
        return CGAM_OK;
    }
    cgam_status status = exact(env, lm, s, &e);
    if (status != CGAM_OK) return status;
    printf("the plain pass: %.2f of libllama's rate (at least 2), %.0f tokens/s, states %.2g from "
           "those of f32 (at most 1e-5)\n"
           "  its products: %.0f GF/s, six times that is %.2f of the unit's %.0f GF/s\n",
           e.ratio, e.rate, e.distance, e.flops * 1e-9, 6 * e.flops / e.limit, e.limit * 1e-9);
    *fine = *fine && e.ratio >= 2 && e.distance <= 1e-5;
    return CGAM_OK;
}

/* All queries with all answers; first: each cut to its first token. */
static cgam_status scored(cgam_lm *lm, const sheet *s, int64_t n, const cgam_lm_prompt *answer,
                          bool first, double *time)
{
    cgam_lm_candidate *list = malloc((size_t)(s->count * n) * sizeof *list);
    double *log_p = malloc((size_t)(s->count * n) * sizeof *log_p);
    cgam_status status = list && log_p ? CGAM_OK : CGAM_E_NOMEM;
    for (int64_t c = 0; c < s->count * n && status == CGAM_OK; c++)
        list[c] = (cgam_lm_candidate){c / n, answer[c % n].tokens, first ? 1 : answer[c % n].count};
    double start = cgam_clock();
    if (status == CGAM_OK)
        status = cgam_lm_score(lm, s->count, s->prompt, s->count * n, list, NULL, log_p);
    *time = cgam_clock() - start;
    free(list);
    free(log_p);
    return status;
}

static cgam_status answers_claim(cgam_lm *lm, const sheet *s, bool *fine)
{
    static const char *const words[] = {"abbreviation", "entity",   "description",
                                        "human being",  "location", "numeric value"};
    enum { WORDS = sizeof words / sizeof *words };
    int32_t *tokens[WORDS] = {0};
    cgam_lm_prompt answer[WORDS];
    double ratios[PAIRS], time[2] = {0, 0}, more = 0;
    cgam_status status = CGAM_OK;
    for (int w = 0; w < WORDS && status == CGAM_OK; w++) {
        status = cgam_lm_tokenize(lm, words[w], false, &tokens[w], &answer[w].count);
        answer[w].tokens = tokens[w];
        more += (double)answer[w].count - 1;
    }
    for (int p = 0; p < PAIRS && status == CGAM_OK; p++) {
        for (int k = 0; k < 2 && status == CGAM_OK; k++) {
            bool first = k != p % 2;
            status = scored(lm, s, WORDS, answer, first, &time[first]);
        }
        ratios[p] = time[0] / time[1];
    }
    for (int w = 0; w < WORDS; w++) cgam_lm_tokens_free(lm, tokens[w]);
    if (status != CGAM_OK) return status;
    qsort(ratios, PAIRS, sizeof *ratios, rising);
    printf(
        "%d answers, %.0f tokens behind their first, %lld queries with %d shared demonstrations: "
        "whole sequences take %.2f of the time of first tokens (at most 1.5)\n",
        WORDS, more, (long long)s->count, SHOTS, ratios[PAIRS / 2]);
    fflush(stdout);
    *fine = *fine && ratios[PAIRS / 2] <= 1.5;
    return CGAM_OK;
}

static cgam_status llama_claims(cgam_lm *lm, sheet *few, sheet *many, bool *fine)
{
    double ratio = 0, rate = 0, shared = 0, apart = 0, distance = 0;
    cgam_status status = overhead(lm, few, &ratio, &rate);
    if (status != CGAM_OK) return status;
    printf("capture of all layers: %.3f of libllama alone (at most 1.05), %.0f tokens/s\n", ratio,
           rate);
    fflush(stdout);
    status = sharing(lm, many, &shared, &apart, &distance);
    if (status != CGAM_OK) return status;
    printf("%d shared demonstrations, %lld queries: %.1f s, %.1f s without sharing: %.1f times "
           "faster (at least 4), states %.2g apart\n",
           SHOTS, (long long)many->count, shared, apart, apart / shared, distance);
    fflush(stdout);
    *fine = ratio <= 1.05 && apart >= 4 * shared;
    return CGAM_OK;
}

static cgam_status measure(cgam_env *env, cgam_lm *lm, int64_t queries, const char *only,
                           bool *fine)
{
    static sheet few, many; /* tables of prompts are large */
    cgam_dataset *set = NULL;
    cgam_prompts *prompts = NULL;
    cgam_prompts_opts opts = cgam_prompts_opts_default();
    opts.queries = queries;
    opts.shots_max = SHOTS;
    opts.shared = true;
    cgam_status status = cgam_dataset_shipped(env, "sentiment", NULL, &set);
    if (status == CGAM_OK) status = cgam_prompts_new(env, set, set, &opts, &prompts);
    if (status == CGAM_OK) status = fill(lm, prompts, CAPTURED, 0, &few);
    if (status == CGAM_OK) status = fill(lm, prompts, queries, SHOTS, &many);
    *fine = true;
    if (status == CGAM_OK && !only) status = llama_claims(lm, &few, &many, fine);
    if (status == CGAM_OK && (!only || strcmp(only, "answers") == 0))
        status = answers_claim(lm, &many, fine);
    if (status == CGAM_OK && (!only || strcmp(only, "exact") == 0))
        status = exact_claim(env, lm, &few, fine);
    empty(lm, &few);
    empty(lm, &many);
    cgam_prompts_free(prompts);
    cgam_dataset_close(set);
    return status;
}

int main(int argc, char **argv)
{
    int64_t queries = argc > 1 ? strtol(argv[1], NULL, 10) : 12;
    cgam_env *env = NULL;
    cgam_lm *lm = NULL;
    char path[1024];
    bool fine = false;
    if (queries < 2 || queries > MOST || cgam_env_new(NULL, &env) != CGAM_OK) return 2;
    cgam_status status = cgam_lm_model_path(env, path, sizeof path);
    if (status == CGAM_OK) status = cgam_lm_open(env, path, &lm);
    if (status == CGAM_E_NOT_FOUND || status == CGAM_E_UNSUPPORTED) {
        printf("capture: skipped: %s\n", cgam_env_message(env));
        cgam_env_free(env);
        return 0;
    }
    if (status == CGAM_OK) status = measure(env, lm, queries, argc > 2 ? argv[2] : NULL, &fine);
    if (status != CGAM_OK) fprintf(stderr, "bench_lm_capture: %s\n", cgam_env_message(env));
    cgam_lm_close(lm);
    cgam_env_free(env);
    if (status != CGAM_OK) return 3;
    return fine ? 0 : 1;
}
