/* lens_figure.c: the layer x token picture of `cgam lm lens`: how widely each cell is spread, with its
 * most probable word written into it where there is room. */
#include "report/lens_figure.h"

#include "io/array.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

enum { WORDS_MAX = 40, PIECE = CGAM_PIECE_ROOM, CELL = 64, ROW = 22 };

/* Letters past the Cyrillic ones become a box: the fonts at hand may lack them, and pango then draws
 * their numbers over the whole picture. */
const char *cgam_piece_shown(const char *piece, int letters, char text[CGAM_PIECE_ROOM])
{
    enum { LAST = 0xD4 }; /* first byte of U+0500 .. 053F */
    size_t used = 0;
    text[0] = '\0';
    for (const char *c = piece; *c && letters-- > 0 && used + 5 < PIECE;) {
        unsigned char byte = (unsigned char)*c;
        size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        length = strnlen(c, length);
        if (byte == '\n') cgam_text_add(text, PIECE, &used, "↵");
        else if (byte == '"') cgam_text_add(text, PIECE, &used, "”");
        else if (byte == ',') cgam_text_add(text, PIECE, &used, "‚"); /* it would end the field */
        else if (byte == '\\') cgam_text_add(text, PIECE, &used, "∖");
        else if (byte < ' ') cgam_text_add(text, PIECE, &used, "·");
        else if (byte == ' ' && c == piece) cgam_text_add(text, PIECE, &used, "_");
        else if (byte >= LAST) cgam_text_add(text, PIECE, &used, "□");
        else cgam_text_add(text, PIECE, &used, "%.*s", (int)length, c);
        c += length;
    }
    return text;
}

static int64_t count_of(const json_t *doc, const char *key)
{
    return (int64_t)json_array_size(json_object_get(doc, key));
}

/* The words of the cells as a block of data: token, layer, word. */
static void put_words(FILE *to, const json_t *view, int which)
{
    int64_t tokens = count_of(view, "tokens"), layers = count_of(view, "layers");
    const json_t *top = json_object_get(view, "top");
    fprintf(to, "$words%d << EOD\ntoken,layer,word\n", which);
    for (int64_t l = 0; l < layers && tokens <= WORDS_MAX; l++)
        for (int64_t t = 0; t < tokens; t++) {
            char text[PIECE];
            const json_t *cell = json_array_get(json_array_get(top, (size_t)l), (size_t)t);
            const char *piece = json_string_value(json_array_get(json_array_get(cell, 0), 1));
            fprintf(to, "%d,%d,\"%s\"\n", (int)t, (int)l,
                    cgam_piece_shown(piece ? piece : "", 8, text));
        }
    fprintf(to, "-1,-1,\" \"\nEOD\n");
}

/* Letters have their size whatever that of the figure is: room for them is in its units. */
typedef struct sheet {
    int width, height, panels;
} sheet;

static void panel(FILE *to, const json_t *view, int which, sheet s, double most)
{
    enum { TOP = 14, CAPTION = 26, WORDS = 70, LEFT = 72, RIGHT = 118 };
    int64_t tokens = count_of(view, "tokens"), layers = count_of(view, "layers");
    double share = (double)(s.height - TOP - CAPTION) / s.panels;
    double high = 1 - (TOP + which * share) / s.height, low = high - (share - WORDS) / s.height;
    fprintf(to,
            "set tmargin at screen %.3f\nset bmargin at screen %.3f\nset lmargin at screen %.3f\n"
            "set rmargin at screen %.3f\nset xrange [-0.5:%g]\nset yrange [-0.5:%g]\n"
            "set ylabel 'layer'\nset cblabel 'log_{10} N_{eff}'\nset cbrange [0:%.4g]\n",
            high, low, (double)LEFT / s.width, 1 - (double)RIGHT / s.width, (double)tokens - 0.5,
            (double)layers - 0.5, most);
    fprintf(to, "set colorbox user origin screen %.3f, screen %.3f size screen %.3f, screen %.3f\n",
            1 - (double)(RIGHT - 12) / s.width, low, 24.0 / s.width, high - low);
    fputs("unset grid\nunset key\nset xtics rotate by 40 right font ',10' noenhanced (", to);
    int64_t step = (tokens + 59) / 60;
    for (int64_t t = 0; t < tokens; t += step) {
        char text[PIECE];
        const json_t *token = json_array_get(json_object_get(view, "tokens"), (size_t)t);
        fprintf(to, "%s\"%s\" %d", t ? ", " : "",
                cgam_piece_shown(cgam_json_get_text(token, "piece"), 14, text), (int)t);
    }
    fprintf(to,
            ")\nplot '%s' using (column('token')):(column('layer')):(log10(column('neff'))) with "
            "image pixels, \\\n"
            "  $words%d using 1:2:(stringcolumn(3)) with labels font ',9' noenhanced notitle\n"
            "unset label 1\n",
            which ? "lens_compare.csv" : "lens.csv", which);
}

cgam_status cgam_lens_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                    cgam_figures *out)
{
    const json_t *views[] = {doc, json_object_get(doc, "compare")};
    int panels = json_is_object(views[1]) ? 2 : 1;
    int64_t widest = 0, layers = count_of(doc, "layers");
    cgam_figure *f = &out->figure[0];
    out->count = 1;
    *f = (cgam_figure){.name = "lens", .title = "What every position says after every layer"};
    size_t used = 0;
    cgam_text_add(f->caption, sizeof f->caption, &used,
                  "cgam %s, lm lens: the most probable word of each cell, lens %s, states %s",
                  CGAM_VERSION, cgam_json_get_text(doc, "lens"),
                  strcmp(cgam_json_get_text(doc, "engine"), "exact") == 0 ? "exact"
                                                                          : "by libllama");
    for (int i = 0; i < panels; i++) {
        int64_t tokens = count_of(views[i], "tokens");
        if (tokens > widest) widest = tokens;
    }
    double most = fmax(1, log10(fmax(10, (double)cgam_json_get_int(doc, "model.vocab"))));
    int64_t drawn = widest < WORDS_MAX ? widest : WORDS_MAX;
    int width = 180 + (int)(drawn < 8 ? 8 : drawn) * CELL;
    int height = panels * (130 + (int)(layers < 60 ? layers : 60) * ROW);
    cgam_page p;
    cgam_status status = cgam_page_head(env, folder, f, &p);
    if (status != CGAM_OK) return status;
    for (int i = 0; i < panels; i++) put_words(p.to, views[i], i);
    cgam_page_begin(f, width, height, &p);
    fprintf(p.to,
            "set multiplot\nset label 1 \"%s\" at screen 0.01, screen %.3f font ',9' tc rgb "
            "'#555555'\nset palette defined (0 '#4a9bd0', 0.35 '#9ecae1', 0.7 '#deebf7', 1 "
            "'#ffffff')\n",
            f->caption, 9.0 / height);
    for (int i = 0; i < panels; i++) panel(p.to, views[i], i, (sheet){width, height, panels}, most);
    fputs("unset multiplot\n", p.to);
    return cgam_page_close(&p);
}
