/* gemm_real.h: products and softmax of gemm.h in one type of numbers. gemm_simd.c includes it
 * once per type, after defining
 *   OF(name)    name_f32, name_f64
 *   TYPE, VEC   the type of a number, and of a vector of them
 *   FLOOR       scores are raised to this: exp is 0 there, and 0 times infinity would give NaN */

INLINE const char *OF(tile)(int rows, int vectors, int64_t depth, const TYPE *A, int64_t ra,
                            int64_t ka, const TYPE *B, int64_t ldb, TYPE *C, int64_t ldc,
                            const char *next, const char *stop)
{
    enum { W = BYTES / sizeof(TYPE) };
    VEC acc[12][VECTORS];
    int64_t lines = next < stop ? 64 : 0;
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            acc[r][v] = (VEC){0}, __builtin_prefetch(C + r * ldc + v * W, 1);
    }
    for (int64_t k = 0; k < depth; k++, A += ka, B += ldb) {
        VEC b[VECTORS];
        if (lines && k % 2 == 0) __builtin_prefetch(next, 0, 2), next += lines;
        UNROLL
        for (int v = 0; v < vectors; v++) b[v] = OF(load)(B + v * W);
        UNROLL
        for (int r = 0; r < rows; r++) {
            VEC a = OF(all)(A[r * ra]);
            UNROLL
            for (int v = 0; v < vectors; v++) acc[r][v] = OF(madd)(a, b[v], acc[r][v]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            TYPE *c = C + r * ldc + v * W;
            OF(store)(c, OF(load)(c) + acc[r][v]);
        }
    }
    return next;
}

INLINE const char *OF(strip)(int tall, int vectors, int64_t rows, int64_t depth, const TYPE *A,
                             int64_t ra, int64_t ka, const TYPE *B, int64_t ldb, TYPE *C,
                             int64_t ldc, const char *next, const char *stop)
{
    for (; rows >= tall; rows -= tall, A += tall * ra, C += tall * ldc)
        next = OF(tile)(tall, vectors, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
    for (; rows >= 4; rows -= 4, A += 4 * ra, C += 4 * ldc)
        next = OF(tile)(4, vectors, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
    if (rows >= 2) {
        next = OF(tile)(2, vectors, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
        rows -= 2, A += 2 * ra, C += 2 * ldc;
    }
    if (rows) next = OF(tile)(1, vectors, depth, A, ra, ka, B, ldb, C, ldc, next, stop);
    return next;
}

static void OF(mul)(int64_t rows, int64_t columns, int64_t depth, const TYPE *A, int64_t ra,
                    int64_t ka, const TYPE *B, int64_t ldb, TYPE *C, int64_t ldc, const void *then,
                    const void *stop)
{
    enum { W = BYTES / sizeof(TYPE), THREE = VECTORS > 3 ? 3 : 1, TWO = VECTORS > 2 ? 2 : 1 };
    const char *next = then;
    int64_t c = 0;
    for (; c + VECTORS * W <= columns; c += VECTORS * W)
        next = OF(strip)(6, VECTORS, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next, stop);
    for (; THREE > 1 && c + 3 * W <= columns; c += 3 * W)
        next = OF(strip)(8, THREE, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next, stop);
    for (; TWO > 1 && c + 2 * W <= columns; c += 2 * W)
        next = OF(strip)(12, TWO, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next, stop);
    for (; c + W <= columns; c += W)
        next = OF(strip)(12, 1, rows, depth, A, ra, ka, B + c, ldb, C + c, ldc, next, stop);
}

static void OF(tops)(int64_t rows, int64_t columns, const TYPE *R, double *top)
{
    enum { W = BYTES / sizeof(TYPE) };
    for (int64_t c = 0; c < columns; c += W) {
        VEC a = (VEC){0} - __builtin_inff();
        for (int64_t i = 0; i < rows; i++) {
            VEC u = OF(load)(R + i * columns + c);
            a = OF(pick)(u > a, u, a);
        }
        for (int k = 0; k < W; k++) top[c + k] = a[k];
    }
}

static void OF(softmax)(int64_t rows, int64_t columns, TYPE *R, double beta, const double *top,
                        double *sums)
{
    enum { W = BYTES / sizeof(TYPE) };
    for (int64_t c = 0; c < columns; c += W) {
        VEC one = {0}, two = {0}, tilt = {0}, high;
        for (int k = 0; k < W; k++) high[k] = (TYPE)top[c + k];
        for (int64_t i = 0; i < rows; i++) {
            VEC x = (TYPE)beta * (OF(load)(R + i * columns + c) - high);
            x = OF(pick)(x < FLOOR, (VEC){0} + FLOOR, x);
            VEC e = OF(exp)(x);
            OF(store)(R + i * columns + c, e);
            one += e;
            two += e * e;
            tilt += e * x;
        }
        for (int k = 0; k < W; k++) {
            sums[c + k] = one[k];
            sums[columns + c + k] = two[k];
            sums[2 * columns + c + k] = tilt[k];
        }
    }
}

#undef OF
#undef TYPE
#undef VEC
#undef FLOOR
