/* json.c: strict reading, trees that detect failed allocations, and numbers that are written and read back
 * exactly. */
#include "io/json.h"

#include "base/env.h"
#include "io/file.h"

#include <float.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 28 }; /* bytes; the tree in memory is some ten times larger */

cgam_status cgam_json_parse(cgam_env *env, const char *name, const void *bytes, size_t size,
                            json_t **out)
{
    *out = NULL;
    if (size > FILE_MAX)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s: %zu bytes of JSON (at most %d)", name, size,
                         FILE_MAX);
    json_error_t error;
    bool no_memory;
    *out = cgam_json_tree(bytes, size, &error, &no_memory);
    if (*out) return CGAM_OK;
    if (no_memory) return cgam_fail_nomem(env, name);
    return cgam_fail(env, CGAM_E_FORMAT, "%s:%d:%d: %s", name, error.line, error.column,
                     error.text);
}

cgam_status cgam_json_load(cgam_env *env, const char *path, json_t **out)
{
    *out = NULL;
    cgam_file file;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status != CGAM_OK) return status;
    const char *name = cgam_file_name(path);
    if (file.size == 0) status = cgam_fail(env, CGAM_E_FORMAT, "%s: the file is empty", name);
    else status = cgam_json_parse(env, name, file.bytes, file.size, out);
    cgam_file_unmap(&file);
    return status;
}

/* ---- Documents: jansson's *_set_new calls take the reference even when they fail, so nothing leaks.
 * An array that could not grow looks like a shorter one. So all of jansson's allocations are watched. */
static _Thread_local bool ran_short;
static json_malloc_t plain_malloc;
static json_free_t plain_free;

/* Of all documents; frees of blocks allocated before us may make it negative. */
static _Atomic int64_t bytes_used;
static _Atomic int64_t bytes_limit = INT64_MAX;

static void *watched_malloc(size_t size)
{
    void *block = bytes_used < bytes_limit ? plain_malloc(size) : NULL;
    ran_short |= !block;
    if (block && plain_malloc == malloc) bytes_used += (int64_t)malloc_usable_size(block);
    return block;
}

static void watched_free(void *block)
{
    if (block && plain_malloc == malloc) bytes_used -= (int64_t)malloc_usable_size(block);
    plain_free(block);
}

void cgam_json_limit(size_t bytes) { bytes_limit = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX; }

__attribute__((constructor)) static void watch_allocations(void)
{
    json_get_alloc_funcs(&plain_malloc, &plain_free);
    json_set_alloc_funcs(watched_malloc, watched_free);
}

/* Keeps functions that the program has set itself since. */
__attribute__((destructor)) static void unwatch_allocations(void)
{
    json_malloc_t now;
    json_free_t back;
    json_get_alloc_funcs(&now, &back);
    if (now == watched_malloc) json_set_alloc_funcs(plain_malloc, plain_free);
}

bool cgam_json_ran_short(void)
{
    bool was = ran_short;
    ran_short = false;
    return was;
}

cgam_status cgam_json_nomem(cgam_env *env, const char *what)
{
    ran_short = false;
    return cgam_fail_nomem(env, what);
}

json_t *cgam_json_tree(const void *bytes, size_t size, json_error_t *error, bool *no_memory)
{
    bool before = cgam_json_ran_short(); /* of a document that is being built */
    json_t *tree = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, error);
    *no_memory = cgam_json_ran_short();
    ran_short = before;
    return tree;
}

void cgam_json_put(json_t *object, const char *name, json_t *value)
{
    ran_short |= json_object_set_new(object, name, value) != 0;
}

static void print_digits(double value, int digits, char *text)
{
#ifdef __GLIBC__ /* printf, as it is hardened, reads its format twice */
    static const char *const format[] = {"%.15g", "%.16g", "%.17g"};
    strfromd(text, CGAM_REAL_TEXT, format[digits - 15], value);
#else
    snprintf(text, CGAM_REAL_TEXT, "%.*g", digits, value);
#endif
}

/* The 16th and 17th digit of a text of 17 digits, as one number; %g leaves out zeros at the end. */
static int late_digits(const char *text)
{
    int seen = 0, late = 0;
    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (seen || *text != '0'))
            late = ++seen > 15 ? 10 * late + (*text - '0') : 0;
    for (; seen < 17; seen++) late = 10 * late;
    return late;
}

/* The shortest of 15, 16 and 17 digits. What fifteen digits tell apart lies within half a unit in the
 * last place, 1.2e-16 of a normal value: within 11 of the seventeenth digit. Few values need that try. */
static void print_shortest(double value, char *text)
{
    char tried[CGAM_REAL_TEXT];
    print_digits(value, 17, text);
    int late = late_digits(text);
    bool few = late <= 11 || late >= 89 || fabs(value) < DBL_MIN;
    for (int digits = few ? 15 : 16; digits < 17; digits++) {
        print_digits(value, digits, tried);
        if (strtod(tried, NULL) != value) continue;
        memcpy(text, tried, sizeof tried);
        return;
    }
}

/* Both conversions follow the program's locale: the decimal point may be a comma or even several bytes. The round
 * trip is tested before that is corrected. */
const char *cgam_real_text(double value, char *text)
{
    if (fabs(value) < 1e15 && value == (double)(int64_t)value && !(value == 0 && signbit(value))) {
        snprintf(text, CGAM_REAL_TEXT, "%lld.0",
                 (long long)value); /* the commonest need no search */
        return text;
    }
    print_shortest(value, text);
    char *to = text;
    bool real = false, point = false;
    for (const char *from = text; *from; from++) {
        bool plain = strchr("0123456789+-e", *from) != NULL;
        real = real || !plain || *from == 'e';
        if (plain) *to++ = *from;
        else if (!point) *to++ = '.';
        point = point || !plain;
    }
    memcpy(to, real ? "" : ".0", real ? 1 : 3);
    return text;
}

char *cgam_json_line(const json_t *value)
{
    bool before = cgam_json_ran_short();
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (ran_short) {
        free(text);
        text = NULL;
    }
    ran_short |= before;
    if (text && plain_malloc == malloc) /* free() will not tell us */
        bytes_used -= (int64_t)malloc_usable_size(text);
    return text;
}
