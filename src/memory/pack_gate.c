/* pack_gate.c: writes A(alpha) to a packed bank and reads it back. It stores what cgam_gate_new computed, so a recall
 * gives the same bits as with a new gate. */
#include "memory/pack.h"
#include "memory/twins.h"

#include <math.h>
#include <string.h>

enum {
    ALPHA,
    REGIME,
    CRITICAL,
    CRITICAL_LO,
    CRITICAL_HI,
    PROVED,
    ETA,
    ETA_EXACT,
    NEGATIVE,
    GAIN,
    ONE_PASS,
    FACTORS, /* those of num/dplr.h follow */
    SCALARS = FACTORS + CGAM_DPLR_SCALARS
};
enum { PART_NAME = 32 };

static const char *part_name(int index, const char *what, char name[PART_NAME])
{
    snprintf(name, PART_NAME, "gate%d.%s", index, what);
    return name;
}

static cgam_status write_part(cgam_sealed *file, int index, const char *what, const char *type,
                              int64_t rows, int64_t columns, const void *data)
{
    char name[PART_NAME];
    if (!data || rows == 0) return CGAM_OK;
    return cgam_sealed_part(
        file,
        &(cgam_part){part_name(index, what, name), type, columns ? 2 : 1, {rows, columns}, data});
}

cgam_status cgam_packed_gate_write(cgam_sealed *file, int index, const cgam_gate *gate)
{
    const cgam_gate_info *info = &gate->info;
    /* one memory needs no factors; the critical point would also need stored modes */
    if (!gate->A || gate->a == 0 || gate->critical_modes) return CGAM_OK;
    cgam_dplr_kept kept = cgam_dplr_keep_as(gate->A, gate->small);
    double x[SCALARS];
    x[ALPHA] = info->alpha;
    x[REGIME] = (double)info->regime;
    x[CRITICAL] = info->critical.alpha;
    x[CRITICAL_LO] = info->critical.alpha_lo;
    x[CRITICAL_HI] = info->critical.alpha_hi;
    x[PROVED] = info->critical.proved;
    x[ETA] = info->eta_min;
    x[ETA_EXACT] = info->eta_min_exact;
    x[NEGATIVE] = (double)info->negative;
    x[GAIN] = gate->gain;
    x[ONE_PASS] = gate->one_pass;
    memcpy(x + FACTORS, kept.scalars, sizeof kept.scalars);
    cgam_status status = write_part(file, index, "scalars", "F64", SCALARS, 0, x);
    if (status == CGAM_OK)
        status = write_part(file, index, "K", "F64", kept.size, kept.size, kept.K);
    if (status == CGAM_OK) status = write_part(file, index, "D", "F64", kept.n, 0, kept.D);
    if (status == CGAM_OK) status = write_part(file, index, "dinv", "F64", kept.n, 0, kept.dinv);
    if (status == CGAM_OK)
        status = write_part(file, index, "diagonal", "F64", kept.size, 0, kept.diagonal);
    if (status == CGAM_OK)
        status = write_part(file, index, "pivots", "I32", kept.size, 0, kept.pivots);
    if (status == CGAM_OK)
        status = write_part(file, index, "border", "I64", kept.edge, 0, kept.border);
    if (status == CGAM_OK)
        status = write_part(file, index, "inverse", "F64", kept.blocks, 0, kept.inverse);
    return status;
}

static cgam_status find_part(const cgam_packed *p, int index, const char *what, const char *type,
                             int64_t *count, const void **out)
{
    char name[PART_NAME];
    return cgam_packed_part(p, part_name(index, what, name), type, 1, count, out);
}

/* Collects the stored arrays; kept->K is NULL if nothing was stored. */
static cgam_status collect_parts(const cgam_packed *p, int index, const double **scalars,
                                 cgam_dplr_kept *kept)
{
    int64_t count = SCALARS, sides[2] = {-1, -1};
    const void *x, *K, *D, *dinv, *diagonal, *pivots, *border, *inverse;
    char name[PART_NAME];
    *kept = (cgam_dplr_kept){.n = p->live, .edge = -1, .blocks = -1};
    cgam_status status = find_part(p, index, "scalars", "F64", &count, &x);
    if (status != CGAM_OK || !x) return status;
    status = cgam_packed_part(p, part_name(index, "K", name), "F64", 2, sides, &K);
    kept->size = sides[0];
    if (status == CGAM_OK) status = find_part(p, index, "D", "F64", &kept->n, &D);
    if (status == CGAM_OK) status = find_part(p, index, "dinv", "F64", &kept->n, &dinv);
    if (status == CGAM_OK) status = find_part(p, index, "diagonal", "F64", &kept->size, &diagonal);
    if (status == CGAM_OK) status = find_part(p, index, "pivots", "I32", &kept->size, &pivots);
    if (status == CGAM_OK) status = find_part(p, index, "border", "I64", &kept->edge, &border);
    if (status == CGAM_OK) status = find_part(p, index, "inverse", "F64", &kept->blocks, &inverse);
    if (status != CGAM_OK) return status;
    if (!K || sides[0] != sides[1])
        return cgam_fail(p->env, CGAM_E_FORMAT, "packed bank: %s is missing or not square", name);
    if (!border) kept->edge = 0;
    *scalars = x;
    kept->K = K;
    kept->D = D;
    kept->dinv = dinv;
    kept->diagonal = diagonal;
    kept->pivots = pivots;
    kept->border = border;
    kept->inverse = inverse;
    memcpy(kept->scalars, *scalars + FACTORS, sizeof kept->scalars);
    return CGAM_OK;
}

static cgam_status restore_gate(const cgam_bank *bank, const double *x, const cgam_dplr_kept *kept,
                                bool coupled, cgam_gate **out)
{
    cgam_env *env = bank->env;
    const cgam_packed *p = bank->packed;
    if (!(x[REGIME] == CGAM_SUBCRITICAL || x[REGIME] == CGAM_CRITICAL ||
          x[REGIME] == CGAM_SUPERCRITICAL) ||
        !(fabs(x[NEGATIVE]) <= (double)bank->Z.n))
        return cgam_fail(env, CGAM_E_FORMAT, "packed bank: a gate operator with an invalid regime");
    cgam_gate *gate = cgam_zalloc(env, 1, sizeof *gate);
    if (!gate) return cgam_fail_nomem(env, "a gate operator");
    *gate = (cgam_gate){
        .bank = bank,
        .info = {.alpha = x[ALPHA],
                 .regime = (cgam_regime)x[REGIME],
                 .critical = {x[CRITICAL], x[CRITICAL_LO], x[CRITICAL_HI], x[PROVED] == 1},
                 .eta_min = x[ETA],
                 .eta_min_exact = x[ETA_EXACT] == 1,
                 .negative = (int64_t)x[NEGATIVE]},
        .a = x[ALPHA],
        .eta_least = x[ETA],
        .gain = x[GAIN],
        .one_pass = x[ONE_PASS] == 1,
        .alike = true};
    cgam_dplr_spec spec = cgam_gate_hessian(gate, 1, 0, NULL);
    cgam_status status =
        cgam_dplr_restore(env, &spec, kept, &gate->A, coupled ? &gate->small : NULL);
    if (status == CGAM_OK && gate->one_pass && cgam_dplr_dense(gate->A))
        status = cgam_fail(env, CGAM_E_FORMAT,
                           "packed bank: a gate operator is both dense and "
                           "by rows");
    if (status == CGAM_OK)
        status = cgam_twins_restore(env, bank->Z.n, p->families, p->family, p->members, p->member,
                                    &gate->twins);
    if (status == CGAM_OK) *out = gate;
    else cgam_gate_free(gate);
    return status;
}

cgam_status cgam_packed_gate(const cgam_bank *bank, double alpha, const cgam_gate_opts *opts,
                             cgam_gate **out)
{
    const cgam_packed *p = bank->packed;
    const double *scalars = NULL;
    cgam_dplr_kept kept;
    *out = NULL;
    /* the stored gate was made with the least effort, the effort of a recall */
    bool more = opts->effort == CGAM_EFFORT_FULL ||
                (opts->effort == CGAM_EFFORT_FREE && cgam_bank_small(bank));
    if (!p || opts->memory_max || more) return CGAM_OK;
    for (int k = 0; k < p->alphas; k++) {
        if (p->alpha[k] != alpha) continue;
        cgam_status status = collect_parts(p, k, &scalars, &kept);
        if (status != CGAM_OK || !kept.K) return status;
        if (scalars[ALPHA] != alpha)
            return cgam_fail(bank->env, CGAM_E_FORMAT,
                             "packed bank: a gate operator has the wrong alpha");
        return restore_gate(bank, scalars, &kept, opts->coupled, out);
    }
    return CGAM_OK;
}
