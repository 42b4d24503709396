/* tall.c: the court of a bank of more memories than dimensions, without n x n matrices.
 *
 *     T - x I = diag(D) + a Z Z' + factor p p' ,   D_i = level - a n_i - factor p_i - x
 *
 * is a diagonal and k <= d + 1 columns B with weights w > 0, and the bordered matrix
 * [D B; B' -w^-1] eliminated from either side counts (Sylvester)
 *     negatives of T - x I  =  negatives of D  -  negatives of S,   S = w^-1 + B' D^-1 B   [k, k] .
 * Inverses are Woodbury's. Both lose what D nearly cancels, which more bits give back. */
#include "rigour/court.h"

typedef struct factors {
    arb_ptr n2, D; /* [n] */
    arb_ptr V;     /* [n, d + 1] B over D */
    arb_ptr t;     /* [d + 1] */
    arb_mat_t S, x, y;
} factors;

static void open_tall(court *c)
{
    factors *f = flint_malloc(sizeof *f);
    slong k = c->d + 1;
    f->n2 = _arb_vec_init(c->n);
    f->D = _arb_vec_init(c->n);
    f->V = _arb_vec_init(c->n * k);
    f->t = _arb_vec_init(k);
    c->own = f;
}

static void close_tall(court *c)
{
    factors *f = c->own;
    slong k = c->d + 1;
    _arb_vec_clear(f->n2, c->n);
    _arb_vec_clear(f->D, c->n);
    _arb_vec_clear(f->V, c->n * k);
    _arb_vec_clear(f->t, k);
    flint_free(f);
}

static void fill_tall(court *c)
{
    factors *f = c->own;
    for (slong i = 0; i < c->n; i++) {
        arb_srcptr z = c->Z + i * c->d;
        arb_dot(f->n2 + i, NULL, 0, z, 1, z, 1, c->d, c->prec);
        if (c->x->normalize && !arb_is_zero(f->n2 + i)) arb_one(f->n2 + i);
    }
}

/* D; how many are certainly negative, or -1 where one contains 0. */
static slong diagonal(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                      const arb_t x)
{
    factors *f = c->own;
    slong negative = 0, unknown = 0;
    for (slong i = 0; i < c->n; i++) {
        arb_sub(f->D + i, level, x, c->prec);
        arb_submul(f->D + i, a, f->n2 + i, c->prec);
        if (p) arb_submul(f->D + i, factor, p + i, c->prec);
        negative += arb_is_negative(f->D + i);
        unknown += arb_contains_zero(f->D + i);
    }
    return unknown ? -1 : negative;
}

/* S from D, [k, k]; columns of weight 0 are left out. */
static slong form(court *c, const arb_t a, const arb_t factor, arb_srcptr p, arb_mat_t S)
{
    factors *f = c->own;
    slong kz = arb_is_zero(a) ? 0 : c->d, k = kz + (p && !arb_is_zero(factor)), n = c->n;
    for (slong i = 0; i < n; i++) {
        arb_inv(c->v, f->D + i, c->prec);
        for (slong j = 0; j < kz; j++)
            arb_mul(f->V + i * k + j, c->Z + i * c->d + j, c->v, c->prec);
        if (k > kz) arb_mul(f->V + i * k + kz, p + i, c->v, c->prec);
    }
    arb_mat_init(S, k, k);
    for (slong r = 0; r < k; r++)
        for (slong j = 0; j <= r; j++) {
            arb_srcptr B = j < kz ? c->Z + j : p;
            arb_ptr to = arb_mat_entry(S, r, j);
            arb_dot(to, NULL, 0, f->V + r, k, B, j < kz ? c->d : 1, n, c->prec);
            if (r == j) {
                arb_inv(c->v, r < kz ? a : factor, c->prec);
                arb_add(to, to, c->v, c->prec);
            }
            arb_set(arb_mat_entry(S, j, r), to);
        }
    return k;
}

/* Negative pivots of S, -1 where a sign is unknown. */
static slong negatives(court *c, arb_mat_t S, slong k)
{
    slong count = 0;
    for (slong r = 0; r < k; r++) {
        arb_ptr pivot = arb_mat_entry(S, r, r);
        if (arb_contains_zero(pivot)) return -1;
        count += arb_is_negative(pivot);
        for (slong i = r + 1; i < k; i++) {
            arb_div(c->v, arb_mat_entry(S, i, r), pivot, c->prec);
            for (slong j = r + 1; j <= i; j++)
                arb_submul(arb_mat_entry(S, i, j), c->v, arb_mat_entry(S, j, r), c->prec);
        }
    }
    return count;
}

static int sign_tall(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                     const arb_t x)
{
    slong of_D = diagonal(c, level, a, factor, p, x);
    slong k = (arb_is_zero(a) ? 0 : c->d) + (p && !arb_is_zero(factor));
    if (of_D < 0) return 0;
    if (of_D == 0) return 1;
    if (of_D > k) return -1;
    arb_mat_t S;
    k = form(c, a, factor, p, S);
    slong of_S = negatives(c, S, k);
    arb_mat_clear(S);
    return of_S < 0 ? 0 : of_D == of_S ? 1 : -1;
}

static void apply_tall(court *c, arb_srcptr s, arb_ptr y)
{
    factors *f = c->own;
    slong d = c->d;
    for (slong j = 0; j < d; j++) {
        arb_dot(f->t + j, NULL, 0, c->Z + j, d, s, 1, c->n, c->prec);
        arb_mul(f->t + j, f->t + j, c->alpha, c->prec);
    }
    for (slong i = 0; i < c->n; i++) {
        arb_mul(c->v, c->alpha, f->n2 + i, c->prec);
        arb_sub(c->v, c->one, c->v, c->prec);
        arb_mul(c->v, c->v, s + i, c->prec);
        arb_dot(y + i, c->v, 0, c->Z + i * d, 1, f->t, 1, d, c->prec);
    }
}

/* D^-1 y - V S^-1 V'y. */
static bool solve_tall(court *c, const arb_t factor, arb_srcptr p, arb_srcptr y, arb_ptr x,
                       bool exactly)
{
    factors *f = c->own;
    if (diagonal(c, c->one, c->alpha, factor, p, c->zero) < 0) return false;
    arb_mat_t S, right, t;
    slong k = form(c, c->alpha, factor, p, S);
    arb_mat_init(right, k, 1);
    arb_mat_init(t, k, 1);
    for (slong r = 0; r < k; r++)
        arb_dot(arb_mat_entry(right, r, 0), NULL, 0, f->V + r, k, y, 1, c->n, c->prec);
    bool solved = k == 0 || (exactly ? arb_mat_solve(t, S, right, c->prec)
                                     : arb_mat_approx_solve(t, S, right, c->prec));
    for (slong i = 0; i < c->n && solved; i++) {
        arb_div(x + i, y + i, f->D + i, c->prec);
        for (slong r = 0; r < k; r++)
            arb_submul(x + i, f->V + i * k + r, arb_mat_entry(t, r, 0), c->prec);
    }
    arb_mat_clear(S);
    arb_mat_clear(right);
    arb_mat_clear(t);
    return solved;
}

/* More memories than there are directions, none of them zero, are not orthogonal. */
static verdict orthogonal_tall(const court *c)
{
    const factors *f = c->own;
    verdict is = RIGHT;
    slong count = 0, *rows = flint_malloc((size_t)(c->d + 1) * sizeof *rows);
    for (slong i = 0; i < c->n && count <= c->d; i++)
        if (!arb_is_zero(f->n2 + i)) rows[count++] = i;
    if (count > c->d) is = WRONG;
    arb_t dot;
    arb_init(dot);
    for (slong i = 0; i < count && is == RIGHT; i++)
        for (slong j = 0; j < i && is == RIGHT; j++) {
            arb_dot(dot, NULL, 0, c->Z + rows[i] * c->d, 1, c->Z + rows[j] * c->d, 1, c->d,
                    c->prec);
            if (!arb_contains_zero(dot)) is = WRONG;
            else if (!arb_is_zero(dot) && c->prec < PRECISION_MAX) is = OPEN;
        }
    arb_clear(dot);
    flint_free(rows);
    return is;
}

const court_kind court_tall = {"tall",    open_tall,  fill_tall,  close_tall,
                               sign_tall, apply_tall, solve_tall, orthogonal_tall};
