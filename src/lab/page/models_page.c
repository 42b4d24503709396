/* models_page.c: the section on language models, and how it gets into a page that is there.
 *
 * A page holds two pieces between marks, its part of the claims and the section itself. A study
 * that is run later replaces what is between the marks, so the synthetic studies need not be run
 * again. */
#include "lab/page/html.h"

#include "base/env.h"
#include "io/folder.h"

#include "lab/language/sweep.h"
#include <math.h>
#include <string.h>

static const char *const marks[][2] = {
    {"<!-- cgam: claims of models -->\n", "<!-- cgam: end of claims of models -->\n"},
    {"<!-- cgam: models -->\n", "<!-- cgam: end of models -->\n"},
};

/* ---- Claims ------------------------------------------------------------------------------ */
void cgam_models_claims_html(FILE *to, const cgam_models *models, const cgam_claims *claims)
{
    fputs(marks[0][0], to);
    fprintf(to, "<h3 id=\"model-claims\">About language models</h3>\n");
    if (claims->count == 0) {
        cgam_html_say(to,
                      "None is decided yet: they need a study of a <a href=\"#models\">language "
                      "model</a>.");
    } else {
        bool small = false;
        for (int i = 0; i < models->count; i++) {
            int64_t n = cgam_models_queries(&models->study[i]);
            small = small || (n > 0 && n < 100);
        }
        cgam_html_say(
            to,
            "Decided on the studies below, each for itself: a claim holds where its test passes "
            "on all of them, <em>on</em> those where it passes on some. Data: <a "
            "href=\"lm/claims.csv\">lm/claims.csv</a>.");
        if (small)
            cgam_html_say(
                to, "A study of fewer than 100 queries misses small effects: there, <em>no</em> "
                    "means no more than that the test did not find it.");
        cgam_html_claims(to, claims);
    }
    fputs(marks[0][1], to);
}

/* ---- A study ----------------------------------------------------------------------------- */
static void number(FILE *to, double value, double error)
{
    if (isnan(value)) fprintf(to, "<td class=\"n\">–</td>");
    else if (isnan(error)) fprintf(to, "<td class=\"n\">%.3f</td>", value);
    else fprintf(to, "<td class=\"n\">%.3f ± %.3f</td>", value, error);
}

typedef struct column {
    const char *head, *value, *error; /* as cgam_models_over takes them */
} column;

static const column columns[] = {
    {"zero-shot", "zero_shot.%", "zero_shot.%_se"},
    {"ICL", "icl.%", "icl.%_se"},
    {"retrieval", "best.%.held_out", "best.%.held_out_se"},
    {"label rows", "controls.label_mean.%.held_out", NULL},
    {"flipped", "controls.flipped.%.held_out", NULL},
    {"another task", "controls.other_task.%.held_out", NULL},
};

static void accuracies(FILE *to, const json_t *sweep)
{
    static const char *const titles[] = {"over the labels", "over all words"};
    const json_t *shots = cgam_json_at(sweep, "shots");
    fprintf(
        to,
        "<div class=\"wide\"><table class=\"tight\">\n<thead><tr><th class=\"n\">shots</th><th>accuracy"
        "</th>");
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        fprintf(to, "<th class=\"n\">%s</th>", columns[c].head);
    fprintf(to, "<th class=\"n\">centred</th><th class=\"n\">recovered</th><th "
                "class=\"n\">layers of c, q; λ</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(shots); i++) {
        const json_t *entry = json_array_get(shots, i);
        for (int over = 0; over < 2; over++) {
            const json_t *best = cgam_json_at(cgam_json_at(entry, "best"),
                                              cgam_sweep_over_name((cgam_sweep_over)over));
            fprintf(to, "<tr><td class=\"n\">%d</td><td style=\"white-space:nowrap\">%s</td>",
                    (int)cgam_json_get_int(entry, "k"), titles[over]);
            for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
                number(to, cgam_models_over(entry, columns[c].value, over),
                       cgam_models_over(entry, columns[c].error, over));
            number(to, over ? (double)NAN : cgam_json_get_real(entry, "controls.centred.held_out"),
                   NAN);
            number(to, cgam_json_get_real(entry, over ? "recovered_full" : "recovered"),
                   cgam_json_get_real(entry, over ? "recovered_full_se" : "recovered_se"));
            double from = cgam_json_nth(best, "lambda", 0);
            double to_lambda = cgam_json_nth(best, "lambda", 1);
            fprintf(to, "<td class=\"n\">%d, %d; %.3g",
                    (int)cgam_json_get_int(best, "context_layer"),
                    (int)cgam_json_get_int(best, "query_layer"), from);
            if (isnan(to_lambda)) fprintf(to, " and above</td></tr>\n");
            else fprintf(to, "–%.3g</td></tr>\n", to_lambda);
        }
    }
    fprintf(to, "</tbody></table></div>\n");
    fprintf(to,
            "<p class=\"soft\">ICL: the model with its demonstrations. Retrieval: ⟨ζ, q⟩ + λ⟨ζ, "
            "c⟩, and beside it the same with the baselines' contexts; centred: zero-shot scores "
            "less their means. Recovered: what retrieval gains over zero-shot as a share of what "
            "demonstrations gain, left out where they do not gain significantly. Layers and λ are "
            "those of the best pair on all queries. ± standard errors.</p>\n");
}

/* Of several numbers of shots the page shows the fewest and the most; the others are beside it. */
static bool shown(cgam_lm_part part, const cgam_figures *figures, int i)
{
    if (part != CGAM_LM_SWEEP && part != CGAM_LM_STEER && part != CGAM_LM_GATES) return true;
    int first = strcmp(figures->figure[0].name, "shots") == 0 ? 1 : 0;
    return i <= first || i == figures->count - 1;
}

static cgam_status pictures(FILE *to, cgam_env *env, const char *out, const cgam_models_study *s,
                            bool steering)
{
    char folder[160], path[CGAM_PATH_ROOM];
    cgam_figures *figures = cgam_zalloc(env, 1, sizeof *figures);
    if (!figures) return cgam_fail_nomem(env, "figures");
    snprintf(folder, sizeof folder, "lm/%s", s->name);
    fprintf(to, "<div class=\"figures\">\n");
    cgam_status status = CGAM_OK;
    for (int part = 0; part < CGAM_LM_EXPERIMENTS && status == CGAM_OK; part++) {
        const json_t *doc = cgam_json_at(s->doc, cgam_lm_part_name((cgam_lm_part)part));
        if (!json_is_object(doc) || (part == CGAM_LM_STEER && !steering)) continue;
        cgam_models_figures((cgam_lm_part)part, doc, figures);
        for (int i = 0; i < figures->count && status == CGAM_OK; i++) {
            const cgam_figure *f = &figures->figure[i];
            snprintf(path, sizeof path, "%s/%s/%s.png", out, folder, f->name);
            if (!shown((cgam_lm_part)part, figures, i) || !cgam_file_exists(path)) continue;
            status = cgam_html_picture(to, env, out, folder, f, "", f->words);
        }
    }
    fprintf(to, "</div>\n");
    cgam_free(env, figures);
    return status;
}

/* Means and deviations over seeds, where several were run. */
static void spread(FILE *to, const json_t *doc)
{
    static const char *const names[] = {"zero_shot",  "icl",     "retrieval",
                                        "label_mean", "flipped", "other_task"};
    const json_t *shots = cgam_json_at(doc, "shots");
    if (json_array_size(shots) == 0) return;
    fprintf(to,
            "<p class=\"soft\">Over %d seeds, each with its own queries and demonstrations: mean ± "
            "standard deviation.</p>\n<div class=\"wide\"><table class=\"tight\">\n<thead><tr><th "
            "class=\"n\">shots</th><th>accuracy</th>",
            (int)json_array_size(cgam_json_at(doc, "seeds")));
    for (size_t c = 0; c < sizeof names / sizeof *names; c++)
        fprintf(to, "<th class=\"n\">%s</th>", columns[c].head);
    fprintf(to, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(shots); i++)
        for (int over = 0; over < 2; over++) {
            const json_t *entry = json_array_get(shots, i);
            fprintf(to, "<tr><td class=\"n\">%d</td><td>over %s</td>",
                    (int)cgam_json_get_int(entry, "k"), over ? "all words" : "the labels");
            for (size_t c = 0; c < sizeof names / sizeof *names; c++) {
                char path[40];
                snprintf(path, sizeof path, "%%.%s.mean", names[c]);
                double mean = cgam_models_over(entry, path, over);
                snprintf(path, sizeof path, "%%.%s.sd", names[c]);
                number(to, mean, cgam_models_over(entry, path, over));
            }
            fprintf(to, "</tr>\n");
        }
    fprintf(to, "</tbody></table></div>\n");
}

/* Vectors inside the model. */
static void injections(FILE *to, const json_t *shots)
{
    static const struct {
        const char *head, *path;
    } parts[] = {{"zero-shot", "zero_shot"},
                 {"ICL", "icl"},
                 {"readout", "readout"},
                 {"add", "by_kind.add.held_out"},
                 {"replace", "by_kind.replace.held_out"},
                 {"recovered", "best.recovered"},
                 {"random", "controls.random"},
                 {"flipped", "controls.flipped"},
                 {"another task", "controls.other_task"}};
    enum { PARTS = sizeof parts / sizeof *parts };
    fprintf(to,
            "<div class=\"wide\"><table class=\"tight\">\n<thead><tr><th class=\"n\">shots</th>");
    for (int c = 0; c < PARTS; c++) fprintf(to, "<th class=\"n\">%s</th>", parts[c].head);
    fprintf(to, "<th class=\"n\">kind, layer</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(shots); i++) {
        const json_t *entry = json_array_get(shots, i);
        fprintf(to, "<tr><td class=\"n\">%d</td>", (int)cgam_json_get_int(entry, "k"));
        for (int c = 0; c < PARTS; c++) {
            char error[40];
            snprintf(error, sizeof error, "%s_se", parts[c].path);
            number(to, cgam_json_get_real(entry, parts[c].path), cgam_json_get_real(entry, error));
        }
        fprintf(to, "<td class=\"n\">");
        cgam_html_text(to, cgam_json_get_text(entry, "best.kind"));
        fprintf(to, ", %d</td></tr>\n", (int)cgam_json_get_int(entry, "best.layer"));
    }
    fprintf(to, "</tbody></table></div>\n"
                "<p class=\"soft\">Vectors put into the last token's state of the prompt without "
                "demonstrations. Readout: query plus context, as above. Kind, layer and scale are "
                "chosen on one half of the queries and counted on the other, with vectors of the "
                "first; the three controls stand at the chosen cells. The last column is the best "
                "cell on all queries. ± standard errors.</p>\n");
}

/* The gate operator over the vocabulary, a row for each alpha and mode. */
static void gated(FILE *to, const json_t *doc)
{
    static const struct {
        const char *head, *key, *error;
    } parts[] = {{"λ", "lambda", NULL},
                 {"over labels", "restricted", "restricted_se"},
                 {"over words", "full", "full_se"},
                 {"N_eff", "neff", NULL},
                 {"changed", "argmax_changed", NULL},
                 {"p_max", "p_max", NULL},
                 {"unique", "unique_share", NULL}};
    enum { PARTS = sizeof parts / sizeof *parts };
    const json_t *shots = cgam_json_at(doc, "shots");
    fprintf(to,
            "<div class=\"wide\"><table class=\"tight\">\n<thead><tr><th class=\"n\">shots</th><th "
            "class=\"n\">α</th><th>mode</th>");
    for (int c = 0; c < PARTS; c++) fprintf(to, "<th class=\"n\">%s</th>", parts[c].head);
    fprintf(to, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < json_array_size(shots); i++) {
        const json_t *entry = json_array_get(shots, i), *grid = cgam_json_at(entry, "grid");
        for (size_t r = 0; r < json_array_size(grid); r++) {
            const json_t *row = json_array_get(grid, r);
            fprintf(to, "<tr><td class=\"n\">%d</td><td class=\"n\">%.3g</td><td>",
                    (int)cgam_json_get_int(entry, "k"), cgam_json_get_real(row, "alpha"));
            cgam_html_text(to, cgam_json_get_text(row, "mode"));
            fprintf(to, "</td>");
            for (int c = 0; c < PARTS; c++)
                number(to, cgam_json_get_real(row, parts[c].key),
                       parts[c].error ? cgam_json_get_real(row, parts[c].error) : (double)NAN);
            fprintf(to, "</tr>\n");
        }
    }
    fprintf(
        to,
        "</tbody></table></div>\n<p class=\"soft\">Scores ⟨ζ, q⟩ + λ(A(α)⁻¹Zc) over all %s rows of "
        "the unembedding, α_crit = %.4g, 1/μ_max = %.3g; coupled: with the feedback λ²A(α)⁻¹p. λ is "
        "chosen anew at each α in mode first, on one half of the queries, and all is counted on the "
        "other. Changed: the best word differs, in mode first from α = 0, in mode coupled from mode "
        "first. Unique: proved to be the only answer. ± standard errors.</p>\n",
        strcmp(cgam_json_get_text(doc, "rows"), "unit") == 0 ? "unit" : "raw",
        cgam_json_get_real(doc, "alpha_crit"), 1 / cgam_json_get_real(doc, "mu_max"));
}

/* What P does, over all tasks and for each. */
static void fit_row(FILE *to, const char *name, const json_t *of)
{
    static const char *const keys[] = {"zero_shot", "icl",      "mean",    "identity",
                                       "random",    "held_out", "left_out"};
    for (int over = 0; over < 2; over++) {
        fprintf(to, "<tr><td>");
        cgam_html_text(to, name);
        fprintf(to, "</td><td>%s</td>", over ? "over all words" : "over the labels");
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const json_t *way = json_object_get(of, keys[i]);
            double share = cgam_json_get_real(way, over ? "full" : "restricted");
            double se = cgam_json_get_real(way, over ? "full_se" : "restricted_se");
            if (isnan(share)) fprintf(to, "<td class=\"n\">–</td>");
            else fprintf(to, "<td class=\"n\">%.3f ± %.3f</td>", share, se);
        }
        fprintf(to, "</tr>\n");
    }
}

static void fit_table(FILE *to, const json_t *doc)
{
    size_t i;
    json_t *task;
    const json_t *tasks = cgam_json_at(doc, "by_task");
    fprintf(to,
            "<div class=\"wide\"><table class=\"tight\">\n<thead><tr><th>P</th><th>accuracy</th>"
            "<th class=\"n\">no context</th><th class=\"n\">ICL</th><th class=\"n\">mean y</th>"
            "<th class=\"n\">P = I</th><th class=\"n\">random P</th><th class=\"n\">learned P</th>"
            "<th class=\"n\">task left out</th></tr></thead>\n<tbody>\n");
    fit_row(to, "all", doc);
    json_array_foreach(tasks, i, task) if (json_array_size(tasks) > 1)
        fit_row(to, cgam_json_get_text(task, "task"), task);
    fprintf(to, "</tbody></table></div>\n<p class=\"soft\">P (");
    cgam_html_text(to, cgam_json_get_text(doc, "method"));
    fprintf(to, ") takes the ");
    cgam_html_text(to, cgam_json_get_text(doc, "from"));
    fprintf(
        to,
        " after layer %d to what demonstrations add after the last; the score is that of the last "
        "state without them plus P x. Fitted on one half of the queries, counted on the other; task "
        "left out: fitted on the other tasks. Mean y: of the same task on the half fitted on. R² of P x "
        "about y: %.2f, of the mean %.2f. ± standard errors.</p>\n",
        (int)cgam_json_get_int(doc, "layer"), cgam_json_get_real(doc, "held_out.r2"),
        cgam_json_get_real(doc, "mean.r2"));
}

static void command(FILE *to, const char *text)
{
    if (!*text) return;
    fprintf(to, "<pre>");
    cgam_html_text(to, text);
    fprintf(to, "</pre>\n");
}

static cgam_status one_study(FILE *to, cgam_env *env, const char *out, const cgam_models_study *s,
                             bool steering)
{
    static const char *const files[] = {
        "study.json",     "neff.csv",           "sweep.csv",   "sweep_steps.csv",
        "sweep_grid.csv", "per_query.csv",      "seeds.csv",   "steer.csv",
        "probe.csv",      "inject.csv",         "inject.json", "gates.csv",
        "gates.json",     "gates_spectrum.csv", "fit.csv",     "fit.json"};
    const json_t *neff = cgam_json_at(s->doc, "neff"), *inject = cgam_json_at(s->doc, "inject");
    const json_t *gates = cgam_json_at(s->doc, "gates");
    const json_t *fit = cgam_json_at(s->doc, "fit");
    char path[CGAM_PATH_ROOM];
    fprintf(to, "<h3>");
    cgam_html_text(to, s->name);
    fprintf(to, "</h3>\n");
    if (!s->doc) {
        fprintf(to, "<p>This study cannot be read: ");
        cgam_html_text(to, s->reason);
        fprintf(to, "</p>\n");
        return CGAM_OK;
    }
    if (!neff) neff = inject ? inject : gates ? gates : fit;
    fprintf(to, "<p class=\"soft\">");
    cgam_html_text(to, cgam_json_get_text(neff, "model.file"));
    fprintf(to, " (");
    cgam_html_text(to, cgam_json_get_text(neff, "model.description"));
    fprintf(to, "), %d layers, d = %d, %d words · %d queries, %d labels, seed %lld</p>\n",
            (int)cgam_json_get_int(neff, "model.layers"),
            (int)cgam_json_get_int(neff, "model.width"),
            (int)cgam_json_get_int(neff, "model.vocab"), (int)cgam_json_get_int(neff, "queries"),
            (int)cgam_json_get_int(neff, "labels"), (long long)cgam_json_get_int(neff, "seed"));
    if (cgam_json_at(s->doc, "sweep")) accuracies(to, cgam_json_at(s->doc, "sweep"));
    spread(to, cgam_json_at(s->doc, "spread"));
    if (inject) injections(to, cgam_json_at(inject, "shots"));
    if (gates) gated(to, gates);
    if (fit) fit_table(to, fit);
    cgam_status status = pictures(to, env, out, s, steering);
    command(to, cgam_json_get_text(s->doc, "command"));
    command(to, cgam_json_get_text(inject, "command"));
    command(to, cgam_json_get_text(gates, "command"));
    command(to, cgam_json_get_text(fit, "command"));
    fprintf(to, "<p class=\"soft\">Data:");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/lm/%s/%s", out, s->name, files[i]);
        if (!cgam_file_exists(path)) continue;
        fprintf(to, " <a href=\"lm/");
        cgam_html_text(to, s->name);
        fprintf(to, "/%s\">%s</a>", files[i], files[i]);
    }
    fprintf(to, "</p>\n");
    return status;
}

cgam_status cgam_models_html(FILE *to, cgam_env *env, const char *folder, const cgam_models *models)
{
    cgam_status status = CGAM_OK;
    bool facts = false;
    fputs(marks[1][0], to);
    fprintf(to, "<h2 id=\"models\">Language models</h2>\n");
    if (models->count == 0) {
        cgam_html_say(
            to, "No study of a language model is in this report. To add one (the first command "
                "fetches 334 MB):");
        fprintf(to, "<pre>cgam lm get\ncgam lm study --dataset sentiment --shots 0,1,4 --queries "
                    "40 --report ");
        cgam_html_text(to, folder);
        fprintf(to, "</pre>\n");
    } else {
        cgam_html_say(
            to,
            "Memories are the rows of a model's unembedding; the query q is the state that a "
            "prompt leaves without demonstrations, the context c the mean of what demonstrations "
            "add to it, each after one of the layers; a word's score is ⟨ζ, q⟩ + λ⟨ζ, c⟩. "
            "Accuracies in the tables and in the panels that say so are held out: context, pair of "
            "layers and λ all come from one half of the queries and are counted on the other. Maps of "
            "all pairs and curves over λ are not: there λ is at its best for the queries that are "
            "counted, or read off. A shared context adds the same number to a label's score whatever the "
            "query, so over the labels it can only move the borders between classes; the baselines "
            "say how far that carries.");
        for (int i = 0; i < models->count; i++)
            facts = facts || cgam_models_facts(&models->study[i]);
        /* sets of classes steer the shipped facts: shown where no study is about facts */
        for (int i = 0; i < models->count && status == CGAM_OK; i++)
            status = one_study(to, env, folder, &models->study[i],
                               cgam_models_facts(&models->study[i]) || !facts);
    }
    fputs(marks[1][1], to);
    return status;
}

/* ---- Into a page that is there ----------------------------------------------------------- */
/* Where a text begins in [from, end), or NULL. */
static const char *find(const char *from, const char *end, const char *text)
{
    return from < end ? memmem(from, (size_t)(end - from), text, strlen(text)) : NULL;
}

static cgam_status rewrite(cgam_env *env, const char *folder, const char *path,
                           const cgam_models *models, const cgam_claims *claims)
{
    cgam_file old;
    cgam_outfile *file = NULL;
    cgam_status status = cgam_file_map(env, path, &old);
    if (status != CGAM_OK) return status;
    const char *start = (const char *)old.bytes, *end = start + old.size, *from[2], *to[2];
    const char *last = start;
    for (int i = 0; i < 2 && status == CGAM_OK; i++) {
        from[i] = last ? find(last, end, marks[i][0]) : NULL;
        to[i] = from[i] ? find(from[i], end, marks[i][1]) : NULL;
        last = to[i] ? to[i] + strlen(marks[i][1]) : NULL;
        if (!last)
            status = cgam_fail(env, CGAM_E_FORMAT,
                               "%s has no place for language models; make it again with: cgam "
                               "report",
                               cgam_path_tail(path));
        else to[i] = last;
    }
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, &file);
    if (status == CGAM_OK) {
        FILE *out = cgam_outfile_stream(file);
        fwrite(start, 1, (size_t)(from[0] - start), out);
        cgam_models_claims_html(out, models, claims);
        fwrite(to[0], 1, (size_t)(from[1] - to[0]), out);
        status = cgam_models_html(out, env, folder, models);
        fwrite(to[1], 1, (size_t)(end - to[1]), out);
        if (status == CGAM_OK) status = cgam_outfile_commit(file);
        else cgam_outfile_abandon(file);
    }
    cgam_file_unmap(&old);
    return status;
}

/* A page of its own, which `cgam report` makes a part of its own one. */
static cgam_status begin_page(cgam_env *env, const char *folder, const char *path,
                              const cgam_models *models, const cgam_claims *claims)
{
    cgam_outfile *file;
    cgam_status status = cgam_outfile_begin(env, path, &file);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(file);
    cgam_html_head(to, "Context-gated associative memory: language models");
    fprintf(to, "<h1>Context-gated associative memory: language models</h1>\n"
                "<nav><a href=\"#model-claims\">Claims</a><a href=\"#models\">Studies</a></nav>\n");
    cgam_models_claims_html(to, models, claims);
    status = cgam_models_html(to, env, folder, models);
    cgam_html_say(to, "The synthetic studies join this page with:");
    fprintf(to, "<pre>cgam report --out ");
    cgam_html_text(to, folder);
    fprintf(to, "</pre>\n</body>\n</html>\n");
    if (status == CGAM_OK) return cgam_outfile_commit(file);
    cgam_outfile_abandon(file);
    return status;
}

cgam_status cgam_models_refresh(cgam_env *env, const char *folder)
{
    char path[CGAM_PATH_ROOM];
    cgam_models *models = NULL;
    cgam_claims *claims = cgam_zalloc(env, 1, sizeof *claims);
    if (!claims) return cgam_fail_nomem(env, "claims");
    cgam_status status = cgam_models_load(env, folder, &models);
    if (status == CGAM_OK) status = cgam_models_claims_write(env, folder, models, claims);
    if (status == CGAM_OK) status = cgam_path_join(env, folder, "index.html", path);
    if (status == CGAM_OK)
        status = (cgam_file_exists(path) ? rewrite : begin_page)(env, folder, path, models, claims);
    cgam_models_free(env, models);
    cgam_free(env, claims);
    return status;
}
