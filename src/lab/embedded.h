/* embedded.h: files of the source tree that are part of the library. src/lab/page/style.css is
 * "lab/page/style.css". CMake writes the table (cmake/Embed.cmake); a file more in one of the folders
 * it looks into is a file more here. */
#ifndef CGAM_SRC_LAB_EMBEDDED_H
#define CGAM_SRC_LAB_EMBEDDED_H

#include <stddef.h>

typedef struct cgam_embedded {
    const char *name;
    const char *bytes; /* [size], and a 0 behind them */
    size_t size;
} cgam_embedded;

extern const cgam_embedded cgam_embedded_files[]; /* a NULL name ends */

/* NULL: there is no such file. */
const cgam_embedded *cgam_embedded_find(const char *name);

#endif
