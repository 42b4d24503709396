/* Vectors of all layers: files, sums, contrasts; and the verb that makes them. */
#include "lab/language/vector_make.h"
#include "lm/vector.h"
#include "support/failing_alloc.h"
#include "support/models.h"
#include "support/objects.h"
#include "unit/io/scratch.h"

#include "support/owned.h"

static cgam_env *env;

static int set_up(void **state)
{
    env = object_env(1);
    return scratch_setup(state);
}

static int tear_down(void **state)
{
    cgam_env_free(env);
    return scratch_teardown(state);
}

static cgam_vector *random_vector(int64_t rows, int64_t width, uint64_t seed)
{
    cgam_vector *v;
    CHECK_STATUS(env, cgam_vector_new(env, rows, width, NULL, &v));
    cgam_rng rng = cgam_rng_stream(seed, 0);
    for (int64_t i = 0; i < rows * width; i++) v->data[i] = (float)cgam_rng_normal(&rng);
    return v;
}

TEST(files_keep_every_bit)
{
    static const char *const names[] = {"v.npy", "v.safetensors", "v.gguf"};
    cgam_vector *v = random_vector(5, 33, 1), *back;
    for (int i = 0; i < 3; i++) {
        int left_out, first = i == 2 ? 2 : 0;
        CHECK_STATUS(env, cgam_vector_write(v, scratch(names[i]), "llama", &left_out));
        assert_int_equal(left_out, first);
        CHECK_STATUS(env, cgam_vector_open(env, scratch(names[i]), &back));
        assert_int_equal(cgam_vector_rows(back), 5);
        assert_int_equal(cgam_vector_width(back), 33);
        for (int64_t l = 0; l < 5; l++) {
            if (l < first) CHECK_CLOSE(cgam_vector_norm(back, l), 0, 0);
            else
                assert_memory_equal(cgam_vector_row(back, l), cgam_vector_row(v, l),
                                    33 * sizeof(float));
        }
        cgam_vector_free(back);
    }
    for (int64_t j = 0; j < 66; j++) v->data[j] = 0; /* nothing to leave out */
    int left_out;
    CHECK_STATUS(env, cgam_vector_write(v, scratch("v.gguf"), NULL, &left_out));
    assert_int_equal(left_out, 0);
    cgam_vector_free(v);
}

static void spoil(const char *from, const char *to, long at, const void *bytes, size_t size)
{
    char buffer[8192];
    FILE *f = fopen(scratch(from), "rb");
    assert_non_null(f);
    size_t n = fread(buffer, 1, sizeof buffer, f);
    fclose(f);
    if (at < 0) n = (size_t)-at; /* shortened */
    else memcpy(buffer + at, bytes, size);
    f = fopen(scratch(to), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(buffer, 1, n, f), n);
    fclose(f);
}

TEST(what_is_no_vector_is_said_in_a_line)
{
    cgam_vector *v = random_vector(4, 16, 2), *out;
    CHECK_STATUS(env, cgam_vector_write(v, scratch("a.gguf"), NULL, NULL));
    CHECK_STATUS(env, cgam_vector_open(env, scratch("a.gguf"), &out));
    cgam_vector_free(out);
    spoil("a.gguf", "b.gguf", 0, "GGML", 4);
    CHECK_REFUSED(env, CGAM_E_FORMAT, "b.gguf: not a GGUF file",
                  cgam_vector_open(env, scratch("b.gguf"), &out));
    spoil("a.gguf", "b.gguf", 4, "\1", 1);
    CHECK_FAILS(env, CGAM_E_UNSUPPORTED, cgam_vector_open(env, scratch("b.gguf"), &out));
    spoil("a.gguf", "b.gguf", -60, NULL, 0);
    CHECK_REFUSED(env, CGAM_E_FORMAT, "truncated", cgam_vector_open(env, scratch("b.gguf"), &out));
    spoil("a.gguf", "b.gguf", -300, NULL, 0); /* within the data */
    CHECK_REFUSED(env, CGAM_E_FORMAT, "truncated: tensor 'direction.",
                  cgam_vector_open(env, scratch("b.gguf"), &out));
    v->data[2 * 16 + 7] = NAN;
    CHECK_STATUS(env, cgam_vector_write(v, scratch("c.gguf"), NULL, NULL));
    CHECK_REFUSED(env, CGAM_E_VALUE, "c.gguf: the number at layer 2, column 7 is not finite",
                  cgam_vector_open(env, scratch("c.gguf"), &out));
    tiny_write(scratch("m.gguf"), tiny_shape_default());
    CHECK_REFUSED(env, CGAM_E_FORMAT, "architecture 'llama' is not a control vector",
                  cgam_vector_open(env, scratch("m.gguf"), &out));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_vector_open(env, scratch("v.txt"), &out));
    CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_vector_open(env, scratch("none.gguf"), &out));
    const int64_t cube[] = {2, 2, 4};
    CHECK_STATUS(env, cgam_npy_write(env, scratch("cube.npy"), CGAM_F32, 3, cube, v->data));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "cube.npy: shape 2 x 2 x 4, expected (layers + 1, width)",
                  cgam_vector_open(env, scratch("cube.npy"), &out));
    assert_null(out);
    CHECK_STATUS(env, cgam_npy_write(env, scratch("no.npy"), CGAM_F32, 2, (int64_t[]){0, 4}, NULL));
    CHECK_FAILS(env, CGAM_E_SHAPE, cgam_vector_open(env, scratch("no.npy"), &out));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_vector_new(env, 0, 4, NULL, &out));
    CHECK_REFUSED(env, CGAM_E_ARG, "a vector of 4 layers of 0 numbers",
                  cgam_vector_new(env, 4, 0, NULL, &out));
    CHECK_FAILS(env, CGAM_E_NOMEM, cgam_vector_new(env, INT64_MAX / 2, 3, NULL, &out));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_vector_write(v, scratch("v.txt"), NULL, NULL));
    assert_null(out);
    assert_null(cgam_vector_row(v, -1));
    assert_null(cgam_vector_row(v, 4));
    CHECK_CLOSE(cgam_vector_norm(v, 4), 0, 0);
    cgam_vector_free(v);
    v = random_vector(2, 4, 3);
    CHECK_REFUSED(env, CGAM_E_SHAPE,
                  "d.gguf: .gguf stores vectors of layers from 2 on, and this one has none",
                  cgam_vector_write(v, scratch("d.gguf"), NULL, NULL));
    cgam_vector_free(v);
}

TEST(sums_are_sums)
{
    cgam_vector *a = random_vector(3, 8, 4), *b = random_vector(5, 8, 5), *c = NULL, *w;
    char list[1100];
    CHECK_STATUS(env, cgam_vector_write(a, scratch("a.npy"), NULL, NULL));
    CHECK_STATUS(env, cgam_vector_write(b, scratch("b.npy"), NULL, NULL));
    snprintf(list, sizeof list, "%s:-2.5,%s", scratch("a.npy"), scratch("b.npy"));
    CHECK_STATUS(env, cgam_vector_from(env, list, &c));
    assert_int_equal(cgam_vector_rows(c), 5);
    for (int64_t i = 0; i < 40; i++) {
        double want = (double)b->data[i] - (i < 24 ? 2.5 * (double)a->data[i] : 0);
        CHECK_CLOSE((double)c->data[i], (double)(float)want, 0);
    }
    cgam_vector_free(c);
    snprintf(list, sizeof list, "%s:much", scratch("a.npy"));
    CHECK_REFUSED(env, CGAM_E_ARG, "'much' is not", cgam_vector_from(env, list, &c));
    snprintf(list, sizeof list, "%s:2x", scratch("a.npy"));
    CHECK_REFUSED(env, CGAM_E_ARG, "'2x' is not", cgam_vector_from(env, list, &c));
    CHECK_FAILS(env, CGAM_E_ARG, cgam_vector_from(env, "", &c));
    char *longest = calloc(1, 8000);
    assert_non_null(longest);
    memset(longest, 'a', 5000); /* a path of 5000 bytes */
    CHECK_REFUSED(env, CGAM_E_ARG, "expected FILE:FACTOR", cgam_vector_from(env, longest, &c));
    size_t used = 0;
    for (int i = 0; i < 65; i++)
        used +=
            (size_t)snprintf(longest + used, 8000 - used, "%s%s", i ? "," : "", scratch("a.npy"));
    CHECK_REFUSED(env, CGAM_E_ARG, "more than 64 files", cgam_vector_from(env, longest, &c));
    free(longest);
    snprintf(list, sizeof list, "%s:1e38,%s:3e38", scratch("b.npy"), scratch("b.npy"));
    CHECK_FAILS(env, CGAM_E_VALUE, cgam_vector_from(env, list, &c));
    w = random_vector(3, 9, 6);
    CHECK_REFUSED(
        env, CGAM_E_SHAPE, "vectors of 8 and of 9 numbers",
        cgam_vector_sum(env, 2, (const cgam_vector *const[]){a, w}, (double[]){1, 1}, &c));
    cgam_vector_free(a);
    cgam_vector_free(b);
    cgam_vector_free(w);
}

/* u maximises |D u|, so D'D u is along u and no other direction does better; both shapes of D. */
TEST(a_principal_component_is_one)
{
    const int64_t shapes[][2] = {{6, 20}, {40, 9}};
    for (int s = 0; s < 2; s++) {
        int64_t n = shapes[s][0], d = shapes[s][1];
        float *D = malloc((size_t)(n * 2 * d) * sizeof *D); /* two layers */
        double mean[32] = {0}, image[32] = {0}, top = 0, along = 0, size = 0;
        assert_non_null(D);
        cgam_rng rng = cgam_rng_stream(7, (uint64_t)s);
        for (int64_t i = 0; i < n * 2 * d; i++)
            D[i] = (float)(cgam_rng_normal(&rng) + (i % d == 3 ? -4 : 0));
        cgam_vector *v;
        CHECK_STATUS(env, cgam_vector_contrast(env, n, 2, d, D, CGAM_CONTRAST_PCA, &v));
        const float *u = cgam_vector_row(v, 1);
        for (int64_t j = 0; j < d; j++) size += (double)u[j] * (double)u[j];
        for (int64_t i = 0; i < n; i++) {
            const float *row = D + (i * 2 + 1) * d;
            double dot = 0;
            for (int64_t j = 0; j < d; j++) dot += (double)row[j] * (double)u[j];
            for (int64_t j = 0; j < d; j++) {
                image[j] += dot * (double)row[j];
                mean[j] += (double)row[j] / (double)n;
            }
        }
        for (int64_t j = 0; j < d; j++)
            top += image[j] * (double)u[j], along += mean[j] * (double)u[j];
        double lambda = top / size;                /* of D'D */
        CHECK_REL(size, lambda / (double)n, 1e-6); /* |v|^2 = mean <d, u>^2 */
        assert_true(along > 0);
        for (int64_t j = 0; j < d; j++) CHECK_CLOSE(image[j], lambda * (double)u[j], 2e-6 * lambda);
        for (int trial = 0; trial < 20; trial++) {
            double x[32], xx = 0, square = 0;
            for (int64_t j = 0; j < d; j++) x[j] = cgam_rng_normal(&rng), xx += x[j] * x[j];
            for (int64_t i = 0; i < n; i++) {
                double dot = 0;
                for (int64_t j = 0; j < d; j++) dot += (double)D[(i * 2 + 1) * d + j] * x[j];
                square += dot * dot;
            }
            CHECK_LE(square / xx, lambda * (1 + 1e-6));
        }
        cgam_vector_free(v);
        CHECK_STATUS(env, cgam_vector_contrast(env, n, 2, d, D, CGAM_CONTRAST_MEAN, &v));
        for (int64_t j = 0; j < d; j++)
            CHECK_CLOSE((double)cgam_vector_row(v, 1)[j], mean[j], 1e-6);
        cgam_vector_free(v);
        free(D);
    }
}

/* Differences with a large mean along one axis and a small spread along another: the first component is the
 * mean's axis as they are, and the spread's less their mean. */
TEST(a_centred_component_is_that_of_the_spread)
{
    enum { N = 40, D = 6 };
    float x[N * D] = {0};
    double square = 0;
    for (int i = 0; i < N; i++) {
        double along = (i % 2 ? -1 : 1) * (1 + 0.01 * i) + 0.2;
        x[i * D + 2] = 10;
        x[i * D + 4] = (float)along;
    }
    double mean = 0;
    for (int i = 0; i < N; i++) mean += (double)x[i * D + 4] / N;
    for (int i = 0; i < N; i++) square += pow((double)x[i * D + 4] - mean, 2) / N;
    cgam_vector *v;
    CHECK_STATUS(env, cgam_vector_contrast(env, N, 1, D, x, CGAM_CONTRAST_PCA, &v));
    assert_true(fabs((double)v->data[2]) > 9.9 && fabs((double)v->data[4]) < 0.5);
    cgam_vector_free(v);
    CHECK_STATUS(env, cgam_vector_contrast(env, N, 1, D, x, CGAM_CONTRAST_PCA_CENTRED, &v));
    CHECK_CLOSE((double)v->data[2], 0, 1e-6);
    CHECK_REL((double)v->data[4], copysign(sqrt(square), mean), 1e-6);
    cgam_vector_free(v);
    for (int i = 0; i < N * D; i++) x[i] = 3; /* no spread at all */
    CHECK_STATUS(env, cgam_vector_contrast(env, N, 1, D, x, CGAM_CONTRAST_PCA_CENTRED, &v));
    CHECK_CLOSE(cgam_vector_norm(v, 0), 0, 1e-6);
    cgam_vector_free(v);
}

TEST(differences_that_are_alike_give_their_mean)
{
    float D[3 * 12];
    for (int i = 0; i < 36; i++) D[i] = (float)(i % 12) - 5;
    for (int kind = 0; kind < 2; kind++) {
        cgam_vector *v;
        CHECK_STATUS(env, cgam_vector_contrast(env, 3, 1, 12, D, (cgam_contrast_kind)kind, &v));
        for (int j = 0; j < 12; j++) CHECK_CLOSE((double)v->data[j], j - 5, 1e-6);
        cgam_vector_free(v);
        CHECK_STATUS(
            env, cgam_vector_contrast(env, 3, 1, 12, (float[36]){0}, (cgam_contrast_kind)kind, &v));
        CHECK_CLOSE(cgam_vector_norm(v, 0), 0, 0);
        cgam_vector_free(v);
    }
}

/* The states of the two texts, run by hand, differ by what the contrast of one pair is. */
TEST(a_contrast_of_texts_is_that_of_their_states)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    FILE *f = fopen(scratch("c.tsv"), "wb");
    assert_non_null(f);
    fputs("a good film\ta bad film\n", f);
    fclose(f);
    cgam_vector *v, *wide;
    int64_t pairs;
    cgam_contrast_opts opts = cgam_contrast_opts_default();
    opts.collect.capture.exact = true;
    CHECK_STATUS(env, cgam_vector_contrast_file(lm, scratch("c.tsv"), &opts, &v, &pairs));
    assert_int_equal(pairs, 1);
    CHECK_STATUS(env, cgam_vector_fits(v, lm, "c"));
    cgam_lm_prompt prompts[2];
    int32_t *tokens[2];
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(env, cgam_lm_tokenize(lm, i ? "a bad film" : "a good film", true, &tokens[i],
                                           &prompts[i].count));
        prompts[i].tokens = tokens[i];
    }
    model_sheet sheet = model_states(env, lm, 2, prompts, opts.collect.capture);
    for (int64_t i = 0; i < sheet.one; i++)
        CHECK_CLOSE((double)v->data[i],
                    (double)sheet.states[i] - (double)sheet.states[sheet.one + i], 1e-6);
    free(sheet.states);
    for (int i = 0; i < 2; i++) cgam_lm_tokens_free(lm, tokens[i]);
    CHECK_STATUS(env, cgam_vector_new(env, 4, 65, NULL, &wide));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "w.gguf: vectors of 65 numbers, the model is 64 wide",
                  cgam_vector_fits(wide, lm, "w.gguf"));
    cgam_vector_free(wide);
    CHECK_STATUS(env, cgam_vector_new(env, 9, 64, NULL, &wide));
    CHECK_REFUSED(env, CGAM_E_SHAPE, "w.gguf: a vector for layer 8, the model has 3",
                  cgam_vector_fits(wide, lm, "w.gguf"));
    cgam_vector_free(wide);
    cgam_vector_free(v);
}

static int read_and_contrast(cgam_env *failing, void *arg)
{
    (void)arg;
    static const float D[2 * 3 * 4] = {1, 2, 3, [20] = 5};
    OWNED(cgam_vector) v = NULL;
    OWNED(cgam_vector) w = NULL;
    OWNED(cgam_vector) sum = NULL;
    TRY(cgam_vector_contrast(failing, 2, 3, 4, D, CGAM_CONTRAST_PCA, &v));
    TRY(cgam_vector_write(v, scratch("f.gguf"), "llama", NULL));
    TRY(cgam_vector_open(failing, scratch("f.gguf"), &w));
    TRY(cgam_vector_sum(failing, 2, (const cgam_vector *const[]){v, w}, (double[]){1, 2}, &sum));
    return CGAM_OK;
}

TEST(no_memory_is_survived) { assert_true(check_every_allocation(read_and_contrast, NULL) > 8); }

TEST_GROUP(set_up, tear_down)
