/* sweep_whole.c: is a whole answer the most probable one, with a given context and coupling?
 *
 * In place v (after a beginning of answers) token m scores s_v(m) = (a_v[m] + t b[m]) f_v(t) + o[m], where f is the factor
 * of the final norm of the sum, and an answer has
 *
 *     log p = sum over its places of s_v(token) - log sum_m exp s_v(m).
 *
 * The normaliser of the first place is common to all answers and left out. Those of later places are sums over the
 * vocabulary, and few are needed: each is at least the score of any token, so an answer whose bound is below the value of
 * the right one is excluded; and if a rival of one token is ahead of the right answer's first token, the right answer
 * cannot win. */
#include "base/alloc.h"
#include "lab/language/sweep.h"
#include "lm/lens.h"
#include "lm/scores.h"
#include "num/cpu/cpu.h"

#include <math.h>

static const cgam_interval none = {INFINITY, -INFINITY};

/* After one beginning. */
typedef struct place {
    const float *a, *q; /* [vocab] scores, [width] state */
    int64_t top;        /* the token that a is largest for */
    cgam_sweep_spread v;
    bool spread;            /* v is that of this context */
    double factor, log_sum; /* at this coupling; NAN until asked for */
} place;

struct cgam_sweep_whole {
    const cgam_sweep_job *job;
    int64_t query;
    place *place;  /* [beginnings] */
    double *r, *e; /* [vocab] */
    /* the context and coupling in hand */
    const float *b, *c;
    int64_t top_b;
    double t;
};

void cgam_sweep_whole_free(cgam_sweep_whole *w)
{
    if (!w) return;
    cgam_env *env = w->job->sweep->env;
    cgam_free_all(env, w->place, w->r, w->e, w);
}

cgam_status cgam_sweep_whole_new(const cgam_sweep_job *job, int64_t query, cgam_sweep_whole **out)
{
    const cgam_sweep_input *in = &job->sweep->in;
    cgam_env *env = job->sweep->env;
    int64_t B = in->answers->beginnings, k = query - job->first, d = job->lens->width;
    *out = NULL;
    cgam_sweep_whole *w = cgam_zalloc(env, 1, sizeof *w);
    if (!w) return cgam_fail_nomem(env, "answers");
    *w = (cgam_sweep_whole){.job = job, .query = query};
    cgam_status status = cgam_alloc_all(env, "answers", CGAM_ZEROS(w->place, B),
                                        CGAM_ARRAY(w->r, job->vocab), CGAM_ARRAY(w->e, job->vocab));
    if (status != CGAM_OK) {
        cgam_sweep_whole_free(w);
        return status;
    }
    for (int64_t v = 0; v < B; v++) {
        int64_t at = v == 0 ? query : query * (B - 1) + v - 1;
        const float *states = v == 0 ? in->zero : in->answers->states;
        w->place[v].a =
            v == 0 ? job->a + k * job->vocab : job->after + (k * (B - 1) + v - 1) * job->vocab;
        w->place[v].q = states + (at * in->layers + job->layer) * d;
        w->place[v].top = cgam_scores_top(w->place[v].a, job->vocab);
    }
    *out = w;
    return CGAM_OK;
}

/* ---- At one coupling ------------------------------------------------------------------------ */
static double norm_factor(cgam_sweep_whole *w, place *p)
{
    if (!isnan(p->factor)) return p->factor;
    const cgam_sweep_job *j = w->job;
    if (j->sweep->in.lens == CGAM_LENS_RAW) return p->factor = 1;
    if (!p->spread) p->v = cgam_sweep_spread_of(j->lens, p->q, w->c);
    p->spread = true;
    return p->factor = cgam_sweep_factor(j->lens, &p->v, w->t);
}

static double token_score(cgam_sweep_whole *w, int64_t v, int64_t token)
{
    place *p = &w->place[v];
    const cgam_sweep_job *j = w->job;
    const float *o = j->sweep->in.lens == CGAM_LENS_NORM ? cgam_lens_offset(j->lens) : NULL;
    return ((double)p->a[token] + w->t * (double)w->b[token]) * norm_factor(w, p) +
           (o ? (double)o[token] : 0);
}

static double log_normaliser(cgam_sweep_whole *w, int64_t v)
{
    place *p = &w->place[v];
    const cgam_f64 *cpu = cgam_cpu_best()->f64;
    if (!isnan(p->log_sum)) return p->log_sum;
    const cgam_sweep_job *j = w->job;
    const float *a = p->a, *b = w->b;
    const float *o = j->sweep->in.lens == CGAM_LENS_NORM ? cgam_lens_offset(j->lens) : NULL;
    double f = norm_factor(w, p), t = w->t, sums[3];
    for (int64_t m = 0; m < j->vocab; m++) w->r[m] = ((double)a[m] + t * (double)b[m]) * f;
    for (int64_t m = 0; m < j->vocab && o; m++) w->r[m] += (double)o[m];
    double top = cpu->largest(w->r, j->vocab);
    cpu->softmax(w->r, j->vocab, 1, top, w->e, sums);
    return p->log_sum = top + log(sums[0]);
}

/* All of an answer, as far as it is not under `least`: then less than that. */
static double answer_score(cgam_sweep_whole *w, int64_t label, double least)
{
    const cgam_sweep_answers *n = w->job->sweep->in.answers;
    const int32_t *token = n->tokens + label * n->longest, *at = n->at + label * n->longest;
    double sum = token_score(w, 0, token[0]), bound = sum;
    for (int64_t t = 1; t < n->longest && token[t] >= 0 && bound >= least; t++) {
        double known =
            fmax(token_score(w, at[t], w->place[at[t]].top), token_score(w, at[t], w->top_b));
        bound += fmin(0, token_score(w, at[t], token[t]) - known);
    }
    if (bound < least) return bound;
    for (int64_t t = 1; t < n->longest && token[t] >= 0 && sum >= least; t++)
        sum += token_score(w, at[t], token[t]) - log_normaliser(w, at[t]);
    return sum;
}

static bool first_of_labels(cgam_sweep_whole *w, int64_t y)
{
    const cgam_sweep_input *in = &w->job->sweep->in;
    const cgam_sweep_answers *n = in->answers;
    double most = token_score(w, 0, n->tokens[y * n->longest]);
    for (int64_t k = 0; k < in->labels; k++) {
        const int32_t *token = n->tokens + k * n->longest;
        bool one = n->longest == 1 || token[1] < 0;
        if (k != y && one && token_score(w, 0, token[0]) > most) return false;
    }
    double own = answer_score(w, y, -INFINITY);
    for (int64_t k = 0; k < in->labels; k++) {
        if (k == y) continue;
        double rival = answer_score(w, k, own);
        if (rival > own || (rival == own && k < y)) return false;
    }
    return true;
}

/* Each of its tokens the largest of all in its place. */
static bool first_of_all(cgam_sweep_whole *w, int64_t y)
{
    const cgam_sweep_job *j = w->job;
    const cgam_sweep_answers *n = j->sweep->in.answers;
    const float *o = cgam_lens_offset(j->lens);
    const int32_t *token = n->tokens + y * n->longest, *at = n->at + y * n->longest;
    for (int64_t t = 0; t < n->longest && token[t] >= 0; t++) {
        place *p = &w->place[at[t]];
        if (!cgam_sweep_largest(j->vocab, NULL, p->a, w->b, o, w->t, norm_factor(w, p), token[t]))
            return false;
    }
    return true;
}

/* ---- Over all couplings --------------------------------------------------------------------- */
static cgam_interval answer_interval(cgam_sweep_whole *w, int64_t row, int64_t y)
{
    const cgam_sweep_job *j = w->job;
    const cgam_sweep_answers *n = j->sweep->in.answers;
    const int32_t *token = n->tokens + y * n->longest, *at = n->at + y * n->longest;
    cgam_lens_kind kind = cgam_sweep_linear_part(j->sweep);
    cgam_interval all = {0, INFINITY};
    for (int64_t t = 0; t < n->longest && token[t] >= 0; t++) {
        const place *p = &w->place[at[t]];
        const cgam_sweep_rivals rivals = {.lens = j->lens,
                                          .kind = kind,
                                          .q = p->q,
                                          .c = w->c,
                                          .a = p->a,
                                          .b = w->b,
                                          .slack_a =
                                              j->slack * cgam_sweep_norm(p->q, j->lens->width),
                                          .slack_b = j->slack * j->size[row]};
        cgam_interval x = cgam_sweep_interval_sure(
            &rivals, token[t], cgam_lens_dot(j->lens, kind, token[t], p->q),
            cgam_lens_dot(j->lens, kind, token[t], w->c), (int64_t[]){p->top, w->top_b});
        all = (cgam_interval){fmax(all.from, x.from), fmin(all.to, x.to)};
        if (!(all.from < all.to)) return none;
    }
    return all;
}

void cgam_sweep_whole_mark(cgam_sweep_whole *w, int64_t row, double factor, int64_t at)
{
    const cgam_sweep_job *j = w->job;
    cgam_sweep *s = j->sweep;
    const cgam_sweep_input *in = &s->in;
    int64_t y = in->target[w->query], B = in->answers->beginnings;
    bool linear = s->over[CGAM_OVER_VOCABULARY] != NULL;
    s->marks[CGAM_OVER_LABELS][at] = 0;
    if (linear) s->over[CGAM_OVER_VOCABULARY][at] = none;
    else s->marks[CGAM_OVER_VOCABULARY][at] = 0;
    if (y < 0) return;
    w->b = j->b + row * j->vocab;
    w->c = j->context + row * j->lens->width;
    w->top_b = j->top[row];
    if (linear)
        s->over[CGAM_OVER_VOCABULARY][at] = cgam_sweep_rescale(answer_interval(w, row, y), factor);
    for (int64_t v = 0; v < B; v++) w->place[v].spread = false;
    for (int64_t g = 0; g < in->grid; g++) {
        w->t = s->lambda[g] * factor;
        for (int64_t v = 0; v < B; v++) w->place[v].factor = w->place[v].log_sum = NAN;
        if (first_of_labels(w, y)) s->marks[CGAM_OVER_LABELS][at] |= UINT32_C(1) << g;
        if (!linear && first_of_all(w, y)) s->marks[CGAM_OVER_VOCABULARY][at] |= UINT32_C(1) << g;
    }
}
