/* Any bytes as a file of prompts. What is refused is refused in one line; what is read has prompts that
 * are not empty, on lines that rise. */
#include "fuzz/readers.h"
#include "lm/prompt_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    const cgam_file bytes = cgam_file_borrow(data, size);
    cgam_prompt_file *file = NULL;
    if (cgam_prompt_file_read(env, "fuzz", &bytes, &file) != CGAM_OK) {
        must(!file);
        must_be_one_line(env);
        return 0;
    }
    must(cgam_prompt_file_count(file) > 0);
    int64_t before = 0;
    for (int64_t i = 0; i < cgam_prompt_file_count(file); i++) {
        cgam_prompt_line p = cgam_prompt_file_get(file, i);
        must(p.text[0] && p.line > before && (!p.label || strlen(p.label) <= size));
        before = p.line;
    }
    cgam_prompt_file_close(file);
    return 0;
}
