/* models_page.c: the section on language models, and how it gets into an existing page.
 *
 * A page holds two pieces between marks, its part of the claims and the section itself. A study
 * that is run later replaces what is between the marks, so the synthetic studies need not be run
 * again. */
#include "lab/fill.h"
#include "lab/page/html.h"

#include "base/env.h"
#include "lab/folder.h"

#include <string.h>

static const char *const marks[][2] = {
    {"<!-- cgam: claims of models -->\n", "<!-- cgam: end of claims of models -->\n"},
    {"<!-- cgam: models -->\n", "<!-- cgam: end of models -->\n"},
};

/* ---- Claims ------------------------------------------------------------------------------ */
void cgam_models_claims_html(FILE *to, const cgam_models *models, const cgam_claims *claims)
{
    json_t *doc = cgam_html_claims_doc(claims, "model-claims");
    bool small = false;
    for (int i = 0; i < models->count; i++) {
        int64_t n = cgam_models_queries(&models->study[i]);
        small = small || (n > 0 && n < 100);
    }
    cgam_json_put_bool(doc, "small", small);
    fputs(marks[0][0], to);
    cgam_fill(to, "{<lab/page/models-claims.html}", doc);
    fputs(marks[0][1], to);
    json_decref(doc);
}

/* ---- A study ----------------------------------------------------------------------------- */
/* Of several numbers of shots the page shows the fewest and the most; the others are beside it. */
static bool shown(cgam_lm_part part, const cgam_figures *figures, int i)
{
    if (part != CGAM_LM_SWEEP && part != CGAM_LM_STEER && part != CGAM_LM_GATES) return true;
    int first = strcmp(figures->figure[0].name, "shots") == 0 ? 1 : 0;
    return i <= first || i == figures->count - 1;
}

static cgam_status pictures(FILE *to, cgam_env *env, const char *out, const cgam_models_study *s,
                            bool steering)
{
    char folder[160], path[CGAM_PATH_ROOM];
    cgam_figures *figures = cgam_zalloc(env, 1, sizeof *figures);
    if (!figures) return cgam_fail_nomem(env, "figures");
    snprintf(folder, sizeof folder, "lm/%s", s->name);
    fprintf(to, "<div class=\"figures\">\n");
    cgam_status status = CGAM_OK;
    for (int part = 0; part < CGAM_LM_EXPERIMENTS && status == CGAM_OK; part++) {
        const json_t *doc = cgam_json_at(s->doc, cgam_lm_part_name((cgam_lm_part)part));
        if (!json_is_object(doc) || (part == CGAM_LM_STEER && !steering)) continue;
        cgam_models_figures((cgam_lm_part)part, doc, figures);
        for (int i = 0; i < figures->count && status == CGAM_OK; i++) {
            const cgam_figure *f = &figures->figure[i];
            snprintf(path, sizeof path, "%s/%s/%s.png", out, folder, f->name);
            if (!shown((cgam_lm_part)part, figures, i) || !cgam_file_exists(path)) continue;
            status = cgam_html_picture(to, env, out, folder, f, "", f->words);
        }
    }
    fprintf(to, "</div>\n");
    cgam_free(env, figures);
    return status;
}

static void add_text(json_t *list, const char *text)
{
    if (*text) json_array_append_new(list, cgam_json_lossy(text));
}

/* The documents of a study under their names, and what the page says beside them: the one that "about" is, and the files and
 * commands that there are. */
static json_t *study_doc(const char *out, const cgam_models_study *s)
{
    static const char *const names[] = {
        "study.json",      "neff.csv",           "sweep.csv",  "sweep_steps.csv", "sweep_grid.csv",
        "per_query.csv",   "seeds.csv",          "draws.csv",  "neff_nulls.csv",  "steer.csv",
        "probe_nulls.csv", "probe.csv",          "inject.csv", "inject.json",     "gates.csv",
        "gates.json",      "gates_spectrum.csv", "fit.csv",    "fit.json"};
    char path[CGAM_PATH_ROOM];
    json_t *doc = json_object(), *files = json_array(), *commands = json_array();
    json_object_update(doc, s->doc);
    add_text(commands, cgam_json_get_text(s->doc, "command"));
    for (int i = 0; i < CGAM_LM_EXPERIMENTS; i++) {
        json_t *part = json_object_get(s->doc, cgam_lm_part_name((cgam_lm_part)i));
        add_text(commands, cgam_json_get_text(part, "command"));
        if (json_is_object(part) && !json_object_get(doc, "about"))
            json_object_set(doc, "about", part);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/lm/%s/%s", out, s->name, names[i]);
        if (cgam_file_exists(path)) json_array_append_new(files, json_string(names[i]));
    }
    cgam_json_add(doc, "name=%s reason=%s least_alpha=%g files=%p commands=%p", s->name,
                  s->doc ? "" : s->reason, 1 / cgam_json_get_real(s->doc, "gates.mu_max"), files,
                  commands);
    return doc;
}

static cgam_status one_study(FILE *to, cgam_env *env, const char *out, const cgam_models_study *s,
                             bool steering)
{
    cgam_status status = CGAM_OK;
    json_t *doc = study_doc(out, s);
    cgam_fill(to, "{<lab/page/models-study.html}", doc);
    if (s->doc) {
        status = pictures(to, env, out, s, steering);
        cgam_fill(to, "{<lab/page/models-foot.html}", doc);
    }
    json_decref(doc);
    return status;
}

cgam_status cgam_models_html(FILE *to, cgam_env *env, const char *folder, const cgam_models *models)
{
    cgam_status status = CGAM_OK;
    bool facts = false;
    fputs(marks[1][0], to);
    json_t *doc = cgam_json_object("folder=%s studies=%d", folder, models->count);
    cgam_fill(to, "{<lab/page/models-head.html}", doc);
    json_decref(doc);
    for (int i = 0; i < models->count; i++) facts = facts || cgam_models_facts(&models->study[i]);
    /* sets of classes steer the shipped facts: shown where no study is about facts */
    for (int i = 0; i < models->count && status == CGAM_OK; i++)
        status = one_study(to, env, folder, &models->study[i],
                           cgam_models_facts(&models->study[i]) || !facts);
    if (status == CGAM_OK && cgam_json_ran_short()) status = cgam_json_nomem(env, "the page");
    fputs(marks[1][1], to);
    return status;
}

/* ---- Into an existing page ----------------------------------------------------------- */
/* The position of a text in [from, end), or NULL. */
static const char *find(const char *from, const char *end, const char *text)
{
    return from < end ? memmem(from, (size_t)(end - from), text, strlen(text)) : NULL;
}

static cgam_status rewrite(cgam_env *env, const char *folder, const char *path,
                           const cgam_models *models, const cgam_claims *claims)
{
    cgam_file old;
    cgam_outfile *file = NULL;
    cgam_status status = cgam_file_map(env, path, &old);
    if (status != CGAM_OK) return status;
    const char *start = (const char *)old.bytes, *end = start + old.size, *from[2], *to[2];
    const char *last = start;
    for (int i = 0; i < 2 && status == CGAM_OK; i++) {
        from[i] = last ? find(last, end, marks[i][0]) : NULL;
        to[i] = from[i] ? find(from[i], end, marks[i][1]) : NULL;
        last = to[i] ? to[i] + strlen(marks[i][1]) : NULL;
        if (!last)
            status = cgam_fail(env, CGAM_E_FORMAT,
                               "%s has no section for language models; recreate it with: cgam "
                               "report",
                               cgam_path_tail(path));
        else to[i] = last;
    }
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, &file);
    if (status == CGAM_OK) {
        FILE *out = cgam_outfile_stream(file);
        fwrite(start, 1, (size_t)(from[0] - start), out);
        cgam_models_claims_html(out, models, claims);
        fwrite(to[0], 1, (size_t)(from[1] - to[0]), out);
        status = cgam_models_html(out, env, folder, models);
        fwrite(to[1], 1, (size_t)(end - to[1]), out);
        if (status == CGAM_OK) status = cgam_outfile_commit(file);
        else cgam_outfile_abandon(file);
    }
    cgam_file_unmap(&old);
    return status;
}

/* Begins a separate page, which `cgam report` later includes in its own. */
static cgam_status begin_page(cgam_env *env, const char *folder, const char *path,
                              const cgam_models *models, const cgam_claims *claims)
{
    cgam_outfile *file;
    cgam_status status = cgam_outfile_begin(env, path, &file);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(file);
    cgam_html_head(to, "Context-gated associative memory: language models");
    fprintf(to, "<h1>Context-gated associative memory: language models</h1>\n"
                "<nav><a href=\"#model-claims\">Claims</a><a href=\"#models\">Studies</a></nav>\n");
    cgam_models_claims_html(to, models, claims);
    status = cgam_models_html(to, env, folder, models);
    cgam_html_say(to, "To add the synthetic studies to this page:");
    fprintf(to, "<pre>cgam report --out ");
    cgam_html_text(to, folder);
    fprintf(to, "</pre>\n</body>\n</html>\n");
    if (status == CGAM_OK) return cgam_outfile_commit(file);
    cgam_outfile_abandon(file);
    return status;
}

cgam_status cgam_models_refresh(cgam_env *env, const char *folder)
{
    char path[CGAM_PATH_ROOM];
    cgam_models *models = NULL;
    cgam_claims *claims = cgam_zalloc(env, 1, sizeof *claims);
    if (!claims) return cgam_fail_nomem(env, "claims");
    cgam_status status = cgam_models_load(env, folder, &models);
    if (status == CGAM_OK) status = cgam_models_claims_write(env, folder, models, claims);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, "index.html", path);
    if (status == CGAM_OK)
        status = (cgam_file_exists(path) ? rewrite : begin_page)(env, folder, path, models, claims);
    cgam_models_free(env, models);
    cgam_free(env, claims);
    return status;
}
