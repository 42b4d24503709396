/* dataset.h: labelled texts and facts, and the prompts made of them. Knows nothing of models: a prompt is
 * a text.
 *
 * A dataset is a list of examples, each a text and one of the set's labels; a label has a word. In
 * a set of facts the text is the subject and the labels are the objects. */
#ifndef CGAM_SRC_LAB_LANGUAGE_DATASET_H
#define CGAM_SRC_LAB_LANGUAGE_DATASET_H

#include "base/env.h"
#include "io/file.h"

#include <cgam/base.h>

typedef struct cgam_dataset cgam_dataset;

typedef struct cgam_label {
    char *key, *word; /* as in the file, and its word in prompts */
} cgam_label;

typedef struct cgam_example {
    char *text;
    int64_t label;
} cgam_example;

struct cgam_dataset {
    cgam_env *env;
    bool facts; /* labels are collected from the file, and each is its own word */
    bool grows; /* more labels may be added */
    cgam_label *label;
    cgam_example *example;
    int64_t labels, labels_capacity, examples, examples_capacity;
    char *template; /* the default: "Review: {x}\nSentiment: {y}\n\n" */
};

/* Formats of files:
 *   tsv     label<TAB>text; labels as in `labels`, else each is its own word
 *   facts   subject<TAB>object
 *   sst2    GLUE's TSV: a header, then sentence<TAB>label
 *   agnews  CSV: "class","title","description" with classes 1-4, or text,class with 0-3
 *   trec    COARSE:fine question, in ISO-8859-1
 *   lama    JSON lines of one relation (T-REx, Google-RE; its template is looked up in
 *           relations.jsonl beside it or one folder up) or of masked sentences (SQuAD)
 *   pairs   a JSON array of {"input": text, "output": text}; the outputs are the labels */

/* labels: "0=negative,1=positive", NULL = the format's own. Free *out with cgam_dataset_close. */
CGAM_NODISCARD cgam_status cgam_dataset_open(cgam_env *env, const char *format, const char *path,
                                             const char *labels, cgam_dataset **out);
/* Opens a dataset that ships with the program: "facts" (countries and capitals), "languages" (countries
 * and their languages), "sentiment" (160 short sentences, written for this project) or a task. labels as
 * above. */
CGAM_NODISCARD cgam_status cgam_dataset_shipped(cgam_env *env, const char *name, const char *labels,
                                                cgam_dataset **out);
/* Small tasks that ship with the library, 40 to 81 questions and answers each: antonyms, plurals, ..;
 * ends with NULL. Answers may have several words. */
extern const char *const cgam_dataset_tasks[];
void cgam_dataset_close(cgam_dataset *set); /* NULL is fine */

/* Reads the examples from a file's bytes; where: its name for messages. template: of a LAMA relation, or
 * cgam_dataset_masked; NULL = the format's own. */
CGAM_NODISCARD cgam_status cgam_dataset_read(cgam_env *env, const char *format, const char *where,
                                             const cgam_file *file, const char *template,
                                             const char *labels, cgam_dataset **out);
extern const char cgam_dataset_masked[]; /* the template of masked sentences */
extern const char cgam_dataset_qa[];     /* of pairs: "Q: {x}\nA: {y}\n\n" */

/* ---- Prompts: queries with demonstrations ------------------------------------------------- */
/* The order of the demonstrations' classes; sets of facts have no classes and only one order. */
typedef enum cgam_order {
    CGAM_ORDER_BALANCED, /* each balanced order of k as likely as any other, drawn for each k */
    CGAM_ORDER_CYCLED    /* shows every class before repeating one; the demonstrations of k are
                            the last k of those of any larger number */
} cgam_order;
const char *cgam_order_name(cgam_order value); /* "balanced", "cycled" */
bool cgam_order_find(const char *name, cgam_order *out);

typedef struct cgam_prompts_opts {
    int64_t queries;     /* default 200, fewer if the set has fewer texts */
    int64_t shots_max;   /* the most demonstrations of a prompt; default 8 */
    bool shared;         /* the same demonstrations for every query; default false */
    cgam_order order;    /* default CGAM_ORDER_BALANCED */
    uint64_t seed;       /* default 1 */
    const char *wording; /* default NULL = the set's own; must hold {x} before {y} */
} cgam_prompts_opts;
cgam_prompts_opts cgam_prompts_opts_default(void);

typedef struct cgam_prompts {
    cgam_env *env;
    const cgam_dataset *eval, *train;
    int64_t queries, shots_max, rounds; /* rounds: classes in a cycle; 1 for facts */
    int64_t *query;                     /* [queries] examples of eval */
    int64_t *rank;                      /* [queries] when each was drawn */
    int64_t *pool, *class_first;        /* examples of train by class, and where each begins */
    int64_t *demo;                      /* [queries or 1, shots_max] examples of train */
    bool shared;
    cgam_order order;
    struct cgam_facts *facts; /* equal texts, and wrong objects */
    cgam_dataset *foreign;    /* its labels are the objects of another relation */
    char *head, *tail;        /* the template: before {x}, after {y} */
    char *cue;                /* between the text and the answer's blank: "\nSentiment:" */
    char *gap; /* the blanks between cue and answer: " ", or "" if the template has none */
    uint64_t seed;
} cgam_prompts;

/* How demonstrations are labelled. */
typedef enum cgam_demos {
    CGAM_DEMOS_TRUE,
    CGAM_DEMOS_FLIPPED, /* each label becomes the next one, the last the first; in sets of facts an
                           object drawn as often as the set shows it, but none that any row of either
                           set gives the subject or the query's, under any spelling */
    CGAM_DEMOS_FOREIGN  /* objects of another relation: languages, or capitals in place of those;
                           again none of the subject's or the query's */
} cgam_demos;
const char *cgam_demos_name(cgam_demos value); /* "true", "flipped", "foreign" */
bool cgam_demos_find(const char *name, cgam_demos *out);

/* Queries from `eval`, demonstrations from `train`; train NULL: from the examples of `eval` that
 * are not queries. Both must outlive *out. A text is asked at most once, and a text that is asked is not
 * demonstrated; case, blanks and punctuation are ignored. Fails if a class has no example to
 * demonstrate it.
 *
 * Studies that choose on one half and count on the other use the even and the odd queries: a label's
 * counts in the two differ by at most one. */
CGAM_NODISCARD cgam_status cgam_prompts_new(cgam_env *env, const cgam_dataset *eval,
                                            const cgam_dataset *train,
                                            const cgam_prompts_opts *opts, cgam_prompts **out);
void cgam_prompts_free(cgam_prompts *prompts); /* NULL is fine */
int64_t cgam_prompts_label(const cgam_prompts *prompts, int64_t query);

/* The prompt of a query with k demonstrations, ending where the answer would begin. The
 * demonstrations of k are among those of any larger number. Fails if the set has no wrong object for a
 * demonstration. Free *out with cgam_text_free. */
CGAM_NODISCARD cgam_status cgam_prompts_text(const cgam_prompts *prompts, int64_t query, int64_t k,
                                             cgam_demos demos, char **out);
/* A prompt as turns of a chat: for each demonstration its question with the cue, and its word alone; last, the
 * query's question. out [2 k + 1]: free each with cgam_free, even on failure. */
CGAM_NODISCARD cgam_status cgam_prompts_turns(const cgam_prompts *prompts, int64_t query, int64_t k,
                                              cgam_demos demos, char **out);

#endif
