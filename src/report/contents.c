/* contents.c: what the page says, section by section. */
#include "report/html.h"
#include "report/models.h"
#include "report/text.h"

#include "base/env.h"
#include "io/folder.h"

#include <math.h>
#include <string.h>

static void command_of(FILE *to, const cgam_run *run)
{
    char text[1024];
    cgam_command(cgam_study_options(run->study), text, sizeof text);
    fprintf(to, "<pre>");
    cgam_html_text(to, text);
    fprintf(to, "</pre>\n<p class=\"soft\">cgam %s, %.2f s. Data:", cgam_version(), run->seconds);
    for (int64_t i = 0; i < cgam_study_tables(run->study); i++) {
        const char *name = cgam_study_table(run->study, i)->name;
        fprintf(to, " <a href=\"%s/%s.csv\">%s.csv</a>", run->folder, name, name);
    }
    fprintf(to, " <a href=\"%s/summary.json\">summary.json</a></p>\n", run->folder);
}

static void picture(FILE *to, const cgam_report *r, const cgam_run *run, const char *name,
                    const char *letter, const char *words)
{
    const cgam_figure *f = NULL;
    for (int i = 0; i < run->figures.count; i++)
        if (strcmp(run->figures.figure[i].name, name) == 0) f = &run->figures.figure[i];
    if (!f || !r->opts.figures || r->figures_missing) return;
    cgam_html_picture(to, r->opts.out, run->folder, f, letter, words);
}

/* ---- Sections -------------------------------------------------------------------------------- */
static void claims(FILE *to, const cgam_report *r)
{
    fprintf(to, "<h2 id=\"claims\">The paper's claims</h2>\n");
    cgam_html_say(
        to,
        "Each row is decided by the test it names, on this run's own data; no verdict is written "
        "by hand. Data: <a href=\"claims.csv\">claims.csv</a>.");
    cgam_html_claims(to, &r->claims);
    cgam_models_claims_html(to, r->models, &r->model_claims);
}

static void separation(FILE *to, const cgam_report *r)
{
    static const cgam_html_column gaps[] = {{"lambda", "λ", "%g"},
                                            {"q05", "5%", "%.3f"},
                                            {"q25", "25%", "%.3f"},
                                            {"median", "median", "%.3f"},
                                            {"q75", "75%", "%.3f"},
                                            {"q95", "95%", "%.3f"},
                                            {"above_zero", "Δ &gt; 0", "%.3f"},
                                            {"mean_all", "mean, all σ_q", "%.3f"},
                                            {0}};
    const cgam_run *one = &r->runs[CGAM_RUN_SEPARATION];
    const cgam_run *two = &r->runs[CGAM_RUN_SEPARATION_VECTOR];
    fprintf(to, "<h2 id=\"separation\">Context-augmented separation (fig. 2)</h2>\n");
    cgam_html_say(
        to,
        "One bank of unit Gaussian memories. A trial picks a target ζ, a query q = ζ + σ_q ε and "
        "a context c = ζ + σ_c η, and recalls with r = Zq + λ A(α)<sup>−1</sup>Zc, the same draws "
        "for every λ. Δ is the target's score less the best other score, P its probability under "
        "softmax(βr).");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, one, "accuracy", "(a)", "Bars: one standard error.");
    picture(to, r, one, "bound", "(b)", "One trial in 64; the bound is exact for all of them.");
    picture(to, r, one, "gaps", "(c)",
            "Boxes: quartiles; whiskers: 5 and 95%; lines: the gap that guarantees a probability.");
    fprintf(to, "</div>\n<h3>Gaps at σ<sub>q</sub> ≈ 1</h3>\n");
    cgam_html_table(to, cgam_study_find(one->study, "gaps"), gaps, "", 0, 1);
    command_of(to, one);
    fprintf(to, "<h3>With context noise of length σ<sub>c</sub></h3>\n");
    cgam_html_say(
        to,
        "With σ_c = 0.3 in every component the noise is about as long as the memory itself (0.95 "
        "against 1 for d = 10), and a large λ tends to the accuracy of the context alone. With "
        "σ_c/√d per component it is 0.3 long. The first claim of the table compares the two.");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, two, "accuracy", "(a′)", "");
    picture(to, r, two, "gaps", "(c′)", "");
    fprintf(to, "</div>\n");
    command_of(to, two);
}

static void competition(FILE *to, const cgam_report *r)
{
    static const cgam_html_column onset[] = {
        {"alpha", "α_crit", "%.4g"},  {"above_mean", "memories above 1/N", "%.2f"},
        {"above_se", "s.e.", "%.2f"}, {"share_two_or_more", "two or more", "%.4f"},
        {"trials", "trials", "%.0f"}, {0}};
    const cgam_run *one = &r->runs[CGAM_RUN_COMPETITION];
    const cgam_run *two = &r->runs[CGAM_RUN_COMPETITION_UNCAPPED];
    fprintf(to, "<h2 id=\"competition\">Competition among gates (fig. 3 a–c)</h2>\n");
    cgam_html_say(
        to,
        "Each trial draws a cluster of unit memories and gives every gate the same input, u = "
        "1/N. Below α_crit the gates settle, s = A(α)<sup>−1</sup>u; from α_crit on s(t) is taken "
        "in closed form at t = min(t*, t_cap). With N &gt; d the smallest eigenvalue of G is 0, "
        "so α_crit = 1 by construction.");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, one, "peak", "(a)", "Mean over trials of the largest gate probability.");
    picture(to, r, one, "zoom", "(b)", "");
    picture(to, r, one, "example", "(c)", "");
    fprintf(to, "</div>\n");
    cgam_html_table(to, cgam_study_find(one->study, "onset"), onset, "", 0, 1);
    command_of(to, one);
    fprintf(to, "<h3>Without a cap on time</h3>\n");
    cgam_html_say(
        to, "t* alone makes the transition a step and the example one-hot: at α_crit the time to a "
            "decision is hundreds of time constants.");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, two, "zoom", "(b′)", "");
    picture(to, r, two, "example", "(c′)", "");
    fprintf(to, "</div>\n");
    command_of(to, two);
}

static void coupled(FILE *to, const cgam_report *r)
{
    static const cgam_html_column columns[] = {{"lambda", "λ", "%g"},
                                               {"alpha_half", "α at mean peak 1/2", "%.4f"},
                                               {"alpha_half_se", "s.e.", "%.4f"},
                                               {"alpha_theory", "theorem", "%.4f"},
                                               {"fold_q25", "fold, 25%", "%.4f"},
                                               {"fold_median", "median", "%.4f"},
                                               {"fold_q75", "75%", "%.4f"},
                                               {"fold_share", "trials with a fold", "%.3f"},
                                               {0}};
    const cgam_run *one = &r->runs[CGAM_RUN_COUPLED];
    fprintf(to, "<h2 id=\"coupled\">Feedback from retrieval (fig. 3 d)</h2>\n");
    cgam_html_say(
        to,
        "The same clusters with r ← λA<sup>−1</sup>u + λ²A<sup>−1</sup>softmax(βr) iterated from "
        "small noise while A(α) is positive definite, and the transient of gates and retrieval "
        "from α_crit on. λ = 0 shows the gates. The theorem's threshold is proved for balanced "
        "banks; the <em>fold</em> is where the branch of fixed points from α = 0 really ends.");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, one, "curves", "(d)", "Marks below the axis: thresholds of each λ.");
    picture(to, r, one, "thresholds", "", "");
    fprintf(to, "</div>\n");
    cgam_html_say(
        to, "A curve may drop at α = α_crit: below it is the fixed point, which is reached however "
            "long that takes; from there on it is the state at t_cap.");
    cgam_html_table(to, cgam_study_find(one->study, "thresholds"), columns, "", 0, 1);
    command_of(to, one);
}

static void timescale(FILE *to, const cgam_report *r)
{
    static const cgam_html_column columns[] = {
        {"ratio", "τ_r/τ_s", "%g"},
        {"accuracy", "accuracy", "%.3f"},
        {"accuracy_se", "s.e.", "%.3f"},
        {"context_first", "context first", "%.3f"},
        {"context_median", "context settled, t/τ_s", "%.3g"},
        {"decided_median", "retrieval decided, t/τ_s", "%.3g"},
        {"undecided", "undecided", "%.0f"},
        {0}};
    static const int variants[] = {CGAM_RUN_TIMESCALE_STARTED, CGAM_RUN_TIMESCALE_FREE};
    static const char *const titles[] = {"Retrieval that starts at the query, r(0) = Zq",
                                         "Query free, τ_q = τ_r"};
    const cgam_run *one = &r->runs[CGAM_RUN_TIMESCALE];
    fprintf(to, "<h2 id=\"timescale\">Do fast gates precondition retrieval?</h2>\n");
    cgam_html_say(
        to, "τ_s ṡ = Zc + λp − As and τ_r ṙ = λs + Zq − r from s = 0, r = 0, for ratios τ_r/τ_s. "
            "<em>Context settled</em>: the gates are within 10% of where the present p would hold "
            "them. <em>Retrieval decided</em>: the largest p is at least 1/2. With strong feedback "
            "there are many fixed points, and the ratio decides which is reached.");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, one, "ratios", "", "");
    picture(to, r, one, "along", "", "");
    fprintf(to, "</div>\n");
    cgam_html_table(to, cgam_study_find(one->study, "ratios"), columns, "", 0, 1);
    command_of(to, one);
    for (int i = 0; i < 2; i++) {
        const cgam_run *other = &r->runs[variants[i]];
        fprintf(to, "<h3>");
        cgam_html_rich(to, titles[i]);
        fprintf(to, "</h3>\n");
        cgam_html_table(to, cgam_study_find(other->study, "ratios"), columns, "", 0, 2);
        command_of(to, other);
    }
}

static void theorems(FILE *to, const cgam_report *r)
{
    static const cgam_html_column columns[] = {{"cases", "cases", "%.0f"},
                                               {"violations", "violations", "%.0f"},
                                               {"worst_margin", "worst margin", "%.2e"},
                                               {"tolerance", "tolerance", "%.0e"},
                                               {0}};
    const cgam_run *one = &r->runs[CGAM_RUN_THEOREMS];
    fprintf(to, "<h2 id=\"theorems\">The theorems, counted</h2>\n");
    cgam_html_say(
        to,
        "Every statement on random instances of 2 to 24 memories in 2 to 12 dimensions. The "
        "margin says how far the closest case is on the right side; identities show minus their "
        "relative error. The statements themselves are in summary.json.");
    cgam_html_table(to, cgam_study_find(one->study, "checks"), columns, "statement", 0, 1);
    command_of(to, one);
}

static void grids(FILE *to, const cgam_report *r)
{
    fprintf(to, "<h2 id=\"grids\">Capacity and phase diagrams</h2>\n");
    cgam_html_say(
        to, "First-order recall accuracy over grids of load N/d, coupling λ, penalty α and query "
            "noise σ_q. Both studies also take a bank of your own: "
            "<code>cgam study phase --bank Z.npy</code>.");
    fprintf(to, "<div class=\"figures\">\n");
    picture(to, r, &r->runs[CGAM_RUN_CAPACITY], "accuracy", "", "");
    picture(to, r, &r->runs[CGAM_RUN_PHASE], "map", "", "Lines of equal accuracy.");
    picture(to, r, &r->runs[CGAM_RUN_PHASE_PENALTY], "map", "", "Lines of equal accuracy.");
    fprintf(to, "</div>\n");
    command_of(to, &r->runs[CGAM_RUN_CAPACITY]);
    command_of(to, &r->runs[CGAM_RUN_PHASE]);
    command_of(to, &r->runs[CGAM_RUN_PHASE_PENALTY]);
}

static void definitions(FILE *to)
{
    static const char *const words[][2] = {
        {"Z, N, d", "N memories ζ in d dimensions, the rows of Z; here of length 1"},
        {"G", "ZZ<sup>T</sup>, with eigenvalues μ_k"},
        {"q, c", "query and context; b = Zq, u = Zc (or u = 1/N)"},
        {"s, r, p", "gates, retrieval, p = softmax(βr)"},
        {"λ, α, β", "coupling, penalty, inverse temperature"},
        {"A(α)", "I + α(G − diag G), the gates' operator; eigenvalues η_k = 1 − α(1 − μ_k)"},
        {"α_crit", "where A turns singular, 1/(1 − μ_min)"},
        {"t*", "(1/γ) log1p(γL/(βΔ₀)), γ = α(1 − μ_min) − 1, L = ln((1−δ)(N−1)/δ), Δ₀ the gap "
               "between the two largest entries of P_min u"},
        {"Δ", "r of the target less the largest other r; at least Δ_raw + λΔ_gate"},
        {"bound", "P ≥ 1/(1 + (N−1)e<sup>−βΔ</sup>)"},
        {"fold", "where A − λ²β(diag p − pp<sup>T</sup>) stops being positive definite along the "
                 "branch of fixed points from α = 0"},
        {"N_eff", "exp of the entropy of p"},
        {"s.e.", "standard error: binomial for shares of trials, between banks where there are "
                 "several, jackknife for crossings"},
    };
    fprintf(to, "<h2 id=\"definitions\">Definitions</h2>\n<dl>\n");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        fprintf(to, "<dt>");
        cgam_html_rich(to, words[i][0]);
        fprintf(to, "</dt><dd>");
        cgam_html_rich(to, words[i][1]);
        fprintf(to, "</dd>\n");
    }
    fprintf(to, "</dl>\n");
}

cgam_status cgam_report_page(const cgam_report *r)
{
    static const char *const links[][2] = {
        {"claims", "Claims"},        {"separation", "Separation"},  {"competition", "Competition"},
        {"coupled", "Feedback"},     {"timescale", "Time scales"},  {"theorems", "Theorems"},
        {"grids", "Phase diagrams"}, {"models", "Language models"}, {"definitions", "Definitions"},
        {"again", "Again"}};
    cgam_outfile *file;
    cgam_status status = cgam_outfile_in(r->env, r->opts.out, "index.html", &file);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(file);
    cgam_html_head(to, "Context-gated associative memory: simulations");
    fprintf(to,
            "<h1>Context-gated associative memory: simulations</h1>\n"
            "<p class=\"soft\">cgam %s · seed %llu · %d threads · %.1f s of computing",
            cgam_version(), (unsigned long long)r->opts.seed, cgam_env_threads(r->env),
            r->seconds - r->figure_seconds);
    if (r->opts.figures && !r->figures_missing)
        fprintf(to, ", %.1f s of drawing", r->figure_seconds);
    fprintf(to, "</p>\n");
    cgam_html_say(
        to, "A bank of memories is searched by a query while a context decides which memories may "
            "win. This page repeats the paper's synthetic experiments, counts its theorems on "
            "random instances, and says of each of its claims whether it holds.");
    if (r->opts.scale != 1)
        fprintf(to,
                "<p><strong>Not at full size: every number of trials is %g times its default%s"
                "</strong></p>\n",
                r->opts.scale,
                r->opts.scale < 1 ? ", so less is decided and errors are larger." : ".");
    fprintf(to, "<nav>");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        fprintf(to, "<a href=\"#%s\">%s</a>", links[i][0], links[i][1]);
    fprintf(to, "</nav>\n");
    if (r->figures_missing)
        cgam_html_say(
            to,
            "<strong>gnuplot was not found, so there are no figures.</strong> Install gnuplot and "
            "run the report again; all numbers are complete.");
    claims(to, r);
    separation(to, r);
    competition(to, r);
    coupled(to, r);
    timescale(to, r);
    theorems(to, r);
    grids(to, r);
    cgam_models_html(to, r->env, r->opts.out, r->models);
    definitions(to);
    fprintf(to, "<h2 id=\"again\">Again</h2>\n<pre>cgam report --seed %llu",
            (unsigned long long)r->opts.seed);
    if (r->opts.scale != 1) fprintf(to, " --scale %g", r->opts.scale);
    fprintf(to, "</pre>\n");
    cgam_html_say(
        to,
        "The same seed and options give the same numbers, whatever the number of threads. Any "
        "trial can be looked at alone: <code>cgam study coupled --only-trial 17</code>. Figures "
        "can be restyled: each folder holds the gnuplot script and the data.");
    fprintf(to, "</body>\n</html>\n");
    return cgam_outfile_commit(file);
}
