/* trajectory.c: the moments of a flow as a file. */
#include "base/env.h"
#include "io/array.h"
#include "io/csv.h"
#include "lab/figures/net_files.h"
#include "lab/table.h"
#include "net/net.h"

#include <string.h>

static cgam_status write_csv(const cgam_net *net, const cgam_trajectory_view *t, const char *path)
{
    cgam_outfile *out;
    cgam_status status = cgam_outfile_begin(net->env, path, &out);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(out);
    int parts = cgam_net_describe(net).parts;
    fputs("time,energy,power,residual,events,winner", to);
    for (int i = 0; i < parts; i++) {
        fputc(',', to);
        cgam_csv_text(to, cgam_net_part_name(net, i));
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
static cgam_status layer_array(const cgam_net *net, const cgam_trajectory_view *t, int i,
                               int64_t *shape, double **block, cgam_named_array *array)
{
    const cgam_layer *layer = &net->layer[i];
    int dims = layer->ndim < CGAM_ARRAY_DIMS ? layer->ndim : 0;
    *block = cgam_alloc(net->env, (size_t)(t->count * layer->size), sizeof **block);
    if (!*block) return cgam_fail_nomem(net->env, "a trajectory");
    for (int64_t k = 0; k < t->count; k++)
        memcpy(*block + k * layer->size, t->states + k * net->size + layer->offset,
               (size_t)layer->size * sizeof **block);
    shape[0] = t->count;
    memcpy(shape + 1, layer->shape, (size_t)dims * sizeof *shape);
    if (dims == 0 && layer->ndim > 0)
        shape[dims = 1] = layer->size; /* one dimension more would be too many */
    *array = (cgam_named_array){layer->name, CGAM_F64, dims + 1, shape, *block};
    return CGAM_OK;
}

static cgam_status write_npz(const cgam_net *net, const cgam_trajectory_view *t, const char *path)
{
    cgam_env *env = net->env;
    int layers = t->states ? net->layers : 0, count = 7 + layers;
    const int64_t one[] = {t->count}, two[] = {t->count, cgam_net_describe(net).parts};
    cgam_named_array *arrays = cgam_zalloc(env, (size_t)count, sizeof *arrays);
    double **blocks = cgam_zalloc(env, (size_t)layers + 1, sizeof *blocks);
    int64_t(*shapes)[CGAM_ARRAY_DIMS + 1] = cgam_zalloc(env, (size_t)layers + 1, sizeof *shapes);
    char(*names)[160] = cgam_zalloc(env, (size_t)layers + 1, sizeof *names);
    cgam_status status = CGAM_OK;
    if (!arrays || !blocks || !shapes || !names) status = cgam_fail_nomem(env, "a trajectory");
    for (int i = 0; i < layers && status == CGAM_OK; i++) {
        status = layer_array(net, t, i, shapes[i], &blocks[i], &arrays[7 + i]);
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

cgam_status cgam_trajectory_write(const cgam_net *net, const cgam_trajectory *trajectory,
                                  const char *path)
{
    const cgam_trajectory_view t = cgam_trajectory_look(trajectory);
    if (t.count == 0) return cgam_fail(net->env, CGAM_E_ARG, "%s: the trajectory is empty", path);
    if (cgam_path_ends(path, ".csv")) return write_csv(net, &t, path);
    if (cgam_path_ends(path, ".npz")) return write_npz(net, &t, path);
    return cgam_fail(net->env, CGAM_E_ARG, "%s: a trajectory is written as .npz or .csv", path);
}
