/* A store of states with some of its bytes replaced, or any bytes at all: it is refused in one line, or listed, checked or
 * exported without leaving memory. Input: that of fuzz_damage, whose first byte says which of these, too.
 * ctest: mutations=1000 */
#include "fuzz/memory_vfs.h"
#include "lm/collect.h"
#include "lm/store.h"

#include <stdio.h>
#include <unistd.h>

enum { LAYERS = 2, WIDTH = 3, ROWS = 3, TOKENS = 2 };

/* The store is in memory, and what is exported in a folder that is. */
static const char path[] = "s.db";
static char folder[] = "/dev/shm/cgam-fuzz-XXXXXX", npy[64], spans[64], index_file[64];

static void leave(void)
{
    unlink(npy);
    unlink(spans);
    unlink(index_file);
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
        fuzz_files_in_memory();
        cgam_env *env = fuzz_env();
        cgam_store *store;
        float data[(LAYERS + 1) * WIDTH * TOKENS] = {1, 2, 3, 4, 5, 6, 7, 8, 9,
                                                     1, 2, 3, 4, 5, 6, 7, 8, 9};
        must(mkdtemp(folder) != NULL);
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
        /* Small pages, so that damage falls on what is used. */
        must(cgam_store_do(store, "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM; "
                                  "PRAGMA journal_mode = WAL") == CGAM_OK);
        cgam_store_close(store);
        fuzz_bytes *file = fuzz_file_find(path);
        must(file != NULL);
        length = file->size;
        bytes = malloc(length);
        must(bytes != NULL);
        memcpy(bytes, file->bytes, length);
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
    for (int i = 0; i < FUZZ_FILES; i++) fuzz_file_drop(&fuzz_files[i]);
    fuzz_file_put(path, bytes, length);
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
