/* tiny_model.c: writes a small model with random weights for tests that are no C: tiny_model FILE.gguf [KIND [CONTEXT [SEED]]] */
#include "support/tiny_gguf.h"

#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *name, *architecture;
    tiny_type type;
    bool tied, rope_factors, bpe;
    int layers, width, context; /* 0: as small as by default */
} kinds[] = {
    {.name = "llama"},
    {.name = "tied", .tied = true},
    {.name = "stablelm", .architecture = "stablelm"},
    {.name = "gemma", .architecture = "gemma", .type = TINY_F16, .tied = true},
    {.name = "xverse", .architecture = "xverse", .type = TINY_F16},
    {.name = "packed", .type = TINY_Q8_0, .tied = true, .rope_factors = true},
    {.name = "bpe", .type = TINY_F16, .tied = true, .bpe = true},
    {.name = "slow", .type = TINY_F16, .tied = true, .layers = 8, .width = 512, .context = 32768}};

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 5) return 2;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *k = &kinds[i];
        if (argc > 2 && strcmp(argv[2], k->name) != 0) continue;
        tiny_shape shape = tiny_shape_default();
        shape.architecture = k->architecture;
        shape.type = k->type;
        shape.tied = k->tied;
        shape.rope_factors = k->rope_factors;
        shape.bpe = k->bpe;
        if (k->layers) {
            shape.layers = k->layers;
            shape.width = k->width;
            shape.ff = 2 * k->width;
            shape.context = k->context;
        }
        if (argc > 3) shape.context = (int)strtol(argv[3], NULL, 10);
        if (argc > 4) shape.seed = strtoull(argv[4], NULL, 10);
        tiny_write(argv[1], shape);
        return 0;
    }
    return 2;
}
