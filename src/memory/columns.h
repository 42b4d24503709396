/* columns.h (inside): typed columns beside the rows of a bank, and their parts in a packed file.
 *
 *   columnK.integer  I64 [live]       or
 *   columnK.real     F64 [live]       NaN = missing; or
 *   columnK.begin    I64 [live + 1]   with columnK.text U8: text i is bytes begin[i] .. begin[i + 1]
 * and in the metadata "columnK", the name. */
#ifndef CGAM_SRC_MEMORY_COLUMNS_H
#define CGAM_SRC_MEMORY_COLUMNS_H

#include "memory/pack.h"

enum { CGAM_COLUMNS_MAX = 256, CGAM_COLUMN_NAME_MAX = 200 };

typedef enum cgam_column_kind {
    CGAM_COLUMN_INTEGER,
    CGAM_COLUMN_REAL,
    CGAM_COLUMN_TEXT
} cgam_column_kind;
extern const char *const cgam_column_words[];

typedef struct cgam_column {
    char *name;
    cgam_column_kind kind;
    const int64_t *integer; /* [rows] */
    const double *real;     /* [rows] */
    const int64_t *begin;   /* [rows + 1] */
    const char *text;
    void *own, *own_text; /* blocks to free; NULL where the column borrows */
} cgam_column;

struct cgam_columns {
    cgam_env *env;
    int64_t rows;
    int count;
    cgam_column *column;   /* [count] */
    const int64_t *number; /* [rows] the numbers of the memories, borrowed; NULL = 0, 1, ... */
    int64_t whole;         /* above every number */
};

/* Making columns: an empty set for so many rows; a column with a copy of its name, which `file` is named for in
 * messages; and its blocks, own[rows] of zeros and own_text[bytes]. */
CGAM_NODISCARD cgam_status cgam_columns_new(cgam_env *env, int64_t rows, cgam_columns **out);
CGAM_NODISCARD cgam_status cgam_columns_append(cgam_columns *columns, const char *file,
                                               const char *name, cgam_column_kind kind,
                                               cgam_column **out);
CGAM_NODISCARD cgam_status cgam_columns_room(cgam_columns *columns, cgam_column *column,
                                             int64_t bytes);
/* Gives the rows keep[count] of a, then all rows of b; b NULL: none. Names and types must agree. */
CGAM_NODISCARD cgam_status cgam_columns_join(const cgam_columns *a, int64_t count,
                                             const int64_t *keep, const cgam_columns *b,
                                             cgam_columns **out);
/* Returns the column of that name, or NULL. */
const cgam_column *cgam_columns_find(const cgam_columns *columns, const char *name);

/* The parts of a packed file. Reading borrows from the file; *out is NULL if there are no columns. */
CGAM_NODISCARD cgam_status cgam_columns_read(const cgam_packed *packed, cgam_columns **out);
CGAM_NODISCARD cgam_status cgam_columns_write(cgam_sealed *file, const cgam_columns *columns);
/* Bytes of the header that they take, at most. */
size_t cgam_columns_header(const cgam_columns *columns);

#endif
