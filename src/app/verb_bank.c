/* verb_bank.c: packed banks - made, changed, shown. */
#include "app/input.h"
#include "app/verbs.h"
#include "base/env.h"
#include "memory/pack.h"

#include <string.h>

#define BANK_CHANGED                                                                               \
    CGAM_PARAM_TEXT("BANK", "FILE.safetensors", "the packed bank, which is replaced as a whole",   \
                    .required = true, .writes = true)
#define FROM(help_)                                                                                \
    CGAM_PARAM_TEXT("from", "FILE[:NAME]", help_, .required = true, .input = CGAM_INPUT_NUMBERS)

static const cgam_param params_pack[] = {
    FROM(
        "rows: .npy, .npz, .safetensors or .csv, a packed bank, or the index (.json) of arrays that "
        "were divided among several .safetensors files beside it; without NAME all of its arrays, "
        "one below the other"),
    CGAM_PARAM_TEXT("names", "FILE", "names of the rows, one a line; a packed source has its own",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_CHOICE("dtype", "f64|f32|f16|bf16", NULL,
                      "how rows are stored; without it as in the source"),
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
    CGAM_PARAM_TEXT("names", "FILE", "their names, one a line; needed where the bank has names",
                    .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_END,
};
static const cgam_param params_put[] = {
    BANK_CHANGED,
    CGAM_PARAM_TEXT("rows", "N,N-N,..|FILE",
                    "which memories are replaced: numbers and ranges, or an array of integers",
                    .required = true, .input = CGAM_INPUT_NUMBERS),
    FROM("what comes in their places, in that order"),
    CGAM_PARAM_END,
};
static const cgam_param params_drop[] = {
    BANK_CHANGED,
    CGAM_PARAM_TEXT(
        "rows", "N,N-N,..|FILE",
        "which memories go: numbers and ranges, or a .npy of integers or of booleans (N)",
        .input = CGAM_INPUT_NUMBERS),
    CGAM_PARAM_TEXT("names", "FILE", "their names instead, one a line", .input = CGAM_INPUT_TEXT),
    CGAM_PARAM_END,
};
static const cgam_param params_show[] = {
    CGAM_PARAM_TEXT("BANK", "FILE.safetensors", "the packed bank", .required = true,
                    .input = CGAM_INPUT_BANK),
    CGAM_PARAM_FLAG("check",
                    "read all of it and compare the digests; exit status 1 where one is wrong"),
    CGAM_PARAM_END,
};

/* ---- Lists of rows ------------------------------------------------------------------------- */
/* Is it a list and not a file? */
static bool is_list(const char *text) { return text[strspn(text, "0123456789,-")] == 0; }

/* The numbers of "3,7,10-12" into out, which may be NULL; how many they are, or -1: it is no such list. *last is the
 * largest of them; a range that goes on to `below` or beyond is not counted out. */
static int64_t read_list(const char *text, int64_t below, int64_t *out, int64_t *last)
{
    int64_t count = 0;
    *last = -1;
    for (;; text++) {
        char *end;
        long long from = strtoll(text, &end, 10), to = from;
        if (end == text || *text == '-') return -1;
        if (*end == '-') {
            text = end + 1;
            to = strtoll(text, &end, 10);
            if (end == text || *text == '-') return -1;
        }
        if (to < from) return -1;
        if (to > *last) *last = to;
        for (long long i = from; out && i <= to; i++) out[count + i - from] = i;
        if (to < below) count += to - from + 1;
        text = end;
        if (!*text) return count;
        if (*text != ',') return -1;
    }
}

/* --rows as a list of numbers, in their order. Gives *out. */
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
    *count = read_list(text, below, NULL, &last);
    if (*count < 0)
        return cgam_fail(env, CGAM_E_ARG, "rows: '%.40s' is not a list like 3,7,10-12", text);
    if (last >= below)
        return cgam_fail(env, CGAM_E_ARG, "rows: memory %lld, memories are 0 to %lld",
                         (long long)last, (long long)below - 1);
    *out = cgam_alloc(env, (size_t)*count, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "rows");
    (void)read_list(text, below, *out, &last);
    return CGAM_OK;
}

/* --rows or --names as a mask of the bank that is about to be replaced. */
static cgam_status rows_as_mask(void *user, const cgam_bank *bank, uint64_t **out)
{
    cgam_call *call = user;
    cgam_env *env = call->env;
    const char *rows = cgam_args_text(call->args, "rows");
    const char *file = cgam_args_text(call->args, "names");
    int64_t n = cgam_bank_describe(bank).whole, count, *number = NULL;
    cgam_row_names *names = NULL;
    if (!rows == !file) return cgam_fail(env, CGAM_E_ARG, "either rows or names must be given");
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
    if (!p.packed) return cgam_fail(call->env, CGAM_E_ARG, "not a packed bank; see bank pack");
    cgam_json_put_int(call->doc, "n", b.whole);
    cgam_json_put_int(call->doc, "live", b.n);
    cgam_json_put_int(call->doc, "d", b.d);
    cgam_json_put_text(call->doc, "dtype", cgam_dtype_name(b.dtype));
    cgam_json_put_bool(call->doc, "normalized", p.normalize);
    cgam_json_put_bool(call->doc, "names", p.names);
    cgam_json_put_bool(call->doc, "sketch", p.sketch);
    cgam_json_put(call->doc, "alphas", cgam_json_reals(p.alpha, p.alphas, 1));
    cgam_json_put_int(call->doc, "bytes", (int64_t)p.bytes);
    return CGAM_OK;
}

/* What stands under the path now. */
static cgam_status tell(cgam_call *call, const char *path)
{
    cgam_bank *bank;
    cgam_status status = cgam_bank_load(call->env, path, NULL, &bank);
    if (status != CGAM_OK) return status;
    cgam_json_put_text(call->doc, "bank", path);
    status = put_bank(call, bank);
    cgam_bank_free(bank);
    return status;
}

static cgam_status run_pack(cgam_call *call)
{
    const char *out = cgam_args_text(call->args, "out");
    cgam_pack_opts opts = cgam_pack_opts_default();
    cgam_dtype dtype;
    if (cgam_args_given(call->args, "dtype") &&
        cgam_dtype_find(cgam_args_text(call->args, "dtype"), &dtype))
        opts.dtype = (int)dtype;
    opts.normalize = cgam_args_flag(call->args, "normalize");
    opts.sketch = cgam_args_is(call->args, "sketch", "yes");
    opts.alphas = cgam_args_reals(call->args, "alpha", &opts.alpha);
    opts.names = cgam_args_text(call->args, "names");
    cgam_status status = cgam_pack(call->env, cgam_args_text(call->args, "from"), &opts, out);
    return status == CGAM_OK ? tell(call, out) : status;
}

static cgam_status run_add(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "BANK");
    cgam_status status = cgam_pack_add(call->env, path, cgam_args_text(call->args, "from"),
                                       cgam_args_text(call->args, "names"));
    return status == CGAM_OK ? tell(call, path) : status;
}

static cgam_status run_put(cgam_call *call)
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
    return status == CGAM_OK ? tell(call, path) : status;
}

static cgam_status run_drop(cgam_call *call)
{
    const char *path = cgam_args_text(call->args, "BANK");
    cgam_status status = cgam_pack_drop_by(call->env, path, rows_as_mask, call);
    return status == CGAM_OK ? tell(call, path) : status;
}

static cgam_status run_show(cgam_call *call)
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
        cgam_json_put_bool(call->doc, "whole", !damaged);
        cgam_json_put_text(call->doc, "damaged", damaged);
        call->negative = damaged != NULL;
    }
    cgam_input_bank_done(call, bank);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *whole = json_object_get(doc, "whole"), *alphas = json_object_get(doc, "alphas");
    fprintf(to, "%s: %lld memories in %lld dimensions as %s%s, %lld bytes\n",
            cgam_json_get_text(doc, "bank"), (long long)cgam_json_get_int(doc, "live"),
            (long long)cgam_json_get_int(doc, "d"), cgam_json_get_text(doc, "dtype"),
            json_is_true(json_object_get(doc, "normalized")) ? ", normalised" : "",
            (long long)cgam_json_get_int(doc, "bytes"));
    if (cgam_json_get_int(doc, "n") != cgam_json_get_int(doc, "live"))
        fprintf(to, "  %-8s 0 to %lld; those of dropped memories are not given again\n", "numbers",
                (long long)cgam_json_get_int(doc, "n") - 1);
    fprintf(to, "  %-8s %s\n  %-8s %s\n  %-8s", "names",
            json_is_true(json_object_get(doc, "names")) ? "yes" : "no", "sketch",
            json_is_true(json_object_get(doc, "sketch")) ? "yes" : "no", "alphas");
    for (size_t i = 0; i < json_array_size(alphas); i++)
        fprintf(to, " %g", json_number_value(json_array_get(alphas, i)));
    fprintf(to, "%s\n", json_array_size(alphas) ? "" : " none");
    if (whole)
        fprintf(to, "  %-8s %s%s\n", "digests", json_is_true(whole) ? "agree" : "wrong: ",
                json_is_true(whole) ? "" : cgam_json_get_text(doc, "damaged"));
}

/* ---- The table ----------------------------------------------------------------------------- */
#define CHANGES                                                                                        \
    "\n\nThe bank is written anew beside the old one, synced and renamed: whoever opens it finds the " \
    "old one or the new one, whole, a reader that has it open keeps what it has, and a program that "  \
    "is killed leaves the old one. Of two that change it at once the second waits. Sketch and "        \
    "factored gates are made anew where the bank has them."

const cgam_verb cgam_verb_bank_pack = {
    .name = "bank pack",
    .local = true,
    .summary = "pack a bank into one file that opens in no time",
    .about =
        "Writes rows, their norms, names, the int8 sketch that recall --fast scans, and the gates "
        "factored for given penalties into one .safetensors file, with a digest of each part. recall "
        "and every other verb with --bank open it by mapping, need no name of an array in it, and use what "
        "it holds: answers have the bits that they have without it.\n\n"
        "With --normalize memories are the rows divided by their norms; rows are stored as they are. A "
        "packed source is compacted: its memories get numbers from 0 on, in their order.",
    .example = "cgam bank pack --from Z.npy --names Z.names --alpha 0.1 --out Z.safetensors",
    .params = params_pack,
    .run = run_pack,
    .print = print,
};
const cgam_verb cgam_verb_bank_add = {
    .name = "bank add",
    .local = true,
    .summary = "add rows to a packed bank",
    .about =
        "Adds rows after the last; their numbers go on from the largest that was ever given." CHANGES,
    .example = "cgam bank add Z.safetensors --from more.npy --names more.names",
    .params = params_add,
    .run = run_add,
    .print = print,
};
const cgam_verb cgam_verb_bank_put = {
    .name = "bank put",
    .local = true,
    .summary = "replace rows of a packed bank",
    .about = "Replaces memories, which keep their numbers and names." CHANGES,
    .example = "cgam bank put Z.safetensors --rows 3,7 --from two.npy",
    .params = params_put,
    .run = run_put,
    .print = print,
};
const cgam_verb cgam_verb_bank_drop = {
    .name = "bank drop",
    .local = true,
    .summary = "take memories out of a packed bank",
    .about =
        "Takes memories out. The others keep their numbers, and no new one gets that of a dropped one, "
        "until bank pack --from the bank numbers them anew." CHANGES,
    .example = "cgam bank drop Z.safetensors --rows 3,10-19",
    .params = params_drop,
    .run = run_drop,
    .print = print,
};
const cgam_verb cgam_verb_bank_show = {
    .name = "bank show",
    .summary = "tell what a packed bank holds, and whether it is undamaged",
    .about =
        "Tells memories, type, names, sketch and penalties with factored gates. n counts the numbers that were "
        "given to memories, live those that are in the bank.\n\n"
        "With --check every byte is read and compared with its digest, and a wrong one is exit status "
        "1. Opening a bank does not do that; a damaged one then never leads outside of memory, and a "
        "score that is not finite is an error.",
    .example = "cgam bank show Z.safetensors --check",
    .params = params_show,
    .run = run_show,
    .print = print,
};
