/* verb.h: what the program can do, as a table. A verb is a name, its parameters, words about it,
 * a function that turns parameters into one JSON document, and one that prints such a document for
 * people. Doors (the command line, a server) parse parameters and hand out documents; help, man
 * pages and completions are made from the same table. */
#ifndef CGAM_SRC_APP_VERB_H
#define CGAM_SRC_APP_VERB_H

#include "io/json.h"

#include <cgam/cgam.h>

typedef enum cgam_param_kind {
    CGAM_FLAG,   /* present or not */
    CGAM_INT,    /* an integer within [min, max] */
    CGAM_REAL,   /* a finite number within [min, max] */
    CGAM_TEXT,   /* anything: a file, a name */
    CGAM_CHOICE, /* one of the words in `value`, separated by | */
    CGAM_REALS   /* a list of finite numbers within [min, max], separated by commas */
} cgam_param_kind;

/* As a least value: any number above zero that leaves room for its inverse. */
#define CGAM_ABOVE_0 0x1p-1000

typedef struct cgam_param {
    const char *name; /* without the dashes; "" ends a table. UPPER case: a positional argument */
    cgam_param_kind kind;
    const char *value;    /* what the value is called in help, or the choices */
    const char *fallback; /* the default as text; NULL: none */
    const char *help;
    double min, max; /* both 0: any */
    bool required;
} cgam_param;

typedef struct cgam_args cgam_args;

/* One call of a verb. */
typedef struct cgam_call {
    cgam_env *env;
    const cgam_args *args;
    json_t *doc;   /* an object to fill */
    bool negative; /* set: done, but the answer is no (exit status 1) */
    bool progress; /* show progress on standard error */
} cgam_call;

typedef struct cgam_verb {
    const char *name; /* "recall", "net run" */
    const char *summary;
    const char *about; /* paragraphs, separated by empty lines */
    const char *example;
    const cgam_param *params;
    cgam_status (*run)(cgam_call *call);
    void (*print)(const json_t *doc, FILE *to);
} cgam_verb;

/* NULL ends. */
extern const cgam_verb *const cgam_verbs[];
/* Parameters every verb takes. */
extern const cgam_param cgam_params_common[];

/* The verb that argv[0 ..] names; *used = how many words it took. NULL: none. */
const cgam_verb *cgam_verb_find(int argc, const char *const *argv, int *used);
/* The name closest to what was typed, NULL when nothing is near. */
const char *cgam_verb_suggest(const char *typed);

/* ---- Values ------------------------------------------------------------------------------- */
/* Parses words into args. On failure the message says which parameter and why. */
cgam_status cgam_args_parse(cgam_env *env, const cgam_verb *verb, int argc, const char *const *argv,
                            cgam_args **out);
void cgam_args_free(cgam_args *args);

bool cgam_args_given(const cgam_args *args, const char *name); /* by the user, not by default */
bool cgam_args_flag(const cgam_args *args, const char *name);
int64_t cgam_args_int(const cgam_args *args, const char *name);
double cgam_args_real(const cgam_args *args, const char *name);
const char *cgam_args_text(const cgam_args *args,
                           const char *name); /* NULL: not given, no default */
/* A list: its length, and the numbers through *values, which belong to args. */
int64_t cgam_args_reals(const cgam_args *args, const char *name, const double **values);

/* Is the word an integer, and nothing else? */
bool cgam_text_is_int(const char *text, int64_t *value);

/* ---- Documents ---------------------------------------------------------------------------- */
/* Puts name: value; non-finite numbers become null. Out of memory is noticed once, at the end, by
 * the door (a document that could not take a value is marked). */
void cgam_put_int(json_t *object, const char *name, int64_t value);
void cgam_put_real(json_t *object, const char *name, double value);
void cgam_put_text(json_t *object, const char *name, const char *value); /* NULL: null */
void cgam_put_bool(json_t *object, const char *name, bool value);
void cgam_put(json_t *object, const char *name, json_t *value); /* takes the reference */
json_t *cgam_reals_json(const double *values, int64_t n);

/* Reading a document for printing: NAN for null. */
double cgam_get_real(const json_t *object, const char *name);
int64_t cgam_get_int(const json_t *object, const char *name);
const char *cgam_get_text(const json_t *object, const char *name);

/* ---- Help --------------------------------------------------------------------------------- */
void cgam_help_all(FILE *to);
void cgam_help_verb(const cgam_verb *verb, FILE *to);
void cgam_help_man(const cgam_verb *verb, FILE *to); /* NULL: cgam(1) */

#endif
