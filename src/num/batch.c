/* batch.c: see batch.h. Queries go in panels of one register tile's width; an item of work is one
 * panel over one chunk of rows. */
#include "num/batch.h"

#include "num/panels.h"

#include <math.h>
#include <string.h>

enum {
    QUERIES_MIN = 8,
    CHUNKS_MAX = 16,      /* a chunk has sums of [width, d] of its own */
    TILE_BYTES = 3 << 19, /* of rows in f32: most of a second-level cache */
    TILE_ROWS_MIN = 48,
    TILE_ROWS_MAX = 384,
    FLUSH_ROWS = 1024, /* readouts are summed in f32 over so many rows */
    WIDTH_MAX = 64,
};
static const double SIZE_MIN = 0x1p18; /* n d below which double is fast enough */

typedef struct batch {
    cgam_env *env;
    const cgam_attend_in *in;
    const cgam_panels *panels;
    int64_t width, panel_count, chunks, tile, ld; /* ld: of rows in f32 */
    float *Q;                                     /* [panels][d][width] */
    cgam_leader *focus;                           /* [count]: r as the pass will see it */
    cgam_attend_out *part;                        /* [chunks][count]; readouts are sums */
    cgam_attend_out *out;
} batch;

bool cgam_batch_suits(const cgam_attend_in *in)
{
    const cgam_rows *Z = in->Z;
    return Z->dtype != CGAM_F64 && in->count >= QUERIES_MIN && !in->e &&
           (double)Z->n * (double)Z->d >= SIZE_MIN;
}

static const void *row_at(const cgam_rows *Z, int64_t i)
{
    return (const char *)Z->data + (size_t)(i * Z->stride) * cgam_dtype_size(Z->dtype);
}

static bool before(const cgam_leader *x, const cgam_leader *y)
{
    return x->r > y->r || (x->r == y->r && x->row < y->row);
}

static void lead(cgam_attend_out *p, int64_t most, cgam_leader x)
{
    int64_t at = p->leaders;
    if (at == most && !before(&x, &p->leader[most - 1])) return;
    if (at == most) at--;
    else p->leaders++;
    for (; at > 0 && before(&x, &p->leader[at - 1]); at--) p->leader[at] = p->leader[at - 1];
    p->leader[at] = x;
}

static void two_take(cgam_two *best, double value, int64_t row)
{
    int at = best->row[0] < 0 || value > best->value[0]   ? 0
             : best->row[1] < 0 || value > best->value[1] ? 1
                                                          : 2;
    if (at == 0) {
        best->value[1] = best->value[0];
        best->row[1] = best->row[0];
    }
    if (at < 2) {
        best->value[at] = value;
        best->row[at] = row;
    }
}

/* The work space of one item. */
typedef struct space {
    float *rows; /* [tile, ld] where rows have to be converted */
    float *T, *E, *Y, *sums;
    double *S, *top, *highest;
} space;

/* S[rows, width] = scores of rows given in f32. */
static void score(const batch *job, const float *rows, int64_t ld, int64_t count, const float *Q,
                  float *T, double *S)
{
    int64_t width = job->width, d = job->in->Z->d;
    memset(S, 0, (size_t)(count * width) * sizeof *S);
    for (int64_t k = 0; k < d; k += CGAM_BATCH_DEPTH) {
        int64_t depth = d - k < CGAM_BATCH_DEPTH ? d - k : CGAM_BATCH_DEPTH;
        memset(T, 0, (size_t)(count * width) * sizeof *T);
        job->panels->mul32(count, width, depth, rows + k, ld, 1, Q + k * width, width, T, width);
        job->panels->gather(count * width, T, S);
    }
}

/* Rows [i, i + count) in f32: where they are, or converted and padded to whole vectors. Rows at
 * distances of 16 KiB share a set of the first-level cache and are copied as well. */
static const float *fetch(const batch *job, int64_t i, int64_t count, float *room, int64_t *ld)
{
    const cgam_rows *Z = job->in->Z;
    *ld = Z->stride;
    if (Z->dtype == CGAM_F32 && Z->d % job->panels->lanes32 == 0 && Z->stride % 4096 != 0)
        return row_at(Z, i);
    *ld = job->ld;
    for (int64_t r = 0; r < count; r++) {
        float *to = room + r * job->ld;
        if (Z->dtype == CGAM_F32) memcpy(to, row_at(Z, i + r), (size_t)Z->d * sizeof *to);
        else Z->kernels->to_f32[Z->dtype](row_at(Z, i + r), Z->d, to);
    }
    return room;
}

static void finish_scores(const batch *job, int64_t i, int64_t count, double *S)
{
    const cgam_attend_in *in = job->in;
    if (!in->s && !in->Z->scale) return;
    for (int64_t r = 0; r < count; r++) {
        double scale = in->Z->scale ? in->Z->scale[i + r] : 1;
        double shift = in->s ? in->lambda * in->s[i + r] : 0;
        for (int64_t c = 0; c < job->width; c++)
            S[r * job->width + c] = S[r * job->width + c] * scale + shift;
    }
}

/* Scores of a tile for one query: leaders, best of b and s, rank. */
static void look_over(const batch *job, const cgam_leader *focus, cgam_attend_out *p, int64_t i,
                      int64_t count, const double *S, double highest)
{
    const cgam_attend_in *in = job->in;
    int64_t width = job->width;
    if (p->leaders < in->leaders || highest > p->leader[in->leaders - 1].r)
        for (int64_t r = 0; r < count; r++)
            if (p->leaders < in->leaders || S[r * width] > p->leader[in->leaders - 1].r)
                lead(p, in->leaders,
                     (cgam_leader){S[r * width], 0, in->s ? in->s[i + r] : 0, i + r});
    if (focus->row >= 0 && highest >= focus->r)
        for (int64_t r = 0; r < count; r++)
            p->above += S[r * width] > focus->r || (S[r * width] == focus->r && i + r < focus->row);
    for (int64_t r = 0; in->s && r < count; r++) {
        two_take(&p->b, S[r * width] - in->lambda * in->s[i + r], i + r);
        two_take(&p->s, in->s[i + r], i + r);
    }
}

/* The largest score of query v has risen to `top`. */
static void raise_top(cgam_attend_out *p, double beta, double top, double *y, float *y32, int64_t d)
{
    double fall = beta * (p->top - top), shrink = p->sum > 0 ? exp(fall) : 0;
    if (p->sum > 0) p->tilt = shrink > 0 ? shrink * (p->tilt + p->sum * fall) : 0;
    p->sum *= shrink;
    p->squares *= shrink * shrink;
    for (int64_t j = 0; y && j < d; j++) y[j] *= shrink;
    for (int64_t j = 0; y32 && j < d; j++) y32[j] *= (float)shrink;
    p->top = top;
}

static void flush(const batch *job, int64_t queries, space *w, cgam_attend_out *part)
{
    int64_t d = job->in->Z->d;
    int64_t whole = d / job->panels->lanes32 * job->panels->lanes32;
    for (int64_t v = 0; v < queries; v++) {
        job->panels->gather(whole, w->Y + v * job->ld, part[v].readout);
        for (int64_t j = whole; j < d; j++) part[v].readout[j] += w->Y[v * job->ld + j];
    }
    memset(w->Y, 0, (size_t)(job->width * job->ld) * sizeof *w->Y);
}

static void take_tile(const batch *job, int64_t i, int64_t count, int64_t panel, space *w,
                      cgam_attend_out *part)
{
    const cgam_attend_in *in = job->in;
    int64_t width = job->width, d = in->Z->d, first = panel * width, ld;
    int64_t queries = in->count - first < width ? in->count - first : width;
    const float *rows = fetch(job, i, count, w->rows, &ld);
    score(job, rows, ld, count, job->Q + panel * d * width, w->T, w->S);
    finish_scores(job, i, count, w->S);
    job->panels->tops(count, width, w->S, w->highest);
    for (int64_t v = 0; v < queries; v++) {
        cgam_attend_out *p = &part[v];
        look_over(job, &job->focus[first + v], p, i, count, w->S + v, w->highest[v]);
        if (w->highest[v] > p->top)
            raise_top(p, in->beta, w->highest[v], p->readout, w->Y ? w->Y + v * job->ld : NULL, d);
        /* only masks so far: weights of exp(-inf) = 0 against any finite top */
        w->top[v] = p->top == -INFINITY ? 0 : p->top;
    }
    job->panels->soften(count, width, w->S, in->beta, w->top, w->E, w->sums);
    for (int64_t v = 0; v < queries; v++) {
        part[v].sum += w->sums[v];
        part[v].squares += w->sums[width + v];
        part[v].tilt += w->sums[2 * width + v];
    }
    if (!w->Y) return;
    if (in->Z->scale)
        for (int64_t r = 0; r < count; r++)
            for (int64_t c = 0; c < width; c++) w->E[r * width + c] *= (float)in->Z->scale[i + r];
    int64_t columns = (d + job->panels->lanes32 - 1) / job->panels->lanes32 * job->panels->lanes32;
    job->panels->mul32(queries, columns, count, w->E, 1, width, rows, ld, w->Y, job->ld);
}

static cgam_status batch_item(void *arg, int64_t item)
{
    batch *job = arg;
    const cgam_attend_in *in = job->in;
    int64_t panel = item % job->panel_count, chunk = item / job->panel_count, width = job->width;
    int64_t queries = in->count - panel * width < width ? in->count - panel * width : width;
    cgam_attend_out *part = job->part + chunk * in->count + panel * width;
    int64_t begin = in->Z->n * chunk / job->chunks, end = in->Z->n * (chunk + 1) / job->chunks;
    bool reads = part[0].readout != NULL;
    int64_t area = job->tile * width, since = 0;
    if (cgam_interrupted(job->env)) return CGAM_E_INTERRUPTED;
    space w = {0};
    w.rows = cgam_zalloc(job->env, (size_t)(job->tile * job->ld), sizeof *w.rows);
    w.T = cgam_alloc(job->env, (size_t)area, sizeof *w.T);
    w.E = cgam_alloc(job->env, (size_t)area, sizeof *w.E);
    w.S = cgam_alloc(job->env, (size_t)area, sizeof *w.S);
    w.sums = cgam_alloc(job->env, (size_t)(3 * width), sizeof *w.sums);
    w.top = cgam_zalloc(job->env, (size_t)width, sizeof *w.top);
    w.highest = cgam_alloc(job->env, (size_t)width, sizeof *w.highest);
    if (reads) w.Y = cgam_zalloc(job->env, (size_t)(width * job->ld), sizeof *w.Y);
    cgam_status status = CGAM_OK;
    if (!w.rows || !w.T || !w.E || !w.S || !w.sums || !w.top || !w.highest || (reads && !w.Y))
        status = cgam_fail_nomem(job->env, "a tile of scores");
    for (int64_t i = begin; i < end && status == CGAM_OK; i += job->tile) {
        int64_t count = end - i < job->tile ? end - i : job->tile;
        take_tile(job, i, count, panel, &w, part);
        since += count;
        if (reads && (since + job->tile > FLUSH_ROWS || i + count == end)) {
            flush(job, queries, &w, part);
            since = 0;
        }
    }
    cgam_free(job->env, w.rows);
    cgam_free(job->env, w.T);
    cgam_free(job->env, w.E);
    cgam_free(job->env, w.S);
    cgam_free(job->env, w.sums);
    cgam_free(job->env, w.top);
    cgam_free(job->env, w.highest);
    cgam_free(job->env, w.Y);
    return status;
}

/* Scores a row again in double; its weight in the sums changes from that of x->r. */
static void put_right(const batch *job, int64_t v, cgam_leader *x, cgam_attend_out *out)
{
    const cgam_attend_in *in = job->in;
    double beta = in->beta, old = beta * (x->r - out->top), b;
    cgam_rows_dot(in->Z, x->row, 1, in->q + v * in->Z->d, &b);
    x->b = b;
    x->s = in->s ? in->s[x->row] : 0;
    x->r = b + (in->s ? in->lambda * x->s : 0);
    if (!isfinite(x->r) || !isfinite(old)) return;
    double now = beta * (x->r - out->top), e0 = exp(old), e1 = exp(now);
    out->sum += e1 - e0;
    out->squares += e1 * e1 - e0 * e0;
    out->tilt += e1 * now - e0 * old;
}

static void join(const batch *job, int64_t v, cgam_attend_out *out)
{
    const cgam_attend_in *in = job->in;
    int64_t d = in->Z->d;
    double *y = out->readout;
    cgam_leader *leader = out->leader;
    *out = (cgam_attend_out){.top = -INFINITY, .leader = leader, .readout = y};
    out->b.row[0] = out->b.row[1] = out->s.row[0] = out->s.row[1] = -1;
    out->focus = job->focus[v];
    for (int64_t c = 0; c < job->chunks; c++)
        out->top = fmax(out->top, job->part[c * in->count + v].top);
    if (y) memset(y, 0, (size_t)d * sizeof *y);
    for (int64_t c = 0; c < job->chunks; c++) {
        cgam_attend_out *p = &job->part[c * in->count + v];
        if (p->top > -INFINITY) raise_top(p, in->beta, out->top, p->readout, NULL, d);
        out->sum += p->sum;
        out->squares += p->squares;
        out->tilt += p->tilt;
        out->above += p->above;
        for (int64_t k = 0; k < p->leaders; k++) lead(out, in->leaders, p->leader[k]);
        for (int k = 0; k < 2; k++) {
            if (p->b.row[k] >= 0) two_take(&out->b, p->b.value[k], p->b.row[k]);
            if (p->s.row[k] >= 0) two_take(&out->s, p->s.value[k], p->s.row[k]);
        }
        for (int64_t j = 0; y && j < d; j++) y[j] += p->readout[j];
    }
    for (int64_t j = 0; y && j < d; j++) y[j] /= out->sum;

    /* leaders again in double, which may change their order, and everything they are the top of */
    int64_t leaders = out->leaders;
    bool listed = false;
    for (int64_t k = 0; k < leaders; k++) {
        listed |= leader[k].row == out->focus.row;
        put_right(job, v, &leader[k], out);
    }
    if (out->focus.row >= 0 && !listed) put_right(job, v, &out->focus, out);
    out->leaders = 0;
    for (int64_t k = 0; k < leaders; k++) lead(out, leaders, leader[k]);
    for (int64_t k = 0; k < leaders; k++)
        if (leader[k].row == out->focus.row) out->focus = leader[k];
    double top = leader[0].r;
    if (isfinite(top)) raise_top(out, in->beta, top, NULL, NULL, 0);
    for (int k = 0; k < 2 && in->s; k++)
        if (out->b.row[k] >= 0)
            cgam_rows_dot(in->Z, out->b.row[k], 1, in->q + v * d, &out->b.value[k]);
    for (int64_t k = 0; !in->s && k < 2 && k < leaders; k++) {
        out->b.value[k] = leader[k].b;
        out->b.row[k] = leader[k].row;
        out->s.value[k] = 0;
        out->s.row[k] = k;
    }
}

/* Queries side by side, and the scores of the rows asked for as the pass will see them. */
static cgam_status prepare(batch *job)
{
    const cgam_attend_in *in = job->in;
    int64_t d = in->Z->d, width = job->width;
    for (int64_t v = 0; v < in->count; v++)
        for (int64_t j = 0; j < d; j++)
            job->Q[(v / width * d + j) * width + v % width] = (float)in->q[v * d + j];
    float *row = cgam_zalloc(job->env, (size_t)job->ld, sizeof *row);
    float T[WIDTH_MAX];
    double S[WIDTH_MAX];
    if (!row) return cgam_fail_nomem(job->env, "a row");
    for (int64_t v = 0; v < in->count; v++) {
        int64_t f = in->focus ? in->focus[v] : -1, ld;
        job->focus[v] = (cgam_leader){.row = f};
        if (f < 0) continue;
        const float *stored = fetch(job, f, 1, row, &ld);
        score(job, stored, ld, 1, job->Q + v / width * d * width, T, S);
        finish_scores(job, f, 1, S);
        job->focus[v].r = S[v % width];
    }
    cgam_free(job->env, row);
    return CGAM_OK;
}

cgam_status cgam_rows_attend_batch(cgam_env *env, const cgam_attend_in *in, cgam_attend_out *out)
{
    const cgam_rows *Z = in->Z;
    batch job = {.env = env, .in = in, .out = out};
    job.panels = cgam_panels_with(Z->kernels->name);
    int64_t lanes = job.panels->lanes32, best = job.panels->best32;
    job.width = in->count <= lanes ? lanes
                : in->count < best ? (in->count + lanes - 1) / lanes * lanes
                                   : best;
    job.panel_count = (in->count + job.width - 1) / job.width;
    job.ld = (Z->d + lanes - 1) / lanes * lanes;
    if (job.ld % 512 == 0)
        job.ld += lanes; /* rows at power-of-two distances collide in the cache */
    int64_t rows = TILE_BYTES / (4 * Z->d);
    job.tile = rows < TILE_ROWS_MIN ? TILE_ROWS_MIN : rows > TILE_ROWS_MAX ? TILE_ROWS_MAX : rows;
    job.tile = job.tile / 6 * 6;
    job.chunks = (Z->n + job.tile - 1) / job.tile;
    if (job.chunks > CHUNKS_MAX) job.chunks = CHUNKS_MAX;
    int64_t parts = job.chunks * in->count, d = Z->d;
    bool reads = out[0].readout != NULL;
    job.Q = cgam_zalloc(env, (size_t)(job.panel_count * d * job.width), sizeof *job.Q);
    job.focus = cgam_alloc(env, (size_t)in->count, sizeof *job.focus);
    job.part = cgam_zalloc(env, (size_t)parts, sizeof *job.part);
    cgam_leader *leader = cgam_alloc(env, (size_t)(parts * in->leaders), sizeof *leader);
    double *y = reads ? cgam_zalloc(env, (size_t)(parts * d), sizeof *y) : NULL;
    cgam_status status = CGAM_OK;
    if (!job.Q || !job.focus || !job.part || !leader || (reads && !y))
        status = cgam_fail_nomem(env, "a batch of queries");
    for (int64_t k = 0; k < parts && status == CGAM_OK; k++) {
        cgam_attend_out *p = &job.part[k];
        *p = (cgam_attend_out){.top = -INFINITY, .leader = leader + k * in->leaders};
        p->b.row[0] = p->b.row[1] = p->s.row[0] = p->s.row[1] = -1;
        if (reads) p->readout = y + k * d;
    }
    if (status == CGAM_OK) status = prepare(&job);
    if (status == CGAM_OK)
        status = cgam_parallel(env, job.chunks * job.panel_count, batch_item, &job);
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) join(&job, v, &out[v]);
    cgam_free(env, job.Q);
    cgam_free(env, job.focus);
    cgam_free(env, job.part);
    cgam_free(env, leader);
    cgam_free(env, y);
    return status;
}
