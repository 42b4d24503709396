/* catalog.c: the inputs that requests may name. Ids stand for banks, stores, models and caches; clients never see a path. */
#include "serve/server.h"

#include "lab/folder.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    cgam_input kind;
    const char *option, *plural;
} kinds[] = {{CGAM_INPUT_BANK, "bank", "banks"},
             {CGAM_INPUT_STORE, "store", "stores"},
             {CGAM_INPUT_MODEL, "model", "models"},
             {CGAM_INPUT_CACHE, "cache", "caches"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

bool cgam_catalog_is_id(const char *text)
{
    if (!*text || *text == '.' || *text == '-' || strlen(text) > 100) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("._-", *text)) return false;
    return true;
}

const cgam_catalog_entry *cgam_catalog_find(const cgam_catalog *catalog, cgam_input kind,
                                            const char *id)
{
    for (int i = 0; i < catalog->count; i++)
        if (catalog->entries[i].kind == kind && strcmp(catalog->entries[i].id, id) == 0)
            return &catalog->entries[i];
    return NULL;
}

/* Takes both texts over. */
static cgam_status add_entry(cgam_catalog *catalog, cgam_input kind, char *id, char *path)
{
    cgam_env *env = catalog->env;
    cgam_status status = CGAM_OK;
    if (!id || !path) status = cgam_fail_nomem(env, "an id");
    else if (!cgam_catalog_is_id(id))
        status = cgam_fail(env, CGAM_E_ARG,
                           "%s: invalid id '%s' (letters, digits and ._-); give one as ID=FILE",
                           cgam_input_name(kind), id);
    else if (cgam_catalog_find(catalog, kind, id))
        status = cgam_fail(env, CGAM_E_ARG, "%s: duplicate id %s; give another as ID=FILE",
                           cgam_input_name(kind), id);
    if (status == CGAM_OK && catalog->count == catalog->capacity) {
        int capacity = catalog->capacity ? 2 * catalog->capacity : 8;
        cgam_catalog_entry *more = realloc(catalog->entries, (size_t)capacity * sizeof *more);
        if (more) catalog->entries = more, catalog->capacity = capacity;
        else status = cgam_fail_nomem(env, "ids");
    }
    if (status == CGAM_OK)
        catalog->entries[catalog->count++] = (cgam_catalog_entry){kind, id, path};
    else {
        free(id);
        free(path);
    }
    return status;
}

/* The absolute path of an entry's file, independent of the working directory. A member (":Z") stays
 * appended. NULL without memory. */
static char *absolute_path(const char *path)
{
    char real[PATH_MAX], *out = NULL;
    const char *member = "";
    if (realpath(path, real)) member = path + strlen(path);
    else {
        const char *colon = strrchr(path, ':');
        char *file = colon ? strndup(path, (size_t)(colon - path)) : NULL;
        if (file && realpath(file, real)) member = colon;
        else snprintf(real, sizeof real, "%s", path); /* opening it will report why not */
        free(file);
    }
    return asprintf(&out, "%s%s", real, member) < 0 ? NULL : out;
}

/* "glove" of "data/glove.npy:Z". */
static char *default_id(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strcspn(name, ":");
    for (size_t i = length; i-- > 1;)
        if (name[i] == '.') {
            length = i;
            break;
        }
    return strndup(name, length);
}

/* [ID=]FILE: gives the id for free(), NULL without memory, and where the path begins. */
static char *split_id(const char *text, const char **path)
{
    const char *equals = strchr(text, '=');
    bool named = equals && !memchr(text, '/', (size_t)(equals - text));
    *path = named ? equals + 1 : text;
    return named ? strndup(text, (size_t)(equals - text)) : default_id(*path);
}

static cgam_status add_text(cgam_catalog *catalog, cgam_input kind, const char *text)
{
    const char *path;
    char *id = split_id(text, &path);
    if (*path) return add_entry(catalog, kind, id, absolute_path(path));
    free(id);
    return cgam_fail(catalog->env, CGAM_E_ARG, "%s: ID=FILE has no FILE", cgam_input_name(kind));
}

/* ---- names of memories ------------------------------------------------------------------------- */

static cgam_status name_bank(cgam_catalog *catalog, const cgam_catalog_entry *bank,
                             const char *path)
{
    cgam_row_names *names;
    cgam_status status = cgam_row_names_load(catalog->env, path, &names);
    return status == CGAM_OK ? cgam_shelf_name(catalog->shelf, bank->path, names) : status;
}

/* [ID=]FILE of --names. */
static cgam_status name_text(cgam_catalog *catalog, const char *text)
{
    const char *path;
    char *id = split_id(text, &path);
    const cgam_catalog_entry *bank = id ? cgam_catalog_find(catalog, CGAM_INPUT_BANK, id) : NULL;
    cgam_status status = CGAM_OK;
    if (!id) status = cgam_fail_nomem(catalog->env, "an id");
    else if (!bank) status = cgam_fail(catalog->env, CGAM_E_ARG, "names: no bank '%s'", id);
    free(id);
    return status == CGAM_OK ? name_bank(catalog, bank, path) : status;
}

/* Names given by --names; for other banks those in the file beside the bank, if there is one. */
static cgam_status name_banks(cgam_call *call, cgam_catalog *catalog)
{
    const char *const *texts;
    char path[PATH_MAX];
    cgam_status status = CGAM_OK;
    int64_t count = cgam_args_words(call->args, "names", &texts);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) status = name_text(catalog, texts[i]);
    for (int i = 0; i < catalog->count && status == CGAM_OK; i++) {
        const cgam_catalog_entry *t = &catalog->entries[i];
        if (t->kind != CGAM_INPUT_BANK || cgam_shelf_names(catalog->shelf, t->path)) continue;
        status = cgam_names_beside(catalog->env, t->path, path, sizeof path);
        if (status == CGAM_OK && cgam_file_exists(path)) status = name_bank(catalog, t, path);
    }
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------- */

/* Opens a bank; checks that the file of a model, which is opened on demand, is there. */
static cgam_status check_entry(cgam_catalog *catalog, const cgam_catalog_entry *t)
{
    if (t->kind == CGAM_INPUT_BANK) return cgam_shelf_add(catalog->shelf, t->path, NULL);
    if (t->kind == CGAM_INPUT_STORE || t->kind == CGAM_INPUT_CACHE)
        return CGAM_OK; /* made by the first write */
    cgam_file file;
    cgam_status status = cgam_file_map(catalog->env, t->path, &file);
    if (status == CGAM_OK) cgam_file_unmap(&file);
    return status;
}

static cgam_status add_demo(cgam_catalog *catalog)
{
    if (cgam_catalog_find(catalog, CGAM_INPUT_BANK, "demo")) return CGAM_OK;
    cgam_bank *bank;
    cgam_row_names *names;
    cgam_status status = cgam_demo_bank(catalog->env, 1, &bank);
    if (status == CGAM_OK) status = cgam_shelf_add(catalog->shelf, CGAM_DEMO_PREFIX, bank);
    if (status == CGAM_OK) status = cgam_demo_names(catalog->env, &names);
    if (status == CGAM_OK) status = cgam_shelf_name(catalog->shelf, CGAM_DEMO_PREFIX, names);
    if (status == CGAM_OK)
        status = add_entry(catalog, CGAM_INPUT_BANK, strdup("demo"), strdup(CGAM_DEMO_PREFIX));
    return status;
}

static cgam_status open_root(cgam_catalog *catalog, const char *root)
{
    cgam_status status = cgam_folder_make(catalog->env, root);
    if (status != CGAM_OK) return status;
    catalog->root = realpath(root, NULL);
    return catalog->root ? CGAM_OK : cgam_fail(catalog->env, CGAM_E_IO, "%s: no such folder", root);
}

cgam_status cgam_catalog_open(cgam_call *call, cgam_env *env, cgam_catalog *catalog)
{
    *catalog = (cgam_catalog){.env = env};
    const char *root = cgam_args_text(call->args, "root");
    catalog->cache_bytes = (size_t)cgam_args_int(call->args, "plan-cache") << 20;
    cgam_status status = cgam_shelf_new(env, catalog->cache_bytes, &catalog->shelf);
    for (int k = 0; k < KINDS && status == CGAM_OK; k++) {
        const char *const *texts;
        int64_t count = cgam_args_words(call->args, kinds[k].option, &texts);
        for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
            status = add_text(catalog, kinds[k].kind, texts[i]);
            if (status == CGAM_OK)
                status = check_entry(catalog, &catalog->entries[catalog->count - 1]);
        }
    }
    if (status == CGAM_OK) status = name_banks(call, catalog);
    if (status == CGAM_OK) status = add_demo(catalog);
    if (status == CGAM_OK && root) status = open_root(catalog, root);
    return status;
}

void cgam_catalog_close(cgam_catalog *catalog)
{
    for (int i = 0; i < catalog->count; i++) {
        free(catalog->entries[i].id);
        free(catalog->entries[i].path);
    }
    free(catalog->entries);
    free(catalog->root);
    cgam_shelf_free(catalog->shelf);
    *catalog = (cgam_catalog){0};
}

/* ---- hiding paths ------------------------------------------------------------------- */

/* The first place of `what` in the text as a whole path, of *length bytes; NULL: none. Messages show only the end of a long path
 * (cgam_path_tail), so a long enough end of `what` counts, too. */
static const char *find_path(const char *text, const char *what, size_t *length)
{
    enum { LEFT = 64 };
    *length = strlen(what);
    do {
        for (const char *at = text; (at = strstr(at, what)); at += *length)
            if (!isalnum((unsigned char)at[*length]) && at[*length] != '_') return at;
        what++;
    } while (--*length >= LEFT);
    return NULL;
}

/* Replaces `what` everywhere by `by`; if NULL, by nothing before a slash and by "root" elsewhere. Takes and returns a text for free(). */
static char *replace_path(char *text, const char *what, const char *by)
{
    const char *at;
    size_t length;
    while (text && (at = find_path(text, what, &length))) {
        char *out = NULL;
        bool below = !by && at[length] == '/';
        if (asprintf(&out, "%.*s%s%s", (int)(at - text), text,
                     below ? ""
                     : by  ? by
                           : "root",
                     at + length + below) < 0)
            out = NULL;
        free(text);
        text = out;
    }
    return text;
}

bool cgam_catalog_hide_paths(const cgam_catalog *catalog, const char *text, char **hidden)
{
    size_t length;
    bool any = catalog->root && find_path(text, catalog->root, &length);
    for (int i = 0; i < catalog->count && !any; i++)
        any = catalog->entries[i].path[0] == '/' &&
              find_path(text, catalog->entries[i].path, &length);
    *hidden = NULL;
    if (!any) return true;
    char *out = strdup(text);
    for (int i = 0; i < catalog->count && out; i++)
        if (catalog->entries[i].path[0] == '/')
            out = replace_path(out, catalog->entries[i].path, catalog->entries[i].id);
    *hidden = out && catalog->root ? replace_path(out, catalog->root, NULL) : out;
    return *hidden;
}

bool cgam_catalog_hide_paths_in(const cgam_catalog *catalog, json_t *doc)
{
    const char *key;
    json_t *value;
    size_t i;
    bool fine = true;
    if (json_is_string(doc)) {
        char *hidden;
        fine = cgam_catalog_hide_paths(catalog, json_string_value(doc), &hidden) &&
               (!hidden || json_string_set(doc, hidden) == 0);
        free(hidden);
    }
    if (json_is_object(doc))
        json_object_foreach(doc, key, value) fine &= cgam_catalog_hide_paths_in(catalog, value);
    if (json_is_array(doc))
        json_array_foreach(doc, i, value) fine &= cgam_catalog_hide_paths_in(catalog, value);
    return fine;
}

static json_t *describe_entry(const cgam_catalog *catalog, const cgam_catalog_entry *t)
{
    json_t *one = json_object();
    cgam_bank *bank;
    cgam_json_put_text(one, "id", t->id);
    if (t->kind != CGAM_INPUT_BANK ||
        cgam_shelf_bank(catalog->shelf, t->path, false, false, &bank) != CGAM_OK)
        return one;
    cgam_bank_info info = cgam_bank_describe(bank);
    cgam_json_add(one, "n=%jd d=%jd dtype=%s names?=%d", info.n, info.d,
                  cgam_word(cgam_dtype_words, info.dtype),
                  cgam_shelf_names(catalog->shelf, t->path) != NULL);
    return one;
}

void cgam_catalog_describe(const cgam_catalog *catalog, json_t *doc)
{
    for (int k = 0; k < KINDS; k++) {
        json_t *list = json_array();
        for (int i = 0; i < catalog->count; i++)
            if (catalog->entries[i].kind == kinds[k].kind)
                json_array_append_new(list, describe_entry(catalog, &catalog->entries[i]));
        cgam_json_put(doc, kinds[k].plural, list);
    }
    cgam_json_put_bool(doc, "root", catalog->root != NULL);
}
