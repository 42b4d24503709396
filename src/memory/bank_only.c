/* bank_only.c: banks made of some rows of another bank - masks, names, and the rows. */
#include "memory/bank.h"

#include "io/array.h"
#include "num/cpu/widen.h"

#include <string.h>
#include <strings.h>

/* ---- Names --------------------------------------------------------------------------------- */
struct cgam_row_names {
    cgam_env *env;
    int64_t count, slots;
    char *text;        /* the lines, each terminated by 0 */
    const char **name; /* [count] */
    int64_t *table;    /* [slots] lowest rows by the hash of their names, -1 = free */
    int64_t *next;     /* [count] the next row of the same name, -1 = none */
};

static uint64_t hash_text(const char *text)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h ^ h >> 32;
}

void cgam_row_names_free(cgam_row_names *names)
{
    if (!names) return;
    cgam_free(names->env, names->text);
    cgam_free(names->env, (void *)(uintptr_t)names->name);
    cgam_free(names->env, names->table);
    cgam_free(names->env, names->next);
    cgam_free(names->env, names);
}

int64_t cgam_row_names_count(const cgam_row_names *names) { return names->count; }
const char *cgam_row_names_at(const cgam_row_names *names, int64_t i) { return names->name[i]; }

static int64_t *slot_of(const cgam_row_names *names, const char *name)
{
    int64_t at = (int64_t)(hash_text(name) % (uint64_t)names->slots);
    while (names->table[at] >= 0 && strcmp(names->name[names->table[at]], name) != 0)
        at = at + 1 < names->slots ? at + 1 : 0;
    return &names->table[at];
}

int64_t cgam_row_names_find(const cgam_row_names *names, const char *name)
{
    return *slot_of(names, name);
}

int64_t cgam_row_names_next(const cgam_row_names *names, int64_t i) { return names->next[i]; }

/* Cuts names->text [size] into lines, for the rows number[lines] of `whole`; NULL: for all rows. */
static cgam_status split_lines(cgam_row_names *names, size_t size, const char *path,
                               const int64_t *number, int64_t whole)
{
    int64_t lines = size > 0 && names->text[size - 1] != '\n';
    for (size_t i = 0; i < size; i++) {
        lines += names->text[i] == '\n';
        if (!names->text[i])
            return cgam_fail(names->env, CGAM_E_FORMAT, "%s: a zero byte at byte %zu", path, i);
    }
    names->count = number ? whole : lines;
    names->slots = 2 * names->count + 1;
    names->name = cgam_alloc(names->env, (size_t)names->count, sizeof *names->name);
    names->table = cgam_alloc(names->env, (size_t)names->slots, sizeof *names->table);
    names->next = cgam_alloc(names->env, (size_t)names->count, sizeof *names->next);
    if (!names->name || !names->table || !names->next) return cgam_fail_nomem(names->env, "names");
    for (int64_t k = 0; k < names->slots; k++) names->table[k] = -1;
    for (int64_t k = 0; k < names->count; k++) names->name[k] = "";
    char *line = names->text;
    for (int64_t k = 0; k < lines; k++) {
        size_t length = strcspn(line, "\n");
        names->name[number ? number[k] : k] = line;
        bool returns = length > 0 && line[length - 1] == '\r';
        line[length] = 0;
        if (returns) line[length - 1] = 0;
        line += length + 1;
    }
    for (int64_t k = lines; k-- > 0;) {
        int64_t row = number ? number[k] : k, *slot = slot_of(names, names->name[row]);
        names->next[row] = *slot;
        *slot = row;
    }
    return CGAM_OK;
}

cgam_status cgam_row_names_read(cgam_env *env, const char *name, const void *text, size_t size,
                                const int64_t *number, int64_t whole, cgam_row_names **out)
{
    *out = NULL;
    cgam_row_names *names = cgam_zalloc(env, 1, sizeof *names);
    if (!names) return cgam_fail_nomem(env, "names");
    names->env = env;
    names->text = cgam_alloc(env, size + 1, 1);
    cgam_status status = names->text ? CGAM_OK : cgam_fail_nomem(env, "names");
    if (status == CGAM_OK) {
        if (size > 0) memcpy(names->text, text, size);
        names->text[size] = 0;
        status = split_lines(names, size, name, number, whole);
    }
    if (status == CGAM_OK) *out = names;
    else cgam_row_names_free(names);
    return status;
}

cgam_status cgam_row_names_new(cgam_env *env, const char *text, size_t size, cgam_row_names **out)
{
    return cgam_row_names_read(env, "names", text, size, NULL, 0, out);
}

cgam_status cgam_row_names_load(cgam_env *env, const char *path, cgam_row_names **out)
{
    *out = NULL;
    cgam_file file = {0};
    cgam_status status = cgam_file_map(env, path, &file);
    if (status == CGAM_OK)
        status =
            cgam_row_names_read(env, cgam_file_name(path), file.bytes, file.size, NULL, 0, out);
    cgam_file_unmap(&file);
    return status;
}

int64_t cgam_row_names_search(const cgam_row_names *names, const char *text, int64_t capacity,
                              int64_t *row)
{
    size_t length = strlen(text);
    int64_t count = 0, equal = names->count > 0 ? cgam_row_names_find(names, text) : -1;
    if (equal >= 0 && capacity > 0) row[count++] = equal;
    for (int64_t i = 0; i < names->count && count < capacity; i++)
        if (strncasecmp(names->name[i], text, length) == 0 && i != equal &&
            cgam_row_names_find(names, names->name[i]) == i)
            row[count++] = i;
    return count;
}

/* ---- Masks --------------------------------------------------------------------------------- */
void cgam_mask_free(cgam_env *env, uint64_t *mask) { cgam_free(env, mask); }

static void set_bit(uint64_t *mask, int64_t i) { mask[i / 64] |= UINT64_C(1) << i % 64; }
static bool has_bit(const uint64_t *mask, int64_t i) { return mask[i / 64] >> i % 64 & 1; }

cgam_status cgam_mask_is_array(cgam_env *env, const char *path, bool *array)
{
    static const char magic[] = "\x93NUMPY";
    cgam_file file = {0};
    cgam_status status = cgam_file_map(env, path, &file);
    *array = status == CGAM_OK && file.size >= sizeof magic - 1 &&
             memcmp(file.bytes, magic, sizeof magic - 1) == 0;
    cgam_file_unmap(&file);
    return status;
}

static cgam_status mask_by_array(cgam_env *env, const char *path, int64_t n, uint64_t *mask)
{
    cgam_array a = {0};
    cgam_status status = cgam_array_open(env, path, &a);
    if (status != CGAM_OK) return status;
    bool whole = a.whole == 'i' || a.whole == 'u' || a.dtype == CGAM_I64 || a.dtype == CGAM_I32;
    if (a.ndim != 1)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: expected 1 dimension, the array has %d", path,
                           a.ndim);
    else if (a.whole == 'b' && a.size != n)
        status = cgam_fail(env, CGAM_E_SHAPE, "%s: %lld booleans for %lld memories", path,
                           (long long)a.size, (long long)n);
    else if (a.whole != 'b' && !whole)
        status = cgam_fail(env, CGAM_E_VALUE, "%s: expected booleans or integers, not %s", path,
                           cgam_word(cgam_dtype_words, a.dtype));
    for (int64_t i = 0; i < a.size && status == CGAM_OK; i++) {
        double v;
        const char *at = (const char *)a.data + (size_t)i * cgam_dtype_size(a.dtype);
        cgam_widen(a.dtype, at, 1, &v); /* exact below 2^53, and no bank has more memories */
        if (a.whole == 'b' && v != 0) set_bit(mask, i);
        if (a.whole == 'b') continue;
        if (v >= 0 && v < (double)n) set_bit(mask, (int64_t)v);
        else
            status = cgam_fail(env, CGAM_E_VALUE,
                               "%s: no memory %.0f (at position %lld; valid: 0 to %lld)", path, v,
                               (long long)i, (long long)n - 1);
    }
    cgam_array_close(env, &a);
    return status;
}

static cgam_status mask_by_names(cgam_env *env, const char *path, int64_t n,
                                 const cgam_row_names *names, uint64_t *mask)
{
    cgam_row_names *only;
    if (!names)
        return cgam_fail(env, CGAM_E_ARG, "%s: lists names, but the bank has no names", path);
    cgam_status status = cgam_row_names_load(env, path, &only);
    if (status != CGAM_OK) return status;
    for (int64_t k = 0; k < only->count && status == CGAM_OK; k++) {
        int64_t row = cgam_row_names_find(names, only->name[k]);
        if (row < 0 || row >= n)
            status = cgam_fail(env, CGAM_E_VALUE, "%s: line %lld: no memory named '%.40s'", path,
                               (long long)k + 1, only->name[k]);
        for (; status == CGAM_OK && row >= 0 && row < n; row = names->next[row]) set_bit(mask, row);
    }
    cgam_row_names_free(only);
    return status;
}

cgam_status cgam_mask_load(cgam_env *env, const char *path, int64_t n, const cgam_row_names *names,
                           uint64_t **out)
{
    *out = NULL;
    uint64_t *mask = cgam_zalloc(env, (size_t)cgam_mask_words(n), sizeof *mask);
    if (!mask) return cgam_fail_nomem(env, "a mask");
    bool array;
    cgam_status status = cgam_mask_is_array(env, path, &array);
    if (status == CGAM_OK)
        status =
            array ? mask_by_array(env, path, n, mask) : mask_by_names(env, path, n, names, mask);
    if (status == CGAM_OK) *out = mask;
    else cgam_mask_free(env, mask);
    return status;
}

/* ---- Rows ---------------------------------------------------------------------------------- */
int64_t cgam_bank_number(const cgam_bank *bank, int64_t i)
{
    return bank->number ? bank->number[i] : i;
}

int64_t cgam_bank_place(const cgam_bank *bank, int64_t number)
{
    int64_t low = 0, high = bank->Z.n;
    if (!bank->number) return number >= 0 && number < bank->Z.n ? number : -1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (bank->number[middle] < number) low = middle + 1;
        else high = middle;
    }
    return low < bank->Z.n && bank->number[low] == number ? low : -1;
}

/* Copies the sketch of the selected rows; at [n]: their rows in the other bank. */
static cgam_status take_sketch(const cgam_bank *bank, const int64_t *at, cgam_bank *out)
{
    cgam_env *env = bank->env;
    const cgam_sketch *from = bank->sketch;
    size_t n = (size_t)out->Z.n, d = (size_t)from->d, blocks = (size_t)cgam_int8_blocks(from->d);
    cgam_sketch *to = cgam_zalloc(env, 1, sizeof *to);
    if (!to) return cgam_fail_nomem(env, "a sketch");
    out->sketch = to;
    *to = (cgam_sketch){.n = out->Z.n, .d = from->d, .exponent = from->exponent};
    int8_t *rows = cgam_alloc(env, n * d + CGAM_INT8_PAD, 1);
    float *scale = cgam_alloc(env, n * blocks, sizeof *scale);
    float *hat = cgam_alloc(env, n, sizeof *hat), *rest = cgam_alloc(env, n, sizeof *rest);
    to->rows = rows;
    to->scale = scale;
    to->hat = hat;
    to->rest = rest;
    if (!rows || !scale || !hat || !rest) return cgam_fail_nomem(env, "a sketch");
    memset(rows + n * d, 0, CGAM_INT8_PAD);
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)at[i];
        memcpy(rows + i * d, from->rows + k * d, d);
        memcpy(scale + i * blocks, from->scale + k * blocks, blocks * sizeof *scale);
        hat[i] = from->hat[k];
        rest[i] = from->rest[k];
    }
    return CGAM_OK;
}

/* Makes the rows at[n]: borrowed if they are contiguous, else copied. */
static cgam_status take_rows(const cgam_bank *bank, const int64_t *at, cgam_bank *out)
{
    const cgam_rows *Z = &bank->Z;
    int64_t n = out->Z.n;
    size_t row = (size_t)Z->d * cgam_dtype_size(Z->dtype);
    if (at[n - 1] - at[0] == n - 1) {
        out->Z.data = cgam_rows_at(Z, at[0]);
        return CGAM_OK;
    }
    out->owned = cgam_alloc(bank->env, (size_t)n, row);
    if (!out->owned) return cgam_fail_nomem(bank->env, "rows that count");
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)out->owned + (size_t)i * row, cgam_rows_at(Z, at[i]), row);
    out->Z.data = out->owned;
    out->Z.stride = Z->d;
    return CGAM_OK;
}

cgam_status cgam_bank_only(const cgam_bank *bank, const uint64_t *mask, cgam_bank **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    int64_t count = 0, n = bank->Z.n;
    if (!cgam_rows_whole(&bank->Z))
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "only is not available for a bank that is spread over ranks");
    for (int64_t i = 0; i < n; i++) count += has_bit(mask, cgam_bank_number(bank, i));
    if (count == 0)
        return cgam_fail(env, CGAM_E_ARG, "the selection has none of the %lld memories",
                         (long long)n);
    cgam_bank *some = cgam_zalloc(env, 1, sizeof *some);
    int64_t *at = cgam_alloc(env, (size_t)count, sizeof *at);
    if (some) some->env = env;
    if (some) some->number = cgam_alloc(env, (size_t)count, sizeof *some->number);
    cgam_status status = CGAM_OK;
    if (!some || !at || !some->number) status = cgam_fail_nomem(env, "rows that count");
    for (int64_t i = 0, k = 0; i < n && status == CGAM_OK; i++)
        if (has_bit(mask, cgam_bank_number(bank, i))) {
            at[k] = i;
            some->number[k++] = cgam_bank_number(bank, i);
        }
    if (status == CGAM_OK) {
        some->whole = bank->whole;
        some->columns = bank->columns;
        some->Z = bank->Z;
        some->Z.n = count;
        some->Z.scale = NULL;
        status = take_rows(bank, at, some);
    }
    if (status == CGAM_OK)
        status =
            cgam_bank_finish(some, &(cgam_bank_opts){.normalize = bank->scale != NULL}, "bank");
    if (status == CGAM_OK && bank->sketch) status = take_sketch(bank, at, some);
    cgam_free(env, at);
    if (status == CGAM_OK) *out = some;
    else cgam_bank_free(some);
    return status;
}
