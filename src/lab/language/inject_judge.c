/* inject_judge.c: decides whether an answer is right: by its first token among all words, by the log-probability of the
 * whole answer among the task's answers, or by the text that the model writes. */
#include "lab/language/inject.h"
#include "lm/scores.h"

#include "lab/names.h"

#include <ctype.h>
#include <string.h>

CGAM_NAMES(cgam_lm_answer, cgam_lm_answer, "first", "sequence", "distinct", "generate")

void cgam_judge_close(cgam_judge *judge)
{
    if (!judge->study) return;
    cgam_answers_close(&judge->answers);
    cgam_free(judge->study->env, judge->target);
    *judge = (cgam_judge){0};
}

cgam_status cgam_judge_open(cgam_lm_study *study, cgam_lm_answer how, cgam_judge *out)
{
    cgam_lm_task *task = &study->task;
    *out = (cgam_judge){.study = study, .task = task, .how = how};
    out->target = cgam_alloc(study->env, (size_t)task->queries, sizeof *out->target);
    cgam_status status = out->target ? CGAM_OK : cgam_fail_nomem(study->env, "answers");
    if (status == CGAM_OK)
        status = how == CGAM_ANSWER_FIRST ? cgam_lm_task_label(study, task)
                                          : cgam_answers_open(study, task, how, &out->answers);
    for (int64_t i = 0; i < task->queries && status == CGAM_OK; i++) {
        out->target[i] = how == CGAM_ANSWER_FIRST ? task->target[i]
                                                  : (int32_t)cgam_prompts_label(task->prompts, i);
        out->counted += out->target[i] >= 0;
    }
    if (status == CGAM_OK && out->counted == 0)
        status =
            cgam_fail(study->env, CGAM_E_ARG,
                      "answer first: all answers share a first token with another; use distinct "
                      "or sequence");
    if (status != CGAM_OK) cgam_judge_close(out);
    return status;
}

/* ---- Comparing texts ---------------------------------------------------------------------- */
enum { ANSWER_MAX = 512, WORDS_MAX = 64 };

/* Capitals of Latin, Greek, Cyrillic and Armenian: from .. to in steps of `step`, and how far the small
 * letter is. Maps one letter to one: letters that would become two, or depend on the language, are left unchanged. */
static const struct {
    uint16_t from, to;
    int16_t step, far;
} capitals[] = {
    {'A', 'Z', 1, 32},     {0xC0, 0xD6, 1, 32},   {0xD8, 0xDE, 1, 32},   {0x100, 0x12E, 2, 1},
    {0x132, 0x136, 2, 1},  {0x139, 0x147, 2, 1},  {0x14A, 0x176, 2, 1},  {0x178, 0x178, 1, -121},
    {0x179, 0x17D, 2, 1},  {0x218, 0x21E, 2, 1},  {0x386, 0x386, 1, 38}, {0x388, 0x38A, 1, 37},
    {0x38C, 0x38C, 1, 64}, {0x38E, 0x38F, 1, 63}, {0x391, 0x3A1, 1, 32}, {0x3A3, 0x3AB, 1, 32},
    {0x400, 0x40F, 1, 80}, {0x410, 0x42F, 1, 32}, {0x460, 0x480, 2, 1},  {0x48A, 0x4BE, 2, 1},
    {0x4C1, 0x4CD, 2, 1},  {0x4D0, 0x52E, 2, 1},  {0x531, 0x556, 1, 48}, {0x1E00, 0x1E94, 2, 1},
    {0x1EA0, 0x1EFE, 2, 1}};

static unsigned lower_case(unsigned c)
{
    for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++)
        if (c >= capitals[i].from && c <= capitals[i].to &&
            (c - capitals[i].from) % (unsigned)capitals[i].step == 0)
            return (unsigned)((int)c + capitals[i].far);
    return c;
}

/* Writes the lower case of the letter at `text`, one to three bytes, to out and returns its length in bytes, which is
 * the same for both cases. Other bytes are copied. */
static size_t put_small(const char *text, char *out)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t n = t[0] < 0x80 ? 1 : t[0] >> 5 == 6 ? 2 : t[0] >> 4 == 14 ? 3 : 1;
    for (size_t k = 1; k < n; k++)
        if (t[k] >> 6 != 2) n = 1;
    unsigned c = n == 1   ? t[0]
                 : n == 2 ? (t[0] & 31U) << 6 | (t[1] & 63U)
                          : (t[0] & 15U) << 12 | (t[1] & 63U) << 6 | (t[2] & 63U);
    if (n > 1 || c < 0x80) c = lower_case(c);
    if (n == 1) out[0] = (char)c;
    for (size_t k = n; n > 1 && k-- > 0; c >>= 6)
        out[k] = (char)(k > 0 ? 0x80 | (c & 63U) : (n == 2 ? 0xC0 : 0xE0) | c);
    return n;
}

/* Lower case, without outer blanks and final stops; stores the words in word[] and returns their number. */
static int fold_words(const char *text, char out[ANSWER_MAX], const char *word[WORDS_MAX])
{
    size_t used = 0;
    while (isspace((unsigned char)*text)) text++;
    for (size_t n; *text && used + 3 < ANSWER_MAX; text += n, used += n)
        n = put_small(text, out + used);
    while (used > 0 && (isspace((unsigned char)out[used - 1]) || strchr(".,;:!?", out[used - 1])))
        used--;
    out[used] = '\0';
    int n = 0;
    for (char *at = out; *at && n < WORDS_MAX;) {
        word[n++] = at;
        at += strcspn(at, " \t\r\n");
        while (isspace((unsigned char)*at)) *at++ = '\0';
    }
    return n;
}

bool cgam_answer_same(const char *said, const char *wanted, double *f1)
{
    char text[2][ANSWER_MAX];
    const char *word[2][WORDS_MAX];
    bool used[WORDS_MAX] = {false};
    int n = fold_words(said, text[0], word[0]), m = fold_words(wanted, text[1], word[1]),
        common = 0;
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

static cgam_status read_first_tokens(void *user, const cgam_lm_span *span)
{
    const asking *a = user;
    const cgam_lm_task *task = a->judge->task;
    int32_t label = a->judge->target[a->jobs[span->which].query];
    const float *scores = span->scores + (span->count - 1) * a->judge->study->info.vocab;
    a->right[span->which] =
        label >= 0 && cgam_scores_top(scores, a->judge->study->info.vocab) == task->tokens[label];
    return CGAM_OK;
}

/* Answers against each other. A first token's log-probability is a bound on its answer's, and few
 * answers are still in question once the right one and the likeliest other are known. */
typedef struct contest {
    const cgam_judge *judge;
    const cgam_lm_capture_opts *run;
    int64_t count; /* jobs */
    const cgam_judge_job *jobs;
    double *log_p;       /* [count, labels] of the whole answer if known, else the bound */
    bool *known, *asked; /* [count, labels] */
} contest;

/* Scores whole answers or only first tokens, as requested. Jobs without requests are not run. */
static cgam_status score_candidates(contest *c, bool first)
{
    cgam_env *env = c->judge->study->env;
    int64_t labels = c->judge->task->labels, prompts = 0, n = 0;
    size_t cells = (size_t)(c->count * labels);
    cgam_lm_prompt *prompt;
    cgam_lm_edits *edits;
    cgam_lm_candidate *list;
    double *log_p;
    cgam_lm_capture_opts run = *c->run;
    cgam_status status =
        cgam_alloc_all(env, "answers", CGAM_ARRAY(prompt, c->count), CGAM_ARRAY(edits, c->count),
                       CGAM_ARRAY(list, cells), CGAM_ARRAY(log_p, cells));
    for (int64_t i = 0; i < c->count && status == CGAM_OK; i++) {
        int64_t before = n;
        for (int64_t k = 0; k < labels; k++) {
            const cgam_lm_tokens *word = &c->judge->answers.word[k];
            if (c->asked[i * labels + k])
                list[n++] = (cgam_lm_candidate){prompts, word->tokens, first ? 1 : word->count};
        }
        if (n == before) continue;
        prompt[prompts] = c->jobs[i].prompt;
        edits[prompts++] = c->jobs[i].edits;
    }
    run.edits_each = edits;
    if (status == CGAM_OK)
        status = cgam_lm_score(c->judge->study->lm, prompts, prompt, n, list, &run, log_p);
    n = 0;
    for (int64_t a = 0; a < (int64_t)cells && status == CGAM_OK; a++) {
        if (!c->asked[a]) continue;
        c->log_p[a] = log_p[n++];
        c->known[a] = !first || c->judge->answers.word[a % labels].count == 1;
        c->asked[a] = false;
    }
    cgam_free_all(env, prompt, edits, list, log_p);
    return status;
}

/* Is a known answer certainly ahead of the right one? Ties go to the lower index. */
static bool beaten(const contest *c, int64_t i)
{
    int64_t labels = c->judge->task->labels, right = c->judge->target[c->jobs[i].query];
    const double *log_p = c->log_p + i * labels;
    const bool *known = c->known + i * labels;
    for (int64_t k = 0; k < labels; k++)
        if (k != right && known[k] &&
            (log_p[k] > log_p[right] || (log_p[k] == log_p[right] && known[right] && k < right)))
            return true;
    return false;
}

/* Requests the right answer and the likeliest other, or all that may still be ahead of it. */
static void add_candidates(contest *c, int64_t i, bool all)
{
    int64_t labels = c->judge->task->labels, right = c->judge->target[c->jobs[i].query];
    int64_t other = -1;
    const double *log_p = c->log_p + i * labels;
    const bool *known = c->known + i * labels;
    bool *asked = c->asked + i * labels;
    if (right < 0 || beaten(c, i)) return;
    for (int64_t k = 0; k < labels; k++) {
        if (k == right || known[k]) continue;
        if (other < 0 || log_p[k] > log_p[other]) other = k;
        asked[k] = all && log_p[k] >= log_p[right];
    }
    if (all) return;
    asked[right] = !known[right];
    if (other >= 0) asked[other] = true;
}

static cgam_status judge_by_sequence(const cgam_judge *judge, int64_t count,
                                     const cgam_judge_job *jobs, const cgam_lm_capture_opts *run,
                                     bool *right)
{
    cgam_env *env = judge->study->env;
    size_t cells = (size_t)(count * judge->task->labels);
    contest c = {.judge = judge, .run = run, .count = count, .jobs = jobs};
    cgam_status status = cgam_alloc_all(env, "answers", CGAM_ARRAY(c.log_p, cells),
                                        CGAM_ZEROS(c.known, cells), CGAM_ARRAY(c.asked, cells));
    for (size_t a = 0; a < cells && status == CGAM_OK; a++) c.asked[a] = true;
    if (status == CGAM_OK) status = score_candidates(&c, true);
    for (int all = 0; all < 2 && status == CGAM_OK; all++) {
        for (int64_t i = 0; i < count; i++) add_candidates(&c, i, all);
        status = score_candidates(&c, false);
    }
    for (int64_t i = 0; i < count && status == CGAM_OK; i++)
        right[i] = judge->target[jobs[i].query] >= 0 && !beaten(&c, i);
    cgam_free_all(env, c.log_p, c.known, c.asked);
    return status;
}

static cgam_status judge_by_text(const cgam_judge *judge, int64_t count, const cgam_judge_job *jobs,
                                 const cgam_lm_prompt *prompts, const cgam_lm_capture_opts *run,
                                 bool *right, double *f1)
{
    enum { MORE = 4 }; /* tokens beyond the longest answer */
    static const char *const stop[] = {"\n"};
    cgam_env *env = judge->study->env;
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    o.exact = run->exact;
    o.max_tokens = judge->answers.longest + MORE;
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
            texts[i].text, judge->task->eval->label[judge->target[jobs[i].query]].word, &share);
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
    cgam_lm_prompt *prompts;
    cgam_lm_edits *edits;
    cgam_status status =
        cgam_alloc_all(env, "answers", CGAM_ARRAY(prompts, count), CGAM_ARRAY(edits, count));
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
        status = cgam_lm_observe(judge->study->lm, count, prompts, &o, read_first_tokens,
                                 &(asking){judge, jobs, right});
    } else if (status == CGAM_OK && cgam_lm_answer_whole(judge->how))
        status = judge_by_sequence(judge, count, jobs, &o.run, right);
    else if (status == CGAM_OK)
        status = judge_by_text(judge, count, jobs, prompts, &o.run, right, f1);
    cgam_free_all(env, prompts, edits);
    return status;
}
