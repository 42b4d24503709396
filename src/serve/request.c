/* request.c: from the JSON object of a request to the options of its verb. By the table of parameters:
 *
 *   a bank, store or model   its id becomes the path it stands for; a bank may be numbers too
 *   numbers                  nested lists, {"npy": base64}
 *   rows                     likewise, or names as a text
 *   vectors                  likewise, or a sum of memories, "rows:7*0.5+king"
 *   text, json               {"text": ".."}, the object itself
 *   what is written          out is a name below the root; all else is refused
 *   any other file           refused
 *
 * What a request holds in place of a file is lent to the verb as one, under the parameter's name. Where
 * a value has more than the file in it, as vector's FILE:X, {"as": "{}:4", ..} says where it stands. */
#include "serve/server.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_ROOM = 64, AS_MAX = 64 };

/* ---- what is lent ------------------------------------------------------------------------------ */

/* Memory that lives as long as the wish; NULL: none. */
static void *room_for(cgam_wish *w, size_t bytes)
{
    if (w->count == w->room) {
        int room = w->room ? 2 * w->room : 8;
        cgam_lent *files = realloc(w->files, (size_t)room * sizeof *files);
        if (files) w->files = files;
        void **blocks = files ? realloc(w->blocks, 2 * (size_t)room * sizeof *blocks) : NULL;
        if (!blocks) return NULL;
        w->blocks = blocks;
        w->room = room;
    }
    void *block = cgam_alloc(w->env, bytes, 1);
    if (block) w->blocks[w->blocks_count++] = block;
    return block;
}

/* Lends bytes, which live as long as the wish, under a name of the parameter's; gives that name. */
static const char *lend(cgam_wish *w, const cgam_param *p, const void *bytes, size_t size)
{
    char *name = room_for(w, NAME_ROOM);
    if (!name) return NULL;
    if (p->many) snprintf(name, NAME_ROOM, "%s-%d", p->name, w->count);
    else snprintf(name, NAME_ROOM, "%s", p->name);
    w->files[w->count++] = (cgam_lent){name, bytes, size};
    return name;
}

void cgam_wish_close(cgam_wish *w)
{
    for (int i = 0; i < w->blocks_count; i++) cgam_free(w->env, w->blocks[i]);
    free(w->blocks);
    free(w->files);
    json_decref(w->options);
    *w = (cgam_wish){0};
}

static cgam_status refuse(cgam_wish *w, const cgam_param *p, const char *why)
{
    w->forbidden = true;
    return cgam_fail(w->env, CGAM_E_ARG, "%s: %s", p->name, why);
}

/* ---- numbers ----------------------------------------------------------------------------------- */

typedef struct nest {
    int ndim;
    int64_t shape[CGAM_ARRAY_DIMS];
    int64_t size, filled;
    bool truths, whole; /* all are true or false; all are integers */
} nest;

/* Learns the shape along the first items, and then whether all others have it. */
static bool measure(nest *n, const json_t *value, int depth)
{
    if (!json_is_array(value)) {
        n->truths &= json_is_boolean(value);
        n->whole &= json_is_integer(value);
        n->filled++;
        return depth == n->ndim && (json_is_number(value) || json_is_boolean(value));
    }
    size_t count = json_array_size(value);
    if (depth >= n->ndim || (int64_t)count != n->shape[depth]) return false;
    for (size_t i = 0; i < count; i++)
        if (!measure(n, json_array_get(value, i), depth + 1)) return false;
    return true;
}

static void fill(const nest *n, const json_t *value, char **at)
{
    size_t count = json_array_size(value);
    if (json_is_array(value)) {
        for (size_t i = 0; i < count; i++) fill(n, json_array_get(value, i), at);
    } else if (n->truths) {
        *(*at)++ = json_is_true(value) != 0;
    } else if (n->whole) {
        memcpy(*at, &(int64_t){json_integer_value(value)}, 8);
        *at += 8;
    } else {
        memcpy(*at, &(double){json_number_value(value)}, 8);
        *at += 8;
    }
}

enum { HEAD = 1024, SHAPE_ROOM = 32 * CGAM_ARRAY_DIMS, DICT_ROOM = SHAPE_ROOM + 80 };
_Static_assert(DICT_ROOM + 11 + 63 <= HEAD, "room for a head");

/* The head of an .npy file into [HEAD], padded to a multiple of 64; its length. */
static size_t head(const nest *n, char *to)
{
    char shape[SHAPE_ROOM] = "", dict[DICT_ROOM];
    size_t used = 0;
    for (int i = 0; i < n->ndim; i++)
        used +=
            (size_t)snprintf(shape + used, sizeof shape - used, "%lld,", (long long)n->shape[i]);
    int length =
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 n->truths  ? "|b1"
                 : n->whole ? "<i8"
                            : "<f8",
                 shape);
    size_t whole = ((size_t)length + 11 + 63) / 64 * 64, inside = whole - 10;
    memset(to, ' ', whole);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (char)(inside & 0xff);
    to[9] = (char)(inside >> 8);
    memcpy(to + 10, dict, (size_t)length);
    to[whole - 1] = '\n';
    return whole;
}

/* Nested lists as an .npy file in memory. */
static cgam_status from_lists(cgam_wish *w, const cgam_param *p, const json_t *value,
                              const char **name)
{
    nest n = {.truths = true, .whole = true};
    const json_t *down = value;
    for (; json_is_array(down) && n.ndim < CGAM_ARRAY_DIMS; down = json_array_get(down, 0))
        n.shape[n.ndim++] = (int64_t)json_array_size(down);
    if (!measure(&n, value, 0))
        return cgam_fail(w->env, CGAM_E_SHAPE,
                         "%s: numbers in lists of equal lengths are expected, at most %d deep",
                         p->name, CGAM_ARRAY_DIMS);
    if (n.filled == 0) n.truths = n.whole = false;
    char *bytes = room_for(w, HEAD + (size_t)n.filled * 8);
    if (!bytes) return cgam_fail_nomem(w->env, p->name);
    char *at = bytes + head(&n, bytes);
    fill(&n, value, &at);
    *name = lend(w, p, bytes, (size_t)(at - bytes));
    return *name ? CGAM_OK : cgam_fail_nomem(w->env, p->name);
}

static cgam_status from_base64(cgam_wish *w, const cgam_param *p, const json_t *value,
                               const char **name)
{
    size_t length = json_string_length(value), size = 0;
    const char *text = json_string_value(value), *end = NULL;
    if (!text) return cgam_fail(w->env, CGAM_E_ARG, "%s: npy is a text in base64", p->name);
    uint8_t *bytes = room_for(w, length / 4 * 3 + 4);
    if (!bytes) return cgam_fail_nomem(w->env, p->name);
    if (sodium_base642bin(bytes, length / 4 * 3 + 4, text, length, "\r\n", &size, &end,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        end != text + length)
        return cgam_fail(w->env, CGAM_E_FORMAT, "%s: npy is not base64 at letter %zu", p->name,
                         end ? (size_t)(end - text) : (size_t)0);
    *name = lend(w, p, bytes, size);
    return *name ? CGAM_OK : cgam_fail_nomem(w->env, p->name);
}

/* ---- one value --------------------------------------------------------------------------------- */

/* A text of the wish's own. */
static cgam_status from_text(cgam_wish *w, const cgam_param *p, const char *text, size_t length,
                             const char **name)
{
    char *bytes = room_for(w, length + 1);
    if (!bytes) return cgam_fail_nomem(w->env, p->name);
    memcpy(bytes, text, length);
    *name = lend(w, p, bytes, length);
    return *name ? CGAM_OK : cgam_fail_nomem(w->env, p->name);
}

static cgam_status from_json(cgam_wish *w, const cgam_param *p, const json_t *value,
                             const char **name)
{
    char *text = cgam_json_line(value);
    if (!text) return cgam_fail_nomem(w->env, p->name);
    cgam_status status = from_text(w, p, text, strlen(text), name);
    free(text);
    w->alone = true; /* a document of a stranger names no files of ours */
    return status;
}

/* Puts the name of what is lent in the place that `as` has for it. Nothing else of it can be a path: it
 * has the parts before the file that the parameter has, and no letters that a path needs. */
static cgam_status put_as(cgam_wish *w, const cgam_param *p, const char *as, const char *name,
                          json_t **out)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:+-._";
    const char *hole = strstr(as, "{}"), *file = strstr(p->value, "FILE");
    int parts = 0;
    for (const char *c = p->value; c < file; c++) parts += *c == ':';
    for (const char *c = as; hole && c < hole; c++) parts -= *c == ':';
    if (!hole || !file || parts != 0 || strlen(as) > AS_MAX ||
        strspn(as, letters) != (size_t)(hole - as) || hole[2 + strspn(hole + 2, letters)] ||
        (hole > as && hole[-1] != ':') || (hole[2] && hole[2] != ':'))
        return cgam_fail(w->env, CGAM_E_ARG, "%s: as is %s with {} in place of FILE", p->name,
                         p->value);
    *out = json_sprintf("%.*s%s%s", (int)(hole - as), as, name, hole + 2);
    return *out ? CGAM_OK : cgam_fail_nomem(w->env, p->name);
}

/* A prefix, and after it nothing that a path could be made of. */
static bool follows(const char *text, const char *prefix, const char *letters)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 && !text[length + strspn(text + length, letters)];
}

/* May the text stand for itself: an index, memories, or a word that is taken instead of a file? */
static bool literal(const cgam_param *p, const char *text)
{
    int64_t index;
    if (p->input == CGAM_INPUT_VECTORS &&
        strncmp(text, CGAM_ROWS_PREFIX, strlen(CGAM_ROWS_PREFIX)) == 0)
        return true; /* never a path: names may have any letters */
    if (p->input == CGAM_INPUT_BANK && follows(text, CGAM_DEMO_PREFIX, "0123456789")) return true;
    for (const char *word = p->value; *word; word += strcspn(word, "|"), word += *word == '|') {
        size_t length = strcspn(word, "|");
        if (strncmp(word, "INDEX", length) == 0 && cgam_text_is_int(text, &index)) return true;
        if (strspn(word, "abcdefghijklmnopqrstuvwxyz-") == length && strlen(text) == length &&
            strncmp(word, text, length) == 0)
            return true;
    }
    return false;
}

static cgam_status by_id(cgam_wish *w, const cgam_param *p, const char *id, json_t **out)
{
    const cgam_tenant *t = cgam_house_find(w->house, p->input, id);
    w->absent = !t;
    if (!t)
        return cgam_fail(w->env, CGAM_E_NOT_FOUND,
                         "%s: there is no '%.100s' here; GET /api lists what "
                         "there is",
                         p->name, id);
    *out = json_string(t->path);
    return *out ? CGAM_OK : cgam_fail_nomem(w->env, p->name);
}

/* A value given in place of a file. */
static cgam_status take_file(cgam_wish *w, const cgam_param *p, json_t *value, json_t **out)
{
    const char *name = NULL, *text = json_string_value(value);
    bool named =
        p->input == CGAM_INPUT_BANK || p->input == CGAM_INPUT_STORE || p->input == CGAM_INPUT_MODEL;
    bool numbers = p->input == CGAM_INPUT_NUMBERS || p->input == CGAM_INPUT_ROWS ||
                   p->input == CGAM_INPUT_VECTORS || p->input == CGAM_INPUT_BANK;
    bool texts = p->input == CGAM_INPUT_TEXT || p->input == CGAM_INPUT_ROWS;
    const json_t *as = json_object_get(value, "as"), *npy = json_object_get(value, "npy");
    const json_t *list = json_object_get(value, "values");
    const json_t *lines = json_object_get(value, "text");
    cgam_status status = CGAM_OK;
    if (named && text && !literal(p, text)) return by_id(w, p, text, out);
    if ((text && literal(p, text)) || (json_is_integer(value) && strstr(p->value, "INDEX")) ||
        (json_is_true(value) && p->bare && !p->writes)) {
        *out = json_incref(value);
        return CGAM_OK;
    }
    if (text || p->input == CGAM_INPUT_NONE)
        return refuse(w, p,
                      numbers ? "a path cannot be given here, the numbers can"
                              : "a path cannot be given here");
    if (p->input == CGAM_INPUT_JSON) status = from_json(w, p, value, &name);
    else if (texts && json_is_string(lines))
        status = from_text(w, p, json_string_value(lines), json_string_length(lines), &name);
    else if (numbers && npy) status = from_base64(w, p, npy, &name);
    else if (numbers && (list || json_is_array(value)))
        status = from_lists(w, p, list ? list : value, &name);
    else
        status = cgam_fail(w->env, CGAM_E_ARG, "%s: %s expected", p->name,
                           numbers ? "lists of numbers or {\"npy\": base64} are"
                           : named ? "an id is"
                                   : "{\"text\": ..} is");
    if (status != CGAM_OK) return status;
    if (json_is_string(as)) return put_as(w, p, json_string_value(as), name, out);
    *out = json_string(name);
    return *out ? CGAM_OK : cgam_fail_nomem(w->env, p->name);
}

/* Where a verb may write: below the root. `id` NULL: not given. */
static cgam_status take_out(cgam_wish *w, const cgam_param *p, const char *id, json_t **out)
{
    if (strcmp(p->name, "out") != 0) return refuse(w, p, "files are not written for requests");
    if (!w->house->root)
        return refuse(w, p, "nothing is written for requests: the server has no --root");
    if (!id || !cgam_house_is_id(id))
        return refuse(w, p, "a name below the root is expected: letters, digits and ._-");
    w->writes = true;
    *out = json_sprintf("%s/%s", w->house->root, id);
    if (!*out) return cgam_fail_nomem(w->env, p->name);
    struct stat st;
    bool link = lstat(json_string_value(*out), &st) == 0 && S_ISLNK(st.st_mode);
    return link ? refuse(w, p, "a link is no place below the root") : CGAM_OK;
}

static bool names_file(const cgam_param *p)
{
    return p->input || p->writes ||
           (p->value && (strstr(p->value, "FILE") || strstr(p->value, "DIR")));
}

static cgam_status take(cgam_wish *w, const cgam_param *p, json_t *value)
{
    json_t *out = NULL;
    cgam_status status = CGAM_OK;
    if (json_is_null(value) || json_is_false(value) || !names_file(p)) out = json_incref(value);
    else if (p->writes && p->input != CGAM_INPUT_STORE)
        status = take_out(w, p, json_string_value(value), &out);
    else if (p->many && json_is_array(value)) {
        out = json_array();
        for (size_t i = 0; i < json_array_size(value) && status == CGAM_OK; i++) {
            json_t *one = NULL;
            status = take_file(w, p, json_array_get(value, i), &one);
            if (one) json_array_append_new(out, one);
        }
    } else status = take_file(w, p, value, &out);
    if (status == CGAM_OK && json_object_set(w->options, p->name, out) != 0)
        status = cgam_fail_nomem(w->env, "options");
    json_decref(out);
    return status;
}

/* What the table gives where a request is silent, and a request may not have: a folder of the working
 * directory, in place of which nothing is written, and the model of the machine's user where the server was given another. */
static cgam_status take_defaults(cgam_wish *w, const cgam_verb *verb)
{
    const cgam_param *p;
    cgam_status status = CGAM_OK;
    for (int i = 0; (p = cgam_verb_param(verb, i)) && status == CGAM_OK; i++) {
        json_t *out = NULL;
        const json_t *given = json_object_get(w->options, p->name);
        if (given && !json_is_null(given)) continue;
        if (p->writes && p->fallback) out = json_false();
        for (int k = 0; p->input == CGAM_INPUT_MODEL && !out && k < w->house->count; k++)
            if (w->house->tenants[k].kind == p->input) out = json_string(w->house->tenants[k].path);
        if (out && json_object_set_new(w->options, p->name, out) != 0)
            status = cgam_fail_nomem(w->env, "options");
    }
    return status;
}

cgam_status cgam_wish_read(cgam_wish *w, const cgam_house *house, const cgam_verb *verb,
                           const char *body, size_t size)
{
    json_t *object = NULL;
    *w = (cgam_wish){.house = house, .env = house->env, .options = json_object()};
    cgam_status status = CGAM_OK;
    if (verb->local) {
        w->forbidden = true;
        return cgam_fail(w->env, CGAM_E_ARG, "%s is for the user of this machine", verb->name);
    }
    if (size > 0) status = cgam_json_parse(w->env, "request", body, size, &object);
    if (status == CGAM_OK && object && !json_is_object(object))
        status = cgam_fail(w->env, CGAM_E_ARG, "options are expected as one JSON object");
    if (status == CGAM_OK && !w->options) status = cgam_fail_nomem(w->env, "options");
    void *it = status == CGAM_OK ? json_object_iter(object) : NULL;
    for (; it && status == CGAM_OK; it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        json_t *value = json_object_iter_value(it);
        const cgam_param *p = cgam_verb_param_named(verb, key, strlen(key));
        if (p) status = take(w, p, value);
        else if (json_object_set(w->options, key, value) != 0) /* whoever reads it complains */
            status = cgam_fail_nomem(w->env, "options");
    }
    if (status == CGAM_OK) status = take_defaults(w, verb);
    json_decref(object);
    return status;
}
