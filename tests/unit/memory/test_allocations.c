/* Every allocation of banks, gates, spectra, recalls and theory functions made to fail in turn: the
 * failure comes back as a status with a message, and nothing is left behind. */
#include "memory/gate.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/failing_alloc.h"

#include <cgam/recall.h>
#include <cgam/theory.h>

#include "support/owned.h"

typedef struct scene {
    int64_t n, d;
    const double *Z, *q, *c;
    double alpha, lambda;
    double *out; /* [5 n + d * d] for answers */
    const double *W;
    int64_t d_c;
    bool coupled, certify, own_context, newton;
    double entmax;
    size_t memory_max;
} scene;

static scene make(cgam_rng *rng, dense_kind kind, int64_t n, int64_t d)
{
    return (scene){.n = n,
                   .d = d,
                   .Z = dense_bank(rng, kind, n, d),
                   .q = dense_normals(rng, 2 * d, 1),
                   .c = dense_normals(rng, 2 * d, 1),
                   .alpha = 0.2,
                   .lambda = 0.5,
                   .out = dense_room(5 * n + d * d)};
}

static cgam_status bank_of(cgam_env *env, const scene *x, cgam_bank **bank)
{
    cgam_bank_opts opts = {.copy = true, .normalize = true};
    return cgam_bank_new(env, x->Z, CGAM_F64, x->n, x->d, &opts, bank);
}

static int a_bank(cgam_env *env, void *arg)
{
    const scene *x = arg;
    OWNED(cgam_bank) bank = NULL;
    TRY(bank_of(env, x, &bank));
    TRY(cgam_bank_score(bank, x->q, x->out));
    TRY(cgam_bank_combine(bank, x->out, x->out + x->n));
    return CGAM_OK;
}

static int a_gate(cgam_env *env, void *arg)
{
    const scene *x = arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_gate) gate = NULL;
    cgam_gate_opts opts = {.memory_max = x->memory_max, .effort = CGAM_EFFORT_FULL};
    cgam_critical crit;
    TRY(bank_of(env, x, &bank));
    TRY(cgam_gate_critical(bank, CGAM_EFFORT_FREE, &crit));
    TRY(cgam_gate_critical(bank, CGAM_EFFORT_FULL, &crit));
    TRY(cgam_gate_new(bank, x->alpha, &opts, &gate));
    TRY(cgam_gate_apply(gate, x->q, x->out));
    if (x->alpha < 1) TRY(cgam_gate_solve(gate, x->q, x->out, NULL));
    TRY(cgam_gate_solve_range(gate, x->q, x->out));
    return CGAM_OK;
}

static int a_spectrum(cgam_env *env, void *arg)
{
    const scene *x = arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_spectrum) sp = NULL;
    cgam_gram_info gram;
    TRY(bank_of(env, x, &bank));
    TRY(cgam_bank_gram(bank, &gram));
    TRY(cgam_spectrum_new(bank, &sp));
    TRY(cgam_spectrum_solve(sp, 0.3, x->q, x->out));
    TRY(cgam_spectrum_project_min(sp, x->q, x->out));
    TRY(cgam_spectrum_transient(sp, 3, 1, 2, x->q, x->c, x->out));
    return CGAM_OK;
}

static int a_recall(cgam_env *env, void *arg)
{
    const scene *x = arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_recall) plan = NULL;
    cgam_result results[2];
    double top_p[2];
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = x->coupled ? CGAM_COUPLED : CGAM_FIRST;
    opts.alpha = x->alpha;
    opts.lambda = x->lambda;
    opts.certify = x->certify;
    opts.entmax = x->entmax;
    opts.memory_max = x->memory_max;
    opts.W = x->W;
    opts.d_c = x->d_c;
    cgam_recall_in in = {.queries = 2, .q = x->q, .c = x->c, .c_per_query = x->own_context};
    cgam_recall_out out = {.results = results, .top = 1, .top_p = top_p, .readout = x->out};
    TRY(bank_of(env, x, &bank));
    TRY(cgam_recall_new(bank, &opts, &plan));
    TRY(cgam_recall_run(plan, &in, &out));
    if (x->newton && results[0].newton_steps == 0) TRY(CGAM_E_INTERNAL);
    return CGAM_OK;
}

static int the_theory(cgam_env *env, void *arg)
{
    const scene *x = arg;
    OWNED(cgam_bank) bank = NULL;
    OWNED(cgam_gate) gate = NULL;
    OWNED(cgam_spectrum) sp = NULL;
    double p[64], value;
    bool proved;
    for (int64_t i = 0; i < x->n; i++) p[i] = 1.0 / (double)x->n;
    p[0] += 0.1;
    p[1] -= 0.1;
    cgam_winner winner;
    cgam_horizon horizon;
    cgam_coupled_critical critical;
    cgam_fold fold;
    cgam_hopfield_bounds bounds;
    TRY(bank_of(env, x, &bank));
    TRY(cgam_gate_new(bank, 0.2, NULL, &gate));
    TRY(cgam_spectrum_new(bank, &sp));
    TRY(cgam_supercritical_winner(sp, 3, x->q, x->c, &winner));
    TRY(cgam_supercritical_horizon(sp, 3, 1, 2, 0.1, x->q, NULL, true, &horizon));
    /* where more than one mode grows */
    TRY(cgam_supercritical_horizon(sp, 30, 1, 2, 0.1, x->q, NULL, true, &horizon));
    TRY(cgam_coupled_critical_find(bank, 1, 1, &critical));
    TRY(cgam_fold_find(bank, 0, 1, x->q, x->c, 0.01, 0.01, &fold));
    TRY(cgam_contraction_local(gate, 1, 1, p, &value, &proved));
    TRY(cgam_fold_margin(gate, 1, 1, p, &value, &proved));
    TRY(cgam_retrieval_parts(gate, 1, x->q, p, x->out, x->out + x->n));
    TRY(cgam_coupled_energy(gate, 1, 1, x->q, x->c, p, &value, x->out));
    TRY(cgam_context_margin(gate, NULL, 0, &value));
    TRY(cgam_hopfield_energy(bank, 1, x->q, &value));
    TRY(cgam_hopfield_settle(bank, 1, x->q, 1e-3, 5, x->out, NULL, NULL));
    TRY(cgam_hopfield_bound(bank, 1, 0, x->q, x->out, &bounds));
    TRY(cgam_attention(env, 1, x->n, x->d, x->d, x->q, x->Z, x->Z, x->out));
    return CGAM_OK;
}

TEST(banks_give_back_what_they_had)
{
    cgam_rng rng = cgam_rng_stream(13, 0);
    scene x = make(&rng, DENSE_NORMS, 600, 3);
    assert_true(check_every_allocation(a_bank, &x) > 6);
    assert_true(check_every_allocation_threads(a_bank, &x, 3) > 6);
    dense_reset();
}

TEST(gates_give_back_what_they_had)
{
    cgam_rng rng = cgam_rng_stream(13, 1);
    for (int k = 0; k < 6; k++) { /* tall, wide; critical, nearly so, without memory */
        scene x =
            make(&rng, k / 2 == 1 ? DENSE_DUPLICATES : DENSE_UNIT, k % 2 ? 6 : 12, k % 2 ? 8 : 5);
        x.q = dense_normals(&rng, 20, 1);
        if (k / 2 == 1) x.alpha = k % 2 ? 1 : 1 - 1e-5;
        if (k / 2 == 2) x.memory_max = 1;
        assert_true(check_every_allocation(a_gate, &x) > 10);
        dense_reset();
    }
}

TEST(spectra_give_back_what_they_had)
{
    cgam_rng rng = cgam_rng_stream(13, 2);
    for (int k = 0; k < 2; k++) {
        scene x = make(&rng, k ? DENSE_ZEROS : DENSE_UNIT, 12, 5);
        x.q = dense_normals(&rng, 12, 1);
        x.c = dense_normals(&rng, 12, 1);
        assert_true(check_every_allocation(a_spectrum, &x) > 10);
        dense_reset();
    }
}

TEST(recalls_give_back_what_they_had)
{
    cgam_rng rng = cgam_rng_stream(13, 3);
    for (int k = 0; k < 16; k++) {
        scene x = make(&rng, DENSE_UNIT, k % 2 ? 5 : 10, k % 2 ? 7 : 4);
        x.coupled = k / 2 % 2;
        x.certify = k / 4 % 2;
        x.own_context = k / 8 % 2;
        if (k % 5 == 4) {
            x.W = dense_normals(&rng, x.n * 2, 1);
            x.d_c = 2;
        }
        if (x.certify) x.lambda = 2; /* not unique by the constant: a second point is looked for */
        if (k == 14) x.memory_max = 1;
        assert_true(check_every_allocation(a_recall, &x) > 10);
        x.entmax = k % 3 ? 1.5 : 2;
        assert_true(check_every_allocation(a_recall, &x) > 10);
        dense_reset();
    }
}

/* Two orthogonal memories, hardly a preference, just before the fold: Newton has to finish it. */
TEST(newton_gives_back_what_it_had)
{
    scene x = {.n = 2, .d = 2, .coupled = true, .newton = true, .out = dense_room(20)};
    const double Z[] = {1, 0, 0, 1}, q[] = {1e-10, 0, 0, 1e-10};
    x.Z = Z;
    x.q = q;
    x.lambda = sqrt(2 * (1 - 1e-4));
    assert_true(check_every_allocation(a_recall, &x) > 20);
    dense_reset();
}

TEST(theory_functions_give_back_what_they_had)
{
    cgam_rng rng = cgam_rng_stream(13, 4);
    for (int k = 0; k < 2; k++) {
        scene x = make(&rng, DENSE_UNIT, k ? 4 : 9, k ? 6 : 4);
        x.q = dense_normals(&rng, 20, 1);
        x.c = dense_normals(&rng, 20, 1);
        assert_true(check_every_allocation(the_theory, &x) > 50);
        dense_reset();
    }
}
