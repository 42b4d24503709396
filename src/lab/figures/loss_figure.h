/* loss_figure.h: the curve of a training. */
#ifndef CGAM_SRC_LAB_FIGURES_LOSS_FIGURE_H
#define CGAM_SRC_LAB_FIGURES_LOSS_FIGURE_H

#include "lab/document.h"
#include "lab/learn/trainer.h"

/* [{"loss", "stop_loss", "held_out_loss"}, ..], an object for each epoch. */
json_t *cgam_epochs_json(const cgam_trained *trained);

/* Writes loss.csv, the document as loss.json and, if `drawn`, the curve (SVG, PNG, PDF) into the folder, and puts
 * "out" and "files" into the document, which has "optimizer" and "best_epoch". */
CGAM_NODISCARD cgam_status cgam_loss_leave(cgam_env *env, json_t *doc, const char *folder,
                                           bool drawn, const cgam_trained *trained);

#endif
