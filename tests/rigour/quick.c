/* quick.c: the court of a small bank once more, in long double.
 *
 * The same questions (claims.c), asked of the same court (court.c, small.c, entmax.c), with the balls of
 * ball.h in the place of Arb's: names of Arb stand for them below, and functions that others see are
 * named apart. What is right here is right; all else goes on to Arb, since a system that long double
 * could not solve, say, is not one without a solution. */
#define COURT_IN_LONG_DOUBLE
#include "rigour/ball.h"
#include "rigour/campaign.h"

#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---------------------------------------------------------------------------------- */

typedef long slong;
typedef ball arb_struct;
typedef ball arb_t[1];
typedef ball *arb_ptr;
typedef const ball *arb_srcptr;
typedef long double arf_t[1], mag_t[1];

#define arb_init(x) (*(x) = ball_exact(0))
#define arb_clear(x) ((void)(x))
#define arb_zero(x) (*(x) = ball_exact(0))
#define arb_one(x) (*(x) = ball_exact(1))
#define arb_set(z, x) (*(z) = *(x))
#define arb_set_d(z, x) (*(z) = ball_exact(x))
#define arb_set_si(z, x) (*(z) = ball_exact(x))
#define arb_unit_interval(z) (*(z) = (ball){0.5L, 0.5L})
#define arb_get_mid_arb(z, x) (*(z) = ball_exact((x)->mid))
#define arb_neg(z, x) (*(z) = ball_neg(*(x)))
#define arb_abs(z, x) (*(z) = (ball){fabsl((x)->mid), (x)->rad})
#define arb_add(z, x, y, prec) (*(z) = ball_add(*(x), *(y)))
#define arb_sub(z, x, y, prec) (*(z) = ball_sub(*(x), *(y)))
#define arb_mul(z, x, y, prec) (*(z) = ball_mul(*(x), *(y)))
#define arb_div(z, x, y, prec) (*(z) = ball_div(*(x), *(y)))
#define arb_inv(z, x, prec) (*(z) = ball_div(ball_exact(1), *(x)))
#define arb_addmul(z, x, y, prec) (*(z) = ball_add(*(z), ball_mul(*(x), *(y))))
#define arb_submul(z, x, y, prec) (*(z) = ball_sub(*(z), ball_mul(*(x), *(y))))
#define arb_add_ui(z, x, y, prec) (*(z) = ball_add(*(x), ball_exact(y)))
#define arb_sub_ui(z, x, y, prec) (*(z) = ball_sub(*(x), ball_exact(y)))
#define arb_mul_ui(z, x, y, prec) (*(z) = ball_mul(*(x), ball_exact(y)))
#define arb_mul_2exp_si(z, x, e) (*(z) = ball_scale(*(x), (int)(e)))
#define arb_sqrt(z, x, prec) (*(z) = ball_sqrt(*(x)))
#define arb_sqrtpos(z, x, prec) (*(z) = ball_sqrt(*(x)))
#define arb_exp(z, x, prec) (*(z) = ball_exp(*(x)))
#define arb_log(z, x, prec) (*(z) = ball_log(*(x)))
#define arb_pow(z, x, y, prec) (*(z) = ball_pow(*(x), *(y)))
#define arb_union(z, x, y, prec) (*(z) = ball_union(*(x), *(y)))
#define arb_is_zero(x) ball_is_zero(*(x))
#define arb_is_finite(x) ball_is_finite(*(x))
#define arb_is_positive(x) ball_is_positive(*(x))
#define arb_is_negative(x) ball_is_negative(*(x))
#define arb_is_nonpositive(x) ball_is_nonnegative(ball_neg(*(x)))
#define arb_contains_zero(x) (!ball_is_positive(*(x)) && !ball_is_negative(*(x)))
#define arb_le(x, y) ball_is_nonnegative(ball_sub(*(y), *(x)))
#define arb_gt(x, y) ball_is_positive(ball_sub(*(x), *(y)))

#define arb_midref(x) (&(x)->mid)
#define arb_get_ubound_arf(z, x, prec) (*(z) = (x)->mid + wide((x)->rad + BALL_U * fabsl((x)->mid)))
#define arb_set_arf(z, x) (*(z) = ball_exact(*(x)))
#define arf_init(x) (*(x) = 0)
#define arf_clear(x) ((void)(x))
#define arf_cmp(x, y) ((*(x) > *(y)) - (*(x) < *(y)))
#define arf_cmpabs_2exp_si(x, e) (fabsl(*(x)) < ldexpl(1, (int)(e)) ? -1 : 1)
#define arf_get_d(x, rounding) ((double)*(x))

#define arb_radref(x) (&(x)->rad)
#define arb_get_mag(z, x) (*(z) = ball_most(*(x)))
#define mag_init(x) (*(x) = 0)
#define mag_clear(x) ((void)(x))
#define mag_set(z, x) (*(z) = *(x))
#define mag_inf(z) (*(z) = INFINITY)
#define mag_is_zero(x) (*(x) == 0)
#define mag_get_d_log2_approx(x) ((double)log2l(*(x)))
#define mag_cmp_2exp_si(x, e) (*(x) < ldexpl(1, (int)(e)) ? -1 : 1)
#define mag_mul_2exp_si(z, x, e) (*(z) = wide(ldexpl(*(x), (int)(e))))

/* ---- Vectors and matrices --------------------------------------------------------------------- */

typedef struct arb_mat_struct {
    ball *entry;
    slong rows, columns;
} arb_mat_struct;
typedef arb_mat_struct arb_mat_t[1];

#define flint_malloc malloc
#define flint_free free
#define _arb_vec_init(n) calloc((size_t)(n) + 1, sizeof(ball))
#define _arb_vec_clear(x, n) free(x)
#define _arb_vec_zero(x, n) memset(x, 0, (size_t)(n) * sizeof(ball))
#define _arb_vec_set(z, x, n) memmove(z, x, (size_t)(n) * sizeof(ball))
#define arb_mat_entry(m, i, j) ((m)->entry + (i) * (m)->columns + (j))
#define arb_mat_nrows(m) ((m)->rows)
#define arb_mat_init(m, r, c) (*(m) = (arb_mat_struct){_arb_vec_init((r) * (c)), r, c})
#define arb_mat_clear(m) free((m)->entry)
#define arb_mat_zero(m) _arb_vec_zero((m)->entry, (m)->rows *(m)->columns)

static bool _arb_vec_is_zero(arb_srcptr x, slong n)
{
    for (slong i = 0; i < n; i++)
        if (!ball_is_zero(x[i])) return false;
    return true;
}

static void _arb_vec_get_mag(mag_t most, arb_srcptr x, slong n)
{
    *most = 0;
    for (slong i = 0; i < n; i++)
        if (!(ball_most(x[i]) <= *most)) *most = ball_most(x[i]);
}

static void _arb_vec_sub(arb_ptr z, arb_srcptr x, arb_srcptr y, slong n, slong prec)
{
    (void)prec;
    for (slong i = 0; i < n; i++) z[i] = ball_sub(x[i], y[i]);
}

static void arb_dot(arb_t z, arb_srcptr first, int less, arb_srcptr x, slong x_step, arb_srcptr y,
                    slong y_step, slong n, slong prec)
{
    (void)prec;
    ball sum = first ? *first : ball_exact(0);
    for (slong i = 0; i < n; i++) {
        ball term = ball_mul(x[i * x_step], y[i * y_step]);
        sum = less ? ball_sub(sum, term) : ball_add(sum, term);
    }
    *z = sum;
}

static void arb_mat_scalar_mul_arb(arb_mat_t z, const arb_mat_t x, const arb_t y, slong prec)
{
    (void)prec;
    for (slong i = 0; i < x->rows * x->columns; i++) z->entry[i] = ball_mul(x->entry[i], *y);
}

/* A x = y for one column by elimination, the largest pivot first; A and y are lost. */
static bool eliminate(ball *A, ball *y, slong n)
{
    for (slong k = 0; k < n; k++) {
        slong best = k;
        for (slong i = k + 1; i < n; i++)
            if (fabsl(A[i * n + k].mid) > fabsl(A[best * n + k].mid)) best = i;
        for (slong j = k; j < n && best != k; j++) {
            ball swap = A[k * n + j];
            A[k * n + j] = A[best * n + j];
            A[best * n + j] = swap;
        }
        ball swap = y[k], pivot = A[k * n + k];
        y[k] = y[best];
        y[best] = swap;
        if (!ball_is_positive(pivot) && !ball_is_negative(pivot)) return false;
        for (slong i = k + 1; i < n; i++) {
            if (ball_is_zero(A[i * n + k])) continue;
            ball part = ball_div(A[i * n + k], pivot);
            for (slong j = k + 1; j < n; j++)
                A[i * n + j] = ball_sub(A[i * n + j], ball_mul(part, A[k * n + j]));
            y[i] = ball_sub(y[i], ball_mul(part, y[k]));
        }
    }
    for (slong k = n - 1; k >= 0; k--) {
        for (slong j = k + 1; j < n; j++) y[k] = ball_sub(y[k], ball_mul(A[k * n + j], y[j]));
        y[k] = ball_div(y[k], A[k * n + k]);
        if (!ball_is_finite(y[k])) return false;
    }
    return true;
}

static bool arb_mat_solve(arb_mat_t x, const arb_mat_t A, const arb_mat_t y, slong prec)
{
    slong n = A->rows;
    ball room[MEMORIES_MAX * MEMORIES_MAX] = {{0, 0}};
    (void)prec;
    memcpy(room, A->entry, (size_t)(n * n) * sizeof(ball));
    memcpy(x->entry, y->entry, (size_t)n * sizeof(ball));
    return eliminate(room, x->entry, n);
}

/* The same with what is in the middle of A and y. */
static bool arb_mat_approx_solve(arb_mat_t x, const arb_mat_t A, const arb_mat_t y, slong prec)
{
    slong n = A->rows;
    ball room[MEMORIES_MAX * MEMORIES_MAX] = {{0, 0}};
    (void)prec;
    for (slong i = 0; i < n * n; i++) room[i] = ball_exact(A->entry[i].mid);
    for (slong i = 0; i < n; i++) x->entry[i] = ball_exact(y->entry[i].mid);
    return eliminate(room, x->entry, n);
}

/* ---- The court -------------------------------------------------------------------------------- */

#define court quick_court
#define both quick_both
#define at_most quick_at_most
#define smallest quick_smallest
#define decide quick_decide
#define decide_lost quick_lost
#define decide_shares quick_shares
#define court_small quick_small
#define court_open quick_court_open
#define court_fill quick_fill
#define court_close quick_court_close
#define court_ask quick_ask
#define court_softmax quick_softmax
#define court_entmax quick_entmax
#define court_slopes quick_slopes
#define court_one_hot quick_one_hot
#define court_entmax_fixed_point quick_entmax_fixed_point
#define court_doubles quick_doubles
#define court_middle quick_middle
#define court_distance quick_distance
#define court_gradient quick_gradient
#define court_energy quick_energy
#define court_scores quick_scores
#define court_around quick_around
#define court_fixed_point quick_fixed_point
#define court_settled quick_settled

#include "rigour/claims.c" /* NOLINT(bugprone-suspicious-include) */
#include "rigour/court.c"  /* NOLINT(bugprone-suspicious-include) */
#include "rigour/entmax.c" /* NOLINT(bugprone-suspicious-include) */
#include "rigour/shares.c" /* NOLINT(bugprone-suspicious-include) */
#include "rigour/small.c"  /* NOLINT(bugprone-suspicious-include) */

quick_court *quick_open(const instance *x)
{
    quick_court *c = malloc(sizeof *c);
    if (c) court_open(c, &court_small, x, LDBL_MANT_DIG);
    return c;
}

void quick_close(quick_court *c)
{
    if (c) court_close(c);
    free(c);
}
