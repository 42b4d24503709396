/* lagr.c: Lagrangians that act on each element separately.
 *
 * For each: L, a = L', h = L'' and the dual energy E = x a - L, per element, in forms that keep
 * their digits from |beta x| = 1e-8 to 1e6 (and beyond, to where the result leaves double). The
 * dual energies are written out because x a - L cancels: for tanh at beta x = 1e6 it is log 2,
 * the difference of two numbers near 1e6. */
#include "net/lagr.h"

#include <math.h>
#include <string.h>

#define NO_THETA const double *theta __attribute__((unused))

typedef double (*scalar)(const double *theta, double x);

/* Sums and maps over elements; a result outside the range of double is a status. */
static cgam_status sum(scalar f, const double *theta, int64_t n, const double *x, double *out)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += f(theta, x[i]);
    *out = total;
    return isfinite(total) ? CGAM_OK : CGAM_E_VALUE;
}

static cgam_status map(scalar f, const double *theta, int64_t n, const double *x, double *out)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        out[i] = f(theta, x[i]);
        finite = finite && isfinite(out[i]);
    }
    return finite ? CGAM_OK : CGAM_E_VALUE;
}

#define ELEMENTWISE(NAME)                                                                          \
    static cgam_status NAME##_value(const cgam_lagr *self, const double *theta, int64_t n,         \
                                    const double *x, double *L)                                    \
    {                                                                                              \
        (void)self;                                                                                \
        return sum(NAME##_L, theta, n, x, L);                                                      \
    }                                                                                              \
    static cgam_status NAME##_activation(const cgam_lagr *self, const double *theta, int64_t n,    \
                                         const double *x, double *a)                               \
    {                                                                                              \
        (void)self;                                                                                \
        return map(NAME##_a, theta, n, x, a);                                                      \
    }                                                                                              \
    static cgam_status NAME##_hessian(const cgam_lagr *self, const double *theta, int64_t n,       \
                                      const double *x, const double *a, const double *v,           \
                                      double *out)                                                 \
    {                                                                                              \
        (void)self, (void)a;                                                                       \
        cgam_status status = map(NAME##_h, theta, n, x, out);                                      \
        for (int64_t i = 0; i < n; i++) out[i] *= v[i];                                            \
        return status;                                                                             \
    }                                                                                              \
    static cgam_status NAME##_energy(const cgam_lagr *self, const double *theta, int64_t n,        \
                                     const double *x, const double *a, double *E)                  \
    {                                                                                              \
        (void)self, (void)a;                                                                       \
        return sum(NAME##_E, theta, n, x, E);                                                      \
    }
#define FUNCTIONS(NAME)                                                                            \
    .elementwise = true, .value = NAME##_value, .activation = NAME##_activation,                   \
    .hessian = NAME##_hessian, .energy = NAME##_energy

/* ---- identity: the quadratic Lagrangian --------------------------------------------------- */
static double identity_L(NO_THETA, double x) { return 0.5 * x * x; }
static double identity_a(NO_THETA, double x) { return x; }
static double identity_h(NO_THETA, double x __attribute__((unused))) { return 1; }
static double identity_E(NO_THETA, double x) { return 0.5 * x * x; }
ELEMENTWISE(identity)
const cgam_lagr cgam_lagr_identity = {"identity", "|x|^2 / 2", FUNCTIONS(identity)};

/* ---- relu and rectified powers ------------------------------------------------------------ */
static double relu_L(NO_THETA, double x) { return x > 0 ? 0.5 * x * x : 0; }
static double relu_a(NO_THETA, double x) { return x > 0 ? x : 0; }
static double relu_h(NO_THETA, double x) { return x > 0; }
static double relu_E(NO_THETA, double x) { return relu_L(theta, x); }
ELEMENTWISE(relu)
const cgam_lagr cgam_lagr_relu = {"relu", "|max(x, 0)|^2 / 2", FUNCTIONS(relu)};

static double power_L(const double *k, double x) { return x > 0 ? pow(x, *k) / *k : 0; }
static double power_a(const double *k, double x) { return x > 0 ? pow(x, *k - 1) : 0; }
static double power_h(const double *k, double x) { return x > 0 ? (*k - 1) * pow(x, *k - 2) : 0; }
static double power_E(const double *k, double x) { return x > 0 ? (*k - 1) / *k * pow(x, *k) : 0; }
ELEMENTWISE(power)
const cgam_lagr cgam_lagr_power = {
    "power", "sum max(x, 0)^power / power", {{"power", 3, 2, 1e3}}, FUNCTIONS(power)};

/* ---- exponentials ------------------------------------------------------------------------- */
static double exponential_L(const double *beta, double x) { return exp(*beta * x) / *beta; }
static double exponential_a(const double *beta, double x) { return exp(*beta * x); }
static double exponential_h(const double *beta, double x) { return *beta * exp(*beta * x); }
static double exponential_E(const double *beta, double x)
{
    double e = exp(*beta * x);
    return e > 0 ? (x - 1 / *beta) * e : 0; /* x may be so negative that x e would be inf * 0 */
}
ELEMENTWISE(exponential)
const cgam_lagr cgam_lagr_exponential = {
    "exponential", "sum exp(beta x) / beta", {BETA}, FUNCTIONS(exponential)};

/* e^z - 1 - z and z e^z - (e^z - 1), z >= 0, by series where they cancel: terms z^k / k! and
 * z^k (k-1) / k! from k = 2; at z = 1/2, k = 17 is below 2^-53 of the first. */
static double exp_rest(double z, bool dual)
{
    if (z >= 0.5) return dual ? z * exp(z) - expm1(z) : expm1(z) - z;
    double term = z, total = 0;
    for (int k = 2; k <= 17; k++) {
        term *= z / k;
        total += dual ? (k - 1) * term : term;
    }
    return total;
}
static double rexp_L(const double *beta, double x)
{
    return x > 0 ? exp_rest(*beta * x, false) / *beta : 0;
}
static double rexp_a(const double *beta, double x) { return x > 0 ? expm1(*beta * x) : 0; }
static double rexp_h(const double *beta, double x) { return x > 0 ? *beta * exp(*beta * x) : 0; }
static double rexp_E(const double *beta, double x)
{
    return x > 0 ? exp_rest(*beta * x, true) / *beta : 0;
}
ELEMENTWISE(rexp)
const cgam_lagr cgam_lagr_rexp = {"rectified_exponential",
                                  "sum over x > 0 of (exp(beta x) - 1) / beta - x",
                                  {BETA},
                                  FUNCTIONS(rexp)};

/* ---- tanh --------------------------------------------------------------------------------- */
/* log cosh z = |z| + log1p(exp(-2|z|)) - log 2, since cosh overflows near 710; near 0 that
 * cancels, and cosh z = 1 + 2 sinh^2(z/2) does not. */
static double log_cosh(double z)
{
    z = fabs(z);
    double half = sinh(0.5 * fmin(z, 1));
    return z < 1 ? log1p(2 * half * half) : z + log1p(exp(-2 * z)) - M_LN2;
}
static double tanh_L(const double *beta, double x) { return log_cosh(*beta * x) / *beta; }
static double tanh_a(const double *beta, double x) { return tanh(*beta * x); }
static double tanh_h(const double *beta, double x)
{
    double t = exp(-2 * fabs(*beta * x)); /* sech^2 z = 4 t / (1 + t)^2 */
    return *beta * 4 * t / ((1 + t) * (1 + t));
}
static double tanh_E(const double *beta, double x)
{
    double z = fabs(*beta * x), t = exp(-2 * z);
    if (z < 1) return (z * tanh(z) - log_cosh(z)) / *beta;
    /* z tanh z - log cosh z, with tanh z = 1 - 2t/(1+t) */
    return (M_LN2 - log1p(t) - 2 * z * t / (1 + t)) / *beta;
}
ELEMENTWISE(tanh)
const cgam_lagr cgam_lagr_tanh = {"tanh", "sum log cosh(beta x) / beta", {BETA}, FUNCTIONS(tanh)};

/* ---- sigmoid ------------------------------------------------------------------------------ */
static double sigmoid_L(const double *beta, double x)
{
    double z = *beta * x;
    return (fmax(z, 0) + log1p(exp(-fabs(z)))) / *beta;
}
static double sigmoid_a(const double *beta, double x)
{
    double z = *beta * x, t = exp(-fabs(z));
    return z >= 0 ? 1 / (1 + t) : t / (1 + t);
}
static double sigmoid_h(const double *beta, double x)
{
    double t = exp(-fabs(*beta * x));
    return *beta * t / ((1 + t) * (1 + t));
}
/* a log a + (1 - a) log(1 - a), even in x: -(log1p(t) + |z| t / (1 + t)), t = exp(-|z|) */
static double sigmoid_E(const double *beta, double x)
{
    double z = fabs(*beta * x), t = exp(-z);
    return -(log1p(t) + z * t / (1 + t)) / *beta;
}
ELEMENTWISE(sigmoid)
const cgam_lagr cgam_lagr_sigmoid = {
    "sigmoid", "sum log(1 + exp(beta x)) / beta", {BETA}, FUNCTIONS(sigmoid)};

/* ---- the table ---------------------------------------------------------------------------- */
const cgam_lagr *const cgam_lagrs[] = {
    &cgam_lagr_identity,       &cgam_lagr_softmax,     &cgam_lagr_relu,
    &cgam_lagr_power,          &cgam_lagr_exponential, &cgam_lagr_rexp,
    &cgam_lagr_tanh,           &cgam_lagr_sigmoid,     &cgam_lagr_layer_norm,
    &cgam_lagr_spherical_norm, &cgam_lagr_ghost,       &cgam_lagr_sparsemax,
    &cgam_lagr_entmax15,       &cgam_lagr_entmax,      NULL,
};

const cgam_lagr *cgam_lagr_find(const char *name)
{
    for (int i = 0; cgam_lagrs[i]; i++)
        if (strcmp(cgam_lagrs[i]->name, name) == 0) return cgam_lagrs[i];
    return NULL;
}

/* ---- a Lagrangian as a layer has it: parameters, scale, groups ------------------------------ */
static cgam_status group_energy(const cgam_lagr *l, const double *theta, int64_t n, const double *x,
                                const double *a, double *E)
{
    if (l->energy) return l->energy(l, theta, n, x, a, E);
    double L, xa = 0;
    cgam_status status = l->value(l, theta, n, x, &L);
    for (int64_t i = 0; i < n; i++) xa += x[i] * a[i];
    *E = xa - L;
    return status;
}

cgam_status cgam_lagr_use_value(const cgam_lagr_use *u, const double *x, double *L)
{
    cgam_status status = CGAM_OK;
    *L = 0;
    for (int64_t g = 0; g < u->groups && status == CGAM_OK; g++) {
        double part = 0;
        status = u->lagr->value(u->lagr, u->theta, u->width, x + g * u->width, &part);
        *L += u->scale * part;
    }
    return status;
}

cgam_status cgam_lagr_use_activate(const cgam_lagr_use *u, const double *x, double *a, double *E)
{
    cgam_status status = CGAM_OK;
    if (E) *E = 0;
    for (int64_t g = 0; g < u->groups && status == CGAM_OK; g++) {
        const double *xg = x + g * u->width;
        double *ag = a + g * u->width, part = 0;
        status = u->lagr->activation(u->lagr, u->theta, u->width, xg, ag);
        if (status == CGAM_OK && E)
            status = group_energy(u->lagr, u->theta, u->width, xg, ag, &part);
        if (E) *E += u->scale * part;
        if (u->scale != 1)
            for (int64_t i = 0; i < u->width; i++) ag[i] *= u->scale;
    }
    return status;
}

cgam_status cgam_lagr_use_hessian(const cgam_lagr_use *u, const double *x, const double *a,
                                  const double *v, double *scratch, double *out)
{
    cgam_status status = CGAM_OK;
    for (int64_t g = 0; g < u->groups && status == CGAM_OK; g++) {
        int64_t at = g * u->width;
        const double *plain = a + at;
        if (u->scale != 1) { /* the entry wants its own activation, not the scaled one */
            for (int64_t i = 0; i < u->width; i++) scratch[i] = a[at + i] / u->scale;
            plain = scratch;
        }
        status = u->lagr->hessian(u->lagr, u->theta, u->width, x + at, plain, v + at, out + at);
        if (u->scale != 1)
            for (int64_t i = 0; i < u->width; i++) out[at + i] *= u->scale;
    }
    return status;
}

cgam_status cgam_lagr_use_make(cgam_env *env, const char *where, const cgam_lagr *lagr,
                               const double *param, double scale, int64_t groups, int64_t width,
                               cgam_lagr_use *out)
{
    *out = (cgam_lagr_use){.lagr = lagr, .scale = scale, .groups = groups, .width = width};
    if (!lagr->value || !lagr->activation || !lagr->hessian)
        return cgam_fail(env, CGAM_E_ARG,
                         "%s: a Lagrangian needs value, activation and Hessian-vector product",
                         where);
    if (!(scale > 0) || !isfinite(scale))
        return cgam_fail(env, CGAM_E_ARG, "%s: scale is %g, it must be above 0", where, scale);
    for (int i = 0; i < CGAM_LAGR_PARAMS && lagr->param[i].name; i++) {
        const cgam_lagr_param *p = &lagr->param[i];
        double value = param && !isnan(param[i]) ? param[i] : p->value;
        if (!(value >= p->min && value <= p->max))
            return cgam_fail(env, CGAM_E_ARG, "%s: %s of %s is %g, it must be from %g to %g", where,
                             p->name, lagr->name ? lagr->name : "a Lagrangian", value, p->min,
                             p->max);
        out->theta[i] = value;
    }
    return CGAM_OK;
}
