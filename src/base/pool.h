/* pool.h: a fixed set of threads that share numbered items. Private to base/. */
#ifndef CGAM_SRC_BASE_POOL_H
#define CGAM_SRC_BASE_POOL_H

#include "base/env.h"

typedef struct cgam_pool cgam_pool;

/* threads includes the caller, so threads - 1 are started. Returns NULL on failure. */
cgam_pool *cgam_pool_new(cgam_env *env, int threads);
void cgam_pool_free(cgam_env *env, cgam_pool *pool); /* NULL is allowed */

/* pool NULL, or busy with another call: runs in the calling thread. */
cgam_status cgam_pool_run(cgam_pool *pool, int64_t count, cgam_task task, void *arg);

#endif
