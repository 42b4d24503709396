/* convergence.c: where do flows and iterations end, from any start? (docs/theorems/variational.md)
 *
 * Each trial has its own bank, a noisy query and a noisy context. At every (alpha, lambda, beta) with alpha below
 * alpha_crit, `starts` flows of the four layers begin at random gates and retrieval, and the plain iteration begins at
 * the weights of the same retrieval. Counted are flows that come to rest, their residual of the fixed-point equation,
 * energies that rise, the number of different points at which the starts of one problem end, whether a flow and an
 * iteration end at the same one, and how long they take. Where the contraction theorem promises one fixed point, several
 * would refute it. From every fourth start the network also flows with a free query, and with a free context over gate
 * weights that leave it a positive margin.
 *
 * A block is one trial; its record has COUNTS numbers for every cell. */
#include "lab/synthetic/trial.h"
#include "memory/certify.h"

#include <cgam/flow.h>
#include <cgam/theory.h>
#include <math.h>
#include <string.h>

enum {
    SUBCRITICAL, /* 1: A is positive definite here, and all that follows was counted */
    RESTED,      /* flows that came to rest */
    RESIDUAL,    /* the largest |p - map(p)|_2 where one did */
    ROSE,        /* flows whose energy rose */
    SETTLED,     /* iterations that converged */
    CLIMBED,     /* steps of theirs at which the free energy rose */
    SAME,        /* starts from which both end at one point */
    LIMITS,      /* different points among the ends of flows, and of iterations */
    LIMITS_ITERATED,
    SPREAD,       /* between the energies of the highest and the lowest end of a flow */
    TIME,         /* sum over flows that came to rest */
    STEPS,        /* sum over iterations that converged */
    CONTRACTION,  /* beta lambda^2 / (2 eta_min) */
    UNIQUE,       /* 1: the contraction theorem promises one fixed point */
    REFUTED,      /* 1: and there are several */
    LOOSE,        /* starts of flows with a free layer: */
    QUERY_RESTED, /* flows with a free query that came to rest, and those whose energy rose; */
    QUERY_ROSE,
    CONTEXT_RESTED, /* the same with a free context */
    CONTEXT_ROSE,
    COUNTS
};
enum { ITERATIONS = 20000, LOOSE_EVERY = 4 };
static const double HORIZON = 1e5, STEADY = 1e-7;
static const double APART = 1e-4;  /* |p - p'|_2 of different points */
static const double STILL = 1e-12; /* |p - p'|_2 at which an iteration has converged */
static const double ROUNDING = 1e-13;

typedef struct room {
    double *pool, *x, *flowed, *iterated, *work, *energy;
    json_t *shown; /* --only-trial: every start, NULL otherwise */
} room;

static void room_close(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    cgam_free(study->env, ((room *)opened)->pool);
}

static cgam_status room_open(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    const int64_t n = study->opts.n, d = study->opts.d, starts = study->opts.starts;
    const int64_t size = 2 * n + 2 * d;
    w->pool =
        cgam_alloc(study->env, (size_t)(size + starts * (2 * n + 1) + 3 * n), sizeof *w->pool);
    if (!w->pool) return cgam_fail_nomem(study->env, "a trial");
    w->x = w->pool;
    w->flowed = w->x + size;
    w->iterated = w->flowed + starts * n;
    w->work = w->iterated + starts * n;
    w->energy = w->work + 3 * n;
    return CGAM_OK;
}

typedef struct cell {
    const cgam_problem *p;
    double alpha, beta, lambda;
    int64_t at, trial;
    cgam_gate *gate;
    cgam_net *net, *loose; /* loose: its context may be free */
    double *P;             /* [d, d] of loose, a multiple of the identity */
} cell;

static double distance(int64_t n, const double *p, const double *q)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (p[i] - q[i]) * (p[i] - q[i]);
    return sqrt(squares);
}

/* How many of the rows of p are further than APART from all before them. */
static double different(int64_t rows, int64_t n, const double *p)
{
    double count = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool known = isnan(p[i * n]);
        for (int64_t j = 0; j < i && !known; j++)
            known = distance(n, p + i * n, p + j * n) <= APART;
        count += !known;
    }
    return count;
}

/* Start k: gates and retrieval are normal numbers of a size between 0.1 and 10. */
static void start_at(const cgam_study *study, const cell *c, int64_t k, double *x)
{
    const int64_t n = c->p->n, d = c->p->d;
    cgam_rng rng = cgam_stream(study->opts.seed, CGAM_STREAM_CONVERGENCE, CGAM_STREAM_START, k,
                               c->at, c->trial);
    double size = pow(10, 2 * cgam_rng_uniform(&rng) - 1);
    memcpy(x, c->p->c, (size_t)d * sizeof *x);
    for (int64_t i = 0; i < 2 * n; i++) x[d + i] = size * cgam_rng_normal(&rng);
    memcpy(x + d + 2 * n, c->p->q, (size_t)d * sizeof *x);
}

/* The plain iteration from p to where it stays; *steps is 0 where it does not. */
static cgam_status iterate(const cell *c, double *p, double *work, double *record, int64_t *steps)
{
    const int64_t n = c->p->n;
    double *next = work + 2 * n, before = INFINITY;
    *steps = 0;
    for (int64_t k = 1; k <= ITERATIONS; k++) {
        double F;
        cgam_status status =
            cgam_trial_map(c->gate, n, c->beta, c->lambda, c->p->b, c->p->u, p, work, next);
        double moved = distance(n, p, next);
        memcpy(p, next, (size_t)n * sizeof *p);
        if (status == CGAM_OK)
            status = cgam_coupled_free_energy(c->gate, c->beta, c->lambda, c->p->b, c->p->u, p, &F,
                                              NULL);
        if (status != CGAM_OK) return status;
        record[CLIMBED] += F > before + ROUNDING * (1 + fabs(before));
        before = F;
        if (moved <= STILL) {
            *steps = k;
            return CGAM_OK;
        }
    }
    p[0] = NAN; /* ends nowhere */
    return CGAM_OK;
}

/* The network from start k, with the layer `moves` free; -1: query and context are held. */
static cgam_status flow_from(cgam_study *study, const cell *c, int64_t k, int moves, double *x,
                             cgam_flow_report *report)
{
    cgam_clamp clamps[2];
    cgam_flow_opts o = cgam_flow_opts_default();
    o.t_end = HORIZON;
    o.rtol = 0.1 * STEADY;
    o.atol = 0.01 * o.rtol;
    o.steady = STEADY;
    o.clamps = clamps;
    for (int held = 0; held < 2; held++) {
        int layer = held ? CGAM_NET_QUERY : CGAM_NET_CONTEXT;
        if (layer != moves) clamps[o.clamp_count++] = (cgam_clamp){.layer = layer, .to = INFINITY};
    }
    start_at(study, c, k, x);
    return cgam_flow_run(moves == CGAM_NET_CONTEXT ? c->loose : c->net, 1, x, &o, report);
}

/* The flows of one start with a free layer. */
static cgam_status run_loose(cgam_study *study, const cell *c, int64_t k, double *x, double *record)
{
    static const struct {
        int layer, counts;
    } loose[] = {{CGAM_NET_QUERY, QUERY_RESTED}, {CGAM_NET_CONTEXT, CONTEXT_RESTED}};
    cgam_status status = CGAM_OK;
    record[LOOSE]++;
    for (int j = 0; j < 2 && status == CGAM_OK; j++) {
        cgam_flow_report report;
        status = flow_from(study, c, k, loose[j].layer, x, &report);
        record[loose[j].counts] += report.end == CGAM_FLOW_STEADY;
        record[loose[j].counts + 1] += report.end == CGAM_FLOW_ROSE;
    }
    return status;
}

/* One start, flowing and iterated. */
static cgam_status run_start(cgam_study *study, const cell *c, int64_t k, room *w, double *record)
{
    const int64_t n = c->p->n, d = c->p->d;
    double *flowed = w->flowed + k * n, *iterated = w->iterated + k * n, left = NAN;
    cgam_flow_report report;
    int64_t steps = 0;
    cgam_status status = CGAM_OK;
    if (k % LOOSE_EVERY == 0) status = run_loose(study, c, k, w->x, record);
    start_at(study, c, k, w->x);
    cgam_trial_softmax(n, c->beta, w->x + d + n, iterated);
    if (status == CGAM_OK) status = flow_from(study, c, k, -1, w->x, &report);
    if (status == CGAM_OK) status = iterate(c, iterated, w->work, record, &steps);
    if (status != CGAM_OK) return status;
    cgam_trial_softmax(n, c->beta, w->x + d + n, flowed);
    w->energy[k] = report.energy_end;
    if (report.end == CGAM_FLOW_STEADY) {
        status = cgam_trial_map(c->gate, n, c->beta, c->lambda, c->p->b, c->p->u, flowed, w->work,
                                w->work + 2 * n);
        left = distance(n, flowed, w->work + 2 * n);
        record[RESTED]++;
        record[RESIDUAL] = fmax(record[RESIDUAL], left);
        record[TIME] += report.time;
    } else flowed[0] = w->energy[k] = NAN;
    record[ROSE] += report.end == CGAM_FLOW_ROSE;
    record[SETTLED] += steps > 0;
    record[STEPS] += (double)steps;
    record[SAME] += distance(n, flowed, iterated) <= APART;
    if (!w->shown) return status;
    json_t *one = cgam_json_object(
        "flow=%s time=%g energy=%g residual=%g iterations=%jd p_flow=%p p_iterated=%p",
        cgam_word(cgam_flow_end_words, report.end), report.time, report.energy_end, left, steps,
        cgam_json_reals(flowed, n, 1), cgam_json_reals(iterated, n, 1));
    json_array_append_new(w->shown, one);
    return status;
}

/* Makes the network whose context may be free: P = x I, x^2 half of what leaves the margin at 0. */
static cgam_status loosen(cgam_study *study, cell *c, cgam_memory_net_opts *net)
{
    const int64_t d = c->p->d;
    double margin = 1;
    c->P = cgam_zalloc(study->env, (size_t)(d * d), sizeof *c->P);
    if (!c->P) return cgam_fail_nomem(study->env, "a projection");
    cgam_status status = cgam_context_margin(c->gate, NULL, d, &margin);
    for (int64_t j = 0; j < d; j++) c->P[j * d + j] = sqrt(0.5 / (1 - margin));
    net->P = c->P;
    net->d_c = d;
    return status == CGAM_OK ? cgam_memory_net_new(c->p->bank, net, &c->loose) : status;
}

static void cell_close(cgam_study *study, cell *c)
{
    cgam_net_free(c->net);
    cgam_net_free(c->loose);
    cgam_free(study->env, c->P);
    cgam_gate_free(c->gate);
}

static cgam_status run_cell(cgam_study *study, cell *c, room *w, double *record)
{
    const int64_t n = c->p->n, starts = study->opts.starts;
    double low = INFINITY, high = -INFINITY;
    cgam_memory_net_opts net = cgam_memory_net_opts_default();
    cgam_gate_opts full = {.effort = CGAM_EFFORT_FULL};
    cgam_status status = cgam_gate_new(c->p->bank, c->alpha, &full, &c->gate);
    if (status != CGAM_OK || cgam_gate_describe(c->gate).regime != CGAM_SUBCRITICAL) return status;
    net.alpha = c->alpha;
    net.beta = c->beta;
    net.lambda = c->lambda;
    status = cgam_memory_net_new(c->p->bank, &net, &c->net);
    if (status == CGAM_OK) status = loosen(study, c, &net);
    for (int64_t k = 0; k < starts && status == CGAM_OK; k++) {
        status = run_start(study, c, k, w, record);
        if (isnan(w->energy[k])) continue;
        low = fmin(low, w->energy[k]);
        high = fmax(high, w->energy[k]);
    }
    record[SUBCRITICAL] = 1;
    record[LIMITS] = different(starts, n, w->flowed);
    record[LIMITS_ITERATED] = different(starts, n, w->iterated);
    record[SPREAD] = high >= low ? high - low : 0;
    record[CONTRACTION] = cgam_contraction(c->beta, c->lambda, cgam_gate_describe(c->gate).eta_min);
    record[UNIQUE] = record[CONTRACTION] < 1;
    record[REFUTED] = record[UNIQUE] > 0 && record[LIMITS] + record[LIMITS_ITERATED] > 2;
    return status;
}

static int64_t cells_of(const cgam_study_opts *o)
{
    return o->alphas.count * o->lambda.count * o->betas.count;
}

static cell cell_at(const cgam_study_opts *o, const cgam_problem *p, int64_t trial, int64_t at)
{
    return (cell){.p = p,
                  .at = at,
                  .trial = trial,
                  .alpha = o->alphas.values[at / (o->lambda.count * o->betas.count)],
                  .lambda = o->lambda.values[at / o->betas.count % o->lambda.count],
                  .beta = o->betas.values[at % o->betas.count]};
}

cgam_status cgam_convergence_check(cgam_env *env, const cgam_study_opts *o)
{
    if (cells_of(o) <= CGAM_STREAM_CELLS) return CGAM_OK;
    return cgam_fail(env, CGAM_E_ARG, "%lld combinations of alpha, lambda and beta (at most %d)",
                     (long long)cells_of(o), CGAM_STREAM_CELLS);
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    (void)arg;
    const cgam_study_opts *o = &study->opts;
    cgam_problem p;
    memset(record, 0, (size_t)(cells_of(o) * COUNTS) * sizeof *record);
    cgam_status status =
        cgam_problem_open(study, CGAM_STREAM_CONVERGENCE, o->sigma_q.values[0], 0, i, &p);
    for (int64_t k = 0; k < cells_of(o) && status == CGAM_OK; k++) {
        cell c = cell_at(o, &p, i, k);
        if (cgam_interrupted(study->env))
            status = cgam_fail(study->env, CGAM_E_INTERRUPTED, "stopped on request");
        if (status == CGAM_OK) status = run_cell(study, &c, opened, record + k * COUNTS);
        cell_close(study, &c);
    }
    cgam_problem_close(study, &p);
    return status;
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    (void)arg;
    const cgam_study_opts *o = &study->opts;
    const int64_t cells = cells_of(o);
    cgam_study_add(
        study, "cells",
        "Flows and plain iterations from random starts. rested, settled: share of flows, of "
        "iterations, that come to rest; residual: largest residual of p = map(p) at the end "
        "of a flow; rose, climbed: number of flows, of steps, whose energy rises; same: "
        "share of starts from which both end at the same point; limits: number of different "
        "ends of one problem's starts; spread: difference between the energies of its "
        "highest and lowest end; unique: problems with one fixed point by theorem; refuted: "
        "those of them with several ends; loose: every fourth start, used also for flows "
        "with a free query (query_rested, query_rose) and with a free context of positive "
        "margin (context_rested, context_rose). Problems with alpha at or above alpha_crit "
        "are left out.",
        ""
        "alpha,lambda,beta,problems,starts,rested,settled,residual,rose,climbed,same,limits,limits_se,"
        ""
        "limits_iterated,spread,time,iterations,contraction,unique,refuted,loose,query_rested,query_rose,"
        "context_rested,context_rose",
        NULL, cells);
    for (int64_t k = 0; k < cells; k++) {
        cgam_moments limits = {0};
        double sum[COUNTS] = {0}, worst = 0;
        for (int64_t i = 0; i < b->count; i++) {
            const double *one = b->records + i * b->record + k * COUNTS;
            if (one[SUBCRITICAL] == 0) continue;
            for (int j = 0; j < COUNTS; j++) sum[j] += one[j];
            worst = fmax(worst, one[RESIDUAL]);
            cgam_moments_add(&limits, one[LIMITS]);
        }
        cell c = cell_at(o, NULL, 0, k);
        double problems = sum[SUBCRITICAL], starts = problems * (double)o->starts;
        CGAM_STUDY_ROW(study, c.alpha, c.lambda, c.beta, problems, starts, sum[RESTED] / starts,
                       sum[SETTLED] / starts, worst, sum[ROSE], sum[CLIMBED], sum[SAME] / starts,
                       limits.mean, cgam_moments_se(&limits), sum[LIMITS_ITERATED] / problems,
                       sum[SPREAD] / problems, sum[TIME] / sum[RESTED], sum[STEPS] / sum[SETTLED],
                       sum[CONTRACTION] / problems, sum[UNIQUE], sum[REFUTED], sum[LOOSE],
                       sum[QUERY_RESTED] / sum[LOOSE], sum[QUERY_ROSE],
                       sum[CONTEXT_RESTED] / sum[LOOSE], sum[CONTEXT_ROSE]);
    }
    if (study->status == CGAM_OK)
        cgam_table_put(
            study->doc, cgam_study_find(study, "cells"), 0, cells,
            "alpha,lambda,beta,rested,residual,rose,climbed,same,limits,time,iterations,"
            "contraction,unique,refuted,query_rested,query_rose,context_rested,context_rose");
    return study->status;
}

cgam_status cgam_convergence_run(cgam_study *study)
{
    cgam_blocks b = {.count = study->opts.trials,
                     .record = cells_of(&study->opts) * COUNTS,
                     .room = sizeof(room),
                     .open = room_open,
                     .close = room_close,
                     .block = count_block,
                     .tables = make_tables};
    return cgam_blocks_run(study, &b);
}

cgam_status cgam_convergence_trial(cgam_study *study, int64_t trial, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    room w = {0};
    cgam_problem p = {0};
    json_t *list = json_array();
    cgam_status status = room_open(study, NULL, &w);
    if (status == CGAM_OK)
        status =
            cgam_problem_open(study, CGAM_STREAM_CONVERGENCE, o->sigma_q.values[0], 0, trial, &p);
    if (status == CGAM_OK) cgam_problem_put(&p, doc);
    for (int64_t k = 0; k < cells_of(o) && status == CGAM_OK; k++) {
        cell c = cell_at(o, &p, trial, k);
        double record[COUNTS] = {0};
        json_t *one = json_object();
        w.shown = json_array();
        status = run_cell(study, &c, &w, record);
        cgam_json_add(one, "alpha=%g lambda=%g beta=%g limits=%jd unique?=%d starts=%p", c.alpha,
                      c.lambda, c.beta, (intmax_t)record[LIMITS], record[UNIQUE] > 0, w.shown);
        json_array_append_new(list, one);
        cell_close(study, &c);
    }
    cgam_json_put(doc, "cells", list);
    cgam_problem_close(study, &p);
    room_close(study, NULL, &w);
    return status;
}
