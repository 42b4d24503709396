/* ball.h: ball arithmetic in long double, for the claims that need no more than that.
 *
 * A ball is every x with |x - mid| <= rad. Whatever an operation returns holds the exact result for all
 * members of its operands. The model: round to nearest, each operation off by at most U of its result
 * (U = 2^-64 where long double has 64 bits) and TINY where that is below the normal range. A sum's
 * rounding is itself a number and found exactly (Knuth's TwoSum), so that what is exact stays exact.
 * Radii are made of few operations on numbers that are not negative; `wide` is more than those can take away. What leaves
 * the range has a radius that is infinite or NaN, and of such a ball nothing is ever certain: every
 * comparison below is false of it. */
#ifndef CGAM_TESTS_RIGOUR_BALL_H
#define CGAM_TESTS_RIGOUR_BALL_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

typedef struct ball {
    long double mid, rad;
} ball;

_Static_assert(LDBL_MANT_DIG == 64 || LDBL_MANT_DIG == 113,
               "long double is no IEEE format that is wider than double");
#define BALL_U (LDBL_EPSILON / 2)
#define BALL_TINY LDBL_MIN /* denormal operands take the CPU a hundred times as long */

static inline long double wide(long double rad)
{
    return rad > 0 ? rad * (1 + 64 * BALL_U) + BALL_TINY : rad;
}

static inline ball ball_exact(long double x) { return (ball){x, 0}; }
static inline ball ball_anything(void) { return (ball){0, INFINITY}; }
static inline bool ball_is_zero(ball x) { return x.mid == 0 && x.rad == 0; }
static inline bool ball_is_positive(ball x) { return x.mid > x.rad; }
static inline bool ball_is_negative(ball x) { return x.mid < -x.rad; }
static inline bool ball_is_nonnegative(ball x) { return x.mid >= x.rad && isfinite(x.mid); }
static inline bool ball_is_finite(ball x) { return isfinite(x.mid) && isfinite(x.rad); }
static inline ball ball_neg(ball x) { return (ball){-x.mid, x.rad}; }
static inline long double ball_most(ball x) { return wide(fabsl(x.mid) + x.rad); } /* |x| */

static inline ball ball_add(ball x, ball y)
{
    long double sum = x.mid + y.mid, part = sum - x.mid;
    long double lost = (x.mid - (sum - part)) + (y.mid - part);
    return (ball){sum, wide(x.rad + y.rad + fabsl(lost))};
}

static inline ball ball_sub(ball x, ball y) { return ball_add(x, ball_neg(y)); }

/* Products of two such are exact. */
static inline bool ball_is_short(ball x) { return x.rad == 0 && (float)x.mid == x.mid; }

static inline ball ball_mul(ball x, ball y)
{
    if (ball_is_zero(x) || ball_is_zero(y)) return ball_exact(0);
    long double mid = x.mid * y.mid;
    if (ball_is_short(x) && (x.mid == 1 || ball_is_short(y))) return (ball){mid, y.rad};
    if (y.mid == 1 && y.rad == 0) return x;
    long double rad = fabsl(x.mid) * y.rad + x.rad * (fabsl(y.mid) + y.rad);
    return (ball){mid, wide(rad + BALL_U * fabsl(mid) + 4 * BALL_TINY)};
}

/* |x'/y' - x/y| <= (rad x + |x/y| rad y) / (|y| - rad y). */
static inline ball ball_div(ball x, ball y)
{
    long double least = fabsl(y.mid) - y.rad;
    if (!(least > 0)) return ball_anything();
    if (ball_is_zero(x)) return x;
    long double mid = x.mid / y.mid;
    if (x.rad == 0 && ball_is_short(y) && ball_is_short(ball_exact(mid)) && mid * y.mid == x.mid)
        return ball_exact(mid);
    long double more = x.rad + (fabsl(mid) + BALL_TINY) * y.rad;
    return (ball){mid,
                  wide(more / (least * (1 - 4 * BALL_U)) + BALL_U * fabsl(mid) + 2 * BALL_TINY)};
}

/* x 2^e. */
static inline ball ball_scale(ball x, int e)
{
    ball y = {ldexpl(x.mid, e), ldexpl(x.rad, e)};
    if (fabsl(y.mid) < LDBL_MIN && x.mid != 0) y.rad += BALL_TINY;
    if (y.rad < LDBL_MIN && x.rad > 0) y.rad += BALL_TINY;
    return y;
}

/* Of what is not negative in x, which is not below 0 altogether: |sqrt x' - sqrt x| <= |x' - x| / sqrt x
 * and sqrt |x' - x|. */
static inline ball ball_sqrt(ball x)
{
    if (!ball_is_finite(x) || x.mid < -x.rad) return ball_anything();
    long double mid = sqrtl(x.mid > 0 ? x.mid : 0), rad = sqrtl(x.rad);
    if (mid > 0 && x.rad / mid < rad) rad = x.rad / mid;
    return (ball){mid, wide(rad + BALL_U * mid)};
}

/* The smallest ball around both, about. */
static inline ball ball_union(ball x, ball y)
{
    long double mid = 0.5L * (x.mid + y.mid);
    long double left = fabsl(x.mid - mid) + x.rad, right = fabsl(y.mid - mid) + y.rad;
    return (ball){mid, wide(left > right ? left : right)};
}

/* e^x. x = k ln 2 + t, and the series of e^t by Horner's rule, 1 + (t / i) (1 + ...), for |t| <= 0.36:
 * the error e of a step becomes 0.36 e / i + 3 U 0.54 / i + 1.5 U, less than 4 U at last, and
 * what is left out is below 2^-80. As a share of e^t >= 0.69 that is 6 U. */
static inline ball ball_exp(ball x)
{
    enum { TERMS = 18, LEFT_OUT = 80 };
    const long double high = 0x1.62e42fefa39ep-1L; /* of ln 2: 49 bits, so that k high is exact */
    const ball low = {0xf.35793c7673007e6p-53L, 0x1p-110L};
    if (ball_is_zero(x)) return ball_exact(1);
    if (x.mid + x.rad < -11400) return (ball){0, 2 * BALL_TINY}; /* 2^-16446 */
    if (!(fabsl(x.mid) < 11000) || !(x.rad < 11000)) return ball_anything();
    if (x.rad > 0.25L) { /* from 0 to its largest */
        ball most = ball_exp(ball_exact(x.mid + x.rad * (1 + 8 * BALL_U) + 0x1p-40L));
        long double half = 0.5L * ball_most(most);
        return (ball){half, wide(half)};
    }
    long double k = rintl(x.mid * 0x1.71547652b82fep+0L);
    ball t = ball_sub(ball_exact(x.mid), ball_exact(k * high));
    t = ball_sub(t, ball_mul(ball_exact(k), low));
    long double sum = 1;
    for (int i = TERMS; i > 0; i--) sum = 1 + sum * t.mid / i;
    long double off = 8 * (LDBL_MANT_DIG < LEFT_OUT ? BALL_U : 0x1p-80L) + 2 * (t.rad + x.rad);
    return ball_scale((ball){sum, wide(sum * off)}, (int)k);
}

/* log x = y + log(x e^-y), |log(1 + e)| <= |e| / (1 - |e|), for any y. */
static inline ball ball_log(ball x)
{
    if (!ball_is_positive(x) || !ball_is_finite(x)) return ball_anything();
    long double y = logl(x.mid);
    ball rest = ball_sub(ball_mul(x, ball_exp(ball_exact(-y))), ball_exact(1));
    long double most = ball_most(rest);
    return most < 0.5L ? (ball){y, wide(most / (1 - most))} : ball_anything();
}

/* x^y, x > 0. */
static inline ball ball_pow(ball x, ball y)
{
    if (y.rad > 0 || y.mid != rintl(y.mid) || y.mid < 1 || y.mid > 64)
        return ball_exp(ball_mul(y, ball_log(x)));
    ball to = x;
    for (int k = (int)y.mid; k > 1; k--) to = ball_mul(to, x);
    return to;
}

#endif
