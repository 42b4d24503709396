/* sweep.h: retrieval by query plus context, for every pair of layers and every coupling at once.
 *
 * The score of token m is a_m + lambda b_m, a_m = <zeta_m, q>, b_m = <zeta_m, c>. It is linear in
 * lambda, so a query is right exactly on an interval of lambda >= 0, and the accuracy of a pair of
 * layers is a step function that needs no grid. The norm lens scores the final norm of the sum, which
 * is linear only up to a common factor: where the model adds something after its norm, the winner is
 * no matter of intervals, and the sweep reads couplings on a grid instead. */
#ifndef CGAM_SRC_LAB_LANGUAGE_SWEEP_H
#define CGAM_SRC_LAB_LANGUAGE_SWEEP_H

#include <cgam/lm.h>

/* lambda with from <= lambda < to; from >= to: none. `to` may be infinite. */
typedef struct cgam_interval {
    double from, to;
} cgam_interval;

/* Where token y has the largest a + lambda b of all n, ties to the lowest index but for the
 * couplings at which two lines cross. */
cgam_interval cgam_sweep_interval(int64_t n, const float *a, const float *b, int64_t y);

/* The step function of a set of intervals: how many hold a coupling. */
typedef struct cgam_step {
    int64_t count;        /* the most that hold one coupling */
    cgam_interval lambda; /* the widest range with that many, as (to - from)/(to + from); of those
                             within a hundredth of the widest the one with the smallest couplings */
} cgam_step;
CGAM_NODISCARD cgam_status cgam_sweep_step(cgam_env *env, int64_t n, const cgam_interval *of,
                                           cgam_step *out);
/* A coupling inside a range: its geometric middle, ranges being ratios; half its end where it begins
 * at 0, twice its beginning where it has no end, 1 where it is everything. */
double cgam_sweep_inside(cgam_interval range);

/* ---- The sweep ---------------------------------------------------------------------------- */
enum { CGAM_SWEEP_GRID = 32 };

/* Answers of several tokens. Over the labels the right one has the largest log-probability of all its
 * tokens, each under the softmax of the lens (NORM where it is GAIN) of state + lambda context in its
 * place: that is not linear in lambda, and is read on the grid. Over the vocabulary each of its tokens
 * must be the largest of all in its place: that is an interval again, the intersection of theirs. */
typedef struct cgam_sweep_answers {
    int64_t longest, beginnings; /* beginnings: of answers, what comes before a token; 0 is empty */
    const int32_t *tokens;       /* [labels, longest], -1 behind an answer's last */
    const int32_t *at;           /* [labels, longest] the beginning before each token */
    const float *states; /* [queries, beginnings - 1, layers, width] after beginnings 1, 2, .. */
} cgam_sweep_answers;

typedef struct cgam_sweep_input {
    int64_t queries, layers; /* layers counts the embedding: L + 1 */
    const float *zero;       /* [queries, layers, width] without demonstrations */
    int64_t labels;
    const int32_t *tokens; /* [labels], -1: not to be compared with */
    const int32_t *target; /* [queries] labels; -1: the query is left out of every count */
    cgam_lens_kind lens;   /* RAW or GAIN: exact; NORM: on the grid */
    const cgam_sweep_answers *answers; /* default NULL: first tokens are compared */
    int64_t grid; /* couplings of the norm lens and of whole answers, at most CGAM_SWEEP_GRID;
                              else not used */
    const double *lambda; /* [grid] */
    bool relative;        /* contexts are rescaled to the mean norm of the queries' layer */
    bool in_sample;       /* contexts from all queries; default: from the other half */
} cgam_sweep_input;

/* A context is two vectors [2, width], each made from one half of the queries. Query i belongs to half i % 2.
 * It is counted with vector 1 - i % 2, made from the other half; where couplings are chosen on one half, its
 * queries meet that half's own. in_sample: both are the same. With `relative`, vector h is rescaled to
 * the mean norm of the queries of half h, in sample of all. */

/* out [queries, width]: q + lambda s c, the sums whose scores a sweep compares, for one context and
 * query layer; s is 1 or what `relative` makes of it. Behind them, of whole answers, the same after every beginning
 * but the empty one [queries, beginnings - 1, width]. */
CGAM_NODISCARD cgam_status cgam_sweep_sums(const cgam_lens *lens, const cgam_sweep_input *input,
                                           const float *context, int64_t query_layer, double lambda,
                                           float *out);

typedef struct cgam_sweep cgam_sweep;

/* Intervals for every (context, query layer, query), over the labels and over the whole vocabulary, of
 * context [contexts, 2, width]. Their ends are those of the scores in double. progress NULL = silence. */
CGAM_NODISCARD cgam_status cgam_sweep_new(const cgam_lens *lens, const cgam_sweep_input *input,
                                          int64_t contexts, const float *context,
                                          const cgam_progress *progress, cgam_sweep **out);
void cgam_sweep_free(cgam_sweep *sweep); /* NULL is fine */

typedef enum cgam_sweep_over { CGAM_OVER_LABELS, CGAM_OVER_VOCABULARY } cgam_sweep_over;
const char *cgam_sweep_over_name(cgam_sweep_over value); /* "restricted", "full" */
bool cgam_sweep_over_find(const char *name, cgam_sweep_over *out);

/* [queries] intervals of a pair under the context of the other half; belong to the sweep. NULL in a
 * sweep on a grid. */
const cgam_interval *cgam_sweep_intervals(const cgam_sweep *sweep, cgam_sweep_over over,
                                          int64_t context, int64_t query_layer);
/* How many queries of a pair are right at a coupling; on a grid it must be one of the grid's. */
int64_t cgam_sweep_hits(const cgam_sweep *sweep, cgam_sweep_over over, int64_t context,
                        int64_t query_layer, double lambda);
/* The most, and where: a range of couplings, or from = to on a grid. */
CGAM_NODISCARD cgam_status cgam_sweep_pair(const cgam_sweep *sweep, cgam_sweep_over over,
                                           int64_t context, int64_t query_layer, cgam_step *out);

typedef struct cgam_sweep_best {
    int64_t context, query_layer; /* of the pair with the best accuracy on all queries */
    cgam_interval lambda;
    double accuracy;
    double held_out;      /* context, pair and coupling from each half, counted on the other */
    double held_out_ties; /* the same, averaged over all pairs that did equally well there */
    double tied;          /* how many those were, the mean of both halves */
    struct {
        int64_t context, query_layer;
        double lambda;
    } half[2]; /* what was chosen on each half, for the other */
} cgam_sweep_best;

/* The best pair among contexts [first, first + count). Of pairs that do equally well the one with
 * the widest range of couplings is taken: with few queries many share the top, and a narrow range
 * there is most often luck. Of those within a hundredth of the widest it is the latest query layer,
 * then the latest context, so that no choice hangs on rounding. held_out_ties needs no such rule and
 * says what it is worth. right [queries], or NULL: whether the held-out choice was right about each
 * query. */
CGAM_NODISCARD cgam_status cgam_sweep_choose(const cgam_sweep *sweep, cgam_sweep_over over,
                                             int64_t first, int64_t count, bool *right,
                                             cgam_sweep_best *out);

/* ---- What the files of the sweep share ------------------------------------------------------- */
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
double cgam_sweep_scale(const cgam_sweep_input *in, int64_t width, const float *context,
                        int64_t query_layer, int half);

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
    const float *context;        /* [contexts, 2, width] */
    int64_t layer, vocab, first; /* first: query of this piece */
    float *a;                    /* [piece, vocab] of this layer */
    float *after;                /* [piece, beginnings - 1, vocab], of whole answers */
    float *b;                    /* [2 * contexts, vocab] */
    double *label_b;             /* [2 * contexts, labels], in double */
    double *size;                /* [2 * contexts] norms */
    int64_t *top;                /* [2 * contexts] tokens with the largest b */
    double mean[2];              /* norm of the queries of each half at this layer */
    double slack;                /* the error of a score in f32, for a vector of norm 1 */
} cgam_sweep_job;

double cgam_sweep_norm(const float *x, int64_t n);
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
