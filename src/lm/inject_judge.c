/* inject_judge.c: is the answer right? By its first token among all words, by the log-probability of the
 * whole answer among the task's answers, or by what the model writes. */
#include "lm/inject.h"
#include "lm/scores.h"

#include "base/names.h"

#include <cgam/generate.h>
#include <ctype.h>
#include <string.h>

CGAM_NAMES(cgam_lm_answer, cgam_lm_answer, "first", "sequence", "generate")

void cgam_judge_close(cgam_judge *judge)
{
    if (!judge->study) return;
    cgam_env *env = judge->study->env;
    for (int64_t i = 0; judge->word && i < judge->task->labels; i++)
        cgam_lm_tokens_free(judge->study->lm, judge->word[i].tokens);
    cgam_free(env, judge->word);
    cgam_free(env, judge->target);
    *judge = (cgam_judge){0};
}

static cgam_status open_words(cgam_judge *judge)
{
    const cgam_lm_task *task = judge->task;
    judge->word = cgam_zalloc(judge->study->env, (size_t)task->labels, sizeof *judge->word);
    if (!judge->word) return cgam_fail_nomem(judge->study->env, "answers");
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < task->labels && status == CGAM_OK; i++) {
        status = cgam_lm_answer_tokens(judge->study, task->prompts,
                                       cgam_dataset_word(task->eval, i), &judge->word[i]);
        if (judge->word[i].count > judge->longest) judge->longest = judge->word[i].count;
    }
    return status;
}

cgam_status cgam_judge_open(cgam_lm_study *study, cgam_lm_answer how, cgam_judge *out)
{
    cgam_lm_task *task = &study->task;
    *out = (cgam_judge){.study = study, .task = task, .how = how};
    out->target = cgam_alloc(study->env, (size_t)task->queries, sizeof *out->target);
    cgam_status status = out->target ? CGAM_OK : cgam_fail_nomem(study->env, "answers");
    if (status == CGAM_OK)
        status = how == CGAM_ANSWER_FIRST ? cgam_lm_task_label(study, task) : open_words(out);
    for (int64_t i = 0; i < task->queries && status == CGAM_OK; i++) {
        out->target[i] = how == CGAM_ANSWER_FIRST ? task->target[i]
                                                  : (int32_t)cgam_prompts_label(task->prompts, i);
        out->counted += out->target[i] >= 0;
    }
    if (status == CGAM_OK && out->counted == 0)
        status = cgam_fail(study->env, CGAM_E_ARG,
                           "answer first: every answer begins as another one does; take sequence");
    if (status != CGAM_OK) cgam_judge_close(out);
    return status;
}

/* ---- Comparing texts ---------------------------------------------------------------------- */
enum { ANSWER_ROOM = 512, WORDS_ROOM = 64 };

/* Lower case, no outer blanks, no stops at the end; words into word[], how many comes back. */
static int fold(const char *text, char out[ANSWER_ROOM], const char *word[WORDS_ROOM])
{
    size_t used = 0;
    while (isspace((unsigned char)*text)) text++;
    for (; *text && used + 1 < ANSWER_ROOM; text++)
        out[used++] = (char)((unsigned char)*text < 0x80 ? tolower((unsigned char)*text) : *text);
    while (used > 0 && (isspace((unsigned char)out[used - 1]) || strchr(".,;:!?", out[used - 1])))
        used--;
    out[used] = '\0';
    int n = 0;
    for (char *at = out; *at && n < WORDS_ROOM;) {
        word[n++] = at;
        at += strcspn(at, " \t\r\n");
        while (isspace((unsigned char)*at)) *at++ = '\0';
    }
    return n;
}

bool cgam_answer_same(const char *said, const char *wanted, double *f1)
{
    char text[2][ANSWER_ROOM];
    const char *word[2][WORDS_ROOM];
    bool used[WORDS_ROOM] = {false};
    int n = fold(said, text[0], word[0]), m = fold(wanted, text[1], word[1]), common = 0;
    bool same = n == m;
    for (int i = 0; i < n; i++) {
        same = same && strcmp(word[0][i], word[1][i]) == 0;
        for (int j = 0; j < m; j++) {
            if (used[j] || strcmp(word[0][i], word[1][j]) != 0) continue;
            used[j] = true;
            common++;
            break;
        }
    }
    *f1 = n + m > 0 ? 2.0 * common / (n + m) : 1;
    return same;
}

/* ---- The three ways ----------------------------------------------------------------------- */
typedef struct asking {
    const cgam_judge *judge;
    const cgam_judge_job *jobs;
    bool *right;
} asking;

static cgam_status take_first(void *user, const cgam_lm_span *span)
{
    const asking *a = user;
    const cgam_lm_task *task = a->judge->task;
    int32_t label = a->judge->target[a->jobs[span->which].query];
    const float *scores = span->scores + (span->count - 1) * a->judge->study->info.vocab;
    a->right[span->which] =
        label >= 0 && cgam_scores_top(scores, a->judge->study->info.vocab) == task->tokens[label];
    return CGAM_OK;
}

static cgam_status by_sequence(const cgam_judge *judge, int64_t count, const cgam_judge_job *jobs,
                               const cgam_lm_prompt *prompts, const cgam_lm_capture_opts *run,
                               bool *right)
{
    cgam_env *env = judge->study->env;
    int64_t labels = judge->task->labels;
    cgam_lm_candidate *list = cgam_alloc(env, (size_t)(count * labels), sizeof *list);
    double *log_p = cgam_alloc(env, (size_t)(count * labels), sizeof *log_p);
    cgam_status status = list && log_p ? CGAM_OK : cgam_fail_nomem(env, "answers");
    for (int64_t c = 0; c < count * labels && status == CGAM_OK; c++)
        list[c] = (cgam_lm_candidate){c / labels, judge->word[c % labels].tokens,
                                      judge->word[c % labels].count};
    if (status == CGAM_OK)
        status = cgam_lm_score(judge->study->lm, count, prompts, count * labels, list, run, log_p);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < labels; k++)
            if (log_p[i * labels + k] > log_p[i * labels + best]) best = k;
        right[i] = best == judge->target[jobs[i].query];
    }
    cgam_free(env, list);
    cgam_free(env, log_p);
    return status;
}

static cgam_status by_text(const cgam_judge *judge, int64_t count, const cgam_judge_job *jobs,
                           const cgam_lm_prompt *prompts, const cgam_lm_capture_opts *run,
                           bool *right, double *f1)
{
    enum { MORE = 4 }; /* tokens beyond the longest answer */
    static const char *const stop[] = {"\n"};
    cgam_env *env = judge->study->env;
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    o.exact = run->exact;
    o.max_tokens = judge->longest + MORE;
    o.stop = stop;
    o.stop_count = 1;
    o.edits_each = run->edits_each;
    cgam_lm_text *texts = cgam_zalloc(env, (size_t)count, sizeof *texts);
    if (!texts) return cgam_fail_nomem(env, "answers");
    cgam_status status = cgam_lm_generate(judge->study->lm, count, prompts, &o, texts);
    if (status == CGAM_OK && cgam_interrupted(env)) /* half an answer is none */
        status = cgam_fail(env, CGAM_E_INTERRUPTED, "stopped on request");
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        double share;
        right[i] = cgam_answer_same(
            texts[i].text, cgam_dataset_word(judge->task->eval, judge->target[jobs[i].query]),
            &share);
        if (f1) f1[i] = share;
    }
    cgam_lm_texts_free(judge->study->lm, count, texts);
    cgam_free(env, texts);
    return status;
}

cgam_status cgam_judge_run(const cgam_judge *judge, int64_t count, const cgam_judge_job *jobs,
                           bool *right, double *f1)
{
    cgam_env *env = judge->study->env;
    cgam_lm_prompt *prompts = cgam_alloc(env, (size_t)count, sizeof *prompts);
    cgam_lm_edits *edits = cgam_alloc(env, (size_t)count, sizeof *edits);
    cgam_status status = prompts && edits ? CGAM_OK : cgam_fail_nomem(env, "answers");
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        prompts[i] = jobs[i].prompt;
        edits[i] = jobs[i].edits;
    }
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    o.run.exact = judge->study->exact;
    o.run.edits_each = edits;
    if (status == CGAM_OK && judge->how == CGAM_ANSWER_FIRST) {
        o.states = false;
        o.scores = true;
        status = cgam_lm_observe(judge->study->lm, count, prompts, &o, take_first,
                                 &(asking){judge, jobs, right});
    } else if (status == CGAM_OK && judge->how == CGAM_ANSWER_SEQUENCE)
        status = by_sequence(judge, count, jobs, prompts, &o.run, right);
    else if (status == CGAM_OK) status = by_text(judge, count, jobs, prompts, &o.run, right, f1);
    cgam_free(env, prompts);
    cgam_free(env, edits);
    return status;
}
