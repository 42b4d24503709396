/* figure.c: what all gnuplot scripts share, and the list of figures. The palette survives colour
 * blindness (Okabe and Ito, 2008) and its line and point types survive black and white; the foot
 * of every picture says seed, trials and parameters. */
#include "base/env.h"
#include "io/folder.h"
#include "report/page.h"
#include "report/text.h"

#include <math.h>
#include <string.h>

/* Colour, dashes and point of the k-th curve; the same in every figure. */
static const char *const styles[] = {
    "lc rgb '#000000' dt 1 pt 7",      "lc rgb '#0072B2' dt '_' pt 5",
    "lc rgb '#D55E00' dt '-' pt 9",    "lc rgb '#009E73' dt '_.' pt 13",
    "lc rgb '#CC79A7' dt '._.' pt 11", "lc rgb '#E69F00' dt '.' pt 6",
    "lc rgb '#56B4E9' dt '_..' pt 4",  "lc rgb '#666666' dt '-.' pt 8",
    "lc rgb '#8C510A' dt (8,3) pt 10",
};
enum { STYLES = sizeof styles / sizeof *styles };

int cgam_page_style(int64_t k) { return (int)(k % STYLES) + 1; }

cgam_status cgam_page_head(cgam_env *env, const char *folder, const cgam_figure *f, cgam_page *p)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s.gp", folder, f->name);
    cgam_status status = cgam_outfile_begin(env, path, &p->file);
    if (status != CGAM_OK) return status;
    p->to = cgam_outfile_stream(p->file);
    fprintf(p->to,
            "# %s.gp: draws %s.svg, .png and .pdf from the CSV files beside it:  gnuplot %s.gp\n"
            "set encoding utf8\n"
            "set datafile separator ','\n"
            "set datafile columnheaders\n"
            "set datafile missing NaN\n"
            "if (!exists('prefix')) prefix = ''\n",
            f->name, f->name, f->name);
    for (int k = 0; k < STYLES; k++)
        fprintf(p->to, "set linetype %d %s lw 2 ps 0.7\n", k + 1, styles[k]);
    fprintf(p->to,
            "set border 3 lw 1 lc rgb '#444444'\n"
            "set tics nomirror out\n"
            "set grid ytics lc rgb '#dddddd' lw 1 dt 1\n"
            "set key font ',12' samplen 3 spacing 1.1\n"
            "set bmargin 5.4\n"
            "set label 1 \"%s\" at screen 0.01, screen 0.022 font ',9' tc rgb '#555555'\n",
            f->caption);
    return CGAM_OK;
}

void cgam_page_begin(const cgam_figure *f, int width, int height, cgam_page *p)
{
    fprintf(p->to,
            "do for [kind in 'svg png pdf'] {\n"
            "if (kind eq 'svg') { set terminal svg size %d,%d dynamic enhanced font "
            "'DejaVu Sans,14' background 'white' }\n"
            "if (kind eq 'png') { set terminal pngcairo size %d,%d enhanced font 'DejaVu Sans,14' "
            "fontscale 1.6 linewidth 1.6 pointscale 1.6 background 'white' }\n"
            "if (kind eq 'pdf') { set terminal pdfcairo size %.2fin,%.2fin enhanced font "
            "'DejaVu Sans,14' fontscale 0.72 background 'white' }\n"
            "set output prefix.'%s.'.kind\n",
            width, height, 2 * width, 2 * height, width / 100.0, height / 100.0, f->name);
}

cgam_status cgam_page_open(cgam_env *env, const char *folder, const cgam_figure *f, int width,
                           int height, cgam_page *p)
{
    cgam_status status = cgam_page_head(env, folder, f, p);
    if (status == CGAM_OK) cgam_page_begin(f, width, height, p);
    return status;
}

cgam_status cgam_page_close(cgam_page *p)
{
    fprintf(p->to, "unset output\n}\n");
    return cgam_outfile_commit(p->file);
}

void cgam_page_curves(FILE *to, const cgam_curves *c, const char *rest)
{
    for (int64_t k = 0; k < c->list.count; k++) {
        char text[32], at[400];
        double v = c->list.values[k];
        int style = cgam_page_style(k);
        snprintf(at, sizeof at,
                 "(abs(column('%s') - %.17g) <= %.3g%s%s ? column('%s') : NaN):"
                 "(column('%s'))",
                 c->key, v, 1e-9 * (1 + fabs(v)), c->only ? " && " : "", c->only ? c->only : "",
                 c->x, c->y);
        if (c->se)
            fprintf(to,
                    "  '%s' using %s:(column('%s')) with yerrorbars lt %d dt 1 lw 1 ps 0 "
                    "notitle, \\\n",
                    c->file, at, c->se, style);
        fprintf(to, "  '%s' using %s with %s lt %d title '%s = %s'%s", c->file, at, c->with, style,
                c->symbol, cgam_short_text(v, text), k + 1 < c->list.count ? ", \\\n" : rest);
    }
}

cgam_status cgam_figures_write(const cgam_study *study, const char *folder, cgam_figures *out)
{
    const cgam_study_opts *o = cgam_study_options(study);
    cgam_status status = CGAM_OK;
    out->count = 0;
    for (const cgam_figure_script *one = cgam_figure_scripts; one->name && status == CGAM_OK;
         one++) {
        if (one->kind != o->kind) continue;
        cgam_figure *f = &out->figure[out->count++];
        f->name = one->name;
        f->title = one->title;
        cgam_caption(o, f->caption, sizeof f->caption);
        cgam_page p;
        status = cgam_page_head(cgam_study_env(study), folder, f, &p);
        if (status != CGAM_OK) break;
        if (one->data) one->data(study, p.to);
        cgam_page_begin(f, one->width, one->height, &p);
        one->draw(study, p.to);
        status = cgam_page_close(&p);
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
            status = cgam_folder_remove(cgam_study_env(study), folder, file);
        }
    return cgam_outgroup_end(&files, status);
}

void cgam_page_panels(FILE *to, const cgam_figure *f)
{
    fprintf(to,
            "set multiplot\nset label 1 \"%s\" at screen 0.01, screen 0.022 font ',9' tc rgb "
            "'#555555'\n",
            f->caption);
}
