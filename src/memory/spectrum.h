/* spectrum.h (inside): what the theorems need of a spectrum beyond its public header. */
#ifndef CGAM_SRC_MEMORY_SPECTRUM_H
#define CGAM_SRC_MEMORY_SPECTRUM_H

#include "memory/gate.h"

/* c[modes] = v_k' x for the explicit modes. */
cgam_status cgam_spectrum_analyse(const cgam_spectrum *sp, const double *x, double *c);
/* out[count, modes] = v_k(i) for memories i = begin .. begin + count - 1. */
cgam_status cgam_spectrum_rows(const cgam_spectrum *sp, int64_t begin, int64_t count, double *out);
/* Like the public transient, but returns s exp(-*shift), to compare entries beyond the range of double; *shift is 0
 * if nothing can overflow. */
cgam_status cgam_spectrum_transient_scaled(const cgam_spectrum *sp, double alpha, double tau,
                                           double t, const double *u, const double *s0, double *s,
                                           double *shift);
/* [d, d] Z'Z, lower triangle by rows; NULL if norms differ or n <= d. */
const double *cgam_spectrum_gram(const cgam_spectrum *sp);
/* The bank a spectrum was made from. */
const cgam_bank *cgam_spectrum_bank(const cgam_spectrum *sp);

#endif
