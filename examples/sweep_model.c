/* sweep_model.c: how far the mean effect of demonstrations carries a language model, layer by layer.
 *
 *     sweep_model MODEL.gguf [STORE.db]
 *
 * The study opens the model, the shipped sentences and the store once; cgam_lm_neff, cgam_lm_steer and
 * cgam_lm_probe would go on with the same one. */
#include <cgam/lm_study.h>
#include <stdio.h>

static cgam_status sweep(cgam_lm_study *study)
{
    cgam_lm_result *result;
    cgam_status status = cgam_lm_sweep(study, NULL, &result);
    if (status != CGAM_OK) return status;
    const cgam_table *cells = cgam_lm_result_table(result, 0); /* sweep.csv */
    int64_t accuracy = cgam_table_column(cells, "full"), best = 0;
    for (int64_t i = 1; i < cells->rows; i++)
        if (cells->cells[i * cells->columns + accuracy] >
            cells->cells[best * cells->columns + accuracy])
            best = i;
    const double *row = cells->cells + best * cells->columns;
    printf("context after layer %g, query after layer %g: %.3f right among all words\n", row[1],
           row[2], row[accuracy]);
    cgam_lm_result_free(result);
    return CGAM_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        puts("usage: sweep_model MODEL.gguf [STORE.db]");
        return 0;
    }
    cgam_env *env;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    cgam_lm_study_opts opts = cgam_lm_study_opts_default();
    const int64_t shots[] = {0, 4};
    opts.model = argv[1];
    opts.store = argc > 2 ? argv[2] : NULL;
    opts.queries = 16;
    opts.shots = shots;
    opts.shots_count = 2;
    cgam_lm_study *study = NULL;
    cgam_status status = cgam_lm_study_open(env, &opts, &study);
    if (status == CGAM_OK) status = sweep(study);
    if (status != CGAM_OK) fprintf(stderr, "%s\n", cgam_env_message(env));
    cgam_lm_study_close(study);
    cgam_env_free(env);
    return status == CGAM_OK ? 0 : 1;
}
