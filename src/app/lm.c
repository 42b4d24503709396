/* lm.c: from the values of a call to a study, and from its results to files. */
#include "app/lm.h"
#include "app/picture.h"

#include "report/models.h"

cgam_lm_study_opts cgam_lm_opts(const cgam_call *call, cgam_line *line)
{
    const cgam_args *args = call->args;
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    opts.model = cgam_args_text(args, "model");
    opts.store = cgam_args_text(args, "store");
    const char *const *sets; /* of several the first; the verb has the others */
    if (cgam_args_words(args, "dataset", &sets) > 0) opts.dataset = sets[0];
    opts.eval = cgam_args_text(args, "eval");
    opts.train = cgam_args_text(args, "train");
    opts.format = cgam_args_text(args, "format");
    opts.relation = cgam_args_text(args, "relation");
    opts.wording = cgam_args_text(args, "template");
    opts.labels = cgam_args_text(args, "labels");
    opts.shots_count = cgam_args_ints(args, "shots", &opts.shots);
    opts.queries = cgam_args_int(args, "queries");
    opts.shared = cgam_args_is(args, "demos", "shared");
    cgam_order_find(cgam_args_text(args, "order"), &opts.order);
    opts.seed = (uint64_t)cgam_args_int(args, "seed");
    opts.exact = cgam_args_flag(args, "exact");
    opts.chat = cgam_args_flag(args, "chat");
    cgam_dtype_find(cgam_args_text(args, "dtype"), &opts.dtype);
    if (cgam_args_known(args, "answer")) { /* what is generated has no states of its own */
        const char *answer = cgam_args_text(args, "answer");
        opts.answer_given = answer && cgam_lm_answer_find(answer, &opts.answer) &&
                            opts.answer != CGAM_ANSWER_GENERATE;
    }
    opts.progress = cgam_line_begin(line, call->progress);
    return opts;
}

cgam_status cgam_lm_of(cgam_call *call, cgam_lm **out)
{
    const char *path = cgam_args_text(call->args, "model");
    return call->shelf ? cgam_shelf_model(call->shelf, path, out)
                       : cgam_lm_open(call->env, path, out);
}

void cgam_lm_done(cgam_call *call, cgam_lm *lm)
{
    if (call->shelf) cgam_shelf_model_done(call->shelf, lm);
    else cgam_lm_close(lm);
}

cgam_status cgam_lm_study_of(cgam_call *call, const cgam_lm_study_opts *opts, cgam_lm_study **out)
{
    cgam_lm_study_opts o = *opts;
    *out = NULL;
    cgam_status status = call->shelf ? cgam_shelf_model(call->shelf, o.model, &o.lm) : CGAM_OK;
    if (status == CGAM_OK) status = cgam_lm_study_open(call->env, &o, out);
    if (status != CGAM_OK) cgam_shelf_model_done(call->shelf, o.lm);
    return status;
}

void cgam_lm_study_done(cgam_call *call, cgam_lm_study *study)
{
    cgam_lm *lm = study ? cgam_lm_study_model(study) : NULL;
    cgam_lm_study_close(study);
    cgam_shelf_model_done(call->shelf, lm);
}

json_t *cgam_lm_piece_json(const cgam_lm *lm, int32_t token)
{
    char piece[256];
    return cgam_json_lossy(cgam_lm_piece(lm, token, piece, sizeof piece));
}

/* The figures of a document whose tables are in place. */
static cgam_status draw(cgam_call *call, const char *out, cgam_lm_part part, json_t *doc,
                        json_t *files)
{
    cgam_figures *figures = cgam_zalloc(call->env, 1, sizeof *figures);
    if (!figures) return cgam_fail_nomem(call->env, "figures");
    bool missing = false;
    cgam_status status = cgam_models_figures_write(call->env, part, doc, out, figures);
    if (status == CGAM_OK) status = cgam_figures_draw(call->env, out, figures, &missing);
    json_t *names = json_array();
    for (int i = 0; i < figures->count && !missing; i++) {
        json_array_append_new(names, json_string(figures->figure[i].name));
        json_array_append_new(files, json_sprintf("%s.svg", figures->figure[i].name));
    }
    cgam_json_put(doc, "figures", names);
    if (missing) {
        cgam_json_put_text(doc, "figures_missing", "gnuplot was not found");
        cgam_json_put_text(call->doc, "figures_missing", "gnuplot was not found");
    }
    cgam_free(call->env, figures);
    return status;
}

cgam_status cgam_lm_leave(cgam_call *call, const char *out, cgam_lm_part part,
                          const cgam_lm_result *result, json_t *doc, json_t *files)
{
    char name[32];
    cgam_status status = CGAM_OK;
    json_object_update(doc, cgam_lm_result_document(result));
    if (!out) return CGAM_OK;
    for (int64_t i = 0; i < cgam_lm_result_tables(result) && status == CGAM_OK; i++) {
        const cgam_table *table = cgam_lm_result_table(result, i);
        status = cgam_table_write(call->env, table, out);
        json_array_append_new(files, json_sprintf("%s.csv", table->name));
    }
    if (status == CGAM_OK && cgam_args_is(call->args, "figures", "yes"))
        status = draw(call, out, part, doc, files);
    snprintf(name, sizeof name, "%s.json", cgam_lm_part_name(part));
    json_array_append_new(files, json_string(name));
    return status == CGAM_OK ? cgam_json_save(call->env, out, name, doc) : status;
}

void cgam_lm_put_files(json_t *doc, const char *out, json_t *files)
{
    if (out) cgam_json_put_text(doc, "out", out);
    if (out) cgam_json_put(doc, "files", files);
    else json_decref(files);
}

int64_t cgam_lm_counted(const json_t *doc)
{
    return cgam_json_get_int(json_array_get(json_object_get(doc, "shots"), 0), "queries");
}

void cgam_lm_print_none(const json_t *doc, FILE *to)
{
    fprintf(to,
            "none of %lld answers can be told from the others by its first token: nothing is "
            "measured; take --answer distinct or sequence\n",
            (long long)cgam_json_get_int(doc, "queries"));
}

void cgam_lm_print_files(const json_t *doc, FILE *to)
{
    const char *study = cgam_json_get_text(doc, "study"), *page = cgam_json_get_text(doc, "report");
    if (*page) fprintf(to, "\nThe study is in %s and in %s\n", study, page);
    else cgam_picture_print_files(doc, to);
}

void cgam_lm_print_curves(const json_t *doc, const char *first, int digits, const char *second,
                          FILE *to)
{
    const json_t *curves = json_object_get(doc, "curves");
    size_t i, layers = json_array_size(json_object_get(json_array_get(curves, 0), first));
    json_t *row;
    fputs("layer", to);
    json_array_foreach(curves, i, row)
        fprintf(to, "  %8lld shots      ", (long long)cgam_json_get_int(row, "k"));
    fputc('\n', to);
    for (size_t l = 0; l < layers; l++) {
        fprintf(to, "%5zu", l);
        json_array_foreach(curves, i, row)
            fprintf(to, "  %10.*f %9.3g", digits, cgam_json_nth(row, first, (int64_t)l),
                    cgam_json_nth(row, second, (int64_t)l));
        fputc('\n', to);
    }
    cgam_lm_print_files(doc, to);
}

static cgam_status run_at(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment,
                          const char *out, const char *store)
{
    cgam_line line;
    cgam_lm_study *study = NULL;
    cgam_lm_result *result = NULL;
    cgam_lm_study_opts opts = cgam_lm_opts(call, &line);
    opts.store = store;
    cgam_status status = cgam_lm_study_of(call, &opts, &study);
    if (status == CGAM_OK) status = experiment(study, call->args, &result);
    cgam_line_clear(&line);
    json_t *files = json_array();
    if (status == CGAM_OK) status = cgam_lm_leave(call, out, part, result, call->doc, files);
    cgam_lm_put_files(call->doc, status == CGAM_OK ? out : NULL, files);
    cgam_lm_result_free(result);
    cgam_lm_study_done(call, study);
    return status;
}

cgam_status cgam_lm_run(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment)
{
    const char *out = cgam_args_text(call->args, "out");
    cgam_status status = out ? cgam_folder_make(call->env, out) : CGAM_OK;
    if (out) cgam_lm_put_command(call);
    return status == CGAM_OK
               ? run_at(call, part, experiment, out, cgam_args_text(call->args, "store"))
               : status;
}

cgam_status cgam_lm_run_reported(cgam_call *call, cgam_lm_part part, cgam_lm_experiment experiment)
{
    cgam_lm_place to;
    cgam_status status = cgam_lm_place_find(call, &to);
    cgam_lm_put_command(call);
    if (status == CGAM_OK)
        status = run_at(call, part, experiment, to.out[0] ? to.out : NULL,
                        to.store[0] ? to.store : NULL);
    return status == CGAM_OK ? cgam_lm_place_show(call, &to) : status;
}
