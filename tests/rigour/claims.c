/* claims.c: each claim of a result, put as a question to a court. */
#include "rigour/court.h"

#include <math.h>

enum { FOLLOWED = 16 }; /* every how many the plain iteration is followed on */

/* ---- The gate --------------------------------------------------------------------------------- */

static verdict lowest_d(court *c, double x, bool above)
{
    arb_t y;
    arb_init(y);
    arb_set_d(y, x);
    verdict is = smallest(c, c->one, c->alpha, c->zero, NULL, y, above);
    arb_clear(y);
    return is;
}

/* Is A(alpha factor) at least, or at most, critical? */
static verdict gate_edge(court *c, double alpha, double factor, bool above)
{
    arb_t at;
    arb_init(at);
    arb_set_d(at, alpha);
    arb_set_d(c->v, factor);
    arb_mul(at, at, c->v, c->prec);
    verdict is = smallest(c, c->one, at, c->zero, NULL, c->zero, above);
    arb_clear(at);
    return is;
}

static verdict decide_gate(court *c, const cgam_gate_info *g, claim what)
{
    const cgam_critical *crit = what == ALPHA_FREE ? &c->x->free : &g->critical;
    verdict is = RIGHT;
    switch (what) {
    case ALPHA_BOUNDS:
    case ALPHA_FREE:
        is = isfinite(crit->alpha_lo) ? gate_edge(c, crit->alpha_lo, 1, false)
                                      : c->kind->orthogonal(c);
        return isfinite(crit->alpha_hi) ? both(is, gate_edge(c, crit->alpha_hi, 1, true)) : is;
    case ALPHA_CRIT:
        if (isinf(crit->alpha)) return c->kind->orthogonal(c);
        return both(gate_edge(c, crit->alpha, 1 - 1e-9, false),
                    gate_edge(c, crit->alpha, 1 + 1e-9, true));
    case ETA_MIN:
        is = lowest_d(c, g->eta_min, false);
        return g->eta_min_exact
                   ? both(is, lowest_d(c, g->eta_min + 1.001e-9 * fmax(1, fabs(g->eta_min)), true))
                   : is;
    default:
        if (g->regime == CGAM_SUBCRITICAL) return lowest_d(c, 0, false);
        if (g->regime == CGAM_SUPERCRITICAL) return lowest_d(c, 0, true);
        if (crit->alpha_lo <= g->alpha && g->alpha <= crit->alpha_hi) return RIGHT;
        return both(lowest_d(c, -1.001e-9, false), lowest_d(c, 1.001e-9, true));
    }
}

/* Up to the largest lambda that the library calls unique, A - beta lambda^2 / 2 >= 0. */
static verdict decide_lambda_max(court *c, const cgam_gate_info *g)
{
    arb_t half;
    arb_init(half);
    arb_set_d(half, cgam_contraction_lambda_max(c->x->opts.beta, g->eta_min));
    arb_mul(half, half, half, c->prec);
    arb_mul(half, half, c->beta, c->prec);
    arb_mul_2exp_si(half, half, -1);
    verdict is = smallest(c, c->one, c->alpha, c->zero, NULL, half, false);
    arb_clear(half);
    return is;
}

/* ---- A result --------------------------------------------------------------------------------- */

/* Of a memory, or of the ghost. */
static arb_ptr share(court *c, int64_t i) { return i < 0 ? c->ghost : c->p + i; }

/* Is this share between the two? */
static verdict within(court *c, const arb_t p, double from, double to)
{
    arb_neg(c->t, p);
    return both(from <= 0 ? RIGHT : at_most(c->t, -from), to >= 1 ? RIGHT : at_most(p, to));
}

static verdict decide_interval(court *c, const answer *a)
{
    const cgam_result *r = &a->result;
    if (r->p_from <= 0 && r->p_to >= 1) return RIGHT; /* as at the critical point */
    if (!court_scores(c, a)) return OPEN;
    verdict is = within(c, share(c, r->focus), r->p_from, r->p_to);
    return c->x->opts.none ? both(is, within(c, c->ghost, r->p_none_from, r->p_none_to)) : is;
}

static verdict decide_lower_bound(court *c, const answer *a)
{
    const cgam_result *r = &a->result;
    if (!court_scores(c, a)) return OPEN;
    arb_neg(c->t, share(c, r->focus));
    verdict is = at_most(c->t, -r->p_lower_bound);
    if (is != RIGHT || !couples(c->x) || !r->p_error_proved) return is;
    if (!court_settled(c, a)) return OPEN;
    arb_neg(c->t, c->settled + r->focus);
    return at_most(c->t, -r->p_lower_bound);
}

/* L A - beta lambda^2 / 2 >= 0, with entmax beta lambda^2; unique: with L = 1, and the contraction really
 * below 1. */
static verdict decide_contraction(court *c, double L)
{
    arb_t half, level, a;
    arb_init(half);
    arb_init(level);
    arb_init(a);
    arb_mul_2exp_si(half, c->l2b, c->x->opts.entmax > 0 ? 0 : -1);
    arb_set_d(level, L);
    arb_mul(a, level, c->alpha, c->prec);
    verdict is = smallest(c, level, a, c->zero, NULL, half, false);
    arb_clear(half);
    arb_clear(level);
    arb_clear(a);
    return is;
}

/* Is the smallest eigenvalue of level A - lambda^2 beta J(p) at least x? J = diag p - pp', or entmax's. */
static verdict curved(court *c, const arb_t level, arb_srcptr p, const arb_t x, bool above)
{
    bool sparse = c->x->opts.entmax > 0;
    arb_ptr pi = _arb_vec_init(c->n);
    arb_t a, factor;
    arb_init(a);
    arb_init(factor);
    arb_mul(a, level, c->alpha, c->prec);
    arb_set(factor, c->l2b);
    if (sparse) court_slopes(c, p, pi, factor);
    verdict is = smallest(c, level, a, factor, sparse ? pi : p, x, above);
    arb_clear(a);
    arb_clear(factor);
    _arb_vec_clear(pi, c->n);
    return is;
}

/* The same for every p: level A - lambda^2 beta |J| with |J| = 1/2, or 1. */
static verdict curved_most(court *c, const arb_t level, const arb_t x)
{
    arb_t a, y;
    arb_init(a);
    arb_init(y);
    arb_mul(a, level, c->alpha, c->prec);
    arb_mul_2exp_si(y, c->l2b, c->x->opts.entmax > 0 ? 0 : -1);
    arb_add(y, y, x, c->prec);
    verdict is = smallest(c, level, a, c->zero, NULL, y, false);
    arb_clear(a);
    arb_clear(y);
    return is;
}

static verdict margin_at(court *c, const cgam_result *r, arb_srcptr p, bool exactly)
{
    arb_t x;
    arb_init(x);
    arb_set_d(x, r->fold_margin);
    verdict is = c->x->opts.entmax > 0 && !exactly ? curved_most(c, c->one, x) : OPEN;
    if (is != RIGHT) is = curved(c, c->one, p, x, false);
    arb_set_d(x, r->fold_margin + 1.001e-9 * fmax(1, fabs(r->fold_margin)));
    if (exactly && is == RIGHT) is = curved(c, c->one, p, x, true);
    arb_clear(x);
    return is;
}

/* At the p returned and at the exact one; and at the fixed point, where p_error is proved. */
static verdict decide_margin(court *c, const answer *a)
{
    const cgam_result *r = &a->result;
    verdict is = RIGHT;
    if (couples(c->x) && c->x->opts.entmax == 0 && r->p_error_proved) {
        if (!court_settled(c, a)) return OPEN;
        is = margin_at(c, r, c->settled, false);
    }
    if (is != RIGHT) return is;
    if (a->p) {
        court_doubles(c, a->p, c->given);
        is = margin_at(c, r, c->given, r->fold_margin_exact);
    }
    if (is != RIGHT) return is;
    if (court_scores(c, a)) return margin_at(c, r, c->p, false);
    /* A is singular, and nothing is known of p: true for every p, or not at all */
    arb_set_d(c->w, r->fold_margin);
    return curved_most(c, c->one, c->w);
}

static verdict decide_local(court *c, const answer *a)
{
    verdict is = RIGHT;
    arb_t level;
    arb_init(level);
    arb_set_d(level, a->result.local_contraction);
    if (c->x->opts.entmax > 0 && curved_most(c, level, c->zero) == RIGHT) {
        arb_clear(level);
        return RIGHT;
    }
    if (a->p) {
        court_doubles(c, a->p, c->given);
        is = curved(c, level, c->given, c->zero, false);
    }
    if (is == RIGHT) is = court_scores(c, a) ? curved(c, level, c->p, c->zero, false) : OPEN;
    arb_clear(level);
    return is;
}

/* Is the Hessian of the energy at the fixed point not indefinite, or not positive? Mode first has A for it. */
static verdict decide_stable(court *c, const answer *a)
{
    bool unstable = a->result.stable == 0;
    if (c->x->opts.mode == CGAM_FIRST)
        return smallest(c, c->one, c->alpha, c->zero, NULL, c->zero, unstable);
    if (!unstable && curved_most(c, c->one, c->zero) == RIGHT) return RIGHT;
    if (!couples(c->x) || !court_settled(c, a)) return OPEN;
    return curved(c, c->one, c->settled, c->zero, unstable);
}

/* |sum p_i (zeta_i - zeta_focus)| <= bound? */
static verdict readout_within(court *c, arb_srcptr p, const answer *a)
{
    arb_srcptr mine = c->Z + a->result.focus * c->d;
    arb_zero(c->w);
    for (slong j = 0; j < c->d; j++) {
        arb_zero(c->v);
        for (slong i = 0; i < c->n; i++) {
            if (i == a->result.focus) continue;
            arb_sub(c->t, c->Z + i * c->d + j, mine + j, c->prec);
            arb_addmul(c->v, c->t, p + i, c->prec);
        }
        if (c->x->opts.none) arb_submul(c->v, c->ghost, mine + j, c->prec);
        arb_addmul(c->w, c->v, c->v, c->prec);
    }
    arb_sqrtpos(c->t, c->w, c->prec);
    return at_most(c->t, a->result.readout_error_bound);
}

static verdict decide_readout(court *c, const answer *a)
{
    if (!court_scores(c, a)) return OPEN;
    verdict is = readout_within(c, c->p, a);
    if (is != RIGHT || !couples(c->x) || !a->result.p_error_proved) return is;
    return court_settled(c, a) ? readout_within(c, c->settled, a) : OPEN;
}

/* p = softmax of the gates of p, about: one plain step. */
static bool plain_step(court *c, arb_ptr p)
{
    for (slong i = 0; i < c->n; i++) {
        arb_mul(c->g + i, c->lambda, p + i, c->prec);
        arb_add(c->g + i, c->g + i, c->u + i, c->prec);
        arb_get_mid_arb(c->g + i, c->g + i);
    }
    if (!c->kind->solve(c, c->zero, NULL, c->g, c->s, false)) return false;
    for (slong i = 0; i < c->n; i++) arb_get_mid_arb(c->s + i, c->s + i);
    court_softmax(c, c->s, c->p);
    for (slong i = 0; i < c->n; i++) arb_get_mid_arb(p + i, c->p + i);
    return true;
}

/* Is the plain iteration, from the p given, bound for the fixed point found, or does it leave it? */
static verdict decide_bound_for(court *c)
{
    enum { STEPS = 60 };
    arb_t before;
    arb_init(before);
    court_distance(c, c->given, c->settled, before);
    for (int k = 0; k < STEPS; k++)
        if (!plain_step(c, c->given)) break;
    court_distance(c, c->given, c->settled, c->t);
    arb_mul_2exp_si(before, before, 1);
    bool far = arf_cmpabs_2exp_si(arb_midref(c->t), -60) > 0;
    verdict is = far && arb_gt(c->t, before) ? WRONG : RIGHT;
    arb_clear(before);
    return is;
}

static verdict decide_error(court *c, const answer *a)
{
    if (!court_settled(c, a)) return OPEN;
    court_doubles(c, a->p, c->given);
    court_distance(c, c->given, c->settled, c->t);
    verdict is = at_most(c->t, a->result.p_error);
    /* where there may be others */
    bool look = a->result.unique != 1 && c->x->number % FOLLOWED == 0 && c->x->size == SMALL;
    return is == RIGHT && look ? decide_bound_for(c) : is;
}

/* Of memories that weigh anything. */
static verdict decide_score_error(court *c, const answer *a)
{
    verdict is = RIGHT;
    if (!court_scores(c, a)) return OPEN;
    for (slong i = 0; i < c->n; i++) {
        if (!(a->p[i] > 0)) continue;
        arb_set_d(c->t, a->r[i]);
        arb_sub(c->t, c->t, c->b + i, c->prec);
        arb_submul(c->t, c->lambda, c->s + i, c->prec);
        arb_abs(c->t, c->t);
        is = both(is, at_most(c->t, a->result.score_error));
    }
    return is;
}

static verdict decide_sum(court *c, const answer *a)
{
    arb_set_d(c->t, c->x->opts.none ? a->result.p_none : 0);
    arb_sub_ui(c->t, c->t, 1, c->prec);
    for (slong i = 0; i < c->n; i++) {
        arb_set_d(c->v, a->p[i]);
        arb_add(c->t, c->t, c->v, c->prec);
    }
    arb_abs(c->t, c->t);
    double n = (double)(c->n + c->x->opts.none),
           more = c->x->opts.entmax > 0 ? 12 * log(n) + 16 : 0;
    return at_most(c->t, (n + more) * 0x1p-52);
}

/* Ended as converged: does the map leave p where it is? */
static verdict decide_converged(court *c, const answer *a)
{
    court_doubles(c, a->p, c->given);
    for (slong i = 0; i < c->n; i++) {
        arb_mul(c->g + i, c->lambda, c->given + i, c->prec);
        arb_add(c->g + i, c->g + i, c->u + i, c->prec);
    }
    if (!c->kind->solve(c, c->zero, NULL, c->g, c->s, true)) return OPEN;
    court_softmax(c, c->s, c->p);
    court_distance(c, c->given, c->p, c->t);
    return at_most(c->t, 4 * fmax(1e-6, c->x->opts.tol * fmax(1, a->result.contraction)));
}

/* |x - y| <= off? */
static verdict apart(court *c, const arb_t x, double y, const arb_t off)
{
    arb_set_d(c->v, y);
    arb_sub(c->v, c->v, x, c->prec);
    arb_abs(c->v, c->v);
    return arb_le(c->v, off) ? RIGHT : arb_gt(c->v, off) ? WRONG : OPEN;
}

static double norm(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum = hypot(sum, x[j]); /* no square leaves the range */
    return sum;
}

/* What products of d terms may be off by in b, and in u times lambda / eta, and beta r by underflow; and
 * the solutions of A s = .., which are off by what rounding leaves of A s, over eta. */
static double products(const court *c, const double *s, double eta)
{
    const instance *x = c->x;
    double longest = 0, q = norm(x->d, x->q + c->query * x->d), gates = 0, scale = 1;
    for (int64_t i = 0; i < x->n; i++) {
        double length = norm(x->d, x->Z + i * x->d);
        longest = fmax(longest, length);
        if (x->normalize && length > 0) scale = fmax(scale, 1 / length);
    }
    if (x->normalize) longest = 1;
    if (x->context) gates = norm(x->d_c, x->c + (x->own ? c->query * x->d_c : 0));
    if (x->opts.W || x->opts.P) gates *= norm(x->n * x->d, x->W);
    if (!x->opts.W) gates *= longest;
    if (!(eta > 0)) eta = 1;
    double size = 1 + x->opts.alpha * longest * longest * (double)x->n; /* of A */
    gates += size * (gates / eta + norm(x->n, s));
    if (x->opts.lambda == 0) gates = 0; /* which may be infinite */
    return 0x1p-50 * (double)(x->n + x->d + x->d_c + 16) *
               (longest * q + x->opts.lambda * gates / eta) +
           (double)(x->d + x->d_c) * 0x1p-1070 * scale * (1 + x->opts.lambda / eta) +
           0x1p-1070 / x->opts.beta;
}

/* Ended as converged: energy_end is E at the s returned, energy_start is E at A^-1 u, both up to 2^-38
 * of the terms of E and the work of g along s, where g is the residual A s - u - lambda p and the last
 * step, E having been gathered before it, and what b and u were off by to begin with. And E has not risen by more than eight times that and what g
 * may do to the gates, lambda |g| / eta; and where scores, rounded, leave p open, by what another p does to E, up to a millionth of
 * its terms, with which a recall may still end as converged. */
static verdict decide_energy(court *c, const answer *a, double eta)
{
    const cgam_result *r = &a->result;
    verdict is = OPEN;
    arb_t energy, off, first, work, gates, open, terms;
    arb_init(energy);
    arb_init(off);
    arb_init(first);
    arb_init(open);
    arb_init(terms);
    arb_init(work);
    arb_init(gates);
    court_doubles(c, a->s, c->s);
    court_doubles(c, a->p, c->given);
    court_energy(c, c->s, energy, off);
    c->kind->apply(c, c->s, c->g);
    for (slong i = 0; i < c->n; i++) {
        arb_sub(c->g + i, c->g + i, c->u + i, c->prec);
        arb_submul(c->g + i, c->lambda, c->given + i, c->prec);
    }
    arb_dot(work, NULL, 0, c->g, 1, c->g, 1, c->n, c->prec);
    arb_sqrtpos(work, work, c->prec);
    arb_set_d(c->t, 2 * r->change * sqrt((double)c->n));
    arb_addmul(work, c->lambda, c->t, c->prec);
    arb_dot(c->t, NULL, 0, c->s, 1, c->s, 1, c->n, c->prec);
    arb_sqrtpos(c->t, c->t, c->prec);
    arb_mul_2exp_si(c->t, c->t, 1);
    arb_set_d(gates, eta);
    arb_div(gates, c->lambda, gates, c->prec);
    arb_mul(gates, gates, work, c->prec);
    if (!(eta > 0)) arb_zero(gates);
    arb_mul(work, work, c->t, c->prec);
    arb_one(c->t);
    arb_mul_2exp_si(c->t, c->t, -1000); /* what underflow may take */
    arb_add(work, work, c->t, c->prec);
    if (c->kind->solve(c, c->zero, NULL, c->u, c->p, true)) {
        _arb_vec_set(c->s, c->p, c->n);
        court_energy(c, c->s, first, c->t);
        arb_add(off, off, c->t, c->prec);
        arb_mul_2exp_si(terms, off, -20);
        arb_mul_2exp_si(off, off, -38);
        arb_add(off, off, work, c->prec);
        double rho = products(c, a->s, eta), lambda = c->x->opts.lambda;
        arb_set_d(c->t, rho);
        arb_add(off, off, c->t, c->prec);
        is = apart(c, energy, r->energy_end, off);
        if (c->x->opts.mode == CGAM_COUPLED) is = both(is, apart(c, first, r->energy_start, off));
        if (!(r->energy_rise <= 0)) {
            arb_set_d(c->t, r->energy_rise);
            arb_add(off, off, gates, c->prec);
            arb_mul_2exp_si(off, off, 3);
            double epsilon = expm1(fmin(2 * c->x->opts.beta * rho, 1)); /* of p */
            arb_set_d(open, epsilon * epsilon * lambda * lambda / eta);
            arb_add(off, off, arb_gt(terms, open) ? open : terms, c->prec);
            is = both(is, arb_le(c->t, off) ? RIGHT : arb_gt(c->t, off) ? WRONG : OPEN);
        }
    }
    arb_clear(energy);
    arb_clear(off);
    arb_clear(first);
    arb_clear(work);
    arb_clear(gates);
    arb_clear(open);
    arb_clear(terms);
    return is;
}

/* Two fixed points, proved: ours, and another found from other starts by plain steps. What is found
 * is a proof; where nothing is, the claim stays open. */
static verdict decide_two(court *c, const answer *a)
{
    enum { STEPS = 400 };
    if (decide_contraction(c, 1) == RIGHT) return WRONG; /* there is one */
    if (!court_settled(c, a)) return OPEN;
    arb_ptr p = _arb_vec_init(c->n);
    verdict is = OPEN;
    for (slong k = 0; k <= c->n && is == OPEN; k++) {
        for (slong i = 0; i < c->n; i++) arb_set_d(p + i, k < c->n ? i == k : 1.0 / (double)c->n);
        for (int step = 0; step < STEPS; step++) {
            _arb_vec_set(c->given, p, c->n);
            if (!plain_step(c, p)) break;
            court_distance(c, p, c->given, c->t);
            if (arf_cmpabs_2exp_si(arb_midref(c->t), -60) < 0) break;
        }
        if (!court_fixed_point(c)) continue;
        court_distance(c, c->p, c->settled, c->t);
        if (arb_is_positive(c->t)) is = RIGHT;
    }
    _arb_vec_clear(p, c->n);
    return is;
}

/* One-hot at the exact scores, or at the fixed point; certainly not: something else certainly weighs. */
static verdict decide_exact(court *c, const answer *a)
{
    slong focus = (slong)a->result.focus;
    bool coupled = couples(c->x);
    if (coupled ? !court_settled(c, a) : !court_scores(c, a)) return OPEN;
    if (coupled) _arb_vec_set(c->p, c->settled, c->n);
    if (court_one_hot(c, focus)) return RIGHT;
    for (slong i = 0; i < c->n; i++)
        if (i != focus && arb_is_positive(c->p + i)) return WRONG;
    return OPEN;
}

/* The fixed point beside p of a landscape: c->p encloses its p, and c->given is p. */
static bool point_settled(court *c, const double *p)
{
    court_doubles(c, p, c->given);
    for (slong i = 0; i < c->n; i++) {
        arb_mul(c->g + i, c->lambda, c->given + i, c->prec);
        arb_add(c->g + i, c->g + i, c->u + i, c->prec);
    }
    return c->kind->solve(c, c->zero, NULL, c->g, c->s, false) && court_fixed_point(c);
}

/* The same from gates that the shares tell, lambda s = log p / beta - b + k with the k of the least gradient: where A is so near to
 * singular that gates made of p, which is rounded, lead to another fixed point. */
static bool point_settled_by_shares(court *c, const double *p)
{
    arb_t k, size;
    arb_init(k), arb_init(size);
    court_doubles(c, p, c->given);
    for (slong i = 0; i < c->n; i++) {
        arb_log(c->s + i, c->given + i, c->prec);
        arb_div(c->s + i, c->s + i, c->beta, c->prec);
        arb_sub(c->s + i, c->s + i, c->b + i, c->prec);
        arb_div(c->s + i, c->s + i, c->lambda, c->prec);
    }
    _arb_vec_set(c->p, c->given, c->n);
    court_gradient(c);
    _arb_vec_set(c->step, c->g, c->n);
    for (slong i = 0; i < c->n; i++) arb_add(c->s + i, c->s + i, c->one, c->prec);
    court_gradient(c);
    _arb_vec_sub(c->g, c->g, c->step, c->n, c->prec); /* A 1 */
    arb_dot(k, NULL, 0, c->g, 1, c->step, 1, c->n, c->prec);
    arb_dot(size, NULL, 0, c->g, 1, c->g, 1, c->n, c->prec);
    arb_div(k, k, size, c->prec);
    arb_add(k, k, c->one, c->prec);
    for (slong i = 0; i < c->n; i++) arb_sub(c->s + i, c->s + i, k, c->prec);
    bool finite = arb_is_finite(k);
    arb_clear(k), arb_clear(size);
    return finite && court_fixed_point(c);
}

static verdict decide_point(court *c, const answer *a)
{
    verdict is = OPEN;
    for (int k = 0; k < 2 && is != RIGHT; k++) {
        if (!(k == 0 ? point_settled : point_settled_by_shares)(c, a->p)) continue;
        court_distance(c, c->given, c->p, c->t);
        is = at_most(c->t, a->result.p_error);
    }
    return is;
}

/* At the p returned, which is not quite that of the point. */
static verdict decide_point_margin(court *c, const answer *a)
{
    court_doubles(c, a->p, c->given);
    return margin_at(c, &a->result, c->given, false);
}

/* a->p: all points, of which there are a->points. */
static verdict decide_several(court *c, const answer *a)
{
    bool first = true;
    for (int64_t k = 0; k < a->points; k++) {
        if (!point_settled(c, a->p + k * c->n)) continue;
        if (first) _arb_vec_set(c->settled, c->p, c->n);
        court_distance(c, c->settled, c->p, c->t);
        if (!first && arb_is_positive(c->t)) return RIGHT;
        first = false;
    }
    return OPEN;
}

/* H* t = beta (p* - e_aim), or beta C* dp, w = A t, dL/du = lambda t: the errors of both gradients. */
static verdict decide_gradient(court *c, const answer *a)
{
    if (!court_settled(c, a)) return OPEN;
    arb_ptr t = _arb_vec_init(c->n), got = _arb_vec_init(c->n);
    if (a->dp) {
        court_doubles(c, a->dp, got);
        arb_dot(c->w, NULL, 0, got, 1, c->settled, 1, c->n, c->prec);
    }
    for (slong i = 0; i < c->n; i++) {
        arb_set(c->g + i, c->settled + i);
        if (a->dp) {
            arb_sub(c->t, got + i, c->w, c->prec);
            arb_mul(c->g + i, c->g + i, c->t, c->prec);
        } else if (i == a->aim) {
            arb_sub(c->g + i, c->g + i, c->one, c->prec);
        }
        arb_mul(c->g + i, c->g + i, c->beta, c->prec);
    }
    verdict is = OPEN;
    if (c->kind->solve(c, c->l2b, c->settled, c->g, t, true)) {
        c->kind->apply(c, t, c->step);
        court_doubles(c, a->db, got);
        court_distance(c, got, c->step, c->t);
        is = at_most(c->t, a->db_error);
        for (slong i = 0; i < c->n; i++) arb_mul(t + i, t + i, c->lambda, c->prec);
        court_doubles(c, a->du, got);
        court_distance(c, got, t, c->t);
        is = both(is, at_most(c->t, a->du_error));
    }
    _arb_vec_clear(t, c->n);
    _arb_vec_clear(got, c->n);
    return is;
}

verdict decide(court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what)
{
    if (what > LAMBDA_MAX) court_ask(c, k);
    switch (what) {
    case P_LOWER_BOUND: return decide_lower_bound(c, a);
    case CONTRACTION: return decide_contraction(c, a->result.contraction);
    case UNIQUE: return decide_contraction(c, 1);
    case TWO: return decide_two(c, a);
    case FOLD_MARGIN: return decide_margin(c, a);
    case LOCAL_CONTRACTION: return decide_local(c, a);
    case P_ERROR: return decide_error(c, a);
    case P_SUM: return decide_sum(c, a);
    case CONVERGED: return decide_converged(c, a);
    case ENERGY: return decide_energy(c, a, g->eta_min);
    case EXACT: return decide_exact(c, a);
    case POINT: return decide_point(c, a);
    case SEVERAL: return decide_several(c, a);
    case POINT_MARGIN: return decide_point_margin(c, a);
    case INTERVAL: return decide_interval(c, a);
    case SCORE_ERROR: return decide_score_error(c, a);
    case SHARES: return decide_shares(c, a);
    case GRADIENT: return decide_gradient(c, a);
    case STABLE: return decide_stable(c, a);
    case READOUT_ERROR: return decide_readout(c, a);
    case LAMBDA_MAX: return decide_lambda_max(c, g);
    default: return decide_gate(c, g, what);
    }
}

verdict decide_lost(court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what)
{
    if (what == TWO || what == SEVERAL || what == GRADIENT || what == STABLE)
        return WRONG;    /* depends on a search; on p_error, which is judged itself */
    if (what == POINT) { /* not if it is degenerate */
        court_ask(c, k);
        return point_settled(c, a->p) ? RIGHT : OPEN;
    }
    if (what != UNIQUE && what != P_ERROR && what != EXACT) return RIGHT;
    court_ask(c, k);
    if (what == EXACT) return a->result.support == 1 ? decide_exact(c, a) : WRONG;
    verdict one = decide_contraction(c, 1);
    const cgam_result *r = &a->result;
    const cgam_recall_opts *o = &c->x->opts;
    double theta = r->local_contraction, eta = g->eta_min;
    if (one == RIGHT || what == UNIQUE || !(theta < 1) || !(eta > 0) || o->entmax > 0) return one;
    court_doubles(c, a->s, c->s); /* the basin lemma, at |grad E| as it is */
    court_softmax(c, c->s, c->p);
    court_gradient(c);
    arb_dot(c->t, NULL, 0, c->g, 1, c->g, 1, c->n, c->prec);
    double step = sqrt(arf_get_d(arb_midref(c->t), ARF_RND_UP) / eta);
    double radius = sqrt(eta) / (2 * o->beta * o->lambda) * log((1 + theta) / (2 * theta));
    return radius > 4 * step / (1 - theta) ? RIGHT : one;
}
