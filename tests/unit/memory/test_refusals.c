/* What banks, gates, recalls and theory functions do not take is refused with the numbers in the message; and those functions
 * that look further than a recall - landscapes, maps, explanations, networks - give back what they had when memory ends or a
 * stop is wished. */
#include "lab/map.h"
#include "memory/certify.h"
#include "memory/explain.h"
#include "memory/gate.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"
#include "support/one_env.h"

#include <cgam/flow.h>
#include <cgam/recall.h>
#include <cgam/theory.h>

#include "support/owned.h"

/* Four unit memories in three dimensions, two of them near each other. */
static const double Z[] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0.6, 0.8};
static const double q[] = {0.4, 0.3, 0.2}, c[] = {0.1, 0.2, -0.3}, b[] = {0.1, 0.2, 0.3, 0.4};
enum { N = 4, D = 3 };

static cgam_bank *bank_of(void) { return object_bank(env, N, D, Z); }

/* ---- refusals --------------------------------------------------------------------------------- */
TEST_WITH(set_up, tear_down, banks_that_cannot_be_are_refused)
{
    cgam_bank *bank;
    const double nan[] = {0, NAN}, inf[] = {-INFINITY, 1}, up[] = {1, INFINITY};
    const double huge[] = {1e160, 0}, large[] = {1e151, 0}, small[] = {1e-155, 0};
    const struct {
        const double *rows;
        cgam_dtype dtype;
        int64_t n, d;
        cgam_bank_opts opts;
        cgam_status status;
        const char *message;
    } wrong[] = {
        {Z, CGAM_I64, 1, 2, {0}, CGAM_E_ARG, "a bank cannot hold i64"},
        {Z, CGAM_F64, 0, 2, {0}, CGAM_E_SHAPE, "a bank of 0 x 2 holds no memory"},
        {Z, CGAM_F64, 2, 0, {0}, CGAM_E_SHAPE, "a bank of 2 x 0 holds no memory"},
        {Z, CGAM_F64, 1, INT32_MAX, {0}, CGAM_E_SHAPE, "too many columns, 2147483647"},
        {Z, CGAM_F64, 1, 3, {.stride = 2}, CGAM_E_ARG, "stride 2 is less than d = 3"},
        {nan, CGAM_F64, 1, 2, {0}, CGAM_E_VALUE, "nan at row 0, column 1"},
        {inf, CGAM_F64, 1, 2, {0}, CGAM_E_VALUE, "-inf at row 0, column 0"},
        {up, CGAM_F64, 1, 2, {0}, CGAM_E_VALUE, "bank: inf at row 0, column 1"},
        {huge, CGAM_F64, 1, 2, {0}, CGAM_E_VALUE, "row 0: the squared norm overflows"},
        {large, CGAM_F64, 1, 2, {0}, CGAM_E_VALUE, "the longest memory has norm 1e+151"},
        {small, CGAM_F64, 1, 2, {0}, CGAM_E_VALUE, "the longest memory has norm 1e-155"},
        {small, CGAM_F64, 1, 2, {.normalize = true}, CGAM_E_VALUE, "row 0 is too short to"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_REFUSED(env, wrong[i].status, wrong[i].message,
                      cgam_bank_new(env, wrong[i].rows, wrong[i].dtype, wrong[i].n, wrong[i].d,
                                    &wrong[i].opts, &bank));
        assert_null(bank);
    }
    double row[D];
    const uint64_t none[] = {0};
    cgam_bank *some;
    bank = bank_of();
    CHECK_FAILS(env, CGAM_E_ARG, cgam_bank_row(bank, -1, row));
    CHECK_REFUSED(env, CGAM_E_ARG, "no memory 4", cgam_bank_row(bank, N, row));
    CHECK_REFUSED(env, CGAM_E_ARG, "none of the 4 memories", cgam_bank_only(bank, none, &some));
    cgam_bank_free(bank);
    cgam_bank_free(NULL);
}

/* Zeros replaced by the defaults, so that a row below names what differs. */
static cgam_recall_opts filled(cgam_recall_opts o)
{
    const cgam_recall_opts usual = cgam_recall_opts_default();
    if (o.beta == 0) o.beta = usual.beta;
    if (o.lambda == 0) o.lambda = usual.lambda;
    if (o.tol == 0) o.tol = usual.tol;
    if (o.max_iter == 0) o.max_iter = usual.max_iter;
    if (o.beta_start == 0) o.beta_start = usual.beta_start;
    return o;
}

static cgam_recall *plan_of(const cgam_bank *bank, cgam_recall_opts o)
{
    o = filled(o);
    return object_recall(env, bank, &o);
}

TEST_WITH(set_up, tear_down, recalls_that_cannot_be_are_refused)
{
    cgam_bank *bank = bank_of(), *other = bank_of();
    cgam_gate *gate, *foreign;
    cgam_recall *plan;
    CHECK_STATUS(env, cgam_gate_new(bank, 0.2, NULL, &gate));
    CHECK_STATUS(env, cgam_gate_new(other, 0.2, NULL, &foreign));
    const struct {
        cgam_recall_opts opts;
        const char *message;
    } wrong[] = {
        {{.alpha = -1}, "alpha is -1"},
        {{.alpha = INFINITY}, "alpha is inf"},
        {{.beta = -1}, "beta is -1"},
        {{.beta = INFINITY}, "beta is inf"},
        {{.lambda = -1}, "lambda is -1"},
        {{.lambda = INFINITY}, "lambda is inf"},
        {{.lambda = 1e200}, "lambda^2 beta leaves the range"},
        {{.lambda = 1e280, .beta = 1e-300}, "lambda^2 beta leaves the range"},
        {{.lambda = 1e-200, .beta = 1e280}, "lambda^2 beta leaves the range"},
        {{.entmax = 1}, "the order of entmax is 1"},
        {{.entmax = 2.5}, "the order of entmax is 2.5"},
        {{.entmax = 1.5, .fast = true}, "fast requires activation softmax"},
        {{.entmax = 1.5, .none = true}, "none requires activation softmax"},
        {{.tol = -1}, "tol is -1"},
        {{.mode = (cgam_mode)(CGAM_ANNEAL + 1)}, "invalid mode 4"},
        {{.max_iter = -1}, "max-iter is -1"},
        {{.fast = true, .mode = CGAM_COUPLED}, "fast requires mode first: mode coupled"},
        {{.none = true, .mode = CGAM_FLOW}, "none requires mode first: in mode flow"},
        {{.none = true, .certify = true}, "none and"},
        {{.none = true, .none_score = NAN}, "none is nan"},
        {{.tol_p = -1, .fast = true}, "tol-p is -1"},
        {{.tol_p = 0.1}, "tol-p is 0.1; it must be 0 or more, and above 0 it requires fast"},
        {{.mode = CGAM_ANNEAL, .beta_start = -1}, "beta-start is -1"},
        {{.mode = CGAM_ANNEAL, .beta_start = 2}, "beta-start is 2"},
        {{.P = Z, .W = Z, .d_c = 3}, "give a projection or gate weights, not both"},
        {{.P = Z}, "d_c is 0"},
        {{.W = Z, .d_c = INT64_C(1) << 40}, "1099511627776"},
        {{.gate = gate, .alpha = 0.3}, "gate belongs to a different bank or alpha"},
        {{.gate = foreign, .alpha = 0.2}, "gate belongs to a different bank or alpha"},
        {{.alpha = 1e302}, "alpha norm^2 leaves the"},
        {{.mode = CGAM_COUPLED, .alpha = 3}, "needs A(alpha) positive definite: alpha = 3"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const cgam_recall_opts o = filled(wrong[i].opts);
        if (cgam_recall_new(bank, &o, &plan) == CGAM_OK)
            fail_msg("taken, and '%s' was to be said", wrong[i].message);
        CHECK_MESSAGE(env, wrong[i].message);
        assert_null(plan);
    }
    cgam_gate_free(gate);
    cgam_gate_free(foreign);
    cgam_bank_free(other);
    cgam_bank_free(bank);
    cgam_recall_free(NULL);
}

TEST_WITH(set_up, tear_down, questions_that_make_no_sense_are_refused)
{
    OWNED(cgam_bank) bank = bank_of();
    cgam_recall *first, *coupled;
    cgam_result r;
    const int64_t beyond = N, before = -1;
    const double negative[] = {1, -1, 0, 0}, zeros[N] = {0}, wild[] = {INFINITY, 0, 0, 0};
    const double much[] = {1e308, 1e308, 0, 0};
    CHECK_STATUS(env, cgam_recall_new(bank, NULL, &first));
    coupled = plan_of(bank, (cgam_recall_opts){.mode = CGAM_COUPLED});
    const struct {
        const cgam_recall *plan;
        cgam_recall_in in;
        const char *message;
    } wrong[] = {
        {first, {.queries = -1, .q = q}, "q is NULL: -1"},
        {first, {.queries = 1}, "q is NULL: 1"},
        {first, {.queries = 1, .q = q, .target = &beyond}, "0 to 3)"},
        {first, {.queries = 1, .q = q, .target = &before}, "0 to 3)"},
        {first, {.queries = 1, .q = q, .start = b}, "start requires mode coupled, not mode first"},
        {coupled, {.queries = 1, .q = q, .start = negative}, "has weight -1 at 1"},
        {coupled, {.queries = 1, .q = q, .start = wild}, "has weight inf at 0"},
        {coupled, {.queries = 1, .q = q, .start = zeros}, "of query 0 sum to 0"},
        {coupled, {.queries = 1, .q = q, .start = much}, "of query 0 sum to inf"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_REFUSED(
            env, CGAM_E_ARG, wrong[i].message,
            cgam_recall_run(wrong[i].plan, &wrong[i].in, &(cgam_recall_out){.results = &r}));
    }
    CHECK_STATUS(env, cgam_recall_run(first, &(cgam_recall_in){0}, &(cgam_recall_out){0}));
    cgam_score_parts parts;
    cgam_landscape land;
    CHECK_REFUSED(env, CGAM_E_ARG, "0 to 3)",
                  cgam_recall_parts(first, q, c, NULL, 1, &beyond, &parts));
    CHECK_REFUSED(env, CGAM_E_ARG, "mode coupled,", cgam_landscape_find(first, q, c, NULL, &land));
    CHECK_REFUSED(env, CGAM_E_ARG, "starts is -1",
                  cgam_landscape_find(coupled, q, c, &(cgam_landscape_opts){.starts = -1}, &land));
    cgam_recall_free(coupled);
    coupled = plan_of(bank, (cgam_recall_opts){.mode = CGAM_COUPLED, .entmax = 2});
    CHECK_REFUSED(env, CGAM_E_ARG, "landscape requires activation softmax",
                  cgam_landscape_find(coupled, q, c, NULL, &land));
    cgam_recall_free(coupled);
    coupled =
        plan_of(bank, (cgam_recall_opts){.mode = CGAM_COUPLED, .alpha = 0.1, .memory_max = 1});
    CHECK_REFUSED(env, CGAM_E_NOMEM, "factored gate operator",
                  cgam_landscape_find(coupled, q, c, NULL, &land));
    cgam_recall_free(coupled);
    cgam_recall_free(first);
}

TEST_WITH(set_up, tear_down, formulas_are_refused_what_they_do_not_hold_for)
{
    OWNED(cgam_bank) bank = bank_of();
    OWNED(cgam_gate) gate = NULL;
    OWNED(cgam_gate) above = NULL;
    OWNED(cgam_spectrum) sp = NULL;
    cgam_plane plane;
    cgam_horizon horizon;
    cgam_fold fold;
    cgam_inspection in;
    cgam_net *net;
    double out[N], value;
    const int64_t same[] = {1, 1}, line[] = {0, 0, 1}, beyond[] = {0, N}, before[] = {-1, 0};
    CHECK_STATUS(env, cgam_gate_new(bank, 0.2, NULL, &gate));
    CHECK_STATUS(env, cgam_gate_new(bank, 3, NULL, &above));
    CHECK_STATUS(env, cgam_spectrum_new(bank, &sp));
    CHECK_REFUSED(env, CGAM_E_ARG, "alpha is nan",
                  cgam_gate_new(bank, NAN, NULL, &(cgam_gate *){NULL}));
    CHECK_REFUSED(env, CGAM_E_NOMEM, "conjugate gradients",
                  cgam_gate_new(bank, 3, &(cgam_gate_opts){.memory_max = 1}, &(cgam_gate *){NULL}));
    for (int i = 0; i < 4; i++) {
        const double tau = i == 0 ? 0 : 1, t = i == 1 ? -1 : i == 2 ? INFINITY : 1;
        CHECK_REFUSED(env, CGAM_E_ARG, "transient: tau",
                      cgam_spectrum_transient(sp, i == 3 ? NAN : 1, tau, t, b, NULL, out));
        CHECK_REFUSED(env, CGAM_E_ARG, "horizon: tau",
                      cgam_supercritical_horizon(sp, 3, i != 0, i != 1,
                                                 i == 2   ? 0
                                                 : i == 3 ? 1
                                                          : 0.1,
                                                 b, NULL, false, &horizon));
        CHECK_REFUSED(env, CGAM_E_ARG, "fold: lambda",
                      cgam_fold_find(bank, i == 0 ? -1 : 1, i != 1, b, b, i != 2, i != 3, &fold));
        CHECK_REFUSED(env, CGAM_E_ARG, "beta must be above 0",
                      cgam_bank_inspect(bank, 0,
                                        i == 0   ? 0
                                        : i == 1 ? INFINITY
                                                 : 1,
                                        i == 2   ? -1
                                        : i == 3 ? INFINITY
                                                 : 1,
                                        &in));
    }
    for (int i = 0; i < 2; i++) {
        const double alpha = i == 0 ? NAN : INFINITY;
        cgam_winner winner;
        CHECK_FAILS(env, CGAM_E_ARG, cgam_spectrum_solve(sp, alpha, b, out));
        CHECK_FAILS(env, CGAM_E_ARG, cgam_spectrum_solve_range(sp, alpha, q, out));
        CHECK_FAILS(env, CGAM_E_ARG, cgam_supercritical_winner(sp, alpha, b, NULL, &winner));
        CHECK_REFUSED(env, CGAM_E_ARG, i == 0 ? "alpha nan" : "alpha inf",
                      cgam_supercritical_horizon(sp, alpha, 1, 1, 0.1, b, NULL, false, &horizon));
    }
    CHECK_REFUSED(env, CGAM_E_ARG, "tol is nan",
                  cgam_hopfield_settle(bank, 1, q, NAN, 9, out, NULL, NULL));
    CHECK_REFUSED(env, CGAM_E_SINGULAR, "A(alpha) is singular at alpha = 1",
                  cgam_spectrum_solve(sp, 1, b, out));
    CHECK_STATUS(env, cgam_spectrum_solve_range(sp, 1, q, out)); /* Z q has no part in its kernel */
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_context_margin(gate, Z, 0, &value));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "d_c of a free context is 1099511627776",
                  cgam_context_margin(gate, Z, INT64_C(1) << 40, &value));
    CHECK_FAILS(env, CGAM_E_NOT_POSITIVE, cgam_context_margin(above, NULL, 0, &value));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_hopfield_energy(bank, 0, q, &value));
    CHECK_REFUSED(env, CGAM_E_ARG, "beta is inf", cgam_hopfield_update(bank, INFINITY, q, out));
    CHECK_REFUSED(env, CGAM_E_ARG, "2 or 3 memories, not 1", cgam_plane_new(bank, 1, same, &plane));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_plane_new(bank, 2, beyond, &plane));
    CHECK_REFUSED(env, CGAM_E_ARG, "0 to 3)", cgam_plane_new(bank, 2, before, &plane));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_plane_new(bank, 2, same, &plane));
    CHECK_REFUSED(env, CGAM_E_ARG, "these memories do not span a plane",
                  cgam_plane_new(bank, 3, line, &plane));
    CHECK_STATUS(env, cgam_plane_new(bank, 2, line + 1, &plane));
    for (int i = 0; i < 3; i++) {
        cgam_map_flow_opts f = cgam_map_flow_opts_default();
        cgam_map_moment moments[4];
        int64_t count;
        cgam_end end;
        if (i == 0) f.samples = 0;
        if (i == 1) f.t_end = 0;
        if (i == 2) f.switch_time = -1;
        CHECK_REFUSED(env, CGAM_E_ARG, "must be above 0",
                      cgam_map_flow(bank, &plane, q, NULL, NULL, &f, moments, &count, &end));
    }
    cgam_plane_free(env, &plane);
    enum { WIDE = 4097 };
    const double flat[2 * WIDE] = {1}; /* one memory, and one of zeros */
    for (int wide = 0; wide < 2; wide++) {
        OWNED(cgam_bank) two = object_bank(env, 2, wide ? WIDE : 1, flat);
        CHECK_REFUSED(env, CGAM_E_ARG, wide ? "2 to 4096 dimensions" : "principal",
                      cgam_plane_new(two, 0, NULL, &plane));
        CHECK_REFUSED(env, CGAM_E_ARG, "these memories do not span a plane",
                      cgam_plane_new(two, 2, line + 1, &plane));
    }
    CHECK_FAILS(env, CGAM_E_ARG,
                cgam_memory_net_new(bank, &(cgam_memory_net_opts){.alpha = -1}, &net));
    CHECK_REFUSED(env, CGAM_E_ARG, "alpha is 0 and lambda -1",
                  cgam_memory_net_new(bank, &(cgam_memory_net_opts){.lambda = -1}, &net));
    CHECK_FAILS(env, CGAM_E_ARG,
                cgam_memory_net_new(bank, &(cgam_memory_net_opts){.P = Z, .W = Z}, &net));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_dense_energy(bank, 0, 3, q, &value));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_dense_energy(bank, 1, 1, q, &value));
    CHECK_REFUSED(env, CGAM_E_ARG, "beta is inf and power is 3",
                  cgam_dense_update(bank, INFINITY, 3, q, out));
    const int64_t shapes[][4] = {{-1, 4, 3, 3},
                                 {1, 0, 3, 3},
                                 {1, 4, 0, 3},
                                 {1, 4, 3, 0},
                                 {1, INT64_C(1) << 40, 3, 3},
                                 {1, 4, 3, INT64_C(1) << 40}};
    for (int i = 0; i < 6; i++) {
        const int64_t *s = shapes[i];
        CHECK_FAILS(env, CGAM_E_SHAPE, cgam_attention(env, s[0], s[1], s[2], s[3], q, Z, Z, out));
    }
    CHECK_MESSAGE(env, "d_v = 1099511627776");
}

/* ---- every allocation, every look ------------------------------------------------------------- */
static cgam_status scene_bank(cgam_env *own, cgam_bank **bank)
{
    return cgam_bank_new(own, Z, CGAM_F64, N, D, &(cgam_bank_opts){.copy = true}, bank);
}

/* arg: whether margins are eigenvalues. */
static int a_landscape(cgam_env *own, void *arg)
{
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_landscape land = {0};
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.beta = 4;
    o.lambda = 1.5;
    o.alpha = 0.2;
    o.certify = *(const bool *)arg;
    cgam_status status = scene_bank(own, &bank);
    if (status == CGAM_OK) status = cgam_recall_new(bank, &o, &plan);
    if (status == CGAM_OK)
        status = cgam_landscape_find(plan, q, c, &(cgam_landscape_opts){.starts = 2}, &land);
    if (status == CGAM_OK && land.count < 2) status = CGAM_E_INTERNAL;
    cgam_landscape_free(own, &land);
    return status;
}

/* Options that are not given are those that the library names. */
TEST_WITH(set_up, tear_down, no_options_are_the_default_ones)
{
    const int64_t index[] = {0, 1, 2};
    const double xs[] = {-0.5, 0.5};
    const cgam_map_opts o = cgam_map_opts_default();
    const cgam_map_flow_opts f = cgam_map_flow_opts_default();
    double energy[2][4];
    cgam_attractor list[2][2];
    cgam_map_moment moments[2][160];
    int64_t found[2], moved[2];
    cgam_end end[2];
    OWNED(cgam_bank) few = NULL;
    cgam_plane plane;
    CHECK_STATUS(env, scene_bank(env, &few));
    const cgam_memory_net_opts as_net = cgam_memory_net_opts_default();
    cgam_net *nets[2];
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(env, cgam_memory_net_new(few, i ? &as_net : NULL, &nets[i]));
    assert_int_equal(cgam_net_describe(nets[0]).size, cgam_net_describe(nets[1]).size);
    for (int i = 0; i < 2; i++) cgam_net_free(nets[i]);
    CHECK_STATUS(env, cgam_plane_new(few, 3, index, &plane));
    assert_in_range(f.samples, 1, 160 - 3);
    for (int i = 0; i < 2; i++) {
        double starts[2 * D] = {0.9, 0.1, 0, 0, 0.1, 0.9};
        memset(list[i], 0, sizeof list[i]);
        CHECK_STATUS(env, cgam_map_energy(few, &plane, c, i ? &o : NULL, 2, xs, 2, xs, energy[i]));
        CHECK_STATUS(env,
                     cgam_map_attractors(few, c, i ? &o : NULL, 2, starts, list[i], &found[i]));
        CHECK_STATUS(env, cgam_map_flow(few, &plane, q, c, i ? &o : NULL, i ? &f : NULL, moments[i],
                                        &moved[i], &end[i]));
    }
    assert_memory_equal(energy[0], energy[1], sizeof energy[0]);
    assert_int_equal(found[0], found[1]);
    for (int64_t k = 0; k < found[0]; k++) assert_true(list[0][k].winner == list[1][k].winner);
    assert_int_equal(moved[0], moved[1]);
    assert_true(moved[0] > 1 && end[0] == end[1]);
    assert_memory_equal(moments[0], moments[1], (size_t)moved[0] * sizeof moments[0][0]);
    cgam_plane_free(env, &plane);
}

/* arg: how many memories the plane goes through. */
static int a_map(cgam_env *own, void *arg)
{
    const int64_t count = *(const int64_t *)arg, index[] = {0, 1, 2};
    const double xs[] = {-0.5, 0.5};
    double energy[4], starts[2 * D] = {0.9, 0.1, 0, 0, 0.1, 0.9};
    OWNED(cgam_bank) bank = NULL;
    cgam_plane plane = {0};
    cgam_attractor list[2];
    cgam_map_opts o = cgam_map_opts_default();
    cgam_map_flow_opts f = cgam_map_flow_opts_default();
    cgam_map_moment moments[8];
    int64_t found, moved;
    cgam_end end;
    o.beta = 8;
    o.alpha = 0.2;
    o.settled = count == 2;
    f.t_end = 0.2;
    f.switch_time = 0.1;
    f.c_then = c;
    f.samples = 4;
    cgam_status status = scene_bank(own, &bank);
    if (status == CGAM_OK) status = cgam_plane_new(bank, count, index, &plane);
    if (status == CGAM_OK) status = cgam_map_energy(bank, &plane, c, &o, 2, xs, 2, xs, energy);
    if (status == CGAM_OK) status = cgam_map_attractors(bank, c, &o, 2, starts, list, &found);
    if (status == CGAM_OK)
        status = cgam_map_flow(bank, &plane, q, c, &o, &f, moments, &moved, &end);
    if (status == CGAM_OK && (found != 2 || moved < 2)) status = CGAM_E_INTERNAL;
    cgam_plane_free(own, &plane);
    return status;
}

static int an_explanation(cgam_env *own, void *arg)
{
    (void)arg;
    const int64_t index[] = {2, 0};
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_score_parts parts[2];
    cgam_marks marks;
    cgam_inspection in;
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    o.alpha = 0.1;
    o.lambda = 0.5;
    TRY(scene_bank(own, &bank));
    TRY(cgam_recall_new(bank, &o, &plan));
    TRY(cgam_recall_parts(plan, q, c, b, 2, index, parts));
    TRY(cgam_recall_marks(plan, q, c, &marks));
    TRY(cgam_bank_inspect(bank, 0.1, 1, 1, &in));
    return CGAM_OK;
}

/* arg: the mode. */
static int a_long_recall(cgam_env *own, void *arg)
{
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_result r;
    cgam_anneal path = {0};
    double s[N];
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = *(const cgam_mode *)arg;
    o.alpha = 0.1;
    o.beta = 3;
    o.lambda = 0.8;
    o.t_max = 0.5;
    o.certify = true;
    o.free_context = o.free_query = o.mode == CGAM_FLOW;
    const cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out out = {.results = &r, .s = s};
    if (o.mode == CGAM_ANNEAL) out.anneal = &path;
    cgam_status status = scene_bank(own, &bank);
    if (status == CGAM_OK) status = cgam_recall_new(bank, &o, &plan);
    if (status == CGAM_OK) status = cgam_recall_run(plan, &in, &out);
    cgam_anneal_free(own, &path);
    return status;
}

static int other_formulas(cgam_env *own, void *arg)
{
    (void)arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_gate) gate = NULL;
    double value, out[N];
    TRY(scene_bank(own, &bank));
    TRY(cgam_dense_energy(bank, 2, 3, q, &value));
    TRY(cgam_dense_update(bank, 2, 3, q, out));
    TRY(cgam_hopfield_update(bank, 2, q, out));
    TRY(cgam_gate_new(bank, 0.2, &(cgam_gate_opts){.coupled = true, .alike = true}, &gate));
    TRY(cgam_coupled_free_energy(gate, 2, 1, b, b, b, &value, out));
    TRY(cgam_context_margin(gate, Z, 2, &value));
    return CGAM_OK;
}

TEST_WITH(set_up, tear_down, long_looks_give_back_what_they_had)
{
    for (int i = 0; i < 2; i++) {
        bool certify = i;
        assert_true(check_some_allocations(a_landscape, &certify, 7) > 20);
    }
    for (int64_t count = 0; count < 4; count += count ? 1 : 2)
        assert_true(check_some_allocations(a_map, &count, 3) > 20);
    assert_true(check_some_allocations(an_explanation, NULL, 23) > 20);
    for (cgam_mode mode = CGAM_FLOW; mode <= CGAM_ANNEAL; mode++)
        assert_true(check_some_allocations(a_long_recall, &mode, 5) > 20);
    assert_true(check_every_allocation(other_formulas, NULL) > 20);
}
