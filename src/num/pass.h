/* pass.h: a pass over the rows of Z that gathers numbers on its way.
 *
 * Rows are visited in groups of consecutive rows, cut by the shape of Z alone; a group is visited by one thread, which adds up
 * from zero. Numbers of a group are sums, which are joined in pairs by a tree over the groups, and notes, which are asked
 * for one by one. Nothing depends on the number of threads or processes. */
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

/* To be freed also after a failure. */
cgam_status cgam_pass_new(cgam_env *env, const cgam_rows *Z, int64_t size, int64_t notes,
                          cgam_pass *out);
void cgam_pass_free(cgam_pass *pass);

/* Rows [from, to), with the sums and notes that are theirs. */
typedef struct cgam_pass_group {
    int64_t from, to;
    double *sums;  /* [size] zero at first */
    double *notes; /* [notes] not set */
} cgam_pass_group;
/* task(arg, group) for the groups of this process: in parallel, and in turn. */
typedef cgam_status (*cgam_pass_task)(void *arg, const cgam_pass_group *group);
cgam_status cgam_pass_run(cgam_pass *pass, cgam_pass_task task, void *arg);
cgam_status cgam_pass_each(const cgam_pass *pass, cgam_pass_task task, void *arg);

/* largest[notes]: of each note the largest of all groups, NaN aside. */
cgam_status cgam_pass_max(const cgam_pass *pass, double *largest);
/* Note k of all groups, added up in the order of rows. */
double cgam_pass_sum(const cgam_pass *pass, int64_t k);
/* out[size] = the sums of all groups, which are lost. */
cgam_status cgam_pass_join(cgam_pass *pass, double *out);

#endif
