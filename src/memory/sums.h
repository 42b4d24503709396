/* sums.h: coupled recalls at alpha = 0 on large banks. A = I there, so memories act on each other only through the sum
 * of their weights: scores are computed once, and an iteration is an equation in sums (sums.c). */
#ifndef CGAM_SRC_MEMORY_SUMS_H
#define CGAM_SRC_MEMORY_SUMS_H

#include "memory/results.h"
#include "memory/stages.h"

enum { CGAM_MOMENTS = 4, CGAM_SUMS_TILE = 512 /* numbers that are added up from zero */ };

/* Of rows with y = beta (a - top) and w = exp(y) at most `cut`. */
typedef struct cgam_moments {
    double w[CGAM_MOMENTS];  /* sum w^(j + 1) */
    double wy[CGAM_MOMENTS]; /* sum w^(j + 1) y */
    double top;              /* max a; -INFINITY: none */
} cgam_moments;

/* Computes the moments of n rows, whose numbers start at `from`, and writes the numbers of the other rows to
 * row[n]. Returns how many. NaN scores are among the others. */
typedef int64_t cgam_moments_find(int64_t n, const double *a, double beta, double top, double cut,
                                  int64_t from, cgam_moments *out, int64_t *row);
/* Returns the implementation for an entry of cgam_cpu_all. */
cgam_moments_find *cgam_moments_of(const cgam_cpu *cpu);

/* A row whose weight is iterated by itself. */
typedef struct cgam_listed {
    double a, s0;
    int64_t row;
} cgam_listed;

/* p of the other rows is w (1 + c[0] w + c[1] w^2 + c[2] w^3) / whole. */
typedef struct cgam_series {
    double c[CGAM_MOMENTS - 1], whole;
} cgam_series;

static inline double cgam_series_p(const cgam_series *p, double w)
{
    return w * (1 + w * (p->c[0] + w * (p->c[1] + w * p->c[2]))) / p->whole;
}

/* A settled query. */
typedef struct cgam_sums {
    int64_t count;
    cgam_listed *list; /* [count] ascending rows */
    double *numbers, *w, *p,
        *p_old;              /* [count] exp(beta (a - top)), p, and p before the last step */
    cgam_moments rest;       /* of all other rows */
    double top, rest_most;   /* max a; the largest w of the rest */
    double truncated;        /* relative error of the sum from what the series omits */
    cgam_series now, before; /* of p, and of p before the last step */
    int64_t winner;          /* index in the list */
    cgam_iterating x;
    bool left; /* not solved: the scores are not finite, or the iteration is slow */
} cgam_sums;

/* Does this engine support the plan? It starts from p = softmax(beta a) only. */
bool cgam_sums_apply(const cgam_recall *plan);
/* Solves a query, which has q, c, b, a and half_us0, and s0 if it has a context. parallel: uses all threads. Free
 * `out` after a failure too. */
cgam_status cgam_sums_solve(const cgam_recall *plan, const cgam_scored *in, bool parallel,
                            cgam_sums *out);
void cgam_sums_free(cgam_env *env, cgam_sums *x);
/* Fills s, r and p of m, and the rest of it except m->in. */
cgam_status cgam_sums_settle(const cgam_recall *plan, const cgam_sums *x, bool parallel,
                             cgam_settled *m);
/* sum p^2, p of the list and the series of the rest. */
double cgam_sums_squares(const cgam_sums *x, const cgam_series *now, const double *p);
/* The same as cgam_settled_summary, without vectors. */
cgam_status cgam_sums_summary(const cgam_recall *plan, const cgam_sums *x, int64_t target,
                              cgam_summary *out);
/* Fills the free certificates. Returns true if they leave too much unproved, and must be measured on the vectors. */
bool cgam_sums_certify(const cgam_recall *plan, const cgam_sums *x, cgam_result *out);
/* The k leading rows, their p and log p. */
cgam_status cgam_sums_top(const cgam_recall *plan, const cgam_sums *x, int64_t k, int64_t *index,
                          double *p, double *log_share);

#endif
