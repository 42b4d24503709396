/* model.h (inside): functions of a model for the other files of lm, the laboratory and the verbs. */
#ifndef CGAM_SRC_LM_MODEL_H
#define CGAM_SRC_LM_MODEL_H

#include <cgam/lm.h>

cgam_env *cgam_lm_env(const cgam_lm *lm); /* the env it was opened with */
size_t cgam_lm_bytes(const cgam_lm *lm);  /* of its file, plus its lens once made */
/* SHA-256 of the file in 64 hexadecimal digits, computed on the first call. */
CGAM_NODISCARD cgam_status cgam_lm_sha256(cgam_lm *lm, const char **out);

/* Z [vocab, width]: the unembedding, tied or not, widened to f32 from its stored type. */
CGAM_NODISCARD cgam_status cgam_lm_unembedding(cgam_lm *lm, float *Z);
/* The final norm: x = (h - m) / sqrt(mean (h - m)^2 + epsilon) * weights + bias. */
typedef struct cgam_lm_norm {
    double epsilon;
    bool centred; /* the layer norm, m the mean of h; else the root mean square norm, m = 0 */
    bool biased;  /* there is a bias */
} cgam_lm_norm;
/* weights [width]; bias [width], zeros if the norm has none. */
CGAM_NODISCARD cgam_status cgam_lm_final_norm(cgam_lm *lm, float *weights, float *bias,
                                              cgam_lm_norm *out);
/* out [vocab]: what the model adds to each word's score; *any is true if it adds anything. */
CGAM_NODISCARD cgam_status cgam_lm_score_bias(cgam_lm *lm, float *out, bool *any);

/* Does the token end generation? */
bool cgam_lm_ends(const cgam_lm *lm, int32_t token);
/* The text that cgam_lm_chat tokenises, up to the start of the assistant's next answer. Free *out
 * with cgam_free. */
CGAM_NODISCARD cgam_status cgam_lm_chat_text(cgam_lm *lm, int64_t count,
                                             const cgam_lm_message *messages, char **out);
/* Tokenises such a text, special tokens included. Free *out [*length] with cgam_lm_tokens_free. */
CGAM_NODISCARD cgam_status cgam_lm_chat_tokens(cgam_lm *lm, const char *text, int32_t **out,
                                               int64_t *length);

/* *out: does opts->there name whole batches, as an interrupted capture of all prompts leaves them? */
CGAM_NODISCARD cgam_status cgam_lm_capture_goes_on(cgam_lm *lm, int64_t count,
                                                   const cgam_lm_prompt *prompts,
                                                   const cgam_lm_capture_opts *opts, bool *out);
/* libllama's own scores [vocab] of the next token; for checks. */
CGAM_NODISCARD cgam_status cgam_lm_logits(cgam_lm *lm, const cgam_lm_prompt *prompt, float *out);
/* The model's lens, made on the first call; the model owns it. */
CGAM_NODISCARD cgam_status cgam_lm_lens(cgam_lm *lm, const cgam_lens **out);

/* libllama ends the process on a failed assertion of ggml or an uncaught C++ exception. From the next time it is loaded,
 * `say` is called first with its message on one line, on any thread; the process ends when `say` returns. Call this before
 * other threads start; for programs, not for libraries. */
void cgam_llama_last_words(void (*say)(const char *words));

/* Writes states in f32 to a .npy or .safetensors file; holds one batch in memory. Of opts it uses
 * part, layers, all_tokens, run and prompt_tokens; the rest is not used. opts NULL = the last
 * token at all layers.
 *
 *   last token   [prompts, layers, width], named `states` in .safetensors
 *   all tokens   [layers, tokens, width] for each prompt, named p0, p1, ..; .npy takes one prompt
 *
 * Of part HEADS it writes what each head adds to the stream, [.., heads, width]. */
CGAM_NODISCARD cgam_status cgam_lm_states_write(cgam_lm *lm, int64_t count,
                                                const cgam_lm_prompt *prompts,
                                                const cgam_lm_observe_opts *opts, const char *path);

/* Gets the states [layers + 1, width] of the last token of prompt `which`, which are valid until it
 * returns. A failure stops the capture and is returned. */
typedef cgam_status (*cgam_lm_sink)(void *user, int64_t which, const float *states);

/* Runs every prompt and passes its states to `sink`, longest prompts first, many in a
 * batch. `user` is passed to sink and batch_end. opts NULL = defaults. */
CGAM_NODISCARD cgam_status cgam_lm_capture(cgam_lm *lm, int64_t count,
                                           const cgam_lm_prompt *prompts,
                                           const cgam_lm_capture_opts *opts, cgam_lm_sink sink,
                                           void *user);

#endif
