/* contents.c: the page from page.html. A line there is text, or a word after @ with fields between
 * bars: a figure, a table and the columns of it, the command of a run, or a piece made here. Runs
 * are called by their folders. */
#include "lab/claims/models.h"
#include "lab/figures/text.h"
#include "lab/page/html.h"

#include "base/env.h"
#include "lab/embedded.h"
#include "lab/fill.h"
#include "lab/folder.h"

#include <stdlib.h>
#include <string.h>

enum { FIELDS = 4, COLUMNS = 12, LINE = 1024 };

/* A table whose columns are still being read. */
typedef struct pending {
    const cgam_table *table; /* NULL: there is none */
    int64_t step;
    char label[64], words[COLUMNS][LINE];
    cgam_html_column column[COLUMNS + 1];
    int columns;
} pending;

typedef struct maker {
    const cgam_report *r;
    FILE *to;
    pending table;
    cgam_status status;
} maker;

/* field[] = what stands between the bars of a line; "" where there is no more. */
static void cut(char *line, char *field[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, "|");
        if (*line) *line++ = '\0';
    }
}

static const cgam_run *run_of(const maker *m, const char *folder)
{
    int i = 0;
    while (i < CGAM_RUNS - 1 && strcmp(m->r->runs[i].folder, folder) != 0) i++;
    return &m->r->runs[i];
}

static void figure(maker *m, char *const field[FIELDS])
{
    const cgam_run *run = run_of(m, field[0]);
    for (int i = 0; i < run->figures.count && m->r->opts.figures && !m->r->figures_missing; i++)
        if (strcmp(run->figures.figure[i].name, field[1]) == 0 && m->status == CGAM_OK)
            m->status = cgam_html_picture(m->to, m->r->env, m->r->opts.out, run->folder,
                                          &run->figures.figure[i], field[2], field[3]);
}

static void table(maker *m, char *const field[FIELDS])
{
    m->table.table = cgam_study_find(run_of(m, field[0])->study, field[1]);
    m->table.step = strtol(field[2], NULL, 10);
    m->table.columns = 0;
    snprintf(m->table.label, sizeof m->table.label, "%s", field[3]);
}

static void column(maker *m, char *const field[FIELDS])
{
    pending *t = &m->table;
    if (t->columns == COLUMNS) return;
    char *words = t->words[t->columns], *at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = words;
        words = stpcpy(words, field[i]) + 1;
    }
    t->column[t->columns++] = (cgam_html_column){at[0], at[1], at[2]};
    t->column[t->columns] = (cgam_html_column){0};
}

static void command(maker *m, char *const field[FIELDS])
{
    const cgam_run *run = run_of(m, field[0]);
    char text[1024];
    cgam_command(&run->study->opts, text, sizeof text);
    fprintf(m->to, "<details><summary>Command and data</summary><pre>");
    cgam_html_text(m->to, text);
    fprintf(m->to, "</pre>\n<p class=\"soft\">cgam %s, %.2f s. Data:", cgam_version(),
            run->seconds);
    for (int64_t i = 0; i < run->study->tables; i++) {
        const char *name = run->study->table[i].name;
        fprintf(m->to, " <a href=\"%s/%s.csv\">%s.csv</a>", run->folder, name, name);
    }
    fprintf(m->to, " <a href=\"%s/summary.json\">summary.json</a></p></details>\n", run->folder);
}

static void facts(maker *m, char *const field[FIELDS])
{
    (void)field;
    const cgam_report *r = m->r;
    fprintf(m->to, "<p class=\"soft\">cgam %s · seed %llu · %d threads · %.1f s of computing",
            cgam_version(), (unsigned long long)r->opts.seed, cgam_env_threads(r->env),
            r->seconds - r->figure_seconds);
    if (r->opts.figures && !r->figures_missing)
        fprintf(m->to, ", %.1f s of drawing", r->figure_seconds);
    fprintf(m->to, "</p>\n");
}

static void size(maker *m, char *const field[FIELDS])
{
    (void)field;
    double scale = m->r->opts.scale;
    if (scale != 1)
        fprintf(m->to,
                "<p><strong>Not at full size: every number of trials is %g times its default%s"
                "</strong></p>\n",
                scale, scale < 1 ? ", so less is decided and errors are larger." : ".");
}

static void gnuplot(maker *m, char *const field[FIELDS])
{
    if (m->r->figures_missing) cgam_html_say(m->to, field[0]);
}

static void claims(maker *m, char *const field[FIELDS])
{
    (void)field;
    json_t *doc = cgam_html_claims_doc(&m->r->claims, "claims");
    cgam_fill(m->to, "{<lab/page/claims.html}", doc);
    json_decref(doc);
    cgam_models_claims_html(m->to, m->r->models, &m->r->model_claims);
}

static void findings(maker *m, char *const field[FIELDS])
{
    (void)field;
    json_t *doc = cgam_html_claims_doc(&m->r->claims, "claims");
    cgam_fill(m->to, "{<lab/page/findings.html}", doc);
    json_decref(doc);
}

static void models(maker *m, char *const field[FIELDS])
{
    (void)field;
    if (m->status == CGAM_OK)
        m->status = cgam_models_html(m->to, m->r->env, m->r->opts.out, m->r->models);
}

static void again(maker *m, char *const field[FIELDS])
{
    (void)field;
    fprintf(m->to, "<pre>cgam report --seed %llu", (unsigned long long)m->r->opts.seed);
    if (m->r->opts.scale != 1) fprintf(m->to, " --scale %g", m->r->opts.scale);
    fprintf(m->to, "</pre>\n");
}

static const struct {
    const char *word;
    void (*write)(maker *m, char *const field[FIELDS]);
} words[] = {{"figure", figure}, {"table", table},     {"column", column}, {"command", command},
             {"facts", facts},   {"size", size},       {"claims", claims}, {"findings", findings},
             {"models", models}, {"gnuplot", gnuplot}, {"again", again}};

static void one_line(maker *m, char *line)
{
    if (m->table.table && strncmp(line, "@column ", 8) != 0) {
        cgam_html_table(m->to, m->table.table, m->table.column, m->table.label, 0, m->table.step);
        m->table.table = NULL;
    }
    if (*line != '@') {
        cgam_html_rich(m->to, line);
        fputc('\n', m->to);
        return;
    }
    char *word = line + 1, *field[FIELDS];
    line += strcspn(line, " ");
    if (*line) *line++ = '\0';
    cut(line, field);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, word) == 0) words[i].write(m, field);
}

cgam_status cgam_report_page(const cgam_report *r)
{
    const char *at = cgam_embedded_find("lab/page/page.html")->bytes;
    cgam_outfile *file;
    cgam_status status = cgam_outfile_in(r->env, r->opts.out, "index.html", &file);
    if (status != CGAM_OK) return status;
    maker m = {.r = r, .to = cgam_outfile_stream(file)};
    cgam_html_head(m.to, "Context-gated associative memory: simulations");
    while (*at) {
        char line[LINE];
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        one_line(&m, line);
        at += length + (at[length] == '\n');
    }
    if (m.status == CGAM_OK) return cgam_outfile_commit(file);
    cgam_outfile_abandon(file);
    return m.status;
}
