/* study_fit_result.c: reports a fit. */
#include "lab/language/fit.h"
#include "lm/lens.h"

#include <math.h>
#include <stdio.h>

static const char *const way_names[CGAM_WAYS_ALL] = {
    "identity", "ridge", "lowrank", "random", "mean", "zero_shot", "icl", "left_out", "train"};

#define WAY_HEADS(name)                                                                            \
    "," name "_restricted," name "_restricted_se," name "_full," name "_full_se," name "_r2"
const char cgam_curve_heads[] =
    "layer,rho_even,rho_odd" WAY_HEADS("identity") WAY_HEADS("ridge") WAY_HEADS("lowrank")
        WAY_HEADS("random") WAY_HEADS("mean") WAY_HEADS("zero_shot") WAY_HEADS("icl");

static cgam_fit_score score_way(const cgam_fitting *f, int way, int64_t from, int64_t to)
{
    cgam_fit_score s;
    int64_t n = to - from;
    for (int over = 0; over < 2; over++)
        s.over[over] = cgam_baseline_share(n, f->target + from, f->right[way] + over * f->n + from,
                                           NULL, f->study->seed);
    double left = 0,
           all = 0; /* sums over coordinates of squares about P x and about the mean of y */
    for (int64_t j = 0; j < f->d; j++) {
        double mean = 0;
        for (int64_t i = from; i < to; i++) mean += f->y[i * f->d + j] / (double)n;
        for (int64_t i = from; i < to; i++) {
            int64_t at = i * f->d + j;
            double made = (double)f->made[way][at] - (double)f->base[at];
            left += (made - f->y[at]) * (made - f->y[at]);
            all += (f->y[at] - mean) * (f->y[at] - mean);
        }
    }
    s.r2 = all > 0 ? 1 - left / all : (double)NAN;
    return s;
}

void cgam_fit_curve_row(const cgam_fitting *f, int64_t layer, double *row)
{
    *row++ = (double)layer;
    *row++ = f->rho_half[0];
    *row++ = f->rho_half[1];
    for (int way = 0; way < CGAM_WAYS; way++, row += 5) {
        cgam_fit_score s = score_way(f, way, 0, f->n);
        double of[5] = {s.over[0].mean, s.over[0].se, s.over[1].mean, s.over[1].se, s.r2};
        for (int i = 0; i < 5; i++)
            row[i] = way == CGAM_WAY_LOWRANK && !f->lowrank ? (double)NAN : of[i];
    }
}

/* ---- Documents ---------------------------------------------------------------------------- */
static void put_way(const cgam_fitting *f, json_t *to, const char *name, int way, int64_t from,
                    int64_t end)
{
    cgam_fit_score s = score_way(f, way, from, end);
    json_t *o = json_object();
    const bool *right = f->right[way] + from;
    cgam_lm_put_overs(f->study, o, end - from, f->target + from,
                      (const bool *[]){right, right + f->n}, false);
    cgam_json_put_real(o, "r2", s.r2);
    cgam_json_put(to, name, o);
}

/* Every way over queries [from, end); the method's own is held_out. */
static void put_ways(const cgam_fitting *f, json_t *to, int64_t from, int64_t end)
{
    int own = f->lowrank ? CGAM_WAY_LOWRANK : CGAM_WAY_RIDGE;
    put_way(f, to, "held_out", own, from, end);
    for (int way = 0; way < CGAM_WAYS_ALL; way++) {
        if (way == own || (way == CGAM_WAY_LOWRANK && !f->lowrank)) continue;
        if (way == CGAM_WAY_LEFT_OUT && f->tasks == 1)
            cgam_json_put(to, way_names[way], json_null());
        else put_way(f, to, way_names[way], way, from, end);
    }
}

static int64_t counted(const cgam_fitting *f, int64_t from, int64_t end)
{
    int64_t n = 0;
    for (int64_t i = from; i < end; i++) n += f->target[i] >= 0;
    return n;
}

/* The mean divergence of the states of a way from the model's own distribution. */
static cgam_status put_divergence(const cgam_fitting *f, json_t *to, int way)
{
    double kl = NAN, *zero = cgam_zalloc(f->env, (size_t)(f->n * f->d), sizeof *zero);
    if (!zero) return cgam_fail_nomem(f->env, "a divergence");
    const cgam_fit_aim aim = {f->n, f->made[way], f->aim, zero};
    cgam_status status = cgam_fit_divergence(f->lens, &aim, 1, zero, zero, &kl, NULL, NULL);
    cgam_json_put_real(to, way_names[way], fmax(0, kl)); /* below 0 it is rounding */
    cgam_free(f->env, zero);
    return status;
}

cgam_status cgam_fit_put(const cgam_fitting *f, json_t *doc)
{
    const cgam_lm_fit_opts *o = f->opts;
    json_t *tasks = json_array(), *kl = json_object(), *refined = json_array();
    char name[512] = "";
    size_t used = 0;
    cgam_lm_result_describe(f->result, f->study, &f->task[0]);
    for (int64_t t = 0; t < f->tasks; t++) {
        json_t *one = cgam_json_object("task=%s queries=%jd", f->task[t].name,
                                       counted(f, f->first[t], f->first[t + 1]));
        put_ways(f, one, f->first[t], f->first[t + 1]);
        cgam_json_add(one, "rho_left_out=%g source=%s answer=%s",
                      f->tasks > 1 ? f->rho_left_out[t] : (double)NAN, f->task[t].source,
                      cgam_lm_answer_name(cgam_lm_task_answer(&f->task[t])));
        cgam_lm_put_labels(one, &f->task[t]);
        json_array_append_new(tasks, one);
        if (used < sizeof name)
            used += (size_t)snprintf(name + used, sizeof name - used, "%s%s", t ? ", " : "",
                                     f->task[t].name);
    }
    cgam_json_add(doc, "dataset=%s queries=%jd counted=%jd method=%s from=%s layer=%jd k=%jd", name,
                  f->n, counted(f, 0, f->n), cgam_fit_method_name(o->method),
                  o->from_query ? "query" : "context", f->layer, f->k);
    if (f->lowrank) cgam_json_put_int(doc, "rank", o->rank);
    cgam_json_add(doc, "rho=%g rho_halves=%p", f->rho, cgam_json_reals(f->rho_half, 2, 1));
    put_ways(f, doc, 0, f->n);
    cgam_json_put(doc, "by_task", tasks);
    cgam_status status = CGAM_OK;
    for (int way = 0; way < CGAM_WAYS_ALL && status == CGAM_OK && cgam_lens_has_norm(f->lens);
         way++)
        if ((way != CGAM_WAY_LOWRANK || f->lowrank) && (way != CGAM_WAY_LEFT_OUT || f->tasks > 1))
            status = put_divergence(f, kl, way);
    cgam_json_put(doc, "kl", kl);
    for (int i = 0; i < 3 && f->lowrank; i++)
        json_array_append_new(
            refined, cgam_json_object("before=%g after=%g iterations=%jd evaluations=%jd",
                                      f->refined[i].before, f->refined[i].after,
                                      f->refined[i].iterations, f->refined[i].evaluations));
    cgam_json_add(doc, "refined=%p saved=%s", refined, o->save);
    return status;
}
