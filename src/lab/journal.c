/* journal.c: records one after another. */
#include "lab/journal.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char MAGIC[16] = "cgam journal 1";
static const double SYNC_SECONDS = 1;

typedef struct head {
    char magic[16];
    uint64_t run;
} head;

typedef struct prefix {
    uint64_t key, size, sum; /* then size bytes */
} prefix;

struct cgam_journal {
    cgam_env *env;
    char *path;
    int fd;
    cgam_file old; /* the file as found; records of this run are in its first `used` bytes */
    size_t used;
    double synced;
};

uint64_t cgam_hash(uint64_t h, const void *bytes, size_t size)
{
    const unsigned char *c = bytes;
    for (size_t i = 0; i < size; i++) h = (h ^ c[i]) * 0x100000001b3u;
    return h;
}

static uint64_t checksum(uint64_t key, const void *bytes, size_t size)
{
    return cgam_hash(cgam_hash(CGAM_HASH, &key, sizeof key), bytes, size);
}

static cgam_status fail_io(cgam_journal *j, const char *what, int error)
{
    char text[128];
    return cgam_fail(j->env, CGAM_E_IO, "%s: cannot %s: %s", cgam_path_tail(j->path), what,
                     strerror_r(error, text, sizeof text));
}

static cgam_status fail_busy(cgam_journal *j)
{
    const char *slash = strrchr(j->path, '/');
    char *folder = cgam_strdup(j->env, slash ? j->path : ".");
    if (!folder) return cgam_fail_nomem(j->env, "progress");
    if (slash) folder[slash - j->path] = '\0';
    cgam_status status = cgam_fail(j->env, CGAM_E_IO, "%s: another run is using this folder",
                                   cgam_path_tail(folder));
    cgam_free(j->env, folder);
    return status;
}

/* Opens and locks the file. If its previous owner has removed it meanwhile, opens a new one. */
static cgam_status open_locked(cgam_journal *j)
{
    struct stat st = {0};
    do {
        if (j->fd >= 0) close(j->fd);
        j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (j->fd < 0) return fail_io(j, "write", errno);
        if (flock(j->fd, LOCK_EX | LOCK_NB) != 0)
            return errno == EWOULDBLOCK ? fail_busy(j) : fail_io(j, "lock", errno);
        if (fstat(j->fd, &st) != 0) return fail_io(j, "read", errno);
        if (!S_ISREG(st.st_mode)) /* opening a pipe would wait for a writer: us */
            return cgam_fail(j->env, CGAM_E_IO, "%s: cannot write: not a regular file",
                             cgam_path_tail(j->path));
    } while (st.st_nlink == 0);
    return CGAM_OK;
}

/* Reads the record at *at within the first `size` bytes of the file. */
static bool read_record(const cgam_journal *j, size_t size, size_t *at, cgam_record *out)
{
    prefix p;
    if (size < *at || size - *at < sizeof p) return false;
    memcpy(&p, j->old.bytes + *at, sizeof p);
    if (p.size > size - *at - sizeof p) return false;
    *out = (cgam_record){p.key, (size_t)p.size, j->old.bytes + *at + sizeof p};
    if (checksum(p.key, out->bytes, out->size) != p.sum) return false;
    *at += sizeof p + out->size;
    return true;
}

/* replaces: a file of another run is emptied. */
static cgam_status read_records(cgam_journal *j, uint64_t run, bool replaces)
{
    head want = {.run = run};
    cgam_record r;
    memcpy(want.magic, MAGIC, sizeof want.magic);
    cgam_status status = cgam_file_map(j->env, j->path, &j->old);
    if (status != CGAM_OK) return status;
    if (j->old.size >= sizeof want && memcmp(j->old.bytes, &want, sizeof want) == 0) {
        j->used = sizeof want;
        while (read_record(j, j->old.size, &j->used, &r))
            if (cgam_interrupted(j->env)) return CGAM_E_INTERRUPTED;
    } else if (!replaces && j->old.size > 0) {
        bool journal = j->old.size >= sizeof want && memcmp(j->old.bytes, MAGIC, sizeof MAGIC) == 0;
        return cgam_fail(j->env, CGAM_E_ARG,
                         journal ? "%s: the journal of a run with other data or options; remove "
                                   "it, or name another file"
                                 : "%s: not a journal; name another file",
                         cgam_path_tail(j->path));
    }
    int error = 0;
    if (ftruncate(j->fd, (off_t)j->used) != 0 || lseek(j->fd, (off_t)j->used, SEEK_SET) < 0)
        error = errno;
    if (!error && j->used == 0) error = cgam_write_all(j->fd, &want, sizeof want);
    return error ? fail_io(j, "write", error) : CGAM_OK;
}

static cgam_status open_journal(cgam_env *env, const char *path, uint64_t run, bool replaces,
                                cgam_journal **out)
{
    *out = NULL;
    cgam_journal *j = cgam_zalloc(env, 1, sizeof *j);
    if (!j) return cgam_fail_nomem(env, "progress");
    *j = (cgam_journal){
        .env = env, .path = cgam_strdup(env, path), .fd = -1, .synced = cgam_clock()};
    cgam_status status = j->path ? open_locked(j) : cgam_fail_nomem(env, "progress");
    if (status == CGAM_OK) status = read_records(j, run, replaces);
    if (status == CGAM_OK) *out = j;
    else cgam_journal_close(j);
    return status;
}

cgam_status cgam_journal_open(cgam_env *env, const char *path, uint64_t run, cgam_journal **out)
{
    return open_journal(env, path, run, true, out);
}

cgam_status cgam_journal_resume(cgam_env *env, const char *path, uint64_t run, cgam_journal **out)
{
    return open_journal(env, path, run, false, out);
}

bool cgam_journal_next(const cgam_journal *j, size_t *at, cgam_record *out)
{
    if (*at == 0) *at = sizeof(head);
    return read_record(j, j->used, at, out);
}

cgam_status cgam_journal_add(cgam_journal *j, cgam_record r)
{
    prefix p = {r.key, r.size, checksum(r.key, r.bytes, r.size)};
    double now = cgam_clock();
    int error = cgam_write_all(j->fd, &p, sizeof p);
    if (!error) error = cgam_write_all(j->fd, r.bytes, r.size);
    if (!error && now - j->synced > SYNC_SECONDS) {
        if (fdatasync(j->fd) != 0) error = errno;
        j->synced = now;
    }
    return error ? fail_io(j, "write", error) : CGAM_OK;
}

void cgam_journal_close(cgam_journal *j)
{
    if (!j) return;
    cgam_file_unmap(&j->old);
    if (j->fd >= 0) close(j->fd); /* also releases the lock */
    cgam_free(j->env, j->path);
    cgam_free(j->env, j);
}
