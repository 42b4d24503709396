/* verb_map.c: the energy over a plane of queries, and flows across it. */
#include "app/input.h"
#include "app/verbs.h"
#include "base/alloc.h"
#include "lab/map.h"
#include "memory/fields.h"

#include <math.h>

enum { SIDE = 5 };    /* attractors are also searched from SIDE x SIDE points of the plane */
enum { NUMBER = 32 }; /* bytes of an energy, as a number and in the document; at least */

static const cgam_param params[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("context", "FILE[:NAME]", "one context (d), or rows:7*0.5+23; default: c = 0",
                    .input = CGAM_INPUT_VECTORS),
    CGAM_ROW_OF(cgam_map_opts_rows, "alpha"),
    CGAM_ROW_OF(cgam_map_opts_rows, "lambda"),
    CGAM_ROW_OF(cgam_map_opts_rows, "beta"),
    CGAM_PARAM_NORMALIZE,
    CGAM_ROW_OF(cgam_map_opts_rows, "gates"),
    CGAM_PARAM_INTS(
        "through", "I,J[,K]", NULL, 0, 9e15,
        "draw the plane through three memories, or through two and zero; default: along the "
        "bank's principal components"),
    CGAM_PARAM_INT("grid", "N", "41", 2, 400, "points along each side"),
    CGAM_PARAM_REAL("margin", "X", "0.5", 0, 100,
                    "margin around the memories of the plane, as a fraction of their extent"),
    CGAM_PARAM_TEXT("from", "FILE[:NAME]",
                    "starts of flows (d) or (B,d), or rows:..; the query moves from each",
                    .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_REALS("at", "X,Y", NULL, -1e6, 1e6, "a start on the plane, by its coordinates"),
    CGAM_PARAM_TEXT("context-then", "FILE[:NAME]", "the context after --switch; default: none",
                    .input = CGAM_INPUT_VECTORS),
    CGAM_ROW_OF(cgam_map_flow_opts_rows, "switch"),
    CGAM_ROW_OF(cgam_map_flow_opts_rows, "tau-s"),
    CGAM_ROW_OF(cgam_map_flow_opts_rows, "tau-r"),
    CGAM_ROW_OF(cgam_map_flow_opts_rows, "tau-q"),
    CGAM_ROW_OF(cgam_map_flow_opts_rows, "t-max"),
    CGAM_PARAM_END,
};

typedef struct job {
    cgam_call *call;
    cgam_bank *bank;
    cgam_bank_info info;
    cgam_plane plane;
    cgam_map_opts opts;
    cgam_matrix c, then, from;
    int64_t grid, anchors; /* anchors: memories that span the plane, or all */
    const int64_t *through;
    double *x, *y; /* [grid] each */
    double *energy;
} job;

static void close_job(job *j)
{
    cgam_env *env = j->call->env;
    cgam_plane_free(env, &j->plane);
    cgam_input_bank_done(j->call, j->bank);
    double *blocks[] = {j->c.data, j->then.data, j->from.data, j->x, j->energy};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cgam_free(env, blocks[i]);
}

static cgam_status open_job(job *j)
{
    const cgam_args *args = j->call->args;
    cgam_status status = cgam_input_bank(j->call, &j->bank);
    if (status != CGAM_OK) return status;
    j->info = cgam_bank_describe(j->bank);
    if (j->info.n < j->info.whole)
        return cgam_fail(j->call->env, CGAM_E_ARG,
                         "bank: rows were dropped; run bank pack --from to renumber the others "
                         "before a map");
    cgam_args_fill(args, cgam_map_opts_rows, &j->opts);
    j->grid = cgam_args_int(args, "grid");
    int64_t count = cgam_args_ints(args, "through", &j->through);
    bool settled = cgam_args_is(args, "gates", "settled");
    double squares = (count == 0) + (settled && j->opts.alpha > 0);
    status = cgam_input_expect(j->call, j->bank, squares, (double)(j->grid * j->grid) * NUMBER);
    if (status != CGAM_OK) return status;
    status = cgam_input_option(j->call, j->bank, "context", true, &j->c);
    if (status == CGAM_OK)
        status = cgam_input_option(j->call, j->bank, "context-then", true, &j->then);
    if (status == CGAM_OK) status = cgam_input_option(j->call, j->bank, "from", false, &j->from);
    if (status == CGAM_OK) status = cgam_plane_new(j->bank, count, j->through, &j->plane);
    j->anchors = count ? count : j->info.n;
    return status;
}

/* The position of anchor i on the plane; row [d] is scratch memory. */
static cgam_status anchor(const job *j, int64_t i, double *row, double *x, double *y, double *off)
{
    bool all = j->anchors == j->info.n && cgam_args_count(j->call->args, "through") == 0;
    cgam_status status = cgam_bank_row(j->bank, all ? i : j->through[i], row);
    if (status == CGAM_OK) cgam_plane_of(&j->plane, row, x, y, off);
    return status;
}

/* The sides of the map: the anchors' extent, the same length both ways, and a margin. */
static cgam_status lay_out(job *j)
{
    cgam_env *env = j->call->env;
    double *row;
    cgam_status status =
        cgam_alloc_all(env, "a map", CGAM_ARRAY(row, j->info.d), CGAM_ARRAY(j->x, 2 * j->grid),
                       CGAM_ARRAY(j->energy, j->grid * j->grid));
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < j->anchors && status == CGAM_OK; i++) {
        double at[2] = {0, 0}, off;
        status = anchor(j, i, row, &at[0], &at[1], &off);
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    cgam_free(env, row);
    if (status != CGAM_OK) return status;
    j->y = j->x + j->grid;
    for (int k = 0; k < 2 && j->anchors == 2; k++) { /* the plane also passes through zero */
        low[k] = fmin(low[k], 0);
        high[k] = fmax(high[k], 0);
    }
    double side = fmax(high[0] - low[0], high[1] - low[1]);
    side *= 1 + 2 * cgam_args_real(j->call->args, "margin");
    for (int64_t i = 0; i < j->grid; i++) {
        double t = (double)i / (double)(j->grid - 1) - 0.5;
        j->x[i] = (low[0] + high[0]) / 2 + t * side;
        j->y[i] = (low[1] + high[1]) / 2 + t * side;
    }
    return CGAM_OK;
}

static cgam_status put_energy(job *j)
{
    json_t *doc = j->call->doc, *rows = json_array();
    cgam_status status = cgam_map_energy(j->bank, &j->plane, j->c.data, &j->opts, j->grid, j->x,
                                         j->grid, j->y, j->energy);
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < j->grid * j->grid && status == CGAM_OK; i++) {
        low = fmin(low, j->energy[i]);
        high = fmax(high, j->energy[i]);
    }
    for (int64_t i = 0; i < j->grid && status == CGAM_OK; i++)
        json_array_append_new(rows, cgam_json_reals(j->energy + i * j->grid, j->grid, 1));
    cgam_json_put(doc, "x", cgam_json_reals(j->x, j->grid, 1));
    cgam_json_put(doc, "y", cgam_json_reals(j->y, j->grid, 1));
    cgam_json_put(doc, "energy", rows);
    cgam_json_put(doc, "energy_range", cgam_json_reals((double[]){low, high}, 2, 1));
    return status;
}

static json_t *point(double x, double y, double off)
{
    json_t *doc = cgam_json_object("x=%g y=%g off=%g", x, y, off);
    return doc;
}

/* Memories whose projection is on the map, the anchors first; at most 200. */
static cgam_status put_memories(job *j)
{
    enum { MOST = 200 };
    cgam_env *env = j->call->env;
    json_t *list = json_array();
    double *row = cgam_alloc(env, (size_t)j->info.d, sizeof *row), at[2], off;
    cgam_status status = row ? CGAM_OK : cgam_fail_nomem(env, "a map");
    int64_t last = j->grid - 1, named = cgam_args_count(j->call->args, "through");
    for (int64_t k = 0; k < named + j->info.n && status == CGAM_OK; k++) {
        int64_t i = k < named ? j->through[k] : k - named;
        bool seen = json_array_size(list) >= MOST;
        for (int64_t m = 0; m < named && k >= named; m++) seen |= j->through[m] == i;
        if (seen) continue;
        status = cgam_bank_row(j->bank, i, row);
        if (status != CGAM_OK) break;
        cgam_plane_of(&j->plane, row, &at[0], &at[1], &off);
        if (at[0] < j->x[0] || at[0] > j->x[last] || at[1] < j->y[0] || at[1] > j->y[last])
            continue;
        json_t *one = point(at[0], at[1], off);
        cgam_json_put_int(one, "index", i);
        json_array_append_new(list, one);
    }
    cgam_free(env, row);
    cgam_json_put(j->call->doc, "memories", list);
    return status;
}

/* Rest points, searched from the memories of the plane and from points spread over the map. */
static cgam_status put_attractors(job *j)
{
    cgam_env *env = j->call->env;
    int64_t d = j->info.d, named = cgam_args_count(j->call->args, "through"), found = 0;
    int64_t count = named + SIDE * SIDE, last = j->grid - 1;
    double *q, at[2], off;
    cgam_attractor *list;
    cgam_status status =
        cgam_alloc_all(env, "attractors", CGAM_ARRAY(q, count * d), CGAM_ZEROS(list, count));
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        if (i < named) {
            status = cgam_bank_row(j->bank, j->through[i], q + i * d);
            continue;
        }
        double x = j->x[(i - named) % SIDE * last / (SIDE - 1)];
        double y = j->y[(i - named) / SIDE * last / (SIDE - 1)];
        for (int64_t k = 0; k < d; k++)
            q[i * d + k] = j->plane.origin[k] + x * j->plane.e1[k] + y * j->plane.e2[k];
    }
    if (status == CGAM_OK)
        status = cgam_map_attractors(j->bank, j->c.data, &j->opts, count, q, list, &found);
    json_t *rows = json_array();
    for (int64_t i = 0; i < found && status == CGAM_OK; i++) {
        cgam_plane_of(&j->plane, q + i * d, &at[0], &at[1], &off);
        json_t *one = point(at[0], at[1], off);
        cgam_fields_put(one, cgam_attractor_rows, &list[i], 0);
        json_array_append_new(rows, one);
    }
    cgam_free(env, q);
    cgam_free(env, list);
    cgam_json_put(j->call->doc, "attractors", rows);
    return status;
}

/* A flow as columns: one list for each field of its moments. */
static json_t *flow_doc(const cgam_map_moment *m, int64_t count, cgam_end end)
{
    json_t *doc = json_object(), *moments = cgam_fields_list(cgam_moment_rows, m, count, sizeof *m);
    cgam_json_put_text(doc, "end", cgam_word(cgam_end_words, end));
    for (const cgam_field *f = cgam_moment_rows; *f->name; f++) {
        size_t i;
        json_t *moment, *list = json_array();
        json_array_foreach(moments, i, moment)
            json_array_append(list, json_object_get(moment, f->name));
        cgam_json_put(doc, f->name, list);
    }
    json_decref(moments);
    return doc;
}

static cgam_status flow_from(job *j, const double *q, const cgam_map_flow_opts *flow,
                             cgam_map_moment *moments, json_t *list)
{
    int64_t count = 0;
    cgam_end end = CGAM_END_ROSE;
    cgam_status status =
        cgam_map_flow(j->bank, &j->plane, q, j->c.data, &j->opts, flow, moments, &count, &end);
    if (status == CGAM_OK) json_array_append_new(list, flow_doc(moments, count, end));
    return status;
}

static cgam_status put_flows(job *j)
{
    const cgam_args *args = j->call->args;
    cgam_env *env = j->call->env;
    const double *at;
    int64_t given = cgam_args_reals(args, "at", &at);
    if (given != 0 && given != 2)
        return cgam_fail(env, CGAM_E_ARG, "at: expected two numbers, x and y; got %lld",
                         (long long)given);
    cgam_map_flow_opts flow = cgam_map_flow_opts_default();
    cgam_args_fill(args, cgam_map_flow_opts_rows, &flow);
    flow.c_then = j->then.data;
    double *q;
    cgam_map_moment *moments;
    json_t *list = json_array();
    cgam_status status = cgam_alloc_all(env, "a flow", CGAM_ARRAY(q, j->info.d),
                                        CGAM_ARRAY(moments, flow.samples + 3));
    for (int64_t i = 0; i < j->from.rows && status == CGAM_OK; i++)
        status = flow_from(j, j->from.data + i * j->info.d, &flow, moments, list);
    if (status == CGAM_OK && given) {
        for (int64_t k = 0; k < j->info.d; k++)
            q[k] = j->plane.origin[k] + at[0] * j->plane.e1[k] + at[1] * j->plane.e2[k];
        status = flow_from(j, q, &flow, moments, list);
    }
    cgam_free(env, q);
    cgam_free(env, moments);
    cgam_json_put(j->call->doc, "flows", list);
    return status;
}

static cgam_status run_map(cgam_call *call)
{
    job j = {.call = call};
    cgam_status status = open_job(&j);
    if (status == CGAM_OK) {
        cgam_fields_put_some(call->doc, "n d", cgam_bank_info_rows, &j.info);
        cgam_args_put(call->args, "gates", call->doc);
        status = lay_out(&j);
    }
    if (status == CGAM_OK) status = put_energy(&j);
    if (status == CGAM_OK) status = put_memories(&j);
    if (status == CGAM_OK) status = put_attractors(&j);
    if (status == CGAM_OK) status = put_flows(&j);
    close_job(&j);
    return status;
}

const cgam_verb cgam_verb_map = {
    .name = "map",
    .params = params,
    .run = run_map,
};
