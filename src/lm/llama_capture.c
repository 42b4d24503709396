/* llama_capture.c: the residual stream at every layer, as libllama computes it.
 *
 * libllama shows each tensor of its graph to a callback before and after it is computed. We ask
 * for `embd` and `l_out-k` and copy the rows of the tokens that end a prompt. In the last block it
 * computes those rows alone, so a tensor has either a row per token of the batch, or one per prompt.
 *
 * Prompts of a batch are sequences 1, 2, ... of one cache; what all prompts begin with is computed
 * once as sequence 0, and the others are told that those cells are theirs as well. A batch is decoded
 * a piece at a time, and what a piece has finished is handed over at once. Cells are the same as in
 * one go; numbers are to rounding, and where weights are quantised within what lm.h says of batches.
 *
 * libllama aborts when it is asked for more than it was set up for, so every number is checked
 * here first. */
#include "lm/llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEQUENCES_MAX = 128, /* libllama's limit is 256; more bring nothing */
    PIECE = 64 /* tokens of one decode: some seconds on a slow machine, a stop is sooner */
};

cgam_lm_capture_opts cgam_lm_capture_opts_default(void)
{
    return (cgam_lm_capture_opts){.exact = false};
}

/* ---- Packing ------------------------------------------------------------------------------ */
typedef struct sized {
    int64_t which, tokens;
} sized;

static int longest_first(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->tokens != y->tokens) return x->tokens < y->tokens ? 1 : -1;
    return x->which < y->which ? -1 : 1;
}

/* How many tokens all prompts begin with; each keeps at least one of its own. */
static int64_t shared_prefix(int64_t count, const cgam_lm_prompt *prompts)
{
    int64_t shared = prompts[0].count - 1;
    for (int64_t i = 1; i < count; i++) {
        int64_t k = 0, most = prompts[i].count - 1 < shared ? prompts[i].count - 1 : shared;
        while (k < most && prompts[i].tokens[k] == prompts[0].tokens[k]) k++;
        shared = k;
    }
    return count > 1 ? shared : 0;
}

void cgam_packing_free(cgam_env *env, cgam_packing *packing)
{
    cgam_free(env, packing->order);
    cgam_free(env, packing->first);
    *packing = (cgam_packing){0};
}

cgam_status cgam_packing_new(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts, bool share,
                             int64_t tokens_max, int64_t prompts_max, cgam_packing *out)
{
    enum { WORTH_SHARING = 4 };
    cgam_env *env = lm->env;
    *out = (cgam_packing){0};
    for (int64_t i = 0; i < count; i++) {
        if (prompts[i].count < 1)
            return cgam_fail(env, CGAM_E_ARG, "prompt %lld has no tokens", (long long)i);
        if (prompts[i].count > lm->info.context)
            return cgam_fail(
                env, CGAM_E_ARG, "prompt %lld has %lld tokens, the model's context is %lld",
                (long long)i, (long long)prompts[i].count, (long long)lm->info.context);
        for (int64_t k = 0; k < prompts[i].count; k++)
            if (prompts[i].tokens[k] < 0 || prompts[i].tokens[k] >= lm->info.vocab)
                return cgam_fail(env, CGAM_E_ARG, "prompt %lld: token %d is not one of %lld",
                                 (long long)i, prompts[i].tokens[k], (long long)lm->info.vocab);
    }
    if (share && count > 0) out->shared = shared_prefix(count, prompts);
    if (out->shared < WORTH_SHARING) out->shared = 0;
    out->order = cgam_alloc(env, (size_t)count, sizeof *out->order);
    out->first = cgam_alloc(env, (size_t)count + 1, sizeof *out->first);
    sized *left = cgam_alloc(env, (size_t)count, sizeof *left);
    if (!out->order || !out->first || !left) {
        cgam_free(env, left);
        cgam_packing_free(env, out);
        return cgam_fail_nomem(env, "the order of the prompts");
    }
    for (int64_t i = 0; i < count; i++) {
        left[i] = (sized){i, prompts[i].count - out->shared};
        out->tokens += left[i].tokens;
    }
    out->tokens += out->shared;
    if (count > 0) qsort(left, (size_t)count, sizeof *left, longest_first);
    /* The longest that is left opens a batch, even when it is larger than that; whatever still
     * fits follows, longest first. */
    int64_t placed = 0, remaining = count;
    while (remaining > 0) {
        int64_t used = 0, taken = 0, kept = 0;
        out->first[out->batches++] = placed;
        for (int64_t i = 0; i < remaining; i++) {
            if (taken == 0 || (used + left[i].tokens <= tokens_max && taken < prompts_max)) {
                used += left[i].tokens;
                taken++;
                out->order[placed++] = left[i].which;
            } else {
                left[kept++] = left[i];
            }
        }
        remaining = kept;
        if (used > out->batch_tokens) out->batch_tokens = used;
        if (taken > out->batch_prompts) out->batch_prompts = taken;
    }
    out->first[out->batches] = placed;
    cgam_free(env, left);
    return CGAM_OK;
}

/* ---- Running ------------------------------------------------------------------------------ */
typedef struct watcher {
    cgam_lm *lm;
    int64_t tokens, prompts; /* of the batch in flight; prompts 0: nothing is wanted */
    const int64_t *ends;     /* [prompts] where each one's last token is */
    float *states;           /* [prompts, L + 1, d] */
    float *normed;           /* [d] of the first prompt, from libllama's final norm */
    bool *shown;             /* [L + 1] which layers came by */
    int64_t layers_seen;
    bool has_norm;
    cgam_status status;
} watcher;

/* The layer a tensor shows, L + 1 for the final norm, -1 for none. The embedding is shown again by
 * models that scale it or add positions to it, and the last word counts. */
static int64_t layer_of(const watcher *w, const char *name)
{
    static const char *const embeddings[] = {"embd", "inp_embd", "inp_scaled", "inpL"};
    for (size_t i = 0; i < sizeof embeddings / sizeof *embeddings; i++)
        if (strcmp(name, embeddings[i]) == 0) return 0;
    if (strcmp(name, "result_norm") == 0) return w->lm->info.layers + 1;
    if (strncmp(name, "l_out-", 6) != 0) return -1;
    char *end;
    long k = strtol(name + 6, &end, 10);
    return *end == '\0' && k >= 0 && k < w->lm->info.layers ? k + 1 : -1;
}

static bool watch(struct ggml_tensor *t, bool ask, void *user)
{
    watcher *w = user;
    int64_t d = w->lm->info.width, L = w->lm->info.layers, layer = layer_of(w, t->name);
    if (layer < 0 || w->prompts == 0) return !ask;
    if (ask) return true;
    bool all = t->ne[1] == w->tokens, last = t->ne[1] == w->prompts;
    if (t->type != GGML_TYPE_F32 || t->ne[0] != d || t->ne[2] != 1 || t->ne[3] != 1 ||
        (!all && !last)) {
        w->status = cgam_fail(w->lm->env, CGAM_E_UNSUPPORTED,
                              "libllama's %s is %lld x %lld for %lld tokens of %lld prompts",
                              t->name, (long long)t->ne[0], (long long)t->ne[1],
                              (long long)w->tokens, (long long)w->prompts);
        return false;
    }
    int64_t wanted = layer > L ? 1 : w->prompts;
    for (int64_t i = 0; i < wanted; i++) {
        /* A batch of prompts of one token each has as many of the ones as of the others. */
        int64_t row = all ? w->ends[i] : i;
        float *to = layer > L ? w->normed : w->states + (i * (L + 1) + layer) * d;
        w->lm->f->ggml_backend_tensor_get(t, to, (size_t)row * t->nb[1], (size_t)d * sizeof *to);
    }
    if (layer > L) w->has_norm = true;
    else if (!w->shown[layer]) {
        w->shown[layer] = true;
        w->layers_seen++;
    }
    return true;
}

/* libllama's own final norm of the first prompt, against ours of its last layer: the same tensor,
 * the same token. 1e-3 leaves room for how it sums. */
static cgam_status check_norm(const watcher *w, const float *gain, const float *bias,
                              cgam_lm_norm norm)
{
    int64_t d = w->lm->info.width;
    const float *h = w->states + w->lm->info.layers * d;
    double sum = 0, square = 0, off = 0, size = 0;
    for (int64_t j = 0; j < d; j++) sum += (double)h[j];
    double m = norm.centred ? sum / (double)d : 0;
    for (int64_t j = 0; j < d; j++) square += ((double)h[j] - m) * ((double)h[j] - m);
    double factor = 1 / sqrt(square / (double)d + norm.epsilon);
    for (int64_t j = 0; j < d; j++) {
        double want = ((double)h[j] - m) * factor * (double)gain[j] + (double)bias[j];
        double delta = (double)w->normed[j] - want;
        off += delta * delta;
        size += want * want;
    }
    if (sqrt(off) <= 1e-3 * sqrt(size)) return CGAM_OK;
    return cgam_fail(
        w->lm->env, CGAM_E_UNSUPPORTED,
        "the last layer of this %s model is not what its final norm reads: off by %.3g "
        "of it",
        w->lm->info.architecture, sqrt(off / size));
}

typedef struct run {
    cgam_lm *lm;
    struct llama_context *context;
    watcher seen;
    llama_token *token; /* the batch, [room] each */
    llama_pos *pos;
    int32_t *n_seq;
    llama_seq_id *seq, **seq_at;
    int8_t *logits;
    int64_t *ends;
    float *gain, *bias; /* final norm; NULL when it is of another kind */
    cgam_lm_norm norm;
} run;

static void run_free(run *r)
{
    cgam_env *env = r->lm->env;
    if (r->context) r->lm->f->llama_free(r->context);
    void *blocks[] = {r->token, r->pos,  r->n_seq, r->seq,         r->seq_at,      r->logits,
                      r->ends,  r->gain, r->bias,  r->seen.states, r->seen.normed, r->seen.shown};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
}

/* Asked by libllama after every product. */
static bool stop(void *env) { return cgam_interrupted(env); }

static cgam_status run_new(run *r, cgam_lm *lm, int64_t room, int64_t cells, int64_t prompts,
                           bool states)
{
    cgam_env *env = lm->env;
    const cgam_llama *f = lm->f;
    size_t n = (size_t)room, d = (size_t)lm->info.width;
    *r = (run){.lm = lm};
    r->token = cgam_alloc(env, n, sizeof *r->token);
    r->pos = cgam_alloc(env, n, sizeof *r->pos);
    r->n_seq = cgam_alloc(env, n, sizeof *r->n_seq);
    r->seq = cgam_alloc(env, n, sizeof *r->seq);
    r->seq_at = cgam_alloc(env, n, sizeof *r->seq_at);
    r->logits = cgam_alloc(env, n, sizeof *r->logits);
    r->ends = cgam_alloc(env, (size_t)prompts, sizeof *r->ends);
    r->gain = cgam_alloc(env, d, sizeof *r->gain);
    r->bias = cgam_alloc(env, d, sizeof *r->bias);
    r->seen.normed = cgam_alloc(env, d, sizeof *r->seen.normed);
    r->seen.shown = cgam_zalloc(env, (size_t)lm->info.layers + 1, sizeof *r->seen.shown);
    r->seen.states = cgam_alloc(env, (size_t)prompts * (size_t)(lm->info.layers + 1) * d,
                                sizeof *r->seen.states);
    if (!r->token || !r->pos || !r->n_seq || !r->seq || !r->seq_at || !r->logits || !r->ends ||
        !r->gain || !r->bias || !r->seen.normed || !r->seen.shown || !r->seen.states)
        return cgam_fail_nomem(env, "a batch of prompts");
    if (cgam_lm_final_norm(lm, r->gain, r->bias, &r->norm) != CGAM_OK) {
        cgam_free(env, r->gain);
        r->gain = NULL;
    }
    r->seen.lm = lm;

    struct llama_context_params p = f->llama_context_default_params();
    /* It aborts on more sequences than tokens in a batch: prompts of one token each would be that. */
    int64_t least = prompts + 1;
    p.n_ctx = (uint32_t)(cells > least ? cells : least);
    p.n_batch = p.n_ubatch = (uint32_t)(PIECE > least ? PIECE : least);
    p.n_seq_max = (uint32_t)least;
    p.n_threads = p.n_threads_batch = cgam_env_threads(env);
    p.kv_unified = true; /* tokens then stay in our order, and copying a prefix is free */
    p.type_k = p.type_v = GGML_TYPE_F32;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    p.no_perf = true;
    p.abort_callback = stop;
    p.abort_callback_data = env;
    if (states) {
        p.cb_eval = watch;
        p.cb_eval_user_data = &r->seen;
    }
    cgam_llama_complaint_reset();
    r->context = f->llama_init_from_model(lm->model, p);
    return r->context
               ? CGAM_OK
               : cgam_fail(env, CGAM_E_INTERNAL, "libllama gives no context of %lld tokens: %s",
                           (long long)cells, cgam_llama_complaint());
}

/* Appends tokens [from, to) as sequence `seq`. */
static int64_t append(run *r, int64_t at, const cgam_lm_prompt *prompt, int64_t from, int64_t to,
                      int32_t seq)
{
    for (int64_t k = from; k < to; k++, at++) {
        r->token[at] = prompt->tokens[k];
        r->pos[at] = (llama_pos)k;
        r->n_seq[at] = 1;
        r->seq[at] = seq;
        r->seq_at[at] = &r->seq[at];
        r->logits[at] = 0;
    }
    return at;
}

/* Tokens [from, from + tokens) of the batch. */
static cgam_status decode(run *r, int64_t from, int64_t tokens)
{
    struct llama_batch batch = {.n_tokens = (int32_t)tokens,
                                .token = r->token + from,
                                .pos = r->pos + from,
                                .n_seq_id = r->n_seq + from,
                                .seq_id = r->seq_at + from,
                                .logits = r->logits + from};
    if (cgam_interrupted(r->lm->env)) return CGAM_E_INTERRUPTED;
    /* libllama wants an output in every batch of some models */
    if (r->seen.prompts == 0) r->logits[from + tokens - 1] = 1;
    r->seen.tokens = tokens;
    r->seen.layers_seen = 0;
    memset(r->seen.shown, 0, (size_t)r->lm->info.layers + 1);
    r->seen.has_norm = false;
    r->seen.status = CGAM_OK;
    cgam_llama_complaint_reset();
    int32_t code = r->lm->f->llama_decode(r->context, batch);
    if (r->seen.status != CGAM_OK) return r->seen.status;
    if (code != 0 && cgam_interrupted(r->lm->env)) return CGAM_E_INTERRUPTED;
    if (code != 0)
        return cgam_fail(r->lm->env, CGAM_E_INTERNAL, "libllama: decoding %lld tokens gave %d: %s",
                         (long long)tokens, code, cgam_llama_complaint());
    return CGAM_OK;
}

/* What all prompts begin with. */
static cgam_status decode_prefix(run *r, const cgam_lm_prompt *prompt, int64_t shared)
{
    cgam_status status = CGAM_OK;
    r->seen.prompts = 0;
    for (int64_t from = 0; from < shared && status == CGAM_OK; from += PIECE) {
        int64_t n = shared - from < PIECE ? shared - from : PIECE;
        append(r, 0, prompt, from, from + n, 0);
        status = decode(r, 0, n);
    }
    return status;
}

/* Where the states of a batch go. */
typedef struct handing {
    const cgam_packing *packing;
    const cgam_lm_capture_opts *opts;
    cgam_lm_sink sink;
    void *user;
    int64_t done; /* tokens */
} handing;

/* Of the prompts that ended in a piece, which [ended]. */
static cgam_status hand_over(run *r, handing *h, int64_t ended, const int64_t *which)
{
    const cgam_lm_info *info = &r->lm->info;
    int64_t states = r->seen.prompts;
    cgam_status status = CGAM_OK;
    if (states > 0 && r->seen.layers_seen != info->layers + 1)
        status = cgam_fail(
            r->lm->env, CGAM_E_UNSUPPORTED, "libllama showed %lld of %lld layers of this %s model",
            (long long)r->seen.layers_seen, (long long)info->layers + 1, info->architecture);
    if (status == CGAM_OK && states > 0 && r->gain && r->seen.has_norm)
        status = check_norm(&r->seen, r->gain, r->bias, r->norm);
    for (int64_t i = 0; i < states && status == CGAM_OK; i++)
        status = h->sink(h->user, which[i], r->seen.states + i * (info->layers + 1) * info->width);
    if (status == CGAM_OK && ended > 0 && h->opts->batch_end) status = h->opts->batch_end(h->user);
    return status;
}

/* Pieces of about the same size; h NULL: nothing is handed over. */
static cgam_status run_batch(run *r, const cgam_lm_prompt *prompts, const int64_t *which,
                             int64_t count, int64_t shared, handing *h)
{
    const cgam_llama *f = r->lm->f;
    llama_memory_t memory = f->llama_get_memory(r->context);
    int64_t tokens = 0, ended = 0;
    for (int64_t i = 0; i < count; i++) {
        llama_seq_id seq = (llama_seq_id)i + 1;
        f->llama_memory_seq_rm(memory, seq, -1, -1);
        if (shared > 0) f->llama_memory_seq_cp(memory, 0, seq, -1, -1);
        tokens = append(r, tokens, &prompts[which[i]], shared, prompts[which[i]].count, seq);
        r->logits[tokens - 1] = 1;
        r->ends[i] = tokens - 1;
    }
    int64_t pieces = (tokens + PIECE - 1) / PIECE;
    cgam_status status = CGAM_OK;
    for (int64_t p = 0; p < pieces && status == CGAM_OK; p++) {
        int64_t from = p * tokens / pieces, to = (p + 1) * tokens / pieces, first = ended;
        for (; ended < count && r->ends[ended] < to; ended++) r->ends[ended] -= from;
        r->seen.ends = r->ends + first;
        r->seen.prompts = h && !h->opts->no_states ? ended - first : 0;
        status = decode(r, from, to - from);
        if (!h) continue;
        if (status == CGAM_OK) status = hand_over(r, h, ended - first, which + first);
        h->done += to - from;
        cgam_progress_tell(&h->opts->progress,
                           (cgam_progress_at){"capture", (double)h->done,
                                              (double)h->packing->tokens, "tokens", NAN});
    }
    for (int64_t i = 0; i < count; i++) f->llama_memory_seq_rm(memory, (llama_seq_id)i + 1, -1, -1);
    return status;
}

cgam_status cgam_llama_run(cgam_lm *lm, const cgam_lm_prompt *prompts, const cgam_packing *packing,
                           const cgam_lm_capture_opts *opts, cgam_lm_sink sink, void *user)
{
    run r;
    handing h = {packing, opts, sink, user, packing->shared};
    int64_t room = packing->batch_tokens > PIECE ? packing->batch_tokens : PIECE;
    cgam_status status =
        run_new(&r, lm, room, room + packing->shared, packing->batch_prompts, !opts->no_states);
    if (status == CGAM_OK && packing->shared > 0)
        status = decode_prefix(&r, &prompts[packing->order[0]], packing->shared);
    for (int64_t b = 0; b < packing->batches && status == CGAM_OK; b++)
        status = run_batch(&r, prompts, packing->order + packing->first[b],
                           packing->first[b + 1] - packing->first[b], packing->shared, &h);
    run_free(&r);
    return status;
}

cgam_status cgam_lm_capture(cgam_lm *lm, int64_t count, const cgam_lm_prompt *prompts,
                            const cgam_lm_capture_opts *opts, cgam_lm_sink sink, void *user)
{
    enum { BATCH = 512, BATCH_EXACT = 2048, BATCH_EXACT_LEAST = 64, BATCH_MAX = 1 << 16 };
    const double work = 6e11; /* some seconds for two cores, two operations a parameter and token */
    cgam_lm_capture_opts o = opts ? *opts : cgam_lm_capture_opts_default();
    if (o.batch_tokens < 0 || o.batch_tokens > BATCH_MAX)
        return cgam_fail(lm->env, CGAM_E_ARG, "batches of %lld tokens: 1 to %d are possible",
                         (long long)o.batch_tokens, BATCH_MAX);
    if (count < 1) return CGAM_OK;
    if (o.batch_tokens == 0 && o.exact) {
        /* every batch computes what is shared anew: it has at least as many tokens of its own */
        double least = o.no_sharing ? 0 : (double)shared_prefix(count, prompts);
        o.batch_tokens =
            (int64_t)fmin(BATCH_EXACT, fmax(fmax(BATCH_EXACT_LEAST, least),
                                            work / (2 * (double)lm->info.parameters + 1)));
    }
    if (o.batch_tokens == 0) o.batch_tokens = BATCH;
    if (o.exact && o.no_states)
        return cgam_fail(lm->env, CGAM_E_ARG, "exact and no_states exclude each other");
    cgam_status status = o.exact ? cgam_exact_knows(lm) : CGAM_OK;
    cgam_packing packing = {0};
    if (status == CGAM_OK)
        status = cgam_packing_new(lm, count, prompts, !o.no_sharing, o.batch_tokens,
                                  o.exact ? o.batch_tokens : SEQUENCES_MAX, &packing);
    if (status == CGAM_OK)
        status = (o.exact ? cgam_exact_run : cgam_llama_run)(lm, prompts, &packing, &o, sink, user);
    cgam_packing_free(lm->env, &packing);
    return status;
}

cgam_status cgam_lm_logits(cgam_lm *lm, const cgam_lm_prompt *prompt, float *out)
{
    cgam_packing packing;
    cgam_status status = cgam_packing_new(lm, 1, prompt, false, prompt->count, 1, &packing);
    if (status != CGAM_OK) return status;
    run r;
    status = run_new(&r, lm, prompt->count, prompt->count, 1, false);
    if (status == CGAM_OK) status = run_batch(&r, prompt, &(int64_t){0}, 1, 0, NULL);
    if (status == CGAM_OK) {
        const float *scores = lm->f->llama_get_logits_ith(r.context, -1);
        if (scores) memcpy(out, scores, (size_t)lm->info.vocab * sizeof *out);
        else status = cgam_fail(lm->env, CGAM_E_INTERNAL, "libllama gave no scores");
    }
    run_free(&r);
    cgam_packing_free(lm->env, &packing);
    return status;
}
