/* lagr_slope.c: derivatives of Lagrangians with respect to their parameters.
 *
 * Inverse temperatures enter as L(x; beta) = L(beta x; 1) / beta, hence
 *   dL/dbeta = (<x, a> - L) / beta,   da/dbeta = (hess L) x / beta .
 * A power has dL/dk = x^k (log x - 1/k) / k, da/dk = x^(k-1) log x. The norms are linear in gamma and delta, and
 * drho/depsilon = 1 / (2 rho). The order A of entmax moves p at fixed arguments v by
 *   q = p ((1 - p^(1-A)) / (A-1) - log p) / (A-1),
 * and the common shift of v keeps the sum: dp/dA = q - w sum q / sum w, w = p^(2-A). L changes by the explicit
 * derivative alone, as p is where its maximum is (envelope theorem).
 * Lagrangians of users without a slope are differenced. */
#include "net/lagr.h"
#include "num/entmax.h"

#include <math.h>
#include <string.h>

typedef struct point {
    const cgam_lagr_use *u;
    const double *x, *a, *w; /* [width]; a without the scale; w NULL: none */
    double *space;           /* [width] */
    double *dL, *wa;         /* [CGAM_LAGR_PARAMS] of this group, without the scale; zeroed */
} point;

static double along(const point *p, const double *v)
{
    double total = 0;
    for (int64_t i = 0; p->w && i < p->u->width; i++) total += p->w[i] * v[i];
    return total;
}

static cgam_status beta_slope(const point *p, int at)
{
    const cgam_lagr *l = p->u->lagr;
    double E, beta = p->u->theta[at];
    cgam_status status = l->energy(l, p->u->theta, p->u->width, p->x, p->a, &E);
    p->dL[at] = E / beta;
    if (status == CGAM_OK && p->w)
        status = l->hessian(l, p->u->theta, p->u->width, p->x, p->a, p->x, p->space);
    if (status == CGAM_OK && p->w) p->wa[at] = along(p, p->space) / beta;
    return status;
}

static void power_slope(const point *p)
{
    double k = p->u->theta[0];
    for (int64_t i = 0; i < p->u->width; i++) {
        if (!(p->x[i] > 0)) continue;
        double log_x = log(p->x[i]), a = pow(p->x[i], k - 1);
        p->dL[0] += a * p->x[i] * (log_x - 1 / k) / k;
        if (p->w) p->wa[0] += p->w[i] * a * log_x;
    }
}

static void norm_slope(const point *p)
{
    enum { GAMMA, DELTA, EPSILON };
    const int64_t n = p->u->width;
    const double *theta = p->u->theta;
    bool layer = p->u->lagr == &cgam_lagr_layer_norm;
    double sum = 0, squares = 0, total_w = 0, mixed = 0, weight = layer ? (double)n : 1;
    for (int64_t i = 0; i < n; i++) sum += p->x[i];
    double centre = layer ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) squares += (p->x[i] - centre) * (p->x[i] - centre);
    double rho = sqrt(squares / weight + theta[EPSILON]);
    for (int64_t i = 0; p->w && i < n; i++) {
        total_w += p->w[i];
        mixed += p->w[i] * (p->x[i] - centre) / rho;
    }
    p->dL[GAMMA] = weight * rho;
    p->dL[DELTA] = sum;
    p->dL[EPSILON] = weight * theta[GAMMA] / (2 * rho);
    p->wa[GAMMA] = mixed;
    p->wa[DELTA] = total_w;
    p->wa[EPSILON] = -theta[GAMMA] * mixed / (2 * rho * rho);
}

static void order_slope(const point *p)
{
    const double beta = p->u->theta[0], A = p->u->theta[1], B = A - 1;
    double sum_q = 0, sum_s = 0, wq = 0, ws = 0;
    for (int64_t i = 0; i < p->u->width; i++) {
        double a = p->a[i];
        if (!(a > 0)) continue;
        double log_a = log(a), power = pow(a, A), s = cgam_entmax_slope(A, a);
        double q = (-a * expm1(-B * log_a) / B - a * log_a) / B;
        p->dL[1] -= power * log_a / (A * B * beta);
        p->dL[1] -= (a - power) * (2 * A - 1) / (A * A * B * B * beta);
        sum_q += q;
        sum_s += s;
        if (!p->w) continue;
        wq += p->w[i] * q;
        ws += p->w[i] * s;
    }
    if (p->w) p->wa[1] = wq - ws * sum_q / sum_s;
}

/* Central differences of value and activation in parameter `at`, inside its range. */
static cgam_status difference_slope(const point *p, int at)
{
    const cgam_lagr *l = p->u->lagr;
    double theta[CGAM_LAGR_PARAMS], value[2], mixed[2] = {0}, place[2];
    double h = 6e-6 * fmax(fabs(p->u->theta[at]), 1e-3);
    cgam_status status = CGAM_OK;
    for (int side = 0; side < 2 && status == CGAM_OK; side++) {
        memcpy(theta, p->u->theta, sizeof theta);
        place[side] = fmin(fmax(theta[at] + (side ? h : -h), l->param[at].min), l->param[at].max);
        theta[at] = place[side];
        status = l->value(l, theta, p->u->width, p->x, &value[side]);
        if (status == CGAM_OK && p->w)
            status = l->activation(l, theta, p->u->width, p->x, p->space);
        if (status == CGAM_OK && p->w) mixed[side] = along(p, p->space);
    }
    if (status != CGAM_OK || !(place[1] > place[0])) return status;
    p->dL[at] = (value[1] - value[0]) / (place[1] - place[0]);
    p->wa[at] = (mixed[1] - mixed[0]) / (place[1] - place[0]);
    return status;
}

static cgam_status group_slope(const point *p)
{
    const cgam_lagr *l = p->u->lagr;
    bool known = false;
    for (int i = 0; cgam_lagrs[i]; i++) known = known || cgam_lagrs[i] == l;
    cgam_status status = CGAM_OK;
    if (l->slope)
        return l->slope(l, p->u->theta, p->u->width, p->x, p->a, p->w, p->dL, p->w ? p->wa : NULL);
    for (int i = 0; i < CGAM_LAGR_PARAMS && l->param[i].name && status == CGAM_OK; i++) {
        if (!known) status = difference_slope(p, i);
        else if (strcmp(l->param[i].name, "beta") == 0) status = beta_slope(p, i);
    }
    if (l == &cgam_lagr_power) power_slope(p);
    if (l == &cgam_lagr_layer_norm || l == &cgam_lagr_spherical_norm) norm_slope(p);
    if (l == &cgam_lagr_entmax) order_slope(p);
    return status;
}

cgam_status cgam_lagr_use_slope(const cgam_lagr_use *u, const double *x, const double *a,
                                const double *w, double *scratch, double *dL, double *wa)
{
    cgam_status status = CGAM_OK;
    double L;
    for (int i = 0; i <= CGAM_LAGR_PARAMS; i++) dL[i] = wa[i] = 0;
    for (int64_t g = 0; g < u->groups && status == CGAM_OK; g++) {
        int64_t at = g * u->width;
        double slope[CGAM_LAGR_PARAMS] = {0}, mixed[CGAM_LAGR_PARAMS] = {0};
        point p = {u, x + at, a + at, w ? w + at : NULL, scratch + u->width, slope, mixed};
        if (u->scale != 1) {
            for (int64_t i = 0; i < u->width; i++) scratch[i] = a[at + i] / u->scale;
            p.a = scratch;
        }
        status = group_slope(&p);
        if (status == CGAM_OK) status = u->lagr->value(u->lagr, u->theta, u->width, p.x, &L);
        for (int i = 0; i < CGAM_LAGR_PARAMS; i++) {
            dL[i] += u->scale * slope[i];
            wa[i] += u->scale * mixed[i];
        }
        dL[CGAM_LAGR_PARAMS] += L;
        wa[CGAM_LAGR_PARAMS] += along(&p, p.a);
    }
    return status;
}
