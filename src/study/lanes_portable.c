/* lanes_portable.c: the loops for any CPU; the compiler turns two-lane vectors into whatever there
 * is (SSE2, NEON, or scalars). */
#include "num/cpu/cpu.h"

#define NAME portable
#define LANES 2
#define USABLE cgam_cpu_portable
#define TILE_STEP 5
#include "study/lanes_body.h"
