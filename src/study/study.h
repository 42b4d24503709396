/* study.h: the inside of a study - its tables, its summary, and the blocks of work behind it. */
#ifndef CGAM_SRC_STUDY_STUDY_H
#define CGAM_SRC_STUDY_STUDY_H

#include "base/env.h"
#include "io/json.h"
#include "io/table.h"
#include "num/stats.h"
#include "study/lanes.h"

#include <cgam/study.h>

enum { CGAM_STUDY_TABLES = 8, CGAM_STUDY_LAMBDAS_MAX = 64 };

struct cgam_study {
    cgam_env *env;
    cgam_study_opts opts; /* lists point into `lists` */
    double *lists;
    char *out, *progress;         /* folder and file of the progress; NULL = none */
    struct cgam_journal *journal; /* the file, open while blocks are run */
    const cgam_lanes *lanes;
    json_t *doc;
    char *json; /* the document as text */
    int64_t tables;
    cgam_table table[CGAM_STUDY_TABLES];
    double *cells[CGAM_STUDY_TABLES];
    void *labels; /* freed with the study */
};

/* Adds a table of zeros; fill *cells [rows, columns]. labels are borrowed and must be constant. */
cgam_status cgam_study_add(cgam_study *study, const char *name, const char *about,
                           const char *heads, const char *const *labels, int64_t rows,
                           double **cells);

/* What each study gives to the list in study.c: its work, and one trial of it in full. Of several
 * banks, the trials of the first are counted first, then those of the second. */
#define CGAM_STUDY_PART(name)                                                                      \
    cgam_status cgam_##name##_run(cgam_study *study);                                              \
    cgam_status cgam_##name##_trial(cgam_study *study, int64_t trial, json_t *doc)
CGAM_STUDY_PART(separation);
CGAM_STUDY_PART(competition);
CGAM_STUDY_PART(coupled);
CGAM_STUDY_PART(timescale);
CGAM_STUDY_PART(theorems);
CGAM_STUDY_PART(convergence);
CGAM_STUDY_PART(annealing);
CGAM_STUDY_PART(sparse);
CGAM_STUDY_PART(grid); /* capacity and phase */
/* What the ranges of single parameters do not say. */
cgam_status cgam_competition_check(cgam_env *env, const cgam_study_opts *opts);
cgam_status cgam_convergence_check(cgam_env *env, const cgam_study_opts *opts);
cgam_status cgam_grid_check(cgam_env *env, const cgam_study_opts *opts);

/* ---- Blocks: run.c --------------------------------------------------------------------------- */
/* A study's work is cut into blocks whose results are `record` doubles each. They are computed in any
 * order by any thread; `tables` makes the results from the records, by index. */
typedef struct cgam_blocks cgam_blocks;
struct cgam_blocks {
    int64_t count, record;
    double *records; /* [count, record]; while the blocks and tables run */
    /* A thread's own room of `room` bytes, zero, filled once and used for many blocks. open may fail
     * half-way: close copes. No room: 0. */
    size_t room;
    cgam_status (*open)(cgam_study *study, void *arg, void *room);
    void (*close)(cgam_study *study, void *arg, void *room);
    cgam_status (*block)(cgam_study *study, void *arg, void *room, int64_t i, double *record);
    cgam_status (*tables)(cgam_study *study, void *arg, const cgam_blocks *b);
    void *arg;
};

/* Runs all blocks, then the tables. Keeps progress when the study has a folder for it. */
cgam_status cgam_blocks_run(cgam_study *study, cgam_blocks *b);

#endif
