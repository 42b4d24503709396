/* pack.h (inside): a packed bank and the layout of its file.
 *
 *   rows          [live, d]        the rows, in the bank's type
 *   norm2         F64 [live]       |row|^2
 *   number        I64 [live]       which memories they are, ascending; absent: 0, 1, ...
 *   sketch.rows   I8  [live, d]    num/sketch.h, with sketch.scale F32 [live, blocks], sketch.hat and
 *                                  sketch.rest F32 [live]
 *   names         U8               one per line, in the order of the rows
 *   columnK.*     columns of the rows: columns.h
 *   twins.begin   I64, twins.member I64: families of equal memories (twins.h); absent: none
 *   gateK.*       A(alpha) of the K-th alpha: num/dplr.h, "kept"
 * and in the metadata "format", "n", "normalize", "alphaK". Reading checks sizes and everything that is used as an
 * index; other numbers are not checked. */
#ifndef CGAM_SRC_MEMORY_PACK_H
#define CGAM_SRC_MEMORY_PACK_H

#include "io/sealed.h"
#include "memory/gate.h"

#include <cgam/bank.h>

#define CGAM_PACKED_FORMAT "cgam bank 1"

typedef struct cgam_packed {
    cgam_env *env;
    cgam_file file;
    cgam_tensor_table table;
    int64_t n, live, d; /* memories before any were dropped, memories now, columns */
    cgam_dtype dtype;
    bool normalize;
    const void *rows;
    const double *norm2;
    const int64_t *number; /* or NULL */
    const char *names;     /* or NULL */
    int64_t names_size;
    cgam_columns *columns; /* or NULL */
    cgam_sketch sketch;    /* rows NULL: no sketch */
    int64_t families;      /* of equal memories; used where alphas > 0 */
    const int64_t *family, *member;
    int64_t members;
    int64_t alphas;
    double alpha[CGAM_PACK_ALPHAS_MAX];
} cgam_packed;

/* Sets *out to NULL if the file is not a packed bank or does not exist; the caller reports a missing file. */
cgam_status cgam_packed_open(cgam_env *env, const char *path, cgam_packed **out);
/* The same from an open file, which it takes over if *out is not NULL. */
cgam_status cgam_packed_read(cgam_env *env, const char *name, cgam_file *file, cgam_packed **out);
void cgam_packed_free(cgam_packed *packed); /* NULL is allowed */
/* Makes a bank over it. The bank owns it from then on, also on failure. */
cgam_status cgam_packed_bank(cgam_packed *packed, const char *name, const cgam_bank_opts *opts,
                             cgam_bank **out);

/* Chooses the memories to drop, from the bank as it is once the file is locked. Gives *mask, a bit for each number up
 * to info.whole. */
typedef cgam_status (*cgam_pack_choice)(void *user, const cgam_bank *bank, uint64_t **mask);
/* Like cgam_pack_drop, with rows chosen under the lock: a list made earlier may refer to a bank that another process
 * has since replaced. */
cgam_status cgam_pack_drop_by(cgam_env *env, const char *path, cgam_pack_choice which, void *user);

/* Finds an array by name; *out is NULL if there is none. shape: the expected dimensions, -1 = any; filled in. */
cgam_status cgam_packed_part(const cgam_packed *packed, const char *name, const char *type,
                             int ndim, int64_t *shape, const void **out);

/* Writes A(alpha), the index-th, unless storing it saves nothing. */
cgam_status cgam_packed_gate_write(cgam_sealed *file, int index, const cgam_gate *gate);
/* Gives the stored gate for alpha. Gives NULL if there is none, or if opts ask for more than it holds. It borrows
 * from the bank. */
cgam_status cgam_packed_gate(const cgam_bank *bank, double alpha, const cgam_gate_opts *opts,
                             cgam_gate **out);

/* ---- What a packed bank stores besides its rows; empty for other banks. ---------------------- */
typedef struct cgam_pack_info {
    bool packed;
    bool names, sketch, normalize;
    int64_t alphas;
    const double *alpha; /* [alphas]; borrowed from the bank */
    uint64_t bytes;      /* of the file */
} cgam_pack_info;
cgam_pack_info cgam_pack_describe(const cgam_bank *bank);

#endif
