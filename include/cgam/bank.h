/* bank.h: a bank of memories zeta_0 .. zeta_{n-1} in R^d, the rows of Z.
 *
 * A bank is loaded once, is const afterwards and may be shared by threads. It keeps its rows as
 * they are stored (f64, f32, f16 or bf16, memory-mapped where the file allows) and widens them as
 * they are read. It knows nothing of queries, contexts or gates.
 *
 * Edge cases: n = 1 is a bank; equal memories share their probability; a zero memory has score 0
 * and stays zero when normalised; NaN and infinity are rejected by row and column.
 */
#ifndef CGAM_BANK_H
#define CGAM_BANK_H

#include <cgam/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cgam_bank cgam_bank;

typedef struct cgam_bank_opts {
    bool normalize; /* divide each row by its norm; default false */
    bool copy;      /* copy the caller's rows instead of borrowing them; default false */
    int64_t stride; /* elements from row to row; default 0 = d */
    /* Spread the rows over these (ranks.h): all of them open the same file, or each gives n rows of its own, which
     * follow those of the ranks before it; n = 0 is fine there. Borrowed like the rows. Default NULL: one process. */
    struct cgam_ranks *ranks;
} cgam_bank_opts;

CGAM_API cgam_bank_opts cgam_bank_opts_default(void);

/* A bank over data [n, d], borrowed until cgam_bank_free unless opts->copy. opts NULL = defaults.
 * Reads every row once, to check it and to know its norm. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_new(cgam_env *env, const void *data, cgam_dtype dtype,
                                                  int64_t n, int64_t d, const cgam_bank_opts *opts,
                                                  cgam_bank **out);

/* A bank from FILE or FILE:MEMBER (.npy, .npz, .safetensors, .csv), two-dimensional; see io.h. A packed one (pack.h) is
 * opened without reading its rows, and brings its sketch. From several files of one width and type: those that a pattern
 * of the shell matches, 'Z-*.npy' or 'Z-*.npz:MEMBER'; or the arrays of an index INDEX.json, whose "weight_map" says which
 * .safetensors file beside it has which array, INDEX.json:NAME being one. Rows come in the order of names, where Z-2 is
 * before Z-10, and are copied into memory. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_load(cgam_env *env, const char *path,
                                                   const cgam_bank_opts *opts, cgam_bank **out);
CGAM_API void cgam_bank_free(cgam_bank *bank); /* NULL is fine */

/* A bank of those rows of another whose bits are set: mask has a bit for every number of a memory (info.whole of them), that
 * of memory i is bit i % 64 of word i / 64. To recalls it is a bank of fewer memories in every sum and bound; winners, targets and lists keep
 * the numbers of the whole bank, while p, s and r have an entry for each memory that counts. Rows side by side are
 * borrowed, others copied, in either case until the new bank is freed `bank` must live; a sketch is taken along.
 * CGAM_E_ARG when no bit is set. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_only(const cgam_bank *bank, const uint64_t *mask,
                                                   cgam_bank **out);

/* Names of memories, one a line of a text file (UTF-8, a last newline is not a name). Gives *out; free it with
 * cgam_row_names_free. Const afterwards. */
typedef struct cgam_row_names cgam_row_names;
CGAM_API CGAM_NODISCARD cgam_status cgam_row_names_load(cgam_env *env, const char *path,
                                                        cgam_row_names **out);
CGAM_API void cgam_row_names_free(cgam_row_names *names); /* NULL is fine */
CGAM_API const char *cgam_row_names_at(const cgam_row_names *names,
                                       int64_t i); /* belongs to names */
/* The lowest row of that name; -1: there is none. */
CGAM_API int64_t cgam_row_names_find(const cgam_row_names *names, const char *name);

/* Words of a mask for n rows. */
static inline int64_t cgam_mask_words(int64_t n) { return (n + 63) / 64; }
typedef struct cgam_bank_info {
    int64_t n, d;
    int64_t whole; /* memories of the bank these were taken from (cgam_bank_only), or that were ever
                      in it (pack.h); else n. Numbers are below it */
    cgam_dtype dtype;
    double norm_min, norm_max; /* |zeta|, after normalising if that was asked for */
    bool equal_norms;          /* to working precision; then the spectral forms apply */
    bool unit;                 /* equal and 1 */
    int64_t zero_rows;
    bool mapped; /* rows are pages of the file */
    bool sketch; /* it has one */
} cgam_bank_info;

CGAM_API cgam_bank_info cgam_bank_describe(const cgam_bank *bank);

/* out[d] = zeta_i. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_row(const cgam_bank *bank, int64_t i, double *out);
/* out[n] = Z x, x [d]. One pass. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_score(const cgam_bank *bank, const double *x,
                                                    double *out);
/* out[d] = Z' w, w [n]. One pass. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_combine(const cgam_bank *bank, const double *w,
                                                      double *out);

/* ---- A bank as one file that is ready for use.
 *
 * A packed bank is a .safetensors file: the rows as they are, |row|^2 of each, and where asked for the sketch
 * (bank.h), names, and A(alpha) factored for some alpha, each part with its digest. cgam_bank_load and whatever
 * stands on it open such a file by mapping it; recalls then use names, sketch and factors without being told. What is in
 * the file is what the library would compute of the same rows, bit for bit. docs/guide/banks.md lists the arrays.
 *
 * Changing one. A reader holds the file it has mapped, whole, and must never see another's bytes in it; and in this format the
 * header, which says where everything is, stands first. So a change writes a new file beside the old one, syncs it and
 * renames it: a reader that opens the bank finds the whole old or the whole new one, and one that has it open keeps what it has. A writer that
 * dies leaves the old bank. Writers take turns by a lock on the file itself, which dies with its holder: who
 * comes second waits. The price is that a change copies the rows once and, where the bank has factored alpha, factors anew.
 *
 * Numbers of memories stay: a dropped one leaves the file, and its number is not given again until a bank is packed from
 * this one, which counts its rows from 0. To recalls a bank with dropped memories is as cgam_bank_only makes it. */

enum { CGAM_PACK_ALPHAS_MAX = 64 };

typedef struct cgam_pack_opts {
    int dtype;      /* a cgam_dtype of rows, f64, f32, f16 or bf16; default -1 = the source's */
    bool normalize; /* memories are the rows divided by their norms, which is kept as a factor a
                            row: rows stay as they are; default false */
    bool sketch;    /* default true */
    int64_t alphas; /* default 0 */
    const double *alpha; /* [alphas] above 0: penalties whose A(alpha) is factored; default NULL */
    const char *names;   /* file of names, one a line, one for each row; default NULL = those of a
                            packed source, else none */
} cgam_pack_opts;
CGAM_API cgam_pack_opts cgam_pack_opts_default(void);

/* Packs the rows of `from`, as cgam_bank_load takes it, into `path`, which ends in .safetensors. Files that it is divided
 * among may differ in type where opts->dtype is given. A packed source passes on what the options leave open: names;
 * normalising is as the options say. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack(cgam_env *env, const char *from,
                                              const cgam_pack_opts *opts, const char *path);

/* The rows of `from`, in the type of the bank, come after its last. names: file of their names, needed where
 * the bank has names, else NULL. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_add(cgam_env *env, const char *path, const char *from,
                                                  const char *names);
/* Row k of `from` replaces memory number[k] of the bank; k below count, which must be its rows. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_put(cgam_env *env, const char *path, const char *from,
                                                  int64_t count, const int64_t *number);
/* The memories whose bits are set in mask, which has a bit for each number up to info.whole, leave the bank. Numbers that
 * have gone before are passed over; CGAM_E_ARG when no memory would go, or none would stay. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_drop(cgam_env *env, const char *path, int64_t bits,
                                                   const uint64_t *mask);

/* Compares the digests of all parts with the file as it is mapped: one reading of it. *damaged is NULL where all
 * agree, else the name of a part that does not; it belongs to the bank. CGAM_E_ARG: the bank is not a packed one.
 *
 * Opening does not do this, since it would read every byte. A damaged file then never leads outside
 * of memory, and a recall that meets a score that is not finite is CGAM_E_VALUE. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_check(const cgam_bank *bank, const char **damaged);
/* The names in it, by the numbers of memories; a dropped one has the name "" and is not found. Gives *out, NULL where
 * there are none; free it with cgam_row_names_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_names(const cgam_bank *bank, cgam_row_names **out);

/* n_i = |zeta_i|^2, [n]; belongs to the bank. */
CGAM_API const double *cgam_bank_norm2(const cgam_bank *bank);

#ifdef __cplusplus
}
#endif
#endif
