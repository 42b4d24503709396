/* ctest: timeout=300
 * The store where SQLite finds no memory and the disk does not read or write: what is said is so, no store is called damaged for it, and
 * nothing is left out of what comes. */
#include "lm/collect.h"
#include "lm/store.h"
#include "support/failing_alloc.h"
#include "support/folder.h"
#include "support/objects.h"

#include <cgam/io.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/owned.h"

enum { LAYERS = 1, WIDTH = 4, NUMBERS = (LAYERS + 1) * WIDTH, ROWS = 3 };
#define MODEL "0123456789abcdef"

static const char *path, *states, *all_tokens;

/* ---- Calls that fail -------------------------------------------------------------------------- */
static int64_t fail_at, seen;
static bool for_good; /* and all after it */

static bool fails_now(void)
{
    seen++;
    return fail_at && (for_good ? seen >= fail_at : seen == fail_at);
}

static sqlite3_mem_methods memory;
static bool memory_fails;
static void *give(int size) { return memory_fails && fails_now() ? NULL : memory.xMalloc(size); }
static void *resize(void *block, int size)
{
    return memory_fails && fails_now() ? NULL : memory.xRealloc(block, size);
}

/* SQLite takes EIO for a damaged file system, and says that the file is damaged. */
static int read_error = EACCES;
static ssize_t (*real_read)(int fd, void *to, size_t size, off_t at);
static ssize_t (*real_write)(int fd, const void *from, size_t size, off_t at);
static ssize_t read_at(int fd, void *to, size_t size, off_t at)
{
    if (!fails_now()) return real_read(fd, to, size, at);
    errno = read_error;
    return -1;
}
static ssize_t write_at(int fd, const void *from, size_t size, off_t at)
{
    if (!fails_now()) return real_write(fd, from, size, at);
    errno = ENOSPC;
    return -1;
}

/* SQLite calls ours instead of the system's; NULL: its own again. */
static void put_in(const char *name, sqlite3_syscall_ptr ours, sqlite3_syscall_ptr *real)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (real) *real = vfs->xGetSystemCall(vfs, name);
    assert_int_equal(vfs->xSetSystemCall(vfs, name, ours), SQLITE_OK);
}

static int set_up(void **state)
{
    (void)state;
    folder_in_memory();
    path = folder_file("s.db");
    states = folder_file("x.npz");
    all_tokens = folder_file("x.safetensors");
    sqlite3_shutdown();
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
    sqlite3_mem_methods ours = memory;
    ours.xMalloc = give, ours.xRealloc = resize;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0); /* small blocks are asked for too */
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
    return 0;
}

/* ---- A store without a model ------------------------------------------------------------------ */
static const int32_t words[] = {5, 6, 7, 8};

static cgam_state_key key_of(int i)
{
    return (cgam_state_key){
        .model = MODEL, .exact = true, .prompt = {words, 1 + i}, .dtype = CGAM_F32};
}

static void numbers_of(int i, float *out)
{
    for (int j = 0; j < NUMBERS * (i + 1); j++) out[j] = (float)(i + 1) + 0.25F * (float)j;
}

static const char *text = "text";

static cgam_status fill(cgam_store *store)
{
    float x[NUMBERS * ROWS];
    static const char *const labels[] = {"up", "down", "up"};
    cgam_status status = cgam_store_do(store, "BEGIN");
    if (status == CGAM_OK)
        status = cgam_store_do(store, "INSERT OR IGNORE INTO model VALUES ('" MODEL
                                      "', 'm', 'd', 1, 4, 9)");
    for (int i = 0; i < ROWS && status == CGAM_OK; i++) {
        const cgam_state_key key = key_of(i);
        const cgam_store_place place = {"set", "true", labels[i], 1, 2, i};
        numbers_of(i, x);
        status = cgam_store_put(store, &key, text, "note", x, NUMBERS * sizeof *x);
        if (status == CGAM_OK) status = cgam_store_put_place(store, &key, &place);
        for (int t = 0; t <= i && status == CGAM_OK; t++) /* a token each */
            status = cgam_store_put_span(store, &key, t, 1, x + t * NUMBERS, NUMBERS * sizeof *x);
    }
    return status == CGAM_OK ? cgam_store_do(store, "COMMIT") : status;
}

static cgam_status count_tokens(void *user, const cgam_lm_span *span)
{
    *(int64_t *)user += span->count;
    return CGAM_OK;
}

/* All that is in it, three ways; what comes must be all. */
static cgam_status look(cgam_env *env, cgam_store *store)
{
    float x[NUMBERS], want[NUMBERS * ROWS];
    const cgam_lm_info info = {.layers = LAYERS, .width = WIDTH};
    cgam_store_verdict verdict = {0};
    bool found = false;
    int64_t rows = 0, tokens = 0;
    cgam_status status = CGAM_OK;
    for (int i = 0; i < ROWS && status == CGAM_OK; i++) {
        const cgam_state_key key = key_of(i);
        numbers_of(i, want);
        status = cgam_store_get(store, &key, NUMBERS, x, &found);
        if (status == CGAM_OK) {
            assert_true(found);
            assert_memory_equal(x, want, sizeof x);
        }
        tokens = 0;
        if (status == CGAM_OK)
            status = cgam_store_get_spans(store, &key, &info, count_tokens, &tokens, &found);
        if (status == CGAM_OK) assert_true(found && tokens == i + 1);
    }
    if (status == CGAM_OK) status = cgam_store_check(store, &verdict);
    if (status == CGAM_OK) assert_true(verdict.sound && verdict.rows == ROWS + 6);
    if (status == CGAM_OK) status = cgam_store_export(store, NULL, states, &rows);
    if (status == CGAM_OK) assert_int_equal(rows, ROWS);
    if (status == CGAM_OK) status = cgam_store_export_tokens(store, NULL, all_tokens, &rows);
    if (status == CGAM_OK) assert_int_equal(rows, ROWS);
    (void)env;
    return status;
}

static int use(cgam_env *env, void *arg)
{
    (void)arg;
    OWNED(cgam_store) store = NULL;
    TRY(cgam_store_open(env, path, true, &store));
    TRY(fill(store));
    TRY(look(env, store));
    return CGAM_OK;
}

static void begin_anew(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char file[112];
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
}

/* Call k fails; true when there were fewer. anew: on a new store, else on one that is full. */
static bool one_run(int64_t k, bool good, bool anew, cgam_status wanted)
{
    failing_alloc blocks = {0};
    const cgam_env_opts opts = failing_alloc_opts(&blocks, 1);
    cgam_env *env;
    if (anew) begin_anew();
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    fail_at = k, for_good = good, seen = 0;
    cgam_status status = use(env, NULL);
    fail_at = 0;
    const char *said = cgam_env_message(env);
    if (status != CGAM_OK &&
        ((status != wanted && status != CGAM_E_NOMEM) || !*said || strchr(said, '\n')))
        fail_msg("call %d failed: status %d with '%s'", (int)k, status, said);
    if (seen < k) CHECK_STATUS(env, status);
    cgam_env_free(env);
    assert_int_equal(blocks.live, 0);
    return seen < k;
}

/* Most calls come from a few loops. */
static int64_t step_of(int64_t k) { return k < 40 ? 1 : 11; }

TEST(sqlite_may_find_no_memory)
{
    int64_t runs = 0;
    memory_fails = true;
    for (int anew = 1; anew >= 0; anew--)
        for (int64_t k = 1; !one_run(k, false, anew, CGAM_E_NOMEM); k += step_of(k)) runs++;
    memory_fails = false;
    assert_true(runs > 100);
}

TEST(the_disk_may_not_read_or_write)
{
    int64_t runs = 0;
    put_in("pread64", (sqlite3_syscall_ptr)read_at, (sqlite3_syscall_ptr *)&real_read);
    for (int64_t k = 1; !one_run(k, false, true, CGAM_E_IO); k += step_of(k)) runs++;
    for (int64_t k = 1; !one_run(k, true, false, CGAM_E_IO); k += step_of(k)) runs++;
    put_in("pread64", NULL, NULL);
    put_in("pwrite64", (sqlite3_syscall_ptr)write_at, (sqlite3_syscall_ptr *)&real_write);
    for (int64_t k = 1; !one_run(k, false, true, CGAM_E_IO); k += step_of(k)) runs++;
    for (int64_t k = 1; !one_run(k, true, true, CGAM_E_IO); k += step_of(k)) runs++;
    put_in("pwrite64", NULL, NULL);
    assert_true(runs > 20);
}

/* SQLite's check tells of pages that it could not read as of damage: here pages of a row that is longer than one. */
TEST_ENV(a_page_that_is_not_read_is_not_damage)
{
    static char lengthy[20000];
    static const int errors[] = {EACCES, EIO};
    cgam_store *store;
    memset(lengthy, 'x', sizeof lengthy - 1);
    text = lengthy;
    begin_anew();
    assert_int_equal(use(env, NULL), CGAM_OK);
    text = "text";
    put_in("pread64", (sqlite3_syscall_ptr)read_at, (sqlite3_syscall_ptr *)&real_read);
    for (int i = 0; i < 2; i++) {
        int64_t runs = 0;
        read_error = errors[i];
        for (bool done = false; !done; runs++) {
            cgam_store_verdict verdict = {0};
            CHECK_STATUS(env, cgam_store_open(env, path, false, &store));
            fail_at = runs + 1, for_good = false, seen = 0;
            cgam_status status = cgam_store_check(store, &verdict);
            done = seen < fail_at;
            fail_at = 0;
            if (status == CGAM_OK && !verdict.sound)
                fail_msg("read %d failed: the store is called damaged", (int)runs + 1);
            if (done) CHECK_STATUS(env, status);
            cgam_store_close(store);
        }
        assert_true(runs > 20);
    }
    read_error = EACCES;
    put_in("pread64", NULL, NULL);
}

TEST(our_own_memory_may_end)
{
    begin_anew();
    assert_true(check_every_allocation(use, NULL) > 20);
}

TEST_GROUP(set_up, NULL)
