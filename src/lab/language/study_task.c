/* study_task.c: turns the name of a set, or files, into prompts, their states and their labels' tokens. */
#include "lab/language/study_sweep.h"
#include "lm/collect.h"
#include "lm/model.h"
#include "lm/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cgam_lm_task_close(cgam_env *env, cgam_lm_task *task)
{
    cgam_free_all(env, task->tokens, task->target);
    if (task->answers) cgam_answers_close(task->answers);
    cgam_free(env, task->answers);
    cgam_prompts_free(task->prompts);
    cgam_dataset_close(task->eval);
    cgam_dataset_close(task->train);
    *task = (cgam_lm_task){0};
}

/* ---- Data --------------------------------------------------------------------------------- */
/* Where the publishers' files are under $CGAM_DATA. */
static const struct {
    const char *name, *eval, *train;
} published[] = {{"sst2", "sst2/dev.tsv", "sst2/train.tsv"},
                 {"agnews", "agnews/test.csv", "agnews/train_part.csv"},
                 {"trec", "trec/TREC_10.label", "trec/train_5500.label"},
                 {"lama", "lama/TREx", NULL}};
enum { PUBLISHED = sizeof published / sizeof *published };

static cgam_status open_published(cgam_env *env, const cgam_lm_study_opts *opts, int which,
                                  cgam_lm_task *task)
{
    const char *folder = getenv("CGAM_DATA"), *name = published[which].name;
    const char *train = published[which].train;
    char path[1024];
    if (!folder || !folder[0])
        return cgam_fail(env, CGAM_E_NOT_FOUND,
                         "dataset %s: set CGAM_DATA to the folder that contains it", name);
    if (train) snprintf(path, sizeof path, "%s/%s", folder, published[which].eval);
    else
        snprintf(path, sizeof path, "%s/%s/%s.jsonl", folder, published[which].eval,
                 opts->relation);
    cgam_status status = cgam_dataset_open(env, name, path, opts->labels, &task->eval);
    if (status != CGAM_OK || !train) return status;
    snprintf(path, sizeof path, "%s/%s", folder, train);
    return cgam_dataset_open(env, name, path, opts->labels, &task->train);
}

static cgam_status open_data(cgam_lm_study *study, const cgam_lm_study_opts *opts)
{
    cgam_env *env = study->env;
    cgam_lm_task *task = &study->task;
    const char *name = opts->eval ? opts->eval : opts->dataset ? opts->dataset : "sentiment";
    if (opts->dataset && (opts->eval || opts->train))
        return cgam_fail(env, CGAM_E_ARG, "give dataset or eval, not both");
    if (!opts->eval && opts->train) return cgam_fail(env, CGAM_E_ARG, "train requires eval");
    bool relation = !opts->eval && strcmp(name, "lama") == 0;
    snprintf(study->name, sizeof study->name, "%.900s%s%.100s", name, relation ? "-" : "",
             relation ? opts->relation : "");
    task->name = study->name;
    if (opts->eval) {
        cgam_status status =
            cgam_dataset_open(env, opts->format, opts->eval, opts->labels, &task->eval);
        if (status == CGAM_OK && opts->train)
            status = cgam_dataset_open(env, opts->format, opts->train, opts->labels, &task->train);
        return status;
    }
    for (int i = 0; i < PUBLISHED; i++)
        if (strcmp(name, published[i].name) == 0) return open_published(env, opts, i, task);
    return cgam_dataset_shipped(env, name, opts->labels, &task->eval);
}

/* Prompts under one source, seed, kind and number of demonstrations and query are the same prompt. */
static void add_source(cgam_lm_task *task, const char *what, const char *text)
{
    size_t used = strlen(task->source);
    if (text) snprintf(task->source + used, sizeof task->source - used, ", %s%.240s", what, text);
}

static cgam_status make_prompts(const cgam_lm_study *study, int64_t queries, int64_t shots_max,
                                const char *wording, cgam_lm_task *task)
{
    cgam_prompts_opts opts = cgam_prompts_opts_default();
    opts.queries = queries;
    opts.shots_max = shots_max;
    opts.shared = study->shared;
    opts.order = study->order;
    opts.seed = study->seed;
    opts.wording = wording;
    cgam_status status =
        cgam_prompts_new(study->env, task->eval, task->train, &opts, &task->prompts);
    if (status != CGAM_OK) return status;
    task->queries = task->prompts->queries;
    task->labels = task->eval->labels;
    snprintf(task->source, sizeof task->source, "%.100s%s, %lld queries", task->name,
             study->chat ? " in chat" : "", (long long)task->queries);
    add_source(task, "demonstrations ", study->shared ? "shared" : NULL);
    add_source(task, "",
               study->order == CGAM_ORDER_BALANCED ? NULL : cgam_order_name(study->order));
    return CGAM_OK;
}

/* A template with its \n, \t and \\ made what they stand for. Gives *out; cgam_free. */
static cgam_status unescape(cgam_env *env, const char *text, char **out)
{
    char *to = *out = cgam_strdup(env, text);
    if (!to) return cgam_fail_nomem(env, "a template");
    for (const char *at = text; *at; at++) {
        if (*at == '\\') {
            const char *known = at[1] ? strchr("nt\\", at[1]) : NULL;
            if (!known) {
                cgam_free(env, *out);
                *out = NULL;
                return cgam_fail(env, CGAM_E_ARG, "template: \\%.1s is not one of \\n, \\t, \\\\",
                                 at + 1);
            }
            *to++ = "\n\t\\"[known - "nt\\"];
            at++;
        } else *to++ = *at;
    }
    *to = '\0';
    return CGAM_OK;
}

cgam_status cgam_lm_task_open(cgam_lm_study *study, const cgam_lm_study_opts *opts)
{
    char *wording = NULL;
    cgam_status status = opts->wording ? unescape(study->env, opts->wording, &wording) : CGAM_OK;
    if (status == CGAM_OK) status = open_data(study, opts);
    if (status == CGAM_OK)
        status = make_prompts(study, study->queries, study->shots[study->n_shots - 1], wording,
                              &study->task);
    cgam_free(study->env, wording);
    add_source(&study->task, "template ", opts->wording);
    add_source(&study->task, "labels ", opts->labels);
    return status;
}

cgam_status cgam_lm_task_shipped(const cgam_lm_study *study, const char *name, int64_t queries,
                                 int64_t shots_max, cgam_lm_task *out)
{
    *out = (cgam_lm_task){.name = name};
    cgam_status status = cgam_dataset_shipped(study->env, name, NULL, &out->eval);
    if (status == CGAM_OK) status = make_prompts(study, queries, shots_max, NULL, out);
    if (status != CGAM_OK) cgam_lm_task_close(study->env, out);
    return status;
}

static bool has_name(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

/* Of the sweep: countries and capitals, or sentiment where the task is open-ended itself. Of injection: capitals, or
 * antonyms where the task has to do with countries itself. */
cgam_status cgam_lm_other_task(const cgam_lm_study *study, bool inject, int64_t k,
                               cgam_lm_task *out)
{
    static const char *const countries[] = {"facts", "capitals", "currencies", "continents", NULL};
    enum { QUERIES = 40 };
    const cgam_lm_task *own = &study->task;
    const char *name = inject ? (has_name(own->name, countries) ? "antonyms" : "capitals")
                              : (own->eval->facts ? "sentiment" : "facts");
    return cgam_lm_task_shipped(study, name, own->queries < QUERIES ? own->queries : QUERIES, k,
                                out);
}

/* ---- States ------------------------------------------------------------------------------- */
typedef struct prompt_sheet {
    int64_t queries, count; /* prompts of queries, and all with what ends after them */
    char **text;
    int32_t **tokens; /* libllama's of the first, ours of the others */
    cgam_lm_prompt *prompt;
    cgam_store_place *place;
    char begun[sizeof((cgam_lm_task *)0)->source + 32]; /* what the others are called */
} prompt_sheet;

static void sheet_free(const cgam_lm_study *study, prompt_sheet *s)
{
    cgam_env *env = study->env;
    for (int64_t i = 0; i < s->count; i++) {
        if (s->text) cgam_free(env, s->text[i]);
        if (s->tokens && i < s->queries) cgam_lm_tokens_free(study->lm, s->tokens[i]);
        else if (s->tokens) cgam_free(env, s->tokens[i]);
    }
    cgam_free_all(env, s->text, s->tokens, s->prompt, s->place);
}

/* A conversation in which the assistant has answered the demonstrations. Gives *out; cgam_free. */
static cgam_status chat_text_of(const cgam_lm_study *study, const cgam_lm_task *task, int64_t query,
                                int64_t k, cgam_demos demos, char **out)
{
    cgam_env *env = study->env;
    int64_t n = 2 * k + 1;
    char **turns;
    cgam_lm_message *messages;
    *out = NULL;
    cgam_status status =
        cgam_alloc_all(env, "a chat", CGAM_ZEROS(turns, n), CGAM_ARRAY(messages, n));
    if (status == CGAM_OK) status = cgam_prompts_turns(task->prompts, query, k, demos, turns);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++)
        messages[i] = (cgam_lm_message){i % 2 ? "assistant" : "user", turns[i]};
    if (status == CGAM_OK) status = cgam_lm_chat_text(study->lm, n, messages, out);
    for (int64_t i = 0; turns && i < n; i++) cgam_free(env, turns[i]);
    cgam_free_all(env, turns, messages);
    return status;
}

/* A prompt as the model is given it, as text and tokens. Gives both; cgam_free, cgam_lm_tokens_free. */
static cgam_status prompt_text(const cgam_lm_study *study, const cgam_lm_task *task, int64_t query,
                               int64_t k, cgam_demos demos, char **text, cgam_lm_tokens *out)
{
    *out = (cgam_lm_tokens){0};
    cgam_status status = study->chat ? chat_text_of(study, task, query, k, demos, text)
                                     : cgam_prompts_text(task->prompts, query, k, demos, text);
    if (status != CGAM_OK) return status;
    return study->chat ? cgam_lm_chat_tokens(study->lm, *text, &out->tokens, &out->count)
                       : cgam_lm_tokenize(study->lm, *text, true, &out->tokens, &out->count);
}

/* Prompt s->queries + e: that of the query, with the ending. */
static cgam_status sheet_end(const cgam_lm_study *study, const cgam_lm_ending *ending, int64_t e,
                             prompt_sheet *s)
{
    cgam_env *env = study->env;
    const cgam_lm_prompt *from = &s->prompt[ending->query];
    int64_t at = s->queries + e, count = from->count + ending->count;
    size_t used = strlen(s->text[ending->query]), capacity = used + 1;
    char piece[256];
    for (int64_t k = 0; k < ending->count; k++)
        capacity += strlen(cgam_lm_piece(study->lm, ending->tokens[k], piece, sizeof piece));
    s->text[at] = cgam_alloc(env, capacity, 1);
    s->tokens[at] = cgam_alloc(env, (size_t)count, sizeof **s->tokens);
    if (!s->text[at] || !s->tokens[at]) return cgam_fail_nomem(env, "prompts");
    memcpy(s->text[at], s->text[ending->query], used + 1);
    memcpy(s->tokens[at], from->tokens, (size_t)from->count * sizeof **s->tokens);
    for (int64_t k = 0; k < ending->count; k++) {
        s->tokens[at][from->count + k] = ending->tokens[k];
        used += (size_t)snprintf(s->text[at] + used, capacity - used, "%s",
                                 cgam_lm_piece(study->lm, ending->tokens[k], piece, sizeof piece));
    }
    s->prompt[at] = (cgam_lm_prompt){.tokens = s->tokens[at], .count = count};
    s->place[at] = s->place[ending->query];
    s->place[at].source = s->begun;
    return CGAM_OK;
}

static cgam_status sheet_fill(const cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                              cgam_demos demos, int64_t endings, const cgam_lm_ending *ending,
                              prompt_sheet *s)
{
    cgam_env *env = study->env;
    int64_t n = task->queries + endings;
    *s = (prompt_sheet){.queries = task->queries, .count = n};
    cgam_status status =
        cgam_alloc_all(env, "prompts", CGAM_ZEROS(s->text, n), CGAM_ZEROS(s->tokens, n),
                       CGAM_ZEROS(s->prompt, n), CGAM_ZEROS(s->place, n));
    snprintf(s->begun, sizeof s->begun, "%s, answer begun", task->source);
    for (int64_t i = 0; i < task->queries && status == CGAM_OK; i++) {
        cgam_lm_tokens made;
        status = prompt_text(study, task, i, k, demos, &s->text[i], &made);
        s->tokens[i] = made.tokens;
        s->prompt[i] = (cgam_lm_prompt){.tokens = made.tokens, .count = made.count};
        s->place[i] = (cgam_store_place){
            .source = task->source,
            .demos = cgam_demos_name(demos),
            .label = task->eval->label[cgam_prompts_label(task->prompts, i)].word,
            .seed = (int64_t)study->seed,
            .shots = k,
            .query = i};
    }
    for (int64_t e = 0; e < endings && status == CGAM_OK; e++)
        status = sheet_end(study, &ending[e], e, s);
    return status;
}

cgam_status cgam_lm_task_tokens(const cgam_lm_study *study, const cgam_lm_task *task, int64_t query,
                                int64_t k, cgam_demos demos, cgam_lm_tokens *out)
{
    char *text;
    cgam_status status = prompt_text(study, task, query, k, demos, &text, out);
    cgam_free(study->env, text);
    return status;
}

cgam_status cgam_lm_states_work(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                                cgam_demos demos, double *tokens)
{
    prompt_sheet s;
    cgam_state_key key = {.model = "", .exact = study->exact, .dtype = study->dtype};
    int64_t numbers = (study->info.layers + 1) * study->info.width;
    *tokens = 0;
    cgam_status status = sheet_fill(study, task, k, demos, 0, NULL, &s);
    if (status == CGAM_OK && study->store) status = cgam_lm_sha256(study->lm, &key.model);
    for (int64_t i = 0; i < task->queries && status == CGAM_OK; i++) {
        bool found = false;
        key.prompt = s.prompt[i];
        if (study->store) status = cgam_store_get(study->store, &key, numbers, NULL, &found);
        if (!found) *tokens += (double)s.prompt[i].count;
    }
    sheet_free(study, &s);
    return status;
}

cgam_status cgam_lm_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                           cgam_demos demos, float **out)
{
    return cgam_lm_states_after(study, task, k, demos, 0, NULL, out);
}

cgam_status cgam_lm_states_after(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                                 cgam_demos demos, int64_t endings, const cgam_lm_ending *ending,
                                 float **out)
{
    cgam_env *env = study->env;
    size_t one = (size_t)((study->info.layers + 1) * study->info.width);
    char note[280], shots[32];
    prompt_sheet s;
    cgam_collected report = {0};
    snprintf(shots, sizeof shots, "%lld shots%s%s", (long long)k,
             demos == CGAM_DEMOS_TRUE ? "" : " ",
             demos == CGAM_DEMOS_TRUE ? "" : cgam_demos_name(demos));
    snprintf(note, sizeof note, "%.200s, %s, seed %lld", task->name, shots, (long long)study->seed);
    snprintf(study->doing, sizeof study->doing, "%.24s, %s: ", task->name, shots);
    cgam_lm_work_states(study, task, k, demos);
    cgam_status status = sheet_fill(study, task, k, demos, endings, ending, &s);
    if (out) {
        *out = status == CGAM_OK ? cgam_alloc(env, (size_t)s.count * one, sizeof **out) : NULL;
        if (status == CGAM_OK && !*out) status = cgam_fail_nomem(env, "states");
    }
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.capture.exact = study->exact;
    opts.capture.progress = study->progress;
    opts.dtype = study->dtype;
    opts.all_tokens = study->all_tokens;
    opts.note = note;
    opts.places = s.place;
    if (status == CGAM_OK)
        status = cgam_lm_collect(study->lm, study->store, s.count, s.prompt,
                                 (const char *const *)s.text, &opts, out ? *out : NULL, &report);
    cgam_lm_work_begin(study, 0);
    study->doing[0] = '\0';
    sheet_free(study, &s);
    study->collected.found += report.found;
    study->collected.computed += report.computed;
    study->collected.tokens += report.tokens;
    study->collected.seconds += report.seconds;
    if (status != CGAM_OK && out) {
        cgam_free(env, *out);
        *out = NULL;
    }
    return status;
}

cgam_status cgam_lm_shifts(cgam_lm_study *study, const cgam_lm_task *task, const float *zero,
                           int64_t k, cgam_demos demos, bool all, float **with, float *shifts)
{
    float *own = NULL;
    cgam_status status = zero ? CGAM_OK : cgam_lm_states(study, task, 0, CGAM_DEMOS_TRUE, &own);
    if (status == CGAM_OK) status = cgam_lm_states(study, task, k, demos, with);
    if (status == CGAM_OK)
        cgam_baseline_shifts(task->queries, study->info.layers + 1, study->info.width, *with,
                             zero ? zero : own, all, shifts);
    cgam_free(study->env, own);
    return status;
}

/* ---- Labels ------------------------------------------------------------------------------- */
cgam_status cgam_lm_answer_tokens(const cgam_lm_study *study, const cgam_prompts *prompts,
                                  const char *word, cgam_lm_tokens *out)
{
    const char *cue = study->chat ? "\n" : prompts->cue;
    const char *gap = study->chat ? "" : prompts->gap;
    char text[1024];
    int32_t *before = NULL, *with = NULL;
    int64_t n = 0, m = 0;
    *out = (cgam_lm_tokens){0};
    int length = snprintf(text, sizeof text, "%s%s%s", cue, gap, word);
    if (length >= (int)sizeof text)
        return cgam_fail(study->env, CGAM_E_ARG, "a label of %d characters is too long", length);
    cgam_status status = cgam_lm_tokenize(study->lm, cue, false, &before, &n);
    if (status == CGAM_OK) status = cgam_lm_tokenize(study->lm, text, false, &with, &m);
    if (status == CGAM_OK) {
        bool prefix = m > n;
        for (int64_t i = 0; i < n && prefix; i++) prefix = before[i] == with[i];
        if (prefix) {
            memmove(with, with + n, (size_t)(m - n) * sizeof *with);
            *out = (cgam_lm_tokens){with, m - n};
            with = NULL;
        } else
            status = cgam_fail(study->env, CGAM_E_ARG,
                               "the label '%s' does not begin with a separate token after '%s'",
                               word, cue);
    }
    cgam_lm_tokens_free(study->lm, before);
    cgam_lm_tokens_free(study->lm, with);
    return status;
}

cgam_status cgam_lm_task_several(const cgam_lm_study *study, const cgam_lm_task *task)
{
    if (task->labels >= 2) return CGAM_OK;
    return cgam_fail(study->env, CGAM_E_ARG, "%s has the same answer for all queries", task->name);
}

static cgam_status first_token(const cgam_lm_study *study, const cgam_prompts *prompts,
                               const char *word, int32_t *out)
{
    cgam_lm_tokens all;
    cgam_status status = cgam_lm_answer_tokens(study, prompts, word, &all);
    if (status == CGAM_OK) *out = all.tokens[0];
    cgam_lm_tokens_free(study->lm, all.tokens);
    return status;
}

static cgam_status find_tokens(const cgam_lm_study *study, cgam_lm_task *task, bool *alike)
{
    const cgam_dataset *set = task->eval;
    int32_t *tokens = task->tokens;
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < task->labels && status == CGAM_OK; i++)
        status = first_token(study, task->prompts, set->label[i].word, &tokens[i]);
    for (int64_t i = 0; i < task->labels && status == CGAM_OK; i++) {
        int32_t token = tokens[i];
        for (int64_t j = i + 1; j < task->labels && token >= 0; j++)
            if (tokens[j] == token) {
                tokens[i] = tokens[j] = -1;
                *alike = true;
            }
    }
    return status;
}

/* By all their tokens, where that was asked for, or where nothing else tells classes apart. */
static cgam_status open_answers(const cgam_lm_study *study, bool alike, cgam_lm_task *task)
{
    bool whole =
        study->answer_given ? cgam_lm_answer_whole(study->answer) : alike && !task->eval->facts;
    cgam_lm_answer how = study->answer_given ? study->answer : CGAM_ANSWER_SEQUENCE;
    if (study->answer_given && study->answer == CGAM_ANSWER_GENERATE)
        return cgam_fail(study->env, CGAM_E_ARG,
                         "answer generate: this verb scores answers and does not generate text");
    if (!whole) return CGAM_OK;
    cgam_answers *answers = cgam_zalloc(study->env, 1, sizeof *answers);
    if (!answers) return cgam_fail_nomem(study->env, "answers");
    cgam_status status = cgam_answers_open(study, task, how, answers);
    if (status == CGAM_OK) task->answers = answers;
    else cgam_free(study->env, answers);
    return status;
}

cgam_status cgam_lm_task_label(cgam_lm_study *study, cgam_lm_task *task)
{
    cgam_env *env = study->env;
    bool alike = false;
    if (task->target) return CGAM_OK;
    cgam_status status = cgam_alloc_all(env, "labels", CGAM_ARRAY(task->tokens, task->labels),
                                        CGAM_ARRAY(task->target, task->queries));
    if (status == CGAM_OK) status = find_tokens(study, task, &alike);
    for (int64_t i = 0; i < task->queries && status == CGAM_OK; i++) {
        int64_t label = cgam_prompts_label(task->prompts, i);
        task->target[i] = task->tokens[label] >= 0 ? (int32_t)label : -1;
        task->counted += task->target[i] >= 0;
    }
    if (status == CGAM_OK) status = open_answers(study, alike, task);
    if (status != CGAM_OK) {
        cgam_free_all(env, task->tokens, task->target);
        task->tokens = task->target = NULL;
        task->counted = 0;
    }
    return status;
}
