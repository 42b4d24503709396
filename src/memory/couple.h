/* couple.h: a step of many coupled recalls on a tile of their scores, in f32.
 *
 * S [rows, columns] holds scores on entry and weights on return; state [rows, 3, columns] holds p2, kappa and delta,
 * which is replaced. With p1 = p2 - kappa, c = factor[column] and more = factor[columns + column], which is c - 1:
 *     old = c delta + more p1,             y = gain dinv (old - S),   gain S where dinv is NULL
 *     new = kappa + p2 (exp(y) - 1),       S = dinv new,              y <= CGAM_COUPLE_MOST
 * stats [CGAM_COUPLE_STATS, columns]: sum new - kappa, sum |new|, max |c new + more p1 - old|,
 * max p2 exp(y), max y. The number of columns is a multiple of the CPU's gemm->lanes32. */
#ifndef CGAM_SRC_MEMORY_COUPLE_H
#define CGAM_SRC_MEMORY_COUPLE_H

#include "num/cpu/cpu.h"

enum { CGAM_COUPLE_STATS = 5, CGAM_COUPLE_MOST = 80 /* y */ };

typedef void cgam_couple(int64_t rows, int64_t columns, float *S, float *state, const double *dinv,
                         double gain, const float *factor, float *stats);

/* Returns the implementation for an entry of cgam_cpu_all; `plain` computes in double. */
cgam_couple *cgam_couple_of(const cgam_cpu *cpu);

#endif
