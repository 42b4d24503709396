/* flow_adaptive.c: flows by CVODE (Hindmarsh et al. 2005). Only layers that move are integrated.
 *
 * Adams: functional iteration, for mild problems. BDF: Newton, with the dense Jacobian if the free layers have at
 * most DENSE numbers, else GMRES with products J v (tangent.c) and the preconditioner 1 + gamma / tau by layer, which
 * removes the ratio of time constants. The integrator is recreated when clamps change, since its history is no longer
 * valid. */
#include "net/flow_inside.h"
#include "net/nvector.h"

#include <cvodes/cvodes.h>
#include <math.h>
#include <string.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunlinsol/sunlinsol_spgmr.h>
#include <sunmatrix/sunmatrix_dense.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

enum { DENSE = 32, TANGENTS = 16, KRYLOV = 20, POWER_STEPS = 10, STANDING = 20 };

/* Adams is bound by the fastest rate: on two-stage memories of 25 to 60 units, from rest to a
 * steady state, it takes 700 steps where that is 4 times the slowest, 2000 to 4000 at 10 and
 * 34000 at 50. BDF takes 500 to 900 throughout, with little more than one product J v a step. */
static const double STIFF = 4;

typedef struct adaptive {
    const cgam_flow *flow;
    cgam_observer obs;
    cgam_work *work;
    int64_t free;       /* count of numbers that move */
    double *x;          /* [size] the state, clamped layers included */
    double *at;         /* [size] point of the last evaluation */
    bool placed;        /* `at` is valid */
    double *rate;       /* [size] */
    int64_t tangents;   /* TANGENTS if the Jacobian may be dense, else 1 */
    double *v, *Jv;     /* [tangents, size] */
    cgam_status status; /* why a callback failed */
    char message[sizeof(((cgam_flow_report *)NULL)->reason)]; /* of CVODE */
    SUNContext context;
    void *cvode;
    cgam_nvectors vectors;
    N_Vector y, between;
    SUNMatrix J;
    SUNLinearSolver linear;
    SUNNonlinearSolver nonlinear;
} adaptive;

/* ---- callbacks of CVODE ---------------------------------------------------------------------- */

/* Evaluates at y unless the last evaluation was there. */
static cgam_status evaluate_at(adaptive *a, const double *y, bool again)
{
    size_t size = (size_t)a->flow->net->size;
    double *moved = a->v; /* free for use outside of tangents */
    memcpy(moved, a->at, size * sizeof *moved);
    cgam_work_unpack(a->work, y, moved);
    if (!again && a->placed && memcmp(moved, a->at, size * sizeof *moved) == 0) return CGAM_OK;
    memcpy(a->at, moved, size * sizeof *moved);
    a->placed = false;
    cgam_status status = cgam_work_eval(a->work, 1, a->at);
    a->obs.report->evaluations++;
    if (status != CGAM_OK) return status;
    a->placed = true;
    cgam_work_rate(a->work, a->rate);
    return CGAM_OK;
}

/* CVODE's codes: 0 success, > 0 a smaller step may help, < 0 give up. */
static int cvode_code(adaptive *a, cgam_status status)
{
    if (status == CGAM_OK) return 0;
    if (status == CGAM_E_VALUE) return 1;
    a->status = status;
    return -1;
}

static int cvode_rates(double t, N_Vector y, N_Vector ydot, void *user)
{
    (void)t;
    adaptive *a = user;
    const double *numbers = N_VGetArrayPointer_Serial(y);
    for (int64_t i = 0; i < a->free; i++)
        if (!(fabs(numbers[i]) <= 1e10 * a->flow->opts.limit)) return 1;
    cgam_status status = evaluate_at(a, numbers, false);
    if (status == CGAM_OK) cgam_work_pack(a->work, a->rate, N_VGetArrayPointer_Serial(ydot));
    return cvode_code(a, status);
}

static int jacobian_place(double t, N_Vector y, N_Vector fy, void *user)
{
    (void)t, (void)fy;
    return cvode_code(user, evaluate_at(user, N_VGetArrayPointer_Serial(y), false));
}

static int jacobian_times(N_Vector v, N_Vector Jv, double t, N_Vector y, N_Vector fy, void *user,
                          N_Vector tmp)
{
    (void)t, (void)y, (void)fy, (void)tmp;
    adaptive *a = user;
    cgam_work_unpack(a->work, N_VGetArrayPointer_Serial(v), a->v);
    cgam_status status = cgam_work_jacobian(a->work, 1, a->v, a->Jv);
    a->obs.report->jacobians++;
    if (status == CGAM_OK) cgam_work_pack(a->work, a->Jv, N_VGetArrayPointer_Serial(Jv));
    return cvode_code(a, status);
}

static int jacobian_dense(double t, N_Vector y, N_Vector fy, SUNMatrix J, void *user, N_Vector t1,
                          N_Vector t2, N_Vector t3)
{
    (void)t, (void)fy, (void)t1, (void)t2, (void)t3;
    adaptive *a = user;
    int64_t size = a->flow->net->size;
    cgam_status status = evaluate_at(a, N_VGetArrayPointer_Serial(y), false);
    double unit[DENSE];
    for (int64_t j = 0; j < a->free && status == CGAM_OK; j += a->tangents) {
        int64_t count = a->free - j < a->tangents ? a->free - j : a->tangents;
        for (int64_t k = 0; k < count; k++) {
            memset(unit, 0, sizeof unit);
            unit[j + k] = 1;
            cgam_work_unpack(a->work, unit, a->v + k * size);
        }
        status = cgam_work_jacobian(a->work, count, a->v, a->Jv);
        a->obs.report->jacobians += count;
        for (int64_t k = 0; k < count && status == CGAM_OK; k++)
            cgam_work_pack(a->work, a->Jv + k * size, SUNDenseMatrix_Column(J, j + k));
    }
    return cvode_code(a, status);
}

static int precondition(double t, N_Vector y, N_Vector fy, N_Vector r, N_Vector z, double gamma,
                        double delta, int side, void *user)
{
    (void)t, (void)y, (void)fy, (void)delta, (void)side;
    const adaptive *a = user;
    const cgam_net *net = a->flow->net;
    const double *from = N_VGetArrayPointer_Serial(r);
    double *to = N_VGetArrayPointer_Serial(z);
    for (int i = 0; i < net->layers; i++) {
        if (a->obs.clamped[i]) continue;
        for (int64_t j = 0; j < net->layer[i].size; j++)
            *to++ = *from++ / (1 + gamma / net->layer[i].tau);
    }
    return 0;
}

static void record_error(int code, const char *module, const char *function, char *text, void *user)
{
    (void)module;
    adaptive *a = user;
    if (code < 0) snprintf(a->message, sizeof a->message, "%s: %s", function, text);
}

/* ---- set-up --------------------------------------------------------------------------------- */

static void stretch_free(adaptive *a)
{
    if (a->cvode) CVodeFree(&a->cvode);
    if (a->linear) SUNLinSolFree(a->linear);
    if (a->nonlinear) SUNNonlinSolFree(a->nonlinear);
    if (a->J) SUNMatDestroy(a->J);
    if (a->y) N_VDestroy(a->y);
    if (a->between) N_VDestroy(a->between);
    a->linear = NULL;
    a->nonlinear = NULL;
    a->J = NULL;
    a->y = a->between = NULL;
    cgam_nvectors_free(&a->vectors);
    cgam_work_free(a->work);
    a->work = NULL;
}

/* The largest |rate of change| of J, by some steps of the power method from a fixed start. A growing mode is not
 * stiff. */
static cgam_status fastest_rate(adaptive *a, double *out)
{
    int64_t size = a->flow->net->size;
    double norm = 0, along = 0;
    for (int64_t i = 0; i < size; i++) a->v[i] = sin(1 + 1.7 * (double)i);
    *out = 0;
    for (int k = 0; k < POWER_STEPS; k++) {
        cgam_status status = cgam_work_jacobian(a->work, 1, a->v, a->Jv);
        a->obs.report->jacobians++;
        if (status != CGAM_OK) return status;
        double length = 0;
        norm = along = 0;
        for (int64_t i = 0; i < size; i++) {
            length += a->v[i] * a->v[i];
            norm += a->Jv[i] * a->Jv[i];
            along += a->v[i] * a->Jv[i];
        }
        if (!(norm > 0) || !isfinite(norm)) return CGAM_OK;
        *out = along < 0 ? sqrt(norm / length) : 0;
        for (int64_t i = 0; i < size; i++) a->v[i] = a->Jv[i] / sqrt(norm);
    }
    return CGAM_OK;
}

static cgam_status choose_method(adaptive *a, cgam_flow_method *method)
{
    double rate;
    *method = a->flow->opts.method;
    if (*method != CGAM_FLOW_AUTO) return CGAM_OK;
    cgam_status status = fastest_rate(a, &rate);
    *method = rate * a->obs.slowest > STIFF ? CGAM_FLOW_BDF : CGAM_FLOW_ADAMS;
    return status;
}

static bool set_solver(adaptive *a, cgam_flow_method method)
{
    if (method == CGAM_FLOW_ADAMS) {
        a->nonlinear = SUNNonlinSol_FixedPoint(a->y, 0, a->context);
        return a->nonlinear && CVodeSetNonlinearSolver(a->cvode, a->nonlinear) == CV_SUCCESS;
    }
    if (a->free <= DENSE && a->tangents > 1) {
        a->J = SUNDenseMatrix(a->free, a->free, a->context);
        if (!a->J) return false;
        a->linear = SUNLinSol_Dense(a->y, a->J, a->context);
        return a->linear && CVodeSetLinearSolver(a->cvode, a->linear, a->J) == CVLS_SUCCESS &&
               CVodeSetJacFn(a->cvode, jacobian_dense) == CVLS_SUCCESS;
    }
    a->linear = SUNLinSol_SPGMR(a->y, SUN_PREC_LEFT, KRYLOV, a->context);
    return a->linear && CVodeSetLinearSolver(a->cvode, a->linear, NULL) == CVLS_SUCCESS &&
           CVodeSetJacTimes(a->cvode, jacobian_place, jacobian_times) == CVLS_SUCCESS &&
           CVodeSetPreconditioner(a->cvode, NULL, precondition) == CVLS_SUCCESS;
}

static cgam_status make_cvode(adaptive *a, int k)
{
    const cgam_flow *flow = a->flow;
    const cgam_flow_opts *o = &flow->opts;
    double from = flow->times[k], to = flow->times[k + 1];
    cgam_flow_method method;
    cgam_status status = choose_method(a, &method);
    if (status != CGAM_OK) return status;
    a->obs.report->method = method;
    a->y = cgam_nvector_new(&a->vectors, a->free, a->context);
    if (!a->y) return cgam_fail_nomem(flow->env, "the vectors of an integration");
    a->between = N_VClone(a->y);
    a->cvode = CVodeCreate(method == CGAM_FLOW_ADAMS ? CV_ADAMS : CV_BDF, a->context);
    if (!a->between || !a->cvode) return cgam_fail_nomem(flow->env, "an integration");
    cgam_work_pack(a->work, a->x, N_VGetArrayPointer_Serial(a->y));
    bool fine = CVodeSetErrHandlerFn(a->cvode, record_error, a) == CV_SUCCESS &&
                CVodeSetUserData(a->cvode, a) == CV_SUCCESS &&
                CVodeInit(a->cvode, cvode_rates, from, a->y) == CV_SUCCESS &&
                CVodeSStolerances(a->cvode, o->rtol, o->atol) == CV_SUCCESS &&
                CVodeSetStopTime(a->cvode, to) == CV_SUCCESS &&
                CVodeSetMaxNumSteps(a->cvode, -1) == CV_SUCCESS && set_solver(a, method);
    if (fine && o->step_max > 0) fine = CVodeSetMaxStep(a->cvode, o->step_max) == CV_SUCCESS;
    return fine && !a->vectors.failed ? CGAM_OK : cgam_fail_nomem(flow->env, "an integration");
}

static cgam_status stretch_start(adaptive *a, int k)
{
    const cgam_flow *flow = a->flow;
    stretch_free(a);
    cgam_flow_clamp(flow, k, a->obs.state, a->obs.clamped, a->x);
    a->free = 0;
    for (int i = 0; i < flow->net->layers; i++)
        if (!a->obs.clamped[i]) a->free += flow->net->layer[i].size;
    cgam_status status = cgam_work_new(
        flow->net, &(cgam_work_opts){1, a->obs.clamped, false, a->tangents}, &a->work);
    if (status != CGAM_OK) return status;
    memcpy(a->at, a->x, (size_t)flow->net->size * sizeof *a->at);
    a->placed = false;
    status = cgam_work_eval(a->work, 1, a->at);
    a->obs.report->evaluations++;
    if (status != CGAM_OK) return status;
    a->placed = true;
    cgam_work_rate(a->work, a->rate);
    cgam_look look = {flow->times[k], a->at, a->rate, a->work, 0};
    return cgam_observer_begin(&a->obs, k, &look);
}

/* ---- the run -------------------------------------------------------------------------------- */

static cgam_status interpolate(void *step, double time, double *out)
{
    adaptive *a = step;
    if (CVodeGetDky(a->cvode, time, 0, a->between) != CV_SUCCESS)
        return cgam_fail(a->flow->env, CGAM_E_INTERNAL, "CVODE: %s", a->message);
    memcpy(out, a->x, (size_t)a->flow->net->size * sizeof *out);
    cgam_work_unpack(a->work, N_VGetArrayPointer_Serial(a->between), out);
    return CGAM_OK;
}

/* CVODE gave up: its current point is the end. If an activation leaves the range of double even for the smallest
 * step, it is divergence; else the tolerance could not be met. */
static cgam_status end_stuck(adaptive *a, double time, int flag)
{
    bool overflow = flag == CV_REPTD_RHSFUNC_ERR || flag == CV_UNREC_RHSFUNC_ERR ||
                    flag == CV_FIRST_RHSFUNC_ERR;
    cgam_status status = evaluate_at(a, N_VGetArrayPointer_Serial(a->y), true);
    if (status != CGAM_OK) return status;
    if (!overflow) memcpy(a->obs.report->reason, a->message, sizeof a->message);
    cgam_look look = {time, a->at, a->rate, a->work, 0};
    return cgam_observer_end(&a->obs, &look, overflow ? CGAM_FLOW_DIVERGED : CGAM_FLOW_STUCK);
}

static bool is_out_of_range(const adaptive *a)
{
    const double *y = N_VGetArrayPointer_Serial(a->y);
    for (int64_t i = 0; i < a->free; i++)
        if (!(fabs(y[i]) <= a->flow->opts.limit)) return true;
    return false;
}

static cgam_status stretch_run(adaptive *a, int k)
{
    double time = a->flow->times[k], to = a->flow->times[k + 1];
    int standing = 0; /* steps too short to advance the clock: it diverges at a finite time */
    cgam_status status = make_cvode(a, k);
    while (status == CGAM_OK && !a->obs.over && time < to) {
        int flag = CVode(a->cvode, to, a->y, &time, CV_ONE_STEP);
        status = a->status; /* CVODE may report a callback's failure as one of convergence */
        if (a->vectors.failed)
            status = cgam_fail_nomem(a->flow->env, "the vectors of an integration");
        if (status != CGAM_OK) break;
        if (flag < 0) {
            status = end_stuck(a, time, flag);
            break;
        }
        if (flag == CV_TSTOP_RETURN) time = to;
        status = evaluate_at(a, N_VGetArrayPointer_Serial(a->y), false);
        if (status == CGAM_E_VALUE) { /* the previous step was the last within range */
            cgam_work_pack(a->work, a->x, N_VGetArrayPointer_Serial(a->y));
            status = end_stuck(a, a->obs.time, CV_REPTD_RHSFUNC_ERR);
            break;
        }
        if (status != CGAM_OK) break;
        cgam_work_unpack(a->work, N_VGetArrayPointer_Serial(a->y), a->x);
        cgam_look look = {time, a->at, a->rate, a->work, 0};
        standing = time > a->obs.time ? 0 : standing + 1;
        if (is_out_of_range(a) || standing > STANDING) {
            status = cgam_observer_end(&a->obs, &look, CGAM_FLOW_DIVERGED);
            break;
        }
        const double *moved = NULL;
        status = cgam_observer_step(&a->obs, &look, interpolate, a, &moved);
        if (moved) memcpy(a->x, moved, (size_t)a->flow->net->size * sizeof *a->x);
    }
    return status;
}

cgam_status cgam_flow_adaptive(const cgam_flow *flow, int64_t state, double *x,
                               cgam_flow_report *report)
{
    cgam_env *env = flow->env;
    size_t size = (size_t)flow->net->size;
    /* A large network with few numbers that move is rare; it goes by GMRES like other large ones */
    adaptive a = {.flow = flow,
                  .x = x,
                  .vectors = {.env = env},
                  .tangents = size <= 16 * DENSE ? TANGENTS : 1};
    cgam_status status = cgam_observer_new(flow, state, report, &a.obs);
    a.at = cgam_alloc(env, size, sizeof *a.at);
    a.rate = cgam_alloc(env, size, sizeof *a.rate);
    a.v = cgam_alloc(env, (size_t)a.tangents * size, sizeof *a.v);
    a.Jv = cgam_alloc(env, (size_t)a.tangents * size, sizeof *a.Jv);
    if (status == CGAM_OK && (!a.at || !a.rate || !a.v || !a.Jv))
        status = cgam_fail_nomem(env, "a flow");
    if (status == CGAM_OK && SUNContext_Create(NULL, &a.context) != 0)
        status = cgam_fail_nomem(env, "an integration");
    for (int k = 0; k < flow->stretches && !a.obs.over && status == CGAM_OK; k++) {
        status = stretch_start(&a, k);
        if (status != CGAM_OK || a.obs.over) break;
        if (a.free > 0) {
            status = stretch_run(&a, k);
        } else if (k == flow->stretches - 1) { /* nothing moves */
            cgam_look look = {flow->opts.t_end, a.at, a.rate, a.work, 0};
            status = cgam_observer_end(&a.obs, &look, CGAM_FLOW_HORIZON);
        }
    }
    stretch_free(&a);
    if (a.context) SUNContext_Free(&a.context);
    cgam_observer_free(&a.obs);
    void *const blocks[] = {a.at, a.rate, a.v, a.Jv};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
    return status;
}
