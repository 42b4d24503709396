/* twins.c: rows are hashed in parallel, sorted by hash and compared where hashes agree. On ranks each tells the others
 * its hashes, one after the other, so that nobody needs all of them at a time; rows whose hash is that of another are
 * then known to all. */
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
    mark *marks; /* of the rows that are here, from the first on */
    int64_t first;
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
        job->marks[i - job->first] = (mark){hash_row(row, Z->d), i};
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

enum { BRING_BYTES = 1 << 26 }; /* of first rows that are looked at together */

/* Where the run of one hash that begins at i ends. */
static int64_t run_end(const mark *marks, int64_t count, int64_t i)
{
    int64_t end = i + 1;
    while (end < count && marks[end].hash == marks[i].hash) end++;
    return end;
}

/* alike[j]: is the row of marks[j] equal to the first of its run? */
static cgam_status compare(const cgam_bank *bank, const mark *marks, int64_t count, double *rows,
                           char *alike)
{
    const cgam_rows *Z = &bank->Z;
    int64_t room = BRING_BYTES / (Z->d * (int64_t)sizeof(double)) + 1, from, to, end;
    cgam_status status = CGAM_OK;
    int64_t *first = cgam_alloc(bank->env, (size_t)room, sizeof *first);
    if (!first) return cgam_fail_nomem(bank->env, "equal memories");
    cgam_rows_here(Z, Z->n, &from, &to);
    for (int64_t begin = 0; begin < count && status == CGAM_OK; begin = end) {
        int64_t many = 0;
        for (end = begin; end < count && many < room; end = run_end(marks, count, end))
            if (run_end(marks, count, end) > end + 1) first[many++] = marks[end].row;
        status = cgam_rows_bring(bank->env, Z, many, first);
        for (int64_t i = begin, next; i < end && status == CGAM_OK; i = next) {
            next = run_end(marks, count, i);
            for (int64_t j = i + 1; j < next; j++)
                alike[j] = marks[j].row >= from && marks[j].row < to &&
                           cgam_twins_alike(bank, marks[i].row, marks[j].row, rows);
        }
    }
    cgam_free(bank->env, first);
    return status == CGAM_OK ? cgam_rows_any(bank->env, Z, count, alike) : status;
}

/* Collects the families among marks sorted by hash. Rows of one hash that are not alike are looked at again
 * without the first of them. */
static cgam_status collect(const cgam_bank *bank, mark *marks, int64_t count, double *rows,
                           char *alike, cgam_twins *twins)
{
    int64_t used = 0;
    cgam_status status = CGAM_OK;
    while (count > 0 && status == CGAM_OK) {
        int64_t left = 0, next;
        status = compare(bank, marks, count, rows, alike);
        for (int64_t i = 0; i < count && status == CGAM_OK; i = next) {
            int64_t first = used, others = left;
            next = run_end(marks, count, i);
            twins->member[used++] = marks[i].row;
            for (int64_t j = i + 1; j < next; j++) {
                if (alike[j]) twins->member[used++] = marks[j].row;
                else marks[left++] = marks[j];
            }
            if (left - others == 1) left = others; /* nobody is left to be like it */
            if (used - first == 1) used = first;   /* nor like the first */
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

/* Of `count` marks sorted by hash those that are not alone, in front; of them or of `others` [many], sorted too. */
static void suspect(const mark *marks, int64_t count, const mark *others, int64_t many, char *found)
{
    for (int64_t i = 0, k = 0; i < count; i++) {
        while (k < many && others[k].hash < marks[i].hash) k++;
        found[i] |= (k < many && others[k].hash == marks[i].hash) ||
                    (i > 0 && marks[i - 1].hash == marks[i].hash) ||
                    (i + 1 < count && marks[i + 1].hash == marks[i].hash);
    }
}

/* The marks of rows that share their hash with another, wherever that is, sorted by hash; free them with cgam_free. */
static cgam_status find_suspects(const cgam_bank *bank, mark **out, int64_t *count)
{
    cgam_env *env = bank->env;
    const cgam_rows *Z = &bank->Z;
    cgam_span here = cgam_rows_span(Z);
    int64_t kept = 0;
    void *all = NULL;
    hashing job = {bank, cgam_alloc(env, (size_t)here.size + 1, sizeof *job.marks), here.from};
    char *found = cgam_zalloc(env, (size_t)here.size + 1, 1);
    cgam_status status = job.marks && found ? CGAM_OK : cgam_fail_nomem(env, "equal memories");
    if (status == CGAM_OK) status = cgam_rows_run(env, Z, cgam_rows_chunks(Z), hash_chunk, &job);
    if (status == CGAM_OK && here.size > 0)
        qsort(job.marks, (size_t)here.size, sizeof *job.marks, by_hash);
    if (status == CGAM_OK) suspect(job.marks, here.size, NULL, 0, found);
    for (int r = 0; Z->shard && r < Z->shard->ranks->ranks && status == CGAM_OK; r++) {
        int64_t many;
        void *theirs;
        status = cgam_rows_tell(env, Z, r, sizeof *job.marks, here.size, job.marks, &many, &theirs);
        if (status != CGAM_OK) break;
        if (r != Z->shard->ranks->rank) suspect(job.marks, here.size, theirs, many, found);
        cgam_free(env, theirs);
    }
    for (int64_t i = 0; i < here.size && status == CGAM_OK; i++)
        if (found[i]) job.marks[kept++] = job.marks[i];
    if (status == CGAM_OK)
        status = cgam_rows_collect(env, Z, sizeof *job.marks, kept, job.marks, count, &all);
    if (status == CGAM_OK) qsort(all, (size_t)*count, sizeof *job.marks, by_hash);
    cgam_free(env, found);
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
    status = collect(bank, marks, count, rows, alike, twins);
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
    if (!holds) return cgam_fail(env, CGAM_E_FORMAT, "lists of equal memories do not fit the bank");
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

/* The entries of all members, by their places in `member`; free them with cgam_free. */
static cgam_status members_of(const cgam_bank *bank, const cgam_twins *twins, const double *y,
                              double **out)
{
    int64_t count = twins->begin[twins->families];
    *out = cgam_alloc(bank->env, (size_t)count, sizeof **out);
    if (!*out) return cgam_fail_nomem(bank->env, "equal memories");
    return cgam_vectors_pick(bank->env, &bank->Z, y, count, twins->member, *out);
}

cgam_status cgam_twins_level(const cgam_bank *bank, const cgam_twins *twins, double *y)
{
    cgam_span here = cgam_rows_span(&bank->Z);
    double *of = NULL;
    cgam_status status = twins ? members_of(bank, twins, y, &of) : CGAM_OK;
    for (int64_t f = 0; twins && f < twins->families && status == CGAM_OK; f++) {
        int64_t begin = twins->begin[f], end = twins->begin[f + 1];
        double total = 0;
        for (int64_t k = begin; k < end; k++) total += of[k];
        for (int64_t k = begin; k < end; k++)
            if (cgam_span_has(here, twins->member[k]))
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
