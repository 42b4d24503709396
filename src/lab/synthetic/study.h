/* study.h: the paper's simulations, each one call that returns tables.
 *
 * A study draws random problems, recalls, counts, and returns tables of plain numbers with their
 * standard errors, and a summary in JSON. The same seed and options give the same numbers on any
 * number of threads. A study does not draw figures.
 *
 * Long runs keep their progress in a file under `out`; the same call made again resumes
 * and ends with the same bits as one that was never interrupted.
 */
#ifndef CGAM_SRC_LAB_SYNTHETIC_STUDY_H
#define CGAM_SRC_LAB_SYNTHETIC_STUDY_H

#include "base/env.h"
#include "lab/document.h"
#include "lab/stats.h"
#include "lab/synthetic/lanes.h"
#include "lab/table.h"

#include <cgam/bank.h>
#include <cgam/io.h>

typedef enum cgam_study_kind {
    CGAM_STUDY_SEPARATION,  /* accuracy, gaps and the logistic bound against query noise (fig. 2) */
    CGAM_STUDY_COMPETITION, /* peak gate probability against alpha (fig. 3 a-c) */
    CGAM_STUDY_COUPLED,     /* the same with feedback (fig. 3 d) */
    CGAM_STUDY_TIMESCALE,   /* do fast gates precondition retrieval */
    CGAM_STUDY_THEOREMS,    /* every theorem on random instances */
    CGAM_STUDY_CAPACITY,    /* accuracy against N/d */
    CGAM_STUDY_PHASE,       /* accuracy over any two of N/d, lambda, alpha, sigma_q */
    CGAM_STUDY_CONVERGENCE, /* where flows and iterations end, from random starts */
    CGAM_STUDY_ANNEALING,   /* plain and annealed recalls beside the best energy found */
    CGAM_STUDY_SPARSE, /* support and exactness of sparse recalls, without and with a context */
    CGAM_STUDY_RIVALS, /* gates beside other ways to use a context */
    CGAM_STUDY_KINDS   /* how many there are */
} cgam_study_kind;

typedef enum cgam_axis {
    CGAM_AXIS_LOAD,
    CGAM_AXIS_LAMBDA,
    CGAM_AXIS_ALPHA,
    CGAM_AXIS_SIGMA_Q
} cgam_axis;

extern const char *const cgam_axes[]; /* "sigma-q": the parameter's name; NULL ends */

typedef struct cgam_list {
    const double *values; /* borrowed during the call */
    int64_t count;        /* 0 = the study's own */
} cgam_list;

/* Which study reads which field, its default and its range are in the table of parameters below;
 * `cgam help study NAME` prints it. A field that a study does not take is not read by it. */
typedef struct cgam_study_opts {
    cgam_study_kind kind;
    uint64_t seed;
    int64_t trials;
    const char *out; /* folder for the progress file; default NULL = progress is not kept */
    bool overwrite;  /* replace another run in `out`; default false: CGAM_E_ARG if there is one */
    int64_t n, d;    /* memories and dimensions */
    double alpha;    /* penalty */
    double beta;     /* inverse temperature */
    double sigma_c;  /* context noise */
    bool sigma_c_vector;   /* sigma_c is the noise's expected length, sigma_c/sqrt(d) a component */
    bool coupled;          /* the self-consistent recall instead of the first-order one */
    int64_t banks;         /* memory sets, `trials` trials each */
    cgam_list lambda;      /* couplings */
    cgam_list sigma_q;     /* query noise */
    cgam_list alphas;      /* penalties, where a study takes several */
    cgam_list betas;       /* inverse temperatures, where a study takes several */
    cgam_list load;        /* N/d; 0 = all rows of a given bank */
    cgam_list ratio;       /* tau_r/tau_s */
    double centre, spread; /* norm of a cluster's centre, sigma around it */
    int64_t groups;        /* clusters that the memories are in */
    double wrong;          /* share of contexts that mean another memory */
    double t_cap;          /* longest time of a transient */
    double delta;          /* t* is when the winner should have 1 - delta */
    double noise;          /* standard deviation of r(0) */
    int64_t starts;        /* random starts of each problem */
    int64_t max_iter;
    double tol;
    int64_t fold_trials;   /* the fold is followed in this many trials */
    bool query_free;       /* q follows its equation instead of being clamped */
    bool start_query;      /* r(0) = Z q instead of 0 */
    int64_t example;       /* the trial whose gates are shown */
    cgam_axis x, y;        /* of the map; they differ */
    const cgam_bank *bank; /* recall from these memories, d is theirs; NULL = random unit vectors */
    cgam_progress progress; /* told the share done; default: nobody */
    /* Ranks (ranks.h) that make the same call and share the trials; each ends it with cgam_ranks_end and has the whole
     * study then. Rank 0 alone keeps progress, is heard of, and should write. A bank is whole on every rank. Default NULL. */
    struct cgam_ranks *ranks;
} cgam_study_opts;

cgam_study_opts cgam_study_opts_default(cgam_study_kind kind);

/* ---- The table of parameters ----------------------------------------------------------------- */
typedef enum cgam_field_kind {
    CGAM_FIELD_INT,  /* int64_t (seed: uint64_t) */
    CGAM_FIELD_REAL, /* double */
    CGAM_FIELD_LIST, /* cgam_list */
    CGAM_FIELD_BOOL, /* bool: the first or the second of `words` */
    CGAM_FIELD_AXIS, /* cgam_axis: which of `words` */
    CGAM_FIELD_BANK  /* const cgam_bank * */
} cgam_field_kind;

/* One parameter of one or several studies; all const and static. */
typedef struct cgam_study_param {
    const char *name; /* "sigma-c"; in JSON it is sigma_c */
    unsigned studies; /* bit 1 << kind: those that take it as this row says */
    cgam_field_kind kind;
    size_t offset;            /* of the field in cgam_study_opts */
    double usual;             /* default of a number; which word */
    double low, high;         /* range of each number; high may be infinite */
    const char *help;         /* one line */
    const char *shown;        /* under figures, %s = the value; NULL = not there */
    cgam_list list;           /* default of a list; empty: the study's own grid */
    const char *list_words;   /* how to say that default; NULL = by its numbers */
    int64_t most;             /* values of a list; 1: it is a single number in JSON */
    const char *const *words; /* what a BOOL or AXIS may be, NULL ends */
} cgam_study_param;

/* The k-th parameter of a study, counted from 0; NULL after the last. */
const cgam_study_param *cgam_study_param_at(cgam_study_kind kind, int64_t k);
const cgam_study_param *cgam_study_param_find(cgam_study_kind kind, const char *name);
/* Its values in opts as numbers: how many (1 unless it is a list or a bank), and the i-th. */
int64_t cgam_study_param_count(const cgam_study_param *p, const cgam_study_opts *opts);
double cgam_study_param_value(const cgam_study_param *p, const cgam_study_opts *opts, int64_t i);
/* Sets any parameter except a bank; a list must outlive opts. The run checks ranges. */
void cgam_study_param_set(const cgam_study_param *p, cgam_list values, cgam_study_opts *opts);
/* Writes the value as the command line accepts it ("0,0.5,1", "vector"), so that it reads back exactly, to text[size],
 * truncated and terminated; returns the full length. A bank is "FILE", no bank is "". */
size_t cgam_study_param_text(const cgam_study_param *p, const cgam_study_opts *opts, char *text,
                             size_t size);

/* Checks the ranges of all parameters of the study. */
cgam_status cgam_study_params_check(cgam_env *env, const cgam_study_opts *opts);
/* Puts `parameters`: each by its name with _ for -; the first two, trials and seed, are keys of the
 * document itself. */
enum { CGAM_STUDY_PARAMS_TOP = 2 };
void cgam_study_params_put(const cgam_study_opts *opts, json_t *doc);
/* The list of p in opts; NULL if p is not a list. */
cgam_list *cgam_study_param_list(const cgam_study_param *p, cgam_study_opts *opts);

/* ---- Running --------------------------------------------------------------------------------- */
typedef struct cgam_study cgam_study;
enum { CGAM_STUDY_TABLES = 8, CGAM_STUDY_LAMBDAS_MAX = 64 };

struct cgam_study {
    cgam_env *env;
    cgam_study_opts opts; /* lists point into `lists` */
    double *lists;
    char *out, *progress;         /* folder and file of the progress; NULL = none */
    struct cgam_journal *journal; /* the file, open while blocks are run */
    const cgam_lanes *lanes;
    json_t *doc;
    char *json;             /* the document as text */
    int64_t tables, filled; /* tables, and rows of the last */
    cgam_table table[CGAM_STUDY_TABLES];
    double *cells[CGAM_STUDY_TABLES];
    cgam_status status; /* of adding tables */
    void *labels;       /* freed with the study */
};

/* Gives a study; free it with cgam_study_free. opts is copied, lists included; a bank is borrowed
 * during the call. Returns CGAM_E_INTERRUPTED if the env was asked to stop. */
CGAM_NODISCARD cgam_status cgam_study_run(cgam_env *env, const cgam_study_opts *opts,
                                          cgam_study **out);
void cgam_study_free(cgam_study *study); /* NULL is fine */

const cgam_table *cgam_study_find(const cgam_study *study, const char *name); /* or NULL */
/* Writes every table as CSV and, last of all, the summary as summary.json into the folder, which is
 * made. Results of another run that it holds are removed first, by their own summary: tables of two
 * runs never lie side by side, and a folder without summary.json is not finished. Other files stay. */
CGAM_NODISCARD cgam_status cgam_study_write(const cgam_study *study, const char *folder);
/* The sizes of a bank and a digest of every row, continued from *key. */
cgam_status cgam_study_hash(cgam_env *env, const cgam_bank *bank, uint64_t *key);
/* CGAM_E_ARG if the folder holds the summary of a run with other options, without opts.overwrite. */
cgam_status cgam_study_claim(const cgam_study *study, const char *folder);
/* Does the folder hold another run's results, which cgam_study_write would remove? */
bool cgam_study_replaces(const cgam_study *study, const char *folder);
/* Removes the progress file, once everything is written. */
void cgam_study_forget(const cgam_study *study);

/* Everything about one trial - memories, queries, gates, probabilities, energies - as JSON text.
 * With several banks, trial t of bank b is number b * trials + t; of the theorems, instance `trial` of
 * every statement.
 * Gives *text; free it with cgam_text_free. */
CGAM_NODISCARD cgam_status cgam_study_trial(cgam_env *env, const cgam_study_opts *opts,
                                            int64_t trial, char **text);
/* ---- Inside: tables, parts, blocks ------------------------------------------------------------ */
/* Adds a table of the given number of rows; labels are borrowed and must be constant. A failure is kept in
 * study->status, and nothing is added. */
void cgam_study_add(cgam_study *study, const char *name, const char *about, const char *heads,
                    const char *const *labels, int64_t rows);
/* Adds the next row to the table added last: a number for every column. */
void cgam_study_append(cgam_study *study, int64_t count, const double *row);
#define CGAM_STUDY_ROW(study, ...)                                                                 \
    cgam_study_append((study), sizeof((double[]){__VA_ARGS__}) / sizeof(double),                   \
                      (const double[]){__VA_ARGS__})

/* What each study implements: its name, its work, and one trial of it in full. With several banks, trials are numbered bank
 * by bank. Its parameters are rows of params.c. */
typedef struct cgam_study_part {
    const char *name;
    cgam_status (*run)(cgam_study *study);
    cgam_status (*trial)(cgam_study *study, int64_t trial, json_t *doc);
    cgam_status (*check)(cgam_env *env, const cgam_study_opts *opts); /* NULL = nothing to check */
    bool unit; /* the memories of a given bank must be unit vectors */
    /* Adds measured times, which differ between runs; NULL = nothing. */
    cgam_status (*time)(cgam_study *study, json_t *doc);
} cgam_study_part;
extern const cgam_study_part cgam_studies[CGAM_STUDY_KINDS];

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
CGAM_STUDY_PART(rivals);
CGAM_STUDY_PART(grid); /* capacity and phase */
/* Checks that involve several parameters. */
cgam_status cgam_competition_check(cgam_env *env, const cgam_study_opts *opts);
cgam_status cgam_separation_check(cgam_env *env, const cgam_study_opts *opts);
/* Are the memories of the given bank, if there is one, unit vectors? */
cgam_status cgam_study_check_unit(cgam_env *env, const cgam_study_opts *opts);
cgam_status cgam_convergence_check(cgam_env *env, const cgam_study_opts *opts);
cgam_status cgam_grid_check(cgam_env *env, const cgam_study_opts *opts);
cgam_status cgam_rivals_time(cgam_study *study, json_t *doc);

/* ---- Blocks: run.c --------------------------------------------------------------------------- */
/* A study's work is cut into blocks whose results are `record` doubles each. They are computed in any
 * order by any thread; `tables` makes the results from the records, by index. */
typedef struct cgam_blocks cgam_blocks;
struct cgam_blocks {
    int64_t count, record;
    double *records; /* [count, record]; while the blocks and tables run */
    /* Per-thread work area of `room` bytes, zeroed, filled once and used for many blocks. open may fail
     * half-way: close copes. No room: 0. */
    size_t room;
    cgam_status (*open)(cgam_study *study, void *arg, void *room);
    void (*close)(cgam_study *study, void *arg, void *room);
    cgam_status (*block)(cgam_study *study, void *arg, void *room, int64_t i, double *record);
    cgam_status (*tables)(cgam_study *study, void *arg, const cgam_blocks *b);
    void *arg;
};

/* Runs all blocks, then makes the tables. Keeps progress if the study has a folder. */
cgam_status cgam_blocks_run(cgam_study *study, cgam_blocks *b);

#endif
