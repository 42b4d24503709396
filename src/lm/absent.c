/* absent.c: replaces the functions of language models in a build without libllama's headers. Each call fails with a
 * message that says how to get a build with them. */
#include "base/env.h"
#include "lm/model.h"
#include "lm/stream.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

static cgam_status absent(cgam_env *env)
{
    return cgam_fail(
        env, CGAM_E_UNSUPPORTED,
        "cgam was built without libllama: run tools/llama, or set CGAM_LLAMA to a directory "
        "with llama.h, and rebuild");
}

struct cgam_lm {
    cgam_env *env;
};

cgam_status cgam_lm_open(cgam_env *env, const char *path, cgam_lm **out)
{
    *out = NULL;
    return absent(env);
}

/* No model can be opened, so the other functions only have to exist. */
#define ABSENT(name, ...)                                                                          \
    cgam_status name(cgam_lm *lm, __VA_ARGS__) { return absent(lm->env); }

void cgam_lm_close(cgam_lm *lm) {}
void cgam_llama_last_words(void (*say)(const char *words)) {}
void cgam_lm_tokens_free(cgam_lm *lm, void *block) {}
cgam_lm_info cgam_lm_describe(const cgam_lm *lm) { return (cgam_lm_info){0}; }
cgam_env *cgam_lm_env(const cgam_lm *lm) { return lm->env; }
size_t cgam_lm_bytes(const cgam_lm *lm) { return 0; }
ABSENT(cgam_lm_lens, const cgam_lens **out)
ABSENT(cgam_lm_sha256, const char **out)
ABSENT(cgam_lm_unembedding, float *Z)
const char *cgam_lm_piece(const cgam_lm *lm, int32_t token, char *text, size_t size) { return ""; }

ABSENT(cgam_lm_tokenize, const char *text, bool begin, int32_t **out, int64_t *count)
ABSENT(cgam_lm_final_norm, float *weights, float *bias, cgam_lm_norm *out)
ABSENT(cgam_lm_score_bias, float *out, bool *any)

cgam_lm_capture_opts cgam_lm_capture_opts_default(void)
{
    return (cgam_lm_capture_opts){.exact = false};
}

ABSENT(cgam_lm_capture_goes_on, int64_t count, const cgam_lm_prompt *prompts,
       const cgam_lm_capture_opts *opts, bool *out)
ABSENT(cgam_lm_capture, int64_t count, const cgam_lm_prompt *prompts,
       const cgam_lm_capture_opts *opts, cgam_lm_sink sink, void *user)
ABSENT(cgam_lm_logits, const cgam_lm_prompt *prompt, float *out)
bool cgam_lm_ends(const cgam_lm *lm, int32_t token) { return false; }

ABSENT(cgam_lm_chat_text, int64_t count, const cgam_lm_message *messages, char **out)
ABSENT(cgam_lm_chat_tokens, const char *text, int32_t **out, int64_t *length)
ABSENT(cgam_lm_chat, int64_t count, const cgam_lm_message *messages, int32_t **out, int64_t *length)

cgam_lm_observe_opts cgam_lm_observe_opts_default(void)
{
    return (cgam_lm_observe_opts){.states = true};
}

ABSENT(cgam_lm_observe, int64_t count, const cgam_lm_prompt *prompts,
       const cgam_lm_observe_opts *opts, cgam_lm_span_sink sink, void *user)
ABSENT(cgam_lm_heads_project, int64_t layer, int64_t count, const float *heads, float *out)
ABSENT(cgam_lm_score, int64_t count, const cgam_lm_prompt *prompts, int64_t candidates,
       const cgam_lm_candidate *candidate, const cgam_lm_capture_opts *opts, double *out)
cgam_status cgam_stream_open(cgam_lm *lm, const cgam_stream_opts *opts, cgam_stream **out)
{
    *out = NULL;
    return absent(lm->env);
}

void cgam_stream_close(cgam_stream *stream) {}
const float *cgam_stream_scores(const cgam_stream *stream, int64_t i) { return NULL; }
const float *cgam_stream_state(const cgam_stream *stream, int64_t i) { return NULL; }

cgam_status cgam_stream_step(cgam_stream *stream, const int32_t *tokens, const bool *alive)
{
    return CGAM_E_UNSUPPORTED;
}
