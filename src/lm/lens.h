/* lens.h (inside): the parts of a lens, and what the laboratory reads through it. */
#ifndef CGAM_SRC_LM_LENS_H
#define CGAM_SRC_LM_LENS_H

#include "lm/model.h"

struct cgam_lens {
    cgam_env *env;
    int64_t vocab, width;
    float *Z, *gain, *bias, *offset; /* [vocab, width], [width], [width], [vocab] */
    cgam_lm_norm norm;
    bool shifted;  /* offset is not all zero: GAIN and NORM may have different argmaxes */
    bool by_state; /* offset equals Z bias */
    double off;    /* relative difference of NORM from libllama's own scores */
};

typedef struct cgam_lens_parts {
    int64_t vocab, width;
    const float *Z;    /* [vocab, width] */
    const float *gain; /* [width] the norm's weights */
    const float *bias; /* [width] added after them; NULL: none */
    cgam_lm_norm norm;
} cgam_lens_parts;
/* Makes a lens from arrays; copies them. */
CGAM_NODISCARD cgam_status cgam_lens_make(cgam_env *env, const cgam_lens_parts *parts,
                                          cgam_lens **out);
/* Does NORM give the model's own scores? Activations in 8 bits make them differ by 2 to 13 %. */
static inline bool cgam_lens_has_norm(const cgam_lens *lens) { return lens->off <= 0.2; }
/* [vocab] what NORM adds to the products, a bias of the norm or of the scores; or NULL. */
static inline const float *cgam_lens_offset(const cgam_lens *lens)
{
    return lens->shifted ? lens->offset : NULL;
}
/* [width] what NORM adds to x, the norm's bias; NULL if there is no offset, or it is not Z bias alone. */
static inline const float *cgam_lens_bias(const cgam_lens *lens)
{
    return lens->by_state ? lens->bias : NULL;
}
static inline const float *cgam_lens_row(const cgam_lens *lens, int64_t token) /* zeta, [width] */
{
    return lens->Z + token * lens->width;
}
/* |zeta|, with the norm's weights except for RAW: the size of a score. */
double cgam_lens_row_norm(const cgam_lens *lens, cgam_lens_kind kind, int64_t token);
/* Computes x [width] such that <zeta, x> is the state's score without what NORM adds. Returns the divisor
 * of NORM, 1 for the other kinds. */
double cgam_lens_state(const cgam_lens *lens, cgam_lens_kind kind, const float *h, double *x);
/* The score of one token for one state, in double. */
double cgam_lens_dot(const cgam_lens *lens, cgam_lens_kind kind, int64_t token, const float *h);
/* out [count, width]: the derivative with respect to each state of the sum over tokens of weight times
 * NORM's score; weights [count, vocab]. Products in f32. */
CGAM_NODISCARD cgam_status cgam_lens_pull(const cgam_lens *lens, int64_t count, const float *H,
                                          int64_t stride, const float *weights, float *out);
/* Reads one position: states of `layers` layers at H, H + stride, .., ending with the model's last layer.
 * cells [layers]; words [layers, top] by falling probability, ties to the lowest index; top is at most
 * the vocabulary. Without NORM, the final distribution is the last state through `kind`. */
CGAM_NODISCARD cgam_status cgam_lens_look(const cgam_lens *lens, cgam_lens_kind kind,
                                          int64_t layers, const float *H, int64_t stride,
                                          int64_t top, cgam_lens_cell *cells,
                                          cgam_lens_word *words);

/* out [count, vocab]: the scores of states at H, H + stride, ... Products in f32. */
CGAM_NODISCARD cgam_status cgam_lens_scores(const cgam_lens *lens, cgam_lens_kind kind,
                                            int64_t count, const float *H, int64_t stride,
                                            float *out);

/* The spread of p = softmax(scores). Sums in double. */
typedef struct cgam_spread {
    double log_entropy; /* log N_eff = the entropy of p */
    double log_ipr;     /* log N_eff = -log sum p^2 */
    double mass;        /* on the tokens asked about */
    int64_t top;        /* most probable token; ties go to the lowest */
} cgam_spread;

/* out [count] for the states at H, H + stride, ...; entries of -1 in tokens [n_tokens] are
   skipped. */
CGAM_NODISCARD cgam_status cgam_lens_spread(const cgam_lens *lens, cgam_lens_kind kind,
                                            int64_t count, const float *H, int64_t stride,
                                            int64_t n_tokens, const int32_t *tokens,
                                            cgam_spread *out);

/* How a state scores one token. */
typedef struct cgam_answer {
    double log_p;
    double mass;  /* on the tokens asked about */
    int64_t rank; /* tokens that score higher, or the same with a lower index */
} cgam_answer;

/* out [count]; target [count] tokens, -1: leaves out unchanged. */
CGAM_NODISCARD cgam_status cgam_lens_judge(const cgam_lens *lens, cgam_lens_kind kind,
                                           int64_t count, const float *H, int64_t stride,
                                           const int32_t *target, int64_t n_tokens,
                                           const int32_t *tokens, cgam_answer *out);

#endif
