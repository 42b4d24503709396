/* fit_lowrank.c: P = I + U'V, fitted to the model's own distributions with demonstrations.
 *
 * Query i has the state s_i = base_i + x_i + sum_k a_ik U_k, a_ik = <V_k, x_i>; t_i is the softmax of the target's
 * scores, p_i that of the scores of s_i. With f = (1/n) sum_i KL(t_i || p_i), the derivative by the scores is
 * (p_i - t_i)/n, that by the state, g_i, comes from cgam_lens_pull, and
 *
 *   df/dU_k = sum_i a_ik g_i,   df/dV_k = sum_i <U_k, g_i> x_i.
 *
 * L-BFGS is the trainer's. */
#include "lab/language/fit.h"
#include "lm/lens.h"

#include "base/alloc.h"
#include "base/blas.h"
#include "lab/learn/trainer.h"
#include "lm/scores.h"

#include <math.h>
#include <string.h>

typedef struct divergence {
    cgam_env *env;
    const cgam_lens *lens;
    const cgam_fit_aim *of;
    int64_t rank, d, vocab;
    float *target; /* [n, vocab] t */
    double *plain; /* [n] sum_m t_m log t_m */
    float *scores; /* [n, vocab], then p - t */
    float *state;  /* [n, d] */
    float *pulled; /* [n, d] */
    double *a, *g; /* [n, rank], [n, d] */
    double *each;  /* [n] divergences */
} divergence;

static void divergence_free(divergence *v)
{
    cgam_free_all(v->env, v->target, v->plain, v->scores, v->state, v->pulled, v->a, v->g, v->each);
}

/* Turns the scores of one query into the target's probabilities. */
static cgam_status set_aim(void *arg, int64_t i)
{
    const divergence *v = arg;
    float *t = v->target + i * v->vocab;
    cgam_softmax all = cgam_scores_softmax(t, v->vocab);
    double sum = 0;
    for (int64_t m = 0; m < v->vocab; m++) {
        double log_t = cgam_scores_log_p(&all, (double)t[m]), p = exp(log_t);
        sum += p * log_t;
        t[m] = (float)p;
    }
    v->plain[i] = sum;
    return isfinite(sum) ? CGAM_OK
                         : cgam_fail(v->env, CGAM_E_VALUE,
                                     "state %lld has a score that is not finite", (long long)i);
}

static cgam_status divergence_open(const cgam_lens *lens, const cgam_fit_aim *of, int64_t rank,
                                   divergence *v)
{
    size_t n = (size_t)of->n;
    cgam_env *env = lens->env;
    *v = (divergence){
        .env = env, .lens = lens, .of = of, .rank = rank, .d = lens->width, .vocab = lens->vocab};
    size_t d = (size_t)v->d, vocab = (size_t)v->vocab;
    cgam_status status = cgam_alloc_all(
        env, "probabilities of all words", CGAM_ARRAY(v->target, n * vocab),
        CGAM_ARRAY(v->scores, n * vocab), CGAM_ARRAY(v->state, n * d), CGAM_ARRAY(v->pulled, n * d),
        CGAM_ARRAY(v->plain, n), CGAM_ARRAY(v->each, n), CGAM_ARRAY(v->a, n * (size_t)rank),
        CGAM_ARRAY(v->g, n * d));
    if (status != CGAM_OK) return status;
    status = cgam_lens_scores(lens, CGAM_LENS_NORM, of->n, of->aim, v->d, v->target);
    return status == CGAM_OK ? cgam_parallel(env, of->n, set_aim, v) : status;
}

/* One query's divergence; its scores become p - t. */
static cgam_status compare_query(void *arg, int64_t i)
{
    const divergence *v = arg;
    const float *t = v->target + i * v->vocab;
    float *s = v->scores + i * v->vocab;
    cgam_softmax all = cgam_scores_softmax(s, v->vocab);
    double cross = 0;
    for (int64_t m = 0; m < v->vocab; m++) {
        double log_p = cgam_scores_log_p(&all, (double)s[m]);
        cross += (double)t[m] * log_p;
        s[m] = (float)(exp(log_p) - (double)t[m]);
    }
    v->each[i] = v->plain[i] - cross;
    return CGAM_OK;
}

/* *kl at U and V; dU and dV unless NULL. */
static cgam_status evaluate_divergence(divergence *v, const double *U, const double *V, double *kl,
                                       double *dU, double *dV)
{
    const cgam_fit_aim *of = v->of;
    int64_t n = of->n, d = v->d, rank = v->rank;
    cgam_status status =
        cgam_product_run(v->env, &(cgam_product){n, rank, d, of->x, V, v->a, .turned_b = true});
    if (status == CGAM_OK)
        status = cgam_product_run(v->env, &(cgam_product){n, d, rank, v->a, U, .C = v->g});
    for (int64_t i = 0; i < n * d && status == CGAM_OK; i++)
        v->state[i] = (float)((double)of->base[i] + of->x[i] + v->g[i]);
    if (status == CGAM_OK)
        status = cgam_lens_scores(v->lens, CGAM_LENS_NORM, n, v->state, d, v->scores);
    if (status == CGAM_OK) status = cgam_parallel(v->env, n, compare_query, v);
    *kl = 0;
    for (int64_t i = 0; i < n && status == CGAM_OK; i++) *kl += v->each[i] / (double)n;
    if (status != CGAM_OK || !dU) return status;
    status = cgam_lens_pull(v->lens, n, v->state, d, v->scores, v->pulled);
    for (int64_t i = 0; i < n * d && status == CGAM_OK; i++)
        v->g[i] = (double)v->pulled[i] / (double)n;
    if (status == CGAM_OK)
        status =
            cgam_product_run(v->env, &(cgam_product){rank, d, n, v->a, v->g, dU, .turned_a = true});
    if (status == CGAM_OK) /* <g_i, U_k> in place of a_ik */
        status =
            cgam_product_run(v->env, &(cgam_product){n, rank, d, v->g, U, v->a, .turned_b = true});
    if (status == CGAM_OK)
        status = cgam_product_run(v->env,
                                  &(cgam_product){rank, d, n, v->a, of->x, dV, .turned_a = true});
    return status;
}

cgam_status cgam_fit_divergence(const cgam_lens *lens, const cgam_fit_aim *of, int64_t rank,
                                const double *U, const double *V, double *kl, double *dU,
                                double *dV)
{
    divergence v;
    cgam_status status = divergence_open(lens, of, rank, &v);
    if (status == CGAM_OK) status = evaluate_divergence(&v, U, V, kl, dU, dV);
    divergence_free(&v);
    return status;
}

/* ---- Lowering it -------------------------------------------------------------------------- */
/* The queries form one example: the objective is the mean over all of them. */
static cgam_status loss_of(void *user, const double *x, int64_t count, const int64_t *index,
                           double *loss, double *gradient)
{
    divergence *v = user;
    int64_t half = v->rank * v->d;
    (void)count, (void)index;
    return evaluate_divergence(v, x, x + half, loss, gradient, gradient ? gradient + half : NULL);
}

cgam_status cgam_fit_refine(const cgam_lens *lens, const cgam_fit_aim *of, int64_t rank,
                            int64_t iterations, double *U, double *V, cgam_fit_refined *out)
{
    divergence v;
    *out = (cgam_fit_refined){.before = NAN};
    cgam_env *env = lens->env;
    int64_t half = rank * lens->width;
    size_t bytes = (size_t)half * sizeof *U;
    if (iterations < 0 || 2 * half > INT32_MAX / 2)
        return cgam_fail(
            env, CGAM_E_ARG,
            "iterations must be 0 or more, and the fit at most 1073741823 numbers; not %lld and %lld",
            (long long)iterations, (long long)(2 * half));
    cgam_train_problem problem = {.params = 2 * half, .examples = 1, .user = &v, .loss = loss_of};
    cgam_train_opts opts = cgam_train_opts_default();
    cgam_train_split all = {0};
    cgam_trained trained = {0};
    double *x = NULL;
    opts.epochs = iterations < 100000 ? iterations : 100000;
    cgam_status status = divergence_open(lens, of, rank, &v);
    if (status == CGAM_OK && iterations == 0) {
        status = evaluate_divergence(&v, U, V, &out->before, NULL, NULL);
        out->after = out->before;
    } else if (status == CGAM_OK) {
        status = cgam_alloc_all(env, "a projection of low rank", CGAM_ARRAY(x, 2 * half));
        if (status == CGAM_OK) status = cgam_train_split_new(env, 1, 0, 0, 0, &all);
        if (status == CGAM_OK) {
            memcpy(x, U, bytes);
            memcpy(x + half, V, bytes);
            status = cgam_train(env, &problem, &all, &opts, x, &trained);
        }
    }
    if (status == CGAM_OK && iterations > 0) {
        memcpy(U, x, bytes);
        memcpy(V, x + half, bytes);
        out->before = trained.before.loss;
        out->after = trained.epochs ? trained.epoch[trained.epochs - 1].loss : out->before;
        out->iterations = trained.epochs;
        out->evaluations = trained.evaluations;
    }
    cgam_trained_free(env, &trained);
    cgam_train_split_free(env, &all);
    cgam_free(env, x);
    divergence_free(&v);
    return status;
}
