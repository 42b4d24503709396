/* landscape_figure.c: energies against basins, without a context and under one, side by side. */
#include "report/landscape_figure.h"

#include "io/array.h"
#include "report/page.h"

/* E<context>_min and E<context>_max, and H the height of the higher side. */
static void heights(FILE *to, int context)
{
    fprintf(to,
            "stats 'landscape.csv' using (column('context') == %d ? column('energy') : NaN) "
            "nooutput name 'E%d'\n"
            "H = E%d_max - E%d_min > H ? E%d_max - E%d_min : H\n",
            context, context, context, context, context, context);
}

/* Minima of one side as discs, those with a basin worth a name with their winner, saddles as open triangles; both at energies above the
 * lowest of the side. */
static void panel(FILE *to, int context, const char *title, double left, double right)
{
    fprintf(to,
            "set lmargin at screen %.3f\nset rmargin at screen %.3f\nset title '%s'\n"
            "E_min = E%d_min\n"
            "plot 'landscape.csv' using (column('context') == %d && column('minimum') == 1 ? "
            "column('basin') : NaN):(column('energy') - E_min) with points pt 7 ps 0.9 lc rgb "
            "'#1f6f9f' title 'minimum, its winner', \\\n"
            "  '' using (column('context') == %d && column('minimum') == 0 ? column('basin') : "
            "NaN):(column('energy') - E_min) with points pt 8 ps 1 lc rgb '#b2532c' title "
            "'saddle', \\\n"
            "  '' using (column('context') == %d && column('basin') >= 0.02 ? column('basin') : "
            "NaN):(column('energy') - E_min):(gprintf('%%.0f', column('winner'))) with labels "
            "offset 1.3,0.3 font ',9' notitle\n",
            left, right, title, context, context, context, context);
}

cgam_status cgam_landscape_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                         cgam_figures *out)
{
    cgam_figure *f = &out->figure[0];
    size_t used = 0;
    out->count = 1;
    *f = (cgam_figure){.name = "landscape", .title = "Energies against basins"};
    cgam_text_add(f->caption, sizeof f->caption, &used,
                  "cgam %s, landscape: alpha %g, beta %g, lambda %g; basin: share of %lld descents",
                  CGAM_VERSION, cgam_json_get_real(doc, "alpha"), cgam_json_get_real(doc, "beta"),
                  cgam_json_get_real(doc, "lambda"), (long long)cgam_json_get_int(doc, "starts"));
    bool both = json_is_true(json_object_get(doc, "context"));
    cgam_page p;
    cgam_status status = cgam_page_open(env, folder, f, both ? 900 : 560, 420, &p);
    if (status != CGAM_OK) return status;
    fputs("set multiplot\nset xlabel 'basin'\nset ylabel 'energy above the lowest'\n"
          "set key top right horizontal samplen 1\nset xrange [*:*]\nset yrange [*:*]\nH = 0\n",
          p.to);
    heights(p.to, 0);
    if (both) heights(p.to, 1);
    fputs("H = H == 0 ? 1 : H\nset xrange [-0.04:1.08]\nset yrange [-0.06*H:1.25*H]\n", p.to);
    panel(p.to, 0, both ? "without context" : "", both ? 0.1 : 0.16, both ? 0.49 : 0.96);
    if (both) panel(p.to, 1, "under the context", 0.6, 0.99);
    fputs("unset multiplot\n", p.to);
    return cgam_page_close(&p);
}
