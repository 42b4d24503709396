/* A packed bank with some of its bytes replaced, or any bytes at all: it is refused in one line, or opened and recalled from,
 * checked or asked for names without leaving memory. Input: that of fuzz_damage, whose first byte says which of these, too. */
#include "fuzz/readers.h"
#include "memory/pack.h"

#include <cgam/recall.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

enum { N = 7, D = 3 };

/* The same bank without the room that a head is given: blanks are two thirds of such a small file, would take two thirds of
 * the damage and most of the time. */
static size_t tighten(uint8_t *bytes, size_t size)
{
    static const char key[] = "\"digest.header\":\"";
    enum { LENGTH = 8, DIGEST = 32, HEX = 2 * DIGEST };
    uint8_t digest[DIGEST];
    char hex[HEX + 1];
    uint64_t head;
    memcpy(&head, bytes, LENGTH);
    size_t data = LENGTH + head, end = data;
    while (bytes[end - 1] == ' ') end--;
    end = (end + CGAM_SEALED_ALIGN - 1) / CGAM_SEALED_ALIGN * CGAM_SEALED_ALIGN;
    head = end - LENGTH;
    memcpy(bytes, &head, LENGTH);
    memmove(bytes + end, bytes + data, size - data);
    /* its digest is that of the head with zeros for it */
    uint8_t *own = memmem(bytes, end, key, sizeof key - 1);
    must(own != NULL);
    own += sizeof key - 1;
    memset(own, '0', HEX);
    crypto_generichash(digest, DIGEST, bytes, end, NULL, 0);
    memcpy(own, sodium_bin2hex(hex, sizeof hex, digest, DIGEST), HEX);
    return size - data + end;
}

/* A small bank with all parts, made once. */
static const uint8_t *sound(size_t *size)
{
    static uint8_t *bytes;
    static size_t length;
    if (!bytes) {
        cgam_env *env = fuzz_env();
        static const char names[] = "a\nb\nc\nd\nb\nf\ng\n";
        static const cgam_memory_file file = {"names", (const uint8_t *)names, sizeof names - 1};
        char rows[] = "/tmp/cgam-fuzz-XXXXXX.npy", path[sizeof rows + 16];
        double Z[N * D];
        for (int i = 0; i < N * D; i++) Z[i] = (i * 7919 % 101) / 50.0 - 1;
        memcpy(Z + 3 * D, Z, sizeof *Z * D); /* twins */
        int fd = mkstemps(rows, 4);
        must(fd >= 0);
        close(fd);
        snprintf(path, sizeof path, "%s.safetensors", rows);
        cgam_pack_opts opts = cgam_pack_opts_default();
        opts.alphas = 1; /* a second would only make the head longer, which is most of the time */
        opts.alpha = (double[]){0.1};
        opts.names = "names";
        cgam_file_overlay_set(&(cgam_file_overlay){&file, 1, false});
        must(cgam_npy_write(env, rows, CGAM_F64, 2, (int64_t[]){N, D}, Z) == CGAM_OK);
        must(cgam_pack(env, rows, &opts, path) == CGAM_OK);
        must(cgam_pack_drop(env, path, N, &(uint64_t){2}) == CGAM_OK);
        cgam_file_overlay_set(NULL);
        bytes = fuzz_take(path, &length);
        length = tighten(bytes, length);
        unlink(rows);
        unlink(path);
    }
    *size = length;
    return bytes;
}

static void recall(cgam_bank *bank, int how)
{
    double q[64] = {1, 0.5, -0.25};
    if (cgam_bank_describe(bank).d > 64) return;
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_result r;
    opts.alpha = (double[]){0, 0.1, 0.1, 3}[how];
    opts.mode = how == 1 ? CGAM_COUPLED : CGAM_FIRST;
    opts.fast = how == 2;
    opts.max_iter = 20;
    if (cgam_recall_once(bank, q, q, &opts, &r) != CGAM_OK) must_be_one_line(fuzz_env());
}

static void use(cgam_bank *bank, int what, bool untouched)
{
    const char *damaged;
    cgam_row_names *names;
    if (what < 4) recall(bank, what);
    else if (what == 4) must(cgam_pack_check(bank, &damaged) == CGAM_OK && !(untouched && damaged));
    else if (cgam_pack_names(bank, &names) == CGAM_OK) cgam_row_names_free(names);
    else must_be_one_line(fuzz_env());
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
            use(bank, (data[0] >> 1) % 6, size == 1 && !(data[0] & 1));
            cgam_bank_free(bank);
        }
    }
    free(bytes);
    return 0;
}
