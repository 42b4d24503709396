/* trace.c: one text with a context and without it.
 *
 * With z the scores and log p = z - log sum exp z:  KL = sum p (log p - log q), in double. */
#include "base/alloc.h"
#include "lm/model.h"
#include "lm/scores.h"

#include "lab/language/trace.h"
#include <math.h>
#include <string.h>

cgam_lm_trace_opts cgam_lm_trace_opts_default(void)
{
    return (cgam_lm_trace_opts){.text = cgam_lm_generate_opts_default()};
}

void cgam_lm_trace_free(cgam_lm *lm, cgam_lm_trace *t)
{
    if (!t) return;
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_texts_free(lm, 1, &t->text);
    cgam_free_all(env, t->kl, t->neff_with, t->neff_without, t->norm, t->persistence);
    *t = (cgam_lm_trace){0};
}

typedef struct tracing {
    cgam_lm_trace *t;
    int64_t first; /* the position that predicts the first token */
    int64_t width, vocab;
    float *states; /* [layers, count, d] without the context, then the differences */
    float *scores; /* [count, vocab] without */
} tracing;

static cgam_status take_without(void *user, const cgam_lm_span *span)
{
    tracing *r = user;
    int64_t at = span->first - r->first, n = span->count;
    for (int64_t l = 0; l < r->t->layers; l++)
        memcpy(r->states + (l * r->t->count + at) * r->width, span->states + l * n * r->width,
               (size_t)(n * r->width) * sizeof *r->states);
    memcpy(r->scores + at * r->vocab, span->scores, (size_t)(n * r->vocab) * sizeof *r->scores);
    return CGAM_OK;
}

static void compare_scores(tracing *r, int64_t j, const float *with)
{
    const float *without = r->scores + j * r->vocab;
    cgam_softmax p = cgam_scores_softmax(with, r->vocab);
    cgam_softmax q = cgam_scores_softmax(without, r->vocab);
    double kl = 0;
    for (int64_t k = 0; k < r->vocab; k++) {
        double a = cgam_scores_log_p(&p, (double)with[k]);
        kl += exp(a) * (a - cgam_scores_log_p(&q, (double)without[k]));
    }
    r->t->kl[j] = fmax(kl, 0); /* rounding */
    r->t->neff_with[j] = exp(cgam_softmax_entropy(&p));
    r->t->neff_without[j] = exp(cgam_softmax_entropy(&q));
}

/* The cosine is with the difference at the first token, which came before. */
static void compare_states(tracing *r, int64_t j, int64_t layer, const float *with)
{
    float *first = r->states + layer * r->t->count * r->width, *diff = first + j * r->width;
    double square = 0, dot = 0, size = 0;
    for (int64_t i = 0; i < r->width; i++) {
        diff[i] = with[i] - diff[i];
        square += (double)diff[i] * (double)diff[i];
        dot += (double)diff[i] * (double)first[i];
        size += (double)first[i] * (double)first[i];
    }
    int64_t at = j * r->t->layers + layer;
    r->t->norm[at] = sqrt(square);
    r->t->persistence[at] =
        square > 0 && size > 0 ? dot / (sqrt(square) * sqrt(size)) : (double)NAN;
}

static cgam_status take_with(void *user, const cgam_lm_span *span)
{
    tracing *r = user;
    int64_t at = span->first - r->first;
    for (int64_t k = 0; k < span->count; k++) {
        compare_scores(r, at + k, span->scores + k * r->vocab);
        for (int64_t l = 0; l < r->t->layers; l++)
            compare_states(r, at + k, l, span->states + (l * span->count + k) * r->width);
    }
    return CGAM_OK;
}

/* Runs a prompt and the text after it, from the position that predicts its first token. */
static cgam_status observe_text(cgam_lm *lm, tracing *r, const cgam_lm_prompt *prompt,
                                const cgam_lm_trace_opts *o, cgam_lm_edits edits,
                                cgam_lm_span_sink sink)
{
    cgam_env *env = cgam_lm_env(lm);
    int64_t n = prompt->count,
            length = n + r->t->count - 1; /* the last token predicts none of it */
    int32_t *tokens = cgam_alloc(env, (size_t)length, sizeof *tokens);
    if (!tokens) return cgam_fail_nomem(env, "a trace");
    memcpy(tokens, prompt->tokens, (size_t)n * sizeof *tokens);
    for (int64_t k = 0; k + 1 < r->t->count; k++) tokens[n + k] = r->t->text.tokens[k].id;
    r->first = n - 1;
    cgam_lm_observe_opts oo = cgam_lm_observe_opts_default();
    oo.run.exact = o->text.exact;
    oo.run.progress = o->progress;
    oo.run.edits = edits;
    oo.scores = true;
    oo.from = &r->first;
    oo.prompt_tokens = &n;
    cgam_status status = cgam_lm_observe(lm, 1, &(cgam_lm_prompt){tokens, length}, &oo, sink, r);
    cgam_free(env, tokens);
    return status;
}

static cgam_status compare_runs(cgam_lm *lm, const cgam_lm_prompt *with,
                                const cgam_lm_prompt *without, const cgam_lm_trace_opts *o,
                                cgam_lm_trace *t)
{
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_info info = cgam_lm_describe(lm);
    size_t n = (size_t)t->count, cells = n * (size_t)t->layers;
    tracing r = {.t = t, .width = info.width, .vocab = info.vocab};
    cgam_status status = cgam_alloc_all(
        env, "a trace", CGAM_ARRAY(t->kl, n), CGAM_ARRAY(t->neff_with, n),
        CGAM_ARRAY(t->neff_without, n), CGAM_ARRAY(t->norm, cells),
        CGAM_ARRAY(t->persistence, cells), CGAM_ARRAY(r.states, cells * (size_t)info.width),
        CGAM_ARRAY(r.scores, n * (size_t)info.vocab));
    if (status == CGAM_OK)
        status = observe_text(lm, &r, without, o, (cgam_lm_edits){0}, take_without);
    if (status == CGAM_OK) status = observe_text(lm, &r, with, o, o->text.edits, take_with);
    cgam_free_all(env, r.states, r.scores);
    return status;
}

cgam_status cgam_lm_trace_make(cgam_lm *lm, const cgam_lm_prompt *with,
                               const cgam_lm_prompt *without, const cgam_lm_trace_opts *opts,
                               cgam_lm_trace *out)
{
    cgam_env *env = cgam_lm_env(lm);
    cgam_lm_trace_opts o = opts ? *opts : cgam_lm_trace_opts_default();
    *out = (cgam_lm_trace){.layers = cgam_lm_describe(lm).layers + 1};
    if (o.text.edits_each)
        return cgam_fail(env, CGAM_E_ARG,
                         "trace has one text, so edits_each must be NULL; use edits");
    cgam_status status = cgam_lm_generate(lm, 1, with, &o.text, &out->text);
    out->count = out->text.count;
    if (status == CGAM_OK && out->text.stop == CGAM_LM_STOP_INTERRUPT) status = CGAM_E_INTERRUPTED;
    if (status == CGAM_OK && out->count > 0) status = compare_runs(lm, with, without, &o, out);
    if (status != CGAM_OK) cgam_lm_trace_free(lm, out);
    return status;
}
