/* verb_bank_names.c: which memories are called so. */
#include "app/input.h"
#include "app/verbs.h"
#include "base/env.h"

static const cgam_param params[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("names", "FILE",
                    "the names, one a line; without it those of the bank, X.names beside X.npy",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_TEXT("prefix", "TEXT", "names that begin so, letters A to Z in either case"),
    CGAM_PARAM_INTS("rows", "I,I,..", NULL, 0, 9e15, "the names of these memories instead"),
    CGAM_PARAM_INT("top", "K", "20", 1, 10000, "how many to list"),
    CGAM_PARAM_END,
};

static cgam_status search(cgam_call *call, const cgam_row_names *names)
{
    const int64_t *rows;
    const char *prefix = cgam_args_text(call->args, "prefix");
    int64_t top = cgam_args_int(call->args, "top"), all = cgam_row_names_count(names);
    int64_t count = cgam_args_ints(call->args, "rows", &rows);
    if (count && prefix)
        return cgam_fail(call->env, CGAM_E_ARG, "prefix and rows exclude each other");
    for (int64_t i = 0; i < count; i++)
        if (rows[i] >= all)
            return cgam_fail(call->env, CGAM_E_ARG, "rows: memory %lld, memories are 0 to %lld",
                             (long long)rows[i], (long long)all - 1);
    int64_t *found = cgam_alloc(call->env, (size_t)top, sizeof *found);
    if (!found) return cgam_fail_nomem(call->env, "names");
    if (!count) {
        count = cgam_row_names_search(names, prefix ? prefix : "", top, found);
        rows = found;
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_t *one = json_object();
        cgam_json_put_int(one, "row", rows[i]);
        cgam_json_put_text(one, "name", cgam_row_names_at(names, rows[i]));
        json_array_append_new(list, one);
    }
    cgam_json_put_int(call->doc, "n", all);
    cgam_json_put(call->doc, "names", list);
    cgam_free(call->env, found);
    return CGAM_OK;
}

static cgam_status run(cgam_call *call)
{
    cgam_bank *bank;
    const cgam_row_names *names;
    cgam_status status = cgam_input_bank(call, &bank);
    if (status != CGAM_OK) return status;
    status = cgam_input_names(call, bank, &names);
    if (status == CGAM_OK) status = search(call, names);
    cgam_input_bank_done(call, bank);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(doc, "names"), i, one)
        fprintf(to, "%8lld  %s\n", (long long)cgam_json_get_int(one, "row"),
                cgam_json_get_text(one, "name"));
}

const cgam_verb cgam_verb_bank_names = {
    .name = "bank names",
    .summary = "list memories of a bank by what they are called",
    .about =
        "Names are those of --names, or of the file X.names beside X.npy; the bank demo: has some of its own. With "
        "--prefix, the name that is the text comes first, then names that begin with it, in the order of the "
        "bank; a name that several memories have is listed once, by the first of them.\n\n"
        "What is listed can be given to recall, map and landscape: --query rows:NAME, or a sum of such.",
    .example = "cgam bank names --bank glove.npy --prefix king",
    .params = params,
    .run = run,
    .print = print,
};
