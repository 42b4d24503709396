/* limits_amx.c: the rate of a tile unit that never waits for data. */
#include "bench/limits.h"

#if defined(__x86_64__)
#include "num/cpu/tiles_amx.h"

void cgam_limits_tiles(int64_t rounds)
{
    enum { SIDE = 16, STEP = 32 };
    _Alignas(64) uint16_t numbers[SIDE * STEP];
    /* The clock depends on the numbers: with zeros it is a fifth higher, so there are none. */
    for (int i = 0; i < SIDE * STEP; i++) numbers[i] = (uint16_t)(0x3f00 + i * 7919 % 256);
    __asm__ volatile("" : : "r"(numbers) : "memory");
    const cgam_tiles theirs = cgam_tiles_take();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, numbers, 64);
    _tile_loadd(5, numbers, 64);
    _tile_loadd(6, numbers, 64);
    _tile_loadd(7, numbers, 64);
    for (int64_t i = 0; i < rounds; i++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    cgam_tiles_return(&theirs);
}
#else
void cgam_limits_tiles(int64_t rounds) { (void)rounds; }
#endif
