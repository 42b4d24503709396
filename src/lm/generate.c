/* generate.c: draws tokens, and decides when a text ends.
 *
 * p = softmax(scores / temperature), cut to the smallest set of most probable words with total probability top_p
 * (Holtzman et al. 2020). The numbers reported for a token are those of softmax(scores) itself. Text i
 * draws from stream i of the seed, so it does not depend on the texts generated beside it.
 *
 * With a gate scores are Z q + lambda A^-1 Z c / s: q is the state through the final norm, s what it is divided by there, and c the
 * context through the norm's weights. A^-1 Z c is the same at every token, so it is computed once. At alpha = 0 and for the root
 * mean square norm these are the scores of h + lambda c, to a positive factor. */
#include "base/alloc.h"
#include "base/rng.h"
#include "lm/lens.h"
#include "lm/model.h"
#include "lm/scores.h"
#include "lm/stream.h"

#include <cgam/gate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cgam_lm_stop_words[] = {"eos", "length", "word", "interrupt", NULL};

cgam_lm_generate_opts cgam_lm_generate_opts_default(void)
{
    return (cgam_lm_generate_opts){.max_tokens = 64, .top_p = 1, .gate_lambda = 1};
}

void cgam_lm_texts_free(cgam_lm *lm, int64_t count, cgam_lm_text *texts)
{
    for (int64_t i = 0; i < count && texts; i++) {
        cgam_free(cgam_lm_env(lm), texts[i].text);
        cgam_free(cgam_lm_env(lm), texts[i].tokens);
        texts[i] = (cgam_lm_text){0};
    }
}

typedef struct writing {
    cgam_lm_text *out;
    cgam_rng rng;
    size_t length, capacity; /* bytes of out->text */
    size_t told;             /* bytes already passed to `each` */
    int64_t most;            /* tokens */
    int32_t next;            /* drawn, not yet run */
    bool alive;
} writing;

typedef struct likely {
    float score;
    int32_t token;
} likely;

typedef struct generation {
    cgam_lm *lm;
    cgam_env *env;
    const cgam_lm_generate_opts *o;
    int64_t vocab;
    likely *sorted; /* [vocab] */
    const cgam_lens *lens;
    double *push;  /* [vocab] A^-1 Z c; NULL: no gate */
    double *state; /* [width] a state through the norm */
    float *gated;  /* [vocab] scores under the gate */
} generation;

/* ---- The gate ----------------------------------------------------------------------------- */
static cgam_status open_gate(generation *g)
{
    const cgam_lm_generate_opts *o = g->o;
    cgam_bank *bank = NULL;
    cgam_gate *gate = NULL;
    if (!o->gate || o->gate_lambda == 0) return CGAM_OK;
    cgam_status status = cgam_lm_lens(g->lm, &g->lens);
    if (status == CGAM_OK && !cgam_lens_has_norm(g->lens))
        status = cgam_fail(g->env, CGAM_E_UNSUPPORTED,
                           "gate: this model's scores are not those of its unembedding");
    if (status == CGAM_OK)
        status = cgam_alloc_all(g->env, "a gate", CGAM_ARRAY(g->push, g->vocab),
                                CGAM_ARRAY(g->gated, g->vocab),
                                CGAM_ARRAY(g->state, cgam_lm_describe(g->lm).width));
    if (status == CGAM_OK) status = cgam_lm_bank(g->lm, CGAM_LENS_RAW, CGAM_F32, &bank);
    if (status == CGAM_OK) status = cgam_gate_new(bank, o->gate_alpha, NULL, &gate);
    if (status == CGAM_OK) {
        cgam_lens_state(g->lens, CGAM_LENS_GAIN, o->gate, g->state);
        status = cgam_gate_solve_range(gate, g->state, g->push);
    }
    cgam_gate_free(gate);
    cgam_bank_free(bank);
    return status;
}

static const float *through_gate(const generation *g, const float *scores, const float *h)
{
    if (!g->push) return scores;
    double factor = g->o->gate_lambda / cgam_lens_state(g->lens, CGAM_LENS_NORM, h, g->state);
    for (int64_t k = 0; k < g->vocab; k++)
        g->gated[k] = (float)((double)scores[k] + factor * g->push[k]);
    return g->gated;
}

/* ---- Drawing ------------------------------------------------------------------------------ */
static int most_likely_first(const void *a, const void *b)
{
    const likely *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->token < y->token ? -1 : 1;
}

/* Divided, not times 1 / temperature, which may be infinite: 0 / temperature is then still 0. */
static double token_weight(const generation *g, float score, double top)
{
    return exp(((double)score - top) / g->o->temperature);
}

static int32_t sample_token(const generation *g, const float *scores, double top, cgam_rng *rng)
{
    double sum = 0, u = cgam_rng_uniform(rng);
    int64_t n = g->vocab;
    for (int64_t k = 0; k < n; k++) g->sorted[k] = (likely){scores[k], (int32_t)k};
    for (int64_t k = 0; k < n; k++) sum += token_weight(g, scores[k], top);
    if (g->o->top_p < 1) {
        double held = 0, all = sum;
        qsort(g->sorted, (size_t)n, sizeof *g->sorted, most_likely_first);
        for (n = 0; n < g->vocab && (n == 0 || held < g->o->top_p * all); n++)
            held += token_weight(g, g->sorted[n].score, top);
        sum = held;
    }
    double passed = 0;
    for (int64_t k = 0; k < n; k++) {
        passed += token_weight(g, g->sorted[k].score, top);
        if (u * sum < passed) return g->sorted[k].token;
    }
    return g->sorted[n - 1].token; /* rounding */
}

static cgam_status draw_token(const generation *g, const float *scores, writing *w,
                              cgam_lm_token *out)
{
    cgam_softmax all = cgam_scores_softmax(scores, g->vocab);
    if (!isfinite(all.top) || !isfinite(all.sum))
        return cgam_fail(g->env, CGAM_E_VALUE, "token %lld: a score is not finite",
                         (long long)w->out->count);
    out->id = g->o->temperature > 0 ? sample_token(g, scores, all.top, &w->rng)
                                    : (int32_t)cgam_scores_top(scores, g->vocab);
    out->log_p = cgam_scores_log_p(&all, (double)scores[out->id]);
    out->neff = exp(cgam_softmax_entropy(&all));
    return CGAM_OK;
}

/* ---- Text --------------------------------------------------------------------------------- */
static cgam_status append_piece(const generation *g, writing *w, const char *piece)
{
    size_t n = strlen(piece);
    if (w->length + n + 1 > w->capacity) {
        size_t capacity = 2 * w->capacity + n + 64;
        char *more = cgam_alloc(g->env, capacity, 1);
        if (!more) return cgam_fail_nomem(g->env, "a text");
        if (w->length > 0) memcpy(more, w->out->text, w->length);
        cgam_free(g->env, w->out->text);
        w->out->text = more;
        w->capacity = capacity;
    }
    memcpy(w->out->text + w->length, piece, n + 1);
    w->length += n;
    return CGAM_OK;
}

/* Cuts the text before the first stop word in the bytes not yet reported. Returns true if there was one. */
static bool cut_at_stop_word(const generation *g, writing *w)
{
    const char *first = NULL;
    for (int64_t i = 0; i < g->o->stop_count; i++) {
        const char *at = strstr(w->out->text + w->told, g->o->stop[i]);
        if (at && (!first || at < first)) first = at;
    }
    if (!first) return false;
    w->length = (size_t)(first - w->out->text);
    w->out->text[w->length] = '\0';
    return true;
}

/* Bytes at the end that may become a stop word or begin an incomplete character. */
static size_t unsettled_bytes(const generation *g, const writing *w)
{
    const char *end = w->out->text + w->length;
    size_t left = w->length - w->told, most = 0;
    for (int64_t i = 0; i < g->o->stop_count; i++)
        for (size_t n = strlen(g->o->stop[i]) - 1; n > most; n--)
            if (n <= left && memcmp(end - n, g->o->stop[i], n) == 0) most = n;
    for (size_t n = 1; n <= 3 && n <= left; n++) {
        unsigned char c = (unsigned char)end[-(ptrdiff_t)n];
        size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (c >= 0xc0 && whole > n && n > most) most = n;
        if (c >= 0xc0 || c < 0x80) break;
    }
    return most;
}

/* Reports the bytes that are final: all but the last `kept`. */
static cgam_status report_token(const generation *g, writing *w, int64_t which,
                                const cgam_lm_token *token, size_t kept)
{
    if (!g->o->each) return CGAM_OK;
    size_t end = w->length - kept;
    char next = w->out->text[end];
    w->out->text[end] = '\0';
    cgam_status status = g->o->each(g->o->user, which, token, w->out->text + w->told);
    w->out->text[end] = next;
    w->told = end;
    return status;
}

static cgam_status finish_text(const generation *g, writing *w, int64_t which, cgam_lm_stop stop)
{
    if (!w->alive) return CGAM_OK;
    w->alive = false;
    w->out->stop = stop;
    return report_token(g, w, which, NULL, 0);
}

/* Appends one token to a text, drawn from the scores of the next token. */
static cgam_status advance_text(const generation *g, writing *w, int64_t which, const float *scores)
{
    char piece[512];
    cgam_lm_token token;
    cgam_status status = draw_token(g, scores, w, &token);
    if (status != CGAM_OK) return status;
    if (cgam_lm_ends(g->lm, token.id)) return finish_text(g, w, which, CGAM_LM_STOP_EOS);
    w->out->tokens[w->out->count++] = token;
    w->next = token.id;
    status = append_piece(g, w, cgam_lm_piece(g->lm, token.id, piece, sizeof piece));
    if (status != CGAM_OK) return status;
    bool stopped = cut_at_stop_word(g, w);
    status = report_token(g, w, which, &token, stopped ? 0 : unsettled_bytes(g, w));
    if (status != CGAM_OK) return status;
    if (stopped) return finish_text(g, w, which, CGAM_LM_STOP_WORD);
    if (w->out->count == w->most) return finish_text(g, w, which, CGAM_LM_STOP_LENGTH);
    return CGAM_OK;
}

/* ---- Groups of texts ---------------------------------------------------------------------- */
static cgam_status write_group(const generation *g, int64_t first, const cgam_stream_opts *so,
                               writing *w)
{
    cgam_stream *stream = NULL;
    int32_t tokens[CGAM_STREAMS_MAX];
    bool alive[CGAM_STREAMS_MAX], any = true;
    cgam_status status = cgam_stream_open(g->lm, so, &stream);
    while (status == CGAM_OK && any) {
        any = false;
        for (int64_t i = 0; i < so->count && status == CGAM_OK; i++)
            if (w[i].alive)
                status = advance_text(g, &w[i], first + i,
                                      through_gate(g, cgam_stream_scores(stream, i),
                                                   g->push ? cgam_stream_state(stream, i) : NULL));
        for (int64_t i = 0; i < so->count; i++) {
            alive[i] = w[i].alive;
            tokens[i] = w[i].next;
            any = any || alive[i];
        }
        if (status == CGAM_OK && any) status = cgam_stream_step(stream, tokens, alive);
    }
    cgam_stream_close(stream);
    if (status == CGAM_E_INTERRUPTED) {
        status = CGAM_OK;
        for (int64_t i = 0; i < so->count && status == CGAM_OK; i++)
            status = finish_text(g, &w[i], first + i, CGAM_LM_STOP_INTERRUPT);
    }
    return status;
}

static cgam_status begin_text(const generation *g, int64_t which, const cgam_lm_prompt *prompt,
                              cgam_lm_text *out, writing *w)
{
    int64_t left = cgam_lm_describe(g->lm).context - prompt->count + 1; /* the last is not run */
    *w = (writing){.out = out, .rng = cgam_rng_stream(g->o->seed, (uint64_t)which), .alive = true};
    w->most = g->o->max_tokens < left ? g->o->max_tokens : left;
    if (w->most < 1) w->most = 1; /* running a prompt that is too long reports it */
    out->tokens = cgam_alloc(g->env, (size_t)w->most, sizeof *out->tokens);
    return out->tokens ? append_piece(g, w, "") : cgam_fail_nomem(g->env, "a text");
}

static cgam_status check_opts(cgam_env *env, const cgam_lm_generate_opts *o)
{
    enum { TOKENS_MAX = 1 << 20 };
    if (o->max_tokens < 1 || o->max_tokens > TOKENS_MAX)
        return cgam_fail(env, CGAM_E_ARG, "max-tokens is %lld, it must be from 1 to %d",
                         (long long)o->max_tokens, TOKENS_MAX);
    if (!(o->temperature >= 0) || !isfinite(o->temperature))
        return cgam_fail(env, CGAM_E_ARG, "temperature is %g, it must be 0 or more",
                         o->temperature);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return cgam_fail(env, CGAM_E_ARG, "top-p is %g, it must be in (0, 1]", o->top_p);
    if (!(o->gate_alpha >= 0) || !isfinite(o->gate_alpha) || !isfinite(o->gate_lambda))
        return cgam_fail(env, CGAM_E_ARG,
                         "gate: alpha is %g and lambda %g; alpha must be 0 or more, both finite",
                         o->gate_alpha, o->gate_lambda);
    for (int64_t i = 0; i < o->stop_count; i++)
        if (!o->stop[i] || !o->stop[i][0])
            return cgam_fail(env, CGAM_E_ARG, "stop: the text is empty");
    return CGAM_OK;
}

cgam_status cgam_lm_generate(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                             const cgam_lm_generate_opts *opts, cgam_lm_text *out)
{
    enum { CELLS = 16384 }; /* of one cache */
    cgam_lm_generate_opts o = opts ? *opts : cgam_lm_generate_opts_default();
    cgam_env *env = cgam_lm_env(lm);
    for (int64_t i = 0; i < count; i++) out[i] = (cgam_lm_text){0};
    generation g = {.lm = lm, .env = env, .o = &o, .vocab = cgam_lm_describe(lm).vocab};
    cgam_status status = check_opts(env, &o);
    if (status != CGAM_OK || count < 1) return status;
    int64_t longest = 1;
    writing w[CGAM_STREAMS_MAX];
    g.sorted = cgam_alloc(env, (size_t)g.vocab, sizeof *g.sorted);
    if (!g.sorted) return cgam_fail_nomem(env, "scores");
    status = open_gate(&g);
    for (int64_t i = 0; i < count; i++)
        longest = prompts[i].count > longest ? prompts[i].count : longest;
    for (int64_t first = 0, n; first < count && status == CGAM_OK; first += n) {
        int64_t more = 0;
        n = CELLS / (longest + o.max_tokens);
        if (n > CGAM_STREAMS_MAX) n = CGAM_STREAMS_MAX;
        if (n > count - first) n = count - first;
        if (n < 1) n = 1;
        for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
            status = begin_text(&g, first + i, &prompts[first + i], &out[first + i], &w[i]);
            more = w[i].most > more ? w[i].most : more;
        }
        cgam_stream_opts so = {.exact = o.exact,
                               .count = n,
                               .prompts = prompts + first,
                               .more = more,
                               .edits = o.edits,
                               .edits_each = o.edits_each ? o.edits_each + first : NULL,
                               .states = g.push != NULL};
        if (status == CGAM_OK) status = write_group(&g, first, &so, w);
    }
    cgam_free_all(env, g.sorted, g.push, g.state, g.gated);
    return status;
}
