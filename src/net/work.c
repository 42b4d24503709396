/* work.c: evaluates a network at a batch of states: activations, products, energies in parts and currents, then rates
 * and dE/dt. */
#include "net/work_inside.h"

#include <math.h>
#include <string.h>

void cgam_work_free(cgam_work *w)
{
    if (!w) return;
    cgam_env *env = w->env;
    for (int g = 0; g < w->groups; g++) {
        cgam_free(env, w->group[g].in);
        cgam_free(env, w->group[g].out);
        cgam_free(env, w->group[g].din);
        cgam_free(env, w->group[g].dout);
    }
    void *const blocks[] = {w->clamped, w->want,    w->act,   w->cur,   w->parts,
                            w->dact,    w->scratch, w->zeros, w->group, w->seat};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    cgam_free(env, w);
}

static cgam_status allocate_work(cgam_work *w)
{
    const cgam_net *net = w->net;
    cgam_env *env = w->env;
    int64_t states = w->batch_max * net->size, scratch = 0, longest = 0;
    for (int i = 0; i < net->layers; i++)
        if (net->layer[i].size > longest) longest = net->layer[i].size;
    scratch = 2 * longest; /* a Hessian needs a group, dE/dt a layer beside it */
    for (int i = 0; i < net->synapses; i++)
        if (net->synapse[i].scratch > scratch) scratch = net->synapse[i].scratch;
    w->act = cgam_zalloc(env, (size_t)states, sizeof *w->act);
    w->cur = cgam_zalloc(env, (size_t)states, sizeof *w->cur);
    w->parts =
        cgam_zalloc(env, (size_t)(w->batch_max * cgam_net_describe(net).parts), sizeof *w->parts);
    w->scratch = cgam_alloc(env, (size_t)scratch, sizeof *w->scratch);
    if (!w->act || !w->cur || !w->parts || !w->scratch)
        return cgam_fail_nomem(env, "the state of a network");
    if (!w->tangents) return CGAM_OK;
    for (int g = 0; g < w->groups; g++)
        if (w->group[g].out_size > longest) longest = w->group[g].out_size;
    w->dact = cgam_zalloc(env, (size_t)(w->tangents * net->size), sizeof *w->dact);
    w->zeros = cgam_zalloc(env, (size_t)longest, sizeof *w->zeros);
    return w->dact && w->zeros ? CGAM_OK : cgam_fail_nomem(env, "the tangents of a network");
}

cgam_status cgam_work_new(const cgam_net *net, const cgam_work_opts *opts, cgam_work **out)
{
    *out = NULL;
    cgam_env *env = net->env;
    cgam_work *w = cgam_zalloc(env, 1, sizeof *w);
    if (!w) return cgam_fail_nomem(env, "the state of a network");
    w->net = net;
    w->env = env;
    w->batch_max = opts->batch;
    w->tangents = opts->tangents;
    size_t layers = (size_t)net->layers + 1;
    w->clamped = cgam_zalloc(env, layers, sizeof *w->clamped);
    w->want = cgam_zalloc(env, layers, sizeof *w->want);
    cgam_status status = CGAM_OK;
    if (!w->clamped || !w->want) status = cgam_fail_nomem(env, "the state of a network");
    for (int i = 0; i < net->layers && status == CGAM_OK; i++) {
        w->clamped[i] = opts->clamped && opts->clamped[i];
        w->want[i] = opts->all || !w->clamped[i];
    }
    if (status == CGAM_OK) status = cgam_work_plan(w);
    if (status == CGAM_OK) status = allocate_work(w);
    if (status != CGAM_OK) {
        cgam_work_free(w);
        return status;
    }
    *out = w;
    return CGAM_OK;
}

void cgam_work_pack(const cgam_work *w, const double *x, double *packed)
{
    for (int i = 0; i < w->net->layers; i++) {
        const cgam_layer *layer = &w->net->layer[i];
        if (w->clamped[i]) continue;
        memcpy(packed, x + layer->offset, (size_t)layer->size * sizeof *x);
        packed += layer->size;
    }
}

void cgam_work_unpack(const cgam_work *w, const double *packed, double *x)
{
    for (int i = 0; i < w->net->layers; i++) {
        const cgam_layer *layer = &w->net->layer[i];
        if (w->clamped[i]) continue;
        memcpy(x + layer->offset, packed, (size_t)layer->size * sizeof *x);
        packed += layer->size;
    }
}

void cgam_work_pair(cgam_work *w) { w->paired = true; }
void cgam_work_hurry(cgam_work *w) { w->hurried = true; }
void cgam_work_refresh(cgam_work *w) { w->fresh = false; }

cgam_status cgam_work_complain(const cgam_work *w, cgam_status status, const char *what,
                               const char *name, const double *x, int64_t n)
{
    double largest = 0;
    if (status != CGAM_E_VALUE) return status; /* the message is already set */
    if (n == 0) return cgam_fail(w->env, status, "%s '%s' leaves the range of double", what, name);
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
    return cgam_fail(w->env, status, "%s '%s' leaves the range of double, its state reaches %.3g",
                     what, name, largest);
}

/* ---- evaluation ----------------------------------------------------------------------------- */

static cgam_status activate_layers(cgam_work *w)
{
    const cgam_net *net = w->net;
    for (int64_t b = 0; b < w->batch; b++) {
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            if (w->fresh && w->clamped[i]) continue;
            int64_t at = b * net->size + layer->offset;
            cgam_status status = cgam_lagr_use_activate(
                &layer->use, w->x + at, w->act + at,
                w->hurried ? NULL : &w->parts[b * cgam_net_describe(net).parts + i]);
            if (status != CGAM_OK)
                return cgam_work_complain(w, status, "layer", layer->name, w->x + at, layer->size);
        }
    }
    return CGAM_OK;
}

void cgam_work_frame(const cgam_work *w, int s, bool tangent, int64_t count, int64_t k, double *cur,
                     cgam_frame *f)
{
    const cgam_net *net = w->net;
    const cgam_syn *syn = &net->synapse[s];
    const int64_t state = tangent ? cgam_work_state(w, k) : k;
    const int64_t states = tangent ? w->batch : count;
    *f = (cgam_frame){.scratch = w->scratch};
    for (int j = 0; j < syn->k; j++) {
        int i = syn->layer[j];
        int64_t at = net->layer[i].offset;
        f->act[j] = w->act + state * net->size + at;
        f->still[j] = w->clamped[i];
        if (tangent) f->v[j] = w->dact + k * net->size + at;
        if (cur && (tangent ? !w->clamped[i] : w->want[i])) f->cur[j] = cur + k * net->size + at;
    }
    for (int j = 0; j < JOBS; j++) {
        const cgam_seat *seat = cgam_work_seat(w, s, j);
        if (seat->group < 0) continue;
        const cgam_group *group = &w->group[seat->group];
        int64_t at = seat->index * states + state, moved = seat->index * count + k;
        bool fed = seat->layer < 0;
        if (fed) f->in[j] = group->in + at * group->in_size;
        f->prod[j] = group->out + at * group->out_size;
        if (!tangent) continue;
        if (fed && !group->kept) f->din[j] = group->din + moved * group->in_size;
        f->dprod[j] = group->kept ? w->zeros : group->dout + moved * group->out_size;
    }
}

/* Does a synapse fill an input of this phase itself? */
static bool is_fed(const cgam_work *w, int s, cgam_phase phase)
{
    for (int j = 0; j < JOBS; j++) {
        const cgam_seat *seat = cgam_work_seat(w, s, j);
        if (seat->group >= 0 && seat->layer < 0 && w->group[seat->group].phase == phase)
            return true;
    }
    return false;
}

cgam_status cgam_work_fill(cgam_work *w, cgam_phase phase, bool tangent, int64_t count)
{
    for (int s = 0; s < w->net->synapses; s++) {
        const cgam_syn *syn = &w->net->synapse[s];
        bool fed = is_fed(w, s, phase);
        for (int64_t k = 0; fed && k < count; k++) {
            cgam_frame f;
            cgam_work_frame(w, s, tangent, count, k, NULL, &f);
            cgam_status status =
                tangent ? syn->kind->feed_tangent(syn, &f) : syn->kind->feed(syn, &f);
            if (status != CGAM_OK)
                return cgam_work_complain(w, status, "synapse", syn->name, NULL, 0);
        }
    }
    return CGAM_OK;
}

/* Inputs that are activations, copied side by side. */
static void gather_inputs(const cgam_work *w, cgam_phase phase, bool kept, bool tangent,
                          int64_t count)
{
    const cgam_net *net = w->net;
    const double *act = tangent ? w->dact : w->act;
    for (int64_t i = 0; i < (int64_t)net->synapses * JOBS; i++) {
        const cgam_seat *seat = &w->seat[i];
        if (seat->group < 0 || seat->layer < 0 || !seat->owner) continue;
        const cgam_group *group = &w->group[seat->group];
        if (group->phase != phase || group->kept != kept) continue;
        double *in = (tangent ? group->din : group->in) + seat->index * count * group->in_size;
        for (int64_t b = 0; b < count; b++)
            memcpy(in + b * group->in_size, act + b * net->size + net->layer[seat->layer].offset,
                   (size_t)group->in_size * sizeof(double));
    }
}

cgam_status cgam_work_multiply(cgam_work *w, cgam_phase phase, bool kept, bool tangent,
                               int64_t count)
{
    cgam_status status = kept ? CGAM_OK : cgam_work_fill(w, phase, tangent, count);
    gather_inputs(w, phase, kept, tangent, count);
    for (int g = 0; g < w->groups && status == CGAM_OK; g++) {
        const cgam_group *group = &w->group[g];
        if (group->phase != phase || group->kept != kept) continue;
        if (w->feeding && !group->feeds) continue;
        const cgam_op *op = group->op;
        const double *in = tangent ? group->din : group->in;
        double *out = tangent ? group->dout : group->out;
        if (w->hurried && cgam_op_multiply(op, group->transposed, group->jobs * count, in, out))
            continue;
        status =
            (group->transposed ? op->apply_t : op->apply)(op->user, group->jobs * count, in, out);
    }
    return status;
}

static cgam_status collect_currents(cgam_work *w)
{
    const cgam_net *net = w->net;
    for (int64_t b = 0; b < w->batch; b++) {
        memset(w->cur + b * net->size, 0, (size_t)net->size * sizeof *w->cur);
        for (int s = 0; s < net->synapses; s++) {
            const cgam_syn *syn = &net->synapse[s];
            cgam_frame f;
            cgam_work_frame(w, s, false, w->batch, b, w->cur, &f);
            bool bare = w->hurried && syn->kind->currents; /* energies are not needed */
            cgam_status status = bare ? CGAM_OK : syn->kind->eval(syn, &f);
            if (syn->kind->currents) syn->kind->currents(syn, f.act, f.prod, f.cur);
            if (status == CGAM_OK && !isfinite(f.energy)) status = CGAM_E_VALUE;
            if (status != CGAM_OK)
                return cgam_work_complain(w, status, "synapse", syn->name, NULL, 0);
            w->parts[b * cgam_net_describe(net).parts + net->layers + s] = f.energy;
        }
    }
    return CGAM_OK;
}

cgam_status cgam_work_eval(cgam_work *w, int64_t batch, const double *x)
{
    if (batch != w->batch) w->fresh = false;
    w->batch = batch;
    w->x = x;
    cgam_status status = activate_layers(w);
    if (status == CGAM_OK && !w->fresh)
        status = cgam_work_multiply(w, CGAM_PHASE_FIRST, true, false, batch);
    if (status == CGAM_OK) status = cgam_work_multiply(w, CGAM_PHASE_FIRST, false, false, batch);
    if (status == CGAM_OK) status = cgam_work_multiply(w, CGAM_PHASE_SECOND, false, false, batch);
    if (status == CGAM_OK) status = collect_currents(w);
    w->fresh = status == CGAM_OK;
    return status;
}

/* ---- what follows --------------------------------------------------------------------------- */

const double *cgam_work_activation(const cgam_work *w) { return w->act; }
const double *cgam_work_current(const cgam_work *w) { return w->cur; }
const double *cgam_work_parts(const cgam_work *w) { return w->parts; }

double cgam_work_energy(const cgam_work *w, int64_t state)
{
    double total = 0;
    int parts = cgam_net_describe(w->net).parts;
    for (int i = 0; i < parts; i++) total += w->parts[state * parts + i];
    return total;
}

double cgam_work_magnitude(const cgam_work *w, int64_t state)
{
    double total = 0;
    int parts = cgam_net_describe(w->net).parts;
    for (int i = 0; i < parts; i++) total += fabs(w->parts[state * parts + i]);
    return total;
}

void cgam_work_rate(const cgam_work *w, double *rate)
{
    const cgam_net *net = w->net;
    for (int64_t b = 0; b < w->batch; b++) {
        for (int i = 0; i < net->layers; i++) {
            const cgam_layer *layer = &net->layer[i];
            int64_t at = b * net->size + layer->offset, end = at + layer->size;
            for (; at < end; at++)
                rate[at] = w->clamped[i] ? 0 : (w->cur[at] - w->x[at]) / layer->tau;
        }
    }
}

cgam_status cgam_work_power(cgam_work *w, int64_t state, const double *rate, double *power)
{
    const cgam_net *net = w->net;
    *power = 0;
    for (int i = 0; i < net->layers; i++) {
        const cgam_layer *layer = &net->layer[i];
        if (w->clamped[i]) continue;
        int64_t at = state * net->size + layer->offset;
        const double *v = rate + layer->offset;
        double *Hv = w->scratch, *space = w->scratch + layer->size, sum = 0;
        cgam_status status =
            cgam_lagr_use_hessian(&layer->use, w->x + at, w->act + at, v, space, Hv);
        if (status != CGAM_OK)
            return cgam_work_complain(w, status, "layer", layer->name, w->x + at, layer->size);
        for (int64_t j = 0; j < layer->size; j++) sum += v[j] * Hv[j];
        *power -= layer->tau * sum;
    }
    return CGAM_OK;
}
