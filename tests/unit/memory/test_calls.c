/* Calls to the system and LAPACK's own requests for memory, each failing in turn, while a bank is read, cut, decomposed and asked. */
#include "lab/map.h"
#include "memory/bank.h"
#include "memory/gate.h"
#include "support/check.h"
#include "support/failing_calls.h"

#include <cgam/bank.h>
#include <cgam/io.h>
#include <cgam/recall.h>
#include <cgam/theory.h>
#include <unistd.h>

#include "support/owned.h"

enum { N = 5, D = 3 };

typedef struct files {
    char dir[32], bank[64], mask[64], names[64], packed[64], more[64];
} files;

static files make_files(void)
{
    files f; /* in memory where that can be had: hundreds of files are synced */
    snprintf(f.dir, sizeof f.dir, "%s/cgam-calls-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    const double Z[N * D] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0.6, 0.8, 0, 0.5, 0.5, 2};
    const int64_t shape[] = {N, D}, rows = 2, some[] = {0, 3};
    cgam_env *env;
    assert_non_null(mkdtemp(f.dir));
    snprintf(f.bank, sizeof f.bank, "%s/Z.npy", f.dir);
    snprintf(f.mask, sizeof f.mask, "%s/mask.npy", f.dir);
    snprintf(f.names, sizeof f.names, "%s/names", f.dir);
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    CHECK_STATUS(env, cgam_npy_write(env, f.bank, CGAM_F64, 2, shape, Z));
    CHECK_STATUS(env, cgam_npy_write(env, f.mask, CGAM_I64, 1, &rows, some));
    cgam_env_free(env);
    FILE *to = fopen(f.names, "w");
    fputs("a\nb\nc\nd\r\ne", to);
    fclose(to);
    return f;
}

static int look_into(cgam_env *env, void *arg)
{
    const files *f = arg;
    cgam_bank *bank = NULL, *some = NULL;
    cgam_spectrum *sp = NULL;
    cgam_row_names *names = NULL;
    uint64_t *mask = NULL;
    cgam_plane plane = {0};
    cgam_inspection in;
    cgam_result r;
    double mu[D];
    cgam_gram_info gram;
    const double q[D] = {0.5, 0.2, 0.1};
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = 0.1;
    o.certify = true;
    cgam_status status = cgam_bank_load(env, f->bank, NULL, &bank);
    if (status == CGAM_OK) status = cgam_row_names_load(env, f->names, &names);
    if (status == CGAM_OK) status = cgam_mask_load(env, f->mask, N, names, &mask);
    if (status == CGAM_OK) status = cgam_bank_only(bank, mask, &some);
    if (status == CGAM_OK) status = cgam_spectrum_new(bank, &sp);
    if (status == CGAM_OK) status = cgam_bank_eigenvalues(bank, mu, &gram);
    if (status == CGAM_OK) status = cgam_plane_new(bank, 0, NULL, &plane);
    if (status == CGAM_OK) status = cgam_bank_inspect(bank, 0.1, 1, 1, &in);
    if (status == CGAM_OK) status = cgam_recall_once(bank, q, q, &o, &r);
    if (status == CGAM_OK && (gram.rank != D || r.end != CGAM_END_CONVERGED))
        fail_msg("what is survived is right: rank %d, end %d", (int)gram.rank, (int)r.end);
    cgam_plane_free(env, &plane);
    cgam_spectrum_free(sp);
    cgam_bank_free(some);
    cgam_mask_free(env, mask);
    cgam_row_names_free(names);
    cgam_bank_free(bank);
    return status;
}

TEST(a_bank_is_read_and_asked_or_the_failure_named)
{
    files f = make_files();
    assert_true(check_every_call(look_into, &f, NULL) > 20);
    unlink(f.bank);
    unlink(f.mask);
    unlink(f.names);
    rmdir(f.dir);
}

/* A bank that is there gets two more rows. */
static int add_rows(cgam_env *env, void *arg)
{
    const files *f = arg;
    return cgam_pack_add(env, f->packed, f->more, NULL);
}

/* The file of before, or the one of after; never another. Of what succeeded a new one is made. */
static void old_or_new(void *arg, int status, const char *call)
{
    const files *f = arg;
    OWNED(cgam_env) env = NULL;
    cgam_bank *bank = NULL;
    const char *damaged = NULL;
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    CHECK_STATUS(env, cgam_bank_load(env, f->packed, NULL, &bank));
    int64_t n = cgam_bank_describe(bank).n;
    CHECK_STATUS(env, cgam_pack_check(bank, &damaged));
    /* a folder that cannot be synced, or a close after all is done, may come too late to undo it */
    if (damaged || (n != N && n != N + 2) || (status == CGAM_OK && n != N + 2))
        fail_msg("%s failed with status %d: %d memories, damaged: %s", call, status, (int)n,
                 damaged ? damaged : "nothing");
    cgam_bank_free(bank);
    if (n != N) CHECK_STATUS(env, cgam_pack(env, f->bank, NULL, f->packed));
}

TEST(a_packed_bank_is_changed_or_stays)
{
    files f = make_files();
    const int64_t shape[] = {2, D};
    const double two[2 * D] = {3, 0, 0, 0, 3, 0};
    cgam_env *env;
    snprintf(f.packed, sizeof f.packed, "%s/Z.safetensors", f.dir);
    snprintf(f.more, sizeof f.more, "%s/more.npy", f.dir);
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    CHECK_STATUS(env, cgam_npy_write(env, f.more, CGAM_F64, 2, shape, two));
    CHECK_STATUS(env, cgam_pack(env, f.bank, NULL, f.packed));
    cgam_env_free(env);
    assert_true(check_every_call(add_rows, &f, old_or_new) > 20);
    unlink(f.bank);
    unlink(f.mask);
    unlink(f.names);
    unlink(f.more);
    unlink(f.packed);
    assert_int_equal(rmdir(f.dir), 0); /* and nothing else is there */
}
