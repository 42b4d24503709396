/* Any bytes as names of memories, and as a list of those that count: the first byte says how much of the rest is the file of
 * names, what is left is the other. What is refused is refused in one line; names are found again at the lowest of
 * their rows, and every other row of a name by the one before it. */
#include "fuzz/readers.h"
#include "memory/bank.h"

#include <cgam/bank.h>

static void look(const cgam_row_names *names)
{
    int64_t n = cgam_row_names_count(names), row[8];
    for (int64_t i = 0; i < n; i++) {
        const char *name = cgam_row_names_at(names, i);
        int64_t at = cgam_row_names_find(names, name);
        must(!strchr(name, '\n') && at >= 0 && at <= i);
        for (; at < i; at = cgam_row_names_next(names, at)) must(at >= 0);
        must(at == i && strcmp(cgam_row_names_at(names, at), name) == 0);
        int64_t some = i < 8 ? cgam_row_names_search(names, name, 8, row) : 1;
        must(some >= 1 && some <= 8);
        for (int64_t k = 0; i < 8 && k < some; k++) must(row[k] >= 0 && row[k] < n);
    }
    must(n == 0 || cgam_row_names_find(names, "a name\n") == -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    cgam_env *env = fuzz_env();
    size_t cut = (size - 1) * data[0] / 255;
    cgam_row_names *names;
    if (cgam_row_names_new(env, (const char *)data + 1, cut, &names) != CGAM_OK) {
        must(!names);
        must_be_one_line(env);
        return 0;
    }
    look(names);
    const cgam_memory_file file = {"only", data + 1 + cut, size - 1 - cut};
    const cgam_file_overlay overlay = {&file, 1, true};
    uint64_t *mask = NULL;
    int64_t n = cgam_row_names_count(names);
    cgam_file_overlay_set(&overlay);
    if (n > 0 && cgam_mask_load(env, "only", n, names, &mask) != CGAM_OK) must_be_one_line(env);
    else if (n % 64) must(mask && mask[n / 64] >> n % 64 == 0);
    cgam_mask_free(env, mask);
    cgam_file_overlay_set(NULL);
    cgam_row_names_free(names);
    return 0;
}
