/* court.c: what both kinds of court share.
 *
 * The numbers given are doubles and so exact; from them the scores and the softmax are enclosed at
 * `prec` bits. "The smallest eigenvalue of T is at least x" is decided by the signs of pivots. A claim
 * that holds with equality leaves a pivot that contains 0; TOUCH of |T| is granted then, far below
 * anything a double can be wrong by.
 *
 * A fixed point is found by Newton's method and proved by Kantorovich's argument: with H = grad^2 E at
 * s and H >= m > 0, the map  x -> x - H^-1 grad E(x)  takes the ball of radius rho = 2 |grad E(s)| / m
 * around s into itself and contracts there by  3 l2b (beta lambda / 2) rho / m,  if that is at most 1/2:
 * |C(p) - C(p')| <= 3 |p - p'| for C(p) = diag p - pp', and softmax is 1/2-Lipschitz. */
#include "rigour/court.h"

#include <math.h>

enum { NEWTON_MAX = 60, TOUCH = -110 };

void court_open(court *c, const court_kind *kind, const instance *x, slong prec)
{
    slong n = (slong)x->n;
    *c = (court){.kind = kind, .x = x, .n = n, .d = (slong)x->d, .query = -1};
    c->Z = _arb_vec_init(n * c->d);
    arb_ptr *vectors[] = {&c->b, &c->u, &c->s, &c->p, &c->given, &c->g, &c->step, &c->settled};
    for (int k = 0; k < 8; k++) *vectors[k] = _arb_vec_init(n);
    arb_struct *numbers[] = {c->alpha, c->beta, c->lambda, c->l2b, c->zero,
                             c->one,   c->t,    c->v,      c->w,   c->ghost};
    for (int k = 0; k < 10; k++) arb_init(numbers[k]);
    kind->open(c);
    court_fill(c, prec);
}

void court_close(court *c)
{
    c->kind->close(c);
    _arb_vec_clear(c->Z, c->n * c->d);
    arb_ptr vectors[] = {c->b, c->u, c->s, c->p, c->given, c->g, c->step, c->settled};
    for (int k = 0; k < 8; k++) _arb_vec_clear(vectors[k], c->n);
    arb_struct *numbers[] = {c->alpha, c->beta, c->lambda, c->l2b, c->zero,
                             c->one,   c->t,    c->v,      c->w,   c->ghost};
    for (int k = 0; k < 10; k++) arb_clear(numbers[k]);
}

void court_fill(court *c, slong prec)
{
    const instance *x = c->x;
    slong d = c->d;
    c->prec = prec;
    c->query = -1;
    for (slong i = 0; i < c->n; i++) {
        for (slong j = 0; j < d; j++) arb_set_d(c->Z + i * d + j, x->Z[i * d + j]);
        if (!x->normalize) continue;
        arb_dot(c->t, NULL, 0, c->Z + i * d, 1, c->Z + i * d, 1, d, prec);
        if (arb_is_zero(c->t)) continue; /* a zero memory stays zero */
        arb_sqrt(c->t, c->t, prec);
        for (slong j = 0; j < d; j++) arb_div(c->Z + i * d + j, c->Z + i * d + j, c->t, prec);
    }
    arb_set_d(c->alpha, x->opts.alpha);
    arb_set_d(c->beta, x->opts.beta);
    arb_set_d(c->lambda, x->opts.lambda);
    arb_mul(c->l2b, c->lambda, c->lambda, prec);
    arb_mul(c->l2b, c->l2b, c->beta, prec);
    arb_one(c->one);
    c->kind->fill(c);
}

verdict both(verdict a, verdict b)
{
    return a == WRONG || b == WRONG ? WRONG : a == OPEN || b == OPEN ? OPEN : RIGHT;
}

verdict at_most(const arb_t x, double y)
{
    arb_t z;
    arb_init(z);
    arb_set_d(z, y);
    verdict is = arb_le(x, z) ? RIGHT : arb_gt(x, z) ? WRONG : OPEN;
    arb_clear(z);
    return is;
}

/* |level| + a sum n_i + factor + |x|, which is at least |T - x I|, times 2^TOUCH. */
static void touch(court *c, const arb_t level, const arb_t a, const arb_t factor, const arb_t x,
                  arb_t to)
{
    arb_dot(to, NULL, 0, c->Z, 1, c->Z, 1, c->n * c->d, c->prec);
    arb_mul(to, to, a, c->prec);
    arb_add(to, to, factor, c->prec);
    arb_abs(c->v, level);
    arb_add(to, to, c->v, c->prec);
    arb_abs(c->v, x);
    arb_add(to, to, c->v, c->prec);
    arb_get_mid_arb(to, to);
    arb_mul_2exp_si(to, to, TOUCH);
}

verdict smallest(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                 const arb_t x, bool above)
{
    int sign = c->kind->sign(c, level, a, factor, p, x);
    if (sign == 2) return RIGHT;
    if (sign != 0) return (sign < 0) == above ? RIGHT : WRONG;
    arb_t near; /* an equality, perhaps */
    arb_init(near);
    touch(c, level, a, factor, x, near);
    bool nothing = arb_is_zero(near); /* T = x I = 0 */
    if (!above) arb_neg(near, near);
    arb_add(near, near, x, c->prec);
    sign = c->kind->sign(c, level, a, factor, p, near);
    arb_clear(near);
    return nothing || sign == (above ? -1 : 1) ? RIGHT : OPEN;
}

void court_doubles(court *c, const double *x, arb_ptr to)
{
    for (slong i = 0; i < c->n; i++) arb_set_d(to + i, x[i]);
}

void court_ask(court *c, int64_t query)
{
    const instance *x = c->x;
    slong n = c->n, d = c->d, d_c = (slong)x->d_c;
    if (c->query == query) return;
    c->query = query;
    c->known = 0;
    arb_ptr q = _arb_vec_init(d), cc = _arb_vec_init(d_c), v = _arb_vec_init(d);
    for (slong j = 0; j < d; j++) arb_set_d(q + j, x->q[query * d + j]);
    for (slong j = 0; j < d_c && x->context; j++)
        arb_set_d(cc + j, x->c[(x->own ? query * d_c : 0) + j]);
    for (slong j = 0; j < d; j++) { /* v = P c */
        if (!x->opts.P) arb_set(v + j, j < d_c ? cc + j : c->zero);
        for (slong k = 0; k < d_c && x->opts.P; k++) {
            arb_set_d(c->v, x->opts.P[j * d_c + k]);
            arb_addmul(v + j, c->v, cc + k, c->prec);
        }
    }
    for (slong i = 0; i < n; i++) {
        arb_dot(c->b + i, NULL, 0, c->Z + i * d, 1, q, 1, d, c->prec);
        arb_zero(c->u + i);
        if (!x->opts.W) arb_dot(c->u + i, NULL, 0, c->Z + i * d, 1, v, 1, d, c->prec);
        for (slong k = 0; k < d_c && x->opts.W && x->context; k++) {
            arb_set_d(c->v, x->opts.W[i * d_c + k]);
            arb_addmul(c->u + i, c->v, cc + k, c->prec);
        }
    }
    _arb_vec_clear(q, d);
    _arb_vec_clear(cc, d_c);
    _arb_vec_clear(v, d);
}

/* p = exp(beta (b + lambda s - top)), their sum and the ghost's in c->v, and top, times beta, in c->w. */
static void weights(court *c, arb_srcptr s, arb_ptr p)
{
    slong top = 0;
    for (slong i = 0; i < c->n; i++) {
        arb_mul(p + i, c->lambda, s + i, c->prec);
        arb_add(p + i, p + i, c->b + i, c->prec);
        arb_mul(p + i, p + i, c->beta, c->prec);
        if (arf_cmp(arb_midref(p + i), arb_midref(p + top)) > 0) top = i;
    }
    arb_set_d(c->ghost, c->x->opts.none_score);
    arb_mul(c->ghost, c->ghost, c->beta, c->prec);
    bool leads = c->x->opts.none && arf_cmp(arb_midref(c->ghost), arb_midref(p + top)) > 0;
    if (leads) top = -1;
    arb_set(c->w, leads ? c->ghost : p + top);
    arb_sub(c->ghost, c->ghost, c->w, c->prec);
    if (leads) arb_zero(c->ghost);
    arb_exp(c->ghost, c->ghost, c->prec);
    arb_zero(c->v);
    if (c->x->opts.none) arb_set(c->v, c->ghost);
    for (slong i = 0; i < c->n; i++) {
        arb_sub(p + i, p + i, c->w, c->prec);
        if (i == top) arb_zero(p + i); /* itself from itself */
        arb_exp(p + i, p + i, c->prec);
        arb_add(c->v, c->v, p + i, c->prec);
    }
}

void court_softmax(court *c, arb_srcptr s, arb_ptr p)
{
    if (c->x->opts.entmax > 0) {
        court_entmax(c, s, p, NULL);
        return;
    }
    weights(c, s, p);
    arb_inv(c->v, c->v, c->prec);
    arb_mul(c->ghost, c->ghost, c->v, c->prec);
    for (slong i = 0; i < c->n; i++) arb_mul(p + i, p + i, c->v, c->prec);
}

void court_distance(court *c, arb_srcptr p, arb_srcptr q, arb_t to)
{
    arb_zero(to);
    for (slong i = 0; i < c->n; i++) {
        arb_sub(c->v, p + i, q + i, c->prec);
        arb_addmul(to, c->v, c->v, c->prec);
    }
    arb_sqrtpos(to, to, c->prec);
}

void court_energy(court *c, arb_srcptr s, arb_t energy, arb_t size)
{
    arb_ptr room = c->step;
    c->kind->apply(c, s, room);
    arb_dot(energy, NULL, 0, room, 1, s, 1, c->n, c->prec);
    arb_mul_2exp_si(energy, energy, -1);
    arb_abs(size, energy);
    arb_dot(c->t, NULL, 0, c->u, 1, s, 1, c->n, c->prec);
    arb_sub(energy, energy, c->t, c->prec);
    arb_abs(c->t, c->t);
    arb_add(size, size, c->t, c->prec);
    if (c->x->opts.entmax > 0) {
        court_entmax(c, s, room, c->t);
    } else {
        weights(c, s, room);
        arb_log(c->v, c->v, c->prec);
        arb_add(c->t, c->v, c->w, c->prec);
    }
    arb_div(c->t, c->t, c->beta, c->prec);
    arb_sub(energy, energy, c->t, c->prec);
    arb_abs(c->t, c->t);
    arb_add(size, size, c->t, c->prec);
}

bool court_scores(court *c, const answer *a)
{
    if (c->x->opts.mode == CGAM_FLOW) { /* r instead of b, and no gates */
        court_doubles(c, a->r, c->b);
        _arb_vec_zero(c->s, c->n);
        court_softmax(c, c->s, c->p);
        c->query = -1;
        return true;
    }
    if (couples(c->x)) court_doubles(c, a->s, c->s);
    else if (c->x->opts.lambda == 0 || _arb_vec_is_zero(c->u, c->n)) _arb_vec_zero(c->s, c->n);
    else if (!c->kind->solve(c, c->zero, NULL, c->u, c->s, true)) return false;
    court_softmax(c, c->s, c->p);
    return true;
}

void court_gradient(court *c)
{
    c->kind->apply(c, c->s, c->g);
    for (slong i = 0; i < c->n; i++) {
        arb_sub(c->g + i, c->g + i, c->u + i, c->prec);
        arb_submul(c->g + i, c->lambda, c->p + i, c->prec);
    }
}

void court_middle(court *c, arb_ptr x)
{
    for (slong i = 0; i < c->n; i++) arb_get_mid_arb(x + i, x + i);
}

/* H = A - lambda^2 beta (diag p - pp') at c->p: 0 < m <= 1 / |H^-1|, by its sign, or where it has
 * both by the columns of its inverse. */
static bool steep(court *c, arb_t m)
{
    for (slong bits = 2; bits < c->prec / 2; bits *= 2) {
        arb_one(m);
        arb_mul_2exp_si(m, m, -bits);
        if (c->kind->sign(c, c->one, c->alpha, c->l2b, c->p, m) == 1) return true;
    }
    if (c->n > MEMORIES_MAX) return false;
    arb_ptr e = _arb_vec_init(c->n);
    bool solved = true;
    arb_zero(m);
    for (slong j = 0; j < c->n && solved; j++) {
        _arb_vec_zero(e, c->n);
        arb_one(e + j);
        solved = c->kind->solve(c, c->l2b, c->p, e, c->step, true);
        if (solved) arb_dot(m, m, 0, c->step, 1, c->step, 1, c->n, c->prec);
    }
    _arb_vec_clear(e, c->n);
    arb_sqrtpos(m, m, c->prec);
    arb_inv(m, m, c->prec);
    return solved && arb_is_positive(m);
}

/* Kantorovich's argument at c->s, whose p is c->p and gradient c->g: rho in c->t. */
static bool settles(court *c)
{
    arb_t m, size;
    arb_init(m);
    arb_init(size);
    arb_dot(size, NULL, 0, c->g, 1, c->g, 1, c->n, c->prec);
    arb_sqrtpos(size, size, c->prec);
    bool yes = steep(c, m);
    if (yes) {
        arb_div(c->t, size, m, c->prec);
        arb_mul_2exp_si(c->t, c->t, 1);
        arb_mul(c->v, c->l2b, c->beta, c->prec); /* 3 l2b (beta lambda / 2) rho / m <= 1/2 */
        arb_mul(c->v, c->v, c->lambda, c->prec);
        arb_mul_ui(c->v, c->v, 3, c->prec);
        arb_mul(c->v, c->v, c->t, c->prec);
        arb_div(c->v, c->v, m, c->prec);
        yes = arb_le(c->v, c->one);
    }
    arb_clear(m);
    arb_clear(size);
    return yes;
}

void court_around(court *c, arb_srcptr distance)
{
    mag_t radius;
    mag_init(radius);
    arb_get_mag(radius, distance);
    for (slong i = 0; i < c->n; i++) mag_set(arb_radref(c->s + i), radius);
    mag_clear(radius);
    court_softmax(c, c->s, c->p);
}

bool court_fixed_point(court *c)
{
    if (c->x->opts.entmax > 0) return court_entmax_fixed_point(c);
    mag_t size;
    mag_init(size);
    _arb_vec_get_mag(size, c->s, c->n);
    slong scale = mag_is_zero(size) ? 0 : (slong)ceil(mag_get_d_log2_approx(size));
    mag_clear(size);
    if (scale < 0) scale = 0;
    bool still = false, found = false;
    for (int k = 0; k < NEWTON_MAX; k++) {
        court_middle(c, c->s);
        court_softmax(c, c->s, c->p);
        court_gradient(c);
        found = still; /* one step more than it takes */
        if (found) break;
        if (!c->kind->solve(c, c->l2b, c->p, c->g, c->step, false)) return false;
        court_middle(c, c->step);
        still = true;
        for (slong i = 0; i < c->n; i++)
            still &= arf_cmpabs_2exp_si(arb_midref(c->step + i), scale - c->prec * 2 / 3) < 0;
        _arb_vec_sub(c->s, c->s, c->step, c->n, c->prec);
    }
    if (!found || !settles(c)) return false;
    court_around(c, c->t);
    return true;
}

bool court_settled(court *c, const answer *a)
{
    if (c->known == 0) {
        court_doubles(c, a->s, c->s);
        c->known = court_fixed_point(c) ? 1 : -1;
        if (c->known > 0) _arb_vec_set(c->settled, c->p, c->n);
    }
    return c->known > 0;
}
