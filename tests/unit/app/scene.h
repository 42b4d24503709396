/* scene.h: a folder of small files for tests of whole verbs, which run in it. */
#ifndef CGAM_TESTS_UNIT_APP_SCENE_H
#define CGAM_TESTS_UNIT_APP_SCENE_H

#include "support/check.h"

#include <cgam/io.h>
#include <sys/stat.h>
#include <unistd.h>

/* Six memories with names in four dimensions, two queries, two contexts. */
static const char *const inputs[][2] = {
    {"Z.csv", "1,0,0,0.5\n0,1,0,0.25\n0,0,1,0\n0.5,0.5,0,0\n-1,0,0.25,0\n0,-1,0,0.75\n"},
    {"Z.names", "bank\nwater\nmoney\nmill\nlamp\nkey\n"},
    {"q.csv", "0.5,0.25,0,0.125\n0,0.5,0.5,0\n"},
    {"c.csv", "0.25,0,0,0.5\n0,0,0.5,0\n"},
    {"P.csv", "1,0,0,0\n0,1,0,0\n0,0,1,0\n0,0,0,1\n"},
    {"W.csv", "1,0,0,0\n0,1,0,0\n0,0,1,0\n0,0,0,1\n1,1,0,0\n0,0,1,1\n"},
    {"only.txt", "bank\nmoney\nmill\nkey\n"},
};

enum { INPUTS = sizeof inputs / sizeof *inputs + 2 }; /* with target.npy and net.json */

static inline int enter(void **state)
{
    (void)state;
    char folder[64];
    snprintf(folder, sizeof folder, "/tmp/cgam-every-%d", (int)getpid());
    if (mkdir(folder, 0755) != 0 || chdir(folder) != 0) return -1;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        FILE *f = fopen(inputs[i][0], "wb");
        if (!f || fputs(inputs[i][1], f) < 0 || fclose(f) != 0) return -1;
    }
    cgam_env *env;
    const int64_t two = 2, target[] = {1, 2};
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK) status = cgam_npy_write(env, "target.npy", CGAM_I64, 1, &two, target);
    cgam_env_free(env);
    return status != CGAM_OK || symlink(check_source_path("examples/hopfield.json"), "net.json");
}

static inline int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf /tmp/cgam-every-%d", (int)getpid());
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

#endif
