/* told.h: studies of language models that never ran: documents drawn from a world in which contexts carry what
 * the test says they do. Answers are coins of a chance each, measurements have noise, and queries that share their
 * demonstrations share the luck of the draw. */
#ifndef CGAM_TESTS_UNIT_LAB_REPORT_TOLD_H
#define CGAM_TESTS_UNIT_LAB_REPORT_TOLD_H

#include "lab/document.h"
#include "lab/stats.h"
#include "support/check.h"

#include <cgam/base.h>
#include <math.h>

enum { LAYERS = 10, LATE = 8, TOLD_QUERIES = 400 };
enum { POSITIVE, WRONG, OTHER, RANDOM_KIND, STEER_KINDS };

typedef struct world {
    int queries, draws; /* draws 0: one, the study itself */
    bool shared;
    double luck;          /* deviation of chances between draws; ten times it of measurements */
    double zero, icl;     /* chances of right answers: without and with demonstrations */
    double own, null;     /* under right contexts; under all that carry nothing of what they say */
    double few, null_few; /* the same with fewer demonstrations */
    double early, null_early; /* the same from early layers */
    double drop,
        null_drop; /* of log N_eff, from layer `from` on; of right and of wrong demonstrations */
    int from;
    double mass, null_mass;   /* of the labels there */
    double rise[STEER_KINDS]; /* of log p, by kind of context */
    double separable[2];      /* in the first half of the layers and in the second */
    double margin[2];         /* before and from layer 9 */
    double changed,
        again;      /* share of best words that alpha changes; that lambda chosen anew does */
    double coupled; /* share that the feedback changes */
    double readout, add, ridge; /* what these get right */
    double mean;                /* the mean of a task, in place of P x */
    double left_out;            /* of tasks left out */
} world;

static const world everything = {.queries = 300,
                                 .zero = 0.1,
                                 .icl = 0.65,
                                 .own = 0.88,
                                 .null = 0.15,
                                 .few = 0.5,
                                 .null_few = 0.15,
                                 .early = 0.2,
                                 .null_early = 0.15,
                                 .drop = 5,
                                 .null_drop = 1,
                                 .from = LATE,
                                 .mass = 0.9,
                                 .null_mass = 0.2,
                                 .rise = {3, -2, -4, 0},
                                 .separable = {0.98, 0.9},
                                 .margin = {0.01, 0.1},
                                 .changed = 0.6,
                                 .again = 0.05,
                                 .coupled = 0.4,
                                 .readout = 0.5,
                                 .add = 0.5,
                                 .ridge = 0.5,
                                 .mean = 0.4,
                                 .left_out = 0.8};

/* ---- Numbers ----------------------------------------------------------------------------- */
typedef struct teller {
    cgam_rng *rng;
    const world *w;
} teller;

static double noise(const teller *t) { return cgam_rng_normal(t->rng); }

/* A chance with the luck of a draw, in [0, 1]. */
static double lucky(const teller *t, double p)
{
    return fmin(fmax(p + t->w->luck * noise(t), 0), 1);
}

static json_t *coins(const teller *t, double chance)
{
    char text[TOLD_QUERIES + 1];
    double p = lucky(t, chance);
    for (int i = 0; i < t->w->queries; i++) text[i] = cgam_rng_uniform(t->rng) < p ? '1' : '0';
    text[t->w->queries] = '\0';
    return json_string(text);
}

static double share_of(const json_t *right)
{
    const char *text = json_string_value(right);
    double n = 0, sum = 0;
    for (; *text; text++, n++) sum += *text == '1';
    return sum / n;
}

static json_t *common(const teller *t)
{
    return json_pack("{s:{s:s,s:s,s:i,s:i,s:i},s:s,s:s,s:s,s:i,s:i,s:i,s:s,s:s}", "model", "file",
                     "m.gguf", "description", "small", "layers", LAYERS, "width", 64, "vocab", 300,
                     "dataset", "d", "engine", "exact", "demos",
                     t->w->shared ? "shared" : "per-query", "queries", t->w->queries, "labels", 2,
                     "seed", 7, "lens", "gain", "lambda_scale", "relative");
}

static void push(json_t *object, const char *name, double x)
{
    json_t *list = json_object_get(object, name);
    if (!list) {
        list = json_array();
        json_object_set_new(object, name, list);
    }
    json_array_append_new(list, json_real(x));
}

/* The mean of n numbers and its error, as NAME and NAME_se. */
static void push_mean(json_t *object, const char *name, const double *x, int n)
{
    char error[64];
    cgam_moments m = {0};
    for (int i = 0; i < n; i++) cgam_moments_add(&m, x[i]);
    snprintf(error, sizeof error, "%s_se", name);
    push(object, name, m.mean);
    push(object, error, cgam_moments_se(&m));
}

/* ---- The sweep --------------------------------------------------------------------------- */
static json_t *both(const teller *t, double chance)
{
    static const char *const names[] = {"restricted", "full"};
    json_t *o = json_object();
    for (int i = 0; i < 2; i++) {
        json_t *right = coins(t, chance);
        double share = share_of(right);
        json_object_set_new(o, names[i],
                            json_pack("{s:i,s:i,s:[f,n],s:f,s:f,s:f,s:o}", "context_layer", 9,
                                      "query_layer", 8, "lambda", 0.5, "accuracy", share,
                                      "held_out", share, "held_out_se", 0.03, "right", right));
    }
    return o;
}

static json_t *told_answer(const teller *t, double chance)
{
    json_t *a = coins(t, chance), *b = coins(t, chance);
    return json_pack("{s:f,s:o,s:f,s:o}", "restricted", share_of(a), "restricted_right", a, "full",
                     share_of(b), "full_right", b);
}

static json_t *depths(const teller *t, double chance, double early)
{
    json_t *o = both(t, chance);
    json_object_set_new(o, "early", both(t, early));
    json_object_set_new(o, "late", both(t, chance));
    return o;
}

static json_t *told_centred(const teller *t)
{
    json_t *right = coins(t, t->w->null);
    return json_pack("{s:f,s:o}", "held_out", share_of(right), "held_out_right", right);
}

static json_t *sweep_entry(const teller *t, int k, double own, double null)
{
    const world *w = t->w;
    json_t *controls = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "centred", told_centred(t),
                                 "centred_norm", told_centred(t), "label_mean", both(t, null),
                                 "flipped", depths(t, null, w->null_early), "random",
                                 depths(t, null, w->null_early), "other_task", both(t, null));
    return json_pack("{s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "k", k, "queries", w->queries,
                     "zero_shot", told_answer(t, w->zero), "icl", told_answer(t, w->icl), "best",
                     both(t, own), "early", both(t, w->early), "late", both(t, own), "controls",
                     controls);
}

static json_t *told_sweep(const teller *t)
{
    json_t *doc = common(t), *shots = json_array();
    if (t->w->few > 0) json_array_append_new(shots, sweep_entry(t, 1, t->w->few, t->w->null_few));
    json_array_append_new(shots, sweep_entry(t, 4, t->w->own, t->w->null));
    json_object_set_new(doc, "shots", shots);
    return doc;
}

/* ---- N_eff ------------------------------------------------------------------------------- */
static json_t *told_neff(const teller *t)
{
    const world *w = t->w;
    json_t *doc = common(t), *zero = json_pack("{s:i,s:s}", "k", 0, "kind", "zero");
    json_t *curves = json_array(), *nulls = json_array();
    json_array_append_new(curves, zero);
    for (int l = 0; l <= LAYERS; l++) {
        push(zero, "entropy", 1000);
        push(zero, "label_mass", 0.01);
        push(zero, "label_mass_sd", 0.01);
    }
    for (int k = w->few > 0 ? 1 : 4; k <= 4; k += 3) {
        double part = k == 4 ? 1 : 0.5,
               luck[2] = {10 * w->luck * noise(t), 10 * w->luck * noise(t)};
        json_t *own = json_pack("{s:i,s:s}", "k", k, "kind", "icl");
        json_t *null = json_pack("{s:i,s:s}", "k", k, "demos", "flipped");
        for (int l = 0; l <= LAYERS; l++) {
            double drop[2][TOLD_QUERIES], behind[TOLD_QUERIES], mass[2][TOLD_QUERIES];
            double ahead[TOLD_QUERIES];
            bool on = l >= w->from;
            for (int i = 0; i < w->queries; i++) {
                for (int which = 0; which < 2; which++) {
                    double fall = which ? w->null_drop : w->drop,
                           held = which ? w->null_mass : w->mass;
                    drop[which][i] = (on ? part * fall + luck[which] : 0) + 0.5 * noise(t);
                    mass[which][i] = (on ? held + luck[which] / 10 : 0.01) + 0.1 * noise(t);
                }
                behind[i] = drop[0][i] - drop[1][i];
                ahead[i] = mass[0][i] - mass[1][i];
            }
            cgam_moments m = {0};
            push_mean(own, "log_drop", drop[0], w->queries);
            push_mean(null, "log_drop", drop[1], w->queries);
            push_mean(null, "drop_behind", behind, w->queries);
            push_mean(null, "mass_behind", ahead, w->queries);
            for (int i = 0; i < w->queries; i++) cgam_moments_add(&m, drop[0][i]);
            push(own, "entropy", 1000 * exp(-m.mean));
            for (int which = 0; which < 2; which++) {
                cgam_moments all = {0};
                for (int i = 0; i < w->queries; i++) cgam_moments_add(&all, mass[which][i]);
                push(which ? null : own, "label_mass", all.mean);
                push(which ? null : own, "label_mass_sd", cgam_moments_sd(&all));
            }
        }
        json_array_append_new(curves, own);
        json_array_append_new(nulls, null);
    }
    json_object_set_new(doc, "curves", curves);
    json_object_set_new(doc, "nulls", nulls);
    return doc;
}

/* ---- Steering ---------------------------------------------------------------------------- */
static json_t *told_steer(const teller *t)
{
    static const char *const kinds[] = {"positive", "wrong_object", "other_relation", "random"};
    static double x[STEER_KINDS][2][LAYERS + 1][TOLD_QUERIES], y[TOLD_QUERIES];
    const world *w = t->w;
    json_t *doc = common(t), *curves = json_array(), *shots = json_array();
    for (int kind = 0; kind < STEER_KINDS; kind++) {
        double luck = 10 * w->luck * noise(t);
        for (int c = 0; c < 2; c++)
            for (int l = 0; l <= LAYERS; l++)
                for (int i = 0; i < w->queries; i++)
                    x[kind][c][l][i] =
                        (l >= LATE ? (c + 1) * w->rise[kind] / 2 + luck : 0) + noise(t);
    }
    for (int kind = 0; kind < STEER_KINDS; kind++)
        for (int c = 0; c < 2; c++) {
            json_t *o = json_pack("{s:s,s:f}", "context", kinds[kind], "lambda", (c + 1) / 2.0);
            for (int l = 0; l <= LAYERS; l++) {
                const double *own = x[kind][c][l], *right = x[POSITIVE][c][l];
                const double *random = x[RANDOM_KIND][c][l];
                int n = w->queries;
                push_mean(o, "log_p_gain", own, n);
                for (int i = 0; i < n; i++) y[i] = own[i] - 6;
                push_mean(o, "log_p", y, n);
                for (int i = 0; i < n; i++) y[i] = right[i] - own[i];
                push_mean(o, "behind_right", y, n);
                for (int i = 0; i < n; i++) y[i] = random[i] - own[i];
                push_mean(o, "behind_random", y, n);
                for (int i = 0; i < n; i++) y[i] = right[i] - own[i] / 2;
                push_mean(o, "own_fall_right", y, n);
                for (int i = 0; i < n; i++) y[i] = random[i] - own[i] / 2;
                push_mean(o, "own_fall_random", y, n);
                for (int i = 0; i < n; i++) y[i] = own[i] - random[i] / 2;
                push_mean(o, "random_own_fall", y, n);
            }
            json_array_append_new(curves, o);
        }
    json_array_append_new(shots, json_pack("{s:i,s:{s:f,s:f},s:o}", "k", 4, "baseline", "log_p",
                                           -6.0, "log_odds", -1.0, "curves", curves));
    json_object_set_new(doc, "shots", shots);
    return doc;
}

/* ---- Probe ------------------------------------------------------------------------------- */
static json_t *probe_curve(const teller *t, const double separable[2], const double margin[2])
{
    const world *w = t->w;
    json_t *curve = json_pack("{s:i,s:s}", "k", 4, "kind", "icl"), *right = json_array();
    double luck = w->luck * noise(t);
    for (int l = 0; l <= LAYERS; l++) {
        json_t *one = coins(t, separable[l > LAYERS / 2]);
        cgam_moments m = {0};
        for (int i = 0; i < w->queries; i++)
            cgam_moments_add(&m, margin[l >= LATE + 1] + luck + 0.05 * noise(t));
        double p = share_of(one);
        push(curve, "separability", p);
        push(curve, "separability_se", sqrt(p * (1 - p) / w->queries));
        push(curve, "alignment", 0.1);
        push(curve, "alignment_sd", 0.1);
        push(curve, "margin", m.mean);
        push(curve, "margin_sd", cgam_moments_sd(&m));
        json_array_append_new(right, one);
    }
    json_object_set_new(curve, "separability_right", right);
    return curve;
}

static json_t *told_probe(const teller *t)
{
    static const double chance[] = {0.5, 0.5}, negative[] = {-0.02, -0.02};
    json_t *doc = common(t);
    json_object_set_new(doc, "majority", json_real(0.5));
    json_object_set_new(doc, "curves",
                        json_pack("[o]", probe_curve(t, t->w->separable, t->w->margin)));
    json_object_set_new(doc, "nulls", json_pack("[o]", probe_curve(t, chance, negative)));
    return doc;
}

/* ---- Experiments beside a study ---------------------------------------------------------- */
static json_t *told_control(const teller *t)
{
    return json_pack("{s:o,s:{s:o},s:{s:o}}", "right", coins(t, t->w->null), "add", "right",
                     coins(t, t->w->null), "replace", "right", coins(t, t->w->null));
}

static json_t *told_inject(const teller *t)
{
    const world *w = t->w;
    json_t *doc = common(t);
    json_t *own =
        json_pack("{s:o,s:o,s:o,s:o}", "random", told_control(t), "flipped", told_control(t),
                  "other_task", told_control(t), "label_rows", told_control(t));
    json_t *entry = json_pack(
        "{s:i,s:o,s:o,s:o,s:{s:s,s:i,s:o},s:{s:o},s:{s:{s:o},s:{s:o}}}", "k", 4, "zero_shot_right",
        coins(t, w->zero), "icl_right", coins(t, w->icl), "readout_right", coins(t, w->readout),
        "best", "kind", "add", "layer", 7, "right", coins(t, w->own), "controls", "own", own,
        "by_kind", "add", "right", coins(t, w->add), "replace", "right", coins(t, w->own));
    json_object_set_new(doc, "shots", json_pack("[o]", entry));
    return doc;
}

static json_t *way(const teller *t, double chance)
{
    return json_pack("{s:o}", "full_right", coins(t, chance));
}

static json_t *told_fit(const teller *t)
{
    const world *w = t->w;
    json_t *doc = common(t);
    json_object_update_new(doc, json_pack("{s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "method",
                                          "lowrank", "from", "context", "layer", 5, "held_out",
                                          way(t, w->own), "identity", way(t, w->null), "random",
                                          way(t, w->null), "mean", way(t, w->mean), "icl",
                                          way(t, w->icl), "left_out", way(t, w->left_out),
                                          "zero_shot", way(t, w->zero), "ridge", way(t, w->ridge)));
    return doc;
}

static json_t *told_gates(const teller *t)
{
    static const double alphas[] = {0, 0.1, 0.2, 2};
    const world *w = t->w;
    json_t *doc = common(t), *grid = json_array();
    for (int k = 0; k < 8; k++) { /* alpha = 0, two small ones and one that is not, both modes */
        double share = k < 2 ? 0 : k % 2 ? w->coupled : w->changed, n = 0;
        for (int i = 0; i < w->queries; i++) n += cgam_rng_uniform(t->rng) < share;
        json_array_append_new(
            grid, json_pack("{s:f,s:s,s:f,s:f,s:f,s:f,s:o,s:o}", "alpha", alphas[k / 2], "mode",
                            k % 2 ? "coupled" : "first", "argmax_changed", n / w->queries, "neff",
                            5.0, "unique_share", 0.5, "restricted", 0.5, "restricted_right",
                            coins(t, k > 1 ? w->own : w->null), "full_right",
                            coins(t, k > 1 ? w->own : w->null)));
    }
    json_t *null = json_pack("{s:f,s:o,s:o}", "argmax_changed", w->again, "restricted_right",
                             coins(t, w->null), "full_right", coins(t, w->null));
    json_object_update_new(doc, json_pack("{s:f,s:f,s:s,s:[{s:i,s:o,s:o}]}", "alpha_crit", 0.3,
                                          "mu_max", 10.0, "over", "restricted", "shots", "k", 4,
                                          "grid", grid, "null", null));
    return doc;
}

/* ---- A study ----------------------------------------------------------------------------- */
static json_t *told_draw(cgam_rng *rng, const world *w)
{
    const teller t = {rng, w};
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "neff", told_neff(&t), "sweep",
                     told_sweep(&t), "steer", told_steer(&t), "probe", told_probe(&t), "inject",
                     told_inject(&t), "fit", told_fit(&t), "gates", told_gates(&t));
}

static inline json_t *told_study(cgam_rng *rng, const world *w)
{
    json_t *doc = told_draw(rng, w), *draws = json_array();
    assert_true(w->queries <= TOLD_QUERIES);
    json_object_set_new(doc, "command", json_string("cgam lm study --dataset d"));
    for (int d = 0; d < w->draws; d++)
        json_array_append_new(draws, d == 0 ? json_deep_copy(doc) : told_draw(rng, w));
    if (w->draws > 0) json_object_set_new(doc, "draws", draws);
    else json_decref(draws);
    return doc;
}

#endif
