/* Any bytes as the head of a model. What is refused is refused in one line; what is let through has tensors within the file,
 * apart and in whole blocks, and keys that libllama divides by. */
#include "fuzz/readers.h"
#include "lm/model_check.h"

#include <math.h>
#include <stdio.h>

static double number(const cgam_gguf *g, const char *key)
{
    char name[2 * CGAM_GGUF_NAME];
    snprintf(name, sizeof name, "%s.%s", g->architecture, key);
    const cgam_gguf_value *v = cgam_gguf_find(g, name);
    return v && v->count > 0 ? cgam_gguf_number(v, 0) : (double)NAN;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    cgam_gguf g;
    if (cgam_gguf_parse(env, "fuzz", data, size, &g) != CGAM_OK) {
        must(!g.tensors && !g.values);
        must_be_one_line(env);
        return 0;
    }
    if (cgam_model_check(env, "fuzz", &g) != CGAM_OK) {
        must_be_one_line(env);
        cgam_gguf_free(env, &g);
        return 0;
    }
    for (int64_t i = 0; i < g.count; i++) {
        const cgam_gguf_tensor *t = &g.tensors[i];
        must(t->bytes > 0 && t->bytes <= size && t->begin <= size - t->bytes && t->begin % 32 == 0);
        for (int64_t k = 0; k < i && i < 64; k++)
            must(t->begin >= g.tensors[k].begin + g.tensors[k].bytes ||
                 g.tensors[k].begin >= t->begin + t->bytes);
    }
    must(!(number(&g, "block_count") < 1) && !(number(&g, "rope.freq_base") <= 0) &&
         !(number(&g, "attention.layer_norm_rms_epsilon") < 0));
    cgam_gguf_free(env, &g);
    return 0;
}
