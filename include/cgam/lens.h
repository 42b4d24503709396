/* lens.h: what a hidden state says, read through the unembedding. */
#ifndef CGAM_LENS_H
#define CGAM_LENS_H

#include <cgam/bank.h>
#include <cgam/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a state h becomes scores over the vocabulary, <zeta, x>. */
typedef enum cgam_lens_kind {
    CGAM_LENS_RAW,  /* x = h */
    CGAM_LENS_GAIN, /* x = h, less its mean if the norm is centred, times the final norm's weights:
                       linear in h, and where nothing is added after the norm the argmax of NORM */
    CGAM_LENS_NORM  /* x = the final norm of h: the model's own scores at the last layer */
} cgam_lens_kind;
CGAM_API const char *cgam_lens_kind_name(cgam_lens_kind kind); /* "raw", "gain", "norm" */
CGAM_API bool cgam_lens_kind_find(const char *name, cgam_lens_kind *out);

/* A model's unembedding as a bank of memories: rows as they are (RAW) or so that their products with
 * a state are the scores of GAIN; stored as f32, f16 or bf16. Gives *out; free it with
 * cgam_bank_free. The model may be closed before. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_bank(cgam_lm *lm, cgam_lens_kind lens, cgam_dtype dtype,
                                                 cgam_bank **out);

typedef struct cgam_lens cgam_lens;

/* Reads the unembedding and the final norm; keeps neither model nor file. Its scores are compared
 * with libllama's own after one token: a model that does something else to them (scales or caps
 * them) has no NORM lens, and asking for its scores is CGAM_E_UNSUPPORTED. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_new(cgam_lm *lm, cgam_lens **out);

typedef struct cgam_lens_parts {
    int64_t vocab, width;
    const float *Z;    /* [vocab, width] */
    const float *gain; /* [width] the norm's weights */
    const float *bias; /* [width] added after them; NULL: none */
    cgam_lm_norm norm;
} cgam_lens_parts;
/* From arrays, which are copied. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_make(cgam_env *env, const cgam_lens_parts *parts,
                                                   cgam_lens **out);
CGAM_API void cgam_lens_free(cgam_lens *lens); /* NULL is fine */
/* The model's own lens, made when it is first asked for; it belongs to the model. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_lens(cgam_lm *lm, const cgam_lens **out);
CGAM_API cgam_env *cgam_lens_env(const cgam_lens *lens);
CGAM_API int64_t cgam_lens_vocab(const cgam_lens *lens);
CGAM_API int64_t cgam_lens_width(const cgam_lens *lens);
CGAM_API bool cgam_lens_has_norm(const cgam_lens *lens); /* NORM gives the model's own scores */
/* Whether GAIN has the argmax of NORM: the model adds nothing after its norm. */
CGAM_API bool cgam_lens_linear(const cgam_lens *lens);
/* [vocab] what NORM adds to the products, a bias of the norm or of the scores; NULL: nothing. */
CGAM_API const float *cgam_lens_offset(const cgam_lens *lens);
CGAM_API cgam_lm_norm cgam_lens_norm(const cgam_lens *lens);
CGAM_API const float *cgam_lens_row(const cgam_lens *lens, int64_t token); /* zeta, [width] */
/* |zeta|, times the norm's weights but for RAW: what a score is large by. */
CGAM_API double cgam_lens_row_norm(const cgam_lens *lens, cgam_lens_kind kind, int64_t token);

/* x [width], by which <zeta, x> is a state's score but for what NORM adds; returns what it was divided
 * by, 1 but for NORM. */
CGAM_API double cgam_lens_state(const cgam_lens *lens, cgam_lens_kind kind, const float *h,
                                double *x);
/* [width] what NORM adds to x, the norm's bias; NULL: nothing, or not by x alone. */
CGAM_API const float *cgam_lens_bias(const cgam_lens *lens);

/* The score of one token for one state, in double. */
CGAM_API double cgam_lens_dot(const cgam_lens *lens, cgam_lens_kind kind, int64_t token,
                              const float *h);

/* out [count, vocab]: the scores of states at H, H + stride, ... Products in f32. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_scores(const cgam_lens *lens, cgam_lens_kind kind,
                                                     int64_t count, const float *H, int64_t stride,
                                                     float *out);

/* out [count, width]: the derivative with respect to each state of the sum over tokens of weight times
 * NORM's score; weights [count, vocab]. Products in f32. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_pull(const cgam_lens *lens, int64_t count,
                                                   const float *H, int64_t stride,
                                                   const float *weights, float *out);

/* How widely p = softmax(scores) is spread. Sums in double. */
typedef struct cgam_spread {
    double log_entropy; /* log N_eff = the entropy of p */
    double log_ipr;     /* log N_eff = -log sum p^2 */
    double mass;        /* on the tokens asked about */
    int64_t top;        /* most probable token; ties go to the lowest */
} cgam_spread;

/* out [count] for the states at H, H + stride, ...; tokens [n_tokens] may hold -1, which is passed
 * over. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_spread(const cgam_lens *lens, cgam_lens_kind kind,
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
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_judge(const cgam_lens *lens, cgam_lens_kind kind,
                                                    int64_t count, const float *H, int64_t stride,
                                                    const int32_t *target, int64_t n_tokens,
                                                    const int32_t *tokens, cgam_answer *out);

#ifdef __cplusplus
}
#endif
#endif
