/* views_figure.c: the pictures of `cgam lm lens`, `lm trace` and `landscape`, from their documents and CSV files. */
#include "base/env.h"
#include "io/array.h"
#include "lab/figures/script.h"
#include "lab/table.h"

#include <math.h>
#include <string.h>

enum { WORDS_MAX = 40, PIECE = CGAM_PIECE_SIZE, CELL = 64, ROW = 22 };

/* Characters beyond Cyrillic become a box: installed fonts may lack them, and pango then draws
 * their code numbers over the whole picture. */
const char *cgam_piece_shown(const char *piece, int letters, char text[CGAM_PIECE_SIZE])
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

static const char *engine_of(const json_t *doc)
{
    return strcmp(cgam_json_get_text(doc, "engine"), "exact") == 0 ? "exact" : "by libllama";
}

/* Tokens along the axis, sixty at most. */
static json_t *token_tics(const json_t *tokens)
{
    json_t *tics = json_array();
    int64_t n = (int64_t)json_array_size(tokens), step = (n + 59) / 60;
    for (int64_t t = 0; t < n; t += step) {
        char text[PIECE];
        const char *piece = cgam_json_get_text(json_array_get(tokens, (size_t)t), "piece");
        json_array_append_new(
            tics, cgam_json_object("piece=%s at=%jd", cgam_piece_shown(piece, 14, text), t));
    }
    return tics;
}

/* The only figure of a document. */
static cgam_figure *begin_figure(cgam_figures *out, const char *name, const char *title)
{
    out->count = 1;
    out->figure[0] = (cgam_figure){.name = name, .title = title};
    return &out->figure[0];
}

/* ---- Lens: how widely each cell (layer, token) is spread, with its most probable word where that fits - */
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

/* The font size does not depend on the figure's size, so space for text is in the font's units. */
typedef struct sheet {
    int width, height, panels;
} sheet;

static json_t *lens_panel(const json_t *view, int which, sheet s, double most)
{
    enum { TOP = 14, CAPTION = 26, WORDS = 70, LEFT = 72, RIGHT = 118 };
    double share = (double)(s.height - TOP - CAPTION) / s.panels, width = s.width;
    double high = 1 - (TOP + which * share) / s.height, low = high - (share - WORDS) / s.height;
    json_t *panel = cgam_json_object(
        "high=%g low=%g left=%g right=%g bar=%g bar_width=%g bar_height=%g", high, low,
        LEFT / width, 1 - RIGHT / width, 1 - (RIGHT - 12) / width, 24 / width, high - low);
    cgam_json_add(panel, "tokens_high=%g layers_high=%g most=%g file=%s tics=%p",
                  (double)count_of(view, "tokens") - 0.5, (double)count_of(view, "layers") - 0.5,
                  most, which ? "lens_compare.csv" : "lens.csv",
                  token_tics(json_object_get(view, "tokens")));
    return panel;
}

cgam_status cgam_lens_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                    cgam_figures *out)
{
    const json_t *views[] = {doc, json_object_get(doc, "compare")};
    int panels = json_is_object(views[1]) ? 2 : 1;
    int64_t widest = 0, layers = count_of(doc, "layers");
    cgam_figure *f = begin_figure(out, "lens", "What every position says after every layer");
    snprintf(f->caption, sizeof f->caption,
             "cgam %s, lm lens: the most probable word of each cell, lens %s, states %s",
             CGAM_VERSION, cgam_json_get_text(doc, "lens"), engine_of(doc));
    for (int i = 0; i < panels; i++) {
        int64_t tokens = count_of(views[i], "tokens");
        if (tokens > widest) widest = tokens;
    }
    double most = fmax(1, log10(fmax(10, (double)cgam_json_get_int(doc, "model.vocab"))));
    int64_t drawn = widest < WORDS_MAX ? widest : WORDS_MAX;
    int width = 180 + (int)(drawn < 8 ? 8 : drawn) * CELL;
    int height = panels * (130 + (int)(layers < 60 ? layers : 60) * ROW);
    cgam_script p;
    cgam_status status = cgam_script_head(env, folder, f, &p);
    if (status != CGAM_OK) return status;
    for (int i = 0; i < panels; i++) put_words(p.to, views[i], i);
    cgam_script_begin(f, width, height, &p);
    cgam_script_panels(p.to, f, 9.0 / height);
    json_t *list = json_array();
    for (int i = 0; i < panels; i++)
        json_array_append_new(list, lens_panel(views[i], i, (sheet){width, height, panels}, most));
    cgam_script_fill(p.to, "lens", cgam_json_object("panels=%p", list));
    return cgam_script_close(&p);
}

/* ---- Trace: the divergence at every token above, the difference of the states layer by layer below --- */
cgam_status cgam_trace_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                     cgam_figures *out)
{
    const json_t *tokens = json_object_get(doc, "tokens");
    int64_t layers = cgam_json_get_int(doc, "model.layers") + 1;
    size_t n = json_array_size(tokens);
    cgam_figure *f = begin_figure(out, "trace", "How long a context shapes what follows");
    snprintf(f->caption, sizeof f->caption,
             "cgam %s, lm trace: KL of next-token distributions with and without the context, "
             "norm and persistence of the difference of states, states %s",
             CGAM_VERSION, engine_of(doc));
    size_t shown = n < 12 ? 12 : n < 60 ? n : 60;
    int width = 320 + 26 * (int)shown;
    int height = 380 + 2 * 14 * (int)(layers < 12 ? 12 : layers < 60 ? layers : 60);
    cgam_script p;
    cgam_status status = cgam_script_open(env, folder, f, width, height, &p);
    if (status != CGAM_OK) return status;
    cgam_script_panels(p.to, f, 0.012);
    cgam_script_fill(p.to, "trace",
                     cgam_json_object("tokens_high=%g layers_high=%g tics=%p", (double)n - 0.5,
                                      (double)layers - 0.5, token_tics(tokens)));
    return cgam_script_close(&p);
}

/* ---- Landscape: energies against basins, without a context and under one, side by side. Minima are discs, those with
 * a basin worth a name with their winner, saddles open triangles; both at energies above the lowest of the side. */
cgam_status cgam_landscape_figures_write(cgam_env *env, const json_t *doc, const char *folder,
                                         cgam_figures *out)
{
    cgam_figure *f = begin_figure(out, "landscape", "Energies against basins");
    snprintf(f->caption, sizeof f->caption,
             "cgam %s, landscape: alpha %g, beta %g, lambda %g; basin: share of %lld descents",
             CGAM_VERSION, cgam_json_get_real(doc, "alpha"), cgam_json_get_real(doc, "beta"),
             cgam_json_get_real(doc, "lambda"), (long long)cgam_json_get_int(doc, "starts"));
    bool both = json_is_true(json_object_get(doc, "context"));
    cgam_script p;
    cgam_status status = cgam_script_open(env, folder, f, both ? 900 : 560, 420, &p);
    if (status != CGAM_OK) return status;
    cgam_script_fill(p.to, "landscape", cgam_json_object("context?=%d", both));
    return cgam_script_close(&p);
}

/* ---- Tables --------------------------------------------------------------------------------- */
/* Writes the table and frees its cells; NULL: out of memory. */
static cgam_status leave_table(cgam_env *env, const char *folder, cgam_table table, double *cells)
{
    if (!cells) return cgam_fail_nomem(env, "a table");
    table.cells = cells;
    table.columns = cgam_heads_count(table.heads);
    cgam_status status = cgam_table_write(env, &table, folder);
    cgam_free(env, cells);
    return status;
}

cgam_status cgam_lens_table_write(cgam_env *env, const char *folder, const char *name,
                                  const cgam_lens_view *v)
{
    enum { COLUMNS = 7 };
    int64_t rows = v->tokens * v->layers;
    double *cells = cgam_alloc(env, (size_t)(rows * COLUMNS), sizeof *cells);
    /* layers outside, so that a picture can be drawn from it row by row */
    for (int64_t l = 0; l < v->layers && cells; l++)
        for (int64_t t = 0; t < v->tokens; t++) {
            const cgam_lens_cell *c = &v->cells[t * v->layers + l];
            const cgam_lens_word *w = v->words + (t * v->layers + l) * v->top;
            double row[COLUMNS] = {
                (double)l,        (double)t, c->neff, c->kl_final, (double)c->rank_final,
                (double)w->token, w->p};
            memcpy(cells + (l * v->tokens + t) * COLUMNS, row, sizeof row);
        }
    return leave_table(env, folder,
                       (cgam_table){.name = name,
                                    .about = "every position after every layer",
                                    .heads = "layer,token,neff,kl_final,rank_final,top_token,top_p",
                                    .rows = rows},
                       cells);
}

/* Every layer of every token, layers outside, as a picture is drawn from them. */
cgam_status cgam_trace_table_write(cgam_env *env, const char *folder, const cgam_lm_trace *t)
{
    enum { COLUMNS = 7 };
    double *cells = cgam_alloc(env, (size_t)(t->count * t->layers * COLUMNS), sizeof *cells);
    for (int64_t l = 0; l < t->layers && cells; l++)
        for (int64_t j = 0; j < t->count; j++) {
            double row[COLUMNS] = {(double)l,
                                   (double)j,
                                   t->norm[j * t->layers + l],
                                   t->persistence[j * t->layers + l],
                                   t->kl[j],
                                   t->neff_with[j],
                                   t->neff_without[j]};
            memcpy(cells + (l * t->count + j) * COLUMNS, row, sizeof row);
        }
    return leave_table(
        env, folder,
        (cgam_table){.name = "trace",
                     .about = "what a context does at every token of a text, after every layer",
                     .heads = "layer,token,context_norm,persistence,kl,neff_with,neff_without",
                     .rows = t->count * t->layers},
        cells);
}

cgam_status cgam_landscape_table_write(cgam_env *env, const char *folder,
                                       const cgam_landscape both[2])
{
    enum { COLUMNS = 11 };
    int64_t rows = both[0].count + both[1].count, at = 0;
    double *cells = cgam_alloc(env, (size_t)(rows * COLUMNS), sizeof *cells);
    for (int side = 0; side < 2 && cells; side++)
        for (int64_t i = 0; i < both[side].count; i++, at++) {
            const cgam_point *x = &both[side].points[i];
            double row[COLUMNS] = {side,      (double)i,         x->minimum, (double)x->index,
                                   x->energy, (double)x->winner, x->p,       x->neff_entropy,
                                   x->basin,  x->fold_margin,    x->p_error};
            memcpy(cells + at * COLUMNS, row, sizeof row);
        }
    return leave_table(env, folder,
                       (cgam_table){.name = "landscape",
                                    .about = "fixed points without (0) and under (1) the context",
                                    .heads =
                                        "context,point,minimum,index,energy,winner,p,neff_entropy,"
                                        "basin,fold_margin,p_error",
                                    .rows = rows},
                       cells);
}
