/* claims.c: what the paper says about its simulations, decided by tests on this run's own data. Each
 * study has a file of its claims, claims_<study>.c.
 *
 * Accuracies on the same draws are compared by the trials that differ (McNemar): z = (gained -
 * lost) / sqrt(gained + lost). Where the paper leaves a choice open, a claim has a reading for each
 * choice. */
#include "lab/claims/claims.h"
#include "io/csv.h"

#include "lab/folder.h"
#include "lab/table.h"

void cgam_claims_state(cgam_claims *c, const cgam_statement *list, int printed, int count,
                       const cgam_reading *readings)
{
    cgam_outcome outcomes[CGAM_READINGS];
    const char *under[CGAM_READINGS];
    for (; list->key; list++) {
        cgam_claim *claim = cgam_claim_add(c, list->key);
        claim->printed = printed;
        for (int i = 0; i < count; i++) {
            claim->reading = i;
            outcomes[i] = list->decide(readings[i].study, claim, readings[i].name);
            under[i] = readings[i].under;
        }
        const cgam_study_opts *o = &readings[0].study->opts;
        int64_t trials = o->trials; /* of convergence, every start is one */
        if (o->kind == CGAM_STUDY_CONVERGENCE) trials *= o->starts;
        cgam_claim_decide(claim, trials, count, outcomes, under);
    }
}

void cgam_claims_decide(const cgam_study *const runs[CGAM_RUNS], cgam_claims *out)
{
    out->count = 0;
    cgam_claims_separation(runs, out);
    cgam_claims_competition(runs, out);
    cgam_outcome apart = cgam_claims_coupled(runs, out);
    cgam_claims_timescale(runs, out);
    cgam_claims_theorems(runs, out, apart);
    cgam_claims_points(runs, out);
    cgam_claims_rivals(runs, out);
    cgam_claims_tidy(out);
}

json_t *cgam_claims_json(const cgam_claims *claims)
{
    char verdict[CGAM_VERDICT_TEXT];
    json_t *list = json_array();
    for (int i = 0; i < claims->count; i++) {
        const cgam_claim *c = &claims->claim[i];
        json_array_append_new(
            list,
            cgam_json_object("where=%s claim=%s verdict=%s numbers=%s test=%s null=%s", c->where,
                             c->says, cgam_verdict_text(c, verdict), c->numbers, c->test, c->null));
    }
    return list;
}

cgam_status cgam_claims_write(cgam_env *env, const cgam_claims *claims, const char *folder)
{
    char verdict[CGAM_VERDICT_TEXT];
    cgam_outfile *file;
    cgam_status status = cgam_outfile_in(env, folder, "claims.csv", &file);
    if (status != CGAM_OK) return status;
    FILE *to = cgam_outfile_stream(file);
    fprintf(to, "where,claim,verdict,numbers,test,null\n");
    for (int i = 0; i < claims->count; i++) {
        const cgam_claim *c = &claims->claim[i];
        const char *fields[] = {c->where,   c->says, cgam_verdict_text(c, verdict),
                                c->numbers, c->test, c->null};
        for (int k = 0; k < 6; k++) {
            if (k) fputc(',', to);
            cgam_csv_text(to, fields[k]);
        }
        fputc('\n', to);
    }
    return cgam_outfile_commit(file);
}
