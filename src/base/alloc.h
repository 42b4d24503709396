/* alloc.h: arrays that are allocated together.
 *
 *     float *x, *y;
 *     cgam_status status = cgam_alloc_all(env, "states", CGAM_ARRAY(x, n * d), CGAM_ZEROS(y, d));
 *     ..
 *     cgam_free_all(env, x, y);
 *
 * After a failure the arrays that were not allocated are NULL, so that all can be freed. */
#ifndef CGAM_SRC_BASE_ALLOC_H
#define CGAM_SRC_BASE_ALLOC_H

#include "base/env.h"

#include <string.h>

typedef struct cgam_allocation {
    void *pointer; /* receives the address of the array */
    size_t count, size;
    bool zeroed;
} cgam_allocation;

/* clang-format off */
#define CGAM_ARRAY(pointer_, count_) {&(pointer_), (size_t)(count_), sizeof *(pointer_), false}
#define CGAM_ZEROS(pointer_, count_) {&(pointer_), (size_t)(count_), sizeof *(pointer_), true}
/* clang-format on */

/* Allocates all arrays of the list; CGAM_E_NOMEM with "out of memory: WHAT" if one fails. */
#define cgam_alloc_all(env, what, ...)                                                             \
    cgam_alloc_list((env), (what),                                                                 \
                    sizeof((cgam_allocation[]){__VA_ARGS__}) / sizeof(cgam_allocation),            \
                    (cgam_allocation[]){__VA_ARGS__})
static inline cgam_status cgam_alloc_list(cgam_env *env, const char *what, size_t count,
                                          const cgam_allocation *list)
{
    bool fine = true;
    for (size_t i = 0; i < count; i++) {
        void *block = NULL;
        if (fine && list[i].zeroed) block = cgam_zalloc(env, list[i].count, list[i].size);
        else if (fine) block = cgam_alloc(env, list[i].count, list[i].size);
        fine = fine && block;
        memcpy(list[i].pointer, &block, sizeof block);
    }
    return fine ? CGAM_OK : cgam_fail_nomem(env, what);
}

/* Grows a list [*capacity] with `used` entries so that one more fits: a full list doubles. After a failure the list
 * is unchanged. */
#define cgam_grow(env, what, list_, used, capacity)                                                \
    cgam_grow_list((env), (what), &(list_), sizeof *(list_), (used), (capacity))
static inline cgam_status cgam_grow_list(cgam_env *env, const char *what, void *list, size_t size,
                                         int64_t used, int64_t *capacity)
{
    void *old, *larger;
    if (used < *capacity) return CGAM_OK;
    int64_t wanted = *capacity ? 2 * *capacity : 64;
    larger = cgam_alloc(env, (size_t)wanted, size);
    if (!larger) return cgam_fail_nomem(env, what);
    memcpy(&old, list, sizeof old);
    if (used > 0) memcpy(larger, old, (size_t)used * size);
    cgam_free(env, old);
    memcpy(list, &larger, sizeof larger);
    *capacity = wanted;
    return CGAM_OK;
}

/* Copies the first `length` bytes of a text; NULL if out of memory. */
static inline char *cgam_strndup(cgam_env *env, const char *text, size_t length)
{
    char *copy = cgam_alloc(env, length + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

#endif
