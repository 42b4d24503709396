/* Banks of 2^18 numbers or more, which have ways of their own: what is asked for beside it changes no answer, and rows that nobody has
 * looked at are asked like others, until one of them holds what is no number. */
#include "support/one_env.h"

#include "num/cpu/widen.h"

#include <cgam/bank.h>
#include <cgam/io.h>
#include <cgam/recall.h>
#include <unistd.h>

#include "support/owned.h"

enum { N = 2700, D = 100, MOST = 9, TOP = 3, D_C = 2 };

typedef struct situation {
    const char *name;
    cgam_dtype dtype;
    cgam_mode mode;
    int64_t queries;
    double alpha, entmax;
    bool context, own, weights, fast, none, start, p; /* each query its own; W; p of all memories */
    cgam_path path;
} situation;

static const situation situations[] = {
    {"a context for all", CGAM_F64, CGAM_FIRST, 9, .alpha = 0.02, .context = true,
     .path = CGAM_PATH_MATRICES},
    {"a context for each", CGAM_F64, CGAM_FIRST, 3, .alpha = 0.02, .context = true, .own = true,
     .path = CGAM_PATH_PASS},
    {"a context for each, p", CGAM_F64, CGAM_FIRST, 3, .alpha = 0.02, .context = true, .own = true,
     .p = true, .path = CGAM_PATH_VECTORS},
    {"gate weights", CGAM_F64, CGAM_FIRST, 3, .alpha = 0.02, .context = true, .own = true,
     .weights = true, .path = CGAM_PATH_VECTORS},
    {"a ghost", CGAM_F32, CGAM_FIRST, 9, .none = true, .path = CGAM_PATH_MATRICES},
    {"a sketch", CGAM_F32, CGAM_FIRST, 9, .fast = true, .path = CGAM_PATH_SKETCH},
    {"no sketch, for p", CGAM_F32, CGAM_FIRST, 3, .fast = true, .p = true,
     .path = CGAM_PATH_VECTORS},
    {"a sketch, a context for all", CGAM_F32, CGAM_FIRST, 9, .alpha = 0.02, .fast = true,
     .context = true, .path = CGAM_PATH_SKETCH},
    {"a sketch, a context for each", CGAM_F32, CGAM_FIRST, 3, .alpha = 0.02, .fast = true,
     .context = true, .own = true, .path = CGAM_PATH_SKETCH},
    {"no sketch, a context for all", CGAM_F32, CGAM_FIRST, 3, .alpha = 0.02, .fast = true,
     .context = true, .p = true, .path = CGAM_PATH_VECTORS},
    {"no sketch, a context for each", CGAM_F32, CGAM_FIRST, 3, .alpha = 0.02, .fast = true,
     .context = true, .own = true, .p = true, .path = CGAM_PATH_VECTORS},
    {"sparsemax", CGAM_F32, CGAM_FIRST, 9, .entmax = 2, .path = CGAM_PATH_VECTORS},
    {"sparsemax, a context", CGAM_F64, CGAM_FIRST, 1, .alpha = 0.02, .entmax = 2, .context = true,
     .path = CGAM_PATH_VECTORS},
    {"coupled from weights", CGAM_F32, CGAM_COUPLED, 8, .alpha = 0.02, .start = true,
     .path = CGAM_PATH_COUPLED},
};

/* Everything, or one kind of answer alone. */
typedef enum kind { ALL, RESULTS, INDEX, TOP_P, TOP_LOG_P, READOUT, KINDS } kind;

typedef struct answers {
    cgam_result results[MOST];
    int64_t index[MOST * TOP];
    double top_p[MOST * TOP], top_log_p[MOST * TOP], readout[MOST * D];
} answers;

typedef struct problem {
    void *rows;
    double *q, *c, *W, *start;
} problem;

static problem draw(cgam_rng *rng, const situation *x)
{
    double *Z = dense_bank(rng, DENSE_UNIT, N, D);
    problem t = {.rows = dense_room(N * D),
                 .q = dense_normals(rng, MOST * D, 0.05),
                 .c = dense_normals(rng, MOST * D, 0.05),
                 .W = dense_normals(rng, N * D_C, 0.1),
                 .start = dense_room(MOST * N)};
    cgam_narrow(x->dtype, Z, N * D, t.rows);
    for (int64_t v = 0; v < MOST; v++)
        for (int64_t j = 0; j < D; j++) t.q[v * D + j] += Z[31 * v * D + j];
    for (int64_t i = 0; i < MOST * N; i++) t.start[i] = 1;
    return t;
}

static void ask(const cgam_recall *plan, const situation *x, const problem *t, kind only, double *p,
                answers *to)
{
    const bool all = only == ALL;
    const cgam_recall_in in = {.queries = x->queries,
                               .q = t->q,
                               .c = x->context ? t->c : NULL,
                               .c_per_query = x->own,
                               .start = x->start ? t->start : NULL};
    const cgam_recall_out out = {.results = all || only == RESULTS ? to->results : NULL,
                                 .top = TOP,
                                 .top_index = all || only == INDEX ? to->index : NULL,
                                 .top_p = all || only == TOP_P ? to->top_p : NULL,
                                 .top_log_p = all || only == TOP_LOG_P ? to->top_log_p : NULL,
                                 .p = p,
                                 .readout =
                                     only == READOUT || (all && !x->fast) ? to->readout : NULL};
    if (only != READOUT || !x->fast) /* for which all rows are read */
        assert_int_equal(cgam_recall_route(plan, &in, &out).path, x->path);
    CHECK_STATUS(env, cgam_recall_run(plan, &in, &out));
}

TEST_WITH(set_up, tear_down, an_answer_does_not_depend_on_what_else_is_asked)
{
    for (size_t k = 0; k < sizeof situations / sizeof *situations; k++) {
        const situation *x = &situations[k];
        cgam_rng rng = cgam_rng_stream(91, k);
        problem t = draw(&rng, x);
        OWNED(cgam_bank) bank = NULL;
        CHECK_STATUS(env, cgam_bank_new(env, t.rows, x->dtype, N, D, NULL, &bank));
        cgam_recall_opts o = object_opts(x->mode, x->alpha, 12, 0.4);
        o.entmax = x->entmax;
        o.fast = x->fast;
        o.none = x->none;
        o.none_score = 0.3;
        if (x->weights) o.W = t.W, o.d_c = D_C;
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        double *p = x->p ? dense_room(MOST * N) : NULL;
        answers whole = {0}, one = {0};
        for (kind only = ALL; only < KINDS; only++) ask(plan, x, &t, only, p, only ? &one : &whole);
        if (x->fast) ask(plan, x, &t, READOUT, p, &whole);
        for (int64_t v = 0; v < x->queries; v++) {
            const cgam_result *want = &whole.results[v], *got = &one.results[v];
            if (got->winner != 31 * v || got->winner != want->winner ||
                one.index[v * TOP] != want->winner)
                fail_msg("%s: query %d has winner %d, and alone %d", x->name, (int)v,
                         (int)want->winner, (int)got->winner);
            CHECK_CLOSE(got->p, want->p, 0);
            CHECK_CLOSE(got->p_lower_bound, want->p_lower_bound, 0);
            /* an interval's lower end is rounded down in more places than one */
            CHECK_CLOSE(one.top_p[v * TOP], want->p, x->fast ? 1e-11 : 1e-15);
            CHECK_LE(want->p_lower_bound, want->p * (1 + 1e-12));
            CHECK_LE(0.1, want->p);
        }
        assert_memory_equal(one.index, whole.index, sizeof one.index);
        CHECK_CLOSE_ALL(one.top_p, whole.top_p, x->queries * TOP, 0);
        CHECK_CLOSE_ALL(one.top_log_p, whole.top_log_p, x->queries * TOP, 0);
        CHECK_CLOSE_ALL(one.readout, whole.readout, x->queries * D, 0);
        dense_reset();
    }
}

/* ---- Few memories of very many numbers ------------------------------------------------------- */
/* Columns of zeros change nothing but the way: the same landscape, and the same end of an annealing. */
TEST_WITH(set_up, tear_down, a_large_bank_of_few_memories_has_the_landscape_of_a_small_one)
{
    enum { FEW = 4, NARROW = 5, WIDE = 1 << 16 };
    cgam_rng rng = cgam_rng_stream(93, 0);
    double *Z = dense_bank(&rng, DENSE_UNIT, FEW, NARROW), *q = dense_room(WIDE),
           *c = dense_room(WIDE);
    double *padded = dense_room(FEW * WIDE);
    memcpy(q, dense_normals(&rng, NARROW, 0.2), NARROW * sizeof *q);
    memcpy(c, dense_normals(&rng, NARROW, 0.1), NARROW * sizeof *c);
    for (int64_t i = 0; i < FEW; i++) memcpy(padded + i * WIDE, Z + i * NARROW, NARROW * sizeof *Z);
    for (int k = 0; k < 2; k++) {
        cgam_recall_opts o = object_opts(CGAM_COUPLED, 0.2 * k, 6, 1);
        cgam_landscape land[2];
        cgam_result end[2];
        for (int wide = 0; wide < 2; wide++) {
            OWNED(cgam_bank)
            bank = wide ? object_bank(env, FEW, WIDE, padded) : object_bank(env, FEW, NARROW, Z);
            o.mode = CGAM_COUPLED;
            cgam_recall *plan = object_recall(env, bank, &o);
            CHECK_STATUS(env, cgam_landscape_find(plan, q, c, NULL, &land[wide]));
            cgam_recall_free(plan);
            o.mode = CGAM_ANNEAL;
            CHECK_STATUS(env, cgam_recall_once(bank, q, c, &o, &end[wide]));
        }
        assert_true(land[0].count > 1 && land[0].count == land[1].count);
        assert_true(land[0].euler == 1 && land[1].euler == 1);
        for (int64_t i = 0; i < land[0].count; i++) {
            assert_int_equal(land[0].points[i].index, land[1].points[i].index);
            CHECK_CLOSE(land[1].points[i].energy, land[0].points[i].energy, 1e-9);
        }
        CHECK_CLOSE_ALL(land[1].p, land[0].p, land[0].count * FEW, 1e-8);
        assert_int_equal(end[0].winner, end[1].winner);
        CHECK_CLOSE(end[1].p, end[0].p, 1e-8);
        for (int wide = 0; wide < 2; wide++) cgam_landscape_free(env, &land[wide]);
    }
    dense_reset();
}

/* ---- Rows that nobody has looked at ---------------------------------------------------------- */
TEST_WITH(set_up, tear_down, a_packed_row_that_is_no_number_is_met_by_who_asks)
{
    enum { ROWS = 700, WIDTH = 100, BAD = 420 };
    char folder[] = "/tmp/cgam-large-XXXXXX", path[64], packed[64];
    cgam_rng rng = cgam_rng_stream(92, 0);
    double *Z = dense_bank(&rng, DENSE_UNIT, ROWS, WIDTH), p[2], want[2];
    const int64_t shape[] = {ROWS, WIDTH};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/Z.npy", folder);
    snprintf(packed, sizeof packed, "%s/Z.safetensors", folder);
    CHECK_STATUS(env, cgam_npy_write(env, path, CGAM_F64, 2, shape, Z));
    CHECK_STATUS(env, cgam_pack(env, path, NULL, packed));
    cgam_result result;
    int64_t index[2];
    const cgam_recall_in in = {.queries = 1, .q = Z + 7 * WIDTH};
    const cgam_recall_out ways[] = {{.results = &result},
                                    {.top = 2, .top_index = index, .top_p = p},
                                    {.results = &result, .top = 2, .top_index = index, .top_p = p}};
    cgam_recall_opts o = object_opts(CGAM_FIRST, 0, 8, 0.4);
    for (int damaged = 0; damaged < 2; damaged++) {
        OWNED(cgam_bank) bank = NULL;
        if (damaged) { /* the bytes of a number become those of none */
            FILE *f = fopen(packed, "r+b");
            assert_non_null(f);
            static char bytes[2 * ROWS * WIDTH * sizeof(double)];
            size_t size = fread(bytes, 1, sizeof bytes, f);
            const char *at = memmem(bytes, size, Z + BAD * WIDTH, WIDTH * sizeof *Z);
            assert_non_null(at);
            assert_int_equal(fseek(f, at - bytes, SEEK_SET), 0);
            assert_int_equal(fwrite(&(double){NAN}, sizeof(double), 1, f), 1);
            assert_int_equal(fclose(f), 0);
        }
        CHECK_STATUS(env, cgam_bank_load(env, packed, NULL, &bank));
        OWNED(cgam_recall) plan = object_recall(env, bank, &o);
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            memset(p, 0, sizeof p);
            cgam_status status = cgam_recall_run(plan, &in, &ways[k]);
            if (damaged) {
                assert_int_equal(status, CGAM_E_VALUE);
                CHECK_MESSAGE(env, "a score of query 0 is not finite");
                continue;
            }
            assert_int_equal(status, CGAM_OK);
            if (ways[k].results) assert_int_equal(result.winner, 7);
            if (ways[k].top && ways[k].results) CHECK_CLOSE_ALL(p, want, 2, 0);
            if (ways[k].top) assert_int_equal(index[0], 7);
            memcpy(want, p, sizeof p);
        }
    }
    unlink(path);
    unlink(packed);
    assert_int_equal(rmdir(folder), 0);
    dense_reset();
}
