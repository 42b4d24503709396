/* embedded.c: files of the library, by name. */
#include "lab/embedded.h"

#include <string.h>

const cgam_embedded *cgam_embedded_find(const char *name)
{
    for (const cgam_embedded *file = cgam_embedded_files; file->name; file++)
        if (strcmp(file->name, name) == 0) return file;
    return NULL;
}
