/* Any bytes as the index of a bank that is divided among files. It is refused in one line, or gives rows of one width, and no
 * file is opened but those beside it. */
#include "fuzz/readers.h"
#include "io/shards.h"

#include <stdio.h>

enum { D = 3 };

/* A small .safetensors file with arrays "a" [2, 3] and "b" [1, 3]. */
static size_t sound(uint8_t *to)
{
    static const char head[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[24,36]}}   ";
    const uint64_t length = sizeof head - 1;
    float rows[3 * D] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    memcpy(to, &length, sizeof length);
    memcpy(to + sizeof length, head, sizeof head - 1);
    memcpy(to + sizeof length + length, rows, sizeof rows);
    return sizeof length + (size_t)length + sizeof rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t part[512] __attribute__((aligned(64)));
    size_t part_size = sound(part);
    cgam_env *env = fuzz_env();
    const cgam_memory_file files[] = {{"x.index.json", data, size},
                                      {"p.safetensors", part, part_size}};
    const cgam_file_overlay overlay = {files, 2, true};
    cgam_shards shards;
    cgam_file_overlay_set(&overlay);
    if (cgam_shards_open(env, "x.index.json", &shards) != CGAM_OK) {
        must_be_one_line(env);
        must(!shards.arrays);
    } else {
        int64_t rows = 0, array;
        for (int64_t i = 0; i < shards.count; i++) rows += shards.arrays[i].size / shards.d;
        must(rows == shards.rows && shards.d > 0);
        for (int64_t i = 0; i < rows && i < 64; i++) must(cgam_shards_row(&shards, i, &array));
        cgam_shards_close(env, &shards);
    }
    cgam_file_overlay_set(NULL);
    return 0;
}
