/* gradient_rows.c: dL/dZ of a group, a few rows at a time:
 *
 *   dZ_i = sum_k  w_ki q_k + t_ki (lambda P c_k - lambda alpha Z's_k) - s_ki lambda alpha Z't_k + p_ki (dL/dy)_k
 *          + 2 lambda alpha (sum_k t_ki s_ki) zeta_i
 *
 * The sum is a product of a matrix of coefficients [rows, up to 4 count] with one of vectors [up to 4 count, d]. Only
 * the last term reads the bank. */
#include "memory/gradient.h"

#include "base/alloc.h"
#include "base/blas.h"

#include <string.h>

enum { ROWS = 32, TILES = 16, KINDS = 4 }; /* 2 MB for d = 512: what is made stays in the cache */

typedef struct spread {
    const cgam_slope *g;
    int64_t terms; /* kinds x count */
    int kinds;
    const double *of[KINDS]; /* [count, n] coefficients of a kind */
    double *F;               /* [terms, d] vectors */
    double *E;               /* [TILES, ROWS, terms] */
    double *out;             /* [TILES, ROWS, d] */
    double *zeta;            /* [TILES, d] */
    int64_t from;            /* the first row of the first tile */
} spread;

static int64_t rows_of(const spread *x, int64_t tile)
{
    int64_t left = x->g->plan->bank->Z.n - x->from - tile * ROWS;
    return left < 0 ? 0 : left < ROWS ? left : ROWS;
}

static cgam_status spread_tile(void *arg, int64_t tile)
{
    spread *x = arg;
    const cgam_slope *g = x->g;
    const cgam_rows *Z = &g->plan->bank->Z;
    int64_t d = Z->d, at = x->from + tile * ROWS, rows = rows_of(x, tile);
    double *E = x->E + tile * ROWS * x->terms, *out = x->out + tile * ROWS * d;
    double twice = 2 * g->plan->opts.lambda * g->plan->gate->a, *zeta = x->zeta + tile * d;
    if (cgam_interrupted(g->plan->bank->env)) return CGAM_E_INTERRUPTED;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t m = 0; m < x->terms; m++)
            E[r * x->terms + m] = x->of[m / g->count][m % g->count * Z->n + at + r];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)d, (int)x->terms, 1, E,
                (int)x->terms, x->F, (int)d, 0, out, (int)d);
    for (int64_t r = 0; r < rows && twice > 0; r++) {
        double ts = 0;
        for (int64_t k = 0; k < g->count; k++)
            ts += g->t[k * Z->n + at + r] * g->s[k * Z->n + at + r];
        cgam_rows_get(Z, at + r, 1, zeta);
        for (int64_t j = 0; j < d; j++) out[r * d + j] += twice * ts * zeta[j];
    }
    double *whole = g->out->Z ? g->out->Z + at * d : NULL;
    for (int64_t j = 0; whole && j < rows * d; j++) whole[j] += out[j];
    return CGAM_OK;
}

/* The vectors of the group, by kinds. */
static cgam_status load(spread *x, const double *Zs, const double *Zt)
{
    const cgam_slope *g = x->g;
    const cgam_recall *plan = g->plan;
    const cgam_recall_in *in = &g->in->recall;
    int64_t d = plan->bank->Z.d, count = g->count;
    double lambda = plan->opts.lambda, la = lambda * plan->gate->a;
    x->of[0] = g->w, x->of[1] = g->t;
    x->kinds = 2;
    if (la > 0) x->of[x->kinds++] = g->s;
    if (g->reads) x->of[x->kinds++] = g->p;
    x->terms = x->kinds * count;
    cgam_status status =
        cgam_alloc_all(plan->bank->env, "the gradient of the bank", CGAM_ZEROS(x->F, x->terms * d),
                       CGAM_ARRAY(x->E, TILES * ROWS * x->terms),
                       CGAM_ARRAY(x->out, TILES * ROWS * d), CGAM_ARRAY(x->zeta, TILES * d));
    if (status != CGAM_OK) return status;
    memcpy(x->F, in->q + g->from * d, (size_t)(count * d) * sizeof *x->F);
    for (int64_t k = 0; k < count; k++) {
        double *of_t = x->F + (count + k) * d;
        if (in->c && !plan->opts.W) {
            cgam_recall_project(plan, in->c + (in->c_per_query ? g->from + k : 0) * plan->d_c,
                                of_t);
            for (int64_t j = 0; j < d; j++) of_t[j] *= lambda;
        }
        for (int64_t j = 0; j < d && la > 0; j++) {
            of_t[j] -= la * Zs[k * d + j];
            x->F[(2 * count + k) * d + j] = -la * Zt[k * d + j];
        }
    }
    if (g->reads)
        memcpy(x->F + (x->kinds - 1) * count * d, g->dy, (size_t)(count * d) * sizeof *x->F);
    return CGAM_OK;
}

cgam_status cgam_slope_rows(const cgam_slope *g, const double *Zs, const double *Zt)
{
    cgam_env *env = g->plan->bank->env;
    int64_t n = g->plan->bank->Z.n, d = g->plan->bank->Z.d;
    spread x = {.g = g};
    cgam_status status = load(&x, Zs, Zt);
    for (; x.from < n && status == CGAM_OK; x.from += TILES * ROWS) {
        int64_t tiles = (n - x.from + ROWS - 1) / ROWS;
        if (tiles > TILES) tiles = TILES;
        status = cgam_parallel(env, tiles, spread_tile, &x);
        for (int64_t k = 0; k < tiles && status == CGAM_OK && g->opts->rows; k++)
            status = g->opts->rows(g->opts->user, x.from + k * ROWS, rows_of(&x, k),
                                   x.out + k * ROWS * d);
    }
    cgam_free_all(env, x.F, x.E, x.out, x.zeta);
    return status;
}
