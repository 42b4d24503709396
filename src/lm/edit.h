/* edit.h (inside): edits as words, and edits as the engines apply them - positions counted, what changes nothing left out. */
#ifndef CGAM_SRC_LM_EDIT_H
#define CGAM_SRC_LM_EDIT_H

#include <cgam/lm.h>

typedef struct cgam_edit_at {
    int64_t layer, from, to; /* tokens from .. to of its prompt, both included */
    bool replace;
    float scale;
    const float *vector; /* [width], the caller's */
} cgam_edit_at;

typedef struct cgam_edit_plan {
    int64_t width, layers; /* d, L */
    cgam_edit_at *at;      /* those of prompt i are at[first[i] .. first[i + 1]) */
    int64_t *first;        /* [prompts + 1] */
    bool *layer;           /* [L + 1] whether any edit is there */
    bool any;
    bool everywhere; /* all prompts have the same edits, adds at all positions */
} cgam_edit_plan;

/* The lengths that positions refer to: prompt_tokens [count] or NULL (a prompt is all of its tokens),
 * and how many tokens more there may be. */
typedef struct cgam_edit_reach {
    const int64_t *prompt_tokens;
    int64_t more;
} cgam_edit_reach;

/* Gives a plan; clear it with cgam_edit_plan_clear. Edits at layers or positions that are not there are
 * refused. */
CGAM_NODISCARD cgam_status cgam_edit_plan_make(cgam_env *env, const cgam_lm_info *info,
                                               int64_t count, const cgam_lm_prompt *prompts,
                                               cgam_edit_reach reach, cgam_lm_edits edits,
                                               const cgam_lm_edits *edits_each,
                                               cgam_edit_plan *out);
void cgam_edit_plan_clear(cgam_env *env, cgam_edit_plan *plan);

/* Whether anything happens to token `position` of a prompt after a layer. */
bool cgam_edit_plan_touches(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                            int64_t position);
/* Applies what happens there to h [width]. */
void cgam_edit_plan_apply(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                          int64_t position, float *h);
/* Whether the same happens to that token in two prompts, at every layer. */
bool cgam_edit_plan_same(const cgam_edit_plan *plan, int64_t a, int64_t b, int64_t position);

/* ---- Edits as words ------------------------------------------------------------------------ */
/* Edits with vectors of their own. */
typedef struct cgam_edit_set cgam_edit_set;

/* Gives an empty set for a model; free it with cgam_edit_set_free before the model is closed. */
CGAM_NODISCARD cgam_status cgam_edit_set_new(cgam_lm *lm, cgam_edit_set **out);
void cgam_edit_set_free(cgam_edit_set *set); /* NULL is fine */

/* Appends `layer:kind:positions:scale:FILE[:row]`: kind add or replace; positions last, prompt,
 * generated, all, i or i-j (negative: from the end of the prompt); FILE an .npy of width numbers, or
 * of two dimensions, or a file of vector.h, whose row `layer` it is unless a row is named. */
CGAM_NODISCARD cgam_status cgam_edit_set_word(cgam_edit_set *set, const char *word);
/* Appends `FILE[:scale[:from-to]]`: the vectors of a file of vector.h, added at all positions after
 * layers from .. to, by default all that the file has. */
CGAM_NODISCARD cgam_status cgam_edit_set_vectors(cgam_edit_set *set, const char *word);
/* Borrowed until the set changes or is freed. */
cgam_lm_edits cgam_edit_set_edits(const cgam_edit_set *set);

#endif
