/* map.h: the energy of a memory over a plane of queries, and flows across it.
 *
 * With the query free, the two-stage memory (theory.h) has the energy
 *
 *   E(q, s) = |q|^2/2 + s'As/2 - u's - lse(beta (Z q + lambda s)) / beta
 *
 * of query and gates, retrieval settled. A map shows it over q = origin + x e1 + y e2, where gates are
 * as the context alone sets them (s = A^-1 u, any alpha) or where they settle (the fixed point of the
 * coupled recall, alpha below alpha_crit). Rest points of the query are the attractors that
 * q <- Z' softmax(beta r) leads to, under which this energy does not rise. */
#ifndef CGAM_SRC_LAB_MAP_H
#define CGAM_SRC_LAB_MAP_H

#include <cgam/recall.h>

/* ---- Planes ------------------------------------------------------------------------------- */
typedef struct cgam_plane {
    int64_t d;
    double *origin, *e1, *e2; /* [d] each; e1 and e2 have length 1 and are orthogonal */
} cgam_plane;
/* count = 3 memories: through all three, with their mean as origin. 2: through them and zero, the
 * origin. 0: through the mean of the bank along its two principal components, d at most 4096.
 * Fails with CGAM_E_ARG if the memories are on one line. Free *out with cgam_plane_free. */
CGAM_NODISCARD cgam_status cgam_plane_new(const cgam_bank *bank, int64_t count,
                                          const int64_t *index, cgam_plane *out);
void cgam_plane_free(cgam_env *env, cgam_plane *plane); /* accepts {0}, leaves {0} */
/* Coordinates of the projection of q [d], and its distance from the plane. */
void cgam_plane_of(const cgam_plane *plane, const double *q, double *x, double *y, double *off);

/* ---- Energy on a grid --------------------------------------------------------------------- */
typedef struct cgam_map_opts {
    double alpha, beta, lambda; /* default 0, 1, 1 */
    bool settled;               /* gates settle; default false: as the context sets them */
} cgam_map_opts;
cgam_map_opts cgam_map_opts_default(void);

/* energy[ny, nx] at (x[i], y[j]); c [d] or NULL = no context. settled needs A positive definite. */
CGAM_NODISCARD cgam_status cgam_map_energy(const cgam_bank *bank, const cgam_plane *plane,
                                           const double *c, const cgam_map_opts *opts, int64_t nx,
                                           const double *x, int64_t ny, const double *y,
                                           double *energy);

/* ---- Attractors --------------------------------------------------------------------------- */
typedef struct cgam_attractor {
    double energy;
    double p; /* of the winner */
    int64_t winner;
    int64_t starts; /* number of given starts that lead here */
    bool settled;   /* the last step was below 1e-9 */
} cgam_attractor;
/* Moves q [count, d] to at most count distinct rest points, sorted by falling starts. Fills q and list [count]
 * up to *found. Points within 1e-5 are merged. */
CGAM_NODISCARD cgam_status cgam_map_attractors(const cgam_bank *bank, const double *c,
                                               const cgam_map_opts *opts, int64_t count, double *q,
                                               cgam_attractor *list, int64_t *found);

/* ---- Flows -------------------------------------------------------------------------------- */
typedef struct cgam_map_flow_opts {
    double tau_s, tau_r, tau_q; /* default 0.1, 0.1, 1: gates and retrieval are faster */
    double t_end;               /* default 30; the flow ends earlier if it comes to rest */
    double switch_time;         /* from then on the context is c_then; default INFINITY */
    const double *c_then;       /* [d], NULL = none */
    int64_t samples;            /* moments kept, evenly spaced; default 120 */
} cgam_map_flow_opts;
cgam_map_flow_opts cgam_map_flow_opts_default(void);

typedef struct cgam_map_moment {
    double time, x, y, off; /* the query on the plane, and its distance from it */
    double energy;          /* of the whole network */
    int64_t winner;         /* largest score */
} cgam_map_moment;
/* The query starts at q [d] and moves; gates start at A^-1 u, retrieval at the scores of q. Fills
 * moments[samples + 3] and *count; *end is how it ended (CGAM_END_CONVERGED, HORIZON, ..). */
CGAM_NODISCARD cgam_status cgam_map_flow(const cgam_bank *bank, const cgam_plane *plane,
                                         const double *q, const double *c,
                                         const cgam_map_opts *opts, const cgam_map_flow_opts *flow,
                                         cgam_map_moment *moments, int64_t *count, cgam_end *end);

/* The structs above as tables. */
extern const cgam_field cgam_map_opts_rows[], cgam_map_flow_opts_rows[], cgam_attractor_rows[],
    cgam_moment_rows[];

#endif
