/* net_synapse.c: synapses of a JSON document, one function a kind. */
#include "lab/net_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A synapse under construction, shared by the functions below. */
typedef struct draft {
    const cgam_reader *r;
    const cgam_place *at;
    cgam_net *net;
    const cgam_named_weights *named;
    const json_t *value;
    const char *name;
    int k, layers[SLOTS];
    double gain;
    /* members of some kinds; NULL or the default if absent */
    const json_t *weights, *factors, *query_weights, *key_weights, *kernels;
    bool zero_diagonal;
    cgam_attention_opts attention;
    cgam_conv conv;
} draft;

static int64_t layer_size(const draft *d, int slot) { return d->net->layer[d->layers[slot]].size; }

/* Weights at a place: the name of a table entry, or numbers. *shape may be NULL. */
static cgam_status read_weights_at(draft *d, const cgam_place *at, const json_t *value,
                                   const cgam_op **out, int *ndim, int64_t *shape)
{
    *out = NULL;
    if (json_is_string(value)) {
        for (int i = 0; i < d->named->count; i++) {
            const struct cgam_named_op *entry = &d->named->list[i];
            if (strcmp(entry->name, json_string_value(value)) != 0) continue;
            *out = entry->op;
            if (ndim) *ndim = entry->ndim;
            if (shape) memcpy(shape, entry->shape, sizeof entry->shape);
            return CGAM_OK;
        }
        return cgam_reader_fail(d->r, at, CGAM_E_FORMAT, "no weights named '%.80s'",
                                json_string_value(value));
    }
    cgam_extract e;
    cgam_status status = cgam_extract_read(d->r, at, value, &e);
    if (status != CGAM_OK) return status;
    if (ndim) *ndim = e.ndim;
    if (shape) memcpy(shape, e.shape, sizeof e.shape);
    return cgam_extract_op(d->r, at, d->net, &e, out);
}

/* Fails if the member is absent. */
static cgam_status check_given(const draft *d, const char *key, const json_t *value)
{
    if (value) return CGAM_OK;
    return cgam_reader_fail(d->r, d->at, CGAM_E_FORMAT, "'%s' is missing", key);
}

static cgam_status read_weights(draft *d, const cgam_op **out, int *ndim, int64_t *shape)
{
    cgam_place here = {d->at, "weights", 0};
    cgam_status status = check_given(d, "weights", d->weights);
    return status == CGAM_OK ? read_weights_at(d, &here, d->weights, out, ndim, shape) : status;
}

/* `size` numbers at a key (a single number fills them all). */
static cgam_status read_numbers(draft *d, const char *key, const json_t *value, int64_t size,
                                double **out)
{
    cgam_place here = {d->at, key, 0};
    cgam_status status = check_given(d, key, value);
    return status == CGAM_OK ? cgam_read_numbers(d->r, &here, value, size, out) : status;
}

/* bilinear and self */
static cgam_status read_product(draft *d)
{
    const cgam_op *W = NULL;
    cgam_status status = read_weights(d, &W, NULL, NULL);
    if (status != CGAM_OK) return status;
    return d->k == 2
               ? cgam_net_add_bilinear(d->net, d->name, d->layers[0], d->layers[1], W, d->gain)
               : cgam_net_add_self(d->net, d->name, d->layers[0], W, d->gain);
}

static cgam_status read_gram(draft *d)
{
    const cgam_op *Z = NULL;
    double *diagonal = NULL;
    cgam_env *env = d->r->env;
    cgam_status status = read_weights(d, &Z, NULL, NULL);
    if (status == CGAM_OK && d->zero_diagonal) {
        diagonal = cgam_alloc(env, (size_t)Z->rows, sizeof *diagonal);
        if (!diagonal) return cgam_fail_nomem(env, "a synapse");
        status = cgam_net_dense_norm2(d->net, Z, diagonal);
    }
    if (status == CGAM_OK)
        status = cgam_net_add_gram(d->net, d->name, d->layers[0], Z, d->gain, diagonal);
    if (status == CGAM_OK && d->zero_diagonal) d->net->synapse[d->net->synapses - 1].follows = true;
    cgam_free(env, diagonal);
    return status;
}

static cgam_status read_coupling(draft *d)
{
    return cgam_net_add_coupling(d->net, d->name, d->layers[0], d->layers[1], d->gain);
}

static cgam_status read_bias(draft *d)
{
    double *a = NULL;
    cgam_status status = read_numbers(d, "weights", d->weights, layer_size(d, 0), &a);
    if (status == CGAM_OK) status = cgam_net_add_bias(d->net, d->name, d->layers[0], a, d->gain);
    cgam_free(d->r->env, a);
    return status;
}

static cgam_status read_tensor(draft *d)
{
    const cgam_op *T = NULL;
    int ndim = 0;
    int64_t shape[CGAM_ARRAY_DIMS] = {0};
    cgam_status status = read_weights(d, &T, &ndim, shape);
    if (status != CGAM_OK) return status;
    cgam_place here = {d->at, "weights", 0};
    for (int i = 0; i < d->k; i++)
        if (ndim != d->k || shape[i] != layer_size(d, i))
            return cgam_reader_fail(d->r, &here, CGAM_E_SHAPE,
                                    "%d dimensions; dimension %d must be %lld like layer '%s'",
                                    ndim, i, (long long)layer_size(d, i),
                                    d->net->layer[d->layers[i]].name);
    return cgam_net_add_tensor(d->net, d->name, d->k, d->layers, T, d->gain);
}

static cgam_status read_lowrank(draft *d)
{
    const cgam_op *U[SLOTS] = {NULL};
    cgam_place here = {d->at, "factors", 0};
    double *w = NULL;
    if (!json_is_array(d->factors) || (int)json_array_size(d->factors) != d->k)
        return cgam_reader_fail(d->r, &here, CGAM_E_FORMAT, "must be a list of %d factors", d->k);
    cgam_status status = CGAM_OK;
    for (int i = 0; i < d->k && status == CGAM_OK; i++) {
        cgam_place there = {&here, NULL, (size_t)i};
        status =
            read_weights_at(d, &there, json_array_get(d->factors, (size_t)i), &U[i], NULL, NULL);
    }
    if (status == CGAM_OK && U[0] && d->weights)
        status = read_numbers(d, "weights", d->weights, U[0]->rows, &w);
    if (status == CGAM_OK)
        status = cgam_net_add_lowrank(d->net, d->name, d->k, d->layers, U, w, d->gain);
    cgam_free(d->r->env, w);
    return status;
}

static cgam_status read_hidden(draft *d)
{
    const cgam_op *W = NULL;
    const cgam_lagr *lagr = cgam_lagrs[0];
    double param[CGAM_LAGR_PARAMS];
    cgam_status status = cgam_read_lagr(d->r, d->at, d->value, &lagr);
    if (status == CGAM_OK) status = cgam_read_params(d->r, d->at, d->value, lagr, param);
    if (status == CGAM_OK) status = read_weights(d, &W, NULL, NULL);
    if (status != CGAM_OK) return status;
    return cgam_net_add_hidden(d->net, d->name, d->layers[0], W, lagr, param, d->gain);
}

static cgam_status read_attention(draft *d)
{
    cgam_attention_opts o = d->attention;
    double *WQ = NULL, *WK = NULL;
    cgam_status status = CGAM_OK;
    if (o.width == 0 && (d->query_weights || d->key_weights))
        return cgam_reader_fail(d->r, d->at, CGAM_E_FORMAT, "projections need a 'width'");
    if (o.width != 0) {
        const cgam_layer *x = &d->net->layer[d->layers[0]], *y = &d->net->layer[d->layers[1]];
        int64_t dx = x->ndim > 0 ? x->shape[x->ndim - 1] : 1;
        int64_t dy = y->ndim > 0 ? y->shape[y->ndim - 1] : 1;
        if (o.width < 1 || o.width > 1 << 20 || o.heads < 1 || o.heads > 1 << 16 ||
            o.heads * o.width > (INT64_C(1) << 40) / (dx > dy ? dx : dy))
            return cgam_reader_fail(d->r, d->at, CGAM_E_FORMAT,
                                    "unsupported size: %lld heads of width %lld",
                                    (long long)o.heads, (long long)o.width);
        status = read_numbers(d, "query_weights", d->query_weights, o.heads * o.width * dx, &WQ);
        if (status == CGAM_OK)
            status = read_numbers(d, "key_weights", d->key_weights, o.heads * o.width * dy, &WK);
        o.WQ = WQ;
        o.WK = WK;
    }
    if (status == CGAM_OK)
        status = cgam_net_add_attention(d->net, d->name, d->layers[0], d->layers[1], &o, d->gain);
    cgam_free(d->r->env, WQ);
    cgam_free(d->r->env, WK);
    return status;
}

/* A bilinear synapse whose weights are a convolution from the second layer to the first. */
static cgam_status read_convolution(draft *d)
{
    const cgam_layer *to = &d->net->layer[d->layers[0]], *from = &d->net->layer[d->layers[1]];
    cgam_place here = {d->at, "kernels", 0};
    cgam_conv c = d->conv;
    const cgam_op *op = NULL;
    cgam_extract e = {0};
    double *kernels = NULL;
    if (from->ndim != 3 || to->ndim != 3)
        return cgam_reader_fail(d->r, d->at, CGAM_E_SHAPE,
                                "layers '%s' and '%s' must be images: height, width, channels",
                                to->name, from->name);
    cgam_status status = check_given(d, "kernels", d->kernels);
    if (status == CGAM_OK) status = cgam_extract_read(d->r, &here, d->kernels, &e);
    if (status == CGAM_OK &&
        (e.ndim != 4 || e.shape[0] != to->shape[2] || e.shape[1] != from->shape[2]))
        status = cgam_reader_fail(d->r, &here, CGAM_E_SHAPE,
                                  "must be %lld x %lld x height x width, like the channels of the "
                                  "layers",
                                  (long long)to->shape[2], (long long)from->shape[2]);
    if (status == CGAM_OK) {
        c.height = from->shape[0];
        c.width = from->shape[1];
        c.in_channels = from->shape[2];
        c.out_channels = e.shape[0];
        c.kernel_height = e.shape[2];
        c.kernel_width = e.shape[3];
        status = cgam_extract_fill(d->r, &here, &e, e.size, &kernels);
    }
    if (status == CGAM_OK) status = cgam_net_conv(d->net, &c, kernels, &op);
    if (status == CGAM_OK)
        status = cgam_net_add_bilinear(d->net, d->name, d->layers[0], d->layers[1], op, d->gain);
    cgam_free(d->r->env, kernels);
    cgam_extract_free(d->r->env, &e);
    return status;
}

static const struct kind {
    const char *name;
    int min, max;
    cgam_status (*read)(draft *d);
    const char *keys[9];
} kinds[] = {
    {"bilinear", 2, 2, read_product, {"weights"}},
    {"self", 1, 1, read_product, {"weights"}},
    {"gram", 1, 1, read_gram, {"weights", "zero_diagonal"}},
    {"coupling", 2, 2, read_coupling, {NULL}},
    {"bias", 1, 1, read_bias, {"weights"}},
    {"tensor", 2, SLOTS, read_tensor, {"weights"}},
    {"lowrank", 1, SLOTS, read_lowrank, {"factors", "weights"}},
    {"hidden",
     1,
     1,
     read_hidden,
     {"weights", "lagrangian", "beta", "power", "gamma", "delta", "epsilon", "order"}},
    {"attention",
     2,
     2,
     read_attention,
     {"beta", "heads", "width", "query_weights", "key_weights", "exclude_self"}},
    {"convolution", 2, 2, read_convolution, {"kernels", "stride_y", "stride_x", "same"}},
};

static cgam_status read_layers(draft *d, const struct kind *kind, const json_t *list)
{
    cgam_place here = {d->at, "layers", 0};
    if (!json_is_array(list) || (int)json_array_size(list) < kind->min ||
        (int)json_array_size(list) > kind->max)
        return cgam_reader_fail(d->r, &here, CGAM_E_FORMAT, "a %s synapse joins %d%s%s layers",
                                kind->name, kind->min, kind->max > kind->min ? " to " : "",
                                kind->max > kind->min ? "8" : "");
    cgam_status status = CGAM_OK;
    for (size_t i = 0; i < json_array_size(list) && status == CGAM_OK; i++) {
        cgam_place there = {&here, NULL, i};
        status = cgam_read_layer_name(d->r, &there, d->net, json_array_get(list, i), &d->layers[i]);
    }
    d->k = (int)json_array_size(list);
    return status;
}

cgam_status cgam_read_synapse(const cgam_reader *r, const cgam_place *at, cgam_net *net,
                              const cgam_named_weights *named, const json_t *value)
{
    const struct kind *kind = NULL;
    const char *word = NULL;
    const json_t *layers = NULL;
    char own[48];
    draft d = {.r = r, .at = at, .net = net, .named = named, .value = value, .name = own};
    d.gain = 1;
    d.zero_diagonal = true;
    d.attention = cgam_attention_opts_default();
    d.conv = (cgam_conv){.stride_y = 1, .stride_x = 1};
    if (!json_is_object(value)) return cgam_read_object(r, at, value, NULL, "");
    cgam_status status = cgam_read_members(r, at, value, "kind:s!", &word);
    if (status != CGAM_OK) return status;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, word) == 0) kind = &kinds[i];
    cgam_place here = {at, "kind", 0};
    if (!kind)
        return cgam_reader_fail(r, &here, CGAM_E_FORMAT, "unknown synapse kind '%.40s'", word);
    snprintf(own, sizeof own, "%.20s %zu", kind->name, at->index);
    status = cgam_read_object(r, at, value, kind->keys, "kind:s name:s layers:v gain:f", &word,
                              &d.name, &layers, &d.gain);
    if (status == CGAM_OK) status = read_layers(&d, kind, layers);
    if (status == CGAM_OK)
        status = cgam_read_members(
            r, at, value,
            "weights:v factors:v zero_diagonal:b beta:f heads:i width:i query_weights:v key_weights:v "
            "exclude_self:b kernels:v stride_y:i stride_x:i same:b",
            &d.weights, &d.factors, &d.zero_diagonal, &d.attention.beta, &d.attention.heads,
            &d.attention.width, &d.query_weights, &d.key_weights, &d.attention.exclude_self,
            &d.kernels, &d.conv.stride_y, &d.conv.stride_x, &d.conv.same);
    if (status != CGAM_OK) return status;
    *r->complained = false;
    status = kind->read(&d);
    return *r->complained ? status : cgam_reader_pass(r, at, status);
}
