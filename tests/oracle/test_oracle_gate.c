/* The gate operator against the oracle: spectra, regimes, inertia and solves on every bank. */
#include "memory/gate.h"
#include "oracle/case.h"

static const json_t *alpha_entry(oracle_case *k, size_t i)
{
    const json_t *entry = json_array_get(oracle_key(oracle_key(k->doc, "inspect"), "alphas"), i);
    snprintf(k->where, sizeof k->where, "%s, alpha %s", k->name, oracle_text(entry, "name"));
    return entry;
}

static size_t alpha_count(const oracle_case *k)
{
    return json_array_size(oracle_key(oracle_key(k->doc, "inspect"), "alphas"));
}

static void about_bank(oracle_case *k)
{
    const json_t *want = oracle_key(k->doc, "inspect");
    const cgam_bank_info info = cgam_bank_describe(k->bank);
    const double top = oracle_number(want, "mu_max");
    ORACLE_CLOSE(k, info.norm_min, oracle_number(want, "norm_min"), 1e-14);
    ORACLE_CLOSE(k, info.norm_max, oracle_number(want, "norm_max"), 1e-14 * (1.0 + info.norm_max));

    cgam_gram_info gram;
    ORACLE_RUN(k, cgam_bank_gram(k->bank, &gram));
    ORACLE_CLOSE(k, gram.mu_min, oracle_number(want, "mu_min"), 1e-12 * top);
    ORACLE_CLOSE(k, gram.mu_max, top, 1e-12 * top);
    ORACLE_TRUE(k, gram.rank == oracle_int(want, "rank"));
    if (gram.rank < k->n) ORACLE_TRUE(k, gram.mu_min == 0.0);

    cgam_spectrum *spectrum;
    ORACLE_RUN(k, cgam_spectrum_new(k->bank, &spectrum));
    const cgam_spectrum_info modes = cgam_spectrum_describe(spectrum);
    ORACLE_CLOSE(k, modes.mu_min, oracle_number(want, "mu_min"), 1e-12 * top);
    ORACLE_CLOSE(k, modes.mu_max, top, 1e-12 * top);
    ORACLE_TRUE(k, modes.rank == oracle_int(want, "rank"));
    ORACLE_TRUE(k, modes.modes + modes.kernel == k->n);
    cgam_spectrum_free(spectrum);
}

TEST(bank_spectrum_matches) { oracle_each("inspect", about_bank); }

static void about_critical(oracle_case *k)
{
    const json_t *want = oracle_key(k->doc, "inspect");
    const double alpha =
        oracle_is_null(want, "alpha_crit") ? INFINITY : oracle_number(want, "alpha_crit");
    cgam_critical critical;
    ORACLE_RUN(k, cgam_gate_critical(k->bank, CGAM_EFFORT_FULL, &critical));
    ORACLE_TRUE(k, critical.proved);
    if (isinf(alpha)) ORACLE_TRUE(k, isinf(critical.alpha) && critical.alpha > 0.0);
    else ORACLE_CLOSE(k, critical.alpha, alpha, 1e-10 * alpha);
    ORACLE_LE(k, critical.alpha_lo, alpha * (1.0 + 1e-15));
    ORACLE_LE(k, alpha * (1.0 - 1e-15), critical.alpha_hi);

    ORACLE_RUN(k, cgam_gate_critical(k->bank, CGAM_EFFORT_FREE, &critical));
    ORACLE_LE(k, critical.alpha_lo, alpha * (1.0 + 1e-15));
    ORACLE_LE(k, alpha * (1.0 - 1e-15), critical.alpha_hi);

    cgam_spectrum *spectrum;
    ORACLE_RUN(k, cgam_spectrum_new(k->bank, &spectrum));
    const double from_modes = cgam_spectrum_describe(spectrum).alpha_crit;
    if (isinf(alpha)) ORACLE_TRUE(k, isinf(from_modes));
    else ORACLE_CLOSE(k, from_modes, alpha, 1e-10 * alpha);
    cgam_spectrum_free(spectrum);
}

TEST(critical_alpha_matches) { oracle_each("inspect", about_critical); }

static void about_regime(oracle_case *k)
{
    cgam_gate_opts opts = cgam_gate_opts_default();
    opts.effort = CGAM_EFFORT_FULL;
    for (size_t i = 0; i < alpha_count(k); i++) {
        const json_t *want = alpha_entry(k, i);
        const double eta = oracle_number(want, "eta_min");
        cgam_gate *gate;
        ORACLE_RUN(k, cgam_gate_new(k->bank, oracle_number(want, "alpha"), &opts, &gate));
        const cgam_gate_info info = cgam_gate_describe(gate);
        if (strcmp(cgam_word(cgam_regime_words, info.regime), oracle_text(want, "regime")) != 0)
            fail_msg("%s: regime %s, want %s", k->where, cgam_word(cgam_regime_words, info.regime),
                     oracle_text(want, "regime"));
        if (!oracle_is_null(want, "negative"))
            ORACLE_CLOSE(k, (double)info.negative, oracle_number(want, "negative"), 0.0);
        /* eta_min = 1 + alpha omega_min; at alpha_crit the two cancel, hence an absolute bound. */
        const double allowed = 1e-10 * fmax(1.0, fabs(eta));
        ORACLE_TRUE(k, info.eta_min_exact);
        ORACLE_CLOSE(k, info.eta_min, eta, allowed);
        cgam_gate_free(gate);
    }
}

TEST(regime_and_inertia_match) { oracle_each("inspect", about_regime); }

/* |A y - x| / (|A| |y| + |x|) in infinity norms, A formed in full in long double. */
static double backward_error(oracle_case *k, const double *Z, double alpha, const double *x,
                             const double *y)
{
    long double worst = 0.0L, norm = 0.0L;
    for (int64_t i = 0; i < k->n; i++) {
        long double sum = y[i], size = 1.0L;
        for (int64_t j = 0; j < k->n; j++) {
            if (j == i) continue;
            long double g = 0.0L;
            for (int64_t l = 0; l < k->d; l++)
                g += (long double)Z[i * k->d + l] * (long double)Z[j * k->d + l];
            sum += (long double)alpha * g * (long double)y[j];
            size += fabsl((long double)alpha * g);
        }
        worst = fmaxl(worst, fabsl(sum - (long double)x[i]));
        norm = fmaxl(norm, size);
    }
    return (double)(worst / (norm * (long double)oracle_max_abs(y, k->n) +
                             (long double)oracle_max_abs(x, k->n)));
}

static void about_solve(oracle_case *k)
{
    double *Z = oracle_rows(k), *y = oracle_zeros(k->n), *back = oracle_zeros(k->n);
    cgam_spectrum *spectrum;
    ORACLE_RUN(k, cgam_spectrum_new(k->bank, &spectrum));
    for (size_t i = 0; i < alpha_count(k); i++) {
        const json_t *entry = alpha_entry(k, i);
        if (oracle_is_null(entry, "solve")) continue;
        const double alpha = oracle_number(entry, "alpha");
        double *want = oracle_vector(entry, "solve", k->n);
        const double size = oracle_max_abs(want, k->n), cond = oracle_number(entry, "cond");
        /* A backward error of 1e-14 moves the solution by at most cond times that, twice. */
        const double allowed = size * (1e-10 + 2e-14 * cond * sqrt((double)k->n));

        cgam_gate *gate;
        double reported;
        ORACLE_RUN(k, cgam_gate_new(k->bank, alpha, NULL, &gate));
        ORACLE_RUN(k, cgam_gate_solve(gate, k->x, y, &reported));
        ORACLE_LE(k, reported, 1e-14);
        ORACLE_LE(k, backward_error(k, Z, alpha, k->x, y), 1e-14);
        ORACLE_CLOSE_ALL(k, y, want, k->n, allowed);

        ORACLE_RUN(k, cgam_gate_apply(gate, want, back));
        ORACLE_CLOSE_ALL(k, back, k->x, k->n,
                         1e-13 * size * oracle_number(entry, "eta_max") + 1e-13);
        cgam_gate_free(gate);

        ORACLE_RUN(k, cgam_spectrum_solve(spectrum, alpha, k->x, y));
        ORACLE_CLOSE_ALL(k, y, want, k->n, allowed);
        free(want);
    }
    cgam_spectrum_free(spectrum);
    free(Z);
    free(y);
    free(back);
}

TEST(gate_solve_matches_dense_solve) { oracle_each("inspect", about_solve); }

static void about_range(oracle_case *k)
{
    if (k->P || k->W) return;
    double *y = oracle_zeros(k->n);
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "first")); i++) {
        const json_t *entry = oracle_entry(k, "first", i);
        cgam_gate *gate;
        ORACLE_RUN(k, cgam_gate_new(k->bank, oracle_number(entry, "alpha"), NULL, &gate));
        for (int64_t q = 0; q < k->queries; q++) {
            const json_t *query = json_array_get(oracle_key(entry, "queries"), (size_t)q);
            double *want = oracle_vector(query, "s", k->n);
            ORACLE_RUN(k, cgam_gate_solve_range(gate, k->C + (k->c_shared ? 0 : q * k->d), y));
            ORACLE_CLOSE_ALL(k, y, want, k->n,
                             oracle_allowed(oracle_max_abs(want, k->n),
                                            oracle_number(oracle_key(query, "unit"), "s")));
            free(want);
        }
        cgam_gate_free(gate);
    }
    free(y);
}

TEST(solve_in_the_range_of_z_matches) { oracle_each("first", about_range); }

static void about_free_context(oracle_case *k)
{
    if (k->W) return;
    for (size_t i = 0; i < alpha_count(k); i++) {
        const json_t *entry = alpha_entry(k, i);
        if (oracle_is_null(entry, "free_context_margin")) continue;
        const double want = oracle_number(entry, "free_context_margin");
        cgam_gate *gate;
        double margin;
        ORACLE_RUN(k, cgam_gate_new(k->bank, oracle_number(entry, "alpha"), NULL, &gate));
        ORACLE_RUN(k, cgam_context_margin(gate, k->P, k->d_c, &margin));
        ORACLE_CLOSE(k, margin, want, 1e-10 * fmax(1.0, fabs(want)));
        cgam_gate_free(gate);
    }
}

TEST(free_context_margin_matches) { oracle_each("inspect", about_free_context); }
