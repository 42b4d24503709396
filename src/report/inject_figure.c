/* inject_figure.c: accuracy against the layer of an edit, for each kind and scale, beside no edit,
 * demonstrations and the readout; controls stand at the layer that was best. */
#include "report/inject_figure.h"

#include "report/page.h"
#include "report/text.h"

#include <math.h>

static const struct {
    const char *key, *title;
    const char *style;
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
enum {
    SCALES = 6,
    LINES = sizeof lines / sizeof *lines,
    MARKS = sizeof controls / sizeof *controls
};

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
    (void)f;
    const json_t *entry = json_array_get(cgam_json_at(doc, "shots"), (size_t)index);
    const json_t *kinds = cgam_json_at(entry, "by_kind");
    double scale[SCALES], layers = cgam_json_get_real(doc, "model.layers");
    int n = scales_of(cgam_json_at(entry, "inject"), scale);
    fprintf(to,
            "set xlabel 'layer of the edit'\nset ylabel 'accuracy'\nset xrange [-0.5:%g]\n"
            "set yrange [-0.02:1.02]\nset key outside right center\nplot \\\n",
            isfinite(layers) ? layers + 0.5 : 100);
    for (int i = 0; i < LINES; i++) {
        double y = cgam_json_get_real(entry, lines[i].key);
        if (isfinite(y))
            fprintf(to, "  %.6g with lines lt %s lw 1.5 title '%s', \\\n", y, lines[i].style,
                    lines[i].title);
    }
    for (int i = 0; i < MARKS; i++)
        fprintf(to,
                "  '+' using (%d):(%.6g) every ::0::0 with points lt %d pt %d ps 1.4 lw 2 title "
                "'%s', \\\n",
                (int)cgam_json_get_int(entry, "best.layer"),
                cgam_json_get_real(cgam_json_at(entry, "controls"), controls[i].key),
                controls[i].style, controls[i].point, controls[i].title);
    for (int kind = 0; kind < 2; kind++)
        for (int s = 0; s < n; s++) {
            char text[32];
            if (!json_object_get(kinds, kind ? "replace" : "add")) continue;
            fprintf(to,
                    "  'inject.csv' using (column('shots') == %d && column('kind') == %d && "
                    "abs(column('scale') - %.17g) < 1e-9 ? column('layer') + %g : NaN):"
                    "(column('accuracy')):(column('se')) with yerrorlines lw 2 pt %d ps 0.7 lc rgb "
                    "'%s' dt %d title '%s%s%s', \\\n",
                    (int)cgam_json_get_int(entry, "k"), kind, scale[s], kind ? 0.08 : -0.08,
                    kind ? 9 : 7, kind ? "#D55E00" : "#000000", s + 1, kind ? "replace" : "add",
                    n > 1 ? ", scale " : "", n > 1 ? cgam_short_text(scale[s], text) : "");
        }
    fputs("  NaN notitle\n", to);
}
