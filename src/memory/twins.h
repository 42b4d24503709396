/* twins.h: memories that are equal, number for number. They must have the same probability, but a solve rounds each
 * row differently, and past a fold that would select one of them. */
#ifndef CGAM_SRC_MEMORY_TWINS_H
#define CGAM_SRC_MEMORY_TWINS_H

#include "memory/bank.h"

typedef struct cgam_twins cgam_twins;

/* Takes one pass over the bank. Sets *out = NULL if no two memories are equal. */
cgam_status cgam_twins_find(const cgam_bank *bank, cgam_twins **out);
void cgam_twins_free(cgam_env *env, cgam_twins *twins); /* NULL is allowed */

/* cgam_twins_keep returns the families as plain arrays, for a file: member[begin[f]] to member[begin[f + 1] - 1] are
 * equal. The other function makes families from copies of such arrays; it returns CGAM_E_FORMAT unless they are rows
 * below n, family by family. families 0: *out = NULL. */
int64_t cgam_twins_keep(const cgam_twins *twins, const int64_t **begin, const int64_t **member);
cgam_status cgam_twins_restore(cgam_env *env, int64_t n, int64_t families, const int64_t *begin,
                               int64_t members, const int64_t *member, cgam_twins **out);

/* Are rows i and j equal in value? rows: [2, d] scratch. */
bool cgam_twins_alike(const cgam_bank *bank, int64_t i, int64_t j, double *rows);

/* Replaces the entries of y [n] of each family by their mean; does nothing if twins is NULL. */
cgam_status cgam_twins_level(const cgam_bank *bank, const cgam_twins *twins, double *y);
/* The largest entry of y [n] that belongs to a family; 0 if no family exists. */
cgam_status cgam_twins_largest(const cgam_bank *bank, const cgam_twins *twins, const double *y,
                               double *largest);

#endif
