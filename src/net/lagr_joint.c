/* lagr_joint.c: Lagrangians of a whole group of elements - softmax with and without a ghost, its
 * sparse relatives, layer norm, spherical norm.
 *
 * Softmax. Everything is measured from the leading element m: with x_i - x_m <= 0 nothing
 * overflows, and beta (x_i - x_m) keeps digits that beta x_i - beta x_m would lose. The dual
 * energy sum p log p / beta is sum p (x - x_m) - log1p(rest) / beta, rest = sum over i != m of
 * p_i / p_m: two terms of the same sign. The Hessian beta (diag p - pp') v is
 * beta p_i (w_i - <p, w>), w = v - v_m, which is exact at m too when p_m rounds to 1.
 * A ghost is one more element that is always 0 and is absent from the activation. */
#include "net/lagr.h"

#include "num/entmax.h"

#include <math.h>

/* Two pairs share their functions; the ghost softmax and the layer norm are distinguished by this `user`. */
static char second;

static int64_t argmax(int64_t n, const double *x)
{
    int64_t m = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[m]) m = i;
    return m;
}

static cgam_status in_range(double value) { return isfinite(value) ? CGAM_OK : CGAM_E_VALUE; }

/* exp(beta (x - top)) of all elements; the returned sum omits the leader's 1. */
static double shifted_exps(bool ghost, double beta, int64_t n, const double *x, double *a,
                           double *top)
{
    int64_t m = argmax(n, x);
    bool leads = !ghost || x[m] >= 0;
    *top = leads ? x[m] : 0;
    double rest = ghost && leads ? exp(-beta * *top) : 0;
    for (int64_t i = 0; i < n; i++) {
        double e = exp(beta * (x[i] - *top));
        if (a) a[i] = e;
        if (!leads || i != m) rest += e;
    }
    return rest;
}

static cgam_status softmax_value(const cgam_lagr *self, const double *theta, int64_t n,
                                 const double *x, double *L)
{
    double top, rest = shifted_exps(self->user, *theta, n, x, NULL, &top);
    *L = top + log1p(rest) / *theta;
    return in_range(*L);
}

static cgam_status softmax_activation(const cgam_lagr *self, const double *theta, int64_t n,
                                      const double *x, double *a)
{
    double top, total = 1 + shifted_exps(self->user, *theta, n, x, a, &top);
    for (int64_t i = 0; i < n; i++) a[i] /= total;
    return in_range(total);
}

/* Probability of the ghost: from the ratio to the leader; if the ghost leads it is at least 1 / (n + 1), and the
 * difference is accurate. */
static double ghost_weight(double beta, int64_t n, const double *x, const double *a)
{
    int64_t m = argmax(n, x);
    if (x[m] >= 0) return a[m] * exp(-beta * x[m]);
    double seen = 0;
    for (int64_t i = 0; i < n; i++) seen += a[i];
    return 1 - seen;
}

static cgam_status softmax_hessian(const cgam_lagr *self, const double *theta, int64_t n,
                                   const double *x, const double *a, const double *v, double *out)
{
    const bool ghost = self->user;
    const double beta = *theta;
    int64_t m = argmax(n, x);
    bool leads = !ghost || x[m] >= 0;
    double v_m = leads ? v[m] : 0, mean = 0;
    for (int64_t i = 0; i < n; i++) mean += a[i] * (v[i] - v_m);
    if (ghost && leads) mean -= ghost_weight(beta, n, x, a) * v_m;
    for (int64_t i = 0; i < n; i++) out[i] = beta * a[i] * ((v[i] - v_m) - mean);
    return in_range(mean);
}

static cgam_status softmax_energy(const cgam_lagr *self, const double *theta, int64_t n,
                                  const double *x, const double *a, double *E)
{
    const bool ghost = self->user;
    const double beta = *theta;
    int64_t m = argmax(n, x);
    bool leads = !ghost || x[m] >= 0;
    double top = leads ? x[m] : 0, mean = 0, rest = 0, p0 = 0;
    for (int64_t i = 0; i < n; i++) {
        if (a[i] > 0) mean += a[i] * (x[i] - top);
        if (!leads || i != m) rest += a[i];
    }
    if (ghost) p0 = ghost_weight(beta, n, x, a);
    if (ghost && leads) {
        mean += p0 > 0 ? p0 * -top : 0;
        rest += p0;
    }
    *E = mean - log1p(rest / (leads ? a[m] : p0)) / beta;
    return in_range(*E);
}

#define FUNCTIONS(NAME)                                                                            \
    .value = NAME##_value, .activation = NAME##_activation, .hessian = NAME##_hessian,             \
    .energy = NAME##_energy

const cgam_lagr cgam_lagr_softmax = {
    "softmax", "log(sum exp(beta x)) / beta", {BETA}, FUNCTIONS(softmax)};
const cgam_lagr cgam_lagr_ghost = {"ghost_softmax",
                                   "log(1 + sum exp(beta x)) / beta",
                                   {BETA},
                                   FUNCTIONS(softmax),
                                   .user = &second};

/* ---- entmax ------------------------------------------------------------------------------- */
/* L is the largest <x, p> + H_A(p) / beta over the simplex (num/entmax.h). With v the arguments of
 * exp_A, the dual energy is sum p v / (A beta), one sign throughout. The Hessian is
 * beta (diag w - ww' / sum w), w = p^(2 - A), measured from the leader as softmax's is. */
static cgam_entmax entmax_of(const cgam_lagr *self, const double *theta, int64_t n, const double *x)
{
    return cgam_entmax_of(self->user ? *(const double *)self->user : theta[1], theta[0], n, x);
}

static cgam_status entmax_value(const cgam_lagr *self, const double *theta, int64_t n,
                                const double *x, double *L)
{
    cgam_entmax e = entmax_of(self, theta, n, x);
    *L = e.top + cgam_entmax_value(&e, n, x) / e.beta;
    return in_range(*L);
}

static cgam_status entmax_activation(const cgam_lagr *self, const double *theta, int64_t n,
                                     const double *x, double *a)
{
    cgam_entmax e = entmax_of(self, theta, n, x);
    for (int64_t i = 0; i < n; i++) a[i] = cgam_entmax_weight(&e, x[i]);
    return in_range(e.shift);
}

static cgam_status entmax_hessian(const cgam_lagr *self, const double *theta, int64_t n,
                                  const double *x, const double *a, const double *v, double *out)
{
    double order = self->user ? *(const double *)self->user : theta[1];
    int64_t m = argmax(n, x);
    double total = 0, mean = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = cgam_entmax_slope(order, a[i]);
        total += out[i];
        mean += out[i] * (v[i] - v[m]);
    }
    mean /= total;
    for (int64_t i = 0; i < n; i++) out[i] *= theta[0] * ((v[i] - v[m]) - mean);
    return in_range(mean);
}

static cgam_status entmax_energy(const cgam_lagr *self, const double *theta, int64_t n,
                                 const double *x, const double *a __attribute__((unused)),
                                 double *E)
{
    cgam_entmax e = entmax_of(self, theta, n, x);
    *E = cgam_entmax_tilt(&e, n, x) / (e.order * e.beta);
    return in_range(*E);
}

static double two = 2, three_halves = 1.5; /* the orders with a name */
#define ENTMAX_FORMULA "max over the simplex of <x, p> + sum (p - p^A) / (A (A - 1) beta)"
const cgam_lagr cgam_lagr_sparsemax = {
    "sparsemax", ENTMAX_FORMULA ", A = 2", {BETA}, FUNCTIONS(entmax), .user = &two};
const cgam_lagr cgam_lagr_entmax15 = {
    "entmax15", ENTMAX_FORMULA ", A = 3/2", {BETA}, FUNCTIONS(entmax), .user = &three_halves};
const cgam_lagr cgam_lagr_entmax = {"entmax",
                                    ENTMAX_FORMULA ", A = order",
                                    {BETA, {"order", 1.5, 1 + CGAM_ENTMAX_LEAST, 2}},
                                    FUNCTIONS(entmax)};

/* ---- norms -------------------------------------------------------------------------------- */
/* With u = (x - mean) / rho, rho = sqrt(var + eps) (layer norm) or u = x / rho,
 * rho = sqrt(|x|^2 + eps) (spherical norm): L = w gamma rho + delta sum x, w = n or 1, and
 *   a = gamma u + delta,   (hess L) v = gamma / rho (v - mean v - u <u, v> / w)
 *   E = w gamma (|.|^2 / w - rho^2) / rho = - w gamma eps / rho,   delta cancelling. */
enum { GAMMA, DELTA, EPSILON };
#define NORM_PARAMS                                                                                \
    {                                                                                              \
        {"gamma", 1, 1e-9, 1e9}, {"delta", 0, -1e9, 1e9}, { "epsilon", 1e-5, 1e-12, 1e3 }          \
    }

static double mean_of(int64_t n, const double *x)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += x[i];
    return total / (double)n;
}

/* The centre to subtract, and rho. */
static double norm_radius(bool layer, const double *theta, int64_t n, const double *x,
                          double *centre)
{
    double squares = 0;
    *centre = layer ? mean_of(n, x) : 0;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - *centre) * (x[i] - *centre);
    return sqrt((layer ? squares / (double)n : squares) + theta[EPSILON]);
}

static cgam_status norm_value(const cgam_lagr *self, const double *theta, int64_t n,
                              const double *x, double *L)
{
    const bool layer = self->user;
    double centre, rho = norm_radius(layer, theta, n, x, &centre), w = layer ? (double)n : 1;
    *L = w * theta[GAMMA] * rho;
    if (theta[DELTA] != 0) *L += theta[DELTA] * mean_of(n, x) * (double)n;
    return in_range(*L);
}

static cgam_status norm_activation(const cgam_lagr *self, const double *theta, int64_t n,
                                   const double *x, double *a)
{
    double centre, rho = norm_radius(self->user, theta, n, x, &centre);
    for (int64_t i = 0; i < n; i++) a[i] = theta[GAMMA] * ((x[i] - centre) / rho) + theta[DELTA];
    return in_range(rho);
}

static cgam_status norm_hessian(const cgam_lagr *self, const double *theta, int64_t n,
                                const double *x, const double *a __attribute__((unused)),
                                const double *v, double *out)
{
    const bool layer = self->user;
    double centre, rho = norm_radius(layer, theta, n, x, &centre), w = layer ? (double)n : 1;
    double mean = layer ? mean_of(n, v) : 0, along = 0;
    for (int64_t i = 0; i < n; i++) along += (x[i] - centre) / rho * v[i];
    for (int64_t i = 0; i < n; i++)
        out[i] = theta[GAMMA] / rho * (v[i] - mean - (x[i] - centre) / rho * along / w);
    return in_range(along);
}

static cgam_status norm_energy(const cgam_lagr *self, const double *theta, int64_t n,
                               const double *x, const double *a __attribute__((unused)), double *E)
{
    const bool layer = self->user;
    double centre, rho = norm_radius(layer, theta, n, x, &centre), w = layer ? (double)n : 1;
    *E = -w * theta[GAMMA] * theta[EPSILON] / rho;
    return in_range(rho);
}

const cgam_lagr cgam_lagr_layer_norm = {"layer_norm", "n gamma sqrt(var x + epsilon) + delta sum x",
                                        NORM_PARAMS, FUNCTIONS(norm), .user = &second};
const cgam_lagr cgam_lagr_spherical_norm = {
    "spherical_norm", "gamma sqrt(|x|^2 + epsilon) + delta sum x", NORM_PARAMS, FUNCTIONS(norm)};
