/* house.c: what requests may name. Ids stand for banks, stores and models; paths stay inside. */
#include "serve/server.h"

#include "io/folder.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    cgam_input kind;
    const char *option, *plural;
} kinds[] = {{CGAM_INPUT_BANK, "bank", "banks"},
             {CGAM_INPUT_STORE, "store", "stores"},
             {CGAM_INPUT_MODEL, "model", "models"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

bool cgam_house_is_id(const char *text)
{
    if (!*text || *text == '.' || *text == '-' || strlen(text) > 100) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("._-", *text)) return false;
    return true;
}

const cgam_tenant *cgam_house_find(const cgam_house *house, cgam_input kind, const char *id)
{
    for (int i = 0; i < house->count; i++)
        if (house->tenants[i].kind == kind && strcmp(house->tenants[i].id, id) == 0)
            return &house->tenants[i];
    return NULL;
}

/* Takes both texts over. */
static cgam_status add(cgam_house *house, cgam_input kind, char *id, char *path)
{
    cgam_env *env = house->env;
    cgam_status status = CGAM_OK;
    if (!id || !path) status = cgam_fail_nomem(env, "an id");
    else if (!cgam_house_is_id(id))
        status = cgam_fail(env, CGAM_E_ARG,
                           "%s: '%s' is no id; letters, digits and ._- are, as "
                           "ID=FILE",
                           cgam_input_name(kind), id);
    else if (cgam_house_find(house, kind, id))
        status = cgam_fail(env, CGAM_E_ARG, "%s: the id %s is given twice; ID=FILE gives another",
                           cgam_input_name(kind), id);
    if (status == CGAM_OK && house->count == house->room) {
        int room = house->room ? 2 * house->room : 8;
        cgam_tenant *more = realloc(house->tenants, (size_t)room * sizeof *more);
        if (more) house->tenants = more, house->room = room;
        else status = cgam_fail_nomem(env, "ids");
    }
    if (status == CGAM_OK) house->tenants[house->count++] = (cgam_tenant){kind, id, path};
    else {
        free(id);
        free(path);
    }
    return status;
}

/* The file a tenant lies in, absolute: where it is does not depend on where we are. A member stays
 * behind it. NULL without memory. */
static char *absolute(const char *path)
{
    char real[PATH_MAX], *out = NULL;
    const char *member = "";
    if (realpath(path, real)) member = path + strlen(path);
    else {
        const char *colon = strrchr(path, ':');
        char *file = colon ? strndup(path, (size_t)(colon - path)) : NULL;
        if (file && realpath(file, real)) member = colon;
        else snprintf(real, sizeof real, "%s", path); /* whoever opens it says why it cannot */
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
static char *split(const char *text, const char **path)
{
    const char *equals = strchr(text, '=');
    bool named = equals && !memchr(text, '/', (size_t)(equals - text));
    *path = named ? equals + 1 : text;
    return named ? strndup(text, (size_t)(equals - text)) : default_id(*path);
}

static cgam_status add_text(cgam_house *house, cgam_input kind, const char *text)
{
    const char *path;
    char *id = split(text, &path);
    if (*path) return add(house, kind, id, absolute(path));
    free(id);
    return cgam_fail(house->env, CGAM_E_ARG, "%s: ID=FILE has no FILE", cgam_input_name(kind));
}

/* ---- names of memories ------------------------------------------------------------------------- */

static cgam_status name_bank(cgam_house *house, const cgam_tenant *bank, const char *path)
{
    cgam_row_names *names;
    cgam_status status = cgam_row_names_load(house->env, path, &names);
    return status == CGAM_OK ? cgam_shelf_name(house->shelf, bank->path, names) : status;
}

/* [ID=]FILE of --names. */
static cgam_status name_text(cgam_house *house, const char *text)
{
    const char *path;
    char *id = split(text, &path);
    const cgam_tenant *bank = id ? cgam_house_find(house, CGAM_INPUT_BANK, id) : NULL;
    cgam_status status = CGAM_OK;
    if (!id) status = cgam_fail_nomem(house->env, "an id");
    else if (!bank) status = cgam_fail(house->env, CGAM_E_ARG, "names: there is no bank '%s'", id);
    free(id);
    return status == CGAM_OK ? name_bank(house, bank, path) : status;
}

/* Names that the call gives, and for banks that have none then, those that lie beside them. */
static cgam_status name_banks(cgam_call *call, cgam_house *house)
{
    const char *const *texts;
    char path[PATH_MAX];
    cgam_status status = CGAM_OK;
    int64_t count = cgam_args_words(call->args, "names", &texts);
    for (int64_t i = 0; i < count && status == CGAM_OK; i++) status = name_text(house, texts[i]);
    for (int i = 0; i < house->count && status == CGAM_OK; i++) {
        const cgam_tenant *t = &house->tenants[i];
        if (t->kind != CGAM_INPUT_BANK || cgam_shelf_names(house->shelf, t->path)) continue;
        status = cgam_names_beside(house->env, t->path, path, sizeof path);
        if (status == CGAM_OK && cgam_file_exists(path)) status = name_bank(house, t, path);
    }
    return status;
}

/* ---- opening ----------------------------------------------------------------------------------- */

/* A file that is there, for those that are opened only when they are asked for. */
static cgam_status look(cgam_house *house, const cgam_tenant *t)
{
    if (t->kind == CGAM_INPUT_BANK) return cgam_shelf_add(house->shelf, t->path, NULL);
    if (t->kind == CGAM_INPUT_STORE) return CGAM_OK; /* made by the first who writes into it */
    cgam_file file;
    cgam_status status = cgam_file_map(house->env, t->path, &file);
    if (status == CGAM_OK) cgam_file_unmap(&file);
    return status;
}

static cgam_status add_demo(cgam_house *house)
{
    if (cgam_house_find(house, CGAM_INPUT_BANK, "demo")) return CGAM_OK;
    cgam_bank *bank;
    cgam_row_names *names;
    cgam_status status = cgam_demo_bank(house->env, 1, &bank);
    if (status == CGAM_OK) status = cgam_shelf_add(house->shelf, CGAM_DEMO_PREFIX, bank);
    if (status == CGAM_OK) status = cgam_demo_names(house->env, &names);
    if (status == CGAM_OK) status = cgam_shelf_name(house->shelf, CGAM_DEMO_PREFIX, names);
    if (status == CGAM_OK)
        status = add(house, CGAM_INPUT_BANK, strdup("demo"), strdup(CGAM_DEMO_PREFIX));
    return status;
}

static cgam_status open_root(cgam_house *house, const char *root)
{
    cgam_status status = cgam_folder_make(house->env, root);
    if (status != CGAM_OK) return status;
    house->root = realpath(root, NULL);
    return house->root ? CGAM_OK : cgam_fail(house->env, CGAM_E_IO, "%s: no such folder", root);
}

cgam_status cgam_house_open(cgam_call *call, cgam_env *env, cgam_house *house)
{
    *house = (cgam_house){.env = env};
    const char *root = cgam_args_text(call->args, "root");
    house->room_bytes = (size_t)cgam_args_int(call->args, "plan-cache") << 20;
    cgam_status status = cgam_shelf_new(env, house->room_bytes, &house->shelf);
    for (int k = 0; k < KINDS && status == CGAM_OK; k++) {
        const char *const *texts;
        int64_t count = cgam_args_words(call->args, kinds[k].option, &texts);
        for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
            status = add_text(house, kinds[k].kind, texts[i]);
            if (status == CGAM_OK) status = look(house, &house->tenants[house->count - 1]);
        }
    }
    if (status == CGAM_OK) status = name_banks(call, house);
    if (status == CGAM_OK) status = add_demo(house);
    if (status == CGAM_OK && root) status = open_root(house, root);
    return status;
}

void cgam_house_close(cgam_house *house)
{
    for (int i = 0; i < house->count; i++) {
        free(house->tenants[i].id);
        free(house->tenants[i].path);
    }
    free(house->tenants);
    free(house->root);
    cgam_shelf_free(house->shelf);
    *house = (cgam_house){0};
}

/* ---- hiding where things lie ------------------------------------------------------------------- */

/* Where `what` first stands in the text as a whole path, of *length bytes; NULL: nowhere. Of a long path messages show the end alone
 * (cgam_path_tail), so what is left of `what` in front of a name counts, too. */
static const char *stands(const char *text, const char *what, size_t *length)
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

/* Replaces it everywhere, and with a slash behind it by nothing where by is NULL; takes and gives a text for free(). */
static char *replace(char *text, const char *what, const char *by)
{
    const char *at;
    size_t length;
    while (text && (at = stands(text, what, &length))) {
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

bool cgam_house_veil(const cgam_house *house, const char *text, char **veiled)
{
    size_t length;
    bool any = house->root && stands(text, house->root, &length);
    for (int i = 0; i < house->count && !any; i++)
        any = house->tenants[i].path[0] == '/' && stands(text, house->tenants[i].path, &length);
    *veiled = NULL;
    if (!any) return true;
    char *out = strdup(text);
    for (int i = 0; i < house->count && out; i++)
        if (house->tenants[i].path[0] == '/')
            out = replace(out, house->tenants[i].path, house->tenants[i].id);
    *veiled = out && house->root ? replace(out, house->root, NULL) : out;
    return *veiled;
}

bool cgam_house_veil_json(const cgam_house *house, json_t *doc)
{
    const char *key;
    json_t *value;
    size_t i;
    bool fine = true;
    if (json_is_string(doc)) {
        char *veiled;
        fine = cgam_house_veil(house, json_string_value(doc), &veiled) &&
               (!veiled || json_string_set(doc, veiled) == 0);
        free(veiled);
    }
    if (json_is_object(doc))
        json_object_foreach(doc, key, value) fine &= cgam_house_veil_json(house, value);
    if (json_is_array(doc))
        json_array_foreach(doc, i, value) fine &= cgam_house_veil_json(house, value);
    return fine;
}

static json_t *describe(const cgam_house *house, const cgam_tenant *t)
{
    json_t *one = json_object();
    cgam_bank *bank;
    cgam_json_put_text(one, "id", t->id);
    if (t->kind != CGAM_INPUT_BANK ||
        cgam_shelf_bank(house->shelf, t->path, false, false, &bank) != CGAM_OK)
        return one;
    cgam_bank_info info = cgam_bank_describe(bank);
    cgam_json_put_int(one, "n", info.n);
    cgam_json_put_int(one, "d", info.d);
    cgam_json_put_text(one, "dtype", cgam_dtype_name(info.dtype));
    cgam_json_put_bool(one, "names", cgam_shelf_names(house->shelf, t->path) != NULL);
    return one;
}

void cgam_house_describe(const cgam_house *house, json_t *doc)
{
    for (int k = 0; k < KINDS; k++) {
        json_t *list = json_array();
        for (int i = 0; i < house->count; i++)
            if (house->tenants[i].kind == kinds[k].kind)
                json_array_append_new(list, describe(house, &house->tenants[i]));
        cgam_json_put(doc, kinds[k].plural, list);
    }
    cgam_json_put_bool(doc, "root", house->root != NULL);
}
