/* lens_screen.c: the layer x token picture of a text on a terminal. */
#include "lab/figures/figure.h"
#include "lab/fill.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 9, MARGIN = 6 };

/* Prints at most `room` columns of a piece and pads it. */
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

/* The background shows how certain the cell is: white on blue if N_eff is near 1. */
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
    long n;
    return text && (n = strtol(text, NULL, 10)) >= 40 && n <= 1000 ? (int)n : 100;
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

void cgam_lens_screen(const json_t *doc, bool colours, FILE *to)
{
    double vocab = (double)cgam_json_get_int(doc, "model.vocab");
    const json_t *other = json_object_get(doc, "compare");
    fprintf(to, "%s\n", cgam_json_get_text(doc, "prompt"));
    print_view(to, doc, vocab, colours);
    if (other) {
        fprintf(to, "\n%s\n", cgam_json_get_text(other, "prompt"));
        print_view(to, other, vocab, colours);
    }
    cgam_fill(to, "{<app/text/files.txt}", doc);
}
