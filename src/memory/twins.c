/* twins.c: rows are hashed in parallel, sorted by hash and compared where hashes agree. The hashes of several
 * processes are compared one process after the other, so that no process holds all of them. */
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
    mark *marks; /* [count] of the rows of this process */
    char *found; /* [count] does another row have its hash? */
    int64_t count;
} hashing;

/* Multiply and rotate, a number at a time, with -0 as 0; rows of equal hash are compared, so the hash need not be
 * strong. */
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

static cgam_status hash_rows(void *arg, int64_t from, int64_t to)
{
    hashing *job = arg;
    const cgam_rows *Z = &job->bank->Z;
    cgam_env *env = job->bank->env;
    if (cgam_interrupted(env)) return CGAM_E_INTERRUPTED;
    double *row = cgam_alloc(env, (size_t)Z->d, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "a row");
    for (int64_t i = from; i < to; i++) {
        cgam_rows_get(Z, i, 1, row);
        job->marks[i - cgam_vec_begin(Z)] = (mark){hash_row(row, Z->d), i};
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

enum { BRING_BYTES = 1 << 26 }; /* size limit of the first rows compared together */

/* Returns the end of the run of one hash that begins at i. */
static int64_t run_end(const mark *marks, int64_t count, int64_t i)
{
    int64_t end = i + 1;
    while (end < count && marks[end].hash == marks[i].hash) end++;
    return end;
}

/* alike[j]: the row of marks[j] equals the first of its run. */
static cgam_status compare_marks(const cgam_bank *bank, const mark *marks, int64_t count,
                                 double *rows, char *alike)
{
    const cgam_rows *Z = &bank->Z;
    int64_t capacity = BRING_BYTES / (Z->d * (int64_t)sizeof(double)) + 1, end;
    cgam_status status = CGAM_OK;
    int64_t *first = cgam_alloc(bank->env, (size_t)capacity, sizeof *first);
    if (!first) return cgam_fail_nomem(bank->env, "equal memories");
    for (int64_t begin = 0; begin < count && status == CGAM_OK; begin = end) {
        int64_t many = 0;
        for (end = begin; end < count && many < capacity; end = run_end(marks, count, end))
            if (run_end(marks, count, end) > end + 1) first[many++] = marks[end].row;
        status = cgam_rows_bring(bank->env, Z, many, first);
        for (int64_t i = begin, next; i < end && status == CGAM_OK; i = next) {
            next = run_end(marks, count, i);
            for (int64_t j = i + 1; j < next; j++)
                alike[j] = cgam_vec_has(Z, marks[j].row) &&
                           cgam_twins_alike(bank, marks[i].row, marks[j].row, rows);
        }
    }
    cgam_free(bank->env, first);
    return status == CGAM_OK ? cgam_rows_any(bank->env, Z, count, alike) : status;
}

/* Collects the families among marks sorted by hash. Rows with the same hash that are not equal are compared again
 * without the first of them. */
static cgam_status collect_families(const cgam_bank *bank, mark *marks, int64_t count, double *rows,
                                    char *alike, cgam_twins *twins)
{
    int64_t used = 0;
    cgam_status status = CGAM_OK;
    while (count > 0 && status == CGAM_OK) {
        int64_t left = 0, next;
        status = compare_marks(bank, marks, count, rows, alike);
        for (int64_t i = 0; i < count && status == CGAM_OK; i = next) {
            int64_t first = used, others = left;
            next = run_end(marks, count, i);
            twins->member[used++] = marks[i].row;
            for (int64_t j = i + 1; j < next; j++) {
                if (alike[j]) twins->member[used++] = marks[j].row;
                else marks[left++] = marks[j];
            }
            if (left - others == 1) left = others; /* no other row can be equal to it */
            if (used - first == 1) used = first;   /* nor to the first */
            else twins->begin[++twins->families] = used;
        }
        count = left;
    }
    return status;
}

void cgam_twins_free(cgam_env *env, cgam_twins *twins)
{
    if (!twins) return;
    cgam_free(env, twins->begin);
    cgam_free(env, twins->member);
    cgam_free(env, twins);
}

/* found[i]: mark i's hash is also that of another mark of this process, or of `others` [many]. All are sorted by
 * hash. */
static void find_shared(void *arg, const void *others, int64_t many)
{
    hashing *job = arg;
    const mark *marks = job->marks, *other = others;
    for (int64_t i = 0, k = 0; i < job->count; i++) {
        while (k < many && other[k].hash < marks[i].hash) k++;
        job->found[i] |= (k < many && other[k].hash == marks[i].hash) ||
                         (i > 0 && marks[i - 1].hash == marks[i].hash) ||
                         (i + 1 < job->count && marks[i + 1].hash == marks[i].hash);
    }
}

/* Returns the marks of rows that share their hash with a row of any process, sorted by hash; free them with
 * cgam_free. */
static cgam_status find_suspects(const cgam_bank *bank, mark **out, int64_t *count)
{
    cgam_env *env = bank->env;
    const cgam_rows *Z = &bank->Z;
    int64_t kept = 0;
    void *all = NULL;
    hashing job = {.bank = bank, .count = cgam_vec_size(Z)};
    job.marks = cgam_alloc(env, (size_t)job.count + 1, sizeof *job.marks);
    job.found = cgam_zalloc(env, (size_t)job.count + 1, 1);
    cgam_status status = job.marks && job.found ? CGAM_OK : cgam_fail_nomem(env, "equal memories");
    if (status == CGAM_OK) status = cgam_rows_pass(env, Z, hash_rows, &job);
    if (status == CGAM_OK && job.count > 0)
        qsort(job.marks, (size_t)job.count, sizeof *job.marks, by_hash);
    if (status == CGAM_OK) find_shared(&job, NULL, 0);
    if (status == CGAM_OK)
        status =
            cgam_rows_exchange(env, Z, sizeof *job.marks, job.count, job.marks, find_shared, &job);
    for (int64_t i = 0; i < job.count && status == CGAM_OK; i++)
        if (job.found[i]) job.marks[kept++] = job.marks[i];
    if (status == CGAM_OK)
        status = cgam_rows_collect(env, Z, sizeof *job.marks, kept, job.marks, count, &all);
    if (status == CGAM_OK) qsort(all, (size_t)*count, sizeof *job.marks, by_hash);
    cgam_free(env, job.found);
    cgam_free(env, job.marks);
    *out = all;
    return status;
}

cgam_status cgam_twins_find(const cgam_bank *bank, cgam_twins **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    int64_t count = 0;
    mark *marks = NULL;
    double *rows = NULL;
    char *alike = NULL;
    cgam_twins *twins = cgam_zalloc(env, 1, sizeof *twins);
    cgam_status status =
        twins ? find_suspects(bank, &marks, &count) : cgam_fail_nomem(env, "equal memories");
    if (status != CGAM_OK || count == 0) goto done;
    twins->begin = cgam_zalloc(env, (size_t)count + 1, sizeof *twins->begin);
    twins->member = cgam_alloc(env, (size_t)count, sizeof *twins->member);
    rows = cgam_alloc(env, (size_t)(2 * bank->Z.d), sizeof *rows);
    alike = cgam_zalloc(env, (size_t)count, 1);
    if (!twins->begin || !twins->member || !rows || !alike) {
        status = cgam_fail_nomem(env, "equal memories");
        goto done;
    }
    status = collect_families(bank, marks, count, rows, alike, twins);
    if (status == CGAM_OK && twins->families > 0) {
        *out = twins;
        twins = NULL;
    }
done:
    cgam_free(env, rows);
    cgam_free(env, alike);
    cgam_free(env, marks);
    cgam_twins_free(env, twins);
    return status;
}

int64_t cgam_twins_keep(const cgam_twins *twins, const int64_t **begin, const int64_t **member)
{
    *begin = twins ? twins->begin : NULL;
    *member = twins ? twins->member : NULL;
    return twins ? twins->families : 0;
}

cgam_status cgam_twins_restore(cgam_env *env, int64_t n, int64_t families, const int64_t *begin,
                               int64_t members, const int64_t *member, cgam_twins **out)
{
    *out = NULL;
    if (families == 0) return CGAM_OK;
    bool holds = begin[0] == 0 && begin[families] == members && members <= n;
    for (int64_t f = 0; f < families && holds; f++) holds = begin[f + 1] > begin[f];
    for (int64_t k = 0; k < members && holds; k++) holds = member[k] >= 0 && member[k] < n;
    if (!holds)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "the stored lists of equal memories do not match the bank");
    cgam_twins *twins = cgam_zalloc(env, 1, sizeof *twins);
    if (!twins) return cgam_fail_nomem(env, "equal memories");
    twins->families = families;
    twins->begin = cgam_alloc(env, (size_t)families + 1, sizeof *begin);
    twins->member = cgam_alloc(env, (size_t)members, sizeof *member);
    if (!twins->begin || !twins->member) {
        cgam_twins_free(env, twins);
        return cgam_fail_nomem(env, "equal memories");
    }
    memcpy(twins->begin, begin, (size_t)(families + 1) * sizeof *begin);
    memcpy(twins->member, member, (size_t)members * sizeof *member);
    *out = twins;
    return CGAM_OK;
}

/* Returns the entries of all members, in the order of `member`; free them with cgam_free. */
static cgam_status members_of(const cgam_bank *bank, const cgam_twins *twins, const double *y,
                              double **out)
{
    int64_t count = twins->begin[twins->families];
    *out = cgam_alloc(bank->env, (size_t)count, sizeof **out);
    if (!*out) return cgam_fail_nomem(bank->env, "equal memories");
    return cgam_vec_pick(&bank->Z, y, count, twins->member, *out);
}

cgam_status cgam_twins_level(const cgam_bank *bank, const cgam_twins *twins, double *y)
{
    double *of = NULL;
    cgam_status status = twins ? members_of(bank, twins, y, &of) : CGAM_OK;
    for (int64_t f = 0; twins && f < twins->families && status == CGAM_OK; f++) {
        int64_t begin = twins->begin[f], end = twins->begin[f + 1];
        double total = 0;
        for (int64_t k = begin; k < end; k++) total += of[k];
        for (int64_t k = begin; k < end; k++)
            if (cgam_vec_has(&bank->Z, twins->member[k]))
                y[twins->member[k]] = total / (double)(end - begin);
    }
    cgam_free(bank->env, of);
    return status;
}

cgam_status cgam_twins_largest(const cgam_bank *bank, const cgam_twins *twins, const double *y,
                               double *largest)
{
    double *of = NULL;
    cgam_status status = twins ? members_of(bank, twins, y, &of) : CGAM_OK;
    *largest = 0;
    for (int64_t k = 0; twins && k < twins->begin[twins->families] && status == CGAM_OK; k++)
        *largest = of[k] > *largest ? of[k] : *largest;
    cgam_free(bank->env, of);
    return status;
}
