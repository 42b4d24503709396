/* spectrum_sweep.c: one eigen-decomposition, many penalties alpha.
 *
 * The gates alone (lambda = 0) answer an input u by tau ds/dt = u - A(alpha) s. Below alpha_crit
 * they settle at A^-1 u; above it one memory takes all, and the theory says which and when. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>

enum { N = 50, D = 10 };
static double Z[N][D], u[N], s[N];

/* Uniform in [-1, 1), the same on every machine. */
static double noise(void)
{
    static uint64_t state = 7;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-52 - 1;
}

/* A cluster: one direction plus noise. cgam_bank_new normalises. The input favours nobody much. */
static void make(void)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++) Z[i][j] = (j == 0 ? 2 : 0) + 0.5 * noise();
        u[i] = (1 + 0.1 * noise()) / N;
    }
}

/* The largest entry of softmax(beta s). */
static double peak(double beta)
{
    double top = s[0], sum = 0;
    for (int i = 1; i < N; i++) top = fmax(top, s[i]);
    for (int i = 0; i < N; i++) sum += exp(beta * (s[i] - top));
    return 1 / sum;
}

static cgam_status sweep(const cgam_spectrum *spectrum)
{
    static const double alphas[] = {0, 0.5, 0.9, 0.99, 1.01, 1.1, 1.5};
    const double beta = 3.5, tau = 1, delta = 0.01;
    cgam_spectrum_info info = cgam_spectrum_describe(spectrum);
    printf("%d memories in %d dimensions, rank %lld, alpha_crit %.6f\n\n", N, D,
           (long long)info.rank, info.alpha_crit);
    puts("alpha   eta_min    peak p  winner   t* for p >= 0.99");
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++) {
        double alpha = alphas[k], eta_min = 1 + alpha * info.omega_min;
        printf("%5.2f  %8.4f", alpha, eta_min);
        if (alpha < info.alpha_crit) {
            cgam_status status = cgam_spectrum_solve(spectrum, alpha, u, s);
            if (status != CGAM_OK) return status;
            printf("  %8.5f\n", peak(beta));
            continue;
        }
        cgam_horizon h;
        cgam_status status =
            cgam_supercritical_horizon(spectrum, alpha, tau, beta, delta, u, NULL, true, &h);
        if (status == CGAM_OK && h.winner >= 0 && isfinite(h.time))
            status = cgam_spectrum_transient(spectrum, alpha, tau, h.time, u, NULL, s);
        if (status != CGAM_OK) return status;
        if (h.winner < 0) printf("  no winner: %s\n", h.reason);
        else printf("  %8.5f  %6lld  %8.3f\n", peak(beta), (long long)h.winner, h.time);
    }
    return CGAM_OK;
}

int main(void)
{
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_spectrum *spectrum = NULL;
    cgam_bank_opts unit = cgam_bank_opts_default();
    unit.normalize = true;
    make();
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, N, D, &unit, &bank);
    if (status == CGAM_OK) status = cgam_spectrum_new(bank, &spectrum);
    if (status == CGAM_OK) status = sweep(spectrum);

    if (status != CGAM_OK)
        fprintf(stderr, "%s\n", env ? cgam_env_message(env) : cgam_status_text(status));
    cgam_spectrum_free(spectrum);
    cgam_bank_free(bank);
    cgam_env_free(env);
    return status != CGAM_OK;
}
