/* landscape.c: see landscape.h.
 *
 * A descent is the plain iteration, which E bounds; it ends at a minimum, or at a saddle if a symmetry holds it
 * there. Newton's steps solve A s = u + lambda p(s) to the last bit, for any critical point. Two ends count as one
 * point if their error bounds overlap. Since E grows at infinity, sum (-1)^index over all its critical points is 1 if
 * none is degenerate, so a missing point is detected. */
#include "base/rng.h"
#include "memory/bank.h"
#include <cgam/recall.h>

#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"

#include <cgam/base.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CORNERS_MAX = 1024, /* starts with all weight on one memory */
    LEADERS_MAX = 6,    /* memories whose pairs, triples and so on are starts */
    RIDGES_MAX = 32,    /* minima between whose pairs a ridge is searched */
    RIDGE_STEPS = 33,
    FIRST_CAPACITY = 16,
};
static const double SAME = 1e-8;     /* |p - p'| below which no error bounds are computed */
static const double SETTLED = 1e-10, /* |p - pi| at which Newton has converged */
    NEAR = 1e-3;                     /* the farthest that Newton may move the end of a descent */

typedef struct search {
    const cgam_recall *plan;
    cgam_scored base; /* the same for all starts */
    int64_t n, leaders, sets, corners;
    int set[1 << LEADERS_MAX]; /* [sets] of two leaders or more, as bits */
    uint64_t seed;
    double *own;    /* [3, n] b, s0, a */
    double *block;  /* [CGAM_ROUTE_SHARE + 1, 3, n] s, r, p of a group, and of Newton */
    double *start;  /* [CGAM_ROUTE_SHARE, n] */
    double *work;   /* [6, n] of Newton, and scratch */
    int64_t *order; /* [corners] memories by falling score */
    int64_t capacity;
    cgam_progress progress;
    cgam_landscape *out;
} search;

cgam_landscape_opts cgam_landscape_opts_default(void)
{
    return (cgam_landscape_opts){.starts = 64};
}

void cgam_landscape_free(cgam_env *env, cgam_landscape *landscape)
{
    cgam_free(env, landscape->points);
    cgam_free(env, landscape->p);
    *landscape = (cgam_landscape){0};
}

/* ---- Starts ------------------------------------------------------------------------------- */
static int64_t count_pairs(int64_t k) { return k * (k - 1) / 2; }

/* Pair number `at` of 0 .. k-1: i < j. */
static void pair_at(int64_t at, int64_t *i, int64_t *j)
{
    for (*j = 1; at >= *j; ++*j) at -= *j;
    *i = at;
}

/* Start k of n weights: softmax(beta a), equal weights, corners, sets of leaders, random ones, which
 * are softmax(g z) of normal z with log g uniform, from nearly flat to nearly a corner. */
static void start_at(const search *x, int64_t k, double *p)
{
    int64_t n = x->n, i;
    double top = -INFINITY, sum = 0;
    memset(p, 0, (size_t)n * sizeof *p);
    if (k == 0) {
        for (i = 0; i < n; i++) top = fmax(top, x->base.a[i]);
        for (i = 0; i < n; i++) sum += p[i] = exp(x->plan->opts.beta * (x->base.a[i] - top));
    } else if (k == 1) {
        for (i = 0; i < n; i++) sum += p[i] = 1;
    } else if ((k -= 2) < x->corners) {
        sum = p[x->order[k]] = 1;
    } else if ((k -= x->corners) < x->sets) {
        for (i = 0; i < x->leaders; i++) sum += p[x->order[i]] = (x->set[k] >> i) & 1;
    } else {
        cgam_rng rng = cgam_rng_stream(x->seed, (uint64_t)(k - x->sets));
        double g = pow(10, 2 * cgam_rng_uniform(&rng) - 1);
        for (i = 0; i < n; i++) top = fmax(top, p[i] = g * cgam_rng_normal(&rng));
        for (i = 0; i < n; i++) sum += p[i] = exp(p[i] - top);
    }
    for (i = 0; i < n; i++) p[i] /= sum;
}

/* ---- Points ------------------------------------------------------------------------------- */
static double distance(int64_t n, const double *p, const double *q)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (p[i] - q[i]) * (p[i] - q[i]);
    return sqrt(squares);
}

/* The point nearest to p; -1 if there is no point yet. */
static int64_t nearest_point(const search *x, const double *p, double *apart)
{
    int64_t best = -1;
    *apart = INFINITY;
    for (int64_t k = 0; k < x->out->count; k++) {
        double d = distance(x->n, p, x->out->p + k * x->n);
        if (d < *apart) *apart = d, best = k;
    }
    return best;
}

static cgam_status grow_points(search *x)
{
    cgam_landscape *out = x->out;
    cgam_env *env = x->plan->bank->env;
    if (out->count < x->capacity) return CGAM_OK;
    int64_t capacity = x->capacity ? 2 * x->capacity : FIRST_CAPACITY, n = x->n;
    cgam_point *points = cgam_zalloc(env, (size_t)capacity, sizeof *points);
    double *p = cgam_alloc(env, (size_t)(capacity * n), sizeof *p);
    if (!points || !p) {
        cgam_free(env, points);
        cgam_free(env, p);
        return cgam_fail_nomem(env, "the points of a landscape: fewer starts need less");
    }
    if (out->points && out->p) {
        memcpy(points, out->points, (size_t)out->count * sizeof *points);
        memcpy(p, out->p, (size_t)(out->count * n) * sizeof *p);
    }
    cgam_free(env, out->points);
    cgam_free(env, out->p);
    out->points = points;
    out->p = p;
    x->capacity = capacity;
    return CGAM_OK;
}

/* The number of negative eigenvalues of the Hessian at p; -1: it is singular to working precision. */
static cgam_status index_at(const search *x, const double *p, int64_t *index)
{
    const cgam_recall_opts *o = &x->plan->opts;
    cgam_dplr_spec spec = cgam_gate_hessian(x->plan->gate, 1, o->lambda * o->lambda * o->beta, p);
    cgam_dplr *H;
    cgam_status status = cgam_dplr_new(x->plan->bank->env, &spec, &H);
    if (status != CGAM_OK) return status;
    *index = cgam_dplr_singular(H) ? -1 : cgam_dplr_negative(H);
    cgam_dplr_free(H);
    return CGAM_OK;
}

/* Adds a converged m, as a known point or a new one. `error` is used if no bound applies; if it is needed and NAN,
 * nothing is added and *open is true. */
static cgam_status add_point(search *x, const cgam_settled *m, double error, bool descended,
                             bool *open)
{
    cgam_landscape *out = x->out;
    double apart;
    int64_t at = nearest_point(x, m->p, &apart);
    *open = false;
    if (!(apart <= SAME)) {
        cgam_summary summary;
        cgam_result r;
        cgam_status status = cgam_settled_summary(x->plan, m, -1, &summary);
        if (status == CGAM_OK) cgam_result_fill(x->plan, &summary, &m->trace, &r);
        if (status == CGAM_OK) status = cgam_settled_bounds(x->plan, m, &r);
        if (status != CGAM_OK) return status;
        if (!r.p_error_proved && !isnan(error)) { /* a saddle, or a minimum that is nearly flat */
            status = cgam_coupled_enclose(x->plan, m, &r.p_error);
            if (status != CGAM_OK) return status;
            r.p_error_proved = isfinite(r.p_error);
            if (!r.p_error_proved) r.p_error = error;
        }
        *open = !r.p_error_proved && isnan(error);
        if (*open) return CGAM_OK;
        if (r.end != CGAM_END_CONVERGED) at = -2;
        else if (at < 0 || apart > r.p_error + out->points[at].p_error) at = -1;
        if (at == -1) {
            int64_t index;
            status = grow_points(x);
            if (status == CGAM_OK) status = index_at(x, m->p, &index);
            if (status != CGAM_OK) return status;
            bool flat = index < 0 || (index > 0 && r.fold_margin > 0) ||
                        (index == 0 && r.fold_margin_exact && !(r.fold_margin > 0));
            if (flat) at = -2; /* degenerate */
            else {
                at = out->count++;
                memcpy(out->p + at * x->n, m->p, (size_t)x->n * sizeof *out->p);
                out->points[at] = (cgam_point){.minimum = index == 0,
                                               .index = index,
                                               .energy = m->trace.energy_end,
                                               .winner = cgam_bank_number(x->plan->bank, r.winner),
                                               .p = r.p,
                                               .neff_entropy = r.neff_entropy,
                                               .fold_margin = r.fold_margin,
                                               .fold_margin_proved = r.fold_margin_proved,
                                               .p_error = r.p_error,
                                               .p_error_proved = r.p_error_proved};
            }
        }
        if (r.unique == 1) out->unique = 1;
    }
    if (at < 0) out->unresolved++;
    else out->points[at].basin += descended; /* counted here, divided at the end */
    return CGAM_OK;
}

static cgam_settled query_at(const search *x, int64_t k)
{
    double *s = x->block + k * 3 * x->n;
    return (cgam_settled){.in = x->base, .s = s, .r = s + x->n, .p = s + 2 * x->n};
}

/* ---- Newton ------------------------------------------------------------------------------- */
/* Runs Newton from the gates of weights p; if it converges, adds the point. descended: p is the end of a descent, and
 * the point must be the one next to it. */
static cgam_status newton(search *x, const double *p, bool descended)
{
    const cgam_recall *plan = x->plan;
    double length, residual;
    int64_t n = x->n;
    cgam_settled m = query_at(x, CGAM_ROUTE_SHARE);
    bool open;
    cgam_status status = cgam_coupled_polish(plan, &m, p, x->work, &residual, &length);
    if (status != CGAM_OK) return status;
    if (!(residual <= SETTLED) || (descended && !(distance(n, p, m.p) <= NEAR))) {
        x->out->unresolved += descended;
        return CGAM_OK;
    }
    double energy = m.trace.energy_end;
    m.trace = (cgam_trace){.end = CGAM_END_CONVERGED,
                           .change = residual,
                           .change_norm = residual,
                           .energy_start = energy,
                           .energy_end = energy};
    /* the next step would have the square of this one's length, so this one bounds the error */
    return add_point(x, &m, 0.5 * plan->opts.beta * plan->opts.lambda * length + 0x1p-50, descended,
                     &open);
}

static void report_progress(const search *x, const char *phase, const char *unit, int64_t done,
                            int64_t total)
{
    cgam_progress_tell(&x->progress, (cgam_progress_at){.phase = phase,
                                                        .done = (double)done,
                                                        .total = (double)total,
                                                        .unit = unit,
                                                        .seconds_left = NAN});
}

/* ---- Descents ----------------------------------------------------------------------------- */
static cgam_status find_minima(search *x)
{
    cgam_status status = CGAM_OK;
    cgam_settled m[CGAM_ROUTE_SHARE];
    for (int64_t from = 0; from < x->out->starts && status == CGAM_OK; from += CGAM_ROUTE_SHARE) {
        int64_t left = x->out->starts - from,
                count = left < CGAM_ROUTE_SHARE ? left : CGAM_ROUTE_SHARE;
        for (int64_t k = 0; k < count; k++) {
            m[k] = query_at(x, k);
            start_at(x, from + k, x->start + k * x->n);
        }
        status = cgam_coupled_solve(x->plan, count, m, x->start);
        for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
            bool open = true;
            if (m[k].trace.end == CGAM_END_CONVERGED)
                status = add_point(x, &m[k], NAN, true, &open);
            if (open && status == CGAM_OK) status = newton(x, m[k].p, true);
        }
        report_progress(x, "minima", "descents", from + count, x->out->starts);
    }
    return status;
}

/* ---- Saddles ------------------------------------------------------------------------------ */
/* Finds the weights between p and q where F is highest; A^-1 p and A^-1 q give it for all of them. */
static cgam_status find_ridge(search *x, const double *p, const double *q, double *best)
{
    const cgam_recall_opts *o = &x->plan->opts;
    int64_t n = x->n;
    double *yp = x->work, *yq = yp + n, highest = -INFINITY, where = 0.5;
    cgam_status status = cgam_gate_solve(x->plan->gate, p, yp, NULL);
    if (status == CGAM_OK) status = cgam_gate_solve(x->plan->gate, q, yq, NULL);
    for (int k = 1; k < RIDGE_STEPS && status == CGAM_OK; k++) {
        double t = (double)k / RIDGE_STEPS, F = 0;
        for (int64_t i = 0; i < n; i++) {
            double w = (1 - t) * p[i] + t * q[i], y = (1 - t) * yp[i] + t * yq[i];
            if (w > 0) F += w * (log(w) / o->beta - x->base.a[i] - 0.5 * o->lambda * o->lambda * y);
        }
        if (F > highest) highest = F, where = t;
    }
    for (int64_t i = 0; i < n; i++) best[i] = (1 - where) * p[i] + where * q[i];
    return status;
}

/* The number of searches from the known points. */
static int64_t count_climbs(const search *x)
{
    int64_t known = x->out->count < RIDGES_MAX ? x->out->count : RIDGES_MAX;
    return x->out->starts - x->corners + count_pairs(known);
}

/* Searches from all starts again, and from ridges between points, including those found here. */
static cgam_status find_saddles(search *x)
{
    cgam_landscape *out = x->out;
    int64_t first = 2 + x->corners, done = 0, i, j;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < out->starts && status == CGAM_OK; k++) {
        if (k >= 2 && k < first) continue; /* the descent from a corner is already known */
        start_at(x, k, x->start);
        status = newton(x, x->start, false);
        report_progress(x, "saddles", "searches", ++done, count_climbs(x));
    }
    for (int64_t k = 0; k < count_pairs(RIDGES_MAX) && status == CGAM_OK; k++) {
        pair_at(k, &i, &j);
        if (j >= out->count) break;
        status = find_ridge(x, out->p + i * x->n, out->p + j * x->n, x->start);
        if (status == CGAM_OK) status = newton(x, x->start, false);
        report_progress(x, "saddles", "searches", ++done, count_climbs(x));
    }
    return status;
}

/* ---- The whole ---------------------------------------------------------------------------- */
static cgam_status prepare_search(search *x, const double *q, const double *c)
{
    const cgam_recall *plan = x->plan;
    cgam_env *env = plan->bank->env;
    size_t n = (size_t)x->n;
    x->own = cgam_zalloc(env, 3 * n, sizeof *x->own);
    x->block = cgam_alloc(env, (CGAM_ROUTE_SHARE + 1) * 3 * n, sizeof *x->block);
    x->start = cgam_alloc(env, CGAM_ROUTE_SHARE * n, sizeof *x->start);
    x->work = cgam_alloc(env, 6 * n, sizeof *x->work);
    x->order = cgam_alloc(env, (size_t)x->corners, sizeof *x->order);
    if (!x->own || !x->block || !x->start || !x->work || !x->order)
        return cgam_fail_nomem(env, "a landscape");
    double *b = x->own, *s0 = b + n, *a = s0 + n;
    x->base = (cgam_scored){.q = q, .c = c, .b = b, .s0 = s0, .a = a};
    cgam_status status = cgam_bank_score(plan->bank, q, b);
    if (c && status == CGAM_OK) status = cgam_recall_gates(plan, c, x->work, s0);
    if (c && status == CGAM_OK && plan->can.matrices && cgam_doubt_solved(plan, c))
        status = cgam_doubt_gates(plan, c, s0, &x->base.s0_off);
    if (status != CGAM_OK) return status;
    if (c) x->base.half_us0 = 0.5 * cgam_array_dot(x->n, x->work, s0);
    for (size_t i = 0; i < n; i++) a[i] = b[i] + plan->opts.lambda * s0[i];
    return cgam_vec_top(plan->bank->env, &plan->bank->Z, a, x->corners, x->order);
}

/* Sorts by rising energy; equal energies stay in the order in which they were found. */
static void in_order(search *x)
{
    cgam_landscape *out = x->out;
    int64_t n = x->n, total = 0;
    double *row = x->work;
    for (int64_t k = 0; k < out->count; k++) {
        total += out->points[k].index % 2 ? -1 : 1;
        out->points[k].basin /= (double)out->starts;
        for (int64_t j = k; j > 0 && out->points[j].energy < out->points[j - 1].energy; j--) {
            cgam_point point = out->points[j];
            size_t bytes = (size_t)n * sizeof *row;
            out->points[j] = out->points[j - 1];
            out->points[j - 1] = point;
            memcpy(row, out->p + j * n, bytes);
            memcpy(out->p + j * n, out->p + (j - 1) * n, bytes);
            memcpy(out->p + (j - 1) * n, row, bytes);
        }
    }
    out->euler = total;
    out->unique_proved = out->unique == 1;
    if (out->unique != 1 && out->count > 1) out->unique = 0;
    for (int64_t i = 0; out->unique == 0 && i < out->count; i++)
        for (int64_t j = 0; j < i; j++)
            out->unique_proved |=
                out->points[i].p_error_proved && out->points[j].p_error_proved &&
                distance(n, out->p + i * n, out->p + j * n) >
                    (out->points[i].p_error + out->points[j].p_error) * CGAM_SLACK;
}

cgam_status cgam_landscape_find(const cgam_recall *plan, const double *q, const double *c,
                                const cgam_landscape_opts *opts, cgam_landscape *out)
{
    *out = (cgam_landscape){.unique = -1};
    cgam_status alone = cgam_bank_alone(plan->bank, "a landscape");
    if (alone != CGAM_OK) return alone;
    cgam_landscape_opts o = opts ? *opts : cgam_landscape_opts_default();
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n;
    if (plan->opts.mode != CGAM_COUPLED)
        return cgam_fail(env, CGAM_E_ARG, "landscape requires mode coupled, not %s",
                         cgam_word(cgam_mode_words, plan->opts.mode));
    if (cgam_recall_sparse(plan))
        return cgam_fail(env, CGAM_E_ARG, "landscape requires activation softmax");
    if (!plan->gate->A)
        return cgam_fail(env, CGAM_E_NOMEM, "landscape requires a factored gate operator");
    if (o.starts < 0)
        return cgam_fail(env, CGAM_E_ARG, "starts is %lld, it must be 0 or more",
                         (long long)o.starts);
    search x = {.plan = plan,
                .n = n,
                .leaders = n < LEADERS_MAX ? n : LEADERS_MAX,
                .corners = n < CORNERS_MAX ? n : CORNERS_MAX,
                .seed = o.seed,
                .progress = o.progress,
                .out = out};
    for (int bits = 1; bits < 1 << x.leaders; bits++)
        if (bits & (bits - 1)) x.set[x.sets++] = bits;
    out->starts = 2 + x.corners + x.sets + o.starts;
    cgam_status status = prepare_search(&x, q, c);
    if (status == CGAM_OK) status = find_minima(&x);
    if (status == CGAM_OK && out->unique != 1) status = find_saddles(&x);
    if (status == CGAM_OK) in_order(&x);
    void *rooms[] = {x.own, x.block, x.start, x.work, x.order};
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) cgam_free(env, rooms[k]);
    if (status != CGAM_OK) cgam_landscape_free(env, out);
    return status;
}
