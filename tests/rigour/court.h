/* court.h: what claims are decided with. A court holds one instance at one precision; the two kinds
 * differ in how they see  T = level I + a (G - diag G) - factor (diag p - pp') . */
#ifndef CGAM_TESTS_RIGOUR_COURT_H
#define CGAM_TESTS_RIGOUR_COURT_H

#include "rigour/campaign.h"

#ifndef COURT_IN_LONG_DOUBLE /* quick.c */
#include <arb_mat.h>
#endif

enum { PRECISION = 192, PRECISION_MAX = 1536 };

typedef enum verdict { WRONG, RIGHT, OPEN } verdict;

typedef struct court court;

typedef struct court_kind {
    const char *name;
    void (*open)(court *c); /* c->own */
    void (*fill)(court *c); /* it, at c->prec bits */
    void (*close)(court *c);
    /* Is T - x I, p NULL without the last part, positive definite: 1 certainly, -1 certainly it has a
     * negative eigenvalue, 2 certainly its smallest is 0, 0 unknown. a and factor are not negative. */
    int (*sign)(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                const arb_t x);
    void (*apply)(court *c, arb_srcptr s, arb_ptr y); /* y = A s */
    /* x = (A - factor (diag p - pp'))^-1 y as an enclosure, or about (exactly = false); false where
     * that cannot be had. */
    bool (*solve)(court *c, const arb_t factor, arb_srcptr p, arb_srcptr y, arb_ptr x,
                  bool exactly);
    verdict (*orthogonal)(const court *c);
} court_kind;
extern const court_kind court_small; /* T as a matrix */
extern const court_kind court_tall;  /* T as a diagonal and d + 1 columns */

struct court {
    const court_kind *kind;
    const instance *x;
    slong n, d, prec;
    void *own;
    arb_ptr Z;     /* [n, d] the memories, normalised where they are */
    arb_ptr b, u;  /* [n] of query `query` */
    arb_ptr s, p;  /* [n] the exact gates and shares of an answer, or of its fixed point */
    arb_ptr given; /* [n] p as returned */
    arb_ptr g, step;
    arb_ptr settled; /* [n] p of the fixed point near an answer to `query`, */
    int known;       /* if it was found: 1, -1 could not be, 0 not tried */
    int64_t query;   /* b and u are its, -1 none */
    arb_t alpha, beta, lambda, l2b, zero, one, t, v, w;
    arb_t ghost; /* p of the ghost of opts.none */
};

void court_open(court *c, const court_kind *kind, const instance *x, slong prec);
void court_fill(court *c, slong prec);
void court_close(court *c);

verdict both(verdict a, verdict b);
verdict at_most(const arb_t x, double y); /* x <= y? */
/* Is the smallest eigenvalue of T at least x, or (above) at most x? An equality counts as true. */
verdict smallest(court *c, const arb_t level, const arb_t a, const arb_t factor, arb_srcptr p,
                 const arb_t x, bool above);
void court_ask(court *c, int64_t query); /* b and u */
void court_softmax(court *c, arb_srcptr s,
                   arb_ptr p); /* p = softmax(beta (b + lambda s)), or entmax */
/* Entmax (entmax.c): p, and L(beta (b + lambda s)) unless NULL. */
void court_entmax(court *c, arb_srcptr s, arb_ptr p, arb_t value);
/* lambda^2 beta J(p) = factor (diag pi - pi pi'). pi is not p. */
void court_slopes(court *c, arb_srcptr p, arb_ptr pi, arb_t factor);
bool court_one_hot(const court *c, slong winner); /* is c->p certainly 0 but for this one? */
bool court_entmax_fixed_point(court *c);          /* as court_fixed_point */
void court_doubles(court *c, const double *x, arb_ptr to);           /* exactly */
void court_middle(court *c, arb_ptr x);                              /* x = its middle */
void court_distance(court *c, arb_srcptr p, arb_srcptr q, arb_t to); /* |p - q|_2 */
void court_gradient(court *c);                                       /* g = A s - u - lambda p */
/* E(s) = s'As / 2 - u's - log sum exp(beta (b + lambda s)) / beta, and the size of its terms. */
void court_energy(court *c, arb_srcptr s, arb_t energy, arb_t size);
/* The exact s and p that an answer stands for: mode first, the gates themselves; mode coupled, the s
 * returned; a flow, its r. False where A is singular or there is nothing to go by. */
bool court_scores(court *c, const answer *a);
/* c->s, exact so far, becomes all s within the distance in every entry, and c->p their p. */
void court_around(court *c, arb_srcptr distance);
/* The fixed point near c->s: then c->s and c->p enclose it. */
bool court_fixed_point(court *c);
/* The same near the s of an answer: then c->settled encloses its p. Looked for once. */
bool court_settled(court *c, const answer *a);

/* p is a share and gaps are those of double (shares.c). */
verdict decide_shares(court *c, const answer *a);

/* A claim of the answer to query k, or of the gate (a = NULL). */
verdict decide(court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what);
/* Would it, which is an estimate, be proved in exact arithmetic? */
verdict decide_lost(court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what);

/* The court of a small bank in long double (quick.c). Its RIGHT is as good; else Arb is to be asked. */
typedef struct quick_court quick_court;
quick_court *quick_open(const instance *x);
verdict quick_decide(quick_court *c, const cgam_gate_info *g, int64_t k, const answer *a,
                     claim what);
verdict quick_lost(quick_court *c, const cgam_gate_info *g, int64_t k, const answer *a, claim what);
void quick_close(quick_court *c); /* NULL is fine */

#endif
