/* ctest: timeout=600
 * The lm verbs from outside, on a tiny model: what two runs share, and one clear line for each thing that can be wrong.
 * The documents themselves are held by tests/golden. */
#include "lab/document.h"
#include "unit/lab_language/verbs.h"

#include "support/owned.h"

static int64_t whole(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

TEST(answers_that_cannot_be_told_apart_are_not_measured)
{
    need_tiny_model();
    char facts[2048] = "", *out;
    for (int i = 0; i < 30; i++) snprintf(facts + strlen(facts), 40, "land %d\tQcity%d\n", i, i);
    folder_write("f.tsv", facts);
    assert_int_equal(run("",
                         "lm steer --model m.gguf --eval f.tsv --format facts --queries 8 "
                         "--shots 2 --out none --json",
                         false, &out),
                     1);
    json_t *doc = json_loads(out, 0, NULL);
    free(out);
    assert_non_null(doc);
    const json_t *entry = json_array_get(json_object_get(doc, "shots"), 0);
    assert_int_equal(whole(doc, "counted"), 0);
    assert_true(json_is_null(cgam_json_at(entry, "baseline.log_p")));
    assert_int_equal(json_array_size(json_object_get(doc, "figures")), 0);
    json_decref(doc);
    assert_int_equal(run("",
                         "lm steer --model m.gguf --eval f.tsv --format facts --queries 8 "
                         "--shots 2",
                         true, &out),
                     1);
    assert_non_null(strstr(out, "none of 8 answers can be told from the others"));
    free(out);
    assert_int_equal(run("",
                         "lm sweep --model m.gguf --eval f.tsv --format facts --queries 8 "
                         "--shots 2 --exact --json",
                         false, &out),
                     1);
    doc = json_loads(out, 0, NULL);
    free(out);
    entry = json_array_get(json_object_get(doc, "shots"), 0);
    assert_true(json_is_null(cgam_json_at(entry, "zero_shot.full")));
    assert_true(json_is_null(cgam_json_at(entry, "best.full.held_out")));
    assert_true(json_is_null(cgam_json_at(entry, "controls.centred.accuracy")));
    json_decref(doc);
}

/* What an export says of the prompts of a capture. */
static char *texts_of(const char *words)
{
    char line[400], *out;
    snprintf(line, sizeof line, "lm capture --model m.gguf --queries 2 --shots 1 --store t.db %s",
             words);
    assert_int_equal(run("rm -f t.db &&", line, true, &out), 0);
    free(out);
    assert_int_equal(run("", "lm store --store t.db --export t.npy", true, &out), 0);
    free(out);
    FILE *f = fopen(folder_file("t.index.csv"), "rb");
    assert_non_null(f);
    out = calloc(1, 8192);
    assert_non_null(out);
    assert_true(fread(out, 1, 8191, f) > 0);
    fclose(f);
    return out;
}

TEST(templates_and_labels_are_taken_as_they_are)
{
    need_tiny_model();
    char *out = texts_of("--dataset sentiment --template '{x}>{y}\\n' --labels "
                         "negative=sad,positive=glad");
    assert_true(strstr(out, ">sad\n") || strstr(out, ">glad\n"));
    assert_null(strstr(out, "> "));
    assert_null(strstr(out, ">positive"));
    free(out);
    out = texts_of("--dataset sentiment --template '{x} >  {y}\\n'");
    assert_true(strstr(out, " >  positive\n") || strstr(out, " >  negative\n"));
    free(out);
    refuse(2, "has no chat template", "",
           "lm capture --model m.gguf --dataset facts --chat --store t.db");
    refuse(2, "facts is a set of facts", "",
           "lm capture --model m.gguf --dataset facts --labels a=b --store t.db");
}

/* Under one source, kind, seed, number of shots and query there is one prompt. */
TEST(an_index_tells_prompts_apart)
{
    need_tiny_model();
    static const char *const ways[][2] = {
        {"--eval d.tsv", "d.tsv, 2 queries"},
        {"--eval d.tsv --demos shared", "d.tsv, 2 queries, demonstrations shared"},
        {"--eval d.tsv --order cycled", "d.tsv, 2 queries, cycled"},
        {"--eval d.tsv --template '{x}>{y}\\n'", "d.tsv, 2 queries, template {x}>{y}\\n"},
        {"--eval d.tsv --labels up=good,down=bad", "d.tsv, 2 queries, labels up=good,down=bad"},
        {"--dataset lama --relation P1", "lama-P1, 2 queries"},
        {"--dataset lama --relation P2", "lama-P2, 2 queries"}};
    char words[400], facts[2][1200] = {"", ""};
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 2; r++)
            snprintf(facts[r] + strlen(facts[r]), 120,
                     "{\"sub_label\": \"land %d%d\", \"obj_label\": \"city%d\"}\n", i, r, i);
    assert_int_equal(folder_run("mkdir -p lama/TREx"), 0);
    folder_write("lama/relations.jsonl",
                 "{\"relation\": \"P1\", \"template\": \"[X] has [Y] .\"}\n"
                 "{\"relation\": \"P2\", \"template\": \"[X] has [Y] .\"}\n");
    folder_write("lama/TREx/P1.jsonl", facts[0]);
    folder_write("lama/TREx/P2.jsonl", facts[1]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char *out;
        snprintf(words, sizeof words,
                 "lm capture --model m.gguf --queries 2 --shots 2 --store places.db --json %s",
                 ways[i][0]);
        assert_int_equal(run("env CGAM_DATA=.", words, false, &out), 0);
        OWNED(json_t) doc = json_loads(out, 0, NULL);
        assert_string_equal(cgam_json_get_text(doc, "source"), ways[i][1]);
        free(out);
    }
}

TEST(accuracies_spread_over_seeds)
{
    need_tiny_model();
    json_t *doc = ask("lm study " PROMPTS "--shots 2 --exact --store seeds.db --seeds 1,2,3 --out "
                      "seeds --figures no");
    double sum = 0, square = 0;
    for (int seed = 1; seed <= 3; seed++) {
        char words[300];
        snprintf(words, sizeof words,
                 "lm sweep " PROMPTS "--shots 2 --exact --store seeds.db --seed %d", seed);
        OWNED(json_t) one = ask(words);
        const json_t *entry = json_array_get(json_object_get(one, "shots"), 0);
        double x = cgam_json_get_real(entry, "best.restricted.held_out");
        sum += x, square += x * x;
    }
    const json_t *entry = json_array_get(cgam_json_at(doc, "spread.shots"), 0);
    double mean = sum / 3;
    CHECK_CLOSE(cgam_json_get_real(entry, "restricted.retrieval.mean"), mean, 1e-12);
    CHECK_CLOSE(cgam_json_get_real(entry, "restricted.retrieval.sd"),
                sqrt(fmax(0, (square - 3 * mean * mean) / 2)), 1e-7);
    json_decref(doc);
    /* before anything is run: the model of these is not there */
    refuse(2, "--seeds: ", "", "lm study --model nowhere.gguf --seeds 4");
    refuse(2, "--seeds: duplicate 4", "", "lm study --model nowhere.gguf --seeds 4,5,4");
}

TEST(steering_with_no_coupling_changes_nothing)
{
    need_tiny_model();
    OWNED(json_t) doc = ask("lm steer " PROMPTS "--shots 2 --exact --lambda 0,1 --out steer");
    const json_t *entry = json_array_get(json_object_get(doc, "shots"), 0);
    const json_t *curves = json_object_get(entry, "curves");
    double base = json_number_value(json_object_get(json_object_get(entry, "baseline"), "log_p"));
    assert_int_equal(json_array_size(curves), 6);
    for (size_t c = 0; c < 6; c++) {
        const json_t *curve = json_array_get(curves, c), *log_p = json_object_get(curve, "log_p");
        assert_int_equal(json_array_size(log_p), 4);
        for (size_t l = 0; l < 4; l++) {
            double p = json_number_value(json_array_get(log_p, l));
            assert_true(p < 0);
            if (c % 2 == 0) CHECK_CLOSE(p, base, 1e-12);
            /* the last token is the same with and without demonstrations, so is its embedding */
            if (l == 0) CHECK_CLOSE(p, base, 1e-12);
        }
    }
}

TEST(a_bias_after_the_norm_is_read_on_a_grid)
{
    need_tiny_model();
    tiny_shape shape = tiny_shape_default();
    shape.architecture = "stablelm";
    shape.context = 200;
    tiny_write(folder_file("biased.gguf"), shape);
#define BIASED "--model biased.gguf --eval d.tsv --labels down=negative,up=positive --queries 12 "
    json_t *doc = ask("lm sweep " BIASED "--shots 2 --out biased");
    assert_string_equal(json_string_value(json_object_get(doc, "lens")), "norm");
    assert_true(json_is_false(json_object_get(doc, "exact_lambda")));
    const json_t *best = json_object_get(
        json_object_get(json_array_get(json_object_get(doc, "shots"), 0), "best"), "restricted");
    const json_t *lambda = json_object_get(best, "lambda");
    assert_true(json_equal(json_array_get(lambda, 0), json_array_get(lambda, 1)));
    json_decref(doc);
    refuse(2, "adds a bias after its final norm", "", "lm sweep " BIASED "--shots 2 --lens gain");
    refuse(2, "architecture llama", "", "lm neff " BIASED "--shots 2 --exact");
    doc = ask("lm sweep " BIASED "--shots 2 --lens raw");
    assert_true(json_is_true(json_object_get(doc, "exact_lambda")));
    json_decref(doc);
    doc = ask("lm bank --model biased.gguf --out b.npy --lens gain");
    assert_string_equal(json_string_value(json_object_get(doc, "norm")), "layer");
    json_decref(doc);
}

/* Where nothing follows the norm, the grid reads the exact step functions. */
TEST(the_norm_lens_reads_the_exact_steps)
{
    need_tiny_model();
    json_decref(ask("lm sweep " PROMPTS "--shots 2 --exact --out by_gain"));
    json_decref(ask("lm sweep " PROMPTS "--shots 2 --exact --lens norm --out by_norm"));
    char *out;
    assert_int_equal(
        run("cmp by_gain/sweep_grid.csv by_norm/sweep_grid.csv && true ||", "help", true, &out), 0);
    assert_int_equal(strlen(out), 0);
    free(out);
}

TEST(models_in_one_store_are_kept_apart)
{
    need_tiny_model();
    tiny_shape shape = tiny_shape_default();
    shape.context = 200;
    shape.seed = 9;
    tiny_write(folder_file("second.gguf"), shape);
    json_t *doc = ask("lm capture " PROMPTS "--shots 0 --store two.db");
    assert_int_equal(whole(doc, "other_models"), 0);
    json_decref(doc);
    doc = ask("lm capture --model second.gguf --eval d.tsv --labels down=negative,up=positive "
              "--queries 24 --shots 0 --store two.db");
    assert_int_equal(whole(doc, "other_models"), 1);
    assert_int_equal(whole(json_object_get(doc, "capture"), "found"), 0);
    json_decref(doc);
    refuse(2, "two.db holds states of 2 models or engines; name one", "",
           "lm store --store two.db --export x.npy");
    refuse(2, "two.db holds no states of that model by that engine", "",
           "lm store --store two.db --sha256 00ff --export x.npy");
    refuse(2, "two.db holds no states of that model by that engine", "",
           "lm store --store two.db --engine exact --export x.npy");
}

TEST(what_is_wrong_is_said_in_one_line)
{
    need_tiny_model();
    folder_write("other.gguf", "this is no model at all, but it is long enough");
    folder_write("text.db",
                 "this is no database, though it has a fitting name. Far from it. ......");
    folder_write("lone.tsv", "up\tx\nup\ty\nup\tz\nup\tw\nup\tv\nup\tu\n");
    char cut[128];
    snprintf(cut, sizeof cut, "head -c 20000 m.gguf >cut.gguf && ");
    refuse(2, "not a GGUF file", "", "lm bank --model other.gguf --out x.npy");
    refuse(2, "cut.gguf", cut, "lm bank --model cut.gguf --out x.npy");
    refuse(2, "No such file", "", "lm bank --model nowhere.gguf --out x.npy");
    refuse(2, "text.db", "", "lm capture " PROMPTS "--store text.db");
    refuse(2, "the answers 'good' and 'good' are the same tokens", "",
           "lm sweep --model m.gguf --eval d.tsv --labels down=good,up=good --shots 2 --queries 8");
    refuse(2, "KEY=WORD,KEY=WORD is expected", "",
           "lm sweep --model m.gguf --eval d.tsv --labels down=,up=good --shots 2 --queries 8");
    refuse(2, "the answers 'good film' and 'good film' are the same tokens", "",
           "lm inject --model m.gguf --eval d.tsv --labels 'down=good film,up=good film' --shots 2 "
           "--queries 8 --answer sequence");
    refuse(2, "label negative has 0 examples", "",
           "lm capture --model m.gguf --eval lone.tsv --labels down=negative,up=positive --shots 2 "
           "--queries 1 --store t.db");
    refuse(2, "the model's context is 200", "", "lm capture " PROMPTS "--shots 20 --store t.db");
    refuse(2, "--shots: '1.5' is not an integer", "",
           "lm capture " PROMPTS "--shots 1.5 --store t.db");
    refuse(2, "--dataset or --eval", "", "lm capture " PROMPTS "--dataset facts --store t.db");
    folder_write("p.txt", "The capital of France is\n\nthe film\n");
    folder_write("p.bad", "{\"prompt\": 1}\n");
    refuse(2, "--prompts or --shots", "",
           "lm capture --model m.gguf --prompts p.txt --shots 2 --store own.db");
    refuse(2, "--prompts or --order", "",
           "lm capture --model m.gguf --prompts p.txt --order cycled --store own.db");
    refuse(2, "p.bad:1: ", "", "lm capture --model m.gguf --prompts p.bad --store own.db");
    refuse(2, "requires classes", "", "lm probe --model m.gguf --dataset facts --shots 2");
    refuse(2, "a sweep needs", "", "lm sweep " PROMPTS "--shots 0");
    refuse(2, "--store is missing", "", "lm capture " PROMPTS);
    refuse(2, "x.gguf: a GGUF file, but not of a language model",
           "printf 'GGUF\\003\\000\\000\\000%016d' 0 | tr 0 '\\000' >x.gguf;",
           "lm bank --model x.gguf --out x.npy");
    refuse(2, "CGAM_DATA", "env -u CGAM_DATA", "lm neff --model m.gguf --dataset sst2");
    refuse(2, "no libllama in", "env CGAM_LLAMA=/tmp/cgam-nowhere",
           "lm bank --model m.gguf --out x.npy");
    refuse(2, "libllama cannot be loaded",
           "mkdir -p l1/lib; echo text >l1/lib/libllama.so; CGAM_LLAMA=l1",
           "lm bank --model m.gguf --out x.npy");
    refuse(
        2, "libllama.so.9 lacks ",
        "mkdir -p l2; touch l2/libllama.txt; ln -sf \"$(PATH=$PATH:/sbin ldconfig -p | sed -n 's/.*libm.so.6 (libc6,.*64.*) => //p' | head -1)\" l2/libllama.so.9; CGAM_LLAMA=l2",
        "lm bank --model m.gguf --out x.npy");
    refuse(2, "libllama was not found", "env -u CGAM_LLAMA XDG_CACHE_HOME=/nonexistent",
           "lm bank --model m.gguf --out x.npy");
    /* A disk that fills up: no file may grow beyond 64 KB. */
    refuse(3, "full.db", "export LLVM_PROFILE_FILE=/dev/null; ulimit -f 64;",
           "lm capture " PROMPTS "--shots 0,2 --store full.db");
}

TEST_GROUP(set_up, NULL)
