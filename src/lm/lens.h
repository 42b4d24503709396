/* lens.h (inside): the parts of a lens, and what the laboratory reads through it. */
#ifndef CGAM_SRC_LM_LENS_H
#define CGAM_SRC_LM_LENS_H

#include "lm/model.h"

struct cgam_lens {
    cgam_env *env;
    int64_t vocab, width;
    float *Z, *gain, *bias, *offset; /* [vocab, width], [width], [width], [vocab] */
    cgam_lm_norm norm;
    bool shifted;  /* offset is not all zero: GAIN need not have the argmax of NORM */
    bool by_state; /* and all of it is Z bias */
    double off;    /* how far NORM is from libllama's own scores, relative */
};

typedef struct cgam_lens_parts {
    int64_t vocab, width;
    const float *Z;    /* [vocab, width] */
    const float *gain; /* [width] the norm's weights */
    const float *bias; /* [width] added after them; NULL: none */
    cgam_lm_norm norm;
} cgam_lens_parts;
/* From arrays, which are copied. */
CGAM_NODISCARD cgam_status cgam_lens_make(cgam_env *env, const cgam_lens_parts *parts,
                                          cgam_lens **out);
/* NORM gives the model's own scores: activations in 8 bits leave them 2 to 13 % off. */
static inline bool cgam_lens_has_norm(const cgam_lens *lens) { return lens->off <= 0.2; }
/* [vocab] what NORM adds to the products, a bias of the norm or of the scores; NULL: nothing. */
static inline const float *cgam_lens_offset(const cgam_lens *lens)
{
    return lens->shifted ? lens->offset : NULL;
}
/* [width] what NORM adds to x, the norm's bias; NULL: nothing, or not by x alone. */
static inline const float *cgam_lens_bias(const cgam_lens *lens)
{
    return lens->by_state ? lens->bias : NULL;
}
static inline const float *cgam_lens_row(const cgam_lens *lens, int64_t token) /* zeta, [width] */
{
    return lens->Z + token * lens->width;
}
/* |zeta|, times the norm's weights but for RAW: what a score is large by. */
double cgam_lens_row_norm(const cgam_lens *lens, cgam_lens_kind kind, int64_t token);
/* x [width], by which <zeta, x> is a state's score but for what NORM adds; returns what it was divided
 * by, 1 but for NORM. */
double cgam_lens_state(const cgam_lens *lens, cgam_lens_kind kind, const float *h, double *x);
/* The score of one token for one state, in double. */
double cgam_lens_dot(const cgam_lens *lens, cgam_lens_kind kind, int64_t token, const float *h);
/* out [count, width]: the derivative with respect to each state of the sum over tokens of weight times
 * NORM's score; weights [count, vocab]. Products in f32. */
CGAM_NODISCARD cgam_status cgam_lens_pull(const cgam_lens *lens, int64_t count, const float *H,
                                          int64_t stride, const float *weights, float *out);
/* One position: states of `layers` layers at H, H + stride, .., the last one the model's last.
 * cells [layers]; words [layers, top] by falling probability, ties to the lowest index; top at most
 * the vocabulary. A lens without NORM takes the last state through `kind` for the final one. */
CGAM_NODISCARD cgam_status cgam_lens_look(const cgam_lens *lens, cgam_lens_kind kind,
                                          int64_t layers, const float *H, int64_t stride,
                                          int64_t top, cgam_lens_cell *cells,
                                          cgam_lens_word *words);

/* out [count, vocab]: the scores of states at H, H + stride, ... Products in f32. */
CGAM_NODISCARD cgam_status cgam_lens_scores(const cgam_lens *lens, cgam_lens_kind kind,
                                            int64_t count, const float *H, int64_t stride,
                                            float *out);

/* How widely p = softmax(scores) is spread. Sums in double. */
typedef struct cgam_spread {
    double log_entropy; /* log N_eff = the entropy of p */
    double log_ipr;     /* log N_eff = -log sum p^2 */
    double mass;        /* on the tokens asked about */
    int64_t top;        /* most probable token; ties go to the lowest */
} cgam_spread;

/* out [count] for the states at H, H + stride, ...; tokens [n_tokens] may hold -1, which is passed
 * over. */
CGAM_NODISCARD cgam_status cgam_lens_spread(const cgam_lens *lens, cgam_lens_kind kind,
                                            int64_t count, const float *H, int64_t stride,
                                            int64_t n_tokens, const int32_t *tokens,
                                            cgam_spread *out);

/* What a state makes of one token. */
typedef struct cgam_answer {
    double log_p;
    double mass;  /* on the tokens asked about */
    int64_t rank; /* tokens that score higher, or the same with a lower index */
} cgam_answer;

/* out [count]; target [count] tokens, -1: out is left as it is. */
CGAM_NODISCARD cgam_status cgam_lens_judge(const cgam_lens *lens, cgam_lens_kind kind,
                                           int64_t count, const float *H, int64_t stride,
                                           const int32_t *target, int64_t n_tokens,
                                           const int32_t *tokens, cgam_answer *out);

#endif
