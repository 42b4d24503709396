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

/* Multiply and rotate, a number at a time, -0 taken for 0; equal hashes are compared, so it need not
 * be good. */
static uint64_t hash_row(const double *row, int64_t d)
{
    uint64_t hash = (uint64_t)d;
    for (int64_t i = 0; i < d; i++) {
        double value = row[i] + 0.0; /* -0 + 0 is 0 */
        uint64_t word;
        memcpy(&word, &value, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static cgam_status hash_chunk(void *arg, int64_t k)
{
    hashing *job = arg;
    const cgam_rows *Z = &job->bank->Z;
    cgam_env *env = job->bank->env;
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    double *row = cgam_alloc(env, (size_t)Z->d, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "a row");
    for (int64_t i = cgam_rows_chunk_begin(Z, k); i < cgam_rows_chunk_begin(Z, k + 1); i++) {
        cgam_rows_get(Z, i, 1, row);
        job->marks[i] = (mark){hash_row(row, Z->d), i};
    }
    cgam_free(env, row);
    return CGAM_OK;
}

bool cgam_twins_alike(const cgam_bank *bank, int64_t i, int64_t j, double *rows)
{
    int64_t d = bank->Z.d, k = 0;
    cgam_rows_get(&bank->Z, i, 1, rows);
    cgam_rows_get(&bank->Z, j, 1, rows + d);
    while (k < d && rows[k] == rows[d + k]) k++;
    return k == d;
}

static int by_hash(const void *x, const void *y)
{
    const mark *a = x, *b = y;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Collects the families among marks sorted by hash. Rows of one hash that are not alike are rare
 * enough to be left out of each other's families one by one. */
static void collect(const cgam_bank *bank, mark *marks, int64_t n, double *rows, cgam_twins *twins)
{
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        if (marks[i].row < 0) continue; /* taken by an earlier family */
        int64_t first = used;
        twins->member[used++] = marks[i].row;
        for (int64_t j = i + 1; j < n && marks[j].hash == marks[i].hash; j++) {
            if (marks[j].row < 0 || !cgam_twins_alike(bank, marks[i].row, marks[j].row, rows))
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
    double *rows = NULL;
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
    rows = cgam_alloc(env, (size_t)(2 * bank->Z.d), sizeof *rows);
    if (!twins->begin || !twins->member || !rows) {
        status = cgam_fail_nomem(env, "equal memories");
        goto done;
    }
    collect(bank, job.marks, n, rows, twins);
    if (twins->families > 0) {
        *out = twins;
        twins = NULL;
    }
done:
    cgam_free(env, rows);
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

double cgam_twins_largest(const cgam_twins *twins, const double *y)
{
    double largest = 0;
    for (int64_t k = 0; twins && k < twins->begin[twins->families]; k++)
        largest = y[twins->member[k]] > largest ? y[twins->member[k]] : largest;
    return largest;
}
