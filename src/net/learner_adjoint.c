/* learner_adjoint.c: the gradient of a loss at time t_end by the adjoint equation of CVODES (Serban and Hindmarsh 2005).
 *
 * With dx/dt = f = (F(a(x)) - x) / tau, D = dF/da and H = da/dx, the adjoint l runs from l(t_end) = H dloss/da back by
 *   dl/dt = m - H D m,   m = l / tau,
 * and dloss/dtheta = the integral of m' dF/dtheta + (D m)' da/dtheta, plus dloss/da' da/dtheta at the end. Both
 * directions use BDF with GMRES; the state on the way back is interpolated between the steps, which are made again from
 * check points. */
#include "net/learner.h"
#include "net/nvector.h"

#include <cvodes/cvodes.h>
#include <math.h>
#include <string.h>
#include <sunlinsol/sunlinsol_spgmr.h>

enum { BETWEEN = 200, KRYLOV = 30, STEPS = 1000000 };

typedef struct way {
    cgam_lane *lane;
    int64_t free;         /* numbers that move */
    double *x, *rate, *m; /* [size] */
    cgam_status status;
    char message[160];
    SUNContext context;
    void *cvodes;
    cgam_nvectors states, slopes;
    N_Vector y, back, quad;
    SUNLinearSolver forth_solver, back_solver;
} way;

static int code(way *a, cgam_status status)
{
    if (status == CGAM_OK) return 0;
    if (status == CGAM_E_VALUE) return 1; /* a smaller step may help */
    a->status = status;
    return -1;
}

static cgam_status evaluate(way *a, N_Vector y)
{
    cgam_work_unpack(a->lane->work, N_VGetArrayPointer_Serial(y), a->x);
    for (int64_t i = 0; i < a->lane->of->net->size; i++)
        if (!isfinite(a->x[i])) return CGAM_E_VALUE;
    if (cgam_interrupted(a->lane->of->env)) return CGAM_E_INTERRUPTED;
    return cgam_work_eval(a->lane->work, 1, a->x);
}

static int rates(double t, N_Vector y, N_Vector ydot, void *user)
{
    (void)t;
    way *a = user;
    cgam_status status = evaluate(a, y);
    if (status == CGAM_OK) {
        cgam_work_rate(a->lane->work, a->rate);
        cgam_work_pack(a->lane->work, a->rate, N_VGetArrayPointer_Serial(ydot));
    }
    return code(a, status);
}

/* m = l / tau and a->lane->change = D m, at y. */
static cgam_status spread(way *a, N_Vector y, N_Vector l)
{
    const cgam_net *net = a->lane->of->net;
    cgam_status status = evaluate(a, y);
    if (status != CGAM_OK) return status;
    memset(a->m, 0, (size_t)net->size * sizeof *a->m);
    cgam_work_unpack(a->lane->work, N_VGetArrayPointer_Serial(l), a->m);
    for (int i = 0; i < net->layers; i++)
        for (int64_t j = 0; j < net->layer[i].size; j++)
            a->m[net->layer[i].offset + j] /= net->layer[i].tau;
    return cgam_work_curvature(a->lane->work, 1, a->m, a->lane->change);
}

static int back_rates(double t, N_Vector y, N_Vector l, N_Vector ldot, void *user)
{
    (void)t;
    way *a = user;
    cgam_status status = spread(a, y, l);
    if (status == CGAM_OK) status = cgam_work_hessian(a->lane->work, 1, a->lane->change, a->rate);
    for (int64_t i = 0; i < a->lane->of->net->size; i++) a->rate[i] = a->m[i] - a->rate[i];
    if (status == CGAM_OK) cgam_work_pack(a->lane->work, a->rate, N_VGetArrayPointer_Serial(ldot));
    return code(a, status);
}

/* Minus the integrand, as time runs backwards. */
static int back_slopes(double t, N_Vector y, N_Vector l, N_Vector qdot, void *user)
{
    (void)t;
    way *a = user;
    cgam_lane *lane = a->lane;
    const cgam_net_params *params = lane->of->params;
    double *out = N_VGetArrayPointer_Serial(qdot);
    memset(out, 0, (size_t)params->count * sizeof *out);
    cgam_status status = spread(a, y, l);
    if (status == CGAM_OK)
        status = cgam_gradient_add(lane->work, params, true, 1, lane->spare, out);
    for (int64_t i = 0; i < lane->of->net->size; i++) lane->change[i] = -lane->change[i];
    if (status == CGAM_OK)
        status = cgam_gradient_layers(params, 1, a->x, cgam_work_activation(lane->work),
                                      lane->change, lane->spare, out);
    return code(a, status);
}

static void record_error(int flag, const char *module, const char *function, char *text, void *user)
{
    (void)module;
    way *a = user;
    if (flag < 0) snprintf(a->message, sizeof a->message, "%s: %s", function, text);
}

static cgam_status failed(way *a)
{
    cgam_env *env = a->lane->of->env;
    if (a->status != CGAM_OK) return a->status;
    if (a->states.failed || a->slopes.failed || !a->message[0])
        return cgam_fail_nomem(env, "an integration");
    return cgam_fail(env, CGAM_E_VALUE, "CVODES: %s", a->message);
}

static bool whole(const way *a) { return !a->states.failed && !a->slopes.failed; }

/* From a->x to a->x at t_end. */
static cgam_status go_forth(way *a)
{
    const cgam_net_learn_opts *o = &a->lane->of->opts;
    double time = 0;
    int checks;
    a->y = cgam_nvector_new(&a->states, a->free, a->context);
    a->cvodes = a->y ? CVodeCreate(CV_BDF, a->context) : NULL;
    if (!a->cvodes) return failed(a);
    cgam_work_pack(a->lane->work, a->x, N_VGetArrayPointer_Serial(a->y));
    a->forth_solver = SUNLinSol_SPGMR(a->y, SUN_PREC_NONE, KRYLOV, a->context);
    bool fine = a->forth_solver && CVodeSetErrHandlerFn(a->cvodes, record_error, a) == CV_SUCCESS &&
                CVodeSetUserData(a->cvodes, a) == CV_SUCCESS &&
                CVodeInit(a->cvodes, rates, 0, a->y) == CV_SUCCESS &&
                CVodeSStolerances(a->cvodes, o->rtol, o->atol) == CV_SUCCESS &&
                CVodeSetMaxNumSteps(a->cvodes, STEPS) == CV_SUCCESS &&
                CVodeSetLinearSolver(a->cvodes, a->forth_solver, NULL) == CVLS_SUCCESS &&
                CVodeAdjInit(a->cvodes, BETWEEN, CV_POLYNOMIAL) == CV_SUCCESS && whole(a) &&
                CVodeF(a->cvodes, o->t_end, a->y, &time, CV_NORMAL, &checks) >= 0 && whole(a);
    if (!fine || a->status != CGAM_OK) return failed(a);
    return evaluate(a, a->y);
}

/* a->back holds the adjoint at t_end. */
static cgam_status go_back(way *a)
{
    const cgam_net_learner *l = a->lane->of;
    const cgam_net_learn_opts *o = &l->opts;
    double time;
    int which;
    a->quad = cgam_nvector_new(&a->slopes, l->params->count, a->context);
    if (!a->quad) return failed(a);
    N_VConst(0, a->quad);
    a->back_solver = SUNLinSol_SPGMR(a->back, SUN_PREC_NONE, KRYLOV, a->context);
    bool fine = a->back_solver && CVodeCreateB(a->cvodes, CV_BDF, &which) == CV_SUCCESS &&
                CVodeInitB(a->cvodes, which, back_rates, o->t_end, a->back) == CV_SUCCESS &&
                CVodeSStolerancesB(a->cvodes, which, o->rtol, o->atol) == CV_SUCCESS &&
                CVodeSetUserDataB(a->cvodes, which, a) == CV_SUCCESS &&
                CVodeSetMaxNumStepsB(a->cvodes, which, STEPS) == CV_SUCCESS &&
                CVodeSetLinearSolverB(a->cvodes, which, a->back_solver, NULL) == CVLS_SUCCESS &&
                CVodeQuadInitB(a->cvodes, which, back_slopes, a->quad) == CV_SUCCESS &&
                CVodeQuadSStolerancesB(a->cvodes, which, o->rtol, o->atol) == CV_SUCCESS &&
                CVodeSetQuadErrConB(a->cvodes, which, SUNTRUE) == CV_SUCCESS && whole(a) &&
                CVodeB(a->cvodes, 0, CV_NORMAL) >= 0 && whole(a) &&
                CVodeGetQuadB(a->cvodes, which, &time, a->quad) == CV_SUCCESS;
    if (!fine || a->status != CGAM_OK) return failed(a);
    const double *found = N_VGetArrayPointer_Serial(a->quad);
    for (int64_t i = 0; i < l->params->count; i++) a->lane->gradient[i] += found[i];
    return CGAM_OK;
}

static cgam_status state_gradient(way *a, int64_t k)
{
    cgam_lane *lane = a->lane;
    const cgam_net_learner *l = lane->of;
    cgam_work *w = lane->work;
    double loss = 0, *slope = lane->slope;
    cgam_work_refresh(w); /* products of clamped layers are of another state */
    cgam_status status = go_forth(a);
    if (status != CGAM_OK) return status;
    memset(slope, 0, (size_t)l->net->size * sizeof *slope);
    const double *act = cgam_work_activation(w);
    status = l->loss->eval(l->loss->user, lane->first + k, act, &loss, l->gradient ? slope : NULL);
    lane->total += loss;
    if (status != CGAM_OK || !l->gradient) return status;
    status = cgam_gradient_layers(l->params, 1, a->x, act, slope, lane->spare, lane->gradient);
    if (status == CGAM_OK) status = cgam_work_hessian(w, 1, slope, a->rate);
    if (status != CGAM_OK) return status;
    a->back = N_VClone(a->y);
    if (!a->back) return failed(a);
    cgam_work_pack(w, a->rate, N_VGetArrayPointer_Serial(a->back));
    memcpy(lane->v, a->x, (size_t)l->net->size * sizeof *a->x); /* the end: a->x moves back */
    status = go_back(a);
    memcpy(a->x, lane->v, (size_t)l->net->size * sizeof *a->x);
    return status;
}

cgam_status cgam_lane_adjoint(cgam_lane *lane, double *x)
{
    const cgam_net_learner *l = lane->of;
    const int64_t size = l->net->size;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < lane->count && status == CGAM_OK; k++) {
        way a = {.lane = lane,
                 .x = x + k * size,
                 .rate = lane->act,
                 .m = lane->m,
                 .states = {.env = l->env},
                 .slopes = {.env = l->env}};
        for (int i = 0; i < l->net->layers; i++)
            if (!l->clamped[i]) a.free += l->net->layer[i].size;
        if (SUNContext_Create(NULL, &a.context) != 0)
            return cgam_fail_nomem(l->env, "an integration");
        status = state_gradient(&a, k);
        if (a.cvodes) CVodeFree(&a.cvodes);
        if (a.forth_solver) SUNLinSolFree(a.forth_solver);
        if (a.back_solver) SUNLinSolFree(a.back_solver);
        if (a.y) N_VDestroy(a.y);
        if (a.back) N_VDestroy(a.back);
        if (a.quad) N_VDestroy(a.quad);
        cgam_nvectors_free(&a.states);
        cgam_nvectors_free(&a.slopes);
        SUNContext_Free(&a.context);
    }
    return status;
}
