/* bank.c: rows become memories. One pass checks every number and computes every norm. A normalised bank keeps the
 * stored rows and a factor per row, so that a mapped file stays mapped. */
#include "memory/bank.h"
#include "memory/pack.h"

#include "base/blas.h"
#include "num/cpu/widen.h"

#include <float.h>
#include <math.h>
#include <string.h>

cgam_bank_opts cgam_bank_opts_default(void) { return (cgam_bank_opts){0}; }

void cgam_bank_free(cgam_bank *bank)
{
    if (!bank) return;
    cgam_env *env = bank->env;
    cgam_array_close(env, &bank->array);
    if (!bank->packed || bank->sketch != &bank->packed->sketch) cgam_sketch_free(env, bank->sketch);
    cgam_packed_free(bank->packed);
    cgam_free(env, bank->owned);
    cgam_vec_free(env, &bank->Z, bank->norm2);
    cgam_vec_free(env, &bank->Z, bank->scale);
    cgam_rows_close(env, &bank->Z);
    cgam_free(env, bank->number);
    cgam_free(env, bank);
}

typedef struct survey {
    cgam_bank *bank;
    const char *name;
} survey;

static cgam_status survey_rows(void *arg, int64_t from, int64_t to)
{
    survey *job = arg;
    cgam_bank *bank = job->bank;
    const cgam_rows *Z = &bank->Z;
    cgam_env *env = bank->env;
    double *row = cgam_alloc(env, (size_t)Z->d, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "a row");
    cgam_status status = CGAM_OK;
    for (int64_t i = from; i < to && status == CGAM_OK; i++) {
        cgam_rows_get(Z, i, 1, row);
        Z->cpu->f64->dot[CGAM_F64](row, Z->d, 1, Z->d, row, &bank->norm2[i]);
        if (bank->norm2[i] == 0) /* squares that underflow do not make a zero memory */
            for (int64_t j = 0; j < Z->d; j++)
                if (row[j] != 0) bank->norm2[i] = DBL_TRUE_MIN;
        if (isfinite(bank->norm2[i])) continue;
        status = cgam_fail(env, CGAM_E_VALUE, "%s: row %lld: the squared norm overflows", job->name,
                           (long long)i);
        for (int64_t j = 0; j < Z->d; j++) {
            if (isfinite(row[j])) continue;
            status = cgam_fail(env, CGAM_E_VALUE,
                               "%s: %s at row %lld, column %lld (counted from 0)", job->name,
                               isnan(row[j]) ? "nan"
                               : row[j] > 0  ? "inf"
                                             : "-inf",
                               (long long)i, (long long)j);
            break;
        }
    }
    cgam_free(env, row);
    return cgam_interrupted(env) ? CGAM_E_INTERRUPTED : status;
}

static cgam_status normalise_rows(cgam_bank *bank, const char *name)
{
    bank->scale = cgam_vec_new(bank->env, &bank->Z, 1);
    if (!bank->scale) return cgam_fail_nomem(bank->env, "norms");
    CGAM_EACH_ROW(&bank->Z, i) {
        double n2 = bank->norm2[i];
        /* Below 1e-280 entries are lost when squared, and the factor could overflow. */
        if (n2 > 0 && n2 < 1e-280)
            return cgam_fail(bank->env, CGAM_E_VALUE, "%s: row %lld is too short to normalise",
                             name, (long long)i);
        bank->scale[i] = n2 > 0 ? 1 / sqrt(n2) : 1;
        bank->norm2[i] = n2 > 0;
    }
    bank->Z.scale = bank->scale;
    return CGAM_OK;
}

cgam_status cgam_bank_survey(cgam_bank *bank, const char *name)
{
    bank->norm2 = cgam_vec_new(bank->env, &bank->Z, 1);
    return bank->norm2 ? cgam_bank_look(bank, name) : cgam_fail_nomem(bank->env, "norms");
}

cgam_status cgam_bank_look(cgam_bank *bank, const char *name)
{
    const cgam_rows *Z = &bank->Z;
    survey job = {bank, name};
    cgam_status status = cgam_rows_pass(bank->env, Z, survey_rows, &job);
    if (status == CGAM_E_VALUE) /* the message came from the last thread: find the first error */
        status = survey_rows(&job, cgam_vec_begin(Z), cgam_vec_end(Z));
    return status;
}

cgam_status cgam_bank_finish(cgam_bank *bank, const cgam_bank_opts *opts, const char *name)
{
    cgam_status status = cgam_bank_survey(bank, name);
    return status == CGAM_OK ? cgam_bank_settle(bank, opts, name) : status;
}

cgam_status cgam_bank_settle(cgam_bank *bank, const cgam_bank_opts *opts, const char *name)
{
    int64_t n = bank->Z.n;
    cgam_env *env = bank->env;
    cgam_status status = opts->normalize ? normalise_rows(bank, name) : CGAM_OK;
    if (status != CGAM_OK) return status;
    double low, high, zero;
    CGAM_REDUCE(&bank->Z, i, CGAM_MIN(low), CGAM_MAX(high), CGAM_SUM(zero),
                CGAM_MIN(bank->scale_min), CGAM_MAX(bank->scale_max)) {
        double scale = bank->scale ? bank->scale[i] : 1;
        low = fmin(low, bank->norm2[i]);
        high = fmax(high, bank->norm2[i]);
        zero += bank->norm2[i] == 0;
        bank->scale_min = fmin(bank->scale_min, scale);
        bank->scale_max = fmax(bank->scale_max, scale);
    }
    status = cgam_rows_status(&bank->Z);
    if (status != CGAM_OK) return status;
    bank->info.zero_rows += (int64_t)zero;
    if (high > 0 && (high < 0x1p-1000 || high > 0x1p1000))
        return cgam_fail(env, CGAM_E_VALUE,
                         "%s: the longest memory has norm %.3g, outside [3.1e-151, 3.2e150]; "
                         "rescale the bank",
                         name, sqrt(high));
    bank->info.n = n;
    if (!bank->number) bank->whole = n;
    bank->info.whole = bank->whole;
    bank->info.d = bank->Z.d;
    bank->info.dtype = bank->Z.dtype;
    bank->info.norm_min = sqrt(low);
    bank->info.norm_max = sqrt(high);
    /* 16 ulp: what d additions of a row's squares leave when the row was normalised in double */
    bank->info.equal_norms = high - low <= 16 * 0x1p-52 * high;
    bank->info.unit = bank->info.equal_norms && fabs(high - 1) <= 16 * 0x1p-52;
    bank->info.mapped = bank->array.mapped || bank->packed;
    if (bank->info.equal_norms) /* one value, so that what follows from it is exact */
        cgam_vec_fill(&bank->Z, bank->norm2, bank->info.unit ? 1 : high);
    return CGAM_OK;
}

cgam_status cgam_bank_shape(cgam_env *env, const char *name, int64_t n, int64_t d)
{
    if (n < 1 || d < 1)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: a bank of %lld x %lld holds no memory", name,
                         (long long)n, (long long)d);
    if (d > INT32_MAX / 2)
        return cgam_fail(env, CGAM_E_SHAPE, "%s: too many columns, %lld", name, (long long)d);
    return cgam_blas_check_space(env);
}

cgam_status cgam_bank_new(cgam_env *env, const void *data, cgam_dtype dtype, int64_t n, int64_t d,
                          const cgam_bank_opts *opts, cgam_bank **out)
{
    *out = NULL;
    cgam_bank_opts o = opts ? *opts : cgam_bank_opts_default();
    if (dtype > CGAM_BF16)
        return cgam_fail(env, CGAM_E_ARG, "a bank cannot hold %s",
                         cgam_word(cgam_dtype_words, dtype));
    if (o.ranks) return cgam_bank_gather(env, data, dtype, n, d, &o, out);
    cgam_status status = cgam_bank_shape(env, "bank", n, d);
    if (status != CGAM_OK) return status;
    if (o.stride != 0 && o.stride < d)
        return cgam_fail(env, CGAM_E_ARG, "stride %lld is less than d = %lld", (long long)o.stride,
                         (long long)d);

    cgam_bank *bank = cgam_zalloc(env, 1, sizeof *bank);
    if (!bank) return cgam_fail_nomem(env, "a bank");
    bank->env = env;
    bank->Z = (cgam_rows){data, dtype, n, d, o.stride ? o.stride : d, NULL, cgam_cpu_best(), NULL};
    if (o.copy) {
        size_t row = (size_t)d * cgam_dtype_size(dtype);
        size_t step = (size_t)bank->Z.stride * cgam_dtype_size(dtype);
        bank->owned = cgam_alloc(env, (size_t)n, row);
        if (!bank->owned) {
            status = cgam_fail_nomem(env, "a copy of the bank");
        } else {
            for (int64_t i = 0; i < n; i++)
                memcpy((char *)bank->owned + (size_t)i * row, (const char *)data + (size_t)i * step,
                       row);
            bank->Z.data = bank->owned;
            bank->Z.stride = d;
        }
    }
    if (status == CGAM_OK) status = cgam_bank_finish(bank, &o, "bank");
    if (status == CGAM_OK) *out = bank;
    else cgam_bank_free(bank);
    return status;
}

cgam_status cgam_bank_load(cgam_env *env, const char *path, const cgam_bank_opts *opts,
                           cgam_bank **out)
{
    *out = NULL;
    cgam_bank_opts o = opts ? *opts : cgam_bank_opts_default();
    cgam_packed *packed;
    cgam_status status = cgam_packed_open(env, path, &packed);
    if (packed && o.ranks) {
        cgam_packed_free(packed);
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "%s: packed banks do not work over ranks; give the rows as .npy", path);
    }
    if (status != CGAM_OK || packed)
        return status == CGAM_OK ? cgam_packed_bank(packed, path, &o, out) : status;
    cgam_bank *bank = cgam_zalloc(env, 1, sizeof *bank);
    if (!bank) return cgam_fail_nomem(env, "a bank");
    cgam_shards shards;
    bank->env = env;
    status = cgam_shards_open(env, path, &shards);
    if (status == CGAM_OK && shards.mixed)
        status = cgam_fail(env, CGAM_E_SHAPE,
                           "%s: arrays of several types; bank pack with a dtype joins them", path);
    if (status == CGAM_OK) status = cgam_bank_shape(env, path, shards.rows, shards.d);
    if (status == CGAM_OK) status = cgam_bank_take_rows(bank, &shards, &o, path);
    cgam_shards_close(env, &shards);
    if (status == CGAM_OK) status = cgam_bank_finish(bank, &o, path);
    if (status == CGAM_OK) *out = bank;
    else cgam_bank_free(bank);
    return status;
}

cgam_status cgam_bank_alone(const cgam_bank *bank, const char *what)
{
    if (cgam_rows_whole(&bank->Z)) return CGAM_OK;
    return cgam_fail(bank->env, CGAM_E_UNSUPPORTED,
                     "%s needs all memories in one process, and this bank is spread over ranks",
                     what);
}

cgam_status cgam_bank_sketch(cgam_bank *bank)
{
    if (bank->sketch) return CGAM_OK;
    cgam_status status = cgam_bank_alone(bank, "a sketch");
    if (status != CGAM_OK) return status;
    return cgam_sketch_new(bank->env, &bank->Z, bank->info.norm_max, &bank->sketch);
}

cgam_bank_info cgam_bank_describe(const cgam_bank *bank)
{
    cgam_bank_info info = bank->info;
    info.sketch = bank->sketch != NULL;
    return info;
}

cgam_status cgam_bank_row(const cgam_bank *bank, int64_t i, double *out)
{
    if (i < 0 || i >= bank->Z.n)
        return cgam_fail(bank->env, CGAM_E_ARG, "no memory %lld (there are %lld)", (long long)i,
                         (long long)bank->Z.n);
    cgam_status status = cgam_rows_bring(bank->env, &bank->Z, 1, &i);
    if (status == CGAM_OK) cgam_rows_get(&bank->Z, i, 1, out);
    return status;
}

cgam_status cgam_bank_score(const cgam_bank *bank, const double *x, double *out)
{
    return cgam_rows_score(bank->env, &bank->Z, x, out);
}

cgam_status cgam_bank_combine(const cgam_bank *bank, const double *w, double *out)
{
    return cgam_rows_combine(bank->env, &bank->Z, w, out);
}
