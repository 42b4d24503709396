/* cli.h: the command line, as the program of one process and that of several ranks have it. */
#ifndef CGAM_SRC_CLI_CLI_H
#define CGAM_SRC_CLI_CLI_H

#include <cgam/base.h>

/* The whole of a program; gives its exit status. ranks NULL: one process; else every rank calls it, and rank 0 speaks. */
int cgam_cli(int argc, char **argv, cgam_ranks *ranks);

#endif
