/* verbs.h: what the tests of the lm verbs share: a folder with a tiny model and data, and the program run
 * in it. */
#ifndef CGAM_TESTS_UNIT_LM_VERBS_H
#define CGAM_TESTS_UNIT_LM_VERBS_H

#include "lab/document.h"
#include "support/models.h"
#include "support/objects.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* Runs the program by the shell in the folder; standard output into *out (free it), both streams if
 * `both`. The exit status comes back. */
static inline int run(const char *before, const char *words, bool both, char **out)
{
    char command[2048];
    const char *program = getenv("CGAM");
    snprintf(command, sizeof command, "cd '%s' && %s '%s' %s 2>%s", folder_path(), before,
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

static inline int set_up(void **state)
{
    (void)state;
    model_file(200);
    FILE *f = fopen(folder_file("d.tsv"), "wb");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\t%s film %d is %s\n", i % 2 ? "up" : "down", i % 3 ? "the" : "a", i,
                i % 2 ? "good" : "bad");
    fclose(f);
    return 0;
}

#define PROMPTS "--model m.gguf --eval d.tsv --labels down=negative,up=positive --queries 24 "

#endif
