/* safetensors_write.c: writes .safetensors. The header keeps the caller's order; the data are laid
 * out by falling element size after a header padded to 8 bytes, so every array is aligned and can
 * be used where it is mapped. */
#include "base/env.h"
#include "io/json.h"
#include "io/safetensors.h"

#include <stdlib.h>
#include <string.h>

/* Arrays of 8-byte elements come first, then 4, then 2: begins[i] is where arrays[i] starts. */
static void place_arrays(int count, const cgam_layout *layouts, uint64_t *begins)
{
    uint64_t end = 0;
    for (size_t item = 8; item >= 2; item /= 2)
        for (int i = 0; i < count; i++) {
            if (cgam_dtype_size((cgam_dtype)layouts[i].dtype) != item) continue;
            begins[i] = end;
            end += layouts[i].bytes;
        }
}

json_t *cgam_tensor_entry(const char *type, int ndim, const int64_t *shape, uint64_t begin,
                          uint64_t bytes)
{
    json_t *sides = json_array();
    for (int k = 0; k < ndim; k++)
        if (json_array_append_new(sides, json_integer(shape[k])) != 0) {
            json_decref(sides);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", sides, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + bytes));
}

static json_t *describe_array(const cgam_layout *layout, uint64_t begin)
{
    return cgam_tensor_entry(cgam_tensor_type_name((cgam_dtype)layout->dtype), layout->ndim,
                             layout->shape, begin, layout->bytes);
}

static cgam_status build_header(cgam_env *env, const char *name, int count,
                                const cgam_named_array *arrays, const cgam_layout *layouts,
                                const uint64_t *begins, char **text)
{
    json_t *header = json_object();
    cgam_status status = header ? CGAM_OK : cgam_json_nomem(env, name);
    for (int i = 0; i < count && status == CGAM_OK; i++) {
        if (strcmp(arrays[i].name, "__metadata__") == 0)
            status = cgam_fail(env, CGAM_E_ARG, "%s: an array cannot have the name '__metadata__'",
                               name);
        else if (json_object_set_new(header, arrays[i].name,
                                     describe_array(&layouts[i], begins[i])) != 0)
            status = cgam_json_nomem(env, name);
    }
    if (status == CGAM_OK) {
        *text = cgam_json_line(header);
        if (!*text) status = cgam_json_nomem(env, name);
    }
    json_decref(header);
    return status;
}

cgam_status cgam_safetensors_begin(cgam_env *env, const char *path, int count,
                                   const cgam_named_array *arrays, const cgam_layout *layouts,
                                   uint64_t *begins, cgam_outfile **out)
{
    const char *name = cgam_path_tail(path);
    char *header = NULL;
    *out = NULL;
    place_arrays(count, layouts, begins);
    cgam_status status = build_header(env, name, count, arrays, layouts, begins, &header);
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, out);
    if (status != CGAM_OK) {
        free(header);
        return status;
    }
    size_t length = strlen(header), padded = (length + 7) / 8 * 8;
    uint64_t prefix = padded;
    status = cgam_outfile_write(*out, &prefix, sizeof prefix);
    if (status == CGAM_OK) status = cgam_outfile_write(*out, header, length);
    if (status == CGAM_OK) status = cgam_outfile_write(*out, "       ", padded - length);
    for (int i = 0; i < count; i++) begins[i] += sizeof prefix + padded;
    free(header);
    if (status == CGAM_OK) return CGAM_OK;
    cgam_outfile_abandon(*out);
    *out = NULL;
    return status;
}

static cgam_status write_arrays(cgam_outfile *out, int count, const cgam_named_array *arrays,
                                const cgam_layout *layouts)
{
    cgam_status status = CGAM_OK;
    for (size_t item = 8; item >= 2; item /= 2)
        for (int i = 0; i < count && status == CGAM_OK; i++)
            if (cgam_dtype_size((cgam_dtype)layouts[i].dtype) == item)
                status = cgam_outfile_write(out, arrays[i].data, (size_t)layouts[i].bytes);
    return status;
}

cgam_status cgam_safetensors_write(cgam_env *env, const char *path, int count,
                                   const cgam_named_array *arrays, const cgam_layout *layouts)
{
    cgam_outfile *out;
    uint64_t *begins = cgam_alloc(env, (size_t)count, sizeof *begins);
    if (!begins) return cgam_fail_nomem(env, cgam_path_tail(path));
    cgam_status status = cgam_safetensors_begin(env, path, count, arrays, layouts, begins, &out);
    if (status == CGAM_OK) status = write_arrays(out, count, arrays, layouts);
    if (status == CGAM_OK) status = cgam_outfile_commit(out);
    else cgam_outfile_abandon(out);
    cgam_free(env, begins);
    return status;
}
