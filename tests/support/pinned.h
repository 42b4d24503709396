/* pinned.h: numbers held to what they were, for bounds: that they are true is decided in ball arithmetic (tests/rigour), and what is
 * left to see is that none of them becomes larger, or smaller, unnoticed.
 *
 *     PIN(doubt.gradient, 1e-5);
 *
 * compares with the next number that tests/pinned/PROGRAM.txt has for this test. `CGAM_PIN=write PROGRAM` writes the file anew, for a
 * change that is meant: say in the commit which formula of docs/theorems/rounding.md changed. A difference of two is a defect. */
#ifndef CGAM_TESTS_PINNED_H
#define CGAM_TESTS_PINNED_H

#define PIN(got, rel) pinned_check((got), (rel), #got, __func__, __FILE__, __LINE__)

void pinned_check(double got, double rel, const char *what, const char *test, const char *file,
                  int line);

#endif
