/* The trainer: minima that are known, the end, journals, and what is rejected. */
#include "base/env.h"
#include "lab/journal.h"
#include "lab/learn/trainer.h"
#include "support/check.h"
#include "support/failing_alloc.h"
#include "support/folder.h"

/* ---- Problems. -------------------------------------------------------------------------------- */
static cgam_status rosenbrock(void *user, const double *x, int64_t count, const int64_t *index,
                              double *loss, double *gradient)
{
    double a = 1 - x[0], b = x[1] - x[0] * x[0];
    (void)user, (void)count, (void)index;
    *loss = a * a + 100 * b * b;
    if (gradient) {
        gradient[0] = -2 * a - 400 * x[0] * b;
        gradient[1] = 200 * b;
    }
    return CGAM_OK;
}

enum { POINTS = 40, WIDTH = 3 };
/* (<a_i, x> - y_i)^2; after `after` calls the next one wishes to stop, or fails. */
typedef struct points {
    double a[POINTS][WIDTH], y[POINTS];
    int64_t calls, stop_after;
    bool fails;
} points;

static points points_of(uint64_t seed)
{
    points p = {.stop_after = -1};
    cgam_rng rng = cgam_rng_stream(seed, 0);
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < WIDTH; k++) p.a[i][k] = cgam_rng_normal(&rng);
        p.y[i] = p.a[i][0] - 2 * p.a[i][1] + 0.5 * p.a[i][2] + 0.1 * cgam_rng_normal(&rng);
    }
    return p;
}

static cgam_status squares(void *user, const double *x, int64_t count, const int64_t *index,
                           double *loss, double *gradient)
{
    points *p = user;
    if (p->stop_after >= 0 && p->calls++ >= p->stop_after)
        return p->fails ? CGAM_E_INTERNAL : CGAM_E_INTERRUPTED;
    *loss = 0;
    for (int k = 0; gradient && k < WIDTH; k++) gradient[k] = 0;
    for (int64_t j = 0; j < count; j++) {
        const double *a = p->a[index[j]];
        double off = -p->y[index[j]];
        for (int k = 0; k < WIDTH; k++) off += a[k] * x[k];
        *loss += off * off / (double)count;
        for (int k = 0; gradient && k < WIDTH; k++) gradient[k] += 2 * off * a[k] / (double)count;
    }
    return CGAM_OK;
}

/* argmin of the mean over the examples for steps + ridge |x|^2, by Cramer's rule. */
static void normal_equations(const points *p, const cgam_train_split *s, double ridge, double *x)
{
    double M[WIDTH][WIDTH] = {{0}}, v[WIDTH] = {0};
    for (int64_t j = 0; j < s->train; j++) {
        const double *a = p->a[s->index[j]];
        for (int k = 0; k < WIDTH; k++) {
            v[k] += a[k] * p->y[s->index[j]] / (double)s->train;
            for (int l = 0; l < WIDTH; l++) M[k][l] += a[k] * a[l] / (double)s->train;
        }
    }
    for (int k = 0; k < WIDTH; k++) M[k][k] += ridge;
#define DET(A)                                                                                     \
    ((A)[0][0] * ((A)[1][1] * (A)[2][2] - (A)[1][2] * (A)[2][1]) -                                 \
     (A)[0][1] * ((A)[1][0] * (A)[2][2] - (A)[1][2] * (A)[2][0]) +                                 \
     (A)[0][2] * ((A)[1][0] * (A)[2][1] - (A)[1][1] * (A)[2][0]))
    for (int k = 0; k < WIDTH; k++) {
        double with[WIDTH][WIDTH];
        memcpy(with, M, sizeof M);
        for (int l = 0; l < WIDTH; l++) with[l][k] = v[l];
        x[k] = DET(with) / DET(M);
    }
}

static cgam_train_problem problem_of(points *p)
{
    return (cgam_train_problem){.params = WIDTH, .examples = POINTS, .user = p, .loss = squares};
}

static cgam_train_split all_of(cgam_env *env)
{
    cgam_train_split s;
    CHECK_STATUS(env, cgam_train_split_new(env, POINTS, 0, 0, 1, &s));
    return s;
}

/* ---- Minima. ---------------------------------------------------------------------------------- */
TEST_ENV(lbfgs_ends_in_the_valley_of_rosenbrock)
{
    cgam_train_problem problem = {.params = 2, .examples = 1, .loss = rosenbrock};
    cgam_train_split split;
    cgam_trained t;
    double x[2] = {-1.2, 1};
    CHECK_STATUS(env, cgam_train_split_new(env, 1, 0, 0, 0, &split));
    CHECK_STATUS(env, cgam_train(env, &problem, &split, NULL, x, &t));
    CHECK_CLOSE(x[0], 1, 1e-4);
    CHECK_CLOSE(x[1], 1, 1e-4);
    assert_int_equal(t.end, CGAM_TRAIN_CONVERGED);
    assert_int_equal(t.best, t.epochs);
    CHECK_CLOSE(t.before.loss, 24.2, 1e-12);
    assert_true(isnan(t.before.stop_loss) && isnan(t.epoch[0].held_out_loss));
    cgam_trained_free(env, &t);
    cgam_train_split_free(env, &split);
}

TEST_ENV(both_optimisers_find_the_least_squares_with_a_ridge)
{
    points p = points_of(3);
    cgam_train_problem problem = problem_of(&p);
    cgam_train_split split;
    CHECK_STATUS(env, cgam_train_split_new(env, POINTS, 0.2, 0, 5, &split));
    assert_int_equal(split.train, 32);
    double want[WIDTH];
    normal_equations(&p, &split, 0.3, want);
    for (int k = 0; k < 2; k++) {
        cgam_train_opts o = cgam_train_opts_default();
        cgam_trained t;
        double x[WIDTH] = {0};
        o.optimizer = k ? CGAM_OPTIMIZER_ADAM : CGAM_OPTIMIZER_LBFGS;
        o.ridge = 0.3;
        o.batch = 32;
        o.epochs = k ? 3000 : 0;
        CHECK_STATUS(env, cgam_train(env, &problem, &split, &o, x, &t));
        CHECK_CLOSE_ALL(x, want, WIDTH, k ? 1e-6 : 1e-4);
        assert_int_equal(t.end, k ? CGAM_TRAIN_EPOCHS : CGAM_TRAIN_CONVERGED);
        assert_true(isfinite(t.epoch[0].held_out_loss) && isnan(t.epoch[0].stop_loss));
        cgam_trained_free(env, &t);
    }
    cgam_train_split_free(env, &split);
}

TEST_ENV(a_ridge_pulls_its_parameters_to_their_centre)
{
    points p = points_of(3);
    cgam_train_problem problem = problem_of(&p);
    cgam_train_split split = all_of(env);
    cgam_train_opts o = cgam_train_opts_default();
    cgam_trained t;
    double x[WIDTH] = {0}, centre[2] = {7, -5}, free_x[WIDTH];
    o.ridge = 1e6;
    o.ridged = 2;
    o.centre = centre;
    CHECK_STATUS(env, cgam_train(env, &problem, &split, &o, x, &t));
    CHECK_CLOSE_ALL(x, centre, 2, 1e-4);
    cgam_trained_free(env, &t);
    normal_equations(&p, &split, 0, free_x);
    assert_true(fabs(x[2]) > 1e-3 && x[2] != free_x[2]);
    cgam_train_split_free(env, &split);
}

TEST_ENV(the_result_is_that_of_the_least_stopping_loss)
{
    points p = points_of(3);
    cgam_train_split split;
    cgam_train_opts o = cgam_train_opts_default();
    cgam_trained t;
    double x[WIDTH] = {0}, loss;
    CHECK_STATUS(env, cgam_train_split_new(env, POINTS, 0, 0.3, 5, &split));
    for (int64_t j = 0; j < split.stop; j++)
        p.y[split.index[split.train + j]] = 0; /* another aim */
    cgam_train_problem problem = problem_of(&p);
    x[2] = 0.5;
    o.optimizer = CGAM_OPTIMIZER_ADAM;
    o.epochs = 400;
    o.patience = 6;
    CHECK_STATUS(env, cgam_train(env, &problem, &split, &o, x, &t));
    assert_int_equal(t.end, CGAM_TRAIN_EARLY);
    assert_int_equal(t.epochs, t.best + 6);
    CHECK_STATUS(env, squares(&p, x, split.stop, split.index + split.train, &loss, NULL));
    double least = t.before.stop_loss;
    for (int64_t e = 0; e < t.epochs; e++) least = fmin(least, t.epoch[e].stop_loss);
    CHECK_CLOSE(loss, least, 0);
    cgam_trained_free(env, &t);
    cgam_train_split_free(env, &split);
}

TEST_ENV(a_split_has_every_example_once)
{
    cgam_train_split s, again;
    char seen[100] = {0};
    CHECK_STATUS(env, cgam_train_split_new(env, 100, 0.2, 0.1, 9, &s));
    CHECK_STATUS(env, cgam_train_split_new(env, 100, 0.2, 0.1, 9, &again));
    assert_int_equal(s.held_out, 20);
    assert_int_equal(s.stop, 8);
    assert_int_equal(s.train, 72);
    for (int i = 0; i < 100; i++) assert_int_equal(seen[s.index[i]]++, 0);
    assert_memory_equal(s.index, again.index, 100 * sizeof *s.index);
    for (int i = 1; i < 72; i++) assert_true(s.index[i] > s.index[i - 1]);
    cgam_train_split_free(env, &s);
    cgam_train_split_free(env, &again);
    CHECK_REFUSED(env, CGAM_E_ARG, "2 examples", cgam_train_split_new(env, 2, 0.5, 0.5, 0, &s));
    CHECK_REFUSED(env, CGAM_E_ARG, "1.5", cgam_train_split_new(env, 2, 1.5, 0.5, 0, &s));
}

/* ---- Journals. -------------------------------------------------------------------------------- */
typedef struct outcome {
    double x[WIDTH];
    cgam_trained t;
    cgam_status status;
} outcome;

static outcome train_journal(cgam_env *env, cgam_optimizer optimizer, const char *journal,
                             int64_t stop_after)
{
    points p = points_of(3);
    p.stop_after = stop_after;
    cgam_train_problem problem = problem_of(&p);
    cgam_train_split split;
    cgam_train_opts o = cgam_train_opts_default();
    outcome out = {.x = {1, 1, 1}};
    CHECK_STATUS(env, cgam_train_split_new(env, POINTS, 0.2, 0.2, 5, &split));
    o.optimizer = optimizer;
    o.batch = 7;
    o.epochs = 12;
    o.rate = 0.05;
    o.ridge = 1e-3;
    o.journal = journal;
    o.data = 11;
    out.status = cgam_train(env, &problem, &split, &o, out.x, &out.t);
    cgam_train_split_free(env, &split);
    return out;
}

TEST_ENV(an_interrupted_training_continues_with_the_same_bits)
{
    for (int k = 0; k < 2; k++) {
        cgam_optimizer how = k ? CGAM_OPTIMIZER_ADAM : CGAM_OPTIMIZER_LBFGS;
        outcome whole = train_journal(env, how, NULL, -1);
        assert_int_equal(whole.status, CGAM_OK);
        const char *path = folder_file(k ? "adam.journal" : "lbfgs.journal");
        outcome part = {.status = CGAM_E_INTERRUPTED};
        int runs = 0;
        for (; part.status == CGAM_E_INTERRUPTED; runs++) { /* each run does a few calls more */
            part = train_journal(env, how, path, 13);
            if (part.status == CGAM_E_INTERRUPTED) {
                assert_int_equal(part.t.end, CGAM_TRAIN_INTERRUPTED);
                cgam_trained_free(env, &part.t);
            }
            assert_true(runs < 40);
        }
        assert_int_equal(part.status, CGAM_OK);
        assert_true(runs > 1);
        assert_memory_equal(part.x, whole.x, sizeof whole.x);
        assert_int_equal(part.t.epochs, whole.t.epochs);
        assert_int_equal(part.t.evaluations, whole.t.evaluations);
        assert_memory_equal(part.t.epoch, whole.t.epoch,
                            (size_t)whole.t.epochs * sizeof *whole.t.epoch);
        assert_memory_equal(&part.t.before, &whole.t.before, sizeof whole.t.before);
        cgam_trained_free(env, &part.t);
        cgam_trained_free(env, &whole.t);
    }
}

TEST_ENV(a_journal_of_other_data_or_options_is_rejected)
{
    const char *path = folder_file("other.journal");
    outcome first = train_journal(env, CGAM_OPTIMIZER_ADAM, path, -1);
    assert_int_equal(first.status, CGAM_OK);
    cgam_trained_free(env, &first.t);
    outcome other = train_journal(env, CGAM_OPTIMIZER_LBFGS, path, -1);
    assert_int_equal(other.status, CGAM_E_ARG);
    CHECK_MESSAGE(env, "other.journal: the journal of a run with other data or options");
    cgam_trained_free(env, &other.t);
    const char *mine = folder_write("mine.txt", "a file that is no journal");
    outcome text = train_journal(env, CGAM_OPTIMIZER_ADAM, mine, -1);
    assert_int_equal(text.status, CGAM_E_ARG);
    CHECK_MESSAGE(env, "mine.txt: not a journal");
    cgam_trained_free(env, &text.t);
    char *left = folder_text("mine.txt");
    assert_string_equal(left, "a file that is no journal");
    free(left);
}

/* ---- Failures. -------------------------------------------------------------------------------- */
TEST_ENV(a_divergence_ends_the_training_and_names_the_place)
{
    points p = points_of(3);
    cgam_train_problem problem = problem_of(&p);
    cgam_train_split split = all_of(env);
    cgam_train_opts o = cgam_train_opts_default();
    cgam_trained t;
    double x[WIDTH] = {0}, zero[WIDTH] = {0};
    o.optimizer = CGAM_OPTIMIZER_ADAM;
    o.rate = 1e200;
    CHECK_REFUSED(env, CGAM_E_VALUE, "in epoch 2", cgam_train(env, &problem, &split, &o, x, &t));
    CHECK_MESSAGE(env, "rate 1e+200");
    cgam_trained_free(env, &t);
    o.batch = 1; /* in the first epoch: x is still the start */
    memcpy(x, zero, sizeof x);
    CHECK_REFUSED(env, CGAM_E_VALUE, "in epoch 1, batch 2",
                  cgam_train(env, &problem, &split, &o, x, &t));
    assert_memory_equal(x, zero, sizeof x);
    cgam_trained_free(env, &t);
    o.rate = 1e3; /* finite, but far above the start */
    o.batch = 4;
    CHECK_REFUSED(env, CGAM_E_VALUE, "in epoch 1", cgam_train(env, &problem, &split, &o, x, &t));
    cgam_trained_free(env, &t);
    p.y[0] = NAN;
    o.optimizer = CGAM_OPTIMIZER_LBFGS;
    CHECK_REFUSED(env, CGAM_E_VALUE, "at the start", cgam_train(env, &problem, &split, &o, x, &t));
    cgam_trained_free(env, &t);
    cgam_train_split_free(env, &split);
}

TEST_ENV(a_failing_loss_ends_the_training_with_its_status)
{
    for (int k = 0; k < 2; k++) {
        points p = points_of(3);
        cgam_train_problem problem = problem_of(&p);
        cgam_train_split split = all_of(env);
        cgam_train_opts o = cgam_train_opts_default();
        cgam_trained t;
        double x[WIDTH] = {1, 1, 1}, loss, start;
        o.optimizer = k ? CGAM_OPTIMIZER_ADAM : CGAM_OPTIMIZER_LBFGS;
        o.batch = POINTS;
        CHECK_STATUS(env, squares(&p, x, POINTS, split.index, &start, NULL));
        p.fails = true;
        p.stop_after = 6;
        CHECK_FAILS(env, CGAM_E_INTERNAL, cgam_train(env, &problem, &split, &o, x, &t));
        p.stop_after = -1;
        CHECK_STATUS(env, squares(&p, x, POINTS, split.index, &loss, NULL));
        assert_true(loss < start); /* the best so far */
        cgam_trained_free(env, &t);
        cgam_train_split_free(env, &split);
    }
}

TEST_ENV(options_out_of_range_are_rejected)
{
    points p = points_of(3);
    cgam_train_problem problem = problem_of(&p);
    cgam_train_split split = all_of(env);
    cgam_trained t;
    double x[WIDTH] = {0};
    static const struct {
        const char *words;
        cgam_train_opts opts;
    } cases[] = {
        {"optimizer", {.optimizer = (cgam_optimizer)7, .batch = 1, .rate = 1}},
        {"epochs is -1", {.epochs = -1, .batch = 1, .rate = 1}},
        {"batch is 0", {.batch = 0, .rate = 1}},
        {"rate is 0", {.batch = 1}},
        {"ridge is -1", {.batch = 1, .rate = 1, .ridge = -1}},
        {"patience is -2", {.batch = 1, .rate = 1, .patience = -2}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        CHECK_REFUSED(env, CGAM_E_ARG, cases[k].words,
                      cgam_train(env, &problem, &split, &cases[k].opts, x, &t));
    problem.params = 0;
    CHECK_REFUSED(env, CGAM_E_ARG, "0 parameters", cgam_train(env, &problem, &split, NULL, x, &t));
    cgam_train_split_free(env, &split);
}

/* ---- What is kept. ---------------------------------------------------------------------------- */
typedef struct kept {
    double x[WIDTH];
    int64_t epochs;
    int calls;
} kept;

static cgam_status keep(void *user, const double *x, const cgam_trained *so_far)
{
    kept *k = user;
    memcpy(k->x, x, sizeof k->x);
    k->epochs = so_far->epochs;
    k->calls++;
    return CGAM_OK;
}

TEST_ENV(the_best_is_kept_at_the_end_and_after_an_interruption)
{
    for (int k = 0; k < 2; k++) {
        points p = points_of(3);
        p.stop_after = k ? 4 : -1;
        cgam_train_problem problem = problem_of(&p);
        cgam_train_split split = all_of(env);
        cgam_train_opts o = cgam_train_opts_default();
        cgam_trained t;
        kept got = {.calls = 0};
        double x[WIDTH] = {0};
        o.keep = keep;
        o.user = &got;
        CHECK_FAILS(env, k ? CGAM_E_INTERRUPTED : CGAM_OK,
                    cgam_train(env, &problem, &split, &o, x, &t));
        assert_int_equal(got.calls, 1);
        assert_int_equal(got.epochs, t.epochs);
        assert_memory_equal(got.x, x, sizeof x);
        cgam_trained_free(env, &t);
        cgam_train_split_free(env, &split);
    }
}

static int whole_training(cgam_env *env, void *arg)
{
    points p = points_of(3);
    cgam_train_problem problem = problem_of(&p);
    cgam_train_split split;
    cgam_train_opts o = cgam_train_opts_default();
    cgam_trained t = {0};
    double x[WIDTH] = {0};
    o.optimizer = *(cgam_optimizer *)arg;
    o.epochs = 3;
    o.journal = folder_file("allocations.journal");
    folder_clear("allocations.journal");
    cgam_status status = cgam_train_split_new(env, POINTS, 0.2, 0.1, 1, &split);
    if (status == CGAM_OK) status = cgam_train(env, &problem, &split, &o, x, &t);
    cgam_trained_free(env, &t);
    cgam_train_split_free(env, &split);
    return status;
}

TEST(every_allocation_of_a_training_may_fail)
{
    for (cgam_optimizer k = 0; k <= CGAM_OPTIMIZER_ADAM; k++)
        check_every_allocation(whole_training, &k);
}
