/* figure_points.c: figures of the studies of fixed points: where flows end, which minimum a recall finds,
 * how many there are, how many memories are searched. */
#include "io/table.h"
#include "report/page.h"
#include "report/text.h"

/* ---- Convergence ----------------------------------------------------------------------------- */
/* y against the contraction constant, a kind of points for each alpha, and the theorem's limit. */
static void against_contraction(const cgam_study *s, const char *label, const char *y, FILE *to)
{
    const cgam_list *alphas = &cgam_study_options(s)->alphas;
    fprintf(to,
            "set logscale x\nset xlabel 'contraction constant  βλ^2 / 2η_{min}'\nset ylabel '%s'\n"
            "set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb '#D55E00' dt 2 lw 1.5\nplot "
            "NaN with lines lc rgb '#D55E00' dt 2 lw 1.5 title 'one fixed point to the left, "
            "proved'",
            label);
    for (int64_t k = 0; k < alphas->count; k++) {
        char text[32];
        fprintf(to,
                ", \\\n  'cells.csv' using (abs(column('alpha') - %.17g) < 1e-12 ? "
                "column('contraction') : NaN):(column('%s')) with points lt %d ps 1.2 title "
                "'α = %s'",
                alphas->values[k], y, cgam_page_style(k), cgam_short_text(alphas->values[k], text));
    }
    fputc('\n', to);
}

void cgam_figure_limits(const cgam_study *s, FILE *to)
{
    fprintf(to, "set yrange [0:*]\nset offsets 0, 0, graph 0.08, 0\nset key right bottom\n");
    against_contraction(s, "different ends of one problem", "limits", to);
}

void cgam_figure_rest(const cgam_study *s, FILE *to)
{
    fprintf(to, "set logscale y\nset yrange [*:2000 < * < 1e9]\nset key right top\n");
    against_contraction(s, "mean time to rest,  t / τ", "time", to);
}

/* ---- Annealing ------------------------------------------------------------------------------- */
static void tics(FILE *to, char axis, const cgam_list *list)
{
    fprintf(to, "set %ctics (", axis);
    for (int64_t k = 0; k < list->count; k++) {
        char text[32];
        fprintf(to, "%s'%s' %d", k ? ", " : "", cgam_short_text(list->values[k], text), (int)k);
    }
    fprintf(to, ") scale 0\n");
}

/* One map over beta and lambda: a colour and the number itself in every cell. Rows of the table go by
 * lambda, beta and context. */
static void cell_map(const cgam_study *s, FILE *to, const char *title, const char *column,
                     int context, const char *format, double left, double right)
{
    const cgam_study_opts *o = cgam_study_options(s);
    const int betas = (int)o->betas.count;
    fprintf(to,
            "set lmargin at screen %.3f\nset rmargin at screen %.3f\nset title '%s'\n"
            "set xrange [-0.5:%g]\nset yrange [-0.5:%g]\n"
            "plot 'cells.csv' using (int($0) %% 2 == %d ? int($0) / 2 %% %d : NaN):"
            "(int($0) / %d):(column('%s')) with image pixels notitle, \\\n"
            "  '' using (int($0) %% 2 == %d ? int($0) / 2 %% %d : NaN):(int($0) / %d):"
            "(gprintf('%s', column('%s'))) with labels font ',11' tc rgb '#000000' notitle\n",
            left, right, title, (double)betas - 0.5, (double)o->lambda.count - 0.5, context, betas,
            2 * betas, column, context, betas, 2 * betas, format, column);
}

/* Two maps side by side. The line at the foot, which every panel draws, is seen in the first. */
static void two_maps(const cgam_study *s, FILE *to, const char *const titles[2],
                     const char *const columns[2], const int contexts[2], const char *format)
{
    const cgam_study_opts *o = cgam_study_options(s);
    fprintf(to, "unset grid\nset border 0\nunset colorbox\nset xlabel 'β'\nset ylabel 'λ'\n"
                "set tmargin at screen 0.9\nset bmargin at screen 0.2\n"
                "set palette defined (0 '#ffffff', 0.5 '#cfe3f1', 1 '#6db1dc')\nset multiplot\n");
    tics(to, 'x', &o->betas);
    tics(to, 'y', &o->lambda);
    cell_map(s, to, titles[0], columns[0], contexts[0], format, 0.08, 0.5);
    fprintf(to, "set label 1 tc rgb '#ffffffff'\nset ylabel ''\n");
    cell_map(s, to, titles[1], columns[1], contexts[1], format, 0.56, 0.98);
    fprintf(to, "unset multiplot\nset label 1 tc rgb '#555555'\n");
}

void cgam_figure_minima(const cgam_study *s, FILE *to)
{
    static const char *const titles[] = {"minima without a context", "minima with the context"};
    static const char *const columns[] = {"minima", "minima"};
    fprintf(to, "set cbrange [0:%g]\n", (double)cgam_study_options(s)->n);
    two_maps(s, to, titles, columns, (const int[]){0, 1}, "%.2f");
}

void cgam_figure_best(const cgam_study *s, FILE *to)
{
    static const char *const titles[] = {"plain recall at the lowest energy",
                                         "annealed recall at the lowest energy"};
    static const char *const columns[] = {"plain_best", "anneal_best"};
    fprintf(to, "set cbrange [0.5:1]\n");
    two_maps(s, to, titles, columns, (const int[]){0, 0}, "%.3f");
}

/* ---- Sparse recall --------------------------------------------------------------------------- */
/* A column against sigma_q, with the context as lines and without it as dashes, a colour and a mark for
 * each activation from `first` on. */
static void against_noise(FILE *to, const char *column, int first)
{
    static const char *const names[] = {"softmax", "1.5-entmax", "sparsemax"};
    fprintf(to, "set xlabel 'query noise  σ_q'\nset key outside right center\nplot \\\n");
    for (int k = first; k < 3; k++)
        for (int context = 1; context >= 0; context--)
            fprintf(to,
                    "  'cells.csv' using (column('order') == %g && column('context') == %d ? "
                    "column('sigma_q') : NaN):(column('%s')) with linespoints lt %d dt %d title "
                    "'%s, %s'%s\n",
                    1 + 0.5 * k, context, column, cgam_page_style(k), context ? 1 : 2, names[k],
                    context ? "context" : "none", k == 2 && !context ? "" : ", \\");
}

void cgam_figure_support(const cgam_study *s, FILE *to)
{
    (void)s;
    fprintf(to, "set ylabel 'memories with a weight, mean'\nset yrange [0:*]\n");
    against_noise(to, "support", 1);
}

void cgam_figure_exact(const cgam_study *s, FILE *to)
{
    (void)s;
    fprintf(to, "set ylabel 'target recalled exactly, share'\nset yrange [0:1.02]\n");
    against_noise(to, "exact_right", 1);
}
