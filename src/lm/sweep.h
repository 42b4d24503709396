/* sweep.h (inside): what the files of the sweep share. */
#ifndef CGAM_SRC_LM_SWEEP_H
#define CGAM_SRC_LM_SWEEP_H

#include <cgam/sweep.h>

/* How wide a range is for its size, from 0 to 1: a factor of two is as wide anywhere. */
double cgam_sweep_breadth(cgam_interval x);

/* cgam_sweep_interval that looks at the tokens hint [hints] first. */
cgam_interval cgam_sweep_interval_from(int64_t n, const float *a, const float *b, int64_t y,
                                       int hints, const int64_t *hint);

#endif
