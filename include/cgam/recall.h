/* recall.h: a query meets a bank under a context.
 *
 *   b = Z q            query evidence
 *   u = Z P c or W c   input of the gates from the context
 *   first    s = A^-1 u,              r = b + lambda s
 *   coupled  s = A^-1 (u + lambda p), r = b + lambda s,   p = softmax(beta r), self-consistently
 *   anneal   the same fixed points, reached along the branch from beta = 0, where the fixed point is
 *            unique: the answer does not depend on a start
 *   flow     the four layers of cgam_memory_net_new (theory.h) in time, from rest to a steady state or
 *            a horizon; any alpha, context and query clamped unless they are free
 *
 * opts.entmax replaces softmax by alpha-entmax, in every mode: weights are sparse, and exact above a
 * margin (docs/theorems/margin.md).
 *
 * Plan once (cgam_recall_new), run many queries (cgam_recall_run). How a recall *ended* is part
 * of its result; the status says only whether it could be carried out. Every bound in a result
 * is marked as proved or as an estimate.
 */
#ifndef CGAM_RECALL_H
#define CGAM_RECALL_H

#include <cgam/gate.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cgam_mode { CGAM_FIRST, CGAM_COUPLED, CGAM_FLOW, CGAM_ANNEAL } cgam_mode;
CGAM_API extern const char *const cgam_mode_words[];

typedef enum cgam_end {
    CGAM_END_DIRECT,    /* mode first: nothing to iterate */
    CGAM_END_CONVERGED, /* the last change of p is within tol; mode flow: a steady state */
    CGAM_END_MAX_ITER,
    CGAM_END_STALLED, /* rounding keeps the change above tol, or leaves undecided whether p is within
                          1e-6 of its image under the map, or the energy rose: p is as exact as it can be */
    CGAM_END_DIVERGED, /* a number left the range of double */
    CGAM_END_HORIZON,  /* mode flow: t_max came first */
    CGAM_END_ROSE      /* mode flow: the energy rose, or the integrator could not go on */
} cgam_end;
CGAM_API extern const char *const cgam_end_words[];

/* How scores become weights: softmax (order 0) or alpha-entmax of order A, 1 < A <= 2,
 *   p = [1 + (A - 1)(beta r - tau)]_+^(1 / (A - 1)), tau such that p adds up to 1.
 * Two have names: sparsemax (A = 2), entmax15 (A = 1.5). The order is opts.entmax. */

/* How much of a result is proved. Levels change only certificates: the answer has the same bits. USUAL costs at most
 * a quarter of the recall. FULL also computes the expensive certificates: alpha_crit, eigenvalues, a search for a
 * second fixed point. NONE proves nothing: bounds are NAN, unique and stable are -1, p_lower_bound is an estimate, and `end` is
 * what the iteration observed. With opts.fast, NONE is treated as USUAL, because p is then a proved interval. */
typedef enum cgam_certify {
    CGAM_CERTIFY_USUAL, /* 0, and FULL is 1, so that a bool can be assigned */
    CGAM_CERTIFY_FULL,
    CGAM_CERTIFY_NONE
} cgam_certify;
CGAM_API extern const char *const cgam_certify_words[];

typedef struct cgam_recall_opts {
    cgam_mode mode; /* default CGAM_FIRST */
    double alpha;   /* >= 0, default 0 */
    double beta;    /* > 0, default 1 */
    double lambda;  /* >= 0, default 1 */
    double entmax;  /* the activation: order A of alpha-entmax, 1 < A <= 2; default 0 = softmax.
                       Computed in double; not with fast or none; without Newton finish */
    /* How the context reaches the gates; at most one of P and W. Both must outlive the plan. */
    const double *P;      /* [d, d_c], default NULL = the identity, d_c = d */
    const double *W;      /* [n, d_c], default NULL */
    int64_t d_c;          /* required with P or W */
    double tol;           /* largest change of p to stop at, default 1e-12 */
    int64_t max_iter;     /* default 10000 */
    bool plain;           /* plain iteration only, no Newton finish; default false */
    cgam_certify certify; /* default USUAL */
    /* Mode first. fast: scans the bank's sketch (bank.h) instead of its rows, and scores the rows that the
     * sketch's bounds leave undecided. Winner, leaders, their scores, gaps and ranks are the same as without
     * fast; p is an interval. A bank without a sketch gets one with the plan, in the time of about four recalls.
     * All rows are read, in double, if the sketch would read more than the rows, or if p, s, r, a readout or
     * certificates are requested. Default false. */
    bool fast;
    double
        tol_p; /* with fast: continue until the interval of p is this narrow; default 0 = any width */
    /* Mode first. Adds a ghost memory of score none_score, which means "no memory": it counts in every sum, gap and
     * bound, but has no gate and no row. Invalid in modes in which p acts on gates, and with certify FULL, which
     * certifies that map. Default false. */
    bool none;
    double none_score;
    size_t memory_max; /* see gate.h; default 0 */
    const cgam_gate
        *gate; /* A(alpha) of this bank and alpha, to share among plans; must outlive the
                              plan. Default NULL = factored with the plan */
    double
        beta_start; /* mode anneal: first beta of the branch, at most beta; default NAN = half the
                          beta below which the fixed point is unique */
    /* Mode flow. */
    double tau_c, tau_s, tau_r, tau_q; /* time constants of the layers, > 0; default 1 each */
    double t_max;                      /* horizon; default 100 */
    double steady;                     /* |x - F(x)| of a steady state, see flow.h; default 1e-9 */
    bool free_context; /* the context moves; see cgam_recall_context_margin. Default false */
    bool free_query;   /* the query moves; default false */
} cgam_recall_opts;
CGAM_API cgam_recall_opts cgam_recall_opts_default(void);

typedef struct cgam_recall cgam_recall;

/* Borrows the bank. Modes coupled and anneal require A positive definite: otherwise CGAM_E_NOT_POSITIVE, with
 * alpha_crit in the message. */
CGAM_API CGAM_NODISCARD cgam_status cgam_recall_new(const cgam_bank *bank,
                                                    const cgam_recall_opts *opts,
                                                    cgam_recall **out);
CGAM_API void cgam_recall_free(cgam_recall *plan);                   /* NULL is fine */
CGAM_API const cgam_gate *cgam_recall_gate(const cgam_recall *plan); /* the plan's A(alpha) */

/* Mode flow with a free context: returns lambda_min(I - W'A^-1 W). The context settles only if it is
 * positive; with unit memories and W = Z it never is. Returns -INFINITY if A is not positive definite,
 * NAN if the context is clamped. */
CGAM_API double cgam_recall_context_margin(const cgam_recall *plan);

/* NAN marks a value that is undefined (a gap with n = 1) or was not computed; see each field. */
typedef struct cgam_result {
    int64_t
        winner; /* largest r, ties to the lowest index; -1: the ghost of opts.none, which loses ties */
    int64_t focus; /* the memory that p and gaps describe: the target if given, else the winner */
    int64_t focus_rank; /* number of memories with a larger r, or the same r and a lower index */
    double p, log_p;    /* of focus */
    double neff_entropy, neff_ipr; /* exp(entropy) and 1 / sum p^2 */
    int64_t support;               /* number of memories with p > 0; with softmax all of them */
    bool exact; /* with opts.entmax: p of focus is 1 and all others are 0, proved; mode coupled: at
                   the fixed point */
    double gap, gap_raw, gap_gate; /* of focus over its best competitor in r, b and s */
    double p_lower_bound; /* 1 / (1 + (n-1) exp(-beta gap)), minus a bound of rounding; with
                             entmax the first entry of entmax(beta gap, 0, .., 0) */
    bool p_lower_bound_proved;
    int64_t iterations; /* of the map, Newton steps included; mode flow: time steps */
    int64_t newton_steps;
    cgam_end end;
    double change;       /* the last max |p_new - p|; mode flow: |x - F(x)| at the end */
    double time;         /* mode flow: time of the end; else NAN */
    double energy_start; /* E at s = A^-1 u, mode coupled; of the network at rest, mode flow */
    double energy_end;   /* E at the s returned */
    double energy_rise; /* the largest E_new - E_old between passes in double; 0 if none, or at most
                            the error of these passes that refined passes find */
    /* Bounds. A proved bound holds for the given numbers, rounding included; see
     * docs/theorems/rounding.md. */
    double contraction; /* at least beta lambda^2 / (2 eta_min), with entmax twice that; NAN if no
                           eta_min > 0 is known */
    bool contraction_proved;
    int unique;         /* 1 proved, 0 two fixed points were found, -1 undecided */
    bool unique_proved; /* with 0: the error bounds separate the two */
    double
        fold_margin; /* a lower bound of lambda_min(A - lambda^2 beta (diag p - pp')) at the p returned, and at
                           softmax of the exact scores; where p_error is proved, at the fixed point p* too, for
                           softmax. Entmax has diag w - ww' / sum w there, w = p^(2 - A) on the support */
    bool fold_margin_exact, fold_margin_proved; /* exact: to 1e-9 max(1, |fold_margin|) */
    double p_error; /* bound of |p - p*|_2, NAN if there is none; mode coupled */
    bool p_error_proved;
    int stable; /* 1: the fixed point of gates and retrieval is asymptotically stable, for all time constants;
                   0: it is not; -1 undecided (docs/theorems/stability.md). Mode first: of s = A^-1 u,
                   r = b + lambda s, without feedback. Mode flow: with the query where it is free */
    bool stable_proved;
    double
        local_contraction; /* at least the largest eigenvalue of beta lambda^2 A^-1 (diag p - pp') at the
                                 p returned */
    bool local_contraction_proved;
    double
        readout_error_bound; /* |Z'p - zeta| of the focus is at most this: 2 max|zeta| (1 - p), for p of the exact
                                scores, and at the fixed point where p_error is proved; NAN for the ghost. The
                                readout as computed has its rounding error besides */
    bool readout_error_bound_proved;
    double
        readout_left_out; /* bound of the weight of the rows that sums and readout skip, at most 2^-54:
                                the error of the readout is at most this times max |zeta| */
    double p_none;        /* of the ghost, with opts.none; else 0 */
    /* With opts.fast: p and p_none of the exact scores lie in these intervals, proved. p, p_none and top_p
     * are the lower ends; neff_* are NAN unless all rows were scored. */
    double p_from, p_to, p_none_from, p_none_to;
    double score_error; /* bound of the error of scores in double, for memories of nonzero weight */
    int64_t rescored;   /* number of memories scored from their rows */
    bool fallback;      /* all memories were, because that cost less or the output required it */
} cgam_result;

/* ---- Mode anneal: the branch. */
typedef struct cgam_anneal_point {
    double beta, energy;
    int64_t winner;
    double p;           /* of winner */
    double fold_margin; /* an eigenvalue on small banks, else a lower bound */
} cgam_anneal_point;

typedef enum cgam_transition_kind {
    CGAM_TRANSITION_FOLD,      /* the branch ends; the path continues on another branch */
    CGAM_TRANSITION_PITCHFORK, /* a symmetric branch stops being a minimum; the path continues on the
                                  branch that favours the lowest index */
    CGAM_TRANSITION_WINNER     /* the leader changes */
} cgam_transition_kind;
CGAM_API extern const char *const cgam_transition_words[];

typedef struct cgam_transition {
    double beta;
    cgam_transition_kind kind;
} cgam_transition;

typedef struct cgam_anneal {
    int64_t points, transitions;
    cgam_anneal_point *path;     /* [points] by rising beta */
    cgam_transition *transition; /* [transitions] in the order of the path */
} cgam_anneal;
CGAM_API void cgam_anneal_free(cgam_env *env, cgam_anneal *path); /* leaves it empty */

/* The outputs of a run; any pointer may be NULL. */
typedef struct cgam_recall_out {
    cgam_result *results; /* [queries] */
    int64_t top;          /* k, at most n */
    int64_t *top_index;   /* [queries, k], by falling p, ties to the lowest index */
    double *top_p;        /* [queries, k] */
    double *top_log_p;    /* [queries, k] */
    double *p, *s, *r;    /* [queries, n] each */
    double *readout;      /* [queries, d]  Z' p */
    cgam_anneal *anneal;  /* [queries] mode anneal: the branches; free each, also after an error */
} cgam_recall_out;

typedef struct cgam_recall_in {
    int64_t queries;
    const double *q;       /* [queries, d] */
    const double *c;       /* NULL = no context, [d_c] shared, or [queries, d_c] */
    bool c_per_query;      /* which of the two */
    const int64_t *target; /* NULL = none, or [queries] */
    const double
        *start; /* [queries, n], mode coupled: start from these weights, >= 0 and not all 0,
                              divided by their sum; NULL = the usual start,
                              softmax(beta (b + lambda A^-1 u)) */
} cgam_recall_in;

/* How a recall is computed. */
typedef enum cgam_path {
    CGAM_PATH_PASS,             /* mode first: one pass over the bank, no vectors of n numbers */
    CGAM_PATH_MATRICES,         /* mode first: the same for many queries as matrix products */
    CGAM_PATH_VECTORS,          /* mode first, with p, s and r of every memory */
    CGAM_PATH_COUPLED,          /* mode coupled: each query iterates by itself */
    CGAM_PATH_COUPLED_TOGETHER, /* mode coupled: many iterate together as matrix products; at
                                   alpha = 0 many are scored as matrix products */
    CGAM_PATH_FLOW,
    CGAM_PATH_SKETCH, /* mode first with opts.fast: by the sketch; some queries may read all rows */
    CGAM_PATH_ANNEAL, /* mode anneal: each query by itself */
    CGAM_PATH_LANES /* small banks, modes first and coupled: a row in each lane of the CPU's vectors */
} cgam_path;
CGAM_API extern const char *const cgam_path_words[];

enum { CGAM_RECALL_GROUP = 64 }; /* at most so many queries run together */

typedef struct cgam_route {
    cgam_path path;
    cgam_dtype precision; /* of most of the arithmetic, CGAM_F64 or CGAM_F32. A query for which the
                             bound of f32 does not hold uses double; a coupled recall ends in double */
    int64_t group;        /* queries that run together; the last group of a call may be smaller, and
                             is then routed by its count */
    const char *
        unit; /* instruction set of most of the arithmetic: "avx2", "avx512", "neon", ..; for sketches and
                             matrices in f32 "vnni", "amx", .. if the CPU multiplies bytes; static text */
    cgam_certify certify; /* how much is proved */
} cgam_route;
/* Returns how cgam_recall_run would compute these; reads no query and writes nothing. */
CGAM_API cgam_route cgam_recall_route(const cgam_recall *plan, const cgam_recall_in *in,
                                      const cgam_recall_out *out);

/* Runs the queries of `in` and fills `out`. Queries are independent, and results have the same bits on
 * any number of threads. The arithmetic depends on the bank and on the number of queries in the call.
 *
 * Double is used for small banks (under 2^18 numbers), for banks of f64, and for any call in mode first
 * that requests p, s or r. A query then has the same bits alone and in a batch, except in mode first on
 * large banks of f64: eight or more queries are multiplied as matrices, in another order. On path lanes,
 * which most recalls on small banks use, a plan keeps its work areas: a call like the previous one
 * allocates no memory.
 *
 * Mode first without p, s and r reads the bank once and writes no vectors of n numbers. On large banks
 * of f32, f16 or bf16 its products are then in f32 if
 * beta max|zeta| (|q| + a bound of lambda |A^-1 Z v|) is at most 400. The error of a score is at most
 * 40 * 2^-24 of that bound without beta, that of a weight a thousandth of itself (a hundredth of this is
 * usual). Eight or more queries are multiplied as matrices, with 130 + d / 128 in place of 40, also on
 * tiles of bytes, if the CPU multiplies bytes; each number is then three digits.
 * Matrices add weights in f32 over tiles of 288 rows, so the error of 1 - p of a clear winner is at most
 * 289 * 2^-24; that of a readout is at most 340 * 2^-24 of the readout that the largest number of its 256
 * columns would give (a hundredth is usual).
 * Winner, leaders, the target and all three gaps are always those of double, and so is a target's rank
 * among the requested leaders; below these the rank is counted in f32. For any beta, p is at most 1 and
 * the p of the leaders add up to at most 1, because scores used in one exponential come from one
 * evaluation. Sums skip rows that together weigh at most 2^-55 of a batch's leaders. Request r for
 * full-precision scores.
 *
 * Mode coupled starts on such banks in f32 and ends in double: a converged result is good to tol either
 * way. Eight or more queries iterate together, as matrices. A converged query waits for the others and
 * continues from a new reference, so `iterations` can differ from that of the query alone, and a result
 * that stops at max_iter differs by the error of f32. At alpha = 0 the bank is read once, in double: queries
 * iterate by themselves on the rows whose weight matters, and the sum of the others follows from their
 * moments. Eight or more are then scored as matrices, in another order of additions.
 *
 * Threads may share a plan. */
CGAM_API CGAM_NODISCARD cgam_status cgam_recall_run(const cgam_recall *plan,
                                                    const cgam_recall_in *in,
                                                    const cgam_recall_out *out);

/* The easy call: one query q[d], one context c (NULL = none), one result. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_recall_once(const cgam_bank *bank, const double *q,
                                                     const double *c, const cgam_recall_opts *opts,
                                                     cgam_result *out);

/* The fields of a struct as a table (base.h), by the struct's name without cgam_: "recall_opts",
 * "result", "bank_info", "gate_info", "point", ..; NULL if there is no table of that name. */
CGAM_API const cgam_field *cgam_fields(const char *of);

/* ---- Inspection: the spectrum of a bank's Gram matrix, its critical penalty, and what the given
 * parameters mean for a coupled recall. The verb `inspect` prints it. */

typedef struct cgam_inspection {
    cgam_bank_info bank;
    cgam_gram_info gram;
    cgam_gate_info gate;      /* of A(alpha), alpha_crit known with full effort */
    double contraction;       /* beta lambda^2 / (2 eta_min), rounded up; NAN if eta_min <= 0 */
    bool unique;              /* contraction < 1: one answer, proved; false: undecided */
    double lambda_unique_max; /* the largest lambda with that proof */
} cgam_inspection;

/* O(min(n, d)^2 max(n, d)). alpha >= 0, beta > 0, lambda >= 0. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_inspect(const cgam_bank *bank, double alpha,
                                                      double beta, double lambda,
                                                      cgam_inspection *out);

/* ---- Landscape: the fixed points of a coupled recall that the starts find, each classified.
 *
 * The energy E(s) of a coupled recall (theory.h) has a critical point at every fixed point: minima, where
 * recalls end, and saddles between them. Descents start from the usual start of a recall, from equal weights,
 * from all weight on one memory, from pairs and larger sets of leaders and from random weights. Newton's
 * method, which also converges uphill, searches for saddles from the same starts and from the ridge between
 * two points. docs/theorems/variational.md has the theory. */

typedef struct cgam_landscape_opts {
    int64_t starts;         /* random starts, in addition to the fixed ones; >= 0, default 64 */
    uint64_t seed;          /* of the random starts; default 0 */
    cgam_progress progress; /* in descents, then in searches for saddles; default none */
} cgam_landscape_opts;
CGAM_API cgam_landscape_opts cgam_landscape_opts_default(void);

typedef struct cgam_point {
    bool minimum;   /* else a saddle; a maximum is a saddle of the highest index */
    int64_t index;  /* number of descending directions: negative eigenvalues of the Hessian of E */
    double energy;  /* E(s) */
    int64_t winner; /* with the largest p, ties to the lowest index */
    double p;       /* of winner */
    double neff_entropy;
    double basin;       /* share of the descents that ended here */
    double fold_margin; /* lambda_min(A - lambda^2 beta (diag p - pp')) at this p, from below */
    bool fold_margin_proved;
    double p_error; /* bound of |p - p*|_2 */
    bool p_error_proved;
} cgam_point;

typedef struct cgam_landscape {
    int64_t count;
    cgam_point *points; /* [count] by rising energy */
    double *p;          /* [count, n] */
    int unique;         /* 1 proved, 0 several were found, -1 undecided */
    bool unique_proved; /* with 0: error bounds separate two of them */
    int64_t starts;     /* total number of descents */
    int64_t
        unresolved; /* descents and Newton searches that ended at a point not distinct from others */
    int64_t euler;  /* sum of (-1)^index: 1 if all points are found and none is degenerate */
} cgam_landscape;

/* plan: mode coupled; with opts.certify FULL, margins are eigenvalues; other levels are treated as USUAL. q [d],
 * c [d_c] or NULL. Every memory is a start if there are at most 1024, else the 1024 leaders. Results have the same
 * bits on any number of threads. Fills *out; free it with cgam_landscape_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_landscape_find(const cgam_recall *plan, const double *q,
                                                        const double *c,
                                                        const cgam_landscape_opts *opts,
                                                        cgam_landscape *out);
CGAM_API void cgam_landscape_free(cgam_env *env, cgam_landscape *landscape); /* leaves it empty */

#ifdef __cplusplus
}
#endif
#endif
