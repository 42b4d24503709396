/* shares.c: what a result says of its focus beside the proofs - p is a share, gaps are those of double.
 *
 * In double a sum of d products is off by (d + 16) 2^-50 |zeta| |q| at most, whatever the storage of the rows and whatever the
 * products before it were in; so a gap of one evaluation is as close to the exact one. Mode first, where scores are what was
 * given; gates that A(alpha) solves for have an error of their own and are left to the other claims. */
#include "rigour/court.h"

#include <math.h>

static double length_of(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++) sum = hypot(sum, x[j]);
    return sum;
}

/* Is gap = v_f - max of the others, as far as `off`? most: NULL, or one more rival's value. */
static verdict decide_gap(court *c, arb_srcptr v, slong f, double gap, double off,
                          const double *most)
{
    verdict is = RIGHT, reached = WRONG;
    for (slong i = 0; i < c->n + (most != NULL); i++) {
        if (i == f) continue;
        if (i < c->n) arb_set(c->w, v + i);
        else arb_set_d(c->w, *most);
        arb_sub(c->w, v + f, c->w, c->prec); /* the gap over i: none is less, and one is it */
        arb_set_d(c->t, gap);
        arb_sub(c->t, c->t, c->w, c->prec);
        is = both(is, at_most(c->t, off));
        if (reached == RIGHT) continue;
        arb_neg(c->t, c->t);
        verdict it = at_most(c->t, off);
        if (it != WRONG) reached = it;
    }
    return both(is, reached);
}

/* The longest row by the numbers given; 1 where rows are normalised. */
static double longest_row(const instance *x)
{
    double longest = 0;
    for (int64_t i = 0; i < x->n; i++) longest = fmax(longest, length_of(x->d, x->Z + i * x->d));
    return x->normalize ? 1 : longest;
}

static bool is_share(const cgam_result *r) { return r->p >= 0 && r->p <= 1 && r->log_p <= 0; }

verdict decide_shares(court *c, const answer *a)
{
    const cgam_result *r = &a->result;
    const instance *x = c->x;
    const cgam_recall_opts *o = &x->opts;
    if (!is_share(r)) return WRONG;
    bool given = o->lambda == 0 || !x->context || (o->alpha == 0 && !o->W && !o->P);
    if (o->mode != CGAM_FIRST || r->focus < 0 || x->edge || c->n + o->none < 2) return RIGHT;
    double rounds = (double)(x->d + 16) * 0x1p-50, longest = longest_row(x), zero = 0;
    double ghost = o->none ? fabs(o->none_score) : 0; /* exact, but for the difference to it */
    double off_b = rounds * (longest * length_of(x->d, x->q + c->query * x->d) + ghost) + 0x1p-1000;
    double off_s = x->context && given
                       ? rounds * longest * length_of(x->d, x->c + (x->own ? c->query * x->d : 0))
                       : 0;
    slong f = (slong)r->focus;
    verdict is = decide_gap(c, c->b, f, r->gap_raw, off_b, o->none ? &o->none_score : NULL);
    if (!given || o->lambda == 0) return is;
    if (x->context)
        is = both(is,
                  decide_gap(c, c->u, f, r->gap_gate, off_s + 0x1p-1000, o->none ? &zero : NULL));
    for (slong i = 0; i < c->n; i++) {
        arb_mul(c->g + i, c->lambda, c->u + i, c->prec);
        arb_add(c->g + i, c->g + i, c->b + i, c->prec);
    }
    double off = (off_b + o->lambda * off_s) * 2;
    return both(is, decide_gap(c, c->g, f, r->gap, off, o->none ? &o->none_score : NULL));
}
