/* fields.c: the options of the experiments on language models as tables. An option that no single field can hold (a
 * choice that two flags stand for) has a row without a member; its verb sets the flags. */
#include "lab/language/fit.h"

#include <math.h>

#define ABOVE_0 0x1p-1000 /* any number above zero that leaves room for its inverse */
#define TEXT(struct_, member_, name_, value_, ...)                                                 \
    CGAM_ROW(struct_, member_, name_, CGAM_TEXT, __VA_ARGS__, .value = value_)
#define CHOICE(struct_, member_, name_, words_, fallback_, ...)                                    \
    CGAM_ROW(struct_, member_, name_, CGAM_CHOICE, __VA_ARGS__, .value = words_,                   \
             .fallback = fallback_)
#define NUMBER(struct_, member_, name_, kind_, value_, fallback_, min_, max_, ...)                 \
    CGAM_ROW(struct_, member_, name_, kind_, __VA_ARGS__, .value = value_, .fallback = fallback_,  \
             .min = min_, .max = max_)
#define FLAG(struct_, member_, name_, words_) CGAM_ROW(struct_, member_, name_, CGAM_FLAG, words_)
#define SCALE(struct_, words_)                                                                     \
    CHOICE(struct_, absolute, "lambda-scale", "relative|absolute", "relative", words_)

#define STUDY cgam_lm_study_opts
const cgam_field cgam_lm_study_opts_rows[] = {
    TEXT(STUDY, eval, "eval", "FILE", "queries", .input = CGAM_INPUT_TEXT),
    TEXT(STUDY, train, "train", "FILE",
         "file of demonstrations; default: the rows of --eval that are not queries",
         .input = CGAM_INPUT_TEXT),
    CHOICE(STUDY, format, "format", "tsv|facts|sst2|agnews|trec|lama|pairs", "tsv",
           "format of --eval and --train"),
    TEXT(STUDY, relation, "relation", "ID", "relation of --dataset lama", .fallback = "P36"),
    TEXT(STUDY, wording, "template", "TEXT",
         "wording of a demonstration, with {x}, {y} and \\n: 'Review: {x}\\nSentiment: {y}\\n\\n'"),
    TEXT(STUDY, labels, "labels", "KEY=WORD,..", "the word for each label of the file"),
    NUMBER(STUDY, shots, "shots", CGAM_INTS, "K,K,..", "0,1,4", 0, 1024,
           "numbers of demonstrations; 0 is always run", .count = offsetof(STUDY, shots_count)),
    NUMBER(STUDY, queries, "queries", CGAM_INT, "N", "200", 1, 1e6,
           "number of queries; fewer if the set has fewer"),
    CHOICE(STUDY, shared, "demos", "per-query|shared", "per-query",
           "demonstrations drawn for each query, or the same for all"),
    CHOICE(STUDY, order, "order", "balanced|cycled", "balanced",
           "order of the demonstrations' classes: balanced in random order, or each class once "
           "before any comes twice"),
    NUMBER(STUDY, seed, "seed", CGAM_INT, "N", "1", 0, 9e15,
           "seed for the choice of queries and demonstrations"),
    FLAG(STUDY, chat, "chat",
         "write prompts as a conversation in the model's chat template, with demonstrations "
         "as turns"),
    FLAG(STUDY, exact, "exact",
         "compute states by the plain f32 pass, not by libllama; Llama family only"),
    {.name = "dtype",
     .kind = CGAM_CHOICE,
     .value = "f32|f16|bf16",
     .fallback = "f32",
     .help = "type of the stored states"},
    CGAM_ROWS_END,
};

const cgam_field cgam_lm_answer_rows[] = {
    CHOICE(STUDY, answer, "answer", "first|sequence|distinct", NULL,
           "how answers are compared. first: by their first token (answers that share it are "
           "left out); sequence: by the probability of all their tokens; distinct: by the "
           "tokens up to where each differs from the others. Default: first, or sequence if "
           "classes begin alike",
           .given = offsetof(STUDY, answer_given)),
    CGAM_ROWS_END,
};

const cgam_field cgam_lm_neff_opts_rows[] = {
    CHOICE(cgam_lm_neff_opts, lens, "lens", "raw|gain|norm", "norm",
           "how a state becomes probabilities"),
    CGAM_ROWS_END,
};

const cgam_field cgam_lm_steer_opts_rows[] = {
    NUMBER(cgam_lm_steer_opts, lambda, "lambda", CGAM_REALS, "X,X,..", "0.25,0.5,1", 0, INFINITY,
           "couplings", .count = offsetof(cgam_lm_steer_opts, lambdas)),
    SCALE(cgam_lm_steer_opts,
          "rescale contexts to the mean norm of the queries, or use them as they are"),
    CGAM_ROWS_END,
};

const cgam_field cgam_lm_sweep_opts_rows[] = {
    CHOICE(cgam_lm_sweep_opts, lens, "lens", "raw|gain|norm", NULL,
           "raw: rows as they are; gain: rows times the final norm's weights (both keep lambda "
           "exact); norm: the final norm of the sum, on a grid of lambda. Default: gain, or "
           "norm if a bias follows the norm"),
    SCALE(cgam_lm_sweep_opts,
          "rescale contexts to the mean norm of the query layer, or use them as they are"),
    FLAG(cgam_lm_sweep_opts, in_sample, "in-sample",
         "contexts from all queries instead of the other half"),
    TEXT(cgam_lm_sweep_opts, projection, "projection", "FILE[:NAME]",
         "P (d,d), as written by `lm fit`: replace contexts c by P c, before rescaling",
         .input = CGAM_INPUT_NUMBERS),
    FLAG(cgam_lm_sweep_opts, intervals, "intervals",
         "also write sweep_intervals.csv: for every pair of layers, the couplings at which "
         "each query is right"),
    CGAM_ROWS_END,
};

#define GATES cgam_lm_gates_opts
const cgam_field cgam_lm_gates_opts_rows[] = {
    CHOICE(GATES, unit, "rows", "raw|unit", "raw",
           "use the rows of the unembedding as they are, or scaled to unit length"),
    NUMBER(GATES, alphas, "alphas", CGAM_REALS, "auto|A,A,..", "auto", 0, 1e300,
           "penalties below alpha_crit; 0 is always run. auto: densely around 1/mu_max, one per "
           "decade, and up to 0.99 alpha_crit",
           .count = offsetof(GATES, n_alphas)),
    {.name = "modes",
     .kind = CGAM_WORDS,
     .value = "first|coupled",
     .help = "first: without feedback; coupled: with feedback lambda^2; default: both"},
    NUMBER(GATES, context_layer, "context-layer", CGAM_INT, "L", NULL, 0, 10000,
           "default: chosen as in a sweep"),
    NUMBER(GATES, query_layer, "query-layer", CGAM_INT, "L", NULL, 0, 10000,
           "default: chosen as in a sweep"),
    CHOICE(GATES, over, "over", "restricted|full", "restricted",
           "choose layers and lambda by right answers among the labels, or among all words"),
    SCALE(GATES, "rescale contexts to the mean norm of the query layer, or use them as they are"),
    FLAG(GATES, in_sample, "in-sample", "contexts from all queries instead of one half"),
    CGAM_ROWS_END,
};

#define FIT cgam_lm_fit_opts
const cgam_field cgam_lm_fit_opts_rows[] = {
    CHOICE(FIT, from_query, "from", "context|query", "context",
           "x is the change that demonstrations make to the state after --layer, or that state "
           "without them"),
    NUMBER(FIT, layer, "layer", CGAM_INT, "L", NULL, 0, 10000,
           "layer of x; 0 is the embedding; default: the middle layer"),
    CHOICE(FIT, method, "method", "ridge|lowrank", "ridge",
           "P by ridge regression, or P = I + U'V, refined from there towards the model's own "
           "distribution of answers"),
    NUMBER(FIT, rank, "rank", CGAM_INT, "R", "8", 1, 1e6, "method lowrank: rank of P - I"),
    NUMBER(FIT, iterations, "iterations", CGAM_INT, "N", "20", 0, 1e5,
           "method lowrank: maximum number of iterations"),
    {.name = "curve",
     .kind = CGAM_CHOICE,
     .value = "yes|no",
     .fallback = "yes",
     .help = "also fit at every other layer, for the figure"},
    TEXT(FIT, save, "out", "FILE", "write P of all queries, f64 (d,d): .safetensors, .npz or .npy",
         .writes = true),
    CGAM_ROWS_END,
};

#define INJECT cgam_lm_inject_opts
const cgam_field cgam_lm_inject_opts_rows[] = {
    {.name = "kinds",
     .kind = CGAM_WORDS,
     .value = "add|replace",
     .help = "how the last token's state is changed; default: both ways"},
    NUMBER(INJECT, layers, "layers", CGAM_INTS, "all|L,L,..", "all", 0, 10000,
           "layers after which the state is edited; 0 is the embedding",
           .count = offsetof(INJECT, layers_count)),
    NUMBER(INJECT, scales, "scales", CGAM_REALS, "X,X,..", "1", -1e6, 1e6, "factors of the vectors",
           .count = offsetof(INJECT, scales_count)),
    CHOICE(INJECT, answer, "answer", "first|sequence|distinct|generate", NULL,
           "how answers are judged. first: by the first token among all words; sequence: by the "
           "whole answer's log-probability among the task's answers; distinct: by the tokens up "
           "to where it differs from the others; generate: by greedy text. Default: first, or "
           "sequence if classes begin alike"),
    TEXT(INJECT, projection, "projection", "FILE[:NAME]",
         "P (d,d), as written by `lm fit`: `add` and the readout use P c in place of c",
         .input = CGAM_INPUT_NUMBERS),
    CGAM_ROWS_END,
};

#define GENERATE cgam_lm_generate_opts
const cgam_field cgam_lm_generate_opts_rows[] = {
    NUMBER(GENERATE, max_tokens, "max-tokens", CGAM_INT, "N", "64", 1, 1048576,
           "maximum number of tokens to generate"),
    NUMBER(GENERATE, temperature, "temperature", CGAM_REAL, "X", "0", 0, 1e6,
           "0: always take the most probable token"),
    NUMBER(GENERATE, top_p, "top-p", CGAM_REAL, "X", "1", ABOVE_0, 1,
           "draw among the fewest tokens with this total probability"),
    NUMBER(GENERATE, seed, "seed", CGAM_INT, "N", "1", 0, 9e15, "seed for drawing tokens"),
    NUMBER(GENERATE, gate_alpha, "gate-alpha", CGAM_REAL, "X", "0", 0, 1e300,
           "competition between the rows of the vocabulary in --gate"),
    NUMBER(GENERATE, gate_lambda, "gate-lambda", CGAM_REAL, "X", "1", -1e300, 1e300,
           "coupling of --gate; 0: changes nothing"),
    {.name = "stop",
     .kind = CGAM_TEXT,
     .value = "TEXT",
     .help = "stop before this text; \\n stands for a line break",
     .many = true},
    FLAG(GENERATE, exact, "exact",
         "use the plain f32 pass instead of libllama's; Llama family only"),
    CGAM_ROWS_END,
};
