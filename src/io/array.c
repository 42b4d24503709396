/* array.c: chooses the reader of a file and the array in it, and reads elements as doubles. */
#include "io/array.h"
#include "base/env.h"
#include "num/cpu/widen.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCK = 1 << 16 /* elements that a thread converts at a time */ };

static const cgam_format *const formats[] = {&cgam_format_npy, &cgam_format_npz,
                                             &cgam_format_safetensors, &cgam_format_csv, NULL};

/* The content decides if it is certain, then the ending: so a renamed .npy is read, and an invalid .npy is reported
 * by the reader that its ending selects. */
static cgam_status choose_format(cgam_env *env, const char *name, const cgam_file *file,
                                 const cgam_format **out)
{
    if (file->size == 0) return cgam_fail(env, CGAM_E_FORMAT, "%s: the file is empty", name);
    for (int i = 0; formats[i]; i++) {
        *out = formats[i];
        if ((*out)->recognise(file)) return CGAM_OK;
    }
    for (int i = 0; formats[i]; i++) {
        *out = formats[i];
        if (cgam_path_ends(name, (*out)->ending)) return CGAM_OK;
    }
    return cgam_fail(env, CGAM_E_UNSUPPORTED,
                     "%s: unknown format (expected .npy, .npz, .safetensors or .csv)", name);
}

/* Splits FILE:MEMBER. An existing path is used as it is; else the longest part before a colon that exists, since
 * members and files may both have colons in their names. `file` is a copy to free; *member points into path. */
static cgam_status split_member(cgam_env *env, const char *path, char **file, const char **member)
{
    *member = NULL;
    *file = cgam_strdup(env, path);
    if (!*file) return cgam_fail_nomem(env, "file name");
    if (cgam_file_exists(path)) return CGAM_OK;
    for (char *colon = strrchr(*file, ':'); colon; colon = strrchr(*file, ':')) {
        *colon = 0;
        if (cgam_file_exists(*file)) {
            *member = path + (colon - *file) + 1;
            return CGAM_OK;
        }
    }
    memcpy(*file, path, strlen(path) + 1);
    return CGAM_OK;
}

cgam_status cgam_array_open(cgam_env *env, const char *path, cgam_array *out)
{
    *out = (cgam_array){0};
    char *file_path;
    const char *member;
    cgam_status status = split_member(env, path, &file_path, &member);
    if (status != CGAM_OK) return status;

    cgam_file file = {0};
    const cgam_format *format = NULL;
    const char *name = cgam_file_name(file_path);
    status = cgam_file_map(env, file_path, &file);
    if (status == CGAM_OK) status = choose_format(env, name, &file, &format);
    if (status == CGAM_OK) status = format->open(env, name, &file, member, out);
    cgam_file_unmap(&file);
    cgam_free(env, file_path);
    return status;
}

cgam_status cgam_member_none(cgam_env *env, const char *name, const char *member)
{
    if (!member) return CGAM_OK;
    return cgam_fail(env, CGAM_E_NOT_FOUND,
                     "%s: no array '%.100s' (the file holds one unnamed "
                     "array)",
                     name, member);
}

/* Puts the first few names into text, separated by commas. */
static void list_names(const void *from, int64_t count, cgam_member_name name_at, char *text,
                       size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *name = name_at(from, i);
        if (!name) continue;
        bool fits = used + strlen(name) + sizeof ", , ..." < size;
        cgam_text_add(text, size, &used, "%s%s", used ? ", " : "", fits ? name : "...");
        if (!fits) break;
    }
}

cgam_status cgam_member_pick(cgam_env *env, const char *name, const char *member, const void *from,
                             int64_t count, cgam_member_name name_at, int64_t *out)
{
    int64_t arrays = 0, found = -1;
    for (int64_t i = 0; i < count; i++) {
        const char *candidate = name_at(from, i);
        if (!candidate) continue;
        arrays++;
        if (found < 0 && (!member || strcmp(member, candidate) == 0)) found = i;
    }
    *out = found;
    if (found >= 0 && (member || arrays == 1)) return CGAM_OK;

    char text[128];
    list_names(from, count, name_at, text, sizeof text);
    if (arrays == 0) return cgam_fail(env, CGAM_E_NOT_FOUND, "%s: the file holds no array", name);
    if (member)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no array '%.100s'; it holds %s", name, member,
                         text);
    return cgam_fail(env, CGAM_E_ARG, "%s: holds %" PRId64 " arrays (%s); name one as FILE:NAME",
                     name, arrays, text);
}

/* Well-formed UTF-8: no stray or missing continuation, no overlong form, no surrogate, at most 10ffff. */
static bool is_utf8(const char *text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (const uint8_t *p = (const uint8_t *)text; *p;) {
        int more = *p < 0x80 ? 0 : *p >> 5 == 6 ? 1 : *p >> 4 == 14 ? 2 : *p >> 3 == 30 ? 3 : -1;
        if (more < 0) return false;
        uint32_t code = more ? *p & (0x3fu >> more) : *p;
        for (int k = 0; k < more; k++) {
            if ((*++p & 0xc0) != 0x80) return false;
            code = code << 6 | (*p & 0x3f);
        }
        if (code < least[more] || code > 0x10ffff || code >> 11 == 0x1b) return false;
        p++;
    }
    return true;
}

cgam_status cgam_arrays_write(cgam_env *env, const char *path, int count,
                              const cgam_named_array *arrays)
{
    const char *name = cgam_path_tail(path);
    const cgam_format *format = NULL;
    for (int i = 0; formats[i]; i++)
        if (formats[i]->write && cgam_path_ends(path, formats[i]->ending)) format = formats[i];
    if (!format)
        return cgam_fail(env, CGAM_E_ARG, "%s: several arrays require .npz or .safetensors", name);
    if (count < 1) return cgam_fail(env, CGAM_E_ARG, "%s: %d arrays to write", name, count);

    cgam_layout *layouts = cgam_alloc(env, (size_t)count, sizeof *layouts);
    if (!layouts) return cgam_fail_nomem(env, name);
    cgam_status status = CGAM_OK;
    for (int i = 0; i < count && status == CGAM_OK; i++) {
        const cgam_named_array *a = &arrays[i];
        status = cgam_layout_make(env, name, a->dtype, a->ndim, a->shape, &layouts[i]);
        for (int j = 0; j < i && status == CGAM_OK; j++)
            if (strcmp(a->name, arrays[j].name) == 0)
                status = cgam_fail(env, CGAM_E_ARG, "%s: two arrays have the name '%.100s'", name,
                                   a->name);
        if (status == CGAM_OK && !*a->name)
            status = cgam_fail(env, CGAM_E_ARG, "%s: array %d has no name", name, i);
        if (status == CGAM_OK && !is_utf8(a->name))
            status = cgam_fail(env, CGAM_E_ARG, "%s: the name of array %d is not UTF-8", name, i);
    }
    if (status == CGAM_OK) status = format->write(env, path, count, arrays, layouts);
    cgam_free(env, layouts);
    return status;
}

/* Converts in blocks; keeps the lowest index of a value that is not finite. */
typedef struct reading {
    const cgam_array *array;
    double *out;
    _Atomic int64_t bad;
} reading;

/* Not finite, or an integer that was rounded. */
static bool is_bad(const reading *r, int64_t i)
{
    if (r->array->dtype != CGAM_I64) return !isfinite(r->out[i]);
    int64_t whole = ((const int64_t *)r->array->data)[i];
    return !cgam_fits(whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole, 53);
}

static cgam_status read_block(void *arg, int64_t block)
{
    reading *r = arg;
    int64_t begin = block * BLOCK;
    int64_t count = r->array->size - begin < BLOCK ? r->array->size - begin : BLOCK;
    size_t item = cgam_dtype_size(r->array->dtype);
    cgam_widen(r->array->dtype, (const uint8_t *)r->array->data + (size_t)begin * item, count,
               r->out + begin);
    /* x - x is 0 for a number and NaN for the others, so one sum checks the whole block. */
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += r->out[begin + i] - r->out[begin + i];
    if (sum == 0 && r->array->dtype != CGAM_I64) return CGAM_OK;
    for (int64_t i = 0; i < count; i++) {
        if (!is_bad(r, begin + i)) continue;
        int64_t seen = atomic_load(&r->bad);
        while (begin + i < seen && !atomic_compare_exchange_weak(&r->bad, &seen, begin + i)) {
        }
        break;
    }
    return CGAM_OK;
}

cgam_status cgam_array_read_f64(cgam_env *env, const cgam_array *array, const char *name,
                                double *out)
{
    reading r = {.array = array, .out = out};
    atomic_init(&r.bad, array->size);
    cgam_status status = cgam_parallel(env, (array->size + BLOCK - 1) / BLOCK, read_block, &r);
    if (status != CGAM_OK) return status;
    int64_t bad = atomic_load(&r.bad);
    if (bad == array->size) return CGAM_OK;
    char whole[64];
    const char *what = isnan(out[bad]) ? "nan" : out[bad] > 0 ? "inf" : "-inf";
    if (array->dtype == CGAM_I64) {
        snprintf(whole, sizeof whole, "%" PRId64 ", which f64 cannot hold exactly,",
                 ((const int64_t *)array->data)[bad]);
        what = whole;
    }
    return cgam_fail_element(env, cgam_file_name(name), array->ndim, array->shape, bad, what);
}
