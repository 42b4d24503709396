/* embed.h (inside): texts become vectors, by the hidden states of a model. */
#ifndef CGAM_SRC_LM_EMBED_H
#define CGAM_SRC_LM_EMBED_H

#include <cgam/lm.h>

typedef enum cgam_pool { CGAM_POOL_LAST, CGAM_POOL_MEAN } cgam_pool;
extern const char *const cgam_pool_words[];

typedef struct cgam_embed_opts {
    int64_t layer; /* states after this block, 0 .. L; default -1 = L */
    cgam_pool
        pool; /* of the last token, or the mean over all tokens but the beginning of the sequence, whose state is
                       the same for every text and much larger than others; default MEAN */
    bool
        alone; /* run each text by itself, so that its vector does not depend on the others; default false */
    cgam_progress progress;
} cgam_embed_opts;
cgam_embed_opts cgam_embed_opts_default(void);

/* out [count, width]. CGAM_E_ARG if a text has no tokens, or the model no such layer. */
CGAM_NODISCARD cgam_status cgam_lm_embed(cgam_lm *lm, int64_t count, const char *const *texts,
                                         const cgam_embed_opts *opts, float *out);

#endif
