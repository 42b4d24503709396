/* key.h: keys of a semantic cache and texts to embed: what the user typed, as a vector. */
#ifndef CGAM_SRC_APP_KEY_H
#define CGAM_SRC_APP_KEY_H

#include "app/params.h"
#include "lm/embed.h"
#include "memory/semcache.h"

#define CGAM_PARAM_KEY(required_, help_)                                                           \
    CGAM_PARAM_TEXT("key", "TEXT|[NUMBERS]|FILE[:NAME]", help_, .required = required_,             \
                    .input = CGAM_INPUT_KEY)
#define CGAM_PARAM_EMBED_LAYER                                                                     \
    CGAM_PARAM_INT(                                                                                \
        "layer", "L", NULL, 0, 9e15,                                                               \
        "texts: the block whose states are used, 0 is the embedding; default: the last")
#define CGAM_PARAM_EMBED_POOL                                                                      \
    CGAM_PARAM_CHOICE("pool", "last|mean", "mean",                                                 \
                      "texts: the state of the last token, or the mean of all but the beginning "  \
                      "of the sequence")

/* A text or a vector; one of the two. */
typedef struct cgam_key {
    const char *text; /* borrowed */
    float *vector;    /* [d], for cgam_free */
    int64_t d;
} cgam_key;

/* Reads "text:..", "file:..", "[0.1, 0.2]", the name of an array file, or any other text. */
CGAM_NODISCARD cgam_status cgam_key_read(cgam_env *env, const char *text, cgam_key *out);
/* Reads an array of numbers. *fits is false if it is anything else. */
CGAM_NODISCARD cgam_status cgam_key_from_json(cgam_env *env, const json_t *value, cgam_key *out,
                                              bool *fits);
/* Gives texts among the keys their vectors, by the call's --model. maker: layer (-1: the last) and pool to use; on return the model
 * and the layer. */
CGAM_NODISCARD cgam_status cgam_keys_embed(cgam_call *call, cgam_semcache_maker *maker,
                                           int64_t count, cgam_key *keys);

#endif
