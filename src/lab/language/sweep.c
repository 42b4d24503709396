/* sweep.c: every query with every context, at every pair of layers.
 *
 * Scores of a layer are matrix products with the unembedding, a few hundred queries at a time. For each query and context
 * only one interval is kept (sweep_choose.c), or with the norm lens one bit per coupling of the grid. The products are in
 * f32; scores of labels and of the tokens at which an interval ends are recomputed in double. For these, with v_q, v_c and
 * k the mean square of the (centred) query and context and their mean product, and o the offsets of the lens:
 *
 *     score_m(t) = (a_m + t b_m) / sqrt(v_q + 2 t k + t^2 v_c + epsilon) + o_m */
#include "lab/language/sweep.h"
#include "lm/lens.h"
#include "lm/scores.h"

#include "base/alloc.h"

#include <math.h>

static const cgam_interval none = {INFINITY, -INFINITY};
enum { AT_ONCE = 256 }; /* queries scored together */

void cgam_sweep_free(cgam_sweep *sweep)
{
    if (!sweep) return;
    for (int over = 0; over < 2; over++) {
        cgam_free_all(sweep->env, sweep->over[over], sweep->marks[over]);
    }
    cgam_free(sweep->env, sweep);
}

double cgam_sweep_norm(const float *x, int64_t n)
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
        sum[i % 2] += cgam_sweep_norm(in->zero + (i * in->layers + layer) * d, d);
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

/* States of a query after beginnings of answers, besides its own. */
static int64_t after_each(const cgam_sweep_input *in)
{
    return in->answers ? in->answers->beginnings - 1 : 0;
}

/* Queries whose scores are held together. */
static int64_t piece_of(const cgam_sweep_input *in)
{
    int64_t piece = AT_ONCE / (1 + after_each(in));
    if (piece > in->queries) piece = in->queries;
    return piece > 0 ? piece : 1;
}

double cgam_sweep_scale(const cgam_sweep_input *in, int64_t width, const float *context,
                        int64_t query_layer, int half)
{
    double mean[2];
    mean_norms(in, width, query_layer, mean);
    return scale_of(in, mean[half], cgam_sweep_norm(context + half * width, width));
}

cgam_status cgam_sweep_sums(const cgam_lens *lens, const cgam_sweep_input *in, const float *context,
                            int64_t query_layer, double lambda, float *out)
{
    int64_t d = lens->width, each = after_each(in);
    double scale[2];
    if (query_layer < 0 || query_layer >= in->layers)
        return cgam_fail(lens->env, CGAM_E_ARG, "no query layer %lld (there are %lld)",
                         (long long)query_layer, (long long)in->layers);
    for (int h = 0; h < 2; h++)
        scale[h] = lambda * cgam_sweep_scale(in, d, context, query_layer, h);
    for (int64_t r = 0; r < in->queries * (1 + each); r++) {
        int64_t behind = r - in->queries; /* among the states after beginnings */
        const float *q = behind < 0 ? in->zero + (r * in->layers + query_layer) * d
                                    : in->answers->states + (behind * in->layers + query_layer) * d;
        int h = (int)(1 - (behind < 0 ? r : behind / each) % 2);
        for (int64_t j = 0; j < d; j++)
            out[r * d + j] = (float)((double)q[j] + scale[h] * (double)context[h * d + j]);
    }
    return CGAM_OK;
}

cgam_interval cgam_sweep_rescale(cgam_interval x, double factor)
{
    if (x.from >= x.to || !(factor > 0)) return x;
    return (cgam_interval){x.from / factor, x.to / factor};
}

/* ---- On a grid ---------------------------------------------------------------------------- */
cgam_sweep_spread cgam_sweep_spread_of(const cgam_lens *lens, const float *q, const float *c)
{
    int64_t d = lens->width;
    double sq = 0, sc = 0, qq = 0, cc = 0, qc = 0, n = (double)d;
    for (int64_t j = 0; j < d; j++) {
        double x = (double)q[j], y = (double)c[j];
        sq += x, sc += y, qq += x * x, cc += y * y, qc += x * y;
    }
    if (!lens->norm.centred) sq = sc = 0;
    return (cgam_sweep_spread){(qq - sq * sq / n) / n, (cc - sc * sc / n) / n,
                               (qc - sq * sc / n) / n};
}

double cgam_sweep_factor(const cgam_lens *lens, const cgam_sweep_spread *v, double t)
{
    return 1 / sqrt(fmax(0, v->qq + 2 * t * v->qc + t * t * v->cc) + lens->norm.epsilon);
}

bool cgam_sweep_largest(int64_t n, const int32_t *which, const float *a, const float *b,
                        const float *o, double t, double f, int64_t y)
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

static void mark_grid(const cgam_sweep_job *j, int64_t i, int64_t row, double factor, int64_t at)
{
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    int64_t label = in->target[i], d = j->lens->width;
    const float *a = j->a + (i - j->first) * j->vocab, *b = j->b + row * j->vocab;
    const float *o = cgam_lens_offset(j->lens);
    s->marks[0][at] = s->marks[1][at] = 0;
    if (label < 0) return;
    cgam_sweep_spread v = cgam_sweep_spread_of(j->lens, in->zero + (i * in->layers + j->layer) * d,
                                               j->context + row * d);
    for (int64_t g = 0; g < in->grid; g++) {
        double t = s->lambda[g] * factor, f = 1;
        /* without an offset the common factor changes no winner */
        if (o) f = cgam_sweep_factor(j->lens, &v, t);
        if (!cgam_sweep_largest(in->labels, in->tokens, a, b, o, t, f, label)) continue;
        s->marks[CGAM_OVER_LABELS][at] |= UINT32_C(1) << g;
        if (cgam_sweep_largest(j->vocab, NULL, a, b, o, t, f, in->tokens[label]))
            s->marks[CGAM_OVER_VOCABULARY][at] |= UINT32_C(1) << g;
    }
}

/* ---- Exactly ------------------------------------------------------------------------------ */
/* al: the labels' scores of the query, in double. */
static void bracket_exactly(const cgam_sweep_job *j, int64_t i, int64_t row, double factor,
                            int64_t at, int64_t top_a, const double *al)
{
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    int64_t label = in->target[i], d = j->lens->width;
    const double *bl = j->label_b + row * in->labels;
    s->over[0][at] = s->over[1][at] = none;
    if (label < 0) return;
    cgam_interval x = {0, INFINITY};
    bool left = true;
    for (int64_t k = 0; k < in->labels && left; k++)
        left = k == label || in->tokens[k] < 0 ||
               cgam_sweep_narrow(al[k] - al[label], bl[label] - bl[k], k < label, &x);
    if (!left) return; /* who loses among the labels loses among all */
    s->over[CGAM_OVER_LABELS][at] = cgam_sweep_rescale(x, factor);
    const float *q = in->zero + (i * in->layers + j->layer) * d;
    const cgam_sweep_rivals rivals = {.lens = j->lens,
                                      .kind = cgam_sweep_linear_part(s),
                                      .q = q,
                                      .c = j->context + row * d,
                                      .a = j->a + (i - j->first) * j->vocab,
                                      .b = j->b + row * j->vocab,
                                      .slack_a = j->slack * cgam_sweep_norm(q, d),
                                      .slack_b = j->slack * j->size[row]};
    s->over[CGAM_OVER_VOCABULARY][at] =
        cgam_sweep_rescale(cgam_sweep_interval_sure(&rivals, in->tokens[label], al[label],
                                                    bl[label], (int64_t[]){top_a, j->top[row]}),
                           factor);
}

/* A query meets the context of the other half and, where couplings are chosen, that of its own. */
static cgam_status sweep_query(void *arg, int64_t k)
{
    const cgam_sweep_job *j = arg;
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    cgam_env *env = s->env;
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    int64_t i = j->first + k;
    cgam_sweep_whole *whole = NULL;
    cgam_status status = in->answers ? cgam_sweep_whole_new(j, i, &whole) : CGAM_OK;
    if (status != CGAM_OK) return status;
    double *al = cgam_zalloc(env, (size_t)in->labels, sizeof *al);
    if (!al) {
        cgam_sweep_whole_free(whole);
        return cgam_fail_nomem(env, "labels");
    }
    int64_t top_a = cgam_scores_top(j->a + k * j->vocab, j->vocab);
    const float *q = in->zero + (i * in->layers + j->layer) * j->lens->width;
    for (int64_t m = 0; m < in->labels && in->target[i] >= 0; m++)
        if (in->tokens[m] >= 0)
            al[m] = cgam_lens_dot(j->lens, cgam_sweep_linear_part(s), in->tokens[m], q);
    for (int64_t c = 0; c < s->contexts; c++)
        for (int plane = CGAM_SWEEP_CROSSED; plane < s->planes; plane++) {
            int64_t half = plane == CGAM_SWEEP_CROSSED ? 1 - i % 2 : i % 2, row = 2 * c + half;
            int64_t at = cgam_sweep_cell(s, plane, c, j->layer) + i;
            double factor = scale_of(in, j->mean[half], j->size[row]);
            if (whole) cgam_sweep_whole_mark(whole, row, factor, at);
            else if (in->lens == CGAM_LENS_NORM) mark_grid(j, i, row, factor, at);
            else bracket_exactly(j, i, row, factor, at, top_a, al);
        }
    cgam_sweep_whole_free(whole);
    cgam_free(env, al);
    return CGAM_OK;
}

/* An f32 sum of d products is off by less than d roundings of the product of the norms (Higham 2002,
 * 3.1), in whatever order it is summed; a few more are those of the gain and of the middle. */
static double slack_of(const cgam_lens *lens, const cgam_sweep *s)
{
    int64_t d = lens->width;
    double top = 0;
    for (int64_t m = 0; m < lens->vocab; m++)
        top = fmax(top, cgam_lens_row_norm(lens, cgam_sweep_linear_part(s), m));
    return (double)(d + 8) * 0x1p-24 * top;
}

/* Scores of all contexts, their norms and the tokens that score highest. */
static cgam_status score_contexts(cgam_sweep_job *j)
{
    const cgam_sweep *s = j->sweep;
    int64_t d = j->lens->width, rows = 2 * s->contexts;
    cgam_lens_kind kind = cgam_sweep_linear_part(s);
    for (int64_t r = 0; r < rows; r++) {
        const float *from = j->context + r * d;
        j->size[r] = cgam_sweep_norm(from, d);
        for (int64_t k = 0; k < s->in.labels; k++)
            j->label_b[r * s->in.labels + k] =
                s->in.tokens[k] < 0 ? 0 : cgam_lens_dot(j->lens, kind, s->in.tokens[k], from);
    }
    cgam_status status = cgam_lens_scores(j->lens, kind, rows, j->context, d, j->b);
    for (int64_t r = 0; r < rows && status == CGAM_OK; r++)
        j->top[r] = cgam_scores_top(j->b + r * j->vocab, j->vocab);
    return status;
}

static cgam_status fill_sweep(cgam_sweep_job *j, const cgam_progress *progress)
{
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    int64_t d = j->lens->width, stride = in->layers * d, each = after_each(in);
    int64_t piece = piece_of(in);
    cgam_lens_kind kind = cgam_sweep_linear_part(s);
    j->slack = s->over[CGAM_OVER_VOCABULARY] ? slack_of(j->lens, s) : 0;
    cgam_status status = score_contexts(j);
    for (j->layer = 0; j->layer < in->layers && status == CGAM_OK; j->layer++) {
        mean_norms(in, d, j->layer, j->mean);
        for (j->first = 0; j->first < in->queries && status == CGAM_OK; j->first += piece) {
            int64_t n = in->queries - j->first < piece ? in->queries - j->first : piece;
            status = cgam_lens_scores(j->lens, kind, n, in->zero + j->first * stride + j->layer * d,
                                      stride, j->a);
            if (status == CGAM_OK && each > 0)
                status =
                    cgam_lens_scores(j->lens, kind, n * each,
                                     in->answers->states + j->first * each * stride + j->layer * d,
                                     stride, j->after);
            if (status == CGAM_OK) status = cgam_parallel(s->env, n, sweep_query, j);
        }
        cgam_progress_count(progress, "sweep", j->layer + 1, in->layers, "layers");
    }
    return status;
}

static cgam_status check_input(const cgam_lens *lens, const cgam_sweep_input *in, int64_t contexts)
{
    cgam_env *env = lens->env;
    if (in->queries < 2 || in->labels < 2 || contexts < 1)
        return cgam_fail(env, CGAM_E_ARG,
                         "a sweep needs 2 queries, 2 labels and a context, not "
                         "%lld, %lld and %lld",
                         (long long)in->queries, (long long)in->labels, (long long)contexts);
    if ((in->lens == CGAM_LENS_NORM || in->answers) && (in->grid < 1 || in->grid > CGAM_SWEEP_GRID))
        return cgam_fail(env, CGAM_E_ARG,
                         "the norm lens and whole answers are not linear: they need a grid of 1 to "
                         "%d couplings, not %lld",
                         CGAM_SWEEP_GRID, (long long)in->grid);
    return CGAM_OK;
}

cgam_status cgam_sweep_new(const cgam_lens *lens, const cgam_sweep_input *input, int64_t contexts,
                           const float *context, const cgam_progress *progress, cgam_sweep **out)
{
    *out = NULL;
    cgam_env *env = lens->env;
    cgam_status status = check_input(lens, input, contexts);
    if (status != CGAM_OK) return status;
    cgam_sweep *s = cgam_zalloc(env, 1, sizeof *s);
    if (!s) return cgam_fail_nomem(env, "a sweep");
    s->env = env;
    s->in = *input;
    s->contexts = contexts;
    s->planes = input->in_sample ? CGAM_SWEEP_OWN : CGAM_SWEEP_PLANES;
    bool grid = input->lens == CGAM_LENS_NORM, fine = true;
    size_t cells = (size_t)(s->planes * contexts * input->layers * input->queries);
    int64_t piece = piece_of(input);
    for (int over = 0; over < 2; over++) {
        if (grid || (input->answers && over == CGAM_OVER_LABELS))
            s->marks[over] = cgam_alloc(env, cells, sizeof **s->marks);
        else s->over[over] = cgam_alloc(env, cells, sizeof **s->over);
        fine = fine && (s->marks[over] || s->over[over]);
    }
    for (int64_t g = 0; (grid || input->answers) && g < input->grid; g++)
        s->lambda[g] = input->lambda[g];
    cgam_sweep_job job = {.sweep = s, .lens = lens, .context = context, .vocab = lens->vocab};
    status = cgam_alloc_all(env, "a sweep", CGAM_ARRAY(job.a, piece * lens->vocab),
                            CGAM_ARRAY(job.after, piece * after_each(input) * lens->vocab),
                            CGAM_ARRAY(job.b, 2 * contexts * lens->vocab),
                            CGAM_ARRAY(job.label_b, 2 * contexts * input->labels),
                            CGAM_ARRAY(job.size, 2 * contexts), CGAM_ARRAY(job.top, 2 * contexts));
    if (!fine) status = cgam_fail_nomem(env, "a sweep");
    if (status == CGAM_OK) status = fill_sweep(&job, progress);
    for (int64_t i = 0; i < input->queries; i++) s->counted += input->target[i] >= 0;
    cgam_free_all(env, job.a, job.after, job.b, job.label_b, job.size, job.top);
    s->in.zero = NULL;
    s->in.answers = NULL;
    s->in.lambda = NULL;
    s->in.tokens = s->in.target = NULL;
    if (status == CGAM_OK) *out = s;
    else cgam_sweep_free(s);
    return status;
}
