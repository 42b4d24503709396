/* convergence.c: the books of an iteration, the same for queries that go alone and together: how far
 * p moved, how fast that falls, what became of the energy, and when it is over. */
#include "memory/recall.h"

#include <math.h>

enum { STALL_ROUNDS = 60 };

void cgam_books_direct(cgam_query *m, bool finite)
{
    m->end = finite ? CGAM_END_DIRECT : CGAM_END_DIVERGED;
    m->change = m->energy_start = m->energy_end = m->energy_rise = NAN;
}

void cgam_books_open(cgam_query *m, double energy)
{
    m->iterations = m->newton_steps = m->newton_after = m->since = 0;
    m->change = m->change_norm = m->rate = m->energy_rise = m->streamed = 0;
    m->best = INFINITY;
    m->energy_start = m->energy_end = energy;
}

void cgam_books_change(cgam_query *m, double change)
{
    m->iterations++;
    if (m->change > 0 && change > 0) {
        double ratio = change / m->change; /* smoothed, since the first ratios say little */
        m->rate = m->rate > 0 ? sqrt(m->rate * ratio) : ratio;
    }
    m->change = change;
    if (!(change < m->best)) return;
    m->best = change;
    m->since = m->iterations;
}

void cgam_books_energy(cgam_query *m, double energy, bool exact)
{
    if (exact && !m->trailed) m->energy_rise = fmax(m->energy_rise, energy - m->energy_end);
    m->trailed = !exact;
    m->energy_end = energy;
}

bool cgam_books_end(const cgam_recall *plan, cgam_query *m, bool exact)
{
    const cgam_recall_opts *o = &plan->opts;
    /* rounding of r moves p by about beta eps |r|; a change of that size that stops falling has
     * arrived as far as double can tell */
    double noise = 64 * o->beta * 0x1p-53 * (fabs(m->lse) / o->beta + 1);
    bool converged = m->change <= o->tol && exact, spent = m->iterations >= o->max_iter;
    bool stalled = m->iterations - m->since > STALL_ROUNDS && m->change <= noise;
    if (converged || spent || stalled)
        m->end = converged ? CGAM_END_CONVERGED : spent ? CGAM_END_MAX_ITER : CGAM_END_STALLED;
    return converged || spent || stalled;
}
