/* Any bytes as the words of a command line, one a line, and as a JSON object of parameters: first
 * the number of a verb, then either. What passes the checks can be read; what a message says is one
 * line; completing the words ends. */
#include "fuzz/readers.h"

#include "app/verb.h"

enum { WORDS = 32 };

static void read_back(const cgam_verb *verb, const cgam_args *args)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++) {
        int64_t count = cgam_args_count(args, p->name);
        const char *const *words;
        bool text = p->kind == CGAM_TEXT || p->kind == CGAM_CHOICE || p->kind == CGAM_WORDS;
        must(!p->required || cgam_args_given(args, p->name));
        must(p->many || count <= 1 || p->kind > CGAM_CHOICE);
        if (text && cgam_args_words(args, p->name, &words) > 0)
            for (int64_t k = 0; k < count; k++) must(*words[k]);
    }
}

static void judge(cgam_env *env, const cgam_verb *verb, cgam_status status, cgam_args *args)
{
    char *text = NULL;
    size_t size;
    if (status == CGAM_OK) read_back(verb, args);
    else must(!args && *cgam_env_message(env));
    cgam_args_free(args);
    FILE *to = open_memstream(&text, &size);
    cgam_help_message(verb, 0, NULL, cgam_env_message(env), to);
    fclose(to);
    must(!strpbrk(text, "\n\033"));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int verbs = 0, count = 0;
    while (cgam_verbs[verbs]) verbs++;
    cgam_env *env = fuzz_env();
    if (size < 1) return 0;
    const cgam_verb *verb = cgam_verbs[data[0] % verbs];
    char *bytes = calloc(size, 1), *next = bytes;
    const char *words[WORDS];
    memcpy(bytes, data + 1, size - 1);
    cgam_args *args = NULL;
    json_t *object = json_loads(bytes, JSON_REJECT_DUPLICATES, NULL);
    if (object) {
        cgam_status status = cgam_args_json(env, verb, object, &args);
        judge(env, verb, status, args);
        json_decref(object);
    }
    while (next && count < WORDS) words[count++] = strsep(&next, "\n");
    static FILE *nowhere;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    must(nowhere != NULL);
    cgam_complete(count - 1, words, words[count - 1], nowhere);
    cgam_status status = cgam_args_parse(env, verb, count, words, &args);
    judge(env, verb, status, args);
    free(bytes);
    return 0;
}
