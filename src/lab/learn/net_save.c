/* net_save.c: a network's document with learned parameters: weights become references to a file beside it. */
#include "lab/learn/net_save.h"

#include "base/alloc.h"
#include "io/array.h"
#include "io/file.h"
#include "lab/net_reader.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The member of a synapse that holds a block, and the object or list that it is in. */
typedef struct spot {
    json_t *owner;
    const char *key; /* of an object; NULL: element `index` of a list */
    size_t index;
} spot;

static json_t *value_at(const spot *s)
{
    return s->key ? json_object_get(s->owner, s->key) : json_array_get(s->owner, s->index);
}

/* Weights may be the name of an entry of the document's table. */
static spot find_spot(const json_t *doc, const cgam_net *net, const cgam_block *b)
{
    json_t *synapse = json_array_get(json_object_get(doc, "synapses"), (size_t)b->part);
    spot s = {synapse, "weights", 0};
    const cgam_syn *syn = &net->synapse[b->part];
    int64_t kernels;
    if (b->kind == CGAM_LEARNED_QUERIES) s.key = "query_weights";
    else if (b->kind == CGAM_LEARNED_KEYS) s.key = "key_weights";
    else if (b->kind == CGAM_LEARNED_WEIGHTS && cgam_net_conv_kernels(b->op, &kernels))
        s.key = "kernels";
    else if (b->kind == CGAM_LEARNED_WEIGHTS && syn->kind == &cgam_syn_lowrank) {
        s = (spot){json_object_get(synapse, "factors"), NULL, 0};
        while (syn->op[s.index] != b->op) s.index++;
    }
    const json_t *value = value_at(&s);
    json_t *table = json_object_get(doc, "weights");
    if (json_is_string(value)) s = (spot){table, json_string_value(value), 0};
    return s;
}

bool cgam_net_block_unit(const json_t *doc, const cgam_net *net, const cgam_block *b)
{
    if (b->kind != CGAM_LEARNED_WEIGHTS) return false;
    spot s = find_spot(doc, net, b);
    return json_is_true(json_object_get(value_at(&s), "normalize"));
}

static void folder_of(const char *path, char out[PATH_MAX])
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + (slash == path) : 1;
    snprintf(dir, sizeof dir, "%.*s", length, slash ? path : ".");
    if (!realpath(dir, out)) snprintf(out, PATH_MAX, "%s", dir);
}

cgam_status cgam_net_block_raw(cgam_env *env, const char *from, const json_t *doc,
                               const cgam_net *net, const cgam_block *b, double *out)
{
    char folder[PATH_MAX];
    bool complained = false;
    double *values = NULL;
    cgam_reader r = {env, cgam_path_tail(from), folder, &complained};
    cgam_place at = {NULL, "weights", 0};
    spot s = find_spot(doc, net, b);
    json_t *plain = json_copy(value_at(&s));
    if (!plain) return cgam_fail_nomem(env, "weights");
    folder_of(from, folder);
    json_object_del(plain, "normalize");
    cgam_status status = cgam_read_numbers(&r, &at, plain, b->rows * b->cols, &values);
    if (status == CGAM_OK) memcpy(out, values, (size_t)(b->rows * b->cols) * sizeof *out);
    cgam_free(env, values);
    json_decref(plain);
    return status;
}

/* Numbers that are members of their part. */
static void put_number(json_t *doc, const cgam_net *net, const cgam_block *b)
{
    bool layer = b->kind == CGAM_LEARNED_LAYER;
    json_t *part =
        json_array_get(json_object_get(doc, layer ? "layers" : "synapses"), (size_t)b->part);
    const char *key = strrchr(b->name, '.') + 1;
    (void)net;
    json_object_set_new(part, key, json_real(*b->data));
}

/* The shape in the file, of the kind of synapse. */
static int shape_of(const cgam_net *net, const cgam_block *b, const json_t *value, int64_t *shape)
{
    const cgam_syn *syn = &net->synapse[b->part];
    int64_t kernels;
    if (b->kind == CGAM_LEARNED_VECTOR) {
        shape[0] = b->cols;
        return 1;
    }
    if (b->kind == CGAM_LEARNED_WEIGHTS && syn->kind == &cgam_syn_tensor) {
        memcpy(shape, syn->size, (size_t)syn->k * sizeof *shape);
        return syn->k;
    }
    if (b->kind == CGAM_LEARNED_QUERIES || b->kind == CGAM_LEARNED_KEYS) {
        shape[0] = syn->attention->opts.heads;
        shape[1] = syn->attention->opts.width;
        shape[2] = b->cols;
        return 3;
    }
    if (b->kind == CGAM_LEARNED_WEIGHTS && cgam_net_conv_kernels(b->op, &kernels)) {
        (void)value;
        return cgam_net_conv_shape(b->op, shape);
    }
    shape[0] = b->rows;
    shape[1] = b->cols;
    return 2;
}

/* Paths relative to the old document become whole ones, where the new one is in another folder. */
static void move_files(json_t *value, const char *folder)
{
    const char *key;
    json_t *one;
    size_t i;
    char path[PATH_MAX];
    if (json_is_array(value)) json_array_foreach(value, i, one) move_files(one, folder);
    if (!json_is_object(value)) return;
    json_object_foreach(value, key, one)
    {
        const char *file = json_string_value(one);
        if (!file || strcmp(key, "file") != 0 || file[0] == '/') move_files(one, folder);
        else if (snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path)
            json_string_set(one, path);
    }
}

bool cgam_net_save_weights(const char *out, char *text, size_t size)
{
    size_t length = strlen(out);
    if (length > 5 && strcmp(out + length - 5, ".json") == 0) length -= 5;
    return snprintf(text, size, "%.*s.safetensors", (int)length, out) < (int)size;
}

/* Puts all blocks into the document and its list of arrays. */
static cgam_status put_blocks(cgam_env *env, json_t *doc, const cgam_net_params *p,
                              const char *weights, cgam_named_array *arrays, char (*names)[80],
                              int64_t (*shapes)[CGAM_ARRAY_DIMS], int *count)
{
    const char *tail = cgam_path_tail(weights);
    for (int i = 0; i < p->blocks; i++) {
        const cgam_block *b = &p->block[i];
        bool number = b->kind == CGAM_LEARNED_BETA || b->kind == CGAM_LEARNED_LAGR ||
                      b->kind == CGAM_LEARNED_GAIN || b->kind == CGAM_LEARNED_LAYER;
        if (number) {
            put_number(doc, p->net, b);
            continue;
        }
        char reference[PATH_MAX];
        spot s = find_spot(doc, p->net, b);
        bool unit = cgam_net_block_unit(doc, p->net, b);
        snprintf(names[*count], sizeof names[0], "%d", *count);
        int ndim = shape_of(p->net, b, value_at(&s), shapes[*count]);
        arrays[*count] = (cgam_named_array){names[*count], CGAM_F64, ndim, shapes[*count], b->data};
        snprintf(reference, sizeof reference, "%s:%s", tail, names[*count]);
        json_t *value = json_object();
        json_object_set_new(value, "file", json_string(reference));
        if (unit) json_object_set_new(value, "normalize", json_true());
        int failed = s.key ? json_object_set_new(s.owner, s.key, value)
                           : json_array_set_new(s.owner, s.index, value);
        if (failed) return cgam_fail_nomem(env, "a document");
        ++*count;
    }
    return CGAM_OK;
}

cgam_status cgam_net_save(cgam_env *env, const char *from, const json_t *doc,
                          const cgam_net_params *p, const char *out)
{
    char weights[PATH_MAX], old_folder[PATH_MAX], new_folder[PATH_MAX];
    cgam_named_array *arrays = NULL;
    char(*names)[80] = NULL;
    int64_t(*shapes)[CGAM_ARRAY_DIMS] = NULL;
    int count = 0;
    cgam_outfile *file = NULL;
    if (!cgam_net_save_weights(out, weights, sizeof weights))
        return cgam_fail(env, CGAM_E_ARG, "out: a path of %zu bytes", strlen(out));
    json_t *copy = json_deep_copy(doc);
    if (!copy) return cgam_fail_nomem(env, "a document");
    folder_of(from, old_folder);
    folder_of(out, new_folder);
    if (strcmp(old_folder, new_folder) != 0) move_files(copy, old_folder);
    cgam_status status =
        cgam_alloc_all(env, "learned weights", CGAM_ARRAY(arrays, p->blocks),
                       CGAM_ARRAY(names, p->blocks), CGAM_ARRAY(shapes, p->blocks));
    if (status == CGAM_OK)
        status = put_blocks(env, copy, p, weights, arrays, names, shapes, &count);
    if (status == CGAM_OK && count > 0) status = cgam_arrays_write(env, weights, count, arrays);
    if (status == CGAM_OK) status = cgam_outfile_begin(env, out, &file);
    if (status == CGAM_OK) {
        bool fine = cgam_json_write(cgam_outfile_stream(file), copy, 2);
        fine = fputc('\n', cgam_outfile_stream(file)) != EOF && fine;
        (void)fine; /* the commit reports a failed write */
        status = cgam_outfile_commit(file);
    }
    cgam_free_all(env, arrays, names, shapes);
    json_decref(copy);
    return status;
}
