/* flow.h: networks in time.
 *
 *   tau dx/dt = currents - x   from a state, with clamps, to a steady state or a horizon.
 *
 * Adaptive methods are SUNDIALS' CVODE (Adams for mild problems, BDF with Newton-Krylov for stiff
 * ones); Euler and Runge-Kutta with a fixed step give the same bits on all machines of the same type.
 * The energy of the network must fall between changes of a clamp. Every step checks this, and a rise
 * beyond the tolerance ends the flow as an integration error.
 * How a flow *ended* is in its report; the status says only whether it could be carried out.
 */
#ifndef CGAM_FLOW_H
#define CGAM_FLOW_H

#include <cgam/net.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cgam_flow_method {
    CGAM_FLOW_AUTO,  /* Adams, or BDF if the fastest rate is far above the slowest */
    CGAM_FLOW_ADAMS, /* CVODE, variable order to 12, functional iteration */
    CGAM_FLOW_BDF,   /* CVODE, variable order to 5, Newton; dense if small, else GMRES */
    CGAM_FLOW_RK4,   /* fixed step, order 4 */
    CGAM_FLOW_EULER  /* fixed step, order 1 */
} cgam_flow_method;
CGAM_API extern const char *const cgam_flow_method_words[];

/* Holds a layer during [from, to). Outside its clamps a layer moves. Clamps of one layer must not
 * overlap; they may be adjacent, to switch an input. */
typedef struct cgam_clamp {
    int layer;
    double from, to;     /* to may be INFINITY */
    const double *value; /* [size of the layer], or [batch, size]; NULL = its value at that
                            time. Borrowed until the flow returns */
    bool per_state;      /* value has a row for each state */
} cgam_clamp;

/* Events of a flow; one moment may have several. */
enum {
    CGAM_EVENT_START = 1,   /* the first moment, clamps applied */
    CGAM_EVENT_SAMPLE = 2,  /* a time of the sampling grid, or a step if there is no grid */
    CGAM_EVENT_CLAMP = 4,   /* a layer was clamped, released or given another value */
    CGAM_EVENT_SETTLED = 8, /* the energy has settled: |dE/dt| times the longest tau is within
                                `settle` of the sum of |parts| */
    CGAM_EVENT_WINNER = 16, /* another element of the watched layer became the largest */
    CGAM_EVENT_STEADY = 32, /* |x - F(x)| is within `steady`, relative to the largest |x| or 1 */
    CGAM_EVENT_END = 64     /* the last moment */
};
CGAM_API extern const char *const cgam_event_words[]; /* indexed by bit number */

typedef struct cgam_flow_moment {
    int64_t state; /* which of the batch */
    double time;
    int64_t step;
    unsigned events;
    const double *x; /* [size] */
    double energy;
    const double *parts; /* [parts] */
    double power;        /* dE/dt */
    double residual;     /* largest |x - F(x)| over free layers */
    int64_t winner;      /* of the watched layer; -1: no layer is watched */
    double progress;     /* time / t_end */
} cgam_flow_moment;

/* Called at events (and at each step without a sampling grid); nonzero ends the flow. */
typedef int (*cgam_flow_monitor)(void *user, const cgam_flow_moment *moment);

enum { CGAM_FLOW_SAMPLES = 10000000 };

typedef struct cgam_flow_opts {
    cgam_flow_method method; /* default AUTO */
    double t_end;            /* default 100 */
    double rtol, atol;       /* of adaptive methods; default 1e-9 and 1e-11 */
    double step;             /* of fixed-step methods, > 0; default 0.01 */
    double step_max;         /* of adaptive methods; default 0 = none */
    int64_t max_steps;       /* default 1000000 */
    double steady;     /* default 1e-8; 0 = not tested. Keep it ten times above rtol: an adaptive
                                method leaves |x - F(x)| of about rtol */
    double settle;     /* default 1e-9; 0 = not tested */
    double energy_tol; /* largest rise treated as rounding, relative to the sum of |parts|;
                                default 0: 1e-12 for fixed steps, 10 rtol for adaptive ones */
    double limit;      /* a larger state has diverged; default 1e100 */
    int watch;         /* layer whose winner is tracked; default -1 = none */
    unsigned stop;     /* events that end the flow; default CGAM_EVENT_STEADY */
    double sample; /* spacing of the sampling grid, at most CGAM_FLOW_SAMPLES points until t_end;
                                default 0 = every step */
    const cgam_clamp *clamps;
    int clamp_count;
    cgam_flow_monitor monitor; /* may be NULL */
    void *user;
} cgam_flow_opts;
CGAM_API cgam_flow_opts cgam_flow_opts_default(void);

typedef enum cgam_flow_end {
    CGAM_FLOW_STEADY,
    CGAM_FLOW_HORIZON, /* t_end */
    CGAM_FLOW_SETTLED,
    CGAM_FLOW_WINNER,
    CGAM_FLOW_STOPPED,  /* by the monitor */
    CGAM_FLOW_ROSE,     /* the energy rose: step or tolerance is too coarse */
    CGAM_FLOW_DIVERGED, /* a state exceeded the limit or overflowed; above a critical point this is
                           the correct result */
    CGAM_FLOW_STEPS,    /* max_steps */
    CGAM_FLOW_STUCK     /* the integrator could not meet its tolerance; `reason` has its message */
} cgam_flow_end;
CGAM_API extern const char *const cgam_flow_end_words[];

typedef struct cgam_flow_report {
    cgam_flow_end end;
    cgam_flow_method method; /* the one used, in the last stretch between clamps */
    double time;
    int64_t steps, evaluations, jacobians; /* evaluations of all currents; products with J */
    double energy_start;                   /* with the clamps of time 0 */
    double energy_end;
    double energy_rise; /* the largest rise over the lowest value before, between clamp changes; 0
                           in exact arithmetic */
    double rise_time;   /* time of that rise; NAN if none */
    double power, residual;
    double
        settled; /* first time that the energy had settled after the last clamp; NAN: not settled */
    int64_t winner, winner_changes;
    double winner_time; /* of the last change; NAN: none */
    char reason[160];   /* why it is stuck; empty otherwise */
} cgam_flow_report;

/* x [batch, size] holds the start on entry and the end on return. reports [batch]; opts NULL =
 * defaults. States are independent and give the same bits alone and in a batch. With one state or
 * a monitor, states run one after another; otherwise adaptive flows run on the env's threads, and
 * fixed-step flows advance together and share each pass over the weights. */
CGAM_API CGAM_NODISCARD cgam_status cgam_flow_run(const cgam_net *net, int64_t batch, double *x,
                                                  const cgam_flow_opts *opts,
                                                  cgam_flow_report *reports);

/* ---- Trajectories ------------------------------------------------------------------------- */
/* Collects the moments of one state; pass cgam_trajectory_monitor and the trajectory to a flow. */
typedef struct cgam_trajectory cgam_trajectory;
CGAM_API CGAM_NODISCARD cgam_status cgam_trajectory_new(const cgam_net *net, bool states,
                                                        cgam_trajectory **out);
CGAM_API void cgam_trajectory_free(cgam_trajectory *trajectory); /* NULL is fine */
/* A cgam_flow_monitor: user is the trajectory. Keeps state 0 of a batch. If memory runs out, it ends
 * the flow, and cgam_trajectory_look returns that status. */
CGAM_API int cgam_trajectory_monitor(void *user, const cgam_flow_moment *moment);

typedef struct cgam_trajectory_view {
    cgam_status status; /* CGAM_E_NOMEM: moments are missing */
    int64_t count;
    const double *time, *energy, *power, *residual; /* [count] */
    const double *parts;                            /* [count, parts] */
    const int64_t *events, *winner;                 /* [count] */
    const double *states;                           /* [count, size], NULL if not kept */
} cgam_trajectory_view;
CGAM_API cgam_trajectory_view cgam_trajectory_look(const cgam_trajectory *trajectory);

#ifdef __cplusplus
}
#endif
#endif
