/* pack_read.c: opens a packed bank, without reading the rows. */
#include "memory/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MOST = INT64_C(1) << 36; /* numbers of memories */
/* Banks of at most so many numbers are checked all the same: a tenth of a millisecond. */
static const double LOOK = 0x1p16;

void cgam_packed_free(cgam_packed *packed)
{
    if (!packed) return;
    cgam_env *env = packed->env;
    cgam_columns_free(packed->columns);
    cgam_tensor_table_free(env, &packed->table);
    cgam_file_unmap(&packed->file);
    cgam_free(env, packed);
}

static cgam_status fail_format(const cgam_packed *p, const char *name, const char *why)
{
    return cgam_fail(p->env, CGAM_E_FORMAT, "packed bank: %s %s", name, why);
}

cgam_status cgam_packed_part(const cgam_packed *p, const char *name, const char *type, int ndim,
                             int64_t *shape, const void **out)
{
    const cgam_tensor *t = cgam_tensor_table_find(&p->table, name);
    *out = NULL;
    if (!t) return CGAM_OK;
    if (strcmp(t->layout.type, type) != 0 || t->layout.ndim != ndim)
        return fail_format(p, name, "has the wrong type or number of dimensions");
    for (int k = 0; k < ndim; k++) {
        if (shape[k] >= 0 && shape[k] != t->layout.shape[k])
            return fail_format(p, name, "does not have the size of the bank");
        shape[k] = t->layout.shape[k];
    }
    *out = p->file.bytes + p->table.data + t->begin;
    if ((uintptr_t)*out % (uintptr_t)t->layout.item != 0)
        return fail_format(p, name, "is misaligned");
    return CGAM_OK;
}

/* Finds a tensor that must exist. */
static cgam_status require_tensor(const cgam_packed *p, const char *name, const char *type,
                                  int ndim, int64_t *shape, const void **out)
{
    cgam_status status = cgam_packed_part(p, name, type, ndim, shape, out);
    return status == CGAM_OK && !*out ? fail_format(p, name, "is missing") : status;
}

static cgam_status read_rows(cgam_packed *p)
{
    const cgam_tensor *t = cgam_tensor_table_find(&p->table, "rows");
    int64_t shape[2] = {-1, -1};
    const void *norm2, *number;
    if (!t || t->layout.whole || t->layout.dtype < 0 || t->layout.dtype > (int)CGAM_BF16)
        return fail_format(p, "rows", "are missing or have an unsupported type");
    p->dtype = (cgam_dtype)t->layout.dtype;
    cgam_status status = require_tensor(p, "rows", t->layout.type, 2, shape, &p->rows);
    if (status == CGAM_OK) status = cgam_bank_shape(p->env, "packed bank", shape[0], shape[1]);
    if (status != CGAM_OK) return status;
    p->live = shape[0];
    p->d = shape[1];
    status = require_tensor(p, "norm2", "F64", 1, &p->live, &norm2);
    if (status == CGAM_OK) status = cgam_packed_part(p, "number", "I64", 1, &p->live, &number);
    if (status != CGAM_OK) return status;
    p->norm2 = norm2;
    p->number = number;
    for (int64_t i = 0; i < p->live; i++)
        if (!(p->norm2[i] >= 0 && isfinite(p->norm2[i])))
            return fail_format(p, "norm2", "holds an invalid norm");
    for (int64_t i = 0; p->number && i < p->live; i++)
        if (p->number[i] < 0 || p->number[i] >= p->n || (i > 0 && p->number[i] <= p->number[i - 1]))
            return fail_format(p, "number", "is not ascending below n");
    if (!p->number && p->n != p->live) return fail_format(p, "number", "is missing");
    return CGAM_OK;
}

static cgam_status read_sketch(cgam_packed *p)
{
    int64_t rows[2] = {p->live, p->d}, scales[2] = {p->live, cgam_int8_blocks(p->d)};
    const void *bytes, *scale, *hat, *rest;
    cgam_status status = cgam_packed_part(p, "sketch.rows", "I8", 2, rows, &bytes);
    if (status != CGAM_OK || !bytes) return status;
    status = require_tensor(p, "sketch.scale", "F32", 2, scales, &scale);
    if (status == CGAM_OK) status = require_tensor(p, "sketch.hat", "F32", 1, &p->live, &hat);
    if (status == CGAM_OK) status = require_tensor(p, "sketch.rest", "F32", 1, &p->live, &rest);
    if (status != CGAM_OK) return status;
    uint64_t end =
        (uint64_t)((const uint8_t *)bytes - p->file.bytes) + (uint64_t)p->live * (uint64_t)p->d;
    if (end + CGAM_INT8_PAD > p->file.size)
        return fail_format(p, "sketch.rows", "extend past the end of the file");
    p->sketch = (cgam_sketch){
        .n = p->live, .d = p->d, .rows = bytes, .scale = scale, .hat = hat, .rest = rest};
    for (int64_t i = 0; i < p->live * scales[1]; i++)
        if (!(p->sketch.scale[i] >= 0 && isfinite(p->sketch.scale[i])))
            return fail_format(p, "sketch.scale", "holds an invalid scale");
    for (int64_t i = 0; i < p->live; i++)
        if (!(p->sketch.hat[i] >= 0 && isfinite(p->sketch.hat[i]) && p->sketch.rest[i] >= 0 &&
              isfinite(p->sketch.rest[i])))
            return fail_format(p, "sketch.hat or sketch.rest", "holds an invalid norm");
    return CGAM_OK;
}

static cgam_status read_notes(cgam_packed *p)
{
    const char *n = cgam_tensor_table_note(&p->table, "n");
    const char *normalize = cgam_tensor_table_note(&p->table, "normalize");
    char *end, key[16];
    p->n = n ? strtoll(n, &end, 10) : -1;
    if (!n || p->n < 1 || p->n > MOST || *end)
        return fail_format(p, "n", "is not a valid number of memories");
    if (!normalize || (strcmp(normalize, "yes") != 0 && strcmp(normalize, "no") != 0))
        return fail_format(p, "normalize", "is neither yes nor no");
    p->normalize = strcmp(normalize, "yes") == 0;
    for (; p->alphas < CGAM_PACK_ALPHAS_MAX; p->alphas++) {
        snprintf(key, sizeof key, "alpha%d", (int)p->alphas);
        const char *text = cgam_tensor_table_note(&p->table, key);
        if (!text) break;
        double alpha = p->alpha[p->alphas] = strtod(text, &end);
        if (end == text || *end || !(alpha > 0 && isfinite(alpha)))
            return fail_format(p, key, "is not a valid penalty");
    }
    return CGAM_OK;
}

static cgam_status read_lists(cgam_packed *p)
{
    int64_t begins = -1;
    const void *names, *begin, *member = NULL;
    p->names_size = p->members = -1;
    cgam_status status = cgam_packed_part(p, "names", "U8", 1, &p->names_size, &names);
    if (status == CGAM_OK) status = cgam_packed_part(p, "twins.begin", "I64", 1, &begins, &begin);
    if (status == CGAM_OK && begin)
        status = require_tensor(p, "twins.member", "I64", 1, &p->members, &member);
    if (status != CGAM_OK) return status;
    p->names = names;
    p->family = begin;
    p->member = member;
    p->families = begin ? begins - 1 : 0;
    return p->families < 0 ? fail_format(p, "twins.begin", "is empty") : CGAM_OK;
}

cgam_status cgam_packed_read(cgam_env *env, const char *name, cgam_file *file, cgam_packed **out)
{
    *out = NULL;
    cgam_packed *p = cgam_zalloc(env, 1, sizeof *p);
    if (!p) return cgam_fail_nomem(env, "a packed bank");
    p->env = env;
    cgam_status status = cgam_tensor_table_parse(env, name, file->bytes, file->size, &p->table);
    const char *format = status == CGAM_OK ? cgam_tensor_table_note(&p->table, "format") : NULL;
    if (!format ||
        strncmp(format, CGAM_PACKED_FORMAT, strcspn(CGAM_PACKED_FORMAT, "0123456789")) != 0) {
        /* another kind of file: other readers report what is wrong with it */
        cgam_packed_free(p);
        return status == CGAM_E_NOMEM ? status : CGAM_OK;
    }
    p->file = *file;
    *file = (cgam_file){0};
    if (strcmp(format, CGAM_PACKED_FORMAT) != 0)
        status = cgam_fail(env, CGAM_E_UNSUPPORTED,
                           "%s: unsupported layout '%.40s' (supported: "
                           "'%s')",
                           name, format, CGAM_PACKED_FORMAT);
    if (status == CGAM_OK) status = read_notes(p);
    if (status == CGAM_OK) status = read_rows(p);
    if (status == CGAM_OK) status = read_sketch(p);
    if (status == CGAM_OK) status = read_lists(p);
    if (status == CGAM_OK) status = cgam_columns_read(p, &p->columns);
    if (status == CGAM_OK) *out = p;
    else cgam_packed_free(p);
    return status;
}

cgam_status cgam_packed_open(cgam_env *env, const char *path, cgam_packed **out)
{
    *out = NULL;
    cgam_file file = {0};
    if (!cgam_path_ends(path, ".safetensors") || !cgam_file_stays(path)) return CGAM_OK;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status == CGAM_OK) status = cgam_packed_read(env, cgam_file_name(path), &file, out);
    cgam_file_unmap(&file);
    return status;
}

cgam_status cgam_packed_bank(cgam_packed *packed, const char *name, const cgam_bank_opts *opts,
                             cgam_bank **out)
{
    cgam_env *env = packed->env;
    *out = NULL;
    cgam_bank *bank = cgam_zalloc(env, 1, sizeof *bank);
    if (!bank) {
        cgam_packed_free(packed);
        return cgam_fail_nomem(env, "a bank");
    }
    bank->env = env;
    bank->packed = packed;
    bank->columns = packed->columns;
    bank->unread = (double)packed->live * (double)packed->d > LOOK;
    bank->whole = packed->n;
    bank->Z = (cgam_rows){packed->rows, packed->dtype, packed->live,    packed->d,
                          packed->d,    NULL,          cgam_cpu_best(), NULL};
    size_t n = (size_t)packed->live;
    bank->norm2 = cgam_alloc(env, n, sizeof *bank->norm2);
    if (packed->number) bank->number = cgam_alloc(env, n, sizeof *bank->number);
    cgam_status status = CGAM_OK;
    if (!bank->norm2 || (packed->number && !bank->number)) status = cgam_fail_nomem(env, "norms");
    if (status == CGAM_OK) {
        cgam_bank_opts o = *opts;
        memcpy(bank->norm2, packed->norm2, n * sizeof *bank->norm2);
        if (packed->number) memcpy(bank->number, packed->number, n * sizeof *bank->number);
        o.normalize |= packed->normalize;
        if (!bank->unread) status = cgam_bank_look(bank, name);
        if (status == CGAM_OK) status = cgam_bank_settle(bank, &o, name);
        /* sketch and gates belong to the memories, not to the rows */
        bool fits = o.normalize == packed->normalize;
        packed->sketch.exponent = cgam_sketch_exponent(bank->info.norm_max);
        if (fits && packed->sketch.rows) bank->sketch = &packed->sketch;
        if (!fits) packed->alphas = 0;
    }
    if (status == CGAM_OK) *out = bank;
    else cgam_bank_free(bank);
    return status;
}

/* ---- Description -------------------------------------------------------------------- */
cgam_pack_info cgam_pack_describe(const cgam_bank *bank)
{
    const cgam_packed *p = bank->packed;
    if (!p) return (cgam_pack_info){0};
    return (cgam_pack_info){.packed = true,
                            .names = p->names != NULL,
                            .sketch = p->sketch.rows != NULL,
                            .normalize = p->normalize,
                            .alphas = p->alphas,
                            .alpha = p->alpha,
                            .bytes = p->file.size};
}

cgam_status cgam_pack_check(const cgam_bank *bank, const char **damaged)
{
    *damaged = NULL;
    if (!bank->packed)
        return cgam_fail(bank->env, CGAM_E_ARG, "check: only packed banks have digests");
    return cgam_sealed_check(bank->env, &bank->packed->file, &bank->packed->table, damaged);
}

cgam_status cgam_pack_names(const cgam_bank *bank, cgam_row_names **out)
{
    const cgam_packed *p = bank->packed;
    *out = NULL;
    if (!p || !p->names) return CGAM_OK;
    int64_t lines = 0;
    for (int64_t i = 0; i < p->names_size; i++) lines += p->names[i] == '\n';
    if (lines != p->live) return fail_format(p, "names", "do not match the number of rows");
    return cgam_row_names_read(bank->env, "names", p->names, (size_t)p->names_size, p->number, p->n,
                               out);
}

const cgam_columns *cgam_pack_columns(const cgam_bank *bank) { return bank->columns; }
