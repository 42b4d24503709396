/* cli.c: the command line. Arguments in, one document or one readable page out. Messages go to
 * standard error, one line each. The exit status is the verdict. */
#include "cli/cli.h"

#include "app/verbs.h"
#include "base/blas.h"
#include "base/env.h"
#include "cli/watch.h"
#include "lab/journal.h"
#include "lm/model.h"

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, NEGATIVE = 1, BAD_INPUT = 2, MACHINE = 3 };

static cgam_ranks *team; /* NULL: one process */

/* Does this process print for all ranks? */
static bool is_speaker(void) { return !team || team->rank == 0; }

/* If a standard stream is closed, the next file that is opened would get its number and what is printed. /dev/null takes
 * the number instead, opened so that using it fails as a closed stream does. */
static void hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* A model that passes our checks and still aborts libllama is bad input. */
static void on_last_words(const char *words)
{
    fprintf(stderr, "cgam: this model ended libllama: %s\n", words);
    _exit(BAD_INPUT);
}

static int exit_code(cgam_status status, bool negative)
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

/* Prints "cgam VERB: ", the start of every error. Errors of help name no verb. */
static void print_origin(const cgam_verb *verb, FILE *to)
{
    bool colours = cgam_help_colours(stderr), named = verb && verb != &cgam_verb_help;
    fprintf(to, "%scgam%s%s%s:%s ", colours ? "\033[1;31m" : "", team ? "-mpi" : "",
            named ? " " : "", named ? verb->name : "", colours ? "\033[0m" : "");
}

/* Prints one line on standard error. */
static int print_error(const cgam_verb *verb, int argc, const char *const *argv, cgam_env *env,
                       cgam_status status)
{
    const char *message = "";
    if (env) message = cgam_env_message(env);
    else (void)cgam_blas_load(&message); /* no env can be made without it */
    if ((status == CGAM_E_INTERRUPTED && !team) || !*message) message = cgam_status_text(status);
    if (is_speaker() || !env) { /* without an env, ranks cannot exchange messages */
        print_origin(verb, stderr);
        if (!env && team) fprintf(stderr, "rank %d: ", team->rank);
        cgam_help_message(status == CGAM_E_NOMEM ? NULL : verb, argc, argv, message, stderr);
        fputc('\n', stderr);
    }
    return exit_code(status, false);
}

/* Writes the last line of a verb that must be ended to text [size]; empty for ranks that do not print. */
static void make_last_line(const cgam_verb *verb, char *text, size_t size)
{
    FILE *to = is_speaker() ? fmemopen(text, size, "w") : NULL;
    text[0] = '\0';
    if (!to) return;
    print_origin(verb, to);
    fprintf(to, "%s\n", cgam_status_text(CGAM_E_INTERRUPTED));
    fclose(to);
}

/* --threads is needed before an env exists to parse with, so it is looked up by hand. The real
 * parser checks it again. */
static int threads_wanted(int argc, const char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        const char *value = "";
        int64_t threads;
        if (strncmp(argv[i], "--threads=", 10) == 0) value = argv[i] + 10;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) value = argv[i + 1];
        if (cgam_text_is_int(value, &threads) && threads >= 1 && threads <= 4096)
            return (int)threads;
    }
    return 0;
}

/* Puts the number of ranks, and the bytes exchanged between them in an iteration. */
static void put_ranks(json_t *doc)
{
    if (!team) return;
    const cgam_traffic *t = &team->traffic;
    double many = t->iterations > 0 ? (double)t->iterations : 1;
    json_t *traffic = json_object();
    cgam_json_put_int(doc, "ranks", team->ranks);
    cgam_json_put_real(traffic, "bytes_per_iteration", (double)t->iteration_bytes / many);
    cgam_json_put_real(traffic, "messages_per_iteration", (double)t->iteration_messages / many);
    cgam_json_put_int(traffic, "bytes", t->bytes);
    cgam_json_put_int(traffic, "messages", t->messages);
    cgam_json_put(doc, "traffic", traffic);
}

/* An item of a list that is made while it is printed: names and texts come from files. */
static json_t *tame_item(void *of, int64_t i)
{
    const cgam_late *late = of;
    json_t *item = late->item(late->of, i);
    cgam_json_tame(item);
    return item;
}

/* close_output() checks for errors of the stream. The watch goes on: a reader may be slow, or never read. */
static cgam_status print_document(cgam_call *call, FILE *to)
{
    bool fine = false;
    cgam_watch_quiet();
    if (cgam_args_flag(call->args, "json")) {
        fine = cgam_json_write_late(to, call->doc, 1, &call->late);
        if (fine) fputc('\n', to);
    } else {
        cgam_json_tame(call->doc);
        const char *missing = cgam_json_get_text(call->doc, "figures_missing");
        cgam_late tame = {call->late.name, call->late.count, tame_item, NULL, &call->late};
        fine = cgam_verb_print(call->verb, call->doc, &tame, to);
        if (*missing) fprintf(to, "%s: figures are left out, all else is complete\n", missing);
    }
    if (!fine && !ferror(to) && cgam_interrupted(call->env)) return CGAM_E_INTERRUPTED;
    if (!fine && !ferror(to)) return cgam_fail_nomem(call->env, "the document");
    (void)fflush(to);
    return cgam_json_ran_short() ? cgam_fail_nomem(call->env, "the document") : CGAM_OK;
}

/* Runs a verb and prints its document. */
static int run_verb(const cgam_verb *verb, int argc, const char *const *argv, FILE *to)
{
    cgam_env *env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads_wanted(argc, argv);
    opts.interrupted = cgam_watch_stopping;
    cgam_status status = (verb->wordy ? cgam_env_new_plain : cgam_env_new)(&opts, &env);
    if (status != CGAM_OK) return print_error(verb, argc, argv, NULL, status);
    cgam_args *args = NULL;
    cgam_call call = {.verb = verb, .env = env, .doc = json_object(), .out = to, .ranks = team};
    char last_line[160];
    call.progress.line = is_speaker();
    make_last_line(verb, last_line, sizeof last_line);
    cgam_watch_begin(&call, MACHINE, last_line);
    status = cgam_args_parse(env, verb, argc, argv, &args);
    call.args = args;
    if (status == CGAM_OK && team && verb->ranks == CGAM_RANKS_NONE)
        status = cgam_fail(env, CGAM_E_UNSUPPORTED, "this verb does not run over ranks; use cgam");
    call.streams = !team;
    if (status == CGAM_OK && isatty(fileno(to)) && !cgam_args_flag(args, "json")) call.live = to;
    if (status == CGAM_OK && (is_speaker() || verb->ranks >= CGAM_RANKS_ALL))
        status = cgam_call_run(&call);
    if (status == CGAM_OK && verb->ranks >= CGAM_RANKS_ALL) put_ranks(call.doc);
    status = cgam_ranks_end(env, team, status);
    if (status == CGAM_OK && is_speaker()) status = print_document(&call, to);
    cgam_watch_end();
    int code = exit_code(status, call.negative);
    if (status != CGAM_OK) print_error(verb, argc, argv, env, status);
    else if (!is_speaker()) code = DONE; /* rank 0 has the answer */
    cgam_call_end(&call);
    json_decref(call.doc);
    cgam_args_free(args);
    cgam_env_free(env);
    return code;
}

/* Closes standard output. A failed write changes the exit status, unless a pipe was closed (cgam help | head). */
static int close_output(int code)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    bool failed = ferror(stdout) != 0;
    failed |= fflush(stdout) != 0;
    bool reader_gone = poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
    failed |= fclose(stdout) != 0;
    if (!failed || reader_gone || code == BAD_INPUT || code == MACHINE) return code;
    fprintf(stderr, "cgam: cannot write to standard output\n");
    return MACHINE;
}

static bool is_either(const char *word, const char *one, const char *other)
{
    return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

/* Help on the verb or group that the words begin with. */
static int print_help(int count, const char *const *words, FILE *to)
{
    const char *asked[4];
    int used, n = 0;
    if (!is_speaker()) return DONE;
    (void)cgam_verb_find(count, words, &used);
    if (used == 0 && count > 0) used = cgam_verb_group(words[0]) && count > 1 ? 2 : 1;
    for (int i = 0; i < used && *words[i] != '-'; i++) asked[n++] = words[i];
    bool json = false;
    for (int i = 0; i < count; i++) json |= strcmp(words[i], "--json") == 0;
    if (json && to == stdout) asked[n++] = "--json";
    return run_verb(&cgam_verb_help, n, asked, to);
}

/* May ranks have different values of this option? True for a rank's part of a bank, its output and its threads. */
static bool is_own(const cgam_param *param)
{
    return param && (param->input == CGAM_INPUT_BANK || param->writes ||
                     strcmp(param->name, "threads") == 0);
}

/* A hash of the verb and of the options that all ranks must share; "--beta 2" and "--beta=2" give the same. */
static uint64_t digest_words(int count, const char *const *words)
{
    int used;
    const cgam_verb *verb = cgam_verb_find(count, words, &used);
    uint64_t digest = cgam_hash(0, &used, sizeof used);
    for (int i = 0; i < count; i++) {
        const char *word = words[i];
        size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word, "=") : strlen(word);
        const cgam_param *param = verb && i >= used && length > 2 && strncmp(word, "--", 2) == 0
                                      ? cgam_verb_param_named(verb, word + 2, length - 2)
                                      : NULL;
        bool joined = word[length] == '=';
        if (is_own(param)) {
            i += !joined && param->kind != CGAM_FLAG;
            continue;
        }
        digest = cgam_hash(digest, word, length);
        digest = cgam_hash(digest, "", 1);
        if (joined) digest = cgam_hash(digest, word + length + 1, strlen(word + length + 1) + 1);
    }
    return digest;
}

/* Ranks that were given different words would wait for messages that never come, or join answers to different questions. */
static bool check_same_words(int count, const char *const *words)
{
    uint64_t mine = team ? digest_words(count, words) : 0, all[] = {mine, ~mine};
    if (!team || (team->merge(team->user, all, 2) && all[0] == mine && all[1] == ~mine))
        return true;
    if (is_speaker())
        fprintf(stderr, "cgam-mpi: ranks were given different verbs or options; "
                        "only bank, out and threads may differ\n");
    return false;
}

static int run_words(int count, const char *const *words)
{
    int used;
    if (!check_same_words(count, words)) return BAD_INPUT;
    const cgam_verb *verb = cgam_verb_find(count, words, &used);
    if (count > 0 && is_either(words[0], "--version", "-V"))
        return run_verb(&cgam_verb_version, count - 1, words + 1, stdout);
    for (int i = 0; i < count && strcmp(words[i], "--") != 0; i++)
        if (is_either(words[i], "--help", "-h")) return print_help(count, words, stdout);
    if (verb) return run_verb(verb, count - used, words + used, stdout);
    if (!is_speaker()) return BAD_INPUT;
    /* No verb, or an incomplete one: prints the list of verbs as an error. */
    int code = print_help(count, words, stderr);
    return code == DONE ? BAD_INPUT : code;
}

int cgam_cli(int argc, char **argv, cgam_ranks *ranks)
{
    team = ranks;
    setlocale(LC_NUMERIC, "C");
    hold_streams();
    signal(SIGPIPE, SIG_IGN); /* writes fail instead, and are reported */
    signal(SIGXFSZ, SIG_IGN);
    cgam_watch_start();
    cgam_llama_last_words(on_last_words);
    return close_output(run_words(argc > 1 ? argc - 1 : 0, (const char *const *)argv + 1));
}
