/* Any bytes as a .npy file. */
#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(&cgam_format_npy, data, size, size);
}
