/* fields.h: the structs of this layer as tables; cgam_fields (recall.h) looks them up by name. */
#ifndef CGAM_SRC_MEMORY_FIELDS_H
#define CGAM_SRC_MEMORY_FIELDS_H

#include "base/field.h"

/* Values of `when` for rows of cgam_result: fields that a document has only on request. */
enum {
    CGAM_WITH_NONE = 1,
    CGAM_WITH_FAST = 2,
    CGAM_WITH_TARGET = 4,
    CGAM_WITH_SPARSE = 8, /* another activation than softmax */
    CGAM_WITH_NAMES = 16,
    CGAM_WITH_PARTS = 32,
    CGAM_WITH_BRANCH = 64,
    CGAM_WITH_WATCH = 128,  /* a layer whose winner is followed */
    CGAM_WITH_ALL = 1 << 30 /* in C and in bindings, not in documents */
};

extern const cgam_field cgam_recall_opts_rows[], cgam_result_rows[], cgam_route_rows[],
    cgam_marks_rows[], cgam_anneal_point_rows[], cgam_transition_rows[], cgam_bank_info_rows[],
    cgam_pack_info_rows[], cgam_gram_info_rows[], cgam_gate_info_rows[], cgam_spectrum_info_rows[],
    cgam_inspection_rows[], cgam_landscape_opts_rows[], cgam_point_rows[], cgam_landscape_rows[],
    cgam_flow_report_rows[];

#endif
