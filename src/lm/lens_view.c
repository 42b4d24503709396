/* lens_view.c: states of all positions through the lens, one position at a time. The layers of a position are one
 * product with the unembedding; each layer is then evaluated by its own thread. */
#include "base/alloc.h"
#include "lm/lens.h"
#include "lm/scores.h"

#include <math.h>
#include <string.h>

typedef struct looking {
    const cgam_lens *lens;
    const float *scores; /* [layers, vocab] */
    const float *last;   /* [vocab] of the final distribution */
    double last_log;     /* the logarithm of its sum of exponentials */
    int64_t answer, top;
    cgam_lens_cell *cells;
    cgam_lens_word *words;
} looking;

/* The `top` largest scores, by insertion: few are kept, and most scores are below all of them. */
static void top_words(int64_t n, const float *s, int64_t top, double log_sum, cgam_lens_word *words)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        if (kept == top && s[k] <= s[words[top - 1].token]) continue;
        int64_t at = kept < top ? kept++ : top - 1;
        for (; at > 0 && s[words[at - 1].token] < s[k]; at--) words[at] = words[at - 1];
        words[at].token = (int32_t)k;
    }
    for (int64_t i = 0; i < kept; i++) words[i].p = exp((double)s[words[i].token] - log_sum);
}

static cgam_status look_layer(void *arg, int64_t l)
{
    const looking *job = arg;
    int64_t n = job->lens->vocab, rank = 0, y = job->answer;
    const float *s = job->scores + l * n;
    int64_t top = cgam_scores_top(s, n);
    if (!isfinite(s[top]))
        return cgam_fail(job->lens->env, CGAM_E_VALUE,
                         "the state after layer %lld has a score that is not finite", (long long)l);
    cgam_softmax x = cgam_scores_softmax(s, n);
    double log_sum = x.top + log(x.sum), kl = 0;
    for (int64_t k = 0; k < n; k++) {
        double f = (double)job->last[k] - job->last_log;
        kl += exp(f) * (f - ((double)s[k] - log_sum));
        rank += s[k] > s[y] || (s[k] == s[y] && k < y);
    }
    /* A sum of terms of both signs: rounding may make it negative if the two are nearly equal. */
    job->cells[l] = (cgam_lens_cell){exp(cgam_softmax_entropy(&x)), fmax(kl, 0), rank};
    top_words(n, s, job->top, log_sum, job->words + l * job->top);
    return CGAM_OK;
}

cgam_status cgam_lens_look(const cgam_lens *lens, cgam_lens_kind kind, int64_t layers,
                           const float *H, int64_t stride, int64_t top, cgam_lens_cell *cells,
                           cgam_lens_word *words)
{
    cgam_env *env = lens->env;
    int64_t n = lens->vocab;
    bool other = kind != CGAM_LENS_NORM && cgam_lens_has_norm(lens);
    if (layers < 1 || top < 1 || top > n)
        return cgam_fail(env, CGAM_E_ARG, "top is %lld, it must be from 1 to %lld", (long long)top,
                         (long long)n);
    float *scores = cgam_alloc(env, (size_t)((layers + 1) * n), sizeof *scores);
    if (!scores) return cgam_fail_nomem(env, "scores");
    float *last = scores + (other ? layers : layers - 1) * n;
    cgam_status status = cgam_lens_scores(lens, kind, layers, H, stride, scores);
    if (status == CGAM_OK && other)
        status = cgam_lens_scores(lens, CGAM_LENS_NORM, 1, H + (layers - 1) * stride, stride, last);
    if (status == CGAM_OK) {
        looking job = {.lens = lens,
                       .scores = scores,
                       .last = last,
                       .answer = cgam_scores_top(last, n),
                       .top = top,
                       .cells = cells,
                       .words = words};
        cgam_softmax x = cgam_scores_softmax(last, n);
        job.last_log = x.top + log(x.sum);
        status = cgam_parallel(env, layers, look_layer, &job);
    }
    cgam_free(env, scores);
    return status;
}

/* ---- A text ------------------------------------------------------------------------------- */
cgam_lens_view_opts cgam_lens_view_opts_default(void)
{
    return (cgam_lens_view_opts){.kind = CGAM_LENS_NORM, .top = 5};
}

void cgam_lens_view_free(cgam_env *env, cgam_lens_view *view)
{
    cgam_free_all(env, view->token, view->cells, view->words);
    *view = (cgam_lens_view){0};
}

typedef struct viewing {
    const cgam_lens *lens;
    cgam_lens_kind kind;
    cgam_lens_view *view;
} viewing;

static cgam_status look_at_span(void *user, const cgam_lm_span *span)
{
    viewing *v = user;
    int64_t L = v->view->layers, top = v->view->top, d = v->lens->width;
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < span->count && status == CGAM_OK; i++) {
        int64_t t = span->first + i;
        status = cgam_lens_look(v->lens, v->kind, L, span->states + i * d, span->count * d, top,
                                v->view->cells + t * L, v->view->words + t * L * top);
    }
    return status;
}

cgam_status cgam_lens_view_make(cgam_lm *lm, const cgam_lens *lens, const char *text,
                                const cgam_lens_view_opts *opts, cgam_lens_view *out)
{
    cgam_lens_view_opts o = opts ? *opts : cgam_lens_view_opts_default();
    cgam_env *env = cgam_lm_env(lm);
    int32_t *tokens = NULL;
    cgam_lm_prompt prompt = {0};
    *out = (cgam_lens_view){.layers = cgam_lm_describe(lm).layers + 1, .top = o.top};
    if (o.top < 1 || o.top > lens->vocab)
        return cgam_fail(env, CGAM_E_ARG, "top is %lld, it must be from 1 to %lld",
                         (long long)o.top, (long long)lens->vocab);
    cgam_status status = cgam_lm_tokenize(lm, text, true, &tokens, &prompt.count);
    if (status == CGAM_OK && prompt.count == 0)
        status = cgam_fail(env, CGAM_E_ARG, "prompt: has no tokens");
    if (status == CGAM_OK) {
        size_t n = (size_t)prompt.count, cells = n * (size_t)out->layers;
        prompt.tokens = tokens;
        out->tokens = prompt.count;
        status = cgam_alloc_all(env, "the picture", CGAM_ARRAY(out->token, n),
                                CGAM_ZEROS(out->cells, cells),
                                CGAM_ZEROS(out->words, cells * (size_t)o.top));
    }
    if (status == CGAM_OK) {
        memcpy(out->token, tokens, (size_t)prompt.count * sizeof *tokens);
        cgam_lm_observe_opts observe = cgam_lm_observe_opts_default();
        observe.all_tokens = true;
        observe.run.exact = o.exact;
        observe.run.progress = o.progress;
        status =
            cgam_lm_observe(lm, 1, &prompt, &observe, look_at_span, &(viewing){lens, o.kind, out});
    }
    cgam_lm_tokens_free(lm, tokens);
    if (status != CGAM_OK) cgam_lens_view_free(env, out);
    return status;
}
