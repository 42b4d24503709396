/* shelf.h: banks, gates and models kept between calls, for a server. Banks are kept as long as the shelf.
 * The least recently used gates and models are freed when together they exceed a number of bytes.
 * Thread-safe. Every function accepts a NULL shelf, which is empty. */
#ifndef CGAM_SRC_LAB_SHELF_H
#define CGAM_SRC_LAB_SHELF_H

#include <cgam/lm.h>
#include <cgam/recall.h>

typedef struct cgam_shelf cgam_shelf;

/* Borrows the env. Free *out with cgam_shelf_free when no call uses it any more. */
CGAM_NODISCARD cgam_status cgam_shelf_new(cgam_env *env, size_t bytes, cgam_shelf **out);
void cgam_shelf_free(cgam_shelf *shelf);

/* Adds a bank under the name that calls use: a file, which is loaded, or a bank, which the shelf then owns, even if
 * the call fails. Call before the shelf is shared. Fails with CGAM_E_ARG if the name is in use. */
CGAM_NODISCARD cgam_status cgam_shelf_add(cgam_shelf *shelf, const char *name, cgam_bank *bank);
/* Sets the names of a bank's memories, which the shelf then owns, even if the call fails. Fails with CGAM_E_SHAPE
 * if the counts differ. */
CGAM_NODISCARD cgam_status cgam_shelf_name(cgam_shelf *shelf, const char *name,
                                           cgam_row_names *names);
/* Returns NULL if the bank has no names. */
const cgam_row_names *cgam_shelf_names(const cgam_shelf *shelf, const char *name);
bool cgam_shelf_has(const cgam_shelf *shelf, const char *name);
/* Returns the bank, normalised or with a sketch if requested. The shelf owns it. The first request for these waits.
 * */
CGAM_NODISCARD cgam_status cgam_shelf_bank(cgam_shelf *shelf, const char *name, bool normalize,
                                           bool sketch, cgam_bank **out);
bool cgam_shelf_owns(const cgam_shelf *shelf, const cgam_bank *bank);

/* Returns the factored A(alpha) for plans with these options to share; makes it if necessary. *out is NULL if
 * the bank is not on the shelf. Release it with cgam_shelf_gate_done after freeing the plan. */
CGAM_NODISCARD cgam_status cgam_shelf_gate(cgam_shelf *shelf, const cgam_bank *bank,
                                           const cgam_recall_opts *opts, const cgam_gate **out);
void cgam_shelf_gate_done(cgam_shelf *shelf, const cgam_gate *gate); /* NULL is fine */

/* Returns an open model for exclusive use by one call: kept from an earlier call, or opened. NULL = the default
 * model. Release it with cgam_shelf_model_done, which accepts NULL. */
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
