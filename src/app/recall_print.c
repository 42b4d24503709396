/* recall_print.c: the document of a recall for people. */
#include "app/recall_print.h"

#include "app/recall_explain.h"

#include <math.h>
#include <string.h>

static void print_top(const json_t *query, FILE *to)
{
    const json_t *top = json_object_get(query, "top"), *names = json_object_get(query, "top_names");
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *pair = json_array_get(top, i);
        if (names) fprintf(to, "%s%s ", i ? ", " : "", json_string_value(json_array_get(names, i)));
        fprintf(to, "%s%lld (%.4g)", i && !names ? ", " : "",
                (long long)json_integer_value(json_array_get(pair, 0)),
                json_number_value(json_array_get(pair, 1)));
    }
}

static void print_line(FILE *to, const char *name, double value, const char *words)
{
    if (isnan(value)) fprintf(to, "  %-18s %-14s %s\n", name, "-", words);
    else fprintf(to, "  %-18s %-14.8g %s\n", name, value, words);
}

static bool is_proved(const json_t *q, const char *claim)
{
    const json_t *verdict = json_object_get(json_object_get(q, "certificates"), claim);
    return json_is_string(verdict) && !strcmp(json_string_value(verdict), "proved");
}

static void print_query(const json_t *q, bool coupled, bool flow, FILE *to)
{
    bool target = json_object_get(q, "target") != NULL;
    const json_t *unique = json_object_get(q, "unique");
    const json_t *fast = json_object_get(q, "fast");
    if (json_is_null(json_object_get(q, "winner")))
        fprintf(to, "  %-18s %-14s the ghost scores higher than every memory\n", "winner", "none");
    else
        fprintf(to, "  %-18s %-14lld the memory with the largest score\n", "winner",
                (long long)cgam_json_get_int(q, "winner"));
    if (target)
        fprintf(to, "  %-18s %-14lld rank %lld; the numbers below speak of it\n", "target",
                (long long)cgam_json_get_int(q, "target"),
                (long long)cgam_json_get_int(q, "target_rank"));
    print_line(to, "p", cgam_json_get_real(q, "p"), "its probability");
    if (fast) {
        print_line(to, "p <=", cgam_json_get_real(fast, "p_to"), "p is its lower end");
        fprintf(
            to, "  %-18s %-14lld %s\n", "rows read", (long long)cgam_json_get_int(fast, "rescored"),
            json_is_true(json_object_get(fast, "fallback")) ? "all: the sketch would have cost more"
                                                            : "the sketch excluded the others");
    }
    if (json_object_get(q, "p_none"))
        print_line(to, "p, none", cgam_json_get_real(q, "p_none"), "of none of the memories");
    print_line(to, "p >=", cgam_json_get_real(q, "p_lower_bound"),
               is_proved(q, "p_lower_bound") ? "proved from the gap" : "by the gap, not proved");
    print_line(to, "gap", cgam_json_get_real(q, "gap"), "lead in score over the best rival");
    print_line(to, "gap, query", cgam_json_get_real(q, "gap_raw"), "lead by the query alone");
    print_line(to, "gap, gates", cgam_json_get_real(q, "gap_gate"), "lead by the gates alone");
    print_line(to, "N_eff, entropy", cgam_json_get_real(q, "neff_entropy"),
               "memories in play, exp(entropy)");
    print_line(to, "N_eff, 1/sum p^2", cgam_json_get_real(q, "neff_ipr"),
               "memories in play, by collision");
    if (json_object_get(q, "support"))
        fprintf(to, "  %-18s %-14lld %s\n", "support", (long long)cgam_json_get_int(q, "support"),
                json_is_true(json_object_get(q, "exact")) ? "memories with p > 0: exact, proved"
                                                          : "memories with p > 0");
    if (coupled || flow) {
        fprintf(to, "  %-18s %-14lld ended: %s\n", flow ? "steps" : "iterations",
                (long long)cgam_json_get_int(q, "iterations"), cgam_json_get_text(q, "end"));
        if (flow) print_line(to, "time", cgam_json_get_real(q, "time"), "at the end");
        print_line(to, "energy, start", cgam_json_get_real(q, "energy_start"), "");
        print_line(to, "energy, end", cgam_json_get_real(q, "energy_end"), "");
        print_line(to, "energy, rise", cgam_json_get_real(q, "energy_rise"),
                   "largest step up; 0 but for rounding");
    }
    if (coupled) {
        print_line(to, "contraction", cgam_json_get_real(q, "contraction"),
                   "below 1 the fixed point is unique");
        fprintf(to, "  %-18s %-14s\n", "unique",
                json_is_null(unique)     ? "not decided"
                : !json_is_true(unique)  ? "no"
                : is_proved(q, "unique") ? "yes, proved"
                                         : "yes");
        bool exact = json_is_true(json_object_get(q, "fold_margin_exact"));
        print_line(to,
                   exact ? "fold margin" : "fold margin >=", cgam_json_get_real(q, "fold_margin"),
                   exact ? "above 0 the state is stable" : "a free bound; --certify for the value");
    }
    size_t i;
    json_t *turn;
    json_array_foreach(json_object_get(q, "transitions"), i, turn)
        print_line(to, cgam_json_get_text(turn, "kind"), cgam_json_get_real(turn, "beta"),
                   "beta of a transition on the branch");
    fprintf(to, "  %-18s ", "top");
    print_top(q, to);
    fprintf(to, "\n");
    cgam_parts_print(q, to);
}

void cgam_recall_print(const json_t *doc, FILE *to)
{
    const json_t *queries = json_object_get(doc, "queries");
    size_t count = json_array_size(queries);
    const char *mode = cgam_json_get_text(doc, "mode");
    bool coupled = !strcmp(mode, "coupled") || !strcmp(mode, "anneal"),
         flow = !strcmp(mode, "flow");
    double crit = cgam_json_get_real(doc, "alpha_crit");
    const char *activation = cgam_json_get_text(doc, "activation");
    if (json_object_get(doc, "among"))
        fprintf(to, "%lld of ", (long long)cgam_json_get_int(doc, "among"));
    fprintf(to, "%lld memories in %lld dimensions, mode %s%s%s: alpha %g, beta %g, lambda %g\n",
            (long long)cgam_json_get_int(doc, "n"), (long long)cgam_json_get_int(doc, "d"),
            cgam_json_get_text(doc, "mode"), *activation ? ", " : "", activation,
            cgam_json_get_real(doc, "alpha"), cgam_json_get_real(doc, "beta"),
            cgam_json_get_real(doc, "lambda"));
    fprintf(to, "gates %s", cgam_json_get_text(doc, "regime"));
    if (!isnan(crit)) fprintf(to, ", alpha_crit %.8g", crit);
    const json_t *stable = json_object_get(doc, "context_stable");
    if (stable)
        fprintf(to, "\nfree context: it %s settle, lambda_min(I - W'A^-1 W) = %.4g",
                json_is_true(stable) ? "can" : "cannot", cgam_json_get_real(doc, "context_margin"));
    fprintf(to, "\n\n");
    if (count == 1) {
        print_query(json_array_get(queries, 0), coupled, flow, to);
        cgam_marks_print(doc, to);
        return;
    }
    bool target = json_object_get(json_array_get(queries, 0), "target") != NULL;
    fprintf(to, "%7s %9s %s%11s %11s %10s %10s %6s  %s\n", "query", "winner",
            target ? "   target   rank " : "", "p", "gap", "N_eff", "p >=", "iter", "end");
    for (size_t k = 0; k < count; k++) {
        const json_t *q = json_array_get(queries, k);
        if (json_is_null(json_object_get(q, "winner"))) fprintf(to, "%7zu %9s ", k, "none");
        else fprintf(to, "%7zu %9lld ", k, (long long)cgam_json_get_int(q, "winner"));
        if (target)
            fprintf(to, "%9lld %6lld ", (long long)cgam_json_get_int(q, "target"),
                    (long long)cgam_json_get_int(q, "target_rank"));
        fprintf(to, "%11.5g %11.5g %10.4g %10.4g %6lld  %s\n", cgam_json_get_real(q, "p"),
                cgam_json_get_real(q, "gap"), cgam_json_get_real(q, "neff_entropy"),
                cgam_json_get_real(q, "p_lower_bound"),
                (long long)cgam_json_get_int(q, "iterations"), cgam_json_get_text(q, "end"));
    }
    if (target) fprintf(to, "\np, gap and the bound speak of the target\n");
    cgam_marks_print(doc, to);
}
