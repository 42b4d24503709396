/* names.h: the words of an enum that counts from 0, as a pair of functions. */
#ifndef CGAM_SRC_LAB_NAMES_H
#define CGAM_SRC_LAB_NAMES_H

#include <cgam/base.h>

/* Defines prefix_name(value), and prefix_find(name, *out), which returns false and leaves *out unchanged if the
 * name is unknown. */
#define CGAM_NAMES(prefix, type, ...)                                                              \
    static const char *const prefix##_words[] = {__VA_ARGS__, NULL};                               \
    const char *prefix##_name(type value) { return cgam_word(prefix##_words, (int)value); }        \
    bool prefix##_find(const char *name, type *out)                                                \
    {                                                                                              \
        int found = cgam_word_find(prefix##_words, name);                                          \
        if (found >= 0) *out = (type)found;                                                        \
        return found >= 0;                                                                         \
    }

#endif
