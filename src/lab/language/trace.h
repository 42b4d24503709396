/* trace.h: how long a context goes on shaping what a model computes.
 *
 * One text is generated under a context, a system prompt or vectors in the residual stream. Then it is run
 * twice, token by token the same, once with the context and once without. Token j is reported at the position
 * that predicts it, the one before it: p is the distribution it was drawn from, h the states there. */
#ifndef CGAM_SRC_LAB_LANGUAGE_TRACE_H
#define CGAM_SRC_LAB_LANGUAGE_TRACE_H

#include <cgam/lm.h>

typedef struct cgam_lm_trace_opts {
    cgam_lm_generate_opts text; /* how the text is generated; its edits are part of the context */
    cgam_progress progress;     /* default silence */
} cgam_lm_trace_opts;
cgam_lm_trace_opts cgam_lm_trace_opts_default(void);

typedef struct cgam_lm_trace {
    cgam_lm_text text;
    int64_t count, layers;            /* tokens of the text; L + 1 */
    double *kl;                       /* [count] KL(p with || p without) in nats */
    double *neff_with, *neff_without; /* [count] exp of the entropy of either */
    double *norm;                     /* [count, layers] |h with - h without| */
    /* [count, layers] cosine of h with - h without and that of the first token; NAN where one is 0 */
    double *persistence;
} cgam_lm_trace;

/* `with` is the prompt under the context, `without` the one that lacks it; opts->text.edits fall on
 * `with` alone. opts NULL = defaults. Gives *out; free it with cgam_lm_trace_free. In memory are the
 * scores and states of one text. */
CGAM_NODISCARD cgam_status cgam_lm_trace_make(cgam_lm *lm, const cgam_lm_prompt *with,
                                              const cgam_lm_prompt *without,
                                              const cgam_lm_trace_opts *opts, cgam_lm_trace *out);
void cgam_lm_trace_free(cgam_lm *lm, cgam_lm_trace *trace); /* copes with {0} and NULL */
#endif
