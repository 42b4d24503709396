/* gguf.c: reads the header of a GGUF file.
 *
 *   "GGUF", u32 version, u64 tensors, u64 keys
 *   keys:     text name, u32 type, value        (a text is u64 length and bytes)
 *   tensors:  text name, u32 ndim, u64 shape[ndim], u32 type, u64 offset
 *   data:     from the next multiple of the alignment, 32 unless general.alignment says otherwise
 *
 * Source: the format's own description (ggml-org/ggml, docs/gguf.md). */
#include "lm/gguf.h"

#include "base/env.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 32 };

/* Bytes of a value by its type; 0: a text or an array. */
static const int value_bytes[CGAM_GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* ggml's types: numbers and bytes of a block. Missing types were withdrawn or are newer. */
static const struct {
    uint16_t numbers, bytes;
} blocks[] = {
    [0] = {1, 4},      [1] = {1, 2},      [2] = {32, 18},    [3] = {32, 20},    [6] = {32, 22},
    [7] = {32, 24},    [8] = {32, 34},    [9] = {32, 36},    [10] = {256, 84},  [11] = {256, 110},
    [12] = {256, 144}, [13] = {256, 176}, [14] = {256, 210}, [15] = {256, 292}, [16] = {256, 66},
    [17] = {256, 74},  [18] = {256, 98},  [19] = {256, 50},  [20] = {32, 18},   [21] = {256, 110},
    [22] = {256, 82},  [23] = {256, 136}, [24] = {1, 1},     [25] = {1, 2},     [26] = {1, 4},
    [27] = {1, 8},     [28] = {1, 8},     [29] = {256, 56},  [30] = {1, 2},     [34] = {256, 54},
    [35] = {256, 66},  [39] = {32, 17},   [40] = {64, 36},   [41] = {128, 18},  [42] = {64, 18}};

int cgam_gguf_block(uint32_t type, int *bytes)
{
    bool known = type < sizeof blocks / sizeof *blocks;
    *bytes = known ? blocks[type].bytes : 0;
    return known ? blocks[type].numbers : 0;
}

typedef struct reader {
    cgam_env *env;
    const char *name;
    const uint8_t *bytes;
    size_t size, at;
    uint64_t align;
    cgam_gguf *out;
} reader;

static cgam_status fail_at(const reader *r, const char *why)
{
    return cgam_fail(r->env, CGAM_E_FORMAT, "%s: byte %zu: %s", r->name, r->at, why);
}

static cgam_status read_bytes(reader *r, void *to, size_t bytes)
{
    if (r->size - r->at < bytes) return fail_at(r, "truncated: the header does not end");
    memcpy(to, r->bytes + r->at, bytes);
    r->at += bytes;
    return CGAM_OK;
}

static cgam_status read_text(reader *r, cgam_gguf_text *text)
{
    uint64_t length;
    cgam_status status = read_bytes(r, &length, sizeof length);
    if (status != CGAM_OK) return status;
    if (length > r->size - r->at)
        return fail_at(r, "truncated: a string extends past the end "
                          "of the file");
    *text = (cgam_gguf_text){(const char *)r->bytes + r->at, (size_t)length};
    r->at += (size_t)length;
    return CGAM_OK;
}

bool cgam_gguf_is(cgam_gguf_text text, const char *word)
{
    return strlen(word) == text.length && memcmp(text.at, word, text.length) == 0;
}

bool cgam_gguf_clean(cgam_gguf_text text)
{
    if (text.length > CGAM_GGUF_NAME) return false;
    for (size_t i = 0; i < text.length; i++)
        if (!isgraph((unsigned char)text.at[i])) return false;
    return true;
}

cgam_gguf_text cgam_gguf_next(const uint8_t **at)
{
    uint64_t length;
    memcpy(&length, *at, sizeof length);
    cgam_gguf_text text = {(const char *)*at + sizeof length, (size_t)length};
    *at += sizeof length + length;
    return text;
}

/* ---- Keys --------------------------------------------------------------------------------- */

static cgam_status read_value(reader *r, cgam_gguf_value *v)
{
    uint32_t kind;
    cgam_gguf_text text;
    cgam_status status = read_bytes(r, &kind, sizeof kind);
    v->count = 1;
    v->array = status == CGAM_OK && kind == CGAM_GGUF_ARRAY;
    if (v->array) {
        status = read_bytes(r, &kind, sizeof kind);
        if (status == CGAM_OK) status = read_bytes(r, &v->count, sizeof v->count);
    }
    if (status != CGAM_OK) return status;
    if (kind >= CGAM_GGUF_KINDS || kind == CGAM_GGUF_ARRAY)
        return fail_at(r, v->array ? "an array of unknown type" : "a value of unknown type");
    v->kind = (cgam_gguf_kind)kind;
    v->items = r->bytes + r->at;
    for (uint64_t i = 0; kind == CGAM_GGUF_TEXT && i < v->count && status == CGAM_OK; i++)
        status = read_text(r, &text);
    if (status != CGAM_OK || kind == CGAM_GGUF_TEXT) return status;
    if (v->count > (r->size - r->at) / (uint64_t)value_bytes[kind])
        return fail_at(r, v->array ? "truncated: an array extends past the end of the file"
                                   : "truncated: the header does not end");
    r->at += (size_t)v->count * (size_t)value_bytes[kind];
    return CGAM_OK;
}

double cgam_gguf_number(const cgam_gguf_value *v, uint64_t i)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f32;
        uint64_t u64;
        int64_t i64;
        double f64;
    } x = {0};
    size_t bytes = (size_t)value_bytes[v->kind];
    if (bytes > 0) memcpy(&x, v->items + i * bytes, bytes);
    switch (v->kind) {
    case CGAM_GGUF_U8:
    case CGAM_GGUF_BOOL: return x.u8;
    case CGAM_GGUF_I8: return x.i8;
    case CGAM_GGUF_U16: return x.u16;
    case CGAM_GGUF_I16: return x.i16;
    case CGAM_GGUF_U32: return x.u32;
    case CGAM_GGUF_I32: return x.i32;
    case CGAM_GGUF_F32: return (double)x.f32;
    case CGAM_GGUF_U64: return (double)x.u64;
    case CGAM_GGUF_I64: return (double)x.i64;
    case CGAM_GGUF_F64: return x.f64;
    default: return (double)NAN;
    }
}

static int compare_texts(cgam_gguf_text a, cgam_gguf_text b)
{
    int order = memcmp(a.at, b.at, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_keys(const void *a, const void *b)
{
    return compare_texts(((const cgam_gguf_value *)a)->name, ((const cgam_gguf_value *)b)->name);
}

const cgam_gguf_value *cgam_gguf_find(const cgam_gguf *g, const char *name)
{
    const cgam_gguf_value wanted = {.name = {name, strlen(name)}};
    return g->values_count > 0
               ? bsearch(&wanted, g->values, (size_t)g->values_count, sizeof wanted, compare_keys)
               : NULL;
}

/* Keys that concern the file itself. */
static cgam_status read_general(reader *r)
{
    const cgam_gguf_value *v = cgam_gguf_find(r->out, "general.architecture");
    const uint8_t *at = v && v->kind == CGAM_GGUF_TEXT && !v->array ? v->items : NULL;
    cgam_gguf_text text = at ? cgam_gguf_next(&at) : (cgam_gguf_text){"", 0};
    if (text.length < CGAM_GGUF_NAME && !memchr(text.at, 0, text.length))
        memcpy(r->out->architecture, text.at, text.length);
    v = cgam_gguf_find(r->out, "general.alignment");
    if (!v) return CGAM_OK;
    if (v->kind != CGAM_GGUF_U32 || v->array)
        return cgam_fail(r->env, CGAM_E_FORMAT, "%s: general.alignment is not a u32", r->name);
    r->align = (uint64_t)cgam_gguf_number(v, 0);
    if (r->align == 0 || (r->align & (r->align - 1)) != 0)
        return cgam_fail(r->env, CGAM_E_FORMAT, "%s: general.alignment is not a power of two",
                         r->name);
    return CGAM_OK;
}

static cgam_status fail_twice(const reader *r, cgam_gguf_text key)
{
    bool clean = cgam_gguf_clean(key);
    return cgam_fail(r->env, CGAM_E_FORMAT, "%s: duplicate %s%.*s", r->name,
                     clean ? "key " : "a key", clean ? (int)key.length : 0, key.at);
}

static cgam_status read_keys(reader *r, uint64_t keys)
{
    cgam_gguf *g = r->out;
    g->values = cgam_zalloc(r->env, (size_t)keys, sizeof *g->values);
    if (!g->values) return cgam_fail_nomem(r->env, r->name);
    cgam_status status = CGAM_OK;
    for (uint64_t i = 0; i < keys && status == CGAM_OK; i++) {
        cgam_gguf_value *v = &g->values[g->values_count++];
        status = read_text(r, &v->name);
        if (status == CGAM_OK) status = read_value(r, v);
    }
    if (status != CGAM_OK) return status;
    qsort(g->values, (size_t)g->values_count, sizeof *g->values, compare_keys);
    for (int64_t i = 1; i < g->values_count; i++)
        if (compare_keys(&g->values[i - 1], &g->values[i]) == 0)
            return fail_twice(r, g->values[i].name);
    return read_general(r);
}

/* ---- Tensors ------------------------------------------------------------------------------ */

static int dtype_of(uint32_t type)
{
    return type == 0 ? CGAM_F32 : type == 1 ? CGAM_F16 : type == 30 ? CGAM_BF16 : -1;
}

/* begin is the offset within the data until the start of the data is known. */
static cgam_status read_tensor(reader *r, cgam_gguf_tensor *t)
{
    cgam_gguf_text name;
    uint32_t ndim;
    cgam_status status = read_text(r, &name);
    if (status != CGAM_OK) return status;
    if (name.length == 0 || name.length >= CGAM_GGUF_NAME || memchr(name.at, 0, name.length))
        return fail_at(r, "a tensor without a name, or with one of 64 bytes or more");
    memcpy(t->name, name.at, name.length);
    status = read_bytes(r, &ndim, sizeof ndim);
    if (status != CGAM_OK) return status;
    if (ndim > CGAM_GGUF_DIMS) return fail_at(r, "a tensor of more than four dimensions");
    t->ndim = (int)ndim;
    t->size = 1;
    for (uint32_t k = 0; k < CGAM_GGUF_DIMS; k++) {
        uint64_t n = 1;
        if (k < ndim) status = read_bytes(r, &n, sizeof n);
        if (status != CGAM_OK) return status;
        if (n > INT64_MAX || __builtin_mul_overflow(t->size, (int64_t)n, &t->size) ||
            t->size > INT64_MAX / 8)
            return fail_at(r, "a tensor with too many elements");
        t->shape[k] = (int64_t)n;
    }
    status = read_bytes(r, &t->type, sizeof t->type);
    if (status == CGAM_OK) status = read_bytes(r, &t->begin, sizeof t->begin);
    if (status != CGAM_OK) return status;
    int bytes, numbers = cgam_gguf_block(t->type, &bytes);
    t->dtype = dtype_of(t->type);
    if (numbers > 0 && t->shape[0] % numbers == 0)
        t->bytes = (uint64_t)(t->size / numbers) * (uint64_t)bytes;
    return CGAM_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(cgam_gguf_tensor *const *)a)->name, (*(cgam_gguf_tensor *const *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
    const cgam_gguf_tensor *s = *(cgam_gguf_tensor *const *)a, *t = *(cgam_gguf_tensor *const *)b;
    return (s->begin > t->begin) - (s->begin < t->begin);
}

/* Names must be unique and data must not overlap. */
static cgam_status check_pairs(const reader *r)
{
    const cgam_gguf *g = r->out;
    cgam_gguf_tensor **order = cgam_alloc(r->env, (size_t)g->count, sizeof *order);
    if (!order) return cgam_fail_nomem(r->env, r->name);
    for (int64_t i = 0; i < g->count; i++) order[i] = &g->tensors[i];
    qsort(order, (size_t)g->count, sizeof *order, compare_names);
    cgam_status status = CGAM_OK;
    for (int64_t i = 1; i < g->count && status == CGAM_OK; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            status = cgam_fail(r->env, CGAM_E_FORMAT, "%s: duplicate tensor '%s'", r->name,
                               order[i]->name);
    qsort(order, (size_t)g->count, sizeof *order, compare_places);
    for (int64_t i = 1; i < g->count && status == CGAM_OK; i++)
        if (order[i]->begin - order[i - 1]->begin < order[i - 1]->bytes)
            status = cgam_fail(r->env, CGAM_E_FORMAT, "%s: tensors '%s' and '%s' overlap", r->name,
                               order[i - 1]->name, order[i]->name);
    cgam_free(r->env, order);
    return status;
}

static cgam_status place_tensors(const reader *r)
{
    uint64_t data = (r->at + r->align - 1) / r->align * r->align;
    for (int64_t i = 0; i < r->out->count; i++) {
        cgam_gguf_tensor *t = &r->out->tensors[i];
        if (t->begin % r->align != 0)
            return cgam_fail(r->env, CGAM_E_FORMAT,
                             "%s: tensor '%s' does not begin at a multiple of %" PRIu64, r->name,
                             t->name, r->align);
        if (data > r->size || t->begin > r->size - data || t->bytes > r->size - data - t->begin)
            return cgam_fail(r->env, CGAM_E_FORMAT,
                             "%s: truncated: tensor '%s' ends past the last byte, %zu", r->name,
                             t->name, r->size);
        t->begin += data;
    }
    return CGAM_OK;
}

const cgam_gguf_tensor *cgam_gguf_tensor_find(const cgam_gguf *g, const char *name)
{
    for (int64_t i = 0; i < g->count; i++)
        if (strcmp(g->tensors[i].name, name) == 0) return &g->tensors[i];
    return NULL;
}

/* ---- All of it ---------------------------------------------------------------------------- */

static cgam_status read_header(reader *r)
{
    enum { TENSOR_LEAST = 24, KEY_LEAST = 13 }; /* bytes of the shortest of each */
    uint32_t version = 0;
    uint64_t tensors = 0, keys = 0;
    char magic[4] = "";
    if (r->size < 4 || memcmp(r->bytes, "GGUF", 4) != 0)
        return cgam_fail(r->env, CGAM_E_FORMAT, "%s: not a GGUF file", r->name);
    cgam_status status = read_bytes(r, magic, sizeof magic);
    if (status == CGAM_OK) status = read_bytes(r, &version, sizeof version);
    if (status == CGAM_OK && version != 2 && version != CGAM_GGUF_VERSION)
        return cgam_fail(r->env, CGAM_E_UNSUPPORTED,
                         "%s: version %" PRIu32 " of GGUF; 2 and 3 are read", r->name, version);
    if (status == CGAM_OK) status = read_bytes(r, &tensors, sizeof tensors);
    if (status == CGAM_OK) status = read_bytes(r, &keys, sizeof keys);
    if (status != CGAM_OK) return status;
    if (tensors > r->size / TENSOR_LEAST || keys > r->size / KEY_LEAST)
        return fail_at(r, "truncated: more tensors or keys than the file has room for");
    status = read_keys(r, keys);
    if (status != CGAM_OK) return status;
    r->out->tensors = cgam_zalloc(r->env, (size_t)tensors, sizeof *r->out->tensors);
    if (!r->out->tensors) return cgam_fail_nomem(r->env, r->name);
    for (uint64_t i = 0; i < tensors && status == CGAM_OK; i++)
        status = read_tensor(r, &r->out->tensors[r->out->count++]);
    if (status == CGAM_OK) status = place_tensors(r);
    return status == CGAM_OK ? check_pairs(r) : status;
}

cgam_status cgam_gguf_parse(cgam_env *env, const char *name, const uint8_t *bytes, size_t size,
                            cgam_gguf *out)
{
    *out = (cgam_gguf){0};
    reader r = {.env = env, .name = name, .bytes = bytes, .size = size, .align = ALIGN, .out = out};
    cgam_status status = read_header(&r);
    if (status != CGAM_OK) cgam_gguf_free(env, out);
    return status;
}

void cgam_gguf_free(cgam_env *env, cgam_gguf *gguf)
{
    cgam_free(env, gguf->values);
    cgam_free(env, gguf->tensors);
    *gguf = (cgam_gguf){0};
}
