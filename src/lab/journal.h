/* journal.h: the finished parts of a long run, in a file that survives a kill.
 *
 * A header with a fingerprint of all that the numbers depend on, then records as they are finished: a key, bytes, a
 * checksum. A kill can only tear the last record; it is cut off when the file is opened again. A file of another run
 * is replaced. Only one process at a time can open the file. */
#ifndef CGAM_SRC_LAB_JOURNAL_H
#define CGAM_SRC_LAB_JOURNAL_H

#include "io/file.h"

typedef struct cgam_journal cgam_journal;

typedef struct cgam_record {
    uint64_t key;
    size_t size;
    const void *bytes; /* borrowed until the journal is closed */
} cgam_record;

/* FNV-1a, 64 bits, continued from h; start with CGAM_HASH. */
#define CGAM_HASH UINT64_C(0xcbf29ce484222325)
uint64_t cgam_hash(uint64_t h, const void *bytes, size_t size);

/* Continues an earlier run with the same fingerprint. CGAM_E_IO, with the file unchanged, if another process has it
 * open or it cannot be read. */
CGAM_NODISCARD cgam_status cgam_journal_open(cgam_env *env, const char *path, uint64_t run,
                                             cgam_journal **out);
/* The same for a file that the user names: one that is neither empty nor a journal of this run is left unchanged, and
 * the call fails with CGAM_E_ARG. */
CGAM_NODISCARD cgam_status cgam_journal_resume(cgam_env *env, const char *path, uint64_t run,
                                               cgam_journal **out);
/* Records of earlier runs: start with *at = 0; each call advances it. Returns false after the last. */
bool cgam_journal_next(const cgam_journal *j, size_t *at, cgam_record *out);
/* The record is written on return and synced within a second. One thread at a time. */
CGAM_NODISCARD cgam_status cgam_journal_add(cgam_journal *j, cgam_record record);
void cgam_journal_close(cgam_journal *j); /* the file stays; NULL is fine */

#endif
