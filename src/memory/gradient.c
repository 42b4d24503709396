/* gradient.c: gradients of a recall, group by group (docs/theorems/implicit-gradient.md). */
#include "memory/gradient.h"

#include "base/alloc.h"
#include "base/blas.h"
#include "memory/route.h"
#include "num/rounding.h"

#include <math.h>
#include <string.h>

const char *const cgam_loss_words[] = {"nll", "readout", "margin", "own", NULL};

cgam_gradient_opts cgam_gradient_opts_default(void)
{
    return (cgam_gradient_opts){.loss = CGAM_LOSS_NLL, .margin = 1};
}

/* ---- Checks. ---------------------------------------------------------------------------------- */
static cgam_status check_finite(cgam_env *env, const char *name, int64_t queries, int64_t each,
                                const double *x)
{
    for (int64_t i = 0; x && i < queries * each; i++)
        if (!isfinite(x[i]))
            return cgam_fail(env, CGAM_E_VALUE,
                             "%s of query %lld has a number that is not finite, at %lld", name,
                             (long long)(i / each), (long long)(i % each));
    return CGAM_OK;
}

static cgam_status check_plan(const cgam_recall *plan, const cgam_gradient *out)
{
    cgam_env *env = plan->bank->env;
    const cgam_recall_opts *o = &plan->opts;
    if (o->mode != CGAM_FIRST && o->mode != CGAM_COUPLED)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "a gradient requires mode first or coupled, not mode %s",
                         cgam_word(cgam_mode_words, o->mode));
    if (o->fast)
        return cgam_fail(env, CGAM_E_UNSUPPORTED,
                         "a gradient reads every row: fast is not possible");
    if (out->P && o->W)
        return cgam_fail(env, CGAM_E_ARG,
                         "the gradient of P was requested, and the plan has gate weights W");
    if (o->mode == CGAM_FIRST && o->alpha > 0 && plan->gate->info.regime == CGAM_CRITICAL)
        return cgam_fail(
            env, CGAM_E_SINGULAR,
            "A(alpha) has no inverse at alpha = %.17g, its critical value: there is no "
            "gradient",
            o->alpha);
    return cgam_bank_alone(plan->bank, "a gradient");
}

static cgam_status check_input(const cgam_recall *plan, const cgam_gradient_in *in,
                               const cgam_gradient_opts *o, const cgam_gradient *out)
{
    cgam_env *env = plan->bank->env;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, count = in->recall.queries;
    if ((unsigned)o->loss > CGAM_LOSS_OWN)
        return cgam_fail(env, CGAM_E_ARG, "invalid loss %d (valid: 0 to %d)", (int)o->loss,
                         CGAM_LOSS_OWN);
    if ((o->loss == CGAM_LOSS_NLL || o->loss == CGAM_LOSS_MARGIN) && !in->recall.target)
        return cgam_fail(env, CGAM_E_ARG, "loss %s requires a target for each query",
                         cgam_loss_words[o->loss]);
    if (o->loss == CGAM_LOSS_READOUT && !in->x)
        return cgam_fail(env, CGAM_E_ARG, "loss readout requires x, what each readout should be");
    if (o->loss == CGAM_LOSS_OWN && !in->dp && !in->dr && !in->dy)
        return cgam_fail(env, CGAM_E_ARG, "loss own requires a derivative: dp, dr or dy");
    if (!isfinite(o->margin))
        return cgam_fail(env, CGAM_E_ARG, "margin is %g, it must be finite", o->margin);
    if (o->leave_out && !out->left_out)
        return cgam_fail(env, CGAM_E_ARG, "leave_out requires left_out");
    bool own = o->loss == CGAM_LOSS_OWN;
    cgam_status status = check_finite(env, "the weight", count, 1, in->weight);
    if (status == CGAM_OK && o->loss == CGAM_LOSS_READOUT)
        status = check_finite(env, "x", count, d, in->x);
    if (status == CGAM_OK && own) status = check_finite(env, "dp", count, n, in->dp);
    if (status == CGAM_OK && own) status = check_finite(env, "dr", count, n, in->dr);
    if (status == CGAM_OK && own) status = check_finite(env, "dy", count, d, in->dy);
    return status;
}

/* ---- A group. --------------------------------------------------------------------------------- */
typedef struct group {
    cgam_slope slope;
    int64_t most;                  /* queries of a group, at most */
    double *sums;                  /* [3 most, d] Z'w, Z't, Z's */
    double *context;               /* [most, d_c] */
    double *own_pi;                /* [most, n], or NULL */
    double *alpha, *beta, *lambda; /* sums so far */
} group;

static void group_free(group *g)
{
    cgam_slope *x = &g->slope;
    cgam_free_all(x->plan->bank->env, x->results, x->none, x->scale, x->w, x->p, x->r, x->h,
                  x->through, g->own_pi, x->y, x->dy, g->sums, g->context);
}

static cgam_status group_new(group *g)
{
    cgam_slope *x = &g->slope;
    const cgam_recall *plan = x->plan;
    const cgam_gradient_in *in = x->in;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, most = g->most;
    bool own = x->opts->loss == CGAM_LOSS_OWN, sparse = cgam_recall_sparse(plan);
    bool through = x->opts->loss == CGAM_LOSS_MARGIN || (own && in->dr);
    x->reads = x->opts->loss == CGAM_LOSS_READOUT || (own && in->dy);
    x->of_rows = x->out->Z || x->opts->rows;
    bool readout = x->opts->loss == CGAM_LOSS_READOUT || x->out->readout;
    cgam_status status = cgam_alloc_all(
        plan->bank->env, "the vectors of a gradient", CGAM_ARRAY(x->results, most),
        CGAM_ZEROS(x->none, most), CGAM_ARRAY(x->scale, most), CGAM_ZEROS(x->w, 3 * most * n),
        CGAM_ARRAY(x->p, most * n), CGAM_ARRAY(x->r, most * n), CGAM_ZEROS(x->h, most * n),
        CGAM_ZEROS(x->through, through ? most * n : 1),
        CGAM_ARRAY(g->own_pi, sparse ? most * n : 1), CGAM_ARRAY(x->y, readout ? most * d : 1),
        CGAM_ZEROS(x->dy, x->reads ? most * d : 1), CGAM_ARRAY(g->sums, 3 * most * d),
        CGAM_ARRAY(g->context, most * plan->d_c));
    if (status != CGAM_OK) return status;
    if (!through) cgam_free(plan->bank->env, x->through), x->through = NULL;
    if (!readout) cgam_free(plan->bank->env, x->y), x->y = NULL;
    return CGAM_OK;
}

/* Runs the recall of the group: p, s, r and results. */
static cgam_status settle(group *g)
{
    cgam_slope *x = &g->slope;
    const cgam_recall *plan = x->plan;
    const cgam_gradient *out = x->out;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, from = x->from, count = x->count;
    cgam_recall_in in = x->in->recall;
    in.queries = count;
    in.q += from * d;
    if (in.c && in.c_per_query) in.c += from * plan->d_c;
    if (in.target) in.target += from;
    if (in.start) in.start += from * n;
    x->t = x->w + count * n; /* adjacent: their sums take one pass */
    x->s = x->t + count * n;
    size_t all = (size_t)(count * n);
    memset(x->none, 0, (size_t)count * sizeof *x->none);
    memset(x->h, 0, all * sizeof *x->h);
    memset(x->w, 0, 2 * all * sizeof *x->w);
    if (x->through) memset(x->through, 0, all * sizeof *x->through);
    cgam_status status = cgam_recall_run(
        plan, &in, &(cgam_recall_out){.results = x->results, .p = x->p, .s = x->s, .r = x->r});
    if (status != CGAM_OK) return status;
    x->pi = cgam_recall_sparse(plan) ? g->own_pi : x->p;
    for (int64_t k = 0; k < count; k++) {
        x->scale[k] = 1;
        if (cgam_recall_sparse(plan))
            x->scale[k] = cgam_recall_slopes(plan, x->p + k * n, x->pi + k * n);
    }
    if (out->results) memcpy(out->results + from, x->results, (size_t)count * sizeof *x->results);
    if (out->p) memcpy(out->p + from * n, x->p, all * sizeof *x->p);
    if (out->r) memcpy(out->r + from * n, x->r, all * sizeof *x->r);
    return CGAM_OK;
}

/* ---- From t and w to gradients. --------------------------------------------------------------- */
static double dot(const group *g, const double *x, const double *y)
{
    return cgam_vec_dot(&g->slope.plan->bank->Z, x, y);
}

static void add_numbers(group *g, int64_t k)
{
    const cgam_slope *x = &g->slope;
    const cgam_recall_opts *o = &x->plan->opts;
    int64_t n = x->plan->bank->Z.n, d = x->plan->bank->Z.d;
    const double *t = x->t + k * n, *w = x->w + k * n, *s = x->s + k * n, *r = x->r + k * n;
    const double *Zt = g->sums + (x->count + k) * d, *Zs = g->sums + (2 * x->count + k) * d;
    const double *norm2 = x->plan->bank->norm2;
    if (x->none[k]) return;
    if (g->lambda) {
        *g->lambda += dot(g, w, s); /* = t'(u + lambda p), or t'u */
        if (o->mode == CGAM_COUPLED) *g->lambda += o->lambda * dot(g, t, x->p + k * n);
    }
    if (g->beta) { /* through p only; C 1 = 0 without a ghost, which is at 0 here */
        double base = o->none ? o->none_score : cgam_vec_max(&x->plan->bank->Z, r), sum = 0;
        const double *through = x->through ? x->through + k * n : NULL;
        for (int64_t i = 0; i < n; i++) sum += (w[i] - (through ? through[i] : 0)) * (r[i] - base);
        *g->beta += sum / o->beta;
    }
    if (g->alpha) {
        double sum = 0, apart = 0;
        for (int64_t j = 0; j < d; j++) sum += Zt[j] * Zs[j];
        for (int64_t i = 0; i < n; i++) apart += norm2[i] * t[i] * s[i];
        *g->alpha -= o->lambda * (sum - apart);
    }
}

/* The contexts of the group as rows; zero without one. */
static void load_contexts(group *g)
{
    const cgam_slope *x = &g->slope;
    const cgam_recall_in *in = &x->in->recall;
    int64_t d_c = x->plan->d_c;
    for (int64_t k = 0; k < x->count; k++) {
        double *to = g->context + k * d_c;
        const double *c = in->c ? in->c + (in->c_per_query ? x->from + k : 0) * d_c : NULL;
        if (c) memcpy(to, c, (size_t)d_c * sizeof *to);
        else memset(to, 0, (size_t)d_c * sizeof *to);
    }
}

/* dL/dc of the group: lambda P'Z't or lambda W't. */
static cgam_status add_contexts(group *g, const double *Zt)
{
    const cgam_slope *x = &g->slope;
    const cgam_recall *plan = x->plan;
    const cgam_recall_opts *o = &plan->opts;
    int64_t d = plan->bank->Z.d, d_c = plan->d_c;
    bool shared = x->in->recall.c && !x->in->recall.c_per_query;
    double *one = g->context; /* free again; one row at a time */
    for (int64_t k = 0; k < x->count; k++) {
        if (o->W) {
            cgam_status status = cgam_vec_weigh_back(plan->bank->env, &plan->bank->Z, d_c, o->W,
                                                     x->t + k * plan->bank->Z.n, one);
            if (status != CGAM_OK) return status;
        } else if (o->P) {
            cblas_dgemv(CblasRowMajor, CblasTrans, (int)d, (int)d_c, 1, o->P, (int)d_c, Zt + k * d,
                        1, 0, one, 1);
        } else {
            memcpy(one, Zt + k * d, (size_t)d * sizeof *one);
        }
        double *to = x->out->c + (shared ? 0 : (x->from + k) * d_c);
        for (int64_t j = 0; j < d_c; j++) to[j] = (shared ? to[j] : 0) + o->lambda * one[j];
    }
    return CGAM_OK;
}

/* out [rows, columns] += factor X'Y, X [count, rows], Y [count, columns]. */
static void add_product(double factor, int64_t count, int64_t rows, const double *X,
                        int64_t columns, const double *Y, double *out)
{
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)rows, (int)columns, (int)count,
                factor, X, (int)rows, Y, (int)columns, 1, out, (int)columns);
}

/* The proved bounds of every query, if requested. */
static cgam_status bound_errors(const group *g)
{
    const cgam_slope *x = &g->slope;
    const cgam_rows *Z = &x->plan->bank->Z;
    double lambda = x->plan->opts.lambda;
    cgam_status status = CGAM_OK;
    if (!x->out->b_error && !x->out->u_error) return CGAM_OK;
    for (int64_t k = 0; k < x->count && status == CGAM_OK; k++) {
        double off_w, off_t, size = cgam_vec_norm(Z, x->t + k * Z->n);
        status = cgam_slope_bound(x, k, &off_w, &off_t);
        if (x->out->b_error) x->out->b_error[x->from + k] = off_w;
        if (x->out->u_error) /* lambda t is rounded */
            x->out->u_error[x->from + k] =
                (lambda * (off_t + 2 * CGAM_U * size) + CGAM_TINY * (double)Z->n) * CGAM_SLACK;
    }
    return status;
}

static cgam_status spread(group *g)
{
    const cgam_slope *x = &g->slope;
    const cgam_recall *plan = x->plan;
    const cgam_gradient *out = x->out;
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, count = x->count;
    double lambda = plan->opts.lambda;
    const double *Zt = g->sums + count * d, *Zs = Zt + count * d;
    bool of_s = g->alpha || (x->of_rows && plan->gate->a > 0);
    bool of_t = of_s || out->P || (out->c && !plan->opts.W);
    int64_t kinds = of_s ? 3 : of_t ? 2 : out->q ? 1 : 0;
    cgam_status status = CGAM_OK;
    if (kinds > 0) status = cgam_slope_sums(plan, kinds * count, x->w, g->sums);
    for (int64_t k = 0; k < count && status == CGAM_OK; k++) {
        int64_t at = x->from + k;
        if (out->left_out) out->left_out[at] = x->none[k];
        if (x->none[k] && x->reads) memset(x->dy + k * d, 0, (size_t)d * sizeof *x->dy);
        if (out->b) memcpy(out->b + at * n, x->w + k * n, (size_t)n * sizeof *out->b);
        for (int64_t i = 0; out->u && i < n; i++) out->u[at * n + i] = lambda * x->t[k * n + i];
        if (out->q) memcpy(out->q + at * d, g->sums + k * d, (size_t)d * sizeof *out->q);
        if (out->readout) memcpy(out->readout + at * d, x->y + k * d, (size_t)d * sizeof *x->y);
        add_numbers(g, k);
    }
    if (status != CGAM_OK) return status;
    load_contexts(g);
    if (out->P) add_product(lambda, count, d, Zt, plan->d_c, g->context, out->P);
    if (out->W) add_product(lambda, count, n, x->t, plan->d_c, g->context, out->W);
    if (out->c) status = add_contexts(g, Zt);
    return status == CGAM_OK && x->of_rows ? cgam_slope_rows(x, Zs, Zt) : status;
}

/* ---- The call. -------------------------------------------------------------------------------- */
static void clear_sums(const cgam_recall *plan, const cgam_gradient_in *in,
                       const cgam_gradient *out)
{
    int64_t n = plan->bank->Z.n, d = plan->bank->Z.d, d_c = plan->d_c;
    bool shared = in->recall.c && !in->recall.c_per_query;
    const struct {
        double *at;
        int64_t count;
    } sums[] = {{out->P, d * d_c},
                {out->W, n * d_c},
                {out->Z, n * d},
                {out->alpha, 1},
                {out->beta, 1},
                {out->lambda, 1},
                {shared ? out->c : NULL, d_c}};
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++)
        if (sums[k].at) memset(sums[k].at, 0, (size_t)sums[k].count * sizeof *sums[k].at);
}

cgam_status cgam_recall_gradient(const cgam_recall *plan, const cgam_gradient_in *in,
                                 const cgam_gradient_opts *opts, const cgam_gradient *out)
{
    cgam_gradient_opts o = opts ? *opts : cgam_gradient_opts_default();
    bool wanted = o.rows || out->positive || out->b || out->b_error || out->u_error || out->u ||
                  out->q || out->c || out->P || out->W || out->Z || out->alpha || out->beta ||
                  out->lambda;
    group g = {.slope = {.plan = plan, .in = in, .opts = &o, .out = out},
               .most =
                   in->recall.queries < CGAM_RECALL_GROUP ? in->recall.queries : CGAM_RECALL_GROUP,
               .alpha = out->alpha,
               .beta = out->beta,
               .lambda = out->lambda};
    cgam_status status = check_plan(plan, out);
    if (status == CGAM_OK) status = check_input(plan, in, &o, out);
    if (status != CGAM_OK) return status;
    clear_sums(plan, in, out);
    if (in->recall.queries == 0) return CGAM_OK;
    status = group_new(&g);
    for (int64_t k = 0; k < in->recall.queries && status == CGAM_OK; k += g.most) {
        g.slope.from = k;
        g.slope.count = in->recall.queries - k < g.most ? in->recall.queries - k : g.most;
        status = settle(&g);
        if (status == CGAM_OK) status = cgam_slope_aim(&g.slope);
        if (status == CGAM_OK && wanted) status = cgam_slope_solve(&g.slope);
        if (status == CGAM_OK) status = bound_errors(&g);
        if (status == CGAM_OK) status = spread(&g);
    }
    group_free(&g);
    return status;
}
