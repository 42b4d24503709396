/* balls.c: do the balls of ball.h hold what they should? Each operation on random balls, against Arb on
 * random members of theirs. */
#include "base/rng.h"
#include "rigour/ball.h"
#include "rigour/campaign.h"
#include <cgam/base.h>

#include <arb.h>
#include <stdio.h>

enum { BITS = 512, TRIALS = 20000 };

static void exactly(arb_t to, long double x)
{
    int e;
    arb_t part;
    arb_init(part);
    arb_zero(to);
    for (long double rest = frexpl(x, &e); rest != 0; rest -= (double)rest) {
        arb_set_d(part, (double)rest);
        arb_add(to, to, part, ARF_PREC_EXACT);
    }
    arb_mul_2exp_si(to, to, e);
    arb_clear(part);
}

/* About 10^0, or of any size; exact, or with a radius of any share; short ones too. */
static ball draw(cgam_rng *rng, bool positive)
{
    double range = cgam_rng_below(rng, 3) ? 3 : 2000;
    long double mid = exp2l((long double)(range * (2 * cgam_rng_uniform(rng) - 1)));
    mid *= 1 + (long double)cgam_rng_normal(rng) * 0x1p-30L;
    if (cgam_rng_below(rng, 4) == 0) mid = (long double)cgam_rng_below(rng, 9);
    long double rad =
        cgam_rng_below(rng, 3) ? mid * exp2l(-70 * (long double)cgam_rng_uniform(rng)) : 0;
    return (ball){positive || cgam_rng_below(rng, 2) ? mid : -mid, positive ? rad / 2 : rad};
}

/* One of its ends, its middle, or what is between. */
static void member(cgam_rng *rng, ball x, arb_t to)
{
    const double places[] = {-1, 0, 1, 2 * cgam_rng_uniform(rng) - 1};
    arb_t rad, at;
    arb_init(rad);
    arb_init(at);
    exactly(to, x.mid);
    exactly(rad, x.rad);
    arb_set_d(at, places[cgam_rng_below(rng, 4)]);
    arb_addmul(to, rad, at, ARF_PREC_EXACT);
    arb_clear(rad);
    arb_clear(at);
}

typedef enum operation { ADD, SUB, MUL, DIV, SQRT, EXP, LOG, POW, UNION, OPERATIONS } operation;
static const char *const operations[OPERATIONS] = {"+",   "-",   "*",   "/",    "sqrt",
                                                   "exp", "log", "pow", "union"};

static ball in_long_double(operation o, ball x, ball y)
{
    switch (o) {
    case ADD: return ball_add(x, y);
    case SUB: return ball_sub(x, y);
    case MUL: return ball_mul(x, y);
    case DIV: return ball_div(x, y);
    case SQRT: return ball_sqrt(x);
    case EXP: return ball_exp(x);
    case LOG: return ball_log(x);
    case POW: return ball_pow(x, y);
    default: return ball_union(x, y);
    }
}

static void in_arb(operation o, const arb_t x, const arb_t y, arb_t z)
{
    switch (o) {
    case ADD: arb_add(z, x, y, ARF_PREC_EXACT); return;
    case SUB: arb_sub(z, x, y, ARF_PREC_EXACT); return;
    case MUL: arb_mul(z, x, y, ARF_PREC_EXACT); return;
    case DIV: arb_div(z, x, y, BITS); return;
    case SQRT: arb_sqrt(z, x, BITS); return;
    case EXP: arb_exp(z, x, BITS); return;
    case LOG: arb_log(z, x, BITS); return;
    case POW: arb_pow(z, x, y, BITS); return;
    default: arb_set(z, x); return;
    }
}

int64_t balls_that_do_not_hold(uint64_t seed)
{
    cgam_rng rng = cgam_rng_stream(seed, 0);
    arb_t x, y, z, mid, rad;
    arb_struct *all[] = {x, y, z, mid, rad};
    for (int k = 0; k < 5; k++) arb_init(all[k]);
    int64_t bad = 0, certain[OPERATIONS] = {0};
    for (int64_t k = 0; k < TRIALS; k++) {
        operation o = (operation)(k % OPERATIONS);
        ball a = draw(&rng, o == SQRT || o == LOG || o == POW), b = draw(&rng, o == POW);
        ball got = in_long_double(o, a, b);
        if (!ball_is_finite(got)) continue; /* holds everything */
        member(&rng, a, x);
        member(&rng, b, y);
        in_arb(o, x, y, z);
        if (!arb_is_finite(z)) continue; /* the member is no operand */
        exactly(mid, got.mid);
        exactly(rad, got.rad);
        arb_sub(z, z, mid, ARF_PREC_EXACT);
        arb_abs(z, z);
        certain[o] += arb_le(z, rad);
        if (arb_le(z, rad) || bad++ > 4) continue;
        printf(
            "WRONG: a ball: (%.21Lg +- %.3Lg) %s (%.21Lg +- %.3Lg) is not all in %.21Lg +- %.3Lg\n",
            a.mid, a.rad, operations[o], b.mid, b.rad, got.mid, got.rad);
    }
    for (int o = 0; o < OPERATIONS; o++)
        if (certain[o] < TRIALS / OPERATIONS / 4 && ++bad)
            printf("WRONG: balls: %s is hardly ever certain\n", operations[o]);
    for (int k = 0; k < 5; k++) arb_clear(all[k]);
    return bad;
}
