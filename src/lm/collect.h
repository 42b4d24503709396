/* collect.h: captured states on disk; a kill at any moment loses at most the uncommitted rows.
 *
 * One SQLite file. A row is one prompt run through one model: the model file (by digest), the engine
 * (libllama or the plain pass), the tokens, the text they came from, and the states of all
 * layers with their digest. Each row has one or several places, what the prompt was run as:
 * a query of a dataset with a number of demonstrations. Committed rows survive; uncommitted states
 * are lost together. */
#ifndef CGAM_SRC_LM_COLLECT_H
#define CGAM_SRC_LM_COLLECT_H

#include <cgam/lm.h>

typedef struct cgam_store cgam_store;

/* Opens a store, or makes it if it does not exist and `create` is set. Close it with cgam_store_close. Rejects a
 * file that is not a store or has a later version. */
CGAM_NODISCARD cgam_status cgam_store_open(cgam_env *env, const char *path, bool create,
                                           cgam_store **out);
void cgam_store_close(cgam_store *store); /* NULL is fine; uncommitted rows are lost */

/* Describes a prompt in the index of an export. NULL texts and numbers of -1 are absent. */
typedef struct cgam_store_place {
    const char *source; /* dataset or file */
    const char *demos;  /* how its demonstrations are labelled: "true", "flipped", "foreign" */
    const char *label;  /* word of the right answer */
    int64_t seed, shots, query;
} cgam_store_place;

typedef struct cgam_collect_opts {
    cgam_lm_capture_opts capture; /* its batch_end is not used */
    cgam_dtype dtype;             /* how states are stored: f32 (default), f16 or bf16 */
    const char *note; /* stored with each row: a description of the prompts; default NULL */
    bool chat; /* cgam_lm_collect_prompts: each is the user's turn in the model's chat template */
    const cgam_store_place *places; /* [count] a description of each prompt; default NULL */
    bool all_tokens; /* keep the states of all tokens beside those of the last; needs a store */
} cgam_collect_opts;
cgam_collect_opts cgam_collect_opts_default(void);

typedef struct cgam_collected {
    int64_t found, computed; /* prompts found in the store, and prompts run */
    int64_t tokens;          /* of the prompts run */
    double seconds;          /* running them */
} cgam_collected;

/* Reads the states of prompts from the store. Prompts not in the store are run and then stored, with
 * a transaction every few seconds. texts [count] are kept with the rows. out [count, L + 1, d] may be
 * NULL to fill only the store; store NULL = none. States are rounded to the stored type, whether
 * they were run now or before. */
CGAM_NODISCARD cgam_status cgam_lm_collect(cgam_lm *lm, cgam_store *store, int64_t count,
                                           const cgam_lm_prompt *prompts, const char *const *texts,
                                           const cgam_collect_opts *opts, float *out,
                                           cgam_collected *report);

/* ---- Reading a store ---------------------------------------------------------------------- */
typedef struct cgam_store_group {
    char model[65], name[64], engine[8]; /* digest; "llama" or "exact" */
    int64_t layers, width, rows, bytes;
    int64_t all_tokens; /* number of rows that hold the states of all tokens */
} cgam_store_group;

/* Calls `each` for every model and engine, oldest first. */
CGAM_NODISCARD cgam_status cgam_store_list(
    cgam_store *store, cgam_status (*each)(void *user, const cgam_store_group *g), void *user);

typedef struct cgam_store_verdict {
    int64_t rows, bad; /* bad: wrong size or digest */
    int64_t first_bad; /* its row number, or -1 */
    bool sound;        /* SQLite's own check of the file, and no bad rows */
} cgam_store_verdict;
CGAM_NODISCARD cgam_status cgam_store_check(cgam_store *store, cgam_store_verdict *out);

/* Writes the states of all tokens of one model and engine to .safetensors, in the order in which they
 * were collected: p0, p1, .. [layers, tokens, width] in f32, and p0_tokens, p1_tokens, .. [tokens], the
 * tokens. group NULL: the store's only group. */
CGAM_NODISCARD cgam_status cgam_store_export_tokens(cgam_store *store,
                                                    const cgam_store_group *group, const char *path,
                                                    int64_t *rows);

/* Writes the states of one model and engine, a row for each place of a prompt. Rows are in the order
 * in which series of prompts (source, seed, demonstrations) were first requested, and by query within a
 * series. A prompt without a place has one row. path.npy holds states [rows, L + 1, d]; .safetensors and
 * .npz hold them as `states`, with, for each row, `query`, `shots`, `seed` and `label` (-1: none; labels
 * are numbered in order of appearance), `tokens` (the prompt's count), and all `token_ids`, those of row i
 * from `token_first`[i] on. path.index.csv has a line for each row, in the same order:
 * row, source, demos, seed, shots, query, label, tokens, token_ids, text. group NULL: the store's only
 * group. */
CGAM_NODISCARD cgam_status cgam_store_export(cgam_store *store, const cgam_store_group *group,
                                             const char *path, int64_t *rows);

#endif
