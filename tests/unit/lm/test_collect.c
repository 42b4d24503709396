/* Collecting states: prompts that are alike, what a store refuses, going on with what was stopped, prompts of one's own, and
 * failures on the way, after which the store holds whole batches or nothing. */
#include "io/file.h"
#include "lm/collect.h"
#include "lm/prompt_file.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/one_env.h"

#include <cgam/lm.h>
#include <sqlite3.h>

#include "support/owned.h"

enum { WIDTH = 64, LAYERS = 3, ONE = (LAYERS + 1) * WIDTH };

static const char *path;

static int begin(void **state)
{
    path = folder_file("s.db");
    model_file(0);
    return set_up(state);
}

static void remove_store(void)
{
    static const char *const files[] = {"s.db", "s.db-wal", "s.db-shm"};
    for (int i = 0; i < 3; i++) unlink(folder_file(files[i]));
}

static int end(void **state)
{
    remove_store();
    return tear_down(state);
}

static const int32_t tokens[] = {1, 40, 50, 60, 70, 80};

/* Twice the same, one that goes on, and another that goes on from there; each state is that of the prompt alone. */
TEST_WITH(begin, end, prompts_that_are_alike_have_their_own_states)
{
    static const int64_t length[] = {4, 6, 4, 5, 2};
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_prompt prompts[5];
    static float all[5][ONE], alone[ONE];
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.capture.exact = true;
    for (int i = 0; i < 5; i++) prompts[i] = (cgam_lm_prompt){tokens, length[i]};
    CHECK_STATUS(env, cgam_lm_collect(lm, NULL, 5, prompts, NULL, &opts, all[0], NULL));
    for (int i = 0; i < 5; i++) {
        CHECK_STATUS(env, cgam_lm_collect(lm, NULL, 1, &prompts[i], NULL, &opts, alone, NULL));
        CHECK_LE(model_distance(all[i], alone, ONE), 1e-5);
    }
    /* not to the bit: a row of sgemm may depend on its place among the others */
    CHECK_LE(model_distance(all[0], all[2], ONE), 1e-6);
    assert_true(model_distance(all[0], all[1], ONE) > 1e-3);
}

TEST_WITH(begin, end, what_a_store_cannot_keep_is_refused)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    const cgam_lm_prompt prompt = {tokens, 4};
    const cgam_lm_edits none = {NULL, 0};
    OWNED(cgam_store) store = NULL;
    CHECK_STATUS(env, cgam_store_open(env, path, true, &store));
    const cgam_collect_opts usual = cgam_collect_opts_default();
    cgam_collect_opts opts = usual;
    opts.dtype = CGAM_F64;
    CHECK_REFUSED(env, CGAM_E_ARG, "states are stored as f32, f16 or bf16, not f64",
                  cgam_lm_collect(lm, store, 1, &prompt, NULL, &opts, NULL, NULL));
    opts = usual;
    opts.capture.edits_each = &none;
    CHECK_REFUSED(env, CGAM_E_ARG, "states computed with edits cannot be stored",
                  cgam_lm_collect(lm, store, 1, &prompt, NULL, &opts, NULL, NULL));
    opts = usual;
    opts.all_tokens = true;
    CHECK_REFUSED(env, CGAM_E_ARG, "states of all tokens require a store",
                  cgam_lm_collect(lm, NULL, 1, &prompt, NULL, &opts, NULL, NULL));
}

static int64_t ask_store(const char *question)
{
    sqlite3 *db;
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, question, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const int64_t answer = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    return answer;
}

/* Batches are those of a run that finds nothing: what is there is run once more, and stays as it is. */
TEST_WITH(begin, end, what_is_there_is_not_written_again)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    cgam_lm_prompt prompts[] = {{tokens, 4}, {tokens + 1, 3}, {tokens, 6}};
    OWNED(cgam_store) store = NULL;
    cgam_store_verdict after;
    cgam_collected report;
    char question[80];
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.all_tokens = true;
    CHECK_STATUS(env, cgam_store_open(env, path, true, &store));
    CHECK_STATUS(env, cgam_lm_collect(lm, store, 2, prompts, NULL, &opts, NULL, &report));
    const int64_t spans = ask_store("SELECT count(*) FROM span");
    snprintf(question, sizeof question, "SELECT count(*) FROM span WHERE id <= %d",
             (int)ask_store("SELECT max(id) FROM span"));
    CHECK_STATUS(env, cgam_lm_collect(lm, store, 3, prompts, NULL, &opts, NULL, &report));
    assert_true(report.found == 2 && report.computed == 1);
    CHECK_STATUS(env, cgam_store_check(store, &after));
    assert_true(after.sound && ask_store("SELECT count(*) FROM span") > spans);
    assert_int_equal(ask_store(question), spans); /* a row that is replaced gets another id */
}

enum { TEXTS = 18, FAR = 300 };

/* Texts of up to FAR tokens; all begin alike in 6, thirds of them in 10, 40 or 20, and the shortest, which come last, are of one third. */
static void fill_texts(int32_t (*text)[FAR], cgam_lm_prompt *prompt)
{
    static const int alike[] = {10, 40, 20}, least[] = {220, 120, 24};
    cgam_rng rng = cgam_rng_stream(6, 0);
    for (int i = 0; i < TEXTS; i++) {
        for (int k = 0; k < FAR; k++)
            text[i][k] = k < 6              ? 1 + k
                         : k < alike[i % 3] ? 7 + (k * (3 + i % 3)) % 250
                                            : (int32_t)cgam_rng_below(&rng, 270);
        prompt[i] = (cgam_lm_prompt){text[i], least[i % 3] + (int64_t)cgam_rng_below(&rng, 60)};
    }
}

/* How far a capture is, and where it is to be stopped. */
typedef struct watch {
    double stop_at, done, total;
} watch;

static void look_on(void *user, const cgam_progress_at *at)
{
    watch *w = user;
    w->done = at->done;
    w->total = at->total;
}

static bool is_over(void *user)
{
    const watch *w = user;
    return w->done >= w->stop_at * w->total && w->done > 0;
}

/* A capture in batches of `batch` tokens that is stopped and goes on ends with the bits of one that was left alone. Returns how many
 * prompts it had found. */
static int64_t goes_on(const cgam_lm_prompt *prompt, tiny_shape shape, bool exact, int64_t batch,
                       double stop_at)
{
    static float whole[TEXTS][ONE], resumed[TEXTS][ONE];
    watch w = {.stop_at = 2};
    const cgam_env_opts own = {.threads = 1, .interrupted = is_over, .user = &w};
    OWNED(cgam_env) watched = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&own, &watched));
    OWNED(cgam_lm) lm = model_tiny(watched, shape);
    OWNED(cgam_store) store = NULL;
    cgam_collected report;
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.capture.exact = exact;
    opts.capture.batch_tokens = batch;
    opts.capture.progress = (cgam_progress){look_on, &w};
    CHECK_STATUS(watched, cgam_lm_collect(lm, NULL, TEXTS, prompt, NULL, &opts, whole[0], &report));
    remove_store();
    CHECK_STATUS(watched, cgam_store_open(watched, path, true, &store));
    w = (watch){.stop_at = stop_at};
    cgam_status status = cgam_lm_collect(lm, store, TEXTS, prompt, NULL, &opts, NULL, &report);
    if (status != CGAM_E_INTERRUPTED)
        CHECK_STATUS(watched, status); /* the last batch was on its way */
    w = (watch){.stop_at = 2};
    CHECK_STATUS(watched,
                 cgam_lm_collect(lm, store, TEXTS, prompt, NULL, &opts, resumed[0], &report));
    assert_int_equal(report.found + report.computed, TEXTS);
    assert_memory_equal(resumed, whole, sizeof whole);
    return report.found;
}

TEST_WITH(begin, end, who_goes_on_ends_with_the_same_bits)
{
    static const int64_t batch[] = {0, 1, 7, 100, 512, 1 << 16};
    static const double stop_at[] = {0.4, 0.9};
    static int32_t text[TEXTS][FAR];
    cgam_lm_prompt prompt[TEXTS];
    tiny_shape shape = tiny_shape_default();
    shape.context = FAR;
    fill_texts(text, prompt);
    for (int exact = 0; exact < 2; exact++) {
        int64_t found = 0;
        for (size_t k = 0; k < 2 * sizeof batch / sizeof *batch; k++)
            found += goes_on(prompt, shape, exact, batch[k / 2], stop_at[k % 2]);
        assert_true(found > 2 * TEXTS && found < 11 * TEXTS);
    }
}

/* Of other prompts than those of a run that was stopped, the plain pass runs what is missing, and no more. */
TEST_WITH(begin, end, what_a_store_has_is_not_run_again)
{
    static int32_t text[TEXTS][FAR];
    cgam_lm_prompt prompt[TEXTS];
    tiny_shape shape = tiny_shape_default();
    shape.context = FAR;
    OWNED(cgam_lm) lm = model_tiny(env, shape);
    OWNED(cgam_store) store = NULL;
    cgam_collected report;
    watch w = {0};
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.capture.exact = true;
    opts.capture.batch_tokens = 512;
    opts.capture.progress = (cgam_progress){look_on, &w};
    fill_texts(text, prompt);
    CHECK_STATUS(env, cgam_store_open(env, path, true, &store));
    CHECK_STATUS(env, cgam_lm_collect(lm, store, TEXTS - 1, prompt, NULL, &opts, NULL, &report));
    CHECK_STATUS(env, cgam_lm_collect(lm, store, TEXTS, prompt, NULL, &opts, NULL, &report));
    assert_int_equal(report.computed, 1);
    CHECK_CLOSE(w.total, (double)prompt[TEXTS - 1].count, 0);
    CHECK_CLOSE(w.done, w.total, 0);
}

/* A trigger, made once the store is open, refuses rows of one table; what came before them in the batch is taken back, and the reason is told. */
TEST_WITH(begin, end, a_batch_that_fails_is_taken_back)
{
    static const char *const tables[] = {"state", "place", "span"};
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    const cgam_lm_prompt prompts[] = {{tokens, 4}, {tokens + 1, 3}};
    const cgam_store_place places[] = {{"s", "true", NULL, 1, 0, 0}, {"s", "true", NULL, 1, 0, 1}};
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.all_tokens = true;
    opts.places = places;
    for (int i = 0; i < 3; i++) {
        OWNED(cgam_store) store = NULL;
        cgam_store_verdict verdict;
        char trigger[160];
        sqlite3 *db;
        remove_store();
        CHECK_STATUS(env, cgam_store_open(env, path, true, &store));
        snprintf(trigger, sizeof trigger,
                 "CREATE TRIGGER t BEFORE INSERT ON %s BEGIN SELECT RAISE(FAIL, 'none today'); END",
                 tables[i]);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, trigger, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_true(cgam_lm_collect(lm, store, 2, prompts, NULL, &opts, NULL, NULL) != CGAM_OK);
        CHECK_MESSAGE(env, "none today");
        CHECK_STATUS(env, cgam_store_check(store, &verdict));
        assert_true(verdict.sound && verdict.rows == 0);
    }
}

typedef struct asked {
    bool chat, places, plain; /* plain: default options */
} asked;

/* Two prompts of one's own. */
static int collect_own(cgam_env *on, void *arg)
{
    const asked *of = arg;
    static const char text[] =
        "{\"prompt\": \"the film\", \"label\": \"good\"}\n{\"prompt\": \"a\"}";
    static const cgam_store_place places[] = {{"s", "true", NULL, 1, 0, 0},
                                              {"s", "true", NULL, 1, 0, 1}};
    const cgam_file bytes = cgam_file_borrow(text, strlen(text));
    static float states[2][ONE];
    OWNED(cgam_prompt_file) file = NULL;
    OWNED(cgam_lm) lm = NULL;
    OWNED(cgam_store) store = NULL;
    cgam_collect_opts opts = cgam_collect_opts_default();
    opts.chat = of->chat;
    if (of->places) opts.places = places;
    remove_store();
    TRY(cgam_prompt_file_read(on, "p", &bytes, &file));
    TRY(cgam_lm_open(on, folder_file("m.gguf"), &lm));
    TRY(cgam_store_open(on, path, true, &store));
    TRY(cgam_lm_collect_prompts(lm, store, file, of->plain ? NULL : &opts, states[0], NULL));
    return CGAM_OK;
}

TEST_WITH(begin, end, own_prompts_are_collected_or_the_reason_is_told)
{
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    asked of = {.plain = true};
    assert_true(check_every_place(collect_own, &of) > 20);
    of = (asked){.places = true};
    assert_int_equal(collect_own(env, &of), CGAM_OK);
    of = (asked){.chat = true};
    assert_int_equal(collect_own(env, &of), CGAM_E_UNSUPPORTED);
    CHECK_MESSAGE(env, "the model has no chat template");
}
