/* lanes.c: the choice among the compiled loops, and how much work area they need. */
#include "lab/synthetic/lanes.h"

#define DECLARE(set) extern const cgam_lanes cgam_lanes_##set;
#define ENTRY(set) &cgam_lanes_##set,
CGAM_CPU_SETS(DECLARE)

const cgam_lanes *cgam_lanes_of(const cgam_cpu *cpu)
{
    static const cgam_lanes *const all[] = {&cgam_lanes_portable, CGAM_CPU_ROWS(ENTRY)};
    return all[cpu - cgam_cpu_all];
}

/* As lanes_flow.h and lanes_fold.h lay it out: rates, three states, four evaluations with two p,
 * one vector of modes, and six weights for each of 24 step sizes with what is known of each. */
size_t cgam_lanes_flow_size(const cgam_bundle *g)
{
    int64_t n = g->n, m = g->m;
    int64_t vectors = m + 3 * (3 * n + 2 * m) + 4 * (2 * n + m) + 2 * n + m + 24 * 6 * m;
    return (size_t)(g->width * vectors) + CGAM_FLOW_LEVEL_SIZE;
}

size_t cgam_lanes_fold_size(const cgam_bundle *g)
{
    return (size_t)(g->width * (7 * g->n + g->m + 2 * g->n * g->n));
}
