/* A store of states with some of its bytes replaced, or any bytes at all: it is refused in one line, or listed, checked or
 * exported without leaving memory. Input: that of fuzz_damage, whose first byte says which of these, too.
 * ctest: mutations=1000 */
#include "fuzz/readers.h"
#include "io/file.h"
#include "lm/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LAYERS = 2, WIDTH = 3, ROWS = 3, TOKENS = 2 };

static char folder[] = "/dev/shm/cgam-fuzz-XXXXXX", path[64], npy[64], spans[64], index_file[64];

static void sweep(void)
{
    char log[80];
    const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        snprintf(log, sizeof log, "%s%s", path, ends[i]);
        unlink(log);
    }
    unlink(npy);
    unlink(spans);
    unlink(index_file);
}

static void leave(void)
{
    sweep();
    rmdir(folder);
}

/* A small store with all tables, made once. */
static const uint8_t *sound(size_t *size)
{
    static uint8_t *bytes;
    static size_t length;
    if (!bytes) {
        /* Neither locks nor sums of memory: there is one thread. */
        must(sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) == SQLITE_OK &&
             sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK);
        cgam_env *env = fuzz_env();
        cgam_store *store;
        float data[(LAYERS + 1) * WIDTH * TOKENS] = {1, 2, 3, 4, 5, 6, 7, 8, 9,
                                                     1, 2, 3, 4, 5, 6, 7, 8, 9};
        must(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/s.db", folder);
        snprintf(npy, sizeof npy, "%s/s.npy", folder);
        snprintf(index_file, sizeof index_file, "%s/s.index.csv", folder);
        snprintf(spans, sizeof spans, "%s/s.safetensors", folder);
        atexit(leave);
        must(cgam_store_open(env, path, true, &store) == CGAM_OK);
        must(cgam_store_do(store, "INSERT INTO model VALUES ('0123', 'm', 'd', 2, 3, 7)") ==
             CGAM_OK);
        for (int i = 0; i < ROWS; i++) {
            const int32_t tokens[TOKENS] = {1, i};
            cgam_state_key key = {"0123", false, {tokens, TOKENS}, CGAM_F32};
            cgam_store_place place = {.source = "s", .demos = "true", .label = "up", .query = i};
            must(cgam_store_put(store, &key, "text", "", data, sizeof data / TOKENS) == CGAM_OK);
            must(cgam_store_put_place(store, &key, &place) == CGAM_OK);
            must(cgam_store_put_span(store, &key, 0, TOKENS, data, sizeof data) == CGAM_OK);
        }
        must(cgam_store_do(store, "PRAGMA wal_checkpoint(TRUNCATE)") == CGAM_OK);
        cgam_store_close(store);
        bytes = fuzz_take(path, &length);
    }
    *size = length;
    return bytes;
}

static cgam_status each(void *user, const cgam_store_group *g)
{
    (void)user;
    must(g->layers >= 0 && g->width > 0 && strlen(g->model) < sizeof g->model);
    return CGAM_OK;
}

static void use(cgam_env *env, cgam_store *store, int what)
{
    cgam_store_verdict verdict;
    int64_t rows;
    cgam_status status = what == 0   ? cgam_store_list(store, each, NULL)
                         : what == 1 ? cgam_store_check(store, &verdict)
                         : what == 2 ? cgam_store_export(store, NULL, npy, &rows)
                                     : cgam_store_export_tokens(store, NULL, spans, &rows);
    if (status != CGAM_OK) must_be_one_line(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    size_t length;
    if (size == 0) return 0;
    const uint8_t *from = sound(&length);
    uint8_t *bytes = fuzz_damage(data, size, from, &length);
    sweep();
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    close(fd);
    free(bytes);
    cgam_store *store;
    if (cgam_store_open(env, path, false, &store) != CGAM_OK) {
        must_be_one_line(env);
        must(!store);
    } else {
        use(env, store, data[0] >> 1 & 3);
        cgam_store_close(store);
    }
    return 0;
}
