/* inspect.h: what a bank allows - the spectrum of its Gram matrix, its critical penalty, and what
 * given parameters mean for a coupled recall. The verb `inspect` prints it.
 */
#ifndef CGAM_INSPECT_H
#define CGAM_INSPECT_H

#include <cgam/gate.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
