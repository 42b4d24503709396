/* plan.h (inside): what is computed for a recall before it has queries.
 *
 *   Z [n, d]  the memories, zeta_i its rows     A = A(alpha), the gate operator
 *   P [d, d_c], W [n, d_c]  how a context c reaches the gates: u = Z P c, or W c
 *   dinv      the inverse pivots of A where rows are solved one by one (num/dplr.h) */
#ifndef CGAM_SRC_MEMORY_PLAN_H
#define CGAM_SRC_MEMORY_PLAN_H

#include <cgam/recall.h>

#include "memory/gate.h"
#include "memory/twins.h"
#include "num/sketch.h"

/* What a bank with its A(alpha) allows for any query. */
typedef struct cgam_reach {
    bool direct;      /* A^-1 Z v comes from the pass that scores (num/dplr.h: cgam_dplr_range) */
    bool streams;     /* coupled feedback runs inside the pass over Z */
    bool refines;     /* that solve is too inexact for the last steps: see coupled.c */
    bool matrices;    /* the bank is large enough to multiply queries as matrices */
    bool f32;         /* its size and type suit products in f32 */
    bool coupled_f32; /* the same for coupled feedback */
    bool begins_f32;  /* coupled recalls begin in f32, whose error is above their tolerance */
    double size;      /* max |zeta| */
    double pivot_max; /* max |dinv| where rows are solved one by one, else 0 */
    double row_max, row_norm; /* max of |dinv_i| |zeta_i|, and their 2-norm */
} cgam_reach;

struct cgam_recall {
    const cgam_bank *bank;
    cgam_recall_opts opts;
    int64_t d_c;
    const cgam_gate *gate;
    const cgam_twins *twins;   /* equal memories; NULL = none, or alpha = 0 */
    const cgam_sketch *sketch; /* with opts.fast: the bank's, or: */
    cgam_sketch *own_sketch;   /* one made for this plan */
    cgam_reach can;
    struct cgam_small *lanes; /* for small banks (small.c); NULL = not used */
    const cgam_dplr_inverse
        *small;                   /* if coupled feedback can stream and memory allows, else NULL */
    cgam_gate *own_gate;          /* NULL if the gate is borrowed */
    cgam_dplr_inverse *own_small; /* NULL if borrowed or absent */
    cgam_twins *own_twins;        /* likewise */
    struct cgam_net *net;         /* mode flow, else NULL */
    double context_margin;        /* of a free context, else NAN */
    double weights_size;          /* of P or W: |P|_F, or the largest |W_i|_2; else 0 */
};

/* True if p comes from entmax: it has zeros, and can only be computed once all scores are known. */
static inline bool cgam_recall_sparse(const cgam_recall *plan) { return plan->opts.entmax > 0; }
/* The Lipschitz constant of p in the scores: the maximum of |dp / dr| divided by beta. */
static inline double cgam_recall_lipschitz(const cgam_recall *plan)
{
    return cgam_recall_sparse(plan) ? 1 : 0.5;
}
/* True if p and gates depend on each other, without time. */
static inline bool cgam_recall_couples(const cgam_recall *plan)
{
    return plan->opts.mode == CGAM_COUPLED || plan->opts.mode == CGAM_ANNEAL;
}
/* True if results are needed: requested by the caller, or for leaders' p, which with fast are lower bounds. */
static inline bool cgam_recall_reports(const cgam_recall *plan, const cgam_recall_out *out)
{
    return out->results || (plan->opts.fast && (out->top_p || out->top_log_p));
}
/* True if any certificate is requested. */
static inline bool cgam_recall_proves(const cgam_recall *plan, const cgam_recall_out *out)
{
    return cgam_recall_reports(plan, out) &&
           (plan->opts.fast || plan->opts.certify != CGAM_CERTIFY_NONE);
}
/* True if all certificates are requested, whatever they cost. */
static inline bool cgam_recall_full(const cgam_recall *plan)
{
    return plan->opts.certify == CGAM_CERTIFY_FULL;
}
/* The number of competitors: the memories, and the ghost if there is one. */
static inline int64_t cgam_recall_rivals(const cgam_recall *plan)
{
    return plan->bank->Z.n + plan->opts.none;
}

/* v[d] = P c: the context mapped to memory space. */
void cgam_recall_project(const cgam_recall *plan, const double *c, double *v);
/* u[n] = W c. */
void cgam_recall_weigh(const cgam_recall *plan, const double *c, double *u);
/* u[n] = W c or Z P c, and s0[n] = A^-1 u, each computed separately. */
cgam_status cgam_recall_gates(const cgam_recall *plan, const double *c, double *u, double *s0);
/* dp / dr = beta w (diag pi - pi pi'): fills pi[n] and returns w. With softmax pi = p and w = 1. */
double cgam_recall_slopes(const cgam_recall *plan, const double *p, double *pi);

/* Mode flow: the network of a plan, and the margin of a free context (flow.c). */
cgam_status cgam_recall_net(cgam_recall *plan);

#endif
