/* args.c: words become checked values. --name value, --name=value, flags, and positional
 * arguments in the order of the table. All values are checked here, so verbs need not check them. */
#include "app/verb.h"
#include "base/env.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct slot {
    const cgam_param *param;
    const char *text; /* the last one set, or the default; NULL = neither */
    bool given;
    int64_t count, room;
    void *items; /* [count] of int64_t, double or const char *, as the kind says */
} slot;

/* A text owned by args. */
typedef struct copy {
    struct copy *next;
    char text[];
} copy;

struct cgam_args {
    cgam_env *env;
    const cgam_verb *verb;
    copy *copies;
    int count;
    slot slots[];
};

enum { ITEM = 8 };
static_assert(sizeof(int64_t) == ITEM && sizeof(double) == ITEM && sizeof(char *) <= ITEM,
              "an item holds any value");

static bool is_list(const cgam_param *p)
{
    return p->kind == CGAM_INTS || p->kind == CGAM_REALS || p->kind == CGAM_WORDS;
}

/* The index of a parameter; -1 if the name is unknown. */
static int find_index(const cgam_args *args, const char *name, size_t length)
{
    for (int i = 0; i < args->count; i++) {
        const char *have = args->slots[i].param->name;
        if (strlen(have) == length && strncmp(have, name, length) == 0) return i;
    }
    return -1;
}

/* ---- values ----------------------------------------------------------------------------------- */

bool cgam_text_is_int(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || isspace((unsigned char)*text)) return false;
    *value = v;
    return true;
}

static bool is_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value) && !isspace((unsigned char)*text);
}

static cgam_status check_range(cgam_env *env, const cgam_param *p, double value)
{
    if ((p->min == 0 && p->max == 0) || (value >= p->min && value <= p->max)) return CGAM_OK;
    if (isinf(p->max) && p->min == CGAM_ABOVE_0)
        return cgam_fail(env, CGAM_E_ARG, "%s is %.15g, it must be above 0 (1e-301 or more)",
                         p->name, value);
    if (isinf(p->max))
        return cgam_fail(env, CGAM_E_ARG, "%s is %.15g, it must be at least %.15g", p->name, value,
                         p->min);
    return cgam_fail(env, CGAM_E_ARG, "%s is %.15g, it must be from %.15g to %.15g", p->name, value,
                     p->min, p->max);
}

/* "mode: 'cupled' is none of first|coupled|flow; did you mean coupled?" */
static cgam_status fail_choice(cgam_env *env, const cgam_param *p, const char *text)
{
    cgam_near near = {.typed = text};
    size_t length;
    const char *word = NULL;
    while ((word = cgam_field_word(p, word, &length))) cgam_near_try(&near, word, length);
    return cgam_fail(env, CGAM_E_ARG, "%s: invalid value '%s' (valid: %s)%s%.*s%s", p->name, text,
                     p->value, near.best ? "; did you mean " : "", near.length,
                     near.best ? near.best : "", near.best ? "?" : "");
}

static cgam_status append_item(cgam_args *args, slot *s, const void *item, size_t size)
{
    if (s->count == s->room) {
        int64_t room = s->room ? 2 * s->room : 4;
        char *items = cgam_zalloc(args->env, (size_t)room, ITEM);
        if (!items) return cgam_fail_nomem(args->env, "the values of a parameter");
        if (s->count) memcpy(items, s->items, (size_t)s->count * ITEM);
        cgam_free(args->env, s->items);
        s->items = items;
        s->room = room;
    }
    memcpy((char *)s->items + s->count++ * ITEM, item, size);
    return CGAM_OK;
}

/* Adds one value, of a list or alone. Borrows `text`. */
static cgam_status add_value(cgam_args *args, slot *s, const char *text)
{
    cgam_env *env = args->env;
    const cgam_param *p = s->param;
    int64_t integer;
    double real;
    size_t length;
    cgam_status status = CGAM_OK;
    switch (p->kind) {
    case CGAM_FLAG: return CGAM_OK;
    case CGAM_INT:
    case CGAM_INTS:
        if (!cgam_text_is_int(text, &integer))
            return cgam_fail(env, CGAM_E_ARG, "%s: '%s' is not an integer%s", p->name, text,
                             is_list(p) ? "; a list is written like 0,1,4" : "");
        status = check_range(env, p, (double)integer);
        return status == CGAM_OK ? append_item(args, s, &integer, sizeof integer) : status;
    case CGAM_REAL:
    case CGAM_REALS:
        if (!is_real(text, &real))
            return cgam_fail(env, CGAM_E_ARG, "%s: '%s' is not a finite number%s", p->name, text,
                             is_list(p) ? "; a list is written like 0,0.5,1" : "");
        status = check_range(env, p, real);
        return status == CGAM_OK ? append_item(args, s, &real, sizeof real) : status;
    case CGAM_CHOICE:
    case CGAM_WORDS:
        if (cgam_field_word(p, NULL, &length) && cgam_field_choice(p, text) < 0)
            return fail_choice(env, p, text);
        break;
    default: break;
    }
    if (p->find && !p->find(text, &real))
        return cgam_fail(env, CGAM_E_ARG, "%s: invalid value '%s' (%.*s)", p->name, text,
                         (int)strcspn(p->help, ";"), p->help);
    if (!*text) return cgam_fail(env, CGAM_E_ARG, "%s: the value is empty", p->name);
    return append_item(args, s, &text, sizeof text);
}

static char *copy_text(cgam_args *args, const char *text)
{
    size_t size = strlen(text) + 1;
    copy *c = cgam_alloc(args->env, 1, sizeof *c + size);
    if (!c) return NULL;
    c->next = args->copies;
    args->copies = c;
    return memcpy(c->text, text, size);
}

/* Splits a text and adds its values. */
static cgam_status parse_values(cgam_args *args, slot *s, const char *text)
{
    s->text = copy_text(args, text);
    char *at = copy_text(args, text);
    if (!s->text || !at) return cgam_fail_nomem(args->env, "the value of a parameter");
    bool numbers = s->param->kind != CGAM_WORDS && s->param->kind != CGAM_CHOICE;
    if (numbers && cgam_field_choice(s->param, text) >= 0)
        return CGAM_OK; /* a word instead of numbers */
    if (!is_list(s->param)) return add_value(args, s, at);
    cgam_status status = CGAM_OK;
    for (char *next = at; next && status == CGAM_OK; at = next) {
        next = strchr(at, ',');
        if (next) *next++ = 0;
        if (numbers) at += strspn(at, " ");
        status = add_value(args, s, at);
    }
    return status;
}

/* Marks a parameter as given by the user. */
static cgam_status mark_given(cgam_args *args, slot *s)
{
    if (s->given && !s->param->many)
        return cgam_fail(args->env, CGAM_E_ARG, "%s is given twice", s->param->name);
    s->given = true;
    return CGAM_OK;
}

static cgam_status set_value(cgam_args *args, slot *s, const char *text)
{
    const cgam_param *p = s->param;
    if (!text) text = p->bare;
    if (p->kind == CGAM_FLAG && text)
        return cgam_fail(args->env, CGAM_E_ARG, "%s takes no value", p->name);
    if (p->kind != CGAM_FLAG && !text)
        return cgam_fail(args->env, CGAM_E_ARG, "%s needs a value: %s", p->name, p->value);
    cgam_status status = mark_given(args, s);
    return status == CGAM_OK && text ? parse_values(args, s, text) : status;
}

static cgam_status fail_unknown(cgam_args *args, const char *name, size_t length,
                                const char *dashes)
{
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)length, name);
    cgam_near near = {.typed = typed};
    for (int i = 0; i < args->count; i++)
        if (!*dashes || !cgam_param_positional(args->slots[i].param))
            cgam_near_try(&near, args->slots[i].param->name, strlen(args->slots[i].param->name));
    return cgam_fail(args->env, CGAM_E_ARG, "no option %s%.*s;%s%s%s%s see: cgam help %s", dashes,
                     (int)length, name, near.best ? " did you mean " : "", near.best ? dashes : "",
                     near.best ? near.best : "", near.best ? "?" : "", args->verb->name);
}

/* ---- making ----------------------------------------------------------------------------------- */

static cgam_status new_args(cgam_env *env, const cgam_verb *verb, cgam_args **out)
{
    int count = 0;
    while (cgam_verb_param(verb, count)) count++;
    cgam_args *args = cgam_zalloc(env, 1, sizeof *args + (size_t)count * sizeof *args->slots);
    *out = args;
    if (!args) return cgam_fail_nomem(env, "arguments");
    args->env = env;
    args->verb = verb;
    args->count = count;
    for (int i = 0; i < count; i++) args->slots[i].param = cgam_verb_param(verb, i);
    return CGAM_OK;
}

/* Sets defaults for what was not set. Fails if a required parameter is missing. */
static cgam_status finish_args(cgam_args *args)
{
    cgam_status status = CGAM_OK;
    for (int i = 0; i < args->count && status == CGAM_OK; i++) {
        slot *s = &args->slots[i];
        if (s->given) continue;
        if (s->param->fallback) status = parse_values(args, s, s->param->fallback);
        else if (s->param->required)
            status = cgam_fail(args->env, CGAM_E_ARG,
                               "%s is missing; see: cgam "
                               "help %s",
                               s->param->name, args->verb->name);
    }
    return status;
}

void cgam_args_free(cgam_args *args)
{
    if (!args) return;
    for (int i = 0; i < args->count; i++) cgam_free(args->env, args->slots[i].items);
    for (copy *c = args->copies, *next; c; c = next) {
        next = c->next;
        cgam_free(args->env, c);
    }
    cgam_free(args->env, args);
}

/* ---- from a command line ---------------------------------------------------------------------- */

/* argv[*at] is --name, --name=value, or --name before its value. */
static cgam_status take_option(cgam_args *args, int argc, const char *const *argv, int *at)
{
    const char *name = argv[*at] + 2, *text = NULL;
    size_t length = strcspn(name, "=");
    int k = find_index(args, name, length);
    if (k < 0 || cgam_param_positional(args->slots[k].param))
        return fail_unknown(args, name, length, "--");
    slot *s = &args->slots[k];
    if (name[length]) text = name + length + 1;
    else if (s->param->kind != CGAM_FLAG && *at + 1 < argc) {
        const char *next = argv[*at + 1];
        bool option =
            strncmp(next, "--", 2) == 0 && find_index(args, next + 2, strcspn(next + 2, "=")) >= 0;
        /* where the word is optional, the next argument is used only if it is one of the choices */
        bool other = s->param->bare && s->param->kind == CGAM_CHOICE &&
                     cgam_field_choice(s->param, next) < 0;
        if (!option && !other) text = argv[++*at];
    }
    return set_value(args, s, text);
}

static cgam_status take_positional(cgam_args *args, const char *word)
{
    for (int i = 0; i < args->count; i++) {
        slot *s = &args->slots[i];
        if (cgam_param_positional(s->param) && (!s->given || s->param->many))
            return set_value(args, s, word);
    }
    return cgam_fail(args->env, CGAM_E_ARG, "unexpected argument '%s'; see: cgam help %s", word,
                     args->verb->name);
}

/* Returns args in *out on success, frees them on failure. */
static cgam_status hand_out(cgam_args *args, cgam_status status, cgam_args **out)
{
    if (status == CGAM_OK) status = finish_args(args);
    *out = status == CGAM_OK ? args : NULL;
    if (status != CGAM_OK) cgam_args_free(args);
    return status;
}

cgam_status cgam_args_parse(cgam_env *env, const cgam_verb *verb, int argc, const char *const *argv,
                            cgam_args **out)
{
    cgam_args *args;
    bool options = true; /* until "--" */
    cgam_status status = new_args(env, verb, &args);
    for (int i = 0; i < argc && status == CGAM_OK; i++) {
        if (options && strcmp(argv[i], "--") == 0) options = false;
        else if (options && strncmp(argv[i], "--", 2) == 0)
            status = take_option(args, argc, argv, &i);
        else status = take_positional(args, argv[i]);
    }
    return hand_out(args, status, out);
}

/* ---- from JSON -------------------------------------------------------------------------------- */

/* A number, text or boolean as a word; NULL for any other type. */
static const char *json_word(const json_t *value, char *room, size_t size)
{
    if (json_is_integer(value)) snprintf(room, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) snprintf(room, size, "%.17g", json_real_value(value));
    else if (json_is_boolean(value)) snprintf(room, size, json_is_true(value) ? "yes" : "no");
    else return json_string_value(value);
    return room;
}

static cgam_status set_json(cgam_args *args, slot *s, const json_t *value)
{
    const cgam_param *p = s->param;
    char room[40];
    if (json_is_null(value)) return CGAM_OK;
    if (p->kind == CGAM_FLAG || (p->bare && json_is_boolean(value))) {
        if (!json_is_boolean(value))
            return cgam_fail(args->env, CGAM_E_ARG, "%s: expected true or false", p->name);
        return json_is_true(value) ? set_value(args, s, NULL) : CGAM_OK;
    }
    if (p->writes && json_is_false(value) &&
        !p->required) { /* false: write nothing, even if there is a default */
        s->given = p->fallback != NULL;
        return CGAM_OK;
    }
    bool array = json_is_array(value) && (is_list(p) || p->many);
    cgam_status status = CGAM_OK;
    for (size_t i = 0; i < (array ? json_array_size(value) : 1) && status == CGAM_OK; i++) {
        const char *word = json_word(array ? json_array_get(value, i) : value, room, sizeof room);
        if (!word)
            return cgam_fail(args->env, CGAM_E_ARG, "%s: expected a number or text%s", p->name,
                             is_list(p) || p->many ? ", or an array of these" : "");
        if (!array || !is_list(p)) {
            status = set_value(args, s, word);
            continue;
        }
        /* One item of a list: a comma in it does not separate. */
        s->given = true;
        s->text = copy_text(args, word);
        status = s->text ? add_value(args, s, s->text) : cgam_fail_nomem(args->env, "a value");
    }
    if (array && json_array_size(value) == 0)
        return cgam_fail(args->env, CGAM_E_ARG, "%s: the array is empty", p->name);
    return status;
}

cgam_status cgam_args_json(cgam_env *env, const cgam_verb *verb, json_t *object, cgam_args **out)
{
    cgam_args *args;
    cgam_status status = new_args(env, verb, &args);
    if (status == CGAM_OK && !json_is_object(object))
        status = cgam_fail(env, CGAM_E_ARG, "expected the parameters as one JSON object");
    void *it = json_object_iter(object);
    for (; it && status == CGAM_OK; it = json_object_iter_next(object, it)) {
        const char *name = json_object_iter_key(it);
        int k = find_index(args, name, strlen(name));
        status = k >= 0 ? set_json(args, &args->slots[k], json_object_iter_value(it))
                        : fail_unknown(args, name, strlen(name), "");
    }
    return hand_out(args, status, out);
}

/* ---- reading ---------------------------------------------------------------------------------- */

static const slot *slot_of(const cgam_args *args, const char *name)
{
    int k = find_index(args, name, strlen(name));
    assert(k >= 0); /* a verb reads only parameters of its table */
    return &args->slots[k];
}

bool cgam_args_known(const cgam_args *args, const char *name)
{
    return find_index(args, name, strlen(name)) >= 0;
}

bool cgam_args_given(const cgam_args *args, const char *name) { return slot_of(args, name)->given; }
bool cgam_args_flag(const cgam_args *args, const char *name) { return slot_of(args, name)->given; }
int64_t cgam_args_count(const cgam_args *args, const char *name)
{
    return slot_of(args, name)->count;
}
const char *cgam_args_text(const cgam_args *args, const char *name)
{
    return slot_of(args, name)->text;
}

bool cgam_args_is(const cgam_args *args, const char *name, const char *word)
{
    const char *text = cgam_args_text(args, name);
    return text && strcmp(text, word) == 0;
}

int cgam_args_choice(const cgam_args *args, const char *name)
{
    const slot *s = slot_of(args, name);
    return s->text ? cgam_field_choice(s->param, s->text) : -1;
}

#define LIST_OF(function_, type_)                                                                  \
    int64_t function_(const cgam_args *args, const char *name, type_ **values)                     \
    {                                                                                              \
        const slot *s = slot_of(args, name);                                                       \
        *values = s->items;                                                                        \
        return s->count;                                                                           \
    }
LIST_OF(cgam_args_ints, const int64_t)
LIST_OF(cgam_args_reals, const double)
LIST_OF(cgam_args_words, const char *const)

bool cgam_args_before(const cgam_args *args, const char *a, const char *b)
{
    const copy *c = args->copies; /* the most recent first */
    while (c && c->text != a && c->text != b) c = c->next;
    return c && c->text == b;
}

int64_t cgam_args_int(const cgam_args *args, const char *name)
{
    const int64_t *values;
    int64_t count = cgam_args_ints(args, name, &values);
    return count ? values[count - 1] : 0;
}

double cgam_args_real(const cgam_args *args, const char *name)
{
    const double *values;
    int64_t count = cgam_args_reals(args, name, &values);
    return count ? values[count - 1] : NAN;
}

/* ---- options structs -------------------------------------------------------------------------- */

static void fill_field(const cgam_args *args, const cgam_field *f, void *opts)
{
    const slot *s = slot_of(args, f->name);
    void *at = (char *)opts + f->offset;
    const char *text = s->text;
    int word = text ? cgam_field_choice(f, text) : -1;
    double real = s->count && (f->kind == CGAM_REAL) ? cgam_args_real(args, f->name) : 0;
    int64_t integer = s->count && f->kind == CGAM_INT ? cgam_args_int(args, f->name) : word;
    if (f->kind == CGAM_FLAG) integer = s->given;
    else if (!text || (f->count && !s->count)) return; /* not given and no default, or "all" */
    if (f->kind == CGAM_CHOICE && f->type != CGAM_TYPE_POINTER && word < 0)
        return;                              /* a word that this struct does not have */
    if (f->find) (void)f->find(text, &real); /* checked when it was set */
    if (f->given) *(bool *)((char *)opts + f->given) = true;
    switch (f->type) {
    case CGAM_TYPE_BOOL:
        *(bool *)at = f->value && strncmp(f->value, "yes|", 4) == 0 ? word == 0 : integer != 0;
        break;
    case CGAM_TYPE_INT: *(int *)at = (int)integer; break;
    case CGAM_TYPE_INT64: *(int64_t *)at = integer; break;
    case CGAM_TYPE_UINT64: *(uint64_t *)at = (uint64_t)integer; break;
    case CGAM_TYPE_DOUBLE: *(double *)at = real; break;
    case CGAM_TYPE_POINTER:
        memcpy(at, f->count ? (const void *)&s->items : (const void *)&text, sizeof text);
        if (f->count) *(int64_t *)((char *)opts + f->count) = s->count;
        break;
    default: assert(false);
    }
}

void cgam_args_fill(const cgam_args *args, const cgam_field *rows, void *opts)
{
    for (const cgam_field *f = rows; *f->name; f++)
        if (f->type && find_index(args, f->name, strlen(f->name)) >= 0) fill_field(args, f, opts);
}

void cgam_args_put(const cgam_args *args, const char *names, json_t *doc)
{
    while (*names) {
        size_t length = strcspn(names, " ");
        const slot *s = &args->slots[find_index(args, names, length)];
        const char *name = s->param->name;
        if (s->param->kind == CGAM_FLAG) cgam_json_put_bool(doc, name, s->given);
        else if (s->count && s->param->kind == CGAM_INT)
            cgam_json_put_int(doc, name, cgam_args_int(args, name));
        else if (s->param->kind == CGAM_REAL)
            cgam_json_put_real(doc, name, cgam_args_real(args, name));
        else cgam_json_put_text(doc, name, s->text);
        names += length + (names[length] == ' ');
    }
}
