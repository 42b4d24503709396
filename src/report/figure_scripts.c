/* figure_scripts.c: the figures themselves, each a short gnuplot script over a study's CSV files.
 * Panels are those of the paper's figures 2 and 3, then ours. */
#include "report/page.h"
#include "report/text.h"

#include <math.h>
#include <string.h>

enum { WIDE = 720, HIGH = 480 };

/* ---- Separation (fig. 2) --------------------------------------------------------------------- */
static void accuracy(const cgam_study *s, FILE *to)
{
    fprintf(to, "set xlabel 'query noise  σ_q'\nset ylabel 'retrieval accuracy'\n"
                "set yrange [0:1.02]\nset key outside right center\nplot \\\n");
    cgam_page_curves(to,
                     &(cgam_curves){.file = "accuracy.csv",
                                    .key = "lambda",
                                    .symbol = "λ",
                                    .list = cgam_study_options(s)->lambda,
                                    .x = "sigma_q",
                                    .y = "accuracy",
                                    .se = "accuracy_se",
                                    .with = "linespoints"},
                     "\n");
}

static void bound(const cgam_study *s, FILE *to)
{
    const cgam_study_opts *o = cgam_study_options(s);
    double reach = (12 + log((double)o->n)) / o->beta;
    fprintf(to,
            "set xlabel 'effective separation gap  Δ'\nset ylabel 'target probability  P(μ)'\n"
            "set yrange [-0.02:1.02]\nset xrange [%g:%g]\nset key outside right center\nplot \\\n",
            -0.8 * reach, reach);
    for (int64_t k = 0; k < o->lambda.count; k++) {
        char text[32];
        int style = cgam_page_style(k);
        fprintf(to,
                "  'sample.csv' using (abs(column('lambda') - %.17g) < 1e-9 ? column('gap') : NaN):"
                "(column('p')) with points lt %d ps 0.35 lw 0.7 notitle, \\\n"
                "  NaN with points lt %d ps 0.9 title 'λ = %s', \\\n",
                o->lambda.values[k], style, style, cgam_short_text(o->lambda.values[k], text));
    }
    fprintf(to, "  'bound.csv' using (column('gap')):(column('bound')) with lines lc rgb "
                "'#D00000' lw 3 dt 1 title 'lower bound'\n");
}

static void gaps(const cgam_study *s, FILE *to)
{
    const cgam_study_opts *o = cgam_study_options(s);
    const cgam_table *t = cgam_study_find(s, "thresholds");
    fprintf(to,
            "set xlabel 'coupling  λ'\nset ylabel 'gap Δ at σ_q ≈ 1'\nset boxwidth 0.5\n"
            "set style fill solid 0.25 border\nset xrange [-0.6:%g]\n"
            "set key outside right center\nset xtics (",
            (double)o->lambda.count - 0.4);
    for (int64_t k = 0; k < o->lambda.count; k++) {
        char text[32];
        fprintf(to, "%s'%s' %d", k ? ", " : "", cgam_short_text(o->lambda.values[k], text), (int)k);
    }
    fprintf(to, ")\nplot \\\n");
    for (int64_t i = 0; i < t->rows; i++) {
        char text[32];
        fprintf(to, "  %.17g with lines lc rgb '#D00000' lw 1.5 dt %d title 'P ≥ %s', \\\n",
                t->cells[i * t->columns + 1], (int)i + 1,
                cgam_short_text(1 - t->cells[i * t->columns], text));
    }
    fprintf(to,
            "  'gaps.csv' using ($0):(column('q25')):(column('q05')):(column('q95')):"
            "(column('q75')) with candlesticks lc rgb '#0072B2' lw 1.5 dt 1 title '25-75%%, 5-95%%'"
            " whiskerbars, \\\n"
            "  '' using ($0):(column('median')):(column('median')):(column('median')):"
            "(column('median')) with candlesticks lc rgb '#000000' lw 3 dt 1 notitle, \\\n"
            "  NaN with lines lc rgb '#000000' lw 3 dt 1 title 'median'\n");
}

/* ---- Competition (fig. 3 a-c) ---------------------------------------------------------------- */
static double critical(const cgam_study *s) { return cgam_study_find(s, "onset")->cells[0]; }

static void peak_curve(const cgam_study *s, FILE *to, double low, double high)
{
    double crit = critical(s);
    fprintf(to,
            "set xlabel 'penalty  α'\nset ylabel 'mean peak gate probability'\nset yrange "
            "[0:1.04]\nset xrange [%.17g:%.17g]\nset key right center\n"
            "set arrow 1 from %.17g, graph 0 to %.17g, graph 1 nohead lc rgb '#D55E00' dt 2 lw "
            "1.5\n"
            "plot %.17g with lines lc rgb '#888888' dt 3 lw 1.5 title '1/N', \\\n"
            "  NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'α_{crit}', \\\n"
            "  'peak.csv' using (column('alpha')):(column('peak_mean')):(column('peak_se')) with "
            "yerrorlines lt 2 dt 1 ps 0.5 title 'mean of max p, ± s.e.'\n",
            low, high, crit, crit, 1 / (double)cgam_study_options(s)->n);
}

static void peak(const cgam_study *s, FILE *to)
{
    const cgam_table *t = cgam_study_find(s, "peak");
    peak_curve(s, to, t->cells[0] - 0.02, t->cells[(t->rows - 1) * t->columns] + 0.02);
}

static void zoom(const cgam_study *s, FILE *to)
{
    double crit = critical(s);
    peak_curve(s, to, fmin(crit, 1.25) - 0.01, fmax(crit, 1.25));
}

static void example(const cgam_study *s, FILE *to)
{
    double n = (double)cgam_study_options(s)->n;
    fprintf(to,
            "set xlabel 'memory'\nset ylabel 'gate probability  p*_i'\nset xrange [-1:%g]\n"
            "set yrange [0:*]\nset boxwidth 0.8\nset style fill solid 0.7 noborder\n"
            "set key top right\nset offsets 0, 0, graph 0.2, 0\n"
            "plot 'example.csv' using (column('memory')):(column('p')) with boxes lc rgb '#0072B2' "
            "title 'gates at α_{crit} = %.4g', %.17g with lines lc rgb '#D55E00' "
            "dt 2 lw 2 title 'uniform, 1/N'\n",
            n, critical(s), 1 / n);
}

/* ---- Coupled (fig. 3 d) ---------------------------------------------------------------------- */
static void feedback(const cgam_study *s, FILE *to)
{
    const cgam_table *t = cgam_study_find(s, "thresholds"), *c = cgam_study_find(s, "curves");
    fprintf(to,
            "set xlabel 'penalty  α'\nset ylabel 'mean peak probability'\nset yrange "
            "[-0.13:1.04]\nset ytics 0, 0.2\nset xrange [-0.02:%.17g]\nset key outside right "
            "center\n",
            c->cells[(c->rows - 1) * c->columns + 1]);
    for (int64_t k = 0; k < t->rows; k++) { /* two rows of marks under the curves */
        const double *row = t->cells + k * t->columns;
        int style = cgam_page_style(k);
        if (row[0] > 0 && isfinite(row[3]))
            fprintf(to, "set label %d '' at %.17g, -0.045 point lt %d pt 12 ps 1.1 lw 1.5\n",
                    10 + (int)k, row[3], style);
        if (isfinite(row[5]))
            fprintf(to, "set label %d '' at %.17g, -0.095 point lt %d pt 3 ps 1 lw 1.5\n",
                    110 + (int)k, row[5], style);
    }
    fprintf(to, "plot \\\n");
    cgam_page_curves(to,
                     &(cgam_curves){.file = "curves.csv",
                                    .key = "lambda",
                                    .symbol = "λ",
                                    .list = cgam_study_options(s)->lambda,
                                    .x = "alpha",
                                    .y = "peak_mean",
                                    .se = "peak_se",
                                    .with = "lines"},
                     ", \\\n  NaN with points pt 12 ps 1.1 lc rgb '#444444' title 'theorem', \\\n"
                     "  NaN with points pt 3 ps 1 lc rgb '#444444' title 'fold, median'\n");
}

static void thresholds(const cgam_study *s, FILE *to)
{
    const cgam_list *l = &cgam_study_options(s)->lambda;
    fprintf(to, "set xrange [%.17g:%.17g]\n", l->values[0] - 0.1, l->values[l->count - 1] + 0.1);
    fprintf(to,
            "set xlabel 'coupling  λ'\nset ylabel 'threshold  α'\nset yrange [0:*]\n"
            "set offsets 0, 0, 0.05, 0\nset key top right\nplot \\\n"
            "  'thresholds.csv' using (column('lambda')):(column('alpha_theory')) with linespoints "
            "lt 3 title 'theorem, α_{crit}(1 − λ^2β/N)', \\\n"
            "  '' using (column('lambda')):(column('fold_median')):(column('fold_q25')):"
            "(column('fold_q75')) with yerrorbars lt 4 dt 1 lw 1.5 pt 4 ps 1.3 title 'fold, median "
            "and quartiles', \\\n"
            "  '' using (column('lambda')):(column('alpha_half')):(column('alpha_half_se')) with "
            "yerrorlines lt 1 title 'mean peak = 1/2, ± s.e.'\n");
}

/* ---- Timescale ------------------------------------------------------------------------------- */
static void ratio(const cgam_study *s, FILE *to)
{
    (void)s;
    fprintf(to,
            "set logscale x\nset xlabel 'τ_r / τ_s'\nset ylabel 'share of trials'\n"
            "set yrange [0:1.04]\nset key left top\nplot \\\n"
            "  'ratios.csv' using (column('ratio')):(column('accuracy')):(column('accuracy_se')) "
            "with yerrorlines lt 1 title 'the target is retrieved, ± s.e.', \\\n"
            "  '' using (column('ratio')):(column('context_first')) with linespoints lt 3 title "
            "'context settles before retrieval decides'\n");
}

static void along(const cgam_study *s, FILE *to)
{
    const cgam_study_opts *o = cgam_study_options(s);
    double shown[5];
    int64_t count = 0, step = o->ratio.count > 5 ? (o->ratio.count - 1) / 4 : 1;
    for (int64_t k = 0; k < o->ratio.count && count < 5; k += step)
        shown[count++] = o->ratio.values[k];
    fprintf(to, "set logscale x\nset format x '10^{%%T}'\nset xlabel 't / τ_s'\n"
                "set ylabel 'mean N_{eff}  (exp of entropy)'\nset yrange [0:*]\n"
                "set xrange [1e-3:*]\nset key outside right center\nplot \\\n");
    cgam_page_curves(to,
                     &(cgam_curves){.file = "along.csv",
                                    .key = "ratio",
                                    .symbol = "τ_r/τ_s",
                                    .list = {shown, count},
                                    .x = "t",
                                    .y = "neff_mean",
                                    .se = "neff_se",
                                    .with = "lines"},
                     "\n");
}

/* ---- Grids ----------------------------------------------------------------------------------- */
static void load(const cgam_study *s, FILE *to)
{
    const cgam_study_opts *o = cgam_study_options(s);
    char only[160];
    fprintf(to,
            "%sset xlabel 'load  N/d'\nset ylabel 'retrieval accuracy'\nset yrange [0:1.02]\n"
            "set key outside right center\nplot \\\n",
            o->load.count > 1 ? "set logscale x 2\n" : "");
    snprintf(only, sizeof only,
             "abs(column('alpha') - %.17g) < 1e-12 && abs(column('sigma_q') - %.17g) < 1e-12",
             o->alphas.values[0], o->sigma_q.values[0]);
    cgam_page_curves(to,
                     &(cgam_curves){.file = "accuracy.csv",
                                    .key = "lambda",
                                    .symbol = "λ",
                                    .list = o->lambda,
                                    .x = "load",
                                    .y = "accuracy",
                                    .se = "accuracy_se",
                                    .with = "linespoints",
                                    .only = only},
                     "\n");
}

/* Index of (load i, alpha j, sigma_q k, lambda l) in the accuracy table. */
static int64_t row_of(const cgam_study_opts *o, const int64_t at[4])
{
    return ((at[CGAM_AXIS_LOAD] * o->alphas.count + at[CGAM_AXIS_ALPHA]) * o->sigma_q.count +
            at[CGAM_AXIS_SIGMA_Q]) *
               o->lambda.count +
           at[CGAM_AXIS_LAMBDA];
}

static void map_data(const cgam_study *s, FILE *to)
{
    static const char *const columns[] = {"load", "lambda", "alpha", "sigma_q"};
    const cgam_study_opts *o = cgam_study_options(s);
    const cgam_table *t = cgam_study_find(s, "accuracy");
    const int64_t counts[] = {o->load.count, o->lambda.count, o->alphas.count, o->sigma_q.count};
    int64_t at[4] = {0}, cx = cgam_table_column(t, columns[o->x]);
    int64_t cy = cgam_table_column(t, columns[o->y]);
    /* a grid over (x, y) at the first value of the other two, as gnuplot's nonuniform matrix */
    fprintf(to, "$map << EOD\n%d", (int)counts[o->x]);
    for (at[o->x] = 0; at[o->x] < counts[o->x]; at[o->x]++)
        fprintf(to, ",%.17g", t->cells[row_of(o, at) * t->columns + cx]);
    at[o->x] = 0;
    for (at[o->y] = 0; at[o->y] < counts[o->y]; at[o->y]++) {
        at[o->x] = 0;
        fprintf(to, "\n%.17g", t->cells[row_of(o, at) * t->columns + cy]);
        for (; at[o->x] < counts[o->x]; at[o->x]++)
            fprintf(to, ",%.6g", t->cells[row_of(o, at) * t->columns + 5]);
    }
    fprintf(to, "\nEOD\n");
}

static void map(const cgam_study *s, FILE *to)
{
    static const char *const names[] = {"load  N/d", "coupling  λ", "penalty  α",
                                        "query noise  σ_q"};
    const cgam_study_opts *o = cgam_study_options(s);
    if (o->x == CGAM_AXIS_LOAD && o->load.count > 1) fprintf(to, "set logscale x 2\n");
    if (o->y == CGAM_AXIS_LOAD && o->load.count > 1) fprintf(to, "set logscale y 2\n");
    fprintf(
        to,
        "unset grid\nset border 15\nset xlabel '%s'\nset ylabel '%s' offset -1\n"
        "set lmargin at screen 0.12\nset rmargin at screen 0.83\nset tmargin at screen 0.96\n"
        "set bmargin at screen 0.19\n"
        "set cblabel 'accuracy' offset 1\nset cbrange [0:1]\nset view map\n"
        "set pm3d corners2color mean\nset autoscale xfix\nset autoscale yfix\n"
        "set palette defined (0 '#fcfdbf', 0.25 '#fe9f6d', 0.5 '#de4968', 0.75 '#8c2981', 1 "
        "'#3b0f70')\n"
        "set contour base\nset cntrparam levels discrete 0.1, 0.25, 0.5, 0.75, 0.9\n"
        "set cntrlabel onecolor font ',10' start 5 interval 60\n"
        "set style textbox opaque noborder margins 0.3,0.2\nset datafile nocolumnheaders\n"
        "unset key\n"
        "splot $map nonuniform matrix using 1:2:3 with pm3d, \\\n"
        "  $map nonuniform matrix using 1:2:3 with lines lc rgb '#000000' lw 1.2 nosurface, \\\n"
        "  $map nonuniform matrix using 1:2:3 with labels boxed font ',10' tc rgb '#000000' "
        "nosurface\n",
        names[o->x], names[o->y]);
}

/* ---- The list ------------------------------------------------------------------------------- */
const cgam_figure_script cgam_figure_scripts[] = {
    {CGAM_STUDY_SEPARATION, "accuracy", "Retrieval accuracy against query noise", WIDE, HIGH, NULL,
     accuracy},
    {CGAM_STUDY_SEPARATION, "bound", "Target probability against the separation gap", WIDE, HIGH,
     NULL, bound},
    {CGAM_STUDY_SEPARATION, "gaps", "Distribution of the gap for each coupling", WIDE, HIGH, NULL,
     gaps},
    {CGAM_STUDY_COMPETITION, "peak", "Peak gate probability against the penalty", WIDE, HIGH, NULL,
     peak},
    {CGAM_STUDY_COMPETITION, "zoom", "The transition", WIDE, HIGH, NULL, zoom},
    {CGAM_STUDY_COMPETITION, "example", "Gates of one trial at the critical penalty", WIDE, 420,
     NULL, example},
    {CGAM_STUDY_COUPLED, "curves", "Peak probability with feedback", 820, 520, NULL, feedback},
    {CGAM_STUDY_COUPLED, "thresholds", "Where the transition is", WIDE, HIGH, NULL, thresholds},
    {CGAM_STUDY_TIMESCALE, "ratios", "Accuracy against the ratio of time constants", WIDE, HIGH,
     NULL, ratio},
    {CGAM_STUDY_TIMESCALE, "along", "Memories in play along the way", WIDE, HIGH, NULL, along},
    {CGAM_STUDY_CAPACITY, "accuracy", "Accuracy against load", WIDE, HIGH, NULL, load},
    {CGAM_STUDY_PHASE, "map", "Accuracy as a map", 760, 540, map_data, map},
    {CGAM_STUDY_CONVERGENCE, "limits", "Where flows end, from random starts", WIDE, HIGH, NULL,
     cgam_figure_limits},
    {CGAM_STUDY_CONVERGENCE, "rest", "How long flows take", WIDE, HIGH, NULL, cgam_figure_rest},
    {CGAM_STUDY_ANNEALING, "minima", "Minima without and with a context", 820, 420, NULL,
     cgam_figure_minima},
    {CGAM_STUDY_ANNEALING, "best", "Recalls that end at the lowest energy found", 820, 420, NULL,
     cgam_figure_best},
    {CGAM_STUDY_SPARSE, "support", "Memories searched against query noise", WIDE, HIGH, NULL,
     cgam_figure_support},
    {CGAM_STUDY_SPARSE, "exact", "Exact retrieval against query noise", WIDE, HIGH, NULL,
     cgam_figure_exact},
    {CGAM_STUDY_KINDS, NULL, NULL, 0, 0, NULL, NULL},
};
