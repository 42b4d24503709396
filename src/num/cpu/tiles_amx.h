/* tiles_amx.h: takes the eight tiles of a thread and gives them back. For files compiled for AMX. */
#ifndef CGAM_SRC_NUM_CPU_TILES_AMX_H
#define CGAM_SRC_NUM_CPU_TILES_AMX_H

#include "num/cpu/simd.h"

#include <immintrin.h>
#include <stdint.h>

/* How tiles are laid out, in the form the unit loads. */
typedef struct cgam_tiles {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} cgam_tiles;

/* All of 16 rows of 64 bytes; returns what was before. libllama lays out the tiles of a thread once and
 * relies on it ever after. Compilers believe that these instructions touch eight bytes of the layout, so they
 * are given an operand that stands for all of memory. */
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

enum { CGAM_TILE_SIDE = 16 };

/* Compilers do not know that tiles are loaded from memory. */
#define CGAM_TILE_WRITTEN() __asm__ volatile("" : : : "memory")

/* 16 lines of 16 words: rows become columns. */
static inline __attribute__((always_inline)) void cgam_tile_turn(__m512i r[CGAM_TILE_SIDE])
{
    __m512i t[CGAM_TILE_SIDE];
    UNROLL
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (int j = 0; j < 2; j++) {
            r[4 * i + 2 * j] = _mm512_unpacklo_epi64(t[4 * i + j], t[4 * i + j + 2]);
            r[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(t[4 * i + j], t[4 * i + j + 2]);
        }
    }
    /* r[4 i + j]: in each of four lanes, column 4 lane + j of rows 4 i .. 4 i + 3 */
    UNROLL
    for (int j = 0; j < 4; j++) {
        __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88);
        __m512i b = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
        __m512i c = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
        __m512i d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
        t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    UNROLL
    for (int i = 0; i < CGAM_TILE_SIDE; i++) r[i] = t[i];
}

#endif
