/* main.c: the command line. Words in, one document or one readable page out; messages go to
 * standard error, one line each; the exit status is the verdict. */
#include "app/verb.h"
#include "num/blas.h"

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, NEGATIVE = 1, BAD_INPUT = 2, MACHINE = 3 };

static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static bool interrupted(void *user)
{
    (void)user;
    return stopping != 0;
}

/* Ctrl-C and a polite kill ask to stop; a second one does what it always does. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* writes fail instead, and are reported */
    signal(SIGXFSZ, SIG_IGN);
}

static int verdict(cgam_status status, bool negative)
{
    switch (status) {
    case CGAM_OK: return negative ? NEGATIVE : DONE;
    case CGAM_E_NOMEM:
    case CGAM_E_IO:
    case CGAM_E_INTERRUPTED:
    case CGAM_E_INTERNAL: return MACHINE;
    default: return BAD_INPUT;
    }
}

static int complain(const cgam_verb *verb, cgam_env *env, cgam_status status)
{
    const char *message = env ? cgam_env_message(env) : "";
    if (status == CGAM_E_INTERRUPTED || !*message) message = cgam_status_text(status);
    fprintf(stderr, "cgam%s%s: ", verb ? " " : "", verb ? verb->name : "");
    cgam_help_message(status == CGAM_E_NOMEM ? NULL : verb, message, stderr);
    fputc('\n', stderr);
    return verdict(status, false);
}

/* --threads is needed before there is an env to parse with, so it is looked up by hand; the real
 * parser checks it again. */
static int threads_wanted(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        const char *value = NULL;
        int64_t threads;
        if (strncmp(argv[i], "--threads=", 10) == 0) value = argv[i] + 10;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) value = argv[i + 1];
        if (value && cgam_text_is_int(value, &threads) && threads >= 1 && threads <= 4096)
            return (int)threads;
    }
    return 0;
}

static int hand_out(const cgam_verb *verb, const json_t *doc, bool json)
{
    bool fine = true;
    if (json_object_get(doc, "incomplete")) {
        fprintf(stderr, "cgam %s: out of memory: the result\n", verb->name);
        return MACHINE;
    }
    if (json) {
        fine = cgam_json_write(stdout, doc, 1);
        fine &= putchar('\n') != EOF;
    } else {
        verb->print(doc, stdout);
    }
    if (fflush(stdout) != 0 || ferror(stdout) || !fine) {
        fprintf(stderr, "cgam %s: cannot write to standard output\n", verb->name);
        return MACHINE;
    }
    return DONE;
}

static int run(const cgam_verb *verb, int argc, const char *const *argv)
{
    cgam_env *env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads_wanted(argc, argv);
    opts.interrupted = interrupted;
    cgam_status status = cgam_env_new(&opts, &env);
    if (status != CGAM_OK) return complain(verb, NULL, status);
    cgam_args *args = NULL;
    cgam_call call = {.env = env, .doc = json_object(), .progress = isatty(STDERR_FILENO)};
    int code;
    status = cgam_args_parse(env, verb, argc, argv, &args);
    call.args = args;
    if (status == CGAM_OK && !call.doc) status = CGAM_E_NOMEM;
    if (status == CGAM_OK) status = verb->run(&call);
    if (status == CGAM_OK) {
        code = hand_out(verb, call.doc, cgam_args_flag(args, "json"));
        if (code == DONE) code = verdict(CGAM_OK, call.negative);
    } else {
        code = complain(verb, env, status);
    }
    json_decref(call.doc);
    cgam_args_free(args);
    cgam_env_free(env);
    return code;
}

/* Where OpenBLAS does not know the CPU, start again with its name in the environment; if that
 * cannot be done, go on more slowly. */
static void wake_blas(char **argv)
{
    const char *core = cgam_blas_core_wanted();
    if (core && setenv("OPENBLAS_CORETYPE", core, 1) == 0) execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    wake_blas(argv);
    setlocale(LC_NUMERIC, "C");
    catch_signals();
    if (argc < 2) {
        cgam_help_all(stderr);
        return BAD_INPUT;
    }
    const char *const *words = (const char *const *)argv + 1;
    int count = argc - 1, used;
    if (strcmp(words[0], "--help") == 0 || strcmp(words[0], "-h") == 0) {
        cgam_help_all(stdout);
        return DONE;
    }
    if (strcmp(words[0], "--version") == 0) {
        printf("cgam %s\n", cgam_version());
        return DONE;
    }
    const cgam_verb *verb = cgam_verb_find(count, words, &used);
    if (!verb) {
        const char *near = cgam_verb_suggest(words[0]);
        fprintf(stderr, "cgam: no verb '%s'%s%s%s see: cgam help\n", words[0],
                near ? "; did you mean " : ";", near ? near : "", near ? "?" : "");
        return BAD_INPUT;
    }
    for (int i = used; i < count; i++) {
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0) {
            cgam_help_verb(verb, stdout);
            return DONE;
        }
    }
    return run(verb, count - used, words + used);
}
