/* sealed.c: see sealed.h. */
#include "io/sealed.h"

#include "base/env.h"
#include "io/json.h"

#include <blake2.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DIGEST = 32, HEX = 2 * DIGEST, LENGTH = 8, PIECE = 1 << 24, NAME_MAX_ = 64 };
static const char PREFIX[] = "digest.", HEADER_KEY[] = "\"digest.header\":\"";

struct cgam_sealed {
    cgam_env *env;
    cgam_outfile *out;
    const char *name; /* in messages: the caller's path */
    json_t *header, *notes;
    size_t header_size;   /* of the header, with its length */
    uint64_t at;          /* current end of the file */
    uint64_t begin;       /* of the current array, */
    uint64_t end;         /* and its end */
    char open[NAME_MAX_]; /* its name, "" = no current array */
    int pads;
    blake2b_state hash;
    void *mapped;
    size_t mapped_size;
};

static void digest_text(const uint8_t digest[DIGEST], char text[HEX + 1])
{
    for (int i = 0; i < DIGEST; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

void cgam_sealed_abandon(cgam_sealed *file)
{
    if (!file) return;
    if (file->mapped) munmap(file->mapped, file->mapped_size);
    cgam_outfile_abandon(file->out);
    json_decref(file->header);
    json_decref(file->notes);
    cgam_free(file->env, file);
}

cgam_status cgam_sealed_begin(cgam_env *env, const char *path, size_t header, cgam_sealed **out)
{
    *out = NULL;
    cgam_sealed *file = cgam_zalloc(env, 1, sizeof *file);
    if (!file) return cgam_fail_nomem(env, "a file");
    file->env = env;
    file->name = cgam_path_tail(path);
    file->header = json_object();
    file->notes = json_object();
    file->header_size = (header + CGAM_SEALED_ALIGN - 1) / CGAM_SEALED_ALIGN * CGAM_SEALED_ALIGN;
    cgam_status status = file->header && file->notes ? CGAM_OK : cgam_json_nomem(env, "a file");
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, &file->out);
    static const char blank[CGAM_SEALED_ALIGN]; /* until the header is known */
    for (; file->at < file->header_size && status == CGAM_OK; file->at += sizeof blank)
        status = cgam_outfile_write(file->out, blank, sizeof blank);
    if (status == CGAM_OK) *out = file;
    else cgam_sealed_abandon(file);
    return status;
}

cgam_status cgam_sealed_note(cgam_sealed *file, const char *key, const char *text)
{
    return json_object_set_new(file->notes, key, json_string(text)) == 0
               ? CGAM_OK
               : cgam_json_nomem(file->env, file->name);
}

cgam_status cgam_sealed_write(cgam_sealed *file, const void *bytes, size_t size)
{
    if (size > file->end - file->at)
        return cgam_fail(file->env, CGAM_E_INTERNAL, "%s: '%s' is longer than declared", file->name,
                         file->open);
    for (const uint8_t *at = bytes, *end = at + size; at < end;) {
        size_t piece = (size_t)(end - at) < PIECE ? (size_t)(end - at) : PIECE;
        blake2b_update(&file->hash, at, piece);
        cgam_status status = cgam_outfile_write(file->out, at, piece);
        if (status != CGAM_OK) return status;
        if (cgam_interrupted(file->env)) return CGAM_E_INTERRUPTED;
        at += piece;
    }
    file->at += size;
    return CGAM_OK;
}

/* The current array is complete. */
static cgam_status close_part(cgam_sealed *file)
{
    uint8_t digest[DIGEST];
    char key[sizeof PREFIX + NAME_MAX_], text[HEX + 1];
    if (!file->open[0]) return CGAM_OK;
    if (file->at != file->end)
        return cgam_fail(file->env, CGAM_E_INTERNAL, "%s: '%s' is shorter than declared",
                         file->name, file->open);
    blake2b_final(&file->hash, digest, sizeof digest);
    digest_text(digest, text);
    snprintf(key, sizeof key, "%s%s", PREFIX, file->open);
    file->open[0] = 0;
    return cgam_sealed_note(file, key, text);
}

static cgam_status open_part(cgam_sealed *file, const cgam_part *part)
{
    const cgam_tensor_type *type = cgam_tensor_types;
    while (strcmp(type->name, part->type) != 0) type++;
    uint64_t bytes = (uint64_t)type->item * (uint64_t)part->shape[0];
    if (part->ndim == 2) bytes *= (uint64_t)part->shape[1];
    json_t *entry =
        cgam_tensor_entry(part->type, part->ndim, part->shape, file->at - file->header_size, bytes);
    if (json_object_set_new(file->header, part->name, entry) != 0)
        return cgam_json_nomem(file->env, file->name);
    file->begin = file->at;
    file->end = file->at + bytes;
    snprintf(file->open, sizeof file->open, "%s", part->name);
    blake2b_init(&file->hash, DIGEST);
    return part->data ? cgam_sealed_write(file, part->data, (size_t)bytes) : CGAM_OK;
}

/* Zeros up to the next boundary, or `least` bytes and up to the one after. */
static cgam_status write_padding(cgam_sealed *file, uint64_t least)
{
    static const uint8_t zeros[2 * CGAM_SEALED_ALIGN];
    uint64_t end = (file->at + least + CGAM_SEALED_ALIGN - 1) / CGAM_SEALED_ALIGN;
    int64_t size = (int64_t)(end * CGAM_SEALED_ALIGN - file->at);
    char name[16];
    if (size == 0) return CGAM_OK;
    snprintf(name, sizeof name, "pad%d", file->pads++);
    cgam_status status = open_part(file, &(cgam_part){name, "U8", 1, {size}, zeros});
    return status == CGAM_OK ? close_part(file) : status;
}

cgam_status cgam_sealed_part(cgam_sealed *file, const cgam_part *part)
{
    cgam_status status = close_part(file);
    if (status == CGAM_OK) status = write_padding(file, 0);
    return status == CGAM_OK ? open_part(file, part) : status;
}

cgam_status cgam_sealed_map(cgam_sealed *file, const void **out)
{
    FILE *stream = cgam_outfile_stream(file->out);
    if (fflush(stream) != 0) return cgam_outfile_fail(file->out, errno);
    int fd = cgam_outfile_fd(file->out);
    void *bytes = mmap(NULL, (size_t)file->at, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) return cgam_outfile_fail(file->out, errno);
    file->mapped = bytes;
    file->mapped_size = (size_t)file->at;
    *out = (const uint8_t *)bytes + file->begin;
    return CGAM_OK;
}

/* Returns the position of the value of digest.header in a header of this many bytes (including its length); NULL:
 * absent. */
static const uint8_t *find_own_digest(const uint8_t *header, size_t size)
{
    const uint8_t *key = memmem(header, size, HEADER_KEY, sizeof HEADER_KEY - 1);
    const uint8_t *value = key ? key + sizeof HEADER_KEY - 1 : NULL;
    return value && (size_t)(header + size - value) > HEX ? value : NULL;
}

static void header_digest(const uint8_t *header, size_t size, const uint8_t *own,
                          char text[HEX + 1])
{
    blake2b_state hash;
    uint8_t digest[DIGEST];
    char zeros[HEX];
    memset(zeros, '0', sizeof zeros);
    blake2b_init(&hash, DIGEST);
    blake2b_update(&hash, header, (size_t)(own - header));
    blake2b_update(&hash, (const uint8_t *)zeros, sizeof zeros);
    blake2b_update(&hash, own + HEX, size - (size_t)(own - header) - HEX);
    blake2b_final(&hash, digest, sizeof digest);
    digest_text(digest, text);
}

/* Builds the header of the file: [header_size]. */
static cgam_status build_header(cgam_sealed *file, uint8_t *header)
{
    char zeros[HEX + 1], digest[HEX + 1];
    memset(zeros, '0', HEX);
    zeros[HEX] = 0;
    json_t *whole = json_object();
    cgam_status status = cgam_sealed_note(file, "digest.header", zeros);
    if (status == CGAM_OK && (!whole || json_object_set(whole, "__metadata__", file->notes) != 0 ||
                              json_object_update(whole, file->header) != 0))
        status = cgam_json_nomem(file->env, file->name);
    char *text = status == CGAM_OK ? cgam_json_line(whole) : NULL;
    json_decref(whole);
    if (status == CGAM_OK && !text) status = cgam_json_nomem(file->env, file->name);
    if (status == CGAM_OK && strlen(text) + LENGTH > file->header_size)
        status = cgam_fail(file->env, CGAM_E_INTERNAL,
                           "%s: the header needs %zu bytes, %zu are "
                           "reserved",
                           file->name, strlen(text), file->header_size - LENGTH);
    if (status == CGAM_OK) {
        uint64_t length = file->header_size - LENGTH;
        memset(header, ' ', file->header_size);
        memcpy(header, &length, LENGTH);
        memcpy(header + LENGTH, text, strlen(text));
        const uint8_t *own = find_own_digest(header, file->header_size);
        header_digest(header, file->header_size, own, digest);
        memcpy(header + (own - header), digest, HEX);
    }
    free(text);
    return status;
}

cgam_status cgam_sealed_commit(cgam_sealed *file)
{
    cgam_status status = close_part(file);
    if (status == CGAM_OK) status = write_padding(file, CGAM_SEALED_ALIGN);
    uint8_t *header = cgam_alloc(file->env, file->header_size, 1);
    if (status == CGAM_OK && !header) status = cgam_fail_nomem(file->env, file->name);
    if (status == CGAM_OK) status = build_header(file, header);
    if (status == CGAM_OK && fseek(cgam_outfile_stream(file->out), 0, SEEK_SET) != 0)
        status = cgam_outfile_fail(file->out, errno);
    if (status == CGAM_OK) status = cgam_outfile_write(file->out, header, file->header_size);
    if (status == CGAM_OK) {
        status = cgam_outfile_commit(file->out);
        file->out = NULL;
    }
    cgam_free(file->env, header);
    cgam_sealed_abandon(file);
    return status;
}

/* ---- Checking ------------------------------------------------------------------------------ */
typedef struct checking {
    cgam_env *env;
    const cgam_file *file;
    const cgam_tensor_table *table;
    bool *wrong; /* [count] */
} checking;

static cgam_status check_part(void *arg, int64_t i)
{
    checking *job = arg;
    const cgam_tensor *t = &job->table->tensors[i];
    char key[sizeof PREFIX + NAME_MAX_], text[HEX + 1];
    uint8_t digest[DIGEST];
    blake2b_state hash;
    blake2b_init(&hash, DIGEST);
    for (uint64_t at = t->begin; at < t->end;) {
        uint64_t piece = t->end - at < PIECE ? t->end - at : PIECE;
        blake2b_update(&hash, job->file->bytes + job->table->data + at, piece);
        if (cgam_interrupted(job->env)) return CGAM_E_INTERRUPTED;
        at += piece;
    }
    blake2b_final(&hash, digest, sizeof digest);
    digest_text(digest, text);
    snprintf(key, sizeof key, "%s%.*s", PREFIX, NAME_MAX_ - 1, t->name);
    const char *noted = cgam_tensor_table_note(job->table, key);
    job->wrong[i] = !noted || strcmp(noted, text) != 0;
    return CGAM_OK;
}

cgam_status cgam_sealed_check(cgam_env *env, const cgam_file *file, const cgam_tensor_table *table,
                              const char **damaged)
{
    *damaged = NULL;
    char text[HEX + 1];
    const uint8_t *own = find_own_digest(file->bytes, (size_t)table->data);
    if (own) header_digest(file->bytes, (size_t)table->data, own, text);
    if (!own || memcmp(own, text, HEX) != 0) {
        *damaged = "header";
        return CGAM_OK;
    }
    checking job = {env, file, table, cgam_zalloc(env, (size_t)table->count, sizeof *job.wrong)};
    if (!job.wrong) return cgam_fail_nomem(env, "digests");
    cgam_status status = cgam_parallel(env, table->count, check_part, &job);
    for (int64_t i = table->count; i-- > 0 && status == CGAM_OK;)
        if (job.wrong[i]) *damaged = table->tensors[i].name;
    cgam_free(env, job.wrong);
    return status;
}
