/* memory_vfs.h: SQLite on files that are in memory and belong to this process, for the fuzz targets: what an input costs is then not
 * the system's calls. As much of a file system as SQLite asks for: names, bytes, an end; locks are always given, since there is
 * one connection. A file is at most FUZZ_FILE_MOST long: then the disk is full. */
#ifndef CGAM_TESTS_FUZZ_MEMORY_VFS_H
#define CGAM_TESTS_FUZZ_MEMORY_VFS_H

#include "fuzz/readers.h"

#include <sqlite3.h>
#include <stdio.h>

enum { FUZZ_FILES = 4, FUZZ_FILE_MOST = 1 << 24, FUZZ_SHARED = 8 };

typedef struct fuzz_bytes {
    char name[64]; /* "": free, or of one that has none */
    uint8_t *bytes;
    size_t size, room;
} fuzz_bytes;

typedef struct fuzz_handle {
    sqlite3_file base;
    fuzz_bytes *file;
    void *shared[FUZZ_SHARED]; /* the index of the log */
} fuzz_handle;

static fuzz_bytes fuzz_files[FUZZ_FILES];

static inline fuzz_bytes *fuzz_file_find(const char *name)
{
    for (int i = 0; i < FUZZ_FILES; i++)
        if (strcmp(fuzz_files[i].name, name) == 0) return &fuzz_files[i];
    return NULL;
}

static inline bool fuzz_file_grow(fuzz_bytes *file, size_t size)
{
    if (size > FUZZ_FILE_MOST) return false;
    if (size > file->room) {
        file->bytes = realloc(file->bytes, file->room = 2 * size);
        must(file->bytes != NULL);
    }
    if (size > file->size) {
        memset(file->bytes + file->size, 0, size - file->size);
        file->size = size;
    }
    return true;
}

/* Memory stays for the next of that name. */
static inline void fuzz_file_drop(fuzz_bytes *file)
{
    file->name[0] = 0;
    file->size = 0;
}

/* The file of that name is to hold these bytes. */
static inline void fuzz_file_put(const char *name, const uint8_t *bytes, size_t size)
{
    fuzz_bytes *file = fuzz_file_find(name);
    if (!file) file = fuzz_file_find("");
    must(file != NULL);
    snprintf(file->name, sizeof file->name, "%s", name);
    file->size = 0;
    must(fuzz_file_grow(file, size));
    if (size > 0) memcpy(file->bytes, bytes, size);
}

static inline int fuzz_shm_unmap(sqlite3_file *f, int forget)
{
    fuzz_handle *h = (fuzz_handle *)f;
    (void)forget;
    for (int i = 0; i < FUZZ_SHARED; i++) {
        free(h->shared[i]);
        h->shared[i] = NULL;
    }
    return SQLITE_OK;
}

static inline int fuzz_close(sqlite3_file *f)
{
    fuzz_handle *h = (fuzz_handle *)f;
    if (h->file < fuzz_files || h->file >= fuzz_files + FUZZ_FILES) { /* it had no name */
        free(h->file->bytes);
        free(h->file);
    }
    return fuzz_shm_unmap(f, 1);
}

static inline int fuzz_read(sqlite3_file *f, void *to, int amount, sqlite3_int64 at)
{
    const fuzz_bytes *file = ((fuzz_handle *)f)->file;
    size_t there = (size_t)at < file->size ? file->size - (size_t)at : 0, n = (size_t)amount;
    if (there >= n) {
        memcpy(to, file->bytes + at, n);
        return SQLITE_OK;
    }
    if (there > 0) memcpy(to, file->bytes + at, there);
    memset((char *)to + there, 0, n - there);
    return SQLITE_IOERR_SHORT_READ;
}

static inline int fuzz_write(sqlite3_file *f, const void *from, int amount, sqlite3_int64 at)
{
    fuzz_bytes *file = ((fuzz_handle *)f)->file;
    if (at > FUZZ_FILE_MOST || !fuzz_file_grow(file, (size_t)at + (size_t)amount))
        return SQLITE_FULL;
    memcpy(file->bytes + at, from, (size_t)amount);
    return SQLITE_OK;
}

static inline int fuzz_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    fuzz_bytes *file = ((fuzz_handle *)f)->file;
    if (size > FUZZ_FILE_MOST || !fuzz_file_grow(file, (size_t)size)) return SQLITE_FULL;
    file->size = (size_t)size;
    return SQLITE_OK;
}

static inline int fuzz_size(sqlite3_file *f, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)((fuzz_handle *)f)->file->size;
    return SQLITE_OK;
}

static inline int fuzz_shm_map(sqlite3_file *f, int which, int size, int extend,
                               void volatile **out)
{
    fuzz_handle *h = (fuzz_handle *)f;
    if (which >= FUZZ_SHARED) return SQLITE_FULL;
    if (!h->shared[which] && extend) h->shared[which] = calloc(1, (size_t)size);
    *out = h->shared[which];
    return SQLITE_OK;
}

/* What has nothing to do here. */
static inline int fuzz_nothing(sqlite3_file *f, int flags)
{
    return (void)f, (void)flags, SQLITE_OK;
}
static inline int fuzz_not_locked(sqlite3_file *f, int *out) { return (void)f, *out = 0; }
static inline int fuzz_unknown(sqlite3_file *f, int what, void *user)
{
    return (void)f, (void)what, (void)user, SQLITE_NOTFOUND;
}
static inline int fuzz_sector(sqlite3_file *f) { return (void)f, 512; }
static inline int fuzz_kind(sqlite3_file *f) { return (void)f, SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
static inline int fuzz_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return (void)f, (void)at, (void)n, (void)flags, SQLITE_OK;
}
static inline void fuzz_shm_barrier(sqlite3_file *f) { (void)f; }

static inline int fuzz_open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                                 int *out)
{
    static const sqlite3_io_methods methods = {
        .iVersion = 2,
        .xClose = fuzz_close,
        .xRead = fuzz_read,
        .xWrite = fuzz_write,
        .xTruncate = fuzz_truncate,
        .xSync = fuzz_nothing,
        .xFileSize = fuzz_size,
        .xLock = fuzz_nothing,
        .xUnlock = fuzz_nothing,
        .xCheckReservedLock = fuzz_not_locked,
        .xFileControl = fuzz_unknown,
        .xSectorSize = fuzz_sector,
        .xDeviceCharacteristics = fuzz_kind,
        .xShmMap = fuzz_shm_map,
        .xShmLock = fuzz_shm_lock,
        .xShmBarrier = fuzz_shm_barrier,
        .xShmUnmap = fuzz_shm_unmap,
    };
    fuzz_handle *h = (fuzz_handle *)f;
    (void)vfs;
    *h = (fuzz_handle){0};
    h->file = name ? fuzz_file_find(name) : calloc(1, sizeof *h->file);
    if (!h->file && flags & SQLITE_OPEN_CREATE) {
        fuzz_file_put(name, NULL, 0);
        h->file = fuzz_file_find(name);
    }
    if (!h->file) return SQLITE_CANTOPEN;
    h->base.pMethods = &methods;
    if (out) *out = flags;
    return SQLITE_OK;
}

static inline int fuzz_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    fuzz_bytes *file = fuzz_file_find(name);
    (void)vfs;
    (void)sync;
    if (!file) return SQLITE_IOERR_DELETE_NOENT;
    fuzz_file_drop(file);
    return SQLITE_OK;
}

static inline int fuzz_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    const fuzz_bytes *file = fuzz_file_find(name);
    (void)vfs;
    *out = file && (flags != SQLITE_ACCESS_EXISTS || file->size > 0);
    return SQLITE_OK;
}

static inline int fuzz_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out)
{
    (void)vfs;
    snprintf(out, (size_t)size, "%s", name);
    return SQLITE_OK;
}

/* From now on SQLite's files are those of fuzz_file_put. Randomness and clocks stay the system's. */
static inline void fuzz_files_in_memory(void)
{
    static sqlite3_vfs vfs;
    vfs = *sqlite3_vfs_find(NULL);
    vfs.zName = "fuzz";
    vfs.szOsFile = sizeof(fuzz_handle);
    vfs.mxPathname = sizeof fuzz_files[0].name - 1;
    vfs.xOpen = fuzz_open_file;
    vfs.xDelete = fuzz_delete;
    vfs.xAccess = fuzz_access;
    vfs.xFullPathname = fuzz_full_path;
    must(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
}

#endif
