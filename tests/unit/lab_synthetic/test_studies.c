/* ctest: labels=threads timeout=240
 * Studies as a whole: the same numbers on any number of threads and after any interruption, trials
 * that do not depend on how many others there are, tables, bad options, failing memory. */
#include "lab/table.h"
#include "unit/io/scratch.h"

#include "support/failing_alloc.h"

#include "lab/synthetic/study.h"
#include <jansson.h>
#include <sys/stat.h>

#include "support/owned.h"

/* Every study at a size of a few hundredths of a second. */
static cgam_study_opts small(cgam_study_kind kind)
{
    static const double two[] = {0, 1.5}, alphas[] = {0.2, 0.65, 1, 1.1, 1.6}, ratios[] = {0.1, 10};
    static const double loads[] = {0.5, 4}, noise[] = {0.3, 1};
    cgam_study_opts o = cgam_study_opts_default(kind);
    o.trials = 70;
    switch (kind) {
    case CGAM_STUDY_SEPARATION: o.trials = 300; break;
    case CGAM_STUDY_COUPLED:
        o.trials = 20;
        o.fold_trials = 8;
        o.lambda = (cgam_list){two, 2};
        o.alphas = (cgam_list){alphas, 5};
        break;
    case CGAM_STUDY_TIMESCALE:
        o.trials = 20;
        o.ratio = (cgam_list){ratios, 2};
        break;
    case CGAM_STUDY_THEOREMS: o.trials = 4; break;
    case CGAM_STUDY_SPARSE:
        o.trials = 20;
        o.sigma_q = (cgam_list){noise, 2};
        break;
    case CGAM_STUDY_RIVALS:
        o.trials = 5;
        o.banks = 5;
        o.n = 12;
        o.d = 4;
        o.alphas = (cgam_list){alphas, 2};
        o.lambda = (cgam_list){loads, 2};
        o.sigma_q = (cgam_list){noise, 2};
        break;
    case CGAM_STUDY_CONVERGENCE:
    case CGAM_STUDY_ANNEALING:
        o.trials = 3;
        o.n = 4;
        o.d = 3;
        o.starts = 1;
        o.alphas = (cgam_list){noise, 1};
        o.lambda = (cgam_list){two + 1, 1};
        o.betas = (cgam_list){loads, 2};
        break;
    case CGAM_STUDY_CAPACITY:
    case CGAM_STUDY_PHASE:
        o.load = (cgam_list){loads, 2};
        o.sigma_q = (cgam_list){noise, 2};
        o.banks = 3;
        break;
    default: break;
    }
    return o;
}

static cgam_env *env_with(int threads, bool (*interrupted)(void *), void *user)
{
    cgam_env *env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    opts.interrupted = interrupted;
    opts.user = user;
    assert_int_equal(cgam_env_new(&opts, &env), CGAM_OK);
    return env;
}

/* Same tables, bit for bit (NAN counts as itself). */
static void same_tables(const cgam_study *a, const cgam_study *b)
{
    assert_int_equal(a->tables, b->tables);
    for (int64_t i = 0; i < a->tables; i++) {
        const cgam_table *x = &a->table[i], *y = &b->table[i];
        assert_string_equal(x->heads, y->heads);
        assert_int_equal(x->rows, y->rows);
        assert_memory_equal(x->cells, y->cells, (size_t)(x->rows * x->columns) * sizeof *x->cells);
    }
}

static void same(const cgam_study *a, const cgam_study *b)
{
    same_tables(a, b);
    assert_string_equal(a->json, b->json);
}

TEST(threads_do_not_matter)
{
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        cgam_study_opts o = small((cgam_study_kind)k);
        OWNED(cgam_env) one = env_with(1, NULL, NULL);
        OWNED(cgam_env) five = env_with(5, NULL, NULL);
        OWNED(cgam_study) a = NULL;
        OWNED(cgam_study) b = NULL;
        CHECK_STATUS(one, cgam_study_run(one, &o, &a));
        CHECK_STATUS(five, cgam_study_run(five, &o, &b));
        same(a, b);
    }
}

static void note(void *user, const cgam_progress_at *at)
{
    double *last = user;
    assert_string_equal(at->phase, "theorems");
    assert_true(at->done >= *last && at->total == 1 && *at->unit == '\0');
    assert_true(at->seconds_left >= 0);
    *last = at->done;
}

TEST(progress_rises_to_the_end)
{
    double last = 0;
    OWNED(cgam_env) env = env_with(2, NULL, NULL);
    cgam_study_opts o = small(CGAM_STUDY_THEOREMS);
    o.progress = (cgam_progress){note, &last};
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    CHECK_CLOSE(last, 1, 0);
}

static bool after_some(void *user)
{
    int *left = user;
    return __atomic_sub_fetch(left, 1, __ATOMIC_RELAXED) < 0;
}

TEST(a_stopped_run_goes_on_to_the_same_bits)
{
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        cgam_study_opts o = small((cgam_study_kind)k);
        char folder[512], progress[600];
        int left = 0, never = 1 << 30, tries = 0, torn = 0;
        cgam_env *env = env_with(2, after_some, &left), *calm = env_with(1, after_some, &never);
        cgam_study *a, *b = NULL;
        CHECK_STATUS(calm, cgam_study_run(calm, &o, &a));
        snprintf(folder, sizeof folder, "%s", scratch("progress"));
        snprintf(progress, sizeof progress, "%s/.%s.progress", folder, cgam_studies[k].name);
        o.out = folder;
        cgam_status status;
        while ((status = cgam_study_run(env, &o, &b)) == CGAM_E_INTERRUPTED) {
            assert_null(b);
            /* a torn record at the end, as a kill would leave it; other layers ask as well whether
             * to stop, so the first tries may end before there is a file */
            FILE *f = fopen(progress, "r+b");
            if (f) {
                torn++;
                fseek(f, 0, SEEK_END);
                fwrite("torn", 1, 4, f);
                fclose(f);
            }
            tries++;
            left = tries * tries;
            assert_true(tries < 2000);
        }
        CHECK_STATUS(env, status);
        assert_true(torn > 0);
        same(a, b);
        /* with other options the file is not continued */
        cgam_study *c;
        o.seed = 2;
        left = never;
        CHECK_REFUSED(env, CGAM_E_ARG, "unfinished run with other options",
                      cgam_study_run(env, &o, &c));
        o.overwrite = true;
        CHECK_STATUS(env, cgam_study_run(env, &o, &c));
        assert_string_not_equal(c->json, b->json);
        cgam_study_forget(c);
        assert_true(access(progress, F_OK) != 0);
        cgam_study_free(a);
        cgam_study_free(b);
        cgam_study_free(c);
        cgam_env_free(env);
        cgam_env_free(calm);
        rmdir(folder);
    }
}

/* A finished run is not replaced unless that is asked for; the same options may run again. */
TEST(a_finished_run_is_not_replaced_silently)
{
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch("finished"));
    cgam_study_opts o = small(CGAM_STUDY_SPARSE);
    o.trials = 3;
    o.out = folder;
    cgam_study *s;
    for (int k = 0; k < 5; k++) {
        if (k == 2) o.seed = 9;
        if (k == 3) o.beta = 9;
        if (k == 4) o.trials = 4;
        if (k >= 2)
            CHECK_REFUSED(env, CGAM_E_ARG, "holds another run (study sparse",
                          cgam_study_run(env, &o, &s));
        o.overwrite = k >= 2;
        CHECK_STATUS(env, cgam_study_run(env, &o, &s));
        CHECK_STATUS(env, cgam_study_write(s, folder));
        cgam_study_forget(s);
        cgam_study_free(s);
        o.overwrite = false;
    }
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Memories of a bank: n of its rows, in any study that draws memories; norms where they matter. */
TEST(a_study_takes_memories_of_a_bank)
{
    enum { ROWS = 20, D = 5 };
    static const cgam_study_kind kinds[] = {CGAM_STUDY_SEPARATION, CGAM_STUDY_COMPETITION,
                                            CGAM_STUDY_COUPLED,    CGAM_STUDY_ANNEALING,
                                            CGAM_STUDY_SPARSE,     CGAM_STUDY_RIVALS};
    double Z[ROWS * D];
    OWNED(cgam_env) env = env_with(2, NULL, NULL);
    for (int i = 0; i < ROWS * D; i++) Z[i] = sin(1 + i * 1.7);
    cgam_bank_opts opts = cgam_bank_opts_default();
    OWNED(cgam_bank) bare = NULL;
    OWNED(cgam_bank) unit = NULL;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, ROWS, D, &opts, &bare));
    opts.normalize = true;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, ROWS, D, &opts, &unit));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        cgam_study_opts o = small(kinds[k]);
        const bool any = kinds[k] == CGAM_STUDY_SEPARATION || kinds[k] == CGAM_STUDY_SPARSE ||
                         kinds[k] == CGAM_STUDY_ANNEALING;
        o.trials = o.trials < 8 ? o.trials : 8;
        o.n = 9;
        o.bank = unit;
        cgam_study *a, *b, *other;
        CHECK_STATUS(env, cgam_study_run(env, &o, &a));
        CHECK_STATUS(env, cgam_study_run(env, &o, &b));
        assert_int_equal(a->opts.d, D);
        same_tables(a, b);
        o.bank = NULL;
        o.d = D;
        CHECK_STATUS(env, cgam_study_run(env, &o, &other));
        assert_string_not_equal(a->json, other->json);
        cgam_study_free(a);
        cgam_study_free(b);
        cgam_study_free(other);
        o.bank = bare;
        if (kinds[k] == CGAM_STUDY_ANNEALING) o.alpha = 0.01;
        if (any) {
            CHECK_STATUS(env, cgam_study_run(env, &o, &a));
            cgam_study_free(a);
        } else {
            CHECK_REFUSED(env, CGAM_E_ARG, "needs unit vectors", cgam_study_run(env, &o, &a));
        }
        o.n = ROWS + 1;
        o.example = 0;
        CHECK_REFUSED(env, CGAM_E_ARG, "bank has 20 memories", cgam_study_run(env, &o, &a));
    }
    cgam_study_opts o = small(CGAM_STUDY_SEPARATION);
    cgam_study *a;
    o.bank = bare;
    o.n = 9;
    o.coupled = true;
    CHECK_REFUSED(env, CGAM_E_ARG, "needs unit vectors", cgam_study_run(env, &o, &a));
}

/* Studies whose blocks have all trials of a bank ask between them whether to stop, not only between blocks. */
TEST(a_run_of_many_trials_can_be_stopped)
{
    for (int k = CGAM_STUDY_CAPACITY; k <= CGAM_STUDY_PHASE; k++) {
        const int never = 1 << 30, trials[] = {100, 1000};
        int left[] = {never, never};
        for (int i = 0; i < 2; i++) {
            cgam_study_opts o = small((cgam_study_kind)k);
            OWNED(cgam_env) env = env_with(1, after_some, &left[i]);
            OWNED(cgam_study) s = NULL;
            o.trials = trials[i];
            CHECK_STATUS(env, cgam_study_run(env, &o, &s));
        }
        CHECK_LE((trials[1] - trials[0]) / 8.0, left[0] - left[1]); /* lanes: at most 8 */
    }
}

/* Two banks of one shape whose rows all have norm 1: a run that was stopped with the first is not
 * continued with the second. */
TEST(progress_belongs_to_the_rows_of_its_bank)
{
    enum { N = 64, D = 16 };
    static double Z[2][N * D];
    char folder[512];
    int left = 1 << 30;
    OWNED(cgam_env) env = env_with(1, after_some, &left);
    cgam_study_opts o = small(CGAM_STUDY_CAPACITY);
    cgam_bank *bank[2];
    cgam_study *want, *got = NULL;
    for (int k = 0; k < 2; k++) {
        cgam_bank_opts opts = cgam_bank_opts_default();
        opts.normalize = true;
        for (int i = 0; i < N * D; i++) Z[k][i] = sin(1 + i * (k + 1.1)); /* any two banks */
        CHECK_STATUS(env, cgam_bank_new(env, Z[k], CGAM_F64, N, D, &opts, &bank[k]));
    }
    o.bank = bank[1];
    CHECK_STATUS(env, cgam_study_run(env, &o, &want));
    snprintf(folder, sizeof folder, "%s", scratch("rows"));
    o.out = folder;
    o.bank = bank[0];
    cgam_study *whole;
    CHECK_STATUS(env, cgam_study_run(env, &o, &whole)); /* leaves its progress behind */
    o.bank = bank[1];
    CHECK_REFUSED(env, CGAM_E_ARG, "unfinished run with other options",
                  cgam_study_run(env, &o, &got));
    o.overwrite = true;
    CHECK_STATUS(env, cgam_study_run(env, &o, &got));
    same(want, got);
    cgam_study_forget(got);
    assert_int_equal(rmdir(folder), 0);
    cgam_study_free(want);
    cgam_study_free(whole);
    cgam_study_free(got);
    for (int k = 0; k < 2; k++) cgam_bank_free(bank[k]);
}

/* The first 40 of 70 trials are the 40 of a shorter run: peak sums differ by the others only. */
TEST(a_trial_does_not_know_how_many_there_are)
{
    OWNED(cgam_env) env = env_with(2, NULL, NULL);
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        cgam_study_opts o = small((cgam_study_kind)k);
        char *a, *b;
        o.banks = k == CGAM_STUDY_RIVALS ? 4 : 1;
        o.trials = 20;
        CHECK_STATUS(env, cgam_study_trial(env, &o, 11, &a));
        o.trials = 12;
        CHECK_STATUS(env, cgam_study_trial(env, &o, 11, &b));
        assert_string_equal(a, b);
        cgam_text_free(env, a);
        cgam_text_free(env, b);
        CHECK_REFUSED(env, CGAM_E_ARG,
                      k == CGAM_STUDY_RIVALS ? "(valid: 0 to 47)" : "(valid: 0 to 11)",
                      cgam_study_trial(env, &o, 12 * o.banks, &a));
        CHECK_FAILS(env, CGAM_E_ARG, cgam_study_trial(env, &o, -1, &a));
    }
}

/* Number of `right` with the value true, anywhere in a document. */
static double rights(json_t *doc)
{
    double sum = 0;
    const char *key;
    json_t *value;
    if (json_is_array(doc))
        for (size_t i = 0; i < json_array_size(doc); i++) sum += rights(json_array_get(doc, i));
    json_object_foreach(doc, key, value) sum +=
        strcmp(key, "right") == 0 ? json_is_true(value) : rights(value);
    return sum;
}

/* With several banks every trial of each can be made again: together they are what was counted. */
TEST(all_trials_of_all_banks_can_be_shown)
{
    static const int kinds[] = {CGAM_STUDY_SEPARATION, CGAM_STUDY_CAPACITY, CGAM_STUDY_PHASE};
    static const double one[] = {1}, two[] = {0, 1.5};
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    for (int k = 0; k < 3; k++) {
        cgam_study_opts o = small((cgam_study_kind)kinds[k]);
        o.trials = 11;
        o.banks = 3;
        o.sigma_q = (cgam_list){one, 1};
        o.lambda = (cgam_list){two, 2};
        OWNED(cgam_study) s = NULL;
        CHECK_STATUS(env, cgam_study_run(env, &o, &s));
        const cgam_table *t = cgam_study_find(s, "accuracy");
        int64_t accuracy = cgam_table_column(t, "accuracy");
        double counted = 0, shown = 0;
        for (int64_t i = 0; i < t->rows; i++) counted += 33 * t->cells[i * t->columns + accuracy];
        for (int trial = 0; trial < 33; trial++) {
            char *text;
            CHECK_STATUS(env, cgam_study_trial(env, &o, trial, &text));
            json_t *doc = json_loads(text, 0, NULL);
            assert_int_equal(json_integer_value(json_object_get(doc, "bank")), trial / 11);
            shown += rights(doc);
            json_decref(doc);
            cgam_text_free(env, text);
        }
        CHECK_CLOSE(shown, counted, 1e-9);
    }
}

/* The peaks of a curve, by penalty, with every penalty once. */
TEST(a_penalty_named_twice_is_one_point)
{
    static const double twice[] = {1.1, 0.2, 0.2, 1.1, 0.2}, once[] = {0.2, 1.1};
    static const int kinds[] = {CGAM_STUDY_COMPETITION, CGAM_STUDY_COUPLED};
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    for (int k = 0; k < 2; k++) {
        cgam_study_opts o = small((cgam_study_kind)kinds[k]);
        OWNED(cgam_study) a = NULL;
        OWNED(cgam_study) b = NULL;
        o.alphas = (cgam_list){once, 2};
        CHECK_STATUS(env, cgam_study_run(env, &o, &a));
        o.alphas = (cgam_list){twice, 5};
        CHECK_STATUS(env, cgam_study_run(env, &o, &b));
        same_tables(a, b);
    }
}

/* One trial shown alone is the trial the study counted. */
TEST(the_mean_of_the_trials_is_the_curve)
{
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    cgam_study_opts o = small(CGAM_STUDY_COUPLED);
    o.trials = 6;
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "curves");
    for (int64_t row = 0; row < t->rows; row++) {
        double sum = 0;
        for (int trial = 0; trial < 6; trial++) {
            char *text;
            CHECK_STATUS(env, cgam_study_trial(env, &o, trial, &text));
            json_t *doc = json_loads(text, 0, NULL);
            json_t *curve = json_array_get(json_object_get(doc, "curves"), (size_t)(row / 5));
            json_t *point = json_array_get(json_object_get(curve, "points"), (size_t)(row % 5));
            sum += json_real_value(json_object_get(point, "peak"));
            json_decref(doc);
            cgam_text_free(env, text);
        }
        /* a trial alone is always integrated finely */
        CHECK_CLOSE(t->cells[row * t->columns + 2], sum / 6, 1e-4);
    }
}

/* Fields of a line of CSV; a comma between quotes separates nothing. */
static int64_t fields_of(const char *line)
{
    int64_t fields = 1;
    bool quoted = false;
    for (const char *c = line; *c; c++) {
        if (*c == '"') quoted = !quoted;
        fields += *c == ',' && !quoted;
    }
    assert_false(quoted);
    return fields;
}

/* n <= d: every cluster has its own alpha_crit, and how far its branch is followed depends on nobody
 * else's. Seven of these sixteen fold, one of them beyond the mean alpha_crit of its bundle's
 * neighbours (tests/oracle/study/exact.py follows the branch with NumPy). */
TEST(folds_do_not_depend_on_the_neighbours)
{
    static const double lambda[] = {0.3}, alphas[] = {0.5};
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    cgam_study_opts o = small(CGAM_STUDY_COUPLED);
    o.n = 8;
    o.d = 12;
    o.seed = 5;
    o.trials = o.fold_trials = 16;
    o.lambda = (cgam_list){lambda, 1};
    o.alphas = (cgam_list){alphas, 1};
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "thresholds");
    double share = t->cells[cgam_table_column(t, "fold_share")], found = 0;
    for (int trial = 0; trial < 16; trial++) {
        char *text;
        CHECK_STATUS(env, cgam_study_trial(env, &o, trial, &text));
        json_t *doc = json_loads(text, 0, NULL);
        json_t *curve = json_array_get(json_object_get(doc, "curves"), 0);
        json_t *fold = json_object_get(curve, "fold");
        found += json_is_real(fold);
        if (json_is_real(fold))
            assert_true(json_real_value(fold) <
                        json_real_value(json_object_get(doc, "alpha_crit")));
        json_decref(doc);
        cgam_text_free(env, text);
    }
    CHECK_CLOSE(found / 16, share, 0);
    CHECK_CLOSE(share, 7 / 16.0, 0);
}

/* Numbers that are all alike have no spread, however the blocks cut them up: below alpha_crit every
 * pair of memories shares its gates evenly. */
TEST(equal_trials_have_no_error)
{
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    cgam_study_opts o = small(CGAM_STUDY_COMPETITION);
    o.n = 7;
    o.spread = 0;
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    const cgam_table *t = cgam_study_find(s, "peak");
    for (int64_t i = 0; i < t->rows; i++) {
        CHECK_CLOSE(t->cells[i * t->columns + cgam_table_column(t, "peak_mean")], 1 / 7.0, 1e-14);
        CHECK_CLOSE(t->cells[i * t->columns + cgam_table_column(t, "peak_se")], 0, 1e-16);
    }
}

static double cell_of(const cgam_study *s, const char *table, int64_t row, const char *column)
{
    const cgam_table *t = cgam_study_find(s, table);
    assert_true(cgam_table_column(t, column) >= 0);
    return t->cells[row * t->columns + cgam_table_column(t, column)];
}

/* Trials of one bank share its memories, so with several banks an error is one between banks: it
 * hardly falls with more trials of each, while one between trials would by a factor of four. */
TEST(errors_are_between_banks)
{
    static const char *const names[][2] = {
        {"accuracy", "p_target_se"}, {"gaps", "median_se"}, {"gaps", "mean_all_se"}};
    static const double noise[] = {1}, lambda[] = {0};
    OWNED(cgam_env) env = env_with(2, NULL, NULL);
    cgam_study *s[2];
    for (int k = 0; k < 2; k++) {
        cgam_study_opts o = small(CGAM_STUDY_SEPARATION);
        o.n = 6; /* few memories: banks differ */
        o.d = 3;
        o.banks = 40;
        o.trials = k ? 4000 : 250;
        o.sigma_q = (cgam_list){noise, 1};
        o.lambda = (cgam_list){lambda, 1};
        CHECK_STATUS(env, cgam_study_run(env, &o, &s[k]));
    }
    for (int j = 0; j < 3; j++)
        CHECK_LE(cell_of(s[0], names[j][0], 0, names[j][1]) / 3,
                 cell_of(s[1], names[j][0], 0, names[j][1]));
    cgam_study_free(s[0]);
    cgam_study_free(s[1]);
}

/* A tolerance of 0 is met when nothing changes any more. */
TEST(a_tolerance_of_zero_can_be_met)
{
    static const double lambda[] = {0.5, 1}, alphas[] = {0, 0.2};
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    cgam_study_opts o = small(CGAM_STUDY_COUPLED);
    o.lambda = (cgam_list){lambda, 2};
    o.alphas = (cgam_list){alphas, 2};
    o.tol = 0;
    OWNED(cgam_study) s = NULL;
    CHECK_STATUS(env, cgam_study_run(env, &o, &s));
    double stopped = 0;
    for (int64_t i = 0; i < 4; i++) stopped += cell_of(s, "curves", i, "unconverged");
    CHECK_LE(stopped, 40); /* of 80: some go on between two neighbouring numbers */
}

TEST(tables_have_the_columns_they_name)
{
    OWNED(cgam_env) env = env_with(2, NULL, NULL);
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        cgam_study_opts o = small((cgam_study_kind)k);
        OWNED(cgam_study) s = NULL;
        char folder[512];
        CHECK_STATUS(env, cgam_study_run(env, &o, &s));
        snprintf(folder, sizeof folder, "%s", scratch("tables"));
        CHECK_STATUS(env, cgam_study_write(s, folder));
        assert_non_null(strstr(s->json, cgam_studies[k].name));
        for (int64_t i = 0; i < s->tables; i++) {
            const cgam_table *t = &s->table[i];
            char path[700], line[4096];
            snprintf(path, sizeof path, "%s/%s.csv", folder, t->name);
            FILE *f = fopen(path, "r");
            assert_non_null(f);
            int64_t lines = 0;
            while (fgets(line, sizeof line, f)) {
                assert_int_equal(fields_of(line), t->columns + (t->labels != NULL));
                if (lines++ == 0) assert_memory_equal(line, t->heads, strlen(t->heads));
            }
            fclose(f);
            assert_int_equal(lines, t->rows + 1);
            unlink(path);
            assert_int_equal(cgam_table_column(t, "no such column"), -1);
            assert_ptr_equal(cgam_study_find(s, t->name), t);
        }
        assert_null(cgam_study_find(s, "nothing"));
        char path[700];
        snprintf(path, sizeof path, "%s/summary.json", folder);
        unlink(path);
        assert_int_equal(rmdir(folder), 0);
    }
}

static bool there(const char *folder, const char *name)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Another study, another seed: what was there goes, with its own names; the user's files stay. */
TEST(a_folder_holds_one_run)
{
    static const char *const files[] = {"peak.csv",   "example.csv",  "onset.csv", "accuracy.csv",
                                        "points.csv", "summary.json", "mine.csv",  "mine.png"};
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    cgam_study *s[3];
    char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch("one"));
    for (int k = 0; k < 3; k++) {
        cgam_study_opts o = small(k == 0 ? CGAM_STUDY_COMPETITION : CGAM_STUDY_SEPARATION);
        o.trials = 8;
        o.seed = (uint64_t)k;
        CHECK_STATUS(env, cgam_study_run(env, &o, &s[k]));
    }
    assert_false(cgam_study_replaces(s[0], folder));
    CHECK_STATUS(env, cgam_study_write(s[0], folder));
    assert_false(cgam_study_replaces(s[0], folder)); /* once more the same is nobody else's */
    put_text("one/mine.csv", "1,2\n");
    put_text("one/mine.png", "picture");
    CHECK_STATUS(env, cgam_study_write(s[0], folder));
    assert_true(there(folder, "peak.csv") && there(folder, "onset.csv"));
    assert_true(cgam_study_replaces(s[1], folder));
    CHECK_STATUS(env, cgam_study_write(s[1], folder));
    for (int i = 0; i < 3; i++) assert_false(there(folder, files[i]));
    for (int i = 3; i < 8; i++) assert_true(there(folder, files[i]));
    assert_true(cgam_study_replaces(s[2], folder)); /* the seed alone */
    /* what a summary names is removed inside its folder only, and not what is no summary of ours */
    put_text("one/summary.json", "{\"study\": \"x\", \"tables\": [\"../one/mine\", 3, null]}");
    CHECK_STATUS(env, cgam_study_write(s[2], folder));
    assert_true(there(folder, "mine.csv"));
    put_text("one/summary.json", "{\"tables\": [\"mine\"]}");
    assert_false(cgam_study_replaces(s[2], folder));
    put_text("one/summary.json", "not JSON");
    CHECK_STATUS(env, cgam_study_write(s[2], folder));
    assert_true(there(folder, "mine.csv") && there(folder, "accuracy.csv"));
    put_text("one/summary.json", "{\"study\": \"x\", \"tables\": [\"mine\"]}");
    CHECK_STATUS(env, cgam_study_write(s[0], folder));
    assert_false(there(folder, "mine.csv"));
    char command[600];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
    for (int k = 0; k < 3; k++) cgam_study_free(s[k]);
}

static void refuse(cgam_env *env, const cgam_study_opts *o, const char *words)
{
    cgam_study *s;
    CHECK_REFUSED(env, CGAM_E_ARG, words, cgam_study_run(env, o, &s));
    assert_null(s);
}

/* What is out of range is in test_params.c, for every row of the table. */
TEST(bad_options_are_named)
{
    OWNED(cgam_env) env = env_with(1, NULL, NULL);
    static const double nan_list[] = {0.5, NAN}, huge[] = {1e6}, tiny[] = {1e-4};
    double many[33]; /* whose square is more than there is room for */
    for (int i = 0; i < 33; i++) many[i] = 0.1 + 0.01 * i;
    cgam_study_opts o = small(CGAM_STUDY_SEPARATION);
    o.sigma_q = (cgam_list){nan_list, 2};
    refuse(env, &o, "sigma-q is nan");
    o = small(CGAM_STUDY_SEPARATION);
    o.lambda = (cgam_list){NULL, 0};
    refuse(env, &o, "lambda: the list is empty");
    o = small(CGAM_STUDY_COMPETITION);
    o.example = 70;
    refuse(env, &o, "example: no trial 70");
    o = small(CGAM_STUDY_CAPACITY);
    o.load = (cgam_list){huge, 1};
    refuse(env, &o, "load 1e+06 needs 16000000 memories, the bank has 65536");
    o.load = (cgam_list){tiny, 1};
    refuse(env, &o, "load is 0.0001, it must be at least 0.001 without a bank");
    o.load = o.sigma_q = (cgam_list){many, 33};
    refuse(env, &o, "33 loads times 33 noise levels");
    o = small(CGAM_STUDY_CONVERGENCE);
    o.lambda = o.betas = (cgam_list){many, 33};
    refuse(env, &o, "combinations of alpha, lambda and beta");
    o = small(CGAM_STUDY_PHASE);
    o.kind = CGAM_STUDY_KINDS;
    refuse(env, &o, "");
    o = small(CGAM_STUDY_PHASE);
    o.x = o.y;
    refuse(env, &o, "x and y must be different axes");
    o = small(CGAM_STUDY_SEPARATION);
    o.coupled = true;
    o.alpha = 1.5;
    cgam_study *s;
    CHECK_FAILS(env, CGAM_E_NOT_POSITIVE, cgam_study_run(env, &o, &s));
    o = small(CGAM_STUDY_SEPARATION);
    o.out = "/proc/nowhere";
    CHECK_FAILS(env, CGAM_E_IO, cgam_study_run(env, &o, &s));
}

/* Sizes the paper does not use: few memories, many dimensions, one of each. */
TEST(other_sizes_work)
{
    OWNED(cgam_env) env = env_with(2, NULL, NULL);
    static const int64_t sizes[][2] = {{2, 1}, {3, 8}, {12, 12}, {61, 23}};
    for (int i = 0; i < 4; i++)
        for (int k = CGAM_STUDY_SEPARATION; k <= CGAM_STUDY_TIMESCALE; k++) {
            cgam_study_opts o = small((cgam_study_kind)k);
            o.n = sizes[i][0];
            o.d = sizes[i][1];
            if (k == CGAM_STUDY_SEPARATION) o.coupled = i % 2 == 0;
            OWNED(cgam_study) s = NULL;
            CHECK_STATUS(env, cgam_study_run(env, &o, &s));
            const char *table = k == CGAM_STUDY_COMPETITION ? "peak" : "curves";
            if (k == CGAM_STUDY_COMPETITION || k == CGAM_STUDY_COUPLED) {
                const cgam_table *t = cgam_study_find(s, table);
                int64_t column = cgam_table_column(t, "peak_mean");
                for (int64_t row = 0; row < t->rows; row++) {
                    double peak = t->cells[row * t->columns + column];
                    CHECK_LE(1 / (double)o.n - 1e-12, peak);
                    CHECK_LE(peak, 1 + 1e-12);
                }
            }
        }
}

static int scenario(cgam_env *env, void *arg)
{
    cgam_study_opts o = small(*(cgam_study_kind *)arg);
    OWNED(cgam_study) s = NULL;
    o.trials = 2;
    if (o.kind >= CGAM_STUDY_CAPACITY) {
        o.lambda.count = o.load.count = o.sigma_q.count = 1;
        o.banks = o.kind == CGAM_STUDY_RIVALS ? 4 : 1;
    }
    cgam_status status = cgam_study_run(env, &o, &s);
    return status;
}

TEST(every_allocation_may_fail)
{
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        cgam_study_kind kind = (cgam_study_kind)k;
        if (kind == CGAM_STUDY_THEOREMS) continue;  /* thousands, all of them in other layers */
        bool many = kind >= CGAM_STUDY_CONVERGENCE; /* most too */
        assert_true(check_some_allocations(scenario, &kind, many ? 101 : 1) > 5);
    }
}

TEST_GROUP(scratch_setup, scratch_teardown)
