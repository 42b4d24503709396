/* net_file.h: a network with a start, clamps and options, as a JSON file describes it (docs/format/network.md).
 * Syntax errors name file, line and column; errors of meaning name the place, `$.layers[2].tau`. */
#ifndef CGAM_SRC_LAB_NET_FILE_H
#define CGAM_SRC_LAB_NET_FILE_H

#include <cgam/flow.h>

typedef struct cgam_net_file {
    cgam_net *net;
    double *x;           /* [size] the start */
    cgam_flow_opts flow; /* this structure owns its clamps */
    char *title;         /* or NULL */
    void *owner;         /* private */
} cgam_net_file;
CGAM_NODISCARD cgam_status cgam_net_file_open(cgam_env *env, const char *path, cgam_net_file *out);
/* The same from memory. Weights in files are searched in dir, and rejected if dir is NULL. */
CGAM_NODISCARD cgam_status cgam_net_file_parse(cgam_env *env, const char *name, const void *bytes,
                                               size_t size, const char *dir, cgam_net_file *out);
void cgam_net_file_close(cgam_net_file *file); /* accepts {0} and NULL, leaves {0} */

#endif
