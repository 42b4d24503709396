/* shelf.c: banks by name, gates by what their work depends on: bank, alpha, how well alpha_crit is to be
 * known, and whether coupled recalls iterate with them. Moving lambda, beta, query or context factors
 * nothing. */
#include "app/shelf.h"

#include "base/env.h"

#include <cgam/pack.h>
#include <pthread.h>
#include <string.h>

typedef struct stand {
    struct stand *next;
    cgam_bank *bank;
    _Atomic(cgam_bank *) unit; /* normalised; NULL until it is asked for */
    cgam_row_names *names;             /* or NULL */
    char name[];
} stand;

typedef struct entry {
    struct entry *next; /* used less lately */
    const cgam_bank *bank;
    cgam_gate *gate;
    double alpha;
    bool certify, coupled;
    size_t bytes;
    int users;
} entry;

struct cgam_shelf {
    cgam_env *env;
    pthread_mutex_t lock;   /* guards gates and info */
    pthread_mutex_t making; /* of a normalised bank */
    stand *stands;          /* all put there before the first call */
    entry *gates;           /* the one used last first */
    size_t room;
    cgam_shelf_info info;
};

cgam_status cgam_shelf_new(cgam_env *env, size_t gate_bytes, cgam_shelf **out)
{
    *out = cgam_zalloc(env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "a shelf");
    (*out)->env = env;
    (*out)->room = gate_bytes;
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_mutex_init(&(*out)->making, NULL);
    return CGAM_OK;
}

static void drop(cgam_shelf *shelf, entry *e)
{
    cgam_gate_free(e->gate);
    cgam_free(shelf->env, e);
}

void cgam_shelf_free(cgam_shelf *shelf)
{
    if (!shelf) return;
    for (entry *e = shelf->gates, *next; e; e = next) {
        next = e->next;
        drop(shelf, e);
    }
    for (stand *s = shelf->stands, *next; s; s = next) {
        next = s->next;
        cgam_bank_free(s->bank);
        cgam_bank_free(s->unit);
        cgam_row_names_free(s->names);
        cgam_free(shelf->env, s);
    }
    pthread_mutex_destroy(&shelf->lock);
    pthread_mutex_destroy(&shelf->making);
    cgam_free(shelf->env, shelf);
}

/* ---- banks ------------------------------------------------------------------------------------- */

static stand *find(const cgam_shelf *shelf, const char *name)
{
    for (stand *s = shelf->stands; s; s = s->next)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

cgam_status cgam_shelf_add(cgam_shelf *shelf, const char *name, cgam_bank *bank)
{
    cgam_env *env = shelf->env;
    cgam_status status = CGAM_OK;
    if (find(shelf, name)) status = cgam_fail(env, CGAM_E_ARG, "%s is given twice", name);
    if (status == CGAM_OK && !bank) status = cgam_bank_load(env, name, NULL, &bank);
    size_t size = strlen(name) + 1;
    stand *s = status == CGAM_OK ? cgam_zalloc(env, 1, sizeof *s + size) : NULL;
    if (status == CGAM_OK && !s) status = cgam_fail_nomem(env, "a shelf");
    if (!s) {
        cgam_bank_free(bank);
        return status;
    }
    memcpy(s->name, name, size);
    s->bank = bank;
    s->next = shelf->stands;
    shelf->stands = s;
    shelf->info.banks++;
    return cgam_pack_names(bank, &s->names);
}

cgam_status cgam_shelf_name(cgam_shelf *shelf, const char *name, cgam_row_names *names)
{
    stand *s = find(shelf, name);
    long long n = s ? (long long)cgam_bank_describe(s->bank).whole : 0;
    long long count = (long long)cgam_row_names_count(names);
    cgam_status status = CGAM_OK;
    if (!s || s->names)
        status = cgam_fail(shelf->env, CGAM_E_ARG, "names: %s %s", name,
                           s ? "has names already" : "is no bank");
    else if (count != n)
        status = cgam_fail(shelf->env, CGAM_E_SHAPE, "names: %lld names, memories of %s are %lld",
                           count, name, n);
    if (status == CGAM_OK) s->names = names;
    else cgam_row_names_free(names);
    return status;
}

const cgam_row_names *cgam_shelf_names(const cgam_shelf *shelf, const char *name)
{
    const stand *s = shelf ? find(shelf, name) : NULL;
    return s ? s->names : NULL;
}

bool cgam_shelf_has(const cgam_shelf *shelf, const char *name)
{
    return shelf && find(shelf, name);
}

/* The rows of a bank again, each divided by its norm; large ones stay where they are. */
static cgam_status make_unit(cgam_shelf *shelf, stand *s)
{
    cgam_bank_opts opts = cgam_bank_opts_default();
    cgam_bank *unit = NULL;
    opts.normalize = opts.copy = true;
    if (s->name[0] == '/') {
        cgam_status loaded = cgam_bank_load(shelf->env, s->name, &opts, &unit);
        s->unit = unit;
        return loaded;
    }
    cgam_bank_info info = cgam_bank_describe(s->bank);
    double *rows = cgam_alloc(shelf->env, (size_t)info.n * (size_t)info.d, sizeof *rows);
    cgam_status status = rows ? CGAM_OK : cgam_fail_nomem(shelf->env, "a bank");
    for (int64_t i = 0; i < info.n && status == CGAM_OK; i++)
        status = cgam_bank_row(s->bank, i, rows + i * info.d);
    if (status == CGAM_OK)
        status = cgam_bank_new(shelf->env, rows, CGAM_F64, info.n, info.d, &opts, &unit);
    s->unit = unit;
    cgam_free(shelf->env, rows);
    return status;
}

cgam_status cgam_shelf_bank(cgam_shelf *shelf, const char *name, bool normalize, cgam_bank **out)
{
    stand *s = find(shelf, name);
    cgam_status status = CGAM_OK;
    *out = s->bank;
    if (!normalize) return CGAM_OK;
    pthread_mutex_lock(&shelf->making);
    if (!s->unit) status = make_unit(shelf, s);
    *out = s->unit;
    pthread_mutex_unlock(&shelf->making);
    return status;
}

bool cgam_shelf_owns(const cgam_shelf *shelf, const cgam_bank *bank)
{
    for (stand *s = shelf && bank ? shelf->stands : NULL; s; s = s->next)
        if (s->bank == bank || s->unit == bank) return true;
    return false;
}

/* ---- gates ------------------------------------------------------------------------------------- */

static bool serves(const entry *e, const entry *wanted)
{
    return e->bank == wanted->bank && e->alpha == wanted->alpha && e->certify == wanted->certify &&
           e->coupled == wanted->coupled;
}

/* Takes the entry that serves, or NULL, and puts it first. */
static entry *take(cgam_shelf *shelf, const entry *wanted)
{
    for (entry **at = &shelf->gates; *at; at = &(*at)->next) {
        entry *e = *at;
        if (!serves(e, wanted)) continue;
        *at = e->next;
        e->next = shelf->gates;
        shelf->gates = e;
        e->users++;
        return e;
    }
    return NULL;
}

/* Lets go of gates from the end until the rest has room; those in use stay. */
static void make_room(cgam_shelf *shelf)
{
    while (shelf->info.gate_bytes > shelf->room) {
        entry **last = NULL;
        for (entry **at = &shelf->gates; *at; at = &(*at)->next)
            if ((*at)->users == 0) last = at;
        if (!last) return;
        entry *e = *last;
        *last = e->next;
        shelf->info.gate_bytes -= e->bytes;
        shelf->info.gates--;
        drop(shelf, e);
    }
}

/* Factors what is wanted. */
static cgam_status make(cgam_shelf *shelf, const entry *wanted, entry **out)
{
    cgam_gate_opts opts = cgam_gate_opts_default();
    opts.effort = wanted->certify ? CGAM_EFFORT_FULL : CGAM_EFFORT_FREE;
    opts.coupled = wanted->coupled;
    opts.alike = true;
    entry *e = *out = cgam_zalloc(shelf->env, 1, sizeof *e);
    if (!e) return cgam_fail_nomem(shelf->env, "a gate");
    *e = *wanted;
    e->users = 1;
    cgam_status status = cgam_gate_new(e->bank, e->alpha, &opts, &e->gate);
    if (status == CGAM_OK) e->bytes = sizeof *e + cgam_gate_bytes(e->gate);
    else cgam_free(shelf->env, e);
    return status;
}

cgam_status cgam_shelf_gate(cgam_shelf *shelf, const cgam_bank *bank, const cgam_recall_opts *opts,
                            const cgam_gate **out)
{
    *out = NULL;
    if (!cgam_shelf_owns(shelf, bank)) return CGAM_OK;
    entry wanted = {.bank = bank,
                    .alpha = opts->alpha,
                    .certify = opts->certify,
                    .coupled = opts->mode == CGAM_COUPLED};
    pthread_mutex_lock(&shelf->lock);
    entry *e = take(shelf, &wanted), *made;
    if (e) shelf->info.hits++;
    else shelf->info.misses++;
    pthread_mutex_unlock(&shelf->lock);
    if (!e) { /* two who ask at once both factor, and one of the gates goes */
        cgam_status status = make(shelf, &wanted, &made);
        if (status != CGAM_OK) return status;
        pthread_mutex_lock(&shelf->lock);
        e = take(shelf, &wanted);
        if (!e) {
            e = made;
            made = NULL;
            e->next = shelf->gates;
            shelf->gates = e;
            shelf->info.gates++;
            shelf->info.gate_bytes += e->bytes;
            make_room(shelf);
        }
        pthread_mutex_unlock(&shelf->lock);
        if (made) drop(shelf, made);
    }
    *out = e->gate;
    return CGAM_OK;
}

void cgam_shelf_gate_done(cgam_shelf *shelf, const cgam_gate *gate)
{
    if (!shelf || !gate) return;
    pthread_mutex_lock(&shelf->lock);
    for (entry *e = shelf->gates; e; e = e->next)
        if (e->gate == gate) e->users--;
    make_room(shelf);
    pthread_mutex_unlock(&shelf->lock);
}

cgam_shelf_info cgam_shelf_describe(cgam_shelf *shelf)
{
    if (!shelf) return (cgam_shelf_info){0};
    pthread_mutex_lock(&shelf->lock);
    cgam_shelf_info info = shelf->info;
    pthread_mutex_unlock(&shelf->lock);
    return info;
}
