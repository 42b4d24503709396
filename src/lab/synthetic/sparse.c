/* sparse.c: how sparse activations and a context change the set of memories that keep a weight
 * (docs/theorems/margin.md).
 *
 * Each trial has its own bank and a target; at every sigma_q, a noisy query and a noisy context. It is recalled with
 * softmax, 1.5-entmax and sparsemax (orders 1, 1.5 and 2 of alpha-entmax), without and with the context. Counted: whether
 * the target wins, how many memories keep a weight, whether the answer is exactly one memory, and whether
 * that was certified. All of them use the same draws.
 *
 * A block is one trial; its record has COUNTS numbers for every sigma_q, order and arm. */
#include "lab/synthetic/trial.h"

#include <cgam/recall.h>
#include <math.h>
#include <string.h>

enum {
    RIGHT,     /* 1: the target wins */
    SUPPORT,   /* memories with a weight */
    NEFF,      /* exp of the entropy */
    EXACT,     /* 1: one memory has all of it */
    CERTIFIED, /* 1: and that is proved */
    P_TARGET,
    WIDE,   /* 1: beta times the gap is at least 1/(A - 1), where the answer has to be exact, */
    MISSED, /* 1: and it is not */
    COUNTS
};
enum { ARMS = 2, ORDERS = 3 };
static const double orders[ORDERS] = {1, 1.5, 2}; /* softmax is the limit of order 1 */

static int64_t cells_of(const cgam_study_opts *o) { return o->sigma_q.count * ORDERS * ARMS; }

/* One recall; text: for --only-trial, NULL otherwise. */
static cgam_status recall(const cgam_study_opts *o, const cgam_problem *p, const cgam_gate *gate,
                          double order, const double *c, double *record, json_t *text)
{
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_recall *plan;
    cgam_result r = {0};
    double *weights = p->b; /* b is the recall's to compute */
    opts.mode = o->coupled ? CGAM_COUPLED : CGAM_FIRST;
    opts.alpha = o->alpha;
    opts.beta = o->beta;
    opts.lambda = o->lambda.values[0];
    opts.gate = gate;
    opts.entmax = order > 1 ? order : 0;
    cgam_status status = cgam_recall_new(p->bank, &opts, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = p->q, .c = c};
    status = cgam_recall_run(plan, &in, &(cgam_recall_out){.results = &r, .p = weights});
    cgam_recall_free(plan);
    if (status != CGAM_OK) return status;
    record[RIGHT] = r.winner == p->target;
    record[SUPPORT] = (double)r.support;
    record[NEFF] = r.neff_entropy;
    record[EXACT] = r.support == 1;
    record[CERTIFIED] = r.exact;
    record[P_TARGET] = weights[p->target];
    record[WIDE] = order > 1 && o->beta * r.gap >= 1 / (order - 1) * (1 + 1e-9);
    record[MISSED] = record[WIDE] > 0 && r.support != 1;
    if (text) {
        cgam_json_add(text, "winner=%jd support=%jd exact?=%d gap=%g p=%p", r.winner, r.support,
                      r.exact, r.gap, cgam_json_reals(weights, p->n, 1));
    }
    return CGAM_OK;
}

/* All recalls of one trial at one sigma_q. */
static cgam_status run_cell(cgam_study *study, const cgam_problem *p, double *record, json_t *list)
{
    cgam_gate *gate;
    cgam_status status = cgam_gate_new(p->bank, study->opts.alpha, NULL, &gate);
    for (int k = 0; k < ORDERS * ARMS && status == CGAM_OK; k++) {
        json_t *one = list ? json_object() : NULL;
        int arm = k % ARMS;
        status = recall(&study->opts, p, gate, orders[k / ARMS], arm ? p->c : NULL,
                        record + k * COUNTS, one);
        if (!one) continue;
        cgam_json_add(one, "order=%g context?=%d", orders[k / ARMS], arm == 1);
        json_array_append_new(list, one);
    }
    cgam_gate_free(gate);
    return status;
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    (void)arg;
    (void)opened;
    const cgam_study_opts *o = &study->opts;
    cgam_status status = CGAM_OK;
    memset(record, 0, (size_t)(cells_of(o) * COUNTS) * sizeof *record);
    for (int64_t k = 0; k < o->sigma_q.count && status == CGAM_OK; k++) {
        cgam_problem p;
        status = cgam_problem_open(study, CGAM_STREAM_SPARSE, o->sigma_q.values[k], k, i, &p);
        if (status == CGAM_OK)
            status = run_cell(study, &p, record + k * ORDERS * ARMS * COUNTS, NULL);
        cgam_problem_close(study, &p);
    }
    return status;
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    (void)arg;
    const cgam_study_opts *o = &study->opts;
    const int64_t rows = cells_of(o);
    const double n = (double)b->count;
    cgam_study_add(
        study, "cells",
        "Recalls with alpha-entmax of an order (1: softmax, 2: sparsemax), without (0) and "
        "with (1) the context. support: number of memories with a weight; exact: share in "
        "which one memory has all the weight; certified: share in which that is proved; "
        "exact_right: share in which it is the target; wide: share in which beta gap >= "
        "1/(order - 1); missed: those of them that are not exact; narrowed, widened: "
        "problems whose support the context makes smaller, larger.",
        ""
        "sigma_q,order,context,trials,accuracy,accuracy_se,support,support_se,neff,exact,exact_right,"
        "certified,p_target,wide,missed,narrowed,widened",
        NULL, rows);
    for (int64_t k = 0; k < rows; k++) {
        cgam_moments support = {0};
        double sum[COUNTS] = {0}, narrowed = 0, widened = 0, exact_right = 0;
        for (int64_t i = 0; i < b->count; i++) {
            const double *one = b->records + i * b->record + k * COUNTS;
            const double *bare = b->records + i * b->record + k / ARMS * ARMS * COUNTS;
            for (int j = 0; j < COUNTS; j++) sum[j] += one[j];
            cgam_moments_add(&support, one[SUPPORT]);
            narrowed += one[SUPPORT] < bare[SUPPORT];
            widened += one[SUPPORT] > bare[SUPPORT];
            exact_right += one[EXACT] * one[RIGHT];
        }
        double right = sum[RIGHT] / n;
        CGAM_STUDY_ROW(study, o->sigma_q.values[k / (ORDERS * ARMS)], orders[k / ARMS % ORDERS],
                       (double)(k % ARMS), n, right, sqrt(right * (1 - right) / n), support.mean,
                       cgam_moments_se(&support), sum[NEFF] / n, sum[EXACT] / n, exact_right / n,
                       sum[CERTIFIED] / n, sum[P_TARGET] / n, sum[WIDE] / n, sum[MISSED], narrowed,
                       widened);
    }
    if (study->status == CGAM_OK)
        cgam_table_put(study->doc, cgam_study_find(study, "cells"), 0, rows,
                       "sigma_q,order,context,accuracy,accuracy_se,support,neff,exact,exact_right,"
                       "certified,narrowed,widened");
    return study->status;
}

cgam_status cgam_sparse_run(cgam_study *study)
{
    cgam_blocks b = {.count = study->opts.trials,
                     .record = cells_of(&study->opts) * COUNTS,
                     .block = count_block,
                     .tables = make_tables};
    return cgam_blocks_run(study, &b);
}

cgam_status cgam_sparse_trial(cgam_study *study, int64_t trial, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    json_t *cells = json_array();
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < o->sigma_q.count && status == CGAM_OK; k++) {
        double record[ORDERS * ARMS * COUNTS] = {0};
        json_t *one = json_object(), *list = json_array();
        cgam_problem p;
        status = cgam_problem_open(study, CGAM_STREAM_SPARSE, o->sigma_q.values[k], k, trial, &p);
        if (status == CGAM_OK) status = run_cell(study, &p, record, list);
        if (status == CGAM_OK) cgam_problem_put(&p, one);
        cgam_json_add(one, "sigma_q=%g recalls=%p", o->sigma_q.values[k], list);
        json_array_append_new(cells, one);
        cgam_problem_close(study, &p);
    }
    cgam_json_put(doc, "cells", cells);
    return status;
}
