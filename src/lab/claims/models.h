/* models.h: reads the documents of studies of language models, and decides claims from them.
 *
 * Everything is made from the documents that `cgam lm study`, `cgam lm inject` and `cgam lm fit` leave, so a page can be made again
 * without a model at hand. A document is read like any file from outside: what it lacks is left
 * out. */
#ifndef CGAM_SRC_LAB_CLAIMS_MODELS_H
#define CGAM_SRC_LAB_CLAIMS_MODELS_H

#include "lab/claims/claims.h"
#include "lab/document.h"
#include "lab/language/study.h"

/* The number at a path in which % stands for "restricted" or "full"; path NULL: NAN. */
double cgam_models_over(const json_t *doc, const char *path, bool full);
/* Residual layers including the embedding; 0 if the document does not say. */
int64_t cgam_models_layers(const json_t *doc);

enum { CGAM_MODELS_MAX = 32 };

typedef struct cgam_models_study {
    char name[128];   /* of the folder under DIR/lm */
    char reason[256]; /* why doc is NULL */
    json_t *
        doc; /* study.json; "inject": inject.json, "fit": fit.json, alone where there is no other */
} cgam_models_study;

typedef struct cgam_models {
    int count;
    cgam_models_study study[CGAM_MODELS_MAX]; /* by name */
} cgam_models;

/* Was the study about facts? Then it has no probe. */
bool cgam_models_facts(const cgam_models_study *study);

/* The number of its queries. */
int64_t cgam_models_queries(const cgam_models_study *study);

/* Every DIR/lm/NAME/study.json, inject.json and fit.json, whichever are there. One that cannot be read is kept with its reason. Gives *out; free
 * it with cgam_models_free. */
cgam_status cgam_models_load(cgam_env *env, const char *folder, cgam_models **out);
void cgam_models_free(cgam_env *env, cgam_models *models); /* NULL is fine */

/* Decides the paper's claims about language models on the studies' data. */
void cgam_models_claims(const cgam_models *models, cgam_claims *out);

/* The same; also writes DIR/lm/claims.csv if there are studies. */
cgam_status cgam_models_claims_write(cgam_env *env, const char *folder, const cgam_models *models,
                                     cgam_claims *out);

#endif
