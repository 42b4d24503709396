/* small.c: the court of a bank of few memories, by n x n matrices. */
#include "rigour/court.h"

#include <math.h>

typedef struct matrices {
    arb_mat_t off; /* G - diag G */
    arb_mat_t A, T, L;
    arb_mat_t x, y; /* columns */
} matrices;

static void open_small(court *c)
{
    matrices *m = flint_malloc(sizeof *m);
    arb_mat_struct *square[] = {m->off, m->A, m->T, m->L};
    for (int k = 0; k < 4; k++) arb_mat_init(square[k], c->n, c->n);
    arb_mat_init(m->x, c->n, 1);
    arb_mat_init(m->y, c->n, 1);
    c->own = m;
}

static void close_small(court *c)
{
    matrices *m = c->own;
    arb_mat_struct *all[] = {m->off, m->A, m->T, m->L, m->x, m->y};
    for (int k = 0; k < 6; k++) arb_mat_clear(all[k]);
    flint_free(m);
}

static void fill_small(court *c)
{
    matrices *m = c->own;
    slong d = c->d;
    arb_mat_zero(m->off);
    for (slong i = 0; i < c->n; i++)
        for (slong j = 0; j < i; j++) {
            arb_ptr to = arb_mat_entry(m->off, i, j);
            arb_dot(to, NULL, 0, c->Z + i * d, 1, c->Z + j * d, 1, d, c->prec);
            arb_set(arb_mat_entry(m->off, j, i), to);
        }
    arb_mat_scalar_mul_arb(m->A, m->off, c->alpha, c->prec);
    for (slong i = 0; i < c->n; i++) arb_one(arb_mat_entry(m->A, i, i));
}

/* T, with or without the last part. */
static void form(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                 arb_mat_t T)
{
    matrices *m = c->own;
    arb_mat_scalar_mul_arb(T, m->off, a, c->prec);
    for (slong i = 0; i < c->n; i++) arb_set(arb_mat_entry(T, i, i), level);
    for (slong i = 0; i < c->n && p; i++) {
        arb_mul(c->v, factor, p + i, c->prec);
        arb_sub(arb_mat_entry(T, i, i), arb_mat_entry(T, i, i), c->v, c->prec);
        for (slong j = 0; j < c->n; j++) arb_addmul(arb_mat_entry(T, i, j), c->v, p + j, c->prec);
    }
}

/* Is what is below the diagonal in column k 0, exactly? */
static bool is_alone(const arb_mat_t L, slong k)
{
    for (slong i = k + 1; i < arb_mat_nrows(L); i++)
        if (!arb_is_zero(arb_mat_entry(L, i, k))) return false;
    return true;
}

static int sign_small(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                      const arb_t x)
{
    matrices *m = c->own;
    slong n = c->n;
    bool touches = false;
    form(c, level, a, factor, p, m->L);
    for (slong i = 0; i < n; i++)
        arb_sub(arb_mat_entry(m->L, i, i), arb_mat_entry(m->L, i, i), x, c->prec);
    for (slong k = 0; k < n; k++) {
        arb_ptr pivot = arb_mat_entry(m->L, k, k);
        if (arb_is_negative(pivot)) return -1;
        if (arb_is_zero(pivot) && is_alone(m->L, k)) touches = true;
        else if (!arb_is_positive(pivot)) return 0;
        for (slong i = k + 1; i < n && !arb_is_zero(pivot); i++) {
            arb_div(c->v, arb_mat_entry(m->L, i, k), pivot, c->prec);
            if (arb_is_zero(c->v)) continue;
            for (slong j = k + 1; j <= i; j++)
                arb_submul(arb_mat_entry(m->L, i, j), c->v, arb_mat_entry(m->L, j, k), c->prec);
        }
    }
    return touches ? 2 : 1;
}

static void apply_small(court *c, arb_srcptr s, arb_ptr y)
{
    matrices *m = c->own;
    for (slong i = 0; i < c->n; i++)
        arb_dot(y + i, NULL, 0, arb_mat_entry(m->A, i, 0), 1, s, 1, c->n, c->prec);
}

static bool solve_small(court *c, const arb_t factor, arb_srcptr p, arb_srcptr y, arb_ptr x,
                        bool exactly)
{
    matrices *m = c->own;
    form(c, c->one, c->alpha, factor, p, m->T);
    for (slong i = 0; i < c->n; i++) arb_set(arb_mat_entry(m->y, i, 0), y + i);
    bool solved = exactly ? arb_mat_solve(m->x, m->T, m->y, c->prec)
                          : arb_mat_approx_solve(m->x, m->T, m->y, c->prec);
    for (slong i = 0; i < c->n && solved; i++) arb_set(x + i, arb_mat_entry(m->x, i, 0));
    return solved;
}

static verdict orthogonal_small(const court *c)
{
    const matrices *m = c->own;
    for (slong i = 0; i < c->n; i++)
        for (slong j = 0; j < i; j++) {
            if (!arb_contains_zero(arb_mat_entry(m->off, i, j))) return WRONG;
            if (!arb_is_zero(arb_mat_entry(m->off, i, j)))
                return c->prec < PRECISION_MAX ? OPEN : RIGHT;
        }
    return RIGHT;
}

const court_kind court_small = {"small",    open_small,  fill_small,  close_small,
                                sign_small, apply_small, solve_small, orthogonal_small};
