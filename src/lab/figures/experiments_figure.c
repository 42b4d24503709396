/* experiments_figure.c: figures of `cgam lm inject`, `lm gates` and `lm fit`, from their documents and CSV files. */
#include "lab/figures/script.h"
#include "lab/template.h"

#include <math.h>
#include <string.h>

static const char TEMPLATE[] = "figures/experiments.gp";

static void layer_axis(FILE *to, const json_t *doc, const char *x, const char *y)
{
    double layers = cgam_json_get_real(doc, "model.layers");
    cgam_template_fill(to, TEMPLATE, "layer axis", "x=%s y=%s high=%g", x, y,
                       isfinite(layers) ? layers + 0.5 : 100);
}

/* ---- Inject: accuracy against the layer of an edit, for each kind and scale, beside no edit, demonstrations and the
 * readout; controls stand at the layer that was best. */
enum { SCALES = 6 };

/* The scales that occur, in their order. */
static int scales_of(const json_t *cells, double scale[SCALES])
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        double x = cgam_json_get_real(json_array_get(cells, i), "scale");
        bool known = false;
        for (int j = 0; j < n; j++) known = known || scale[j] == x;
        if (!known && n < SCALES) scale[n++] = x;
    }
    return n;
}

void cgam_inject_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    static const struct {
        const char *key, *title, *style;
    } lines[] = {{"zero_shot", "zero-shot", "8"},
                 {"icl", "with demonstrations", "2"},
                 {"readout", "readout: query + λ context", "1 dt 4 lc rgb '#7B4EA3'"}};
    static const struct {
        const char *key, *title;
        int style, point;
    } controls[] = {{"random", "random, same norm", 4, 12},
                    {"flipped", "flipped demonstrations", 5, 10},
                    {"other_task", "another task", 6, 8},
                    {"label_rows", "mean of answer rows", 7, 14}};
    static const struct {
        const char *name, *colour;
        double shift;
        int point;
    } kinds[] = {{"add", "#000000", -0.08, 7}, {"replace", "#D55E00", 0.08, 9}};
    (void)f;
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    double scale[SCALES];
    int n = scales_of(cgam_json_at(entry, "inject"), scale);
    layer_axis(to, doc, "layer of the edit", "accuracy");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        double y = cgam_json_get_real(entry, lines[i].key);
        if (isfinite(y))
            cgam_template_fill(to, TEMPLATE, "inject line", "y=%.6g style=%s title=%s", y,
                               lines[i].style, lines[i].title);
    }
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        cgam_template_fill(to, TEMPLATE, "inject control",
                           "layer=%d y=%.6g style=%d point=%d title=%s",
                           (int)cgam_json_get_int(entry, "best.layer"),
                           cgam_json_get_real(cgam_json_at(entry, "controls"), controls[i].key),
                           controls[i].style, controls[i].point, controls[i].title);
    for (int kind = 0; kind < 2; kind++)
        for (int s = 0; s < n; s++) {
            char title[64];
            if (!json_object_get(cgam_json_at(entry, "by_kind"), kinds[kind].name)) continue;
            int used = snprintf(title, sizeof title, "%s", kinds[kind].name);
            if (n > 1)
                snprintf(title + used, sizeof title - (size_t)used, ", scale %.6g", scale[s]);
            cgam_template_fill(to, TEMPLATE, "inject curve",
                               "shots=%d kind=%d scale=%.17g shift=%g point=%d colour=%s dash=%d "
                               "title=%s",
                               (int)cgam_json_get_int(entry, "k"), kind, scale[s],
                               kinds[kind].shift, kinds[kind].point, kinds[kind].colour, s + 1,
                               title);
        }
    cgam_template_put(to, TEMPLATE, "end");
}

/* ---- Gates: accuracy and N_eff against alpha on a logarithmic axis, at whose left end alpha = 0 stands, and the
 * spectrum of the unembedding. */
static const char *const modes[] = {"first order", "coupled"};
static const int mode_style[] = {1, 2};
static const char *const mode_width[] = {"4.5", "1.6"}; /* the second lies on the first */

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

void cgam_gates_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    int shots = (int)cgam_json_get_int(entry, "k");
    double least = cgam_json_nth(doc, "alphas", 1), crit = cgam_json_get_real(doc, "alpha_crit");
    if (!(least > 0)) least = 1e-3;
    if (!(crit > least)) crit = 10 * least;
    double zero = pow(10, floor(log10(least)) - 0.5); /* between two ticks */
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    cgam_template_fill(to, TEMPLATE, "gates",
                       "low=%.6g high=%.6g zero=%.6g critical=%.6g least=%.6g", zero / 1.5,
                       1.6 * crit, zero, crit, 1 / cgam_json_get_real(doc, "mu_max"));
    for (int over = 0; over < 2; over++)
        for (int mode = 0; mode < 2; mode++)
            if (has_mode(entry, mode))
                cgam_template_fill(to, TEMPLATE, "gates accuracy",
                                   "shots=%d coupled=%d zero=%.6g y=%s style=%d width=%s point=%d "
                                   "dash=%d mode=%s over=%s",
                                   shots, mode, zero, over ? "full" : "restricted",
                                   mode_style[mode], mode_width[mode], over ? 6 : 7, over ? 2 : 1,
                                   modes[mode], over ? "words" : "labels");
    cgam_template_fill(to, TEMPLATE, "gates levels", "zero_shot=%.6g icl=%.6g icl_words=%.6g",
                       cgam_json_get_real(entry, "zero_shot.restricted"),
                       cgam_json_get_real(entry, "icl.restricted"),
                       cgam_json_get_real(entry, "icl.full"));
    for (int mode = 0; mode < 2; mode++)
        if (has_mode(entry, mode))
            cgam_template_fill(to, TEMPLATE, "gates neff",
                               "shots=%d coupled=%d zero=%.6g style=%d width=%s mode=%s", shots,
                               mode, zero, mode_style[mode], mode_width[mode], modes[mode]);
    cgam_template_put(to, TEMPLATE, "gates end");
}

void cgam_gates_draw_spectrum(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index, (void)f;
    cgam_template_fill(to, TEMPLATE, "spectrum", "rows=%s critical=%.6g",
                       cgam_json_get_text(doc, "rows"), 1 / cgam_json_get_real(doc, "alpha_crit"));
}

/* ---- Fit: held-out accuracy against the layer that P takes contexts from, beside P = I, a random P of the same
 * spectrum, the task's mean, no context and demonstrations. */
static void draw_fit(const json_t *doc, const char *over, FILE *to)
{
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
    layer_axis(to, doc, "layer of x", "held-out accuracy");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        double y = cgam_json_get_real(cgam_json_at(doc, lines[i].key), over);
        if (isfinite(y))
            cgam_template_fill(to, TEMPLATE, "fit line", "y=%.6g colour=%s dash=%d title=%s", y,
                               lines[i].colour, lines[i].dash, lines[i].title);
    }
    int count = json_is_object(cgam_json_at(doc, "ridge")) ? 4 : 3; /* with low rank, or without */
    for (int i = 0; i < count; i++)
        cgam_template_fill(to, TEMPLATE, "fit curve",
                           "shift=%g key=%s over=%s colour=%s point=%d dash=%d title=%s",
                           0.08 * (i - 1.5), curves[i].key, over, curves[i].colour, curves[i].point,
                           curves[i].dash, curves[i].title);
    cgam_template_put(to, TEMPLATE, "end");
}

void cgam_fit_draw_labels(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index, (void)f;
    draw_fit(doc, "restricted", to);
}

void cgam_fit_draw_words(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index, (void)f;
    draw_fit(doc, "full", to);
}
