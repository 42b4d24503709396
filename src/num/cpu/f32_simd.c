/* f32_simd.c: f32.h with vectors of BYTES bytes.
 *
 * Rows are read in PAIRs of vectors. Two bf16 numbers share a 32-bit word: a shift gives those at even places, a mask
 * those at odd ones. x and readouts are stored in that order, and flushing restores the order of the columns.
 *
 * Long rows are processed four at a time if there are registers for it. A single row loads x and the sums again: 8 loads
 * per line of 32 bytes, against 5 with four rows. Four streams are also read faster than one, in 0.87-0.9 of the time on a
 * Sapphire Rapids, whose core keeps more lines in flight for several pages than for one.
 *
 * Measured, scores in turns with the readout, in units of one read of the rows (one stream, one core):
 *
 *   Vectors of 64 bytes (Sapphire Rapids), d = 4096 and 2048, with as many of the following rows fetched ahead:
 *     f32   one row 1.12-1.15 and 1.08-1.10; two 1.05-1.10 and 0.95-0.99; four 0.97-1.02 and 1.02-1.04; without fetching
 *           ahead 1.2-1.3. Scores alone: one row 1.00, four 0.89.
 *     bf16  one row 1.21-1.37; four 1.16-1.28, and up to 1.4 from minute to minute: the arithmetic on a line adds to its
 *           reading. A load that waits for the second level holds up the instructions that need it, and with them the
 *           fetching ahead. Therefore lines of bf16 are fetched once more, 256 bytes before their use, stale lines too,
 *           512 columns at a time so that x and y leave room for them: 1.13 at both sizes, in minutes in which it was
 *           1.37-1.40 before. 512 bytes ahead: 1.21-1.25; 1024: no gain. 1024 columns: 1.20-1.25; 2048: 1.25-1.4. Only
 *           fresh or only stale lines: no gain. For f32 (1.07 to 1.20) and f16 (1.30 to 1.42) it costs more than it saves.
 *
 *   Zen 4 (vectors processed in two halves; the core reads 22-27 GB/s), d = 2048 and 4096:
 *     bf16  1.60 and 1.37 with lines fetched near, 1.16 and 1.16 without; two rows 1.14 and 1.14; all columns at once 1.26.
 *           Hence the separate table without near fetches (far).
 *     f32   1.10-1.35 in all variants: one row 1.4, two 1.3, four 1.25, eight 1.5; half of the lines fetched ahead, or none,
 *           1.4-1.8.
 *
 *   Vectors of 32 bytes (Zen 3), d = 2048: one row with lines fetched ahead 1.39, without 1.34; two 1.18; four 0.92-1.05;
 *   six 1.08-1.16; eight 1.2-1.4. Fetching ahead pays for halves only, where a line takes twice the arithmetic: 1.43 to
 *   1.37. */
#include "num/cpu/f32.h"
#include "num/cpu/simd.h"

enum {
    LANES = BYTES / 4,
    PAIR = 2 * LANES,
    ROWS = LANES >= 8 ? 4 : 1, /* that long rows go by */
    SUMS = LANES == 8 ? 2 : 4, /* accumulators of a score */
    WIDE = LANES >= 8 ? 2 : 4, /* pairs of a step */
    STEP = WIDE * PAIR,        /* its columns */
    BLOCK = 32 * SUMS *
            LANES, /* columns of a pass: 32 terms a lane, up to 35 in the last; see COLUMNS */
    SHORT = 5,     /* a row of fewer pairs has its whole readout in registers */
    UNROLLED = LANES == 16 ? 4 : 0, /* pairs of a row up to which eight rows are one run of code */
    GROUP = 8,                      /* rows whose sums are added up side by side */
    AHEAD = LANES == 8 ? 0 : 8192,  /* bytes that prefetching is ahead of the reading; 0: none */
    CACHED = 2048,                  /* columns of which x and y fit the first-level cache */
};
#define COLUMNS(near) ((near) ? BLOCK / 4 : BLOCK) /* of a pass over long rows */

INLINE void pair_f32(const float *p, vf *a, vf *b)
{
    *a = load_f32(p);
    *b = load_f32(p + LANES);
}

INLINE void pair_bf16(const uint16_t *p, vf *a, vf *b)
{
    vw v;
    memcpy(&v, p, sizeof v);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    *b = (vf)(v << 16);
    *a = (vf)(v & 0xffff0000u);
#else
    *a = (vf)(v << 16);
    *b = (vf)(v & 0xffff0000u);
#endif
}

/* Where the number at place k of a pair stands in the two vectors. */
INLINE int straight(int k) { return k; }
INLINE int woven(int k) { return k / 2 + (k % 2) * LANES; }

/* For vectors in the order of the columns, what weave is for woven ones. */
INLINE void leave(vf *a, vf *b)
{
    (void)a;
    (void)b;
}

/* The accumulators of a score as one. */
INLINE vf lanes_join(const vf *s)
{
    return SUMS == 2 ? s[0] + s[1] : (s[0] + s[1]) + (s[2 % SUMS] + s[3 % SUMS]);
}

INLINE double score_sum(const vf *s)
{
    vf all = lanes_join(s);
    return lanes_sum(low(all) + high(all));
}

#define OF(name) name##_f32
#define TYPE float
#define PLACE straight
#define ORDER leave
#define NEAR 0
#include "num/cpu/f32_rows.h"

#define OF(name) name##_f16
#define TYPE uint16_t
#define PLACE straight
#define ORDER leave
#define NEAR 0
#include "num/cpu/f32_rows.h"

#define OF(name) name##_bf16
#define TYPE uint16_t
#define PLACE woven
#define ORDER weave
#define NEAR (BYTES == 64 ? 256 : 0)
#include "num/cpu/f32_rows.h"

/* Two tiles, one fresh and one stale, are to stay in the second-level cache, of which servers with vectors of 64 bytes have 1 MB or more.
 * Tiles of 8 rows (128 KB) cost one query at d = 4096 1.15-1.21 of a reading on an Emerald Rapids, of 16 1.13-1.16, of 24 and 32
 * 1.16-1.23: less of what is done between tiles, and then less room. */
extern const cgam_f32 JOIN(cgam_f32, NAME);
const cgam_f32 JOIN(cgam_f32,
                    NAME) = CGAM_F32_TABLE(BYTES == 64 ? 2 * CGAM_F32_TILE : CGAM_F32_TILE);
#if BYTES == 64
extern const cgam_f32 JOIN(JOIN(cgam_f32, NAME), far);
const cgam_f32 JOIN(JOIN(cgam_f32, NAME), far) = {
    .lay = CGAM_F32_EACH(lay),
    .dot = {NULL, dot_f32, dot_f16, dot_far_bf16},
    .sum = CGAM_F32_EACH(sum),
    .both = {NULL, both_f32, both_f16, both_far_bf16},
    .flush = CGAM_F32_EACH(flush),
    .tile = CGAM_F32_TILE,
};
#endif
