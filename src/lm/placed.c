/* placed.c: writes the header first, then pieces at their offsets. */
#include "lm/placed.h"

#include "base/env.h"
#include "io/npy.h"
#include "io/safetensors.h"

#include <errno.h>
#include <inttypes.h>

struct cgam_placed {
    cgam_env *env;
    cgam_outfile *out;
    char *path;
    int count;
    cgam_layout *layouts; /* [count] */
    uint64_t *begins;     /* [count] in the file */
    int64_t left;         /* elements not yet written */
};

void cgam_placed_abandon(cgam_placed *p)
{
    if (!p) return;
    cgam_outfile_abandon(p->out);
    cgam_free(p->env, p->path);
    cgam_free(p->env, p->layouts);
    cgam_free(p->env, p->begins);
    cgam_free(p->env, p);
}

static cgam_status begin_npy(cgam_placed *p, const char *path)
{
    char header[CGAM_NPY_HEADER_OURS];
    size_t length;
    const char *name = cgam_path_tail(path);
    if (p->count != 1)
        return cgam_fail(p->env, CGAM_E_ARG, "%s: %d arrays need .safetensors", name, p->count);
    cgam_status status = cgam_npy_header(p->env, name, &p->layouts[0], header, &length);
    if (status == CGAM_OK) status = cgam_outfile_begin(p->env, path, &p->out);
    if (status == CGAM_OK) status = cgam_outfile_write(p->out, header, length);
    p->begins[0] = length;
    return status;
}

cgam_status cgam_placed_begin(cgam_env *env, const char *path, int count,
                              const cgam_named_array *arrays, cgam_placed **result)
{
    *result = NULL;
    const char *name = cgam_path_tail(path);
    bool npy = cgam_path_ends(path, ".npy");
    if (!npy && !cgam_path_ends(path, ".safetensors"))
        return cgam_fail(env, CGAM_E_ARG, "%s must end in .npy or .safetensors", name);
    cgam_placed *p = cgam_zalloc(env, 1, sizeof *p);
    if (!p) return cgam_fail_nomem(env, name);
    *p = (cgam_placed){.env = env, .count = count, .path = cgam_strdup(env, path)};
    p->layouts = cgam_alloc(env, (size_t)count, sizeof *p->layouts);
    p->begins = cgam_zalloc(env, (size_t)count, sizeof *p->begins);
    cgam_status status = p->path && p->layouts && p->begins ? CGAM_OK : cgam_fail_nomem(env, name);
    for (int i = 0; i < count && status == CGAM_OK; i++) {
        status = cgam_layout_make(env, name, arrays[i].dtype, arrays[i].ndim, arrays[i].shape,
                                  &p->layouts[i]);
        if (status == CGAM_OK) p->left += p->layouts[i].size;
    }
    if (status == CGAM_OK)
        status =
            npy ? begin_npy(p, path)
                : cgam_safetensors_begin(env, path, count, arrays, p->layouts, p->begins, &p->out);
    if (status == CGAM_OK) *result = p;
    else cgam_placed_abandon(p);
    return status;
}

cgam_status cgam_placed_put(cgam_placed *p, int array, int64_t from, int64_t count,
                            const void *data)
{
    const cgam_layout *layout = &p->layouts[array];
    size_t item = cgam_dtype_size((cgam_dtype)layout->dtype);
    if (from < 0 || count < 0 || count > layout->size - from)
        return cgam_fail(p->env, CGAM_E_SHAPE,
                         "%s: elements from %" PRId64 " on, %" PRId64
                         " of them, do not fit into %" PRId64,
                         cgam_path_tail(p->path), from, count, layout->size);
    off_t at = (off_t)(p->begins[array] + (uint64_t)from * item);
    if (fseeko(cgam_outfile_stream(p->out), at, SEEK_SET) != 0)
        return cgam_outfile_fail(p->out, errno);
    p->left -= count;
    return cgam_outfile_write(p->out, data, (size_t)count * item);
}

cgam_status cgam_placed_finish(cgam_placed *p)
{
    cgam_status status;
    if (p->left != 0)
        status = cgam_fail(p->env, CGAM_E_SHAPE, "%s: %" PRId64 " elements are missing",
                           cgam_path_tail(p->path), p->left);
    else {
        status = cgam_outfile_commit(p->out);
        p->out = NULL;
    }
    cgam_placed_abandon(p);
    return status;
}
