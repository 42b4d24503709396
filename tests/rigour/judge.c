/* judge.c: claims about a recall, decided with intervals (Arb).
 *
 * The numbers given are doubles and so exact; from them G, A, the scores and the softmax are
 * enclosed at `prec` bits. "The smallest eigenvalue of T is at least x" is decided by the pivots of
 * T - x I without exchanges: all certainly positive means yes, a certainly negative one after
 * positive ones means no. A claim that holds with equality leaves a pivot that contains 0; TOUCH of
 * |T| is granted then, far below anything a double can be wrong by. The fixed point that p_error
 * speaks of is found by Newton's method and proved by an interval Newton step around it. */
#include "rigour/campaign.h"

#include <arb_mat.h>
#include <math.h>
#include <stdio.h>

enum { PRECISION = 192, PRECISION_MAX = 1536, NEWTON_MAX = 60, TOUCH = -110 };

const char *const claim_names[CLAIMS] = {
    "alpha_crit_bounds", "alpha_crit",  "eta_min",  "regime",
    "p_lower_bound",     "contraction", "unique",   "fold_margin",
    "local_contraction", "p_error",     "sum of p", "converged"};

typedef enum verdict { WRONG, RIGHT, OPEN } verdict;

/* All that belongs to one instance at one precision. */
typedef struct court {
    const instance *x;
    slong n, prec;
    arb_mat_t off; /* G - diag G */
    arb_mat_t A, T, L;
    arb_mat_t Z, b, u, s, p, g, step;
    arb_t t, v, w;
} court;

static void court_open(court *c, const instance *x)
{
    slong n = c->n = (slong)x->n;
    c->x = x;
    c->prec = PRECISION;
    arb_mat_init(c->off, n, n);
    arb_mat_init(c->A, n, n);
    arb_mat_init(c->T, n, n);
    arb_mat_init(c->L, n, n);
    arb_mat_init(c->Z, n, (slong)x->d);
    arb_mat_struct *columns[] = {c->b, c->u, c->s, c->p, c->g, c->step};
    for (int k = 0; k < 6; k++) arb_mat_init(columns[k], n, 1);
    arb_init(c->t);
    arb_init(c->v);
    arb_init(c->w);
}

static void court_close(court *c)
{
    arb_mat_struct *all[] = {c->off, c->A, c->T, c->L, c->Z, c->b, c->u, c->s, c->p, c->g, c->step};
    for (int k = 0; k < 11; k++) arb_mat_clear(all[k]);
    arb_clear(c->t);
    arb_clear(c->v);
    arb_clear(c->w);
}

/* to = I + alpha (G - diag G). */
static void gate_at(court *c, const arb_t alpha, arb_mat_t to)
{
    arb_mat_scalar_mul_arb(to, c->off, alpha, c->prec);
    for (slong i = 0; i < c->n; i++) arb_one(arb_mat_entry(to, i, i));
}

static void court_fill(court *c)
{
    const instance *x = c->x;
    slong n = c->n, d = (slong)x->d;
    for (slong i = 0; i < n; i++)
        for (slong j = 0; j < d; j++) arb_set_d(arb_mat_entry(c->Z, i, j), x->Z[i * d + j]);
    arb_mat_zero(c->off);
    for (slong i = 0; i < n; i++)
        for (slong j = 0; j < i; j++) {
            arb_ptr to = arb_mat_entry(c->off, i, j);
            arb_dot(to, NULL, 0, arb_mat_entry(c->Z, i, 0), 1, arb_mat_entry(c->Z, j, 0), 1, d,
                    c->prec);
            arb_set(arb_mat_entry(c->off, j, i), to);
        }
    arb_set_d(c->t, x->opts.alpha);
    gate_at(c, c->t, c->A);
}

/* Signs of the pivots of T: 1 all certainly positive, -1 one certainly negative, 0 unknown. */
static int pivots(court *c, const arb_mat_t T)
{
    slong n = c->n;
    arb_mat_set(c->L, T);
    for (slong k = 0; k < n; k++) {
        arb_ptr pivot = arb_mat_entry(c->L, k, k);
        if (arb_is_negative(pivot)) return -1;
        if (!arb_is_positive(pivot)) return 0;
        for (slong i = k + 1; i < n; i++) {
            arb_div(c->v, arb_mat_entry(c->L, i, k), pivot, c->prec);
            if (arb_is_zero(c->v)) continue;
            for (slong j = k + 1; j <= i; j++)
                arb_submul(arb_mat_entry(c->L, i, j), c->v, arb_mat_entry(c->L, j, k), c->prec);
        }
    }
    return 1;
}

/* T - (x + sign touch) I, in place; the lower triangle is what counts. */
static void shift(court *c, arb_mat_t T, const arb_t x, int sign)
{
    mag_t size;
    mag_init(size);
    arb_mat_bound_frobenius_norm(size, T);
    arb_set(c->w, x);
    if (sign != 0) {
        arb_set_d(c->v, mag_get_d(size));
        arb_mul_2exp_si(c->v, c->v, TOUCH);
        if (sign > 0) arb_add(c->w, c->w, c->v, c->prec);
        else arb_sub(c->w, c->w, c->v, c->prec);
    }
    for (slong i = 0; i < c->n; i++)
        arb_sub(arb_mat_entry(T, i, i), arb_mat_entry(T, i, i), c->w, c->prec);
    mag_clear(size);
}

/* Is the smallest eigenvalue of T at least x, or (above) at most x? T is left as it was. */
static verdict smallest(court *c, arb_mat_t T, const arb_t x, bool above)
{
    arb_mat_t S;
    arb_mat_init(S, c->n, c->n);
    arb_mat_set(S, T);
    shift(c, S, x, 0);
    int exactly = pivots(c, S);
    verdict is = above ? (exactly < 0   ? RIGHT
                          : exactly > 0 ? WRONG
                                        : OPEN)
                       : (exactly > 0   ? RIGHT
                          : exactly < 0 ? WRONG
                                        : OPEN);
    if (is == OPEN && !above && arb_mat_is_zero(S)) is = RIGHT;
    if (is == OPEN) { /* an equality, perhaps */
        arb_mat_set(S, T);
        shift(c, S, x, above ? 1 : -1);
        if (pivots(c, S) == (above ? -1 : 1)) is = RIGHT;
    }
    arb_mat_clear(S);
    return is;
}

static verdict smallest_d(court *c, arb_mat_t T, double x, bool above)
{
    arb_t y;
    arb_init(y);
    arb_set_d(y, x);
    verdict is = smallest(c, T, y, above);
    arb_clear(y);
    return is;
}

static verdict both(verdict a, verdict b)
{
    return a == WRONG || b == WRONG ? WRONG : a == OPEN || b == OPEN ? OPEN : RIGHT;
}

/* T = theta A - factor C(p) . */
static void hessian(court *c, double theta, const arb_t factor, arb_mat_t p, arb_mat_t T)
{
    arb_set_d(c->v, theta);
    arb_mat_scalar_mul_arb(T, c->A, c->v, c->prec);
    for (slong i = 0; i < c->n; i++) {
        arb_mul(c->v, factor, arb_mat_entry(p, i, 0), c->prec);
        arb_sub(arb_mat_entry(T, i, i), arb_mat_entry(T, i, i), c->v, c->prec);
        for (slong j = 0; j < c->n; j++)
            arb_addmul(arb_mat_entry(T, i, j), c->v, arb_mat_entry(p, j, 0), c->prec);
    }
}

/* p = softmax(beta (b + lambda s)). */
static void softmax(court *c, arb_mat_t s, arb_mat_t p)
{
    double beta = c->x->opts.beta, lambda = c->x->opts.lambda;
    slong top = 0;
    for (slong i = 0; i < c->n; i++) {
        arb_ptr r = arb_mat_entry(p, i, 0);
        arb_set_d(c->v, lambda);
        arb_mul(r, c->v, arb_mat_entry(s, i, 0), c->prec);
        arb_add(r, r, arb_mat_entry(c->b, i, 0), c->prec);
        arb_set_d(c->v, beta);
        arb_mul(r, r, c->v, c->prec);
        if (arf_cmp(arb_midref(r), arb_midref(arb_mat_entry(p, top, 0))) > 0) top = i;
    }
    arb_set(c->w, arb_mat_entry(p, top, 0));
    arb_zero(c->v);
    for (slong i = 0; i < c->n; i++) {
        arb_ptr r = arb_mat_entry(p, i, 0);
        arb_sub(r, r, c->w, c->prec);
        arb_exp(r, r, c->prec);
        arb_add(c->v, c->v, r, c->prec);
    }
    for (slong i = 0; i < c->n; i++)
        arb_div(arb_mat_entry(p, i, 0), arb_mat_entry(p, i, 0), c->v, c->prec);
}

static void l2b(const court *c, arb_t to)
{
    arb_set_d(to, c->x->opts.lambda);
    arb_mul(to, to, to, c->prec);
    arb_t beta;
    arb_init(beta);
    arb_set_d(beta, c->x->opts.beta);
    arb_mul(to, to, beta, c->prec);
    arb_clear(beta);
}

/* b and u of query k. */
static void inputs(court *c, int64_t k)
{
    const instance *x = c->x;
    slong d = (slong)x->d;
    const double *q = x->q + k * d, *cc = x->c + (x->own ? k * d : 0);
    arb_mat_zero(c->u);
    for (slong i = 0; i < c->n; i++) {
        arb_zero(arb_mat_entry(c->b, i, 0));
        for (slong j = 0; j < d; j++) {
            arb_set_d(c->v, q[j]);
            arb_addmul(arb_mat_entry(c->b, i, 0), arb_mat_entry(c->Z, i, j), c->v, c->prec);
            if (!x->context) continue;
            arb_set_d(c->v, cc[j]);
            if (x->opts.W) {
                arb_set_d(c->w, x->W[i * d + j]);
                arb_addmul(arb_mat_entry(c->u, i, 0), c->w, c->v, c->prec);
            } else {
                arb_addmul(arb_mat_entry(c->u, i, 0), arb_mat_entry(c->Z, i, j), c->v, c->prec);
            }
        }
    }
}

static void from_doubles(court *c, const double *x, arb_mat_t to)
{
    for (slong i = 0; i < c->n; i++) arb_set_d(arb_mat_entry(to, i, 0), x[i]);
}

/* g = A s - u - lambda p. */
static void gradient(court *c, arb_mat_t s, arb_mat_t p, arb_mat_t g)
{
    arb_mat_mul(g, c->A, s, c->prec);
    arb_mat_sub(g, g, c->u, c->prec);
    arb_set_d(c->v, c->x->opts.lambda);
    for (slong i = 0; i < c->n; i++)
        arb_submul(arb_mat_entry(g, i, 0), c->v, arb_mat_entry(p, i, 0), c->prec);
}

/* The fixed point near the s given (in c->s): its enclosure in c->s and that of p in c->p. */
static bool fixed_point(court *c)
{
    arb_t factor;
    arb_init(factor);
    l2b(c, factor);
    bool proved = false, still = false;
    mag_t size;
    mag_init(size);
    arb_mat_bound_frobenius_norm(size, c->s);
    slong scale = mag_is_zero(size) ? 0 : (slong)ceil(mag_get_d_log2_approx(size));
    if (scale < 0) scale = 0;
    mag_clear(size);
    for (int k = 0; k < NEWTON_MAX && !proved; k++) {
        arb_mat_get_mid(c->s, c->s);
        softmax(c, c->s, c->p);
        gradient(c, c->s, c->p, c->g);
        if (still) { /* the box s +- 2^-(prec / 2) of its size: does Newton's step lead into it? */
            mag_t radius;
            mag_init(radius);
            mag_set_ui_2exp_si(radius, 1, scale - c->prec / 2);
            arb_mat_t box;
            arb_mat_init(box, c->n, 1);
            arb_mat_set(box, c->s);
            for (slong i = 0; i < c->n; i++) mag_set(arb_radref(arb_mat_entry(box, i, 0)), radius);
            softmax(c, box, c->p);
            hessian(c, 1, factor, c->p, c->T);
            proved = arb_mat_solve(c->step, c->T, c->g, c->prec);
            for (slong i = 0; i < c->n && proved; i++) {
                arb_ptr e = arb_mat_entry(c->step, i, 0);
                mag_t most;
                mag_init(most);
                arb_get_mag(most, e);
                proved = mag_cmp(most, radius) < 0;
                mag_clear(most);
            }
            arb_mat_clear(box);
            mag_clear(radius);
            if (proved) {
                arb_mat_sub(c->s, c->s, c->step, c->prec);
                softmax(c, c->s, c->p);
            }
            break;
        }
        arb_mat_get_mid(c->p, c->p);
        hessian(c, 1, factor, c->p, c->T);
        arb_mat_get_mid(c->g, c->g);
        if (!arb_mat_approx_solve(c->step, c->T, c->g, c->prec)) break;
        arb_mat_get_mid(c->step, c->step);
        arb_mat_sub(c->s, c->s, c->step, c->prec);
        still = true;
        for (slong i = 0; i < c->n; i++)
            still &= arf_cmpabs_2exp_si(arb_midref(arb_mat_entry(c->step, i, 0)),
                                        scale - c->prec * 2 / 3) < 0;
    }
    arb_clear(factor);
    return proved;
}

/* x <= y? */
static verdict at_most(const arb_t x, double y)
{
    arb_t z;
    arb_init(z);
    arb_set_d(z, y);
    verdict is = arb_le(x, z) ? RIGHT : arb_gt(x, z) ? WRONG : OPEN;
    arb_clear(z);
    return is;
}

static void distance(court *c, const double *p, arb_t to)
{
    arb_zero(to);
    for (slong i = 0; i < c->n; i++) {
        arb_set_d(c->v, p[i]);
        arb_sub(c->v, c->v, arb_mat_entry(c->p, i, 0), c->prec);
        arb_addmul(to, c->v, c->v, c->prec);
    }
    arb_sqrtpos(to, to, c->prec);
}

/* ---- The gate --------------------------------------------------------------------------------- */

static verdict gate_edge(court *c, double alpha, double factor, bool above)
{
    arb_t at;
    arb_init(at);
    arb_set_d(at, alpha);
    arb_set_d(c->v, factor);
    arb_mul(at, at, c->v, c->prec);
    gate_at(c, at, c->T);
    arb_clear(at);
    return smallest_d(c, c->T, 0, above);
}

static verdict orthogonal(const court *c)
{
    for (slong i = 0; i < c->n; i++)
        for (slong j = 0; j < i; j++) {
            if (!arb_contains_zero(arb_mat_entry(c->off, i, j))) return WRONG;
            if (!arb_is_zero(arb_mat_entry(c->off, i, j)))
                return c->prec < PRECISION_MAX ? OPEN : RIGHT;
        }
    return RIGHT;
}

static verdict decide_gate(court *c, const cgam_gate_info *g, claim what)
{
    const cgam_critical *crit = &g->critical;
    verdict is = RIGHT;
    switch (what) {
    case ALPHA_BOUNDS:
        is = isfinite(crit->alpha_lo) ? gate_edge(c, crit->alpha_lo, 1, false) : orthogonal(c);
        return isfinite(crit->alpha_hi) ? both(is, gate_edge(c, crit->alpha_hi, 1, true)) : is;
    case ALPHA_CRIT:
        if (isinf(crit->alpha)) return orthogonal(c);
        return both(gate_edge(c, crit->alpha, 1 - 1e-9, false),
                    gate_edge(c, crit->alpha, 1 + 1e-9, true));
    case ETA_MIN:
        is = smallest_d(c, c->A, g->eta_min, false);
        return g->eta_min_exact
                   ? both(is, smallest_d(c, c->A, g->eta_min + 1.001e-9 * fmax(1, fabs(g->eta_min)),
                                         true))
                   : is;
    default:
        if (g->regime == CGAM_SUBCRITICAL) return smallest_d(c, c->A, 0, false);
        if (g->regime == CGAM_SUPERCRITICAL) return smallest_d(c, c->A, 0, true);
        if (crit->alpha_lo <= g->alpha && g->alpha <= crit->alpha_hi) return RIGHT;
        return both(smallest_d(c, c->A, -1.001e-9, false), smallest_d(c, c->A, 1.001e-9, true));
    }
}

/* ---- A result --------------------------------------------------------------------------------- */

/* The scores that a promise is about: those of the gates in mode first, and in mode coupled those
 * of the s returned. False where A is singular or there is nothing to go by. */
static bool scores(court *c, const answer *a)
{
    if (c->x->opts.mode == CGAM_COUPLED) from_doubles(c, a->s, c->s);
    else if (c->x->opts.lambda == 0 || arb_mat_is_zero(c->u)) arb_mat_zero(c->s);
    else if (!arb_mat_solve(c->s, c->A, c->u, c->prec)) return false;
    softmax(c, c->s, c->p);
    return true;
}

/* p as the matrices of the certificates see it. */
static bool shares(court *c, const answer *a)
{
    if (!a->p) return scores(c, a);
    from_doubles(c, a->p, c->p);
    return true;
}

static verdict decide_sum(court *c, const answer *a)
{
    arb_set_si(c->t, -1);
    for (slong i = 0; i < c->n; i++) {
        arb_set_d(c->v, a->p[i]);
        arb_add(c->t, c->t, c->v, c->prec);
    }
    arb_abs(c->t, c->t);
    return at_most(c->t, (double)c->n * 0x1p-52);
}

/* Ended as converged: does the map leave p where it is? */
static verdict decide_converged(court *c, const answer *a)
{
    from_doubles(c, a->p, c->p);
    arb_set_d(c->v, c->x->opts.lambda);
    arb_mat_scalar_mul_arb(c->g, c->p, c->v, c->prec);
    arb_mat_add(c->g, c->g, c->u, c->prec);
    if (!arb_mat_solve(c->s, c->A, c->g, c->prec)) return OPEN;
    softmax(c, c->s, c->p);
    distance(c, a->p, c->t);
    return at_most(c->t, 4 * fmax(1e-6, c->x->opts.tol * fmax(1, a->result.contraction)));
}

static verdict decide(court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what)
{
    const cgam_result *r = a ? &a->result : NULL; /* claims of the gate have no answer */
    verdict is = OPEN;
    arb_t factor;
    arb_init(factor);
    if (what > REGIME) inputs(c, k);
    l2b(c, factor);
    switch (what) {
    case P_LOWER_BOUND:
        if (scores(c, a)) {
            arb_neg(c->t, arb_mat_entry(c->p, r->focus, 0));
            is = at_most(c->t, -r->p_lower_bound);
        }
        if (is == RIGHT && c->x->opts.mode == CGAM_COUPLED && r->p_error_proved && fixed_point(c)) {
            arb_neg(c->t, arb_mat_entry(c->p, r->focus, 0));
            is = at_most(c->t, -r->p_lower_bound);
        }
        break;
    case CONTRACTION: /* L A - beta lambda^2 / 2 >= 0 */
    case UNIQUE:
        arb_mul_2exp_si(factor, factor, -1);
        arb_set_d(c->v, what == UNIQUE ? 1 : r->contraction);
        arb_mat_scalar_mul_arb(c->T, c->A, c->v, c->prec);
        is = smallest(c, c->T, factor, what == UNIQUE && r->unique == 0);
        break;
    case FOLD_MARGIN:
        if (!shares(c, a)) { /* A is singular and p not told: true for every p, or not at all */
            arb_mul_2exp_si(factor, factor, -1);
            arb_set_d(c->v, r->fold_margin);
            arb_add(factor, factor, c->v, c->prec);
            is = smallest(c, c->A, factor, false);
            break;
        }
        hessian(c, 1, factor, c->p, c->T);
        is = smallest_d(c, c->T, r->fold_margin, false);
        if (r->fold_margin_exact)
            is = both(is,
                      smallest_d(c, c->T, r->fold_margin + 1.001e-9 * fmax(1, fabs(r->fold_margin)),
                                 true));
        break;
    case LOCAL_CONTRACTION:
        if (!shares(c, a)) break;
        hessian(c, r->local_contraction, factor, c->p, c->T);
        is = smallest_d(c, c->T, 0, false);
        break;
    case P_ERROR:
        from_doubles(c, a->s, c->s);
        if (!fixed_point(c)) break;
        distance(c, a->p, c->t);
        is = at_most(c->t, r->p_error);
        break;
    case P_SUM: is = decide_sum(c, a); break;
    case CONVERGED: is = decide_converged(c, a); break;
    default: is = decide_gate(c, g, what);
    }
    arb_clear(factor);
    return is;
}

static void claimed(court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what,
                    bool ordinary, bool proved, tally *t)
{
    t->ordinary[0][what] += ordinary;
    t->ordinary[1][what] += ordinary && proved;
    if (!proved) {
        t->estimate[what]++;
        return;
    }
    t->made[what]++;
    verdict is = decide(c, g, k, a, what);
    while (is == OPEN && c->prec < PRECISION_MAX) {
        c->prec *= 2;
        court_fill(c);
        is = decide(c, g, k, a, what);
    }
    if (c->prec != PRECISION) {
        c->prec = PRECISION;
        court_fill(c);
    }
    t->wrong[what] += is == WRONG;
    t->open[what] += is == OPEN;
    if (is == RIGHT || t->wrong[what] + t->open[what] > 5) return;
    printf("%s: %s is not true%s\n", is == WRONG ? "WRONG" : "OPEN", claim_names[what],
           is == WRONG ? "" : ", as far as can be told");
    instance_print(c->x);
    printf("    regime %s, eta_min %.17g%s, alpha_crit %.17g in [%.17g, %.17g]%s\n",
           cgam_regime_name(g->regime), g->eta_min, g->eta_min_exact ? " exact" : "",
           g->critical.alpha, g->critical.alpha_lo, g->critical.alpha_hi,
           g->critical.proved ? " proved" : "");
    if (a)
        printf(
            "    query %lld: end %s, p %.17g, bound %.17g, contraction %.17g, local %.17g, margin "
            "%.17g%s, p_error %.17g, change %.3g\n",
            (long long)k, cgam_end_name(a->result.end), a->result.p, a->result.p_lower_bound,
            a->result.contraction, a->result.local_contraction, a->result.fold_margin,
            a->result.fold_margin_exact ? " exact" : "", a->result.p_error, a->result.change);
}

void judge(const instance *x, const cgam_gate_info *g, const answer *answers, tally *t)
{
    court c;
    court_open(&c, x);
    court_fill(&c);
    const cgam_critical *crit = &g->critical;
    bool ordinary = x->ordinary && !(fabs(1 - x->opts.alpha / crit->alpha) < 1e-6);
    bool coupled = x->opts.mode == CGAM_COUPLED;
    claimed(&c, g, 0, NULL, ALPHA_BOUNDS, ordinary, true, t);
    claimed(&c, g, 0, NULL, ALPHA_CRIT, ordinary, crit->proved, t);
    if (!isnan(g->eta_min)) claimed(&c, g, 0, NULL, ETA_MIN, ordinary, true, t);
    claimed(&c, g, 0, NULL, REGIME, ordinary, true, t);
    for (int64_t k = 0; answers && k < x->queries; k++) {
        const answer *a = &answers[k];
        const cgam_result *r = &a->result;
        t->ends[r->end]++;
        t->ordinary_ends[r->end] += ordinary;
        t->queries++;
        if (r->end == CGAM_END_DIVERGED) continue;
        if (!isnan(r->p_lower_bound))
            claimed(&c, g, k, a, P_LOWER_BOUND, ordinary, r->p_lower_bound_proved, t);
        if (!isnan(r->contraction))
            claimed(&c, g, k, a, CONTRACTION, ordinary, r->contraction_proved, t);
        claimed(&c, g, k, a, UNIQUE, ordinary, r->unique_proved, t);
        if (!isnan(r->fold_margin))
            claimed(&c, g, k, a, FOLD_MARGIN, ordinary, r->fold_margin_proved, t);
        if (!isnan(r->local_contraction))
            claimed(&c, g, k, a, LOCAL_CONTRACTION, ordinary, r->local_contraction_proved, t);
        if (coupled && !isnan(r->p_error))
            claimed(&c, g, k, a, P_ERROR, ordinary, r->p_error_proved, t);
        if (a->p) claimed(&c, g, k, a, P_SUM, ordinary, true, t);
        if (coupled && r->end == CGAM_END_CONVERGED)
            claimed(&c, g, k, a, CONVERGED, ordinary, true, t);
    }
    court_close(&c);
}

void judge_leaves(void) { flint_cleanup(); }
