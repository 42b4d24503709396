/* theorems.c: counts for every theorem its cases, violations and worst margin. The statements are in
 * theorems_gates.c and theorems_recall.c; this file makes the instances and counts.
 *
 * A block is 10 cases of one statement; its record is cases, violations, worst margin. */
#include "lab/synthetic/theorems.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 10,
    BLOCKS_MAX = 1 << 16,
    THEOREMS_MAX = 64
}; /* instances a block; blocks a statement */

double cgam_case_between(cgam_case *c, double low, double high)
{
    double x = low + (high - low) * cgam_rng_uniform(&c->rng);
    if (c->draws < CGAM_CASE_DRAWN) c->drawn[c->draws++] = x;
    return x;
}

void cgam_case_normals(cgam_case *c, int64_t n, double scale, double *x)
{
    for (int64_t i = 0; i < n; i++) x[i] = scale * cgam_rng_normal(&c->rng);
}

void cgam_case_chances(cgam_case *c, int64_t n, double *p)
{
    double sharp = exp(cgam_case_between(c, -3, 3));
    cgam_case_normals(c, n, 1, p);
    cgam_trial_softmax(n, sharp, p, p);
}

double cgam_case_norm(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

double cgam_case_distance(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

/* Half the banks are anywhere on the sphere, half crowd around one direction. */
static cgam_status case_open(cgam_case *c, const cgam_theorem *t)
{
    c->n = 2 + cgam_rng_below(&c->rng, CGAM_CASE_N - 1);
    c->d = 2 + cgam_rng_below(&c->rng, CGAM_CASE_D - 1);
    if (t->sizes == CGAM_CASE_TALL && c->n <= c->d) c->n += c->d;
    if (t->sizes == CGAM_CASE_CIRCULANT) c->n = c->d = c->d < 3 ? 3 : c->d;
    bool crowd = cgam_rng_uniform(&c->rng) < 0.5;
    double centre[CGAM_CASE_D] = {0}, spread = crowd ? cgam_case_between(c, 0.1, 1) : 1;
    cgam_case_normals(c, c->d, crowd ? 1 : 0, centre);
    for (int64_t i = 0; i < c->n; i++) {
        double *row = c->Z + i * c->d;
        for (int64_t j = 0; j < c->d; j++)
            row[j] = t->sizes == CGAM_CASE_CIRCULANT && i > 0
                         ? c->Z[(i - 1) * c->d + (j + c->d - 1) % c->d]
                         : centre[j] + spread * cgam_rng_normal(&c->rng);
        double norm = cgam_case_norm(c->d, row);
        for (int64_t j = 0; j < c->d && !(t->sizes == CGAM_CASE_CIRCULANT && i > 0); j++)
            row[j] /= norm;
    }
    cgam_status status = cgam_bank_new(c->env, c->Z, CGAM_F64, c->n, c->d, NULL, &c->bank);
    if (status == CGAM_OK) status = cgam_spectrum_new(c->bank, &c->spectrum);
    return status;
}

cgam_status cgam_theorem_case(cgam_study *study, const cgam_theorem *t, int64_t j, int64_t k,
                              cgam_case *c, double *margin)
{
    *margin = NAN;
    memset(c, 0, sizeof *c);
    c->study = study;
    c->env = study->env;
    c->rng = cgam_stream(study->opts.seed, CGAM_STREAM_THEOREMS, CGAM_STREAM_CASE, 0, j, k);
    cgam_status status = case_open(c, t);
    if (status == CGAM_OK) status = t->check(c, margin);
    cgam_spectrum_free(c->spectrum);
    cgam_bank_free(c->bank);
    return status;
}

typedef struct setup {
    int64_t theorems, blocks, block; /* instances a block */
    const cgam_theorem *theorem[THEOREMS_MAX];
    int64_t cases[THEOREMS_MAX], first[THEOREMS_MAX + 1]; /* first block of each */
} setup;

static void lay_out(const cgam_study_opts *o, setup *u)
{
    const cgam_theorem *lists[] = {cgam_theorems_gates, cgam_theorems_recall};
    memset(u, 0, sizeof *u);
    u->block = BLOCK;
    if (o->trials / BLOCK > BLOCKS_MAX) u->block = (o->trials + BLOCKS_MAX - 1) / BLOCKS_MAX;
    for (int k = 0; k < 2; k++)
        for (const cgam_theorem *t = lists[k]; t->name && u->theorems < THEOREMS_MAX; t++) {
            int64_t j = u->theorems++;
            u->theorem[j] = t;
            u->cases[j] = o->trials;
            if (t->share > 0) u->cases[j] = (int64_t)ceil((double)o->trials * t->share);
            u->first[j + 1] = u->first[j] + (u->cases[j] + u->block - 1) / u->block;
        }
    u->blocks = u->first[u->theorems];
}

static cgam_status count_block(cgam_study *study, void *arg, void *opened, int64_t i,
                               double *record)
{
    const setup *u = arg;
    (void)opened;
    int64_t j = 0;
    while (u->first[j + 1] <= i) j++;
    const cgam_theorem *t = u->theorem[j];
    int64_t from = (i - u->first[j]) * u->block, to = from + u->block;
    if (to > u->cases[j]) to = u->cases[j];
    double cases = 0, violations = 0, worst = INFINITY;
    cgam_case *c = cgam_alloc(study->env, 1, sizeof *c);
    if (!c) return cgam_fail_nomem(study->env, "a case");
    cgam_status status = CGAM_OK;
    for (int64_t k = from; k < to && status == CGAM_OK && !cgam_interrupted(study->env); k++) {
        double margin;
        status = cgam_theorem_case(study, t, j, k, c, &margin);
        if (isnan(margin)) continue;
        cases++;
        violations += margin < -t->tol;
        worst = fmin(worst, margin);
    }
    cgam_free(study->env, c);
    record[0] = cases;
    record[1] = violations;
    record[2] = worst;
    return status;
}

static cgam_status make_tables(cgam_study *study, void *arg, const cgam_blocks *b)
{
    const setup *u = arg;
    const char **names = cgam_alloc(study->env, (size_t)u->theorems, sizeof *names);
    if (!names) return cgam_fail_nomem(study->env, "theorems");
    study->labels = names;
    for (int64_t j = 0; j < u->theorems; j++) names[j] = u->theorem[j]->name;
    cgam_study_add(study, "checks",
                   "Statements on random instances. worst_margin: distance of the closest "
                   "case from a violation; for identities, minus their relative error. A "
                   "margin below -tolerance counts as a violation.",
                   "name,cases,violations,worst_margin,tolerance", names, u->theorems);
    json_t *list = json_array();
    for (int64_t j = 0; j < u->theorems; j++) {
        double cells[] = {0, 0, INFINITY, u->theorem[j]->tol};
        for (int64_t i = u->first[j]; i < u->first[j + 1]; i++) {
            cells[0] += b->records[3 * i];
            cells[1] += b->records[3 * i + 1];
            cells[2] = fmin(cells[2], b->records[3 * i + 2]);
        }
        cgam_study_append(study, 4, cells);
        json_array_append_new(
            list, cgam_json_object(
                      "name=%s statement=%s cases=%jd violations=%jd worst_margin=%g tolerance=%g",
                      names[j], u->theorem[j]->statement, (intmax_t)cells[0], (intmax_t)cells[1],
                      cells[2], cells[3]));
    }
    cgam_json_put(study->doc, "checks", list);
    return study->status;
}

cgam_status cgam_theorems_run(cgam_study *study)
{
    setup u;
    lay_out(&study->opts, &u);
    cgam_blocks b = {
        .count = u.blocks, .record = 3, .block = count_block, .tables = make_tables, .arg = &u};
    return cgam_blocks_run(study, &b);
}

/* Instance k of every statement that has as many. */
cgam_status cgam_theorems_trial(cgam_study *study, int64_t k, json_t *doc)
{
    setup *u = cgam_alloc(study->env, 1, sizeof *u);
    cgam_case *c = cgam_alloc(study->env, 1, sizeof *c);
    cgam_status status = u && c ? CGAM_OK : cgam_fail_nomem(study->env, "a case");
    json_t *list = json_array();
    if (status == CGAM_OK) lay_out(&study->opts, u);
    for (int64_t j = 0; status == CGAM_OK && j < u->theorems; j++) {
        const cgam_theorem *t = u->theorem[j];
        double margin;
        if (k >= u->cases[j]) continue;
        status = cgam_theorem_case(study, t, j, k, c, &margin);
        if (status != CGAM_OK) break;
        json_t *one = json_object(), *x = json_array();
        for (int i = 0; i < CGAM_CASE_ROOM; i++)
            json_array_append_new(x, cgam_json_reals(c->x[i], c->n, 1));
        cgam_json_add(
            one,
            "name=%s statement=%s applies?=%d margin=%g tolerance=%g violated?=%d Z=%p drawn=%p",
            t->name, t->statement, !isnan(margin), margin, t->tol, margin < -t->tol,
            cgam_trial_rows(c->Z, c->n, c->d, 1), cgam_json_reals(c->drawn, c->draws, 1));
        cgam_json_put(one, "vectors", x);
        json_array_append_new(list, one);
    }
    cgam_json_put(doc, "checks", list);
    cgam_free(study->env, c);
    cgam_free(study->env, u);
    return status;
}
