/* verb_lm_neff.c: how many words a state leaves in play, layer by layer. */
#include "app/lm.h"
#include "app/lm_draw.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/table.h"

#include <cgam/lens.h>
#include <math.h>

static const cgam_param params[] = {
    CGAM_PARAMS_PROMPTS,
    {.name = "lens",
     .kind = CGAM_CHOICE,
     .value = "raw|gain|norm",
     .fallback = "norm",
     .help = "how a state becomes probabilities"},
    {.name = "out",
     .kind = CGAM_TEXT,
     .value = "DIR",
     .help = "write neff.csv, neff.json and figures here"},
    CGAM_PARAM_LM_FIGURES,
    {.name = ""},
};

/* Mean and standard deviation over queries. */
static void moments(const double *x, int64_t n, double *mean, double *sd)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) square += (x[i] - *mean) * (x[i] - *mean);
    *sd = n > 1 ? sqrt(square / (double)(n - 1)) : 0;
}

typedef struct curve {
    double *entropy, *entropy_sd, *ipr, *ipr_sd, *mass, *mass_sd; /* [layers] */
    double *drop, *drop_se; /* of log N_eff below zero-shot, query by query */
} curve;
enum { COLUMNS = 8 };

static cgam_status measure(cgam_lm_input *in, const cgam_lens *lens, cgam_lens_kind kind,
                           const int32_t *tokens, const float *states, bool first, double *zero,
                           curve *c)
{
    cgam_env *env = in->call->env;
    int64_t L = in->info.layers + 1, d = in->info.width, n = in->queries;
    cgam_spread *spread = cgam_alloc(env, (size_t)n, sizeof *spread);
    double *x = cgam_alloc(env, (size_t)n, sizeof *x);
    cgam_status status = spread && x ? CGAM_OK : cgam_fail_nomem(env, "measurements");
    for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
        status = cgam_lens_spread(lens, kind, n, states + l * d, L * d,
                                  cgam_dataset_labels(in->eval), tokens, spread);
        if (status != CGAM_OK) break;
        for (int64_t i = 0; i < n; i++) x[i] = spread[i].log_entropy;
        moments(x, n, &c->entropy[l], &c->entropy_sd[l]);
        if (first) memcpy(zero + l * n, x, (size_t)n * sizeof *x);
        for (int64_t i = 0; i < n; i++) x[i] = zero[l * n + i] - x[i];
        moments(x, n, &c->drop[l], &c->drop_se[l]);
        c->drop_se[l] /= sqrt((double)n);
        for (int64_t i = 0; i < n; i++) x[i] = spread[i].log_ipr;
        moments(x, n, &c->ipr[l], &c->ipr_sd[l]);
        for (int64_t i = 0; i < n; i++) x[i] = spread[i].mass;
        moments(x, n, &c->mass[l], &c->mass_sd[l]);
        c->entropy[l] = exp(c->entropy[l]); /* the geometric mean over queries */
        c->ipr[l] = exp(c->ipr[l]);
    }
    cgam_free(env, spread);
    cgam_free(env, x);
    return status;
}

/* The curves of one lens. */
typedef struct view {
    cgam_lens_kind kind;
    json_t *curves;
    cgam_csv csv;
    double *zero; /* [layers, queries] log N_eff without demonstrations */
} view;

static const char *const lenses[] = {"raw", "gain", "norm"}; /* as cgam_lens_kind counts */

static cgam_status add_curve(cgam_lm_input *in, const cgam_lens *lens, const int32_t *tokens,
                             int64_t k, const float *states, view *v)
{
    cgam_env *env = in->call->env;
    int64_t L = in->info.layers + 1;
    double *room = cgam_alloc(env, COLUMNS * (size_t)L, sizeof *room);
    if (!room) return cgam_fail_nomem(env, "a curve");
    curve c = {room,         room + L,     room + 2 * L, room + 3 * L,
               room + 4 * L, room + 5 * L, room + 6 * L, room + 7 * L};
    cgam_status status = measure(in, lens, v->kind, tokens, states, k == 0, v->zero, &c);
    if (status == CGAM_OK) {
        json_t *row = json_object();
        cgam_json_put_int(row, "k", k);
        cgam_json_put_text(row, "kind", k == 0 ? "zero" : "icl");
        cgam_json_put(row, "entropy", cgam_json_reals(c.entropy, L, 1));
        cgam_json_put(row, "ipr", cgam_json_reals(c.ipr, L, 1));
        cgam_json_put(row, "label_mass", cgam_json_reals(c.mass, L, 1));
        cgam_json_put(row, "log_entropy_sd", cgam_json_reals(c.entropy_sd, L, 1));
        cgam_json_put(row, "log_ipr_sd", cgam_json_reals(c.ipr_sd, L, 1));
        cgam_json_put(row, "label_mass_sd", cgam_json_reals(c.mass_sd, L, 1));
        if (k > 0) {
            cgam_json_put(row, "log_drop", cgam_json_reals(c.drop, L, 1));
            cgam_json_put(row, "log_drop_se", cgam_json_reals(c.drop_se, L, 1));
        }
        json_array_append_new(v->curves, row);
        for (int64_t l = 0; l < L; l++)
            cgam_csv_row(&v->csv, (double[]){(double)k, (double)l, c.entropy[l], c.entropy_sd[l],
                                             c.ipr[l], c.ipr_sd[l], c.mass[l], c.mass_sd[l],
                                             (double)in->queries, c.drop[l], c.drop_se[l]});
    }
    cgam_free(env, room);
    return status;
}

static cgam_status begin_view(cgam_lm_input *in, const char *file, view *v)
{
    cgam_env *env = in->call->env;
    v->zero = cgam_alloc(env, (size_t)((in->info.layers + 1) * in->queries), sizeof *v->zero);
    if (!v->zero) return cgam_fail_nomem(env, "measurements");
    return cgam_csv_begin(in->call->env, cgam_args_text(in->call->args, "out"), file,
                          "shots,layer,neff_entropy,log_neff_entropy_sd,neff_ipr,log_neff_"
                          "ipr_sd,label_mass,label_mass_sd,queries,log_drop,log_drop_se",
                          &v->csv);
}

static cgam_status run(cgam_call *call)
{
    enum { VIEWS = 2 }; /* the lens asked for, and the other one beside it */
    cgam_lm_input in;
    cgam_lens *lens = NULL;
    int32_t *tokens = NULL;
    const char *name = cgam_args_text(call->args, "lens");
    view views[VIEWS] = {{.curves = json_array()}, {.curves = json_array()}};
    for (int i = 0; i < 3; i++)
        if (strcmp(name, lenses[i]) == 0) views[0].kind = (cgam_lens_kind)i;
    views[1].kind = views[0].kind == CGAM_LENS_NORM ? CGAM_LENS_RAW : CGAM_LENS_NORM;
    cgam_status status = cgam_lm_input_open(call, &in);
    if (status == CGAM_OK) status = cgam_lm_input_label_tokens(&in, &tokens);
    if (status == CGAM_OK) status = cgam_lens_new(in.lm, &lens);
    if (status == CGAM_OK) status = begin_view(&in, "neff.csv", &views[0]);
    if (status == CGAM_OK)
        status = begin_view(&in, views[1].kind == CGAM_LENS_RAW ? "neff_raw.csv" : "neff_norm.csv",
                            &views[1]);
    for (int64_t i = 0; i < in.n_shots && status == CGAM_OK; i++) {
        float *states = NULL;
        status = cgam_lm_input_states(&in, in.shots[i], CGAM_DEMOS_TRUE, &states);
        for (int v = 0; v < VIEWS && status == CGAM_OK; v++)
            status = add_curve(&in, lens, tokens, in.shots[i], states, &views[v]);
        cgam_free(call->env, states);
    }
    for (int v = 0; v < VIEWS; v++) status = cgam_csv_end(&views[v].csv, status);
    if (status == CGAM_OK) cgam_put_lm_input(call->doc, &in);
    cgam_json_put_text(call->doc, "lens", name);
    cgam_json_put(call->doc, "curves", views[0].curves);
    json_t *other = json_object();
    cgam_json_put_text(other, "lens", lenses[views[1].kind]);
    cgam_json_put(other, "curves", views[1].curves);
    cgam_json_put(call->doc, "other_lens", other);
    if (status == CGAM_OK) status = cgam_lm_draw(call, CGAM_MODELS_NEFF);
    if (status == CGAM_OK)
        status =
            cgam_json_save(call->env, cgam_args_text(call->args, "out"), "neff.json", call->doc);
    for (int v = 0; v < VIEWS; v++) cgam_free(call->env, views[v].zero);
    cgam_free(call->env, tokens);
    cgam_lens_free(lens);
    cgam_lm_input_close(&in);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *curves = json_object_get(doc, "curves");
    size_t i, layers = json_array_size(json_object_get(json_array_get(curves, 0), "entropy"));
    json_t *row;
    fprintf(to,
            "N_eff (exp of the entropy) and the probability of the labels, %s lens, %lld "
            "queries of %s\n\nlayer",
            cgam_json_get_text(doc, "lens"), (long long)cgam_json_get_int(doc, "queries"),
            cgam_json_get_text(doc, "dataset"));
    json_array_foreach(curves, i, row)
        fprintf(to, "  %8lld shots      ", (long long)cgam_json_get_int(row, "k"));
    fputc('\n', to);
    for (size_t l = 0; l < layers; l++) {
        fprintf(to, "%5zu", l);
        json_array_foreach(curves, i, row)
            fprintf(to, "  %10.1f %9.3g",
                    json_number_value(json_array_get(json_object_get(row, "entropy"), l)),
                    json_number_value(json_array_get(json_object_get(row, "label_mass"), l)));
        fputc('\n', to);
    }
}

const cgam_verb cgam_verb_lm_neff = {
    .name = "lm neff",
    .summary = "effective number of words per layer, without and with demonstrations",
    .about = "Reads the state of the last token after every layer through the unembedding and "
             "measures how many words share the probability: exp(entropy) and 1/sum p^2, as "
             "geometric means over the queries with the standard deviation of their logarithms, "
             "and the probability mass on the labels' words. The curves of a second lens, raw "
             "beside norm, come along: without the norm a state's size decides how sharp its "
             "probabilities are.",
    .example = "cgam lm neff --dataset sentiment --shots 0,4 --queries 40 --store s.db --out neff",
    .params = params,
    .run = run,
    .print = print,
};
