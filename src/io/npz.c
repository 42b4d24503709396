/* npz.c: reads .npz, a zip archive whose members are .npy files, stored or deflated.
 *
 * The sizes in an archive are untrusted. Before memory for the data is allocated, the header of the member must agree
 * with the size in the directory, and its compressed bytes must be able to produce that size: deflate spends at least
 * two bits on 258 bytes. So memory is bounded by 1032 times the file, and by the array's shape.
 */
#include "base/env.h"
#include "io/npy.h"

#include <inttypes.h>
#include <string.h>
#include <zip.h>

enum { DEFLATE_RATIO = 1032, CHUNK = 1 << 22, LABEL_MAX = 384 };

static bool is_zip(const cgam_file *file)
{
    return file->size >= 4 &&
           (memcmp(file->bytes, "PK\x03\x04", 4) == 0 || memcmp(file->bytes, "PK\x05\x06", 4) == 0);
}

typedef struct archive {
    cgam_env *env;
    const char *name;
    zip_t *zip;
    uint64_t file_size;
    int64_t count;
    char **names; /* [count] without .npy; NULL for an entry that is not an array */
} archive;

static cgam_status zip_failed(cgam_env *env, const char *name, zip_error_t *error)
{
    int code = zip_error_code_zip(error);
    /* libzip reports no error for some allocations that failed */
    if (code == ZIP_ER_MEMORY || code == ZIP_ER_OK) return cgam_fail_nomem(env, name);
    if (code == ZIP_ER_NOZIP)
        return cgam_fail(env, CGAM_E_FORMAT,
                         "%s: truncated or not a zip archive: it has no directory at its end",
                         name);
    if (code == ZIP_ER_EXISTS)
        return cgam_fail(env, CGAM_E_FORMAT, "%s: two members have the same name", name);
    return cgam_fail(env, CGAM_E_FORMAT, "%s: %s", name, zip_error_strerror(error));
}

static void archive_close(archive *a)
{
    for (int64_t i = 0; a->names && i < a->count; i++) cgam_free(a->env, a->names[i]);
    cgam_free(a->env, a->names);
    if (a->zip) zip_discard(a->zip);
    *a = (archive){0};
}

static cgam_status read_names(archive *a)
{
    a->names = cgam_zalloc(a->env, (size_t)a->count, sizeof *a->names);
    if (!a->names) return cgam_fail_nomem(a->env, a->name);
    for (int64_t i = 0; i < a->count; i++) {
        const char *name = zip_get_name(a->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
        if (!name || !cgam_path_ends(name, ".npy")) continue;
        a->names[i] = cgam_strdup(a->env, name);
        if (!a->names[i]) return cgam_fail_nomem(a->env, a->name);
        a->names[i][strlen(name) - 4] = 0;
    }
    return CGAM_OK;
}

static cgam_status archive_open(cgam_env *env, const char *name, const cgam_file *file,
                                archive *out)
{
    *out = (archive){.env = env, .name = name, .file_size = file->size};
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(file->bytes, file->size, 0, &error);
    if (source) out->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    cgam_status status = CGAM_OK;
    if (!out->zip) {
        if (source) zip_source_free(source);
        status = zip_failed(env, name, &error);
    }
    zip_error_fini(&error);
    if (status == CGAM_OK) {
        out->count = zip_get_num_entries(out->zip, 0);
        status = read_names(out);
    }
    if (status != CGAM_OK) archive_close(out);
    return status;
}

/* ---- one member ---------------------------------------------------------------------------- */

typedef struct member {
    cgam_env *env;
    zip_file_t *stream;
    uint64_t size;         /* from the directory, unverified */
    char label[LABEL_MAX]; /* FILE:MEMBER for messages */
} member;

static void member_close(member *m)
{
    if (m->stream) zip_fclose(m->stream);
    m->stream = NULL;
}

static cgam_status check_claims(const archive *a, const char *label, const zip_stat_t *st)
{
    const zip_uint64_t needed =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if ((st->valid & needed) != needed)
        return cgam_fail(a->env, CGAM_E_FORMAT, "%s: its sizes are missing from the directory",
                         label);
    if (st->encryption_method != ZIP_EM_NONE)
        return cgam_fail(a->env, CGAM_E_UNSUPPORTED, "%s: encrypted", label);
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE)
        return cgam_fail(a->env, CGAM_E_UNSUPPORTED,
                         "%s: unsupported compression method %d (supported: stored, deflated)",
                         label, st->comp_method);
    bool stored = st->comp_method == ZIP_CM_STORE;
    if (st->comp_size > a->file_size || (stored && st->size != st->comp_size) ||
        st->size / DEFLATE_RATIO > st->comp_size)
        return cgam_fail(a->env, CGAM_E_FORMAT,
                         "%s: %" PRIu64 " bytes cannot come from %" PRIu64
                         " %s bytes in a file of %" PRIu64,
                         label, (uint64_t)st->size, (uint64_t)st->comp_size,
                         stored ? "stored" : "deflated", a->file_size);
    return CGAM_OK;
}

static cgam_status member_open(const archive *a, int64_t i, member *out)
{
    *out = (member){.env = a->env};
    snprintf(out->label, sizeof out->label, "%s:%.100s", a->name, a->names[i]);

    zip_stat_t st;
    if (zip_stat_index(a->zip, (zip_uint64_t)i, 0, &st) != 0)
        return zip_failed(a->env, out->label, zip_get_error(a->zip));
    cgam_status status = check_claims(a, out->label, &st);
    if (status != CGAM_OK) return status;
    out->size = st.size;
    out->stream = zip_fopen_index(a->zip, (zip_uint64_t)i, 0);
    if (!out->stream) return zip_failed(a->env, out->label, zip_get_error(a->zip));
    return CGAM_OK;
}

/* Reads `want` bytes, fewer only at the end of the member; sets *got. */
static cgam_status member_read(member *m, uint8_t *to, uint64_t want, uint64_t *got)
{
    for (*got = 0; *got < want;) {
        if (cgam_interrupted(m->env))
            return cgam_fail(m->env, CGAM_E_INTERRUPTED, "%s: stopped on request", m->label);
        uint64_t ask = want - *got < CHUNK ? want - *got : CHUNK;
        zip_int64_t n = zip_fread(m->stream, to + *got, ask);
        if (n < 0) return zip_failed(m->env, m->label, zip_file_get_error(m->stream));
        if (n == 0) break;
        *got += (uint64_t)n;
    }
    return CGAM_OK;
}

/* Reads the .npy header and leaves the stream where the data begin. */
static cgam_status member_layout(member *m, cgam_layout *layout)
{
    uint8_t prefix[CGAM_NPY_PREFIX];
    uint64_t got, more;
    size_t offset;
    cgam_status status = member_read(m, prefix, 10, &got);
    /* Version 1 has a prefix of 10 bytes, the others of 12; no byte of the data is read here. */
    if (status == CGAM_OK && got == 10 && prefix[6] != 1) {
        status = member_read(m, prefix + 10, 2, &more);
        got += more;
    }
    if (status == CGAM_OK)
        status = cgam_npy_data_offset(m->env, m->label, prefix, (size_t)got,
                                      m->size > got ? m->size : got, &offset);
    if (status != CGAM_OK) return status;

    uint8_t *header = cgam_alloc(m->env, offset, 1);
    if (!header) return cgam_fail_nomem(m->env, m->label);
    memcpy(header, prefix, (size_t)got);
    status = member_read(m, header + got, offset - got, &more);
    if (status == CGAM_OK && got + more != offset)
        status = cgam_fail(m->env, CGAM_E_FORMAT,
                           "%s: truncated: the header has %zu bytes, the member %" PRIu64, m->label,
                           offset, got + more);
    if (status == CGAM_OK)
        status = cgam_npy_parse(m->env, m->label, header, offset, m->size, layout);
    cgam_free(m->env, header);
    return status;
}

/* Reads all data of a member into a new block. */
static cgam_status member_block(member *m, uint64_t bytes, uint8_t **out)
{
    uint8_t *block = cgam_alloc(m->env, (size_t)bytes, 1), extra;
    *out = NULL;
    if (!block) return cgam_fail_nomem(m->env, m->label);
    uint64_t got, beyond = 0;
    cgam_status status = member_read(m, block, bytes, &got);
    /* reading beyond the end makes libzip check the checksum */
    if (status == CGAM_OK) status = member_read(m, &extra, 1, &beyond);
    if (status == CGAM_OK && (got < bytes || beyond))
        status = cgam_fail(m->env, CGAM_E_FORMAT,
                           "%s: the directory promises %" PRIu64 " bytes, the data end %s",
                           m->label, m->size, beyond ? "later" : "earlier");
    if (status == CGAM_OK) *out = block;
    else cgam_free(m->env, block);
    return status;
}

static cgam_status member_data(member *m, const cgam_layout *layout, cgam_array *out)
{
    uint8_t *block;
    cgam_status status = member_block(m, layout->bytes, &block);
    if (status == CGAM_OK) status = cgam_array_own(m->env, m->label, layout, block, out);
    if (status != CGAM_OK) cgam_free(m->env, block);
    return status;
}

/* Reads a member in the type of the file. */
static cgam_status member_raw(const archive *a, int64_t i, cgam_npz_take take, void *user)
{
    member m;
    cgam_layout layout;
    int64_t width;
    uint8_t *block = NULL;
    cgam_status status = member_open(a, i, &m);
    if (status == CGAM_OK) status = member_layout(&m, &layout);
    if (status == CGAM_OK && cgam_npy_is_text(&layout, &width)) {
        layout.item = (int)width * (layout.type[1] == 'U' ? 4 : 1);
        status = cgam_layout_measure(a->env, m.label, &layout, (size_t)layout.item);
        if (status == CGAM_OK && layout.bytes > m.size)
            status = cgam_fail(a->env, CGAM_E_FORMAT, "%s: truncated", m.label);
    } else if (status == CGAM_OK) {
        status = cgam_npy_openable(a->env, m.label, &layout);
    }
    if (status == CGAM_OK) status = member_block(&m, layout.bytes, &block);
    if (status == CGAM_OK) status = take(user, a->names[i], &layout, block);
    cgam_free(a->env, block);
    member_close(&m);
    return status;
}

cgam_status cgam_npz_each(cgam_env *env, const char *name, const cgam_file *file,
                          cgam_npz_take take, void *user)
{
    archive a;
    cgam_status status = archive_open(env, name, file, &a);
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < a.count && status == CGAM_OK; i++)
        if (a.names[i]) status = member_raw(&a, i, take, user);
    archive_close(&a);
    return status;
}

bool cgam_npz_recognise(const cgam_file *file) { return is_zip(file); }

/* ---- the reader ---------------------------------------------------------------------------- */

static const char *name_at(const void *from, int64_t i)
{
    return ((const archive *)from)->names[i];
}

/* A member may be named with or without its .npy. */
static cgam_status find_member(archive *a, const char *wanted, int64_t *index)
{
    cgam_status status = cgam_member_pick(a->env, a->name, wanted, a, a->count, name_at, index);
    if (status != CGAM_E_NOT_FOUND || !wanted || !cgam_path_ends(wanted, ".npy")) return status;
    char *plain = cgam_strdup(a->env, wanted);
    if (!plain) return cgam_fail_nomem(a->env, a->name);
    plain[strlen(plain) - 4] = 0;
    status = cgam_member_pick(a->env, a->name, plain, a, a->count, name_at, index);
    cgam_free(a->env, plain);
    return status;
}

static cgam_status open_npz(cgam_env *env, const char *name, cgam_file *file, const char *wanted,
                            cgam_array *out)
{
    archive a;
    member m = {0};
    cgam_layout layout;
    int64_t index;
    cgam_status status = archive_open(env, name, file, &a);
    if (status != CGAM_OK) return status;
    status = find_member(&a, wanted, &index);
    if (status == CGAM_OK) {
        status = member_open(&a, index, &m);
        if (status == CGAM_OK) status = member_layout(&m, &layout);
        if (status == CGAM_OK) status = cgam_npy_openable(env, m.label, &layout);
        if (status == CGAM_OK) status = member_data(&m, &layout, out);
        member_close(&m);
    }
    archive_close(&a);
    return status;
}

const cgam_format cgam_format_npz = {
    .ending = ".npz", .recognise = is_zip, .open = open_npz, .write = cgam_npz_write};
