/* vocabulary.h: are the tokens of a GGUF file a vocabulary? */
#ifndef CGAM_SRC_LM_VOCABULARY_H
#define CGAM_SRC_LM_VOCABULARY_H

#include "io/gguf.h"

/* Tokens, scores, types and merges are as many, of the types and of the form that their tokenizer needs. Tokenizers that
 * are not known are held to lengths and types. CGAM_E_FORMAT; `name` is the file in messages. */
CGAM_NODISCARD cgam_status cgam_vocabulary_check(cgam_env *env, const char *name,
                                                 const cgam_gguf *gguf);

#endif
