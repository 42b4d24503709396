/* models_figure.c: figures of language-model studies: N_eff and label mass by layer, the map of
 * layer pairs beside accuracy against the coupling, steering, separability and alignment. Each is a
 * gnuplot script over the CSV files of the verb, in the manner of figure_scripts.c. */
#include "report/fit_figure.h"
#include "report/gates_figure.h"
#include "report/inject_figure.h"
#include "report/models.h"
#include "report/page.h"
#include "report/text.h"

#include "base/env.h"
#include "io/array.h"

#include <cgam/sweep.h>
#include <math.h>
#include <string.h>

/* ---- Captions ---------------------------------------------------------------------------- */
/* Names come from files: what gnuplot would read as more than a letter becomes a dash. */
static void plain(const char *name, char *text, size_t size)
{
    size_t used = 0;
    for (; *name && used + 1 < size; name++) {
        unsigned char c = (unsigned char)*name;
        bool fine = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    strchr(" .,+-/()", c);
        text[used++] = fine ? (char)c : '-';
    }
    text[used] = '\0';
}

static void caption(cgam_lm_part part, const json_t *doc, char *text)
{
    char file[80], data[80];
    plain(cgam_json_get_text(doc, "model.file"), file, sizeof file);
    plain(cgam_json_get_text(doc, "dataset"), data, sizeof data);
    size_t used = 0;
    cgam_text_add(
        text, CGAM_CAPTION_MAX, &used,
        "cgam %s, lm %s: %s, %s, %lld queries, seed %lld, demonstrations %s, states %s",
        CGAM_VERSION, cgam_lm_part_name(part), data, file,
        (long long)cgam_json_get_int(doc, "queries"), (long long)cgam_json_get_int(doc, "seed"),
        strcmp(cgam_json_get_text(doc, "demos"), "shared") == 0 ? "shared" : "per query",
        strcmp(cgam_json_get_text(doc, "engine"), "exact") == 0 ? "exact" : "by libllama");
    if (part == CGAM_LM_NEFF || part == CGAM_LM_SWEEP) {
        plain(cgam_json_get_text(doc, "lens"), file, sizeof file);
        cgam_text_add(text, CGAM_CAPTION_MAX, &used, ", lens %s", file);
    }
    if (part == CGAM_LM_SWEEP || part == CGAM_LM_STEER) {
        plain(cgam_json_get_text(doc, "lambda_scale"), file, sizeof file);
        cgam_text_add(text, CGAM_CAPTION_MAX, &used, ", λ %s", file);
    }
    if (part == CGAM_LM_GATES)
        cgam_text_add(text, CGAM_CAPTION_MAX, &used, ", %s rows",
                      strcmp(cgam_json_get_text(doc, "rows"), "unit") == 0 ? "unit" : "raw");
    if (part == CGAM_LM_SWEEP)
        cgam_text_add(text, CGAM_CAPTION_MAX, &used, ", contexts from %s",
                      json_is_true(cgam_json_at(doc, "in_sample")) ? "the same queries"
                                                                   : "the other half");
}

/* ---- Pieces of scripts ------------------------------------------------------------------- */
enum { WIDE = 720, HIGH = 480 };

static const char *shots_text(int64_t k, char text[32])
{
    if (k == 0) snprintf(text, 32, "zero-shot");
    else snprintf(text, 32, "%d shot%s", (int)k, k == 1 ? "" : "s");
    return text;
}

static const char *ending(size_t i, size_t count) { return i + 1 < count ? ", \\\n" : "\n"; }

/* Curves of y with a band from low to high, one for each number of shots. */
typedef struct banded {
    const char *file, *y;
    const char *low, *high; /* what follows y at the edges of the band */
} banded;

static void shots_curves(FILE *to, const json_t *curves, const banded *b)
{
    size_t count = json_array_size(curves);
    for (size_t i = 0; i < count; i++) {
        int64_t k = cgam_json_get_int(json_array_get(curves, i), "k");
        fprintf(to,
                "  '%s' using (column('shots') == %d ? column('layer') : NaN):(%s%s):(%s%s) with "
                "filledcurves lt %d fs transparent solid 0.15 noborder notitle, \\\n",
                b->file, (int)k, b->y, b->low, b->y, b->high, cgam_page_style((int64_t)i));
    }
    for (size_t i = 0; i < count; i++) {
        char text[32];
        int64_t k = cgam_json_get_int(json_array_get(curves, i), "k");
        fprintf(to,
                "  '%s' using (column('shots') == %d ? column('layer') : NaN):(%s) with "
                "linespoints lt %d title '%s'%s",
                b->file, (int)k, b->y, cgam_page_style((int64_t)i), shots_text(k, text),
                ending(i, count));
    }
}

/* Layers are whole numbers; about a dozen of them are named on an axis. */
static void layer_axis(FILE *to, char axis, int64_t layers)
{
    fprintf(to, "set %ctics 0, %d\nset %crange [-0.5:%g]\n", axis, (int)(layers / 13 + 1), axis,
            (double)layers - 0.5);
}

/* How often chance hits the right one of the labels. */
static double chance_of(const json_t *doc)
{
    int64_t labels = cgam_json_get_int(doc, "labels");
    return labels > 0 ? 1 / (double)labels : 0;
}

/* The legend of all panels, in a row or two under them: NaN drawn in the style of each curve. */
static void legend_begin(FILE *to, double low, double high)
{
    fprintf(to,
            "unset label 1\nset lmargin at screen 0.02\nset rmargin at screen 0.98\nset tmargin at "
            "screen %.3f\nset bmargin at screen %.3f\nunset border\nunset tics\nunset grid\nunset "
            "title\nunset colorbox\nunset xlabel\nunset ylabel\nunset logscale\nset xrange [0:1]\n"
            "set yrange [0:1]\nset key center center horizontal maxrows 2\nplot \\\n",
            high, low);
}

static void legend_end(FILE *to)
{
    fputs("set border 3\nset tics nomirror out\nset xtics nomirror out\nset ytics nomirror out\n"
          "set grid ytics lc rgb '#dddddd' lw 1 dt 1\nunset key\nunset multiplot\n",
          to);
}

#define GREY "lc rgb '#888888' dt 3 lw 1.5"

/* ---- N_eff ------------------------------------------------------------------------------- */
static void draw_neff(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index;
    bool mass = strcmp(f->name, "mass") == 0;
    double words = fmax(10, cgam_json_get_real(doc, "model.vocab"));
    layer_axis(to, 'x', cgam_models_layers(doc));
    fputs("set xlabel 'layer'\nset bmargin at screen 0.27\n"
          "set key at screen 0.52, screen 0.105 center center horizontal maxrows 2\n",
          to);
    if (mass)
        fputs("set ylabel 'probability of the labels together'\nset yrange [-0.02:1.02]\nplot \\\n",
              to);
    else
        fprintf(to,
                "set ylabel 'effective number of words  N_{eff}'\nset logscale y\n"
                "set format y '10^{%%T}'\nset yrange [0.9:%g]\nplot \\\n"
                "  %.0f with lines lc rgb '#888888' dt 1 lw 1.5 title 'vocabulary', \\\n"
                "  %d with lines " GREY " title 'labels', \\\n",
                2.2 * words, words, (int)cgam_json_get_int(doc, "labels"));
    shots_curves(
        to, cgam_json_at(doc, "curves"),
        mass ? &(banded){"neff.csv", "column('label_mass')",
                         "-1.96*column('label_mass_sd')/sqrt(column('queries'))",
                         "+1.96*column('label_mass_sd')/sqrt(column('queries'))"}
             : &(banded){"neff.csv", "column('neff_entropy')",
                         "*exp(-1.96*column('log_neff_entropy_sd')/sqrt(column('queries')))",
                         "*exp(1.96*column('log_neff_entropy_sd')/sqrt(column('queries')))"});
}

/* ---- Sweep ------------------------------------------------------------------------------- */
static const struct {
    const char *path, *title; /* of the held-out accuracy in a document; its error is path_se */
} answers[] = {{"zero_shot.%", "zero-shot"},
               {"icl.%", "with demonstrations"},
               {"best.%.held_out", "query + λ context"},
               {"controls.flipped.%.held_out", "flipped demonstrations"},
               {"controls.other_task.%.held_out", "context of another task"},
               {"controls.label_mean.%.held_out", "mean of the label rows"},
               {"controls.centred.held_out", "zero-shot, centred"}};
enum { ANSWERS = sizeof answers / sizeof *answers, RETRIEVAL = 2, CENTRED = ANSWERS - 1 };
/* Line types: what the study is about is black and solid. */
static const int answer_style[ANSWERS] = {8, 2, 1, 4, 5, 6, 7};

static const char *const over_titles[] = {"over the labels", "over the whole vocabulary"};

static double answer(const json_t *entry, int which, int over)
{
    return cgam_models_over(entry, answers[which].path, over);
}

static double answer_se(const json_t *entry, int which, int over)
{
    char path[80];
    snprintf(path, sizeof path, "%s_se", answers[which].path);
    return cgam_models_over(entry, path, over);
}

static void shots_data(const json_t *doc, FILE *to)
{
    const json_t *shots = cgam_json_at(doc, "shots");
    size_t count = json_array_size(shots);
    for (int over = 0; over < 2; over++) {
        fprintf(to, "$over%d << EOD\nk", over);
        for (int a = 0; a < ANSWERS; a++) fprintf(to, ",a%d,se%d", a, a);
        for (size_t i = 0; i < count; i++) {
            const json_t *entry = json_array_get(shots, i);
            fprintf(to, "\n%d", (int)cgam_json_get_int(entry, "k"));
            for (int a = 0; a < ANSWERS; a++)
                fprintf(to, ",%.6g,%.6g", answer(entry, a, over), answer_se(entry, a, over));
        }
        fprintf(to, "\nEOD\n");
    }
}

/* The answers' entries of a legend. */
static void answers_legend(FILE *to, const char *with)
{
    for (int a = 0; a < ANSWERS; a++)
        fprintf(to, "  NaN with %s lt %d lw %s title '%s', \\\n", with, answer_style[a],
                a < 3 ? "2.5" : "1.5", answers[a].title);
    fputs("  NaN with lines " GREY " title 'chance'\n", to);
}

static void draw_shots(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index;
    const json_t *shots = cgam_json_at(doc, "shots");
    size_t count = json_array_size(shots);
    cgam_page_panels(to, f);
    double first = cgam_json_get_real(json_array_get(shots, 0), "k");
    double last = cgam_json_get_real(json_array_get(shots, count - 1), "k");
    fprintf(to,
            "set xlabel 'demonstrations'\nset yrange [-0.02:1.02]\nunset key\nset logscale x 2\n"
            "set xrange [%g:%g]\nset tmargin at screen 0.91\nset bmargin at screen 0.33\n"
            "set ylabel 'accuracy, held out'\n",
            0.8 * fmax(first, 1), 1.25 * fmax(last, 1));
    for (int over = 0; over < 2; over++) {
        fprintf(to, "set lmargin at screen %.3f\nset rmargin at screen %.3f\nset title '%s'\n",
                over ? 0.57 : 0.085, over ? 0.98 : 0.495, over_titles[over]);
        fprintf(to, "%sset xtics (", over ? "unset label 1\nunset ylabel\n" : "");
        for (size_t i = 0; i < count; i++) {
            int k = (int)cgam_json_get_int(json_array_get(shots, i), "k");
            fprintf(to, "%s'%d' %d", i ? ", " : "", k, k);
        }
        fprintf(to, ")\nplot \\\n");
        for (int a = 0; a < ANSWERS; a++) {
            if (over && a == CENTRED) continue; /* only the labels can be centred */
            /* side by side within a few percent, so that bars of equal answers can be told apart */
            fprintf(to,
                    "  $over%d using ($1*%.4f):%d:%d with yerrorlines lt %d lw %s notitle, \\\n",
                    over, 1 + 0.02 * (a - 3), 2 * a + 2, 2 * a + 3, answer_style[a],
                    a < 3 ? "2.5" : "1.5");
        }
        if (over) fputs("  NaN notitle\n", to); /* among all words chance is nothing */
        else fprintf(to, "  %.6g with lines " GREY " notitle\n", chance_of(doc));
    }
    legend_begin(to, 0.06, 0.17);
    answers_legend(to, "linespoints");
    legend_end(to);
}

/* Accuracy against the coupling: the best pair of each kind of context, and what needs none. The
 * study's own contexts are drawn last, over their baselines. */
static void steps_panel(FILE *to, const json_t *entry, int64_t k, int over, double chance)
{
    const double low = 0.01, high = 100;
    fprintf(to,
            "set logscale x\nset format x '%%g'\nset xrange [%g:%g]\nset yrange [-0.02:1.02]\n"
            "set xlabel 'coupling  λ'\nset ylabel 'accuracy'\nset grid ytics lc rgb '#dddddd'\n"
            "plot \\\n",
            low, high);
    for (int a = 0; a < ANSWERS; a++)
        if (a < RETRIEVAL || (a == CENTRED && over == 0))
            fprintf(to, "  %.6g with lines lt %d lw 1.5 notitle, \\\n", answer(entry, a, over),
                    answer_style[a]);
    if (over == 0) fprintf(to, "  %.6g with lines " GREY " notitle, \\\n", chance);
    for (int kind = 3; kind >= 0; kind--) {
        int a = RETRIEVAL + kind;
        char rows[200];
        snprintf(rows, sizeof rows,
                 "column('shots') == %d && column('over_vocabulary') == %d && column('context') == "
                 "%d",
                 (int)k, over, kind);
        fprintf(to,
                "  'sweep_steps.csv' using (%s ? (column('lambda_from') < %g ? %g : "
                "column('lambda_from')) : NaN):(column('accuracy')) with steps lt %d lw %s "
                "notitle, \\\n"
                "  'sweep_steps.csv' using (%s && stringcolumn('lambda_to') eq 'inf' ? "
                "column('lambda_from') : NaN):(column('accuracy')):(%g - "
                "column('lambda_from')):(0) with vectors nohead lt %d lw %s notitle%s",
                rows, low, low, answer_style[a], kind ? "1.8" : "3", rows, high, answer_style[a],
                kind ? "1.8" : "3", kind ? ", \\\n" : "\n");
    }
}

static void draw_sweep(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    int64_t layers = cgam_models_layers(doc), k = cgam_json_get_int(entry, "k");
    cgam_page_panels(to, f);
    fprintf(to, "set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', "
                "0.75 '#8c2981', 1 '#3b0f70')\nset cbrange [0:1]\n");
    for (int over = 0; over < 2; over++) {
        double top = over ? 0.54 : 0.96;
        const char *name = cgam_sweep_over_name((cgam_sweep_over)over);
        const json_t *best = cgam_json_at(cgam_json_at(entry, "best"), name);
        int q = (int)cgam_json_get_int(best, "query_layer");
        int c = (int)cgam_json_get_int(best, "context_layer");
        fputs("unset logscale x\n", to);
        layer_axis(to, 'x', layers);
        layer_axis(to, 'y', layers);
        fprintf(to,
                "set tmargin at screen %.3f\nset bmargin at screen %.3f\nset lmargin at screen "
                "0.065\nset rmargin at screen 0.405\nset format x '%%g'\n"
                "set title 'best accuracy %s'\nset xlabel 'query layer'\nset ylabel 'context "
                "layer'\nunset grid\nunset key\n"
                "set colorbox user origin screen 0.415, screen %.3f size screen 0.012, screen "
                "0.30\n"
                "plot 'sweep.csv' every ::%lld::%lld using (column('query_layer')):"
                "(column('context_layer')):(column('%s')) with image pixels, \\\n"
                "  '+' using (%d):(%d) every ::0::0 with points pt 4 ps 1.6 lw 3 lc rgb "
                "'#ffffff', \\\n"
                "  '+' using (%d):(%d) every ::0::0 with points pt 4 ps 1.3 lw 1.5 lc rgb "
                "'#000000'\n",
                top, top - 0.30, over_titles[over], top - 0.30,
                (long long)(index * layers * layers),
                (long long)((index + 1) * layers * layers - 1), name, q, c, q, c);
        fprintf(
            to,
            "unset label 1\nset lmargin at screen 0.565\nset rmargin at screen 0.98\n"
            "set xtics autofreq\nset ytics autofreq\nset title 'at the best pair of each, %s'\n",
            over_titles[over]);
        steps_panel(to, entry, k, over, chance_of(doc));
    }
    legend_begin(to, 0.05, 0.13);
    answers_legend(to, "lines");
    legend_end(to);
}

/* ---- Steering ---------------------------------------------------------------------------- */
static const char *const context_titles[] = {"right facts", "wrong objects",
                                             "objects of another relation"};
static const int context_style[] = {2, 3, 4};

/* One figure: a row of panels for each measure, a panel for each coupling. */
enum { STEER_PANELS = 4, STEER_ROWS = 2 };
static const char *const steer_measures[STEER_ROWS] = {"log_p", "log_odds"};
static const char *const steer_labels[STEER_ROWS] = {"mean log p of the answer",
                                                     "log odds against other objects"};

typedef struct steering {
    const json_t *entry;
    int shots, panels;
    double lambda[STEER_PANELS];
    double baseline[STEER_ROWS], least[STEER_ROWS], most[STEER_ROWS];
    bool odds_band; /* their errors are known, which takes more than one answer */
} steering;

static steering measure_steer(const json_t *doc, int64_t index)
{
    steering s = {.entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index)};
    const json_t *curves = cgam_json_at(s.entry, "curves");
    s.shots = (int)cgam_json_get_int(s.entry, "k");
    for (size_t i = 0; i < json_array_size(curves); i++) {
        double x = cgam_json_get_real(json_array_get(curves, i), "lambda");
        bool known = false;
        for (int j = 0; j < s.panels; j++) known = known || s.lambda[j] == x;
        if (!known && s.panels < STEER_PANELS) s.lambda[s.panels++] = x;
    }
    for (int row = 0; row < STEER_ROWS; row++) {
        char path[32];
        snprintf(path, sizeof path, "baseline.%s", steer_measures[row]);
        double least = cgam_json_get_real(s.entry, path), most = least;
        s.baseline[row] = least;
        for (size_t i = 0; i < json_array_size(curves); i++)
            for (int64_t l = 0; l < cgam_models_layers(doc); l++) {
                const json_t *curve = json_array_get(curves, i);
                const char *one = steer_measures[row];
                double room = row ? 1.96 * cgam_json_nth(curve, "log_odds_gain_se", l) : 0;
                s.odds_band = s.odds_band || (row && !isnan(room));
                if (isnan(room)) room = 0;
                least = fmin(least, cgam_json_nth(curve, row ? one : "log_p_low", l) - room);
                most = fmax(most, cgam_json_nth(curve, row ? one : "log_p_high", l) + room);
            }
        double room = 0.05 * (most - least) + 1e-6;
        s.least[row] = least - room;
        s.most[row] = most + room;
    }
    return s;
}

static void steer_panel(FILE *to, const steering *s, int row, int j)
{
    double width = 0.91 / s->panels, left = 0.08 + j * width;
    char at[3][160], text[32];
    fprintf(to,
            "set lmargin at screen %.3f\nset rmargin at screen %.3f\nset tmargin at screen "
            "%.3f\nset bmargin at screen %.3f\nset yrange [%.6g:%.6g]\n",
            left, left + width - 0.025, row ? 0.535 : 0.945, row ? 0.215 : 0.605, s->least[row],
            s->most[row]);
    if (j == 0) fprintf(to, "set ylabel '%s'\nset format y '%%g'\n", steer_labels[row]);
    else fprintf(to, "unset ylabel\nset format y ''\n");
    if (row == 0)
        fprintf(to, "set title 'λ = %s'\nunset xlabel\n", cgam_short_text(s->lambda[j], text));
    else fprintf(to, "unset title\nset xlabel 'context layer'\n");
    fprintf(to, "plot \\\n");
    for (int c = 0; c < 3; c++) {
        snprintf(at[c], sizeof at[c],
                 "column('shots') == %d && column('context') == %d && "
                 "abs(column('lambda')-%.17g) < 1e-12 ? column('layer') : NaN",
                 s->shots, c, s->lambda[j]);
        if (row && !s->odds_band) continue;
        fprintf(to,
                "  'steer.csv' using (%s):(%s):(%s) with filledcurves lt %d fs transparent solid "
                "0.18 noborder notitle, \\\n",
                at[c],
                row ? "column('log_odds')-1.96*column('log_odds_gain_se')" : "column('log_p_low')",
                row ? "column('log_odds')+1.96*column('log_odds_gain_se')" : "column('log_p_high')",
                context_style[c]);
    }
    for (int c = 0; c < 3; c++)
        fprintf(to,
                "  'steer.csv' using (%s):(column('%s')) with linespoints lt %d ps 0.5 title "
                "'%s', \\\n",
                at[c], steer_measures[row], context_style[c], context_titles[c]);
    fprintf(to,
            "  %.6g with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'\nunset label 1\n",
            s->baseline[row]);
}

static void draw_steer(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    const steering s = measure_steer(doc, index);
    cgam_page_panels(to, f);
    fputs("unset key\n", to);
    layer_axis(to, 'x', cgam_models_layers(doc));
    for (int row = 0; row < STEER_ROWS; row++)
        for (int j = 0; j < s.panels; j++) steer_panel(to, &s, row, j);
    legend_begin(to, 0.06, 0.12);
    for (int c = 0; c < 3; c++)
        fprintf(to, "  NaN with linespoints lt %d title '%s', \\\n", context_style[c],
                context_titles[c]);
    fputs("  NaN with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'\n", to);
    legend_end(to);
}

/* ---- Probe ------------------------------------------------------------------------------- */
static void draw_probe(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index;
    const json_t *curves = cgam_json_at(doc, "curves");
    double n = (double)cgam_json_get_int(doc, "queries");
    char low[120], high[120];
    cgam_page_panels(to, f);
    layer_axis(to, 'x', cgam_models_layers(doc));
    fprintf(to,
            "set xlabel 'layer'\nset tmargin at screen 0.91\nset bmargin at screen 0.33\n"
            "set lmargin at screen 0.08\nset rmargin at screen 0.48\nunset key\n"
            "set title 'separability'\nset ylabel 'held-out accuracy of a probe'\n"
            "set yrange [0:1.02]\nplot %.6g with lines " GREY " notitle, \\\n",
            chance_of(doc));
    shots_curves(to, curves,
                 &(banded){"probe.csv", "column('separability')", "-1.96*column('separability_se')",
                           "+1.96*column('separability_se')"});
    snprintf(low, sizeof low, "-1.96*column('margin_sd')/%.6g", sqrt(fmax(1, n)));
    snprintf(high, sizeof high, "+1.96*column('margin_sd')/%.6g", sqrt(fmax(1, n)));
    fprintf(to, "unset label 1\nset lmargin at screen 0.58\nset rmargin at screen 0.98\n"
                "set title 'alignment'\nset ylabel 'margin of the cosine'\nset yrange [*:*]\n"
                "plot 0 with lines " GREY " notitle, \\\n");
    shots_curves(to, curves, &(banded){"probe.csv", "column('margin')", low, high});
    legend_begin(to, 0.06, 0.17);
    for (size_t i = 0; i < json_array_size(curves); i++) {
        char text[32];
        fprintf(to, "  NaN with linespoints lt %d title '%s', \\\n", cgam_page_style((int64_t)i),
                shots_text(cgam_json_get_int(json_array_get(curves, i), "k"), text));
    }
    fputs("  NaN with lines " GREY " title 'chance'\n", to);
    legend_end(to);
}

/* ---- The list ---------------------------------------------------------------------------- */
static const struct {
    const char *name; /* a figure's begins with it */
    cgam_lm_part part;
    bool each; /* a figure for every number of shots */
    int width, height;
    void (*data)(const json_t *doc, FILE *to); /* outside the loop over terminals; NULL = none */
    /* index: of the number of shots, where there is a figure for each */
    void (*draw)(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
    const char *title, *words;
} scripts[] = {
    {"neff", CGAM_LM_NEFF, false, WIDE, HIGH, NULL, draw_neff, "Effective number of words by layer",
     "Geometric mean of exp(entropy) over queries; bands: 95% of the mean."},
    {"mass", CGAM_LM_NEFF, false, WIDE, HIGH, NULL, draw_neff, "Probability of the labels by layer",
     "Mean over queries; bands: 95% of the mean."},
    {"shots", CGAM_LM_SWEEP, false, 1080, 560, shots_data, draw_shots,
     "Accuracy against the number of demonstrations",
     "Pair of layers and coupling chosen on one half of the queries, counted on the other. Bars: one "
     "standard error."},
    {"sweep", CGAM_LM_SWEEP, true, 1080, 960, NULL, draw_sweep,
     "Retrieval for every pair of layers",
     "Left: the best accuracy over λ for each pair of layers, square: the best pair. Right: "
     "accuracy as an exact step function of λ at the best pair of each kind of context."},
    {"steer", CGAM_LM_STEER, true, 1080, 760, NULL, draw_steer,
     "Steering by contexts of each layer",
     "The query is held at the last layer. Above: with 95% bootstrap bands. Below: the answer "
     "against the other objects of the relation; bands: 95% of the gain over no context."},
    {"probe", CGAM_LM_PROBE, false, 1080, 520, NULL, draw_probe,
     "Separability and alignment by layer", "Bands: 95% of the mean."},
    {"inject", CGAM_LM_INJECT, true, 980, 520, NULL, cgam_inject_draw,
     "Accuracy against the layer of an edit",
     "The last token's state of a prompt without demonstrations is edited after one layer. Vectors come "
     "from the other half of the queries; bars: standard errors."},
    {"gates", CGAM_LM_GATES, true, 1080, 620, NULL, cgam_gates_draw,
     "The gate operator over the vocabulary",
     "λ is chosen at each α on one half of the queries and counted on the other; bars: standard errors. "
     "The left end of the axis is α = 0."},
    {"spectrum", CGAM_LM_GATES, false, WIDE, HIGH, NULL, cgam_gates_draw_spectrum,
     "Spectrum of the unembedding", "Eigenvalues of ZᵀZ, the largest first."},
    {"fit_labels", CGAM_LM_FIT, false, 980, 520, NULL, cgam_fit_draw_labels,
     "A learned P over the labels, against the layer it takes contexts from",
     "P is fitted on one half of the queries and counted on the other; bars: standard errors."},
    {"fit_words", CGAM_LM_FIT, false, 980, 520, NULL, cgam_fit_draw_words,
     "A learned P over all words, against the layer it takes contexts from",
     "P is fitted on one half of the queries and counted on the other; bars: standard errors."},
};

void cgam_models_figures(cgam_lm_part part, const json_t *doc, cgam_figures *out)
{
    const json_t *shots = cgam_json_at(doc, "shots");
    size_t count = json_array_size(shots);
    out->count = 0;
    const json_t *counted = cgam_json_at(doc, "counted");
    if (part == CGAM_LM_STEER && json_is_integer(counted) && json_integer_value(counted) == 0)
        return; /* no answer could be told from the others: there is nothing to draw */
    for (size_t k = 0; k < sizeof scripts / sizeof *scripts; k++) {
        if (scripts[k].part != part || (scripts[k].data && count < 2)) continue;
        for (size_t i = 0; i < (scripts[k].each ? count : 1); i++) {
            if (out->count == CGAM_FIGURES_MAX) return;
            cgam_figure *f = &out->figure[out->count++];
            caption(part, doc, f->caption);
            f->wide = scripts[k].width > WIDE;
            f->name = f->made[0];
            f->title = f->made[1];
            f->words = scripts[k].words;
            snprintf(f->made[0], sizeof f->made[0], "%s", scripts[k].name);
            snprintf(f->made[1], sizeof f->made[1], "%s", scripts[k].title);
            if (!scripts[k].each) continue;
            int n = (int)cgam_json_get_int(json_array_get(shots, i), "k");
            snprintf(f->made[0], sizeof f->made[0], "%s_%d", scripts[k].name, n);
            snprintf(f->made[1], sizeof f->made[1], "%s, %d shot%s", scripts[k].title, n,
                     n == 1 ? "" : "s");
        }
    }
}

cgam_status cgam_models_figures_write(cgam_env *env, cgam_lm_part part, const json_t *doc,
                                      const char *folder, cgam_figures *out)
{
    cgam_models_figures(part, doc, out);
    cgam_status status = CGAM_OK;
    int64_t index = 0;
    for (int i = 0; i < out->count && status == CGAM_OK; i++) {
        const cgam_figure *f = &out->figure[i];
        size_t k = 0;
        while (strncmp(f->name, scripts[k].name, strlen(scripts[k].name)) != 0) k++;
        cgam_page p;
        status = cgam_page_head(env, folder, f, &p);
        if (status != CGAM_OK) break;
        if (scripts[k].data) scripts[k].data(doc, p.to);
        cgam_page_begin(f, scripts[k].width, scripts[k].height, &p);
        scripts[k].draw(doc, index, f, p.to);
        index += scripts[k].each;
        status = cgam_page_close(&p);
    }
    return status;
}
