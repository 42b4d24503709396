/* verb_landscape.c: all fixed points of a coupled recall that can be found. */
#include "app/input.h"
#include "app/picture.h"
#include "app/progress.h"
#include "app/verbs.h"
#include "base/env.h"
#include "io/folder.h"
#include "io/table.h"
#include "report/landscape_figure.h"

#include <cgam/landscape.h>
#include <math.h>
#include <string.h>

static const cgam_param params[] = {
    CGAM_PARAM_BANK,
    CGAM_PARAM_TEXT("query", "FILE[:NAME]", "one query (d), or rows:7*0.5+23", .required = true,
                    .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_TEXT("context", "FILE[:NAME]", "one context (d), or rows:..; without it c = 0",
                    .input = CGAM_INPUT_VECTORS),
    CGAM_PARAM_LAMBDA("1"),
    CGAM_PARAM_ALPHA("0"),
    CGAM_PARAM_BETA("1"),
    CGAM_PARAM_NORMALIZE,
    CGAM_PARAM_INT("starts", "N", "64", 0, 1e9,
                   "random starts, beside where a recall starts, every memory and sets of leaders"),
    CGAM_PARAM_SEED("of the random starts"),
    CGAM_PARAM_OUT(NULL, "write landscape.json, landscape.csv and the figure here; with a context "
                         "the landscape without it too"),
    CGAM_PARAM_FIGURES("draw the figure beside the table (SVG, PNG, PDF; needs gnuplot)"),
    CGAM_PARAM_END,
};

/* ---- The document ------------------------------------------------------------------------- */
static json_t *point_doc(const cgam_point *x)
{
    json_t *doc = json_object(), *proofs = json_object();
    cgam_json_put_text(doc, "kind", x->minimum ? "minimum" : "saddle");
    cgam_json_put_int(doc, "index", x->index);
    cgam_json_put_real(doc, "energy", x->energy);
    cgam_json_put_int(doc, "winner", x->winner);
    cgam_json_put_real(doc, "p", x->p);
    cgam_json_put_real(doc, "neff_entropy", x->neff_entropy);
    cgam_json_put_real(doc, "basin", x->basin);
    cgam_json_put_real(doc, "fold_margin", x->fold_margin);
    cgam_json_put_real(doc, "p_error", x->p_error);
    cgam_json_put_text(proofs, "fold_margin", x->fold_margin_proved ? "proved" : "estimate");
    cgam_json_put_text(proofs, "p_error", x->p_error_proved ? "proved" : "estimate");
    cgam_json_put(doc, "certificates", proofs);
    return doc;
}

static void put_landscape(cgam_call *call, const cgam_landscape *x, bool context)
{
    json_t *doc = call->doc, *points = json_array();
    for (int64_t i = 0; i < x->count; i++) json_array_append_new(points, point_doc(&x->points[i]));
    cgam_json_put_real(doc, "alpha", cgam_args_real(call->args, "alpha"));
    cgam_json_put_real(doc, "beta", cgam_args_real(call->args, "beta"));
    cgam_json_put_real(doc, "lambda", cgam_args_real(call->args, "lambda"));
    cgam_json_put_bool(doc, "context", context);
    cgam_json_put(doc, "points", points);
    cgam_json_put(doc, "unique", x->unique < 0 ? json_null() : json_boolean(x->unique));
    cgam_json_put_bool(doc, "unique_proved", x->unique_proved);
    cgam_json_put_int(doc, "starts", x->starts);
    cgam_json_put_int(doc, "unresolved", x->unresolved);
    cgam_json_put(doc, "euler", json_integer(x->euler));
    call->negative = x->unresolved > 0;
}

/* ---- Files -------------------------------------------------------------------------------- */
static cgam_status write_table(cgam_env *env, const char *out, const cgam_landscape *both)
{
    enum { COLUMNS = 11 };
    int64_t rows = both[0].count + both[1].count, at = 0;
    double *cells = cgam_alloc(env, (size_t)(rows * COLUMNS), sizeof *cells);
    if (!cells) return cgam_fail_nomem(env, "a table");
    for (int side = 0; side < 2; side++)
        for (int64_t i = 0; i < both[side].count; i++, at++) {
            const cgam_point *x = &both[side].points[i];
            double row[COLUMNS] = {side,      (double)i,         x->minimum, (double)x->index,
                                   x->energy, (double)x->winner, x->p,       x->neff_entropy,
                                   x->basin,  x->fold_margin,    x->p_error};
            memcpy(cells + at * COLUMNS, row, sizeof row);
        }
    const cgam_table table = {.name = "landscape",
                              .about = "fixed points without (0) and under (1) the context",
                              .heads = "context,point,minimum,index,energy,winner,p,neff_entropy,"
                                       "basin,fold_margin,p_error",
                              .rows = rows,
                              .columns = COLUMNS,
                              .cells = cells};
    cgam_status status = cgam_table_write(env, &table, out);
    cgam_free(env, cells);
    return status;
}

/* ---- The verb ----------------------------------------------------------------------------- */
/* A plan whose refusal speaks of who asked. */
static cgam_status plan_for(cgam_env *env, const cgam_bank *bank, const cgam_recall_opts *o,
                            cgam_recall **plan)
{
    static const char who[] = "mode coupled ";
    char said[512];
    cgam_status status = cgam_recall_new(bank, o, plan);
    if (status == CGAM_OK) return status;
    cgam_env_message_copy(env, said, sizeof said);
    if (strncmp(said, who, strlen(who)) != 0) return status;
    return cgam_fail(env, status, "a landscape %s", said + strlen(who));
}

static cgam_status find(cgam_call *call, const cgam_bank *bank, const double *q, const double *c,
                        const char *out)
{
    cgam_recall_opts o = cgam_recall_opts_default();
    cgam_landscape_opts opts = {.starts = cgam_args_int(call->args, "starts"),
                                .seed = (uint64_t)cgam_args_int(call->args, "seed")};
    cgam_landscape both[2] = {{0}, {0}}; /* without and under the context */
    cgam_recall *plan = NULL;
    cgam_line line;
    o.mode = CGAM_COUPLED;
    o.certify = true;
    o.alpha = cgam_args_real(call->args, "alpha");
    o.beta = cgam_args_real(call->args, "beta");
    o.lambda = cgam_args_real(call->args, "lambda");
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (status == CGAM_OK) status = plan_for(call->env, bank, &o, &plan);
    opts.progress = cgam_line_begin(&line, call->progress);
    if (status == CGAM_OK && c) status = cgam_landscape_find(plan, q, c, &opts, &both[1]);
    if (status == CGAM_OK && (!c || out))
        status = cgam_landscape_find(plan, q, NULL, &opts, &both[0]);
    cgam_line_clear(&line);
    if (status == CGAM_OK) put_landscape(call, &both[c != NULL], c != NULL);
    if (status == CGAM_OK && out) status = write_table(call->env, out, both);
    if (status == CGAM_OK && out)
        status = cgam_picture_leave(call, out, "landscape", true, cgam_landscape_figures_write,
                                    json_pack("[s]", "landscape.csv"));
    for (int side = 0; side < 2; side++) cgam_landscape_free(call->env, &both[side]);
    cgam_recall_free(plan);
    return status;
}

static cgam_status run(cgam_call *call)
{
    cgam_bank *bank = NULL;
    cgam_matrix q = {0}, c = {0};
    cgam_status status = cgam_input_bank(call, &bank);
    if (status == CGAM_OK) status = cgam_input_option(call, bank, "query", true, &q);
    if (status == CGAM_OK) status = cgam_input_option(call, bank, "context", true, &c);
    if (status == CGAM_OK)
        status = find(call, bank, q.data, c.data, cgam_args_text(call->args, "out"));
    cgam_free(call->env, q.data);
    cgam_free(call->env, c.data);
    cgam_input_bank_done(call, bank);
    return status;
}

static void print(const json_t *doc, FILE *to)
{
    size_t i;
    json_t *x;
    const json_t *points = json_object_get(doc, "points"), *unique = json_object_get(doc, "unique");
    fprintf(to, "%-8s %6s %14s %8s %11s %10s %7s %12s %9s\n", "kind", "index", "energy", "winner",
            "p", "N_eff", "basin", "fold margin", "p error");
    json_array_foreach(points, i, x)
        fprintf(to, "%-8s %6lld %14.8g %8lld %11.5g %10.4g %7.3f %12.5g %9.1e\n",
                cgam_json_get_text(x, "kind"), (long long)cgam_json_get_int(x, "index"),
                cgam_json_get_real(x, "energy"), (long long)cgam_json_get_int(x, "winner"),
                cgam_json_get_real(x, "p"), cgam_json_get_real(x, "neff_entropy"),
                cgam_json_get_real(x, "basin"), cgam_json_get_real(x, "fold_margin"),
                cgam_json_get_real(x, "p_error"));
    bool proved = json_is_true(json_object_get(doc, "unique_proved"));
    fprintf(to, "\nunique: %s%s; %lld descents, %lld unresolved",
            json_is_null(unique)   ? "not decided"
            : json_is_true(unique) ? "yes"
                                   : "no",
            proved ? ", proved" : "", (long long)cgam_json_get_int(doc, "starts"),
            (long long)cgam_json_get_int(doc, "unresolved"));
    int64_t euler = cgam_json_get_int(doc, "euler");
    if (euler == 1) fputs("; the sum of (-1)^index is 1, as it is where none is missing\n", to);
    else
        fprintf(to, "; the sum of (-1)^index is %lld and not 1: some are missing\n",
                (long long)euler);
    cgam_picture_print_files(doc, to);
}

const cgam_verb cgam_verb_landscape = {
    .name = "landscape",
    .summary = "all fixed points of a coupled recall: minima, saddles, basins",
    .about =
        "A coupled recall ends at a minimum of its energy. This looks for all of them, and for the "
        "saddles between them: by descents from where a recall starts, from equal weights, from "
        "every memory (of more than 1,024 those that score highest), from sets of leaders and from "
        "random weights, and by Newton's method from the same starts and from ridges between points. Each point has its index (how many "
        "directions lead down), energy, winner, the share of the descents that end there, its fold "
        "margin and a bound of its error; two ends are one point where their bounds do not keep "
        "them apart.\n\n"
        "unique is true only where that is proved. The energy grows at infinity, so the sum of "
        "(-1)^index is 1 where no point is missing; where it is another number the document says "
        "so, and more --starts help.",
    .example = "cgam landscape --bank demo: --query rows:7+23 --context rows:7 --beta 8 --out land",
    .params = params,
    .run = run,
    .print = print,
};
