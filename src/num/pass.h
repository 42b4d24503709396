/* pass.h: a pass over the rows of Z that computes sums and other numbers.
 *
 * Rows are visited in groups of consecutive rows, which depend only on the shape of Z; one thread visits a group and
 * sums from zero. A group has sums, which are joined in pairs by a tree over the groups, and notes, which are read
 * one by one. Results do not depend on the number of threads or processes. */
#ifndef CGAM_SRC_NUM_PASS_H
#define CGAM_SRC_NUM_PASS_H

#include "num/rows.h"

typedef struct cgam_pass {
    cgam_env *env;
    const cgam_rows *Z;
    int64_t size, notes; /* sums and notes of a group */
    int64_t groups;
    double *sums;  /* [groups, size], of the groups of this process */
    double *noted; /* [groups, notes] */
} cgam_pass;

/* Free it after a failure too. */
cgam_status cgam_pass_new(cgam_env *env, const cgam_rows *Z, int64_t size, int64_t notes,
                          cgam_pass *out);
void cgam_pass_free(cgam_pass *pass);

/* Rows [from, to), with the sums and notes of the group. */
typedef struct cgam_pass_group {
    int64_t from, to;
    double *sums;  /* [size] zero at first */
    double *notes; /* [notes] uninitialised */
} cgam_pass_group;
/* Runs task(arg, group) for the groups of this process: in parallel, or one after the other. */
typedef cgam_status (*cgam_pass_task)(void *arg, const cgam_pass_group *group);
cgam_status cgam_pass_run(cgam_pass *pass, cgam_pass_task task, void *arg);
cgam_status cgam_pass_each(const cgam_pass *pass, cgam_pass_task task, void *arg);

/* largest[notes]: the maximum of each note over all groups; NaN is skipped. */
cgam_status cgam_pass_max(const cgam_pass *pass, double *largest);
/* Returns the sum of note k over all groups, in the order of rows. */
double cgam_pass_sum(const cgam_pass *pass, int64_t k);
/* out[size] = the sums of all groups, which are overwritten. */
cgam_status cgam_pass_join(cgam_pass *pass, double *out);

#endif
