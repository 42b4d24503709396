/* ranks.c: see ranks.h. */
#include "num/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_MAX = 2048 }; /* up to this many memories, proofs may use the n x n matrix */

static cgam_status fail_lost(cgam_env *env)
{
    return cgam_fail(env, CGAM_E_IO, "a message between ranks was lost");
}

/* ---- Counting ------------------------------------------------------------------------------------ */
static void count_traffic(cgam_ranks *r, int64_t messages, size_t bytes)
{
    r->traffic.messages += messages;
    r->traffic.bytes += (int64_t)bytes;
}

static bool share_bytes(cgam_ranks *r, void *data, const size_t *at)
{
    count_traffic(r, (int64_t)r->ranks * (r->ranks - 1), (size_t)(r->ranks - 1) * at[r->ranks]);
    return r->share(r->user, data, at);
}

static bool spread_bytes(cgam_ranks *r, int from, void *data, size_t bytes)
{
    count_traffic(r, r->ranks - 1, (size_t)(r->ranks - 1) * bytes);
    return r->spread(r->user, from, data, bytes);
}

static bool merge_words(cgam_ranks *r, uint64_t *words, size_t many)
{
    count_traffic(r, 2 * (int64_t)(r->ranks - 1),
                  2 * (size_t)(r->ranks - 1) * many * sizeof *words);
    return r->merge(r->user, words, many);
}

void cgam_rows_iterates(const cgam_rows *Z)
{
    if (!Z->shard) return;
    cgam_traffic *t = &Z->shard->ranks->traffic;
    t->iteration_messages -= t->messages;
    t->iteration_bytes -= t->bytes;
}

void cgam_rows_iterated(const cgam_rows *Z, int64_t iterations)
{
    if (!Z->shard) return;
    cgam_traffic *t = &Z->shard->ranks->traffic;
    t->iteration_messages += t->messages;
    t->iteration_bytes += t->bytes;
    t->iterations += iterations;
}

/* ---- Votes on the status of all ranks ------------------------------------------------------------ */
typedef struct word {
    int64_t status;
    char text[CGAM_MESSAGE_MAX];
} word;

/* *who = the lowest rank with a failure, found bit by bit from the top: does one have a 0 here? */
static bool find_lowest(cgam_ranks *r, bool trouble, int *who)
{
    int bit = 1;
    *who = 0;
    while (2 * bit < r->ranks) bit *= 2;
    for (; bit > 0; bit /= 2) {
        uint64_t lower =
            trouble && r->rank / (2 * bit) == *who / (2 * bit) && r->rank / bit % 2 == 0;
        if (!merge_words(r, &lower, 1)) return false;
        if (!lower) *who += bit;
    }
    return true;
}

/* Does not allocate: memory may be exhausted. */
static cgam_status agree_all_well(cgam_env *env, cgam_ranks *r, cgam_status mine)
{
    if (r->ended != CGAM_OK) return r->ended;
    if (mine == CGAM_OK) mine = r->untold;
    uint64_t trouble = mine != CGAM_OK, differ;
    if (!merge_words(r, &trouble, 1)) return fail_lost(env);
    if (!trouble) return CGAM_OK;
    word said = {.status = mine}, first;
    int who;
    if (mine != CGAM_OK) snprintf(said.text, sizeof said.text, "%s", cgam_env_message(env));
    first = said;
    bool fine = find_lowest(r, mine != CGAM_OK, &who) && spread_bytes(r, who, &first, sizeof first);
    differ = first.status != said.status || strcmp(first.text, said.text) != 0;
    if (!fine || !merge_words(r, &differ, 1)) return r->ended = fail_lost(env);
    r->ended = (cgam_status)first.status;
    const char *text = *first.text ? first.text : cgam_status_text(r->ended);
    return differ ? cgam_fail(env, r->ended, "rank %d: %.480s", who, text)
                  : cgam_fail(env, r->ended, "%s", text);
}

cgam_status cgam_ranks_agree(cgam_env *env, cgam_ranks *ranks)
{
    return agree_all_well(env, ranks, CGAM_OK);
}

cgam_status cgam_ranks_share(cgam_env *env, cgam_ranks *ranks, void *data, const size_t *at)
{
    cgam_status status = agree_all_well(env, ranks, CGAM_OK);
    return status != CGAM_OK || share_bytes(ranks, data, at) ? status : fail_lost(env);
}

cgam_status cgam_ranks_tell(cgam_env *env, cgam_ranks *ranks, void *data, size_t bytes)
{
    cgam_status status = agree_all_well(env, ranks, CGAM_OK);
    return status != CGAM_OK || spread_bytes(ranks, 0, data, bytes) ? status : fail_lost(env);
}

cgam_status cgam_ranks_end(cgam_env *env, cgam_ranks *ranks, cgam_status mine)
{
    if (!ranks) return mine;
    cgam_status status = agree_all_well(env, ranks, mine);
    ranks->ended = ranks->untold = CGAM_OK;
    return status;
}

cgam_status cgam_rows_status(const cgam_rows *Z)
{
    const cgam_ranks *r = Z->shard ? Z->shard->ranks : NULL;
    if (!r) return CGAM_OK;
    return r->ended != CGAM_OK ? r->ended : r->untold;
}

void cgam_rows_failed(const cgam_rows *Z, cgam_status status)
{
    if (Z->shard) Z->shard->ranks->untold = status;
}

/* ---- Which rank holds what -------------------------------------------------------------------------------- */
/* The first unit of rank r: as even as whole units allow. */
static int64_t unit_at(int64_t units, int ranks, int r) { return units * r / ranks; }

void cgam_ranks_cut(int64_t n, int64_t d, int ranks, int rank, int64_t *begin, int64_t *end)
{
    int64_t units = n > WHOLE_MAX && n > d ? cgam_rows_units(n, d) : 1;
    *begin = units > 1 ? n * unit_at(units, ranks, rank) / units : 0;
    *end = units > 1 ? n * unit_at(units, ranks, rank + 1) / units : n;
}

cgam_status cgam_shard_new(cgam_env *env, cgam_ranks *ranks, const cgam_rows *Z, cgam_shard **out)
{
    *out = NULL;
    int64_t begin, end, units = cgam_rows_units(Z->n, Z->d);
    cgam_ranks_cut(Z->n, Z->d, ranks->ranks, ranks->rank, &begin, &end);
    if (ranks->ranks == 1 || units == 1 || Z->n <= WHOLE_MAX || Z->n <= Z->d) return CGAM_OK;
    cgam_shard *shard = cgam_zalloc(env, 1, sizeof *shard);
    int64_t *at = cgam_alloc(env, (size_t)ranks->ranks + 1, sizeof *at);
    size_t *from = cgam_alloc(env, (size_t)ranks->ranks + 1, sizeof *from);
    double *terms = cgam_alloc(env, (size_t)CGAM_CHUNKS_MAX * CGAM_REDUCE_WIDTH, sizeof *terms);
    if (!shard || !at || !from || !terms) {
        cgam_free(env, shard);
        cgam_free(env, at);
        cgam_free(env, from);
        cgam_free(env, terms);
        return cgam_fail_nomem(env, "a shard");
    }
    for (int r = 0; r <= ranks->ranks; r++) at[r] = unit_at(units, ranks->ranks, r);
    *shard = (cgam_shard){.env = env,
                          .ranks = ranks,
                          .n = Z->n,
                          .units = units,
                          .at = at,
                          .begin = begin,
                          .end = end};
    shard->from = from;
    shard->terms = terms;
    shard->bytes = ((size_t)Z->d * cgam_dtype_size(Z->dtype) + 7) / 8 * 8;
    *out = shard;
    return CGAM_OK;
}

void cgam_shard_free(cgam_env *env, cgam_shard *shard)
{
    if (!shard) return;
    cgam_free(env, shard->at);
    cgam_free(env, shard->from);
    cgam_free(env, shard->terms);
    cgam_free(env, shard->brought);
    cgam_free(env, shard->rows);
    cgam_free(env, shard);
}

void cgam_rows_close(cgam_env *env, cgam_rows *Z)
{
    cgam_shard_free(env, Z->shard);
    Z->shard = NULL;
}

int64_t cgam_shard_first(const cgam_shard *s, int64_t chunks, int r)
{
    return chunks == s->n ? s->n * s->at[r] / s->units : s->at[r] * (chunks / s->units);
}

void cgam_rows_here(const cgam_rows *Z, int64_t chunks, int64_t *from, int64_t *to)
{
    const cgam_shard *s = Z->shard;
    *from = s ? cgam_shard_first(s, chunks, s->ranks->rank) : 0;
    *to = s ? cgam_shard_first(s, chunks, s->ranks->rank + 1) : chunks;
}

static int owner_of_chunk(const cgam_shard *s, int64_t chunks, int64_t k)
{
    int low = 0, high = s->ranks->ranks - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (cgam_shard_first(s, chunks, middle) <= k) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* Returns a row that was brought here; NULL: it is stored here, or not available. */
static const char *find_brought(const cgam_shard *s, int64_t i)
{
    int64_t low = 0, high = s->count;
    while ((i < s->begin || i >= s->end) && low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->brought[middle] == i) return s->rows + (size_t)middle * s->step;
        if (s->brought[middle] < i) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

const void *cgam_shard_row(const cgam_rows *Z, int64_t i)
{
    const cgam_shard *s = Z->shard;
    const char *row = find_brought(s, i);
    if (row) return row;
    return (const char *)Z->data + (i - s->first) * Z->stride * (int64_t)cgam_dtype_size(Z->dtype);
}

const double *cgam_shard_entries(const cgam_rows *Z, const double *x, int64_t i)
{
    const cgam_shard *s = Z->shard;
    const char *row = find_brought(s, i);
    for (int k = 0; row && k < CGAM_BRING_WITH; k++)
        if (s->with[k] == x) return (const double *)(const void *)(row + s->bytes) + k;
    return x + i;
}

/* ---- Passes -------------------------------------------------------------------------------------- */
typedef struct some {
    cgam_task task;
    void *arg;
    int64_t from;
} some;

static cgam_status run_task(void *arg, int64_t i)
{
    const some *job = arg;
    return job->task(job->arg, job->from + i);
}

cgam_status cgam_rows_run(cgam_env *env, const cgam_rows *Z, int64_t chunks, cgam_task task,
                          void *arg)
{
    int64_t from, to;
    if (!Z->shard) return cgam_parallel(env, chunks, task, arg);
    cgam_rows_here(Z, chunks, &from, &to);
    return cgam_parallel(env, to - from, run_task, &(some){task, arg, from});
}

typedef struct row_pass {
    const cgam_rows *Z;
    cgam_rows_task task;
    void *arg;
} row_pass;

static cgam_status pass_chunk(void *arg, int64_t k)
{
    const row_pass *pass = arg;
    return pass->task(pass->arg, cgam_rows_chunk_begin(pass->Z, k),
                      cgam_rows_chunk_begin(pass->Z, k + 1));
}

cgam_status cgam_rows_pass(cgam_env *env, const cgam_rows *Z, cgam_rows_task task, void *arg)
{
    return cgam_rows_run(env, Z, cgam_rows_chunks(Z), pass_chunk, &(row_pass){Z, task, arg});
}

cgam_status cgam_rows_each(cgam_env *env, const cgam_rows *Z, int64_t count, cgam_task task,
                           void *arg)
{
    cgam_status status = CGAM_OK;
    if (!Z->shard) return cgam_parallel(env, count, task, arg);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) status = task(arg, i);
    return status;
}

cgam_status cgam_rows_share(cgam_env *env, const cgam_rows *Z, int64_t chunks, size_t bytes,
                            void *base)
{
    const cgam_shard *s = Z->shard;
    if (!s) return CGAM_OK;
    for (int r = 0; r <= s->ranks->ranks; r++)
        s->from[r] = (size_t)cgam_shard_first(s, chunks, r) * bytes;
    return cgam_ranks_share(env, s->ranks, base, s->from);
}

/* ---- Sums ---------------------------------------------------------------------------------------- */
bool cgam_rows_pair_here(const cgam_rows *Z, int64_t chunks, int64_t k, int64_t step)
{
    int64_t from, to, end = k + 2 * step < chunks ? k + 2 * step : chunks;
    cgam_rows_here(Z, chunks, &from, &to);
    return from <= k && end <= to;
}

void cgam_rows_join_here(const cgam_rows *Z, int64_t chunks, int64_t size, int64_t from, int64_t to,
                         double *parts)
{
    for (int64_t step = 1; step < chunks; step *= 2)
        for (int64_t k = 0; k + step < chunks; k += 2 * step) {
            if (!cgam_rows_pair_here(Z, chunks, k, step)) continue;
            double *into = parts + k * size;
            const double *of = into + step * size;
            for (int64_t j = from; j < to; j++) into[j] += of[j];
        }
}

cgam_status cgam_rows_join_rest(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                                double *const *part, double *buffer, double **total)
{
    const cgam_shard *s = Z->shard;
    *total = part[0];
    if (!s) return CGAM_OK;
    cgam_ranks *r = s->ranks;
    int first = owner_of_chunk(s, chunks, 0);
    size_t bytes = (size_t)size * sizeof(double);
    double *other = cgam_alloc(env, (size_t)size, sizeof *other);
    if (!other) return cgam_fail_nomem(env, "sums of a rank");
    cgam_status status = agree_all_well(env, r, CGAM_OK);
    bool fine = true;
    for (int64_t step = 1; step < chunks && status == CGAM_OK && fine; step *= 2)
        for (int64_t k = 0; k + step < chunks && fine; k += 2 * step) {
            int left = owner_of_chunk(s, chunks, k), right = owner_of_chunk(s, chunks, k + step);
            bool mine = left == r->rank;
            if (mine && right == left && cgam_rows_pair_here(Z, chunks, k, step)) continue;
            if (left != right) count_traffic(r, 1, bytes);
            if (left != right && right == r->rank)
                fine = r->send(r->user, left, part[k + step], bytes);
            if (!mine) continue;
            if (left != right) fine = r->receive(r->user, right, other, bytes);
            const double *of = left == right ? part[k + step] : other;
            fine &= part[k] && of;
            for (int64_t j = 0; j < size && fine; j++) part[k][j] += of[j];
        }
    if (first != r->rank) *total = buffer;
    if (status == CGAM_OK && fine) fine = spread_bytes(r, first, *total, bytes);
    cgam_free(env, other);
    return status == CGAM_OK && !fine ? fail_lost(env) : status;
}

typedef struct joining {
    const cgam_rows *Z;
    int64_t chunks, size;
    double *parts;
} joining;

enum { JOIN_NUMBERS = 4096, JOIN_ALONE = 1 << 17 };

static cgam_status join_some(void *arg, int64_t item)
{
    const joining *job = arg;
    int64_t from = item * JOIN_NUMBERS, to = from + JOIN_NUMBERS;
    cgam_rows_join_here(job->Z, job->chunks, job->size, from, to < job->size ? to : job->size,
                        job->parts);
    return CGAM_OK;
}

cgam_status cgam_rows_join(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size,
                           double *parts, double *out)
{
    joining job = {Z, chunks, size, parts};
    cgam_status status = CGAM_OK;
    int64_t items = (size + JOIN_NUMBERS - 1) / JOIN_NUMBERS, from, to;
    double *part[CGAM_CHUNKS_MAX] = {NULL}, *total;
    cgam_rows_here(Z, chunks, &from, &to);
    if ((to - from) * size < JOIN_ALONE)
        for (int64_t i = 0; i < items; i++) (void)join_some(&job, i);
    else status = cgam_parallel(env, items, join_some, &job);
    for (int64_t k = from; k < to; k++) part[k] = parts + k * size;
    if (status == CGAM_OK) status = cgam_rows_join_rest(env, Z, chunks, size, part, out, &total);
    if (status == CGAM_OK && total && total != out) memcpy(out, total, (size_t)size * sizeof *out);
    return status;
}

/* ---- A few rows, or numbers ---------------------------------------------------------------------- */
static int ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

cgam_status cgam_rows_collect(cgam_env *env, const cgam_rows *Z, size_t bytes, int64_t mine,
                              const void *records, int64_t *total, void **all)
{
    const cgam_shard *s = Z->shard;
    cgam_ranks *r = s ? s->ranks : NULL;
    int64_t sum = mine, before = 0;
    *total = 0;
    *all = NULL;
    if (s) {
        int64_t *many = cgam_zalloc(env, (size_t)r->ranks, sizeof *many);
        if (!many) return cgam_fail_nomem(env, "records of all ranks");
        many[r->rank] = mine;
        cgam_status status = agree_all_well(env, r, CGAM_OK);
        if (status == CGAM_OK && !merge_words(r, (uint64_t *)(void *)many, (size_t)r->ranks))
            status = fail_lost(env);
        sum = 0;
        for (int k = 0; k < r->ranks; k++) {
            if (k == r->rank) before = sum;
            s->from[k] = (size_t)sum * bytes;
            sum += many[k];
        }
        s->from[r->ranks] = (size_t)sum * bytes;
        cgam_free(env, many);
        if (status != CGAM_OK) return status;
    }
    char *list = cgam_alloc(env, (size_t)sum + 1, bytes);
    if (!list) return cgam_fail_nomem(env, "records of all ranks");
    if (mine > 0) memcpy(list + (size_t)before * bytes, records, (size_t)mine * bytes);
    cgam_status status = s && sum > 0 ? cgam_ranks_share(env, r, list, s->from) : CGAM_OK;
    *total = sum;
    *all = list;
    if (status == CGAM_OK) return CGAM_OK;
    cgam_free(env, list);
    *all = NULL;
    return status;
}

/* Gets the records of rank `from`: *theirs is an array of `*count`; free it with cgam_free. */
static cgam_status tell_records(cgam_env *env, cgam_ranks *r, int from, size_t bytes, int64_t mine,
                                const void *records, int64_t *count, void **theirs)
{
    bool speaks = r->rank == from;
    *count = mine;
    *theirs = NULL;
    cgam_status status = agree_all_well(env, r, CGAM_OK);
    if (status == CGAM_OK && !spread_bytes(r, from, count, sizeof *count)) status = fail_lost(env);
    if (status != CGAM_OK) return status;
    *theirs = cgam_alloc(env, (size_t)*count + 1, bytes);
    if (!*theirs) return cgam_fail_nomem(env, "records of a rank");
    if (speaks && mine > 0) memcpy(*theirs, records, (size_t)mine * bytes);
    status = agree_all_well(env, r, CGAM_OK);
    if (status == CGAM_OK && *count > 0 && !spread_bytes(r, from, *theirs, (size_t)*count * bytes))
        status = fail_lost(env);
    if (status == CGAM_OK) return CGAM_OK;
    cgam_free(env, *theirs);
    *theirs = NULL;
    return status;
}

cgam_status cgam_rows_exchange(cgam_env *env, const cgam_rows *Z, size_t bytes, int64_t mine,
                               const void *records,
                               void (*visit)(void *arg, const void *theirs, int64_t count),
                               void *arg)
{
    cgam_ranks *r = Z->shard ? Z->shard->ranks : NULL;
    cgam_status status = CGAM_OK;
    for (int from = 0; r && from < r->ranks && status == CGAM_OK; from++) {
        int64_t count;
        void *theirs;
        status = tell_records(env, r, from, bytes, mine, records, &count, &theirs);
        if (status == CGAM_OK && from != r->rank) visit(arg, theirs, count);
        cgam_free(env, theirs);
    }
    return status;
}

cgam_status cgam_rows_any(cgam_env *env, const cgam_rows *Z, int64_t count, char *flag)
{
    const cgam_shard *s = Z->shard;
    if (!s || count == 0) return CGAM_OK;
    size_t words = ((size_t)count + 7) / 8;
    uint64_t *all = cgam_zalloc(env, words, sizeof *all);
    if (!all) return cgam_fail_nomem(env, "a word of all ranks");
    memcpy(all, flag, (size_t)count);
    cgam_status status = agree_all_well(env, s->ranks, CGAM_OK);
    if (status == CGAM_OK && !merge_words(s->ranks, all, words)) status = fail_lost(env);
    memcpy(flag, all, (size_t)count);
    cgam_free(env, all);
    return status;
}

cgam_status cgam_rows_bring_with(cgam_env *env, const cgam_rows *Z, int64_t count,
                                 const int64_t *row, const double *const *with, int vectors)
{
    cgam_shard *s = Z->shard;
    if (!s) return CGAM_OK;
    cgam_free(env, s->brought);
    cgam_free(env, s->rows);
    s->count = 0;
    s->rows = NULL;
    s->with[0] = Z->scale;
    for (int k = 1; k < CGAM_BRING_WITH; k++) s->with[k] = k <= vectors ? with[k - 1] : NULL;
    s->step = s->bytes + CGAM_BRING_WITH * sizeof(double);
    s->brought = cgam_alloc(env, (size_t)count + 1, sizeof *s->brought);
    if (!s->brought) return cgam_fail_nomem(env, "rows of other ranks");
    int64_t many = 0, kept = 0;
    for (int64_t k = 0; k < count; k++)
        if (row[k] >= 0) s->brought[many++] = row[k];
    qsort(s->brought, (size_t)many, sizeof *s->brought, ascending);
    for (int64_t k = 0; k < many; k++)
        if (k == 0 || s->brought[k] != s->brought[k - 1]) s->brought[kept++] = s->brought[k];
    if (kept == 0) return CGAM_OK;
    s->rows = cgam_zalloc(env, (size_t)kept, s->step);
    if (!s->rows) return cgam_fail_nomem(env, "rows of other ranks");
    cgam_status status = agree_all_well(env, s->ranks, CGAM_OK);
    if (status != CGAM_OK) return status;
    for (int64_t k = 0; k < kept; k++) {
        int64_t i = s->brought[k];
        if (i < s->begin || i >= s->end) continue;
        char *to = s->rows + (size_t)k * s->step;
        memcpy(to, cgam_rows_at(Z, i), (size_t)Z->d * cgam_dtype_size(Z->dtype));
        for (int v = 0; v < CGAM_BRING_WITH; v++)
            if (s->with[v])
                memcpy(to + s->bytes + (size_t)v * sizeof(double), &s->with[v][i], sizeof(double));
    }
    s->count = kept;
    return merge_words(s->ranks, (uint64_t *)(void *)s->rows, (size_t)kept * s->step / 8)
               ? CGAM_OK
               : fail_lost(env);
}

cgam_status cgam_rows_bring(cgam_env *env, const cgam_rows *Z, int64_t count, const int64_t *row)
{
    return cgam_rows_bring_with(env, Z, count, row, NULL, 0);
}

cgam_status cgam_rows_pick(const cgam_rows *Z, int64_t count, const int64_t *row, int64_t each,
                           double *values)
{
    const cgam_shard *s = Z->shard;
    if (!s || count == 0) return CGAM_OK;
    cgam_status status = agree_all_well(s->env, s->ranks, CGAM_OK);
    if (status != CGAM_OK) return status;
    for (int64_t k = 0; k < count; k++)
        if (row[k] < s->begin || row[k] >= s->end)
            memset(values + k * each, 0, (size_t)each * sizeof *values);
    return merge_words(s->ranks, (uint64_t *)(void *)values, (size_t)(count * each))
               ? CGAM_OK
               : fail_lost(s->env);
}

cgam_status cgam_rows_most(cgam_env *env, const cgam_rows *Z, int64_t many, double *values)
{
    const cgam_shard *s = Z->shard;
    if (!s) return CGAM_OK;
    int ranks = s->ranks->ranks;
    double *all = cgam_alloc(env, (size_t)(ranks * many), sizeof *all);
    if (!all) return cgam_fail_nomem(env, "a word of all ranks");
    memcpy(all + s->ranks->rank * many, values, (size_t)many * sizeof *all);
    for (int r = 0; r <= ranks; r++) s->from[r] = (size_t)(r * many) * sizeof *all;
    cgam_status status = cgam_ranks_share(env, s->ranks, all, s->from);
    for (int64_t k = 0; k < ranks * many && status == CGAM_OK; k++)
        values[k % many] = k < many ? all[k] : fmax(values[k % many], all[k]);
    cgam_free(env, all);
    return status;
}

cgam_status cgam_rows_least(cgam_env *env, const cgam_rows *Z, double *value)
{
    *value = -*value;
    cgam_status status = cgam_rows_most(env, Z, 1, value);
    *value = -*value;
    return status;
}
