/* pack.c: packs banks and changes packed banks: chooses the rows, names and numbers of the new file. */
#include "memory/bank.h"
#include "memory/columns.h"
#include "memory/pack_write.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 20 };

cgam_pack_opts cgam_pack_opts_default(void)
{
    return (cgam_pack_opts){.dtype = -1, .sketch = true};
}

/* ---- Locks --------------------------------------------------------------------------------- */
/* Locks the file at `path` for replacement, and waits if needed. Under the lock it checks that the path still names
 * this file. *out is -1 if the file does not exist. */
static cgam_status lock_file(cgam_env *env, const char *path, int *out)
{
    for (;;) {
        struct stat named, held;
        int fd = *out = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) return CGAM_OK; /* the function that opens it reports why */
        while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR) break; /* this file system has no locks */
            if (cgam_interrupted(env)) {
                close(fd);
                *out = -1;
                return cgam_fail(env, CGAM_E_INTERRUPTED, "%s: stopped on request",
                                 cgam_path_tail(path));
            }
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        }
        if (stat(path, &named) != 0 || fstat(fd, &held) != 0 ||
            (named.st_ino == held.st_ino && named.st_dev == held.st_dev))
            return CGAM_OK;
        close(fd); /* another process replaced it meanwhile */
    }
}

static void unlock_file(int fd)
{
    if (fd >= 0) close(fd);
}

/* ---- One change ---------------------------------------------------------------------------- */
/* The old bank, the source of new rows, and the new bank. */
typedef struct change {
    cgam_env *env;
    int lock;
    cgam_packed *old;
    cgam_bank *old_bank; /* over the old bank, for names */
    cgam_row_names *old_names, *new_names;
    cgam_rows_source source;
    cgam_pack_job job;
} change;

static cgam_status end_change(change *c, cgam_status status)
{
    cgam_pack_job_free(&c->job);
    cgam_rows_source_close(c->env, &c->source);
    cgam_row_names_free(c->old_names);
    cgam_row_names_free(c->new_names);
    cgam_bank_free(c->old_bank);
    unlock_file(c->lock);
    return status;
}

/* Opens the bank to change; the new bank starts as a copy of its properties. */
static cgam_status begin_change(cgam_env *env, const char *path, const char *from, change *c)
{
    *c = (change){.env = env, .lock = -1, .job = {.env = env, .path = path, .from = from}};
    cgam_status status = lock_file(env, path, &c->lock);
    if (status == CGAM_OK) status = cgam_packed_open(env, path, &c->old);
    if (status == CGAM_OK && !c->old && !cgam_file_exists(path))
        status = cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no such file", cgam_path_tail(path));
    if (status == CGAM_OK && !c->old)
        status = cgam_fail(env, CGAM_E_ARG, "%s: not a packed bank; see bank pack",
                           cgam_path_tail(path));
    if (status != CGAM_OK) return status;
    const cgam_packed *old = c->old;
    cgam_pack_job *job = &c->job;
    job->dtype = old->dtype;
    job->normalize = old->normalize;
    job->sketch = old->sketch.rows != NULL;
    job->alphas = old->alphas;
    memcpy(job->alpha, old->alpha, sizeof job->alpha);
    job->n = old->n;
    job->d = old->d;
    status = cgam_packed_bank(c->old, path, &(cgam_bank_opts){0}, &c->old_bank);
    if (status == CGAM_OK) status = cgam_pack_names(c->old_bank, &c->old_names);
    return status;
}

/* Opens the source, which must fit the bank. */
static cgam_status open_source(change *c, const char *from)
{
    cgam_status status = cgam_rows_source_open(c->env, from, &c->source);
    if (status == CGAM_OK && c->source.d != c->old->d)
        status = cgam_fail(c->env, CGAM_E_SHAPE, "%s: d = %lld, the bank has d = %lld",
                           cgam_path_tail(from), (long long)c->source.d, (long long)c->old->d);
    return status;
}

/* Writes all rows of a source. */
static cgam_status write_source(change *c)
{
    const cgam_rows_source *s = &c->source;
    if (s->packed) return cgam_pack_job_rows(&c->job, s->packed->rows, s->dtype, s->rows);
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < s->shards.count && status == CGAM_OK; k++) {
        const cgam_array *a = &s->shards.arrays[k];
        status = cgam_pack_job_rows(&c->job, a->data, a->dtype, a->shape[0]);
    }
    return status;
}

static const void *row_of(const void *rows, cgam_dtype dtype, int64_t d, int64_t i)
{
    return (const char *)rows + (size_t)(i * d) * cgam_dtype_size(dtype);
}

/* Writes row i of a source. */
static cgam_status write_source_row(change *c, int64_t i)
{
    const cgam_rows_source *s = &c->source;
    if (s->packed)
        return cgam_pack_job_rows(&c->job, row_of(s->packed->rows, s->dtype, s->d, i), s->dtype, 1);
    int64_t k;
    const void *row = cgam_shards_row(&s->shards, i, &k);
    return cgam_pack_job_rows(&c->job, row, s->shards.arrays[k].dtype, 1);
}

/* Writes rows [from, to) of the old bank. */
static cgam_status write_old_rows(change *c, int64_t from, int64_t to)
{
    return cgam_pack_job_rows(&c->job, row_of(c->old->rows, c->old->dtype, c->old->d, from),
                              c->old->dtype, to - from);
}

static int64_t old_number(const change *c, int64_t i)
{
    return c->old->number ? c->old->number[i] : i;
}

/* Allocates lists for `live` rows: numbers if the new bank has any, and names likewise. */
static cgam_status make_lists(change *c, int64_t live, bool numbers, bool names)
{
    if (numbers) c->job.number = cgam_alloc(c->env, (size_t)live, sizeof *c->job.number);
    if (names) c->job.name = cgam_alloc(c->env, (size_t)live, sizeof *c->job.name);
    bool made = (!numbers || c->job.number) && (!names || c->job.name);
    return made ? CGAM_OK : cgam_fail_nomem(c->env, "names of a bank");
}

/* Entry k of the lists becomes the old row i. */
static void list_old(change *c, int64_t k, int64_t i)
{
    int64_t number = old_number(c, i);
    if (c->job.number) c->job.number[k] = number;
    if (c->job.name) c->job.name[k] = cgam_row_names_at(c->old_names, number);
}

static cgam_status load_names(change *c, const char *path, int64_t rows)
{
    cgam_status status = cgam_row_names_load(c->env, path, &c->new_names);
    if (status == CGAM_OK && cgam_row_names_count(c->new_names) != rows)
        status =
            cgam_fail(c->env, CGAM_E_SHAPE, "%s: %lld names for %lld rows", cgam_path_tail(path),
                      (long long)cgam_row_names_count(c->new_names), (long long)rows);
    return status;
}

/* ---- The calls ----------------------------------------------------------------------------- */
static cgam_status check_opts(cgam_env *env, const cgam_pack_opts *o, const char *path)
{
    if (!cgam_path_ends(path, ".safetensors"))
        return cgam_fail(env, CGAM_E_ARG, "out is %s; a packed bank must end in .safetensors",
                         cgam_path_tail(path));
    if (o->dtype > (int)CGAM_BF16)
        return cgam_fail(env, CGAM_E_ARG, "a bank cannot hold %s",
                         cgam_word(cgam_dtype_words, (cgam_dtype)o->dtype));
    if (o->alphas < 0 || o->alphas > CGAM_PACK_ALPHAS_MAX)
        return cgam_fail(env, CGAM_E_ARG, "%lld values of alpha (at most %d)", (long long)o->alphas,
                         CGAM_PACK_ALPHAS_MAX);
    for (int64_t k = 0; k < o->alphas; k++)
        if (!(o->alpha[k] > 0 && isfinite(o->alpha[k])))
            return cgam_fail(env, CGAM_E_ARG, "alpha is %g, it must be above 0", o->alpha[k]);
    return CGAM_OK;
}

/* Names of the rows of a source: from a file, else its own; none if it has none. */
static cgam_status source_names(change *c, const char *file)
{
    cgam_packed *packed = c->source.packed;
    int64_t rows = c->source.rows;
    cgam_status status = CGAM_OK;
    if (file) {
        status = load_names(c, file, rows);
    } else if (packed && packed->names) { /* a bank used only for its names, without a file */
        cgam_bank view = {.env = c->env, .packed = packed};
        status = cgam_pack_names(&view, &c->new_names);
    }
    if (status == CGAM_OK) status = make_lists(c, rows, false, c->new_names != NULL);
    for (int64_t i = 0; c->job.name && i < rows; i++)
        c->job.name[i] = cgam_row_names_at(
            c->new_names, !file && packed && packed->number ? packed->number[i] : i);
    return status;
}

/* The columns of the new bank: old rows keep[count], then those of a file. */
static cgam_status join_columns(change *c, const cgam_columns *old, int64_t count,
                                const int64_t *keep, const char *file)
{
    cgam_columns *more = NULL;
    cgam_status status = CGAM_OK;
    if (!old) return CGAM_OK;
    if (file) status = cgam_columns_load(c->env, file, c->source.rows, &more);
    if (status == CGAM_OK) status = cgam_columns_join(old, count, keep, more, &c->job.columns);
    cgam_columns_free(more);
    return status;
}

/* The columns of all old rows that the mask does not drop (NULL: of all), then those of a file, if there is one. */
static cgam_status keep_columns(change *c, const uint64_t *drop, const char *file)
{
    int64_t kept = 0;
    if (!c->old->columns) return CGAM_OK;
    int64_t *keep = cgam_alloc(c->env, (size_t)c->old->live, sizeof *keep);
    if (!keep) return cgam_fail_nomem(c->env, "columns");
    for (int64_t i = 0; i < c->old->live; i++) {
        int64_t number = old_number(c, i);
        if (!drop || !(drop[number / 64] >> number % 64 & 1)) keep[kept++] = i;
    }
    cgam_status status = join_columns(c, c->old->columns, kept, keep, file);
    cgam_free(c->env, keep);
    return status;
}

/* Those of a source: from a file, else its own; none if it has none. */
static cgam_status source_columns(change *c, const char *file)
{
    const cgam_columns *own = c->source.packed ? c->source.packed->columns : NULL;
    if (file) return cgam_columns_load(c->env, file, c->source.rows, &c->job.columns);
    if (!own) return CGAM_OK;
    int64_t *all = cgam_alloc(c->env, (size_t)c->source.rows, sizeof *all);
    if (!all) return cgam_fail_nomem(c->env, "columns");
    for (int64_t i = 0; i < c->source.rows; i++) all[i] = i;
    cgam_status status = join_columns(c, own, c->source.rows, all, NULL);
    cgam_free(c->env, all);
    return status;
}

cgam_status cgam_pack(cgam_env *env, const char *from, const cgam_pack_opts *opts, const char *path)
{
    cgam_pack_opts o = opts ? *opts : cgam_pack_opts_default();
    cgam_status status = check_opts(env, &o, path);
    if (status != CGAM_OK) return status;
    change c = {.env = env, .lock = -1, .job = {.env = env, .path = path, .from = from}};
    status = lock_file(env, path, &c.lock);
    if (status == CGAM_OK) status = cgam_rows_source_open(env, from, &c.source);
    if (status == CGAM_OK && o.alphas > 0) {
        double side = (double)(c.source.rows < c.source.d ? c.source.rows : c.source.d);
        status = cgam_env_expect(env, side * side * sizeof(double), "the gates of the bank");
    }
    if (status == CGAM_OK && c.source.shards.mixed && o.dtype < 0)
        status = cgam_fail(env, CGAM_E_ARG, "%s: arrays of several types, so dtype must be given",
                           cgam_path_tail(from));
    if (status == CGAM_OK) status = write_source(&c);
    if (status == CGAM_OK) status = source_names(&c, o.names);
    if (status != CGAM_OK) return end_change(&c, status);
    c.job.dtype = o.dtype >= 0 ? (cgam_dtype)o.dtype : c.source.dtype;
    c.job.normalize = o.normalize;
    c.job.sketch = o.sketch;
    c.job.alphas = o.alphas;
    if (o.alphas > 0) memcpy(c.job.alpha, o.alpha, (size_t)o.alphas * sizeof *o.alpha);
    c.job.n = c.source.rows;
    c.job.d = c.source.d;
    status = source_columns(&c, o.columns);
    return end_change(&c, status == CGAM_OK ? cgam_pack_job_write(&c.job) : status);
}

cgam_status cgam_pack_add(cgam_env *env, const char *path, const char *from, const char *names)
{
    return cgam_pack_add_columns(env, path, from, names, NULL);
}

cgam_status cgam_pack_add_columns(cgam_env *env, const char *path, const char *from,
                                  const char *names, const char *columns)
{
    change c;
    cgam_status status = begin_change(env, path, from, &c);
    if (status == CGAM_OK) status = open_source(&c, from);
    if (status == CGAM_OK && !names != !c.old_names)
        status = cgam_fail(env, CGAM_E_ARG, "names: the bank has %s, so new rows %s",
                           names ? "none" : "some", names ? "have none" : "need them");
    if (status == CGAM_OK && !columns != !c.old->columns)
        status = cgam_fail(env, CGAM_E_ARG, "columns: the bank has %s, so new rows %s",
                           columns ? "none" : "some", columns ? "have none" : "need them");
    if (status == CGAM_OK && names) status = load_names(&c, names, c.source.rows);
    if (status == CGAM_OK) status = keep_columns(&c, NULL, columns);
    if (status == CGAM_OK) status = write_old_rows(&c, 0, c.old->live);
    if (status == CGAM_OK) status = write_source(&c);
    if (status == CGAM_OK)
        status = make_lists(&c, c.job.live, c.old->number != NULL, names != NULL);
    if (status != CGAM_OK) return end_change(&c, status);
    for (int64_t i = 0; i < c.old->live; i++) list_old(&c, i, i);
    for (int64_t i = 0; i < c.source.rows; i++) {
        if (c.job.number) c.job.number[c.old->live + i] = c.old->n + i;
        if (c.job.name) c.job.name[c.old->live + i] = cgam_row_names_at(c.new_names, i);
    }
    c.job.n += c.source.rows;
    return end_change(&c, cgam_pack_job_write(&c.job));
}

/* by[i]: the row of the source that replaces row i; -1: none. */
static cgam_status choose_replacements(change *c, int64_t count, const int64_t *number, int64_t *by)
{
    for (int64_t i = 0; i < c->old->live; i++) by[i] = -1;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = cgam_bank_place(c->old_bank, number[k]);
        if (i < 0)
            return cgam_fail(c->env, CGAM_E_ARG, "rows: the bank has no memory %lld",
                             (long long)number[k]);
        if (by[i] >= 0)
            return cgam_fail(c->env, CGAM_E_ARG, "rows: memory %lld is given twice",
                             (long long)number[k]);
        by[i] = k;
    }
    return CGAM_OK;
}

cgam_status cgam_pack_put(cgam_env *env, const char *path, const char *from, int64_t count,
                          const int64_t *number)
{
    change c;
    int64_t *by = NULL, done = 0;
    cgam_status status = begin_change(env, path, from, &c);
    if (status == CGAM_OK) status = open_source(&c, from);
    if (status == CGAM_OK && c.source.rows != count)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: has %lld rows, there are %lld to replace",
                           cgam_path_tail(from), (long long)c.source.rows, (long long)count);
    if (status == CGAM_OK) by = cgam_alloc(env, (size_t)c.old->live, sizeof *by);
    if (status == CGAM_OK && !by) status = cgam_fail_nomem(env, "rows of a bank");
    if (status == CGAM_OK) status = choose_replacements(&c, count, number, by);
    for (int64_t i = 0; status == CGAM_OK && i < c.old->live; i++) {
        if (by[i] < 0) continue;
        status = write_old_rows(&c, done, i);
        if (status == CGAM_OK) status = write_source_row(&c, by[i]);
        done = i + 1;
    }
    if (status == CGAM_OK) status = write_old_rows(&c, done, c.old->live);
    if (status == CGAM_OK)
        status = make_lists(&c, c.old->live, c.old->number != NULL, c.old_names != NULL);
    for (int64_t i = 0; status == CGAM_OK && i < c.old->live; i++) list_old(&c, i, i);
    if (status == CGAM_OK) status = keep_columns(&c, NULL, NULL);
    cgam_free(env, by);
    return end_change(&c, status == CGAM_OK ? cgam_pack_job_write(&c.job) : status);
}

/* Writes the rows that the mask keeps. */
static cgam_status drop_rows(change *c, const uint64_t *mask)
{
    int64_t kept = 0, from = 0;
    cgam_status status = make_lists(c, c->old->live, true, c->old_names != NULL);
    for (int64_t i = 0; status == CGAM_OK && i < c->old->live; i++) {
        int64_t number = old_number(c, i);
        if (!(mask[number / 64] >> number % 64 & 1)) {
            list_old(c, kept++, i);
            continue;
        }
        status = write_old_rows(c, from, i);
        from = i + 1;
    }
    if (status == CGAM_OK) status = write_old_rows(c, from, c->old->live);
    if (status == CGAM_OK && (kept == 0 || kept == c->old->live))
        status = cgam_fail(c->env, CGAM_E_ARG,
                           kept == 0 ? "%s: no memory would be left" : "%s: no memory to drop",
                           cgam_path_tail(c->job.path));
    if (status == CGAM_OK) status = keep_columns(c, mask, NULL);
    return status == CGAM_OK ? cgam_pack_job_write(&c->job) : status;
}

cgam_status cgam_pack_drop(cgam_env *env, const char *path, int64_t bits, const uint64_t *mask)
{
    change c;
    cgam_status status = begin_change(env, path, path, &c);
    if (status == CGAM_OK && bits != c.old->n)
        status =
            cgam_fail(env, CGAM_E_SHAPE, "the mask has %lld entries, the bank has %lld memories",
                      (long long)bits, (long long)c.old->n);
    return end_change(&c, status == CGAM_OK ? drop_rows(&c, mask) : status);
}

cgam_status cgam_pack_drop_by(cgam_env *env, const char *path, cgam_pack_choice which, void *user)
{
    change c;
    uint64_t *mask = NULL;
    cgam_status status = begin_change(env, path, path, &c);
    if (status == CGAM_OK) status = which(user, c.old_bank, &mask);
    if (status == CGAM_OK) status = drop_rows(&c, mask);
    cgam_mask_free(env, mask);
    return end_change(&c, status);
}
