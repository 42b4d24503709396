/* syn_linear.c: synapses whose currents are linear in the activations - bilinear, self, Gram,
 * identity coupling, bias. Their energies come with the currents, at O(n) beyond the products. */
#include "net/net.h"

#include "num/rows.h"

#include <math.h>
#include <string.h>

static cgam_status check_op(cgam_net *net, const cgam_syn *s, const cgam_op *W, int64_t rows,
                            int64_t cols)
{
    int last = s->k - 1;
    if (!W || !W->apply || !W->apply_t)
        return cgam_fail(net->env, CGAM_E_ARG, "synapse '%s': an operator needs both products",
                         s->name);
    if (W->rows == rows && (cols < 0 || W->cols == cols)) return CGAM_OK;
    if (cols < 0)
        return cgam_fail(net->env, CGAM_E_SHAPE,
                         "synapse '%s': weights are %lld x %lld, layer '%s' has size %lld", s->name,
                         (long long)W->rows, (long long)W->cols, net->layer[s->layer[0]].name,
                         (long long)rows);
    return cgam_fail(
        net->env, CGAM_E_SHAPE,
        "synapse '%s': weights are %lld x %lld, layers '%s' and '%s' have sizes %lld and %lld",
        s->name, (long long)W->rows, (long long)W->cols, net->layer[s->layer[0]].name,
        net->layer[s->layer[last]].name, (long long)rows, (long long)cols);
}

/* ---- bilinear: products 0 = W y, 1 = W' x -------------------------------------------------- */
static void bilinear_plan(const cgam_syn *s, const bool *wanted, cgam_job *jobs)
{
    /* the energy comes with either product */
    if (wanted[0] || !wanted[1]) jobs[0] = (cgam_job){.op = s->op[0], .slot = 1};
    if (wanted[1]) jobs[1] = (cgam_job){.op = s->op[0], .transposed = true, .slot = 0};
}

static cgam_status bilinear_eval(const cgam_syn *s, cgam_frame *f)
{
    int from = f->prod[0] ? 0 : 1;
    f->energy = -s->gain * cgam_array_dot(s->size[from], f->act[from], f->prod[from]);
    return CGAM_OK;
}

static void bilinear_currents(const cgam_syn *s, const double *const *act,
                              const double *const *prod, double *const *cur)
{
    (void)act;
    for (int j = 0; j < 2; j++) cgam_syn_add(cur[j], s->gain, prod[j], s->size[j]);
}

/* factor left right' at a state; its derivative has one term for each layer that moves. */
static int product_terms(const cgam_frame *f, double factor, int left, int right, bool tangent,
                         cgam_outer *out)
{
    int count = 0;
    if (!tangent) {
        out[0] = (cgam_outer){factor, f->act[left], f->act[right]};
        return 1;
    }
    if (!f->still[left]) out[count++] = (cgam_outer){factor, f->v[left], f->act[right]};
    if (!f->still[right]) out[count++] = (cgam_outer){factor, f->act[left], f->v[right]};
    return count;
}

static int bilinear_terms(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent,
                          cgam_outer *out)
{
    (void)slot;
    return product_terms(f, -s->gain, 0, 1, tangent, out);
}

const cgam_syn_kind cgam_syn_bilinear = {.name = "bilinear",
                                         .terms = bilinear_terms,
                                         .plan = bilinear_plan,
                                         .eval = bilinear_eval,
                                         .currents = bilinear_currents};

cgam_status cgam_net_add_bilinear(cgam_net *net, const char *name, int x, int y, const cgam_op *W,
                                  double gain)
{
    cgam_syn *s;
    cgam_status status =
        cgam_net_begin(net, &cgam_syn_bilinear, name, 2, (const int[]){x, y}, gain, &s);
    if (status != CGAM_OK) return status;
    status = check_op(net, s, W, s->size[0], s->size[1]);
    s->op[0] = W;
    return cgam_net_end(net, status);
}

/* ---- self: products 0 = W x, 1 = W' x unless W is symmetric -------------------------------- */
static void self_plan(const cgam_syn *s, const bool *wanted, cgam_job *jobs)
{
    jobs[0] = (cgam_job){.op = s->op[0], .slot = 0};
    if (wanted[0] && !s->op[0]->symmetric)
        jobs[1] = (cgam_job){.op = s->op[0], .transposed = true, .slot = 0};
}

static void self_currents(const cgam_syn *s, const double *const *act, const double *const *prod,
                          double *const *cur)
{
    (void)act;
    cgam_syn_add(cur[0], -0.5 * s->gain, prod[0], s->size[0]);
    cgam_syn_add(cur[0], -0.5 * s->gain, prod[prod[1] ? 1 : 0], s->size[0]);
}

static cgam_status self_eval(const cgam_syn *s, cgam_frame *f)
{
    f->energy = 0.5 * s->gain * cgam_array_dot(s->size[0], f->act[0], f->prod[0]);
    return CGAM_OK;
}

static int self_terms(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent,
                      cgam_outer *out)
{
    (void)slot;
    return product_terms(f, 0.5 * s->gain, 0, 0, tangent, out);
}

const cgam_syn_kind cgam_syn_self = {.name = "self",
                                     .terms = self_terms,
                                     .plan = self_plan,
                                     .eval = self_eval,
                                     .currents = self_currents};

cgam_status cgam_net_add_self(cgam_net *net, const char *name, int x, const cgam_op *W, double gain)
{
    cgam_syn *s;
    cgam_status status = cgam_net_begin(net, &cgam_syn_self, name, 1, &x, gain, &s);
    if (status != CGAM_OK) return status;
    status = check_op(net, s, W, s->size[0], s->size[0]);
    s->op[0] = W;
    return cgam_net_end(net, status);
}

/* ---- Gram: products 0 = Z'x, 1 = Z (Z'x) ---------------------------------------------------- */
static void gram_plan(const cgam_syn *s, const bool *wanted, cgam_job *jobs)
{
    if (s->gain == 0) return; /* a memory without penalty costs no passes */
    jobs[0] = (cgam_job){.op = s->op[0], .transposed = true, .slot = 0, .phase = CGAM_PHASE_FIRST};
    if (wanted[0]) jobs[1] = (cgam_job){.op = s->op[0], .slot = -1, .phase = CGAM_PHASE_SECOND};
}

static cgam_status gram_feed(const cgam_syn *s, cgam_frame *f)
{
    memcpy(f->in[1], f->prod[0], (size_t)s->op[0]->cols * sizeof(double));
    return CGAM_OK;
}

static cgam_status gram_feed_tangent(const cgam_syn *s, cgam_frame *f)
{
    memcpy(f->din[1], f->dprod[0], (size_t)s->op[0]->cols * sizeof(double));
    return CGAM_OK;
}

static void gram_currents(const cgam_syn *s, const double *const *act, const double *const *prod,
                          double *const *cur)
{
    if (!cur[0] || s->gain == 0) return;
    cgam_syn_add(cur[0], -s->gain, prod[1], s->size[0]);
    for (int64_t i = 0; s->vector && i < s->size[0]; i++)
        cur[0][i] += s->gain * s->vector[i] * act[0][i];
}

static cgam_status gram_eval(const cgam_syn *s, cgam_frame *f)
{
    if (s->gain == 0) return CGAM_OK;
    const double *x = f->act[0];
    double own = 0;
    for (int64_t i = 0; s->vector && i < s->size[0]; i++) own += s->vector[i] * x[i] * x[i];
    f->energy = 0.5 * s->gain * (cgam_array_dot(s->op[0]->cols, f->prod[0], f->prod[0]) - own);
    return CGAM_OK;
}

/* Of |Z'x|^2 / 2; a diagonal that follows Z is added by cgam_gradient_add. */
static int gram_terms(const cgam_syn *s, const cgam_frame *f, int slot, bool tangent,
                      cgam_outer *out)
{
    (void)slot;
    if (!f->prod[0] || (tangent && f->still[0])) return 0;
    out[0] = (cgam_outer){s->gain, tangent ? f->v[0] : f->act[0], f->prod[0]};
    if (tangent) out[1] = (cgam_outer){s->gain, f->act[0], f->dprod[0]};
    return tangent ? 2 : 1;
}

/* The vector is the diagonal. */
static cgam_status gram_slope(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                              double factor, double *out)
{
    (void)what;
    const double *x = f->act[0];
    for (int64_t i = 0; i < s->size[0]; i++)
        out[i] -= factor * s->gain * (tangent ? x[i] * f->v[0][i] : 0.5 * x[i] * x[i]);
    return CGAM_OK;
}

const cgam_syn_kind cgam_syn_gram = {.name = "gram",
                                     .terms = gram_terms,
                                     .slope = gram_slope,
                                     .plan = gram_plan,
                                     .feed = gram_feed,
                                     .eval = gram_eval,
                                     .feed_tangent = gram_feed_tangent,
                                     .currents = gram_currents};

cgam_status cgam_net_add_gram(cgam_net *net, const char *name, int x, const cgam_op *Z, double gain,
                              const double *diagonal)
{
    cgam_syn *s;
    cgam_status status = cgam_net_begin(net, &cgam_syn_gram, name, 1, &x, gain, &s);
    if (status != CGAM_OK) return status;
    status = check_op(net, s, Z, s->size[0], -1);
    if (status == CGAM_OK && diagonal) status = cgam_syn_vector(net, s, diagonal, s->size[0]);
    s->op[0] = Z;
    return cgam_net_end(net, status);
}

/* ---- identity coupling and bias: no products ------------------------------------------------ */
static cgam_status coupling_eval(const cgam_syn *s, cgam_frame *f)
{
    f->energy = -s->gain * cgam_array_dot(s->size[0], f->act[0], f->act[1]);
    return CGAM_OK;
}

static void coupling_currents(const cgam_syn *s, const double *const *act,
                              const double *const *prod, double *const *cur)
{
    (void)prod;
    for (int j = 0; j < 2; j++) cgam_syn_add(cur[j], s->gain, act[1 - j], s->size[0]);
}

const cgam_syn_kind cgam_syn_coupling = {
    .name = "coupling", .eval = coupling_eval, .currents = coupling_currents};

cgam_status cgam_net_add_coupling(cgam_net *net, const char *name, int x, int y, double gain)
{
    cgam_syn *s;
    cgam_status status =
        cgam_net_begin(net, &cgam_syn_coupling, name, 2, (const int[]){x, y}, gain, &s);
    if (status != CGAM_OK) return status;
    if (s->size[0] != s->size[1])
        status = cgam_fail(net->env, CGAM_E_SHAPE,
                           "synapse '%s': layers '%s' and '%s' differ in size: %lld and %lld",
                           s->name, net->layer[x].name, net->layer[y].name, (long long)s->size[0],
                           (long long)s->size[1]);
    return cgam_net_end(net, status);
}

static cgam_status bias_eval(const cgam_syn *s, cgam_frame *f)
{
    f->energy = -s->gain * cgam_array_dot(s->size[0], s->vector, f->act[0]);
    cgam_syn_add(f->cur[0], s->gain, s->vector, s->size[0]);
    return CGAM_OK;
}

static cgam_status bias_slope(const cgam_syn *s, const cgam_frame *f, int what, bool tangent,
                              double factor, double *out)
{
    (void)what;
    cgam_syn_add(out, -factor * s->gain, tangent ? f->v[0] : f->act[0], s->size[0]);
    return CGAM_OK;
}

const cgam_syn_kind cgam_syn_bias = {.name = "bias", .eval = bias_eval, .slope = bias_slope};

cgam_status cgam_net_add_bias(cgam_net *net, const char *name, int x, const double *a, double gain)
{
    cgam_syn *s;
    cgam_status status = cgam_net_begin(net, &cgam_syn_bias, name, 1, &x, gain, &s);
    if (status != CGAM_OK) return status;
    status = cgam_syn_vector(net, s, a, s->size[0]);
    return cgam_net_end(net, status);
}
