/* f32_rows.h: scores and readouts of rows of one storage type. Included by f32_simd.c once per
 * type, which defines
 *   OF(name)        name_f32, name_f16, name_bf16
 *   TYPE            what a number of a row is stored as
 *   PLACE(k)        where the number at place k of a pair stands in the two vectors it becomes
 *   ORDER(&a, &b)   puts two vectors of results into the order of the columns
 * A row has `pairs` whole pairs of vectors and `left` numbers behind them. */

/* The first k < PAIR numbers, zeros behind them; nothing behind p[k - 1] is read. */
#ifndef MASKED
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

INLINE void OF(score_step)(const TYPE *z, const float *x, vf *s)
{
    UNROLL
    for (int k = 0; k < WIDE; k++) {
        vf a, b;
        OF(pair)(z + k * PAIR, &a, &b);
        s[k % 2 * 2] += a * load_f32(x + k * PAIR);
        s[k % 2 * 2 + 1] += b * load_f32(x + k * PAIR + LANES);
    }
}

INLINE void OF(score_some)(const TYPE *z, int64_t left, const float *x, vf *s)
{
    vf a, b;
    OF(some)(z, left, &a, &b);
    s[2] += a * load_f32(x);
    if (PLACE(1) != 1 || left > LANES) s[3] += b * load_f32(x + LANES);
}

/* The columns behind the last whole step. */
INLINE void OF(score_rest)(const TYPE *z, int64_t left, const float *x, vf *s)
{
    vf a, b;
    for (; left >= PAIR; left -= PAIR, z += PAIR, x += PAIR) {
        OF(pair)(z, &a, &b);
        s[0] += a * load_f32(x);
        s[1] += b * load_f32(x + LANES);
    }
    if (left) OF(score_some)(z, left, x, s);
}

INLINE double OF(score_long)(const TYPE *z, int64_t d, const float *x)
{
    double sum = 0;
    int64_t whole = d / STEP * STEP;
    for (int64_t j = 0; j < whole;) {
        int64_t end = whole - j < BLOCK ? whole : j + BLOCK;
        vf s[4] = {{0}, {0}, {0}, {0}};
        for (; j < end; j += STEP) {
            prefetch_lines((const char *)(z + j) + AHEAD, STEP * (int)sizeof(TYPE));
            OF(score_step)(z + j, x + j, s);
        }
        if (end == whole) OF(score_rest)(z + whole, d - whole, x + whole, s);
        sum += score_sum(s);
    }
    return sum;
}

/* y += w row: `pairs` whole pairs of it. */
INLINE void OF(add_pairs)(int pairs, const TYPE *row, float w, float *y)
{
    vf a, b;
    UNROLL
    for (int k = 0; k < pairs; k++) {
        OF(pair)(row + k * PAIR, &a, &b);
        store_f32(y + k * PAIR, load_f32(y + k * PAIR) + w * a);
        store_f32(y + k * PAIR + LANES, load_f32(y + k * PAIR + LANES) + w * b);
    }
}

/* The columns behind the last whole step. */
INLINE void OF(add_rest)(const TYPE *row, int64_t left, float w, float *y)
{
    vf a, b;
    for (; left >= PAIR; left -= PAIR, row += PAIR, y += PAIR) OF(add_pairs)(1, row, w, y);
    if (!left) return;
    OF(some)(row, left, &a, &b);
    store_f32(y, load_f32(y) + w * a);
    store_f32(y + LANES, load_f32(y + LANES) + w * b);
}

/* a[] += w row, `pairs` pairs of it and `left` numbers more. */
INLINE void OF(add_row)(int pairs, int64_t left, const TYPE *row, float w, vf *a)
{
    vf u, v;
    UNROLL
    for (int k = 0; k < pairs; k++) {
        OF(pair)(row + k * PAIR, &u, &v);
        a[2 * k] += w * u;
        a[2 * k + 1] += w * v;
    }
    if (!left) return;
    OF(some)(row + pairs * PAIR, left, &u, &v);
    a[2 * pairs] += w * u;
    if (PLACE(1) != 1 || left > LANES) a[2 * pairs + 1] += w * v;
}

/* The score of a short row, lane by lane. */
INLINE vf OF(short_score)(int pairs, int64_t left, const TYPE *z, const float *x)
{
    vf s[4] = {{0}, {0}, {0}, {0}};
    prefetch_lines((const char *)z + AHEAD, pairs * PAIR * (int)sizeof(TYPE));
    __builtin_prefetch((const char *)(z + pairs * PAIR + left) + AHEAD, 0, 2);
    UNROLL
    for (int k = 0; k < pairs; k++) {
        vf p, q;
        OF(pair)(z + k * PAIR, &p, &q);
        s[k % 2 * 2] += p * load_f32(x + k * PAIR);
        s[k % 2 * 2 + 1] += q * load_f32(x + k * PAIR + LANES);
    }
    if (left) OF(score_some)(z + pairs * PAIR, left, x + pairs * PAIR, s);
    return (s[0] + s[1]) + (s[2] + s[3]);
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

static void OF(dot)(const void *rows, int64_t stride, int64_t n, int64_t d, const float *x,
                    double *out)
{
    const TYPE *row = rows;
    if (d < SHORT * PAIR) {
        OF(short_any)(false, row, row, stride, n, d, x, out, NULL, NULL);
        return;
    }
    for (int64_t i = 0; i < n; i++, row += stride) out[i] = OF(score_long)(row, d, x);
}

static void OF(sum)(const void *rows, int64_t stride, int64_t n, int64_t d, const float *w,
                    float *y)
{
    const TYPE *row = rows;
    int64_t whole = d / STEP * STEP;
    for (int64_t i = 0; i < n; i++, row += stride) {
        for (int64_t j = 0; j < whole; j += STEP) OF(add_pairs)(WIDE, row + j, w[i], y + j);
        OF(add_rest)(row + whole, d - whole, w[i], y + whole);
    }
}

/* A step of a score, a step of a readout, and so on. Returns the score of the fresh row over
 * `width` columns, a multiple of STEP, and `left` more behind them. */
INLINE double OF(both_row)(const TYPE *fresh, int64_t next, const TYPE *stale, int64_t width,
                           int64_t left, const float *x, float w, float *y)
{
    vf s[4] = {{0}, {0}, {0}, {0}};
    for (int64_t j = 0; j < width; j += STEP) {
        prefetch_lines((const char *)(fresh + j) + next, STEP * (int)sizeof(TYPE));
        OF(score_step)(fresh + j, x + j, s);
        OF(add_pairs)(WIDE, stale + j, w, y + j);
    }
    if (left) {
        prefetch_lines((const char *)(fresh + width) + next, STEP * (int)sizeof(TYPE));
        OF(score_rest)(fresh + width, left, x + width, s);
        OF(add_rest)(stale + width, left, w, y + width);
    }
    return score_sum(s);
}

/* Rows whose x and y outgrow the first-level cache go by blocks of columns. */
static void OF(both)(const void *fresh_, const void *stale_, int64_t stride, int64_t n, int64_t d,
                     const float *x, double *out, const float *w, float *y)
{
    const TYPE *fresh = fresh_, *stale = stale_;
    int64_t whole = d / STEP * STEP, bytes = stride * (int64_t)sizeof(TYPE);
    int64_t next = d <= CACHED ? AHEAD : bytes < AHEAD ? 2 * bytes : bytes;
    int64_t wide = d <= CACHED ? whole : BLOCK;
    if (d < SHORT * PAIR) {
        OF(short_any)(true, fresh, stale, stride, n, d, x, out, w, y);
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = 0;
    for (int64_t from = 0; from < whole; from += wide)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = from; j < from + wide && j < whole; j += BLOCK) {
                bool last = whole - j <= BLOCK;
                out[i] += OF(both_row)(fresh + i * stride + j, next, stale + i * stride + j,
                                       last ? whole - j : BLOCK, last ? d - whole : 0, x + j, w[i],
                                       y + j);
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
