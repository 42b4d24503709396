/* lm.h: what the `lm` verbs have in common. */
#ifndef CGAM_SRC_APP_LM_H
#define CGAM_SRC_APP_LM_H

#include "app/verb.h"

#include <string.h>

#define CGAM_HELP_MODEL "GGUF file; the model of `cgam lm get` if not given"

/* The model of --model, or the default one. */
cgam_status cgam_input_lm(cgam_call *call, cgam_lm **out);
/* Puts "model": {name, architecture, layers, width, vocab, ...}. */
void cgam_put_lm(json_t *doc, const cgam_lm *lm);

#endif
