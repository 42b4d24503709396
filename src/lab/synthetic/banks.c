/* banks.c: see banks.h. */
#include "lab/synthetic/banks.h"

#include "lab/synthetic/trial.h"

#include <math.h>

void cgam_banks_draw(cgam_banks *b, int lane, uint64_t seed, int study, int64_t set, int64_t trial,
                     double centre, double sigma)
{
    const int L = b->g.width;
    const int64_t n = b->g.n, d = b->g.d;
    cgam_rng rng = cgam_stream(seed, study, CGAM_STREAM_BANK, set, 0, trial);
    double *middle = b->one, size = 0;
    for (int64_t j = 0; j < d && centre > 0; j++) {
        middle[j] = cgam_rng_normal(&rng);
        size += middle[j] * middle[j];
    }
    double scale = centre > 0 && size > 0 ? centre / sqrt(size) : 0;
    for (int64_t i = 0; i < n; i++) {
        double *row = b->g.Z + i * d * L + lane, norm = 0;
        for (int64_t j = 0; j < d; j++) {
            double x = sigma * cgam_rng_normal(&rng);
            if (centre > 0) x += scale * middle[j];
            row[j * L] = x;
            norm += x * x;
        }
        norm = norm > 0 ? 1 / sqrt(norm) : 0;
        for (int64_t j = 0; j < d; j++) row[j * L] *= norm;
    }
}

cgam_status cgam_banks_cluster(cgam_banks *b, int lane, const cgam_study *study, int stream,
                               int64_t trial)
{
    const cgam_study_opts *o = &study->opts;
    const int64_t d = b->g.d;
    if (!o->bank) {
        cgam_banks_draw(b, lane, o->seed, stream, 0, trial, o->centre, o->spread);
        return CGAM_OK;
    }
    double *Z = cgam_alloc(study->env, (size_t)(b->g.n * d), sizeof *Z);
    cgam_status status = Z ? cgam_trial_bank(study, stream, 0, 0, trial, b->g.n, Z)
                           : cgam_fail_nomem(study->env, "a trial");
    for (int64_t i = 0; i < b->g.n && status == CGAM_OK; i++) {
        double norm = 0;
        for (int64_t j = 0; j < d; j++) norm += Z[i * d + j] * Z[i * d + j];
        for (int64_t j = 0; j < d; j++)
            b->g.Z[(i * d + j) * b->g.width + lane] = Z[i * d + j] / sqrt(norm);
    }
    cgam_free(study->env, Z);
    return status;
}
