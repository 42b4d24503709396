/* gate.h (inside): the pieces of a gate that recall streams with. */
#ifndef CGAM_SRC_MEMORY_GATE_H
#define CGAM_SRC_MEMORY_GATE_H

#include <cgam/gate.h>

#include "memory/bank.h"
#include "num/dplr.h"

struct cgam_gate {
    const cgam_bank *bank;
    cgam_gate_info info;
    double a;      /* alpha, but 0 for a single memory: it has no rivals, and 1 - x + x is not 1 */
    double *D;     /* [n] 1 - a n_i */
    cgam_dplr *A;  /* NULL: conjugate gradients */
    bool one_pass; /* A^-1 Z v comes exact out of one pass over Z: cgam_dplr_range will do */
    cgam_spectrum *critical_modes; /* at the critical point where one pass will not do, else NULL */
};

/* The operator A - shift_p diag(p) + shift_p p p' as a spec, D filled into the caller's array;
 * shift_p = lambda^2 beta gives the Hessian of the coupled energy. factor scales A alone. */
cgam_dplr_spec cgam_gate_hessian(const cgam_gate *gate, double factor, double shift_p,
                                 const double *p, double *D);

/* Is work of O(n min(n,d)^2) cheap enough to do unasked? */
bool cgam_bank_small(const cgam_bank *bank);

#endif
