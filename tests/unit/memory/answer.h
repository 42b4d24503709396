/* answer.h: one query, every vector, and the numbers of its result worked out again. */
#ifndef CGAM_TESTS_UNIT_MEMORY_ANSWER_H
#define CGAM_TESTS_UNIT_MEMORY_ANSWER_H

#include "support/one_env.h"

#include <cgam/theory.h>

/* A whole recall of one query, with every vector. */
typedef struct answer {
    cgam_result result;
    double *p, *s, *r, *readout;
} answer;

static inline answer run(const cgam_bank *bank, const cgam_recall_opts *opts, const double *q,
                         const double *c, const int64_t *target)
{
    cgam_bank_info info = cgam_bank_describe(bank);
    answer a = {.p = dense_room(info.n),
                .s = dense_room(info.n),
                .r = dense_room(info.n),
                .readout = dense_room(info.d)};
    cgam_recall *plan = object_recall(env, bank, opts);
    cgam_recall_in in = {.queries = 1, .q = q, .c = c, .target = target};
    cgam_recall_out out = {
        .results = &a.result, .p = a.p, .s = a.s, .r = a.r, .readout = a.readout};
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
    cgam_recall_free(plan);
    return a;
}

/* The numbers of a result, from its vectors and the query evidence b. off: what the gap is off by as a
 * rule; p_lower_bound allows for the worst case, which is up to 19 times that here. */
enum { WORST = 25 };
static inline void check_measures(int64_t n, const double *b, const answer *a, double beta,
                                  int64_t target, double off)
{
    const cgam_result *got = &a->result;
    int64_t winner = 0, rank = 0, f;
    for (int64_t i = 1; i < n; i++)
        if (a->r[i] > a->r[winner]) winner = i;
    f = target >= 0 ? target : winner;
    for (int64_t i = 0; i < n; i++) rank += a->r[i] > a->r[f] || (a->r[i] == a->r[f] && i < f);
    assert_int_equal(got->winner, winner);
    assert_int_equal(got->focus, f);
    assert_int_equal(got->focus_rank, rank);
    double *p = dense_room(n), total = 0, entropy = 0, squares = 0;
    dense_softmax(n, beta, a->r, p);
    CHECK_CLOSE_ALL(a->p, p, n, 1e-12);
    for (int64_t i = 0; i < n; i++) {
        total += a->p[i];
        if (p[i] > 0) entropy -= p[i] * log(p[i]);
        squares += p[i] * p[i];
    }
    CHECK_CLOSE(total, 1, 1e-12);
    CHECK_CLOSE(got->p, p[f], 1e-12);
    if (p[f] > 1e-290) CHECK_CLOSE(got->log_p, log(p[f]), 1e-11 * (1 - log(p[f])));
    CHECK_REL(got->neff_entropy, exp(entropy), 1e-11);
    CHECK_REL(got->neff_ipr, 1 / squares, 1e-11);
    if (n == 1) {
        assert_true(isnan(got->gap) && isnan(got->gap_raw) && isnan(got->gap_gate));
        CHECK_CLOSE(got->p_lower_bound, 1, 0);
        return;
    }
    double gap = INFINITY, raw = INFINITY, gate = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (i == f) continue;
        gap = fmin(gap, a->r[f] - a->r[i]);
        raw = fmin(raw, b[f] - b[i]);
        gate = fmin(gate, a->s[f] - a->s[i]);
    }
    CHECK_CLOSE(got->gap, gap, 1e-13 * (1 + fabs(gap)));
    CHECK_CLOSE(got->gap_raw, raw, 1e-13 * (1 + fabs(raw)));
    CHECK_CLOSE(got->gap_gate, gate, 1e-13 * (1 + fabs(gate)));
    CHECK_LE(got->p_lower_bound, cgam_separation_bound(n, beta, gap) * (1 + 1e-15));
    /* small.c leaves a bound of gates as wide as this */
    CHECK_LE(cgam_separation_bound(n, beta, gap - WORST * off) * (1 - 2e-8), got->p_lower_bound);
    CHECK_LE(got->p_lower_bound, got->p * (1 + 1e-12));
}

#endif
