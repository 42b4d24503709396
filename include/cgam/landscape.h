/* landscape.h: the fixed points of a coupled recall, as many as starts reveal, and what each of them is.
 *
 * The energy E(s) of recall.h has a critical point at every fixed point: minima, where recalls end, and
 * saddles between them. Descents are started from where a recall starts, from equal weights, from all
 * weight on one memory, from pairs and larger sets of leaders and from random weights; Newton's method,
 * which does not mind where it is uphill, looks for saddles from the same starts and from the ridge between
 * two points. docs/theorems/variational.md has the theory.
 */
#ifndef CGAM_LANDSCAPE_H
#define CGAM_LANDSCAPE_H

#include <cgam/recall.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_landscape_opts {
    int64_t starts; /* random starts, beside those that are tried in any case; >= 0, default 64 */
    uint64_t seed;  /* of them; default 0 */
    cgam_progress progress; /* in descents, then in searches for saddles; default silence */
} cgam_landscape_opts;
CGAM_API cgam_landscape_opts cgam_landscape_opts_default(void);

typedef struct cgam_point {
    bool minimum;   /* else a saddle, a maximum being one of the highest index */
    int64_t index;  /* how many directions lead down: negative eigenvalues of the Hessian of E */
    double energy;  /* E(s) */
    int64_t winner; /* with the largest p, ties to the lowest index */
    double p;       /* of winner */
    double neff_entropy;
    double basin;       /* share of the descents that ended here */
    double fold_margin; /* lambda_min(A - lambda^2 beta (diag p - pp')), from below */
    bool fold_margin_proved;
    double p_error; /* bound of |p - p*|_2 */
    bool p_error_proved;
} cgam_point;

typedef struct cgam_landscape {
    int64_t count;
    cgam_point *points; /* [count] by rising energy */
    double *p;          /* [count, n] */
    int unique;         /* 1 proved, 0 there are several, -1 not decided */
    bool unique_proved; /* with 0: error bounds keep two apart */
    int64_t starts;     /* descents in all */
    int64_t
        unresolved; /* of those, and of Newton's, ended at no point that could be told from others */
    int64_t euler;  /* sum of (-1)^index: 1 where all points are found and none is degenerate */
} cgam_landscape;

/* plan: mode coupled; with opts.certify margins are eigenvalues. q [d], c [d_c] or NULL. Every memory is a
 * start where there are at most 1024, else the 1024 that lead. The same bits on any number of threads. */
CGAM_API CGAM_NODISCARD cgam_status cgam_landscape_find(const cgam_recall *plan, const double *q,
                                                        const double *c,
                                                        const cgam_landscape_opts *opts,
                                                        cgam_landscape *out);
CGAM_API void cgam_landscape_free(cgam_env *env, cgam_landscape *landscape); /* leaves it empty */

#ifdef __cplusplus
}
#endif
#endif
