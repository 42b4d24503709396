/* alphas.c: grids of penalties (paper, appendices D.2 and D.3). */
#include "lab/synthetic/alphas.h"

#include "lab/synthetic/banks.h"

#include <math.h>

void cgam_alphas_span(cgam_alphas *set, double low, double high, int64_t count)
{
    for (int64_t i = 0; i < count && set->count < CGAM_ALPHAS_MAX; i++)
        set->at[set->count++] = low + (high - low) * (double)i / (double)(count - 1);
}

/* Sorted, each once, without what is below 0. */
static void sort_unique(cgam_alphas *set)
{
    int64_t kept = 0;
    cgam_sort(set->at, set->count);
    for (int64_t i = 0; i < set->count; i++)
        if (set->at[i] >= 0 && (kept == 0 || set->at[i] != set->at[kept - 1]))
            set->at[kept++] = set->at[i];
    set->count = kept;
}

void cgam_alphas_tidy(cgam_alphas *set)
{
    for (int64_t i = 0; i < set->count; i++) set->at[i] = rint(set->at[i] * 1e4) / 1e4;
    sort_unique(set);
}

void cgam_alphas_competition(cgam_alphas *set, double alpha_crit)
{
    set->count = 0;
    cgam_alphas_span(set, 0, 2, 17);
    cgam_alphas_span(set, fmin(alpha_crit, 1.25), fmax(alpha_crit, 1.25), 60);
    set->at[set->count++] = alpha_crit;
    cgam_alphas_tidy(set);
}

void cgam_alphas_coupled(cgam_alphas *set, double alpha_crit)
{
    cgam_alphas_competition(set, alpha_crit);
    cgam_alphas_span(set, 0, 2, 100);
    cgam_alphas_tidy(set);
}

void cgam_alphas_given(cgam_alphas *set, cgam_list list)
{
    for (set->count = 0; set->count < list.count; set->count++)
        set->at[set->count] = list.values[set->count];
    sort_unique(set);
}

cgam_status cgam_alphas_critical(cgam_study *study, int stream, double *alpha_crit)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    *alpha_crit = 1;
    if (o->n > o->d) return CGAM_OK;
    cgam_banks *banks;
    cgam_status status = cgam_banks_new(study->env, width, o->n, o->d, &banks);
    int64_t count = o->trials < 1000 ? o->trials : 1000;
    double sum = 0;
    for (int64_t t = 0; t < count && status == CGAM_OK; t += width) {
        for (int l = 0; l < width && status == CGAM_OK; l++)
            status = cgam_banks_cluster(banks, l, study, stream, t + l);
        if (status == CGAM_OK) status = cgam_banks_decompose(banks, NULL);
        for (int l = 0; l < width && t + l < count; l++) sum += banks->mu_min[l];
    }
    cgam_banks_free(banks);
    double mean = sum / (double)count;
    if (status == CGAM_OK && !(mean < 1))
        return cgam_fail(study->env, CGAM_E_ARG,
                         "the clusters' mean mu_min is %.17g: no penalty is critical", mean);
    *alpha_crit = 1 / (1 - mean);
    return status;
}
