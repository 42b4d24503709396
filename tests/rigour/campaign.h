/* campaign.h: recalls whose every certificate is decided in ball arithmetic.
 *
 * An instance is a bank, parameters and queries, a function of (seed, number) alone, so any of them
 * can be made again by itself. A claim is what a result says is proved. It is decided, not
 * compared: `right` and `wrong` are theorems about the numbers that were given, found with Arb's
 * intervals, and `open` is a claim that even PRECISION_MAX bits could not decide. */
#ifndef CGAM_TESTS_RIGOUR_CAMPAIGN_H
#define CGAM_TESTS_RIGOUR_CAMPAIGN_H

#include <cgam/cgam.h>

enum { MEMORIES_MAX = 12, DIMENSION_MAX = 14, QUERIES_MAX = 65 };

/* Small banks and their edges; banks of some hundred memories, proved without n x n matrices; banks
 * of 2^18 numbers, which go through f32 and matrices. */
typedef enum bank_size { SMALL, MIDDLE, LARGE, SIZES } bank_size;
extern const char *const size_names[SIZES];

typedef struct instance {
    uint64_t seed, number;
    bank_size size;
    int64_t n, d, d_c, queries;
    cgam_dtype dtype;
    bool normalize;
    bool context;
    bool own;     /* a context for each query */
    bool vectors; /* p, s and r are asked for */
    bool
        ordinary; /* alpha n <= 10 and |1 - alpha / alpha_crit| >= 1e-6, beta and scores moderate */
    bool tame;    /* a large batch that can go together as matrices */
    bool edge;    /* what only a hostile mind would ask for */
    bool
        cold; /* beta up to 1e18, contexts of little weight, families of rows that are nearly alike */
    cgam_recall_opts opts;
    cgam_critical free; /* what the norms alone say of alpha_crit */
    int64_t *target;    /* NULL: none */
    cgam_bank *whole;   /* of which the bank is a part, or NULL */
    void *stored;
    double *Z; /* as stored, widened */
    double *W; /* and P, in the same room */
    double *q, *c;
} instance;

/* Fills everything; then the bank is at *bank, which borrows from x. False: the bank was refused. */
bool instance_make(cgam_env *env, bank_size size, uint64_t seed, uint64_t number, instance *x,
                   cgam_bank **bank);
void instance_print(const instance *x);
void instance_free(instance *x);

/* What one query gave. */
typedef struct answer {
    cgam_result result;
    const double *p, *s, *r; /* NULL where they were not asked for */
    int64_t points;          /* of a landscape, whose p are at p */
    /* dL/db and dL/du of -log p of memory `aim`, or of <dp, p> where that is given, NULL where they were not asked for,
     * and their errors. */
    const double *db, *du, *dp;
    double db_error, du_error;
    int64_t aim;
} answer;

/* Does the coupled energy rule what came out? */
static inline bool couples(const instance *x)
{
    return x->opts.mode == CGAM_COUPLED || x->opts.mode == CGAM_ANNEAL;
}

typedef enum claim {
    ALPHA_BOUNDS,
    ALPHA_CRIT,
    ALPHA_FREE, /* as the first, from the norms alone */
    ETA_MIN,
    REGIME,
    LAMBDA_MAX,
    P_LOWER_BOUND,
    CONTRACTION,
    UNIQUE,
    TWO, /* unique: no, proved */
    FOLD_MARGIN,
    LOCAL_CONTRACTION,
    P_ERROR,
    P_SUM,
    CONVERGED,
    ENERGY,
    EXACT,   /* entmax: the answer is one-hot */
    POINT,   /* a point of a landscape, its p_error */
    SEVERAL, /* of a landscape: unique, no, proved */
    POINT_MARGIN,
    INTERVAL, /* of p, and of the ghost's, with opts.fast */
    SCORE_ERROR,
    SHARES, /* p is one, and gaps are those of double */
    GRADIENT,
    STABLE, /* or proved not to be */
    READOUT_ERROR,
    CLAIMS
} claim;
extern const char *const claim_names[CLAIMS];

typedef struct tally {
    int64_t made[CLAIMS];     /* times the claim was stated as proved */
    int64_t estimate[CLAIMS]; /* or as an estimate */
    int64_t wrong[CLAIMS], open[CLAIMS];
    int64_t quick[CLAIMS];    /* proved ones that long double was enough for */
    int64_t ordinary[CLAIMS]; /* proved in ordinary ranges */
    int64_t lost[CLAIMS];     /* an estimate there, and proved if rounding were not counted */
    int64_t instances, refused, queries, judged, edges, normalized, projected, weighted, sparse;
    int64_t annealed, saddles, aimed, ghosts, parts, cold, landscapes;
    int64_t settled, stalled; /* coupled, in ordinary ranges; the second where a query stalled */
    int64_t ends[16], ordinary_ends[16], paths[16], dtypes[8], regimes[4];
    double seconds;
} tally;

/* Decides everything that `gate`, the answers and the landscape of the first query, unless NULL, claim;
 * prints what is wrong. Of a batch of a bank that is not small a few queries are judged. */
void judge(const instance *x, const cgam_gate_info *gate, const answer *answers,
           const cgam_landscape *land, tally *t);
int64_t balls_that_do_not_hold(uint64_t seed); /* of the judge's own in long double, by trial */
void judge_leaves(void);                       /* gives back what Arb keeps between calls */

#endif
