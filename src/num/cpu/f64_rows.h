/* f64_rows.h: dot, sum and both for rows of one storage type. f64_simd.c includes it once per
 * type, after defining
 *   OF(name)   name_f64, name_f32, name_f16, name_bf16
 *   TYPE       the stored type of a number */

/* The first k < LANES numbers, zeros behind them; nothing behind p[k - 1] is read. */
#ifndef MASKED
INLINE vd OF(first)(const TYPE *p, int64_t k)
{
    TYPE part[LANES] = {0};
    for (int64_t j = 0; j < k; j++) part[j] = p[j];
    return OF(widen)(part);
}
#endif

/* <row, x> */
INLINE double OF(dot_row)(const TYPE *row, int64_t d, const double *x)
{
    vd a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
    int64_t j = 0;
    for (; j + 4 * LANES <= d; j += 4 * LANES) {
        prefetch_lines((const char *)(row + j) + AHEAD, 4 * LANES * (int)sizeof(TYPE));
        a0 = madd_f64(OF(widen)(row + j), load_f64(x + j), a0);
        a1 = madd_f64(OF(widen)(row + j + LANES), load_f64(x + j + LANES), a1);
        a2 = madd_f64(OF(widen)(row + j + 2 * LANES), load_f64(x + j + 2 * LANES), a2);
        a3 = madd_f64(OF(widen)(row + j + 3 * LANES), load_f64(x + j + 3 * LANES), a3);
    }
    for (; j + LANES <= d; j += LANES) a0 = madd_f64(OF(widen)(row + j), load_f64(x + j), a0);
    if (j < d) a1 = madd_f64(OF(first)(row + j, d - j), first_f64(x + j, d - j), a1);
    return lanes_sum((a0 + a1) + (a2 + a3));
}

/* The same in the order of `both`: by blocks where d is large. */
INLINE double OF(dot_long)(const TYPE *row, int64_t d, const double *x)
{
    if (d / LANES <= SMALL) return OF(dot_row)(row, d, x);
    double total = 0;
    int64_t whole = d / STEP * STEP;
    for (int64_t j = 0; j < whole; j += BLOCK)
        total += OF(dot_row)(row + j, whole - j < BLOCK ? whole - j : BLOCK, x + j);
    return whole == d ? total : total + OF(dot_row)(row + whole, d - whole, x + whole);
}

static void OF(dot)(const void *rows, int64_t stride, int64_t n, int64_t d, const double *x,
                    double *out)
{
    const TYPE *row = rows;
    for (int64_t i = 0; i < n; i++, row += stride) out[i] = OF(dot_long)(row, d, x);
}

/* a[0 .. nv) += w row, and *rest its last `tail` numbers. */
INLINE void OF(add_row)(int nv, int64_t tail, const TYPE *row, double w, vd *a, vd *rest)
{
    UNROLL
    for (int k = 0; k < nv; k++) a[k] = madd_f64(all_f64(w), OF(widen)(row + k * LANES), a[k]);
    if (tail) *rest = madd_f64(all_f64(w), OF(first)(row + nv * LANES, tail), *rest);
}

/* y[0 .. nv LANES + tail) += the columns of the rows, weighted. Row i is row at[i] where `at` is
 * given. */
INLINE void OF(sum_panel)(int nv, int64_t tail, const TYPE *rows, int64_t stride, const int32_t *at,
                          int64_t n, const double *w, double *y)
{
    vd a[WIDE] = {{0}}, rest = {0};
    for (int64_t i = 0; i < n; i++)
        OF(add_row)(nv, tail, rows + (at ? (int64_t)at[i] : i) * stride, w[i], a, &rest);
    add_sums(nv, a, tail, rest, y);
}

static void OF(sum_from)(const TYPE *rows, int64_t stride, const int32_t *at, int64_t n, int64_t d,
                         const double *w, double *y)
{
    int64_t j = 0;
    for (; j + STEP <= d; j += STEP) OF(sum_panel)(WIDE, 0, rows + j, stride, at, n, w, y + j);
    int64_t tail = (d - j) % LANES;
    switch ((d - j) / LANES) {
        CASES_7(OF(sum_panel), tail, rows + j, stride, at, n, w, y + j)
    }
}

static void OF(sum)(const void *rows, int64_t stride, int64_t n, int64_t d, const double *w,
                    double *y)
{
    OF(sum_from)(rows, stride, NULL, n, d, w, y);
}

static void OF(sum_at)(const void *rows, int64_t stride, const int32_t *at, int64_t n, int64_t d,
                       const double *w, double *y)
{
    OF(sum_from)(rows, stride, at, n, d, w, y);
}

static void OF(scaled)(const void *row_, int64_t n, double factor, double *out)
{
    const TYPE *row = row_;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store_f64(out + i, factor * OF(widen)(row + i));
    double last[LANES];
    if (i < n) store_f64(last, factor * OF(first)(row + i, n - i));
    for (int64_t k = 0; i + k < n; k++) out[i + k] = last[k];
}

static void OF(to_f32)(const void *row_, int64_t n, float *out)
{
    const TYPE *row = row_;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        half v = __builtin_convertvector(OF(widen)(row + i), half);
        memcpy(out + i, &v, sizeof v);
    }
    double last[LANES];
    if (i < n) store_f64(last, OF(first)(row + i, n - i));
    for (int64_t k = 0; i + k < n; k++) out[i + k] = (float)last[k];
}

/* Short rows, nv vectors and a tail: row by row, with the whole readout in registers. */
INLINE void OF(both_short)(int nv, int64_t tail, const TYPE *fresh, const TYPE *stale,
                           int64_t stride, int64_t n, int64_t d, const double *x, double *out,
                           const double *w, double *y)
{
    vd a[SMALL] = {{0}}, rest = {0};
    for (int64_t i = 0; i < n; i++, fresh += stride, stale += stride) {
        out[i] = OF(dot_row)(fresh, d, x);
        OF(add_row)(nv, tail, stale, w[i], a, &rest);
    }
    add_sums(nv, a, tail, rest, y);
}

/* d a multiple of STEP: one step of dot, one step of a readout panel, and so on. out += */
static void OF(both_block)(const TYPE *fresh, const TYPE *stale, int64_t stride, int64_t n,
                           int64_t d, const double *x, double *out, const double *w, double *y)
{
    vd a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
    int64_t at = 0;
    /* the same columns two rows on, or whatever is AHEAD bytes away where rows are short */
    int64_t next = 2 * stride * (int64_t)sizeof(TYPE);
    if (next < AHEAD) next = AHEAD;
    for (int64_t j = 0; j < d; j += STEP) {
        vd a[WIDE];
        for (int k = 0; k < WIDE; k++) a[k] = (vd){0};
        const TYPE *row = stale + j;
        for (int64_t i = 0; i < n; i++, row += stride) {
            const TYPE *z = fresh + at;
            const double *v = x + at;
            prefetch_lines((const char *)z + next, STEP * (int)sizeof(TYPE));
            UNROLL
            for (int k = 0; k < WIDE; k += 4) {
                a0 = madd_f64(OF(widen)(z + k * LANES), load_f64(v + k * LANES), a0);
                a1 = madd_f64(OF(widen)(z + (k + 1) * LANES), load_f64(v + (k + 1) * LANES), a1);
                a2 = madd_f64(OF(widen)(z + (k + 2) * LANES), load_f64(v + (k + 2) * LANES), a2);
                a3 = madd_f64(OF(widen)(z + (k + 3) * LANES), load_f64(v + (k + 3) * LANES), a3);
            }
            UNROLL
            for (int k = 0; k < WIDE; k++)
                a[k] = madd_f64(all_f64(w[i]), OF(widen)(row + k * LANES), a[k]);
            at += STEP;
            if (at == d) {
                *out++ += lanes_sum((a0 + a1) + (a2 + a3));
                a0 = a1 = a2 = a3 = (vd){0};
                fresh += stride;
                at = 0;
            }
        }
        UNROLL
        for (int k = 0; k < WIDE; k++)
            store_f64(y + j + k * LANES, load_f64(y + j + k * LANES) + a[k]);
    }
}

static void OF(both)(const void *fresh_, const void *stale_, int64_t stride, int64_t n, int64_t d,
                     const double *x, double *out, const double *w, double *y)
{
    const TYPE *fresh = fresh_, *stale = stale_;
    if (d / LANES <= SMALL) {
        int64_t tail = d % LANES;
        switch (d / LANES) {
            CASES_16(OF(both_short), tail, fresh, stale, stride, n, d, x, out, w, y)
        }
        return;
    }
    int64_t j = 0, whole = d / STEP * STEP;
    for (int64_t i = 0; i < n; i++) out[i] = 0;
    for (; j < whole; j += BLOCK) {
        int64_t width = whole - j < BLOCK ? whole - j : BLOCK;
        OF(both_block)(fresh + j, stale + j, stride, n, width, x + j, out, w, y + j);
    }
    if (whole == d) return;
    for (int64_t i = 0; i < n; i++)
        out[i] += OF(dot_row)(fresh + i * stride + whole, d - whole, x + whole);
    OF(sum_from)(stale + whole, stride, NULL, n, d - whole, w, y + whole);
}

#undef OF
#undef TYPE
