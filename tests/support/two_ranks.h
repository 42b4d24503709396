/* two_ranks.h: two ranks (cgam/ranks.h) that are threads of this process, and the link between them. */
#ifndef CGAM_TESTS_SUPPORT_TWO_RANKS_H
#define CGAM_TESTS_SUPPORT_TWO_RANKS_H

#include <cgam/base.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2 };

/* Every message is a meeting of both, so one who calls another function than the other would hang; with meeting `at` it breaks for good. */
typedef struct line {
    pthread_mutex_t lock;
    pthread_cond_t met;
    int present;
    int64_t meetings, at;
    bool broken;
    bool left;  /* a rank is through with all its calls */
    bool alone; /* and the other waited for it */
    const void *data[RANKS];
} line;

typedef struct seat {
    line *line;
    int rank;
} seat;

static bool meet(line *l)
{
    pthread_mutex_lock(&l->lock);
    const int64_t now = l->meetings;
    if (!l->broken && ++l->present == RANKS) {
        l->present = 0;
        l->meetings++;
        l->broken = l->meetings == l->at;
        pthread_cond_broadcast(&l->met);
    }
    while (!l->broken && l->meetings == now) {
        if (l->left) l->broken = l->alone = true; /* it would wait forever */
        else pthread_cond_wait(&l->met, &l->lock);
    }
    const bool fine = !l->broken;
    pthread_mutex_unlock(&l->lock);
    return fine;
}

/* What the other has laid down, valid until the next meeting; NULL: the link is broken. */
static const void *exchange(const seat *s, const void *data)
{
    s->line->data[s->rank] = data;
    return meet(s->line) ? s->line->data[1 - s->rank] : NULL;
}

static inline void leave(line *l)
{
    pthread_mutex_lock(&l->lock);
    l->left = true;
    pthread_cond_broadcast(&l->met);
    pthread_mutex_unlock(&l->lock);
}

static bool line_send(void *user, int to, const void *data, size_t bytes)
{
    (void)to, (void)bytes;
    const seat *s = user;
    s->line->data[s->rank] = data;
    if (!meet(s->line)) return false;
    return meet(s->line); /* it has been read */
}

static bool line_receive(void *user, int from, void *data, size_t bytes)
{
    const seat *s = user;
    s->line->data[s->rank] = NULL;
    if (!meet(s->line)) return false;
    memcpy(data, s->line->data[from], bytes);
    return meet(s->line);
}

static bool line_share(void *user, void *data, const size_t *at)
{
    const seat *s = user;
    const char *other = exchange(s, data);
    if (!other) return false;
    const size_t from = at[1 - s->rank], to = at[2 - s->rank];
    if (to > from) memcpy((char *)data + from, other + from, to - from);
    return meet(s->line);
}

static bool line_spread(void *user, int from, void *data, size_t bytes)
{
    return ((const seat *)user)->rank == from ? line_send(user, from, data, bytes)
                                              : line_receive(user, from, data, bytes);
}

static bool line_merge(void *user, uint64_t *words, size_t count)
{
    const seat *s = user;
    uint64_t *both = malloc(count * sizeof *both + 1);
    const uint64_t *other = both ? exchange(s, words) : NULL;
    for (size_t i = 0; other && i < count; i++) both[i] = words[i] | other[i];
    const bool fine = other && meet(s->line);
    if (fine) memcpy(words, both, count * sizeof *both);
    free(both);
    return fine;
}

static inline cgam_ranks ranks_of(seat *s)
{
    return (cgam_ranks){.rank = s->rank,
                        .ranks = RANKS,
                        .user = s,
                        .send = line_send,
                        .receive = line_receive,
                        .share = line_share,
                        .spread = line_spread,
                        .merge = line_merge};
}

#endif
