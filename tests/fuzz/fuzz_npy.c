/* Any bytes as a .npy file. Integers are widened: a byte becomes four. */
#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(&cgam_format_npy, data, size, (uint64_t)size * 4);
}
