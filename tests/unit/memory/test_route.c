/* Which way a recall takes: a table of banks, options and questions, and what they lead to. */
#include "memory/results.h"
#include "support/check.h"
#include "support/dense.h"
#include "support/objects.h"

#include "num/cpu/widen.h"
#include "num/rows.h"

#include <cgam/recall.h>

#include "support/owned.h"

/* A large bank has 2^18 numbers or more; 300 x 900 is one. */
typedef struct situation {
    const char *name;
    int64_t n, d;
    cgam_dtype dtype;
    cgam_mode mode;
    double alpha, length; /* |zeta|; 0 = 1 */
    int64_t queries, top;
    bool context, weights, twins, certify, p; /* of their own; W; two memories alike; asked for */
    double tol;                               /* 0 = 1e-12 */
    cgam_path path;
    cgam_dtype precision;
    int64_t group;
} situation;

enum { P = CGAM_PATH_PASS, M = CGAM_PATH_MATRICES, V = CGAM_PATH_VECTORS };
enum {
    L = CGAM_PATH_LANES,
    C = CGAM_PATH_COUPLED,
    T = CGAM_PATH_COUPLED_TOGETHER,
    F = CGAM_PATH_FLOW
};

#define FIRST .mode = CGAM_FIRST
#define COUPLED .mode = CGAM_COUPLED
#define SMALL .n = 300, .d = 20
#define LARGE .n = 2700, .d = 100
#define WAY(p, x, g) .path = (cgam_path)(p), .precision = (x), .group = (g)

static const situation situations[] = {
    {"small", SMALL, FIRST, .queries = 1, WAY(L, CGAM_F64, 4)},
    {"small, many", SMALL, FIRST, .queries = 500, WAY(L, CGAM_F64, 4)},
    {"small, f32", SMALL, FIRST, .dtype = CGAM_F32, .queries = 9, WAY(L, CGAM_F64, 4)},
    {"small, p", SMALL, FIRST, .queries = 9, .p = true, WAY(L, CGAM_F64, 4)},
    {"large", LARGE, FIRST, .queries = 7, WAY(P, CGAM_F64, 8)},
    {"large, many", LARGE, FIRST, .queries = 8, WAY(M, CGAM_F64, 64)},
    {"f32", LARGE, FIRST, .dtype = CGAM_F32, .queries = 7, WAY(P, CGAM_F32, 8)},
    {"bf16, many", LARGE, FIRST, .dtype = CGAM_BF16, .queries = 65, WAY(M, CGAM_F32, 64)},
    {"short rows", LARGE, FIRST, .dtype = CGAM_F32, .length = 1e-9, .queries = 8,
     WAY(M, CGAM_F64, 64)},
    {"p", LARGE, FIRST, .dtype = CGAM_F32, .queries = 8, .p = true, WAY(V, CGAM_F64, 8)},
    {"a long list", LARGE, FIRST, .queries = 8, .top = 1025, WAY(V, CGAM_F64, 8)},
    {"a list", LARGE, FIRST, .queries = 8, .top = 1024, WAY(M, CGAM_F64, 64)},
    {"certificates", SMALL, FIRST, .queries = 1, .certify = true, WAY(L, CGAM_F64, 4)},
    {"twins", SMALL, FIRST, .alpha = 0.02, .queries = 1, .twins = true, WAY(V, CGAM_F64, 8)},
    {"contexts", SMALL, FIRST, .alpha = 0.02, .queries = 9, .context = true, WAY(L, CGAM_F64, 4)},
    {"contexts, large", LARGE, FIRST, .alpha = 0.02, .queries = 7, .context = true,
     WAY(P, CGAM_F64, 8)},
    {"gate weights", SMALL, FIRST, .alpha = 0.02, .queries = 9, .context = true, .weights = true,
     WAY(V, CGAM_F64, 8)},
    {"coupled, small", SMALL, COUPLED, .alpha = 0.02, .queries = 64, WAY(L, CGAM_F64, 4)},
    {"coupled, small, twins", SMALL, COUPLED, .alpha = 0.02, .queries = 64, .twins = true,
     WAY(C, CGAM_F64, 8)},
    {"coupled, f64", LARGE, COUPLED, .alpha = 0.02, .queries = 64, WAY(C, CGAM_F64, 8)},
    {"coupled, f32", LARGE, COUPLED, .dtype = CGAM_F32, .alpha = 0.02, .queries = 7,
     WAY(C, CGAM_F32, 8)},
    {"coupled, loosely", LARGE, COUPLED, .dtype = CGAM_F32, .alpha = 0.02, .queries = 7,
     .tol = 1e-5, WAY(C, CGAM_F64, 8)},
    {"coupled, many", LARGE, COUPLED, .dtype = CGAM_F16, .alpha = 0.02, .queries = 8,
     WAY(T, CGAM_F32, 64)},
    {"coupled, p", LARGE, COUPLED, .dtype = CGAM_F16, .alpha = 0.02, .queries = 8, .p = true,
     WAY(T, CGAM_F32, 64)},
    {"coupled, no feedback to solve", LARGE, COUPLED, .dtype = CGAM_F32, .queries = 7,
     WAY(C, CGAM_F64, 8)},
    {"coupled, no feedback to solve, many", LARGE, COUPLED, .dtype = CGAM_F32, .queries = 64,
     WAY(T, CGAM_F64, 64)},
    {"coupled, twins", LARGE, COUPLED, .dtype = CGAM_F32, .alpha = 0.02, .queries = 64,
     .twins = true, WAY(T, CGAM_F32, 64)},
    {"flow", SMALL, .mode = CGAM_FLOW, .queries = 9, WAY(F, CGAM_F64, 8)},
    {"a bank of many rows", .n = 600000, .d = 1, FIRST, .queries = 9, .p = true,
     WAY(V, CGAM_F64, 1)},
};

TEST(every_situation_has_its_way)
{
    OWNED(cgam_env) env = object_env(2);
    cgam_rng rng = cgam_rng_stream(7, 7);
    for (size_t k = 0; k < sizeof situations / sizeof *situations; k++) {
        const situation *x = &situations[k];
        double *Z = dense_normals(&rng, x->n * x->d, 1), *W = dense_room(x->n);
        for (int64_t i = 0; i < x->n; i++) {
            double norm = cgam_array_norm(x->d, Z + i * x->d);
            for (int64_t j = 0; j < x->d; j++)
                Z[i * x->d + j] *= (x->length > 0 ? x->length : 1) / norm;
        }
        if (x->twins) memcpy(Z, Z + x->d, (size_t)x->d * sizeof *Z);
        void *data = dense_room(x->n * x->d);
        cgam_narrow(x->dtype, Z, x->n * x->d, data);
        OWNED(cgam_bank) bank = NULL;
        OWNED(cgam_recall) plan = NULL;
        cgam_recall_opts opts = cgam_recall_opts_default();
        opts.mode = x->mode;
        opts.alpha = x->alpha;
        opts.lambda = 0.1;
        if (x->tol > 0) opts.tol = x->tol;
        opts.certify = x->certify;
        if (x->weights) opts.W = W;
        if (x->weights) opts.d_c = 1;
        CHECK_STATUS(env, cgam_bank_new(env, data, x->dtype, x->n, x->d, NULL, &bank));
        CHECK_STATUS(env, cgam_recall_new(bank, &opts, &plan));
        cgam_recall_in in = {.queries = x->queries, .q = Z, .c_per_query = true};
        if (x->context) in.c = x->weights ? W : Z;
        cgam_recall_out out = {.top = x->top, .p = x->p ? Z : NULL};
        cgam_route got = cgam_recall_route(plan, &in, &out);
        if (got.path != x->path || got.precision != x->precision || got.group != x->group)
            fail_msg("%s: got %s, %s, %lld", x->name, cgam_word(cgam_path_words, got.path),
                     cgam_word(cgam_dtype_words, got.precision), (long long)got.group);
        dense_reset();
    }
}
