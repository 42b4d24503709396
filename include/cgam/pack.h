/* pack.h: a bank as one file that is ready for use.
 *
 * A packed bank is a .safetensors file: the rows as they are, |row|^2 of each, and where asked for the sketch
 * (bank.h), names, and A(alpha) factored for some alpha, each part with its digest. cgam_bank_load and whatever
 * stands on it open such a file by mapping it; recalls then use names, sketch and factors without being told. What is in
 * the file is what the library would compute of the same rows, bit for bit. docs/guide/banks.md lists the arrays.
 *
 * Changing one. A reader holds the file it has mapped, whole, and must never see another's bytes in it; and in this format the
 * header, which says where everything is, stands first. So a change writes a new file beside the old one, syncs it and
 * renames it: who opens the bank finds the old or the new one, whole, and who has it open keeps what is open. A writer that
 * dies leaves the old bank. Writers take turns by a lock on the file itself, which dies with its holder: who
 * comes second waits. The price is that a change copies the rows once and, where the bank has factored alpha, factors anew.
 *
 * Numbers of memories stay: a dropped one leaves the file, and its number is not given again until a bank is packed from
 * this one, which counts its rows from 0. To recalls a bank with dropped memories is as cgam_bank_only makes it.
 */
#ifndef CGAM_PACK_H
#define CGAM_PACK_H

#include <cgam/bank.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* ---- What a packed bank has beside its rows; of other banks, nothing. ------------------------ */
typedef struct cgam_pack_info {
    bool packed;
    bool names, sketch, normalize;
    int64_t alphas;
    const double *alpha; /* [alphas]; belongs to the bank */
    uint64_t bytes;      /* of the file */
} cgam_pack_info;
CGAM_API cgam_pack_info cgam_pack_describe(const cgam_bank *bank);
/* Compares the digests of all parts with the file as it is mapped: one reading of it. *damaged is NULL where all
 * agree, else the name of a part that does not; it belongs to the bank. CGAM_E_ARG: the bank is not a packed one.
 *
 * Opening does not do this, since it would read every byte. A damaged file then never leads outside
 * of memory, and a recall that meets a score that is not finite is CGAM_E_VALUE. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_check(const cgam_bank *bank, const char **damaged);
/* The names in it, by the numbers of memories; a dropped one has the name "" and is not found. Gives *out, NULL where
 * there are none; free it with cgam_row_names_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_pack_names(const cgam_bank *bank, cgam_row_names **out);

#ifdef __cplusplus
}
#endif
#endif
