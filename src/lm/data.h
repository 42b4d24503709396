/* data.h: the files inside the packages, read. Tests feed these with bytes of their own. */
#ifndef CGAM_SRC_LM_DATA_H
#define CGAM_SRC_LM_DATA_H

#include "io/file.h"

#include <cgam/data.h>
#include <cgam/io.h>

/* Rows with their names, on the env's memory. */
typedef struct cgam_data_rows {
    int64_t n, d;
    float *x;     /* [n, d] */
    char **names; /* [n] */
} cgam_data_rows;
void cgam_data_rows_free(cgam_env *env, cgam_data_rows *rows); /* copes with {0}, leaves {0} */

/* One JSON object with "size", "dimensions" and "vectors": {word: [numbers, norm, rank]}. A row's place is
 * its rank. CGAM_E_FORMAT names the place in `file`. Free *out with cgam_data_rows_free. */
CGAM_NODISCARD cgam_status cgam_data_read_words(cgam_env *env, const char *name,
                                                const cgam_file *file, cgam_data_rows *out);
/* IDX files of images (magic 2051) and of labels (2049), as many of each. */
CGAM_NODISCARD cgam_status cgam_data_read_digits(cgam_env *env, const char *name,
                                                 const cgam_file *images, const cgam_file *labels,
                                                 cgam_data_rows *out);

#endif
