/* gguf.c: reads the header of a GGUF file, and writes files of vectors.
 *
 *   "GGUF", u32 version, u64 tensors, u64 keys
 *   keys:     text name, u32 type, value        (a text is u64 length and bytes)
 *   tensors:  text name, u32 ndim, u64 shape[ndim], u32 type, u64 offset
 *   data:     from the next multiple of the alignment, 32 unless general.alignment says otherwise
 *
 * Source: the format's own description (ggml-org/ggml, docs/gguf.md). */
#include "io/gguf.h"

#include "base/env.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 32, TEXT = 8, ARRAY = 9, U32 = 4, VERSION = 3 };

/* Bytes of a value by the code of its type; 0: a text or an array. */
static const int value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { TYPES = sizeof value_bytes / sizeof *value_bytes };

typedef struct reader {
    cgam_env *env;
    const char *name;
    const uint8_t *bytes;
    size_t size, at;
    uint64_t align;
    cgam_gguf *out;
} reader;

static cgam_status refuse(const reader *r, const char *why)
{
    return cgam_fail(r->env, CGAM_E_FORMAT, "%s: byte %zu: %s", r->name, r->at, why);
}

static cgam_status take(reader *r, void *to, size_t bytes)
{
    if (r->size - r->at < bytes) return refuse(r, "truncated: the header has no end");
    memcpy(to, r->bytes + r->at, bytes);
    r->at += bytes;
    return CGAM_OK;
}

static cgam_status skip(reader *r, uint64_t bytes)
{
    if (r->size - r->at < bytes) return refuse(r, "truncated: the header has no end");
    r->at += (size_t)bytes;
    return CGAM_OK;
}

/* A text into to[room], cut short if need be; *length is its own. to NULL: passed over. */
static cgam_status take_text(reader *r, char *to, size_t room, uint64_t *length)
{
    cgam_status status = take(r, length, sizeof *length);
    if (status != CGAM_OK) return status;
    if (*length > r->size - r->at) return refuse(r, "truncated: a text is longer than the file");
    if (to) {
        size_t kept = *length < room ? (size_t)*length : room - 1;
        memcpy(to, r->bytes + r->at, kept);
        to[kept] = '\0';
    }
    return skip(r, *length);
}

static cgam_status skip_array(reader *r)
{
    uint32_t type;
    uint64_t count, length;
    cgam_status status = take(r, &type, sizeof type);
    if (status == CGAM_OK) status = take(r, &count, sizeof count);
    if (status != CGAM_OK) return status;
    if (type >= TYPES || type == ARRAY) return refuse(r, "an array of no type that there is");
    if (type != TEXT) {
        if (count > (r->size - r->at) / (uint64_t)value_bytes[type])
            return refuse(r, "truncated: an array is longer than the file");
        return skip(r, count * (uint64_t)value_bytes[type]);
    }
    for (uint64_t i = 0; i < count && status == CGAM_OK; i++)
        status = take_text(r, NULL, 0, &length);
    return status;
}

static cgam_status take_key(reader *r)
{
    char name[CGAM_GGUF_NAME];
    uint64_t length;
    uint32_t type;
    cgam_status status = take_text(r, name, sizeof name, &length);
    if (status == CGAM_OK) status = take(r, &type, sizeof type);
    if (status != CGAM_OK) return status;
    if (type >= TYPES) return refuse(r, "a value of no type that there is");
    if (type == TEXT) {
        bool kept = strcmp(name, "general.architecture") == 0;
        return take_text(r, kept ? r->out->architecture : NULL, CGAM_GGUF_NAME, &length);
    }
    if (type == ARRAY) return skip_array(r);
    if (strcmp(name, "general.alignment") == 0) {
        uint32_t align = 0;
        if (type != U32) return refuse(r, "general.alignment is no u32");
        status = take(r, &align, sizeof align);
        if (status == CGAM_OK && (align == 0 || (align & (align - 1)) != 0))
            return refuse(r, "general.alignment is no power of two");
        r->align = align;
        return status;
    }
    return skip(r, (uint64_t)value_bytes[type]);
}

static int dtype_of(uint32_t type)
{
    return type == 0 ? CGAM_F32 : type == 1 ? CGAM_F16 : type == 30 ? CGAM_BF16 : -1;
}

/* begin is left as the offset from the data, which are not yet found. */
static cgam_status take_tensor(reader *r, cgam_gguf_tensor *t)
{
    uint64_t length, n;
    uint32_t ndim;
    cgam_status status = take_text(r, t->name, sizeof t->name, &length);
    if (status == CGAM_OK && (length == 0 || length >= CGAM_GGUF_NAME || strlen(t->name) != length))
        return refuse(r, "a tensor without a name, or with one of 64 bytes or more");
    if (status == CGAM_OK) status = take(r, &ndim, sizeof ndim);
    if (status != CGAM_OK) return status;
    if (ndim > CGAM_GGUF_DIMS) return refuse(r, "a tensor of more than four dimensions");
    t->ndim = (int)ndim;
    t->size = 1;
    for (uint32_t k = 0; k < ndim && status == CGAM_OK; k++) {
        status = take(r, &n, sizeof n);
        if (status != CGAM_OK) break;
        if (n > INT64_MAX || __builtin_mul_overflow(t->size, (int64_t)n, &t->size) ||
            t->size > INT64_MAX / 8)
            return refuse(r, "a tensor of more elements than can be counted");
        t->shape[k] = (int64_t)n;
    }
    if (status == CGAM_OK) status = take(r, &t->type, sizeof t->type);
    if (status == CGAM_OK) status = take(r, &t->begin, sizeof t->begin);
    t->dtype = dtype_of(t->type);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(cgam_gguf_tensor *const *)a)->name, (*(cgam_gguf_tensor *const *)b)->name);
}

static cgam_status check_names(const reader *r)
{
    const cgam_gguf *g = r->out;
    cgam_gguf_tensor **order = cgam_alloc(r->env, (size_t)g->count, sizeof *order);
    if (!order) return cgam_fail_nomem(r->env, r->name);
    for (int64_t i = 0; i < g->count; i++) order[i] = &g->tensors[i];
    qsort(order, (size_t)g->count, sizeof *order, by_name);
    cgam_status status = CGAM_OK;
    for (int64_t i = 1; i < g->count && status == CGAM_OK; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            status = cgam_fail(r->env, CGAM_E_FORMAT, "%s: tensor '%s' is there twice", r->name,
                               order[i]->name);
    cgam_free(r->env, order);
    return status;
}

static cgam_status place(const reader *r)
{
    uint64_t data = (r->at + r->align - 1) / r->align * r->align;
    for (int64_t i = 0; i < r->out->count; i++) {
        cgam_gguf_tensor *t = &r->out->tensors[i];
        if (t->begin % r->align != 0)
            return cgam_fail(r->env, CGAM_E_FORMAT,
                             "%s: tensor '%s' begins between two multiples of %" PRIu64, r->name,
                             t->name, r->align);
        if (t->dtype < 0) continue;
        uint64_t bytes = (uint64_t)t->size * cgam_dtype_size((cgam_dtype)t->dtype);
        if (data > r->size || t->begin > r->size - data || bytes > r->size - data - t->begin)
            return cgam_fail(r->env, CGAM_E_FORMAT,
                             "%s: truncated: tensor '%s' ends behind byte %zu, the last", r->name,
                             t->name, r->size);
        t->begin += data;
    }
    return CGAM_OK;
}

static cgam_status take_all(reader *r)
{
    enum { TENSOR_LEAST = 24, KEY_LEAST = 13 }; /* bytes of the shortest of each */
    uint32_t version = 0;
    uint64_t tensors = 0, keys = 0;
    char magic[4] = "";
    if (r->size < 4 || memcmp(r->bytes, "GGUF", 4) != 0)
        return cgam_fail(r->env, CGAM_E_FORMAT, "%s: not a GGUF file", r->name);
    cgam_status status = take(r, magic, sizeof magic);
    if (status == CGAM_OK) status = take(r, &version, sizeof version);
    if (status == CGAM_OK && version != 2 && version != VERSION)
        return cgam_fail(r->env, CGAM_E_UNSUPPORTED,
                         "%s: version %" PRIu32 " of GGUF; 2 and 3 are read", r->name, version);
    if (status == CGAM_OK) status = take(r, &tensors, sizeof tensors);
    if (status == CGAM_OK) status = take(r, &keys, sizeof keys);
    if (status != CGAM_OK) return status;
    if (tensors > r->size / TENSOR_LEAST || keys > r->size / KEY_LEAST)
        return refuse(r, "truncated: more tensors or keys than the file has room for");
    for (uint64_t i = 0; i < keys && status == CGAM_OK; i++) status = take_key(r);
    if (status != CGAM_OK) return status;
    r->out->tensors = cgam_zalloc(r->env, (size_t)tensors, sizeof *r->out->tensors);
    if (!r->out->tensors) return cgam_fail_nomem(r->env, r->name);
    for (uint64_t i = 0; i < tensors && status == CGAM_OK; i++)
        status = take_tensor(r, &r->out->tensors[r->out->count++]);
    if (status == CGAM_OK) status = check_names(r);
    return status == CGAM_OK ? place(r) : status;
}

cgam_status cgam_gguf_parse(cgam_env *env, const char *name, const uint8_t *bytes, size_t size,
                            cgam_gguf *out)
{
    *out = (cgam_gguf){0};
    reader r = {.env = env, .name = name, .bytes = bytes, .size = size, .align = ALIGN, .out = out};
    cgam_status status = take_all(&r);
    if (status != CGAM_OK) cgam_gguf_free(env, out);
    return status;
}

void cgam_gguf_free(cgam_env *env, cgam_gguf *gguf)
{
    cgam_free(env, gguf->tensors);
    *gguf = (cgam_gguf){0};
}

/* ---- Writing ------------------------------------------------------------------------------ */
typedef struct writer {
    cgam_outfile *file;
    cgam_status status;
    uint64_t at;
} writer;

static void put(writer *w, const void *bytes, size_t size)
{
    if (w->status == CGAM_OK) w->status = cgam_outfile_write(w->file, bytes, size);
    w->at += size;
}

static void put_u32(writer *w, uint32_t value) { put(w, &value, sizeof value); }
static void put_u64(writer *w, uint64_t value) { put(w, &value, sizeof value); }

static void put_text(writer *w, const char *text)
{
    put_u64(w, strlen(text));
    put(w, text, strlen(text));
}

static void pad(writer *w)
{
    static const char zeros[ALIGN];
    put(w, zeros, (size_t)((ALIGN - w->at % ALIGN) % ALIGN));
}

cgam_status cgam_gguf_write(cgam_env *env, const char *path, int keys, const cgam_gguf_key *key,
                            int64_t count, int64_t width, const cgam_gguf_vector *vectors)
{
    writer w = {.status = CGAM_OK};
    w.status = cgam_outfile_begin(env, path, &w.file);
    if (w.status != CGAM_OK) return w.status;
    put(&w, "GGUF", 4);
    put_u32(&w, VERSION);
    put_u64(&w, (uint64_t)count);
    put_u64(&w, (uint64_t)keys);
    for (int i = 0; i < keys; i++) {
        put_text(&w, key[i].name);
        put_u32(&w, key[i].text ? TEXT : U32);
        if (key[i].text) put_text(&w, key[i].text);
        else put_u32(&w, key[i].number);
    }
    uint64_t one = ((uint64_t)width * sizeof(float) + ALIGN - 1) / ALIGN * ALIGN;
    for (int64_t i = 0; i < count; i++) {
        put_text(&w, vectors[i].name);
        put_u32(&w, 1); /* dimensions */
        put_u64(&w, (uint64_t)width);
        put_u32(&w, 0); /* f32 */
        put_u64(&w, (uint64_t)i * one);
    }
    pad(&w);
    for (int64_t i = 0; i < count; i++) {
        put(&w, vectors[i].data, (size_t)width * sizeof(float));
        pad(&w);
    }
    if (w.status == CGAM_OK) return cgam_outfile_commit(w.file);
    cgam_outfile_abandon(w.file);
    return w.status;
}
