/* loss_figure.c: the curve of a training, from its table of epochs. */
#include "lab/figures/loss_figure.h"

#include "base/env.h"
#include "lab/figures/picture.h"
#include "lab/figures/script.h"
#include "lab/table.h"

#include <string.h>

json_t *cgam_epochs_json(const cgam_trained *t)
{
    json_t *list = json_array();
    for (int64_t e = 0; e < t->epochs; e++)
        json_array_append_new(list, cgam_json_object("loss=%g stop_loss=%g held_out_loss=%g",
                                                     t->epoch[e].loss, t->epoch[e].stop_loss,
                                                     t->epoch[e].held_out_loss));
    return list;
}

static cgam_status write_table(cgam_env *env, const char *folder, const cgam_trained *t)
{
    enum { COLUMNS = 4 };
    double *cells = cgam_alloc(env, (size_t)(t->epochs + 1) * COLUMNS, sizeof *cells);
    if (!cells) return cgam_fail_nomem(env, "a table");
    for (int64_t e = 0; e <= t->epochs; e++) {
        const cgam_epoch *at = e ? &t->epoch[e - 1] : &t->before;
        double row[COLUMNS] = {(double)e, at->loss, at->stop_loss, at->held_out_loss};
        memcpy(cells + e * COLUMNS, row, sizeof row);
    }
    const cgam_table table = {.name = "loss",
                              .about = "the mean loss after each epoch; epoch 0 is the start",
                              .heads = "epoch,loss,stop_loss,held_out_loss",
                              .rows = t->epochs + 1,
                              .columns = COLUMNS,
                              .cells = cells};
    cgam_status status = cgam_table_write(env, &table, folder);
    cgam_free(env, cells);
    return status;
}

static cgam_status draw(cgam_env *env, const json_t *doc, const char *folder, cgam_figures *out)
{
    out->count = 1;
    cgam_figure *f = &out->figure[0];
    *f = (cgam_figure){.name = "loss", .title = "Loss while training"};
    snprintf(f->caption, sizeof f->caption, "cgam %s: mean loss, %s; the result is epoch %lld",
             CGAM_VERSION, cgam_json_get_text(doc, "optimizer"),
             (long long)cgam_json_get_int(doc, "best_epoch"));
    size_t last = json_array_size(json_object_get(doc, "epochs"));
    cgam_script p;
    cgam_status status = cgam_script_open(env, folder, f, 640, 420, &p);
    if (status != CGAM_OK) return status;
    cgam_script_fill(p.to, "loss",
                     cgam_json_object("best=%jd last=%jd",
                                      (intmax_t)cgam_json_get_int(doc, "best_epoch"),
                                      (intmax_t)(last < 1 ? 1 : last)));
    return cgam_script_close(&p);
}

cgam_status cgam_loss_leave(cgam_env *env, json_t *doc, const char *folder, bool drawn,
                            const cgam_trained *trained)
{
    cgam_status status = write_table(env, folder, trained);
    return status == CGAM_OK ? cgam_picture_leave(env, doc, folder, "loss", drawn, draw,
                                                  json_pack("[s]", "loss.csv"))
                             : status;
}
