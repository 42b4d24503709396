/* cpu.c: lists the sets of instructions and detects which of them this CPU has. Each test here asks for the features
 * that CMakeLists.txt lets the compiler use for that set. */
#include "num/cpu/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static bool portable(void) { return true; }

#if defined(__x86_64__)
static bool avx2(void)
{
    unsigned a, b, c, d; /* clang 14 has no name for F16C, so use cpuid */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool avx512(void)
{
    return avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool avxvnni(void)
{
    enum { VECTORS_INT8 = 1 << 4 };
    unsigned a, b, c, d;
    return avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & VECTORS_INT8);
}

static bool vnni(void) { return avx512() && __builtin_cpu_supports("avx512vnni"); }
static bool vnni_amd(void) { return vnni() && __builtin_cpu_is("amd"); }

/* Tiles are 8 KB of state per thread, and a process must ask the kernel for permission once. The
 * kernel refuses if there are no tiles, or if a signal stack would be too small for them. */
static bool amx(void)
{
#if defined(__linux__)
    enum { UNIT = 1 << 24 | 1 << 22 | 1 << 25 }; /* tiles, of bf16, of bytes */
    enum { VECTORS_BF16 = 1 << 5 };
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* of arch_prctl */
    unsigned a, b, c, d, first;
    return vnni() && __get_cpuid_count(7, 0, &a, &b, &c, &first) && (first & UNIT) == UNIT &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & VECTORS_BF16) &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}
#elif defined(__aarch64__)
static bool neon(void) { return true; }
static bool dotprod(void) { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP; }
#endif

#define DECLARE(set)                                                                               \
    extern const cgam_f64 cgam_f64_##set;                                                          \
    extern const cgam_f32 cgam_f32_##set;                                                          \
    extern const cgam_gemm cgam_gemm_##set;                                                        \
    extern const cgam_int8 cgam_int8_##set, cgam_int8_many_##set;                                  \
    extern const cgam_sift cgam_sift_##set;
DECLARE(plain)
CGAM_CPU_SETS(DECLARE)
extern const cgam_int8 cgam_int8_avxvnni, cgam_int8_many_avxvnni, cgam_int8_vnni,
    cgam_int8_many_vnni, cgam_int8_many_amx;
extern const cgam_int8 cgam_int8_dotprod, cgam_int8_many_dotprod;
extern const cgam_f32 cgam_f32_avx512_far;
extern const cgam_split cgam_split_amx;
extern const cgam_digits cgam_digits_amx;

/* An entry with the loops of a set, and its own loops for rows in f32, for bytes and for tiles. */
#define ENTRY(name, set, f32, int8, many, ...)                                                     \
    {                                                                                              \
#name, name, &cgam_f64_##set, &cgam_f32_##f32, &cgam_gemm_##set, &cgam_int8_##int8,        \
            &cgam_int8_many_##many, &cgam_sift_##set, __VA_ARGS__                                  \
    }

static bool plain(void) { return true; }

const cgam_cpu cgam_cpu_all[] = {
    ENTRY(plain, plain, plain, plain, plain, NULL, NULL),
    ENTRY(portable, portable, portable, portable, portable, NULL, NULL),
#if defined(__x86_64__)
    ENTRY(avx2, avx2, avx2, avx2, avx2, NULL, NULL),
    ENTRY(avxvnni, avx2, avx2, avxvnni, avxvnni, NULL, NULL),
    ENTRY(avx512, avx512, avx512, avx512, avx512, NULL, NULL),
    ENTRY(vnni, avx512, avx512, vnni, vnni, NULL, NULL),
    ENTRY(vnni_amd, avx512, avx512_far, vnni, vnni, NULL, NULL),
    ENTRY(amx, avx512, avx512, vnni, amx, &cgam_split_amx, &cgam_digits_amx),
#elif defined(__aarch64__)
    ENTRY(neon, neon, neon, neon, neon, NULL, NULL),
    ENTRY(dotprod, neon, neon, dotprod, dotprod, NULL, NULL),
#endif
    {0},
};

static _Atomic(const cgam_cpu *) chosen; /* cpuid is slow in a virtual machine */

const cgam_cpu *cgam_cpu_best(void)
{
    const cgam_cpu *best = atomic_load(&chosen);
    if (best) return best;
    const char *wish = getenv("CGAM_CPU");
    for (const cgam_cpu *cpu = cgam_cpu_all; cpu->name; cpu++)
        if (cpu->usable() && (!best || !wish || strcmp(best->name, wish) != 0)) best = cpu;
    atomic_store(&chosen, best);
    return best;
}

void cgam_cpu_pretend(const cgam_cpu *cpu) { atomic_store(&chosen, cpu); }
