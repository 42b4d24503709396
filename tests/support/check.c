/* check.c: the verbs of check.h. Every failure says by how much. */
#include "support/check.h"

enum { MOST_TESTS = 256 };
static struct CMUnitTest tests[MOST_TESTS];
static size_t n_tests;
static CMFixtureFunction group_set_up, group_tear_down;

void check_add_test(struct CMUnitTest test)
{
    if (n_tests < MOST_TESTS) tests[n_tests] = test;
    n_tests++;
}

void check_add_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    group_set_up = set_up;
    group_tear_down = tear_down;
}

int check_env_new(void **state)
{
    cgam_env_opts opts = cgam_env_opts_default();
    cgam_env *env = NULL;
    opts.threads = 1;
    cgam_status status = cgam_env_new(&opts, &env);
    *state = env;
    return status == CGAM_OK ? 0 : -1;
}

int check_env_free(void **state)
{
    cgam_env_free(*state);
    return 0;
}

int check_run_tests(void)
{
    if (n_tests == 0 || n_tests > MOST_TESTS) {
        print_error("%zu tests in one program, there can be 1 to %d\n", n_tests, MOST_TESTS);
        return 1;
    }
    return _cmocka_run_group_tests("tests", tests, n_tests, group_set_up, group_tear_down);
}

/* Zero when equal, so that inf against inf is no NaN; NaN when either is. */
static double distance(double got, double want) { return got == want ? 0.0 : fabs(got - want); }

static void numbers(const char *what, double got, double want, double off, double allowed)
{
    print_error("%s\n  got     %.17g\n  want    %.17g\n  off by  %.17g\n  allowed %.17g\n", what,
                got, want, off, allowed);
}

void check_close(double got, double want, double allowed, const char *what, const char *file,
                 int line)
{
    const double off = distance(got, want);
    if (off <= allowed) return;
    numbers(what, got, want, off, allowed);
    _fail(file, line);
}

void check_rel(double got, double want, double rel, const char *what, const char *file, int line)
{
    check_close(got, want, isinf(want) ? 0.0 : rel * fabs(want), what, file, line);
}

void check_close_all(const double *got, const double *want, int64_t n, double allowed,
                     const char *what, const char *file, int line)
{
    int64_t worst = -1, count = 0;
    double worst_off = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double off = distance(got[i], want[i]);
        if (off <= allowed) continue;
        count++;
        if (worst < 0 || off > worst_off || isnan(off)) {
            worst = i;
            worst_off = off;
            if (isnan(off)) break;
        }
    }
    if (worst < 0) return;
    char text[256];
    snprintf(text, sizeof text, "%s[%lld] (%lld of %lld entries are off)", what, (long long)worst,
             (long long)count, (long long)n);
    numbers(text, got[worst], want[worst], worst_off, allowed);
    _fail(file, line);
}

void check_le(double a, double b, const char *what_a, const char *what_b, const char *file,
              int line)
{
    if (a <= b) return;
    char text[256];
    snprintf(text, sizeof text, "%s <= %s", what_a, what_b);
    numbers(text, a, b, a - b, 0.0);
    _fail(file, line);
}

void check_status(cgam_status got, cgam_status want, const cgam_env *env, const char *what,
                  const char *file, int line)
{
    if (got == want) return;
    print_error("%s\n  got     %d (%s)\n  want    %d (%s)\n  message %s\n", what, (int)got,
                cgam_status_text(got), (int)want, cgam_status_text(want),
                env ? cgam_env_message(env) : "(no env)");
    _fail(file, line);
}

void check_message(const cgam_env *env, const char *words, const char *file, int line)
{
    const char *message = cgam_env_message(env);
    if (strstr(message, words)) return;
    print_error("message\n  got     %s\n  want    ...%s...\n", message, words);
    _fail(file, line);
}

#if defined(CGAM_EMULATED)
enum { FEWER = 20 };
#elif defined(CGAM_CHECKED)
enum { FEWER = 5 };
#else
enum { FEWER = 1 };
#endif

int64_t check_trials(int64_t plain) { return plain > FEWER ? plain / FEWER : 1; }

void check_plain_build(const char *why)
{
    if (FEWER == 1) return;
    print_message("skipped under a sanitizer or emulation: %s\n", why);
    skip();
}

double check_ulps(double got, long double want)
{
    double near = fabs((double)want), step = nextafter(near, INFINITY) - near;
    return (double)(fabsl((long double)got - want) / step);
}

const char *check_source_path(const char *relative)
{
    static char path[4096];
    const char *root = getenv("CGAM_SRC");
    snprintf(path, sizeof path, "%s/%s", root ? root : CGAM_SOURCE_DIR, relative);
    return path;
}
