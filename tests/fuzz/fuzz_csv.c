/* Any bytes as a CSV file. A number of 8 bytes takes at least a digit and a separator. */
#include "fuzz/readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_reader(&cgam_format_csv, data, size, ((uint64_t)size + 1) / 2 * 8);
}
