/* Recall against the oracle, in both modes, on every bank: what comes back, and what is certified
 * of it. */
#include "oracle/case.h"

typedef struct outputs {
    cgam_recall_out out;
    cgam_result *results;
    int64_t *index;
    double *top_p, *top_log_p, *p, *s, *r, *readout;
} outputs;

static void outputs_new(const oracle_case *k, outputs *o)
{
    const int64_t B = k->queries, top = k->n < 5 ? k->n : 5;
    o->results = calloc((size_t)B, sizeof *o->results);
    o->index = calloc((size_t)(B * top), sizeof *o->index);
    assert_non_null(o->results);
    assert_non_null(o->index);
    o->top_p = oracle_zeros(B * top);
    o->top_log_p = oracle_zeros(B * top);
    o->p = oracle_zeros(B * k->n);
    o->s = oracle_zeros(B * k->n);
    o->r = oracle_zeros(B * k->n);
    o->readout = oracle_zeros(B * k->d);
    o->out = (cgam_recall_out){.results = o->results,
                               .top = top,
                               .top_index = o->index,
                               .top_p = o->top_p,
                               .top_log_p = o->top_log_p,
                               .p = o->p,
                               .s = o->s,
                               .r = o->r,
                               .readout = o->readout};
}

static void outputs_free(outputs *o)
{
    free(o->results);
    free(o->index);
    free(o->top_p);
    free(o->top_log_p);
    free(o->p);
    free(o->s);
    free(o->r);
    free(o->readout);
}

static cgam_recall_opts options(const oracle_case *k, const json_t *entry, cgam_mode mode)
{
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = mode;
    opts.alpha = oracle_number(entry, "alpha");
    opts.beta = oracle_number(entry, "beta");
    opts.lambda = oracle_number(entry, "lambda");
    opts.P = k->P;
    opts.W = k->W;
    opts.d_c = k->d_c;
    return opts;
}

static void run(oracle_case *k, const cgam_recall_opts *opts, bool with_target, outputs *o)
{
    cgam_recall *plan;
    ORACLE_RUN(k, cgam_recall_new(k->bank, opts, &plan));
    const cgam_recall_in in = {.queries = k->queries,
                               .q = k->Q,
                               .c = k->C,
                               .c_per_query = !k->c_shared,
                               .target = with_target ? k->target : NULL};
    ORACLE_RUN(k, cgam_recall_run(plan, &in, &o->out));
    cgam_recall_free(plan);
}

/* What one query may be off by, in s, r, log p and p. Coupled recall stops when p changes by less
 * than 1e-12, which is 1e-12 / (1 - local constant) away from the end at most, up to the ratio of
 * the norms; that matters near a fold. */
typedef struct slack {
    double s, r, log_p, p;
} slack;

static slack slack_of(oracle_case *k, const json_t *entry, const json_t *query, bool coupled)
{
    const json_t *unit = oracle_key(query, "unit");
    double *s = oracle_vector(query, "s", k->n), *r = oracle_vector(query, "r", k->n);
    const double beta = oracle_number(entry, "beta"), lambda = oracle_number(entry, "lambda");
    slack a;
    a.s = oracle_allowed(oracle_max_abs(s, k->n), oracle_number(unit, "s"));
    a.r = oracle_allowed(oracle_max_abs(r, k->n), oracle_number(unit, "r"));
    a.p = oracle_allowed(1.0, oracle_number(unit, "p"));
    if (coupled) {
        const double local = oracle_number(query, "local_contraction");
        const double stop = 1e-12 * local / (1.0 - local) * sqrt((double)k->n);
        a.p += stop;
        a.s += lambda * stop / oracle_number(entry, "eta_min");
        a.r += lambda * lambda * stop / oracle_number(entry, "eta_min");
    }
    a.log_p = 2.0 * beta * a.r + 1e-10;
    free(s);
    free(r);
    return a;
}

static void same_focus(oracle_case *k, const json_t *want, const cgam_result *got, double lambda,
                       const slack *a)
{
    ORACLE_CLOSE(k, got->p, oracle_number(want, "p"), a->p);
    ORACLE_CLOSE(k, got->log_p, oracle_number(want, "log_p"), a->log_p);
    ORACLE_MAYBE(k, got->gap, oracle_number(want, "gap"), 2.0 * a->r);
    ORACLE_MAYBE(k, got->gap_raw, oracle_number(want, "gap_raw"), 2.0 * a->r);
    ORACLE_MAYBE(k, got->gap_gate, oracle_number(want, "gap_gate"), 2.0 * a->s);
    /* lower by what rounding may have added to the gap, in the worst case */
    const double bound = oracle_number(want, "p_lower_bound"), off = a->p + a->log_p;
    ORACLE_LE(k, got->p_lower_bound, bound + off);
    ORACLE_LE(k, bound, got->p_lower_bound + 4 * off);
    ORACLE_LE(k, got->p_lower_bound, got->p * (1.0 + 1e-12));
    if (!isnan(got->gap))
        ORACLE_LE(k, got->gap_raw + lambda * got->gap_gate, got->gap + 4.0 * a->r + a->s);
}

static bool listed(const json_t *array, int64_t value)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (json_integer_value(json_array_get(array, i)) == value) return true;
    return false;
}

static void same_query(oracle_case *k, const json_t *entry, const json_t *want, const outputs *o,
                       int64_t q, bool with_target, bool coupled)
{
    const cgam_result *got = &o->results[q];
    const slack a = slack_of(k, entry, want, coupled);
    const double lambda = oracle_number(entry, "lambda");
    const bool ties_exact = json_is_true(oracle_key(oracle_key(k->doc, "bank"), "ties_exact"));
    double *p = oracle_vector(want, "p", k->n), *s = oracle_vector(want, "s", k->n),
           *r = oracle_vector(want, "r", k->n), *readout = oracle_vector(want, "readout", k->d);
    ORACLE_CLOSE_ALL(k, o->s + q * k->n, s, k->n, a.s);
    ORACLE_CLOSE_ALL(k, o->r + q * k->n, r, k->n, a.r);
    ORACLE_CLOSE_ALL(k, o->p + q * k->n, p, k->n, a.p);
    const double norm = oracle_number(oracle_key(k->doc, "inspect"), "norm_max");
    ORACLE_CLOSE_ALL(k, o->readout + q * k->d, readout, k->d, a.p * fmax(1.0, norm) * (double)k->n);
    ORACLE_CLOSE(k, got->neff_entropy, oracle_number(want, "neff_entropy"),
                 (a.p * (double)k->n + a.log_p) * oracle_number(want, "neff_entropy"));
    ORACLE_CLOSE(k, got->neff_ipr, oracle_number(want, "neff_ipr"),
                 2.0 * a.p * (double)k->n * oracle_number(want, "neff_ipr"));

    /* Memories that tie in exact arithmetic may come out in any order, unless nothing rounds. */
    const json_t *tied = oracle_key(want, "tied");
    if (ties_exact) ORACLE_TRUE(k, got->winner == oracle_int(want, "winner"));
    ORACLE_TRUE(k, listed(tied, got->winner));
    const json_t *top = oracle_key(want, "top");
    ORACLE_TRUE(k, (int64_t)json_array_size(top) == o->out.top);
    for (int64_t i = 0; i < o->out.top; i++) {
        const json_t *row = json_array_get(top, (size_t)i);
        const int64_t index = o->index[q * o->out.top + i];
        ORACLE_CLOSE(k, o->top_p[q * o->out.top + i], json_number_value(json_array_get(row, 1)),
                     a.p);
        ORACLE_CLOSE(k, o->top_log_p[q * o->out.top + i], json_number_value(json_array_get(row, 2)),
                     a.log_p);
        ORACLE_TRUE(k, index >= 0 && index < k->n);
        ORACLE_CLOSE(k, r[index], r[json_integer_value(json_array_get(row, 0))], 2.0 * a.r);
        if (ties_exact) ORACLE_TRUE(k, index == json_integer_value(json_array_get(row, 0)));
    }
    ORACLE_TRUE(k, o->index[q * o->out.top] == got->winner);

    ORACLE_TRUE(k, got->focus == (with_target ? k->target[q] : got->winner));
    const json_t *focus = oracle_key(want, with_target ? "at_target" : "at_winner");
    same_focus(k, focus, got, lambda, &a);
    const int64_t above = oracle_int(focus, "above");
    if (ties_exact || json_array_size(tied) == 1)
        ORACLE_LE(k, (double)above, (double)got->focus_rank);
    if (!with_target) ORACLE_TRUE(k, got->focus_rank == 0);
    free(p);
    free(s);
    free(r);
    free(readout);
}

static void compare(oracle_case *k, const char *section, cgam_mode mode, bool plain, bool certify,
                    void (*more)(oracle_case *k, const json_t *entry, const outputs *o))
{
    outputs o;
    outputs_new(k, &o);
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, section)); i++) {
        const json_t *entry = oracle_entry(k, section, i);
        cgam_recall_opts opts = options(k, entry, mode);
        opts.plain = plain;
        opts.certify = certify;
        const json_t *queries = oracle_key(entry, "queries");
        for (int with_target = 0; with_target < 2; with_target++) {
            run(k, &opts, with_target, &o);
            for (int64_t q = 0; q < k->queries; q++)
                same_query(k, entry, json_array_get(queries, (size_t)q), &o, q, with_target,
                           mode == CGAM_COUPLED);
        }
        if (more) more(k, entry, &o);
    }
    outputs_free(&o);
}

static void ended_at_once(oracle_case *k, const json_t *entry, const outputs *o)
{
    (void)entry;
    for (int64_t q = 0; q < k->queries; q++) {
        ORACLE_TRUE(k, o->results[q].end == CGAM_END_DIRECT);
        ORACLE_TRUE(k, o->results[q].iterations == 0);
        ORACLE_TRUE(k, isnan(o->results[q].energy_start) && isnan(o->results[q].energy_end));
    }
}

static void about_first(oracle_case *k)
{
    compare(k, "first", CGAM_FIRST, false, false, ended_at_once);
}

TEST(first_order_recall_matches) { oracle_each("first", about_first); }

/* Energies, descent and the free certificates of a coupled recall. */
static void free_certificates(oracle_case *k, const json_t *entry, const outputs *o)
{
    const double constant = oracle_number(entry, "contraction");
    for (int64_t q = 0; q < k->queries; q++) {
        const json_t *want = json_array_get(oracle_key(entry, "queries"), (size_t)q);
        const cgam_result *got = &o->results[q];
        const slack a = slack_of(k, entry, want, true);
        const double start = oracle_number(want, "energy_start"),
                     end = oracle_number(want, "energy_end");
        /* E is flat at its minimum, so an error e in s costs e^2; at the start it costs e. */
        const double size = fmax(fabs(start), fabs(end)) + (double)k->n * a.s;
        ORACLE_TRUE(k, got->end == CGAM_END_CONVERGED || got->end == CGAM_END_STALLED);
        ORACLE_CLOSE(k, got->energy_start, start, 1e-10 * fmax(1.0, size) + (double)k->n * a.s);
        ORACLE_CLOSE(k, got->energy_end, end, 1e-10 * fmax(1.0, size) + (double)k->n * a.s);
        ORACLE_LE(k, got->energy_rise, 1e-13 * fmax(1.0, size));
        if (!isnan(got->contraction) && got->contraction_proved)
            ORACLE_LE(k, constant, got->contraction * (1.0 + 1e-9) + 1e-300);
        if (got->unique == 1) ORACLE_LE(k, constant, 1.0);
        const double margin = oracle_number(want, "fold_margin");
        if (!isnan(got->fold_margin) && got->fold_margin_proved)
            ORACLE_LE(k, got->fold_margin, margin + 1e-9);
        if (!isnan(got->local_contraction) && got->local_contraction_proved)
            ORACLE_LE(k, oracle_number(want, "local_contraction"), got->local_contraction + 1e-9);
        /* The a-posteriori bound is about exact arithmetic: it covers the true error, known here to
         * 1e-16, up to what rounding does to one application of the map. */
        if (!isnan(got->p_error) && got->p_error_proved) {
            double *p = oracle_vector(want, "p", k->n), *r = oracle_vector(want, "r", k->n);
            double sum = 0.0;
            for (int64_t i = 0; i < k->n; i++)
                sum += (o->p[q * k->n + i] - p[i]) * (o->p[q * k->n + i] - p[i]);
            const double unit = oracle_number(oracle_key(want, "unit"), "p"),
                         exponent = oracle_number(entry, "beta") * oracle_max_abs(r, k->n);
            ORACLE_LE(k, sqrt(sum), got->p_error + 8.0 * DBL_EPSILON * (1.0 + unit + exponent));
            free(r);
            free(p);
        }
    }
}

static void about_coupled(oracle_case *k)
{
    compare(k, "coupled", CGAM_COUPLED, false, false, free_certificates);
}

TEST(coupled_recall_matches) { oracle_each("coupled", about_coupled); }

static void about_plain(oracle_case *k)
{
    compare(k, "coupled", CGAM_COUPLED, true, false, free_certificates);
}

TEST(plain_iteration_matches) { oracle_each("coupled", about_plain); }

static void full_certificates(oracle_case *k, const json_t *entry, const outputs *o)
{
    free_certificates(k, entry, o);
    for (int64_t q = 0; q < k->queries; q++) {
        const json_t *want = json_array_get(oracle_key(entry, "queries"), (size_t)q);
        const cgam_result *got = &o->results[q];
        const double constant = oracle_number(entry, "contraction");
        const double margin = oracle_number(want, "fold_margin"),
                     local = oracle_number(want, "local_contraction");
        ORACLE_CLOSE(k, got->contraction, constant, 1e-8 * fmax(1.0, constant));
        if (constant < 1.0 - 1e-8) ORACLE_TRUE(k, got->unique == 1);
        if (got->fold_margin_exact) {
            ORACLE_CLOSE(k, got->fold_margin, margin, 1e-8 * fmax(1.0, fabs(margin)));
        } else { /* p_error leaves more than 1e-9 of it open */
            ORACLE_TRUE(k, got->fold_margin <= margin && got->p_error > 0);
            ORACLE_CLOSE(k, got->fold_margin, margin, 1e-4 * fmax(1.0, fabs(margin)));
        }
        ORACLE_CLOSE(k, got->local_contraction, local, 1e-8 * fmax(1.0, local));
    }
}

static void about_certified(oracle_case *k)
{
    compare(k, "coupled", CGAM_COUPLED, false, true, full_certificates);
}

TEST(certified_recall_matches) { oracle_each("coupled", about_certified); }

/* The point that unguarded Newton finds is a fixed point too, and not the one to return. */
static void about_trap(oracle_case *k)
{
    outputs o;
    outputs_new(k, &o);
    const json_t *entry = oracle_entry(k, "coupled", 0);
    const cgam_recall_opts opts = options(k, entry, CGAM_COUPLED);
    run(k, &opts, false, &o);
    const json_t *lands = oracle_key(k->doc, "newton_lands");
    for (size_t i = 0; i < json_array_size(lands); i++) {
        double *other = oracle_values(json_array_get(lands, i), k->n), off = 0.0;
        for (int64_t j = 0; j < k->n; j++) off = fmax(off, fabs(other[j] - o.p[j]));
        ORACLE_LE(k, 1e-3, off);
        free(other);
    }
    ORACLE_TRUE(k, o.results[0].unique != 1);
    outputs_free(&o);
}

TEST(newton_does_not_leave_the_basin) { oracle_each("newton_lands", about_trap); }

/* Supercritical alpha is refused by mode coupled and named with alpha_crit. */
static void about_refusal(oracle_case *k)
{
    for (size_t i = 0; i < json_array_size(oracle_key(k->doc, "first")); i++) {
        const json_t *entry = oracle_entry(k, "first", i);
        if (strcmp(oracle_text(entry, "regime"), "supercritical") != 0) continue;
        const cgam_recall_opts opts = options(k, entry, CGAM_COUPLED);
        cgam_recall *plan = NULL;
        CHECK_REFUSED(k->env, CGAM_E_NOT_POSITIVE, "alpha_crit",
                      cgam_recall_new(k->bank, &opts, &plan));
        ORACLE_TRUE(k, plan == NULL);
    }
}

TEST(coupled_recall_refuses_supercritical_alpha) { oracle_each("first", about_refusal); }
