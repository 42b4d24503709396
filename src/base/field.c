/* field.c: rows by name, and the words and numbers of a row. */
#include "base/field.h"

#include <string.h>

const cgam_field *cgam_field_find(const cgam_field *rows, const char *name, size_t length)
{
    for (; rows && rows->name && *rows->name; rows++)
        if (strlen(rows->name) == length && strncmp(rows->name, name, length) == 0) return rows;
    return NULL;
}

const char *cgam_field_word(const cgam_field *f, const char *word, size_t *length)
{
    bool numbers = f->kind != CGAM_CHOICE && f->kind != CGAM_WORDS;
    if (f->kind == CGAM_FLAG || f->kind == CGAM_TEXT || !f->value || !strchr(f->value, '|'))
        return NULL;
    if (word) word += strcspn(word, "|");
    else word = f->value;
    word += *word == '|';
    *length = strcspn(word, "|");
    /* The last of numbers only says what they look like. */
    return !*word || (numbers && !word[*length]) ? NULL : word;
}

int cgam_field_choice(const cgam_field *f, const char *text)
{
    size_t length;
    const char *word = NULL;
    for (int k = 0; (word = cgam_field_word(f, word, &length)); k++)
        if (strlen(text) == length && strncmp(word, text, length) == 0) return k;
    return -1;
}

double cgam_field_number(const cgam_field *f, const void *object)
{
    const void *at = (const char *)object + f->offset;
    switch (f->type) {
    case CGAM_TYPE_BOOL: return *(const bool *)at;
    case CGAM_TYPE_INT: return *(const int *)at;
    case CGAM_TYPE_INT64: return (double)*(const int64_t *)at;
    case CGAM_TYPE_UINT64: return (double)*(const uint64_t *)at;
    case CGAM_TYPE_DOUBLE: return *(const double *)at;
    case CGAM_TYPE_FLOAT: return (double)*(const float *)at;
    default: return 0;
    }
}

const char *cgam_input_name(cgam_input input)
{
    static const char *const names[] = {"",      "numbers", "rows", "vectors", "bank",
                                        "store", "model",   "text", "json"};
    return names[input];
}
