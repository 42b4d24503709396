/* models.c: the documents of language-model studies, found and read. */
#include "lab/claims/models.h"

#include "base/env.h"
#include "lab/folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double cgam_models_over(const json_t *doc, const char *path, bool full)
{
    char made[80];
    if (!path) return NAN;
    size_t before = strcspn(path, "%");
    snprintf(made, sizeof made, "%.*s%s%s", (int)before, path,
             !path[before] ? ""
             : full        ? "full"
                           : "restricted",
             path + before + (path[before] != 0));
    return cgam_json_get_real(doc, made);
}

int64_t cgam_models_layers(const json_t *doc)
{
    int64_t layers = cgam_json_get_int(doc, "model.layers");
    return layers > 0 && layers < 10000 ? layers + 1 : 0;
}

/* ---- Finding them ------------------------------------------------------------------------ */
static int by_name(const void *a, const void *b)
{
    const cgam_models_study *x = a, *y = b;
    return strcmp(x->name, y->name);
}

bool cgam_models_facts(const cgam_models_study *study)
{
    return json_is_null(cgam_json_at(study->doc, "probe"));
}

int64_t cgam_models_queries(const cgam_models_study *study)
{
    static const char *const paths[] = {"neff.queries", "inject.queries", "gates.queries",
                                        "fit.queries"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (cgam_json_at(study->doc, paths[i])) return cgam_json_get_int(study->doc, paths[i]);
    return 0;
}

void cgam_models_free(cgam_env *env, cgam_models *models)
{
    if (!models) return;
    for (int i = 0; i < models->count; i++) json_decref(models->study[i].doc);
    cgam_free(env, models);
}

/* A document of DIR/lm/NAME, and whether there is one. Of a file that cannot be read the reason is kept; where memory ends
 * nothing is known of it. */
static cgam_status read_document(cgam_env *env, const char *folder, cgam_models_study *s,
                                 const char *file, json_t **out, bool *found)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/lm/%s/%s", folder, s->name, file);
    *out = NULL;
    if (length >= (int)sizeof path || !cgam_file_exists(path)) return CGAM_OK;
    *found = true;
    cgam_status status = cgam_json_load(env, path, out);
    if (status == CGAM_OK || status == CGAM_E_NOMEM) return status;
    snprintf(s->reason, sizeof s->reason, "%s", cgam_env_message(env));
    *out = NULL;
    return CGAM_OK;
}

/* Reads the document of `lm study` and those of single experiments, each under its name. */
static cgam_status read_study(cgam_env *env, const char *folder, cgam_models_study *s, bool *found)
{
    cgam_status status = read_document(env, folder, s, "study.json", &s->doc, found);
    if (status != CGAM_OK || (*found && !s->doc)) return status;
    for (int part = CGAM_LM_PARTS; part < CGAM_LM_EXPERIMENTS && status == CGAM_OK; part++) {
        char file[32];
        json_t *doc;
        const char *name = cgam_lm_part_name((cgam_lm_part)part);
        snprintf(file, sizeof file, "%s.json", name);
        status = read_document(env, folder, s, file, &doc, found);
        if (doc && !s->doc) s->doc = json_object();
        if (doc && json_object_set_new(s->doc, name, doc) != 0)
            status = cgam_json_nomem(env, "a study");
    }
    return status;
}

cgam_status cgam_models_load(cgam_env *env, const char *folder, cgam_models **out)
{
    char path[PATH_MAX];
    cgam_status status = CGAM_OK;
    *out = NULL;
    cgam_models *models = cgam_zalloc(env, 1, sizeof *models);
    if (!models) return cgam_fail_nomem(env, "studies");
    *out = models;
    if (snprintf(path, sizeof path, "%s/lm", folder) >= (int)sizeof path) return CGAM_OK;
    DIR *dir = opendir(path);
    if (!dir) {
        if (errno == ENOENT || errno == ENOTDIR) return CGAM_OK; /* no study has been made */
        char text[128];
        status = cgam_fail(env, errno == ENOMEM ? CGAM_E_NOMEM : CGAM_E_IO, "%s: %s",
                           cgam_path_tail(path), strerror_r(errno, text, sizeof text));
    }
    for (const struct dirent *one = dir ? readdir(dir) : NULL; one && status == CGAM_OK;
         one = readdir(dir)) {
        cgam_models_study *s = &models->study[models->count];
        bool found = false;
        if (one->d_name[0] == '.' || models->count == CGAM_MODELS_MAX) continue;
        if (snprintf(s->name, sizeof s->name, "%s", one->d_name) >= (int)sizeof s->name) continue;
        status = read_study(env, folder, s, &found);
        models->count += found; /* counts a failed one too, so that it is freed */
    }
    if (dir) closedir(dir);
    qsort(models->study, (size_t)models->count, sizeof *models->study, by_name);
    if (status == CGAM_OK) return status;
    cgam_models_free(env, models);
    *out = NULL;
    return status;
}

cgam_status cgam_models_claims_write(cgam_env *env, const char *folder, const cgam_models *models,
                                     cgam_claims *out)
{
    char path[CGAM_PATH_ROOM];
    cgam_models_claims(models, out);
    if (models->count == 0) return CGAM_OK;
    cgam_status status = cgam_path_join(env, folder, "lm", path);
    return status == CGAM_OK ? cgam_claims_write(env, out, path) : status;
}
