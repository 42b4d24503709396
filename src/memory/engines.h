/* engines.h (inside): the engines that take queries from scored to settled (stages.h), each in the file of its name.
 *
 *   first_pass        mode first, from queries to results in one pass or as matrices, without vectors of n numbers
 *   small             modes first and coupled on small banks
 *   vectors           everything else: scores the queries, has them settled by one of those below, and reports
 *   coupled           mode coupled, queries that share passes over the bank and nothing else (coupled_pass.c)
 *   coupled_together  mode coupled, many queries as matrices
 *   newton            the last steps of slow ones
 *   anneal, flow      the modes of these names */
#ifndef CGAM_SRC_MEMORY_ENGINES_H
#define CGAM_SRC_MEMORY_ENGINES_H

#include <cgam/flow.h>

#include "memory/route.h"
#include "memory/stages.h"

/* Each runs all queries of a call. */
cgam_status cgam_recall_by_pass(cgam_schedule *call);
cgam_status cgam_recall_by_vectors(cgam_schedule *call);
cgam_status cgam_recall_by_small(cgam_schedule *schedule);

/* ---- Modes coupled, anneal and flow. On entry m has `in` and three buffers s, r, p; on return it is settled, and
 * the three buffers may have changed places. */
/* At most CGAM_ROUTE_SHARE queries. start: the initial p ([count, n]); NULL: act(beta a). */
cgam_status cgam_coupled_solve(const cgam_recall *plan, int64_t count, cgam_settled *m,
                               const double *start);
/* Any number of queries, which need not be adjacent. */
cgam_status cgam_coupled_solve_listed(const cgam_recall *plan, int64_t count,
                                      cgam_settled *const *m);
/* At most CGAM_RECALL_GROUP queries, as matrices, to the same tolerance. */
cgam_status cgam_coupled_together(const cgam_recall *plan, int64_t count, cgam_settled *m);
/* out: the branch of the query; may be NULL. */
cgam_status cgam_anneal_solve(const cgam_recall *plan, cgam_settled *m, cgam_anneal *out);
/* q [count, d]; c NULL, [d_c] or [count, d_c]. */
cgam_status cgam_recall_flow(const cgam_recall *plan, int64_t count, cgam_settled *m,
                             const double *q, const double *c, bool c_per_query);
/* Translates the end of a flow to the end of a recall. */
cgam_end cgam_end_of_flow(cgam_flow_end end);

/* ---- Inside coupled. */
/* A query whose feedback is computed by passes over the bank. */
typedef struct cgam_streaming {
    cgam_iterating x;
    double *g; /* [d] sum_i dinv_i p_i zeta_i of the p that the next step begins with */
    /* The last step's g [d] and t [d], and p and A^-1 p of its border rows [2, m]. */
    double *g_old, *t, *edges;
    double energy;  /* at the beginning of the last step */
    bool f32;       /* the last pass was in f32 */
    bool after_f32; /* the g it began with came from a pass in f32 */
} cgam_streaming;

/* One step of `active` queries that share a pass over the bank: takes p_old and g, computes r_new, its activation,
 * the energy and the next g. With entmax g stays unchanged. */
cgam_status cgam_coupled_pass(const cgam_recall *plan, int64_t active, cgam_streaming *const *w);
/* Computes g from the p_new of w alone: at the start, or after p_new was moved. */
cgam_status cgam_coupled_gather(const cgam_recall *plan, cgam_streaming *w);

/* ---- Newton. */
/* The guarded finish: goes from p_new to the fixed point that the plain iteration would reach. *moved reports whether
 * p_new changed; r_new may change in any case. */
cgam_status cgam_coupled_newton(const cgam_recall *plan, cgam_iterating *x, bool *moved);
/* The step for A s = u + lambda p(s) from a point with s = A^-1 (u + lambda pi) and p there:
 * ds[n] solves (A - lambda^2 beta J) ds = lambda (p - pi), J = diag p - pp' or entmax's, and s + t ds
 * corresponds to pi + t dpi. slopes: scratch [n]. */
cgam_status cgam_coupled_direction(const cgam_recall *plan, const double *p, const double *pi,
                                   double *slopes, double *ds, double *dpi);
/* Unguarded Newton steps from the gates of weights start[n], to any fixed point. On return m is at the last point,
 * with its energy in the trace. *residual: |p - pi|_2 there, INFINITY on failure; *length: the length of the last
 * step. work: [6, n]. */
cgam_status cgam_coupled_polish(const cgam_recall *plan, cgam_settled *m, const double *start,
                                double *work, double *residual, double *length);
/* Returns the energy at s = A^-1 (u + lambda pi); sets r, p and act of m there. */
double cgam_coupled_energy_at(const cgam_recall *plan, cgam_settled *m, const double *s,
                              const double *pi);

/* The largest theta < 1 for which "theta A - lambda^2 beta C(p) >= 0 at this point" proves that the energy is
 * strongly convex on a ball around the point that contains its whole sublevel set. step is the A-norm of the plain
 * step there; *radius is set to the radius of the ball. Negative: no such theta. See docs/theorems/basin.md. */
double cgam_basin_theta(double beta, double lambda, double eta_min, double step, double *radius);
/* The radius for a given theta. */
double cgam_basin_radius(double beta, double lambda, double eta_min, double theta);

#endif
