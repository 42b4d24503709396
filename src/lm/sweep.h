/* sweep.h (inside): what the files of the sweep share. */
#ifndef CGAM_SRC_LM_SWEEP_H
#define CGAM_SRC_LM_SWEEP_H

#include <cgam/sweep.h>

/* A query under the context of the other half, and under that of its own. */
enum { CGAM_SWEEP_CROSSED, CGAM_SWEEP_OWN, CGAM_SWEEP_PLANES };

struct cgam_sweep {
    cgam_env *env;
    cgam_sweep_input in; /* arrays borrowed only while it is made */
    int64_t contexts, counted;
    int planes;             /* 1 in sample, where both contexts are the same */
    cgam_interval *over[2]; /* [planes, contexts, layers, queries]; NULL on a grid */
    uint32_t *marks[2];     /* the same: bit g is set where lambda[g] is right */
    double lambda[CGAM_SWEEP_GRID];
};

/* Where the queries of a pair begin. */
static inline int64_t cgam_sweep_cell(const cgam_sweep *s, int plane, int64_t context,
                                      int64_t query_layer)
{
    return ((plane * s->contexts + context) * s->in.layers + query_layer) * s->in.queries;
}

/* What of the lens is linear: the norm divides by a factor later. */
static inline cgam_lens_kind cgam_sweep_linear_part(const cgam_sweep *s)
{
    return s->in.lens == CGAM_LENS_RAW ? CGAM_LENS_RAW : CGAM_LENS_GAIN;
}

/* What the context of half h is multiplied by before it is added to queries of a layer, besides
 * lambda; width: of a state. */
double cgam_sweep_scale(const cgam_sweep_input *in, int64_t width,
                        const cgam_sweep_context *context, int64_t query_layer, int half);

/* How wide a range is for its size, from 0 to 1: a factor of two is as wide anywhere. */
double cgam_sweep_breadth(cgam_interval x);
/* Is a breadth as good as the widest? A hundredth less is: what differs by rounding alone ties. */
static inline bool cgam_sweep_as_wide(double breadth, double widest)
{
    return breadth >= 0.99 * widest;
}

/* Takes off what a rival wins whose score leads by gap - lambda rise, on ties if it stands before;
 * false: nothing is left. */
bool cgam_sweep_narrow(double gap, double rise, bool before, cgam_interval *x);

/* One layer of queries being swept. */
typedef struct cgam_sweep_job {
    cgam_sweep *sweep;
    const cgam_lens *lens;
    const cgam_sweep_context *context;
    int64_t layer, vocab, first; /* first: query of this piece */
    const float *a;              /* [piece, vocab] of this layer */
    const float *after;          /* [piece, beginnings - 1, vocab], of whole answers */
    const float *b;              /* [2 * contexts, vocab] */
    const double *label_b;       /* [2 * contexts, labels], in double */
    const double *size;          /* [2 * contexts] norms */
    const int64_t *top;          /* [2 * contexts] tokens with the largest b */
    double mean[2];              /* norm of the queries of each half at this layer */
    double slack;                /* the error of a score in f32, for a vector of norm 1 */
} cgam_sweep_job;

double cgam_sweep_norm(const float *x, int64_t n);
int64_t cgam_sweep_top(const float *x, int64_t n);
/* The same range where the context is multiplied by a factor. */
cgam_interval cgam_sweep_rescale(cgam_interval x, double factor);

/* Mean squares of query and context and their mean product, centred where the norm is. */
typedef struct cgam_sweep_spread {
    double qq, cc, qc;
} cgam_sweep_spread;
cgam_sweep_spread cgam_sweep_spread_of(const cgam_lens *lens, const float *q, const float *c);
/* What the final norm multiplies the sum of query and t contexts by. */
double cgam_sweep_factor(const cgam_lens *lens, const cgam_sweep_spread *v, double t);
/* Is y the largest of (a + t b) f + o over the n tokens, ties to the lowest? which NULL: all. */
bool cgam_sweep_largest(int64_t n, const int32_t *which, const float *a, const float *b,
                        const float *o, double t, double f, int64_t y);

/* Query i of a job by its whole answers: sweep_whole.c. For context row r, to be multiplied by factor
 * besides lambda, cgam_sweep_whole_mark fills what the sweep keeps at `at`. */
typedef struct cgam_sweep_whole cgam_sweep_whole;
CGAM_NODISCARD cgam_status cgam_sweep_whole_new(const cgam_sweep_job *job, int64_t query,
                                                cgam_sweep_whole **out);
void cgam_sweep_whole_free(cgam_sweep_whole *w);
void cgam_sweep_whole_mark(cgam_sweep_whole *w, int64_t row, double factor, int64_t at);

/* All tokens: their scores in f32, what these may be off, and where they come from. */
typedef struct cgam_sweep_rivals {
    const cgam_lens *lens;
    cgam_lens_kind kind; /* RAW or GAIN */
    const float *q, *c;  /* [width] query and context */
    const float *a, *b;  /* [vocab] their scores */
    double slack_a, slack_b;
} cgam_sweep_rivals;

/* Where token y, with scores ay and by in double, is first. Tokens that f32 cannot decide are scored
 * in double. hint: two tokens to look at first. */
cgam_interval cgam_sweep_interval_sure(const cgam_sweep_rivals *of, int64_t y, double ay, double by,
                                       const int64_t hint[2]);

#endif
