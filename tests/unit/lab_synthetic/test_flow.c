/* The vector flow against CVODE, in all its uses: transients of the coupled study, time scales, a
 * free query. */
#include "unit/lab_synthetic/banks.h"

#include <cvodes/cvodes.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

enum { N = 50, D = 12, STATES = 2 * N + D }; /* the most there are */

/* More memories than dimensions, so that G has a kernel, and fewer. */
static const int sizes[][2] = {{50, 10}, {8, 12}};

/* One trial in the coordinates of the equations: s [n], r [n], q [d] one after the other. */
typedef struct problem {
    int n, d;
    double Z[N * D], G[N * N], u[N], q[D];
    double alpha, beta, lambda, tau_s, tau_r, tau_q;
    bool query_free;
} problem;

static int slope(realtype t, N_Vector state, N_Vector out, void *user)
{
    const problem *p = user;
    (void)t;
    const int n = p->n, m = p->d;
    const double *y = N_VGetArrayPointer(state), *s = y, *r = y + n, *q = r + n;
    double *d = N_VGetArrayPointer(out), prob[N];
    softmax_of(n, p->beta, r, prob);
    for (int i = 0; i < n; i++) {
        double Gs = 0, b = 0;
        for (int j = 0; j < n; j++) Gs += p->G[i * n + j] * s[j];
        for (int j = 0; j < m; j++) b += p->Z[i * m + j] * q[j];
        d[i] = (p->u[i] + p->lambda * prob[i] - (1 - p->alpha) * s[i] - p->alpha * Gs) / p->tau_s;
        d[n + i] = (p->lambda * s[i] + b - r[i]) / p->tau_r;
    }
    for (int j = 0; j < m; j++) {
        double back = 0;
        for (int i = 0; i < n; i++) back += p->Z[i * m + j] * prob[i];
        d[2 * n + j] = p->query_free ? (back - q[j]) / p->tau_q : 0;
    }
    return 0;
}

/* The state at the times at[count], into out [count, 2 n + d]. */
static void cvode(problem *p, const double *r0, int count, const double *at, double *out)
{
    const int n = p->n, states = 2 * n + p->d;
    SUNContext context;
    assert_int_equal(SUNContext_Create(NULL, &context), 0);
    N_Vector y = N_VNew_Serial(states, context);
    double *v = N_VGetArrayPointer(y), t = 0;
    for (int i = 0; i < n; i++) {
        v[i] = 0;
        v[n + i] = r0[i];
    }
    for (int j = 0; j < p->d; j++) v[2 * n + j] = p->q[j];
    void *memory = CVodeCreate(CV_BDF, context);
    SUNMatrix J = SUNDenseMatrix(states, states, context);
    SUNLinearSolver solver = SUNLinSol_Dense(y, J, context);
    assert_int_equal(CVodeInit(memory, slope, 0, y), 0);
    assert_int_equal(CVodeSStolerances(memory, 1e-9, 1e-11), 0);
    assert_int_equal(CVodeSetUserData(memory, p), 0);
    assert_int_equal(CVodeSetLinearSolver(memory, solver, J), 0);
    assert_int_equal(CVodeSetMaxNumSteps(memory, 200000), 0);
    for (int k = 0; k < count; k++) {
        assert_int_equal(CVode(memory, at[k], y, &t, CV_NORMAL), 0);
        memcpy(out + k * states, v, (size_t)states * sizeof *v);
    }
    CVodeFree(&memory);
    SUNLinSolFree(solver);
    SUNMatDestroy(J);
    N_VDestroy(y);
    SUNContext_Free(&context);
}

typedef struct room {
    cgam_env *env;
    cgam_banks *banks;
    double *flow, *s, *r, *p, ended[CGAM_LANES_MAX];
    int active[CGAM_LANES_MAX];
} room;

static room open_room(const cgam_lanes *lanes, const int *size, int64_t first)
{
    room w = {.env = env_new(1)};
    w.banks = clusters(w.env, lanes->width, size[0], size[1], first);
    w.flow = cgam_zalloc(w.env, cgam_lanes_flow_size(&w.banks->g), sizeof *w.flow);
    w.s = cgam_zalloc(w.env, (size_t)(3 * N * lanes->width), sizeof *w.s);
    w.r = w.s + N * lanes->width;
    w.p = w.r + N * lanes->width;
    for (int l = 0; l < CGAM_LANES_MAX; l++) w.active[l] = 1;
    return w;
}

static void close_room(room *w)
{
    cgam_free(w->env, w->flow);
    cgam_free(w->env, w->s);
    cgam_banks_free(w->banks);
    cgam_env_free(w->env);
}

static cgam_lanes_flow transient(room *w, double alpha, double lambda, double tol, double rate)
{
    return (cgam_lanes_flow){.alpha = alpha,
                             .beta = 5,
                             .lambda = lambda,
                             .tau_s = 1,
                             .tau_r = 1,
                             .tau_q = 1,
                             .t_end = 50,
                             .tol = tol,
                             .h_rate = rate,
                             .stop_one_hot = true,
                             .active = w->active,
                             .work = w->flow,
                             .s = w->s,
                             .r = w->r,
                             .p = w->p,
                             .ended = w->ended};
}

static void lane_problem(const room *w, int lane, double alpha, double lambda, problem *p)
{
    const int width = w->banks->g.width;
    const int n = (int)w->banks->g.n, d = (int)w->banks->g.d;
    *p = (problem){.n = n,
                   .d = d,
                   .alpha = alpha,
                   .beta = 5,
                   .lambda = lambda,
                   .tau_s = 1,
                   .tau_r = 1,
                   .tau_q = 1};
    lane_of(w->banks->g.Z, n * d, width, lane, p->Z);
    gram_of(&w->banks->g, lane, p->G);
    for (int i = 0; i < n; i++) p->u[i] = 1.0 / n;
}

/* Transients of the coupled study: peaks agree, one-hot lanes are one-hot at the end. */
TEST(transients_agree_with_cvode)
{
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    static const double cases[][3] = {{1, 0.5, 0}, {1.04, 0.5, 0}, {1.07, 0.5, 0}, {1.2, 1, 0},
                                      {1.6, 3, 0}, {1.2, 0.3, 1},  {1.4, 0.5, 1},  {2, 1, 1},
                                      {2, 3, 1},   {3, 2, 1}};
    const double end = 50;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const int *size = sizes[(int)cases[c][2]], n = size[0];
        room w = open_room(lanes, size, 16);
        const int width = lanes->width;
        /* the accuracy the study uses, and a much finer one */
        for (int fine = 0; fine < 2; fine++) {
            cgam_lanes_flow f =
                transient(&w, cases[c][0], cases[c][1], fine ? 1e-6 : 1e-3, fine ? 0.1 : 1.5);
            lanes->flow(&w.banks->g, &f);
            for (int l = 0; l < width && l < (fine ? 2 : 4); l++) {
                static problem p;
                double y[STATES], r0[N], want[N], got[N], top = 0, best = 0;
                lane_problem(&w, l, cases[c][0], cases[c][1], &p);
                lane_of(w.banks->g.start, n, width, l, r0);
                cvode(&p, r0, 1, &end, y);
                softmax_of(n, 5, y + n, want);
                lane_of(w.p, n, width, l, got);
                for (int i = 0; i < n; i++) {
                    top = fmax(top, want[i]);
                    best = fmax(best, got[i]);
                }
                CHECK_CLOSE(best, top, fine ? 3e-6 : 3e-4);
                if (w.ended[l] < 50) CHECK_LE(1 - 1e-9, top);
                if (fine) CHECK_CLOSE_ALL(got, want, n, 3e-6);
            }
        }
        close_room(&w);
    }
}

/* What the study takes from a coarse run: whether a trial ends one-hot, and roughly when. */
TEST(coarse_runs_tell_the_time)
{
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    static const double cases[][2] = {{1.3, 0.5}, {1, 1}, {1.5, 1}, {1.02, 2}, {1.9, 3}};
    for (int c = 0; c < 5; c++) {
        room w = open_room(lanes, sizes[0], 40);
        double exact[CGAM_LANES_MAX];
        cgam_lanes_flow f = transient(&w, cases[c][0], cases[c][1], 1e-4, 0.25);
        lanes->flow(&w.banks->g, &f);
        memcpy(exact, w.ended, sizeof exact);
        cgam_lanes_flow g = transient(&w, cases[c][0], cases[c][1], 0.15, 4);
        g.coarse = true;
        lanes->flow(&w.banks->g, &g);
        for (int l = 0; l < lanes->width; l++) {
            CHECK_LE(exact[l], 49.9);
            CHECK_CLOSE(w.ended[l], exact[l], 1 + 0.15 * exact[l]); /* steps are up to 3 long */
            double sum = 0, top = 0;
            for (int i = 0; i < sizes[0][0]; i++) {
                sum += w.p[i * lanes->width + l];
                top = fmax(top, w.p[i * lanes->width + l]);
            }
            CHECK_CLOSE(sum, 1, 1e-12);
            CHECK_LE(1 - 2e-12, top);
        }
        assert_true(g.steps < f.steps);
        close_room(&w);
    }
}

/* Gates that would grow to e^10000 are caught long before, whatever it is that grows. */
TEST(fast_growth_does_not_overflow)
{
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    for (int c = 0; c < 2; c++)
        for (int fine = 0; fine < 2; fine++) {
            room w = open_room(lanes, sizes[c], 0);
            for (double alpha = 5; alpha < 1100; alpha *= 6) {
                cgam_lanes_flow f = transient(&w, alpha, 1, fine ? 1e-3 : 0.15, fine ? 1.5 : 4);
                f.coarse = !fine;
                lanes->flow(&w.banks->g, &f);
                for (int l = 0; l < lanes->width; l++) {
                    double top = 0;
                    for (int i = 0; i < sizes[c][0]; i++)
                        top = fmax(top, w.p[i * lanes->width + l]);
                    CHECK_LE(1 - 2e-12, top);
                    CHECK_LE(w.ended[l], 49); /* modes of nearly one rate take their time */
                }
            }
            close_room(&w);
        }
}

typedef struct kept {
    int width, lane, n;
    double s[4][N], r[4][N];
} kept;

static void keep(void *user, int64_t sample, const double *s, const double *r, const double *p,
                 const double *x)
{
    (void)x;
    kept *k = user;
    (void)p;
    lane_of(s, k->n, k->width, k->lane, k->s[sample]);
    lane_of(r, k->n, k->width, k->lane, k->r[sample]);
}

/* Time constants apart by a factor 1000, query clamped and free, looked at on the way. */
TEST(time_scales_agree_with_cvode)
{
    const cgam_lanes *lanes = cgam_lanes_of(cgam_cpu_best());
    const int width = lanes->width;
    static const double ratios[] = {0.03, 1, 1 / 0.9, 30};
    for (int c = 0; c < 16; c++) {
        const int *size = sizes[c / 8], n = size[0], d = size[1], states = 2 * n + d;
        room w = open_room(lanes, size, 0);
        cgam_bundle *g = &w.banks->g;
        double ratio = ratios[c / 2 % 4], end = 64 * fmax(1, ratio);
        double at[4] = {end / 1024, end / 64, 3 * end / 16, end};
        double *u = cgam_zalloc(w.env, (size_t)((n + 2 * g->m) * width), sizeof *u);
        double *root = u + n * width, *x = root + g->m * width, q[CGAM_LANES_MAX][D];
        for (int l = 0; l < width; l++) {
            cgam_rng rng = cgam_rng_stream(9, (uint64_t)l);
            double context[D];
            for (int j = 0; j < d; j++) {
                q[l][j] = cgam_rng_normal(&rng);
                context[j] = cgam_rng_normal(&rng);
            }
            for (int i = 0; i < n; i++)
                for (int j = 0; j < d; j++)
                    u[i * width + l] += g->Z[(i * d + j) * width + l] * context[j];
            for (int i = 0; i < n; i++) g->start[i * width + l] = 0;
        }
        CHECK_STATUS(w.env, cgam_banks_decompose(w.banks, u));
        for (int64_t k = 0; k < g->m; k++)
            for (int l = 0; l < width; l++) {
                root[k * width + l] = sqrt(g->mu[k * width + l]);
                for (int i = 0; i < n; i++) {
                    double b = 0;
                    for (int j = 0; j < d; j++) b += g->Z[(i * d + j) * width + l] * q[l][j];
                    x[k * width + l] += g->V[(i * g->m + k) * width + l] * b;
                }
                x[k * width + l] /= root[k * width + l];
            }
        static kept k;
        k.width = width;
        k.lane = 1;
        k.n = n;
        cgam_lanes_flow f = {.alpha = 0.1,
                             .beta = 3.5,
                             .lambda = 2,
                             .tau_s = 1,
                             .tau_r = ratio,
                             .tau_q = ratio,
                             .query_free = c % 2 == 1,
                             .t_end = end,
                             .tol = 1e-4,
                             .h_rate = 0.3,
                             .root = root,
                             .x = x,
                             .active = w.active,
                             .work = w.flow,
                             .samples = 4,
                             .at = at,
                             .seen = keep,
                             .user = &k,
                             .s = w.s,
                             .r = w.r,
                             .p = w.p,
                             .ended = w.ended};
        lanes->flow(g, &f);
        static problem p;
        static double y[4 * STATES];
        double zero[N] = {0};
        lane_problem(&w, k.lane, 0.1, 2, &p);
        p.beta = 3.5;
        p.tau_r = p.tau_q = ratio;
        p.query_free = c % 2 == 1;
        lane_of(u, n, width, k.lane, p.u);
        memcpy(p.q, q[k.lane], (size_t)d * sizeof *p.q);
        cvode(&p, zero, 4, at, y);
        for (int i = 0; i < 4; i++) {
            CHECK_CLOSE_ALL(k.s[i], y + i * states, n, 2e-4);
            CHECK_CLOSE_ALL(k.r[i], y + i * states + n, n, 2e-4);
        }
        cgam_free(w.env, u);
        close_room(&w);
    }
}

/* Every CPU's loops give the same flow, to the accuracy of the method. */
TEST(all_cpus_flow_alike)
{
    double first[2] = {NAN, NAN};
    for (const cgam_cpu *cpu = cgam_cpu_all + 1; cpu->name; cpu++) {
        const cgam_lanes *lanes = cgam_lanes_of(cpu);
        if (!cpu->usable()) continue;
        room w = open_room(lanes, sizes[0], 0);
        cgam_lanes_flow f = transient(&w, 1.05, 0.5, 1e-5, 0.2);
        lanes->flow(&w.banks->g, &f);
        for (int l = 0; l < 2; l++) {
            double top = 0;
            for (int j = 0; j < sizes[0][0]; j++) top = fmax(top, w.p[j * lanes->width + l]);
            if (isnan(first[l])) first[l] = top;
            CHECK_CLOSE(top, first[l], 1e-5);
        }
        close_room(&w);
    }
}
