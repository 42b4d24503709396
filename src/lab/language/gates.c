/* gates.c: see gates.h.
 *
 * The gates' response to a context, t = A^-1 Z c, is one vector of n numbers for each half and alpha. Scores of mode first
 * are b + lambda k t, so intervals of lambda and answers need no further pass over the bank. With equal norms t comes from
 * the modes of Z'Z, otherwise from A(alpha) factored. Coupled recalls are those of recall.h on plans that share the
 * factored A(alpha). */
#include "memory/bank.h"
#include "memory/gate.h"
#include "num/gemm_pass.h"
#include "num/softmax.h"

#include "lab/language/gates.h"
#include <math.h>
#include <string.h>

struct cgam_gates {
    const cgam_bank *bank;
    cgam_gates_info info;
    cgam_spectrum *modes; /* equal norms and n > d, else NULL */
    double *mu;
};

struct cgam_gates_asked {
    const cgam_gates *gates;
    cgam_gates_input in;
    double *b[2]; /* [queries, n] Z q; the second may be the first */
    double *t[2]; /* [n] A^-1 Z c at the alpha in hand */
};

/* ---- What there is to know of the bank ---------------------------------------------------- */
void cgam_gates_free(cgam_gates *g)
{
    if (!g) return;
    cgam_env *env = g->bank->env;
    cgam_spectrum_free(g->modes);
    cgam_free_all(env, g->mu, g);
}

/* Eigenvalues of Z'Z from those of G - nu I; modes that were left out have the eigenvalue 0. */
static void take_modes(cgam_gates *g)
{
    cgam_spectrum_info sp = cgam_spectrum_describe(g->modes);
    int64_t skip = g->info.modes - sp.modes;
    double nu = g->bank->norm2[0];
    for (int64_t k = 0; k < g->info.modes; k++)
        g->mu[k] = k < skip ? 0 : cgam_spectrum_describe(g->modes).omega[k - skip] + nu;
    g->info.gram = (cgam_gram_info){sp.mu_min, sp.mu_max, sp.rank};
}

cgam_status cgam_gates_new(const cgam_bank *bank, const cgam_progress *progress, cgam_gates **out)
{
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n, d = bank->Z.d;
    bool equal = bank->info.equal_norms && n > d;
    *out = NULL;
    cgam_gates *g = cgam_zalloc(env, 1, sizeof *g);
    if (!g) return cgam_fail_nomem(env, "gates");
    g->bank = bank;
    g->info.modes = n < d ? n : d;
    g->info.mu = g->mu = cgam_alloc(env, (size_t)g->info.modes, sizeof *g->mu);
    cgam_status status = g->mu ? CGAM_OK : cgam_fail_nomem(env, "a spectrum");
    cgam_progress_count(progress, "spectrum", 0, 2, "steps");
    if (status == CGAM_OK)
        status = equal ? cgam_spectrum_new(bank, &g->modes)
                       : cgam_bank_eigenvalues(bank, g->mu, &g->info.gram);
    if (status == CGAM_OK && equal) take_modes(g);
    cgam_progress_count(progress, "critical alpha", 1, 2, "steps");
    if (status == CGAM_OK && cgam_interrupted(env)) status = CGAM_E_INTERRUPTED;
    if (status == CGAM_OK) status = cgam_gate_critical(bank, CGAM_EFFORT_FULL, &g->info.critical);
    if (status == CGAM_OK) *out = g;
    else cgam_gates_free(g);
    return status;
}

cgam_gates_info cgam_gates_describe(const cgam_gates *g) { return g->info; }

int64_t cgam_gates_grid(const cgam_gates *g, double alpha[CGAM_GATES_GRID])
{
    static const double near[] = {-1, -0.5, -0.25, 0, 0.25, 0.5, 1}, below[] = {0.5, 0.9, 0.99};
    enum { DECADES = 12 };
    double one = 1 / g->info.gram.mu_max, end = g->info.critical.alpha_lo;
    int64_t n = 0;
    alpha[n++] = 0;
    if (!isfinite(one)) return n;
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        if (one * pow(10, near[i]) < 0.4 * end) alpha[n++] = one * pow(10, near[i]);
    for (int k = 2; k < DECADES && one * pow(10, k) < 0.4 * end; k++) alpha[n++] = one * pow(10, k);
    for (size_t i = 0; i < sizeof below / sizeof *below && isfinite(end); i++)
        alpha[n++] = below[i] * end;
    return n;
}

/* ---- Questions ---------------------------------------------------------------------------- */
void cgam_gates_asked_free(cgam_gates_asked *a)
{
    if (!a) return;
    cgam_env *env = a->gates->bank->env;
    if (a->b[1] != a->b[0]) cgam_free(env, a->b[1]);
    cgam_free_all(env, a->b[0], a->t[0], a);
}

cgam_status cgam_gates_ask(const cgam_gates *g, const cgam_gates_input *in, cgam_gates_asked **out)
{
    const cgam_bank *bank = g->bank;
    cgam_env *env = bank->env;
    int64_t n = bank->Z.n;
    *out = NULL;
    for (int64_t k = 0; k < in->labels; k++)
        if (in->tokens[k] >= n)
            return cgam_fail(env, CGAM_E_ARG, "label %lld is token %d (valid: below %lld)",
                             (long long)k, (int)in->tokens[k], (long long)n);
    cgam_gates_asked *a = cgam_zalloc(env, 1, sizeof *a);
    if (!a) return cgam_fail_nomem(env, "a question");
    a->gates = g;
    a->in = *in;
    cgam_status status = CGAM_OK;
    a->t[0] = cgam_alloc(env, 2 * (size_t)n, sizeof *a->t[0]);
    a->t[1] = a->t[0] ? a->t[0] + n : NULL;
    for (int h = 0; h < 2 && status == CGAM_OK; h++) {
        if (h == 1 && in->q[1] == in->q[0]) {
            a->b[1] = a->b[0];
            continue;
        }
        a->b[h] = cgam_alloc(env, (size_t)in->queries * (size_t)n, sizeof *a->b[h]);
        status = a->b[h] && a->t[0]
                     ? cgam_gemm_pass_scores(env, &bank->Z, in->queries, in->q[h], a->b[h])
                     : cgam_fail_nomem(env, "the scores of queries");
    }
    if (status == CGAM_OK) *out = a;
    else cgam_gates_asked_free(a);
    return status;
}

/* ---- Choosing lambda ---------------------------------------------------------------------- */
typedef struct choosing {
    const cgam_gates_asked *asked;
    int half;
    cgam_interval *of; /* [queries] of that half, in their order */
} choosing;

/* Where the right answer of query 2 k + half has the largest b + lambda factor t. */
static cgam_status choose_one(void *arg, int64_t k)
{
    const choosing *job = arg;
    const cgam_gates_asked *a = job->asked;
    const cgam_gates_input *in = &a->in;
    int64_t n = a->gates->bank->Z.n, i = 2 * k + job->half, label = in->target[i];
    const double *b = a->b[job->half] + i * n, *t = a->t[job->half];
    double factor = in->factor[job->half][i];
    cgam_interval x = {0, INFINITY};
    bool left = label >= 0, all = in->over == CGAM_OVER_VOCABULARY;
    int64_t y = left ? in->tokens[label] : 0;
    const double *after = in->after ? in->after + i * in->labels : NULL;
    for (int64_t j = 0; j < in->labels && left && !all; j++) {
        int64_t m = in->tokens[j];
        if (m < 0 || j == label) continue;
        double gap = b[m] - b[y] + (after ? after[j] - after[label] : 0);
        left = cgam_sweep_narrow(gap, factor * (t[y] - t[m]), j < label, &x);
    }
    if (all && left && in->goes_on) left = in->goes_on[i];
    for (int64_t m = 0; m < n && left && all; m++)
        if (m != y) left = cgam_sweep_narrow(b[m] - b[y], factor * (t[y] - t[m]), m < y, &x);
    job->of[k] = left ? x : (cgam_interval){INFINITY, -INFINITY};
    return CGAM_OK;
}

/* If rng is NULL, on the queries themselves, else on as many drawn from them with replacement. */
static cgam_status choose_lambda(const cgam_gates_asked *a, int half, cgam_rng *rng,
                                 cgam_gates_answers *out)
{
    cgam_env *env = a->gates->bank->env;
    int64_t n = (a->in.queries + 1 - half) / 2, counted = 0;
    choosing job = {a, half, cgam_alloc(env, 2 * (size_t)n + 1, sizeof *job.of)};
    cgam_interval *drawn = job.of ? job.of + n : NULL;
    cgam_step step;
    if (!job.of) return cgam_fail_nomem(env, "intervals");
    cgam_status status = cgam_parallel(env, n, choose_one, &job);
    for (int64_t k = 0; k < n; k++) drawn[k] = job.of[rng ? cgam_rng_below(rng, n) : k];
    if (status == CGAM_OK) status = cgam_sweep_step(env, n, drawn, &step);
    cgam_free(env, job.of);
    if (status != CGAM_OK) return status;
    for (int64_t i = half; i < a->in.queries; i += 2) counted += a->in.target[i] >= 0;
    out->lambda[half] = cgam_sweep_inside(step.lambda);
    out->chosen[half] = counted ? (double)step.count / (double)counted : (double)NAN;
    return CGAM_OK;
}

/* ---- Answers ------------------------------------------------------------------------------ */
/* Evaluates the scores of query i; leaves the rest of *to unchanged. */
static cgam_status read_scores(const cgam_gates_asked *a, int64_t i, const double *r,
                               cgam_gates_answer *to)
{
    const cgam_gates_input *in = &a->in;
    int64_t n = a->gates->bank->Z.n, best = -1;
    double most = 0;
    to->winner = 0;
    for (int64_t m = 1; m < n; m++)
        if (r[m] > r[to->winner]) to->winner = m;
    for (int64_t k = 0; k < in->labels; k++) {
        if (in->tokens[k] < 0) continue;
        double score = r[in->tokens[k]] + (in->after ? in->after[i * in->labels + k] : 0);
        if (best < 0 || score > most) best = k, most = score;
    }
    to->label = best;
    cgam_softmax all = cgam_softmax_from(r[to->winner]);
    for (int64_t m = 0; m < n; m++) cgam_softmax_take(&all, 1, r[m]);
    if (!isfinite(all.top) || !isfinite(all.sum))
        return cgam_fail(a->gates->bank->env, CGAM_E_VALUE, "a score is not finite");
    to->p = 1 / all.sum;
    to->log_neff_entropy = cgam_softmax_entropy(&all);
    to->log_neff_ipr = 2 * log(all.sum) - log(all.squares);
    return CGAM_OK;
}

typedef struct answering {
    const cgam_gates_asked *asked;
    cgam_gates_answers *out;
} answering;

static cgam_status answer_one(void *arg, int64_t i)
{
    const answering *job = arg;
    const cgam_gates_asked *a = job->asked;
    cgam_env *env = a->gates->bank->env;
    int64_t n = a->gates->bank->Z.n;
    int half = (int)(1 - i % 2); /* where its coupling was chosen */
    double scale = job->out->lambda[half] * a->in.factor[half][i];
    const double *b = a->b[half] + i * n, *t = a->t[half];
    double *r = cgam_alloc(env, (size_t)n, sizeof *r);
    if (!r) return cgam_fail_nomem(env, "scores");
    for (int64_t m = 0; m < n; m++) r[m] = b[m] + scale * t[m];
    cgam_gates_answer *to = &job->out->first[i];
    *to = (cgam_gates_answer){.unique = true, .settled = true};
    cgam_status status = cgam_interrupted(env) ? CGAM_E_INTERRUPTED : read_scores(a, i, r, to);
    cgam_free(env, r);
    return status;
}

/* Room for a group of coupled recalls. */
typedef struct recall_group {
    int64_t count, query[CGAM_RECALL_GROUP];
    cgam_result results[CGAM_RECALL_GROUP];
    double *q, *c; /* [CGAM_RECALL_GROUP, d] */
    double *r;     /* [CGAM_RECALL_GROUP, n] */
    const cgam_gates_asked *asked;
    cgam_gates_answer *to;
} recall_group;

static cgam_status read_answer(void *arg, int64_t k)
{
    const recall_group *g = arg;
    const cgam_result *x = &g->results[k];
    cgam_gates_answer *to = &g->to[g->query[k]];
    *to = (cgam_gates_answer){.unique = x->unique == 1 && x->unique_proved,
                              .settled = x->end == CGAM_END_CONVERGED || x->end == CGAM_END_STALLED,
                              .iterations = x->iterations};
    return read_scores(g->asked, g->query[k], g->r + k * g->asked->gates->bank->Z.n, to);
}

static cgam_status run_group(const cgam_recall *plan, int half, recall_group *g)
{
    const cgam_gates_asked *a = g->asked;
    cgam_env *env = a->gates->bank->env;
    int64_t d = a->gates->bank->Z.d;
    for (int64_t k = 0; k < g->count; k++) {
        int64_t i = g->query[k];
        memcpy(g->q + k * d, a->in.q[half] + i * d, (size_t)d * sizeof *g->q);
        for (int64_t j = 0; j < d; j++) g->c[k * d + j] = a->in.factor[half][i] * a->in.c[half][j];
    }
    cgam_recall_in in = {.queries = g->count, .q = g->q, .c = g->c, .c_per_query = true};
    cgam_recall_out out = {.results = g->results, .r = g->r};
    cgam_status status = cgam_recall_run(plan, &in, &out);
    return status == CGAM_OK ? cgam_parallel(env, g->count, read_answer, g) : status;
}

/* Counts the queries of the other half with the choice made on this one. */
static cgam_status couple_half(const cgam_gates_asked *a, const cgam_gate *gate, double alpha,
                               int half, recall_group *g, cgam_gates_answers *out)
{
    cgam_recall_opts opts = cgam_recall_opts_default();
    cgam_recall *plan;
    opts.mode = CGAM_COUPLED;
    opts.alpha = alpha;
    opts.lambda = out->lambda[half];
    opts.gate = gate;
    cgam_status status = cgam_recall_new(a->gates->bank, &opts, &plan);
    if (status != CGAM_OK) return status;
    g->asked = a;
    g->to = out->coupled;
    for (int64_t i = 1 - half; i < a->in.queries && status == CGAM_OK;) {
        for (g->count = 0; i < a->in.queries && g->count < CGAM_RECALL_GROUP; i += 2)
            g->query[g->count++] = i;
        status = run_group(plan, half, g);
    }
    cgam_recall_free(plan);
    return status;
}

static cgam_status couple(const cgam_gates_asked *a, const cgam_gate *gate, double alpha,
                          cgam_gates_answers *out)
{
    cgam_env *env = a->gates->bank->env;
    size_t n = (size_t)a->gates->bank->Z.n, d = (size_t)a->gates->bank->Z.d;
    recall_group *g = cgam_zalloc(env, 1, sizeof *g);
    if (!g) return cgam_fail_nomem(env, "coupled recalls");
    cgam_status status = cgam_alloc_all(
        env, "coupled recalls", CGAM_ARRAY(g->q, CGAM_RECALL_GROUP * d),
        CGAM_ARRAY(g->c, CGAM_RECALL_GROUP * d), CGAM_ARRAY(g->r, CGAM_RECALL_GROUP * n));
    for (int half = 0; half < 2 && status == CGAM_OK; half++)
        status = couple_half(a, gate, alpha, half, g, out);
    cgam_free_all(env, g->q, g->c, g->r, g);
    return status;
}

/* ---- One alpha ---------------------------------------------------------------------------- */
/* t of both halves: with alpha = 0 the scores of c themselves. */
static cgam_status gate_contexts(const cgam_gates_asked *a, const cgam_gate *gate, double alpha)
{
    const cgam_gates *g = a->gates;
    cgam_status status = CGAM_OK;
    for (int h = 0; h < 2 && status == CGAM_OK; h++) {
        const double *c = a->in.c[h];
        status = alpha == 0 ? cgam_bank_score(g->bank, c, a->t[h])
                 : g->modes ? cgam_spectrum_solve_range(g->modes, alpha, c, a->t[h])
                            : cgam_gate_solve_range(gate, c, a->t[h]);
    }
    return status;
}

static cgam_status answer_first(const cgam_gates_asked *a, const cgam_gate *gate, double alpha,
                                cgam_gates_answers *out)
{
    cgam_status status = gate_contexts(a, gate, alpha);
    answering job = {a, out};
    for (int h = 0; h < 2 && status == CGAM_OK; h++) status = choose_lambda(a, h, NULL, out);
    if (status == CGAM_OK && out->first)
        status = cgam_parallel(a->gates->bank->env, a->in.queries, answer_one, &job);
    return status;
}

cgam_status cgam_gates_resample(cgam_gates_asked *a, cgam_rng *rng, cgam_gates_answer *first)
{
    cgam_gates_answers out = {.first = first};
    answering job = {a, &out};
    cgam_status status = gate_contexts(a, NULL, 0);
    for (int h = 0; h < 2 && status == CGAM_OK; h++) status = choose_lambda(a, h, rng, &out);
    if (status == CGAM_OK)
        status = cgam_parallel(a->gates->bank->env, a->in.queries, answer_one, &job);
    return status;
}

cgam_status cgam_gates_at(const cgam_gates *g, double alpha, int64_t count,
                          cgam_gates_asked *const *asked, cgam_gates_answers *out,
                          cgam_gates_seconds *seconds)
{
    cgam_gate *gate = NULL;
    cgam_gates_seconds unwanted = {0}, *spent = seconds ? seconds : &unwanted;
    bool coupled = false;
    for (int64_t k = 0; k < count; k++) coupled = coupled || out[k].coupled;
    cgam_gate_opts opts = cgam_gate_opts_default();
    opts.critical = &g->info.critical;
    opts.spectrum = g->modes;
    opts.coupled = coupled;
    double start = cgam_clock();
    cgam_status status =
        coupled || (alpha > 0 && !g->modes) ? cgam_gate_new(g->bank, alpha, &opts, &gate) : CGAM_OK;
    spent->set_up += cgam_clock() - start;
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        start = cgam_clock();
        status = answer_first(asked[k], gate, alpha, &out[k]);
        spent->first += cgam_clock() - start;
        start = cgam_clock();
        if (status == CGAM_OK && out[k].coupled) status = couple(asked[k], gate, alpha, &out[k]);
        spent->coupled += cgam_clock() - start;
    }
    cgam_gate_free(gate);
    return status;
}
