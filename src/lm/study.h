/* study.h (inside): what the experiments on language models share. */
#ifndef CGAM_SRC_LM_STUDY_H
#define CGAM_SRC_LM_STUDY_H

#include "base/env.h"
#include "io/journal.h"
#include "io/json.h"

#include <cgam/lm_study.h>

/* Data and the prompts made of them. */
typedef struct cgam_lm_task {
    const char *name; /* of the data; borrowed */
    char source[640]; /* what prompts are called in the store: all that tells them from others */
    cgam_dataset *eval, *train;
    cgam_prompts *prompts;
    int64_t queries, labels;
    /* From cgam_lm_task_label. The first token of each label's word, as it follows the cue; -1 for
     * words that begin alike. */
    int32_t *tokens; /* [labels] */
    int32_t *target; /* [queries] labels; -1: it cannot be told from another's */
    int64_t counted; /* queries that have one */
    struct cgam_answers
        *answers; /* where all their tokens are compared: answers.h; NULL: the first */
} cgam_lm_task;

enum { CGAM_SHOTS_ROOM = 16, CGAM_PLAN_ROOM = 16 * CGAM_SHOTS_ROOM };

/* What a whole study has to do, in tokens to run: study_plan.c. */
typedef struct cgam_lm_plan {
    double total, done, now; /* now: of what is being done; total 0: there is no plan */
    int count;
    struct {
        uint64_t key;
        double work;
        bool begun;
    } run[CGAM_PLAN_ROOM]; /* prompts, in the order of their parts */
} cgam_lm_plan;

struct cgam_lm_study {
    cgam_env *env;
    cgam_lm *lm;
    cgam_lm_info info;
    cgam_store *store;
    const cgam_lens *lens; /* the model's; NULL until asked for */
    bool borrowed;         /* the model is somebody else's */
    cgam_lm_task task;
    char name[1024];                /* of the data */
    int64_t shots[CGAM_SHOTS_ROOM]; /* rising, 0 first */
    int64_t n_shots, queries;       /* queries: as many as asked for */
    uint64_t seed;
    cgam_dtype dtype;
    cgam_order order;
    bool shared, exact, chat, all_tokens, answer_given;
    cgam_lm_answer answer;
    cgam_progress told,
        progress; /* who asked, and what tells them with the names of part and prompts */
    char part[112], doing[64]; /* "sweep 2/4: ", "sst2, 4 shots flipped: "; "": no more to say */
    cgam_collected collected;  /* by the experiment in progress */
    cgam_lm_plan plan;
    int64_t turn, turns; /* as in the options */
    unsigned parts;      /* of the whole study, a bit each */
    cgam_journal *kept;  /* NULL: nothing is */
};

/* A set that comes with the library as a task; its name is borrowed. */
cgam_status cgam_lm_task_shipped(const cgam_lm_study *study, const char *name, int64_t queries,
                                 int64_t shots_max, cgam_lm_task *out);
/* The study's own task, read from its options. */
cgam_status cgam_lm_task_open(cgam_lm_study *study, const cgam_lm_study_opts *opts);
/* Other data for a study, whose model, store and lens stay open; all but the data of opts is as it was.
 * When it fails the study has no data, and the next turn may succeed. */
cgam_status cgam_lm_study_turn(cgam_lm_study *study, const cgam_lm_study_opts *opts);
void cgam_lm_task_close(cgam_env *env, cgam_lm_task *task); /* copes with half-open */
/* Refuses a task whose queries all have the same answer. */
cgam_status cgam_lm_task_several(const cgam_lm_study *study, const cgam_lm_task *task);
/* Fills tokens, target and, where whole answers are compared, answers, once. */
cgam_status cgam_lm_task_label(cgam_lm_study *study, cgam_lm_task *task);

/* Tokens that belong to whoever asked; free them with cgam_lm_tokens_free. */
typedef struct cgam_lm_tokens {
    int32_t *tokens; /* [count] */
    int64_t count;
} cgam_lm_tokens;
/* Those of cue, blanks and word that follow those of the cue alone: what the model would have to say
 * next. The answer in a chat begins a turn, which follows a line's end. */
cgam_status cgam_lm_answer_tokens(const cgam_lm_study *study, const cgam_prompts *prompts,
                                  const char *word, cgam_lm_tokens *out);
/* Those of the prompt of a query with k demonstrations. */
cgam_status cgam_lm_task_tokens(const cgam_lm_study *study, const cgam_lm_task *task, int64_t query,
                                int64_t k, cgam_lm_tokens *out);

/* States of every query with k demonstrations, [queries, L + 1, d]; out NULL: into the store alone.
 * Gives *out; free it with cgam_free. */
cgam_status cgam_lm_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                           cgam_demos demos, float **out);

/* Tokens after the prompt of a query. */
typedef struct cgam_lm_ending {
    int64_t query;
    const int32_t *tokens; /* [count], borrowed for the call */
    int64_t count;         /* 1 or more */
} cgam_lm_ending;
/* The same, and the states after each ending; endings come in the order of their queries, whose prompts
 * are computed once. [queries + endings, L + 1, d]. */
cgam_status cgam_lm_states_after(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                                 cgam_demos demos, int64_t endings, const cgam_lm_ending *ending,
                                 float **out);

/* ---- How far all of it is: study_plan.c ----------------------------------------------------- */
/* States read over the vocabulary for every layer and query, by each part for a number of shots;
 * what a probe does instead takes about as long as one. */
enum {
    CGAM_WORK_NEFF = 2,  /* two lenses */
    CGAM_WORK_SWEEP = 2, /* queries and contexts */
    CGAM_WORK_STEER = 9, /* three contexts, three couplings */
    CGAM_WORK_PROBE = 1,
    CGAM_WORK_FIT = 12 /* of a layer: five ways that are judged, and the two fits */
};
/* Adds up all parts that are not kept, once, if anybody listens; facts: what steering is about. */
cgam_status cgam_lm_plan_make(cgam_lm_study *study, const cgam_lm_task *facts);
/* The same of an experiment by itself: the prompts of its own task with true labels, and so many states
 * that are read. */
cgam_status cgam_lm_plan_readings(cgam_lm_study *study, double states);
/* Tokens of those prompts that the store does not have. */
cgam_status cgam_lm_states_work(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                                cgam_demos demos, double *tokens);
/* What so many states cost to read, in tokens. */
double cgam_lm_reading_work(const cgam_lm_study *study, double states);
/* What was in hand is done; then so much is, or the prompts as planned. */
void cgam_lm_work_begin(cgam_lm_study *study, double work);
void cgam_lm_work_states(cgam_lm_study *study, const cgam_lm_task *task, int64_t k,
                         cgam_demos demos);
/* Tells how many of its layers are done. */
void cgam_lm_work_tell(cgam_lm_study *study, const char *what, int64_t done, int64_t total);
/* Puts the share of all into what is told, where there is a plan. */
void cgam_lm_work_share(const cgam_lm_study *study, cgam_progress_at *at);
/* The task that a sweep holds its contexts against, with k demonstrations; its name is constant. */
cgam_status cgam_lm_other_task(const cgam_lm_study *study, int64_t k, cgam_lm_task *out);

/* The task whose context is a control of injection, with k demonstrations; its name is constant. */
cgam_status cgam_lm_inject_other(const cgam_lm_study *study, int64_t k, cgam_lm_task *out);
/* Tokens that injection runs for a number of shots; states that gates read. */
double cgam_lm_inject_work(const cgam_lm_study *study);
double cgam_lm_gates_work(const cgam_lm_study *study, const cgam_lm_gates_opts *opts);

/* ---- What is finished: study_kept.c ---------------------------------------------------------- */
/* Opens the file for the study as it is: records of the same run are found, others are dropped. */
cgam_status cgam_kept_open(cgam_lm_study *study, const char *path);
/* What an earlier run has kept of the study's task under this key, which names all options that it depends
 * on; NULL, false: nothing. Borrowed until the study is closed, or copied where it has this size. */
const void *cgam_kept_bytes(const cgam_lm_study *study, const char *key, size_t *size);
bool cgam_kept_find(const cgam_lm_study *study, const char *key, void *out, size_t size);
/* Keeps it for runs to come, at once; nothing where nothing is kept. */
cgam_status cgam_kept_add(cgam_lm_study *study, const char *key, const void *bytes, size_t size);
/* The same of a whole result; gives *out, NULL: there is none. */
cgam_status cgam_kept_add_result(cgam_lm_study *study, const char *key, const cgam_lm_result *r);
cgam_status cgam_kept_result(cgam_lm_study *study, const char *key, cgam_lm_result **out);

/* ---- Results: study_result.c -------------------------------------------------------------- */
enum { CGAM_LM_TABLES = 24 };

struct cgam_lm_result {
    cgam_env *env;
    json_t *doc;
    char *json; /* the document as text */
    int64_t tables;
    cgam_table table[CGAM_LM_TABLES];
    double *cells[CGAM_LM_TABLES];
    char **names[CGAM_LM_TABLES];     /* of rows that have one, else NULL */
    int64_t room[CGAM_LM_TABLES];     /* rows */
    bool lost;                        /* a row found no memory */
    char *words[CGAM_LM_EXPERIMENTS]; /* of tables that were kept */
};

/* An empty result; what the study has collected is counted from here. */
cgam_status cgam_lm_result_new(cgam_lm_study *study, cgam_lm_result **out);
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
/* Puts one character for each of n queries that counts: 1 right, 0 wrong. */
void cgam_lm_put_right(cgam_env *env, json_t *to, const char *name, int64_t n,
                       const int32_t *target, const bool *right);
/* Hands r over as *out, or frees it when anything failed, and says so. */
cgam_status cgam_lm_result_end(cgam_lm_result *r, cgam_status status, cgam_lm_result **out);
/* The document itself; belongs to the result. */
json_t *cgam_lm_result_document(const cgam_lm_result *result);

/* Puts "model": {name, architecture, layers, width, vocab, ...}. */
void cgam_put_lm(json_t *doc, const cgam_lm *lm);
/* Puts "capture": {found, computed, tokens, seconds}. */
void cgam_put_collected(json_t *doc, const cgam_collected *collected);

/* Steering on a task that may not be the study's own. */
cgam_status cgam_lm_steer_task(cgam_lm_study *study, cgam_lm_task *task,
                               const cgam_lm_steer_opts *opts, cgam_lm_result **out);

/* Are these seeds that cgam_lm_seeds takes? */
cgam_status cgam_lm_seeds_check(cgam_env *env, int64_t n, const uint64_t *seeds);

#endif
