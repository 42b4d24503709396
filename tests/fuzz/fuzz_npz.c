/* Any bytes as an .npz file. Deflate gives at most 1032 bytes for one, and a byte of integers becomes four. */
#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool zone; /* without one the C library looks for its file at every date in an archive */
    if (!zone) zone = setenv("TZ", "UTC0", 1) == 0;
    return fuzz_reader(&cgam_format_npz, data, size, (uint64_t)size * 1032 * 4);
}
