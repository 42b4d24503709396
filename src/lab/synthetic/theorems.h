/* theorems.h: random instances, and the list of statements checked on them. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_THEOREMS_H
#define CGAM_SRC_LAB_SYNTHETIC_THEOREMS_H

#include "lab/synthetic/banks.h"
#include "lab/synthetic/trial.h"

#include <cgam/gate.h>
#include <cgam/recall.h>
#include <cgam/theory.h>

enum { CGAM_CASE_N = 24, CGAM_CASE_D = 12, CGAM_CASE_ROOM = 8, CGAM_CASE_DRAWN = 16 };

/* One random instance: n unit memories in d dimensions. */
typedef struct cgam_case {
    cgam_study *study;
    cgam_env *env;
    cgam_rng rng;
    int64_t n, d;
    double Z[CGAM_CASE_N * CGAM_CASE_D];
    double x[CGAM_CASE_ROOM][CGAM_CASE_N]; /* room */
    double drawn[CGAM_CASE_DRAWN];         /* the first numbers that cgam_case_between gave */
    int64_t draws;
    cgam_bank *bank;
    cgam_spectrum *spectrum;
} cgam_case;

/* What is asked of the sizes. */
enum { CGAM_CASE_ANY, CGAM_CASE_TALL /* n > d */, CGAM_CASE_CIRCULANT /* n = d, G1 = mu 1 */ };

double cgam_case_between(cgam_case *c, double low, double high); /* uniform */
void cgam_case_normals(cgam_case *c, int64_t n, double scale, double *x);
/* A positive vector of sum 1, from flat to sharp. */
void cgam_case_chances(cgam_case *c, int64_t n, double *p);
double cgam_case_norm(int64_t n, const double *x);
double cgam_case_distance(int64_t n, const double *x, const double *y);

/* margin >= 0: the statement holds here, by that much; NAN: it does not apply here. Identities give
 * minus the relative difference. A margin below -tol is a violation. */
typedef struct cgam_theorem {
    const char *name;
    const char *statement;
    double tol; /* rounding, or what a finite difference leaves */
    cgam_status (*check)(cgam_case *c, double *margin);
    int sizes;    /* CGAM_CASE_ANY .. */
    double share; /* of the trials that are spent on it; 0 = all */
} cgam_theorem;

/* Instance k of statement t, the j-th of all: draws it into *c and checks it. The bank and the
 * spectrum are gone on return, the numbers stay. */
cgam_status cgam_theorem_case(cgam_study *study, const cgam_theorem *t, int64_t j, int64_t k,
                              cgam_case *c, double *margin);

extern const cgam_theorem cgam_theorems_gates[], cgam_theorems_recall[]; /* NULL name ends */

#endif
