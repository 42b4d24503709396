/* recall.h: a query meets a bank under a context.
 *
 *   b = Z q            query evidence
 *   u = Z P c or W c   what the context says to the gates
 *   first    s = A^-1 u,              r = b + lambda s
 *   coupled  s = A^-1 (u + lambda p), r = b + lambda s,   p = softmax(beta r), self-consistently
 *   anneal   the same fixed points, reached along the branch that begins at beta = 0, where it is the
 *            only one: an answer that depends on no start
 *   flow     the four layers of as_net.h in time, from rest to a steady state or a horizon; any
 *            alpha, context and query clamped unless they are set free
 *
 * opts.entmax puts alpha-entmax in the place of softmax, in every mode: sparse weights, exact from a
 * margin on (docs/theorems/margin.md).
 *
 * Plan once (cgam_recall_new), run many queries (cgam_recall_run). How a recall *ended* is part
 * of its result; the status only says whether it could be carried out. Every bound in a result
 * says whether it is proved or an estimate.
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
    CGAM_END_STALLED,  /* rounding keeps the change above tol, or leaves open whether p is within
                          1e-6 of where the map takes it, or the energy rose: as good as it gets */
    CGAM_END_DIVERGED, /* a number left the range of double */
    CGAM_END_HORIZON,  /* mode flow: t_max came first */
    CGAM_END_ROSE      /* mode flow: the energy rose, or the integrator could not go on */
} cgam_end;
CGAM_API extern const char *const cgam_end_words[];

/* How scores become weights: softmax (order 0) or alpha-entmax of order A, 1 < A <= 2,
 *   p = [1 + (A - 1)(beta r - tau)]_+^(1 / (A - 1)), tau such that p adds up to 1.
 * Those with a name of their own: sparsemax (A = 2), entmax15 (A = 1.5). The order is opts.entmax. */

/* How much of a result is proved, beside what it says. Levels change nothing but certificates: the answer has the same
 * bits. USUAL costs at most a quarter of the recall. FULL computes what costs more: alpha_crit, eigenvalues, a search for a
 * second fixed point. NONE proves nothing: bounds are NAN, unique is -1, p_lower_bound an estimate, and `end` is what
 * the iteration saw; with opts.fast, whose p is a proved interval, it is USUAL. */
typedef enum cgam_certify {
    CGAM_CERTIFY_USUAL, /* 0, and FULL is 1, so that a flag does */
    CGAM_CERTIFY_FULL,
    CGAM_CERTIFY_NONE
} cgam_certify;
CGAM_API extern const char *const cgam_certify_words[];

typedef struct cgam_recall_opts {
    cgam_mode mode; /* default CGAM_FIRST */
    double alpha;   /* >= 0, default 0 */
    double beta;    /* > 0, default 1 */
    double lambda;  /* >= 0, default 1 */
    double
        entmax; /* the activation: order A of alpha-entmax, 1 < A <= 2; default 0 = softmax. All in
                       double; not with fast or none, and there is no Newton finish */
    /* How the context reaches the gates; at most one of P and W. Borrowed while the plan lives. */
    const double *P;      /* [d, d_c], default NULL = the identity, d_c = d */
    const double *W;      /* [n, d_c], default NULL */
    int64_t d_c;          /* needed with P or W */
    double tol;           /* largest change of p to stop at, default 1e-12 */
    int64_t max_iter;     /* default 10000 */
    bool plain;           /* plain iteration only, no Newton finish; default false */
    cgam_certify certify; /* default USUAL */
    /* Mode first. fast: the bank's sketch (bank.h) is scanned instead of its rows, and rows that its
     * bounds leave open are scored. Winner, leaders, their scores, gaps and ranks are those without it;
     * p comes as an interval. A bank without a sketch gets one with the plan, in the time of some four recalls. Where the sketch would have more read than
     * the rows, or p, s, r, a readout or certificates are asked for, all rows are read, in double. Default false. */
    bool fast;
    double
        tol_p; /* with fast: goes on until the interval of p is that narrow; default 0 = as it comes */
    /* Mode first. A ghost memory of this score, which stands for none of the others: it has a part in every
     * sum, gap and bound, but no gate and no row; so not where p acts on gates, and not with certify FULL, which is
     * about the map in which it does. Default false. */
    bool none;
    double none_score;
    size_t memory_max; /* see gate.h; default 0 */
    const cgam_gate
        *gate;         /* A(alpha) of this bank and alpha, borrowed while the plan lives, so that
                              plans share it; default NULL = factored with the plan */
    double beta_start; /* mode anneal: where the branch begins, at most beta; default NAN = half the
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

/* Borrows the bank. Modes coupled and anneal need A positive definite: otherwise CGAM_E_NOT_POSITIVE with
 * alpha_crit in the message. */
CGAM_API CGAM_NODISCARD cgam_status cgam_recall_new(const cgam_bank *bank,
                                                    const cgam_recall_opts *opts,
                                                    cgam_recall **out);
CGAM_API void cgam_recall_free(cgam_recall *plan);                   /* NULL is fine */
CGAM_API const cgam_gate *cgam_recall_gate(const cgam_recall *plan); /* the plan's A(alpha) */

/* Mode flow with a free context: lambda_min(I - W'A^-1 W). The context settles only if it is
 * positive, which with unit memories and W = Z it never is; -INFINITY when A is not positive
 * definite, NAN when the context is clamped. */
CGAM_API double cgam_recall_context_margin(const cgam_recall *plan);

/* NAN marks what is undefined (a gap with n = 1) or was not computed; see each field. */
typedef struct cgam_result {
    int64_t
        winner; /* largest r, ties to the lowest index; -1: the ghost of opts.none, which loses ties */
    int64_t focus; /* the target where one was given, else the winner: what p and gaps speak of */
    int64_t focus_rank; /* how many memories have a larger r, or the same r and a lower index */
    double p, log_p;    /* of focus */
    double neff_entropy, neff_ipr; /* exp(entropy) and 1 / sum p^2 */
    int64_t support;               /* memories with p > 0; with softmax all of them */
    bool exact; /* with opts.entmax: p of focus is 1 and every other 0, proved; mode coupled: at the
                   fixed point */
    double gap, gap_raw, gap_gate; /* of focus over its best competitor in r, b and s */
    double p_lower_bound; /* 1 / (1 + (n-1) exp(-beta gap)), less what rounding may have added; with
                             entmax the first entry of entmax(beta gap, 0, .., 0) */
    bool p_lower_bound_proved;
    int64_t iterations; /* of the map, Newton steps included; mode flow: time steps */
    int64_t newton_steps;
    cgam_end end;
    double change;       /* the last max |p_new - p|; mode flow: |x - F(x)| at the end */
    double time;         /* mode flow: when it ended; else NAN */
    double energy_start; /* E at s = A^-1 u, mode coupled; of the network at rest, mode flow */
    double energy_end;   /* E at the s returned */
    double energy_rise;  /* the largest E_new - E_old seen between passes in double, 0 if none or no
                            more than refined passes find the others off by */
    /* Bounds. What is proved is true for the numbers that were given, rounding included; see
     * docs/theorems/rounding.md. */
    double contraction; /* beta lambda^2 / (2 eta_min) or more, with entmax twice that; NAN when no
                           eta_min > 0 is known */
    bool contraction_proved;
    int unique;         /* 1 proved, 0 two fixed points were found, -1 not decided */
    bool unique_proved; /* with 0: their error bounds keep the two apart */
    double
        fold_margin; /* a lower bound of lambda_min(A - lambda^2 beta (diag p - pp')) at the p returned, and at
                           softmax of the exact scores; where p_error is proved, at the fixed point p* too, for
                           softmax. Entmax has diag w - ww' / sum w there, w = p^(2 - A) on the support */
    bool fold_margin_exact, fold_margin_proved; /* exact: to 1e-9 max(1, |fold_margin|) */
    double p_error; /* bound of |p - p*|_2, NAN when there is none; mode coupled */
    bool p_error_proved;
    double
        local_contraction; /* largest eigenvalue of beta lambda^2 A^-1 (diag p - pp') or more, at the p
                                 returned */
    bool local_contraction_proved;
    double
        readout_left_out; /* bound of the weight of the rows that sums and readout passed over, at
                                most 2^-54: the readout is within this times max |zeta| of complete */
    double p_none;        /* of the ghost, with opts.none; else 0 */
    /* With opts.fast: p and p_none of the exact scores lie in these intervals, proved; p, p_none and top_p
     * are their lower ends, and neff_* are NAN unless all rows were scored. */
    double p_from, p_to, p_none_from, p_none_to;
    double score_error; /* scores of double, of memories that weigh anything, are within this of the
                           exact ones */
    int64_t rescored;   /* memories whose scores were computed from their rows */
    bool fallback;      /* all of them, since that cost less or more was asked for */
} cgam_result;

/* ---- Mode anneal: the branch. */
typedef struct cgam_anneal_point {
    double beta, energy;
    int64_t winner;
    double p;           /* of winner */
    double fold_margin; /* an eigenvalue on small banks, else a lower bound */
} cgam_anneal_point;

typedef enum cgam_transition_kind {
    CGAM_TRANSITION_FOLD,      /* the branch ends, and another is followed */
    CGAM_TRANSITION_PITCHFORK, /* a symmetric branch is no minimum any more; the one that favours the
                                  lowest index is followed */
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
    cgam_transition *transition; /* [transitions] as they came */
} cgam_anneal;
CGAM_API void cgam_anneal_free(cgam_env *env, cgam_anneal *path); /* leaves it empty */

/* What a run returns beside the results; any pointer may be NULL. */
typedef struct cgam_recall_out {
    cgam_result *results; /* [queries] */
    int64_t top;          /* k, at most n */
    int64_t *top_index;   /* [queries, k], by falling p, ties to the lowest index */
    double *top_p;        /* [queries, k] */
    double *top_log_p;    /* [queries, k] */
    double *p, *s, *r;    /* [queries, n] each */
    double *readout;      /* [queries, d]  Z' p */
    cgam_anneal
        *anneal; /* [queries] mode anneal: the branches, each to be freed, after an error too */
} cgam_recall_out;

typedef struct cgam_recall_in {
    int64_t queries;
    const double *q;       /* [queries, d] */
    const double *c;       /* NULL = no context, [d_c] shared, or [queries, d_c] */
    bool c_per_query;      /* which of the two */
    const int64_t *target; /* NULL = none, or [queries] */
    const double *start;   /* NULL = where a recall starts, softmax(beta (b + lambda A^-1 u)), or
                              [queries, n]: mode coupled starts from these weights, 0 or more and not
                              all 0, divided by their sum */
} cgam_recall_in;

/* The ways of a recall. */
typedef enum cgam_path {
    CGAM_PATH_PASS,             /* mode first: one pass over the bank, no vectors of n numbers */
    CGAM_PATH_MATRICES,         /* mode first: the same for many queries as matrix products */
    CGAM_PATH_VECTORS,          /* mode first, with p, s and r of every memory */
    CGAM_PATH_COUPLED,          /* mode coupled: each query iterates by itself */
    CGAM_PATH_COUPLED_TOGETHER, /* mode coupled: many iterate together as matrix products */
    CGAM_PATH_FLOW,
    CGAM_PATH_SKETCH, /* mode first with opts.fast: by the sketch; some queries may fall back */
    CGAM_PATH_ANNEAL, /* mode anneal: each query by itself */
    CGAM_PATH_LANES /* small banks, modes first and coupled: a row in each lane of the CPU's vectors */
} cgam_path;
CGAM_API extern const char *const cgam_path_words[];

enum { CGAM_RECALL_GROUP = 64 }; /* the most queries that go together */

typedef struct cgam_route {
    cgam_path path;
    cgam_dtype precision; /* of most of the arithmetic, CGAM_F64 or CGAM_F32; f32 is left where its
                             bound does not hold for a query, and a coupled recall ends in double */
    int64_t group;        /* queries that go together; the last of a call may be fewer, and then
                             take the way of their own number */
    const char *
        unit; /* the instructions of most of the arithmetic: "avx2", "avx512", "neon", ..; by sketch or as
                             matrices in f32 "vnni", "amx", .., where the CPU multiplies bytes; static text */
    cgam_certify certify; /* how much is proved */
} cgam_route;
/* The way that cgam_recall_run takes with these; it reads no query and writes nothing. */
CGAM_API cgam_route cgam_recall_route(const cgam_recall *plan, const cgam_recall_in *in,
                                      const cgam_recall_out *out);

/* Queries are independent, and results have the same bits on any number of threads. What arithmetic
 * they are computed in depends on the bank and on how many queries come together.
 *
 * Small banks (under 2^18 numbers), banks of f64, and any call that asks for p, s or r in mode first:
 * in double. A query has the bits that it has alone, but for mode first on large banks of f64, where
 * eight or more are multiplied as matrices, in another order. On path lanes, which most recalls on small banks take,
 * a plan keeps its work areas: a call like the one before asks for no memory.
 *
 * Mode first without p, s and r goes over the bank once and writes no vectors of n numbers. On large
 * banks of f32, f16 or bf16 its products are then in f32, where
 * beta max|zeta| (|q| + lambda |A^-1 Z v| as a bound sees it) is at most 400. A score may be off by
 * 40 * 2^-24 of that bound without beta, a weight by a thousandth of itself (a hundredth of this is
 * usual); from eight queries on, which are multiplied as matrices, by 130 + d / 128 instead of 40, on
 * tiles of bytes too, where the CPU multiplies such and each number is three digits.
 * Matrices add weights in f32 over tiles of 288 rows, so 1 - p of a clear winner may be off by
 * 289 * 2^-24; a readout by 340 * 2^-24 of what the largest number of its 256 columns would make
 * (a hundredth is usual).
 * Winner, leaders, the target and all three gaps are always those of double, and so is a target's rank
 * among the leaders asked for; beyond them it is as f32 counts it. Whatever beta is, p is at most 1 and the p of
 * leaders add up to 1 at most: scores that meet in one exponential come from one evaluation. Rows that together
 * weigh no more than 2^-55 of a batch's leaders have no part in its sums. To get all digits of all scores
 * asks for r.
 *
 * Mode coupled begins on such banks in f32 and ends in double: what has converged is good to tol
 * either way. Eight queries or more iterate together, as matrices; one that has settled waits for the
 * others and goes on from a new reference, so `iterations` is not what the query takes alone, and
 * what stops at max_iter differs as f32 does.
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

/* ---- What a bank allows - the spectrum of its Gram matrix, its critical penalty, and what
 * given parameters mean for a coupled recall. The verb `inspect` prints it. */

typedef struct cgam_inspection {
    cgam_bank_info bank;
    cgam_gram_info gram;
    cgam_gate_info gate;      /* of A(alpha), alpha_crit known with full effort */
    double contraction;       /* beta lambda^2 / (2 eta_min), rounded up; NAN where eta_min <= 0 */
    bool unique;              /* contraction < 1: one answer, proved; false: not decided */
    double lambda_unique_max; /* the largest lambda with that proof */
} cgam_inspection;

/* O(min(n, d)^2 max(n, d)). alpha >= 0, beta > 0, lambda >= 0. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_inspect(const cgam_bank *bank, double alpha,
                                                      double beta, double lambda,
                                                      cgam_inspection *out);

/* ---- The fixed points of a coupled recall, as many as starts reveal, and what each of them is.
 *
 * The energy E(s) of recall.h has a critical point at every fixed point: minima, where recalls end, and
 * saddles between them. Descents are started from where a recall starts, from equal weights, from all
 * weight on one memory, from pairs and larger sets of leaders and from random weights; Newton's method,
 * which does not mind where it is uphill, looks for saddles from the same starts and from the ridge between
 * two points. docs/theorems/variational.md has the theory. */

typedef struct cgam_landscape_opts {
    int64_t starts; /* random starts, beside those that are tried in any case; >= 0, default 64 */
    uint64_t seed;  /* of them; default 0 */
    cgam_progress progress; /* in descents, then in searches for saddles; default silence */
} cgam_landscape_opts;
CGAM_API cgam_landscape_opts cgam_landscape_opts_default(void);

typedef struct cgam_point {
    bool minimum;   /* else a saddle, a maximum being one of the highest index */
    int64_t index;  /* how many directions lead down: negative eigenvalues of the Hessian of E */
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
    int unique;         /* 1 proved, 0 there are several, -1 not decided */
    bool unique_proved; /* with 0: error bounds keep two apart */
    int64_t starts;     /* descents in all */
    int64_t
        unresolved; /* of those, and of Newton's, ended at no point that could be told from others */
    int64_t euler;  /* sum of (-1)^index: 1 where all points are found and none is degenerate */
} cgam_landscape;

/* plan: mode coupled; with opts.certify FULL margins are eigenvalues, other levels are USUAL. q [d], c [d_c] or NULL. Every memory is a
 * start where there are at most 1024, else the 1024 that lead. The same bits on any number of threads. */
CGAM_API CGAM_NODISCARD cgam_status cgam_landscape_find(const cgam_recall *plan, const double *q,
                                                        const double *c,
                                                        const cgam_landscape_opts *opts,
                                                        cgam_landscape *out);
CGAM_API void cgam_landscape_free(cgam_env *env, cgam_landscape *landscape); /* leaves it empty */

#ifdef __cplusplus
}
#endif
#endif
