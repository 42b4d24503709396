/* flow_inside.h: what the parts of a flow share. flow.c checks and schedules, flow_fixed.c and
 * flow_adaptive.c step, observe.c looks at every step: energy, events, samples, the end. */
#ifndef CGAM_SRC_NET_FLOW_INSIDE_H
#define CGAM_SRC_NET_FLOW_INSIDE_H

#include <cgam/flow.h>

#include "net/work.h"

typedef struct cgam_flow {
    const cgam_net *net;
    cgam_env *env;
    cgam_flow_opts opts;
    int64_t batch;
    double *times; /* [stretches + 1] 0, the times at which clamps change, t_end */
    int stretches;
} cgam_flow;

/* clamped[layers] during stretch k, and the values that hold then written into x [size] of the
 * state; both may be NULL. */
void cgam_flow_clamp(const cgam_flow *flow, int stretch, int64_t state, bool *clamped, double *x);
/* The longest tau among layers that move. */
double cgam_flow_slowest(const cgam_flow *flow, const bool *clamped);

/* out[size] = the state at a time within the last step. */
typedef cgam_status (*cgam_flow_between)(void *step, double time, double *out);

typedef struct cgam_observer {
    const cgam_flow *flow;
    cgam_flow_report *report;
    int64_t state;
    bool *clamped;    /* [layers] in this stretch */
    cgam_work *probe; /* for moments between steps; NULL when nobody asks */
    double *x, *rate; /* [size] of such a moment */
    double time;      /* of the last step */
    double lowest;    /* energy since the last clamp */
    double slowest;
    bool last, settled, steady; /* in this stretch */
    int64_t samples;            /* of the grid that are behind us */
    bool over;                  /* report->end is final */
} cgam_observer;

/* A point as the observer sees it. `work` holds it as state `index` of the last evaluation. */
typedef struct cgam_look {
    double time;
    const double *x, *rate; /* [size] */
    cgam_work *work;
    int64_t index;
} cgam_look;

CGAM_NODISCARD cgam_status cgam_observer_new(const cgam_flow *flow, int64_t state,
                                             cgam_flow_report *report, cgam_observer *out);
void cgam_observer_free(cgam_observer *obs); /* copes with {0} */

/* The start of a stretch, clamps applied. */
CGAM_NODISCARD cgam_status cgam_observer_begin(cgam_observer *obs, int stretch,
                                               const cgam_look *look);
/* A step that is accepted. When the flow ends within it, moved (not NULL then) is the end [size]
 * to go back to. */
CGAM_NODISCARD cgam_status cgam_observer_step(cgam_observer *obs, const cgam_look *look,
                                              cgam_flow_between between, void *step,
                                              const double **moved);
/* The end for another reason; look at the last good point. */
CGAM_NODISCARD cgam_status cgam_observer_end(cgam_observer *obs, const cgam_look *look,
                                             cgam_flow_end end);

/* States [first, first + count) in step. */
CGAM_NODISCARD cgam_status cgam_flow_fixed(const cgam_flow *flow, int64_t first, int64_t count,
                                           double *x, cgam_flow_report *reports);
/* One state. */
CGAM_NODISCARD cgam_status cgam_flow_adaptive(const cgam_flow *flow, int64_t state, double *x,
                                              cgam_flow_report *report);

#endif
