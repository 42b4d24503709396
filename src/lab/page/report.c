/* report.c: the report: every study, the figures, the claims, one page. */
#include "lab/page/report.h"

#include "base/env.h"
#include "lab/folder.h"
#include "num/ranks.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const double penalties[] = {0,   0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45,
                                   0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95};
static const double loads[] = {1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32};
static const double two[] = {2}, half[] = {0.5};
static const double NO_CAP = 1e9;

static const struct {
    cgam_study_kind kind;
    const char *folder;
} list[CGAM_RUNS] = {
    [CGAM_RUN_SEPARATION] = {CGAM_STUDY_SEPARATION, "separation"},
    [CGAM_RUN_SEPARATION_VECTOR] = {CGAM_STUDY_SEPARATION, "separation-vector"},
    [CGAM_RUN_COMPETITION] = {CGAM_STUDY_COMPETITION, "competition"},
    [CGAM_RUN_COMPETITION_UNCAPPED] = {CGAM_STUDY_COMPETITION, "competition-uncapped"},
    [CGAM_RUN_COUPLED] = {CGAM_STUDY_COUPLED, "coupled"},
    [CGAM_RUN_TIMESCALE] = {CGAM_STUDY_TIMESCALE, "timescale"},
    [CGAM_RUN_TIMESCALE_STARTED] = {CGAM_STUDY_TIMESCALE, "timescale-started"},
    [CGAM_RUN_TIMESCALE_FREE] = {CGAM_STUDY_TIMESCALE, "timescale-free"},
    [CGAM_RUN_THEOREMS] = {CGAM_STUDY_THEOREMS, "theorems"},
    [CGAM_RUN_CAPACITY] = {CGAM_STUDY_CAPACITY, "capacity"},
    [CGAM_RUN_PHASE] = {CGAM_STUDY_PHASE, "phase"},
    [CGAM_RUN_PHASE_PENALTY] = {CGAM_STUDY_PHASE, "phase-penalty"},
    [CGAM_RUN_CONVERGENCE] = {CGAM_STUDY_CONVERGENCE, "convergence"},
    [CGAM_RUN_ANNEALING] = {CGAM_STUDY_ANNEALING, "annealing"},
    [CGAM_RUN_SPARSE] = {CGAM_STUDY_SPARSE, "sparse"},
    [CGAM_RUN_SPARSE_COUPLED] = {CGAM_STUDY_SPARSE, "sparse-coupled"},
    [CGAM_RUN_RIVALS] = {CGAM_STUDY_RIVALS, "rivals"},
};

cgam_report_opts cgam_report_opts_default(void)
{
    return (cgam_report_opts){.out = "report", .seed = 1, .scale = 1, .figures = true};
}

static cgam_study_opts options(const cgam_report *r, int run)
{
    cgam_study_opts o = cgam_study_opts_default(list[run].kind);
    o.seed = r->opts.seed;
    o.trials = llrint(fmax((double)o.trials * r->opts.scale, 1));
    switch (run) {
    case CGAM_RUN_SEPARATION_VECTOR: o.sigma_c_vector = true; break;
    case CGAM_RUN_COMPETITION_UNCAPPED: o.t_cap = NO_CAP; break;
    case CGAM_RUN_TIMESCALE_STARTED: o.start_query = true; break;
    case CGAM_RUN_TIMESCALE_FREE: o.query_free = true; break;
    case CGAM_RUN_SPARSE_COUPLED:
        o.coupled = true;
        o.lambda = (cgam_list){half, 1};
        break;
    case CGAM_RUN_PHASE_PENALTY:
        o.x = CGAM_AXIS_ALPHA;
        o.y = CGAM_AXIS_LOAD;
        o.alphas = (cgam_list){penalties, sizeof penalties / sizeof *penalties};
        o.load = (cgam_list){loads, sizeof loads / sizeof *loads};
        o.lambda = (cgam_list){two, 1};
        o.sigma_q = (cgam_list){half, 1};
        break;
    default: break;
    }
    return o;
}

static bool writes(const cgam_report *r) { return !r->opts.ranks || r->opts.ranks->rank == 0; }

/* One study: computed, written, and its figures' scripts beside it. */
static cgam_status run_one(cgam_report *r, int run)
{
    cgam_run *one = &r->runs[run];
    char folder[CGAM_PATH_ROOM];
    cgam_study_opts o = options(r, run);
    double begun = cgam_clock();
    snprintf(one->folder, sizeof one->folder, "%s", list[run].folder);
    o.out = folder;
    o.overwrite = true; /* a report replaces a report */
    o.progress = r->opts.progress;
    o.ranks = r->opts.ranks;
    cgam_status status = cgam_path_join(r->env, r->opts.out, one->folder, folder);
    if (status == CGAM_OK) status = cgam_study_run(r->env, &o, &one->study);
    if (status == CGAM_OK && !writes(r)) return CGAM_OK;
    if (status == CGAM_OK) status = cgam_results_write(one->study, folder);
    if (status == CGAM_OK) status = cgam_figures_write(one->study, folder, &one->figures);
    one->seconds = cgam_clock() - begun;
    return status;
}

/* Figures of all runs, several at a time. A run's figures are drawn by one task. */
static cgam_status draw_run(void *arg, int64_t i)
{
    cgam_report *r = arg;
    cgam_run *one = &r->runs[i];
    char folder[CGAM_PATH_ROOM];
    bool missing = false;
    if (cgam_interrupted(r->env))
        return cgam_fail(r->env, CGAM_E_INTERRUPTED, "stopped on request");
    cgam_status status = cgam_path_join(r->env, r->opts.out, one->folder, folder);
    if (status == CGAM_OK) status = cgam_figures_draw(r->env, folder, &one->figures, &missing);
    if (missing) __atomic_store_n(&r->figures_missing, true, __ATOMIC_RELAXED);
    return status;
}

void cgam_report_free(cgam_report *r)
{
    if (!r) return;
    for (int i = 0; i < CGAM_RUNS; i++) cgam_study_free(r->runs[i].study);
    cgam_models_free(r->env, r->models);
    cgam_free(r->env, r);
}

/* Figures, claims and the page of studies that are done. */
static cgam_status write_report(cgam_report *r, double begun)
{
    cgam_env *env = r->env;
    const cgam_report_opts *opts = &r->opts;
    double drawing = cgam_clock();
    cgam_status status = CGAM_OK;
    if (opts->figures) {
        cgam_progress_tell(
            &opts->progress,
            (cgam_progress_at){.phase = "figures", .total = 1, .unit = "", .seconds_left = NAN});
        status = cgam_parallel(env, CGAM_RUNS, draw_run, r);
    }
    r->figure_seconds = cgam_clock() - drawing;
    const cgam_study *studies[CGAM_RUNS];
    for (int i = 0; i < CGAM_RUNS; i++) studies[i] = r->runs[i].study;
    if (status == CGAM_OK) cgam_claims_decide(studies, &r->claims);
    if (status == CGAM_OK) status = cgam_claims_write(env, &r->claims, opts->out);
    if (status == CGAM_OK) status = cgam_models_load(env, opts->out, &r->models);
    if (status == CGAM_OK)
        status = cgam_models_claims_write(env, opts->out, r->models, &r->model_claims);
    r->seconds = cgam_clock() - begun;
    return status == CGAM_OK ? cgam_report_page(r) : status;
}

cgam_status cgam_report_make(cgam_env *env, const cgam_report_opts *opts, cgam_report **out)
{
    *out = NULL;
    if (!(opts->scale > 0 && opts->scale <= 1e4))
        return cgam_fail(env, CGAM_E_ARG, "scale is %.17g, it must be above 0 and at most 10000",
                         opts->scale);
    cgam_report *r = cgam_zalloc(env, 1, sizeof *r);
    if (!r) return cgam_fail_nomem(env, "a report");
    r->env = env;
    r->opts = *opts;
    double begun = cgam_clock();
    cgam_status status = writes(r) ? cgam_folder_make(env, opts->out) : CGAM_OK;
    for (int i = 0; i < CGAM_RUNS && status == CGAM_OK; i++) status = run_one(r, i);
    if (status == CGAM_OK && writes(r)) status = write_report(r, begun);
    if (status != CGAM_OK) {
        cgam_report_free(r);
        return status;
    }
    /* only now: a report that is stopped earlier resumes from the records of its studies */
    for (int i = 0; i < CGAM_RUNS && writes(r); i++) cgam_study_forget(r->runs[i].study);
    *out = r;
    return CGAM_OK;
}
