/* sweep.c: exact couplings.
 *
 * Token y wins over m where (a_y - a_m) + lambda (b_y - b_m) > 0. With r = (a_m - a_y)/(b_y - b_m)
 * that is lambda > r where b_y > b_m, lambda < r where b_y < b_m, and a_y > a_m where they are
 * equal. So the interval is the intersection of half-lines, found in one pass over the vocabulary,
 * which ends early once it is empty. A factor on the context divides the interval's ends. */
#include "base/env.h"

#include <cgam/sweep.h>
#include <math.h>
#include <stdlib.h>

static const cgam_interval none = {INFINITY, -INFINITY};

cgam_interval cgam_sweep_interval(int64_t n, const float *a, const float *b, int64_t y)
{
    enum { PIECE = 512 };
    const double ay = (double)a[y], by = (double)b[y];
    double from = 0, to = INFINITY;
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        int64_t end = begin + PIECE < n ? begin + PIECE : n;
        double low = from, high = to;
        bool beaten = false;
        for (int64_t m = begin; m < end; m++) {
            double rise = by - (double)b[m], gap = (double)a[m] - ay, r = gap / rise;
            /* y itself gives 0/0, which no comparison holds for */
            low = rise > 0 && r > low ? r : low;
            high = rise < 0 && r < high ? r : high;
            beaten |= rise == 0 && (gap > 0 || (gap == 0 && m < y));
        }
        from = low;
        to = high;
        if (beaten || from >= to) return none;
    }
    return (cgam_interval){from, to};
}

/* ---- Step functions ----------------------------------------------------------------------- */
/* How wide a range is for its size, from 0 to 1: a factor of two is as wide anywhere. */
static double breadth(cgam_interval x)
{
    return isfinite(x.to) ? (x.to - x.from) / (x.to + x.from) : 1;
}

typedef struct edge {
    double at;
    int change;
} edge;

static int by_place(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->change - y->change; /* an interval ends before the next begins: ends are open */
}

cgam_status cgam_sweep_step(cgam_env *env, int64_t n, const cgam_interval *of, cgam_step *out)
{
    *out = (cgam_step){0, {0, INFINITY}};
    edge *edges = cgam_alloc(env, 2 * (size_t)n, sizeof *edges);
    if (!edges) return cgam_fail_nomem(env, "a step function");
    int64_t used = 0, held = 0;
    for (int64_t i = 0; i < n; i++) {
        if (of[i].from >= of[i].to) continue;
        edges[used++] = (edge){of[i].from, 1};
        if (isfinite(of[i].to)) edges[used++] = (edge){of[i].to, -1};
    }
    if (used > 0) qsort(edges, (size_t)used, sizeof *edges, by_place);
    for (int64_t i = 0; i < used; i++) {
        held += edges[i].change;
        cgam_interval here = {edges[i].at, i + 1 < used ? edges[i + 1].at : INFINITY};
        if (!(here.to > here.from)) continue;
        bool wider = breadth(here) > breadth(out->lambda);
        if (held > out->count || (held == out->count && held > 0 && wider))
            *out = (cgam_step){held, here};
    }
    cgam_free(env, edges);
    return CGAM_OK;
}

int64_t cgam_sweep_count(int64_t n, const cgam_interval *of, double lambda)
{
    int64_t held = 0;
    for (int64_t i = 0; i < n; i++) held += of[i].from <= lambda && lambda < of[i].to;
    return held;
}

double cgam_sweep_inside(cgam_interval range)
{
    if (isfinite(range.to)) return range.from + (range.to - range.from) / 2;
    return range.from > 0 ? 2 * range.from : 1;
}

/* ---- The sweep ---------------------------------------------------------------------------- */
struct cgam_sweep {
    cgam_env *env;
    cgam_sweep_input in; /* arrays borrowed only while it is made */
    int64_t contexts, counted;
    bool *left_out;         /* [queries] */
    cgam_interval *over[2]; /* [contexts, layers, queries] */
};

void cgam_sweep_free(cgam_sweep *sweep)
{
    if (!sweep) return;
    cgam_free(sweep->env, sweep->over[0]);
    cgam_free(sweep->env, sweep->over[1]);
    cgam_free(sweep->env, sweep->left_out);
    cgam_free(sweep->env, sweep);
}

static double norm_of(const float *x, int64_t n)
{
    double square = 0;
    for (int64_t j = 0; j < n; j++) square += (double)x[j] * (double)x[j];
    return sqrt(square);
}

typedef struct job {
    cgam_sweep *sweep;
    int64_t layer, vocab;
    const float *a;     /* [queries, vocab] of this layer */
    const float *b;     /* [2 * contexts, vocab] */
    const double *size; /* [2 * contexts] norms */
    double mean[2];     /* norm of the queries of each half at this layer */
} job;

static cgam_interval rescale(cgam_interval x, double factor)
{
    if (x.from >= x.to || !(factor > 0)) return x;
    return (cgam_interval){x.from / factor, x.to / factor};
}

static cgam_status one_query(void *arg, int64_t i)
{
    const job *j = arg;
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    cgam_env *env = s->env;
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    float *al = cgam_alloc(env, 2 * (size_t)in->labels, sizeof *al), *bl = al + in->labels;
    if (!al) return cgam_fail_nomem(env, "labels");
    const float *a = j->a + i * j->vocab;
    int64_t other = 1 - i % 2, label = in->target[i];
    for (int64_t c = 0; c < s->contexts; c++) {
        int64_t row = 2 * c + other, at = (c * in->layers + j->layer) * in->queries + i;
        const float *b = j->b + row * j->vocab;
        double factor = in->relative && j->size[row] > 0 ? j->mean[other] / j->size[row] : 1;
        s->over[0][at] = s->over[1][at] = none;
        if (label < 0) continue;
        int64_t labels = 0, y = 0;
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
                rescale(cgam_sweep_interval(j->vocab, a, b, in->tokens[label]), factor);
    }
    cgam_free(env, al);
    return CGAM_OK;
}

/* Scores of all contexts, [2 * contexts, vocab], and their norms. */
static cgam_status score_contexts(const cgam_lens *lens, const cgam_sweep *s,
                                  const cgam_sweep_context *context, float *b, double *size)
{
    int64_t d = cgam_lens_width(lens), rows = 2 * s->contexts;
    float *x = cgam_alloc(s->env, (size_t)(rows * d), sizeof *x);
    if (!x) return cgam_fail_nomem(s->env, "contexts");
    for (int64_t r = 0; r < rows; r++) {
        const float *from = context[r / 2].half[r % 2];
        for (int64_t k = 0; k < d; k++) x[r * d + k] = from[k];
        size[r] = norm_of(from, d);
    }
    cgam_status status = cgam_lens_scores(lens, s->in.lens, rows, x, d, b);
    cgam_free(s->env, x);
    return status;
}

static cgam_status fill(cgam_sweep *s, const cgam_lens *lens, const cgam_sweep_context *context,
                        const cgam_lm_progress *progress, float *a, float *b, double *size)
{
    const cgam_sweep_input *in = &s->in;
    int64_t d = cgam_lens_width(lens), stride = in->layers * d;
    cgam_status status = score_contexts(lens, s, context, b, size);
    for (int64_t l = 0; l < in->layers && status == CGAM_OK; l++) {
        job j = {
            .sweep = s, .layer = l, .vocab = cgam_lens_vocab(lens), .a = a, .b = b, .size = size};
        double sum[2] = {0, 0};
        for (int64_t i = 0; i < in->queries; i++)
            sum[i % 2] += norm_of(in->zero + i * stride + l * d, d);
        for (int h = 0; h < 2; h++) {
            int64_t n = (in->queries + 1 - h) / 2;
            j.mean[h] = in->in_sample ? (sum[0] + sum[1]) / (double)in->queries
                                      : sum[h] / (double)(n ? n : 1);
        }
        status = cgam_lens_scores(lens, in->lens, in->queries, in->zero + l * d, stride, a);
        if (status == CGAM_OK) status = cgam_parallel(s->env, in->queries, one_query, &j);
        if (progress && progress->report)
            progress->report(progress->user, "sweep", (double)(l + 1), (double)in->layers,
                             "layers");
    }
    return status;
}

cgam_status cgam_sweep_new(const cgam_lens *lens, const cgam_sweep_input *input, int64_t contexts,
                           const cgam_sweep_context *context, const cgam_lm_progress *progress,
                           cgam_sweep **out)
{
    *out = NULL;
    cgam_env *env = cgam_lens_env(lens);
    if (input->lens == CGAM_LENS_NORM)
        return cgam_fail(env, CGAM_E_ARG,
                         "the norm lens is not linear: couplings are exact with "
                         "raw or gain");
    if (input->queries < 2 || input->labels < 2 || contexts < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "a sweep needs 2 queries, 2 labels and a context, not "
                         "%lld, %lld and %lld",
                         (long long)input->queries, (long long)input->labels, (long long)contexts);
    cgam_sweep *s = cgam_zalloc(env, 1, sizeof *s);
    if (!s) return cgam_fail_nomem(env, "a sweep");
    s->env = env;
    s->in = *input;
    s->contexts = contexts;
    size_t cells = (size_t)(contexts * input->layers * input->queries);
    size_t vocab = (size_t)cgam_lens_vocab(lens);
    s->over[0] = cgam_alloc(env, cells, sizeof **s->over);
    s->over[1] = cgam_alloc(env, cells, sizeof **s->over);
    s->left_out = cgam_zalloc(env, (size_t)input->queries, sizeof *s->left_out);
    float *a = cgam_alloc(env, (size_t)input->queries * vocab, sizeof *a);
    float *b = cgam_alloc(env, 2 * (size_t)contexts * vocab, sizeof *b);
    double *size = cgam_alloc(env, 2 * (size_t)contexts, sizeof *size);
    cgam_status status = CGAM_OK;
    if (!s->over[0] || !s->over[1] || !s->left_out || !a || !b || !size)
        status = cgam_fail_nomem(env, "a sweep");
    if (status == CGAM_OK) status = fill(s, lens, context, progress, a, b, size);
    for (int64_t i = 0; status == CGAM_OK && i < input->queries; i++) {
        s->left_out[i] = input->target[i] < 0;
        s->counted += !s->left_out[i];
    }
    cgam_free(env, a);
    cgam_free(env, b);
    cgam_free(env, size);
    s->in.zero = NULL;
    s->in.tokens = s->in.target = NULL;
    if (status == CGAM_OK) *out = s;
    else cgam_sweep_free(s);
    return status;
}

const cgam_interval *cgam_sweep_intervals(const cgam_sweep *s, cgam_sweep_over over,
                                          int64_t context, int64_t query_layer)
{
    return s->over[over] + (context * s->in.layers + query_layer) * s->in.queries;
}

/* The best pair on the queries of one half (0, 1) or on all (2). */
static cgam_status best_on(const cgam_sweep *s, cgam_sweep_over over, int64_t first, int64_t count,
                           int half, cgam_interval *scratch, cgam_sweep_best *out)
{
    int64_t top = -1, n = s->in.queries;
    /* Of pairs that do equally well the one that minds the coupling least: with few queries many
     * pairs share the top, and a narrow range there is most often luck. */
    for (int64_t c = first; c < first + count; c++)
        for (int64_t l = 0; l < s->in.layers; l++) {
            const cgam_interval *of = cgam_sweep_intervals(s, over, c, l);
            int64_t used = 0;
            for (int64_t i = 0; i < n; i++)
                if (half == 2 || i % 2 == half) scratch[used++] = of[i];
            cgam_step step;
            cgam_status status = cgam_sweep_step(s->env, used, scratch, &step);
            if (status != CGAM_OK) return status;
            bool wider = step.count == top && breadth(step.lambda) > breadth(out->lambda);
            if (step.count <= top && !wider) continue;
            top = step.count;
            out->context = c;
            out->query_layer = l;
            out->lambda = step.lambda;
        }
    out->accuracy = (double)top / (double)(s->counted ? s->counted : 1);
    return CGAM_OK;
}

cgam_status cgam_sweep_choose(const cgam_sweep *s, cgam_sweep_over over, int64_t first,
                              int64_t count, bool *right, cgam_sweep_best *out)
{
    int64_t n = s->in.queries, held = 0;
    *out = (cgam_sweep_best){0};
    cgam_interval *scratch = cgam_alloc(s->env, (size_t)n, sizeof *scratch);
    if (!scratch) return cgam_fail_nomem(s->env, "a step function");
    cgam_status status = best_on(s, over, first, count, 2, scratch, out);
    for (int half = 0; half < 2 && status == CGAM_OK; half++) {
        cgam_sweep_best chosen = {0};
        status = best_on(s, over, first, count, half, scratch, &chosen);
        if (status != CGAM_OK) break;
        double lambda = cgam_sweep_inside(chosen.lambda);
        const cgam_interval *of = cgam_sweep_intervals(s, over, chosen.context, chosen.query_layer);
        for (int64_t i = 0; i < n; i++) {
            if (i % 2 == half) continue;
            bool hit = of[i].from <= lambda && lambda < of[i].to;
            held += hit;
            if (right) right[i] = hit;
        }
    }
    out->held_out = (double)held / (double)(s->counted ? s->counted : 1);
    cgam_free(s->env, scratch);
    return status;
}
