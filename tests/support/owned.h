/* owned.h: objects that are freed at the end of the block that declares them, the last one first.
 *
 *     OWNED(cgam_lm) lm = model_tiny(env, tiny_shape_default());
 *
 * An env must be owned too, and declared before what is made on it.
 *
 * A test that fails leaves its blocks by longjmp and frees nothing. */
#ifndef CGAM_TESTS_OWNED_H
#define CGAM_TESTS_OWNED_H

#include <cgam/base.h>
#include <stdlib.h>

#define OWNER(type, free_it)                                                                       \
    static inline void own_##type(type **object) { free_it(*object); }
#define OWNED(type) __attribute__((cleanup(own_##type))) type *
/* A block of malloc. */
static inline void own_block(void *block) { free(*(void **)block); }
#define OWNED_BLOCK(type) __attribute__((cleanup(own_block))) type *

OWNER(cgam_env, cgam_env_free)
#ifdef CGAM_LM_H
OWNER(cgam_lm, cgam_lm_close)
OWNER(cgam_lens, cgam_lens_free)
OWNER(cgam_vector, cgam_vector_free)
#endif
#ifdef CGAM_SRC_LM_COLLECT_H
OWNER(cgam_store, cgam_store_close)
#endif
#ifdef CGAM_BANK_H
OWNER(cgam_bank, cgam_bank_free)
OWNER(cgam_row_names, cgam_row_names_free)
OWNER(cgam_columns, cgam_columns_free)
#endif
#ifdef CGAM_GATE_H
OWNER(cgam_gate, cgam_gate_free)
OWNER(cgam_spectrum, cgam_spectrum_free)
#endif
#ifdef CGAM_RECALL_H
OWNER(cgam_recall, cgam_recall_free)
#endif
#ifdef CGAM_SRC_NUM_DPLR_H
OWNER(cgam_dplr, cgam_dplr_free)
OWNER(cgam_dplr_inverse, cgam_dplr_inverse_free)
#endif
#ifdef CGAM_NET_H
OWNER(cgam_net, cgam_net_free)
#endif
#ifdef CGAM_FLOW_H
OWNER(cgam_trajectory, cgam_trajectory_free)
#endif
#ifdef CGAM_SRC_LAB_NET_FILE_H
OWNER(cgam_net_file, cgam_net_file_close)
#endif
#ifdef CGAM_SRC_LAB_JOURNAL_H
OWNER(cgam_journal, cgam_journal_close)
#endif
#ifdef CGAM_SRC_APP_VERB_H
OWNER(cgam_args, cgam_args_free)
#endif
#ifdef CGAM_SRC_LAB_SHELF_H
OWNER(cgam_shelf, cgam_shelf_free)
#endif
#ifdef CGAM_SRC_LM_PROMPT_FILE_H
OWNER(cgam_prompt_file, cgam_prompt_file_close)
#endif
#ifdef CGAM_SRC_LAB_SYNTHETIC_STUDY_H
OWNER(cgam_study, cgam_study_free)
#endif
#ifdef CGAM_SRC_LAB_LANGUAGE_DATASET_H
OWNER(cgam_dataset, cgam_dataset_close)
OWNER(cgam_prompts, cgam_prompts_free)
#endif
#ifdef CGAM_SRC_LAB_LANGUAGE_STUDY_H
OWNER(cgam_lm_study, cgam_lm_study_close)
OWNER(cgam_lm_result, cgam_lm_result_free)
#endif
#ifdef CGAM_SRC_LAB_LANGUAGE_SWEEP_H
OWNER(cgam_sweep, cgam_sweep_free)
#endif
#ifdef CGAM_SRC_LAB_LANGUAGE_FIT_H
OWNER(cgam_ridge, cgam_ridge_free)
#endif
#ifdef CGAM_SRC_LAB_LANGUAGE_GATES_H
OWNER(cgam_gates, cgam_gates_free)
OWNER(cgam_gates_asked, cgam_gates_asked_free)
#endif
#ifdef JANSSON_H
OWNER(json_t, json_decref)
#endif

#endif
