/* net_save.h (inside): what the JSON file of a network says about its learned parameters, and the file with new ones. */
#ifndef CGAM_SRC_LAB_LEARN_NET_SAVE_H
#define CGAM_SRC_LAB_LEARN_NET_SAVE_H

#include "net/gradient.h"

#include <jansson.h>

/* Is the block read from numbers with "normalize": true? */
bool cgam_net_block_unit(const json_t *doc, const cgam_net *net, const cgam_block *block);

/* The numbers of such a block before they are normalised, to out [rows, cols]. from: as below. */
CGAM_NODISCARD cgam_status cgam_net_block_raw(cgam_env *env, const char *from, const json_t *doc,
                                              const cgam_net *net, const cgam_block *block,
                                              double *out);

/* Writes `out`, the document of a network with what `params` holds, and its weights beside it: the same name with
 * .safetensors. Files that `doc` names stay where they are. from: the file that doc was read from. */
CGAM_NODISCARD cgam_status cgam_net_save(cgam_env *env, const char *from, const json_t *doc,
                                         const cgam_net_params *params, const char *out);
/* The name of those weights. Returns false if it is too long. */
bool cgam_net_save_weights(const char *out, char *text, size_t size);

#endif
