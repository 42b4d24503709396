/* What verbs print for people, and what they refuse, word by word as on the command line. */
#include "base/env.h"
#include "unit/app/printed.h"
#include "unit/app/scene.h"

#include "support/owned.h"

#define ASK "recall --threads 1 --bank Z.csv --query "
TEST(people_are_told_what_the_document_says)
{
    static const char *const cases[][3] = {
        {ASK "rows:1 --names", "water 1 (", "gates subcritical"},
        {ASK "rows:1 --target 2 --fast", "rank ", "rows read"},
        {ASK "rows:1 --none 5", "the ghost scores higher", "of none of the memories"},
        {ASK "rows:1 --activation sparsemax --beta 20", "sparsemax: alpha",
         "memories with p > 0: exact, proved"},
        {ASK "rows:1 --mode coupled --lambda 0.1", "yes, proved",
         "a lower bound; the value by --certify"},
        {ASK "rows:1 --mode coupled --certify --marks", "above 0 the state is stable",
         "iterations"},
        {ASK "rows:1 --mode coupled --lambda 9 --beta 9", "unique", "contraction"},
        {ASK "rows:1 --mode flow --t-max 2", "at the end", "steps"},
        {ASK "rows:1 --mode anneal --beta 9", "top", "iterations"},
        {ASK "q.csv --target target.npy", "target   rank", "p, gap and bound refer to the target"},
        {ASK "rows:1 --explain --only only.txt --names --context rows:0", "4 of ", "bank 0 ("},
        {ASK "q.csv --gate-weights W.csv --context c.csv --mode flow --free-context --t-max 1",
         "free context: it", "settle"},
        {"map --threads 1 --bank Z.csv --from q.csv --grid 3 --t-max 0.5", "flow 0: ", "flow 1: "},
        {"map --threads 1 --bank Z.csv --through 0,1 --grid 3 --margin 0", "energy", "0"},
        {"net show net.json --eigen 3", "eigenvalue", "Modern Hopfield"},
        {"net run net.json --t-end 1", "energy", "letters"},
        {"inspect --bank Z.csv --threads 1", "alpha_crit", "6 memories"},
        {"landscape --threads 1 --bank Z.csv --query rows:1 --lambda 2 --beta 9 --starts 4",
         "minim", "index"},
        {"study separation --trials 2 --threads 1 --figures no --out study", "lambda", "sigma"},
        {"study theorems --trials 2 --threads 1 --figures no --out study2", "winner takes all",
         "softmax jacobian"},
        {"bank names --bank Z.csv --rows 2,3", "money", "mill"},
    };
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&(cgam_env_opts){.threads = 1}, &env));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = printed(env, cases[i][0]);
        if (!text) fail_msg("%s: %s", cases[i][0], cgam_env_message(env));
        for (int k = 1; k < 3; k++)
            if (!strstr(text, cases[i][k]))
                fail_msg("%s: no '%s' in:\n%s", cases[i][0], cases[i][k], text);
        free(text);
    }
}

TEST(a_packed_bank_is_changed_by_words)
{
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&(cgam_env_opts){.threads = 1}, &env));
    static const char *const steps[][2] = {
        {"bank pack --from Z.csv --names Z.names --alpha 0.1 --dtype f32 --out B.safetensors", "6"},
        {"bank drop B.safetensors --rows 1,3-4", "3"},
        {"bank show B.safetensors --check", "3"},
        {"bank put B.safetensors --rows 0,2 --from q.csv", "3"},
        {"bank add B.safetensors --from q.csv --names two.txt", "5"},
        {"bank drop B.safetensors --names key.txt", "4"},
        {"bank drop B.safetensors --rows gone.npy", "3"},
    };
    static const char *const refused[][2] = {
        {"bank drop B.safetensors --rows -1", "is not a list like"},
        {"bank drop B.safetensors --rows 1,,2", "is not a list like"},
        {"bank drop B.safetensors --rows 5-3", "is not a list like"},
        {"bank drop B.safetensors --rows 2-x", "2-x: No such file"},
        {"bank drop B.safetensors --rows 2x", "2x: No such file"},
        {"bank drop B.safetensors --rows 99", "0 to 5)"},
        {"bank drop B.safetensors", "or names"},
        {"bank drop B.safetensors --rows 1 --names key.txt", "or names"},
        {"bank drop B.safetensors --rows key.txt", "is not a .npy array"},
        {"bank drop Z.csv --rows 1", "not a packed bank"},
        {"bank put B.safetensors --rows 0,77 --from q.csv", "77"},
        {"bank add B.safetensors --from q.csv", "the bank has some, so new rows need them"},
    };
    const int64_t one = 1, gone[] = {7};
    FILE *f = fopen("key.txt", "w");
    assert_true(f && fputs("key\n", f) >= 0 && fclose(f) == 0);
    f = fopen("two.txt", "w");
    assert_true(f && fputs("new\nnewer\n", f) >= 0 && fclose(f) == 0);
    CHECK_STATUS(env, cgam_npy_write(env, "gone.npy", CGAM_I64, 1, &one, gone));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char *text = printed(env, steps[i][0]);
        if (!text) fail_msg("%s: %s", steps[i][0], cgam_env_message(env));
        if (!strstr(text, steps[i][1]))
            fail_msg("%s: no '%s' in: %s", steps[i][0], steps[i][1], text);
        free(text);
        for (size_t k = 0; i == 2 && k < sizeof refused / sizeof *refused; k++) {
            if (printed(env, refused[k][0])) fail_msg("%s: taken", refused[k][0]);
            CHECK_MESSAGE(env, refused[k][1]);
        }
    }
}

TEST(inputs_that_do_not_fit_are_named)
{
    static const char *const cases[][2] = {
        {"inspect --bank demo:-3", "a seed is expected after the colon"},
        {"inspect --bank demo:x", "a seed is expected after the colon"},
        {"bank names --bank demo:x", "a seed is expected after the colon"},
        {ASK "rows:9", "0 to 5)"},
        {ASK "rows:1*", "a factor is expected"},
        {ASK "rows:1+", "a memory's number or name is expected"},
        {ASK "rows:1/2", "+, -, * or ; is expected"},
        {ASK "rows:'key", "the name at"},
        {ASK "rows:nobody", "'nobody'"},
        {ASK "rows:0*1e308+0*1e308", "the sum is not finite"},
        {ASK "cube.npy", "1 or 2 dimensions are expected, this array has 3"},
        {ASK "empty.npy", "the array is empty"},
        {ASK "three.csv", "d = 3, the bank has 4"},
        {ASK "rows:1 --context c.csv", "contexts are 2, queries are 1"},
        {ASK "q.csv --target half.npy", "is not an integer"},
        {ASK "q.csv --target beyond.npy", "0 to 5)"},
        {ASK "q.csv --target Z.csv", "in one are expected"},
        {ASK "rows:1 --activation entmax:1.5 --marks", "marks need activation softmax"},
        {ASK "rows:1 --activation other", "activation"},
        {ASK "rows:1 --beta-start 1", "beta-start needs mode anneal"},
        {ASK "rows:1 --free-query", "free-query needs mode flow"},
        {ASK "rows:1 --free-context --mode first", "free-context needs mode flow"},
        {ASK "rows:1 --save-p x.npy --save-readout x.npy",
         "save-p and save-readout must be different files"},
        {ASK "rows:1 --save-p x.npy --save-readout .//x.npy",
         "save-p and save-readout must be different files"},
        {ASK "rows:1 --save-p ./Z.csv --save-readout Z.csv",
         "save-p and save-readout must be different files"},
        {ASK "rows:1 --save-p no/x.npy --save-readout nor/x.npy", "no/x.npy: cannot write"},
        {ASK "rows:1 --projection P.csv --gate-weights W.csv",
         "give projection or gate-weights, not both"},
        {ASK "rows:1 --projection three.csv --context rows:1", "projection: rows are 1, d is 4"},
        {ASK "rows:1 --names only.txt", "4 names for 6 memories"},
        {"recall --bank q.csv --query rows:1 --names", "no names; they would be in q.names"},
        {"map --bank Z.csv --through 1", "through"},
        {"map --bank Z.csv --at 1,2,3", "at: 3 numbers, x and y are expected"},
        {"study separation --trials 0 --figures no", "trials"},
    };
    OWNED(cgam_env) env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&(cgam_env_opts){.threads = 1}, &env));
    int wrong = 0;
    const int64_t cube[] = {1, 2, 2}, none[] = {0, 4}, two = 2;
    const double numbers[] = {0.5, 1, 2, 3}, beyond[] = {1, 6};
    CHECK_STATUS(env, cgam_npy_write(env, "cube.npy", CGAM_F64, 3, cube, numbers));
    CHECK_STATUS(env, cgam_npy_write(env, "empty.npy", CGAM_F64, 2, none, numbers));
    CHECK_STATUS(env, cgam_npy_write(env, "half.npy", CGAM_F64, 1, &two, numbers));
    CHECK_STATUS(env, cgam_npy_write(env, "beyond.npy", CGAM_F64, 1, &two, beyond));
    FILE *f = fopen("three.csv", "w");
    assert_true(f && fputs("1,2,3\n", f) >= 0 && fclose(f) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = printed(env, cases[i][0]);
        const char *said = text ? "taken" : cgam_env_message(env);
        if (strstr(said, cases[i][1])) continue;
        print_error("%s: '%s' is not in: %s\n", cases[i][0], cases[i][1], said);
        wrong++;
        free(text);
    }
    assert_int_equal(wrong, 0);
}

TEST_GROUP(enter, leave)
