/* batch_coupled.c: the coupled recall (coupled.c) of many queries at once, as products of matrices.
 *
 * Plain iteration with the steps in f32, and nothing lost by it. Around a reference (p0, r0) with
 * r0 = a + lambda^2 A^-1 p0 in double, a step is
 *
 *     r = r0 + lambda^2 A^-1 delta,   delta = p - p0,   A^-1 delta = dinv (delta - Z t),
 *
 * t from g = Z' (dinv delta): only delta passes through f32, so its relative rounding is what
 * counts. At first p0 = 0. Once a query moves by no more than the noise of its delta, or by no more
 * than the tolerance, it makes one step in double, which is judged as a step of coupled.c is, and
 * whose p becomes the next reference: each reference gains six digits.
 *
 * In a pass e = exp(beta r - lse before); the true p is e times a factor close to one, known after
 * it: c = 1 / sum e. Hence g is gathered for e - p0 and put right by c g + (c - 1) Z' (dinv p0).
 *
 * Queries that would need more than that (a leap of the scores, slow contraction that Newton
 * shortens) are given back to the one-by-one path. */
#include "memory/batch_coupled.h"

#include "num/pass.h"

#include <math.h>
#include <string.h>

enum { QUERIES_MIN = 8, MOST = CGAM_PASS_WIDTH, SLOW = 60 };
static const double SIZE_MIN = 0x1p18;
static const double LEAP = 60;       /* beta r - lse beyond which f32 would overflow */
static const double NOISE = 0x1p-20; /* of a step in f32, relative to its delta */

/* One query on its way. Its moment's r is r0, s is p0; p is e of the last pass times `factor`. */
typedef struct way {
    cgam_moment *m;
    double factor;
    double *g;           /* [d] Z' (dinv delta) */
    double *g0;          /* [d] Z' (dinv p0) */
    double spread, best; /* sum |delta|, least change */
    double noise;        /* of the last energy */
    int64_t since;
    bool wide; /* the next step is in double */
    bool done, back;
} way;

/* What a chunk gathers of one query. */
typedef struct gathered {
    double sum, feedback, largest, peak, spread, leap;
} gathered;

typedef enum kind { STEP, GATHER, EXACT } kind;

typedef struct pass {
    const cgam_recall *plan;
    kind kind;
    int64_t count;
    way **ways;     /* [count] */
    gathered *part; /* [chunks, count] */
    double *edges;  /* [count, border rows] (A^-1 delta) of the border */
    cgam_pass pass;
    double *room; /* [chunks, 4, tile] */
} pass;

bool cgam_coupled_batches(const cgam_recall *plan, int64_t count)
{
    const cgam_rows *Z = &plan->bank->Z;
    return plan->opts.mode == CGAM_COUPLED && plan->streams && !plan->refines && !plan->twins &&
           count >= QUERIES_MIN && (double)Z->n * (double)Z->d >= SIZE_MIN;
}

static void column_get(const cgam_pass *s, const cgam_pass_tile *t, int64_t v, double *x)
{
    if (s->wide)
        for (int64_t r = 0; r < t->count; r++) x[r] = ((const double *)t->S)[r * s->width + v];
    else
        for (int64_t r = 0; r < t->count; r++) x[r] = ((const float *)t->S)[r * s->width + v];
}

static void column_set(const cgam_pass *s, const cgam_pass_tile *t, int64_t v, const double *x)
{
    if (s->wide)
        for (int64_t r = 0; r < t->count; r++) ((double *)t->S)[r * s->width + v] = x[r];
    else
        for (int64_t r = 0; r < t->count; r++) ((float *)t->S)[r * s->width + v] = (float)x[r];
}

/* Border rows of a tile: x gets what the small system says of A^-1 delta. */
static void put_border(const pass *ps, const cgam_pass_tile *t, int64_t v, double *x)
{
    const int64_t *border;
    int64_t edge = cgam_dplr_border(ps->plan->gate->A, &border);
    for (int64_t k = 0; k < edge; k++)
        if (border[k] >= t->begin && border[k] < t->begin + t->count)
            x[border[k] - t->begin] = ps->edges[v * edge + k];
}

static void step_column(const pass *ps, const cgam_pass_tile *t, int64_t v, gathered *sums,
                        double *x)
{
    way *w = ps->ways[v];
    const cgam_kernels *kernels = ps->plan->bank->Z.kernels;
    const double *D = cgam_dplr_dinv(ps->plan->gate->A) + t->begin, *a = w->m->a + t->begin;
    double *p = w->m->p + t->begin, *p0 = w->m->s + t->begin, *r0 = w->m->r + t->begin;
    double beta = ps->plan->opts.beta, l2 = ps->plan->opts.lambda * ps->plan->opts.lambda;
    double feedback = 0, sum = 0, largest = 0, peak = 0, spread = 0, factor = w->factor;
    double *e = x + ps->pass.tile;
    column_get(&ps->pass, t, v, x);
    for (int64_t r = 0; r < t->count; r++) {
        p[r] *= factor;
        x[r] = D[r] * (p[r] - p0[r] - x[r]);
    }
    put_border(ps, t, v, x);
    for (int64_t r = 0; r < t->count; r++) {
        double score = r0[r] + l2 * x[r];
        feedback += p[r] * (score - a[r]);
        e[r] = beta * score - w->m->lse;
    }
    double top = kernels->largest(e, t->count);
    sums->leap = fmax(sums->leap, top);
    kernels->exp(e, t->count, e);
    for (int64_t r = 0; r < t->count; r++) {
        double step = fabs(e[r] - p[r]), delta = e[r] - p0[r];
        sum += e[r];
        largest = step > largest ? step : largest;
        peak = e[r] > peak ? e[r] : peak;
        spread += fabs(delta);
        x[r] = D[r] * delta;
        p[r] = e[r];
    }
    column_set(&ps->pass, t, v, x);
    sums->feedback += feedback;
    sums->sum += sum;
    sums->spread += spread;
    sums->largest = fmax(sums->largest, largest);
    sums->peak = fmax(sums->peak, peak);
}

static void weigh(void *arg, cgam_pass_tile *t)
{
    pass *ps = arg;
    double *x = ps->room + t->chunk * 2 * ps->pass.tile;
    const double *D = cgam_dplr_dinv(ps->plan->gate->A) + t->begin;
    double l2 = ps->plan->opts.lambda * ps->plan->opts.lambda;
    for (int64_t v = 0; v < ps->count; v++) {
        way *w = ps->ways[v];
        const double *p = w->m->p + t->begin, *p0 = w->m->s + t->begin, *a = w->m->a + t->begin;
        double *score = w->m->r + t->begin;
        switch (ps->kind) {
        case STEP: step_column(ps, t, v, &ps->part[t->chunk * ps->count + v], x); break;
        case GATHER:
            for (int64_t r = 0; r < t->count; r++) x[r] = D[r] * (p[r] - p0[r]);
            column_set(&ps->pass, t, v, x);
            break;
        case EXACT:
            column_get(&ps->pass, t, v, x);
            for (int64_t r = 0; r < t->count; r++) x[r] = D[r] * (p[r] - x[r]);
            put_border(ps, t, v, x);
            for (int64_t r = 0; r < t->count; r++) score[r] = a[r] + l2 * x[r];
            break;
        }
    }
    for (int64_t r = 0; ps->kind == GATHER && r < t->count; r++)
        for (int64_t v = ps->count; v < ps->pass.width; v++) {
            if (ps->pass.wide) ((double *)t->S)[r * ps->pass.width + v] = 0;
            else ((float *)t->S)[r * ps->pass.width + v] = 0;
        }
}

/* One pass for some ways; X [count, d] what to score or NULL, Y[v] where the sums go or NULL. */
static cgam_status run_pass(pass *ps, bool wide, const double *X, double *const *Y)
{
    cgam_env *env = ps->plan->bank->env;
    ps->pass = (cgam_pass){.env = env,
                           .Z = &ps->plan->bank->Z,
                           .wide = wide,
                           .vectors = ps->count,
                           .X = X,
                           .reads = Y != NULL,
                           .weigh = weigh,
                           .arg = ps};
    cgam_status status = cgam_pass_new(&ps->pass);
    int64_t parts = ps->pass.chunks * ps->count;
    double *ones = NULL;
    ps->part = cgam_zalloc(env, (size_t)parts, sizeof *ps->part);
    ps->room = cgam_alloc(env, (size_t)(2 * ps->pass.chunks * ps->pass.tile), sizeof *ps->room);
    ones = cgam_alloc(env, (size_t)parts, sizeof *ones);
    if (status == CGAM_OK && (!ps->part || !ps->room || !ones))
        status = cgam_fail_nomem(env, "a pass over the bank");
    if (status == CGAM_OK) status = cgam_pass_run(&ps->pass);
    for (int64_t k = 0; k < parts && status == CGAM_OK; k++) ones[k] = 1;
    if (status == CGAM_OK && Y) status = cgam_pass_join(&ps->pass, ones, Y);
    for (int64_t c = 1; c < ps->pass.chunks && status == CGAM_OK; c++)
        for (int64_t v = 0; v < ps->count; v++) {
            gathered *all = &ps->part[v], *one = &ps->part[c * ps->count + v];
            all->sum += one->sum;
            all->feedback += one->feedback;
            all->spread += one->spread;
            all->largest = fmax(all->largest, one->largest);
            all->peak = fmax(all->peak, one->peak);
            all->leap = fmax(all->leap, one->leap);
        }
    cgam_pass_free(&ps->pass);
    cgam_free(env, ps->room);
    cgam_free(env, ones);
    return status;
}

/* t [count, d] and the border's A^-1 delta from g[v] and delta of the border rows. */
static cgam_status solve_small(pass *ps, const cgam_dplr_many *M, double *const *g, double *t)
{
    const cgam_dplr *A = ps->plan->gate->A;
    const int64_t *border;
    int64_t d = ps->plan->bank->Z.d, edge = cgam_dplr_border(A, &border);
    for (int64_t v = 0; v < ps->count; v++) {
        const way *w = ps->ways[v];
        memcpy(t + v * d, g[v], (size_t)d * sizeof *t);
        for (int64_t k = 0; k < edge; k++) {
            double p = w->m->p[border[k]] * w->factor;
            ps->edges[v * edge + k] = ps->kind == STEP ? p - w->m->s[border[k]] : p;
        }
    }
    return cgam_dplr_many_reduce(M, ps->count, t, ps->edges, t, ps->edges);
}

static double step_noise(const cgam_recall *plan, const way *w, double largest_dinv)
{
    double l2 = plan->opts.lambda * plan->opts.lambda;
    return NOISE * l2 * largest_dinv * w->spread;
}

/* Books a step from p to the p of lse, which changed by `change`. Returns true at the end. */
static bool book(const cgam_recall *plan, way *w, double energy, double change, double noise)
{
    cgam_moment *m = w->m;
    double before = m->change;
    m->change = change;
    m->iterations++;
    m->energy_rise = fmax(m->energy_rise, energy - m->energy_end - noise - w->noise);
    m->energy_end = energy;
    w->noise = noise;
    if (before > 0 && change > 0) {
        double ratio = change / before;
        m->rate = m->rate > 0 ? sqrt(m->rate * ratio) : ratio;
    }
    if (change < w->best) {
        w->best = change;
        w->since = m->iterations;
    }
    if (plan->opts.plain || !(m->rate < 1) || m->iterations < 12) return false;
    w->back = log(plan->opts.tol / change) / log(m->rate) > SLOW;
    return w->back;
}

/* A step in f32 for some ways. */
static cgam_status step(pass *ps, const cgam_dplr_many *M, double *t, double largest_dinv)
{
    const cgam_recall *plan = ps->plan;
    double *g[MOST], beta = plan->opts.beta;
    int64_t d = plan->bank->Z.d;
    ps->kind = STEP;
    for (int64_t v = 0; v < ps->count; v++) g[v] = ps->ways[v]->g;
    cgam_status status = solve_small(ps, M, g, t);
    if (status == CGAM_OK) status = run_pass(ps, false, t, g);
    for (int64_t v = 0; v < ps->count && status == CGAM_OK; v++) {
        way *w = ps->ways[v];
        cgam_moment *m = w->m;
        const gathered *sums = &ps->part[v];
        double c = 1 / sums->sum, noise = step_noise(plan, w, largest_dinv);
        if (!isfinite(c) || !(sums->leap < LEAP)) {
            w->back = w->done = true;
            continue;
        }
        w->factor = c;
        m->lse += log(sums->sum);
        for (int64_t j = 0; j < d; j++) w->g[j] = c * w->g[j] + (c - 1) * w->g0[j];
        double energy = 0.5 * sums->feedback - m->half_us0 - m->lse / beta;
        double change = sums->largest + fabs(c - 1) * sums->peak;
        w->done = book(plan, w, energy, change, noise);
        w->spread = c * sums->spread + fabs(c - 1);
        noise = beta * sums->peak * c * step_noise(plan, w, largest_dinv);
        w->wide = change <= fmax(plan->opts.tol, noise) || m->iterations + 1 >= plan->opts.max_iter;
    }
    cgam_free(plan->bank->env, ps->part);
    return status;
}

/* A step in double for some ways: p becomes the reference, and the softmax of its r the next p. */
static cgam_status step_exactly(pass *ps, const cgam_dplr_many *M, double *t)
{
    const cgam_recall *plan = ps->plan;
    double *g[MOST], *g0[MOST], tol = plan->opts.tol;
    int64_t n = plan->bank->Z.n;
    for (int64_t v = 0; v < ps->count; v++) {
        way *w = ps->ways[v];
        for (int64_t i = 0; i < n; i++) w->m->p[i] *= w->factor;
        w->factor = 1;
        memset(w->m->s, 0, (size_t)n * sizeof *w->m->s);
        g[v] = w->g;
        g0[v] = w->g0;
    }
    ps->kind = GATHER;
    cgam_status status = run_pass(ps, true, NULL, g0);
    cgam_free(plan->bank->env, ps->part);
    ps->kind = EXACT;
    if (status == CGAM_OK) status = solve_small(ps, M, g0, t);
    if (status == CGAM_OK) status = run_pass(ps, true, t, NULL);
    if (status == CGAM_OK) cgam_free(plan->bank->env, ps->part);
    for (int64_t v = 0; v < ps->count && status == CGAM_OK; v++) {
        way *w = ps->ways[v];
        cgam_moment *m = w->m;
        double feedback = 0, largest = 0, squares = 0, spread = 0;
        memcpy(m->s, m->p, (size_t)n * sizeof *m->s);
        bool finite = cgam_moment_softmax(plan, m);
        for (int64_t i = 0; i < n; i++) {
            double move = fabs(m->p[i] - m->s[i]);
            feedback += m->s[i] * (m->r[i] - m->a[i]);
            largest = fmax(largest, move);
            squares += move * move;
            spread += move;
        }
        double energy = 0.5 * feedback - m->half_us0 - m->lse / plan->opts.beta;
        m->change_norm = sqrt(squares);
        w->spread = spread;
        w->done = book(plan, w, energy, largest, 0);
        double noise = 64 * plan->opts.beta * 0x1p-53 * (fabs(m->lse) / plan->opts.beta + 1);
        bool stalled = m->iterations - w->since > SLOW && largest <= noise;
        m->end = !finite                                ? CGAM_END_DIVERGED
                 : largest <= tol                       ? CGAM_END_CONVERGED
                 : m->iterations >= plan->opts.max_iter ? CGAM_END_MAX_ITER
                                                        : CGAM_END_STALLED;
        if (!finite || largest <= tol || stalled || m->iterations >= plan->opts.max_iter) {
            w->done = true;
            w->back = false;
        }
        w->wide = false;
    }
    if (status != CGAM_OK) return status;
    int64_t kept = 0;
    for (int64_t v = 0; v < ps->count; v++)
        if (!ps->ways[v]->done) ps->ways[kept++] = ps->ways[v];
    ps->count = kept;
    for (int64_t v = 0; v < kept; v++) g[v] = ps->ways[v]->g;
    ps->kind = GATHER;
    if (kept) status = run_pass(ps, false, NULL, g);
    if (kept) cgam_free(plan->bank->env, ps->part);
    return status;
}

static cgam_status begin(pass *ps, way *all)
{
    const cgam_recall *plan = ps->plan;
    int64_t n = plan->bank->Z.n;
    double *g[MOST];
    int64_t kept = 0;
    for (int64_t v = 0; v < ps->count; v++) {
        way *w = &all[v];
        cgam_moment *m = w->m;
        memcpy(m->r, m->a, (size_t)n * sizeof *m->r);
        memset(m->s, 0, (size_t)n * sizeof *m->s);
        bool finite = cgam_moment_softmax(plan, m);
        m->energy_start = m->energy_end = -m->half_us0 - m->lse / plan->opts.beta;
        w->factor = w->spread = 1;
        w->best = INFINITY;
        w->wide = plan->opts.max_iter == 1;
        w->done = w->back = !finite;
        if (!finite) continue;
        g[kept] = w->g;
        ps->ways[kept++] = w;
    }
    ps->count = kept;
    ps->kind = GATHER;
    cgam_status status = kept ? run_pass(ps, false, NULL, g) : CGAM_OK;
    if (kept) cgam_free(plan->bank->env, ps->part);
    return status;
}

static cgam_status iterate(pass *ps, way *all, int64_t count, const cgam_dplr_many *M, double *t,
                           double largest_dinv)
{
    cgam_status status = CGAM_OK;
    for (bool more = true; more && status == CGAM_OK;) {
        more = false;
        for (int wide = 0; wide < 2 && status == CGAM_OK; wide++) {
            if (cgam_interrupted(ps->plan->bank->env)) return CGAM_E_INTERRUPTED;
            ps->count = 0;
            for (int64_t v = 0; v < count; v++)
                if (!all[v].done && all[v].wide == (wide == 1)) ps->ways[ps->count++] = &all[v];
            if (ps->count == 0) continue;
            more = true;
            status = wide ? step_exactly(ps, M, t) : step(ps, M, t, largest_dinv);
        }
    }
    return status;
}

cgam_status cgam_coupled_batch(const cgam_recall *plan, int64_t count, cgam_moment *m,
                               int64_t *back, int64_t *given_back)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d;
    int64_t edge = cgam_dplr_border(plan->gate->A, NULL);
    const double *D = cgam_dplr_dinv(plan->gate->A);
    way all[MOST], *ways[MOST];
    cgam_dplr_many *M = NULL;
    pass ps = {.plan = plan, .ways = ways, .count = count};
    double largest = 0, lambda = plan->opts.lambda;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(D[i]));
    double *room = cgam_zalloc(env, (size_t)(3 * count * d), sizeof *room);
    ps.edges = cgam_alloc(env, (size_t)(count * edge) + 1, sizeof *ps.edges);
    cgam_status status = CGAM_OK;
    if (!room || !ps.edges) status = cgam_fail_nomem(env, "a batch of coupled recalls");
    if (status == CGAM_OK) status = cgam_dplr_many_new(plan->gate->A, &M);
    for (int64_t v = 0; v < count; v++)
        all[v] = (way){.m = &m[v], .g = room + v * d, .g0 = room + (count + v) * d};
    if (status == CGAM_OK) status = begin(&ps, all);
    if (status == CGAM_OK) status = iterate(&ps, all, count, M, room + 2 * count * d, largest);
    *given_back = 0;
    for (int64_t v = 0; v < count && status == CGAM_OK; v++) {
        cgam_moment *x = &m[v];
        if (all[v].back) {
            back[(*given_back)++] = v;
            x->iterations = x->newton_steps = x->newton_after = 0;
            x->change = x->change_norm = x->rate = x->energy_rise = 0;
            continue;
        }
        for (int64_t i = 0; i < n; i++) x->s[i] = x->s0[i] + (x->r[i] - x->a[i]) / lambda;
    }
    cgam_dplr_many_free(M);
    cgam_free(env, room);
    cgam_free(env, ps.edges);
    return status;
}
