/* net.c: builds a network and describes it. */
#include "net/net.h"

#include "base/blas.h"
#include "io/array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const cgam_synapse_info cgam_synapse_kinds[] = {
    {"bilinear", "-gain x'Wy", 2, 2},
    {"self", "gain/2 x'Wx", 1, 1},
    {"gram", "gain/2 x'(ZZ' - diag)x", 1, 1},
    {"coupling", "-gain x'y", 2, 2},
    {"bias", "-gain a'x", 1, 1},
    {"tensor", "-gain sum T[i..] x[i] y[j] ..", 2, SLOTS},
    {"lowrank", "-gain sum w[r] <U[r],x> <V[r],y> ..", 1, SLOTS},
    {"hidden", "-gain L(Wx)", 1, 1},
    {"attention", "-gain/beta sum lse(beta <query,key>)", 2, 2},
    {"user", "a function of your own", 1, SLOTS},
    {NULL, NULL, 0, 0},
};

cgam_status cgam_net_new(cgam_env *env, cgam_net **out)
{
    *out = NULL;
    cgam_status status = cgam_blas_check_space(env);
    if (status != CGAM_OK) return status;
    *out = cgam_zalloc(env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "a network");
    (*out)->env = env;
    return CGAM_OK;
}

static void synapse_clear(cgam_env *env, cgam_syn *s)
{
    if (s->kind == &cgam_syn_user && s->table.free && s->user) s->table.free(s->user);
    if (s->attention) {
        cgam_free(env, (void *)(uintptr_t)s->attention->opts.WQ);
        cgam_free(env, (void *)(uintptr_t)s->attention->opts.WK);
    }
    cgam_free(env, s->attention);
    cgam_free(env, s->vector);
    cgam_free(env, s->name);
    *s = (cgam_syn){0};
}

void cgam_net_free(cgam_net *net)
{
    if (!net) return;
    cgam_env *env = net->env;
    for (int i = 0; i < net->layers; i++) cgam_free(env, net->layer[i].name);
    for (int i = 0; i < net->synapses; i++) synapse_clear(env, &net->synapse[i]);
    while (net->kept) {
        cgam_kept *kept = net->kept;
        net->kept = kept->next;
        kept->free(env, kept->thing);
        cgam_free(env, kept);
    }
    cgam_free(env, net->layer);
    cgam_free(env, net->synapse);
    cgam_free(env, net);
}

cgam_status cgam_net_keep(cgam_net *net, void (*release)(cgam_env *, void *), void *thing)
{
    cgam_kept *kept = cgam_alloc(net->env, 1, sizeof *kept);
    if (!kept) {
        release(net->env, thing);
        return cgam_fail_nomem(net->env, "a network");
    }
    *kept = (cgam_kept){net->kept, release, thing};
    net->kept = kept;
    return CGAM_OK;
}

/* Grows *items to hold one more; capacity doubles. */
static cgam_status grow_list(cgam_env *env, void **items, size_t item, int count, int *capacity)
{
    if (count < *capacity) return CGAM_OK;
    int more = *capacity ? 2 * *capacity : 4;
    void *grown = cgam_zalloc(env, (size_t)more, item);
    if (!grown) return cgam_fail_nomem(env, "a network");
    if (*items) memcpy(grown, *items, (size_t)count * item);
    cgam_free(env, *items);
    *items = grown;
    *capacity = more;
    return CGAM_OK;
}

static cgam_status check_name(const cgam_net *net, const char *what, const char *name)
{
    if (!name || !*name) return cgam_fail(net->env, CGAM_E_ARG, "a %s needs a name", what);
    for (size_t i = 0; name[i]; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127)
            return cgam_fail(net->env, CGAM_E_ARG,
                             "the name of a %s has a control character, %d at byte %zu", what,
                             name[i], i);
    for (int i = 0; i < net->layers + net->synapses; i++)
        if (strcmp(cgam_net_part_name(net, i), name) == 0)
            return cgam_fail(net->env, CGAM_E_ARG, "%s '%s': the name is already used", what, name);
    return CGAM_OK;
}

/* ---- layers ------------------------------------------------------------------------------- */

cgam_layer_opts cgam_layer_opts_default(void)
{
    cgam_layer_opts opts = {.scale = 1, .tau = 1};
    for (int i = 0; i < CGAM_LAGR_PARAMS; i++) opts.param[i] = NAN;
    return opts;
}

static cgam_status measure_layer(cgam_net *net, const char *name, int ndim, const int64_t *shape,
                                 cgam_layer *layer)
{
    char text[CGAM_SHAPE_TEXT];
    if (ndim < 0 || ndim > CGAM_ARRAY_DIMS)
        return cgam_fail(net->env, CGAM_E_SHAPE, "layer '%s': %d dimensions (at most %d)", name,
                         ndim, CGAM_ARRAY_DIMS);
    layer->ndim = ndim;
    layer->size = 1;
    for (int i = 0; i < ndim; i++) {
        layer->shape[i] = shape[i];
        /* 2^40 numbers are 8 TiB, and products of two such sizes do not overflow anywhere */
        if (shape[i] < 1 || shape[i] > (INT64_C(1) << 40) / layer->size)
            return cgam_fail(net->env, CGAM_E_SHAPE,
                             "layer '%s': shape %s is empty or beyond 2^40 numbers", name,
                             cgam_shape_text(ndim, shape, text));
        layer->size *= shape[i];
    }
    layer->offset = net->size;
    if (net->size + layer->size > INT64_C(1) << 40)
        return cgam_fail(net->env, CGAM_E_SHAPE, "layer '%s': the state grows beyond 2^40 numbers",
                         name);
    return CGAM_OK;
}

cgam_status cgam_net_add_layer(cgam_net *net, const char *name, int ndim, const int64_t *shape,
                               const cgam_layer_opts *opts, int *index)
{
    cgam_env *env = net->env;
    cgam_layer_opts o = opts ? *opts : cgam_layer_opts_default();
    const cgam_lagr *lagr = o.lagr ? o.lagr : &cgam_lagr_identity;
    cgam_layer layer = {.tau = o.tau};
    char where[160];
    cgam_status status = check_name(net, "layer", name);
    if (status == CGAM_OK) status = measure_layer(net, name, ndim, shape, &layer);
    if (status != CGAM_OK) return status;
    snprintf(where, sizeof where, "layer '%.128s'", name);
    if (!(o.tau > 0) || !isfinite(o.tau))
        return cgam_fail(env, CGAM_E_ARG, "%s: tau is %g, it must be above 0", where, o.tau);
    if (o.axes < 0 || o.axes > ndim)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: axes is %d, the layer has %d", where, o.axes,
                         ndim);
    int64_t width = layer.size;
    if (o.axes > 0 && !lagr->elementwise) {
        width = 1;
        for (int i = ndim - o.axes; i < ndim; i++) width *= layer.shape[i];
    }
    status = cgam_lagr_use_make(env, where, lagr, o.param, o.scale, layer.size / width, width,
                                &layer.use);
    if (status == CGAM_OK)
        status = grow_list(env, (void **)&net->layer, sizeof *net->layer, net->layers,
                           &net->layers_capacity);
    if (status != CGAM_OK) return status;
    layer.name = cgam_strdup(env, name);
    if (!layer.name) return cgam_fail_nomem(env, "a layer");
    net->layer[net->layers] = layer;
    net->size += layer.size;
    if (index) *index = net->layers;
    net->layers++;
    return CGAM_OK;
}

/* ---- synapses ----------------------------------------------------------------------------- */

cgam_status cgam_net_begin(cgam_net *net, const cgam_syn_kind *kind, const char *name, int k,
                           const int *layers, double gain, cgam_syn **out)
{
    cgam_env *env = net->env;
    cgam_status status = check_name(net, "synapse", name);
    if (status != CGAM_OK) return status;
    if (k < 1 || k > SLOTS)
        return cgam_fail(env, CGAM_E_ARG,
                         "synapse '%s': %d layers, their number must be from 1 to %d", name, k,
                         SLOTS);
    for (int i = 0; i < k; i++)
        if (layers[i] < 0 || layers[i] >= net->layers)
            return cgam_fail(env, CGAM_E_ARG, "synapse '%s': no layer %d (there are %d)", name,
                             layers[i], net->layers);
    if (!isfinite(gain))
        return cgam_fail(env, CGAM_E_ARG, "synapse '%s': gain is %g, it must be finite", name,
                         gain);
    status = grow_list(env, (void **)&net->synapse, sizeof *net->synapse, net->synapses,
                       &net->synapses_capacity);
    if (status != CGAM_OK) return status;
    cgam_syn *s = &net->synapse[net->synapses];
    *s = (cgam_syn){.kind = kind, .k = k, .gain = gain, .name = cgam_strdup(env, name)};
    if (!s->name) return cgam_fail_nomem(env, "a synapse");
    for (int i = 0; i < k; i++) {
        s->layer[i] = layers[i];
        s->size[i] = net->layer[layers[i]].size;
    }
    *out = s;
    return CGAM_OK;
}

cgam_status cgam_net_end(cgam_net *net, cgam_status status)
{
    if (status == CGAM_OK) net->synapses++;
    else synapse_clear(net->env, &net->synapse[net->synapses]);
    return status;
}

cgam_status cgam_syn_vector(cgam_net *net, cgam_syn *s, const double *from, int64_t n)
{
    s->vector = cgam_alloc(net->env, (size_t)n, sizeof *s->vector);
    if (!s->vector) return cgam_fail_nomem(net->env, "a synapse");
    for (int64_t i = 0; i < n; i++) {
        s->vector[i] = from[i];
        if (!isfinite(from[i]))
            return cgam_fail(net->env, CGAM_E_VALUE, "synapse '%s': number %lld is not finite",
                             s->name, (long long)i);
    }
    return CGAM_OK;
}

cgam_status cgam_net_check_states(const cgam_net *net, const char *what, int64_t batch,
                                  const double *x)
{
    for (int64_t b = 0; b < batch; b++)
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            for (int64_t j = 0; j < layer->size; j++)
                if (!isfinite(x[b * net->size + layer->offset + j]))
                    return cgam_fail(net->env, CGAM_E_VALUE,
                                     "%s %lld: layer '%s', number %lld is not finite", what,
                                     (long long)b, layer->name, (long long)j);
        }
    return CGAM_OK;
}

/* ---- what it is --------------------------------------------------------------------------- */

int cgam_net_synapses(const cgam_net *net) { return net->synapses; }

cgam_net_info cgam_net_describe(const cgam_net *net)
{
    return (cgam_net_info){net->layers, net->layers + net->synapses, net->size};
}

cgam_layer_view cgam_net_layer(const cgam_net *net, int layer)
{
    const cgam_layer *l = &net->layer[layer];
    return (cgam_layer_view){.name = l->name,
                             .ndim = l->ndim,
                             .shape = l->shape,
                             .size = l->size,
                             .offset = l->offset,
                             .lagr = l->use.lagr,
                             .param = l->use.theta,
                             .scale = l->use.scale,
                             .tau = l->tau};
}

cgam_synapse_view cgam_net_synapse(const cgam_net *net, int synapse)
{
    const cgam_syn *s = &net->synapse[synapse];
    return (cgam_synapse_view){
        .name = s->name, .kind = s->kind->name, .k = s->k, .layers = s->layer, .gain = s->gain};
}

const char *cgam_net_part_name(const cgam_net *net, int part)
{
    return part < net->layers ? net->layer[part].name : net->synapse[part - net->layers].name;
}

int cgam_net_find(const cgam_net *net, const char *layer)
{
    for (int i = 0; i < net->layers; i++)
        if (strcmp(net->layer[i].name, layer) == 0) return i;
    return -1;
}
