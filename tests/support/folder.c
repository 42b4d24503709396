#include "support/folder.h"

#include "support/check.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_NAMES = 256 };
static char folder[256];
static pid_t owner; /* a child that exits leaves the folder to its parent */
static char *names[MOST_NAMES], *paths[MOST_NAMES];

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_entry, 16, FTW_PHYS | FTW_DEPTH); }

static void remove_folder(void)
{
    if (getpid() == owner && chdir("/") == 0) remove_tree(folder);
}

void folder_in_memory(void)
{
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
}

const char *folder_path(void)
{
    if (folder[0]) return folder;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/cgam-test-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
    owner = getpid();
    atexit(remove_folder);
    return folder;
}

const char *folder_file(const char *name)
{
    for (int i = 0; i < MOST_NAMES; i++) {
        if (names[i] && strcmp(names[i], name) == 0) return paths[i];
        if (names[i]) continue;
        names[i] = strdup(name);
        if (asprintf(&paths[i], "%s/%s", folder_path(), name) < 0) fail();
        return paths[i];
    }
    fail_msg("more than %d names of files", MOST_NAMES);
    return NULL;
}

const char *folder_write(const char *name, const char *text)
{
    FILE *f = fopen(folder_file(name), "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return folder_file(name);
}

char *folder_text(const char *name)
{
    FILE *f = fopen(folder_file(name), "rb");
    char *text = NULL;
    size_t size = 0;
    if (!f) return NULL;
    if (getdelim(&text, &size, '\0', f) < 0) {
        free(text);
        text = strdup("");
    }
    fclose(f);
    return text;
}

int folder_run(const char *command)
{
    char *line;
    assert_true(asprintf(&line, "cd '%s' && %s", folder_path(), command) > 0);
    int ended = system(line);
    free(line);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

void folder_clear(const char *name) { remove_tree(folder_file(name)); }
