/* bank.h: a bank of memories zeta_0 .. zeta_{n-1} in R^d, the rows of Z.
 *
 * A bank is loaded once, is const afterwards and may be shared by threads. It keeps its rows as
 * they are stored (f64, f32, f16 or bf16, memory-mapped if the file allows) and widens them as
 * they are read. It does not depend on queries, contexts or gates.
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
    /* Spread the rows over these ranks (base.h): all ranks open the same file, or each passes its own n rows, which
     * follow those of lower ranks; n may then be 0. Borrowed like the rows. Default NULL: one process. */
    struct cgam_ranks *ranks;
} cgam_bank_opts;

CGAM_API cgam_bank_opts cgam_bank_opts_default(void);

/* Makes a bank over data [n, d], borrowed until cgam_bank_free unless opts->copy. opts NULL = defaults.
 * Reads every row once, to check it and to compute its norm. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_new(cgam_env *env, const void *data, cgam_dtype dtype,
                                                  int64_t n, int64_t d, const cgam_bank_opts *opts,
                                                  cgam_bank **out);

/* Loads a bank from FILE or FILE:MEMBER (.npy, .npz, .safetensors, .csv), two-dimensional; see io.h. A packed bank
 * (cgam_pack) is opened without reading its rows, with its sketch. `path` may also name several files of one width
 * and type: a shell pattern, 'Z-*.npy' or 'Z-*.npz:MEMBER'; or an index INDEX.json, whose "weight_map" maps each
 * array to a .safetensors file beside it (INDEX.json:NAME selects one array). Rows are then copied into memory, in
 * the order of the names, with Z-2 before Z-10. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_load(cgam_env *env, const char *path,
                                                   const cgam_bank_opts *opts, cgam_bank **out);
CGAM_API void cgam_bank_free(cgam_bank *bank); /* NULL is fine */

/* Makes a bank of the rows whose bits are set: mask has a bit for every memory number (info.whole bits); memory i is
 * bit i % 64 of word i / 64. Recalls treat it as a bank of fewer memories in every sum and bound. Winners, targets
 * and lists keep the numbers of the whole bank; p, s and r have one entry per selected memory. Adjacent rows are
 * borrowed, others copied; in either case `bank` must outlive the new bank. The new bank includes the sketch.
 * CGAM_E_ARG if no bit is set. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_only(const cgam_bank *bank, const uint64_t *mask,
                                                   cgam_bank **out);

/* How a query is compared with memories: by <zeta, q>; by <zeta, q> / (|zeta| |q|), 0 where a norm is 0; or by
 * -|zeta - q|^2 / 2. */
typedef enum cgam_metric { CGAM_DOT, CGAM_COSINE, CGAM_L2 } cgam_metric;
CGAM_API extern const char *const cgam_metric_words[];

/* Makes a bank of the same memories whose <zeta, q> is the metric: for recalls at alpha = 0, whose queries are mapped
 * by cgam_metric_queries. All proofs of these recalls hold for the exact metric (docs/theorems/metrics.md). Gates would
 * see the mapped rows: give the original ones as gate weights W. Cosine borrows the rows of `bank`, l2 copies them with
 * 4 or 5 numbers more (info.d), as f64 or f32; in either case `bank` must outlive the new bank. CGAM_E_ARG for
 * CGAM_DOT, CGAM_E_UNSUPPORTED for l2 of a normalized bank. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_metric(const cgam_bank *bank, cgam_metric metric,
                                                     cgam_bank **out);
/* Maps q [count, d], d of the original bank, to out [count, info.d] for such a bank. CGAM_E_VALUE if |q|^2 is not 0 and
 * outside [2^-900, 2^1000]. */
CGAM_API CGAM_NODISCARD cgam_status cgam_metric_queries(const cgam_bank *bank, int64_t count,
                                                        const double *q, double *out);

/* Makes the sketch that recalls with opts.fast search: int8 rows with proved errors, d + d / 128 + 8 bytes a memory.
 * Takes about as long as four recalls. Call it before the bank is shared by threads; more calls do nothing. */
CGAM_API CGAM_NODISCARD cgam_status cgam_bank_sketch(cgam_bank *bank);

/* Names of memories, one per line of a text file (UTF-8; a final newline adds no name). Gives *out; free it with
 * cgam_row_names_free. Const afterwards. */
typedef struct cgam_row_names cgam_row_names;
CGAM_API CGAM_NODISCARD cgam_status cgam_row_names_load(cgam_env *env, const char *path,
                                                        cgam_row_names **out);
CGAM_API void cgam_row_names_free(cgam_row_names *names); /* NULL is fine */
CGAM_API const char *cgam_row_names_at(const cgam_row_names *names,
                                       int64_t i); /* belongs to names */
/* Returns the lowest row of that name, or -1 if the name is unknown. */
CGAM_API int64_t cgam_row_names_find(const cgam_row_names *names, const char *name);

/* 64-bit words in a mask for n rows. */
static inline int64_t cgam_mask_words(int64_t n) { return (n + 63) / 64; }

/* Typed columns, one entry per memory: integers (64 bits), reals (NaN = missing), or texts. Const once made. Read from
 * CSV with a heading, or from an .npz of arrays [rows]. A column of CSV holds integers, or reals, if each of its
 * fields is one, else text; with empty fields it holds reals, NaN for these, or text. An integer with needless leading
 * zeros is text. Gives *out; free it with cgam_columns_free. CGAM_E_SHAPE if the file has not `rows` rows. */
typedef struct cgam_columns cgam_columns;
CGAM_API CGAM_NODISCARD cgam_status cgam_columns_load(cgam_env *env, const char *path, int64_t rows,
                                                      cgam_columns **out);
CGAM_API void cgam_columns_free(cgam_columns *columns); /* NULL is fine */
CGAM_API int cgam_columns_count(const cgam_columns *columns);
/* Returns the name of column k, which belongs to columns; *type, if not NULL, becomes "integer", "real" or "text". */
CGAM_API const char *cgam_columns_at(const cgam_columns *columns, int k, const char **type);
/* Gives in *mask, which cgam_mask_free frees, the rows for which a predicate is true: a bit for each memory number,
 * as for cgam_bank_only. Exact: no number is rounded.
 *     predicate   := and-term { or and-term }      and-term := term { and term }
 *     term        := not term | ( predicate ) | COLUMN op LITERAL | COLUMN [not] in ( LITERAL {, LITERAL} )
 *     op          := = != < <= > >=
 * Words are read in either case. A column is a word, or a name "in quotes"; a text is 'in quotes', with '' for a quote.
 * Texts are compared byte by byte. Comparing a missing number gives false, != gives true. CGAM_E_ARG with the place
 * of an error, in characters from 1. */
CGAM_API CGAM_NODISCARD cgam_status cgam_columns_where(const cgam_columns *columns,
                                                       const char *predicate, uint64_t **mask);
CGAM_API void cgam_mask_free(cgam_env *env, uint64_t *mask); /* NULL is fine */
typedef struct cgam_bank_info {
    int64_t n, d;
    int64_t whole; /* memories of the source bank (cgam_bank_only), or all that were ever in it
                      (cgam_pack); else n. Memory numbers are below it */
    cgam_dtype dtype;
    double norm_min, norm_max; /* |zeta|, after normalising if requested */
    bool equal_norms;          /* to working precision; then the spectral forms apply */
    bool unit;                 /* equal and 1 */
    int64_t zero_rows;
    bool mapped; /* rows are pages of the file */
    bool sketch; /* the bank has a sketch */
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

/* ---- Packed banks: one file with everything a recall needs.
 *
 * A packed bank is a .safetensors file: the rows as they are, |row|^2 of each, and on request the sketch, names, and
 * A(alpha) factored for some alpha, each part with its digest. cgam_bank_load and its callers map such a file;
 * recalls then use names, sketch and factors automatically. The file contains what the library would compute from
 * the same rows, bit for bit. docs/guide/banks.md lists the arrays.
 *
 * Changing a packed bank. A reader maps the whole file and must never see bytes of a later version in it; and in this
 * format the header, which locates every part, comes first. So a change writes a new file beside the old one, syncs
 * it and renames it: a reader that opens the bank gets the old or the new file, complete; a reader that has it open
 * keeps the old one. If a writer dies, the old bank remains. Writers take turns by a lock on the file itself, which
 * ends with its holder; a second writer waits. The price: a change copies the rows once and, if the bank has
 * factored alphas, factors again.
 *
 * Memory numbers are stable: a dropped memory leaves the file, and its number is not used again until a bank is
 * packed from this one, which counts its rows from 0. Recalls treat a bank with dropped memories like one that
 * cgam_bank_only made. */

enum { CGAM_PACK_ALPHAS_MAX = 64 };

typedef struct cgam_pack_opts {
    int dtype;      /* a cgam_dtype of rows, f64, f32, f16 or bf16; default -1 = the source's */
    bool normalize; /* memories are the rows divided by their norms, stored as one factor per row;
                            the rows are not changed; default false */
    bool sketch;    /* default true */
    int64_t alphas; /* default 0 */
    const double *alpha; /* [alphas] above 0: penalties whose A(alpha) is factored; default NULL */
    const char *names;   /* file of names, one line per row; default NULL = those of a packed
                            source, else none */
    const char *columns; /* file of columns, see cgam_columns_load; default NULL likewise */
} cgam_pack_opts;
CGAM_API cgam_pack_opts cgam_pack_opts_default(void);

/* Packs the rows of `from`, a path as in cgam_bank_load, into `path`, which must end in .safetensors. If `from` is
 * several files, their types may differ if opts->dtype is set. If the source is packed and opts->names is NULL, its
 * names are kept; normalising follows the options. opts NULL = defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack(cgam_env *env, const char *from,
                                              const cgam_pack_opts *opts, const char *path);

/* Appends the rows of `from`, in the type of the bank. names: file of their names; required if the bank has names,
 * else NULL. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_add(cgam_env *env, const char *path, const char *from,
                                                  const char *names);
/* The same with a file of columns, which must have the names and types of the bank's; required if it has columns. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_add_columns(cgam_env *env, const char *path,
                                                          const char *from, const char *names,
                                                          const char *columns);
/* Replaces memory number[k] of the bank by row k of `from`, k < count; count must be the rows of `from`. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_put(cgam_env *env, const char *path, const char *from,
                                                  int64_t count, const int64_t *number);
/* Drops the memories whose bits are set in mask, which has a bit for each number up to info.whole. Numbers already
 * dropped are ignored. CGAM_E_ARG if no memory would be dropped, or if none would remain. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_drop(cgam_env *env, const char *path, int64_t bits,
                                                   const uint64_t *mask);

/* Checks the digests of all parts against the mapped file, which reads it once. Sets *damaged to NULL if all agree,
 * else to the name of a part that does not; the bank owns the name. CGAM_E_ARG if the bank is not packed.
 *
 * Opening does not check digests, because it would read every byte. A damaged file never causes an
 * access out of bounds, and a recall that meets a non-finite score fails with CGAM_E_VALUE. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_check(const cgam_bank *bank, const char **damaged);
/* The names in a packed bank, indexed by memory number. A dropped memory has the name "" and cannot be found. Gives
 * *out, NULL if the bank has no names; free it with cgam_row_names_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_names(const cgam_bank *bank, cgam_row_names **out);
/* The columns in a packed bank, which belong to it; NULL if it has none. */
CGAM_API const cgam_columns *cgam_pack_columns(const cgam_bank *bank);

#ifdef __cplusplus
}
#endif
#endif
