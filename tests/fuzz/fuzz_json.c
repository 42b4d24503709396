/* Any bytes as JSON: what is read is printed, in both styles, and reads back as the same. */
#include "fuzz/readers.h"
#include "lab/document.h"

static void must_survive(cgam_env *env, json_t *tree, int indent)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    must(stream != NULL);
    must(cgam_json_write(stream, tree, indent));
    must(fclose(stream) == 0);
    json_t *again;
    must(cgam_json_parse(env, "again", text, length, &again) == CGAM_OK);
    must(json_equal(tree, again));
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cgam_env *env = fuzz_env();
    json_t *tree;
    if (cgam_json_parse(env, "fuzz", data, size, &tree) != CGAM_OK) {
        must_be_one_line(env);
        must(!tree);
        return 0;
    }
    must_survive(env, tree, 0);
    must_survive(env, tree, 1);
    json_decref(tree);
    return 0;
}
