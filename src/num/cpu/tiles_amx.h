/* tiles_amx.h: the eight tiles of a thread, taken and given back. For files that are compiled for AMX. */
#ifndef CGAM_SRC_NUM_CPU_TILES_AMX_H
#define CGAM_SRC_NUM_CPU_TILES_AMX_H

#include <immintrin.h>
#include <stdint.h>

/* How tiles are laid out, as the unit wants to be told. */
typedef struct cgam_tiles {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} cgam_tiles;

/* All of 16 rows of 64 bytes; returns what was before. libllama lays out the tiles of a thread once and
 * relies on it ever after. Compilers believe that these instructions touch eight bytes of the layout, so they
 * are told that it is all of memory. */
static inline cgam_tiles cgam_tiles_take(void)
{
    static const cgam_tiles ours = {
        1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    cgam_tiles theirs = {0};
    __asm__ volatile("" : : "r"(&theirs) : "memory");
    _tile_storeconfig(&theirs);
    __asm__ volatile("" : : "r"(&theirs) : "memory");
    _tile_loadconfig(&ours);
    return theirs;
}

static inline void cgam_tiles_return(const cgam_tiles *theirs)
{
    __asm__ volatile("" : : "r"(theirs) : "memory");
    if (theirs->palette) _tile_loadconfig(theirs);
    else _tile_release();
}

#endif
