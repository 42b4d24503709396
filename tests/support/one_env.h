/* one_env.h: the env of a test program, made for each test and freed after it. ENV_THREADS, defined
 * before, gives it more than one thread (0: all). */
#ifndef CGAM_TESTS_ONE_ENV_H
#define CGAM_TESTS_ONE_ENV_H

#include "support/check.h"
#include "support/dense.h"
#include "support/objects.h"

#include "base/env.h" /* its parameters are called env too: first */

#ifndef ENV_THREADS
#define ENV_THREADS 1
#endif

static cgam_env *env;

static int set_up(void **state)
{
    (void)state;
    env = object_env(ENV_THREADS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cgam_env_free(env);
    return 0;
}

static inline cgam_recall_opts object_opts(cgam_mode mode, double alpha, double beta, double lambda)
{
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = mode;
    o.alpha = alpha;
    o.beta = beta;
    o.lambda = lambda;
    return o;
}

#endif
