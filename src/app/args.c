/* args.c: words become checked values. --name value, --name=value, flags, and positional
 * arguments in the order of the table. Everything is checked here, so verbs start with good
 * numbers. */
#include "app/verb.h"
#include "base/env.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS_MAX = 64 };

typedef struct slot {
    const cgam_param *param;
    const char *text; /* as typed, or the default; NULL = neither */
    bool given;
    double *reals;
    int64_t count;
} slot;

struct cgam_args {
    cgam_env *env;
    int count;
    slot slots[PARAMS_MAX];
};

static bool positional(const cgam_param *p) { return isupper((unsigned char)p->name[0]) != 0; }

/* The index of a parameter, -1 = there is none of that name. */
static int find(const cgam_args *args, const char *name, size_t length)
{
    for (int i = 0; i < args->count; i++) {
        const char *have = args->slots[i].param->name;
        if (strlen(have) == length && strncmp(have, name, length) == 0) return i;
    }
    return -1;
}

static const slot *get(const cgam_args *args, const char *name)
{
    return &args->slots[find(args, name, strlen(name))];
}

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
        return cgam_fail(env, CGAM_E_ARG, "--%s is %.15g, it must be above 0 (1e-301 or more)",
                         p->name, value);
    if (isinf(p->max))
        return cgam_fail(env, CGAM_E_ARG, "--%s is %.15g, it must be at least %.15g", p->name,
                         value, p->min);
    return cgam_fail(env, CGAM_E_ARG, "--%s is %.15g, it must be from %.15g to %.15g", p->name,
                     value, p->min, p->max);
}

static bool is_choice(const char *choices, const char *text)
{
    size_t length = strlen(text);
    for (const char *c = choices; c; c = strchr(c, '|')) {
        if (*c == '|') c++;
        if (strcspn(c, "|") == length && strncmp(c, text, length) == 0) return true;
    }
    return false;
}

static cgam_status check_list(cgam_env *env, slot *s)
{
    int64_t most = 1;
    for (const char *c = s->text; *c; c++) most += *c == ',';
    s->reals = cgam_alloc(env, (size_t)most, sizeof *s->reals);
    if (!s->reals) return cgam_fail_nomem(env, "a list of numbers");
    const char *at = s->text;
    for (;;) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || !isfinite(value) || (*end && *end != ','))
            return cgam_fail(env, CGAM_E_ARG, "--%s: '%s' is not a list of numbers like 0,0.5,1",
                             s->param->name, s->text);
        cgam_status status = check_range(env, s->param, value);
        if (status != CGAM_OK) return status;
        s->reals[s->count++] = value;
        if (!*end) return CGAM_OK;
        at = end + 1;
    }
}

static cgam_status check_value(cgam_env *env, slot *s)
{
    const cgam_param *p = s->param;
    const char *dashes = positional(p) ? "" : "--";
    int64_t integer;
    double real;
    switch (p->kind) {
    case CGAM_FLAG:
    case CGAM_TEXT:
        if (!*s->text)
            return cgam_fail(env, CGAM_E_ARG, "%s%s: the value is empty", dashes, p->name);
        return CGAM_OK;
    case CGAM_INT:
        if (!cgam_text_is_int(s->text, &integer))
            return cgam_fail(env, CGAM_E_ARG, "%s%s: '%s' is not an integer", dashes, p->name,
                             s->text);
        return check_range(env, p, (double)integer);
    case CGAM_REAL:
        if (!is_real(s->text, &real))
            return cgam_fail(env, CGAM_E_ARG, "%s%s: '%s' is not a finite number", dashes, p->name,
                             s->text);
        return check_range(env, p, real);
    case CGAM_CHOICE:
        if (!is_choice(p->value, s->text))
            return cgam_fail(env, CGAM_E_ARG, "%s%s: '%s' is none of %s", dashes, p->name, s->text,
                             p->value);
        return CGAM_OK;
    case CGAM_REALS: return check_list(env, s);
    }
    return CGAM_OK;
}

static void add_params(cgam_args *args, const cgam_param *p)
{
    for (; p && *p->name && args->count < PARAMS_MAX; p++)
        args->slots[args->count++] = (slot){.param = p, .text = p->fallback};
}

static cgam_status take_option(cgam_args *args, const cgam_verb *verb, int argc,
                               const char *const *argv, int *at)
{
    cgam_env *env = args->env;
    const char *name = argv[*at] + 2;
    size_t length = strcspn(name, "=");
    int found = find(args, name, length);
    slot *s = &args->slots[found < 0 ? 0 : found];
    if (found < 0 || positional(s->param))
        return cgam_fail(env, CGAM_E_ARG, "no option --%.*s; see: cgam help %s", (int)length, name,
                         verb->name);
    if (s->given) return cgam_fail(env, CGAM_E_ARG, "--%s is given twice", s->param->name);
    s->given = true;
    if (s->param->kind == CGAM_FLAG) {
        if (name[length]) return cgam_fail(env, CGAM_E_ARG, "--%s takes no value", s->param->name);
        s->text = "yes";
    } else if (name[length] == '=') {
        s->text = name + length + 1;
    } else if (*at + 1 < argc) {
        s->text = argv[++*at];
    } else {
        return cgam_fail(env, CGAM_E_ARG, "--%s needs a value: %s", s->param->name,
                         s->param->value);
    }
    return CGAM_OK;
}

static cgam_status take_positional(cgam_args *args, const cgam_verb *verb, const char *word)
{
    for (int i = 0; i < args->count; i++) {
        slot *s = &args->slots[i];
        if (!positional(s->param) || s->given) continue;
        s->given = true;
        s->text = word;
        return CGAM_OK;
    }
    return cgam_fail(args->env, CGAM_E_ARG, "'%s' is one argument too many; see: cgam help %s",
                     word, verb->name);
}

cgam_status cgam_args_parse(cgam_env *env, const cgam_verb *verb, int argc, const char *const *argv,
                            cgam_args **out)
{
    *out = NULL;
    cgam_args *args = cgam_zalloc(env, 1, sizeof *args);
    if (!args) return cgam_fail_nomem(env, "arguments");
    args->env = env;
    add_params(args, verb->params);
    add_params(args, cgam_params_common);
    cgam_status status = CGAM_OK;
    for (int i = 0; i < argc && status == CGAM_OK; i++)
        status = strncmp(argv[i], "--", 2) == 0 ? take_option(args, verb, argc, argv, &i)
                                                : take_positional(args, verb, argv[i]);
    for (int i = 0; i < args->count && status == CGAM_OK; i++) {
        slot *s = &args->slots[i];
        const char *dashes = positional(s->param) ? "" : "--";
        if (s->text) status = check_value(env, s);
        else if (s->param->required)
            status = cgam_fail(env, CGAM_E_ARG, "%s%s is missing; see: cgam help %s", dashes,
                               s->param->name, verb->name);
    }
    if (status != CGAM_OK) {
        cgam_args_free(args);
        return status;
    }
    *out = args;
    return CGAM_OK;
}

void cgam_args_free(cgam_args *args)
{
    if (!args) return;
    for (int i = 0; i < args->count; i++) cgam_free(args->env, args->slots[i].reals);
    cgam_free(args->env, args);
}

bool cgam_args_given(const cgam_args *args, const char *name) { return get(args, name)->given; }
bool cgam_args_flag(const cgam_args *args, const char *name) { return get(args, name)->given; }
const char *cgam_args_text(const cgam_args *args, const char *name)
{
    return get(args, name)->text;
}

int64_t cgam_args_int(const cgam_args *args, const char *name)
{
    int64_t value = 0;
    const slot *s = get(args, name);
    if (s->text) cgam_text_is_int(s->text, &value);
    return value;
}

double cgam_args_real(const cgam_args *args, const char *name)
{
    double value = NAN;
    const slot *s = get(args, name);
    if (s->text) is_real(s->text, &value);
    return value;
}

int64_t cgam_args_reals(const cgam_args *args, const char *name, const double **values)
{
    const slot *s = get(args, name);
    *values = s->reals;
    return s->count;
}
