/* edit.h (inside): edits parsed from text, and edit plans for the engines: absolute positions, without no-ops. */
#ifndef CGAM_SRC_LM_EDIT_H
#define CGAM_SRC_LM_EDIT_H

#include <cgam/lm.h>

typedef struct cgam_edit_at {
    int64_t layer, from,
        to; /* a place, see below; tokens from .. to of its prompt, both included */
    bool replace;
    float scale;
    const float *vector;   /* [length], borrowed from the caller */
    int64_t first, length; /* the numbers of the row that it changes */
} cgam_edit_at;

typedef struct cgam_edit_plan {
    /* Places are 0 .. L, the stream after each layer, and L + 1 .. 2 L, what the heads of blocks 1 .. L put into the
     * output projection. */
    int64_t layers;   /* L */
    cgam_edit_at *at; /* edits of prompt i: at[first[i] .. first[i + 1]) */
    int64_t *first;   /* [prompts + 1] */
    bool *layer;      /* [2 L + 1] true if the place has an edit */
    bool any;
    bool everywhere; /* all prompts have the same edits, adds at all positions */
} cgam_edit_plan;

/* The lengths that positions refer to: prompt_tokens [count], or NULL (each prompt is all of its tokens),
 * and the most tokens that may follow. */
typedef struct cgam_edit_reach {
    const int64_t *prompt_tokens;
    int64_t more;
} cgam_edit_reach;

/* Makes a plan; clear it with cgam_edit_plan_clear. Rejects edits at layers or positions that do not
 * exist. */
CGAM_NODISCARD cgam_status cgam_edit_plan_make(cgam_env *env, const cgam_lm_info *info,
                                               int64_t count, const cgam_lm_prompt *prompts,
                                               cgam_edit_reach reach, cgam_lm_edits edits,
                                               const cgam_lm_edits *edits_each,
                                               cgam_edit_plan *out);
void cgam_edit_plan_clear(cgam_env *env, cgam_edit_plan *plan);

/* Does any edit apply to token `position` of a prompt after a layer? */
bool cgam_edit_plan_touches(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                            int64_t position);
/* Applies the edits at that place to its row h. */
void cgam_edit_plan_apply(const cgam_edit_plan *plan, int64_t prompt, int64_t layer,
                          int64_t position, float *h);
/* Do two prompts have the same edits of that token, at every layer? */
bool cgam_edit_plan_same(const cgam_edit_plan *plan, int64_t a, int64_t b, int64_t position);

/* ---- Edits as words ------------------------------------------------------------------------ */
/* Edits that own their vectors. */
typedef struct cgam_edit_set cgam_edit_set;

/* Makes an empty set for a model, which must outlive it. Free it with cgam_edit_set_free. */
CGAM_NODISCARD cgam_status cgam_edit_set_new(cgam_lm *lm, cgam_edit_set **out);
void cgam_edit_set_free(cgam_edit_set *set); /* NULL is fine */

/* Appends `layer:kind:positions:scale:FILE[:row]`: kind add or replace; positions last, prompt,
 * generated, all, i or i-j (negative: from the end of the prompt); FILE an .npy of width numbers, or
 * of two dimensions, or a file of vector.h; of these, row `layer` is used unless a row is given. */
CGAM_NODISCARD cgam_status cgam_edit_set_word(cgam_edit_set *set, const char *word);
/* Appends `FILE[:scale[:from-to]]`: the vectors of a file of vector.h, added at all positions after
 * layers from .. to, by default all layers in the file. */
CGAM_NODISCARD cgam_status cgam_edit_set_vectors(cgam_edit_set *set, const char *word);
/* Borrowed until the set changes or is freed. */
cgam_lm_edits cgam_edit_set_edits(const cgam_edit_set *set);

#endif
