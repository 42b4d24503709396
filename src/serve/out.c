/* out.c: lists and sends the files that verbs have written below the root. A path is opened one component at a
 * time; each must be an id and no symbolic link, so no path leads out of the root. */
#include "serve/server.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens "study/curves.svg" below the root; -1 if there is none, or it must not be shown. */
static int open_below(const char *root, const char *path)
{
    char text[128], *rest = text;
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(text, sizeof text, "%s", path);
    for (char *name; fd >= 0 && rest && *rest && (name = strsep(&rest, "/"));) {
        int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        int next = cgam_catalog_is_id(name) ? openat(fd, name, flags) : -1;
        close(fd);
        fd = next;
    }
    return fd;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* [{"name", "folder", "bytes", "modified"}, ..], NULL without memory for all; takes the descriptor. */
static json_t *list_folder(int fd)
{
    enum { MOST = 10000 };
    json_t *files = json_array();
    DIR *folder = fdopendir(fd);
    char **names = calloc(MOST, sizeof *names);
    size_t count = 0;
    bool fine = folder && names;
    for (const struct dirent *e; fine && count < MOST && (e = readdir(folder));)
        if (cgam_catalog_is_id(e->d_name)) {
            fine = (names[count] = strdup(e->d_name)) != NULL;
            count += fine;
        }
    if (fine) qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
            json_array_append_new(files,
                                  cgam_json_object("name=%s folder?=%d bytes=%jd modified=%jd",
                                                   names[i], S_ISDIR(st.st_mode),
                                                   S_ISREG(st.st_mode) ? (int64_t)st.st_size : 0,
                                                   (intmax_t)st.st_mtime));
        }
        free(names[i]);
    }
    free(names);
    if (folder) closedir(folder);
    else close(fd);
    if (fine) return files;
    json_decref(files); /* a partial list would look complete */
    return NULL;
}

enum MHD_Result cgam_answer_out(cgam_exchange *exchange, const char *path)
{
    const char *root = exchange->server->catalog.root;
    struct stat st;
    int fd = root ? open_below(root, path) : -1;
    if (fd < 0 || fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
        if (fd >= 0) close(fd);
        return cgam_answer_error(exchange, MHD_HTTP_NOT_FOUND,
                                 root ? "not found" : "the server has no --root");
    }
    if (S_ISREG(st.st_mode)) return cgam_answer_file(exchange, path, fd, (size_t)st.st_size);
    json_t *doc = json_object();
    cgam_json_put(doc, "files", list_folder(fd));
    return cgam_answer_json(exchange, MHD_HTTP_OK, doc);
}
