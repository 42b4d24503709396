/* trace_figure.c: `cgam lm trace` as a picture - the divergence at every token above, the difference of
 * the states layer by layer below. */
#include "report/trace_figure.h"

#include "io/array.h"
#include "report/lens_figure.h"
#include "report/page.h"

#include <string.h>

static void tics(FILE *to, const json_t *tokens)
{
    size_t n = json_array_size(tokens), step = (n + 59) / 60;
    fputs("set xtics rotate by 40 right font ',10' noenhanced (", to);
    for (size_t t = 0; t < n; t += step) {
        char text[CGAM_PIECE_ROOM];
        const char *piece = cgam_json_get_text(json_array_get(tokens, t), "piece");
        fprintf(to, "%s\"%s\" %zu", t ? ", " : "", cgam_piece_shown(piece, 14, text), t);
    }
    fputs(")\n", to);
}

static void heat_map(FILE *to, const char *column, const char *what, const char *range, double high,
                     double low)
{
    fprintf(to,
            "set tmargin at screen %.3f\nset bmargin at screen %.3f\nset ylabel 'layer'\n"
            "set cblabel '%s'\nset cbrange %s\n"
            "plot 'trace.csv' using (column('token')):(column('layer')):(column('%s')) with image "
            "pixels notitle\n",
            high, low, what, range, column);
}

cgam_status cgam_trace_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                     cgam_figures *out)
{
    const json_t *tokens = json_object_get(doc, "tokens");
    int64_t layers = cgam_json_get_int(doc, "model.layers") + 1;
    size_t n = json_array_size(tokens), used = 0;
    cgam_figure *f = &out->figure[0];
    out->count = 1;
    *f = (cgam_figure){.name = "trace", .title = "How long a context shapes what follows"};
    cgam_text_add(f->caption, sizeof f->caption, &used,
                  "cgam %s, lm trace: KL of next-token distributions with and without the context, "
                  "norm and persistence of the difference of states, states %s",
                  CGAM_VERSION,
                  strcmp(cgam_json_get_text(doc, "engine"), "exact") == 0 ? "exact"
                                                                          : "by libllama");
    size_t shown = n < 12 ? 12 : n < 60 ? n : 60;
    int width = 320 + 26 * (int)shown;
    int height = 380 + 2 * 14 * (int)(layers < 12 ? 12 : layers < 60 ? layers : 60);
    cgam_page p;
    cgam_status status = cgam_page_head(env, folder, f, &p);
    if (status != CGAM_OK) return status;
    cgam_page_begin(f, width, height, &p);
    fprintf(p.to,
            "set multiplot\nset label 1 \"%s\" at screen 0.01, screen 0.012 font ',9' tc rgb "
            "'#555555'\nset lmargin at screen 0.1\nset rmargin at screen 0.84\n"
            "set xrange [-0.5:%g]\nunset key\nunset xtics\n"
            "set tmargin at screen 0.97\nset bmargin at screen 0.77\nset ylabel 'KL in nats'\n"
            "set yrange [0:*]\n"
            "plot 'trace.csv' using (column('layer') == 0 ? column('token') : NaN):(column('kl')) "
            "with linespoints pt 7 ps 0.4 lc rgb '#1f6f9f' notitle\n"
            "unset label 1\nunset grid\nset yrange [-0.5:%g]\n"
            "set palette defined (0 '#ffffff', 0.3 '#deebf7', 0.6 '#9ecae1', 1 '#14507a')\n",
            f->caption, (double)n - 0.5, (double)layers - 0.5);
    heat_map(p.to, "context_norm", "|h - h without|", "[0:*]", 0.745, 0.445);
    tics(p.to, tokens);
    fputs("set palette defined (-1 '#b2532c', 0 '#ffffff', 1 '#14507a')\n", p.to);
    heat_map(p.to, "persistence", "cosine with the first token", "[-1:1]", 0.42, 0.12);
    fputs("unset multiplot\n", p.to);
    return cgam_page_close(&p);
}
