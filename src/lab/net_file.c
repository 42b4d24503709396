/* net_file.c: a network, its start, its clamps and its flow from one JSON document
 * (docs/format/network.md). */
#include "lab/net_file.h"
#include "lab/net_reader.h"
#include "net/net.h"

#include "io/file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "cgam-net/1"

/* What a cgam_net_file owns besides its network. */
typedef struct owner {
    cgam_env *env;
    cgam_clamp *clamps;
    double **values; /* [count] of the clamps */
    int count;
} owner;

void cgam_net_file_close(cgam_net_file *file)
{
    if (!file || !file->owner) return;
    owner *own = file->owner;
    cgam_env *env = own->env;
    cgam_net_free(file->net);
    cgam_free(env, file->x);
    cgam_free(env, file->title);
    for (int i = 0; own->values && i < own->count; i++) cgam_free(env, own->values[i]);
    cgam_free(env, own->values);
    cgam_free(env, own->clamps);
    cgam_free(env, own);
    *file = (cgam_net_file){0};
}

/* ---- layers --------------------------------------------------------------------------------- */

static cgam_status read_shape(const cgam_reader *r, const cgam_place *at, const json_t *list,
                              int *ndim, int64_t *shape)
{
    cgam_place here = {at, "shape", 0};
    if (json_is_integer(list)) {
        *ndim = 1;
        shape[0] = json_integer_value(list);
        return CGAM_OK;
    }
    if (!json_is_array(list) || json_array_size(list) > CGAM_ARRAY_DIMS)
        return cgam_reader_fail(r, &here, CGAM_E_FORMAT,
                                "must be an integer or a list of at most %d", CGAM_ARRAY_DIMS);
    *ndim = (int)json_array_size(list);
    for (int i = 0; i < *ndim; i++) {
        const json_t *size = json_array_get(list, (size_t)i);
        cgam_place there = {&here, NULL, (size_t)i};
        if (!json_is_integer(size))
            return cgam_reader_fail(r, &there, CGAM_E_FORMAT, "must be an integer");
        shape[i] = json_integer_value(size);
    }
    return CGAM_OK;
}

static cgam_status read_layer(const cgam_reader *r, const cgam_place *at, cgam_net *net,
                              const json_t *value)
{
    const char *params[CGAM_LAGR_PARAMS + 1] = {NULL}, *name = NULL;
    cgam_layer_opts o = cgam_layer_opts_default();
    int64_t shape[CGAM_ARRAY_DIMS], axes = 0;
    const json_t *sides = NULL, *unused;
    int ndim = 0;
    o.lagr = cgam_lagrs[0];
    cgam_status status = cgam_read_lagr(r, at, value, &o.lagr);
    for (int i = 0; i < CGAM_LAGR_PARAMS; i++) params[i] = o.lagr->param[i].name;
    if (status == CGAM_OK)
        status = cgam_read_object(r, at, value, params,
                                  "name:s! shape:v scale:f tau:f axes:i lagrangian:v init:v", &name,
                                  &sides, &o.scale, &o.tau, &axes, &unused, &unused);
    if (status == CGAM_OK) status = read_shape(r, at, sides, &ndim, shape);
    if (status == CGAM_OK) status = cgam_read_params(r, at, value, o.lagr, o.param);
    if (status != CGAM_OK) return status;
    o.axes = axes < 0 || axes > CGAM_ARRAY_DIMS ? CGAM_ARRAY_DIMS + 1 : (int)axes;
    return cgam_reader_pass(r, at, cgam_net_add_layer(net, name, ndim, shape, &o, NULL));
}

/* ---- weights -------------------------------------------------------------------------------- */

static cgam_status read_weights(const cgam_reader *r, cgam_net *net, const json_t *table,
                                cgam_named_weights *out)
{
    cgam_place at = {NULL, "weights", 0};
    *out = (cgam_named_weights){0};
    if (!table) return CGAM_OK;
    if (!json_is_object(table))
        return cgam_reader_fail(r, &at, CGAM_E_FORMAT, "must be an object of names");
    out->list = cgam_zalloc(r->env, json_object_size(table) + 1, sizeof *out->list);
    if (!out->list) return cgam_fail_nomem(r->env, "the weights of a network");
    json_t *value;
    const char *key;
    cgam_status status = CGAM_OK;
    json_object_foreach((json_t *)(uintptr_t)table, key, value)
    {
        struct cgam_named_op *entry = &out->list[out->count++];
        cgam_place here = {&at, entry->name = key, 0};
        cgam_extract e;
        status = cgam_extract_read(r, &here, value, &e);
        if (status != CGAM_OK) break;
        entry->ndim = e.ndim;
        memcpy(entry->shape, e.shape, sizeof e.shape);
        status = cgam_extract_op(r, &here, net, &e, &entry->op);
        if (status != CGAM_OK) break;
    }
    return status;
}

/* ---- start and clamps ------------------------------------------------------------------------ */

static cgam_status read_start(const cgam_reader *r, const json_t *layers, cgam_net_file *file)
{
    const cgam_net *net = file->net;
    if (net->size > 1 << 20 && (double)net->size * 8 > 0.5 * (double)cgam_memory_available())
        return cgam_fail(r->env, CGAM_E_NOMEM,
                         "%s: a state of %lld numbers does not fit into memory", r->name,
                         (long long)net->size);
    file->x = cgam_zalloc(r->env, (size_t)net->size, sizeof *file->x);
    if (!file->x) return cgam_fail_nomem(r->env, "the start of a network");
    cgam_place at = {NULL, "layers", 0};
    cgam_status status = CGAM_OK;
    for (int i = 0; i < net->layers && status == CGAM_OK; i++) {
        const json_t *init = json_object_get(json_array_get(layers, (size_t)i), "init");
        if (!init) continue;
        cgam_place layer = {&at, NULL, (size_t)i}, here = {&layer, "init", 0};
        double *values;
        status = cgam_read_numbers(r, &here, init, net->layer[i].size, &values);
        if (status == CGAM_OK)
            memcpy(file->x + net->layer[i].offset, values,
                   (size_t)net->layer[i].size * sizeof *values);
        cgam_free(r->env, values);
    }
    return status;
}

static cgam_status read_clamp(const cgam_reader *r, const cgam_place *at, const cgam_net *net,
                              const json_t *value, cgam_clamp *out, double **values)
{
    cgam_place layer = {at, "layer", 0}, here = {at, "value", 0};
    const json_t *name = NULL, *held = NULL;
    *out = (cgam_clamp){.to = INFINITY};
    cgam_status status = cgam_read_object(r, at, value, NULL, "layer:v! value:v from:f to:f", &name,
                                          &held, &out->from, &out->to);
    if (status == CGAM_OK) status = cgam_read_layer_name(r, &layer, net, name, &out->layer);
    if (status == CGAM_OK && !(out->from >= 0 && out->to > out->from))
        status =
            cgam_reader_fail(r, at, CGAM_E_FORMAT,
                             "from is %g and to is %g; from must be 0 or more, and to above from",
                             out->from, out->to);
    if (status != CGAM_OK || !held) return status;
    status = cgam_read_numbers(r, &here, held, net->layer[out->layer].size, values);
    out->value = *values;
    return status;
}

static cgam_status read_clamps(const cgam_reader *r, const json_t *list, cgam_net_file *file)
{
    owner *own = file->owner;
    cgam_place at = {NULL, "clamps", 0};
    if (!list) return CGAM_OK;
    size_t count = json_array_size(list);
    own->clamps = cgam_zalloc(r->env, count + 1, sizeof *own->clamps);
    own->values = cgam_zalloc(r->env, count + 1, sizeof *own->values);
    if (!own->clamps || !own->values) return cgam_fail_nomem(r->env, "the clamps of a network");
    own->count = (int)count;
    cgam_status status = CGAM_OK;
    for (size_t i = 0; i < count && status == CGAM_OK; i++) {
        cgam_place here = {&at, NULL, i};
        status = read_clamp(r, &here, file->net, json_array_get(list, i), &own->clamps[i],
                            &own->values[i]);
        for (size_t j = 0; j < i && status == CGAM_OK; j++) {
            const cgam_clamp *a = &own->clamps[i], *b = &own->clamps[j];
            if (a->layer == b->layer && a->from < b->to && b->from < a->to)
                status = cgam_reader_fail(r, &here, CGAM_E_FORMAT,
                                          "overlaps clamp %zu of the same layer", j);
        }
    }
    file->flow.clamps = own->clamps;
    file->flow.clamp_count = own->count;
    return status;
}

/* ---- flow ------------------------------------------------------------------------------------ */

static cgam_status read_stop(const cgam_reader *r, const cgam_place *at, const json_t *list,
                             unsigned *stop)
{
    const unsigned stops = CGAM_EVENT_STEADY | CGAM_EVENT_SETTLED | CGAM_EVENT_WINNER;
    if (!list) return CGAM_OK;
    *stop = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        cgam_place here = {at, NULL, i};
        int bit = word ? cgam_word_find(cgam_event_words, word) : -1;
        if (bit < 0 || !(stops & 1u << bit))
            return cgam_reader_fail(r, &here, CGAM_E_FORMAT,
                                    "must be \"steady\", \"settled\" or \"winner\"");
        *stop |= 1u << bit;
    }
    return CGAM_OK;
}

static cgam_status read_flow(const cgam_reader *r, const json_t *value, cgam_net_file *file)
{
    cgam_flow_opts *f = &file->flow;
    cgam_place at = {NULL, "flow", 0};
    const char *method = NULL;
    const json_t *watched = NULL, *stops = NULL;
    if (!value) return CGAM_OK;
    cgam_status status = cgam_read_object(
        r, &at, value, NULL,
        "t_end:+ rtol:+ atol:+ step:+ step_max:0 steady:0 settle:0 energy_tol:0 limit:+ sample:0 "
        "max_steps:i method:s watch:v stop:l",
        &f->t_end, &f->rtol, &f->atol, &f->step, &f->step_max, &f->steady, &f->settle,
        &f->energy_tol, &f->limit, &f->sample, &f->max_steps, &method, &watched, &stops);
    cgam_place here = {&at, "method", 0}, watch = {&at, "watch", 0}, stop = {&at, "stop", 0};
    int found = method ? cgam_word_find(cgam_flow_method_words, method) : (int)f->method;
    if (found >= 0) f->method = (cgam_flow_method)found;
    else if (status == CGAM_OK)
        status = cgam_reader_fail(r, &here, CGAM_E_FORMAT,
                                  "unknown method '%.40s' (valid: auto, adams, bdf, rk4, euler)",
                                  method);
    if (status == CGAM_OK && watched)
        status = cgam_read_layer_name(r, &watch, file->net, watched, &f->watch);
    if (status == CGAM_OK) status = read_stop(r, &stop, stops, &f->stop);
    if (status == CGAM_OK && f->max_steps < 1)
        status = cgam_reader_fail(r, &at, CGAM_E_FORMAT, "max_steps is %lld, it must be at least 1",
                                  (long long)f->max_steps);
    if (status == CGAM_OK && (f->stop & CGAM_EVENT_WINNER) && f->watch < 0)
        status = cgam_reader_fail(r, &stop, CGAM_E_FORMAT,
                                  "stop at a winner requires 'watch', "
                                  "a layer");
    return status;
}

/* ---- the document ---------------------------------------------------------------------------- */

static cgam_status read_net(const cgam_reader *r, const json_t *layers, const json_t *weights,
                            const json_t *synapses, cgam_net_file *file)
{
    cgam_place at = {NULL, "layers", 0};
    if (!json_is_array(layers) || json_array_size(layers) == 0 ||
        json_array_size(layers) > INT_MAX / 2)
        return cgam_reader_fail(r, &at, CGAM_E_FORMAT, "must be a list of layers");
    cgam_status status = cgam_net_new(r->env, &file->net);
    for (size_t i = 0; i < json_array_size(layers) && status == CGAM_OK; i++) {
        cgam_place here = {&at, NULL, i};
        status = read_layer(r, &here, file->net, json_array_get(layers, i));
    }
    cgam_named_weights named = {0};
    if (status == CGAM_OK) status = read_start(r, layers, file);
    if (status == CGAM_OK) status = read_weights(r, file->net, weights, &named);
    cgam_place there = {NULL, "synapses", 0};
    for (size_t i = 0; i < json_array_size(synapses) && status == CGAM_OK; i++) {
        cgam_place here = {&there, NULL, i};
        status = cgam_read_synapse(r, &here, file->net, &named, json_array_get(synapses, i));
    }
    cgam_free(r->env, named.list);
    return status;
}

static cgam_status read_document(const cgam_reader *r, const json_t *doc, cgam_net_file *file)
{
    const char *format = NULL, *title = NULL, *about = NULL;
    const json_t *layers = NULL, *weights = NULL, *synapses = NULL, *clamps = NULL, *flow = NULL;
    cgam_place here = {NULL, "format", 0};
    cgam_status status =
        cgam_read_object(r, NULL, doc, NULL,
                         "format:s! title:s about:s layers:v weights:v synapses:l clamps:l flow:v",
                         &format, &title, &about, &layers, &weights, &synapses, &clamps, &flow);
    if (status == CGAM_OK && strcmp(format, FORMAT) != 0)
        status = cgam_reader_fail(r, &here, CGAM_E_UNSUPPORTED, "'%.40s' is not " FORMAT, format);
    if (status == CGAM_OK && title) {
        file->title = cgam_strdup(r->env, title);
        if (!file->title) status = cgam_fail_nomem(r->env, "a title");
    }
    if (status == CGAM_OK) status = read_net(r, layers, weights, synapses, file);
    if (status == CGAM_OK) status = read_clamps(r, clamps, file);
    if (status == CGAM_OK) status = read_flow(r, flow, file);
    return status;
}

static cgam_status read_all(const cgam_reader *r, const json_t *doc, cgam_net_file *out)
{
    owner *own = cgam_zalloc(r->env, 1, sizeof *own);
    if (!own) return cgam_fail_nomem(r->env, "a network");
    own->env = r->env;
    *out = (cgam_net_file){.owner = own, .flow = cgam_flow_opts_default()};
    cgam_status status = read_document(r, doc, out);
    if (status != CGAM_OK) cgam_net_file_close(out);
    return status;
}

cgam_status cgam_net_file_parse(cgam_env *env, const char *name, const void *bytes, size_t size,
                                const char *dir, cgam_net_file *out)
{
    bool complained = false;
    cgam_reader r = {env, name, dir, &complained};
    json_t *doc;
    *out = (cgam_net_file){0};
    cgam_status status = cgam_json_parse(env, name, bytes, size, &doc);
    if (status == CGAM_OK) status = read_all(&r, doc, out);
    json_decref(doc);
    return status;
}

cgam_status cgam_net_file_open(cgam_env *env, const char *path, cgam_net_file *out)
{
    json_t *doc;
    *out = (cgam_net_file){0};
    cgam_status status = cgam_json_load(env, path, &doc);
    if (status != CGAM_OK) return status;
    const char *slash = strrchr(path, '/');
    char *dir = slash ? cgam_strdup(env, path) : cgam_strdup(env, ".");
    if (dir) {
        if (slash) dir[slash - path + (slash == path)] = '\0';
        bool complained = false;
        cgam_reader r = {env, cgam_path_tail(path), dir, &complained};
        status = read_all(&r, doc, out);
    } else {
        status = cgam_fail_nomem(env, "a path");
    }
    cgam_free(env, dir);
    json_decref(doc);
    return status;
}
