/* gradient.c: collects the terms of dE/dtheta of a batch into products of matrices. */
#include "net/gradient.h"

#include "base/blas.h"

#include <math.h>
#include <string.h>

typedef struct pass {
    cgam_work *w;
    const cgam_net_params *params;
    bool tangent;
    double factor, *spare, *slope;
} pass;

static void frame_at(const pass *p, int synapse, int64_t k, double *cur, cgam_frame *f)
{
    cgam_work_frame(p->w, synapse, p->tangent, p->w->batch, k, cur, f);
}

/* slope += factor times the sum over k of left[k] right[k]'. */
static void add_terms(const pass *p, const cgam_block *b, int64_t count, const cgam_outer *term,
                      int64_t left_step, int64_t right_step)
{
    double factor = p->factor * term->factor, *to = p->slope + b->from;
    int64_t kernels;
    if (cgam_net_conv_kernels(b->op, &kernels))
        cgam_net_conv_slope(b->op, count, factor, term->left, left_step, term->right, right_step,
                            to);
    else
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)b->rows, (int)b->cols, (int)count,
                    factor, term->left, (int)left_step, term->right, (int)right_step, 1, to,
                    (int)b->cols);
}

/* A diagonal that follows Z: -gain/2 sum_i x_i^2 |Z_i|^2, or its derivative along v. */
static void add_diagonal(const pass *p, const cgam_block *b, int s)
{
    const cgam_syn *syn = &p->w->net->synapse[s];
    for (int64_t k = 0; k < p->w->batch; k++) {
        cgam_frame f;
        frame_at(p, s, k, NULL, &f);
        for (int64_t i = 0; i < b->rows; i++) {
            double x = f.act[0][i], twice = p->tangent ? 2 * x * f.v[0][i] : x * x;
            for (int64_t j = 0; j < b->cols; j++)
                p->slope[b->from + i * b->cols + j] -=
                    p->factor * syn->gain * twice * b->data[i * b->cols + j];
        }
    }
}

/* All terms of one slot of a synapse. Vectors of successive states are equally far apart, unless they are scratch. */
static void add_slot(const pass *p, const cgam_block *b, int s, int slot)
{
    const cgam_syn *syn = &p->w->net->synapse[s];
    const int64_t batch = p->w->batch, rows = b->op->rows, cols = b->op->cols;
    cgam_outer term[2], next[2];
    cgam_frame f;
    if (syn->kind->scratched || batch == 1) {
        for (int64_t k = 0; k < batch; k++) {
            frame_at(p, s, k, NULL, &f);
            int count = syn->kind->terms(syn, &f, slot, p->tangent, term);
            for (int i = 0; i < count; i++) add_terms(p, b, 1, &term[i], rows, cols);
        }
        return;
    }
    frame_at(p, s, 0, NULL, &f);
    int count = syn->kind->terms(syn, &f, slot, p->tangent, term);
    frame_at(p, s, 1, NULL, &f);
    (void)syn->kind->terms(syn, &f, slot, p->tangent, next);
    for (int i = 0; i < count; i++)
        add_terms(p, b, batch, &term[i], next[i].left - term[i].left,
                  next[i].right - term[i].right);
}

static void add_weights(const pass *p, const cgam_block *b)
{
    const cgam_net *net = p->w->net;
    for (int s = 0; s < net->synapses; s++) {
        const cgam_syn *syn = &net->synapse[s];
        bool moves = !p->tangent;
        for (int j = 0; j < syn->k; j++) moves = moves || !p->w->clamped[syn->layer[j]];
        for (int j = 0; j < SLOTS && moves; j++)
            if (syn->op[j] == b->op && syn->kind->terms) add_slot(p, b, s, j);
        if (moves && syn->follows && syn->op[0] == b->op) add_diagonal(p, b, s);
    }
}

/* Energies are linear in the gain: dE/dgain is the energy of the synapse with gain 1. */
static cgam_status add_gain(const pass *p, const cgam_block *b)
{
    const cgam_net *net = p->w->net;
    const cgam_syn *syn = &net->synapse[b->part];
    cgam_syn unit = *syn;
    cgam_status status = CGAM_OK;
    unit.gain = 1;
    for (int64_t k = 0; k < p->w->batch && status == CGAM_OK; k++) {
        cgam_frame f;
        if (!p->tangent) {
            frame_at(p, b->part, k, NULL, &f);
            status = syn->kind->eval(&unit, &f);
            p->slope[b->from] += p->factor * f.energy;
            continue;
        }
        /* -<current, v>; currents of the value, not of the tangent */
        memset(p->spare, 0, (size_t)net->size * sizeof *p->spare);
        cgam_work_frame(p->w, b->part, false, p->w->batch, k, p->w->cur, &f);
        for (int j = 0; j < syn->k; j++)
            if (f.cur[j]) f.cur[j] = p->spare + net->layer[syn->layer[j]].offset;
        status = syn->kind->eval(&unit, &f);
        if (syn->kind->currents) syn->kind->currents(&unit, f.act, f.prod, f.cur);
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            const double *v = p->w->dact + k * net->size;
            for (int64_t j = layer->offset; j < layer->offset + layer->size; j++)
                p->slope[b->from] -= p->factor * p->spare[j] * v[j];
        }
    }
    return status;
}

static cgam_status add_small(const pass *p, const cgam_block *b)
{
    const cgam_syn *syn = &p->w->net->synapse[b->part];
    double parts[CGAM_LAGR_PARAMS] = {0};
    bool lagr = b->kind == CGAM_LEARNED_LAGR;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < p->w->batch && status == CGAM_OK; k++) {
        cgam_frame f;
        frame_at(p, b->part, k, NULL, &f);
        status = syn->kind->slope(syn, &f, (int)b->kind, p->tangent, p->factor,
                                  lagr ? parts : p->slope + b->from);
    }
    if (lagr) p->slope[b->from] += parts[b->index];
    return status;
}

/* With w: <w, da/dtheta>; without: dE/dtheta = -dL/dtheta, as <x, a> - L is taken at a given activation. */
static cgam_status add_layer(const cgam_net *net, const cgam_block *b, int64_t batch,
                             const double *x, const double *a, const double *w, double factor,
                             double *scratch, double *slope)
{
    const cgam_layer *layer = &net->layer[b->part];
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < batch && status == CGAM_OK; k++) {
        double dL[CGAM_LAGR_PARAMS + 1], wa[CGAM_LAGR_PARAMS + 1];
        int64_t at = k * net->size + layer->offset;
        status =
            cgam_lagr_use_slope(&layer->use, x + at, a + at, w ? w + at : NULL, scratch, dL, wa);
        slope[b->from] += factor * (w ? wa[b->index] : -dL[b->index]);
    }
    return status;
}

cgam_status cgam_gradient_add(cgam_work *w, const cgam_net_params *params, bool tangent,
                              double factor, double *spare, double *slope)
{
    const pass p = {w, params, tangent, factor, spare, slope};
    cgam_status status = CGAM_OK;
    for (int i = 0; i < params->blocks && status == CGAM_OK; i++) {
        const cgam_block *b = &params->block[i];
        if (b->kind == CGAM_LEARNED_WEIGHTS) add_weights(&p, b);
        else if (b->kind == CGAM_LEARNED_GAIN) status = add_gain(&p, b);
        else if (b->kind != CGAM_LEARNED_LAYER) status = add_small(&p, b);
        else if (!tangent)
            status = add_layer(w->net, b, w->batch, w->x, w->act, NULL, factor, w->scratch, slope);
    }
    return status;
}

cgam_status cgam_gradient_layers(const cgam_net_params *params, int64_t batch, const double *x,
                                 const double *a, const double *w, double *scratch, double *slope)
{
    cgam_status status = CGAM_OK;
    for (int i = 0; i < params->blocks && status == CGAM_OK; i++)
        if (params->block[i].kind == CGAM_LEARNED_LAYER)
            status = add_layer(params->net, &params->block[i], batch, x, a, w, 1, scratch, slope);
    return status;
}
