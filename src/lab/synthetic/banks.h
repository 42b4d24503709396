/* banks.h: random memories for a bundle of small banks (lab/synthetic/lanes_banks.h). */
#ifndef CGAM_SRC_LAB_SYNTHETIC_BANKS_H
#define CGAM_SRC_LAB_SYNTHETIC_BANKS_H

#include "lab/synthetic/lanes_banks.h"
#include "lab/synthetic/study.h"

/* Lane l's memories of a study: a cluster by its `centre` and `spread`, or n random rows of its bank, made unit
 * vectors. */
cgam_status cgam_banks_cluster(cgam_banks *banks, int lane, const cgam_study *study, int stream,
                               int64_t trial);
/* Lane l's memories: unit vectors around a random centre of norm `centre` with noise sigma, or
 * (centre = 0, sigma = 1) anywhere. */
void cgam_banks_draw(cgam_banks *banks, int lane, uint64_t seed, int study, int64_t set,
                     int64_t trial, double centre, double sigma);

#endif
