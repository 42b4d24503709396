/* params.c: the numbers of a network that are learned, as one flat vector. */
#include "net/gradient.h"

#include "num/rows.h"

#include <limits.h>
#include <math.h>
#include <string.h>

void cgam_net_params_free(cgam_net_params *p)
{
    if (!p) return;
    for (int i = 0; i < p->blocks; i++) cgam_free(p->env, p->block[i].name);
    cgam_free(p->env, p->block);
    cgam_free(p->env, p);
}

static cgam_status add_block(cgam_net_params *p, const char *name, cgam_block block)
{
    for (int i = 0; i < p->blocks; i++)
        if (p->block[i].data == block.data) return CGAM_OK; /* shared, or named twice */
    if (p->blocks == p->capacity) {
        int more = p->capacity ? 2 * p->capacity : 8;
        cgam_block *grown = cgam_zalloc(p->env, (size_t)more, sizeof *grown);
        if (!grown) return cgam_fail_nomem(p->env, "parameters of a network");
        if (p->block) memcpy(grown, p->block, (size_t)p->blocks * sizeof *grown);
        cgam_free(p->env, p->block);
        p->block = grown;
        p->capacity = more;
    }
    if (block.rows > INT_MAX || block.cols > INT_MAX)
        return cgam_fail(p->env, CGAM_E_SHAPE, "%s: %lld x %lld numbers cannot be learned", name,
                         (long long)block.rows, (long long)block.cols);
    block.name = cgam_strdup(p->env, name);
    if (!block.name) return cgam_fail_nomem(p->env, "parameters of a network");
    block.from = p->count;
    if (block.min == 0 && block.max == 0) {
        block.min = -INFINITY;
        block.max = INFINITY;
    }
    p->count += block.rows * block.cols;
    p->layers = p->layers || block.kind == CGAM_LEARNED_LAYER;
    p->block[p->blocks++] = block;
    return CGAM_OK;
}

static cgam_status add_operator(cgam_net_params *p, const char *name, int synapse,
                                const cgam_op *op)
{
    int64_t count = 0;
    cgam_block b = {.kind = CGAM_LEARNED_WEIGHTS, .part = synapse, .op = op};
    b.rows = op->rows;
    b.cols = op->cols;
    b.data = cgam_net_conv_kernels(op, &count);
    if (b.data) {
        b.rows = 1;
        b.cols = count;
        return add_block(p, name, b);
    }
    cgam_status status = cgam_net_dense_own(p->net, op, &b.data);
    if (status != CGAM_OK)
        return cgam_fail(p->env, status, "synapse '%s': its weights cannot be learned", name);
    return add_block(p, name, b);
}

/* All weights of a synapse. */
static cgam_status add_synapse(cgam_net_params *p, int s)
{
    cgam_syn *syn = &p->net->synapse[s];
    const char *name = syn->name;
    const int before = p->blocks;
    cgam_status status = CGAM_OK;
    cgam_block b = {.kind = CGAM_LEARNED_VECTOR, .part = s, .rows = 1};
    for (int j = 0; j < SLOTS && status == CGAM_OK; j++)
        if (syn->op[j]) status = add_operator(p, name, s, syn->op[j]);
    if (status == CGAM_OK && syn->vector && !syn->follows) {
        b.data = syn->vector;
        b.cols = syn->kind == &cgam_syn_lowrank ? syn->op[0]->rows : syn->size[0];
        status = add_block(p, name, b);
    }
    if (status == CGAM_OK && syn->attention && syn->attention->opts.width) {
        const struct cgam_attention *a = syn->attention;
        b.rows = a->opts.heads * a->opts.width;
        b.kind = CGAM_LEARNED_QUERIES;
        b.cols = a->dx;
        b.data = (double *)(uintptr_t)a->opts.WQ;
        status = add_block(p, name, b);
        b.kind = CGAM_LEARNED_KEYS;
        b.cols = a->dy;
        b.data = (double *)(uintptr_t)a->opts.WK;
        if (status == CGAM_OK) status = add_block(p, name, b);
    }
    if (status == CGAM_OK && syn->kind == &cgam_syn_user && syn->table.slope &&
        syn->table.params > 0) {
        b = (cgam_block){.kind = CGAM_LEARNED_OWN, .part = s, .rows = 1};
        b.cols = syn->table.params;
        b.data = syn->table.theta;
        status = add_block(p, name, b);
    }
    bool shared = false;
    for (int i = 0; i < before; i++)
        for (int j = 0; j < SLOTS; j++)
            shared = shared || (syn->op[j] && p->block[i].op == syn->op[j]);
    if (status == CGAM_OK && p->blocks == before && !shared)
        return cgam_fail(p->env, CGAM_E_ARG, "synapse '%s' has no weights to learn", name);
    return status;
}

/* PART.WORD, a single number. */
static cgam_status add_number(cgam_net_params *p, const char *name, int part, const char *word)
{
    cgam_net *net = p->net;
    const bool is_layer = part < net->layers;
    cgam_syn *syn = is_layer ? NULL : &net->synapse[part - net->layers];
    cgam_lagr_use *use = is_layer                        ? &net->layer[part].use
                         : syn->kind == &cgam_syn_hidden ? &syn->use
                                                         : NULL;
    cgam_block b = {.part = is_layer ? part : part - net->layers, .rows = 1, .cols = 1};
    b.kind = is_layer ? CGAM_LEARNED_LAYER : CGAM_LEARNED_LAGR;
    for (int i = 0; use && i < CGAM_LAGR_PARAMS && use->lagr->param[i].name; i++) {
        if (strcmp(use->lagr->param[i].name, word) != 0) continue;
        b.index = i;
        b.data = &use->theta[i];
        b.min = use->lagr->param[i].min;
        b.max = use->lagr->param[i].max;
        return add_block(p, name, b);
    }
    if (is_layer && strcmp(word, "scale") == 0) {
        b.index = CGAM_LAGR_PARAMS;
        b.data = &use->scale;
        b.min = 1e-9;
        b.max = 1e9;
        return add_block(p, name, b);
    }
    if (!is_layer && syn->attention && strcmp(word, "beta") == 0) {
        b.kind = CGAM_LEARNED_BETA;
        b.data = &syn->attention->opts.beta;
        b.min = 1e-9;
        b.max = 1e12;
        return add_block(p, name, b);
    }
    if (!is_layer && syn->kind != &cgam_syn_user && strcmp(word, "gain") == 0) {
        b.kind = CGAM_LEARNED_GAIN;
        b.data = &syn->gain;
        if (syn->gain == 0) /* its products are not computed */
            return cgam_fail(p->env, CGAM_E_ARG, "'%s': a gain of 0 cannot be learned", name);
        return add_block(p, name, b);
    }
    return cgam_fail(p->env, CGAM_E_ARG, "%s '%s' has no '%s' to learn",
                     is_layer ? "layer" : "synapse", cgam_net_part_name(net, part), word);
}

static cgam_status add_name(cgam_net_params *p, const char *name)
{
    const cgam_net *net = p->net;
    int part = -1;
    size_t length = 0;
    for (int i = 0; i < net->layers + net->synapses; i++) {
        const char *known = cgam_net_part_name(net, i);
        size_t n = strlen(known);
        if (strncmp(known, name, n) != 0 || (name[n] && name[n] != '.') || n < length) continue;
        part = i;
        length = n;
    }
    if (part < 0)
        return cgam_fail(p->env, CGAM_E_ARG, "no synapse or layer named '%.80s' to learn", name);
    if (name[length] == '.') return add_number(p, name, part, name + length + 1);
    if (part < net->layers)
        return cgam_fail(p->env, CGAM_E_ARG,
                         "'%s' is a layer; name a synapse, or a number as '%s.beta'", name, name);
    return add_synapse(p, part - net->layers);
}

cgam_status cgam_net_params_new(cgam_net *net, int count, const char *const *names,
                                cgam_net_params **out)
{
    *out = NULL;
    cgam_net_params *p = cgam_zalloc(net->env, 1, sizeof *p);
    if (!p) return cgam_fail_nomem(net->env, "parameters of a network");
    p->net = net;
    p->env = net->env;
    cgam_status status =
        count > 0 ? CGAM_OK : cgam_fail(net->env, CGAM_E_ARG, "nothing to learn is named");
    for (int i = 0; i < count && status == CGAM_OK; i++) status = add_name(p, names[i]);
    if (status != CGAM_OK) {
        cgam_net_params_free(p);
        return status;
    }
    *out = p;
    return CGAM_OK;
}

int64_t cgam_net_params_count(const cgam_net_params *p) { return p->count; }
int cgam_net_params_blocks(const cgam_net_params *p) { return p->blocks; }

cgam_net_block cgam_net_params_block(const cgam_net_params *p, int block)
{
    const cgam_block *b = &p->block[block];
    return (cgam_net_block){b->name, b->from, b->rows, b->cols, b->min, b->max};
}

void cgam_net_params_get(const cgam_net_params *p, double *theta)
{
    for (int i = 0; i < p->blocks; i++) {
        const cgam_block *b = &p->block[i];
        memcpy(theta + b->from, b->data, (size_t)(b->rows * b->cols) * sizeof *theta);
    }
}

cgam_status cgam_net_params_set(cgam_net_params *p, const double *theta)
{
    for (int i = 0; i < p->blocks; i++) {
        const cgam_block *b = &p->block[i];
        for (int64_t j = 0; j < b->rows * b->cols; j++) {
            double value = theta[b->from + j];
            if (!isfinite(value) || value < b->min || value > b->max)
                return cgam_fail(p->env, CGAM_E_VALUE, "'%s': number %lld is %g", b->name,
                                 (long long)j, value);
        }
    }
    for (int i = 0; i < p->blocks; i++) {
        const cgam_block *b = &p->block[i];
        memcpy(b->data, theta + b->from, (size_t)(b->rows * b->cols) * sizeof *theta);
    }
    for (int s = 0; s < p->net->synapses; s++) {
        cgam_syn *syn = &p->net->synapse[s];
        if (!syn->follows) continue;
        cgam_status status = cgam_net_dense_norm2(p->net, syn->op[0], syn->vector);
        if (status != CGAM_OK) return status;
    }
    return CGAM_OK;
}
