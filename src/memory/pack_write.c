/* pack_write.c: writes a packed bank: first the rows, then the data derived from them, computed from the new file, so
 * that no second copy of the rows is held. */
#include "memory/pack_write.h"

#include "io/json.h"
#include "memory/columns.h"
#include "memory/twins.h"
#include "num/cpu/widen.h"

#include <string.h>

enum {
    ROWS = 4096 /* converted or sketched at a time */,
    HEADER = 8192 /* of the file, and per alpha */
};

void cgam_pack_job_free(cgam_pack_job *job)
{
    cgam_free(job->env, job->runs);
    cgam_free(job->env, job->number);
    cgam_free(job->env, (void *)(uintptr_t)job->name);
    cgam_columns_free(job->columns);
    cgam_bank_free(job->bank);
    cgam_sealed_abandon(job->file);
}

cgam_status cgam_pack_job_rows(cgam_pack_job *job, const void *at, cgam_dtype dtype, int64_t rows)
{
    if (rows == 0) return CGAM_OK;
    if (job->count == job->capacity) {
        int64_t capacity = 2 * job->capacity + 8;
        cgam_run *runs = cgam_alloc(job->env, (size_t)capacity, sizeof *runs);
        if (!runs) return cgam_fail_nomem(job->env, "rows of a bank");
        if (job->count) memcpy(runs, job->runs, (size_t)job->count * sizeof *runs);
        cgam_free(job->env, job->runs);
        job->runs = runs;
        job->capacity = capacity;
    }
    job->runs[job->count++] = (cgam_run){at, dtype, rows};
    job->live += rows;
    return CGAM_OK;
}

static cgam_status convert(cgam_pack_job *job, const cgam_run *run)
{
    int64_t d = job->d, rows = run->rows < ROWS ? run->rows : ROWS;
    size_t from = cgam_dtype_size(run->dtype), to = cgam_dtype_size(job->dtype);
    double *wide = cgam_alloc(job->env, (size_t)(rows * d), sizeof *wide);
    void *narrow = cgam_alloc(job->env, (size_t)(rows * d), to);
    cgam_status status = wide && narrow ? CGAM_OK : cgam_fail_nomem(job->env, "rows of a bank");
    for (int64_t i = 0; i < run->rows && status == CGAM_OK; i += rows) {
        int64_t count = (run->rows - i < rows ? run->rows - i : rows) * d;
        cgam_widen(run->dtype, (const char *)run->at + (size_t)(i * d) * from, count, wide);
        cgam_narrow(job->dtype, wide, count, narrow);
        status = cgam_sealed_write(job->file, narrow, (size_t)count * to);
    }
    cgam_free(job->env, wide);
    cgam_free(job->env, narrow);
    return status;
}

/* Writes the rows and makes a bank over them in the file. */
static cgam_status write_rows(cgam_pack_job *job)
{
    const void *data;
    cgam_status status = cgam_sealed_part(
        job->file,
        &(cgam_part){"rows", cgam_tensor_type_name(job->dtype), 2, {job->live, job->d}, NULL});
    for (int64_t k = 0; k < job->count && status == CGAM_OK; k++) {
        const cgam_run *run = &job->runs[k];
        size_t bytes = (size_t)(run->rows * job->d) * cgam_dtype_size(run->dtype);
        status = run->dtype == job->dtype ? cgam_sealed_write(job->file, run->at, bytes)
                                          : convert(job, run);
    }
    if (status == CGAM_OK) status = cgam_sealed_map(job->file, &data);
    if (status != CGAM_OK) return status;
    cgam_bank *bank = job->bank = cgam_zalloc(job->env, 1, sizeof *bank);
    if (!bank) return cgam_fail_nomem(job->env, "a bank");
    bank->env = job->env;
    bank->Z = (cgam_rows){data, job->dtype, job->live, job->d, job->d, NULL, cgam_cpu_best(), NULL};
    status = cgam_bank_survey(bank, job->from);
    if (status == CGAM_OK)
        status =
            cgam_sealed_part(job->file, &(cgam_part){"norm2", "F64", 1, {job->live}, bank->norm2});
    if (status == CGAM_OK && job->number)
        status =
            cgam_sealed_part(job->file, &(cgam_part){"number", "I64", 1, {job->live}, job->number});
    if (status == CGAM_OK)
        status = cgam_bank_settle(bank, &(cgam_bank_opts){.normalize = job->normalize}, job->from);
    return status;
}

static cgam_status write_sketch(cgam_pack_job *job)
{
    const cgam_bank *bank = job->bank;
    int64_t n = job->live, d = job->d, blocks = cgam_int8_blocks(d), most = n < ROWS ? n : ROWS;
    int exponent = cgam_sketch_exponent(bank->info.norm_max);
    int8_t *rows = cgam_alloc(job->env, (size_t)(most * d), sizeof *rows);
    float *scale = cgam_alloc(job->env, (size_t)(n * (blocks + 2)), sizeof *scale);
    float *hat = scale + n * blocks, *rest = hat + n;
    cgam_status status = rows && scale ? CGAM_OK : cgam_fail_nomem(job->env, "a sketch");
    if (status == CGAM_OK)
        status = cgam_sealed_part(job->file, &(cgam_part){"sketch.rows", "I8", 2, {n, d}, NULL});
    for (int64_t i = 0; i < n && status == CGAM_OK; i += most) {
        int64_t count = n - i < most ? n - i : most;
        status = cgam_sketch_rows(job->env, &bank->Z, exponent, i, count, rows, scale + i * blocks,
                                  hat + i, rest + i);
        if (status == CGAM_OK) status = cgam_sealed_write(job->file, rows, (size_t)(count * d));
    }
    const cgam_part parts[] = {{"sketch.scale", "F32", 2, {n, blocks}, scale},
                               {"sketch.hat", "F32", 1, {n}, hat},
                               {"sketch.rest", "F32", 1, {n}, rest}};
    for (int k = 0; k < 3 && status == CGAM_OK; k++)
        status = cgam_sealed_part(job->file, &parts[k]);
    cgam_free(job->env, rows);
    cgam_free(job->env, scale);
    return status;
}

static cgam_status write_names(cgam_pack_job *job)
{
    size_t size = 0, at = 0;
    for (int64_t i = 0; i < job->live; i++) size += strlen(job->name[i]) + 1;
    char *text = cgam_alloc(job->env, size + 1, 1);
    if (!text) return cgam_fail_nomem(job->env, "names");
    for (int64_t i = 0; i < job->live; i++) {
        size_t length = strlen(job->name[i]);
        memcpy(text + at, job->name[i], length);
        text[at + length] = '\n';
        at += length + 1;
    }
    cgam_status status =
        cgam_sealed_part(job->file, &(cgam_part){"names", "U8", 1, {(int64_t)size}, text});
    cgam_free(job->env, text);
    return status;
}

static cgam_status write_gates(cgam_pack_job *job)
{
    cgam_twins *twins;
    const int64_t *begin, *member;
    cgam_status status = cgam_twins_find(job->bank, &twins);
    if (status != CGAM_OK) return status;
    int64_t families = cgam_twins_keep(twins, &begin, &member);
    if (families > 0)
        status = cgam_sealed_part(job->file,
                                  &(cgam_part){"twins.begin", "I64", 1, {families + 1}, begin});
    if (families > 0 && status == CGAM_OK)
        status = cgam_sealed_part(
            job->file, &(cgam_part){"twins.member", "I64", 1, {begin[families]}, member});
    cgam_twins_free(job->env, twins);
    for (int k = 0; k < job->alphas && status == CGAM_OK; k++) {
        cgam_gate *gate;
        const cgam_gate_opts least = {.effort = CGAM_EFFORT_LEAST};
        status = cgam_gate_new(job->bank, job->alpha[k], &least, &gate);
        if (status != CGAM_OK) return status;
        if (gate->info.regime == CGAM_SUBCRITICAL && gate->A && gate->a > 0 &&
            !cgam_dplr_dense(gate->A) && !cgam_dplr_singular(gate->A))
            status = cgam_dplr_inverse_new(gate->A, &gate->small); /* for coupled recalls */
        if (status == CGAM_OK) status = cgam_packed_gate_write(job->file, k, gate);
        cgam_gate_free(gate);
    }
    return status;
}

static cgam_status write_notes(cgam_pack_job *job)
{
    char text[CGAM_REAL_TEXT], key[16];
    snprintf(text, sizeof text, "%lld", (long long)job->n);
    cgam_status status = cgam_sealed_note(job->file, "format", CGAM_PACKED_FORMAT);
    if (status == CGAM_OK) status = cgam_sealed_note(job->file, "n", text);
    if (status == CGAM_OK)
        status = cgam_sealed_note(job->file, "normalize", job->normalize ? "yes" : "no");
    for (int k = 0; k < job->alphas && status == CGAM_OK; k++) {
        snprintf(key, sizeof key, "alpha%d", k);
        status = cgam_sealed_note(job->file, key, cgam_real_text(job->alpha[k], text));
    }
    return status;
}

cgam_status cgam_pack_job_write(cgam_pack_job *job)
{
    cgam_status status = cgam_bank_shape(job->env, job->from, job->live, job->d);
    if (status == CGAM_OK)
        status = cgam_sealed_begin(job->env, job->path,
                                   HEADER * (size_t)(1 + job->alphas) +
                                       (job->columns ? cgam_columns_header(job->columns) : 0),
                                   &job->file);
    if (status == CGAM_OK) status = write_notes(job);
    if (status == CGAM_OK) status = write_rows(job);
    if (status == CGAM_OK && job->sketch) status = write_sketch(job);
    if (status == CGAM_OK && job->name) status = write_names(job);
    if (status == CGAM_OK && job->columns) status = cgam_columns_write(job->file, job->columns);
    if (status == CGAM_OK && job->alphas > 0) status = write_gates(job);
    if (status != CGAM_OK) return status;
    cgam_bank_free(job->bank); /* it uses pages that the commit unmaps */
    job->bank = NULL;
    cgam_sealed *file = job->file;
    job->file = NULL;
    return cgam_sealed_commit(file);
}
