/* attend_search.c: see attend_search.h. */
#include "num/attend_search.h"

#include <string.h>

static const double UNITS_MAX = 900; /* of the exponents: no score leaves the range of double */
static const double RANDOM_READ = 2; /* cost of a byte of scattered rows, in bytes of a pass */

int64_t cgam_search_worth(const cgam_search *x)
{
    const cgam_rows *Z = x->in->Z;
    double row = (double)Z->d * (double)cgam_dtype_size(Z->dtype), n = (double)Z->n;
    double sketched = (double)Z->d + 4 * (double)cgam_int8_blocks(Z->d) + 8;
    double rows = n * (row - sketched) / (RANDOM_READ * row);
    return (int64_t)floor(x->wide ? rows : rows / 8);
}

static void probe_new(cgam_search *x, int64_t v, const double *vector, double *rest, cgam_probe *p)
{
    int64_t d = x->sketch->d, blocks = cgam_int8_blocks(d);
    const cgam_cpu *cpu = x->in->Z->cpu;
    p->is.terms = x->terms_of + v * CGAM_SKETCH_TERMS * d;
    p->is.step = x->steps + v * CGAM_SKETCH_TERMS * blocks;
    if (x->wide)
        cgam_sketch_vector_wide(d, vector, rest, x->numbers + v * blocks * CGAM_INT8_BLOCK, &p->is);
    else cgam_sketch_vector(cpu, d, vector, cpu->int8_many->most, rest, &p->is);
    for (int t = 0; t < (x->wide ? 1 : CGAM_SKETCH_TERMS); t++)
        p->off[t] = cgam_sketch_bound(d, &p->is, t + 1);
    p->unit = ldexp(1, p->is.exponent + x->sketch->exponent);
    p->scan = x->scores + v * x->sketch->n;
}

/* Sketches the vectors, and lays out their second terms if the scan uses the first. */
static cgam_status probe_all(cgam_search *x)
{
    const cgam_attend_in *in = x->in;
    int64_t d = in->Z->d, per = in->e ? 2 : 1, blocks = cgam_int8_blocks(d),
            limit = cgam_search_worth(x);
    double *rest = cgam_alloc(x->env, (size_t)d, sizeof *rest);
    int8_t *numbers = cgam_alloc(x->env, (size_t)(2 * d), 1);
    float *steps = cgam_alloc(x->env, (size_t)(2 * blocks), sizeof *steps);
    cgam_status status = CGAM_OK;
    if (!rest || !numbers || !steps) status = cgam_fail_nomem(x->env, "a sketch of queries");
    for (int64_t v = 0; v < in->count && status == CGAM_OK; v++) {
        cgam_seeker *k = &x->seek[v];
        cgam_probe *both[] = {&k->q, &k->e};
        probe_new(x, v * per, in->q + v * d, rest, &k->q);
        if (in->e) probe_new(x, v * per + 1, in->e + v * d, rest, &k->e);
        k->limit = fabs(log2(k->q.unit)) <= UNITS_MAX ? limit : -1;
        if (in->e && !(fabs(log2(k->e.unit)) <= UNITS_MAX)) k->limit = -1;
        for (int64_t j = 0; !x->wide && j < per; j++) {
            memcpy(numbers + j * d, both[j]->is.terms + d, (size_t)d);
            memcpy(steps + j * blocks, both[j]->is.step + blocks, (size_t)blocks * sizeof *steps);
        }
        if (!x->wide)
            in->Z->cpu->int8->lay(per, d, numbers, steps, x->second + (size_t)v * x->second_room);
    }
    cgam_free(x->env, rest);
    cgam_free(x->env, numbers);
    cgam_free(x->env, steps);
    return status;
}

void cgam_search_scan_wide(cgam_search *x, int64_t v, int64_t begin, int64_t count)
{
    int64_t n = x->sketch->n, blocks = cgam_int8_blocks(x->sketch->d), per = x->in->e ? 2 : 1;
    for (int64_t k = v * per; k < (v + 1) * per; k++)
        cgam_sketch_scan_wide(x->sketch, x->in->Z->cpu, x->numbers + k * blocks * CGAM_INT8_BLOCK,
                              x->steps + k * CGAM_SKETCH_TERMS * blocks, begin, count,
                              x->scores + k * n + begin);
}

/* First terms are gathered for it. */
cgam_status cgam_search_scan(cgam_search *x)
{
    int64_t d = x->sketch->d, blocks = cgam_int8_blocks(d);
    const cgam_cpu *cpu = x->in->Z->cpu;
    cgam_status status = probe_all(x);
    if (x->wide || status != CGAM_OK) return status;
    for (int64_t v = 1; v < x->vectors; v++) { /* only the first is needed from here on */
        memcpy(x->terms_of + v * d, x->terms_of + v * CGAM_SKETCH_TERMS * d, (size_t)d);
        memmove(x->steps + v * blocks, x->steps + v * CGAM_SKETCH_TERMS * blocks,
                (size_t)blocks * sizeof *x->steps);
    }
    return cgam_sketch_scan(x->env, x->sketch, cpu, x->vectors, x->terms_of, x->steps,
                            cpu->int8_many->most, x->scores);
}

void cgam_search_free(cgam_search *x)
{
    void *blocks[] = {x->seek,  x->parts,   x->leader, x->bins,   x->list, x->terms_of,
                      x->steps, x->numbers, x->scores, x->second, x->open};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) cgam_free(x->env, blocks[k]);
}

cgam_status cgam_search_new(cgam_search *x)
{
    const cgam_attend_in *in = x->in;
    size_t d = (size_t)in->Z->d, n = (size_t)in->Z->n, count = (size_t)in->count;
    size_t items = count * (size_t)x->chunks, vectors = (size_t)x->vectors;
    size_t blocks = (size_t)cgam_int8_blocks(in->Z->d);
    x->second_room = in->Z->cpu->int8->room(in->e ? 2 : 1, in->Z->d);
    x->seek = cgam_zalloc(x->env, count, sizeof *x->seek);
    x->parts = cgam_zalloc(x->env, items, sizeof *x->parts);
    x->leader = cgam_alloc(x->env, (items + count) * (size_t)x->leaders, sizeof *x->leader);
    x->bins = cgam_zalloc(x->env, x->tol > 0 ? items * CGAM_SEEK_BINS : 1, sizeof *x->bins);
    x->list = cgam_alloc(x->env, count * n, sizeof *x->list);
    x->terms_of = cgam_alloc(x->env, vectors * CGAM_SKETCH_TERMS * d, 1);
    x->steps = cgam_alloc(x->env, vectors * CGAM_SKETCH_TERMS * blocks, sizeof *x->steps);
    x->numbers =
        cgam_alloc(x->env, x->wide ? vectors * blocks * CGAM_INT8_BLOCK : 1, sizeof *x->numbers);
    x->scores = cgam_alloc(x->env, vectors * n, sizeof *x->scores);
    x->second = cgam_alloc(x->env, x->wide ? 1 : count * x->second_room, 1);
    if (!x->seek || !x->parts || !x->leader || !x->bins || !x->list || !x->terms_of || !x->steps ||
        !x->numbers || !x->scores || !x->second)
        return cgam_fail_nomem(x->env, "a search by a sketch");
    for (size_t v = 0; v < count; v++) atomic_init(&x->seek[v].seen, -INFINITY);
    for (size_t k = 0; k < items; k++) {
        x->parts[k].best = cgam_attend_part_new(x->leader + k * (size_t)x->leaders);
        x->parts[k].bins = x->bins + (x->tol > 0 ? k * CGAM_SEEK_BINS : 0);
    }
    return CGAM_OK;
}
