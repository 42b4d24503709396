/* verb_bench.c: what bench/recalls.h measures, as a document and a table. */
#include "app/params.h"
#include "app/verbs.h"
#include "bench/recalls.h"
#include "num/cpu/cpu.h"

#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_INT("rows", "N", "32000", 2, 1e9, "memories of the bank"),
    CGAM_PARAM_INT("columns", "N", "2048", 1, 1e6, "their dimension"),
    CGAM_PARAM_INT("runs", "N", "5", 1, 1000, "rounds; the best time of each piece counts"),
    CGAM_PARAM_SEED("seed of the random bank"),
    CGAM_PARAM_END,
};

static json_t *times(const cgam_bench *b)
{
    json_t *list = json_object();
    for (int k = 0; k < CGAM_BENCH_PIECES; k++) {
        json_t *pair = json_object();
        cgam_json_put_real(pair, "wall", b->wall[k]);
        cgam_json_put_real(pair, "cpu", b->cpu[k]);
        cgam_json_put(list, b->name[k], pair);
    }
    return list;
}

static json_t *ratios(const cgam_bench *b)
{
    json_t *list = json_array();
    for (const cgam_bench_ratio *r = b->ratio; r < b->ratio + CGAM_BENCH_RATIOS; r++) {
        json_t *row = json_object();
        cgam_json_put_text(row, "work", r->work);
        cgam_json_put_text(row, "limit", r->limit);
        cgam_json_put_real(row, "ratio", r->wall);
        cgam_json_put_real(row, "ratio_cpu", r->cpu);
        cgam_json_put_real(row, "goal", r->goal);
        cgam_json_put_text(row, "better", r->at_most ? "lower" : "higher");
        if (r->goal > 0)
            cgam_json_put_bool(row, "reached",
                               r->wall > 0 &&
                                   (r->at_most ? r->wall <= r->goal : r->wall >= r->goal));
        json_array_append_new(list, row);
    }
    return list;
}

static cgam_status run(cgam_call *call)
{
    cgam_bench b;
    int64_t n = cgam_args_int(call->args, "rows"), d = cgam_args_int(call->args, "columns");
    cgam_json_put_int(call->doc, "n", n);
    cgam_json_put_int(call->doc, "d", d);
    cgam_json_put_int(call->doc, "threads", cgam_env_threads(call->env));
    cgam_json_put_text(call->doc, "kernels", cgam_cpu_best()->name);
    cgam_status status = cgam_bench_run(call->env, n, d, cgam_args_int(call->args, "runs"),
                                        (uint64_t)cgam_args_int(call->args, "seed"), &b);
    if (status != CGAM_OK) return status;
    cgam_json_put(call->doc, "seconds", times(&b));
    cgam_json_put_real(call->doc, "read_gb_s", b.read_gb_s);
    cgam_json_put_real(call->doc, "sgemm_gflop_s", b.sgemm_gflop_s);
    cgam_json_put_real(call->doc, "dgemm_gflop_s", b.dgemm_gflop_s);
    cgam_json_put_real(call->doc, "fma_gflop_s", b.fma_gflop_s);
    cgam_json_put_real(call->doc, "exp_g_s", b.exp_g_s);
    cgam_json_put(call->doc, "ratios", ratios(&b));
    return CGAM_OK;
}

static void print(const json_t *doc, FILE *to)
{
    const json_t *rows = json_object_get(doc, "ratios");
    fprintf(to, "Bank %lld x %lld, %lld threads, %s kernels.\n",
            (long long)cgam_json_get_int(doc, "n"), (long long)cgam_json_get_int(doc, "d"),
            (long long)cgam_json_get_int(doc, "threads"), cgam_json_get_text(doc, "kernels"));
    fprintf(to,
            "Limits: reading %.1f GB/s; f32 multiply-adds %.0f, sgemm %.0f, dgemm %.0f GF/s; "
            "exp %.2f G/s.\n\n",
            cgam_json_get_real(doc, "read_gb_s"), cgam_json_get_real(doc, "fma_gflop_s"),
            cgam_json_get_real(doc, "sgemm_gflop_s"), cgam_json_get_real(doc, "dgemm_gflop_s"),
            cgam_json_get_real(doc, "exp_g_s"));
    fprintf(to, "  %-28s %8s %8s   %-16s %s\n", "work", "wall", "CPU", "of", "goal");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *r = json_array_get(rows, k);
        bool lower = strcmp(cgam_json_get_text(r, "better"), "lower") == 0;
        fprintf(to, "  %-28s %8.3f %8.3f   %-16s", cgam_json_get_text(r, "work"),
                cgam_json_get_real(r, "ratio"), cgam_json_get_real(r, "ratio_cpu"),
                cgam_json_get_text(r, "limit"));
        const json_t *reached = json_object_get(r, "reached");
        if (reached)
            fprintf(to, " %s %.2f %s", lower ? "<=" : ">=", cgam_json_get_real(r, "goal"),
                    json_is_true(reached) ? "met" : "not met");
        fputc('\n', to);
    }
}

const cgam_verb cgam_verb_bench = {
    .name = "bench",
    .summary = "limits of the machine, and how near recall comes to them",
    .about =
        "Makes a random bank and measures by turns one reading of it, the matrix products of the "
        "BLAS, and recalls of several kinds; the best time of several rounds counts. Ratios to the "
        "limits say more than times, which depend on the machine and on who else uses it.\n\n"
        "A bank has to be larger than all caches for the ratios to one reading to mean anything.",
    .example = "cgam bench --rows 128256 --columns 4096",
    .params = params,
    .run = run,
    .print = print,
};
