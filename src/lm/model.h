/* model.h (inside): what the files of a model share with each other, with the laboratory and the verbs. */
#ifndef CGAM_SRC_LM_MODEL_H
#define CGAM_SRC_LM_MODEL_H

#include <cgam/lm.h>

cgam_env *cgam_lm_env(const cgam_lm *lm); /* the one it was opened with */
size_t cgam_lm_bytes(const cgam_lm *lm);  /* of its file, and of its lens if it has one */
/* SHA-256 of the file in 64 hexadecimal digits, computed when first asked for. */
CGAM_NODISCARD cgam_status cgam_lm_sha256(cgam_lm *lm, const char **out);

/* Z [vocab, width]: the unembedding, tied or not, in f32 whatever it is stored as. */
CGAM_NODISCARD cgam_status cgam_lm_unembedding(cgam_lm *lm, float *Z);
/* The final norm: x = (h - m) / sqrt(mean (h - m)^2 + epsilon) * weights + bias. */
typedef struct cgam_lm_norm {
    double epsilon;
    bool centred; /* the layer norm, m the mean of h; else the root mean square norm, m = 0 */
    bool biased;  /* there is a bias */
} cgam_lm_norm;
/* weights [width]; bias [width], zeros where there is none. */
CGAM_NODISCARD cgam_status cgam_lm_final_norm(cgam_lm *lm, float *weights, float *bias,
                                              cgam_lm_norm *out);
/* out [vocab]: what the model adds to each word's score; *any says whether that is anything. */
CGAM_NODISCARD cgam_status cgam_lm_score_bias(cgam_lm *lm, float *out, bool *any);

/* Whether a token ends what is generated. */
bool cgam_lm_ends(const cgam_lm *lm, int32_t token);
/* What cgam_lm_chat makes tokens of, up to where the next answer of the assistant begins. Gives *out;
 * free it with cgam_free. */
CGAM_NODISCARD cgam_status cgam_lm_chat_text(cgam_lm *lm, int64_t count,
                                             const cgam_lm_message *messages, char **out);
/* Tokens of such a text, special ones as what they are. Gives *out [*length]; cgam_lm_tokens_free. */
CGAM_NODISCARD cgam_status cgam_lm_chat_tokens(cgam_lm *lm, const char *text, int32_t **out,
                                               int64_t *length);

/* Whether opts->there names whole batches, as an interrupted capture of all prompts leaves them. */
CGAM_NODISCARD cgam_status cgam_lm_capture_goes_on(cgam_lm *lm, int64_t count,
                                                   const cgam_lm_prompt *prompts,
                                                   const cgam_lm_capture_opts *opts, bool *out);
/* libllama's own scores [vocab] of what follows the prompt; for checks. */
CGAM_NODISCARD cgam_status cgam_lm_logits(cgam_lm *lm, const cgam_lm_prompt *prompt, float *out);
/* The model's own lens, made when it is first asked for; it belongs to the model. */
CGAM_NODISCARD cgam_status cgam_lm_lens(cgam_lm *lm, const cgam_lens **out);

/* libllama ends the process on a failed assertion of ggml or an uncaught C++ exception. From the next time it is loaded,
 * `say` is called first with its message on one line, on any thread; the process ends when `say` returns. Call this before
 * other threads start; for programs, not for libraries. */
void cgam_llama_last_words(void (*say)(const char *words));

/* Writes states in f32 to a .npy or .safetensors file; in memory is one batch. opts says which: its
 * layers, all_tokens, and how they are run (run, prompt_tokens); the rest is not used. NULL = the last
 * token at all layers.
 *
 *   last token   [prompts, layers, width], named `states` in .safetensors
 *   all tokens   [layers, tokens, width] for each prompt, named p0, p1, ..; .npy takes one prompt */
CGAM_NODISCARD cgam_status cgam_lm_states_write(cgam_lm *lm, int64_t count,
                                                const cgam_lm_prompt *prompts,
                                                const cgam_lm_observe_opts *opts, const char *path);

/* Takes the states [layers + 1, width] of the last token of prompt `which`; they are the
 * callee's to read until it returns. A failure stops the capture and is handed on. */
typedef cgam_status (*cgam_lm_sink)(void *user, int64_t which, const float *states);

/* Runs every prompt and hands each one's states to `sink`, longest prompts first, many in a
 * batch. `user` goes to sink and batch_end. opts NULL = defaults. */
CGAM_NODISCARD cgam_status cgam_lm_capture(cgam_lm *lm, int64_t count,
                                           const cgam_lm_prompt *prompts,
                                           const cgam_lm_capture_opts *opts, cgam_lm_sink sink,
                                           void *user);

#endif
