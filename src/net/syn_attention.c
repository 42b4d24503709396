/* syn_attention.c: the energy of attention (Hoover et al. 2023, "Energy Transformer", eq. 2),
 *
 *   E = -gain/beta sum over heads h and queries q of log sum over keys k of exp(beta <Qhq, Khk>),
 *   Qhq = WQh x_q,  Khk = WKh y_k   (without projections: the rows themselves).
 *
 * With weights p = softmax over keys of beta <Q, K>, the currents are
 *   into x_q: gain sum over h of WQh' (sum over k p_hqk Khk)
 *   into y_k: gain sum over h of WKh' (sum over q p_hqk Qhq).
 * Tangents differentiate both: dp = beta p (dl - <p, dl>), dl = <dQ, K> + <Q, dK>. */
#include "base/blas.h"
#include "net/gradient.h"

#include <math.h>
#include <string.h>

cgam_attention_opts cgam_attention_opts_default(void)
{
    return (cgam_attention_opts){.beta = 1, .heads = 1};
}

/* One head, all arrays in scratch: Q, dQ [nq, w], K, dK [nk, w], p, dp [nq, nk], back [n, w]. */
typedef struct head {
    int64_t nq, nk, w;
    double *Q, *K, *p, *dQ, *dK, *dp, *back;
} head;

static int64_t place_buffers(const struct cgam_attention *a, double *scratch, head *h)
{
    int64_t nq = a->queries, nk = a->keys, w = a->opts.width ? a->opts.width : a->dx, used = 0;
    int64_t most = nq > nk ? nq : nk;
    const int64_t lengths[] = {nq * w, nk * w, nq * nk, nq * w, nk * w, nq * nk, most * w};
    double *at[7] = {0};
    for (int i = 0; i < 7; i++) {
        if (scratch) at[i] = scratch + used;
        used += lengths[i];
    }
    if (h) *h = (head){nq, nk, w, at[0], at[1], at[2], at[3], at[4], at[5], at[6]};
    return used;
}

/* out[n, m] (+)= a [n, k] b', b [m, k] */
static void multiply_t(int64_t n, int64_t m, int64_t k, const double *a, const double *b,
                       double *out, bool more)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)m, (int)k, 1, a, (int)k, b,
                (int)k, more, out, (int)m);
}

/* out[n, m] (+)= a [n, k] b, or a' b with a [k, n]; b [k, m] */
static void multiply(bool transposed, int64_t n, int64_t m, int64_t k, double gain, const double *a,
                     const double *b, double *out, bool more)
{
    cblas_dgemm(CblasRowMajor, transposed ? CblasTrans : CblasNoTrans, CblasNoTrans, (int)n, (int)m,
                (int)k, gain, a, (int)(transposed ? n : k), b, (int)m, more, out, (int)m);
}

/* Rows [n, d] through W [w, d], or as they are. */
static void project_rows(const double *W, int64_t n, int64_t d, int64_t w, const double *rows,
                         double *out)
{
    if (W) multiply_t(n, w, d, rows, W, out, false);
    else memcpy(out, rows, (size_t)(n * d) * sizeof *out);
}

/* cur[n, d] += gain back [n, w] W */
static void project_back(const double *W, int64_t n, int64_t d, int64_t w, double gain,
                         const double *back, double *cur)
{
    if (W) {
        multiply(false, n, d, w, gain, back, W, cur, true);
        return;
    }
    for (int64_t i = 0; i < n * d; i++) cur[i] += gain * back[i];
}

static const double *head_weights(const double *W, int64_t index, int64_t w, int64_t d)
{
    return W ? W + index * w * d : NULL;
}

/* p from the logits in place; gives the sum over queries of lse / beta. */
static double softmax_rows(const struct cgam_attention *a, head *h)
{
    double beta = a->opts.beta, total = 0;
    multiply_t(h->nq, h->nk, h->w, h->Q, h->K, h->p, false);
    for (int64_t q = 0; q < h->nq; q++) {
        double *p = h->p + q * h->nk, top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < h->nk; k++) {
            if (a->opts.exclude_self && k == q) continue;
            top = fmax(top, p[k]);
        }
        for (int64_t k = 0; k < h->nk; k++) {
            bool hidden = a->opts.exclude_self && k == q;
            p[k] = hidden ? 0 : exp(beta * (p[k] - top));
            sum += p[k];
        }
        for (int64_t k = 0; k < h->nk; k++) p[k] /= sum;
        total += top + log(sum) / beta;
    }
    return total;
}

static void prepare_head(const cgam_syn *s, cgam_frame *f, int64_t index, head *h)
{
    const struct cgam_attention *a = s->attention;
    project_rows(head_weights(a->opts.WQ, index, h->w, a->dx), h->nq, a->dx, h->w, f->act[0], h->Q);
    project_rows(head_weights(a->opts.WK, index, h->w, a->dy), h->nk, a->dy, h->w, f->act[1], h->K);
}

static cgam_status attention_eval(const cgam_syn *s, cgam_frame *f)
{
    const struct cgam_attention *a = s->attention;
    head h;
    place_buffers(a, f->scratch, &h);
    f->energy = 0;
    for (int64_t i = 0; i < a->opts.heads; i++) {
        prepare_head(s, f, i, &h);
        f->energy -= s->gain * softmax_rows(a, &h);
        if (f->cur[0]) {
            multiply(false, h.nq, h.w, h.nk, 1, h.p, h.K, h.back, false);
            project_back(head_weights(a->opts.WQ, i, h.w, a->dx), h.nq, a->dx, h.w, s->gain, h.back,
                         f->cur[0]);
        }
        if (f->cur[1]) {
            multiply(true, h.nk, h.w, h.nq, 1, h.p, h.Q, h.back, false);
            project_back(head_weights(a->opts.WK, i, h.w, a->dy), h.nk, a->dy, h.w, s->gain, h.back,
                         f->cur[1]);
        }
    }
    return isfinite(f->energy) ? CGAM_OK : CGAM_E_VALUE;
}

/* dp in h->dp = beta p (dl - <p, dl>), and the logits' part of dE/dbeta: the sum over queries of <dp, log p> / beta. */
static double softmax_change(const struct cgam_attention *a, head *h)
{
    double total = 0, beta = a->opts.beta;
    multiply_t(h->nq, h->nk, h->w, h->dQ, h->K, h->dp, false);
    multiply_t(h->nq, h->nk, h->w, h->Q, h->dK, h->dp, true);
    for (int64_t q = 0; q < h->nq; q++) {
        double *p = h->p + q * h->nk, *dp = h->dp + q * h->nk, mean = 0;
        for (int64_t k = 0; k < h->nk; k++) mean += p[k] * dp[k];
        for (int64_t k = 0; k < h->nk; k++) {
            dp[k] = beta * p[k] * (dp[k] - mean);
            if (p[k] > 0) total += dp[k] * log(p[k]) / beta;
        }
    }
    return total;
}

static cgam_status attention_tangent(const cgam_syn *s, cgam_frame *f)
{
    const struct cgam_attention *a = s->attention;
    head h;
    place_buffers(a, f->scratch, &h);
    for (int64_t i = 0; i < a->opts.heads; i++) {
        const double *WQ = head_weights(a->opts.WQ, i, h.w, a->dx);
        const double *WK = head_weights(a->opts.WK, i, h.w, a->dy);
        prepare_head(s, f, i, &h);
        (void)softmax_rows(a, &h);
        project_rows(WQ, h.nq, a->dx, h.w, f->v[0], h.dQ);
        project_rows(WK, h.nk, a->dy, h.w, f->v[1], h.dK);
        (void)softmax_change(a, &h);
        if (f->cur[0]) {
            multiply(false, h.nq, h.w, h.nk, 1, h.dp, h.K, h.back, false);
            multiply(false, h.nq, h.w, h.nk, 1, h.p, h.dK, h.back, true);
            project_back(WQ, h.nq, a->dx, h.w, s->gain, h.back, f->cur[0]);
        }
        if (f->cur[1]) {
            multiply(true, h.nk, h.w, h.nq, 1, h.dp, h.Q, h.back, false);
            multiply(true, h.nk, h.w, h.nq, 1, h.p, h.dQ, h.back, true);
            project_back(WK, h.nk, a->dy, h.w, s->gain, h.back, f->cur[1]);
        }
    }
    return CGAM_OK;
}

/* The sum over queries of <p, logits> - lse / beta = sum p log p / beta. */
static double softmax_tilt(const struct cgam_attention *a, const head *h)
{
    double total = 0;
    for (int64_t i = 0; i < h->nq * h->nk; i++)
        if (h->p[i] > 0) total += h->p[i] * log(h->p[i]);
    return total / a->opts.beta;
}

/* out [w, d] += gain back' rows, back [n, w] */
static void project_slope(int64_t n, int64_t d, int64_t w, double gain, const double *back,
                          const double *rows, double *out)
{
    multiply(true, w, d, n, gain, back, rows, out, true);
}

/* With m = p K and its like, dE/dWQ = -gain m' x, dE/dWK = -gain (p' Q)' y, and dE/dbeta = -gain / beta times the sum over
 * queries of <p, logits> - lse / beta. */
static cgam_status attention_slope(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                                   double factor, double *out)
{
    const struct cgam_attention *a = s->attention;
    head h;
    place_buffers(a, f->scratch, &h);
    const double gain = -factor * s->gain;
    cgam_frame at = *f;
    for (int64_t i = 0; i < a->opts.heads; i++) {
        bool queries = what == CGAM_LEARNED_QUERIES;
        double change = 0;
        prepare_head(s, &at, i, &h);
        (void)softmax_rows(a, &h);
        if (tangent) {
            project_rows(head_weights(a->opts.WQ, i, h.w, a->dx), h.nq, a->dx, h.w, f->v[0], h.dQ);
            project_rows(head_weights(a->opts.WK, i, h.w, a->dy), h.nk, a->dy, h.w, f->v[1], h.dK);
            change = softmax_change(a, &h);
        }
        if (what == CGAM_LEARNED_BETA) {
            *out += gain / a->opts.beta * (tangent ? change : softmax_tilt(a, &h));
            continue;
        }
        const double *other = queries ? h.K : h.Q, *d_other = queries ? h.dK : h.dQ;
        int64_t n = queries ? h.nq : h.nk, m = queries ? h.nk : h.nq, d = queries ? a->dx : a->dy;
        double *to = out + i * h.w * d;
        multiply(!queries, n, h.w, m, 1, h.p, other, h.back, false);
        project_slope(n, d, h.w, gain, h.back, tangent ? f->v[!queries] : f->act[!queries], to);
        if (!tangent) continue;
        multiply(!queries, n, h.w, m, 1, h.dp, other, h.back, false);
        multiply(!queries, n, h.w, m, 1, h.p, d_other, h.back, true);
        project_slope(n, d, h.w, gain, h.back, f->act[!queries], to);
    }
    return CGAM_OK;
}

const cgam_syn_kind cgam_syn_attention = {.name = "attention",
                                          .eval = attention_eval,
                                          .tangent = attention_tangent,
                                          .slope = attention_slope};

/* A layer as a list of rows: [n, d], or a single row. */
static cgam_status as_rows(cgam_net *net, const char *name, int layer, int64_t *n, int64_t *d)
{
    const cgam_layer *l = &net->layer[layer];
    if (l->ndim != 1 && l->ndim != 2)
        return cgam_fail(net->env, CGAM_E_SHAPE,
                         "synapse '%s': layer '%s' has %d dimensions, attention needs 1 or 2", name,
                         l->name, l->ndim);
    *d = l->shape[l->ndim - 1];
    *n = l->size / *d;
    if (*n > INT32_MAX / 2 || *d > INT32_MAX / 2)
        return cgam_fail(net->env, CGAM_E_SHAPE, "synapse '%s': layer '%s' is too large", name,
                         l->name);
    return CGAM_OK;
}

static cgam_status copy_weights(cgam_net *net, const char *name, const double **W, int64_t count)
{
    const double *from = *W;
    double *copy = cgam_alloc(net->env, (size_t)count, sizeof *copy);
    *W = copy;
    if (!copy) return cgam_fail_nomem(net->env, "a synapse");
    memcpy(copy, from, (size_t)count * sizeof *copy);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(copy[i]))
            return cgam_fail(net->env, CGAM_E_VALUE,
                             "synapse '%s': projection: number %lld is not "
                             "finite",
                             name, (long long)i);
    return CGAM_OK;
}

static cgam_status fill_synapse(cgam_net *net, cgam_syn *s, const cgam_attention_opts *opts)
{
    cgam_env *env = net->env;
    struct cgam_attention *a = s->attention;
    cgam_status status = as_rows(net, s->name, s->layer[0], &a->queries, &a->dx);
    if (status == CGAM_OK) status = as_rows(net, s->name, s->layer[1], &a->keys, &a->dy);
    if (status != CGAM_OK) return status;
    if (!(opts->beta > 0) || !isfinite(opts->beta) || opts->heads < 1 || opts->heads > 1 << 16)
        return cgam_fail(
            env, CGAM_E_ARG,
            "synapse '%s': beta is %g and heads is %lld; beta must be above 0, heads from 1 to 65536",
            s->name, opts->beta, (long long)opts->heads);
    if (opts->width < 0 || opts->width > 1 << 20 || (opts->width > 0) != (opts->WQ && opts->WK) ||
        (!opts->width && (opts->WQ || opts->WK || opts->heads != 1)))
        return cgam_fail(env, CGAM_E_ARG,
                         "synapse '%s': give the width and both projections, or none of the three",
                         s->name);
    if (!opts->width && a->dx != a->dy)
        return cgam_fail(
            env, CGAM_E_SHAPE,
            "synapse '%s': rows of '%s' and '%s' have %lld and %lld numbers; without projections they must be equal",
            s->name, net->layer[s->layer[0]].name, net->layer[s->layer[1]].name, (long long)a->dx,
            (long long)a->dy);
    if (opts->exclude_self && (a->queries != a->keys || a->keys < 2))
        return cgam_fail(
            env, CGAM_E_SHAPE,
            "synapse '%s': excluding a row's own key requires as many queries as keys, and at least 2; there are %lld and %lld",
            s->name, (long long)a->queries, (long long)a->keys);
    if (opts->heads * opts->width > (INT64_C(1) << 40) / (a->dx > a->dy ? a->dx : a->dy))
        return cgam_fail(env, CGAM_E_SHAPE, "synapse '%s': %lld heads of width %lld are too many",
                         s->name, (long long)opts->heads, (long long)opts->width);
    if (a->queries > (INT64_C(1) << 40) / a->keys)
        return cgam_fail(env, CGAM_E_SHAPE, "synapse '%s': too many pairs of rows", s->name);
    a->opts.beta = opts->beta;
    a->opts.heads = opts->heads;
    a->opts.width = opts->width;
    a->opts.exclude_self = opts->exclude_self;
    if (opts->width) {
        a->opts.WQ = opts->WQ;
        status = copy_weights(net, s->name, &a->opts.WQ, opts->heads * opts->width * a->dx);
        if (status != CGAM_OK) return status;
        a->opts.WK = opts->WK;
        status = copy_weights(net, s->name, &a->opts.WK, opts->heads * opts->width * a->dy);
    }
    s->scratch = place_buffers(a, NULL, NULL);
    return status;
}

cgam_status cgam_net_add_attention(cgam_net *net, const char *name, int x, int y,
                                   const cgam_attention_opts *opts, double gain)
{
    cgam_syn *s;
    cgam_attention_opts o = opts ? *opts : cgam_attention_opts_default();
    cgam_status status =
        cgam_net_begin(net, &cgam_syn_attention, name, 2, (const int[]){x, y}, gain, &s);
    if (status != CGAM_OK) return status;
    s->attention = cgam_zalloc(net->env, 1, sizeof *s->attention);
    status = s->attention ? fill_synapse(net, s, &o) : cgam_fail_nomem(net->env, "a synapse");
    return cgam_net_end(net, status);
}
