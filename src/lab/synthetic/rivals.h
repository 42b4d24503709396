/* rivals.h: the mechanisms of the rivals study, for one bank at a time, and the results counted for them. */
#ifndef CGAM_SRC_LAB_SYNTHETIC_RIVALS_H
#define CGAM_SRC_LAB_SYNTHETIC_RIVALS_H

#include "lab/synthetic/banks.h"
#include "lab/synthetic/study.h"

typedef enum cgam_rival {
    CGAM_RIVAL_HOPFIELD,
    CGAM_RIVAL_MIXING, /* the trivial rival of every mechanism with a context */
    CGAM_RIVAL_FIRST,
    CGAM_RIVAL_COUPLED,
    CGAM_RIVAL_EXPERTS,
    CGAM_RIVAL_PLASTICITY,
    CGAM_RIVAL_MASK_MEMORIES,
    CGAM_RIVAL_MASK_UNITS,
    CGAM_RIVAL_SPARSE,
    CGAM_RIVAL_BAYES, /* no mechanism: knows the noise, and no mechanism can be right more often */
    CGAM_RIVALS
} cgam_rival;

/* Settings: the draws of figure 2, and three changes of them. */
enum {
    CGAM_RIVAL_PLAIN,
    CGAM_RIVAL_WRONG,    /* contexts of another memory in a share of the trials */
    CGAM_RIVAL_SPACE,    /* contexts in a space of their own, W != Z */
    CGAM_RIVAL_CLUSTERS, /* memories in clusters */
    CGAM_RIVAL_SETTINGS
};

/* What is added up over the trials of a bank for every sigma_q and option. */
enum {
    CGAM_RIVAL_RIGHT, /* the target wins */
    CGAM_RIVAL_ERROR, /* |Z'p - zeta| */
    CGAM_RIVAL_NEFF,  /* exp of the entropy of p */
    CGAM_RIVAL_WORK,  /* multiply-adds, in products with all memories */
    CGAM_RIVAL_MEASURES
};

extern const char *const cgam_rival_names[];         /* "query-mixing"; NULL ends */
extern const char *const cgam_rival_setting_names[]; /* "plain"; NULL ends */

/* A mechanism at one strength; `second` is what else it can choose: alpha of gates, the order of a sparse recall, the
 * number of contexts of masked units; NAN = nothing. */
typedef struct cgam_rival_option {
    int rival;
    double strength, second;
} cgam_rival_option;

typedef struct cgam_rivals {
    int64_t n, d, sigmas, alphas;
    int settings; /* memories of a file are in no clusters of ours: one fewer */
    int64_t options;
    cgam_rival_option *option; /* by mechanism */
    int64_t first[CGAM_RIVALS + 1];
} cgam_rivals;

/* One thread's room: a bank, and a bundle of its trials. Arrays are [..] per lane, or plain. */
typedef struct cgam_rivals_room {
    int setting;
    double *q, *c;     /* [d] */
    double *b, *u, *m; /* [n] Z q, W c, Z P c */
    double *s;         /* [n] A^-1 W c at the alpha of that index; -1 = not yet */
    int64_t at_alpha;
    double *r;         /* [n] scores of the present option */
    double *base, *e;  /* [n], [n + m] for the coupled iteration */
    double *gain;      /* [m + 1] */
    double *Z, *W, *M; /* plain [n, d]: memories, keys of contexts, Z P */
    double *S;         /* plain [alphas, n, d]: A^-1 W */
    double *masked,
        *units; /* plain [n, d], [contexts, d] for every option of masked units, one after another */
    double *one; /* plain: see plain_room() */
    double work[CGAM_LANES_MAX];
    int64_t target[CGAM_LANES_MAX], meant[CGAM_LANES_MAX]; /* meant: by the context */
    cgam_banks *banks;
} cgam_rivals_room;

cgam_status cgam_rivals_open(cgam_study *study, cgam_rivals *u);
void cgam_rivals_close(cgam_study *study, cgam_rivals *u);
cgam_status cgam_rivals_room_open(cgam_study *study, void *arg, void *opened);
void cgam_rivals_room_close(cgam_study *study, void *arg, void *opened);

/* Memories, keys, gates and masks of a set of a setting. */
cgam_status cgam_rivals_bank(cgam_study *study, const cgam_rivals *u, int setting, int64_t set,
                             cgam_rivals_room *w);
/* Trials first .. first + width - 1 of a set at a sigma_q, one a lane. */
void cgam_rivals_draw(const cgam_study *study, const cgam_rivals *u, int64_t set, int64_t cell,
                      int64_t first, cgam_rivals_room *w);
/* w->r and w->work of the trials in w under option k. */
void cgam_rivals_scores(cgam_study *study, const cgam_rivals *u, int64_t cell, int64_t k,
                        cgam_rivals_room *w);
/* measures[CGAM_RIVAL_MEASURES] of a lane under option k, from w->r. */
void cgam_rivals_measure(const cgam_study *study, const cgam_rivals *u, int64_t k, int lane,
                         const cgam_rivals_room *w, double *measures);

/* Tables and summary from the blocks' records. */
cgam_status cgam_rivals_tables(cgam_study *study, void *arg, const cgam_blocks *b);

#endif
