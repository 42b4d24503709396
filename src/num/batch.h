/* batch.h: the softmax of attend.h for many queries at once, as products of matrices (pass.h).
 *
 * Queries that attend.h would score in f32 are multiplied in f32, with the bound of pass.h; if one
 * of them is not, all are in double. Shared s are added relative to the largest of them, so that rounding is that of the
 * difference. The leaders and the focus are scored again in double, and their share of the sums
 * and of the readout is put right: what a peaked softmax says is good to double. */
#ifndef CGAM_SRC_NUM_BATCH_H
#define CGAM_SRC_NUM_BATCH_H

#include "num/attend.h"

/* Is this call one for the matrix kernels: queries enough and a bank large enough? */
bool cgam_batch_suits(const cgam_attend_in *in);
/* As cgam_rows_attend, any count. Results do not depend on the number of threads, but those of a
 * query depend, in rounding, on whether it comes alone. Queries whose products leave the range of
 * f32, or whose leaders it cannot tell, are answered by cgam_rows_attend. */
cgam_status cgam_rows_attend_batch(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out);

#endif
