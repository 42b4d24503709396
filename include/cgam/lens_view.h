/* lens_view.h: the layer x token picture: what every position of a text says after every layer, read
 * through the lens.
 *
 * The final distribution of a position is the model's own, that of its last layer through the final
 * norm. Cells compare with it: KL(final || layer) in nats, and the rank of the final distribution's
 * most probable word. */
#ifndef CGAM_LENS_VIEW_H
#define CGAM_LENS_VIEW_H

#include <cgam/lens.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_lens_word {
    int32_t token;
    double p;
} cgam_lens_word;

typedef struct cgam_lens_cell {
    double neff;     /* exp of the entropy */
    double kl_final; /* in nats; 0 after the last layer with NORM */
    int64_t
        rank_final; /* words that score above the final answer, or the same with a lower index */
} cgam_lens_cell;

/* One position: states of `layers` layers at H, H + stride, .., the last one the model's last.
 * cells [layers]; words [layers, top] by falling probability, ties to the lowest index; top at most
 * the vocabulary. A lens without NORM takes the last state through `kind` for the final one. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_look(const cgam_lens *lens, cgam_lens_kind kind,
                                                   int64_t layers, const float *H, int64_t stride,
                                                   int64_t top, cgam_lens_cell *cells,
                                                   cgam_lens_word *words);

typedef struct cgam_lens_view_opts {
    cgam_lens_kind kind; /* NORM (default) or RAW */
    int64_t top;         /* words of each cell; default 5 */
    bool exact;          /* states by the plain pass; default false */
    cgam_progress progress;
} cgam_lens_view_opts;
CGAM_API cgam_lens_view_opts cgam_lens_view_opts_default(void);

typedef struct cgam_lens_view {
    int64_t layers, tokens, top; /* layers: L + 1 */
    int32_t *token;              /* [tokens] */
    cgam_lens_cell *cells;       /* [tokens, layers] */
    cgam_lens_word *words;       /* [tokens, layers, top] */
} cgam_lens_view;

/* The picture of a text, beginning-of-sequence token first. Fills *out; free it with
 * cgam_lens_view_free, which copes with {0}. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lens_view_make(cgam_lm *lm, const cgam_lens *lens,
                                                        const char *text,
                                                        const cgam_lens_view_opts *opts,
                                                        cgam_lens_view *out);
CGAM_API void cgam_lens_view_free(cgam_env *env, cgam_lens_view *view);

#ifdef __cplusplus
}
#endif
#endif
