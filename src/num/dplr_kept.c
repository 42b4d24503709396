/* dplr_kept.c: stored factors. */
#include "num/dplr_parts.h"

#include <math.h>

enum { A, NORM, SIZE, ERROR, GAIN, PIVOT_OFF, NEGATIVE, DENSE, SINGULAR, VANISHING };
_Static_assert((int)CGAM_DPLR_SCALARS == VANISHING + 1, "scalars that are kept");

cgam_dplr_kept cgam_dplr_keep_as(const cgam_dplr *T, const cgam_dplr_inverse *M)
{
    cgam_dplr_kept kept = {.n = T->n,
                           .size = T->dense ? T->n : T->k + T->m,
                           .edge = T->m,
                           .K = T->K,
                           .D = T->D,
                           .dinv = T->dinv,
                           .diagonal = T->diagonal,
                           .pivots = T->pivots,
                           .border = T->m > 0 ? T->border : NULL};
    double *x = kept.scalars;
    x[A] = T->a;
    x[NORM] = T->norm;
    x[SIZE] = T->size;
    x[ERROR] = T->error;
    x[GAIN] = T->gain;
    x[PIVOT_OFF] = T->pivot_off;
    x[NEGATIVE] = (double)T->negative;
    x[DENSE] = T->dense;
    x[SINGULAR] = T->singular;
    x[VANISHING] = T->vanishing;
    if (M) kept.inverse = cgam_dplr_inverse_kept(M, &kept.blocks);
    return kept;
}

/* Checks pivots in the form of dsytrf: rows counted from 1, negative ones in pairs. */
static bool pivots_hold(int64_t size, const int32_t *pivots)
{
    for (int64_t j = 0; j < size; j++) {
        int64_t row = pivots[j] > 0 ? pivots[j] : -(int64_t)pivots[j];
        if (row < 1 || row > size) return false;
        if (pivots[j] > 0) continue;
        if (j + 1 == size || pivots[j + 1] != pivots[j]) return false;
        j++;
    }
    return true;
}

static bool shapes_hold(const cgam_dplr_spec *spec, const cgam_dplr_kept *kept)
{
    int64_t n = spec->Z->n, k = cgam_dplr_columns(spec);
    bool dense = kept->scalars[DENSE] == 1;
    if (kept->scalars[A] != spec->a || dense != cgam_dplr_is_dense(spec) || kept->n != n ||
        !kept->K || !kept->D || !kept->pivots || (!dense && !kept->dinv) || kept->edge < 0 ||
        kept->edge > (dense ? 0 : k) || (kept->edge > 0 && !kept->border) ||
        kept->size != (dense ? n : k + kept->edge) || !pivots_hold(kept->size, kept->pivots) ||
        !(fabs(kept->scalars[NEGATIVE]) <= (double)n))
        return false;
    for (int64_t s = 0; s < kept->edge; s++)
        if (kept->border[s] < 0 || kept->border[s] >= n ||
            (s > 0 && kept->border[s] <= kept->border[s - 1]))
            return false;
    return true;
}

cgam_status cgam_dplr_restore(cgam_env *env, const cgam_dplr_spec *spec, const cgam_dplr_kept *kept,
                              cgam_dplr **out, cgam_dplr_inverse **M)
{
    const double *x = kept->scalars;
    *out = NULL;
    if (M) *M = NULL;
    if (!shapes_hold(spec, kept))
        return cgam_fail(env, CGAM_E_FORMAT,
                         "the stored factors of a gate operator do not match the bank");
    cgam_dplr *T = cgam_zalloc(env, 1, sizeof *T);
    if (!T) return cgam_fail_nomem(env, "a gate operator");
    *T = (cgam_dplr){.env = env,
                     .Z = spec->Z,
                     .norm2 = spec->norm2,
                     .a = spec->a,
                     .dense = x[DENSE] == 1,
                     .n = kept->n,
                     .d = spec->Z->d,
                     .k = cgam_dplr_columns(spec),
                     .m = kept->edge,
                     .D = (double *)(uintptr_t)kept->D,
                     .dinv = (double *)(uintptr_t)kept->dinv,
                     .border = (int64_t *)(uintptr_t)kept->border,
                     .K = (double *)(uintptr_t)kept->K,
                     .pivots = (lapack_int *)(uintptr_t)kept->pivots,
                     .negative = (int64_t)x[NEGATIVE],
                     .singular = x[SINGULAR] == 1,
                     .vanishing = x[VANISHING] == 1,
                     .norm = x[NORM],
                     .diagonal = (double *)(uintptr_t)kept->diagonal,
                     .size = x[SIZE],
                     .error = x[ERROR],
                     .gain = x[GAIN],
                     .pivot_off = x[PIVOT_OFF],
                     .borrowed = true};
    *out = T;
    if (!M || !kept->inverse || T->singular) return CGAM_OK;
    cgam_status status = cgam_dplr_inverse_restore(T, kept->inverse, kept->blocks, M);
    if (status == CGAM_OK) return CGAM_OK;
    cgam_dplr_free(T);
    *out = NULL;
    return status;
}
