/* entmax.c: the activation of a court, where it is not softmax.
 *
 *     p_i = exp_A(z_i - top + t) ,  exp_A(v) = [1 + k v]_+^(1/k) ,  k = A - 1 ,   sum p = 1 .
 *
 * t is found about, by Newton's method on S(t) = sum exp_A(z - top + t), and then enclosed: S is convex and
 * S' = sum p^(2 - A) >= S wherever all p are at most 1, so |t - t0| <= 2 |S(t0) - 1| if that is below 1/2,
 * for every z in its ball.
 *
 * Fixed points. One-hot ones by s = A^-1 (u + lambda e) and the zeros of its p. Others where
 * A - lambda^2 beta >= m > 0: then grad E is strongly monotone, and |s - s*| <= |grad E(s)| / m. */
#include "rigour/court.h"

#include <math.h>

enum { STEPS_MAX = 400 };

/* y = x_+^power for x in a ball. */
static void rectified_power(court *c, const arb_t x, const arb_t power, arb_t y)
{
    if (arb_is_nonpositive(x)) {
        arb_zero(y);
        return;
    }
    if (arb_is_positive(x)) {
        arb_pow(y, x, power, c->prec);
        return;
    }
    arf_t top;
    arf_init(top);
    arb_get_ubound_arf(top, x, c->prec);
    arb_set_arf(y, top);
    arb_pow(y, y, power, c->prec);
    arb_union(y, y, c->zero, c->prec);
    arf_clear(top);
}

static double order(const court *c) { return c->x->opts.entmax; }

/* p = exp_A(z + t), *sum = their sum, *slope about sum p^(2 - A) unless NULL. */
static void weigh(court *c, arb_srcptr z, const arb_t t, arb_ptr p, arb_t sum, arb_t slope)
{
    arb_t k, power, base, less;
    arb_init(k);
    arb_init(power);
    arb_init(base);
    arb_init(less);
    arb_set_d(k, order(c) - 1);
    arb_inv(power, k, c->prec);
    arb_set_d(less, 2 - order(c));
    arb_zero(sum);
    if (slope) arb_zero(slope);
    for (slong i = 0; i < c->n; i++) {
        arb_add(base, z + i, t, c->prec);
        arb_mul(base, base, k, c->prec);
        arb_add_ui(base, base, 1, c->prec);
        rectified_power(c, base, power, p + i);
        arb_add(sum, sum, p + i, c->prec);
        if (!slope || arb_is_zero(p + i)) continue;
        arb_get_mid_arb(base, p + i);
        if (!arb_is_positive(base)) continue;
        arb_pow(base, base, less, c->prec);
        arb_add(slope, slope, base, c->prec);
    }
    arb_clear(k);
    arb_clear(power);
    arb_clear(base);
    arb_clear(less);
}

void court_entmax(court *c, arb_srcptr s, arb_ptr p, arb_t value)
{
    arb_t t, sum, slope, next;
    arb_init(t);
    arb_init(sum);
    arb_init(slope);
    arb_init(next);
    slong top = 0;
    arb_ptr z = _arb_vec_init(c->n);
    for (slong i = 0; i < c->n; i++) {
        arb_mul(z + i, c->lambda, s + i, c->prec);
        arb_add(z + i, z + i, c->b + i, c->prec);
        arb_mul(z + i, z + i, c->beta, c->prec);
        if (arf_cmp(arb_midref(z + i), arb_midref(z + top)) > 0) top = i;
    }
    arb_set(c->w, z + top);
    for (slong i = 0; i < c->n; i++) arb_sub(z + i, z + i, c->w, c->prec);
    arb_zero(z + top); /* itself from itself */
    for (int k = 0; k < STEPS_MAX; k++) {
        weigh(c, z, t, p, sum, slope);
        arb_sub_ui(sum, sum, 1, c->prec);
        arb_div(next, sum, slope, c->prec);
        arb_sub(next, t, next, c->prec);
        arb_get_mid_arb(next, next);
        arb_sub(sum, next, t, c->prec);
        bool still = arf_cmpabs_2exp_si(arb_midref(sum), 8 - c->prec) < 0 || !arb_is_finite(next);
        if (still) break;
        arb_set(t, next);
    }
    weigh(c, z, t, p, sum, NULL);
    arb_sub_ui(sum, sum, 1, c->prec);
    mag_t off;
    mag_init(off);
    arb_get_mag(off, sum);
    if (mag_cmp_2exp_si(off, -1) >= 0) mag_inf(off);
    mag_mul_2exp_si(off, off, 1);
    mag_set(arb_radref(t), off);
    mag_clear(off);
    weigh(c, z, t, p, sum, NULL);
    for (slong i = 0; i < c->n; i++) /* a share of 1 */
        if (!arb_is_finite(p + i)) arb_unit_interval(p + i);
    if (value) { /* beta top + (1 - 1/A) sum p v - t */
        arb_zero(slope);
        for (slong i = 0; i < c->n; i++) {
            arb_add(next, z + i, t, c->prec);
            if (!arb_is_zero(p + i)) arb_addmul(slope, next, p + i, c->prec);
        }
        arb_set_d(next, order(c));
        arb_inv(next, next, c->prec);
        arb_sub(next, c->one, next, c->prec);
        arb_mul(value, slope, next, c->prec);
        arb_sub(value, value, t, c->prec);
        arb_add(value, value, c->w, c->prec);
    }
    _arb_vec_clear(z, c->n);
    arb_clear(t);
    arb_clear(sum);
    arb_clear(slope);
    arb_clear(next);
}

void court_slopes(court *c, arb_srcptr p, arb_ptr pi, arb_t factor)
{
    arb_t power;
    arb_init(power);
    arb_set_d(power, 2 - order(c));
    arb_zero(c->v);
    for (slong i = 0; i < c->n; i++) {
        if (order(c) < 2) rectified_power(c, p + i, power, pi + i);
        else if (arb_is_positive(p + i)) arb_one(pi + i);
        else if (arb_is_zero(p + i)) arb_zero(pi + i);
        else arb_unit_interval(pi + i); /* 0 or 1 */
        arb_add(c->v, c->v, pi + i, c->prec);
    }
    for (slong i = 0; i < c->n; i++) arb_div(pi + i, pi + i, c->v, c->prec);
    arb_mul(factor, c->l2b, c->v, c->prec);
    arb_clear(power);
}

bool court_one_hot(const court *c, slong winner)
{
    for (slong i = 0; i < c->n; i++)
        if (i != winner && !arb_is_zero(c->p + i)) return false;
    return true;
}

/* Is A^-1 (u + lambda e) of the leader a fixed point? */
static bool lands(court *c)
{
    slong winner = 0;
    for (slong i = 1; i < c->n; i++)
        if (arf_cmp(arb_midref(c->p + i), arb_midref(c->p + winner)) > 0) winner = i;
    arb_ptr right = _arb_vec_init(c->n);
    _arb_vec_set(right, c->u, c->n);
    arb_add(right + winner, right + winner, c->lambda, c->prec);
    bool solved = c->kind->solve(c, c->zero, NULL, right, c->step, true);
    _arb_vec_clear(right, c->n);
    if (!solved) return false;
    court_softmax(c, c->step, c->p);
    if (!court_one_hot(c, winner)) return false;
    _arb_vec_set(c->s, c->step, c->n);
    _arb_vec_zero(c->p, c->n);
    arb_one(c->p + winner);
    return true;
}

static void size_of(court *c, arb_srcptr x, arb_t to)
{
    arb_dot(to, NULL, 0, x, 1, x, 1, c->n, c->prec);
    arb_sqrtpos(to, to, c->prec);
}

bool court_entmax_fixed_point(court *c)
{
    arb_t m, size, factor;
    arb_ptr pi = _arb_vec_init(c->n), before = _arb_vec_init(c->n);
    bool monotone = false, near = false, found = false;
    arb_init(m);
    arb_init(size);
    arb_init(factor);
    court_middle(c, c->s);
    _arb_vec_set(before, c->s, c->n);
    court_softmax(c, c->s, c->p);
    found = lands(c);
    for (slong bits = 2; bits < c->prec / 2 && !found && !monotone; bits *= 2) {
        arb_one(m);
        arb_mul_2exp_si(m, m, -bits);
        arb_add(size, c->l2b, m, c->prec);
        monotone = c->kind->sign(c, c->one, c->alpha, c->zero, NULL, size) == 1;
    }
    if (!found) _arb_vec_set(c->s, before, c->n);
    for (int k = 0; k < STEPS_MAX && monotone; k++) {
        court_softmax(c, c->s, c->p);
        court_gradient(c);
        size_of(c, c->g, size);
        found = near; /* one step more than it takes */
        if (found) break;
        near = arf_cmpabs_2exp_si(arb_midref(size), -c->prec / 2) < 0;
        court_slopes(c, c->p, pi, factor);
        court_middle(c, pi);
        arb_get_mid_arb(factor, factor);
        /* Newton's step on the piece at hand; a plain one, A ds = -g, which contracts, now and then */
        if ((k % 4 == 3 && !near) || !c->kind->solve(c, factor, pi, c->g, c->step, false))
            if (!c->kind->solve(c, c->zero, NULL, c->g, c->step, false)) break;
        court_middle(c, c->step);
        _arb_vec_sub(c->s, c->s, c->step, c->n, c->prec);
        court_middle(c, c->s);
    }
    if (found && monotone) {
        arb_div(size, size, m, c->prec);
        court_around(c, size);
    }
    arb_clear(m);
    arb_clear(size);
    arb_clear(factor);
    _arb_vec_clear(pi, c->n);
    _arb_vec_clear(before, c->n);
    return found;
}
