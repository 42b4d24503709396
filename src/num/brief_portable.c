/* brief_portable.c: f32 scores and readouts for any CPU. */
#include <stdbool.h>

static bool usable(void) { return true; }

#define NAME portable
#define LANES 4
#define USABLE usable
#include "num/brief_body.h"
