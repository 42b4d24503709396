/* as_net.h (inside): a recall that flows. */
#ifndef CGAM_SRC_MEMORY_AS_NET_H
#define CGAM_SRC_MEMORY_AS_NET_H

#include <cgam/as_net.h>
#include <cgam/flow.h>

#include "memory/recall.h"

/* The network of a plan in mode flow, and the margin of a free context. */
CGAM_NODISCARD cgam_status cgam_recall_net(cgam_recall *plan);

/* How a flow ended, in the words of a recall. */
cgam_end cgam_end_of_flow(cgam_flow_end end);

/* Mode flow for `count` queries that have b: q [count, d], c NULL, [d_c] or [count, d_c]. */
CGAM_NODISCARD cgam_status cgam_recall_flow(const cgam_recall *plan, int64_t count, cgam_query *m,
                                            const double *q, const double *c, bool c_per_query);

#endif
