/* ctest: timeout=240
 * The report: claims follow the numbers they are given, texts are escaped, commands and captions say what was run. That the page is
 * whole and stands alone is in tests/system/report_page.py. */
#include "lab/synthetic/study.h"
#include "lab/table.h"
#include "support/check.h"
#include "support/folder.h"

#include "base/env.h"
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
    char text[CGAM_VERDICT_TEXT];
    assert_in_range(report->claims.count, 25, CGAM_CLAIMS_MAX - 1);
    for (int i = 0; i < report->claims.count; i++) {
        const cgam_claim *c = &report->claims.claim[i];
        assert_true(strlen(c->numbers) > 5 && strlen(c->numbers) < CGAM_CLAIM_TEXT - 1);
        assert_true(strlen(c->test) > 10);
        assert_int_equal(c->verdict == CGAM_HOLDS_UNDER, c->under[0] != '\0');
        assert_true(strlen(cgam_verdict_text(c, text)) > 4);
    }
}

/* Contexts that say nothing: no claim that a context or a gate helps may hold, whatever else does. */
TEST(a_context_without_content_helps_in_no_claim)
{
    static const struct {
        int run;
        cgam_study_kind kind;
    } runs[] = {{CGAM_RUN_SEPARATION, CGAM_STUDY_SEPARATION},
                {CGAM_RUN_SEPARATION_VECTOR, CGAM_STUDY_SEPARATION},
                {CGAM_RUN_TIMESCALE, CGAM_STUDY_TIMESCALE},
                {CGAM_RUN_TIMESCALE_STARTED, CGAM_STUDY_TIMESCALE},
                {CGAM_RUN_TIMESCALE_FREE, CGAM_STUDY_TIMESCALE},
                {CGAM_RUN_SPARSE, CGAM_STUDY_SPARSE},
                {CGAM_RUN_SPARSE_COUPLED, CGAM_STUDY_SPARSE},
                {CGAM_RUN_RIVALS, CGAM_STUDY_RIVALS}};
    static const char *const about[] = {"Retrieval with a context is more accurate",
                                        "Context gating aids",
                                        "The penalty α separates",
                                        "Feedback from retrieval",
                                        "Input-driven plasticity",
                                        "Masks on memories",
                                        "Context substantially extends",
                                        "The largest gains are",
                                        "Gates that settle first",
                                        "Accuracy is non-decreasing"};
    static const double noise[] = {0, 0.5, 1, 2}, far[] = {0.1, 10};
    static cgam_claims claims;
    char text[CGAM_VERDICT_TEXT];
    const cgam_study *studies[CGAM_RUNS];
    cgam_study *empty[CGAM_RUNS] = {NULL};
    for (int i = 0; i < CGAM_RUNS; i++) studies[i] = report->runs[i].study;
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        cgam_study_opts o = cgam_study_opts_default(runs[k].kind);
        o.sigma_c = 1e4;
        o.trials = runs[k].kind == CGAM_STUDY_SEPARATION ? 600
                   : runs[k].kind == CGAM_STUDY_RIVALS   ? 8
                                                         : 150;
        if (runs[k].kind == CGAM_STUDY_SEPARATION || runs[k].kind == CGAM_STUDY_RIVALS)
            o.sigma_q = (cgam_list){noise, 4};
        if (runs[k].kind == CGAM_STUDY_TIMESCALE) o.ratio = (cgam_list){far, 2};
        o.query_free = runs[k].run == CGAM_RUN_TIMESCALE_FREE;
        o.start_query = runs[k].run == CGAM_RUN_TIMESCALE_STARTED;
        o.coupled = runs[k].run == CGAM_RUN_SPARSE_COUPLED;
        CHECK_STATUS(env, cgam_study_run(env, &o, &empty[runs[k].run]));
        studies[runs[k].run] = empty[runs[k].run];
    }
    cgam_claims_decide(studies, &claims);
    size_t found = 0;
    for (int i = 0; i < claims.count; i++)
        for (size_t k = 0; k < sizeof about / sizeof *about; k++) {
            const cgam_claim *c = &claims.claim[i];
            if (strncmp(c->says, about[k], strlen(about[k])) != 0) continue;
            found++;
            if (c->verdict != CGAM_NOT_DECIDED && c->verdict != CGAM_DOES_NOT_HOLD)
                fail_msg("%s: %s (%s)", c->says, cgam_verdict_text(c, text), c->numbers);
        }
    assert_int_equal(found, sizeof about / sizeof *about);
    for (int i = 0; i < CGAM_RUNS; i++) cgam_study_free(empty[i]);
}

/* What a reader sees of a claim that holds in some of its readings. */
TEST(verdicts_say_what_is_printed_and_what_holds)
{
    static const char *const names[] = {"one", "two", "three"};
    static const struct {
        cgam_outcome outcomes[3];
        int printed;
        const char *text;
    } cases[] = {
        {{CGAM_SHOWN, CGAM_SHOWN, CGAM_SHOWN}, 0, "holds"},
        {{CGAM_REFUTED, CGAM_SHOWN, CGAM_OPEN}, 0, "not as printed (3 of 9 fall); holds with two"},
        {{CGAM_OPEN, CGAM_SHOWN, CGAM_SHOWN},
         0,
         "not shown as printed; holds with two, and with three"},
        {{CGAM_SHOWN, CGAM_SHOWN, CGAM_REFUTED},
         -1,
         "holds with one, and with two; not with three (3 of 9 fall)"},
        {{CGAM_REFUTED, CGAM_REFUTED, CGAM_REFUTED}, 0, "does not hold"},
        {{CGAM_REFUTED, CGAM_OPEN, CGAM_REFUTED}, 0, "not decided: not shown"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[CGAM_VERDICT_TEXT];
        cgam_claim c = {.printed = cases[k].printed};
        for (c.reading = 0; c.reading < 3; c.reading++) cgam_claim_brief(&c, "%d of %d fall", 3, 9);
        cgam_claim_decide(&c, CGAM_CLAIM_TRIALS, 3, cases[k].outcomes, names);
        assert_string_equal(cgam_verdict_text(&c, text), cases[k].text);
        cgam_claim_decide(&c, CGAM_CLAIM_TRIALS - 1, 3, cases[k].outcomes, names);
        assert_string_equal(cgam_verdict_text(&c, text), "not decided by this run");
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

/* What is said of all cells asks each of them: the first as well as the last, and one at least. */
/* The last one: it leaves tables changed. */
TEST(no_cell_is_forgotten)
{
    static const char fewer[] = "A context leaves fewer", exact[] = "If βΔ";
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
