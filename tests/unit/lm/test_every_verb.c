/* ctest: timeout=600
 * The lm verbs whole, on a tiny model, as a door runs them: memory that ends at some request, or a wish to stop, comes back as a
 * status with a message, and nothing is left allocated. */
#include "support/failing_alloc.h"
#include "unit/lm/verbs.h"

#include <cgam/door.h>
#include <cgam/io.h>

typedef struct question {
    const char *verb, *options;
    int64_t step; /* of the requests, every so manieth fails */
} question;

#define MODEL "{\"model\": \"m.gguf\", \"threads\": 1, "
#define TASK                                                                                       \
    MODEL "\"eval\": \"d.tsv\", \"labels\": \"down=negative,up=positive\", \"queries\": 6, "
#define SHOT TASK "\"shots\": [1], \"out\": \"o\""
static const question questions[] = {
    {"lm states", MODEL "\"prompt\": \"the film\", \"save\": \"h.npy\"}", 1},
    {"lm lens",
     MODEL "\"prompt\": \"the film\", \"compare\": \"a\\n\\\"film\\\", is\", \"out\": \"o\"}", 1},
    {"lm trace",
     MODEL "\"prompt\": \"the film\", \"edit\": [\"1:add:last:1:v.npy\"], \"max-tokens\": 2, "
           "\"out\": \"o\"}",
     1},
    {"lm bank", MODEL "\"out\": \"b.npy\"}", 1},
    {"lm neff", SHOT "}", 31},
    {"lm sweep", SHOT ", \"intervals\": true}", 61},
    {"lm steer", SHOT ", \"lambda\": [0, 1]}", 31},
    {"lm probe", SHOT "}", 31},
    {"lm inject", SHOT ", \"layers\": [1]}", 61},
    {"lm gates", SHOT "}", 211},
    {"lm fit", TASK "\"shots\": [1], \"folder\": \"o\"}", 61},
    {"lm vector", TASK "\"shots\": [1], \"out\": \"v.gguf\"}", 31},
    {"lm study", TASK "\"shots\": [1], \"parts\": [\"neff\", \"sweep\"], \"report\": \"r\"}", 211},
};

static int ask_verb(cgam_env *env, void *arg)
{
    const question *of = arg;
    cgam_document answer;
    cgam_status status = cgam_ask(env, of->verb, of->options, NULL, &answer);
    if (status == CGAM_OK && strstr(of->options, "\"o\"") &&
        !strstr(answer.text, "gnuplot was not found"))
        fail_msg("%s: nothing is said of figures that could not be drawn: %.300s", of->verb,
                 answer.text);
    cgam_text_free(env, answer.text);
    return status;
}

static void memory_may_end_in_every_verb(void **state)
{
    (void)state;
    need_model();
    assert_int_equal(chdir(folder), 0);
    setenv("PATH", "/nonexistent", 1); /* no gnuplot: scripts are written, and not run */
    cgam_env *own = object_env(1);
    const int64_t width = tiny_shape_default().width;
    float *v = calloc((size_t)width, sizeof *v);
    assert_non_null(v);
    v[1] = 1;
    CHECK_STATUS(own, cgam_npy_write(own, "v.npy", CGAM_F32, 1, &width, v));
    free(v);
    cgam_env_free(own);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        question of = questions[i];
        int64_t requests = check_some_allocations(ask_verb, &of, of.step);
        assert_true(requests > 10);
    }
    setenv("PATH", "/usr/bin:/bin", 1);
    assert_int_equal(chdir("/"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_may_end_in_every_verb)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
