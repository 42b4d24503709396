/* attend.c: see attend.h.
 *
 * With one query the readout of a tile waits until the next tile is scored: `both` runs the two
 * together, and arithmetic hides behind memory (readout.h).
 *
 * The readout may leave rows out: where e_i <= 2^-55 / n times the sum so far, all of them together
 * weigh less than 2^-55 of the whole, which is below the rounding of the sums. So does a chunk whose
 * largest score is as far below that of the bank: join drops it, sums and all. A chunk cannot know
 * the largest score of the bank, but every tile tells the others what it found (`high`), so as soon
 * as a chunk is certain to be dropped it stops reading out and weighing. If it turns out wrong - a
 * later row comes near to the highest - it is done again from its start. What is dropped depends on
 * scores alone, what was not computed on the turn of events: the results do not. */
#include "num/attend.h"

#include "num/leaders.h"
#include "num/readout.h"

#include <math.h>
#include <string.h>

static const double NEGLIGIBLE = 0x1p-55;
static const double RISE = 16; /* beta (peak - top) at which sums are made relative to the peak */

typedef struct part {                        /* of one query, for one chunk */
    double peak;                             /* the largest score */
    double top, sum, squares, tilt, skipped; /* what weights are relative to, and their sums */
    cgam_two b, s;
    int64_t above, leaders;
    bool strange;        /* a score that was not weighed is not a number */
    bool idle;           /* sums and readout were given up: the chunk is to be dropped */
    cgam_leader *leader; /* [leaders_max] */
    cgam_readout_sum to; /* y NULL: not wanted */
} part;

typedef struct pass {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_leader *focus; /* [count], NULL = none */
    part *parts;              /* [chunks, count] */
    int64_t leaders;          /* kept a chunk */
    const cgam_f32 *f32;      /* the f32 kernels, NULL = none */
    float *x32, *e32;         /* [count, ld] q and e laid out, NULL = none */
    bool *f32_query;          /* [count] this query is scored in f32 */
    int64_t ld;
    /* With one query: the largest score that any chunk has met, and one that `leaders` rows of a
     * chunk reach: less is not worth a look. */
    _Atomic double high, floor;
    double drop; /* beta (top of a chunk - top of all) from which on it is dropped */
} pass;

/* A tile on its way: rows [begin, begin + rows). */
typedef struct tile {
    int64_t begin, rows;
    double *b, *s, *r, *e; /* [rows] */
    cgam_readout waits;
} tile;

static void lead(part *p, int64_t most, cgam_leader x)
{
    cgam_lead(p->leader, &p->leaders, most, x);
}

static void two_scan(const cgam_f64 *k, cgam_two *best, const double *x, const tile *t)
{
    if (best->row[1] >= 0 && !(k->largest(x, t->rows) > best->value[1])) return;
    for (int64_t i = 0; i < t->rows; i++) cgam_two_take(best, x[i], t->begin + i);
}

static const float *laid_out(const pass *ps, int64_t v, const float *x32)
{
    return ps->f32 && ps->f32_query[v] ? x32 + v * ps->ld : NULL;
}

/* s of the tile for query v, from dots with e in t->s where there are directions; and r. */
static void gate_tile(const pass *ps, int64_t v, bool f32, tile *t)
{
    const cgam_attend_in *in = ps->in;
    if (in->s) memcpy(t->s, in->s + t->begin, (size_t)t->rows * sizeof *t->s);
    if (in->e) {
        const float *e32 = f32 ? laid_out(ps, v, ps->e32) : NULL;
        cgam_readout_score(in->Z, t->begin, t->rows, in->e + v * in->Z->d, ps->f32, e32, t->s);
        for (int64_t i = 0; i < t->rows; i++) t->s[i] *= in->pivot[t->begin + i];
        for (int64_t k = 0; k < in->edge; k++) {
            int64_t i = in->border[k] - t->begin;
            if (i >= 0 && i < t->rows) t->s[i] = in->edges[v * in->edge + k];
        }
    }
    if (in->s || in->e)
        for (int64_t i = 0; i < t->rows; i++) t->r[i] = t->b[i] + in->lambda * t->s[i];
    else t->r = t->b;
}

static void raise_top(const pass *ps, part *p, double top)
{
    const cgam_attend_in *in = ps->in;
    double fall = in->beta * (p->top - top), shrink = p->sum > 0 ? exp(fall) : 0;
    if (p->sum > 0) p->tilt = shrink > 0 ? shrink * (p->tilt + p->sum * fall) : 0;
    p->sum *= shrink;
    p->squares *= shrink * shrink;
    p->skipped *= shrink;
    if (p->to.y) cgam_readout_flush(in->Z, ps->f32, &p->to);
    for (int64_t j = 0; p->to.y && j < in->Z->d; j++) p->to.y[j] *= shrink;
    p->top = top;
}

/* Leaders, best of b and s, rank: what needs scores only. Returns the largest. */
static double look_over(pass *ps, int64_t v, part *p, const tile *t)
{
    const cgam_attend_in *in = ps->in;
    const cgam_f64 *k = in->Z->cpu->f64;
    bool gated = in->s || in->e;
    double highest = k->largest(t->r, t->rows);
    const cgam_leader *last = &p->leader[ps->leaders - 1];
    double floor = atomic_load_explicit(&ps->floor, memory_order_relaxed);
    if (!(highest < floor) && (p->leaders < ps->leaders || !(highest <= last->r))) {
        for (int64_t i = 0; i < t->rows; i++)
            if (!(t->r[i] < floor) && (p->leaders < ps->leaders || !(t->r[i] <= last->r)))
                lead(p, ps->leaders,
                     (cgam_leader){t->r[i], t->b[i], gated ? t->s[i] : 0, t->begin + i});
        if (in->count == 1 && p->leaders == ps->leaders) cgam_raise(&ps->floor, last->r);
    }
    if (gated) {
        two_scan(k, &p->b, t->b, t);
        two_scan(k, &p->s, t->s, t);
    }
    if (ps->focus && ps->focus[v].row >= 0 && highest >= ps->focus[v].r) {
        const cgam_leader *f = &ps->focus[v];
        for (int64_t i = 0; i < t->rows; i++)
            p->above += t->r[i] > f->r || (t->r[i] == f->r && t->begin + i < f->row);
    }
    return highest;
}

/* Weights of a tile against the largest score so far, and their sums. */
static void weigh_tile(const pass *ps, part *p, double highest, tile *t)
{
    const cgam_attend_in *in = ps->in;
    double sums[3];
    p->peak = fmax(p->peak, highest);
    if (highest > p->top && !(in->beta * (highest - p->top) <= RISE)) raise_top(ps, p, highest);
    if (p->top == -INFINITY) { /* nothing but masks so far, or not numbers */
        p->strange |= in->Z->cpu->f64->above(t->r, t->rows, INFINITY) > 0;
        memset(t->e, 0, (size_t)t->rows * sizeof *t->e);
        return;
    }
    in->Z->cpu->f64->softmax(t->r, t->rows, in->beta, p->top, t->e, sums);
    p->sum += sums[0]; /* no number where a score is none */
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
                  {.w = room + 4 * size,
                   .at = (int32_t *)(void *)(room + 5 * size),
                   .w32 = (float *)(void *)(room + 5 * size) + size}};
}

static void plan_readout(const pass *ps, int64_t v, part *p, tile *t)
{
    const cgam_rows *Z = ps->in->Z;
    double cut = NEGLIGIBLE / (double)Z->n * p->sum;
    t->waits.f32 = ps->f32 && ps->f32_query[v] ? ps->f32 : NULL;
    p->skipped += cgam_readout_set(Z, t->begin, t->rows, t->e, cut, &t->waits);
}

static part part_new(cgam_leader *leader, double *y)
{
    part p = {.peak = -INFINITY, .top = -INFINITY, .leader = leader, .to.y = y};
    p.b.row[0] = p.b.row[1] = p.s.row[0] = p.s.row[1] = -1;
    return p;
}

/* One query: the readout of a tile goes with the scores of the next. False: it was given up too
 * early and has to be done again. */
static bool chunk_of_one(pass *ps, part *p, bool may_idle, int64_t begin, int64_t end, int64_t size,
                         double *room)
{
    const cgam_attend_in *in = ps->in;
    const float *x32 = laid_out(ps, 0, ps->x32);
    cgam_readout waits = {0};
    for (int64_t i = begin, turn = 0; i < end; i += size, turn ^= 1) {
        tile t =
            tile_in(room + turn * TILE_VECTORS * size, size, i, end - i < size ? end - i : size);
        cgam_readout_dot(in->Z, i, t.rows, in->q, ps->f32, x32, t.b, &waits, &p->to);
        gate_tile(ps, 0, true, &t);
        double highest = look_over(ps, 0, p, &t), top = fmax(p->peak, highest);
        cgam_raise(&ps->high, highest);
        if (may_idle && in->beta * (top - atomic_load(&ps->high)) <= ps->drop) {
            p->idle = true;
            p->peak = top;
            p->strange |= in->Z->cpu->f64->above(t.r, t.rows, INFINITY) > 0;
            continue;
        }
        if (p->idle) return false;
        weigh_tile(ps, p, highest, &t);
        if (p->to.y) plan_readout(ps, 0, p, &t);
        waits = t.waits;
    }
    if (waits.count) cgam_readout_add(in->Z, &waits, &p->to);
    return true;
}

static cgam_status attend_chunk(void *arg, int64_t chunk)
{
    pass *ps = arg;
    const cgam_attend_in *in = ps->in;
    const cgam_rows *Z = in->Z;
    part *parts = ps->parts + chunk * in->count;
    int64_t size = cgam_readout_tile(Z);
    int64_t begin = cgam_rows_chunk_begin(Z, chunk);
    int64_t end = cgam_rows_chunk_begin(Z, chunk + 1);
    if (cgam_interrupted(ps->env)) return CGAM_E_INTERRUPTED;
    double *room = cgam_alloc(ps->env, (size_t)(2 * TILE_VECTORS * size), sizeof *room);
    float *y32 = NULL;
    if (ps->f32) y32 = cgam_zalloc(ps->env, (size_t)(in->count * ps->ld), sizeof *y32);
    if (!room || (ps->f32 && !y32)) {
        cgam_free(ps->env, room);
        cgam_free(ps->env, y32);
        return cgam_fail_nomem(ps->env, "a tile of scores");
    }
    for (int64_t v = 0; y32 && v < in->count; v++) parts[v].to.y32 = y32 + v * ps->ld;
    if (in->count == 1) {
        if (!chunk_of_one(ps, parts, true, begin, end, size, room)) {
            *parts = part_new(parts->leader, parts->to.y);
            if (parts->to.y) memset(parts->to.y, 0, (size_t)Z->d * sizeof *parts->to.y);
            parts->to.y32 = y32;
            if (y32) memset(y32, 0, (size_t)ps->ld * sizeof *y32);
            chunk_of_one(ps, parts, false, begin, end, size, room);
        }
    } else {
        for (int64_t i = begin; i < end; i += size) {
            for (int64_t v = 0; v < in->count; v++) {
                tile t = tile_in(room, size, i, end - i < size ? end - i : size);
                cgam_readout_score(Z, i, t.rows, in->q + v * Z->d, ps->f32,
                                   laid_out(ps, v, ps->x32), t.b);
                gate_tile(ps, v, true, &t);
                weigh_tile(ps, &parts[v], look_over(ps, v, &parts[v], &t), &t);
                if (!parts[v].to.y) continue;
                plan_readout(ps, v, &parts[v], &t);
                cgam_readout_add(Z, &t.waits, &parts[v].to);
            }
        }
    }
    for (int64_t v = 0; v < in->count; v++) {
        if (parts[v].to.y) cgam_readout_flush(Z, ps->f32, &parts[v].to);
        parts[v].to.y32 = NULL;
    }
    cgam_free(ps->env, room);
    cgam_free(ps->env, y32);
    return CGAM_OK;
}

/* r, b and s of a row for query v: in double, or in the bits that the pass will see. */
static cgam_leader look(const pass *ps, int64_t v, bool f32, int64_t row)
{
    const cgam_attend_in *in = ps->in;
    double room[TILE_VECTORS] = {0};
    tile t = tile_in(room, 1, row, 1);
    const float *x32 = f32 ? laid_out(ps, v, ps->x32) : NULL;
    cgam_readout_score(in->Z, row, 1, in->q + v * in->Z->d, ps->f32, x32, t.b);
    gate_tile(ps, v, f32, &t);
    return (cgam_leader){t.r[0], t.b[0], in->s || in->e ? t.s[0] : 0, row};
}

/* A row's scores again in double; its weight in the sums changes with its score. */
static void put_right(const pass *ps, int64_t v, cgam_leader *x, part *total)
{
    double beta = ps->in->beta, old = beta * (x->r - total->top);
    *x = look(ps, v, false, x->row);
    if (!isfinite(x->r) || !isfinite(old)) return;
    double now = beta * (x->r - total->top), e0 = exp(old), e1 = exp(now);
    total->sum += e1 - e0;
    total->squares += e1 * e1 - e0 * e0;
    total->tilt += e1 * now - e0 * old;
}

/* After scores in f32: leaders, the row asked for and the best of b and s in double, which may
 * change their order. */
static void put_all_right(const pass *ps, int64_t v, part *total, cgam_leader *focus)
{
    int64_t leaders = total->leaders;
    bool listed = false;
    for (int64_t k = 0; k < leaders; k++) {
        listed |= total->leader[k].row == focus->row;
        put_right(ps, v, &total->leader[k], total);
    }
    if (focus->row >= 0 && !listed) put_right(ps, v, focus, total);
    else if (focus->row >= 0) *focus = look(ps, v, false, focus->row);
    total->leaders = 0;
    for (int64_t k = 0; k < leaders; k++) lead(total, leaders, total->leader[k]);
    if (isfinite(total->leader[0].r)) raise_top(ps, total, total->leader[0].r);
    cgam_two b = total->b, s = total->s;
    total->b.row[0] = total->b.row[1] = total->s.row[0] = total->s.row[1] = -1;
    for (int k = 0; k < 2; k++) {
        if (b.row[k] >= 0) cgam_two_take(&total->b, look(ps, v, false, b.row[k]).b, b.row[k]);
        if (s.row[k] >= 0) cgam_two_take(&total->s, look(ps, v, false, s.row[k]).s, s.row[k]);
    }
}

/* The chunks of query v, joined in their order. leader: room for ps->leaders. */
static void join(const pass *ps, int64_t v, int64_t chunks, cgam_leader *leader,
                 cgam_attend_out *out)
{
    const cgam_attend_in *in = ps->in;
    int64_t d = in->Z->d;
    part total = part_new(leader, NULL);
    for (int64_t c = 0; c < chunks; c++)
        total.top = fmax(total.top, ps->parts[c * in->count + v].peak);
    if (out->readout) memset(out->readout, 0, (size_t)d * sizeof *out->readout);
    for (int64_t c = 0; c < chunks; c++) {
        part *p = &ps->parts[c * in->count + v];
        double *y = p->to.y, gap = in->beta * (p->peak - total.top);
        p->to.y = NULL; /* its factor goes into the addition below */
        total.above += p->above;
        total.strange |= p->strange || isnan(p->sum);
        for (int64_t k = 0; k < p->leaders; k++) lead(&total, ps->leaders, p->leader[k]);
        for (int k = 0; k < 2; k++) {
            if (p->b.row[k] >= 0) cgam_two_take(&total.b, p->b.value[k], p->b.row[k]);
            if (p->s.row[k] >= 0) cgam_two_take(&total.s, p->s.value[k], p->s.row[k]);
        }
        if (p->peak == -INFINITY) continue;
        if (gap <= ps->drop) {
            int64_t rows = cgam_rows_chunk_begin(in->Z, c + 1) - cgam_rows_chunk_begin(in->Z, c);
            total.skipped += (double)rows * exp(gap);
            continue;
        }
        double shrink = exp(in->beta * (p->top - total.top));
        raise_top(ps, p, total.top);
        total.sum += p->sum;
        total.squares += p->squares;
        total.tilt += p->tilt;
        total.skipped += p->skipped;
        for (int64_t j = 0; out->readout && j < d; j++) out->readout[j] += shrink * y[j];
    }
    for (int64_t j = 0; out->readout && j < d; j++) out->readout[j] /= total.sum;
    out->unsure = false;
    if (ps->f32 && ps->f32_query[v]) {
        double last = total.leader[total.leaders - 1].r;
        int64_t asked = in->leaders < total.leaders ? in->leaders : total.leaders;
        put_all_right(ps, v, &total, &out->focus);
        out->unsure = !cgam_leaders_sure(total.leader, total.leaders, asked, in->Z->n, last,
                                         cgam_attend_error(in, v, CGAM_F32_ERROR));
        if (out->focus.row >= 0)
            total.above = cgam_leaders_rank(total.leader, asked, out->focus.row, total.above);
    }
    out->top = total.top;
    out->sum = total.strange ? NAN : total.sum;
    out->squares = total.squares;
    out->tilt = total.tilt;
    out->skipped = total.skipped;
    out->above = total.above;
    out->leaders = total.leaders < in->leaders ? total.leaders : in->leaders;
    memcpy(out->leader, total.leader, (size_t)out->leaders * sizeof *out->leader);
    out->b = total.b;
    out->s = total.s;
    if (!in->s && !in->e) /* then b is r, and s is zero */
        for (int64_t k = 0; k < 2 && k < out->leaders; k++) {
            out->b.value[k] = out->leader[k].b;
            out->b.row[k] = out->leader[k].row;
            out->s.value[k] = 0;
            out->s.row[k] = k;
        }
}

double cgam_attend_error(const cgam_attend_in *in, int64_t v, double error)
{
    double total = cgam_vec_norm(in->Z->d, in->q + v * in->Z->d);
    if (in->e) total += in->lambda * in->pivot_max * cgam_vec_norm(in->Z->d, in->e + v * in->Z->d);
    return error * in->size * total;
}

/* Does the bound in attend.h allow it? Sizes far from 1 could overflow. */
bool cgam_attend_f32(const cgam_attend_in *in, int64_t v)
{
    const cgam_rows *Z = in->Z;
    if (Z->dtype == CGAM_F64 || !(in->size > 1e-8 && in->size < 1e8)) return false;
    if (in->e && !(in->pivot_max > 0)) return false;
    double q = cgam_vec_norm(Z->d, in->q + v * Z->d);
    double e = in->e ? cgam_vec_norm(Z->d, in->e + v * Z->d) : 0;
    if (!(q > 1e-8 && q < 1e8) || (e != 0 && !(e > 1e-8 && e < 1e8))) return false;
    return in->beta * cgam_attend_error(in, v, CGAM_F32_ERROR) <= CGAM_ATTEND_F32;
}

cgam_attend_in cgam_attend_some(const cgam_attend_in *in, int64_t from, int64_t count)
{
    cgam_attend_in sub = *in;
    sub.count = count;
    sub.q = in->q + from * in->Z->d;
    if (in->e) sub.e = in->e + from * in->Z->d;
    if (in->e) sub.edges = in->edges + from * in->edge;
    if (in->focus) sub.focus = in->focus + from;
    return sub;
}

static cgam_status lay_out(pass *ps)
{
    const cgam_attend_in *in = ps->in;
    int64_t d = in->Z->d, any = 0;
    size_t count = (size_t)in->count;
    ps->f32_query = cgam_zalloc(ps->env, count, sizeof *ps->f32_query);
    if (!ps->f32_query) return cgam_fail_nomem(ps->env, "a pass over the bank");
    bool large = cgam_f32_pays(in->Z->n, d);
    for (int64_t v = 0; v < in->count && large; v++)
        any += ps->f32_query[v] = cgam_attend_f32(in, v);
    if (!any) return CGAM_OK;
    ps->ld = cgam_f32_room(d);
    ps->x32 = cgam_alloc(ps->env, count * (size_t)ps->ld, sizeof *ps->x32);
    if (in->e) ps->e32 = cgam_alloc(ps->env, count * (size_t)ps->ld, sizeof *ps->e32);
    if (!ps->x32 || (in->e && !ps->e32)) return cgam_fail_nomem(ps->env, "a pass over the bank");
    ps->f32 = in->Z->cpu->f32;
    ps->leaders += CGAM_LEADERS_SPARE;
    for (int64_t v = 0; v < in->count; v++) {
        if (!ps->f32_query[v]) continue;
        ps->f32->lay[in->Z->dtype](in->q + v * d, d, ps->x32 + v * ps->ld);
        if (in->e) ps->f32->lay[in->Z->dtype](in->e + v * d, d, ps->e32 + v * ps->ld);
    }
    return CGAM_OK;
}

cgam_status cgam_rows_attend(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    int64_t chunks = cgam_rows_chunks(in->Z), parts = chunks * in->count, d = in->Z->d;
    bool reads = false;
    for (int64_t v = 0; v < in->count; v++) reads |= out[v].readout != NULL;
    pass ps = {.env = env, .in = in, .leaders = in->leaders};
    atomic_init(&ps.high, -INFINITY);
    atomic_init(&ps.floor, -INFINITY);
    ps.drop = log(NEGLIGIBLE / (double)in->Z->n);
    cgam_leader *leader = NULL, *focus = NULL;
    double *y = NULL;
    cgam_status status = lay_out(&ps);
    if (status != CGAM_OK) goto done;
    ps.parts = cgam_zalloc(env, (size_t)parts, sizeof *ps.parts);
    leader = cgam_alloc(env, (size_t)((parts + 1) * ps.leaders), sizeof *leader);
    focus = cgam_alloc(env, (size_t)in->count, sizeof *focus);
    y = reads ? cgam_zalloc(env, (size_t)(parts * d), sizeof *y) : NULL;
    if (!ps.parts || !leader || !focus || (reads && !y)) {
        status = cgam_fail_nomem(env, "a pass over the bank");
        goto done;
    }
    for (int64_t k = 0; k < parts; k++)
        ps.parts[k] =
            part_new(leader + k * ps.leaders, out[k % in->count].readout ? y + k * d : NULL);
    for (int64_t v = 0; v < in->count; v++) {
        int64_t row = in->focus ? in->focus[v] : -1;
        focus[v] = row >= 0 ? look(&ps, v, true, row) : (cgam_leader){.row = -1};
        out[v].focus = focus[v];
    }
    ps.focus = in->focus ? focus : NULL;
    status = cgam_parallel(env, chunks, attend_chunk, &ps);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++)
        join(&ps, v, chunks, leader + parts * ps.leaders, &out[v]);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        if (!out[v].unsure) continue;
        cgam_attend_in one = cgam_attend_some(in, v, 1);
        one.size = 0;
        status = cgam_rows_attend(env, &one, &out[v]);
    }
done:
    cgam_free(env, ps.parts);
    cgam_free(env, ps.x32);
    cgam_free(env, ps.e32);
    cgam_free(env, ps.f32_query);
    cgam_free(env, leader);
    cgam_free(env, focus);
    cgam_free(env, y);
    return status;
}
