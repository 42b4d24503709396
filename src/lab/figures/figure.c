/* figure.c: what all gnuplot scripts share (script-head.gp and others), and writing them. The palette survives colour blindness (Okabe
 * and Ito, 2008) and its line and point types survive black and white; the foot of every picture gives seed, trials and
 * parameters. */
#include "base/env.h"
#include "lab/figures/script.h"
#include "lab/figures/text.h"
#include "lab/fill.h"
#include "lab/folder.h"

#include <math.h>
#include <string.h>

void cgam_script_fill(FILE *to, const char *name, json_t *doc)
{
    char text[100];
    snprintf(text, sizeof text, "{<lab/figures/%s.gp}", name);
    cgam_fill(to, text, doc);
    json_decref(doc);
}

cgam_status cgam_script_head(cgam_env *env, const char *folder, const cgam_figure *f,
                             cgam_script *p)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s.gp", folder, f->name);
    p->env = env;
    cgam_status status = cgam_outfile_begin(env, path, &p->file);
    if (status != CGAM_OK) return status;
    p->to = cgam_outfile_stream(p->file);
    cgam_script_fill(p->to, "script-head",
                     cgam_json_object("name=%s caption=%s", f->name, f->caption));
    return CGAM_OK;
}

void cgam_script_begin(const cgam_figure *f, int width, int height, cgam_script *p)
{
    cgam_script_fill(p->to, "script-begin",
                     cgam_json_object("name=%s width=%d height=%d", f->name, width, height));
}

cgam_status cgam_script_open(cgam_env *env, const char *folder, const cgam_figure *f, int width,
                             int height, cgam_script *p)
{
    cgam_status status = cgam_script_head(env, folder, f, p);
    if (status == CGAM_OK) cgam_script_begin(f, width, height, p);
    return status;
}

cgam_status cgam_script_close(cgam_script *p)
{
    fputs("unset output\n}\n", p->to);
    if (!cgam_json_ran_short()) return cgam_outfile_commit(p->file);
    cgam_outfile_abandon(p->file);
    return cgam_json_nomem(p->env, "a figure");
}

void cgam_script_panels(FILE *to, const cgam_figure *f, double foot)
{
    cgam_script_fill(to, "script-panels", cgam_json_object("caption=%s foot=%g", f->caption, foot));
}

cgam_status cgam_figures_write(const cgam_study *study, const char *folder, cgam_figures *out)
{
    const cgam_study_opts *o = &study->opts;
    cgam_status status = CGAM_OK;
    out->count = 0;
    for (const cgam_figure_script *one = cgam_figure_scripts; one->name && status == CGAM_OK;
         one++) {
        if (one->kind != o->kind) continue;
        cgam_figure *f = &out->figure[out->count++];
        f->name = one->name;
        f->title = one->title;
        cgam_caption(o, f->caption, sizeof f->caption);
        cgam_script p;
        status = cgam_script_head(study->env, folder, f, &p);
        if (status != CGAM_OK) break;
        if (one->data) one->data(study, p.to);
        cgam_script_begin(f, one->width, one->height, &p);
        cgam_figure_fill(study, one->name, p.to);
        status = cgam_script_close(&p);
    }
    return status;
}

cgam_status cgam_results_write(const cgam_study *study, const char *folder)
{
    static const char *const ends[] = {"gp", "svg", "png", "pdf"};
    const cgam_figure_script *one = cgam_study_replaces(study, folder) ? cgam_figure_scripts : NULL;
    cgam_outgroup files;
    cgam_outgroup_begin(&files);
    cgam_status status = cgam_study_write(study, folder);
    for (; one && one->name && status == CGAM_OK; one++)
        for (int i = 0; i < 4 && status == CGAM_OK; i++) {
            char file[64];
            snprintf(file, sizeof file, "%s.%s", one->name, ends[i]);
            status = cgam_folder_remove(study->env, folder, file);
        }
    return cgam_outgroup_end(&files, status);
}
