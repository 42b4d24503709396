/* route.c: see route.h; what follows from each way is told in recall.h and docs/roofline.md. */
#include "memory/recall.h"

#include "base/names.h"
#include "num/attend.h"
#include "num/cpu/f32.h"
#include "num/gemm_pass.h"

#include <math.h>

_Static_assert((int)CGAM_RECALL_GROUP == (int)CGAM_GEMM_PASS_WIDTH,
               "a group is multiplied at once");

static const double LARGE = 0x1p18;         /* numbers of a bank: below, all of it stays in cache */
static const double GROUP_DOUBLES = 0x1p23; /* 64 MiB for the vectors of a group */
static const double TOGETHER_DOUBLES = 0x1p27; /* and where all of them are multiplied */
/* The streamed solve loses eps / min |D| (num/dplr.c); below a hundredth that could show in the
 * twelfth digit of p. */
static const double PIVOT_EXACT = 100;

CGAM_NAMES(cgam_path, cgam_path, "pass", "matrices", "vectors", "coupled", "coupled-together",
           "flow", "sketch", "anneal")

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
    if (by_rows) {
        cgam_tally t;
        cgam_tally_open(&t, &bank->Z, ">>+");
        while (cgam_tally_next(&t))
            for (int64_t i = t.from; i < t.to; i++) {
                double pivot = fabs(cgam_dplr_dinv(A)[i]), row = pivot * sqrt(bank->norm2[i]);
                t.x[0] = fmax(t.x[0], pivot);
                t.x[1] = fmax(t.x[1], row);
                t.x[2] += row * row;
            }
        *status = cgam_tally_close(bank->env, &t);
        can.pivot_max = fmax(t.x[0], 0);
        can.row_max = fmax(t.x[1], 0);
        can.row_norm = sqrt(t.x[2]);
    }
    can.refines = can.streams && can.pivot_max > PIVOT_EXACT;
    /* what falls back from a sketch is to be known as well as double allows, and so is a threshold */
    can.f32 = can.matrices && bank->Z.dtype != CGAM_F64 && cgam_f32_holds(can.size) && !o->fast &&
              !cgam_recall_sparse(plan);
    if (bank->scale) /* rows stored far from unit size */
        can.f32 &= cgam_f32_holds(bank->scale_min) && cgam_f32_holds(bank->scale_max);
    can.coupled_f32 = can.streams && can.f32 && cgam_f32_holds(can.pivot_max);
    can.begins_f32 = can.coupled_f32 && o->tol <= CGAM_ROUTE_F32_END;
    return can;
}

/* How many queries, at most `most`, have their vectors in `doubles`. */
static int64_t fitting(const cgam_recall *plan, double doubles, int64_t most)
{
    double each = (double)plan->bank->Z.n * (CGAM_QUERY_VECTORS + CGAM_QUERY_SCORES);
    return (int64_t)fmax(1, fmin(floor(doubles / each), (double)most));
}

cgam_route cgam_route_choose(const cgam_recall *plan, const cgam_recall_in *in,
                             const cgam_recall_out *out, int64_t queries)
{
    const cgam_reach *can = &plan->can;
    const cgam_recall_opts *o = &plan->opts;
    bool many = can->matrices && queries >= CGAM_ROUTE_SHARE;
    /* on a small bank the vectors of the gates cost little, and with them what rounding did to them */
    bool gates = in->c && o->alpha > 0 && o->lambda > 0 && !can->matrices;
    bool vectors = gates || plan->twins || cgam_recall_sparse(plan) || o->certify || out->p ||
                   out->s || out->r || out->top > CGAM_ATTEND_LEADERS_MAX ||
                   (in->c && in->c_per_query && !can->direct);
    cgam_route route = {CGAM_PATH_VECTORS, CGAM_F64,
                        fitting(plan, GROUP_DOUBLES, CGAM_ROUTE_SHARE)};
    int64_t together = fitting(plan, TOGETHER_DOUBLES, CGAM_RECALL_GROUP);
    if (o->mode == CGAM_FIRST && !vectors) {
        route = (cgam_route){CGAM_PATH_PASS, can->f32 ? CGAM_F32 : CGAM_F64, CGAM_ROUTE_SHARE};
        if (many) route.path = CGAM_PATH_MATRICES;
        if (o->fast && !out->readout) route.path = CGAM_PATH_SKETCH;
        if (many || route.path == CGAM_PATH_SKETCH) route.group = CGAM_RECALL_GROUP;
    } else if (o->mode == CGAM_FLOW) {
        route.path = CGAM_PATH_FLOW;
    } else if (o->mode == CGAM_COUPLED && many && !in->start && can->coupled_f32 && plan->small &&
               !can->refines && together >= CGAM_ROUTE_SHARE) {
        route = (cgam_route){CGAM_PATH_COUPLED_TOGETHER, CGAM_F32, together};
    } else if (o->mode == CGAM_COUPLED) {
        route.path = CGAM_PATH_COUPLED;
        if (can->begins_f32) route.precision = CGAM_F32;
    } else if (o->mode == CGAM_ANNEAL) {
        route.path = CGAM_PATH_ANNEAL;
    }
    return route;
}

cgam_route cgam_recall_route(const cgam_recall *plan, const cgam_recall_in *in,
                             const cgam_recall_out *out)
{
    return cgam_route_choose(plan, in, out, in->queries);
}
