/* ctest: timeout=300
 * Verbs whole, as a door runs them: memory that ends at any request, or a wish to stop at any look, comes back as a status
 * with a message, nothing is left allocated, and no file but an output that is whole. */
#include "support/failing_alloc.h"
#include "unit/app/scene.h"

#include <cgam/ask.h>
#include <dirent.h>
#include <unistd.h>

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
    {"fit",
     "{" HERE
     ", \"queries\": \"rows:1;2;3;4\", \"targets\": \"only.txt\", \"contexts\": \"rows:1;2;3;4\", "
     "\"learn\": [\"P\", \"beta\"], \"rank\": 1, \"held-out\": 0.25, \"epochs\": 2, \"out\": \"fit.safetensors\", "
     "\"figure\": \"land\", \"figures\": \"no\"}",
     "fit.safetensors", 1},
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
    {"net train",
     "{\"FILE\": \"net.json\", \"data\": \"Z.csv\", \"clamp\": \"letters\", \"read\": \"letters\", \"learn\": "
     "[\"memories\", \"letters.beta\"], \"steps\": 2, \"step-size\": 0.05, \"epochs\": 2, \"held-out\": 0.3, "
     "\"out\": \"learned.json\", \"figure\": \"land\", \"figures\": \"no\", \"threads\": 1}",
     "learned.json", 1},
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
    static const char *const outputs[] = {
        "p.npy",           "r.npy",        "packed.safetensors", "net.dot",
        "fit.safetensors", "learned.json", "learned.safetensors"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) remove(outputs[i]);
    if ((access("land", F_OK) == 0 || access("study", F_OK) == 0) &&
        system("rm -rf land study") != 0)
        fail_msg("%s: its folder stays", verb);
    size_t left = 0;
    DIR *here = opendir(".");
    for (struct dirent *e; here && (e = readdir(here));)
        left += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (here) closedir(here);
    if (left != INPUTS) fail_msg("%s: %zu files are left", verb, left);
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

TEST(memory_may_end_in_every_verb)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        question of = questions[i];
        int64_t requests = check_some_allocations(ask, &of, of.step);
        assert_true(requests > 1);
    }
}

TEST_GROUP(enter, leave)
