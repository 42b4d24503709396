/* gates_figure.c: accuracy and N_eff against alpha on a logarithmic axis, at whose left end alpha = 0
 * stands, and the spectrum of the unembedding. */
#include "report/gates_figure.h"

#include "report/page.h"

#include <math.h>
#include <string.h>

static const char *const modes[] = {"first order", "coupled"};
static const int mode_style[] = {1, 2};
static const char *const mode_width[] = {"4.5", "1.6"}; /* the second lies on the first */

/* The axis: alpha = 0 stands left of the smallest, between two ticks. Returns where. */
static double alpha_axis(const json_t *doc, FILE *to)
{
    double least = cgam_json_nth(doc, "alphas", 1), crit = cgam_json_get_real(doc, "alpha_crit");
    if (!(least > 0)) least = 1e-3;
    if (!(crit > least)) crit = 10 * least;
    double zero = pow(10, floor(log10(least)) - 0.5);
    fprintf(
        to,
        "unset logscale y\nset logscale x\nset xrange [%.6g:%.6g]\nset xlabel 'penalty α'\nset format x '10^{%%L}'\n"
        "set xtics add ('0' %.6g)\nset arrow 1 from first %.6g, graph 0 to first %.6g, graph 1 "
        "nohead lc rgb '#888888' dt 3 lw 1.5\nset arrow 2 from first %.6g, graph 0 to first "
        "%.6g, graph 1 nohead lc rgb '#bbbbbb' dt 2 lw 1.2\n",
        zero / 1.5, 1.6 * crit, zero, crit, crit, 1 / cgam_json_get_real(doc, "mu_max"),
        1 / cgam_json_get_real(doc, "mu_max"));
    return zero;
}

/* Was anything asked in that mode? A curve without points is an error to gnuplot. */
static bool has_mode(const json_t *entry, int coupled)
{
    const json_t *grid = cgam_json_at(entry, "grid");
    for (size_t i = 0; i < json_array_size(grid); i++) {
        const char *mode = cgam_json_get_text(json_array_get(grid, i), "mode");
        if (strcmp(mode, coupled ? "coupled" : "first") == 0) return true;
    }
    return false;
}

/* A curve of one column and mode; se NULL: without bars. */
static void curve(FILE *to, int64_t k, double zero, int coupled, const char *y, const char *se,
                  const char *look, const char *title)
{
    fprintf(to,
            "  'gates.csv' using (column('shots') == %d && column('coupled') == %d ? "
            "(column('alpha') > 0 ? column('alpha') : %.6g) : NaN):(column('%s'))",
            (int)k, coupled, zero, y);
    if (se) fprintf(to, ":(column('%s')) with yerrorlines", se);
    else fprintf(to, " with linespoints");
    fprintf(to, " %s title '%s', \\\n", look, title);
}

void cgam_gates_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    int64_t k = cgam_json_get_int(entry, "k");
    char look[80], title[60];
    cgam_page_panels(to, f);
    fprintf(to,
            "set tmargin at screen 0.92\nset bmargin at screen 0.40\nset lmargin at screen "
            "0.075\nset rmargin at screen 0.485\nset key at screen 0.28, screen 0.27 center top\n");
    double zero = alpha_axis(doc, to);
    fprintf(to,
            "set title 'accuracy, held out'\nset ylabel 'accuracy'\nset yrange [-0.02:1.02]\nplot "
            "\\\n");
    for (int over = 0; over < 2; over++) {
        const char *of = over ? "full" : "restricted";
        for (int mode = 0; mode < 2; mode++) {
            if (!has_mode(entry, mode)) continue;
            snprintf(look, sizeof look, "lt %d lw %s pt %d ps 0.8 dt %d", mode_style[mode],
                     mode_width[mode], over ? 6 : 7, over ? 2 : 1);
            snprintf(title, sizeof title, "%s, over %s", modes[mode], over ? "words" : "labels");
            curve(to, k, zero, mode, of, over ? "full_se" : "restricted_se", look, title);
        }
    }
    fprintf(
        to,
        "  %.6g with lines lt 8 lw 1.5 title 'zero-shot, labels', \\\n  %.6g with lines lt 3 lw "
        "1.5 title 'demonstrations, labels', \\\n  %.6g with lines lt 3 lw 1.5 dt 2 title "
        "'demonstrations, words'\nunset label 1\n",
        cgam_json_get_real(entry, "zero_shot.restricted"),
        cgam_json_get_real(entry, "icl.restricted"), cgam_json_get_real(entry, "icl.full"));
    fprintf(to, "set lmargin at screen 0.575\nset rmargin at screen 0.985\nset key at screen 0.78, "
                "screen 0.27 center top\nset title 'effective number of words'\nset ylabel "
                "'N_{eff}'\nset yrange [0.9:*]\nset logscale y\nset format y '%%g'\nplot \\\n");
    for (int mode = 0; mode < 2; mode++) {
        if (!has_mode(entry, mode)) continue;
        snprintf(look, sizeof look, "lt %d lw %s pt 7 ps 0.8", mode_style[mode], mode_width[mode]);
        curve(to, k, zero, mode, "neff", NULL, look, modes[mode]);
    }
    fprintf(to, "  NaN with lines lc rgb '#bbbbbb' dt 2 lw 1.2 title '1/μ_{max}', \\\n  NaN with "
                "lines lc rgb '#888888' dt 3 lw 1.5 title 'α_{crit}'\nunset multiplot\n");
}

void cgam_gates_draw_spectrum(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index;
    (void)f;
    fprintf(to,
            "set logscale xy\nset xlabel 'mode'\nset ylabel 'eigenvalue of Z^TZ'\nset format y "
            "'10^{%%L}'\nset key top right\nplot 'gates_spectrum.csv' using (column('mode') + "
            "1):(column('mu') > 0 ? column('mu') : NaN) with lines lt 1 lw 2 title 'spectrum, %s "
            "rows', \\\n  %.6g with lines lc rgb '#888888' dt 3 lw 1.5 title '1/α_{crit}'\n",
            cgam_json_get_text(doc, "rows"), 1 / cgam_json_get_real(doc, "alpha_crit"));
}
