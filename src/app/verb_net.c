/* verb_net.c: shows and runs networks in JSON files. */
#include "app/params.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/alloc.h"
#include "lab/figures/net_draw.h"
#include "lab/figures/net_files.h"
#include "lab/net_file.h"
#include "memory/fields.h"
#include "net/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_SHOWN = 256 }; /* numbers of a layer that the document prints */

#define NET_FILE                                                                                   \
    CGAM_PARAM_TEXT("FILE", "FILE.json", "a network: docs/format/network.md", .required = true,    \
                    .input = CGAM_INPUT_JSON)

static const cgam_param run_params[] = {
    NET_FILE,
    CGAM_PARAM_OUT(NULL, "folder for the trajectory (.npz with states, .csv), the figure of "
                         "energies by part, the drawing of the graph and this document"),
    CGAM_PARAM_CHOICE("method", "auto|adams|bdf|rk4|euler", NULL,
                      "integrator, instead of the file's"),
    CGAM_PARAM_REAL("t-end", "T", NULL, CGAM_ABOVE_0, INFINITY, "horizon, instead of the file's"),
    CGAM_PARAM_REAL(
        "sample", "DT", NULL, 0, INFINITY,
        "time between samples of the trajectory, 0 for every step, instead of the file's"),
    CGAM_PARAM_FIGURES("with --out: draw the figure (SVG, PNG, PDF; needs gnuplot) and the graph "
                       "(SVG; needs Graphviz)"),
    CGAM_PARAM_END,
};

static const cgam_param show_params[] = {
    NET_FILE,
    CGAM_PARAM_TEXT("svg", "FILE.svg", "draw the graph, through Graphviz' dot", .writes = true),
    CGAM_PARAM_TEXT("dot", "FILE.dot", "write the graph in the language of Graphviz",
                    .writes = true),
    CGAM_PARAM_INT("eigen", "K", "0", 0, 1000,
                   "the K largest eigenvalues of the Jacobian of the rates at the start; all below "
                   "0 mean that a steady state is stable"),
    CGAM_PARAM_END,
};

/* ---- documents -------------------------------------------------------------------------------- */

static json_t *parts_json(const cgam_net *net, const double *parts)
{
    json_t *object = json_object();
    for (int i = 0; i < cgam_net_describe(net).parts; i++)
        cgam_json_put_real(object, cgam_net_part_name(net, i), parts[i]);
    return object;
}

/* Does a clamp hold the layer at that time? */
static bool held_at(const cgam_flow_opts *flow, int layer, double time)
{
    for (int i = 0; i < flow->clamp_count; i++)
        if (flow->clamps[i].layer == layer && flow->clamps[i].from <= time &&
            time < flow->clamps[i].to)
            return true;
    return false;
}

static json_t *layer_json(const cgam_layer_view *layer, bool clamped)
{
    json_t *object =
        cgam_json_object("shape=%p size=%jd lagrangian=%s",
                         cgam_json_ints(layer->shape, layer->ndim), layer->size, layer->lagr->name);
    for (int i = 0; i < CGAM_LAGR_PARAMS && layer->lagr->param[i].name; i++)
        cgam_json_put_real(object, layer->lagr->param[i].name, layer->param[i]);
    cgam_json_add(object, "scale=%g tau=%g clamped?=%d", layer->scale, layer->tau, clamped);
    return object;
}

/* Adds the index of the layer's largest number, and the numbers themselves if there are at most STATE_SHOWN. */
static void put_state(json_t *object, int64_t size, const double *x, const double *a)
{
    int64_t best = 0;
    for (int64_t i = 1; i < size; i++)
        if (x[i] > x[best]) best = i;
    cgam_json_add(object, "largest=%jd state=%p activation=%p", best,
                  size <= STATE_SHOWN ? cgam_json_reals(x, size, 1) : json_null(),
                  size <= STATE_SHOWN ? cgam_json_reals(a, size, 1) : json_null());
}

static json_t *synapses_json(const cgam_net *net)
{
    json_t *object = json_object();
    for (int i = 0; i < cgam_net_synapses(net); i++) {
        cgam_synapse_view s = cgam_net_synapse(net, i);
        json_t *one = json_object(), *layers = json_array();
        for (int j = 0; j < s.k; j++)
            json_array_append_new(layers, json_string(cgam_net_layer(net, s.layers[j]).name));
        cgam_json_add(one, "kind=%s layers=%p gain=%g", s.kind, layers, s.gain);
        cgam_json_put(object, s.name, one);
    }
    return object;
}

/* ---- run -------------------------------------------------------------------------------------- */

typedef struct watcher {
    cgam_trajectory *trajectory; /* or NULL */
    cgam_line progress;
    double start, told; /* seconds */
} watcher;

static int watch(void *user, const cgam_flow_moment *m)
{
    watcher *w = user;
    double now = cgam_clock();
    if (now - w->told > 0.2 && now - w->start > 0.5) {
        double left = m->progress > 0 ? (now - w->start) * (1 / m->progress - 1) : NAN;
        cgam_line_tell(&w->progress, m->progress, left);
        w->told = now;
    }
    return w->trajectory ? cgam_trajectory_monitor(w->trajectory, m) : 0;
}

static void apply_options(cgam_call *call, cgam_flow_opts *flow)
{
    const cgam_args *args = call->args;
    if (cgam_args_given(args, "method"))
        flow->method = (cgam_flow_method)cgam_word_find(cgam_flow_method_words,
                                                        cgam_args_text(args, "method"));
    if (cgam_args_given(args, "t-end")) flow->t_end = cgam_args_real(args, "t-end");
    if (cgam_args_given(args, "sample")) flow->sample = cgam_args_real(args, "sample");
}

static cgam_status put_run(cgam_call *call, const cgam_net_file *file, const cgam_flow_report *r)
{
    cgam_env *env = call->env;
    json_t *doc = call->doc, *layers = json_object();
    const cgam_net *net = file->net;
    double *a, *parts;
    cgam_status status =
        cgam_alloc_all(env, "the energies of a network", CGAM_ARRAY(a, cgam_net_describe(net).size),
                       CGAM_ARRAY(parts, cgam_net_describe(net).parts));
    if (status == CGAM_OK)
        status = cgam_net_eval(net, 1, file->x, NULL,
                               &(cgam_net_values){.activation = a, .parts = parts});
    cgam_json_put_text(doc, "title", file->title);
    cgam_fields_put_some(doc, r->reason[0] ? "time end reason" : "time end", cgam_flow_report_rows,
                         r);
    cgam_fields_put_some(doc,
                         "method steps evaluations energy_start energy_end energy_rise rise_time "
                         "power residual settled",
                         cgam_flow_report_rows, r);
    if (file->flow.watch >= 0) {
        cgam_json_put_text(doc, "watched", cgam_net_layer(net, file->flow.watch).name);
        cgam_fields_put_some(doc, "winner winner_changes winner_time", cgam_flow_report_rows, r);
    }
    if (status == CGAM_OK) cgam_json_put(doc, "parts", parts_json(net, parts));
    for (int i = 0; i < cgam_net_describe(net).layers && status == CGAM_OK; i++) {
        cgam_layer_view layer = cgam_net_layer(net, i);
        json_t *one = layer_json(&layer, held_at(&file->flow, i, r->time));
        put_state(one, layer.size, file->x + layer.offset, a + layer.offset);
        cgam_json_put(layers, layer.name, one);
    }
    cgam_json_put(doc, "layers", layers);
    cgam_free(env, a);
    cgam_free(env, parts);
    return status;
}

static cgam_status run_net(cgam_call *call)
{
    cgam_env *env = call->env;
    const char *out = cgam_args_text(call->args, "out");
    bool figures = strcmp(cgam_args_text(call->args, "figures"), "yes") == 0;
    cgam_net_file file;
    cgam_flow_report r;
    watcher w = {.progress = {.shown = call->progress, .what = "flow"}, .start = cgam_clock()};
    cgam_status status = cgam_net_file_open(env, cgam_args_text(call->args, "FILE"), &file);
    if (status != CGAM_OK) return status;
    apply_options(call, &file.flow);
    if (out) status = cgam_trajectory_new(file.net, true, &w.trajectory);
    file.flow.monitor = watch;
    file.flow.user = &w;
    if (status == CGAM_OK) status = cgam_flow_run(file.net, 1, file.x, &file.flow, &r);
    cgam_line_clear(&w.progress);
    if (status == CGAM_OK && w.trajectory) status = cgam_trajectory_look(w.trajectory).status;
    if (status == CGAM_OK) status = put_run(call, &file, &r);
    if (status == CGAM_OK && out)
        status = cgam_net_files_write(env, call->doc, &file, w.trajectory, out, figures);
    if (status == CGAM_OK)
        call->negative = r.end == CGAM_FLOW_ROSE || r.end == CGAM_FLOW_DIVERGED ||
                         r.end == CGAM_FLOW_STUCK || r.end == CGAM_FLOW_STEPS;
    cgam_trajectory_free(w.trajectory);
    cgam_net_file_close(&file);
    return status;
}

const cgam_verb cgam_verb_net_run = {
    .name = "net run",
    .params = run_params,
    .run = run_net,
};

/* ---- show ------------------------------------------------------------------------------------- */

/* The state at time 0, clamps applied. */
static void apply_clamps(cgam_net_file *file, bool *clamped)
{
    for (int i = 0; i < cgam_net_describe(file->net).layers; i++) clamped[i] = false;
    for (int i = 0; i < file->flow.clamp_count; i++) {
        const cgam_clamp *c = &file->flow.clamps[i];
        cgam_layer_view layer = cgam_net_layer(file->net, c->layer);
        if (c->from > 0) continue;
        clamped[c->layer] = true;
        if (c->value)
            memcpy(file->x + layer.offset, c->value, (size_t)layer.size * sizeof *c->value);
    }
}

static cgam_status put_eigen(cgam_call *call, const cgam_net_file *file, const bool *clamped)
{
    int64_t count = cgam_args_int(call->args, "eigen");
    cgam_eigen info;
    if (count == 0) return CGAM_OK;
    double *values = cgam_alloc(call->env, (size_t)count, sizeof *values);
    if (!values) return cgam_fail_nomem(call->env, "eigenvalues");
    cgam_status status = cgam_net_eigen(file->net, file->x, clamped, count, 0, values, &info);
    if (status == CGAM_OK) {
        cgam_json_add(call->doc, "eigenvalues=%p eigenvalues_converged?=%d",
                      cgam_json_reals(values, info.found, 1), info.converged);
        call->negative = !info.converged;
    }
    cgam_free(call->env, values);
    return status;
}

static cgam_status put_show(cgam_call *call, cgam_net_file *file, bool *clamped, double *parts)
{
    json_t *doc = call->doc, *layers = json_object();
    const cgam_net *net = file->net;
    double E, power;
    apply_clamps(file, clamped);
    cgam_status status =
        cgam_net_eval(net, 1, file->x, clamped,
                      &(cgam_net_values){.energy = &E, .parts = parts, .power = &power});
    if (status != CGAM_OK) {
        json_decref(layers);
        return status;
    }
    cgam_json_add(doc, "title=%s size=%jd", file->title, cgam_net_describe(net).size);
    for (int i = 0; i < cgam_net_describe(net).layers; i++) {
        cgam_layer_view layer = cgam_net_layer(net, i);
        cgam_json_put(layers, layer.name, layer_json(&layer, clamped[i]));
    }
    cgam_json_add(doc, "layers=%p synapses=%p energy=%g power=%g parts=%p", layers,
                  synapses_json(net), E, power, parts_json(net, parts));
    return put_eigen(call, file, clamped);
}

/* Puts the table that print shows into the document, under its own key. */
static cgam_status put_table(cgam_call *call, const cgam_net *net, const double *parts)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to) return cgam_fail_nomem(call->env, "a table");
    cgam_net_draw_text(net, parts, to);
    bool fine = fclose(to) == 0 && text;
    if (fine) cgam_json_put_text(call->doc, "table", text);
    free(text);
    return fine ? CGAM_OK : cgam_fail_nomem(call->env, "a table");
}

static cgam_status show_net(cgam_call *call)
{
    cgam_env *env = call->env;
    const char *svg = cgam_args_text(call->args, "svg"), *dot = cgam_args_text(call->args, "dot");
    cgam_net_file file;
    cgam_status status = cgam_net_file_open(env, cgam_args_text(call->args, "FILE"), &file);
    if (status != CGAM_OK) return status;
    bool *clamped;
    double *parts;
    status =
        cgam_alloc_all(env, "a network", CGAM_ARRAY(clamped, cgam_net_describe(file.net).layers),
                       CGAM_ARRAY(parts, cgam_net_describe(file.net).parts));
    if (status == CGAM_OK) status = put_show(call, &file, clamped, parts);
    if (status == CGAM_OK) status = put_table(call, file.net, parts);
    if (status == CGAM_OK && dot) status = cgam_net_files_dot(env, &file, dot);
    if (status == CGAM_OK && svg) {
        bool missing = false;
        status = cgam_net_files_svg(env, &file, svg, &missing);
        if (status == CGAM_OK && missing)
            status =
                cgam_fail(env, CGAM_E_NOT_FOUND,
                          "Graphviz is not installed; --dot writes its input to a file instead");
    }
    cgam_free(env, clamped);
    cgam_free(env, parts);
    cgam_net_file_close(&file);
    return status;
}

const cgam_verb cgam_verb_net_show = {
    .name = "net show",
    .params = show_params,
    .run = show_net,
};
