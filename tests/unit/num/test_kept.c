/* Factors that were kept: they solve as those they came from do, and whatever of them memory is addressed by is looked at. */
#include "support/one_env.h"

#include "num/dplr.h"

#include "support/owned.h"

typedef struct kept_case {
    cgam_rows rows;
    double *Z, *norm2, *D;
    cgam_dplr_spec spec;
    cgam_dplr *T;
    cgam_dplr_inverse *M;
} kept_case;

/* A border of three where n > d. */
static void make(kept_case *x, int64_t n, int64_t d)
{
    cgam_rng rng = cgam_rng_stream(51, (uint64_t)n);
    *x = (kept_case){
        .Z = dense_bank(&rng, DENSE_UNIT, n, d), .norm2 = dense_room(n), .D = dense_room(n)};
    x->rows = (cgam_rows){x->Z, CGAM_F64, n, d, d, NULL, cgam_cpu_best(), NULL};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < d; j++) x->norm2[i] += x->Z[i * d + j] * x->Z[i * d + j];
        x->D[i] = i % 9 == 4 ? 0 : 1;
    }
    x->spec = (cgam_dplr_spec){&x->rows, x->norm2, x->D, 0.3, NULL, 0, 0, NULL};
    CHECK_STATUS(env, cgam_dplr_new(env, &x->spec, &x->T));
    if (!cgam_dplr_dense(x->T)) CHECK_STATUS(env, cgam_dplr_inverse_new(x->T, &x->M));
}

static void done(kept_case *x)
{
    cgam_dplr_inverse_free(x->M);
    cgam_dplr_free(x->T);
    dense_reset();
}

TEST(what_is_restored_solves_alike)
{
    static const int64_t sizes[][2] = {{27, 24}, {6, 9}};
    for (int k = 0; k < 2; k++) {
        kept_case x;
        int64_t n = sizes[k][0], m;
        make(&x, n, sizes[k][1]);
        cgam_rng rng = cgam_rng_stream(52, 0);
        double *f = dense_normals(&rng, n, 1), *y = dense_room(n), *z = dense_room(n);
        cgam_dplr_kept kept = cgam_dplr_keep_as(x.T, x.M);
        cgam_dplr *T;
        cgam_dplr_inverse *M;
        CHECK_STATUS(env, cgam_dplr_restore(env, &x.spec, &kept, &T, &M));
        CHECK_STATUS(env, cgam_dplr_solve(x.T, f, y, NULL));
        CHECK_STATUS(env, cgam_dplr_solve(T, f, z, NULL));
        assert_memory_equal(y, z, (size_t)n * sizeof *y);
        assert_int_equal(cgam_dplr_negative(T), cgam_dplr_negative(x.T));
        assert_int_equal(cgam_dplr_singular(T), cgam_dplr_singular(x.T));
        assert_int_equal(cgam_dplr_dense(T), k == 1);
        m = cgam_dplr_border(T, NULL);
        assert_int_equal(m, k ? 0 : 3);
        assert_int_equal(M != NULL, k == 0);
        if (M) { /* and bounds what it says of its own rounding */
            double off, edge, want, want_edge;
            CHECK_STATUS(env, cgam_dplr_prove_gain(x.T));
            CHECK_STATUS(env, cgam_dplr_range_off(x.T, f, 0, f, f, &want, &want_edge));
            kept = cgam_dplr_keep_as(x.T, x.M);
            cgam_dplr_inverse_free(M);
            cgam_dplr_free(T);
            CHECK_STATUS(env, cgam_dplr_restore(env, &x.spec, &kept, &T, &M));
            CHECK_STATUS(env, cgam_dplr_range_off(T, f, 0, f, f, &off, &edge));
            assert_true(off == want && edge == want_edge && isfinite(off));
            assert_true(cgam_dplr_pivot_off(T) == cgam_dplr_pivot_off(x.T));
            assert_true(cgam_dplr_solve_gain(T) == cgam_dplr_solve_gain(x.T));
        }
        cgam_dplr_inverse_free(M);
        cgam_dplr_free(T);
        done(&x);
    }
}

static void refused(const kept_case *x, const cgam_dplr_kept *kept)
{
    cgam_dplr *T;
    cgam_dplr_inverse *M;
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_dplr_restore(env, &x->spec, kept, &T, &M));
    assert_true(T == NULL && M == NULL);
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_dplr_restore(env, &x->spec, kept, &T, NULL));
}

TEST(what_does_not_fit_is_refused)
{
    kept_case x;
    make(&x, 27, 24);
    const cgam_dplr_kept whole = cgam_dplr_keep_as(x.T, x.M);
    assert_int_equal(whole.edge, 3);
    static const int64_t borders[][3] = {
        {-1, 13, 22}, {4, 13, 27}, {4, 4, 22}, {13, 4, 22}, {4, 22, 22}};
    for (int k = 0; k < 5; k++) {
        cgam_dplr_kept kept = whole;
        kept.border = borders[k];
        refused(&x, &kept);
    }
    /* pivots: rows from 1 to size, negative ones twice in a row */
    int32_t pivots[27];
    static const int32_t bad[] = {0, 28, -28, INT32_MIN};
    for (int k = 0; k < 4 + 3; k++) {
        cgam_dplr_kept kept = whole;
        for (int j = 0; j < 27; j++) pivots[j] = j + 1;
        if (k < 4) pivots[5] = pivots[6] = bad[k];
        if (k == 4) pivots[5] = -6;                            /* alone */
        if (k == 5) pivots[26] = -3;                           /* the last, alone */
        if (k == 6) pivots[24] = pivots[25] = pivots[26] = -3; /* one and a half pairs */
        kept.pivots = pivots;
        refused(&x, &kept);
    }
    for (int k = 0; k < 12; k++) {
        cgam_dplr_kept kept = whole;
        if (k == 0) kept.n = 26;
        if (k == 1) kept.size = 26;
        if (k == 2) kept.edge = 2;
        if (k == 3) kept.edge = -1, kept.size = 23;
        if (k == 4) kept.edge = 25, kept.size = 49;
        if (k == 5) kept.border = NULL;
        if (k == 6) kept.K = NULL;
        if (k == 7) kept.D = NULL;
        if (k == 8) kept.dinv = NULL;
        if (k == 9) kept.pivots = NULL;
        if (k == 10) kept.blocks--;
        if (k == 11) kept.blocks++;
        OWNED(cgam_dplr) T = NULL;
        cgam_dplr_inverse *M;
        CHECK_FAILS(env, CGAM_E_FORMAT, cgam_dplr_restore(env, &x.spec, &kept, &T, &M));
        assert_true(T == NULL && M == NULL);
    }
    for (int k = 0; k < CGAM_DPLR_SCALARS;
         k++) { /* a, dense or not, and a count of at most n are looked at */
        cgam_dplr_kept kept = whole;
        OWNED(cgam_dplr) T = NULL;
        kept.scalars[k] = 28;
        cgam_status status = cgam_dplr_restore(env, &x.spec, &kept, &T, NULL);
        assert_int_equal(status == CGAM_OK, T != NULL);
    }
    cgam_dplr_spec other = x.spec;
    cgam_dplr *T;
    other.a = 0.25;
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_dplr_restore(env, &other, &whole, &T, NULL));
    done(&x);
    make(&x, 6, 9); /* as a matrix there is no border */
    cgam_dplr_kept kept = cgam_dplr_keep_as(x.T, NULL);
    kept.edge = 1;
    kept.border = borders[1];
    kept.size = 7;
    refused(&x, &kept);
    done(&x);
}

TEST_GROUP(set_up, tear_down)
