/* batch.h: the softmax of attend.h for many queries at once, as products of matrices.
 *
 * A tile of rows becomes scores S = Z_tile Q' for all queries of a panel, exponentials, and a
 * share of the readouts E'Z_tile, while it is in cache; no n x queries matrix is written.
 *
 * Arithmetic. Rows of f32, f16 and bf16 are multiplied in f32. Sums of at most CGAM_BATCH_DEPTH
 * products are formed in f32, from zero, and added up in double. With eps = 2^-24
 * and queries rounded to f32,
 *     |b - b exact| <= (CGAM_BATCH_DEPTH + 2) eps sum_j |zeta_j q_j| ,
 * of which a hundredth is seen. The leaders and the focus are scored again in double and their
 * share of the sums is put right, so that what a peaked softmax says is good to double. */
#ifndef CGAM_SRC_NUM_BATCH_H
#define CGAM_SRC_NUM_BATCH_H

#include "num/attend.h"

enum { CGAM_BATCH_DEPTH = 128 };

/* Is this call one for the matrix kernels: queries enough, a bank large enough, rows narrower than
 * double, and one s for all queries or none? */
bool cgam_batch_suits(const cgam_attend_in *in);
/* As cgam_rows_attend, any count. Results do not depend on the number of threads, but those of a
 * query depend, in rounding, on whether it comes alone. */
cgam_status cgam_rows_attend_batch(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out);

#endif
