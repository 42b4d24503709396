/* failing_calls.h: calls to the C library and the system that fail, one at a time.
 *
 * A program linked with this (test_calls.c and test_calls_*.c of any folder) gets read, mmap, rename, malloc and the like from here: they do what they always
 * do, but for the one that is to fail. So what a file system, a full disk or another library's want of memory can do to
 * us is seen without either. failing_alloc.h does the same for the env's own memory. */
#ifndef CGAM_TESTS_FAILING_CALLS_H
#define CGAM_TESTS_FAILING_CALLS_H

#include "support/failing_alloc.h"

/* Looks at what a run has left, when calls do as they should again; `call` is the function that failed. */
typedef void (*check_after)(void *arg, int status, const char *call);

/* Runs the scenario, each time on a new env, with every call failing in turn: the first and the second and .. read with EIO,
 * then with EINTR and others, and half of the bytes; then the next function; from a call on for good; and a wish to stop at every
 * look for one. A failure comes back as a status with a message of one line, or is survived; no block and no open file may be left.
 * after: NULL = nothing to see. Gives the number of runs. */
int64_t check_every_call(check_scenario scenario, void *arg, check_after after);

/* The same of one function alone: where a library that we use ends the program when another fails. */
int64_t check_calls_of(const char *call, check_scenario scenario, void *arg, check_after after);

/* Is malloc among them? Not where a sanitizer has its own. */
bool malloc_fails_too(void);

/* Makes call k of a function fail, and with FAIL_FOR_GOOD | error all after it; NULL: none. */
enum { FAIL_FOR_GOOD = 1 << 16 };
void fail_call(const char *call, int error, int64_t k);
/* Has that call come since, and failed? */
bool call_failed(void);

#endif
