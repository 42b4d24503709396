/* attend_parts.c: see attend_parts.h. */
#include "num/attend_parts.h"

#include "num/ranks.h"

#include <string.h>

static bool has_gates(const cgam_attend_in *in) { return in->s || in->e; }

void cgam_attend_join_lists(cgam_attend_part *total, int64_t most, const cgam_attend_part *chunk)
{
    total->above += chunk->above;
    for (int64_t k = 0; k < chunk->leaders; k++)
        cgam_lead(total->leader, &total->leaders, most, chunk->leader[k]);
    for (int k = 0; k < 2; k++) {
        if (chunk->b.row[k] >= 0) cgam_two_take(&total->b, chunk->b.value[k], chunk->b.row[k]);
        if (chunk->s.row[k] >= 0) cgam_two_take(&total->s, chunk->s.value[k], chunk->s.row[k]);
    }
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

/* x in double, with the weight that goes with it. */
static void rescore_leader(const cgam_attend_in *in, int64_t v, double base, cgam_softmax *soft,
                           double *y, cgam_leader *x)
{
    double old = x->weight;
    *x = cgam_attend_look(in, v, x->row);
    double arg = in->beta * (x->r - base - soft->top), add = exp(arg) - old;
    if (!isfinite(x->r) || !isfinite(add)) return;
    cgam_softmax_replace(soft, old, arg);
    if (y && add != 0) cgam_rows_add(in->Z, x->row, 1, &add, y, &(double){0});
}

static int64_t n_leaders(const cgam_attend_in *in, const cgam_attend_part *total)
{
    return in->leaders < total->leaders ? in->leaders : total->leaders;
}

/* The rank of row f, which `above` counted as the pass saw it: where f is among the leaders asked
 * for it is its place there. */
static int64_t rank_of(const cgam_leader *list, int64_t count, int64_t f, int64_t above)
{
    for (int64_t k = 0; k < count; k++)
        if (list[k].row == f) return k;
    return above > count ? above : count;
}

void cgam_attend_put_right(const cgam_attend_in *in, int64_t v, double base,
                           cgam_attend_part *total, cgam_leader *focus, double *y)
{
    int64_t leaders = total->leaders;
    bool listed = false;
    for (int64_t k = 0; k < leaders; k++) {
        listed |= total->leader[k].row == focus->row;
        rescore_leader(in, v, base, &total->soft, y, &total->leader[k]);
    }
    if (focus->row >= 0 && !listed) rescore_leader(in, v, base, &total->soft, y, focus);
    else if (focus->row >= 0) *focus = cgam_attend_look(in, v, focus->row);
    total->leaders = 0;
    for (int64_t k = 0; k < leaders; k++)
        cgam_lead(total->leader, &total->leaders, leaders, total->leader[k]);
    if (focus->row >= 0)
        total->above = rank_of(total->leader, n_leaders(in, total), focus->row, total->above);
    for (int64_t j = 0; y && j < in->Z->d; j++) y[j] /= total->soft.sum;
    double top = total->leader[0].r;
    if (isfinite(top)) {
        cgam_softmax_raise(&total->soft, in->beta, top - base);
        total->soft.top = top;
    }
    cgam_two b = total->b, s = total->s;
    total->b.row[0] = total->b.row[1] = total->s.row[0] = total->s.row[1] = -1;
    for (int k = 0; k < 2; k++) {
        if (b.row[k] >= 0) cgam_two_take(&total->b, cgam_attend_look(in, v, b.row[k]).b, b.row[k]);
        if (s.row[k] >= 0) cgam_two_take(&total->s, cgam_attend_look(in, v, s.row[k]).s, s.row[k]);
    }
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
    for (int64_t v = 0; v < in->count; v++) count += total[v].leaders + 5;
    int64_t *row = cgam_alloc(env, (size_t)count, sizeof *row);
    if (!row) return cgam_fail_nomem(env, "rows of other ranks");
    for (int64_t v = 0; v < in->count; v++) {
        const cgam_attend_part *p = &total[v];
        for (int64_t j = 0; j < p->leaders; j++) row[k++] = p->leader[j].row;
        for (int j = 0; j < 2; j++) row[k++] = p->b.row[j];
        for (int j = 0; j < 2; j++) row[k++] = p->s.row[j];
        row[k++] = in->focus ? out[v].focus.row : -1;
    }
    cgam_status status = cgam_attend_bring_rows(env, in, k, row);
    cgam_free(env, row);
    return status;
}

bool cgam_attend_sure(const cgam_attend_in *in, const cgam_attend_part *total, double last,
                      double off)
{
    return total->leaders == in->Z->n || total->leader[n_leaders(in, total) - 1].r - off > last;
}

void cgam_attend_tell(const cgam_attend_in *in, const cgam_attend_part *total, cgam_attend_out *out)
{
    out->soft = total->soft;
    out->above = total->above;
    out->leaders = n_leaders(in, total);
    memcpy(out->leader, total->leader, (size_t)out->leaders * sizeof *out->leader);
    out->b = total->b;
    out->s = total->s;
    for (int64_t k = 0; !has_gates(in) && k < 2 && k < total->leaders;
         k++) { /* b is r, s is zero */
        out->b.value[k] = total->leader[k].b;
        out->b.row[k] = total->leader[k].row;
        out->s.value[k] = 0;
        out->s.row[k] = k;
    }
}
