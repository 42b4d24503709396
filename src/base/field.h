/* field.h: rows of a table that describes a struct (cgam_field, base.h).
 *
 *     CGAM_ROW(cgam_result, gap, "gap", CGAM_REAL, "lead in score over the best rival")
 *
 * The compiler determines the type of the member. After the words, further members of cgam_field may follow. */
#ifndef CGAM_SRC_BASE_FIELD_H
#define CGAM_SRC_BASE_FIELD_H

#include <cgam/base.h>

/* clang-format off */
/* size_t where it is neither unsigned nor uint64_t: WebAssembly. */
#if __SIZEOF_LONG__ == 4
#define CGAM_TYPE_OF_LONG unsigned long: CGAM_TYPE_INT,
#else
#define CGAM_TYPE_OF_LONG
#endif
#define CGAM_TYPE_OF(x_)                                                                           \
    _Generic((x_), CGAM_TYPE_OF_LONG bool: CGAM_TYPE_BOOL, int: CGAM_TYPE_INT, unsigned: CGAM_TYPE_INT,              \
             int64_t: CGAM_TYPE_INT64, uint64_t: CGAM_TYPE_UINT64, double: CGAM_TYPE_DOUBLE,       \
             float: CGAM_TYPE_FLOAT, char *: CGAM_TYPE_CHARS, const char *: CGAM_TYPE_POINTER,     \
             const int64_t *: CGAM_TYPE_POINTER, const double *: CGAM_TYPE_POINTER)
/* The offset of a member in a struct. */
#define CGAM_AT(struct_, member_)                                                                  \
    .member = #member_, .offset = offsetof(struct_, member_),                                      \
    .type = CGAM_TYPE_OF(((struct_ *)0)->member_)
/* struct, member, name, kind, words */
#define CGAM_ROW(struct_, member_, name_, kind_, ...)                                              \
    {.name = name_, .kind = kind_, CGAM_AT(struct_, member_), .help = __VA_ARGS__}
/* clang-format on */
#define CGAM_ROWS_END                                                                              \
    {                                                                                              \
        .name = ""                                                                                 \
    }
/* A row that stands for the row of that name in another table, and one that stands for all its rows. */
/* clang-format off */
#define CGAM_ROW_OF(rows_, name_) {.name = name_, .of = rows_}
#define CGAM_ROWS_OF(rows_) {.name = "*", .of = rows_}
/* clang-format on */

/* The kind of file that a parameter names. A server for other users knows banks, caches, stores and models by its own names,
 * takes other inputs from the request, and rejects those marked NONE. */
typedef enum cgam_input {
    CGAM_INPUT_NONE,
    CGAM_INPUT_NUMBERS, /* an array */
    CGAM_INPUT_ROWS,    /* an array of row numbers or booleans, or names, one per line */
    CGAM_INPUT_VECTORS, /* likewise, or sums of the bank's memories, "rows:.." */
    CGAM_INPUT_BANK,
    CGAM_INPUT_STORE,
    CGAM_INPUT_MODEL,
    CGAM_INPUT_TEXT, /* lines */
    CGAM_INPUT_JSON,
    CGAM_INPUT_CACHE, /* a semantic cache */
    CGAM_INPUT_KEY    /* an array, or a text that is never a path: "file:X" and "text:X" */
} cgam_input;

#endif
