/* trial.c: memories, targets, queries and contexts of a trial, room for it, and its rows as JSON. */
#include "study/trial.h"

#include <math.h>

void cgam_trial_memories(cgam_rng *rng, int64_t n, int64_t d, double *Z)
{
    for (int64_t i = 0; i < n; i++) {
        double norm = 0, *row = Z + i * d;
        for (int64_t j = 0; j < d; j++) {
            row[j] = cgam_rng_normal(rng);
            norm += row[j] * row[j];
        }
        for (int64_t j = 0; j < d; j++) row[j] /= sqrt(norm);
    }
}

void cgam_trial_softmax(int64_t n, double beta, const double *r, double *p)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, r[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(beta * (r[i] - top));
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

void cgam_trial_cues(const cgam_study *study, const cgam_cues *u, int64_t first)
{
    const cgam_study_opts *o = &study->opts;
    const int width = study->lanes->width;
    const double sigma_c = o->sigma_c_vector ? o->sigma_c / sqrt((double)u->d) : o->sigma_c;
    for (int l = 0; l < width; l++) {
        int64_t t = first + l, step = u->own ? width : 1;
        cgam_rng pick = cgam_stream(o->seed, u->stream, CGAM_STREAM_TARGET, u->set, u->cell, t);
        cgam_rng eps = cgam_stream(o->seed, u->stream, CGAM_STREAM_QUERY, u->set, u->cell, t);
        cgam_rng eta = cgam_stream(o->seed, u->stream, CGAM_STREAM_CONTEXT, u->set, u->cell, t);
        u->target[l] = cgam_rng_below(&pick, u->n);
        const double *zeta = u->Z + u->target[l] * u->d * step + (u->own ? l : 0);
        for (int64_t j = 0; j < u->d; j++) {
            u->q[j * width + l] = zeta[j * step] + u->sigma_q * cgam_rng_normal(&eps);
            u->c[j * width + l] = zeta[j * step] + sigma_c * cgam_rng_normal(&eta);
        }
    }
}

cgam_status cgam_trial_room(const cgam_study *study, int count, const cgam_slice *slices)
{
    const int width = study->lanes->width;
    int64_t total = 0;
    for (int k = 0; k < count; k++) total += slices[k].size * width;
    double *at = cgam_zalloc(study->env, (size_t)total, sizeof *at);
    for (int k = 0; k < count; k++) {
        *slices[k].at = at;
        if (at) at += slices[k].size * width;
    }
    return *slices[0].at ? CGAM_OK : cgam_fail_nomem(study->env, "a trial");
}

json_t *cgam_trial_rows(const double *values, int64_t rows, int64_t columns, int64_t stride)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < rows; i++)
        json_array_append_new(array,
                              cgam_json_reals(values + i * columns * stride, columns, stride));
    return array;
}
