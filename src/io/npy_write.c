/* npy_write.c: writes .npy, version 1.0, whole or in pieces. */
#include "base/env.h"
#include "io/npy.h"

#include <inttypes.h>

struct cgam_npy_writer {
    cgam_env *env;
    cgam_outfile *out;
    char *path;
    size_t item;
    int64_t size, done; /* elements */
    bool broken;        /* a write failed; its reason is kept by `out` */
};

static void writer_free(cgam_npy_writer *writer)
{
    if (!writer) return;
    cgam_outfile_abandon(writer->out);
    cgam_free(writer->env, writer->path);
    cgam_free(writer->env, writer);
}

cgam_status cgam_npy_begin(cgam_env *env, const char *path, cgam_dtype dtype, int ndim,
                           const int64_t *shape, cgam_npy_writer **result)
{
    *result = NULL;
    const char *name = cgam_path_tail(path);
    cgam_layout layout;
    char header[CGAM_NPY_HEADER_OURS];
    size_t length;
    cgam_status status = cgam_layout_make(env, name, dtype, ndim, shape, &layout);
    if (status == CGAM_OK) status = cgam_npy_header(env, name, &layout, header, &length);
    if (status != CGAM_OK) return status;

    cgam_npy_writer *writer = cgam_zalloc(env, 1, sizeof *writer);
    if (!writer) return cgam_fail_nomem(env, name);
    writer->env = env;
    writer->item = cgam_dtype_size(dtype);
    writer->size = layout.size;
    writer->path = cgam_strdup(env, path);
    status =
        writer->path ? cgam_outfile_begin(env, path, &writer->out) : cgam_fail_nomem(env, name);
    if (status == CGAM_OK) status = cgam_outfile_expect(writer->out, layout.bytes);
    if (status == CGAM_OK) status = cgam_outfile_write(writer->out, header, length);
    if (status != CGAM_OK) {
        writer_free(writer);
        return status;
    }
    *result = writer;
    return CGAM_OK;
}

cgam_status cgam_npy_append(cgam_npy_writer *writer, const void *data, int64_t count)
{
    if (count < 0 || count > writer->size - writer->done)
        return cgam_fail(writer->env, CGAM_E_SHAPE,
                         "%s: %" PRId64 " elements after %" PRId64 "; the shape has %" PRId64,
                         cgam_path_tail(writer->path), count, writer->done, writer->size);
    cgam_status status = cgam_outfile_write(writer->out, data, (size_t)count * writer->item);
    if (status == CGAM_OK) writer->done += count;
    else writer->broken = true;
    return status;
}

cgam_status cgam_npy_finish(cgam_npy_writer *writer)
{
    cgam_status status;
    if (writer->broken) {
        status = cgam_outfile_fail(writer->out, 0);
    } else if (writer->done < writer->size) {
        status = cgam_fail(writer->env, CGAM_E_SHAPE,
                           "%s: %" PRId64 " elements were written; the shape has %" PRId64,
                           cgam_path_tail(writer->path), writer->done, writer->size);
    } else {
        status = cgam_outfile_commit(writer->out);
        writer->out = NULL;
    }
    writer_free(writer);
    return status;
}

void cgam_npy_abandon(cgam_npy_writer *writer) { writer_free(writer); }

cgam_status cgam_npy_write(cgam_env *env, const char *path, cgam_dtype dtype, int ndim,
                           const int64_t *shape, const void *data)
{
    cgam_npy_writer *writer;
    cgam_status status = cgam_npy_begin(env, path, dtype, ndim, shape, &writer);
    if (status != CGAM_OK) return status;
    status = cgam_npy_append(writer, data, writer->size);
    if (status == CGAM_OK) return cgam_npy_finish(writer);
    cgam_npy_abandon(writer);
    return status;
}
