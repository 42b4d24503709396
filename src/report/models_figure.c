/* models_figure.c: figures of language-model studies: N_eff and label mass by layer, the map of
 * layer pairs beside accuracy against the coupling, steering, separability and alignment. Each is a
 * gnuplot script over the CSV files of the verb, in the manner of figure_scripts.c. */
#include "report/models.h"
#include "report/page.h"
#include "report/text.h"

#include "base/env.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static const char *const part_names[CGAM_MODELS_PARTS] = {"neff", "sweep", "steer", "probe"};

const char *cgam_models_part_name(cgam_models_part part) { return part_names[part]; }

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

static void add(char *text, const char *format, ...) CGAM_PRINTF(2, 3);
static void add(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, CGAM_CAPTION_MAX - used, format, args);
    va_end(args);
}

static void caption(cgam_models_part part, const json_t *doc, char *text)
{
    char file[80], data[80];
    plain(cgam_json_get_text(doc, "model.file"), file, sizeof file);
    plain(cgam_json_get_text(doc, "dataset"), data, sizeof data);
    text[0] = '\0';
    add(text, "cgam %s, lm %s: %s, %s, %lld queries, seed %lld, demonstrations %s, states %s",
        CGAM_VERSION, part_names[part], data, file, (long long)cgam_json_get_int(doc, "queries"),
        (long long)cgam_json_get_int(doc, "seed"),
        strcmp(cgam_json_get_text(doc, "demos"), "shared") == 0 ? "shared" : "per query",
        strcmp(cgam_json_get_text(doc, "engine"), "exact") == 0 ? "exact" : "by libllama");
    if (part == CGAM_MODELS_NEFF || part == CGAM_MODELS_SWEEP) {
        plain(cgam_json_get_text(doc, "lens"), file, sizeof file);
        add(text, ", lens %s", file);
    }
    if (part == CGAM_MODELS_SWEEP || part == CGAM_MODELS_STEER) {
        plain(cgam_json_get_text(doc, "lambda_scale"), file, sizeof file);
        add(text, ", λ %s", file);
    }
    if (part == CGAM_MODELS_SWEEP)
        add(text, ", contexts from %s",
            json_is_true(cgam_json_at(doc, "in_sample")) ? "the same queries" : "the other half");
}

/* ---- The list ---------------------------------------------------------------------------- */
static void add_figure(cgam_figures *out, const char *caption_text, const char *name, int64_t k,
                       const char *title)
{
    if (out->count == CGAM_FIGURES_MAX) return;
    cgam_figure *f = &out->figure[out->count++];
    snprintf(f->caption, sizeof f->caption, "%s", caption_text);
    f->wide = strcmp(name, "neff") != 0 && strcmp(name, "mass") != 0;
    f->name = f->made[0];
    f->title = f->made[1];
    if (k < 0) {
        snprintf(f->made[0], sizeof f->made[0], "%s", name);
        snprintf(f->made[1], sizeof f->made[1], "%s", title);
    } else {
        snprintf(f->made[0], sizeof f->made[0], "%s_%d", name, (int)k);
        snprintf(f->made[1], sizeof f->made[1], "%s, %d shot%s", title, (int)k, k == 1 ? "" : "s");
    }
}

void cgam_models_figures(cgam_models_part part, const json_t *doc, cgam_figures *out)
{
    char text[CGAM_CAPTION_MAX];
    const json_t *shots = cgam_json_at(doc, "shots");
    out->count = 0;
    caption(part, doc, text);
    switch (part) {
    case CGAM_MODELS_NEFF:
        add_figure(out, text, "neff", -1, "Effective number of words by layer");
        add_figure(out, text, "mass", -1, "Probability of the labels by layer");
        break;
    case CGAM_MODELS_SWEEP:
        if (json_array_size(shots) > 1)
            add_figure(out, text, "shots", -1, "Accuracy against the number of demonstrations");
        for (size_t i = 0; i < json_array_size(shots); i++)
            add_figure(out, text, "sweep", cgam_json_get_int(json_array_get(shots, i), "k"),
                       "Retrieval for every pair of layers");
        break;
    case CGAM_MODELS_STEER:
        for (size_t i = 0; i < json_array_size(shots); i++)
            add_figure(out, text, "steer", cgam_json_get_int(json_array_get(shots, i), "k"),
                       "Steering by contexts of each layer");
        break;
    case CGAM_MODELS_PROBE:
        add_figure(out, text, "probe", -1, "Separability and alignment by layer");
        break;
    case CGAM_MODELS_PARTS: break;
    }
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
    const char *file, *y, *low, *high;
} banded;

static void shots_curves(FILE *to, const json_t *curves, const banded *b)
{
    size_t count = json_array_size(curves);
    for (size_t i = 0; i < count; i++) {
        int64_t k = cgam_json_get_int(json_array_get(curves, i), "k");
        fprintf(to,
                "  '%s' using (column('shots') == %d ? column('layer') : NaN):(%s):(%s) with "
                "filledcurves lt %d fs transparent solid 0.15 noborder notitle, \\\n",
                b->file, (int)k, b->low, b->high, cgam_page_style((int64_t)i));
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

/* Several panels: what is said once belongs to the first of them alone. */
static void panels_begin(cgam_page *p, const cgam_figure *f)
{
    fprintf(p->to,
            "set multiplot\nset label 1 \"%s\" at screen 0.01, screen 0.022 font ',9' tc rgb "
            "'#555555'\n",
            f->caption);
}

static void panels_end(cgam_page *p) { fprintf(p->to, "unset multiplot\n"); }

/* ---- N_eff ------------------------------------------------------------------------------- */
static cgam_status draw_neff(cgam_env *env, const json_t *doc, const char *folder,
                             const cgam_figure *f)
{
    cgam_page p;
    cgam_status status = cgam_page_open(env, folder, f, WIDE, HIGH, &p);
    if (status != CGAM_OK) return status;
    fprintf(p.to,
            "set xlabel 'layer'\nset ylabel 'effective number of words  N_{eff}'\nset logscale y\n"
            "set format y '10^{%%T}'\nset yrange [0.9:%g]\nset xrange [-0.5:%d]\n"
            "set key outside right center\nplot \\\n"
            "  %d with lines lc rgb '#888888' dt 3 lw 1.5 title 'labels', \\\n",
            1.6 * fmax(10, cgam_json_get_real(doc, "model.vocab")), (int)cgam_models_layers(doc),
            (int)cgam_json_get_int(doc, "labels"));
    shots_curves(p.to, cgam_json_at(doc, "curves"),
                 &(banded){"neff.csv", "column('neff_entropy')",
                           "column('neff_entropy')*exp(-1.96*column('log_neff_entropy_sd')/"
                           "sqrt(column('queries')))",
                           "column('neff_entropy')*exp(1.96*column('log_neff_entropy_sd')/"
                           "sqrt(column('queries')))"});
    return cgam_page_close(&p);
}

static cgam_status draw_mass(cgam_env *env, const json_t *doc, const char *folder,
                             const cgam_figure *f)
{
    cgam_page p;
    cgam_status status = cgam_page_open(env, folder, f, WIDE, HIGH, &p);
    if (status != CGAM_OK) return status;
    fprintf(p.to,
            "set xlabel 'layer'\nset ylabel 'probability of the labels together'\n"
            "set yrange [-0.02:1.02]\nset xrange [-0.5:%d]\nset key outside right center\n"
            "plot \\\n",
            (int)cgam_models_layers(doc));
    shots_curves(p.to, cgam_json_at(doc, "curves"),
                 &(banded){"neff.csv", "column('label_mass')",
                           "column('label_mass')-1.96*column('label_mass_sd')/sqrt(column('queries'"
                           "))",
                           "column('label_mass')+1.96*column('label_mass_sd')/sqrt(column('queries'"
                           "))"});
    return cgam_page_close(&p);
}

/* ---- Sweep ------------------------------------------------------------------------------- */
static const struct {
    const char *path, *title; /* of the held-out accuracy in a document; NULL: labels only */
} answers[] = {{"zero_shot.%s", "zero-shot"},
               {"icl.%s", "with demonstrations"},
               {"best.%s.held_out", "query + λ context"},
               {"controls.flipped.%s.held_out", "flipped demonstrations"},
               {"controls.other_task.%s.held_out", "context of another task"},
               {"controls.label_mean.%s.held_out", "mean of the label rows"},
               {"controls.centred.held_out", "zero-shot, centred"}};
enum { ANSWERS = sizeof answers / sizeof *answers, RETRIEVAL = 2, CENTRED = ANSWERS - 1 };
/* Line types: what the study is about is black and solid. */
static const int answer_style[ANSWERS] = {8, 2, 1, 4, 5, 6, 7};

static const char *const over_names[] = {"restricted", "full"};
static const char *const over_titles[] = {"over the labels", "over the whole vocabulary"};

static double answer(const json_t *entry, int which, int over)
{
    char path[80];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(path, sizeof path, answers[which].path, over_names[over]);
#pragma GCC diagnostic pop
    return cgam_json_get_real(entry, path);
}

static cgam_status draw_shots(cgam_env *env, const json_t *doc, const char *folder,
                              const cgam_figure *f)
{
    const json_t *shots = cgam_json_at(doc, "shots");
    size_t count = json_array_size(shots);
    cgam_page p;
    cgam_status status = cgam_page_head(env, folder, f, &p);
    if (status != CGAM_OK) return status;
    for (int over = 0; over < 2; over++) {
        fprintf(p.to, "$over%d << EOD\nk", over);
        for (int a = 0; a < ANSWERS; a++) fprintf(p.to, ",a%d", a);
        for (size_t i = 0; i < count; i++) {
            const json_t *entry = json_array_get(shots, i);
            fprintf(p.to, "\n%d", (int)cgam_json_get_int(entry, "k"));
            for (int a = 0; a < ANSWERS; a++) fprintf(p.to, ",%.6g", answer(entry, a, over));
        }
        fprintf(p.to, "\nEOD\n");
    }
    cgam_page_begin(f, 1080, 470, &p);
    panels_begin(&p, f);
    fprintf(p.to, "set xlabel 'demonstrations'\nset yrange [-0.02:1.02]\n"
                  "set logscale x 2\nset offsets graph 0.05, graph 0.05, 0, 0\n"
                  "set tmargin at screen 0.90\nset bmargin at screen 0.19\n"
                  "set ylabel 'accuracy, held out'\n");
    for (int over = 0; over < 2; over++) {
        fprintf(p.to, "set lmargin at screen %.3f\nset rmargin at screen %.3f\nset title '%s'\n",
                over ? 0.445 : 0.085, over ? 0.735 : 0.375, over_titles[over]);
        if (over) fprintf(p.to, "set key at screen 0.99, screen 0.85 right top\nunset ylabel\n");
        else fprintf(p.to, "unset key\n");
        fprintf(p.to, "set xtics (");
        for (size_t i = 0; i < count; i++) {
            int k = (int)cgam_json_get_int(json_array_get(shots, i), "k");
            fprintf(p.to, "%s'%d' %d", i ? ", " : "", k, k);
        }
        fprintf(p.to, ")\nplot \\\n");
        for (int a = 0; a < ANSWERS; a++)
            if (over == 0 || a != CENTRED)
                fprintf(p.to, "  $over%d using 1:%d with linespoints lt %d lw %s title '%s'%s",
                        over, a + 2, answer_style[a], a < 3 ? "2.5" : "1.5", answers[a].title,
                        a + 1 < ANSWERS ? ", \\\n" : "");
            else /* only the labels can be centred; the legend is that of both */
                fprintf(p.to, "  NaN with linespoints lt %d lw 1.5 title '%s'", cgam_page_style(a),
                        answers[a].title);
        fprintf(p.to, "\n");
    }
    panels_end(&p);
    return cgam_page_close(&p);
}

/* Accuracy against the coupling: the best pair of each kind of context, and what needs none. The
 * study's own contexts are drawn last, over their controls. */
static void steps_panel(FILE *to, const json_t *entry, int64_t k, int over)
{
    const double low = 0.01, high = 100;
    fprintf(to,
            "set logscale x\nset format x '%%g'\nset xrange [%g:%g]\nset yrange [-0.02:1.02]\n"
            "set xlabel 'coupling  λ'\nset ylabel 'accuracy'\nset grid ytics lc rgb '#dddddd'\n"
            "plot \\\n",
            low, high);
    for (int a = 0; a < ANSWERS; a++)
        if (a < RETRIEVAL || (a == CENTRED && over == 0))
            fprintf(to, "  %.6g with lines lt %d lw 1.5 title '%s', \\\n", answer(entry, a, over),
                    answer_style[a], answers[a].title);
    for (int kind = 3; kind >= 0; kind--) {
        int a = RETRIEVAL + kind;
        char rows[200];
        snprintf(rows, sizeof rows,
                 "column('shots') == %d && column('over_vocabulary') == %d && column('context') == "
                 "%d",
                 (int)k, over, kind);
        fprintf(to,
                "  'sweep_steps.csv' using (%s ? (column('lambda_from') < %g ? %g : "
                "column('lambda_from')) : NaN):(column('accuracy')) with steps lt %d lw %s title "
                "'%s', \\\n"
                "  'sweep_steps.csv' using (%s && stringcolumn('lambda_to') eq 'inf' ? "
                "column('lambda_from') : NaN):(column('accuracy')):(%g - "
                "column('lambda_from')):(0) with vectors nohead lt %d lw %s notitle%s",
                rows, low, low, answer_style[a], kind ? "1.8" : "3", answers[a].title, rows, high,
                answer_style[a], kind ? "1.8" : "3", kind ? ", \\\n" : "\n");
    }
}

static cgam_status draw_sweep(cgam_env *env, const json_t *doc, const char *folder, int64_t index,
                              const cgam_figure *f)
{
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    int64_t layers = cgam_models_layers(doc), k = cgam_json_get_int(entry, "k");
    cgam_page p;
    cgam_status status = cgam_page_open(env, folder, f, 1080, 900, &p);
    if (status != CGAM_OK) return status;
    panels_begin(&p, f);
    fprintf(p.to, "set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', "
                  "0.75 '#8c2981', 1 '#3b0f70')\nset cbrange [0:1]\n");
    for (int over = 0; over < 2; over++) {
        double top = over ? 0.48 : 0.95;
        char path[64];
        snprintf(path, sizeof path, "best.%s", over_names[over]);
        const json_t *best = cgam_json_at(entry, path);
        fprintf(p.to,
                "set tmargin at screen %.3f\nset bmargin at screen %.3f\nset lmargin at screen "
                "0.065\nset rmargin at screen 0.385\nunset logscale x\nset format x '%%g'\n"
                "set title 'best accuracy %s'\nset xlabel 'query layer'\nset ylabel 'context "
                "layer'\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\nunset grid\nunset key\n"
                "set colorbox user origin screen 0.395, screen %.3f size screen 0.012, screen "
                "0.33\n"
                "plot 'sweep.csv' every ::%lld::%lld using (column('query_layer')):"
                "(column('context_layer')):(column('%s')) with image pixels, \\\n"
                "  '+' using (%d):(%d) every ::0::0 with points pt 4 ps 1.6 lw 3 lc rgb "
                "'#ffffff', \\\n"
                "  '+' using (%d):(%d) every ::0::0 with points pt 4 ps 1.3 lw 1.5 lc rgb "
                "'#000000'\n",
                top, top - 0.33, over_titles[over], (double)layers - 0.5, (double)layers - 0.5,
                top - 0.33, (long long)(index * layers * layers),
                (long long)((index + 1) * layers * layers - 1), over_names[over],
                (int)cgam_json_get_int(best, "query_layer"),
                (int)cgam_json_get_int(best, "context_layer"),
                (int)cgam_json_get_int(best, "query_layer"),
                (int)cgam_json_get_int(best, "context_layer"));
        fprintf(
            p.to,
            "unset label 1\nset lmargin at screen 0.535\nset rmargin at screen 0.775\nset title 'at the best "
            "pair of each, %s'\n",
            over_titles[over]);
        fprintf(p.to, "set key at screen 0.995, screen %.3f right top font ',11' samplen 2.5\n",
                top - 0.02);
        steps_panel(p.to, entry, k, over);
    }
    panels_end(&p);
    return cgam_page_close(&p);
}

/* ---- Steering ---------------------------------------------------------------------------- */
static const char *const context_titles[] = {"right facts", "wrong objects",
                                             "objects of another relation"};
static const int context_style[] = {2, 3, 4};

static cgam_status draw_steer(cgam_env *env, const json_t *doc, const char *folder, int64_t index,
                              const cgam_figure *f)
{
    enum { PANELS = 4 };
    static const char *const rows[2] = {"log_p", "log_odds"};
    static const char *const labels[2] = {"mean log p of the answer",
                                          "log odds against other objects"};
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    const json_t *curves = cgam_json_at(entry, "curves");
    double lambda[PANELS];
    int panels = 0, k = (int)cgam_json_get_int(entry, "k");
    for (size_t i = 0; i < json_array_size(curves); i++) {
        double x = cgam_json_get_real(json_array_get(curves, i), "lambda");
        bool known = false;
        for (int j = 0; j < panels; j++) known = known || lambda[j] == x;
        if (!known && panels < PANELS) lambda[panels++] = x;
    }
    double least[2], most[2]; /* of each row */
    for (int row = 0; row < 2; row++) {
        char path[32];
        snprintf(path, sizeof path, "baseline.%s", rows[row]);
        least[row] = most[row] = cgam_json_get_real(entry, path);
        for (size_t i = 0; i < json_array_size(curves); i++)
            for (int64_t l = 0; l < cgam_models_layers(doc); l++) {
                const json_t *curve = json_array_get(curves, i);
                double low = cgam_json_get_entry(curve, row ? rows[1] : "log_p_low", l);
                double high = cgam_json_get_entry(curve, row ? rows[1] : "log_p_high", l);
                least[row] = fmin(least[row], low);
                most[row] = fmax(most[row], high);
            }
        double room = 0.05 * (most[row] - least[row]) + 1e-6;
        least[row] -= room;
        most[row] += room;
    }
    cgam_page p;
    cgam_status status = cgam_page_open(env, folder, f, 1080, 760, &p);
    if (status != CGAM_OK) return status;
    panels_begin(&p, f);
    fprintf(p.to, "unset key\nset xrange [-0.5:%d]\n", (int)cgam_models_layers(doc));
    for (int row = 0; row < 2; row++)
        for (int j = 0; j < panels; j++) {
            double width = 0.91 / panels, left = 0.08 + j * width;
            char at[160], text[32];
            fprintf(p.to,
                    "set lmargin at screen %.3f\nset rmargin at screen %.3f\nset tmargin at screen "
                    "%.3f\nset bmargin at screen %.3f\nset yrange [%.6g:%.6g]\n",
                    left, left + width - 0.025, row ? 0.535 : 0.945, row ? 0.215 : 0.605,
                    least[row], most[row]);
            if (j == 0) fprintf(p.to, "set ylabel '%s'\nset format y '%%g'\n", labels[row]);
            else fprintf(p.to, "unset ylabel\nset format y ''\n");
            if (row == 0)
                fprintf(p.to, "set title 'λ = %s'\nunset xlabel\n",
                        cgam_short_text(lambda[j], text));
            else fprintf(p.to, "unset title\nset xlabel 'context layer'\n");
            fprintf(p.to, "plot \\\n");
            if (row == 0)
                for (int c = 0; c < 3; c++)
                    fprintf(p.to,
                            "  'steer.csv' using (column('shots') == %d && column('context') == %d "
                            "&& abs(column('lambda')-%.17g) < 1e-12 ? column('layer') : "
                            "NaN):(column('log_p_low')):(column('log_p_high')) with filledcurves "
                            "lt %d fs transparent solid 0.18 noborder notitle, \\\n",
                            k, c, lambda[j], context_style[c]);
            for (int c = 0; c < 3; c++) {
                snprintf(at, sizeof at,
                         "column('shots') == %d && column('context') == %d && "
                         "abs(column('lambda')-%.17g) < 1e-12",
                         k, c, lambda[j]);
                fprintf(p.to,
                        "  'steer.csv' using (%s ? column('layer') : NaN):(column('%s')) with "
                        "linespoints lt %d ps 0.5 title '%s', \\\n",
                        at, rows[row], context_style[c], context_titles[c]);
            }
            char path[32];
            snprintf(path, sizeof path, "baseline.%s", rows[row]);
            fprintf(
                p.to,
                "  %.6g with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'\nunset label "
                "1\n",
                cgam_json_get_real(entry, path));
        }
    fprintf(p.to, "set lmargin at screen 0.08\nset rmargin at screen 0.97\nset tmargin at screen "
                  "0.12\nset bmargin at screen 0.06\nunset border\nunset tics\nunset grid\n"
                  "unset xlabel\nunset ylabel\nset yrange [0:1]\n"
                  "set key center center horizontal\nplot \\\n");
    for (int c = 0; c < 3; c++)
        fprintf(p.to, "  NaN with linespoints lt %d title '%s', \\\n", context_style[c],
                context_titles[c]);
    fprintf(p.to, "  NaN with lines lc rgb '#000000' dt 3 lw 1.5 title 'no context'\n"
                  "set border 3\nset xtics nomirror out\nset ytics nomirror out\n"
                  "set grid ytics lc rgb '#dddddd' lw 1 dt 1\nunset key\n");
    panels_end(&p);
    return cgam_page_close(&p);
}

/* ---- Probe ------------------------------------------------------------------------------- */
static cgam_status draw_probe(cgam_env *env, const json_t *doc, const char *folder,
                              const cgam_figure *f)
{
    const json_t *curves = cgam_json_at(doc, "curves");
    double n = (double)cgam_json_get_int(doc, "queries");
    char low[120], high[120];
    cgam_page p;
    cgam_status status = cgam_page_open(env, folder, f, 1080, 450, &p);
    if (status != CGAM_OK) return status;
    panels_begin(&p, f);
    fprintf(p.to,
            "set xlabel 'layer'\nset xrange [-0.5:%d]\nset tmargin at screen "
            "0.90\nset bmargin at screen 0.20\n"
            "set lmargin at screen 0.08\nset rmargin at screen 0.42\nunset key\n"
            "set title 'separability'\nset ylabel 'held-out accuracy of a linear probe'\n"
            "set yrange [0:1.02]\nplot %.6g with lines lc rgb '#888888' dt 3 lw 1.5 notitle, \\\n",
            (int)cgam_models_layers(doc), 1 / fmax(1, (double)cgam_json_get_int(doc, "labels")));
    shots_curves(p.to, curves,
                 &(banded){"probe.csv", "column('separability')",
                           "column('separability')-1.96*column('separability_se')",
                           "column('separability')+1.96*column('separability_se')"});
    snprintf(low, sizeof low, "column('margin')-1.96*column('margin_sd')/%.6g", sqrt(fmax(1, n)));
    snprintf(high, sizeof high, "column('margin')+1.96*column('margin_sd')/%.6g", sqrt(fmax(1, n)));
    fprintf(
        p.to,
        "unset label 1\nset lmargin at screen 0.53\nset rmargin at screen 0.86\nset title 'alignment'\n"
        "set ylabel 'margin of the cosine with the label row'\nset yrange [*:*]\n"
        "set key at screen 0.99, screen 0.88 right top\n"
        "plot 0 with lines lc rgb '#888888' dt 3 lw 1.5 title 'chance', \\\n");
    shots_curves(p.to, curves, &(banded){"probe.csv", "column('margin')", low, high});
    panels_end(&p);
    return cgam_page_close(&p);
}

cgam_status cgam_models_figures_write(cgam_env *env, cgam_models_part part, const json_t *doc,
                                      const char *folder, cgam_figures *out)
{
    cgam_models_figures(part, doc, out);
    cgam_status status = CGAM_OK;
    int64_t index = 0; /* of the number of shots */
    for (int i = 0; i < out->count && status == CGAM_OK; i++) {
        const cgam_figure *f = &out->figure[i];
        if (strcmp(f->name, "neff") == 0) status = draw_neff(env, doc, folder, f);
        else if (strcmp(f->name, "mass") == 0) status = draw_mass(env, doc, folder, f);
        else if (strcmp(f->name, "shots") == 0) status = draw_shots(env, doc, folder, f);
        else if (strcmp(f->name, "probe") == 0) status = draw_probe(env, doc, folder, f);
        else if (part == CGAM_MODELS_SWEEP) status = draw_sweep(env, doc, folder, index++, f);
        else status = draw_steer(env, doc, folder, index++, f);
    }
    return status;
}
