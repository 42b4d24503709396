/* fields.c: the options of the experiments on language models as tables. What an option cannot be set to by its row alone (a choice that two flags stand for) has no
 * place in the struct here, and is set by the verb. */
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
         "file of demonstrations; the rest of the queries' file if not given",
         .input = CGAM_INPUT_TEXT),
    CHOICE(STUDY, format, "format", "tsv|facts|sst2|agnews|trec|lama|pairs", "tsv",
           "of --eval and --train"),
    TEXT(STUDY, relation, "relation", "ID", "of --dataset lama", .fallback = "P36"),
    TEXT(STUDY, wording, "template", "TEXT",
         "with {x}, {y} and \\n: 'Review: {x}\\nSentiment: {y}\\n\\n'"),
    TEXT(STUDY, labels, "labels", "KEY=WORD,..", "the word for each label of the file"),
    NUMBER(STUDY, shots, "shots", CGAM_INTS, "K,K,..", "0,1,4", 0, 1024,
           "numbers of demonstrations; 0 is always run", .count = offsetof(STUDY, shots_count)),
    NUMBER(STUDY, queries, "queries", CGAM_INT, "N", "200", 1, 1e6,
           "number of queries; fewer if the set has fewer"),
    CHOICE(STUDY, shared, "demos", "per-query|shared", "per-query",
           "demonstrations drawn for each query, or the same for all"),
    CHOICE(STUDY, order, "order", "balanced|cycled", "balanced",
           "of their classes: any balanced one, or none twice before all"),
    NUMBER(STUDY, seed, "seed", CGAM_INT, "N", "1", 0, 9e15, "of queries and demonstrations"),
    FLAG(STUDY, chat, "chat",
         "a conversation in the model's chat template: demonstrations are turns"),
    FLAG(STUDY, exact, "exact",
         "compute states by the plain f32 pass, not by libllama; Llama family only"),
    {.name = "dtype",
     .kind = CGAM_CHOICE,
     .value = "f32|f16|bf16",
     .fallback = "f32",
     .help = "how states are stored"},
    CGAM_ROWS_END,
};

const cgam_field cgam_lm_answer_rows[] = {
    CHOICE(STUDY, answer, "answer", "first|sequence|distinct", NULL,
           "answers are compared by their first token, those that share it left out, "
           "by the probability of all their tokens, or of those up to where each "
           "parts from the others; first, or sequence where classes begin alike",
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
    SCALE(cgam_lm_steer_opts, "contexts rescaled to the mean norm of the queries, or as they are"),
    CGAM_ROWS_END,
};

const cgam_field cgam_lm_sweep_opts_rows[] = {
    CHOICE(cgam_lm_sweep_opts, lens, "lens", "raw|gain|norm", NULL,
           "rows as they are, or times the final norm's weights (both keep lambda exact), or the "
           "final norm of the sum on a grid of lambda; gain, or norm if a bias follows the norm"),
    SCALE(cgam_lm_sweep_opts,
          "contexts rescaled to the mean norm of the query layer, or as they are"),
    FLAG(cgam_lm_sweep_opts, in_sample, "in-sample",
         "contexts from all queries instead of the other half"),
    TEXT(cgam_lm_sweep_opts, projection, "projection", "FILE[:NAME]",
         "P (d,d), as `lm fit` writes it: contexts c become P c, before they are "
         "rescaled",
         .input = CGAM_INPUT_NUMBERS),
    FLAG(cgam_lm_sweep_opts, intervals, "intervals",
         "also write sweep_intervals.csv: the couplings at which each query "
         "is right, of every pair of layers"),
    CGAM_ROWS_END,
};

#define GATES cgam_lm_gates_opts
const cgam_field cgam_lm_gates_opts_rows[] = {
    CHOICE(GATES, unit, "rows", "raw|unit", "raw", "the unembedding as it is, or at unit length"),
    NUMBER(GATES, alphas, "alphas", CGAM_REALS, "auto|A,A,..", "auto", 0, 1e300,
           "penalties below alpha_crit; 0 is always run. auto: closely around 1/mu_max, "
           "by decades, and up to 0.99 alpha_crit",
           .count = offsetof(GATES, n_alphas)),
    {.name = "modes",
     .kind = CGAM_WORDS,
     .value = "first|coupled",
     .help = "without and with feedback lambda^2; both if not given"},
    NUMBER(GATES, context_layer, "context-layer", CGAM_INT, "L", NULL, 0, 10000,
           "chosen as in a sweep if not given"),
    NUMBER(GATES, query_layer, "query-layer", CGAM_INT, "L", NULL, 0, 10000,
           "chosen as in a sweep if not given"),
    CHOICE(GATES, over, "over", "restricted|full", "restricted",
           "layers and lambda by right answers among the labels, or among all words"),
    SCALE(GATES, "contexts rescaled to the mean norm of the query layer, or as they are"),
    FLAG(GATES, in_sample, "in-sample", "contexts from all queries instead of one half"),
    CGAM_ROWS_END,
};

#define FIT cgam_lm_fit_opts
const cgam_field cgam_lm_fit_opts_rows[] = {
    CHOICE(FIT, from_query, "from", "context|query", "context",
           "x: what demonstrations add to the state after --layer, or that state "
           "without them"),
    NUMBER(FIT, layer, "layer", CGAM_INT, "L", NULL, 0, 10000,
           "of x; 0 is the embedding; the middle one if not given"),
    CHOICE(FIT, method, "method", "ridge|lowrank", "ridge",
           "P by ridge regression, or P = I + U'V that goes on from there towards the "
           "model's own distribution of answers"),
    NUMBER(FIT, rank, "rank", CGAM_INT, "R", "8", 1, 1e6, "of P - I, method lowrank"),
    NUMBER(FIT, iterations, "iterations", CGAM_INT, "N", "20", 0, 1e5,
           "of the optimiser, at most, method lowrank"),
    {.name = "curve",
     .kind = CGAM_CHOICE,
     .value = "yes|no",
     .fallback = "yes",
     .help = "fit at every other layer too, for the figure"},
    TEXT(FIT, save, "out", "FILE", "write P of all queries, f64 (d,d): .safetensors, .npz or .npy",
         .writes = true),
    CGAM_ROWS_END,
};

#define INJECT cgam_lm_inject_opts
const cgam_field cgam_lm_inject_opts_rows[] = {
    {.name = "kinds",
     .kind = CGAM_WORDS,
     .value = "add|replace",
     .help = "how the last token's state is changed; both ways if not given"},
    NUMBER(INJECT, layers, "layers", CGAM_INTS, "all|L,L,..", "all", 0, 10000,
           "after which layers; 0 is the embedding", .count = offsetof(INJECT, layers_count)),
    NUMBER(INJECT, scales, "scales", CGAM_REALS, "X,X,..", "1", -1e6, 1e6, "factors of the vectors",
           .count = offsetof(INJECT, scales_count)),
    CHOICE(INJECT, answer, "answer", "first|sequence|distinct|generate", NULL,
           "judged by the first token among all words, by the whole answer's "
           "log-probability among the task's, by that of its tokens up to where it "
           "parts from the others, or by greedy text; first, or sequence where classes "
           "begin alike"),
    TEXT(INJECT, projection, "projection", "FILE[:NAME]",
         "P (d,d), as `lm fit` writes it: what `add` adds, and the readout, is P c",
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
    NUMBER(GENERATE, seed, "seed", CGAM_INT, "N", "1", 0, 9e15, "of what is drawn"),
    {.name = "stop",
     .kind = CGAM_TEXT,
     .value = "TEXT",
     .help = "end before this text; \\n is a line's end",
     .many = true},
    FLAG(GENERATE, exact, "exact",
         "use the plain f32 pass instead of libllama's; Llama family only"),
    CGAM_ROWS_END,
};
