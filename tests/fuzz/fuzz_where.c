/* Any bytes as columns in CSV and as a predicate on them: the first byte says how much of the rest is the file, what is left is
 * the predicate. What is refused is refused in one line; what is accepted has no bit beyond the rows, selects with `not (..)` the
 * other rows, and the same rows when said twice. */
#include "fuzz/readers.h"

#include "memory/columns.h"

#include <cgam/bank.h>
#include <stdio.h>

static void look(const cgam_columns *columns, const char *predicate)
{
    cgam_env *env = fuzz_env();
    size_t length = strlen(predicate);
    uint64_t *mask, *other = NULL;
    if (cgam_columns_where(columns, predicate, &mask) != CGAM_OK) {
        must(!mask);
        must_be_one_line(env);
        return;
    }
    int64_t n = columns->rows, last = n / 64;
    if (n % 64) must(mask[last] >> n % 64 == 0);
    char *both = malloc(2 * length + 32);
    must(both != NULL);
    snprintf(both, 2 * length + 32, "not ( %s )", predicate);
    if (cgam_columns_where(columns, both, &other) == CGAM_OK)
        for (int64_t i = 0; i < n; i++) must((mask[i / 64] ^ other[i / 64]) >> i % 64 & 1);
    else must(strstr(cgam_env_message(env), "parentheses") != NULL);
    cgam_mask_free(env, other);
    snprintf(both, 2 * length + 32, "( %s ) and ( %s )", predicate, predicate);
    if (cgam_columns_where(columns, both, &other) == CGAM_OK)
        must(memcmp(mask, other, (size_t)cgam_mask_words(n) * sizeof *mask) == 0);
    cgam_mask_free(env, other);
    cgam_mask_free(env, mask);
    free(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    cgam_env *env = fuzz_env();
    size_t cut = (size - 1) * data[0] / 255;
    const cgam_memory_file file = {"columns", data + 1, cut};
    const cgam_file_overlay overlay = {&file, 1, true};
    cgam_columns *columns = NULL;
    char *predicate = malloc(size - cut);
    must(predicate != NULL);
    memcpy(predicate, data + 1 + cut, size - 1 - cut);
    predicate[size - 1 - cut] = 0;
    cgam_file_overlay_set(&overlay);
    for (int64_t rows = 3; rows < 6 && !columns; rows++)
        if (cgam_columns_load(env, "columns", rows, &columns) != CGAM_OK) must_be_one_line(env);
    cgam_file_overlay_set(NULL);
    if (columns) look(columns, predicate);
    cgam_columns_free(columns);
    free(predicate);
    return 0;
}
