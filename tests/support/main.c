/* main.c: the main of every program of tests that has none of its own. */
#include "support/check.h"

int main(void) { return check_run_tests(); }
