/* input.c: banks, matrices and indices from the command line's words. */
#include "app/input.h"
#include "app/row_sums.h"
#include "base/env.h"
#include "io/file.h"
#include "memory/bank.h"
#include "num/cpu/widen.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Returns false if the verb has no such flag. */
static bool flag(const cgam_call *call, const char *name)
{
    return cgam_args_known(call->args, name) && cgam_args_flag(call->args, name);
}

cgam_status cgam_input_bank(cgam_call *call, cgam_bank **out)
{
    const char *path = cgam_args_text(call->args, "bank");
    size_t prefix = strlen(CGAM_DEMO_PREFIX);
    *out = NULL;
    if (strncmp(path, CGAM_DEMO_PREFIX, prefix) == 0 &&
        !cgam_shelf_has(call->shelf, path)) { /* banks of the shelf are normalised already */
        int64_t seed = 1;
        if (path[prefix] && (!cgam_text_is_int(path + prefix, &seed) || seed < 0))
            return cgam_fail(call->env, CGAM_E_ARG, "bank %s: expected a seed after the colon",
                             path);
        return cgam_demo_bank(call->env, (uint64_t)seed, out);
    }
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = flag(call, "normalize");
    opts.ranks = call->verb->ranks == CGAM_RANKS_ALL ? call->ranks : NULL;
    cgam_status status =
        cgam_shelf_has(call->shelf, path)
            ? cgam_shelf_bank(call->shelf, path, opts.normalize, flag(call, "fast"), out)
            : cgam_bank_load(call->env, path, &opts, out);
    if (status != CGAM_OK || !flag(call, "check")) return status;
    const char *damaged;
    status = cgam_pack_check(*out, &damaged);
    if (status != CGAM_OK || !damaged) return status;
    return cgam_fail(call->env, CGAM_E_FORMAT, "%s: damaged: the digest of '%.60s' is wrong", path,
                     damaged);
}

void cgam_input_bank_done(cgam_call *call, cgam_bank *bank)
{
    if (!cgam_shelf_owns(call->shelf, bank)) cgam_bank_free(bank);
}

/* ---- names --------------------------------------------------------------------------------------- */

cgam_status cgam_names_beside(cgam_env *env, const char *bank, char *path, size_t size)
{
    const char *slash = strrchr(bank, '/'), *ending = strrchr(slash ? slash : bank, '.');
    int length = (int)(ending ? (size_t)(ending - bank) : strlen(bank));
    if (snprintf(path, size, "%.*s" CGAM_NAMES_BESIDE, length, bank) < (int)size) return CGAM_OK;
    return cgam_fail(env, CGAM_E_ARG, "names: the bank's path is too long");
}

/* The bank's own names, in its file or beside it. If the bank is on a shelf, the shelf supplies them: a client of the
 * server must not cause a search for files. */
static cgam_status own_names(cgam_call *call, const cgam_bank *packed)
{
    const char *bank = cgam_args_text(call->args, "bank");
    char path[4096];
    if (!bank)
        return cgam_fail(call->env, CGAM_E_ARG, "fitted memories have no names; give names a file");
    if (strncmp(bank, CGAM_DEMO_PREFIX, strlen(CGAM_DEMO_PREFIX)) == 0)
        return cgam_demo_names(call->env, &call->names);
    cgam_status status = cgam_pack_names(packed, &call->names);
    if (status != CGAM_OK || call->names) return status;
    status = cgam_names_beside(call->env, bank, path, sizeof path);
    if (status == CGAM_OK && (call->shelf || !cgam_file_exists(path)))
        return cgam_fail(call->env, CGAM_E_ARG, "the bank has no names%s%s",
                         call->shelf ? "" : "; give names a file, or make ",
                         call->shelf ? "" : path);
    return status == CGAM_OK ? cgam_row_names_load(call->env, path, &call->names) : status;
}

cgam_status cgam_input_names(cgam_call *call, const cgam_bank *bank, const cgam_row_names **out)
{
    const char *file =
        cgam_args_known(call->args, "names") ? cgam_args_text(call->args, "names") : NULL;
    bool own = !file || strcmp(file, CGAM_NAMES_BESIDE) == 0;
    int64_t n = cgam_bank_describe(bank).whole;
    cgam_status status = CGAM_OK;
    const char *bank_name = cgam_args_text(call->args, "bank");
    *out = own && bank_name ? cgam_shelf_names(call->shelf, bank_name) : NULL;
    if (*out) return CGAM_OK;
    if (!call->names)
        status = own ? own_names(call, bank) : cgam_row_names_load(call->env, file, &call->names);
    if (status == CGAM_OK && cgam_row_names_count(call->names) != n)
        status = cgam_fail(call->env, CGAM_E_SHAPE, "%s: %lld names for %lld memories",
                           own ? "the bank's names" : file,
                           (long long)cgam_row_names_count(call->names), (long long)n);
    *out = status == CGAM_OK ? call->names : NULL;
    return status;
}

/* Sets the bits of "3,7,10-12" or "river,mill". `file`: the text could have been the name of a file. */
static cgam_status mask_by_list(cgam_call *call, const cgam_bank *bank, const char *option,
                                const char *text, bool file, const cgam_row_names **names,
                                uint64_t *mask)
{
    cgam_env *env = call->env;
    int64_t n = cgam_bank_describe(bank).whole, last, count = cgam_row_list(text, n, NULL, &last);
    if (count >= 0 && last >= n)
        return cgam_fail(env, CGAM_E_ARG, "%s: no memory %lld (valid: 0 to %lld)", option,
                         (long long)last, (long long)n - 1);
    if (count >= 0) {
        int64_t *row = cgam_alloc(env, (size_t)count, sizeof *row);
        if (!row) return cgam_fail_nomem(env, option);
        (void)cgam_row_list(text, n, row, &last);
        for (int64_t k = 0; k < count; k++) mask[row[k] / 64] |= UINT64_C(1) << row[k] % 64;
        cgam_free(env, row);
        return CGAM_OK;
    }
    cgam_status status = *names ? CGAM_OK : cgam_input_names(call, bank, names);
    if (status != CGAM_OK)
        return status == CGAM_E_NOMEM || !file
                   ? status
                   : cgam_fail(env, CGAM_E_NOT_FOUND, "%s: no file '%.100s'", option, text);
    char *name = cgam_strdup(env, text);
    if (!name) return cgam_fail_nomem(env, option);
    for (char *at = name, *end = name; end && status == CGAM_OK; at = end + 1) {
        end = strchr(at, ',');
        if (end) *end = 0;
        int64_t row = cgam_row_names_find(*names, at);
        if (row < 0)
            status = cgam_fail(env, CGAM_E_ARG, "%s: %sno memory named '%.100s'", option,
                               file ? "no such file, and " : "", at);
        for (; row >= 0; row = cgam_row_names_next(*names, row))
            mask[row / 64] |= UINT64_C(1) << row % 64;
        if (!end) break;
    }
    cgam_free(env, name);
    return status;
}

/* Reads --only or --except: a file as in cgam_mask_load, or a list of numbers or of names. */
static cgam_status mask_of(cgam_call *call, const cgam_bank *bank, const char *option,
                           const cgam_row_names **names, uint64_t **out)
{
    cgam_env *env = call->env;
    const char *text = cgam_args_text(call->args, option);
    size_t prefix = strlen(CGAM_ROWS_PREFIX);
    bool rows = strncmp(text, CGAM_ROWS_PREFIX, prefix) == 0, array = true;
    int64_t n = cgam_bank_describe(bank).whole;
    if (!rows && cgam_file_exists(text)) {
        cgam_status status = *names ? CGAM_OK : cgam_mask_is_array(env, text, &array);
        if (status == CGAM_OK && !array) status = cgam_input_names(call, bank, names);
        return status == CGAM_OK ? cgam_mask_load(env, text, n, *names, out) : status;
    }
    *out = cgam_zalloc(env, (size_t)cgam_mask_words(n), sizeof **out);
    if (!*out) return cgam_fail_nomem(env, option);
    return mask_by_list(call, bank, option, rows ? text + prefix : text, !rows, names, *out);
}

/* The memories for which --where is true, on the columns of --columns, else of the bank. */
static cgam_status mask_where(cgam_call *call, const cgam_bank *bank, uint64_t **out)
{
    const char *file = cgam_args_text(call->args, "columns");
    const char *where = cgam_args_text(call->args, "where");
    const cgam_columns *columns = cgam_pack_columns(bank);
    cgam_columns *own = NULL;
    cgam_status status = CGAM_OK;
    if (file) status = cgam_columns_load(call->env, file, cgam_bank_describe(bank).whole, &own);
    else if (!columns)
        return cgam_fail(call->env, CGAM_E_ARG,
                         "where: the bank has no columns; give columns a file");
    if (status == CGAM_OK) status = cgam_columns_where(own ? own : columns, where, out);
    cgam_columns_free(own);
    return status;
}

cgam_status cgam_input_some(cgam_call *call, const cgam_bank *bank, const cgam_row_names **names,
                            cgam_bank **some)
{
    cgam_env *env = call->env;
    int64_t words = cgam_mask_words(cgam_bank_describe(bank).whole);
    uint64_t *mask = NULL, *without = NULL, *where = NULL;
    cgam_status status = CGAM_OK;
    *names = NULL;
    if (cgam_args_given(call->args, "names")) status = cgam_input_names(call, bank, names);
    if (status == CGAM_OK && cgam_args_text(call->args, "only"))
        status = mask_of(call, bank, "only", names, &mask);
    if (status == CGAM_OK && cgam_args_text(call->args, "except"))
        status = mask_of(call, bank, "except", names, &without);
    if (status == CGAM_OK && without && !mask) {
        mask = cgam_alloc(env, (size_t)words, sizeof *mask);
        if (mask) memset(mask, 0xff, (size_t)words * sizeof *mask);
        else status = cgam_fail_nomem(env, "a mask");
    }
    for (int64_t k = 0; k < words && without && status == CGAM_OK; k++) mask[k] &= ~without[k];
    if (status == CGAM_OK && cgam_args_text(call->args, "where"))
        status = mask_where(call, bank, &where);
    for (int64_t k = 0; k < words && where && mask; k++) mask[k] &= where[k];
    if (where && !mask) {
        mask = where;
        where = NULL;
    }
    if (status == CGAM_OK && mask) status = cgam_bank_only(bank, mask, some);
    cgam_mask_free(env, mask);
    cgam_mask_free(env, without);
    cgam_mask_free(env, where);
    return status;
}

/* ---- vectors ------------------------------------------------------------------------------------- */

static cgam_status names_of_call(void *user, const cgam_bank *bank, const cgam_row_names **out)
{
    return cgam_input_names(user, bank, out);
}

/* Reports which option names a missing file, and suggests "rows:NAME" if a memory has that name. */
static cgam_status fail_no_file(cgam_call *call, const cgam_bank *bank, const char *option,
                                const char *path)
{
    const cgam_row_names *names = NULL;
    bool named =
        cgam_input_names(call, bank, &names) == CGAM_OK && cgam_row_names_find(names, path) >= 0;
    if (!named)
        return cgam_fail(call->env, CGAM_E_NOT_FOUND, "%s: no file '%.100s'", option,
                         cgam_file_name(path));
    return cgam_fail(call->env, CGAM_E_NOT_FOUND,
                     "%s: no file '%.100s' (for the memory of that name use %s %s%.100s)", option,
                     path, option, CGAM_ROWS_PREFIX, path);
}

cgam_status cgam_input_vectors(cgam_call *call, const cgam_bank *bank, const char *option,
                               const char *text, cgam_matrix *out)
{
    size_t prefix = strlen(CGAM_ROWS_PREFIX);
    if (strncmp(text, CGAM_ROWS_PREFIX, prefix) != 0) {
        cgam_status opened = cgam_input_matrix(call->env, text, out);
        if (opened != CGAM_E_NOT_FOUND || strchr(text, ':') || cgam_file_exists(text))
            return opened;
        return fail_no_file(call, bank, option, text);
    }
    *out = (cgam_matrix){.columns = cgam_bank_describe(bank).d};
    cgam_status status = cgam_input_check_answer(call, cgam_row_sums_count(text), 0);
    if (status != CGAM_OK) return status;
    status =
        cgam_row_sums(bank, option, text + prefix, names_of_call, call, &out->data, &out->rows);
    out->vector = out->rows == 1;
    return status;
}

cgam_status cgam_input_check_answer(cgam_call *call, int64_t queries, int64_t each)
{
    if (call->queries_max > 0 && queries > call->queries_max)
        return cgam_fail(call->env, CGAM_E_ARG,
                         "too many vectors: %lld (limit for one request: %lld, set by max-queries)",
                         (long long)queries, (long long)call->queries_max);
    if (call->rows_max > 0 && each > call->rows_max / (queries > 0 ? queries : 1))
        return cgam_fail(
            call->env, CGAM_E_ARG,
            "too many rows: %lld for each of %lld queries (limit for one answer: %lld, set by max-rows)",
            (long long)each, (long long)queries, (long long)call->rows_max);
    return CGAM_OK;
}

cgam_status cgam_input_expect(const cgam_call *call, const cgam_bank *bank, double squares,
                              double bytes)
{
    cgam_bank_info info = cgam_bank_describe(bank);
    double side = (double)(info.n < info.d ? info.n : info.d);
    return cgam_env_expect(call->env, squares * side * side * sizeof(double) + bytes,
                           "the work on this bank");
}

cgam_status cgam_input_matrix(cgam_env *env, const char *path, cgam_matrix *out)
{
    *out = (cgam_matrix){0};
    cgam_array array = {0};
    cgam_status status = cgam_array_open(env, path, &array);
    if (status != CGAM_OK) return status;
    if (array.ndim != 1 && array.ndim != 2)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: expected 1 or 2 dimensions, the array has %d",
                           path, array.ndim);
    else if (array.size == 0) status = cgam_fail(env, CGAM_E_SHAPE, "%s: the array is empty", path);
    if (status == CGAM_OK) {
        out->vector = array.ndim == 1;
        out->rows = out->vector ? 1 : array.shape[0];
        out->columns = array.shape[array.ndim - 1];
        out->data = cgam_alloc(env, (size_t)array.size, sizeof *out->data);
        status = out->data ? cgam_array_read_f64(env, &array, path, out->data)
                           : cgam_fail_nomem(env, path);
    }
    if (status != CGAM_OK) {
        cgam_free(env, out->data);
        *out = (cgam_matrix){0};
    }
    cgam_array_close(env, &array);
    return status;
}

cgam_status cgam_input_option(cgam_call *call, const cgam_bank *bank, const char *option, bool one,
                              cgam_matrix *out)
{
    const char *text = cgam_args_text(call->args, option);
    int64_t d = cgam_bank_describe(bank).d;
    if (!text) return CGAM_OK;
    cgam_status status = cgam_input_vectors(call, bank, option, text, out);
    if (status == CGAM_OK && out->columns != d)
        status = cgam_fail(call->env, CGAM_E_SHAPE, "%s: d = %lld, the bank has d = %lld", option,
                           (long long)out->columns, (long long)d);
    if (status == CGAM_OK && one && out->rows != 1)
        status = cgam_fail(call->env, CGAM_E_SHAPE, "%s: expected one row, got %lld", option,
                           (long long)out->rows);
    return status;
}

cgam_status cgam_input_indices(cgam_env *env, const char *what, const char *text, int64_t count,
                               int64_t below, int64_t **out)
{
    int64_t one = 0;
    bool number = cgam_text_is_int(text, &one);
    cgam_array array = {0};
    cgam_status status = number ? CGAM_OK : cgam_array_open(env, text, &array);
    if (status != CGAM_OK) return status;
    if (!number && (array.ndim > 1 || array.size != count))
        status = cgam_fail(env, CGAM_E_SHAPE,
                           "%s: expected %lld row numbers in 1 dimension, got %lld in %d", text,
                           (long long)count, (long long)array.size, array.ndim);
    *out = status == CGAM_OK ? cgam_alloc(env, (size_t)count, sizeof **out) : NULL;
    if (status == CGAM_OK && !*out) status = cgam_fail_nomem(env, what);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
        double v = (double)one; /* exact below 2^53, and no bank has more memories */
        const char *at = (const char *)array.data + (size_t)i * cgam_dtype_size(array.dtype);
        if (!number) cgam_widen(array.dtype, at, 1, &v);
        if (!(v == floor(v)))
            status = cgam_fail(env, CGAM_E_VALUE, "%s: %s %g of query %lld is not an integer", text,
                               what, v, (long long)i);
        else if (v < 0 || v >= (double)below)
            status = cgam_fail(env, CGAM_E_ARG,
                               "%s %.15g of query %lld: no such memory (valid: "
                               "0 to %lld)",
                               what, v, (long long)i, (long long)below - 1);
        else (*out)[i] = (int64_t)v;
    }
    if (status != CGAM_OK) {
        cgam_free(env, *out);
        *out = NULL;
    }
    cgam_array_close(env, &array);
    return status;
}

/* ---- metrics ------------------------------------------------------------------------------------- */

/* Fails for options that the metric does not serve: gates at alpha > 0 would be those of the mapped rows. */
static cgam_status check_metric(const cgam_call *call, const char *metric,
                                const cgam_recall_opts *o)
{
    static const char *const without[] = {"save-readout", "projection", "marks", "fitted"};
    if (o->alpha > 0)
        return cgam_fail(call->env, CGAM_E_UNSUPPORTED, "metric %s requires alpha 0", metric);
    if (o->mode == CGAM_FLOW)
        return cgam_fail(call->env, CGAM_E_UNSUPPORTED, "metric %s is not available in mode flow",
                         metric);
    for (size_t k = 0; k < sizeof without / sizeof *without; k++)
        if (cgam_args_given(call->args, without[k]))
            return cgam_fail(call->env, CGAM_E_UNSUPPORTED, "%s requires metric dot", without[k]);
    return CGAM_OK;
}

cgam_status cgam_input_metric(cgam_call *call, const cgam_bank *bank, cgam_recall_opts *opts,
                              cgam_matrix *q, cgam_matrix *W, cgam_bank **out)
{
    cgam_env *env = call->env;
    const char *word = cgam_args_text(call->args, "metric");
    const int metric = cgam_word_find(cgam_metric_words, word);
    const int64_t n = cgam_bank_describe(bank).n, d = cgam_bank_describe(bank).d;
    if (metric == CGAM_DOT) return CGAM_OK;
    cgam_status status = check_metric(call, word, opts);
    if (status == CGAM_OK && W && !W->data) {
        *W = (cgam_matrix){cgam_alloc(env, (size_t)(n * d), sizeof(double)), n, d, false};
        if (!W->data) status = cgam_fail_nomem(env, "gate weights");
        for (int64_t i = 0; i < n && status == CGAM_OK; i++)
            status = cgam_bank_row(bank, i, W->data + i * d);
        opts->W = W->data;
        opts->d_c = d;
    }
    if (status == CGAM_OK) status = cgam_bank_metric(bank, (cgam_metric)metric, out);
    if (status != CGAM_OK) return status;
    const int64_t columns = cgam_bank_describe(*out).d;
    double *mapped = cgam_alloc(env, (size_t)(q->rows * columns), sizeof *mapped);
    status = mapped ? cgam_metric_queries(*out, q->rows, q->data, mapped)
                    : cgam_fail_nomem(env, "queries");
    cgam_free(env, status == CGAM_OK ? q->data : mapped);
    if (status == CGAM_OK) {
        q->data = mapped;
        q->columns = columns;
    }
    return status;
}
