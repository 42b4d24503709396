/* cpu.c: which sets of instructions there are, and which this CPU has. What is asked here is what
 * CMakeLists.txt lets the compiler use. */
#include "num/cpu/cpu.h"

#include <stdatomic.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool portable(void) { return true; }

#if defined(__x86_64__)
static bool avx2(void)
{
    unsigned a, b, c, d; /* clang 14 has no name for F16C, so the CPU is asked itself */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool avx512(void)
{
    return avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

#define DECLARE(set)                                                                               \
    extern const cgam_f64 cgam_f64_##set;                                                          \
    extern const cgam_f32 cgam_f32_##set;                                                          \
    extern const cgam_gemm cgam_gemm_##set;
#define ENTRY(set) {#set, set, &cgam_f64_##set, &cgam_f32_##set, &cgam_gemm_##set},
DECLARE(plain)
CGAM_CPU_SETS(DECLARE)

const cgam_cpu cgam_cpu_all[] = {
    {"plain", portable, &cgam_f64_plain, &cgam_f32_plain, &cgam_gemm_plain},
    CGAM_CPU_SETS(ENTRY){0},
};

const cgam_cpu *cgam_cpu_best(void)
{
    static _Atomic(const cgam_cpu *) chosen; /* asking a CPU is slow in a virtual machine */
    const cgam_cpu *best = atomic_load(&chosen);
    if (best) return best;
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++)
        if (cpu->usable()) best = cpu;
    atomic_store(&chosen, best);
    return best;
}
