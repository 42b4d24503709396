/* twins.c: rows are hashed in parallel, sorted by hash and compared where hashes agree. */
#include "memory/twins.h"

#include <stdlib.h>
#include <string.h>

struct cgam_twins {
    int64_t families;
    int64_t *begin;  /* [families + 1] into member */
    int64_t *member; /* rows, family by family, ascending */
};

typedef struct mark {
    uint64_t hash;
    int64_t row;
} mark;

typedef struct hashing {
    const cgam_bank *bank;
    mark *marks; /* [n] */
} hashing;

static const char *row_bytes(const cgam_bank *bank, int64_t i)
{
    size_t step = (size_t)bank->Z.stride * cgam_dtype_size(bank->Z.dtype);
    return (const char *)bank->Z.data + (size_t)i * step;
}

static size_t row_size(const cgam_bank *bank)
{
    return (size_t)bank->Z.d * cgam_dtype_size(bank->Z.dtype);
}

/* Multiply and rotate, eight bytes at a time; equal hashes are compared, so it need not be good. */
static uint64_t hash_bytes(const char *bytes, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static cgam_status hash_chunk(void *arg, int64_t k)
{
    hashing *job = arg;
    const cgam_rows *Z = &job->bank->Z;
    if (cgam_interrupted(job->bank->env)) return CGAM_E_INTERRUPTED;
    for (int64_t i = cgam_rows_chunk_begin(Z, k); i < cgam_rows_chunk_begin(Z, k + 1); i++)
        job->marks[i] = (mark){hash_bytes(row_bytes(job->bank, i), row_size(job->bank)), i};
    return CGAM_OK;
}

static int by_hash(const void *x, const void *y)
{
    const mark *a = x, *b = y;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Collects the families among marks sorted by hash. Rows of one hash that are not alike are rare
 * enough to be left out of each other's families one by one. */
static void collect(const cgam_bank *bank, mark *marks, int64_t n, cgam_twins *twins)
{
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        if (marks[i].row < 0) continue; /* taken by an earlier family */
        int64_t first = used;
        twins->member[used++] = marks[i].row;
        for (int64_t j = i + 1; j < n && marks[j].hash == marks[i].hash; j++) {
            if (marks[j].row < 0 || memcmp(row_bytes(bank, marks[i].row),
                                           row_bytes(bank, marks[j].row), row_size(bank)) != 0)
                continue;
            twins->member[used++] = marks[j].row;
            marks[j].row = -1;
        }
        if (used - first == 1) used = first; /* nobody is like this one */
        else twins->begin[++twins->families] = used;
    }
}

void cgam_twins_free(cgam_env *env, cgam_twins *twins)
{
    if (!twins) return;
    cgam_free(env, twins->begin);
    cgam_free(env, twins->member);
    cgam_free(env, twins);
}

cgam_status cgam_twins_find(const cgam_bank *bank, cgam_twins **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n;
    cgam_status status = CGAM_OK;
    cgam_twins *twins = cgam_zalloc(env, 1, sizeof *twins);
    hashing job = {bank, cgam_alloc(env, (size_t)n, sizeof *job.marks)};
    if (!twins || !job.marks) {
        status = cgam_fail_nomem(env, "equal memories");
        goto done;
    }
    status = cgam_parallel(env, cgam_rows_chunks(&bank->Z), hash_chunk, &job);
    if (status != CGAM_OK) goto done;
    qsort(job.marks, (size_t)n, sizeof *job.marks, by_hash);
    int64_t pairs = 0;
    for (int64_t i = 1; i < n; i++) pairs += job.marks[i].hash == job.marks[i - 1].hash;
    if (pairs == 0) goto done;
    twins->begin = cgam_zalloc(env, (size_t)pairs + 1, sizeof *twins->begin);
    twins->member = cgam_alloc(env, (size_t)n, sizeof *twins->member);
    if (!twins->begin || !twins->member) {
        status = cgam_fail_nomem(env, "equal memories");
        goto done;
    }
    collect(bank, job.marks, n, twins);
    if (twins->families > 0) {
        *out = twins;
        twins = NULL;
    }
done:
    cgam_free(env, job.marks);
    cgam_twins_free(env, twins);
    return status;
}

void cgam_twins_level(const cgam_twins *twins, double *y)
{
    for (int64_t f = 0; twins && f < twins->families; f++) {
        int64_t begin = twins->begin[f], end = twins->begin[f + 1];
        double total = 0;
        for (int64_t k = begin; k < end; k++) total += y[twins->member[k]];
        for (int64_t k = begin; k < end; k++) y[twins->member[k]] = total / (double)(end - begin);
    }
}
