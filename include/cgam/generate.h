/* generate.h: text that a model writes, token by token, under edits of its residual stream. */
#ifndef CGAM_GENERATE_H
#define CGAM_GENERATE_H

#include <cgam/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a text ended. */
typedef enum cgam_lm_stop {
    CGAM_LM_STOP_EOS,    /* the model ended it */
    CGAM_LM_STOP_LENGTH, /* max_tokens, or the model's context is full */
    CGAM_LM_STOP_WORD,   /* one of the stop words */
    CGAM_LM_STOP_INTERRUPT
} cgam_lm_stop;
CGAM_API const char *cgam_lm_stop_name(
    cgam_lm_stop stop); /* "eos", "length", "word", "interrupt" */

typedef struct cgam_lm_token {
    int32_t id;
    double log_p; /* of this token where it was drawn, at temperature 1 and among all words */
    double neff;  /* exp of the entropy of that distribution */
} cgam_lm_token;

typedef struct cgam_lm_generate_opts {
    bool exact;              /* the plain pass; default false */
    int64_t max_tokens;      /* default 64 */
    double temperature;      /* default 0: greedy, ties to the lowest token */
    double top_p;            /* default 1: among all words; at least the most probable one */
    uint64_t seed;           /* default 0 */
    const char *const *stop; /* [stop_count] words that end a text, which is cut before them */
    int64_t stop_count;
    cgam_lm_edits edits; /* of every prompt; default none */
    const cgam_lm_edits
        *edits_each; /* [count prompts] after those, each prompt's own; NULL: none */
    /* Called with each token as it comes, in the order of the prompts; NULL: not. `text` are the
     * bytes that have become certain with it, perhaps none: what may be the beginning of a stop word,
     * or of a letter of several bytes, waits. At the end of a text with token NULL and the rest. */
    cgam_status (*each)(void *user, int64_t which, const cgam_lm_token *token, const char *text);
    void *user;
} cgam_lm_generate_opts;
CGAM_API cgam_lm_generate_opts cgam_lm_generate_opts_default(void);

/* tokens hold all that were drawn, those of a stop word too, but not the one that ended the text. */
typedef struct cgam_lm_text {
    char *text;
    cgam_lm_token *tokens;
    int64_t count;
    cgam_lm_stop stop;
} cgam_lm_text;

/* Continues every prompt; fills out [count], to be freed with cgam_lm_texts_free, also after a
 * failure. An interruption is no failure: out holds what there is. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_generate(cgam_lm *lm, int64_t count,
                                                     const cgam_lm_prompt *prompts,
                                                     const cgam_lm_generate_opts *opts,
                                                     cgam_lm_text *out);
CGAM_API void cgam_lm_texts_free(cgam_lm *lm, int64_t count, cgam_lm_text *texts);

#ifdef __cplusplus
}
#endif
#endif
