/* small.c: recalls on small banks, modes first and coupled, softmax: one engine for one query and for many.
 *
 * A plan keeps its rows in blocks (small.h), the small system M of dplr.h with its inverse, and work areas, which
 * calls lease: a reused plan allocates nothing. Where the rows are spread over ranks, each rank has all of them and
 * computes everything. Queries go in tiles that share the reading of rows; one thread computes each tile from the
 * scores to the results, and threads share the tiles if there is enough work. */
#include "memory/small_parts.h"

#include "base/blas.h"
#include "memory/certify.h"
#include "memory/engines.h"
#include "memory/results.h"
#include "num/rounding.h"
#include "num/vec.h"

#include <math.h>
#include <string.h>

enum { TILE_ROWS_MAX = 1 << 13 /* above this, one query fills the cache */ };
static const double PARALLEL_WORK = 0x1p19; /* multiplications above which threads are used */

/* ---- The plan. ------------------------------------------------------------------------------ */

static cgam_status pack_rows(cgam_env *env, int64_t n, int64_t d, const double *rows,
                             cgam_blocked *out)
{
    const int64_t few = CGAM_SMALL_ROWS;
    *out = (cgam_blocked){.n = n, .d = d, .blocks = (n + few - 1) / few};
    out->rows = cgam_alloc(env, (size_t)(out->blocks * few * d), sizeof *out->rows);
    if (!out->rows) return cgam_fail_nomem(env, "a small bank");
    for (int64_t i = 0; i < out->blocks * few; i++) {
        const double *row = rows + (i < n ? i : n - 1) * d;
        for (int64_t k = 0; k < d; k++) out->rows[(i / few * d + k) * few + i % few] = row[k];
    }
    return CGAM_OK;
}

/* All rows, in double. */
static cgam_status copy_rows(cgam_env *env, const cgam_rows *Z, double *out)
{
    int64_t *all = cgam_rows_whole(Z) ? NULL : cgam_alloc(env, (size_t)Z->n, sizeof *all);
    cgam_status status = CGAM_OK;
    if (!cgam_rows_whole(Z) && !all) return cgam_fail_nomem(env, "a small bank");
    for (int64_t i = 0; all && i < Z->n; i++) all[i] = i;
    if (all) status = cgam_rows_bring(env, Z, Z->n, all);
    for (int64_t i = 0; i < Z->n && status == CGAM_OK; i++) cgam_rows_get(Z, i, 1, out + i * Z->d);
    if (all && status == CGAM_OK) status = cgam_rows_bring(env, Z, 0, NULL);
    cgam_free(env, all);
    return status;
}

/* Computes M and M^-1; *fits = false if M lacks what the bounds need: positive pivots and no border. */
static cgam_status pack_system(const cgam_recall *plan, cgam_small *x, bool *fits)
{
    int64_t d = x->Z.d;
    const cgam_dplr *gate = plan->gate->A;
    cgam_dplr_kept kept = cgam_dplr_keep_as(gate, NULL);
    *fits = cgam_dplr_system(gate, &x->system_size, &x->system_error);
    if (!*fits) return CGAM_OK;
    double *M = cgam_alloc(x->env, (size_t)(3 * d * d), sizeof *M), *factor = M + d * d;
    if (!M) return cgam_fail_nomem(x->env, "a small system");
    double *inverse = factor + d * d;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = i; j < d; j++)
            M[i * d + j] = M[j * d + i] = i == j ? -kept.diagonal[i] : -kept.K[i * d + j];
    memcpy(factor, M, (size_t)(d * d) * sizeof *M);
    for (int64_t i = 0; i < d * d; i++) inverse[i] = i % (d + 1) == 0;
    *fits = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'U', (lapack_int)d, factor, (lapack_int)d) == 0 &&
            LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'U', (lapack_int)d, (lapack_int)d, factor,
                                (lapack_int)d, inverse, (lapack_int)d) == 0;
    cgam_status status = pack_rows(x->env, d, d, M, &x->M);
    if (status == CGAM_OK) status = pack_rows(x->env, d, d, inverse, &x->inverse);
    if (status == CGAM_OK) status = cgam_vec_gather(&plan->bank->Z, cgam_dplr_dinv(gate), x->dinv);
    for (int64_t i = x->Z.n; i < x->size; i++) x->dinv[i] = x->dinv[x->Z.n - 1];
    cgam_free(x->env, M);
    return status;
}

/* Does this engine support the plan? */
static bool fits_engine(const cgam_recall *plan)
{
    const cgam_recall_opts *o = &plan->opts;
    bool mode = o->mode == CGAM_FIRST || (o->mode == CGAM_COUPLED && o->lambda > 0);
    bool rows = plan->gate->a == 0 || (plan->gate->A && !cgam_dplr_dense(plan->gate->A) &&
                                       cgam_dplr_border(plan->gate->A, NULL) == 0);
    return mode && rows && !plan->can.matrices && !plan->can.refines && !plan->twins && !o->W &&
           !o->none && !cgam_recall_sparse(plan) && !plan->bank->unread;
}

cgam_status cgam_small_new(const cgam_recall *plan, cgam_small **out)
{
    cgam_env *env = plan->bank->env;
    const cgam_rows *Z = &plan->bank->Z;
    *out = NULL;
    if (!fits_engine(plan)) return CGAM_OK;
    cgam_small *x = cgam_zalloc(env, 1, sizeof *x);
    double *rows = cgam_alloc(env, (size_t)(Z->n * Z->d), sizeof *rows);
    cgam_status status = CGAM_OK;
    bool fits = true;
    if (!x || !rows) {
        status = cgam_fail_nomem(env, "a small bank");
        goto done;
    }
    x->env = env;
    x->loops = cgam_small_loops_of(Z->cpu);
    pthread_mutex_init(&x->lock, NULL);
    status = copy_rows(env, Z, rows);
    if (status == CGAM_OK) status = pack_rows(env, Z->n, Z->d, rows, &x->Z);
    x->size = x->Z.blocks * CGAM_SMALL_ROWS;
    x->width = (Z->d + CGAM_SMALL_ROWS - 1) / CGAM_SMALL_ROWS * CGAM_SMALL_ROWS;
    x->tile = Z->n <= TILE_ROWS_MAX ? CGAM_SMALL_TILE : 1;
    x->vectors = plan->opts.mode == CGAM_FIRST ? FIRST_VECTORS : VECTORS;
    int64_t widest = x->size > x->width ? x->size : x->width;
    x->zeros = cgam_zalloc(env, (size_t)widest, sizeof *x->zeros);
    if (plan->gate->a > 0) x->dinv = cgam_alloc(env, (size_t)x->size, sizeof *x->dinv);
    if (!x->zeros || (plan->gate->a > 0 && !x->dinv)) status = cgam_fail_nomem(env, "a small bank");
    if (status == CGAM_OK && plan->gate->a > 0) status = pack_system(plan, x, &fits);
    double contraction = cgam_contraction(2 * cgam_recall_lipschitz(plan) * plan->opts.beta,
                                          plan->opts.lambda, plan->gate->eta_least);
    x->unique = contraction < 1;
done:
    cgam_free(env, rows);
    if (status == CGAM_OK && fits) *out = x;
    else cgam_small_free(env, x);
    return status;
}

static void work_free(cgam_env *env, cgam_small_work *w)
{
    if (w) cgam_free_all(env, w->vectors, w->shorts, w->sums);
    cgam_free(env, w);
}

void cgam_small_free(cgam_env *env, cgam_small *x)
{
    if (!x) return;
    for (cgam_small_work *w = x->idle, *next; w; w = next) {
        next = w->next;
        work_free(env, w);
    }
    cgam_free_all(env, x->Z.rows, x->M.rows, x->inverse.rows, x->dinv, x->zeros);
    pthread_mutex_destroy(&x->lock);
    cgam_free(env, x);
}

/* ---- Work areas. ---------------------------------------------------------------------------- */

static cgam_status make_area(cgam_small *x, cgam_small_work **out)
{
    cgam_small_work *w = cgam_zalloc(x->env, 1, sizeof *w);
    if (w) {
        w->vectors = cgam_zalloc(x->env, (size_t)(x->tile * x->vectors * x->size), sizeof(double));
        w->shorts = cgam_zalloc(x->env, (size_t)(x->tile * SHORTS * x->width), sizeof(double));
        w->sums = cgam_alloc(x->env, (size_t)(x->tile * x->Z.d * CGAM_SMALL_ROWS), sizeof(double));
    }
    *out = w;
    if (w && w->vectors && w->shorts && w->sums) return CGAM_OK;
    work_free(x->env, w);
    *out = NULL;
    return cgam_fail_nomem(x->env, "the vectors of a recall");
}

/* Leases a free area; return it with give_back. */
static cgam_status lease(cgam_small *x, cgam_small_work **out)
{
    pthread_mutex_lock(&x->lock);
    cgam_small_work *w = x->idle;
    if (w) x->idle = w->next;
    pthread_mutex_unlock(&x->lock);
    *out = w;
    return w ? CGAM_OK : make_area(x, out);
}

static void give_back(cgam_small *x, cgam_small_work *w)
{
    if (!w) return;
    pthread_mutex_lock(&x->lock);
    w->next = x->idle;
    x->idle = w;
    pthread_mutex_unlock(&x->lock);
}

/* Allocates as many areas as threads may use at once, so that a repeated call finds enough for any split of its
 * tiles. */
static cgam_status lease_ahead(cgam_small *x, int64_t count)
{
    cgam_small_work *list = NULL, *w;
    cgam_status status = CGAM_OK;
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        status = lease(x, &w);
        if (status != CGAM_OK) break;
        w->next = list;
        list = w;
    }
    for (; list; list = w) {
        w = list->next;
        give_back(x, list);
    }
    return status;
}

/* ---- Queries and their gates. --------------------------------------------------------------- */

static cgam_small_query query_at(const cgam_small_call *job, cgam_small_work *w, int64_t v,
                                 int64_t at)
{
    const cgam_small *x = job->x;
    const cgam_recall_in *in = job->in;
    cgam_small_query k = {.at = at, .q = in->q + at * x->Z.d, .gates = job->shared};
    if (in->c) k.c = in->c + (in->c_per_query ? at * job->plan->d_c : 0);
    for (int64_t j = 0; j < x->vectors; j++)
        k.vector[j] = w->vectors + (v * x->vectors + j) * x->size;
    for (int64_t j = 0; j < SHORTS; j++) k.brief[j] = w->shorts + (v * SHORTS + j) * x->width;
    k.step = (cgam_small_step){.Z = &x->Z,
                               .beta = job->plan->opts.beta,
                               .feedback = job->plan->opts.lambda * job->plan->opts.lambda,
                               .dinv = x->dinv,
                               .r = k.vector[R],
                               .f = k.vector[F]};
    return k;
}

double cgam_small_system_off(const cgam_small *x, const double *solution, const double *f,
                             double f_off, double *rest)
{
    int64_t d = x->Z.d;
    double gamma = cgam_gamma((double)d + 16);
    x->loops->score(&x->M, 1, &solution, &rest);
    for (int64_t i = 0; i < d; i++) rest[i] = f[i] - rest[i];
    double norm = 1 + (4 * (double)d + 16) * CGAM_U;
    double off = cgam_array_norm(d, rest) + f_off + gamma * cgam_array_norm(d, f) +
                 (gamma * x->system_size + x->system_error) * cgam_array_norm(d, solution);
    off = off * norm * CGAM_SLACK + 0x1p-1000;
    return off >= 0 ? off : INFINITY;
}

/* Computes s0 = A^-1 Z P c of queries with their own contexts, its error, and u's0 / 2 if requested. */
static void find_gates(const cgam_small_call *job, int64_t count, cgam_small_query *const *k)
{
    const cgam_small *x = job->x;
    const cgam_recall *plan = job->plan;
    const cgam_recall_opts *o = &plan->opts;
    const double n = (double)x->Z.n;
    double *v[CGAM_SMALL_TILE] = {NULL}, *e[CGAM_SMALL_TILE] = {NULL};
    double *s0[CGAM_SMALL_TILE] = {NULL}, *u[CGAM_SMALL_TILE] = {NULL};
    bool competes = x->dinv != NULL, energies = o->mode == CGAM_COUPLED;
    cgam_small_point(count, k, true, V, v);
    cgam_small_point(count, k, true, E, e);
    cgam_small_point(count, k, false, S0, s0);
    cgam_small_point(count, k, false, F, u);
    for (int64_t j = 0; j < count; j++) cgam_recall_project(plan, k[j]->c, v[j]);
    if (competes) x->loops->score(&x->inverse, count, (const double *const *)v, e);
    x->loops->score(&x->Z, count, (const double *const *)(competes ? e : v), s0);
    if (competes && energies) x->loops->score(&x->Z, count, (const double *const *)v, u);
    for (int64_t j = 0; j < count; j++) {
        cgam_small_gates *own = &k[j]->gates;
        *own = (cgam_small_gates){.s0 = s0[j]};
        for (int64_t i = 0; competes && i < x->size; i++) s0[j][i] *= x->dinv[i];
        if (energies) own->half_us0 = 0.5 * cgam_array_dot(x->Z.n, competes ? u[j] : s0[j], s0[j]);
        if (!job->proves || o->lambda == 0) continue;
        if (competes) {
            double off = o->P ? cgam_array_norm(plan->d_c, k[j]->c) * plan->weights_size *
                                    cgam_gamma(2 * (double)plan->d_c + 16) * CGAM_SLACK
                              : 0;
            off = cgam_small_system_off(x, e[j], v[j], off, k[j]->brief[REST]);
            own->off =
                cgam_doubt_over_rows(plan, cgam_array_norm(x->Z.d, e[j]) * CGAM_SLACK, off, 0);
        } else if (energies) { /* u itself; mode first has it in its scores */
            double off = cgam_doubt_scores(plan, x->zeros, k[j]->c) / o->lambda * CGAM_SLACK;
            own->off = (cgam_gates_off){off, off * sqrt(n) * CGAM_SLACK};
        }
    }
}

/* ---- A call. -------------------------------------------------------------------------------- */

/* The scores of mode first and their weights. */
static void score_first(const cgam_small_call *job, cgam_small_query *k)
{
    const cgam_small *x = job->x;
    double lambda = job->plan->opts.lambda;
    k->step.dinv = NULL; /* no feedback */
    k->step.top = x->loops->join(x->size, k->vector[B], k->gates.s0, lambda, k->vector[R]);
    x->loops->weigh(&k->step);
    memcpy(k->sums, k->step.sums, sizeof k->sums);
    k->x.act = cgam_activated_softmax(k->step.beta, k->step.top, k->sums[0]);
    k->left = !isfinite(k->x.act.lse);
}

static cgam_status run_tile(void *arg, int64_t i)
{
    const cgam_small_call *job = arg;
    cgam_small *x = job->x;
    int64_t from = i * x->tile, left = job->in->queries - from,
            count = left < x->tile ? left : x->tile;
    cgam_small_query all[CGAM_SMALL_TILE], *on[CGAM_SMALL_TILE] = {NULL};
    double *b[CGAM_SMALL_TILE] = {NULL};
    const double *q[CGAM_SMALL_TILE] = {NULL};
    cgam_small_work *w;
    if (cgam_interrupted(x->env)) return CGAM_E_INTERRUPTED;
    cgam_status status = lease(x, &w);
    if (status != CGAM_OK) return status;
    for (int64_t v = 0; v < count; v++) {
        all[v] = query_at(job, w, v, from + v);
        on[v] = &all[v];
        q[v] = all[v].q;
    }
    if (job->in->c && job->in->c_per_query) find_gates(job, count, on);
    cgam_small_point(count, on, false, B, b);
    x->loops->score(&x->Z, count, q, b);
    if (job->plan->opts.mode == CGAM_COUPLED) status = cgam_small_iterate(job, w, count, all);
    else
        for (int64_t v = 0; v < count; v++) score_first(job, &all[v]);
    for (int64_t v = 0; v < count && status == CGAM_OK; v++)
        status = cgam_small_report(job, w, &all[v]);
    give_back(x, w);
    return status;
}

cgam_status cgam_recall_by_small(cgam_schedule *schedule)
{
    const cgam_recall *plan = schedule->plan;
    const cgam_recall_in *in = schedule->in;
    cgam_small *x = plan->lanes;
    int64_t n = x->Z.n, top = schedule->out->top, tiles = (in->queries + x->tile - 1) / x->tile;
    cgam_small_call job = {.plan = plan,
                           .x = x,
                           .in = in,
                           .out = schedule->out,
                           .top = top < n ? top : n,
                           .proves = cgam_recall_proves(plan, schedule->out),
                           .shared = {.s0 = x->zeros}};
    cgam_small_work *w = NULL;
    cgam_status status = CGAM_OK;
    if (in->c && !in->c_per_query) {
        status = lease(x, &w);
        if (status != CGAM_OK) return status;
        cgam_small_query k = query_at(&job, w, 0, 0), *only = &k;
        find_gates(&job, 1, &only);
        job.shared = k.gates;
    }
    bool coupled = plan->opts.mode == CGAM_COUPLED;
    double each = (double)n * ((double)x->Z.d * (coupled ? 2 : 1) + 48) * (coupled ? 10 : 1);
    if ((double)in->queries * each >= PARALLEL_WORK) {
        int64_t threads = cgam_env_threads(x->env);
        status = lease_ahead(x, threads < tiles ? threads : tiles);
        if (status == CGAM_OK)
            status = cgam_rows_each(x->env, &plan->bank->Z, tiles, run_tile, &job);
    } else {
        for (int64_t i = 0; i < tiles && status == CGAM_OK; i++) status = run_tile(&job, i);
    }
    give_back(x, w);
    return status;
}

#define DECLARE(set) extern const cgam_small_loops cgam_small_loops_##set;
#define ENTRY(set) &cgam_small_loops_##set,
CGAM_CPU_SETS(DECLARE)

const cgam_small_loops *cgam_small_loops_of(const cgam_cpu *cpu)
{
    static const cgam_small_loops *const all[] = {&cgam_small_loops_portable, CGAM_CPU_ROWS(ENTRY)};
    return all[cpu - cgam_cpu_all];
}
