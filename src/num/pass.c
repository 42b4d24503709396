/* pass.c: see pass.h. */
#include "num/pass.h"

#include "num/ranks.h"
#include "num/vec.h"

#include <string.h>

void cgam_pass_free(cgam_pass *pass)
{
    cgam_parts_free(pass->env, pass->Z, pass->groups, pass->size, pass->sums);
    cgam_free(pass->env, pass->noted);
    pass->sums = pass->noted = NULL;
}

cgam_status cgam_pass_new(cgam_env *env, const cgam_rows *Z, int64_t size, int64_t notes,
                          cgam_pass *out)
{
    *out = (cgam_pass){
        .env = env, .Z = Z, .size = size, .notes = notes, .groups = cgam_rows_chunks(Z)};
    out->sums = size > 0 ? cgam_parts_new(env, Z, out->groups, size) : NULL;
    out->noted = cgam_alloc(env, (size_t)(out->groups * notes) + 1, sizeof *out->noted);
    return (out->sums || size == 0) && out->noted ? CGAM_OK
                                                  : cgam_fail_nomem(env, "a pass over the bank");
}

static cgam_pass_group group_at(const cgam_pass *pass, int64_t k)
{
    return (cgam_pass_group){.from = cgam_rows_chunk_begin(pass->Z, k),
                             .to = cgam_rows_chunk_begin(pass->Z, k + 1),
                             .sums = pass->size > 0 ? pass->sums + k * pass->size : NULL,
                             .notes = pass->noted + k * pass->notes};
}

typedef struct running {
    const cgam_pass *pass;
    cgam_pass_task task;
    void *arg;
} running;

static cgam_status run_group(void *arg, int64_t k)
{
    const running *job = arg;
    cgam_pass_group group = group_at(job->pass, k);
    if (group.sums) memset(group.sums, 0, (size_t)job->pass->size * sizeof *group.sums);
    return job->task(job->arg, &group);
}

cgam_status cgam_pass_run(cgam_pass *pass, cgam_pass_task task, void *arg)
{
    running job = {pass, task, arg};
    return cgam_rows_run(pass->env, pass->Z, pass->groups, run_group, &job);
}

cgam_status cgam_pass_each(const cgam_pass *pass, cgam_pass_task task, void *arg)
{
    int64_t from, to;
    cgam_status status = CGAM_OK;
    cgam_rows_here(pass->Z, pass->groups, &from, &to);
    for (int64_t k = from; k < to && status == CGAM_OK; k++) {
        cgam_pass_group group = group_at(pass, k);
        status = task(arg, &group);
    }
    return status;
}

cgam_status cgam_pass_max(const cgam_pass *pass, double *largest)
{
    int64_t from, to;
    cgam_rows_here(pass->Z, pass->groups, &from, &to);
    for (int64_t v = 0; v < pass->notes; v++) {
        largest[v] = -INFINITY;
        for (int64_t k = from; k < to; k++)
            largest[v] = fmax(largest[v], pass->noted[k * pass->notes + v]);
    }
    return cgam_rows_most(pass->env, pass->Z, pass->notes, largest);
}

double cgam_pass_sum(const cgam_pass *pass, int64_t k)
{
    int64_t group, end;
    double total;
    cgam_rows_here(pass->Z, pass->groups, &group, &end);
    CGAM_REDUCE_GROUPS(pass->Z, from, to, CGAM_SUM(total)) {
        total = pass->noted[group * pass->notes + k];
        group++;
    }
    return total;
}

cgam_status cgam_pass_join(cgam_pass *pass, double *out)
{
    return cgam_rows_join(pass->env, pass->Z, pass->groups, pass->size, pass->sums, out);
}
