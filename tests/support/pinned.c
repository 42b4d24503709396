/* pinned.c: see pinned.h. The file has a line with the name of each test, and its numbers in the lines below it. */
#include "support/pinned.h"
#include "support/check.h"

enum { TESTS = 64, NUMBERS = 8192, ACROSS = 6 };
typedef struct section {
    char test[80];
    double number[NUMBERS];
    int count, used;
} section;
static section *sections;
static int n_sections;
static char path[4096];

static section *find(const char *test)
{
    for (int i = 0; i < n_sections; i++)
        if (strcmp(sections[i].test, test) == 0) return &sections[i];
    assert_true(n_sections < TESTS);
    snprintf(sections[n_sections].test, sizeof sections->test, "%s", test);
    return &sections[n_sections++];
}

static bool writes(void)
{
    const char *mode = getenv("CGAM_PIN");
    return mode && strcmp(mode, "write") == 0;
}

static void write_file(void)
{
    FILE *f = fopen(path, "w");
    for (int i = 0; f && i < n_sections; i++) {
        fprintf(f, "%s\n", sections[i].test);
        for (int k = 0; k < sections[i].count; k++)
            fprintf(f, "%s%.12g%s", k % ACROSS ? " " : "  ", sections[i].number[k],
                    k % ACROSS == ACROSS - 1 || k + 1 == sections[i].count ? "\n" : "");
    }
    if (f) fclose(f);
}

/* file: the path of the test's source. */
static void read_file(const char *file)
{
    const char *name = strrchr(file, '/');
    char relative[256], word[256];
    section *s = NULL;
    name = name ? name + 1 : file;
    snprintf(relative, sizeof relative, "tests/pinned/%.*s.txt", (int)strcspn(name, "."), name);
    snprintf(path, sizeof path, "%s", check_source_path(relative));
    sections = calloc(TESTS, sizeof *sections);
    assert_non_null(sections);
    if (writes()) {
        atexit(write_file);
        return;
    }
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s is not there", path);
    while (fscanf(f, "%255s", word) == 1) {
        char *end;
        const double x = strtod(word, &end);
        if (*end) s = find(word);
        else if (s && s->count < NUMBERS) s->number[s->count++] = x;
    }
    fclose(f);
}

void pinned_check(double got, double rel, const char *what, const char *test, const char *file,
                  int line)
{
    if (!sections) read_file(file);
    section *s = find(test);
    if (writes()) {
        assert_true(s->count < NUMBERS);
        s->number[s->count++] = got;
        return;
    }
    if (s->used == s->count) fail_msg("%s: %s: no more numbers in %s", test, what, path);
    const double want = s->number[s->used++];
    if (!(isnan(got) && isnan(want))) check_rel(got, want, rel, what, file, line);
}
