/* syn_lowrank.c: higher-order synapses of low rank,
 *
 *   E = -gain sum over r of w[r] h0[r] .. h(k-1)[r],   hj = Uj xj,   Uj [rank, nj],
 *
 * whose currents are gain Uj' gj, gj[r] = w[r] times the product of the others. O(rank sum n). */
#include "net/net.h"

#include <math.h>
#include <string.h>

static void lowrank_plan(const cgam_syn *s, const bool *wanted, cgam_job *jobs)
{
    for (int j = 0; j < s->k; j++) {
        jobs[j] = (cgam_job){.op = s->op[j], .slot = j, .phase = CGAM_PHASE_FIRST};
        if (wanted[j])
            jobs[s->k + j] = (cgam_job){
                .op = s->op[j], .transposed = true, .slot = -1, .phase = CGAM_PHASE_SECOND};
    }
}

/* w[r] times the h of all slots but `except`, and, with dprod, its derivative. */
static double product_of_others(const cgam_syn *s, const cgam_frame *f, int except, int64_t r,
                                double *derivative)
{
    double value = s->vector ? s->vector[r] : 1, d = 0;
    for (int j = 0; j < s->k; j++) {
        if (j == except) continue;
        if (derivative) d = d * f->prod[j][r] + value * f->dprod[j][r];
        value *= f->prod[j][r];
    }
    if (derivative) *derivative = d;
    return value;
}

static cgam_status lowrank_feed(const cgam_syn *s, cgam_frame *f)
{
    for (int j = 0; j < s->k; j++)
        for (int64_t r = 0; f->in[s->k + j] && r < s->op[j]->rows; r++)
            f->in[s->k + j][r] = product_of_others(s, f, j, r, NULL);
    return CGAM_OK;
}

static cgam_status lowrank_feed_tangent(const cgam_syn *s, cgam_frame *f)
{
    for (int j = 0; j < s->k; j++)
        for (int64_t r = 0; f->din[s->k + j] && r < s->op[j]->rows; r++)
            (void)product_of_others(s, f, j, r, &f->din[s->k + j][r]);
    return CGAM_OK;
}

static cgam_status lowrank_eval(const cgam_syn *s, cgam_frame *f)
{
    double total = 0;
    for (int64_t r = 0; r < s->op[0]->rows; r++) total += product_of_others(s, f, -1, r, NULL);
    f->energy = -s->gain * total;
    return CGAM_OK;
}

/* dE/dUj = -gain gj xj'. */
static int lowrank_terms(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent,
                         cgam_outer *out)
{
    const int64_t rank = s->op[0]->rows;
    double *g = f->scratch, *dg = f->scratch + rank;
    for (int64_t r = 0; r < rank; r++)
        g[r] = product_of_others(s, f, slot, r, tangent ? &dg[r] : NULL);
    out[0] = (cgam_outer){-s->gain, tangent ? dg : g, f->act[slot]};
    if (tangent) out[1] = (cgam_outer){-s->gain, g, f->v[slot]};
    return tangent ? 2 : 1;
}

static cgam_status lowrank_slope(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                                 double factor, double *out)
{
    (void)what;
    for (int64_t r = 0; r < s->op[0]->rows; r++) {
        double value = 1, d = 0;
        for (int j = 0; j < s->k; j++) {
            if (tangent) d = d * f->prod[j][r] + value * f->dprod[j][r];
            value *= f->prod[j][r];
        }
        out[r] -= factor * s->gain * (tangent ? d : value);
    }
    return CGAM_OK;
}

void cgam_syn_currents_second(const cgam_syn *s, const double *const *act,
                              const double *const *prod, double *const *cur)
{
    (void)act;
    for (int j = 0; j < s->k; j++) cgam_syn_add(cur[j], s->gain, prod[s->k + j], s->size[j]);
}

const cgam_syn_kind cgam_syn_lowrank = {.name = "lowrank",
                                        .terms = lowrank_terms,
                                        .scratched = true,
                                        .slope = lowrank_slope,
                                        .plan = lowrank_plan,
                                        .feed = lowrank_feed,
                                        .eval = lowrank_eval,
                                        .feed_tangent = lowrank_feed_tangent,
                                        .currents = cgam_syn_currents_second};

cgam_status cgam_net_add_lowrank(cgam_net *net, const char *name, int k, const int *layers,
                                 const cgam_op *const *U, const double *w, double gain)
{
    cgam_env *env = net->env;
    cgam_syn *s;
    cgam_status status = cgam_net_begin(net, &cgam_syn_lowrank, name, k, layers, gain, &s);
    if (status != CGAM_OK) return status;
    for (int j = 0; j < k && status == CGAM_OK; j++) {
        if (!U[j] || !U[j]->apply || !U[j]->apply_t)
            status =
                cgam_fail(env, CGAM_E_ARG, "synapse '%s': factor %d needs both products", name, j);
        else if (U[j]->rows != U[0]->rows || U[j]->cols != s->size[j])
            status = cgam_fail(
                env, CGAM_E_SHAPE,
                "synapse '%s': factor %d is %lld x %lld, layer '%s' and the rank require %lld x %lld",
                name, j, (long long)U[j]->rows, (long long)U[j]->cols, net->layer[s->layer[j]].name,
                (long long)U[0]->rows, (long long)s->size[j]);
        s->op[j] = U[j];
    }
    if (status == CGAM_OK && w) status = cgam_syn_vector(net, s, w, U[0]->rows);
    if (status == CGAM_OK) s->scratch = 2 * U[0]->rows;
    return cgam_net_end(net, status);
}
