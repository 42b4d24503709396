/* states.h: hidden states of prompts in a file, written while they are computed. */
#ifndef CGAM_STATES_H
#define CGAM_STATES_H

#include <cgam/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes states in f32 to a .npy or .safetensors file; in memory is one batch. opts says which: its
 * layers, all_tokens, and how they are run (run, prompt_tokens); the rest is not used. NULL = the last
 * token at all layers.
 *
 *   last token   [prompts, layers, width], named `states` in .safetensors
 *   all tokens   [layers, tokens, width] for each prompt, named p0, p1, ..; .npy takes one prompt */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_states_write(cgam_lm *lm, int64_t count,
                                                         const cgam_lm_prompt *prompts,
                                                         const cgam_lm_observe_opts *opts,
                                                         const char *path);

#ifdef __cplusplus
}
#endif
#endif
