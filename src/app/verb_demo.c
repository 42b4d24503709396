/* verb_demo.c: the idea in one table - one query, three contexts, three answers. */
#include "app/input.h"
#include "app/verbs.h"
#include "base/rng.h"
#include "memory/bank.h"
#include "memory/fields.h"

#include <cgam/base.h>
#include <math.h>

enum { N = 60, D = 16, LEFT = 7, RIGHT = 23, OTHER = 41, ROWS = 4 };

static const cgam_param params[] = {
    CGAM_PARAM_SEED("seed of the random bank"),
    CGAM_PARAM_LAMBDA("0.8"),
    CGAM_PARAM_ALPHA("0.2"),
    CGAM_PARAM_BETA("4"),
    CGAM_PARAM_END,
};

/* The query lies between memories LEFT and RIGHT; contexts hint at one of them, or elsewhere. */
static void make_demo(uint64_t seed, double *Z, double *q, double *C)
{
    static const int hint[ROWS] = {-1, LEFT, RIGHT, OTHER};
    cgam_rng rng = cgam_rng_stream(seed, 0);
    for (int i = 0; i < N; i++) {
        double norm = 0;
        for (int j = 0; j < D; j++) {
            Z[i * D + j] = cgam_rng_normal(&rng);
            norm += Z[i * D + j] * Z[i * D + j];
        }
        for (int j = 0; j < D; j++) Z[i * D + j] /= sqrt(norm);
    }
    for (int j = 0; j < D; j++)
        q[j] = 0.5 * (Z[LEFT * D + j] + Z[RIGHT * D + j]) + 0.05 * cgam_rng_normal(&rng);
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < D; j++)
            C[k * D + j] = hint[k] < 0 ? 0 : Z[hint[k] * D + j] + 0.1 * cgam_rng_normal(&rng);
}

cgam_status cgam_demo_bank(cgam_env *env, uint64_t seed, cgam_bank **out)
{
    double Z[N * D], q[D], C[ROWS * D];
    cgam_bank_opts opts = cgam_bank_opts_default();
    opts.copy = true;
    make_demo(seed, Z, q, C);
    return cgam_bank_new(env, Z, CGAM_F64, N, D, &opts, out);
}

cgam_status cgam_demo_names(cgam_env *env, cgam_row_names **out)
{
    static const char words[] =
        "anchor\napple\narrow\nbasket\nbell\nboat\nbridge\ncandle\ncastle\nchair\nclock\ncloud\n"
        "coin\ncomb\ncrown\ndesk\ndoor\ndrum\nfeather\nfence\nfield\nflute\nforest\nglass\n"
        "glove\nhammer\nharbour\nhat\nisland\nkettle\nkey\nkite\nladder\nlamp\nleaf\nlemon\n"
        "letter\nmap\nmirror\nmoon\nneedle\nocean\norange\npaper\npencil\npepper\npiano\npillow\n"
        "river\nrope\nsaddle\nsalt\nshell\nspoon\nstone\ntable\ntower\nviolin\nwheel\nwindow\n";
    return cgam_row_names_new(env, words, sizeof words - 1, out);
}

static cgam_status recall_rows(cgam_call *call, const cgam_bank *bank, const double *q,
                               const double *C)
{
    static const char *const names[ROWS] = {"none", "near 7", "near 23", "near 41"};
    cgam_recall_opts o = cgam_recall_opts_default();
    o.mode = CGAM_COUPLED;
    cgam_args_fill(call->args, cgam_recall_opts_rows, &o);
    cgam_recall *plan;
    cgam_status status = cgam_recall_new(bank, &o, &plan);
    if (status != CGAM_OK) return status;
    double queries[ROWS * D];
    for (int k = 0; k < ROWS; k++)
        for (int j = 0; j < D; j++) queries[k * D + j] = q[j];
    cgam_result results[ROWS];
    cgam_recall_in in = {.queries = ROWS, .q = queries, .c = C, .c_per_query = true};
    cgam_recall_out out = {.results = results};
    status = cgam_recall_run(plan, &in, &out);
    cgam_recall_free(plan);
    json_t *rows = json_array();
    for (int k = 0; k < ROWS && status == CGAM_OK; k++) {
        json_t *row = json_object();
        cgam_json_put_text(row, "context", names[k]);
        cgam_fields_put_some(row, "winner p p_lower_bound gap neff_entropy iterations end",
                             cgam_result_rows, &results[k]);
        call->negative |= results[k].end != CGAM_END_CONVERGED;
        json_array_append_new(rows, row);
    }
    cgam_json_put(call->doc, "recalls", rows);
    return status;
}

static cgam_status run_demo(cgam_call *call)
{
    double Z[N * D], q[D], C[ROWS * D];
    make_demo((uint64_t)cgam_args_int(call->args, "seed"), Z, q, C);
    cgam_bank *bank;
    cgam_status status = cgam_bank_new(call->env, Z, CGAM_F64, N, D, NULL, &bank);
    if (status != CGAM_OK) return status;
    cgam_json_add(call->doc, "n=%d d=%d", N, D);
    status = recall_rows(call, bank, q, C);
    cgam_bank_free(bank);
    return status;
}

const cgam_verb cgam_verb_demo = {
    .name = "demo",
    .params = params,
    .run = run_demo,
};
