/* names.h: the words of an enum that counts from 0, as a table of texts. */
#ifndef CGAM_SRC_BASE_NAMES_H
#define CGAM_SRC_BASE_NAMES_H

#include <stddef.h>
#include <string.h>

/* The word of a value, "?" for a value outside the table. */
static inline const char *cgam_names_at(const char *const *names, size_t count, int value)
{
    return value >= 0 && (size_t)value < count ? names[value] : "?";
}

/* The value of a word, -1 when it is none of them. */
static inline int cgam_names_find(const char *const *names, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], word) == 0) return (int)i;
    return -1;
}

#endif
