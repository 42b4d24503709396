/* verb_bank.c: makes, changes and shows packed banks. */
#include "app/input.h"
#include "app/row_sums.h"
#include "app/verbs.h"
#include "base/env.h"
#include "memory/bank.h"
#include "memory/fields.h"
#include "memory/pack.h"

#include <string.h>

#define BANK_CHANGED                                                                               \
    CGAM_PARAM_TEXT("BANK", "FILE.safetensors", "the packed bank; the file is rewritten",          \
                    .required = true, .writes = true)
#define FROM(help_)                                                                                \
    CGAM_PARAM_TEXT("from", "FILE[:NAME]", help_, .required = true, .input = CGAM_INPUT_NUMBERS)

static const cgam_param params_pack[] = {
    FROM("rows: .npy, .npz, .safetensors or .csv, a packed bank, or the index (.json) of "
         "arrays divided among several .safetensors files in its folder; without NAME all "
         "arrays of the index, concatenated"),
    CGAM_PARAM_TEXT("names", "FILE",
                    "names of the rows, one per line; default: those of a packed source",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_TEXT("columns", "FILE",
                    "columns for recall --where: .csv with a heading, or .npz of arrays; a packed "
                    "source has its own",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_CHOICE("dtype", "f64|f32|f16|bf16", NULL,
                      "type of the stored rows; default: that of the source"),
    CGAM_PARAM_NORMALIZE,
    CGAM_PARAM_CHOICE("sketch", "yes|no", "yes", "keep the int8 sketch that recall --fast scans"),
    CGAM_PARAM_REALS(
        "alpha", "X", NULL, CGAM_ABOVE_0, INFINITY,
        "keep the gates factored for this penalty; several separated by commas or given "
        "one by one",
        .many = true),
    CGAM_PARAM_TEXT("out", "FILE.safetensors", "the bank to write", .required = true,
                    .writes = true),
    CGAM_PARAM_END,
};
static const cgam_param params_add[] = {
    BANK_CHANGED,
    FROM("rows to add, of the bank's dimension, as for bank pack"),
    CGAM_PARAM_TEXT("names", "FILE",
                    "names of the new rows, one per line; required if the bank has names",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_TEXT("columns", "FILE",
                    "columns of the new rows, of the bank's names and types; required if the bank "
                    "has columns",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_END,
};
static const cgam_param params_put[] = {
    BANK_CHANGED,
    CGAM_PARAM_TEXT("rows", "N,N-N,..|FILE",
                    "memories to replace: numbers and ranges, or an array of integers",
                    .required = true, .input = CGAM_INPUT_NUMBERS),
    FROM("the new rows, in that order"),
    CGAM_PARAM_END,
};
static const cgam_param params_drop[] = {
    BANK_CHANGED,
    CGAM_PARAM_TEXT(
        "rows", "N,N-N,..|FILE",
        "memories to remove: numbers and ranges, or a .npy of integers or of booleans (N)",
        .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("names", "FILE", "names of the memories instead, one per line",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_END,
};
static const cgam_param params_show[] = {
    CGAM_PARAM_TEXT("BANK", "FILE.safetensors", "the packed bank", .required = true,
                    .input = CGAM_INPUT_BANK),
    CGAM_PARAM_FLAG("check",
                    "read the whole file and verify the digests; exit status 1 if one is wrong"),
    CGAM_PARAM_END,
};

/* ---- Lists of rows ------------------------------------------------------------------------- */
/* Is the text a list, not a file name? */
static bool is_list(const char *text) { return text[strspn(text, "0123456789,-")] == 0; }

/* Reads --rows as a list of numbers, in the order given. The caller frees *out. */
static cgam_status rows_in_order(cgam_call *call, int64_t below, int64_t **out, int64_t *count)
{
    cgam_env *env = call->env;
    const char *text = cgam_args_text(call->args, "rows");
    if (!is_list(text)) {
        cgam_array array = {0};
        cgam_status status = cgam_array_open(env, text, &array);
        *count = array.size;
        cgam_array_close(env, &array);
        return status == CGAM_OK ? cgam_input_indices(env, "memory", text, *count, below, out)
                                 : status;
    }
    int64_t last;
    *count = cgam_row_list(text, below, NULL, &last);
    if (*count < 0)
        return cgam_fail(env, CGAM_E_ARG, "rows: '%.40s' is not a list like 3,7,10-12", text);
    if (last >= below)
        return cgam_fail(env, CGAM_E_ARG, "rows: no memory %lld (valid: 0 to %lld)",
                         (long long)last, (long long)below - 1);
    *out = cgam_alloc(env, (size_t)*count, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "rows");
    (void)cgam_row_list(text, below, *out, &last);
    return CGAM_OK;
}

/* --rows or --names as a mask over the rows of the bank to be replaced. */
static cgam_status rows_as_mask(void *user, const cgam_bank *bank, uint64_t **out)
{
    cgam_call *call = user;
    cgam_env *env = call->env;
    const char *rows = cgam_args_text(call->args, "rows");
    const char *file = cgam_args_text(call->args, "names");
    int64_t n = cgam_bank_describe(bank).whole, count, *number = NULL;
    cgam_row_names *names = NULL;
    if (!rows == !file) return cgam_fail(env, CGAM_E_ARG, "give rows or names");
    cgam_status status = file ? cgam_pack_names(bank, &names) : CGAM_OK;
    if (status == CGAM_OK && (file || !is_list(rows))) {
        bool array = !file;
        if (!file) status = cgam_mask_is_array(env, rows, &array);
        if (status == CGAM_OK && !array)
            status = file ? cgam_mask_load(env, file, n, names, out)
                          : cgam_fail(env, CGAM_E_ARG, "rows: %s is not a .npy array", rows);
        else if (status == CGAM_OK) status = cgam_mask_load(env, rows, n, names, out);
    } else if (status == CGAM_OK) {
        status = rows_in_order(call, n, &number, &count);
        *out =
            status == CGAM_OK ? cgam_zalloc(env, (size_t)cgam_mask_words(n), sizeof **out) : NULL;
        if (status == CGAM_OK && !*out) status = cgam_fail_nomem(env, "rows");
        for (int64_t k = 0; status == CGAM_OK && k < count; k++)
            (*out)[number[k] / 64] |= UINT64_C(1) << number[k] % 64;
    }
    cgam_free(env, number);
    cgam_row_names_free(names);
    return status;
}

/* ---- Documents ----------------------------------------------------------------------------- */
static cgam_status put_bank(cgam_call *call, const cgam_bank *bank)
{
    cgam_pack_info p = cgam_pack_describe(bank);
    cgam_bank_info b = cgam_bank_describe(bank);
    if (!p.packed)
        return cgam_fail(call->env, CGAM_E_ARG, "%s: not a packed bank; see bank pack",
                         cgam_args_text(call->args, "BANK"));
    cgam_fields_put_some(call->doc, "n=whole live=n d dtype", cgam_bank_info_rows, &b);
    cgam_fields_put(call->doc, cgam_pack_info_rows, &p, 0);
    const cgam_columns *columns = cgam_pack_columns(bank);
    if (!columns) return CGAM_OK;
    json_t *list = json_array();
    for (int k = 0; k < cgam_columns_count(columns); k++) {
        const char *type, *name = cgam_columns_at(columns, k, &type);
        json_array_append_new(list, cgam_json_object("name=%s type=%s", name, type));
    }
    cgam_json_put(call->doc, "columns", list);
    return CGAM_OK;
}

/* Puts what the file at the path now holds. */
static cgam_status put_file(cgam_call *call, const char *path)
{
    cgam_bank *bank;
    cgam_status status = cgam_bank_load(call->env, path, NULL, &bank);
    if (status != CGAM_OK) return status;
    cgam_json_put_text(call->doc, "bank", path);
    status = put_bank(call, bank);
    cgam_bank_free(bank);
    return status;
}

static cgam_status pack_bank(cgam_call *call)
{
    const char *out = cgam_args_text(call->args, "out");
    cgam_pack_opts opts = cgam_pack_opts_default();
    if (cgam_args_given(call->args, "dtype"))
        opts.dtype = cgam_word_find(cgam_dtype_words, cgam_args_text(call->args, "dtype"));
    opts.normalize = cgam_args_flag(call->args, "normalize");
    opts.sketch = cgam_args_is(call->args, "sketch", "yes");
    opts.alphas = cgam_args_reals(call->args, "alpha", &opts.alpha);
    opts.names = cgam_args_text(call->args, "names");
    opts.columns = cgam_args_text(call->args, "columns");
    cgam_status status = cgam_pack(call->env, cgam_args_text(call->args, "from"), &opts, out);
    return status == CGAM_OK ? put_file(call, out) : status;
}

static cgam_status add_bank(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "BANK");
    cgam_status status = cgam_pack_add_columns(call->env, path, cgam_args_text(call->args, "from"),
                                               cgam_args_text(call->args, "names"),
                                               cgam_args_text(call->args, "columns"));
    return status == CGAM_OK ? put_file(call, path) : status;
}

static cgam_status replace_rows(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "BANK");
    int64_t *number = NULL, count;
    cgam_bank *bank;
    cgam_status status = cgam_bank_load(call->env, path, NULL, &bank);
    if (status != CGAM_OK) return status;
    status = rows_in_order(call, cgam_bank_describe(bank).whole, &number, &count);
    cgam_bank_free(bank);
    if (status == CGAM_OK)
        status = cgam_pack_put(call->env, path, cgam_args_text(call->args, "from"), count, number);
    cgam_free(call->env, number);
    return status == CGAM_OK ? put_file(call, path) : status;
}

static cgam_status drop_bank(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "BANK");
    cgam_status status = cgam_pack_drop_by(call->env, path, rows_as_mask, call);
    return status == CGAM_OK ? put_file(call, path) : status;
}

static cgam_status show_bank(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "BANK"), *damaged = NULL;
    bool check = cgam_args_flag(call->args, "check"), kept = cgam_shelf_has(call->shelf, path);
    cgam_bank *bank;
    cgam_status status = kept ? cgam_shelf_bank(call->shelf, path, false, false, &bank)
                              : cgam_bank_load(call->env, path, NULL, &bank);
    if (status != CGAM_OK) return status;
    cgam_json_put_text(call->doc, "bank", path);
    status = put_bank(call, bank);
    if (status == CGAM_OK && check) status = cgam_pack_check(bank, &damaged);
    if (status == CGAM_OK && check) {
        cgam_json_add(call->doc, "whole?=%d damaged=%s", !damaged, damaged);
        call->negative = damaged != NULL;
    }
    cgam_input_bank_done(call, bank);
    return status;
}

/* ---- The table ----------------------------------------------------------------------------- */
const cgam_verb cgam_verb_bank_pack = {
    .name = "bank pack",
    .text = "bank",
    .local = true,
    .params = params_pack,
    .run = pack_bank,
};
const cgam_verb cgam_verb_bank_add = {
    .name = "bank add",
    .text = "bank",
    .local = true,
    .params = params_add,
    .run = add_bank,
};
const cgam_verb cgam_verb_bank_put = {
    .name = "bank put",
    .text = "bank",
    .local = true,
    .params = params_put,
    .run = replace_rows,
};
const cgam_verb cgam_verb_bank_drop = {
    .name = "bank drop",
    .text = "bank",
    .local = true,
    .params = params_drop,
    .run = drop_bank,
};
const cgam_verb cgam_verb_bank_show = {
    .name = "bank show",
    .text = "bank",
    .params = params_show,
    .run = show_bank,
};

/* ---- Names ---------------------------------------------------------------------------------- */
static const cgam_param params_names[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("names", "FILE",
                    "the names, one per line; default: those of the bank, or X.names beside X.npy",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_TEXT("prefix", "TEXT", "names with this prefix; case is ignored for A to Z"),
    CGAM_PARAM_INTS("rows", "I,I,..", NULL, 0, 9e15, "the names of these memories instead"),
    CGAM_PARAM_INT("top", "K", "20", 1, 10000, "how many to list"),
    CGAM_PARAM_END,
};

static cgam_status search_names(cgam_call *call, const cgam_row_names *names)
{
    const int64_t *rows;
    const char *prefix = cgam_args_text(call->args, "prefix");
    int64_t top = cgam_args_int(call->args, "top"), all = cgam_row_names_count(names);
    int64_t count = cgam_args_ints(call->args, "rows", &rows);
    if (count && prefix) return cgam_fail(call->env, CGAM_E_ARG, "give prefix or rows, not both");
    for (int64_t i = 0; i < count; i++)
        if (rows[i] >= all)
            return cgam_fail(call->env, CGAM_E_ARG, "rows: no memory %lld (valid: 0 to %lld)",
                             (long long)rows[i], (long long)all - 1);
    int64_t *found = cgam_alloc(call->env, (size_t)top, sizeof *found);
    if (!found) return cgam_fail_nomem(call->env, "names");
    if (!count) {
        count = cgam_row_names_search(names, prefix ? prefix : "", top, found);
        rows = found;
    }
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(
            list, cgam_json_object("row=%jd name=%s", rows[i], cgam_row_names_at(names, rows[i])));
    }
    cgam_json_add(call->doc, "n=%jd names=%p", all, list);
    cgam_free(call->env, found);
    return CGAM_OK;
}

static cgam_status list_names(cgam_call *call)
{
    cgam_bank *bank;
    const cgam_row_names *names;
    cgam_status status = cgam_input_bank(call, &bank);
    if (status != CGAM_OK) return status;
    status = cgam_input_names(call, bank, &names);
    if (status == CGAM_OK) status = search_names(call, names);
    cgam_input_bank_done(call, bank);
    return status;
}

const cgam_verb cgam_verb_bank_names = {
    .name = "bank names",
    .params = params_names,
    .run = list_names,
};
