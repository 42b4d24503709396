/* theory.h: every theorem as a function that takes numbers and returns numbers.
 *
 * No function requires a recall. docs/theorems/ has a page for each theorem, with its statement and
 * its limits.
 */
#ifndef CGAM_THEORY_H
#define CGAM_THEORY_H

#include <cgam/gate.h>

#include <cgam/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Separation --------------------------------------------------------------------------- */
/* The logistic bound: P(mu) >= 1 / (1 + (n-1) exp(-beta gap)), gap = min over nu != mu of
 * r_mu - r_nu. n = 1 gives 1. */
CGAM_API double cgam_separation_bound(int64_t n, double beta, double gap);
CGAM_API double cgam_separation_bound_log(int64_t n, double beta, double gap);
/* The gap that makes the bound 1 - epsilon: ln((1-epsilon)(n-1)/epsilon) / beta. */
CGAM_API double cgam_separation_threshold(int64_t n, double beta, double epsilon);
/* Delta_raw + lambda Delta_gate, a lower bound of the gap of r = b + lambda s at mu. */
typedef struct cgam_gaps {
    double gap, raw, gate, sum; /* sum = raw + lambda gate <= gap */
} cgam_gaps;
CGAM_API cgam_gaps cgam_separation_gaps(int64_t n, const double *b, const double *s, double lambda,
                                        int64_t mu);

/* ---- Stability and readout (docs/theorems/stability.md) ----------------------------------- */
/* Lower bounds of the smallest eigenvalue of the energy's Hessian at a fixed point of the coupled recall where one
 * memory has probability p or more. Above 0 the fixed point is asymptotically stable, for all time constants. Not
 * widened by their rounding. With query and context held: eta_min - 2 lambda^2 beta p (1 - p), p at least 1/2. */
CGAM_API double cgam_stability_margin(double eta_min, double beta, double lambda, double p);
/* With a free query: min(eta_min, 1) - beta (1 - p) (2 lambda^2 + 4 norm_max^2). */
CGAM_API double cgam_stability_margin_free_query(double eta_min, double beta, double lambda,
                                                 double norm_max, double p);
/* |Z'p - zeta_mu| <= 2 norm_max (1 - P(mu)), with the logistic bound of P(mu) for this gap, norm_max = max |zeta|. */
CGAM_API double cgam_readout_bound(int64_t n, double beta, double gap, double norm_max);

/* ---- Criticality of the gates (lambda = 0) ------------------------------------------------ */
typedef struct cgam_winner {
    int64_t index;      /* argmax of P_min w; -1: no winner, see reason */
    double gap;         /* between the two largest entries of P_min w */
    double gamma;       /* growth rate -1 - alpha omega_min */
    const char *reason; /* NULL, or why there is no winner */
} cgam_winner;
/* Finds the winner above alpha_crit: w = s(0) + u / gamma. s0 NULL = 0. */
CGAM_API CGAM_NODISCARD cgam_status cgam_supercritical_winner(const cgam_spectrum *spectrum,
                                                              double alpha, const double *u,
                                                              const double *s0, cgam_winner *out);

typedef struct cgam_horizon {
    double time;      /* t*: p(winner) >= 1 - delta for t >= t*; infinite if no mode grows */
    double rest;      /* B, a bound of the effect of the other modes */
    double gap;       /* Delta_0, of the two largest entries of P_min (gamma s(0) + u) */
    bool closed_form; /* false: another mode grows too, and t* was found numerically */
    int64_t winner;
    const char *reason; /* NULL, or why there is no horizon */
} cgam_horizon;
/* s0 [n], NULL = 0. From s(0) = 0: t* = (tau/gamma) log1p(gamma (L + beta B) / (beta Delta_0)), L = ln((1-delta)(n-1)/
 * delta). use_rest false takes B = 0, as the paper's study does; then t* is not proved. */
CGAM_API CGAM_NODISCARD cgam_status cgam_supercritical_horizon(const cgam_spectrum *spectrum,
                                                               double alpha, double tau,
                                                               double beta, double delta,
                                                               const double *u, const double *s0,
                                                               bool use_rest, cgam_horizon *out);

/* ---- Criticality with coupling ------------------------------------------------------------ */
typedef struct cgam_coupled_critical {
    double alpha;       /* (1 - lambda^2 beta / n) / (1 - mu_perp_min); NAN if not valid */
    double mu_perp_min; /* smallest eigenvalue of G orthogonal to 1 */
    bool unit;          /* unit memories */
    bool balanced;      /* G 1 = mu_G 1, to 1e-9 */
    bool weak;          /* lambda^2 beta < n */
    bool below_one;     /* mu_perp_min < 1 */
    bool positive;      /* A(alpha) is positive definite at that alpha */
} cgam_coupled_critical;
/* Valid if all five conditions hold, for constant u and b and fast gates. */
CGAM_API CGAM_NODISCARD cgam_status cgam_coupled_critical_find(const cgam_bank *bank, double lambda,
                                                               double beta,
                                                               cgam_coupled_critical *out);

typedef struct cgam_fold {
    double alpha;  /* end of the branch of fixed points from alpha = 0; NAN: not before
                      alpha_max */
    double margin; /* fold margin at the last point before the end */
    int64_t steps;
} cgam_fold;
/* Follows the fixed point p*(alpha) of the coupled map from alpha = 0 and finds, to tol, where
 * A - lambda^2 beta (diag p* - p*p*') stops being positive definite. b [n], u [n]. alpha_max is
 * capped just below alpha_crit. */
CGAM_API CGAM_NODISCARD cgam_status cgam_fold_find(const cgam_bank *bank, double lambda,
                                                   double beta, const double *b, const double *u,
                                                   double alpha_max, double tol, cgam_fold *out);

/* ---- Self-consistent recall --------------------------------------------------------------- */
/* beta lambda^2 / (2 eta_min), rounded up; unique below 1. */
CGAM_API double cgam_contraction(double beta, double lambda, double eta_min);
/* The largest lambda with a proved unique fixed point, sqrt(2 eta_min / beta), rounded down; 0 if
 * eta_min <= 0. */
CGAM_API double cgam_contraction_lambda_max(double beta, double eta_min);
/* Largest eigenvalue of beta lambda^2 A^-1 (diag p - pp'): the local contraction at p. *proved: the
 * eigenvalue is at most *value, rounding included; *value is then the smallest of a few candidates above
 * the eigenvalue that could be proved, usually within 1e-9 of it. A must be positive definite. */
CGAM_API CGAM_NODISCARD cgam_status cgam_contraction_local(const cgam_gate *gate, double beta,
                                                           double lambda, const double *p,
                                                           double *value, bool *proved);
/* lambda_min(A - lambda^2 beta (diag p - pp')) from below. *proved: the eigenvalue is at least *value
 * and at most 1e-9 max(1, |*value|) above it, rounding included. */
CGAM_API CGAM_NODISCARD cgam_status cgam_fold_margin(const cgam_gate *gate, double beta,
                                                     double lambda, const double *p, double *value,
                                                     bool *proved);
/* The three parts of r* = b + lambda A^-1 u + lambda^2 A^-1 p*; out arrays [n] may be NULL. */
CGAM_API CGAM_NODISCARD cgam_status cgam_retrieval_parts(const cgam_gate *gate, double lambda,
                                                         const double *u, const double *p,
                                                         double *bias, double *feedback);
/* E(s) = s'As/2 - u's - lse(beta (b + lambda s)) / beta, and its gradient As - u - lambda p
 * (may be NULL). */
CGAM_API CGAM_NODISCARD cgam_status cgam_coupled_energy(const cgam_gate *gate, double beta,
                                                        double lambda, const double *b,
                                                        const double *u, const double *s,
                                                        double *energy, double *gradient);
/* |diag p - pp'|_2, the norm of the softmax Jacobian over beta; at most 1/2. O(n). */
CGAM_API double cgam_softmax_norm(int64_t n, const double *p);
/* A cheap upper bound of that norm, 2 max p (1 - p). */
CGAM_API double cgam_softmax_norm_bound(int64_t n, const double *p);

/* A context that is not clamped settles iff A - W W' is positive definite, which for A > 0 is
 * lambda_min(I - W'A^-1 W) > 0: that is *margin. W = Z P; P NULL = the identity. With unit memories
 * and P = I it never holds: zeta'A^-1 zeta >= 1 for some mode. Takes d_c passes. */
CGAM_API CGAM_NODISCARD cgam_status cgam_context_margin(const cgam_gate *gate, const double *P,
                                                        int64_t d_c, double *margin);

/* ---- Modern Hopfield (lambda = 0) --------------------------------------------------------- */
/* -lse(beta, Z xi) + |xi|^2/2 + ln(n)/beta + M^2/2, with lse(beta, x) = ln(sum exp(beta x))/beta. */
CGAM_API CGAM_NODISCARD cgam_status cgam_hopfield_energy(const cgam_bank *bank, double beta,
                                                         const double *xi, double *energy);
/* out[d] = Z' softmax(beta Z xi); out may be xi. */
CGAM_API CGAM_NODISCARD cgam_status cgam_hopfield_update(const cgam_bank *bank, double beta,
                                                         const double *xi, double *out);
/* Iterates from xi to a fixed point out[d]; *change is the last |step|. */
CGAM_API CGAM_NODISCARD cgam_status cgam_hopfield_settle(const cgam_bank *bank, double beta,
                                                         const double *xi, double tol,
                                                         int64_t max_iter, double *out,
                                                         int64_t *iterations, double *change);
typedef struct cgam_hopfield_bounds {
    double separation;  /* Delta_x = min over y != x of x'x - x'y */
    double one_step;    /* bound of |f(xi) - x*| (Ramsauer et al., theorem 4) */
    double retrieval;   /* bound of |f(xi) - x| (theorem 5) */
    double fixed_point; /* bound of |x - x*|, NAN unless both |x - x*|, |x - xi| <= 1/(2 beta M) */
} cgam_hopfield_bounds;
/* For memory i, query xi and fixed point x_star. Infinite if the exponential overflows. */
CGAM_API CGAM_NODISCARD cgam_status cgam_hopfield_bound(const cgam_bank *bank, double beta,
                                                        int64_t i, const double *xi,
                                                        const double *x_star,
                                                        cgam_hopfield_bounds *out);
/* out[m, d_v] = softmax(Q K' / sqrt(d_k)) V: Q [m, d_k], K [n, d_k], V [n, d_v]. */
CGAM_API CGAM_NODISCARD cgam_status cgam_attention(cgam_env *env, int64_t m, int64_t n, int64_t d_k,
                                                   int64_t d_v, const double *Q, const double *K,
                                                   const double *V, double *out);

/* ---- Memories as networks - the two-stage memory, the modern Hopfield network and the dense
 * associative memory, each built of layers and synapses over a bank (net.h) and ready to flow
 * (flow.h). They are the definitions; tests compare the fast paths (recall.h, theory.h) with them. */

/* ---- The two-stage memory ----------------------------------------------------------------- */
/* Layers by number. Context, gates and query are quadratic, retrieval is a log-sum-exp.
 *   h1 -s'Wc      h2 alpha/2 s'(G - diag G)s      h3 -lambda s'p      h4 -q'Z'p
 *   tau_c c' = W's - c         tau_s s' = Wc - alpha (G - diag G)s + lambda p - s
 *   tau_r r' = lambda s + Zq - r         tau_q q' = Z'p - q                  p = softmax(beta r),
 * or the alpha-entmax of order `entmax`. */
enum { CGAM_NET_CONTEXT, CGAM_NET_GATES, CGAM_NET_RETRIEVAL, CGAM_NET_QUERY };

typedef struct cgam_memory_net_opts {
    double alpha, beta, lambda;        /* default 0, 1, 1 */
    const double *P;                   /* [d, d_c], default NULL = the identity, d_c = d */
    const double *W;                   /* [n, d_c], default NULL; at most one of P and W; both must
                                   outlive the network */
    int64_t d_c;                       /* required with P or W */
    double tau_c, tau_s, tau_r, tau_q; /* default 1 each */
    double entmax;                     /* 1 < entmax <= 2; default 0 = softmax */
} cgam_memory_net_opts;
CGAM_API cgam_memory_net_opts cgam_memory_net_opts_default(void);

/* The bank must outlive the network. Context and query are not clamped here: clamps are options of a
 * flow. An evaluation takes one pass over the bank in each direction. */
CGAM_API CGAM_NODISCARD cgam_status cgam_memory_net_new(const cgam_bank *bank,
                                                        const cgam_memory_net_opts *opts,
                                                        cgam_net **out);

/* ---- Memories of one stage ---------------------------------------------------------------- */
/* A dense associative memory (Krotov and Hopfield 2016, 2021): visible units a = tanh(beta v), and
 * memories with rectified powers of degree `power` that are settled (docs/guide/networks-hopfield.md
 * has it as a network). */
/* Its energy: E(v) = sum (v a - log cosh(beta v) / beta)
 *   - sum over memories of max(<zeta, a>, 0)^power / power,   v [d]. */
CGAM_API CGAM_NODISCARD cgam_status cgam_dense_energy(const cgam_bank *bank, double beta,
                                                      double power, const double *v,
                                                      double *energy);
/* out[d] = Z' max(Z a, 0)^(power - 1): the map whose fixed points are the network's steady states.
 * It never raises the energy. out may be v. */
CGAM_API CGAM_NODISCARD cgam_status cgam_dense_update(const cgam_bank *bank, double beta,
                                                      double power, const double *v, double *out);

/* F(p) = -<b + lambda A^-1 u, p> - lambda^2 p'A^-1 p / 2 - H(p) / beta on the simplex, H the entropy,
 * whose critical points are the fixed points; and its gradient (may be NULL), infinite where
 * p_i = 0. A must be positive definite. */
CGAM_API CGAM_NODISCARD cgam_status cgam_coupled_free_energy(const cgam_gate *gate, double beta,
                                                             double lambda, const double *b,
                                                             const double *u, const double *p,
                                                             double *energy, double *gradient);

#ifdef __cplusplus
}
#endif
#endif
