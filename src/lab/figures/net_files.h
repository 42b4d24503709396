/* net_files.h: the files that `cgam net` writes. */
#ifndef CGAM_SRC_LAB_FIGURES_NET_FILES_H
#define CGAM_SRC_LAB_FIGURES_NET_FILES_H

#include "lab/document.h"
#include "lab/net_file.h"

#include <cgam/flow.h>

/* Writes into the folder: trajectory.npz, trajectory.csv, graph.dot, energies.gp, with `figures` also
 * energies.svg, .png, .pdf and graph.svg if gnuplot and Graphviz are installed, and last
 * result.json, the document so far. Puts their names into the document under "files". */
cgam_status cgam_net_files_write(cgam_env *env, json_t *doc, const cgam_net_file *file,
                                 const cgam_trajectory *trajectory, const char *folder,
                                 bool figures);

cgam_status cgam_net_files_dot(cgam_env *env, const cgam_net_file *file, const char *path);
/* Sets *missing and writes nothing if Graphviz is not installed. */
cgam_status cgam_net_files_svg(cgam_env *env, const cgam_net_file *file, const char *path,
                               bool *missing);

/* Writes by the suffix of path: .npz (time, energy, power, residual, events, winner, parts, and each
 * layer's states by its name) or .csv (the same without states, one column a part). */
CGAM_NODISCARD cgam_status cgam_trajectory_write(const cgam_net *net,
                                                 const cgam_trajectory *trajectory,
                                                 const char *path);

#endif
