/* gate.h: the gate operator  A(alpha) = I + alpha (G - diag G),  G = Z Z'.
 *
 * Gates s for an input u solve A s = u, the steady state of tau_s ds/dt = u - A s. A is never formed:
 * it is D + alpha Z Z' with D = diag(1 - alpha n_i), so a solve needs a d x d system (n x n if
 * n <= d) factored once. There are two objects: a *gate* is one alpha factored for many solves; a
 * *spectrum* is one eigen-decomposition for all alphas of a bank.
 */
#ifndef CGAM_GATE_H
#define CGAM_GATE_H

#include <cgam/bank.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cgam_regime {
    CGAM_SUBCRITICAL,  /* alpha < alpha_crit: A is positive definite, proved */
    CGAM_CRITICAL,     /* |1 - alpha / alpha_crit| <= 1e-9 */
    CGAM_SUPERCRITICAL /* A has a negative eigenvalue */
} cgam_regime;
CGAM_API extern const char *const cgam_regime_words[];

/* The alpha at which the operator becomes singular; infinite if there is none. */
typedef struct cgam_critical {
    double alpha;              /* the best known value; NAN if only the bounds below are known */
    double alpha_lo, alpha_hi; /* alpha_lo <= alpha_crit <= alpha_hi, proved */
    bool proved;               /* alpha itself is within 1e-9 of it, relative, or infinite */
} cgam_critical;

typedef enum cgam_effort {
    CGAM_EFFORT_FREE, /* from the norms alone, O(n log n) */
    CGAM_EFFORT_FULL, /* Lanczos and an inertia count, O(n d^2) */
    CGAM_EFFORT_LEAST /* gates only: the least that a recall needs. At alpha = 0 from the largest norm, O(1);
                         else from the norms, and on small banks from an eigenvalue if the norms leave
                         eta_min open by more than a factor of 2 */
} cgam_effort;

/* alpha_crit = -1 / lambda_min(G - diag G). With n > d and equal norms it is 1 / n_i, at no cost.
 * effort: FREE or FULL. */
CGAM_API CGAM_NODISCARD cgam_status cgam_gate_critical(const cgam_bank *bank, cgam_effort effort,
                                                       cgam_critical *out);

typedef struct cgam_gate cgam_gate;

typedef struct cgam_gate_opts {
    size_t memory_max;  /* bytes for the small system; default 0 = half of the available memory */
    cgam_effort effort; /* spent on alpha_crit; default FREE, which is FULL on small banks */
    /* Use these to factor one bank at many alphas. Borrowed during the call. */
    const cgam_critical *critical; /* result of cgam_gate_critical for this bank; default NULL */
    const struct cgam_spectrum
        *spectrum; /* of this bank: with equal norms and n > d no pass over the
                                             rows is needed; default NULL */
    bool coupled;  /* store the data that coupled recalls iterate with, for plans that share the
                     gate (recall.h); default false: each plan makes its own */
    bool alike;    /* likewise store which memories are stored alike; default false */
} cgam_gate_opts;
CGAM_API cgam_gate_opts cgam_gate_opts_default(void);

/* Factors A(alpha), alpha >= 0; borrows the bank. If the small system does not fit into memory_max,
 * solves use conjugate gradients, provided that alpha max n_i < 1 proves A positive definite;
 * otherwise this fails, and the message names the size. */
CGAM_API CGAM_NODISCARD cgam_status cgam_gate_new(const cgam_bank *bank, double alpha,
                                                  const cgam_gate_opts *opts, cgam_gate **out);
CGAM_API void cgam_gate_free(cgam_gate *gate); /* NULL is fine */

typedef struct cgam_gate_info {
    double alpha;
    cgam_regime regime;
    cgam_critical critical;
    double eta_min;     /* a proved lower bound of lambda_min(A), rounding included */
    bool eta_min_exact; /* lambda_min(A) is at most 1e-9 max(1, |eta_min|) above eta_min, proved */
    int64_t negative;   /* number of negative eigenvalues of A, counted in floating point */
    bool iterative;     /* solves use conjugate gradients */
} cgam_gate_info;
CGAM_API cgam_gate_info cgam_gate_describe(const cgam_gate *gate);

/* y[n] = A x. */
CGAM_API CGAM_NODISCARD cgam_status cgam_gate_apply(const cgam_gate *gate, const double *x,
                                                    double *y);
/* y[n] = A^-1 x with iterative refinement. *backward (may be NULL) = |Ay - x| / (|A||y| + |x|),
 * measured. CGAM_E_SINGULAR at the critical point. */
CGAM_API CGAM_NODISCARD cgam_status cgam_gate_solve(const cgam_gate *gate, const double *x,
                                                    double *y, double *backward);
/* y[n] = A^-1 Z v, v [d], in one pass; defined at the critical point too if the critical modes are
 * not excited, as with equal norms and n > d. */
CGAM_API CGAM_NODISCARD cgam_status cgam_gate_solve_range(const cgam_gate *gate, const double *v,
                                                          double *y);

/* ---- One decomposition for all alphas ----------------------------------------------------- */
/* G - diag G = V diag(omega) V'. For equal norms, modes come from the smaller of Z'Z and ZZ', and
 * their orthogonal complement is one eigenspace with omega = -n_i. For unequal norms the n x n
 * matrix itself is decomposed, so n is limited (the message of CGAM_E_NOMEM names the size). */
typedef struct cgam_spectrum cgam_spectrum;
CGAM_API CGAM_NODISCARD cgam_status cgam_spectrum_new(const cgam_bank *bank, cgam_spectrum **out);
CGAM_API void cgam_spectrum_free(cgam_spectrum *spectrum);

typedef struct cgam_spectrum_info {
    int64_t modes;               /* explicit ones */
    int64_t kernel;              /* dimension of the complement, 0 for unequal norms */
    double omega_min, omega_max; /* of G - diag G */
    double mu_min, mu_max;       /* of G; mu_min = 0 exactly when rank < n */
    int64_t rank;                /* of Z */
    double alpha_crit;           /* infinite if omega_min >= 0 */
    const double *omega;         /* [modes] of the explicit ones, ascending; owned by the spectrum.
                                    eta = 1 + alpha omega */
} cgam_spectrum_info;
CGAM_API cgam_spectrum_info cgam_spectrum_describe(const cgam_spectrum *spectrum);

/* y = A(alpha)^-1 x for any alpha, O(nd) for equal norms. */
CGAM_API CGAM_NODISCARD cgam_status cgam_spectrum_solve(const cgam_spectrum *spectrum, double alpha,
                                                        const double *x, double *y);
/* y = P_min x, the projection on the eigenspace of omega_min. */
CGAM_API CGAM_NODISCARD cgam_status cgam_spectrum_project_min(const cgam_spectrum *spectrum,
                                                              const double *x, double *y);
/* s(t) of  tau ds/dt = u - A(alpha) s, s(0) = s0 (NULL = 0), in closed form. Entries that leave
 * the range of double are returned as +-DBL_MAX, never as NaN. */
CGAM_API CGAM_NODISCARD cgam_status cgam_spectrum_transient(const cgam_spectrum *spectrum,
                                                            double alpha, double tau, double t,
                                                            const double *u, const double *s0,
                                                            double *s);

/* Eigenvalues of G alone: mu_min (0 exactly when rank < n), mu_max, rank. O(min(n,d)^2 max(n,d)). */
typedef struct cgam_gram_info {
    double mu_min, mu_max;
    int64_t rank; /* eigenvalues above max(n, d) * 2^-52 * mu_max */
} cgam_gram_info;

#ifdef __cplusplus
}
#endif
#endif
