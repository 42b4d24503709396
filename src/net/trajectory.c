/* trajectory.c: the moments of a flow, kept and written. */
#include "io/array.h"
#include <cgam/flow.h>

#include "io/file.h"
#include "io/table.h"
#include "net/net.h"

#include <math.h>
#include <stdio.h>
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
    fine = fine && grow_array(t, (void **)&t->parts, cgam_net_parts(t->net), capacity);
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
    int64_t at = t->count++, parts = cgam_net_parts(t->net), size = t->net->size;
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

cgam_status cgam_trajectory_status(const cgam_trajectory *t) { return t->status; }

cgam_trajectory_view cgam_trajectory_look(const cgam_trajectory *t)
{
    return (cgam_trajectory_view){.count = t->count,
                                  .time = t->time,
                                  .energy = t->energy,
                                  .power = t->power,
                                  .residual = t->residual,
                                  .parts = t->parts,
                                  .events = t->events,
                                  .winner = t->winner,
                                  .states = t->states};
}

/* ---- writing -------------------------------------------------------------------------------- */

static cgam_status write_csv(const cgam_trajectory *t, const char *path)
{
    cgam_outfile *out;
    cgam_status status = cgam_outfile_begin(t->env, path, &out);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(out);
    int parts = cgam_net_parts(t->net);
    fputs("time,energy,power,residual,events,winner", to);
    for (int i = 0; i < parts; i++) {
        fputc(',', to);
        cgam_csv_text(to, cgam_net_part_name(t->net, i));
    }
    fputc('\n', to);
    for (int64_t k = 0; k < t->count; k++) {
        const double numbers[] = {t->time[k], t->energy[k], t->power[k], t->residual[k]};
        for (int i = 0; i < 4; i++) {
            cgam_csv_real(to, numbers[i]);
            fputc(',', to);
        }
        fprintf(to, "%lld,%lld", (long long)t->events[k], (long long)t->winner[k]);
        for (int i = 0; i < parts; i++) {
            fputc(',', to);
            cgam_csv_real(to, t->parts[k * parts + i]);
        }
        fputc('\n', to);
    }
    return cgam_outfile_commit(out);
}

/* Each layer's states [count, shape..], gathered from the whole ones. */
static cgam_status layer_array(const cgam_trajectory *t, int i, int64_t *shape, double **block,
                               cgam_named_array *array)
{
    const cgam_layer *layer = &t->net->layer[i];
    int dims = layer->ndim < CGAM_ARRAY_DIMS ? layer->ndim : 0;
    *block = cgam_alloc(t->env, (size_t)(t->count * layer->size), sizeof **block);
    if (!*block) return cgam_fail_nomem(t->env, "a trajectory");
    for (int64_t k = 0; k < t->count; k++)
        memcpy(*block + k * layer->size, t->states + k * t->net->size + layer->offset,
               (size_t)layer->size * sizeof **block);
    shape[0] = t->count;
    memcpy(shape + 1, layer->shape, (size_t)dims * sizeof *shape);
    if (dims == 0 && layer->ndim > 0)
        shape[dims = 1] = layer->size; /* one dimension more would be too many */
    *array = (cgam_named_array){layer->name, CGAM_F64, dims + 1, shape, *block};
    return CGAM_OK;
}

static cgam_status write_npz(const cgam_trajectory *t, const char *path)
{
    cgam_env *env = t->env;
    const cgam_net *net = t->net;
    int layers = t->states ? net->layers : 0, count = 7 + layers;
    const int64_t one[] = {t->count}, two[] = {t->count, cgam_net_parts(net)};
    cgam_named_array *arrays = cgam_zalloc(env, (size_t)count, sizeof *arrays);
    double **blocks = cgam_zalloc(env, (size_t)layers + 1, sizeof *blocks);
    int64_t(*shapes)[CGAM_ARRAY_DIMS + 1] = cgam_zalloc(env, (size_t)layers + 1, sizeof *shapes);
    char(*names)[160] = cgam_zalloc(env, (size_t)layers + 1, sizeof *names);
    cgam_status status = CGAM_OK;
    if (!arrays || !blocks || !shapes || !names) status = cgam_fail_nomem(env, "a trajectory");
    for (int i = 0; i < layers && status == CGAM_OK; i++) {
        status = layer_array(t, i, shapes[i], &blocks[i], &arrays[7 + i]);
        snprintf(names[i], sizeof names[i], "layer/%.150s", net->layer[i].name);
        arrays[7 + i].name = names[i];
    }
    if (status == CGAM_OK) {
        const cgam_named_array fixed[] = {
            {"time", CGAM_F64, 1, one, t->time},     {"energy", CGAM_F64, 1, one, t->energy},
            {"power", CGAM_F64, 1, one, t->power},   {"residual", CGAM_F64, 1, one, t->residual},
            {"events", CGAM_I64, 1, one, t->events}, {"winner", CGAM_I64, 1, one, t->winner},
            {"parts", CGAM_F64, 2, two, t->parts},
        };
        memcpy(arrays, fixed, sizeof fixed);
        status = cgam_arrays_write(env, path, count, arrays);
    }
    for (int i = 0; blocks && i < layers; i++) cgam_free(env, blocks[i]);
    void *const all[] = {arrays, blocks, shapes, names};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) cgam_free(env, all[i]);
    return status;
}

cgam_status cgam_trajectory_write(const cgam_trajectory *t, const char *path)
{
    if (t->count == 0) return cgam_fail(t->env, CGAM_E_ARG, "%s: the trajectory is empty", path);
    if (cgam_path_ends(path, ".csv")) return write_csv(t, path);
    if (cgam_path_ends(path, ".npz")) return write_npz(t, path);
    return cgam_fail(t->env, CGAM_E_ARG, "%s: a trajectory is written as .npz or .csv", path);
}
