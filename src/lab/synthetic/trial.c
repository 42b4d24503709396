/* trial.c: memories, targets, queries and contexts of a trial, their buffers, and their rows as JSON. */
#include "lab/synthetic/trial.h"

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

cgam_status cgam_trial_bank(const cgam_study *study, int stream, int64_t set, int64_t cell,
                            int64_t trial, int64_t n, double *Z)
{
    const cgam_study_opts *o = &study->opts;
    cgam_status status = CGAM_OK;
    if (!o->bank) {
        cgam_rng rng = cgam_stream(o->seed, stream, CGAM_STREAM_BANK, set, cell, trial);
        cgam_trial_memories(&rng, n, o->d, Z);
        return CGAM_OK;
    }
    /* each set of n rows is equally likely: row i is taken with the chance that is left for it (Knuth, volume 2,
     * algorithm S) */
    int64_t have = cgam_bank_describe(o->bank).n, taken = 0;
    cgam_rng rng = cgam_stream(o->seed, stream, CGAM_STREAM_ROWS, set, cell, trial);
    for (int64_t i = 0; i < have && taken < n && status == CGAM_OK; i++)
        if (cgam_rng_uniform(&rng) * (double)(have - i) < (double)(n - taken))
            status = cgam_bank_row(o->bank, i, Z + o->d * taken++);
    return status;
}

void cgam_trial_softmax(int64_t n, double beta, const double *r, double *p)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, r[i]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp(beta * (r[i] - top));
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
}

/* Trial t, in lane l of `width`. */
static void cue(const cgam_study *study, const cgam_cues *u, int64_t t, int l, int width)
{
    const cgam_study_opts *o = &study->opts;
    const double sigma_c = o->sigma_c_vector ? o->sigma_c / sqrt((double)u->d) : o->sigma_c;
    int64_t step = u->own ? width : 1;
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

void cgam_trial_cues(const cgam_study *study, const cgam_cues *u, int64_t first)
{
    const int width = study->lanes->width;
    for (int l = 0; l < width; l++) cue(study, u, first + l, l, width);
}

/* ---- Trials by themselves --------------------------------------------------------------------- */
void cgam_problem_close(const cgam_study *study, cgam_problem *p)
{
    cgam_bank_free(p->bank);
    cgam_free(study->env, p->Z);
    *p = (cgam_problem){0};
}

cgam_status cgam_problem_open(const cgam_study *study, int stream, double sigma_q, int64_t cell,
                              int64_t trial, cgam_problem *p)
{
    const int64_t n = study->opts.n, d = study->opts.d;
    *p = (cgam_problem){.n = n, .d = d};
    p->Z = cgam_alloc(study->env, (size_t)(n * d + 2 * d + 2 * n), sizeof *p->Z);
    if (!p->Z) return cgam_fail_nomem(study->env, "a trial");
    p->q = p->Z + n * d;
    p->c = p->q + d;
    p->b = p->c + d;
    p->u = p->b + n;
    cgam_status status = cgam_trial_bank(study, stream, 0, 0, trial, n, p->Z);
    if (status != CGAM_OK) return status;
    const cgam_cues cues = {.stream = stream,
                            .cell = cell,
                            .n = n,
                            .d = d,
                            .sigma_q = sigma_q,
                            .Z = p->Z,
                            .q = p->q,
                            .c = p->c,
                            .target = &p->target};
    cue(study, &cues, trial, 0, 1);
    status = cgam_bank_new(study->env, p->Z, CGAM_F64, n, d, NULL, &p->bank);
    if (status == CGAM_OK) status = cgam_bank_score(p->bank, p->q, p->b);
    if (status == CGAM_OK) status = cgam_bank_score(p->bank, p->c, p->u);
    return status;
}

void cgam_problem_put(const cgam_problem *p, json_t *doc)
{
    cgam_json_add(doc, "target=%jd q=%p c=%p Z=%p", p->target, cgam_json_reals(p->q, p->d, 1),
                  cgam_json_reals(p->c, p->d, 1), cgam_trial_rows(p->Z, p->n, p->d, 1));
}

cgam_status cgam_trial_map(const cgam_gate *gate, int64_t n, double beta, double lambda,
                           const double *b, const double *u, const double *p, double *room,
                           double *out)
{
    double *in = room, *s = room + n;
    for (int64_t i = 0; i < n; i++) in[i] = u[i] + lambda * p[i];
    cgam_status status = cgam_gate_solve(gate, in, s, NULL);
    for (int64_t i = 0; i < n; i++) in[i] = b[i] + lambda * s[i];
    cgam_trial_softmax(n, beta, in, out);
    return status;
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
