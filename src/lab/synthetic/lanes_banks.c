/* lanes_banks.c: memories of a bundle of banks, with one eigen-decomposition each, which serves every
 * alpha.
 *
 * With n > d the modes come from Z'Z = W diag(mu) W', V = Z W / sqrt(mu), and the orthogonal complement of
 * all of them is the kernel of G, one eigenspace with eta = 1 - alpha. With n <= d they come from
 * G itself and there is no complement. Modes whose mu is only rounding error belong to the kernel. */
#include "lab/synthetic/lanes_banks.h"

#include "num/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

void cgam_banks_free(cgam_banks *b)
{
    if (!b) return;
    cgam_free(b->env, b->pool);
    cgam_free(b->env, b->one);
    cgam_free(b->env, b);
}

cgam_status cgam_banks_new(cgam_env *env, int width, int64_t n, int64_t d, cgam_banks **out)
{
    *out = NULL;
    cgam_banks *b = cgam_zalloc(env, 1, sizeof *b);
    if (!b) return cgam_fail_nomem(env, "banks");
    b->env = env;
    int64_t modes = n > d ? d : n, m = (modes + CGAM_LANES_TILE - 1) / CGAM_LANES_TILE;
    m *= CGAM_LANES_TILE;
    b->g = (cgam_bundle){.env = env, .n = n, .d = d, .m = m, .kernel = n > d, .width = width};
    b->small_size = modes * modes;
    b->work_size = 40 * modes;
    int64_t count = n * d + n * m + 2 * m + 2 * n + 2 + (n > d ? d * d : 0);
    b->pool = cgam_zalloc(env, (size_t)(count * width), sizeof *b->pool);
    b->one =
        cgam_zalloc(env, (size_t)(n * d + b->small_size + b->work_size + modes), sizeof *b->one);
    if (!b->pool || !b->one) {
        cgam_banks_free(b);
        return cgam_fail_nomem(env, "banks");
    }
    double *at = b->pool;
    double **parts[] = {&b->g.Z,    &b->g.V,     &b->g.mu,   &b->g.c,
                        &b->g.rest, &b->g.start, &b->mu_min, &b->alpha_crit};
    int64_t sizes[] = {n * d, n * m, m, m, n, n, 1, 1};
    for (int k = 0; k < 8; k++) {
        *parts[k] = at;
        at += sizes[k] * width;
    }
    if (n > d) b->rotate = at;
    b->small = b->one + n * d;
    b->work = b->small + b->small_size;
    *out = b;
    return CGAM_OK;
}

void cgam_banks_share(cgam_banks *b, const double *Z)
{
    const int L = b->g.width;
    for (int64_t i = 0; i < b->g.n * b->g.d; i++)
        for (int l = 0; l < L; l++) b->g.Z[i * L + l] = Z[i];
}

enum {
    WHOLE_MAX = 256, /* the largest problem that is solved in one piece */
    ROWS_APART = 16  /* between two looks at whether to stop */
};

/* Eigenvalues into mu [k] ascending, eigenvectors into the columns of small. */
static cgam_status eigen(cgam_banks *b, int64_t k, double *mu)
{
    if (k > WHOLE_MAX) return cgam_eigen_all(b->env, k, true, b->small, mu);
    lapack_int info = LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'U', (lapack_int)k, b->small,
                                         (lapack_int)k, mu, b->work, (lapack_int)b->work_size);
    if (info == 0) return CGAM_OK;
    return cgam_fail(b->env, CGAM_E_INTERNAL, "LAPACK: dsyev failed (info = %d)", (int)info);
}

static cgam_status decompose_lane(cgam_banks *b, int lane)
{
    const int L = b->g.width;
    const int64_t n = b->g.n, d = b->g.d, m = b->g.m, k = n > d ? d : n;
    double *Z = b->one, *mu = b->work + b->work_size, *S = b->small;
    for (int64_t i = 0; i < n * d; i++) Z[i] = b->g.Z[i * L + lane];
    memset(S, 0, (size_t)(k * k) * sizeof *S);
    for (int64_t i = 0; i < n; i++) {
        if (n > d)
            for (int64_t j = 0; j < d; j++)
                for (int64_t l = 0; l <= j; l++) S[j * d + l] += Z[i * d + j] * Z[i * d + l];
        else
            for (int64_t j = 0; j <= i; j++)
                for (int64_t l = 0; l < d; l++) S[i * n + j] += Z[i * d + l] * Z[j * d + l];
        if (i % ROWS_APART == 0 && cgam_interrupted(b->env)) return CGAM_E_INTERRUPTED;
    }
    cgam_status status = eigen(b, k, mu);
    if (status != CGAM_OK) return status;
    double rounding = (double)(n > d ? n : d) * 0x1p-52 * mu[k - 1];
    for (int64_t j = 0; j < m; j++) {
        bool real = j < k && mu[j] > rounding;
        double *column = b->g.V + j * L + lane;
        b->g.mu[j * L + lane] = j >= k ? 1 : real ? mu[j] : 0;
        double scale = real ? 1 / sqrt(mu[j]) : 0;
        if (j % ROWS_APART == 0 && cgam_interrupted(b->env)) return CGAM_E_INTERRUPTED;
        for (int64_t i = 0; i < n; i++) {
            double v = 0;
            if (n > d) {
                for (int64_t l = 0; l < d && real; l++) v += Z[i * d + l] * S[j * d + l];
                v *= scale;
            } else if (j < k) {
                v = S[j * n + i];
            }
            column[i * m * L] = v;
        }
    }
    if (n > d)
        for (int64_t j = 0; j < d * d; j++) b->rotate[j * L + lane] = S[j];
    b->mu_min[lane] = n > d ? 0 : b->g.mu[lane];
    b->alpha_crit[lane] = b->mu_min[lane] < 1 ? 1 / (1 - b->mu_min[lane]) : INFINITY;
    return CGAM_OK;
}

/* Modes of the lowest eigenvalue, n <= d; with a kernel it is the rest. */
static bool lowest(const cgam_banks *b, int lane, int64_t k)
{
    return !b->g.kernel && k < b->g.n && b->g.mu[k * b->g.width + lane] <= b->mu_min[lane] + 1e-9;
}

/* An input orthogonal to the modes that grow first must not excite them by its rounding: what is
 * left of it there is then zero, and nobody wins. */
static void drop_rounding(cgam_banks *b, int lane, double size)
{
    const int L = b->g.width;
    double left = 0;
    for (int64_t i = 0; i < b->g.n && b->g.kernel; i++)
        left += b->g.rest[i * L + lane] * b->g.rest[i * L + lane];
    for (int64_t k = 0; k < b->g.m; k++)
        if (lowest(b, lane, k)) left += b->g.c[k * L + lane] * b->g.c[k * L + lane];
    if (left > 1e-26 * size) return;
    for (int64_t i = 0; i < b->g.n; i++) b->g.rest[i * L + lane] = 0;
    for (int64_t k = 0; k < b->g.m; k++)
        if (lowest(b, lane, k)) b->g.c[k * L + lane] = 0;
}

cgam_status cgam_banks_decompose(cgam_banks *b, const double *u)
{
    const int L = b->g.width;
    const int64_t n = b->g.n, m = b->g.m;
    const double even = 1 / (double)n;
    cgam_status status = CGAM_OK;
    for (int l = 0; l < L && status == CGAM_OK; l++) {
        status = decompose_lane(b, l);
        double size = 0;
        for (int64_t k = 0; k < m; k++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += b->g.V[(i * m + k) * L + l] * (u ? u[i * L + l] : even);
            b->g.c[k * L + l] = sum;
        }
        for (int64_t i = 0; i < n; i++) {
            double x = u ? u[i * L + l] : even, rest = x;
            for (int64_t k = 0; k < m; k++) rest -= b->g.V[(i * m + k) * L + l] * b->g.c[k * L + l];
            b->g.rest[i * L + l] = b->g.kernel ? rest : 0;
            size += x * x;
        }
        drop_rounding(b, l, size);
    }
    return status;
}

void cgam_banks_lead(const cgam_banks *b, double *gap)
{
    const int L = b->g.width;
    const int64_t n = b->g.n, m = b->g.m;
    for (int l = 0; l < L; l++) {
        double first = -INFINITY, second = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            double x = b->g.rest[i * L + l];
            for (int64_t k = 0; k < m; k++)
                if (lowest(b, l, k)) x += b->g.V[(i * m + k) * L + l] * b->g.c[k * L + l];
            if (x > first) {
                second = first;
                first = x;
            } else if (x > second) {
                second = x;
            }
        }
        gap[l] = n > 1 ? first - second : 0;
    }
}

bool cgam_banks_subcritical(const cgam_banks *b, int lane, double alpha)
{
    return alpha < b->alpha_crit[lane] * (1 - 1e-9);
}

/* exp(-shift) (1 - exp(-eta t)) / eta, which is t at eta = 0. */
static double growth(double eta, double t, double shift)
{
    double z = -eta * t;
    if (fabs(z) < 1e-8) return t * (1 + 0.5 * z) * exp(-shift);
    if (z > 30) return (exp(z - shift) - exp(-shift)) / -eta; /* expm1 might overflow */
    return -expm1(z) / eta * exp(-shift);
}

void cgam_banks_weights(const cgam_banks *b, double alpha, const double *t, double *f, double *f0,
                        double *scale)
{
    const int L = b->g.width;
    for (int l = 0; l < L; l++) {
        bool still = cgam_banks_subcritical(b, l, alpha);
        double fastest = (alpha * (1 - b->mu_min[l]) - 1) * t[l];
        double shift = !still && fastest > 600 ? fastest - 600 : 0;
        for (int64_t k = 0; k < b->g.m; k++) {
            double eta = 1 - alpha * (1 - b->g.mu[k * L + l]);
            f[k * L + l] = still ? 1 / eta : growth(eta, t[l], shift);
        }
        f0[l] = still ? 1 / (1 - alpha) : growth(1 - alpha, t[l], shift);
        if (!b->g.kernel) f0[l] = 0;
        scale[l] = shift > 709 ? DBL_MAX : exp(shift);
    }
}

double cgam_banks_energy(const cgam_banks *banks, int lane, double alpha, double beta,
                         double lambda, const double *s, const double *r, const double *p,
                         const double *b)
{
    const cgam_bundle *g = &banks->g;
    const int L = g->width;
    double E = 0, all = 0, top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < g->m; k++) {
        double a = 0;
        for (int64_t i = 0; i < g->n; i++) a += g->V[(i * g->m + k) * L + lane] * s[i * L + lane];
        /* A is 1 - alpha on everything, and alpha mu more on mode k */
        E += 0.5 * alpha * g->mu[k * L + lane] * a * a - g->c[k * L + lane] * a;
    }
    for (int64_t i = 0; i < g->n; i++) {
        double x = s[i * L + lane];
        all += x * x;
        E -= g->rest[i * L + lane] * x;
    }
    E += 0.5 * (1 - alpha) * all;
    if (!r) return E;
    for (int64_t i = 0; i < g->n; i++) top = fmax(top, r[i * L + lane]);
    for (int64_t i = 0; i < g->n; i++) {
        double q = b ? b[i * L + lane] : 0;
        sum += exp(beta * (r[i * L + lane] - top));
        E += p[i * L + lane] * (r[i * L + lane] - top - lambda * s[i * L + lane] - q);
    }
    return E - log(sum) / beta; /* p'r - lse = p'(r - top) - log sum / beta */
}
