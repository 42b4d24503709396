/* context_masks.c: a context-modular memory, after Podlaski, Agnes and Vogels (2025).
 *
 * A Hopfield network of N units. Each of K contexts has a random share a of the units; P patterns of +1 and -1 are stored
 * in each context, on its units alone:
 *
 *     W = (1/aN) sum over contexts k and their patterns of (m_k xi)(m_k xi)'
 *
 * and recalled with that context active, which silences all other units. How many patterns can all contexts hold together?
 * Noise from the own context is that of a network of aN units; from each other context it is smaller by a^2. So the
 * capacity is about 0.14 N K a / (1 + (K - 1) a^2): it grows with the number of contexts up to 1/a times that of one
 * network, where without masks (a = 1) it does not grow at all. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { N = 160, CONTEXTS = 16, TESTED = 24, MOST = 3 * N };
static const double shares[] = {1, 0.5, 0.25};

static signed char mask[CONTEXTS][N], pattern[MOST][N];

/* A number in [0, 1), by a linear congruence of 64 bits (Knuth). */
static double uniform(unsigned long long *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static void draw(double share)
{
    unsigned long long state = 1;
    for (int k = 0; k < CONTEXTS; k++) /* exactly share * N units, each set equally likely */
        for (int i = 0, taken = 0; i < N; i++) {
            mask[k][i] = uniform(&state) * (N - i) < share * N - taken;
            taken += mask[k][i];
        }
    for (int p = 0; p < MOST; p++)
        for (int i = 0; i < N; i++) pattern[p][i] = uniform(&state) < 0.5 ? -1 : 1;
}

/* The share of patterns of the first contexts that are recalled; pattern p belongs to context p mod K. */
static cgam_status recalled(cgam_env *env, double share, int K, int count, double *right)
{
    static double U[MOST * N], w[MOST], x[TESTED * N];
    int tested = 0, good = 0;
    cgam_status status = CGAM_OK;
    for (int k = 0; k < K && k < 4 && status == CGAM_OK; k++) {
        int batch = 0, own[TESTED];
        for (int p = 0; p < count; p++) {
            w[p] = 1 / (2 * share * N);
            for (int i = 0; i < N; i++) /* silent units neither send nor hear */
                U[p * N + i] = pattern[p][i] * mask[p % K][i] * mask[k][i];
            if (p % K == k && batch < TESTED / 2) own[batch++] = p;
        }
        for (int b = 0; b < batch; b++)
            for (int i = 0; i < N; i++) /* one unit in ten is wrong */
                x[b * N + i] = pattern[own[b]][i] * mask[k][i] * ((i + b) % 10 ? 1 : -1);
        cgam_net *net = NULL;
        const cgam_op *stored = NULL;
        cgam_flow_report report[TESTED];
        cgam_layer_opts units = cgam_layer_opts_default();
        units.lagr = cgam_lagr_find("tanh");
        units.param[0] = 8; /* nearly binary */
        status = cgam_net_new(env, &net);
        if (status == CGAM_OK) status = cgam_net_dense(net, U, CGAM_F64, count, N, false, &stored);
        if (status == CGAM_OK)
            status = cgam_net_add_layer(net, "units", 1, (const int64_t[]){N}, &units, NULL);
        const cgam_op *both[2] = {stored, stored};
        const int twice[2] = {0, 0};
        if (status == CGAM_OK) status = cgam_net_add_lowrank(net, "W", 2, twice, both, w, 1);
        cgam_flow_opts f = cgam_flow_opts_default();
        f.method = CGAM_FLOW_EULER;
        f.step = 0.5;
        f.t_end = 15;
        if (status == CGAM_OK && batch > 0) status = cgam_flow_run(net, batch, x, &f, report);
        cgam_net_free(net);
        for (int b = 0; b < batch; b++) {
            double same = 0;
            for (int i = 0; i < N; i++)
                same += mask[k][i] && (x[b * N + i] > 0) == (pattern[own[b]][i] > 0);
            good += same >= 0.95 * share * N;
            tested++;
        }
    }
    *right = tested ? (double)good / tested : 1;
    return status;
}

/* The largest number of patterns, a multiple of 8, up to which nine in ten are recalled. */
static cgam_status capacity(cgam_env *env, double share, int K, int *most)
{
    cgam_status status = CGAM_OK;
    double right = 1;
    for (*most = 0; *most + 8 <= MOST && status == CGAM_OK; *most += 8) {
        status = recalled(env, share, K, *most + 8, &right);
        if (right < 0.9) break;
    }
    return status;
}

static cgam_status run(cgam_env *env, bool *as_published)
{
    int all[3][5];
    cgam_status status = CGAM_OK;
    printf("patterns that %d units hold\ncontexts        1     2     4     8    16\n", N);
    for (int s = 0; s < 3; s++) {
        draw(shares[s]);
        printf("a = %-4g   ", shares[s]);
        for (int k = 0; k < 5 && status == CGAM_OK; k++) {
            status = capacity(env, shares[s], 1 << k, &all[s][k]);
            printf("%6d", all[s][k]);
            fflush(stdout);
        }
        printf("\n");
        if (status != CGAM_OK) return status;
    }
    /* without masks contexts change little; with them capacity grows, beyond that of the whole network */
    *as_published = all[0][4] < 1.5 * all[0][0];
    for (int s = 1; s < 3; s++)
        *as_published = *as_published && all[s][4] > 1.4 * all[0][4] && all[s][4] > 2 * all[s][0] &&
                        all[s][0] < all[0][0];
    *as_published = *as_published && all[2][4] > all[1][4];
    return status;
}

int main(void)
{
    cgam_env *env;
    bool as_published = false;
    if (cgam_env_new(NULL, &env) != CGAM_OK) return 3;
    cgam_status status = run(env, &as_published);
    if (status != CGAM_OK) fprintf(stderr, "context_masks: %s\n", cgam_env_message(env));
    cgam_env_free(env);
    return status == CGAM_OK && as_published ? 0 : 1;
}
