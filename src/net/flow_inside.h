/* flow_inside.h: what the parts of a flow share. flow.c checks and schedules, flow_fixed.c and
 * flow_adaptive.c make steps, observe.c examines every step: energy, events, samples, the end. */
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

/* Fills clamped[layers] for stretch k, and writes the clamped values of that stretch into x [size] of the state; both
 * may be NULL. */
void cgam_flow_clamp(const cgam_flow *flow, int stretch, int64_t state, bool *clamped, double *x);
/* Returns the longest tau among layers that move. */
double cgam_flow_slowest(const cgam_flow *flow, const bool *clamped);

/* Computes out[size], the state at a time within the last step. */
typedef cgam_status (*cgam_flow_between)(void *step, double time, double *out);

typedef struct cgam_observer {
    const cgam_flow *flow;
    cgam_flow_report *report;
    int64_t state;
    bool *clamped;    /* [layers] in this stretch */
    cgam_work *probe; /* for times between steps; NULL if not needed */
    double *x, *rate; /* [size] at such a time */
    double time;      /* of the last step */
    double lowest;    /* energy since the last clamp */
    double slowest;
    bool last, settled, steady; /* in this stretch */
    int64_t samples;            /* samples of the grid already reported */
    bool over;                  /* report->end is final */
} cgam_observer;

/* A point for the observer. `work` holds it as state `index` of the last evaluation. */
typedef struct cgam_look {
    double time;
    const double *x, *rate; /* [size] */
    cgam_work *work;
    int64_t index;
} cgam_look;

CGAM_NODISCARD cgam_status cgam_observer_new(const cgam_flow *flow, int64_t state,
                                             cgam_flow_report *report, cgam_observer *out);
void cgam_observer_free(cgam_observer *obs); /* {0} is allowed */

/* Begins a stretch, with clamps applied. */
CGAM_NODISCARD cgam_status cgam_observer_begin(cgam_observer *obs, int stretch,
                                               const cgam_look *look);
/* Processes an accepted step. If the flow ends within it, moved (not NULL then) is the end [size] to return to. */
CGAM_NODISCARD cgam_status cgam_observer_step(cgam_observer *obs, const cgam_look *look,
                                              cgam_flow_between between, void *step,
                                              const double **moved);
/* Ends the flow for another reason; look is the last valid point. */
CGAM_NODISCARD cgam_status cgam_observer_end(cgam_observer *obs, const cgam_look *look,
                                             cgam_flow_end end);

/* Runs states [first, first + count) together. */
CGAM_NODISCARD cgam_status cgam_flow_fixed(const cgam_flow *flow, int64_t first, int64_t count,
                                           double *x, cgam_flow_report *reports);
/* Runs one state. */
CGAM_NODISCARD cgam_status cgam_flow_adaptive(const cgam_flow *flow, int64_t state, double *x,
                                              cgam_flow_report *report);

#endif
