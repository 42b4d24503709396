/* Any bytes as a dataset: the first chooses the format, the rest is the file. What is refused is
 * refused in one line; of what is read, every example has a text and a label that exists, and prompts
 * can be made, but for wrong objects where all are right. */
#include "fuzz/readers.h"
#include "lab/language/dataset.h"

static void make_prompts(cgam_env *env, const cgam_dataset *set)
{
    cgam_prompts *prompts;
    const cgam_prompts_opts opts = {.queries = 4, .shots_max = 2, .seed = 1};
    if (cgam_prompts_new(env, set, NULL, &opts, &prompts) != CGAM_OK) {
        must_be_one_line(env);
        return;
    }
    for (int64_t i = 0; i < prompts->queries; i++) { /* each with others */
        int demos = CGAM_DEMOS_TRUE + (int)i % (CGAM_DEMOS_FOREIGN - CGAM_DEMOS_TRUE + 1);
        char *prompt;
        if (cgam_prompts_text(prompts, i, 2, (cgam_demos)demos, &prompt) != CGAM_OK) {
            must(demos != CGAM_DEMOS_TRUE && !prompt); /* a set may lack wrong objects */
            must_be_one_line(env);
            continue;
        }
        must(strstr(prompt, prompts->cue) != NULL);
        cgam_text_free(env, prompt);
    }
    cgam_prompts_free(prompts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *format, *template;
    } kinds[] = {{"tsv", NULL},
                 {"facts", NULL},
                 {"sst2", NULL},
                 {"agnews", NULL},
                 {"trec", NULL},
                 {"lama", "{x} is the capital of {y}.\n"},
                 {"lama", cgam_dataset_masked},
                 {"pairs", NULL}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    if (size == 0) return 0;
    cgam_env *env = fuzz_env();
    const cgam_file file = cgam_file_borrow(data + 1, size - 1);
    cgam_dataset *set = NULL;
    int kind = data[0] % KINDS;
    cgam_status status =
        cgam_dataset_read(env, kinds[kind].format, "fuzz", &file, kinds[kind].template, NULL, &set);
    if (status != CGAM_OK) {
        must(!set);
        must_be_one_line(env);
        return 0;
    }
    int64_t n = set->examples, labels = set->labels;
    must(n > 0 && labels > 0);
    for (int64_t i = 0; i < n; i++) {
        cgam_example e = set->example[i];
        must(e.text[0] && e.label >= 0 && e.label < labels);
        must(!strchr(e.text, '\n') && set->label[e.label].word[0]);
    }
    make_prompts(env, set);
    cgam_dataset_close(set);
    return 0;
}
