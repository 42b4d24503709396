/* recall.c: plan once, recall many. The plan holds what depends only on bank and options; a run asks route.c for a
 * route and passes its queries on. */
#include "memory/results.h"
#include "memory/route.h"

#include "base/blas.h"
#include "io/json.h"
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/small.h"
#include "num/entmax.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

const char *const cgam_certify_words[] = {"usual", "full", "none", NULL};
const char *const cgam_mode_words[] = {"first", "coupled", "flow", "anneal", NULL};
const char *const cgam_end_words[] = {"direct",   "converged", "max_iter", "stalled",
                                      "diverged", "horizon",   "rose",     NULL};

cgam_recall_opts cgam_recall_opts_default(void)
{
    return (cgam_recall_opts){.mode = CGAM_FIRST,
                              .beta = 1,
                              .lambda = 1,
                              .tol = 1e-12,
                              .max_iter = 10000,
                              .beta_start = NAN,
                              .tau_c = 1,
                              .tau_s = 1,
                              .tau_r = 1,
                              .tau_q = 1,
                              .t_max = 100,
                              .steady = 1e-9};
}

static cgam_status check_opts(cgam_env *env, const cgam_recall_opts *o)
{
    if ((unsigned)o->mode > CGAM_ANNEAL)
        return cgam_fail(env, CGAM_E_ARG, "invalid mode %d (valid: 0 to %d)", (int)o->mode,
                         CGAM_ANNEAL);
    if (!(o->alpha >= 0) || !isfinite(o->alpha))
        return cgam_fail(env, CGAM_E_ARG, "alpha is %g, it must be 0 or more and finite", o->alpha);
    if (!(o->beta > 0) || !isfinite(o->beta))
        return cgam_fail(env, CGAM_E_ARG, "beta is %g, it must be above 0 and finite", o->beta);
    if (!(o->lambda >= 0) || !isfinite(o->lambda))
        return cgam_fail(env, CGAM_E_ARG, "lambda is %g, it must be 0 or more and finite",
                         o->lambda);
    if (!(o->lambda * o->lambda * o->beta <= 0x1p900 && o->lambda <= 0x1p900 && o->beta <= 0x1p900))
        return cgam_fail(env, CGAM_E_ARG,
                         "lambda is %g and beta %g: lambda^2 beta leaves the range of double",
                         o->lambda, o->beta);
    if (o->entmax != 0 && !(o->entmax >= 1 + CGAM_ENTMAX_LEAST && o->entmax <= 2))
        return cgam_fail(env, CGAM_E_ARG,
                         "the order of entmax is %g, it must be above 1 and at most 2", o->entmax);
    if (o->entmax > 0 && (o->fast || o->none))
        return cgam_fail(env, CGAM_E_ARG,
                         o->fast ? "fast requires activation softmax: entmax needs every score"
                                 : "none requires activation softmax");
    if (!(o->tol >= 0) || o->max_iter < 1)
        return cgam_fail(
            env, CGAM_E_ARG,
            "tol is %g and max-iter is %lld; tol must be 0 or more, max-iter at least 1", o->tol,
            (long long)o->max_iter);
    if ((o->fast || o->none) && o->mode != CGAM_FIRST)
        return cgam_fail(env, CGAM_E_ARG,
                         o->fast ? "fast requires mode first: mode %s needs every score"
                                 : "none requires mode first: in mode %s p acts on the gates, "
                                   "and the ghost memory has no gate; add a row to the bank "
                                   "instead",
                         cgam_word(cgam_mode_words, o->mode));
    if ((unsigned)o->certify > CGAM_CERTIFY_NONE)
        return cgam_fail(env, CGAM_E_ARG, "invalid level %d of certify (valid: 0 to %d)",
                         (int)o->certify, CGAM_CERTIFY_NONE);
    if (o->none && o->certify == CGAM_CERTIFY_FULL)
        return cgam_fail(env, CGAM_E_ARG,
                         "none and certify cannot be combined: certify is about the coupled "
                         "map, which has no ghost memory");
    if (o->none && !isfinite(o->none_score))
        return cgam_fail(env, CGAM_E_ARG, "none is %g, it must be finite", o->none_score);
    if (!(o->tol_p >= 0) || (o->tol_p > 0 && !o->fast))
        return cgam_fail(env, CGAM_E_ARG,
                         "tol-p is %g; it must be 0 or more, and above 0 it requires fast",
                         o->tol_p);
    if (o->mode == CGAM_ANNEAL && !isnan(o->beta_start) &&
        !(o->beta_start > 0 && o->beta_start <= o->beta))
        return cgam_fail(env, CGAM_E_ARG,
                         "beta-start is %g, it must be above 0 and at most beta, %g", o->beta_start,
                         o->beta);
    if (o->P && o->W)
        return cgam_fail(env, CGAM_E_ARG, "give a projection or gate weights, not both");
    if ((o->P || o->W) && (o->d_c < 1 || o->d_c > INT32_MAX))
        return cgam_fail(env, CGAM_E_SHAPE,
                         "d_c is %lld, it must be above 0 for a projection or gate weights",
                         (long long)o->d_c);
    return CGAM_OK;
}

void cgam_recall_free(cgam_recall *plan)
{
    if (!plan) return;
    cgam_small_free(plan->bank->env, plan->lanes);
    cgam_dplr_inverse_free(plan->own_small);
    cgam_gate_free(plan->own_gate);
    cgam_twins_free(plan->bank->env, plan->own_twins);
    cgam_net_free(plan->net);
    cgam_sketch_free(plan->bank->env, plan->own_sketch);
    cgam_free(plan->bank->env, plan);
}

static cgam_status need_positive(cgam_recall *plan)
{
    const cgam_gate_info *info = &plan->gate->info;
    if (info->regime == CGAM_SUBCRITICAL) return CGAM_OK;
    cgam_critical crit;
    char alpha[CGAM_REAL_TEXT], critical[CGAM_REAL_TEXT];
    cgam_status status = cgam_gate_critical(plan->bank, CGAM_EFFORT_FULL, &crit);
    if (status != CGAM_OK) return status;
    return cgam_fail(plan->bank->env, CGAM_E_NOT_POSITIVE,
                     "mode %s needs A(alpha) positive definite: alpha = %s is %s, alpha_crit = %s",
                     cgam_word(cgam_mode_words, plan->opts.mode),
                     cgam_real_text(info->alpha, alpha), cgam_word(cgam_regime_words, info->regime),
                     isfinite(crit.alpha) ? cgam_real_text(crit.alpha, critical) : "unknown");
}

/* Uses the caller's gate, or makes one. */
static cgam_status find_gate(cgam_recall *plan)
{
    const cgam_recall_opts *o = &plan->opts;
    cgam_gate_opts gate = {.memory_max = o->memory_max,
                           .effort = cgam_recall_full(plan) ? CGAM_EFFORT_FULL : CGAM_EFFORT_LEAST,
                           /* stored in a packed bank */
                           .coupled = plan->bank->packed && cgam_recall_couples(plan)};
    plan->gate = o->gate;
    if (o->gate)
        return o->gate->bank == plan->bank && o->gate->info.alpha == o->alpha
                   ? CGAM_OK
                   : cgam_fail(plan->bank->env, CGAM_E_ARG,
                               "gate belongs to a different bank or alpha");
    cgam_status status = cgam_gate_new(plan->bank, o->alpha, &gate, &plan->own_gate);
    plan->gate = plan->own_gate;
    return status;
}

cgam_status cgam_recall_new(const cgam_bank *bank, const cgam_recall_opts *opts, cgam_recall **out)
{
    *out = NULL;
    cgam_env *env = bank->env;
    cgam_recall_opts o = opts ? *opts : cgam_recall_opts_default();
    cgam_status status = check_opts(env, &o);
    if (status == CGAM_OK && (o.fast || o.mode == CGAM_FLOW))
        status = cgam_bank_alone(bank, o.fast ? "a fast recall" : "a flow");
    if (status == CGAM_OK && o.W && bank->Z.n > INT32_MAX)
        status = cgam_fail(env, CGAM_E_SHAPE, "gate weights for %lld memories (at most %d)",
                           (long long)bank->Z.n, INT32_MAX);
    if (status != CGAM_OK) return status;
    cgam_recall *plan = cgam_zalloc(env, 1, sizeof *plan);
    if (!plan) return cgam_fail_nomem(env, "a recall");
    plan->bank = bank;
    plan->opts = o;
    plan->d_c = o.P || o.W ? o.d_c : bank->Z.d;
    status = find_gate(plan);
    if (status == CGAM_OK && cgam_recall_couples(plan)) status = need_positive(plan);
    if (status == CGAM_OK && o.alpha > 0 && !o.W) { /* W may treat twins differently */
        if (!plan->gate->alike) status = cgam_twins_find(bank, &plan->own_twins);
        plan->twins = plan->gate->alike ? plan->gate->twins : plan->own_twins;
    }
    plan->context_margin = NAN;
    if (o.P) plan->weights_size = cgam_array_norm(bank->Z.d * o.d_c, o.P) * (1 + 0x1p-20);
    for (int64_t i = 0; o.W && i < bank->Z.n; i++)
        plan->weights_size =
            fmax(plan->weights_size, cgam_array_norm(o.d_c, o.W + i * o.d_c) * (1 + 0x1p-20));
    if (status == CGAM_OK && o.mode == CGAM_FLOW) status = cgam_recall_net(plan);
    plan->sketch = bank->sketch;
    if (status == CGAM_OK && o.fast && !bank->sketch) {
        status = cgam_sketch_new(env, &bank->Z, bank->info.norm_max, &plan->own_sketch);
        plan->sketch = plan->own_sketch;
    }
    if (status == CGAM_OK) plan->can = cgam_reach_of(plan, &status);
    if (status == CGAM_OK && plan->can.streams && cgam_recall_couples(plan)) {
        if (!plan->gate->small) status = cgam_dplr_inverse_new(plan->gate->A, &plan->own_small);
        plan->small = plan->gate->small ? plan->gate->small : plan->own_small;
    }
    if (status == CGAM_OK) status = cgam_small_new(plan, &plan->lanes);
    if (status != CGAM_OK) {
        cgam_recall_free(plan);
        return status;
    }
    *out = plan;
    return CGAM_OK;
}

const cgam_gate *cgam_recall_gate(const cgam_recall *plan) { return plan->gate; }
double cgam_recall_context_margin(const cgam_recall *plan) { return plan->context_margin; }

void cgam_recall_project(const cgam_recall *plan, const double *c, double *v)
{
    int64_t d = plan->bank->Z.d;
    if (plan->opts.P)
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)d, (int)plan->d_c, 1, plan->opts.P,
                    (int)plan->d_c, c, 1, 0, v, 1);
    else memcpy(v, c, (size_t)d * sizeof *v);
}

void cgam_recall_weigh(const cgam_recall *plan, const double *c, double *u)
{
    cgam_vec_weigh(&plan->bank->Z, plan->d_c, plan->opts.W, c, u);
}

cgam_status cgam_recall_gates(const cgam_recall *plan, const double *c, double *u, double *s0)
{
    const cgam_bank *bank = plan->bank;
    if (plan->opts.W) {
        cgam_recall_weigh(plan, c, u);
        return cgam_gate_solve(plan->gate, u, s0, NULL);
    }
    double *v = cgam_alloc(bank->env, (size_t)bank->Z.d, sizeof *v);
    if (!v) return cgam_fail_nomem(bank->env, "a projected context");
    cgam_recall_project(plan, c, v);
    cgam_status status = cgam_bank_score(bank, v, u);
    if (status == CGAM_OK) status = cgam_gate_solve_range(plan->gate, v, s0);
    cgam_free(bank->env, v);
    return status;
}

static cgam_status check_input(const cgam_recall *plan, const cgam_recall_in *in)
{
    cgam_env *env = plan->bank->env;
    if (in->queries < 0 || (in->queries > 0 && !in->q))
        return cgam_fail(env, CGAM_E_ARG, "invalid number of queries, or q is NULL: %lld",
                         (long long)in->queries);
    for (int64_t k = 0; in->target && k < in->queries; k++)
        if (in->target[k] < 0 || in->target[k] >= plan->bank->whole)
            return cgam_fail(env, CGAM_E_ARG,
                             "no memory %lld for the target of query %lld "
                             "(valid: 0 to %lld)",
                             (long long)in->target[k], (long long)k,
                             (long long)plan->bank->whole - 1);
        else if (cgam_bank_place(plan->bank, in->target[k]) < 0)
            return cgam_fail(env, CGAM_E_ARG,
                             "target %lld of query %lld is not among the selected memories",
                             (long long)in->target[k], (long long)k);
    return CGAM_OK;
}

cgam_status cgam_scores_strange(const cgam_recall *plan, int64_t k)
{
    return cgam_fail(plan->bank->env, CGAM_E_VALUE,
                     "a score of query %lld is not finite: the bank may be damaged, see bank show "
                     "--check",
                     (long long)k);
}

cgam_status cgam_scores_check(const cgam_recall *plan, int64_t k, const double *r)
{
    if (!plan->bank->unread) return CGAM_OK;
    CGAM_EACH_ROW(&plan->bank->Z, i)
        if (!isfinite(r[i])) return cgam_scores_strange(plan, k);
    return CGAM_OK;
}

/* Checks the scores of rows that were not checked: these may hold NaN or infinity. */
static cgam_status check_scores(const cgam_recall *plan, const cgam_recall_in *in,
                                const cgam_recall_out *out)
{
    int64_t top = out->top < plan->bank->Z.n ? out->top : plan->bank->Z.n;
    for (int64_t k = 0; k < in->queries; k++) {
        const cgam_result *r = out->results ? &out->results[k] : NULL;
        bool strange = r && (isnan(r->p) || r->end == CGAM_END_DIVERGED);
        for (int64_t j = 0; out->top_p && j < top; j++) strange |= isnan(out->top_p[k * top + j]);
        if (strange) return cgam_scores_strange(plan, k);
    }
    return CGAM_OK;
}

/* Checks the starts of mode coupled and divides them by their sums. */
static cgam_status normalize_starts(const cgam_recall *plan, const cgam_recall_in *in,
                                    double *starts)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n;
    const cgam_rows *Z = &plan->bank->Z;
    if (plan->opts.mode != CGAM_COUPLED)
        return cgam_fail(env, CGAM_E_ARG, "start requires mode coupled, not mode %s",
                         cgam_word(cgam_mode_words, plan->opts.mode));
    for (int64_t k = 0; k < in->queries; k++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double weight = in->start[k * n + i];
            if (!(weight >= 0 && isfinite(weight)))
                return cgam_fail(
                    env, CGAM_E_ARG,
                    "the start of query %lld has weight %g at %lld; weights must be 0 or more and finite",
                    (long long)k, weight, (long long)i);
            sum += weight;
        }
        if (!(sum > 0 && isfinite(sum)))
            return cgam_fail(
                env, CGAM_E_ARG,
                "the weights of the start of query %lld sum to %g; the sum must be above 0 and finite",
                (long long)k, sum);
        CGAM_EACH_ROW(Z, i) starts[k * cgam_vec_size(Z) + i] = in->start[k * n + i] / sum;
    }
    return CGAM_OK;
}

/* Copies some results that another engine computed for the same queries. */
static cgam_status take_results(const cgam_recall *plan, const cgam_recall_in *in,
                                cgam_result *results, cgam_status (*run)(cgam_schedule *),
                                void (*take)(const cgam_result *from, cgam_result *to))
{
    cgam_env *env = plan->bank->env;
    cgam_result *others = cgam_alloc(env, (size_t)in->queries, sizeof *others);
    cgam_recall_out out = {.results = others};
    if (!others) return cgam_fail_nomem(env, "certificates");
    cgam_schedule call = cgam_schedule_vectors(plan, in, &out);
    cgam_status status = run(&call);
    for (int64_t k = 0; k < in->queries && status == CGAM_OK; k++) take(&others[k], &results[k]);
    cgam_free(env, others);
    return status;
}

/* Copies what a sketch finds exactly, with the bits of the engine for small banks. */
static void take_lead(const cgam_result *from, cgam_result *to)
{
    to->winner = from->winner;
    to->focus_rank = from->focus_rank;
    to->gap = from->gap;
    to->gap_raw = from->gap_raw;
    to->gap_gate = from->gap_gate;
}

static cgam_status run_routed(const cgam_recall *plan, const cgam_recall_in *in,
                              const cgam_recall_out *out)
{
    cgam_schedule call = cgam_schedule_open(plan, in, out);
    cgam_path path = call.route.path;
    if (path == CGAM_PATH_LANES) return cgam_recall_by_small(&call);
    bool pass = path == CGAM_PATH_PASS || path == CGAM_PATH_MATRICES || path == CGAM_PATH_SKETCH;
    cgam_status status = (pass ? cgam_recall_by_pass : cgam_recall_by_vectors)(&call);
    if (pass && cgam_recall_full(plan) && out->results && status == CGAM_OK)
        status =
            take_results(plan, in, out->results, cgam_recall_by_vectors, cgam_result_take_proofs);
    if (plan->opts.fast && plan->lanes && out->results && status == CGAM_OK)
        status = take_results(plan, in, out->results, cgam_recall_by_small, take_lead);
    return status == CGAM_OK && plan->bank->unread ? check_scores(plan, in, out) : status;
}

/* Runs a recall on some rows of a bank: converts targets from, and answers to, row numbers of the whole bank. */
static cgam_status run_numbered(const cgam_recall *plan, const cgam_recall_in *in,
                                const cgam_recall_out *out)
{
    const cgam_bank *bank = plan->bank;
    int64_t top = out->top < bank->Z.n ? out->top : bank->Z.n;
    int64_t *target = cgam_alloc(bank->env, (size_t)in->queries, sizeof *target);
    if (!target) return cgam_fail_nomem(bank->env, "targets");
    cgam_recall_in placed = *in;
    for (int64_t k = 0; in->target && k < in->queries; k++)
        target[k] = cgam_bank_place(bank, in->target[k]);
    if (in->target) placed.target = target;
    cgam_status status = run_routed(plan, &placed, out);
    cgam_free(bank->env, target);
    for (int64_t k = 0; k < in->queries && status == CGAM_OK; k++) {
        cgam_result *r = out->results ? &out->results[k] : NULL;
        if (r && r->winner >= 0) r->winner = bank->number[r->winner];
        if (r && r->focus >= 0) r->focus = bank->number[r->focus];
        for (int64_t j = 0; out->anneal && j < out->anneal[k].points; j++)
            out->anneal[k].path[j].winner = bank->number[out->anneal[k].path[j].winner];
        for (int64_t j = 0; out->top_index && j < top; j++)
            out->top_index[k * top + j] = bank->number[out->top_index[k * top + j]];
    }
    return status;
}

cgam_status cgam_recall_run(const cgam_recall *plan, const cgam_recall_in *in,
                            const cgam_recall_out *out)
{
    cgam_status status = check_input(plan, in);
    if (status != CGAM_OK || in->queries == 0) return status;
    if (out->anneal) memset(out->anneal, 0, (size_t)in->queries * sizeof *out->anneal);
    cgam_recall_in own = *in;
    double *starts = NULL;
    if (in->start) {
        cgam_env *env = plan->bank->env;
        starts = cgam_vec_new(env, &plan->bank->Z, in->queries);
        status = starts ? normalize_starts(plan, in, starts) : cgam_fail_nomem(env, "starts");
        own.start = starts;
    }
    if (status == CGAM_OK)
        status = plan->bank->number ? run_numbered(plan, &own, out) : run_routed(plan, &own, out);
    cgam_vec_free(plan->bank->env, &plan->bank->Z, starts);
    return status;
}

cgam_status cgam_recall_once(const cgam_bank *bank, const double *q, const double *c,
                             const cgam_recall_opts *opts, cgam_result *out)
{
    cgam_recall *plan;
    cgam_status status = cgam_recall_new(bank, opts, &plan);
    if (status != CGAM_OK) return status;
    cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out results = {.results = out};
    status = cgam_recall_run(plan, &in, &results);
    cgam_recall_free(plan);
    return status;
}
