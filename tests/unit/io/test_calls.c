/* Every call of every reader and writer to the C library and the system made to fail in turn: what is said is one line, what
 * was there before stays or is replaced as a whole. */
#include "io/array.h"
#include "unit/io/scratch.h"

#include "base/env.h"
#include "io/sealed.h"
#include "io/shards.h"
#include "lab/child.h"
#include "lab/document.h"
#include "lab/folder.h"
#include "lab/journal.h"
#include "lab/table.h"
#include "lm/gguf.h"
#include "lm/placed.h"
#include "support/failing_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "support/owned.h"

static char target[600]; /* of writers, alone in its folder */
static const double two[] = {1, 2};
static const int64_t pair[] = {2};
static const cgam_named_array arrays[] = {{"a", CGAM_F64, 1, pair, two},
                                          {"b", CGAM_F64, 0, NULL, two}};

/* ---- readers ---------------------------------------------------------------------------------- */

static int read_document(cgam_env *env, void *arg)
{
    OWNED(json_t) doc = NULL;
    cgam_status status = cgam_json_load(env, arg, &doc);
    return status;
}

static int read_shards(cgam_env *env, void *arg)
{
    cgam_shards shards;
    cgam_status status = cgam_shards_open(env, arg, &shards);
    cgam_shards_close(env, &shards);
    return status;
}

/* A number through a pipe, by calls that do not fail. */
static int read_pipe(cgam_env *env, void *arg)
{
    int ends[2];
    char path[32];
    cgam_array a;
    const char *text = arg;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(syscall(SYS_write, ends[1], text, strlen(text)), strlen(text));
    syscall(SYS_close, ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    cgam_status status = cgam_array_open(env, path, &a);
    cgam_array_close(env, &a);
    syscall(SYS_close, ends[0]);
    return status;
}

/* The same as standard input, and more than is made room for at first. */
static int read_much(cgam_env *env, void *arg)
{
    static char bytes[100000];
    int ends[2], before = fcntl(0, F_DUPFD_CLOEXEC, 10);
    cgam_array a;
    (void)arg;
    for (size_t i = 0; i < sizeof bytes; i += 2) memcpy(bytes + i, "1\n", 2);
    assert_int_equal(pipe(ends), 0);
    assert_true(before >= 0 && fcntl(ends[1], F_SETPIPE_SZ, 1 << 17) >= 1 << 17);
    assert_int_equal(syscall(SYS_write, ends[1], bytes, sizeof bytes), sizeof bytes);
    syscall(SYS_close, ends[1]);
    dup2(ends[0], 0);
    syscall(SYS_close, ends[0]);
    cgam_status status = cgam_array_open(env, "-", &a);
    cgam_array_close(env, &a);
    dup2(before, 0);
    syscall(SYS_close, before);
    return status;
}

/* No file is to blame for memory; libzip says so of some of its own. */
static void not_blamed(void *arg, int status, const char *call)
{
    if (strcmp(call, "malloc") == 0 && status == CGAM_E_FORMAT && !strstr(arg, ".npz"))
        fail_msg("malloc failed, and %s is called damaged", (const char *)arg);
}

TEST(every_call_of_a_reader_may_fail)
{
    static const char *const files[] = {"f8.npy", "fortran.npy", "stored.npz:a", "deflated.npz:a",
                                        "all.safetensors:f64"};
    static char piped[] = "1,2\n3,4\n";
    char path[1024];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s", data_path(files[i]));
        assert_true(check_every_call(read_array, path, not_blamed) > 10);
    }
    snprintf(path, sizeof path, "%s", put_text("m.csv", "a,b\n1,2\n"));
    assert_true(check_every_call(read_array, path, not_blamed) > 10);
    snprintf(path, sizeof path, "%s", put_text("d.json", "{\"a\": [1, 2, \"x\"]}"));
    assert_true(check_every_call(read_document, path, not_blamed) > 10);
    snprintf(path, sizeof path, "%s", scratch("*.csv"));
    assert_true(check_every_call(read_shards, path, not_blamed) > 10);
    assert_true(check_every_call(read_pipe, piped, NULL) > 10);
    assert_true(check_every_call(read_much, NULL, NULL) > 10);
    scratch_files(true);
}

static int run_child(cgam_env *env, void *arg)
{
    const char *words[] = {"true", NULL};
    const cgam_child child = {
        .argv = words, .folder = "/", .log = "/dev/null", .log_all = arg != NULL};
    pid_t pid;
    int error = cgam_child_start(&child, &pid);
    if (error) return cgam_fail(env, CGAM_E_IO, "true: %s", strerror(error));
    int end = cgam_child_wait(pid);
    return end == 0 ? CGAM_OK : cgam_fail(env, CGAM_E_IO, "true ended with %d", end);
}

static int keep_journal(cgam_env *env, void *arg)
{
    OWNED(cgam_journal) j = NULL;
    cgam_status status = cgam_journal_open(env, arg, 7, &j);
    if (status != CGAM_OK) return status;
    status = cgam_journal_add(j, (cgam_record){1, sizeof two, two});
    return status;
}

static int use_folder(cgam_env *env, void *arg)
{
    size_t there = cgam_folder_there(arg);
    TRY(cgam_folder_make(env, arg));
    TRY(cgam_folder_remove(env, arg, "none"));
    cgam_folder_unmake(arg, there);
    return CGAM_OK;
}

static int as_text(cgam_env *env, void *doc)
{
    char *text;
    cgam_status status = cgam_json_text(env, doc, &text);
    if (status == CGAM_OK) assert_string_equal(text, "{\n \"a\": [1.5, \"t\"]\n}\n");
    cgam_free(env, text);
    return status;
}

TEST(every_call_of_other_helpers_may_fail)
{
    char path[1024];
    json_t *doc = json_pack("{s:[f,s]}", "a", 1.5, "t");
    assert_true(check_every_call(as_text, doc, NULL) > 0);
    json_decref(doc);
    assert_true(check_every_call(run_child, NULL, NULL) > 10);
    assert_true(check_every_call(run_child, path, NULL) > 10);
    snprintf(path, sizeof path, "%s", scratch("j"));
    assert_true(check_every_call(keep_journal, path, NULL) > 10);
    unlink(path);
    snprintf(path, sizeof path, "%s", scratch("a/b"));
    assert_true(check_every_call(use_folder, path, NULL) > 10);
    rmdir(scratch("a/b"));
    scratch_files(true);
}

/* ---- writers ---------------------------------------------------------------------------------- */

static int write_npy(cgam_env *env, void *arg)
{
    (void)arg;
    return cgam_npy_write(env, target, CGAM_F64, 1, pair, two);
}

static int write_arrays(cgam_env *env, void *arg)
{
    (void)arg;
    return cgam_arrays_write(env, target, 2, arrays);
}

static int write_placed(cgam_env *env, void *arg)
{
    cgam_placed *p;
    cgam_status status = cgam_placed_begin(env, target, 1, arrays, &p);
    (void)arg;
    if (status != CGAM_OK) return status;
    for (int i = 1; i >= 0 && status == CGAM_OK; i--) status = cgam_placed_put(p, 0, i, 1, two + i);
    if (status == CGAM_OK) return cgam_placed_finish(p);
    cgam_placed_abandon(p);
    return status;
}

static int write_sealed(cgam_env *env, void *arg)
{
    cgam_sealed *file;
    const void *map;
    const cgam_part half = {"half", "F64", 1, {1, 0}, NULL}, all = {"all", "F64", 2, {2, 1}, two};
    cgam_status status = cgam_sealed_begin(env, target, 1024, &file);
    (void)arg;
    if (status != CGAM_OK) return status;
    status = cgam_sealed_note(file, "key", "text");
    if (status == CGAM_OK) status = cgam_sealed_part(file, &half);
    if (status == CGAM_OK) status = cgam_sealed_write(file, two, sizeof *two);
    if (status == CGAM_OK) status = cgam_sealed_map(file, &map);
    if (status == CGAM_OK) assert_memory_equal(map, two, sizeof *two);
    if (status == CGAM_OK) status = cgam_sealed_part(file, &all);
    if (status == CGAM_OK) return cgam_sealed_commit(file);
    cgam_sealed_abandon(file);
    return status;
}

static int write_vectors(cgam_env *env, void *arg)
{
    static const float data[] = {1, 2};
    const cgam_gguf_key keys[] = {{"a", "text", 0}, {"b", NULL, 7}};
    const cgam_gguf_vector v = {"v", data};
    (void)arg;
    return cgam_gguf_write(env, target, 2, keys, 1, 2, &v);
}

static int write_table(cgam_env *env, void *arg)
{
    const cgam_table table = {
        .name = "t", .heads = "a,b", .rows = 1, .columns = 2, .cells = (double[]){1, 2}};
    return cgam_table_write(env, &table, arg);
}

static int write_document(cgam_env *env, void *arg)
{
    OWNED(json_t) doc = json_object();
    cgam_json_put_real(doc, "a", 1.5);
    cgam_json_put(doc, "b", cgam_json_reals(two, 2, 1));
    cgam_json_put_text(doc, "c", "t\xc3\xa4xt");
    cgam_json_put(doc, "d", cgam_json_lossy("\xc3\xa4\xff"));
    cgam_status status = cgam_json_save(env, arg, "t.json", doc);
    return status;
}

static struct {
    uint8_t *bytes;
    size_t size;
} want;

static bool is(const char *path, const void *bytes, size_t size)
{
    size_t have;
    uint8_t *now = get(path, &have);
    bool same = have == size && memcmp(now, bytes, size) == 0;
    free(now);
    return same;
}

static void whole(void *arg, int status, const char *call)
{
    bool old = is(target, "old", 3), new = is(target, want.bytes, want.size);
    if (!(status == CGAM_OK ? new : old || new))
        fail_msg("%s failed, status %d: %s is neither old nor new", call, status, target);
    int files = 0;
    DIR *folder = opendir(arg);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        files += entry->d_name[0] != '.' || entry->d_name[1] == 'c';
    if (folder) closedir(folder);
    if (files != 1 && strcmp(call, "unlink") != 0) fail_msg("%s failed: %d files", call, files);
    put("out/x", "old", 3);
    assert_int_equal(rename(scratch("out/x"), target), 0);
}

TEST(every_call_of_a_writer_may_fail)
{
    static const struct {
        const char *name;
        check_scenario run;
    } writers[] = {
        {"t.npy", write_npy},      {"t.npz", write_arrays},         {"t.safetensors", write_arrays},
        {"t.npy", write_placed},   {"t.safetensors", write_placed}, {"t.safetensors", write_sealed},
        {"t.gguf", write_vectors}, {"t.csv", write_table},          {"t.json", write_document}};
    char folder[540];
    snprintf(folder, sizeof folder, "%s", scratch("out"));
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        OWNED(cgam_env) env = new_env();
        assert_int_equal(mkdir(folder, 0700), 0);
        snprintf(target, sizeof target, "%s/%s", folder, writers[i].name);
        CHECK_STATUS(env, (cgam_status)writers[i].run(env, folder));
        want.bytes = get(target, &want.size);
        assert_true(check_every_call(writers[i].run, folder, whole) > 30);
        free(want.bytes);
        unlink(target);
        assert_int_equal(rmdir(folder), 0);
    }
}

TEST_GROUP(scratch_setup, scratch_teardown)

int main(void)
{
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* thousands of fsyncs */
    return check_run_tests();
}
