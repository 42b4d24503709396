/* picture.c: see picture.h. */
#include "app/picture.h"

#include "app/params.h"
#include "base/env.h"

static cgam_status draw(cgam_call *call, const char *out, const char *name, cgam_picture *write,
                        json_t *files)
{
    bool missing = false;
    cgam_figures *figures = cgam_zalloc(call->env, 1, sizeof *figures);
    cgam_status status =
        figures ? write(call->env, call->doc, out, figures) : cgam_fail_nomem(call->env, "figures");
    if (status == CGAM_OK) status = cgam_figures_draw(call->env, out, figures, &missing);
    if (missing) cgam_json_put_text(call->doc, "figures_missing", "gnuplot was not found");
    else json_array_append_new(files, json_sprintf("%s.svg", name));
    cgam_free(call->env, figures);
    return status;
}

cgam_status cgam_picture_leave(cgam_call *call, const char *out, const char *name, bool wanted,
                               cgam_picture *write, json_t *files)
{
    char document[64];
    cgam_status status = CGAM_OK;
    if (wanted && cgam_args_is(call->args, "figures", "yes"))
        status = draw(call, out, name, write, files);
    snprintf(document, sizeof document, "%s.json", name);
    json_array_append_new(files, json_string(document));
    if (status == CGAM_OK) status = cgam_json_save(call->env, out, document, call->doc);
    if (status == CGAM_OK) cgam_json_put_text(call->doc, "out", out);
    if (status == CGAM_OK) cgam_json_put(call->doc, "files", files);
    else json_decref(files);
    return status;
}

void cgam_picture_print_files(const json_t *doc, FILE *to)
{
    size_t i;
    json_t *name;
    const json_t *files = json_object_get(doc, "files");
    if (!files) return;
    fprintf(to, "\nwritten to %s:", cgam_json_get_text(doc, "out"));
    json_array_foreach(files, i, name) fprintf(to, " %s", json_string_value(name));
    fputc('\n', to);
}
