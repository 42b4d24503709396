/* digits_amx.c: digits.h on the tile unit of x86-64 (AMX), with AVX-512 around it.
 *
 * A tile is 16 lines of 64 bytes. TDPBUSD multiplies 16 lines of 64 unsigned bytes by 16 columns of 64 signed ones, in groups of
 * four: line p of that tile holds numbers 4p .. 4p + 3 of all 16 columns. The order in which 64 numbers are summed is free.
 * Shifts and blends turn four vectors of f32 into three lines of digits (planes), with byte i of a word from vector i. The four
 * vectors are four quarters of 64 columns (scores, where a row is a line) or four rows (readout, where a row is a column).
 *
 * Rows are converted by one multiply-add: z/step + 2^23 + 0x408080 is rounded to an integer whose last three bytes are
 * unsigned digits, x2 + 64, x1 + 128 and x0 + 128. The excess in the scores, 64 or 128 times the digits of a vector, is known
 * in advance, and their sums start from minus that excess instead of zero. For readouts the digits are made signed, by an add
 * and a flip of the highest bits: loading start values for twelve tiles of sums took longer.
 *
 * Products of digits of the same weight share sums. Scores use four tiles of sums, 16 rows by 16 vectors, and three for the
 * digits of rows; those of vectors pass through the last tile. Readouts use three tiles of 16 vectors by 16 columns. The unit
 * works in parallel with other instructions, so between products the next rows are converted and the previous sums are
 * collected. 16 rows by 64 columns by 64 vectors take 385 ns for scores (32 products) and 365 for the readout (24) with everything
 * in the second-level cache (Emerald Rapids; the products alone take 271 and 222), 540 and 410 with rows from memory.
 *
 * Rows arrive from memory fastest by the CPU's own prefetcher, 1 KB of each of 16 in turn; only where a row enters a page are its
 * first lines fetched explicitly (700 ns without). Fetching all lines explicitly, whole pages of a row at a time, or the next rows
 * during the readout was slower, because these fetches wait in the buffers that vectors pass through. For the readout, rows d
 * numbers apart are beyond that prefetcher: there each line is fetched one step ahead. */
#include "num/cpu/digits.h"

#if defined(__x86_64__)
#include "num/cpu/simd.h"
#include "num/cpu/tiles_amx.h"

#include <math.h>

enum {
    DIGITS = 3,
    TILE = 1024,
    SIDE = 16,
    STEP = 64,                        /* numbers of a product */
    STEPS = CGAM_DIGITS_BLOCK / STEP, /* of a block */
    RUNS = CGAM_DIGITS_BLOCK / SIDE,  /* of 16 numbers, in a block of a row */
    CLASSES = 4,                      /* of products: of weights 2^32, 2^24, 2^16, 2^8 */
    READ_CLASSES = 3,                 /* for readouts, all but the last */
    READ_TILES = CGAM_DIGITS_GROUP / SIDE,
    PAGE = 4096,
    HEAD = 4 /* lines of a page that are fetched explicitly */
};

#define MAGIC (0x1p23F + 0x408080p0F)

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t tiles_of(int64_t count) { return (count + SIDE - 1) / SIDE; }

/* ---- Whole numbers and their digits --------------------------------------------------------- */
/* The factor for numbers up to `largest`, and its inverse. */
typedef struct scale {
    float by, step;
} scale;

INLINE scale scale_of(float largest, float most)
{
    if (!isfinite(largest)) return (scale){0, NAN};
    if (largest < CGAM_DIGITS_LEAST) return (scale){0, 0};
    return (scale){most / largest, largest / most};
}

/* The largest absolute value. Compares bits, so infinities and NaN are larger than all other numbers. */
INLINE __m512i magnitude(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}
INLINE float finite_or_nan(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return isfinite(x) ? x : NAN;
}

/* plane[k] = the digits k, the highest first, byte i of a word from x[i]. */
INLINE void planes(const __m512i x[4], __m512i plane[DIGITS])
{
    const __mmask64 odd = 0xaaaaaaaaaaaaaaaa;
    const __mmask32 high = 0xaaaaaaaa;
    __m512i even01 = _mm512_mask_blend_epi8(odd, x[0], _mm512_slli_epi32(x[1], 8));
    __m512i odd01 = _mm512_mask_blend_epi8(odd, _mm512_srli_epi32(x[0], 8), x[1]);
    __m512i even23 = _mm512_mask_blend_epi8(odd, x[2], _mm512_slli_epi32(x[3], 8));
    __m512i odd23 = _mm512_mask_blend_epi8(odd, _mm512_srli_epi32(x[2], 8), x[3]);
    plane[0] = _mm512_mask_blend_epi16(high, _mm512_srli_epi32(even01, 16), even23);
    plane[1] = _mm512_mask_blend_epi16(high, odd01, _mm512_slli_epi32(odd23, 16));
    plane[2] = _mm512_mask_blend_epi16(high, even01, _mm512_slli_epi32(even23, 16));
}

/* Signed digits from unsigned ones. */
INLINE __m512i signs_flipped(__m512i plane)
{
    return _mm512_xor_si512(plane, _mm512_set1_epi8((char)0x80));
}

/* Signed digits, of x times by, which is at most CGAM_DIGITS_VECTOR. */
INLINE void signed_planes(const __m512 x[4], __m512 by, __m512i plane[DIGITS])
{
    const __m512i centre = _mm512_set1_epi32(0x808080);
    __m512i whole[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        whole[i] = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(x[i], by)), centre);
    planes(whole, plane);
    UNROLL
    for (int k = 0; k < DIGITS; k++) plane[k] = signs_flipped(plane[k]);
}

INLINE __m512i unsigned_digits(__m512 x, __m512 by)
{
    return _mm512_castps_si512(_mm512_fmadd_ps(x, by, _mm512_set1_ps(MAGIC)));
}

/* Minus the excess of products with x2 + 64, x1 + 128, x0 + 128; total[k]: sums of the other side's digits. */
INLINE void too_much(const int32_t total[DIGITS], int32_t out[CLASSES])
{
    out[0] = -64 * total[0];
    out[1] = -64 * total[1] - 128 * total[0];
    out[2] = -64 * total[2] - 128 * (total[1] + total[0]);
    out[3] = -128 * (total[2] + total[1]);
}

/* A tall matrix of f32 or bf16. */
typedef struct tall {
    const char *at;
    int64_t rows, columns, size, ld; /* numbers; bytes of one, and from a row to the next */
} tall;

static tall tall_of(cgam_dtype type, int64_t rows, int64_t columns, const void *Z, int64_t ld)
{
    int64_t size = (int64_t)cgam_dtype_size(type);
    return (tall){Z, rows, columns, size, ld * size};
}

/* 16 numbers, or as many as `there` says. */
INLINE __m512 numbers(bool bf16, const char *at, __mmask16 there)
{
    if (!bf16) return _mm512_maskz_loadu_ps(there, at);
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
INLINE __mmask16 there(int64_t count)
{
    return count >= SIDE ? 0xffff : (__mmask16)(count > 0 ? (1u << count) - 1 : 0);
}

/* ---- Vectors -------------------------------------------------------------------------------- */
/* 16 vectors in a block: start values of their sums, their steps, their digits. */
typedef struct laid {
    _Alignas(64) int32_t start[CLASSES][SIDE];
    _Alignas(64) float step[SIDE];
    _Alignas(64) char tile[STEPS][DIGITS][TILE];
} laid;

static size_t room(int64_t count, int64_t d)
{
    return (size_t)(cgam_digits_blocks(d) * tiles_of(count)) * sizeof(laid);
}

/* 16 doubles, or as many as there are, in f32. */
INLINE __m512 narrowed(const double *x, int64_t count)
{
    __mmask16 here = there(count);
    __m256 low = _mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)here, x));
    __m256 high = _mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)(here >> 8), x + SIDE / 2));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

static void lay_block(int64_t count, int64_t columns, int64_t d, const double *X, laid *out)
{
    int32_t total[DIGITS][SIDE] = {{0}}, start[CLASSES];
    __m512i line[STEPS][DIGITS][SIDE];
    memset(line, 0, sizeof line);
    memset(out->step, 0, sizeof out->step);
    for (int64_t v = 0; v < count; v++) {
        __m512 x[RUNS];
        __m512i most = _mm512_setzero_si512();
        UNROLL
        for (int i = 0; i < RUNS; i++) {
            x[i] = narrowed(X + v * d + i * SIDE, columns - i * SIDE);
            most = _mm512_max_epu32(most, magnitude(x[i]));
        }
        scale s = scale_of(finite_or_nan(_mm512_reduce_max_epu32(most)), CGAM_DIGITS_VECTOR);
        out->step[v] = s.step;
        UNROLL
        for (int k = 0; k < STEPS; k++) {
            __m512i plane[DIGITS];
            signed_planes(x + 4 * k, _mm512_set1_ps(s.by), plane);
            for (int t = 0; t < DIGITS; t++) {
                line[k][t][v] = plane[t];
                total[t][v] += _mm512_reduce_add_epi32(
                    _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), plane[t]));
            }
        }
    }
    for (int k = 0; k < STEPS; k++)
        for (int t = 0; t < DIGITS; t++) {
            cgam_tile_turn(line[k][t]);
            memcpy(out->tile[k][t], line[k][t], TILE);
        }
    for (int v = 0; v < SIDE; v++) {
        too_much((int32_t[]){total[0][v], total[1][v], total[2][v]}, start);
        for (int c = 0; c < CLASSES; c++) out->start[c][v] = start[c];
    }
}

static void lay(int64_t count, int64_t d, const double *X, void *out)
{
    laid *at = out;
    for (int64_t j = 0; j < d; j += CGAM_DIGITS_BLOCK)
        for (int64_t v = 0; v < count; v += SIDE)
            lay_block(at_most(count - v, SIDE), d - j, d, X + v * d + j, at++);
}

/* ---- Scores --------------------------------------------------------------------------------- */
/* 16 rows of a block. */
typedef struct packed {
    _Alignas(64) char tile[STEPS][DIGITS][TILE];
} packed;

/* Row r of the block from column c on becomes line `line`. */
INLINE void pack_row(bool bf16, bool whole, const tall *x, int64_t r, int64_t c, packed *out,
                     int64_t line, float *step, float *largest)
{
    const char *at = x->at + r * x->ld + c * x->size;
    __m512 z[RUNS];
    __m512i most = _mm512_setzero_si512();
    UNROLL
    for (int i = 0; i < RUNS; i++) {
        z[i] = numbers(bf16, at + i * SIDE * x->size,
                       whole ? 0xffff : there(x->columns - c - i * SIDE));
        most = _mm512_max_epu32(most, magnitude(z[i]));
    }
    float here = finite_or_nan(_mm512_reduce_max_epu32(most));
    scale s = scale_of(here, CGAM_DIGITS_ROW);
    *step = s.step;
    *largest = here;
    UNROLL
    for (int k = 0; k < STEPS; k++) {
        __m512i digits[4], plane[DIGITS];
        UNROLL
        for (int i = 0; i < 4; i++) digits[i] = unsigned_digits(z[4 * k + i], _mm512_set1_ps(s.by));
        planes(digits, plane);
        UNROLL
        for (int t = 0; t < DIGITS; t++) _mm512_store_si512(out->tile[k][t] + line * 64, plane[t]);
    }
}

/* Sums of a tile that have yet to be collected. */
typedef struct waiting {
    _Alignas(64) int32_t sum[CLASSES][SIDE][SIDE];
    const float *row_step;
    const float *step;
    float *S; /* of the first row; NULL = there are none */
    int64_t rows, ld;
    bool add;
} waiting;

INLINE void gather(const waiting *w, int64_t from, int64_t end)
{
    if (!w->S) return;
    const __m512 base = _mm512_set1_ps(256), step = _mm512_mul_ps(base, _mm512_load_ps(w->step));
    for (int64_t r = from; r < at_most(end, w->rows); r++) {
        __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(w->sum[0][r]));
        UNROLL
        for (int c = 1; c < CLASSES; c++)
            sum = _mm512_fmadd_ps(sum, base, _mm512_cvtepi32_ps(_mm512_load_si512(w->sum[c][r])));
        __m512 by = _mm512_mul_ps(step, _mm512_set1_ps(w->row_step[r]));
        __m512 before = w->add ? _mm512_loadu_ps(w->S + r * w->ld) : _mm512_setzero_ps();
        _mm512_storeu_ps(w->S + r * w->ld, _mm512_fmadd_ps(sum, by, before));
    }
}

/* The next rows. Missing ones are replaced by the last row. */
typedef struct coming {
    int64_t row, column, line; /* line: the next to be packed; SIDE = none are left */
    packed *out;
    float *step;    /* [SIDE] */
    float *largest; /* [rows, blocks], all of them */
} coming;

INLINE void pack_next(bool bf16, const tall *x, coming *next)
{
    if (next->line == SIDE) return;
    int64_t i = next->line++, r = next->row + i, c = next->column, after = c + CGAM_DIGITS_BLOCK;
    const char *ahead =
        x->at + (after < x->columns ? r * x->ld + after * x->size : (r + SIDE) * x->ld);
    if ((int64_t)((uintptr_t)ahead % PAGE) < CGAM_DIGITS_BLOCK * x->size)
        for (int k = 0; k < HEAD; k++) _mm_prefetch(ahead + k * 64, _MM_HINT_T1);
    r = at_most(r, x->rows - 1);
    float *most = next->largest + r * cgam_digits_blocks(x->columns) + c / CGAM_DIGITS_BLOCK;
    if (after <= x->columns) pack_row(bf16, true, x, r, c, next->out, i, next->step + i, most);
    else pack_row(bf16, false, x, r, c, next->out, i, next->step + i, most);
}

/* A block of 16 rows by 16 vectors: sums of all classes into w, while its previous sums are collected. */
INLINE void multiply(bool bf16, int64_t steps, const tall *x, const packed *rows,
                     const laid *vectors, coming *next, waiting *w)
{
    _tile_loadd(0, vectors->start[0], 0); /* the same line, 16 times */
    _tile_loadd(1, vectors->start[1], 0);
    _tile_loadd(2, vectors->start[2], 0);
    _tile_loadd(3, vectors->start[3], 0);
    for (int64_t k = 0; k < steps; k++) {
        _tile_loadd(4, rows->tile[k][0], 64);
        _tile_loadd(7, vectors->tile[k][0], 64);
        _tile_dpbusd(0, 4, 7);
        _tile_loadd(5, rows->tile[k][1], 64);
        _tile_dpbusd(1, 5, 7);
        _tile_loadd(6, rows->tile[k][2], 64);
        _tile_dpbusd(2, 6, 7);
        gather(w, 4 * k, 4 * k + 4);
        _tile_loadd(7, vectors->tile[k][1], 64);
        _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 7);
        _tile_dpbusd(3, 6, 7);
        pack_next(bf16, x, next);
        _tile_loadd(7, vectors->tile[k][2], 64);
        _tile_dpbusd(2, 4, 7);
        _tile_dpbusd(3, 5, 7);
    }
    gather(w, 4 * steps, SIDE);
    CGAM_TILE_WRITTEN();
    _tile_stored(0, w->sum[0], 64);
    _tile_stored(1, w->sum[1], 64);
    _tile_stored(2, w->sum[2], 64);
    _tile_stored(3, w->sum[3], 64);
    CGAM_TILE_WRITTEN();
}

INLINE void score_of(bool bf16, const tall *x, int64_t tiles, const laid *X, float *S,
                     float *largest)
{
    packed rows[2];
    float step[3][SIDE]; /* also of rows whose sums wait */
    waiting w = {.S = NULL};
    int64_t blocks = cgam_digits_blocks(x->columns), last = (x->rows + SIDE - 1) / SIDE * blocks;
    coming next = {0, 0, 0, &rows[0], step[0], largest};
    while (next.line < SIDE) pack_next(bf16, x, &next);
    for (int64_t i = 0; i < last; i++) {
        int64_t row = i / blocks * SIDE, b = i % blocks,
                columns = x->columns - b * CGAM_DIGITS_BLOCK;
        int64_t steps = at_most((columns + STEP - 1) / STEP, STEPS);
        int64_t to = (i + 1) / blocks;
        CGAM_TILE_WRITTEN();
        next = (coming){to * SIDE,
                        (i + 1) % blocks * CGAM_DIGITS_BLOCK,
                        i + 1 < last ? 0 : SIDE,
                        &rows[(i + 1) % 2],
                        step[(i + 1) % 3],
                        largest};
        for (int64_t v = 0; v < tiles; v++) {
            const laid *vectors = X + b * tiles + v;
            multiply(bf16, steps, x, &rows[i % 2], vectors, &next, &w);
            w.row_step = step[i % 3];
            w.step = vectors->step;
            w.S = S + row * tiles * SIDE + v * SIDE;
            w.rows = x->rows - row;
            w.ld = tiles * SIDE;
            w.add = b > 0;
        }
        while (next.line < SIDE) pack_next(bf16, x, &next);
    }
    gather(&w, 0, SIDE);
}

static void score(cgam_dtype type, int64_t rows, int64_t count, int64_t d, const void *Z,
                  int64_t ld, const void *X, float *S, float *largest)
{
    tall x = tall_of(type, rows, d, Z, ld);
    const cgam_tiles theirs = cgam_tiles_take();
    if (type == CGAM_F32) score_of(false, &x, tiles_of(count), X, S, largest);
    else score_of(true, &x, tiles_of(count), X, S, largest);
    cgam_tiles_return(&theirs);
}

static void largest(cgam_dtype type, int64_t rows, int64_t d, const void *Z, int64_t ld, float *out)
{
    tall x = tall_of(type, rows, d, Z, ld);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t from = 0; from < d; from += CGAM_DIGITS_BLOCK) {
            const char *at = x.at + r * x.ld + from * x.size;
            __m512i most = _mm512_setzero_si512();
            for (int64_t c = 0; c < CGAM_DIGITS_BLOCK; c += SIDE) {
                __m512 z = numbers(type != CGAM_F32, at + c * x.size, there(d - from - c));
                most = _mm512_max_epu32(most, magnitude(z));
            }
            *out++ = finite_or_nan(_mm512_reduce_max_epu32(most));
        }
}

/* ---- Readout -------------------------------------------------------------------------------- */
/* Weights of up to 64 rows for 16 vectors: digits, and steps. */
typedef struct weighed {
    _Alignas(64) char tile[DIGITS][TILE];
    _Alignas(64) float step[SIDE];
} weighed;

static void weigh(int64_t rows, int64_t ld, const float *W, const float *row_step, weighed *out)
{
    __m512 x[CGAM_DIGITS_ROWS];
    __m512i most = _mm512_setzero_si512(), line[DIGITS][SIDE], plane[DIGITS];
    _Alignas(64) uint32_t bits[SIDE];
    _Alignas(64) float by[SIDE];
    for (int64_t r = 0; r < CGAM_DIGITS_ROWS; r++) {
        x[r] = r < rows ? _mm512_mul_ps(_mm512_loadu_ps(W + r * ld), _mm512_set1_ps(row_step[r]))
                        : _mm512_setzero_ps();
        most = _mm512_max_epu32(most, magnitude(x[r]));
    }
    _mm512_store_si512(bits, most);
    for (int v = 0; v < SIDE; v++) {
        scale s = scale_of(finite_or_nan(bits[v]), CGAM_DIGITS_VECTOR);
        by[v] = s.by;
        out->step[v] = s.step * 0x1p16F;
    }
    for (int p = 0; p < SIDE; p++) {
        signed_planes(x + 4 * p, _mm512_load_ps(by), plane);
        for (int t = 0; t < DIGITS; t++) line[t][p] = plane[t];
    }
    for (int t = 0; t < DIGITS; t++) {
        cgam_tile_turn(line[t]);
        memcpy(out->tile[t], line[t], TILE);
    }
}

/* The largest of all blocks of a row; NAN if one is NAN. */
INLINE float largest_of(int64_t blocks, const float *largest)
{
    float most = largest[0];
    for (int64_t b = 1; b < blocks; b++)
        if (!(largest[b] <= most) && !isnan(most)) most = largest[b];
    return most;
}

static void weights(int64_t rows, int64_t count, int64_t d, const float *W, const float *largest,
                    void *out)
{
    float step[CGAM_DIGITS_ROWS];
    int64_t blocks = cgam_digits_blocks(d);
    weighed *at = out;
    for (int64_t r = 0; r < rows; r++)
        step[r] = scale_of(largest_of(blocks, largest + r * blocks), CGAM_DIGITS_ROW).step;
    for (int64_t v = 0; v < count; v += SIDE) weigh(rows, count, W + v, step, at++);
}

/* Turns four rows of 16 columns into line p of each digit; missing rows repeat the last one with by[r] zero. */
INLINE void pack_line(bool bf16, const tall *x, int64_t c, int64_t p, const float *by, char *out)
{
    const __m512i recentre = _mm512_set1_epi32(0x808080 - 0x408080);
    __m512i digits[4], plane[DIGITS];
    __mmask16 here = there(x->columns - c);
    UNROLL
    for (int i = 0; i < 4; i++) {
        const char *at = x->at + at_most(4 * p + i, x->rows - 1) * x->ld + c * x->size;
        _mm_prefetch(at + SIDE * x->size, _MM_HINT_T1);
        digits[i] = unsigned_digits(numbers(bf16, at, here), _mm512_set1_ps(by[4 * p + i]));
        digits[i] = _mm512_add_epi32(digits[i], recentre);
    }
    planes(digits, plane);
    UNROLL
    for (int t = 0; t < DIGITS; t++)
        _mm512_store_si512(out + t * TILE + p * 64, signs_flipped(plane[t]));
}

/* Sums of 16 vectors by 16 columns that have yet to be added. */
typedef struct pending {
    _Alignas(64) int32_t sum[READ_CLASSES][SIDE][SIDE];
    const float *step;
    float *Y; /* NULL = there are none */
} pending;

INLINE void add(const pending *w, int from, int end)
{
    if (!w->Y) return;
    for (int v = from; v < end; v++) {
        __m512i high = _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(w->sum[0][v]), 8),
                                        _mm512_load_si512(w->sum[1][v]));
        __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(256),
                                     _mm512_cvtepi32_ps(_mm512_load_si512(w->sum[2][v])));
        _mm512_storeu_ps(w->Y + v * SIDE, _mm512_fmadd_ps(sum, _mm512_set1_ps(w->step[v]),
                                                          _mm512_loadu_ps(w->Y + v * SIDE)));
    }
}

/* A block: the factors of its rows, and the factors that undo these and the weights' steps. */
typedef struct lot {
    float by[CGAM_DIGITS_ROWS], step[CGAM_DIGITS_GROUP];
} lot;

/* The rows of a block share what it is smaller by than the rows are: most[r] is the largest of all of row r. */
static void begin_block(const tall *x, int64_t tiles, int64_t b, const float *largest,
                        const float *most, const weighed *W, lot *out)
{
    int64_t blocks = cgam_digits_blocks(x->columns);
    float share = 0;
    for (int64_t r = 0; r < x->rows; r++) {
        float here = largest[r * blocks + b] / most[r];
        if (most[r] >= CGAM_DIGITS_LEAST && here > share) share = here;
    }
    for (int64_t r = 0; r < CGAM_DIGITS_ROWS; r++)
        out->by[r] = r < x->rows ? scale_of(most[r] * share, CGAM_DIGITS_ROW).by : 0;
    for (int64_t v = 0; v < tiles * SIDE; v++) out->step[v] = W[v / SIDE].step[v % SIDE] * share;
}

INLINE void read_of(bool bf16, const tall *x, int64_t tiles, const float *largest, const weighed *W,
                    float *Y)
{
    _Alignas(64) char lines[2][DIGITS * TILE];
    float most[CGAM_DIGITS_ROWS];
    int64_t blocks = cgam_digits_blocks(x->columns);
    lot lots[2];
    pending w = {.Y = NULL};
    for (int64_t r = 0; r < x->rows; r++) most[r] = largest_of(blocks, largest + r * blocks);
    begin_block(x, tiles, 0, largest, most, W, &lots[0]);
    for (int64_t p = 0; p < SIDE; p++) pack_line(bf16, x, 0, p, lots[0].by, lines[0]);
    for (int64_t c = 0; c < x->columns; c += SIDE) {
        const char *mine = lines[c / SIDE % 2];
        char *out = lines[1 - c / SIDE % 2];
        int64_t next = c + SIDE < x->columns ? c + SIDE : c, b = next / CGAM_DIGITS_BLOCK, p = 0;
        const float *by = lots[b % 2].by, *step = lots[c / CGAM_DIGITS_BLOCK % 2].step;
        if (next > c && next % CGAM_DIGITS_BLOCK == 0)
            begin_block(x, tiles, b, largest, most, W, &lots[b % 2]);
        CGAM_TILE_WRITTEN();
        _tile_loadd(3, mine, 64);
        _tile_loadd(4, mine + TILE, 64);
        _tile_loadd(5, mine + 2 * TILE, 64);
        for (int64_t v = 0; v < tiles; v++) {
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_loadd(6, W[v].tile[0], 64);
            _tile_dpbssd(0, 6, 3);
            _tile_dpbssd(1, 6, 4);
            _tile_dpbssd(2, 6, 5);
            for (int i = 0; i < 2; i++, p++) pack_line(bf16, x, next, p, by, out);
            add(&w, 0, SIDE / 2);
            _tile_loadd(7, W[v].tile[1], 64);
            _tile_dpbssd(1, 7, 3);
            _tile_dpbssd(2, 7, 4);
            for (int i = 0; i < 2; i++, p++) pack_line(bf16, x, next, p, by, out);
            add(&w, SIDE / 2, SIDE);
            _tile_loadd(6, W[v].tile[2], 64);
            _tile_dpbssd(2, 6, 3);
            CGAM_TILE_WRITTEN();
            _tile_stored(0, w.sum[0], 64);
            _tile_stored(1, w.sum[1], 64);
            _tile_stored(2, w.sum[2], 64);
            CGAM_TILE_WRITTEN();
            w.step = step + v * SIDE;
            w.Y = Y + (c / SIDE * tiles + v) * SIDE * SIDE;
        }
        for (; p < SIDE; p++) pack_line(bf16, x, next, p, by, out);
    }
    add(&w, 0, SIDE);
}

static void read(cgam_dtype type, int64_t rows, int64_t count, int64_t d, const void *Z, int64_t ld,
                 const float *largest, const void *weights, float *Y)
{
    tall x = tall_of(type, rows, d, Z, ld);
    const cgam_tiles theirs = cgam_tiles_take();
    if (type == CGAM_F32) read_of(false, &x, tiles_of(count), largest, weights, Y);
    else read_of(true, &x, tiles_of(count), largest, weights, Y);
    cgam_tiles_return(&theirs);
}

extern const cgam_digits cgam_digits_amx;
const cgam_digits cgam_digits_amx = {room,    lay, score, largest, READ_TILES * sizeof(weighed),
                                     weights, read};
#endif
