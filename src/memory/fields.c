/* fields.c: options and results of recalls, banks, gates and landscapes as tables, a row for each field. */
#include "memory/fields.h"
#include "memory/explain.h"
#include "memory/pack.h"
#include "memory/results.h"

#include <cgam/bank.h>
#include <cgam/flow.h>
#include <cgam/recall.h>
#include <math.h>
#include <string.h>

#define ABOVE_0 0x1p-1000 /* a lower limit above zero whose inverse is finite */

/* ---- Options: name, default, range, words ------------------------------------------------------ */
/* struct, member, name, value, default, least, most, words */
#define REAL(struct_, member_, name_, value_, fallback_, min_, max_, ...)                          \
    CGAM_ROW(struct_, member_, name_, CGAM_REAL, __VA_ARGS__, .value = value_,                     \
             .fallback = fallback_, .min = min_, .max = max_)
#define OPT(member_, name_, kind_, ...)                                                            \
    CGAM_ROW(cgam_recall_opts, member_, name_, kind_, __VA_ARGS__)
#define TAU(member_, name_, layer_)                                                                \
    REAL(cgam_recall_opts, member_, name_, "X", "1", ABOVE_0, INFINITY,                            \
         "mode flow: time constant of the " layer_)

#define CERTIFY "usual|full|none"

const cgam_field cgam_recall_opts_rows[] = {
    REAL(cgam_recall_opts, lambda, "lambda", "X", "1", 0, INFINITY,
         "coupling between gates and retrieval, 0 or more"),
    REAL(cgam_recall_opts, alpha, "alpha", "X", "0", 0, INFINITY,
         "penalty between similar memories, 0 or more"),
    REAL(cgam_recall_opts, beta, "beta", "X", "1", ABOVE_0, INFINITY,
         "inverse temperature, above 0"),
    OPT(mode, "mode", CGAM_CHOICE,
        "first: gates from the context alone; coupled: the self-consistent fixed point; "
        "flow: the network in time, from rest to a steady state or --t-max, at any alpha; "
        "anneal: the fixed point on the branch from beta = 0",
        .value = "first|coupled|flow|anneal", .fallback = "first"),
    REAL(cgam_recall_opts, beta_start, "beta-start", "X", NULL, ABOVE_0, INFINITY,
         "mode anneal: beta at which the branch begins; default: half the beta below which "
         "the fixed point is unique"),
    OPT(entmax, "activation", CGAM_TEXT,
        "how scores become weights: softmax, sparsemax, entmax15, or entmax:A with 1 < A <= "
        "2; all but softmax give most memories weight 0, and an exact answer if the gap is "
        "large enough",
        .value = "NAME", .fallback = "softmax", .find = cgam_activation_find),
    OPT(certify, "certify", CGAM_CHOICE,
        "how much to prove. usual: whatever costs at most a quarter of the recall; full "
        "(also --certify alone): everything, with exact fold margin and local contraction, "
        "alpha_crit and a search for a second fixed point; none: nothing",
        .value = CERTIFY, .fallback = "usual", .bare = "full"),
    OPT(fast, "fast", CGAM_FLAG,
        "mode first: search an int8 sketch of the bank and read only the rows that its "
        "proved bounds cannot exclude; p is an interval"),
    REAL(cgam_recall_opts, tol_p, "tol-p", "X", NULL, 0, 1,
         "with --fast: read more rows until the interval of p is at most this wide"),
    OPT(none_score, "none", CGAM_REAL,
        "mode first: add a ghost memory of score X that stands for \"none of these\"", .value = "X",
        .min = -INFINITY, .max = INFINITY, .given = offsetof(cgam_recall_opts, none)),
    OPT(plain, "plain", CGAM_FLAG, "mode coupled: do not finish by Newton's method"),
    REAL(cgam_recall_opts, tol, "tol", "X", "1e-12", 0, 1,
         "mode coupled: stop when p changes by at most this"),
    OPT(max_iter, "max-iter", CGAM_INT, "mode coupled: stop after this many iterations",
        .value = "N", .fallback = "10000", .min = 1, .max = 1e9),
    TAU(tau_c, "tau-c", "context"),
    TAU(tau_s, "tau-s", "gates"),
    TAU(tau_r, "tau-r", "retrieval"),
    TAU(tau_q, "tau-q", "query"),
    REAL(cgam_recall_opts, t_max, "t-max", "T", "100", ABOVE_0, INFINITY,
         "mode flow: time at which the flow ends"),
    REAL(cgam_recall_opts, steady, "steady", "X", "1e-9", 0, 1,
         "mode flow: stop when |x - F(x)| is at most this, relative to the largest |x| or 1; "
         "0: run to --t-max"),
    OPT(free_context, "free-context", CGAM_FLAG,
        "mode flow: let the context move, starting at --context. Whether it can settle is "
        "checked first and reported as context_margin"),
    OPT(free_query, "free-query", CGAM_FLAG, "mode flow: let the query move, starting at --query"),
    OPT(memory_max, "memory-max", CGAM_INT,
        "bytes for the factored gate operator; 0: half of what is available", .value = "BYTES",
        .fallback = "0", .max = 0x1p63),
    CGAM_ROWS_END,
};

const cgam_field cgam_landscape_opts_rows[] = {
    CGAM_ROW(cgam_landscape_opts, starts, "starts", CGAM_INT,
             "number of random starts, in addition to the start of a recall, every memory, and "
             "sets of leaders",
             .value = "N", .fallback = "64", .max = 1e9),
    CGAM_ROW(cgam_landscape_opts, seed, "seed", CGAM_INT, "seed of the random starts", .value = "N",
             .fallback = "1", .max = 9e15),
    CGAM_ROWS_END,
};

/* ---- Results ------------------------------------------------------------------------------------ */
#define RESULT(member_, kind_, ...) CGAM_ROW(cgam_result, member_, #member_, kind_, __VA_ARGS__)
#define PROVED(claim_)                                                                             \
    CGAM_ROW(cgam_result, claim_##_proved, "certificates." #claim_, CGAM_PROOF,                    \
             "how " #claim_ " is known")
#define PART(name_, when_, words_)                                                                 \
    {                                                                                              \
        .name = name_, .kind = CGAM_PART, .help = words_, .when = when_                            \
    }

const cgam_field cgam_result_rows[] = {
    RESULT(
        winner, CGAM_INDEX,
        "the memory with the largest score, ties to the lowest index; null: the ghost of --none"),
    RESULT(focus, CGAM_INT, "the target where one was given, else the winner",
           .when = CGAM_WITH_ALL),
    RESULT(focus_rank, CGAM_INT, "how many memories score higher than focus",
           .when = CGAM_WITH_ALL),
    RESULT(p, CGAM_REAL, "probability of the winner, or of the target"),
    RESULT(log_p, CGAM_REAL, "its logarithm, finite where p underflows"),
    RESULT(p_none, CGAM_REAL, "probability of none of the memories", .when = CGAM_WITH_NONE),
    CGAM_ROW(cgam_result, rescored, "fast.rescored", CGAM_INT,
             "rows that were read; the sketch excluded the others", .when = CGAM_WITH_FAST),
    CGAM_ROW(cgam_result, p_from, "fast.p_from", CGAM_REAL, "p is at least this, proved",
             .when = CGAM_WITH_FAST),
    CGAM_ROW(cgam_result, p_to, "fast.p_to", CGAM_REAL, "and at most this", .when = CGAM_WITH_FAST),
    CGAM_ROW(cgam_result, fallback, "fast.fallback", CGAM_FLAG,
             "all rows were read, since that cost less", .when = CGAM_WITH_FAST),
    RESULT(p_none_from, CGAM_REAL, "p_none is at least this, proved",
           .when = CGAM_WITH_NONE | CGAM_WITH_FAST),
    RESULT(p_none_to, CGAM_REAL, "and at most this", .when = CGAM_WITH_NONE | CGAM_WITH_FAST),
    PART("top", 0, "the most probable memories as [index, p]"),
    PART("top_log_p", 0, "their log p"),
    PART("top_names", CGAM_WITH_NAMES, "their names"),
    PART("parts", CGAM_WITH_PARTS, "their scores in parts: evidence, bias, feedback"),
    CGAM_ROW(cgam_result, focus, "target", CGAM_INT, "the memory that the numbers refer to",
             .when = CGAM_WITH_TARGET),
    CGAM_ROW(cgam_result, p, "target_p", CGAM_REAL, "probability of that memory",
             .when = CGAM_WITH_TARGET),
    CGAM_ROW(cgam_result, focus_rank, "target_rank", CGAM_INT, "how many memories score higher",
             .when = CGAM_WITH_TARGET),
    RESULT(neff_entropy, CGAM_REAL, "memories in play, exp(entropy)"),
    RESULT(neff_ipr, CGAM_REAL, "memories in play, 1 / sum p^2"),
    RESULT(support, CGAM_INT, "memories with p > 0", .when = CGAM_WITH_SPARSE),
    RESULT(exact, CGAM_FLAG, "p of the winner is proved to be 1", .when = CGAM_WITH_SPARSE),
    RESULT(gap, CGAM_REAL, "lead in score over the best rival"),
    RESULT(gap_raw, CGAM_REAL, "lead by the query alone"),
    RESULT(gap_gate, CGAM_REAL, "lead by the gates alone"),
    RESULT(p_lower_bound, CGAM_REAL, "p is at least this, by the gap"),
    RESULT(readout_error_bound, CGAM_REAL, "the readout Z'p is at most this far from the memory"),
    RESULT(readout_left_out, CGAM_REAL, "bound on the weight of rows that sums left out"),
    RESULT(iterations, CGAM_INT, "of the map, Newton steps included; mode flow: time steps"),
    RESULT(newton_steps, CGAM_INT, "Newton steps among these"),
    RESULT(end, CGAM_CHOICE, "how it ended",
           .value = "direct|converged|max_iter|stalled|diverged|horizon|rose"),
    RESULT(change, CGAM_REAL, "last change of p; mode flow: |x - F(x)| at the end"),
    RESULT(time, CGAM_REAL, "mode flow: when it ended"),
    RESULT(energy_start, CGAM_REAL, "energy at the start"),
    RESULT(energy_end, CGAM_REAL, "energy at the end"),
    RESULT(energy_rise, CGAM_REAL, "largest step up; 0 but for rounding"),
    RESULT(contraction, CGAM_REAL, "below 1 the fixed point is unique"),
    RESULT(local_contraction, CGAM_REAL, "the same at the p returned"),
    RESULT(unique, CGAM_MAYBE, "true: the only fixed point; false: a second one was found"),
    RESULT(fold_margin, CGAM_REAL, "above 0 the state is stable"),
    RESULT(fold_margin_exact, CGAM_FLAG, "fold_margin is the value, not a lower bound"),
    RESULT(stable, CGAM_MAYBE, "gates and retrieval return to this state after a small push"),
    RESULT(p_error, CGAM_REAL, "bound of |p - p*|_2"),
    PART("certificates", 0, "which of these are proved and which are estimates"),
    PROVED(p_lower_bound),
    PROVED(contraction),
    PROVED(local_contraction),
    PROVED(fold_margin),
    PROVED(p_error),
    PROVED(unique),
    PROVED(stable),
    PROVED(readout_error_bound),
    RESULT(score_error, CGAM_REAL, "scores are within this of the exact ones",
           .when = CGAM_WITH_ALL),
    PART("path", CGAM_WITH_BRANCH, "mode anneal: points of the branch"),
    PART("transitions", CGAM_WITH_BRANCH, "mode anneal: folds, pitchforks, changes of the leader"),
    CGAM_ROWS_END,
};

#define PATHS "pass|matrices|vectors|coupled|coupled-together|flow|sketch|anneal|lanes"
#define DTYPES "f64|f32|f16|bf16|i64|i32"
const cgam_field cgam_route_rows[] = {
    CGAM_ROW(cgam_route, path, "path", CGAM_CHOICE, "how the recall was computed", .value = PATHS),
    CGAM_ROW(cgam_route, precision, "precision", CGAM_CHOICE, "precision of most of the arithmetic",
             .value = DTYPES),
    CGAM_ROW(cgam_route, group, "group", CGAM_INT, "queries that ran together"),
    CGAM_ROW(cgam_route, unit, "unit", CGAM_TEXT, "instructions of most of the arithmetic"),
    CGAM_ROW(cgam_route, certify, "certify", CGAM_CHOICE, "how much was proved", .value = CERTIFY),
    CGAM_ROWS_END,
};

const cgam_field cgam_marks_rows[] = {
    CGAM_ROW(cgam_marks, alpha_crit, "alpha_crit", CGAM_REAL, "gates stay stable up to this alpha"),
    CGAM_ROW(cgam_marks, alpha_fold, "alpha_fold", CGAM_REAL,
             "the branch of fixed points ends at this alpha"),
    CGAM_ROW(cgam_marks, lambda_unique_max, "lambda_unique_max", CGAM_REAL,
             "one answer, proved, up to this lambda"),
    CGAM_ROW(cgam_marks, beta_unique_max, "beta_unique_max", CGAM_REAL,
             "one answer, proved, up to this beta"),
    CGAM_ROWS_END,
};

const cgam_field cgam_anneal_point_rows[] = {
    CGAM_ROW(cgam_anneal_point, beta, "beta", CGAM_REAL, "inverse temperature"),
    CGAM_ROW(cgam_anneal_point, energy, "energy", CGAM_REAL, "energy of the fixed point"),
    CGAM_ROW(cgam_anneal_point, winner, "winner", CGAM_INT, "the memory with the largest p"),
    CGAM_ROW(cgam_anneal_point, p, "p", CGAM_REAL, "largest p"),
    CGAM_ROW(cgam_anneal_point, fold_margin, "fold_margin", CGAM_REAL,
             "an eigenvalue on small banks, else a lower bound"),
    CGAM_ROWS_END,
};

const cgam_field cgam_transition_rows[] = {
    CGAM_ROW(cgam_transition, beta, "beta", CGAM_REAL, "beta of the transition"),
    CGAM_ROW(cgam_transition, kind, "kind", CGAM_CHOICE, "what happens there",
             .value = "fold|pitchfork|winner"),
    CGAM_ROWS_END,
};

/* ---- Banks and gates ---------------------------------------------------------------------------- */
#define BANK(member_, kind_, ...) CGAM_ROW(cgam_bank_info, member_, #member_, kind_, __VA_ARGS__)
const cgam_field cgam_bank_info_rows[] = {
    BANK(n, CGAM_INT, "memories"),
    BANK(d, CGAM_INT, "dimensions"),
    BANK(whole, CGAM_INT,
         "memories including those that are left out; all row numbers are below this"),
    BANK(dtype, CGAM_CHOICE, "type of the stored rows", .value = DTYPES),
    BANK(norm_min, CGAM_REAL, "shortest memory"),
    BANK(norm_max, CGAM_REAL, "longest memory"),
    BANK(equal_norms, CGAM_FLAG, "all memories have the same norm"),
    BANK(unit, CGAM_FLAG, "all memories have norm 1"),
    CGAM_ROW(cgam_bank_info, zero_rows, "zero_memories", CGAM_INT, "memories that are zero"),
    BANK(mapped, CGAM_FLAG, "rows are mapped from the file"),
    BANK(sketch, CGAM_FLAG, "it has an int8 sketch"),
    CGAM_ROWS_END,
};

#define PACK(member_, name_, kind_, ...)                                                           \
    CGAM_ROW(cgam_pack_info, member_, name_, kind_, __VA_ARGS__)
const cgam_field cgam_pack_info_rows[] = {
    PACK(normalize, "normalized", CGAM_FLAG, "memories are the rows divided by their norms"),
    PACK(names, "names", CGAM_FLAG, "the file holds names"),
    PACK(sketch, "sketch", CGAM_FLAG, "the file holds the int8 sketch"),
    PACK(alpha, "alphas", CGAM_REALS, "penalties whose gates are factored in the file",
         .count = offsetof(cgam_pack_info, alphas)),
    PACK(bytes, "bytes", CGAM_INT, "size of the file"),
    CGAM_ROWS_END,
};

const cgam_field cgam_gram_info_rows[] = {
    CGAM_ROW(cgam_gram_info, mu_min, "mu_min", CGAM_REAL,
             "smallest eigenvalue of the Gram matrix; 0 when rank < n"),
    CGAM_ROW(cgam_gram_info, mu_max, "mu_max", CGAM_REAL, "largest"),
    CGAM_ROW(cgam_gram_info, rank, "rank", CGAM_INT, "independent directions"),
    CGAM_ROWS_END,
};

#define GATE(member_, name_, kind_, ...)                                                           \
    CGAM_ROW(cgam_gate_info, member_, name_, kind_, __VA_ARGS__)
const cgam_field cgam_gate_info_rows[] = {
    GATE(alpha, "alpha", CGAM_REAL, "penalty"),
    GATE(regime, "regime", CGAM_CHOICE, "what the gates do at this penalty",
         .value = "subcritical|critical|supercritical"),
    GATE(critical.alpha, "alpha_crit", CGAM_REAL, "penalty at which the gates turn critical"),
    GATE(critical.alpha_lo, "alpha_crit_from", CGAM_REAL, "alpha_crit is at least this, proved"),
    GATE(critical.alpha_hi, "alpha_crit_to", CGAM_REAL, "and at most this"),
    GATE(critical.proved, "alpha_crit_proved", CGAM_FLAG, "alpha_crit is known to 1e-9"),
    GATE(eta_min, "eta_min", CGAM_REAL, "smallest eigenvalue of the gate operator, from below"),
    GATE(eta_min_exact, "eta_min_exact", CGAM_FLAG, "to 1e-9"),
    GATE(negative, "negative_modes", CGAM_INT, "negative eigenvalues of the gate operator"),
    GATE(iterative, "iterative", CGAM_FLAG, "solved by conjugate gradients"),
    CGAM_ROWS_END,
};

#define SPECTRUM(member_, kind_, ...)                                                              \
    CGAM_ROW(cgam_spectrum_info, member_, #member_, kind_, __VA_ARGS__)
const cgam_field cgam_spectrum_info_rows[] = {
    SPECTRUM(modes, CGAM_INT, "explicit modes"),
    SPECTRUM(kernel, CGAM_INT, "dimension of the rest"),
    SPECTRUM(omega_min, CGAM_REAL, "smallest eigenvalue of G - diag G"),
    SPECTRUM(omega_max, CGAM_REAL, "largest"),
    SPECTRUM(mu_min, CGAM_REAL, "smallest eigenvalue of G"),
    SPECTRUM(mu_max, CGAM_REAL, "largest"),
    SPECTRUM(rank, CGAM_INT, "of Z"),
    SPECTRUM(alpha_crit, CGAM_REAL, "penalty at which the gates turn critical"),
    CGAM_ROWS_END,
};

const cgam_field cgam_inspection_rows[] = {
    CGAM_ROW(cgam_inspection, contraction, "contraction", CGAM_REAL,
             "below 1 coupled recall has one answer"),
    CGAM_ROW(cgam_inspection, unique, "unique", CGAM_MAYBE,
             "true: one answer, proved; null: the contraction does not decide it"),
    CGAM_ROW(cgam_inspection, lambda_unique_max, "lambda_unique_max", CGAM_REAL,
             "largest coupling with that proof"),
    CGAM_ROWS_END,
};

/* ---- Landscapes --------------------------------------------------------------------------------- */
#define POINT(member_, name_, kind_, ...) CGAM_ROW(cgam_point, member_, name_, kind_, __VA_ARGS__)
const cgam_field cgam_point_rows[] = {
    POINT(minimum, "kind", CGAM_CHOICE, "whether recalls end there", .value = "saddle|minimum"),
    POINT(index, "index", CGAM_INT, "directions that lead down"),
    POINT(energy, "energy", CGAM_REAL, "E at the point"),
    POINT(winner, "winner", CGAM_INT, "the memory with the largest p"),
    POINT(p, "p", CGAM_REAL, "probability of that memory"),
    POINT(neff_entropy, "neff_entropy", CGAM_REAL, "memories in play, exp(entropy)"),
    POINT(basin, "basin", CGAM_REAL, "share of the descents that end there"),
    POINT(fold_margin, "fold_margin", CGAM_REAL, "above 0 the state is stable"),
    POINT(p_error, "p_error", CGAM_REAL, "bound of |p - p*|_2"),
    PART("certificates", 0, "which of these are proved and which are estimates"),
    POINT(fold_margin_proved, "certificates.fold_margin", CGAM_PROOF, "how it is known"),
    POINT(p_error_proved, "certificates.p_error", CGAM_PROOF, "how it is known"),
    CGAM_ROWS_END,
};

#define FOUND(member_, kind_, ...) CGAM_ROW(cgam_landscape, member_, #member_, kind_, __VA_ARGS__)
const cgam_field cgam_landscape_rows[] = {
    PART("points", 0, "the fixed points by rising energy"),
    FOUND(unique, CGAM_MAYBE, "true: there is one; false: there are several; null: not decided"),
    FOUND(unique_proved, CGAM_FLAG, "that is proved"),
    FOUND(starts, CGAM_INT, "descents in all"),
    FOUND(unresolved, CGAM_INT, "ended at no point that could be told from others"),
    FOUND(euler, CGAM_INT, "sum of (-1)^index: 1 where none is missing"),
    CGAM_ROWS_END,
};

/* ---- Flows of networks -------------------------------------------------------------------------- */
#define FLOWED(member_, kind_, ...)                                                                \
    CGAM_ROW(cgam_flow_report, member_, #member_, kind_, __VA_ARGS__)
const cgam_field cgam_flow_report_rows[] = {
    FLOWED(time, CGAM_REAL, "when it ended"),
    FLOWED(end, CGAM_CHOICE, "how it ended",
           .value = "steady|horizon|settled|winner|stopped|rose|diverged|steps|stuck"),
    FLOWED(reason, CGAM_TEXT, "why it is stuck", .when = CGAM_WITH_ALL),
    FLOWED(method, CGAM_CHOICE, "the integrator", .value = "auto|adams|bdf|rk4|euler"),
    FLOWED(steps, CGAM_INT, "time steps"),
    FLOWED(evaluations, CGAM_INT, "evaluations of all currents"),
    FLOWED(jacobians, CGAM_INT, "products with the Jacobian", .when = CGAM_WITH_ALL),
    FLOWED(energy_start, CGAM_REAL, "energy at the start"),
    FLOWED(energy_end, CGAM_REAL, "energy at the end"),
    FLOWED(energy_rise, CGAM_REAL, "largest rise between changes of a clamp; 0 but for rounding"),
    FLOWED(rise_time, CGAM_REAL, "time"),
    FLOWED(power, CGAM_REAL, "dE/dt at the end"),
    FLOWED(residual, CGAM_REAL, "largest |x - F(x)| of free layers"),
    FLOWED(settled, CGAM_REAL, "when the energy had settled"),
    FLOWED(winner, CGAM_INT, "of the watched layer", .when = CGAM_WITH_WATCH),
    FLOWED(winner_changes, CGAM_INT, "how often it changed", .when = CGAM_WITH_WATCH),
    FLOWED(winner_time, CGAM_REAL, "when it changed last", .when = CGAM_WITH_WATCH),
    CGAM_ROWS_END,
};

const cgam_field *cgam_fields(const char *of)
{
    static const struct {
        const char *name;
        const cgam_field *rows;
    } tables[] = {{"recall_opts", cgam_recall_opts_rows},
                  {"result", cgam_result_rows},
                  {"route", cgam_route_rows},
                  {"marks", cgam_marks_rows},
                  {"anneal_point", cgam_anneal_point_rows},
                  {"transition", cgam_transition_rows},
                  {"bank_info", cgam_bank_info_rows},
                  {"pack_info", cgam_pack_info_rows},
                  {"gram_info", cgam_gram_info_rows},
                  {"gate_info", cgam_gate_info_rows},
                  {"spectrum_info", cgam_spectrum_info_rows},
                  {"inspection", cgam_inspection_rows},
                  {"landscape_opts", cgam_landscape_opts_rows},
                  {"point", cgam_point_rows},
                  {"landscape", cgam_landscape_rows},
                  {"flow_report", cgam_flow_report_rows}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i].name, of) == 0) return tables[i].rows;
    return NULL;
}
