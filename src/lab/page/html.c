/* html.c: the page's skeleton. One file, nothing fetched: pictures are data: addresses, the style
 * is inside, there is no script. Light and dark follow the reader's choice; on paper it is light. */
#include "lab/page/html.h"
#include "lab/table.h"

#include "base/env.h"
#include "io/file.h"
#include "lab/embedded.h"
#include "lab/folder.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

void cgam_html_say(FILE *to, const char *text)
{
    fprintf(to, "<p>");
    cgam_html_rich(to, text);
    fprintf(to, "</p>\n");
}

void cgam_html_head(FILE *to, const char *title)
{
    fprintf(to,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    cgam_html_text(to, title);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n",
            cgam_embedded_find("lab/page/style.css")->bytes);
}

bool cgam_html_data(FILE *to, const char *path, const char *type)
{
    FILE *from = fopen(path, "rb");
    if (!from) return false;
    unsigned char piece[3 * 1024];
    char text[4 * 1024 + 1];
    size_t got;
    fprintf(to, "data:%s;base64,", type);
    while ((got = fread(piece, 1, sizeof piece, from)) > 0)
        fputs(sodium_bin2base64(text, sizeof text, piece, got, sodium_base64_VARIANT_ORIGINAL), to);
    bool fine = !ferror(from);
    int error = errno;
    fclose(from);
    errno = error;
    return fine;
}

/* A printf with a format from a table of ours. */
static void number(FILE *to, const char *format, double value)
{
    char text[64];
    if (isnan(value)) {
        fputs("–", to);
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, format, value);
#pragma GCC diagnostic pop
    if (text[0] == '-' && text[1] >= '0' && text[1] <= '9') fprintf(to, "−%s", text + 1);
    else fputs(text, to);
}

void cgam_html_table(FILE *to, const cgam_table *t, const cgam_html_column *columns,
                     const char *label_head, int64_t from, int64_t step)
{
    fprintf(to, "<details><summary>Table</summary><div class=\"wide\"><table>\n<thead><tr>");
    if (t->labels) fprintf(to, "<th>%s</th>", label_head);
    for (const cgam_html_column *c = columns; c->format; c++) {
        fprintf(to, "<th class=\"n\">");
        cgam_html_rich(to, c->head);
        fprintf(to, "</th>");
    }
    fprintf(to, "</tr></thead>\n<tbody>\n");
    for (int64_t i = from; i < t->rows; i += step) {
        fprintf(to, "<tr>");
        if (t->labels) {
            fprintf(to, "<td>");
            cgam_html_text(to, t->labels[i]);
            fprintf(to, "</td>");
        }
        for (const cgam_html_column *c = columns; c->format; c++) {
            fprintf(to, "<td class=\"n\">");
            number(to, c->format, t->cells[i * t->columns + cgam_table_column(t, c->column)]);
            fprintf(to, "</td>");
        }
        fprintf(to, "</tr>\n");
    }
    fprintf(to, "</tbody></table></div></details>\n");
}

enum { INLINE_SVG_MAX = 200 * 1024 }; /* bytes; larger drawings go in as PNG */

cgam_status cgam_html_picture(FILE *to, cgam_env *env, const char *out, const char *folder,
                              const cgam_figure *f, const char *letter, const char *words)
{
    static const char *const kinds[] = {"svg", "png", "pdf", "gp"};
    char path[CGAM_PATH_ROOM], reason[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s/%s.svg", out, folder, f->name);
    bool svg = stat(path, &st) == 0 && st.st_size <= INLINE_SVG_MAX;
    if (!svg) snprintf(path, sizeof path, "%s/%s/%s.png", out, folder, f->name);
    fprintf(to, "<figure%s><img alt=\"", f->wide ? " class=\"full\"" : "");
    cgam_html_text(to, f->title);
    fprintf(to, "\" src=\"");
    if (!cgam_html_data(to, path, svg ? "image/svg+xml" : "image/png"))
        return cgam_fail(env, errno == ENOMEM ? CGAM_E_NOMEM : CGAM_E_IO, "%s: %s",
                         cgam_path_tail(path), strerror_r(errno, reason, sizeof reason));
    /* what was run stands in the picture */
    fprintf(to, "\"><figcaption><b>%s%s%s.</b> %s", letter, *letter ? " " : "", f->title, words);
    for (int k = 0; k < 4; k++) {
        fprintf(to, " <a href=\"");
        cgam_html_text(to, folder); /* a name given by the user */
        fprintf(to, "/%s.%s\">%s</a>", f->name, kinds[k], kinds[k]);
    }
    fprintf(to, "</figcaption></figure>\n");
    return CGAM_OK;
}

/* Is it a claim that readers should see first: refuted, or not shown, as it is printed? */
static bool notable(const cgam_claim *claim)
{
    return claim->verdict == CGAM_DOES_NOT_HOLD ||
           (claim->verdict == CGAM_HOLDS_UNDER && (claim->unprinted || claim->unshown));
}

json_t *cgam_html_claims_doc(const cgam_claims *claims, const char *id)
{
    static const char *const words[CGAM_VERDICTS] = {"hold", "hold under a condition",
                                                     "do not hold", "not decided"};
    enum { FIRST = 4 };
    json_t *group[CGAM_VERDICTS], *groups = json_array(), *first = json_array();
    json_t *list = cgam_claims_json(claims);
    bool nulls = false;
    for (int v = 0; v < CGAM_VERDICTS; v++) group[v] = json_array();
    for (int i = 0; i < claims->count; i++) {
        const cgam_claim *claim = &claims->claim[i];
        json_t *row = json_array_get(list, (size_t)i);
        nulls = nulls || claim->null[0];
        cgam_json_put_int(row, "kind", claim->verdict);
        json_array_append(group[claim->verdict], row);
        if (notable(claim) && json_array_size(first) < FIRST) json_array_append(first, row);
    }
    for (int v = 0; v < CGAM_VERDICTS; v++)
        json_array_append_new(groups,
                              cgam_json_object("kind=%d words=%s count=%jd claims=%p", v, words[v],
                                               (intmax_t)json_array_size(group[v]), group[v]));
    json_decref(list);
    return cgam_json_object("id=%s count=%d nulls?=%d groups=%p notable=%p", id, claims->count,
                            nulls, groups, first);
}
