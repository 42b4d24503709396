/* int8_many.h: int8.h for many vectors side by side, on vectors of BYTES bytes. Included after int8_rows.h.
 * A file that defines MANY_APART supplies its own versions of BIAS, load_row and dot4, of the largest number of a
 * vector, and of the number of rows of a register tile.
 *
 * A lane is one vector of the product: dot4_many takes four numbers of a row, the same in every lane, and the same four
 * of LANES vectors. So nothing has to be summed across lanes, which at a hundred columns takes longer than the
 * products. Vectors are stored in groups of WIDTH: first, for each block, their steps and the start values of their
 * lanes; after those of all blocks, their numbers, four by four. A block of all vectors, 32 KB of 64, stays in the cache
 * while bands of rows pass; if dot4_many needs a bias, a band is copied with it, once for all groups. */

#ifndef MANY_APART
enum { BIAS_MANY = BIAS, MOST_MANY = CGAM_INT8_MOST, TALL = 6 };
#define load_many load_row
#define dot4_many dot4
#endif

enum {
    SIDE_MANY = VECTORS, /* vectors of lanes of a register tile */
    WIDTH = SIDE_MANY * LANES,
    QUADS = CGAM_INT8_BLOCK / 4
};

static int64_t groups_of(int64_t m) { return (m + WIDTH - 1) / WIDTH; }
static size_t heads_of(int64_t m, int64_t d) /* bytes of steps and starts */
{
    return (size_t)(groups_of(m) * cgam_int8_blocks(d)) * 2 * WIDTH * sizeof(float);
}

static size_t room_many(int64_t m, int64_t d)
{
    size_t quads = (size_t)((d + 3) / 4) * (size_t)groups_of(m);
    return (heads_of(m, d) + quads * WIDTH * 4 + 63) / 64 * 64;
}

static void lay_many(int64_t m, int64_t d, const int8_t *x, const float *step, void *out)
{
    int64_t blocks = cgam_int8_blocks(d), quads = (d + 3) / 4;
    memset(out, 0, room_many(m, d));
    for (int64_t v = 0; v < m; v++) {
        int64_t group = v / WIDTH, place = v % WIDTH;
        float *head = (float *)out + group * blocks * 2 * WIDTH + place;
        char *numbers = (char *)out + heads_of(m, d) + group * quads * WIDTH * 4 + place * 4;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t end = (b + 1) * CGAM_INT8_BLOCK < d ? (b + 1) * CGAM_INT8_BLOCK : d;
            int32_t start = 0;
            for (int64_t j = b * CGAM_INT8_BLOCK; j < end; j++) {
                start -= BIAS_MANY * x[v * d + j];
                numbers[j / 4 * WIDTH * 4 + j % 4] = x[v * d + j];
            }
            head[b * 2 * WIDTH] = step[v * blocks + b];
            memcpy(head + b * 2 * WIDTH + WIDTH, &start, sizeof start);
        }
    }
}

/* `rows` rows by `vectors` times LANES vectors in one block, which is the first: out is written, or else added to. */
INLINE void tile_many(int rows, int vectors, const char *z, int64_t ldz, int64_t quads,
                      const char *x, const float *head, const float *scale, int64_t blocks,
                      bool first, float *out, int64_t ldo)
{
    vi sum[TALL][SIDE_MANY];
    UNROLL
    for (int v = 0; v < vectors; v++) {
        vi start;
        memcpy(&start, head + WIDTH + v * LANES, sizeof start);
        UNROLL
        for (int r = 0; r < rows; r++) sum[r][v] = start;
    }
    for (int64_t k = 0; k < quads; k++, x += WIDTH * 4, z += 4) {
        vb numbers[SIDE_MANY];
        UNROLL
        for (int v = 0; v < vectors; v++) numbers[v] = load_numbers(x + v * BYTES);
        UNROLL
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, z + r * ldz, sizeof four);
            vb all = (vb)((vi){0} + four);
            UNROLL
            for (int v = 0; v < vectors; v++) sum[r][v] = dot4_many(sum[r][v], all, numbers[v]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            float *to = out + r * ldo + v * LANES;
            vf by = load_f32(head + v * LANES) * scale[r * blocks];
            vf old = first ? (vf){0} : load_f32(to);
            store_f32(to, old + __builtin_convertvector(sum[r][v], vf) * by);
        }
    }
}

/* One block of a band, z with its bias, by one group. */
INLINE void band_many(int vectors, int64_t count, const char *z, int64_t ldz, int64_t quads,
                      const char *x, const float *head, const float *scale, int64_t blocks,
                      bool first, float *out, int64_t ldo)
{
    if (count == TALL) {
        tile_many(TALL, vectors, z, ldz, quads, x, head, scale, blocks, first, out, ldo);
        return;
    }
    for (int64_t r = 0; r < count; r++)
        tile_many(1, vectors, z + r * ldz, ldz, quads, x, head, scale + r * blocks, blocks, first,
                  out + r * ldo, ldo);
}

/* Where the numbers of rows [0, count) of `width` columns are: there, or copied with their bias. */
INLINE const char *biased(const int8_t *row, int64_t count, int64_t d, int64_t width,
                          char copy[TALL][CGAM_INT8_BLOCK + 64], int64_t *ldz)
{
    *ldz = BIAS_MANY != 0 ? CGAM_INT8_BLOCK + 64 : d;
    for (int64_t r = 0; BIAS_MANY != 0 && r < count; r++)
        for (int64_t j = 0; j < width; j += BYTES) {
            vb numbers = load_many(row + r * d + j);
            memcpy(copy[r] + j, &numbers, sizeof numbers);
        }
    return BIAS_MANY != 0 ? copy[0] : (const char *)row;
}

static void dot_many(const int8_t *rows, const float *scale, int64_t n, int64_t d, int64_t m,
                     const void *X, float *out)
{
    _Alignas(64) char copy[TALL][CGAM_INT8_BLOCK + 64];
    int64_t blocks = cgam_int8_blocks(d), all = (d + 3) / 4, ldz;
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t i = 0; i < n; i += TALL) {
            int64_t count = n - i < TALL ? n - i : TALL, from = b * CGAM_INT8_BLOCK;
            int64_t width = d - from < CGAM_INT8_BLOCK ? d - from : CGAM_INT8_BLOCK;
            int64_t quads = (width + 3) / 4;
            const int8_t *row = rows + i * d + from;
            for (int64_t r = 0; r < count; r++)
                for (int64_t j = 0; j < width; j += 64)
                    __builtin_prefetch(row + (count + r) * d + j, 0, 2);
            const char *z = biased(row, count, d, width, copy, &ldz);
            const float *s = scale + i * blocks + b;
            for (int64_t g = 0; g < groups_of(m); g++) {
                const float *head = (const float *)X + (g * blocks + b) * 2 * WIDTH;
                const char *x =
                    (const char *)X + heads_of(m, d) + (size_t)(g * all + b * QUADS) * WIDTH * 4;
                float *to = out + i * m + g * WIDTH;
                switch ((m - g * WIDTH) / LANES) {
                    CASE(1, band_many, count, z, ldz, quads, x, head, s, blocks, b == 0, to, m)
#if BYTES == 64
                    CASE(2, band_many, count, z, ldz, quads, x, head, s, blocks, b == 0, to, m)
                    CASE(3, band_many, count, z, ldz, quads, x, head, s, blocks, b == 0, to, m)
#endif
                default:
                    band_many(SIDE_MANY, count, z, ldz, quads, x, head, s, blocks, b == 0, to, m);
                }
            }
        }
}
