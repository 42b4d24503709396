/* Any bytes as an .npz file. Deflate gives at most 1032 bytes for one, and a byte of integers becomes four. */
#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(&cgam_format_npz, data, size, (uint64_t)size * 1032 * 4);
}
