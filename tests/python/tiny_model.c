/* tiny_model.c: writes a small model with random weights for tests that are no C: tiny_model FILE.gguf [KIND] */
#include "support/tiny_gguf.h"

#include <string.h>

static const struct kind {
    const char *name, *architecture;
    tiny_type type;
    bool tied, rope_factors, bpe;
} kinds[] = {{"llama", NULL, TINY_F32, false, false, false},
             {"stablelm", "stablelm", TINY_F32, false, false, false},
             {"gemma", "gemma", TINY_F16, true, false, false},
             {"xverse", "xverse", TINY_F16, false, false, false},
             {"packed", NULL, TINY_Q8_0, true, true, false},
             {"bpe", NULL, TINY_F16, true, false, true}};

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) return 2;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct kind *k = &kinds[i];
        if (argc == 3 && strcmp(argv[2], k->name) != 0) continue;
        tiny_shape shape = tiny_shape_default();
        shape.architecture = k->architecture;
        shape.type = k->type;
        shape.tied = k->tied;
        shape.rope_factors = k->rope_factors;
        shape.bpe = k->bpe;
        tiny_write(argv[1], shape);
        return 0;
    }
    return 2;
}
