/* ctest: timeout=300
 * A vector file of ours through libllama's own control-vector adapter, and through our generation: the
 * same tokens. libllama is driven by its own calls alone, the file read by ggml's reader. */
#include "lm/edit.h"
#include "lm/model.h"
#include "support/models.h"
#include "support/objects.h"
#include "unit/io/scratch.h"

#include <cgam/lm.h>

#if __has_include(<llama.h>)
#include "lm/llama.h"

#include <dlfcn.h>
#include <gguf.h>

#include "support/owned.h"

enum { MOST = 16 };

static cgam_env *env;

static int set_up(void **state)
{
    env = object_env(1); /* two that wait for each other are slow on a busy machine */
    return scratch_setup(state);
}

static int tear_down(void **state)
{
    cgam_env_free(env);
    return scratch_teardown(state);
}

/* ggml's reader of headers, which the library does without: found where another function of ggml lies. */
#define READER(X)                                                                                  \
    X(gguf_init_from_file)                                                                         \
    X(gguf_free)                                                                                   \
    X(gguf_find_key)                                                                               \
    X(gguf_get_val_str)                                                                            \
    X(gguf_find_tensor)                                                                            \
    X(gguf_get_tensor_type)                                                                        \
    X(gguf_get_tensor_size)                                                                        \
    X(gguf_get_tensor_offset)                                                                      \
    X(gguf_get_data_offset)

typedef struct reader {
#define FIELD(name) __typeof__(&name) name;
    READER(FIELD)
} reader;

static reader find_reader(const cgam_llama *f)
{
    reader r;
    Dl_info where;
    void *known, *found;
    memcpy(&known, &f->ggml_log_set, sizeof known);
    assert_int_not_equal(dladdr(known, &where), 0);
    void *handle = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
#define FIND(name)                                                                                 \
    found = dlsym(handle, #name);                                                                  \
    assert_non_null(found);                                                                        \
    memcpy(&r.name, &found, sizeof found);
    READER(FIND)
    dlclose(handle);
    return r;
}

/* direction.1 .. direction.L-1 one after the other, as llama_set_adapter_cvec takes them; how many. */
static int read_directions(const cgam_lm *lm, const char *path, float *data)
{
    const reader ggml = find_reader(lm->f), *f = &ggml;
    struct gguf_context *g =
        f->gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true});
    FILE *file = fopen(path, "rb");
    assert_true(g && file);
    int64_t key = f->gguf_find_key(g, "general.architecture");
    assert_string_equal(f->gguf_get_val_str(g, key), "controlvector");
    size_t width = (size_t)lm->info.width, size = width * sizeof *data;
    int found = 0;
    for (int64_t k = 1; k < lm->info.layers; k++) {
        char name[32];
        snprintf(name, sizeof name, "direction.%d", (int)k);
        int64_t id = f->gguf_find_tensor(g, name);
        if (id < 0) continue;
        assert_int_equal(f->gguf_get_tensor_type(g, id), GGML_TYPE_F32);
        assert_int_equal(f->gguf_get_tensor_size(g, id), size);
        size_t at = f->gguf_get_data_offset(g) + f->gguf_get_tensor_offset(g, id);
        assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
        assert_int_equal(fread(data + (size_t)(k - 1) * width, 1, size, file), size);
        found++;
    }
    fclose(file);
    f->gguf_free(g);
    return found;
}

/* The most probable token, again and again; file NULL: no vector. Blocks are counted from 0. */
static void by_libllama(cgam_lm *lm, cgam_lm_prompt prompt, const char *file, int from, int to,
                        int32_t out[MOST])
{
    const cgam_llama *f = lm->f;
    size_t numbers = (size_t)((lm->info.layers - 1) * lm->info.width);
    OWNED_BLOCK(float) data = calloc(numbers, sizeof *data);
    struct llama_context_params p = f->llama_context_default_params();
    p.n_ctx = 128;
    p.n_threads = p.n_threads_batch = 1;
    p.type_k = p.type_v = GGML_TYPE_F32; /* as we keep them */
    p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *context = f->llama_init_from_model(lm->model, p);
    assert_true(context && data);
    if (file) {
        assert_true(read_directions(lm, file, data) > 0);
        int32_t code =
            f->llama_set_adapter_cvec(context, data, numbers, (int32_t)lm->info.width, from, to);
        assert_int_equal(code, 0);
    }
    for (int k = 0; k < MOST; k++) {
        struct llama_batch batch = {.n_tokens = k == 0 ? (int32_t)prompt.count : 1,
                                    .token = k == 0 ? (llama_token *)(uintptr_t)prompt.tokens
                                                    : &out[k - 1]};
        assert_int_equal(f->llama_decode(context, batch), 0);
        const float *z = f->llama_get_logits_ith(context, -1);
        out[k] = 0;
        for (int32_t m = 1; m < lm->info.vocab; m++)
            if (z[m] > z[out[k]]) out[k] = m;
    }
    f->llama_free(context);
}

/* Both ways, and that the vector does something at all. */
static void compare(cgam_lm *lm, cgam_lm_prompt prompt, int64_t first, int64_t last)
{
    int32_t plain[MOST], theirs[MOST];
    char words[256];
    cgam_edit_set *set;
    cgam_lm_text text;
    const char *file = scratch("v.gguf");
    cgam_lm_generate_opts o = cgam_lm_generate_opts_default();
    by_libllama(lm, prompt, NULL, 0, 0, plain);
    by_libllama(lm, prompt, file, (int)first - 1, (int)last - 1, theirs);
    assert_true(memcmp(plain, theirs, sizeof plain) != 0);
    snprintf(words, sizeof words, "%s:1:%d-%d", file, (int)first, (int)last);
    CHECK_STATUS(env, cgam_edit_set_new(lm, &set));
    CHECK_STATUS(env, cgam_edit_set_vectors(set, words));
    o.max_tokens = MOST;
    o.edits = cgam_edit_set_edits(set);
    CHECK_STATUS(env, cgam_lm_generate(lm, 1, &prompt, &o, &text));
    assert_true(text.count > 0);
    for (int64_t k = 0; k < text.count; k++) assert_int_equal(text.tokens[k].id, theirs[k]);
    if (text.count < MOST) assert_true(cgam_lm_ends(lm, theirs[text.count]));
    cgam_lm_texts_free(lm, 1, &text);
    cgam_edit_set_free(set);
}

static void write_vector(const cgam_lm *lm, const float *rows)
{
    OWNED(cgam_vector) v = NULL;
    CHECK_STATUS(env, cgam_vector_new(env, lm->info.layers + 1, lm->info.width, rows, &v));
    CHECK_STATUS(env, cgam_vector_write(v, scratch("v.gguf"), "llama", NULL));
}

TEST(a_file_acts_in_libllama_as_in_ours)
{
    OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
    static float rows[4 * 64];
    static const int32_t tokens[] = {1, 40, 71, 102, 33};
    cgam_rng rng = cgam_rng_stream(3, 0);
    assert_true(lm->info.layers == 3 && lm->info.width == 64);
    for (int i = 0; i < 4 * 64; i++) rows[i] = (float)cgam_rng_normal(&rng);
    write_vector(lm, rows);
    compare(lm, (cgam_lm_prompt){tokens, 5}, 2, 3);
    compare(lm, (cgam_lm_prompt){tokens, 3}, 2, 2);
}

/* What a kind and an unkind word differ by, in the middle of the default model. */
TEST(and_in_the_default_model)
{
    OWNED(cgam_lm) lm = model_default(env);
    static const char *const texts[] = {"I love this. It is wonderful",
                                        "I hate this. It is terrible", "The weather today is"};
    cgam_lm_prompt prompt[3];
    int32_t *tokens[3];
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(env, cgam_lm_tokenize(lm, texts[i], true, &tokens[i], &prompt[i].count));
        prompt[i].tokens = tokens[i];
    }
    model_sheet both = model_states(env, lm, 2, prompt, cgam_lm_capture_opts_default());
    for (int64_t j = 0; j < both.one; j++) both.states[j] -= both.states[both.one + j];
    write_vector(lm, both.states);
    compare(lm, prompt[2], 8, 14);
    free(both.states);
    for (int i = 0; i < 3; i++) cgam_lm_tokens_free(lm, tokens[i]);
}

TEST_GROUP(set_up, tear_down)
#else
int main(void)
{
    puts("skipped: built without libllama's headers");
    return 0;
}
#endif
