/* int8_rows.h: int8.h on vectors of BYTES bytes. Included by int8_simd.c, int8_avxvnni.c and int8_vnni.c, which
 * define
 *   BIAS               what load_row adds to every number of a row
 *   load_row(p)        numbers of a row, as vb
 *   dot4(a, z, x)      each lane of a plus the products of its own four bytes
 * BYTES / 2 numbers of a row are multiplied by as many wide ones at once, pairs of products to a lane.
 * A packed vector holds, for each block, the start values of its lanes (-BIAS times their numbers), and then the
 * numbers, padded with zeros, so that the bytes after a row do not matter. */

enum {
    LANES = BYTES / 4,
    CELL = 64 + CGAM_INT8_BLOCK,    /* bytes of a block: the start of its lanes, and its numbers */
    AHEAD = 4096,                   /* bytes that prefetching is ahead of the reading */
    SIDE = 4,                       /* rows and vectors of a register tile */
    HALF = BYTES / 2,               /* wide numbers of a vector register */
    TOGETHER = BYTES == 64 ? 4 : 1, /* rows of several blocks that go by wide numbers at once */
    AHEAD_LONG =
        1024, /* as AHEAD, by wide numbers: of rows of several blocks one by one, and of one */
    AHEAD_SHORT = 8192
};

static size_t room(int64_t m, int64_t d)
{
    size_t cells = (size_t)(m * cgam_int8_blocks(d));
    return (cells * (CELL + sizeof(float)) + 63) / 64 * 64;
}

static void lay(int64_t m, int64_t d, const int8_t *x, const float *step, void *out)
{
    int64_t blocks = cgam_int8_blocks(d);
    char *cell = out;
    for (int64_t c = 0; c < m * blocks; c++, cell += CELL) {
        int64_t from = c % blocks * CGAM_INT8_BLOCK;
        int64_t width = d - from < CGAM_INT8_BLOCK ? d - from : CGAM_INT8_BLOCK;
        int32_t start[16] = {0};
        const int8_t *numbers = x + c / blocks * d + from;
        for (int64_t j = 0; j < width; j++) start[j % BYTES / 4] -= BIAS * numbers[j];
        memcpy(cell, start, sizeof start);
        memset(cell + 64, 0, CGAM_INT8_BLOCK);
        memcpy(cell + 64, numbers, (size_t)width);
    }
    memcpy(cell, step, (size_t)(m * blocks) * sizeof *step);
}

INLINE vb load_numbers(const char *p)
{
    vb v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* `rows` rows by `vectors` vectors, both known to the compiler. */
INLINE void part(int rows, int vectors, const int8_t *row, const float *scale, int64_t d,
                 const char *cells, const float *step, float *out, int64_t ldo)
{
    int64_t blocks = cgam_int8_blocks(d);
    vf total[SIDE][SIDE];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) total[r][v] = (vf){0};
    }
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = b * CGAM_INT8_BLOCK;
        int64_t width = d - from < CGAM_INT8_BLOCK ? d - from : CGAM_INT8_BLOCK;
        const char *cell = cells + b * CELL;
        vi sum[SIDE][SIDE];
        UNROLL
        for (int v = 0; v < vectors; v++) {
            vi start;
            memcpy(&start, cell + v * blocks * CELL, sizeof start);
            UNROLL
            for (int r = 0; r < rows; r++) sum[r][v] = start;
        }
        for (int64_t j = 0; j < width; j += BYTES) {
            vb z[SIDE];
            UNROLL
            for (int r = 0; r < rows; r++) z[r] = load_row(row + r * d + from + j);
            if (rows == 1) __builtin_prefetch(row + from + j + AHEAD, 0, 2);
            UNROLL
            for (int v = 0; v < vectors; v++) {
                vb x = load_numbers(cell + v * blocks * CELL + 64 + j);
                UNROLL
                for (int r = 0; r < rows; r++) sum[r][v] = dot4(sum[r][v], z[r], x);
            }
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            UNROLL
            for (int v = 0; v < vectors; v++)
                total[r][v] =
                    madd_f32(__builtin_convertvector(sum[r][v], vf),
                             all_f32(scale[r * blocks + b] * step[v * blocks + b]), total[r][v]);
        }
    }
    vf all[SIDE * SIDE] = {0};
    double sums[8];
    UNROLL
    for (int k = 0; k < rows * vectors; k++) all[k] = total[k / vectors][k % vectors];
    UNROLL
    for (int k = 0; k < rows * vectors; k += 8) { /* a number's bits are those it has alone */
        reduce8(all + k, sums);
        UNROLL
        for (int j = 0; j < 8; j++)
            if (k + j < rows * vectors)
                out[(k + j) / vectors * ldo + (k + j) % vectors] = (float)sums[j];
    }
}

static void dot(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                const void *X, float *out)
{
    int64_t blocks = cgam_int8_blocks(d), i = 0;
    const char *cells = X;
    const float *step = (const float *)(const void *)(cells + m * blocks * CELL);
    for (; m >= SIDE && i + SIDE <= n; i += SIDE) {
        int64_t v = 0;
        const int8_t *row = rows + i * d;
        const float *s = scale + i * blocks;
        for (; v + SIDE <= m; v += SIDE)
            part(SIDE, SIDE, row, s, d, cells + v * blocks * CELL, step + v * blocks,
                 out + i * m + v, m);
        for (; v < m; v++)
            part(SIDE, 1, row, s, d, cells + v * blocks * CELL, step + v * blocks, out + i * m + v,
                 m);
    }
    for (; i < n; i++) {
        int64_t v = 0;
        const int8_t *row = rows + i * d;
        const float *s = scale + i * blocks;
        for (; v + 2 <= m; v += 2)
            part(1, 2, row, s, d, cells + v * blocks * CELL, step + v * blocks, out + i * m + v, m);
        if (v < m)
            part(1, 1, row, s, d, cells + v * blocks * CELL, step + v * blocks, out + i * m + v, m);
    }
}

INLINE vi dot2(vi a, const int8_t *z, const int16_t *x)
{
#if BYTES == 64
    __m512i wide = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)z));
    return a + (vi)_mm512_madd_epi16(wide, _mm512_loadu_si512(x));
#elif BYTES == 32
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)z));
    return a + (vi)_mm256_madd_epi16(wide, _mm256_loadu_si256((const __m256i *)(const void *)x));
#elif defined(NEON)
    int16x8_t u = vmovl_s8(vld1_s8(z)), v = vld1q_s16(x);
    return (vi)vmlal_high_s16(vmlal_s16((int32x4_t)a, vget_low_s16(u), vget_low_s16(v)), u, v);
#else
    for (int k = 0; k < HALF; k++) a[k / 2] += z[k] * x[k];
    return a;
#endif
}

/* `rows` rows, total[r] not added up; a row's bits do not depend on its neighbours. Lines are fetched `ahead` bytes before
 * they are read. */
INLINE void rows_wide(int rows, const int8_t *row, const float *scale, int64_t d, const int16_t *x,
                      const float *step, int64_t ahead, vf *total)
{
    enum { TURNS = 64 / HALF }; /* of a line */
    int64_t blocks = cgam_int8_blocks(d);
    for (int r = 0; r < rows; r++) total[r] = (vf){0};
    for (int64_t b = 0, from = 0; from < d; b++, from += CGAM_INT8_BLOCK) {
        int64_t end = from + CGAM_INT8_BLOCK < d ? from + CGAM_INT8_BLOCK : d;
        vi sum[TOGETHER][2] = {{{0}}};
        for (int64_t j = from; j < end; j += 64) {
            UNROLL
            for (int r = 0; r < rows; r++) {
                const int8_t *line = row + r * d + j;
                __builtin_prefetch(line + ahead, 0, 2);
                UNROLL
                for (int k = 0; k < TURNS; k++)
                    sum[r][k % 2] = dot2(sum[r][k % 2], line + k * HALF, x + j + k * HALF);
            }
        }
        UNROLL
        for (int r = 0; r < rows; r++)
            total[r] = madd_f32(__builtin_convertvector(sum[r][0] + sum[r][1], vf),
                                all_f32(scale[r * blocks + b] * step[b]), total[r]);
    }
}

/* How far: rows processed together fetch those that come next. */
INLINE int64_t ahead_of(int64_t d)
{
    if (TOGETHER > 1) return TOGETHER * d > AHEAD_SHORT ? TOGETHER * d : AHEAD_SHORT;
    return cgam_int8_blocks(d) > 1 ? AHEAD_LONG : AHEAD_SHORT;
}

/* Long rows go by fours where vectors are of 64 bytes: a scan takes 1.01-1.07 of reading its bytes (Sapphire Rapids,
 * d = 4096 and 2048), as f32_simd.c has it; one row at a time 1.17-1.22 with lines fetched 4 or 8 KB ahead, 1.46-1.49 1 KB. */
static void dot_wide(const int8_t *rows, const float *scale, int64_t n, int64_t d, const int16_t *x,
                     const float *step, float *out)
{
    int64_t blocks = cgam_int8_blocks(d), ahead = ahead_of(d);
    vf total[8] = {{0}};
    double sums[8];
    for (int64_t i = 0; i < n; i += 8) {
        int64_t count = n - i < 8 ? n - i : 8, r = 0;
        for (; blocks > 1 && r + TOGETHER <= count; r += TOGETHER)
            rows_wide(TOGETHER, rows + (i + r) * d, scale + (i + r) * blocks, d, x, step, ahead,
                      total + r);
        for (; r < count; r++)
            rows_wide(1, rows + (i + r) * d, scale + (i + r) * blocks, d, x, step, ahead,
                      total + r);
        reduce8(total, sums);
        for (r = 0; r < count; r++) out[i + r] = (float)sums[r];
    }
}
