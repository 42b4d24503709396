/* bank_ranks.c: banks whose rows come from several ranks: given by each, or read from a file that all ranks see. */
#include "memory/bank.h"

#include "num/ranks.h"

#include <stdio.h>
#include <string.h>

/* What a rank reports about its part. */
typedef struct part {
    int64_t n, d, dtype;
    uint64_t print;
    char cpu[32];
} part;

/* Gathers the reports of all ranks; free them with cgam_free. NULL: *status has the reason. */
static part *gather_parts(cgam_env *env, cgam_ranks *ranks, part mine, cgam_status *status)
{
    size_t count = (size_t)ranks->ranks;
    part *all = cgam_zalloc(env, count, sizeof *all);
    size_t *at = cgam_alloc(env, count + 1, sizeof *at);
    for (size_t r = 0; at && r <= count; r++) at[r] = r * sizeof *all;
    snprintf(mine.cpu, sizeof mine.cpu, "%s", cgam_cpu_best()->name);
    if (all) all[ranks->rank] = mine;
    *status = !all || !at ? cgam_fail_nomem(env, "parts of a bank") : CGAM_OK;
    if (*status == CGAM_OK) *status = cgam_ranks_share(env, ranks, all, at);
    cgam_free(env, at);
    if (*status == CGAM_OK) return all;
    cgam_free(env, all);
    return NULL;
}

/* Fails unless all ranks use the same CPU loops, since results depend on them to the bit. */
static cgam_status check_cpu(cgam_env *env, const part *all, int rank)
{
    if (strcmp(all[0].cpu, all[rank].cpu) == 0) return CGAM_OK;
    return cgam_fail(env, CGAM_E_UNSUPPORTED, "this CPU uses %s, rank 0 uses %s", all[rank].cpu,
                     all[0].cpu);
}

enum { LOOKED_AT = 64 };

/* A fingerprint of a file, from rows all over the bank. */
static uint64_t fingerprint_of(const cgam_shards *s)
{
    size_t bytes = (size_t)s->d * cgam_dtype_size(s->dtype);
    uint64_t print = 1469598103934665603u;
    int64_t array;
    for (int64_t k = 0; k < LOOKED_AT && k < s->rows; k++) {
        const unsigned char *row =
            cgam_shards_row(s, k == 0 ? s->rows - 1 : s->rows * k / LOOKED_AT, &array);
        for (size_t i = 0; i < bytes; i++) print = (print ^ row[i]) * 1099511628211u;
    }
    return print;
}

static cgam_status check_same_files(cgam_env *env, const cgam_shards *shards, cgam_ranks *ranks,
                                    const char *name)
{
    part mine = {shards->rows, shards->d, shards->dtype, fingerprint_of(shards), ""};
    cgam_status status;
    part *all = gather_parts(env, ranks, mine, &status);
    if (!all) return status;
    const part *first = &all[0];
    status = check_cpu(env, all, ranks->rank);
    if (mine.n != first->n || mine.d != first->d || mine.dtype != first->dtype)
        status = cgam_fail(env, CGAM_E_SHAPE,
                           "%s: %s %lld x %lld, the file of rank 0 holds %s %lld x %lld", name,
                           cgam_word(cgam_dtype_words, shards->dtype), (long long)mine.n,
                           (long long)mine.d, cgam_word(cgam_dtype_words, (cgam_dtype)first->dtype),
                           (long long)first->n, (long long)first->d);
    else if (mine.print != first->print)
        status = cgam_fail(env, CGAM_E_VALUE, "%s: numbers differ from the file of rank 0", name);
    cgam_free(env, all);
    return status;
}

cgam_status cgam_bank_take_rows(cgam_bank *bank, cgam_shards *shards, const cgam_bank_opts *opts,
                                const char *path)
{
    cgam_env *env = bank->env;
    cgam_ranks *ranks = opts->ranks;
    int64_t begin = 0, end = shards->rows, array;
    cgam_status status = CGAM_OK;
    bank->Z = (cgam_rows){NULL,      shards->dtype, shards->rows,    shards->d,
                          shards->d, NULL,          cgam_cpu_best(), NULL};
    if (ranks) {
        cgam_ranks_cut(shards->rows, shards->d, ranks->ranks, ranks->rank, &begin, &end);
        status = check_same_files(env, shards, ranks, path);
        if (status == CGAM_OK) status = cgam_shard_new(env, ranks, &bank->Z, &bank->Z.shard);
        if (status != CGAM_OK) return status;
    }
    if (bank->Z.shard) bank->Z.shard->first = begin;
    if (shards->count == 1) { /* the bank takes ownership of the array */
        bank->Z.data = cgam_shards_row(shards, begin < end ? begin : 0, &array);
        bank->array = shards->arrays[0];
        shards->arrays[0] = (cgam_array){0};
        return CGAM_OK;
    }
    bank->owned = cgam_alloc(env, (size_t)(end - begin) + 1,
                             (size_t)shards->d * cgam_dtype_size(shards->dtype));
    if (!bank->owned) return cgam_fail_nomem(env, "rows of several files");
    cgam_shards_copy(shards, begin, end, bank->owned);
    bank->Z.data = bank->owned;
    return CGAM_OK;
}

/* ---- Rows given by each rank ----------------------------------------------------------------------- */
typedef struct giving {
    cgam_ranks *ranks;
    const part *all;
    int64_t n, d;
    const char *data; /* of this rank */
    size_t step, row; /* bytes from row to row there, and of a row */
    char *to;         /* destination of rows [begin, end) of all */
    char *buffer;     /* for rows on their way to another rank */
    int64_t begin, end;
} giving;

/* Sends rows [from, to) of all, which rank `source` gave, to the ranks that keep them. All ranks call it in the same
 * order. */
static bool pass_rows(const giving *g, int source, int64_t given, int target, int64_t from,
                      int64_t to)
{
    int me = g->ranks->rank;
    size_t bytes = (size_t)(to - from) * g->row;
    if (from >= to || (me != source && me != target)) return true;
    char *into = me == target ? g->to + (size_t)(from - g->begin) * g->row : g->buffer;
    for (int64_t i = from; me == source && i < to; i++)
        memcpy(into + (size_t)(i - from) * g->row, g->data + (size_t)(i - given) * g->step, g->row);
    if (source == target) return true;
    return me == source ? g->ranks->send(g->ranks->user, target, into, bytes)
                        : g->ranks->receive(g->ranks->user, source, into, bytes);
}

/* Distributes the rows, so that every rank has the rows it keeps. */
static cgam_status spread_rows(cgam_env *env, const giving *g)
{
    int ranks = g->ranks->ranks;
    bool fine = true;
    int64_t given = 0;
    for (int source = 0; source < ranks && fine; source++) {
        int64_t last = given + g->all[source].n;
        for (int target = 0; target < ranks && fine; target++) {
            int64_t begin, end;
            cgam_ranks_cut(g->n, g->d, ranks, target, &begin, &end);
            fine = pass_rows(g, source, given, target, begin > given ? begin : given,
                             end < last ? end : last);
        }
        given = last;
    }
    return fine ? CGAM_OK : cgam_fail(env, CGAM_E_IO, "a message between ranks was lost");
}

static cgam_status check_parts(cgam_env *env, const part *all, int rank, int64_t n)
{
    cgam_status status = check_cpu(env, all, rank);
    if (status == CGAM_OK && (all[rank].d != all[0].d || all[rank].dtype != all[0].dtype))
        status = cgam_fail(
            env, CGAM_E_SHAPE, "rows are %lld %s here, %lld %s on rank 0", (long long)all[rank].d,
            cgam_word(cgam_dtype_words, (cgam_dtype)all[rank].dtype), (long long)all[0].d,
            cgam_word(cgam_dtype_words, (cgam_dtype)all[0].dtype));
    return status == CGAM_OK ? cgam_bank_shape(env, "bank", n, all[0].d) : status;
}

cgam_status cgam_bank_gather(cgam_env *env, const void *data, cgam_dtype dtype, int64_t n,
                             int64_t d, const cgam_bank_opts *opts, cgam_bank **out)
{
    cgam_ranks *ranks = opts->ranks;
    cgam_status status;
    part *all = gather_parts(env, ranks, (part){.n = n, .d = d, .dtype = dtype}, &status);
    if (!all) return status;
    cgam_bank *bank = cgam_zalloc(env, 1, sizeof *bank);
    if (!bank) {
        cgam_free(env, all);
        return cgam_fail_nomem(env, "a bank");
    }
    bank->env = env;
    giving g = {.ranks = ranks, .all = all, .d = d, .data = data};
    for (int r = 0; r < ranks->ranks; r++) g.n += all[r].n;
    status = check_parts(env, all, ranks->rank, g.n);
    if (status == CGAM_OK) {
        int64_t stride = opts->stride ? opts->stride : d;
        bank->Z = (cgam_rows){data, dtype, g.n, d, stride, NULL, cgam_cpu_best(), NULL};
        g.row = (size_t)d * cgam_dtype_size(dtype);
        g.step = (size_t)stride * cgam_dtype_size(dtype);
        cgam_ranks_cut(g.n, d, ranks->ranks, ranks->rank, &g.begin, &g.end);
        status = cgam_shard_new(env, ranks, &bank->Z, &bank->Z.shard);
    }
    if (status == CGAM_OK) status = cgam_ranks_agree(env, ranks);
    if (status == CGAM_OK) {
        bank->owned = cgam_alloc(env, (size_t)(g.end - g.begin) + 1, g.row);
        g.to = bank->owned;
        g.buffer =
            cgam_alloc(env, (size_t)n + 1, g.row); /* allocated here; a failure is reported below */
        status = bank->owned && g.buffer ? CGAM_OK : cgam_fail_nomem(env, "rows of a rank");
    }
    if (status == CGAM_OK) status = cgam_ranks_agree(env, ranks);
    if (status == CGAM_OK) status = spread_rows(env, &g);
    cgam_free(env, g.buffer);
    if (status == CGAM_OK) {
        bank->Z.data = bank->owned;
        bank->Z.stride = d;
        if (bank->Z.shard) bank->Z.shard->first = g.begin;
        status = cgam_bank_finish(bank, opts, "bank");
    }
    cgam_free(env, all);
    if (status == CGAM_OK) *out = bank;
    else cgam_bank_free(bank);
    return status;
}
