/* ctest: timeout=300
 * Experiments called as a library, on a tiny model: one study, every result. */
#include "lab/document.h"
#include "lab/language/dataset.h"
#include "lab/language/study.h"
#include "lab/table.h"
#include "lm/lens.h"
#include "parts.h"
#include "support/models.h"
#include "support/objects.h"

#include <unistd.h>

#include "support/owned.h"

static int set_up(void **state)
{
    (void)state;
    model_file(200);
    FILE *f = fopen(folder_file("d.tsv"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 40; i++)
        fprintf(f, "%s\tfilm %d is %s\n", i % 2 ? "positive" : "negative", i,
                i % 2 ? "good" : "bad");
    fclose(f);
    return 0;
}

static const int64_t two_shots[] = {2};

static cgam_lm_study_opts options(void)
{
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    opts.model = folder_file("m.gguf");
    opts.eval = folder_file("d.tsv");
    opts.queries = 12;
    opts.shots = two_shots;
    opts.shots_count = 1;
    opts.exact = true;
    return opts;
}

static cgam_lm_study *open_study(cgam_env *env, const cgam_lm_study_opts *opts)
{
    cgam_lm_study *study = NULL;
    cgam_status status = cgam_lm_study_open(env, opts, &study);
    need_llama(env, status);
    return study;
}

static json_t *document(const cgam_lm_result *result)
{
    json_t *doc = json_loads(result->json, 0, NULL);
    assert_non_null(doc);
    return doc;
}

TEST(a_sweep_is_a_call)
{
    OWNED(cgam_env) env = object_env(2);
    cgam_lm_study_opts opts = options();
    OWNED(cgam_lm_study) study = open_study(env, &opts);
    OWNED(cgam_lm_result) result = NULL;
    CHECK_STATUS(env, cgam_lm_sweep(study, NULL, &result));
    int64_t layers = cgam_lm_describe(study->lm).layers + 1;
    assert_int_equal(result->tables, 4);
    const cgam_table *cells = &result->table[0];
    assert_string_equal(cells->name, "sweep");
    assert_int_equal(cells->rows, layers * layers);
    int64_t restricted = cgam_table_column(cells, "restricted");
    assert_true(restricted >= 0);
    double best = 0;
    for (int64_t i = 0; i < cells->rows; i++)
        best = fmax(best, cells->cells[i * cells->columns + restricted]);
    OWNED(json_t) doc = document(result);
    const json_t *shot = json_array_get(json_object_get(doc, "shots"), 0);
    assert_true(cgam_json_get_real(shot, "best.restricted.accuracy") == best);
    assert_int_equal(cgam_json_get_int(doc, "queries"), 12);
}

TEST(the_whole_study_is_its_parts)
{
    OWNED(cgam_env) env = object_env(2);
    cgam_lm_study_opts opts = options();
    OWNED(cgam_lm_study) study = open_study(env, &opts);
    OWNED(cgam_lm_result) all = NULL;
    OWNED(cgam_lm_result) one = NULL;
    CHECK_STATUS(env, run_all_parts(study, &all));
    assert_int_equal(all->tables, 3 + 4 + 1 + 2);
    OWNED(json_t) doc = document(all);
    for (int p = 0; p < CGAM_LM_PARTS; p++) {
        cgam_lm_part part;
        assert_true(cgam_lm_part_find(cgam_lm_part_name((cgam_lm_part)p), &part) && (int)part == p);
        assert_true(json_is_object(json_object_get(doc, cgam_lm_part_name(part))));
    }
    /* About classes, so steering took the shipped facts; neff alone is the same again. */
    assert_string_equal(cgam_json_get_text(doc, "steer.dataset"), "facts");
    assert_string_equal(cgam_json_get_text(doc, "neff.dataset"), folder_file("d.tsv"));
    CHECK_STATUS(env, cgam_lm_neff(study, NULL, &one));
    OWNED(json_t) neff = document(one);
    assert_true(json_equal(json_object_get(neff, "curves"), cgam_json_at(doc, "neff.curves")));
    assert_memory_equal(one->table[0].cells, all->table[0].cells,
                        (size_t)(one->table[0].rows) * sizeof(double));
}

/* The share of all parts that was told: it never falls, every call has one, and it ends at all. */
typedef struct shares {
    double last, largest_step;
    int64_t calls, without, at_end;
} shares;

static void note_share(void *user, const cgam_progress_at *at)
{
    shares *s = user;
    s->calls++;
    if (at->all_total <= 0) s->without++;
    double share = at->all_done / at->all_total;
    assert_true(share >= s->last - 1e-12 && share <= 1);
    if (share - s->last > s->largest_step) s->largest_step = share - s->last;
    s->last = share;
    s->at_end += share > 1 - 1e-12;
}

TEST_ENV(progress_is_one_share_of_all_parts)
{
    const char *store = folder_file("s.db");
    /* without a store every part runs its prompts; with one they are run once; then none is */
    for (int round = 0; round < 3; round++) {
        shares seen = {0};
        cgam_lm_study_opts opts = options();
        opts.progress = (cgam_progress){note_share, &seen};
        opts.store = round > 0 ? store : NULL;
        OWNED(cgam_lm_study) study = open_study(env, &opts);
        OWNED(cgam_lm_result) all = NULL;
        CHECK_STATUS(env, run_all_parts(study, &all));
        assert_true(seen.calls > 20 && seen.without == 0);
        CHECK_CLOSE(seen.last, 1, 1e-9);
        assert_true(seen.largest_step < 0.3 && seen.at_end == 1);
        /* what was planned is what was run */
        OWNED(json_t) doc = document(all);
        double planned = 0, ran = 0;
        for (int i = 0; i < study->plan.count; i++) {
            assert_true(study->plan.run[i].begun);
            planned += study->plan.run[i].work;
        }
        for (int p = 0; p < CGAM_LM_PARTS; p++) {
            const json_t *part = json_object_get(doc, cgam_lm_part_name((cgam_lm_part)p));
            ran += (double)cgam_json_get_int(part, "capture.tokens");
        }
        CHECK_CLOSE(planned, ran, 0);
        assert_true(round < 2 ? ran > 0 : ran == 0);
    }
    /* the second of two studies tells the second half */
    shares half = {.last = 0.5};
    cgam_lm_study_opts opts = options();
    opts.progress = (cgam_progress){note_share, &half};
    opts.turn = 1, opts.turns = 2;
    cgam_lm_study *study = open_study(env, &opts);
    cgam_lm_result *all;
    CHECK_STATUS(env, run_all_parts(study, &all));
    CHECK_CLOSE(half.last, 1, 1e-9);
    cgam_lm_result_free(all);
    cgam_lm_study_close(study);
    remove(store);
}

/* ---- Interruptions ------------------------------------------------------------------------- */
static int64_t asks_left, asked;

static bool stop_soon(void *user)
{
    (void)user;
    asked++;
    return asks_left-- <= 0;
}

/* What clocks and the store's luck put into a document goes out of it. */
static void forget_time(json_t *doc)
{
    const char *key;
    json_t *value;
    void *next;
    size_t i;
    json_array_foreach(doc, i, value) forget_time(value);
    json_object_foreach_safe(doc, next, key, value)
    {
        if (strstr(key, "seconds") || strcmp(key, "capture") == 0) json_object_del(doc, key);
        else forget_time(value);
    }
}

static void check_same(const cgam_lm_result *a, const cgam_lm_result *b)
{
    assert_int_equal(a->tables, b->tables);
    for (int64_t i = 0; i < a->tables; i++) {
        const cgam_table *x = &a->table[i], *y = &b->table[i];
        assert_string_equal(x->name, y->name);
        assert_string_equal(x->heads, y->heads);
        assert_int_equal(x->rows, y->rows);
        assert_memory_equal(x->cells, y->cells, (size_t)(x->rows * x->columns) * sizeof *x->cells);
    }
    OWNED(json_t) one = document(a);
    OWNED(json_t) two = document(b);
    forget_time(one);
    forget_time(two);
    assert_true(json_equal(one, two));
}

/* All seven parts, stopped again and again: what is finished is not done again, and all of it is as if
 * nothing had happened. */
TEST(an_interrupted_study_goes_on)
{
    const char *kept = folder_file("kept"), *store = folder_file("kept.db");
    cgam_env_opts how = cgam_env_opts_default();
    how.threads = 1;
    how.interrupted = stop_soon;
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&how, &env));
    cgam_lm_study_opts opts = options();
    opts.parts = (1U << CGAM_LM_EXPERIMENTS) - 1;
    opts.store = store;
    asks_left = INT64_MAX;
    cgam_lm_study *study = open_study(env, &opts);
    cgam_lm_result *whole, *got = NULL;
    asked = 0;
    CHECK_STATUS(env, run_all_parts(study, &whole));
    int64_t all = asked, stops = 0, used = 0;
    cgam_lm_study_close(study);
    opts.resume = kept;
    for (int round = 0; round < 400 && !got; round++, stops++) {
        asked = 0;
        asks_left = (round + 2) * all / 10; /* some parts are one piece */
        study = open_study(env, &opts);
        cgam_status status = run_all_parts(study, &got);
        assert_true(status == CGAM_OK || status == CGAM_E_INTERRUPTED);
        used += asked;
        cgam_lm_study_close(study);
        if (got) break;
    }
    assert_non_null(got);
    assert_true(stops >= 2);
    check_same(whole, got);
    cgam_lm_result_free(got);
    /* a stop costs what was in hand and the readings before it, not the parts before it */
    assert_true(used < 2 * all);
    asked = 0; /* again: everything is there */
    asks_left = INT64_MAX;
    study = open_study(env, &opts);
    CHECK_STATUS(env, run_all_parts(study, &got));
    assert_true(asked < all / 50);
    check_same(whole, got);
    cgam_lm_result_free(got);
    cgam_lm_study_close(study);
    /* another seed is another run: nothing of this one is taken */
    opts.seed = 2;
    opts.parts = 1U << CGAM_LM_NEFF;
    study = open_study(env, &opts);
    size_t size;
    assert_null(cgam_kept_bytes(study, "neff", &size));
    /* a record that is no result is as none */
    static const char *const bad[] = {"", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", "12345678{}"};
    CHECK_STATUS(env, cgam_kept_add(study, "neff", bad[1], 10));
    CHECK_STATUS(env, cgam_kept_add(study, "sweep", bad[2], 10));
    CHECK_STATUS(env, cgam_kept_add(study, "steer", bad[0], 0));
    cgam_lm_study_close(study);
    study = open_study(env, &opts);
    for (int part = CGAM_LM_NEFF; part <= CGAM_LM_STEER; part++) {
        const char *name = cgam_lm_part_name((cgam_lm_part)part);
        assert_non_null(cgam_kept_bytes(study, name, &size));
        CHECK_STATUS(env, cgam_kept_result(study, name, &got));
        assert_null(got);
    }
    cgam_lm_study_close(study);
    cgam_lm_result_free(whole);
}

/* The share of seven parts, from a cold start and from a store: it does not fall, and ends at all. */
TEST_ENV(all_parts_share_the_time)
{
    shares seen = {0};
    cgam_lm_study_opts opts = options();
    opts.parts = (1U << CGAM_LM_EXPERIMENTS) - 1;
    opts.progress = (cgam_progress){note_share, &seen};
    OWNED(cgam_lm_study) study = open_study(env, &opts);
    OWNED(cgam_lm_result) all = NULL;
    CHECK_STATUS(env, run_all_parts(study, &all));
    assert_true(seen.calls > 20 && seen.without == 0);
    assert_true(seen.last > 0.9 && seen.last <= 1);
    for (int i = 0; i < study->plan.count; i++) assert_true(study->plan.run[i].begun);
}

/* The same kind of file is facts or classes by what it was read as, whatever its name. */
TEST_ENV(facts_are_known_by_the_data)
{
    cgam_lm_study_opts opts = options();
    opts.eval = NULL;
    opts.dataset = "facts";
    OWNED(cgam_lm_study) study = open_study(env, &opts);
    cgam_lm_result *result = NULL;
    CHECK_STATUS(env, cgam_lm_study_part(study, CGAM_LM_PROBE, &result));
    assert_null(result);
    assert_int_equal(cgam_lm_probe(study, &result), CGAM_E_ARG);
    assert_non_null(strstr(cgam_env_message(env), "requires classes"));
    assert_true(study->task.eval->facts);
}

TEST_ENV(what_cannot_be_opened_is_said)
{
    cgam_lm_study *study;
    const struct {
        const char *field, *message;
    } cases[] = {{"{x} {z} {y}", "{z}"},          {"{x}\\q{y}", "\\q"}, {"{x} {y} \\", "\\ is not"},
                 {"{y} {x}", "must contain {x}"}, {"{x}{x}{y}", "{x}"}, {"{x} {y} {Y}", "{Y}"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cgam_lm_study_opts opts = options();
        opts.wording = cases[i].field;
        assert_int_equal(cgam_lm_study_open(env, &opts, &study), CGAM_E_ARG);
        assert_null(study);
        if (!strstr(cgam_env_message(env), cases[i].message))
            fail_msg("%s: %s", cases[i].field, cgam_env_message(env));
    }
    cgam_lm_study_opts opts = options();
    const int64_t negative[] = {-1};
    opts.shots = negative;
    assert_int_equal(cgam_lm_study_open(env, &opts, &study), CGAM_E_ARG);
    opts = options();
    opts.dataset = "nothing";
    opts.eval = NULL;
    assert_int_equal(cgam_lm_study_open(env, &opts, &study), CGAM_E_NOT_FOUND);
}

TEST_ENV(the_unembedding_is_a_bank)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    OWNED(cgam_lens) lens = NULL;
    cgam_bank *bank;
    CHECK_STATUS(env, cgam_lens_new(lm, &lens));
    int64_t d = lens->width;
    OWNED_BLOCK(double) row = calloc((size_t)d, sizeof *row);
    OWNED_BLOCK(float) h = calloc((size_t)d, sizeof *h);
    for (int64_t j = 0; j < d; j++) h[j] = (float)(j % 7) - 3;
    for (int kind = CGAM_LENS_RAW; kind <= CGAM_LENS_GAIN; kind++) {
        CHECK_STATUS(env, cgam_lm_bank(lm, (cgam_lens_kind)kind, CGAM_F32, &bank));
        assert_int_equal(cgam_bank_describe(bank).n, lens->vocab);
        CHECK_STATUS(env, cgam_bank_row(bank, 5, row));
        double score = 0;
        for (int64_t j = 0; j < d; j++) score += row[j] * (double)h[j];
        CHECK_CLOSE(score, cgam_lens_dot(lens, (cgam_lens_kind)kind, 5, h), 1e-5);
        cgam_bank_free(bank);
    }
    assert_int_equal(cgam_lm_bank(lm, CGAM_LENS_NORM, CGAM_F32, &bank), CGAM_E_ARG);
}

TEST_GROUP(set_up, NULL)
