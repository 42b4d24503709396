/* picture.c: see picture.h. */
#include "lab/figures/picture.h"

#include "base/env.h"
#include "lab/table.h"

static cgam_status draw_picture(cgam_env *env, json_t *doc, const char *out, const char *name,
                                cgam_picture *write, json_t *files)
{
    bool missing = false;
    cgam_figures *figures = cgam_zalloc(env, 1, sizeof *figures);
    cgam_status status = figures ? write(env, doc, out, figures) : cgam_fail_nomem(env, "figures");
    if (status == CGAM_OK) status = cgam_figures_draw(env, out, figures, &missing);
    if (missing) cgam_json_put_text(doc, "figures_missing", "gnuplot was not found");
    else json_array_append_new(files, json_sprintf("%s.svg", name));
    cgam_free(env, figures);
    return status;
}

cgam_status cgam_picture_leave(cgam_env *env, json_t *doc, const char *out, const char *name,
                               bool drawn, cgam_picture *write, json_t *files)
{
    char document[64];
    cgam_status status = CGAM_OK;
    if (drawn) status = draw_picture(env, doc, out, name, write, files);
    snprintf(document, sizeof document, "%s.json", name);
    json_array_append_new(files, json_string(document));
    if (status == CGAM_OK) status = cgam_json_save(env, out, document, doc);
    if (status == CGAM_OK) cgam_json_put_text(doc, "out", out);
    if (status == CGAM_OK) cgam_json_put(doc, "files", files);
    else json_decref(files);
    return status;
}

/* ---- experiments ------------------------------------------------------------------------------ */

cgam_status cgam_figures_leave(cgam_env *env, const char *out, const cgam_figures *figures,
                               json_t *doc, json_t *files)
{
    bool missing;
    cgam_status status = cgam_figures_draw(env, out, figures, &missing);
    json_t *names = json_array();
    for (int i = 0; i < figures->count && !missing; i++) {
        json_array_append_new(names, json_string(figures->figure[i].name));
        if (files) json_array_append_new(files, json_sprintf("%s.svg", figures->figure[i].name));
    }
    cgam_json_put(doc, "figures", names);
    if (missing) cgam_json_put_text(doc, "figures_missing", "gnuplot was not found");
    return status;
}

/* The figures of a document whose tables are in place. */
static cgam_status draw_part(cgam_env *env, const char *out, cgam_lm_part part, json_t *doc,
                             json_t *files)
{
    cgam_figures *figures = cgam_zalloc(env, 1, sizeof *figures);
    if (!figures) return cgam_fail_nomem(env, "figures");
    cgam_status status = cgam_models_figures_write(env, part, doc, out, figures);
    if (status == CGAM_OK) status = cgam_figures_leave(env, out, figures, doc, files);
    cgam_free(env, figures);
    return status;
}

cgam_status cgam_models_leave(cgam_env *env, const char *out, bool figures, cgam_lm_part part,
                              const cgam_lm_result *result, json_t *doc, json_t *files)
{
    char name[32];
    cgam_status status = CGAM_OK;
    json_object_update(doc, result->doc);
    if (!out) return CGAM_OK;
    for (int64_t i = 0; i < result->tables && status == CGAM_OK; i++) {
        const cgam_table *table = &result->table[i];
        status = cgam_table_write(env, table, out);
        json_array_append_new(files, json_sprintf("%s.csv", table->name));
    }
    if (status == CGAM_OK && figures) status = draw_part(env, out, part, doc, files);
    snprintf(name, sizeof name, "%s.json", cgam_lm_part_name(part));
    json_array_append_new(files, json_string(name));
    return status == CGAM_OK ? cgam_json_save(env, out, name, doc) : status;
}
