/* basins.c: attractors and basins of one query, without a context, under a weak and under a strong one.
 *
 * With three memories the weights p are a triangle. A coupled recall started from each point of it ends at one
 * attractor; the points that end together are its basin. Prints context, x, y and the winner for every start, then
 * the minima and saddles of the landscape as a second block. */
#include <cgam/cgam.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 160, STARTS = (SIDE + 1) * (SIDE + 2) / 2 };

/* Three memories 120 degrees apart; the query leans a little to the first, the contexts to the second. */
static const double Z[3][2] = {{1, 0}, {-0.5, 0.8660254037844386}, {-0.5, -0.8660254037844386}};
static const double query[2] = {0.05, 0.02};
enum { CONTEXTS = 3 };
static const double contexts[CONTEXTS][2] = {{0, 0}, {-0.06, 0.09}, {-0.3, 0.45}};

/* Where weights lie in a triangle of side 1. */
static double right(const double *p) { return p[1] + 0.5 * p[2]; }
static double up(const double *p) { return 0.8660254037844386 * p[2]; }

static cgam_status basins(const cgam_recall *plan, int k, const double *q, const double *starts)
{
    static cgam_result results[STARTS];
    cgam_recall_in in = {.queries = STARTS, .q = q, .c = contexts[k], .start = starts};
    cgam_recall_out out = {.results = results};
    cgam_status status = cgam_recall_run(plan, &in, &out);
    for (int i = 0; i < STARTS && status == CGAM_OK; i++)
        printf("%d %.5f %.5f %d\n", k, right(starts + 3 * i), up(starts + 3 * i),
               (int)results[i].winner);
    return status;
}

static cgam_status points(cgam_env *env, const cgam_recall *plan, int k)
{
    cgam_landscape found;
    cgam_status status = cgam_landscape_find(plan, query, contexts[k], NULL, &found);
    if (status != CGAM_OK) return status;
    for (int64_t i = 0; i < found.count; i++)
        printf("%d %.5f %.5f %s\n", k, right(found.p + 3 * i), up(found.p + 3 * i),
               found.points[i].minimum ? "minimum" : "saddle");
    cgam_landscape_free(env, &found);
    return status;
}

int main(void)
{
    cgam_env *env = NULL;
    cgam_bank *bank = NULL;
    cgam_recall *plan = NULL;
    double *starts = malloc(STARTS * 3 * sizeof *starts), *q = malloc(STARTS * 2 * sizeof *q);
    cgam_status status = starts && q ? cgam_env_new(NULL, &env) : CGAM_E_NOMEM;
    for (int i = 0, k = 0; i <= SIDE && status == CGAM_OK; i++)
        for (int j = 0; i + j <= SIDE; j++, k++) {
            double at[3] = {i, j, SIDE - i - j};
            for (int m = 0; m < 3; m++) starts[3 * k + m] = at[m] / SIDE;
            for (int m = 0; m < 2; m++) q[2 * k + m] = query[m];
        }
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, 3, 2, NULL, &bank);
    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.mode = CGAM_COUPLED;
    opts.beta = 4; /* sharp enough for feedback to hold any of the three */
    if (status == CGAM_OK) status = cgam_recall_new(bank, &opts, &plan);
    for (int k = 0; k < CONTEXTS && status == CGAM_OK; k++) status = basins(plan, k, q, starts);
    if (status == CGAM_OK) printf("\n\n");
    for (int k = 0; k < CONTEXTS && status == CGAM_OK; k++) status = points(env, plan, k);
    if (status != CGAM_OK)
        fprintf(stderr, "%s\n", env ? cgam_env_message(env) : cgam_status_text(status));
    cgam_recall_free(plan);
    cgam_bank_free(bank);
    cgam_env_free(env);
    free(starts);
    free(q);
    return status != CGAM_OK;
}
