/* parts.h: all parts of a study as one result: a key for each in the document, null where it is left out, and the
 * tables of all. */
#ifndef CGAM_TESTS_UNIT_LAB_LANGUAGE_PARTS_H
#define CGAM_TESTS_UNIT_LAB_LANGUAGE_PARTS_H

#include "lab/language/study.h"

static inline cgam_status run_all_parts(cgam_lm_study *study, cgam_lm_result **out)
{
    cgam_lm_result *all;
    *out = NULL;
    cgam_status status = cgam_lm_result_new(study, &all);
    if (status != CGAM_OK) return status;
    for (int p = 0; p < CGAM_LM_EXPERIMENTS && status == CGAM_OK; p++) {
        if (!(study->parts >> p & 1)) continue;
        cgam_lm_result *one = NULL;
        status = cgam_lm_study_part(study, (cgam_lm_part)p, &one);
        cgam_json_put(all->doc, cgam_lm_part_name(p), one ? json_incref(one->doc) : json_null());
        for (int64_t i = 0; one && i < one->tables; i++, all->tables++) {
            all->table[all->tables] = one->table[i];
            all->cells[all->tables] = one->cells[i];
            all->names[all->tables] = one->names[i];
        }
        if (one) { /* they have moved */
            one->tables = 0;
            all->words[p] = one->words[0];
            one->words[0] = NULL;
        }
        cgam_lm_result_free(one);
    }
    return cgam_lm_result_end(all, status, out);
}

#endif
