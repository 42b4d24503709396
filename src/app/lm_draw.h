/* lm_draw.h: the figures that the `lm` verbs leave beside their tables. */
#ifndef CGAM_SRC_APP_LM_DRAW_H
#define CGAM_SRC_APP_LM_DRAW_H

#include "app/params.h"
#include "report/models.h"

#define CGAM_PARAM_LM_FIGURES                                                                      \
    CGAM_PARAM_FIGURES("draw the figures beside the tables (SVG, PNG, PDF; needs gnuplot)")

/* Draws the figures of the call's document, whose tables are in place in --out; without --out or
 * with --figures no it does nothing. Puts "figures", or "figures_missing" without gnuplot. */
cgam_status cgam_lm_draw(cgam_call *call, cgam_models_part part);

#endif
