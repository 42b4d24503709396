/* llama_stream.c: a cache of keys and values for each text, so that appending a token computes only one token. */
#include "lm/exact.h"
#include "lm/llama_decode.h"
#include "lm/stream.h"

#include <string.h>

struct cgam_stream {
    cgam_lm *lm;
    int64_t count, more;
    int64_t *length;   /* [count] tokens so far */
    float *scores;     /* [count, vocab] */
    float *states;     /* [count, width] after the last layer; NULL: not kept */
    float *made;       /* the same in the order of a batch; the plain pass alone */
    int32_t *sequence; /* [count] libllama's sequence of each text; 0 is the shared prefix */
    cgam_edit_plan plan;
    bool exact, opened; /* the engine is the plain pass; it must be closed */
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
    cgam_free_all(env, s->length, s->scores, s->states, s->made, s->sequence, s);
}

const float *cgam_stream_scores(const cgam_stream *s, int64_t i)
{
    return s->scores + i * s->lm->info.vocab;
}

const float *cgam_stream_state(const cgam_stream *s, int64_t i)
{
    return s->states + i * s->lm->info.width;
}

static void keep_state(cgam_stream *s, int64_t text, const float *state)
{
    int64_t d = s->lm->info.width;
    if (s->states) memcpy(s->states + text * d, state, (size_t)d * sizeof *state);
}

/* ---- libllama ----------------------------------------------------------------------------- */
static cgam_status copy_scores_of_piece(void *user, cgam_decoder *d)
{
    cgam_stream *s = user;
    int64_t vocab = s->lm->info.vocab;
    for (int64_t k = 0; k < d->outputs && d->wanted; k++) {
        const float *scores = cgam_decoder_scores(d, k);
        if (!scores) return cgam_fail(s->lm->env, CGAM_E_INTERNAL, "libllama returned no scores");
        int64_t text = d->row[d->from + d->output[k]].prompt;
        memcpy(s->scores + text * vocab, scores, (size_t)vocab * sizeof *scores);
        if (s->states) keep_state(s, text, d->states + k * s->lm->info.width);
    }
    return CGAM_OK;
}

/* A run of all prompts that requests each one's last token. */
static cgam_running running_of(const cgam_stream *s, const cgam_lm_prompt *prompts,
                               const cgam_lm_observe_opts *o)
{
    return (cgam_running){
        .lm = s->lm, .prompts = prompts, .count = s->count, .opts = o, .plan = &s->plan};
}

static cgam_status open_llama(cgam_stream *s, const cgam_lm_prompt *prompts)
{
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    cgam_running r = running_of(s, prompts, &o);
    /* they run together, whatever their size */
    cgam_status status = cgam_packing_new(&r, INT64_MAX, s->count, false, &r.packing);
    if (status != CGAM_OK) return status;
    const cgam_packing *p = &r.packing;
    cgam_decoder_opts d = {.capacity = p->batch_tokens,
                           .cells = p->batch_tokens + p->shared + s->count * s->more,
                           .sequences = s->count + 1,
                           .layers = &s->lm->info.layers, /* the last */
                           .layers_count = s->states ? 1 : 0,
                           .scores = true,
                           .plan = &s->plan};
    for (int64_t i = 0; i < s->count; i++) s->sequence[p->order[i]] = (int32_t)i + 1;
    s->opened = true;
    status = cgam_decoder_open(s->lm, &d, &s->decoder);
    if (status == CGAM_OK) status = cgam_llama_prefix(&r, &s->decoder, NULL, NULL);
    if (status == CGAM_OK) status = cgam_llama_batch(&r, &s->decoder, 0, copy_scores_of_piece, s);
    cgam_packing_free(s->lm->env, &r.packing);
    return status;
}

static cgam_status step_llama(cgam_stream *s, const int32_t *tokens, const bool *alive)
{
    for (int64_t i = 0; i < s->count; i++)
        if (alive[i])
            cgam_decoder_append(&s->decoder, &tokens[i], 1, s->length[i], i, s->sequence[i], 0);
    return cgam_decoder_run(&s->decoder, copy_scores_of_piece, s);
}

/* ---- The plain pass ------------------------------------------------------------------------ */
/* Runs the segments of the batch, whose prompts are texts, and keeps the scores after each. */
static cgam_status run_exact(cgam_stream *s)
{
    cgam_exact *p = &s->pass;
    cgam_status status = cgam_exact_embed(p);
    for (int64_t l = 0; l < p->s.layers && status == CGAM_OK; l++)
        status = cgam_interrupted(s->lm->env) ? CGAM_E_INTERRUPTED : cgam_exact_block(p, l);
    int64_t rows[CGAM_STREAMS_MAX], text[CGAM_STREAMS_MAX], n = 0, vocab = s->lm->info.vocab;
    for (int64_t g = 0; g < p->segments; g++) {
        if (p->segment[g].cache < 0) continue;
        text[n] = p->segment[g].prompt;
        rows[n++] = p->segment[g].begin + p->segment[g].count - 1;
    }
    if (status == CGAM_OK) status = cgam_exact_scores(p, n, rows, s->made);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++)
        keep_state(s, text[i], p->x + rows[i] * p->s.width);
    for (int64_t i = 0; i < n && status == CGAM_OK; i++)
        memcpy(s->scores + text[i] * vocab, s->made + i * vocab, (size_t)vocab * sizeof *s->scores);
    p->tokens = p->segments = 0;
    return status;
}

static cgam_status open_exact(cgam_stream *s, const cgam_lm_prompt *prompts)
{
    enum { BATCH = 256 };
    int64_t longest = 0;
    cgam_lm_observe_opts o = cgam_lm_observe_opts_default();
    cgam_running r = running_of(s, prompts, &o);
    for (int64_t i = 0; i < s->count; i++)
        longest = prompts[i].count > longest ? prompts[i].count : longest;
    cgam_status status = cgam_exact_knows(s->lm);
    if (status == CGAM_OK) status = cgam_packing_new(&r, BATCH, s->count, false, &r.packing);
    if (status != CGAM_OK) return status;
    int64_t tokens = r.packing.shared + r.packing.batch_tokens;
    s->opened = true;
    status = cgam_exact_new(&s->pass, s->lm, tokens > s->count ? tokens : s->count,
                            2 * s->count + 1, s->count, longest + s->more);
    s->pass.plan = &s->plan;
    for (int64_t b = 0; b < r.packing.batches && status == CGAM_OK; b++) {
        cgam_exact_fill(&s->pass, &r, b, true);
        status = run_exact(s);
    }
    cgam_packing_free(s->lm->env, &r.packing);
    return status;
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
    cgam_status status = cgam_alloc_all(env, "texts", CGAM_ZEROS(s->length, o->count),
                                        CGAM_ARRAY(s->scores, o->count * lm->info.vocab),
                                        CGAM_ARRAY(s->sequence, o->count));
    if (status == CGAM_OK && o->exact)
        status = cgam_alloc_all(env, "texts", CGAM_ARRAY(s->made, o->count * lm->info.vocab));
    if (status == CGAM_OK && o->states)
        status = cgam_alloc_all(env, "texts", CGAM_ARRAY(s->states, o->count * lm->info.width));
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
