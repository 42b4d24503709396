/* sweep_choose.c: the best pair of layers, and what it is worth on queries it was not chosen on.
 *
 * Held out means that nothing comes from the queries that are counted: on one half, with the context
 * made of that half, pair and coupling are chosen; the other half meets the same context there. With
 * few queries many pairs share the top. Over two labels they must: a context adds one number to the
 * difference of the scores, so contexts of any layer that push the same way give the same step
 * function up to the scale of lambda. Which of those is taken is a matter of the rule, not of rounding. */
#include "base/env.h"
#include "base/names.h"
#include "lm/sweep.h"

#include <math.h>

CGAM_NAMES(cgam_sweep_over, cgam_sweep_over, "restricted", "full")

const cgam_interval *cgam_sweep_intervals(const cgam_sweep *s, cgam_sweep_over over,
                                          int64_t context, int64_t query_layer)
{
    return s->over[over]
               ? s->over[over] + cgam_sweep_cell(s, CGAM_SWEEP_CROSSED, context, query_layer)
               : NULL;
}

/* Is query i of the cell at `at` right? */
static bool hit(const cgam_sweep *s, cgam_sweep_over over, int64_t at, int64_t i, double lambda)
{
    if (s->over[over]) {
        cgam_interval x = s->over[over][at + i];
        return x.from <= lambda && lambda < x.to;
    }
    for (int64_t g = 0; g < s->in.grid; g++)
        if (s->lambda[g] == lambda) return s->marks[over][at + i] >> g & 1;
    return false;
}

int64_t cgam_sweep_hits(const cgam_sweep *s, cgam_sweep_over over, int64_t context,
                        int64_t query_layer, double lambda)
{
    int64_t held = 0, at = cgam_sweep_cell(s, CGAM_SWEEP_CROSSED, context, query_layer);
    for (int64_t i = 0; i < s->in.queries; i++) held += hit(s, over, at, i, lambda);
    return held;
}

/* The best coupling of a pair on the queries of one half (0, 1) or on all (2). */
static cgam_status step_of(const cgam_sweep *s, cgam_sweep_over over, int64_t at, int half,
                           cgam_interval *scratch, cgam_step *out)
{
    int64_t used = 0, n = s->in.queries;
    if (s->over[over]) {
        for (int64_t i = 0; i < n; i++)
            if (half == 2 || i % 2 == half) scratch[used++] = s->over[over][at + i];
        return cgam_sweep_step(s->env, used, scratch, out);
    }
    *out = (cgam_step){-1, {0, 0}};
    for (int64_t g = 0; g < s->in.grid; g++) {
        int64_t held = 0;
        for (int64_t i = 0; i < n; i++)
            if (half == 2 || i % 2 == half) held += s->marks[over][at + i] >> g & 1;
        if (held > out->count) *out = (cgam_step){held, {s->lambda[g], s->lambda[g]}};
    }
    return CGAM_OK;
}

cgam_status cgam_sweep_pair(const cgam_sweep *s, cgam_sweep_over over, int64_t context,
                            int64_t query_layer, cgam_step *out)
{
    cgam_interval *scratch = cgam_alloc(s->env, (size_t)s->in.queries, sizeof *scratch);
    if (!scratch) return cgam_fail_nomem(s->env, "a step function");
    int64_t at = cgam_sweep_cell(s, CGAM_SWEEP_CROSSED, context, query_layer);
    cgam_status status = step_of(s, over, at, 2, scratch, out);
    cgam_free(s->env, scratch);
    return status;
}

/* Of pairs p = context * layers + query layer: the most hits, the widest range, the latest query
 * layer, the latest context. */
static int64_t choose(int64_t pairs, int64_t layers, const cgam_step *steps)
{
    int64_t most = -1, best = -1;
    double widest = 0;
    for (int64_t p = 0; p < pairs; p++) {
        double breadth = cgam_sweep_breadth(steps[p].lambda);
        if (steps[p].count < most) continue;
        widest = steps[p].count > most ? breadth : fmax(widest, breadth);
        most = steps[p].count;
    }
    for (int64_t p = 0; p < pairs; p++) {
        if (steps[p].count < most ||
            !cgam_sweep_as_wide(cgam_sweep_breadth(steps[p].lambda), widest))
            continue;
        if (best < 0 || p % layers >= best % layers) best = p;
    }
    return best;
}

/* The pairs of one choice. */
typedef struct choice {
    const cgam_sweep *sweep;
    cgam_sweep_over over;
    int64_t first, pairs;
    cgam_interval *scratch; /* [queries] */
    cgam_step *steps;       /* [pairs] on one half or on all */
} choice;

static int64_t place_of(const choice *c, int plane, int64_t pair)
{
    int64_t layers = c->sweep->in.layers;
    return cgam_sweep_cell(c->sweep, plane, c->first + pair / layers, pair % layers);
}

/* On all queries (half 2) each meets the context of the other half; on one half, that of its own. */
static cgam_status best_on(choice *c, int half, int64_t *best)
{
    int plane = half < 2 && c->sweep->planes > CGAM_SWEEP_OWN ? CGAM_SWEEP_OWN : CGAM_SWEEP_CROSSED;
    cgam_status status = CGAM_OK;
    for (int64_t p = 0; p < c->pairs && status == CGAM_OK; p++)
        status = step_of(c->sweep, c->over, place_of(c, plane, p), half, c->scratch, &c->steps[p]);
    if (status == CGAM_OK) *best = choose(c->pairs, c->sweep->in.layers, c->steps);
    return status;
}

/* How many queries of the other half a pair chosen on `half` is right about; right NULL: only that. */
static int64_t judged(const choice *c, int half, int64_t pair, bool *right)
{
    int64_t held = 0, at = place_of(c, CGAM_SWEEP_CROSSED, pair);
    double lambda = cgam_sweep_inside(c->steps[pair].lambda);
    for (int64_t i = 1 - half; i < c->sweep->in.queries; i += 2) {
        bool h = hit(c->sweep, c->over, at, i, lambda);
        held += h;
        if (right) right[i] = h;
    }
    return held;
}

cgam_status cgam_sweep_choose(const cgam_sweep *s, cgam_sweep_over over, int64_t first,
                              int64_t count, bool *right, cgam_sweep_best *out)
{
    int64_t layers = s->in.layers, p, held = 0;
    double counted = s->counted ? (double)s->counted : (double)NAN, ties_held = 0;
    *out = (cgam_sweep_best){0};
    choice c = {s,
                over,
                first,
                count * layers,
                cgam_alloc(s->env, (size_t)s->in.queries, sizeof *c.scratch),
                cgam_alloc(s->env, (size_t)(count * layers), sizeof *c.steps)};
    cgam_status status =
        c.scratch && c.steps ? best_on(&c, 2, &p) : cgam_fail_nomem(s->env, "step functions");
    if (status == CGAM_OK)
        *out = (cgam_sweep_best){.context = first + p / layers,
                                 .query_layer = p % layers,
                                 .lambda = c.steps[p].lambda,
                                 .accuracy = (double)c.steps[p].count / counted};
    for (int half = 0; half < 2 && status == CGAM_OK; half++) {
        status = best_on(&c, half, &p);
        if (status != CGAM_OK) break;
        held += judged(&c, half, p, right);
        out->half[half].context = first + p / layers;
        out->half[half].query_layer = p % layers;
        out->half[half].lambda = cgam_sweep_inside(c.steps[p].lambda);
        int64_t tied = 0, sum = 0;
        for (int64_t k = 0; k < c.pairs; k++) {
            if (c.steps[k].count != c.steps[p].count) continue;
            tied++;
            sum += judged(&c, half, k, NULL);
        }
        ties_held += (double)sum / (double)tied;
        out->tied += (double)tied / 2;
    }
    out->held_out = (double)held / counted;
    out->held_out_ties = ties_held / counted;
    cgam_free(s->env, c.scratch);
    cgam_free(s->env, c.steps);
    return status;
}
