/* model_check.h: may libllama be shown this file? It reads GGUF in C++ that ends the process where a number is not what it
 * expects, so that what it expects is checked before. */
#ifndef CGAM_SRC_LM_MODEL_CHECK_H
#define CGAM_SRC_LM_MODEL_CHECK_H

#include "lm/gguf.h"

/* Keys that a model has, or may have, lie in their ranges and fit each other; its tokens are a vocabulary; its tensors are
 * of known types, whole, and where ggml can read them. Architectures that are not known are held to what all have.
 * CGAM_E_FORMAT, or CGAM_E_UNSUPPORTED for a type of tensors that came later; `name` is the file in messages. */
CGAM_NODISCARD cgam_status cgam_model_check(cgam_env *env, const char *name, const cgam_gguf *gguf);
/* The value of ARCHITECTURE.key; NULL: there is none. */
const cgam_gguf_value *cgam_model_value(const cgam_gguf *gguf, const char *key);

#endif
