/* page.c: one recall for JavaScript: numbers in, a line of JSON out. */
#include <cgam/cgam.h>

#include <math.h>
#include <stdio.h>

static char answer[2048];

static const char *number(double x, char text[32])
{
    if (isfinite(x)) snprintf(text, 32, "%.17g", x);
    else snprintf(text, 32, "null");
    return text;
}

/* A text from the library, as JSON: quotes and what is below a blank become blanks. */
static const char *failed(cgam_status status, const char *why)
{
    int length = snprintf(answer, sizeof answer, "{\"status\": %d, \"message\": \"", (int)status);
    for (; *why && length < (int)sizeof answer - 4; why++)
        answer[length++] = (unsigned char)*why < ' ' || *why == '"' || *why == '\\' ? ' ' : *why;
    snprintf(answer + length, sizeof answer - (size_t)length, "\"}");
    return answer;
}

static const char *describe(const cgam_result *r)
{
    char t[12][32];
    snprintf(
        answer, sizeof answer,
        "{\"status\": 0, \"winner\": %d, \"p\": %s, \"log_p\": %s, \"p_lower_bound\": %s, "
        "\"p_lower_bound_proved\": %s, \"gap\": %s, \"gap_raw\": %s, \"gap_gate\": %s, \"neff_entropy\": %s, "
        "\"neff_ipr\": %s, \"iterations\": %d, \"end\": \"%s\", \"contraction\": %s, \"unique\": %d, "
        "\"unique_proved\": %s, \"stable\": %d}",
        (int)r->winner, number(r->p, t[0]), number(r->log_p, t[1]), number(r->p_lower_bound, t[2]),
        r->p_lower_bound_proved ? "true" : "false", number(r->gap, t[3]), number(r->gap_raw, t[4]),
        number(r->gap_gate, t[5]), number(r->neff_entropy, t[6]), number(r->neff_ipr, t[7]),
        (int)r->iterations, cgam_end_words[r->end], number(r->contraction, t[8]), r->unique,
        r->unique_proved ? "true" : "false", r->stable);
    return answer;
}

/* Z [n, d], q and c [d]; mode 0 is first, 1 coupled. p [n] holds the probabilities on return. The text lives until the next call. */
const char *cgam_page_recall(int n, int d, const double *Z, const double *q, const double *c,
                             int normalize, int mode, double alpha, double beta, double lambda,
                             double *p);
const char *cgam_page_recall(int n, int d, const double *Z, const double *q, const double *c,
                             int normalize, int mode, double alpha, double beta, double lambda,
                             double *p)
{
    if (mode != CGAM_FIRST && mode != CGAM_COUPLED)
        return failed(CGAM_E_VALUE, "mode must be first or coupled");
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    cgam_result result;
    cgam_env_opts how = cgam_env_opts_default();
    how.threads = 1;
    cgam_status status = cgam_env_new(&how, &env);
    if (status != CGAM_OK) return failed(status, cgam_status_text(status));
    cgam_bank_opts kind = cgam_bank_opts_default();
    kind.normalize = normalize != 0;
    status = cgam_bank_new(env, Z, CGAM_F64, n, d, &kind, &bank);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = (cgam_mode)mode, opts.alpha = alpha, opts.beta = beta, opts.lambda = lambda;
    if (status == CGAM_OK) status = cgam_recall_new(bank, &opts, &plan);
    const cgam_recall_in in = {.queries = 1, .q = q, .c = c};
    cgam_recall_out out = {.results = &result, .p = p};
    if (status == CGAM_OK) status = cgam_recall_run(plan, &in, &out);
    const char *text =
        status == CGAM_OK ? describe(&result) : failed(status, cgam_env_message(env));
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    cgam_env_free(env);
    return text;
}
