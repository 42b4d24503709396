/* sweep.c: every query under every context, at every pair of layers.
 *
 * Scores of a layer are matrix products with the unembedding, a few hundred queries at a time; what
 * is kept of them is one interval per query and context (sweep_step.c), or with the norm lens one
 * bit per coupling of the grid. There, with v_q, v_c and k the mean square of the (centred) query
 * and context and their mean product, and o the offsets of the lens:
 *
 *     score_m(t) = (a_m + t b_m) / sqrt(v_q + 2 t k + t^2 v_c + epsilon) + o_m */
#include "lm/sweep.h"

#include "base/env.h"
#include "base/names.h"

#include <math.h>

static const cgam_interval none = {INFINITY, -INFINITY};
enum { AT_ONCE = 256 }; /* queries scored together */

CGAM_NAMES(cgam_sweep_over, cgam_sweep_over, "restricted", "full")

struct cgam_sweep {
    cgam_env *env;
    cgam_sweep_input in; /* arrays borrowed only while it is made */
    int64_t contexts, counted;
    cgam_interval *over[2]; /* [contexts, layers, queries]; NULL on a grid */
    uint32_t *marks[2];     /* the same: bit g is set where lambda[g] is right */
    double lambda[CGAM_SWEEP_GRID];
};

void cgam_sweep_free(cgam_sweep *sweep)
{
    if (!sweep) return;
    for (int over = 0; over < 2; over++) {
        cgam_free(sweep->env, sweep->over[over]);
        cgam_free(sweep->env, sweep->marks[over]);
    }
    cgam_free(sweep->env, sweep);
}

static double norm_of(const float *x, int64_t n)
{
    double square = 0;
    for (int64_t j = 0; j < n; j++) square += (double)x[j] * (double)x[j];
    return sqrt(square);
}

/* The mean norm of the queries of each half at a layer. */
static void mean_norms(const cgam_sweep_input *in, int64_t d, int64_t layer, double mean[2])
{
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < in->queries; i++)
        sum[i % 2] += norm_of(in->zero + (i * in->layers + layer) * d, d);
    for (int h = 0; h < 2; h++) {
        int64_t n = (in->queries + 1 - h) / 2;
        mean[h] =
            in->in_sample ? (sum[0] + sum[1]) / (double)in->queries : sum[h] / (double)(n ? n : 1);
    }
}

/* What a context of that norm is multiplied by, besides lambda. */
static double scale_of(const cgam_sweep_input *in, double mean, double size)
{
    return in->relative && size > 0 ? mean / size : 1;
}

cgam_status cgam_sweep_sums(const cgam_lens *lens, const cgam_sweep_input *in,
                            const cgam_sweep_context *context, int64_t query_layer, double lambda,
                            float *out)
{
    int64_t d = cgam_lens_width(lens);
    double mean[2], scale[2];
    if (query_layer < 0 || query_layer >= in->layers)
        return cgam_fail(cgam_lens_env(lens), CGAM_E_ARG, "query layer %lld of %lld",
                         (long long)query_layer, (long long)in->layers);
    mean_norms(in, d, query_layer, mean);
    for (int h = 0; h < 2; h++)
        scale[h] = lambda * scale_of(in, mean[h], norm_of(context->half[h], d));
    for (int64_t i = 0; i < in->queries; i++) {
        const float *q = in->zero + (i * in->layers + query_layer) * d;
        int h = (int)(1 - i % 2);
        for (int64_t j = 0; j < d; j++)
            out[i * d + j] = (float)((double)q[j] + scale[h] * (double)context->half[h][j]);
    }
    return CGAM_OK;
}

typedef struct job {
    cgam_sweep *sweep;
    const cgam_lens *lens;
    const cgam_sweep_context *context;
    int64_t layer, vocab, first; /* first: query of this piece */
    const float *a;              /* [piece, vocab] of this layer */
    const float *b;              /* [2 * contexts, vocab] */
    const double *size;          /* [2 * contexts] norms */
    const int64_t *top;          /* [2 * contexts] tokens with the largest b */
    double mean[2];              /* norm of the queries of each half at this layer */
} job;

static cgam_interval rescale(cgam_interval x, double factor)
{
    if (x.from >= x.to || !(factor > 0)) return x;
    return (cgam_interval){x.from / factor, x.to / factor};
}

/* ---- On a grid ---------------------------------------------------------------------------- */
typedef struct spread {
    double qq, cc, qc; /* mean squares and mean product, centred where the norm is */
} spread;

static spread spread_of(const cgam_lens *lens, const float *q, const float *c)
{
    int64_t d = cgam_lens_width(lens);
    double sq = 0, sc = 0, qq = 0, cc = 0, qc = 0, n = (double)d;
    for (int64_t j = 0; j < d; j++) {
        double x = (double)q[j], y = (double)c[j];
        sq += x, sc += y, qq += x * x, cc += y * y, qc += x * y;
    }
    if (!cgam_lens_norm(lens).centred) sq = sc = 0;
    return (spread){(qq - sq * sq / n) / n, (cc - sc * sc / n) / n, (qc - sq * sc / n) / n};
}

/* Is y the largest of (a + t b) f + o over the n tokens, ties to the lowest? which NULL: all. */
static bool largest(int64_t n, const int32_t *which, const float *a, const float *b, const float *o,
                    double t, double f, int64_t y)
{
    enum { PIECE = 512 };
    int64_t token = which ? which[y] : y;
    double own = ((double)a[token] + t * (double)b[token]) * f + (o ? (double)o[token] : 0);
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        int64_t end = begin + PIECE < n ? begin + PIECE : n;
        bool beaten = false;
        for (int64_t k = begin; k < end; k++) {
            int64_t m = which ? which[k] : k;
            if (m < 0 || k == y) continue;
            double score = ((double)a[m] + t * (double)b[m]) * f + (o ? (double)o[m] : 0);
            beaten |= score > own || (score == own && k < y);
        }
        if (beaten) return false;
    }
    return true;
}

static void mark(const job *j, int64_t i, int64_t c, int64_t row, double factor, int64_t at)
{
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    int64_t label = in->target[i], d = cgam_lens_width(j->lens);
    const float *a = j->a + (i - j->first) * j->vocab, *b = j->b + row * j->vocab;
    const float *o = cgam_lens_offset(j->lens);
    s->marks[0][at] = s->marks[1][at] = 0;
    if (label < 0) return;
    spread v =
        spread_of(j->lens, in->zero + (i * in->layers + j->layer) * d, j->context[c].half[row % 2]);
    for (int64_t g = 0; g < in->grid; g++) {
        double t = s->lambda[g] * factor, f = 1;
        /* without an offset the common factor changes no winner */
        if (o)
            f = 1 /
                sqrt(fmax(0, v.qq + 2 * t * v.qc + t * t * v.cc) + cgam_lens_norm(j->lens).epsilon);
        if (!largest(in->labels, in->tokens, a, b, o, t, f, label)) continue;
        s->marks[CGAM_OVER_LABELS][at] |= UINT32_C(1) << g;
        if (largest(j->vocab, NULL, a, b, o, t, f, in->tokens[label]))
            s->marks[CGAM_OVER_VOCABULARY][at] |= UINT32_C(1) << g;
    }
}

/* ---- Exactly ------------------------------------------------------------------------------ */
/* al, bl: [labels] room. */
static void bracket(const job *j, int64_t i, int64_t row, double factor, int64_t at, int64_t top_a,
                    float *al, float *bl)
{
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    const float *a = j->a + (i - j->first) * j->vocab, *b = j->b + row * j->vocab;
    int64_t labels = 0, y = 0, label = in->target[i];
    s->over[0][at] = s->over[1][at] = none;
    if (label < 0) return;
    for (int64_t k = 0; k < in->labels; k++) {
        if (in->tokens[k] < 0) continue;
        if (k == label) y = labels;
        al[labels] = a[in->tokens[k]];
        bl[labels++] = b[in->tokens[k]];
    }
    s->over[CGAM_OVER_LABELS][at] = rescale(cgam_sweep_interval(labels, al, bl, y), factor);
    /* Who loses among the labels loses among all. */
    if (s->over[CGAM_OVER_LABELS][at].from < s->over[CGAM_OVER_LABELS][at].to)
        s->over[CGAM_OVER_VOCABULARY][at] =
            rescale(cgam_sweep_interval_from(j->vocab, a, b, in->tokens[label], 2,
                                             (int64_t[]){top_a, j->top[row]}),
                    factor);
}

static int64_t top_of(const float *x, int64_t n)
{
    int64_t top = 0;
    for (int64_t m = 1; m < n; m++)
        if (x[m] > x[top]) top = m;
    return top;
}

static cgam_status one_query(void *arg, int64_t k)
{
    const job *j = arg;
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    cgam_env *env = s->env;
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    float *al = cgam_alloc(env, 2 * (size_t)in->labels, sizeof *al);
    if (!al) return cgam_fail_nomem(env, "labels");
    int64_t i = j->first + k, other = 1 - i % 2, top_a = top_of(j->a + k * j->vocab, j->vocab);
    for (int64_t c = 0; c < s->contexts; c++) {
        int64_t row = 2 * c + other, at = (c * in->layers + j->layer) * in->queries + i;
        double factor = scale_of(in, j->mean[other], j->size[row]);
        if (in->lens == CGAM_LENS_NORM) mark(j, i, c, row, factor, at);
        else bracket(j, i, row, factor, at, top_a, al, al + in->labels);
    }
    cgam_free(env, al);
    return CGAM_OK;
}

/* What of the lens is linear: the norm divides by a factor later. */
static cgam_lens_kind linear_part(const cgam_sweep *s)
{
    return s->in.lens == CGAM_LENS_RAW ? CGAM_LENS_RAW : CGAM_LENS_GAIN;
}

/* Scores of all contexts, [2 * contexts, vocab], their norms and the tokens that score highest. */
static cgam_status score_contexts(const cgam_lens *lens, const cgam_sweep *s,
                                  const cgam_sweep_context *context, float *b, double *size,
                                  int64_t *top)
{
    int64_t d = cgam_lens_width(lens), rows = 2 * s->contexts;
    float *x = cgam_alloc(s->env, (size_t)(rows * d), sizeof *x);
    if (!x) return cgam_fail_nomem(s->env, "contexts");
    for (int64_t r = 0; r < rows; r++) {
        const float *from = context[r / 2].half[r % 2];
        for (int64_t k = 0; k < d; k++) x[r * d + k] = from[k];
        size[r] = norm_of(from, d);
    }
    cgam_status status = cgam_lens_scores(lens, linear_part(s), rows, x, d, b);
    cgam_free(s->env, x);
    for (int64_t r = 0; r < rows && status == CGAM_OK; r++)
        top[r] = top_of(b + r * cgam_lens_vocab(lens), cgam_lens_vocab(lens));
    return status;
}

static cgam_status fill(cgam_sweep *s, const cgam_lens *lens, const cgam_sweep_context *context,
                        const cgam_progress *progress, float *a, float *b, double *size,
                        int64_t *top)
{
    const cgam_sweep_input *in = &s->in;
    int64_t d = cgam_lens_width(lens), stride = in->layers * d;
    cgam_status status = score_contexts(lens, s, context, b, size, top);
    for (int64_t l = 0; l < in->layers && status == CGAM_OK; l++) {
        job j = {.sweep = s,
                 .lens = lens,
                 .context = context,
                 .layer = l,
                 .vocab = cgam_lens_vocab(lens),
                 .a = a,
                 .b = b,
                 .size = size,
                 .top = top};
        mean_norms(in, d, l, j.mean);
        for (j.first = 0; j.first < in->queries && status == CGAM_OK; j.first += AT_ONCE) {
            int64_t n = in->queries - j.first < AT_ONCE ? in->queries - j.first : AT_ONCE;
            status = cgam_lens_scores(lens, linear_part(s), n, in->zero + j.first * stride + l * d,
                                      stride, a);
            if (status == CGAM_OK) status = cgam_parallel(s->env, n, one_query, &j);
        }
        cgam_progress_tell(progress, (cgam_progress_at){"sweep", (double)(l + 1),
                                                        (double)in->layers, "layers", NAN});
    }
    return status;
}

static cgam_status check(const cgam_lens *lens, const cgam_sweep_input *in, int64_t contexts)
{
    cgam_env *env = cgam_lens_env(lens);
    if (in->queries < 2 || in->labels < 2 || contexts < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "a sweep needs 2 queries, 2 labels and a context, not "
                         "%lld, %lld and %lld",
                         (long long)in->queries, (long long)in->labels, (long long)contexts);
    if (in->lens == CGAM_LENS_NORM && (in->grid < 1 || in->grid > CGAM_SWEEP_GRID))
        return cgam_fail(env, CGAM_E_ARG,
                         "the norm lens is not linear: it needs a grid of 1 to %d couplings, not "
                         "%lld",
                         CGAM_SWEEP_GRID, (long long)in->grid);
    return CGAM_OK;
}

cgam_status cgam_sweep_new(const cgam_lens *lens, const cgam_sweep_input *input, int64_t contexts,
                           const cgam_sweep_context *context, const cgam_progress *progress,
                           cgam_sweep **out)
{
    *out = NULL;
    cgam_env *env = cgam_lens_env(lens);
    cgam_status status = check(lens, input, contexts);
    if (status != CGAM_OK) return status;
    cgam_sweep *s = cgam_zalloc(env, 1, sizeof *s);
    if (!s) return cgam_fail_nomem(env, "a sweep");
    s->env = env;
    s->in = *input;
    s->contexts = contexts;
    bool grid = input->lens == CGAM_LENS_NORM, fine = true;
    size_t cells = (size_t)(contexts * input->layers * input->queries);
    size_t vocab = (size_t)cgam_lens_vocab(lens);
    size_t piece = (size_t)(input->queries < AT_ONCE ? input->queries : AT_ONCE);
    for (int over = 0; over < 2; over++) {
        if (grid) s->marks[over] = cgam_alloc(env, cells, sizeof **s->marks);
        else s->over[over] = cgam_alloc(env, cells, sizeof **s->over);
        fine = fine && (s->marks[over] || s->over[over]);
    }
    for (int64_t g = 0; grid && g < input->grid; g++) s->lambda[g] = input->lambda[g];
    float *a = cgam_alloc(env, piece * vocab, sizeof *a);
    float *b = cgam_alloc(env, 2 * (size_t)contexts * vocab, sizeof *b);
    double *size = cgam_alloc(env, 2 * (size_t)contexts, sizeof *size);
    int64_t *top = cgam_alloc(env, 2 * (size_t)contexts, sizeof *top);
    if (!fine || !a || !b || !size || !top) status = cgam_fail_nomem(env, "a sweep");
    if (status == CGAM_OK) status = fill(s, lens, context, progress, a, b, size, top);
    for (int64_t i = 0; i < input->queries; i++) s->counted += input->target[i] >= 0;
    cgam_free(env, a);
    cgam_free(env, b);
    cgam_free(env, size);
    cgam_free(env, top);
    s->in.zero = NULL;
    s->in.lambda = NULL;
    s->in.tokens = s->in.target = NULL;
    if (status == CGAM_OK) *out = s;
    else cgam_sweep_free(s);
    return status;
}

/* ---- Choosing ----------------------------------------------------------------------------- */
static int64_t cell(const cgam_sweep *s, int64_t context, int64_t query_layer)
{
    return (context * s->in.layers + query_layer) * s->in.queries;
}

const cgam_interval *cgam_sweep_intervals(const cgam_sweep *s, cgam_sweep_over over,
                                          int64_t context, int64_t query_layer)
{
    return s->over[over] ? s->over[over] + cell(s, context, query_layer) : NULL;
}

/* Is query i of the cell at `at` right? */
static bool hit(const cgam_sweep *s, cgam_sweep_over over, int64_t at, int64_t i, double lambda)
{
    if (s->over[over]) {
        cgam_interval x = s->over[over][at + i];
        return x.from <= lambda && lambda < x.to;
    }
    for (int64_t g = 0; g < s->in.grid; g++)
        if (s->lambda[g] == lambda) return s->marks[over][at + i] >> g & 1;
    return false;
}

int64_t cgam_sweep_hits(const cgam_sweep *s, cgam_sweep_over over, int64_t context,
                        int64_t query_layer, double lambda)
{
    int64_t held = 0, at = cell(s, context, query_layer);
    for (int64_t i = 0; i < s->in.queries; i++) held += hit(s, over, at, i, lambda);
    return held;
}

/* The best coupling of a pair on the queries of one half (0, 1) or on all (2). */
static cgam_status step_of(const cgam_sweep *s, cgam_sweep_over over, int64_t at, int half,
                           cgam_interval *scratch, cgam_step *out)
{
    int64_t used = 0, n = s->in.queries;
    if (s->over[over]) {
        for (int64_t i = 0; i < n; i++)
            if (half == 2 || i % 2 == half) scratch[used++] = s->over[over][at + i];
        return cgam_sweep_step(s->env, used, scratch, out);
    }
    *out = (cgam_step){-1, {0, 0}};
    for (int64_t g = 0; g < s->in.grid; g++) {
        int64_t held = 0;
        for (int64_t i = 0; i < n; i++)
            if (half == 2 || i % 2 == half) held += s->marks[over][at + i] >> g & 1;
        if (held > out->count) *out = (cgam_step){held, {s->lambda[g], s->lambda[g]}};
    }
    return CGAM_OK;
}

cgam_status cgam_sweep_pair(const cgam_sweep *s, cgam_sweep_over over, int64_t context,
                            int64_t query_layer, cgam_step *out)
{
    cgam_interval *scratch = cgam_alloc(s->env, (size_t)s->in.queries, sizeof *scratch);
    if (!scratch) return cgam_fail_nomem(s->env, "a step function");
    cgam_status status = step_of(s, over, cell(s, context, query_layer), 2, scratch, out);
    cgam_free(s->env, scratch);
    return status;
}

/* steps [count * layers] of all pairs on one half or on all; returns the one chosen. */
static cgam_status best_on(const cgam_sweep *s, cgam_sweep_over over, int64_t first, int64_t count,
                           int half, cgam_interval *scratch, cgam_step *steps, int64_t *best)
{
    *best = 0;
    for (int64_t p = 0; p < count * s->in.layers; p++) {
        int64_t at = cell(s, first + p / s->in.layers, p % s->in.layers);
        cgam_status status = step_of(s, over, at, half, scratch, &steps[p]);
        if (status != CGAM_OK) return status;
        const cgam_step *top = &steps[*best];
        if (steps[p].count > top->count ||
            (steps[p].count == top->count &&
             cgam_sweep_breadth(steps[p].lambda) > cgam_sweep_breadth(top->lambda)))
            *best = p;
    }
    return CGAM_OK;
}

/* How many queries of the other half than `half` a pair is right about; right NULL: only that. */
static int64_t other_half(const cgam_sweep *s, cgam_sweep_over over, int64_t at, int half,
                          double lambda, bool *right)
{
    int64_t held = 0;
    for (int64_t i = 1 - half; i < s->in.queries; i += 2) {
        bool h = hit(s, over, at, i, lambda);
        held += h;
        if (right) right[i] = h;
    }
    return held;
}

cgam_status cgam_sweep_choose(const cgam_sweep *s, cgam_sweep_over over, int64_t first,
                              int64_t count, bool *right, cgam_sweep_best *out)
{
    int64_t layers = s->in.layers, pairs = count * layers, p, held = 0;
    double counted = s->counted ? (double)s->counted : 1, ties_held = 0;
    *out = (cgam_sweep_best){0};
    cgam_interval *scratch = cgam_alloc(s->env, (size_t)s->in.queries, sizeof *scratch);
    cgam_step *steps = cgam_alloc(s->env, (size_t)pairs, sizeof *steps);
    cgam_status status = scratch && steps ? best_on(s, over, first, count, 2, scratch, steps, &p)
                                          : cgam_fail_nomem(s->env, "step functions");
    if (status == CGAM_OK)
        *out = (cgam_sweep_best){.context = first + p / layers,
                                 .query_layer = p % layers,
                                 .lambda = steps[p].lambda,
                                 .accuracy = (double)steps[p].count / counted};
    for (int half = 0; half < 2 && status == CGAM_OK; half++) {
        status = best_on(s, over, first, count, half, scratch, steps, &p);
        if (status != CGAM_OK) break;
        held += other_half(s, over, cell(s, first + p / layers, p % layers), half,
                           cgam_sweep_inside(steps[p].lambda), right);
        int64_t tied = 0, sum = 0;
        for (int64_t k = 0; k < pairs; k++) {
            if (steps[k].count != steps[p].count) continue;
            tied++;
            sum += other_half(s, over, cell(s, first + k / layers, k % layers), half,
                              cgam_sweep_inside(steps[k].lambda), NULL);
        }
        ties_held += (double)sum / (double)tied;
        out->tied += (double)tied / 2;
    }
    out->held_out = (double)held / counted;
    out->held_out_ties = ties_held / counted;
    cgam_free(s->env, scratch);
    cgam_free(s->env, steps);
    return status;
}
