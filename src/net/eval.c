/* eval.c: the public calls that look at a point. */
#include "net/work.h"

#include <string.h>

enum { STATES_AT_ONCE = 64, TANGENTS_AT_ONCE = 16 };

/* Copies `count` states' worth of values to where the caller wants them. */
static cgam_status copy_values(cgam_work *w, const cgam_net *net, int64_t from, int64_t count,
                               double *rate, const cgam_net_values *out)
{
    size_t states = (size_t)(count * net->size) * sizeof(double);
    int parts = cgam_net_describe(net).parts;
    if (out->activation)
        memcpy(out->activation + from * net->size, cgam_work_activation(w), states);
    if (out->current) memcpy(out->current + from * net->size, cgam_work_current(w), states);
    if (out->parts)
        memcpy(out->parts + from * parts, cgam_work_parts(w),
               (size_t)(count * parts) * sizeof(double));
    if (out->rate || out->power) cgam_work_rate(w, rate);
    if (out->rate) memcpy(out->rate + from * net->size, rate, states);
    cgam_status status = CGAM_OK;
    for (int64_t b = 0; b < count && status == CGAM_OK; b++) {
        if (out->energy) out->energy[from + b] = cgam_work_energy(w, b);
        if (out->power) status = cgam_work_power(w, b, rate + b * net->size, &out->power[from + b]);
    }
    return status;
}

cgam_status cgam_net_eval(const cgam_net *net, int64_t batch, const double *x, const bool *clamped,
                          const cgam_net_values *out)
{
    cgam_status status = cgam_net_check_states(net, "state", batch, x);
    if (status != CGAM_OK || batch < 1) return status;
    cgam_work *w = NULL;
    int64_t most = batch < STATES_AT_ONCE ? batch : STATES_AT_ONCE;
    double *rate = cgam_alloc(net->env, (size_t)(most * net->size), sizeof *rate);
    status = rate
                 ? cgam_work_new(net, &(cgam_work_opts){most, clamped, out->current != NULL, 0}, &w)
                 : cgam_fail_nomem(net->env, "the rates of a network");
    for (int64_t from = 0; from < batch && status == CGAM_OK; from += most) {
        int64_t count = batch - from < most ? batch - from : most;
        cgam_work_refresh(w);
        status = cgam_work_eval(w, count, x + from * net->size);
        if (status == CGAM_OK) status = copy_values(w, net, from, count, rate, out);
    }
    cgam_work_free(w);
    cgam_free(net->env, rate);
    return status;
}

cgam_status cgam_net_jacobian(const cgam_net *net, const double *x, const bool *clamped,
                              int64_t count, const double *v, double *out)
{
    cgam_status status = cgam_net_check_states(net, "state", 1, x);
    if (status != CGAM_OK || count < 1) return status;
    cgam_work *w = NULL;
    int64_t most = count < TANGENTS_AT_ONCE ? count : TANGENTS_AT_ONCE;
    status = cgam_work_new(net, &(cgam_work_opts){1, clamped, false, most}, &w);
    if (status == CGAM_OK) status = cgam_work_eval(w, 1, x);
    if (status == CGAM_OK) status = cgam_work_jacobian(w, count, v, out);
    cgam_work_free(w);
    return status;
}
