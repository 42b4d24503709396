/* verb_lm_store.c: lists and checks a store, and exports its states to files. */
#include "app/params.h"
#include "app/verbs.h"
#include "lm/collect.h"
#include "lm/store.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_TEXT("store", "FILE", "to look into", .required = true, .input = CGAM_INPUT_STORE),
    CGAM_PARAM_FLAG("check", "read every row and compare its digest"),
    CGAM_PARAM_TEXT("export", "FILE",
                    "write states [rows, layers + 1, width] as .npy, .npz or .safetensors",
                    .writes = true),
    CGAM_PARAM_CHOICE(
        "tokens", "last|all", "last",
        "which states to export; all requires a capture with --tokens all and writes p0, p1, "
        ".. (layers, tokens, width) to .safetensors"),
    CGAM_PARAM_CHOICE("engine", "llama|exact", NULL,
                      "engine whose states to export, if the store has both"),
    CGAM_PARAM_TEXT("sha256", "DIGEST", "model whose states to export"),
    CGAM_PARAM_END,
};

#define GROUP(member_, kind_) CGAM_ROW(cgam_store_group, member_, #member_, kind_, NULL)
static const cgam_field group_rows[] = {
    GROUP(model, CGAM_TEXT), GROUP(name, CGAM_TEXT),      GROUP(engine, CGAM_TEXT),
    GROUP(layers, CGAM_INT), GROUP(width, CGAM_INT),      GROUP(rows, CGAM_INT),
    GROUP(bytes, CGAM_INT),  GROUP(all_tokens, CGAM_INT), CGAM_ROWS_END,
};
static const cgam_field verdict_rows[] = {
    CGAM_ROW(cgam_store_verdict, rows, "rows", CGAM_INT, NULL),
    CGAM_ROW(cgam_store_verdict, bad, "bad", CGAM_INT, NULL),
    CGAM_ROW(cgam_store_verdict, sound, "sound", CGAM_FLAG, NULL),
    CGAM_ROWS_END,
};

typedef struct listing {
    json_t *groups;
    const char *engine, *sha256;
    cgam_store_group last;
} listing;

static cgam_status list_group(void *user, const cgam_store_group *g)
{
    listing *l = user;
    json_array_append_new(l->groups, cgam_fields_json(group_rows, g, 0));
    if ((!l->engine || strcmp(l->engine, g->engine) == 0) &&
        (!l->sha256 || strcmp(l->sha256, g->model) == 0))
        l->last = *g;
    return CGAM_OK;
}

static cgam_status look_into_store(cgam_call *call)
{
    const cgam_args *args = call->args;
    cgam_store *store;
    listing l = {.groups = json_array(),
                 .engine = cgam_args_text(args, "engine"),
                 .sha256 = cgam_args_text(args, "sha256")};
    const char *file = cgam_args_text(args, "export");
    cgam_status status = cgam_store_open(call->env, cgam_args_text(args, "store"), false, &store);
    if (status == CGAM_OK) status = cgam_store_list(store, list_group, &l);
    cgam_json_put(call->doc, "groups", l.groups);
    if (status == CGAM_OK && cgam_args_flag(args, "check")) {
        cgam_store_verdict verdict;
        status = cgam_store_check(store, &verdict);
        if (status == CGAM_OK) {
            cgam_json_put(call->doc, "check", cgam_fields_json(verdict_rows, &verdict, 0));
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

const cgam_verb cgam_verb_lm_store = {
    .name = "lm store",
    .params = params,
    .run = look_into_store,
};
