/* Gradients of recalls against PyTorch's autograd through the unrolled iteration (tests/oracle/learn/generate.py). */
#include "support/one_env.h"

#include <cgam/io.h>
#include <cgam/learn.h>

enum { CASES = 7, BATCH = 3 };

static double *load(int number, const char *member)
{
    char full[512];
    cgam_array a;
    snprintf(full, sizeof full, "%s:%d/%s", check_source_path("tests/oracle/learn/cases.npz"),
             number, member);
    CHECK_STATUS(env, cgam_array_open(env, full, &a));
    double *data = dense_room(a.size);
    CHECK_STATUS(env, cgam_array_read_f64(env, &a, full, data));
    cgam_array_close(env, &a);
    return data;
}

static void check_case(int number)
{
    const double *shape = load(number, "shape"), *numbers = load(number, "numbers");
    const double *M = load(number, "M"), *target = load(number, "target");
    int64_t n = (int64_t)shape[0], d = (int64_t)shape[1], index[BATCH];
    bool by_W = shape[3] > 0;
    cgam_recall_opts o =
        object_opts(shape[2] > 0 ? CGAM_COUPLED : CGAM_FIRST, numbers[0], numbers[1], numbers[2]);
    o.tol = 1e-15;
    o.d_c = d;
    if (by_W) o.W = M;
    else o.P = M;
    cgam_bank *bank = object_bank(env, n, d, load(number, "Z"));
    cgam_recall *plan = object_recall(env, bank, &o);
    for (int k = 0; k < BATCH; k++) index[k] = (int64_t)target[k];
    double loss[BATCH], *dZ = dense_room(n * d), *dM = dense_room((by_W ? n : d) * d);
    double *dq = dense_room(BATCH * d), *dc = dense_room(BATCH * d), dnumbers[3];
    cgam_gradient_in in = {.recall = {.queries = BATCH,
                                      .q = load(number, "q"),
                                      .c = load(number, "c"),
                                      .c_per_query = true,
                                      .target = index},
                           .x = load(number, "x")};
    cgam_gradient_opts how = cgam_gradient_opts_default();
    how.loss = shape[4] > 0 ? CGAM_LOSS_READOUT : CGAM_LOSS_NLL;
    cgam_gradient out = {.loss = loss,
                         .q = dq,
                         .c = dc,
                         .P = by_W ? NULL : dM,
                         .W = by_W ? dM : NULL,
                         .Z = dZ,
                         .alpha = &dnumbers[0],
                         .beta = &dnumbers[1],
                         .lambda = &dnumbers[2]};
    CHECK_STATUS(env, cgam_recall_gradient(plan, &in, &how, &out));
    /* 400 iterations leave nothing in these cases; autograd adds up their rounding */
    CHECK_CLOSE_ALL(loss, load(number, "loss"), BATCH, 1e-12);
    CHECK_CLOSE_ALL(dZ, load(number, "dZ"), n * d, 1e-10);
    CHECK_CLOSE_ALL(dq, load(number, "dq"), BATCH * d, 1e-10);
    CHECK_CLOSE_ALL(dc, load(number, "dc"), BATCH * d, 1e-10);
    CHECK_CLOSE_ALL(dM, load(number, "dM"), (by_W ? n : d) * d, 1e-10);
    CHECK_CLOSE_ALL(dnumbers, load(number, "dnumbers"), 3, 1e-10);
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    dense_reset();
}

TEST_WITH(set_up, tear_down, gradients_are_those_of_autograd)
{
    for (int number = 0; number < CASES; number++) check_case(number);
}
