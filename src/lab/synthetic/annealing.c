/* annealing.c: does following the branch from beta = 0 find the deepest minimum, and how many minima are
 * there without and with a context? (docs/theorems/variational.md, cgam/landscape.h)
 *
 * Each trial has its own bank, a noisy query and a noisy context. At every (lambda, beta), without and with the
 * context, it computes the plain coupled recall, the annealed one and the landscape: energies, winners, and the number of
 * minima that the starts reveal. Best is the lowest energy found by any of the three.
 *
 * A block is one trial; its record has COUNTS numbers for every cell and arm. */
#include "lab/synthetic/trial.h"

#include <cgam/recall.h>
#include <math.h>
#include <string.h>

enum {
    PLAIN_BEST,  /* 1: the plain recall ends at the lowest energy found */
    ANNEAL_BEST, /* 1: the annealed one does */
    AGREE,       /* 1: both end at the same energy */
    LOWER,       /* 1: the annealed is lower; higher follows */
    PLAIN_RIGHT, /* 1: the target wins */
    ANNEAL_RIGHT,
    BEST_RIGHT,
    JUMPED, /* 1: the branch had a fold or a pitchfork */
    MINIMA,
    SADDLES,
    WHOLE, /* 1: the signs of all points sum to 1, as they must where none is missing */
    COUNTS
};
enum { ARMS = 2 }; /* without the context, with it */
static const double SAME_ENERGY = 1e-9;

static int64_t cells_of(const cgam_study_opts *o) { return o->lambda.count * o->betas.count; }

static bool lower(double a, double b) { return a < b - SAME_ENERGY * (1 + fabs(b)); }

static cgam_status recall(const cgam_problem *p, cgam_recall_opts o, cgam_mode mode,
                          const double *c, cgam_result *result, cgam_anneal *path)
{
    cgam_recall *plan;
    o.mode = mode;
    cgam_status status = cgam_recall_new(p->bank, &o, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = p->q, .c = c};
    cgam_recall_out out = {.results = result, .anneal = path};
    status = cgam_recall_run(plan, &in, &out);
    cgam_recall_free(plan);
    return status;
}

/* Everything about one problem under one context; text: for --only-trial, NULL otherwise. */
static cgam_status run_arm(cgam_study *study, const cgam_problem *p, cgam_recall_opts o,
                           const double *c, double *record, json_t *text)
{
    cgam_result plain = {0}, slow = {0};
    cgam_anneal path = {0};
    cgam_landscape points = {0};
    cgam_landscape_opts search = {.starts = study->opts.starts, .seed = study->opts.seed};
    cgam_recall *plan = NULL;
    cgam_status status = recall(p, o, CGAM_COUPLED, c, &plain, NULL);
    if (status == CGAM_OK) status = recall(p, o, CGAM_ANNEAL, c, &slow, &path);
    o.mode = CGAM_COUPLED;
    if (status == CGAM_OK) status = cgam_recall_new(p->bank, &o, &plan);
    if (status == CGAM_OK) status = cgam_landscape_find(plan, p->q, c, &search, &points);
    if (status == CGAM_OK) {
        double best = fmin(plain.energy_end, slow.energy_end);
        int64_t winner = slow.energy_end <= plain.energy_end ? slow.winner : plain.winner;
        for (int64_t k = 0; k < points.count; k++) {
            if (lower(points.points[k].energy, best)) winner = points.points[k].winner;
            best = fmin(best, points.points[k].energy);
            record[points.points[k].minimum ? MINIMA : SADDLES]++;
        }
        record[PLAIN_BEST] = !lower(best, plain.energy_end);
        record[ANNEAL_BEST] = !lower(best, slow.energy_end);
        record[LOWER] = lower(slow.energy_end, plain.energy_end);
        record[AGREE] = !record[LOWER] && !lower(plain.energy_end, slow.energy_end);
        record[PLAIN_RIGHT] = plain.winner == p->target;
        record[ANNEAL_RIGHT] = slow.winner == p->target;
        record[BEST_RIGHT] = winner == p->target;
        record[WHOLE] = points.euler == 1;
        for (int64_t k = 0; k < path.transitions; k++)
            if (path.transition[k].kind != CGAM_TRANSITION_WINNER) record[JUMPED] = 1;
        if (text) {
            cgam_json_add(text,
                          "energy_plain=%g energy_anneal=%g energy_best=%g winner_plain=%jd "
                          "winner_anneal=%jd minima=%jd saddles=%jd",
                          plain.energy_end, slow.energy_end, best, plain.winner, slow.winner,
                          (intmax_t)record[MINIMA], (intmax_t)record[SADDLES]);
        }
    }
    cgam_recall_free(plan);
    cgam_landscape_free(study->env, &points);
    cgam_anneal_free(study->env, &path);
    return status;
}

/* Both arms of every cell of one trial. */
static cgam_status run_trial(cgam_study *study, const cgam_problem *p, double *record, json_t *list)
{
    const cgam_study_opts *o = &study->opts;
    cgam_recall_opts recalls = cgam_recall_opts_default();
    cgam_gate *gate;
    recalls.alpha = o->alpha;
    cgam_status status = cgam_gate_new(p->bank, o->alpha, NULL, &gate);
    recalls.gate = gate;
    for (int64_t k = 0; k < cells_of(o) && status == CGAM_OK; k++) {
        recalls.lambda = o->lambda.values[k / o->betas.count];
        recalls.beta = o->betas.values[k % o->betas.count];
        for (int arm = 0; arm < ARMS && status == CGAM_OK; arm++) {
            json_t *one = list ? json_object() : NULL;
            if (cgam_interrupted(study->env))
                status = cgam_fail(study->env, CGAM_E_INTERRUPTED, "stopped on request");
            if (status == CGAM_OK)
                status = run_arm(study, p, recalls, arm ? p->c : NULL,
                                 record + (k * ARMS + arm) * COUNTS, one);
            if (!one) continue;
            cgam_json_add(one, "lambda=%g beta=%g context?=%d", recalls.lambda, recalls.beta,
                          arm == 1);
            json_array_append_new(list, one);
        }
    }
    cgam_gate_free(gate);
    return status;
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    (void)arg;
    (void)opened;
    cgam_problem p;
    const cgam_study_opts *o = &study->opts;
    memset(record, 0, (size_t)(cells_of(o) * ARMS * COUNTS) * sizeof *record);
    cgam_status status =
        cgam_problem_open(study, CGAM_STREAM_ANNEALING, o->sigma_q.values[0], 0, i, &p);
    if (status == CGAM_OK) status = run_trial(study, &p, record, NULL);
    cgam_problem_close(study, &p);
    return status;
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    (void)arg;
    const cgam_study_opts *o = &study->opts;
    const int64_t rows = cells_of(o) * ARMS;
    const double n = (double)b->count;
    cgam_study_add(
        study, "cells",
        "Plain and annealed recalls and the landscape, without (0) and with (1) the context. "
        "Shares of problems: plain_best, anneal_best: the recall ends at the lowest energy "
        "found; agree: both end at the same energy; lower, higher: the annealed recall ends "
        "lower, higher; *_right: the target wins; jumped: the branch had a fold or a "
        "pitchfork; whole: the signs of all points sum to 1, as they must if none is "
        "missing. minima_change: minima with the context minus those without, on the same "
        "problem.",
        "lambda,beta,context,trials,plain_best,anneal_best,agree,lower,higher,plain_right,"
        "anneal_right,best_right,jumped,whole,minima,minima_se,saddles,minima_change,"
        "minima_change_se",
        NULL, rows);
    for (int64_t k = 0; k < rows; k++) {
        cgam_moments minima = {0}, change = {0};
        double sum[COUNTS] = {0};
        for (int64_t i = 0; i < b->count; i++) {
            const double *one = b->records + i * b->record + k * COUNTS;
            const double *bare = b->records + i * b->record + k / ARMS * ARMS * COUNTS;
            for (int j = 0; j < COUNTS; j++) sum[j] += one[j];
            cgam_moments_add(&minima, one[MINIMA]);
            cgam_moments_add(&change, one[MINIMA] - bare[MINIMA]);
        }
        CGAM_STUDY_ROW(study, o->lambda.values[k / ARMS / o->betas.count],
                       o->betas.values[k / ARMS % o->betas.count], (double)(k % ARMS), n,
                       sum[PLAIN_BEST] / n, sum[ANNEAL_BEST] / n, sum[AGREE] / n, sum[LOWER] / n,
                       (n - sum[AGREE] - sum[LOWER]) / n, sum[PLAIN_RIGHT] / n,
                       sum[ANNEAL_RIGHT] / n, sum[BEST_RIGHT] / n, sum[JUMPED] / n, sum[WHOLE] / n,
                       minima.mean, cgam_moments_se(&minima), sum[SADDLES] / n, change.mean,
                       cgam_moments_se(&change));
    }
    if (study->status == CGAM_OK)
        cgam_table_put(study->doc, cgam_study_find(study, "cells"), 0, rows,
                       "lambda,beta,context,plain_best,anneal_best,agree,lower,higher,plain_right,"
                       "anneal_right,minima,whole");
    return study->status;
}

cgam_status cgam_annealing_run(cgam_study *study)
{
    cgam_blocks b = {.count = study->opts.trials,
                     .record = cells_of(&study->opts) * ARMS * COUNTS,
                     .block = count_block,
                     .tables = make_tables};
    return cgam_blocks_run(study, &b);
}

cgam_status cgam_annealing_trial(cgam_study *study, int64_t trial, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    cgam_problem p;
    json_t *list = json_array();
    double *record = cgam_zalloc(study->env, (size_t)(cells_of(o) * ARMS * COUNTS), sizeof *record);
    cgam_status status =
        cgam_problem_open(study, CGAM_STREAM_ANNEALING, o->sigma_q.values[0], 0, trial, &p);
    if (status == CGAM_OK && !record) status = cgam_fail_nomem(study->env, "a trial");
    if (status == CGAM_OK) status = run_trial(study, &p, record, list);
    if (status == CGAM_OK) cgam_problem_put(&p, doc);
    cgam_json_put(doc, "cells", list);
    cgam_problem_close(study, &p);
    cgam_free(study->env, record);
    return status;
}
