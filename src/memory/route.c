/* route.c: see route.h; cgam/recall.h and docs/roofline.md describe the effect of each route. */
#include "memory/route.h"
#include "memory/results.h"
#include "memory/small.h"
#include "memory/sums.h"

#include "num/attend.h"
#include "num/cpu/f32.h"
#include "num/gemm_pass.h"
#include "num/vec.h"

#include <math.h>

_Static_assert((int)CGAM_RECALL_GROUP == (int)CGAM_GEMM_PASS_WIDTH,
               "a group is multiplied at once");

static const double LARGE = 0x1p18;         /* numbers of a bank: a smaller bank stays in cache */
static const double GROUP_DOUBLES = 0x1p23; /* 64 MiB for the vectors of a group */
static const double TOGETHER_DOUBLES = 0x1p27; /* the same if all are multiplied, */
static const double LIGHT_DOUBLES = 0x1p25;    /* and if the bank is read once: what an env keeps */
/* The streamed solve loses eps / min |D| (num/dplr.c); below 1/100 that could affect the twelfth digit of p. */
static const double PIVOT_EXACT = 100;

/* Vectors of a query: all; and the most of one that sums.c solves without s, r and p. */
enum { ALL = CGAM_QUERY_VECTORS + CGAM_QUERY_SCORES, LIGHT = 4 };

const char *const cgam_path_words[] = {"pass", "matrices", "vectors", "coupled", "coupled-together",
                                       "flow", "sketch",   "anneal",  "lanes",   NULL};

cgam_reach cgam_reach_of(const cgam_recall *plan, cgam_status *status)
{
    const cgam_bank *bank = plan->bank;
    const cgam_recall_opts *o = &plan->opts;
    const cgam_dplr *A = plan->gate->A;
    bool by_rows = A && !cgam_dplr_dense(A);
    cgam_reach can = {.direct = !o->W && plan->gate->one_pass,
                      .streams = o->alpha > 0 && o->lambda > 0 && by_rows,
                      .matrices = (double)bank->Z.n * (double)bank->Z.d >= LARGE,
                      .size = bank->info.norm_max};
    if (by_rows && plan->gate->a == 0) { /* all pivots are 1 */
        can.pivot_max = 1;
        can.row_max = can.size;
        can.row_norm = can.size * sqrt((double)bank->Z.n);
    } else if (by_rows) {
        double most, row_most, squares;
        CGAM_REDUCE(&bank->Z, i, CGAM_MAX(most), CGAM_MAX(row_most), CGAM_SUM(squares)) {
            double pivot = fabs(cgam_dplr_dinv(A)[i]), row = pivot * sqrt(bank->norm2[i]);
            most = fmax(most, pivot);
            row_most = fmax(row_most, row);
            squares += row * row;
        }
        *status = cgam_rows_status(&bank->Z);
        can.pivot_max = fmax(most, 0);
        can.row_max = fmax(row_most, 0);
        can.row_norm = sqrt(squares);
    }
    can.refines = can.streams && can.pivot_max > PIVOT_EXACT;
    /* a sketch's fallback, and a threshold, need the accuracy of double */
    can.f32 = can.matrices && bank->Z.dtype != CGAM_F64 && cgam_f32_holds(can.size) && !o->fast &&
              !cgam_recall_sparse(plan);
    if (bank->scale) /* the stored rows must suit f32 too */
        can.f32 &= cgam_f32_holds(bank->scale_min) && cgam_f32_holds(bank->scale_max);
    can.coupled_f32 = can.streams && can.f32 && cgam_f32_holds(can.pivot_max);
    can.begins_f32 = can.coupled_f32 && o->tol <= CGAM_ROUTE_F32_END;
    return can;
}

bool cgam_route_sums(const cgam_recall *plan, const cgam_recall_in *in)
{
    return !in->start && cgam_sums_apply(plan);
}

bool cgam_route_light(const cgam_recall *plan, const cgam_recall_out *out)
{
    return !out->p && !out->s && !out->r && !out->readout && !cgam_recall_full(plan);
}

/* Returns how many queries, at most `most`, have `vectors` each that fit in `doubles`. */
static int64_t queries_fitting(const cgam_recall *plan, int vectors, double doubles, int64_t most)
{
    double each = (double)plan->bank->Z.n * vectors;
    return (int64_t)fmax(1, fmin(floor(doubles / each), (double)most));
}

bool cgam_route_multiplies(const cgam_recall *plan, int64_t queries)
{
    return plan->can.matrices && queries >= CGAM_ROUTE_SHARE;
}

/* The unit that multiplies: byte units have their own name, other loops are named after the instruction set they
 * use. */
static const char *unit_of(const cgam_cpu *cpu, const cgam_route *route)
{
    bool bytes = route->path == CGAM_PATH_SKETCH;
    bool matrices = route->path == CGAM_PATH_MATRICES || route->path == CGAM_PATH_COUPLED_TOGETHER;
    if (bytes || (matrices && route->precision == CGAM_F32 && cpu->digits)) return cpu->name;
    const cgam_cpu *first = cgam_cpu_all;
    while (first->f64 != cpu->f64) first++;
    return first->name;
}

/* Chooses the route of so many queries. */
static cgam_route choose_route(const cgam_recall *plan, const cgam_recall_in *in,
                               const cgam_recall_out *out, int64_t queries)
{
    const cgam_reach *can = &plan->can;
    const cgam_recall_opts *o = &plan->opts;
    bool many = cgam_route_multiplies(plan, queries);
    bool vectors = plan->twins || cgam_recall_sparse(plan) || out->p || out->s ||
                   (o->fast && cgam_recall_full(plan)) || out->r ||
                   out->top > CGAM_ATTEND_LEADERS_MAX || (in->c && in->c_per_query && !can->direct);
    cgam_route route = {.path = CGAM_PATH_VECTORS,
                        .precision = CGAM_F64,
                        .group = queries_fitting(plan, ALL, GROUP_DOUBLES, CGAM_ROUTE_SHARE)};
    bool sums = cgam_route_sums(plan, in), light = sums && cgam_route_light(plan, out);
    int64_t together =
        light ? queries_fitting(plan, in->c ? LIGHT : 1, LIGHT_DOUBLES, CGAM_RECALL_GROUP)
              : queries_fitting(plan, ALL, TOGETHER_DOUBLES, CGAM_RECALL_GROUP);
    if (plan->lanes && !in->start && !o->fast) {
        route.path = CGAM_PATH_LANES;
        route.group = CGAM_SMALL_TILE;
    } else if (o->mode == CGAM_FIRST && !vectors) {
        route.path = many ? CGAM_PATH_MATRICES : CGAM_PATH_PASS;
        route.precision = can->f32 ? CGAM_F32 : CGAM_F64;
        route.group = CGAM_ROUTE_SHARE;
        if (o->fast && !out->readout) route.path = CGAM_PATH_SKETCH;
        if (many || route.path == CGAM_PATH_SKETCH) route.group = CGAM_RECALL_GROUP;
    } else if (o->mode == CGAM_FLOW) {
        route.path = CGAM_PATH_FLOW;
    } else if (sums && many && together >= CGAM_ROUTE_SHARE) {
        route.path = CGAM_PATH_COUPLED_TOGETHER;
        route.group = together;
    } else if (o->mode == CGAM_COUPLED && many && !in->start && can->coupled_f32 && plan->small &&
               !can->refines && together >= CGAM_ROUTE_SHARE) {
        route.path = CGAM_PATH_COUPLED_TOGETHER;
        route.precision = CGAM_F32;
        route.group = together;
    } else if (o->mode == CGAM_COUPLED) {
        route.path = CGAM_PATH_COUPLED;
        if (can->begins_f32) route.precision = CGAM_F32;
    } else if (o->mode == CGAM_ANNEAL) {
        route.path = CGAM_PATH_ANNEAL;
    }
    route.unit = unit_of(plan->bank->Z.cpu, &route);
    route.certify = o->certify;
    return route;
}

/* Sets the group that begins at x->from. */
static void set_group(cgam_schedule *x)
{
    if (x->from >= x->rest_from) x->route = x->rest;
    int64_t left = x->in->queries - x->from;
    x->count = left < x->route.group ? left : x->route.group;
}

cgam_schedule cgam_schedule_open(const cgam_recall *plan, const cgam_recall_in *in,
                                 const cgam_recall_out *out)
{
    cgam_schedule x = {.plan = plan, .in = in, .out = out, .rest_from = in->queries};
    x.route = x.rest = choose_route(plan, in, out, in->queries);
    int64_t rest = in->queries % x.route.group;
    if (!cgam_route_multiplies(plan, rest)) {
        x.rest_from -= rest;
        x.rest = choose_route(plan, in, out, rest);
    }
    set_group(&x);
    return x;
}

cgam_schedule cgam_schedule_vectors(const cgam_recall *plan, const cgam_recall_in *in,
                                    const cgam_recall_out *out)
{
    cgam_schedule x = {.plan = plan, .in = in, .out = out, .rest_from = in->queries};
    int64_t group = queries_fitting(plan, ALL, GROUP_DOUBLES, CGAM_ROUTE_SHARE);
    x.route = x.rest =
        (cgam_route){.path = CGAM_PATH_VECTORS, .precision = CGAM_F64, .group = group};
    set_group(&x);
    return x;
}

bool cgam_schedule_next(cgam_schedule *x)
{
    x->from += x->count;
    set_group(x);
    return x->count > 0;
}

cgam_route cgam_recall_route(const cgam_recall *plan, const cgam_recall_in *in,
                             const cgam_recall_out *out)
{
    return cgam_schedule_open(plan, in, out).route;
}
