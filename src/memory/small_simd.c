/* small_simd.c: the loops of small.h. */
#include "memory/block_simd.h"
#include "memory/small.h"

#include <math.h>
#include <string.h>

enum {
    TILE = CGAM_SMALL_TILE,
    /* number of blocks whose sums fit in registers: for one query, and for a tile */
    BLOCKS_ONE = BYTES == 64   ? 8
                 : BYTES == 32 ? 4
                               : 2,
    BLOCKS_TILE = BYTES == 64 ? 4 : 1
};

/* ---- Products. ------------------------------------------------------------------------------ */

/* B blocks from block `at` on, Q vectors x. */
INLINE void score_blocks(int Q, int B, const cgam_blocked *Z, int64_t at, const double *const *x,
                         double *const *out)
{
    const int64_t d = Z->d;
    const double *rows = Z->rows + at * d * ROWS;
    block acc[TILE][BLOCKS_ONE];
    for (int v = 0; v < Q; v++)
        for (int b = 0; b < B; b++) acc[v][b] = fill(0);
    for (int64_t k = 0; k < d; k++) {
        block z[BLOCKS_ONE];
        UNROLL
        for (int b = 0; b < B; b++) z[b] = load(rows + (b * d + k) * ROWS);
        UNROLL
        for (int v = 0; v < Q; v++) {
            vd y = all_f64(x[v][k]);
            UNROLL
            for (int b = 0; b < B; b++)
                EACH_PART(h) acc[v][b].v[h] = madd_f64(z[b].v[h], y, acc[v][b].v[h]);
        }
    }
    for (int v = 0; v < Q; v++)
        for (int b = 0; b < B; b++) store(out[v] + (at + b) * ROWS, acc[v][b]);
}

INLINE void score_all(int Q, const cgam_blocked *Z, const double *const *x, double *const *out)
{
    const int B = Q == 1 ? BLOCKS_ONE : BLOCKS_TILE;
    int64_t at = 0;
    for (; at + B <= Z->blocks; at += B) score_blocks(Q, B, Z, at, x, out);
    for (; at < Z->blocks; at++) score_blocks(Q, 1, Z, at, x, out);
}

static void score(const cgam_blocked *Z, int64_t count, const double *const *x, double *const *out)
{
    switch (count) {
        CASE(1, score_all, Z, x, out)
        CASE(2, score_all, Z, x, out)
        CASE(3, score_all, Z, x, out)
        CASE(4, score_all, Z, x, out)
    default: break;
    }
}

/* sums [Q, d, 8] += B blocks times their weights, block after block. */
INLINE void combine_blocks(int Q, int B, const cgam_blocked *Z, int64_t at, const double *const *w,
                           double *sums)
{
    const int64_t d = Z->d;
    const double *rows = Z->rows + at * d * ROWS;
    block weight[TILE][BLOCKS_ONE];
    for (int v = 0; v < Q; v++)
        for (int b = 0; b < B; b++) weight[v][b] = load(w[v] + (at + b) * ROWS);
    for (int64_t k = 0; k < d; k++) {
        block z[BLOCKS_ONE];
        UNROLL
        for (int b = 0; b < B; b++) z[b] = load(rows + (b * d + k) * ROWS);
        UNROLL
        for (int v = 0; v < Q; v++) {
            double *to = sums + (v * d + k) * ROWS;
            block y = load(to);
            UNROLL
            for (int b = 0; b < B; b++)
                EACH_PART(h) y.v[h] = madd_f64(z[b].v[h], weight[v][b].v[h], y.v[h]);
            store(to, y);
        }
    }
}

INLINE void combine_all(int Q, const cgam_blocked *Z, const double *const *w, double *sums)
{
    const int B = Q == 1 ? BLOCKS_ONE : BLOCKS_TILE;
    int64_t at = 0;
    for (; at + B <= Z->blocks; at += B) combine_blocks(Q, B, Z, at, w, sums);
    for (; at < Z->blocks; at++) combine_blocks(Q, 1, Z, at, w, sums);
}

static void combine(const cgam_blocked *Z, int64_t count, const double *const *w, double *sums,
                    double *const *y)
{
    memset(sums, 0, (size_t)(count * Z->d * ROWS) * sizeof *sums);
    switch (count) {
        CASE(1, combine_all, Z, w, sums)
        CASE(2, combine_all, Z, w, sums)
        CASE(3, combine_all, Z, w, sums)
        CASE(4, combine_all, Z, w, sums)
    default: break;
    }
    for (int64_t v = 0; v < count; v++)
        for (int64_t k = 0; k < Z->d; k++) y[v][k] = block_sum(load(sums + (v * Z->d + k) * ROWS));
}

/* ---- A step. -------------------------------------------------------------------------------- */

static void step(cgam_small_step *x)
{
    const int64_t size = x->Z->blocks * ROWS;
    vd feedback = all_f64(x->feedback);
    block top = fill(-INFINITY), gain = fill(0);
    for (int64_t i = 0; i < size; i += ROWS) {
        block a = load(x->a + i), p = load(x->p + i), r;
        if (x->dinv) {
            block D = load(x->dinv + i), dot = load(x->r + i);
            EACH_PART(h) r.v[h] = madd_f64(feedback * D.v[h], p.v[h] - dot.v[h], a.v[h]);
        } else {
            EACH_PART(h) r.v[h] = madd_f64(feedback, p.v[h], a.v[h]);
        }
        store(x->r + i, r);
        EACH_PART(h)
        {
            gain.v[h] = madd_f64(p.v[h], r.v[h] - a.v[h], gain.v[h]);
            top.v[h] = larger_f64(r.v[h], top.v[h]);
        }
    }
    x->top = block_max(top);
    x->gain = block_sum(gain);
}

/* Mask of the lanes of the last block that hold rows. */
INLINE block live_rows(const cgam_blocked *Z)
{
    double live[ROWS];
    for (int k = 0; k < ROWS; k++) live[k] = (Z->blocks - 1) * ROWS + k < Z->n;
    return load(live);
}

static void weigh(cgam_small_step *x)
{
    const int64_t size = x->Z->blocks * ROWS, last = size - ROWS;
    block one = fill(0), two = fill(0), tilt = fill(0), live = live_rows(x->Z);
    vd beta = all_f64(x->beta), top = all_f64(x->top), least = all_f64(-1000);
    for (int64_t i = 0; i < size; i += ROWS) {
        block r = load(x->r + i), e;
        EACH_PART(h)
        {
            vd y = larger_f64(least, beta * (r.v[h] - top)); /* keeps NaN */
            e.v[h] = vexp_below(y);
            if (i == last) e.v[h] *= live.v[h];
            one.v[h] += e.v[h];
            two.v[h] = madd_f64(e.v[h], e.v[h], two.v[h]);
            tilt.v[h] = madd_f64(e.v[h], y, tilt.v[h]);
        }
        store(x->f + i, e);
        if (!x->dinv) continue;
        block D = load(x->dinv + i);
        EACH_PART(h) e.v[h] *= D.v[h];
        store(x->w + i, e);
    }
    x->sums[0] = block_sum(one);
    x->sums[1] = block_sum(two);
    x->sums[2] = block_sum(tilt);
}

static void settle(cgam_small_step *x)
{
    const int64_t size = x->Z->blocks * ROWS;
    vd share = all_f64(1 / x->sums[0]);
    block most = fill(0), squares = fill(0);
    block s00 = fill(0), s01 = s00, s11 = s00, s0 = s00, s1 = s00;
    for (int64_t i = 0; i < size; i += ROWS) {
        block f = load(x->f + i), p = load(x->p + i), rho;
        EACH_PART(h)
        {
            f.v[h] *= share;
            rho.v[h] = f.v[h] - p.v[h];
            most.v[h] = larger_f64(magnitude(rho.v[h]), most.v[h]);
            squares.v[h] = madd_f64(rho.v[h], rho.v[h], squares.v[h]);
        }
        store(x->f + i, f);
        if (!x->rho1) continue;
        block rho1 = load(x->rho1 + i), rho2 = load(x->rho2 + i);
        EACH_PART(h)
        {
            vd d0 = rho.v[h] - rho1.v[h], d1 = rho1.v[h] - rho2.v[h];
            s00.v[h] = madd_f64(d0, d0, s00.v[h]);
            s01.v[h] = madd_f64(d0, d1, s01.v[h]);
            s11.v[h] = madd_f64(d1, d1, s11.v[h]);
            s0.v[h] = madd_f64(d0, rho.v[h], s0.v[h]);
            s1.v[h] = madd_f64(d1, rho.v[h], s1.v[h]);
        }
    }
    x->change = block_max(most);
    x->change_norm2 = block_sum(squares);
    x->products[0] = block_sum(s00);
    x->products[1] = block_sum(s01);
    x->products[2] = block_sum(s11);
    x->products[3] = block_sum(s0);
    x->products[4] = block_sum(s1);
}

/* ---- Anderson. ------------------------------------------------------------------------------ */

static void mix(cgam_small_mix *x)
{
    vd c0 = all_f64(x->c[0]), c1 = all_f64(x->c[1]);
    block squares = fill(0);
    for (int64_t i = 0; i < x->size; i += ROWS) {
        block f = load(x->f + i), p = load(x->p + i), f1 = load(x->f1 + i), f2 = f1, next, rho;
        if (x->window > 1) f2 = load(x->f2 + i);
        EACH_PART(h)
        {
            rho.v[h] = f.v[h] - p.v[h];
            next.v[h] = f.v[h] - c0 * (f.v[h] - f1.v[h]) - c1 * (f1.v[h] - f2.v[h]);
            vd moved = next.v[h] - p.v[h];
            squares.v[h] = madd_f64(moved, moved, squares.v[h]);
        }
        store(x->f2 + i, next);
        store(x->rho2 + i, rho);
    }
    x->moved = block_sum(squares);
}

/* ---- Scores and gates. ---------------------------------------------------------------------- */

static double join(int64_t size, const double *b, const double *s, double lambda, double *r)
{
    block top = fill(-INFINITY);
    vd scale = all_f64(lambda);
    for (int64_t i = 0; i < size; i += ROWS) {
        block x = load(b + i), y = load(s + i);
        EACH_PART(h)
        {
            x.v[h] = madd_f64(scale, y.v[h], x.v[h]);
            top.v[h] = larger_f64(x.v[h], top.v[h]);
        }
        store(r + i, x);
    }
    return block_max(top);
}

static void gates(int64_t size, const double *r, const double *a, const double *b, const double *s0,
                  double lambda, double *s, double off[2])
{
    const double u = 0x1p-53;
    block apart = fill(0), added = fill(0);
    for (int64_t i = 0; i < size; i += ROWS) {
        block R = load(r + i), A = load(a + i), B = load(b + i), S = load(s0 + i);
        EACH_PART(h)
        {
            vd own = R.v[h] - A.v[h], gate = S.v[h] + own / lambda, size_b = magnitude(B.v[h]);
            vd size_s = magnitude(gate), away = magnitude(R.v[h] - (B.v[h] + lambda * gate));
            away += 3 * u * (size_b + lambda * size_s);
            vd more =
                (2 * u * magnitude(R.v[h]) + 8 * u * magnitude(own)) / lambda + 2 * u * size_s;
            apart.v[h] = larger_f64(away, apart.v[h]);
            added.v[h] = larger_f64(more, added.v[h]);
            S.v[h] = gate;
        }
        store(s + i, S);
    }
    off[0] = block_max(apart);
    off[1] = block_max(added);
}

/* Inserts x[j] into a list of `have` entries. */
INLINE void lead(double x, int64_t j, int64_t have, double *value, int64_t *row)
{
    int64_t at = have;
    for (; at > 0 && x > value[at - 1]; at--) {
        value[at] = value[at - 1];
        row[at] = row[at - 1];
    }
    value[at] = x;
    row[at] = j;
}

static void leaders(int64_t n, const double *x, int64_t k, double *value, int64_t *row)
{
    int64_t have = 0, i = 0;
    for (; i < n && have < k; i++) {
        lead(x[i], i, have, value, row);
        have++;
    }
    for (; i < n && i % ROWS != 0; i++)
        if (x[i] > value[k - 1]) lead(x[i], i, k - 1, value, row);
    for (; i + ROWS <= n; i += ROWS) { /* can any of them enter the list? */
        block b = load(x + i);
        vl above = {0};
        int64_t any = 0;
        EACH_PART(h) above |= b.v[h] > value[k - 1];
        UNROLL
        for (int l = 0; l < LANES; l++) any |= above[l];
        for (int64_t j = i; any && j < i + ROWS; j++)
            if (x[j] > value[k - 1]) lead(x[j], j, k - 1, value, row);
    }
    for (; i < n; i++)
        if (x[i] > value[k - 1]) lead(x[i], i, k - 1, value, row);
}

extern const cgam_small_loops JOIN(cgam_small_loops, NAME);
const cgam_small_loops JOIN(cgam_small_loops, NAME) = {
    .score = score,
    .combine = combine,
    .step = step,
    .weigh = weigh,
    .settle = settle,
    .mix = mix,
    .join = join,
    .gates = gates,
    .leaders = leaders,
};
