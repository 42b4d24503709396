/* model_check.c: requirements on the keys and tensors of a model, as tables. The limits are those of libllama's own
 * assertions and divisions, found by reading what it printed when it ended on a damaged file. Cases that libllama itself
 * rejects with an error (a tensor whose shape contradicts the keys, a missing key) are left to it; the error is passed
 * on. */
#include "lm/model_check.h"
#include "base/env.h"

#include <ctype.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* ---- Vocabulary ------------------------------------------------------------------------------ */
/* Checks the tokens of a model before libllama reads them. libllama assumes that texts differ, that tokens for
 * bytes name their byte, and that no text is cut off at its end. */

enum { TOKENS_MAX = 1 << 24, TYPE_BYTE = 6 };

/* Tokenizers by what their texts are. */
typedef enum tokenizer_kind { UNKNOWN, NONE, SCORED, MERGED, WHOLE_WORDS, OTHER } tokenizer_kind;

typedef struct vocabulary {
    cgam_env *env;
    const char *name; /* of the file */
    const cgam_gguf *g;
    tokenizer_kind reading;
    uint64_t count;
    cgam_gguf_text *text; /* [count] */
    bool byte[256];       /* true if the byte has a token */
} vocabulary;

static cgam_status reject_tokens(const vocabulary *v, const char *key, const char *why)
{
    return cgam_fail(v->env, CGAM_E_FORMAT, "%s: tokenizer.ggml.%s: %s", v->name, key, why);
}

static cgam_status reject_token(const vocabulary *v, const char *key, uint64_t i, const char *why)
{
    return cgam_fail(v->env, CGAM_E_FORMAT, "%s: tokenizer.ggml.%s: item %llu %s", v->name, key,
                     (unsigned long long)i, why);
}

/* An array of that name and kind; NULL, with *status set, if it is something else. */
static const cgam_gguf_value *array_of(const vocabulary *v, const char *key, cgam_gguf_kind kind,
                                       cgam_status *status)
{
    char name[CGAM_GGUF_NAME];
    snprintf(name, sizeof name, "tokenizer.ggml.%s", key);
    const cgam_gguf_value *value = cgam_gguf_find(v->g, name);
    if (!value || (value->array && value->kind == kind)) return value;
    *status = reject_tokens(v, key, "expected an array of another type");
    return NULL;
}

/* Bytes of the first UTF-8 character; 0 if invalid. */
static size_t utf8_letter(const uint8_t *s, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    uint32_t code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        code = code << 6 | (s[i] & 63u);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

static bool is_utf8(cgam_gguf_text text)
{
    for (size_t at = 0, n; at < text.length; at += n)
        if (!(n = utf8_letter((const uint8_t *)text.at + at, text.length - at))) return false;
    return true;
}

/* The byte that a text like "<0x0A>" names; -1 if it names none. */
static int byte_of(cgam_gguf_text text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.length != 6 || memcmp(text.at, "<0x", 3) != 0 || text.at[5] != '>') return -1;
    const char *high = memchr(digits, toupper((unsigned char)text.at[3]), 16);
    const char *low = memchr(digits, toupper((unsigned char)text.at[4]), 16);
    return high && low ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

/* ---- Texts -------------------------------------------------------------------------------- */

static bool same_text(cgam_gguf_text a, cgam_gguf_text b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Fails if a text occurs twice. Uses a hash table with a random key, so that no file can force collisions. */
static cgam_status check_differ(const vocabulary *v)
{
    uint8_t key[crypto_shorthash_KEYBYTES];
    uint64_t capacity = 16;
    while (capacity < 2 * v->count) capacity *= 2;
    uint32_t *table = cgam_zalloc(v->env, capacity, sizeof *table); /* one more than the number */
    if (!table) return cgam_fail_nomem(v->env, v->name);
    randombytes_buf(key, sizeof key);
    cgam_status status = CGAM_OK;
    for (uint64_t i = 0; i < v->count && status == CGAM_OK; i++) {
        uint64_t at;
        cgam_gguf_text text = v->text[i];
        if (text.length == 0) continue; /* libllama makes up a name for it */
        crypto_shorthash((uint8_t *)&at, (const uint8_t *)text.at, text.length, key);
        for (at &= capacity - 1; table[at]; at = (at + 1) & (capacity - 1))
            if (same_text(v->text[table[at] - 1], text)) {
                status = reject_token(v, "tokens", i, "is a duplicate");
                break;
            }
        table[at] = (uint32_t)i + 1;
    }
    cgam_free(v->env, table);
    return status;
}

static cgam_status check_tokens(vocabulary *v)
{
    cgam_status status = CGAM_OK;
    const cgam_gguf_value *tokens = array_of(v, "tokens", CGAM_GGUF_TEXT, &status);
    if (status != CGAM_OK) return status;
    if (!tokens) return v->reading == UNKNOWN ? CGAM_OK : reject_tokens(v, "tokens", "missing");
    if (tokens->count == 0 || tokens->count > TOKENS_MAX)
        return reject_tokens(v, "tokens", "empty, or too many");
    v->count = tokens->count;
    v->text = cgam_alloc(v->env, v->count, sizeof *v->text);
    if (!v->text) return cgam_fail_nomem(v->env, v->name);
    const uint8_t *at = tokens->items;
    for (uint64_t i = 0; i < v->count; i++) {
        cgam_gguf_text text = v->text[i] = cgam_gguf_next(&at);
        int byte = byte_of(text);
        if (v->reading == UNKNOWN) continue;
        if (memchr(text.at, 0, text.length) && text.length > 1)
            return reject_token(v, "tokens", i, "contains a zero byte");
        if (!is_utf8(text) && text.length > 1) return reject_token(v, "tokens", i, "is not UTF-8");
        if (byte < 0 && text.length == 1) byte = (unsigned char)text.at[0];
        if (byte >= 0) v->byte[byte] = true;
    }
    return v->reading == UNKNOWN ? CGAM_OK : check_differ(v);
}

/* The same of an array with an item for each token. */
static const cgam_gguf_value *array_of_tokens(const vocabulary *v, const char *key,
                                              cgam_gguf_kind kind, cgam_status *status)
{
    const cgam_gguf_value *value = array_of(v, key, kind, status);
    if (*status == CGAM_OK && value && value->count != v->count)
        *status = reject_tokens(v, key, "its length differs from the number of tokens");
    return value;
}

static cgam_status check_types(const vocabulary *v)
{
    cgam_status status = CGAM_OK;
    const cgam_gguf_value *types = array_of_tokens(v, "token_type", CGAM_GGUF_I32, &status);
    for (uint64_t i = 0; types && i < v->count && status == CGAM_OK; i++) {
        double type = cgam_gguf_number(types, i);
        if (type < 0 || type > TYPE_BYTE)
            status = reject_token(v, "token_type", i, "is not a token type");
        else if (type == TYPE_BYTE && v->reading == WHOLE_WORDS)
            status = reject_token(v, "token_type", i,
                                  "has type byte, which this tokenizer does not have");
        else if (type == TYPE_BYTE && v->reading != UNKNOWN && byte_of(v->text[i]) < 0)
            status = reject_token(v, "token_type", i, "has type byte, but the token is not a byte");
    }
    return status;
}

/* Pairs of texts with a blank between them. */
static cgam_status check_merges(const vocabulary *v)
{
    cgam_status status = CGAM_OK;
    const cgam_gguf_value *merges = array_of(v, "merges", CGAM_GGUF_TEXT, &status);
    if (status == CGAM_OK && !merges && v->reading == MERGED)
        status = reject_tokens(v, "merges", "missing");
    const uint8_t *at = merges ? merges->items : NULL;
    for (uint64_t i = 0; merges && i < merges->count && status == CGAM_OK; i++) {
        cgam_gguf_text text = cgam_gguf_next(&at);
        const char *blank = text.length > 2 ? memchr(text.at + 1, ' ', text.length - 2) : NULL;
        if (!blank) status = reject_token(v, "merges", i, "is not a pair separated by a blank");
        else if (!is_utf8(text)) status = reject_token(v, "merges", i, "is not UTF-8");
    }
    return status;
}

/* The character map of a t5 tokenizer: the size of a table, the table, and zero-terminated texts. */
static cgam_status check_charsmap(const vocabulary *v)
{
    const cgam_gguf_value *map = cgam_gguf_find(v->g, "tokenizer.ggml.precompiled_charsmap");
    uint32_t table;
    if (!map) return CGAM_OK;
    if (!map->array || (map->kind != CGAM_GGUF_U8 && map->kind != CGAM_GGUF_I8))
        return reject_tokens(v, "precompiled_charsmap", "expected an array of another type");
    if (map->count == 0) return CGAM_OK;
    if (map->count >= sizeof table) memcpy(&table, map->items, sizeof table);
    if (map->count < sizeof table || table % 4 != 0 || table >= map->count - sizeof table ||
        map->items[map->count - 1] != 0)
        return reject_tokens(v, "precompiled_charsmap", "its size does not match its header");
    return CGAM_OK;
}

static cgam_status check_all(vocabulary *v)
{
    cgam_status status = check_tokens(v);
    if (status == CGAM_OK) array_of_tokens(v, "scores", CGAM_GGUF_F32, &status);
    if (status == CGAM_OK) status = check_types(v);
    if (status == CGAM_OK) status = check_merges(v);
    if (status == CGAM_OK) status = check_charsmap(v);
    for (int i = 0; i < 256 && status == CGAM_OK && v->reading == SCORED; i++)
        if (!v->byte[i])
            status = cgam_fail(v->env, CGAM_E_FORMAT, "%s: no token for byte 0x%02X", v->name,
                               (unsigned)i);
    return status;
}

/* Tokens, scores, types and merges are as many, of the types and of the form that their tokenizer needs. Tokenizers that
 * are not known are held to lengths and types. CGAM_E_FORMAT; `name` is the file in messages. */
static cgam_status check_vocabulary(cgam_env *env, const char *name, const cgam_gguf *g)
{
    static const struct {
        const char *model;
        tokenizer_kind reading;
    } known[] = {{"llama", SCORED}, {"gpt2", MERGED}, {"bert", WHOLE_WORDS},
                 {"t5", OTHER},     {"none", NONE},   {"no_vocab", NONE}};
    vocabulary v = {.env = env, .name = name, .g = g};
    const cgam_gguf_value *model = cgam_gguf_find(g, "tokenizer.ggml.model");
    if (!model || model->array || model->kind != CGAM_GGUF_TEXT)
        return reject_tokens(&v, "model", "missing, or not a string");
    const uint8_t *at = model->items;
    cgam_gguf_text word = cgam_gguf_next(&at);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (cgam_gguf_is(word, known[i].model)) v.reading = known[i].reading;
    if (v.reading == NONE) return reject_tokens(&v, "model", "the model has no vocabulary");
    cgam_status status = check_all(&v);
    cgam_free(env, v.text);
    return status;
}

/* ---- Model ----------------------------------------------------------------------------------- */
enum { LAYERS_MAX = 512, EXPERTS_MAX = 512, DATA_ALIGN = 32 };

typedef struct model_checking {
    cgam_env *env;
    const char *name; /* of the file */
    const cgam_gguf *g;
    bool plain, turns_all; /* as in `architectures` */
} model_checking;

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

static cgam_status reject_key(const model_checking *c, const char *key, const char *why)
{
    return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s.%s %s", c->name, c->g->architecture, key, why);
}

const cgam_gguf_value *cgam_model_value(const cgam_gguf *g, const char *key)
{
    char name[2 * CGAM_GGUF_NAME];
    snprintf(name, sizeof name, "%s.%s", g->architecture, key);
    return cgam_gguf_find(g, name);
}

/* Item i, or the single item for all; `otherwise` if the key is absent. */
static double number_of(const model_checking *c, const char *key, uint64_t i, double otherwise)
{
    const cgam_gguf_value *v = cgam_model_value(c->g, key);
    if (!v || v->count == 0 || v->kind == CGAM_GGUF_TEXT) return otherwise;
    return cgam_gguf_number(v, v->array && i < v->count ? i : 0);
}

static bool is_real(cgam_gguf_kind kind) { return kind == CGAM_GGUF_F32 || kind == CGAM_GGUF_F64; }

static cgam_status check_word(const model_checking *c, const struct rule *rule,
                              const cgam_gguf_value *v)
{
    const uint8_t *at = v->items;
    if (v->array || v->kind != CGAM_GGUF_TEXT) return reject_key(c, rule->key, "is not a string");
    cgam_gguf_text text = cgam_gguf_next(&at);
    for (const char *word = rule->words; *word; word = strchr(word, ' ') + 1)
        if ((size_t)(strchr(word, ' ') - word) == text.length &&
            memcmp(word, text.at, text.length) == 0)
            return CGAM_OK;
    return reject_key(c, rule->key, "has an unknown value");
}

static cgam_status check_rule(const model_checking *c, const struct rule *rule)
{
    const cgam_gguf_value *v = cgam_model_value(c->g, rule->key);
    if (!v) return rule->needed && c->plain ? reject_key(c, rule->key, "is missing") : CGAM_OK;
    if (rule->kind == WORD) return check_word(c, rule, v);
    if (v->kind == CGAM_GGUF_TEXT || v->kind == CGAM_GGUF_BOOL ||
        is_real(v->kind) != (rule->kind == REAL))
        return reject_key(c, rule->key,
                          rule->kind == REAL ? "is not a real number" : "is not an integer");
    if (v->array && v->count > LAYERS_MAX)
        return reject_key(c, rule->key, "has more items than layers");
    for (uint64_t i = 0; i < v->count; i++) {
        double x = cgam_gguf_number(v, i);
        if (!(x >= rule->min && x <= rule->max))
            return cgam_fail(c->env, CGAM_E_FORMAT, "%s: %s.%s is %g, it must be from %g to %g",
                             c->name, c->g->architecture, rule->key, x, rule->min, rule->max);
    }
    return CGAM_OK;
}

/* No key may hold NaN or infinity. */
static cgam_status check_finite(const model_checking *c)
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

/* Checks that the heads of every layer divide the sizes that they share. */
static cgam_status check_heads(const model_checking *c)
{
    double width = number_of(c, "embedding_length", 0, 0),
           layers = number_of(c, "block_count", 0, 1);
    for (uint64_t i = 0; i < (uint64_t)layers; i++) {
        double heads = number_of(c, "attention.head_count", i, 0);
        double shared = number_of(c, "attention.head_count_kv", i, heads);
        double size = number_of(c, "attention.key_length", i, heads > 0 ? width / heads : 0);
        double turned = number_of(c, "rope.dimension_count", i, size);
        if (heads == 0 && c->plain) return reject_key(c, "attention.head_count", "is 0");
        if (heads == 0) continue;
        if (size != floor(size))
            return reject_key(c, "attention.head_count", "does not divide the width");
        if (shared == 0 ? c->plain : fmod(heads, shared) != 0)
            return reject_key(c, "attention.head_count_kv", "does not divide the heads");
        if (turned > size || fmod(turned, 2) != 0 || (c->plain && turned < 2) ||
            (c->turns_all && turned != size))
            return cgam_fail(
                c->env, CGAM_E_FORMAT,
                "%s: %s.rope.dimension_count is %g, which does not suit heads of size %g", c->name,
                c->g->architecture, turned, size);
    }
    return CGAM_OK;
}

static cgam_status check_counts(const model_checking *c)
{
    double layers = number_of(c, "block_count", 0, LAYERS_MAX);
    double experts = number_of(c, "expert_count", 0, 0);
    const cgam_gguf_value *used = cgam_model_value(c->g, "expert_used_count");
    if (number_of(c, "nextn_predict_layers", 0, 0) >= layers)
        return reject_key(c, "nextn_predict_layers", "leaves no layer");
    if (number_of(c, "leading_dense_block_count", 0, 0) > layers)
        return reject_key(c, "leading_dense_block_count", "exceeds the number of layers");
    for (uint64_t i = 0; i < (used ? used->count : 1); i++) {
        double some = number_of(c, "expert_used_count", i, 0);
        if (some > experts || (experts > 0 && some == 0))
            return reject_key(c, "expert_used_count", "does not fit the number of experts");
    }
    return CGAM_OK;
}

/* ggml cannot multiply by matrices of these types: its types of activations (Q8_1, Q8_K), integers and doubles. */
static bool no_weight(uint32_t type)
{
    return type == 9 || type == 15 || (type >= 24 && type <= 28);
}

/* Checks that data are in blocks that ggml knows, at addresses that it can read. */
static cgam_status check_tensors(const model_checking *c)
{
    if (c->g->count == 0) return cgam_fail(c->env, CGAM_E_FORMAT, "%s: no tensors", c->name);
    for (int64_t i = 0; i < c->g->count; i++) {
        const cgam_gguf_tensor *t = &c->g->tensors[i];
        int bytes, numbers = cgam_gguf_block(t->type, &bytes);
        if (numbers == 0)
            return cgam_fail(c->env, CGAM_E_UNSUPPORTED, "%s: tensor '%s' has unknown type %u",
                             c->name, t->name, (unsigned)t->type);
        if (no_weight(t->type))
            return cgam_fail(c->env, CGAM_E_UNSUPPORTED,
                             "%s: tensor '%s' has type %u, which is not a weight type", c->name,
                             t->name, (unsigned)t->type);
        if (t->bytes == 0)
            return cgam_fail(c->env, CGAM_E_FORMAT,
                             "%s: tensor '%s': rows of %lld numbers are not whole blocks of %d",
                             c->name, t->name, (long long)t->shape[0], numbers);
        if (t->begin % DATA_ALIGN != 0)
            return cgam_fail(c->env, CGAM_E_FORMAT,
                             "%s: the offset of tensor '%s' is not a "
                             "multiple of %d",
                             c->name, t->name, DATA_ALIGN);
    }
    return CGAM_OK;
}

cgam_status cgam_model_check(cgam_env *env, const char *name, const cgam_gguf *g)
{
    model_checking c = {.env = env, .name = name, .g = g};
    if (!g->architecture[0])
        return cgam_fail(env, CGAM_E_FORMAT, "%s: a GGUF file, but not of a language model", name);
    if (!cgam_gguf_clean((cgam_gguf_text){g->architecture, strlen(g->architecture)}))
        return cgam_fail(env, CGAM_E_FORMAT, "%s: general.architecture is not a string", name);
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
    return status == CGAM_OK ? check_vocabulary(env, name, g) : status;
}
