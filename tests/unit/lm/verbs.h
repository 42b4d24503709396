/* verbs.h: what the tests of the lm verbs share: a folder with a tiny model and data, and the program run
 * in it. */
#ifndef CGAM_TESTS_UNIT_LM_VERBS_H
#define CGAM_TESTS_UNIT_LM_VERBS_H

#include "io/json.h"
#include "support/models.h"
#include "support/objects.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[64], model[96], data[96];

/* Runs the program by the shell in `folder`; standard output into *out (free it), both streams if
 * `both`. The exit status comes back. */
static inline int run(const char *before, const char *words, bool both, char **out)
{
    char command[2048];
    const char *program = getenv("CGAM");
    snprintf(command, sizeof command, "cd '%s' && %s '%s' %s 2>%s", folder, before,
             program ? program : "cgam", words, both ? "&1" : "/dev/null");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t size = 0, room = 1 << 20;
    *out = calloc(room, 1);
    size = fread(*out, 1, room - 1, f);
    (*out)[size] = '\0';
    int ended = pclose(f);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

static inline json_t *ask(const char *words)
{
    char *out, line[1500];
    snprintf(line, sizeof line, "%s --json", words);
    int code = run("", line, false, &out);
    json_t *doc = json_loads(out, 0, NULL);
    if (code != 0 || !doc) print_error("%s: exit %d: %.300s\n", words, code, out);
    assert_int_equal(code, 0);
    assert_non_null(doc);
    free(out);
    return doc;
}

static inline void refuse(int status, const char *piece, const char *before, const char *words)
{
    char *out;
    int code = run(before, words, true, &out);
    char *end = strchr(out, '\n');
    if (code != status || !strstr(out, piece) || !end || end[1])
        print_error("%s: exit %d, want %d with '%s': %s\n", words, code, status, piece, out);
    assert_int_equal(code, status);
    assert_non_null(strstr(out, piece));
    assert_true(end && end[1] == '\0');
    free(out);
}

static inline void write_file(const char *name, const char *bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(bytes, f);
    fclose(f);
}

static inline int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/cgam-verbs-%d", (int)getpid());
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(model, sizeof model, "%s/m.gguf", folder);
    snprintf(data, sizeof data, "%s/d.tsv", folder);
    tiny_shape shape = tiny_shape_default();
    shape.context = 200;
    tiny_write(model, shape);
    FILE *f = fopen(data, "wb");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\t%s film %d is %s\n", i % 2 ? "up" : "down", i % 3 ? "the" : "a", i,
                i % 2 ? "good" : "bad");
    fclose(f);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : -1;
}

/* Without libllama there is nothing to run. */
static inline void need_model(void)
{
    cgam_env *env = object_env(1);
    cgam_lm *lm = NULL;
    cgam_status status = cgam_lm_open(env, model, &lm);
    cgam_lm_close(lm);
    cgam_env_free(env);
    if (status == CGAM_E_NOT_FOUND || status == CGAM_E_UNSUPPORTED || !getenv("CGAM")) {
        print_message("skipped: no libllama, or CGAM does not name the program\n");
        skip();
    }
}

#define PROMPTS "--model m.gguf --eval d.tsv --labels down=negative,up=positive --queries 24 "

#endif
