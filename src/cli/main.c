/* main.c: `cgam`, one process. */
#include "cli/cli.h"

int main(int argc, char **argv) { return cgam_cli(argc, argv, NULL); }
