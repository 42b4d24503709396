/* recall_explain.c: why a recall answers as it does, as part of its document. */
#include "app/recall_explain.h"

#include <math.h>
#include <stddef.h>

static const struct {
    const char *name;
    size_t at;
} kinds[] = {
    {"evidence", offsetof(cgam_score_parts, evidence)},
    {"bias", offsetof(cgam_score_parts, bias)},
    {"feedback", offsetof(cgam_score_parts, feedback)},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

void cgam_parts_put(json_t *query, const cgam_score_parts *parts, int64_t count)
{
    json_t *doc = json_object();
    for (int k = 0; k < KINDS; k++)
        cgam_json_put(doc, kinds[k].name,
                      cgam_json_reals((const double *)((const char *)parts + kinds[k].at), count,
                                      sizeof *parts / sizeof(double)));
    cgam_json_put(query, "parts", doc);
}

cgam_status cgam_marks_put(json_t *doc, const cgam_recall *plan, const double *q, const double *c)
{
    cgam_marks m;
    cgam_status status = cgam_recall_marks(plan, q, c, &m);
    if (status != CGAM_OK) return status;
    json_t *marks = json_object();
    cgam_json_put_real(marks, "alpha_crit", m.alpha_crit);
    cgam_json_put_real(marks, "alpha_fold", m.alpha_fold);
    cgam_json_put_real(marks, "lambda_unique_max", m.lambda_unique_max);
    cgam_json_put_real(marks, "beta_unique_max", m.beta_unique_max);
    cgam_json_put(doc, "marks", marks);
    return CGAM_OK;
}

void cgam_parts_print(const json_t *query, FILE *to)
{
    const json_t *parts = json_object_get(query, "parts"), *top = json_object_get(query, "top");
    if (!parts) return;
    fprintf(to, "\n  %-10s %12s %12s %12s %12s\n", "memory", "p", "evidence", "bias", "feedback");
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *pair = json_array_get(top, i);
        fprintf(to, "  %-10lld %12.5g", (long long)json_integer_value(json_array_get(pair, 0)),
                json_number_value(json_array_get(pair, 1)));
        for (int k = 0; k < KINDS; k++)
            fprintf(to, " %12.6g", cgam_json_nth(parts, kinds[k].name, (int64_t)i));
        fprintf(to, "\n");
    }
}

void cgam_marks_print(const json_t *doc, FILE *to)
{
    static const char *const rows[][2] = {
        {"alpha_crit", "gates stay stable up to this alpha"},
        {"alpha_fold", "the branch of fixed points ends at this alpha"},
        {"lambda_unique_max", "one answer, proved, up to this lambda"},
        {"beta_unique_max", "one answer, proved, up to this beta"},
    };
    const json_t *marks = json_object_get(doc, "marks");
    if (!marks) return;
    fprintf(to, "\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = cgam_json_get_real(marks, rows[i][0]);
        if (isnan(value)) fprintf(to, "  %-18s %-14s %s\n", rows[i][0], "-", rows[i][1]);
        else fprintf(to, "  %-18s %-14.8g %s\n", rows[i][0], value, rows[i][1]);
    }
}
