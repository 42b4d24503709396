/* collect.c: states of prompts, from the store or from the model. */
#include "lm/collect.h"
#include "base/alloc.h"
#include "io/file.h"
#include "lm/model.h"
#include "lm/placed.h"
#include "lm/prompt_file.h"
#include "lm/store.h"
#include "num/cpu/widen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cgam_collect_opts cgam_collect_opts_default(void)
{
    return (cgam_collect_opts){.capture = cgam_lm_capture_opts_default(), .dtype = CGAM_F32};
}

typedef struct collection {
    cgam_lm *lm;
    cgam_store *store;
    const cgam_collect_opts *opts;
    cgam_state_key key;
    const cgam_lm_prompt *prompts; /* all of them */
    const char *const *texts;
    int64_t *chosen; /* the prompts to run */
    bool *there;     /* [all] in the store */
    int64_t numbers; /* of one prompt's states */
    float *out;
    float *stored; /* one prompt's states, or a span of them, as they are stored */
    double *wide;
    int64_t capacity; /* numbers of either */
    float *last;      /* [L + 1, d] of the last token, where all are collected */
    bool open;        /* a transaction */
    cgam_collected *report;
} collection;

static cgam_status begin_transaction(collection *c)
{
    if (c->open) return CGAM_OK;
    cgam_status status = cgam_store_do(c->store, "BEGIN IMMEDIATE");
    c->open = status == CGAM_OK;
    return status;
}

/* Converts states to the stored type. */
static const void *narrow_states(collection *c, const float *states, int64_t numbers)
{
    if (c->key.dtype == CGAM_F32) return states;
    cgam_widen(CGAM_F32, states, numbers, c->wide);
    cgam_narrow(c->key.dtype, c->wide, numbers, c->stored);
    return c->stored;
}

/* Rounds as the store does even without a store, so that both give the same numbers. */
static cgam_status collect_states(void *user, int64_t which, const float *states)
{
    collection *c = user;
    int64_t i = c->chosen[which];
    if (c->there[i]) return CGAM_OK;
    cgam_dtype dtype = c->key.dtype;
    const void *data = narrow_states(c, states, c->numbers);
    cgam_status status = CGAM_OK;
    if (c->out) cgam_store_widen(dtype, data, c->numbers, c->out + i * c->numbers);
    if (c->store) status = begin_transaction(c);
    c->key.prompt = c->prompts[i];
    if (c->store && status == CGAM_OK)
        status = cgam_store_put(c->store, &c->key, c->texts ? c->texts[i] : NULL, c->opts->note,
                                data, (size_t)c->numbers * cgam_dtype_size(dtype));
    if (c->store && c->opts->places && status == CGAM_OK)
        status = cgam_store_put_place(c->store, &c->key, &c->opts->places[i]);
    c->report->computed++;
    c->report->tokens += c->prompts[i].count;
    return status;
}

/* For all tokens: stores each span, and with the last one the prompt's row. */
static cgam_status take_span(void *user, const cgam_lm_span *span)
{
    collection *c = user;
    int64_t i = c->chosen[span->which], numbers = c->numbers * span->count, rest;
    if (c->there[i]) return CGAM_OK;
    if (numbers > c->capacity) {
        cgam_env *env = cgam_lm_env(c->lm);
        cgam_free_all(env, c->stored, c->wide);
        cgam_status status = cgam_alloc_all(env, "states", CGAM_ARRAY(c->stored, numbers),
                                            CGAM_ARRAY(c->wide, numbers));
        if (status != CGAM_OK) return status;
        c->capacity = numbers;
    }
    c->key.prompt = c->prompts[i];
    cgam_status status = begin_transaction(c);
    if (status == CGAM_OK)
        status = cgam_store_put_span(c->store, &c->key, span->first, span->count,
                                     narrow_states(c, span->states, numbers),
                                     (size_t)numbers * cgam_dtype_size(c->key.dtype));
    rest = c->prompts[i].count - span->first - span->count;
    if (status != CGAM_OK || rest > 0) return status;
    cgam_lm_info info = cgam_lm_describe(c->lm);
    for (int64_t l = 0; l <= info.layers; l++)
        memcpy(c->last + l * info.width, span->states + ((l + 1) * span->count - 1) * info.width,
               (size_t)info.width * sizeof *c->last);
    return collect_states(c, span->which, c->last);
}

static cgam_status commit_transaction(void *user)
{
    collection *c = user;
    if (!c->open) return CGAM_OK;
    c->open = false;
    return cgam_store_do(c->store, "COMMIT");
}

/* A prompt to run. */
typedef struct pending_prompt {
    cgam_lm_prompt prompt;
    int64_t which;
} pending_prompt;

static int by_tokens(const void *a, const void *b)
{
    const pending_prompt *x = a, *y = b;
    int64_t n = x->prompt.count < y->prompt.count ? x->prompt.count : y->prompt.count, k = 0;
    while (k < n && x->prompt.tokens[k] == y->prompt.tokens[k]) k++;
    if (k < n) return x->prompt.tokens[k] < y->prompt.tokens[k] ? -1 : 1;
    if (x->prompt.count != y->prompt.count) return x->prompt.count < y->prompt.count ? -1 : 1;
    return x->which < y->which ? -1 : 1;
}

/* The prompts to run, if any are missing. Prompts with a common beginning are adjacent: what they share is computed
 * once. */
static cgam_status list_prompts(collection *c, int64_t count, bool missing_only, bool *there,
                                cgam_lm_prompt *run, int64_t *chosen)
{
    cgam_env *env = cgam_lm_env(c->lm);
    pending_prompt *all = cgam_alloc(env, (size_t)count + 1, sizeof *all);
    if (!all) return cgam_fail_nomem(env, "prompts");
    *chosen = 0;
    for (int64_t i = 0; i < count; i++)
        if (!missing_only || !c->there[i]) all[(*chosen)++] = (pending_prompt){c->prompts[i], i};
    if (*chosen > 0) qsort(all, (size_t)*chosen, sizeof *all, by_tokens);
    for (int64_t k = 0; k < *chosen; k++) {
        run[k] = all[k].prompt;
        c->chosen[k] = all[k].which;
        there[k] = c->there[all[k].which];
    }
    cgam_free(env, all);
    return CGAM_OK;
}

/* Batches must be those of a run with an empty store, so all prompts are packed, and then those batches run that miss
 * something. The plain pass rounds so little that this is done only for an interrupted run, where it costs nothing; if
 * the store has parts of batches from other runs, the missing prompts are packed alone. */
static cgam_status choose_prompts(collection *c, int64_t count, bool *there, cgam_lm_prompt *run,
                                  int64_t *chosen)
{
    cgam_lm_capture_opts o = c->opts->capture;
    bool goes_on = true;
    cgam_status status = list_prompts(c, count, false, there, run, chosen);
    o.there = there;
    if (status == CGAM_OK && o.exact)
        status = cgam_lm_capture_goes_on(c->lm, *chosen, run, &o, &goes_on);
    return status == CGAM_OK && !goes_on ? list_prompts(c, count, true, there, run, chosen)
                                         : status;
}

/* Copies those in the store to out. Equal prompts are run once each: a few more rows cost less than looking for
 * them. */
static cgam_status look_up_prompts(collection *c, int64_t count, int64_t *missing)
{
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        bool found = false;
        c->key.prompt = c->prompts[i];
        if (c->store)
            status = cgam_store_get(c->store, &c->key, c->numbers,
                                    c->out ? c->out + i * c->numbers : NULL, &found);
        if (found && c->opts->all_tokens) {
            cgam_lm_info info = cgam_lm_describe(c->lm);
            status = cgam_store_get_spans(c->store, &c->key, &info, NULL, NULL, &found);
        }
        if (status == CGAM_OK && found && c->opts->places) {
            status = begin_transaction(c);
            if (status == CGAM_OK)
                status = cgam_store_put_place(c->store, &c->key, &c->opts->places[i]);
        }
        c->there[i] = found;
        c->report->found += found;
        *missing += !found;
    }
    return status;
}

cgam_status cgam_lm_collect(cgam_lm *lm, cgam_store *store, int64_t count,
                            const cgam_lm_prompt *prompts, const char *const *texts,
                            const cgam_collect_opts *opts, float *out, cgam_collected *report)
{
    cgam_collected own;
    cgam_collect_opts o = opts ? *opts : cgam_collect_opts_default();
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    collection c = {.lm = lm,
                    .store = store,
                    .opts = &o,
                    .prompts = prompts,
                    .texts = texts,
                    .numbers = (info.layers + 1) * info.width,
                    .out = out,
                    .report = report ? report : &own};
    *c.report = (cgam_collected){0};
    if (o.dtype != CGAM_F32 && o.dtype != CGAM_F16 && o.dtype != CGAM_BF16)
        return cgam_fail(env, CGAM_E_ARG, "states are stored as f32, f16 or bf16, not %s",
                         cgam_word(cgam_dtype_words, o.dtype));
    if (store && (o.capture.edits.count > 0 || o.capture.edits_each))
        return cgam_fail(env, CGAM_E_ARG, "states computed with edits cannot be stored");
    if (o.all_tokens && !store)
        return cgam_fail(env, CGAM_E_ARG, "states of all tokens require a store");
    c.key = (cgam_state_key){.exact = o.capture.exact, .dtype = o.dtype, .model = ""};
    cgam_status status = store ? cgam_store_model(store, lm) : CGAM_OK;
    if (status == CGAM_OK && store) status = cgam_lm_sha256(lm, &c.key.model);
    if (status != CGAM_OK) return status;

    int64_t missing = 0, chosen = 0;
    cgam_lm_prompt *run;
    bool *there;
    status = cgam_alloc_all(env, "states", CGAM_ARRAY(run, count), CGAM_ARRAY(there, count),
                            CGAM_ARRAY(c.chosen, count), CGAM_ZEROS(c.there, count),
                            CGAM_ARRAY(c.stored, c.numbers), CGAM_ARRAY(c.wide, c.numbers),
                            CGAM_ARRAY(c.last, c.numbers));
    c.capacity = c.numbers;
    if (status == CGAM_OK) status = look_up_prompts(&c, count, &missing);
    if (status == CGAM_OK && missing > 0) status = choose_prompts(&c, count, there, run, &chosen);
    if (status == CGAM_OK) status = commit_transaction(&c);
    if (status == CGAM_OK && missing > 0) {
        double start = cgam_clock();
        o.capture.batch_end = commit_transaction;
        o.capture.there = there;
        cgam_lm_observe_opts all = cgam_lm_observe_opts_default();
        all.run = o.capture;
        all.all_tokens = true;
        status = o.all_tokens ? cgam_lm_observe(lm, chosen, run, &all, take_span, &c)
                              : cgam_lm_capture(lm, chosen, run, &o.capture, collect_states, &c);
        c.report->seconds = cgam_clock() - start;
    }
    if (c.open) { /* the current batch failed */
        char message[512];
        snprintf(message, sizeof message, "%s", cgam_env_message(env));
        if (cgam_store_do(store, "ROLLBACK") != CGAM_OK || status != CGAM_OK)
            cgam_fail(env, status, "%s", message);
    }
    cgam_free_all(env, run, there, c.chosen, c.there, c.stored, c.wide, c.last);
    return status;
}

cgam_status cgam_lm_collect_prompts(cgam_lm *lm, cgam_store *store, const cgam_prompt_file *file,
                                    const cgam_collect_opts *opts, float *out,
                                    cgam_collected *report)
{
    cgam_env *env = cgam_lm_env(lm);
    int64_t n = cgam_prompt_file_count(file), made = 0;
    cgam_lm_prompt *prompts;
    const char **texts;
    cgam_store_place *places;
    cgam_collect_opts o = opts ? *opts : cgam_collect_opts_default();
    cgam_status status = cgam_alloc_all(env, "prompts", CGAM_ZEROS(prompts, n),
                                        CGAM_ARRAY(texts, n), CGAM_ARRAY(places, n));
    for (; made < n && status == CGAM_OK; made++) {
        int32_t *tokens = NULL;
        cgam_prompt_line line = cgam_prompt_file_get(file, made);
        texts[made] = line.text;
        places[made] = (cgam_store_place){
            .source = o.note, .label = line.label, .seed = -1, .shots = -1, .query = made};
        const cgam_lm_message turn = {"user", texts[made]};
        status = o.chat ? cgam_lm_chat(lm, 1, &turn, &tokens, &prompts[made].count)
                        : cgam_lm_tokenize(lm, texts[made], true, &tokens, &prompts[made].count);
        prompts[made].tokens = tokens;
    }
    if (!o.places) o.places = places;
    if (status == CGAM_OK) status = cgam_lm_collect(lm, store, n, prompts, texts, &o, out, report);
    for (int64_t i = 0; i < made; i++)
        cgam_lm_tokens_free(lm, (void *)(uintptr_t)prompts[i].tokens);
    cgam_free_all(env, prompts, texts, places);
    return status;
}

/* ---- States in a file ------------------------------------------------------------------------ */
typedef struct saving {
    cgam_lm *lm;
    cgam_placed *file;
    const cgam_lm_prompt *prompts;
    const int64_t *of;            /* [layers] NULL: 1 .. L where heads are written */
    int64_t layers, width, heads; /* of a row; heads: 0 if not of heads */
    bool all_tokens;
    float *rows; /* [heads] of the tokens of a span in one block */
    int64_t capacity;
} saving;

/* What heads add, in place of what they put into the projection. */
static cgam_status project_heads(saving *s, const cgam_lm_span *span, int64_t l, const float **out)
{
    cgam_env *env = cgam_lm_env(s->lm);
    int64_t size = cgam_lm_describe(s->lm).head_size, needed = span->count * s->width;
    if (needed > s->capacity) {
        cgam_free(env, s->rows);
        s->capacity = 0;
        s->rows = cgam_alloc(env, (size_t)needed, sizeof *s->rows);
        if (!s->rows) return cgam_fail_nomem(env, "what heads add");
        s->capacity = needed;
    }
    *out = s->rows;
    return cgam_lm_heads_project(s->lm, s->of ? s->of[l] : l + 1, span->count,
                                 span->states + l * span->count * s->heads * size, s->rows);
}

static cgam_status write_span(void *user, const cgam_lm_span *span)
{
    saving *s = user;
    int64_t tokens = s->all_tokens ? s->prompts[span->which].count : 1;
    int64_t at = s->all_tokens ? span->first : span->which * s->layers;
    cgam_status status = CGAM_OK;
    for (int64_t l = 0; l < s->layers && status == CGAM_OK; l++) {
        const float *rows = span->states + l * span->count * s->width;
        if (s->heads > 0) status = project_heads(s, span, l, &rows);
        if (status == CGAM_OK)
            status = cgam_placed_put(s->file, s->all_tokens ? (int)span->which : 0,
                                     (l * tokens + at) * s->width, span->count * s->width, rows);
    }
    return status;
}

/* shape [4] = (a, b, width), or (a, b, heads, width); returns how many. */
static int shape_of(const saving *s, int64_t a, int64_t b, int64_t *shape)
{
    int n = 2;
    shape[0] = a;
    shape[1] = b;
    if (s->heads > 0) shape[n++] = s->heads;
    shape[n++] = s->heads > 0 ? s->width / s->heads : s->width;
    return n;
}

/* Arrays p0, p1, .. */
static cgam_status begin_all(cgam_env *env, const char *path, int64_t count, const saving *s,
                             cgam_placed **out)
{
    enum { NAME = 24 };
    cgam_named_array *arrays;
    int64_t *shapes;
    char(*names)[NAME];
    cgam_status status = cgam_alloc_all(env, "states", CGAM_ARRAY(arrays, count),
                                        CGAM_ARRAY(shapes, 4 * count), CGAM_ARRAY(names, count));
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t *shape = shapes + 4 * i;
        snprintf(names[i], NAME, "p%lld", (long long)i);
        arrays[i] = (cgam_named_array){
            names[i], CGAM_F32, shape_of(s, s->layers, s->prompts[i].count, shape), shape, NULL};
    }
    if (status == CGAM_OK) status = cgam_placed_begin(env, path, (int)count, arrays, out);
    cgam_free_all(env, arrays, shapes, names);
    return status;
}

cgam_status cgam_lm_states_write(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                                 const cgam_lm_observe_opts *opts, const char *path)
{
    enum { PROMPTS_MAX = 1 << 20 };
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    cgam_lm_observe_opts o = opts ? *opts : cgam_lm_observe_opts_default();
    o.states = true;
    o.scores = false;
    o.from = NULL;
    o.run.no_states = false;
    o.run.batch_end = NULL;
    int64_t shape[4], heads = o.part == CGAM_LM_HEADS ? info.heads : 0;
    saving s = {.lm = lm,
                .prompts = prompts,
                .of = o.layers,
                .layers = o.layers                     ? o.layers_count
                          : o.part == CGAM_LM_RESIDUAL ? info.layers + 1
                                                       : info.layers,
                .width = heads > 0 ? heads * info.width : info.width,
                .heads = heads,
                .all_tokens = o.all_tokens};
    if (count < 1 || count > PROMPTS_MAX)
        return cgam_fail(env, CGAM_E_ARG, "%lld prompts; their number must be from 1 to %d",
                         (long long)count, PROMPTS_MAX);
    if (o.all_tokens && count > 1 && cgam_path_ends(path, ".npy"))
        return cgam_fail(env, CGAM_E_ARG,
                         "%s: all tokens of several prompts need a .safetensors file",
                         cgam_path_tail(path));
    const cgam_named_array last = {"states", CGAM_F32, shape_of(&s, count, s.layers, shape), shape,
                                   NULL};
    cgam_status status = o.all_tokens ? begin_all(env, path, count, &s, &s.file)
                                      : cgam_placed_begin(env, path, 1, &last, &s.file);
    if (status != CGAM_OK) return status;
    status = cgam_lm_observe(lm, count, prompts, &o, write_span, &s);
    cgam_free(env, s.rows);
    if (status == CGAM_OK) return cgam_placed_finish(s.file);
    cgam_placed_abandon(s.file);
    return status;
}
