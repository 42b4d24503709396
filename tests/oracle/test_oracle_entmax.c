/* Entmax and sparse coupled recall against SciPy (tests/oracle/entmax/generate.py). */
#include "support/one_env.h"

#include "num/entmax.h"

#include <cgam/io.h>

static double *load(const char *member, int64_t *rows, int64_t *columns)
{
    char full[512];
    cgam_array a;
    snprintf(full, sizeof full, "%s:%s", check_source_path("tests/oracle/entmax/cases.npz"),
             member);
    CHECK_STATUS(env, cgam_array_open(env, full, &a));
    *rows = a.shape[0];
    *columns = a.ndim > 1 ? a.shape[1] : 1;
    double *data = dense_room(a.size);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, full, data));
    cgam_array_close(env, &a);
    return data;
}

TEST_WITH(set_up, tear_down, weights_are_those_of_scipy)
{
    int64_t rows, n, one;
    const double *order = load("order", &rows, &one), *z = load("z", &rows, &n);
    const double *want = load("p", &rows, &n);
    assert_int_equal(rows, 60);
    for (int64_t k = 0; k < rows; k++) {
        cgam_entmax e = cgam_entmax_of(order[k], 1, n, z + k * n);
        double size = fabs(e.top); /* SciPy's (A - 1) z - tau has the rounding of z itself */
        for (int64_t i = 0; i < n; i++)
            CHECK_CLOSE(cgam_entmax_weight(&e, z[k * n + i]), want[k * n + i],
                        4e-15 * (1 + size) / (order[k] - 1));
    }
    dense_reset();
}

TEST_WITH(set_up, tear_down, a_coupled_recall_is_that_of_numpy)
{
    int64_t n, d, one, orders;
    const double *Z = load("Z", &n, &d), *q = load("q", &one, &one), *c = load("c", &one, &one);
    const double *x = load("parameters", &one, &one), *order = load("orders", &orders, &one);
    const double *want = load("fixed", &orders, &n);
    double *p = dense_room(n);
    int64_t memories = n;
    cgam_bank *bank = object_bank(env, memories, d, Z);
    for (int64_t k = 0; k < orders; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, x[0], x[1], x[2]);
        cgam_result result;
        cgam_recall_in in = {.queries = 1, .q = q, .c = c};
        cgam_recall_out out = {.results = &result, .p = p};
        o.entmax = order[k];
        cgam_recall *plan = object_recall(env, bank, &o);
        CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
        assert_true(result.unique == 1 && result.p_error_proved);
        CHECK_CLOSE_ALL(p, want + k * memories, memories, 1e-11);
        cgam_recall_free(plan);
    }
    cgam_bank_free(bank);
    dense_reset();
}
