/* ctest: timeout=240
 * The report: claims follow the numbers they are given, the page is whole and stands alone, texts
 * are escaped, commands and captions say what was run. */
#include "lab/synthetic/study.h"
#include "lab/table.h"
#include "support/check.h"
#include "support/folder.h"

#include "base/env.h"
#include "lab/embedded.h"
#include "lab/figures/text.h"
#include "lab/page/html.h"
#include "lab/page/report.h"

#include <unistd.h>

static const char *folder;
static cgam_env *env;
static cgam_report *report;

static int make(void **state)
{
    (void)state;
    cgam_env_opts e = cgam_env_opts_default();
    cgam_report_opts o = cgam_report_opts_default();
    e.threads = 2;
    folder = folder_path();
    if (cgam_env_new(&e, &env) != CGAM_OK) return -1;
    o.out = folder;
    o.scale = 0.1; /* 100 trials where the default is 1000: fewer decide nothing */
    o.figures = false;
    cgam_status status = cgam_report_make(env, &o, &report);
    if (status != CGAM_OK) printf("%s\n", cgam_env_message(env));
    return status == CGAM_OK ? 0 : -1;
}

static int unmake(void **state)
{
    (void)state;
    cgam_report_free(report);
    cgam_env_free(env);
    return 0;
}

static const cgam_claim *claim(const char *beginning)
{
    static cgam_claims claims;
    const cgam_study *studies[CGAM_RUNS];
    for (int i = 0; i < CGAM_RUNS; i++) studies[i] = report->runs[i].study;
    cgam_claims_decide(studies, &claims);
    for (int i = 0; i < claims.count; i++)
        if (strncmp(claims.claim[i].says, beginning, strlen(beginning)) == 0)
            return &claims.claim[i];
    fail_msg("no claim begins with '%s'", beginning);
    return NULL;
}

/* Changes one cell, and gives what it was. */
static double change(int run, const char *table, int64_t row, const char *column, double value)
{
    const cgam_table *t = cgam_study_find(report->runs[run].study, table);
    int64_t at = row * t->columns + cgam_table_column(t, column);
    double before = t->cells[at];
    ((double *)(uintptr_t)t->cells)[at] = value;
    return before;
}

TEST(every_claim_has_a_test_and_numbers)
{
    char text[200];
    assert_in_range(report->claims.count, 25, CGAM_CLAIMS_MAX - 1);
    for (int i = 0; i < report->claims.count; i++) {
        const cgam_claim *c = &report->claims.claim[i];
        assert_true(strlen(c->numbers) > 5 && strlen(c->numbers) < CGAM_CLAIM_TEXT - 1);
        assert_true(strlen(c->test) > 10);
        assert_int_equal(c->verdict == CGAM_HOLDS_UNDER, c->under[0] != '\0');
        assert_true(strlen(cgam_verdict_text(c, text)) > 4);
    }
}

TEST(claims_follow_the_numbers)
{
    static const char bound[] = "All points", falls[] = "Accuracy is non-decreasing";
    static const char left[] = "As λ increases", near[] = "For α < α_crit", wta[] = "Above α_crit";
    assert_int_equal(claim(bound)->verdict, CGAM_HOLDS);
    double kept = change(CGAM_RUN_SEPARATION, "points", 0, "violations", 1);
    assert_int_equal(claim(bound)->verdict, CGAM_DOES_NOT_HOLD);
    change(CGAM_RUN_SEPARATION, "points", 0, "violations", kept);

    /* a loss of 100 trials against a gain of 3, at one noise level of one coupling */
    double gained = change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "gained", 3);
    double lost = change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "lost", 0);
    double all[2][72];
    for (int i = 0; i < 72; i++) { /* without losses in either run it holds as it stands */
        all[0][i] = change(CGAM_RUN_SEPARATION, "accuracy", i, "lost", 0);
        all[1][i] = change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", i, "lost", 0);
    }
    assert_int_equal(claim(falls)->verdict, CGAM_HOLDS);
    change(CGAM_RUN_SEPARATION, "accuracy", 14, "lost", 100);
    change(CGAM_RUN_SEPARATION, "accuracy", 14, "gained", 3);
    assert_int_equal(claim(falls)->verdict, CGAM_HOLDS_UNDER);
    assert_non_null(strstr(claim(falls)->under, "σ_c/√d"));
    change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "lost", 100);
    assert_int_equal(claim(falls)->verdict, CGAM_DOES_NOT_HOLD);
    /* one loss more than gains is chance; twenty are neither chance nor certain */
    change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "lost", 4);
    assert_int_equal(claim(falls)->verdict, CGAM_HOLDS_UNDER);
    change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "gained", 100);
    change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "lost", 120);
    assert_int_equal(claim(falls)->verdict, CGAM_NOT_DECIDED);
    for (int i = 0; i < 72; i++) {
        change(CGAM_RUN_SEPARATION, "accuracy", i, "lost", all[0][i]);
        change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", i, "lost", all[1][i]);
    }
    change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "gained", gained);
    change(CGAM_RUN_SEPARATION_VECTOR, "accuracy", 30, "lost", lost);

    assert_int_equal(claim(left)->verdict, CGAM_HOLDS);
    kept = change(CGAM_RUN_COUPLED, "thresholds", 3, "alpha_half", 0.9);
    assert_int_equal(claim(left)->verdict, CGAM_DOES_NOT_HOLD);
    change(CGAM_RUN_COUPLED, "thresholds", 3, "alpha_half", NAN); /* no crossing is no evidence */
    assert_int_equal(claim(left)->verdict, CGAM_NOT_DECIDED);
    change(CGAM_RUN_COUPLED, "thresholds", 3, "alpha_half", kept);

    assert_int_equal(claim(near)->verdict, CGAM_HOLDS);
    kept = change(CGAM_RUN_COMPETITION, "peak", 2, "peak_mean", 0.05);
    assert_int_equal(claim(near)->verdict, CGAM_DOES_NOT_HOLD);
    change(CGAM_RUN_COMPETITION, "peak", 2, "peak_mean", kept);
    kept = change(CGAM_RUN_COMPETITION, "peak", 2, "peak_se", NAN); /* nor is an unknown error */
    assert_int_equal(claim(near)->verdict, CGAM_NOT_DECIDED);
    change(CGAM_RUN_COMPETITION, "peak", 2, "peak_se", kept);

    assert_int_equal(claim(wta)->verdict, CGAM_HOLDS_UNDER);
    const cgam_table *t = cgam_study_find(report->runs[CGAM_RUN_THEOREMS].study, "checks");
    for (int64_t i = 0; i < t->rows; i++)
        if (strcmp(t->labels[i], "horizon") == 0) {
            kept = change(CGAM_RUN_THEOREMS, "checks", i, "violations", 2);
            assert_int_equal(claim(wta)->verdict, CGAM_DOES_NOT_HOLD);
            change(CGAM_RUN_THEOREMS, "checks", i, "violations", kept);
        }
}

static char *read_page(void)
{
    FILE *f = fopen(folder_file("index.html"), "r");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(size + 1);
    assert_int_equal(fread(text, 1, size, f), size);
    text[size] = '\0';
    fclose(f);
    return text;
}

static int times(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) count++;
    return count;
}

TEST(no_report_of_no_size_is_made)
{
    cgam_report_opts o = cgam_report_opts_default();
    static const double scales[] = {0, 1e5};
    cgam_report *none;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        o.scale = scales[i];
        CHECK_REFUSED(env, CGAM_E_ARG, "above 0 and at most 10000",
                      cgam_report_make(env, &o, &none));
        assert_null(none);
    }
    cgam_report_free(NULL);
}

TEST(the_page_stands_alone_and_is_whole)
{
    static const char *const sections[] = {"claims",    "separation", "competition", "coupled",
                                           "timescale", "theorems",   "grids",       "definitions",
                                           "models",    "again"};
    char *page = read_page();
    assert_true(strncmp(page, "<!doctype html>", 15) == 0);
    assert_non_null(strstr(page, "</html>\n"));
    assert_null(strstr(page, "http:"));
    assert_null(strstr(page, "https:"));
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "url("));
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        char id[40], link[40];
        snprintf(id, sizeof id, "id=\"%s\"", sections[i]);
        snprintf(link, sizeof link, "href=\"#%s\"", sections[i]);
        assert_int_equal(times(page, id), 1);
        assert_true(times(page, link) >= 1);
    }
    static const char *const pairs[] = {"table", "tr", "td", "th", "div",    "p",    "pre", "dl",
                                        "dt",    "dd", "h2", "h3", "figure", "span", "sub", "sup"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char open[20], plain[20], close[20];
        snprintf(open, sizeof open, "<%s ", pairs[i]);
        snprintf(plain, sizeof plain, "<%s>", pairs[i]);
        snprintf(close, sizeof close, "</%s>", pairs[i]);
        if (times(page, open) + times(page, plain) != times(page, close))
            fail_msg("<%s>: %d opened, %d closed", pairs[i], times(page, open) + times(page, plain),
                     times(page, close));
    }
    /* every link to a file leads somewhere */
    for (const char *at = page; (at = strstr(at, "href=\"")); at++) {
        char name[200], path[600];
        if (at[6] == '#') continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (access(path, R_OK) != 0) fail_msg("a dead link: %s", name);
    }
    free(page);
}

static char *html(void (*write)(FILE *, const char *), const char *text)
{
    char *out = NULL;
    size_t size;
    FILE *to = open_memstream(&out, &size);
    write(to, text);
    fclose(to);
    return out;
}

TEST(texts_are_escaped_and_set)
{
    static const struct {
        void (*write)(FILE *, const char *);
        const char *in, *want;
    } list[] = {
        {cgam_html_text, "a < b & \"c\"", "a &lt; b &amp; &quot;c&quot;"},
        {cgam_html_math, "σ_q = -1.5, <x>", "σ<sub>q</sub> = −1.5, &lt;x&gt;"},
        {cgam_html_math, "25-75%, 1e-12, P_min w", "25-75%, 1e-12, P<sub>min</sub> w"},
        {cgam_html_math, "_x and long_name", "_x and long_name"},
        {cgam_html_rich, "A<sup>−1</sup> α_crit", "A<sup>−1</sup> α<sub>crit</sub>"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char *got = html(list[i].write, list[i].in);
        assert_string_equal(got, list[i].want);
        free(got);
    }
}

TEST(pictures_become_data)
{
    static const char *const pairs[][2] = {
        {"M", "TQ=="}, {"Ma", "TWE="}, {"Man", "TWFu"}, {"", ""}};
    char path[400];
    snprintf(path, sizeof path, "%s/bytes", folder);
    for (int i = 0; i < 4; i++) {
        char *out = NULL, want[64];
        size_t size;
        FILE *f = fopen(path, "w"), *to = open_memstream(&out, &size);
        fputs(pairs[i][0], f);
        fclose(f);
        assert_true(cgam_html_data(to, path, "image/png"));
        fclose(to);
        snprintf(want, sizeof want, "data:image/png;base64,%s", pairs[i][1]);
        assert_string_equal(out, want);
        free(out);
    }
    unlink(path);
    assert_false(cgam_html_data(stdout, path, "image/png"));
}

TEST(commands_name_what_is_unusual)
{
    char text[1024];
    static const double lambdas[] = {0, 2.5};
    cgam_study_opts o = cgam_study_opts_default(CGAM_STUDY_SEPARATION);
    cgam_command(&o, text, sizeof text);
    assert_string_equal(text, "cgam study separation --trials 6000 --seed 1");
    o.sigma_c_vector = true;
    o.alpha = 0.25;
    o.lambda = (cgam_list){lambdas, 2};
    cgam_command(&o, text, sizeof text);
    assert_string_equal(text, "cgam study separation --trials 6000 --seed 1 --alpha 0.25 --lambda "
                              "0,2.5 --context-noise vector");
    for (int k = 0; k < CGAM_STUDY_KINDS; k++) {
        char seed[40];
        cgam_study_opts d = cgam_study_opts_default((cgam_study_kind)k);
        d.seed = 12345;
        cgam_caption(&d, text, sizeof text);
        snprintf(seed, sizeof seed, "%s: seed 12345, %lld", cgam_studies[k].name,
                 (long long)d.trials);
        assert_non_null(strstr(text, seed));
        assert_true(strlen(text) < CGAM_CAPTION_MAX - 1);
    }
}

/* Scripts name files and columns that are there. */
TEST(scripts_fit_their_tables)
{
    int scripts = 0;
    for (int i = 0; i < CGAM_RUNS; i++) {
        const cgam_run *run = &report->runs[i];
        for (int k = 0; k < run->figures.count; k++, scripts++) {
            char path[500], line[8192];
            snprintf(path, sizeof path, "%s/%s/%s.gp", folder, run->folder,
                     run->figures.figure[k].name);
            FILE *f = fopen(path, "r");
            assert_non_null(f);
            const cgam_table *t = NULL;
            while (fgets(line, sizeof line, f)) {
                const char *csv = strstr(line, ".csv'");
                if (csv && line[0] != '#') {
                    const char *begin = csv;
                    char name[64];
                    while (begin[-1] != '\'') begin--;
                    snprintf(name, sizeof name, "%.*s", (int)(csv - begin), begin);
                    t = cgam_study_find(run->study, name);
                    assert_non_null(t);
                }
                for (const char *at = line; (at = strstr(at, "column('")); at++) {
                    char name[64];
                    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 8, "'"), at + 8);
                    assert_non_null(t);
                    if (cgam_table_column(t, name) < 0) fail_msg("%s: no column %s", path, name);
                }
            }
            fclose(f);
        }
    }
    assert_true(scripts >= 15);
}

/* page.html calls runs by folder, and their figures, tables and columns by name. */
TEST(the_page_asks_for_what_there_is)
{
    const cgam_embedded *page = cgam_embedded_find("lab/page/page.html");
    assert_non_null(page);
    const cgam_table *t = NULL;
    int named = 0;
    for (const char *at = page->bytes; *at; at += strcspn(at, "\n") + 1) {
        char word[16], field[2][64] = {"", ""};
        if (*at != '@') continue;
        int count = sscanf(at, "@%15[a-z] %63[^|\n]|%63[^|\n]", word, field[0], field[1]);
        const cgam_run *run = NULL;
        for (int i = 0; i < CGAM_RUNS; i++)
            if (strcmp(report->runs[i].folder, field[0]) == 0) run = &report->runs[i];
        bool found = true;
        if (strcmp(word, "command") == 0) found = run != NULL;
        if (strcmp(word, "table") == 0)
            found = run && count == 3 && (t = cgam_study_find(run->study, field[1]));
        if (strcmp(word, "column") == 0) found = t && cgam_table_column(t, field[0]) >= 0;
        if (strcmp(word, "figure") == 0) {
            found = false;
            for (int i = 0; run && i < run->figures.count; i++)
                found = found || strcmp(run->figures.figure[i].name, field[1]) == 0;
        }
        if (!found) fail_msg("page.html: %.60s", at);
        named++;
    }
    assert_true(named > 60);
}

/* What is said of all cells asks each of them: the first as well as the last, and one at least. */
/* The last one: it leaves tables changed. */
TEST(no_cell_is_forgotten)
{
    static const char fewer[] = "A context leaves fewer", exact[] = "From βΔ";
    const cgam_study *s = report->runs[CGAM_RUN_ANNEALING].study;
    int64_t *trials = (int64_t *)(uintptr_t)&s->opts.trials, were = *trials;
    const cgam_table *t = cgam_study_find(s, "cells");
    *trials = 100;
    for (int64_t i = 0; i < t->rows; i++) {
        change(CGAM_RUN_ANNEALING, "cells", i, "minima", 4 - (double)(i % 2));
        change(CGAM_RUN_ANNEALING, "cells", i, "minima_change", -1);
        change(CGAM_RUN_ANNEALING, "cells", i, "minima_change_se", 0.1);
    }
    assert_int_equal(claim(fewer)->verdict, CGAM_HOLDS);
    for (int64_t i = 1; i < t->rows; i += 2) {
        change(CGAM_RUN_ANNEALING, "cells", i, "minima_change_se", 1);
        assert_int_equal(claim(fewer)->verdict, CGAM_NOT_DECIDED);
        change(CGAM_RUN_ANNEALING, "cells", i, "minima_change_se", 0.1);
    }
    for (int64_t i = 0; i < t->rows; i++) change(CGAM_RUN_ANNEALING, "cells", i, "minima", 1);
    assert_int_equal(claim(fewer)->verdict, CGAM_NOT_DECIDED);
    *trials = were;

    for (int run = CGAM_RUN_SPARSE; run <= CGAM_RUN_SPARSE_COUPLED; run++) {
        t = cgam_study_find(report->runs[run].study, "cells");
        for (int64_t i = 0; i < t->rows; i++) change(run, "cells", i, "wide", 0);
    }
    assert_int_equal(claim(exact)->verdict, CGAM_NOT_DECIDED);
}

TEST_GROUP(make, unmake)
