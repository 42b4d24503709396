/* Any bytes as a .safetensors file. */
#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(&cgam_format_safetensors, data, size, size);
}
