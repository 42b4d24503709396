/* vec_top.c: the largest entries of a vector. */
#include "num/vec.h"

#include <stdlib.h>

/* Is entry i worse than entry j? Smaller, or equal and later. */
static bool is_worse(const double *x, int64_t i, int64_t j)
{
    return x[i] < x[j] || (x[i] == x[j] && i > j);
}

/* Moves heap[at] down until no child is worse: the worst of the kept sits at the root. */
static void sift_down(const double *x, int64_t *heap, int64_t size, int64_t at)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= size) return;
        if (child + 1 < size && is_worse(x, heap[child + 1], heap[child])) child++;
        if (!is_worse(x, heap[child], heap[at])) return;
        int64_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

/* The k largest of x [n], n > 0, in their order. */
static void find_top(const double *x, int64_t n, int64_t k, int64_t *index)
{
    for (int64_t i = 0; i < k; i++) index[i] = i;
    for (int64_t i = k / 2; i-- > 0;) sift_down(x, index, k, i);
    for (int64_t i = k; i < n; i++) {
        if (k == 0 || !is_worse(x, index[0], i)) continue;
        index[0] = i;
        sift_down(x, index, k, 0);
    }
    for (int64_t size = k - 1; size > 0; size--) { /* heap sort: the worst goes last */
        int64_t swap = index[0];
        index[0] = index[size];
        index[size] = swap;
        sift_down(x, index, size, 0);
    }
}

typedef struct entry {
    double value;
    int64_t row;
} entry;

static int by_row(const void *x, const void *y)
{
    int64_t a = ((const entry *)x)->row, b = ((const entry *)y)->row;
    return a < b ? -1 : a > b;
}

/* The largest of all rows are among the largest of each process. */
cgam_status cgam_vec_top(cgam_env *env, const cgam_rows *Z, const double *x, int64_t k,
                         int64_t *index)
{
    int64_t begin = cgam_vec_begin(Z), size = cgam_vec_size(Z), mine = k < size ? k : size;
    int64_t count = 0;
    find_top(x + begin, size, mine, index);
    if (cgam_rows_whole(Z)) return CGAM_OK;
    void *all = NULL;
    entry *list = cgam_alloc(env, (size_t)mine + 1, sizeof *list);
    if (!list) return cgam_fail_nomem(env, "leaders");
    for (int64_t j = 0; j < mine; j++) list[j] = (entry){x[begin + index[j]], begin + index[j]};
    qsort(list, (size_t)mine, sizeof *list, by_row);
    cgam_status status = cgam_rows_collect(env, Z, sizeof *list, mine, list, &count, &all);
    cgam_free(env, list);
    if (status != CGAM_OK) return status;
    list = all;
    double *values = cgam_alloc(env, (size_t)count + 1, sizeof *values);
    if (!values) status = cgam_fail_nomem(env, "leaders");
    for (int64_t j = 0; values && j < count; j++) values[j] = list[j].value;
    if (values) find_top(values, count, k, index);
    for (int64_t j = 0; values && j < k; j++) index[j] = list[index[j]].row;
    cgam_free(env, values);
    cgam_free(env, all);
    return status;
}
