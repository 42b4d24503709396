/* answers.c: answers of several tokens: their shared beginnings, their states, their probabilities. */
#include "lab/language/study_sweep.h"
#include "lm/lens.h"
#include "lm/scores.h"

#include <math.h>
#include <string.h>

void cgam_answers_close(cgam_answers *answers)
{
    cgam_env *env = answers->env;
    if (!env) return;
    for (int64_t i = 0; answers->word && i < answers->labels; i++)
        cgam_lm_tokens_free(answers->lm, answers->word[i].tokens);
    cgam_free_all(env, answers->word, answers->tokens, answers->at, answers->first, answers->heads,
                  answers->target, answers->beginning);
    *answers = (cgam_answers){0};
}

static bool same_tokens(const cgam_lm_tokens *a, const cgam_lm_tokens *b, int64_t count)
{
    return a->count >= count && b->count >= count &&
           memcmp(a->tokens, b->tokens, (size_t)count * sizeof *a->tokens) == 0;
}

static cgam_status tokenize_words(const cgam_lm_study *study, const cgam_lm_task *task,
                                  cgam_answers *a)
{
    cgam_status status = cgam_alloc_all(
        a->env, "answers", CGAM_ZEROS(a->word, a->labels), CGAM_ARRAY(a->first, a->labels),
        CGAM_ARRAY(a->target, a->queries), CGAM_ARRAY(a->heads, a->labels));
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < a->labels && status == CGAM_OK; i++) {
        const char *word = task->eval->label[i].word;
        status = cgam_lm_answer_tokens(study, task->prompts, word, &a->word[i]);
        if (status != CGAM_OK) break;
        a->first[i] = a->heads[i] = a->word[i].tokens[0];
        if (a->word[i].count > a->longest) a->longest = a->word[i].count;
        for (int64_t j = 0; j < i; j++) {
            if (a->first[j] == a->first[i]) a->heads[i] = -1;
            if (a->word[i].count == a->word[j].count &&
                same_tokens(&a->word[i], &a->word[j], a->word[i].count))
                return cgam_fail(a->env, CGAM_E_ARG,
                                 "the answers '%s' and '%s' are the same tokens",
                                 task->eval->label[j].word, word);
        }
    }
    for (int64_t i = 0; i < a->queries && status == CGAM_OK; i++)
        a->target[i] = (int32_t)cgam_prompts_label(task->prompts, i);
    return status;
}

/* The number of tokens that distinguish a label from all others; all of them if another label continues it. */
static int64_t tokens_to_tell_apart(const cgam_answers *a, int64_t label, const int64_t *whole)
{
    for (int64_t count = 1; count < whole[label]; count++) {
        bool alone = true;
        for (int64_t k = 0; k < a->labels && alone; k++)
            alone = k == label || whole[k] < count ||
                    memcmp(a->word[label].tokens, a->word[k].tokens,
                           (size_t)count * sizeof(int32_t)) != 0;
        if (alone) return count;
    }
    return whole[label];
}

static cgam_status cut_to_distinct(cgam_answers *a)
{
    int64_t *whole = cgam_alloc(a->env, (size_t)a->labels, sizeof *whole);
    if (!whole) return cgam_fail_nomem(a->env, "answers");
    for (int64_t i = 0; i < a->labels; i++) whole[i] = a->word[i].count;
    a->longest = 0;
    for (int64_t i = 0; i < a->labels; i++) {
        a->word[i].count = tokens_to_tell_apart(a, i, whole);
        if (a->word[i].count > a->longest) a->longest = a->word[i].count;
    }
    cgam_free(a->env, whole);
    return CGAM_OK;
}

/* The beginning with the first `count` tokens of a label, found or made. */
static int64_t beginning_of(cgam_answers *a, int64_t label, int64_t count)
{
    for (int64_t b = 0; b < a->beginnings; b++)
        if (a->beginning[b].count == count &&
            same_tokens(&a->word[label], &a->word[a->beginning[b].label], count))
            return b;
    a->beginning[a->beginnings].label = label;
    a->beginning[a->beginnings].count = count;
    return a->beginnings++;
}

cgam_status cgam_answers_open(const cgam_lm_study *study, const cgam_lm_task *task,
                              cgam_lm_answer how, cgam_answers *out)
{
    cgam_answers *a = out;
    *a = (cgam_answers){.env = study->env,
                        .lm = study->lm,
                        .how = how,
                        .labels = task->labels,
                        .queries = task->queries};
    cgam_status status = tokenize_words(study, task, a);
    if (status == CGAM_OK && how == CGAM_ANSWER_DISTINCT) status = cut_to_distinct(a);
    size_t cells = (size_t)(a->labels * a->longest);
    if (status == CGAM_OK) {
        status = cgam_alloc_all(a->env, "answers", CGAM_ARRAY(a->tokens, cells),
                                CGAM_ARRAY(a->at, cells), CGAM_ARRAY(a->beginning, cells + 1));
    }
    for (int64_t i = 0; i < a->labels && status == CGAM_OK; i++)
        for (int64_t t = 0; t < a->longest; t++) {
            bool has = t < a->word[i].count;
            a->tokens[i * a->longest + t] = has ? a->word[i].tokens[t] : -1;
            a->at[i * a->longest + t] = has ? (int32_t)beginning_of(a, i, t) : -1;
        }
    if (status != CGAM_OK) cgam_answers_close(a);
    return status;
}

cgam_status cgam_answers_states(const cgam_answers *answers, cgam_lm_study *study,
                                const cgam_lm_task *task, int64_t k, cgam_demos demos, float **out,
                                const float **after)
{
    const int64_t bytes_max = (int64_t)6 << 30; /* bytes of states */
    *after = NULL;
    if (!answers) return cgam_lm_states(study, task, k, demos, out);
    int64_t one = (study->info.layers + 1) * study->info.width;
    int64_t each = answers->beginnings - 1, endings = answers->queries * each;
    *out = NULL;
    if ((double)(answers->queries + endings) * (double)one * sizeof **out > (double)bytes_max)
        return cgam_fail(answers->env, CGAM_E_ARG,
                         "answer sequence: %lld queries with %lld answer prefixes need more "
                         "than 6 GB of states; use fewer queries, or answer distinct or first",
                         (long long)answers->queries, (long long)each);
    cgam_lm_ending *ending = cgam_alloc(answers->env, (size_t)endings + 1, sizeof *ending);
    if (!ending) return cgam_fail_nomem(answers->env, "answers");
    for (int64_t e = 0; e < endings; e++) {
        int64_t b = 1 + e % each;
        ending[e] = (cgam_lm_ending){e / each, answers->word[answers->beginning[b].label].tokens,
                                     answers->beginning[b].count};
    }
    cgam_status status = cgam_lm_states_after(study, task, k, demos, endings, ending, out);
    if (status == CGAM_OK && each > 0) *after = *out + answers->queries * one;
    cgam_free(answers->env, ending);
    return status;
}

/* ---- Reading ------------------------------------------------------------------------------- */
typedef struct answer_reading {
    const cgam_answers *answers;
    int64_t vocab, from;        /* from: the first query of the piece */
    const float *roots, *after; /* [piece, vocab] or NULL, [piece, beginnings - 1, vocab] */
    double *log_p;              /* [queries, labels] or NULL */
    cgam_whole *out;
} answer_reading;

static const float *scores_at(const answer_reading *r, int64_t i, int64_t beginning)
{
    int64_t each = r->answers->beginnings - 1;
    return beginning == 0 ? r->roots + i * r->vocab
                          : r->after + (i * each + beginning - 1) * r->vocab;
}

static cgam_status read_query(void *arg, int64_t i)
{
    const answer_reading *r = arg;
    const cgam_answers *a = r->answers;
    int64_t query = r->from + i, target = a->target[query], begin = r->roots ? 0 : 1;
    if (cgam_interrupted(a->env)) return CGAM_E_INTERRUPTED;
    cgam_softmax *all = cgam_alloc(a->env, (size_t)a->beginnings, sizeof *all);
    if (!all) return cgam_fail_nomem(a->env, "answers");
    for (int64_t b = begin; b < a->beginnings; b++)
        all[b] = cgam_scores_softmax(scores_at(r, i, b), r->vocab);
    cgam_whole w = {.label = -1, .greedy = true};
    w.top = r->roots ? (int32_t)cgam_scores_top(r->roots + i * r->vocab, r->vocab) : -1;
    double best = 0;
    for (int64_t k = 0; k < a->labels; k++) {
        double log_p = 0;
        for (int64_t t = begin; t < a->word[k].count; t++) {
            int32_t at = a->at[k * a->longest + t], token = a->tokens[k * a->longest + t];
            const float *scores = scores_at(r, i, at);
            log_p += cgam_scores_log_p(&all[at], (double)scores[token]);
            if (k == target) w.greedy = w.greedy && cgam_scores_top(scores, r->vocab) == token;
        }
        if (w.label < 0 || log_p > best) best = log_p, w.label = (int32_t)k;
        if (k == target) w.log_p = log_p;
        w.mass += exp(log_p);
        if (r->log_p) r->log_p[query * a->labels + k] = log_p;
    }
    r->out[query] = w;
    cgam_free(a->env, all);
    return CGAM_OK;
}

cgam_status cgam_answers_read(const cgam_answers *answers, const cgam_lens *lens,
                              cgam_lens_kind kind, const float *x, int64_t stride,
                              const float *after, int64_t after_stride, double *log_p,
                              cgam_whole *out)
{
    enum { AT_ONCE = 256 }; /* states scored together */
    cgam_env *env = answers->env;
    int64_t each = answers->beginnings - 1, n = answers->queries, vocab = lens->vocab;
    int64_t piece = AT_ONCE / answers->beginnings > 0 ? AT_ONCE / answers->beginnings : 1;
    float *scores = cgam_alloc(env, (size_t)(piece * answers->beginnings * vocab), sizeof *scores);
    answer_reading r = {.answers = answers,
                        .vocab = vocab,
                        .roots = x ? scores : NULL,
                        .after = scores ? scores + piece * vocab : NULL,
                        .log_p = log_p,
                        .out = out};
    cgam_status status = scores ? CGAM_OK : cgam_fail_nomem(env, "scores");
    for (r.from = 0; r.from < n && status == CGAM_OK; r.from += piece) {
        int64_t m = n - r.from < piece ? n - r.from : piece;
        if (x) status = cgam_lens_scores(lens, kind, m, x + r.from * stride, stride, scores);
        if (status == CGAM_OK && each > 0)
            status = cgam_lens_scores(lens, kind, m * each, after + r.from * each * after_stride,
                                      after_stride, scores + piece * vocab);
        if (status == CGAM_OK) status = cgam_parallel(env, m, read_query, &r);
    }
    cgam_free(env, scores);
    return status;
}

/* ---- Query by query -------------------------------------------------------------------------- */
/* The sweep's answers, query by query: the model's own without and with
 * demonstrations, and those of the held-out retrieval. */

enum { WAYS = CGAM_TRIAL_WAYS };

typedef struct answered {
    int32_t *label, *token; /* [n] the best label, the best token of all */
    double *log_p;          /* [n] of the right answer's token */
} answered;

/* ---- Reading states -------------------------------------------------------------------------- */
cgam_trial_states cgam_trial_own(const cgam_trial *t, bool with)
{
    const int64_t last = (t->layers - 1) * t->d;
    const float *after = with ? t->icl_after : t->zero_after;
    return (cgam_trial_states){(with ? t->icl : t->zero) + last, after ? after + last : NULL,
                               t->layers * t->d, NULL};
}

static int64_t states_after(const cgam_trial *t)
{
    return t->answers ? t->answers->beginnings - 1 : 0;
}

cgam_status cgam_trial_sums(const cgam_trial *t, const cgam_sweep_input *in, int64_t context,
                            int64_t query_layer, double lambda, cgam_trial_states *out)
{
    int64_t rows = t->n * (1 + states_after(t));
    float *x = cgam_alloc(t->env, (size_t)(rows * t->d), sizeof *x);
    *out = (cgam_trial_states){x, x ? x + t->n * t->d : NULL, t->d, x};
    if (!x) return cgam_fail_nomem(t->env, "sums");
    cgam_status status =
        cgam_sweep_sums(t->lens, in, t->context + 2 * context * t->d, query_layer, lambda, x);
    return status;
}

/* Whole answers by their states; log_p [n, labels] or NULL. Gives *out; cgam_free. */
static cgam_status read_whole(const cgam_trial *t, cgam_lens_kind kind, const cgam_trial_states *of,
                              double *log_p, cgam_whole **out)
{
    *out = cgam_alloc(t->env, (size_t)t->n, sizeof **out);
    if (!*out) return cgam_fail_nomem(t->env, "answers");
    return cgam_answers_read(t->answers, t->lens, kind == CGAM_LENS_RAW ? kind : CGAM_LENS_NORM,
                             of->x, of->stride, of->after, of->stride, log_p, *out);
}

static cgam_status top_whole(const cgam_trial *t, cgam_lens_kind kind, const cgam_trial_states *of,
                             int32_t *label, int32_t *token, bool *first)
{
    cgam_whole *w;
    cgam_status status = read_whole(t, kind, of, NULL, &w);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        label[i] = w[i].label;
        token[i] = w[i].top;
        first[i] = w[i].greedy;
    }
    cgam_free(t->env, w);
    return status;
}

cgam_status cgam_trial_top(const cgam_trial *t, cgam_lens_kind kind, const cgam_trial_states *of,
                           int32_t *label, int32_t *token, bool *first)
{
    int64_t N = t->lens->vocab;
    const int32_t *tokens = t->task->tokens;
    if (t->answers) return top_whole(t, kind, of, label, token, first);
    float *sheet = cgam_alloc(t->env, (size_t)(t->n * N), sizeof *sheet);
    if (!sheet) return cgam_fail_nomem(t->env, "scores");
    cgam_status status = cgam_lens_scores(t->lens, kind, t->n, of->x, of->stride, sheet);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        const float *scores = sheet + i * N;
        int64_t top = cgam_scores_top(scores, N), best = -1;
        for (int64_t k = 0; k < t->labels; k++)
            if (tokens[k] >= 0 && (best < 0 || scores[tokens[k]] > scores[tokens[best]])) best = k;
        label[i] = (int32_t)best;
        token[i] = (int32_t)top;
        first[i] = t->target[i] >= 0 && top == tokens[t->target[i]];
    }
    cgam_free(t->env, sheet);
    return status;
}

static cgam_status log_p_whole(const cgam_trial *t, const cgam_trial_states *of, double *log_p)
{
    cgam_whole *w;
    cgam_status status = read_whole(t, CGAM_LENS_NORM, of, NULL, &w);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) log_p[i] = w[i].log_p;
    cgam_free(t->env, w);
    return status;
}

cgam_status cgam_trial_log_p(const cgam_trial *t, const cgam_trial_states *of, double *log_p)
{
    const cgam_lm_task *task = t->task;
    for (int64_t i = 0; i < t->n; i++) log_p[i] = (double)NAN;
    if (!cgam_lens_has_norm(t->lens)) return CGAM_OK;
    if (t->answers) return log_p_whole(t, of, log_p);
    int32_t *token;
    cgam_answer *answer;
    cgam_status status =
        cgam_alloc_all(t->env, "answers", CGAM_ARRAY(token, t->n), CGAM_ZEROS(answer, t->n));
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        token[i] = t->target[i] < 0 ? -1 : task->tokens[t->target[i]];
    if (status == CGAM_OK)
        status = cgam_lens_judge(t->lens, CGAM_LENS_NORM, t->n, of->x, of->stride, token, t->labels,
                                 task->tokens, answer);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++)
        if (token[i] >= 0) log_p[i] = answer[i].log_p;
    cgam_free_all(t->env, token, answer);
    return status;
}

/* ---- The held-out choice ---------------------------------------------------------------------- */
/* For every query, by the choice made on the other half. */
static cgam_status held_out_answers(const cgam_trial *t, const cgam_sweep_input *in,
                                    cgam_sweep_over over, int32_t *label, int32_t *token,
                                    double *log_p)
{
    cgam_sweep_best best;
    int32_t *tops;
    double *buffer;
    bool *first;
    cgam_status status = cgam_alloc_all(t->env, "answers", CGAM_ARRAY(tops, 2 * t->n),
                                        CGAM_ARRAY(buffer, t->n), CGAM_ARRAY(first, t->n));
    if (status == CGAM_OK) status = cgam_sweep_choose(t->sweep, over, 0, t->layers, NULL, &best);
    for (int h = 0; h < 2 && status == CGAM_OK; h++) {
        cgam_trial_states x = {0};
        status = cgam_trial_sums(t, in, best.half[h].context, best.half[h].query_layer,
                                 best.half[h].lambda, &x);
        if (status == CGAM_OK) status = cgam_trial_top(t, t->kind, &x, tops, tops + t->n, first);
        if (status == CGAM_OK && log_p) status = cgam_trial_log_p(t, &x, buffer);
        for (int64_t i = 1 - h; i < t->n && status == CGAM_OK; i += 2) {
            if (label) label[i] = tops[i];
            if (token) token[i] = tops[t->n + i];
            if (log_p) log_p[i] = buffer[i];
        }
        cgam_free(t->env, x.own);
    }
    cgam_free_all(t->env, tops, buffer, first);
    return status;
}

static cgam_status answer_all(const cgam_trial *t, const cgam_sweep_input *in, answered to[WAYS])
{
    cgam_lens_kind kind = !t->lens->shifted ? CGAM_LENS_GAIN : CGAM_LENS_NORM;
    bool *first = cgam_alloc(t->env, (size_t)t->n, sizeof *first);
    cgam_status status = first ? CGAM_OK : cgam_fail_nomem(t->env, "answers");
    for (int way = 0; way < 2 && status == CGAM_OK; way++) {
        cgam_trial_states own = cgam_trial_own(t, way == 1);
        status = cgam_trial_top(t, kind, &own, to[way].label, to[way].token, first);
        if (status == CGAM_OK) status = cgam_trial_log_p(t, &own, to[way].log_p);
    }
    if (status == CGAM_OK) /* each has a choice of its own */
        status = held_out_answers(t, in, CGAM_OVER_LABELS, to[2].label, NULL, NULL);
    if (status == CGAM_OK)
        status = held_out_answers(t, in, CGAM_OVER_VOCABULARY, NULL, to[2].token, to[2].log_p);
    cgam_free(t->env, first);
    return status;
}

const char cgam_trial_query_heads[] =
    "label,shots,query,counts,label_number,label_token,zero_label,zero_token,icl_label,icl_token,"
    "retrieval_label,retrieval_token,zero_right,icl_right,retrieval_right,zero_right_full,"
    "icl_right_full,retrieval_right_full,zero_log_p,icl_log_p,retrieval_log_p";

cgam_status cgam_trial_write_queries(const cgam_trial *t, const cgam_sweep_input *in)
{
    const cgam_lm_task *task = t->task;
    answered a[WAYS] = {{0}};
    cgam_status status = CGAM_OK;
    for (int way = 0; way < WAYS && status == CGAM_OK; way++)
        status = cgam_alloc_all(t->env, "answers", CGAM_ZEROS(a[way].label, t->n),
                                CGAM_ZEROS(a[way].token, t->n), CGAM_ARRAY(a[way].log_p, t->n));
    if (status == CGAM_OK) status = answer_all(t, in, a);
    for (int64_t i = 0; i < t->n && status == CGAM_OK; i++) {
        int64_t label = cgam_prompts_label(task->prompts, i);
        bool counts = t->target[i] >= 0;
        double row[20] = {(double)t->k, (double)i, counts, (double)label,
                          (double)(t->answers ? t->answers->first[label] : task->tokens[label])};
        for (int way = 0; way < WAYS; way++) {
            row[5 + 2 * way] = a[way].label[i];
            row[6 + 2 * way] = a[way].token[i];
            row[11 + way] = counts ? t->right[way][0][i] : (double)NAN;
            row[14 + way] = counts ? t->right[way][1][i] : (double)NAN;
            row[17 + way] = a[way].log_p[i];
        }
        cgam_lm_result_named(t->result, CGAM_SWEEP_QUERIES, task->eval->label[label].word, row);
    }
    for (int way = 0; way < WAYS; way++)
        cgam_free_all(t->env, a[way].label, a[way].token, a[way].log_p);
    return status;
}

/* ---- Borders --------------------------------------------------------------------------------- */
/* How much moving the borders between classes achieves without any context. */

/* The log-probabilities of whole answers at one layer. */
static cgam_status whole_scores(const cgam_trial *t, cgam_lens_kind kind, int64_t layer,
                                double *scores, int32_t *target)
{
    cgam_whole *w;
    const float *after = t->zero_after ? t->zero_after + layer * t->d : NULL;
    const cgam_trial_states of = {t->zero + layer * t->d, after, t->layers * t->d, NULL};
    cgam_status status = read_whole(t, kind, &of, scores, &w);
    for (int64_t i = 0; i < t->n; i++) target[i] = t->target[i];
    cgam_free(t->env, w);
    return status;
}

/* Zero-shot scores of the labels that can be compared, at one layer; packed [n, used]. */
static cgam_status label_scores(const cgam_trial *t, cgam_lens_kind kind, int64_t layer,
                                double *scores, int32_t *target, int64_t *of)
{
    const cgam_lm_task *task = t->task;
    int64_t used = 0;
    *of = t->labels;
    if (t->answers) return whole_scores(t, kind, layer, scores, target);
    for (int64_t k = 0; k < t->labels; k++) used += task->tokens[k] >= 0;
    for (int64_t i = 0; i < t->n; i++) {
        const float *h = t->zero + (i * t->layers + layer) * t->d;
        int64_t at = 0;
        target[i] = -1;
        for (int64_t k = 0; k < t->labels; k++) {
            if (task->tokens[k] < 0) continue;
            if (k == task->target[i]) target[i] = (int32_t)at;
            scores[i * used + at++] = cgam_lens_dot(t->lens, kind, task->tokens[k], h);
        }
    }
    *of = used;
    return CGAM_OK;
}

/* The best layer on one half with that half's means (the latest of equally good ones), counted on
 * the other half with the same means; writes the verdict on each query to `held`. right
 * [layers, n] is with the means of the other half, own of the query's own. */
static void choose_layer(const cgam_trial *t, const bool *right, const bool *own, bool *held)
{
    for (int half = 0; half < 2; half++) {
        int64_t best = 0, top = -1;
        for (int64_t l = 0; l < t->layers; l++) {
            int64_t hits = 0;
            for (int64_t i = half; i < t->n; i += 2) hits += own[l * t->n + i];
            if (hits < top) continue;
            top = hits;
            best = l;
        }
        for (int64_t i = 1 - half; i < t->n; i += 2) held[i] = right[best * t->n + i];
    }
}

/* right, own [layers, n] as above; held [n] and by_layer [layers] are work areas. */
static json_t *centred_json(const cgam_trial *t, const bool *right, const bool *own, bool *held,
                            double *by_layer)
{
    json_t *o = json_object();
    const bool *last = right + (t->layers - 1) * t->n;
    for (int64_t l = 0; l < t->layers; l++)
        by_layer[l] = cgam_trial_share(t, right + l * t->n).mean;
    choose_layer(t, right, own, held);
    cgam_share at_last = cgam_trial_share(t, last), best = cgam_trial_share(t, held);
    cgam_lm_put_share(o, "accuracy", at_last);
    cgam_lm_put_share(o, "held_out", best);
    cgam_json_put(o, "by_layer", cgam_json_reals(by_layer, t->layers, 1));
    cgam_trial_put_right(t, o, "right", last);
    cgam_trial_put_right(t, o, "held_out_right", held);
    return o;
}

static json_t *threshold_json(const cgam_trial *t, const double *bound, const double *auc)
{
    json_t *o = json_object();
    double top = 0;
    for (int64_t l = 0; l < t->layers; l++) top = fmax(top, bound[l]);
    cgam_json_add(o, "accuracy=%g auc=%g bound=%g by_layer=%p auc_by_layer=%p",
                  bound[t->layers - 1], auc[t->layers - 1], top,
                  cgam_json_reals(bound, t->layers, 1), cgam_json_reals(auc, t->layers, 1));
    return o;
}

/* Centred scores of a lens at every layer, and with two labels the result of the best border. */
static cgam_status put_border(const cgam_trial *t, cgam_lens_kind kind, const char *centred,
                              const char *threshold, json_t *baselines)
{
    cgam_env *env = t->env;
    double *scores, *gap, *bound, *auc, *by_layer;
    int32_t *target;
    bool *right, *own, *held;
    int64_t used = 0;
    cgam_status status = cgam_alloc_all(
        env, "baselines", CGAM_ARRAY(scores, t->n * t->labels), CGAM_ARRAY(gap, t->n),
        CGAM_ARRAY(target, t->n), CGAM_ZEROS(right, t->layers * t->n),
        CGAM_ZEROS(own, t->layers * t->n), CGAM_ZEROS(held, t->n), CGAM_ARRAY(bound, t->layers),
        CGAM_ARRAY(auc, t->layers), CGAM_ARRAY(by_layer, t->layers));
    for (int64_t l = 0; l < t->layers && status == CGAM_OK; l++) {
        status = label_scores(t, kind, l, scores, target, &used);
        if (status == CGAM_OK)
            status =
                cgam_baseline_centred(env, t->n, used, scores, target, false, right + l * t->n);
        if (status == CGAM_OK)
            status = cgam_baseline_centred(env, t->n, used, scores, target, true, own + l * t->n);
        if (status != CGAM_OK || used != 2 || !threshold) continue;
        for (int64_t i = 0; i < t->n; i++) gap[i] = scores[2 * i + 1] - scores[2 * i];
        auc[l] = cgam_baseline_auc(t->n, gap, target);
        status = cgam_baseline_threshold(env, t->n, gap, target, !t->opts->in_sample, &bound[l]);
    }
    if (status == CGAM_OK)
        cgam_json_put(baselines, centred, centred_json(t, right, own, held, by_layer));
    if (status == CGAM_OK && threshold)
        cgam_json_put(baselines, threshold,
                      used == 2 ? threshold_json(t, bound, auc) : json_null());
    cgam_free_all(env, scores, gap, target, right, own, held, bound, auc, by_layer);
    return status;
}

cgam_status cgam_trial_put_borders(const cgam_trial *t, json_t *baselines)
{
    cgam_status status = put_border(t, t->kind, "centred", "threshold", baselines);
    if (status == CGAM_OK && cgam_lens_has_norm(t->lens))
        status = put_border(t, CGAM_LENS_NORM, "centred_norm", NULL, baselines);
    return status;
}
