/* model_check.h: is this file safe for libllama? Its GGUF reader ends the process on a number that it does not
 * expect, so we check those numbers first. */
#ifndef CGAM_SRC_LM_MODEL_CHECK_H
#define CGAM_SRC_LM_MODEL_CHECK_H

#include "lm/gguf.h"

/* Checks that required and optional keys are in range and consistent, that the tokens form a vocabulary, and that
 * the tensors have known types, are complete and aligned for ggml. Unknown architectures get only the checks
 * common to all. Fails with CGAM_E_FORMAT, or CGAM_E_UNSUPPORTED for a newer tensor type; `name` is the file in
 * messages. */
CGAM_NODISCARD cgam_status cgam_model_check(cgam_env *env, const char *name, const cgam_gguf *gguf);
/* The value of ARCHITECTURE.key; NULL if absent. */
const cgam_gguf_value *cgam_model_value(const cgam_gguf *gguf, const char *key);

#endif
