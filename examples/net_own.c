/* net_own.c: a Lagrangian and a synapse of one's own.
 *
 * Eight phases x sit on a ring. Their Lagrangian is L = sum sqrt(1 + x^2), so that activations
 * x / sqrt(1 + x^2) stay between -1 and 1. A synapse holds neighbours together, E = k/2 sum of
 * (a[i+1] - a[i])^2, and a bias pulls one of them up. A struct of three functions makes the first, a
 * struct of two the second; energies, flows, Jacobians and files work as for all others. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { N = 8 };

/* ---- L = sum sqrt(1 + x^2) ---------------------------------------------------------------------- */
static cgam_status value(const cgam_lagr *self, const double *theta, int64_t n, const double *x,
                         double *L)
{
    (void)self, (void)theta;
    *L = 0;
    for (int64_t i = 0; i < n; i++) *L += hypot(1, x[i]);
    return CGAM_OK;
}

static cgam_status activation(const cgam_lagr *self, const double *theta, int64_t n,
                              const double *x, double *a)
{
    (void)self, (void)theta;
    for (int64_t i = 0; i < n; i++) a[i] = x[i] / hypot(1, x[i]);
    return CGAM_OK;
}

static cgam_status hessian(const cgam_lagr *self, const double *theta, int64_t n, const double *x,
                           const double *a, const double *v, double *out)
{
    (void)self, (void)theta, (void)a;
    for (int64_t i = 0; i < n; i++) out[i] = v[i] / pow(hypot(1, x[i]), 3);
    return CGAM_OK;
}

/* ---- E = k/2 sum (a[i+1] - a[i])^2 on a ring ---------------------------------------------------- */
static cgam_status ring(void *user, int k, const int64_t *size, const double *const *act,
                        double *energy, double *const *current)
{
    (void)k;
    double stiffness = *(const double *)user;
    int64_t n = size[0];
    *energy = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t next = (i + 1) % n;
        double apart = act[0][next] - act[0][i];
        *energy += 0.5 * stiffness * apart * apart;
        if (!current[0]) continue;
        current[0][i] += stiffness * apart; /* minus the gradient */
        current[0][next] -= stiffness * apart;
    }
    return CGAM_OK;
}

static cgam_status run(cgam_env *env)
{
    const cgam_lagr bounded = {.name = "bounded",
                               .formula = "sum sqrt(1 + x^2)",
                               .elementwise = true,
                               .value = value,
                               .activation = activation,
                               .hessian = hessian};
    double stiffness = 2, push[N] = {3}, x[N] = {0}, a[N], parts[3], leading[2];
    const int64_t shape = N;
    const int phases = 0;
    cgam_net *net = NULL;
    cgam_flow_report r;
    cgam_eigen eigen;
    cgam_layer_opts o = cgam_layer_opts_default();
    o.lagr = &bounded;
    cgam_status status = cgam_net_new(env, &net);
    if (status == CGAM_OK) status = cgam_net_add_layer(net, "phases", 1, &shape, &o, NULL);
    if (status == CGAM_OK)
        status = cgam_net_add_synapse(net, "ring", 1, &phases, &(cgam_synapse){.eval = ring},
                                      &stiffness);
    if (status == CGAM_OK) status = cgam_net_add_bias(net, "push", 0, push, 1);
    if (status == CGAM_OK) status = cgam_flow_run(net, 1, x, NULL, &r);
    if (status == CGAM_OK)
        status =
            cgam_net_eval(net, 1, x, NULL, &(cgam_net_values){.activation = a, .parts = parts});
    if (status == CGAM_OK) status = cgam_net_eigen(net, x, NULL, 2, 1e-9, leading, &eigen);
    if (status == CGAM_OK) {
        printf("ended: %s\nactivations ", cgam_word(cgam_flow_end_words, r.end));
        for (int i = 0; i < N; i++) printf(" %.4f", a[i]);
        printf("\nenergy %.5f = phases %.5f, ring %.5f, push %.5f\n", r.energy_end, parts[0],
               parts[1], parts[2]);
        printf("stable: the Jacobian's largest eigenvalue is %.4f\n", leading[0]);
    }
    cgam_net_free(net);
    return status;
}

int main(void)
{
    cgam_env *env;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    cgam_status status = run(env);
    if (status != CGAM_OK) fprintf(stderr, "net_own: %s\n", cgam_env_message(env));
    cgam_env_free(env);
    return status == CGAM_OK ? 0 : 1;
}
