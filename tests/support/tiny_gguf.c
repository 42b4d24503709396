/* tiny_gguf.c: the GGUF container, version 3, byte by byte; nothing of ggml is used, so that files
 * from here test its reading too. */
#include "support/tiny_gguf.h"

#include "num/cpu/widen.h"
#include "support/check.h"

const char *const tiny_words[] = {"negative", "positive", "Review", "Sentiment", "a",  "good",
                                  "bad",      "film",     "the",    "is",        "of", "Paris",
                                  "Rome",     "France",   "Italy",  "capital",   NULL};

enum { SPECIAL = 3, BYTES = 256, ALIGN = 32 };

/* The tokenizer joins neighbours to pieces it knows, so every beginning of a word is one. Calls
 * each(f, blank, text) for them in order, where blank stands for a blank before the text, and returns how many there are. */
static int pieces(void (*each)(FILE *f, const char *blank, const char *text), FILE *f, bool bpe)
{
    int n = 0;
    for (int whole = 1; whole >= 0; whole--)
        for (int i = 0; tiny_words[i]; i++) {
            int length = (int)strlen(tiny_words[i]);
            for (int k = whole ? length : 0; k < (whole ? length + 1 : length); k++) {
                char text[48];
                bool seen = bpe && k == 0; /* a blank is among the bytes */
                for (int j = 0; tiny_words[j]; j++) {
                    bool begins = strncmp(tiny_words[j], tiny_words[i], (size_t)k) == 0;
                    bool earlier = j < i && begins;
                    bool is_word = begins && (int)strlen(tiny_words[j]) == k;
                    seen = seen || (!whole && (earlier || is_word));
                }
                if (seen) continue;
                snprintf(text, sizeof text, "%.*s", k, tiny_words[i]);
                if (each) each(f, bpe ? "\xc4\xa0" : "\xe2\x96\x81", text);
                n++;
            }
        }
    return n;
}

static int vocab(bool bpe) { return SPECIAL + BYTES + pieces(NULL, NULL, bpe); }

int tiny_vocab(void) { return vocab(false); }

tiny_shape tiny_shape_default(void)
{
    return (tiny_shape){.layers = 3,
                        .width = 64,
                        .heads = 4,
                        .heads_kv = 2,
                        .ff = 96,
                        .context = 256,
                        .type = TINY_F32,
                        .seed = 1};
}

static void put(FILE *f, const void *bytes, size_t size)
{
    assert_int_equal(fwrite(bytes, 1, size, f), size);
}

static void put_u32(FILE *f, uint32_t v) { put(f, &v, sizeof v); }
static void put_u64(FILE *f, uint64_t v) { put(f, &v, sizeof v); }

static void put_text(FILE *f, const char *text)
{
    put_u64(f, strlen(text));
    put(f, text, strlen(text));
}

enum { T_U32 = 4, T_I32 = 5, T_F32 = 6, T_STRING = 8, T_ARRAY = 9 };

static uint64_t keys_put;
static const tiny_key *keys_of; /* the shape's own */

/* Whether it is ours to write. */
static bool key(FILE *f, const char *prefix, const char *name, uint32_t type)
{
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", prefix ? prefix : "", prefix ? "." : "", name);
    for (const tiny_key *k = keys_of; k && k->name; k++)
        if (strcmp(k->name, text) == 0) return false;
    put_text(f, text);
    put_u32(f, type);
    keys_put++;
    return true;
}

static void key_u32(FILE *f, const char *prefix, const char *name, uint32_t v)
{
    if (key(f, prefix, name, T_U32)) put_u32(f, v);
}

static void key_f32(FILE *f, const char *prefix, const char *name, float v)
{
    if (key(f, prefix, name, T_F32)) put(f, &v, sizeof v);
}

static void key_text(FILE *f, const char *name, const char *v)
{
    if (key(f, NULL, name, T_STRING)) put_text(f, v);
}

static void keys_own(FILE *f, const tiny_key *own)
{
    keys_of = NULL;
    for (const tiny_key *k = own; k && k->name; k++) {
        if (k->kind == TINY_NUMBER) key_u32(f, NULL, k->name, (uint32_t)k->number);
        if (k->kind == TINY_REAL) key_f32(f, NULL, k->name, (float)k->number);
        if (k->kind == TINY_TEXT) key_text(f, k->name, k->text);
    }
}

static void key_array(FILE *f, const char *name, uint32_t type, int n)
{
    assert_true(key(f, NULL, name, T_ARRAY));
    put_u32(f, type);
    put_u64(f, (uint64_t)n);
}

static void put_piece(FILE *f, const char *blank, const char *text)
{
    put_u64(f, strlen(blank) + strlen(text));
    put(f, blank, strlen(blank));
    put(f, text, strlen(text));
}

/* How a piece is made: all of it but the last letter, and that. */
static void put_merge(FILE *f, const char *blank, const char *text)
{
    size_t length = strlen(text);
    put_u64(f, strlen(blank) + length + 1);
    put(f, blank, strlen(blank));
    put(f, text, length - 1);
    put(f, " ", 1);
    put(f, text + length - 1, 1);
}

/* A byte as a text: its number, or the letter that GPT-2 has for it, which is never a blank. */
static void put_byte(FILE *f, int byte, bool bpe, int *others)
{
    char text[16];
    bool plain = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    int letter = plain || !bpe ? byte : 256 + (*others)++;
    if (!bpe) snprintf(text, sizeof text, "<0x%02X>", byte);
    else if (letter < 128) snprintf(text, sizeof text, "%c", letter);
    else snprintf(text, sizeof text, "%c%c", 0xc0 | letter >> 6, 0x80 | (letter & 63));
    put_text(f, text);
}

static void put_vocabulary(FILE *f, bool bpe)
{
    int n = vocab(bpe), others = 0;
    key_array(f, "tokenizer.ggml.tokens", T_STRING, n);
    put_text(f, "<unk>"), put_text(f, "<s>"), put_text(f, "</s>");
    for (int i = 0; i < BYTES; i++) put_byte(f, i, bpe, &others);
    pieces(put_piece, f, bpe);
    key_array(f, "tokenizer.ggml.token_type", T_I32, n);
    for (int i = 0; i < n; i++)
        put_u32(f, i == 0 ? 2U : i < SPECIAL ? 3U : i < SPECIAL + BYTES && !bpe ? 6U : 1U);
    if (bpe) {
        key_array(f, "tokenizer.ggml.merges", T_STRING, n - SPECIAL - BYTES);
        pieces(put_merge, f, bpe);
        key_text(f, "tokenizer.ggml.pre", "default");
    } else {
        key_array(f, "tokenizer.ggml.scores", T_F32, n);
        for (int i = 0; i < n; i++) put(f, &(float){i < SPECIAL + BYTES ? 0.0F : (float)-i}, 4);
    }
}

/* ---- Tensors ------------------------------------------------------------------------------ */
typedef struct tensor {
    char name[48];
    int columns, rows; /* rows 0: a vector */
    tiny_type type;
    float mean, spread;
} tensor;

static uint64_t tensor_bytes(const tensor *t)
{
    uint64_t n = (uint64_t)t->columns * (uint64_t)(t->rows ? t->rows : 1);
    return t->type == TINY_F32 ? 4 * n : t->type == TINY_F16 ? 2 * n : n / 32 * 34;
}

static void put_tensor(FILE *f, const tensor *t, cgam_rng *rng)
{
    uint64_t n = (uint64_t)t->columns * (uint64_t)(t->rows ? t->rows : 1), i = 0;
    while (i < n) {
        enum { GROUP = 32 }; /* a block of Q8_0: a factor in f16 and 32 bytes */
        double x[GROUP], top = 0;
        uint64_t m = n - i < GROUP ? n - i : GROUP;
        for (uint64_t j = 0; j < m; j++) {
            x[j] = (double)(float)((double)t->mean + (double)t->spread * cgam_rng_normal(rng));
            top = fmax(top, fabs(x[j]));
        }
        if (t->type == TINY_Q8_0) {
            uint16_t half;
            double factor = top / 127;
            cgam_narrow(CGAM_F16, &factor, 1, &half);
            cgam_widen(CGAM_F16, &half, 1, &factor);
            put(f, &half, sizeof half);
            for (uint64_t j = 0; j < m; j++)
                put(f, &(int8_t){(int8_t)(factor > 0 ? lround(x[j] / factor) : 0)}, 1);
        } else {
            char block[GROUP * 4];
            cgam_dtype as = t->type == TINY_F16 ? CGAM_F16 : CGAM_F32;
            cgam_narrow(as, x, (int64_t)m, block);
            put(f, block, (size_t)m * cgam_dtype_size(as));
        }
        i += m;
    }
    while (ftell(f) % ALIGN != 0) put(f, "", 1);
}

static int add(tensor *list, int n, const char *name, int columns, int rows, tiny_type type)
{
    bool vector = rows == 0;
    list[n] = (tensor){.columns = columns,
                       .rows = rows,
                       .type = vector ? TINY_F32 : type,
                       .mean = vector ? 1.0F : 0.0F,
                       .spread = vector ? 0.2F : 1.5F / sqrtf((float)columns)};
    snprintf(list[n].name, sizeof list[n].name, "%s", name);
    return n + 1;
}

/* The one that is to be another, or not to be. */
static int change(tensor *list, int n, tiny_shape s)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (s.tensor && strcmp(list[i].name, s.tensor) == 0) {
            if (s.columns == 0) continue;
            list[i].columns = s.columns, list[i].rows = s.rows;
        }
        list[kept++] = list[i];
    }
    return kept;
}

static bool layer_norms(tiny_shape s)
{
    return s.architecture && strcmp(s.architecture, "stablelm") == 0;
}

static int list_tensors(tensor *list, tiny_shape s)
{
    static const struct {
        const char *name;
        int columns, rows; /* 1 width, 2 key width, 3 ff; 0: vector */
    } parts[] = {{"attn_norm", 1, 0}, {"attn_q", 1, 1},      {"attn_k", 1, 2},
                 {"attn_v", 1, 2},    {"attn_output", 1, 1}, {"ffn_norm", 1, 0},
                 {"ffn_gate", 1, 3},  {"ffn_up", 1, 3},      {"ffn_down", 3, 1}};
    const int sizes[] = {0, s.width, s.width / s.heads * s.heads_kv, s.ff};
    int n = add(list, 0, "token_embd.weight", s.width, vocab(s.bpe), s.type);
    list[0].spread = 1;
    n = add(list, n, "output_norm.weight", s.width, 0, s.type);
    if (layer_norms(s)) {
        n = add(list, n, "output_norm.bias", s.width, 0, s.type);
        list[n - 1].mean = 0.1F;
    }
    if (!s.tied) n = add(list, n, "output.weight", s.width, vocab(s.bpe), s.type);
    if (s.rope_factors) n = add(list, n, "rope_freqs.weight", s.width / s.heads / 2, 0, s.type);
    for (int l = 0; l < s.layers; l++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            char name[48];
            snprintf(name, sizeof name, "blk.%d.%s.weight", l, parts[i].name);
            n = add(list, n, name, sizes[parts[i].columns], sizes[parts[i].rows], s.type);
            if (parts[i].rows != 0 || !layer_norms(s)) continue;
            snprintf(name, sizeof name, "blk.%d.%s.bias", l, parts[i].name);
            n = add(list, n, name, sizes[parts[i].columns], 0, s.type);
            list[n - 1].mean = 0;
        }
    return n;
}

void tiny_write(const char *path, tiny_shape s)
{
    enum { MOST = 128 };
    tensor list[MOST];
    assert_true(s.layers * 11 + 5 <= MOST);
    int n = change(list, list_tensors(list, s), s);
    const char *arch = s.architecture ? s.architecture : "llama";
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    put(f, "GGUF", 4);
    put_u32(f, 3);
    put_u64(f, (uint64_t)n);
    long count = ftell(f);
    put_u64(f, 0); /* of keys, below */
    keys_put = 0, keys_of = s.keys;
    key_text(f, "general.architecture", arch);
    key_text(f, "general.name", "tiny");
    key_u32(f, arch, "context_length", (uint32_t)s.context);
    key_u32(f, arch, "embedding_length", (uint32_t)s.width);
    key_u32(f, arch, "block_count", (uint32_t)s.layers);
    key_u32(f, arch, "feed_forward_length", (uint32_t)s.ff);
    key_u32(f, arch, "rope.dimension_count", (uint32_t)(s.width / s.heads));
    key_u32(f, arch, "attention.head_count", (uint32_t)s.heads);
    key_u32(f, arch, "attention.head_count_kv", (uint32_t)s.heads_kv);
    key_f32(f, arch,
            layer_norms(s) ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
            1e-5F);
    key_f32(f, arch, "rope.freq_base", 10000);
    key_text(f, "tokenizer.ggml.model", s.bpe ? "gpt2" : "llama");
    put_vocabulary(f, s.bpe);
    key_u32(f, NULL, "tokenizer.ggml.bos_token_id", 1);
    key_u32(f, NULL, "tokenizer.ggml.eos_token_id", 2);
    keys_own(f, s.keys);
    assert_int_equal(fseek(f, count, SEEK_SET), 0);
    put_u64(f, keys_put);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    uint64_t offset = 0;
    for (int i = 0; i < n; i++) {
        put_text(f, list[i].name);
        put_u32(f, list[i].rows ? 2 : 1);
        put_u64(f, (uint64_t)list[i].columns);
        if (list[i].rows) put_u64(f, (uint64_t)list[i].rows);
        put_u32(f, list[i].type);
        put_u64(f, offset);
        offset += (tensor_bytes(&list[i]) + ALIGN - 1) / ALIGN * ALIGN;
    }
    while (ftell(f) % ALIGN != 0) put(f, "", 1);
    for (int i = 0; i < n; i++) {
        cgam_rng rng = cgam_rng_stream(s.seed, (uint64_t)i);
        put_tensor(f, &list[i], &rng);
    }
    assert_int_equal(fclose(f), 0);
}
