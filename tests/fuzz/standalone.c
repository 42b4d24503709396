/* standalone.c: runs a libFuzzer target without libFuzzer.
 *
 *     fuzz_npy [-mutations=N] [-seed=N] FOLDER-OR-FILE...
 *
 * Every seed is tried as it is, then N mutations of seeds chosen at random; same seed, same
 * inputs. When the target crashes or takes too long, the input is left at crash-<program>. It is
 * no match for a fuzzer that sees coverage, but runs with any compiler. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Present when built with a sanitizer, which ends the program without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { INPUT_MAX = 1 << 16, SEEDS_MAX = 4096, SECONDS_MAX = 20 };

typedef struct seed {
    uint8_t *bytes; /* [size] */
    size_t size;
} seed;

static seed seeds[SEEDS_MAX];
static int n_seeds;
static uint8_t input[INPUT_MAX];
static volatile size_t input_size;
static char crash_name[256];

/* Only calls that are safe in a signal handler. */
static void keep_input(void)
{
    const int fd = open(crash_name, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd < 0) return;
    const ssize_t written = write(fd, input, input_size);
    close(fd);
    static const char text[] = "the input is kept in ";
    if (written < 0 || write(2, text, sizeof text - 1) < 0 ||
        write(2, crash_name, strlen(crash_name)) < 0 || write(2, "\n", 1) < 0)
        return;
}

static void on_signal(int number)
{
    keep_input();
    signal(number, SIG_DFL);
    raise(number);
}

static void try_input(size_t size)
{
    /* A heap copy of the exact size lets a sanitizer see a read past the end. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) {
        fprintf(stderr, "out of memory: input of %zu bytes\n", size);
        exit(1);
    }
    input_size = size;
    memcpy(copy, input, size);
    alarm(SECONDS_MAX);
    LLVMFuzzerTestOneInput(copy, size);
    alarm(0);
    free(copy);
}

static void read_seed(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    seed s = {.bytes = malloc(INPUT_MAX)};
    if (s.bytes && n_seeds < SEEDS_MAX) {
        s.size = fread(s.bytes, 1, INPUT_MAX, file);
        seeds[n_seeds++] = s;
    } else {
        free(s.bytes);
    }
    fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_seeds(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) {
        read_seed(path);
        return;
    }
    struct dirent **entries = NULL;
    const int n = scandir(path, &entries, NULL, by_name);
    if (n < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        char name[4096];
        const int length = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && length > 0 && (size_t)length < sizeof name)
            read_seed(name);
        free(entries[i]);
    }
    free(entries);
}

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t n) { return n ? (size_t)(draw() % n) : 0; }

/* Sizes and counts that readers get wrong. */
static const uint64_t edges[] = {0,
                                 1,
                                 2,
                                 7,
                                 8,
                                 127,
                                 128,
                                 255,
                                 256,
                                 0x7fff,
                                 0x8000,
                                 0xffff,
                                 0x10000,
                                 0x7fffffff,
                                 0x80000000u,
                                 0xffffffff,
                                 1ull << 32,
                                 1ull << 40,
                                 INT64_MAX,
                                 1ull << 63,
                                 UINT64_MAX,
                                 0x7ff0ull << 48 /* inf */,
                                 0x7ff8ull << 48 /* NaN */};

static const char *const words[] = {"9223372036854775807",
                                    "-1",
                                    "1e999",
                                    "null",
                                    "{}",
                                    "[",
                                    "\\u0000",
                                    "()",
                                    "'",
                                    "\"",
                                    "\xff",
                                    ","};

static void insert(size_t *size, size_t at, const void *bytes, size_t n)
{
    if (n > INPUT_MAX - *size) return;
    memmove(input + at + n, input + at, *size - at);
    memcpy(input + at, bytes, n);
    *size += n;
}

static void mutate_once(size_t *size)
{
    const size_t at = below(*size), rest = *size - at;
    switch (draw() % 8) {
    case 0: /* one bit */
        if (*size) input[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1: /* one byte */
        if (*size) input[at] = (uint8_t)draw();
        break;
    case 2: { /* an edge value, little-endian, of 1, 2, 4 or 8 bytes */
        const uint64_t edge = edges[below(sizeof edges / sizeof *edges)];
        const size_t width = (size_t)1 << below(4);
        memcpy(input + at, &edge, width < rest ? width : rest);
        break;
    }
    case 3: { /* a word, written over or put between */
        const char *word = words[below(sizeof words / sizeof *words)];
        const size_t length = strlen(word);
        if (draw() & 1) insert(size, at, word, length);
        else memcpy(input + at, word, length < rest ? length : rest);
        break;
    }
    case 4: /* cut the end */ *size = at; break;
    case 5: { /* take a piece out */
        const size_t n = below(rest < 64 ? rest : 64);
        memmove(input + at, input + at + n, rest - n);
        *size -= n;
        break;
    }
    case 6: { /* repeat a piece */
        uint8_t piece[64];
        const size_t n = rest < sizeof piece ? rest : 1 + below(sizeof piece);
        memcpy(piece, input + at, n);
        insert(size, below(*size), piece, n);
        break;
    }
    default: { /* go on with another seed from here */
        const seed *other = &seeds[below((size_t)n_seeds)];
        const size_t from = below(other->size), n = other->size - from;
        *size = at + (n < INPUT_MAX - at ? n : INPUT_MAX - at);
        if (*size > at) memcpy(input + at, other->bytes + from, *size - at);
        break;
    }
    }
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const char *program = slash ? slash + 1 : argv[0];
    long mutations = 1000;
    state = 1;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-mutations=", 11) == 0) mutations = strtol(argv[i] + 11, NULL, 10);
        else if (strncmp(argv[i], "-seed=", 6) == 0) state = strtoull(argv[i] + 6, NULL, 10);
        else read_seeds(argv[i]);
    }
    if (n_seeds == 0) {
        fprintf(stderr, "%s: no seeds; give a folder of valid inputs\n", program);
        return 1;
    }
    snprintf(crash_name, sizeof crash_name, "crash-%s", program);
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], on_signal);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_input);

    for (int i = 0; i < n_seeds; i++) {
        memcpy(input, seeds[i].bytes, seeds[i].size);
        try_input(seeds[i].size);
    }
    for (long m = 0; m < mutations; m++) {
        const seed *s = &seeds[below((size_t)n_seeds)];
        size_t size = s->size;
        memcpy(input, s->bytes, size);
        for (size_t n = 1 + below(6); n > 0; n--) mutate_once(&size);
        try_input(size);
    }
    printf("%s: %d seeds and %ld mutations, none brought it down\n", program, n_seeds, mutations);
    for (int i = 0; i < n_seeds; i++) free(seeds[i].bytes);
    return 0;
}
