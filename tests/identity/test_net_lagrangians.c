/* Every Lagrangian of the table: its activation is its gradient, its Hessian is symmetric and
 * positive semidefinite, its energy is its Legendre dual, and none of them loses digits or
 * overflows up to |beta x| = 1e6 (the exponentials say so with a status). */
#include "unit/net/nets.h"

#include "num/cpu/widen.h"

#include <float.h>

enum { N = 7 };

static void defaults(const cgam_lagr *l, double beta, double *theta)
{
    for (int i = 0; i < CGAM_LAGR_PARAMS && l->param[i].name; i++) {
        theta[i] = l->param[i].value;
        if (!strcmp(l->param[i].name, "beta")) theta[i] = beta;
        if (!strcmp(l->param[i].name, "delta")) theta[i] = 0.3;
    }
}

static bool grows(const cgam_lagr *l)
{
    return !strcmp(l->name, "exponential") || !strcmp(l->name, "rectified_exponential");
}

/* The point as it would come out of a file of this type. */
static void through_storage(cgam_dtype dtype, int64_t n, double *x)
{
    double stored[N];
    cgam_narrow(dtype, x, n, stored);
    cgam_widen(dtype, stored, n, x);
}

static double value_at(const cgam_lagr *l, const double *theta, const double *x, int j, double h)
{
    double y[N], L;
    memcpy(y, x, sizeof y);
    y[j] += h;
    assert_int_equal(l->value(l, theta, N, y, &L), CGAM_OK);
    return L;
}

TEST(activation_is_the_gradient)
{
    uint64_t seed = 1;
    const double scales[] = {1e-3, 1, 30};
    for (int t = 0; cgam_lagrs[t]; t++) {
        const cgam_lagr *l = cgam_lagrs[t];
        for (int s = 0; s < 3; s++) {
            for (cgam_dtype dtype = CGAM_F64; dtype <= CGAM_BF16; dtype++) {
                double theta[CGAM_LAGR_PARAMS], x[N], a[N];
                defaults(l, 0.7, theta);
                normals(&seed, scales[s], N, x);
                through_storage(dtype, N, x);
                assert_int_equal(l->activation(l, theta, N, x, a), CGAM_OK);
                for (int j = 0; j < N; j++) {
                    /* a step across a kink is not a difference of one branch */
                    double h = 1e-4 * fmin(fmax(fabs(x[j]), 1e-3), 1);
                    double up = value_at(l, theta, x, j, h), down = value_at(l, theta, x, j, -h);
                    /* rounding of L over h, and h^2 times third derivatives, which for the
                     * exponentials are of the size of a itself and for norms of 1/epsilon */
                    double allowed = 8 * DBL_EPSILON * fmax(fabs(up), 1e-300) / h +
                                     1e-7 * (fabs(a[j]) + fmin(scales[s], 1));
                    CHECK_CLOSE((up - down) / (2 * h), a[j], allowed);
                }
            }
        }
    }
}

TEST(hessian_is_the_derivative_symmetric_and_positive)
{
    uint64_t seed = 2;
    for (int t = 0; cgam_lagrs[t]; t++) {
        const cgam_lagr *l = cgam_lagrs[t];
        for (int round = 0; round < 40; round++) {
            double theta[CGAM_LAGR_PARAMS], x[N], a[N], v[N], w[N], Hv[N], Hw[N], up[N], down[N];
            defaults(l, 0.4 + uniform(&seed), theta);
            normals(&seed, round < 20 ? 1 : 5, N, x);
            normals(&seed, 1, N, v);
            normals(&seed, 1, N, w);
            assert_int_equal(l->activation(l, theta, N, x, a), CGAM_OK);
            assert_int_equal(l->hessian(l, theta, N, x, a, v, Hv), CGAM_OK);
            assert_int_equal(l->hessian(l, theta, N, x, a, w, Hw), CGAM_OK);
            double size = sqrt(dot(N, Hv, Hv)) + sqrt(dot(N, Hw, Hw));
            CHECK_CLOSE(dot(N, v, Hw), dot(N, w, Hv), 1e-13 * (1 + size) * N);
            CHECK_LE(-1e-15 * (1 + size), dot(N, v, Hv));
            double h = 1e-6, y[N];
            for (int j = 0; j < N; j++) y[j] = x[j] + h * v[j];
            assert_int_equal(l->activation(l, theta, N, y, up), CGAM_OK);
            for (int j = 0; j < N; j++) y[j] = x[j] - h * v[j];
            assert_int_equal(l->activation(l, theta, N, y, down), CGAM_OK);
            for (int j = 0; j < N; j++)
                CHECK_CLOSE((up[j] - down[j]) / (2 * h), Hv[j], 1e-7 * (1 + size + fabs(a[j])));
        }
    }
}

TEST(energy_is_the_legendre_dual)
{
    uint64_t seed = 3;
    for (int t = 0; cgam_lagrs[t]; t++) {
        const cgam_lagr *l = cgam_lagrs[t];
        for (int round = 0; round < 40; round++) {
            double theta[CGAM_LAGR_PARAMS], x[N], a[N], v[N], Hv[N], E, L;
            defaults(l, 0.4 + uniform(&seed), theta);
            normals(&seed, round % 2 ? 1 : 4, N, x);
            assert_int_equal(l->activation(l, theta, N, x, a), CGAM_OK);
            assert_int_equal(l->value(l, theta, N, x, &L), CGAM_OK);
            assert_int_equal(l->energy(l, theta, N, x, a, &E), CGAM_OK);
            CHECK_CLOSE(E, dot(N, x, a) - L, 1e-13 * (fabs(dot(N, x, a)) + fabs(L) + 1));
            /* it is the largest <y, a> - L(y) over all y */
            for (int k = 0; k < 10; k++) {
                double y[N], Ly;
                for (int j = 0; j < N; j++) y[j] = x[j] + normal(&seed);
                assert_int_equal(l->value(l, theta, N, y, &Ly), CGAM_OK);
                CHECK_LE(dot(N, y, a) - Ly, E + 1e-12 * (fabs(E) + fabs(Ly) + 1));
            }
            /* and dE = <x, da> */
            double h = 1e-6, y[N], b[N], up, down;
            normals(&seed, 1, N, v);
            assert_int_equal(l->hessian(l, theta, N, x, a, v, Hv), CGAM_OK);
            for (int j = 0; j < N; j++) y[j] = x[j] + h * v[j];
            assert_int_equal(l->activation(l, theta, N, y, b), CGAM_OK);
            assert_int_equal(l->energy(l, theta, N, y, b, &up), CGAM_OK);
            for (int j = 0; j < N; j++) y[j] = x[j] - h * v[j];
            assert_int_equal(l->activation(l, theta, N, y, b), CGAM_OK);
            assert_int_equal(l->energy(l, theta, N, y, b, &down), CGAM_OK);
            CHECK_CLOSE((up - down) / (2 * h), dot(N, x, Hv),
                        1e-7 * (1 + fabs(E) + fabs(dot(N, x, Hv))));
        }
    }
}

/* ---- digits at the ends of the range, against long double ---------------------------------- */
static long double log_cosh_l(long double z)
{
    z = fabsl(z);
    return z < 1 ? log1pl(2 * sinhl(z / 2) * sinhl(z / 2)) : z + log1pl(expl(-2 * z)) - logl(2.0L);
}

TEST(tanh_and_sigmoid_keep_their_digits)
{
    const cgam_lagr *h = cgam_lagr_find("tanh"), *g = cgam_lagr_find("sigmoid");
    const double zs[] = {1e-8, 1e-4, 0.1, 0.99, 1.01, 3, 20, 400, 1e4, 1e6};
    for (size_t i = 0; i < sizeof zs / sizeof *zs; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            double theta[] = {2}, x = sign * zs[i] / 2, a, L, E, v = 1, H;
            long double z = (long double)theta[0] * x, y = fabsl(z);
            assert_int_equal(h->value(h, theta, 1, &x, &L), CGAM_OK);
            assert_int_equal(h->activation(h, theta, 1, &x, &a), CGAM_OK);
            assert_int_equal(h->energy(h, theta, 1, &x, &a, &E), CGAM_OK);
            assert_int_equal(h->hessian(h, theta, 1, &x, &a, &v, &H), CGAM_OK);
            CHECK_REL(L, (double)(log_cosh_l(z) / 2), 4e-16);
            CHECK_REL(a, (double)tanhl(z), 4e-16);
            CHECK_REL(H, (double)(2 * 4 * expl(-2 * y) / powl(1 + expl(-2 * y), 2)), 1e-15);
            /* the difference itself, with 64 bits: at 1e6 it has 44 of them left */
            long double dual = z * tanhl(z) - log_cosh_l(z);
            if (y > 30) dual = logl(2.0L) - 2 * y * expl(-2 * y);
            CHECK_REL(E, (double)(dual / 2), 1e-15);
            assert_int_equal(g->value(g, theta, 1, &x, &L), CGAM_OK);
            assert_int_equal(g->activation(g, theta, 1, &x, &a), CGAM_OK);
            assert_int_equal(g->energy(g, theta, 1, &x, &a, &E), CGAM_OK);
            long double plus = (z > 0 ? z : 0) + log1pl(expl(-y));
            CHECK_REL(L, (double)(plus / 2), 4e-16);
            CHECK_REL(a, (double)(z > 0 ? 1 / (1 + expl(-z)) : expl(z) / (1 + expl(z))), 1e-15);
            CHECK_REL(E, (double)(-(log1pl(expl(-y)) + y * expl(-y) / (1 + expl(-y))) / 2), 1e-15);
        }
    }
}

TEST(softmax_keeps_its_digits_at_a_million)
{
    const cgam_lagr *l = cgam_lagr_find("softmax");
    for (double gap = 1; gap < 700; gap *= 3) {
        /* three scores at 1e6, apart by gap / beta in all */
        double theta[] = {4}, x[] = {250000, 250000 - gap / 8, 250000 - gap / 4};
        double a[3], L, E, v[] = {1, 0, 0}, H[3];
        long double w1 = expl(4.0L * ((long double)x[1] - x[0]));
        long double w2 = expl(4.0L * ((long double)x[2] - x[0])), sum = 1 + w1 + w2;
        assert_int_equal(l->value(l, theta, 3, x, &L), CGAM_OK);
        assert_int_equal(l->activation(l, theta, 3, x, a), CGAM_OK);
        assert_int_equal(l->energy(l, theta, 3, x, a, &E), CGAM_OK);
        assert_int_equal(l->hessian(l, theta, 3, x, a, v, H), CGAM_OK);
        CHECK_REL(L, (double)(x[0] + log1pl(w1 + w2) / 4), 4e-16);
        CHECK_REL(a[2], (double)(w2 / sum), 2e-15 * gap);
        long double mean =
            (w1 * ((long double)x[1] - x[0]) + w2 * ((long double)x[2] - x[0])) / sum;
        CHECK_REL(E, (double)(mean - log1pl(w1 + w2) / 4), 2e-15 * gap);
        /* beta p (1 - p), where 1 - p would be 0 for the leader */
        CHECK_REL(H[0], (double)(4 * (w1 + w2) / (sum * sum)), 2e-15 * gap);
    }
}

TEST(ghost_softmax_is_softmax_with_one_more_zero)
{
    const cgam_lagr *g = cgam_lagr_find("ghost_softmax"), *l = cgam_lagr_find("softmax");
    uint64_t seed = 5;
    const double sizes[] = {1e-3, 1, 20, 1e5};
    for (int s = 0; s < 4; s++) {
        for (int round = 0; round < 50; round++) {
            double theta[] = {3}, x[N + 1], a[N], b[N + 1], v[N + 1], Hg[N], Hl[N + 1], Lg, Ll, Eg,
                   El;
            normals(&seed, sizes[s], N, x);
            normals(&seed, 1, N, v);
            x[N] = v[N] = 0;
            if (round % 2)
                for (int j = 0; j < N; j++) x[j] = -fabs(x[j]);
            assert_int_equal(g->value(g, theta, N, x, &Lg), CGAM_OK);
            assert_int_equal(l->value(l, theta, N + 1, x, &Ll), CGAM_OK);
            assert_int_equal(g->activation(g, theta, N, x, a), CGAM_OK);
            assert_int_equal(l->activation(l, theta, N + 1, x, b), CGAM_OK);
            assert_int_equal(g->energy(g, theta, N, x, a, &Eg), CGAM_OK);
            assert_int_equal(l->energy(l, theta, N + 1, x, b, &El), CGAM_OK);
            assert_int_equal(g->hessian(g, theta, N, x, a, v, Hg), CGAM_OK);
            assert_int_equal(l->hessian(l, theta, N + 1, x, b, v, Hl), CGAM_OK);
            CHECK_REL(Lg, Ll, 1e-15);
            CHECK_CLOSE_ALL(a, b, N, 1e-15);
            CHECK_CLOSE(Eg, El, 2e-15 * (1 + fabs(El)));
            CHECK_CLOSE_ALL(Hg, Hl, N, 1e-14);
        }
    }
}

TEST(nothing_overflows_at_a_million_but_the_exponentials_say_so)
{
    uint64_t seed = 6;
    for (int t = 0; cgam_lagrs[t]; t++) {
        const cgam_lagr *l = cgam_lagrs[t];
        for (double beta = 1e-3; beta <= 1e4; beta *= 10) {
            double theta[CGAM_LAGR_PARAMS], x[N], a[N], v[N], H[N], L, E;
            defaults(l, beta, theta);
            normals(&seed, 1, N, x);
            normals(&seed, 1, N, v);
            for (int j = 0; j < N; j++) x[j] *= 1e6 / beta / fabs(x[j]);
            x[0] = 1e6 / beta;
            cgam_status want = grows(l) ? CGAM_E_VALUE : CGAM_OK;
            assert_int_equal(l->value(l, theta, N, x, &L), want);
            assert_int_equal(l->activation(l, theta, N, x, a), want);
            if (want != CGAM_OK) continue;
            assert_int_equal(l->energy(l, theta, N, x, a, &E), CGAM_OK);
            assert_int_equal(l->hessian(l, theta, N, x, a, v, H), CGAM_OK);
            assert_true(isfinite(L) && isfinite(E));
            for (int j = 0; j < N; j++) assert_true(isfinite(a[j]) && isfinite(H[j]));
        }
    }
}

TEST(rectified_exponential_keeps_its_digits_near_zero)
{
    const cgam_lagr *l = cgam_lagr_find("rectified_exponential");
    for (double z = 1e-9; z < 100; z *= 2.3) {
        double theta[] = {1}, a, L, E;
        assert_int_equal(l->value(l, theta, 1, &z, &L), CGAM_OK);
        assert_int_equal(l->activation(l, theta, 1, &z, &a), CGAM_OK);
        assert_int_equal(l->energy(l, theta, 1, &z, &a, &E), CGAM_OK);
        /* leading terms z^2 / 2 and z^2 / 2 + z^3 / 3 where long double has no digits left */
        long double y = z;
        long double want_L =
            z < 1e-4 ? y * y / 2 + y * y * y / 6 + y * y * y * y / 24 : expm1l(y) - y;
        long double want_E =
            z < 1e-4 ? y * y / 2 + y * y * y / 3 + y * y * y * y / 8 : y * expl(y) - expm1l(y);
        CHECK_REL(L, (double)want_L, 1e-14);
        CHECK_REL(E, (double)want_E, 1e-14);
    }
}

TEST(a_table_entry_is_found_by_its_name)
{
    for (int t = 0; cgam_lagrs[t]; t++)
        assert_ptr_equal(cgam_lagr_find(cgam_lagrs[t]->name), cgam_lagrs[t]);
    assert_null(cgam_lagr_find("no such thing"));
}
