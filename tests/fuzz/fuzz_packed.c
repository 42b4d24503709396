/* A packed bank with some of its bytes replaced, or any bytes at all: it is refused in one line, or opened, recalled from and
 * checked without leaving memory. Input: that of fuzz_damage. */
#include "fuzz/readers.h"
#include "memory/pack.h"

#include <cgam/recall.h>
#include <stdio.h>
#include <unistd.h>

enum { N = 7, D = 3 };

/* A small bank with all parts, made once. */
static const uint8_t *sound(size_t *size)
{
    static uint8_t *bytes;
    static size_t length;
    if (!bytes) {
        cgam_env *env = fuzz_env();
        char rows[] = "/tmp/cgam-fuzz-XXXXXX.npy", path[sizeof rows + 16];
        double Z[N * D];
        for (int i = 0; i < N * D; i++) Z[i] = (i * 7919 % 101) / 50.0 - 1;
        memcpy(Z + 3 * D, Z, sizeof *Z * D); /* twins */
        int fd = mkstemps(rows, 4);
        must(fd >= 0);
        close(fd);
        snprintf(path, sizeof path, "%s.safetensors", rows);
        cgam_pack_opts opts = cgam_pack_opts_default();
        opts.alphas = 2;
        opts.alpha = (double[]){0.1, 3};
        must(cgam_npy_write(env, rows, CGAM_F64, 2, (int64_t[]){N, D}, Z) == CGAM_OK);
        must(cgam_pack(env, rows, &opts, path) == CGAM_OK);
        must(cgam_pack_drop(env, path, N, &(uint64_t){2}) == CGAM_OK);
        bytes = fuzz_take(path, &length);
        unlink(rows);
        unlink(path);
    }
    *size = length;
    return bytes;
}

static void use(cgam_bank *bank)
{
    cgam_env *env = fuzz_env();
    const char *damaged;
    cgam_row_names *names;
    must(cgam_pack_check(bank, &damaged) == CGAM_OK);
    if (cgam_pack_names(bank, &names) == CGAM_OK) cgam_row_names_free(names);
    double q[64] = {1, 0.5, -0.25};
    if (cgam_bank_describe(bank).d > 64) return;
    for (int t = 0; t < 4; t++) {
        cgam_recall_opts opts = cgam_recall_opts_default();
        cgam_result r;
        opts.alpha = (double[]){0, 0.1, 0.1, 3}[t];
        opts.mode = t == 1 ? CGAM_COUPLED : CGAM_FIRST;
        opts.fast = t == 2;
        opts.max_iter = 20;
        if (cgam_recall_once(bank, q, q, &opts, &r) != CGAM_OK) must_be_one_line(env);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    size_t length;
    if (size == 0) return 0;
    const uint8_t *from = sound(&length);
    uint8_t *bytes = fuzz_damage(data, size, from, &length);
    cgam_file file = cgam_file_borrow(bytes, length);
    cgam_packed *packed;
    cgam_bank *bank;
    if (cgam_packed_read(env, "fuzz", &file, &packed) != CGAM_OK) must_be_one_line(env);
    else if (packed) {
        cgam_bank_opts opts = cgam_bank_opts_default();
        if (cgam_packed_bank(packed, "fuzz", &opts, &bank) != CGAM_OK) must_be_one_line(env);
        else {
            use(bank);
            cgam_bank_free(bank);
        }
    }
    free(bytes);
    return 0;
}
