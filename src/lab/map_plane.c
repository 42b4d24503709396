/* map_plane.c: planes through memories, or along a bank's principal components. */
#include "base/blas.h"
#include "lab/map.h"
#include "memory/bank.h"
#include "num/eigen.h"

#include <cgam/recall.h>
#include <math.h>
#include <string.h>

enum { PRINCIPAL_MAX = 4096 };
static const double ON_A_LINE = 1e-9; /* of the longest vector: less than that is rounding */

void cgam_plane_free(cgam_env *env, cgam_plane *plane)
{
    cgam_free(env, plane->origin);
    *plane = (cgam_plane){0};
}

/* Mean of the bank, and the two leading eigenvectors of sum (zeta - mean)(zeta - mean)'. */
static cgam_status plane_principal(const cgam_bank *bank, cgam_plane *out)
{
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n, d = bank->Z.d;
    if (d > PRINCIPAL_MAX || d < 2)
        return cgam_fail(env, CGAM_E_ARG,
                         "principal components require 2 to %d dimensions; the bank has %lld",
                         PRINCIPAL_MAX, (long long)d);
    double *C = cgam_zalloc(env, (size_t)(d * d), sizeof *C);
    double *row = cgam_alloc(env, (size_t)(3 * d), sizeof *row), *values = row + d;
    cgam_status status = C && row ? CGAM_OK : cgam_fail_nomem(env, "principal components");
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        status = cgam_bank_row(bank, i, row);
        if (status == CGAM_OK) cblas_daxpy((int)d, 1.0 / (double)n, row, 1, out->origin, 1);
    }
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) {
        status = cgam_bank_row(bank, i, row);
        if (status != CGAM_OK) break;
        cblas_daxpy((int)d, -1, out->origin, 1, row, 1);
        for (int64_t j = 0; j < d; j++) cblas_daxpy((int)(j + 1), row[j], row, 1, C + j * d, 1);
    }
    if (status == CGAM_OK) /* ascending: the last is e1 */
        status = cgam_eigen_some(env, d, d - 2, d - 1, C, values, out->e2);
    for (int k = 0; k < 2 && status == CGAM_OK; k++) { /* fixes the sign */
        double *e = k ? out->e2 : out->e1, largest = 0;
        for (int64_t j = 0; j < d; j++)
            if (fabs(e[j]) > fabs(largest)) largest = e[j];
        if (largest < 0) cblas_dscal((int)d, -1, e, 1);
    }
    cgam_free(env, C);
    cgam_free(env, row);
    return status;
}

/* e1 and e2 from two vectors in their place, by Gram and Schmidt, twice. */
static cgam_status orthonormalise(const cgam_bank *bank, cgam_plane *out)
{
    int d = (int)out->d;
    double a = cblas_dnrm2(d, out->e1, 1), b = cblas_dnrm2(d, out->e2, 1);
    bool plane = a > 0 && b > ON_A_LINE * a;
    if (plane) cblas_dscal(d, 1 / a, out->e1, 1);
    for (int k = 0; k < 2 && plane; k++) {
        cblas_daxpy(d, -cblas_ddot(d, out->e1, 1, out->e2, 1), out->e1, 1, out->e2, 1);
        double left = cblas_dnrm2(d, out->e2, 1);
        plane = left > ON_A_LINE * (k ? 0.5 : b);
        if (plane) cblas_dscal(d, 1 / left, out->e2, 1);
    }
    return plane ? CGAM_OK : cgam_fail(bank->env, CGAM_E_ARG, "these memories do not span a plane");
}

static cgam_status plane_through(const cgam_bank *bank, int64_t count, const int64_t *index,
                                 cgam_plane *out)
{
    int d = (int)out->d;
    cgam_status status = cgam_bank_row(bank, index[0], out->e1);
    if (status == CGAM_OK) status = cgam_bank_row(bank, index[1], out->e2);
    if (status == CGAM_OK && count == 3) {
        double *third = cgam_alloc(bank->env, (size_t)d, sizeof *third);
        status =
            third ? cgam_bank_row(bank, index[2], third) : cgam_fail_nomem(bank->env, "a plane");
        if (status == CGAM_OK) {
            const double *corners[] = {out->e1, out->e2, third};
            for (int k = 0; k < 3; k++) cblas_daxpy(d, 1.0 / 3, corners[k], 1, out->origin, 1);
            /* e1 from the first to the second, e2 from the first towards the third */
            cblas_daxpy(d, -1, out->e1, 1, third, 1);
            cblas_daxpy(d, -1, out->e1, 1, out->e2, 1);
            memcpy(out->e1, out->e2, (size_t)d * sizeof *third);
            memcpy(out->e2, third, (size_t)d * sizeof *third);
        }
        cgam_free(bank->env, third);
    }
    return status == CGAM_OK ? orthonormalise(bank, out) : status;
}

cgam_status cgam_plane_new(const cgam_bank *bank, int64_t count, const int64_t *index,
                           cgam_plane *out)
{
    int64_t d = bank->Z.d;
    *out = (cgam_plane){.d = d};
    cgam_status alone = cgam_bank_alone(bank, "a plane");
    if (alone != CGAM_OK) return alone;
    if (count != 0 && count != 2 && count != 3)
        return cgam_fail(bank->env, CGAM_E_ARG, "a plane goes through 2 or 3 memories, not %lld",
                         (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (index[i] < 0 || index[i] >= bank->Z.n)
            return cgam_fail(bank->env, CGAM_E_ARG, "no memory %lld (valid: 0 to %lld)",
                             (long long)index[i], (long long)bank->Z.n - 1);
    out->origin = cgam_zalloc(bank->env, 3 * (size_t)d, sizeof *out->origin);
    if (!out->origin) return cgam_fail_nomem(bank->env, "a plane");
    out->e1 = out->origin + d;
    out->e2 = out->e1 + d;
    cgam_status status;
    if (count) {
        status = plane_through(bank, count, index, out);
    } else {
        out->e2 = out->origin + d; /* dsyevr writes both, the smaller first */
        out->e1 = out->e2 + d;
        status = plane_principal(bank, out);
    }
    if (status != CGAM_OK) cgam_plane_free(bank->env, out);
    return status;
}

void cgam_plane_of(const cgam_plane *plane, const double *q, double *x, double *y, double *off)
{
    double a = 0, b = 0, rest = 0;
    for (int64_t j = 0; j < plane->d; j++) {
        a += (q[j] - plane->origin[j]) * plane->e1[j];
        b += (q[j] - plane->origin[j]) * plane->e2[j];
    }
    for (int64_t j = 0; j < plane->d; j++) {
        double left = q[j] - plane->origin[j] - a * plane->e1[j] - b * plane->e2[j];
        rest += left * left;
    }
    *x = a;
    *y = b;
    *off = sqrt(rest);
}
