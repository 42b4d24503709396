/* cli.h: the command line, shared by cgam (one process) and cgam-mpi (several ranks). */
#ifndef CGAM_SRC_CLI_CLI_H
#define CGAM_SRC_CLI_CLI_H

#include <cgam/base.h>

/* Runs the program; returns its exit status. ranks NULL: one process; else every rank calls it and rank 0 prints. */
int cgam_cli(int argc, char **argv, cgam_ranks *ranks);

#endif
