/* embedded.h: files of the source tree that are part of the library. src/lab/page/style.css is
 * "lab/page/style.css". CMake writes the table (cmake/Embed.cmake) from all files of certain
 * folders. */
#ifndef CGAM_SRC_LAB_EMBEDDED_H
#define CGAM_SRC_LAB_EMBEDDED_H

#include <stddef.h>

typedef struct cgam_embedded {
    const char *name;
    const char *bytes; /* [size], followed by a 0 */
    size_t size;
} cgam_embedded;

extern const cgam_embedded cgam_embedded_files[]; /* ends with a NULL name */

/* Returns NULL if there is no such file. */
const cgam_embedded *cgam_embedded_find(const char *name);

#endif
