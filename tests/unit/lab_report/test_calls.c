/* Calls to the C library and requests for memory, each failing in turn, while studies of language models go into the page: want of memory
 * is told as such, and never left to a page that has less. */
#include "lab/page/report.h"
#include "support/check.h"
#include "support/failing_calls.h"
#include "support/folder.h"

#include <sys/stat.h>
#include <unistd.h>

/* The page, "" where there is none; free it. */
static char *page(void)
{
    char *text = calloc(1 << 18, 1);
    FILE *f = fopen(folder_file("index.html"), "r");
    assert_non_null(text);
    if (f) assert_true(fread(text, 1, (1 << 18) - 1, f) > 0);
    if (f) fclose(f);
    return text;
}

static int refresh(cgam_env *env, void *arg)
{
    (void)arg;
    return cgam_models_refresh(env, folder_path());
}

/* The page that all of it gives, or none. Of a file that cannot be read the page says so, but memory is nothing of a file. */
static void whole_or_none(void *arg, int status, const char *call)
{
    const char *want = arg;
    char *got = page();
    if (strstr(got, "out of memory")) fail_msg("%s failed, and a study has no memory", call);
    if (strcmp(call, "malloc") == 0 && strcmp(got, status == CGAM_OK ? want : "") != 0)
        fail_msg("malloc failed, status %d, and the page has %zu of %zu bytes", status, strlen(got),
                 strlen(want));
    free(got);
    unlink(folder_file("index.html"));
}

TEST(want_of_memory_is_no_study_that_cannot_be_read)
{
    cgam_env *env;
    CHECK_STATUS(NULL, cgam_env_new(NULL, &env));
    CHECK_STATUS(env, cgam_models_refresh(env, folder_path()));
    char *want = page();
    static const char *const pieces[] = {"<h3>one</h3>", "<h3>two</h3>", "steer_1.png"};
    for (int i = 0; i < 3; i++) assert_non_null(strstr(want, pieces[i]));
    assert_null(strstr(want, "cannot be read"));
    cgam_env_free(env);
    whole_or_none(want, CGAM_OK, "malloc");
    assert_true(check_every_call(refresh, want, whole_or_none) > 20);
    free(want);
}

/* A page without its figures is none. */
TEST(figures_are_on_the_page_or_it_is_not_made)
{
    assert_true(check_every_allocation(refresh, NULL) > 3);
    unlink(folder_file("index.html"));
}

static int set_up(void **state)
{
    (void)state;
    static const char *const folders[] = {"lm", "lm/one", "lm/two"};
    folder_in_memory(); /* hundreds of pages are synced */
    for (int i = 0; i < 3; i++) assert_int_equal(mkdir(folder_file(folders[i]), 0755), 0);
    folder_write("lm/one/study.json", "{\"probe\":{},\"steer\":{\"shots\":[{\"k\":1}]}}");
    folder_write("lm/one/steer_1.png", "png");
    folder_write("lm/one/inject.json", "{\"queries\":3,\"shots\":[]}");
    folder_write("lm/two/fit.json", "{\"queries\":2}");
    return 0;
}

TEST_GROUP(set_up, NULL)
