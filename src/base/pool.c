/* pool.c: threads wait for a job, take item numbers from a shared counter, and the caller works
 * along. One job at a time; a second caller (or a nested call) runs its items in place, which needs no queue and
 * cannot deadlock. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct job {
    cgam_task task;
    void *arg;
    const cgam_stop *stop; /* the caller's */
    int64_t count;
    atomic_int_fast64_t next;
    pthread_mutex_t lock; /* guards the three below */
    int64_t failed_at;
    cgam_status status;
    cgam_failure failure;
} job;

struct cgam_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    job *job;           /* the current job, or NULL */
    uint64_t round;     /* counts jobs, so that a thread joins each one once */
    int busy;           /* threads inside the current job */
    bool taken, ending; /* taken: some caller owns the pool */
    int started;
    pthread_t threads[];
};

static void run_items(job *j)
{
    for (;;) {
        int64_t i = atomic_fetch_add(&j->next, 1);
        if (i >= j->count) return;
        cgam_status status = j->task(j->arg, i);
        if (status == CGAM_OK) continue;
        pthread_mutex_lock(&j->lock);
        if (j->status == CGAM_OK || i < j->failed_at) {
            j->status = status;
            j->failed_at = i;
            j->failure = *cgam_failure_here();
        }
        pthread_mutex_unlock(&j->lock);
        /* Items below i were handed out already and finish; the rest need not start. */
        atomic_store(&j->next, j->count);
    }
}

static void *thread_main(void *arg)
{
    cgam_pool *pool = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->ending && (pool->job == NULL || pool->round == seen))
            pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->ending) break;
        seen = pool->round;
        job *j = pool->job;
        pool->busy++;
        pthread_mutex_unlock(&pool->lock);
        cgam_failure_here()->env = 0; /* of an earlier job */
        cgam_stop_set(j->stop);
        run_items(j);
        cgam_stop_set(NULL);
        pthread_mutex_lock(&pool->lock);
        if (--pool->busy == 0) pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

cgam_pool *cgam_pool_new(cgam_env *env, int threads)
{
    cgam_pool *pool =
        cgam_zalloc(env, 1, sizeof *pool + (size_t)(threads - 1) * sizeof pool->threads[0]);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
    for (int i = 0; i < threads - 1; i++) {
        if (pthread_create(&pool->threads[i], NULL, thread_main, pool) != 0) {
            cgam_pool_free(env, pool);
            return NULL;
        }
        pool->started++;
    }
    return pool;
}

void cgam_pool_free(cgam_env *env, cgam_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++) pthread_join(pool->threads[i], NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->idle);
    cgam_free(env, pool);
}

static bool acquire_pool(cgam_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool mine = !pool->taken;
    pool->taken = true;
    pthread_mutex_unlock(&pool->lock);
    return mine;
}

cgam_status cgam_pool_run(cgam_pool *pool, int64_t count, cgam_task task, void *arg)
{
    if (!pool || count < 2 || !acquire_pool(pool)) {
        for (int64_t i = 0; i < count; i++) {
            cgam_status status = task(arg, i);
            if (status != CGAM_OK) return status;
        }
        return CGAM_OK;
    }
    job j = {.task = task, .arg = arg, .count = count, .lock = PTHREAD_MUTEX_INITIALIZER};
    j.stop = cgam_stop_set(NULL);
    cgam_stop_set(j.stop);
    pthread_mutex_lock(&pool->lock);
    pool->job = &j;
    pool->round++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);

    run_items(&j);

    /* No thread may join after this, and those inside must leave before j goes out of scope. */
    pthread_mutex_lock(&pool->lock);
    pool->job = NULL;
    while (pool->busy > 0) pthread_cond_wait(&pool->idle, &pool->lock);
    pool->taken = false;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_destroy(&j.lock);
    if (j.status != CGAM_OK && j.failure.env != 0) *cgam_failure_here() = j.failure;
    return j.status;
}
