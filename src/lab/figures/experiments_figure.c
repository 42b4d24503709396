/* experiments_figure.c: figures of `cgam lm inject`, `lm gates` and `lm fit`: a template over the document (inject.gp, gates.gp,
 * spectrum.gp, fit.gp), to which is added what a template cannot compute. */
#include "lab/figures/script.h"

#include <math.h>
#include <string.h>

/* The document of one number of shots, and the upper end of an axis of layers. */
static json_t *entry_of(const json_t *doc, int64_t index)
{
    json_t *out = json_object();
    double layers = cgam_json_get_real(doc, "model.layers");
    json_object_update(out, json_array_get(cgam_json_at(doc, "shots"), (size_t)index));
    cgam_json_put_real(out, "high", isfinite(layers) ? layers + 0.5 : 100);
    return out;
}

/* The scales that occur, in their order. */
static json_t *scales_of(const json_t *cells)
{
    json_t *scales = json_array(), *cell, *known;
    size_t i, j;
    json_array_foreach(cells, i, cell)
    {
        json_t *scale = json_object_get(cell, "scale");
        json_array_foreach(scales, j, known) if (json_equal(known, scale)) break;
        if (j == json_array_size(scales)) json_array_append(scales, scale);
    }
    return scales;
}

/* Accuracy against the layer of an edit, for each kind and scale, beside no edit, demonstrations and the readout; controls
 * stand at the layer that was best. */
void cgam_inject_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)f;
    json_t *entry = entry_of(doc, index);
    cgam_json_put(entry, "scales", scales_of(cgam_json_at(entry, "inject")));
    cgam_script_fill(to, "inject", entry);
}

/* The modes in which anything was asked: a curve without points is an error to gnuplot. */
static json_t *modes_of(const json_t *grid)
{
    static const struct {
        const char *mode, *title, *width;
    } modes[] = {{"first", "first order", "4.5"}, {"coupled", "coupled", "1.6"}};
    json_t *list = json_array(), *row;
    for (int k = 0; k < 2; k++) { /* the second lies on the first */
        size_t i;
        json_array_foreach(
            grid, i, row) if (strcmp(cgam_json_get_text(row, "mode"), modes[k].mode) == 0) break;
        if (i < json_array_size(grid))
            json_array_append_new(list, cgam_json_object("coupled=%d style=%d mode=%s width=%s", k,
                                                         k + 1, modes[k].title, modes[k].width));
    }
    return list;
}

/* Accuracy and N_eff against alpha on a logarithmic axis, at whose left end alpha = 0 stands. */
void cgam_gates_draw(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    json_t *entry = entry_of(doc, index);
    double least = cgam_json_nth(doc, "alphas", 1), crit = cgam_json_get_real(doc, "alpha_crit");
    if (!(least > 0)) least = 1e-3;
    if (!(crit > least)) crit = 10 * least;
    double zero = pow(10, floor(log10(least)) - 0.5); /* between two ticks */
    cgam_script_panels(to, f, CGAM_SCRIPT_FOOT);
    cgam_json_add(entry, "low=%g high=%g zero=%g critical=%g least=%g modes=%p", zero / 1.5,
                  1.6 * crit, zero, crit, 1 / cgam_json_get_real(doc, "mu_max"),
                  modes_of(cgam_json_at(entry, "grid")));
    cgam_script_fill(to, "gates", entry);
}

void cgam_gates_draw_spectrum(const json_t *doc, int64_t index, const cgam_figure *f, FILE *to)
{
    (void)index, (void)f;
    cgam_script_fill(to, "spectrum",
                     cgam_json_object("rows=%s mu=%g", cgam_json_get_text(doc, "rows"),
                                      1 / cgam_json_get_real(doc, "alpha_crit")));
}

/* Held-out accuracy against the layer that P takes contexts from, beside P = I, a random P of the same spectrum, the
 * task's mean, no context and demonstrations. */
static void draw_fit(const json_t *doc, const char *over, FILE *to)
{
    static const char *const lines[] = {"icl", "mean", "zero_shot"};
    json_t *entry = entry_of(doc, -1);
    for (int i = 0; i < 3; i++)
        cgam_json_put_real(entry, lines[i], cgam_json_get_real(cgam_json_at(doc, lines[i]), over));
    cgam_json_add(entry, "over=%s lowrank?=%d", over, json_is_object(cgam_json_at(doc, "ridge")));
    cgam_script_fill(to, "fit", entry);
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
