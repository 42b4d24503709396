/* watch.c: see watch.h.
 *
 * A signal asks the library to stop. The library checks between pieces of work, releases what it holds and returns. Some
 * pieces cannot be cut: an eigenvalue problem inside LAPACK, a read from a pipe that nobody writes to. If one of them
 * lasts longer than GRACE seconds, this thread ends the process in its place, with the status and the line of an
 * interrupted verb. Nothing is lost by that: outputs get their names when they are complete (io/file.h), a journal
 * can be read after any end (io/journal.h), and temporary files and new empty folders are removed first. */
#include "cli/watch.h"

#include "base/env.h"
#include "io/file.h"

#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double GRACE = 0.6; /* seconds; the rest of one second is for the machine */
static const double QUIET = 1.5; /* seconds before a terminal shows that a silent verb runs */
static const long TICK_NS = 500000000;
enum { STACK = 128 << 10 };

static atomic_bool stopping; /* set on the thread that receives the signal, read on all */
static sem_t asked;          /* posted by the signal */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static const cgam_call *watched;                         /* NULL: no verb runs */
static const char *last_line;
static int last_status;
static double begun;

static void on_signal(int number)
{
    (void)number;
    stopping = true;
    sem_post(&asked);
}

bool cgam_watch_stopping(void *user)
{
    (void)user;
    return stopping;
}

/* Waits for a signal, at most one tick. */
static bool wait_tick(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TICK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return sem_timedwait(&asked, &until) == 0;
}

static void sleep_seconds(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    while (nanosleep(&left, &left) != 0) continue;
}

/* The lock is held and not released, so the main thread cannot return from cgam_watch_end. */
static void end_process(void)
{
    cgam_line_idle_clear();
    cgam_call_abandon(watched);
    cgam_outfiles_remove_temporary();
    if (*last_line) (void)!write(STDERR_FILENO, last_line, strlen(last_line));
    _exit(last_status);
}

static void *watch_main(void *user)
{
    (void)user;
    while (!wait_tick() && !stopping) {
        pthread_mutex_lock(&lock);
        double gone = cgam_clock() - begun;
        if (watched && watched->progress.line && gone > QUIET)
            cgam_line_idle(watched->verb->name, gone);
        pthread_mutex_unlock(&lock);
    }
    sleep_seconds(GRACE);
    pthread_mutex_lock(&lock);
    if (watched && !watched->verb->drains) end_process();
    pthread_mutex_unlock(&lock);
    return NULL;
}

void cgam_watch_start(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    pthread_attr_t small;
    pthread_t thread;
    sem_init(&asked, 0, 0);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL); /* a second signal has its default effect */
    sigaction(SIGTERM, &action, NULL);
    if (pthread_attr_init(&small) != 0) return;
    pthread_attr_setstacksize(&small, STACK);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    (void)pthread_create(&thread, &small, watch_main, NULL);
    pthread_attr_destroy(&small);
}

void cgam_watch_begin(const cgam_call *call, int status, const char *line)
{
    pthread_mutex_lock(&lock);
    watched = call;
    last_status = status;
    last_line = line;
    begun = cgam_clock();
    pthread_mutex_unlock(&lock);
}

void cgam_watch_quiet(void)
{
    pthread_mutex_lock(&lock);
    cgam_line_idle_clear();
    begun = INFINITY;
    pthread_mutex_unlock(&lock);
}

void cgam_watch_end(void)
{
    pthread_mutex_lock(&lock);
    watched = NULL;
    cgam_line_idle_clear();
    pthread_mutex_unlock(&lock);
}
