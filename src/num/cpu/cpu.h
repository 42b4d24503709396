/* cpu.h: which of the files X_portable.c, X_avx2.c and X_avx512.c this CPU can run. What is asked
 * here is what CMakeLists.txt lets the compiler use in files of these names. */
#ifndef CGAM_SRC_NUM_CPU_H
#define CGAM_SRC_NUM_CPU_H

#include <stdbool.h>

static inline bool cgam_cpu_portable(void) { return true; }

#if defined(__x86_64__)
#include <cpuid.h>

static inline bool cgam_cpu_avx2(void)
{
    unsigned a, b, c, d; /* clang 14 has no name for F16C, so the CPU is asked itself */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static inline bool cgam_cpu_avx512(void)
{
    return cgam_cpu_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
}
#endif

#endif
