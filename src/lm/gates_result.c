/* gates_result.c: the tables and the document of study_gates.c. */
#include "lm/study_gates.h"
#include "num/stats.h"

#include <math.h>

enum { GRID_TABLE, SPECTRUM_TABLE };

void cgam_gates_begin(gating *g)
{
    cgam_lm_result_add(
        g->result, "gates", "answers under the gate operator, by alpha and mode",
        "shots,alpha,coupled,lambda_0,lambda_1,restricted,restricted_se,full,full_se,"
        "neff,neff_ipr,argmax_changed,label_changed,p_max,unique_share,settled_share,"
        "iterations");
    cgam_lm_result_add(g->result, "gates_spectrum", "eigenvalues of Z'Z, the largest first",
                       "mode,mu,share");
}

/* Means over queries. */
typedef struct means {
    double neff, neff_ipr, changed, label_changed, p, unique, settled, iterations;
} means;

static means means_of(int64_t n, const cgam_gates_answer *now, const cgam_gates_answer *before)
{
    means m = {0};
    for (int64_t i = 0; i < n; i++) {
        m.neff += now[i].log_neff_entropy;
        m.neff_ipr += now[i].log_neff_ipr;
        m.changed += now[i].winner != before[i].winner;
        m.label_changed += now[i].label != before[i].label;
        m.p += now[i].p;
        m.unique += now[i].unique;
        m.settled += now[i].settled;
        m.iterations += (double)now[i].iterations;
    }
    double all = (double)n;
    return (means){exp(m.neff / all), exp(m.neff_ipr / all), m.changed / all, m.label_changed / all,
                   m.p / all,         m.unique / all,        m.settled / all, m.iterations / all};
}

static void put_mode(gating *g, gated *s, double alpha, const cgam_gates_answers *out, bool coupled,
                     const cgam_gates_answer *now, const cgam_gates_answer *before)
{
    json_t *o = json_object();
    means m = means_of(g->n, now, before);
    bool *right[2] = {s->right + 4 * g->n, s->right + 5 * g->n};
    cgam_share share[2];
    for (int64_t i = 0; i < g->n; i++) {
        int64_t target = g->trial.target[i];
        right[0][i] = target >= 0 && now[i].label == target;
        right[1][i] =
            target >= 0 && now[i].winner == g->tokens[target] && (!g->goes_on || g->goes_on[i]);
    }
    for (int over = 0; over < 2; over++) share[over] = cgam_trial_share(&g->trial, right[over]);
    double unique = coupled ? m.unique : (double)NAN, settled = coupled ? m.settled : (double)NAN;
    cgam_json_put_real(o, "alpha", alpha);
    cgam_json_put_text(o, "mode", cgam_mode_name(coupled ? CGAM_COUPLED : CGAM_FIRST));
    cgam_json_put_real(o, "lambda", 0.5 * (out->lambda[0] + out->lambda[1]));
    cgam_json_put(o, "lambdas", cgam_json_reals(out->lambda, 2, 1));
    for (int over = 0; over < 2; over++) {
        const char *of = cgam_sweep_over_name((cgam_sweep_over)over);
        char name[32];
        cgam_json_put_real(o, of, share[over].mean);
        snprintf(name, sizeof name, "%s_se", of);
        cgam_json_put_real(o, name, share[over].se);
        snprintf(name, sizeof name, "%s_right", of);
        cgam_trial_put_right(&g->trial, o, name, right[over]);
    }
    cgam_json_put_real(o, "neff", m.neff);
    cgam_json_put_real(o, "neff_ipr", m.neff_ipr);
    cgam_json_put_real(o, "argmax_changed", m.changed);
    cgam_json_put_real(o, "label_changed", m.label_changed);
    cgam_json_put_real(o, "p_max", m.p);
    cgam_json_put_real(o, "unique_share", unique);
    cgam_json_put_real(o, "settled_share", settled);
    json_array_append_new(s->grid, o);
    cgam_lm_result_row(g->result, GRID_TABLE,
                       (double[]){(double)s->k, alpha, coupled, out->lambda[0], out->lambda[1],
                                  share[0].mean, share[0].se, share[1].mean, share[1].se, m.neff,
                                  m.neff_ipr, m.changed, m.label_changed, m.p, unique, settled,
                                  coupled ? m.iterations : (double)NAN});
}

void cgam_gates_put(gating *g, gated *s, double alpha, const cgam_gates_answers *out)
{
    if (!s->grid) s->grid = json_array();
    if (!g->opts->no_first) put_mode(g, s, alpha, out, false, out->first, s->answers);
    if (out->coupled) put_mode(g, s, alpha, out, true, out->coupled, out->first);
}

/* ---- The document ------------------------------------------------------------------------- */
static void put_own(gating *g, const gated *s, json_t *entry, const char *name, int which)
{
    json_t *o = json_object();
    for (int over = 0; over < 2; over++) {
        const char *of = cgam_sweep_over_name((cgam_sweep_over)over);
        const bool *right = s->right + (2 * which + over) * g->n;
        char key[32];
        cgam_json_put_real(o, of, cgam_trial_share(&g->trial, right).mean);
        snprintf(key, sizeof key, "%s_right", of);
        cgam_trial_put_right(&g->trial, o, key, right);
    }
    cgam_json_put(entry, name, o);
}

static json_t *shot_json(gating *g, gated *s)
{
    json_t *entry = json_object(), *layers = json_array();
    cgam_json_put_int(entry, "k", s->k);
    cgam_json_put_int(entry, "queries", g->trial.counted);
    cgam_json_put_int(entry, "left_out", g->n - g->trial.counted);
    for (int h = 0; h < 2; h++) {
        json_t *o = json_object();
        cgam_json_put_int(o, "context_layer", s->layer[h].context);
        cgam_json_put_int(o, "query_layer", s->layer[h].query);
        json_array_append_new(layers, o);
    }
    cgam_json_put(entry, "layers", layers);
    put_own(g, s, entry, "zero_shot", 0);
    put_own(g, s, entry, "icl", 1);
    cgam_json_put(entry, "grid", s->grid ? s->grid : json_array());
    s->grid = NULL;
    return entry;
}

static void put_spectrum(gating *g, const cgam_gates_info *info)
{
    double total = 0;
    for (int64_t k = 0; k < info->modes; k++) total += info->mu[k];
    for (int64_t k = 0; k < info->modes; k++) {
        double mu = info->mu[info->modes - 1 - k];
        cgam_lm_result_row(g->result, SPECTRUM_TABLE,
                           (double[]){(double)k, mu, total > 0 ? mu / total : (double)NAN});
    }
    cgam_json_put_real(g->result->doc, "mu_share",
                       total > 0 ? info->gram.mu_max / total : (double)NAN);
}

void cgam_gates_finish(gating *g)
{
    json_t *doc = g->result->doc, *shots = json_array(), *seconds = json_object();
    cgam_gates_info info = cgam_gates_describe(g->gates);
    cgam_bank_info bank = cgam_bank_describe(g->bank);
    const cgam_critical *crit = &info.critical;
    cgam_lm_result_describe(g->result, g->study, g->trial.task);
    cgam_json_put_text(doc, "answer", cgam_lm_answer_name(cgam_lm_task_answer(g->trial.task)));
    cgam_json_put_text(doc, "rows", g->opts->unit ? "unit" : "raw");
    cgam_json_put_real(doc, "alpha_crit", isnan(crit->alpha) ? crit->alpha_lo : crit->alpha);
    cgam_json_put(doc, "alpha_crit_bounds",
                  cgam_json_reals((double[]){crit->alpha_lo, crit->alpha_hi}, 2, 1));
    cgam_json_put_real(doc, "norm_min", bank.norm_min);
    cgam_json_put_real(doc, "norm_max", bank.norm_max);
    cgam_json_put_real(doc, "mu_min", info.gram.mu_min);
    cgam_json_put_real(doc, "mu_max", info.gram.mu_max);
    cgam_json_put_int(doc, "rank", info.gram.rank);
    put_spectrum(g, &info);
    cgam_json_put_text(doc, "over", cgam_sweep_over_name(g->opts->over));
    cgam_json_put_text(doc, "lambda_scale", g->opts->absolute ? "absolute" : "relative");
    cgam_json_put_bool(doc, "in_sample", g->opts->in_sample);
    cgam_json_put(doc, "alphas", cgam_json_reals(g->alpha, g->alphas, 1));
    cgam_json_put_real(seconds, "set_up", g->seconds.set_up);
    cgam_json_put_real(seconds, "first", g->seconds.first);
    cgam_json_put_real(seconds, "coupled", g->seconds.coupled);
    cgam_json_put(doc, "seconds", seconds);
    for (int64_t k = 0; k < g->count; k++) json_array_append_new(shots, shot_json(g, &g->shot[k]));
    cgam_json_put(doc, "shots", shots);
}
