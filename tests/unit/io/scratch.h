/* scratch.h: a folder of its own for each test program, and bytes of files to be bent. */
#ifndef CGAM_TESTS_UNIT_IO_SCRATCH_H
#define CGAM_TESTS_UNIT_IO_SCRATCH_H

#include "io/array.h"
#include "support/check.h"
#include "support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static char scratch_folder[256];

/* A path in the folder; it stays. */
static inline const char *scratch(const char *name) { return folder_file(name); }

static inline int scratch_setup(void **state)
{
    (void)state;
    snprintf(scratch_folder, sizeof scratch_folder, "%s", folder_path());
    return 0;
}

/* How many files are in the folder; removes them when asked. */
static inline int scratch_files(bool clear)
{
    int count = 0;
    DIR *folder = opendir(scratch_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (clear && unlinkat(dirfd(folder), entry->d_name, 0) != 0)
            unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
    }
    if (folder) closedir(folder);
    return count;
}

static inline int scratch_teardown(void **state)
{
    (void)state;
    scratch_files(true);
    return rmdir(scratch_folder);
}

static inline cgam_env *new_env(void)
{
    cgam_env *env = NULL;
    cgam_env_opts opts = cgam_env_opts_default();
    opts.threads = 1;
    assert_int_equal(cgam_env_new(&opts, &env), CGAM_OK);
    return env;
}

/* Writes a file in the folder and gives its path. */
static inline const char *put(const char *name, const void *bytes, size_t size)
{
    const char *path = scratch(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline const char *put_text(const char *name, const char *text)
{
    return put(name, text, strlen(text));
}

/* The bytes of a file, to be freed. */
static inline uint8_t *get(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s: cannot be opened", path);
    uint8_t *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, f);
    assert_true(feof(f));
    fclose(f);
    return bytes;
}

static inline const char *data_path(const char *name)
{
    char relative[128];
    snprintf(relative, sizeof relative, "tests/unit/io/data/%s", name);
    return check_source_path(relative);
}

/* Formulas of generate.py. */
static inline double real_at(int i) { return (i - 5.5) / 8; }

static inline double whole_at(int i) { return i - 5; }

/* The array of a file cannot be opened: the message contains the words, and nothing is left open. */
#define CHECK_REFUSED_FILE(env, status, words, path)                                               \
    do {                                                                                           \
        cgam_array refused_ = {.owner = (env)};                                                    \
        CHECK_REFUSED(env, status, words, cgam_array_open(env, path, &refused_));                  \
        assert_null(refused_.owner);                                                               \
    } while (0)

/* Scenarios of failing_alloc.h and failing_calls.h: arg is the path of an array. */
static inline int read_array(cgam_env *env, void *arg)
{
    cgam_array a;
    double values[32];
    cgam_status status = cgam_array_open(env, arg, &a);
    if (status == CGAM_OK) status = cgam_array_read_f64(env, &a, arg, values);
    if (status == CGAM_OK) status = cgam_array_reals(env, arg, &a);
    cgam_array_close(env, &a);
    return status;
}

#endif
