/* models_figure.c: figures of language-model studies: N_eff and label mass by layer, the map of
 * layer pairs beside accuracy against the coupling, steering, separability and alignment. Each is a
 * template over the CSV files of the verb. */
#include "lab/claims/models.h"
#include "lab/figures/script.h"
#include "lab/template.h"

#include "base/env.h"
#include "io/array.h"

#include "lab/language/sweep.h"
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
static const char TEMPLATE[] = "figures/models.gp";

static const char *shots_text(int64_t k, char text[32])
{
    if (k == 0) snprintf(text, 32, "zero-shot");
    else snprintf(text, 32, "%d shot%s", (int)k, k == 1 ? "" : "s");
    return text;
}

/* Curves of y with a band from low to high, one for each number of shots. */
typedef struct banded {
    const char *file, *y;
    const char *low, *high; /* what follows y at the edges of the band */
} banded;

static void shots_curves(FILE *to, const json_t *curves, const banded *b)
{
    int64_t count = (int64_t)json_array_size(curves);
    for (int64_t i = 0; i < 2 * count; i++) {
        int64_t c = i < count ? i : i - count,
                k = cgam_json_get_int(json_array_get(curves, (size_t)c), "k");
        char text[32];
        if (i < count)
            cgam_template_fill(to, TEMPLATE, "band",
                               "file=%s shots=%d y=%s low=%s high=%s style=%d", b->file, (int)k,
                               b->y, b->low, b->high, cgam_script_style(c));
        else
            cgam_template_fill(to, TEMPLATE, "shots curve",
                               "file=%s shots=%d y=%s style=%d title=%s more=%s", b->file, (int)k,
                               b->y, cgam_script_style(c), shots_text(k, text),
                               cgam_script_more(c, count));
    }
}

/* Layers are whole numbers; about a dozen of them are named on an axis. */
static void layer_axis(FILE *to, char axis, int64_t layers)
{
    cgam_template_fill(to, TEMPLATE, "layers", "axis=%c step=%d high=%g", axis,
                       (int)(layers / 13 + 1), (double)layers - 0.5);
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
    cgam_template_fill(to, TEMPLATE, "legend", "high=%.3f low=%.3f", high, low);
}

static void legend_end(FILE *to, const char *last)
{
    cgam_template_put(to, TEMPLATE, last);
    cgam_template_put(to, TEMPLATE, "legend end");
}

/* ---- N_eff ------------------------------------------------------------------------------- */
static void draw_neff(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    static const banded label_mass = {"neff.csv", "column('label_mass')",
                                      "-1.96*column('label_mass_sd')/sqrt(column('queries'))",
                                      "+1.96*column('label_mass_sd')/sqrt(column('queries'))"};
    static const banded entropy = {
        "neff.csv", "column('neff_entropy')",
        "*exp(-1.96*column('log_neff_entropy_sd')/sqrt(column('queries')))",
        "*exp(1.96*column('log_neff_entropy_sd')/sqrt(column('queries')))"};
    (void)index;
    bool mass = strcmp(f->name, "mass") == 0;
    double words = fmax(10, cgam_json_get_real(doc, "model.vocab"));
    layer_axis(to, 'x', cgam_models_layers(doc));
    cgam_template_put(to, TEMPLATE, "neff axes");
    if (mass) cgam_template_put(to, TEMPLATE, "mass");
    else
        cgam_template_fill(to, TEMPLATE, "neff", "high=%g vocabulary=%.0f labels=%d", 2.2 * words,
                           words, (int)cgam_json_get_int(doc, "labels"));
    shots_curves(to, cgam_json_at(doc, "curves"), mass ? &label_mass : &entropy);
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

/* What the study is about is drawn thicker. */
static const char *answer_width(int a) { return a < 3 ? "2.5" : "1.5"; }

static void answers_legend(FILE *to, const char *with)
{
    for (int a = 0; a < ANSWERS; a++)
        cgam_template_fill(to, TEMPLATE, "legend answer", "with=%s style=%d width=%s title=%s",
                           with, answer_style[a], answer_width(a), answers[a].title);
    legend_end(to, "legend chance");
}

static void draw_shots(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index;
    const json_t *shots = cgam_json_at(doc, "shots");
    size_t count = json_array_size(shots), used = 0;
    char tics[1024] = "";
    for (size_t i = 0; i < count; i++) {
        int k = (int)cgam_json_get_int(json_array_get(shots, i), "k");
        cgam_text_add(tics, sizeof tics, &used, "%s'%d' %d", i ? ", " : "", k, k);
    }
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    double first = cgam_json_get_real(json_array_get(shots, 0), "k");
    double last = cgam_json_get_real(json_array_get(shots, count - 1), "k");
    cgam_template_fill(to, TEMPLATE, "shots", "first=%g last=%g", 0.8 * fmax(first, 1),
                       1.25 * fmax(last, 1));
    for (int over = 0; over < 2; over++) {
        cgam_template_fill(to, TEMPLATE, "shots panel", "left=%.3f right=%.3f title=%s",
                           over ? 0.57 : 0.085, over ? 0.98 : 0.495, over_titles[over]);
        if (over) cgam_template_put(to, TEMPLATE, "shots second");
        cgam_template_fill(to, TEMPLATE, "shots plot", "tics=%s", tics);
        for (int a = 0; a < ANSWERS; a++) {
            if (over && a == CENTRED) continue; /* only the labels can be centred */
            /* side by side within a few percent, so that bars of equal answers can be told apart */
            cgam_template_fill(to, TEMPLATE, "shots answer",
                               "over=%d shift=%.4f column=%d error=%d style=%d width=%s", over,
                               1 + 0.02 * (a - 3), 2 * a + 2, 2 * a + 3, answer_style[a],
                               answer_width(a));
        }
        if (over) fputs("  NaN notitle\n", to); /* among all words chance is nothing */
        else cgam_template_fill(to, TEMPLATE, "chance", "chance=%.6g more=%s", chance_of(doc), "");
    }
    legend_begin(to, 0.06, 0.17);
    answers_legend(to, "linespoints");
}

/* A map of layer pairs, and accuracy against the coupling: the best pair of each kind of context, and what needs none.
 * The study's own contexts are drawn last, over their baselines. */
static void draw_sweep(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    int64_t layers = cgam_models_layers(doc);
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    cgam_template_put(to, TEMPLATE, "sweep");
    for (int over = 0; over < 2; over++) {
        double top = over ? 0.54 : 0.96;
        const char *name = cgam_sweep_over_name((cgam_sweep_over)over);
        const json_t *best = cgam_json_at(cgam_json_at(entry, "best"), name);
        fputs("unset logscale x\n", to);
        layer_axis(to, 'x', layers);
        layer_axis(to, 'y', layers);
        cgam_template_fill(
            to, TEMPLATE, "sweep map",
            "top=%.3f bottom=%.3f over=%s from=%lld to=%lld column=%s query=%d context=%d", top,
            top - 0.30, over_titles[over], (long long)(index * layers * layers),
            (long long)((index + 1) * layers * layers - 1), name,
            (int)cgam_json_get_int(best, "query_layer"),
            (int)cgam_json_get_int(best, "context_layer"));
        for (int a = 0; a < ANSWERS; a++)
            if (a < RETRIEVAL || (a == CENTRED && over == 0))
                cgam_template_fill(to, TEMPLATE, "level", "y=%.6g style=%d", answer(entry, a, over),
                                   answer_style[a]);
        if (over == 0)
            cgam_template_fill(to, TEMPLATE, "chance", "chance=%.6g more=%s", chance_of(doc),
                               ", \\");
        for (int kind = 3; kind >= 0; kind--)
            cgam_template_fill(to, TEMPLATE, "sweep steps",
                               "shots=%d over=%d context=%d style=%d width=%s more=%s",
                               (int)cgam_json_get_int(entry, "k"), over, kind,
                               answer_style[RETRIEVAL + kind], kind ? "1.8" : "3",
                               kind ? ", \\" : "");
    }
    legend_begin(to, 0.05, 0.13);
    answers_legend(to, "lines");
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
    static const struct {
        double top, bottom;
        const char *low, *high;
    } rows[STEER_ROWS] = {{0.945, 0.605, "column('log_p_low')", "column('log_p_high')"},
                          {0.535, 0.215, "column('log_odds')-1.96*column('log_odds_gain_se')",
                           "column('log_odds')+1.96*column('log_odds_gain_se')"}};
    double width = 0.91 / s->panels, left = 0.08 + j * width;
    cgam_template_fill(to, TEMPLATE, "steer panel",
                       "left=%.3f right=%.3f top=%.3f bottom=%.3f least=%.6g most=%.6g", left,
                       left + width - 0.025, rows[row].top, rows[row].bottom, s->least[row],
                       s->most[row]);
    if (j == 0) cgam_template_fill(to, TEMPLATE, "steer first", "label=%s", steer_labels[row]);
    else cgam_template_put(to, TEMPLATE, "steer other");
    if (row == 0) cgam_template_fill(to, TEMPLATE, "steer above", "lambda=%.6g", s->lambda[j]);
    else cgam_template_put(to, TEMPLATE, "steer below");
    for (int c = 0; c < 3 && (row == 0 || s->odds_band); c++)
        cgam_template_fill(to, TEMPLATE, "steer band",
                           "shots=%d context=%d lambda=%.17g low=%s high=%s style=%d", s->shots, c,
                           s->lambda[j], rows[row].low, rows[row].high, context_style[c]);
    for (int c = 0; c < 3; c++)
        cgam_template_fill(to, TEMPLATE, "steer curve",
                           "shots=%d context=%d lambda=%.17g measure=%s style=%d title=%s",
                           s->shots, c, s->lambda[j], steer_measures[row], context_style[c],
                           context_titles[c]);
    cgam_template_fill(to, TEMPLATE, "steer end", "baseline=%.6g", s->baseline[row]);
}

static void draw_steer(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    const steering s = measure_steer(doc, index);
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    fputs("unset key\n", to);
    layer_axis(to, 'x', cgam_models_layers(doc));
    for (int row = 0; row < STEER_ROWS; row++)
        for (int j = 0; j < s.panels; j++) steer_panel(to, &s, row, j);
    legend_begin(to, 0.06, 0.12);
    for (int c = 0; c < 3; c++)
        cgam_template_fill(to, TEMPLATE, "legend curve", "style=%d title=%s", context_style[c],
                           context_titles[c]);
    legend_end(to, "legend no context");
}

/* ---- Probe ------------------------------------------------------------------------------- */
static void draw_probe(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index;
    const json_t *curves = cgam_json_at(doc, "curves");
    double root = sqrt(fmax(1, (double)cgam_json_get_int(doc, "queries")));
    char low[120], high[120];
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    layer_axis(to, 'x', cgam_models_layers(doc));
    cgam_template_fill(to, TEMPLATE, "probe", "chance=%.6g", chance_of(doc));
    shots_curves(to, curves,
                 &(banded){"probe.csv", "column('separability')", "-1.96*column('separability_se')",
                           "+1.96*column('separability_se')"});
    snprintf(low, sizeof low, "-1.96*column('margin_sd')/%.6g", root);
    snprintf(high, sizeof high, "+1.96*column('margin_sd')/%.6g", root);
    cgam_template_put(to, TEMPLATE, "probe alignment");
    shots_curves(to, curves, &(banded){"probe.csv", "column('margin')", low, high});
    legend_begin(to, 0.06, 0.17);
    for (size_t i = 0; i < json_array_size(curves); i++) {
        char text[32];
        cgam_template_fill(to, TEMPLATE, "legend curve", "style=%d title=%s",
                           cgam_script_style((int64_t)i),
                           shots_text(cgam_json_get_int(json_array_get(curves, i), "k"), text));
    }
    legend_end(to, "legend chance");
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
        cgam_script p;
        status = cgam_script_head(env, folder, f, &p);
        if (status != CGAM_OK) break;
        if (scripts[k].data) scripts[k].data(doc, p.to);
        cgam_script_begin(f, scripts[k].width, scripts[k].height, &p);
        scripts[k].draw(doc, index, f, p.to);
        index += scripts[k].each;
        status = cgam_script_close(&p);
    }
    return status;
}
