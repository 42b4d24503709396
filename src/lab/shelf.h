/* shelf.h: banks, gates and models that stay between calls, for a door that answers many. Banks stay as long as
 * the shelf; of gates and models, the ones used least lately go when together they hold more than so many bytes.
 * Threads may share a shelf. Every function copes with a NULL one, on which nothing stands. */
#ifndef CGAM_SRC_LAB_SHELF_H
#define CGAM_SRC_LAB_SHELF_H

#include <cgam/lm.h>
#include <cgam/recall.h>

typedef struct cgam_shelf cgam_shelf;

/* Borrows the env. Gives *out; free it with cgam_shelf_free when no call uses it any more. */
CGAM_NODISCARD cgam_status cgam_shelf_new(cgam_env *env, size_t bytes, cgam_shelf **out);
void cgam_shelf_free(cgam_shelf *shelf);

/* Before the shelf is shared. Puts a bank on it under the name that calls give it by: a file, which is loaded, or a bank, which
 * is the shelf's then, come what may. CGAM_E_ARG: the name is taken. */
CGAM_NODISCARD cgam_status cgam_shelf_add(cgam_shelf *shelf, const char *name, cgam_bank *bank);
/* The names of its memories, which are the shelf's then, come what may. CGAM_E_SHAPE: there are not as many. */
CGAM_NODISCARD cgam_status cgam_shelf_name(cgam_shelf *shelf, const char *name,
                                           cgam_row_names *names);
/* NULL: there are none. */
const cgam_row_names *cgam_shelf_names(const cgam_shelf *shelf, const char *name);
bool cgam_shelf_has(const cgam_shelf *shelf, const char *name);
/* The bank, normalised or with a sketch if asked for; the shelf's. The first caller that asks for these waits for it. */
CGAM_NODISCARD cgam_status cgam_shelf_bank(cgam_shelf *shelf, const char *name, bool normalize,
                                           bool sketch, cgam_bank **out);
bool cgam_shelf_owns(const cgam_shelf *shelf, const cgam_bank *bank);

/* The factored A(alpha) for plans with these options to share, made if there is none; *out is NULL where
 * the bank is not the shelf's. Give it back with cgam_shelf_gate_done when the plan is gone. */
CGAM_NODISCARD cgam_status cgam_shelf_gate(cgam_shelf *shelf, const cgam_bank *bank,
                                           const cgam_recall_opts *opts, const cgam_gate **out);
void cgam_shelf_gate_done(cgam_shelf *shelf, const cgam_gate *gate); /* NULL is fine */

/* An open model for one call alone: kept from an earlier one, or opened. NULL = the default one. Give it back with
 * cgam_shelf_model_done, which copes with NULL. */
CGAM_NODISCARD cgam_status cgam_shelf_model(cgam_shelf *shelf, const char *path, cgam_lm **out);
void cgam_shelf_model_done(cgam_shelf *shelf, cgam_lm *lm);

typedef struct cgam_shelf_info {
    int64_t banks, gates, models; /* on it now */
    size_t bytes;                 /* of gates and models */
    int64_t hits, misses;         /* of gates */
    int64_t opened;               /* models */
} cgam_shelf_info;
cgam_shelf_info cgam_shelf_describe(cgam_shelf *shelf);

#endif
