/* figure_scripts.c: the figures of the studies, each a template over the study's CSV files. Panels are those of the
 * paper's figures 2 and 3, then ours. */
#include "io/array.h"
#include "io/table.h"
#include "lab/figures/script.h"
#include "lab/template.h"

#include <math.h>

enum { WIDE = 720, HIGH = 480, TICS_SIZE = 4096 };

static const char SEPARATION[] = "figures/separation.gp", COMPETITION[] = "figures/competition.gp",
                  POINTS[] = "figures/points.gp";

/* The values of a list at 0, 1, ... of an axis: "'0' 0, '0.5' 1". */
static const char *list_tics(const cgam_list *list, char text[TICS_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t k = 0; k < list->count; k++)
        cgam_text_add(text, TICS_SIZE, &used, "%s'%.6g' %d", k ? ", " : "", list->values[k],
                      (int)k);
    return text;
}

static double cell(const cgam_table *t, int64_t row, int64_t column)
{
    return t->cells[row * t->columns + column];
}

/* ---- Separation (fig. 2) --------------------------------------------------------------------- */
static void accuracy(const cgam_study *s, FILE *to)
{
    cgam_template_put(to, SEPARATION, "accuracy");
    cgam_script_curves(to, &(cgam_curves){"accuracy.csv", "lambda", "λ", s->opts.lambda, "sigma_q",
                                          "accuracy", "accuracy_se", "linespoints", .more = false});
}

static void bound(const cgam_study *s, FILE *to)
{
    const cgam_list *lambda = &s->opts.lambda;
    double reach = (12 + log((double)s->opts.n)) / s->opts.beta;
    cgam_template_fill(to, SEPARATION, "bound", "low=%g high=%g", -0.8 * reach, reach);
    for (int64_t k = 0; k < lambda->count; k++)
        cgam_template_fill(to, SEPARATION, "points", "lambda=%.17g style=%d short=%.6g",
                           lambda->values[k], cgam_script_style(k), lambda->values[k]);
    cgam_template_put(to, SEPARATION, "bound end");
}

static void gaps(const cgam_study *s, FILE *to)
{
    const cgam_list *lambda = &s->opts.lambda;
    const cgam_table *t = cgam_study_find(s, "thresholds");
    char tics[TICS_SIZE];
    cgam_template_fill(to, SEPARATION, "gaps", "high=%g tics=%s", (double)lambda->count - 0.4,
                       list_tics(lambda, tics));
    for (int64_t i = 0; i < t->rows; i++)
        cgam_template_fill(to, SEPARATION, "threshold", "gap=%.17g dash=%d p=%.6g", cell(t, i, 1),
                           (int)i + 1, 1 - cell(t, i, 0));
    cgam_template_put(to, SEPARATION, "gaps end");
}

/* ---- Competition (fig. 3 a-c) ---------------------------------------------------------------- */
static double critical(const cgam_study *s) { return cgam_study_find(s, "onset")->cells[0]; }

static void peak_curve(const cgam_study *s, FILE *to, double low, double high)
{
    cgam_template_fill(to, COMPETITION, "peak", "low=%.17g high=%.17g critical=%.17g even=%.17g",
                       low, high, critical(s), 1 / (double)s->opts.n);
}

static void peak(const cgam_study *s, FILE *to)
{
    const cgam_table *t = cgam_study_find(s, "peak");
    peak_curve(s, to, t->cells[0] - 0.02, cell(t, t->rows - 1, 0) + 0.02);
}

static void zoom(const cgam_study *s, FILE *to)
{
    double crit = critical(s);
    peak_curve(s, to, fmin(crit, 1.25) - 0.01, fmax(crit, 1.25));
}

static void example(const cgam_study *s, FILE *to)
{
    double n = (double)s->opts.n;
    cgam_template_fill(to, COMPETITION, "example", "n=%g critical=%.4g even=%.17g", n, critical(s),
                       1 / n);
}

/* ---- Coupled (fig. 3 d) ---------------------------------------------------------------------- */
/* Curves, and two rows of marks under them: the theorem's threshold and the median fold. */
static void feedback(const cgam_study *s, FILE *to)
{
    static const char mark[] = "number=%d alpha=%.17g height=%s style=%d point=%d size=%s";
    const cgam_table *t = cgam_study_find(s, "thresholds"), *c = cgam_study_find(s, "curves");
    cgam_template_fill(to, COMPETITION, "feedback", "high=%.17g", cell(c, c->rows - 1, 1));
    for (int64_t k = 0; k < t->rows; k++) {
        int style = cgam_script_style(k);
        if (cell(t, k, 0) > 0 && isfinite(cell(t, k, 3)))
            cgam_template_fill(to, COMPETITION, "mark", mark, 10 + (int)k, cell(t, k, 3), "-0.045",
                               style, 12, "1.1");
        if (isfinite(cell(t, k, 5)))
            cgam_template_fill(to, COMPETITION, "mark", mark, 110 + (int)k, cell(t, k, 5), "-0.095",
                               style, 3, "1");
    }
    cgam_template_put(to, COMPETITION, "feedback plot");
    cgam_script_curves(to, &(cgam_curves){"curves.csv", "lambda", "λ", s->opts.lambda, "alpha",
                                          "peak_mean", "peak_se", "lines", .more = true});
    cgam_template_put(to, COMPETITION, "feedback end");
}

static void thresholds(const cgam_study *s, FILE *to)
{
    const cgam_list *l = &s->opts.lambda;
    cgam_template_fill(to, COMPETITION, "thresholds", "low=%.17g high=%.17g", l->values[0] - 0.1,
                       l->values[l->count - 1] + 0.1);
}

/* ---- Timescale ------------------------------------------------------------------------------- */
static void ratio(const cgam_study *s, FILE *to)
{
    (void)s;
    cgam_template_put(to, POINTS, "ratio");
}

static void along(const cgam_study *s, FILE *to)
{
    const cgam_list *all = &s->opts.ratio;
    double shown[5];
    int64_t count = 0, step = all->count > 5 ? (all->count - 1) / 4 : 1;
    for (int64_t k = 0; k < all->count && count < 5; k += step) shown[count++] = all->values[k];
    cgam_template_put(to, POINTS, "along");
    cgam_script_curves(to, &(cgam_curves){"along.csv",
                                          "ratio",
                                          "τ_r/τ_s",
                                          {shown, count},
                                          "t",
                                          "neff_mean",
                                          "neff_se",
                                          "lines",
                                          .more = false});
}

/* ---- Grids ----------------------------------------------------------------------------------- */
static void load(const cgam_study *s, FILE *to)
{
    const cgam_study_opts *o = &s->opts;
    char only[160];
    snprintf(only, sizeof only,
             " && abs(column('alpha') - %.17g) < 1e-12 && abs(column('sigma_q') - %.17g) < 1e-12",
             o->alphas.values[0], o->sigma_q.values[0]);
    if (o->load.count > 1) cgam_template_fill(to, POINTS, "log2", "axis=%c", 'x');
    cgam_template_put(to, POINTS, "load");
    cgam_script_curves(to, &(cgam_curves){"accuracy.csv", "lambda", "λ", o->lambda, "load",
                                          "accuracy", "accuracy_se", "linespoints", .only = only});
}

/* Index of (load i, alpha j, sigma_q k, lambda l) in the accuracy table. */
static int64_t row_of(const cgam_study_opts *o, const int64_t at[4])
{
    return ((at[CGAM_AXIS_LOAD] * o->alphas.count + at[CGAM_AXIS_ALPHA]) * o->sigma_q.count +
            at[CGAM_AXIS_SIGMA_Q]) *
               o->lambda.count +
           at[CGAM_AXIS_LAMBDA];
}

/* A grid over (x, y) at the first value of the other two, as gnuplot's nonuniform matrix. */
static void map_data(const cgam_study *s, FILE *to)
{
    static const char *const columns[] = {"load", "lambda", "alpha", "sigma_q"};
    const cgam_study_opts *o = &s->opts;
    const cgam_table *t = cgam_study_find(s, "accuracy");
    const int64_t counts[] = {o->load.count, o->lambda.count, o->alphas.count, o->sigma_q.count};
    int64_t at[4] = {0}, *x = &at[o->x], *y = &at[o->y];
    int64_t cx = cgam_table_column(t, columns[o->x]), cy = cgam_table_column(t, columns[o->y]);
    fprintf(to, "$map << EOD\n%d", (int)counts[o->x]);
    for (; *x < counts[o->x]; ++*x) fprintf(to, ",%.17g", cell(t, row_of(o, at), cx));
    for (*y = 0; *y < counts[o->y]; ++*y) {
        *x = 0;
        fprintf(to, "\n%.17g", cell(t, row_of(o, at), cy));
        for (; *x < counts[o->x]; ++*x) fprintf(to, ",%.6g", cell(t, row_of(o, at), 5));
        *x = 0;
    }
    fprintf(to, "\nEOD\n");
}

static void map(const cgam_study *s, FILE *to)
{
    static const char *const names[] = {"load  N/d", "coupling  λ", "penalty  α",
                                        "query noise  σ_q"};
    const cgam_study_opts *o = &s->opts;
    if (o->x == CGAM_AXIS_LOAD && o->load.count > 1)
        cgam_template_fill(to, POINTS, "log2", "axis=%c", 'x');
    if (o->y == CGAM_AXIS_LOAD && o->load.count > 1)
        cgam_template_fill(to, POINTS, "log2", "axis=%c", 'y');
    cgam_template_fill(to, POINTS, "map", "x=%s y=%s", names[o->x], names[o->y]);
}

/* ---- Convergence ----------------------------------------------------------------------------- */
/* y against the contraction constant, a kind of points for each alpha, and the theorem's limit. */
static void against_contraction(const cgam_study *s, const char *label, const char *y, FILE *to)
{
    const cgam_list *alphas = &s->opts.alphas;
    cgam_template_fill(to, POINTS, "contraction", "label=%s more=%s", label,
                       cgam_script_more(0, alphas->count + 1));
    for (int64_t k = 0; k < alphas->count; k++)
        cgam_template_fill(to, POINTS, "contraction points",
                           "alpha=%.17g y=%s style=%d short=%.6g more=%s", alphas->values[k], y,
                           cgam_script_style(k), alphas->values[k],
                           cgam_script_more(k, alphas->count));
}

static void limits(const cgam_study *s, FILE *to)
{
    cgam_template_put(to, POINTS, "limits");
    against_contraction(s, "different ends of one problem", "limits", to);
}

static void rest(const cgam_study *s, FILE *to)
{
    cgam_template_put(to, POINTS, "rest");
    against_contraction(s, "mean time to rest,  t / τ", "time", to);
}

/* ---- Annealing ------------------------------------------------------------------------------- */
/* Maps over beta and lambda: a colour and the number itself in every cell. Rows of the table go by lambda, beta and
 * context. The line at the foot, which every panel draws, is seen in the first. */
typedef struct cell_map {
    const char *title, *column;
    int context;
} cell_map;

static void two_maps(const cgam_study *s, FILE *to, const char *format, const cell_map maps[2])
{
    static const double left[] = {0.08, 0.56}, right[] = {0.5, 0.98};
    const cgam_study_opts *o = &s->opts;
    const int betas = (int)o->betas.count;
    char tics[2][TICS_SIZE];
    cgam_template_fill(to, POINTS, "maps", "betas=%s lambdas=%s", list_tics(&o->betas, tics[0]),
                       list_tics(&o->lambda, tics[1]));
    for (int k = 0; k < 2; k++) {
        if (k) cgam_template_put(to, POINTS, "second map");
        cgam_template_fill(to, POINTS, "cell map",
                           "left=%.3f right=%.3f title=%s width=%g height=%g context=%d betas=%d "
                           "row=%d column=%s format=%s",
                           left[k], right[k], maps[k].title, (double)betas - 0.5,
                           (double)o->lambda.count - 0.5, maps[k].context, betas, 2 * betas,
                           maps[k].column, format);
    }
    cgam_template_put(to, POINTS, "maps end");
}

static void minima(const cgam_study *s, FILE *to)
{
    fprintf(to, "set cbrange [0:%g]\n", (double)s->opts.n);
    two_maps(s, to, "%.2f",
             (const cell_map[]){{"minima without a context", "minima", 0},
                                {"minima with the context", "minima", 1}});
}

static void best(const cgam_study *s, FILE *to)
{
    fprintf(to, "set cbrange [0.5:1]\n");
    two_maps(s, to, "%.3f",
             (const cell_map[]){{"plain recall at the lowest energy", "plain_best", 0},
                                {"annealed recall at the lowest energy", "anneal_best", 0}});
}

/* ---- Sparse recall --------------------------------------------------------------------------- */
/* A column against sigma_q for the sparse activations, lines with the context and dashes without it. */
static void against_noise(FILE *to, const char *label, const char *high, const char *column)
{
    static const char *const names[] = {"softmax", "1.5-entmax", "sparsemax"};
    cgam_template_fill(to, POINTS, "sparse", "label=%s high=%s", label, high);
    for (int i = 2; i < 6; i++) {
        int kind = i / 2;
        cgam_template_fill(to, POINTS, "sparse curve",
                           "order=%g context=%d column=%s style=%d dash=%d name=%s arm=%s more=%s",
                           1 + 0.5 * kind, 1 - i % 2, column, cgam_script_style(kind), 1 + i % 2,
                           names[kind], i % 2 ? "none" : "context", cgam_script_more(i, 6));
    }
}

static void support(const cgam_study *s, FILE *to)
{
    (void)s;
    against_noise(to, "memories with a weight, mean", "*", "support");
}

static void exact(const cgam_study *s, FILE *to)
{
    (void)s;
    against_noise(to, "target recalled exactly, share", "1.02", "exact_right");
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
     limits},
    {CGAM_STUDY_CONVERGENCE, "rest", "How long flows take", WIDE, HIGH, NULL, rest},
    {CGAM_STUDY_ANNEALING, "minima", "Minima without and with a context", 820, 420, NULL, minima},
    {CGAM_STUDY_ANNEALING, "best", "Recalls that end at the lowest energy found", 820, 420, NULL,
     best},
    {CGAM_STUDY_SPARSE, "support", "Memories searched against query noise", WIDE, HIGH, NULL,
     support},
    {CGAM_STUDY_SPARSE, "exact", "Exact retrieval against query noise", WIDE, HIGH, NULL, exact},
    {CGAM_STUDY_KINDS, NULL, NULL, 0, 0, NULL, NULL},
};
