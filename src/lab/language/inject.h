/* inject.h: does a model answer correctly under edits? */
#ifndef CGAM_SRC_LAB_LANGUAGE_INJECT_H
#define CGAM_SRC_LAB_LANGUAGE_INJECT_H

#include "lab/language/study_sweep.h"

/* Decides answers of one task in one of three ways. */
typedef struct cgam_judge {
    cgam_lm_study *study;
    const cgam_lm_task *task;
    cgam_lm_answer how;
    int32_t *target; /* [queries] label of each query; -1: left out (FIRST: begins like another) */
    int64_t counted; /* queries not left out */
    cgam_answers answers; /* of SEQUENCE and GENERATE */
} cgam_judge;

/* Opens it for the study's task; close it with cgam_judge_close, even on failure. */
CGAM_NODISCARD cgam_status cgam_judge_open(cgam_lm_study *study, cgam_lm_answer how,
                                           cgam_judge *out);
void cgam_judge_close(cgam_judge *judge);

/* One prompt of a query under its edits. */
typedef struct cgam_judge_job {
    int64_t query;
    cgam_lm_prompt prompt;
    cgam_lm_edits edits;
} cgam_judge_job;

/* right [count]; f1 [count], of words of the generated answer, or NULL. Jobs with equal
 * tokens share the computation of all but the last. */
CGAM_NODISCARD cgam_status cgam_judge_run(const cgam_judge *judge, int64_t count,
                                          const cgam_judge_job *jobs, bool *right, double *f1);

/* Are two answers equal, ignoring case, outer blanks and trailing full stops? *f1 is the
 * harmonic mean of precision and recall of words. */
bool cgam_answer_same(const char *said, const char *wanted, double *f1);

/* ---- The injection of one number of shots ---------------------------------------------------- */
/* The injection of one number of shots, run in study_inject.c, reported in
 * inject_result.c. */

enum { ADD, REPLACE, KINDS };

enum { RANDOM, FLIPPED, OTHER_TASK, LABEL_ROWS, CONTROLS };

typedef struct inject_cell {
    int kind;
    int64_t layer;
    double scale;
} inject_cell;

/* States from which vectors are made: with and without demonstrations, and the mean effect of each
 * half; the other task has one mean for both. */
typedef struct vector_source {
    float *with;             /* [queries, layers, d] */
    float *shift;            /* [layers, 2, d] */
    int64_t queries, halves; /* halves: 2, or 1 for another task */
} vector_source;

typedef struct injection {
    cgam_lm_study *study;
    const cgam_lm_inject_opts *opts;
    double *P; /* [d, d]; NULL: I */
    cgam_env *env;
    cgam_judge judge;
    cgam_lm_result *result;
    int64_t n, layers, d, k;
    float *zero;            /* [n, layers, d] */
    cgam_lm_tokens *prompt; /* [n] without demonstrations */
    vector_source truth, flipped, other;
    const char *other_name;
    inject_cell *cells;
    int64_t n_cells;
    bool *right; /* [2, cells, n] under vectors of the other half, then of the own half */
    bool *null;  /* [CONTROLS, 2, cells, n] the same under the controls' vectors */
    double *f1;  /* [cells, n], of the first of these */
    float *rows; /* [d] the mean of the labels' rows */
    bool *marks; /* [MARKS, n] */
    bool *spare; /* [n] */
} injection;

/* The marks of each query: the controls at the cells that the right vectors chose, then at those of their own. */
enum {
    ZERO,
    ICL,
    READOUT,
    BEST,
    BY_KIND,
    CONTROL = BY_KIND + KINDS,
    OWN = CONTROL + CONTROLS,
    MARKS = OWN + CONTROLS
};

/* The answers [2, cells, n] by which a control's cells are chosen. */
static inline const bool *null_of(const injection *t, int control)
{
    return t->null + (int64_t)2 * control * t->n_cells * t->n;
}

static inline bool *marks_of(const injection *t, int which) { return t->marks + which * t->n; }

/* Cells chosen by their accuracy. */
typedef struct inject_choice {
    int64_t cell[3]; /* on the queries of half 0, 1, and on all */
    double held_out, held_out_ties, tied;
} inject_choice;

/* Chooses among cells of one kind by answers `of` [2, cells, n]; KINDS: among all. right [n]: held out, query by
 * query. */
inject_choice cgam_inject_choose(const injection *t, const bool *of, int kind, bool *right);
/* Puts shares, cells, choices and differences; the controls must have been run. */
void cgam_inject_put(injection *t, const inject_choice *chosen, json_t *entry);

#endif
