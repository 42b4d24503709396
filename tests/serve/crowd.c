/* crowd.c: many clients at once, none of whom may be told anything wrong.
 *
 *   crowd PORT TOKEN CLIENTS REQUESTS [RUDE]
 *
 * Each keeps one connection and asks for recalls of the bank demo, in three modes and at several alpha; what
 * comes back is compared, byte for byte, with what a client alone was told before. Of a hundred requests RUDE are broken
 * off: in the middle of the request, before the answer, in the middle of the answer. Prints requests per second. */
#include "support/http_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { KINDS = 48 };

static int port;
static const char *token;
static char *request[KINDS], *answer[KINDS];
static size_t request_size[KINDS], answer_size[KINDS];
static atomic_long next_one, wrong;
static long requests, rude;

static void make(int k)
{
    static const char *const modes[] = {"first", "first", "coupled"};
    char body[256];
    int size = snprintf(body, sizeof body,
                        "{\"bank\":\"demo\",\"query\":\"rows:%d*0.5+%d\",\"context\":\"rows:%d\","
                        "\"mode\":\"%s\",\"alpha\":%g,\"beta\":4}",
                        k, 59 - k, (7 * k) % 60, modes[k % 3], 0.05 * (k % 4));
    request[k] = http_request("/api/recall", port, token, body, (size_t)size, &request_size[k]);
}

/* Goes away at some point of request i, and comes again; false: was not let in. */
static bool break_off(http_client *c, long i)
{
    int k = (int)(i % KINDS), when = (int)(i / KINDS % 3);
    char some[16];
    size_t size = when == 0 ? request_size[k] * (size_t)(i % 7 + 1) / 9 : request_size[k];
    (void)http_send(c->fd, request[k], size);
    if (when == 2) (void)!recv(c->fd, some, sizeof some, 0);
    http_close(c);
    return http_open(c, port);
}

static void *client(void *unused)
{
    (void)unused;
    http_client c;
    if (!http_open(&c, port)) atomic_fetch_add(&wrong, 1);
    else
        for (long i; (i = atomic_fetch_add(&next_one, 1)) < requests;) {
            int k = (int)(i % KINDS);
            if (i * 37 % 100 < rude && break_off(&c, i)) continue;
            bool fine = http_ask(&c, request[k], request_size[k]) && c.code == 200 &&
                        c.body_size == answer_size[k] &&
                        memcmp(c.body, answer[k], answer_size[k]) == 0;
            if (fine) continue;
            if (atomic_fetch_add(&wrong, 1) == 0)
                fprintf(stderr, "crowd: request %ld got %d: %.*s\n", i, c.code, (int)c.body_size,
                        c.body ? c.body : "");
            break;
        }
    http_close(&c);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) return 2;
    port = (int)strtol(argv[1], NULL, 10);
    token = argv[2];
    int clients = (int)strtol(argv[3], NULL, 10);
    requests = strtol(argv[4], NULL, 10);
    rude = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
    http_client alone;
    if (!http_open(&alone, port)) return 2;
    for (int k = 0; k < KINDS; k++) {
        make(k);
        if (!http_ask(&alone, request[k], request_size[k]) || alone.code != 200) return 2;
        answer_size[k] = alone.body_size;
        answer[k] = malloc(alone.body_size);
        memcpy(answer[k], alone.body, alone.body_size);
    }
    http_close(&alone);
    pthread_t *threads = calloc((size_t)clients, sizeof *threads);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < clients; i++) pthread_create(&threads[i], NULL, client, NULL);
    for (int i = 0; i < clients; i++) pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    printf("%.0f requests/s, %ld wrong\n", (double)requests / seconds, atomic_load(&wrong));
    for (int k = 0; k < KINDS; k++) {
        free(request[k]);
        free(answer[k]);
    }
    free(threads);
    return atomic_load(&wrong) > 0;
}
