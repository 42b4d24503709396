/* tally.c: vectors of one number a row, of which a rank has its own, and what is told of all of them (ranks.h). */
#include "num/ranks.h"

#include <math.h>
#include <string.h>

/* Entries from `from` on are here, at their places: where an array of those begins. Counted in bytes, since
 * there need be nothing at 0. */
static double *placed(double *block, int64_t from)
{
    return (double *)((uintptr_t)block - (uintptr_t)from * sizeof *block);
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

/* ---- Vectors ------------------------------------------------------------------------------------- */
cgam_span cgam_rows_span(const cgam_rows *Z)
{
    return Z->shard ? (cgam_span){Z->shard->begin, Z->shard->end, Z->shard->end - Z->shard->begin}
                    : (cgam_span){0, Z->n, Z->n};
}

double *cgam_vectors_new(cgam_env *env, const cgam_rows *Z, int64_t count)
{
    cgam_span here = cgam_rows_span(Z);
    double *block = cgam_alloc(env, (size_t)(count * here.size), sizeof *block);
    return block ? placed(block, here.from) : NULL;
}

void cgam_vectors_free(cgam_env *env, const cgam_rows *Z, double *x)
{
    if (x) cgam_free(env, placed(x, -cgam_rows_span(Z).from));
}

void cgam_vectors_copy(const cgam_rows *Z, double *to, const double *x)
{
    cgam_span here = cgam_rows_span(Z);
    if (here.size > 0) memcpy(to + here.from, x + here.from, (size_t)here.size * sizeof *to);
}

void cgam_vectors_fill(const cgam_rows *Z, double *to, double value)
{
    cgam_span here = cgam_rows_span(Z);
    for (int64_t i = here.from; i < here.to; i++) to[i] = value;
}

cgam_status cgam_vectors_gather(cgam_env *env, const cgam_rows *Z, const double *x, double *all)
{
    cgam_vectors_copy(Z, all, x);
    return cgam_rows_share(env, Z, Z->n, sizeof *all, all);
}

double cgam_vectors_dot(cgam_env *env, const cgam_rows *Z, const double *x, const double *y)
{
    cgam_tally t;
    cgam_tally_open(&t, Z, "2.");
    while (cgam_tally_next(&t)) t.x[0] = cgam_vec_dot(t.to - t.from, x + t.from, y + t.from);
    return cgam_tally_close(env, &t) == CGAM_OK ? t.x[0] + t.x[1] : NAN;
}

double cgam_vectors_norm(cgam_env *env, const cgam_rows *Z, const double *x)
{
    cgam_tally t;
    cgam_tally_open(&t, Z, ">+");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++) {
            t.x[0] = fmax(t.x[0], fabs(x[i]));
            t.x[1] += isnan(x[i]);
        }
    if (cgam_tally_close(env, &t) != CGAM_OK || t.x[1] > 0) return NAN;
    double largest = fmax(t.x[0], 0);
    if (largest == 0 || !isfinite(largest)) return largest;
    cgam_tally_open(&t, Z, "+");
    while (cgam_tally_next(&t))
        for (int64_t i = t.from; i < t.to; i++) t.x[0] += (x[i] / largest) * (x[i] / largest);
    return cgam_tally_close(env, &t) == CGAM_OK ? largest * sqrt(t.x[0]) : NAN;
}

/* ---- Tallies ------------------------------------------------------------------------------------- */
static void tally_reset(const char *how, double *x)
{
    for (int k = 0; how[k]; k++)
        x[k] = how[k] == '>' || how[k] == '^' ? -INFINITY : how[k] == '<' ? INFINITY : 0;
}

/* What comes after in the order of rows. */
static void tally_add(const char *how, double *all, const double *x)
{
    for (int k = 0; how[k]; k++) {
        double total = all[k] + x[k];
        switch (how[k]) {
        case '+': all[k] = total; break;
        case '>': all[k] = fmax(all[k], x[k]); break;
        case '<': all[k] = fmin(all[k], x[k]); break;
        case '2':
            all[k + 1] += x[k + 1] + (fabs(all[k]) >= fabs(x[k]) ? (all[k] - total) + x[k]
                                                                 : (x[k] - total) + all[k]);
            all[k++] = total;
            break;
        case '^':
            if (x[k] > all[k]) {
                all[k] = x[k];
                all[k + 1] = x[k + 1];
            }
            k++;
            break;
        default: break;
        }
    }
}

void cgam_tally_open(cgam_tally *t, const cgam_rows *Z, const char *how)
{
    t->Z = Z;
    t->how = how;
    t->chunks = cgam_rows_chunks(Z);
    cgam_rows_here(Z, t->chunks, &t->chunk, &t->stop);
    t->chunk--;
    t->from = t->to = -1; /* before the first */
    tally_reset(how, t->all);
}

bool cgam_tally_next(cgam_tally *t)
{
    size_t bytes = strlen(t->how) * sizeof *t->x;
    if (t->from >= 0 && t->Z->shard)
        memcpy((char *)t->Z->shard->tally + (size_t)t->chunk * bytes, t->x, bytes);
    else if (t->from >= 0) tally_add(t->how, t->all, t->x);
    if (++t->chunk >= t->stop) return false;
    t->from = t->Z->n * t->chunk / t->chunks;
    t->to = t->Z->n * (t->chunk + 1) / t->chunks;
    tally_reset(t->how, t->x);
    return true;
}

cgam_status cgam_tally_close(cgam_env *env, cgam_tally *t)
{
    cgam_status status = CGAM_OK;
    size_t width = strlen(t->how);
    if (t->Z->shard) {
        const double *part = t->Z->shard->tally;
        status = cgam_rows_share(env, t->Z, t->chunks, width * sizeof *part, t->Z->shard->tally);
        for (int64_t c = 0; c < t->chunks && status == CGAM_OK; c++)
            tally_add(t->how, t->all, part + (size_t)c * width);
    }
    memcpy(t->x, t->all, sizeof t->x);
    return status;
}
