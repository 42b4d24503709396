/* verb.h: what the program can do, as a table. A verb is a name, its parameters, help texts,
 * a function that turns parameters into one JSON document, and one that prints such a document as
 * text. The command line, the server and cgam_ask parse parameters and return documents. Help, man
 * pages and completions are made from the same table. */
#ifndef CGAM_SRC_APP_VERB_H
#define CGAM_SRC_APP_VERB_H

#include "app/fields.h"
#include "app/progress.h"
#include "lab/fill.h"
#include "lab/shelf.h"

#include <cgam/cgam.h>

/* As a least value: any number above zero whose inverse is finite. */
#define CGAM_ABOVE_0 0x1p-1000

/* A parameter of a verb is a row of a table: the verb's own row, or one for a field of an options
 * struct (CGAM_ROW_OF, base/field.h). Its `input` is a cgam_input. */
typedef cgam_field cgam_param;

typedef struct cgam_args cgam_args;

typedef struct cgam_verb cgam_verb;

/* One call of a verb. The command line, the server and cgam_ask make it and run it with cgam_call_run. */
typedef struct cgam_call {
    const cgam_verb *verb;
    cgam_env *env;
    const cgam_args *args;
    json_t *doc;                   /* an object to fill */
    bool negative;                 /* true: it succeeded, but the answer is no (exit status 1) */
    cgam_tell progress;            /* where progress goes */
    int64_t queries_max, rows_max; /* limits on a request and its answer; 0: no limit */
    cgam_ranks *ranks;             /* the ranks that make the same call; NULL: one process */
    const char *folder;            /* the folder it writes into; NULL: none */
    size_t folder_there;           /* bytes of that path that existed before the call */
    cgam_shelf *shelf;             /* banks and gates kept between calls; NULL: none */
    cgam_row_names
        *names;   /* of the bank, once requested; the call owns them. NULL if the shelf owns them */
    bool streams; /* the code that prints the document can make its longest list item by item */
    cgam_late late; /* that list, if the verb left one; until cgam_call_end */
    FILE *out;      /* where a verb that keeps running may print that it has begun; NULL: nowhere */
    FILE *
        live; /* the terminal that the document is printed to: text may be shown as it comes; or NULL */
} cgam_call;

/* How ranks run a verb. */
typedef enum cgam_verb_ranks {
    CGAM_RANKS_NONE,  /* not at all: it needs one process */
    CGAM_RANKS_FIRST, /* rank 0 runs it alone */
    CGAM_RANKS_ALL,   /* all run it, and share the rows of its bank */
    CGAM_RANKS_TRIALS /* all run it, and share its trials; rank 0 writes */
} cgam_verb_ranks;

/* Does this process write the files? */
#define CGAM_CALL_WRITES(call) (!(call)->ranks || (call)->ranks->rank == 0)

struct cgam_verb {
    const char *name;         /* "recall", "net run" */
    const char *words;        /* help text, read by cgam_verb_words; NULL: app/about/NAME.txt */
    const char *more;         /* further paragraphs: app/about/MORE.txt; NULL: none */
    const cgam_param *params; /* NULL: only the common ones */
    cgam_verb_ranks ranks;
    bool local;  /* not available over HTTP: it downloads, or uses a terminal */
    bool wordy;  /* it computes nothing, so BLAS and LAPACK are not loaded for it */
    bool drains; /* after a signal it finishes its running work, within a time limit of its own */
    cgam_status (*run)(cgam_call *call);
    /* How the document is printed as text: the template (lab/fill.h) app/text/TEXT.txt, where NULL is the verb's name
     * with - for blanks; or a function if a template is not enough. */
    const char *text;
    void (*print)(const json_t *doc, FILE *to);
};
/* The parts of a verb's help text: a summary in the first line, an optional example in the second, and, after an
 * empty line, paragraphs about what it does. */
typedef struct cgam_words {
    char summary[120], example[200], about[3000];
} cgam_words;
cgam_words cgam_verb_words(const cgam_verb *verb);
/* Prints a document of the verb as text. */
CGAM_NODISCARD bool cgam_verb_print(const cgam_verb *verb, const json_t *doc, const cgam_late *late,
                                    FILE *to);

/* Runs call->verb, which fills call->doc. Returns CGAM_E_NOMEM if the document is incomplete. */
CGAM_NODISCARD cgam_status cgam_call_run(cgam_call *call);
/* Bytes of memory that the call may use: max-memory, or the free memory. */
size_t cgam_call_memory(const cgam_call *call);
/* Frees what the call has kept for its document, apart from call->doc. To be called after every cgam_call_run. */
void cgam_call_end(cgam_call *call);
/* Removes the folders that the call has made, if they are empty. For a program that ends while the call runs. */
void cgam_call_abandon(const cgam_call *call);

/* The function of the verb serve. The server is part of the program, not of the library, and sets this
 * before main. NULL: no server is linked. */
extern cgam_status (*cgam_serve_run)(cgam_call *call);

/* Ends with NULL. */
extern const cgam_verb *const cgam_verbs[];
/* Parameters of every verb. */
extern const cgam_param cgam_params_common[];
/* The i-th parameter of a verb, the common ones last; NULL past the end. */
const cgam_param *cgam_verb_param(const cgam_verb *verb, int i);
/* The parameter whose name is the first `length` bytes of `name`; NULL if there is none. */
const cgam_param *cgam_verb_param_named(const cgam_verb *verb, const char *name, size_t length);
bool cgam_param_positional(const cgam_param *param);
/* Is the verb called "GROUP something"? group NULL: always true. */
bool cgam_verb_in(const cgam_verb *verb, const char *group);
bool cgam_verb_group(const char *word); /* is any verb in it? */

/* Finds the name nearest to what was typed: set typed, try names, read best. Names need not end in 0. */
typedef struct cgam_near {
    const char *typed, *best; /* best NULL: nothing is near */
    int length, least;        /* of best; its distance */
} cgam_near;
void cgam_near_try(cgam_near *near, const char *name, size_t length);

/* The verb that argv[0 ..] names; *used = how many words name it. NULL if none does. */
const cgam_verb *cgam_verb_find(int argc, const char *const *argv, int *used);
/* The verb, or the first word of several, closest to what was typed. */
cgam_near cgam_verb_suggest(const char *typed);
/* Returns CGAM_E_ARG with "no verb 'lm gte'; did you mean lm get? see: cgam help". count >= 1. */
cgam_status cgam_verb_fail(cgam_env *env, int count, const char *const *words);

/* ---- Values ------------------------------------------------------------------------------- */
/* Two ways to fill them, one set of checks: words of a command line; or a JSON object, whose members
 * are numbers, texts, true or false, and arrays of these where a parameter takes several - false for one
 * that writes: nothing is written, whatever its default. Defaults are set for what was not. Messages name
 * parameters without dashes. The caller frees *out with cgam_args_free. */
CGAM_NODISCARD cgam_status cgam_args_parse(cgam_env *env, const cgam_verb *verb, int argc,
                                           const char *const *argv, cgam_args **out);
CGAM_NODISCARD cgam_status cgam_args_json(cgam_env *env, const cgam_verb *verb, json_t *object,
                                          cgam_args **out);

void cgam_args_free(cgam_args *args); /* NULL is fine */

/* Reading, by the name in the table. args owns the lists, texts and numbers returned. */
bool cgam_args_known(const cgam_args *args, const char *name); /* is it in the verb's table? */
bool cgam_args_given(const cgam_args *args, const char *name); /* by the user, not by default */
bool cgam_args_flag(const cgam_args *args, const char *name);
int64_t cgam_args_int(const cgam_args *args, const char *name); /* 0: not given, no default */
double cgam_args_real(const cgam_args *args, const char *name); /* NAN: likewise */
/* As typed, the last if several; NULL: likewise. */
const char *cgam_args_text(const cgam_args *args, const char *name);
bool cgam_args_is(const cgam_args *args, const char *name, const char *word);
/* Which of the choices, counted from 0; -1: likewise. */
int cgam_args_choice(const cgam_args *args, const char *name);
/* The number of values, and the values, of a list or of a parameter that may be given several times. */
int64_t cgam_args_count(const cgam_args *args, const char *name);
int64_t cgam_args_ints(const cgam_args *args, const char *name, const int64_t **values);
int64_t cgam_args_reals(const cgam_args *args, const char *name, const double **values);
int64_t cgam_args_words(const cgam_args *args, const char *name, const char *const **values);
/* Was value a given before b? Both come from cgam_args_words, of parameters that may be given several times. */
bool cgam_args_before(const cgam_args *args, const char *a, const char *b);

/* Sets fields of an options struct by its table: those in the verb's table that were given or have a
 * default. The other fields keep their values. */
void cgam_args_fill(const cgam_args *args, const cgam_field *rows, void *opts);
/* Puts values into a document, by their names: "alpha beta mode"; null for what was not given. */
void cgam_args_put(const cgam_args *args, const char *names, json_t *doc);

/* Is the word an integer, and nothing else? */
bool cgam_text_is_int(const char *text, int64_t *value);

/* ---- Help --------------------------------------------------------------------------------- */
void cgam_help_list(const char *group, FILE *to); /* of the verbs in a group; NULL: of all verbs */
void cgam_help_verb(const cgam_verb *verb, FILE *to);
void cgam_help_man(const cgam_verb *verb, FILE *to); /* NULL: cgam(1) */
/* Prints the completions of `word` after the words before it, a line each: the word, a tab, a short
 * description. */
void cgam_complete(int count, const char *const *before, const char *word, FILE *to);
/* The script that makes "bash", "zsh" or "fish" use these completions. */
const char *cgam_completion_script(const char *shell);
/* The table's description of a verb, and of the verbs of a group (NULL: of all). Returns NULL if out of memory; see
 * also cgam_json_ran_short. */
json_t *cgam_help_json(const cgam_verb *verb);
json_t *cgam_help_json_list(const char *group);

/* Lists the verbs whose help mentions the word. Returns false, having printed nothing, if none does. */
bool cgam_help_search(const char *word, FILE *to);
/* Prints a message of the library, with dashes before the names of options. The `count` words `typed` are the user's: a value
 * that happens to be an option's name gets no dashes. */
void cgam_help_message(const cgam_verb *verb, int count, const char *const *typed,
                       const char *message, FILE *to);
/* Prints a help text, with colours on a terminal unless TERM is dumb or NO_COLOR is set. */
void cgam_help_print(const char *text, FILE *to);
bool cgam_help_colours(FILE *to);

#endif
