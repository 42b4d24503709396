/* campaign.h: recalls whose every certificate is decided in ball arithmetic.
 *
 * An instance is a bank, parameters and queries, a function of (seed, number) alone, so any of them
 * can be made again by itself. A claim is what a result says is proved. It is decided, not
 * compared: `right` and `wrong` are theorems about the numbers that were given, found with Arb's
 * intervals, and `open` is a claim that even PRECISION_MAX bits could not decide. */
#ifndef CGAM_TESTS_RIGOUR_CAMPAIGN_H
#define CGAM_TESTS_RIGOUR_CAMPAIGN_H

#include <cgam/cgam.h>

enum { MEMORIES_MAX = 12, DIMENSION_MAX = 14, QUERIES_MAX = 64 };

typedef struct instance {
    uint64_t seed, number;
    int64_t n, d, queries;
    cgam_dtype dtype;
    bool vectors; /* p, s and r are asked for */
    bool
        ordinary; /* alpha n <= 10 and |1 - alpha / alpha_crit| >= 1e-6, beta and scores moderate */
    bool own;     /* a context for each query */
    cgam_recall_opts opts;
    unsigned char stored[8 * MEMORIES_MAX * DIMENSION_MAX];
    double Z[MEMORIES_MAX * DIMENSION_MAX]; /* as stored, widened */
    double W[MEMORIES_MAX * DIMENSION_MAX];
    double q[QUERIES_MAX * DIMENSION_MAX];
    double c[QUERIES_MAX * DIMENSION_MAX];
    bool context;
} instance;

/* Fills everything but what the bank itself has to tell; then the bank is at *bank. */
bool instance_make(cgam_env *env, uint64_t seed, uint64_t number, instance *x, cgam_bank **bank);
void instance_print(const instance *x);

/* What one query gave. */
typedef struct answer {
    cgam_result result;
    const double *p, *s; /* NULL where they were not asked for */
} answer;

typedef enum claim {
    ALPHA_BOUNDS,
    ALPHA_CRIT,
    ETA_MIN,
    REGIME,
    P_LOWER_BOUND,
    CONTRACTION,
    UNIQUE,
    FOLD_MARGIN,
    LOCAL_CONTRACTION,
    P_ERROR,
    P_SUM,
    CONVERGED,
    CLAIMS
} claim;
extern const char *const claim_names[CLAIMS];

typedef struct tally {
    int64_t made[CLAIMS];     /* times the claim was stated as proved */
    int64_t estimate[CLAIMS]; /* or as an estimate */
    int64_t wrong[CLAIMS], open[CLAIMS];
    int64_t ordinary[2][CLAIMS]; /* in ordinary ranges: stated, and proved */
    int64_t instances, refused, queries, ends[16], ordinary_ends[16];
} tally;

/* Decides everything that `gate` and the answers claim; prints what is wrong. */
void judge(const instance *x, const cgam_gate_info *gate, const answer *answers, tally *t);
/* The same for a few banks that are large enough for f32 and matrices. */
void judge_large(cgam_env *env, uint64_t seed, tally *t);
void judge_leaves(void); /* gives back what Arb keeps between calls */

#endif
