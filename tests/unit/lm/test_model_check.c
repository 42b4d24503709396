/* Keys of a model, one wrong at a time: each is refused by its name, before libllama sees the file. The head is that of a tiny
 * model, in which a value is put in the place of another or beside them. */
#include "lm/model_check.h"
#include "support/one_env.h"
#include "support/tiny_gguf.h"

#include <unistd.h>

enum { VALUES = 64, MANY = 513 };

static cgam_file file;
static cgam_gguf head;

static int read_model(void **state)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/cgam-check-%d.gguf", (int)getpid());
    tiny_write(path, tiny_shape_default());
    set_up(state);
    CHECK_STATUS(env, cgam_file_map(env, path, &file));
    unlink(path);
    CHECK_STATUS(env, cgam_gguf_parse(env, "m.gguf", file.bytes, file.size, &head));
    return 0;
}

static int forget_model(void **state)
{
    cgam_gguf_free(env, &head);
    cgam_file_unmap(&file);
    return tear_down(state);
}

static int by_name(const void *a, const void *b)
{
    const cgam_gguf_value *x = a, *y = b;
    const size_t n = x->name.length < y->name.length ? x->name.length : y->name.length;
    const int order = memcmp(x->name.at, y->name.at, n);
    return order ? order : (x->name.length > y->name.length) - (x->name.length < y->name.length);
}

/* The head with other values; an old one of the same name goes. */
static cgam_status check_with(const char *architecture, int count, const cgam_gguf_value *put)
{
    cgam_gguf g = head;
    cgam_gguf_value values[VALUES];
    char names[VALUES][96];
    int64_t n = 0;
    for (int64_t i = 0; i < head.values_count; i++) { /* llama.x is stablelm.x */
        const cgam_gguf_text name = head.values[i].name;
        const bool own = name.length > 6 && memcmp(name.at, "llama.", 6) == 0;
        values[n] = head.values[i];
        snprintf(names[n], sizeof names[n], "%s%s%.*s", own ? architecture : "", own ? "." : "",
                 (int)(name.length - (own ? 6 : 0)), name.at + (own ? 6 : 0));
        bool there = false;
        for (int k = 0; k < count; k++) there = there || strcmp(names[n], put[k].name.at) == 0;
        n += !there;
    }
    for (int64_t i = 0; i < n; i++) values[i].name = (cgam_gguf_text){names[i], strlen(names[i])};
    for (int k = 0; k < count; k++) values[n++] = put[k];
    qsort(values, (size_t)n, sizeof *values, by_name);
    snprintf(g.architecture, sizeof g.architecture, "%s", architecture);
    g.values = values;
    g.values_count = n;
    return cgam_model_check(env, "m.gguf", &g);
}

static cgam_gguf_value value(const char *name, cgam_gguf_kind kind, uint64_t count,
                             const void *items)
{
    return (cgam_gguf_value){.name = {name, strlen(name)},
                             .kind = kind,
                             .array = count != 1,
                             .count = count,
                             .items = items};
}

TEST_WITH(read_model, forget_model, a_key_that_cannot_be_is_refused_by_its_name)
{
    static uint32_t many[MANY], two = 2, none = 0, four = 4, five = 5;
    static const uint32_t heads[] = {4, 4, 0}, shared[] = {4, 8, 4}, odd[] = {16, 16, 18};
    static const float half = 0.5F, infinite = INFINITY;
    static const uint8_t yes = 1;
    static const char linear[] = "\6\0\0\0\0\0\0\0linear", other[] = "\5\0\0\0\0\0\0\0other";
    for (int i = 0; i < MANY; i++) many[i] = 64;
    const struct {
        const char *architecture;
        cgam_gguf_value value;
        const char *says; /* NULL: it may be */
    } cases[] = {
        {"llama", value("llama.block_count", CGAM_GGUF_TEXT, 1, linear),
         "llama.block_count is not an integer"},
        {"llama", value("llama.block_count", CGAM_GGUF_BOOL, 1, &yes),
         "llama.block_count is not an integer"},
        {"llama", value("llama.block_count", CGAM_GGUF_F32, 1, &half),
         "llama.block_count is not an integer"},
        {"llama", value("llama.rope.freq_base", CGAM_GGUF_U32, 1, &two),
         "llama.rope.freq_base is not a real number"},
        {"llama", value("llama.rope.freq_base", CGAM_GGUF_F32, 1, &infinite),
         "key llama.rope.freq_base has a number that is not finite"},
        {"llama", value("llama.rope.scaling.type", CGAM_GGUF_U32, 1, &two),
         "llama.rope.scaling.type is not a string"},
        {"llama", value("llama.rope.scaling.type", CGAM_GGUF_TEXT, 0, linear),
         "llama.rope.scaling.type is not a string"},
        {"llama", value("llama.rope.scaling.type", CGAM_GGUF_TEXT, 1, other),
         "llama.rope.scaling.type has an unknown value"},
        {"llama", value("llama.rope.scaling.type", CGAM_GGUF_TEXT, 1, linear), NULL},
        {"llama", value("llama.feed_forward_length", CGAM_GGUF_U32, MANY, many),
         "llama.feed_forward_length has more items than layers"},
        {"llama", value("llama.feed_forward_length", CGAM_GGUF_U32, MANY - 1, many), NULL},
        {"llama", value("llama.attention.head_count_kv", CGAM_GGUF_U32, 1, &none),
         "llama.attention.head_count_kv does not divide the heads"},
        {"llama", value("llama.attention.head_count_kv", CGAM_GGUF_U32, 3, shared),
         "llama.attention.head_count_kv does not divide the heads"},
        {"other", value("other.attention.head_count_kv", CGAM_GGUF_U32, 1, &none), NULL},
        {"llama", value("llama.attention.head_count", CGAM_GGUF_U32, 3, heads),
         "llama.attention.head_count is 0"},
        {"other", value("other.attention.head_count", CGAM_GGUF_U32, 3, heads), NULL},
        {"llama", value("llama.attention.head_count", CGAM_GGUF_U32, 0, heads),
         "llama.attention.head_count is 0"},
        {"stablelm", value("stablelm.rope.dimension_count", CGAM_GGUF_U32, 1, &none),
         "stablelm.rope.dimension_count is 0, which does not suit heads of size 16"},
        {"llama", value("llama.rope.dimension_count", CGAM_GGUF_U32, 3, odd),
         "llama.rope.dimension_count is 18, which does not suit heads of size 16"},
        {"llama", value("llama.leading_dense_block_count", CGAM_GGUF_U32, 1, &four),
         "llama.leading_dense_block_count exceeds the number of layers"},
        {"llama", value("llama.nextn_predict_layers", CGAM_GGUF_U32, 1, &five),
         "llama.nextn_predict_layers leaves no layer"},
        {"llama", value("llama.expert_used_count", CGAM_GGUF_U32, 1, &two),
         "llama.expert_used_count does not fit the number of experts"},
        {"llama", value("llama.expert_count", CGAM_GGUF_U32, 1, &two),
         "llama.expert_used_count does not fit the number of experts"},
        {"general", value("general.x", CGAM_GGUF_U32, 1, &two), NULL},
        {"", value("x", CGAM_GGUF_U32, 1, &two), "not of a language model"},
        {"two\nlines", value("x", CGAM_GGUF_U32, 1, &two), "general.architecture is not a string"},
    };
    CHECK_STATUS(env, check_with("llama", 0, NULL));
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const cgam_status status = check_with(cases[i].architecture, 1, &cases[i].value);
        const char *said = status == CGAM_OK ? "nothing" : cgam_env_message(env);
        if (status != (cases[i].says ? CGAM_E_FORMAT : CGAM_OK) ||
            (cases[i].says && !strstr(said, cases[i].says))) {
            print_error("%s: %d with '%s', not '%s'\n", cases[i].value.name.at, status, said,
                        cases[i].says ? cases[i].says : "nothing");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

TEST_WITH(read_model, forget_model, experts_are_at_most_as_many_as_there_are)
{
    static const uint32_t four = 4, used[] = {2, 4, 5};
    for (uint64_t n = 1; n <= 3; n++) {
        const cgam_gguf_value both[] = {value("llama.expert_count", CGAM_GGUF_U32, 1, &four),
                                        value("llama.expert_used_count", CGAM_GGUF_U32, n, used)};
        CHECK_FAILS(env, n < 3 ? CGAM_OK : CGAM_E_FORMAT, check_with("llama", 2, both));
    }
    CHECK_MESSAGE(env, "does not fit the number of experts");
}
