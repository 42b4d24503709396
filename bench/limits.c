/* limits.c: the loops that go with a CPU. */
#include "bench/limits.h"

#define DECLARE(set) extern const cgam_limits cgam_limits_##set;
#define ENTRY(set) &cgam_limits_##set,
CGAM_CPU_SETS(DECLARE)

const cgam_limits *cgam_limits_of(const cgam_cpu *cpu)
{
    static const cgam_limits *const all[] = {&cgam_limits_portable, CGAM_CPU_ROWS(ENTRY)};
    return all[cpu - cgam_cpu_all];
}
