/* plan.c: the products of a network, sorted so that each operator is passed over as few times as
 * the dependencies allow - for the two-stage memory once forth and once back. */
#include "net/work_inside.h"

#include <string.h>

/* Returns a group for these jobs, existing or new; -1 if there is none and make is false. */
static int find_group(cgam_work *w, const cgam_job *job, bool kept, cgam_phase phase, bool make)
{
    for (int g = 0; g < w->groups; g++) {
        const cgam_group *group = &w->group[g];
        if (group->op == job->op && group->transposed == job->transposed && group->kept == kept &&
            group->phase == phase)
            return g;
    }
    if (!make) return -1;
    cgam_group *group = &w->group[w->groups];
    *group =
        (cgam_group){.op = job->op, .transposed = job->transposed, .kept = kept, .phase = phase};
    group->in_size = job->transposed ? job->op->rows : job->op->cols;
    group->out_size = job->transposed ? job->op->cols : job->op->rows;
    return w->groups++;
}

/* Adds a job to a group, beside one with the same input if there is one. */
static void seat_job(cgam_work *w, int synapse, int j, const cgam_job *job, int g)
{
    const cgam_net *net = w->net;
    cgam_seat *seat = &w->seat[(int64_t)synapse * JOBS + j];
    seat->group = g;
    seat->layer = job->slot < 0 ? -1 : net->synapse[synapse].layer[job->slot];
    for (int64_t other = 0; seat->layer >= 0 && other < (int64_t)net->synapses * JOBS; other++) {
        const cgam_seat *theirs = &w->seat[other];
        if (theirs == seat || theirs->group != g || theirs->layer != seat->layer) continue;
        seat->index = theirs->index;
        return;
    }
    seat->index = w->group[g].jobs++;
    seat->owner = true;
}

static bool is_kept(const cgam_work *w, int synapse, const cgam_job *job)
{
    return job->slot >= 0 && w->clamped[w->net->synapse[synapse].layer[job->slot]];
}

/* Adds first the jobs with a given phase, then the free ones, each to an existing pass in its direction if
 * possible. */
static void seat_jobs(cgam_work *w, cgam_job (*jobs)[JOBS], bool free_ones)
{
    for (int s = 0; s < w->net->synapses; s++) {
        for (int j = 0; j < JOBS; j++) {
            const cgam_job *job = &jobs[s][j];
            if (!job->op || (job->phase == CGAM_PHASE_ANY) != free_ones) continue;
            bool kept = is_kept(w, s, job);
            cgam_phase phase = kept ? CGAM_PHASE_FIRST : job->phase;
            if (phase == CGAM_PHASE_ANY) {
                bool first = find_group(w, job, kept, CGAM_PHASE_FIRST, false) >= 0;
                bool second = find_group(w, job, kept, CGAM_PHASE_SECOND, false) >= 0;
                phase = second && !first ? CGAM_PHASE_SECOND : CGAM_PHASE_FIRST;
            }
            int g = find_group(w, job, kept, phase, true);
            seat_job(w, s, j, job, g);
            if (job->phase == CGAM_PHASE_FIRST) w->group[g].feeds = true;
        }
    }
}

static cgam_status allocate_groups(cgam_work *w)
{
    for (int g = 0; g < w->groups; g++) {
        cgam_group *group = &w->group[g];
        int64_t states = group->jobs * w->batch_max, tangents = group->jobs * w->tangents;
        group->in = cgam_alloc(w->env, (size_t)(states * group->in_size), sizeof(double));
        group->out = cgam_alloc(w->env, (size_t)(states * group->out_size), sizeof(double));
        if (!group->in || !group->out) return cgam_fail_nomem(w->env, "products of a network");
        if (!tangents || group->kept) continue;
        group->din = cgam_alloc(w->env, (size_t)(tangents * group->in_size), sizeof(double));
        group->dout = cgam_alloc(w->env, (size_t)(tangents * group->out_size), sizeof(double));
        if (!group->din || !group->dout) return cgam_fail_nomem(w->env, "products of a network");
    }
    return CGAM_OK;
}

cgam_status cgam_work_plan(cgam_work *w)
{
    const cgam_net *net = w->net;
    size_t synapses = (size_t)net->synapses + 1; /* for networks without synapses too */
    cgam_job(*jobs)[JOBS] = cgam_zalloc(w->env, synapses, sizeof *jobs);
    w->seat = cgam_zalloc(w->env, synapses * JOBS, sizeof *w->seat);
    w->group = cgam_zalloc(w->env, synapses * JOBS, sizeof *w->group);
    if (!jobs || !w->seat || !w->group) {
        cgam_free(w->env, jobs);
        return cgam_fail_nomem(w->env, "the plan of a network");
    }
    for (int s = 0; s < net->synapses; s++) {
        const cgam_syn *syn = &net->synapse[s];
        bool wanted[SLOTS] = {false};
        for (int j = 0; j < syn->k; j++) wanted[j] = w->want[syn->layer[j]];
        for (int j = 0; j < JOBS; j++) w->seat[(int64_t)s * JOBS + j].group = -1;
        if (syn->kind->plan) syn->kind->plan(syn, wanted, jobs[s]);
    }
    seat_jobs(w, jobs, false);
    seat_jobs(w, jobs, true);
    cgam_free(w->env, jobs);
    return allocate_groups(w);
}
