/* attend.c: see attend.h.
 *
 * With one query the readout of a tile waits until the next tile is scored: kernels->both runs the
 * two together, and arithmetic hides behind memory (readout.h).
 *
 * The readout may leave rows out: where e_i <= 2^-54 / n times the sum so far, all of them together
 * weigh less than 2^-54 of the whole, which is below the rounding of the sums. */
#include "num/attend.h"

#include "num/readout.h"

#include <math.h>
#include <string.h>

static const double NEGLIGIBLE = 0x1p-54;

typedef struct part { /* of one query, for one chunk */
    double top, sum, squares, tilt, skipped;
    cgam_two b, s;
    int64_t above, leaders;
    cgam_leader *leader; /* [leaders_max] */
    double *y;           /* [d] or NULL */
} part;

typedef struct pass {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_leader *focus; /* [count], NULL = none */
    part *parts;              /* [chunks, count] */
} pass;

/* A tile on its way: rows [begin, begin + rows). */
typedef struct tile {
    int64_t begin, rows;
    double *b, *s, *r, *e; /* [rows] */
    cgam_readout waits;
} tile;

static bool before(double r, int64_t row, const cgam_leader *x)
{
    return r > x->r || (r == x->r && row < x->row);
}

/* Keeps the list sorted; most calls come early, later ones are rare. */
static void lead(part *p, int64_t most, cgam_leader x)
{
    int64_t at = p->leaders;
    if (at == most && !before(x.r, x.row, &p->leader[most - 1])) return;
    if (at == most) at--;
    else p->leaders++;
    for (; at > 0 && before(x.r, x.row, &p->leader[at - 1]); at--)
        p->leader[at] = p->leader[at - 1];
    p->leader[at] = x;
}

static void two_take(cgam_two *best, double value, int64_t row)
{
    if (best->row[0] < 0 || value > best->value[0]) {
        best->value[1] = best->value[0];
        best->row[1] = best->row[0];
        best->value[0] = value;
        best->row[0] = row;
    } else if (best->row[1] < 0 || value > best->value[1]) {
        best->value[1] = value;
        best->row[1] = row;
    }
}

static void two_scan(const cgam_kernels *k, cgam_two *best, const double *x, const tile *t)
{
    if (best->row[1] >= 0 && !(k->largest(x, t->rows) > best->value[1])) return;
    for (int64_t i = 0; i < t->rows; i++) two_take(best, x[i], t->begin + i);
}

/* s of the tile for query v, from dots with e in t->s where there are directions. */
static void gate_tile(const cgam_attend_in *in, int64_t v, tile *t)
{
    if (in->s) memcpy(t->s, in->s + t->begin, (size_t)t->rows * sizeof *t->s);
    if (in->e) {
        cgam_rows_dot(in->Z, t->begin, t->rows, in->e + v * in->Z->d, t->s);
        for (int64_t i = 0; i < t->rows; i++) t->s[i] *= in->pivot[t->begin + i];
        for (int64_t k = 0; k < in->edge; k++) {
            int64_t i = in->border[k] - t->begin;
            if (i >= 0 && i < t->rows) t->s[i] = in->edges[v * in->edge + k];
        }
    }
    if (in->s || in->e)
        for (int64_t i = 0; i < t->rows; i++) t->r[i] = t->b[i] + in->lambda * t->s[i];
    else memcpy(t->r, t->b, (size_t)t->rows * sizeof *t->r);
}

static void raise_top(const cgam_attend_in *in, part *p, double top)
{
    double fall = in->beta * (p->top - top), shrink = p->sum > 0 ? exp(fall) : 0;
    if (p->sum > 0) p->tilt = shrink > 0 ? shrink * (p->tilt + p->sum * fall) : 0;
    p->sum *= shrink;
    p->squares *= shrink * shrink;
    p->skipped *= shrink;
    for (int64_t j = 0; p->y && j < in->Z->d; j++) p->y[j] *= shrink;
    p->top = top;
}

/* Everything but the readout of a scored tile: t->b holds the dots with q. */
static void weigh_tile(const pass *ps, int64_t v, part *p, tile *t)
{
    const cgam_attend_in *in = ps->in;
    const cgam_kernels *k = in->Z->kernels;
    bool gated = in->s || in->e;
    gate_tile(in, v, t);
    double highest = k->largest(t->r, t->rows), sums[3];
    if (p->leaders < in->leaders || highest > p->leader[in->leaders - 1].r)
        for (int64_t i = 0; i < t->rows; i++)
            if (p->leaders < in->leaders || t->r[i] > p->leader[in->leaders - 1].r)
                lead(p, in->leaders,
                     (cgam_leader){t->r[i], t->b[i], gated ? t->s[i] : 0, t->begin + i});
    if (gated) {
        two_scan(k, &p->b, t->b, t);
        two_scan(k, &p->s, t->s, t);
    }
    if (ps->focus && ps->focus[v].row >= 0 && highest >= ps->focus[v].r) {
        const cgam_leader *f = &ps->focus[v];
        for (int64_t i = 0; i < t->rows; i++)
            p->above += t->r[i] > f->r || (t->r[i] == f->r && t->begin + i < f->row);
    }
    if (highest > p->top) raise_top(in, p, highest);
    if (p->top == -INFINITY) { /* nothing but masks so far, or not numbers */
        for (int64_t i = 0; i < t->rows; i++) p->sum += isnan(t->r[i]) ? NAN : 0;
        memset(t->e, 0, (size_t)t->rows * sizeof *t->e);
        return;
    }
    k->soft(t->r, t->rows, in->beta, p->top, t->e, sums);
    p->sum += sums[0];
    p->squares += sums[1];
    p->tilt += sums[2];
}

enum { TILE_VECTORS = 6 };

static tile tile_in(double *room, int64_t size, int64_t begin, int64_t rows)
{
    return (tile){begin,
                  rows,
                  room,
                  room + size,
                  room + 2 * size,
                  room + 3 * size,
                  {.w = room + 4 * size, .at = (int32_t *)(void *)(room + 5 * size)}};
}

static void plan_readout(const cgam_attend_in *in, part *p, tile *t)
{
    double cut = NEGLIGIBLE / (double)in->Z->n * p->sum;
    p->skipped += cgam_readout_set(in->Z, t->begin, t->rows, t->e, cut, &t->waits);
}

/* One query: the readout of a tile goes with the scores of the next. */
static void chunk_of_one(const pass *ps, part *p, int64_t begin, int64_t end, int64_t size,
                         double *room)
{
    const cgam_attend_in *in = ps->in;
    cgam_readout waits = {0};
    for (int64_t i = begin, turn = 0; i < end; i += size, turn ^= 1) {
        tile t =
            tile_in(room + turn * TILE_VECTORS * size, size, i, end - i < size ? end - i : size);
        cgam_readout_dot(in->Z, i, t.rows, in->q, t.b, &waits, p->y);
        weigh_tile(ps, 0, p, &t);
        if (p->y) plan_readout(in, p, &t);
        waits = t.waits;
    }
    if (waits.count) cgam_readout_add(in->Z, &waits, p->y);
}

static cgam_status attend_chunk(void *arg, int64_t chunk)
{
    pass *ps = arg;
    const cgam_attend_in *in = ps->in;
    const cgam_rows *Z = in->Z;
    part *parts = ps->parts + chunk * in->count;
    int64_t size = cgam_rows_tile(Z), begin = cgam_rows_chunk_begin(Z, chunk);
    int64_t end = cgam_rows_chunk_begin(Z, chunk + 1);
    if (cgam_interrupted(ps->env)) return CGAM_E_INTERRUPTED;
    double *room = cgam_alloc(ps->env, (size_t)(2 * TILE_VECTORS * size), sizeof *room);
    if (!room) return cgam_fail_nomem(ps->env, "a tile of scores");
    if (in->count == 1) {
        chunk_of_one(ps, parts, begin, end, size, room);
    } else {
        for (int64_t i = begin; i < end; i += size) {
            tile t = tile_in(room, size, i, end - i < size ? end - i : size);
            for (int64_t v = 0; v < in->count; v++) {
                cgam_rows_dot(Z, i, t.rows, in->q + v * Z->d, t.b);
                weigh_tile(ps, v, &parts[v], &t);
                if (!parts[v].y) continue;
                plan_readout(in, &parts[v], &t);
                cgam_readout_add(Z, &t.waits, parts[v].y);
            }
        }
    }
    cgam_free(ps->env, room);
    return CGAM_OK;
}

/* The chunks of query v, joined in their order. */
static void join(const pass *ps, int64_t v, int64_t chunks, cgam_attend_out *out)
{
    const cgam_attend_in *in = ps->in;
    int64_t d = in->Z->d;
    part total = {.top = -INFINITY, .b.row = {-1, -1}, .s.row = {-1, -1}, .leader = out->leader};
    for (int64_t c = 0; c < chunks; c++)
        total.top = fmax(total.top, ps->parts[c * in->count + v].top);
    if (out->readout) memset(out->readout, 0, (size_t)d * sizeof *out->readout);
    for (int64_t c = 0; c < chunks; c++) {
        part *p = &ps->parts[c * in->count + v];
        double *y = p->y;
        p->y = NULL; /* its factor goes into the addition below */
        double shrink = p->top == -INFINITY ? 0 : exp(in->beta * (p->top - total.top));
        if (p->top > -INFINITY) raise_top(in, p, total.top);
        total.sum += p->sum;
        total.squares += p->squares;
        total.tilt += p->tilt;
        total.skipped += p->skipped;
        total.above += p->above;
        for (int64_t k = 0; k < p->leaders; k++) lead(&total, in->leaders, p->leader[k]);
        for (int k = 0; k < 2; k++) {
            if (p->b.row[k] >= 0) two_take(&total.b, p->b.value[k], p->b.row[k]);
            if (p->s.row[k] >= 0) two_take(&total.s, p->s.value[k], p->s.row[k]);
        }
        for (int64_t j = 0; out->readout && j < d; j++) out->readout[j] += shrink * y[j];
    }
    for (int64_t j = 0; out->readout && j < d; j++) out->readout[j] /= total.sum;
    out->top = total.top;
    out->sum = total.sum;
    out->squares = total.squares;
    out->tilt = total.tilt;
    out->skipped = total.skipped;
    out->above = total.above;
    out->leaders = total.leaders;
    out->b = total.b;
    out->s = total.s;
    if (!in->s && !in->e) /* then b is r, and s is zero */
        for (int64_t k = 0; k < 2 && k < total.leaders; k++) {
            out->b.value[k] = out->leader[k].b;
            out->b.row[k] = out->leader[k].row;
            out->s.value[k] = 0;
            out->s.row[k] = k;
        }
}

/* r, b and s of the row that query v asks for, in the bits that the pass will see. */
static cgam_leader look(const cgam_attend_in *in, int64_t v, int64_t row)
{
    double room[TILE_VECTORS] = {0};
    tile t = tile_in(room, 1, row, 1);
    cgam_rows_dot(in->Z, row, 1, in->q + v * in->Z->d, t.b);
    gate_tile(in, v, &t);
    return (cgam_leader){t.r[0], t.b[0], in->s || in->e ? t.s[0] : 0, row};
}

cgam_status cgam_rows_attend(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    int64_t chunks = cgam_rows_chunks(in->Z), parts = chunks * in->count, d = in->Z->d;
    bool reads = false;
    for (int64_t v = 0; v < in->count; v++) reads |= out[v].readout != NULL;
    pass ps = {.env = env, .in = in};
    ps.parts = cgam_zalloc(env, (size_t)parts, sizeof *ps.parts);
    cgam_leader *leader = cgam_alloc(env, (size_t)(parts * in->leaders), sizeof *leader);
    cgam_leader *focus = cgam_alloc(env, (size_t)in->count, sizeof *focus);
    double *y = reads ? cgam_zalloc(env, (size_t)(parts * d), sizeof *y) : NULL;
    cgam_status status = CGAM_OK;
    if (!ps.parts || !leader || !focus || (reads && !y)) {
        status = cgam_fail_nomem(env, "a pass over the bank");
        goto done;
    }
    for (int64_t k = 0; k < parts; k++) {
        part *p = &ps.parts[k];
        *p = (part){.top = -INFINITY, .b.row = {-1, -1}, .s.row = {-1, -1}};
        p->leader = leader + k * in->leaders;
        if (out[k % in->count].readout) p->y = y + k * d;
    }
    for (int64_t v = 0; v < in->count; v++) {
        int64_t row = in->focus ? in->focus[v] : -1;
        focus[v] = row >= 0 ? look(in, v, row) : (cgam_leader){.row = -1};
        out[v].focus = focus[v];
    }
    ps.focus = in->focus ? focus : NULL;
    status = cgam_parallel(env, chunks, attend_chunk, &ps);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) join(&ps, v, chunks, &out[v]);
done:
    cgam_free(env, ps.parts);
    cgam_free(env, leader);
    cgam_free(env, focus);
    cgam_free(env, y);
    return status;
}
