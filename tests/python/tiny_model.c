/* tiny_model.c: writes a small Llama model with random weights for the tests of the Python package:
 * tiny_model FILE.gguf */
#include "support/tiny_gguf.h"

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    tiny_write(argv[1], tiny_shape_default());
    return 0;
}
