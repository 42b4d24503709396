/* embed.c: v = h_T, or the mean of h_t over the tokens t of a text, where h is the residual stream after one block. */
#include "lm/embed.h"

#include "base/alloc.h"
#include "lm/model.h"

const char *const cgam_pool_words[] = {"last", "mean", NULL};

cgam_embed_opts cgam_embed_opts_default(void)
{
    return (cgam_embed_opts){.layer = -1, .pool = CGAM_POOL_MEAN};
}

typedef struct embedding {
    cgam_lm *lm;
    int64_t count, width;
    int32_t **tokens;       /* [count] */
    cgam_lm_prompt *prompt; /* [count] */
    int64_t *from;          /* [count] the first token that counts */
    int64_t *seen;          /* [count] tokens added so far */
    double *sum;            /* [count, width] */
} embedding;

static cgam_status add_span(void *user, const cgam_lm_span *span)
{
    embedding *e = user;
    double *sum = e->sum + span->which * e->width;
    for (int64_t t = 0; t < span->count; t++)
        for (int64_t j = 0; j < e->width; j++) sum[j] += (double)span->states[t * e->width + j];
    e->seen[span->which] += span->count;
    return CGAM_OK;
}

/* Tokens of text i, and where the pool begins. */
static cgam_status tokenize(embedding *e, int64_t i, const char *text, cgam_pool pool)
{
    int32_t *plain = NULL;
    int64_t with = 0, without = 0;
    cgam_status status = cgam_lm_tokenize(e->lm, text, true, &e->tokens[i], &with);
    if (status == CGAM_OK) status = cgam_lm_tokenize(e->lm, text, false, &plain, &without);
    cgam_lm_tokens_free(e->lm, plain);
    if (status == CGAM_OK && with == 0)
        status = cgam_fail(cgam_lm_env(e->lm), CGAM_E_ARG, "text %lld has no tokens", (long long)i);
    e->prompt[i] = (cgam_lm_prompt){e->tokens[i], with};
    e->from[i] = pool == CGAM_POOL_LAST          ? with - 1
                 : with > without && without > 0 ? with - without
                                                 : 0;
    return status;
}

static cgam_status run_texts(embedding *e, const cgam_embed_opts *o, int64_t layer)
{
    cgam_lm_observe_opts observe = cgam_lm_observe_opts_default();
    observe.layers = &layer;
    observe.layers_count = 1;
    if (!o->alone) {
        observe.run.progress = o->progress;
        observe.from = e->from;
        return cgam_lm_observe(e->lm, e->count, e->prompt, &observe, add_span, e);
    }
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < e->count && status == CGAM_OK; i++) {
        embedding one = *e;
        one.sum += i * e->width;
        one.seen += i;
        observe.from = e->from + i;
        status = cgam_lm_observe(e->lm, 1, e->prompt + i, &observe, add_span, &one);
        cgam_progress_count(&o->progress, "texts", i + 1, e->count, "texts");
    }
    return status;
}

cgam_status cgam_lm_embed(cgam_lm *lm, int64_t count, const char *const *texts,
                          const cgam_embed_opts *opts, float *out)
{
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    cgam_embed_opts o = opts ? *opts : cgam_embed_opts_default();
    int64_t layer = o.layer < 0 ? info.layers : o.layer;
    embedding e = {.lm = lm, .count = count, .width = info.width};
    if (layer > info.layers)
        return cgam_fail(env, CGAM_E_ARG, "layer is %lld, the model has 0 to %lld",
                         (long long)layer, (long long)info.layers);
    cgam_status status = cgam_alloc_all(
        env, "vectors of texts", CGAM_ZEROS(e.tokens, count), CGAM_ARRAY(e.prompt, count),
        CGAM_ARRAY(e.from, count), CGAM_ZEROS(e.seen, count), CGAM_ZEROS(e.sum, count * e.width));
    for (int64_t i = 0; i < count && status == CGAM_OK; i++)
        status = tokenize(&e, i, texts[i], o.pool);
    if (status == CGAM_OK) status = run_texts(&e, &o, layer);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++)
        for (int64_t k = i * e.width; k < (i + 1) * e.width; k++)
            out[k] = (float)(e.sum[k] / (double)e.seen[i]);
    for (int64_t i = 0; e.tokens && i < count; i++) cgam_lm_tokens_free(lm, e.tokens[i]);
    cgam_free_all(env, e.tokens, e.prompt, e.from, e.seen, e.sum);
    return status;
}
