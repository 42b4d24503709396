/* probe.h: can a straight line tell the classes apart, and do states point at their label's word? */
#ifndef CGAM_SRC_LAB_LANGUAGE_PROBE_H
#define CGAM_SRC_LAB_LANGUAGE_PROBE_H

#include <cgam/lm.h>

/* Logistic regression (liblinear, L2, one class against the rest, the bias a feature like others)
 * trained on one half of the states, i % 2, and tested on the other, in both directions. Features are
 * scaled to mean 0 and deviation 1 on the states that are trained on. C is the value of 1e-4, 1e-3, .., 10 with the
 * best accuracy within the training half, the smallest of equal ones: five folds, where the s-th state of a
 * class is in fold s % 5. States at H, H + stride, ...; target -1: left out. accuracy over all that
 * are counted; NAN if a half has only one class. right [count]: of which states; NULL is fine. */
CGAM_NODISCARD cgam_status cgam_probe_separability(cgam_env *env, int64_t count, int64_t width,
                                                   const float *H, int64_t stride,
                                                   const int32_t *target, double *accuracy,
                                                   bool *right);

typedef struct cgam_alignment {
    double cosine, cosine_sd; /* of a state and its label's row */
    double margin, margin_sd; /* over the largest cosine with another label's row */
} cgam_alignment;

/* Means and standard deviations over states. tokens [labels], -1: not compared. */
cgam_alignment cgam_probe_alignment(const cgam_lens *lens, int64_t count, const float *H,
                                    int64_t stride, int64_t labels, const int32_t *tokens,
                                    const int32_t *target);
#endif
