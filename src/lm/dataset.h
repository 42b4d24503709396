/* dataset.h (inside): a dataset in the making. */
#ifndef CGAM_SRC_LM_DATASET_H
#define CGAM_SRC_LM_DATASET_H

#include "base/env.h"
#include "io/file.h"

#include <cgam/dataset.h>

typedef struct cgam_label {
    char *key, *word; /* as the file says it, and the word that stands for it */
} cgam_label;

struct cgam_dataset {
    cgam_env *env;
    bool facts; /* labels come as they occur, and each is its own word */
    bool grows; /* labels may still come */
    cgam_label *label;
    struct {
        char *text;
        int64_t label;
    } * example;
    int64_t labels, labels_room, examples, examples_room;
    char *template;
};

CGAM_NODISCARD cgam_status cgam_dataset_new(cgam_env *env, const char *template, bool facts,
                                            cgam_dataset **out);
/* "0=negative,1=positive"; NULL: labels come as they occur. */
CGAM_NODISCARD cgam_status cgam_dataset_declare(cgam_dataset *set, const char *labels);
/* One that comes with the library, with words of the caller's; labels NULL: its own. */
CGAM_NODISCARD cgam_status cgam_dataset_shipped_as(cgam_env *env, const char *name,
                                                   const char *labels, cgam_dataset **out);
/* Adds an example; where: "file:line" for messages. Text and label are cleaned of outer and
 * doubled blanks; an empty one is refused. */
CGAM_NODISCARD cgam_status cgam_dataset_add(cgam_dataset *set, const char *where, const char *text,
                                            const char *label);

/* The examples of a file's bytes; where: its name for messages. template: of a relation of LAMA, or
 * cgam_dataset_masked; NULL = the format's own. */
CGAM_NODISCARD cgam_status cgam_dataset_read(cgam_env *env, const char *format, const char *where,
                                             const cgam_file *file, const char *template,
                                             const char *labels, cgam_dataset **out);
extern const char cgam_dataset_masked[]; /* the template of masked sentences */
extern const char cgam_dataset_qa[];     /* of pairs: "Q: {x}\nA: {y}\n\n" */

/* A prompt as turns of a chat: of each demonstration what is asked, with the cue, and its word alone; the
 * query's last. out [2 k + 1]: cgam_free each, whatever came of it. */
CGAM_NODISCARD cgam_status cgam_prompts_turns(const cgam_prompts *prompts, int64_t query, int64_t k,
                                              cgam_demos demos, char **out);

#endif
