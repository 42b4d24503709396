/* figure_scripts.c: the figures of the studies. Each is a template, STUDY-FIGURE.gp, over the study's summary, to which is added
 * what a template cannot compute; the script reads the study's CSV files. Panels are those of the paper's figures 2 and 3, then
 * ours. */
#include "lab/figures/script.h"
#include "lab/table.h"

#include <math.h>

enum { WIDE = 720, HIGH = 480 };

/* A table as a list of objects. */
static json_t *rows_json(const cgam_table *t)
{
    json_t *list = json_array();
    for (int64_t i = 0; t && i < t->rows; i++) {
        json_t *row = json_object();
        cgam_table_put(row, t, i, 0, t->heads);
        json_array_append_new(list, row);
    }
    return list;
}

/* Up to five values from the start of a list. */
static json_t *some_of(const cgam_list *list)
{
    enum { MOST = 5 };
    json_t *some = json_array();
    int64_t step = list->count > MOST ? (list->count - 1) / (MOST - 1) : 1;
    for (int64_t k = 0; k < list->count && json_array_size(some) < MOST; k += step)
        json_array_append_new(some, cgam_json_real(list->values[k]));
    return some;
}

void cgam_figure_fill(const cgam_study *study, const char *name, FILE *to)
{
    const cgam_study_opts *o = &study->opts;
    const double n = (double)o->n, reach = (12 + log(n)) / o->beta;
    char text[80];
    json_t *doc = json_object();
    json_object_update(doc, study->doc);
    cgam_json_add(doc, "even=%g low=%g high=%g shown=%p thresholds=%p", 1 / n, -0.8 * reach, reach,
                  some_of(&o->ratio), rows_json(cgam_study_find(study, "thresholds")));
    snprintf(text, sizeof text, "%s-%s", cgam_studies[o->kind].name, name);
    cgam_script_fill(to, text, doc);
}

static double cell(const cgam_table *t, int64_t row, int64_t column)
{
    return t->cells[row * t->columns + column];
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

const cgam_figure_script cgam_figure_scripts[] = {
    {CGAM_STUDY_SEPARATION, "accuracy", "Retrieval accuracy against query noise", WIDE, HIGH, NULL},
    {CGAM_STUDY_SEPARATION, "bound", "Target probability against the separation gap", WIDE, HIGH,
     NULL},
    {CGAM_STUDY_SEPARATION, "gaps", "Distribution of the gap for each coupling", WIDE, HIGH, NULL},
    {CGAM_STUDY_COMPETITION, "peak", "Peak gate probability against the penalty", WIDE, HIGH, NULL},
    {CGAM_STUDY_COMPETITION, "zoom", "The transition", WIDE, HIGH, NULL},
    {CGAM_STUDY_COMPETITION, "example", "Gates of one trial at the critical penalty", WIDE, 420,
     NULL},
    {CGAM_STUDY_COUPLED, "curves", "Peak probability with feedback", 820, 520, NULL},
    {CGAM_STUDY_COUPLED, "thresholds", "Where the transition is", WIDE, HIGH, NULL},
    {CGAM_STUDY_TIMESCALE, "ratios", "Accuracy against the ratio of time constants", WIDE, HIGH,
     NULL},
    {CGAM_STUDY_TIMESCALE, "along", "Memories in play along the way", WIDE, HIGH, NULL},
    {CGAM_STUDY_CAPACITY, "accuracy", "Accuracy against load", WIDE, HIGH, NULL},
    {CGAM_STUDY_PHASE, "map", "Accuracy as a map", 760, 540, map_data},
    {CGAM_STUDY_CONVERGENCE, "limits", "Where flows end, from random starts", WIDE, HIGH, NULL},
    {CGAM_STUDY_CONVERGENCE, "rest", "How long flows take", WIDE, HIGH, NULL},
    {CGAM_STUDY_ANNEALING, "minima", "Minima without and with a context", 820, 420, NULL},
    {CGAM_STUDY_ANNEALING, "best", "Recalls that end at the lowest energy found", 820, 420, NULL},
    {CGAM_STUDY_SPARSE, "support", "Memories searched against query noise", WIDE, HIGH, NULL},
    {CGAM_STUDY_SPARSE, "exact", "Exact retrieval against query noise", WIDE, HIGH, NULL},
    {CGAM_STUDY_RIVALS, "accuracy", "Gates and their rivals against query noise", 820, HIGH, NULL},
    {CGAM_STUDY_RIVALS, "gains", "What each gains over query mixing", 820, HIGH, NULL},
    {.name = NULL},
};
