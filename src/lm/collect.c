/* collect.c: states of prompts, from the store or from the model; and out of the store into files. */
#include "io/file.h"
#include "lm/store.h"
#include "num/cpu/widen.h"

#include <cgam/io.h>
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
    int64_t *missing; /* which are run */
    int64_t numbers;  /* of one prompt's states */
    float *out;
    void *stored; /* one prompt's states as they are stored */
    double *wide;
    bool open; /* a transaction */
    cgam_collected *report;
} collection;

/* Rounds as the store does even without a store, so that both give the same numbers. */
static cgam_status take(void *user, int64_t which, const float *states)
{
    collection *c = user;
    int64_t i = c->missing[which];
    cgam_dtype dtype = c->key.dtype;
    const void *data = states;
    if (dtype != CGAM_F32) {
        cgam_widen(CGAM_F32, states, c->numbers, c->wide);
        cgam_narrow(dtype, c->wide, c->numbers, c->stored);
        data = c->stored;
    }
    cgam_status status = CGAM_OK;
    if (c->out) cgam_store_widen(dtype, data, c->numbers, c->out + i * c->numbers);
    if (c->store && !c->open) {
        status = cgam_store_do(c->store, "BEGIN IMMEDIATE");
        c->open = status == CGAM_OK;
    }
    c->key.prompt = c->prompts[i];
    if (c->store && status == CGAM_OK)
        status = cgam_store_put(c->store, &c->key, c->texts ? c->texts[i] : NULL, c->opts->note,
                                data, (size_t)c->numbers * cgam_dtype_size(dtype));
    c->report->computed++;
    c->report->tokens += c->prompts[i].count;
    return status;
}

static cgam_status commit(void *user)
{
    collection *c = user;
    if (!c->open) return CGAM_OK;
    c->open = false;
    return cgam_store_do(c->store, "COMMIT");
}

/* Those that the store has go to out; the others are listed. Equal prompts are run once each: a
 * few more rows cost less than looking for them. */
static cgam_status look_up(collection *c, int64_t count, cgam_lm_prompt *run, int64_t *missing)
{
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        bool found = false;
        c->key.prompt = c->prompts[i];
        if (c->store)
            status = cgam_store_get(c->store, &c->key, c->numbers,
                                    c->out ? c->out + i * c->numbers : NULL, &found);
        if (found) c->report->found++;
        else {
            run[*missing] = c->prompts[i];
            c->missing[(*missing)++] = i;
        }
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
                         cgam_dtype_name(o.dtype));
    c.key = (cgam_state_key){.exact = o.capture.exact, .dtype = o.dtype, .model = ""};
    cgam_status status = store ? cgam_store_model(store, lm) : CGAM_OK;
    if (status == CGAM_OK && store) status = cgam_lm_sha256(lm, &c.key.model);
    if (status != CGAM_OK) return status;

    int64_t missing = 0;
    cgam_lm_prompt *run = cgam_alloc(env, (size_t)count, sizeof *run);
    c.missing = cgam_alloc(env, (size_t)count, sizeof *c.missing);
    c.stored = cgam_alloc(env, (size_t)c.numbers, sizeof(float));
    c.wide = cgam_alloc(env, (size_t)c.numbers, sizeof *c.wide);
    if (!run || !c.missing || !c.stored || !c.wide) status = cgam_fail_nomem(env, "states");
    if (status == CGAM_OK) status = look_up(&c, count, run, &missing);
    if (status == CGAM_OK && missing > 0) {
        double start = cgam_clock();
        o.capture.batch_end = commit;
        status = cgam_lm_capture(lm, missing, run, &o.capture, take, &c);
        c.report->seconds = cgam_clock() - start;
    }
    if (c.open) { /* the batch in flight failed */
        char message[512];
        snprintf(message, sizeof message, "%s", cgam_env_message(env));
        if (cgam_store_do(store, "ROLLBACK") != CGAM_OK || status != CGAM_OK)
            cgam_fail(env, status, "%s", message);
    }
    cgam_free(env, run);
    cgam_free(env, c.missing);
    cgam_free(env, c.stored);
    cgam_free(env, c.wide);
    return status;
}

cgam_status cgam_lm_collect_prompts(cgam_lm *lm, cgam_store *store, const cgam_prompt_file *file,
                                    const cgam_collect_opts *opts, float *out,
                                    cgam_collected *report)
{
    cgam_env *env = cgam_lm_env(lm);
    int64_t n = cgam_prompt_file_count(file), made = 0;
    cgam_lm_prompt *prompts = cgam_zalloc(env, (size_t)n, sizeof *prompts);
    const char **texts = cgam_alloc(env, (size_t)n, sizeof *texts);
    cgam_status status = prompts && texts ? CGAM_OK : cgam_fail_nomem(env, "prompts");
    for (; made < n && status == CGAM_OK; made++) {
        int32_t *tokens = NULL;
        texts[made] = cgam_prompt_file_get(file, made).text;
        status = cgam_lm_tokenize(lm, texts[made], true, &tokens, &prompts[made].count);
        prompts[made].tokens = tokens;
    }
    if (status == CGAM_OK)
        status = cgam_lm_collect(lm, store, n, prompts, texts, opts, out, report);
    for (int64_t i = 0; i < made; i++)
        cgam_lm_tokens_free(lm, (void *)(uintptr_t)prompts[i].tokens);
    cgam_free(env, prompts);
    cgam_free(env, texts);
    return status;
}

/* ---- Export ------------------------------------------------------------------------------- */
typedef struct pick {
    const cgam_store_group *wanted;
    cgam_store_group found;
    int64_t groups;
} pick;

static cgam_status match(void *user, const cgam_store_group *g)
{
    pick *p = user;
    if (p->wanted &&
        (strcmp(p->wanted->model, g->model) != 0 || strcmp(p->wanted->engine, g->engine) != 0))
        return CGAM_OK;
    p->found = *g;
    p->groups++;
    return CGAM_OK;
}

static cgam_status read_group(cgam_store *store, const cgam_store_group *g, float *states,
                              int64_t *tokens, int64_t *rows)
{
    int64_t numbers = (g->layers + 1) * g->width;
    sqlite3_stmt *ask;
    cgam_status status = cgam_store_ask(store,
                                        "SELECT data, dtype, tokens, id FROM state WHERE model = ? "
                                        "AND engine = ? ORDER BY id",
                                        &ask);
    if (status != CGAM_OK) return status;
    sqlite3_bind_text(ask, 1, g->model, -1, SQLITE_STATIC);
    sqlite3_bind_text(ask, 2, g->engine, -1, SQLITE_STATIC);
    int code = SQLITE_DONE;
    while (status == CGAM_OK && *rows < g->rows && (code = sqlite3_step(ask)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(ask, 1);
        cgam_dtype dtype = CGAM_F32;
        if (name) cgam_dtype_find(name, &dtype);
        const void *data = sqlite3_column_blob(ask, 0);
        if (!data || sqlite3_column_bytes(ask, 0) != numbers * (int64_t)cgam_dtype_size(dtype))
            status =
                cgam_fail(store->env, CGAM_E_FORMAT, "%s: row %lld has another size",
                          cgam_path_tail(store->path), (long long)sqlite3_column_int64(ask, 3));
        else cgam_store_widen(dtype, data, numbers, states + *rows * numbers);
        tokens[(*rows)++] = sqlite3_column_int64(ask, 2);
    }
    if (status == CGAM_OK && code != SQLITE_ROW && code != SQLITE_DONE)
        status = cgam_store_fail(store, code);
    sqlite3_finalize(ask);
    return status;
}

cgam_status cgam_store_export(cgam_store *store, const cgam_store_group *group, const char *path,
                              int64_t *rows)
{
    cgam_env *env = store->env;
    *rows = 0;
    pick p = {.wanted = group};
    cgam_status status = cgam_store_list(store, match, &p);
    if (status != CGAM_OK) return status;
    if (p.groups == 0)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s holds no states of that model by that engine",
                         cgam_path_tail(store->path));
    if (p.groups > 1)
        return cgam_fail(env, CGAM_E_ARG, "%s holds states of %lld models or engines; name one",
                         cgam_path_tail(store->path), (long long)p.groups);
    const cgam_store_group *g = &p.found;
    size_t numbers = (size_t)((g->layers + 1) * g->width);
    float *states = cgam_alloc(env, (size_t)g->rows * numbers, sizeof *states);
    int64_t *tokens = cgam_alloc(env, (size_t)g->rows, sizeof *tokens);
    status = states && tokens ? read_group(store, g, states, tokens, rows)
                              : cgam_fail_nomem(env, "the states of the store");
    const int64_t shape[] = {*rows, g->layers + 1, g->width};
    const cgam_named_array arrays[] = {{"states", CGAM_F32, 3, shape, states},
                                       {"tokens", CGAM_I64, 1, shape, tokens}};
    if (status == CGAM_OK)
        status = cgam_path_ends(path, ".npy")
                     ? cgam_npy_write(env, path, CGAM_F32, 3, shape, states)
                     : cgam_arrays_write(env, path, 2, arrays);
    cgam_free(env, states);
    cgam_free(env, tokens);
    return status;
}
