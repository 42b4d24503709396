/* study.h: the paper's simulations, each one call that returns tables.
 *
 * A study draws random problems, recalls, counts, and hands back tables of plain numbers with their
 * standard errors, and a summary in JSON. The same seed and options give the same numbers whatever
 * the number of threads. A study knows nothing of pictures.
 *
 * Long runs keep their progress in a file under `out`; the same call made again goes on from there
 * and ends with the same bits as one that was never stopped.
 */
#ifndef CGAM_STUDY_H
#define CGAM_STUDY_H

#include <cgam/bank.h>
#include <cgam/io.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cgam_study_kind {
    CGAM_STUDY_SEPARATION,  /* accuracy, gaps and the logistic bound against query noise (fig. 2) */
    CGAM_STUDY_COMPETITION, /* peak gate probability against alpha (fig. 3 a-c) */
    CGAM_STUDY_COUPLED,     /* the same with feedback (fig. 3 d) */
    CGAM_STUDY_TIMESCALE,   /* do fast gates precondition retrieval */
    CGAM_STUDY_THEOREMS,    /* every theorem on random instances */
    CGAM_STUDY_CAPACITY,    /* accuracy against N/d */
    CGAM_STUDY_PHASE,       /* accuracy over any two of N/d, lambda, alpha, sigma_q */
    CGAM_STUDY_KINDS        /* how many there are */
} cgam_study_kind;

CGAM_API const char *cgam_study_name(cgam_study_kind kind);  /* "separation" */
CGAM_API const char *cgam_study_about(cgam_study_kind kind); /* one line */

typedef enum cgam_axis {
    CGAM_AXIS_LOAD,
    CGAM_AXIS_LAMBDA,
    CGAM_AXIS_ALPHA,
    CGAM_AXIS_SIGMA_Q
} cgam_axis;

typedef struct cgam_list {
    const double *values; /* borrowed during the call */
    int64_t count;        /* 0 = the study's own */
} cgam_list;

/* Fields that a study does not name are not read by it. Letters: S separation, C competition,
 * D coupled, T timescale, H theorems, G capacity and phase. */
typedef struct cgam_study_opts {
    cgam_study_kind kind;
    uint64_t seed;   /* default 1 */
    int64_t trials;  /* S 6000 per sigma_q and bank, C D T 1000, H 500 per check, G 400 per bank */
    const char *out; /* folder for the progress file; default NULL = progress is not kept */
    int64_t n, d;    /* S C D T: 50 memories in 10 dimensions; G: d = 16 */
    double alpha;    /* S T: 0.1 */
    double beta;     /* S C T 3.5, D 5, G 3.5 */
    double sigma_c;  /* S T G: context noise, 0.3 */
    bool sigma_c_vector;   /* sigma_c is the noise's expected length, sigma_c/sqrt(d) a component;
                            default false: per component */
    bool coupled;          /* S: the self-consistent recall instead of the first-order one */
    int64_t banks;         /* S 1, G 8: memory sets, `trials` trials each */
    cgam_list lambda;      /* S 0,1,2,4,8,16; D 0,0.5,..,3; T 2 (one value); G 0,1,2,4 / 0..8 */
    cgam_list sigma_q;     /* S 12 values on [0,3]; T 1 (one value); G 0.5 / 0..3 */
    cgam_list alphas;      /* C D: instead of the paper's grid; G 0.1 */
    cgam_list load;        /* G: N/d, 0.5,1,2,..,128 / 5 */
    cgam_list ratio;       /* T: tau_r/tau_s, 0.01 .. 100 */
    double centre, spread; /* C D: norm 2 of the cluster's centre, sigma 0.3 around it */
    double t_cap;          /* C D: longest time of a transient, 50 */
    double delta;          /* C: t* is when the winner should have 1 - delta, 0.01 */
    double noise;          /* D: r(0), 1e-4 */
    int64_t max_iter;      /* D: 500 */
    double tol;            /* D: 1e-8 */
    int64_t fold_trials;   /* D: the fold is followed in this many trials, 200 */
    bool query_free;       /* T: q follows its equation instead of being clamped */
    bool start_query;      /* T: r(0) = Z q instead of 0 */
    int64_t example;       /* C: the trial whose gates are shown, 0 */
    cgam_axis x, y;        /* G, phase: sigma_q and lambda */
    const cgam_bank *bank; /* G: recall from these memories; default NULL = random unit vectors */
    /* Called now and then from any thread, one at a time: share done, seconds left (or NAN). */
    void (*progress)(void *user, double done, double seconds_left);
    void *user;
} cgam_study_opts;

CGAM_API cgam_study_opts cgam_study_opts_default(cgam_study_kind kind);

typedef struct cgam_study cgam_study;

/* Gives a study; free it with cgam_study_free. opts is copied, lists included; a bank is borrowed
 * during the call. CGAM_E_INTERRUPTED when the env was asked to stop. */
CGAM_API CGAM_NODISCARD cgam_status cgam_study_run(cgam_env *env, const cgam_study_opts *opts,
                                                   cgam_study **out);
CGAM_API void cgam_study_free(cgam_study *study); /* NULL is fine */

/* What came out, and where it came from; belongs to the study. */
CGAM_API cgam_env *cgam_study_env(const cgam_study *study);
CGAM_API const cgam_study_opts *cgam_study_options(const cgam_study *study);
/* The JSON summary: parameters, seed, version, machine, results. */
CGAM_API const char *cgam_study_json(const cgam_study *study);

CGAM_API int64_t cgam_study_tables(const cgam_study *study);
CGAM_API const cgam_table *cgam_study_table(const cgam_study *study, int64_t i);
CGAM_API const cgam_table *cgam_study_find(const cgam_study *study, const char *name); /* or NULL */
/* Writes every table as CSV and the summary as summary.json into the folder, which is made. */
CGAM_API CGAM_NODISCARD cgam_status cgam_study_write(const cgam_study *study, const char *folder);
/* Removes the progress file, once everything is written. */
CGAM_API void cgam_study_forget(const cgam_study *study);

/* Everything about one trial - memories, queries, gates, probabilities, energies - as JSON text.
 * S and G: trial t of bank b is number b * trials + t. H: instance `trial` of every statement.
 * Gives *text; free it with cgam_study_text_free. */
CGAM_API CGAM_NODISCARD cgam_status cgam_study_trial(cgam_env *env, const cgam_study_opts *opts,
                                                     int64_t trial, char **text);
CGAM_API void cgam_study_text_free(cgam_env *env, char *text);

#ifdef __cplusplus
}
#endif
#endif
