/* verb_lm_lens.c: the layer x token picture of a text, or of two side by side. */
#include "app/lm.h"
#include "app/picture.h"
#include "app/verbs.h"
#include "io/folder.h"
#include "report/lens_figure.h"

#include <cgam/lens_view.h>
#include <stdlib.h>
#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_LM_MODEL,
    CGAM_PARAM_TEXT("prompt", "TEXT", "the text to look into", .required = true),
    CGAM_PARAM_TEXT("compare", "TEXT", "another text beside it"),
    CGAM_PARAM_CHOICE("lens", "norm|raw", "norm",
                      "states through the final norm, or as they are, before the unembedding"),
    CGAM_PARAM_INT("top", "K", "5", 1, 1000, "most probable words of each cell"),
    CGAM_PARAM_FLAG("exact", "states by the plain f32 pass instead of libllama's; Llama family"),
    CGAM_PARAM_OUT(NULL, "write lens.json, lens.csv and the figure here"),
    CGAM_PARAM_LM_FIGURES,
    CGAM_PARAM_END,
};

/* ---- The document ------------------------------------------------------------------------- */
static json_t *cell_words(const cgam_lm *lm, const cgam_lens_word *words, int64_t top)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < top; i++) {
        json_t *word = json_array();
        json_array_append_new(word, json_integer(words[i].token));
        json_array_append_new(word, cgam_lm_piece_json(lm, words[i].token));
        json_array_append_new(word, cgam_json_real(words[i].p));
        json_array_append_new(list, word);
    }
    return list;
}

static void put_view(json_t *doc, const cgam_lm *lm, const cgam_lens_view *v)
{
    json_t *tokens = json_array(), *layers = json_array(), *neff = json_array();
    json_t *kl = json_array(), *rank = json_array(), *top = json_array();
    for (int64_t t = 0; t < v->tokens; t++) {
        json_t *token = json_object();
        cgam_json_put_int(token, "id", v->token[t]);
        cgam_json_put(token, "piece", cgam_lm_piece_json(lm, v->token[t]));
        json_array_append_new(tokens, token);
    }
    for (int64_t l = 0; l < v->layers; l++) {
        json_t *row[] = {json_array(), json_array(), json_array(), json_array()};
        for (int64_t t = 0; t < v->tokens; t++) {
            const cgam_lens_cell *c = &v->cells[t * v->layers + l];
            json_array_append_new(row[0], cgam_json_real(c->neff));
            json_array_append_new(row[1], cgam_json_real(c->kl_final));
            json_array_append_new(row[2], json_integer(c->rank_final));
            json_array_append_new(row[3],
                                  cell_words(lm, v->words + (t * v->layers + l) * v->top, v->top));
        }
        json_array_append_new(layers, json_integer(l));
        json_array_append_new(neff, row[0]);
        json_array_append_new(kl, row[1]);
        json_array_append_new(rank, row[2]);
        json_array_append_new(top, row[3]);
    }
    cgam_json_put(doc, "tokens", tokens);
    cgam_json_put(doc, "layers", layers);
    cgam_json_put(doc, "neff", neff);
    cgam_json_put(doc, "kl_final", kl);
    cgam_json_put(doc, "rank_final", rank);
    cgam_json_put(doc, "top", top);
}

/* ---- Files -------------------------------------------------------------------------------- */
static cgam_status write_table(cgam_call *call, const char *out, const char *name,
                               const cgam_lens_view *v, json_t *files)
{
    enum { COLUMNS = 7 };
    int64_t rows = v->tokens * v->layers;
    double *cells = cgam_alloc(call->env, (size_t)(rows * COLUMNS), sizeof *cells);
    if (!cells) return cgam_fail_nomem(call->env, "a table");
    /* layers outside, so that a picture can be drawn from it row by row */
    for (int64_t l = 0; l < v->layers; l++)
        for (int64_t t = 0; t < v->tokens; t++) {
            const cgam_lens_cell *c = &v->cells[t * v->layers + l];
            const cgam_lens_word *w = v->words + (t * v->layers + l) * v->top;
            double row[COLUMNS] = {
                (double)l,        (double)t, c->neff, c->kl_final, (double)c->rank_final,
                (double)w->token, w->p};
            memcpy(cells + (l * v->tokens + t) * COLUMNS, row, sizeof row);
        }
    const cgam_table table = {.name = name,
                              .about = "every position after every layer",
                              .heads = "layer,token,neff,kl_final,rank_final,top_token,top_p",
                              .rows = rows,
                              .columns = COLUMNS,
                              .cells = cells};
    cgam_status status = cgam_table_write(call->env, &table, out);
    json_array_append_new(files, json_sprintf("%s.csv", name));
    cgam_free(call->env, cells);
    return status;
}

static cgam_status leave(cgam_call *call, const char *out, const cgam_lens_view *views, int count)
{
    json_t *files = json_array();
    cgam_status status = CGAM_OK;
    for (int i = 0; i < count && status == CGAM_OK; i++)
        status = write_table(call, out, i ? "lens_compare" : "lens", &views[i], files);
    if (status == CGAM_OK)
        return cgam_picture_leave(call, out, "lens", true, cgam_lens_figures_write, files);
    json_decref(files);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_line line;
    cgam_lm *lm = NULL;
    const cgam_lens *lens = NULL;
    cgam_lens_view views[2] = {{0}, {0}};
    const char *out = cgam_args_text(call->args, "out");
    const char *texts[] = {cgam_args_text(call->args, "prompt"),
                           cgam_args_text(call->args, "compare")};
    int count = texts[1] ? 2 : 1;
    cgam_lens_view_opts opts = cgam_lens_view_opts_default();
    cgam_lens_kind_find(cgam_args_text(call->args, "lens"), &opts.kind);
    opts.top = cgam_args_int(call->args, "top");
    opts.exact = cgam_args_flag(call->args, "exact");
    opts.progress = cgam_line_begin(&line, call->progress);
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_lm_of(call, &lm);
    if (status == CGAM_OK) status = cgam_lm_lens(lm, &lens);
    for (int i = 0; i < count && status == CGAM_OK; i++)
        status = cgam_lens_view_make(lm, lens, texts[i], &opts, &views[i]);
    cgam_line_clear(&line);
    if (status == CGAM_OK) {
        cgam_put_lm(call->doc, lm);
        cgam_json_put_text(call->doc, "engine", opts.exact ? "exact" : "llama");
        cgam_json_put_text(call->doc, "lens", cgam_lens_kind_name(opts.kind));
        cgam_json_put_text(call->doc, "prompt", texts[0]);
        put_view(call->doc, lm, &views[0]);
        if (count == 2) {
            json_t *other = json_object();
            cgam_json_put_text(other, "prompt", texts[1]);
            put_view(other, lm, &views[1]);
            cgam_json_put(call->doc, "compare", other);
        }
        if (out) status = leave(call, out, views, count);
    }
    for (int i = 0; i < 2; i++) cgam_lens_view_free(call->env, &views[i]);
    cgam_lm_done(call, lm);
    return status;
}

/* ---- For people --------------------------------------------------------------------------- */
enum { CELL = 9, MARGIN = 6 };

/* How many letters of the screen a piece takes, at most `room`, and what of it is shown. */
static void print_piece(FILE *to, const char *piece, int room)
{
    int used = 0;
    for (const char *c = piece; *c && used < room; used++) {
        unsigned char byte = (unsigned char)*c;
        size_t length = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        if (byte == '\n') fputs("↵", to);
        else if (byte < ' ') fputs("·", to);
        else if (byte == ' ' && c == piece) fputc('_', to);
        else fwrite(c, 1, length, to);
        c += strnlen(c, length);
    }
    for (; used < room; used++) fputc(' ', to);
}

static const json_t *at(const json_t *view, const char *key, size_t l, size_t t)
{
    return json_array_get(json_array_get(json_object_get(view, key), l), t);
}

/* Background by how sure the cell is: white on blue where N_eff is near 1. */
static void colour(FILE *to, double neff, double vocab)
{
    static const int shades[] = {25, 31, 67, 110, 152, 254}; /* of the 256 colours */
    double x = vocab > 1 ? log(fmax(neff, 1)) / log(vocab) : 0;
    int i = (int)(x * 6);
    i = i < 0 ? 0 : i > 5 ? 5 : i;
    fprintf(to, "\033[48;5;%d;38;5;%dm", shades[i], i < 3 ? 255 : 16);
}

static int columns(void)
{
    const char *text = getenv("COLUMNS");
    int64_t n;
    return text && cgam_text_is_int(text, &n) && n >= 40 && n <= 1000 ? (int)n : 100;
}

static void print_view(FILE *to, const json_t *view, double vocab, bool colours)
{
    const json_t *tokens = json_object_get(view, "tokens");
    size_t n = json_array_size(tokens), layers = json_array_size(json_object_get(view, "layers"));
    size_t block = (size_t)((columns() - MARGIN) / CELL);
    for (size_t from = 0; from < n; from += block) {
        size_t to_token = from + block < n ? from + block : n;
        fputs("\nlayer ", to);
        for (size_t t = from; t < to_token; t++) {
            print_piece(to, cgam_json_get_text(json_array_get(tokens, t), "piece"), CELL - 1);
            fputc(' ', to);
        }
        fputc('\n', to);
        for (size_t l = layers; l-- > 0;) {
            fprintf(to, "%5zu ", l);
            for (size_t t = from; t < to_token; t++) {
                const json_t *word = json_array_get(at(view, "top", l, t), 0);
                const char *piece = json_string_value(json_array_get(word, 1));
                if (colours) colour(to, json_number_value(at(view, "neff", l, t)), vocab);
                print_piece(to, piece ? piece : "", CELL - 1);
                fputs(colours ? "\033[0m " : " ", to);
            }
            fputc('\n', to);
        }
    }
    fprintf(to, "\nafter the last token:\nlayer      N_eff   KL(final)   rank  words\n");
    for (size_t l = layers; l-- > 0;) {
        const json_t *words = at(view, "top", l, n - 1);
        fprintf(to, "%5zu %10.4g %11.4g %6lld ", l, json_number_value(at(view, "neff", l, n - 1)),
                json_number_value(at(view, "kl_final", l, n - 1)),
                (long long)json_integer_value(at(view, "rank_final", l, n - 1)));
        for (size_t i = 0; i < json_array_size(words) && i < 5; i++) {
            const json_t *word = json_array_get(words, i);
            const char *piece = json_string_value(json_array_get(word, 1));
            fputc(' ', to);
            print_piece(to, piece ? piece : "", CELL);
            fprintf(to, "%5.3f", json_number_value(json_array_get(word, 2)));
        }
        fputc('\n', to);
    }
}

static void print(const json_t *doc, FILE *to)
{
    double vocab = (double)cgam_json_get_int(doc, "model.vocab");
    bool colours = cgam_help_colours(to);
    const json_t *other = json_object_get(doc, "compare");
    fprintf(to, "%s\n", cgam_json_get_text(doc, "prompt"));
    print_view(to, doc, vocab, colours);
    if (other) {
        fprintf(to, "\n%s\n", cgam_json_get_text(other, "prompt"));
        print_view(to, other, vocab, colours);
    }
    cgam_lm_print_files(doc, to);
}

const cgam_verb cgam_verb_lm_lens = {
    .name = "lm lens",
    .summary = "what every token of a text says after every layer",
    .about =
        "Reads the state of every token after every layer through the unembedding (nostalgebraist's "
        "logit lens) and shows the layer x token picture: the most probable words, how many words "
        "are in play (N_eff, exp of the entropy), KL(final || layer) in nats, and the rank of the "
        "model's own answer. The final distribution is the model's, whatever the lens.\n\n"
        "On a terminal cells are the darker the fewer words are in play; a blank before a word is "
        "shown as _. With --compare the second text comes below the first, in the document under "
        "`compare`, in the figure as a second panel.",
    .example = "cgam lm lens --prompt 'The capital of France is' --out lens",
    .params = params,
    .run = run,
    .print = print,
};
