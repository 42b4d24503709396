/* softmax.h: the sums of a softmax, updated as scores arrive.
 *
 *   e_i = exp(beta (r_i - top)):    sum e,   sum e^2,   sum e beta (r - top)
 *
 * Weights are relative to `top`, the largest score so far or near it. When it rises, the earlier sums shrink by a
 * factor. raise and join return this factor, to apply to other sums with those weights. */
#ifndef CGAM_SRC_NUM_SOFTMAX_H
#define CGAM_SRC_NUM_SOFTMAX_H

#include <math.h>

typedef struct cgam_softmax {
    double top, sum, squares, tilt;
} cgam_softmax;

static inline cgam_softmax cgam_softmax_from(double top) { return (cgam_softmax){.top = top}; }

/* Makes the sums relative to `top`. */
static inline double cgam_softmax_raise(cgam_softmax *x, double beta, double top)
{
    double fall = beta * (x->top - top), shrink = x->sum > 0 ? exp(fall) : 0;
    if (x->sum > 0) x->tilt = shrink > 0 ? shrink * (x->tilt + x->sum * fall) : 0;
    x->sum *= shrink;
    x->squares *= shrink * shrink;
    x->top = top;
    return shrink;
}

/* Adds weights relative to x->top, given as the sums that the kernels return. */
static inline void cgam_softmax_add(cgam_softmax *x, double sum, double squares, double tilt)
{
    x->sum += sum;
    x->squares += squares;
    x->tilt += tilt;
}

/* Adds one score, not above x->top. */
static inline void cgam_softmax_take(cgam_softmax *x, double beta, double r)
{
    double arg = beta * (r - x->top), e = exp(arg);
    cgam_softmax_add(x, e, e * e, arg * e);
}

/* Adds other scores, none above x->top. Returns the factor by which their weights shrank. */
static inline double cgam_softmax_join(cgam_softmax *x, cgam_softmax other, double beta)
{
    double shrink = cgam_softmax_raise(&other, beta, x->top);
    cgam_softmax_add(x, other.sum, other.squares, other.tilt);
    return shrink;
}

/* Replaces the weight `old` by exp(arg). */
static inline void cgam_softmax_replace(cgam_softmax *x, double old, double arg)
{
    double e = exp(arg), before = old > 0 ? log(old) : 0;
    cgam_softmax_add(x, e - old, e * e - old * old, e * arg - old * before);
}

/* -sum p log p, log p = beta (r - top) - log sum: two terms of one sign. */
static inline double cgam_softmax_entropy(const cgam_softmax *x)
{
    return log(x->sum) - x->tilt / x->sum;
}

#endif
