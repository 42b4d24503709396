/* panels_portable.c: matrix products for any CPU, by vectors of 16 bytes. */
#include <stdbool.h>

static bool usable(void) { return true; }

#define NAME portable
#define BYTES 16
#define VECTORS 2
#define USABLE usable
#include "num/panels_body.h"
