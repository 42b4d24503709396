/* output.c: numbers in CSV are written so that they read back exactly. */
#include "app/output.h"

#include "base/env.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

static cgam_status path_in(const cgam_call *call, const char *name, char *path, size_t size)
{
    const char *folder = cgam_args_text(call->args, "out");
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return cgam_fail(call->env, CGAM_E_IO, "--out %s: %s", cgam_path_tail(folder),
                         strerror(errno));
    if (snprintf(path, size, "%s/%s", folder, name) >= (int)size)
        return cgam_fail(call->env, CGAM_E_ARG, "--out: the path is too long");
    return CGAM_OK;
}

cgam_status cgam_csv_begin(const cgam_call *call, const char *name, const char *heading,
                           cgam_csv *out)
{
    char path[1024];
    *out = (cgam_csv){.columns = 1};
    for (const char *c = heading; *c; c++) out->columns += *c == ',';
    if (!cgam_args_text(call->args, "out")) return CGAM_OK;
    cgam_status status = path_in(call, name, path, sizeof path);
    if (status == CGAM_OK) status = cgam_outfile_begin(call->env, path, &out->file);
    if (status == CGAM_OK) fprintf(cgam_outfile_stream(out->file), "%s\n", heading);
    else out->file = NULL;
    return status;
}

void cgam_csv_row(cgam_csv *csv, const double *values)
{
    if (!csv->file) return;
    FILE *to = cgam_outfile_stream(csv->file);
    char text[CGAM_REAL_TEXT];
    for (int i = 0; i < csv->columns; i++) {
        if (i > 0) fputc(',', to);
        if (isnan(values[i])) continue;
        if (isinf(values[i])) fputs(values[i] > 0 ? "inf" : "-inf", to);
        else if (values[i] == floor(values[i]) && fabs(values[i]) < 1e15)
            fprintf(to, "%.0f", values[i]);
        else fputs(cgam_real_text(values[i], text), to);
    }
    fputc('\n', to);
}

cgam_status cgam_csv_end(cgam_csv *csv, cgam_status status)
{
    cgam_outfile *file = csv->file;
    csv->file = NULL;
    if (!file) return status;
    if (status == CGAM_OK) return cgam_outfile_commit(file);
    cgam_outfile_abandon(file);
    return status;
}

cgam_status cgam_out_json(const cgam_call *call, const char *name)
{
    char path[1024];
    cgam_outfile *file;
    if (!cgam_args_text(call->args, "out")) return CGAM_OK;
    cgam_status status = path_in(call, name, path, sizeof path);
    if (status == CGAM_OK) status = cgam_outfile_begin(call->env, path, &file);
    if (status != CGAM_OK) return status;
    cgam_json_write(cgam_outfile_stream(file), call->doc, 1);
    fputc('\n', cgam_outfile_stream(file));
    return cgam_outfile_commit(file);
}
