/* fit_figure.c: held-out accuracy against the layer that P takes contexts from, beside P = I, a random P
 * of the same spectrum, the task's mean, no context and demonstrations. */
#include "report/fit_figure.h"

#include "report/html.h"

#include <math.h>

static const struct {
    const char *key, *title, *colour;
    int point, dash;
} curves[] = {{"identity", "P = I", "#000000", 4, 1},
              {"random", "random P, same spectrum", "#999999", 12, 3},
              {"ridge", "ridge", "#0072B2", 7, 1},
              {"lowrank", "low rank", "#D55E00", 9, 1}};
static const struct {
    const char *key, *title, *colour;
    int dash;
} lines[] = {{"icl", "with demonstrations", "#009E73", 1},
             {"mean", "mean y of the task", "#CC79A7", 2},
             {"zero_shot", "no context", "#000000", 3}};
enum { CURVES = sizeof curves / sizeof *curves, LINES = sizeof lines / sizeof *lines };

static void draw(const json_t *doc, const char *over, FILE *to)
{
    double layers = cgam_json_get_real(doc, "model.layers");
    bool lowrank = json_is_object(cgam_json_at(doc, "ridge"));
    fprintf(to,
            "set xlabel 'layer of x'\nset ylabel 'held-out accuracy'\nset xrange [-0.5:%g]\n"
            "set yrange [-0.02:1.02]\nset key outside right center\nplot \\\n",
            isfinite(layers) ? layers + 0.5 : 100);
    for (int i = 0; i < LINES; i++) {
        char path[48];
        snprintf(path, sizeof path, "%s.%s", lines[i].key, over);
        double y = cgam_json_get_real(doc, path);
        if (isfinite(y))
            fprintf(to, "  %.6g with lines lc rgb '%s' dt %d lw 1.5 title '%s', \\\n", y,
                    lines[i].colour, lines[i].dash, lines[i].title);
    }
    for (int i = 0; i < CURVES; i++)
        if (i != CURVES - 1 || lowrank)
            fprintf(
                to,
                "  'fit.csv' using (column('layer') + %g):(column('%s_%s')):(column('%s_%s_se')) "
                "with yerrorlines lc rgb '%s' lw 1.5 pt %d ps 0.7 dt %d title '%s', \\\n",
                0.08 * (i - 1.5), curves[i].key, over, curves[i].key, over, curves[i].colour,
                curves[i].point, curves[i].dash, curves[i].title);
    fputs("  NaN notitle\n", to);
}

void cgam_fit_draw_labels(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index, (void)f;
    draw(doc, "restricted", to);
}

void cgam_fit_draw_words(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index, (void)f;
    draw(doc, "full", to);
}

/* ---- The table ---------------------------------------------------------------------------- */
static void row(FILE *to, const char *name, const json_t *of)
{
    static const char *const keys[] = {"zero_shot", "icl",      "mean",    "identity",
                                       "random",    "held_out", "left_out"};
    for (int over = 0; over < 2; over++) {
        fprintf(to, "<tr><td>");
        cgam_html_text(to, name);
        fprintf(to, "</td><td>%s</td>", over ? "over all words" : "over the labels");
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const json_t *way = json_object_get(of, keys[i]);
            double share = cgam_json_get_real(way, over ? "full" : "restricted");
            double se = cgam_json_get_real(way, over ? "full_se" : "restricted_se");
            if (isnan(share)) fprintf(to, "<td class=\"n\">–</td>");
            else fprintf(to, "<td class=\"n\">%.3f ± %.3f</td>", share, se);
        }
        fprintf(to, "</tr>\n");
    }
}

void cgam_fit_table(FILE *to, const json_t *doc)
{
    size_t i;
    json_t *task;
    const json_t *tasks = cgam_json_at(doc, "by_task");
    fprintf(to,
            "<div class=\"wide\"><table class=\"tight\">\n<thead><tr><th>P</th><th>accuracy</th>"
            "<th class=\"n\">no context</th><th class=\"n\">ICL</th><th class=\"n\">mean y</th>"
            "<th class=\"n\">P = I</th><th class=\"n\">random P</th><th class=\"n\">learned P</th>"
            "<th class=\"n\">task left out</th></tr></thead>\n<tbody>\n");
    row(to, "all", doc);
    json_array_foreach(tasks, i, task) if (json_array_size(tasks) > 1)
        row(to, cgam_json_get_text(task, "task"), task);
    fprintf(to, "</tbody></table></div>\n<p class=\"soft\">P (");
    cgam_html_text(to, cgam_json_get_text(doc, "method"));
    fprintf(to, ") takes the ");
    cgam_html_text(to, cgam_json_get_text(doc, "from"));
    fprintf(
        to,
        " after layer %d to what demonstrations add after the last; the score is that of the last "
        "state without them plus P x. Fitted on one half of the queries, counted on the other; task "
        "left out: fitted on the other tasks. Mean y: of the same task on the half fitted on. R² of P x "
        "about y: %.2f, of the mean %.2f. ± standard errors.</p>\n",
        (int)cgam_json_get_int(doc, "layer"), cgam_json_get_real(doc, "held_out.r2"),
        cgam_json_get_real(doc, "mean.r2"));
}
