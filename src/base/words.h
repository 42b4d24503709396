/* words.h: the names of an enum in one table, for both directions. */
#ifndef CGAM_SRC_BASE_WORDS_H
#define CGAM_SRC_BASE_WORDS_H

#include <stddef.h>
#include <string.h>

/* Where `word` stands in the table, or -1. */
static inline int cgam_word_find(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0) return (int)i;
    return -1;
}

/* bool prefix_find(name, *out) and prefix_name(value) for an enum that counts from 0. */
#define CGAM_WORDS(prefix, type, ...)                                                              \
    static const char *const prefix##_words[] = {__VA_ARGS__};                                     \
    const char *prefix##_name(type value) { return prefix##_words[value]; }                        \
    bool prefix##_find(const char *name, type *out)                                                \
    {                                                                                              \
        int at =                                                                                   \
            cgam_word_find(prefix##_words, sizeof prefix##_words / sizeof *prefix##_words, name);  \
        if (at >= 0) *out = (type)at;                                                              \
        return at >= 0;                                                                            \
    }

#endif
