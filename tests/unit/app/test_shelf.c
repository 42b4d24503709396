/* What stays between calls: who goes first, who is never shared, what a failed allocation leaves. */
#include "app/input.h"
#include "lab/shelf.h"
#include "lm/model.h"
#include "memory/bank.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/one_env.h"

#include <cgam/ask.h>
#include <cgam/lm.h>

#include "support/owned.h"

/* A shelf with the bank of the demo on it. */
static cgam_shelf *shelf_of(size_t bytes, cgam_bank **bank)
{
    cgam_shelf *shelf;
    CHECK_STATUS(env, cgam_shelf_new(env, bytes, &shelf));
    CHECK_STATUS(env, cgam_demo_bank(env, 1, bank));
    CHECK_STATUS(env, cgam_shelf_add(shelf, CGAM_DEMO_PREFIX, *bank));
    return shelf;
}

static const cgam_gate *take(cgam_shelf *shelf, const cgam_bank *bank, double alpha)
{
    cgam_recall_opts opts = cgam_recall_opts_default();
    const cgam_gate *gate;
    opts.alpha = alpha;
    CHECK_STATUS(env, cgam_shelf_gate(shelf, bank, &opts, &gate));
    assert_non_null(gate);
    return gate;
}

/* Was it there? */
static bool touch(cgam_shelf *shelf, const cgam_bank *bank, double alpha)
{
    int64_t hits = cgam_shelf_describe(shelf).hits;
    cgam_shelf_gate_done(shelf, take(shelf, bank, alpha));
    return cgam_shelf_describe(shelf).hits > hits;
}

TEST_WITH(set_up, tear_down, what_was_used_least_lately_goes)
{
    cgam_bank *bank;
    cgam_shelf *shelf = shelf_of(SIZE_MAX, &bank);
    assert_false(touch(shelf, bank, 0.1));
    size_t one = cgam_shelf_describe(shelf).bytes;
    assert_true(one > 0);
    cgam_shelf_free(shelf);
    shelf = shelf_of(2 * one + one / 2, &bank); /* room for two */
    assert_false(touch(shelf, bank, 0.1));
    assert_false(touch(shelf, bank, 0.2));
    assert_true(touch(shelf, bank, 0.1));
    assert_false(touch(shelf, bank, 0.3)); /* 0.2 goes */
    assert_int_equal(cgam_shelf_describe(shelf).gates, 2);
    assert_true(cgam_shelf_describe(shelf).bytes <= 2 * one + one / 2);
    assert_true(touch(shelf, bank, 0.1));
    assert_true(touch(shelf, bank, 0.3));
    assert_false(touch(shelf, bank, 0.2));
    assert_false(touch(shelf, bank, 0.1));
    cgam_shelf_free(shelf);
}

TEST_WITH(set_up, tear_down, what_is_in_use_stays)
{
    cgam_bank *bank;
    OWNED(cgam_shelf) shelf = shelf_of(0, &bank);
    const cgam_gate *a = take(shelf, bank, 0.1), *b = take(shelf, bank, 0.1);
    assert_ptr_equal(a, b);
    cgam_shelf_gate_done(shelf, a);
    assert_int_equal(cgam_shelf_describe(shelf).gates, 1);
    assert_true(cgam_gate_describe(b).alpha == 0.1);
    cgam_shelf_gate_done(shelf, b);
    assert_int_equal(cgam_shelf_describe(shelf).gates, 0);
    assert_int_equal(cgam_shelf_describe(shelf).bytes, 0);
    OWNED(cgam_bank) other = NULL;
    const cgam_gate *none;
    cgam_recall_opts opts = cgam_recall_opts_default();
    CHECK_STATUS(env, cgam_demo_bank(env, 1, &other));
    CHECK_STATUS(env, cgam_shelf_gate(shelf, other, &opts, &none));
    assert_null(none); /* a bank of somebody else's */
}

TEST_WITH(set_up, tear_down, views_of_a_bank_are_made_once)
{
    cgam_bank *bank, *again, *views[4];
    OWNED(cgam_shelf) shelf = shelf_of(SIZE_MAX, &bank);
    for (int v = 3; v >= 0; v--) {
        CHECK_STATUS(env, cgam_shelf_bank(shelf, CGAM_DEMO_PREFIX, v & 1, v & 2, &views[v]));
        CHECK_STATUS(env, cgam_shelf_bank(shelf, CGAM_DEMO_PREFIX, v & 1, v & 2, &again));
        assert_ptr_equal(views[v], again);
        assert_true(cgam_shelf_owns(shelf, again));
        assert_int_equal(cgam_bank_describe(again).sketch, (v & 2) != 0);
        assert_int_equal(cgam_bank_describe(again).n, 60);
    }
    assert_ptr_equal(views[0], bank);
    cgam_row_names *names;
    CHECK_STATUS(env, cgam_row_names_new(env, "a\nb\n", 4, &names));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_shelf_name(shelf, CGAM_DEMO_PREFIX, names));
    assert_null(cgam_shelf_names(shelf, CGAM_DEMO_PREFIX));
}

TEST_WITH(set_up, tear_down, a_model_serves_one_call_at_a_time)
{
    cgam_lm *a, *b, *again;
    const cgam_lens *lens;
    cgam_shelf *shelf;
    cgam_lm_close(model_tiny(env, tiny_shape_default())); /* skips without libllama */
    const char *path = folder_file("t.gguf");
    tiny_write(path, tiny_shape_default());
    CHECK_STATUS(env, cgam_shelf_new(env, SIZE_MAX, &shelf));
    CHECK_STATUS(env, cgam_shelf_model(shelf, path, &a));
    CHECK_STATUS(env, cgam_shelf_model(shelf, path, &b));
    assert_ptr_not_equal(a, b);
    CHECK_STATUS(env, cgam_lm_lens(a, &lens));
    size_t before = cgam_shelf_describe(shelf).bytes;
    cgam_shelf_model_done(shelf, a);
    cgam_lm_info info = cgam_lm_describe(a);
    assert_int_equal(cgam_shelf_describe(shelf).bytes,
                     before + (size_t)(info.vocab * info.width) * sizeof(float));
    cgam_shelf_model_done(shelf, b); /* one that is free is enough */
    assert_int_equal(cgam_shelf_describe(shelf).models, 1);
    CHECK_STATUS(env, cgam_shelf_model(shelf, path, &again));
    assert_ptr_equal(again, a);
    assert_int_equal(cgam_shelf_describe(shelf).opened, 2);
    cgam_shelf_model_done(shelf, again);
    cgam_shelf_free(shelf);
    CHECK_STATUS(env, cgam_shelf_new(env, 0, &shelf)); /* no room: closed when it is given back */
    CHECK_STATUS(env, cgam_shelf_model(shelf, path, &a));
    assert_int_equal(cgam_shelf_describe(shelf).models, 1);
    cgam_shelf_model_done(shelf, a);
    assert_int_equal(cgam_shelf_describe(shelf).models, 0);
    unlink(path);
    assert_int_not_equal(cgam_shelf_model(shelf, path, &a), CGAM_OK);
    cgam_shelf_free(shelf);
}

static int fill_shelf(cgam_env *on, void *arg)
{
    (void)arg;
    OWNED(cgam_shelf) shelf = NULL;
    cgam_bank *bank = NULL;
    cgam_row_names *names = NULL;
    const cgam_gate *gate = NULL;
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.alpha = 0.1;
    TRY(cgam_shelf_new(on, SIZE_MAX, &shelf));
    TRY(cgam_demo_bank(on, 1, &bank));
    TRY(cgam_shelf_add(shelf, CGAM_DEMO_PREFIX, bank));
    TRY(cgam_demo_names(on, &names));
    TRY(cgam_shelf_name(shelf, CGAM_DEMO_PREFIX, names));
    TRY(cgam_shelf_bank(shelf, CGAM_DEMO_PREFIX, true, true, &bank));
    TRY(cgam_shelf_gate(shelf, bank, &opts, &gate));
    cgam_shelf_gate_done(shelf, gate);
    return CGAM_OK;
}

static int ask_verb(cgam_env *on, void *arg)
{
    const char *const *what = arg;
    cgam_document answer;
    cgam_status status = cgam_ask(on, what[0], what[1], NULL, &answer);
    cgam_text_free(on, answer.text);
    return status;
}

TEST(every_allocation_may_fail)
{
    assert_true(check_every_allocation(fill_shelf, NULL) > 20);
    static const char *const recall[] = {
        "recall", "{\"bank\": \"demo:\", \"query\": \"rows:lamp+7\", \"context\": \"rows:key\", "
                  "\"names\": true, \"explain\": true, \"marks\": true, \"mode\": \"coupled\", "
                  "\"alpha\": 0.1, \"threads\": 1}"};
    static const char *const map[] = {
        "map", "{\"bank\": \"demo:\", \"context\": \"rows:key\", \"from\": \"rows:lamp\", "
               "\"grid\": 3, \"through\": [1, 2], \"t-max\": 1, \"threads\": 1}"};
    static const char *const names[] = {"bank names", "{\"bank\": \"demo:\", \"prefix\": \"k\"}"};
    check_some_allocations(ask_verb, (void *)(uintptr_t)recall, 997); /* of 20,000 */
    check_some_allocations(ask_verb, (void *)(uintptr_t)map, 37);     /* of 1,200 */
    check_every_allocation(ask_verb, (void *)(uintptr_t)names);
}
