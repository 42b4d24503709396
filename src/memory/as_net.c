/* as_net.c: banks as operators, memories as networks. */
#include <cgam/theory.h>

#include "base/blas.h"
#include "memory/engines.h"
#include "memory/gate.h"
#include "net/net.h"

#include <math.h>
#include <string.h>

/* ---- operators ------------------------------------------------------------------------------ */

static cgam_status bank_apply(void *user, int64_t count, const double *in, double *out)
{
    const cgam_bank *bank = user;
    return cgam_rows_score_many(bank->env, &bank->Z, count, in, out);
}

static cgam_status bank_apply_t(void *user, int64_t count, const double *in, double *out)
{
    const cgam_bank *bank = user;
    return cgam_rows_combine_many(bank->env, &bank->Z, count, in, out);
}

cgam_op cgam_bank_op(const cgam_bank *bank)
{
    return (cgam_op){.rows = bank->Z.n,
                     .cols = bank->Z.d,
                     .apply = bank_apply,
                     .apply_t = bank_apply_t,
                     .user = (void *)(uintptr_t)bank};
}

/* Z P: contexts pass through the projection on their way to the bank. */
typedef struct projected {
    cgam_op op;
    const cgam_bank *bank;
    const double *P; /* [d, d_c] */
} projected;

static cgam_status projected_apply(void *user, int64_t count, const double *in, double *out)
{
    const projected *W = user;
    int64_t d = W->bank->Z.d, d_c = W->op.cols;
    double *v = cgam_alloc(W->bank->env, (size_t)(count * d), sizeof *v);
    if (!v) return cgam_fail_nomem(W->bank->env, "a projected context");
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)d, (int)d_c, 1, in,
                (int)d_c, W->P, (int)d_c, 0, v, (int)d);
    cgam_status status = bank_apply((void *)(uintptr_t)W->bank, count, v, out);
    cgam_free(W->bank->env, v);
    return status;
}

static cgam_status projected_apply_t(void *user, int64_t count, const double *in, double *out)
{
    const projected *W = user;
    int64_t d = W->bank->Z.d, d_c = W->op.cols;
    double *v = cgam_alloc(W->bank->env, (size_t)(count * d), sizeof *v);
    if (!v) return cgam_fail_nomem(W->bank->env, "a projected context");
    cgam_status status = bank_apply_t((void *)(uintptr_t)W->bank, count, in, v);
    if (status == CGAM_OK)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, (int)d_c, (int)d, 1, v,
                    (int)d, W->P, (int)d_c, 0, out, (int)d_c);
    cgam_free(W->bank->env, v);
    return status;
}

static void free_part(cgam_env *env, void *thing) { cgam_free(env, thing); }

/* The bank's operator, or Z P, kept by the network. */
static cgam_status keep_bank(cgam_net *net, const cgam_bank *bank, const double *P, int64_t d_c,
                             const cgam_op **out)
{
    projected *W = cgam_alloc(bank->env, 1, sizeof *W);
    if (!W) return cgam_fail_nomem(bank->env, "a network");
    *W = (projected){.op = cgam_bank_op(bank), .bank = bank, .P = P};
    if (P)
        W->op = (cgam_op){.rows = bank->Z.n,
                          .cols = d_c,
                          .apply = projected_apply,
                          .apply_t = projected_apply_t,
                          .user = W};
    const cgam_op *op = &W->op;
    cgam_status status = cgam_net_keep(net, free_part, W);
    if (status == CGAM_OK) *out = op;
    return status;
}

/* ---- the two-stage memory ------------------------------------------------------------------- */

cgam_memory_net_opts cgam_memory_net_opts_default(void)
{
    return (cgam_memory_net_opts){
        .beta = 1, .lambda = 1, .tau_c = 1, .tau_s = 1, .tau_r = 1, .tau_q = 1};
}

static cgam_status add_layer(cgam_net *net, const char *name, int64_t size, const cgam_lagr *lagr,
                             double parameter, double tau)
{
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = lagr;
    o.param[0] = parameter;
    o.tau = tau;
    return cgam_net_add_layer(net, name, 1, &size, &o, NULL);
}

static cgam_status add_parts(cgam_net *net, const cgam_bank *bank, const cgam_memory_net_opts *o)
{
    int64_t n = bank->Z.n, d = bank->Z.d, d_c = o->P || o->W ? o->d_c : d;
    const cgam_op *Z = NULL, *W = NULL;
    cgam_status status = add_layer(net, "context", d_c, NULL, NAN, o->tau_c);
    if (status == CGAM_OK) status = add_layer(net, "gates", n, NULL, NAN, o->tau_s);
    if (status == CGAM_OK) {
        cgam_layer_opts retrieval = cgam_layer_opts_default();
        retrieval.lagr = o->entmax > 0 ? &cgam_lagr_entmax : &cgam_lagr_softmax;
        retrieval.param[0] = o->beta;
        if (o->entmax > 0) retrieval.param[1] = o->entmax;
        retrieval.tau = o->tau_r;
        status = cgam_net_add_layer(net, "retrieval", 1, &n, &retrieval, NULL);
    }
    if (status == CGAM_OK) status = add_layer(net, "query", d, NULL, NAN, o->tau_q);
    if (status == CGAM_OK) status = keep_bank(net, bank, NULL, bank->Z.d, &Z);
    if (status == CGAM_OK && o->P) status = keep_bank(net, bank, o->P, d_c, &W);
    if (status == CGAM_OK && o->W) status = cgam_net_dense(net, o->W, CGAM_F64, n, d_c, false, &W);
    if (status != CGAM_OK) return status;
    status = cgam_net_add_bilinear(net, "h1", CGAM_NET_GATES, CGAM_NET_CONTEXT, W ? W : Z, 1);
    if (status == CGAM_OK)
        status = cgam_net_add_gram(net, "h2", CGAM_NET_GATES, Z, o->alpha, bank->norm2);
    if (status == CGAM_OK)
        status = cgam_net_add_coupling(net, "h3", CGAM_NET_GATES, CGAM_NET_RETRIEVAL, o->lambda);
    if (status == CGAM_OK)
        status = cgam_net_add_bilinear(net, "h4", CGAM_NET_RETRIEVAL, CGAM_NET_QUERY, Z, 1);
    return status;
}

cgam_status cgam_memory_net_new(const cgam_bank *bank, const cgam_memory_net_opts *opts,
                                cgam_net **out)
{
    *out = NULL;
    cgam_status alone = cgam_bank_alone(bank, "a network");
    if (alone != CGAM_OK) return alone;
    cgam_env *env = bank->env;
    cgam_memory_net_opts o = opts ? *opts : cgam_memory_net_opts_default();
    if (!(o.alpha >= 0) || !(o.lambda >= 0))
        return cgam_fail(env, CGAM_E_ARG, "alpha is %g and lambda %g, they must be 0 or more",
                         o.alpha, o.lambda);
    if (o.P && o.W)
        return cgam_fail(env, CGAM_E_ARG, "give a projection or gate weights, not both");
    cgam_net *net;
    cgam_status status = cgam_net_new(env, &net);
    if (status == CGAM_OK) status = add_parts(net, bank, &o);
    if (status != CGAM_OK) {
        cgam_net_free(net);
        return status;
    }
    *out = net;
    return CGAM_OK;
}

/* ---- the fast path of the dense associative memory ---------------------------------------------- */

/* a = tanh(beta v) and h = Z a, into buffers of d + n. */
static cgam_status overlap_memories(const cgam_bank *bank, double beta, double power,
                                    const double *v, double **work)
{
    cgam_env *env = bank->env;
    *work = NULL;
    if (!(beta > 0) || !(power >= 2) || !isfinite(beta * power))
        return cgam_fail(env, CGAM_E_ARG,
                         "beta is %g and power is %g; beta must be above 0, power at least 2", beta,
                         power);
    double *a = *work = cgam_alloc(env, (size_t)(bank->Z.d + bank->Z.n), sizeof *a);
    if (!a) return cgam_fail_nomem(env, "a dense associative memory");
    for (int64_t j = 0; j < bank->Z.d; j++) a[j] = tanh(beta * v[j]);
    return cgam_bank_score(bank, a, a + bank->Z.d);
}

cgam_status cgam_dense_energy(const cgam_bank *bank, double beta, double power, const double *v,
                              double *energy)
{
    cgam_status alone = cgam_bank_alone(bank, "a network");
    if (alone != CGAM_OK) return alone;
    int64_t n = bank->Z.n, d = bank->Z.d;
    double *work, E = 0;
    cgam_status status = overlap_memories(bank, beta, power, v, &work);
    if (status == CGAM_OK) {
        for (int64_t j = 0; j < d; j++) {
            double z = fabs(beta * v[j]); /* log cosh z = |z| + log1p(exp(-2|z|)) - log 2 */
            E += (z * fabs(work[j]) - (z + log1p(exp(-2 * z)) - M_LN2)) / beta;
        }
        for (int64_t i = 0; i < n; i++) E -= work[d + i] > 0 ? pow(work[d + i], power) / power : 0;
        *energy = E;
    }
    cgam_free(bank->env, work);
    return status;
}

cgam_status cgam_dense_update(const cgam_bank *bank, double beta, double power, const double *v,
                              double *out)
{
    cgam_status alone = cgam_bank_alone(bank, "a network");
    if (alone != CGAM_OK) return alone;
    int64_t n = bank->Z.n, d = bank->Z.d;
    double *work;
    cgam_status status = overlap_memories(bank, beta, power, v, &work);
    if (status == CGAM_OK) {
        double *h = work + d;
        for (int64_t i = 0; i < n; i++) h[i] = h[i] > 0 ? pow(h[i], power - 1) : 0;
        status = cgam_bank_combine(bank, h, out);
    }
    cgam_free(bank->env, work);
    return status;
}
