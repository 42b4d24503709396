/* verb_bench.c: what bench/recalls.h measures, as a document and a table. */
#include "app/params.h"
#include "app/verbs.h"
#include "bench/recalls.h"
#include "num/cpu/cpu.h"

static const cgam_param params[] = {
    CGAM_PARAM_INT("rows", "N", "32000", 2, 1e9, "number of memories"),
    CGAM_PARAM_INT("columns", "N", "2048", 1, 1e6, "dimension of the memories"),
    CGAM_PARAM_INT("runs", "N", "5", 1, 1000,
                   "number of rounds; the best time of each piece counts"),
    CGAM_PARAM_SEED("seed of the random bank"),
    CGAM_PARAM_END,
};

#define RATIO(member_, name_, kind_, ...)                                                          \
    CGAM_ROW(cgam_bench_ratio, member_, name_, kind_, __VA_ARGS__)
static const cgam_field ratio_rows[] = {
    RATIO(work, "work", CGAM_TEXT, "what was timed"),
    RATIO(limit, "limit", CGAM_TEXT, "what it is compared with"),
    RATIO(wall, "ratio", CGAM_REAL, "by the clock"),
    RATIO(cpu, "ratio_cpu", CGAM_REAL, "by the time of the CPUs"),
    RATIO(goal, "goal", CGAM_REAL, "0: none"),
    RATIO(at_most, "better", CGAM_CHOICE, "than the goal", .value = "higher|lower"),
    CGAM_ROWS_END,
};
#define LIMIT(member_) CGAM_ROW(cgam_bench, member_, #member_, CGAM_REAL, "a limit of the machine")
static const cgam_field limit_rows[] = {
    LIMIT(read_gb_s),   LIMIT(sgemm_gflop_s), LIMIT(dgemm_gflop_s),
    LIMIT(fma_gflop_s), LIMIT(exp_g_s),       CGAM_ROWS_END,
};

static json_t *times(const cgam_bench *b)
{
    json_t *list = json_object();
    for (int k = 0; k < CGAM_BENCH_PIECES; k++) {
        json_t *pair = cgam_json_object("wall=%g cpu=%g", b->wall[k], b->cpu[k]);
        cgam_json_put(list, b->name[k], pair);
    }
    return list;
}

static json_t *ratios(const cgam_bench *b)
{
    json_t *list = json_array();
    for (const cgam_bench_ratio *r = b->ratio; r < b->ratio + CGAM_BENCH_RATIOS; r++) {
        json_t *row = json_object();
        cgam_fields_put(row, ratio_rows, r, 0);
        if (r->goal > 0)
            cgam_json_put_bool(row, "reached",
                               r->wall > 0 &&
                                   (r->at_most ? r->wall <= r->goal : r->wall >= r->goal));
        json_array_append_new(list, row);
    }
    return list;
}

static cgam_status run_bench(cgam_call *call)
{
    cgam_bench b;
    int64_t n = cgam_args_int(call->args, "rows"), d = cgam_args_int(call->args, "columns");
    double rows = (double)n * (double)d * (sizeof(float) + sizeof(uint16_t)),
           square = (double)d * (double)d;
    cgam_status status = cgam_env_expect(call->env, rows + square * sizeof(double), "the bank");
    if (status != CGAM_OK) return status;
    cgam_json_add(call->doc, "n=%jd d=%jd threads=%d kernels=%s", n, d, cgam_env_threads(call->env),
                  cgam_cpu_best()->name);
    status = cgam_bench_run(call->env, n, d, cgam_args_int(call->args, "runs"),
                            (uint64_t)cgam_args_int(call->args, "seed"), &b);
    if (status != CGAM_OK) return status;
    cgam_json_put(call->doc, "seconds", times(&b));
    cgam_fields_put(call->doc, limit_rows, &b, 0);
    cgam_json_put(call->doc, "ratios", ratios(&b));
    return CGAM_OK;
}

const cgam_verb cgam_verb_bench = {
    .name = "bench",
    .params = params,
    .run = run_bench,
};
