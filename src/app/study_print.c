/* study_print.c: the main numbers of each study for people; everything else is in the files. */
#include "app/study_print.h"

#include <math.h>
#include <string.h>

static void number(FILE *to, int width, int digits, double value)
{
    if (isnan(value)) fprintf(to, "%*s", width, "-");
    else fprintf(to, "%*.*f", width, digits, value);
}

static void print_separation(const json_t *doc, FILE *to)
{
    const json_t *a = json_object_get(doc, "accuracy"), *lambda = json_object_get(a, "lambda");
    const json_t *sigma = json_object_get(a, "sigma_q"), *mean = json_object_get(a, "mean");
    const json_t *boxes = json_object_get(doc, "gap_box");
    fprintf(to, "accuracy\n  sigma_q  ");
    for (size_t k = 0; k < json_array_size(lambda); k++)
        fprintf(to, " lambda %-3g", cgam_json_nth(doc, "accuracy.lambda", (int64_t)k));
    fprintf(to, "\n");
    for (size_t j = 0; j < json_array_size(sigma); j++) {
        fprintf(to, "  %7.4f  ", cgam_json_nth(doc, "accuracy.sigma_q", (int64_t)j));
        for (size_t k = 0; k < json_array_size(lambda); k++)
            number(to, 11, 4, cgam_json_nth(json_array_get(mean, k), "", (int64_t)j));
        fprintf(to, "\n");
    }
    fprintf(to, "\ngap at sigma_q near 1\n  lambda      25%%    median       75%%\n");
    for (size_t k = 0; k < json_array_size(boxes); k++) {
        const json_t *box = json_array_get(boxes, k);
        fprintf(to, "  %6g", cgam_json_get_real(box, "lambda"));
        number(to, 10, 4, cgam_json_get_real(box, "q25"));
        number(to, 10, 4, cgam_json_get_real(box, "median"));
        number(to, 10, 4, cgam_json_get_real(box, "q75"));
        fprintf(to, "\n");
    }
    fprintf(to, "\n%lld of %lld points below the logistic bound\n",
            (long long)cgam_json_get_int(doc, "bound_violations"),
            (long long)cgam_json_get_int(doc, "bound_points"));
}

static void print_competition(const json_t *doc, FILE *to)
{
    size_t rows = json_array_size(json_object_get(doc, "alpha")), step = rows > 30 ? rows / 25 : 1;
    fprintf(to, "alpha_crit %g\n\n    alpha  mean peak      s.e.\n",
            cgam_json_get_real(doc, "alpha_crit"));
    for (size_t i = 0; i < rows; i += step) {
        fprintf(to, "  %7.4f", cgam_json_nth(doc, "alpha", (int64_t)i));
        number(to, 11, 5, cgam_json_nth(doc, "peak_mean", (int64_t)i));
        number(to, 10, 5, cgam_json_nth(doc, "peak_se", (int64_t)i));
        fprintf(to, "\n");
    }
    if (step > 1) fprintf(to, "  one row in %zu, of %zu rows\n", step, rows);
    fprintf(to, "\n%.1f memories above 1/N at alpha_crit\n",
            cgam_json_get_real(doc, "above_uniform_mean"));
}

static void print_coupled(const json_t *doc, FILE *to)
{
    const json_t *curves = json_object_get(doc, "curves");
    fprintf(to,
            "alpha_crit %g; where the mean peak is 1/2, what the theorem says, where the branch "
            "folds\n\n  lambda      half      s.e.   theorem      fold   (25%%      75%%)   "
            "trials with a fold\n",
            cgam_json_get_real(doc, "alpha_crit"));
    for (size_t k = 0; k < json_array_size(curves); k++) {
        const json_t *c = json_array_get(curves, k);
        static const char *const keys[] = {"alpha_half",  "alpha_half_se", "alpha_theory",
                                           "fold_median", "fold_q25",      "fold_q75",
                                           "fold_share"};
        fprintf(to, "  %6g", cgam_json_get_real(c, "lambda"));
        for (size_t j = 0; j < 7; j++)
            number(to, 10, j == 6 ? 3 : 5, cgam_json_get_real(c, keys[j]));
        fprintf(to, "\n");
    }
}

static void print_timescale(const json_t *doc, FILE *to)
{
    static const char *const keys[] = {"ratio",         "accuracy",       "accuracy_se",
                                       "context_first", "context_median", "decided_median"};
    fprintf(to,
            "  tau_r/tau_s  accuracy      s.e.  context first  settled t/tau_s  decided t/tau_s\n");
    for (size_t i = 0; i < json_array_size(json_object_get(doc, "ratio")); i++) {
        static const int width[] = {13, 10, 10, 15, 17, 17}, digits[] = {2, 4, 4, 3, 3, 3};
        for (size_t k = 0; k < 6; k++)
            number(to, width[k], digits[k], cgam_json_nth(doc, keys[k], (int64_t)i));
        fprintf(to, "\n");
    }
}

static void print_theorems(const json_t *doc, FILE *to)
{
    const json_t *checks = json_object_get(doc, "checks");
    fprintf(to, "  %-30s %6s %10s %13s\n", "statement", "cases", "violations", "worst margin");
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *c = json_array_get(checks, i);
        fprintf(to, "  %-30s %6lld %10lld %13.2e\n", cgam_json_get_text(c, "name"),
                (long long)cgam_json_get_int(c, "cases"),
                (long long)cgam_json_get_int(c, "violations"),
                cgam_json_get_real(c, "worst_margin"));
    }
}

/* The first rows of a table that the document has as arrays, and where the others are. */
typedef struct columns {
    const char *const *keys; /* NULL ends */
    const int *digits;
    const char *file;
} columns;

static void print_columns(const json_t *doc, const columns *c, FILE *to)
{
    size_t rows = json_array_size(json_object_get(doc, c->keys[0])), shown = rows < 40 ? rows : 40;
    for (size_t k = 0; c->keys[k]; k++) fprintf(to, "%13s", c->keys[k]);
    fprintf(to, "\n");
    for (size_t i = 0; i < shown; i++) {
        for (size_t k = 0; c->keys[k]; k++)
            number(to, 13, c->digits[k], cgam_json_nth(doc, c->keys[k], (int64_t)i));
        fprintf(to, "\n");
    }
    if (shown < rows) fprintf(to, "  ... %zu rows in all, in %s\n", rows, c->file);
}

static void print_grid(const json_t *doc, FILE *to)
{
    static const char *const keys[] = {"load",   "n",        "alpha",       "sigma_q",
                                       "lambda", "accuracy", "accuracy_se", NULL};
    static const int digits[] = {3, 0, 3, 3, 3, 4, 4};
    print_columns(doc, &(columns){keys, digits, "accuracy.csv"}, to);
}

static void print_convergence(const json_t *doc, FILE *to)
{
    static const char *const keys[] = {"alpha",  "lambda", "beta",       "rested",  "rose", "same",
                                       "limits", "time",   "iterations", "refuted", NULL};
    static const int digits[] = {2, 2, 1, 3, 0, 3, 3, 1, 1, 0};
    print_columns(doc, &(columns){keys, digits, "cells.csv"}, to);
}

static void print_annealing(const json_t *doc, FILE *to)
{
    static const char *const keys[] = {"lambda",       "beta",   "context", "plain_best",
                                       "anneal_best",  "lower",  "higher",  "plain_right",
                                       "anneal_right", "minima", NULL};
    static const int digits[] = {2, 1, 0, 3, 3, 3, 3, 3, 3, 2};
    print_columns(doc, &(columns){keys, digits, "cells.csv"}, to);
}

static void print_sparse(const json_t *doc, FILE *to)
{
    static const char *const keys[] = {"sigma_q",   "order",    "context", "accuracy",
                                       "support",   "neff",     "exact",   "exact_right",
                                       "certified", "narrowed", "widened", NULL};
    static const int digits[] = {2, 1, 0, 3, 2, 2, 3, 3, 3, 0, 0};
    print_columns(doc, &(columns){keys, digits, "cells.csv"}, to);
}

void cgam_study_print(const json_t *doc, FILE *to)
{
    static const struct {
        const char *name;
        void (*print)(const json_t *doc, FILE *to);
    } list[] = {{"separation", print_separation},
                {"competition", print_competition},
                {"coupled", print_coupled},
                {"timescale", print_timescale},
                {"theorems", print_theorems},
                {"capacity", print_grid},
                {"phase", print_grid},
                {"convergence", print_convergence},
                {"annealing", print_annealing},
                {"sparse", print_sparse}};
    const char *study = cgam_json_get_text(doc, "study");
    if (json_object_get(doc, "trial")) { /* --only-trial: the document is the answer */
        cgam_json_write(to, doc, 1);
        fputc('\n', to);
        return;
    }
    fprintf(to, "%s: %lld trials, seed %lld\n\n", study,
            (long long)cgam_json_get_int(doc, "trials"), (long long)cgam_json_get_int(doc, "seed"));
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i].name, study) == 0) list[i].print(doc, to);
    const char *out = cgam_json_get_text(doc, "out");
    fprintf(to, "\n%.2f s; %s%s\n", cgam_json_get_real(doc, "seconds"),
            *out ? "everything is in " : "nothing was written", out);
}
