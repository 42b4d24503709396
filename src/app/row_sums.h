/* row_sums.h: sums of memories as a text: "7", "7*0.5+23*0.5-2", "king-man+woman", "'x-ray'", ';' before the next sum. */
#ifndef CGAM_SRC_APP_ROW_SUMS_H
#define CGAM_SRC_APP_ROW_SUMS_H

#include <cgam/bank.h>

/* Gives the names of a bank's memories; asked only where the text has a name. */
typedef cgam_status cgam_row_names_of(void *user, const cgam_bank *bank,
                                      const cgam_row_names **out);

/* Gives *out, [*rows, d]; free it with cgam_free. Messages begin with `option`. */
/* How many sums there are: one more than ; outside of quotes. */
int64_t cgam_row_sums_count(const char *text);
CGAM_NODISCARD cgam_status cgam_row_sums(const cgam_bank *bank, const char *option,
                                         const char *text, cgam_row_names_of *names, void *user,
                                         double **out, int64_t *rows);

/* The numbers of "3,7,10-12" into out, which may be NULL; how many they are, or -1: it is no such list. *last is the
 * largest of them; a range that goes on to `below` or beyond is not counted out. */
int64_t cgam_row_list(const char *text, int64_t below, int64_t *out, int64_t *last);

#endif
