/* coupled_together.c: the coupled recall (coupled.c) of many queries at once, as products of matrices.
 *
 * Plain iteration with steps in f32, without loss of accuracy. A reference is a step in double, from p_old with its
 * scores r_new = a + lambda^2 A^-1 p_old to p_new = softmax(beta r_new). With p1 and p2 for p_old and p_new, from
 * there
 *
 *     r = r_new + lambda^2 A^-1 delta,   delta = p - p1,   A^-1 delta = dinv (delta - Z t),
 *     next p = p2 exp(y) / sum p2 exp(y),   y = beta lambda^2 A^-1 delta,
 *
 * t from g = Z' (dinv delta). Only delta, y and p2 (exp(y) - 1) are computed in f32. All of them shrink with the
 * distance from the reference, so only their relative rounding matters. At first p1 = 0. Once no query moves by more
 * than the noise of its delta, or by more than the tolerance, all make a step in double, which is judged like a step
 * of coupled.c and becomes the next reference: each gains six digits.
 *
 * Inside a pass the sum is not known yet. The pass computes delta' = p2 exp(y) - p1; the true delta is c delta' + (c
 * - 1) p1 with c = 1 / sum p2 exp(y), and so is the true g of that of delta' and of g1 = Z' (dinv p1).
 *
 * Equal memories are levelled at every reference (queries with a start, which might treat them differently, are not
 * solved here). Between two references, a difference that rounding makes grows by at most beta lambda^2 p dinv a
 * step, p their probability; queries where that is not well below one are left over.
 *
 * Scores that leap, by more than f32 can hold as exp(y), wait for the next step in double, which starts from p2.
 * Queries that leap repeatedly, or contract so slowly that Newton is faster, are left over too. At the end coupled.c
 * solves the queries left over. */
#include "memory/certify.h"
#include "memory/couple.h"
#include "memory/engines.h"
#include "num/gemm_pass.h"
#include "num/pass.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { MOST = CGAM_RECALL_GROUP, SLOW = 60, PATIENCE = 8, LEAPS = 16 };
static const double LEAP = 60;       /* y above which f32 would overflow, */
static const double FAR = 15;        /* and above which a new reference is computed */
static const double NOISE = 0x1p-20; /* of a step in f32, relative to its delta */
/* Smaller weights are left to the steps in double, which judge: such a weight moves a step in f32 by N 2^-80, and its
 * products with y and with rows would be subnormal in f32, which is slow. */
static const double NOTHING = 0x1p-80;

/* A query of the batch; x has the last reference. */
typedef struct member {
    cgam_iterating x;
    double *g, *g1; /* [d] Z' (dinv delta), Z' (dinv p1) */
    double factor;  /* c of the last pass */
    bool ready;     /* done with this reference: waits for the other queries */
    bool done;
    bool leapt;    /* since the reference: its next p1 is p2 */
    int64_t leaps; /* in total */
    bool parts;    /* left over: equal memories may separate */
    bool slow;     /* left over: converges slowly */
} member;

/* The sums of one query over some rows in a step. */
typedef struct gathered {
    double gain, largest, peak, spread, leap;
} gathered;

static void add_gathered(gathered *all, gathered one)
{
    all->gain += one.gain;
    all->spread += one.spread;
    all->largest = fmax(all->largest, one.largest);
    all->peak = fmax(all->peak, one.peak);
    all->leap = fmax(all->leap, one.leap);
}

typedef enum kind { STEP, GATHER, GATHER_EXACTLY, EXACT } kind;

typedef struct batch {
    const cgam_recall *plan;
    member *all;           /* the queries, and */
    cgam_settled *settled; /* the results */
    int64_t count;         /* queries not finished */
    member *members[MOST];
    kind kind;
    bool stepped;                /* p has moved on from p2 since the reference */
    bool far;                    /* a query is far from the reference */
    cgam_gemm_pass narrow, wide; /* in f32 and in double, of the same width */
    float *block;                /* storage of: */
    float *state;           /* [n, 3, width] p2, kappa = p2 - p1, and delta' of the last pass */
    float factor[2 * MOST]; /* [2, width] c of that pass, and c - 1, for each query */
    double *t;              /* [count, d] */
    double *edges;          /* [count, border rows] (A^-1 delta) of the border */
} batch;

/* ---- Inside a pass -------------------------------------------------------------------------- */

/* Index of the tile's next border row, relative to its begin; t->count if there is none. */
static int64_t border_in(const batch *b, const cgam_gemm_pass_tile *t, int64_t *k)
{
    const int64_t *border;
    int64_t edge = cgam_dplr_border(b->plan->gate->A, &border);
    while (*k < edge && border[*k] < t->begin) ++*k;
    return *k < edge && border[*k] < t->begin + t->count ? border[*k] - t->begin : t->count;
}

static void step_rows(const batch *b, const cgam_gemm_pass_tile *t, int64_t from, int64_t rows,
                      const double *dinv, gathered *part)
{
    int64_t width = b->narrow.width;
    double gain = b->plan->opts.beta * b->plan->opts.lambda * b->plan->opts.lambda;
    float stats[CGAM_COUPLE_STATS * MOST];
    if (rows <= 0) return;
    cgam_couple_of(b->plan->bank->Z.cpu)(rows, width, (float *)t->S + from * width,
                                         b->state + 3 * (t->begin + from) * width, dinv, gain,
                                         b->factor, stats);
    for (int64_t v = 0; v < b->count; v++)
        add_gathered(&part[v], (gathered){.gain = (double)stats[v],
                                          .spread = (double)stats[width + v],
                                          .largest = (double)stats[2 * width + v],
                                          .peak = (double)stats[3 * width + v],
                                          .leap = (double)stats[4 * width + v]});
}

/* Border rows get A^-1 delta from the small system; the rows between them are processed together. */
static void step_tile(const batch *b, cgam_gemm_pass_tile *t)
{
    const double *dinv = cgam_dplr_dinv(b->plan->gate->A) + t->begin;
    int64_t edge = cgam_dplr_border(b->plan->gate->A, NULL), k = 0;
    gathered *part = t->note; /* [count] */
    for (int64_t from = 0; from < t->count;) {
        int64_t stop = border_in(b, t, &k);
        step_rows(b, t, from, stop - from, dinv + from, part);
        if (stop == t->count) break;
        float *S = (float *)t->S + stop * b->narrow.width;
        for (int64_t v = 0; v < b->count; v++) S[v] = (float)b->edges[v * edge + k];
        step_rows(b, t, stop, 1, NULL, part);
        from = stop + 1;
        k++;
    }
}

/* Weights dinv delta, in f32. */
static void gather_tile(const batch *b, cgam_gemm_pass_tile *t)
{
    const double *dinv = cgam_dplr_dinv(b->plan->gate->A) + t->begin;
    int64_t width = b->narrow.width;
    const float *delta = b->state + (3 * t->begin + 2) * width;
    float *S = t->S;
    for (int64_t r = 0; r < t->count; r++)
        for (int64_t v = 0; v < width; v++)
            S[r * width + v] = (float)dinv[r] * delta[3 * r * width + v];
}

/* Ends the f32 steps: computes the new p1 in double, and the weights dinv p1. */
static void gather_exactly(const batch *b, cgam_gemm_pass_tile *t)
{
    const double *dinv = cgam_dplr_dinv(b->plan->gate->A) + t->begin;
    int64_t width = b->wide.width;
    double *S = t->S;
    memset(S, 0, (size_t)(t->count * width) * sizeof *S);
    for (int64_t v = 0; v < b->count; v++) {
        const float *delta = b->state + (3 * t->begin + 2) * width + v;
        const double *p2 = b->members[v]->x.p_new + t->begin;
        double *p1 = b->members[v]->x.p_old + t->begin, c = b->members[v]->factor;
        bool stepped = b->stepped && !b->members[v]->leapt;
        for (int64_t r = 0; r < t->count; r++) {
            p1[r] = stepped ? fmax(0, c * (p1[r] + (double)delta[3 * r * width])) : p2[r];
            S[r * width + v] = dinv[r] * p1[r];
        }
    }
}

/* Computes r1 from the scores with t. */
static void score_exactly(const batch *b, cgam_gemm_pass_tile *t)
{
    const cgam_recall *plan = b->plan;
    const double *dinv = cgam_dplr_dinv(plan->gate->A) + t->begin, *S = t->S;
    int64_t width = b->wide.width, edge = cgam_dplr_border(plan->gate->A, NULL);
    double l2 = plan->opts.lambda * plan->opts.lambda;
    for (int64_t v = 0; v < b->count; v++) {
        const cgam_iterating *x = &b->members[v]->x;
        const double *p1 = x->p_old + t->begin, *a = x->in.a + t->begin;
        double *r1 = x->r_new + t->begin;
        for (int64_t r = 0; r < t->count; r++)
            r1[r] = a[r] + l2 * dinv[r] * (p1[r] - S[r * width + v]);
        int64_t k = 0;
        for (int64_t r = border_in(b, t, &k); r < t->count; k++, r = border_in(b, t, &k))
            r1[r] = a[r] + l2 * b->edges[v * edge + k];
    }
}

typedef void weigher(const batch *b, cgam_gemm_pass_tile *t);
static weigher *const weighers[] = {
    [STEP] = step_tile,
    [GATHER] = gather_tile,
    [GATHER_EXACTLY] = gather_exactly,
    [EXACT] = score_exactly,
};

static void weigh_tile(void *arg, cgam_gemm_pass_tile *t)
{
    const batch *b = arg;
    weighers[b->kind](b, t);
}

/* ---- Passes --------------------------------------------------------------------------------- */

static void passes_free(batch *b)
{
    cgam_env *env = b->plan->bank->env;
    void *blocks[] = {b->block, b->t, b->edges};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) cgam_free(env, blocks[k]);
    b->block = b->state = NULL;
    b->t = b->edges = NULL;
    cgam_gemm_pass_free(&b->narrow);
    cgam_gemm_pass_free(&b->wide);
}

/* Makes the passes for the queries not finished. */
static cgam_status passes_new(batch *b)
{
    cgam_env *env = b->plan->bank->env;
    const cgam_rows *Z = &b->plan->bank->Z;
    size_t count = (size_t)b->count, edge = (size_t)cgam_dplr_border(b->plan->gate->A, NULL);
    b->t = cgam_zalloc(env, count * (size_t)Z->d, sizeof *b->t);
    b->edges = cgam_alloc(env, count * edge + 1, sizeof *b->edges);
    if (!b->t || !b->edges) return cgam_fail_nomem(env, "a batch of coupled recalls");
    b->narrow = (cgam_gemm_pass){.env = env,
                                 .Z = Z,
                                 .vectors = b->count,
                                 .X = b->t,
                                 .reads = true,
                                 .weigh = weigh_tile,
                                 .arg = b};
    b->wide = b->narrow;
    b->wide.wide = true;
    b->narrow.notes = count * sizeof(gathered);
    cgam_status status = cgam_gemm_pass_new(&b->narrow);
    if (status == CGAM_OK) status = cgam_gemm_pass_new(&b->wide);
    if (status != CGAM_OK) return status;
    size_t row = 3 * (size_t)b->narrow.width, before = (size_t)cgam_vec_begin(Z) * row;
    b->block = cgam_zalloc(env, (size_t)cgam_vec_size(Z) * row, sizeof *b->block);
    if (!b->block) return cgam_fail_nomem(env, "a batch of coupled recalls");
    b->state = (float *)((uintptr_t)b->block - before * sizeof *b->block);
    b->narrow.state = b->state;
    b->narrow.state_row = (int64_t)(row * sizeof *b->state);
    return CGAM_OK;
}

/* One pass. X [count, d]: the vectors to score, or NULL; Y[v]: where the sums go, or NULL. */
static cgam_status pass_over(batch *b, kind what, const double *X, double *const *Y)
{
    cgam_gemm_pass *pass = what == STEP || what == GATHER ? &b->narrow : &b->wide;
    b->kind = what;
    pass->X = X;
    pass->reads = Y != NULL;
    cgam_gemm_pass_load(pass);
    cgam_status status = cgam_gemm_pass_run(pass);
    if (status == CGAM_OK && Y) status = cgam_gemm_pass_join(pass, NULL, Y);
    return status;
}

/* Computes t and the border's A^-1 x from g[v] and x on the border: delta, or p1. */
static cgam_status solve_small(batch *b, double *const *g, bool of_delta)
{
    const int64_t *border;
    int64_t d = b->plan->bank->Z.d, edge = cgam_dplr_border(b->plan->gate->A, &border);
    int64_t width = b->narrow.width;
    const cgam_rows *Z = &b->plan->bank->Z;
    for (int64_t v = 0; v < b->count; v++) {
        const member *w = b->members[v];
        memcpy(b->t + v * d, g[v], (size_t)d * sizeof *b->t);
        for (int64_t k = 0; k < edge; k++) {
            if (!cgam_vec_has(Z, border[k])) continue;
            double p1 = w->x.p_old[border[k]],
                   delta = (double)b->state[(3 * border[k] + 2) * width + v];
            b->edges[v * edge + k] = of_delta ? w->factor * delta + (w->factor - 1) * p1 : p1;
        }
        cgam_status status = cgam_rows_pick(Z, edge, border, 1, b->edges + v * edge);
        if (status != CGAM_OK) return status;
    }
    return cgam_dplr_inverse_reduce(b->plan->small, b->count, of_delta, b->t, b->edges, b->t,
                                    b->edges);
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/* Counts a step that changed p by `change`, and notes whether the query should be solved alone. */
static void count_step(const cgam_recall *plan, member *w, double change)
{
    const cgam_trace *trace = &w->x.trace;
    cgam_iterating_count(&w->x, change);
    if (plan->opts.plain || !(trace->rate < 1) || trace->iterations < 12) return;
    w->slow = log(plan->opts.tol / change) / log(trace->rate) > SLOW;
}

/* A step in f32 for all queries. */
static cgam_status step_roughly(batch *b)
{
    const cgam_recall *plan = b->plan;
    double *g[MOST], beta = plan->opts.beta, l2 = plan->opts.lambda * plan->opts.lambda;
    int64_t d = plan->bank->Z.d;
    for (int64_t v = 0; v < b->count; v++) {
        g[v] = b->members[v]->g;
        b->factor[v] = (float)b->members[v]->factor;
        b->factor[b->narrow.width + v] = (float)(b->members[v]->factor - 1);
    }
    cgam_status status = solve_small(b, g, true);
    if (status == CGAM_OK) status = pass_over(b, STEP, b->t, g);
    if (status == CGAM_OK) status = cgam_gemm_pass_share(&b->narrow);
    for (int64_t v = 0; v < b->count && status == CGAM_OK; v++) {
        member *w = b->members[v];
        gathered all = {0};
        const gathered *some;
        for (int64_t k = 0; (some = cgam_gemm_pass_noted(&b->narrow, k)); k++)
            add_gathered(&all, some[v]);
        double c = 1 / (1 + all.gain);
        if (!(c > 0 && isfinite(c)) || !(all.leap < LEAP)) {
            w->leapt = true;
            continue;
        }
        b->far = b->far || all.leap > FAR;
        double change = all.largest + fabs(c - w->factor) * all.peak;
        w->factor = c;
        for (int64_t j = 0; j < d; j++) w->g[j] = c * w->g[j] + (c - 1) * w->g1[j];
        if (w->ready || w->leapt) continue;
        count_step(plan, w, change);
        double spread = c * all.spread + fabs(c - 1); /* at least sum |delta| */
        double noise = beta * all.peak * c * NOISE * l2 * plan->can.pivot_max * spread;
        w->ready =
            change <= fmax(plan->opts.tol, noise) || w->x.trace.iterations - w->x.since > SLOW;
    }
    return status;
}

/* Could a difference between equal memories grow? */
static cgam_status twins_part(const cgam_recall *plan, const cgam_iterating *x, bool *part)
{
    double l2b = plan->opts.lambda * plan->opts.lambda * plan->opts.beta, largest = 0;
    cgam_status status = cgam_twins_largest(plan->bank, plan->twins, x->p_new, &largest);
    *part = l2b * plan->can.pivot_max * largest > 0.25;
    return status;
}

/* Decides how a step in double ended. */
static cgam_status judge_step(void *arg, int64_t v)
{
    const batch *b = arg;
    const cgam_recall *plan = b->plan;
    member *w = b->members[v];
    cgam_iterating *x = &w->x;
    cgam_status status = cgam_twins_level(plan->bank, plan->twins, x->r_new);
    if (status != CGAM_OK) return status;
    bool finite = cgam_activate(plan, x->r_new, x->p_new, &x->act), parts = false;
    double feedback, most, squares;
    CGAM_REDUCE(&plan->bank->Z, i, CGAM_SUM(feedback), CGAM_MAX(most), CGAM_SUM(squares)) {
        double move = fabs(x->p_new[i] - x->p_old[i]);
        feedback += x->p_old[i] * (x->r_new[i] - x->in.a[i]);
        most = move > most ? move : most;
        squares += move * move;
    }
    status = cgam_rows_status(&plan->bank->Z);
    if (status == CGAM_OK) status = twins_part(plan, x, &parts);
    if (status != CGAM_OK) return status;
    x->trace.change_norm = sqrt(squares);
    cgam_iterating_energy(x, 0.5 * feedback - x->in.half_us0 - x->act.lse / plan->opts.beta, true);
    count_step(plan, w, fmax(most, 0));
    w->done = cgam_iterating_ends(plan, x, true) || !finite;
    if (!finite) x->trace.end = CGAM_END_DIVERGED;
    if (w->done) w->slow = false;
    if (parts) w->parts = true;
    w->leaps += w->leapt;
    if (w->leaps > LEAPS && !w->done) w->slow = true;
    return CGAM_OK;
}

/* Bounds the rounding error of A^-1 p1 of a finished query; t and the border's entries are still valid. */
static cgam_status doubt_feedback(void *arg, int64_t v)
{
    const batch *b = arg;
    const cgam_recall *plan = b->plan;
    member *w = b->members[v];
    const int64_t *border;
    int64_t edge = cgam_dplr_border(plan->gate->A, &border), d = plan->bank->Z.d;
    if (!w->done || w->parts || plan->opts.certify == CGAM_CERTIFY_NONE) return CGAM_OK;
    double *p1 = cgam_alloc(plan->bank->env, (size_t)edge + 1, sizeof *p1);
    if (!p1) return cgam_fail_nomem(plan->bank->env, "border rows");
    cgam_status status = cgam_vec_pick(&plan->bank->Z, w->x.p_old, edge, border, p1);
    if (status == CGAM_OK)
        status = cgam_doubt_feedback(plan, (double)plan->bank->Z.n, 0, w->g1, p1, b->t + v * d,
                                     b->edges + v * edge, &w->x.feedback);
    cgam_free(plan->bank->env, p1);
    return status;
}

/* A step in double for all queries. */
static cgam_status step_exactly(batch *b)
{
    const cgam_bank *bank = b->plan->bank;
    double *g1[MOST] = {NULL};
    for (int64_t v = 0; v < b->count; v++) g1[v] = b->members[v]->g1;
    cgam_status status = pass_over(b, GATHER_EXACTLY, NULL, g1);
    if (status == CGAM_OK) status = solve_small(b, g1, false);
    if (status == CGAM_OK) status = pass_over(b, EXACT, b->t, NULL);
    if (status == CGAM_OK) status = cgam_rows_each(bank->env, &bank->Z, b->count, judge_step, b);
    if (status == CGAM_OK)
        status = cgam_rows_each(bank->env, &bank->Z, b->count, doubt_feedback, b);
    return status;
}

/* ---- From reference to reference ------------------------------------------------------------ */

static cgam_status lay_rows(void *arg, const cgam_pass_group *group)
{
    const batch *b = arg;
    int64_t width = b->narrow.width;
    for (int64_t i = group->from; i < group->to; i++)
        for (int64_t v = 0; v < b->count; v++) {
            const cgam_iterating *x = &b->members[v]->x;
            double p2 = x->p_new[i], kappa = p2 - x->p_old[i];
            float *state = b->state + 3 * i * width + v;
            state[0] = p2 < NOTHING ? 0 : (float)p2;
            state[width] = state[2 * width] = fabs(kappa) < NOTHING ? 0 : (float)kappa;
        }
    return CGAM_OK;
}

static cgam_status lay_state(batch *b)
{
    cgam_pass pass;
    cgam_status status = cgam_pass_new(b->plan->bank->env, &b->plan->bank->Z, 0, 0, &pass);
    if (status == CGAM_OK) status = cgam_pass_run(&pass, lay_rows, b);
    cgam_pass_free(&pass);
    return status;
}

/* Iterates in f32 from the current reference until it gives nothing more, and computes the next reference. */
static cgam_status advance_reference(batch *b)
{
    const cgam_recall *plan = b->plan;
    double *g[MOST];
    cgam_status status = passes_new(b);
    if (status == CGAM_OK) status = lay_state(b);
    for (int64_t v = 0; v < b->count; v++) {
        g[v] = b->members[v]->g;
        b->members[v]->factor = 1;
        b->members[v]->ready = b->members[v]->leapt = false;
    }
    int64_t made = 0, waited = 0, ready = 0;
    for (int64_t v = 0; v < b->count; v++)
        made = b->members[v]->x.trace.iterations > made ? b->members[v]->x.trace.iterations : made;
    int64_t left = plan->opts.max_iter - made;
    b->stepped = left > 1;
    b->far = false;
    if (status == CGAM_OK && b->stepped) status = pass_over(b, GATHER, NULL, g);
    while (status == CGAM_OK && left-- > 1 && ready < b->count && waited < PATIENCE && !b->far) {
        if (cgam_interrupted(plan->bank->env)) status = CGAM_E_INTERRUPTED;
        cgam_rows_iterates(&plan->bank->Z);
        if (status == CGAM_OK) status = step_roughly(b);
        cgam_rows_iterated(&plan->bank->Z, b->count);
        ready = 0;
        for (int64_t v = 0; v < b->count; v++)
            ready += b->members[v]->ready || b->members[v]->leapt || b->members[v]->slow;
        waited += ready > 0;
    }
    if (status == CGAM_OK) status = step_exactly(b);
    passes_free(b);
    return status;
}

/* The first reference: p1 = 0. */
static cgam_status begin_one(void *arg, int64_t v)
{
    const batch *b = arg;
    member *w = b->members[v];
    const cgam_settled *m = &b->settled[v];
    bool part = false;
    cgam_status status = cgam_iterating_begin(b->plan, m, NULL, b->plan->twins, &w->x);
    if (status != CGAM_OK) return status;
    cgam_vec_fill(&b->plan->bank->Z, w->x.p_old, 0);
    bool finite = w->x.trace.end != CGAM_END_DIVERGED;
    if (finite) status = twins_part(b->plan, &w->x, &part);
    w->parts = !finite || part;
    w->x.together = true;
    w->factor = 1;
    return status;
}

/* Moves the unfinished queries to the front. */
static void drop_finished(batch *b)
{
    int64_t kept = 0;
    for (int64_t v = 0; v < b->count; v++)
        if (!b->members[v]->done && !b->members[v]->parts && !b->members[v]->slow)
            b->members[kept++] = b->members[v];
    b->count = kept;
}

static cgam_status settle_one(void *arg, int64_t v)
{
    const batch *b = arg;
    const member *w = &b->all[v];
    if (!w->parts && !w->slow) b->settled[v] = cgam_iterating_settle(b->plan, &w->x);
    return CGAM_OK;
}

cgam_status cgam_coupled_together(const cgam_recall *plan, int64_t count, cgam_settled *m)
{
    cgam_env *env = plan->bank->env;
    int64_t d = plan->bank->Z.d, left = 0;
    member all[MOST];
    cgam_settled *left_over[MOST];
    batch b = {.plan = plan, .count = count, .all = all, .settled = m};
    double *g = cgam_zalloc(env, (size_t)(2 * count * d), sizeof *g);
    if (!g) return cgam_fail_nomem(env, "a batch of coupled recalls");
    for (int64_t v = 0; v < count; v++) {
        all[v] = (member){.g = g + v * d, .g1 = g + (count + v) * d};
        b.members[v] = &all[v];
    }
    cgam_status status = cgam_rows_each(env, &plan->bank->Z, count, begin_one, &b);
    for (drop_finished(&b); b.count > 0 && status == CGAM_OK; drop_finished(&b))
        status = advance_reference(&b);
    if (status == CGAM_OK) status = cgam_parallel(env, count, settle_one, &b);
    for (int64_t v = 0; v < count; v++)
        if (all[v].parts || all[v].slow) left_over[left++] = &m[v];
    cgam_free(env, g);
    return status == CGAM_OK ? cgam_coupled_solve_listed(plan, left, left_over) : status;
}
