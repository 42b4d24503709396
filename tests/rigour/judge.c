/* judge.c: the claims of an instance, put to its courts one by one, and what came of it. */
#include "rigour/court.h"

#include <math.h>
#include <stdio.h>

enum {
    JUDGED = 2, /* queries of a batch of a middle bank, */
    MINIMA = 4, /* and minima of its landscape */
    TWICE = 37, /* every how many instances all courts judge */
};

const char *const claim_names[CLAIMS] = {"alpha_crit_bounds",
                                         "alpha_crit",
                                         "bounds from norms",
                                         "eta_min",
                                         "regime",
                                         "lambda_unique_max",
                                         "p_lower_bound",
                                         "contraction",
                                         "unique",
                                         "two fixed points",
                                         "fold_margin",
                                         "local_contraction",
                                         "p_error",
                                         "sum of p",
                                         "converged",
                                         "energy",
                                         "exact",
                                         "point",
                                         "several",
                                         "margin of a point",
                                         "p_from, p_to",
                                         "score_error",
                                         "p and gaps",
                                         "gradient",
                                         "stable",
                                         "readout_error_bound"};

typedef struct trial {
    const instance *x;
    const cgam_gate_info *gate;
    bool ordinary;
    tally *t;
    quick_court *quick; /* NULL: none */
    const court_kind *kind;
    court full; /* once it was asked */
    bool opened;
} trial;

static void tell(const trial *j, int64_t k, const answer *a, claim what, verdict is)
{
    const cgam_gate_info *g = j->gate;
    printf("%s: %s is not true%s (%s court)\n", is == WRONG ? "WRONG" : "OPEN", claim_names[what],
           is == WRONG ? "" : ", as far as can be told", j->kind->name);
    instance_print(j->x);
    printf("    regime %s, eta_min %.17g%s, alpha_crit %.17g in [%.17g, %.17g]%s\n",
           cgam_word(cgam_regime_words, g->regime), g->eta_min, g->eta_min_exact ? " exact" : "",
           g->critical.alpha, g->critical.alpha_lo, g->critical.alpha_hi,
           g->critical.proved ? " proved" : "");
    if (!a) return;
    const cgam_result *r = &a->result;
    printf("    gap %.17g, raw %.17g, gate %.17g, log_p %.17g, neff %.17g\n", r->gap, r->gap_raw,
           r->gap_gate, r->log_p, r->neff_ipr);
    printf("    query %lld: end %s, p %.17g, bound %.17g, contraction %.17g, local %.17g, margin "
           "%.17g%s, p_error %.17g, change %.3g, energy %.17g to %.17g, rise %.3g, "
           "%lld steps, %lld of Newton, tol %.3g\n",
           (long long)k, cgam_word(cgam_end_words, r->end), r->p, r->p_lower_bound, r->contraction,
           r->local_contraction, r->fold_margin, r->fold_margin_exact ? " exact" : "", r->p_error,
           r->change, r->energy_start, r->energy_end, r->energy_rise, (long long)r->iterations,
           (long long)r->newton_steps, j->x->opts.tol);
}

static court *full_court(trial *j)
{
    if (!j->opened) court_open(&j->full, j->kind, j->x, PRECISION);
    j->opened = true;
    return &j->full;
}

static verdict decide_fully(trial *j, int64_t k, const answer *a, claim what)
{
    court *c = full_court(j);
    verdict is = decide(c, j->gate, k, a, what);
    while (is == OPEN && c->prec < PRECISION_MAX) {
        court_fill(c, 2 * c->prec);
        is = decide(c, j->gate, k, a, what);
    }
    if (c->prec != PRECISION) court_fill(c, PRECISION);
    return is;
}

/* Long double finds it right, or Arb decides; both do where all courts judge. */
static void judge_claim(trial *j, int64_t k, const answer *a, claim what)
{
    tally *t = j->t;
    verdict quick = j->quick ? quick_decide(j->quick, j->gate, k, a, what) : OPEN;
    t->quick[what] += quick == RIGHT;
    if (quick == RIGHT && j->x->number % TWICE) return;
    verdict is = decide_fully(j, k, a, what);
    t->wrong[what] += is == WRONG;
    t->open[what] += is == OPEN;
    if (is != RIGHT && t->wrong[what] + t->open[what] <= 5) tell(j, k, a, what, is);
}

static bool lost(trial *j, int64_t k, const answer *a, claim what)
{
    verdict is = j->quick ? quick_lost(j->quick, j->gate, k, a, what) : OPEN;
    return (is == OPEN ? decide_lost(full_court(j), j->gate, k, a, what) : is) == RIGHT;
}

static void claimed(trial *j, int64_t k, const answer *a, claim what, bool proved)
{
    tally *t = j->t;
    t->made[what] += proved;
    t->estimate[what] += !proved;
    t->ordinary[what] += j->ordinary && proved;
    t->lost[what] += j->ordinary && !proved && lost(j, k, a, what);
    if (proved) judge_claim(j, k, a, what);
}

static void judge_answer(trial *j, int64_t k, const answer *a)
{
    const cgam_result *r = &a->result;
    const cgam_recall_opts *o = &j->x->opts;
    bool coupled = couples(j->x);
    j->t->judged++;
    if (!isnan(r->p_lower_bound)) claimed(j, k, a, P_LOWER_BOUND, r->p_lower_bound_proved);
    if (!isnan(r->contraction)) claimed(j, k, a, CONTRACTION, r->contraction_proved);
    if (r->unique != 0) claimed(j, k, a, UNIQUE, r->unique == 1 && r->unique_proved);
    else claimed(j, k, a, TWO, r->unique_proved);
    if (!isnan(r->fold_margin)) claimed(j, k, a, FOLD_MARGIN, r->fold_margin_proved);
    if (!isnan(r->local_contraction))
        claimed(j, k, a, LOCAL_CONTRACTION, r->local_contraction_proved);
    if (coupled && !isnan(r->p_error)) claimed(j, k, a, P_ERROR, r->p_error_proved);
    if (a->p && !(o->none && o->fast))
        claimed(j, k, a, P_SUM, true); /* p of the ghost is an interval's end then */
    if (coupled && r->end == CGAM_END_CONVERGED) claimed(j, k, a, CONVERGED, true);
    if (coupled && r->end == CGAM_END_CONVERGED) claimed(j, k, a, ENERGY, true);
    if (o->entmax > 0) claimed(j, k, a, EXACT, r->exact);
    claimed(j, k, a, SHARES, true);
    if (a->db) claimed(j, k, a, GRADIENT, !isnan(a->db_error));
    if (r->stable >= 0) claimed(j, k, a, STABLE, r->stable_proved);
    if (!isnan(r->readout_error_bound))
        claimed(j, k, a, READOUT_ERROR, r->readout_error_bound_proved);
    if (o->fast) claimed(j, k, a, INTERVAL, true);
    if (o->fast && a->r) claimed(j, k, a, SCORE_ERROR, isfinite(r->score_error));
}

static void judge_landscape(trial *j, const cgam_landscape *land)
{
    answer all = {.p = land->p, .points = land->count};
    j->t->landscapes++;
    if (land->unique == 1) claimed(j, 0, &all, UNIQUE, true);
    if (land->unique == 0) claimed(j, 0, &all, SEVERAL, land->unique_proved);
    int64_t seen = 0;
    for (int64_t k = 0; k < land->count; k++) {
        const cgam_point *point = &land->points[k];
        /* beyond small banks the court has no inverse, by which it encloses saddles */
        if (j->x->size != SMALL && (!point->minimum || seen++ >= MINIMA)) continue;
        answer a = {.result = {.p_error = point->p_error, .fold_margin = point->fold_margin},
                    .p = land->p + k * j->x->n};
        claimed(j, 0, &a, POINT, point->p_error_proved);
        claimed(j, 0, &a, POINT_MARGIN, point->fold_margin_proved);
        j->t->saddles += !land->points[k].minimum && land->points[k].p_error_proved;
    }
}

static bool is_ordinary(const instance *x, const cgam_gate_info *g)
{
    double at = isnan(g->critical.alpha) ? g->critical.alpha_lo : g->critical.alpha;
    return x->ordinary && !(fabs(1 - x->opts.alpha / at) < 1e-6);
}

static void judge_in(const court_kind *kind, const instance *x, const cgam_gate_info *g,
                     const answer *answers, const cgam_landscape *land, tally *t)
{
    trial j = {.x = x, .gate = g, .ordinary = is_ordinary(x, g), .t = t, .kind = kind};
    if (kind == &court_small) j.quick = quick_open(x);
    claimed(&j, 0, NULL, ALPHA_BOUNDS, true);
    if (!isnan(g->critical.alpha) || x->opts.certify == CGAM_CERTIFY_FULL) /* else nobody asked */
        claimed(&j, 0, NULL, ALPHA_CRIT, g->critical.proved);
    claimed(&j, 0, NULL, ALPHA_FREE, true);
    if (!isnan(g->eta_min)) claimed(&j, 0, NULL, ETA_MIN, true);
    if (g->eta_min > 0 && isfinite(x->opts.beta)) claimed(&j, 0, NULL, LAMBDA_MAX, true);
    claimed(&j, 0, NULL, REGIME, true);
    int64_t judged = x->size == SMALL ? x->queries : x->size == MIDDLE ? JUDGED : 1;
    int64_t step = x->queries <= judged ? 1 : x->queries / judged + 1;
    for (int64_t k = 0; answers && k < x->queries; k += step) /* the first and the middle one */
        if (answers[k].result.end != CGAM_END_DIVERGED) judge_answer(&j, k, &answers[k]);
    if (land) judge_landscape(&j, land);
    if (j.opened) court_close(&j.full);
    quick_close(j.quick);
}

void judge(const instance *x, const cgam_gate_info *g, const answer *answers,
           const cgam_landscape *land, tally *t)
{
    t->regimes[g->regime]++;
    bool stalled = false, coupled = couples(x) && is_ordinary(x, g);
    for (int64_t k = 0; answers && k < x->queries; k++) {
        stalled |= answers[k].result.end == CGAM_END_STALLED;
        t->ends[answers[k].result.end]++;
        const cgam_result *r = &answers[k].result; /* of all, also where few are judged */
        bool share = r->end == CGAM_END_DIVERGED || (r->p >= 0 && r->p <= 1);
        if (!share && t->wrong[SHARES]++ < 5) {
            printf("WRONG: query %lld has p %.17g\n", (long long)k, r->p);
            instance_print(x);
        }
        t->ordinary_ends[answers[k].result.end] += is_ordinary(x, g);
        t->queries++;
    }
    t->stalled += answers && coupled && stalled;
    t->settled += answers && coupled && !stalled;
    judge_in(x->size == SMALL ? &court_small : &court_tall, x, g, answers, land, t);
    if (x->size != SMALL || x->number % TWICE) return;
    tally again = {0}; /* the courts judge each other; a D_i of 0 is beyond this one */
    judge_in(&court_tall, x, g, answers, NULL, &again);
    for (int k = 0; k < CLAIMS; k++) t->wrong[k] += again.wrong[k];
}

void judge_leaves(void) { flint_cleanup(); }
