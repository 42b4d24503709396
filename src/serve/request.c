/* request.c: turns the JSON object of a request into the options of its verb, by the table of parameters:
 *
 *   a bank, store, model, cache   its id becomes the path it stands for; a bank may also be numbers
 *   numbers                  nested lists, {"npy": base64}
 *   rows                     the same, or names as a text
 *   vectors                  the same, or a sum of memories, "rows:7*0.5+king"
 *   text, json               {"text": ".."}, the object itself
 *   key                      numbers, or a text that is never a path
 *   files to write           out is a name below the root; anything else is rejected
 *   any other file           rejected
 *
 * The contents that a request sends in place of a file become a file in memory (io/file.h), named after the
 * parameter. If a value has more parts than the file, such as FILE:X of vector, {"as": "{}:4", ..} gives the others. */
#include "serve/server.h"

#include "io/npy.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_SIZE = 64, AS_MAX = 64 };

/* ---- files in memory ------------------------------------------------------------------------------ */

/* Memory that lives as long as the request; NULL: none. */
static void *alloc_block(cgam_request *r, size_t bytes)
{
    if (r->count == r->capacity) {
        int capacity = r->capacity ? 2 * r->capacity : 8;
        cgam_memory_file *files = realloc(r->files, (size_t)capacity * sizeof *files);
        if (files) r->files = files;
        void **blocks = files ? realloc(r->blocks, 2 * (size_t)capacity * sizeof *blocks) : NULL;
        if (!blocks) return NULL;
        r->blocks = blocks;
        r->capacity = capacity;
    }
    void *block = cgam_alloc(r->env, bytes, 1);
    if (block) r->blocks[r->blocks_count++] = block;
    return block;
}

/* Lends bytes, which live as long as the request, under a name of the parameter's; gives that name. */
static const char *add_file(cgam_request *r, const cgam_param *p, const void *bytes, size_t size)
{
    char *name = alloc_block(r, NAME_SIZE);
    if (!name) return NULL;
    if (p->many) snprintf(name, NAME_SIZE, "%s-%d", p->name, r->count);
    else snprintf(name, NAME_SIZE, "%s", p->name);
    r->files[r->count++] = (cgam_memory_file){name, bytes, size};
    return name;
}

void cgam_request_close(cgam_request *r)
{
    for (int i = 0; i < r->blocks_count; i++) cgam_free(r->env, r->blocks[i]);
    free(r->blocks);
    free(r->files);
    json_decref(r->options);
    *r = (cgam_request){0};
}

static cgam_status forbid(cgam_request *r, const cgam_param *p, const char *why)
{
    r->forbidden = true;
    return cgam_fail(r->env, CGAM_E_ARG, "%s: %s", p->name, why);
}

/* ---- numbers ----------------------------------------------------------------------------------- */

/* Nested lists on their way to an array. */
typedef struct nest {
    cgam_layout layout;
    int64_t filled;
    bool truths, whole; /* all are true or false; all are integers */
} nest;

/* Checks that all lists have the shape of the first ones. */
static bool check_nest(nest *n, const json_t *value, int depth)
{
    if (!json_is_array(value)) {
        n->truths &= json_is_boolean(value);
        n->whole &= json_is_integer(value);
        n->filled++;
        return depth == n->layout.ndim && (json_is_number(value) || json_is_boolean(value));
    }
    size_t count = json_array_size(value);
    if (depth >= n->layout.ndim || (int64_t)count != n->layout.shape[depth]) return false;
    for (size_t i = 0; i < count; i++)
        if (!check_nest(n, json_array_get(value, i), depth + 1)) return false;
    return true;
}

static void write_numbers(const nest *n, const json_t *value, char **at)
{
    size_t count = json_array_size(value);
    if (json_is_array(value)) {
        for (size_t i = 0; i < count; i++) write_numbers(n, json_array_get(value, i), at);
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

/* Nested lists as an .npy file in memory. */
static cgam_status file_from_lists(cgam_request *r, const cgam_param *p, const json_t *value,
                                   const char **name)
{
    nest n = {.truths = true, .whole = true};
    const json_t *down = value;
    for (; json_is_array(down) && n.layout.ndim < CGAM_ARRAY_DIMS; down = json_array_get(down, 0))
        n.layout.shape[n.layout.ndim++] = (int64_t)json_array_size(down);
    if (!check_nest(&n, value, 0))
        return cgam_fail(r->env, CGAM_E_SHAPE,
                         "%s: expected lists of numbers, of equal lengths and at most %d deep",
                         p->name, CGAM_ARRAY_DIMS);
    if (n.filled == 0) n.truths = n.whole = false;
    n.layout.dtype = n.truths ? CGAM_F32 : n.whole ? CGAM_I64 : CGAM_F64;
    if (n.truths) n.layout.whole = 'b';
    size_t length;
    char *bytes = alloc_block(r, CGAM_NPY_HEADER_OURS + (size_t)n.filled * 8);
    if (!bytes) return cgam_fail_nomem(r->env, p->name);
    cgam_status status = cgam_npy_header(r->env, p->name, &n.layout, bytes, &length);
    if (status != CGAM_OK) return status;
    char *at = bytes + length;
    write_numbers(&n, value, &at);
    *name = add_file(r, p, bytes, (size_t)(at - bytes));
    return *name ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
}

static cgam_status file_from_base64(cgam_request *r, const cgam_param *p, const json_t *value,
                                    const char **name)
{
    size_t length = json_string_length(value), size = 0;
    const char *text = json_string_value(value), *end = NULL;
    if (!text) return cgam_fail(r->env, CGAM_E_ARG, "%s: npy must be a base64 string", p->name);
    uint8_t *bytes = alloc_block(r, length / 4 * 3 + 4);
    if (!bytes) return cgam_fail_nomem(r->env, p->name);
    if (sodium_base642bin(bytes, length / 4 * 3 + 4, text, length, "\r\n", &size, &end,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        end != text + length)
        return cgam_fail(r->env, CGAM_E_FORMAT, "%s: npy: invalid base64 at character %zu", p->name,
                         end ? (size_t)(end - text) : (size_t)0);
    *name = add_file(r, p, bytes, size);
    return *name ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
}

/* ---- one value --------------------------------------------------------------------------------- */

/* A text of the request's own. */
static cgam_status file_from_text(cgam_request *r, const cgam_param *p, const char *text,
                                  size_t length, const char **name)
{
    char *bytes = alloc_block(r, length + 1);
    if (!bytes) return cgam_fail_nomem(r->env, p->name);
    memcpy(bytes, text, length);
    *name = add_file(r, p, bytes, length);
    return *name ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
}

static cgam_status file_from_json(cgam_request *r, const cgam_param *p, const json_t *value,
                                  const char **name)
{
    char *text = cgam_json_line(value);
    if (!text) return cgam_fail_nomem(r->env, p->name);
    cgam_status status = file_from_text(r, p, text, strlen(text), name);
    free(text);
    r->exclusive = true; /* a document from outside must name no file of ours */
    return status;
}

/* Replaces {} in `as` by the name of the file in memory. The rest of `as` cannot be a path: it has the parts
 * before the file that the parameter has, and no letters that a path needs. */
static cgam_status insert_file_name(cgam_request *r, const cgam_param *p, const char *as,
                                    const char *name, json_t **out)
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
        return cgam_fail(r->env, CGAM_E_ARG, "%s: as must be %s with {} in place of FILE", p->name,
                         p->value);
    *out = json_sprintf("%.*s%s%s", (int)(hole - as), as, name, hole + 2);
    return *out ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
}

/* Is the text the prefix, followed by these letters only? */
static bool is_prefix_and(const char *text, const char *prefix, const char *letters)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 && !text[length + strspn(text + length, letters)];
}

/* Is the text valid in place of a file: an index, memories, or a word of the parameter? */
static bool is_literal(const cgam_param *p, const char *text)
{
    int64_t index;
    if (p->input == CGAM_INPUT_VECTORS &&
        strncmp(text, CGAM_ROWS_PREFIX, strlen(CGAM_ROWS_PREFIX)) == 0)
        return true; /* never a path, whatever letters names have */
    if (p->input == CGAM_INPUT_BANK && is_prefix_and(text, CGAM_DEMO_PREFIX, "0123456789"))
        return true;
    for (const char *word = p->value; *word; word += strcspn(word, "|"), word += *word == '|') {
        size_t length = strcspn(word, "|");
        if (strncmp(word, "INDEX", length) == 0 && cgam_text_is_int(text, &index)) return true;
        if (strspn(word, "abcdefghijklmnopqrstuvwxyz-") == length && strlen(text) == length &&
            strncmp(word, text, length) == 0)
            return true;
    }
    return false;
}

static cgam_status resolve_id(cgam_request *r, const cgam_param *p, const char *id, json_t **out)
{
    const cgam_catalog_entry *t = cgam_catalog_find(r->catalog, p->input, id);
    r->absent = !t;
    if (!t)
        return cgam_fail(r->env, CGAM_E_NOT_FOUND, "%s: no '%.100s'; GET /api lists the ids",
                         p->name, id);
    *out = json_string(t->path);
    return *out ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
}

/* Reads a value given in place of a file. */
static cgam_status read_file_value(cgam_request *r, const cgam_param *p, json_t *value,
                                   json_t **out)
{
    const char *name = NULL, *text = json_string_value(value);
    bool named = p->input == CGAM_INPUT_BANK || p->input == CGAM_INPUT_STORE ||
                 p->input == CGAM_INPUT_MODEL || p->input == CGAM_INPUT_CACHE;
    bool numbers = p->input == CGAM_INPUT_NUMBERS || p->input == CGAM_INPUT_ROWS ||
                   p->input == CGAM_INPUT_VECTORS || p->input == CGAM_INPUT_BANK ||
                   p->input == CGAM_INPUT_KEY;
    bool texts = p->input == CGAM_INPUT_TEXT || p->input == CGAM_INPUT_ROWS;
    const json_t *as = json_object_get(value, "as"), *npy = json_object_get(value, "npy");
    const json_t *list = json_object_get(value, "values");
    const json_t *lines = json_object_get(value, "text");
    cgam_status status = CGAM_OK;
    if (named && text && !is_literal(p, text)) return resolve_id(r, p, text, out);
    if (p->input == CGAM_INPUT_KEY && text) { /* a text from outside is never a path */
        *out = json_sprintf(CGAM_KEY_TEXT "%s", text);
        return *out ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
    }
    if ((text && is_literal(p, text)) || (json_is_integer(value) && strstr(p->value, "INDEX")) ||
        (json_is_true(value) && p->bare && !p->writes)) {
        *out = json_incref(value);
        return CGAM_OK;
    }
    if (text || p->input == CGAM_INPUT_NONE)
        return forbid(r, p,
                      p->input == CGAM_INPUT_ROWS
                          ? "send row numbers, or names as {\"text\": \"river\\nmoney\"}"
                      : numbers ? "send the numbers, not a path"
                                : "a path is not accepted");
    if (p->input == CGAM_INPUT_JSON) status = file_from_json(r, p, value, &name);
    else if (texts && json_is_string(lines))
        status = file_from_text(r, p, json_string_value(lines), json_string_length(lines), &name);
    else if (numbers && npy) status = file_from_base64(r, p, npy, &name);
    else if (numbers && (list || json_is_array(value)))
        status = file_from_lists(r, p, list ? list : value, &name);
    else
        status = cgam_fail(r->env, CGAM_E_ARG, "%s: expected %s", p->name,
                           numbers ? "lists of numbers or {\"npy\": base64}"
                           : named ? "an id"
                                   : "{\"text\": ..}");
    if (status != CGAM_OK) return status;
    if (json_is_string(as)) return insert_file_name(r, p, json_string_value(as), name, out);
    *out = json_sprintf("%s%s", p->input == CGAM_INPUT_KEY ? CGAM_KEY_FILE : "", name);
    return *out ? CGAM_OK : cgam_fail_nomem(r->env, p->name);
}

/* A name to write below the root. `id` NULL: not given. */
static cgam_status read_output_name(cgam_request *r, const cgam_param *p, const char *id,
                                    json_t **out)
{
    if (strcmp(p->name, "out") != 0) return forbid(r, p, "requests cannot write files");
    if (!r->catalog->root) return forbid(r, p, "requests cannot write: the server has no --root");
    if (!id || !cgam_catalog_is_id(id))
        return forbid(r, p, "must be a name below the root, of letters, digits and ._-");
    r->writes = true;
    *out = json_sprintf("%s/%s", r->catalog->root, id);
    if (!*out) return cgam_fail_nomem(r->env, p->name);
    struct stat st;
    bool link = lstat(json_string_value(*out), &st) == 0 && S_ISLNK(st.st_mode);
    return link ? forbid(r, p, "a symbolic link is not accepted") : CGAM_OK;
}

static bool names_file(const cgam_param *p)
{
    return p->input || p->writes ||
           (p->value && (strstr(p->value, "FILE") || strstr(p->value, "DIR")));
}

static cgam_status read_option(cgam_request *r, const cgam_param *p, json_t *value)
{
    json_t *out = NULL;
    cgam_status status = CGAM_OK;
    if (json_is_null(value) || json_is_false(value) || !names_file(p)) out = json_incref(value);
    else if (p->writes && p->input != CGAM_INPUT_STORE && p->input != CGAM_INPUT_CACHE)
        status = read_output_name(r, p, json_string_value(value), &out);
    else if (p->many && json_is_array(value)) {
        out = json_array();
        for (size_t i = 0; i < json_array_size(value) && status == CGAM_OK; i++) {
            json_t *one = NULL;
            status = read_file_value(r, p, json_array_get(value, i), &one);
            if (one) json_array_append_new(out, one);
        }
    } else status = read_file_value(r, p, value, &out);
    if (status == CGAM_OK && json_object_set(r->options, p->name, out) != 0)
        status = cgam_fail_nomem(r->env, "options");
    json_decref(out);
    return status;
}

/* Replaces defaults of the table that a request must not use: instead of into the working directory nothing is written,
 * and the server's model takes the place of the user's default model. */
static cgam_status set_defaults(cgam_request *r, const cgam_verb *verb)
{
    const cgam_param *p;
    cgam_status status = CGAM_OK;
    for (int i = 0; (p = cgam_verb_param(verb, i)) && status == CGAM_OK; i++) {
        json_t *out = NULL;
        const json_t *given = json_object_get(r->options, p->name);
        if (given && !json_is_null(given)) continue;
        if (p->writes && p->fallback) out = json_false();
        for (int k = 0; p->input == CGAM_INPUT_MODEL && !out && k < r->catalog->count; k++)
            if (r->catalog->entries[k].kind == p->input)
                out = json_string(r->catalog->entries[k].path);
        if (out && json_object_set_new(r->options, p->name, out) != 0)
            status = cgam_fail_nomem(r->env, "options");
    }
    return status;
}

cgam_status cgam_request_read(cgam_request *r, const cgam_catalog *catalog, const cgam_verb *verb,
                              const char *body, size_t size)
{
    json_t *object = NULL;
    *r = (cgam_request){.catalog = catalog, .env = catalog->env, .options = json_object()};
    cgam_status status = CGAM_OK;
    if (verb->local) {
        r->forbidden = true;
        return cgam_fail(r->env, CGAM_E_ARG, "%s is not available over HTTP", verb->name);
    }
    if (size > 0) status = cgam_json_parse(r->env, "request", body, size, &object);
    if (status == CGAM_OK && object && !json_is_object(object))
        status = cgam_fail(r->env, CGAM_E_ARG, "expected the options as one JSON object");
    if (status == CGAM_OK && !r->options) status = cgam_fail_nomem(r->env, "options");
    void *it = status == CGAM_OK ? json_object_iter(object) : NULL;
    for (; it && status == CGAM_OK; it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        json_t *value = json_object_iter_value(it);
        const cgam_param *p = cgam_verb_param_named(verb, key, strlen(key));
        if (p) status = read_option(r, p, value);
        else if (json_object_set(r->options, key, value) != 0) /* cgam_args_json rejects it */
            status = cgam_fail_nomem(r->env, "options");
    }
    if (status == CGAM_OK) status = set_defaults(r, verb);
    json_decref(object);
    return status;
}
