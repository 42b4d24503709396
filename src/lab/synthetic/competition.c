/* competition.c: when do gates choose? (paper, section 3.3 and appendix D.2, fig. 3 a-c)
 *
 * Each trial draws one cluster of unit memories and gives every gate the same input, u = 1/n. Below
 * alpha_crit the gates settle, s = A(alpha)^-1 u; at and above it s(t) is taken in closed form at
 * t_end = min(t*, t_cap) with
 *     t* = log1p(gamma L / (beta Delta_0)) / gamma,   L = ln((1-delta)(n-1)/delta),
 * gamma = alpha (1 - mu_min) - 1 and Delta_0 the gap between the two largest entries of P_min u.
 * What is reported is the mean over trials of max softmax(beta s).
 *
 * A block is 32 trials; its record holds mean and squared deviations of the peak for every alpha,
 * then at alpha_crit the number of memories above 1/n (mean, squared deviations, trials with two or
 * more), and the example's p [n] in the block that has it. */
#include "lab/synthetic/alphas.h"
#include "lab/synthetic/banks.h"
#include "lab/synthetic/trial.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 32 };

typedef struct setup {
    double alpha_crit;
    cgam_alphas alphas;
    int64_t record;
} setup;

cgam_status cgam_competition_check(cgam_env *env, const cgam_study_opts *o)
{
    if (o->example < o->trials) return CGAM_OK;
    return cgam_fail(env, CGAM_E_ARG, "example: no trial %lld (valid: 0 to %lld)",
                     (long long)o->example, (long long)o->trials - 1);
}

typedef struct room {
    cgam_banks *banks;
    double *s, *p, *f;               /* [n], [n], [m + 1] */
    double *peak, *lead, *t, *scale; /* [] */
} room;

static void room_close(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    cgam_banks_free(w->banks);
    cgam_free(study->env, w->s);
}

static cgam_status room_open(cgam_study *study, void *arg, void *opened)
{
    (void)arg;
    room *w = opened;
    const cgam_study_opts *o = &study->opts;
    cgam_status status = cgam_banks_new(study->env, study->lanes->width, o->n, o->d, &w->banks);
    if (status != CGAM_OK) return status;
    const cgam_slice slices[] = {{&w->s, o->n}, {&w->p, o->n}, {&w->f, w->banks->g.m + 1},
                                 {&w->peak, 1}, {&w->lead, 1}, {&w->t, 1},
                                 {&w->scale, 1}};
    return cgam_trial_room(study, sizeof slices / sizeof *slices, slices);
}

static cgam_status draw_bundle(cgam_study *study, int64_t first, room *w)
{
    cgam_status status = CGAM_OK;
    for (int l = 0; l < study->lanes->width && status == CGAM_OK; l++)
        status = cgam_banks_cluster(w->banks, l, study, CGAM_STREAM_COMPETITION, first + l);
    if (status == CGAM_OK) status = cgam_banks_decompose(w->banks, NULL);
    if (status == CGAM_OK) cgam_banks_lead(w->banks, w->lead);
    return status;
}

/* When the winner should have 1 - delta by theorem 3.3 with B = 0; t_cap where that is later. */
static void set_horizons(const cgam_study_opts *o, const cgam_banks *b, double alpha,
                         const double *lead, double *t)
{
    double L = log1p(-o->delta) + log((double)(o->n - 1)) - log(o->delta);
    for (int l = 0; l < b->g.width; l++) {
        double gamma = alpha * (1 - b->mu_min[l]) - 1, x = fmax(L, 0) / (o->beta * lead[l]);
        double time = fabs(gamma) > 1e-12 ? log1p(gamma * x) / gamma : x;
        t[l] = time < o->t_cap ? time : o->t_cap; /* no lead: x is infinite or NaN */
    }
}

/* Gates over scale and peak of the bundle at one alpha; p only when wanted. t is NAN where they
 * rest. */
static void make_gates(const cgam_study *study, double alpha, room *w, double *p)
{
    const cgam_study_opts *o = &study->opts;
    const cgam_bundle *g = &w->banks->g;
    double *f0 = w->f + g->m * g->width;
    set_horizons(o, w->banks, alpha, w->lead, w->t);
    cgam_banks_weights(w->banks, alpha, w->t, w->f, f0, w->scale);
    study->lanes->compose(g, w->f, f0, w->s);
    study->lanes->peak(g->n, o->beta, w->s, w->scale, w->peak, p);
    for (int l = 0; l < g->width; l++)
        if (cgam_banks_subcritical(w->banks, l, alpha)) w->t[l] = NAN;
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    const setup *u = arg;
    room *w = opened;
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    int64_t first = i * BLOCK, end = first + cgam_block_trials(o, BLOCK, i);
    double *above = record + 2 * u->alphas.count, *example = above + 3;
    memset(record, 0, (size_t)u->record * sizeof *record);
    for (int64_t from = first; from < end; from += width) {
        cgam_status status = draw_bundle(study, from, w);
        if (status != CGAM_OK) return status;
        int count = end - from < width ? (int)(end - from) : width;
        for (int64_t k = 0; k < u->alphas.count; k++) {
            if (cgam_interrupted(study->env)) return CGAM_E_INTERRUPTED;
            make_gates(study, u->alphas.at[k], w, NULL);
            for (int l = 0; l < count; l++)
                cgam_record_add(&record[2 * k], &record[2 * k + 1], from - first + l + 1,
                                w->peak[l]);
        }
        make_gates(study, u->alpha_crit, w, w->p);
        for (int l = 0; l < count; l++) {
            int64_t more = 0;
            for (int64_t j = 0; j < o->n; j++) more += w->p[j * width + l] > 1 / (double)o->n;
            cgam_record_add(&above[0], &above[1], from - first + l + 1, (double)more);
            above[2] += more > 1;
            for (int64_t j = 0; from + l == o->example && j < o->n; j++)
                example[j] = w->p[j * width + l];
        }
    }
    return CGAM_OK;
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    const setup *u = arg;
    const cgam_study_opts *o = &study->opts;
    const double n = (double)o->trials, uniform = 1 / (double)o->n;
    double several = 0;
    cgam_moments above = {0};
    int64_t alphas = u->alphas.count;
    cgam_study_add(study, "peak", "Mean over trials of the peak gate probability.",
                   "alpha,peak_mean,peak_se,trials,supercritical", NULL, alphas);
    for (int64_t k = 0; k < alphas; k++) {
        cgam_moments peak = {0};
        for (int64_t i = 0; i < b->count; i++) {
            const double *pair = b->records + i * u->record + 2 * k;
            cgam_moments_join(&peak, pair[0], pair[1], (double)cgam_block_trials(o, BLOCK, i));
        }
        CGAM_STUDY_ROW(study, u->alphas.at[k], peak.mean, cgam_moments_se(&peak), n,
                       u->alphas.at[k] >= u->alpha_crit * (1 - 1e-9));
    }
    const double *p = b->records + o->example / BLOCK * u->record + 2 * alphas + 3;
    cgam_study_add(study, "example", "Gates of one trial at alpha_crit.", "memory,p,uniform", NULL,
                   o->n);
    for (int64_t j = 0; j < o->n; j++) CGAM_STUDY_ROW(study, (double)j, p[j], uniform);
    for (int64_t i = 0; i < b->count; i++) {
        const double *three = b->records + i * u->record + 2 * alphas;
        cgam_moments_join(&above, three[0], three[1], (double)cgam_block_trials(o, BLOCK, i));
        several += three[2];
    }
    cgam_study_add(study, "onset", "Memories above 1/n at alpha_crit.",
                   "alpha,above_mean,above_se,share_two_or_more,trials", NULL, 1);
    CGAM_STUDY_ROW(study, u->alpha_crit, above.mean, cgam_moments_se(&above), several / n, n);
    if (study->status != CGAM_OK) return study->status;
    const cgam_table *peak = cgam_study_find(study, "peak");
    json_t *doc = study->doc, *shown = json_object();
    cgam_table_put(doc, peak, 0, alphas, "alpha,peak_mean,peak_se");
    cgam_json_put_real(doc, "alpha_crit", u->alpha_crit);
    cgam_json_add(shown, "alpha=%g trial=%jd p=%p", u->alpha_crit, o->example,
                  cgam_json_reals(p, o->n, 1));
    cgam_json_add(doc, "example=%p above_uniform_mean=%g", shown, above.mean);
    return CGAM_OK;
}

static cgam_status prepare(cgam_study *study, setup *u)
{
    const cgam_study_opts *o = &study->opts;
    cgam_status status = cgam_alphas_critical(study, CGAM_STREAM_COMPETITION, &u->alpha_crit);
    if (o->alphas.count > 0) cgam_alphas_given(&u->alphas, o->alphas);
    else cgam_alphas_competition(&u->alphas, u->alpha_crit);
    u->record = 2 * u->alphas.count + 3 + o->n;
    return status;
}

cgam_status cgam_competition_run(cgam_study *study)
{
    setup u;
    cgam_status status = prepare(study, &u);
    cgam_blocks b = {.count = (study->opts.trials + BLOCK - 1) / BLOCK,
                     .record = u.record,
                     .room = sizeof(room),
                     .open = room_open,
                     .close = room_close,
                     .block = count_block,
                     .tables = make_tables,
                     .arg = &u};
    return status == CGAM_OK ? cgam_blocks_run(study, &b) : status;
}

cgam_status cgam_competition_trial(cgam_study *study, int64_t k, json_t *doc)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width, lane = (int)(k % width);
    setup u;
    room opened = {0}, *w = &opened;
    cgam_status status = prepare(study, &u);
    if (status == CGAM_OK) status = room_open(study, &u, w);
    if (status == CGAM_OK) status = draw_bundle(study, k - lane, w);
    if (status == CGAM_OK) {
        const cgam_bundle *g = &w->banks->g;
        json_t *list = json_array();
        for (int64_t j = 0; j < u.alphas.count; j++) {
            json_t *at = json_object();
            make_gates(study, u.alphas.at[j], w, w->p);
            cgam_json_add(at, "alpha=%g t_end=%g peak=%g", u.alphas.at[j], w->t[lane],
                          w->peak[lane]);
            for (int64_t i = lane; i < o->n * width; i += width) w->s[i] *= w->scale[lane];
            cgam_json_add(at, "energy=%g s=%p p=%p",
                          cgam_banks_energy(w->banks, lane, u.alphas.at[j], o->beta, 0, w->s, NULL,
                                            NULL, NULL),
                          cgam_json_reals(w->s + lane, o->n, width),
                          cgam_json_reals(w->p + lane, o->n, width));
            json_array_append_new(list, at);
        }
        cgam_json_add(doc, "mu_min=%g alpha_crit=%g lead=%g mu=%p Z=%p alphas=%p",
                      w->banks->mu_min[lane], w->banks->alpha_crit[lane], w->lead[lane],
                      cgam_json_reals(g->mu + lane, o->n > o->d ? o->d : o->n, width),
                      cgam_trial_rows(g->Z + lane, o->n, o->d, width), list);
    }
    room_close(study, &u, w);
    return status;
}
