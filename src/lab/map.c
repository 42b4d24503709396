/* map.c: energy over a plane of queries, and where queries come to rest. See map.h. */
#include "lab/map.h"
#include "base/blas.h"
#include "memory/plan.h"

#include <cgam/recall.h>
#include <math.h>
#include <string.h>

static const double STEP_MIN = 1e-9, SAME_POINT = 1e-5;
enum { STEPS_MAX = 2000 };

cgam_map_opts cgam_map_opts_default(void) { return (cgam_map_opts){.beta = 1, .lambda = 1}; }

static cgam_status new_plan(const cgam_bank *bank, const cgam_map_opts *opts, cgam_recall **out)
{
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = opts->settled ? CGAM_COUPLED : CGAM_FIRST;
    o.alpha = opts->alpha;
    o.beta = opts->beta;
    o.lambda = opts->lambda;
    *out = NULL;
    return cgam_recall_new(bank, &o, out);
}

static void point_of_plane(const cgam_plane *plane, double x, double y, double *q)
{
    for (int64_t j = 0; j < plane->d; j++)
        q[j] = plane->origin[j] + x * plane->e1[j] + y * plane->e2[j];
}

/* Gates settle: a row of the grid is a batch of coupled recalls. */
static cgam_status energy_settled(const cgam_recall *plan, const cgam_plane *plane, const double *c,
                                  int64_t nx, const double *x, int64_t ny, const double *y,
                                  double *energy)
{
    cgam_env *env = plan->bank->env;
    int64_t d = plane->d;
    double *q = cgam_alloc(env, (size_t)(nx * d), sizeof *q);
    cgam_result *results = cgam_alloc(env, (size_t)nx, sizeof *results);
    cgam_status status = q && results ? CGAM_OK : cgam_fail_nomem(env, "a map");
    for (int64_t j = 0; j < ny && status == CGAM_OK; j++) {
        for (int64_t i = 0; i < nx; i++) point_of_plane(plane, x[i], y[j], q + i * d);
        cgam_recall_in in = {.queries = nx, .q = q, .c = c};
        cgam_recall_out out = {.results = results};
        status = cgam_recall_run(plan, &in, &out);
        for (int64_t i = 0; i < nx && status == CGAM_OK; i++)
            energy[j * nx + i] =
                results[i].energy_end + cblas_ddot((int)d, q + i * d, 1, q + i * d, 1) / 2;
    }
    cgam_free(env, q);
    cgam_free(env, results);
    return status;
}

/* Gates stay: with a = Z origin + lambda s0, b1 = Z e1 and b2 = Z e2 the scores are a + x b1 + y b2. */
static cgam_status energy_first(const cgam_recall *plan, const cgam_plane *plane, const double *c,
                                int64_t nx, const double *x, int64_t ny, const double *y,
                                double *energy)
{
    const cgam_bank *bank = plan->bank;
    int64_t n = bank->Z.n, d = plane->d;
    double beta = plan->opts.beta, half_us = 0;
    double *work = cgam_zalloc(bank->env, 5 * (size_t)n + (size_t)d, sizeof *work);
    if (!work) return cgam_fail_nomem(bank->env, "a map");
    double *a = work, *b1 = a + n, *b2 = b1 + n, *u = b2 + n, *s = u + n, *q = s + n;
    cgam_status status = cgam_bank_score(bank, plane->origin, a);
    if (status == CGAM_OK) status = cgam_bank_score(bank, plane->e1, b1);
    if (status == CGAM_OK) status = cgam_bank_score(bank, plane->e2, b2);
    if (status == CGAM_OK && c) status = cgam_recall_gates(plan, c, u, s);
    if (status == CGAM_OK) {
        half_us = cblas_ddot((int)n, u, 1, s, 1) / 2;
        cblas_daxpy((int)n, plan->opts.lambda, s, 1, a, 1);
    }
    for (int64_t k = 0; k < nx * ny && status == CGAM_OK; k++) {
        double at_x = x[k % nx], at_y = y[k / nx], top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) top = fmax(top, a[i] + at_x * b1[i] + at_y * b2[i]);
        for (int64_t i = 0; i < n; i++)
            sum += exp(beta * (a[i] + at_x * b1[i] + at_y * b2[i] - top));
        point_of_plane(plane, at_x, at_y, q);
        energy[k] = cblas_ddot((int)d, q, 1, q, 1) / 2 - half_us - top - log(sum) / beta;
        if (k % nx == 0 && cgam_interrupted(bank->env))
            status = cgam_fail(bank->env, CGAM_E_INTERRUPTED, "interrupted");
    }
    cgam_free(bank->env, work);
    return status;
}

cgam_status cgam_map_energy(const cgam_bank *bank, const cgam_plane *plane, const double *c,
                            const cgam_map_opts *opts, int64_t nx, const double *x, int64_t ny,
                            const double *y, double *energy)
{
    cgam_status alone = cgam_bank_alone(bank, "a map");
    if (alone != CGAM_OK) return alone;
    cgam_map_opts o = opts ? *opts : cgam_map_opts_default();
    cgam_recall *plan;
    cgam_status status = new_plan(bank, &o, &plan);
    if (status == CGAM_OK)
        status = (o.settled ? energy_settled : energy_first)(plan, plane, c, nx, x, ny, y, energy);
    cgam_recall_free(plan);
    return status;
}

/* ---- attractors ------------------------------------------------------------------------------- */

static double distance(const double *a, const double *b, int64_t d)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++) sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sqrt(sum);
}

/* q <- Z'p until nothing moves; step [count] is the last of each. */
static cgam_status iterate_queries(const cgam_recall *plan, const double *c, int64_t count,
                                   double *q, double *step)
{
    cgam_env *env = plan->bank->env;
    int64_t d = plan->bank->Z.d;
    double *next = cgam_alloc(env, (size_t)(count * d), sizeof *next), largest = INFINITY;
    cgam_result *results = cgam_alloc(env, (size_t)count, sizeof *results);
    cgam_status status = next && results ? CGAM_OK : cgam_fail_nomem(env, "attractors");
    for (int k = 0; k < STEPS_MAX && largest > STEP_MIN && status == CGAM_OK; k++) {
        cgam_recall_in in = {.queries = count, .q = q, .c = c};
        cgam_recall_out out = {.results = results, .readout = next};
        status = cgam_recall_run(plan, &in, &out);
        largest = 0;
        for (int64_t i = 0; i < count && status == CGAM_OK; i++) {
            step[i] = distance(q + i * d, next + i * d, d);
            largest = fmax(largest, step[i]);
        }
        if (status == CGAM_OK) memcpy(q, next, (size_t)(count * d) * sizeof *q);
    }
    cgam_free(env, next);
    cgam_free(env, results);
    return status;
}

/* Distinct points move to the front, with their counts. */
static int64_t merge_points(int64_t count, int64_t d, double *q, const double *step,
                            cgam_attractor *list)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t k = 0;
        while (k < found && distance(q + i * d, q + k * d, d) > SAME_POINT) k++;
        if (k == found) {
            memmove(q + k * d, q + i * d, (size_t)d * sizeof *q);
            list[found++] = (cgam_attractor){.settled = step[i] <= STEP_MIN};
        }
        list[k].starts++;
    }
    return found;
}

/* Describes a rest point by its own recall. Mode first has no energy, so it is computed here. */
static cgam_status describe_attractor(const cgam_bank *bank, const double *c,
                                      const cgam_map_opts *o, int64_t found, double *q,
                                      cgam_attractor *list)
{
    cgam_env *env = bank->env;
    int64_t d = bank->Z.d;
    double zero = 0;
    cgam_recall *plan = NULL;
    cgam_result *results = cgam_alloc(env, (size_t)found, sizeof *results);
    double *axes = cgam_zalloc(env, 2 * (size_t)d, sizeof *axes); /* none: the plane is a point */
    cgam_status status =
        results && axes ? new_plan(bank, o, &plan) : cgam_fail_nomem(env, "attractors");
    if (status == CGAM_OK) {
        cgam_recall_in in = {.queries = found, .q = q, .c = c};
        cgam_recall_out out = {.results = results};
        status = cgam_recall_run(plan, &in, &out);
    }
    for (int64_t i = 0; i < found && status == CGAM_OK; i++) {
        cgam_plane point = {.d = d, .origin = q + i * d, .e1 = axes, .e2 = axes + d};
        list[i].winner = results[i].winner;
        list[i].p = results[i].p;
        status = (o->settled ? energy_settled : energy_first)(plan, &point, c, 1, &zero, 1, &zero,
                                                              &list[i].energy);
    }
    cgam_recall_free(plan);
    cgam_free(env, results);
    cgam_free(env, axes);
    return status;
}

/* Sorts by falling starts; equal ones keep the order in which they were found. */
static void sort_attractors(int64_t found, int64_t d, double *q, cgam_attractor *list, double *work)
{
    for (int64_t i = 1; i < found; i++) {
        cgam_attractor one = list[i];
        int64_t k = i;
        while (k > 0 && list[k - 1].starts < one.starts) k--;
        memcpy(work, q + i * d, (size_t)d * sizeof *q);
        memmove(list + k + 1, list + k, (size_t)(i - k) * sizeof *list);
        memmove(q + (k + 1) * d, q + k * d, (size_t)((i - k) * d) * sizeof *q);
        list[k] = one;
        memcpy(q + k * d, work, (size_t)d * sizeof *q);
    }
}

cgam_status cgam_map_attractors(const cgam_bank *bank, const double *c, const cgam_map_opts *opts,
                                int64_t count, double *q, cgam_attractor *list, int64_t *found)
{
    cgam_status alone = cgam_bank_alone(bank, "a map");
    if (alone != CGAM_OK) return alone;
    cgam_env *env = bank->env;
    int64_t d = bank->Z.d;
    cgam_map_opts o = opts ? *opts : cgam_map_opts_default();
    *found = 0;
    cgam_recall *plan = NULL;
    double *step = cgam_zalloc(env, (size_t)(count + d), sizeof *step);
    cgam_status status = step ? new_plan(bank, &o, &plan) : cgam_fail_nomem(env, "attractors");
    if (status == CGAM_OK && count > 0) status = iterate_queries(plan, c, count, q, step);
    cgam_recall_free(plan);
    if (status == CGAM_OK) {
        *found = merge_points(count, d, q, step, list);
        sort_attractors(*found, d, q, list, step + count);
        if (*found) status = describe_attractor(bank, c, &o, *found, q, list);
    }
    cgam_free(env, step);
    return status;
}
