/* tangent.c: the Jacobian of the rates times vectors, without ever forming it.
 *
 *   tau J v = D (H v) - v,   H = hess L by layer, D = the derivative of the currents with respect
 * to the activations. The same jobs, feeds and groups as in work.c, differentiated. */
#include "net/work_inside.h"

#include <string.h>

cgam_status cgam_work_hessian(cgam_work *w, int64_t count, const double *v, double *out)
{
    const cgam_net *net = w->net;
    for (int64_t k = 0; k < count; k++) {
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            int64_t at = cgam_work_state(w, k) * net->size + layer->offset;
            double *to = out + k * net->size + layer->offset;
            if (w->clamped[i]) {
                memset(to, 0, (size_t)layer->size * sizeof *to);
                continue;
            }
            cgam_status status =
                cgam_lagr_use_hessian(&layer->use, w->x + at, w->act + at,
                                      v + k * net->size + layer->offset, w->scratch, to);
            if (status != CGAM_OK)
                return cgam_work_complain(w, status, "layer", layer->name, w->x + at, layer->size);
        }
    }
    return CGAM_OK;
}

/* change = D times the derivatives of the activations in w->dact. */
static cgam_status spread(cgam_work *w, int64_t count, double *change)
{
    const cgam_net *net = w->net;
    cgam_status status = cgam_work_multiply(w, CGAM_PHASE_FIRST, false, true, count);
    if (status == CGAM_OK) status = cgam_work_multiply(w, CGAM_PHASE_SECOND, false, true, count);
    memset(change, 0, (size_t)(count * net->size) * sizeof *change);
    for (int s = 0; s < net->synapses && status == CGAM_OK; s++) {
        const cgam_syn *syn = &net->synapse[s];
        bool moves = syn->kind->tangent || syn->kind->currents;
        for (int64_t k = 0; moves && k < count && status == CGAM_OK; k++) {
            cgam_frame f;
            cgam_work_frame(w, s, true, count, k, change, &f);
            if (syn->kind->tangent) status = syn->kind->tangent(syn, &f);
            else syn->kind->currents(syn, f.v, f.dprod, f.cur);
        }
    }
    return status;
}

/* dact = u, 0 where clamped. */
static void set_directions(cgam_work *w, int64_t count, const double *u)
{
    const cgam_net *net = w->net;
    memcpy(w->dact, u, (size_t)(count * net->size) * sizeof *u);
    for (int i = 0; i < net->layers; i++)
        for (int64_t k = 0; w->clamped[i] && k < count; k++)
            memset(w->dact + k * net->size + net->layer[i].offset, 0,
                   (size_t)net->layer[i].size * sizeof *u);
}

cgam_status cgam_work_curvature(cgam_work *w, int64_t count, const double *u, double *change)
{
    set_directions(w, count, u);
    return spread(w, count, change);
}

cgam_status cgam_work_feed(cgam_work *w, int64_t count, const double *u)
{
    set_directions(w, count, u);
    w->feeding = true;
    cgam_status status = cgam_work_multiply(w, CGAM_PHASE_FIRST, false, true, count);
    w->feeding = false;
    return status == CGAM_OK ? cgam_work_fill(w, CGAM_PHASE_SECOND, true, count) : status;
}

static cgam_status tangent_some(cgam_work *w, int64_t count, const double *v, double *change)
{
    const cgam_net *net = w->net;
    cgam_status status = cgam_work_hessian(w, count, v, w->dact);
    if (status == CGAM_OK) status = spread(w, count, change);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            int64_t at = k * net->size + layer->offset, end = at + layer->size;
            for (; at < end; at++)
                change[at] = w->clamped[i] ? 0 : (change[at] - v[at]) / layer->tau;
        }
    }
    return status;
}

cgam_status cgam_work_jacobian(cgam_work *w, int64_t count, const double *v, double *change)
{
    cgam_status status = CGAM_OK;
    int64_t size = w->net->size;
    for (int64_t k = 0; k < count && status == CGAM_OK; k += w->tangents) {
        int64_t now = count - k < w->tangents ? count - k : w->tangents;
        status = tangent_some(w, now, v + k * size, change + k * size);
    }
    return status;
}
