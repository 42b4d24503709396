/* npz_write.c: writes .npz through libzip. The archive goes to a cgam_outfile through our own libzip source, so that
 * libzip makes no temporary file and the commit is the same as for every other file. Members are stored, not
 * deflated: floating-point data hardly shrink. */
#include "base/env.h"
#include "io/npy.h"

#include <errno.h>
#include <string.h>
#include <zip.h>

/* 1 January 1980 in the date format of zip: the same arrays then give the same bytes. */
enum { ZIP_EPOCH_DATE = 1 << 5 | 1, ZIP_EPOCH_TIME = 0 };

typedef struct sink {
    FILE *stream;
    zip_error_t error;
} sink;

static zip_int64_t sink_failed(sink *s, int zip_code, int system)
{
    zip_error_set(&s->error, zip_code, system);
    return -1;
}

/* The callback of libzip for an output. Reading is not supported: the archive is new. */
static zip_int64_t sink_command(void *state, void *data, zip_uint64_t size,
                                zip_source_cmd_t command)
{
    sink *s = state;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_SEEK_WRITE,
            ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT: return sink_failed(s, ZIP_ER_READ, ENOENT); /* no such archive yet */
    case ZIP_SOURCE_ERROR: return zip_error_to_data(&s->error, data, size);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE: return 0;
    case ZIP_SOURCE_WRITE:
        if (size && fwrite(data, 1, size, s->stream) != size)
            return sink_failed(s, ZIP_ER_WRITE, errno);
        return (zip_int64_t)size;
    case ZIP_SOURCE_TELL_WRITE: {
        off_t at = ftello(s->stream);
        return at < 0 ? sink_failed(s, ZIP_ER_TELL, errno) : at;
    }
    case ZIP_SOURCE_SEEK_WRITE: {
        zip_source_args_seek_t *to =
            ZIP_SOURCE_GET_ARGS(zip_source_args_seek_t, data, size, &s->error);
        if (!to) return -1;
        if (fseeko(s->stream, to->offset, to->whence) != 0)
            return sink_failed(s, ZIP_ER_SEEK, errno);
        return 0;
    }
    default: return sink_failed(s, ZIP_ER_OPNOTSUPP, 0);
    }
}

/* The input of the archive, and the memory that libzip reads until it is closed. */
typedef struct job {
    cgam_env *env;
    const char *name; /* of the file, for messages */
    int count;
    const cgam_named_array *arrays;
    const cgam_layout *layouts;
    char *headers; /* [count][CGAM_NPY_HEADER_OURS] */
    char *member;  /* [capacity], a name with .npy */
    size_t capacity;
    cgam_outfile *out;
} job;

/* Reports the error of the system if there is one. */
static cgam_status write_failed(job *j, zip_error_t *error)
{
    int code = zip_error_code_zip(error), system = zip_error_code_system(error);
    if (code == ZIP_ER_MEMORY) return cgam_fail_nomem(j->env, j->name);
    if (code == ZIP_ER_WRITE || code == ZIP_ER_SEEK || code == ZIP_ER_TELL)
        return cgam_outfile_fail(j->out, system);
    return cgam_fail(j->env, CGAM_E_IO, "%s: cannot write: %s", j->name, zip_error_strerror(error));
}

/* Adds header and data of array i as one member; neither is copied. */
static cgam_status add_member(job *j, zip_t *zip, int i)
{
    char *header = j->headers + (size_t)i * CGAM_NPY_HEADER_OURS;
    size_t length;
    cgam_status status = cgam_npy_header(j->env, j->name, &j->layouts[i], header, &length);
    if (status != CGAM_OK) return status;

    zip_buffer_fragment_t parts[2] = {
        {.data = (zip_uint8_t *)header, .length = length},
        {.data = (zip_uint8_t *)(uintptr_t)j->arrays[i].data, .length = j->layouts[i].bytes},
    };
    zip_source_t *source = zip_source_buffer_fragment(zip, parts, parts[1].length ? 2 : 1, 0);
    if (!source) return write_failed(j, zip_get_error(zip));
    snprintf(j->member, j->capacity, "%s.npy", j->arrays[i].name);
    zip_int64_t index = zip_file_add(zip, j->member, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return write_failed(j, zip_get_error(zip));
    }
    zip_uint64_t at = (zip_uint64_t)index;
    if (zip_set_file_compression(zip, at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(zip, at, ZIP_EPOCH_TIME, ZIP_EPOCH_DATE, 0) != 0)
        return write_failed(j, zip_get_error(zip));
    return CGAM_OK;
}

static cgam_status write_archive(job *j)
{
    sink s = {.stream = cgam_outfile_stream(j->out)};
    zip_error_t error;
    zip_error_init(&s.error);
    zip_error_init(&error);
    cgam_status status = CGAM_OK;
    zip_t *zip = NULL;
    zip_source_t *target = zip_source_function_create(sink_command, &s, &error);
    if (target) zip = zip_open_from_source(target, ZIP_CREATE | ZIP_TRUNCATE, &error);
    if (!zip) {
        if (target) zip_source_free(target);
        status = write_failed(j, &error);
    }
    for (int i = 0; i < j->count && status == CGAM_OK; i++) status = add_member(j, zip, i);
    if (status == CGAM_OK && zip_close(zip) == 0) zip = NULL;
    else if (status == CGAM_OK) status = write_failed(j, zip_get_error(zip));
    if (zip) zip_discard(zip);
    zip_error_fini(&error);
    zip_error_fini(&s.error);
    return status;
}

cgam_status cgam_npz_write(cgam_env *env, const char *path, int count,
                           const cgam_named_array *arrays, const cgam_layout *layouts)
{
    job j = {.env = env,
             .name = cgam_path_tail(path),
             .count = count,
             .arrays = arrays,
             .layouts = layouts};
    for (int i = 0; i < count; i++) {
        size_t length = strlen(arrays[i].name) + sizeof ".npy";
        j.capacity = length > j.capacity ? length : j.capacity;
    }
    if (j.capacity > UINT16_MAX) /* zip has 16 bits for the length of a name */
        return cgam_fail(env, CGAM_E_ARG, "%s: a name of %zu bytes is too long", j.name,
                         j.capacity - sizeof ".npy");
    j.headers = cgam_alloc(env, (size_t)count, CGAM_NPY_HEADER_OURS);
    j.member = cgam_alloc(env, j.capacity, 1);
    cgam_status status = CGAM_OK;
    if (!j.headers || !j.member) status = cgam_fail_nomem(env, j.name);
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, &j.out);
    if (status == CGAM_OK) status = write_archive(&j);
    if (status == CGAM_OK) status = cgam_outfile_commit(j.out);
    else cgam_outfile_abandon(j.out);
    cgam_free(env, j.member);
    cgam_free(env, j.headers);
    return status;
}
