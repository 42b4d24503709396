/* gradient_loss.c: the loss of each query, and the right side h = beta C g + dL/dr of its linear system.
 *
 * -log p_t has g = -e_t / p_t, which is out of range long before its gradient is: with softmax
 *     beta C g = -beta (e_t - p)
 * needs no division, and with entmax C g = -(omega / p_t) (pi_t e_t - pi_t pi). */
#include "memory/gradient.h"

#include "memory/stages.h"

#include <math.h>
#include <string.h>

void cgam_slope_jacobian(const cgam_slope *g, int64_t k, const double *x, double *out)
{
    const cgam_rows *Z = &g->plan->bank->Z;
    const double *pi = g->pi + k * Z->n;
    double mean = cgam_vec_dot(Z, pi, x), scale = g->scale[k];
    for (int64_t i = 0; i < Z->n; i++) out[i] = scale * pi[i] * (x[i] - mean);
}

static int64_t target_of(const cgam_slope *g, int64_t k)
{
    return cgam_bank_place(g->plan->bank, g->in->recall.target[g->from + k]);
}

static cgam_status nll(cgam_slope *g, int64_t k, double weight, double *loss)
{
    const cgam_recall_opts *o = &g->plan->opts;
    int64_t n = g->plan->bank->Z.n, t = target_of(g, k);
    const double *pi = g->pi + k * n, *p = g->p + k * n;
    double *h = g->h + k * n;
    *loss = -g->results[k].log_p;
    if (isinf(*loss) && cgam_recall_sparse(g->plan))
        return cgam_slope_none(g, k, CGAM_E_VALUE,
                               "gives its target weight 0, where -log p has no gradient; use loss "
                               "readout or margin");
    double factor =
        -weight * o->beta * (cgam_recall_sparse(g->plan) ? g->scale[k] * pi[t] / p[t] : 1);
    for (int64_t i = 0; i < n; i++) h[i] = -factor * pi[i];
    h[t] = factor * (1 - pi[t]);
    if (pi[t] > 0.5) { /* 1 - p of a clear winner from the others, the ghost included */
        double others = o->none ? g->results[k].p_none : 0;
        for (int64_t i = 0; i < n; i++) others += i == t ? 0 : pi[i];
        h[t] = factor * others;
    }
    return CGAM_OK;
}

static void margin(cgam_slope *g, int64_t k, double weight, double *loss)
{
    const cgam_recall_opts *o = &g->plan->opts;
    int64_t n = g->plan->bank->Z.n, t = target_of(g, k), rival = -1;
    const double *r = g->r + k * n;
    double *h = g->through + k * n, best = o->none ? o->none_score : -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (i == t || !(r[i] > best)) continue;
        best = r[i];
        rival = i;
    }
    *loss = fmax(0, g->opts->margin - (r[t] - best));
    if (!(*loss > 0)) return;
    h[t] = -weight;
    if (rival >= 0) h[rival] = weight;
}

/* h = through + beta C (dL/dp + Z dL/dy). */
static void pull(cgam_slope *g, int64_t k, const double *dp, double weight, const double *Zdy)
{
    int64_t n = g->plan->bank->Z.n;
    double *h = g->h + k * n;
    for (int64_t i = 0; i < n; i++) h[i] = (dp ? weight * dp[i] : 0) + (Zdy ? Zdy[i] : 0);
    cgam_slope_jacobian(g, k, h, h);
    for (int64_t i = 0; i < n; i++)
        h[i] = g->plan->opts.beta * h[i] + (g->through ? g->through[k * n + i] : 0);
}

static cgam_status aim_query(cgam_slope *g, int64_t k, const double *Zdy)
{
    const cgam_gradient_in *in = g->in;
    int64_t n = g->plan->bank->Z.n, d = g->plan->bank->Z.d, at = g->from + k;
    double weight = in->weight ? in->weight[at] : 1, loss = 0;
    cgam_status status = CGAM_OK;
    switch (g->opts->loss) {
    case CGAM_LOSS_NLL: status = nll(g, k, weight, &loss); break;
    case CGAM_LOSS_MARGIN:
        margin(g, k, weight, &loss);
        memcpy(g->h + k * n, g->through + k * n, (size_t)n * sizeof *g->h);
        break;
    case CGAM_LOSS_READOUT:
        for (int64_t j = 0; j < d && g->y; j++) {
            double off = g->y[k * d + j] - in->x[at * d + j];
            loss += off * off;
        }
        pull(g, k, NULL, weight, Zdy + k * n);
        break;
    case CGAM_LOSS_OWN:
        if (in->dr)
            for (int64_t i = 0; i < n; i++) g->through[k * n + i] = weight * in->dr[at * n + i];
        pull(g, k, in->dp ? in->dp + at * n : NULL, weight, Zdy ? Zdy + k * n : NULL);
        break;
    }
    if (g->out->loss) g->out->loss[at] = g->opts->loss == CGAM_LOSS_OWN ? (double)NAN : loss;
    return status;
}

cgam_status cgam_slope_aim(cgam_slope *g)
{
    const cgam_gradient_in *in = g->in;
    int64_t d = g->plan->bank->Z.d;
    cgam_status status = CGAM_OK;
    if (g->y) status = cgam_slope_sums(g->plan, g->count, g->p, g->y);
    for (int64_t k = 0; k < g->count && g->reads; k++) {
        int64_t at = g->from + k;
        double weight = in->weight ? in->weight[at] : 1;
        for (int64_t j = 0; j < d; j++)
            g->dy[k * d + j] = weight * (g->opts->loss == CGAM_LOSS_READOUT && g->y
                                             ? 2 * (g->y[k * d + j] - in->x[at * d + j])
                                             : in->dy[at * d + j]);
    }
    double *Zdy = g->reads ? g->t : NULL; /* t is not needed yet */
    if (status == CGAM_OK && g->reads) status = cgam_slope_scores(g->plan, g->count, g->dy, Zdy);
    for (int64_t k = 0; k < g->count && status == CGAM_OK; k++)
        if (!g->none[k]) status = aim_query(g, k, Zdy);
    return status;
}
