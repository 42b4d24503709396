/* objects.h: one-line constructors of library objects for tests; each fails the test on a status. */
#ifndef CGAM_TESTS_OBJECTS_H
#define CGAM_TESTS_OBJECTS_H

#include "support/check.h"

#include <cgam/recall.h>

static inline cgam_env *object_env(int threads)
{
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = threads;
    cgam_env *env = NULL;
    CHECK_STATUS(NULL, cgam_env_new(&opts, &env));
    return env;
}

static inline cgam_bank *object_bank(cgam_env *env, int64_t n, int64_t d, const double *Z)
{
    cgam_bank *bank = NULL;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, NULL, &bank));
    return bank;
}

/* The same of numbers that may go. */
static inline cgam_bank *object_copy(cgam_env *env, int64_t n, int64_t d, const double *Z)
{
    cgam_bank *bank = NULL;
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.copy = true;
    CHECK_STATUS(env, cgam_bank_new(env, Z, CGAM_F64, n, d, &opts, &bank));
    return bank;
}

static inline cgam_gate *object_gate(cgam_env *env, const cgam_bank *bank, double alpha)
{
    cgam_gate *gate = NULL;
    CHECK_STATUS(env, cgam_gate_new(bank, alpha, NULL, &gate));
    return gate;
}

static inline cgam_spectrum *object_spectrum(cgam_env *env, const cgam_bank *bank)
{
    cgam_spectrum *spectrum = NULL;
    CHECK_STATUS(env, cgam_spectrum_new(bank, &spectrum));
    return spectrum;
}

static inline cgam_recall *object_recall(cgam_env *env, const cgam_bank *bank,
                                         const cgam_recall_opts *opts)
{
    cgam_recall *plan = NULL;
    CHECK_STATUS(env, cgam_recall_new(bank, opts, &plan));
    return plan;
}

#endif
