/* run.c: blocks of work, in parallel, with progress that survives a kill.
 *
 * The progress file is a header and then one record after another, as blocks finish: index, the
 * doubles, a checksum. A kill can only tear the last record; reading stops there and the file is
 * cut back. The header carries a fingerprint of everything the numbers depend on (version, options,
 * seed, vector code, a given bank's rows), so a file from another run is never continued but replaced. */
#include "io/file.h"
#include "io/folder.h"
#include "study/study.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ROOMS_MAX = 4096 };
static const char MAGIC[16] = "cgam progress 1";
static const double SYNC_SECONDS = 1, TELL_SECONDS = 0.1;

typedef struct header {
    char magic[16];
    uint64_t key;
    int64_t count, record;
} header;

typedef struct run {
    cgam_study *study;
    cgam_blocks *b;
    bool *done;
    int64_t finished, before; /* blocks done, and of those the ones an earlier run did */
    pthread_mutex_t lock;     /* guards what follows */
    int rooms;
    void *room[ROOMS_MAX]; /* rooms nobody uses just now */
    int fd;                /* -1: progress is not kept */
    double begun, synced, told;
} run;

static uint64_t hash(uint64_t h, const void *bytes, size_t size)
{
    const unsigned char *c = bytes; /* FNV-1a, 64 bits */
    for (size_t i = 0; i < size; i++) h = (h ^ c[i]) * 0x100000001b3u;
    return h;
}

/* A bank's sizes and every row of it: norms alone would not tell two normalised banks apart. */
static cgam_status hash_bank(cgam_env *env, const cgam_bank *bank, uint64_t *key)
{
    cgam_bank_info info = cgam_bank_describe(bank);
    uint64_t h = hash(hash(*key, &info.n, sizeof info.n), &info.d, sizeof info.d);
    double *row = cgam_alloc(env, (size_t)info.d, sizeof *row);
    cgam_status status = row ? CGAM_OK : cgam_fail_nomem(env, "progress");
    for (int64_t i = 0; i < info.n && status == CGAM_OK; i++) {
        status = cgam_bank_row(bank, i, row);
        for (int64_t j = 0; j < info.d && status == CGAM_OK; j++) {
            uint64_t bits; /* a word at a time: a bank may be large */
            memcpy(&bits, &row[j], sizeof bits);
            h = (h ^ bits) * 0x9e3779b97f4a7c15u;
            h ^= h >> 32;
        }
    }
    cgam_free(env, row);
    *key = h;
    return status;
}

/* Everything the records depend on. */
static cgam_status fingerprint(const cgam_study *study, const cgam_blocks *b, uint64_t *key)
{
    const cgam_study_opts *o = &study->opts;
    uint64_t h = 0xcbf29ce484222325u;
    const char *texts[] = {cgam_version(), cgam_study_kind_name(o->kind), study->lanes->name};
    for (int i = 0; i < 3; i++) h = hash(h, texts[i], strlen(texts[i]) + 1);
    int64_t sizes[] = {b->count, b->record};
    h = hash(h, sizes, sizeof sizes);
    const cgam_study_param *p;
    for (int64_t k = 0; (p = cgam_study_param_at(o->kind, k)); k++) {
        int64_t count = cgam_study_param_count(p, o);
        h = hash(h, p->name, strlen(p->name) + 1);
        h = hash(h, &count, sizeof count);
        for (int64_t i = 0; i < count; i++) {
            double value = cgam_study_param_value(p, o, i);
            h = hash(h, &value, sizeof value);
        }
    }
    h = hash(h, &o->seed, sizeof o->seed); /* all of its bits */
    *key = h;
    return o->bank ? hash_bank(study->env, o->bank, key) : CGAM_OK;
}

static cgam_status write_failed(cgam_study *study, int error)
{
    char text[128];
    return cgam_fail(study->env, CGAM_E_IO, "%s: cannot write: %s", cgam_path_tail(study->progress),
                     strerror_r(error, text, sizeof text));
}

/* Both give 0 or errno. A write can be cut short by a full disk. */
static int write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t put = write(fd, at, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : ENOSPC;
        at += put;
        size -= (size_t)put;
    }
    return 0;
}

static bool read_all(int fd, void *bytes, size_t size)
{
    char *at = bytes;
    while (size > 0) {
        ssize_t got = read(fd, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static uint64_t record_sum(int64_t i, const double *record, int64_t size)
{
    return hash(hash(0xcbf29ce484222325u, &i, sizeof i), record, (size_t)size * sizeof *record);
}

/* Opens the progress file and takes over what it holds. */
static cgam_status progress_open(run *r)
{
    cgam_study *study = r->study;
    cgam_blocks *b = r->b;
    cgam_status status = cgam_folder_make(study->env, study->out);
    if (status != CGAM_OK) return status;
    r->fd = open(study->progress, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (r->fd < 0) return write_failed(study, errno);
    if (flock(r->fd, LOCK_EX | LOCK_NB) != 0)
        return cgam_fail(study->env, CGAM_E_IO, "%s: another run is at work in this folder",
                         cgam_path_tail(study->out));
    header want = {.count = b->count, .record = b->record}, have;
    status = fingerprint(study, b, &want.key);
    if (status != CGAM_OK) return status;
    memcpy(want.magic, MAGIC, sizeof want.magic);
    off_t good = 0;
    int error = 0;
    size_t size = (size_t)b->record * sizeof(double);
    if (read_all(r->fd, &have, sizeof have) && memcmp(&have, &want, sizeof have) == 0) {
        good = (off_t)sizeof have;
        double *record = cgam_alloc(study->env, (size_t)b->record, sizeof *record);
        if (!record) return cgam_fail_nomem(study->env, "progress");
        int64_t i;
        uint64_t sum;
        while (read_all(r->fd, &i, sizeof i) && i >= 0 && i < b->count &&
               read_all(r->fd, record, size) && read_all(r->fd, &sum, sizeof sum) &&
               sum == record_sum(i, record, b->record)) {
            memcpy(b->records + i * b->record, record, size);
            r->finished += !r->done[i];
            r->done[i] = true;
            good += (off_t)(sizeof i + size + sizeof sum);
        }
        cgam_free(study->env, record);
    }
    if (ftruncate(r->fd, good) != 0 || lseek(r->fd, good, SEEK_SET) < 0) error = errno;
    if (!error && good == 0) error = write_all(r->fd, &want, sizeof want);
    r->before = r->finished;
    return error ? write_failed(study, error) : CGAM_OK;
}

/* Under the lock. */
static cgam_status progress_note(run *r, int64_t i)
{
    const cgam_blocks *b = r->b;
    const double *record = b->records + i * b->record;
    double now = cgam_clock();
    r->done[i] = true;
    r->finished++;
    if (r->fd >= 0) {
        uint64_t sum = record_sum(i, record, b->record);
        int error = write_all(r->fd, &i, sizeof i);
        if (!error) error = write_all(r->fd, record, (size_t)b->record * sizeof *record);
        if (!error) error = write_all(r->fd, &sum, sizeof sum);
        if (!error && now - r->synced > SYNC_SECONDS) {
            if (fdatasync(r->fd) != 0) error = errno;
            r->synced = now;
        }
        if (error) return write_failed(r->study, error);
    }
    if (now - r->told > TELL_SECONDS || r->finished == b->count) {
        double here = (double)(r->finished - r->before);
        cgam_progress_at at = {.phase = cgam_study_kind_name(r->study->opts.kind),
                               .done = (double)r->finished / (double)b->count,
                               .total = 1,
                               .unit = "",
                               .seconds_left =
                                   (now - r->begun) / here * (double)(b->count - r->finished)};
        r->told = now;
        cgam_progress_tell(&r->study->opts.progress, at);
    }
    return CGAM_OK;
}

static void room_free(run *r, void *room)
{
    if (room) r->b->close(r->study, r->b->arg, room);
    cgam_free(r->study->env, room);
}

static cgam_status room_take(run *r, void **room)
{
    *room = NULL;
    if (!r->b->room) return CGAM_OK;
    pthread_mutex_lock(&r->lock);
    if (r->rooms > 0) *room = r->room[--r->rooms];
    pthread_mutex_unlock(&r->lock);
    if (*room) return CGAM_OK;
    *room = cgam_zalloc(r->study->env, r->b->room, 1);
    return *room ? r->b->open(r->study, r->b->arg, *room)
                 : cgam_fail_nomem(r->study->env, "a trial");
}

static cgam_status one_block(void *arg, int64_t i)
{
    run *r = arg;
    cgam_blocks *b = r->b;
    if (r->done[i]) return CGAM_OK;
    if (cgam_interrupted(r->study->env))
        return cgam_fail(r->study->env, CGAM_E_INTERRUPTED, "stopped on request");
    void *room;
    cgam_status status = room_take(r, &room);
    if (status == CGAM_OK) status = b->block(r->study, b->arg, room, i, b->records + i * b->record);
    pthread_mutex_lock(&r->lock);
    if (room && status == CGAM_OK && r->rooms < ROOMS_MAX) {
        r->room[r->rooms++] = room;
        room = NULL;
    }
    if (status == CGAM_OK) status = progress_note(r, i);
    pthread_mutex_unlock(&r->lock);
    room_free(r, room);
    return status;
}

cgam_status cgam_blocks_run(cgam_study *study, cgam_blocks *b)
{
    run *r = cgam_zalloc(study->env, 1, sizeof *r);
    b->records = cgam_zalloc(study->env, (size_t)b->count * (size_t)b->record, sizeof(double));
    bool *done = cgam_zalloc(study->env, (size_t)b->count, sizeof *done);
    cgam_status status = CGAM_OK;
    if (!r || !b->records || !done) status = cgam_fail_nomem(study->env, "results");
    if (status == CGAM_OK) {
        *r = (run){.study = study, .b = b, .done = done, .fd = -1};
        pthread_mutex_init(&r->lock, NULL);
        if (study->progress) status = progress_open(r);
        r->begun = r->synced = r->told = cgam_clock();
        if (status == CGAM_OK) status = cgam_parallel(study->env, b->count, one_block, r);
        for (int i = 0; i < r->rooms; i++) room_free(r, r->room[i]);
        if (r->fd >= 0 && close(r->fd) != 0 && status == CGAM_OK)
            status = write_failed(study, errno);
        pthread_mutex_destroy(&r->lock);
    }
    cgam_free(study->env, done);
    cgam_free(study->env, r);
    if (status == CGAM_OK) status = b->tables(study, b->arg, b);
    cgam_free(study->env, b->records);
    return status;
}
