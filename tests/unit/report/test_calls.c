/* Requests for memory, each failing in turn, while studies of language models go into the page, which never has less for it. */
#include "report/models.h"
#include "support/check.h"
#include "support/failing_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[40]; /* in memory where that can be had: hundreds of pages are synced */
static const char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static int refresh(cgam_env *env, void *arg)
{
    (void)arg;
    return cgam_models_refresh(env, folder);
}

/* A page without its figures is none. */
static void figures_are_on_the_page_or_it_is_not_made(void **state)
{
    (void)state;
    assert_true(check_every_allocation(refresh, NULL) > 3);
    unlink(in_folder("index.html"));
}

static int set_up(void **state)
{
    (void)state;
    static const char *const folders[] = {"lm", "lm/one", "lm/two"};
    snprintf(folder, sizeof folder, "%s/cgam-report-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) assert_int_equal(mkdir(in_folder(folders[i]), 0755), 0);
    put("lm/one/study.json", "{\"probe\":{},\"steer\":{\"shots\":[{\"k\":1}]}}");
    put("lm/one/steer_1.png", "png");
    put("lm/one/inject.json", "{\"queries\":3,\"shots\":[]}");
    put("lm/two/fit.json", "{\"queries\":2}");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_on_the_page_or_it_is_not_made),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
