/* gate.h (inside): the parts of a gate that recall streams with. */
#ifndef CGAM_SRC_MEMORY_GATE_H
#define CGAM_SRC_MEMORY_GATE_H

#include <cgam/gate.h>
#include <cgam/theory.h>

#include "memory/bank.h"
#include "num/dplr.h"
#include "num/rounding.h"

struct cgam_gate {
    const cgam_bank *bank;
    cgam_gate_info info;
    double a; /* alpha; 0 for a single memory, as 1 - x + x may not round to 1 */
    double
        eta_least; /* <= eta_min, as CGAM_EFFORT_LEAST knows it: what iterations go by, so that levels of
                         certificates do not change them */
    double gain;   /* upper bound of |A^-1|; INFINITY if unknown */
    cgam_dplr *A;  /* NULL: conjugate gradients */
    bool one_pass; /* A^-1 Z v is exact from one pass over Z: cgam_dplr_range is accurate enough */
    cgam_dplr_inverse *small;      /* of A, if requested; else NULL */
    bool alike;                    /* twins was computed: */
    struct cgam_twins *twins;      /* equal memories; NULL = none */
    cgam_spectrum *critical_modes; /* NULL unless critical and one pass is inexact */
};

/* The operator factor A - shift_p (diag p - p p') as a spec; shift_p = lambda^2 beta gives the
 * Hessian of the coupled energy. */
cgam_dplr_spec cgam_gate_hessian(const cgam_gate *gate, double factor, double shift_p,
                                 const double *p);

/* lambda_min(I - W'A^-1 W) for A positive definite: W [n, k] as given, or Z P, P [d, k], or Z itself. */
cgam_status cgam_gate_context_margin(const cgam_gate *gate, const double *W, const double *P,
                                     int64_t k, double *margin);

/* Are all memories orthogonal to each other? Decided without rounding; UNKNOWN only if products of entries are near
 * underflow. Stops at the first pair that is not orthogonal. */
cgam_status cgam_bank_orthogonal(const cgam_bank *bank, cgam_sign *out);

/* Is work of O(n min(n,d)^2) cheap enough to do without being requested? */
bool cgam_bank_small(const cgam_bank *bank);

/* Returns its approximate size in bytes, without the bank. */
size_t cgam_gate_bytes(const cgam_gate *gate);
/* y[n] = A(alpha)^-1 Z v, v [d]; takes one pass over the bank if norms are equal and n > d. */
CGAM_NODISCARD cgam_status cgam_spectrum_solve_range(const cgam_spectrum *spectrum, double alpha,
                                                     const double *v, double *y);
CGAM_NODISCARD cgam_status cgam_bank_gram(const cgam_bank *bank, cgam_gram_info *out);
/* The same, and all of them but the zeros that n > d makes: mu [min(n, d)], ascending. */
CGAM_NODISCARD cgam_status cgam_bank_eigenvalues(const cgam_bank *bank, double *mu,
                                                 cgam_gram_info *out);

/* The bank as an operator [n, d]; the bank must outlive it. */
cgam_op cgam_bank_op(const cgam_bank *bank);

#endif
