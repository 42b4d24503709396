/* plasticity.c: input-driven plasticity, after Betteti, Baggio, Bullo and Zampieri (2025).
 *
 * Two patterns, and an input that is a mixture of both. The input does not push the state: it sets the weights,
 *
 *     x' = -x + W(u) tanh(g x),   W(u) = (1/N) (a_1 xi_1 xi_1' + a_2 xi_2 xi_2'),
 *
 * with the saliencies a of the two patterns in the input, a_1 + a_2 = 2. So the energy landscape follows the input: both
 * patterns are wells while their shares are alike, the louder one is deeper, and from some share on the other well is gone
 * and every start ends at the louder pattern. Along a pattern alone the state is m xi with m = a tanh(g m), which has an
 * answer other than 0 from a g = 1 on. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { N = 64, STEPS = 11 };
static const double gain = 2;

static double pattern(int mu, int i) { return (mu == 0 ? i : i / 2) % 2 ? -1 : 1; /* orthogonal */ }

/* Ends of two starts near the patterns: overlaps (1/N) xi . x with both, and energies. */
static cgam_status settle(cgam_env *env, const double a[2], double overlap[2][2], double energy[2])
{
    double U[2 * N], w[2] = {a[0] / (2 * N), a[1] / (2 * N)}, x[2 * N];
    const int twice[2] = {0, 0};
    cgam_net *net = NULL;
    cgam_flow_report report[2];
    for (int mu = 0; mu < 2; mu++)
        for (int i = 0; i < N; i++) {
            U[mu * N + i] = pattern(mu, i);
            x[mu * N + i] =
                i % 8 ? pattern(mu, i) : -pattern(mu, i); /* one unit in eight is wrong */
        }
    cgam_layer_opts units = cgam_layer_opts_default();
    units.lagr = cgam_lagr_find("tanh");
    units.param[0] = gain;
    const cgam_op *patterns = NULL;
    cgam_status status = cgam_net_new(env, &net);
    if (status == CGAM_OK) status = cgam_net_dense(net, U, CGAM_F64, 2, N, true, &patterns);
    if (status == CGAM_OK)
        status = cgam_net_add_layer(net, "units", 1, (const int64_t[]){N}, &units, NULL);
    const cgam_op *both[2] = {patterns, patterns};
    if (status == CGAM_OK) status = cgam_net_add_lowrank(net, "W(u)", 2, twice, both, w, 1);
    cgam_flow_opts f = cgam_flow_opts_default();
    f.method = CGAM_FLOW_RK4; /* fixed steps: the same numbers on every machine */
    f.step = 0.05;
    f.t_end = 60;
    if (status == CGAM_OK) status = cgam_flow_run(net, 2, x, &f, report);
    if (status == CGAM_OK)
        status = cgam_net_eval(net, 2, x, NULL, &(cgam_net_values){.energy = energy});
    for (int start = 0; start < 2; start++)
        for (int mu = 0; mu < 2; mu++) {
            overlap[start][mu] = 0;
            for (int i = 0; i < N; i++) overlap[start][mu] += pattern(mu, i) * x[start * N + i] / N;
        }
    cgam_net_free(net);
    return status;
}

static int which(const double overlap[2]) { return fabs(overlap[1]) > fabs(overlap[0]); }

static cgam_status run(cgam_env *env, bool *as_published)
{
    bool fine = true;
    int wells = 0;
    printf("share of pattern 1   started at 1     started at 2     energy of the two ends\n");
    for (int k = 0; k < STEPS; k++) {
        double share = (double)k / (STEPS - 1), overlap[2][2], energy[2];
        const double a[2] = {2 * share, 2 - 2 * share};
        cgam_status status = settle(env, a, overlap, energy);
        if (status != CGAM_OK) return status;
        const int first = which(overlap[0]), second = which(overlap[1]), louder = share < 0.5;
        printf("      %.1f            ends at %d        ends at %d        %8.3f  %8.3f\n", share,
               first + 1, second + 1, energy[0], energy[1]);
        const bool two = first == 0 && second == 1;
        wells += two;
        /* one well: the louder pattern; two: the louder is deeper, and they are alike at one half */
        if (!two) fine = fine && first == louder && second == louder;
        else if (k == STEPS / 2) fine = fine && fabs(energy[0] - energy[1]) < 1e-9;
        else fine = fine && energy[louder] < energy[!louder];
        /* m = a tanh(g m) along the pattern */
        const double m = fabs(overlap[0][first]);
        fine = fine && fabs(m - a[first] * tanh(gain * m)) < 1e-6;
    }
    *as_published = fine && wells > 1 && wells < STEPS;
    printf(
        "\n%d of %d mixtures keep both wells; the others retrieve the louder pattern from anywhere\n",
        wells, STEPS);
    return CGAM_OK;
}

int main(void)
{
    cgam_env *env;
    bool as_published = false;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    cgam_status status = run(env, &as_published);
    if (status != CGAM_OK) fprintf(stderr, "plasticity: %s\n", cgam_env_message(env));
    cgam_env_free(env);
    return status == CGAM_OK && as_published ? 0 : 1;
}
