/* Any bytes as a control vector. What is refused is refused in one line; what is read has rows of
 * finite numbers, and written again it reads back the same. */
#include "fuzz/readers.h"
#include "lm/vector.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    const cgam_file file = cgam_file_borrow(data, size);
    cgam_vector *v = NULL;
    if (cgam_vector_parse_gguf(env, "fuzz", &file, &v) != CGAM_OK) {
        must(!v);
        must_be_one_line(env);
        return 0;
    }
    int64_t rows = cgam_vector_rows(v), width = cgam_vector_width(v);
    must(rows >= 2 && width >= 1 && !cgam_vector_row(v, rows) && !cgam_vector_row(v, -1));
    for (int64_t l = 0; l < rows; l++)
        for (int64_t j = 0; j < width; j++) must(isfinite(cgam_vector_row(v, l)[j]));
    cgam_vector_free(v);
    return 0;
}
