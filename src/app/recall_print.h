/* recall_print.h: the document of a recall for people. */
#ifndef CGAM_SRC_APP_RECALL_PRINT_H
#define CGAM_SRC_APP_RECALL_PRINT_H

#include "io/json.h"

#include <stdio.h>

void cgam_recall_print(const json_t *doc, FILE *to);

#endif
