/* ctest: timeout=600
 * The lm verbs whole, on a tiny model, as a door runs them: memory that ends at any place that asks for it, or a wish to stop
 * at any that looks for one, comes back as a status with a message, and nothing is left allocated. */
#include "fetch/fetch.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/objects.h"

#include <cgam/ask.h>
#include <cgam/io.h>

#include "support/owned.h"

static int set_up(void **state)
{
    (void)state;
    model_file(200);
    FILE *f = fopen(folder_file("d.tsv"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\t%s film %d is %s\n", i % 2 ? "up" : "down", i % 3 ? "the" : "a", i,
                i % 2 ? "good" : "bad");
    fclose(f);
    return 0;
}

typedef struct question {
    const char *verb, *options;
} question;

#define MODEL "{\"model\": \"m.gguf\", \"threads\": 1, "
/* With a store the model runs once, and not for every place. */
#define TASK                                                                                       \
    MODEL "\"eval\": \"d.tsv\", \"labels\": \"down=negative,up=positive\", \"queries\": 6, "
#define SHOT TASK "\"shots\": [1], \"store\": \"s.db\", \"out\": \"o\""
static const question questions[] = {
    {"lm states", MODEL "\"prompt\": \"the film\", \"save\": \"h.npy\"}"},
    {"lm lens",
     MODEL "\"prompt\": \"the film\", \"compare\": \"a\\n\\\"film\\\", is\", \"out\": \"o\"}"},
    {"lm trace",
     MODEL "\"prompt\": \"the film\", \"edit\": [\"1:add:last:1:v.npy\"], \"max-tokens\": 2, "
           "\"out\": \"o\"}"},
    {"lm bank", MODEL "\"out\": \"b.npy\"}"},
    {"lm bank", MODEL "\"out\": \"b.npy\", \"dtype\": \"f16\"}"},
    {"lm neff", SHOT "}"},
    {"lm sweep", SHOT ", \"intervals\": true}"},
    {"lm steer", SHOT ", \"lambda\": [0, 1]}"},
    {"lm probe", SHOT "}"},
    {"lm inject", SHOT ", \"layers\": [1]}"},
    {"lm gates", SHOT "}"},
    {"lm fit", TASK "\"shots\": [1], \"store\": \"s.db\", \"folder\": \"o\"}"},
    {"lm vector", TASK "\"shots\": [1], \"out\": \"v.gguf\"}"},
    {"lm heads", TASK "\"shots\": [1], \"top\": 3, \"out\": \"h.gguf\"}"},
    {"lm study",
     TASK "\"shots\": [1], \"store\": \"s.db\", \"parts\": [\"neff\"], \"report\": \"r\"}"},
};

/* Other ways through the same verbs: the plain pass, states of all tokens, answers of several tokens, chats. */
#define KEPT "\"store\": \"s.db\", "
#define CHAT "{\"model\": \"c.gguf\", \"threads\": 1, "
#define ONE "\"layers\": [1], \"kinds\": [\"add\"], \"scales\": [1]"
#define SHIPPED MODEL KEPT "\"queries\": 4, \"shots\": [1], "
static const question others[] = {
    {"lm states", MODEL "\"prompts\": \"p.txt\", \"exact\": true, \"tokens\": \"all\", "
                        "\"save\": \"h.safetensors\"}"},
    {"lm generate", MODEL "\"prompt\": \"the film\", \"exact\": true, \"max-tokens\": 2, "
                          "\"edit\": [\"1:add:all:1:v.npy\"], \"temperature\": 1}"},
    {"lm generate", CHAT "\"prompt\": \"the film\", \"chat\": true, \"max-tokens\": 2}"},
    {"lm neff", CHAT KEPT
     "\"eval\": \"d.tsv\", \"labels\": \"down=negative,up=positive\", \"queries\": 4, \"shots\": [1], \"chat\": true}"},
    {"lm capture", MODEL KEPT "\"prompts\": \"p.txt\", \"tokens\": \"all\", \"exact\": true}"},
    {"lm capture", SHIPPED "\"dataset\": \"capitals\", \"dtype\": \"bf16\"}"},
    {"lm store", "{" KEPT "\"check\": true, \"engine\": \"exact\", \"export\": \"x.npz\"}"},
    {"lm store",
     "{" KEPT "\"tokens\": \"all\", \"engine\": \"exact\", \"export\": \"x.safetensors\"}"},
    {"lm sweep", SHOT ", \"answer\": \"sequence\"}"},
    {"lm gates", SHOT ", \"answer\": \"sequence\", \"alphas\": [0.01]}"},
    {"lm inject", SHOT ", \"answer\": \"sequence\", " ONE "}"},
    {"lm inject", SHIPPED "\"dataset\": \"capitals\", \"answer\": \"generate\", " ONE "}"},
    {"lm fit", TASK KEPT "\"shots\": [1], \"method\": \"lowrank\", \"rank\": 2, "
                         "\"iterations\": 2, \"layer\": 1, \"curve\": \"no\", \"out\": \"P.npy\"}"},
    {"lm vector", MODEL "\"contrast\": \"pairs.tsv\", \"kind\": \"pca\", \"out\": \"w.gguf\"}"},
    {"lm vector", MODEL "\"from\": \"w.gguf:2,w.gguf\", \"out\": \"u.gguf\"}"},
    {"lm study", TASK KEPT "\"shots\": [1], \"parts\": [\"sweep\"], \"seeds\": [1, 2]}"},
};

static int ask_verb(cgam_env *env, void *arg)
{
    const question *of = arg;
    cgam_document answer;
    cgam_tree_remove("r"); /* a study that ended in between would go on where it was */
    cgam_status status = cgam_ask(env, of->verb, of->options, NULL, &answer);
    if (status == CGAM_OK && strstr(of->options, "\"o\"") &&
        !strstr(answer.text, "gnuplot was not found"))
        fail_msg("%s: nothing is said of figures that could not be drawn: %.300s", of->verb,
                 answer.text);
    if (status == CGAM_OK && strstr(answer.text, ": \"interrupt\"")) /* a text that ended early */
        status = CGAM_E_INTERRUPTED;
    cgam_text_free(env, answer.text);
    return status;
}

/* The store is then the same in every run that follows. */
static void ask_once(question *of)
{
    OWNED(cgam_env) own = object_env(1);
    CHECK_STATUS(own, ask_verb(own, of));
}

static void end_memory(size_t count, const question *all)
{
    need_tiny_model();
    assert_int_equal(chdir(folder_path()), 0);
    setenv("PATH", "/nonexistent", 1); /* no gnuplot: scripts are written, and not run */
    cgam_env *own = object_env(1);
    const int64_t width = tiny_shape_default().width;
    float *v = calloc((size_t)width, sizeof *v);
    assert_non_null(v);
    v[1] = 1;
    CHECK_STATUS(own, cgam_npy_write(own, "v.npy", CGAM_F32, 1, &width, v));
    free(v);
    cgam_env_free(own);
    folder_write("p.txt", "The capital of France is\nthe film\n");
    folder_write("pairs.tsv", "the film is good\tthe film is bad\na film is good\ta film is bad\n");
    const tiny_key turns[] = {
        {"tokenizer.chat_template", TINY_TEXT, 0, "'<|user|>\n' + message['content'] + eos_token"},
        {0}};
    tiny_shape shape = tiny_shape_default();
    shape.keys = turns;
    tiny_write("c.gguf", shape);
    for (size_t i = 0; i < count; i++) {
        question of = all[i];
        ask_once(&of);
        if (check_every_place(ask_verb, &of) == 0) fail_msg("%s: no place is new", of.verb);
    }
    setenv("PATH", "/usr/bin:/bin", 1);
    assert_int_equal(chdir("/"), 0);
}

TEST(memory_may_end_in_every_verb) { end_memory(sizeof questions / sizeof *questions, questions); }

TEST(memory_may_end_on_other_ways) { end_memory(sizeof others / sizeof *others, others); }

TEST_GROUP(set_up, NULL)
