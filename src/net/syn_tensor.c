/* syn_tensor.c: higher-order synapses with a dense tensor,
 *
 *   E = -gain sum T[i0, .., i(k-1)] x0[i0] .. x(k-1)[i(k-1)].
 *
 * T is an operator [n0 .. n(k-2), n(k-1)]. One product contracts the last index:
 * P(k-2) = T x(k-1), and the smaller ones follow, P(j-1) = P(j) x(j). With the outer products
 * A(j) = x0 o .. o x(j-1), the current into slot j is gain A(j)' P(j), and into the last
 * gain T' A(k-1): two passes over T in all. Layers may repeat, T need not be symmetric. */
#include "net/net.h"

#include "num/rows.h"

#include <string.h>

/* n0 .. n(j-1): the length of A(j), and of P(j-1). */
static int64_t prefix_length(const cgam_syn *s, int j)
{
    int64_t n = 1;
    for (int i = 0; i < j; i++) n *= s->size[i];
    return n;
}

/* Scratch holds A(1) .. A(k-1) and P(0) .. P(k-3), then the same for tangents. P(k-2) is the
 * product itself. */
typedef struct places {
    double *A[SLOTS], *P[SLOTS], *dA[SLOTS], *dP[SLOTS];
} places;

static int64_t place_buffers(const cgam_syn *s, double *scratch, places *at)
{
    int64_t used = 0;
    for (int tangent = 0; tangent < 2; tangent++) {
        for (int j = 1; j < s->k; j++) {
            if (at) (tangent ? at->dA : at->A)[j] = scratch + used;
            used += prefix_length(s, j);
        }
        for (int j = 0; j + 2 < s->k; j++) {
            if (at) (tangent ? at->dP : at->P)[j] = scratch + used;
            used += prefix_length(s, j + 1);
        }
    }
    return used;
}

/* out[n, m] (+)= a[n] o b[m] */
static void outer_product(double *out, const double *a, int64_t n, const double *b, int64_t m,
                          bool more)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) out[i * m + j] = (more ? out[i * m + j] : 0) + a[i] * b[j];
}

/* out[n] (+)= P[n, m] b */
static void contract_last(double *out, const double *P, int64_t n, const double *b, int64_t m,
                          bool more)
{
    for (int64_t i = 0; i < n; i++) out[i] = (more ? out[i] : 0) + cgam_array_dot(m, P + i * m, b);
}

/* cur[m] += gain A[n]' P[n, m] */
static void add_current(double *cur, double gain, const double *A, int64_t n, const double *P,
                        int64_t m)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) cur[j] += gain * A[i] * P[i * m + j];
}

/* Sets up the buffers and fills A, and dA for a tangent. */
static void outer_products(const cgam_syn *s, const cgam_frame *f, bool tangent, places *at)
{
    place_buffers(s, f->scratch, at);
    memcpy(at->A[1], f->act[0], (size_t)s->size[0] * sizeof(double));
    if (tangent) memcpy(at->dA[1], f->v[0], (size_t)s->size[0] * sizeof(double));
    for (int j = 2; j < s->k; j++) {
        int64_t n = prefix_length(s, j - 1), m = s->size[j - 1];
        outer_product(at->A[j], at->A[j - 1], n, f->act[j - 1], m, false);
        if (!tangent) continue;
        outer_product(at->dA[j], at->dA[j - 1], n, f->act[j - 1], m, false);
        outer_product(at->dA[j], at->A[j - 1], n, f->v[j - 1], m, true);
    }
}

/* ---- the kind: products 0 = T x(k-1), 1 = T' A(k-1) ----------------------------------------- */
static void tensor_plan(const cgam_syn *s, const bool *wanted, cgam_job *jobs)
{
    jobs[0] = (cgam_job){.op = s->op[0], .slot = s->k - 1};
    if (wanted[s->k - 1])
        jobs[1] =
            (cgam_job){.op = s->op[0], .transposed = true, .slot = -1, .phase = CGAM_PHASE_FIRST};
}

static cgam_status tensor_feed(const cgam_syn *s, cgam_frame *f)
{
    places at;
    outer_products(s, f, false, &at);
    memcpy(f->in[1], at.A[s->k - 1], (size_t)prefix_length(s, s->k - 1) * sizeof(double));
    return CGAM_OK;
}

static cgam_status tensor_feed_tangent(const cgam_syn *s, cgam_frame *f)
{
    places at;
    outer_products(s, f, true, &at);
    memcpy(f->din[1], at.dA[s->k - 1], (size_t)prefix_length(s, s->k - 1) * sizeof(double));
    return CGAM_OK;
}

static const double one = 1;

static cgam_status tensor_eval(const cgam_syn *s, cgam_frame *f)
{
    places at;
    outer_products(s, f, false, &at);
    const double *P = f->prod[0];
    for (int j = s->k - 2; j >= 0; j--) {
        int64_t n = prefix_length(s, j), m = s->size[j];
        if (f->cur[j]) add_current(f->cur[j], s->gain, j ? at.A[j] : &one, n, P, m);
        if (j == 0) {
            f->energy = -s->gain * cgam_array_dot(m, P, f->act[0]);
        } else {
            contract_last(at.P[j - 1], P, n, f->act[j], m, false);
            P = at.P[j - 1];
        }
    }
    cgam_syn_add(f->cur[s->k - 1], s->gain, f->prod[1], s->size[s->k - 1]);
    return CGAM_OK;
}

static cgam_status tensor_tangent(const cgam_syn *s, cgam_frame *f)
{
    places at;
    outer_products(s, f, true, &at);
    const double *P = f->prod[0], *dP = f->dprod[0];
    for (int j = s->k - 2; j >= 0; j--) {
        int64_t n = prefix_length(s, j), m = s->size[j];
        if (f->cur[j]) {
            add_current(f->cur[j], s->gain, j ? at.A[j] : &one, n, dP, m);
            if (j) add_current(f->cur[j], s->gain, at.dA[j], n, P, m);
        }
        if (j == 0) break;
        contract_last(at.dP[j - 1], dP, n, f->act[j], m, false);
        contract_last(at.dP[j - 1], P, n, f->v[j], m, true);
        contract_last(at.P[j - 1], P, n, f->act[j], m, false);
        P = at.P[j - 1];
        dP = at.dP[j - 1];
    }
    cgam_syn_add(f->cur[s->k - 1], s->gain, f->dprod[1], s->size[s->k - 1]);
    return CGAM_OK;
}

/* dE/dT = -gain A(k-1) x(k-1)'. */
static int tensor_terms(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent,
                        cgam_outer *out)
{
    (void)slot;
    places at;
    const int last = s->k - 1;
    outer_products(s, f, tangent, &at);
    out[0] = (cgam_outer){-s->gain, tangent ? at.dA[last] : at.A[last], f->act[last]};
    if (tangent) out[1] = (cgam_outer){-s->gain, at.A[last], f->v[last]};
    return tangent ? 2 : 1;
}

const cgam_syn_kind cgam_syn_tensor = {.name = "tensor",
                                       .terms = tensor_terms,
                                       .scratched = true,
                                       .plan = tensor_plan,
                                       .feed = tensor_feed,
                                       .eval = tensor_eval,
                                       .feed_tangent = tensor_feed_tangent,
                                       .tangent = tensor_tangent};

cgam_status cgam_net_add_tensor(cgam_net *net, const char *name, int k, const int *layers,
                                const cgam_op *T, double gain)
{
    cgam_syn *s;
    if (k < 2)
        return cgam_fail(net->env, CGAM_E_ARG, "synapse '%s': a tensor joins 2 layers or more",
                         name);
    cgam_status status = cgam_net_begin(net, &cgam_syn_tensor, name, k, layers, gain, &s);
    if (status != CGAM_OK) return status;
    int64_t rows = 1;
    for (int i = 0; i < k - 1 && rows >= 0; i++)
        if (__builtin_mul_overflow(rows, s->size[i], &rows)) rows = -1;
    if (!T || !T->apply || !T->apply_t || T->rows != rows || T->cols != s->size[k - 1])
        status = cgam_fail(
            net->env, CGAM_E_SHAPE,
            "synapse '%s': the tensor is %lld x %lld, its layers up to '%s' require %lld x %lld",
            name, T ? (long long)T->rows : 0, T ? (long long)T->cols : 0,
            net->layer[s->layer[k - 1]].name, (long long)rows, (long long)s->size[k - 1]);
    s->op[0] = T;
    if (status == CGAM_OK) s->scratch = place_buffers(s, NULL, NULL);
    return cgam_net_end(net, status);
}
