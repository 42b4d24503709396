/* lm_study.h: the experiments on language models, each one call that returns tables and a document.
 *
 * A study opens its model, data, store and lens once; the experiments read hidden states through it
 * and hand back what they found. The same options and seed give the same numbers. It knows nothing
 * of pictures and prints nothing.
 *
 *     cgam_lm_study_opts opts = cgam_lm_study_opts_default();
 *     opts.queries = 40;
 *     cgam_lm_study_open(env, &opts, &study);
 *     cgam_lm_sweep(study, NULL, &result);        puts(cgam_lm_result_json(result));
 */
#ifndef CGAM_LM_STUDY_H
#define CGAM_LM_STUDY_H

#include <cgam/dataset.h>
#include <cgam/io.h>
#include <cgam/lens.h>
#include <cgam/store.h>
#include <cgam/sweep.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Answers ------------------------------------------------------------------------------ */
/* How an answer is judged. */
typedef enum cgam_lm_answer {
    CGAM_ANSWER_FIRST, /* by its first token; queries whose answer begins as another one does are left
                             out */
    CGAM_ANSWER_SEQUENCE, /* the log-probability of all its tokens is the largest of the task's answers */
    CGAM_ANSWER_DISTINCT, /* the same of its tokens up to where it parts from all others: of one token where
                             no other begins so */
    CGAM_ANSWER_GENERATE /* greedy text up to a line's end, the same but for case, outer blanks and stops */
} cgam_lm_answer;
CGAM_API const char *cgam_lm_answer_name(cgam_lm_answer answer); /* "first", .. */
CGAM_API bool cgam_lm_answer_find(const char *name, cgam_lm_answer *out);

/* ---- The study ---------------------------------------------------------------------------- */
typedef struct cgam_lm_study cgam_lm_study;

/* Texts and lists are read while the study is opened. */
typedef struct cgam_lm_study_opts {
    const char *model;     /* GGUF file; default NULL = the one that cgam_lm_fetch brings */
    const char *store;     /* file that keeps states; default NULL = they are not kept */
    const char *dataset;   /* "facts", "sentiment", one of cgam_dataset_tasks: shipped; "sst2",
                            "agnews", "trec", "lama": files under $CGAM_DATA; default NULL =
                            sentiment, or eval where that is given */
    const char *eval;      /* file of queries, instead of a dataset */
    const char *train;     /* file of demonstrations; default NULL = what is left of the queries' */
    const char *format;    /* of both, one of cgam_dataset_formats; default "tsv" */
    const char *relation;  /* of lama; default "P36" */
    const char *wording;   /* template with {x}, {y}, \n, \t, \\; default NULL = the data's own */
    const char *labels;    /* "KEY=WORD,.."; default NULL = the data's own */
    const int64_t *shots;  /* numbers of demonstrations; 0 is always run; default 0, 1, 4 */
    int64_t shots_count;   /* 0 = the default */
    int64_t queries;       /* how many; default 200, fewer where the set has fewer */
    bool shared;           /* the same demonstrations for all; default false: each its own */
    cgam_order order;      /* of their classes; default CGAM_ORDER_BALANCED */
    uint64_t seed;         /* of queries and demonstrations; default 1 */
    bool chat;             /* in the model's chat template: demonstrations are turns of the user and
                             the assistant, the query the user's last; default false: plain text */
    bool exact;            /* states by the plain f32 pass; default false: libllama's */
    bool all_tokens;       /* keep states of all tokens too, which needs a store; default false */
    bool answer_given;     /* default false: FIRST, or SEQUENCE where classes begin alike */
    cgam_lm_answer answer; /* of sweep, steer, gates; read if answer_given: FIRST or SEQUENCE */
    cgam_dtype dtype;      /* how states are stored: f32 (default), f16, bf16 */
    unsigned parts; /* of cgam_lm_study_run, 1 << CGAM_LM_NEFF | ..; default 0 = the first four */
    const char
        *resume; /* file that takes what is finished, part by part and within long ones (an alpha,
                           a layer, a thousand edits), and gives it to the same study opened again after an
                           interruption, bit for bit; it stays: remove it when the results are safe.
                           default NULL = nothing is kept but states */
    cgam_progress progress; /* default silence */
    int64_t turn,
        turns;   /* for progress: which of how many studies of one run; default 0 of 0 = alone */
    cgam_lm *lm; /* borrowed until the study is closed, instead of `model`; default NULL */
} cgam_lm_study_opts;

CGAM_API cgam_lm_study_opts cgam_lm_study_opts_default(void);

/* Gives a study; close it with cgam_lm_study_close. One thread at a time may use it. opts NULL =
 * defaults. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_study_open(cgam_env *env,
                                                       const cgam_lm_study_opts *opts,
                                                       cgam_lm_study **out);
CGAM_API void cgam_lm_study_close(cgam_lm_study *study); /* NULL is fine */

/* What it works on; all belong to the study. The lens is made when it is first asked for. */
CGAM_API cgam_lm *cgam_lm_study_model(const cgam_lm_study *study);
CGAM_API cgam_store *cgam_lm_study_store(const cgam_lm_study *study); /* NULL: none */
CGAM_API const cgam_dataset *cgam_lm_study_dataset(const cgam_lm_study *study);
/* How answers are compared: as was asked, else FIRST, or SEQUENCE where classes begin alike. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_study_answer(cgam_lm_study *study, cgam_lm_answer *out);
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_study_lens(cgam_lm_study *study, const cgam_lens **out);

/* ---- Results ------------------------------------------------------------------------------ */
typedef struct cgam_lm_result cgam_lm_result;

CGAM_API void cgam_lm_result_free(cgam_lm_result *result); /* NULL is fine */
/* The document as JSON: model, data, seed, what was captured, what was found. It and the tables
 * belong to the result. */
CGAM_API const char *cgam_lm_result_json(const cgam_lm_result *result);
CGAM_API int64_t cgam_lm_result_tables(const cgam_lm_result *result);
CGAM_API const cgam_table *cgam_lm_result_table(const cgam_lm_result *result, int64_t i);

/* ---- Experiments -------------------------------------------------------------------------- */
/* Each gives *out; free it with cgam_lm_result_free. opts NULL = defaults. */

/* Runs every prompt, so that the store holds its states. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_study_capture(cgam_lm_study *study,
                                                          cgam_lm_result **out);

/* How many words a state leaves in play, layer by layer, and the mass on the labels' words. */
typedef struct cgam_lm_neff_opts {
    cgam_lens_kind lens; /* default NORM; RAW comes along, or NORM beside the others */
} cgam_lm_neff_opts;
CGAM_API cgam_lm_neff_opts cgam_lm_neff_opts_default(void);
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_neff(cgam_lm_study *study,
                                                 const cgam_lm_neff_opts *opts,
                                                 cgam_lm_result **out);

/* Retrieval by query plus context over all pairs of layers, exact in lambda, with its baselines. */
typedef struct cgam_lm_sweep_opts {
    bool lens_given;     /* default false: GAIN, or NORM where a bias follows the final norm */
    cgam_lens_kind lens; /* read if lens_given */
    bool absolute;       /* contexts as they are; default false: to the query layer's mean norm */
    bool in_sample;      /* contexts from all queries; default false: from the other half */
    bool intervals;      /* a table of where each query is right, of every pair; default false */
    const char
        *projection; /* file of P, width x width (fit.h): what demonstrations add becomes P times
                               it, before it is rescaled; right, flipped and another task's alike.
                               default NULL = I */
} cgam_lm_sweep_opts;
CGAM_API cgam_lm_sweep_opts cgam_lm_sweep_opts_default(void);
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_sweep(cgam_lm_study *study,
                                                  const cgam_lm_sweep_opts *opts,
                                                  cgam_lm_result **out);

/* Queries at the last layer pushed by contexts of right and wrong facts. */
typedef struct cgam_lm_steer_opts {
    const double *lambda; /* couplings; default 0.25, 0.5, 1 */
    int64_t lambdas;      /* 0 = the default */
    bool absolute;        /* contexts as they are; default false: to the queries' mean norm */
} cgam_lm_steer_opts;
CGAM_API cgam_lm_steer_opts cgam_lm_steer_opts_default(void);
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_steer(cgam_lm_study *study,
                                                  const cgam_lm_steer_opts *opts,
                                                  cgam_lm_result **out);

/* Separability and alignment, layer by layer; the data must have classes. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_probe(cgam_lm_study *study, cgam_lm_result **out);

/* The sweep under each of n seeds (two or more, each once; opts->seed is not read): a table of
 * accuracies, a row for each seed, number of shots and set of words, and a document with their mean and
 * standard deviation over seeds. A study is opened for each; with opts->store prompts are run once. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_seeds(cgam_env *env, const cgam_lm_study_opts *opts,
                                                  int64_t n, const uint64_t *seeds,
                                                  cgam_lm_result **out);

/* Contexts inside the model: vectors put into the residual stream of the last token of prompts without
 * demonstrations, after every layer, beside no edit, demonstrations, and the readout of the sweep.
 *
 * ADD adds the mean effect of demonstrations, REPLACE puts there the state of another query's prompt
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
    cgam_lm_answer answer; /* default FIRST; cgam_lm_study_answer tells what the other parts take */
    const char
        *projection; /* file of P, width x width (fit.h): ADD adds P times the mean effect, of
                               controls too, and the readout has it; REPLACE puts a state there, which is
                               no context, and knows no P. default NULL = I */
} cgam_lm_inject_opts;
CGAM_API cgam_lm_inject_opts cgam_lm_inject_opts_default(void);
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_inject(cgam_lm_study *study,
                                                   const cgam_lm_inject_opts *opts,
                                                   cgam_lm_result **out);

/* The same for every task of a suite: "shipped" (cgam_dataset_tasks), or a folder whose .json files are
 * pairs. study names no data. The document has `tasks`, one document each with its name; a task that
 * cannot be asked so (all answers begin alike) has a `reason` instead. Gives *out. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_inject_suite(cgam_env *env,
                                                         const cgam_lm_study_opts *study,
                                                         const char *suite,
                                                         const cgam_lm_inject_opts *opts,
                                                         cgam_lm_result **out);

/* Retrieval over the whole vocabulary under the gate operator (gates.h): alpha from 0 to just below
 * alpha_crit, without and with the feedback of p on the gates. The final norm acts on the states, the
 * bank is the unembedding; couplings are chosen on one half of the queries, in mode first, and counted
 * on the other. Of answers of several tokens the gates recall the first, and the model without
 * demonstrations says how probable the others are after it. */
typedef struct cgam_lm_gates_opts {
    bool unit;                 /* rows at unit length; default false: as they are */
    const double *alphas;      /* [n_alphas]; 0 is always run; default NULL = the grid of gates.h */
    int64_t n_alphas;          /* at most 23 */
    bool no_first, no_coupled; /* default false: both modes */
    int64_t context_layer, query_layer; /* default -1: what a sweep chooses on each half */
    cgam_sweep_over
        over;       /* whose right answers layers and couplings are chosen by; default labels */
    bool absolute;  /* contexts as they are; default false: to the query layer's mean norm */
    bool in_sample; /* contexts from all queries; default false: from the half that chooses */
} cgam_lm_gates_opts;
CGAM_API cgam_lm_gates_opts cgam_lm_gates_opts_default(void);
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_gates(cgam_lm_study *study,
                                                  const cgam_lm_gates_opts *opts,
                                                  cgam_lm_result **out);

/* ---- The parts of a whole study ----------------------------------------------------------- */
typedef enum cgam_lm_part {
    CGAM_LM_NEFF,
    CGAM_LM_SWEEP,
    CGAM_LM_STEER, /* about facts: on the shipped ones where the data have classes */
    CGAM_LM_PROBE, /* about classes: left out where the data are facts */
    CGAM_LM_PARTS, /* how many there are unless asked for more */
    CGAM_LM_INJECT = CGAM_LM_PARTS, /* whole answers where the data's begin alike */
    CGAM_LM_GATES,
    CGAM_LM_FIT,
    CGAM_LM_EXPERIMENTS /* how many there are with these */
} cgam_lm_part;
CGAM_API const char *cgam_lm_part_name(cgam_lm_part part); /* "neff" */
CGAM_API bool cgam_lm_part_find(const char *name, cgam_lm_part *out);

/* One part with its defaults; *out NULL: it is left out. Progress tells how far all are. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_study_part(cgam_lm_study *study, cgam_lm_part part,
                                                       cgam_lm_result **out);
/* All that the options name: the document has a key for each, null where it is left out, and the tables
 * are those of all. */
CGAM_API CGAM_NODISCARD cgam_status cgam_lm_study_run(cgam_lm_study *study, cgam_lm_result **out);

#ifdef __cplusplus
}
#endif
#endif
