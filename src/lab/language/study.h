/* study.h: the experiments on language models, each one call that returns tables and a document.
 *
 * A study opens its model, data, store and lens once. The experiments read hidden states through it
 * and return results. The same options and seed give the same numbers. It draws no figures
 * and prints nothing.
 *
 *     cgam_lm_study_opts opts = cgam_lm_study_opts_default();
 *     opts.queries = 40;
 *     cgam_lm_study_open(env, &opts, &study);
 *     cgam_lm_sweep(study, NULL, &result);        result->json is the document
 */
#ifndef CGAM_SRC_LAB_LANGUAGE_STUDY_H
#define CGAM_SRC_LAB_LANGUAGE_STUDY_H

#include "base/alloc.h"
#include "base/field.h"
#include "lab/document.h"
#include "lab/journal.h"
#include "lab/language/baseline.h"
#include "lab/language/dataset.h"
#include "lab/language/sweep.h"
#include "lab/table.h"
#include "lm/collect.h"

#include <cgam/io.h>

/* ---- Answers ------------------------------------------------------------------------------ */
/* How an answer is judged. */
typedef enum cgam_lm_answer {
    CGAM_ANSWER_FIRST, /* by its first token; leaves out queries whose answer begins like another
                          answer */
    CGAM_ANSWER_SEQUENCE, /* right if all its tokens have the largest log-probability of the task's answers */
    CGAM_ANSWER_DISTINCT, /* the same for its tokens up to where it differs from all others: one token if
                             no other begins so */
    CGAM_ANSWER_GENERATE /* greedy text up to a line's end, compared without case, outer blanks and stops */
} cgam_lm_answer;
const char *cgam_lm_answer_name(cgam_lm_answer value); /* "first", .. */
bool cgam_lm_answer_find(const char *name, cgam_lm_answer *out);

/* ---- The study ---------------------------------------------------------------------------- */
typedef struct cgam_lm_study cgam_lm_study;
typedef struct cgam_lm_task cgam_lm_task; /* data and the prompts made of them */

/* Texts and lists are needed only until cgam_lm_study_open returns. */
typedef struct cgam_lm_study_opts {
    const char *model;    /* GGUF file; default NULL = the one that cgam_lm_fetch downloads */
    const char *store;    /* file that stores states; default NULL = not stored */
    const char *dataset;  /* "facts", "sentiment", one of cgam_dataset_tasks: shipped; "sst2",
                             "agnews", "trec", "lama": files under $CGAM_DATA; default NULL =
                             sentiment, or eval if that is given */
    const char *eval;     /* file of queries, instead of a dataset */
    const char *train;    /* file of demonstrations; default NULL = the rest of the queries' file */
    const char *format;   /* of both, as in dataset.h; default "tsv" */
    const char *relation; /* of lama; default "P36" */
    const char *wording;  /* template with {x}, {y}, \n, \t, \\; default NULL = the data's own */
    const char *labels;   /* "KEY=WORD,.."; default NULL = the data's own */
    const int64_t *shots; /* numbers of demonstrations; 0 is always run; default 0, 1, 4 */
    int64_t shots_count;  /* 0 = the default */
    int64_t queries;      /* default 200, fewer if the set has fewer */
    bool shared;          /* the same demonstrations for all queries; default false */
    cgam_order order;     /* of their classes; default CGAM_ORDER_BALANCED */
    uint64_t seed;        /* of queries and demonstrations; default 1 */
    bool chat;            /* in the model's chat template: demonstrations are turns of the user and
                             the assistant, the query the user's last; default false: plain text */
    bool exact;           /* states by the plain f32 pass; default false: libllama's */
    bool all_tokens;      /* keep states of all tokens too, which needs a store; default false */
    bool answer_given;    /* default false: FIRST, or SEQUENCE if classes begin alike */
    cgam_lm_answer answer; /* of sweep, steer, gates; read if answer_given: FIRST or SEQUENCE */
    cgam_dtype dtype;      /* how states are stored: f32 (default), f16, bf16 */
    unsigned parts;     /* of the whole study, 1 << CGAM_LM_NEFF | ..; default 0 = the first four */
    const char *resume; /* file for finished results, part by part and within long parts (an alpha,
                           a layer, a thousand edits). The same study, opened again after an
                           interruption, continues from it with the same bits. Remove it when the
                           results are safe. default NULL = only states are kept */
    cgam_progress progress; /* default: none */
    int64_t turn,
        turns; /* for progress: number and count of the studies of a run; default 0 of 0 = alone */
    cgam_lm *lm; /* used instead of `model`; must outlive the study; default NULL */
} cgam_lm_study_opts;

cgam_lm_study_opts cgam_lm_study_opts_default(void);

/* Opens a study; close it with cgam_lm_study_close. Not thread-safe: one thread at a time. opts NULL =
 * defaults. */
CGAM_NODISCARD cgam_status cgam_lm_study_open(cgam_env *env, const cgam_lm_study_opts *opts,
                                              cgam_lm_study **out);
void cgam_lm_study_close(cgam_lm_study *study); /* NULL is fine */

/* How answers are compared: as given in the options, else FIRST, or SEQUENCE if classes begin alike. */
CGAM_NODISCARD cgam_status cgam_lm_study_answer(cgam_lm_study *study, cgam_lm_answer *out);
/* The model's lens, made on the first call. */
CGAM_NODISCARD cgam_status cgam_lm_study_lens(cgam_lm_study *study, const cgam_lens **out);

/* ---- Results ------------------------------------------------------------------------------ */
typedef struct cgam_lm_result cgam_lm_result;
void cgam_lm_result_free(cgam_lm_result *result); /* NULL is fine */

/* ---- Experiments -------------------------------------------------------------------------- */
/* Free *out of each with cgam_lm_result_free. opts NULL = defaults. */

/* Runs every prompt and stores its states. */
CGAM_NODISCARD cgam_status cgam_lm_study_capture(cgam_lm_study *study, cgam_lm_result **out);

/* The effective number of words of a state, layer by layer, and the mass on the labels' words. */
typedef struct cgam_lm_neff_opts {
    cgam_lens_kind lens; /* default NORM; RAW is added, or NORM beside the others */
} cgam_lm_neff_opts;
cgam_lm_neff_opts cgam_lm_neff_opts_default(void);
CGAM_NODISCARD cgam_status cgam_lm_neff(cgam_lm_study *study, const cgam_lm_neff_opts *opts,
                                        cgam_lm_result **out);

/* Retrieval by query plus context over all pairs of layers, exact in lambda, with its baselines. */
typedef struct cgam_lm_sweep_opts {
    bool lens_given;     /* default false: GAIN, or NORM if a bias follows the final norm */
    cgam_lens_kind lens; /* read if lens_given */
    bool absolute;       /* contexts as they are; default false: to the query layer's mean norm */
    bool in_sample;      /* contexts from all queries; default false: from the other half */
    bool
        intervals; /* for every pair, a table of the couplings at which each query is right; default false */
    const char
        *projection; /* file of P, width x width (fit.h): what demonstrations add becomes P times
                        it, before it is rescaled; right, flipped and another task's alike.
                        default NULL = I */
} cgam_lm_sweep_opts;
cgam_lm_sweep_opts cgam_lm_sweep_opts_default(void);
CGAM_NODISCARD cgam_status cgam_lm_sweep(cgam_lm_study *study, const cgam_lm_sweep_opts *opts,
                                         cgam_lm_result **out);

/* Queries at the last layer pushed by contexts of right and wrong facts. */
typedef struct cgam_lm_steer_opts {
    const double *lambda; /* couplings; default 0.25, 0.5, 1 */
    int64_t lambdas;      /* 0 = the default */
    bool absolute;        /* contexts unscaled; default false: scaled to the queries' mean norm */
} cgam_lm_steer_opts;
cgam_lm_steer_opts cgam_lm_steer_opts_default(void);
/* task NULL: the study's own. */
CGAM_NODISCARD cgam_status cgam_lm_steer(cgam_lm_study *study, cgam_lm_task *task,
                                         const cgam_lm_steer_opts *opts, cgam_lm_result **out);

/* Separability and alignment, layer by layer; the data must have classes. */
CGAM_NODISCARD cgam_status cgam_lm_probe(cgam_lm_study *study, cgam_lm_result **out);

/* The parts opts->parts (default: those of a study) under each of n seeds (two or more, all different), each with its
 * own queries and demonstrations. The document has "draws", every seed's documents by part; "headlines", each
 * main number's mean, standard deviation over seeds and mean error within one; and of the sweep the mean and
 * deviation of every accuracy. Tables: accuracies of the sweep, and the headlines of every seed. Opens a study for
 * each seed but opts->seed, whose documents are `own` (borrowed) unless that is NULL; with opts->store prompts are
 * run once, with opts->resume a seed's results are kept in that file's name and ".SEED". */
CGAM_NODISCARD cgam_status cgam_lm_seeds(cgam_env *env, const cgam_lm_study_opts *opts, int64_t n,
                                         const uint64_t *seeds, const json_t *own,
                                         cgam_lm_result **out);

/* Contexts inside the model: vectors injected into the residual stream of the last token of prompts without
 * demonstrations, after every layer, compared with no edit, demonstrations, and the readout of the sweep.
 *
 * ADD adds the mean effect of demonstrations. REPLACE substitutes the state of another query's prompt
 * with its demonstrations (Hendel et al. 2023: demonstrations and a dummy query). Vectors come from the
 * other half of the queries. For each half the cell (kind, layer, scale) with the most queries right
 * under vectors of their own half is chosen, and the other half is counted there under vectors of the
 * first; of cells that do equally well the latest layer, then the smallest scale, then ADD. */
typedef struct cgam_lm_inject_opts {
    bool no_add, no_replace; /* default false: both kinds */
    const int64_t *layers;   /* [layers_count]; default NULL = 0 .. L */
    int64_t layers_count;
    const double *scales; /* [scales_count] factors of the vectors; default 1 */
    int64_t scales_count;
    cgam_lm_answer
        answer; /* default FIRST; cgam_lm_study_answer returns what the other parts use */
    const char
        *projection; /* file of P, width x width (fit.h): ADD adds P times the mean effect, of
                        controls too, and the readout has it; REPLACE puts a state there, which is
                        no context, and knows no P. default NULL = I */
} cgam_lm_inject_opts;
cgam_lm_inject_opts cgam_lm_inject_opts_default(void);
CGAM_NODISCARD cgam_status cgam_lm_inject(cgam_lm_study *study, const cgam_lm_inject_opts *opts,
                                          cgam_lm_result **out);

/* The same for every task of a suite: "shipped" (cgam_dataset_tasks), or a folder whose .json files are
 * pairs. study names no data. The document has `tasks`, one document each with its name; a task that
 * cannot be judged so (all answers begin alike) has a `reason` instead. */
CGAM_NODISCARD cgam_status cgam_lm_inject_suite(cgam_env *env, const cgam_lm_study_opts *study,
                                                const char *suite, const cgam_lm_inject_opts *opts,
                                                cgam_lm_result **out);

/* Retrieval over the whole vocabulary under the gate operator (gates.h): alpha from 0 to just below
 * alpha_crit, without and with the feedback of p on the gates. The final norm acts on the states, the
 * bank is the unembedding; couplings are chosen on one half of the queries, in mode first, and counted
 * on the other. Of answers of several tokens the gates recall the first, and the model without
 * demonstrations says how probable the others are after it. */
typedef struct cgam_lm_gates_opts {
    bool unit;                 /* rows scaled to unit length; default false */
    const double *alphas;      /* [n_alphas]; 0 is always run; default NULL = the grid of gates.h */
    int64_t n_alphas;          /* at most 23 */
    bool no_first, no_coupled; /* default false: both modes */
    int64_t context_layer, query_layer; /* default -1: chosen by a sweep on each half */
    cgam_sweep_over
        over;      /* the set of answers by which layers and couplings are chosen; default labels */
    bool absolute; /* contexts as they are; default false: to the query layer's mean norm */
    bool in_sample; /* contexts from all queries; default false: from the choosing half */
} cgam_lm_gates_opts;
cgam_lm_gates_opts cgam_lm_gates_opts_default(void);
CGAM_NODISCARD cgam_status cgam_lm_gates(cgam_lm_study *study, const cgam_lm_gates_opts *opts,
                                         cgam_lm_result **out);

/* Function vectors (Todd et al. 2024): which heads carry a task from its demonstrations to the answer.
 *
 * The effect of a head on a query is what the probability of the answer's first token gains when, in the prompt with
 * flipped demonstrations, the head's numbers at the last token are replaced by their mean over prompts with right ones.
 * The even queries make the means, the effects and all choices; the odd ones are counted. */
typedef struct cgam_lm_heads_opts {
    int64_t top; /* heads whose mean outputs are summed; default 10, at most those that there are */
} cgam_lm_heads_opts;
cgam_lm_heads_opts cgam_lm_heads_opts_default(void);
/* Puts the results into doc. *out (may be NULL): the sum at the layer where it is best added, zeros at the others; free
 * it with cgam_vector_free. */
CGAM_NODISCARD cgam_status cgam_lm_heads(cgam_lm_study *study, const cgam_lm_heads_opts *opts,
                                         json_t *doc, cgam_vector **out);

/* ---- The parts of a whole study ----------------------------------------------------------- */
typedef enum cgam_lm_part {
    CGAM_LM_NEFF,
    CGAM_LM_SWEEP,
    CGAM_LM_STEER, /* about facts: uses the shipped ones if the data have classes */
    CGAM_LM_PROBE, /* about classes: left out if the data are facts */
    CGAM_LM_PARTS, /* count of the default parts */
    CGAM_LM_INJECT = CGAM_LM_PARTS, /* compares whole answers if the data's begin alike */
    CGAM_LM_GATES,
    CGAM_LM_FIT,
    CGAM_LM_EXPERIMENTS /* count of all parts */
} cgam_lm_part;
const char *cgam_lm_part_name(cgam_lm_part value); /* "neff" */
bool cgam_lm_part_find(const char *name, cgam_lm_part *out);

/* Runs one part with its defaults; *out is NULL if it is left out. Progress covers all parts. */
CGAM_NODISCARD cgam_status cgam_lm_study_part(cgam_lm_study *study, cgam_lm_part part,
                                              cgam_lm_result **out);

/* ---- What the experiments share -------------------------------------------------------------- */
struct cgam_lm_task {
    const char *name; /* of the data; borrowed */
    char source[640]; /* the prompts' source in the store, with all that distinguishes them */
    cgam_dataset *eval, *train;
    cgam_prompts *prompts;
    int64_t queries, labels;
    /* From cgam_lm_task_label. The first token of each label's word, as it follows the cue; -1 for
     * words that begin alike. */
    int32_t *tokens; /* [labels] */
    int32_t *target; /* [queries] labels; -1: not distinguishable from another */
    int64_t counted; /* queries with a label */
    struct cgam_answers
        *answers; /* if all their tokens are compared: study_sweep.h; NULL: only the first */
};

enum { CGAM_SHOTS_MAX = 16, CGAM_PLAN_MAX = 16 * CGAM_SHOTS_MAX };

/* The work of a whole study, in tokens to run: study.c. */
typedef struct cgam_lm_plan {
    double total, done, now; /* now: of the current step; total 0: no plan */
    int count;
    struct {
        uint64_t key;
        double work;
        bool begun;
    } run[CGAM_PLAN_MAX]; /* prompts, in the order of their parts */
} cgam_lm_plan;

struct cgam_lm_study {
    cgam_env *env;
    cgam_lm *lm;
    cgam_lm_info info;
    cgam_store *store;
    const cgam_lens *lens; /* owned by the model; NULL until first requested */
    bool borrowed;         /* the caller owns the model */
    cgam_lm_task task;
    char name[1024];               /* of the data */
    int64_t shots[CGAM_SHOTS_MAX]; /* rising, 0 first */
    int64_t n_shots, queries;      /* queries: as many as asked for */
    uint64_t seed;
    cgam_dtype dtype;
    cgam_order order;
    bool shared, exact, chat, all_tokens, answer_given;
    cgam_lm_answer answer;
    cgam_progress told,
        progress; /* the caller's progress, and ours, which adds the names of part and prompts */
    char part[112], doing[64]; /* "sweep 2/4: ", "sst2, 4 shots flipped: "; or "" */
    cgam_collected collected;  /* by the running experiment */
    cgam_lm_plan plan;
    int64_t turn, turns; /* as in the options */
    unsigned parts;      /* of the whole study, a bit each */
    cgam_journal *kept;  /* NULL: results are not kept */
};

/* A shipped dataset as a task; borrows the name. */
cgam_status cgam_lm_task_shipped(const cgam_lm_study *study, const char *name, int64_t queries,
                                 int64_t shots_max, cgam_lm_task *out);
/* The study's own task, read from its options. */
cgam_status cgam_lm_task_open(cgam_lm_study *study, const cgam_lm_study_opts *opts);
/* Changes the data of a study, whose model, store and lens stay open. Only the data may differ in opts.
 * After a failure the study has no data; the next call may succeed. */
cgam_status cgam_lm_study_turn(cgam_lm_study *study, const cgam_lm_study_opts *opts);
void cgam_lm_task_close(cgam_env *env, cgam_lm_task *task); /* accepts a half-open task */
/* Fails if all queries of a task have the same answer. */
cgam_status cgam_lm_task_several(const cgam_lm_study *study, const cgam_lm_task *task);
/* Fills tokens, target and, if whole answers are compared, answers, on the first call. */
cgam_status cgam_lm_task_label(cgam_lm_study *study, cgam_lm_task *task);

/* Tokens owned by the caller; free them with cgam_lm_tokens_free. */
typedef struct cgam_lm_tokens {
    int32_t *tokens; /* [count] */
    int64_t count;
} cgam_lm_tokens;
/* The tokens of cue, blanks and word that follow those of the cue alone: the model's correct continuation.
 * In a chat the answer begins a turn, which follows a line's end. */
cgam_status cgam_lm_answer_tokens(const cgam_lm_study *study, const cgam_prompts *prompts,
                                  const char *word, cgam_lm_tokens *out);
/* The tokens of a query's prompt with k demonstrations. */
cgam_status cgam_lm_task_tokens(const cgam_lm_study *study, const cgam_lm_task *task, int64_t query,
                                int64_t k, cgam_demos demos, cgam_lm_tokens *out);

/* States of every query with k demonstrations, [queries, L + 1, d]; out NULL: only stores them.
 * Free *out with cgam_free. */
cgam_status cgam_lm_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                           cgam_demos demos, float **out);

/* States with k demonstrations, and shifts [L + 1, 2, d]: what these add to the states without them, zero (may be
 * NULL), as means over each half, or, if all, over all queries. Free *with with cgam_free. */
cgam_status cgam_lm_shifts(cgam_lm_study *study, const cgam_lm_task *task, const float *zero,
                           int64_t k, cgam_demos demos, bool all, float **with, float *shifts);

/* Tokens after the prompt of a query. */
typedef struct cgam_lm_ending {
    int64_t query;
    const int32_t *tokens; /* [count], borrowed for the call */
    int64_t count;         /* 1 or more */
} cgam_lm_ending;
/* The same, and the states after each ending, [queries + endings, L + 1, d]. Endings are in the order of their
 * queries, whose prompts are computed once. */
cgam_status cgam_lm_states_after(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                                 cgam_demos demos, int64_t endings, const cgam_lm_ending *ending,
                                 float **out);

/* ---- Progress of the whole: study.c ----------------------------------------------------- */
/* The number of states that each part reads over the vocabulary for every layer and query, for one number of
 * shots; the work of a probe takes about as long as one. */
enum {
    CGAM_WORK_NEFF = 2,   /* two lenses */
    CGAM_WORK_SWEEP = 3,  /* queries and contexts, and the paper's own protocol */
    CGAM_WORK_STEER = 12, /* four contexts, three couplings */
    CGAM_WORK_PROBE = 1,
    CGAM_WORK_FIT = 12 /* of a layer: the five ways judged, and the two fits */
};
/* Plans a single experiment: the prompts of its own task with true labels, and the number of states
 * to read. */
cgam_status cgam_lm_plan_readings(cgam_lm_study *study, double states);
/* The tokens of the task's prompts that are not in the store. */
cgam_status cgam_lm_states_work(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                                cgam_demos demos, double *tokens);
/* Ends the current step and begins the next: an amount of work, a number of states, or the planned prompts. */
void cgam_lm_work_begin(cgam_lm_study *study, double work);
void cgam_lm_work_readings(cgam_lm_study *study, double states);
void cgam_lm_work_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                         cgam_demos demos);
/* Reports how many of its layers are done. */
void cgam_lm_work_tell(cgam_lm_study *study, const char *what, int64_t done, int64_t total);
/* The task whose contexts are the control, with k demonstrations, of the sweep or of injection; its name is
 * constant. */
cgam_status cgam_lm_other_task(const cgam_lm_study *study, bool inject, int64_t k,
                               cgam_lm_task *out);
/* Tokens that injection runs for one number of shots; states that gates read. */
double cgam_lm_inject_work(const cgam_lm_study *study);
double cgam_lm_gates_work(const cgam_lm_study *study, const cgam_lm_gates_opts *opts);

/* ---- Kept results: study_result.c ---------------------------------------------------------- */
/* Opens the file for the current study. Records of the same run are kept, others are dropped. */
cgam_status cgam_kept_open(cgam_lm_study *study, const char *path);
/* Returns what an earlier run kept for the study's task under this key, which must name all options that it depends
 * on; NULL or false if nothing. Bytes are valid until the study is closed; the copy requires this size. */
const void *cgam_kept_bytes(const cgam_lm_study *study, const char *key, size_t *size);
bool cgam_kept_find(const cgam_lm_study *study, const char *key, void *out, size_t size);
/* Keeps bytes for later runs, written on return; does nothing if the study keeps no results. */
cgam_status cgam_kept_add(cgam_lm_study *study, const char *key, const void *bytes, size_t size);
/* The same for a whole result; *out is NULL if there is none. */
cgam_status cgam_kept_add_result(cgam_lm_study *study, const char *key, const cgam_lm_result *r);
cgam_status cgam_kept_result(cgam_lm_study *study, const char *key, cgam_lm_result **out);

/* ---- Results: study_result.c -------------------------------------------------------------- */
enum { CGAM_LM_TABLES = 24 };

struct cgam_lm_result {
    cgam_env *env;
    json_t *doc; /* model, data, seed, captured states, results */
    char *json;  /* the same as text */
    int64_t tables;
    cgam_table table[CGAM_LM_TABLES];
    double *cells[CGAM_LM_TABLES];
    char **names[CGAM_LM_TABLES];           /* of rows that have one, else NULL */
    int64_t capacity[CGAM_LM_TABLES];       /* numbers in cells */
    int64_t names_capacity[CGAM_LM_TABLES]; /* rows in names */
    bool lost;                              /* a row found no memory */
    char *words[CGAM_LM_EXPERIMENTS];       /* of tables that were kept */
};

/* An empty result; what the study has collected is counted from here. */
cgam_status cgam_lm_result_new(cgam_lm_study *study, cgam_lm_result **out);
cgam_status cgam_lm_result_empty(cgam_env *env, cgam_lm_result **out); /* of no study */
/* Adds a table without rows; its words must be constant. Returns its number. */
int cgam_lm_result_add(cgam_lm_result *r, const char *name, const char *about, const char *heads);
void cgam_lm_result_row(cgam_lm_result *r, int table, const double *values);
/* The same in a table whose first column is text; every row of it goes this way. Copies the name. */
void cgam_lm_result_named(cgam_lm_result *r, int table, const char *name, const double *values);
/* Puts the named columns of the last `rows` rows, each under its name. */
void cgam_lm_result_put(const cgam_lm_result *r, int table, int64_t rows, const char *columns,
                        json_t *to);
/* Appends an object to the curves: k, and whether that is zero-shot; returns it. */
json_t *cgam_lm_curve(json_t *curves, int64_t k);
/* Puts what was run: model, data, seed, states found and computed. */
void cgam_lm_result_describe(cgam_lm_result *r, const cgam_lm_study *study,
                             const cgam_lm_task *task);
/* Puts the labels' words, the tokens that they begin with where these are known, and all of their tokens
 * where whole answers are compared. */
void cgam_lm_put_labels(json_t *doc, const cgam_lm_task *task);
/* Puts a share and its error, NAME and NAME_se; cgam_lm_put_recovery the share recovered, its error and NAME_95. */
void cgam_lm_put_share(json_t *to, const char *name, cgam_share share);
void cgam_lm_put_recovery(json_t *to, const char *name, const cgam_recovery *r);
/* Puts the shares right over the labels and over all words, right [2], with their errors unless bare, and which
 * queries that is. */
void cgam_lm_put_overs(const cgam_lm_study *study, json_t *to, int64_t n, const int32_t *target,
                       const bool *const right[2], bool bare);
/* Puts one character for each of n queries that counts: 1 right, 0 wrong. */
void cgam_lm_put_right(cgam_env *env, json_t *to, const char *name, int64_t n,
                       const int32_t *target, const bool *right);
/* Hands r over as *out, or frees it when anything failed, and says so. */
cgam_status cgam_lm_result_end(cgam_lm_result *r, cgam_status status, cgam_lm_result **out);

/* Puts "model": {name, architecture, layers, width, vocab, ...}. */
void cgam_put_lm(json_t *doc, const cgam_lm *lm);
/* Puts "capture": {found, computed, tokens, seconds}. */
void cgam_put_collected(json_t *doc, const cgam_collected *collected);

/* Are these seeds that cgam_lm_seeds takes? */
cgam_status cgam_lm_seeds_check(cgam_env *env, int64_t n, const uint64_t *seeds);
/* Where the results of a seed are kept beside those of a study. */
cgam_status cgam_lm_seed_path(cgam_env *env, const char *resume, uint64_t seed,
                              char path[CGAM_PATH_ROOM]);

/* ---- Options as tables, a row for each field: fields.c ------------------------------------------ */
/* cgam_lm_study_opts: what is run, but for model, store and dataset; and how answers are compared. */
extern const cgam_field cgam_lm_study_opts_rows[], cgam_lm_answer_rows[];
extern const cgam_field cgam_lm_neff_opts_rows[], cgam_lm_steer_opts_rows[],
    cgam_lm_sweep_opts_rows[], cgam_lm_gates_opts_rows[], cgam_lm_fit_opts_rows[],
    cgam_lm_inject_opts_rows[];
extern const cgam_field cgam_lm_generate_opts_rows[];

#endif
