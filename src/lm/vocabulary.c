/* vocabulary.c: the tokens of a model before libllama sees them. It takes it for granted that texts differ, that tokens for
 * bytes say which, and that a text cut at its end is none. */
#include "lm/vocabulary.h"

#include "base/env.h"

#include <ctype.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS_MAX = 1 << 24, TYPE_BYTE = 6 };

/* Tokenizers by what their texts are. */
typedef enum reading { UNKNOWN, NONE, SCORED, MERGED, WHOLE_WORDS, OTHER } reading;

typedef struct vocabulary {
    cgam_env *env;
    const char *name; /* of the file */
    const cgam_gguf *g;
    reading reading;
    uint64_t count;
    cgam_gguf_text *text; /* [count] */
    bool byte[256];       /* there is a token for it */
} vocabulary;

static cgam_status refuse(const vocabulary *v, const char *key, const char *why)
{
    return cgam_fail(v->env, CGAM_E_FORMAT, "%s: tokenizer.ggml.%s: %s", v->name, key, why);
}

static cgam_status refuse_item(const vocabulary *v, const char *key, uint64_t i, const char *why)
{
    return cgam_fail(v->env, CGAM_E_FORMAT, "%s: tokenizer.ggml.%s: item %llu %s", v->name, key,
                     (unsigned long long)i, why);
}

/* An array of that name and kind; NULL, with *status, where it is another thing. */
static const cgam_gguf_value *array_of(const vocabulary *v, const char *key, cgam_gguf_kind kind,
                                       cgam_status *status)
{
    char name[CGAM_GGUF_NAME];
    snprintf(name, sizeof name, "tokenizer.ggml.%s", key);
    const cgam_gguf_value *value = cgam_gguf_find(v->g, name);
    if (!value || (value->array && value->kind == kind)) return value;
    *status = refuse(v, key, "an array of another type");
    return NULL;
}

/* Bytes of the first letter of UTF-8, 0: it is none. */
static size_t letter(const uint8_t *s, size_t left)
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
        if (!(n = letter((const uint8_t *)text.at + at, text.length - at))) return false;
    return true;
}

/* Which byte "<0x0A>" is; -1: none. */
static int byte_of(cgam_gguf_text text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.length != 6 || memcmp(text.at, "<0x", 3) != 0 || text.at[5] != '>') return -1;
    const char *high = memchr(digits, toupper((unsigned char)text.at[3]), 16);
    const char *low = memchr(digits, toupper((unsigned char)text.at[4]), 16);
    return high && low ? (int)(16 * (high - digits) + (low - digits)) : -1;
}

/* ---- Texts -------------------------------------------------------------------------------- */

static bool same(cgam_gguf_text a, cgam_gguf_text b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* No text twice, by a table of hashes under a key of chance, which nobody can crowd. */
static cgam_status check_differ(const vocabulary *v)
{
    uint8_t key[crypto_shorthash_KEYBYTES];
    uint64_t room = 16;
    while (room < 2 * v->count) room *= 2;
    uint32_t *table = cgam_zalloc(v->env, room, sizeof *table); /* one more than the number */
    if (!table) return cgam_fail_nomem(v->env, v->name);
    randombytes_buf(key, sizeof key);
    cgam_status status = CGAM_OK;
    for (uint64_t i = 0; i < v->count && status == CGAM_OK; i++) {
        uint64_t at;
        cgam_gguf_text text = v->text[i];
        if (text.length == 0) continue; /* libllama gives it a name of its own */
        crypto_shorthash((uint8_t *)&at, (const uint8_t *)text.at, text.length, key);
        for (at &= room - 1; table[at]; at = (at + 1) & (room - 1))
            if (same(v->text[table[at] - 1], text)) {
                status = refuse_item(v, "tokens", i, "is there twice");
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
    if (!tokens) return v->reading == UNKNOWN ? CGAM_OK : refuse(v, "tokens", "missing");
    if (tokens->count == 0 || tokens->count > TOKENS_MAX)
        return refuse(v, "tokens", "none, or more than can be");
    v->count = tokens->count;
    v->text = cgam_alloc(v->env, v->count, sizeof *v->text);
    if (!v->text) return cgam_fail_nomem(v->env, v->name);
    const uint8_t *at = tokens->items;
    for (uint64_t i = 0; i < v->count; i++) {
        cgam_gguf_text text = v->text[i] = cgam_gguf_next(&at);
        int byte = byte_of(text);
        if (v->reading == UNKNOWN) continue;
        if (memchr(text.at, 0, text.length) && text.length > 1)
            return refuse_item(v, "tokens", i, "has a zero in it");
        if (!is_utf8(text) && text.length > 1) return refuse_item(v, "tokens", i, "is no UTF-8");
        if (byte < 0 && text.length == 1) byte = (unsigned char)text.at[0];
        if (byte >= 0) v->byte[byte] = true;
    }
    return v->reading == UNKNOWN ? CGAM_OK : check_differ(v);
}

static cgam_status check_scores(const vocabulary *v)
{
    cgam_status status = CGAM_OK;
    const cgam_gguf_value *scores = array_of(v, "scores", CGAM_GGUF_F32, &status);
    if (status == CGAM_OK && scores && scores->count != v->count)
        status = refuse(v, "scores", "not as many as tokens");
    return status;
}

static cgam_status check_types(const vocabulary *v)
{
    cgam_status status = CGAM_OK;
    const cgam_gguf_value *types = array_of(v, "token_type", CGAM_GGUF_I32, &status);
    if (status == CGAM_OK && types && types->count != v->count)
        status = refuse(v, "token_type", "not as many as tokens");
    for (uint64_t i = 0; types && i < v->count && status == CGAM_OK; i++) {
        double type = cgam_gguf_number(types, i);
        if (type < 0 || type > TYPE_BYTE) status = refuse_item(v, "token_type", i, "is no type");
        else if (type == TYPE_BYTE && v->reading == WHOLE_WORDS)
            status = refuse_item(v, "token_type", i, "says byte, which this tokenizer has none of");
        else if (type == TYPE_BYTE && v->reading != UNKNOWN && byte_of(v->text[i]) < 0)
            status = refuse_item(v, "token_type", i, "says byte, and the token is none");
    }
    return status;
}

/* Pairs of texts with a blank between them. */
static cgam_status check_merges(const vocabulary *v)
{
    cgam_status status = CGAM_OK;
    const cgam_gguf_value *merges = array_of(v, "merges", CGAM_GGUF_TEXT, &status);
    if (status == CGAM_OK && !merges && v->reading == MERGED)
        status = refuse(v, "merges", "missing");
    const uint8_t *at = merges ? merges->items : NULL;
    for (uint64_t i = 0; merges && i < merges->count && status == CGAM_OK; i++) {
        cgam_gguf_text text = cgam_gguf_next(&at);
        const char *blank = text.length > 2 ? memchr(text.at + 1, ' ', text.length - 2) : NULL;
        if (!blank) status = refuse_item(v, "merges", i, "is no pair");
        else if (!is_utf8(text)) status = refuse_item(v, "merges", i, "is no UTF-8");
    }
    return status;
}

/* What a tokenizer of t5 begins with: the size of a table, the table, and texts that end by a zero. */
static cgam_status check_charsmap(const vocabulary *v)
{
    const cgam_gguf_value *map = cgam_gguf_find(v->g, "tokenizer.ggml.precompiled_charsmap");
    uint32_t table;
    if (!map) return CGAM_OK;
    if (!map->array || (map->kind != CGAM_GGUF_U8 && map->kind != CGAM_GGUF_I8))
        return refuse(v, "precompiled_charsmap", "an array of another type");
    if (map->count == 0) return CGAM_OK;
    if (map->count >= sizeof table) memcpy(&table, map->items, sizeof table);
    if (map->count < sizeof table || table % 4 != 0 || table >= map->count - sizeof table ||
        map->items[map->count - 1] != 0)
        return refuse(v, "precompiled_charsmap", "another size than it says");
    return CGAM_OK;
}

static cgam_status check_all(vocabulary *v)
{
    cgam_status status = check_tokens(v);
    if (status == CGAM_OK) status = check_scores(v);
    if (status == CGAM_OK) status = check_types(v);
    if (status == CGAM_OK) status = check_merges(v);
    if (status == CGAM_OK) status = check_charsmap(v);
    for (int i = 0; i < 256 && status == CGAM_OK && v->reading == SCORED; i++)
        if (!v->byte[i])
            status = cgam_fail(v->env, CGAM_E_FORMAT, "%s: there is no token for byte 0x%02X",
                               v->name, (unsigned)i);
    return status;
}

cgam_status cgam_vocabulary_check(cgam_env *env, const char *name, const cgam_gguf *g)
{
    static const struct {
        const char *model;
        reading reading;
    } known[] = {{"llama", SCORED}, {"gpt2", MERGED}, {"bert", WHOLE_WORDS},
                 {"t5", OTHER},     {"none", NONE},   {"no_vocab", NONE}};
    vocabulary v = {.env = env, .name = name, .g = g};
    const cgam_gguf_value *model = cgam_gguf_find(g, "tokenizer.ggml.model");
    if (!model || model->array || model->kind != CGAM_GGUF_TEXT)
        return refuse(&v, "model", "missing, or no text");
    const uint8_t *at = model->items;
    cgam_gguf_text word = cgam_gguf_next(&at);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (cgam_gguf_is(word, known[i].model)) v.reading = known[i].reading;
    if (v.reading == NONE) return refuse(&v, "model", "this model has no words");
    cgam_status status = check_all(&v);
    cgam_free(env, v.text);
    return status;
}
