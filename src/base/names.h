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

/* Defines prefix_name(value) and prefix_find(name, *out), false when there is no such name. */
#define CGAM_NAMES(prefix, type, ...)                                                              \
    static const char *const prefix##_names[] = {__VA_ARGS__};                                     \
    const char *prefix##_name(type value)                                                          \
    {                                                                                              \
        return cgam_names_at(prefix##_names, sizeof prefix##_names / sizeof *prefix##_names,       \
                             (int)value);                                                          \
    }                                                                                              \
    bool prefix##_find(const char *name, type *out)                                                \
    {                                                                                              \
        int found =                                                                                \
            cgam_names_find(prefix##_names, sizeof prefix##_names / sizeof *prefix##_names, name); \
        if (found >= 0) *out = (type)found;                                                        \
        return found >= 0;                                                                         \
    }

#endif
