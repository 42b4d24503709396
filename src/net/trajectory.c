/* trajectory.c: stores the points of a flow. */
#include "net/net.h"

#include <cgam/flow.h>
#include <string.h>

struct cgam_trajectory {
    const cgam_net *net;
    cgam_env *env;
    cgam_status status;
    int64_t count, capacity;
    double *time, *energy, *power, *residual; /* [capacity] */
    int64_t *events, *winner;                 /* [capacity] */
    double *parts;                            /* [capacity, parts] */
    double *states;                           /* [capacity, size] or NULL */
    bool keep_states;
};

cgam_status cgam_trajectory_new(const cgam_net *net, bool states, cgam_trajectory **out)
{
    *out = cgam_zalloc(net->env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(net->env, "a trajectory");
    (*out)->net = net;
    (*out)->env = net->env;
    (*out)->keep_states = states;
    return CGAM_OK;
}

void cgam_trajectory_free(cgam_trajectory *t)
{
    if (!t) return;
    void *const blocks[] = {t->time,   t->energy, t->power, t->residual,
                            t->events, t->winner, t->parts, t->states};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(t->env, blocks[i]);
    cgam_free(t->env, t);
}

static bool grow_array(cgam_trajectory *t, void **array, int64_t width, int64_t capacity)
{
    size_t item = (size_t)width * sizeof(double);
    void *grown = cgam_alloc(t->env, (size_t)capacity, item);
    if (!grown) return false;
    if (*array) memcpy(grown, *array, (size_t)t->count * item);
    cgam_free(t->env, *array);
    *array = grown;
    return true;
}

static cgam_status reserve_point(cgam_trajectory *t)
{
    if (t->count < t->capacity) return CGAM_OK;
    int64_t capacity = t->capacity ? 2 * t->capacity : 64;
    void **const lists[] = {(void **)&t->time,     (void **)&t->energy, (void **)&t->power,
                            (void **)&t->residual, (void **)&t->events, (void **)&t->winner};
    bool fine = true;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        fine = fine && grow_array(t, lists[i], 1, capacity);
    fine = fine && grow_array(t, (void **)&t->parts, cgam_net_describe(t->net).parts, capacity);
    if (t->keep_states) fine = fine && grow_array(t, (void **)&t->states, t->net->size, capacity);
    if (!fine) return cgam_fail_nomem(t->env, "a trajectory");
    t->capacity = capacity;
    return CGAM_OK;
}

int cgam_trajectory_monitor(void *user, const cgam_flow_moment *m)
{
    cgam_trajectory *t = user;
    if (m->state != 0) return 0;
    t->status = reserve_point(t);
    if (t->status != CGAM_OK) return 1;
    int64_t at = t->count++, parts = cgam_net_describe(t->net).parts, size = t->net->size;
    t->time[at] = m->time;
    t->energy[at] = m->energy;
    t->power[at] = m->power;
    t->residual[at] = m->residual;
    t->events[at] = m->events;
    t->winner[at] = m->winner;
    memcpy(t->parts + at * parts, m->parts, (size_t)parts * sizeof *t->parts);
    if (t->states) memcpy(t->states + at * size, m->x, (size_t)size * sizeof *t->states);
    return 0;
}

cgam_trajectory_view cgam_trajectory_look(const cgam_trajectory *t)
{
    return (cgam_trajectory_view){.status = t->status,
                                  .count = t->count,
                                  .time = t->time,
                                  .energy = t->energy,
                                  .power = t->power,
                                  .residual = t->residual,
                                  .parts = t->parts,
                                  .events = t->events,
                                  .winner = t->winner,
                                  .states = t->states};
}
