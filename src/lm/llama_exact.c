/* llama_exact.c: the forward pass of the Llama family, written plainly, in f32 throughout.
 *
 * For each block, with x the residual stream and n(.) the root mean square norm with its gains:
 *
 *     x += O attention(rope(Q n(x)), rope(K n(x)), V n(x))
 *     x += D (silu(G n(x)) * (U n(x)))
 *
 * (Touvron et al. 2023; grouped heads, Ainslie et al. 2023; rotary positions, Su et al. 2021, in
 * the pairs (2i, 2i+1) that GGUF files of this family are stored for.)
 *
 * It goes through the layers once per batch with all of the batch's tokens. A matrix is read
 * and widened a few rows at a time by the thread that multiplies with them, so no matrix is ever
 * held whole. Tokens that all prompts begin with are one segment that the others attend to. */
#include "base/blas.h"
#include "lm/llama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct shape {
    int64_t layers, width, heads, heads_kv, head, ff; /* head: numbers per head */
    double epsilon, rope_base, rope_scale;
} shape;

static cgam_status shape_of(const cgam_lm *lm, shape *s)
{
    cgam_env *env = lm->env;
    const char *arch = lm->info.architecture;
    int64_t experts = 0, rotary = 0, key = 0, value = 0;
    *s = (shape){.layers = lm->info.layers, .width = lm->info.width, .rope_scale = 1};
    if (strcmp(arch, "llama") != 0)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "exact knows the architecture llama, this model is %s", arch);
    if (cgam_gguf_uint(lm, "expert_count", &experts) && experts > 0)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "exact does not know mixtures of experts");
    double factor;
    if (cgam_gguf_real(lm, "rope.scaling.factor", &factor) ||
        cgam_gguf_real(lm, "rope.scale_linear", &factor) ||
        cgam_gguf_real(lm, "attention.scale", &factor) ||
        lm->f->gguf_find_tensor(lm->gguf, "blk.0.attn_q.bias") >= 0)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "exact does not know this model's scaling of positions or its biases");
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
            env, CGAM_E_UNSUPPORTED, "exact: %lld heads on %lld of %lld numbers, %lld turned",
            (long long)s->heads, (long long)s->heads_kv, (long long)s->head, (long long)rotary);
    return CGAM_OK;
}

cgam_status cgam_exact_knows(const cgam_lm *lm)
{
    shape s;
    return shape_of(lm, &s);
}

/* A run of consecutive tokens of one prompt. Segment 0 is what all begin with; it may be empty. */
typedef struct segment {
    int64_t begin, count; /* rows of the batch */
    int64_t position;     /* of its first token */
} segment;

typedef struct pass {
    cgam_lm *lm;
    shape s;
    const float *factors; /* [head / 2] divides the rotary angles, or NULL */
    int64_t tokens, segments;
    segment *segment;
    int32_t *token;                           /* [tokens] */
    float *x, *n, *q, *k, *v, *a, *gate, *up; /* [tokens, .] */
    float *gain, *rope_factors;
} pass;

/* ---- Products ----------------------------------------------------------------------------- */
typedef struct product {
    pass *p;
    const cgam_weights *w;
    const float *x; /* [tokens, columns] */
    float *y;       /* [tokens, rows] */
    bool add;
} product;

enum { ROWS = 128 };

static cgam_status multiply_rows(void *arg, int64_t i)
{
    const product *job = arg;
    const cgam_weights *w = job->w;
    int64_t begin = i * ROWS, count = w->rows - begin < ROWS ? w->rows - begin : ROWS;
    cgam_env *env = job->p->lm->env;
    float *rows = cgam_alloc(env, (size_t)(count * w->columns), sizeof *rows);
    if (!rows) return cgam_fail_nomem(env, "rows of a weight matrix");
    cgam_weights_get(w, begin, count, rows);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)job->p->tokens, (int)count,
                (int)w->columns, 1, job->x, (int)w->columns, rows, (int)w->columns,
                job->add ? 1.0F : 0.0F, job->y + begin, (int)w->rows);
    cgam_free(env, rows);
    return cgam_interrupted(env) ? CGAM_E_INTERRUPTED : CGAM_OK;
}

/* y = x W', or y += x W'. */
static cgam_status multiply(pass *p, const char *part, int64_t layer, const float *x,
                            int64_t columns, float *y, int64_t rows, bool add)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, part);
    cgam_weights w;
    cgam_status status = cgam_weights_find(p->lm, name, &w);
    if (status != CGAM_OK) return status;
    if (w.rows != rows || w.columns != columns)
        return cgam_fail(p->lm->env, CGAM_E_FORMAT, "%s is %lld x %lld, %lld x %lld is expected",
                         name, (long long)w.rows, (long long)w.columns, (long long)rows,
                         (long long)columns);
    product job = {p, &w, x, y, add};
    return cgam_parallel(p->lm->env, (rows + ROWS - 1) / ROWS, multiply_rows, &job);
}

static cgam_status norm(pass *p, const char *part, int64_t layer)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, part);
    cgam_weights w;
    cgam_status status = cgam_weights_find(p->lm, name, &w);
    if (status != CGAM_OK) return status;
    int64_t d = p->s.width;
    if (w.columns != d || w.rows != 1)
        return cgam_fail(p->lm->env, CGAM_E_FORMAT, "%s has %lld gains, %lld are expected", name,
                         (long long)w.columns, (long long)d);
    cgam_weights_get(&w, 0, 1, p->gain);
    for (int64_t t = 0; t < p->tokens; t++) {
        const float *x = p->x + t * d;
        float *n = p->n + t * d;
        double square = 0;
        for (int64_t j = 0; j < d; j++) square += (double)x[j] * (double)x[j];
        float factor = (float)(1 / sqrt(square / (double)d + p->s.epsilon));
        for (int64_t j = 0; j < d; j++) n[j] = x[j] * factor * p->gain[j];
    }
    return CGAM_OK;
}

/* ---- Attention ---------------------------------------------------------------------------- */
static void turn(const pass *p, float *rows, int64_t heads)
{
    int64_t head = p->s.head;
    for (int64_t g = 0; g < p->segments; g++) {
        const segment *seg = &p->segment[g];
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

/* One head of one segment: scores against the shared tokens and its own, softmax, readout. */
static cgam_status attend(void *arg, int64_t item)
{
    pass *p = arg;
    const shape *s = &p->s;
    cgam_env *env = p->lm->env;
    const segment *seg = &p->segment[item / s->heads];
    const segment *shared = &p->segment[0];
    int64_t h = item % s->heads, group = h / (s->heads / s->heads_kv);
    int64_t before = seg == shared ? 0 : shared->count, T = seg->count, width = before + T;
    int qd = (int)(s->heads * s->head), kd = (int)(s->heads_kv * s->head), head = (int)s->head;
    if (T == 0) return CGAM_OK;
    float *S = cgam_alloc(env, (size_t)(T * width), sizeof *S);
    if (!S) return cgam_fail_nomem(env, "attention scores");
    const float *q = p->q + seg->begin * qd + h * head;
    const float *k = p->k + seg->begin * kd + group * head;
    const float *v = p->v + seg->begin * kd + group * head;
    const float *k0 = p->k + shared->begin * kd + group * head;
    const float *v0 = p->v + shared->begin * kd + group * head;
    float *a = p->a + seg->begin * qd + h * head, scale = 1 / sqrtf((float)head);
    if (before > 0)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)T, (int)before, head, scale, q,
                    qd, k0, kd, 0, S, (int)width);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)T, (int)T, head, scale, q, qd, k, kd,
                0, S + before, (int)width);
    for (int64_t t = 0; t < T; t++) {
        float *row = S + t * width, top = row[0], sum = 0;
        int64_t seen = before + t + 1; /* a token sees itself and what came before */
        for (int64_t j = 1; j < seen; j++) top = row[j] > top ? row[j] : top;
        for (int64_t j = 0; j < seen; j++) sum += row[j] = expf(row[j] - top);
        for (int64_t j = 0; j < seen; j++) row[j] /= sum;
        for (int64_t j = seen; j < width; j++) row[j] = 0;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)T, head, (int)T, 1, S + before,
                (int)width, v, kd, 0, a, qd);
    if (before > 0)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)T, head, (int)before, 1, S,
                    (int)width, v0, kd, 1, a, qd);
    cgam_free(env, S);
    return CGAM_OK;
}

static cgam_status block(pass *p, int64_t l)
{
    const shape *s = &p->s;
    int64_t d = s->width, qd = s->heads * s->head, kd = s->heads_kv * s->head;
    cgam_status status = norm(p, "attn_norm", l);
    if (status == CGAM_OK) status = multiply(p, "attn_q", l, p->n, d, p->q, qd, false);
    if (status == CGAM_OK) status = multiply(p, "attn_k", l, p->n, d, p->k, kd, false);
    if (status == CGAM_OK) status = multiply(p, "attn_v", l, p->n, d, p->v, kd, false);
    if (status != CGAM_OK) return status;
    turn(p, p->q, s->heads);
    turn(p, p->k, s->heads_kv);
    status = cgam_parallel(p->lm->env, p->segments * s->heads, attend, p);
    if (status == CGAM_OK) status = multiply(p, "attn_output", l, p->a, qd, p->x, d, true);
    if (status == CGAM_OK) status = norm(p, "ffn_norm", l);
    if (status == CGAM_OK) status = multiply(p, "ffn_gate", l, p->n, d, p->gate, s->ff, false);
    if (status == CGAM_OK) status = multiply(p, "ffn_up", l, p->n, d, p->up, s->ff, false);
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < p->tokens * s->ff; i++)
        p->up[i] *= p->gate[i] / (1 + expf(-p->gate[i])); /* silu */
    return multiply(p, "ffn_down", l, p->up, s->ff, p->x, d, true);
}

/* ---- Batches ------------------------------------------------------------------------------ */
static void pass_free(pass *p)
{
    cgam_env *env = p->lm->env;
    void *blocks[] = {p->segment, p->token, p->x,    p->n,  p->q,    p->k,
                      p->v,       p->a,     p->gate, p->up, p->gain, p->rope_factors};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
}

static cgam_status pass_new(pass *p, cgam_lm *lm, int64_t tokens, int64_t segments)
{
    cgam_env *env = lm->env;
    *p = (pass){.lm = lm};
    cgam_status status = shape_of(lm, &p->s);
    if (status != CGAM_OK) return status;
    size_t T = (size_t)tokens, d = (size_t)p->s.width, ff = (size_t)p->s.ff;
    size_t qd = (size_t)(p->s.heads * p->s.head), kd = (size_t)(p->s.heads_kv * p->s.head);
    p->segment = cgam_alloc(env, (size_t)segments, sizeof *p->segment);
    p->token = cgam_alloc(env, T, sizeof *p->token);
    p->gain = cgam_alloc(env, d, sizeof *p->gain);
    p->rope_factors = cgam_alloc(env, (size_t)p->s.head / 2, sizeof *p->rope_factors);
    const struct {
        float **to;
        size_t width;
    } planes[] = {{&p->x, d},  {&p->n, d},  {&p->q, qd},    {&p->k, kd},
                  {&p->v, kd}, {&p->a, qd}, {&p->gate, ff}, {&p->up, ff}};
    bool fine = p->segment && p->token && p->gain && p->rope_factors;
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
        *planes[i].to = cgam_alloc(env, T * planes[i].width, sizeof(float));
        fine = fine && *planes[i].to;
    }
    if (!fine) return cgam_fail_nomem(env, "the activations of a batch");
    cgam_weights w;
    if (lm->f->gguf_find_tensor(lm->gguf, "rope_freqs.weight") >= 0) {
        status = cgam_weights_find(lm, "rope_freqs.weight", &w);
        if (status == CGAM_OK && w.columns != p->s.head / 2)
            status = cgam_fail(env, CGAM_E_FORMAT, "rope_freqs.weight has %lld factors for %lld",
                               (long long)w.columns, (long long)p->s.head / 2);
        if (status == CGAM_OK) cgam_weights_get(&w, 0, 1, p->rope_factors);
        p->factors = p->rope_factors;
    }
    return status;
}

static void add_segment(pass *p, const cgam_lm_prompt *prompt, int64_t from, int64_t to)
{
    p->segment[p->segments++] = (segment){p->tokens, to - from, from};
    for (int64_t k = from; k < to; k++) p->token[p->tokens++] = prompt->tokens[k];
}

static cgam_status embed(pass *p)
{
    cgam_weights w;
    cgam_status status = cgam_weights_find(p->lm, "token_embd.weight", &w);
    for (int64_t t = 0; t < p->tokens && status == CGAM_OK; t++)
        cgam_weights_get(&w, p->token[t], 1, p->x + t * p->s.width);
    return status;
}

/* Layer l of the states of every prompt of the batch, which are segments 1, 2, ... */
static void keep(const pass *p, int64_t l, float *states)
{
    int64_t d = p->s.width;
    for (int64_t i = 0; i + 1 < p->segments; i++) {
        const segment *seg = &p->segment[i + 1];
        memcpy(states + (i * (p->s.layers + 1) + l) * d, p->x + (seg->begin + seg->count - 1) * d,
               (size_t)d * sizeof *states);
    }
}

cgam_status cgam_exact_run(cgam_lm *lm, const cgam_lm_prompt *prompts, const cgam_packing *packing,
                           const cgam_lm_capture_opts *opts, cgam_lm_sink sink, void *user)
{
    int64_t most = packing->batch_prompts, done = packing->shared;
    pass p;
    size_t one = (size_t)((lm->info.layers + 1) * lm->info.width);
    cgam_status status = pass_new(&p, lm, packing->shared + packing->batch_tokens, most + 1);
    float *states = cgam_alloc(lm->env, (size_t)most * one, sizeof *states);
    if (status == CGAM_OK && !states) status = cgam_fail_nomem(lm->env, "states");
    for (int64_t b = 0; b < packing->batches && status == CGAM_OK; b++) {
        const int64_t *which = packing->order + packing->first[b];
        int64_t count = packing->first[b + 1] - packing->first[b];
        p.tokens = p.segments = 0;
        add_segment(&p, &prompts[which[0]], 0, packing->shared);
        for (int64_t i = 0; i < count; i++)
            add_segment(&p, &prompts[which[i]], packing->shared, prompts[which[i]].count);
        int64_t fresh = p.tokens - packing->shared;
        status = embed(&p);
        if (status == CGAM_OK) keep(&p, 0, states);
        for (int64_t l = 0; l < p.s.layers && status == CGAM_OK; l++) {
            status = cgam_interrupted(lm->env) ? CGAM_E_INTERRUPTED : block(&p, l);
            if (status == CGAM_OK) keep(&p, l + 1, states);
            double through = (double)(l + 1) / (double)p.s.layers;
            if (status == CGAM_OK)
                cgam_progress_tell(&opts->progress,
                                   (cgam_progress_at){"exact capture",
                                                      (double)done + (double)fresh * through,
                                                      (double)packing->tokens, "tokens", NAN});
        }
        for (int64_t i = 0; i < count && status == CGAM_OK; i++)
            status = sink(user, which[i], states + (size_t)i * one);
        if (status == CGAM_OK && opts->batch_end) status = opts->batch_end(user);
        done += fresh;
    }
    cgam_free(lm->env, states);
    pass_free(&p);
    return status;
}
