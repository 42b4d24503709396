/* large.c: banks of 2^18 numbers and more, whose scores and weights go through f32 and matrices. At
 * alpha = 0 A is the identity, and every claim is about one vector p:  y I - (diag p - pp') >= 0 holds
 * if y is above all p_i, and else, with one p_i above y, if and only if 1 + sum p_i^2 / (y - p_i) <= 0. */
#include "rigour/campaign.h"

#include <cgam/rng.h>

#include "num/cpu/widen.h"

#include <arb.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 33000, D = 8, B = 64, JUDGED = 3, BITS = 128 };

/* p = softmax(beta Z (q + lambda c)). */
static void exact(const double *Z, const double *q, const double *c, const cgam_recall_opts *o,
                  arb_ptr p)
{
    arb_t x[D], t, sum;
    arb_init(t);
    arb_init(sum);
    for (int j = 0; j < D; j++) {
        arb_init(x[j]);
        arb_set_d(x[j], c[j]);
        arb_set_d(t, o->lambda);
        arb_mul(x[j], x[j], t, BITS);
        arb_set_d(t, q[j]);
        arb_add(x[j], x[j], t, BITS);
        arb_set_d(t, o->beta);
        arb_mul(x[j], x[j], t, BITS);
    }
    for (int64_t i = 0; i < N; i++) {
        arb_zero(p + i);
        for (int j = 0; j < D; j++) {
            arb_set_d(t, Z[i * D + j]);
            arb_addmul(p + i, x[j], t, BITS);
        }
        arb_exp(p + i, p + i, BITS);
        arb_add(sum, sum, p + i, BITS);
    }
    for (int64_t i = 0; i < N; i++) arb_div(p + i, p + i, sum, BITS);
    for (int j = 0; j < D; j++) arb_clear(x[j]);
    arb_clear(t);
    arb_clear(sum);
}

static bool covers(arb_srcptr p, double y)
{
    arb_t sum, t, at;
    int64_t over = 0;
    arb_init(sum);
    arb_init(t);
    arb_init(at);
    arb_set_d(at, y);
    arb_one(sum);
    for (int64_t i = 0; i < N; i++) {
        arb_sub(t, at, p + i, BITS);
        over += !arb_is_positive(t);
        arb_inv(t, t, BITS);
        arb_mul(t, t, p + i, BITS);
        arb_addmul(sum, t, p + i, BITS);
    }
    bool fine = over == 0 || (over == 1 && arb_is_nonpositive(sum));
    arb_clear(sum);
    arb_clear(t);
    arb_clear(at);
    return fine;
}

static void count(tally *t, claim what, bool proved, bool right)
{
    t->made[what] += proved;
    t->estimate[what] += !proved;
    t->wrong[what] += proved && !right;
    if (proved && !right) printf("WRONG: %s of a large bank\n", claim_names[what]);
}

void judge_large(cgam_env *env, uint64_t seed, tally *t)
{
    double *Z = calloc(N * D, sizeof *Z), *q = calloc(2 * B * D, sizeof *q), *c = q + B * D;
    void *stored = calloc(N * D, sizeof(double));
    arb_ptr p = _arb_vec_init(N);
    for (uint64_t k = 0; k < 8 && Z && q && stored; k++) {
        cgam_rng rng = cgam_rng_stream(seed, 0x1000000000u + k);
        cgam_dtype dtype = (cgam_dtype)(k % 4);
        for (int64_t i = 0; i < N * D; i++) Z[i] = cgam_rng_normal(&rng);
        for (int64_t i = 0; i < 2 * B * D; i++) q[i] = cgam_rng_normal(&rng);
        cgam_narrow(dtype, Z, N * D, stored);
        cgam_widen(dtype, stored, N * D, Z);
        cgam_recall_opts o = cgam_recall_opts_default();
        o.beta = 0.1 + 2 * cgam_rng_uniform(&rng);
        o.lambda = cgam_rng_uniform(&rng);
        cgam_bank *bank;
        cgam_recall *plan = NULL;
        cgam_result results[B];
        cgam_recall_in in = {.queries = k < 4 ? 1 : B, .q = q, .c = c, .c_per_query = true};
        cgam_recall_out out = {.results = results};
        cgam_status status = cgam_bank_new(env, stored, dtype, N, D, NULL, &bank);
        if (status == CGAM_OK) status = cgam_recall_new(bank, &o, &plan);
        if (status == CGAM_OK) status = cgam_recall_run(plan, &in, &out);
        if (status != CGAM_OK) printf("WRONG: %s\n", cgam_env_message(env));
        t->wrong[REGIME] += status != CGAM_OK;
        for (int64_t v = 0; v < in.queries && v < JUDGED && status == CGAM_OK; v++) {
            const cgam_result *r = &results[v];
            double l2b = o.lambda * o.lambda * o.beta * (1 + 0x1p-50);
            exact(Z, q + v * D, c + v * D, &o, p);
            arb_t bound;
            arb_init(bound);
            arb_set_d(bound, r->p_lower_bound);
            count(t, P_LOWER_BOUND, r->p_lower_bound_proved, arb_le(bound, p + r->focus));
            count(t, FOLD_MARGIN, r->fold_margin_proved, covers(p, (1 - r->fold_margin) / l2b));
            count(t, LOCAL_CONTRACTION, r->local_contraction_proved,
                  covers(p, r->local_contraction / l2b));
            arb_clear(bound);
        }
        cgam_recall_free(plan);
        cgam_bank_free(bank);
    }
    _arb_vec_clear(p, N);
    free(Z);
    free(q);
    free(stored);
}
