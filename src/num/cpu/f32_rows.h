/* f32_rows.h: scores and readouts of rows of one storage type. f32_simd.c includes it once per
 * type, after defining
 *   OF(name)        name_f32, name_f16, name_bf16
 *   TYPE            the stored type of a number
 *   PLACE(k)        where number k of a pair ends up in the two vectors that the pair becomes
 *   ORDER(&a, &b)   puts two vectors of results into the order of the columns
 *   NEAR            how many bytes before its use a line of a long row is fetched into the first-level cache; 0: never.
 *                   If it is not 0, dot_far and both_far are the versions for CPUs on which this does not pay
 * A row has `pairs` whole pairs of vectors, followed by `left` numbers. */

/* The first k < PAIR numbers, zeros behind them; nothing behind p[k - 1] is read. */
#ifndef MASKED_F32
INLINE void OF(some)(const TYPE *p, int64_t k, vf *a, vf *b)
{
    TYPE part[PAIR] = {0};
    for (int64_t j = 0; j < k; j++) part[j] = p[j];
    OF(pair)(part, a, b);
}
#endif

static void OF(lay)(const double *x, int64_t d, float *out)
{
    for (int64_t j = 0; j < d; j += PAIR)
        for (int k = 0; k < PAIR; k++) out[j + PLACE(k)] = j + k < d ? (float)x[j + k] : 0;
}

/* One step of `rows` rows: x is loaded once for all of them. */
INLINE void OF(score_step)(int rows, const TYPE *z, int64_t stride, const float *x, vf (*s)[SUMS])
{
    UNROLL
    for (int k = 0; k < WIDE; k++) {
        vf x0 = load_f32(x + k * PAIR), x1 = load_f32(x + k * PAIR + LANES);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf a, b;
            OF(pair)(z + r * stride + k * PAIR, &a, &b);
            s[r][2 * k % SUMS] = madd_f32(a, x0, s[r][2 * k % SUMS]);
            s[r][(2 * k + 1) % SUMS] = madd_f32(b, x1, s[r][(2 * k + 1) % SUMS]);
        }
    }
}

INLINE void OF(score_some)(const TYPE *z, int64_t left, const float *x, vf *s)
{
    vf a, b;
    OF(some)(z, left, &a, &b);
    s[2 % SUMS] = madd_f32(a, load_f32(x), s[2 % SUMS]);
    if (PLACE(1) != 1 || left > LANES) s[3 % SUMS] = madd_f32(b, load_f32(x + LANES), s[3 % SUMS]);
}

/* The columns behind the last whole step. */
INLINE void OF(score_rest)(const TYPE *z, int64_t left, const float *x, vf *s)
{
    vf a, b;
    for (; left >= PAIR; left -= PAIR, z += PAIR, x += PAIR) {
        OF(pair)(z, &a, &b);
        s[0] = madd_f32(a, load_f32(x), s[0]);
        s[1] = madd_f32(b, load_f32(x + LANES), s[1]);
    }
    if (left) OF(score_some)(z, left, x, s);
}

/* y += the sum over `rows` rows of w row: `pairs` whole pairs of them. */
INLINE void OF(add_pairs)(int rows, int pairs, const TYPE *row, int64_t stride, const vf *w,
                          float *y)
{
    UNROLL
    for (int k = 0; k < pairs; k++) {
        vf a, b, y0 = load_f32(y + k * PAIR), y1 = load_f32(y + k * PAIR + LANES);
        UNROLL
        for (int r = 0; r < rows; r++) {
            OF(pair)(row + r * stride + k * PAIR, &a, &b);
            y0 = madd_f32(w[r], a, y0);
            y1 = madd_f32(w[r], b, y1);
        }
        store_f32(y + k * PAIR, y0);
        store_f32(y + k * PAIR + LANES, y1);
    }
}

/* The columns behind the last whole step. */
INLINE void OF(add_rest)(const TYPE *row, int64_t left, vf w, float *y)
{
    vf a, b;
    for (; left >= PAIR; left -= PAIR, row += PAIR, y += PAIR) OF(add_pairs)(1, 1, row, 0, &w, y);
    if (!left) return;
    OF(some)(row, left, &a, &b);
    store_f32(y, madd_f32(w, a, load_f32(y)));
    store_f32(y + LANES, madd_f32(w, b, load_f32(y + LANES)));
}

/* a[] += weight row, `pairs` pairs of it and `left` numbers more. */
INLINE void OF(add_row)(int pairs, int64_t left, const TYPE *row, float weight, vf *a)
{
    vf u, v, w = all_f32(weight);
    UNROLL
    for (int k = 0; k < pairs; k++) {
        OF(pair)(row + k * PAIR, &u, &v);
        a[2 * k] = madd_f32(w, u, a[2 * k]);
        a[2 * k + 1] = madd_f32(w, v, a[2 * k + 1]);
    }
    if (!left) return;
    OF(some)(row + pairs * PAIR, left, &u, &v);
    a[2 * pairs] = madd_f32(w, u, a[2 * pairs]);
    if (PLACE(1) != 1 || left > LANES) a[2 * pairs + 1] = madd_f32(w, v, a[2 * pairs + 1]);
}

/* The score of a short row, lane by lane. */
INLINE vf OF(short_score)(int pairs, int64_t left, const TYPE *z, const float *x)
{
    vf s[SUMS] = {{0}};
    if (AHEAD) prefetch_lines((const char *)z + AHEAD, pairs * PAIR * (int)sizeof(TYPE));
    if (AHEAD) __builtin_prefetch((const char *)(z + pairs * PAIR + left) + AHEAD, 0, 2);
    UNROLL
    for (int k = 0; k < pairs; k++) {
        vf p, q;
        OF(pair)(z + k * PAIR, &p, &q);
        s[2 * k % SUMS] = madd_f32(p, load_f32(x + k * PAIR), s[2 * k % SUMS]);
        s[(2 * k + 1) % SUMS] = madd_f32(q, load_f32(x + k * PAIR + LANES), s[(2 * k + 1) % SUMS]);
    }
    if (left) OF(score_some)(z + pairs * PAIR, left, x + pairs * PAIR, s);
    return lanes_join(s);
}

/* Short rows, eight scores at a time; where stale rows are to be added too, their whole readout
 * stays in registers. */
INLINE void OF(short)(int pairs, bool adds, const TYPE *fresh, const TYPE *stale, int64_t stride,
                      int64_t n, int64_t d, const float *x, double *out, const float *w, float *y)
{
    vf a[2 * SHORT + 2], v[GROUP];
    int64_t left = d - pairs * PAIR, i = 0;
    UNROLL
    for (int k = 0; k < 2 * pairs + 2; k++)
        a[k] = adds && (k < 2 * pairs || left) ? load_f32(y + k * LANES) : (vf){0};
    for (; i + GROUP <= n; i += GROUP, fresh += GROUP * stride, stale += GROUP * stride) {
        if (pairs <= UNROLLED) {
            UNROLL
            for (int r = 0; r < GROUP; r++) {
                v[r] = OF(short_score)(pairs, left, fresh + r * stride, x);
                if (adds) OF(add_row)(pairs, left, stale + r * stride, w[i + r], a);
            }
        } else {
            for (int r = 0; r < GROUP; r++) {
                v[r] = OF(short_score)(pairs, left, fresh + r * stride, x);
                if (adds) OF(add_row)(pairs, left, stale + r * stride, w[i + r], a);
            }
        }
        reduce8(v, out + i);
    }
    if (i < n) {
        double sums[GROUP];
        for (int r = 0; r < GROUP; r++) v[r] = (vf){0};
        for (int64_t r = 0; r < n - i; r++) {
            v[r] = OF(short_score)(pairs, left, fresh + r * stride, x);
            if (adds) OF(add_row)(pairs, left, stale + r * stride, w[i + r], a);
        }
        reduce8(v, sums);
        for (int64_t r = 0; r < n - i; r++) out[i + r] = sums[r];
    }
    UNROLL
    for (int k = 0; k < 2 * pairs + 2; k++)
        if (adds && (k < 2 * pairs || left)) store_f32(y + k * LANES, a[k]);
}

INLINE void OF(short_with)(int pairs, bool adds, const TYPE *fresh, const TYPE *stale,
                           int64_t stride, int64_t n, int64_t d, const float *x, double *out,
                           const float *w, float *y)
{
    if (adds) OF(short)(pairs, true, fresh, stale, stride, n, d, x, out, w, y);
    else OF(short)(pairs, false, fresh, stale, stride, n, d, x, out, w, y);
}

static void OF(short_any)(bool adds, const TYPE *fresh, const TYPE *stale, int64_t stride,
                          int64_t n, int64_t d, const float *x, double *out, const float *w,
                          float *y)
{
    switch (d / PAIR) {
        CASES_4(OF(short_with), adds, fresh, stale, stride, n, d, x, out, w, y)
    }
}

enum { OF(fetches) = AHEAD > 0 || sizeof(TYPE) == 2 }; /* are lines of long rows fetched ahead? */

/* Scores of `rows` fresh rows over `width` columns, a multiple of STEP, and `left` more behind them,
 * added to out, while what is `next` bytes ahead is fetched, and `near` bytes ahead into the first-level cache; by turns, where they are to
 * be added, a step of the readout of as many stale ones. */
INLINE void OF(block)(int rows, bool adds, int near, const TYPE *fresh, int64_t next,
                      const TYPE *stale, int64_t stride, int64_t width, int64_t left,
                      const float *x, double *out, const float *w, float *y)
{
    vf s[ROWS][SUMS] = {{{0}}}, weight[ROWS];
    int close = near && adds ? rows : 0;
    UNROLL
    for (int r = 0; r < rows; r++) weight[r] = adds ? all_f32(w[r]) : (vf){0};
    for (int64_t j = 0; j < width; j += STEP) {
        UNROLL
        for (int r = 0; OF(fetches) && r < rows; r++)
            prefetch_lines((const char *)(fresh + r * stride + j) + next, STEP * (int)sizeof(TYPE));
        UNROLL
        for (int r = 0; r < close; r++) {
            const TYPE *z = fresh + r * stride + j, *stale_z = stale + r * stride + j;
            prefetch_near((const char *)z + near, STEP * (int)sizeof(TYPE));
            prefetch_near((const char *)stale_z + near, STEP * (int)sizeof(TYPE));
        }
        OF(score_step)(rows, fresh + j, stride, x + j, s);
        if (adds) OF(add_pairs)(rows, WIDE, stale + j, stride, weight, y + j);
    }
    for (int r = 0; left && r < rows; r++) {
        if (OF(fetches))
            prefetch_lines((const char *)(fresh + r * stride + width) + next,
                           STEP * (int)sizeof(TYPE));
        OF(score_rest)(fresh + r * stride + width, left, x + width, s[r]);
        if (adds) OF(add_rest)(stale + r * stride + width, left, weight[r], y + width);
    }
    UNROLL
    for (int r = 0; r < rows; r++) out[r] += score_sum(s[r]);
}

/* The columns [from, from + wide) of `rows` rows. */
INLINE void OF(wide)(int rows, bool adds, int near, const TYPE *fresh, int64_t next,
                     const TYPE *stale, int64_t stride, int64_t d, int64_t from, int64_t wide,
                     const float *x, double *out, const float *w, float *y)
{
    int64_t whole = d / STEP * STEP;
    for (int64_t j = from; j < from + wide && j < whole; j += COLUMNS(near)) {
        bool last = whole - j <= COLUMNS(near);
        OF(block)
        (rows, adds, near, fresh + j, next, stale + j, stride, last ? whole - j : COLUMNS(near),
         last ? d - whole : 0, x + j, out, w, adds ? y + j : y);
    }
}

/* Rows that are not short, ROWS at a time, while as many after them are fetched. They go by blocks of columns where x and y
 * would crowd the first-level cache: one by one where d is large, and always where lines are fetched into it. */
INLINE void OF(long)(bool adds, int near, const TYPE *fresh, const TYPE *stale, int64_t stride,
                     int64_t n, int64_t d, const float *x, double *out, const float *w, float *y)
{
    int64_t whole = d / STEP * STEP, bytes = stride * (int64_t)sizeof(TYPE);
    bool parts = adds && (NEAR || (ROWS == 1 && d > CACHED));
    int64_t next = ROWS > 1 ? ROWS * bytes : !parts ? 0 : bytes < AHEAD ? 2 * bytes : bytes;
    if (next < AHEAD) next = AHEAD;
    int64_t wide = parts ? COLUMNS(near) : whole;
    for (int64_t i = 0; i < n; i++) out[i] = 0;
    for (int64_t from = 0; from < whole; from += wide) {
        int64_t i = 0;
        for (; i + ROWS <= n; i += ROWS) OF(wide)
        (ROWS, adds, near, fresh + i * stride, next, stale + i * stride, stride, d, from, wide, x,
         out + i, adds ? w + i : w, y);
        for (; i < n; i++) OF(wide)
        (1, adds, near, fresh + i * stride, next, stale + i * stride, stride, d, from, wide, x,
         out + i, adds ? w + i : w, y);
    }
}

static void OF(dot)(const void *rows, int64_t stride, int64_t n, int64_t d, const float *x,
                    double *out)
{
    if (d < SHORT * PAIR) OF(short_any)(false, rows, rows, stride, n, d, x, out, NULL, NULL);
    else OF(long)(false, NEAR, rows, rows, stride, n, d, x, out, NULL, NULL);
}

static void OF(both)(const void *fresh, const void *stale, int64_t stride, int64_t n, int64_t d,
                     const float *x, double *out, const float *w, float *y)
{
    if (d < SHORT * PAIR) OF(short_any)(true, fresh, stale, stride, n, d, x, out, w, y);
    else OF(long)(true, NEAR, fresh, stale, stride, n, d, x, out, w, y);
}

#if NEAR
static void OF(dot_far)(const void *rows, int64_t stride, int64_t n, int64_t d, const float *x,
                        double *out)
{
    if (d < SHORT * PAIR) OF(dot)(rows, stride, n, d, x, out);
    else OF(long)(false, 0, rows, rows, stride, n, d, x, out, NULL, NULL);
}

static void OF(both_far)(const void *fresh, const void *stale, int64_t stride, int64_t n, int64_t d,
                         const float *x, double *out, const float *w, float *y)
{
    if (d < SHORT * PAIR) OF(both)(fresh, stale, stride, n, d, x, out, w, y);
    else OF(long)(true, 0, fresh, stale, stride, n, d, x, out, w, y);
}
#endif

static void OF(sum)(const void *rows, int64_t stride, int64_t n, int64_t d, const float *w,
                    float *y)
{
    const TYPE *row = rows;
    int64_t whole = d / STEP * STEP;
    for (int64_t i = 0; i < n; i++, row += stride) {
        vf weight = all_f32(w[i]);
        for (int64_t j = 0; j < whole; j += STEP)
            OF(add_pairs)(1, WIDE, row + j, 0, &weight, y + j);
        OF(add_rest)(row + whole, d - whole, weight, y + whole);
    }
}

static void OF(flush)(int64_t d, float *from, double *y)
{
    vf zero = {0};
    for (int64_t j = 0; j < d; j += PAIR) {
        double pair[PAIR], *to = d - j < PAIR ? pair : y + j;
        vf a = load_f32(from + j), b = load_f32(from + j + LANES);
        ORDER(&a, &b);
        for (int64_t k = 0; to == pair && k < PAIR; k++) pair[k] = 0;
        store_f64(to, load_f64(to) + low(a));
        store_f64(to + LANES / 2, load_f64(to + LANES / 2) + high(a));
        store_f64(to + LANES, load_f64(to + LANES) + low(b));
        store_f64(to + LANES + LANES / 2, load_f64(to + LANES + LANES / 2) + high(b));
        for (int64_t k = 0; to == pair && k < d - j; k++) y[j + k] += pair[k];
        store_f32(from + j, zero);
        store_f32(from + j + LANES, zero);
    }
}

#undef OF
#undef TYPE
#undef PLACE
#undef ORDER
#undef NEAR
