/* llama_stream.c: a cache of keys and values for each text, so that a token more costs one token. */
#include "lm/exact.h"
#include "lm/llama_decode.h"
#include "lm/stream.h"

#include <string.h>

struct cgam_stream {
    cgam_lm *lm;
    int64_t count, more;
    int64_t *length; /* [count] tokens so far */
    float *scores;   /* [count, vocab] */
    cgam_edit_plan plan;
    bool exact, opened; /* which engine; whether it is to be closed */
    cgam_decoder decoder;
    cgam_exact pass;
};

void cgam_stream_close(cgam_stream *s)
{
    if (!s) return;
    cgam_env *env = s->lm->env;
    if (s->opened && s->exact) cgam_exact_free(&s->pass);
    if (s->opened && !s->exact) cgam_decoder_close(&s->decoder);
    cgam_edit_plan_clear(env, &s->plan);
    cgam_free(env, s->length);
    cgam_free(env, s->scores);
    cgam_free(env, s);
}

const float *cgam_stream_scores(const cgam_stream *s, int64_t i)
{
    return s->scores + i * s->lm->info.vocab;
}

/* ---- libllama ----------------------------------------------------------------------------- */
/* Text i is sequence i + 1; sequence 0 is what all begin with. */
static cgam_status take(void *user, cgam_decoder *d)
{
    cgam_stream *s = user;
    int64_t vocab = s->lm->info.vocab;
    for (int64_t k = 0; k < d->outputs && d->wanted; k++) {
        const float *scores = cgam_decoder_scores(d, k);
        if (!scores) return cgam_fail(s->lm->env, CGAM_E_INTERNAL, "libllama gave no scores");
        memcpy(s->scores + d->row[d->from + d->output[k]].prompt * vocab, scores,
               (size_t)vocab * sizeof *scores);
    }
    return CGAM_OK;
}

static cgam_status open_llama(cgam_stream *s, const cgam_lm_prompt *prompts)
{
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    cgam_running r = {
        .lm = s->lm, .prompts = prompts, .count = s->count, .opts = &o, .plan = &s->plan};
    cgam_packing p; /* for what all share; they go together whatever their size */
    cgam_status status = cgam_packing_new(&r, INT64_MAX, s->count, false, &p);
    if (status != CGAM_OK) return status;
    int64_t shared = p.shared;
    cgam_decoder_opts d = {.room = p.batch_tokens + shared,
                           .cells = p.batch_tokens + shared + s->count * s->more,
                           .sequences = s->count + 1,
                           .scores = true,
                           .plan = &s->plan};
    cgam_packing_free(s->lm->env, &p);
    s->opened = true;
    status = cgam_decoder_open(s->lm, &d, &s->decoder);
    if (status == CGAM_OK && shared > 0) {
        cgam_decoder_append(&s->decoder, prompts[0].tokens, shared, 0, 0, 0, INT64_MAX);
        status = cgam_decoder_run(&s->decoder, NULL, NULL);
    }
    for (int64_t i = 0; i < s->count && status == CGAM_OK; i++) {
        if (shared > 0) cgam_decoder_share(&s->decoder, 0, (int32_t)i + 1);
        cgam_decoder_append(&s->decoder, prompts[i].tokens + shared, prompts[i].count - shared,
                            shared, i, (int32_t)i + 1, prompts[i].count - 1);
    }
    return status == CGAM_OK ? cgam_decoder_run(&s->decoder, take, s) : status;
}

static cgam_status step_llama(cgam_stream *s, const int32_t *tokens, const bool *alive)
{
    for (int64_t i = 0; i < s->count; i++)
        if (alive[i])
            cgam_decoder_append(&s->decoder, &tokens[i], 1, s->length[i], i, (int32_t)i + 1, 0);
    return cgam_decoder_run(&s->decoder, take, s);
}

/* ---- The plain pass ------------------------------------------------------------------------ */
/* Runs the segments of the batch, whose prompts are texts, and keeps the scores after each. */
static cgam_status run_exact(cgam_stream *s)
{
    cgam_exact *p = &s->pass;
    cgam_status status = cgam_exact_embed(p);
    for (int64_t l = 0; l < p->s.layers && status == CGAM_OK; l++)
        status = cgam_interrupted(s->lm->env) ? CGAM_E_INTERRUPTED : cgam_exact_block(p, l);
    /* the texts of a batch follow each other where all are alive: one product then serves them */
    for (int64_t g = 0, end; g < p->segments && status == CGAM_OK; g = end) {
        int64_t rows[CGAM_STREAMS_MAX];
        for (end = g;
             end < p->segments && p->segment[end].prompt == p->segment[g].prompt + (end - g); end++)
            rows[end - g] = p->segment[end].begin + p->segment[end].count - 1;
        status = cgam_exact_scores(p, end - g, rows,
                                   s->scores + p->segment[g].prompt * s->lm->info.vocab);
    }
    p->tokens = p->segments = 0;
    return status;
}

static cgam_status open_exact(cgam_stream *s, const cgam_lm_prompt *prompts)
{
    enum { BATCH = 256 };
    int64_t longest = 0, tokens = BATCH;
    for (int64_t i = 0; i < s->count; i++)
        longest = prompts[i].count > longest ? prompts[i].count : longest;
    if (longest > tokens) tokens = longest;
    cgam_status status = cgam_exact_knows(s->lm);
    if (status != CGAM_OK) return status;
    s->opened = true;
    status = cgam_exact_new(&s->pass, s->lm, tokens, s->count, s->count, longest + s->more);
    s->pass.plan = &s->plan;
    for (int64_t i = 0; i < s->count && status == CGAM_OK; i++) {
        if (s->pass.tokens + prompts[i].count > tokens) status = run_exact(s);
        if (status != CGAM_OK) break;
        cgam_exact_append(&s->pass, prompts[i].tokens, prompts[i].count,
                          (cgam_exact_segment){.parent = -1, .cache = i, .prompt = i});
    }
    return status == CGAM_OK ? run_exact(s) : status;
}

static cgam_status step_exact(cgam_stream *s, const int32_t *tokens, const bool *alive)
{
    for (int64_t i = 0; i < s->count; i++)
        if (alive[i])
            cgam_exact_append(&s->pass, &tokens[i], 1,
                              (cgam_exact_segment){
                                  .position = s->length[i], .parent = -1, .cache = i, .prompt = i});
    return run_exact(s);
}

cgam_status cgam_stream_open(cgam_lm *lm, const cgam_stream_opts *o, cgam_stream **out)
{
    cgam_env *env = lm->env;
    *out = NULL;
    cgam_stream *s = cgam_zalloc(env, 1, sizeof *s);
    if (!s) return cgam_fail_nomem(env, "texts");
    *s = (cgam_stream){.lm = lm, .count = o->count, .more = o->more, .exact = o->exact};
    s->length = cgam_zalloc(env, (size_t)o->count, sizeof *s->length);
    s->scores = cgam_alloc(env, (size_t)(o->count * lm->info.vocab), sizeof *s->scores);
    cgam_status status = s->length && s->scores ? CGAM_OK : cgam_fail_nomem(env, "texts");
    if (status == CGAM_OK) status = cgam_prompts_check(lm, o->count, o->prompts);
    for (int64_t i = 0; i < o->count && status == CGAM_OK; i++) s->length[i] = o->prompts[i].count;
    if (status == CGAM_OK)
        status = cgam_edit_plan_make(env, &lm->info, o->count, o->prompts,
                                     (cgam_edit_reach){.more = o->more}, o->edits, o->edits_each,
                                     &s->plan);
    if (status == CGAM_OK) status = (o->exact ? open_exact : open_llama)(s, o->prompts);
    if (status == CGAM_OK) *out = s;
    else cgam_stream_close(s);
    return status;
}

cgam_status cgam_stream_step(cgam_stream *s, const int32_t *tokens, const bool *alive)
{
    cgam_status status = (s->exact ? step_exact : step_llama)(s, tokens, alive);
    for (int64_t i = 0; i < s->count && status == CGAM_OK; i++) s->length[i] += alive[i];
    return status;
}
