/* vec.c: see vec.h.
 *
 * A reduction visits the chunks of rows.h in order. A sum is joined chunk by chunk, in the order of rows, so that it does not
 * depend on which process has which chunk; maxima and minima are the same in any order, so a process sends one. */
#include "num/vec.h"

#include "base/blas.h"
#include "num/ranks.h"

#include <string.h>

/* ---- Vectors ------------------------------------------------------------------------------------- */
int64_t cgam_vec_begin(const cgam_rows *Z) { return Z->shard ? Z->shard->begin : 0; }

int64_t cgam_vec_end(const cgam_rows *Z) { return Z->shard ? Z->shard->end : Z->n; }

int64_t cgam_vec_size(const cgam_rows *Z) { return cgam_vec_end(Z) - cgam_vec_begin(Z); }

/* Pointer to the array whose entries from `from` on are stored in block. Computed in bytes, since entry 0 may not
 * exist. */
static double *placed(double *block, int64_t from)
{
    return (double *)((uintptr_t)block - (uintptr_t)from * sizeof *block);
}

double *cgam_vec_new(cgam_env *env, const cgam_rows *Z, int64_t count)
{
    double *block = cgam_alloc(env, (size_t)(count * cgam_vec_size(Z)), sizeof *block);
    return block ? placed(block, cgam_vec_begin(Z)) : NULL;
}

void cgam_vec_free(cgam_env *env, const cgam_rows *Z, double *x)
{
    if (x) cgam_free(env, placed(x, -cgam_vec_begin(Z)));
}

double *cgam_parts_new(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size)
{
    int64_t from, to;
    cgam_rows_here(Z, chunks, &from, &to);
    double *block = cgam_alloc(env, (size_t)((to - from) * size), sizeof *block);
    return block ? placed(block, from * size) : NULL;
}

void cgam_parts_free(cgam_env *env, const cgam_rows *Z, int64_t chunks, int64_t size, double *parts)
{
    int64_t from, to;
    cgam_rows_here(Z, chunks, &from, &to);
    if (parts) cgam_free(env, placed(parts, -from * size));
}

void cgam_vec_copy(const cgam_rows *Z, double *to, const double *x)
{
    int64_t from = cgam_vec_begin(Z), size = cgam_vec_size(Z);
    if (size > 0) memcpy(to + from, x + from, (size_t)size * sizeof *to);
}

void cgam_vec_fill(const cgam_rows *Z, double *x, double value)
{
    CGAM_EACH_ROW(Z, i) x[i] = value;
}

void cgam_vec_scale(const cgam_rows *Z, double *x, double factor)
{
    CGAM_EACH_ROW(Z, i) x[i] *= factor;
}

void cgam_vec_put(const cgam_rows *Z, double *x, int64_t count, const int64_t *row,
                  const double *values)
{
    for (int64_t k = 0; k < count; k++)
        if (cgam_vec_has(Z, row[k])) x[row[k]] = values[k];
}

cgam_status cgam_vec_pick(const cgam_rows *Z, const double *x, int64_t count, const int64_t *row,
                          double *values)
{
    for (int64_t k = 0; k < count; k++) values[k] = cgam_vec_has(Z, row[k]) ? x[row[k]] : 0;
    return cgam_rows_pick(Z, count, row, 1, values);
}

cgam_status cgam_vec_pick_row(const cgam_rows *Z, int64_t row, int64_t count,
                              const double *const *x, double *values)
{
    bool has = cgam_vec_has(Z, row);
    for (int64_t k = 0; k < count; k++) values[k] = has && x[k] ? x[k][row] : 0;
    return cgam_rows_pick(Z, 1, &row, count, values);
}

cgam_status cgam_vec_gather(const cgam_rows *Z, const double *x, double *all)
{
    cgam_vec_copy(Z, all, x);
    return Z->shard ? cgam_rows_share(Z->shard->env, Z, Z->n, sizeof *all, all) : CGAM_OK;
}

/* ---- Folds --------------------------------------------------------------------------------------- */
static int width_of(cgam_term_kind kind)
{
    return kind == CGAM_TERM_SUM2 || kind == CGAM_TERM_PEAK ? 2 : 1;
}

static bool is_sum(cgam_term_kind kind) { return kind == CGAM_TERM_SUM || kind == CGAM_TERM_SUM2; }

static void begin_term(cgam_term_kind kind, double *x)
{
    x[0] = is_sum(kind) ? 0 : kind == CGAM_TERM_MIN ? INFINITY : -INFINITY;
    if (width_of(kind) == 2) x[1] = 0;
}

/* all = all joined with x, which comes later in the order of rows. */
static void join_term(cgam_term_kind kind, double *all, const double *x)
{
    double total = all[0] + x[0];
    switch (kind) {
    case CGAM_TERM_SUM: all[0] = total; break;
    case CGAM_TERM_SUM2:
        all[1] +=
            x[1] + (fabs(all[0]) >= fabs(x[0]) ? (all[0] - total) + x[0] : (x[0] - total) + all[0]);
        all[0] = total;
        break;
    case CGAM_TERM_MAX: all[0] = fmax(all[0], x[0]); break;
    case CGAM_TERM_MIN: all[0] = fmin(all[0], x[0]); break;
    case CGAM_TERM_PEAK:
        if (x[0] > all[0]) memcpy(all, x, 2 * sizeof *all);
        break;
    case CGAM_TERM_END: break;
    }
}

static void begin_terms(cgam_reduction *x)
{
    double *all = x->all;
    for (const cgam_term *t = x->term; t->kind; all += width_of(t++->kind))
        begin_term(t->kind, all);
}

/* Joins a record of the terms that are sums, or of the others; returns the end of the record. */
static const double *join_record(cgam_reduction *x, bool sums, const double *record)
{
    double *all = x->all;
    for (const cgam_term *t = x->term; t->kind; all += width_of(t++->kind)) {
        if (is_sum(t->kind) != sums) continue;
        join_term(t->kind, all, record);
        record += width_of(t->kind);
    }
    return record;
}

/* The number of chunks of rank r. */
static int64_t groups_of(const cgam_reduction *x, int r)
{
    const cgam_shard *s = x->Z->shard;
    return cgam_shard_first(s, x->groups, r + 1) - cgam_shard_first(s, x->groups, r);
}

/* The count of numbers that rank r sends: the sums of its chunks, then its maxima and minima, if it has chunks. */
static int64_t numbers_of(const cgam_reduction *x, int r)
{
    int64_t groups = groups_of(x, r);
    return groups * x->sums + (groups > 0 ? x->peaks : 0);
}

cgam_reduction cgam_reduction_open(const cgam_rows *Z, const cgam_term *terms)
{
    const cgam_shard *s = Z->shard;
    cgam_reduction x = {.Z = Z, .term = terms, .groups = cgam_rows_chunks(Z), .from = -1, .to = -1};
    cgam_rows_here(Z, x.groups, &x.group, &x.stop);
    x.group--;
    for (const cgam_term *t = terms; t->kind; t++)
        *(is_sum(t->kind) ? &x.sums : &x.peaks) += width_of(t->kind);
    begin_terms(&x);
    x.record = s ? s->terms : NULL;
    for (int r = 0; s && r < s->ranks->rank; r++) x.record += numbers_of(&x, r);
    return x;
}

/* Appends a term to the data that this rank sends. */
static void put_record(cgam_reduction *x, const cgam_term *t, const double *value)
{
    memcpy(x->record, value, (size_t)width_of(t->kind) * sizeof *value);
    x->record += width_of(t->kind);
}

/* Adds the caller's variables for the chunk that ends here. */
static void close_group(cgam_reduction *x)
{
    double *all = x->all;
    for (const cgam_term *t = x->term; t->kind; all += width_of(t++->kind))
        if (x->Z->shard && is_sum(t->kind)) put_record(x, t, t->at);
        else join_term(t->kind, all, t->at);
}

static cgam_status join_ranks(cgam_reduction *x)
{
    const cgam_shard *s = x->Z->shard;
    const double *record = s->terms, *all = x->all;
    for (const cgam_term *t = x->term; t->kind; all += width_of(t++->kind))
        if (!is_sum(t->kind) && groups_of(x, s->ranks->rank) > 0) put_record(x, t, all);
    s->from[0] = 0;
    for (int r = 0; r < s->ranks->ranks; r++)
        s->from[r + 1] = s->from[r] + (size_t)numbers_of(x, r) * sizeof *record;
    cgam_status status = cgam_ranks_share(s->env, s->ranks, s->terms, s->from);
    begin_terms(x);
    for (int r = 0; r < s->ranks->ranks && status == CGAM_OK; r++) {
        for (int64_t k = groups_of(x, r); k > 0; k--) record = join_record(x, true, record);
        if (groups_of(x, r) > 0) record = join_record(x, false, record);
    }
    return status;
}

/* Sets the caller's variables to the result over all chunks. */
static void close_reduction(cgam_reduction *x)
{
    cgam_status status = x->Z->shard ? join_ranks(x) : CGAM_OK;
    if (status != CGAM_OK) cgam_rows_failed(x->Z, status);
    const double *all = x->all;
    for (const cgam_term *t = x->term; t->kind; all += width_of(t++->kind)) {
        memcpy(t->at, all, (size_t)width_of(t->kind) * sizeof *all);
        if (status != CGAM_OK) t->at[0] = NAN;
    }
}

bool cgam_reduction_next(cgam_reduction *x)
{
    if (x->from >= 0) close_group(x);
    if (++x->group >= x->stop) {
        close_reduction(x);
        return false;
    }
    x->from = x->Z->n * x->group / x->groups;
    x->to = x->Z->n * (x->group + 1) / x->groups;
    for (const cgam_term *t = x->term; t->kind; t++) begin_term(t->kind, t->at);
    return true;
}

/* Group by group, since BLAS rounding depends on the number of rows. */
void cgam_vec_weigh(const cgam_rows *Z, int64_t k, const double *W, const double *c, double *u)
{
    int64_t chunks = cgam_rows_chunks(Z), first, last;
    cgam_rows_here(Z, chunks, &first, &last);
    for (int64_t part = first; part < last; part++) {
        int64_t from = cgam_rows_chunk_begin(Z, part), to = cgam_rows_chunk_begin(Z, part + 1);
        cblas_dgemv(CblasRowMajor, CblasNoTrans, (int)(to - from), (int)k, 1, W + from * k, (int)k,
                    c, 1, 0, u + from, 1);
    }
}

cgam_status cgam_vec_weigh_back(cgam_env *env, const cgam_rows *Z, int64_t k, const double *W,
                                const double *y, double *out)
{
    int64_t chunks = cgam_rows_chunks(Z), first, last;
    double *parts = cgam_parts_new(env, Z, chunks, k);
    if (!parts) return cgam_fail_nomem(env, "partial sums");
    cgam_rows_here(Z, chunks, &first, &last);
    for (int64_t part = first; part < last; part++)
        for (int64_t l = 0; l < k; l++) {
            int64_t to = cgam_rows_chunk_begin(Z, part + 1);
            double sum = 0;
            for (int64_t i = cgam_rows_chunk_begin(Z, part); i < to; i++)
                sum += W[i * k + l] * y[i];
            parts[part * k + l] = sum;
        }
    cgam_status status = cgam_rows_join(env, Z, chunks, k, parts, out);
    cgam_parts_free(env, Z, chunks, k, parts);
    return status;
}

/* ---- Reductions ---------------------------------------------------------------------------------- */
double cgam_vec_sum(const cgam_rows *Z, const double *x)
{
    double sum;
    CGAM_REDUCE(Z, i, CGAM_SUM(sum)) sum += x[i];
    return sum;
}

double cgam_vec_dot(const cgam_rows *Z, const double *x, const double *y)
{
    cgam_sum2 dot;
    CGAM_REDUCE_GROUPS(Z, from, to, CGAM_SUM2(dot)) {
        dot.high = cgam_array_dot(to - from, x + from, y + from);
    }
    return dot.high + dot.low;
}

double cgam_vec_norm(const cgam_rows *Z, const double *x)
{
    double largest, bad, squares;
    CGAM_REDUCE(Z, i, CGAM_MAX(largest), CGAM_SUM(bad)) {
        largest = fmax(largest, fabs(x[i]));
        bad += isnan(x[i]);
    }
    if (!(bad == 0)) return NAN;
    largest = fmax(largest, 0);
    if (largest == 0 || !isfinite(largest)) return largest;
    CGAM_REDUCE(Z, i, CGAM_SUM(squares)) squares += (x[i] / largest) * (x[i] / largest);
    return largest * sqrt(squares);
}

double cgam_vec_max(const cgam_rows *Z, const double *x)
{
    double (*largest)(const double *, int64_t) = cgam_cpu_best()->f64->largest, most;
    CGAM_REDUCE_GROUPS(Z, from, to, CGAM_MAX(most)) most = largest(x + from, to - from);
    return most;
}

double cgam_vec_min(const cgam_rows *Z, const double *x)
{
    double least;
    CGAM_REDUCE(Z, i, CGAM_MIN(least)) least = fmin(least, x[i]);
    return least;
}

/* 0 if there is no entry; NaN from a failure stays. */
static double at_least_0(double most) { return most < 0 ? 0 : most; }

double cgam_vec_max_abs(const cgam_rows *Z, const double *x)
{
    double most;
    CGAM_REDUCE(Z, i, CGAM_MAX(most)) most = fmax(most, fabs(x[i]));
    return at_least_0(most);
}

double cgam_vec_max_diff(const cgam_rows *Z, const double *x, const double *y)
{
    double most;
    CGAM_REDUCE(Z, i, CGAM_MAX(most)) most = fmax(most, fabs(x[i] - y[i]));
    return at_least_0(most);
}

int64_t cgam_vec_max_row(const cgam_rows *Z, const double *x, double *value)
{
    cgam_peak top;
    CGAM_REDUCE(Z, i, CGAM_PEAK(top)) cgam_peak_take(&top, x[i], i);
    *value = top.value;
    return isnan(top.value) ? 0 : (int64_t)top.row;
}
