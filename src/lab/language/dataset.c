/* dataset.c: examples and labels, independent of the format of their file. */
#include "lab/language/dataset.h"
#include "base/alloc.h"
#include "io/file.h"
#include "lab/document.h"
#include "lab/embedded.h"

#include <stdio.h>
#include <string.h>

void cgam_dataset_close(cgam_dataset *set)
{
    if (!set) return;
    cgam_env *env = set->env;
    for (int64_t i = 0; i < set->labels; i++) {
        cgam_free_all(env, set->label[i].key, set->label[i].word);
    }
    for (int64_t i = 0; i < set->examples; i++) cgam_free(env, set->example[i].text);
    cgam_free_all(env, set->label, set->example, set->template, set);
}

static cgam_status new_dataset(cgam_env *env, const char *template, bool facts, cgam_dataset **out)
{
    *out = NULL;
    cgam_dataset *set = cgam_zalloc(env, 1, sizeof *set);
    if (!set) return cgam_fail_nomem(env, "a dataset");
    set->env = env;
    set->facts = set->grows = facts;
    set->template = cgam_strdup(env, template);
    if (!set->template) {
        cgam_dataset_close(set);
        return cgam_fail_nomem(env, "a dataset");
    }
    *out = set;
    return CGAM_OK;
}

/* A copy without outer blanks, and with one blank where there were several or a control
 * character. NULL when out of memory. */
static char *clean_copy(cgam_env *env, const char *text, size_t length)
{
    char *copy = cgam_alloc(env, length + 1, 1), *to = copy;
    if (!copy) return NULL;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c > ' ' && c != 127) *to++ = (char)c;
        else if (to > copy && to[-1] != ' ') *to++ = ' ';
    }
    if (to > copy && to[-1] == ' ') to--;
    *to = '\0';
    return copy;
}

static cgam_status add_label(cgam_dataset *set, const char *key, size_t key_length,
                             const char *word, size_t word_length)
{
    cgam_status status =
        cgam_grow(set->env, "a dataset", set->label, set->labels, &set->labels_capacity);
    if (status != CGAM_OK) return status;
    cgam_label *l = &set->label[set->labels++];
    *l = (cgam_label){clean_copy(set->env, key, key_length),
                      clean_copy(set->env, word, word_length)};
    if (!l->key || !l->word) return cgam_fail_nomem(set->env, "a label");
    return CGAM_OK;
}

static int64_t find_label(const cgam_dataset *set, const char *key)
{
    for (int64_t i = 0; i < set->labels; i++)
        if (strcmp(set->label[i].key, key) == 0) return i;
    return -1;
}

/* "0=negative,1=positive"; NULL: labels in order of occurrence. */
static cgam_status declare_labels(cgam_dataset *set, const char *labels)
{
    set->grows = labels == NULL;
    cgam_status status = CGAM_OK;
    for (const char *at = labels; at && *at && status == CGAM_OK;) {
        size_t length = strcspn(at, ","), equal = strcspn(at, "=,");
        if (equal == 0 || equal + 1 >= length || at[equal] != '=')
            return cgam_fail(set->env, CGAM_E_ARG, "labels '%s': expected KEY=WORD,KEY=WORD",
                             labels);
        status = add_label(set, at, equal, at + equal + 1, length - equal - 1);
        if (status == CGAM_OK && find_label(set, set->label[set->labels - 1].key) + 1 < set->labels)
            status = cgam_fail(set->env, CGAM_E_ARG, "labels '%s': duplicate %s", labels,
                               set->label[set->labels - 1].key);
        at += length + (at[length] == ',');
    }
    return status;
}

/* Adds an example; where: "file:line" for messages. Text and label are cleaned of outer and
 * doubled blanks; an empty one is rejected. */
static cgam_status add_example(cgam_dataset *set, const char *where, const char *text,
                               const char *label)
{
    cgam_env *env = set->env;
    cgam_status status =
        cgam_grow(env, "a dataset", set->example, set->examples, &set->examples_capacity);
    if (status != CGAM_OK) return status;
    char *words = clean_copy(env, text, strlen(text)), *key = clean_copy(env, label, strlen(label));
    if (!words || !key) status = cgam_fail_nomem(env, "an example");
    else if (!*words || !*key)
        status =
            cgam_fail(env, CGAM_E_FORMAT, "%s: the %s is empty", where, *words ? "label" : "text");
    int64_t index = status == CGAM_OK ? find_label(set, key) : -1;
    if (status == CGAM_OK && index < 0 && !set->grows)
        status = cgam_fail(env, CGAM_E_FORMAT, "%s: label '%.40s' has no word", where, key);
    if (status == CGAM_OK && index < 0) {
        status = add_label(set, key, strlen(key), key, strlen(key));
        index = set->labels - 1;
    }
    cgam_free(env, key);
    if (status != CGAM_OK) {
        cgam_free(env, words);
        return status;
    }
    set->example[set->examples].text = words;
    set->example[set->examples++].label = index;
    return CGAM_OK;
}

const char cgam_dataset_masked[] = "{x} {y}\n";
const char cgam_dataset_qa[] = "Q: {x}\nA: {y}\n\n";

const char *const cgam_dataset_tasks[] = {
    "antonyms", "plurals",     "past",     "comparatives", "capitals", "currencies", "continents",
    "colours",  "next-number", "numerals", "french",       "young",    "kinds",      NULL};

/* The sentences were written for this project, 80 of each sentiment, in pairs of like build so that words other than
 * the judging ones tell little. */
static const struct {
    const char *name, *format, *template, *labels;
} shipped[] = {
    {"facts", "facts", "The capital of {x} is {y}.\n", NULL},
    {"languages", "facts", "The language of {x} is {y}.\n", NULL},
    {"sentiment", "tsv", "Review: {x}\nSentiment: {y}\n\n", "negative=negative,positive=positive"},
};

/* Each has a file in src/lab/language/shipped, except capitals, which is the set facts with another wording. */
cgam_status cgam_dataset_shipped(cgam_env *env, const char *name, const char *labels,
                                 cgam_dataset **out)
{
    const char *format = NULL, *template = cgam_dataset_qa;
    char path[64];
    *out = NULL;
    for (int i = 0; cgam_dataset_tasks[i]; i++)
        if (strcmp(name, cgam_dataset_tasks[i]) == 0) format = "facts";
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        if (strcmp(name, shipped[i].name) != 0) continue;
        format = shipped[i].format;
        template = shipped[i].template;
        if (!labels) labels = shipped[i].labels;
    }
    if (!format)
        return cgam_fail(env, CGAM_E_NOT_FOUND,
                         "no shipped data set '%s' (there are facts, languages, sentiment and "
                         "tasks such as antonyms and plurals)",
                         name);
    snprintf(path, sizeof path, "lab/language/shipped/%s.tsv",
             strcmp(name, "capitals") == 0 ? "facts" : name);
    const cgam_embedded *bytes = cgam_embedded_find(path);
    cgam_file file = cgam_file_borrow(bytes->bytes, bytes->size);
    return cgam_dataset_read(env, format, name, &file, template, labels, out);
}

/* ---- Files ----------------------------------------------------------------------------------- */
/* The publishers' formats. A file is mapped and cut into lines or CSV records; each
 * format turns one of them into a text and a label. */

enum { FIELDS = 3, LINE_MAX_BYTES = 1 << 24, WHERE = 160 };

typedef struct set_reader {
    cgam_dataset *set;
    const char *name; /* for messages */
    cgam_file file;
    size_t at;
    int64_t line;
    char *text; /* the line or record, as strings one after the other */
    size_t text_capacity;
    char *field[FIELDS]; /* into text */
    int fields;
    char where[WHERE];
} set_reader;

static cgam_status fail_at_line(set_reader *r, const char *words)
{
    return cgam_fail(r->set->env, CGAM_E_FORMAT, "%s: %s", r->where, words);
}

static cgam_status reserve_text(set_reader *r, size_t bytes)
{
    if (bytes <= r->text_capacity) return CGAM_OK;
    cgam_free(r->set->env, r->text);
    r->text_capacity = 0;
    r->text = bytes <= LINE_MAX_BYTES ? cgam_alloc(r->set->env, 2 * bytes, 1) : NULL;
    if (!r->text)
        return bytes > LINE_MAX_BYTES ? fail_at_line(r, "the line is longer than 16 MB")
                                      : cgam_fail_nomem(r->set->env, "a line");
    r->text_capacity = 2 * bytes;
    return CGAM_OK;
}

static void next_where(set_reader *r)
{
    r->line++;
    snprintf(r->where, sizeof r->where, "%s:%lld", r->name, (long long)r->line);
}

/* The next line that is not blank into text, without its end; *more false at the end of the file.
 * A byte 0 would cut the line short, so it becomes a blank. */
static cgam_status next_line(set_reader *r, bool *more)
{
    *more = false;
    while (r->at < r->file.size) {
        const char *begin = (const char *)r->file.bytes + r->at;
        const char *end = memchr(begin, '\n', r->file.size - r->at);
        size_t length = end ? (size_t)(end - begin) : r->file.size - r->at;
        r->at += length + 1;
        next_where(r);
        cgam_status status = reserve_text(r, length + 1);
        if (status != CGAM_OK) return status;
        bool blank = true;
        for (size_t i = 0; i < length; i++) {
            r->text[i] = begin[i] ? begin[i] : ' ';
            blank = blank && (unsigned char)begin[i] <= ' ';
        }
        r->text[length] = '\0';
        if (blank) continue;
        *more = true;
        return CGAM_OK;
    }
    return CGAM_OK;
}

/* Cuts text at its tabs. */
static void split_tabs(set_reader *r)
{
    r->fields = 0;
    for (char *at = r->text; at && r->fields < FIELDS;) {
        r->field[r->fields++] = at;
        at = strchr(at, '\t');
        if (at) *at++ = '\0';
    }
}

/* A CSV record: fields may be quoted, with quotes doubled and line ends inside. */
static cgam_status next_record(set_reader *r, bool *more)
{
    const char *bytes = (const char *)r->file.bytes;
    size_t size = r->file.size;
    while (r->at < size && (bytes[r->at] == '\n' || bytes[r->at] == '\r')) {
        if (bytes[r->at] == '\n') r->line++;
        r->at++;
    }
    *more = r->at < size;
    r->fields = 0;
    if (!*more) return CGAM_OK;
    next_where(r);
    size_t end = r->at;
    for (bool quoted = false; end < size && (quoted || bytes[end] != '\n'); end++) {
        if (bytes[end] == '"') quoted = !quoted;
        if (end - r->at > LINE_MAX_BYTES) return fail_at_line(r, "the record is not terminated");
    }
    cgam_status status = reserve_text(r, end - r->at + 2);
    if (status != CGAM_OK) return status;
    char *to = r->text;
    bool quoted = false;
    r->field[r->fields++] = to;
    for (; r->at < end; r->at++) {
        char c = bytes[r->at] ? bytes[r->at] : ' ';
        if (c == '\n') r->line++;
        if (c == '"' && quoted && r->at + 1 < end && bytes[r->at + 1] == '"') *to++ = '"', r->at++;
        else if (c == '"') quoted = !quoted;
        else if (c == ',' && !quoted) {
            *to++ = '\0';
            if (r->fields == FIELDS) return fail_at_line(r, "more than three fields");
            r->field[r->fields++] = to;
        } else *to++ = c;
    }
    *to = '\0';
    return quoted ? fail_at_line(r, "a quote is not closed") : CGAM_OK;
}

/* ---- One example of each format ------------------------------------------------------------ */
static cgam_status read_tsv(set_reader *r)
{
    split_tabs(r);
    if (r->fields != 2) return fail_at_line(r, "expected label, tab, text");
    return add_example(r->set, r->where, r->field[1], r->field[0]);
}

static cgam_status read_facts(set_reader *r)
{
    split_tabs(r);
    if (r->fields != 2) return fail_at_line(r, "expected two texts separated by a tab");
    return add_example(r->set, r->where, r->field[0], r->field[1]);
}

static cgam_status read_sst2(set_reader *r)
{
    split_tabs(r);
    if (r->fields != 2) return fail_at_line(r, "expected sentence, tab, label");
    if (r->line == 1 && strcmp(r->field[0], "sentence") == 0) return CGAM_OK;
    return add_example(r->set, r->where, r->field[0], r->field[1]);
}

/* ISO-8859-1 to UTF-8: bytes above 127 become two. */
static cgam_status read_trec(set_reader *r)
{
    char *colon = strchr(r->text, ':'), *blank = strchr(r->text, ' ');
    if (!colon || !blank || colon > blank) return fail_at_line(r, "expected COARSE:fine question");
    size_t length = strlen(blank + 1);
    char *utf8 = cgam_alloc(r->set->env, 2 * length + 1, 1), *to = utf8;
    if (!utf8) return cgam_fail_nomem(r->set->env, "a line");
    for (const char *c = blank + 1; *c; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte < 128) *to++ = (char)byte;
        else *to++ = (char)(0xC0 | byte >> 6), *to++ = (char)(0x80 | (byte & 63));
    }
    *to = '\0';
    *colon = '\0';
    cgam_status status = add_example(r->set, r->where, utf8, r->text);
    cgam_free(r->set->env, utf8);
    return status;
}

/* In place: entities that lost their ampersand, and backslashes that stood for line ends. */
static void fix_entities(char *text)
{
    static const struct {
        const char *from;
        char to;
    } entities[] = {{" #39;", '\''}, {"&#39;", '\''}, {"#39;", '\''}, {" quot;", '"'},
                    {"&quot;", '"'}, {" amp;", '&'},  {"&amp;", '&'}, {"&lt;", '<'},
                    {"&gt;", '>'},   {"\\", ' '}};
    char *to = text;
    for (const char *at = text; *at;) {
        size_t used = 0;
        for (size_t i = 0; i < sizeof entities / sizeof *entities && used == 0; i++) {
            size_t length = strlen(entities[i].from);
            if (strncmp(at, entities[i].from, length) == 0) {
                *to++ = entities[i].to;
                used = length;
            }
        }
        if (used == 0) *to++ = *at, used = 1;
        at += used;
    }
    *to = '\0';
}

static cgam_status read_agnews(set_reader *r)
{
    if (r->fields < 2) return fail_at_line(r, "expected class, title, description or text, class");
    char *label = r->fields == 3 ? r->field[0] : r->field[1], one[2] = "";
    if (strlen(label) == 1) one[0] = (char)(label[0] + (r->fields == 2)); /* 0-3 become 1-4 */
    char *text = r->field[0];
    if (r->fields == 3) { /* title and description are adjacent */
        text = r->field[1];
        r->field[2][-1] = ' ';
    }
    fix_entities(text);
    return add_example(r->set, r->where, text, one[0] ? one : label);
}

static cgam_status read_lama(set_reader *r)
{
    json_t *row;
    cgam_status status = cgam_json_parse(r->set->env, r->where, r->text, strlen(r->text), &row);
    if (status != CGAM_OK) return status;
    const char *object = json_string_value(json_object_get(row, "obj_label"));
    const char *subject = json_string_value(json_object_get(row, "sub_label"));
    const char *masked =
        json_string_value(json_array_get(json_object_get(row, "masked_sentences"), 0));
    if (!object || (!subject && !masked))
        status = fail_at_line(r, "sub_label or obj_label is missing");
    else if (strcmp(r->set->template, cgam_dataset_masked) != 0)
        status = subject ? add_example(r->set, r->where, subject, object)
                         : fail_at_line(r, "sub_label is missing");
    else if (!masked)
        status = fail_at_line(r, "no masked sentence, and no relation with a template");
    else {
        /* The prompt is the text before the gap; it needs at least three words. */
        const char *gap = strstr(masked, "[MASK]");
        size_t length = gap ? (size_t)(gap - masked) : 0;
        int blanks = 0;
        for (size_t i = 0; i < length; i++) blanks += masked[i] == ' ';
        char *head = blanks >= 3 ? cgam_strndup(r->set->env, masked, length) : NULL;
        if (head) {
            status = add_example(r->set, r->where, head, object);
            cgam_free(r->set->env, head);
        } else if (blanks >= 3) status = cgam_fail_nomem(r->set->env, "a line");
    }
    json_decref(row);
    return status;
}

/* The whole file is one array of {"input", "output"}, as Todd et al. (2024) write their tasks. */
static cgam_status read_pairs(set_reader *r)
{
    json_t *list, *pair;
    size_t i;
    cgam_status status = cgam_json_parse(r->set->env, r->name, r->file.bytes, r->file.size, &list);
    if (status != CGAM_OK) return status;
    snprintf(r->where, sizeof r->where, "%s", r->name);
    if (!json_is_array(list))
        status = fail_at_line(r, "expected an array of {\"input\", \"output\"}");
    json_array_foreach(list, i, pair)
    {
        if (status != CGAM_OK) break;
        snprintf(r->where, sizeof r->where, "%s: pair %zu", r->name, i);
        const char *input = json_string_value(json_object_get(pair, "input"));
        const char *output = json_string_value(json_object_get(pair, "output"));
        if (!input || !output)
            status =
                fail_at_line(r, input ? "no string under \"output\"" : "no string under \"input\"");
        else status = add_example(r->set, r->where, input, output);
        if (status == CGAM_OK && i % 4096 == 0 && cgam_interrupted(r->set->env))
            status = CGAM_E_INTERRUPTED;
    }
    json_decref(list);
    r->at = r->file.size;
    return status;
}

/* The template of a relation, from relations.jsonl beside the file or one folder up:
 * "[X] was born in [Y] ." becomes "{x} was born in {y}.\n". Without one, masked sentences. */
static cgam_status lama_template(cgam_env *env, const char *path, char *template, size_t size)
{
    snprintf(template, size, "%s", cgam_dataset_masked);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    int folder = slash ? (int)(slash - path + 1) : 0;
    size_t id = strcspn(base, ".");
    for (int up = 0; up < 2; up++) {
        char beside[1024];
        cgam_file file;
        snprintf(beside, sizeof beside, "%.*s%srelations.jsonl", folder, path, up ? "../" : "");
        if (!cgam_file_exists(beside)) continue;
        cgam_status status = cgam_file_map(env, beside, &file);
        for (size_t at = 0; status == CGAM_OK && at < file.size;) {
            const char *line = (const char *)file.bytes + at;
            const char *end = memchr(line, '\n', file.size - at);
            size_t length = end ? (size_t)(end - line) : file.size - at;
            at += length + 1;
            json_t *row;
            if (length == 0) continue;
            status = cgam_json_parse(env, "relations.jsonl", line, length, &row);
            if (status != CGAM_OK) break;
            const char *name = json_string_value(json_object_get(row, "relation"));
            const char *text = json_string_value(json_object_get(row, "template"));
            const char *x = text ? strstr(text, "[X]") : NULL, *y = x ? strstr(x, "[Y]") : NULL;
            if (name && y && strlen(name) == id && strncmp(name, base, id) == 0)
                snprintf(template, size, "%.*s{x}%.*s{y}.\n", (int)(x - text), text,
                         (int)(y - x - 3), x + 3);
            json_decref(row);
        }
        cgam_file_unmap(&file);
        return status;
    }
    return CGAM_OK;
}

/* ---- Formats ------------------------------------------------------------------------------ */
typedef enum cut { LINES, RECORDS, WHOLE } cut; /* what is read at once */

typedef struct format {
    const char *name;
    cgam_status (*read)(set_reader *r);
    cut by;
    bool facts;
    const char *template, *labels;
} format;

static const format formats[] = {
    {"tsv", read_tsv, LINES, false, "Text: {x}\nLabel: {y}\n\n", NULL},
    {"facts", read_facts, LINES, true, "{x}: {y}\n", NULL},
    {"sst2", read_sst2, LINES, false, "Review: {x}\nSentiment: {y}\n\n", "0=negative,1=positive"},
    {"agnews", read_agnews, RECORDS, false, "Article: {x}\nTopic: {y}\n\n",
     "1=World,2=Sports,3=Business,4=Technology"},
    {"trec", read_trec, LINES, false, "Question: {x}\nType: {y}\n\n",
     "ABBR=Abbreviation,ENTY=Entity,DESC=Description,HUM=Person,LOC=Location,NUM=Number"},
    {"lama", read_lama, LINES, true, NULL, NULL},
    {"pairs", read_pairs, WHOLE, true, cgam_dataset_qa, NULL},
};

static const format *format_named(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0) return &formats[i];
    return NULL;
}

cgam_status cgam_dataset_read(cgam_env *env, const char *name, const char *where,
                              const cgam_file *file, const char *template, const char *labels,
                              cgam_dataset **out)
{
    *out = NULL;
    const format *f = format_named(name);
    if (!f) return cgam_fail(env, CGAM_E_ARG, "unknown dataset format '%s'", name);
    if (f->facts && labels)
        return cgam_fail(env, CGAM_E_ARG, "labels: %s is a set of facts and has no classes", where);
    set_reader r = {.name = where, .file = *file};
    if (file->size >= 3 && memcmp(file->bytes, "\xef\xbb\xbf", 3) == 0) /* byte order mark */
        r.file = cgam_file_borrow(file->bytes + 3, file->size - 3);
    cgam_status status = new_dataset(env, template ? template : f->template, f->facts, &r.set);
    if (status == CGAM_OK && !f->facts) status = declare_labels(r.set, labels ? labels : f->labels);
    for (bool more = true; status == CGAM_OK;) {
        if (f->by == WHOLE) more = r.at < r.file.size;
        else status = f->by == RECORDS ? next_record(&r, &more) : next_line(&r, &more);
        if (status != CGAM_OK || !more) break;
        status = f->read(&r);
        if (status == CGAM_OK && r.line % 4096 == 0 && cgam_interrupted(env))
            status = CGAM_E_INTERRUPTED;
    }
    if (status == CGAM_OK && r.set->examples == 0)
        status = cgam_fail(env, CGAM_E_FORMAT, "%s: no examples", r.name);
    cgam_free(env, r.text);
    if (status == CGAM_OK) *out = r.set;
    else cgam_dataset_close(r.set);
    return status;
}

cgam_status cgam_dataset_open(cgam_env *env, const char *name, const char *path, const char *labels,
                              cgam_dataset **out)
{
    *out = NULL;
    const format *f = format_named(name);
    char template[512] = "";
    cgam_file file = {0};
    cgam_status status =
        f && !f->template ? lama_template(env, path, template, sizeof template) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_file_map(env, path, &file);
    if (status == CGAM_OK)
        status = cgam_dataset_read(env, name, cgam_path_tail(path), &file,
                                   f && !f->template ? template : NULL, labels, out);
    cgam_file_unmap(&file);
    return status;
}
