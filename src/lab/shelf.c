/* shelf.c: banks by name, gates by what their work depends on: bank, alpha, how well alpha_crit is to be
 * known, and whether coupled recalls iterate with them. Moving lambda, beta, query or context factors
 * nothing. Gates are shared; a model serves one call at a time, and who finds none free opens another. */
#include "lab/shelf.h"
#include "memory/bank.h"

#include "base/env.h"
#include "lm/model.h"
#include "memory/gate.h"

#include <cgam/bank.h>
#include <pthread.h>
#include <string.h>

enum { PLAIN, UNIT, SKETCHED, UNIT_SKETCHED, VIEWS };

typedef struct stand {
    struct stand *next;
    _Atomic(cgam_bank *) views[VIEWS]; /* except the first, NULL until requested */
    cgam_row_names *names;             /* or NULL */
    char name[];
} stand;

/* A kept gate or model. */
typedef struct entry {
    struct entry *next; /* less recently used */
    size_t bytes;
    int users;
    const cgam_bank *bank; /* of a gate, with all up to `coupled` */
    cgam_gate *gate;
    double alpha;
    bool certify, coupled;
    cgam_lm *lm; /* or of a model */
    char *path;  /* "" is the default one */
} entry;

struct cgam_shelf {
    cgam_env *env;
    pthread_mutex_t lock;   /* guards entries and info */
    pthread_mutex_t making; /* of a view of a bank */
    stand *stands;          /* all put there before the first call */
    entry *entries;         /* most recently used first */
    size_t room;
    cgam_shelf_info info;
};

cgam_status cgam_shelf_new(cgam_env *env, size_t bytes, cgam_shelf **out)
{
    *out = cgam_zalloc(env, 1, sizeof **out);
    if (!*out) return cgam_fail_nomem(env, "a shelf");
    (*out)->env = env;
    (*out)->room = bytes;
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_mutex_init(&(*out)->making, NULL);
    return CGAM_OK;
}

static void drop(cgam_shelf *shelf, entry *e)
{
    cgam_gate_free(e->gate);
    cgam_lm_close(e->lm);
    cgam_free(shelf->env, e->path);
    cgam_free(shelf->env, e);
}

void cgam_shelf_free(cgam_shelf *shelf)
{
    if (!shelf) return;
    for (entry *e = shelf->entries, *next; e; e = next) {
        next = e->next;
        drop(shelf, e);
    }
    for (stand *s = shelf->stands, *next; s; s = next) {
        next = s->next;
        for (int v = VIEWS; v-- > 0;)
            cgam_bank_free(s->views[v]); /* later ones borrow earlier ones */
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
    s->views[PLAIN] = bank;
    s->next = shelf->stands;
    shelf->stands = s;
    shelf->info.banks++;
    return cgam_pack_names(bank, &s->names);
}

cgam_status cgam_shelf_name(cgam_shelf *shelf, const char *name, cgam_row_names *names)
{
    stand *s = find(shelf, name);
    long long n = s ? (long long)cgam_bank_describe(s->views[PLAIN]).whole : 0;
    long long count = (long long)cgam_row_names_count(names);
    cgam_status status = CGAM_OK;
    if (!s || s->names)
        status = cgam_fail(shelf->env, CGAM_E_ARG, "names: %s %s", name,
                           s ? "already has names" : "is not a bank");
    else if (count != n)
        status = cgam_fail(shelf->env, CGAM_E_SHAPE, "names: %lld names, but %s has %lld memories",
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
static cgam_status make_unit(cgam_shelf *shelf, const stand *s, cgam_bank **out)
{
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.normalize = opts.copy = true;
    if (s->name[0] == '/') return cgam_bank_load(shelf->env, s->name, &opts, out);
    cgam_bank_info info = cgam_bank_describe(s->views[PLAIN]);
    double *rows = cgam_alloc(shelf->env, (size_t)info.n * (size_t)info.d, sizeof *rows);
    cgam_status status = rows ? CGAM_OK : cgam_fail_nomem(shelf->env, "a bank");
    for (int64_t i = 0; i < info.n && status == CGAM_OK; i++)
        status = cgam_bank_row(s->views[PLAIN], i, rows + i * info.d);
    if (status == CGAM_OK)
        status = cgam_bank_new(shelf->env, rows, CGAM_F64, info.n, info.d, &opts, out);
    cgam_free(shelf->env, rows);
    return status;
}

/* All rows of a bank, borrowed, with a sketch: others may be reading the bank itself. */
static cgam_status make_sketched(cgam_shelf *shelf, const cgam_bank *bank, cgam_bank **out)
{
    int64_t words = cgam_mask_words(cgam_bank_describe(bank).whole);
    uint64_t *all = cgam_alloc(shelf->env, (size_t)words, sizeof *all);
    if (!all) return cgam_fail_nomem(shelf->env, "a mask");
    memset(all, 0xff, (size_t)words * sizeof *all);
    cgam_status status = cgam_bank_only(bank, all, out);
    cgam_free(shelf->env, all);
    if (status == CGAM_OK) status = cgam_bank_sketch(*out);
    if (status == CGAM_OK) return CGAM_OK;
    cgam_bank_free(*out);
    *out = NULL;
    return status;
}

static cgam_status make_view(cgam_shelf *shelf, stand *s, int view)
{
    cgam_bank *made = NULL;
    cgam_status status = CGAM_OK;
    if (s->views[view]) return CGAM_OK;
    if (view == UNIT) status = make_unit(shelf, s, &made);
    else {
        int of = view == SKETCHED ? PLAIN : UNIT;
        status = make_view(shelf, s, of);
        if (status == CGAM_OK) status = make_sketched(shelf, s->views[of], &made);
    }
    s->views[view] = made;
    return status;
}

cgam_status cgam_shelf_bank(cgam_shelf *shelf, const char *name, bool normalize, bool sketch,
                            cgam_bank **out)
{
    stand *s = find(shelf, name);
    cgam_status status = CGAM_OK;
    bool has = cgam_bank_describe(s->views[PLAIN]).sketch && !normalize; /* a packed one */
    int view = (normalize ? UNIT : PLAIN) + (sketch && !has ? SKETCHED : 0);
    *out = s->views[view];
    if (*out) return CGAM_OK;
    pthread_mutex_lock(&shelf->making);
    status = make_view(shelf, s, view);
    *out = s->views[view];
    pthread_mutex_unlock(&shelf->making);
    return status;
}

bool cgam_shelf_owns(const cgam_shelf *shelf, const cgam_bank *bank)
{
    for (stand *s = shelf && bank ? shelf->stands : NULL; s; s = s->next)
        for (int v = 0; v < VIEWS; v++)
            if (s->views[v] == bank) return true;
    return false;
}

/* ---- what is kept ------------------------------------------------------------------------------ */

static bool serves(const entry *e, const entry *wanted)
{
    if (wanted->path) return e->path && e->users == 0 && strcmp(e->path, wanted->path) == 0;
    return e->gate && e->bank == wanted->bank && e->alpha == wanted->alpha &&
           e->certify == wanted->certify && e->coupled == wanted->coupled;
}

static void put_first(cgam_shelf *shelf, entry *e)
{
    e->next = shelf->entries;
    shelf->entries = e;
}

/* Finds a matching entry and moves it to the front; NULL if there is none. */
static entry *take(cgam_shelf *shelf, const entry *wanted)
{
    for (entry **at = &shelf->entries; *at; at = &(*at)->next) {
        entry *e = *at;
        if (!serves(e, wanted)) continue;
        *at = e->next;
        put_first(shelf, e);
        e->users++;
        return e;
    }
    return NULL;
}

/* It comes or goes. */
static void count(cgam_shelf *shelf, const entry *e, int sign)
{
    if (e->gate) shelf->info.gates += sign;
    else shelf->info.models += sign;
    shelf->info.bytes += sign > 0 ? e->bytes : -e->bytes;
}

/* Removes and frees the entry at *at. */
static void let_go(cgam_shelf *shelf, entry **at)
{
    entry *e = *at;
    *at = e->next;
    count(shelf, e, -1);
    drop(shelf, e);
}

/* Frees entries from the end until the rest fits the limit; keeps those in use. */
static void make_room(cgam_shelf *shelf)
{
    while (shelf->info.bytes > shelf->room) {
        entry **last = NULL;
        for (entry **at = &shelf->entries; *at; at = &(*at)->next)
            if ((*at)->users == 0) last = at;
        if (!last) return;
        let_go(shelf, last);
    }
}

/* ---- gates ------------------------------------------------------------------------------------- */

/* Factors the requested gate. */
static cgam_status make(cgam_shelf *shelf, const entry *wanted, entry **out)
{
    cgam_gate_opts opts = cgam_gate_opts_default();
    opts.effort = wanted->certify ? CGAM_EFFORT_FULL : CGAM_EFFORT_LEAST;
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
                    .certify = opts->certify == CGAM_CERTIFY_FULL,
                    .coupled = opts->mode == CGAM_COUPLED};
    pthread_mutex_lock(&shelf->lock);
    entry *e = take(shelf, &wanted), *made;
    if (e) shelf->info.hits++;
    else shelf->info.misses++;
    pthread_mutex_unlock(&shelf->lock);
    if (!e) { /* two concurrent calls both factor, and one gate is freed */
        cgam_status status = make(shelf, &wanted, &made);
        if (status != CGAM_OK) return status;
        pthread_mutex_lock(&shelf->lock);
        e = take(shelf, &wanted);
        if (!e) {
            e = made;
            made = NULL;
            put_first(shelf, e);
            count(shelf, e, 1);
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
    for (entry *e = shelf->entries; e; e = e->next)
        if (e->gate == gate) e->users--;
    make_room(shelf);
    pthread_mutex_unlock(&shelf->lock);
}

/* ---- models ------------------------------------------------------------------------------------ */

cgam_status cgam_shelf_model(cgam_shelf *shelf, const char *path, cgam_lm **out)
{
    cgam_env *env = shelf->env;
    entry wanted = {.path = cgam_strdup(env, path ? path : "")}, *e;
    *out = NULL;
    if (!wanted.path) return cgam_fail_nomem(env, "a model");
    pthread_mutex_lock(&shelf->lock);
    e = take(shelf, &wanted);
    pthread_mutex_unlock(&shelf->lock);
    if (e) {
        cgam_free(env, wanted.path);
        *out = e->lm;
        return CGAM_OK;
    }
    e = cgam_zalloc(env, 1, sizeof *e);
    cgam_status status = e ? cgam_lm_open(env, path, &wanted.lm) : cgam_fail_nomem(env, "a model");
    if (status != CGAM_OK) {
        cgam_free(env, wanted.path);
        cgam_free(env, e);
        return status;
    }
    *e = wanted;
    e->users = 1;
    e->bytes = cgam_lm_bytes(e->lm);
    pthread_mutex_lock(&shelf->lock);
    put_first(shelf, e);
    count(shelf, e, 1);
    shelf->info.opened++;
    make_room(shelf);
    pthread_mutex_unlock(&shelf->lock);
    *out = e->lm;
    return CGAM_OK;
}

void cgam_shelf_model_done(cgam_shelf *shelf, cgam_lm *lm)
{
    if (!shelf || !lm) return;
    pthread_mutex_lock(&shelf->lock);
    entry **at = &shelf->entries;
    while ((*at)->lm != lm) at = &(*at)->next;
    count(shelf, *at, -1);
    (*at)->bytes = cgam_lm_bytes(lm); /* it may have a lens now */
    count(shelf, *at, 1);
    bool another = false; /* one that is free is enough of a model */
    for (const entry *e = shelf->entries; e; e = e->next) another |= serves(e, *at);
    (*at)->users = 0;
    if (another) let_go(shelf, at);
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
