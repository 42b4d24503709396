/* llama_decode.c: reads and edits the residual stream at every layer, as libllama computes it.
 *
 * libllama passes each tensor of its graph to a callback before and after computing it. We ask
 * for `embd` and `l_out-k`, write edits into them and copy the requested rows. In the last block libllama
 * computes only the rows that have an output, so a tensor has either a row per token, or one per output.
 * If no scores are requested, the callback ends the graph after the final norm and so skips the product with the
 * unembedding.
 *
 * Edits that are adds at all positions and layers 2 .. L go through libllama's control-vector adapter,
 * which costs nothing. The graph is inspected to confirm that the adapter is in it; if an architecture has
 * no place for it, these edits are written like any other.
 *
 * libllama aborts when it is asked for more than it was set up for, so callers check every number first. */
#include "lm/llama_decode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Watching ----------------------------------------------------------------------------- */
/* The layer a tensor shows, L + 1 for the final norm, -1 for none. The embedding is shown again by
 * models that scale it or add positions to it, and the last word counts. */
static int64_t layer_of(const cgam_decoder *d, const char *name)
{
    static const char *const embeddings[] = {"embd", "inp_embd", "inp_scaled", "inpL"};
    for (size_t i = 0; i < sizeof embeddings / sizeof *embeddings; i++)
        if (strcmp(name, embeddings[i]) == 0) return 0;
    if (strcmp(name, "result_norm") == 0) return d->lm->info.layers + 1;
    if (strncmp(name, "l_out-", 6) != 0) return -1;
    char *end;
    long k = strtol(name + 6, &end, 10);
    return *end == '\0' && k >= 0 && k < d->lm->info.layers ? k + 1 : -1;
}

/* Does the tensor multiply with a matrix of a block? Returns the block, 0 .. L - 1, or -1. */
static int64_t block_of_product(const cgam_decoder *d, const struct ggml_tensor *t,
                                const char *matrix)
{
    char *end;
    if (t->op != GGML_OP_MUL_MAT || !t->src[0] || strncmp(t->src[0]->name, "blk.", 4) != 0)
        return -1;
    long k = strtol(t->src[0]->name + 4, &end, 10);
    return *end == '.' && strcmp(end + 1, matrix) == 0 && k >= 0 && k < d->lm->info.layers ? k : -1;
}

/* The place of edits at which a tensor shows the wanted part of a block, or what its heads put out; -1: neither. */
static int64_t place_of(const cgam_decoder *d, const struct ggml_tensor *t)
{
    int64_t L = d->lm->info.layers, k = -1;
    char *end;
    if (strncmp(t->name, "kqv_out-", 8) == 0) {
        k = strtol(t->name + 8, &end, 10);
        return *end == '\0' && k >= 0 && k < L ? L + 1 + k : -1;
    }
    if (d->o.part == CGAM_LM_ATTENTION) k = block_of_product(d, t, "attn_output.weight");
    if (d->o.part == CGAM_LM_MLP) k = block_of_product(d, t, "ffn_down.weight");
    return k < 0 ? -1 : L + 1 + k;
}

/* Is it this tensor, or some of its rows? */
static bool holds(const struct ggml_tensor *t, const struct ggml_tensor *part)
{
    return part && t && (t == part || (t->op == GGML_OP_GET_ROWS && t->src[0] == part));
}

/* Is this tensor the sum of a layer and the adapter's vector? */
static bool has_adapter(const cgam_decoder *d, const struct ggml_tensor *t)
{
    if (!d->adapted || t->op != GGML_OP_ADD) return false;
    for (int i = 0; i < 2; i++) {
        const struct ggml_tensor *s = t->src[i];
        if (s && s->op == GGML_OP_NONE && s->ne[0] == d->lm->info.width && s->ne[1] == 1)
            return true;
    }
    return false;
}

/* The term beside `part` in a sum, or NULL. */
static const struct ggml_tensor *rest_of(const struct ggml_tensor *t,
                                         const struct ggml_tensor *part)
{
    if (!t || t->op != GGML_OP_ADD) return NULL;
    return holds(t->src[0], part) ? t->src[1] : holds(t->src[1], part) ? t->src[0] : NULL;
}

/* The parts are valid only if the graph adds both products to the stream unchanged; models that scale or
 * normalise them, add a bias or mix experts do not. */
static void check_block(cgam_decoder *d, int64_t layer, const struct ggml_tensor *t)
{
    if (d->adapted && !rest_of(t, d->mlp)) t = t->src[0];
    const struct ggml_tensor *middle = rest_of(t, d->mlp);
    if (middle && middle->op == GGML_OP_GET_ROWS) middle = middle->src[0];
    if (rest_of(middle, d->attention)) return;
    d->status = cgam_fail(
        d->lm->env, CGAM_E_UNSUPPORTED,
        "block %lld of this %s model does not add the outputs of attention and MLP to the stream as they are",
        (long long)layer, d->lm->info.architecture);
}

static bool is_edited(const cgam_decoder *d, int64_t layer, const struct ggml_tensor *t)
{
    const cgam_edit_plan *plan = d->o.plan;
    if (!plan || !plan->any || !plan->layer[layer]) return false;
    if (layer == 0 && strcmp(t->name, d->embedding) != 0) return false;
    return !has_adapter(d, t);
}

/* The row of the piece that row k of a tensor holds. */
static int64_t row_at(const cgam_decoder *d, const struct ggml_tensor *t, int64_t k)
{
    return t->ne[1] == d->tokens ? k : d->output[k];
}

static void edit_tensor(cgam_decoder *d, int64_t layer, struct ggml_tensor *t)
{
    const cgam_llama *f = d->lm->f;
    size_t size = (size_t)t->ne[0] * sizeof *d->edit;
    for (int64_t k = 0; k < t->ne[1]; k++) {
        const cgam_decoder_row *row = &d->row[d->from + row_at(d, t, k)];
        if (!cgam_edit_plan_touches(d->o.plan, row->prompt, layer, row->position)) continue;
        f->ggml_backend_tensor_get(t, d->edit, (size_t)k * t->nb[1], size);
        cgam_edit_plan_apply(d->o.plan, row->prompt, layer, row->position, d->edit);
        f->ggml_backend_tensor_set(t, d->edit, (size_t)k * t->nb[1], size);
    }
}

/* Copies rows with an output, adjacent rows at once. */
static void copy_states(cgam_decoder *d, int64_t layer, const struct ggml_tensor *t)
{
    int64_t L = d->lm->info.layers, width = layer > L ? d->lm->info.width : d->width;
    int64_t count = layer > L ? 1 : d->outputs;
    bool all = t->ne[1] == d->tokens; /* a row for each token */
    size_t size = (size_t)width * sizeof(float);
    float *to = layer > L ? d->normed : d->states + d->slot[layer] * d->outputs * width;
    for (int64_t k = 0, end; k < count; k = end) {
        int64_t row = all ? d->output[k] : k;
        for (end = k + 1; end < count && t->nb[1] == size; end++)
            if (all && d->output[end] != row + end - k) break;
        d->lm->f->ggml_backend_tensor_get(t, to + k * width, (size_t)row * t->nb[1],
                                          (size_t)(end - k) * size);
    }
    if (layer > L) d->has_norm = true;
}

/* Does the tensor have the size that reading and writing assume? */
static bool fits(cgam_decoder *d, const struct ggml_tensor *t, int64_t width)
{
    if (t->type == GGML_TYPE_F32 && t->ne[0] == width && t->ne[2] == 1 && t->ne[3] == 1 &&
        (t->ne[1] == d->tokens || t->ne[1] == d->outputs))
        return true;
    d->status = cgam_fail(
        d->lm->env, CGAM_E_UNSUPPORTED,
        "libllama: %s has the unexpected size %lld x %lld, for %lld tokens with %lld outputs",
        t->name, (long long)t->ne[0], (long long)t->ne[1], (long long)d->tokens,
        (long long)d->outputs);
    return false;
}

/* Of each block: heads first, then the attention's output, that of the MLP, and their sum with the stream. */
static bool on_part(struct ggml_tensor *t, bool ask, cgam_decoder *d, int64_t place)
{
    int64_t layer = place - d->lm->info.layers;
    bool of_heads = strncmp(t->name, "kqv_out-", 8) == 0;
    bool kept = d->wanted && d->slot[layer] >= 0 && of_heads == (d->o.part == CGAM_LM_HEADS) &&
                d->o.part != CGAM_LM_RESIDUAL;
    bool edited = of_heads && is_edited(d, place, t);
    d->shown[place] = d->shown[place] || kept || edited;
    if (ask) return kept || edited;
    if (!kept && !edited) return true;
    if (!fits(d, t, of_heads ? d->lm->info.heads * d->lm->info.head_size : d->lm->info.width))
        return false;
    if (edited) edit_tensor(d, place, t);
    if (kept) copy_states(d, layer, t);
    return true;
}

static bool on_tensor(struct ggml_tensor *t, bool ask, void *user)
{
    cgam_decoder *d = user;
    int64_t L = d->lm->info.layers, layer = layer_of(d, t->name);
    bool parts = d->o.part != CGAM_LM_RESIDUAL && d->o.layers_count > 0;
    if (parts && ask && block_of_product(d, t, "attn_output.weight") >= 0) d->attention = t;
    if (parts && ask && block_of_product(d, t, "ffn_down.weight") >= 0) d->mlp = t;
    if (layer < 0) {
        int64_t place = place_of(d, t);
        return place < 0 ? !ask : on_part(t, ask, d, place);
    }
    bool kept =
        d->wanted && d->o.layers_count > 0 && (layer > L || (!parts && d->slot[layer] >= 0));
    bool edited = layer <= L && is_edited(d, layer, t);
    if (layer <= L) d->shown[layer] = true;
    if (ask && layer == 0 && !d->o.plan) snprintf(d->embedding, sizeof d->embedding, "%s", t->name);
    if (ask && parts && layer > 0 && layer <= L && d->slot[layer] >= 0) check_block(d, layer, t);
    if (ask) return kept || edited;
    if (d->status != CGAM_OK) return false;
    if (!kept && !edited) return true;
    if (!fits(d, t, d->lm->info.width)) return false;
    if (edited) edit_tensor(d, layer, t);
    if (kept) copy_states(d, layer, t);
    return layer <= L || d->o.scores; /* results after the norm are not read */
}

/* libllama's own final norm of the first output, against ours of its last layer: the same tensor,
 * the same token. 1e-3 leaves room for how it sums. */
static cgam_status check_norm(const cgam_decoder *d)
{
    int64_t width = d->lm->info.width, slot = d->slot[d->lm->info.layers];
    if (!d->gain || !d->has_norm || slot < 0 || d->o.part != CGAM_LM_RESIDUAL) return CGAM_OK;
    const float *h = d->states + slot * d->outputs * width;
    double sum = 0, square = 0, off = 0, size = 0;
    for (int64_t j = 0; j < width; j++) sum += (double)h[j];
    double m = d->norm.centred ? sum / (double)width : 0;
    for (int64_t j = 0; j < width; j++) square += ((double)h[j] - m) * ((double)h[j] - m);
    double factor = 1 / sqrt(square / (double)width + d->norm.epsilon);
    for (int64_t j = 0; j < width; j++) {
        double want = ((double)h[j] - m) * factor * (double)d->gain[j] + (double)d->bias[j];
        double delta = (double)d->normed[j] - want;
        off += delta * delta;
        size += want * want;
    }
    if (sqrt(off) <= 1e-3 * sqrt(size)) return CGAM_OK;
    return cgam_fail(
        d->lm->env, CGAM_E_UNSUPPORTED,
        "the final norm of this %s model does not read the output of its last layer (relative difference %.3g)",
        d->lm->info.architecture, sqrt(off / size));
}

/* ---- Opening ------------------------------------------------------------------------------ */
void cgam_decoder_close(cgam_decoder *d)
{
    cgam_env *env = d->lm->env;
    if (d->context) d->lm->f->llama_free(d->context);
    cgam_free_all(env, d->row, d->token, d->pos, d->n_seq, d->seq, d->logits, d->output, d->slot,
                  d->states, d->normed, d->edit, d->shown, d->gain, d->bias);
}

/* Called by libllama after every product. */
static bool is_interrupted(void *env) { return cgam_interrupted(env); }

static cgam_status alloc_batch(cgam_decoder *d)
{
    cgam_env *env = d->lm->env;
    size_t n = (size_t)d->o.capacity, width = (size_t)d->lm->info.width;
    size_t L = (size_t)d->lm->info.layers;
    size_t all_heads = (size_t)(d->lm->info.heads * d->lm->info.head_size);
    d->width = (int64_t)(d->o.part == CGAM_LM_HEADS ? all_heads : width);
    size_t layers = (size_t)d->o.layers_count + 1; /* one more, so that it is never 0 */
    cgam_status status = cgam_alloc_all(
        env, "a batch of prompts", CGAM_ARRAY(d->row, n), CGAM_ARRAY(d->token, n),
        CGAM_ARRAY(d->pos, n), CGAM_ARRAY(d->n_seq, n), CGAM_ARRAY(d->seq, n),
        CGAM_ARRAY(d->logits, n), CGAM_ARRAY(d->output, CGAM_PIECE), CGAM_ARRAY(d->slot, L + 1),
        CGAM_ZEROS(d->shown, 2 * L + 1), CGAM_ARRAY(d->gain, width), CGAM_ARRAY(d->bias, width),
        CGAM_ARRAY(d->normed, width), CGAM_ARRAY(d->edit, all_heads > width ? all_heads : width),
        CGAM_ARRAY(d->states, layers * CGAM_PIECE * (size_t)d->width));
    if (status != CGAM_OK) return status;
    for (size_t l = 0; l <= L; l++) d->slot[l] = -1;
    for (int64_t i = 0; i < d->o.layers_count; i++) d->slot[d->o.layers[i]] = i;
    return CGAM_OK;
}

/* One vector a layer, from layer 2 on, as the adapter expects them. */
static cgam_status set_adapter(cgam_decoder *d)
{
    const cgam_edit_plan *plan = d->o.plan;
    int64_t width = d->lm->info.width, L = d->lm->info.layers, from = L + 1, to = 0;
    if (!plan || !plan->any || !plan->everywhere || plan->layer[0] || (L > 0 && plan->layer[1]))
        return CGAM_OK;
    float *data = cgam_zalloc(d->lm->env, (size_t)(L * width), sizeof *data);
    if (!data) return cgam_fail_nomem(d->lm->env, "a control vector");
    for (int64_t l = 2; l <= L; l++) {
        if (!plan->layer[l]) continue;
        cgam_edit_plan_apply(plan, 0, l, 0, data + (l - 2) * width);
        from = l < from ? l : from;
        to = l;
    }
    int32_t code =
        d->lm->f->llama_set_adapter_cvec(d->context, data, (size_t)((L - 1) * width),
                                         (int32_t)width, (int32_t)from - 1, (int32_t)to - 1);
    cgam_free(d->lm->env, data);
    d->adapted = code == 0; /* otherwise the callback writes */
    return CGAM_OK;
}

static cgam_status decode_piece(cgam_decoder *d, int64_t from, int64_t tokens);

/* Edits of layer 0 must change the tensor that block 1 reads. Only the graph shows which one that is. */
static cgam_status find_embedding(cgam_decoder *d)
{
    const cgam_edit_plan *plan = d->o.plan;
    int32_t token = 0;
    d->o.plan = NULL;
    cgam_decoder_append(d, &token, 1, 0, 0, 0, 1);
    cgam_status status = decode_piece(d, 0, 1);
    d->rows = 0;
    d->o.plan = plan;
    cgam_decoder_forget(d, 0);
    return status;
}

/* libllama's threads wait for each other by spinning, about ten times a layer. For a model smaller than this the
 * waits cost more than threads gain, and on a busy machine every wait takes a time slice. */
enum { SHARED_PARAMETERS = 10000000 };

cgam_status cgam_decoder_open(cgam_lm *lm, const cgam_decoder_opts *opts, cgam_decoder *d)
{
    cgam_env *env = lm->env;
    const cgam_llama *f = lm->f;
    *d = (cgam_decoder){.lm = lm, .o = *opts};
    if (d->o.capacity < CGAM_PIECE) d->o.capacity = CGAM_PIECE;
    if (d->o.cells < d->o.capacity) d->o.cells = d->o.capacity;
    cgam_status status = alloc_batch(d);
    if (status != CGAM_OK) return status;
    if (cgam_lm_final_norm(lm, d->gain, d->bias, &d->norm) != CGAM_OK) {
        cgam_free(env, d->gain);
        d->gain = NULL;
    }
    struct llama_context_params p = f->llama_context_default_params();
    /* libllama aborts if a batch has more sequences than tokens, as with prompts of one token each. */
    int64_t least = d->o.sequences;
    p.n_ctx = (uint32_t)(d->o.cells > least ? d->o.cells : least);
    p.n_batch = p.n_ubatch = (uint32_t)(CGAM_PIECE > least ? CGAM_PIECE : least);
    p.n_seq_max = (uint32_t)least;
    p.n_threads = p.n_threads_batch =
        f->llama_model_n_params(lm->model) < SHARED_PARAMETERS ? 1 : cgam_env_threads(env);
    p.kv_unified = true; /* tokens then stay in our order, and copying a prefix is free */
    p.type_k = p.type_v = GGML_TYPE_F32;
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    p.no_perf = true;
    p.abort_callback = is_interrupted;
    p.abort_callback_data = env;
    if (d->o.layers_count > 0 || (d->o.plan && d->o.plan->any)) {
        p.cb_eval = on_tensor;
        p.cb_eval_user_data = d;
    }
    cgam_llama_complaint_reset();
    d->context = f->llama_init_from_model(lm->model, p);
    if (!d->context)
        return cgam_fail(env, CGAM_E_INTERNAL,
                         "libllama cannot create a context of %lld tokens: %s",
                         (long long)d->o.cells, cgam_llama_complaint());
    status = set_adapter(d);
    if (status == CGAM_OK && d->o.plan && d->o.plan->any && d->o.plan->layer[0])
        status = find_embedding(d);
    return status;
}

/* ---- Decoding ----------------------------------------------------------------------------- */
void cgam_decoder_append(cgam_decoder *d, const int32_t *tokens, int64_t count, int64_t position,
                         int64_t which, int32_t seq, int64_t wanted)
{
    for (int64_t k = 0; k < count; k++, d->rows++) {
        int64_t at = d->rows;
        d->row[at] = (cgam_decoder_row){seq, position + k, which};
        d->token[at] = tokens[k];
        d->pos[at] = (llama_pos)(position + k);
        d->n_seq[at] = 1;
        d->seq[at] = &d->row[at].seq;
        d->logits[at] = position + k >= wanted;
    }
}

/* Fails unless every layer with requested states or edits was seen. */
static cgam_status check_shown(const cgam_decoder *d)
{
    const cgam_lm_info *info = &d->lm->info;
    const cgam_edit_plan *plan = d->o.plan;
    bool parts = d->o.part != CGAM_LM_RESIDUAL;
    for (int64_t p = 0; p <= 2 * info->layers; p++) {
        int64_t l = p > info->layers ? p - info->layers : p;
        bool needed = (d->wanted && parts == (p > info->layers) && d->slot[l] >= 0) ||
                      (plan && plan->any && plan->layer[p]);
        if (needed && !d->shown[p])
            return cgam_fail(d->lm->env, CGAM_E_UNSUPPORTED,
                             "libllama did not report layer %lld%s of this %s model", (long long)l,
                             p > info->layers ? "'s parts" : "", info->architecture);
    }
    return d->wanted ? check_norm(d) : CGAM_OK;
}

/* Rows [from, from + tokens). */
static cgam_status decode_piece(cgam_decoder *d, int64_t from, int64_t tokens)
{
    if (cgam_interrupted(d->lm->env)) return CGAM_E_INTERRUPTED;
    d->from = from;
    d->tokens = tokens;
    d->outputs = 0;
    for (int64_t k = 0; k < tokens; k++)
        if (d->logits[from + k]) d->output[d->outputs++] = k;
    d->wanted = d->outputs > 0;
    if (!d->wanted) { /* libllama requires an output in every batch of some models */
        d->logits[from + tokens - 1] = 1;
        d->output[d->outputs++] = tokens - 1;
    }
    struct llama_batch batch = {.n_tokens = (int32_t)tokens,
                                .token = d->token + from,
                                .pos = d->pos + from,
                                .n_seq_id = d->n_seq + from,
                                .seq_id = d->seq + from,
                                .logits = d->logits + from};
    memset(d->shown, 0, 2 * (size_t)d->lm->info.layers + 1);
    d->has_norm = false;
    d->status = CGAM_OK;
    cgam_llama_complaint_reset();
    int32_t code = d->lm->f->llama_decode(d->context, batch);
    if (d->status != CGAM_OK) return d->status;
    if (code != 0 && cgam_interrupted(d->lm->env)) return CGAM_E_INTERRUPTED;
    if (code != 0)
        return cgam_fail(d->lm->env, CGAM_E_INTERNAL,
                         "libllama: decoding %lld tokens failed with code %d: %s",
                         (long long)tokens, code, cgam_llama_complaint());
    return check_shown(d);
}

cgam_status cgam_decoder_run(cgam_decoder *d, cgam_decoder_taken taken, void *user)
{
    int64_t rows = d->rows, pieces = (rows + CGAM_PIECE - 1) / CGAM_PIECE;
    cgam_status status = CGAM_OK;
    for (int64_t p = 0; p < pieces && status == CGAM_OK; p++) {
        int64_t from = p * rows / pieces, to = (p + 1) * rows / pieces;
        status = decode_piece(d, from, to - from);
        if (status == CGAM_OK && taken) status = taken(user, d);
    }
    d->rows = 0;
    return status;
}

const float *cgam_decoder_scores(const cgam_decoder *d, int64_t k)
{
    return d->lm->f->llama_get_logits_ith(d->context, (int32_t)d->output[k]);
}

void cgam_decoder_forget(cgam_decoder *d, int32_t seq)
{
    d->lm->f->llama_memory_seq_rm(d->lm->f->llama_get_memory(d->context), seq, -1, -1);
}

void cgam_decoder_share(cgam_decoder *d, int32_t from, int32_t to)
{
    d->lm->f->llama_memory_seq_cp(d->lm->f->llama_get_memory(d->context), from, to, -1, -1);
}
