/* answers.c: answers of several tokens - what they share, their states, their probabilities. */
#include "lm/answers.h"

#include "lm/scores.h"

#include <string.h>

void cgam_answers_close(cgam_answers *answers)
{
    cgam_env *env = answers->env;
    if (!env) return;
    for (int64_t i = 0; answers->word && i < answers->labels; i++)
        cgam_lm_tokens_free(answers->lm, answers->word[i].tokens);
    void *blocks[] = {answers->word,  answers->tokens, answers->at,       answers->first,
                      answers->heads, answers->target, answers->beginning};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    *answers = (cgam_answers){0};
}

static bool same(const cgam_lm_tokens *a, const cgam_lm_tokens *b, int64_t count)
{
    return a->count >= count && b->count >= count &&
           memcmp(a->tokens, b->tokens, (size_t)count * sizeof *a->tokens) == 0;
}

static cgam_status read_words(const cgam_lm_study *study, const cgam_lm_task *task, cgam_answers *a)
{
    cgam_status status = CGAM_OK;
    a->word = cgam_zalloc(a->env, (size_t)a->labels, sizeof *a->word);
    a->first = cgam_alloc(a->env, (size_t)a->labels, sizeof *a->first);
    a->target = cgam_alloc(a->env, (size_t)a->queries, sizeof *a->target);
    a->heads = cgam_alloc(a->env, (size_t)a->labels, sizeof *a->heads);
    if (!a->word || !a->first || !a->heads || !a->target) return cgam_fail_nomem(a->env, "answers");
    for (int64_t i = 0; i < a->labels && status == CGAM_OK; i++) {
        const char *word = cgam_dataset_word(task->eval, i);
        status = cgam_lm_answer_tokens(study, task->prompts, word, &a->word[i]);
        if (status != CGAM_OK) break;
        a->first[i] = a->heads[i] = a->word[i].tokens[0];
        if (a->word[i].count > a->longest) a->longest = a->word[i].count;
        for (int64_t j = 0; j < i; j++) {
            if (a->first[j] == a->first[i]) a->heads[i] = -1;
            if (a->word[i].count == a->word[j].count &&
                same(&a->word[i], &a->word[j], a->word[i].count))
                return cgam_fail(
                    a->env, CGAM_E_ARG,
                    "the answers '%s' and '%s' are the same tokens: nothing tells them "
                    "apart",
                    cgam_dataset_word(task->eval, j), word);
        }
    }
    for (int64_t i = 0; i < a->queries && status == CGAM_OK; i++)
        a->target[i] = (int32_t)cgam_prompts_label(task->prompts, i);
    return status;
}

/* How many tokens of a label no other begins with; all of them where another goes on from there. */
static int64_t apart(const cgam_answers *a, int64_t label, const int64_t *whole)
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

static cgam_status cut(cgam_answers *a)
{
    int64_t *whole = cgam_alloc(a->env, (size_t)a->labels, sizeof *whole);
    if (!whole) return cgam_fail_nomem(a->env, "answers");
    for (int64_t i = 0; i < a->labels; i++) whole[i] = a->word[i].count;
    a->longest = 0;
    for (int64_t i = 0; i < a->labels; i++) {
        a->word[i].count = apart(a, i, whole);
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
            same(&a->word[label], &a->word[a->beginning[b].label], count))
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
    cgam_status status = read_words(study, task, a);
    if (status == CGAM_OK && how == CGAM_ANSWER_DISTINCT) status = cut(a);
    size_t cells = (size_t)(a->labels * a->longest);
    if (status == CGAM_OK) {
        a->tokens = cgam_alloc(a->env, cells, sizeof *a->tokens);
        a->at = cgam_alloc(a->env, cells, sizeof *a->at);
        a->beginning = cgam_alloc(a->env, cells + 1, sizeof *a->beginning);
        if (!a->tokens || !a->at || !a->beginning) status = cgam_fail_nomem(a->env, "answers");
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
    const int64_t room = (int64_t)6 << 30; /* bytes of states */
    *after = NULL;
    if (!answers) return cgam_lm_states(study, task, k, demos, out);
    int64_t one = (study->info.layers + 1) * study->info.width;
    int64_t each = answers->beginnings - 1, endings = answers->queries * each;
    *out = NULL;
    if ((double)(answers->queries + endings) * (double)one * sizeof **out > (double)room)
        return cgam_fail(answers->env, CGAM_E_ARG,
                         "answer sequence: %lld queries after %lld beginnings of answers have more "
                         "than 6 GB of states; take fewer queries, answer distinct or first",
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
typedef struct reading {
    const cgam_answers *answers;
    int64_t vocab, from;        /* from: the first query of the piece */
    const float *roots, *after; /* [piece, vocab] or NULL, [piece, beginnings - 1, vocab] */
    double *log_p;              /* [queries, labels] or NULL */
    cgam_whole *out;
} reading;

static const float *scores_at(const reading *r, int64_t i, int64_t beginning)
{
    int64_t each = r->answers->beginnings - 1;
    return beginning == 0 ? r->roots + i * r->vocab
                          : r->after + (i * each + beginning - 1) * r->vocab;
}

static cgam_status read_one(void *arg, int64_t i)
{
    const reading *r = arg;
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
    int64_t each = answers->beginnings - 1, n = answers->queries, vocab = cgam_lens_vocab(lens);
    int64_t piece = AT_ONCE / answers->beginnings > 0 ? AT_ONCE / answers->beginnings : 1;
    float *scores = cgam_alloc(env, (size_t)(piece * answers->beginnings * vocab), sizeof *scores);
    reading r = {.answers = answers,
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
        if (status == CGAM_OK) status = cgam_parallel(env, m, read_one, &r);
    }
    cgam_free(env, scores);
    return status;
}

cgam_sweep_answers cgam_answers_sweep(const cgam_answers *answers, const float *after)
{
    return (cgam_sweep_answers){answers->longest, answers->beginnings, answers->tokens, answers->at,
                                after};
}
