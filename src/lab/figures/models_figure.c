/* models_figure.c: figures of language-model studies: N_eff and label mass by layer, the map of
 * layer pairs beside accuracy against the coupling, steering, separability and alignment. Each is a
 * template over the CSV files of the verb. */
#include "lab/claims/models.h"
#include "lab/figures/script.h"

#include "base/env.h"
#include "io/array.h"

#include <math.h>
#include <string.h>

/* ---- Captions ---------------------------------------------------------------------------- */
/* Names come from files: characters with a meaning for gnuplot become dashes. */
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

/* ---- Scripts ----------------------------------------------------------------------------- */
enum { WIDE = 720, HIGH = 480, STEER_PANELS = 4 };

/* A panel for each coupling; limits, for each measure, around all curves and the state without a context. */
static void put_steer(json_t *to, const json_t *entry, int64_t layers)
{
    static const char *const measures[] = {"baseline.log_p", "baseline.log_odds"};
    const json_t *curves = cgam_json_at(entry, "curves");
    json_t *panels = json_array(), *least = json_array(), *most = json_array();
    double lambda[STEER_PANELS];
    int count = 0;
    bool odds_band = false; /* their errors are known, which requires more than one answer */
    for (size_t i = 0; i < json_array_size(curves); i++) {
        double x = cgam_json_get_real(json_array_get(curves, i), "lambda");
        bool known = false;
        for (int j = 0; j < count; j++) known = known || lambda[j] == x;
        if (!known && count < STEER_PANELS) lambda[count++] = x;
    }
    for (int j = 0; j < count; j++) {
        double width = 0.91 / count, left = 0.08 + j * width;
        json_array_append_new(panels, cgam_json_object("lambda=%g left=%g right=%g", lambda[j],
                                                       left, left + width - 0.025));
    }
    for (int odds = 0; odds < 2; odds++) {
        double low = cgam_json_get_real(entry, measures[odds]), high = low;
        for (size_t i = 0; i < json_array_size(curves); i++)
            for (int64_t l = 0; l < layers; l++) {
                const json_t *curve = json_array_get(curves, i);
                double band = odds ? 1.96 * cgam_json_nth(curve, "log_odds_gain_se", l) : 0;
                odds_band = odds_band || (odds && !isnan(band));
                if (isnan(band)) band = 0;
                low = fmin(low, cgam_json_nth(curve, odds ? "log_odds" : "log_p_low", l) - band);
                high = fmax(high, cgam_json_nth(curve, odds ? "log_odds" : "log_p_high", l) + band);
            }
        double margin = 0.05 * (high - low) + 1e-6;
        json_array_append_new(least, cgam_json_real(low - margin));
        json_array_append_new(most, cgam_json_real(high + margin));
    }
    cgam_json_add(to, "panels=%p least=%p most=%p odds_band?=%d", panels, least, most, odds_band);
}

/* Fills a template with the document of a part, the entry of the number of shots with that index, and what a template cannot
 * compute. */
static void fill_script(const char *name, const json_t *doc, int64_t index, FILE *to)
{
    json_t *all = json_object(), *shots = json_object_get(doc, "shots");
    json_t *entry = json_array_get(shots, (size_t)index);
    const int64_t layers = cgam_models_layers(doc), labels = cgam_json_get_int(doc, "labels");
    json_object_update(all, (json_t *)(uintptr_t)doc);
    json_object_set(all, "entry", entry);
    /* layers are whole numbers; about a dozen of them are named on an axis */
    cgam_json_add(all, "layer_step=%jd layer_high=%g from=%jd to=%jd", layers / 13 + 1,
                  (double)layers - 0.5, index * layers * layers, (index + 1) * layers * layers - 1);
    cgam_json_add(
        all, "chance=%g words=%g root=%g first=%g last=%g", labels > 0 ? 1 / (double)labels : 0,
        fmax(10, cgam_json_get_real(doc, "model.vocab")),
        sqrt(fmax(1, (double)cgam_json_get_int(doc, "queries"))),
        0.8 * fmax(cgam_json_get_real(json_array_get(shots, 0), "k"), 1),
        1.25 * fmax(cgam_json_get_real(json_array_get(shots, json_array_size(shots) - 1), "k"), 1));
    put_steer(all, entry, layers);
    cgam_script_fill(to, name, all);
}

static void put_shots(const json_t *doc, FILE *to) { fill_script("shots-data", doc, 0, to); }

static void draw_one(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    fill_script(f->name, doc, index, to);
}

static void draw_panels(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(f->name, "_"), f->name); /* without shots */
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    fill_script(name, doc, index, to);
}

/* ---- The list ---------------------------------------------------------------------------- */
static const struct {
    const char *name; /* a figure's begins with it */
    cgam_lm_part part;
    bool each; /* a figure for every number of shots */
    int width, height;
    void (*data)(const json_t *doc, FILE *to); /* outside the loop over terminals; NULL = none */
    /* index: of the number of shots, if there is a figure for each */
    void (*draw)(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to);
    const char *title, *words;
} scripts[] = {
    {"neff", CGAM_LM_NEFF, false, WIDE, HIGH, NULL, draw_one, "Effective number of words by layer",
     "Geometric mean of exp(entropy) over queries; bands: 95% of the mean."},
    {"mass", CGAM_LM_NEFF, false, WIDE, HIGH, NULL, draw_one, "Probability of the labels by layer",
     "Mean over queries; bands: 95% of the mean."},
    {"shots", CGAM_LM_SWEEP, false, 1080, 560, put_shots, draw_panels,
     "Accuracy against the number of demonstrations",
     "Pair of layers and coupling chosen on one half of the queries, counted on the other. Bars: one "
     "standard error."},
    {"sweep", CGAM_LM_SWEEP, true, 1080, 960, NULL, draw_panels,
     "Retrieval for every pair of layers",
     "Left: the best accuracy over λ for each pair of layers, square: the best pair. Right: "
     "accuracy as an exact step function of λ at the best pair of each kind of context."},
    {"steer", CGAM_LM_STEER, true, 1080, 760, NULL, draw_panels,
     "Steering by contexts of each layer",
     "The query is held at the last layer. Above: with 95% bootstrap bands. Below: the answer "
     "against the other objects of the relation; bands: 95% of the gain over no context."},
    {"probe", CGAM_LM_PROBE, false, 1080, 520, NULL, draw_panels,
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
        return; /* answers could not be distinguished: nothing to draw */
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
