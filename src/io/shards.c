/* shards.c: see shards.h. */
#include "io/shards.h"

#include "base/env.h"
#include "io/file.h"
#include "io/json.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

void cgam_shards_close(cgam_env *env, cgam_shards *shards)
{
    for (int64_t i = 0; i < shards->count; i++) cgam_array_close(env, &shards->arrays[i]);
    cgam_free(env, shards->arrays);
    *shards = (cgam_shards){0};
}

/* Opens one more array; `arrays` must have space for it. */
static cgam_status add_array(cgam_env *env, const char *path, cgam_shards *out)
{
    cgam_array *a = &out->arrays[out->count];
    cgam_status status = cgam_array_open(env, path, a);
    if (status != CGAM_OK) return status;
    out->count++;
    if (a->ndim != 2)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: a bank has 2 dimensions, this array has %d",
                         cgam_file_name(path), a->ndim);
    status = cgam_array_reals(env, path, a);
    if (status != CGAM_OK) return status;
    if (out->count > 1 && a->shape[1] != out->d)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: d = %lld, the arrays before it have d = %lld",
                         cgam_path_tail(path), (long long)a->shape[1], (long long)out->d);
    if (__builtin_add_overflow(out->rows, a->shape[0], &out->rows))
        return cgam_fail(env, CGAM_E_SHAPE, "%s: too many rows", cgam_path_tail(path));
    if (out->count == 1) out->dtype = a->dtype;
    out->mixed |= a->dtype != out->dtype;
    out->d = a->shape[1];
    return CGAM_OK;
}

static cgam_status alloc_arrays(cgam_env *env, size_t count, cgam_shards *out)
{
    out->arrays = cgam_zalloc(env, count, sizeof *out->arrays);
    return out->arrays ? CGAM_OK : cgam_fail_nomem(env, "arrays of a bank");
}

/* ---- The order of names ------------------------------------------------------------------------- */
/* Counts the digits that begin here, without leading zeros. */
static size_t count_digits(const char **at)
{
    size_t count = 0;
    while (**at == '0') ++*at;
    while (isdigit((unsigned char)(*at)[count])) count++;
    return count;
}

/* Like strcmp, with numbers compared by value; names that differ only in leading zeros are compared by bytes. */
static int compare_names(const char *a, const char *b)
{
    const char *x = a, *y = b;
    while (*x && *y) {
        if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
            size_t m = count_digits(&x), n = count_digits(&y);
            int order = m != n ? (m < n ? -1 : 1) : strncmp(x, y, m);
            if (order != 0) return order;
            x += m;
            y += n;
        } else if (*x != *y) {
            return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
        } else {
            x++;
            y++;
        }
    }
    return *x || *y ? (*x ? 1 : -1) : strcmp(a, b);
}

static int compare_entries(const void *a, const void *b)
{
    return compare_names(*(const char *const *)a, *(const char *const *)b);
}

/* ---- An index ----------------------------------------------------------------------------------- */
/* Adds its array `member`, in a file beside it. */
static cgam_status add_listed(cgam_env *env, const char *index, const json_t *file,
                              const char *member, cgam_shards *out)
{
    char path[CGAM_PATH_ROOM];
    const char *slash = strrchr(index, '/'), *name = json_string_value(file);
    int folder = slash ? (int)(slash - index) + 1 : 0;
    if (!name)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: '%.100s' is not in any file",
                         cgam_path_tail(index), member);
    if (strchr(name, '/') || !cgam_path_ends(name, ".safetensors"))
        return cgam_fail(env, CGAM_E_FORMAT, "%s: '%.60s' is not a .safetensors file beside it",
                         cgam_path_tail(index), name);
    if (snprintf(path, sizeof path, "%.*s%s:%s", folder, index, name, member) >= (int)sizeof path)
        return cgam_fail(env, CGAM_E_ARG, "%s: a path is too long", cgam_path_tail(index));
    return add_array(env, path, out);
}

static cgam_status add_all(cgam_env *env, const char *index, json_t *map, cgam_shards *out)
{
    size_t count = json_object_size(map), k = 0;
    const char **names = cgam_alloc(env, count, sizeof *names);
    cgam_status status = names ? alloc_arrays(env, count, out) : cgam_fail_nomem(env, "an index");
    for (void *at = json_object_iter(map); names && at; at = json_object_iter_next(map, at))
        names[k++] = json_object_iter_key(at);
    if (names) qsort(names, count, sizeof *names, compare_entries);
    for (k = 0; k < count && status == CGAM_OK; k++)
        status = add_listed(env, index, json_object_get(map, names[k]), names[k], out);
    cgam_free(env, names);
    return status;
}

static cgam_status open_index(cgam_env *env, const char *path, const char *member, cgam_shards *out)
{
    json_t *doc;
    cgam_status status = cgam_json_load(env, path, &doc);
    if (status != CGAM_OK) return status;
    json_t *map = json_object_get(doc, "weight_map");
    if (json_object_size(map) == 0) {
        status = cgam_fail(env, CGAM_E_FORMAT, "%s: no 'weight_map' with arrays in it",
                           cgam_path_tail(path));
    } else if (!member) {
        status = add_all(env, path, map, out);
    } else if (!json_object_get(map, member)) {
        status =
            cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no array '%.100s'", cgam_path_tail(path), member);
    } else {
        status = alloc_arrays(env, 1, out);
        if (status == CGAM_OK)
            status = add_listed(env, path, json_object_get(map, member), member, out);
    }
    json_decref(doc);
    return status;
}

/* Splits INDEX.json:MEMBER into index file and member; returns false if the path is not an index. */
static bool is_index(const char *path, char file[CGAM_PATH_ROOM], const char **member)
{
    const char *end = strstr(path, ".json");
    *member = NULL;
    while (end && end[5] && end[5] != ':') end = strstr(end + 1, ".json");
    if (!end || (size_t)(end - path) + 6 > CGAM_PATH_ROOM) return false;
    memcpy(file, path, (size_t)(end - path) + 5);
    file[end - path + 5] = 0;
    if (end[5] == ':') *member = end + 6;
    return true;
}

/* ---- A pattern ---------------------------------------------------------------------------------- */
static bool is_pattern(const char *path)
{
    return strpbrk(path, "*?[") && !cgam_file_exists(path) && !cgam_file_barred(path);
}

/* Matches PATTERN, or PATTERN:MEMBER if the whole matches nothing; *member is NULL or ":MEMBER". */
static cgam_status match_pattern(cgam_env *env, const char *path, glob_t *found,
                                 const char **member)
{
    char pattern[CGAM_PATH_ROOM];
    int code = glob(path, GLOB_NOSORT, NULL, found);
    *member = NULL;
    const char *colon = strrchr(path, ':');
    if (code == GLOB_NOMATCH && colon && (size_t)(colon - path) < sizeof pattern) {
        memcpy(pattern, path, (size_t)(colon - path));
        pattern[colon - path] = 0;
        globfree(found);
        code = glob(pattern, GLOB_NOSORT, NULL, found);
        *member = colon;
    }
    if (code == GLOB_NOSPACE) return cgam_fail_nomem(env, cgam_path_tail(path));
    if (code != 0)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no matching file", cgam_path_tail(path));
    qsort(found->gl_pathv, found->gl_pathc, sizeof *found->gl_pathv, compare_entries);
    return CGAM_OK;
}

static cgam_status open_pattern(cgam_env *env, const char *path, cgam_shards *out)
{
    glob_t found = {0};
    const char *member;
    char one[CGAM_PATH_ROOM];
    cgam_status status = match_pattern(env, path, &found, &member);
    if (status == CGAM_OK) status = alloc_arrays(env, found.gl_pathc, out);
    for (size_t k = 0; k < found.gl_pathc && status == CGAM_OK; k++) {
        if (snprintf(one, sizeof one, "%s%s", found.gl_pathv[k], member ? member : "") >=
            (int)sizeof one)
            status = cgam_fail(env, CGAM_E_ARG, "%s: a path is too long", cgam_path_tail(path));
        else status = add_array(env, one, out);
    }
    globfree(&found);
    return status;
}

/* ---- All of them -------------------------------------------------------------------------------- */
cgam_status cgam_shards_open(cgam_env *env, const char *path, cgam_shards *out)
{
    char file[CGAM_PATH_ROOM];
    const char *member;
    cgam_status status;
    *out = (cgam_shards){0};
    if (is_index(path, file, &member)) {
        status = open_index(env, file, member, out);
    } else if (is_pattern(path)) {
        status = open_pattern(env, path, out);
    } else {
        status = alloc_arrays(env, 1, out);
        if (status == CGAM_OK) status = add_array(env, path, out);
    }
    if (status != CGAM_OK) cgam_shards_close(env, out);
    return status;
}

const void *cgam_shards_row(const cgam_shards *shards, int64_t i, int64_t *array)
{
    int64_t k = 0;
    for (; i >= shards->arrays[k].shape[0]; k++) i -= shards->arrays[k].shape[0];
    *array = k;
    const cgam_array *a = &shards->arrays[k];
    return (const char *)a->data + (size_t)(i * shards->d) * cgam_dtype_size(a->dtype);
}

void cgam_shards_copy(const cgam_shards *shards, int64_t begin, int64_t end, void *to)
{
    size_t row = (size_t)shards->d * cgam_dtype_size(shards->dtype);
    char *at = to;
    int64_t first = 0;
    for (int64_t k = 0; k < shards->count; k++) {
        const cgam_array *a = &shards->arrays[k];
        int64_t from = begin > first ? begin - first : 0;
        int64_t until = end - first < a->shape[0] ? end - first : a->shape[0];
        if (from < until) {
            memcpy(at, (const char *)a->data + (size_t)from * row, (size_t)(until - from) * row);
            at += (size_t)(until - from) * row;
        }
        first += a->shape[0];
    }
}
