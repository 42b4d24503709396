/* safetensors.c: reads .safetensors.
 *
 *   8 bytes  length n of the header, little-endian
 *   n bytes  JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *                   "__metadata__": {"key": "text", ...}}
 *   data     offsets count from here
 *
 * Source: the format's own description (huggingface/safetensors). As there, the tensors must cover
 * the data without holes or overlaps; unlike there, an unknown key inside a tensor is rejected.
 */
#include "io/safetensors.h"

#include "base/env.h"
#include "io/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8, HEADER_MAX = 100000000 /* the format's own limit */, LABEL_MAX = 384 };

const cgam_tensor_type cgam_tensor_types[] = {
    {"F64", "<f8", CGAM_F64, 8, 0},
    {"F32", "<f4", CGAM_F32, 4, 0},
    {"F16", "<f2", CGAM_F16, 2, 0},
    {"BF16", "", CGAM_BF16, 2, 0},
    {"I64", "<i8", CGAM_I64, 8, 0},
    {"I32", "<i4", CGAM_I32, 4, 0},
    {"I16", "<i2", CGAM_F32, 2, 'i'},
    {"I8", "|i1", CGAM_F32, 1, 'i'},
    {"U64", "<u8", CGAM_F64, 8, 'u'},
    {"U32", "<u4", CGAM_F64, 4, 'u'},
    {"U16", "<u2", CGAM_F32, 2, 'u'},
    {"U8", "|u1", CGAM_F32, 1, 'u'},
    {"BOOL", "|b1", CGAM_F32, 1, 'b'},
    {"F8_E4M3", "", -1, 1, 0},
    {"F8_E5M2", "", -1, 1, 0},
    {"F8_E8M0", "", -1, 1, 0},
    {"C64", "", -1, 8, 0},
    {NULL, "", -1, 1, 0},
};

const char *cgam_tensor_type_name(cgam_dtype dtype)
{
    const cgam_tensor_type *type = cgam_tensor_types;
    while (type->dtype != (int)dtype || type->whole) type++;
    return type->name;
}

static bool read_length(const uint8_t *bytes, size_t size, uint64_t *length)
{
    if (size < LENGTH) return false;
    *length = 0;
    for (int i = LENGTH; i-- > 0;) *length = *length << 8 | bytes[i];
    return true;
}

static bool is_safetensors(const cgam_file *file)
{
    uint64_t length;
    return read_length(file->bytes, file->size, &length) && length >= 2 && length <= HEADER_MAX &&
           length <= file->size - LENGTH && file->bytes[LENGTH] == '{';
}

/* ---- one tensor: `label` is FILE: tensor 'NAME' -------------------------------------------- */

static cgam_status fail_tensor(cgam_env *env, const char *label, const char *why)
{
    return cgam_fail(env, CGAM_E_FORMAT, "%s: %s", label, why);
}

static cgam_status parse_shape(cgam_env *env, const char *label, json_t *shape, cgam_tensor *out)
{
    if (!json_is_array(shape)) return fail_tensor(env, label, "'shape' is not an array");
    size_t ndim = json_array_size(shape), k;
    if (ndim > CGAM_ARRAY_DIMS)
        return cgam_fail(env, CGAM_E_UNSUPPORTED, "%s: %zu dimensions (at most %d)", label, ndim,
                         CGAM_ARRAY_DIMS);
    out->layout.ndim = (int)ndim;
    json_t *n;
    json_array_foreach(shape, k, n)
    {
        if (!json_is_integer(n))
            return fail_tensor(env, label, "'shape' is not a list of integers");
        out->layout.shape[k] = json_integer_value(n);
    }
    return CGAM_OK;
}

static cgam_status parse_offsets(cgam_env *env, const char *label, json_t *offsets, uint64_t data,
                                 cgam_tensor *out)
{
    json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return fail_tensor(env, label, "'data_offsets' is not [begin, end]");
    out->begin = (uint64_t)json_integer_value(begin);
    out->end = (uint64_t)json_integer_value(end);
    if (out->end > data)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: truncated: it ends at byte %" PRIu64
                         " of the data, the file has %" PRIu64,
                         label, out->end, data);
    return CGAM_OK;
}

static cgam_status parse_tensor(cgam_env *env, const char *name, json_t *entry, uint64_t data,
                                cgam_tensor *out)
{
    char label[LABEL_MAX];
    snprintf(label, sizeof label, "%s: tensor '%.100s'", name, out->name);
    if (!json_is_object(entry)) return fail_tensor(env, label, "not an object");
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    if (!type) return fail_tensor(env, label, "'dtype' is not a string");
    cgam_status status = parse_shape(env, label, json_object_get(entry, "shape"), out);
    if (status == CGAM_OK)
        status = parse_offsets(env, label, json_object_get(entry, "data_offsets"), data, out);
    if (status != CGAM_OK) return status;
    if (json_object_size(entry) != 3)
        return fail_tensor(env, label, "keys beside dtype, shape and data_offsets");

    const cgam_tensor_type *known = cgam_tensor_types;
    while (known->name && strcmp(known->name, type) != 0) known++;
    out->layout.dtype = known->dtype;
    out->layout.whole = known->whole;
    out->layout.item = known->item;
    snprintf(out->layout.type, sizeof out->layout.type, "%s", type);
    status = cgam_layout_measure(env, label, &out->layout, (size_t)known->item);
    if (status != CGAM_OK) return status;
    uint64_t bytes = out->end - out->begin;
    if (known->name && out->layout.bytes != bytes) {
        char text[CGAM_SHAPE_TEXT];
        cgam_shape_text(out->layout.ndim, out->layout.shape, text);
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: %s of %s needs %" PRIu64 " bytes, data_offsets give %" PRIu64, label,
                         text, known->name, out->layout.bytes, bytes);
    }
    return CGAM_OK;
}

/* ---- the table ----------------------------------------------------------------------------- */

static int compare_places(const void *left, const void *right)
{
    const cgam_tensor *a = *(cgam_tensor *const *)left, *b = *(cgam_tensor *const *)right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Sorted by place, each tensor begins where the one before ends, and the last ends the file. */
static cgam_status check_cover(cgam_env *env, const char *name, const cgam_tensor_table *table,
                               uint64_t data)
{
    cgam_tensor **order = cgam_alloc(env, (size_t)table->count, sizeof *order);
    if (!order) return cgam_fail_nomem(env, name);
    for (int64_t i = 0; i < table->count; i++) order[i] = &table->tensors[i];
    qsort(order, (size_t)table->count, sizeof *order, compare_places);
    uint64_t end = 0;
    cgam_status status = CGAM_OK;
    for (int64_t i = 0; i < table->count && status == CGAM_OK; i++) {
        if (order[i]->begin != end)
            status = cgam_fail(env, CGAM_E_FORMAT,
                               "%s: tensor '%.100s' begins at byte %" PRIu64
                               " of the data, the one before ends at %" PRIu64 ": %s",
                               name, order[i]->name, order[i]->begin, end,
                               order[i]->begin < end ? "an overlap" : "a gap");
        end = order[i]->end;
    }
    cgam_free(env, order);
    if (status == CGAM_OK && end != data)
        status = cgam_fail(env, CGAM_E_FORMAT,
                           "%s: too long: the tensors end at byte %" PRIu64
                           " of the data, the file has %" PRIu64,
                           name, end, data);
    return status;
}

static cgam_status check_metadata(cgam_env *env, const char *name, json_t *metadata)
{
    const char *key;
    json_t *value;
    bool texts = json_is_object(metadata);
    json_object_foreach(metadata, key, value) texts = texts && json_is_string(value);
    if (texts) return CGAM_OK;
    return cgam_fail(env, CGAM_E_FORMAT, "%s: '__metadata__' is not an object of strings", name);
}

static cgam_status read_header(cgam_env *env, const char *name, const uint8_t *bytes, size_t size,
                               cgam_tensor_table *out)
{
    uint64_t length;
    if (!read_length(bytes, size, &length))
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: truncated: the header starts at byte 8, the file has %zu bytes", name,
                         size);
    if (length > HEADER_MAX)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: a header of %" PRIu64 " bytes; the format allows %d", name, length,
                         HEADER_MAX);
    if (length > size - LENGTH)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: truncated: the header has %" PRIu64
                         " bytes from byte 8, the file has %zu",
                         name, length, size);
    if (length == 0 || bytes[LENGTH] != '{')
        return cgam_fail(env, CGAM_E_FORMAT, "%s: the header at byte 8 is not a JSON object", name);
    json_error_t error;
    out->data = LENGTH + length;
    bool no_memory;
    out->header = cgam_json_tree(bytes + LENGTH, (size_t)length, &error, &no_memory);
    if (out->header) return CGAM_OK;
    if (no_memory) return cgam_fail_nomem(env, name);
    return cgam_fail(env, CGAM_E_FORMAT, "%s: header, byte %d: %s", name, LENGTH + error.position,
                     error.text);
}

cgam_status cgam_tensor_table_parse(cgam_env *env, const char *name, const uint8_t *bytes,
                                    size_t size, cgam_tensor_table *out)
{
    *out = (cgam_tensor_table){0};
    cgam_status status = read_header(env, name, bytes, size, out);
    if (status != CGAM_OK) return status;

    uint64_t data = size - out->data;
    out->tensors = cgam_zalloc(env, json_object_size(out->header), sizeof *out->tensors);
    if (!out->tensors) status = cgam_fail_nomem(env, name);
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)out->header, key, entry)
    {
        if (status != CGAM_OK) break;
        if (strcmp(key, "__metadata__") == 0) {
            status = check_metadata(env, name, entry);
        } else {
            cgam_tensor *tensor = &out->tensors[out->count++];
            tensor->name = key;
            status = parse_tensor(env, name, entry, data, tensor);
        }
    }
    if (status == CGAM_OK) status = check_cover(env, name, out, data);
    if (status != CGAM_OK) cgam_tensor_table_free(env, out);
    return status;
}

void cgam_tensor_table_free(cgam_env *env, cgam_tensor_table *table)
{
    if (!table) return;
    json_decref(table->header);
    cgam_free(env, table->tensors);
    *table = (cgam_tensor_table){0};
}

const char *cgam_tensor_table_note(const cgam_tensor_table *table, const char *key)
{
    return json_string_value(
        json_object_get(json_object_get((json_t *)table->header, "__metadata__"), key));
}

const cgam_tensor *cgam_tensor_table_find(const cgam_tensor_table *table, const char *name)
{
    for (int64_t i = 0; i < table->count; i++)
        if (strcmp(table->tensors[i].name, name) == 0) return &table->tensors[i];
    return NULL;
}

/* ---- the reader ---------------------------------------------------------------------------- */

static const char *name_at(const void *from, int64_t i)
{
    return ((const cgam_tensor_table *)from)->tensors[i].name;
}

static cgam_status open_safetensors(cgam_env *env, const char *name, cgam_file *file,
                                    const char *member, cgam_array *out)
{
    cgam_tensor_table table;
    cgam_status status = cgam_tensor_table_parse(env, name, file->bytes, file->size, &table);
    if (status != CGAM_OK) return status;
    int64_t i;
    status = cgam_member_pick(env, name, member, &table, table.count, name_at, &i);
    if (status == CGAM_OK) {
        const cgam_tensor *t = &table.tensors[i];
        if (t->layout.dtype < 0)
            status = cgam_fail(env, CGAM_E_UNSUPPORTED,
                               "%s: tensor '%.100s': unsupported type %s (supported: F64, F32, "
                               "F16, BF16, integers, BOOL)",
                               name, t->name, t->layout.type);
        else
            status = cgam_array_place(env, name, &t->layout, file,
                                      file->bytes + table.data + t->begin, out);
    }
    cgam_tensor_table_free(env, &table);
    return status;
}

const cgam_format cgam_format_safetensors = {.ending = ".safetensors",
                                             .recognise = is_safetensors,
                                             .open = open_safetensors,
                                             .write = cgam_safetensors_write};
