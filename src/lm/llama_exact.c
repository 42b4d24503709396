/* llama_exact.c: the forward pass of the Llama family, written plainly, in f32 throughout.
 *
 * For each block, with x the residual stream and n(.) the root mean square norm with its gains:
 *
 *     x += O attention(rope(Q n(x)), rope(K n(x)), V n(x))
 *     x += D (silu(G n(x)) * (U n(x)))
 *
 * (Touvron et al. 2023; grouped heads, Ainslie et al. 2023; rotary positions, Su et al. 2021, in
 * the pairs (2i, 2i+1) of GGUF files of this family.)
 *
 * The pass goes through the layers once per batch with all tokens of the batch. A matrix is read
 * and widened a few rows at a time by the thread that multiplies with them, so no matrix is ever
 * held whole. Tokens shared by prompts are a segment that the others attend to; tokens of earlier
 * passes are in a cache, if one is kept. Edits are applied to x between the blocks.
 *
 * Products are computed by sgemm or, if the CPU has a tile unit, by num/cpu/split.h: as exact to a few
 * roundings of f32, and faster. Activations are packed for it once for all matrices they are multiplied with. */
#include "base/blas.h"
#include "lm/exact.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static cgam_status read_shape(const cgam_lm *lm, cgam_exact_shape *s)
{
    cgam_env *env = lm->env;
    const char *arch = lm->info.architecture;
    int64_t experts = 0, rotary = 0, key = 0, value = 0;
    *s = (cgam_exact_shape){.layers = lm->info.layers, .width = lm->info.width, .rope_scale = 1};
    if (strcmp(arch, "llama") != 0)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "exact supports only the architecture llama; this model is %s", arch);
    if (cgam_gguf_uint(lm, "expert_count", &experts) && experts > 0)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "exact does not support mixtures of experts");
    double factor;
    if (cgam_gguf_real(lm, "rope.scaling.factor", &factor) ||
        cgam_gguf_real(lm, "rope.scale_linear", &factor) ||
        cgam_gguf_real(lm, "attention.scale", &factor) ||
        cgam_gguf_tensor_find(&lm->gguf, "blk.0.attn_q.bias"))
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "exact does not support this model's position scaling or biases");
    if (!cgam_gguf_uint(lm, "attention.head_count", &s->heads) || s->heads < 1 ||
        !cgam_gguf_uint(lm, "feed_forward_length", &s->ff) || s->ff < 1 ||
        !cgam_gguf_real(lm, "attention.layer_norm_rms_epsilon", &s->epsilon))
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "exact: layers of this model differ in shape");
    if (!cgam_gguf_uint(lm, "attention.head_count_kv", &s->heads_kv)) s->heads_kv = s->heads;
    if (!cgam_gguf_real(lm, "rope.freq_base", &s->rope_base)) s->rope_base = 10000;
    s->head = s->width / s->heads;
    if (cgam_gguf_uint(lm, "attention.key_length", &key)) s->head = key;
    if (!cgam_gguf_uint(lm, "attention.value_length", &value)) value = s->head;
    if (!cgam_gguf_uint(lm, "rope.dimension_count", &rotary)) rotary = s->head;
    if (s->heads_kv < 1 || s->heads % s->heads_kv != 0 || s->head < 2 || s->head % 2 != 0 ||
        value != s->head || rotary != s->head)
        return cgam_fail(
            env, CGAM_E_UNSUPPORTED,
            "exact does not support these heads: %lld over %lld of size %lld, %lld of it rotated",
            (long long)s->heads, (long long)s->heads_kv, (long long)s->head, (long long)rotary);
    return CGAM_OK;
}

cgam_status cgam_exact_knows(const cgam_lm *lm)
{
    cgam_exact_shape s;
    return read_shape(lm, &s);
}

/* ---- Products ----------------------------------------------------------------------------- */
typedef struct weight_product {
    cgam_weights w;
    float *y; /* [count, rows] */
} weight_product;

/* Products of the same x with matrices of as many columns. */
typedef struct products {
    cgam_exact *p;
    int64_t count;
    const float *x; /* [count, columns] */
    weight_product *product;
    int64_t rows; /* of a matrix, multiplied at once */
    bool add;
} products;

enum { ROWS = 128, ROWS_SPLIT = 256, SLICE = CGAM_SPLIT_DEPTH, PANEL = CGAM_SPLIT_PANEL };

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t pieces_of(int64_t of, int64_t size) { return (of + size - 1) / size; }

static cgam_status multiply_plainly(const products *all, const weight_product *job, int64_t begin,
                                    int64_t count)
{
    const cgam_weights *w = &job->w;
    cgam_env *env = all->p->lm->env;
    float *rows = cgam_alloc(env, (size_t)(count * w->columns), sizeof *rows);
    if (!rows) return cgam_fail_nomem(env, "rows of a weight matrix");
    cgam_weights_get(w, begin, count, rows);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)all->count, (int)count,
                (int)w->columns, 1, all->x, (int)w->columns, rows, (int)w->columns,
                all->add ? 1.0F : 0.0F, job->y + begin, (int)w->rows);
    cgam_free(env, rows);
    return CGAM_OK;
}

/* Numbers [from, from + count) of a row, as row r of a panel. */
static void pack_row(const cgam_split *split, const cgam_weights *w, int64_t row, int64_t from,
                     int64_t count, int64_t r, void *panel)
{
    const cgam_iq2 *iq2 = w->type == GGML_TYPE_IQ2_XXS ? w->lm->f->iq2 : NULL;
    if (iq2 && iq2->coded) {
        uint8_t codes[SLICE];
        float values[SLICE / CGAM_SPLIT_CODED][8];
        cgam_iq2_decode(iq2, cgam_weights_at(w, row, from), count, codes, values);
        split->left_coded(r, count, codes, (const float(*)[8])values, panel);
    } else {
        float numbers[SLICE];
        cgam_weights_part(w, row, from, count, numbers);
        split->left(r, count, numbers, panel);
    }
}

static cgam_status multiply_split(const products *all, const weight_product *job, int64_t begin,
                                  int64_t count)
{
    const cgam_weights *w = &job->w;
    const cgam_split *split = all->p->split;
    cgam_env *env = all->p->lm->env;
    char *buffer = cgam_alloc(env, (size_t)pieces_of(count, PANEL), split->room(SLICE));
    if (!buffer) return cgam_fail_nomem(env, "rows of a weight matrix");
    for (int64_t from = 0; from < w->columns; from += SLICE) {
        int64_t depth = at_most(w->columns - from, SLICE);
        size_t panel = split->room(depth);
        for (int64_t r = 0; r < pieces_of(count, PANEL) * PANEL; r++) {
            char *to = buffer + (size_t)(r / PANEL) * panel;
            if (r < count) pack_row(split, w, begin + r, from, depth, r % PANEL, to);
            else split->left(r % PANEL, depth, NULL, to);
        }
        split->mul(count, all->count, depth, buffer,
                   all->p->panels +
                       (size_t)(from / SLICE * pieces_of(all->count, PANEL)) * split->room(SLICE),
                   job->y + begin, w->rows, all->add || from > 0);
    }
    cgam_free(env, buffer);
    return CGAM_OK;
}

static cgam_status multiply_rows(void *arg, int64_t i)
{
    const products *all = arg;
    const weight_product *job = all->product;
    for (; i >= pieces_of(job->w.rows, all->rows); job++) i -= pieces_of(job->w.rows, all->rows);
    int64_t begin = i * all->rows, count = at_most(job->w.rows - begin, all->rows);
    cgam_status status =
        (all->p->split ? multiply_split : multiply_plainly)(all, job, begin, count);
    if (status != CGAM_OK) return status;
    return cgam_interrupted(all->p->lm->env) ? CGAM_E_INTERRUPTED : CGAM_OK;
}

/* y = x W' for each, or y += x W'; x is packed. A sum on tiles does not depend on the number of rows processed
 * together, so the work is cut into pieces for all threads; pieces for sgemm have one size. */
static cgam_status multiply_all(products *all, int matrices)
{
    cgam_env *env = all->p->lm->env;
    int64_t rows = 0, items = 0;
    for (int m = 0; m < matrices; m++) rows += all->product[m].w.rows;
    int64_t share = pieces_of(pieces_of(rows, 4 * (int64_t)cgam_env_threads(env)), PANEL) * PANEL;
    all->rows = all->p->split ? at_most(share, ROWS_SPLIT) : ROWS;
    for (int m = 0; m < matrices; m++) items += pieces_of(all->product[m].w.rows, all->rows);
    return cgam_parallel(env, items, multiply_rows, all);
}

typedef struct matrix {
    const char *part;
    float *y;
    int64_t rows;
} matrix;

enum { MATRICES = 3 }; /* at most, of one x */

static cgam_status multiply_weights(cgam_exact *p, int64_t layer, const float *x, int64_t columns,
                                    int matrices, const matrix *m, bool add)
{
    weight_product to[MATRICES];
    for (int i = 0; i < matrices; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, m[i].part);
        cgam_weights *w = &to[i].w;
        cgam_status status = cgam_weights_find(p->lm, name, w);
        if (status != CGAM_OK) return status;
        if (w->rows != m[i].rows || w->columns != columns)
            return cgam_fail(p->lm->env, CGAM_E_FORMAT, "%s is %lld x %lld, expected %lld x %lld",
                             name, (long long)w->rows, (long long)w->columns, (long long)m[i].rows,
                             (long long)columns);
        to[i].y = m[i].y;
    }
    return multiply_all(&(products){p, p->tokens, x, to, 0, add}, matrices);
}

/* Prepares the tokens of a panel before matrices multiply them. */
typedef struct laying {
    cgam_exact *p;
    int64_t count, columns;
    const float *x; /* [count, columns] */
    void (*make)(const cgam_exact *p, int64_t begin,
                 int64_t end); /* x of these; NULL: it is there */
} laying;

static cgam_status lay_panel(void *arg, int64_t i)
{
    const laying *job = arg;
    const cgam_exact *p = job->p;
    int64_t begin = i * PANEL, end = at_most(job->count, begin + PANEL);
    if (job->make) job->make(p, begin, end);
    for (int64_t from = 0; p->split && from < job->columns; from += SLICE) {
        int64_t depth = at_most(job->columns - from, SLICE);
        char *slice = p->panels +
                      (size_t)(from / SLICE * pieces_of(job->count, PANEL)) * p->split->room(SLICE);
        p->split->right(end - begin, depth, job->x + begin * job->columns + from, job->columns,
                        slice + (size_t)i * p->split->room(depth));
    }
    return CGAM_OK;
}

static cgam_status lay_out(cgam_exact *p, int64_t count, const float *x, int64_t columns,
                           void (*make)(const cgam_exact *p, int64_t begin, int64_t end))
{
    laying job = {p, count, columns, x, make};
    return cgam_parallel(p->lm->env, pieces_of(count, PANEL), lay_panel, &job);
}

/* With the gains in p->gain. */
static void norm_row(const cgam_exact *p, const float *x, float *n)
{
    int64_t d = p->s.width;
    double square = 0;
    for (int64_t j = 0; j < d; j++) square += (double)x[j] * (double)x[j];
    float factor = (float)(1 / sqrt(square / (double)d + p->s.epsilon));
    for (int64_t j = 0; j < d; j++) n[j] = x[j] * factor * p->gain[j];
}

static void make_normed(const cgam_exact *p, int64_t begin, int64_t end)
{
    for (int64_t t = begin; t < end; t++) norm_row(p, p->x + t * p->s.width, p->n + t * p->s.width);
}

static void make_gated(const cgam_exact *p, int64_t begin, int64_t end)
{
    for (int64_t i = begin * p->s.ff; i < end * p->s.ff; i++)
        p->up[i] *= p->gate[i] / (1 + expf(-p->gate[i])); /* silu */
}

static cgam_status norm_rows(cgam_exact *p, const char *part, int64_t layer)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, part);
    cgam_weights w;
    cgam_status status = cgam_weights_find(p->lm, name, &w);
    if (status != CGAM_OK) return status;
    int64_t d = p->s.width;
    if (w.columns != d || w.rows != 1)
        return cgam_fail(p->lm->env, CGAM_E_FORMAT, "%s has %lld gains, expected %lld", name,
                         (long long)w.columns, (long long)d);
    cgam_weights_get(&w, 0, 1, p->gain);
    return lay_out(p, p->tokens, p->n, d, make_normed);
}

/* ---- Attention ---------------------------------------------------------------------------- */
static void rotate_rows(const cgam_exact *p, float *rows, int64_t heads)
{
    int64_t head = p->s.head;
    for (int64_t g = 0; g < p->segments; g++) {
        const cgam_exact_segment *seg = &p->segment[g];
        for (int64_t i = 0; i < head / 2; i++) {
            double rate = pow(p->s.rope_base, -2.0 * (double)i / (double)head) * p->s.rope_scale;
            if (p->factors) rate /= (double)p->factors[i];
            for (int64_t t = 0; t < seg->count; t++) {
                double angle = rate * (double)(seg->position + t);
                float c = (float)cos(angle), s = (float)sin(angle);
                float *row = rows + (seg->begin + t) * heads * head;
                for (int64_t h = 0; h < heads; h++) {
                    float *pair = row + h * head + 2 * i, a = pair[0], b = pair[1];
                    pair[0] = a * c - b * s;
                    pair[1] = a * s + b * c;
                }
            }
        }
    }
}

/* Rows of keys and values that a segment sees. */
typedef struct sight {
    const float *k, *v;
    int64_t count;
} sight;

enum { DEPTH = 4 }; /* a segment, the one it continues, and so on */

/* Row `position` of a sequence of the cache, in the current block. */
static int64_t cache_row(const cgam_exact *p, int64_t sequence, int64_t position)
{
    const cgam_exact_cache *c = &p->cache;
    return ((p->layer * c->sequences + sequence) * c->capacity + position) * p->s.heads_kv *
           p->s.head;
}

static void cache_keys(cgam_exact *p)
{
    int64_t kd = p->s.heads_kv * p->s.head;
    for (int64_t g = 0; g < p->segments; g++)
        for (const cgam_exact_segment *s = p->segment[g].cache < 0 ? NULL : &p->segment[g]; s;
             s = s->parent >= 0 ? &p->segment[s->parent] : NULL) {
            int64_t at = cache_row(p, p->segment[g].cache, s->position);
            size_t size = (size_t)(s->count * kd) * sizeof *p->k;
            memcpy(p->cache.k + at, p->k + s->begin * kd, size);
            memcpy(p->cache.v + at, p->v + s->begin * kd, size);
        }
}

/* Collects the rows that a segment sees, in the order of tokens; its own rows come last. */
static int gather_keys(const cgam_exact *p, const cgam_exact_segment *seg, sight *out)
{
    int64_t kd = p->s.heads_kv * p->s.head;
    const cgam_exact_segment *chain[DEPTH];
    int depth = 0, n = 0;
    for (const cgam_exact_segment *s = seg; s;
         s = s->parent >= 0 && s->cache < 0 ? &p->segment[s->parent] : NULL)
        if (depth < DEPTH) chain[depth++] = s;
    while (depth-- > 0) {
        const cgam_exact_segment *s = chain[depth];
        int64_t at = s->cache >= 0 ? cache_row(p, s->cache, 0) : s->begin * kd;
        out[n] = s->cache >= 0 ? (sight){p->cache.k + at, p->cache.v + at, s->position + s->count}
                               : (sight){p->k + at, p->v + at, s->count};
        if (out[n].count > 0) n++;
    }
    return n;
}

/* Row t sees all rows before the segment, and rows up to itself within it. */
static void softmax_row(float *row, int64_t seen, int64_t width)
{
    float top = row[0], sum = 0;
    for (int64_t j = 1; j < seen; j++) top = row[j] > top ? row[j] : top;
    for (int64_t j = 0; j < seen; j++) sum += row[j] = expf(row[j] - top);
    for (int64_t j = 0; j < seen; j++) row[j] /= sum;
    for (int64_t j = seen; j < width; j++) row[j] = 0;
}

/* One head of one segment: scores against what it sees, softmax, readout. */
static cgam_status attend_head(void *arg, int64_t item)
{
    cgam_exact *p = arg;
    const cgam_exact_shape *s = &p->s;
    cgam_env *env = p->lm->env;
    const cgam_exact_segment *seg = &p->segment[item / s->heads];
    int64_t h = item % s->heads, group = h / (s->heads / s->heads_kv), T = seg->count, width = 0;
    int qd = (int)(s->heads * s->head), kd = (int)(s->heads_kv * s->head), head = (int)s->head;
    if (T == 0) return CGAM_OK;
    sight seen[DEPTH];
    int n = gather_keys(p, seg, seen);
    for (int i = 0; i < n; i++) width += seen[i].count;
    float *S = cgam_alloc(env, (size_t)(T * width), sizeof *S);
    if (!S) return cgam_fail_nomem(env, "attention scores");
    const float *q = p->q + seg->begin * qd + h * head;
    float *a = p->a + seg->begin * qd + h * head, scale = 1 / sqrtf((float)head);
    int64_t at = 0;
    for (int i = 0; i < n; at += seen[i++].count)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)T, (int)seen[i].count, head,
                    scale, q, qd, seen[i].k + group * head, kd, 0, S + at, (int)width);
    for (int64_t t = 0; t < T; t++) softmax_row(S + t * width, width - T + t + 1, width);
    for (int i = n - 1; i >= 0; i--) {
        at -= seen[i].count;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)T, head, (int)seen[i].count, 1,
                    S + at, (int)width, seen[i].v + group * head, kd, i == n - 1 ? 0 : 1, a, qd);
    }
    cgam_free(env, S);
    return CGAM_OK;
}

/* Applies the edits at a place to its rows [tokens, width]. */
static void apply_edits(cgam_exact *p, int64_t layer, float *rows, int64_t width)
{
    if (!p->plan || !p->plan->any || !p->plan->layer[layer]) return;
    for (int64_t g = 0; g < p->segments; g++) {
        const cgam_exact_segment *seg = &p->segment[g];
        for (int64_t t = 0; t < seg->count; t++)
            cgam_edit_plan_apply(p->plan, seg->prompt, layer, seg->position + t,
                                 rows + (seg->begin + t) * width);
    }
}

const float *cgam_exact_part(const cgam_exact *p)
{
    const float *const rows[] = {p->x, p->attention, p->n, p->a};
    return rows[p->part];
}

/* Products that are requested separately are computed twice, so that the bits of the stream do not change. */
cgam_status cgam_exact_block(cgam_exact *p, int64_t l)
{
    const cgam_exact_shape *s = &p->s;
    int64_t d = s->width, qd = s->heads * s->head, kd = s->heads_kv * s->head;
    const matrix inwards[] = {{"attn_q", p->q, qd}, {"attn_k", p->k, kd}, {"attn_v", p->v, kd}};
    const matrix upwards[] = {{"ffn_gate", p->gate, s->ff}, {"ffn_up", p->up, s->ff}};
    const matrix outwards = {"attn_output", p->x, d}, downwards = {"ffn_down", p->x, d};
    const matrix attention = {"attn_output", p->attention, d}, mlp = {"ffn_down", p->n, d};
    cgam_status status = norm_rows(p, "attn_norm", l);
    if (status == CGAM_OK) status = multiply_weights(p, l, p->n, d, 3, inwards, false);
    if (status != CGAM_OK) return status;
    rotate_rows(p, p->q, s->heads);
    rotate_rows(p, p->k, s->heads_kv);
    p->layer = l;
    cache_keys(p);
    status = cgam_parallel(p->lm->env, p->segments * s->heads, attend_head, p);
    if (status == CGAM_OK) apply_edits(p, s->layers + l + 1, p->a, qd);
    if (status == CGAM_OK) status = lay_out(p, p->tokens, p->a, qd, NULL);
    if (status == CGAM_OK && p->part == CGAM_LM_ATTENTION)
        status = multiply_weights(p, l, p->a, qd, 1, &attention, false);
    if (status == CGAM_OK) status = multiply_weights(p, l, p->a, qd, 1, &outwards, true);
    if (status == CGAM_OK) status = norm_rows(p, "ffn_norm", l);
    if (status == CGAM_OK) status = multiply_weights(p, l, p->n, d, 2, upwards, false);
    if (status == CGAM_OK) status = lay_out(p, p->tokens, p->up, s->ff, make_gated);
    if (status == CGAM_OK && p->part == CGAM_LM_MLP)
        status = multiply_weights(p, l, p->up, s->ff, 1, &mlp, false);
    if (status == CGAM_OK) status = multiply_weights(p, l, p->up, s->ff, 1, &downwards, true);
    if (status == CGAM_OK) apply_edits(p, l + 1, p->x, d);
    return status;
}

/* ---- Batches ------------------------------------------------------------------------------ */
void cgam_exact_free(cgam_exact *p)
{
    cgam_env *env = p->lm->env;
    cgam_free_all(env, p->segment, p->token, p->x, p->n, p->q, p->k, p->v, p->a, p->gate, p->up,
                  p->gain, p->rope_factors, p->cache.k, p->cache.v, p->panels, p->attention);
}

cgam_status cgam_exact_new(cgam_exact *p, cgam_lm *lm, int64_t tokens, int64_t segments,
                           int64_t cached, int64_t cache_capacity)
{
    cgam_env *env = lm->env;
    *p = (cgam_exact){.lm = lm, .tokens_max = tokens, .segments_max = segments};
    p->split = cgam_cpu_best()->split;
    cgam_status status = read_shape(lm, &p->s);
    if (status != CGAM_OK) return status;
    size_t T = (size_t)tokens, d = (size_t)p->s.width, ff = (size_t)p->s.ff;
    size_t qd = (size_t)(p->s.heads * p->s.head), kd = (size_t)(p->s.heads_kv * p->s.head);
    const char what[] = "the activations of a batch";
    status =
        cgam_alloc_all(env, what, CGAM_ARRAY(p->segment, segments), CGAM_ARRAY(p->token, T),
                       CGAM_ARRAY(p->gain, d), CGAM_ARRAY(p->rope_factors, p->s.head / 2),
                       CGAM_ARRAY(p->x, T * d), CGAM_ARRAY(p->n, T * d), CGAM_ARRAY(p->q, T * qd),
                       CGAM_ARRAY(p->k, T * kd), CGAM_ARRAY(p->v, T * kd), CGAM_ARRAY(p->a, T * qd),
                       CGAM_ARRAY(p->gate, T * ff), CGAM_ARRAY(p->up, T * ff));
    p->cache = (cgam_exact_cache){.sequences = cached, .capacity = cache_capacity};
    size_t kept = (size_t)(p->s.layers * cached * cache_capacity) * kd;
    if (status == CGAM_OK && cached > 0)
        status =
            cgam_alloc_all(env, what, CGAM_ARRAY(p->cache.k, kept), CGAM_ARRAY(p->cache.v, kept));
    if (status == CGAM_OK && p->split) {
        size_t widest = d > ff ? d : ff;
        widest = qd > widest ? qd : widest;
        size_t panels = (size_t)(pieces_of(tokens, PANEL) * pieces_of((int64_t)widest, SLICE));
        status = cgam_alloc_all(env, what, CGAM_ARRAY(p->panels, panels * p->split->room(SLICE)));
    }
    if (status != CGAM_OK) return status;
    cgam_weights w;
    if (cgam_gguf_tensor_find(&lm->gguf, "rope_freqs.weight")) {
        status = cgam_weights_find(lm, "rope_freqs.weight", &w);
        if (status == CGAM_OK && w.columns != p->s.head / 2)
            status =
                cgam_fail(env, CGAM_E_FORMAT, "rope_freqs.weight has %lld factors, expected %lld",
                          (long long)w.columns, (long long)p->s.head / 2);
        if (status == CGAM_OK) cgam_weights_get(&w, 0, 1, p->rope_factors);
        p->factors = p->rope_factors;
    }
    return status;
}

void cgam_exact_append(cgam_exact *p, const int32_t *tokens, int64_t count, cgam_exact_segment seg)
{
    seg.begin = p->tokens;
    seg.count = count;
    p->segment[p->segments++] = seg;
    for (int64_t k = 0; k < count; k++) p->token[p->tokens++] = tokens[k];
}

cgam_status cgam_exact_embed(cgam_exact *p)
{
    cgam_weights w;
    cgam_status status = cgam_weights_find(p->lm, "token_embd.weight", &w);
    for (int64_t t = 0; t < p->tokens && status == CGAM_OK; t++)
        cgam_weights_get(&w, p->token[t], 1, p->x + t * p->s.width);
    if (status == CGAM_OK) apply_edits(p, 0, p->x, p->s.width);
    return status;
}

cgam_status cgam_exact_scores(cgam_exact *p, int64_t count, const int64_t *rows, float *out)
{
    cgam_weights w;
    cgam_lm *lm = p->lm;
    int64_t d = p->s.width;
    cgam_status status = cgam_weights_find(lm, "output_norm.weight", &w);
    if (status != CGAM_OK) return status;
    cgam_weights_get(&w, 0, 1, p->gain);
    for (int64_t i = 0; i < count; i++) norm_row(p, p->x + rows[i] * d, p->n + i * d);
    weight_product to = {.y = out};
    status = cgam_weights_find(lm, lm->info.tied ? "token_embd.weight" : "output.weight", &to.w);
    if (status == CGAM_OK) status = lay_out(p, count, p->n, d, NULL);
    products all = {p, count, p->n, &to, 0, false};
    if (status == CGAM_OK) status = multiply_all(&all, 1);
    return status;
}
