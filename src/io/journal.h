/* journal.h: what a long run has finished, in a file that survives a kill.
 *
 * A header with a fingerprint of all that the numbers depend on, then records as they are finished: a key, bytes, a
 * checksum. A kill can only tear the last record; it is cut off when the file is opened again. A file of another run
 * is not continued but replaced. One process at a time has the file. */
#ifndef CGAM_SRC_IO_JOURNAL_H
#define CGAM_SRC_IO_JOURNAL_H

#include "io/file.h"

typedef struct cgam_journal cgam_journal;

typedef struct cgam_record {
    uint64_t key;
    size_t size;
    const void *bytes; /* borrowed until the journal is closed */
} cgam_record;

/* FNV-1a, 64 bits, going on from h; CGAM_HASH begins. */
#define CGAM_HASH UINT64_C(0xcbf29ce484222325)
uint64_t cgam_hash(uint64_t h, const void *bytes, size_t size);

/* Takes over what an earlier run under the same fingerprint has left. CGAM_E_IO, and the file stays as it is, where
 * another process has it or it cannot be read. */
CGAM_NODISCARD cgam_status cgam_journal_open(cgam_env *env, const char *path, uint64_t run,
                                             cgam_journal **out);
/* What is there of earlier runs: *at is 0 for the first record and is moved on; false after the last. */
bool cgam_journal_next(const cgam_journal *j, size_t *at, cgam_record *out);
/* With the system when this comes back, on the disk within a second. One thread at a time. */
CGAM_NODISCARD cgam_status cgam_journal_add(cgam_journal *j, cgam_record record);
void cgam_journal_close(cgam_journal *j); /* the file stays; NULL is fine */

#endif
