/* first_recall.c: the query says "bank"; the context says which. */
#include <cgam/cgam.h>
#include <stdio.h>

/* Memories, one per row, by what they have to do with: a bank, water, money, a mill. */
static const char *const names[] = {"river bank", "savings bank", "water mill"};
static const double Z[3][4] = {{1, 1, 0, 0}, {1, 0, 1, 0}, {0, 1, 0, 1}};

static const double query[4] = {1, 0, 0, 0};
static const char *const hints[] = {"nothing", "water", "money"};
static const double contexts[3][4] = {{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};

int main(void)
{
    cgam_env *env = NULL;   /* the library's handle: memory, threads, the last message */
    cgam_bank *bank = NULL; /* borrows Z */
    cgam_status status = cgam_env_new(NULL, &env);
    if (status == CGAM_OK) status = cgam_bank_new(env, Z, CGAM_F64, 3, 4, NULL, &bank);

    cgam_recall_opts opts = cgam_recall_opts_default();
    opts.beta = 4; /* how sharply scores become probabilities */
    for (int k = 0; k < 3 && status == CGAM_OK; k++) {
        cgam_result r;
        status = cgam_recall_once(bank, query, contexts[k], &opts, &r);
        if (status == CGAM_OK)
            printf("context %-8s -> %-13s p = %.3f, at least %.3f by its gap of %.2f\n", hints[k],
                   names[r.winner], r.p, r.p_lower_bound, r.gap);
    }

    if (status != CGAM_OK)
        fprintf(stderr, "%s\n", env ? cgam_env_message(env) : cgam_status_text(status));
    cgam_bank_free(bank);
    cgam_env_free(env);
    return status != CGAM_OK;
}
