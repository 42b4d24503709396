/* coupled.c: how feedback moves the transition (paper, section 3.3 and appendix D.3, fig. 3 d).
 *
 * Clusters as in competition.c, no query, u = 1/n. For lambda > 0 and A(alpha) > 0 the retrieval is
 * the limit of r <- lambda A^-1 u + lambda^2 A^-1 softmax(beta r) from small noise, computed by the plain
 * iteration itself (at most max_iter steps, until r changes by at most tol): near the fold, another
 * start or a faster method may end elsewhere, and the plain one takes ten to twenty steps. A is not
 * formed: a step is two products with the modes. For alpha >= alpha_crit the plain iteration would
 * fall into 2-cycles, so gates and retrieval are integrated from s = 0 and the noise to t_cap with
 * equal time constants. lambda = 0 has no retrieval: its curve is that of the gates.
 *
 * Most transients become one-hot long before t_cap. Then only the peak is needed, which is 1 to 1e-12 whichever memory
 * won and however coarse the steps were. So each transient is integrated with coarse steps first, and again with fine
 * steps unless it was one-hot by 0.75 t_cap; the time of the coarse run is correct to about ten percent
 * (tests/unit/lab_synthetic/test_flow.c). If the coarse run was useless for most lanes, it is skipped at the next
 * alpha, until all are fast again.
 *
 * A block is 8 trials; its record holds, for every lambda and alpha, mean and squared deviations of
 * the peak and the number of iterations that did not converge; then the fold of each trial. */
#include "lab/synthetic/coupled.h"

#include "base/alloc.h"
#include "lab/synthetic/trial.h"

#include <math.h>
#include <string.h>

enum { BLOCK = CGAM_COUPLED_BLOCK, DENSE = 60 };
static const double DENSE_REACH = 0.1, COARSE_TOL = 0.15, COARSE_RATE = 4, COARSE_TRUST = 0.75;
static const double FINE_TOL = 1e-3, FINE_RATE = 1.5, FOLD_TOL = 1e-5, FOLD_MARGIN = 1e-4;

double cgam_coupling_theory(const cgam_study_opts *o, double alpha_crit, double lambda)
{
    double feedback = lambda * lambda * o->beta / (double)o->n;
    return feedback < 1 ? alpha_crit * (1 - feedback) : NAN;
}

void cgam_coupling_close(cgam_study *study, cgam_coupling *c)
{
    cgam_free(study->env, c->own);
    cgam_free(study->env, c->place);
    cgam_free(study->env, c->at);
}

static void add_alphas(cgam_alphas *into, const cgam_alphas *from)
{
    for (int64_t i = 0; i < from->count; i++) {
        int64_t k = into->count;
        bool there = false;
        for (int64_t j = 0; j < k && !there; j++) there = into->at[j] == from->at[i];
        if (!there && k < CGAM_ALPHAS_MAX) into->at[into->count++] = from->at[i];
    }
    cgam_sort(into->at, into->count);
}

cgam_status cgam_coupling_open(cgam_study *study, cgam_coupling *c)
{
    const cgam_study_opts *o = &study->opts;
    cgam_env *env = study->env;
    int64_t lambdas = o->lambda.count;
    memset(c, 0, sizeof *c);
    cgam_status status = cgam_alphas_critical(study, CGAM_STREAM_COUPLED, &c->alpha_crit);
    if (status != CGAM_OK) return status;
    status =
        cgam_alloc_all(env, "grids", CGAM_ZEROS(c->own, lambdas), CGAM_ZEROS(c->at, lambdas + 1),
                       CGAM_ARRAY(c->place, lambdas * CGAM_ALPHAS_MAX));
    if (status != CGAM_OK) return status;
    for (int64_t k = 0; k < lambdas; k++) {
        double lambda = o->lambda.values[k],
               middle = cgam_coupling_theory(o, c->alpha_crit, lambda);
        if (o->alphas.count > 0) {
            cgam_alphas_given(&c->own[k], o->alphas);
        } else {
            cgam_alphas_coupled(&c->own[k], c->alpha_crit);
            if (lambda > 0 && !isnan(middle))
                cgam_alphas_span(&c->own[k], middle - DENSE_REACH, middle + DENSE_REACH, DENSE);
            cgam_alphas_tidy(&c->own[k]);
        }
        add_alphas(&c->all, &c->own[k]);
        c->at[k + 1] = c->at[k] + CGAM_COUPLED_SUMS * c->own[k].count;
    }
    for (int64_t k = 0; k < lambdas; k++)
        for (int64_t i = 0; i < c->all.count; i++) {
            int32_t place = -1;
            for (int64_t j = 0; j < c->own[k].count; j++)
                if (c->own[k].at[j] == c->all.at[i]) place = (int32_t)j;
            c->place[k * c->all.count + i] = place;
        }
    c->folds = c->at[lambdas];
    c->record = c->folds + lambdas * BLOCK;
    return CGAM_OK;
}

void cgam_coupling_room_close(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    cgam_coupling_room *w = opened;
    cgam_banks_free(w->banks);
    cgam_free(study->env, w->s0);
    cgam_free(study->env, w->flow);
    cgam_free(study->env, w->fold);
}

cgam_status cgam_coupling_room_open(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    cgam_coupling_room *w = opened;
    cgam_env *env = study->env;
    const int64_t n = study->opts.n;
    cgam_status status = cgam_banks_new(env, study->lanes->width, n, study->opts.d, &w->banks);
    if (status != CGAM_OK) return status;
    const int64_t m = w->banks->g.m;
    const cgam_slice slices[] = {{&w->s0, n},      {&w->scale, 1}, {&w->base, n}, {&w->x, n},
                                 {&w->e, n + m},   {&w->fs, n},    {&w->fr, n},   {&w->fp, n},
                                 {&w->s, n},       {&w->r, n},     {&w->p, n},    {&w->f, m + 1},
                                 {&w->gain, m + 1}};
    w->flow = cgam_zalloc(env, cgam_lanes_flow_size(&w->banks->g), sizeof *w->flow);
    w->fold = cgam_alloc(env, cgam_lanes_fold_size(&w->banks->g), sizeof *w->fold);
    if (!w->flow || !w->fold) return cgam_fail_nomem(env, "a trial");
    return cgam_trial_room(study, sizeof slices / sizeof *slices, slices);
}

cgam_status cgam_coupling_draw(cgam_study *study, int64_t first, cgam_coupling_room *w)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    cgam_status status = CGAM_OK;
    for (int l = 0; l < width && status == CGAM_OK; l++) {
        cgam_rng rng =
            cgam_stream(o->seed, CGAM_STREAM_COUPLED, CGAM_STREAM_START, 0, 0, first + l);
        status = cgam_banks_cluster(w->banks, l, study, CGAM_STREAM_COUPLED, first + l);
        for (int64_t i = 0; i < o->n; i++)
            w->banks->g.start[i * width + l] = o->noise * cgam_rng_normal(&rng);
    }
    return status == CGAM_OK ? cgam_banks_decompose(w->banks, NULL) : status;
}

void cgam_coupling_alpha(const cgam_study *study, double alpha, cgam_coupling_room *w)
{
    const cgam_bundle *g = &w->banks->g;
    const int width = g->width;
    double t[CGAM_LANES_MAX] = {0}, *f0 = w->f + g->m * width, *gain0 = w->gain + g->m * width;
    for (int l = 0; l < width; l++) t[l] = study->opts.t_cap;
    cgam_banks_weights(w->banks, alpha, t, w->f, f0, w->scale);
    study->lanes->compose(g, w->f, f0, w->s0);
    for (int l = 0; l < width; l++) {
        bool still = cgam_banks_subcritical(w->banks, l, alpha);
        gain0[l] = still ? f0[l] : 0;
        for (int64_t k = 0; k < g->m; k++)
            w->gain[k * width + l] = still ? w->f[k * width + l] - gain0[l] : 0;
    }
}

/* Transients of the lanes in `lanes` at one accuracy. */
static void integrate(const cgam_study *study, double alpha, double lambda, const int *lanes,
                      bool fine, bool same, cgam_coupling_room *w, double *ended)
{
    const cgam_study_opts *o = &study->opts;
    cgam_lanes_flow flow = {.alpha = alpha,
                            .beta = o->beta,
                            .lambda = lambda,
                            .tau_s = 1,
                            .tau_r = 1,
                            .tau_q = 1,
                            .t_end = o->t_cap,
                            .tol = fine ? FINE_TOL : COARSE_TOL,
                            .h_rate = fine ? FINE_RATE : COARSE_RATE,
                            .coarse = !fine,
                            .same = same,
                            .stop_one_hot = true,
                            .active = lanes,
                            .work = w->flow,
                            .s = w->fs,
                            .r = w->fr,
                            .p = w->fp,
                            .ended = ended};
    study->lanes->flow(&w->banks->g, &flow);
}

/* slow: whether coarse runs are currently useless; NULL = fine runs only. */
static void transients(const cgam_study *study, double alpha, double lambda, const int *above,
                       bool again, bool *slow, cgam_coupling_room *w, cgam_coupling_point *out)
{
    const cgam_bundle *g = &w->banks->g;
    const int width = g->width;
    double ended[CGAM_LANES_MAX];
    int pending[CGAM_LANES_MAX], all = 0, left = 0;
    memcpy(pending, above, (size_t)width * sizeof *pending);
    for (int l = 0; l < width; l++) all += above[l];
    for (int fine = !slow || *slow; fine < 2; fine++) {
        integrate(study, alpha, lambda, pending, fine, again, w, ended);
        again = true;
        left = 0;
        for (int l = 0; l < width; l++) {
            if (!pending[l]) continue;
            double peak = 0, sum = 0;
            for (int64_t i = 0; i < g->n; i++) {
                peak = fmax(peak, w->fp[i * width + l]);
                sum += w->fp[i * width + l];
            }
            out->peak[l] = isfinite(sum) ? peak : NAN; /* fmax would hide a NaN */
            out->ended[l] = ended[l];
            pending[l] = !(ended[l] <= COARSE_TRUST * study->opts.t_cap);
            left += pending[l];
        }
        if (slow && !fine) *slow = 2 * left > all;
        if (left == 0) break;
    }
    if (slow && left == 0) *slow = false;
}

/* Lane l of the point, from the arrays of the method that found it. */
static void copy_lane(const cgam_bundle *g, int l, const double *s, double s_unit, const double *r,
                      const double *p, cgam_coupling_room *w)
{
    for (int64_t i = l; i < g->n * g->width; i += g->width) {
        w->s[i] = s_unit * s[i];
        w->r[i] = r[i];
        w->p[i] = p[i];
    }
}

void cgam_coupling_solve(const cgam_study *study, double alpha, double lambda, bool again,
                         bool *slow, cgam_coupling_room *w, cgam_coupling_point *out)
{
    const cgam_study_opts *o = &study->opts;
    const cgam_lanes *lanes = study->lanes;
    const cgam_bundle *g = &w->banks->g;
    const int width = g->width;
    const bool whole = !slow;
    int below[CGAM_LANES_MAX], above[CGAM_LANES_MAX], some = 0;
    for (int l = 0; l < width; l++) {
        below[l] = cgam_banks_subcritical(w->banks, l, alpha);
        above[l] = !below[l];
        some += below[l];
        out->iterations[l] = 0;
        out->ended[l] = below[l] ? NAN : o->t_cap;
    }
    if (lambda == 0) { /* gates alone */
        lanes->peak(g->n, o->beta, w->s0, w->scale, out->peak, w->e);
        for (int l = 0; l < width && whole; l++)
            copy_lane(g, l, w->s0, w->scale[l], w->s0, w->e, w);
        return;
    }
    if (some < width) {
        transients(study, alpha, lambda, above, again, slow, w, out);
        for (int l = 0; l < width && whole; l++)
            if (above[l]) copy_lane(g, l, w->fs, 1, w->fr, w->fp, w);
    }
    if (some == 0) return;
    double peak[CGAM_LANES_MAX] __attribute__((aligned(64)));
    for (int64_t i = 0; i < g->n * width; i++) w->base[i] = lambda * w->s0[i];
    memcpy(w->x, g->start, (size_t)(g->n * width) * sizeof *w->x);
    cgam_lanes_coupled c = {.beta = o->beta,
                            .lambda = lambda,
                            .tol = o->tol,
                            .max_iter = (int)o->max_iter,
                            .gain = w->gain,
                            .gain0 = w->gain + g->m * width,
                            .base = w->base,
                            .r = w->x,
                            .e = w->e,
                            .iterations = out->iterations,
                            .active = below};
    lanes->coupled(g, &c);
    lanes->peak(g->n, o->beta, w->x, NULL, peak, w->e);
    for (int l = 0; l < width; l++) {
        if (!below[l]) continue;
        out->peak[l] = peak[l];
        if (whole) copy_lane(g, l, w->x, 1 / lambda, w->x, w->e, w); /* no query: r = lambda s */
    }
}

void cgam_coupling_fold(const cgam_study *study, double lambda, cgam_coupling_room *w,
                        double *alpha)
{
    const int width = study->lanes->width;
    double folds[CGAM_LANES_MAX], alpha_max[CGAM_LANES_MAX];
    cgam_lanes_fold f = {.beta = study->opts.beta,
                         .lambda = lambda,
                         .alpha_max = alpha_max,
                         .tol = FOLD_TOL,
                         .work = w->fold,
                         .alpha = alpha,
                         .folds = folds,
                         .s = w->fs};
    for (int l = 0; l < width; l++) alpha_max[l] = w->banks->alpha_crit[l] * (1 - FOLD_MARGIN);
    study->lanes->fold(&w->banks->g, &f);
    for (int l = 0; l < width; l++)
        if (folds[l] == 0) alpha[l] = NAN;
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    const cgam_coupling *c = arg;
    cgam_coupling_room *w = opened;
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    int64_t first = i * BLOCK, end = first + cgam_block_trials(o, BLOCK, i);
    memset(record, 0, (size_t)c->record * sizeof *record);
    for (int64_t k = c->folds; k < c->record; k++) record[k] = NAN;
    for (int64_t from = first; from < end; from += width) {
        cgam_status status = cgam_coupling_draw(study, from, w);
        if (status != CGAM_OK) return status;
        int count = end - from < width ? (int)(end - from) : width;
        bool slow[CGAM_STUDY_LAMBDAS_MAX] = {false};
        for (int64_t a = 0; a < c->all.count; a++) {
            double alpha = c->all.at[a];
            bool again = false;
            if (cgam_interrupted(study->env)) return CGAM_E_INTERRUPTED;
            cgam_coupling_alpha(study, alpha, w);
            for (int64_t k = 0; k < o->lambda.count; k++) {
                int32_t place = c->place[k * c->all.count + a];
                if (place < 0) continue;
                cgam_coupling_point point;
                cgam_coupling_solve(study, alpha, o->lambda.values[k], again, &slow[k], w, &point);
                again = again || o->lambda.values[k] > 0;
                double *sums = record + c->at[k] + CGAM_COUPLED_SUMS * place;
                for (int l = 0; l < count; l++) {
                    if (!isfinite(point.peak[l]))
                        return cgam_fail(study->env, CGAM_E_INTERNAL,
                                         "trial %lld left the range of double at alpha = %.17g, "
                                         "lambda = %.17g",
                                         (long long)(from + l), alpha, o->lambda.values[k]);
                    cgam_record_add(&sums[0], &sums[1], from - first + l + 1, point.peak[l]);
                    sums[2] += point.iterations[l] > o->max_iter;
                }
            }
        }
        for (int64_t k = 0; k < o->lambda.count && from < o->fold_trials; k++) {
            double fold[CGAM_LANES_MAX];
            if (o->lambda.values[k] == 0) continue;
            if (cgam_interrupted(study->env)) return CGAM_E_INTERRUPTED;
            cgam_coupling_fold(study, o->lambda.values[k], w, fold);
            for (int l = 0; l < count && from + l < o->fold_trials; l++)
                record[c->folds + k * BLOCK + from - first + l] = fold[l];
        }
    }
    return CGAM_OK;
}

cgam_status cgam_coupled_run(cgam_study *study)
{
    cgam_coupling *c = cgam_zalloc(study->env, 1, sizeof *c);
    if (!c) return cgam_fail_nomem(study->env, "grids");
    cgam_status status = cgam_coupling_open(study, c);
    cgam_blocks b = {.count = (study->opts.trials + BLOCK - 1) / BLOCK,
                     .record = c->record,
                     .room = sizeof(cgam_coupling_room),
                     .open = cgam_coupling_room_open,
                     .close = cgam_coupling_room_close,
                     .block = count_block,
                     .tables = cgam_coupling_tables,
                     .arg = c};
    if (status == CGAM_OK) status = cgam_blocks_run(study, &b);
    cgam_coupling_close(study, c);
    cgam_free(study->env, c);
    return status;
}
