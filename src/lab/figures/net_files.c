/* net_files.c: trajectories, the figure of energies by part, and the graph of a network on disk. */
#include "lab/figures/net_files.h"
#include "net/net.h"

#include "base/env.h"
#include "lab/child.h"
#include "lab/figures/net_draw.h"
#include "lab/figures/script.h"
#include "lab/folder.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* ---- the graph ---------------------------------------------------------------------------------- */

cgam_status cgam_net_files_dot(cgam_env *env, const cgam_net_file *file, const char *path)
{
    cgam_outfile *out;
    cgam_status status = cgam_outfile_begin(env, path, &out);
    if (status != CGAM_OK) return status;
    cgam_net_draw_dot(file->net, file->title, cgam_outfile_stream(out));
    return cgam_outfile_commit(out);
}

cgam_status cgam_net_files_svg(cgam_env *env, const cgam_net_file *file, const char *path,
                               bool *missing)
{
    cgam_outfile *out = NULL;
    FILE *from = tmpfile();
    cgam_status status = CGAM_OK;
    *missing = false;
    if (!from) status = cgam_fail(env, CGAM_E_IO, "no temporary file: %s", strerror(errno));
    if (status == CGAM_OK) status = cgam_outfile_begin(env, path, &out);
    if (status == CGAM_OK) {
        cgam_net_draw_dot(file->net, file->title, from);
        rewind(from); /* flushes, too */
        const char *argv[] = {"dot", "-Tsvg", NULL};
        pid_t pid;
        int error = cgam_child_start(
            &(cgam_child){.argv = argv, .in = fileno(from), .out = cgam_outfile_fd(out)}, &pid);
        int code = error ? 0 : cgam_child_wait(pid);
        *missing = error == ENOENT || code == 127;
        if (error && !*missing) status = cgam_fail(env, CGAM_E_IO, "Graphviz: %s", strerror(error));
        else if (code != 0 && !*missing)
            status = cgam_fail(env, CGAM_E_INTERNAL, "Graphviz ended with status %d", code);
    }
    if (from) fclose(from);
    if (status == CGAM_OK && !*missing) return cgam_outfile_commit(out);
    cgam_outfile_abandon(out);
    return status;
}

/* ---- the figure --------------------------------------------------------------------------------- */

/* A title inside gnuplot's double quotes. */
static void plain_text(const char *from, char *to, size_t size)
{
    size_t used = 0;
    for (; *from && used + 1 < size; from++) {
        bool plain = *from != '"' && *from != '\\' && *from != '\n' && *from != '`';
        to[used++] = plain ? *from : ' ';
    }
    to[used] = '\0';
}

/* Energies by part over time; the thick line is the sum, which may not rise between the dotted
 * lines where a clamp changes. */
static cgam_status write_figure(cgam_env *env, const cgam_net_file *file, const char *folder,
                                cgam_figures *out)
{
    const cgam_net *net = file->net;
    cgam_figure *f = &out->figure[0];
    cgam_script p;
    char name[96];
    out->count = 1;
    f->name = "energies";
    f->title = "Energy by part";
    plain_text(file->title ? file->title : "a network", name, sizeof name);
    snprintf(f->caption, sizeof f->caption, "%s; %d layers, %d synapses; energies by part", name,
             cgam_net_describe(net).layers, cgam_net_synapses(net));
    cgam_status status = cgam_script_open(env, folder, f, 900, 560, &p);
    if (status != CGAM_OK) return status;
    json_t *changes = json_array(), *parts = json_array();
    for (int i = 0; i < file->flow.clamp_count; i++) {
        const double ends[] = {file->flow.clamps[i].from, file->flow.clamps[i].to};
        for (int k = 0; k < 2; k++)
            if (ends[k] > 0 && ends[k] < file->flow.t_end)
                json_array_append_new(changes, cgam_json_real(ends[k]));
    }
    for (int i = 0; i < cgam_net_describe(net).parts; i++) {
        plain_text(cgam_net_part_name(net, i), name, sizeof name);
        json_array_append_new(parts, cgam_json_lossy(name));
    }
    cgam_script_fill(p.to, "energies", cgam_json_object("changes=%p parts=%p", changes, parts));
    return cgam_script_close(&p);
}

/* ---- the folder --------------------------------------------------------------------------------- */

static void list_file(json_t *files, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_array_append_new(files, cgam_json_lossy(path));
}

cgam_status cgam_net_files_write(cgam_env *env, json_t *doc, const cgam_net_file *file,
                                 const cgam_trajectory *trajectory, const char *folder,
                                 bool figures)
{
    char path[PATH_MAX];
    cgam_figures drawn = {0};
    json_t *files = json_array();
    bool no_gnuplot = !figures, no_dot = !figures;
    cgam_status status = cgam_folder_make(env, folder);
    static const char *const tables[] = {"trajectory.npz", "trajectory.csv"};
    for (int i = 0; i < 2 && status == CGAM_OK; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, tables[i]);
        status = cgam_trajectory_write(file->net, trajectory, path);
        list_file(files, folder, tables[i]);
    }
    snprintf(path, sizeof path, "%s/graph.dot", folder);
    if (status == CGAM_OK) status = cgam_net_files_dot(env, file, path);
    if (status == CGAM_OK) status = write_figure(env, file, folder, &drawn);
    snprintf(path, sizeof path, "%s/graph.svg", folder);
    if (status == CGAM_OK && figures) status = cgam_net_files_svg(env, file, path, &no_dot);
    if (status == CGAM_OK && figures) status = cgam_figures_draw(env, folder, &drawn, &no_gnuplot);
    list_file(files, folder, "graph.dot");
    list_file(files, folder, "energies.gp");
    if (!no_dot) list_file(files, folder, "graph.svg");
    static const char *const pictures[] = {"energies.svg", "energies.png", "energies.pdf"};
    for (int i = 0; i < 3 && !no_gnuplot; i++) list_file(files, folder, pictures[i]);
    list_file(files, folder, "result.json");
    if (figures && (no_gnuplot || no_dot))
        cgam_json_put_text(doc, "figures_missing",
                           !no_dot       ? "gnuplot was not found"
                           : !no_gnuplot ? "dot (Graphviz) was not found"
                                         : "gnuplot and dot (Graphviz) were not found");
    cgam_json_put(doc, "files", files);
    if (status == CGAM_OK) status = cgam_json_save(env, folder, "result.json", doc);
    return status;
}
