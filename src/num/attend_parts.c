/* attend_parts.c: see attend_parts.h. */
#include "num/attend_parts.h"

#include "num/ranks.h"

#include <string.h>

/* Rows that are not scored again are left out of the sums if their total weight is at most this. */
static const double REST = 0x1p-55;

static bool has_gates(const cgam_attend_in *in) { return in->s || in->e; }

static void join_best(cgam_best *total, int64_t most, const cgam_best *chunk)
{
    for (int64_t k = 0; k < chunk->count; k++)
        cgam_best_take(total, most, chunk->value[k], chunk->row[k]);
}

void cgam_attend_join_lists(cgam_attend_part *total, int64_t most, int64_t best,
                            const cgam_attend_part *chunk)
{
    total->above += chunk->above;
    for (int64_t k = 0; k < chunk->leaders; k++)
        cgam_lead(total->leader, &total->leaders, most, chunk->leader[k]);
    join_best(&total->b, best, &chunk->b);
    join_best(&total->s, best, &chunk->s);
}

cgam_leader cgam_attend_look(const cgam_attend_in *in, int64_t v, int64_t row)
{
    cgam_leader x = {.row = row};
    cgam_rows_dot(in->Z, row, 1, in->q + v * in->Z->d, &x.b);
    if (in->s) x.s = *cgam_rows_entries(in->Z, in->s, row);
    if (in->e) {
        cgam_rows_dot(in->Z, row, 1, in->e + v * in->Z->d, &x.s);
        x.s *= *cgam_rows_entries(in->Z, in->pivot, row);
        for (int64_t k = 0; k < in->edge; k++)
            if (in->border[k] == row) x.s = in->edges[v * in->edge + k];
    }
    x.r = has_gates(in) ? x.b + in->lambda * x.s : x.b;
    return x;
}

/* Scores x in double. Its weight, which is subtracted from the sums, stays that of the pass. */
static void rescore(const cgam_attend_in *in, int64_t v, cgam_softmax *rest, cgam_leader *x)
{
    double weight = x->weight;
    *x = cgam_attend_look(in, v, x->row);
    x->weight = weight;
    if (!(weight > 0)) return;
    rest->sum -= weight;
    rest->squares -= weight * weight;
    rest->tilt -= weight * log(weight);
}

/* Replaces rounding residues of 0 by 0; NaN stays. */
static void level_rest(cgam_softmax *rest)
{
    if (rest->sum < 0) rest->sum = 0;
    if (rest->squares < 0) rest->squares = 0;
    if (rest->squares > rest->sum * rest->sum) rest->squares = rest->sum * rest->sum;
    if (rest->tilt > 0) rest->tilt = 0;
}

/* Adds x to the sums, relative to their top, and to y, which contains shrink times its old weight. */
static void enter(const cgam_attend_in *in, const cgam_leader *x, double shrink, cgam_softmax *soft,
                  double *y)
{
    if (!isfinite(x->r)) return;
    double add = exp(in->beta * (x->r - soft->top)) - shrink * x->weight;
    cgam_softmax_take(soft, in->beta, x->r);
    if (y && add != 0) cgam_rows_add(in->Z, x->row, 1, &add, y, &(double){0});
}

/* Scores the best two of a list in double; returns false if a row outside the list may be among them. */
static bool put_best_right(const cgam_attend_in *in, int64_t v, bool gates, double off,
                           int64_t most, cgam_best *list)
{
    cgam_best exact = {0};
    int64_t k = 0;
    for (; k < list->count && (k < 2 || !(list->value[k] + off < exact.value[1])); k++) {
        cgam_leader x = cgam_attend_look(in, v, list->row[k]);
        cgam_best_take(&exact, 2, gates ? x.s : x.b, x.row);
    }
    bool sure = k < list->count || list->count < most || list->count == in->Z->n ||
                list->value[k - 1] + off <= exact.value[1];
    *list = exact;
    return sure;
}

static int64_t n_leaders(const cgam_attend_in *in, const cgam_attend_part *total)
{
    return in->leaders < total->leaders ? in->leaders : total->leaders;
}

/* The rank of row f, which `above` counted with the scores of the pass; if f is among the requested leaders, its
 * place there. */
static int64_t rank_of(const cgam_leader *list, int64_t count, int64_t f, int64_t above)
{
    for (int64_t k = 0; k < count; k++)
        if (list[k].row == f) return k;
    return above > count ? above : count;
}

/* Are the requested leaders, now in double, those of all rows, if every row left out scored `last` or less? */
static bool are_leaders(const cgam_attend_in *in, const cgam_attend_part *total, double last,
                        double off)
{
    return total->leaders == in->Z->n || total->leader[n_leaders(in, total) - 1].r - off > last;
}

cgam_righted cgam_attend_put_right(const cgam_attend_in *in, int64_t v, const cgam_rough *rough,
                                   cgam_attend_part *total, cgam_leader *focus, double *y,
                                   double *skipped)
{
    int64_t leaders = total->leaders, n = in->Z->n;
    double last = total->leader[leaders - 1].r + rough->base;
    cgam_softmax *soft = &total->soft;
    bool listed = focus->row < 0;
    for (int64_t k = 0; k < leaders; k++) {
        listed |= total->leader[k].row == focus->row;
        rescore(in, v, soft, &total->leader[k]);
    }
    if (!listed) rescore(in, v, soft, focus);
    else if (focus->row >= 0) *focus = cgam_attend_look(in, v, focus->row);
    level_rest(soft);
    total->leaders = 0;
    for (int64_t k = 0; k < leaders; k++)
        cgam_lead(total->leader, &total->leaders, leaders, total->leader[k]);
    if (focus->row >= 0)
        total->above = rank_of(total->leader, n_leaders(in, total), focus->row, total->above);
    double top = total->leader[0].r;
    /* upper bound of the weight of all other rows */
    double others = (double)(n - leaders) * exp(in->beta * (last + rough->off - top));
    cgam_righted is = {.leaders = are_leaders(in, total, last, rough->off),
                       .alone = leaders == n || others <= REST};
    if (isfinite(top)) {
        double shrink = 0;
        if (is.alone && !isnan(soft->sum)) {
            *soft = (cgam_softmax){.top = top};
            if (leaders < n) *skipped += others;
            for (int64_t j = 0; y && j < in->Z->d; j++) y[j] = 0;
        } else {
            shrink = cgam_softmax_raise(soft, in->beta, top - rough->base);
            soft->top = top;
            for (int64_t j = 0; y && j < in->Z->d; j++) y[j] *= shrink;
        }
        for (int64_t k = 0; k < leaders; k++) enter(in, &total->leader[k], shrink, soft, y);
        if (!listed && !is.alone) enter(in, focus, shrink, soft, y);
    }
    for (int64_t j = 0; y && j < in->Z->d; j++) y[j] /= soft->sum;
    is.leaders &= put_best_right(in, v, false, rough->off_b, rough->best, &total->b);
    is.leaders &= put_best_right(in, v, true, rough->off_s, rough->best, &total->s);
    return is;
}

cgam_status cgam_attend_bring_rows(cgam_env *env, const cgam_attend_in *in, int64_t count,
                                   const int64_t *row)
{
    return cgam_rows_bring_with(env, in->Z, count, row,
                                (const double *[]){in->s, in->e ? in->pivot : NULL}, 2);
}

cgam_status cgam_attend_bring(cgam_env *env, const cgam_attend_in *in,
                              const cgam_attend_part *total, const cgam_attend_out *out)
{
    int64_t count = 0, k = 0;
    if (!in->Z->shard) return CGAM_OK;
    for (int64_t v = 0; v < in->count; v++)
        count += total[v].leaders + total[v].b.count + total[v].s.count + 1;
    int64_t *row = cgam_alloc(env, (size_t)count, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "rows of other ranks");
    for (int64_t v = 0; v < in->count; v++) {
        const cgam_attend_part *p = &total[v];
        for (int64_t j = 0; j < p->leaders; j++) row[k++] = p->leader[j].row;
        for (int64_t j = 0; j < p->b.count; j++) row[k++] = p->b.row[j];
        for (int64_t j = 0; j < p->s.count; j++) row[k++] = p->s.row[j];
        row[k++] = in->focus ? out[v].focus.row : -1;
    }
    cgam_status status = cgam_attend_bring_rows(env, in, k, row);
    cgam_free(env, row);
    return status;
}

static cgam_two best_two(const cgam_best *best)
{
    cgam_two two = {.row = {-1, -1}};
    for (int64_t k = 0; k < 2 && k < best->count; k++) {
        two.value[k] = best->value[k];
        two.row[k] = best->row[k];
    }
    return two;
}

void cgam_attend_tell(const cgam_attend_in *in, const cgam_attend_part *total, cgam_attend_out *out)
{
    cgam_softmax *soft = &out->soft;
    *soft = total->soft;
    if (isfinite(soft->top) && soft->sum < 1) soft->sum = 1;
    if (soft->squares > soft->sum * soft->sum) soft->squares = soft->sum * soft->sum;
    out->above = total->above;
    out->leaders = n_leaders(in, total);
    memcpy(out->leader, total->leader, (size_t)out->leaders * sizeof *out->leader);
    out->b = best_two(&total->b);
    out->s = best_two(&total->s);
    for (int64_t k = 0; !has_gates(in) && k < 2 && k < total->leaders;
         k++) { /* b is r, s is zero */
        out->b.value[k] = total->leader[k].b;
        out->b.row[k] = total->leader[k].row;
        out->s.value[k] = 0;
        out->s.row[k] = k;
    }
}
