/* verb_lm_store.c: what a store holds, whether it is sound, and its states as files. */
#include "app/params.h"
#include "app/verbs.h"
#include "lm/store.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_TEXT("store", "FILE", "to look into", .required = true, .input = CGAM_INPUT_STORE),
    CGAM_PARAM_FLAG("check", "read every row and compare its digest"),
    CGAM_PARAM_TEXT("export", "FILE",
                    "write states [rows, layers + 1, width] as .npy, .npz or .safetensors",
                    .writes = true),
    CGAM_PARAM_CHOICE("tokens", "last|all", "last",
                      "export the states of all tokens: p0, p1, .. (layers, tokens, width) as "
                      ".safetensors, where they were captured"),
    CGAM_PARAM_CHOICE("engine", "llama|exact", NULL, "which states to export where there are both"),
    CGAM_PARAM_TEXT("sha256", "DIGEST", "model to export"),
    CGAM_PARAM_END,
};

typedef struct listing {
    json_t *groups;
    const char *engine, *sha256;
    cgam_store_group last;
} listing;

static cgam_status list(void *user, const cgam_store_group *g)
{
    listing *l = user;
    json_t *row = json_object();
    cgam_json_put_text(row, "model", g->model);
    cgam_json_put_text(row, "name", g->name);
    cgam_json_put_text(row, "engine", g->engine);
    cgam_json_put_int(row, "layers", g->layers);
    cgam_json_put_int(row, "width", g->width);
    cgam_json_put_int(row, "rows", g->rows);
    cgam_json_put_int(row, "bytes", g->bytes);
    cgam_json_put_int(row, "all_tokens", g->all_tokens);
    json_array_append_new(l->groups, row);
    if ((!l->engine || strcmp(l->engine, g->engine) == 0) &&
        (!l->sha256 || strcmp(l->sha256, g->model) == 0))
        l->last = *g;
    return CGAM_OK;
}

static cgam_status run(cgam_call *call)
{
    const cgam_args *args = call->args;
    cgam_store *store;
    listing l = {.groups = json_array(),
                 .engine = cgam_args_text(args, "engine"),
                 .sha256 = cgam_args_text(args, "sha256")};
    const char *file = cgam_args_text(args, "export");
    cgam_status status = cgam_store_open(call->env, cgam_args_text(args, "store"), false, &store);
    if (status == CGAM_OK) status = cgam_store_list(store, list, &l);
    cgam_json_put(call->doc, "groups", l.groups);
    if (status == CGAM_OK && cgam_args_flag(args, "check")) {
        cgam_store_verdict verdict;
        status = cgam_store_check(store, &verdict);
        if (status == CGAM_OK) {
            json_t *check = json_object();
            cgam_json_put_int(check, "rows", verdict.rows);
            cgam_json_put_int(check, "bad", verdict.bad);
            cgam_json_put_bool(check, "sound", verdict.sound);
            cgam_json_put(call->doc, "check", check);
            call->negative = !verdict.sound;
        }
    }
    if (status == CGAM_OK && file) {
        int64_t rows;
        bool chosen = l.engine || l.sha256, all = cgam_args_is(args, "tokens", "all");
        status = (all ? cgam_store_export_tokens
                      : cgam_store_export)(store, chosen ? &l.last : NULL, file, &rows);
        if (status == CGAM_OK) {
            char index[4096];
            bool indexed = !all && cgam_store_index_path(file, index, sizeof index);
            cgam_json_put_text(call->doc, "exported", file);
            if (!all) cgam_json_put_text(call->doc, "index", indexed ? index : NULL);
            cgam_json_put_int(call->doc, "exported_rows", rows);
        }
    }
    cgam_store_close(store);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(doc, "groups"), i, row) fprintf(
        to, "%6lld prompts  %-5s  %lld x %lld  %8.1f MB  %s  %.12s\n",
        (long long)cgam_json_get_int(row, "rows"), cgam_json_get_text(row, "engine"),
        (long long)cgam_json_get_int(row, "layers") + 1, (long long)cgam_json_get_int(row, "width"),
        (double)cgam_json_get_int(row, "bytes") / 1e6, cgam_json_get_text(row, "name"),
        cgam_json_get_text(row, "model"));
    if (i == 0) fputs("no states\n", to);
    const json_t *check = json_object_get(doc, "check");
    if (check)
        fprintf(to, "%lld rows read, %lld bad: %s\n", (long long)cgam_json_get_int(check, "rows"),
                (long long)cgam_json_get_int(check, "bad"),
                json_is_true(json_object_get(check, "sound")) ? "sound" : "damaged");
    if (json_object_get(doc, "exported"))
        fprintf(to, "%lld rows written to %s%s%s\n",
                (long long)cgam_json_get_int(doc, "exported_rows"),
                cgam_json_get_text(doc, "exported"),
                json_object_get(doc, "index") ? ", what each is to " : "",
                cgam_json_get_text(doc, "index"));
}

const cgam_verb cgam_verb_lm_store = {
    .name = "lm store",
    .summary = "list, check or export captured states",
    .about = "Lists the models whose states a store holds. --check reads every row, compares its "
             "digest and runs SQLite's own check; damage is exit status 1. --export writes the "
             "states of one model and engine in the order they were asked for, and beside them "
             "FILE.index.csv: for each row the query, its number of shots, label, tokens and text. "
             ".safetensors and .npz hold these numbers too.",
    .example = "cgam lm store --store s.db --check --export states.safetensors",
    .params = params,
    .run = run,
    .print = print,
};
