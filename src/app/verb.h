/* verb.h: what the program can do, as a table. A verb is a name, its parameters, words about it,
 * a function that turns parameters into one JSON document, and one that prints such a document for
 * people. Doors (the command line, a server) parse parameters and hand out documents; help, man
 * pages and completions are made from the same table. */
#ifndef CGAM_SRC_APP_VERB_H
#define CGAM_SRC_APP_VERB_H

#include "app/fields.h"
#include "app/progress.h"
#include "lab/fill.h"
#include "lab/shelf.h"

#include <cgam/cgam.h>

/* As a least value: any number above zero that leaves room for its inverse. */
#define CGAM_ABOVE_0 0x1p-1000

/* A parameter of a verb is a row of a table: one of its own, or one that stands for a field of an options
 * struct (CGAM_ROW_OF, base/field.h). `input` of it is a cgam_input. */
typedef cgam_field cgam_param;

typedef struct cgam_args cgam_args;

typedef struct cgam_verb cgam_verb;

/* One call of a verb; doors make it and go through cgam_call_run. */
typedef struct cgam_call {
    const cgam_verb *verb;
    cgam_env *env;
    const cgam_args *args;
    json_t *doc;                   /* an object to fill */
    bool negative;                 /* set: done, but the answer is no (exit status 1) */
    cgam_tell progress;            /* who hears of it */
    int64_t queries_max, rows_max; /* of a request and its answer; 0: no limit */
    cgam_ranks *ranks;             /* that make the same call; NULL: one process */
    const char *folder;            /* that it writes into; NULL: none */
    size_t folder_there;           /* bytes of that path that were there before */
    cgam_shelf *shelf;             /* banks and gates that stay between calls; NULL: none do */
    cgam_row_names
        *names; /* of the bank, once they were asked for and are not the shelf's; the call's */
    FILE *out;  /* where a verb that goes on may say that it has begun; NULL: nowhere */
    FILE *
        live; /* a terminal that the printer will write to: text may be shown as it comes; or NULL */
} cgam_call;

/* What ranks do with a verb. */
typedef enum cgam_verb_ranks {
    CGAM_RANKS_NONE,  /* nothing: it is for one process */
    CGAM_RANKS_FIRST, /* rank 0 runs it alone */
    CGAM_RANKS_ALL,   /* all run it, and share the rows of its bank */
    CGAM_RANKS_TRIALS /* all run it, and share its trials; rank 0 writes */
} cgam_verb_ranks;

/* Is it this process that writes files? */
#define CGAM_CALL_WRITES(call) (!(call)->ranks || (call)->ranks->rank == 0)

struct cgam_verb {
    const char *name;         /* "recall", "net run" */
    const char *words;        /* as cgam_verb_words reads them; NULL: app/about/NAME.txt */
    const char *more;         /* paragraphs after them: app/about/MORE.txt; NULL: none */
    const cgam_param *params; /* NULL: only the common ones */
    cgam_verb_ranks ranks;
    bool local;  /* only for the user of this machine: it fetches, or talks to a terminal */
    bool drains; /* after a signal it finishes what it has begun, in a time that it bounds itself */
    cgam_status (*run)(cgam_call *call);
    /* The document for people: the template (lab/fill.h) app/text/TEXT.txt, where NULL is the verb's name, with - for
     * blanks; or a function where that is not enough. */
    const char *text;
    void (*print)(const json_t *doc, FILE *to);
};
/* What a verb says of itself: its summary in the first line of the text, perhaps an example in the second, and, after an empty
 * line, what it does in paragraphs. */
typedef struct cgam_words {
    char summary[120], example[200], about[3000];
} cgam_words;
cgam_words cgam_verb_words(const cgam_verb *verb);
/* Prints a document of the verb for people. */
void cgam_verb_print(const cgam_verb *verb, const json_t *doc, FILE *to);

/* Runs call->verb, which fills call->doc; CGAM_E_NOMEM where the document could not take everything. */
CGAM_NODISCARD cgam_status cgam_call_run(cgam_call *call);
/* Bytes of memory that the call may take: max-memory, or what is free. */
size_t cgam_call_memory(const cgam_call *call);
/* Removes the folders that the call has made, if they are empty. For a program that ends while the call runs. */
void cgam_call_abandon(const cgam_call *call);

/* What the verb serve runs. The server is a part of the program, not of the library, and puts itself
 * here before main. NULL: there is none. */
extern cgam_status (*cgam_serve_run)(cgam_call *call);

/* NULL ends. */
extern const cgam_verb *const cgam_verbs[];
/* Parameters every verb takes. */
extern const cgam_param cgam_params_common[];
/* The i-th parameter of a verb, the common ones last; NULL past the end. */
const cgam_param *cgam_verb_param(const cgam_verb *verb, int i);
/* By its name of so many bytes; NULL: there is none. */
const cgam_param *cgam_verb_param_named(const cgam_verb *verb, const char *name, size_t length);
bool cgam_param_positional(const cgam_param *param);
/* Is the verb called "GROUP something"? NULL: all are in. */
bool cgam_verb_in(const cgam_verb *verb, const char *group);
bool cgam_verb_group(const char *word); /* is any? */

/* The name nearest to what was typed: set typed, try names, read best. A name need not end in 0. */
typedef struct cgam_near {
    const char *typed, *best; /* best NULL: nothing is near */
    int length, least;        /* of best; its distance */
} cgam_near;
void cgam_near_try(cgam_near *near, const char *name, size_t length);

/* The verb that argv[0 ..] names; *used = how many words it took. NULL: none. */
const cgam_verb *cgam_verb_find(int argc, const char *const *argv, int *used);
/* The verb, or the first word of several, closest to what was typed. */
cgam_near cgam_verb_suggest(const char *typed);
/* CGAM_E_ARG: "no verb 'lm gte'; did you mean lm get? see: cgam help". count >= 1. */
cgam_status cgam_verb_fail(cgam_env *env, int count, const char *const *words);

/* ---- Values ------------------------------------------------------------------------------- */
/* Three ways to fill them, one set of checks: words of a command line; a JSON object, whose members
 * are numbers, texts, true or false, and arrays of these where a parameter takes several - false for one
 * that writes: nothing is written, whatever its default; or one
 * value after the other. Messages name parameters without dashes. */
CGAM_NODISCARD cgam_status cgam_args_parse(cgam_env *env, const cgam_verb *verb, int argc,
                                           const char *const *argv, cgam_args **out);
CGAM_NODISCARD cgam_status cgam_args_json(cgam_env *env, const cgam_verb *verb, json_t *object,
                                          cgam_args **out);

/* Gives *out; free it with cgam_args_free. */
CGAM_NODISCARD cgam_status cgam_args_new(cgam_env *env, const cgam_verb *verb, cgam_args **out);
/* Checks and copies a value, a list as a whole; NULL for a flag. */
CGAM_NODISCARD cgam_status cgam_args_set(cgam_args *args, const char *name, const char *text);
/* Takes defaults for what was not set; what is missing is an error. Then values can be read. */
CGAM_NODISCARD cgam_status cgam_args_finish(cgam_args *args);
void cgam_args_free(cgam_args *args); /* NULL is fine */

/* Reading by the name in the table. Lists, texts and numbers belong to args. */
bool cgam_args_known(const cgam_args *args, const char *name); /* it is in the verb's table */
bool cgam_args_given(const cgam_args *args, const char *name); /* by the user, not by default */
bool cgam_args_flag(const cgam_args *args, const char *name);
int64_t cgam_args_int(const cgam_args *args, const char *name); /* 0: not given, no default */
double cgam_args_real(const cgam_args *args, const char *name); /* NAN: likewise */
/* As typed (of several, the last); NULL: likewise. */
const char *cgam_args_text(const cgam_args *args, const char *name);
bool cgam_args_is(const cgam_args *args, const char *name, const char *word);
/* Which of the choices, counted from 0; -1: likewise. */
int cgam_args_choice(const cgam_args *args, const char *name);
/* How many values, and the values: of a list, or of a parameter that may be given several times. */
int64_t cgam_args_count(const cgam_args *args, const char *name);
int64_t cgam_args_ints(const cgam_args *args, const char *name, const int64_t **values);
int64_t cgam_args_reals(const cgam_args *args, const char *name, const double **values);
int64_t cgam_args_words(const cgam_args *args, const char *name, const char *const **values);
/* Of two values of parameters that may be given several times, as cgam_args_words gives them: was a
 * given before b? */
bool cgam_args_before(const cgam_args *args, const char *a, const char *b);

/* Sets the fields of an options struct, by its table: those in the verb's table that were given or have a
 * default. What is not set keeps its value. */
void cgam_args_fill(const cgam_args *args, const cgam_field *rows, void *opts);
/* Puts values into a document, by their names: "alpha beta mode"; null for what was not given. */
void cgam_args_put(const cgam_args *args, const char *names, json_t *doc);

/* Is the word an integer, and nothing else? */
bool cgam_text_is_int(const char *text, int64_t *value);

/* ---- Help --------------------------------------------------------------------------------- */
void cgam_help_list(const char *group, FILE *to); /* of the verbs; NULL: of all */
void cgam_help_verb(const cgam_verb *verb, FILE *to);
void cgam_help_man(const cgam_verb *verb, FILE *to); /* NULL: cgam(1) */
/* Prints what can stand in place of a word after those before it, a line each: the word, a tab, words
 * about it. */
void cgam_complete(int count, const char *const *before, const char *word, FILE *to);
/* A script by which "bash", "zsh" or "fish" asks for that. */
const char *cgam_completion_script(const char *shell);
/* What the table says of a verb, and of the verbs of a group; NULL: of all. NULL when out of memory, or see
 * cgam_json_ran_short. */
json_t *cgam_help_json(const cgam_verb *verb);
json_t *cgam_help_json_list(const char *group);

/* Lists the verbs whose help mentions the word. Returns false, having printed nothing, if none does. */
bool cgam_help_search(const char *word, FILE *to);
/* Prints a message of the library, with dashes before the names of options. The `count` words `typed` are the user's: a value
 * that happens to be an option's name gets no dashes. */
void cgam_help_message(const cgam_verb *verb, int count, const char *const *typed,
                       const char *message, FILE *to);
/* Prints a help text, with colours where they are welcome: on a terminal that is not dumb, without
 * NO_COLOR. */
void cgam_help_print(const char *text, FILE *to);
bool cgam_help_colours(FILE *to);

#endif
