/* study_heads.c: heads that carry a task, after Todd et al. 2024 ("Function vectors in large language models").
 *
 * a_lh is what head h of block l puts into the output projection at the last token, m_lh its mean over the even
 * queries' prompts with demonstrations. With p_i the probability of query i's answer in its prompt with flipped
 * demonstrations, and p_i(lh) the same with m_lh in place of a_lh,
 *
 *     effect_lh = mean over even i of p_i(lh) - p_i.
 *
 * The function vector is the sum of O_lh m_lh over the heads with the largest effects. It is added to the last token of prompts
 * without demonstrations, after the layer at which the most even queries are then right; the odd ones are counted. Random
 * heads and the mean effect of demonstrations choose their layers the same way.
 *
 * The prompts of a query differ in what is patched at the last token only, so a patch costs one token. */
#include "base/rng.h"
#include "lab/language/inject.h"
#include "lm/scores.h"
#include "lm/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST = 4,
    DRAWS = 4,
    FROM = 2
}; /* FROM: the first layer that every vector file can store */

typedef struct head_search {
    cgam_lm_study *study;
    cgam_env *env;
    cgam_judge judge;
    int64_t n, L, H, size, d, k, top;
    cgam_lm_tokens *with, *flipped,
        *bare;               /* [n] prompts with demonstrations, with flipped ones, without */
    float *mean;             /* [L, H, size] */
    double *effect;          /* [L, H] */
    int64_t *order;          /* [L H] heads, largest effect first */
    float *added;            /* [H, d] what the means of a block add */
    int64_t patches, tokens; /* that were run for the effects */
} head_search;

cgam_lm_heads_opts cgam_lm_heads_opts_default(void) { return (cgam_lm_heads_opts){.top = 10}; }

static bool counts(const head_search *t, int64_t i) { return t->judge.target[i] >= 0; }

static int32_t answer_of(const head_search *t, int64_t i)
{
    return t->study->task.tokens[t->judge.target[i]];
}

/* ---- Runs --------------------------------------------------------------------------------- */
/* What a run says of each prompt: the probability of its answer, and whether that comes first. */
typedef struct said {
    const head_search *t;
    const int64_t *query; /* [prompts] */
    double *p;            /* may be NULL */
    bool *right;          /* may be NULL */
} said;

static cgam_status take_scores(void *user, const cgam_lm_span *span)
{
    const said *s = user;
    int64_t vocab = s->t->study->info.vocab;
    const float *scores = span->scores + (span->count - 1) * vocab;
    int32_t answer = answer_of(s->t, s->query[span->which]);
    cgam_softmax all = cgam_scores_softmax(scores, vocab);
    if (s->p) s->p[span->which] = exp(cgam_scores_log_p(&all, (double)scores[answer]));
    if (s->right) s->right[span->which] = cgam_scores_top(scores, vocab) == answer;
    return CGAM_OK;
}

static cgam_status run_prompts(const head_search *t, int64_t count, const cgam_lm_prompt *prompts,
                               const cgam_lm_edits *edits, const said *s)
{
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.states = false;
    o.scores = true;
    o.run.exact = t->study->exact;
    o.run.edits_each = edits;
    return cgam_lm_observe(t->study->lm, count, prompts, &o, take_scores, (void *)(uintptr_t)s);
}

/* ---- Means of heads ----------------------------------------------------------------------- */
static cgam_status add_to_mean(void *user, const cgam_lm_span *span)
{
    head_search *t = user;
    int64_t row = t->H * t->size;
    for (int64_t j = 0; j < t->L * row; j++) t->mean[j] += span->states[j];
    return CGAM_OK;
}

/* Sums run in f32 over at most some hundred prompts, in an order that is that of the run. */
static cgam_status fill_means(head_search *t)
{
    int64_t m = 0;
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    cgam_lm_prompt *prompts = cgam_alloc(t->env, (size_t)t->n, sizeof *prompts);
    if (!prompts) return cgam_fail_nomem(t->env, "prompts");
    for (int64_t i = 0; i < t->n; i += 2)
        if (counts(t, i)) prompts[m++] = (cgam_lm_prompt){t->with[i].tokens, t->with[i].count};
    o.part = CGAM_LM_HEADS;
    o.run.exact = t->study->exact;
    cgam_status status = cgam_lm_observe(t->study->lm, m, prompts, &o, add_to_mean, t);
    for (int64_t j = 0; j < t->L * t->H * t->size; j++) t->mean[j] /= (float)m;
    cgam_free(t->env, prompts);
    return status;
}

/* ---- Effects ------------------------------------------------------------------------------ */
/* All patches of one query at once; the last prompt is without. */
static cgam_status patch_query(head_search *t, int64_t i, cgam_lm_edit *edit, cgam_lm_edits *edits,
                               cgam_lm_prompt *prompts, int64_t *query, double *p)
{
    int64_t cells = t->L * t->H;
    for (int64_t c = 0; c <= cells; c++) {
        prompts[c] = (cgam_lm_prompt){t->flipped[i].tokens, t->flipped[i].count};
        query[c] = i;
        edits[c] = (cgam_lm_edits){&edit[c], c < cells};
        if (c == cells) break;
        edit[c] = cgam_lm_edit_default();
        edit[c].kind = CGAM_LM_REPLACE;
        edit[c].part = CGAM_LM_HEADS;
        edit[c].layer = c / t->H + 1;
        edit[c].head = c % t->H;
        edit[c].vector = t->mean + c * t->size;
    }
    cgam_status status = run_prompts(t, cells + 1, prompts, edits, &(said){t, query, p, NULL});
    for (int64_t c = 0; c < cells && status == CGAM_OK; c++) t->effect[c] += p[c] - p[cells];
    t->patches += cells;
    t->tokens += t->flipped[i].count + cells;
    return status;
}

static cgam_status fill_effects(head_search *t)
{
    int64_t cells = t->L * t->H, m = 0;
    cgam_lm_edit *edit;
    cgam_lm_edits *edits;
    cgam_lm_prompt *prompts;
    int64_t *query;
    double *p;
    cgam_status status = cgam_alloc_all(
        t->env, "patches", CGAM_ARRAY(edit, cells), CGAM_ARRAY(edits, cells + 1),
        CGAM_ARRAY(prompts, cells + 1), CGAM_ARRAY(query, cells + 1), CGAM_ARRAY(p, cells + 1));
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i += 2) {
        cgam_progress_count(&t->study->progress, "patching heads", i, t->n, "queries");
        if (!counts(t, i)) continue;
        status = patch_query(t, i, edit, edits, prompts, query, p);
        m++;
    }
    for (int64_t c = 0; c < cells && m > 0; c++) t->effect[c] /= (double)m;
    cgam_free_all(t->env, edit, edits, prompts, query, p);
    return status;
}

/* Largest effect first; ties go to the first head. */
static void sort_heads(head_search *t)
{
    int64_t cells = t->L * t->H;
    for (int64_t c = 0; c < cells; c++) {
        int64_t at = c;
        for (; at > 0 && t->effect[t->order[at - 1]] < t->effect[c]; at--)
            t->order[at] = t->order[at - 1];
        t->order[at] = c;
    }
}

/* out [d] = the sum of what these heads' means add. */
static cgam_status sum_heads(const head_search *t, int64_t count, const int64_t *heads, float *out)
{
    cgam_status status = CGAM_OK;
    memset(out, 0, (size_t)t->d * sizeof *out);
    for (int64_t l = 0; l < t->L && status == CGAM_OK; l++) {
        bool any = false;
        for (int64_t c = 0; c < count; c++) any = any || heads[c] / t->H == l;
        if (!any) continue;
        status =
            cgam_lm_heads_project(t->study->lm, l + 1, 1, t->mean + l * t->H * t->size, t->added);
        for (int64_t c = 0; c < count && status == CGAM_OK; c++)
            for (int64_t j = 0; j < t->d && heads[c] / t->H == l; j++)
                out[j] += t->added[heads[c] % t->H * t->d + j];
    }
    return status;
}

/* ---- Accuracy ----------------------------------------------------------------------------- */
/* Shares of the even and of the odd queries that are right. */
typedef struct head_share {
    double chosen, counted;
    int64_t layer;
} head_share;

static double share_of(const head_search *t, const bool *right, int64_t half)
{
    int64_t n = 0, of = 0;
    for (int64_t i = half; i < t->n; i += 2)
        if (counts(t, i)) n += right[i], of++;
    return of > 0 ? (double)n / (double)of : NAN;
}

/* Without edits. */
static cgam_status count_plain(const head_search *t, const cgam_lm_tokens *of, bool *right,
                               double *share)
{
    int64_t m = 0, *query;
    cgam_lm_prompt *prompts;
    bool *said_right;
    cgam_status status = cgam_alloc_all(t->env, "prompts", CGAM_ARRAY(query, t->n),
                                        CGAM_ARRAY(prompts, t->n), CGAM_ARRAY(said_right, t->n));
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        if (counts(t, i)) {
            prompts[m] = (cgam_lm_prompt){of[i].tokens, of[i].count};
            query[m++] = i;
        }
    if (status == CGAM_OK)
        status = run_prompts(t, m, prompts, NULL, &(said){t, query, NULL, said_right});
    for (int64_t c = 0; c < m && status == CGAM_OK; c++) right[query[c]] = said_right[c];
    if (status == CGAM_OK) *share = share_of(t, right, 1);
    cgam_free_all(t->env, query, prompts, said_right);
    return status;
}

/* Adds row l of v (`step` numbers apart; 0: always the same) after layer l; the layer is chosen on the even queries, of equal ones the
 * first. */
static cgam_status count_added(const head_search *t, const float *v, int64_t step, head_share *out)
{
    int64_t from = t->L < FROM ? t->L : FROM, layers = t->L - from + 1, m = 0, most = layers * t->n;
    cgam_lm_edit *edit;
    cgam_lm_edits *edits;
    cgam_lm_prompt *prompts;
    int64_t *query;
    bool *said_right, *right;
    cgam_status status =
        cgam_alloc_all(t->env, "vectors", CGAM_ARRAY(edit, most), CGAM_ARRAY(edits, most),
                       CGAM_ARRAY(prompts, most), CGAM_ARRAY(query, most),
                       CGAM_ARRAY(said_right, most), CGAM_ZEROS(right, most));
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        for (int64_t l = from; l <= t->L && counts(t, i); l++, m++) {
            edit[m] = cgam_lm_edit_default();
            edit[m].layer = l;
            edit[m].vector = v + l * step;
            edits[m] = (cgam_lm_edits){&edit[m], 1};
            prompts[m] = (cgam_lm_prompt){t->bare[i].tokens, t->bare[i].count};
            query[m] = i;
        }
    if (status == CGAM_OK)
        status = run_prompts(t, m, prompts, edits, &(said){t, query, NULL, said_right});
    for (int64_t c = 0; c < m && status == CGAM_OK; c++)
        right[(edit[c].layer - from) * t->n + query[c]] = said_right[c];
    *out = (head_share){.chosen = -1};
    for (int64_t l = 0; l < layers && status == CGAM_OK; l++) {
        double chosen = share_of(t, right + l * t->n, 0);
        if (chosen > out->chosen)
            *out = (head_share){chosen, share_of(t, right + l * t->n, 1), from + l};
    }
    cgam_free_all(t->env, edit, edits, prompts, query, said_right, right);
    return status;
}

/* As many random heads from outside the top; the mean over some draws. */
static cgam_status count_random(const head_search *t, int64_t *spare, float *v, double *share)
{
    int64_t cells = t->L * t->H, rest = cells - t->top;
    int64_t take = t->top < rest ? t->top : rest;
    cgam_status status = CGAM_OK;
    *share = take > 0 ? 0 : NAN;
    for (int draw = 0; draw < DRAWS && take > 0 && status == CGAM_OK; draw++) {
        head_share one;
        cgam_rng rng = cgam_rng_stream(t->study->seed, (UINT64_C(1) << 58) + (uint64_t)draw);
        memcpy(spare, t->order + t->top, (size_t)rest * sizeof *spare);
        for (int64_t c = 0; c < take; c++) {
            int64_t other = c + (int64_t)cgam_rng_below(&rng, rest - c), head = spare[c];
            spare[c] = spare[other];
            spare[other] = head;
        }
        status = sum_heads(t, take, spare, v);
        if (status == CGAM_OK) status = count_added(t, v, 0, &one);
        if (status == CGAM_OK) *share += one.counted / DRAWS;
    }
    return status;
}

static cgam_status count_effect(const head_search *t, head_share *out)
{
    float *with = NULL, *shift, *v;
    int64_t rows = t->L + 1;
    cgam_status status = cgam_alloc_all(t->env, "vectors", CGAM_ARRAY(shift, 2 * rows * t->d),
                                        CGAM_ARRAY(v, rows * t->d));
    if (status == CGAM_OK)
        status = cgam_lm_shifts(t->study, &t->study->task, NULL, t->k, CGAM_DEMOS_TRUE, false,
                                &with, shift);
    for (int64_t l = 0; l < rows && status == CGAM_OK; l++)
        memcpy(v + l * t->d, shift + 2 * l * t->d, (size_t)t->d * sizeof *v);
    if (status == CGAM_OK) status = count_added(t, v, t->d, out);
    cgam_free_all(t->env, with, shift, v);
    return status;
}

/* ---- The search --------------------------------------------------------------------------- */
static cgam_status open_search(head_search *t)
{
    cgam_status status = cgam_judge_open(t->study, CGAM_ANSWER_FIRST, &t->judge);
    int64_t half[2] = {0, 0};
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) half[i % 2] += counts(t, i);
    if (status == CGAM_OK && (half[0] < LEAST / 2 || half[1] < LEAST / 2))
        status = cgam_fail(
            t->env, CGAM_E_ARG,
            "queries: %lld with an answer of its own first token are too few for two halves",
            (long long)(half[0] + half[1]));
    if (status != CGAM_OK) return status;
    status =
        cgam_alloc_all(t->env, "heads", CGAM_ZEROS(t->with, t->n), CGAM_ZEROS(t->flipped, t->n),
                       CGAM_ZEROS(t->bare, t->n), CGAM_ZEROS(t->mean, t->L * t->H * t->size),
                       CGAM_ZEROS(t->effect, t->L * t->H), CGAM_ARRAY(t->order, 2 * t->L * t->H),
                       CGAM_ARRAY(t->added, t->H * t->d));
    const cgam_lm_task *task = &t->study->task;
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        status = cgam_lm_task_tokens(t->study, task, i, t->k, CGAM_DEMOS_TRUE, &t->with[i]);
        if (status == CGAM_OK)
            status =
                cgam_lm_task_tokens(t->study, task, i, t->k, CGAM_DEMOS_FLIPPED, &t->flipped[i]);
        if (status == CGAM_OK)
            status = cgam_lm_task_tokens(t->study, task, i, 0, CGAM_DEMOS_TRUE, &t->bare[i]);
    }
    return status;
}

static void close_search(head_search *t)
{
    for (int64_t i = 0; i < t->n && t->with && t->flipped && t->bare; i++) {
        cgam_lm_tokens_free(t->study->lm, t->with[i].tokens);
        cgam_lm_tokens_free(t->study->lm, t->flipped[i].tokens);
        cgam_lm_tokens_free(t->study->lm, t->bare[i].tokens);
    }
    cgam_free_all(t->env, t->with, t->flipped, t->bare, t->mean, t->effect, t->order, t->added);
    cgam_judge_close(&t->judge);
}

static void put_heads(const head_search *t, json_t *doc)
{
    json_t *effect = json_array(), *top = json_array();
    for (int64_t l = 0; l < t->L; l++) {
        json_t *row = json_array();
        for (int64_t h = 0; h < t->H; h++)
            json_array_append_new(row, cgam_json_real(t->effect[l * t->H + h]));
        json_array_append_new(effect, row);
    }
    for (int64_t c = 0; c < t->top; c++) {
        json_t *one = json_array();
        json_array_append_new(one, json_integer(t->order[c] / t->H + 1));
        json_array_append_new(one, json_integer(t->order[c] % t->H));
        json_array_append_new(top, one);
    }
    cgam_json_add(doc, "layers=%jd heads=%jd k=%jd effect=%p top=%p patches=%jd tokens=%jd", t->L,
                  t->H, t->k, effect, top, t->patches, t->tokens);
}

static cgam_status count_all(head_search *t, json_t *doc, float *v, head_share *heads)
{
    double zero = 0, icl = 0, random = 0;
    head_share effect = {0};
    bool *right = cgam_zalloc(t->env, (size_t)t->n, sizeof *right);
    cgam_status status = right ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    if (status == CGAM_OK) status = count_plain(t, t->bare, right, &zero);
    if (status == CGAM_OK) status = count_plain(t, t->with, right, &icl);
    if (status == CGAM_OK) status = count_random(t, t->order + t->L * t->H, v, &random);
    if (status == CGAM_OK) status = count_effect(t, &effect);
    if (status == CGAM_OK) status = sum_heads(t, t->top, t->order, v);
    if (status == CGAM_OK) status = count_added(t, v, 0, heads);
    cgam_free(t->env, right);
    if (status != CGAM_OK) return status;
    json_t *accuracy =
        cgam_json_object("zero_shot=%g icl=%g heads=%g random_heads=%g mean_effect=%g", zero, icl,
                         heads->counted, random, effect.counted);
    int64_t counted = 0;
    for (int64_t i = 1; i < t->n; i += 2) counted += counts(t, i);
    cgam_json_add(doc, "accuracy=%p queries=%jd counted=%jd layer=%jd mean_effect_layer=%jd",
                  accuracy, t->judge.counted, counted, heads->layer, effect.layer);
    cgam_json_put_bool(doc, "weak", !(icl > zero));
    return CGAM_OK;
}

cgam_status cgam_lm_heads(cgam_lm_study *study, const cgam_lm_heads_opts *opts, json_t *doc,
                          cgam_vector **out)
{
    cgam_lm_heads_opts o = opts ? *opts : cgam_lm_heads_opts_default();
    const cgam_lm_info *info = &study->info;
    head_search t = {.study = study,
                     .env = study->env,
                     .n = study->task.queries,
                     .L = info->layers,
                     .H = info->heads,
                     .size = info->head_size,
                     .d = info->width,
                     .k = study->shots[study->n_shots - 1]};
    float *v = NULL;
    head_share heads = {0};
    if (out) *out = NULL;
    t.top = o.top < t.L * t.H ? o.top : t.L * t.H;
    if (t.k == 0)
        return cgam_fail(t.env, CGAM_E_ARG,
                         "shots: a function vector needs at least 1 demonstration");
    if (o.top < 1)
        return cgam_fail(t.env, CGAM_E_ARG, "top is %lld, it must be 1 or more", (long long)o.top);
    if (t.H < 1)
        return cgam_fail(t.env, CGAM_E_UNSUPPORTED,
                         "the file does not say how many heads this %s model has",
                         info->architecture);
    cgam_status status = cgam_lm_task_several(study, &study->task);
    if (status == CGAM_OK) status = open_search(&t);
    if (status == CGAM_OK) status = cgam_alloc_all(t.env, "vectors", CGAM_ZEROS(v, t.d));
    if (status == CGAM_OK) status = fill_means(&t);
    if (status == CGAM_OK) status = fill_effects(&t);
    if (status == CGAM_OK) sort_heads(&t);
    if (status == CGAM_OK) status = count_all(&t, doc, v, &heads);
    if (status == CGAM_OK) put_heads(&t, doc);
    if (status == CGAM_OK && out) status = cgam_vector_new(t.env, t.L + 1, t.d, NULL, out);
    if (status == CGAM_OK && out)
        memcpy((*out)->data + heads.layer * t.d, v, (size_t)t.d * sizeof *v);
    cgam_free(t.env, v);
    close_search(&t);
    return status;
}
