/* ctest: timeout=300
 * Verbs whole, as a door runs them: memory that ends at any request, or a wish to stop at any look, comes back as a status
 * with a message, nothing is left allocated, and no file but an output that is whole. */
#include "support/check.h"
#include "support/failing_alloc.h"

#include <cgam/door.h>
#include <cgam/io.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

typedef struct question {
    const char *verb, *options;
    const char *written; /* a file that is there afterwards if all went well; NULL: none */
    int64_t step;        /* of the requests, every so manieth fails */
} question;

#define HERE "\"bank\": \"Z.csv\", \"threads\": 1"
#define ASKED HERE ", \"query\": \"q.csv\", \"context\": \"c.csv\""
static const question questions[] = {
    {"recall",
     "{" ASKED ", \"alpha\": 0.1, \"lambda\": 0.5, \"save-p\": \"p.npy\", \"save-readout\": "
     "\"r.npy\", \"target\": \"target.npy\", \"explain\": true, \"top\": 2}",
     "r.npy", 1},
    {"recall",
     "{" ASKED ", \"mode\": \"coupled\", \"lambda\": 0.5, \"only\": \"only.txt\", \"names\": true, "
     "\"save-p\": \"p.npy\"}",
     "p.npy", 1},
    {"recall", "{" ASKED ", \"projection\": \"P.csv\", \"activation\": \"sparsemax\"}", NULL, 1},
    {"recall", "{" ASKED ", \"gate-weights\": \"W.csv\", \"normalize\": true, \"fast\": true}",
     NULL, 1},
    {"recall", "{" ASKED ", \"mode\": \"anneal\", \"lambda\": 0.8, \"beta\": 3, \"alpha\": 0.1}",
     NULL, 13},
    {"inspect", "{" HERE ", \"alpha\": 0.1}", NULL, 1},
    {"landscape",
     "{" HERE ", \"query\": \"rows:2\", \"context\": \"rows:1\", \"lambda\": 0.5, "
     "\"starts\": 0, \"out\": \"land\", \"figures\": \"no\"}",
     "land/landscape.json", 1},
    {"map",
     "{" HERE ", \"context\": \"rows:key\", \"from\": \"rows:lamp\", \"at\": [0.1, 0.2], "
     "\"context-then\": \"rows:mill\", \"switch\": 0.1, \"grid\": 2, \"t-max\": 0.2}",
     NULL, 7},
    {"bank pack",
     "{\"from\": \"Z.csv\", \"out\": \"packed.safetensors\", \"alpha\": [0.1], \"names\": "
     "\"Z.names\", \"threads\": 1}",
     "packed.safetensors", 1},
    {"bank names", "{" HERE ", \"prefix\": \"m\"}", NULL, 1},
    {"net run",
     "{\"FILE\": \"net.json\", \"method\": \"rk4\", \"t-end\": 0.2, \"out\": \"land\", \"figures\": "
     "\"no\", \"threads\": 1}",
     "land/result.json", 1},
    {"net show", "{\"FILE\": \"net.json\", \"eigen\": 2, \"dot\": \"net.dot\", \"threads\": 1}",
     "net.dot", 1},
    {"demo", "{\"threads\": 1}", NULL, 23},
    {"help", "{\"VERB\": [\"recall\"]}", NULL, 1},
    {"completion", "{\"SHELL\": \"bash\"}", NULL, 1},
    {"study separation",
     "{\"trials\": 2, \"out\": \"study\", \"figures\": \"no\", "
     "\"threads\": 1}",
     "study/summary.json", 1},
};

/* Takes outputs away; what is there then was there before. An output may be whole where the answer about it was not. */
static void sweep_up(const char *verb)
{
    static const char *const outputs[] = {"p.npy", "r.npy", "packed.safetensors", "net.dot"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) remove(outputs[i]);
    if ((access("land", F_OK) == 0 || access("study", F_OK) == 0) &&
        system("rm -rf land study") != 0)
        fail_msg("%s: its folder stays", verb);
    size_t left = 0;
    DIR *here = opendir(".");
    for (struct dirent *e; here && (e = readdir(here));)
        left += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (here) closedir(here);
    if (left != sizeof inputs / sizeof *inputs + 2) /* with target.npy and net.json */
        fail_msg("%s: %zu files are left", verb, left);
}

static int ask(cgam_env *env, void *arg)
{
    const question *of = arg;
    cgam_document answer;
    cgam_status status = cgam_ask(env, of->verb, of->options, NULL, &answer);
    cgam_text_free(env, answer.text);
    if (status == CGAM_OK && of->written && access(of->written, R_OK) != 0)
        fail_msg("%s: %s is not there", of->verb, of->written);
    if (status == CGAM_OK || of->step == 1) sweep_up(of->verb);
    return status;
}

static void memory_may_end_in_every_verb(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        question of = questions[i];
        int64_t requests = check_some_allocations(ask, &of, of.step);
        assert_true(requests > 1);
    }
}

static int enter(void **state)
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

static int leave(void **state)
{
    (void)state;
    char command[100];
    snprintf(command, sizeof command, "rm -rf /tmp/cgam-every-%d", (int)getpid());
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_may_end_in_every_verb)};
    return cmocka_run_group_tests(tests, enter, leave);
}
