/* edit.h: edits of the residual stream as words, and the vectors they name. */
#ifndef CGAM_EDIT_H
#define CGAM_EDIT_H

#include <cgam/lm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Edits with vectors of their own. */
typedef struct cgam_edit_set cgam_edit_set;

/* Gives an empty set for a model; free it with cgam_edit_set_free before the model is closed. */
CGAM_API CGAM_NODISCARD cgam_status cgam_edit_set_new(cgam_lm *lm, cgam_edit_set **out);
CGAM_API void cgam_edit_set_free(cgam_edit_set *set); /* NULL is fine */

/* Appends `layer:kind:positions:scale:FILE[:row]`: kind add or replace; positions last, prompt,
 * generated, all, i or i-j (negative: from the end of the prompt); FILE an .npy of width numbers, or
 * of two dimensions, or a file of vector.h, whose row `layer` it is unless a row is named. */
CGAM_API CGAM_NODISCARD cgam_status cgam_edit_set_word(cgam_edit_set *set, const char *word);
/* Appends `FILE[:scale[:from-to]]`: the vectors of a file of vector.h, added at all positions after
 * layers from .. to, by default all that the file has. */
CGAM_API CGAM_NODISCARD cgam_status cgam_edit_set_vectors(cgam_edit_set *set, const char *word);
/* Appends an edit with a copy of its vector. */
CGAM_API CGAM_NODISCARD cgam_status cgam_edit_set_add(cgam_edit_set *set, const cgam_lm_edit *edit);
/* Borrowed until the set changes or is freed. */
CGAM_API cgam_lm_edits cgam_edit_set_edits(const cgam_edit_set *set);

#ifdef __cplusplus
}
#endif
#endif
