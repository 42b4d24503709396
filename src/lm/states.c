/* states.c: spans of states to their places in a file. */
#include "base/env.h"
#include "io/file.h"
#include "io/placed.h"

#include <cgam/states.h>
#include <stdio.h>

typedef struct saving {
    cgam_placed *file;
    const cgam_lm_prompt *prompts;
    int64_t layers, width;
    bool all_tokens;
} saving;

static cgam_status put(void *user, const cgam_lm_span *span)
{
    const saving *s = user;
    int64_t one = s->layers * s->width, tokens = s->prompts[span->which].count;
    if (!s->all_tokens) return cgam_placed_put(s->file, 0, span->which * one, one, span->states);
    cgam_status status = CGAM_OK;
    for (int64_t l = 0; l < s->layers && status == CGAM_OK; l++)
        status = cgam_placed_put(s->file, (int)span->which, (l * tokens + span->first) * s->width,
                                 span->count * s->width, span->states + l * span->count * s->width);
    return status;
}

/* Arrays p0, p1, ..; names [count][NAME], shapes [count][3] are the caller's. */
enum { NAME = 24 };

static cgam_status begin_all(cgam_env *env, const char *path, int64_t count, const saving *s,
                             cgam_placed **out)
{
    cgam_named_array *arrays = cgam_alloc(env, (size_t)count, sizeof *arrays);
    int64_t *shapes = cgam_alloc(env, 3 * (size_t)count, sizeof *shapes);
    char *names = cgam_alloc(env, (size_t)count, NAME);
    cgam_status status = arrays && shapes && names ? CGAM_OK : cgam_fail_nomem(env, "states");
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        int64_t *shape = shapes + 3 * i;
        snprintf(names + i * NAME, NAME, "p%lld", (long long)i);
        shape[0] = s->layers;
        shape[1] = s->prompts[i].count;
        shape[2] = s->width;
        arrays[i] = (cgam_named_array){names + i * NAME, CGAM_F32, 3, shape, NULL};
    }
    if (status == CGAM_OK) status = cgam_placed_begin(env, path, (int)count, arrays, out);
    cgam_free(env, arrays);
    cgam_free(env, shapes);
    cgam_free(env, names);
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
    saving s = {.prompts = prompts,
                .layers = o.layers ? o.layers_count : info.layers + 1,
                .width = info.width,
                .all_tokens = o.all_tokens};
    if (count < 1 || count > PROMPTS_MAX)
        return cgam_fail(env, CGAM_E_ARG, "states of %lld prompts: 1 to %d are possible",
                         (long long)count, PROMPTS_MAX);
    if (o.all_tokens && count > 1 && cgam_path_ends(path, ".npy"))
        return cgam_fail(env, CGAM_E_ARG,
                         "%s: all tokens of several prompts need a .safetensors file",
                         cgam_path_tail(path));
    const cgam_named_array last = {"states", CGAM_F32, 3,
                                   (const int64_t[]){count, s.layers, s.width}, NULL};
    cgam_status status = o.all_tokens ? begin_all(env, path, count, &s, &s.file)
                                      : cgam_placed_begin(env, path, 1, &last, &s.file);
    if (status != CGAM_OK) return status;
    status = cgam_lm_observe(lm, count, prompts, &o, put, &s);
    if (status == CGAM_OK) return cgam_placed_finish(s.file);
    cgam_placed_abandon(s.file);
    return status;
}
