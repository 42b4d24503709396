/* html.c: the page's skeleton. One file, nothing fetched: pictures are data: addresses, the style
 * is inside, there is no script. Light and dark follow the reader's choice; on paper it is light. */
#include "report/html.h"

#include "io/folder.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

static void put(FILE *to, char c)
{
    switch (c) {
    case '<': fputs("&lt;", to); break;
    case '>': fputs("&gt;", to); break;
    case '&': fputs("&amp;", to); break;
    case '"': fputs("&quot;", to); break;
    default: fputc(c, to);
    }
}

void cgam_html_text(FILE *to, const char *text)
{
    for (; *text; text++) put(to, *text);
}

/* Does a name of one letter end before text[i]? Bytes above 127 are those of Greek letters. */
static bool symbol_before(const char *text, size_t i)
{
    if (i == 0) return false;
    if ((unsigned char)text[i - 1] >= 128) return true;
    return isalpha((unsigned char)text[i - 1]) && (i == 1 || !isalnum((unsigned char)text[i - 2]));
}

static void write_math(FILE *to, const char *text, bool tags)
{
    for (size_t i = 0; text[i]; i++) {
        bool spaced = i == 0 || strchr(" (=", text[i - 1]) != NULL;
        if (text[i] == '_' && symbol_before(text, i) && isalnum((unsigned char)text[i + 1])) {
            fputs("<sub>", to);
            while (isalnum((unsigned char)text[i + 1])) fputc(text[++i], to);
            fputs("</sub>", to);
        } else if (text[i] == '-' && spaced && isdigit((unsigned char)text[i + 1])) {
            fputs("−", to);
        } else if (tags) {
            fputc(text[i], to);
        } else {
            put(to, text[i]);
        }
    }
}

void cgam_html_math(FILE *to, const char *text) { write_math(to, text, false); }
void cgam_html_rich(FILE *to, const char *text) { write_math(to, text, true); }

void cgam_html_say(FILE *to, const char *text)
{
    fprintf(to, "<p>");
    cgam_html_rich(to, text);
    fprintf(to, "</p>\n");
}

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--page:#fff;"
    "--panel:#f6f8fa;--good:#1a7f37;--part:#9a6700;--bad:#cf222e;--link:#0550ae}\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b3;--line:#30363d;"
    "--page:#0d1117;--panel:#161b22;--good:#3fb950;--part:#d29922;--bad:#f85149;--link:#79b8ff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:2rem 1.25rem 4rem;max-width:74rem;background:var(--page);"
    "color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',"
    "Arial,sans-serif}\n"
    "h1{font-size:1.9rem;line-height:1.2;margin:.2rem 0 .4rem}\n"
    "h2{font-size:1.35rem;margin:3rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--line)}\n"
    "h3{font-size:1.05rem;margin:1.6rem 0 .4rem}\n"
    "p{max-width:52rem;margin:.5rem 0}\n"
    "a{color:var(--link)}\n"
    ".soft{color:var(--soft);font-size:.9rem}\n"
    "nav{margin:1rem 0 0;font-size:.95rem}nav a{margin-right:1rem;white-space:nowrap}\n"
    "code,pre{font:.86em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',"
    "monospace}\n"
    "pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.6rem "
    ".8rem;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:.9rem;margin:.6rem 0}\n"
    "th,td{padding:.32rem .7rem;border-bottom:1px solid var(--line);text-align:left;"
    "vertical-align:top}\n"
    ".tight th,.tight td{padding:.3rem .42rem;font-size:.82rem}\n"
    "th{font-weight:600;background:var(--panel)}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
    ".claims td:nth-child(1){color:var(--soft);min-width:7rem}\n"
    ".claims td:nth-child(2){min-width:13rem}.claims td:nth-child(3){min-width:9rem}\n"
    ".claims .test{color:var(--soft);display:block;margin-top:.2rem;font-size:.85rem}\n"
    ".v{font-weight:600}.v0{color:var(--good)}.v1{color:var(--part)}.v2{color:var(--bad)}\n"
    ".v3{color:var(--soft)}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(29rem,100%),1fr));"
    "gap:1rem;margin:.8rem 0}\n"
    "figure{margin:0;background:#fff;border:1px solid var(--line);border-radius:8px;"
    "padding:.7rem}\n"
    ".full{grid-column:1/-1}.full img{max-width:62rem;margin:0 auto}\n"
    "figure img{display:block;width:100%;height:auto}\n"
    "figcaption{color:#444;font-size:.85rem;line-height:1.4;margin-top:.3rem}\n"
    "figcaption b{color:#111}figcaption a{color:#0550ae}\n"
    ".count{display:flex;flex-wrap:wrap;gap:1.4rem;margin:.8rem 0 1rem}\n"
    ".count div{font-size:.9rem;color:var(--soft)}.count strong{display:block;font-size:1.7rem;"
    "line-height:1.1}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:.6rem 0;"
    "max-width:60rem}dt{font-weight:600}dd{margin:0}\n"
    "@media (max-width:40rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}"
    ".figures{grid-template-columns:1fr}}\n"
    "@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--line:#bbb;--page:#fff;"
    "--panel:#f4f4f4;--good:#0a5c22;--part:#7a5200;--bad:#a40e26;--link:#000}"
    "body{font-size:10pt;max-width:none;padding:0}nav{display:none}"
    "figure,tr{break-inside:avoid}h2,h3{break-after:avoid}.figures{grid-template-columns:1fr 1fr}"
    "a{text-decoration:none}}\n";

void cgam_html_head(FILE *to, const char *title)
{
    fprintf(to,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    cgam_html_text(to, title);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

bool cgam_html_data(FILE *to, const char *path, const char *type)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *from = fopen(path, "rb");
    if (!from) return false;
    unsigned char three[3];
    size_t got;
    fprintf(to, "data:%s;base64,", type);
    while ((got = fread(three, 1, 3, from)) > 0) {
        for (size_t i = got; i < 3; i++) three[i] = 0;
        unsigned long bits =
            (unsigned long)three[0] << 16 | (unsigned long)three[1] << 8 | three[2];
        for (int k = 0; k < 4; k++)
            fputc((size_t)k <= got ? digits[bits >> (18 - 6 * k) & 63] : '=', to);
    }
    bool fine = !ferror(from);
    fclose(from);
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
    fprintf(to, "<div class=\"wide\"><table>\n<thead><tr>");
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
    fprintf(to, "</tbody></table></div>\n");
}

enum { INLINE_SVG_MAX = 200 * 1024 }; /* bytes; larger drawings go in as PNG */

void cgam_html_picture(FILE *to, const char *out, const char *folder, const cgam_figure *f,
                       const char *letter, const char *words)
{
    static const char *const kinds[] = {"svg", "png", "pdf", "gp"};
    char path[CGAM_PATH_ROOM];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s/%s.svg", out, folder, f->name);
    bool svg = stat(path, &st) == 0 && st.st_size <= INLINE_SVG_MAX;
    if (!svg) snprintf(path, sizeof path, "%s/%s/%s.png", out, folder, f->name);
    fprintf(to, "<figure%s><img alt=\"", f->wide ? " class=\"full\"" : "");
    cgam_html_text(to, f->title);
    fprintf(to, "\" src=\"");
    cgam_html_data(to, path, svg ? "image/svg+xml" : "image/png");
    fprintf(to, "\"><figcaption><b>%s%s%s.</b> %s <span>", letter, *letter ? " " : "", f->title,
            words);
    cgam_html_math(to, f->caption);
    fprintf(to, ".</span>");
    for (int k = 0; k < 4; k++)
        fprintf(to, " <a href=\"%s/%s.%s\">%s</a>", folder, f->name, kinds[k], kinds[k]);
    fprintf(to, "</figcaption></figure>\n");
}

void cgam_html_claims(FILE *to, const cgam_claims *claims)
{
    int count[CGAM_VERDICTS] = {0};
    char verdict[200];
    for (int i = 0; i < claims->count; i++) count[claims->claim[i].verdict]++;
    fprintf(to,
            "<div class=\"count\"><div><strong class=\"v0\">%d</strong>hold</div>"
            "<div><strong class=\"v1\">%d</strong>hold under a condition</div>"
            "<div><strong class=\"v2\">%d</strong>do not hold</div>",
            count[CGAM_HOLDS], count[CGAM_HOLDS_UNDER], count[CGAM_DOES_NOT_HOLD]);
    if (count[CGAM_NOT_DECIDED] > 0)
        fprintf(to, "<div><strong class=\"v3\">%d</strong>not decided</div>",
                count[CGAM_NOT_DECIDED]);
    fprintf(to, "</div>\n");
    fprintf(to, "<div class=\"wide\"><table class=\"claims\">\n<thead><tr><th>Where</th><th>Claim"
                "</th><th>Verdict</th><th>Numbers and test</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < claims->count; i++) {
        const cgam_claim *c = &claims->claim[i];
        fprintf(to, "<tr><td>%s</td><td>", c->where);
        cgam_html_math(to, c->says);
        fprintf(to, "</td><td class=\"v v%d\">", (int)c->verdict);
        cgam_html_math(to, cgam_verdict_text(c, verdict));
        fprintf(to, "</td><td>");
        cgam_html_math(to, c->numbers);
        fprintf(to, "<span class=\"test\">");
        cgam_html_math(to, c->test);
        fprintf(to, "</span></td></tr>\n");
    }
    fprintf(to, "</tbody></table></div>\n");
}
