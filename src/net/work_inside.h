/* work_inside.h: the inside of a work, for work.c (evaluation), plan.c (set-up) and tangent.c. */
#ifndef CGAM_SRC_NET_WORK_INSIDE_H
#define CGAM_SRC_NET_WORK_INSIDE_H

#include "net/work.h"

/* Jobs over the same operator, in the same direction and phase: one call, with all their vectors. */
typedef struct cgam_group {
    const cgam_op *op;
    bool transposed, kept; /* kept: all inputs are of clamped layers */
    bool feeds;            /* the feed of a synapse needs the result */
    cgam_phase phase;      /* first or second */
    int jobs;              /* vectors per state */
    int64_t in_size, out_size;
    double *in, *out;   /* [jobs, batch, size] */
    double *din, *dout; /* [jobs, tangents, size] */
} cgam_group;

/* A job's vector: its position, and the layer whose activation it takes (-1: fed). */
typedef struct cgam_seat {
    int group, index; /* group -1: no such job */
    int layer;
    bool owner; /* the first of the jobs that share this vector copies its input */
} cgam_seat;

struct cgam_work {
    const cgam_net *net;
    cgam_env *env;
    int64_t batch_max, batch, tangents;
    bool *clamped, *want; /* [layers] */
    bool paired, hurried; /* cgam_work_pair, cgam_work_hurry */
    bool feeding;         /* only products that feeds need */
    bool fresh;           /* stored products of clamped layers are up to date */
    const double *x;      /* [batch, size] of the last evaluation */
    double *act, *cur;    /* [batch, size] */
    double *parts;        /* [batch, parts] */
    double *dact;         /* [tangents, size] */
    double *scratch;
    double *zeros; /* derivative of a kept product */
    cgam_group *group;
    int groups;
    cgam_seat *seat; /* [synapses, JOBS] */
};

/* Groups and seats. */
CGAM_NODISCARD cgam_status cgam_work_plan(cgam_work *work);

static inline const cgam_seat *cgam_work_seat(const cgam_work *work, int synapse, int job)
{
    return &work->seat[(int64_t)synapse * JOBS + job];
}

/* The frame of a synapse at state k of the batch, with currents into cur [batch, size]. tangent: at the single state
 * with tangent k of `count`, with the currents' derivatives into cur [count, size]. cur NULL: no currents. */
void cgam_work_frame(const cgam_work *work, int synapse, bool tangent, int64_t count, int64_t k,
                     double *cur, cgam_frame *f);
/* Products of a phase for `count` states, or tangents: inputs into in (din), results into out
 * (dout). kept: those of clamped layers, or the others. */
CGAM_NODISCARD cgam_status cgam_work_multiply(cgam_work *work, cgam_phase phase, bool kept,
                                              bool tangent, int64_t count);
/* Fills the inputs of a phase that synapses make themselves. */
CGAM_NODISCARD cgam_status cgam_work_fill(cgam_work *work, cgam_phase phase, bool tangent,
                                          int64_t count);
/* The state of the batch that tangent k is at. */
static inline int64_t cgam_work_state(const cgam_work *work, int64_t k)
{
    return work->paired ? k : 0;
}

/* Reports the failure of a layer or synapse with its name in the message. */
cgam_status cgam_work_complain(const cgam_work *work, cgam_status status, const char *what,
                               const char *name, const double *x, int64_t n);

#endif
