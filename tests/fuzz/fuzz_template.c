/* Any bytes as the template of prompts. What is refused is refused in one line; of what is taken, a prompt holds the text, the
 * cue before every answer, and ends where the answer begins. */
#include "fuzz/readers.h"
#include "lab/language/dataset.h"

static const cgam_dataset *set(void)
{
    static const char rows[] = "up\ta good film\ndown\ta bad film\nup\tthe best {x} of all\n"
                               "down\tthe worst {y} of all\nup\tfine\ndown\tpoor\n";
    static cgam_dataset *one;
    const cgam_file file = cgam_file_borrow((const uint8_t *)rows, sizeof rows - 1);
    if (!one)
        must(cgam_dataset_read(fuzz_env(), "tsv", "rows", &file, NULL, NULL, &one) == CGAM_OK);
    return one;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    char *template = malloc(size + 1), *prompt;
    must(template != NULL);
    memcpy(template, data, size);
    template[size] = '\0';
    cgam_prompts *prompts;
    int shots = size % 8 ? 0 : 2; /* demonstrations take fifty times as long */
    const cgam_prompts_opts opts = {
        .queries = 2, .shots_max = shots, .seed = 1, .wording = template};
    if (cgam_prompts_new(env, set(), NULL, &opts, &prompts) != CGAM_OK) must_be_one_line(env);
    else {
        for (int64_t i = 0; i < prompts->queries; i++) {
            const char *cue = prompts->cue;
            must(strstr(template, "{x}") && strstr(template, "{y}"));
            must(cgam_prompts_text(prompts, i, shots, CGAM_DEMOS_TRUE, &prompt) == CGAM_OK);
            size_t length = strlen(prompt), end = strlen(cue);
            must(length >= end && strcmp(prompt + length - end, cue) == 0);
            cgam_text_free(env, prompt);
        }
        cgam_prompts_free(prompts);
    }
    free(template);
    return 0;
}
