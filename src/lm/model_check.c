/* model_check.c: what the keys and tensors of a model must be, as tables. The limits are those of libllama's own assertions
 * and divisions, found by reading what it said when it ended on a damaged file. Where libllama refuses by itself, with an
 * error that we pass on - a tensor of another shape than the keys say, a key that it misses - it is left to it. */
#include "lm/model_check.h"

#include "base/env.h"
#include "lm/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS_MAX = 512, EXPERTS_MAX = 512, DATA_ALIGN = 32 };

typedef struct checking {
    cgam_env *env;
    const char *name; /* of the file */
    const cgam_gguf *g;
    bool plain, turns_all; /* as in `architectures` */
} checking;

/* Architectures of attention and a feed-forward part in every layer. `turns_all`: positions turn whole heads. */
static const struct {
    const char *name;
    bool turns_all;
} architectures[] = {
    {"llama", true},     {"xverse", true},   {"baichuan", true},  {"qwen2", true},
    {"internlm2", true}, {"orion", true},    {"stablelm", false}, {"gemma", false},
    {"gemma2", false},   {"qwen3", false},   {"phi3", false},     {"phi2", false},
    {"gptneox", false},  {"minicpm", false}, {"granite", false},  {"starcoder2", false}};

typedef enum rule_kind { WHOLE, REAL, WORD } rule_kind;

/* Keys behind ARCHITECTURE. and the range of each, of every item where it has one for each layer. */
static const struct rule {
    const char *key;
    rule_kind kind;
    bool needed; /* by plain architectures */
    double min, max;
    const char *words; /* of a WORD, with a blank behind each */
} rules[] = {{"context_length", WHOLE, true, 1, 0x7fffffff, NULL},
             {"embedding_length", WHOLE, true, 1, 1 << 20, NULL},
             {"embedding_length_out", WHOLE, false, 1, 1 << 20, NULL},
             {"block_count", WHOLE, true, 1, LAYERS_MAX, NULL},
             {"leading_dense_block_count", WHOLE, false, 0, LAYERS_MAX, NULL},
             {"nextn_predict_layers", WHOLE, false, 0, LAYERS_MAX - 1, NULL},
             {"feed_forward_length", WHOLE, true, 0, 1 << 24, NULL},
             {"vocab_size", WHOLE, false, 1, 1 << 24, NULL},
             {"attention.head_count", WHOLE, true, 0, 1 << 16, NULL},
             {"attention.head_count_kv", WHOLE, false, 0, 1 << 16, NULL},
             {"attention.key_length", WHOLE, false, 1, 1 << 16, NULL},
             {"attention.value_length", WHOLE, false, 1, 1 << 16, NULL},
             {"attention.sliding_window", WHOLE, false, 0, 0x7fffffff, NULL},
             {"attention.layer_norm_epsilon", REAL, false, 0, 1, NULL},
             {"attention.layer_norm_rms_epsilon", REAL, false, 0, 1, NULL},
             {"attention.group_norm_epsilon", REAL, false, 0, 1, NULL},
             {"attention.clamp_kqv", REAL, false, 0, 1e9, NULL},
             {"attention.max_alibi_bias", REAL, false, 0, 1e9, NULL},
             {"expert_count", WHOLE, false, 0, EXPERTS_MAX, NULL},
             {"expert_used_count", WHOLE, false, 0, EXPERTS_MAX, NULL},
             {"rope.dimension_count", WHOLE, false, 0, 1 << 16, NULL},
             {"rope.freq_base", REAL, false, 1e-3, 1e15, NULL},
             {"rope.freq_base_swa", REAL, false, 1e-3, 1e15, NULL},
             {"rope.freq_scale", REAL, false, 1e-9, 1e9, NULL},
             {"rope.scale_linear", REAL, false, 1e-9, 1e9, NULL},
             {"rope.scaling.factor", REAL, false, 0, 1e9, NULL},
             {"rope.scaling.attn_factor", REAL, false, 0, 1e9, NULL},
             {"rope.scaling.original_context_length", WHOLE, false, 0, 0x7fffffff, NULL},
             {"rope.scaling.type", WORD, false, 0, 0, "none linear yarn longrope "}};

static cgam_status refuse(const checking *c, const char *key, const char *why)
{
    return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s.%s %s", c->name, c->g->architecture, key, why);
}

/* The value of ARCHITECTURE.key; NULL: there is none. */
static const cgam_gguf_value *value_of(const checking *c, const char *key)
{
    char name[2 * CGAM_GGUF_NAME];
    snprintf(name, sizeof name, "%s.%s", c->g->architecture, key);
    return cgam_gguf_find(c->g, name);
}

/* Item i, or the one there is for all; `otherwise` where there is none. */
static double number_of(const checking *c, const char *key, uint64_t i, double otherwise)
{
    const cgam_gguf_value *v = value_of(c, key);
    if (!v || v->count == 0 || v->kind == CGAM_GGUF_TEXT) return otherwise;
    return cgam_gguf_number(v, v->array && i < v->count ? i : 0);
}

static bool is_real(cgam_gguf_kind kind) { return kind == CGAM_GGUF_F32 || kind == CGAM_GGUF_F64; }

static cgam_status check_word(const checking *c, const struct rule *rule, const cgam_gguf_value *v)
{
    const uint8_t *at = v->items;
    if (v->array || v->kind != CGAM_GGUF_TEXT) return refuse(c, rule->key, "is no text");
    cgam_gguf_text text = cgam_gguf_next(&at);
    for (const char *word = rule->words; *word; word = strchr(word, ' ') + 1)
        if ((size_t)(strchr(word, ' ') - word) == text.length &&
            memcmp(word, text.at, text.length) == 0)
            return CGAM_OK;
    return refuse(c, rule->key, "is no word that it may be");
}

static cgam_status check_rule(const checking *c, const struct rule *rule)
{
    const cgam_gguf_value *v = value_of(c, rule->key);
    if (!v) return rule->needed && c->plain ? refuse(c, rule->key, "is missing") : CGAM_OK;
    if (rule->kind == WORD) return check_word(c, rule, v);
    if (v->kind == CGAM_GGUF_TEXT || v->kind == CGAM_GGUF_BOOL ||
        is_real(v->kind) != (rule->kind == REAL))
        return refuse(c, rule->key,
                      rule->kind == REAL ? "is no real number" : "is no whole number");
    if (v->array && v->count > LAYERS_MAX)
        return refuse(c, rule->key, "has more items than layers");
    for (uint64_t i = 0; i < v->count; i++) {
        double x = cgam_gguf_number(v, i);
        if (!(x >= rule->min && x <= rule->max))
            return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s.%s is %g, %g to %g is expected",
                             c->name, c->g->architecture, rule->key, x, rule->min, rule->max);
    }
    return CGAM_OK;
}

/* Numbers that are none have no place in any key. */
static cgam_status check_finite(const checking *c)
{
    for (int64_t k = 0; k < c->g->values_count; k++) {
        const cgam_gguf_value *v = &c->g->values[k];
        for (uint64_t i = 0; is_real(v->kind) && i < v->count; i++)
            if (!isfinite(cgam_gguf_number(v, i)))
                return cgam_fail(c->env, CGAM_E_FORMAT,
                                 "%s: key %.*s has a number that is not finite", c->name,
                                 cgam_gguf_clean(v->name) ? (int)v->name.length : 0, v->name.at);
    }
    return CGAM_OK;
}

/* Heads of every layer divide what they share. */
static cgam_status check_heads(const checking *c)
{
    double width = number_of(c, "embedding_length", 0, 0),
           layers = number_of(c, "block_count", 0, 1);
    for (uint64_t i = 0; i < (uint64_t)layers; i++) {
        double heads = number_of(c, "attention.head_count", i, 0);
        double shared = number_of(c, "attention.head_count_kv", i, heads);
        double size = number_of(c, "attention.key_length", i, heads > 0 ? width / heads : 0);
        double turned = number_of(c, "rope.dimension_count", i, size);
        if (heads == 0 && c->plain) return refuse(c, "attention.head_count", "is 0");
        if (heads == 0) continue;
        if (size != floor(size))
            return refuse(c, "attention.head_count", "does not divide the width");
        if (shared == 0 ? c->plain : fmod(heads, shared) != 0)
            return refuse(c, "attention.head_count_kv", "does not divide the heads");
        if (turned > size || fmod(turned, 2) != 0 || (c->plain && turned < 2) ||
            (c->turns_all && turned != size))
            return cgam_fail(c->env, CGAM_E_FORMAT,
                             "%s: %s.rope.dimension_count is %g of heads of %g", c->name,
                             c->g->architecture, turned, size);
    }
    return CGAM_OK;
}

static cgam_status check_counts(const checking *c)
{
    double layers = number_of(c, "block_count", 0, LAYERS_MAX);
    double experts = number_of(c, "expert_count", 0, 0);
    const cgam_gguf_value *used = value_of(c, "expert_used_count");
    if (number_of(c, "nextn_predict_layers", 0, 0) >= layers)
        return refuse(c, "nextn_predict_layers", "leaves no layer");
    if (number_of(c, "leading_dense_block_count", 0, 0) > layers)
        return refuse(c, "leading_dense_block_count", "is more than there are layers");
    for (uint64_t i = 0; i < (used ? used->count : 1); i++) {
        double some = number_of(c, "expert_used_count", i, 0);
        if (some > experts || (experts > 0 && some == 0))
            return refuse(c, "expert_used_count", "does not fit the number of experts");
    }
    return CGAM_OK;
}

/* ggml multiplies by no matrix of such numbers: what it rounds activations to (Q8_1, Q8_K), whole numbers and doubles. */
static bool no_weight(uint32_t type)
{
    return type == 9 || type == 15 || (type >= 24 && type <= 28);
}

/* Data in blocks that ggml knows, at addresses that it can read. */
static cgam_status check_tensors(const checking *c)
{
    if (c->g->count == 0)
        return cgam_fail(c->env, CGAM_E_FORMAT, "%s: there are no tensors in it", c->name);
    for (int64_t i = 0; i < c->g->count; i++) {
        const cgam_gguf_tensor *t = &c->g->tensors[i];
        int bytes, numbers = cgam_gguf_block(t->type, &bytes);
        if (numbers == 0)
            return cgam_fail(c->env, CGAM_E_UNSUPPORTED,
                             "%s: tensor '%s' is of type %u, which is not known", c->name, t->name,
                             (unsigned)t->type);
        if (no_weight(t->type))
            return cgam_fail(c->env, CGAM_E_UNSUPPORTED,
                             "%s: tensor '%s' is of type %u, which no weights are of", c->name,
                             t->name, (unsigned)t->type);
        if (t->bytes == 0)
            return cgam_fail(c->env, CGAM_E_FORMAT,
                             "%s: tensor '%s' has rows of %lld numbers in blocks of %d", c->name,
                             t->name, (long long)t->shape[0], numbers);
        if (t->begin % DATA_ALIGN != 0)
            return cgam_fail(c->env, CGAM_E_FORMAT, "%s: tensor '%s' is at no multiple of %d",
                             c->name, t->name, DATA_ALIGN);
    }
    return CGAM_OK;
}

cgam_status cgam_model_check(cgam_env *env, const char *name, const cgam_gguf *g)
{
    checking c = {.env = env, .name = name, .g = g};
    if (!g->architecture[0])
        return cgam_fail(env, CGAM_E_FORMAT, "%s: a GGUF file, but not of a language model", name);
    if (!cgam_gguf_clean((cgam_gguf_text){g->architecture, strlen(g->architecture)}))
        return cgam_fail(env, CGAM_E_FORMAT, "%s: general.architecture is no word", name);
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures && !c.plain; i++) {
        c.plain = strcmp(g->architecture, architectures[i].name) == 0;
        c.turns_all = c.plain && architectures[i].turns_all;
    }
    cgam_status status = check_finite(&c);
    for (size_t i = 0; i < sizeof rules / sizeof *rules && status == CGAM_OK; i++)
        status = check_rule(&c, &rules[i]);
    if (status == CGAM_OK) status = check_heads(&c);
    if (status == CGAM_OK) status = check_counts(&c);
    if (status == CGAM_OK) status = check_tensors(&c);
    return status == CGAM_OK ? cgam_vocabulary_check(env, name, g) : status;
}
