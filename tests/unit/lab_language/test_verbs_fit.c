/* ctest: timeout=300
 * `lm fit` from outside: the keys of its document, P for `recall`, what is refused in one line. */
#include "unit/lab_language/verbs.h"

#include "lab/language/fit.h"

#include "support/owned.h"

static void check_way(const json_t *doc, const char *name)
{
    const json_t *way = json_object_get(doc, name);
    assert_true(json_is_object(way));
    double labels = cgam_json_get_real(way, "restricted"), words = cgam_json_get_real(way, "full");
    assert_true(labels >= 0 && labels <= 1 && words >= 0 && words <= 1);
    CHECK_LE(words, labels); /* the best of all words is the best of the labels' */
    assert_true(json_is_number(json_object_get(way, "r2")));
}

TEST(a_fit_from_the_last_layer_is_the_demonstrations)
{
    need_tiny_model();
    json_t *doc = ask("lm fit " PROMPTS "--shots 0,2 --exact --store f.db --out P.safetensors "
                      "--folder out");
    CHECK_CLOSE(cgam_json_get_real(doc, "icl.r2"), 1, 0);
    CHECK_CLOSE(cgam_json_get_real(doc, "kl.icl"), 0, 1e-6);
    const json_t *curve = json_object_get(doc, "curve");
    /* from the last layer x is y: P = I is all there is to find, and it answers as demonstrations do */
    CHECK_CLOSE(cgam_json_nth(curve, "identity_r2", 3), 1, 0);
    CHECK_CLOSE(cgam_json_nth(curve, "ridge_r2", 3), 1, 1e-9);
    CHECK_CLOSE(cgam_json_nth(curve, "ridge_restricted", 3),
                cgam_json_get_real(doc, "icl.restricted"), 0);
    /* after the embedding the last token is the same: there is no context yet */
    CHECK_CLOSE(cgam_json_nth(curve, "ridge_restricted", 0),
                cgam_json_get_real(doc, "zero_shot.restricted"), 0);
    json_decref(doc);
    char *out;
    assert_int_equal(run("test -s out/fit.csv && test -s out/fit.json &&", "version", false, &out),
                     0);
    free(out);
}

/* The same states, the same P: `recall` with it scores as the fit does. */
TEST(recall_takes_it)
{
    need_tiny_model();
    json_decref(ask("lm fit " PROMPTS
                    "--shots 2 --exact --store f.db --curve no --out P.safetensors "
                    "--layer 2"));
    cgam_env *env = object_env(1);
    char path[160];
    double *P, c[64], want[64];
    CHECK_STATUS(env, cgam_projection_read(env, folder_file("P.safetensors"), 64, &P));
    double identity[64 * 64] = {0};
    for (int i = 0; i < 64; i++) identity[65 * i] = 1, c[i] = cos(i), want[i] = 0;
    for (int i = 0; i < 64 * 64; i++) want[i / 64] += P[i] * c[i % 64];
    cgam_free(env, P);
    static const char *const names[] = {"Z.npy", "c.npy", "q.npy"};
    double q[64] = {0};
    const double *arrays[] = {identity, c, q};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder_path(), names[i]);
        CHECK_STATUS(
            env, cgam_npy_write(env, path, CGAM_F64, i ? 1 : 2, (int64_t[]){64, 64}, arrays[i]));
    }
    cgam_env_free(env);
    int best = 0; /* rows of the bank are the axes, so scores are P c */
    for (int i = 1; i < 64; i++)
        if (want[i] > want[best]) best = i;
    OWNED(json_t)
    doc = ask("recall --bank Z.npy --query q.npy --context c.npy --projection P.safetensors");
    const json_t *first = json_array_get(json_object_get(doc, "queries"), 0);
    assert_int_equal(cgam_json_get_int(first, "winner"), best);
}

/* P for other verbs: of another width, not there, not a number. */
TEST(a_wrong_projection_is_refused)
{
    need_tiny_model();
    cgam_env *env = object_env(1);
    double narrow[4] = {1, 0, 0, 1}, wide[64 * 64] = {[70] = NAN};
    CHECK_STATUS(env, cgam_npy_write(env, folder_file("narrow.npy"), CGAM_F64, 2, (int64_t[]){2, 2},
                                     narrow));
    CHECK_STATUS(
        env, cgam_npy_write(env, folder_file("nan.npy"), CGAM_F64, 2, (int64_t[]){64, 64}, wide));
    cgam_env_free(env);
    static const char *const verbs[] = {"sweep", "inject"};
    for (int v = 0; v < 2; v++) {
        char words[300];
        snprintf(words, sizeof words, "lm %s " PROMPTS "--shots 1 --projection narrow.npy",
                 verbs[v]);
        refuse(2, "projection: narrow.npy is 2 x 2, the model's width is 64", "", words);
        snprintf(words, sizeof words, "lm %s " PROMPTS "--shots 1 --projection nan.npy", verbs[v]);
        refuse(2, "nan.npy", "", words);
        snprintf(words, sizeof words, "lm %s " PROMPTS "--shots 1 --projection none.npy", verbs[v]);
        refuse(2, "none.npy", "", words);
    }
}

TEST(several_tasks_are_left_out_in_turn)
{
    need_tiny_model();
    OWNED(json_t)
    doc = ask("lm fit --model m.gguf --dataset sentiment --dataset facts --queries 30 --shots 1 "
              "--exact --store g.db --curve no --method lowrank --rank 2 --iterations 3");
    assert_int_equal(json_array_size(json_object_get(doc, "by_task")), 2);
    check_way(doc, "left_out");
    check_way(doc, "ridge");
    for (size_t i = 0; i < 2; i++) {
        const json_t *task = json_array_get(json_object_get(doc, "by_task"), i);
        assert_string_equal(cgam_json_get_text(task, "task"), i ? "facts" : "sentiment");
        check_way(task, "left_out");
    }
    assert_int_equal(json_array_size(json_object_get(doc, "refined")), 3);
}

/* Of whole answers the first token is not enough; from the last layer P = I adds y after every beginning,
 * which is not quite what demonstrations do there, but the first tokens are theirs. */
TEST(whole_answers_are_compared)
{
    need_tiny_model();
    OWNED(json_t)
    doc = ask("lm fit --model m.gguf --eval d.tsv --labels 'down=good film,up=good bad' "
              "--queries 24 --shots 2 --exact --store w.db --layer 2");
    const json_t *task = json_array_get(json_object_get(doc, "by_task"), 0);
    assert_string_equal(cgam_json_get_text(task, "answer"), "sequence");
    assert_int_equal(cgam_json_get_int(doc, "counted"), 24);
    check_way(doc, "held_out");
    check_way(doc, "icl");
    OWNED(json_t)
    study = ask("lm sweep --model m.gguf --eval d.tsv --labels 'down=good film,up=good bad' "
                "--queries 24 --shots 2 --exact --store w.db");
    const json_t *entry = json_array_get(json_object_get(study, "shots"), 0);
    static const char *const ways[] = {"zero_shot", "icl"};
    for (int i = 0; i < 2; i++) {
        const json_t *ours = json_object_get(doc, ways[i]),
                     *theirs = json_object_get(entry, ways[i]);
        assert_string_equal(cgam_json_get_text(ours, "restricted_right"),
                            cgam_json_get_text(theirs, "restricted_right"));
        assert_string_equal(cgam_json_get_text(ours, "full_right"),
                            cgam_json_get_text(theirs, "full_right"));
    }
}

TEST(what_cannot_be_fitted_is_refused)
{
    need_tiny_model();
    folder_write("one.tsv",
                 "up\ta film\nup\tthe film\nup\tgood film\nup\tbad film\nup\tis film\nup\tof "
                 "film\nup\tsix\nup\tseven\n");
    folder_write("empty.tsv", "up\ta film\n\tthe film\n");
    refuse(2, "all queries have the answer", "",
           "lm fit --model m.gguf --eval one.tsv --labels up=positive --shots 1 --queries 6");
    refuse(2, "empty.tsv", "", "lm fit --model m.gguf --eval empty.tsv --shots 1 --queries 6");
    refuse(2, "too few for two halves", "",
           "lm fit --model m.gguf --eval d.tsv --labels down=negative,up=positive --shots 1 "
           "--queries 3");
    refuse(2, "layer: 4, the model has 0 to 3", "", "lm fit " PROMPTS "--shots 1 --layer 4");
    refuse(2, "contexts need demonstrations", "", "lm fit " PROMPTS "--shots 0");
    refuse(2, "rank: 65, the model's width is 64", "",
           "lm fit " PROMPTS "--shots 1 --method lowrank --rank 65");
    refuse(2, ".safetensors, .npz or .npy is expected", "",
           "lm fit " PROMPTS "--shots 1 --out P.txt");
    refuse(2, "duplicate", "",
           "lm fit --model m.gguf --dataset sentiment --dataset sentiment --shots 1 --queries 8");
    refuse(2, "labels and several datasets exclude each other", "",
           "lm fit --model m.gguf --dataset sentiment --dataset facts --labels a=b --shots 1");
}

TEST_GROUP(set_up, NULL)
