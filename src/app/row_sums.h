/* row_sums.h: sums of memories as a text: "7", "7*0.5+23*0.5-2", "king-man+woman", "'x-ray'", ';' before the next sum. */
#ifndef CGAM_SRC_APP_ROW_SUMS_H
#define CGAM_SRC_APP_ROW_SUMS_H

#include <cgam/bank.h>

/* Returns the names of a bank's memories; called only if the text contains a name. */
typedef cgam_status cgam_row_names_of(void *user, const cgam_bank *bank,
                                      const cgam_row_names **out);

/* Returns *out [*rows, d]; free it with cgam_free. Messages begin with `option`. */
/* Returns the number of sums: one more than the ';' outside quotes. */
int64_t cgam_row_sums_count(const char *text);
CGAM_NODISCARD cgam_status cgam_row_sums(const cgam_bank *bank, const char *option,
                                         const char *text, cgam_row_names_of *names, void *user,
                                         double **out, int64_t *rows);

/* Writes the numbers of "3,7,10-12" to out, which may be NULL. Returns their count, or -1 if the text is not such a
 * list. *last is the largest. A range that reaches `below` is not expanded. */
int64_t cgam_row_list(const char *text, int64_t below, int64_t *out, int64_t *last);

#endif
