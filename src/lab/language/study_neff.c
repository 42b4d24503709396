/* study_neff.c: the effective number of words of a state, layer by layer. */
#include "lab/language/study_sweep.h"
#include "lab/stats.h"
#include "lm/lens.h"

#include <math.h>
#include <string.h>

cgam_lm_neff_opts cgam_lm_neff_opts_default(void)
{
    return (cgam_lm_neff_opts){.lens = CGAM_LENS_NORM};
}

/* Mean and standard deviation over queries. */
static void mean_and_sd(const double *x, int64_t n, double *mean, double *sd)
{
    cgam_moments all = {0};
    for (int64_t i = 0; i < n; i++) cgam_moments_add(&all, x[i]);
    *mean = all.mean;
    *sd = n > 1 ? cgam_moments_sd(&all) : 0;
}

/* Columns of neff.csv after shots and layer. A drop is that of log N_eff below zero-shot, query by
 * query; it is not in the document of zero-shot itself. */
enum { ENTROPY, ENTROPY_SD, IPR, IPR_SD, MASS, MASS_SD, QUERIES, DROP, DROP_SE, COLUMNS };
/* Of a null besides: how far its drop and its mass are behind those of true demonstrations. */
enum { BEHIND = COLUMNS, BEHIND_SE, MASS_BEHIND, MASS_BEHIND_SE, NULL_COLUMNS };
static const char heads[] = "shots,layer,neff_entropy,log_neff_entropy_sd,neff_ipr,log_neff_ipr_sd,"
                            "label_mass,label_mass_sd,queries,log_drop,log_drop_se";
static const struct {
    int column;
    const char *key;
} keys[] = {{ENTROPY, "entropy"},   {IPR, "ipr"},
            {MASS, "label_mass"},   {ENTROPY_SD, "log_entropy_sd"},
            {IPR_SD, "log_ipr_sd"}, {MASS_SD, "label_mass_sd"},
            {DROP, "log_drop"},     {DROP_SE, "log_drop_se"}};
static const char null_heads[] =
    "shots,layer,neff_entropy,log_neff_entropy_sd,neff_ipr,log_neff_ipr_sd,label_mass,"
    "label_mass_sd,queries,log_drop,log_drop_se,drop_behind,drop_behind_se,mass_behind,"
    "mass_behind_se,demos";
static const char null_keys[] = "log_drop,log_drop_se,drop_behind,drop_behind_se,mass_behind,"
                                "mass_behind_se,label_mass,label_mass_sd";

/* The curves of one lens. */
typedef struct view {
    cgam_lens_kind kind;
    json_t *curves;
    int table;
    double *zero; /* [L + 1, queries] log N_eff without demonstrations */
    double *now;  /* [L + 1, queries, 2] log N_eff and mass with the latest true ones */
} view;

/* One layer of one number of shots. */
static void measure_spread(int64_t n, const cgam_spread *spread, bool first, double *zero,
                           double *now, double *x, double row[COLUMNS])
{
    for (int64_t i = 0; i < n && now; i++)
        now[2 * i] = spread[i].log_entropy, now[2 * i + 1] = spread[i].mass;
    for (int64_t i = 0; i < n; i++) x[i] = spread[i].log_entropy;
    mean_and_sd(x, n, &row[ENTROPY], &row[ENTROPY_SD]);
    if (first) memcpy(zero, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = zero[i] - x[i];
    mean_and_sd(x, n, &row[DROP], &row[DROP_SE]);
    row[DROP_SE] /= sqrt((double)n);
    for (int64_t i = 0; i < n; i++) x[i] = spread[i].log_ipr;
    mean_and_sd(x, n, &row[IPR], &row[IPR_SD]);
    for (int64_t i = 0; i < n; i++) x[i] = spread[i].mass;
    mean_and_sd(x, n, &row[MASS], &row[MASS_SD]);
    row[ENTROPY] = exp(row[ENTROPY]); /* the geometric mean over queries */
    row[IPR] = exp(row[IPR]);
    row[QUERIES] = (double)n;
}

static cgam_status add_curve(cgam_lm_study *study, cgam_lm_result *r, int64_t k,
                             const float *states, view *v)
{
    cgam_env *env = study->env;
    const cgam_lm_task *task = &study->task;
    int64_t L = study->info.layers + 1, d = study->info.width, n = task->queries;
    cgam_spread *spread;
    double *x;
    cgam_status status = cgam_alloc_all(env, "a curve", CGAM_ARRAY(spread, n), CGAM_ARRAY(x, n));
    cgam_lm_work_readings(study, (double)(n * L));
    for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
        double row[2 + COLUMNS] = {(double)k, (double)l};
        status = cgam_lens_spread(study->lens, v->kind, n, states + l * d, L * d, task->labels,
                                  task->answers ? task->answers->heads : task->tokens, spread);
        if (status != CGAM_OK) break;
        measure_spread(n, spread, k == 0, v->zero + l * n, v->now + 2 * l * n, x, row + 2);
        cgam_lm_result_row(r, v->table, row);
        cgam_lm_work_tell(study, "reading", l + 1, L);
    }
    if (status == CGAM_OK && !r->lost) {
        const cgam_table *t = &r->table[v->table];
        const double *first = t->cells + (t->rows - L) * t->columns + 2;
        json_t *curve = cgam_lm_curve(v->curves, k);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (k > 0 || keys[i].column < DROP)
                cgam_json_put(curve, keys[i].key,
                              cgam_json_reals(first + keys[i].column, L, t->columns));
    }
    cgam_free_all(env, spread, x);
    return status;
}

/* ---- Nulls ------------------------------------------------------------------------------- */
/* Demonstrations that say something else: what they do to N_eff is not due to what true ones say. */
static const struct {
    const char *name;
    cgam_demos demos;
} nulls[] = {{"flipped", CGAM_DEMOS_FLIPPED}, {"foreign", CGAM_DEMOS_FOREIGN}};

static void measure_behind(int64_t n, const cgam_spread *spread, const double *now, double *x,
                           double row[NULL_COLUMNS])
{
    double root = sqrt((double)n);
    for (int64_t i = 0; i < n; i++) x[i] = spread[i].log_entropy - now[2 * i];
    mean_and_sd(x, n, &row[BEHIND], &row[BEHIND_SE]);
    for (int64_t i = 0; i < n; i++) x[i] = now[2 * i + 1] - spread[i].mass;
    mean_and_sd(x, n, &row[MASS_BEHIND], &row[MASS_BEHIND_SE]);
    row[BEHIND_SE] /= root;
    row[MASS_BEHIND_SE] /= root;
}

/* One kind of wrong demonstrations, with the lens asked for, after the true ones of the same number. */
static cgam_status add_null(cgam_lm_study *study, cgam_lm_result *r, int64_t k, int which,
                            int table, view *v, json_t *list)
{
    cgam_env *env = study->env;
    const cgam_lm_task *task = &study->task;
    int64_t L = study->info.layers + 1, d = study->info.width, n = task->queries;
    cgam_spread *spread;
    float *states = NULL;
    double *x;
    cgam_status status = cgam_alloc_all(env, "a null", CGAM_ARRAY(spread, n), CGAM_ARRAY(x, n));
    if (status == CGAM_OK) status = cgam_lm_states(study, task, k, nulls[which].demos, &states);
    cgam_lm_work_readings(study, (double)(n * L));
    for (int64_t l = 0; l < L && status == CGAM_OK; l++) {
        double row[2 + NULL_COLUMNS + 1] = {(double)k, (double)l};
        status = cgam_lens_spread(study->lens, v->kind, n, states + l * d, L * d, task->labels,
                                  task->answers ? task->answers->heads : task->tokens, spread);
        if (status != CGAM_OK) break;
        measure_spread(n, spread, false, v->zero + l * n, NULL, x, row + 2);
        measure_behind(n, spread, v->now + 2 * l * n, x, row + 2);
        row[2 + NULL_COLUMNS] = which + 1;
        cgam_lm_result_row(r, table, row);
        cgam_lm_work_tell(study, "reading", l + 1, L);
    }
    if (status == CGAM_OK && !r->lost) {
        json_t *curve = cgam_json_object("k=%jd demos=%s", k, nulls[which].name);
        cgam_lm_result_put(r, table, L, null_keys, curve);
        json_array_append_new(list, curve);
    }
    cgam_free_all(env, spread, x, states);
    return status;
}

static cgam_status add_nulls(cgam_lm_study *study, cgam_lm_result *r, int64_t k, int table, view *v,
                             json_t *list)
{
    cgam_status status = CGAM_OK;
    for (int which = 0; which < (study->task.eval->facts ? 2 : 1) && status == CGAM_OK; which++) {
        status = add_null(study, r, k, which, table, v, list);
        if (status == CGAM_E_ARG) status = CGAM_OK; /* the data have no wrong answer left */
    }
    return status;
}

cgam_status cgam_lm_neff(cgam_lm_study *study, const cgam_lm_neff_opts *opts, cgam_lm_result **out)
{
    enum { VIEWS = 2 }; /* the lens asked for, and another one beside it */
    cgam_lm_neff_opts o = opts ? *opts : cgam_lm_neff_opts_default();
    cgam_env *env = study->env;
    cgam_lm_result *r;
    const cgam_lens *lens;
    *out = NULL;
    cgam_status status = cgam_lm_result_new(study, &r);
    if (status != CGAM_OK) return status;
    view views[VIEWS] = {{.kind = o.lens},
                         {.kind = o.lens == CGAM_LENS_NORM ? CGAM_LENS_RAW : CGAM_LENS_NORM}};
    for (int v = 0; v < VIEWS; v++) {
        views[v].curves = json_array();
        views[v].table =
            cgam_lm_result_add(r,
                               v == 0                           ? "neff"
                               : views[v].kind == CGAM_LENS_RAW ? "neff_raw"
                                                                : "neff_norm",
                               "effective number of words and mass on the labels, by layer", heads);
        views[v].zero = cgam_alloc(env, (size_t)((study->info.layers + 1) * study->task.queries),
                                   sizeof *views[v].zero);
        views[v].now = cgam_alloc(env, (size_t)(2 * (study->info.layers + 1) * study->task.queries),
                                  sizeof(double));
        if (!views[v].zero || !views[v].now) status = cgam_fail_nomem(env, "measurements");
    }
    json_t *list = json_array();
    int table = cgam_lm_result_add(
        r, "neff_nulls", "the same with wrong demonstrations, beside true ones", null_heads);
    if (status == CGAM_OK) status = cgam_lm_task_label(study, &study->task);
    if (status == CGAM_OK) status = cgam_lm_study_lens(study, &lens);
    for (int64_t i = 0; i < study->n_shots && status == CGAM_OK; i++) {
        float *states = NULL;
        status = cgam_lm_states(study, &study->task, study->shots[i], CGAM_DEMOS_TRUE, &states);
        for (int v = 0; v < VIEWS && status == CGAM_OK; v++)
            status = add_curve(study, r, study->shots[i], states, &views[v]);
        cgam_free(env, states);
        if (status == CGAM_OK && study->shots[i] > 0)
            status = add_nulls(study, r, study->shots[i], table, &views[0], list);
    }
    json_t *other = json_object();
    cgam_lm_result_describe(r, study, &study->task);
    cgam_json_add(r->doc, "lens=%s curves=%p", cgam_word(cgam_lens_words, views[0].kind),
                  views[0].curves);
    cgam_json_add(other, "lens=%s curves=%p", cgam_word(cgam_lens_words, views[1].kind),
                  views[1].curves);
    cgam_json_add(r->doc, "other_lens=%p nulls=%p", other, list);
    for (int v = 0; v < VIEWS; v++) cgam_free_all(env, views[v].zero, views[v].now);
    return cgam_lm_result_end(r, status, out);
}
