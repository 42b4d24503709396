/* as_net.h: memories as networks - the two-stage memory, the modern Hopfield network and the dense
 * associative memory, each built of layers and synapses over a bank (net.h) and ready to flow
 * (flow.h). They are the definitions that the fast paths (recall.h, theory.h) are held against.
 */
#ifndef CGAM_AS_NET_H
#define CGAM_AS_NET_H

#include <cgam/gate.h>
#include <cgam/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The two-stage memory ----------------------------------------------------------------- */
/* Layers by number. Context, gates and query are quadratic, retrieval is a log-sum-exp.
 *   h1 -s'Wc      h2 alpha/2 s'(G - diag G)s      h3 -lambda s'p      h4 -q'Z'p
 *   tau_c c' = W's - c         tau_s s' = Wc - alpha (G - diag G)s + lambda p - s
 *   tau_r r' = lambda s + Zq - r         tau_q q' = Z'p - q                  p = softmax(beta r),
 * or the alpha-entmax of order `entmax`. */
enum { CGAM_NET_CONTEXT, CGAM_NET_GATES, CGAM_NET_RETRIEVAL, CGAM_NET_QUERY };

typedef struct cgam_memory_net_opts {
    double alpha, beta, lambda; /* default 0, 1, 1 */
    const double *P;            /* [d, d_c], default NULL = the identity, d_c = d */
    const double *W;            /* [n, d_c], default NULL; at most one of P and W, both borrowed
                                   until the network is freed */
    int64_t d_c;                /* needed with P or W */
    double tau_c, tau_s, tau_r, tau_q; /* default 1 each */
    double entmax;                     /* 1 < entmax <= 2; default 0 = softmax */
} cgam_memory_net_opts;
CGAM_API cgam_memory_net_opts cgam_memory_net_opts_default(void);

/* Borrows the bank until the network is freed. Context and query are not clamped by this: clamps
 * belong to a flow. An evaluation takes one pass over the bank in each direction. */
CGAM_API CGAM_NODISCARD cgam_status cgam_memory_net_new(const cgam_bank *bank,
                                                        const cgam_memory_net_opts *opts,
                                                        cgam_net **out);

/* A bank as an operator [n, d], valid as long as the bank; and the gate operator A(alpha) as one
 * [n, n], symmetric and never formed, valid as long as the gate. */
CGAM_API cgam_op cgam_bank_op(const cgam_bank *bank);
CGAM_API cgam_op cgam_gate_op(const cgam_gate *gate);

/* ---- Memories of one stage ---------------------------------------------------------------- */
/* The modern Hopfield network: a visible layer (0, "visible", identity, d numbers, tau 1) and
 * memories behind it. tau_hidden > 0 makes them a layer (1, "hidden", softmax with beta); 0 takes
 * them as settled, and the energy is then that of cgam_hopfield_energy but for the constants, and
 * a step of length 1 by Euler's method its update. */
CGAM_API CGAM_NODISCARD cgam_status cgam_hopfield_net_new(const cgam_bank *bank, double beta,
                                                          double tau_hidden, cgam_net **out);

/* A dense associative memory (Krotov and Hopfield 2016, 2021): visible units a = tanh(beta v) and
 * memories with rectified powers of degree `power`, as above. */
CGAM_API CGAM_NODISCARD cgam_status cgam_dense_net_new(const cgam_bank *bank, double beta,
                                                       double power, double tau_hidden,
                                                       cgam_net **out);
/* Its fast path, memories settled: E(v) = sum (v a - log cosh(beta v) / beta)
 *   - sum over memories of max(<zeta, a>, 0)^power / power,   v [d]. */
CGAM_API CGAM_NODISCARD cgam_status cgam_dense_energy(const cgam_bank *bank, double beta,
                                                      double power, const double *v,
                                                      double *energy);
/* out[d] = Z' max(Z a, 0)^(power - 1): the map whose fixed points the network rests at. The energy
 * does not rise under it. out may be v. */
CGAM_API CGAM_NODISCARD cgam_status cgam_dense_update(const cgam_bank *bank, double beta,
                                                      double power, const double *v, double *out);

#ifdef __cplusplus
}
#endif
#endif
