/* convergence.c: the state of an iterating coupled recall, for queries solved alone and together: its start, how far
 * p moved, how fast that decreases, what happened to the energy, and when it ends. */
#include "memory/stages.h"

#include "num/vec.h"

#include <math.h>

enum { STALL_ROUNDS = 60 };

cgam_trace cgam_trace_direct(bool finite)
{
    return (cgam_trace){.end = finite ? CGAM_END_DIRECT : CGAM_END_DIVERGED,
                        .change = NAN,
                        .energy_start = NAN,
                        .energy_end = NAN,
                        .energy_rise = NAN};
}

cgam_status cgam_iterating_begin(const cgam_recall *plan, const cgam_settled *m,
                                 const double *start, const cgam_twins *level, cgam_iterating *out)
{
    const cgam_rows *Z = &plan->bank->Z;
    cgam_iterating x = {.in = m->in, .p_old = m->s, .r_new = m->r, .p_new = m->p, .best = INFINITY};
    cgam_vec_copy(Z, x.r_new, x.in.a);
    cgam_status status = cgam_twins_level(plan->bank, level, x.r_new);
    if (!cgam_activate(plan, x.r_new, x.p_new, &x.act)) x.trace.end = CGAM_END_DIVERGED;
    /* a given start has no point of this energy on its path */
    x.trace.energy_start = start ? INFINITY : -x.in.half_us0 - x.act.lse / plan->opts.beta;
    x.trace.energy_end = x.trace.energy_start;
    if (start) cgam_vec_copy(Z, x.p_new, start);
    x.in.level = x.in.level && !start;
    *out = x;
    return status;
}

cgam_settled cgam_iterating_settle(const cgam_recall *plan, const cgam_iterating *x)
{
    double lambda = plan->opts.lambda, *s = x->p_old;
    const cgam_rows *Z = &plan->bank->Z;
    CGAM_EACH_ROW(Z, i)
        s[i] = lambda > 0 ? x->in.s0[i] + (x->r_new[i] - x->in.a[i]) / lambda : x->in.s0[i];
    return (cgam_settled){.in = x->in,
                          .s = s,
                          .r = x->r_new,
                          .p = x->p_new,
                          .act = x->act,
                          .trace = x->trace,
                          .together = x->together,
                          .followed = x->followed,
                          .feedback = x->feedback};
}

void cgam_iterating_count(cgam_iterating *x, double change)
{
    cgam_trace *t = &x->trace;
    t->iterations++;
    if (t->change > 0 && change > 0) {
        double ratio = change / t->change; /* smoothed, since the first ratios say little */
        t->rate = t->rate > 0 ? sqrt(t->rate * ratio) : ratio;
    }
    t->change = change;
    if (!(change < x->best)) return;
    x->best = change;
    x->since = t->iterations;
}

void cgam_iterating_energy(cgam_iterating *x, double energy, bool exact)
{
    cgam_trace *t = &x->trace;
    if (exact && !x->rough) t->energy_rise = fmax(t->energy_rise, energy - t->energy_end);
    x->rough = !exact;
    t->energy_end = energy;
}

bool cgam_iterating_ends(const cgam_recall *plan, cgam_iterating *x, bool exact)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_trace *t = &x->trace;
    /* rounding of r moves p by about beta eps |r|; a change of that size that no longer decreases is the most that
     * double can resolve */
    double noise = 64 * o->beta * 0x1p-53 * (fabs(x->act.lse) / o->beta + 1);
    bool converged = t->change <= o->tol && exact, spent = t->iterations >= o->max_iter;
    bool stalled = t->iterations - x->since > STALL_ROUNDS && t->change <= noise;
    if (converged || spent || stalled)
        t->end = converged ? CGAM_END_CONVERGED : spent ? CGAM_END_MAX_ITER : CGAM_END_STALLED;
    return converged || spent || stalled;
}
