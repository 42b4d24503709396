/* syn_hidden.c: two synapses around a function.
 *
 * hidden  E = -gain L(W x) with a Lagrangian L: the effect of a hidden layer h = W x that settles
 *         at once (its energy h'L' - L and its coupling -h'L' add up to -L). With log-sum-exp that
 *         is the modern Hopfield energy, with rectified powers a dense associative memory.
 * user    any energy with its gradients; without a tangent, currents are differenced. */
#include "net/net.h"

#include "num/rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- hidden: products 0 = h = W x, 1 = W' L'(h) --------------------------------------------- */
static void hidden_plan(const cgam_syn *s, const bool *wanted, cgam_job *jobs)
{
    jobs[0] = (cgam_job){.op = s->op[0], .slot = 0, .phase = CGAM_PHASE_FIRST};
    if (wanted[0])
        jobs[1] =
            (cgam_job){.op = s->op[0], .transposed = true, .slot = -1, .phase = CGAM_PHASE_SECOND};
}

static cgam_status hidden_feed(const cgam_syn *s, cgam_frame *f)
{
    return cgam_lagr_use_activate(&s->use, f->prod[0], f->in[1], NULL);
}

static cgam_status hidden_feed_tangent(const cgam_syn *s, cgam_frame *f)
{
    return cgam_lagr_use_hessian(&s->use, f->prod[0], f->in[1], f->dprod[0], f->scratch, f->din[1]);
}

static cgam_status hidden_eval(const cgam_syn *s, cgam_frame *f)
{
    double L;
    cgam_status status = cgam_lagr_use_value(&s->use, f->prod[0], &L);
    f->energy = -s->gain * L;
    return status;
}

static int hidden_terms(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent,
                        cgam_outer *out)
{
    (void)slot;
    if (!f->in[1] || (tangent && f->still[0])) return 0; /* the layer is clamped */
    out[0] = (cgam_outer){-s->gain, tangent ? f->din[1] : f->in[1], f->act[0]};
    if (tangent) out[1] = (cgam_outer){-s->gain, f->in[1], f->v[0]};
    return tangent ? 2 : 1;
}

static cgam_status hidden_slope(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                                double factor, double *out)
{
    (void)what;
    double dL[CGAM_LAGR_PARAMS + 1], wa[CGAM_LAGR_PARAMS + 1];
    if (!f->in[1] || (tangent && f->still[0])) return CGAM_OK;
    cgam_status status = cgam_lagr_use_slope(&s->use, f->prod[0], f->in[1],
                                             tangent ? f->dprod[0] : NULL, f->scratch, dL, wa);
    for (int i = 0; i < CGAM_LAGR_PARAMS; i++)
        out[i] -= factor * s->gain * (tangent ? wa[i] : dL[i]);
    return status;
}

const cgam_syn_kind cgam_syn_hidden = {.name = "hidden",
                                       .terms = hidden_terms,
                                       .slope = hidden_slope,
                                       .plan = hidden_plan,
                                       .feed = hidden_feed,
                                       .eval = hidden_eval,
                                       .feed_tangent = hidden_feed_tangent,
                                       .currents = cgam_syn_currents_second};

cgam_status cgam_net_add_hidden(cgam_net *net, const char *name, int x, const cgam_op *W,
                                const cgam_lagr *lagr, const double *param, double gain)
{
    cgam_syn *s;
    cgam_status status = cgam_net_begin(net, &cgam_syn_hidden, name, 1, &x, gain, &s);
    if (status != CGAM_OK) return status;
    char where[160];
    snprintf(where, sizeof where, "synapse '%.128s'", name);
    if (!W || !W->apply || !W->apply_t || W->cols != s->size[0])
        status = cgam_fail(net->env, CGAM_E_SHAPE,
                           "synapse '%s': weights are %lld x %lld, layer '%s' has size %lld", name,
                           W ? (long long)W->rows : 0, W ? (long long)W->cols : 0,
                           net->layer[x].name, (long long)s->size[0]);
    else
        status = cgam_lagr_use_make(net->env, where, lagr ? lagr : &cgam_lagr_identity, param, 1, 1,
                                    W->rows, &s->use);
    s->op[0] = W;
    if (status == CGAM_OK) s->scratch = 2 * W->rows;
    return cgam_net_end(net, status);
}

/* ---- defined by the user --------------------------------------------------------------------------- */
static cgam_status user_eval(const cgam_syn *s, cgam_frame *f)
{
    return s->table.eval(s->user, s->k, s->size, f->act, &f->energy, f->cur);
}

/* A step along v of the cube root of rounding relative to the point, for central differences; 0: v is 0. */
static double user_step(const cgam_syn *s, const cgam_frame *f)
{
    double size_x = 0, size_v = 0;
    for (int j = 0; j < s->k; j++)
        for (int64_t i = 0; i < s->size[j]; i++) {
            size_x = fmax(size_x, fabs(f->act[j][i]));
            size_v = fmax(size_v, fabs(f->v[j][i]));
        }
    return size_v == 0 ? 0 : 6e-6 * fmax(size_x, 1) / size_v;
}

static cgam_status user_differences(const cgam_syn *s, cgam_frame *f)
{
    double energy, *next = f->scratch, h = user_step(s, f);
    double *moved[SLOTS] = {0}, *current[SLOTS] = {0};
    const int k = s->k;
    assert(next && k <= SLOTS); /* the network gives what cgam_net_add_synapse asked for */
    for (int j = 0; j < k; j++) {
        moved[j] = next;
        next += s->size[j];
        if (f->cur[j]) current[j] = next;
        next += s->size[j];
    }
    if (h == 0) return CGAM_OK;
    cgam_status status = CGAM_OK;
    for (int side = 1; side >= -1 && status == CGAM_OK; side -= 2) {
        for (int j = 0; j < k; j++) {
            if (current[j]) memset(current[j], 0, (size_t)s->size[j] * sizeof(double));
            for (int64_t i = 0; i < s->size[j]; i++)
                moved[j][i] = f->act[j][i] + side * h * f->v[j][i];
        }
        status = s->table.eval(s->user, k, s->size, (const double *const *)moved, &energy, current);
        for (int j = 0; j < k; j++)
            for (int64_t i = 0; f->cur[j] && i < s->size[j]; i++)
                f->cur[j][i] += side * current[j][i] / (2 * h);
    }
    return status;
}

/* out += factor dE/dtheta, or its central difference along v. */
static cgam_status user_slope(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                              double factor, double *out)
{
    (void)what;
    const int64_t n = s->table.params;
    double h = tangent ? user_step(s, f) : 0, *slope = f->scratch, *next = slope + n;
    double *moved[SLOTS] = {0};
    cgam_status status = CGAM_OK;
    if (tangent && h == 0) return CGAM_OK;
    for (int side = 1; side >= (tangent ? -1 : 1) && status == CGAM_OK; side -= 2) {
        double *at = next;
        memset(slope, 0, (size_t)n * sizeof *slope);
        for (int j = 0; j < s->k; at += s->size[j], j++) {
            moved[j] = at;
            for (int64_t i = 0; i < s->size[j]; i++)
                at[i] = f->act[j][i] + (tangent ? side * h * f->v[j][i] : 0);
        }
        status = s->table.slope(s->user, s->k, s->size, (const double *const *)moved, slope);
        for (int64_t i = 0; i < n; i++)
            out[i] += tangent ? side * factor * slope[i] / (2 * h) : factor * slope[i];
    }
    return status;
}

static cgam_status user_tangent(const cgam_syn *s, cgam_frame *f)
{
    if (!s->table.tangent) return user_differences(s, f);
    return s->table.tangent(s->user, s->k, s->size, f->act, f->v, f->cur);
}

const cgam_syn_kind cgam_syn_user = {
    .name = "user", .eval = user_eval, .tangent = user_tangent, .slope = user_slope};

cgam_status cgam_net_add_synapse(cgam_net *net, const char *name, int k, const int *layers,
                                 const cgam_synapse *synapse, void *user)
{
    cgam_syn *s;
    if (!synapse->eval)
        return cgam_fail(net->env, CGAM_E_ARG, "synapse '%s' needs a function", name);
    cgam_status status = cgam_net_begin(net, &cgam_syn_user, name, k, layers, 1, &s);
    if (status != CGAM_OK) return status;
    s->table = *synapse;
    s->user = user;
    for (int j = 0; j < k; j++) s->scratch += 2 * s->size[j];
    if (synapse->slope && synapse->params > 0) s->scratch += synapse->params;
    return cgam_net_end(net, CGAM_OK);
}
