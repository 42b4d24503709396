/* Any bytes as the body of a request: first the number of a verb, then the body. Whatever a request
 * says, the verb is given no path but those of the catalog: a file is in memory, known by an id, or rejected. */
#include "fuzz/readers.h"

#include "serve/server.h"

static const cgam_catalog *catalog(void)
{
    static cgam_catalog one;
    static char id[] = "demo", path[] = CGAM_DEMO_PREFIX;
    static cgam_catalog_entry demo = {CGAM_INPUT_BANK, id, path};
    cgam_bank *bank;
    if (one.env) return &one;
    one = (cgam_catalog){.env = fuzz_env(), .entries = &demo, .count = 1};
    must(cgam_shelf_new(one.env, 0, &one.shelf) == CGAM_OK &&
         cgam_demo_bank(one.env, 1, &bank) == CGAM_OK &&
         cgam_shelf_add(one.shelf, path, bank) == CGAM_OK);
    return &one;
}

static bool is_in_memory(const cgam_request *request, const char *text)
{
    for (int i = 0; i < request->count; i++)
        if (strstr(text, request->files[i].name)) return true;
    return false;
}

/* May a verb be given this in place of a file? */
static bool harmless(const cgam_request *request, const cgam_param *p, const char *text)
{
    int64_t index;
    return is_in_memory(request, text) || (p->bare && strcmp(text, p->bare) == 0) ||
           (p->input == CGAM_INPUT_VECTORS &&
            strncmp(text, CGAM_ROWS_PREFIX, strlen(CGAM_ROWS_PREFIX)) == 0) ||
           (p->input == CGAM_INPUT_BANK &&
            strncmp(text, CGAM_DEMO_PREFIX, strlen(CGAM_DEMO_PREFIX)) == 0) ||
           (strstr(p->value, "INDEX") && cgam_text_is_int(text, &index)) ||
           strstr(p->value, text) == p->value;
}

static void judge(const cgam_request *request, const cgam_verb *verb, const cgam_args *args)
{
    const cgam_param *p;
    for (int i = 0; (p = cgam_verb_param(verb, i)); i++) {
        const char *const *words;
        if (p->kind != CGAM_TEXT || !cgam_args_given(args, p->name)) continue;
        bool file = p->input || p->writes || strstr(p->value, "FILE") || strstr(p->value, "DIR");
        int64_t count = cgam_args_words(args, p->name, &words);
        for (int64_t k = 0; file && k < count; k++) must(harmless(request, p, words[k]));
    }
    cgam_file_overlay overlay = {request->files, request->count, true};
    cgam_file_overlay_set(&overlay);
    for (int i = 0; i < request->count; i++) {
        cgam_array array;
        cgam_status status = cgam_array_open(request->env, request->files[i].name, &array);
        if (status != CGAM_OK) must_be_one_line(request->env);
        cgam_array_close(request->env, &array);
    }
    must(!cgam_file_exists("/etc/passwd") && !cgam_file_exists("-"));
    cgam_file_overlay_set(NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int verbs = 0;
    while (cgam_verbs[verbs]) verbs++;
    if (size < 1) return 0;
    const cgam_verb *verb = cgam_verbs[data[0] % verbs];
    cgam_request request;
    cgam_args *args = NULL;
    cgam_status status =
        cgam_request_read(&request, catalog(), verb, (const char *)data + 1, size - 1);
    if (status == CGAM_OK) status = cgam_args_json(request.env, verb, request.options, &args);
    if (status == CGAM_OK) judge(&request, verb, args);
    else must_be_one_line(request.env);
    must(!verb->local || request.forbidden);
    cgam_args_free(args);
    cgam_request_close(&request);
    return 0;
}
