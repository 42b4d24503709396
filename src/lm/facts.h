/* facts.h (inside): which texts say the same, and which objects are wrong for a subject. */
#ifndef CGAM_SRC_LM_FACTS_H
#define CGAM_SRC_LM_FACTS_H

#include "lm/dataset.h"

#include <cgam/rng.h>

typedef struct cgam_facts cgam_facts;

/* Order of two texts by their letters and digits alone: case, blanks and punctuation do not count, so
 * 0 is another spelling of the same. Texts without letters and digits are compared as they are. */
int cgam_text_order(const char *a, const char *b);

/* Reads both sets once; they are borrowed. train may be eval. Gives *out; cgam_facts_free. */
CGAM_NODISCARD cgam_status cgam_facts_new(cgam_env *env, const cgam_dataset *eval,
                                          const cgam_dataset *train, cgam_facts **out);
void cgam_facts_free(cgam_facts *facts); /* NULL is fine */

/* The number of an example's text: the same for all that are spellings of one another, in both sets.
 * Below cgam_facts_texts. */
int64_t cgam_facts_text(const cgam_facts *facts, bool of_train, int64_t example);
int64_t cgam_facts_texts(const cgam_facts *facts);

/* Is the word an object, anywhere in either set, of the query's subject or of the demonstration's? */
bool cgam_facts_own(const cgam_facts *facts, int64_t query, int64_t demo, const char *word);
/* A label of train that is neither's, as often as the set shows it. False: there is none. Takes one
 * number of rng whatever it finds. */
bool cgam_facts_wrong(const cgam_facts *facts, int64_t query, int64_t demo, cgam_rng *rng,
                      int64_t *label);

#endif
