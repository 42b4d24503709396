/* sweep_choose.c: the best pair of layers, and its accuracy on queries it was not chosen on.
 *
 * Held out means that nothing comes from the queries that are counted: pair and coupling are chosen on one half, with the
 * context made of that half; the other half is then counted with the same context, pair and coupling. With few queries
 * many pairs share the top. Over two labels they must: a context adds one number to the difference of the scores, so
 * contexts of any layer that push the same way give the same step function up to the scale of lambda. A rule, not rounding,
 * decides among them. */
#include "base/alloc.h"
#include "lab/language/sweep.h"
#include "lab/names.h"
#include "lm/lens.h"

#include <math.h>
#include <stdlib.h>

/* ---- Steps ----------------------------------------------------------------------------------- */
/* Exact couplings, and the step functions they make.
 *
 * Token y wins over m where (a_y - a_m) + lambda (b_y - b_m) > 0. With r = (a_m - a_y)/(b_y - b_m)
 * that is lambda > r where b_y > b_m, lambda < r where b_y < b_m, and a_y > a_m where they are
 * equal. So the interval is the intersection of half-lines, found in one pass over the vocabulary,
 * which ends early once it is empty. The largest a and the largest b are the likeliest to end it:
 * the caller can name them. A factor on the context divides the interval's ends. */

static const cgam_interval none = {INFINITY, -INFINITY};

bool cgam_sweep_narrow(double gap, double rise, bool before, cgam_interval *x)
{
    double r = gap / rise;
    if (rise > 0 && r > x->from) x->from = r;
    if (rise < 0 && r < x->to) x->to = r;
    return x->from < x->to && !(rise == 0 && (gap > 0 || (gap == 0 && before)));
}

/* Takes token m's half-line off; y has the scores ay and by. */
static bool narrow_by_token(const float *a, const float *b, double ay, double by, int64_t y,
                            int64_t m, cgam_interval *x)
{
    return m == y || cgam_sweep_narrow((double)a[m] - ay, by - (double)b[m], m < y, x);
}

static cgam_interval interval_of(int64_t n, const float *a, const float *b, double ay, double by,
                                 int64_t y, int hints, const int64_t *hint)
{
    enum { PIECE = 512 };
    cgam_interval x = {0, INFINITY};
    for (int k = 0; k < hints; k++)
        if (!narrow_by_token(a, b, ay, by, y, hint[k], &x)) return none;
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        int64_t end = begin + PIECE < n ? begin + PIECE : n;
        /* Does any token of the piece change the interval? Products say so without a division:
         * r > from is gap > from rise where rise > 0, r < to is gap > to rise where rise < 0. */
        int touched = 0;
        for (int64_t m = begin; m < end; m++) {
            double rise = by - (double)b[m], gap = (double)a[m] - ay;
            touched |= (rise > 0) & (gap > x.from * rise);
            touched |= (rise < 0) & (gap > x.to * rise);
            touched |= (rise == 0) & (gap >= 0) & (m != y);
        }
        for (int64_t m = begin; m < end && touched; m++)
            if (!narrow_by_token(a, b, ay, by, y, m, &x)) return none;
    }
    return x;
}

cgam_interval cgam_sweep_interval(int64_t n, const float *a, const float *b, int64_t y)
{
    return interval_of(n, a, b, (double)a[y], (double)b[y], y, 0, NULL);
}

/* y raised by the slack wins wherever it truly does. Inside that interval a rival may win only if it
 * does so at an end, scores being linear; those that f32 cannot rule out there are scored again. */
cgam_interval cgam_sweep_interval_sure(const cgam_sweep_rivals *of, int64_t y, double ay, double by,
                                       const int64_t hint[2])
{
    enum { PIECE = 512 };
    const float *a = of->a, *b = of->b;
    int64_t n = of->lens->vocab;
    cgam_interval wide = interval_of(n, a, b, ay + of->slack_a, by + of->slack_b, y, 2, hint);
    if (wide.from >= wide.to) return none;
    cgam_interval x = {0, INFINITY};
    const double low_a = ay - of->slack_a, low_b = by - of->slack_b;
    const double end = isfinite(wide.to) ? wide.to : 1, flat = isfinite(wide.to) ? 1 : 0;
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        int64_t stop = begin + PIECE < n ? begin + PIECE : n;
        int near = 0;
        for (int64_t m = begin; m < stop; m++) {
            double rise = low_b - (double)b[m], gap = (double)a[m] - low_a;
            near |= (gap >= wide.from * rise) | (flat * gap >= end * rise);
        }
        for (int64_t m = begin; m < stop && near; m++) {
            double rise = low_b - (double)b[m], gap = (double)a[m] - low_a;
            if (m == y || !((gap >= wide.from * rise) | (flat * gap >= end * rise))) continue;
            double am = cgam_lens_dot(of->lens, of->kind, m, of->q);
            double bm = cgam_lens_dot(of->lens, of->kind, m, of->c);
            if (!cgam_sweep_narrow(am - ay, by - bm, m < y, &x)) return none;
        }
    }
    return x;
}

/* ---- Step functions ----------------------------------------------------------------------- */
/* How wide a range is for its size, from 0 to 1: a factor of two is as wide anywhere. */
static double breadth_of(cgam_interval x)
{
    if (!isfinite(x.to)) return 1;
    return x.to > x.from ? (x.to - x.from) / (x.to + x.from) : 0;
}

typedef struct edge {
    double at;
    int change;
} edge;

static int by_place(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->change - y->change; /* an interval ends before the next begins: ends are open */
}

cgam_status cgam_sweep_step(cgam_env *env, int64_t n, const cgam_interval *of, cgam_step *out)
{
    *out = (cgam_step){0, {0, INFINITY}};
    edge *edges = cgam_alloc(env, 2 * (size_t)n, sizeof *edges);
    if (!edges) return cgam_fail_nomem(env, "a step function");
    int64_t used = 0, held = 0;
    double widest = 0;
    for (int64_t i = 0; i < n; i++) {
        if (of[i].from >= of[i].to) continue;
        edges[used++] = (edge){of[i].from, 1};
        if (isfinite(of[i].to)) edges[used++] = (edge){of[i].to, -1};
    }
    if (used > 0) qsort(edges, (size_t)used, sizeof *edges, by_place);
    for (int pass = 0; pass < 2; pass++, held = 0) /* how many and how wide; then where first */
        for (int64_t i = 0; i < used; i++) {
            held += edges[i].change;
            cgam_interval here = {edges[i].at, i + 1 < used ? edges[i + 1].at : INFINITY};
            if (!(here.to > here.from) || held == 0 || held < out->count) continue;
            double breadth = breadth_of(here);
            if (pass == 0) {
                widest = held > out->count ? breadth : fmax(widest, breadth);
                out->count = held;
            } else if (cgam_sweep_as_wide(breadth, widest)) {
                out->lambda = here;
                break;
            }
        }
    cgam_free(env, edges);
    return CGAM_OK;
}

double cgam_sweep_inside(cgam_interval range)
{
    if (range.from >= range.to) return range.from; /* of a grid, and exactly that */
    if (!isfinite(range.to)) return range.from > 0 ? 2 * range.from : 1;
    return range.from > 0 ? sqrt(range.from) * sqrt(range.to) : range.to / 2;
}

/* ---- Choices --------------------------------------------------------------------------------- */
CGAM_NAMES(cgam_sweep_over, cgam_sweep_over, "restricted", "full")

const cgam_interval *cgam_sweep_intervals(const cgam_sweep *s, cgam_sweep_over over,
                                          int64_t context, int64_t query_layer)
{
    return s->over[over]
               ? s->over[over] + cgam_sweep_cell(s, CGAM_SWEEP_CROSSED, context, query_layer)
               : NULL;
}

/* Is query i of the cell at `at` right? */
static bool is_hit(const cgam_sweep *s, cgam_sweep_over over, int64_t at, int64_t i, double lambda)
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
    for (int64_t i = 0; i < s->in.queries; i++) held += is_hit(s, over, at, i, lambda);
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
static int64_t choose_pair(int64_t pairs, int64_t layers, const cgam_step *steps)
{
    int64_t most = -1, best = -1;
    double widest = 0;
    for (int64_t p = 0; p < pairs; p++) {
        double breadth = breadth_of(steps[p].lambda);
        if (steps[p].count < most) continue;
        widest = steps[p].count > most ? breadth : fmax(widest, breadth);
        most = steps[p].count;
    }
    for (int64_t p = 0; p < pairs; p++) {
        if (steps[p].count < most || !cgam_sweep_as_wide(breadth_of(steps[p].lambda), widest))
            continue;
        if (best < 0 || p % layers >= best % layers) best = p;
    }
    return best;
}

/* The pairs of one choice. */
typedef struct pair_choice {
    const cgam_sweep *sweep;
    cgam_sweep_over over;
    int64_t first, pairs;
    cgam_interval *scratch; /* [queries] */
    cgam_step *steps;       /* [pairs] on one half or on all */
} pair_choice;

static int64_t cell_of(const pair_choice *c, int plane, int64_t pair)
{
    int64_t layers = c->sweep->in.layers;
    return cgam_sweep_cell(c->sweep, plane, c->first + pair / layers, pair % layers);
}

/* On all queries (half 2) each meets the context of the other half; on one half, that of its own. */
static cgam_status best_pair_on(pair_choice *c, int half, int64_t *best)
{
    int plane = half < 2 && c->sweep->planes > CGAM_SWEEP_OWN ? CGAM_SWEEP_OWN : CGAM_SWEEP_CROSSED;
    cgam_status status = CGAM_OK;
    for (int64_t p = 0; p < c->pairs && status == CGAM_OK; p++)
        status = step_of(c->sweep, c->over, cell_of(c, plane, p), half, c->scratch, &c->steps[p]);
    if (status == CGAM_OK) *best = choose_pair(c->pairs, c->sweep->in.layers, c->steps);
    return status;
}

/* How many queries of the other half a pair chosen on `half` is right about; right NULL: only that. */
static int64_t count_held_out(const pair_choice *c, int half, int64_t pair, bool *right)
{
    int64_t held = 0, at = cell_of(c, CGAM_SWEEP_CROSSED, pair);
    double lambda = cgam_sweep_inside(c->steps[pair].lambda);
    for (int64_t i = 1 - half; i < c->sweep->in.queries; i += 2) {
        bool h = is_hit(c->sweep, c->over, at, i, lambda);
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
    pair_choice c = {s, over, first, count * layers, NULL, NULL};
    cgam_status status =
        cgam_alloc_all(s->env, "step functions", CGAM_ARRAY(c.scratch, s->in.queries),
                       CGAM_ARRAY(c.steps, c.pairs));
    if (status == CGAM_OK) status = best_pair_on(&c, 2, &p);
    if (status == CGAM_OK)
        *out = (cgam_sweep_best){.context = first + p / layers,
                                 .query_layer = p % layers,
                                 .lambda = c.steps[p].lambda,
                                 .accuracy = (double)c.steps[p].count / counted};
    for (int half = 0; half < 2 && status == CGAM_OK; half++) {
        status = best_pair_on(&c, half, &p);
        if (status != CGAM_OK) break;
        held += count_held_out(&c, half, p, right);
        out->half[half].context = first + p / layers;
        out->half[half].query_layer = p % layers;
        out->half[half].lambda = cgam_sweep_inside(c.steps[p].lambda);
        int64_t tied = 0, sum = 0;
        for (int64_t k = 0; k < c.pairs; k++) {
            if (c.steps[k].count != c.steps[p].count) continue;
            tied++;
            sum += count_held_out(&c, half, k, NULL);
        }
        ties_held += (double)sum / (double)tied;
        out->tied += (double)tied / 2;
    }
    out->held_out = (double)held / counted;
    out->held_out_ties = ties_held / counted;
    cgam_free_all(s->env, c.scratch, c.steps);
    return status;
}
