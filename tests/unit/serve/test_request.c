/* From a request to the options of its verb, for every option of every verb that names a file. */
#include "serve/server.h"
#include "support/failing_alloc.h"
#include "support/objects.h"

#include "support/owned.h"

static char id[] = "demo", path[] = CGAM_DEMO_PREFIX, root[] = "/somewhere/below";
static cgam_catalog_entry demo = {CGAM_INPUT_BANK, id, path};

static cgam_catalog catalog_of(cgam_env *env, bool writes)
{
    return (cgam_catalog){.env = env, .entries = &demo, .count = 1, .root = writes ? root : NULL};
}

typedef struct seen {
    cgam_status status;
    bool forbidden, absent;
    char given[256]; /* to the verb, for one option */
} seen;

static seen ask(const cgam_catalog *catalog, const cgam_verb *verb, const cgam_param *p,
                const char *value)
{
    char body[512];
    cgam_request request;
    snprintf(body, sizeof body, p->many ? "{\"%s\": [%s]}" : "{\"%s\": %s}", p->name, value);
    seen out = {.status = cgam_request_read(&request, catalog, verb, body, strlen(body))};
    const json_t *given = json_object_get(request.options, p->name);
    if (p->many) given = json_array_get(given, 0);
    out.forbidden = request.forbidden;
    out.absent = request.absent;
    snprintf(out.given, sizeof out.given, "%s",
             json_is_string(given) ? json_string_value(given) : "");
    cgam_request_close(&request);
    return out;
}

static bool names_file(const cgam_param *p)
{
    return p->value && (strstr(p->value, "FILE") || strstr(p->value, "DIR"));
}

/* What else a text may be called in the table. Whoever adds another says here that it is no file. */
static bool harmless(const char *value)
{
    static const char *const kinds[] = {"TEXT", "NAME",        "DIGEST",    "ID",
                                        "VERB", "KEY=WORD,..", "PREDICATE", "LAYER"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (value && strcmp(value, kinds[i]) == 0) return true;
    return false;
}

typedef void (*looks_at)(const cgam_verb *verb, const cgam_param *p, void *user);

/* Calls it for the options of all verbs that are served. */
static int for_each(looks_at look, void *user)
{
    const cgam_param *p;
    int count = 0;
    for (int v = 0; cgam_verbs[v]; v++)
        for (int i = 0; !cgam_verbs[v]->local && (p = cgam_verb_param(cgam_verbs[v], i)); i++) {
            look(cgam_verbs[v], p, user);
            count += names_file(p);
        }
    return count;
}

static void is_marked(const cgam_verb *verb, const cgam_param *p, void *user)
{
    (void)user;
    bool word =
        p->value && strchr(p->value, '|') && !p->input; /* or a word: no file can be given */
    if (names_file(p) ? !(p->input || p->writes || word)
                      : p->kind == CGAM_TEXT && !p->input && !p->writes && !harmless(p->value))
        fail_msg("%s: %s is %s, and nothing says what that is read as", verb->name, p->name,
                 p->value);
}

TEST(every_option_that_names_a_file_says_what_it_is)
{
    assert_true(for_each(is_marked, NULL) > 100);
}

static void is_refused(const cgam_verb *verb, const cgam_param *p, void *user)
{
    static const char *const tricks[] = {"\"/etc/passwd\"",
                                         "\"passwd\"",
                                         "\"../passwd\"",
                                         "\"-\"",
                                         "\"file:rows:1\"",
                                         "{\"path\": 1}",
                                         "{\"values\": [1], \"as\": \"/etc/{}\"}",
                                         "{\"npy\": \"AA==\", \"as\": \"{},/etc/passwd\"}"};
    if (!names_file(p) && !p->input && !p->writes) return;
    const cgam_catalog *catalog = user;
    bool below = p->writes && p->input != CGAM_INPUT_STORE && strcmp(p->name, "out") == 0;
    for (size_t k = 0; k < sizeof tricks / sizeof *tricks; k++) {
        seen got = ask(catalog, verb, p, tricks[k]);
        if (p->input == CGAM_INPUT_JSON && tricks[k][0] == '{') continue; /* a document */
        if (below && catalog->root && k == 1) {
            assert_string_equal(got.given, "/somewhere/below/passwd");
            continue;
        }
        if (p->input == CGAM_INPUT_KEY && tricks[k][0] == '"') { /* a text, whatever it says */
            if (strncmp(got.given, CGAM_KEY_TEXT, strlen(CGAM_KEY_TEXT)) != 0)
                fail_msg("%s: %s took %s as '%s'", verb->name, p->name, tricks[k], got.given);
            continue;
        }
        if (got.status == CGAM_OK || got.given[0])
            fail_msg("%s: %s took %s as '%s'", verb->name, p->name, tricks[k], got.given);
        if (tricks[k][0] == '"' && !got.forbidden && !got.absent)
            fail_msg("%s: %s: %s is neither forbidden nor absent", verb->name, p->name, tricks[k]);
    }
}

TEST(no_option_takes_a_path)
{
    OWNED(cgam_env) env = object_env(1);
    for (int writes = 0; writes < 2; writes++) {
        cgam_catalog catalog = catalog_of(env, writes);
        assert_true(for_each(is_refused, &catalog) > 100);
    }
}

static int read_all(cgam_env *env, void *arg)
{
    static const char body[] =
        "{\"bank\": \"demo\", \"query\": [[1, 2], [3, 4.5]], \"context\": \"rows:7\", \"projection\": "
        "{\"npy\": \"AAAA\"}, \"names\": {\"text\": \"a\\nb\"}, \"target\": 7, \"only\": [true, false]}";
    cgam_catalog catalog = catalog_of(env, false);
    cgam_request request;
    int used;
    const cgam_verb *verb = cgam_verb_find(1, (const char *const[]){arg}, &used);
    cgam_status status = cgam_request_read(&request, &catalog, verb, body, sizeof body - 1);
    cgam_request_close(&request);
    return status;
}

TEST(every_allocation_may_fail)
{
    char verb[] = "recall";
    assert_true(check_every_allocation(read_all, verb) >= 8);
}
