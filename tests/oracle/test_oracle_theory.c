/* Every theorem's function against the oracle. */
#include "oracle/case.h"

static void about_separation(oracle_case *k)
{
    const json_t *rows = oracle_key(k->doc, "separation");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = oracle_entry(k, "separation", i);
        if (oracle_is_null(row, "threshold")) continue;
        const double want = oracle_number(row, "threshold");
        ORACLE_CLOSE(k,
                     cgam_separation_threshold(oracle_int(row, "n"), oracle_number(row, "beta"),
                                               oracle_number(row, "eps")),
                     want, 1e-13 * fmax(1.0, fabs(want)));
    }
    rows = oracle_key(k->doc, "logistic");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = oracle_entry(k, "logistic", i);
        const int64_t n = oracle_int(row, "n");
        const double beta = oracle_number(row, "beta"), gap = oracle_number(row, "gap");
        const double want = oracle_number(row, "p_lower_bound");
        ORACLE_CLOSE(k, cgam_separation_bound(n, beta, gap), want, 1e-13 * want);
        if (want > 0.0)
            ORACLE_CLOSE(k, cgam_separation_bound_log(n, beta, gap), log(want),
                         1e-12 * fmax(1.0, fabs(log(want))));
    }
    rows = oracle_key(k->doc, "softmax_norm");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = oracle_entry(k, "softmax_norm", i);
        const int64_t n = (int64_t)json_array_size(oracle_key(row, "p"));
        double *p = oracle_vector(row, "p", n);
        const double norm = cgam_softmax_norm(n, p);
        ORACLE_CLOSE(k, norm, oracle_number(row, "norm"), 1e-13);
        ORACLE_CLOSE(k, cgam_softmax_norm_bound(n, p), oracle_number(row, "bound"), 1e-14);
        ORACLE_LE(k, norm, 0.5 + DBL_EPSILON);
        free(p);
    }
}

TEST(scalar_theorems_match) { oracle_each("separation", about_separation); }

/* Gaps, decomposition, energy, fold margin and local constant at the oracle's fixed points. */
static void about_fixed_points(oracle_case *k)
{
    double *b = oracle_zeros(k->n), *bias = oracle_zeros(k->n), *feedback = oracle_zeros(k->n),
           *gradient = oracle_zeros(k->n);
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "coupled")); i++) {
        const json_t *entry = oracle_entry(k, "coupled", i);
        const double beta = oracle_number(entry, "beta"), lambda = oracle_number(entry, "lambda"),
                     eta = oracle_number(entry, "eta_min");
        cgam_gate *gate;
        ORACLE_RUN(k, cgam_gate_new(k->bank, oracle_number(entry, "alpha"), NULL, &gate));
        const double constant = oracle_number(entry, "contraction");
        ORACLE_CLOSE(k, cgam_contraction(beta, lambda, eta), constant, 1e-14 * constant);
        ORACLE_CLOSE(k, cgam_contraction_lambda_max(beta, eta),
                     oracle_number(entry, "lambda_unique_max"), 1e-13);
        for (int64_t q = 0; q < k->queries; q++) {
            const json_t *want = json_array_get(oracle_key(entry, "queries"), (size_t)q);
            double *u = oracle_input(k, q), *p = oracle_vector(want, "p", k->n),
                   *s = oracle_vector(want, "s", k->n), *r = oracle_vector(want, "r", k->n);
            ORACLE_RUN(k, cgam_bank_score(k->bank, k->Q + q * k->d, b));
            const double allowed = oracle_allowed(oracle_max_abs(r, k->n),
                                                  oracle_number(oracle_key(want, "unit"), "r"));

            const json_t *focus = oracle_key(want, "at_target");
            const cgam_gaps gaps = cgam_separation_gaps(k->n, b, s, lambda, k->target[q]);
            ORACLE_MAYBE(k, gaps.gap, oracle_number(focus, "gap"), allowed);
            ORACLE_MAYBE(k, gaps.raw, oracle_number(focus, "gap_raw"), allowed);
            ORACLE_MAYBE(k, gaps.gate, oracle_number(focus, "gap_gate"), allowed);
            if (k->n > 1) {
                ORACLE_CLOSE(k, gaps.sum, gaps.raw + lambda * gaps.gate, 1e-14);
                ORACLE_LE(k, gaps.sum, gaps.gap + 1e-13 * fmax(1.0, fabs(gaps.gap)));
            }

            ORACLE_RUN(k, cgam_retrieval_parts(gate, lambda, u, p, bias, feedback));
            for (int64_t j = 0; j < k->n; j++) bias[j] += b[j] + feedback[j];
            ORACLE_CLOSE_ALL(k, bias, r, k->n, allowed);

            double energy, margin, local;
            bool margin_proved, local_proved;
            ORACLE_RUN(k, cgam_coupled_energy(gate, beta, lambda, b, u, s, &energy, gradient));
            const double e = oracle_number(want, "energy_end");
            ORACLE_CLOSE(k, energy, e, 1e-10 * fmax(1.0, fabs(e)) + allowed);
            ORACLE_LE(k, oracle_max_abs(gradient, k->n), allowed);

            ORACLE_RUN(k, cgam_fold_margin(gate, beta, lambda, p, &margin, &margin_proved));
            ORACLE_CLOSE(k, margin, oracle_number(want, "fold_margin"), 1e-9);
            ORACLE_TRUE(k, margin_proved);
            ORACLE_RUN(k, cgam_contraction_local(gate, beta, lambda, p, &local, &local_proved));
            const double l = oracle_number(want, "local_contraction");
            ORACLE_CLOSE(k, local, l, 1e-9 * fmax(1.0, l));
            /* With nearly all of p on one memory, 1 - p has no digits left to prove it with. */
            if (l > 1e-6) ORACLE_TRUE(k, local_proved);
            free(u);
            free(p);
            free(s);
            free(r);
        }
        cgam_gate_free(gate);
    }
    free(b);
    free(bias);
    free(feedback);
    free(gradient);
}

TEST(theory_at_fixed_points_matches) { oracle_each("coupled", about_fixed_points); }

static void about_supercritical(oracle_case *k)
{
    cgam_spectrum *spectrum;
    double *got = oracle_zeros(k->n);
    ORACLE_RUN(k, cgam_spectrum_new(k->bank, &spectrum));
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "supercritical")); i++) {
        const json_t *row = oracle_entry(k, "supercritical", i);
        const double alpha = oracle_number(row, "alpha"), beta = oracle_number(row, "beta"),
                     delta = oracle_number(row, "delta"), tau = oracle_number(row, "tau");
        double *u = oracle_vector(row, "u", k->n), *s0 = oracle_vector(row, "s0", k->n);
        const bool from_zero = oracle_max_abs(s0, k->n) == 0.0;

        for (size_t j = 0; j < json_array_size(oracle_key(row, "transient")); j++) {
            const json_t *point = json_array_get(oracle_key(row, "transient"), j);
            double *s = oracle_vector(point, "s", k->n);
            ORACLE_RUN(k, cgam_spectrum_transient(spectrum, alpha, tau, oracle_number(point, "t"),
                                                  u, from_zero ? NULL : s0, got));
            ORACLE_CLOSE_ALL(k, got, s, k->n, 1e-10 * fmax(1.0, oracle_max_abs(s, k->n)));
            free(s);
        }

        cgam_winner winner;
        cgam_horizon horizon;
        ORACLE_RUN(k,
                   cgam_supercritical_winner(spectrum, alpha, u, from_zero ? NULL : s0, &winner));
        if (oracle_is_null(row, "winner")) {
            ORACLE_TRUE(k, winner.index == -1);
            ORACLE_TRUE(k, winner.reason != NULL);
            ORACLE_RUN(k, cgam_supercritical_horizon(spectrum, alpha, tau, beta, delta, u, NULL,
                                                     true, &horizon));
            ORACLE_TRUE(k, horizon.reason != NULL);
        } else {
            const double growth = oracle_number(row, "gamma");
            const double gap = oracle_number(row, "xi_gap");
            ORACLE_TRUE(k, winner.index == oracle_int(row, "winner"));
            ORACLE_TRUE(k, winner.reason == NULL);
            ORACLE_CLOSE(k, winner.gamma, growth, 1e-10);
            /* gap is a difference of entries divided by gamma, which has lost digits itself. */
            ORACLE_CLOSE(k, winner.gap, gap, 1e-10 * fmax(1.0, gap) * fmax(1.0, 1.0 / growth));
        }
        if (!oracle_is_null(row, "t_star_B0")) {
            const double bare = oracle_number(row, "t_star_B0");
            ORACLE_RUN(k, cgam_supercritical_horizon(spectrum, alpha, tau, beta, delta, u, NULL,
                                                     false, &horizon));
            ORACLE_TRUE(k, horizon.winner == oracle_int(row, "winner"));
            ORACLE_CLOSE(k, horizon.gap, oracle_number(row, "delta0"), 1e-10);
            ORACLE_CLOSE(k, horizon.time, bare, 1e-9 * bare);
            ORACLE_RUN(k, cgam_supercritical_horizon(spectrum, alpha, tau, beta, delta, u, NULL,
                                                     true, &horizon));
            ORACLE_TRUE(k, horizon.winner == oracle_int(row, "winner"));
            ORACLE_TRUE(k, horizon.closed_form == !oracle_is_null(row, "t_star"));
            if (horizon.closed_form) {
                const double rest = oracle_number(row, "B"), time = oracle_number(row, "t_star");
                ORACLE_CLOSE(k, horizon.rest, rest, 1e-9 * fmax(1.0, rest));
                ORACLE_CLOSE(k, horizon.time, time, 1e-9 * time);
            } else {
                /* No sooner than p settles, no later than the gap alone would prove it. */
                ORACLE_LE(k, oracle_number(row, "t_settled") * (1.0 - 1e-9), horizon.time);
                ORACLE_LE(k, horizon.time, oracle_number(row, "t_gap") * (1.0 + 1e-6));
            }
        }
        free(u);
        free(s0);
    }

    /* At alpha_crit itself gamma is 0 up to rounding and the horizon takes its limit. */
    const json_t *limit = oracle_key(k->doc, "horizon_limit");
    snprintf(k->where, sizeof k->where, "%s, at alpha_crit", k->name);
    double *u = oracle_vector(limit, "u", k->n);
    for (int rest = 0; rest < 2; rest++) {
        const double want = oracle_number(limit, rest ? "t_star" : "t_star_B0");
        cgam_horizon horizon;
        ORACLE_RUN(
            k, cgam_supercritical_horizon(spectrum, cgam_spectrum_describe(spectrum).alpha_crit,
                                          oracle_number(limit, "tau"), oracle_number(limit, "beta"),
                                          oracle_number(limit, "delta"), u, NULL, rest, &horizon));
        ORACLE_TRUE(k, horizon.winner == oracle_int(limit, "winner"));
        ORACLE_CLOSE(k, horizon.time, want, 1e-9 * want);
    }
    free(u);
    cgam_spectrum_free(spectrum);
    free(got);
}

TEST(supercritical_winner_and_horizon_match) { oracle_each("supercritical", about_supercritical); }

static void about_threshold(oracle_case *k)
{
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "lambda_critical")); i++) {
        const json_t *row = oracle_entry(k, "lambda_critical", i);
        cgam_coupled_critical got;
        ORACLE_RUN(k, cgam_coupled_critical_find(k->bank, oracle_number(row, "lambda"),
                                                 oracle_number(row, "beta"), &got));
        ORACLE_TRUE(k, got.unit == json_is_true(oracle_key(row, "unit")));
        ORACLE_TRUE(k, got.balanced == json_is_true(oracle_key(row, "equal_row_sums")));
        ORACLE_TRUE(k, got.weak == json_is_true(oracle_key(row, "weak_coupling")));
        if (!oracle_is_null(row, "mu_perp_min"))
            ORACLE_CLOSE(k, got.mu_perp_min, oracle_number(row, "mu_perp_min"), 1e-12);
        if (!oracle_is_null(row, "mu_perp_below_1"))
            ORACLE_TRUE(k, got.below_one == json_is_true(oracle_key(row, "mu_perp_below_1")));
        if (!oracle_is_null(row, "A_positive"))
            ORACLE_TRUE(k, got.positive == json_is_true(oracle_key(row, "A_positive")));
        ORACLE_MAYBE(k, got.alpha, oracle_number(row, "alpha"), 1e-11);
    }
}

TEST(lambda_critical_alpha_matches) { oracle_each("lambda_critical", about_threshold); }

static void about_fold(oracle_case *k)
{
    double *b = oracle_zeros(k->n);
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "fold")); i++) {
        const json_t *row = oracle_entry(k, "fold", i);
        const int64_t query = oracle_int(row, "query");
        const double want = oracle_number(row, "alpha"), beta = oracle_number(row, "beta"),
                     lambda = oracle_number(row, "lambda");
        double *u = oracle_input(k, query);
        ORACLE_RUN(k, cgam_bank_score(k->bank, k->Q + query * k->d, b));
        cgam_fold fold;
        ORACLE_RUN(k, cgam_fold_find(k->bank, lambda, beta, b, u, INFINITY, 1e-8, &fold));
        ORACLE_CLOSE(k, fold.alpha, want, 2e-8);
        /* The margin vanishes like the root of the distance to the fold. */
        ORACLE_LE(k, fabs(fold.margin), 1e-2);
        ORACLE_RUN(k, cgam_fold_find(k->bank, lambda, beta, b, u, 0.9 * want, 1e-8, &fold));
        ORACLE_TRUE(k, isnan(fold.alpha));
        free(u);
    }
    free(b);
}

TEST(fold_of_the_branch_matches) { oracle_each("fold", about_fold); }

static void about_hopfield(oracle_case *k)
{
    double *got = oracle_zeros(k->d);
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "hopfield")); i++) {
        const json_t *row = oracle_entry(k, "hopfield", i);
        const double beta = oracle_number(row, "beta");
        double *xi = oracle_vector(row, "xi", k->d), *update = oracle_vector(row, "update", k->d),
               *fixed = oracle_vector(row, "fixed_point", k->d);
        double energy, change;
        int64_t iterations;
        ORACLE_RUN(k, cgam_hopfield_energy(k->bank, beta, xi, &energy));
        ORACLE_CLOSE(k, energy, oracle_number(row, "energy"), 1e-13);
        ORACLE_RUN(k, cgam_hopfield_update(k->bank, beta, xi, got));
        ORACLE_CLOSE_ALL(k, got, update, k->d, 1e-12);
        ORACLE_RUN(
            k, cgam_hopfield_settle(k->bank, beta, xi, 1e-14, 100000, got, &iterations, &change));
        ORACLE_CLOSE_ALL(k, got, fixed, k->d, 1e-10);
        ORACLE_RUN(k, cgam_hopfield_energy(k->bank, beta, fixed, &energy));
        ORACLE_CLOSE(k, energy, oracle_number(row, "energy_fixed"), 1e-13);

        cgam_hopfield_bounds bounds;
        ORACLE_RUN(
            k, cgam_hopfield_bound(k->bank, beta, oracle_int(row, "index"), xi, fixed, &bounds));
        const double one_step = oracle_number(row, "one_step"),
                     retrieval = oracle_number(row, "retrieval");
        ORACLE_CLOSE(k, bounds.separation, oracle_number(row, "delta"), 1e-13);
        /* one_step has |xi - x*| as a factor, which is a difference of numbers near 1. */
        ORACLE_CLOSE(k, bounds.one_step, one_step, 1e-9 * one_step);
        ORACLE_CLOSE(k, bounds.retrieval, retrieval, 1e-11 * retrieval);
        const double near = oracle_number(row, "fixed_point_bound");
        ORACLE_MAYBE(k, bounds.fixed_point, near, 1e-11 * near);
        free(xi);
        free(update);
        free(fixed);
    }
    free(got);
}

TEST(modern_hopfield_matches) { oracle_each("hopfield", about_hopfield); }

static void about_attention(oracle_case *k)
{
    int64_t q[2] = {0}, key[2] = {0}, v[2] = {0};
    double *Q = oracle_array(k, "Q.npy", q, NULL), *K = oracle_array(k, "K.npy", key, NULL),
           *V = oracle_array(k, "V.npy", v, NULL);
    double *got = oracle_zeros(q[0] * v[1]);
    ORACLE_RUN(k, cgam_attention(k->env, q[0], key[0], key[1], v[1], Q, K, V, got));
    const json_t *rows = oracle_key(k->doc, "attention");
    for (int64_t i = 0; i < q[0]; i++) {
        double *want = oracle_values(json_array_get(rows, (size_t)i), v[1]);
        ORACLE_CLOSE_ALL(k, got + i * v[1], want, v[1], 1e-14);
        free(want);
    }
    free(Q);
    free(K);
    free(V);
    free(got);
}

TEST(attention_matches) { oracle_each("attention", about_attention); }
