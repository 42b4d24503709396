/* sweep_model.c: how far the mean effect of demonstrations carries a language model, layer by layer.
 *
 *     sweep_model MODEL.gguf [STORE.db]
 *
 * An experiment is a document in and a document out: cgam_ask takes the options of `cgam lm sweep` as JSON
 * and returns what `cgam lm sweep --json` prints. */
#include <cgam/ask.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        puts("usage: sweep_model MODEL.gguf [STORE.db]");
        return 0;
    }
    char options[8192];
    int length = snprintf(options, sizeof options,
                          "{\"model\": \"%s\", \"dataset\": \"sentiment\", \"queries\": 16,"
                          " \"shots\": [0, 4], \"out\": false%s%s%s}",
                          argv[1], argc > 2 ? ", \"store\": \"" : "", argc > 2 ? argv[2] : "",
                          argc > 2 ? "\"" : "");
    if (length < 0 || (size_t)length >= sizeof options) return 2;
    cgam_env *env;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    cgam_document document;
    cgam_status status = cgam_ask(env, "lm sweep", options, NULL, &document);
    if (status == CGAM_OK) puts(document.text);
    else fprintf(stderr, "%s\n", cgam_env_message(env));
    cgam_text_free(env, document.text);
    cgam_env_free(env);
    return status == CGAM_OK ? 0 : 1;
}
